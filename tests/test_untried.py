"""Values that a search cannot judge: validation plays them beside its answer."""

from __future__ import annotations

import numpy as np
import pytest

import banditune as bt
from banditune.contracts import Found, Range
from banditune.engine.run import Job, play
from banditune.results import Estimate
from banditune.study.player import rounded
from banditune.study.search import FRESH, Told
from banditune.study.validation import untried
from banditune.tuners.two_part import Searches, belief_of
from test_two_part import LIBRARY

MANY, HORIZON = bt.Bernoulli(arms=30), 120
"""Arms so many that exploring hardly pays in so few rounds; UCB1 of width 0 stays with the first arm that never failed."""

AMONG = Range("gamma", 0.0, 2.0, 1.0, False, "linear")


def lost(values, first=0, runs=1000):
    job = Job(bt.UCB1(), MANY, HORIZON)
    return rounded(job, play(job, np.array(values)[:, None], range(first, first + runs)))[:, :, 0]


def test_where_exploring_does_not_pay_the_end_of_the_range_is_told():
    at = lost([0.0, 1 / 162, 0.1, 0.2]).mean(axis=1)
    assert at[0] < 0.95 * at[1:].min()
    tuning = bt.tune(bt.UCB1(), MANY, horizon=HORIZON, budget=300, validate=400)
    (value,) = tuning.params.values()
    assert value > 0
    assert tuning.spent == 300
    tuned, end = lost([value, 0.0], FRESH, 400)
    ahead = Estimate.of(tuned - end)
    (warning,) = tuning.warnings
    assert (
        f"gamma = 0, the end of its range, loses {ahead.mean:.4g} (95%: {ahead.low:.4g} to {ahead.high:.4g})" in warning
    )
    compared = bt.compare([bt.Thompson(), bt.UCB1()], MANY, horizon=HORIZON, budget=300, validate=400)
    assert f"ucb1: {warning}" in compared.warnings


@pytest.mark.parametrize(("level", "untried"), [(1.0, (0.0,)), (40.0, ())])
def test_only_an_end_that_may_be_near_the_best_is_named(level, untried):
    """Runs at the lowest points lose as much as the best ones, or far more."""
    rng = np.random.default_rng(0)
    search = Searches(LIBRARY, 1, 400, rng)
    while search.left > 0:
        width = LIBRARY.points[search.ask()]
        search.tell((np.where(width < 0.1, level, 1.0) + 3 * width) * rng.gamma(4, 0.25, width.shape))
    assert belief_of(LIBRARY, search.fit(), AMONG).untried == untried


class Fake:
    """Plays what it was given."""

    def __init__(self, regrets):
        self.regrets = regrets

    def play(self, job, params, runs, *, first_row, progress):
        self.asked = params.tolist(), runs, first_row
        progress(len(runs))
        return self.regrets[None, :, None]


@pytest.mark.parametrize(("ahead", "told"), [(-3.0, 0), (0.09, 0), (0.11, 1), (2.0, 1)])
def test_a_value_that_was_not_tried_is_told_only_if_it_is_surely_better(ahead, told):
    rng = np.random.default_rng(1)
    tuned, noise = rng.standard_normal((2, 400))
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    fake, fresh = Fake(tuned - ahead + noise), range(7, 407)
    said = list(untried(None, AMONG, Found(0.2, None, (0.0,)), tuned, fresh, fake, Told(None, 0), 4))
    assert fake.asked == ([[0.0]], fresh, 4)
    assert len(said) == told
    assert not list(untried(None, AMONG, Found(0.2, None), tuned, fresh, fake, Told(None, 0)))
