"""A policy's memory is clean before every run, and its `start` must not leave a part of it as it was."""

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


class Marked(NamedTuple):
    pulls: np.ndarray
    total: np.ndarray
    bonus: np.ndarray


@bt.kernel.scalar
def view_marked(memory, setting):
    return Marked(memory[: setting.arms], memory[setting.arms : 2 * setting.arms], memory[2 * setting.arms :])


@bt.kernel.scalar
def start_forgetful(state, setting):
    """Forgets the bonus."""
    start_totals(state, setting)


@bt.kernel.scalar
def start_all_but_one(state, setting):
    start_totals(state, setting)
    for arm in range(1, setting.arms):
        state.bonus[arm] = 0.0


@bt.kernel.scalar
def start_all(state, setting):
    start_totals(state, setting)
    for arm in range(setting.arms):
        state.bonus[arm] = 0.0


@bt.kernel.scalar
def start_with_nan(state, setting):
    start_totals(state, setting)
    for arm in range(setting.arms):
        state.bonus[arm] = np.nan


@bt.kernel.scalar
def update_marked(state, setting, step, params, arm, reward, stream):
    update_totals(state, setting, step, params, arm, reward, stream)
    state.bonus[arm] += reward


@bt.kernel.scalar
def choose_marked(state, setting, step, params, stream):
    best = 0
    for arm in range(setting.arms):
        if state.bonus[arm] / (1.0 + state.pulls[arm]) > state.bonus[best] / (1.0 + state.pulls[best]):
            best = arm
    return best if bt.kernel.uniform(stream) < 0.8 else bt.kernel.draw_arm(state, stream)


class Leaky(CustomPolicy):
    """What a run earned stays in the memory."""

    view = staticmethod(view_marked)
    start = staticmethod(start_forgetful)
    update = staticmethod(update_marked)

    def memory(self, arms, dims, horizon):
        return 3 * arms


class LeakyInPart(Leaky):
    start = staticmethod(start_all_but_one)


class Clean(Leaky):
    start = staticmethod(start_all)


class StartsWithNan(Leaky):
    start = staticmethod(start_with_nan)


class Inherited(Leaky):
    """An array more in `view`, and the usual start."""

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


class Nested(Leaky):
    """A record in the record."""

    view = staticmethod(view_nested)
    start = staticmethod(start_without_totals)


PROBLEM = bt.Bernoulli(arms=4)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        (Leaky, "bonus\\[0\\]"),
        (LeakyInPart, "bonus\\[0\\]"),
        (Inherited, "bonus\\[0\\]"),
        (StartsWithNan, "bonus\\[0\\]"),
        (Nested, "arms.total\\[0\\]"),
    ],
)
def test_a_start_that_leaves_a_part_of_the_memory_is_refused(kind, named):
    text = (
        rf"`start` of the policy 'mine' must give every number of its memory a value, .* it leaves `{named}` as it was"
    )
    with pytest.raises(bt.InvalidRequest, match=text):
        bt.simulate(kind("mine", choose_marked), PROBLEM, horizon=20, runs=5)


@pytest.mark.parametrize("kind", [Leaky, LeakyInPart, Inherited])
def test_a_start_that_forgets_leaks_nothing_from_run_to_run(kind, monkeypatch):
    """As if nobody looked at it before."""
    monkeypatch.setattr(simulator, "check_policy_and_problem", lambda job: None)
    forgets, clean = (SimulationSpec(one("mine", choose_marked), PROBLEM, 60) for one in (kind, Clean))
    regrets = simulate_rows(clean, [[0.0]], range(600), workers=1)
    assert regrets.std() > 0
    for jobs in (1, 2):
        assert (simulate_rows(forgets, [[0.0]], range(600), workers=jobs) == regrets).all()
    alone = [simulate_rows(forgets, [[0.0]], range(run, run + 1), workers=1)[0, 0, 0] for run in range(20)]
    assert alone == regrets[0, :20, 0].tolist()


def test_a_start_that_writes_everything_is_not_refused():
    assert np.isfinite(bt.simulate(Clean("mine", choose_marked), PROBLEM, horizon=20, runs=5)).all()


class Whole(NamedTuple):
    pulls: np.ndarray
    total: np.ndarray
    counts: np.ndarray


@bt.kernel.scalar
def view_whole(memory, setting):
    """Whole numbers are a float's bits."""
    arms = setting.arms
    return Whole(memory[:arms], memory[arms : 2 * arms], memory[2 * arms :].view(np.int64))


@bt.kernel.scalar
def start_whole(state, setting):
    start_totals(state, setting)
    for arm in range(setting.arms):
        state.counts[arm] = 7


@bt.kernel.scalar
def choose_best_mean(state, setting, step, params, stream):
    return bt.kernel.argmax_mean(state)


class Counting(Leaky):
    view = staticmethod(view_whole)
    start = staticmethod(start_whole)
    update = staticmethod(update_totals)


class CountingInPart(Counting):
    start = staticmethod(start_totals)


def test_integers_that_start_does_not_write_are_refused():
    with pytest.raises(bt.InvalidRequest, match=r"it leaves `counts\[0\]` as it was"):
        check_start_writes_memory(SimulationSpec(CountingInPart("mine", choose_best_mean), PROBLEM, 20))


def test_a_start_that_writes_integers_is_accepted():
    assert np.isfinite(bt.simulate(Counting("mine", choose_best_mean), PROBLEM, horizon=20, runs=5)).all()
