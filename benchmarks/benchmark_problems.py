"""The problems of several benchmarks: the paper's ten rows and others. This module only defines them."""

from __future__ import annotations

import banditune as bt
from banditune.paper.paper_rows import (
    PAPER_HORIZON,
    PAPER_ROWS,
    PaperRow,
)

__all__ = ["CHOSEN_ON", "HELD_OUT", "PAPER_ROWS", "PaperRow"]

TWO_ARMS = (
    PaperRow("2 arms ucb1 3000", bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), 3000),
    PaperRow("2 arms ucb1 10000", bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), PAPER_HORIZON),
    PaperRow("2 arms ucb1 30000", bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), 30_000),
)
"""Problems on which good runs scatter far above their mean: what is said there was once wrong in most tunings."""

NOISY = (
    PaperRow("noise 5 ucb1", bt.UCB1(noise=0.5), bt.Gaussian(arms=4, noise=5), 200),
    PaperRow("noise 10 ucb1", bt.UCB1(noise=0.5), bt.Gaussian(arms=4, noise=10), 200),
)
"""Rewards far noisier than the policy takes them to be: every width is too small, the largest one is best, and runs scatter
as much as they lose."""

CHOSEN_ON = (
    PaperRow("gaussian-ts", bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=10), 1000),
    PaperRow("rare successes ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=10, prior=(1, 9)), PAPER_HORIZON),
    PaperRow("3 arms ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3), PAPER_HORIZON),
    PaperRow("50 arms ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=50), 2000),
    PaperRow("short ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=10), 200),
    PaperRow("epsilon-greedy", bt.EpsilonGreedy(), bt.Bernoulli(arms=10), 2000),
    *TWO_ARMS,
    *NOISY,
    PaperRow("gaussian ucb1", bt.UCB1(noise=0.5), bt.Gaussian(arms=10, prior=(0.5, 0.2), noise=0.5), 1000),
    PaperRow("frequent successes ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=10, prior=(9, 1)), PAPER_HORIZON),
    PaperRow("3 arms ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), PAPER_HORIZON),
    PaperRow("50 arms ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=50), 2000),
    PaperRow("long ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), 100_000),
    PaperRow("explore-then-commit", bt.ExploreThenCommit(), bt.Bernoulli(arms=10), PAPER_HORIZON),
    PaperRow("3 arms explore-then-commit", bt.ExploreThenCommit(), bt.Bernoulli(arms=3), 2000),
    PaperRow("5 gaussian arms ts", bt.GaussianThompson((0.5, 0.3), 0.5), bt.Gaussian(5, (0.5, 0.3), 0.5), 2000),
    PaperRow("20 gaussian arms ucb1", bt.UCB1(noise=0.5), bt.Gaussian(20, (0, 0.3), 0.5), 1000),
    PaperRow("beta(2, 6) ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=8, prior=(2, 6)), 3000),
    PaperRow("beta(6, 2) ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=8, prior=(6, 2)), 3000),
    PaperRow("4 arms ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=4), 2000),
    PaperRow("30 arms ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=30), 5000),
    PaperRow("short ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=5), 100),
    PaperRow("long ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=5), 30_000),
    PaperRow("4 arms epsilon-greedy", bt.EpsilonGreedy(), bt.Bernoulli(arms=4), 1000),
    PaperRow("6 arms explore-then-commit", bt.ExploreThenCommit(), bt.Bernoulli(arms=6), 1000),
    PaperRow("gaussian explore-then-commit", bt.ExploreThenCommit(), bt.Gaussian(4, (0.5, 0.3), 0.5), 3000),
)
"""Problems beyond the paper's on which choices were made."""

HELD_OUT = (
    PaperRow("8 gaussian arms ts", bt.GaussianThompson((0, 1), 1), bt.Gaussian(8, (0, 1), 1), 500),
    PaperRow("3 gaussian arms ucb1", bt.UCB1(noise=0.5), bt.Gaussian(3, (0.5, 0.25), 0.5), 2000),
    PaperRow("beta(1, 4) ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=12, prior=(1, 4)), 5000),
    PaperRow("beta(5, 2) ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=6, prior=(5, 2)), 2000),
    PaperRow("3 arms ts 500", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3), 500),
    PaperRow("50 arms ucb1 20000", bt.UCB1(noise=0.5), bt.Bernoulli(arms=50), 20_000),
    PaperRow("8 arms ucb1 150", bt.UCB1(noise=0.5), bt.Bernoulli(arms=8), 150),
    PaperRow("15 arms epsilon-greedy", bt.EpsilonGreedy(), bt.Bernoulli(arms=15, prior=(2, 2)), 3000),
    PaperRow("20 arms explore-then-commit", bt.ExploreThenCommit(), bt.Bernoulli(arms=20), 5000),
    PaperRow("5 dims lints", bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=30, dims=5), 2000),
)
"""Problems beyond the paper's that were looked at once, when all constants of the tuner had been chosen."""
