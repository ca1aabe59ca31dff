"""Searches under a budget. To add one: a file here and a line on the shelf."""

from collections.abc import Callable

from banditune.core.tuner import Tuner
from banditune.tuners.grid_search import SequentialHalving, Uniform
from banditune.tuners.noisy_ternary_search import NoTeS
from banditune.tuners.optuna_adapter import Optuna
from banditune.tuners.two_part import TwoPart

TUNERS: dict[str, Callable[..., Tuner]] = {
    "two-part": TwoPart,
    "notes": NoTeS,
    "uniform": Uniform,
    "halving": SequentialHalving,
    "optuna": Optuna,
}
