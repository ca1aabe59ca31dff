"""The options of a fit, the record that every model of past logs returns, and the choice of arms and names."""

from __future__ import annotations

from typing import NamedTuple

from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.mean_samplers import MeanSampler
from banditune.results.log_results import FittedParameter


class FitOptions(NamedTuple):
    """The options of a fit."""

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
    prior_sampler: MeanSampler
    posterior_sampler: MeanSampler
    rewards: str
    reward_scale: float = 1.0
    within_campaign_sampler: MeanSampler | None = None
    excess_kurtosis: float = 0.0


def resolve_problem_arms(logs: Logs, wish: FitOptions) -> int:
    """Return the number of arms of the problem: with a prior per arm, all named arms."""
    if not wish.per_arm:
        return wish.arms
    check_arms_option(wish, len(logs.arms), "one for each name")
    return len(logs.arms)


def check_arms_option(wish: FitOptions, arms: int, why: str) -> None:
    """Check that given arms are those of the logs."""
    if wish.arms != arms:
        raise make_argument_error("arms", "conflict", f"must be {arms}, {why}, but got {wish.arms}; leave it out.")


def select_arm_names(logs: Logs, wish: FitOptions) -> tuple[str, ...]:
    """Return the names of arms if each has its own prior, or if all campaigns had the same arms."""
    return logs.arms if wish.per_arm or (logs.same_arms and wish.arms == len(logs.arms)) else ()
