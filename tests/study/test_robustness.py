"""Robustness: the regret of a tuned value on other problems than the expected one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

import banditune as bt
from banditune.core.problem import Instances
from banditune.core.space import Range, Space
from banditune.core.tuner import SearchAnswer, Trial, Tuner
from banditune.problems.problem_variants import list_variants
from banditune.reports.robustness_statements import format_excess_share, state_robustness
from banditune.results.estimates import Estimate
from banditune.results.robustness_results import Scenario
from banditune.results.search_results import SearchPosterior
from banditune.simulation.instances import draw_instances
from banditune.study.scenario_tuning import note_gap_doubts
from banditune.study.time_estimates import format_duration
from helpers.settings import group_settings


def compute_moments(problem):
    """Mean and standard deviation of the means that a problem draws."""
    means = np.concatenate([draw_instances(problem, 0, block).means.ravel() for block in range(30)])
    return means.mean(), means.std()


@pytest.mark.parametrize(
    "problem",
    [bt.Bernoulli(arms=4, prior=(20, 60)), bt.BetaRewards(arms=4, prior=(20, 60)), bt.Gaussian(arms=4, prior=(3, 2))],
)
def test_variants_shift_and_spread_the_means_as_stated(problem):
    variants = dict(list_variants(problem))
    mean, sd = compute_moments(problem)
    expected = {"lower by a": (mean - sd, sd), "higher by a": (mean + sd, sd)}
    expected |= {"half as far": (mean, sd / 2), "twice as far": (mean, 2 * sd)}
    for description, (centre, spread) in expected.items():
        (variant,) = [problem for name, problem in variants.items() if description in name]
        assert compute_moments(variant) == pytest.approx((centre, spread), rel=0.05, abs=0.02 * sd)
    assert {problem.arms for name, problem in variants.items() if "as many arms" in name} == {2, 8}


def test_per_arm_priors_and_features_keep_their_shape():
    per_arm = dict(list_variants(bt.Bernoulli(arms=3, prior=[(1, 2), (3, 4), (5, 6)])))
    assert per_arm["twice as many arms (6)"].prior[3] == (1.0, 2.0)
    features = np.array([[1.0, 0.5], [1.0, -0.5]])
    with_features = dict(list_variants(bt.Logistic(features=features, prior=([-1, 0], np.diag([0.5, 0.1])))))
    assert not any("arms" in description for description in with_features)
    doubled = with_features["weights of theta twice as far apart"]
    np.testing.assert_allclose(doubled.prior[1], np.diag([2.0, 0.4]))
    linear = dict(list_variants(bt.Linear(arms=4, dims=2)))
    assert linear["twice the noise"].noise == 1.0
    assert list(list_variants(bt.RewardTable(np.eye(3)))) == []
    assert np.all(np.array(dict(list_variants(bt.Mixture([[0.9, 0.1]])))["means twice as far apart"].means) <= 1)


def test_variants_of_extreme_priors_are_valid():
    for prior in ((0.01, 0.01), (0.2, 400), (5000, 2), (1e-3, 5)):
        variants = list(list_variants(bt.Bernoulli(arms=2, prior=prior)))
        assert len(variants) >= 2
        for _, variant in variants:
            assert np.isfinite(draw_instances(variant, 0, 0).means).all()


def test_worse_than_the_textbook_is_stated_only_where_it_is_sure():
    best, loss, regret = (
        Estimate.from_standard_error(10.0, 0.2, 1000),
        Estimate.from_standard_error(5.0, 0.3, 1000),
        Estimate.from_standard_error(15.0, 0.3, 1000),
    )
    textbook = Estimate.from_standard_error(14.7, 0.3, 1000)
    for difference, verdict in ((0.3, "fragile"), (0.7, "worse than textbook"), (None, "fragile")):
        estimate = None if difference is None else Estimate.from_standard_error(difference, 0.3, 1000)
        assert (
            Scenario(
                description="so",
                problem={},
                horizon=100,
                regret=regret,
                best_value=0.2,
                best_regret=best,
                excess_regret=loss,
                textbook_regret=textbook,
                difference_to_textbook=estimate,
            ).verdict
            == verdict
        )


def test_a_value_for_a_wrong_problem_is_fragile():
    # The value is tuned for arms far apart. On arms close together, greedy is not good enough.
    problem, close = bt.Mixture([[0.9, 0.1], [0.1, 0.9]]), bt.Mixture([[0.55, 0.45], [0.45, 0.55]])
    report = bt.robustness(
        bt.UCB1(noise=0.5),
        problem,
        0.0,
        horizon=500,
        others=[("close arms", close)],
        budget=200,
        search=bt.Search(validate=500),
    )
    descriptions = [scenario.description for scenario in report.scenarios]
    assert descriptions == [
        "as expected",
        "close arms",
        "a third of the horizon (167)",
        "three times the horizon (1,500)",
    ]
    assert report.worst_scenario.verdict in ("fragile", "worse than textbook")
    assert "fragile" in repr(report)
    assert (
        bt.results.from_json(report.to_json()).scenarios[1].excess_regret.mean == report.scenarios[1].excess_regret.mean
    )


@dataclass(frozen=True)
class OtherMeans(bt.Bernoulli):
    """A user's problem, whose means do not come from its prior."""

    def sample(self, size, rng):
        return Instances(rng.random((size, self.arms)) / 10)


