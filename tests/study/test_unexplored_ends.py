"""The lower end of a range, at which a search makes no run: validation plays it beside the answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.core.errors import SimulationError, WorkerLost
from banditune.core.space import Range
from banditune.core.tuner import Goal
from banditune.results.estimates import Estimate
from banditune.results.search_results import SearchPosterior
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.spec import SimulationSpec
from banditune.storage.store_writer import round_to_float32
from banditune.study.hold_out import HoldOutSplit
from banditune.study.notices import note_better_end, note_missed_precision
from banditune.study.progress import ProgressCounter
from banditune.study.search import FIRST_VALIDATION_INSTANCE
from banditune.study.validation import validate_unexplored_end
from banditune.tuners.answer_statements import STEP_SHARE, state_answer
from banditune.tuners.curve_library import select_library
from banditune.tuners.two_part_search import LockstepSearches

MANY, HORIZON = bt.Bernoulli(arms=30), 120
"""Arms so many that exploring hardly pays in so few rounds; UCB1 of width 0 stays with the first arm that never failed."""

LINEAR = Range("gamma", 0.0, 2.0, 1.0, False, "linear")


def lost(values, first=0, runs=1000, first_row=0, common=True):
    spec = SimulationSpec(bt.UCB1(noise=0.5), MANY, HORIZON, common_random_numbers=common)
    regrets = simulate_rows(spec, np.array(values)[:, None], range(first, first + runs), first_row=first_row)
    return round_to_float32(spec, regrets)[:, :, 0]


def told_of(ahead):
    return (
        f"gamma = 0, the end of its range, has {ahead.mean:.4g} (95%: {ahead.low:.4g} to {ahead.high:.4g}) less regret"
    )


def test_where_exploring_does_not_pay_the_end_of_the_range_is_told():
    at = lost([0.0, 1 / 162, 0.1, 0.2]).mean(axis=1)
    assert at[0] < 0.95 * at[1:].min()
    tuning = bt.tune(bt.UCB1(noise=0.5), MANY, horizon=HORIZON, precision=0.05, search=bt.Search(validate=400))
    (value,) = tuning.params.values()
    assert value > 0
    tuned, end = lost([value, 0.0], FIRST_VALIDATION_INSTANCE, 400)
    ahead = Estimate.from_sample(tuned - end)
    better, missed = tuning.notices
    assert told_of(ahead) in better
    assert "95% sure: no gamma from 0.006173 on is better by more than" in repr(tuning)
    assert ahead.low > 0.05 * tuning.posterior.mean
    assert tuning.precision_reached is False
    assert "the precision of 5% was not reached: 0, the end of the range, is better by more" in missed
    assert "the best gamma from 0.006173 on is between" in repr(tuning)
    assert "of the lowest regret of any gamma from 0.006173 on" in repr(tuning)
    assert "requested 5%: NOT reached, see the warning" in repr(tuning)


def test_a_comparison_plays_the_end_with_the_noise_of_its_row_and_counts_it():
    counted = []
    compared = bt.compare(
        [bt.Thompson(prior=(1, 1)), bt.UCB1(noise=0.5), bt.Greedy()],
        MANY,
        horizon=HORIZON,
        budget=300,
        search=bt.Search(validate=400),
        simulation=bt.Simulation(common_random_numbers=False),
        run=bt.Run(progress=lambda done, total: counted.append((done, total))),
    )
    (entry,) = (entry for entry in compared.entries if entry.policy == "ucb1(noise=0.5)")
    tuned, end = (lost([value], FIRST_VALIDATION_INSTANCE, 400, 2, False)[0] for value in (entry.params["gamma"], 0.0))
    assert entry.regret.mean == tuned.mean()
    (warning,) = (warning for warning in compared.notices if warning.startswith("ucb1(noise=0.5): "))
    assert told_of(Estimate.from_sample(tuned - end)) in warning
    totals = [total for _, total in counted]
    assert totals == sorted(totals)
    assert [done for done, total in counted if done == total] == [totals[-1]]


def fitted(among, near):
    """A search whose runs lose so much more near the lower end, as a share, than at the best width."""
    library, rng = select_library(among), np.random.default_rng(0)
    search = LockstepSearches(library, 1, 4000, rng)
    while search.runs_left > 0:
        width = library.points[search.ask()]
        mean = 10 * (1 + near * np.exp(-width / 0.1) + width**2)
        search.tell(mean * rng.gamma(400, 1 / 400, width.shape))
    return state_answer(library, search.fit_curves(), among)


@pytest.mark.parametrize(
    ("among", "near", "untried"),
    [
        (LINEAR, 0.5 * STEP_SHARE, (0.0, 2 / 162)),
        (LINEAR, 3 * STEP_SHARE, ()),
        (Range("x", 0.5, 2.0, 1.0, False, "linear"), 0.0, (0.5, 0.5 + 1.5 / 162)),
        (Range("pulls", 1.0, 20.0, 1.0, True, "linear"), 0.0, ()),
        (Range("many", 1.4, 1000.0, 1.0, True, "linear"), 0.0, (2.0, 8.0)),
        (Range("x", 0.01, 1.0, 1.0, False, "log"), 0.0, ()),
        # high * (low / high) is above low here
        (Range("x", 0.0074733462215909, 0.627585836361713, 0.1, False, "log"), 0.0, ()),
    ],
)
def test_an_end_is_named_only_where_it_may_be_near_the_best_and_has_no_runs(among, near, untried):
    assert fitted(among, near).posterior.unexplored == pytest.approx(untried)


class Fake:
    """Plays what it was given."""

    def __init__(self, regrets):
        self.regrets = regrets

    def simulate(self, spec, params, runs, *, first_row, progress):
        self.asked = params.tolist(), runs, first_row
        if self.regrets is None:
            raise SimulationError("no")
        progress(len(runs))
        return self.regrets[None, :, None]


SAME = HoldOutSplit(None, None)
"""A problem of which nothing is held out; the fakes look at no job."""

BELIEF = SearchPosterior(
    mean=10.0,
    low=9.0,
    high=11.0,
    best_low=0.1,
    best_high=0.5,
    regret_gap=1.0,
    near_optimal=(),
    second_dip=(),
    misfit=False,
    confidence=0.95,
    unexplored=(0.0, 0.1),
)


@pytest.mark.parametrize(
    ("ahead", "better", "refuted"), [(-3.0, False, False), (0.09, False, False), (0.11, True, False), (2.0, True, True)]
)
def test_an_end_is_told_only_if_it_is_surely_better_and_refutes_a_precision_if_it_may_be(ahead, better, refuted):
    tuned, noise = np.random.default_rng(1).standard_normal((2, 400))
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    fake, fresh, told = Fake(tuned - ahead + noise), range(7, 407), ProgressCounter(None, 0)
    other = validate_unexplored_end(SAME, BELIEF, tuned, fresh, fake, told, 4)
    assert fake.asked == ([[0.0]], fresh, 4)
    assert (told.done, told.total) == (400, 400)
    assert other[0] == 0
    assert other[1].mean == pytest.approx(ahead)
    assert len(list(note_better_end(LINEAR, other))) == better
    goal, level = Goal(0.15, 0.95), (1.0, Estimate.from_sample(noise))
    assert any(note_missed_precision(goal, BELIEF, level, other)) == refuted
    for high in (1.49, 1.51):  # 15% of 10 are wanted
        assert any(note_missed_precision(goal, BELIEF, level, (0.0, replace(other[1], high=high)))) == (high > 1.5)
    tables = replace(other[1], low=-1.0, high=5.0, unit="table")
    assert "; more tables are needed to know." in next(note_missed_precision(goal, BELIEF, level, (0.0, tables)))
    # What the search did try refutes it only if it is surely better.
    for low in (1.49, 1.51):
        assert any(note_missed_precision(goal, BELIEF, (1.0, replace(other[1], low=low, high=3.0)), None)) == (
            low > 1.5
        )


@pytest.mark.parametrize(
    ("belief", "message"),
    [
        (replace(BELIEF, regret_gap=2.0), "ended before it, by `max_runs` or `max_time`; raise them"),
        (
            replace(BELIEF, regret_gap=2.0, misfit=True),
            "do not fit the curves of the search, and more of them may not help",
        ),
    ],
)
def test_it_is_said_why_a_precision_was_not_reached(belief, message):
    (missed,) = note_missed_precision(
        Goal(0.15, 0.95), belief, (1.0, Estimate.from_standard_error(-1.0, 0.1, 400)), None
    )
    assert message in missed


def always_first(state, setting, step, params, stream):
    return bt.kernel.draw_arm(state, stream) if bt.kernel.uniform(stream) < 0.02 + 0.05 * params[0] else 0


def test_a_precision_is_not_reached_by_runs_too_few_to_tell_that_failures_are_everywhere():
    """Exploring hardly changes anything here: whether the first arm is the good one decides what a run loses."""
    policy = bt.define_policy(
        "first", bt.kernel.scalar(always_first), parameters=[bt.Parameter("g", 0, 1, textbook=0.05)]
    )
    problem = bt.Mixture(((0.9, 0.1), (0.1, 0.9)), (0.7, 0.3))
    tuning = bt.tune(policy, problem, horizon=200, precision=0.05, search=bt.Search(max_runs=1500, validate=1000))
    assert tuning.search_runs == 1500
    assert tuning.precision_reached is False
    assert tuning.posterior.misfit
    assert "NOT reached, see the warning" in repr(tuning)
    assert not any("statements of the search are wrong" in warning for warning in tuning.notices)


def test_without_such_a_value_or_where_it_is_refused_nothing_is_told():
    told = ProgressCounter(None, 5)
    for belief in (None, replace(BELIEF, unexplored=())):
        assert validate_unexplored_end(SAME, belief, np.ones(4), range(4), Fake(np.ones(4)), told) is None
    assert validate_unexplored_end(SAME, BELIEF, np.ones(4), range(4), Fake(None), told) is None
    assert told.total == 5
    assert not list(note_better_end(LINEAR, None))


def test_where_what_plays_breaks_the_study_ends():
    class Broken:
        def simulate(self, *asked, **told):
            raise WorkerLost("the cluster went away")

    with pytest.raises(WorkerLost):
        validate_unexplored_end(SAME, BELIEF, np.ones(4), range(4), Broken(), ProgressCounter(None, 5))
