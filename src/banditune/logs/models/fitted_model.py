"""The options of a fit and the record that every model of past logs returns, with the choice of arms and names that models share."""

from __future__ import annotations

from typing import NamedTuple

from banditune.core.errors import InvalidRequest
from banditune.core.problem import Problem
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.mean_samplers import MeanSampler
from banditune.results.log_results import FittedParameter


class FitOptions(NamedTuple):
    """What was asked for."""

    per_arm: bool
    arms: int
    confidence: float


class FittedModel(NamedTuple):
    """A fitted problem; `rewards` around drawn means are "binary", "real" with noise `scale`, or "unit" with v `scale`.

    `means` draws what replayed logs have, `known` what arms have given their own data. `around` is what arms have around
    their own campaign before their data, of a model that does not say how campaigns differ. `kurtosis` is that of real
    rewards, beyond 0 of normal ones.
    """

    problem: Problem
    estimates: tuple[FittedParameter, ...]
    notes: tuple[str, ...]
    means: MeanSampler
    known: MeanSampler
    rewards: str
    scale: float = 1.0
    around: MeanSampler | None = None
    kurtosis: float = 0.0


def resolve_problem_arms(logs: Logs, wish: FitOptions) -> int:
    """How many arms the problem has: with a prior per arm, all that have a name."""
    if not wish.per_arm:
        return wish.arms
    check_arms_option(wish, len(logs.arms), "one for each name")
    return len(logs.arms)


def check_arms_option(wish: FitOptions, arms: int, why: str) -> None:
    """Arms that are told must be those of the logs."""
    if wish.arms != arms:
        raise InvalidRequest(f"`arms` must be {arms}, {why}, but got {wish.arms}; leave it out.")


def select_arm_names(logs: Logs, wish: FitOptions) -> tuple[str, ...]:
    """Names of arms, where each has a prior of its own or all campaigns had the same."""
    return logs.arms if wish.per_arm or (logs.same_arms and wish.arms == len(logs.arms)) else ()