def test_a_users_problem_has_no_variants_of_its_prior():
    report = bt.robustness(
        bt.UCB1(noise=0.5), OtherMeans(arms=3), 0.2, horizon=30, budget=20, search=bt.Search(validate=20)
    )
    descriptions = [scenario.description for scenario in report.scenarios]
    assert descriptions == ["as expected", "a third of the horizon (10)", "three times the horizon (90)"]


class OtherRewards(bt.Gaussian):
    """A user's problem, whose rewards do not read its noise."""

    @staticmethod
    def reward(instance, arm, pull, step, stream):
        return instance.means[arm] + 5 * bt.kernel.normal(stream)


def test_a_users_rewards_have_no_variants_of_their_noise():
    descriptions = [name for name, _ in list_variants(OtherRewards(arms=3))]
    assert "means lower by a standard deviation" in descriptions
    assert not any("noise" in name for name in descriptions)
    assert any("noise" in name for name, _ in list_variants(bt.Gaussian(arms=3)))


def test_a_value_without_regret_is_fine():
    zero = Estimate.from_standard_error(0.0, 0.0, 100)
    assert (
        Scenario(
            description="no choice",
            problem={},
            horizon=100,
            regret=zero,
            best_value=0.2,
            best_regret=zero,
            excess_regret=zero,
            textbook_regret=zero,
            regret_gap=0.0,
        ).verdict
        == "fine"
    )


def test_the_statement_counts_fine_undecided_and_fragile_scenarios():
    def make_scenario_of(description, excess, se):
        best, excess_estimate = (
            Estimate.from_standard_error(16.0, 0.5, 1000),
            Estimate.from_standard_error(excess, se, 1000),
        )
        return Scenario(
            description=description,
            problem={},
            horizon=100,
            regret=Estimate.from_standard_error(16.0 + excess, 0.5, 1000),
            best_value=0.2,
            best_regret=best,
            excess_regret=excess_estimate,
            textbook_regret=best,
            regret_gap=0.2,
        )

    setup = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.5, 1], horizon=10, runs=2).setup
    expected, fine, undecided = (
        make_scenario_of("as expected", 0.0, 0.1),
        make_scenario_of("more arms", 0.1, 0.1),
        make_scenario_of("less", 1.5, 0.95),
    )
    report = bt.results.RobustnessReport(
        params={"gamma": 0.2}, scenarios=(expected, fine, undecided), budget=10, validation_runs=1000, setup=setup
    )
    assert state_robustness(report) == (
        "gamma = 0.2 is fine in 1 of 2 other scenarios; "
        "not decided in 1, with less, where its regret may be 24% above that of the best"
    )
    with_fragile = replace(
        report, scenarios=(*report.scenarios, make_scenario_of("worse", 8.0, 0.1), make_scenario_of("worst", 32.0, 0.1))
    )
    assert "is fine in 1 of 4 other scenarios" in state_robustness(with_fragile)
    assert "; fragile in 2, most with worst, where its regret is 3.0 times that of the best; not decided in 1" in repr(
        with_fragile
    )


