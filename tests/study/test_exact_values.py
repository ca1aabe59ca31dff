"""Exact computations by the verbs and on the command line, and lower bounds of tunings."""

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

TWO_ARMS = bt.Bernoulli(arms=2)


def test_the_optima_of_two_uniform_arms_and_of_the_warm_up_agree_with_known_values():
    best = bt.exact.compute_optimum(TWO_ARMS, horizon=200)
    assert best.reward == pytest.approx(131.094, abs=5e-4)
    assert best.regret == pytest.approx(best.oracle_reward - best.reward)
    assert bt.exact.compute_optimum(bt.problems.two_point_mixture(), horizon=200).regret == pytest.approx(
        2.4805, abs=5e-5
    )
    assert (
        "The best policy has regret 2.239 on average: its reward is 131.0941, that of the best arm 133.3333"
        in format_text(best)
    )


def test_only_the_optimal_policy_has_the_optimal_regret():
    best = bt.exact.compute_optimum(TWO_ARMS, horizon=40).regret
    optimal = bt.exact.compute_exact_regret(bt.exact.make_optimal_policy(TWO_ARMS), TWO_ARMS, horizon=40)
    assert optimal.regret[0] == pytest.approx(best, abs=1e-9)
    assert optimal.lower_bound.regret == best
    assert optimal.lower_bound.is_exact
    for policy in (bt.UCB1(noise=0.5), bt.exact.Gittins(prior=(1, 1)), bt.Greedy()):
        assert bt.exact.compute_exact_regret(policy, TWO_ARMS, horizon=40).regret[0] > best
    assert bt.exact.compute_exact_regret(bt.exact.Gittins(prior=(1, 1)), TWO_ARMS, horizon=40).regret[0] < 1.01 * best


def test_exact_regrets_are_printed_by_value_with_the_textbook_marked():
    result = bt.exact.compute_exact_regret(bt.UCB1(noise=0.5), TWO_ARMS, [0.2, 1.0], horizon=20)
    assert result.parameter == "gamma"
    assert result.values.tolist() == [0.2, 1.0]
    assert "<- textbook" in format_text(result)
    assert "optimum over all policies" in format_text(result)
    assert result.to_pandas()["regret"].tolist() == result.regret.tolist()


def test_exact_computations_report_their_progress():
    progress = []
    bt.exact.compute_exact_regret(
        bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [0.2, 1.0], horizon=3, progress=lambda *step: progress.append(step)
    )
    assert progress == [(step, 6) for step in range(1, 7)]
    progress.clear()
    bt.exact.compute_optimum(bt.problems.two_point_mixture(), horizon=4, progress=lambda *step: progress.append(step))
    assert progress == [(step, 4) for step in range(1, 5)]


def test_a_tuning_contains_the_optimum_where_it_is_quick():
    tuning = bt.tune(bt.UCB1(noise=0.5), TWO_ARMS, horizon=100, budget=100, search=bt.Search(validate=100))
    assert tuning.lower_bound == bt.results.LowerBound(
        regret=bt.exact.compute_optimum(TWO_ARMS, horizon=100).regret,
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
            TWO_ARMS,
            horizon=100,
            budget=100,
            include=("no_lower_bound",),
            search=bt.Search(validate=100),
        ).lower_bound
        is None
    )


def test_a_tuning_contains_a_lower_bound_elsewhere():
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), horizon=500, budget=100, search=bt.Search(validate=100))
    assert not tuning.lower_bound.is_exact
    assert 5 < tuning.lower_bound.regret < tuning.regret.high
    assert "no policy can have a regret below" in format_text(tuning)


def test_a_comparison_contains_a_lower_bound():
    comparison = bt.compare(
        [bt.UCB1(noise=0.5), bt.exact.Gittins(prior=(1, 1))],
        bt.problems.two_point_mixture(),
        horizon=50,
        budget=50,
        search=bt.Search(validate=200),
    )
    assert comparison.lower_bound.is_exact
    assert "optimum over all policies" in format_text(comparison)


