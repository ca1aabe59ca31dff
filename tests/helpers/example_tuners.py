"""Tuners as a user would write them."""

from __future__ import annotations

import dataclasses

import numpy as np

import banditune as bt


@dataclasses.dataclass(frozen=True)
class OneTrialTuner(bt.tuners.Tuner):
    """A tuner that makes one trial."""

    size: object
    accepts_goal: bool = False
    name = "asks"

    def search(self, among, budget, goal=None):
        regrets = yield bt.tuners.Trial((0.2, 0.8), self.size)
        return (0.2, 0.8)[int(np.argmin([np.mean(row) for row in regrets]))]


@dataclasses.dataclass(frozen=True)
class StrayingTuner(bt.tuners.Tuner):
    """A tuner that asks for given values one after the other, and gives a fixed answer."""

    values: tuple
    size: int
    answer: object
    name = "strays"

    def search(self, among, budget):
        for value in self.values:
            yield bt.tuners.Trial((value,), self.size)
        return self.answer


@dataclasses.dataclass(frozen=True)
class RandomValueTuner(bt.tuners.Tuner):
    """A tuner that asks for one random value, and answers with it."""

    accepts_goal: bool = False
    name = "draws"

    def search(self, among, budget, *goal, rng):
        assert len(goal) == self.accepts_goal
        value = among.scale_from_unit(rng.random())
        yield bt.tuners.Trial((value,), budget)
        return value


@dataclasses.dataclass(frozen=True)
class FixedAnswerTuner(bt.tuners.Tuner):
    """A tuner with a fixed answer."""

    name = "answers"
    value: float = 0.0

    def search(self, among, budget):
        yield bt.tuners.Trial((self.value,), budget)
        return self.value
