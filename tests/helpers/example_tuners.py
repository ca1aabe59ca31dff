"""Tuners as a user would write them."""

from __future__ import annotations

import dataclasses

import numpy as np

import banditune as bt


@dataclasses.dataclass(frozen=True)
class Asks(bt.tuners.Tuner):
    """A tuner of a user's own that asks one question."""

    size: object
    accepts_goal: bool = False
    name = "asks"

    def search(self, among, budget, goal=None):
        regrets = yield bt.tuners.Trial((0.2, 0.8), self.size)
        return (0.2, 0.8)[int(np.argmin([np.mean(row) for row in regrets]))]


@dataclasses.dataclass(frozen=True)
class Strays(bt.tuners.Tuner):
    """A tuner that asks for these values, one after the other, with so many runs each, and answers."""

    asked: tuple
    size: int
    answer: object
    name = "strays"

    def search(self, among, budget):
        for value in self.asked:
            yield bt.tuners.Trial((value,), self.size)
        return self.answer


@dataclasses.dataclass(frozen=True)
class Draws(bt.tuners.Tuner):
    """A tuner that asks for one value drawn at random, and answers with it."""

    accepts_goal: bool = False
    name = "draws"

    def search(self, among, budget, *goal, rng):
        assert len(goal) == self.accepts_goal
        value = among.scale_from_unit(rng.random())
        yield bt.tuners.Trial((value,), budget)
        return value


@dataclasses.dataclass(frozen=True)
class Answers(bt.tuners.Tuner):
    """A search that answers one value, whatever it sees."""

    name = "answers"
    value: float = 0.0

    def search(self, among, budget):
        yield bt.tuners.Trial((self.value,), budget)
        return self.value
