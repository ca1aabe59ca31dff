"""The memory of a policy: `start` must write all of it, and no run sees that of another."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest

import banditune as bt
from banditune.policies.custom_policy import CustomPolicy
from banditune.simulation import simulator
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.estimators.arm_totals import start_totals, update_totals
from banditune.simulation.problem_checks import check_start_writes_memory
from banditune.simulation.spec import SimulationSpec


class BonusState(NamedTuple):
    pulls: np.ndarray
    total: np.ndarray
    bonus: np.ndarray


@bt.kernel.scalar
def view_bonus(memory, setting):
    return BonusState(memory[: setting.arms], memory[setting.arms : 2 * setting.arms], memory[2 * setting.arms :])


@bt.kernel.scalar
def start_without_bonus(state, setting):
    """Does not write the bonus."""
    start_totals(state, setting)


@bt.kernel.scalar
def start_without_first_bonus(state, setting):
    start_totals(state, setting)
    for arm in range(1, setting.arms):
        state.bonus[arm] = 0.0


@bt.kernel.scalar
def start_everything(state, setting):
    start_totals(state, setting)
    for arm in range(setting.arms):
        state.bonus[arm] = 0.0


@bt.kernel.scalar
def start_with_nan(state, setting):
    start_totals(state, setting)
    for arm in range(setting.arms):
        state.bonus[arm] = np.nan


@bt.kernel.scalar
def update_bonus(state, setting, step, params, arm, reward, stream):
    update_totals(state, setting, step, params, arm, reward, stream)
    state.bonus[arm] += reward


@bt.kernel.scalar
def choose_by_bonus(state, setting, step, params, stream):
    best = 0
    for arm in range(setting.arms):
        if state.bonus[arm] / (1.0 + state.pulls[arm]) > state.bonus[best] / (1.0 + state.pulls[best]):
            best = arm
    return best if bt.kernel.uniform(stream) < 0.8 else bt.kernel.draw_arm(state, stream)


class NoBonusStart(CustomPolicy):
    """The bonus of a run stays in the memory."""

    view = staticmethod(view_bonus)
    start = staticmethod(start_without_bonus)
    update = staticmethod(update_bonus)

    def memory(self, arms, dims, horizon):
        return 3 * arms


class PartialStart(NoBonusStart):
    start = staticmethod(start_without_first_bonus)


class FullStart(NoBonusStart):
    start = staticmethod(start_everything)


class NanStart(NoBonusStart):
    start = staticmethod(start_with_nan)


class InheritedStart(NoBonusStart):
    """Another array in `view`, and the inherited start."""

    start = staticmethod(start_totals)


class Totals(NamedTuple):
    pulls: np.ndarray
    total: np.ndarray


class MarkedTotals(NamedTuple):
    arms: Totals
    bonus: np.ndarray


@bt.kernel.scalar
def view_nested(memory, setting):
    arms = setting.arms
    return MarkedTotals(Totals(memory[:arms], memory[arms : 2 * arms]), memory[2 * arms :])


@bt.kernel.scalar
def start_without_totals(state, setting):
    for arm in range(setting.arms):
        state.arms.pulls[arm] = 0.0
        state.bonus[arm] = 0.0


class Nested(NoBonusStart):
    """A record in the record."""

    view = staticmethod(view_nested)
    start = staticmethod(start_without_totals)


PROBLEM = bt.Bernoulli(arms=4)


@pytest.mark.parametrize(
    ("policy_class", "field"),
    [
        (NoBonusStart, "bonus\\[0\\]"),
        (PartialStart, "bonus\\[0\\]"),
        (InheritedStart, "bonus\\[0\\]"),
        (NanStart, "bonus\\[0\\]"),
        (Nested, "arms.total\\[0\\]"),
    ],
)
def test_a_start_that_does_not_write_all_memory_is_refused(policy_class, field):
    text = rf"`start` of the policy 'mine' must set every number of its memory, .* it does not set `{field}`"
    with pytest.raises(bt.InvalidRequest, match=text):
        bt.simulate(policy_class("mine", choose_by_bonus), PROBLEM, horizon=20, runs=5)


@pytest.mark.parametrize("policy_class", [NoBonusStart, PartialStart, InheritedStart])
def test_memory_is_cleared_before_every_run(policy_class, monkeypatch):
    """Without the check that would refuse these policies."""
    monkeypatch.setattr(simulator, "check_policy_and_problem", lambda spec: None)
    partial, full = (
        SimulationSpec(chosen_class("mine", choose_by_bonus), PROBLEM, 60) for chosen_class in (policy_class, FullStart)
    )
    regrets = simulate_rows(full, [[0.0]], range(600), workers=1)
    assert regrets.std() > 0
    for workers in (1, 2):
        assert (simulate_rows(partial, [[0.0]], range(600), workers=workers) == regrets).all()
    single_runs = [simulate_rows(partial, [[0.0]], range(run, run + 1), workers=1)[0, 0, 0] for run in range(20)]
    assert single_runs == regrets[0, :20, 0].tolist()


def test_a_start_that_writes_everything_is_not_refused():
    assert np.isfinite(bt.simulate(FullStart("mine", choose_by_bonus), PROBLEM, horizon=20, runs=5)).all()


class CountState(NamedTuple):
    pulls: np.ndarray
    total: np.ndarray
    counts: np.ndarray


@bt.kernel.scalar
def view_counts(memory, setting):
    """Integers in the bits of floats."""
    arms = setting.arms
    return CountState(memory[:arms], memory[arms : 2 * arms], memory[2 * arms :].view(np.int64))


@bt.kernel.scalar
def start_counts(state, setting):
    start_totals(state, setting)
    for arm in range(setting.arms):
        state.counts[arm] = 7


@bt.kernel.scalar
def choose_best_mean(state, setting, step, params, stream):
    return bt.kernel.argmax_mean(state)


class CountingPolicy(NoBonusStart):
    view = staticmethod(view_counts)
    start = staticmethod(start_counts)
    update = staticmethod(update_totals)


class CountingPolicyWithoutStart(CountingPolicy):
    start = staticmethod(start_totals)


def test_integers_that_start_does_not_write_are_refused():
    with pytest.raises(bt.InvalidRequest, match=r"it does not set `counts\[0\]`"):
        check_start_writes_memory(SimulationSpec(CountingPolicyWithoutStart("mine", choose_best_mean), PROBLEM, 20))


def test_a_start_that_writes_integers_is_accepted():
    assert np.isfinite(bt.simulate(CountingPolicy("mine", choose_best_mean), PROBLEM, horizon=20, runs=5)).all()
