"""Tuned on some past campaigns, judged on the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from banditune.checks import check_number, check_whole
from banditune.contracts import BadRequest, Policy, Problem, Tuner
from banditune.engine.run import means_of
from banditune.logs.chance import equal_arms_p
from banditune.logs.fit import FEATURED, chosen_model, fit, prepared
from banditune.logs.judges import Runs, judge_of
from banditune.logs.record import Logs
from banditune.problems import Campaigns
from banditune.results import Backtest, Estimate, Fit
from banditune.study import simulate, tune
from banditune.study.door import job_of
from banditune.study.search import FRESH


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
        raise BadRequest(
            "`policy` must be a policy and `logs` past logs (banditune.Logs), in this order, but got "
            f"{type(policy).__name__} and {type(logs).__name__}."
        )
    share = check_number("share", share, above=0)
    if not share < 1:
        raise BadRequest(f"`0 < share < 1` must hold (50% is 0.5), but got share={share:g}.")
    if len(logs.campaigns) < 4:
        raise BadRequest(
            f"logs must hold four campaigns or more, so that some can be left out, but these are {logs!r}."
        )
    if chosen_model(logs, model)[0] in FEATURED:
        # Both halves must have the same features: whether these hold a constant is decided once.
        logs, _ = prepared(logs, intercept)
    order = np.random.default_rng([check_whole("seed", seed, 0), len(logs.campaigns)]).permutation(len(logs.campaigns))
    known = min(max(2, round(share * len(order))), len(order) - 2)
    found = fit(logs.of(order[:known]), model, per_arm=per_arm, intercept=intercept, horizon=horizon)
    made = job_of(policy, found.problem, horizon=found.horizon, ranges=ranges)
    left = with_a_choice(logs.of(order[known:]))
    found = replace(found, notes=tuple(notes_on(found, len(order) - known - len(left.campaigns))))
    judge = judge_of(left, found.model, intercept)
    # Complaints come before the work: what a policy may refuse is how many arms or features there are.
    for problem in {(problem.arms, problem.dims): problem for problem in judge.problems}.values():
        job_of(made.policy, problem, horizon=found.horizon)
    tuning = tune(
        policy, all_there_is(found.problem), tuner, horizon=found.horizon, budget=budget, ranges=ranges, seed=seed,
        jobs=jobs, floor=False,
        progress=progress,
    )  # fmt: skip
    tuned, textbook = (list(params.values()) for params in (tuning.params, tuning.theory_params))
    pair = ((made.policy, tuned), (made.baseline.policy, textbook))

    def play(problem: Problem, runs: range) -> Runs:
        # Runs have their noise by their number: those that judge must not be those of the search.
        fresh = range(FRESH + runs.start, FRESH + runs.stop)
        return played(pair, problem, found.horizon, fresh, seed, jobs)

    paid = np.bincount(left.campaign, left.total, len(left.campaigns)) / left.lengths
    return Backtest(
        fit=found,
        tuning=tuning,
        campaigns=len(left.campaigns),
        logged=Estimate.of(paid),
        equal_arms_p=equal_arms_p(left),
        **judge.judge(play)._asdict(),
    )


def all_there_is(problem: Problem) -> Problem:
    """A fitted problem of which the search may play all campaigns: others judge, those that were left out."""
    return replace(problem, population=True) if isinstance(problem, Campaigns) else problem


def notes_on(found: Fit, alone: int) -> Iterator[str]:
    """The notes of a fit, and a sentence on campaigns with one arm."""
    yield from found.notes
    if alone:
        yield f"{alone} of the campaigns that were left out had one arm, and so nothing to choose: they do not judge"


def with_a_choice(logs: Logs) -> Logs:
    """Campaigns in which there was something to choose."""
    some = np.flatnonzero(logs.widths >= 2)
    if len(some) < 2:
        raise BadRequest("two campaigns with two arms or more must be left out to judge by, but there are not so many.")
    return logs.of(some)


def played(
    pair: Sequence[tuple[Policy, list[float]]],
    problem: Problem,
    horizon: int,
    runs: range,
    seed: int,
    jobs: int | None,
) -> Runs:
    """Runs of two policies, each with a row of parameters."""
    told: Any = {"horizon": horizon, "runs": len(runs), "first": runs.start, "seed": seed, "jobs": jobs}
    regrets = np.concatenate([simulate(policy, problem, [row], **told) for policy, row in pair])
    means = means_of(problem, seed, runs)
    return Runs(regrets, means.max(axis=1) - regrets / horizon, means)