def test_excess_regrets_are_paired_and_agree_with_a_simulation():
    report = bt.robustness(
        bt.UCB1(noise=0.5),
        bt.Bernoulli(arms=3),
        0.5,
        horizon=100,
        others=[],
        budget=100,
        search=bt.Search(validate=300),
    )
    scenario = report.scenarios[0]
    rows = bt.simulate(
        bt.UCB1(noise=0.5),
        bt.Bernoulli(arms=3),
        [0.5, scenario.best_value, 1.0],
        horizon=100,
        runs=300,
        first_instance=2**40,
    ).astype(np.float32)
    assert scenario.regret.mean == pytest.approx(rows[0].mean(), rel=1e-6)
    assert scenario.excess_regret.mean == pytest.approx((rows[0] - rows[1]).mean(), rel=1e-4, abs=1e-6)
    assert scenario.textbook_regret.mean == pytest.approx(rows[2].mean(), rel=1e-6)


def test_a_tuning_prints_and_reports_its_robustness(tmp_path):
    tuning = bt.tune(
        bt.UCB1(noise=0.5),
        bt.Mixture([[0.6, 0.4], [0.4, 0.6]]),
        horizon=60,
        budget=60,
        include=("robustness",),
        search=bt.Search(validate=50),
    )
    assert tuning.robustness.params == tuning.params
    assert "what if" in repr(tuning)
    path = tmp_path / "report.html"
    bt.report(tuning, path)
    assert "Other scenarios" in path.read_text()
    assert "--robustness" in path.read_text()
    for value in (float("nan"), "x", -99):
        with pytest.raises(bt.InvalidRequest):
            bt.robustness(bt.UCB1(noise=0.5), bt.Bernoulli(), value, horizon=100)
    for wrong in (5, [("x", 1)], ["x"]):
        with pytest.raises(bt.InvalidRequest):
            bt.robustness(bt.UCB1(noise=0.5), bt.Bernoulli(), 0.5, horizon=100, others=wrong)


def test_a_negative_excess_is_within_error_or_none():
    for mean, expected in ((0.5, "+10%"), (-0.1, "within error"), (-3.0, "none")):
        excess = Estimate.from_standard_error(mean, 0.2, 1000)
        regret = Estimate.from_standard_error(5.0, 0.1, 1000)
        assert (
            format_excess_share(
                Scenario(
                    description="so",
                    problem={"name": "bernoulli"},
                    horizon=10,
                    regret=regret,
                    best_value=0.2,
                    best_regret=regret,
                    excess_regret=excess,
                    textbook_regret=regret,
                )
            )
            == expected
        )


def make_scenario(*rows):
    """A scenario with these regrets of the value, the best value and the textbook value."""
    regrets, best, textbook = (np.asarray(row, float) for row in rows)
    return Scenario(
        description="else",
        problem={"name": "x"},
        horizon=10,
        regret=Estimate.from_sample(regrets),
        best_value=0.3,
        best_regret=Estimate.from_sample(best),
        excess_regret=Estimate.from_sample(regrets - best),
        textbook_regret=Estimate.from_sample(textbook),
        regret_gap=0.0,
    )


def test_a_value_without_excess_is_fine_with_an_uncertain_best_regret():
    rare = [0.0, 0.0, 0.0, 9.0]
    scenario = make_scenario(rare, rare, rare)
    assert scenario.best_regret.low < 0
    assert scenario.verdict == "fine"


def test_verdicts_contain_the_error_of_the_best_regret():
    rng = np.random.default_rng(5)
    regrets, best = rng.lognormal(size=(2, 400))
    scenario = make_scenario(regrets, best, best)
    for share in (0.0, 0.25, 1.0):
        excess, paired = scenario.compute_excess_over(share), Estimate.from_sample(regrets - (1 + share) * best)
        for name in ("mean", "se", "low", "high"):
            assert getattr(excess, name) == pytest.approx(getattr(paired, name), rel=1e-9, abs=1e-12)
    # An excess of exactly a tenth is decided in 5% of cases, on both sides together.
    decided = []
    for _ in range(1000):
        best = rng.lognormal(sigma=0.5, size=500)
        scenario = make_scenario(1.1 * rng.permutation(best), rng.lognormal(sigma=0.5, size=500), best)
        decided.append(scenario.verdict != "not decided")
    assert abs(np.mean(decided) - 0.05) <= 4 * np.sqrt(0.05 * 0.95 / 1000)


