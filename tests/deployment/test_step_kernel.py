"""A deployed policy takes the steps of a simulated one."""

from __future__ import annotations

import time

import pytest

import banditune as bt
from conftest import ROOT
from helpers.deployed import DEPLOYABLE, Nature, deployed
from helpers.deployed_runs import agrees_step_by_step, arms_come_and_go, goes_on_alike, of, played


@pytest.mark.parametrize("name", ["ucb1", "ts"])
def test_live_and_simulated_runs_agree_step_by_step(name):
    assert agrees_step_by_step(name, 3, 300)
    assert goes_on_alike(name, 5)
    assert arms_come_and_go(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", DEPLOYABLE)
def test_live_and_simulated_runs_of_every_policy_agree_step_by_step(name):
    for seed in (0, 1, 2):
        assert agrees_step_by_step(name, seed, 200)
        assert goes_on_alike(name, seed)
    assert arms_come_and_go(name)


def test_every_policy_agrees_with_the_simulator_goes_on_and_changes_arms_in_plain_python(run_python):
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "src")!r}, {str(ROOT / "tests")!r}]
from helpers.deployed import DEPLOYABLE
from helpers.deployed_runs import agrees_step_by_step, arms_come_and_go, goes_on_alike
from banditune.exact.table_policies import TABLE_POLICIES as TABLES
for name in set(DEPLOYABLE) - set(TABLES):  # tables take minutes in plain Python; compiled code plays them in other tests
    assert agrees_step_by_step(name, 3, 16), name
    assert goes_on_alike(name, 3), name
    assert arms_come_and_go(name), name
"""
    process = run_python(code, NUMBA_DISABLE_JIT="1")
    assert process.returncode == 0, process.stderr


def test_compiled_and_plain_decisions_are_the_same(run_python):
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "src")!r}, {str(ROOT / "tests")!r}]
import banditune as bt
from helpers.deployed import Nature, deployed
from helpers.deployed_runs import played
nature = Nature(bt.Bernoulli(arms=5), 1)
print(played(deployed(bt.Thompson(prior=(1, 1)), nature, 100, 1), nature, 100))
"""
    nature = Nature(bt.Bernoulli(arms=5), 1)
    arms = played(deployed(bt.Thompson(prior=(1, 1)), nature, 100, 1), nature, 100)
    assert run_python(code, NUMBA_DISABLE_JIT="1").stdout.strip() == str(arms)


@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))])
def test_a_decision_for_ten_arms_takes_less_than_20_microseconds(policy):
    live = of(policy, 0.22, arms=10, horizon=10_000)
    for arm in range(10):
        live.update(arm, 0.5)
    times = []
    for _ in range(20):
        start = time.perf_counter()
        live.select_arms(200)
        times.append((time.perf_counter() - start) / 200)
    assert min(times) < 20e-6
