"""A deployed policy takes the steps of a simulated one."""

from __future__ import annotations

import time

import pytest

import banditune as bt
from helpers.deployed_policies import DEPLOYABLE_POLICIES, SimulatedArms, deploy_on
from helpers.deployed_runs import (
    agrees_with_simulation,
    continues_after_loading,
    deploy_policy,
    follows_arm_changes,
    run_steps,
)
from helpers.paths import ROOT


@pytest.mark.parametrize("name", ["ucb1", "ts"])
def test_deployed_and_simulated_policies_pull_the_same_arms(name):
    assert agrees_with_simulation(name, 3, 300)
    assert continues_after_loading(name, 5)
    assert follows_arm_changes(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEPLOYABLE_POLICIES)
def test_every_deployed_policy_pulls_the_arms_of_the_simulated_one(name):
    for seed in (0, 1, 2):
        assert agrees_with_simulation(name, seed, 200)
        assert continues_after_loading(name, seed)
    assert follows_arm_changes(name)


def test_every_deployed_policy_agrees_in_plain_python(run_python):
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "src")!r}, {str(ROOT / "tests")!r}]
from helpers.deployed_policies import DEPLOYABLE_POLICIES
from helpers.deployed_runs import agrees_with_simulation, continues_after_loading, follows_arm_changes
from banditune.exact.table_policies import TABLE_POLICIES
# Tables take minutes in plain Python. Other tests run their policies compiled.
for name in set(DEPLOYABLE_POLICIES) - set(TABLE_POLICIES):
    assert agrees_with_simulation(name, 3, 16), name
    assert continues_after_loading(name, 3), name
    assert follows_arm_changes(name), name
"""
    process = run_python(code, NUMBA_DISABLE_JIT="1")
    assert process.returncode == 0, process.stderr


def test_compiled_and_plain_python_make_the_same_decisions(run_python):
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "src")!r}, {str(ROOT / "tests")!r}]
import banditune as bt
from helpers.deployed_policies import SimulatedArms, deploy_on
from helpers.deployed_runs import run_steps
simulated = SimulatedArms(bt.Bernoulli(arms=5), 1)
print(run_steps(deploy_on(bt.Thompson(prior=(1, 1)), simulated, 100, 1), simulated, 100))
"""
    simulated = SimulatedArms(bt.Bernoulli(arms=5), 1)
    arms = run_steps(deploy_on(bt.Thompson(prior=(1, 1)), simulated, 100, 1), simulated, 100)
    assert run_python(code, NUMBA_DISABLE_JIT="1").stdout.strip() == str(arms)


@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))])
def test_a_decision_for_ten_arms_takes_less_than_20_microseconds(policy):
    deployed = deploy_policy(policy, 0.22, arms=10, horizon=10_000)
    for arm in range(10):
        deployed.update(arm, 0.5)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        deployed.select_arms(200)
        times.append((time.perf_counter() - start) / 200)
    assert min(times) < 20e-6
