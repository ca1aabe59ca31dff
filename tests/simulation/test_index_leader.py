"""The shortcut of index policies: bit by bit the plain loop, for any index that changes as declared."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.core.policy import Setting
from banditune.policies import bayes_ucb, kl_ucb
from banditune.simulation.estimators.arm_moments import ArmRecord
from banditune.simulation.kernel_selection import select_shortcut
from banditune.simulation.spec import SimulationSpec
from banditune.testing.plain_loop import simulate_in_python

GAMMA = bt.Parameter("gamma", 0, 2, textbook=1)


@bt.kernel.scalar
def constant_index(arm, setting, step, params):
    if arm.pulls == 0.0:
        return math.inf
    return arm.total / arm.pulls + params[0] * math.sqrt(math.log(setting.horizon) / arm.pulls)


@bt.kernel.scalar
def rising_index(arm, setting, step, params):
    if arm.pulls == 0.0:
        return math.inf
    return arm.total / arm.pulls + params[0] * math.sqrt(math.log(step + 1.0) / arm.pulls)


@bt.kernel.scalar
def falling_index(arm, setting, step, params):
    """It needs no pulls, so that arms are tied at first."""
    pulls = arm.pulls + 2.0
    return (arm.total + 1.0) / pulls + params[0] * math.sqrt(math.log((setting.horizon - step) / 1.0) / pulls)


@bt.kernel.scalar
def variance_index(arm, setting, step, params):
    if arm.pulls == 0.0:
        return math.inf
    mean = arm.total / arm.pulls
    return mean + params[0] * math.sqrt(max(arm.squares / arm.pulls - mean * mean, 0.0) / arm.pulls)


@bt.kernel.scalar
def exceeds_mean(arm, setting, step, params, bound):
    return arm.pulls > 0.0 and arm.total / arm.pulls > bound


def define(index, in_step, **options):
    return bt.define_index_policy("mine", index, parameters=GAMMA, in_step=in_step, **options)


POLICIES = {
    "constant": define(constant_index, "constant"),
    "rising": define(rising_index, "rising"),
    "falling": define(falling_index, "falling"),
    "with a test": define(rising_index, "rising", exceeds=exceeds_mean),
    "with squares": define(variance_index, "constant", squares=True),
    "kl-ucb": bt.policies.KLUCB(),
    "ucb-v": bt.policies.UCBV(),
    "bayes-ucb": bt.policies.BayesUCB(prior=(1, 1)),
    "finite-horizon-index": bt.policies.FiniteHorizonIndex(prior=(1, 1)),
    "gaussian-finite-horizon-index": bt.policies.GaussianFiniteHorizonIndex(prior=(0.5, 0.3), noise=0.4),
}
PROBLEMS = {
    "bits": bt.Bernoulli(arms=4),
    "ties": bt.Mixture([(0.5, 0.5, 0.5), (0.0, 1.0, 1.0)]),
    "single rewards": bt.BetaRewards(arms=3),
}


@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("policy", POLICIES)
def test_it_pulls_the_arms_of_the_plain_loop(policy, problem):
    """With gamma = 0 most arms are tied, and with 3 the leader changes at almost every step."""
    spec = SimulationSpec(POLICIES[policy], PROBLEMS[problem], 120, seed=3, checkpoints=(1, 5, 60, 120))
    assert select_shortcut(spec.policy, spec.problem).name.startswith("index-leader")
    others = [1.0] * (len(spec.policy.parameters) - 1)
    rows = np.array([[value, *others] for value in (0.0, 0.4, 3.0)])
    fast, plain = (simulate_in_python(replace(spec, use_shortcut=use), rows, range(6)) for use in (True, False))
    assert (fast == plain).all()
    assert plain.max() > 0


def test_compiled_code_is_plain_python():
    spec = SimulationSpec(bt.policies.MOSS(), bt.Bernoulli(arms=5), 200, seed=1, checkpoints=(20, 200))
    rows = np.array([[0.2], [1.0]])
    compiled = bt.simulate(spec.policy, spec.problem, [0.2, 1.0], horizon=200, runs=8, seed=1, checkpoints=[20, 200])
    assert (compiled == simulate_in_python(spec, rows, range(8))).all()
    assert (compiled == simulate_in_python(replace(spec, use_shortcut=False), rows, range(8))).all()


@pytest.mark.parametrize(
    ("index", "in_step", "message"),
    [
        (rising_index, "constant", "it rises"),
        (rising_index, "falling", "it rises"),
        (falling_index, "rising", "it falls"),
    ],
)
def test_an_index_that_changes_otherwise_is_refused(index, in_step, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        define(index, in_step).check(np.empty((1, 0, 4)), 120)


def test_a_test_that_is_true_at_the_index_is_refused():
    @bt.kernel.scalar
    def always(arm, setting, step, params, bound):
        return True

    with pytest.raises(bt.InvalidRequest, match="true only if the index is above the bound"):
        define(rising_index, "rising", exceeds=always).check(np.empty((1, 0, 4)), 120)


def test_squares_that_are_not_kept_are_an_error_with_the_step():
    spec = SimulationSpec(define(variance_index, "constant"), bt.Bernoulli(arms=4), 50, seed=0)
    with pytest.raises(bt.SimulationError, match=r"compare NaN.*at step 1 of run 0"):
        simulate_in_python(spec, np.array([[1.0]]), range(1))


@pytest.mark.parametrize(
    ("index", "exceeds"),
    [
        (kl_ucb.compute_kl_index, kl_ucb.exceeds_kl_bound),
        (bayes_ucb.compute_bayes_index, bayes_ucb.exceeds_bayes_bound),
    ],
)
def test_the_tests_of_the_package_are_true_below_the_index_only(index, exceeds):
    """Also with a gamma of 10, where indices are within 1e-10 of 1."""
    rng = np.random.default_rng(5)
    setting = Setting(4, 0, 10_000, np.empty((0, 4)), np.array([1.0, 1.0]))
    states = []
    for _ in range(400):
        pulls = float(np.ceil(np.exp(rng.uniform(0, 9))))
        arm = ArmRecord(pulls, float(rng.integers(0, pulls + 1)), math.nan)
        states.append((arm, setting, int(rng.integers(pulls, 10_000)), [rng.choice([0.0, 0.3, 1.0, 10.0])]))
    values = [index(*state) for state in states]
    assert not any(exceeds(*state, value) for state, value in zip(states, values, strict=True))
    decided = sum(exceeds(*state, value - 1e-3) for state, value in zip(states, values, strict=True))
    assert decided > 200


def test_arguments_are_checked():
    with pytest.raises(bt.InvalidRequest, match="in_step"):
        define(rising_index, "up")
    with pytest.raises(bt.InvalidRequest, match="arm, setting, step, params"):
        define(lambda pulls, total: 0.0, "rising")


def test_only_a_policy_without_squares_can_be_deployed():
    live = bt.deploy(define(constant_index, "constant"), {"gamma": 0.5}, arms=3, horizon=100)
    arms = [live.select_arm() for _ in range(3)]
    assert sorted(arms) == [0, 1, 2]
    with pytest.raises(bt.InvalidRequest):
        bt.deploy(POLICIES["with squares"], {"gamma": 0.5}, arms=3, horizon=100)
