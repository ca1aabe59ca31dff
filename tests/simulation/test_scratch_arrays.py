"""Scratch arrays of `choose`: the same arms in plain Python, compiled, deployed and in exact regrets."""

from __future__ import annotations

import json

import pytest

import banditune as bt
from helpers.paths import ROOT
from helpers.scratch import COUNTED_MEDIAN, FLAG, MedianArm, choose_by_softmax

PROBLEM = bt.Bernoulli(arms=3, prior=(2, 3))

SHOW_NUMBERS = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests")!r}]
import banditune as bt
from helpers.scratch import SOFTMAX
print(bt.simulate(SOFTMAX, bt.Bernoulli(arms=4), [0.05, 0.5], horizon=60, runs=4).tolist())
live = bt.deploy(SOFTMAX, {{"temperature": 0.3}}, arms=4, horizon=60, seed=3)
arms = []
for step in range(40):
    arms.append(live.select_arm())
    live.update(arms[-1], step % 2)
print(arms)
"""


def test_plain_python_and_compiled_code_agree_with_scratch_arrays(run_python):
    compiled, plain = run_python(SHOW_NUMBERS), run_python(SHOW_NUMBERS, NUMBA_DISABLE_JIT="1")
    assert compiled.returncode == plain.returncode == 0, compiled.stderr + plain.stderr
    assert compiled.stdout == plain.stdout
    regrets, arms = map(json.loads, compiled.stdout.splitlines())
    assert len(set(regrets[1])) == 4
    assert set(arms) == {0, 1, 2, 3}


def test_sorting_in_scratch_arrays_is_counting_without_them():
    sorting, counting = (bt.simulate(policy, PROBLEM, horizon=50, runs=30) for policy in (MedianArm(), COUNTED_MEDIAN))
    assert (sorting == counting).all()
    assert len(set(sorting[0])) == 30


def test_the_exact_regret_with_scratch_arrays_is_that_without_them():
    sorting, counting = (
        bt.exact.compute_exact_regret(policy, PROBLEM, horizon=8).regret for policy in (MedianArm(), COUNTED_MEDIAN)
    )
    assert sorting == counting > 0


def test_no_number_is_carried_from_step_to_step():
    always_first = bt.Mixture([(0.9, 0.1)])
    assert (bt.simulate(FLAG, always_first, horizon=20, runs=3) == 0.0).all()
    deployed = bt.deploy(FLAG, arms=2, horizon=20)
    deployed.update(0, 1.0)
    deployed.update(1, 0.0)
    # The second decision counts a pull without a reward, in a copy of the memory.
    assert [deployed.select_arm(), deployed.select_arm()] == [0, 0]
    loaded = bt.DeployedPolicy.from_json(deployed.to_json(), FLAG)
    assert loaded.select_arm() == deployed.select_arm() == 0


@pytest.mark.parametrize(
    "scratch",
    [
        {"two words": "arms"},
        {"_own": "arms"},
        {"a": 0},
        {"a": -3},
        {"a": True},
        {"a": ()},
        {"a": "rounds"},
        {"a": 2.0},
        5,
    ],
)
def test_other_sizes_and_names_are_refused(scratch):
    with pytest.raises(bt.InvalidRequest, match="`scratch` must give each array a name and a size"):
        bt.define_policy("softmax", choose_by_softmax, scratch=scratch)


def test_choose_must_have_the_declared_arguments():
    with pytest.raises(bt.InvalidRequest, match="`choose` must take"):
        bt.define_policy("softmax", choose_by_softmax)
    with pytest.raises(bt.InvalidRequest, match=r"`choose` must take .*, scratch\)"):
        bt.define_policy("epsilon", COUNTED_MEDIAN.choose, scratch={"a": 1})
