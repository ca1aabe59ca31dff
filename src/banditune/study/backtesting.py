"""Tuned on some past campaigns, judged on the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from banditune.core.checks import check_integer, check_number
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.tuner import Tuner
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.equal_arms_test import compute_equal_arms_p
from banditune.logs.models.fitting import FEATURE_MODELS, choose_model, fit, prepare_features
from banditune.problems.campaigns import Campaigns
from banditune.results.estimates import Estimate
from banditune.results.log_results import Backtest, FittedProblem
from banditune.simulation.instances import draw_instance_means
from banditune.study.backtest_estimates import PairRuns
from banditune.study.backtest_evaluators import make_evaluator
from banditune.study.requests import build_spec
from banditune.study.search import FIRST_VALIDATION_INSTANCE
from banditune.study.simulating import simulate
from banditune.study.tuning import tune


def backtest(
    policy: Policy,
    logs: Logs,
    model: str = "auto",
    *,
    per_arm: bool = False,
    intercept: bool = True,
    share: float = 0.5,
    horizon: int | None = None,
    tuner: Tuner | None = None,
    budget: int = 1000,
    ranges: Mapping[str, Sequence[float]] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Backtest:
    """Fit a problem to a random `share` of past campaigns, tune the policy on it, and play it on the campaigns left out.

    A campaign that was left out is played as its own data have it: arms' means are drawn from what these say (where arms
    have features, from the problem fitted to all that were left out). What is reported are means over these campaigns,
    with the uncertainty that so few and so short ones leave. Noise and prior that the policy takes from the problem are
    those of the fitted problem. `ranges` are searched instead of the policy's usual one.
    """
    if not isinstance(policy, Policy) or not isinstance(logs, Logs):
        raise InvalidRequest(
            "`policy` must be a policy and `logs` past logs (banditune.logs.Logs), in this order, but got "
            f"{type(policy).__name__} and {type(logs).__name__}."
        )
    share = check_number("share", share, above=0)
    if not share < 1:
        raise InvalidRequest(f"`0 < share < 1` must hold (50% is 0.5), but got share={share:g}.")
    if len(logs.campaigns) < 4:
        raise InvalidRequest(
            f"logs must hold four campaigns or more, so that some can be left out, but these are {logs!r}."
        )
    if choose_model(logs, model)[0] in FEATURE_MODELS:
        # Both halves must have the same features: whether these hold a constant is decided once.
        logs, _ = prepare_features(logs, intercept)
    order = np.random.default_rng([check_integer("seed", seed, 0), len(logs.campaigns)]).permutation(
        len(logs.campaigns)
    )
    known = min(max(2, round(share * len(order))), len(order) - 2)
    found = fit(logs.of(order[:known]), model, per_arm=per_arm, intercept=intercept, horizon=horizon)
    made = build_spec(policy, found.problem, horizon=found.horizon, ranges=ranges)
    left = _select_campaigns_with_choice(logs.of(order[known:]))
    found = replace(found, notes=tuple(_list_backtest_notes(found, len(order) - known - len(left.campaigns))))
    judge = make_evaluator(left, found.model, intercept)
    # Complaints come before the work: what a policy may refuse is how many arms or features there are.
    for problem in {(problem.arms, problem.dims): problem for problem in judge.problems}.values():
        build_spec(made.policy, problem, horizon=found.horizon)
    tuning = tune(
        policy, _use_all_campaigns(found.problem), tuner, horizon=found.horizon, budget=budget, ranges=ranges, seed=seed,
        jobs=jobs, floor=False,
        progress=progress,
    )  # fmt: skip
    tuned, textbook = (list(params.values()) for params in (tuning.params, tuning.theory_params))
    pair = ((made.policy, tuned), (made.baseline.policy, textbook))

    def play(problem: Problem, runs: range) -> PairRuns:
        # Runs have their noise by their number: those that judge must not be those of the search.
        fresh = range(FIRST_VALIDATION_INSTANCE + runs.start, FIRST_VALIDATION_INSTANCE + runs.stop)
        return play_pair(pair, problem, found.horizon, fresh, seed, jobs)

    paid = np.bincount(left.campaign, left.total, len(left.campaigns)) / left.lengths
    return Backtest(
        fit=found,
        tuning=tuning,
        campaigns=len(left.campaigns),
        logged=Estimate.of(paid),
        equal_arms_p=compute_equal_arms_p(left),
        **judge.judge(play)._asdict(),
    )


def _use_all_campaigns(problem: Problem) -> Problem:
    """A fitted problem of which the search may play all campaigns: others judge, those that were left out."""
    return replace(problem, population=True) if isinstance(problem, Campaigns) else problem


def _list_backtest_notes(found: FittedProblem, alone: int) -> Iterator[str]:
    """The notes of a fit, and a sentence on campaigns with one arm."""
    yield from found.notes
    if alone:
        yield f"{alone} of the campaigns that were left out had one arm, and so nothing to choose: they do not judge"


def _select_campaigns_with_choice(logs: Logs) -> Logs:
    """Campaigns in which there was something to choose."""
    some = np.flatnonzero(logs.widths >= 2)
    if len(some) < 2:
        raise InvalidRequest(
            "two campaigns with two arms or more must be left out to judge by, but there are not so many."
        )
    return logs.of(some)


def play_pair(
    pair: Sequence[tuple[Policy, list[float]]],
    problem: Problem,
    horizon: int,
    runs: range,
    seed: int,
    jobs: int | None,
) -> PairRuns:
    """Runs of two policies, each with a row of parameters."""
    told: Any = {"horizon": horizon, "runs": len(runs), "first": runs.start, "seed": seed, "jobs": jobs}
    regrets = np.concatenate([simulate(policy, problem, [row], **told) for policy, row in pair])
    means = draw_instance_means(problem, seed, runs)
    return PairRuns(regrets, means.max(axis=1) - regrets / horizon, means)
