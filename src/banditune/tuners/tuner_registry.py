"""The registry of tuners. To add one: write a module in this package and add it to `TUNERS`."""

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
