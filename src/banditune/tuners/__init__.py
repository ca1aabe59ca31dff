"""Searches under a budget. To add one: a file here and a line on the shelf."""

from collections.abc import Callable

from banditune.contracts import Tuner
from banditune.tuners.grid import SequentialHalving, Uniform
from banditune.tuners.notes import NoTeS, budget_needed, failure_bound, iterations_needed
from banditune.tuners.outside import Optuna
from banditune.tuners.two_part import TwoPart

SHELF: dict[str, Callable[..., Tuner]] = {
    "two-part": TwoPart,
    "notes": NoTeS,
    "uniform": Uniform,
    "halving": SequentialHalving,
    "optuna": Optuna,
}

__all__ = [
    "SHELF",
    "NoTeS",
    "Optuna",
    "SequentialHalving",
    "TwoPart",
    "Uniform",
    "budget_needed",
    "failure_bound",
    "iterations_needed",
]
