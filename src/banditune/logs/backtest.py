"""Tuned on some past campaigns, judged on the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from banditune.checks import check_number, check_whole
from banditune.contracts import BadRequest, Floats, Policy, Problem, Tuner
from banditune.engine.run import BLOCK, instances
from banditune.logs.fit import fit
from banditune.logs.record import Logs
from banditune.problems import Campaigns
from banditune.results import Backtest, Estimate
from banditune.study import simulate, tune

RUNS, LEAST = 4000, 20
"""Runs on all held-out campaigns together, and on each at least."""


def backtest(
    policy: Policy,
    logs: Logs,
    model: str = "auto",
    *,
    per_arm: bool = False,
    share: float = 0.5,
    horizon: int | None = None,
    tuner: Tuner | None = None,
    budget: int = 1000,
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Backtest:
    """Fit a problem to a random `share` of past campaigns, tune the policy on it, and play it on the campaigns left out.

    A campaign that was left out is played as its own data have it: arms' means are drawn from what these say (where arms
    have features, from the problem fitted to all that were left out). What is reported are means over these campaigns,
    with the uncertainty that so few of them leave.
    """
    share = check_number("share", share, above=0)
    if not isinstance(logs, Logs) or len(logs.campaigns) < 4 or not share < 1:
        raise BadRequest(
            f"`0 < share < 1` and four campaigns or more must hold, but got share={share:g} and {logs!r}; without more "
            "campaigns, none can be left out."
        )
    order = np.random.default_rng([check_whole("seed", seed, 0), len(logs.campaigns)]).permutation(len(logs.campaigns))
    known = min(max(2, round(share * len(order))), len(order) - 2)
    found = fit(logs.of(order[:known]), model, per_arm=per_arm, horizon=horizon)
    tuning = tune(
        policy, found.problem, tuner, horizon=found.horizon, budget=budget, seed=seed, jobs=jobs, floor=False,
        progress=progress,
    )  # fmt: skip
    left = logs.of(order[known:])
    rows = [list(params.values()) for params in (tuning.params, tuning.theory_params)]
    regrets, best = np.transpose(
        [played(policy, problem, rows, found.horizon, runs, seed, jobs) for problem, runs in others(left, found.model)],
        (1, 2, 0),
    )
    rewards = best - regrets / found.horizon
    paid = np.bincount(left.campaign, left.total, len(left.campaigns)) / left.lengths
    return Backtest(
        found,
        tuning,
        len(left.campaigns),
        *map(Estimate.of, (regrets[0], regrets[1], regrets[1] - regrets[0])),
        *map(Estimate.of, (rewards[0], rewards[1], paid)),
    )


def others(logs: Logs, model: str) -> list[tuple[Problem, int]]:
    """A problem for each campaign that was left out, and how many runs to play on it."""
    runs = max(LEAST, math.ceil(RUNS / len(logs.campaigns)))
    if logs.features is not None:
        problem = fit(logs, model).problem
        return [(problem, runs)] * len(logs.campaigns)
    again = fit(logs, "campaigns").problem
    return [(Campaigns([row], again.rewards, noise=again.noise), runs) for row in again.posteriors]


def played(
    policy: Policy, problem: Problem, rows: Any, horizon: int, runs: int, seed: int, jobs: int | None
) -> tuple[Floats, Floats]:
    """Mean regrets of rows of parameters on a problem, and the mean of its best arm, as often."""
    regrets = simulate(policy, problem, rows, horizon=horizon, runs=runs, seed=seed, jobs=jobs)
    means = np.concatenate([instances(problem, seed, block).means for block in range(-(-runs // BLOCK))])
    best = means[:runs].max(axis=1).mean()
    return regrets.mean(axis=1), np.full(len(rows), best)
