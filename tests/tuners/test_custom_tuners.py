"""Tuners that a user writes: what they may do, and what stops a study."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditune as bt
from helpers.example_tuners import OneTrialTuner, RandomValueTuner, StrayingTuner

PROBLEM = bt.Bernoulli(arms=3)


@pytest.mark.parametrize("size", [np.int64(10), 10, (10, 5)])
def test_a_users_tuner_may_ask_for_sizes_of_any_kind(size):
    result = bt.tune(
        bt.UCB1(noise=0.5), PROBLEM, horizon=200, budget=30, search=bt.Search(tuner=OneTrialTuner(size), validate=20)
    )
    assert result.trials[0].runs == ((10, 5) if isinstance(size, tuple) else (10, 10))
    assert result.posterior is None
    with_goal = bt.tune(
        bt.UCB1(noise=0.5),
        PROBLEM,
        horizon=200,
        precision=0.1,
        search=bt.Search(tuner=OneTrialTuner(size, accepts_goal=True), validate=20),
    )
    assert with_goal.precision_reached is None


@pytest.mark.parametrize("size", [0, (3,), (3, 0), ()])
def test_a_trial_with_wrong_sizes_is_an_error(size):
    with pytest.raises(bt.SimulationError, match="a size >= 1 for all or for each"):
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=200, budget=30, search=bt.Search(tuner=OneTrialTuner(size)))


@pytest.mark.parametrize(
    ("tuner", "message"),
    [
        (StrayingTuner((0.5, 7.0), 5, 0.5), "keep to its range, `0 <= gamma <= 1`, but .* asked for 7.0"),
        (StrayingTuner((math.nan,), 5, 0.5), "keep to its range, .* asked for nan"),
        (StrayingTuner((0.5,), 5, math.nan), "keep to its range, .* answered with nan"),
        (StrayingTuner((0.5,), 5, 7), "keep to its range, .* answered with 7"),
        (StrayingTuner((0.5,), 5, None), "keep to its range, .* answered with None"),
        (StrayingTuner((0.5,), 5, "x"), "keep to its range, .* answered with 'x'"),
        (StrayingTuner((0.5, 0.6), 20, 0.5), "keep to its budget, but .* requested 20 runs and 10 are left"),
        (StrayingTuner((), 5, 0.5), "must make a trial before it answers"),
    ],
)
def test_a_tuner_outside_its_range_or_budget_is_an_error(tuner, message):
    with pytest.raises(bt.SimulationError, match=message):
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=100, budget=30, search=bt.Search(tuner=tuner))


@pytest.mark.parametrize("accepts_goal", [False, True])
def test_the_random_numbers_of_a_tuner_follow_the_seed_of_the_study(accepts_goal):
    def find_value(seed, workers):
        tuning = bt.tune(
            bt.UCB1(noise=0.5),
            PROBLEM,
            horizon=20,
            budget=5,
            seed=seed,
            include=("no_lower_bound",),
            search=bt.Search(tuner=RandomValueTuner(accepts_goal), validate=2),
            run=bt.Run(workers=workers),
        )
        return tuning.params["gamma"]

    values = [find_value(seed, 1) for seed in range(5)]
    assert len(set(values)) == 5
    assert values == [find_value(seed, 2) for seed in range(5)]
