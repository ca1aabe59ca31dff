"""Optuna's samplers as tuners, for comparison. They use averages of runs, and no knowledge about bandits."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.checks import check_choice, check_integer
from banditune.core.errors import MissingDependency
from banditune.core.request_errors import make_type_error
from banditune.core.space import Range
from banditune.core.tuner import SearchGenerator, Trial, Tuner

SAMPLER_CLASSES = {"tpe": "TPESampler", "gp": "GPSampler"}


@dataclass(frozen=True)
class Optuna(Tuner):
    """One of Optuna's samplers. The budget is divided evenly among its trials. The answer has the lowest average regret.

    Parameters
    ----------
    sampler : {"tpe", "gp"}
        The sampler: a tree-structured Parzen estimator, or a Gaussian process, which also needs SciPy and PyTorch.
    trials : int
        The number of simulated values.
    seed : int, optional
        The sampler's seed. By default it is derived from the study's seed.
    """

    sampler: str = "tpe"
    trials: int = 50
    seed: int | None = None

    name = "optuna"

    def __post_init__(self) -> None:
        check_choice("sampler", self.sampler, tuple(SAMPLER_CLASSES))
        for name, least in (("trials", 1), ("seed", 0)):
            number = getattr(self, name)
            if name == "seed" and number is None:
                continue
            if not isinstance(number, int):
                raise make_type_error(name, f"a whole number >= {least}", number)
            check_integer(name, number, least)

    def search(self, search_range: Range, budget: int, rng: np.random.Generator | None = None) -> SearchGenerator:
        rng = np.random.default_rng(0) if rng is None else rng
        study = create_optuna_study(self.sampler, int(rng.integers(1 << 32)) if self.seed is None else self.seed)
        for size in split_budget(budget, self.trials):
            trial = study.ask()
            value = search_range.clip(suggest_value(trial, search_range))
            regrets = yield Trial((value,), size)
            study.tell(trial, float(np.mean(regrets)))
        return search_range.clip(float(study.best_params[search_range.name]))


def split_budget(budget: int, trials: int) -> list[int]:
    """Split a budget into trials as evenly as possible."""
    trials = min(trials, budget)
    return [budget // trials + (trial < budget % trials) for trial in range(trials)]


def suggest_value(trial: Any, search_range: Range) -> float:
    """Get the next value from Optuna, on the parameter's own scale."""
    log = search_range.scale == "log"
    if search_range.integer:
        return float(
            trial.suggest_int(
                search_range.name, int(np.ceil(search_range.low)), int(np.floor(search_range.high)), log=log
            )
        )
    return float(trial.suggest_float(search_range.name, search_range.low, search_range.high, log=log))


def create_optuna_study(sampler: str, seed: int) -> Any:
    """Create a study that minimises, without log output."""
    optuna = import_optional(
        "optuna", 'the tuner "optuna" needs Optuna; install it with: pip install "banditune[optuna]"'
    )
    if sampler == "gp":
        for name in ("scipy", "torch"):
            import_optional(name, f'Optuna\'s sampler "gp" needs {name}; install it with: pip install {name}')
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=getattr(optuna.samplers, SAMPLER_CLASSES[sampler])(seed=seed))
    optuna.logging.set_verbosity(before)
    return study


def import_optional(name: str, otherwise: str) -> Any:
    """Import a module that may be missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise MissingDependency(otherwise) from error
