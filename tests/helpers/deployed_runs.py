"""Runs of deployed policies, compared with simulated runs."""

from __future__ import annotations

from copy import deepcopy

import numpy as np
import pytest

import banditune as bt
from helpers.deployed import Nature, deployed, policy_called, problem_for, value_for


def played(live, nature, steps):
    """The arms of so many steps, each rewarded at once."""
    arms = []
    for _ in range(steps):
        arms.append(live.select_arm())
        live.update(arms[-1], nature.pay(arms[-1]))
    return arms


def simulated_gaps(policy, problem, seed, horizon):
    """What each step of run 0 lost, by the engine's plain loop."""
    value = value_for(policy)
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


def agrees_step_by_step(name, seed, horizon):
    """Whether live and simulated runs pull the same arms: all gaps of an instance are different."""
    policy = policy_called(name)
    nature = Nature(problem_for(policy), seed)
    arms = played(deployed(policy, nature, horizon, seed), nature, horizon)
    gaps = nature.means.max() - nature.means
    assert np.diff(np.sort(gaps)).min() > 1e-6
    return np.allclose(gaps[arms], simulated_gaps(policy, nature.problem, seed, horizon), rtol=0, atol=1e-9)


def goes_on_alike(name, seed):
    """Whether a policy that is saved and loaded goes on as it would have, and as its twin that was not saved."""
    policy = policy_called(name)
    natures = [Nature(problem_for(policy), seed) for _ in range(2)]
    live, twin = (deployed(policy, nature, 60, seed) for nature in natures)
    assert played(live, natures[0], 12) == played(twin, natures[1], 12)
    again = bt.DeployedPolicy.from_json(live.to_json(), policy)
    assert again.state == live.state
    later = deepcopy(natures[0])
    return played(live, natures[0], 6) == played(twin, natures[1], 6) == played(again, later, 6)


def arms_come_and_go(name):
    """Whether only arms that are there are selected, and a state survives JSON."""
    policy = policy_called(name)
    nature = Nature(problem_for(policy), 2)
    live = deployed(policy, nature, 100, 2)
    played(live, nature, 10)
    if name == "optimal":  # for two arms only
        with pytest.raises(bt.InvalidRequest, match="arms = 2"):
            live.add_arm("new")
        return live.arms == (0, 1)
    live.add_arm("new", () if nature.features is None else nature.features[0] + 0.1)
    live.retire_arm(0)
    live.update(0, 1.0)
    selected = set(live.select_arms(8))
    assert selected <= set(live.arms)
    assert 0 not in live.arms
    return bt.DeployedPolicy.from_json(live.to_json(), policy).state == live.state


def of(policy=None, value=0.3, arms=4, **told):
    """A deployed policy, UCB1 unless told otherwise."""
    return bt.deploy(policy or bt.UCB1(noise=0.5), value, **({"horizon": 1000, "arms": arms} | told))
