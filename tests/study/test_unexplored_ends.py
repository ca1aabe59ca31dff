"""The lower end of a range, where a search makes no run: validation simulates it beside the answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.core.errors import SimulationError, WorkerLost
from banditune.core.space import Range, Space
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

MANY_ARMS, HORIZON = bt.Bernoulli(arms=30), 120
"""With so many arms, exploring hardly pays. UCB1 of width 0 stays with the first arm that never failed."""

LINEAR = Range("gamma", 0.0, 2.0, 1.0, False, "linear")


def compute_regrets(values, first=0, runs=1000, first_row=0, common=True):
    spec = SimulationSpec(bt.UCB1(noise=0.5), MANY_ARMS, HORIZON, common_random_numbers=common)
    regrets = simulate_rows(spec, np.array(values)[:, None], range(first, first + runs), first_row=first_row)
    return round_to_float32(spec, regrets)[:, :, 0]


def format_advantage(ahead):
    return (
        f"gamma = 0, the end of its range, has {ahead.mean:.4g} (95%: {ahead.low:.4g} to {ahead.high:.4g}) less regret"
    )


def test_a_better_end_of_the_range_is_reported():
    mean_regrets = compute_regrets([0.0, 1 / 162, 0.1, 0.2]).mean(axis=1)
    assert mean_regrets[0] < 0.95 * mean_regrets[1:].min()
    tuning = bt.tune(bt.UCB1(noise=0.5), MANY_ARMS, horizon=HORIZON, precision=0.05, search=bt.Search(validate=400))
    (value,) = tuning.params.values()
    assert value > 0
    tuned, end = compute_regrets([value, 0.0], FIRST_VALIDATION_INSTANCE, 400)
    ahead = Estimate.from_sample(tuned - end)
    better, missed = tuning.notices
    assert format_advantage(ahead) in better
    assert "95% sure: no gamma from 0.006173 on is better by more than" in repr(tuning)
    assert ahead.low > 0.05 * tuning.posterior.mean
    assert tuning.precision_reached is False
    assert "the precision of 5% was not reached: 0, the end of the range, is better by more" in missed
    assert "the best gamma from 0.006173 on is between" in repr(tuning)
    assert "of the lowest regret of any gamma from 0.006173 on" in repr(tuning)
    assert "requested 5%: NOT reached, see the warning" in repr(tuning)


def test_a_comparison_simulates_the_end_with_the_random_numbers_of_its_row():
    progress = []
    comparison = bt.compare(
        [bt.Thompson(prior=(1, 1)), bt.UCB1(noise=0.5), bt.Greedy()],
        MANY_ARMS,
        horizon=HORIZON,
        budget=300,
        search=bt.Search(validate=400),
        simulation=bt.Simulation(common_random_numbers=False),
        run=bt.Run(progress=lambda done, total: progress.append((done, total))),
    )
    (entry,) = (entry for entry in comparison.entries if entry.policy == "ucb1(noise=0.5)")
    tuned, end = (
        compute_regrets([value], FIRST_VALIDATION_INSTANCE, 400, 2, False)[0] for value in (entry.params["gamma"], 0.0)
    )
    assert entry.regret.mean == tuned.mean()
    (warning,) = (warning for warning in comparison.notices if warning.startswith("ucb1(noise=0.5): "))
    assert format_advantage(Estimate.from_sample(tuned - end)) in warning
    totals = [total for _, total in progress]
    assert totals == sorted(totals)
    assert [done for done, total in progress if done == total] == [totals[-1]]


def state_search(among, share_at_end):
    """A search whose runs have a higher regret near the lower end, by a share of the lowest regret."""
    library, rng = select_library(among), np.random.default_rng(0)
    search = LockstepSearches(library, 1, 4000, rng)
    while search.runs_left > 0:
        width = library.points[search.ask()]
        mean = 10 * (1 + share_at_end * np.exp(-width / 0.1) + width**2)
        search.tell(mean * rng.gamma(400, 1 / 400, width.shape))
    return state_answer(library, search.fit_curves(), among)


@pytest.mark.parametrize(
    ("among", "near", "unexplored"),
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
def test_an_end_is_unexplored_if_it_may_be_near_the_best(among, near, unexplored):
    assert state_search(among, near).posterior.unexplored == pytest.approx(unexplored)


class FakeSimulator:
    """Returns given regrets."""

    def __init__(self, regrets):
        self.regrets = regrets

    def simulate(self, spec, params, runs, *, first_row, progress):
        self.arguments = params.tolist(), runs, first_row
        if self.regrets is None:
            raise SimulationError("no")
        progress(len(runs))
        return self.regrets[None, :, None]


NO_SPLIT = HoldOutSplit(None, None)
"""No problem is held out. The fake simulator does not read the problem."""

POSTERIOR = SearchPosterior(
    mean=10.0,
    low=9.0,
    high=11.0,
    best_intervals={"gamma": (0.1, 0.5)},
    regret_gap=1.0,
    near_optimal=(),
    second_dip=(),
    misfit=False,
    confidence=0.95,
    unexplored=(0.0, 0.1),
)


@pytest.mark.parametrize(
    ("ahead", "is_better", "is_refuted"),
    [(-3.0, False, False), (0.09, False, False), (0.11, True, False), (2.0, True, True)],
)
def test_an_end_is_reported_if_it_is_significantly_better(ahead, is_better, is_refuted):
    tuned, noise = np.random.default_rng(1).standard_normal((2, 400))
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    fake, runs, progress = FakeSimulator(tuned - ahead + noise), range(7, 407), ProgressCounter(None, 0)
    end = validate_unexplored_end(NO_SPLIT, POSTERIOR, tuned, runs, fake, progress, 4)
    assert fake.arguments == ([[0.0]], runs, 4)
    assert (progress.done, progress.total) == (400, 400)
    assert end[0] == 0
    assert end[1].mean == pytest.approx(ahead)
    assert len(list(note_better_end(Space((LINEAR,)), end))) == is_better
    goal, level = Goal(0.15, 0.95), ((1.0,), Estimate.from_sample(noise))
    assert any(note_missed_precision(goal, POSTERIOR, level, end)) == is_refuted
    for high in (1.49, 1.51):  # 15% of 10 are wanted
        assert any(note_missed_precision(goal, POSTERIOR, level, (0.0, replace(end[1], high=high)))) == (high > 1.5)
    tables = replace(end[1], low=-1.0, high=5.0, unit="table")
    assert "More tables are needed to know." in next(note_missed_precision(goal, POSTERIOR, level, (0.0, tables)))
    # A value that the search tried refutes the precision only if it is surely better.
    for low in (1.49, 1.51):
        assert any(note_missed_precision(goal, POSTERIOR, ((1.0,), replace(end[1], low=low, high=3.0)), None)) == (
            low > 1.5
        )


@pytest.mark.parametrize(
    ("posterior", "message"),
    [
        (replace(POSTERIOR, regret_gap=2.0), "the search was ended by `max_runs` or `max_time`. Raise them"),
        (
            replace(POSTERIOR, regret_gap=2.0, misfit=True),
            "do not fit the curves of the search, and more of them may not help",
        ),
    ],
)
def test_the_notice_states_why_a_precision_was_not_reached(posterior, message):
    (missed,) = note_missed_precision(
        Goal(0.15, 0.95), posterior, ((1.0,), Estimate.from_standard_error(-1.0, 0.1, 400)), None
    )
    assert message in missed


def choose_first_mostly(state, setting, step, params, stream):
    return bt.kernel.draw_arm(state, stream) if bt.kernel.uniform(stream) < 0.02 + 0.05 * params[0] else 0


def test_a_precision_is_not_reached_where_failures_are_everywhere():
    """Exploring hardly changes the regret here. It depends on whether the first arm is the better one."""
    policy = bt.define_policy(
        "first", bt.kernel.scalar(choose_first_mostly), parameters=[bt.Parameter("g", 0, 1, textbook=0.05)]
    )
    problem = bt.Mixture(((0.9, 0.1), (0.1, 0.9)), (0.7, 0.3))
    tuning = bt.tune(policy, problem, horizon=200, precision=0.05, search=bt.Search(max_runs=1500, validate=1000))
    assert tuning.search_runs == 1500
    assert tuning.precision_reached is False
    assert tuning.posterior.misfit
    assert "NOT reached, see the warning" in repr(tuning)
    assert not any("statements of the search are wrong" in warning for warning in tuning.notices)


def test_without_an_unexplored_end_nothing_is_reported():
    progress = ProgressCounter(None, 5)
    for posterior in (None, replace(POSTERIOR, unexplored=())):
        assert (
            validate_unexplored_end(NO_SPLIT, posterior, np.ones(4), range(4), FakeSimulator(np.ones(4)), progress)
            is None
        )
    assert validate_unexplored_end(NO_SPLIT, POSTERIOR, np.ones(4), range(4), FakeSimulator(None), progress) is None
    assert progress.total == 5
    assert not list(note_better_end(Space((LINEAR,)), None))


def test_a_failing_simulator_ends_the_study():
    class FailingSimulator:
        def simulate(self, *arguments, **options):
            raise WorkerLost("the cluster went away")

    with pytest.raises(WorkerLost):
        validate_unexplored_end(NO_SPLIT, POSTERIOR, np.ones(4), range(4), FailingSimulator(), ProgressCounter(None, 5))