def test_an_unknown_lower_bound_is_left_out_or_refused():
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


def test_a_slow_lower_bound_is_not_computed_by_default(monkeypatch):
    monkeypatch.setattr(exact_values, "compute_affordable_lower_bound", lambda *_, **__: pytest.fail("too long"))
    rng = np.random.default_rng(0)
    assert exact_values.find_lower_bound(bt.Bernoulli(arms=3, prior=1 + rng.random((3, 2))), 20_000, None) is None
    assert exact_values.find_lower_bound(bt.Gaussian(arms=3, noise=1e4), 500, None) is None
    assert exact_values.find_lower_bound(bt.Mixture(rng.random((5, 3))), 500, None) is None
    assert exact_values.find_lower_bound(bt.Mixture(((0.6, 0.4),)), 1_000_000, None) is None


def test_a_prior_without_a_lower_bound_does_not_end_a_tuning():
    problem = bt.Bernoulli(arms=2, prior=(0.02, 1))
    assert (
        bt.tune(bt.UCB1(noise=0.5), problem, horizon=50, budget=50, search=bt.Search(validate=50)).lower_bound is None
    )
    with pytest.raises(bt.InvalidRequest, match="shapes"):
        bt.tune(
            bt.UCB1(noise=0.5), problem, horizon=50, budget=50, include=("lower_bound",), search=bt.Search(validate=50)
        )


def test_the_lower_bound_grows_with_the_horizon():
    far = exact_values.find_lower_bound(bt.Bernoulli(arms=3), 10**7, None)
    assert far.regret > exact_values.find_lower_bound(bt.Bernoulli(arms=3), 2_000, None).regret


def test_the_exact_regret_of_a_users_problem_is_refused():
    @dataclass(frozen=True)
    class FixedMeans(bt.Bernoulli):
        name = "fixed"

        def sample(self, size, rng):
            return bt.kernel.Instances(np.tile([0.9, 0.1], (size, 1)))

    with pytest.raises(bt.InvalidRequest, match="bernoulli or mixture"):
        bt.exact.compute_exact_regret(bt.UCB1(noise=0.5), FixedMeans(2), horizon=5)


def test_table_policies_take_the_prior_of_the_problem_on_the_command_line(run_banditune):
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
    informed, uninformed = (
        json.loads(run_banditune(*command, "--json", "--policy", policy).stdout)
        for policy in ("optimal", "optimal:prior=1,1")
    )
    assert informed["regret"][0] == pytest.approx(informed["lower_bound"]["regret"], abs=1e-9)
    assert uninformed["regret"][0] > 1.1 * informed["lower_bound"]["regret"]


def test_a_lower_bound_lists_every_kind_and_the_best():
    result = bt.exact.compute_lower_bound(bt.Bernoulli(arms=5), horizon=200, runs=200, seed=1)
    assert result.lower_bound.regret > 0
    assert len(result.kinds) == len(result.mean) == len(result.se)
    assert "No policy can have a regret below" in format_text(result)
    assert "computed" in format_text(result)
    assert list(result.to_pandas()["kind"]) == list(result.kinds)
    assert result == bt.exact.compute_lower_bound(bt.Bernoulli(arms=5), horizon=200, runs=200, seed=1)


@pytest.mark.parametrize(
    "make",
    [
        lambda: bt.exact.compute_optimum(TWO_ARMS, horizon=10),
        lambda: bt.exact.compute_exact_regret(bt.UCB1(noise=0.5), TWO_ARMS, [0.5], horizon=10),
        lambda: bt.exact.compute_lower_bound(bt.Gaussian(arms=3), horizon=30, runs=50),
        lambda: bt.tune(bt.UCB1(noise=0.5), TWO_ARMS, horizon=50, budget=50, search=bt.Search(validate=50)),
    ],
)
def test_exact_results_are_the_same_after_json(make):
    result = make()
    assert bt.results.from_json(result.to_json()) == result
    assert repr(result)


