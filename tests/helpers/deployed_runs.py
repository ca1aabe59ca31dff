"""Runs of deployed policies, compared with simulated runs."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

import banditune as bt
from helpers.deployed_policies import SimulatedArms, choose_value, deploy_on, make_matching_problem, make_policy


def run_steps(deployed, simulated, steps):
    """The arms of the next steps. Each is rewarded at once."""
    arms = []
    for _ in range(steps):
        arms.append(deployed.select_arm())
        deployed.update(arms[-1], simulated.pull(arms[-1]))
    return arms


def simulate_gaps(policy, problem, seed, horizon):
    """The regret of each step of run 0, by the plain loop."""
    value = choose_value(policy)
    regrets = bt.simulate(
        policy,
        problem,
        [0.0 if value is None else value],
        horizon=horizon,
        runs=1,
        seed=seed,
        checkpoints=list(range(1, horizon + 1)),
        simulation=bt.Simulation(shortcuts=False),
    )
    return np.diff(regrets[0, 0], prepend=0.0)


def agrees_with_simulation(name, seed, horizon):
    """Whether a deployed policy pulls the arms of the simulated one. All gaps of an instance differ."""
    policy = make_policy(name)
    simulated = SimulatedArms(make_matching_problem(policy), seed)
    arms = run_steps(deploy_on(policy, simulated, horizon, seed), simulated, horizon)
    gaps = simulated.means.max() - simulated.means
    assert np.diff(np.sort(gaps)).min() > 1e-6
    return np.allclose(gaps[arms], simulate_gaps(policy, simulated.problem, seed, horizon), rtol=0, atol=1e-9)


def continues_after_loading(name, seed):
    """Whether a policy that was saved and loaded pulls the same arms as one that was not."""
    policy = make_policy(name)
    simulated_arms = [SimulatedArms(make_matching_problem(policy), seed) for _ in range(2)]
    deployed, unsaved = (deploy_on(policy, simulated, 60, seed) for simulated in simulated_arms)
    assert run_steps(deployed, simulated_arms[0], 12) == run_steps(unsaved, simulated_arms[1], 12)
    loaded = bt.DeployedPolicy.from_json(deployed.to_json(), policy)
    assert loaded.state == deployed.state
    simulated_for_loaded = deepcopy(simulated_arms[0])
    arms = run_steps(deployed, simulated_arms[0], 6)
    return arms == run_steps(unsaved, simulated_arms[1], 6) == run_steps(loaded, simulated_for_loaded, 6)


def follows_arm_changes(name):
    """Whether only active arms are selected, and a state is the same after JSON."""
    policy = make_policy(name)
    simulated = SimulatedArms(make_matching_problem(policy), 2)
    deployed = deploy_on(policy, simulated, 100, 2)
    run_steps(deployed, simulated, 10)
    if name == "optimal":  # for two arms only
        with pytest.raises(bt.InvalidRequest, match="arms = 2"):
            deployed.add_arm("new")
        return deployed.arms == (0, 1)
    deployed.add_arm("new", () if simulated.features is None else simulated.features[0] + 0.1)
    deployed.retire_arm(0)
    deployed.update(0, 1.0)
    selected = set(deployed.select_arms(8))
    assert selected <= set(deployed.arms)
    assert 0 not in deployed.arms
    return bt.DeployedPolicy.from_json(deployed.to_json(), policy).state == deployed.state


def deploy_policy(policy=None, value=0.3, arms=4, **settings):
    """A deployed policy, UCB1 unless another is given."""
    return bt.deploy(policy or bt.UCB1(noise=0.5), value, **({"horizon": 1000, "arms": arms} | settings))
