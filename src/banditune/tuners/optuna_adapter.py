"""Optimisers from elsewhere, for comparison; they see averages of runs and know nothing of bandits."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.errors import InvalidRequest
from banditune.core.space import Range
from banditune.core.tuner import SearchGenerator, Trial, Tuner

SAMPLER_CLASSES = {"tpe": "TPESampler", "gp": "GPSampler"}


@dataclass(frozen=True)
class Optuna(Tuner):
    """Optuna's samplers, tpe or gp: the budget is spread over `trials` values, the lowest average wins.

    The sampler's seed follows the study's seed; where `seed` is given, it is that.
    """

    sampler: str = "tpe"
    trials: int = 50
    seed: int | None = None

    name = "optuna"

    def __post_init__(self) -> None:
        if self.sampler not in SAMPLER_CLASSES:
            raise InvalidRequest(f"`sampler` must be one of {', '.join(SAMPLER_CLASSES)}, but got {self.sampler!r}.")
        for name, least in (("trials", 1), ("seed", 0)):
            number = getattr(self, name)
            if name == "seed" and number is None:
                continue
            if not isinstance(number, int) or isinstance(number, bool) or number < least:
                raise InvalidRequest(f"`{name}` must be a whole number of at least {least}, but got {name}={number!r}.")

    def search(self, among: Range, budget: int, rng: np.random.Generator | None = None) -> SearchGenerator:
        rng = np.random.default_rng(0) if rng is None else rng
        study = create_optuna_study(self.sampler, int(rng.integers(1 << 32)) if self.seed is None else self.seed)
        for size in split_budget(budget, self.trials):
            trial = study.ask()
            value = among.within(suggest_value(trial, among))
            regrets = yield Trial((value,), size)
            study.tell(trial, float(np.mean(regrets)))
        return among.within(float(study.best_params[among.name]))


def split_budget(budget: int, trials: int) -> list[int]:
    """Runs of each trial, as even as can be."""
    trials = min(trials, budget)
    return [budget // trials + (trial < budget % trials) for trial in range(trials)]


def suggest_value(trial: Any, among: Range) -> float:
    """The value that Optuna wants to see next, on the parameter's own scale."""
    log = among.scale == "log"
    if among.integer:
        return float(trial.suggest_int(among.name, int(np.ceil(among.low)), int(np.floor(among.high)), log=log))
    return float(trial.suggest_float(among.name, among.low, among.high, log=log))


def create_optuna_study(sampler: str, seed: int) -> Any:
    """A study that minimises, begun without a word on the screen."""
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
    """A module that may be missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InvalidRequest(otherwise) from error