def test_impossible_scenarios_are_left_out_with_a_notice(tmp_path):
    small = {"horizon": 100, "budget": 40, "validate": 20}
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=60), **group_settings(include=("robustness",), **small))
    assert "twice as many arms (120)" not in [scenario.description for scenario in tuning.robustness.scenarios]
    assert any("'twice as many arms (120)' is left out" in warning for warning in tuning.robustness.notices)
    assert "is left out" in str(tuning)
    # A third of the horizon leaves explore-then-commit no choice. A tuner that needs a larger budget gets it.
    short = bt.tune(
        bt.ExploreThenCommit(),
        bt.Bernoulli(arms=10),
        horizon=50,
        budget=40,
        include=("robustness",),
        search=bt.Search(validate=20),
    )
    assert not any("a third" in scenario.description for scenario in short.robustness.scenarios)
    assert any("'a third of the horizon (17)' is left out" in warning for warning in short.robustness.notices)
    # Thompson sampling needs no step for every arm.
    few = bt.robustness(
        bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=10), 0.5, horizon=20, budget=40, search=bt.Search(validate=20)
    )
    assert any("a third of the horizon (7)" in scenario.description for scenario in few.scenarios)
    fine_grid = bt.tuners.Uniform(precision=0.001)
    tuned_on_grid = bt.tune(
        bt.UCB1(noise=0.5),
        bt.Bernoulli(arms=2),
        horizon=20,
        budget=2002,
        include=("robustness",),
        search=bt.Search(tuner=fine_grid, validate=20),
    )
    assert tuned_on_grid.robustness.budget == 2002
    with pytest.raises(bt.InvalidRequest, match="give `others`"):
        bt.robustness(bt.UCB1(noise=0.5), bt.RewardTable([np.eye(2), np.eye(2)]), 0.3, horizon=2)
    with pytest.raises(bt.InvalidRequest, match="budget"):
        bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), horizon=50, budget=5, run=bt.Run(store=tmp_path / "x.db"))
    assert list(tmp_path.iterdir()) == []


def test_robustness_warns_of_a_wrong_noise():
    report = bt.robustness(
        bt.UCB1(noise=0.5), bt.Gaussian(arms=2, noise=5.0), 0.3, horizon=20, budget=40, search=bt.Search(validate=20)
    )
    assert any("standard deviation of 0.5" in warning for warning in report.notices)


@pytest.mark.parametrize("rewards", ["binary", "unit", "real"])
def test_variants_of_campaigns_shift_and_spread_their_means(rewards):
    pairs = (
        [(3.0, 0.05), (2.0, 0.05), (2.5, 0.05), (2.2, 0.05)]
        if rewards == "real"
        else [(600, 1400), (400, 1600), (900, 1100), (500, 1500)]
    )
    problem = bt.Campaigns([pairs, pairs[::-1], pairs[:3] + pairs[:2]], rewards=rewards, arms=4)
    variants = dict(list_variants(problem))
    mean, sd = compute_moments(problem)
    for description, centre, spread in (
        ("means lower by a standard deviation", mean - sd, sd),
        ("means higher by a standard deviation", mean + sd, sd),
        ("means half as far apart", mean, sd / 2),
        ("means twice as far apart", mean, 2 * sd),
    ):
        assert compute_moments(variants[description]) == pytest.approx((centre, spread), rel=0.05), description
    assert variants["half as many arms (2)"].arms == 2
    assert ("twice the noise" in variants) == (rewards == "real")
    report = bt.robustness(bt.UCB1(noise=0.5), problem, 0.3, horizon=30, budget=40, search=bt.Search(validate=20))
    assert len(report.other_scenarios) >= 6


@pytest.mark.parametrize("value", [[0.1, 0.2], [[0.1], [0.2]]])
def test_robustness_takes_one_value(value):
    with pytest.raises(bt.InvalidRequest, match="`params` must be one value, but got"):
        bt.robustness(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), value, horizon=10)


def test_robustness_needs_a_parameter():
    with pytest.raises(bt.InvalidRequest, match="must have a parameter to be tuned, but greedy has none"):
        bt.robustness(bt.Greedy(), bt.Bernoulli(arms=2), 1.0, horizon=10)


