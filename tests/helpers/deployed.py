"""Deployed policies and problems to play them on."""

from __future__ import annotations

import numpy as np

import banditune as bt
from banditune.core.problem import Instance
from banditune.core.streams import REWARD_STREAM, Stream, seek
from banditune.registry import collect_policies
from banditune.simulation.instances import draw_instances
from banditune.simulation.loop import compute_instance_key
from banditune.study.options_from_problem import resolve_policy_options

DEPLOYABLE = [name for name in collect_policies() if name not in ("optimal-mixture", "ucb-v")]
"""All on the shelf but for one that walks from belief to belief, pull by pull."""


def problem_for(policy, arms=5, dims=3):
    """A problem with the rewards that a policy can learn from."""
    if policy.needs_features:
        return (bt.Linear if policy.rewards == "real" else bt.Logistic)(arms=arms, dims=dims)
    if policy.rewards == "binary":
        return bt.Bernoulli(arms=2)
    return bt.Gaussian(arms=arms) if policy.name == "gaussian-ts" else bt.BetaRewards(arms=arms)


def policy_called(name):
    """A policy of the shelf, with noise and prior of its problem."""
    policy = collect_policies()[name]()
    return resolve_policy_options(policy, problem_for(policy)).policy


def value_for(policy):
    """A parameter value at which the policy explores and exploits."""
    return {"gamma": 0.3, "epsilon": 0.2, "pulls": 3}[policy.parameters[0].name] if policy.parameters else None


class Nature:
    """Instance 0 of a problem: pays what it pays in run 0 of a simulation with the same seed."""

    def __init__(self, problem, seed):
        instances = draw_instances(problem, seed, 0)
        self.problem = problem
        self.means = instances.means[0]
        self.features = instances.features[0].T if problem.dims else None
        self.stream = Stream(*compute_instance_key(seed, 0), np.array([0, 0, 0, REWARD_STREAM]))
        self.pulls = np.zeros(problem.arms, np.int64)
        self.steps = 0

    def pay(self, arm):
        """The reward of the next pull of an arm."""
        pull = int(self.pulls[arm])
        seek(self.stream, arm, pull)
        instance = Instance(self.means, np.array(self.problem.options(), float))
        paid = self.problem.reward(instance, arm, pull, self.steps, self.stream)
        self.pulls[arm] += 1
        self.steps += 1
        return paid


def deployed(policy, nature, horizon, seed=0, **told):
    """A policy at work on an instance."""
    arms = None if nature.features is not None else nature.problem.arms
    return bt.deploy(policy, value_for(policy), horizon=horizon, arms=arms, features=nature.features, seed=seed, **told)
