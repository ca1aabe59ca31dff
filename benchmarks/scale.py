"""What it is worth that a policy takes noise and prior from the problem.

`python benchmarks/scale.py priors` tunes Thompson sampling with Beta(1, 1) and with the problem's prior (two minutes);
`python benchmarks/scale.py rare` compares policies on 46 arms whose rate is 0.4% (ten minutes on one core).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import banditune as bt

PRIORS = ((3.36, 771), (1, 99), (2, 38), (5, 45), (20, 80), (2, 8))
RARE = bt.Bernoulli(arms=46, prior=(3.35722, 771.387))
HORIZON = 30_000


def priors() -> Iterator[str]:
    """Regrets of tuned Thompson sampling with the textbook's prior and with the problem's."""
    for prior in PRIORS:
        problem = bt.Bernoulli(arms=10, prior=prior)
        for policy in (bt.Thompson(prior=(1, 1)), bt.Thompson()):
            found = bt.tune(policy, problem, horizon=1000, budget=500, validate=1000, floor=False, jobs=1)
            yield f"means from Beta{prior}, {found.setup.policy}: {found.regret.mean:.2f} +- {found.regret.se:.2f}"


def rare() -> Iterator[str]:
    """Six policies with noise and prior of the problem, then `ucb1` and `ts` with the textbook's."""
    policies = [
        bt.UCB1(),
        bt.UCB1Step(),
        bt.Thompson(),
        bt.GaussianThompson(),
        bt.EpsilonGreedy(),
        bt.ExploreThenCommit(),
    ]
    usual = {"horizon": HORIZON, "budget": 500, "validate": 500, "floor": False, "jobs": 1}
    yield repr(bt.compare(policies, RARE, **usual))  # type: ignore[arg-type]
    yield repr(bt.compare([bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))], RARE, **usual))  # type: ignore[arg-type]


if __name__ == "__main__":
    for line in {"priors": priors, "rare": rare}[sys.argv[1]]():
        print(line, flush=True)