@dataclass(frozen=True)
class FixedAnswerSearch(Tuner):
    """A search that answers a fixed value and states a gap, whatever the regrets."""

    name = "fixed"
    accepts_goal = True
    value: float = 0.0
    gap: float = 0.0

    def search(self, among, budget, goal=None):
        make_scenario = yield Trial((self.value,), budget)
        mean = float(make_scenario.mean())
        return SearchAnswer(self.value, make_posterior(self.gap, mean, 0.1 * mean))


def make_posterior(gap, mean=50.0, half=5.0, **options):
    """What a search states: nothing is better than its answer by more than a gap."""
    options = {"near_optimal": (), "second_dip": (), "misfit": False, "confidence": 0.95} | options
    return SearchPosterior(
        mean=mean, low=mean - half, high=mean + half, best_intervals={"gamma": (0.1, 0.3)}, regret_gap=gap, **options
    )


RARE_CLICKS = bt.Bernoulli(arms=46, prior=(3.35722, 771.387))
SMALL = {"horizon": 30_000, "others": [], "budget": 50, "validate": 150}


def test_equal_answers_at_an_end_of_the_range_are_not_decided():
    # Searches answer the first step of their grid and state no gap. At three times the horizon, 0.0123 has less regret.
    report = bt.robustness(
        bt.UCB1(noise=0.5), RARE_CLICKS, 1 / 162, **group_settings(tuner=FixedAnswerSearch(1 / 162), **SMALL)
    )
    verdicts = {scenario.description.split(" (")[0]: scenario for scenario in report.scenarios}
    assert not any(scenario.verdict == "fine" for scenario in report.scenarios)
    reasons = {scenario.reason for scenario in report.scenarios if scenario.verdict == "not decided"}
    assert reasons == {"both values are at the lower end of the range"}
    assert reasons.pop() in str(report)
    longer = verdicts["three times the horizon"]
    assert longer.excess_regret.low > 0
    assert longer.best_value == pytest.approx(2 / 162)
    assert longer.retuned_value == pytest.approx(1 / 162)


def test_a_search_with_a_worse_answer_has_failed():
    report = bt.robustness(
        bt.UCB1(noise=0.5),
        bt.Bernoulli(arms=5),
        0.25,
        horizon=300,
        others=[],
        budget=50,
        search=bt.Search(tuner=FixedAnswerSearch(0.9), validate=300),
    )
    for scenario in report.scenarios:
        assert scenario.best_value != 0.9
        assert scenario.excess_regret.mean >= 0
        assert scenario.verdict == "not decided"
        assert scenario.reason.startswith("the search for it failed: its answer, 0.9, has ")
    assert {"best_value", "excess_share_low", "excess_share_high", "reason"} <= set(report.to_pandas())


def test_a_value_is_fine_only_within_the_gap_of_the_search():
    best, zero = Estimate.from_standard_error(50.0, 0.5, 1000), Estimate.from_standard_error(0.0, 0.0, 1000)
    verdicts = {
        gap: Scenario(
            description="so",
            problem={},
            horizon=100,
            regret=best,
            best_value=0.2,
            best_regret=best,
            excess_regret=zero,
            textbook_regret=best,
            regret_gap=gap,
        )
        for gap in (0.0, 2.0, 20.0, None)
    }
    assert [scenario.verdict for scenario in verdicts.values()] == ["fine", "fine", "not decided", "not decided"]
    assert verdicts[2.0].excess_share_high == pytest.approx(2 / 48, abs=1e-3)
    # 20 of 50 - 20, plus the errors of both regrets.
    assert 20 / 30 < verdicts[20.0].excess_share_high < 0.72
    assert verdicts[20.0].reason == "its regret may be 69% higher"
    assert verdicts[None].reason == "the search states no gap"
    doubted = replace(verdicts[0.0], gap_doubt="for a reason")
    assert (doubted.verdict, doubted.reason) == ("not decided", "for a reason")
    negative = Estimate.from_standard_error(-5.0, 0.1, 1000)
    assert Scenario(
        description="so",
        problem={},
        horizon=100,
        regret=negative,
        best_value=0.2,
        best_regret=negative,
        excess_regret=zero,
        textbook_regret=negative,
        regret_gap=0.0,
    ).reason.startswith("the best regret is below 0")
    fragile = replace(
        doubted,
        excess_regret=Estimate.from_standard_error(20.0, 0.5, 1000),
        regret=Estimate.from_standard_error(70.0, 0.5, 1000),
    )
    assert (fragile.verdict, fragile.reason) == ("fragile", "")


