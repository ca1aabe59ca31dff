"""Optimisers from elsewhere, for comparison; they see averages of runs and know nothing of bandits."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.contracts import BadRequest, Range, Search, Trial, Tuner

SAMPLERS = {"tpe": "TPESampler", "gp": "GPSampler"}


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
        if self.sampler not in SAMPLERS:
            raise BadRequest(f"`sampler` must be one of {', '.join(SAMPLERS)}, but got {self.sampler!r}.")
        for name, least in (("trials", 1), ("seed", 0)):
            number = getattr(self, name)
            if name == "seed" and number is None:
                continue
            if not isinstance(number, int) or isinstance(number, bool) or number < least:
                raise BadRequest(f"`{name}` must be a whole number of at least {least}, but got {name}={number!r}.")

    def search(self, among: Range, budget: int, rng: np.random.Generator | None = None) -> Search:
        rng = np.random.default_rng(0) if rng is None else rng
        study = study_of(self.sampler, int(rng.integers(1 << 32)) if self.seed is None else self.seed)
        for size in sizes(budget, self.trials):
            trial = study.ask()
            value = among.within(suggested(trial, among))
            regrets = yield Trial((value,), size)
            study.tell(trial, float(np.mean(regrets)))
        return among.within(float(study.best_params[among.name]))


def sizes(budget: int, trials: int) -> list[int]:
    """Runs of each trial, as even as can be."""
    trials = min(trials, budget)
    return [budget // trials + (trial < budget % trials) for trial in range(trials)]


def suggested(trial: Any, among: Range) -> float:
    """The value that Optuna wants to see next, on the parameter's own scale."""
    log = among.scale == "log"
    if among.integer:
        return float(trial.suggest_int(among.name, int(np.ceil(among.low)), int(np.floor(among.high)), log=log))
    return float(trial.suggest_float(among.name, among.low, among.high, log=log))


def study_of(sampler: str, seed: int) -> Any:
    """A study that minimises, begun without a word on the screen."""
    optuna = imported("optuna", 'the tuner "optuna" needs Optuna; install it with: pip install "banditune[optuna]"')
    if sampler == "gp":
        for name in ("scipy", "torch"):
            imported(name, f'Optuna\'s sampler "gp" needs {name}; install it with: pip install {name}')
    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(sampler=getattr(optuna.samplers, SAMPLERS[sampler])(seed=seed))
    optuna.logging.set_verbosity(before)
    return study


def imported(name: str, otherwise: str) -> Any:
    """A module that may be missing."""
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise BadRequest(otherwise) from error
