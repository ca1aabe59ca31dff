"""`check_tuner` names the check that a broken tuner fails, and passes every tuner of the package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import banditune as bt
from banditune.tuners.tuner_registry import TUNERS


@dataclass(frozen=True)
class Grid(bt.tuners.Tuner):
    """A right tuner: five values, of which one is the lowest. Tests replace `look`."""

    points: int = 5

    name = "grid"

    def search(self, search_range, budget):
        if budget < self.points:
            raise bt.InvalidRequest(f"`budget >= {self.points}` must hold, but got budget={budget}.")
        values = tuple(search_range.scale_from_unit(unit) for unit in np.linspace(0, 1, self.points))
        regrets = yield bt.tuners.Trial(values, budget // self.points)
        return values[int(np.argmin(regrets.mean(axis=1)))]


def change(search: Callable[..., Any], **members):
    """The tuner with another search."""
    return dataclass(frozen=True)(type("Changed", (Grid,), {"__module__": __name__, "search": search, **members}))()


def fail(tuner, check, *words, **settings):
    """Check a tuner that fails one check, with all of these words in the message."""
    with pytest.raises(bt.errors.ConformanceError) as error:
        bt.testing.check_tuner(tuner, **settings)
    assert error.value.check == check, str(error.value)
    assert [word for word in words if word not in str(error.value)] == []


@pytest.mark.parametrize("name", TUNERS)
def test_every_tuner_keeps_its_contract(name):
    found = bt.testing.check_tuner(TUNERS[name]())
    # Three ranges with seven budgets and three curves; a tuner of several parameters also searches all ranges together.
    assert found["budget-and-range"].runs == (63 if TUNERS[name].max_parameters == 1 else 84)
    assert ("goal" in [check.name for check in found.checks]) == (name == "two-part")


def test_a_tuner_of_a_user_passes():
    found = bt.testing.check_tuner(Grid(), budget=200)
    assert found["contract"].finding == "`search` is a generator of (search_range, budget)"
    assert found["budget-and-range"].finding.endswith("it rejects budgets up to 3, at least")
    assert found.left_out == ("goal: without accepts_goal = True it is only used with a budget",)


def test_objects_that_are_no_tuners_are_refused():
    with pytest.raises(bt.InvalidRequest, match=r"must be a tuner .*; make one, such as Grid\(\)"):
        bt.testing.check_tuner(Grid)


def test_a_description_that_is_no_json_fails():
    @dataclass(frozen=True)
    class Odd(Grid):
        word: Any = field(default_factory=object)

    fail(Odd(), "description", "numbers, strings and lists")


def test_a_search_that_is_no_generator_of_the_right_arguments_fails():
    fail(change(lambda self, search_range: None), "contract", "must take (search_range, budget), and `rng`")
    fail(change(lambda self, search_range, budget: 1.0), "contract", "must be a generator", "`yield Trial(...)`")
    fail(change(Grid.search, accepts_goal=True), "contract", "must take (search_range, budget, goal)")


def spend_too_much(self, search_range, budget):
    regrets = yield bt.tuners.Trial((search_range.low, search_range.high), budget)
    return search_range.low if regrets[0].mean() < regrets[1].mean() else search_range.high


def leave_the_range(self, search_range, budget):
    yield bt.tuners.Trial((search_range.high + 1,), budget)
    return search_range.low


def answer_outside(self, search_range, budget):
    yield bt.tuners.Trial((search_range.low,), budget)
    return search_range.low - 1


def refuse_late(self, search_range, budget):
    yield bt.tuners.Trial((search_range.low,), 1)
    if budget < 10:
        raise bt.InvalidRequest("`budget >= 10` must hold.")
    return search_range.low


def refuse_everything(self, search_range, budget):
    raise bt.InvalidRequest("`budget >= 10**9` must hold.")
    yield


def answer_at_once(self, search_range, budget):
    return search_range.low
    yield


def yield_a_pair(self, search_range, budget):
    yield (search_range.low,), budget


@pytest.mark.parametrize(
    ("search", "words"),
    [
        (spend_too_much, "must keep to its budget"),
        (leave_the_range, "must keep to its range"),
        (answer_outside, "answered with"),
        (refuse_late, "before the first trial"),
        (refuse_everything, "it rejects 1000 runs"),
        (answer_at_once, "it made none"),
        (yield_a_pair, "must yield Trial(values, size)"),
    ],
)
def test_a_search_beyond_its_budget_or_range_fails(search, words):
    fail(change(search), "budget-and-range", words)


def test_a_search_that_breaks_where_regrets_are_equal_fails():
    def search(self, search_range, budget):
        low, high = search_range.low, search_range.high
        if budget < 2:
            raise bt.InvalidRequest("`budget >= 2` must hold.")
        regrets = yield bt.tuners.Trial((low, high), budget // 2)
        if not regrets.any():
            raise ZeroDivisionError("no regret")
        return low

    fail(change(search), "budget-and-range", "ZeroDivisionError: no regret")


def test_a_search_with_randomness_of_its_own_fails():
    def search_loosely(self, search_range, budget):
        value = search_range.scale_from_unit(np.random.default_rng().random())
        yield bt.tuners.Trial((value,), budget)
        return value

    def search_globally(self, search_range, budget):
        value = search_range.scale_from_unit(np.random.random())
        yield bt.tuners.Trial((value,), budget)
        return value

    fail(change(search_loosely), "random-numbers", "a second time it makes other trials", "add an argument `rng`")
    fail(change(search_globally), "random-numbers", "the global generators of a process")


def test_a_search_that_is_changed_by_another_one_fails():
    under_way = []

    def search(self, search_range, budget):
        under_way.append(self)
        value = search_range.low if len(under_way) == 1 else search_range.high
        yield bt.tuners.Trial((value,), budget)
        under_way.pop()
        return value

    fail(change(search), "random-numbers", "during another search it makes other trials")


def test_a_search_that_does_not_stop_fails():
    def search(self, search_range, budget, goal):
        ignored = 0
        for _ in range(budget):
            try:
                yield bt.tuners.Trial((search_range.low,), 1)
            except bt.tuners.StopSearch:
                ignored += 1
        return search_range.low

    fail(change(search, accepts_goal=True), "goal", "must answer when StopSearch is thrown into it")


def test_a_search_that_fails_only_in_a_study_fails():
    def search(self, search_range, budget):
        regrets = yield bt.tuners.Trial((search_range.low,), budget)
        if 0 < regrets.mean() < 9:
            raise ZeroDivisionError("small regrets")
        return search_range.low

    fail(change(search), "study", "ZeroDivisionError: small regrets")
