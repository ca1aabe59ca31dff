"""Searches under a budget. To add one: a file here and a line here."""

from banditune.core.lazy_registry import Registry

TUNERS = Registry(
    {
        "two-part": "banditune.tuners.two_part:TwoPart",
        "cma-es": "banditune.tuners.cma_es:CMAES",
        "notes": "banditune.tuners.noisy_ternary_search:NoTeS",
        "uniform": "banditune.tuners.grid_search:Uniform",
        "halving": "banditune.tuners.grid_search:SequentialHalving",
        "optuna": "banditune.tuners.optuna_adapter:Optuna",
    },
    group="banditune.tuners",
)