def test_every_reason_to_doubt_a_gap_is_found():
    among, zero = Range("gamma", 0.0, 1.0, 1.0, False, "linear"), Estimate.from_standard_error(0.0, 0.1, 1000)
    fresh = Estimate.from_standard_error(50.0, 1.0, 1000)

    default_posterior = make_posterior(1.0)

    def find_doubt(value=0.2, answer=0.3, posterior=default_posterior, ahead=zero, behind=zero, fresh=fresh):
        return next(
            note_gap_doubts(Space((among,)), value, SearchAnswer((answer,), posterior), ahead, behind, fresh), ""
        )

    assert find_doubt() == ""
    assert find_doubt(posterior=None) == ""
    assert find_doubt(behind=Estimate.from_standard_error(0.4, 0.1, 1000)) == ""
    assert find_doubt(behind=Estimate.from_standard_error(2.5, 0.1, 1000)).startswith("the search for it failed")
    assert find_doubt(value=1.0, answer=1.0) == "both values are at the upper end of the range"
    assert find_doubt(answer=0.005) == "the value tuned for it, 0.005, is at the lower end of the range"
    assert find_doubt(posterior=make_posterior(1.0, misfit=True)) == "the curves of the search for it do not fit"
    assert (
        find_doubt(posterior=make_posterior(1.0, second_dip=(0.1, 0.2, 0.3)))
        == "the regret there may have more than one dip"
    )
    assert (
        find_doubt(ahead=Estimate.from_standard_error(2.0, 0.1, 250))
        == "another value is better than the answer of the search for it by more than the stated gap"
    )
    assert find_doubt(ahead=Estimate.from_standard_error(1.1, 0.1, 250)) == ""
    assert (
        find_doubt(fresh=Estimate.from_standard_error(70.0, 1.0, 1000))
        == "fresh instances contradict the search for it"
    )


def test_robustness_warns_where_the_tuned_value_is_not_the_best():
    report = bt.robustness(
        bt.UCB1(noise=0.5), RARE_CLICKS, 1 / 162, **group_settings(tuner=FixedAnswerSearch(1 / 162), **SMALL)
    )
    assert report.scenarios[0].excess_share_low > 0
    noise, warning = report.notices
    assert "of bernoulli have 0.0" in noise
    assert "the search for gamma = 0.006173 missed a better value, 0.01235" in warning


def test_the_expected_time_is_announced_and_the_progress_counts_all_runs():
    lines, progress = [], []
    tuning = bt.tune(
        bt.UCB1(noise=0.5),
        bt.Bernoulli(arms=3),
        horizon=100,
        budget=50,
        include=(
            "curve",
            "robustness",
            "no_lower_bound",
        ),
        search=bt.Search(validate=40),
        run=bt.Run(
            announce=lambda line: lines.append((line, len(progress))), progress=lambda *step: progress.append(step)
        ),
    )
    assert [line.split(": about ")[0] for line, _ in lines] == ["curve", "robustness"]
    assert lines[0][0].endswith("(34 values x 40 runs)")
    runs = tuning.robustness.budget + 7 * 40 + 4 * 40
    assert lines[1][0].endswith(f"({len(tuning.robustness.scenarios)} scenarios x {runs:,} runs)")
    assert 0 < lines[0][1] < lines[1][1] < len(progress)
    # The first totals contain the curve and the scenarios.
    assert progress[0][1] >= 34 * 40 + len(tuning.robustness.scenarios) * runs
    done, total = progress[-1]
    assert done == total


def test_durations_have_two_digits():
    durations = {0.2: "a second", 1.27: "1.3 s", 41.3: "41 s", 89: "89 s", 95: "1.6 min", 581: "9.7 min", 9000: "2.5 h"}
    assert {seconds: format_duration(seconds) for seconds in durations} == durations
