"""The paper's ten rows as data: which policy on which problem, and about what it costs to play them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from banditune.contracts import BadRequest, Policy, Problem, Range
from banditune.engine.run import Job
from banditune.policies import GLMTSL, UCB1, UCBGLM, LinTS, LinUCB, Thompson
from banditune.problems import Bernoulli, BetaRewards, Linear, Logistic, warm_up

HORIZON = 10_000


@dataclass(frozen=True)
class Row:
    """A policy on a problem; `best` is about the width that loses least.

    `cpu` and `gpu` are microseconds that a run at one width takes, on one core and on an H200, with own noise and realised
    regret, over all widths. They weigh rows against each other until one is measured.
    """

    name: str
    policy: Policy
    problem: Problem
    horizon: int
    best: float = math.nan
    cpu: float = math.nan
    gpu: float = math.nan

    def job(self, **options: Any) -> Job:
        """The job that plays this row."""
        return Job(self.policy, self.problem, self.horizon, **options)


LINEAR, LOGISTIC = Linear(arms=100, dims=10), Logistic(arms=100, dims=10)
PAPER = (
    Row("warm-up ucb1", UCB1(noise=0.5), warm_up(), 200, 0.30, 2, 0.03),
    Row("warm-up ts", Thompson(prior=(1, 1)), warm_up(), 200, 0.57, 11, 0.17),
    Row("bernoulli ucb1", UCB1(noise=0.5), Bernoulli(arms=10), HORIZON, 0.22, 34, 0.2),
    Row("bernoulli ts", Thompson(prior=(1, 1)), Bernoulli(arms=10), HORIZON, 0.70, 140, 3.1),
    Row("beta ucb1", UCB1(noise=0.5), BetaRewards(arms=10), HORIZON, 0.11, 2400, 6.0),
    Row("beta ts", Thompson(prior=(1, 1)), BetaRewards(arms=10), HORIZON, 0.70, 1100, 13),
    Row("linear linucb", LinUCB(prior=(0, 1), noise=0.5), LINEAR, HORIZON, 0.25, 520, 4.7),
    Row("linear lints", LinTS(prior=(0, 1), noise=0.5), LINEAR, HORIZON, 0.24, 1700, 17),
    Row("logistic ucb-glm", UCBGLM(prior=(0, 1), noise=0.5), LOGISTIC, HORIZON, 0.35, 6200, 9.7),
    Row("logistic glm-tsl", GLMTSL(prior=(0, 1)), LOGISTIC, HORIZON, 0.19, 11_000, 49),
)
"""The paper's ten rows."""

GITTINS = "warm-up gittins"
"""The name of the gray line in the paper's first figure, which is one number."""


def range_of(row: Row) -> Range:
    """What is tuned in a row."""
    (parameter,) = row.policy.parameters
    among: Range = parameter.within(row.problem.arms, row.horizon)
    return among


def chosen(only: str | None) -> list[str]:
    """Names of the rows that contain one of a few words, parted by commas; all without words."""
    names = [*(row.name for row in PAPER), GITTINS]
    if only is None:
        return names
    words = [word.strip() for word in only.split(",")]
    for word in words:
        if not any(word in name for name in names) or not word:
            raise BadRequest(f"`only` must hold parts of the names {', '.join(names)}, but got {word!r}.")
    return [name for name in names if any(word in name for word in words)]
