"""What the benchmarks play: the paper's ten rows, and problems beyond them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import banditune as bt
from banditune.engine import run

HORIZON = 10_000


@dataclass(frozen=True)
class Row:
    """A policy on a problem; `best` is about the width that loses least."""

    name: str
    policy: Any
    problem: Any
    horizon: int
    best: float = math.nan

    def job(self, **options: Any) -> run.Job:
        """The job that plays this row."""
        return run.Job(self.policy, self.problem, self.horizon, **options)


LINEAR, LOGISTIC = bt.Linear(arms=100, dims=10), bt.Logistic(arms=100, dims=10)
PAPER = (
    Row("warm-up ucb1", bt.UCB1(), bt.warm_up(), 200, 0.30),
    Row("warm-up ts", bt.Thompson(), bt.warm_up(), 200, 0.57),
    Row("bernoulli ucb1", bt.UCB1(), bt.Bernoulli(arms=10), HORIZON, 0.22),
    Row("bernoulli ts", bt.Thompson(), bt.Bernoulli(arms=10), HORIZON, 0.70),
    Row("beta ucb1", bt.UCB1(), bt.BetaRewards(arms=10), HORIZON, 0.11),
    Row("beta ts", bt.Thompson(), bt.BetaRewards(arms=10), HORIZON, 0.70),
    Row("linear linucb", bt.LinUCB(), LINEAR, HORIZON, 0.25),
    Row("linear lints", bt.LinTS(), LINEAR, HORIZON, 0.24),
    Row("logistic ucb-glm", bt.UCBGLM(), LOGISTIC, HORIZON, 0.35),
    Row("logistic glm-tsl", bt.GLMTSL(), LOGISTIC, HORIZON, 0.19),
)
"""The paper's ten rows."""

CHOSEN_ON = (
    Row("gaussian-ts", bt.GaussianThompson(), bt.Gaussian(arms=10), 1000),
    Row("rare successes ucb1", bt.UCB1(), bt.Bernoulli(arms=10, prior=(1, 9)), HORIZON),
    Row("3 arms ts", bt.Thompson(), bt.Bernoulli(arms=3), HORIZON),
    Row("50 arms ucb1", bt.UCB1(), bt.Bernoulli(arms=50), 2000),
    Row("short ts", bt.Thompson(), bt.Bernoulli(arms=10), 200),
    Row("epsilon-greedy", bt.EpsilonGreedy(), bt.Bernoulli(arms=10), 2000),
)
"""Problems beyond the paper's on which choices may be made."""

HELD_OUT = (
    Row("gaussian ucb1", bt.UCB1(), bt.Gaussian(arms=10, prior=(0.5, 0.2), noise=0.5), 1000),
    Row("frequent successes ts", bt.Thompson(), bt.Bernoulli(arms=10, prior=(9, 1)), HORIZON),
    Row("3 arms ucb1", bt.UCB1(), bt.Bernoulli(arms=3), HORIZON),
    Row("50 arms ts", bt.Thompson(), bt.Bernoulli(arms=50), 2000),
    Row("long ucb1", bt.UCB1(), bt.Bernoulli(arms=10), 100_000),
    Row("explore-then-commit", bt.ExploreThenCommit(), bt.Bernoulli(arms=10), HORIZON),
)
"""Problems beyond the paper's that are looked at once, when all choices are made."""