def test_old_tunings_without_a_lower_bound_can_be_read():
    tuning = bt.tune(bt.UCB1(noise=0.5), TWO_ARMS, horizon=50, budget=50, search=bt.Search(validate=50))
    saved = json.loads(tuning.to_json())
    del saved["lower_bound"]
    assert bt.results.from_json(json.dumps(saved)).lower_bound is None


@pytest.mark.parametrize(
    ("command", "expected"),
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
        (["gittins", "--rounds-left", "2", "--successes", "1", "--failures", "1", "--prior", "2,2"], "0.5"),
    ],
)
def test_exact_commands_print_their_results(run_banditune, command, expected):
    process = run_banditune("exact", *command)
    assert process.returncode == 0, process.stderr
    assert expected in process.stdout


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["optimum", "--problem", "bernoulli", "--arms", "3", "--horizon", "9"], "2 arms"),
        (["optimum", "--problem", "bernoulli", "--arms", "2", "--horizon", "9000"], "largest horizon that fits"),
        (
            ["regret", "--policy", "gaussian-ts", "--problem", "warm-up", "--horizon", "9"],
            "need a policy without random numbers",
        ),
        (["bound", "--problem", "linear", "--arms", "3", "--horizon", "9"], "bernoulli or gaussian"),
        (["gittins"], "either --rounds-left or --discount"),
    ],
)
def test_wrong_exact_commands_are_errors_of_one_line(run_banditune, command, message):
    process = run_banditune("exact", *command)
    assert process.returncode == 2
    assert message in process.stderr
    assert process.stderr.count("\n") == 1


def test_tune_prints_the_lower_bound_as_json(run_banditune):
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
    assert json.loads(run_banditune(*command, "--json").stdout)["lower_bound"]["is_exact"]
    assert json.loads(run_banditune(*command, "--no-lower-bound", "--json").stdout)["lower_bound"] is None


def test_a_weak_bound_states_its_horizon_and_is_no_key_figure(monkeypatch):
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
    (label,) = [mark.label for mark in make_tuning_plot(tuning, "gamma").marks if "lower bound" in mark.label]
    assert label.startswith(f"lower bound: {tuning.lower_bound.regret:.4g} (")
    assert label.endswith(", weak)")
    short = bt.tune(bt.UCB1(noise=0.5), problem, **group_settings(horizon=200, **options))
    assert short.lower_bound.horizon_limit is None
    assert "weak bound" not in format_text(short)
    assert any("lower bound" in figure[0] for figure in build_report_content(short).key_figures)
    assert short.lower_bound.explain_weakness(4 * short.lower_bound.regret) == "it is less than a third of that regret"
    comparison = bt.compare([bt.UCB1(noise=0.5), bt.Greedy()], problem, **group_settings(horizon=1000, **options))
    assert not any("lower bound" in figure[0] for figure in build_report_content(comparison).key_figures)


def test_a_tighter_bound_is_used_where_it_is_affordable():
    problem = bt.Bernoulli(arms=10)
    quick = exact_values.find_lower_bound(problem, 200, None)
    certain = BoundCalculator(problem, 200).certain
    assert (quick.method, quick.confidence) == ("coupled", 0.95)
    assert certain.value < quick.regret < 9.2  # the regret of the Gittins index
    assert exact_values.find_lower_bound(problem, 5_000, None).method == "one arm"
    assert exact_values.find_lower_bound(bt.Gaussian(arms=2), 100, None).method == "value"


def test_an_affordable_bound_holds_at_its_confidence():
    best = bt.exact.compute_optimum(TWO_ARMS, horizon=20).regret
    bounds = [BoundCalculator(TWO_ARMS, 20, seed).select_affordable(1e7) for seed in range(40)]
    assert {bound.name for bound in bounds} == {"coupled"}
    above = sum(bound.value > best for bound in bounds)
    assert above / 40 <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 40)
