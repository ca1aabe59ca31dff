"""`tune`: searches, validation, precision and notices."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

import banditune as bt
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.spec import SimulationSpec
from banditune.storage.store_writer import round_to_float32
from banditune.study.search import FIRST_VALIDATION_INSTANCE, resolve_goal, resolve_max_time
from banditune.study.validation import (
    MAX_VALIDATION_RUNS,
    MIN_VALIDATION_RUNS,
    PILOT_RUNS,
    TARGET_RELATIVE_ERRORS,
    count_runs_needed,
)
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)


def test_validation_uses_the_stated_instances(tuning):
    (value,) = tuning.params.values()
    spec = SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 300)
    tuned, textbook = round_to_float32(
        spec,
        simulate_rows(
            spec, np.array([[value], [1.0]]), range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + 200)
        ),
    )[:, :, 0]
    assert tuning.regret.mean == tuned.mean()
    assert tuning.textbook_regret.mean == textbook.mean()
    assert tuning.gain.mean == pytest.approx(textbook.mean() - tuned.mean())
    assert tuning.gain.se == pytest.approx(np.std(textbook - tuned, ddof=1) / math.sqrt(200))
    assert tuning.gain.low < tuning.gain.mean < tuning.gain.high


def test_the_search_uses_its_stated_number_of_runs(tuning):
    assert tuning.search_runs == sum(sum(trial.runs) for trial in tuning.trials) <= tuning.budget
    assert tuning.validation_runs == 200
    assert tuning.params.keys() == {"gamma"}


def test_tuning_does_not_depend_on_threads(tuning):
    with_one_worker = bt.tune(
        bt.UCB1(noise=0.5),
        PROBLEM,
        horizon=300,
        budget=100,
        include=("curve",),
        search=bt.Search(validate=200),
        run=bt.Run(workers=1),
    )
    assert with_one_worker == tuning


@pytest.mark.parametrize("tuner", [bt.tuners.Uniform(), bt.tuners.SequentialHalving(), bt.NoTeS(precision=0.05)])
def test_every_tuner_tunes_a_policy(tuner):
    result = bt.tune(
        bt.Thompson(prior=(1, 1)),
        PROBLEM,
        horizon=100,
        budget=170,
        search=bt.Search(tuner=tuner, validate=50),
        simulation=bt.Simulation(regret="realised", common_random_numbers=False),
    )
    assert result.search_runs <= 170
    assert result.setup.tuner["name"] == tuner.name


def test_integer_parameters_are_tuned_to_whole_numbers():
    result = bt.tune(bt.ExploreThenCommit(), PROBLEM, horizon=300, budget=60, search=bt.Search(validate=50))
    assert result.params["pulls"] == round(result.params["pulls"])
    assert 1 <= result.params["pulls"] <= 100


def test_a_gain_within_error_is_stated_as_such():
    result = bt.tune(bt.UCB1(noise=0.5), bt.Mixture([(0.5, 0.4)]), horizon=20, budget=12, search=bt.Search(validate=2))
    assert "may be no better" in repr(result)


def test_a_precision_is_reached_or_reported_as_missed():
    result = bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=300, precision=0.2, search=bt.Search(confidence=0.9))
    assert result.precision_reached is True
    assert result.posterior.regret_gap <= 0.2 * result.posterior.mean
    assert result.search_runs < result.budget == 100_000
    assert "; requested 20%: reached)" in repr(result)
    assert "90% sure" in repr(result)
    for limit in ({"max_runs": 30}, {"max_time": 1e-9}):
        (argument,) = limit
        short = bt.tune(
            bt.UCB1(noise=0.5), PROBLEM, **group_settings(horizon=300, precision=0.001, validate=50, **limit)
        )
        assert short.precision_reached is False
        assert f"NOT reached, `{argument}` ended the search" in repr(short)
        assert any("by `max_runs` or `max_time`. Raise them" in warning for warning in short.notices)
        assert short.search_runs <= 30
        assert bt.results.from_json(short.to_json()) == short


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": 0.02, "budget": 100}, "either `budget` or `precision`"),
        ({"precision": 0}, "`0 < precision <= 1`"),
        ({"precision": 2}, "`0 < precision <= 1`"),
        ({"precision": "2%"}, "`precision` must be a finite number (2% is 0.02)"),
        ({"precision": 0.1, "confidence": 1}, "`0.5 <= confidence <= 0.99`"),
        ({"confidence": 2}, "`0.5 <= confidence <= 0.99`"),
        ({"max_runs": 500}, "use `budget`"),
        ({"precision": 0.1, "tuner": bt.NoTeS()}, "such as TwoPart()"),
        ({"max_time": 0}, "`max_time > 0`"),
        ({"max_time": "5"}, "`max_time > 0`"),
        ({"time_limit": math.nan}, "`time_limit > 0`"),
        ({"max_time": 5, "tuner": bt.tuners.Uniform()}, "`max_time` needs a tuner"),
        ({"precision": 0.1, "max_runs": 5}, "`budget >= 12`"),
    ],
)
def test_wrong_precisions_are_refused(options, message):
    with pytest.raises(bt.InvalidRequest) as error:
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, **group_settings(horizon=50, **options))
    assert message in str(error.value)


def test_validation_reaches_its_target_errors():
    result = bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=1000, budget=50)
    assert MIN_VALIDATION_RUNS <= result.validation_runs <= MAX_VALIDATION_RUNS
    shares = (
        result.gain.se / result.gain.mean / TARGET_RELATIVE_ERRORS["gain"],
        result.regret.se / result.regret.mean / TARGET_RELATIVE_ERRORS["regret"],
    )
    assert max(shares) < 1.3  # the pilot runs estimate the variance with an error
    # The pilot runs are not part of the result.
    spec = SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 1000)
    runs = range(
        FIRST_VALIDATION_INSTANCE + PILOT_RUNS, FIRST_VALIDATION_INSTANCE + PILOT_RUNS + result.validation_runs
    )
    regrets = round_to_float32(spec, simulate_rows(spec, [list(result.params.values())], runs))
    assert result.regret.mean == regrets[0].mean()
    assert count_runs_needed(np.array([1.0, 1.0]), 0.1) == 0
    assert count_runs_needed(np.array([-1.0, 1.0]), 0.1) == MAX_VALIDATION_RUNS
    assert count_runs_needed(np.zeros(5), 0.1) == 0
    assert count_runs_needed(np.array([98.0, 102.0]), 0.01) in (8, 9)


def test_numbers_of_numpy_are_accepted():
    assert resolve_goal(bt.TwoPart(), None, np.float32(0.5), bt.Search(confidence=np.float64(0.9))) == (0.5, 0.9)
    assert resolve_max_time(np.int64(5)) == 5
    assert bt.UCB1(noise=np.float32(2)).noise == 2
    for wrong in (np.complex128(1), 10**400, True, "1"):
        with pytest.raises(bt.InvalidRequest, match="`noise` must be a finite number"):
            bt.UCB1(noise=wrong)


def test_a_missed_precision_is_a_notice():
    missed = bt.tune(
        bt.UCB1(noise=0.5), PROBLEM, horizon=200, precision=0.0005, search=bt.Search(max_runs=300, validate=50)
    )
    assert missed.precision_reached is False
    assert any("the precision of 0.05% was not reached" in warning for warning in missed.notices)
    tuning = bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=200, precision=0.5, search=bt.Search(validate=50))
    assert tuning.precision_reached
    assert not any("precision" in warning for warning in tuning.notices)


def test_statements_have_the_given_confidence():
    result = bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=200, budget=50, search=bt.Search(validate=50, confidence=0.8))
    assert result.posterior.confidence == 0.8
    assert "80% sure" in repr(result)
    with_textbook_value = dataclasses.replace(result, textbook_params=result.params)
    assert "which is the textbook default" in repr(with_textbook_value)
    broken = result.to_json().replace('"precision": null', '"precision": "abc"')
    with pytest.raises(bt.InvalidRequest, match="'precision' of a Tuning must be of type float"):
        bt.results.from_json(broken)
