"""What the benchmarks play: the paper's ten rows, and problems beyond them."""

from __future__ import annotations

import banditune as bt
from banditune.paper.rows import HORIZON, PAPER, Row

__all__ = ["CHOSEN_ON", "HELD_OUT", "PAPER", "Row"]

TWO_ARMS = (
    Row("2 arms ucb1 3000", bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), 3000),
    Row("2 arms ucb1 10000", bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), HORIZON),
    Row("2 arms ucb1 30000", bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), 30_000),
)
"""Problems on which good runs scatter far above their mean: what is said there was once wrong in most tunings."""

NOISY = (
    Row("noise 5 ucb1", bt.UCB1(noise=0.5), bt.Gaussian(arms=4, noise=5), 200),
    Row("noise 10 ucb1", bt.UCB1(noise=0.5), bt.Gaussian(arms=4, noise=10), 200),
)
"""Rewards far noisier than the policy takes them to be: every width is too small, the largest one is best, and runs scatter
as much as they lose."""

CHOSEN_ON = (
    Row("gaussian-ts", bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=10), 1000),
    Row("rare successes ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=10, prior=(1, 9)), HORIZON),
    Row("3 arms ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3), HORIZON),
    Row("50 arms ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=50), 2000),
    Row("short ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=10), 200),
    Row("epsilon-greedy", bt.EpsilonGreedy(), bt.Bernoulli(arms=10), 2000),
    *TWO_ARMS,
    *NOISY,
    Row("gaussian ucb1", bt.UCB1(noise=0.5), bt.Gaussian(arms=10, prior=(0.5, 0.2), noise=0.5), 1000),
    Row("frequent successes ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=10, prior=(9, 1)), HORIZON),
    Row("3 arms ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), HORIZON),
    Row("50 arms ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=50), 2000),
    Row("long ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), 100_000),
    Row("explore-then-commit", bt.ExploreThenCommit(), bt.Bernoulli(arms=10), HORIZON),
    Row("3 arms explore-then-commit", bt.ExploreThenCommit(), bt.Bernoulli(arms=3), 2000),
    Row("5 gaussian arms ts", bt.GaussianThompson((0.5, 0.3), 0.5), bt.Gaussian(5, (0.5, 0.3), 0.5), 2000),
    Row("20 gaussian arms ucb1", bt.UCB1(noise=0.5), bt.Gaussian(20, (0, 0.3), 0.5), 1000),
    Row("beta(2, 6) ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=8, prior=(2, 6)), 3000),
    Row("beta(6, 2) ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=8, prior=(6, 2)), 3000),
    Row("4 arms ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=4), 2000),
    Row("30 arms ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=30), 5000),
    Row("short ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=5), 100),
    Row("long ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=5), 30_000),
    Row("4 arms epsilon-greedy", bt.EpsilonGreedy(), bt.Bernoulli(arms=4), 1000),
    Row("6 arms explore-then-commit", bt.ExploreThenCommit(), bt.Bernoulli(arms=6), 1000),
    Row("gaussian explore-then-commit", bt.ExploreThenCommit(), bt.Gaussian(4, (0.5, 0.3), 0.5), 3000),
)
"""Problems beyond the paper's on which choices were made."""

HELD_OUT = (
    Row("8 gaussian arms ts", bt.GaussianThompson((0, 1), 1), bt.Gaussian(8, (0, 1), 1), 500),
    Row("3 gaussian arms ucb1", bt.UCB1(noise=0.5), bt.Gaussian(3, (0.5, 0.25), 0.5), 2000),
    Row("beta(1, 4) ts", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=12, prior=(1, 4)), 5000),
    Row("beta(5, 2) ucb1", bt.UCB1(noise=0.5), bt.Bernoulli(arms=6, prior=(5, 2)), 2000),
    Row("3 arms ts 500", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3), 500),
    Row("50 arms ucb1 20000", bt.UCB1(noise=0.5), bt.Bernoulli(arms=50), 20_000),
    Row("8 arms ucb1 150", bt.UCB1(noise=0.5), bt.Bernoulli(arms=8), 150),
    Row("15 arms epsilon-greedy", bt.EpsilonGreedy(), bt.Bernoulli(arms=15, prior=(2, 2)), 3000),
    Row("20 arms explore-then-commit", bt.ExploreThenCommit(), bt.Bernoulli(arms=20), 5000),
    Row("5 dims lints", bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=30, dims=5), 2000),
)
"""Problems beyond the paper's that were looked at once, when all constants of the tuner had been chosen."""
