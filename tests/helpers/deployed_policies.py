"""Deployed policies and problem instances to run them on."""

from __future__ import annotations

import numpy as np

import banditune as bt
from banditune.core.problem import Instance
from banditune.core.streams import REWARD_STREAM, Stream, seek
from banditune.registry import collect_policies
from banditune.simulation.instances import draw_instances
from banditune.simulation.loop import compute_instance_key
from banditune.study.options_from_problem import resolve_policy_options

DEPLOYABLE_POLICIES = [name for name in collect_policies() if name not in ("optimal-mixture", "ucb-v")]
"""All policies of the package except two, whose memory is not a function of pulls and totals."""


def make_matching_problem(policy, arms=5, dims=3):
    """A problem with the rewards that a policy can learn from."""
    if policy.needs_features:
        return (bt.Linear if policy.rewards == "real" else bt.Logistic)(arms=arms, dims=dims)
    if policy.rewards == "binary":
        return bt.Bernoulli(arms=2)
    return bt.Gaussian(arms=arms) if policy.prior_kind == "normal" else bt.BetaRewards(arms=arms)


def make_policy(name):
    """A policy of the package, with noise and prior of its problem."""
    policy = collect_policies()[name]()
    return resolve_policy_options(policy, make_matching_problem(policy)).policy


def choose_value(policy):
    """Parameter values at which the policy explores and exploits."""
    if len(policy.parameters) > 1:
        return [parameter.textbook for parameter in policy.parameters]
    return {"gamma": 0.3, "epsilon": 0.2, "pulls": 3}[policy.parameters[0].name] if policy.parameters else None


class SimulatedArms:
    """Instance 0 of a problem. It pays what it pays in run 0 of a simulation with the same seed."""

    def __init__(self, problem, seed):
        instances = draw_instances(problem, seed, 0)
        self.problem = problem
        self.means = instances.means[0]
        self.features = instances.features[0].T if problem.dims else None
        self.stream = Stream(*compute_instance_key(seed, 0), np.array([0, 0, 0, REWARD_STREAM]))
        self.pulls = np.zeros(problem.arms, np.int64)
        self.steps = 0

    def pull(self, arm):
        """The reward of the next pull of an arm."""
        pull_number = int(self.pulls[arm])
        seek(self.stream, arm, pull_number)
        instance = Instance(self.means, np.array(self.problem.options(), float))
        reward = self.problem.reward(instance, arm, pull_number, self.steps, self.stream)
        self.pulls[arm] += 1
        self.steps += 1
        return reward


def deploy_on(policy, arms_of_instance, horizon, seed=0, **settings):
    """A policy deployed on the arms of an instance."""
    arms = None if arms_of_instance.features is not None else arms_of_instance.problem.arms
    return bt.deploy(
        policy,
        choose_value(policy),
        horizon=horizon,
        arms=arms,
        features=arms_of_instance.features,
        seed=seed,
        **settings,
    )
