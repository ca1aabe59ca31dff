"""Tuned on some past campaigns, judged on the others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from banditune.checks import check_number, check_whole
from banditune.contracts import BadRequest, Floats, Policy, Problem, Tuner
from banditune.engine.run import BLOCK, instances
from banditune.logs.fit import fit, noise_to_tell
from banditune.logs.record import Logs
from banditune.results import Backtest, Estimate, Fit
from banditune.study import simulate, tune
from banditune.study.door import job_of

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
    with the uncertainty that so few of them leave (with features: over instances of the problem fitted to them).
    """
    if not isinstance(policy, Policy) or not isinstance(logs, Logs):
        raise BadRequest(
            "`policy` must be a policy and `logs` past logs (banditune.Logs), in this order, but got "
            f"{type(policy).__name__} and {type(logs).__name__}."
        )
    share = check_number("share", share, above=0)
    if len(logs.campaigns) < 4 or not share < 1:
        raise BadRequest(
            f"`0 < share < 1` and four campaigns or more must hold, but got share={share:g} and {logs!r}; without more "
            "campaigns, none can be left out."
        )
    order = np.random.default_rng([check_whole("seed", seed, 0), len(logs.campaigns)]).permutation(len(logs.campaigns))
    known = min(max(2, round(share * len(order))), len(order) - 2)
    found = fit(logs.of(order[:known]), model, per_arm=per_arm, horizon=horizon)
    left = with_a_choice(logs.of(order[known:]))
    found = replace(found, notes=tuple(notes_on(policy, found, len(order) - known - len(left.campaigns))))
    problems = others(left, found.model)
    job_of(policy, problems[0], horizon=found.horizon)  # complaints come before the work
    tuning = tune(
        policy, found.problem, tuner, horizon=found.horizon, budget=budget, seed=seed, jobs=jobs, floor=False,
        progress=progress,
    )  # fmt: skip
    rows = [list(params.values()) for params in (tuning.params, tuning.theory_params)]
    runs = max(LEAST, math.ceil(RUNS / len(problems)))
    # Every campaign is played with instances and noise of its own: what they shared, no spread among them would show.
    each = [
        played(policy, problem, rows, found.horizon, range(number * runs, (number + 1) * runs), seed, jobs)
        for number, problem in enumerate(problems)
    ]
    # With a problem for each campaign, what is certain is limited by how many there are.
    both = [np.mean(part, axis=-1, keepdims=True) if len(problems) > 1 else part for one in each for part in one]
    regrets, best = np.concatenate(both[::2], axis=1), np.concatenate(both[1::2], axis=1)
    rewards = best - regrets / found.horizon
    paid = np.bincount(left.campaign, left.total, len(left.campaigns)) / left.lengths
    return Backtest(
        found,
        tuning,
        len(left.campaigns),
        *map(Estimate.of, (regrets[0], regrets[1], regrets[1] - regrets[0])),
        *map(Estimate.of, (rewards[0], rewards[1], paid)),
    )


def notes_on(policy: Policy, found: Fit, alone: int) -> Iterator[str]:
    """The notes of a fit, less what this policy knows, and a sentence on campaigns with one arm."""
    # Where a policy has a noise that is far from the rewards', the tuning warns of it.
    known = noise_to_tell(found.problem) if hasattr(policy, "noise") else ()
    yield from (note for note in found.notes if note not in known)
    if alone:
        yield f"{alone} of the campaigns that were left out had one arm, and so nothing to choose: they do not judge"


def with_a_choice(logs: Logs) -> Logs:
    """Campaigns in which there was something to choose."""
    some = np.flatnonzero(logs.widths >= 2)
    if len(some) < 2:
        raise BadRequest("two campaigns with two arms or more must be left out to judge by, but there are not so many.")
    return logs.of(some)


def others(logs: Logs, model: str) -> list[Problem]:
    """A problem for each campaign that was left out; where arms have features, one that is fitted to all of them."""
    if logs.features is not None:
        return [fit(logs, model).problem]
    again = fit(logs, "campaigns", arms=2).problem
    return [replace(again, posteriors=(row,), arms=None) for row in again.posteriors]


def played(
    policy: Policy, problem: Problem, rows: Any, horizon: int, runs: range, seed: int, jobs: int | None
) -> tuple[Floats, Floats]:
    """Regrets (rows, runs) of rows of parameters on a problem, and the best arms' means of the same instances (1, runs)."""
    regrets = simulate(policy, problem, rows, horizon=horizon, runs=len(runs), first=runs.start, seed=seed, jobs=jobs)
    blocks = range(runs.start // BLOCK, -(-runs.stop // BLOCK))
    means = np.concatenate([instances(problem, seed, block).means for block in blocks])
    before = runs.start - blocks.start * BLOCK
    return regrets, means[None, before : before + len(runs)].max(axis=2)
