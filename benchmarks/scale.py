"""The gain of a policy if its noise and its prior are taken from the problem.

python benchmarks/scale.py priors       # Thompson sampling with Beta(1, 1) and with the problem's prior: a minute
python benchmarks/scale.py theta        # the same for linear policies and priors of theta
python benchmarks/scale.py rare         # policies on 46 arms with a rate of 0.4%, three seeds: four minutes on 16 cores
python benchmarks/scale.py rare 50      # a quick look with 50 runs
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import banditune as bt

PRIORS = ((3.36, 771), (1, 99), (2, 38), (5, 45), (20, 80), (2, 8))
RARE = bt.Bernoulli(arms=46, prior=(3.35722, 771.387))
HORIZON = 30_000


def compare_priors(runs: int) -> Iterator[str]:
    """Regrets of tuned Thompson sampling with the textbook's prior and with the problem's."""
    for prior in PRIORS:
        problem = bt.Bernoulli(arms=10, prior=prior)
        for policy in (bt.Thompson(prior=(1, 1)), bt.Thompson()):
            tuning = bt.tune(
                policy,
                problem,
                horizon=1000,
                budget=runs,
                include=("no_lower_bound",),
                search=bt.Search(validate=4 * runs),
            )
            yield f"means from Beta{prior}, {tuning.setup.policy}: {tuning.regret.mean:.2f} +- {tuning.regret.se:.2f}"


def compare_theta_priors(runs: int) -> Iterator[str]:
    """Regrets of tuned linear policies with a prior N(0, I) of theta and with the problem's, which is wider."""
    for noise, variance in ((5, 25), (5, 100), (1, 100), (0.5, 400)):
        problem = bt.Linear(arms=20, dims=5, prior=(0, variance), noise=noise)
        for make in (bt.LinUCB, bt.LinTS):
            for policy in (make(prior=(0, 1)), make()):
                tuning = bt.tune(
                    policy,
                    problem,
                    horizon=500,
                    budget=runs,
                    include=("no_lower_bound",),
                    search=bt.Search(validate=2 * runs),
                )
                yield f"noise {noise}, variance {variance}, {tuning.setup.policy}: {tuning.regret}"


def compare_rare(runs: int) -> Iterator[str]:
    """Six policies with noise and prior of the problem, and the two that have other numbers in textbooks."""
    own = [
        bt.UCB1(),
        bt.policies.UCB1Step(),
        bt.Thompson(),
        bt.GaussianThompson(),
        bt.EpsilonGreedy(),
        bt.ExploreThenCommit(),
    ]
    textbook = [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))]
    for seed in range(3):
        for policies in (own, [*textbook, *own[3:]]):
            yield repr(
                bt.compare(
                    policies,
                    RARE,
                    horizon=HORIZON,
                    budget=runs,
                    seed=seed,
                    include=("no_lower_bound",),
                    search=bt.Search(validate=runs),
                )
            )


if __name__ == "__main__":
    runs = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    for line in {"priors": compare_priors, "theta": compare_theta_priors, "rare": compare_rare}[sys.argv[1]](runs):
        print(line, flush=True)
