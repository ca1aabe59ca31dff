"""`curve`: its grid, its best value and its progress."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditune as bt
from banditune.core.space import Range
from banditune.study.regret_curves import refine_grid
from helpers.example_policies import choose_by_threshold

PROBLEM = bt.Bernoulli(arms=3)


def test_a_curve_is_denser_where_it_bends():
    curve = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), horizon=2000, runs=300)
    near = np.sum(np.abs(curve.values - curve.best_value) < 0.15)
    far = np.sum(np.abs(curve.values - 0.85) <= 0.15)
    assert len(curve.values) == 33
    assert near > 1.3 * far
    assert curve.best_value in curve.values
    assert curve.mean[list(curve.values).index(curve.best_value)] == curve.mean.min()
    assert not curve.unimodality.rejected


def test_refinement_adds_the_centres_of_curved_intervals():
    units = np.linspace(0, 1, 9)
    finer = refine_grid(units, np.abs(units - 0.5) + 0.1, 2)
    assert sorted(set(finer) - set(units)) == [0.4375, 0.5625]


def test_a_curve_of_an_integer_parameter_has_no_value_twice():
    curve = bt.curve(bt.ExploreThenCommit(), PROBLEM, horizon=60, runs=50)
    assert (np.diff(curve.values) > 0).all()
    assert (curve.values == np.round(curve.values)).all()
    assert curve.log_scale


def test_given_values_are_simulated_in_order():
    curve = bt.curve(bt.UCB1(noise=0.5), PROBLEM, [0.5, 0.1, 0.1], horizon=50, runs=20)
    assert curve.values.tolist() == [0.1, 0.5]
    assert len(bt.curve(bt.Greedy(), PROBLEM, [0.0, 1.0], horizon=50, runs=20).values) == 2


def test_the_regret_of_the_best_value_is_unbiased():
    """The lowest of the means is too low. `best_regret` is not."""
    problem, differences, lowest = bt.Bernoulli(arms=3), [], []
    for seed in range(60):
        curve = bt.curve(bt.UCB1(noise=0.5), problem, np.linspace(0.05, 0.4, 8), horizon=200, runs=60, seed=seed)
        truth = bt.simulate(
            bt.UCB1(noise=0.5), problem, [curve.best_value], horizon=200, runs=4000, seed=1000 + seed
        ).mean()
        differences.append(curve.best_regret.mean - truth)
        lowest.append(curve.mean.min() - truth)
    assert abs(np.mean(differences)) < 4 * np.std(differences) / math.sqrt(60)
    assert np.mean(lowest) < -2 * np.std(lowest) / math.sqrt(60)


def test_separate_random_numbers_differ_between_values_and_policies():
    @bt.kernel.scalar
    def choose_at_random(state, setting, step, params, stream):
        return bt.kernel.draw_arm(state, stream)

    policy = bt.define_policy("ignores", choose_at_random, parameters=[bt.Parameter("x", 0, 1, textbook=0)])
    common, separate = (
        bt.curve(
            policy, PROBLEM, horizon=20, runs=40, simulation=bt.Simulation(common_random_numbers=noise == "shared")
        )
        for noise in ("shared", "own")
    )
    assert len(set(common.mean)) == 1
    assert len(set(separate.mean)) == len(separate.values)
    difference = (
        bt.compare(
            [bt.UCB1(noise=0.5), bt.UCB1(noise=0.5)],
            PROBLEM,
            horizon=50,
            budget=12,
            search=bt.Search(validate=50),
            simulation=bt.Simulation(common_random_numbers=False),
        )
        .entries[1]
        .difference_to_best
    )
    assert difference.se > 0


def test_names_with_dollars_and_other_alphabets_can_be_plotted(tmp_path):
    policy = bt.define_policy("$\\foo$ 漢字", choose_by_threshold, parameters=[bt.Parameter("$a_b$", 0, 1, textbook=1)])
    curve = bt.curve(policy, bt.Bernoulli(arms=2, names=["$\\x$", "漢"]), [0.1, 1], horizon=20, runs=9)
    curve.plot(tmp_path / "curve.svg")
    assert "$a_b$" in (tmp_path / "curve.svg").read_text()


def test_log_ranges_map_the_unit_interval_evenly_in_the_logarithm():
    among = Range("x", 1.0, 100.0, 1.0, False, "log")
    assert [among.scale_from_unit(u) for u in (0, 0.5, 1)] == pytest.approx([1, 10, 100])


def test_values_are_rounded_to_whole_numbers_within_the_range():
    policy = bt.define_policy(
        "whole", choose_by_threshold, parameters=[bt.Parameter("m", 1, 3.7, textbook=2, integer=True)]
    )
    assert bt.curve(policy, PROBLEM, [1.2, 3.6], horizon=20, runs=4).values.tolist() == [1, 3]


@pytest.mark.parametrize("values", [[0.5], None])
def test_the_progress_of_a_curve_counts_all_of_its_runs(values, tmp_path):
    progress = []
    bt.curve(
        bt.UCB1(noise=0.5), PROBLEM, values, horizon=50, runs=30, run=bt.Run(progress=lambda *now: progress.append(now))
    )
    done, totals = zip(*progress, strict=True)
    assert list(done) == sorted(done)
    assert done[-1] == totals[-1] == (60 if values else 34 * 30)
    assert done.count(totals[-1]) == 1
