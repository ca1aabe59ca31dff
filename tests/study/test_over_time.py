"""`regret_over_time`: means, errors and paired differences after several steps."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import t as student

import banditune as bt
from banditune.core.descriptions import OWN_CODE_KEY
from banditune.results.estimates import Estimate
from banditune.results.over_time_results import choose_steps
from banditune.study.search import FIRST_VALIDATION_INSTANCE

PROBLEM = bt.Bernoulli(arms=3)
POLICY = bt.UCB1(noise=0.5)
STEPS = [10, 100, 300]
FRESH = {"horizon": 300, "first_instance": FIRST_VALIDATION_INSTANCE}


def simulate_rounded(policy, params=None, **settings):
    """Regrets on fresh instances, rounded as in every result."""
    return bt.simulate(policy, PROBLEM, params, **FRESH | settings).astype(np.float32).astype(float)


@pytest.fixture(scope="module")
def found():
    """Two rows of UCB1 and the greedy policy."""
    policies, params = [POLICY, bt.Greedy()], [[0.2, 1.0], None]
    return bt.regret_over_time(policies, PROBLEM, params, horizon=300, runs=400, checkpoints=STEPS)


def test_means_errors_and_paired_differences_are_those_of_the_simulated_regrets(found):
    ucb1 = simulate_rounded(POLICY, [0.2, 1.0], runs=400, checkpoints=STEPS)
    samples = [*ucb1, simulate_rounded(bt.Greedy(), runs=400, checkpoints=STEPS)[0]]
    assert [series.label for series in found.series] == [
        "ucb1(noise=0.5), gamma = 0.2",
        "ucb1(noise=0.5), gamma = 1",
        "greedy",
    ]
    for series, sample in zip(found.series, samples, strict=True):
        assert sample.shape == (400, 3)
        for estimates, numbers in (
            (series.regret, sample),
            (series.difference_to_reference, sample - samples[0]),
        ):
            error = np.std(numbers, axis=0, ddof=1) / math.sqrt(400)
            np.testing.assert_allclose(estimates.mean, numbers.mean(axis=0), rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(estimates.se, error, rtol=1e-12)
            reach = student.ppf(0.975, 399) * error
            np.testing.assert_allclose(estimates.high - estimates.mean, reach, rtol=1e-8)
            np.testing.assert_allclose(estimates.mean - estimates.low, reach, rtol=1e-8)
    # The differences are known much better than from separate runs.
    paired = found.series[1].difference_to_reference.se[-1]
    assert paired < 0.95 * math.hypot(found.series[0].regret.se[-1], found.series[1].regret.se[-1])


def test_the_last_step_has_the_regret_of_plain_runs_bit_by_bit(found):
    plain = simulate_rounded(POLICY, [0.2, 1.0], runs=400)
    for row, label in enumerate(["ucb1(noise=0.5), gamma = 0.2", "ucb1(noise=0.5), gamma = 1"]):
        assert found.get_regret(label) == Estimate.from_sample(plain[row])
    difference = found.get_difference("ucb1(noise=0.5), gamma = 1")
    assert difference == Estimate.from_sample(plain[1] - plain[0])


def test_the_regret_of_a_step_does_not_depend_on_later_steps(found):
    shorter = bt.regret_over_time(POLICY, PROBLEM, [0.2, 1.0], horizon=300, runs=400, checkpoints=[5, 10, 100])
    assert [series.label for series in shorter.series] == ["gamma = 0.2", "gamma = 1"]
    for short, full in zip(shorter.series, found.series[:2], strict=True):
        assert (short.regret.mean[1:] == full.regret.mean[:2]).all()
        assert (short.difference_to_reference.se[1:] == full.difference_to_reference.se[:2]).all()
    assert (shorter.runs, shorter.first_instance) == (400, FIRST_VALIDATION_INSTANCE)


@pytest.mark.parametrize("settings", [{"search": bt.Search(validate=60)}, {}])
def test_a_tuning_ends_with_the_regrets_of_its_validation(settings):
    tuning = bt.tune(POLICY, PROBLEM, horizon=300, budget=40, seed=3, **settings)
    over_time = bt.regret_over_time(tuning, checkpoints=STEPS)
    assert [(series.label, series.is_textbook) for series in over_time.series] == [
        ("tuned", False),
        ("textbook", True),
    ]
    assert over_time.runs == tuning.validation_runs
    assert over_time.get_regret("tuned") == tuning.regret
    assert over_time.get_regret("textbook") == tuning.textbook_regret
    assert over_time.get_difference("textbook") == tuning.gain
    assert over_time.setup.problem == tuning.setup.problem


def test_a_tuning_with_independent_noise_and_another_textbook_policy_ends_with_its_regrets():
    own_noise = bt.Simulation(common_random_numbers=False, regret="realised")
    tuning = bt.tune(bt.UCB1(), PROBLEM, horizon=300, budget=40, search=bt.Search(validate=60), simulation=own_noise)
    over_time = bt.regret_over_time(bt.results.from_json(tuning.to_json()), checkpoints=[300])
    assert over_time["tuned"].policy_config["noise"] != over_time["textbook"].policy_config["noise"]
    assert over_time.get_regret("tuned") == tuning.regret
    assert over_time.get_difference("textbook") == tuning.gain


def test_a_tuning_on_campaigns_has_intervals_over_the_campaigns_that_were_held_out():
    rng = np.random.default_rng(0)
    means = rng.integers(1, 9, (12, 3))
    problem = bt.Campaigns([[(int(mean), int(10 - mean)) for mean in row] for row in means])
    tuning = bt.tune(POLICY, problem, horizon=50, budget=40, search=bt.Search(validate=200))
    over_time = bt.regret_over_time(tuning, problem, checkpoints=[10, 50])
    assert tuning.regret.unit == "campaign"
    assert over_time.get_regret("tuned") == tuning.regret
    assert over_time.get_difference("textbook") == tuning.gain
    assert over_time.unit_count == tuning.regret.runs < over_time.runs


def test_a_comparison_ends_with_the_regrets_of_its_table(comparison):
    over_time = bt.regret_over_time(comparison, checkpoints=STEPS)
    assert over_time.policies == tuple(entry.policy for entry in comparison.entries)
    assert [series.label for series in over_time.series if series.policy == "greedy"] == ["greedy"]
    seen = set()
    for entry in comparison.entries:
        label = f"tuned {entry.policy}" if entry.is_tuned else entry.policy
        regret = over_time.get_regret(label)
        if entry.policy.startswith("ts"):
            # Its shortcut draws other numbers where it stops at other steps.
            assert abs(regret.mean - entry.regret.mean) < 4 * math.hypot(regret.se, entry.regret.se)
        else:
            assert regret == entry.regret
            seen.add(entry.policy)
    assert len(seen) == 3
    best = comparison.entries[0]
    assert over_time.reference == f"{'textbook' if best.is_worse_than_textbook else 'tuned'} {best.policy}"
    assert (over_time[over_time.reference].difference_to_reference.mean == 0).all()


def test_numbers_do_not_depend_on_threads_or_a_store(tuning, store):
    expected = bt.regret_over_time(tuning, checkpoints=STEPS, run=bt.Run(workers=1))
    progress = []
    for workers in (2, 3):
        run = bt.Run(workers=workers, store=store, progress=lambda *counts: progress.append(counts))
        assert bt.regret_over_time(tuning, checkpoints=STEPS, run=run) == expected
    assert progress[-1] == (400, 400)


def test_labels_and_steps_are_chosen_by_default_or_given(tuning):
    over_time = bt.regret_over_time(tuning, runs=20, labels=["ours", "UCB1"])
    assert over_time.reference == "ours"
    assert over_time.steps == choose_steps(300)
    same = bt.regret_over_time([POLICY, POLICY], PROBLEM, horizon=50, runs=2, checkpoints=[50])
    assert [series.label for series in same.series] == ["ucb1(noise=0.5)", "ucb1(noise=0.5) (2)"]


@pytest.mark.parametrize("horizon", [1, 2, 7, 300, 1000, 123_456])
def test_default_steps_are_increasing_and_end_at_the_horizon(horizon):
    steps = choose_steps(horizon)
    assert steps[0] == 1
    assert steps[-1] == horizon
    assert list(steps) == sorted(set(steps))
    assert {step for step in (1, 2, 5, 10, 20, 50, 100) if step <= horizon} <= set(steps)
    assert len(steps) <= 110


@pytest.mark.parametrize(
    ("arguments", "settings", "message"),
    [
        ((POLICY, PROBLEM), {}, "`horizon` must be given unless a result determines it"),
        (([], PROBLEM), {"horizon": 50}, "`policies` must be a policy, a sequence of policies"),
        ((3, PROBLEM), {"horizon": 50}, "`policy` must be a policy"),
        (([POLICY, POLICY], PROBLEM, [0.2]), {"horizon": 50}, "must have one element for each of 2 policies"),
        (([POLICY, POLICY], PROBLEM, 0.2), {"horizon": 50}, "must have one element for each of 2 policies"),
        ((POLICY, PROBLEM), {"horizon": 50, "runs": 1}, "`runs` must be a whole number >= 2"),
        ((POLICY, PROBLEM), {"horizon": 50, "checkpoints": [60]}, "must be increasing steps"),
        ((POLICY, PROBLEM, [0.1, 1]), {"horizon": 50, "labels": ["a", "a"]}, "`labels` must be 2 distinct names"),
        ((POLICY, PROBLEM, [0.1, 1]), {"horizon": 50, "labels": "ab"}, "`labels` must be 2 distinct names"),
    ],
)
def test_wrong_arguments_are_refused(arguments, settings, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.regret_over_time(*arguments, **settings)


def test_what_a_result_determines_must_be_left_out(tuning):
    for settings in ({"params": 0.1}, {"horizon": 300}, {"seed": 0}, {"simulation": bt.Simulation()}):
        (name,) = settings
        with pytest.raises(bt.InvalidRequest, match=f"`{name}` must be left out, because the result determines it"):
            bt.regret_over_time(tuning, **settings)
    with pytest.raises(bt.InvalidRequest, match="a tuning or a comparison, but got a Curve"):
        bt.regret_over_time(tuning.curve)


def test_a_result_needs_the_objects_that_it_does_not_hold(tuning):
    own_problem = replace(tuning.setup, problem={**tuning.setup.problem, OWN_CODE_KEY: "mine.py:coins"})
    with pytest.raises(bt.InvalidRequest, match="`problem` must be passed again"):
        bt.regret_over_time(replace(tuning, setup=own_problem))
    with pytest.raises(bt.InvalidRequest, match="`problem` must be the one of the result"):
        bt.regret_over_time(replace(tuning, setup=own_problem), PROBLEM)
    with pytest.raises(bt.InvalidRequest, match="`problem` must be the one of the result"):
        bt.regret_over_time(tuning, bt.Bernoulli(arms=4))
    own_policy = replace(tuning.setup, policy={**tuning.setup.policy, OWN_CODE_KEY: "mine.py:choose"})
    with pytest.raises(bt.InvalidRequest, match=r"must be passed again.*regret_over_time\(\[policy, \.\.\.\]"):
        bt.regret_over_time(replace(tuning, setup=own_policy))
    external = replace(tuning.setup, policy={**tuning.setup.policy, "select_method": "predict"})
    with pytest.raises(bt.InvalidRequest, match="is an object of another library"):
        bt.regret_over_time(replace(tuning, setup=external))


def test_notices_name_the_policy_they_are_about():
    wrong = bt.UCB1(noise=5)
    found = bt.regret_over_time([POLICY, wrong], PROBLEM, horizon=50, runs=20)
    assert [notice.code for notice in found.notices] == ["wrong-noise"]
    assert found.notices[0].startswith("ucb1(noise=5) ")
    alone = bt.regret_over_time(wrong, PROBLEM, horizon=50, runs=20)
    assert alone.notices[0].startswith("ucb1 ")
