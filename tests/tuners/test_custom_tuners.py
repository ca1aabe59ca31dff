"""Tuners that a user writes: what they may do, and what stops a study."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditune as bt
from helpers.example_tuners import Asks, Draws, Strays

PROBLEM = bt.Bernoulli(arms=3)


@pytest.mark.parametrize("size", [np.int64(10), 10, (10, 5)])
def test_a_tuner_of_ones_own_asks_as_it_likes(size):
    result = bt.tune(
        bt.UCB1(noise=0.5), PROBLEM, horizon=200, budget=30, search=bt.Search(tuner=Asks(size), validate=20)
    )
    assert result.trials[0].runs == ((10, 5) if isinstance(size, tuple) else (10, 10))
    assert result.posterior is None
    sure = bt.tune(
        bt.UCB1(noise=0.5),
        PROBLEM,
        horizon=200,
        precision=0.1,
        search=bt.Search(tuner=Asks(size, accepts_goal=True), validate=20),
    )
    assert sure.precision_reached is None


@pytest.mark.parametrize("size", [0, (3,), (3, 0), ()])
def test_a_question_that_cannot_be_answered_is_a_fault(size):
    with pytest.raises(bt.SimulationError, match="a size >= 1 for all or for each"):
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=200, budget=30, search=bt.Search(tuner=Asks(size)))


@pytest.mark.parametrize(
    ("tuner", "sentence"),
    [
        (Strays((0.5, 7.0), 5, 0.5), "keep to its range, `0 <= gamma <= 1`, but .* asked for 7.0"),
        (Strays((math.nan,), 5, 0.5), "keep to its range, .* asked for nan"),
        (Strays((0.5,), 5, math.nan), "keep to its range, .* answered with nan"),
        (Strays((0.5,), 5, 7), "keep to its range, .* answered with 7"),
        (Strays((0.5,), 5, None), "keep to its range, .* answered with None"),
        (Strays((0.5,), 5, "x"), "keep to its range, .* answered with 'x'"),
        (Strays((0.5, 0.6), 20, 0.5), "keep to its budget, but .* asked for 20 runs where 10 are left"),
        (Strays((), 5, 0.5), "must make a trial before it answers"),
    ],
)
def test_a_tuner_that_strays_is_a_fault(tuner, sentence):
    with pytest.raises(bt.SimulationError, match=sentence):
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=100, budget=30, search=bt.Search(tuner=tuner))


@pytest.mark.parametrize("accepts_goal", [False, True])
def test_a_tuners_random_numbers_follow_the_seed_of_the_study(accepts_goal):
    def drawn(seed, jobs):
        tuning = bt.tune(
            bt.UCB1(noise=0.5),
            PROBLEM,
            horizon=20,
            budget=5,
            seed=seed,
            include=("no_lower_bound",),
            search=bt.Search(tuner=Draws(accepts_goal), validate=2),
            run=bt.Run(workers=jobs),
        )
        return tuning.params["gamma"]

    values = [drawn(seed, 1) for seed in range(5)]
    assert len(set(values)) == 5
    assert values == [drawn(seed, 2) for seed in range(5)]
