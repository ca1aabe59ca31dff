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

    `prior_sampler` draws means as in replayed logs, `posterior_sampler` means given the logs. `within_campaign_sampler`
    draws means around their campaign, for a model without a distribution of campaigns. `excess_kurtosis` is that of real
    rewards, 0 for normal ones.
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


def resolve_problem_arms(logs: Logs, options: FitOptions) -> int:
    """Return the number of arms of the problem. With a prior per arm, these are all arms of the logs."""
    if not options.per_arm:
        return options.arms
    check_arms_option(options, len(logs.arms), "one for each name")
    return len(logs.arms)


def check_arms_option(options: FitOptions, arms: int, why: str) -> None:
    """Check that given arms are those of the logs."""
    if options.arms != arms:
        raise make_argument_error("arms", "conflict", f"must be {arms}, {why}, but got {options.arms}; leave it out.")


def select_arm_names(logs: Logs, options: FitOptions) -> tuple[str, ...]:
    """Return the names of arms if each has its own prior, or if all campaigns had the same arms."""
    return logs.arms if options.per_arm or (logs.same_arms and options.arms == len(logs.arms)) else ()
