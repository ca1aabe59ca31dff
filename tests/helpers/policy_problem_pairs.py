"""Every policy on every problem that it can be simulated on, with small problems."""

from __future__ import annotations

import numpy as np

import banditune as bt
from banditune.registry import collect_policies
from banditune.simulation.spec import SimulationSpec
from banditune.study.requests import build_spec

SMALL_PROBLEMS = {
    "bernoulli": lambda: bt.Bernoulli(arms=4, prior=(2, 5)),
    "beta": lambda: bt.BetaRewards(arms=4, v=3),
    "campaigns": lambda: bt.Campaigns([[(2, 5), (3, 3), (1, 9)], [(20, 5), (3, 30), (1, 1)]]),
    "gaussian": lambda: bt.Gaussian(arms=4, prior=(1, 2), noise=0.7),
    "linear": lambda: bt.Linear(arms=5, dims=3, noise=0.4),
    "logistic": lambda: bt.Logistic(arms=5, dims=3),
    "mixture": lambda: bt.Mixture([(0.1, 0.5, 0.4), (1.0, 0.0, 0.9)], weights=(1, 2)),
    "reward-table": lambda: bt.RewardTable(np.random.default_rng(0).random((5, 300, 4))),
    "warm-up": bt.problems.two_point_mixture,
}


POLICIES = collect_policies()


def can_simulate(policy: str, problem: str) -> bool:
    """Whether a policy takes a problem."""
    try:
        build_spec(POLICIES[policy](), SMALL_PROBLEMS[problem](), horizon=200)
    except bt.InvalidRequest:
        return False
    return True


PAIRS = [(policy, problem) for policy in POLICIES for problem in SMALL_PROBLEMS if can_simulate(policy, problem)]


def list_values(spec: SimulationSpec) -> np.ndarray:
    """The textbook values, and two others of the first parameter."""
    ranges = [p.resolve(spec.problem.arms, spec.horizon) for p in spec.policy.parameters]
    if not ranges:
        return np.array([[0.0]])
    others = [search_range.textbook for search_range in ranges[1:]]
    firsts = (ranges[0].textbook, ranges[0].scale_from_unit(0.15), ranges[0].scale_from_unit(0.0))
    return np.array([[first, *others] for first in firsts])
