"""What is computed, as users meet it: the verbs, the floor under a tuning, the command line."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

import banditune as bt
from banditune.exact import lower_bounds
from banditune.exact.lower_bounds import BoundCalculator
from banditune.reports.plain_text import format_text
from banditune.reports.report_builder import build_report_content
from banditune.reports.result_plots import make_tuning_plot
from banditune.study import exact_values
from helpers.settings import group_settings

TWO = bt.Bernoulli(arms=2)


def test_the_optimum_of_two_uniform_arms_and_of_the_warm_up():
    best = bt.exact.compute_optimum(TWO, horizon=200)
    assert best.reward == pytest.approx(131.094, abs=5e-4)
    assert best.regret == pytest.approx(best.oracle_reward - best.reward)
    assert bt.exact.compute_optimum(bt.problems.two_point_mixture(), horizon=200).regret == pytest.approx(
        2.4805, abs=5e-5
    )
    assert "The best policy has regret 2.239 on average: it earns 131.0941 of the 133.3333" in format_text(best)


def test_no_policy_is_better_than_the_optimum_and_the_optimal_one_is_as_good():
    best = bt.exact.compute_optimum(TWO, horizon=40).regret
    optimal = bt.exact.compute_exact_regret(bt.exact.make_optimal_policy(TWO), TWO, horizon=40)
    assert optimal.regret[0] == pytest.approx(best, abs=1e-9)
    assert optimal.lower_bound.regret == best
    assert optimal.lower_bound.is_exact
    for policy in (bt.UCB1(noise=0.5), bt.exact.Gittins(prior=(1, 1)), bt.Greedy()):
        assert bt.exact.compute_exact_regret(policy, TWO, horizon=40).regret[0] > best
    assert bt.exact.compute_exact_regret(bt.exact.Gittins(prior=(1, 1)), TWO, horizon=40).regret[0] < 1.01 * best


def test_exact_regrets_are_told_by_value_with_theory_marked():
    found = bt.exact.compute_exact_regret(bt.UCB1(noise=0.5), TWO, [0.2, 1.0], horizon=20)
    assert found.parameter == "gamma"
    assert found.values.tolist() == [0.2, 1.0]
    assert "<- textbook" in format_text(found)
    assert "optimum over all policies" in format_text(found)
    assert found.to_pandas()["regret"].tolist() == found.regret.tolist()


def test_exact_computations_tell_their_steps():
    told = []
    bt.exact.compute_exact_regret(
        bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [0.2, 1.0], horizon=3, progress=lambda *step: told.append(step)
    )
    assert told == [(step, 6) for step in range(1, 7)]
    told.clear()
    bt.exact.compute_optimum(bt.problems.two_point_mixture(), horizon=4, progress=lambda *step: told.append(step))
    assert told == [(step, 4) for step in range(1, 5)]


def test_a_tuning_stands_on_the_optimum_where_that_is_quick():
    tuning = bt.tune(bt.UCB1(noise=0.5), TWO, horizon=100, budget=100, search=bt.Search(validate=100))
    assert tuning.lower_bound == bt.results.LowerBound(
        regret=bt.exact.compute_optimum(TWO, horizon=100).regret,
        is_exact=True,
        confidence=1.0,
        method="dynamic programming",
    )
    assert f"optimum over all policies: {tuning.lower_bound.regret:.4g} (exact, by dynamic programming)" in format_text(
        tuning
    )
    assert (
        bt.tune(
            bt.UCB1(noise=0.5),
            TWO,
            horizon=100,
            budget=100,
            include=("no_lower_bound",),
            search=bt.Search(validate=100),
        ).lower_bound
        is None
    )


def test_a_tuning_stands_on_a_bound_elsewhere():
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), horizon=500, budget=100, search=bt.Search(validate=100))
    assert not tuning.lower_bound.is_exact
    assert 5 < tuning.lower_bound.regret < tuning.regret.high
    assert "no policy can have a regret below" in format_text(tuning)


def test_a_comparison_has_a_floor_too():
    comparison = bt.compare(
        [bt.UCB1(noise=0.5), bt.exact.Gittins(prior=(1, 1))],
        bt.problems.two_point_mixture(),
        horizon=50,
        budget=50,
        search=bt.Search(validate=200),
    )
    assert comparison.lower_bound.is_exact
    assert "optimum over all policies" in format_text(comparison)


def test_a_floor_that_is_not_known_is_left_out_or_refused():
    assert (
        bt.tune(
            bt.UCB1(noise=0.5), bt.BetaRewards(arms=2), horizon=50, budget=50, search=bt.Search(validate=50)
        ).lower_bound
        is None
    )
    with pytest.raises(bt.InvalidRequest, match="leave out `lower_bound`"):
        bt.tune(
            bt.UCB1(noise=0.5),
            bt.BetaRewards(arms=2),
            horizon=50,
            budget=50,
            include=("lower_bound",),
            search=bt.Search(validate=50),
        )


def test_a_floor_is_not_computed_unasked_where_it_takes_long(monkeypatch):
    monkeypatch.setattr(exact_values, "compute_affordable_lower_bound", lambda *_, **__: pytest.fail("too long"))
    rng = np.random.default_rng(0)
    assert exact_values.find_lower_bound(bt.Bernoulli(arms=3, prior=1 + rng.random((3, 2))), 20_000, None) is None
    assert exact_values.find_lower_bound(bt.Gaussian(arms=3, noise=1e4), 500, None) is None
    assert exact_values.find_lower_bound(bt.Mixture(rng.random((5, 3))), 500, None) is None
    assert exact_values.find_lower_bound(bt.Mixture(((0.6, 0.4),)), 1_000_000, None) is None


def test_a_prior_that_no_integral_takes_does_not_end_a_tuning():
    problem = bt.Bernoulli(arms=2, prior=(0.02, 1))
    assert (
        bt.tune(bt.UCB1(noise=0.5), problem, horizon=50, budget=50, search=bt.Search(validate=50)).lower_bound is None
    )
    with pytest.raises(bt.InvalidRequest, match="shapes"):
        bt.tune(
            bt.UCB1(noise=0.5), problem, horizon=50, budget=50, include=("lower_bound",), search=bt.Search(validate=50)
        )


def test_a_longer_horizon_has_no_lower_floor():
    far = exact_values.find_lower_bound(bt.Bernoulli(arms=3), 10**7, None)
    assert far.regret > exact_values.find_lower_bound(bt.Bernoulli(arms=3), 2_000, None).regret


def test_the_exact_regret_of_a_problem_that_draws_otherwise_is_refused():
    @dataclass(frozen=True)
    class Fixed(bt.Bernoulli):
        name = "fixed"

        def sample(self, size, rng):
            return bt.kernel.Instances(np.tile([0.9, 0.1], (size, 1)))

    with pytest.raises(bt.InvalidRequest, match="bernoulli or mixture"):
        bt.exact.compute_exact_regret(bt.UCB1(noise=0.5), Fixed(2), horizon=5)


def test_table_policies_know_the_problems_prior_on_the_command_line(banditune):
    command = [
        "exact",
        "regret",
        "--problem",
        "bernoulli",
        "--arms",
        "2",
        "--prior",
        "1,1;5,1",
        "--horizon",
        "30",
        "--json",
    ]
    knowing, other = (
        json.loads(banditune(*command, "--json", "--policy", policy).stdout)
        for policy in ("optimal", "optimal:prior=1,1")
    )
    assert knowing["regret"][0] == pytest.approx(knowing["lower_bound"]["regret"], abs=1e-9)
    assert other["regret"][0] > 1.1 * knowing["lower_bound"]["regret"]


def test_a_bound_tells_every_kind_and_the_best():
    found = bt.exact.compute_lower_bound(bt.Bernoulli(arms=5), horizon=200, runs=200, seed=1)
    assert found.lower_bound.regret > 0
    assert len(found.kinds) == len(found.mean) == len(found.se)
    assert "No policy can have a regret below" in format_text(found)
    assert "computed" in format_text(found)
    assert list(found.to_pandas()["kind"]) == list(found.kinds)
    assert found == bt.exact.compute_lower_bound(bt.Bernoulli(arms=5), horizon=200, runs=200, seed=1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bt.exact.compute_optimum(TWO, horizon=10),
        lambda: bt.exact.compute_exact_regret(bt.UCB1(noise=0.5), TWO, [0.5], horizon=10),
        lambda: bt.exact.compute_lower_bound(bt.Gaussian(arms=3), horizon=30, runs=50),
        lambda: bt.tune(bt.UCB1(noise=0.5), TWO, horizon=50, budget=50, search=bt.Search(validate=50)),
    ],
)
def test_results_go_to_json_and_back(make):
    result = make()
    assert bt.results.from_json(result.to_json()) == result
    assert repr(result)


def test_a_tuning_that_was_saved_before_there_were_floors_can_be_read():
    tuning = bt.tune(bt.UCB1(noise=0.5), TWO, horizon=50, budget=50, search=bt.Search(validate=50))
    saved = json.loads(tuning.to_json())
    del saved["lower_bound"]
    assert bt.results.from_json(json.dumps(saved)).lower_bound is None


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["optimum", "--problem", "warm-up", "--horizon", "200"], "has regret 2.481 on average"),
        (
            ["regret", "--policy", "ts", "--problem", "bernoulli", "--arms", "2", "--horizon", "10", "--values", "0,1"],
            "1  ",
        ),
        (
            ["bound", "--problem", "gaussian", "--arms", "3", "--horizon", "50", "--runs", "100"],
            "No policy can have a regret below",
        ),
        (["gittins", "--discount", "0.9"], "0.70288919"),
        (["gittins", "--left", "2", "--successes", "1", "--failures", "1", "--prior", "2,2"], "0.5"),
    ],
)
def test_the_command_line_computes(banditune, command, words):
    process = banditune("exact", *command)
    assert process.returncode == 0, process.stderr
    assert words in process.stdout


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["optimum", "--problem", "bernoulli", "--arms", "3", "--horizon", "9"], "2 arms"),
        (["optimum", "--problem", "bernoulli", "--arms", "2", "--horizon", "9000"], "largest horizon that fits"),
        (
            ["regret", "--policy", "gaussian-ts", "--problem", "warm-up", "--horizon", "9"],
            "must draw no random numbers",
        ),
        (["bound", "--problem", "linear", "--arms", "3", "--horizon", "9"], "bernoulli or gaussian"),
        (["gittins"], "either --left or --discount"),
    ],
)
def test_what_cannot_be_computed_is_a_sentence(banditune, command, words):
    process = banditune("exact", *command)
    assert process.returncode == 2
    assert words in process.stderr
    assert process.stderr.count("\n") == 1


def test_the_command_line_tells_the_floor_as_json(banditune):
    command = [
        "tune",
        "--policy",
        "ucb1",
        "--problem",
        "warm-up",
        "--horizon",
        "50",
        "--budget",
        "50",
        "--validate",
        "50",
    ]
    assert json.loads(banditune(*command, "--json").stdout)["lower_bound"]["is_exact"]
    assert json.loads(banditune(*command, "--no-lower-bound", "--json").stdout)["lower_bound"] is None


def test_a_bound_that_stops_growing_says_where_and_is_no_key_figure(monkeypatch):
    monkeypatch.setattr(lower_bounds, "BOUND_HORIZON_LIMIT", 500)
    problem, options = bt.Bernoulli(arms=3), {"budget": 50, "validate": 50}
    tuning = bt.tune(bt.UCB1(noise=0.5), problem, **group_settings(horizon=1000, **options))
    assert tuning.lower_bound.horizon_limit == 500
    assert "a weak bound: it stops growing at horizon 500" in format_text(tuning)
    assert "how much of the difference can be gained is not known" in format_text(tuning)
    assert not any("lower bound" in figure[0] for figure in build_report_content(tuning).key_figures)
    bound = bt.exact.compute_lower_bound(bt.Bernoulli(arms=2), horizon=1000, runs=10)
    assert "The bound is that of horizon 500" in format_text(bound)
    assert build_report_content(bound).key_figures[0][2].endswith(", of horizon 500")
    (label,) = [mark.label for mark in make_tuning_plot(tuning).marks if "lower bound" in mark.label]
    assert label.startswith(f"lower bound: {tuning.lower_bound.regret:.4g} (")
    assert label.endswith(", weak)")
    near = bt.tune(bt.UCB1(noise=0.5), problem, **group_settings(horizon=200, **options))
    assert near.lower_bound.horizon_limit is None
    assert "weak bound" not in format_text(near)
    assert any("lower bound" in figure[0] for figure in build_report_content(near).key_figures)
    assert near.lower_bound.explain_weakness(4 * near.lower_bound.regret) == "it is less than a third of that regret"
    compared = bt.compare([bt.UCB1(noise=0.5), bt.Greedy()], problem, **group_settings(horizon=1000, **options))
    assert not any("lower bound" in figure[0] for figure in build_report_content(compared).key_figures)


def test_a_tighter_bound_is_taken_where_it_is_affordable():
    problem = bt.Bernoulli(arms=10)
    quick = exact_values.find_lower_bound(problem, 200, None)
    sure = BoundCalculator(problem, 200).certain
    assert (quick.method, quick.confidence) == ("together", 0.95)
    assert sure.value < quick.regret < 9.2  # what the Gittins index loses
    assert exact_values.find_lower_bound(problem, 5_000, None).method == "one arm"
    assert exact_values.find_lower_bound(bt.Gaussian(arms=2), 100, None).method == "value"


def test_an_affordable_bound_is_above_the_optimum_no_more_often_than_it_says():
    best = bt.exact.compute_optimum(TWO, horizon=20).regret
    found = [BoundCalculator(TWO, 20, seed).select_affordable(1e7) for seed in range(40)]
    assert {bound.name for bound in found} == {"together"}
    above = sum(bound.value > best for bound in found)
    assert above / 40 <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 40)
