"""Fits of past logs: against oracles by SciPy and closed forms, at the edges, and on logs whose prior is known."""

from __future__ import annotations

import json
import math
import re
import sys
import tracemalloc

import numpy as np
import pytest
from scipy import optimize, stats

import banditune as bt
from banditune.core.descriptions import describe, make_label, shorten_value
from banditune.logs.models import hierarchical_beta, posterior_predictive, ppc_statistics
from banditune.logs.models.adaptivity import (
    POSSIBLE_STOPPING_NOTE,
    compute_lead_significances,
    is_adaptively_chosen,
    is_stopped_early,
)
from banditune.logs.models.beta_binomial import BetaBinomialCounts, compute_log_pochhammer, fit_beta_prior
from banditune.logs.models.beta_rewards import compute_reward_concentration, convert_to_counts
from banditune.logs.models.fitted_model import FitOptions
from banditune.logs.models.fitting import MODELS
from banditune.logs.models.likelihood_search import (
    compute_chi_square_quantile,
    compute_mean_reach,
    compute_spread_reach,
    find_crossing,
    find_peak,
    run_brent_search,
)
from banditune.logs.models.linear_mixed_model import compute_linear_posteriors, fit_linear_mixed_model, sum_regressions
from banditune.logs.models.logistic_mixed_model import ImportanceSampler, fit_logistic_mixed_model, make_reward_table
from banditune.logs.models.normal_normal import NormalCells, WithinCellVariance, fit_normal_priors
from banditune.logs.models.random_effects import make_covariance_basis, summarize_gaussian
from banditune.reports.fit_report import make_checks_table
from banditune.results.log_results import FittedProblem
from conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))
import alarms
import recovery


def spread_cut(degrees, cells, confidence=0.95):
    """The fall of twice the log likelihood at the ends of an interval for the spread of normal cells, by SciPy."""

    def left_out(cut):
        def fall(square):
            return square - cells - cells * math.log(square / cells) - cut

        low, high = optimize.brentq(fall, 1e-100, cells), optimize.brentq(fall, cells, 100 * cells + 100)
        return stats.chi2.sf(high, degrees) + stats.chi2.cdf(low, degrees)

    return optimize.brentq(lambda cut: left_out(cut) - (1 - confidence), 0.1, 100, xtol=1e-9)


def mean_cut(cells):
    """The same for the mean."""
    return cells * math.log1p(stats.t.ppf(0.975, cells - 1) ** 2 / (cells - 1))


def cells(campaigns, arms):
    return np.repeat(np.arange(campaigns), arms), np.tile(np.arange(arms), campaigns)


def binary_logs(seed=1, campaigns=20, arms=4, steps=40, prior=(2, 5)):
    rng = np.random.default_rng(seed)
    campaign, arm = cells(campaigns, arms)
    pulls = rng.integers(2, steps, campaigns * arms)
    return bt.make_logs(campaign, arm, pulls, rng.binomial(pulls, rng.beta(*prior, len(pulls))))


def real_logs(means, noise=0.5, steps=20, seed=2, **more):
    rng = np.random.default_rng(seed)
    campaigns, arms = means.shape
    campaign, arm = cells(campaigns, arms)
    pulls = rng.integers(2, steps, means.size)
    total = pulls * rng.normal(means.ravel(), noise / np.sqrt(pulls))
    return bt.make_logs(campaign, arm, pulls, total, noise**2 * rng.chisquare(pulls - 1), rewards="real", **more)


def together(seed=3, campaigns=40, arms=5):
    """Arms of a campaign rise and fall together."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-1, 0.8, (campaigns, 1)) + rng.normal(0, 0.3, (campaigns, arms))
    campaign, arm = cells(campaigns, arms)
    pulls = np.full(logits.size, 200)
    return bt.make_logs(campaign, arm, pulls, rng.binomial(pulls, 1 / (1 + np.exp(-logits.ravel()))))


# Searches


def test_a_peak_is_found_inside_and_at_the_ends():
    assert find_peak(lambda x: -((x - 3.2) ** 2), 0.0, 0.1, -100, 100) == pytest.approx(3.2, abs=1e-5)
    assert find_peak(lambda x: -(abs(x - 3.2) ** 1.5), 50.0, 0.1, -100, 100) == pytest.approx(3.2, abs=1e-4)
    assert find_peak(lambda x: x, 0.0, 0.1, -1, 1) == 1
    assert find_peak(lambda x: -x, 0.0, 0.1, -1, 1) == -1
    assert run_brent_search(math.sin, 0.0, 1.0, 3.0, math.sin(1.0), 1e-7) == pytest.approx(math.pi / 2, abs=1e-6)


def test_a_crossing_is_found_or_there_is_none():
    assert find_crossing(lambda x: x**3 - 8, 0.0, 0.1, 100.0) == pytest.approx(2, rel=1e-3)
    assert find_crossing(lambda x: -1 - x, 0.0, 0.1, -50.0) == pytest.approx(-1, rel=1e-3)
    assert find_crossing(lambda x: -1.0, 0.0, 0.1, 5.0) is None


@pytest.mark.parametrize("degrees", [1.5, 5, 20, 300])
def test_chi_square_quantiles_are_close(degrees):
    for level in (0.025, 0.5, 0.975):
        assert compute_chi_square_quantile(level, degrees) == pytest.approx(stats.chi2.ppf(level, degrees), rel=2e-3)


# Beta-binomial


@pytest.mark.parametrize("x", [1e-6, 0.3, 7.0, 25.0, 1e5])
def test_the_log_of_a_rising_product_is_a_sum_of_logs(x):
    steps = np.array([0.0, 1.0, 2.0, 17.0, 400.0])
    expected = [math.fsum(math.log(x + k) for k in range(int(n))) for n in steps]
    assert compute_log_pochhammer(x, steps) == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_the_likelihood_is_that_of_the_beta_binomial_distribution():
    logs = binary_logs()
    counts = BetaBinomialCounts(logs.total, logs.pulls - logs.total)
    for a, b in ((0.5, 2.0), (30.0, 70.0)):
        expected = stats.betabinom.logpmf(logs.total, logs.pulls, a, b).sum()
        base = stats.betabinom.logpmf(logs.total, logs.pulls, 1, 1).sum()
        assert counts.compute_shape_likelihood(a, b) - counts.compute_shape_likelihood(1, 1) == pytest.approx(
            expected - base, abs=1e-8
        )


def test_beta_estimates_and_intervals_are_those_of_scipy():
    logs = binary_logs()

    def likelihood(a, b):
        return stats.betabinom.logpmf(logs.total, logs.pulls, a, b).sum()

    best = optimize.minimize(lambda x: -likelihood(*np.exp(x)), (0, 0), method="Nelder-Mead", options={"fatol": 1e-10})
    estimates = {e.name: e for e in fit_beta_prior(logs.total, logs.pulls - logs.total, 0.95).estimates}
    a, b = np.exp(best.x)
    assert (estimates["a"].value, estimates["b"].value) == pytest.approx((a, b), rel=1e-3)
    assert estimates["mean"].value == pytest.approx(a / (a + b), rel=1e-3)
    assert estimates["sd"].value == pytest.approx(stats.beta.std(a, b), rel=1e-3)

    def profiles(value):
        """Twice the fall of the likelihood, at its highest under the constraint, for each number of interest."""
        yield "a", lambda x: likelihood(value, math.exp(x)), math.log(b)
        yield "b", lambda x: likelihood(math.exp(x), value), math.log(a)
        yield "mean", lambda x: likelihood(value * math.exp(x), (1 - value) * math.exp(x)), math.log(a + b)

        def with_sd(x):
            mean = 1 / (1 + math.exp(-x))
            total = mean * (1 - mean) / value**2 - 1
            return likelihood(mean * total, (1 - mean) * total) if total > 0 else -1e9

        yield "sd", with_sd, math.log(a / b)

    for name, estimate in estimates.items():
        for end in (estimate.low, estimate.high):
            profile, start = next((f, s) for key, f, s in profiles(end) if key == name)
            top = -optimize.minimize_scalar(lambda x, f=profile: -f(x), (start, start + 0.1)).fun
            cut = mean_cut(80) if name == "mean" else spread_cut(79, 80)
            assert 2 * (-best.fun - top) == pytest.approx(cut, rel=2e-3), name


def test_a_hundred_thousand_cells_are_fitted_in_a_second():
    import time

    rng = np.random.default_rng(0)
    pulls = rng.integers(1, 500, 100_000)
    wins = rng.binomial(pulls, rng.beta(2, 30, len(pulls))).astype(float)
    begun = time.process_time()
    found = fit_beta_prior(wins, pulls - wins, 0.95)
    assert time.process_time() - begun < 3  # a second where nothing else runs
    assert (found.a, found.b) == pytest.approx((2, 30), rel=0.03)


def test_without_spread_beyond_chance_the_upper_end_is_infinite_and_the_problem_has_what_logs_allow():
    pulls = np.full(12, 50)
    fit = bt.fit(bt.make_logs(*cells(3, 4), pulls, np.full(12, 10)))
    assert fit["a"].value == math.inf
    assert fit["a"].high == math.inf
    assert fit["sd"].value == 0
    assert fit["sd"].low == 0
    ((a, b),) = fit.problem.prior
    assert 0 < a < b < math.inf
    assert stats.beta.std(a, b) == pytest.approx(fit["sd"].high, rel=0.1)
    assert any("no spread" in note for note in fit.notes)
    assert bt.results.from_json(fit.to_json()) == fit


@pytest.mark.parametrize("mean", [0.002, 0.06, 0.5, 0.998])
def test_without_a_least_spread_neither_shape_has_an_upper_end(mean):
    rng = np.random.default_rng(29)
    pulls = rng.integers(1000, 5000, 60)
    fit = bt.fit(bt.make_logs(*cells(15, 4), pulls, rng.binomial(pulls, mean)))
    assert fit["sd"].low == 0
    assert fit["a"].high == fit["b"].high == math.inf


def test_arms_that_always_or_never_pay_are_fitted():
    fit = bt.fit(bt.make_logs(*cells(4, 3), np.full(12, 30), np.tile([30, 0, 0], 4)))
    assert fit["sd"].value == pytest.approx(math.sqrt(2 / 9), rel=0.02)


@pytest.mark.parametrize("total", [0, 30])
def test_logs_that_always_pay_the_same_are_refused_in_words(total):
    with pytest.raises(bt.InvalidRequest, match="some rewards must be 0 and some 1"):
        bt.fit(bt.make_logs(*cells(4, 3), np.full(12, 30), np.full(12, total)))


def test_logs_that_cannot_tell_a_prior_are_refused_in_words():
    with pytest.raises(bt.InvalidRequest, match="two arms or more"):
        bt.fit(bt.make_logs([0], [0], [10], [3]), arms=2)
    with pytest.raises(bt.InvalidRequest, match="pulled twice"):
        bt.fit(bt.make_logs(*cells(4, 3), np.ones(12, int), np.tile([1, 0, 0], 4)))
    with pytest.raises(bt.InvalidRequest, match="name another with `campaign`"):
        bt.fit(bt.make_logs([0, 1], [0, 0], [10, 10], [3, 5]))


def test_with_many_data_arms_have_priors_of_their_own():
    rng = np.random.default_rng(1)
    means, sizes = np.array([0.1, 0.2, 0.2, 0.5, 0.35]), np.array([20, 20, 200, 60, 10])
    campaign, arm = cells(300, 5)
    wins = rng.binomial(600, rng.beta(means[arm] * sizes[arm], (1 - means[arm]) * sizes[arm]))
    fit = bt.fit(bt.make_logs(campaign, arm, np.full(1500, 600), wins), per_arm=True)
    a, b = np.array(fit.problem.prior).T
    sd = np.sqrt(means * (1 - means) / (sizes + 1))
    assert (np.abs(a / (a + b) - means) < 4 * sd / math.sqrt(300)).all()
    assert np.log((a + b) / sizes) == pytest.approx(np.zeros(5), abs=4 / math.sqrt(150))
    for place in range(5):
        mine = arm == place
        alone = fit_beta_prior(wins[mine] * 1.0, 600.0 - wins[mine], 0.95)
        assert (a[place], b[place]) == pytest.approx((alone.a, alone.b), rel=0.06)
        known = {estimate.name: estimate for estimate in alone.estimates}
        for name in ("mean", "sd"):
            one, other = known[name], fit[f"{name}[{place}]"]
            assert (other.low, other.high) == pytest.approx((one.low, one.high), rel=0.03)


@pytest.mark.parametrize(("arms", "campaigns", "pulls"), [(12, 4, 100), (46, 4, 100), (46, 21, 150), (12, 21, 30)])
def test_sparse_arms_have_as_many_successes_as_the_logs(arms, campaigns, pulls):
    """Rates of 0.4%, which differ by 40% between arms and by 30% between campaigns."""
    shares = []
    for seed in range(2):
        rng = np.random.default_rng(seed)
        rates = 0.004 * np.exp(rng.normal(0, 0.4, arms) + rng.normal(0, 0.3, (campaigns, arms)))
        shown = rng.poisson(pulls, (campaigns, arms)) + 1
        wins = rng.binomial(shown, rates)
        fit = bt.fit(bt.make_logs(*cells(campaigns, arms), shown.ravel(), wins.ravel()), per_arm=True)
        a, b = np.array(fit.problem.prior).T
        mean = a / (a + b)
        variance = shown * mean * (1 - mean) + shown * (shown - 1) * mean * (1 - mean) / (a + b + 1)
        expected = float((shown * mean).sum())
        assert abs(wins.sum() - expected) < 1.96 * math.sqrt(variance.sum())
        assert (np.abs(mean - 0.004) < 0.004 * 4).all()
        assert len(fit.notes) <= 5
        shares.append(expected / wins.sum())
    assert np.mean(shares) == pytest.approx(1, abs=0.1)


def test_arms_are_drawn_towards_that_of_all_as_far_as_their_data_leave_it_open():
    logs = binary_logs(arms=3)
    lonely = bt.make_logs(
        [*logs.campaign, 0], [*(f"arm {k}" for k in logs.arm), "new"], [*logs.pulls, 9], [*logs.total, 4]
    )
    fit = bt.fit(lonely, per_arm=True)
    assert fit.arms == 4
    assert fit.problem.names == ("arm 0", "arm 1", "arm 2", "new")
    a, b = np.array(fit.problem.prior).T
    mean, (common_a, common_b) = a / (a + b), bt.fit(lonely, arms=3).problem.prior[0]
    common = common_a / (common_a + common_b)
    for place in range(3):
        mine = logs.arm == place
        estimates = {
            e.name: e for e in fit_beta_prior(logs.total[mine], (logs.pulls - logs.total)[mine], 0.95).estimates
        }["mean"]
        assert abs(mean[place] - estimates.value) < 0.25 * (estimates.high - estimates.low)
    assert common + 0.01 < mean[3] < 4 / 9 - 0.02
    # The arm that was hardly seen is the least sure.
    assert (mean * (1 - mean) / (a + b + 1)).argmax() == 3
    assert any("towards that of all arms" in note for note in fit.notes)


def test_without_an_arm_that_comes_back_all_have_the_common_prior():
    logs = binary_logs()
    alone = bt.make_logs(logs.campaign, np.arange(80), logs.pulls, logs.total)
    fit = bt.fit(alone, per_arm=True)
    assert set(fit.problem.prior) == {tuple(bt.fit(alone, arms=4).problem.prior[0])}
    assert any(note.startswith("80 arms (0, 1, 2, 3, 4 ...): in too few campaigns") for note in fit.notes)


def test_notes_on_many_arms_are_one():
    rng = np.random.default_rng(0)
    logs = real_logs(np.zeros((6, 12)) + rng.normal(0, 1, 12))
    notes = bt.fit(logs, per_arm=True).notes
    spread = [note for note in notes if "no spread of mean rewards beyond chance" in note]
    assert len(spread) == 1
    assert re.match(r"\d+ arms \(", spread[0])


# Gaussian


def test_balanced_cells_have_closed_forms():
    rng = np.random.default_rng(4)
    means, pulls = rng.normal(2, 0.7, 30) + rng.normal(0, 1.5 / 3, 30), np.full(30, 9.0)
    squares, degrees = 1.5**2 * 240.0, 240.0
    estimates = {
        e.name: e
        for e in fit_normal_priors(
            [NormalCells(means, pulls)], WithinCellVariance(squares, degrees), 0.95, [""]
        ).estimates
    }
    noise2 = squares / degrees
    between = means.var(ddof=1)
    assert estimates["noise"].value == pytest.approx(math.sqrt(noise2), rel=1e-5)
    assert estimates["sd"].value == pytest.approx(math.sqrt(between - noise2 / 9), rel=1e-4)
    reach = stats.t.ppf(0.975, 29) * math.sqrt(between / 30)
    assert (estimates["mean"].low, estimates["mean"].high) == pytest.approx(
        (means.mean() - reach, means.mean() + reach), rel=1e-4
    )


def test_gaussian_estimates_are_those_of_the_restricted_likelihood_of_all_rewards():
    rng = np.random.default_rng(5)
    counts = np.array([2, 3, 5, 8, 2, 4])
    group = np.repeat(np.arange(6), counts)
    rewards = rng.normal(1, 1, 6)[group] + rng.normal(0, 0.8, len(group))
    ones = np.ones(len(group))

    def likelihood(log_sd, log_noise):
        cover = math.exp(2 * log_noise) * np.eye(len(group)) + math.exp(2 * log_sd) * (group[:, None] == group)
        inverse = np.linalg.inv(cover)
        weight = ones @ inverse @ ones
        away = rewards - (ones @ inverse @ rewards) / weight
        return -0.5 * (np.linalg.slogdet(cover)[1] + math.log(weight) + away @ inverse @ away)

    best = optimize.minimize(lambda x: -likelihood(*x), (0, 0), method="Nelder-Mead", options={"fatol": 1e-11})
    mean = np.bincount(group, rewards) / counts
    squares = float(((rewards - mean[group]) ** 2).sum())
    made = fit_normal_priors(
        [NormalCells(mean, counts.astype(float))], WithinCellVariance(squares, len(group) - 6.0), 0.95, [""]
    )
    estimates = {e.name: e for e in made.estimates}
    assert (estimates["sd"].value, estimates["noise"].value) == pytest.approx(np.exp(best.x), rel=1e-3)
    for end in (estimates["sd"].low, estimates["sd"].high):
        top = -optimize.minimize_scalar(lambda x, s=end: -likelihood(math.log(s), x), (best.x[1], best.x[1] + 0.1)).fun
        assert 2 * (-best.fun - top) == pytest.approx(spread_cut(5, 5), rel=2e-3)
    for end in (estimates["noise"].low, estimates["noise"].high):
        top = -optimize.minimize_scalar(lambda x, s=end: -likelihood(x, math.log(s)), (best.x[0], best.x[0] + 0.1)).fun
        assert 2 * (-best.fun - top) == pytest.approx(stats.chi2.ppf(0.95, 1), rel=2e-3)


def test_arms_that_are_all_alike_have_an_sd_of_0_and_a_problem_all_the_same():
    fit = bt.fit(bt.make_logs(*cells(4, 3), np.full(12, 10), np.full(12, 5.0), np.full(12, 9.0), rewards="real"))
    assert fit["sd"].value == 0
    assert fit["sd"].low == 0
    assert fit.problem.prior[0][1] == pytest.approx(fit["sd"].high)
    with pytest.raises(bt.InvalidRequest, match="squares"):
        bt.fit(bt.make_logs(*cells(4, 3), np.full(12, 10), np.full(12, 5.0), rewards="real"))


# Linear and logistic


def linear_logs(campaigns=12, seed=6):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(6, 2)) * [1.0, 3.0]
    theta = rng.multivariate_normal([1.0, -0.5], [[0.5, 0.1], [0.1, 0.2]], campaigns)
    arm = cells(campaigns, 6)[1]
    return real_logs(theta @ features.T, steps=8, features=features[arm], feature_names=("price", "size"))


def test_linear_estimates_are_those_of_the_restricted_likelihood_of_cell_means():
    logs = linear_logs()

    def likelihood(x):
        root = np.array([[math.exp(x[0]), 0.0], [x[1], math.exp(x[2])]])
        noise = math.exp(x[3])
        total, weight, product = 0.0, np.zeros((2, 2)), np.zeros(2)
        parts = []
        for campaign in range(12):
            mine = logs.campaign == campaign
            rows, means = logs.features[mine], logs.mean[mine]
            cover = np.diag(noise**2 / logs.pulls[mine]) + rows @ root @ root.T @ rows.T
            inverse = np.linalg.inv(cover)
            weight += rows.T @ inverse @ rows
            product += rows.T @ inverse @ means
            total += np.linalg.slogdet(cover)[1]
            parts.append((rows, means, inverse))
        mean = np.linalg.solve(weight, product)
        for rows, means, inverse in parts:
            away = means - rows @ mean
            total += away @ inverse @ away
        degrees = logs.pulls.sum() - len(logs.pulls)
        total += np.linalg.slogdet(weight)[1] + 2 * degrees * math.log(noise) + logs.squares.sum() / noise**2
        return total, mean, root @ root.T, noise

    options = {"fatol": 1e-9, "xatol": 1e-6, "maxiter": 4000, "maxfev": 4000}
    best = optimize.minimize(lambda x: likelihood(x)[0], (0, 0, 0, 0), method="Nelder-Mead", options=options)
    _, mean, covariance, noise = likelihood(best.x)
    fit = bt.fit(logs, intercept=False)
    assert fit.model == "linear"
    assert fit.problem.prior[0] == pytest.approx(tuple(mean), rel=1e-3)
    assert np.array(fit.problem.prior[1]) == pytest.approx(covariance, rel=2e-3, abs=1e-4)
    assert fit["noise"].value == pytest.approx(noise, rel=1e-4)
    assert fit["sd[size]"].value == pytest.approx(math.sqrt(covariance[1, 1]), rel=1e-3)
    assert np.array_equal(fit.problem.features, logs.features[:6])


def test_posteriors_hold_where_a_campaign_saw_one_arm():
    logs = bt.make_logs([0, 1], [0, 1], [5, 4], [3.0, 2.0], [1.0, 1.0], rewards="real", features=[(1, 2), (0, 1)])
    mean, covariance = np.array([0.5, 0.1]), np.array([[1.0, 0.3], [0.3, 2.0]])
    found = compute_linear_posteriors(sum_regressions(logs, logs.features), 0.7, mean, covariance)
    for place in range(2):
        row = logs.features[place]
        spread = 0.49 / logs.pulls[place] + row @ covariance @ row
        gain = covariance @ row / spread
        assert found.means[place] == pytest.approx(mean + gain * (logs.mean[place] - row @ mean))
        assert found.covariances[place] == pytest.approx(covariance - np.outer(gain, row @ covariance))


def test_few_campaigns_have_a_diagonal_covariance_and_very_few_none():
    fit = bt.fit(linear_logs(3))
    assert np.array(fit.problem.prior[1])[0, 1] == 0
    assert any("too few for a full covariance" in note for note in fit.notes)
    with pytest.raises(bt.InvalidRequest, match="3 campaigns or more"):
        bt.fit(linear_logs(2))


def test_features_that_follow_from_each_other_are_refused():
    logs = linear_logs()
    twice = bt.make_logs(
        logs.campaign,
        logs.arm,
        logs.pulls,
        logs.total,
        logs.squares,
        rewards="real",
        features=np.column_stack([logs.features, logs.features.sum(axis=1)]),
    )
    with pytest.raises(bt.InvalidRequest, match="follow from each other"):
        bt.fit(twice)
    with pytest.raises(bt.InvalidRequest, match="must have features"):
        bt.fit(binary_logs(), "logistic")


def test_arms_with_features_keep_their_names():
    """Arms are numbered as they come in the logs; a policy that is deployed speaks of them by name."""
    rng = np.random.default_rng(0)
    size = {"cheap": 1.0, "middle": 2.0, "dear": 3.0}
    rows = [(campaign, str(arm)) for campaign in range(12) for arm in rng.choice(["dear", "cheap", "middle"], 60)]
    reward = np.array([0.1 * (campaign % 5) * size[arm] for campaign, arm in rows]) + rng.normal(size=len(rows))
    for rewards in (reward, reward > 0.5):
        table = {
            "campaign": [campaign for campaign, _ in rows],
            "arm": [arm for _, arm in rows],
            "reward": rewards * 1.0,
            "x1": [size[arm] for _, arm in rows],
        }
        problem = bt.fit(bt.read_logs(table)).problem
        assert problem.features == tuple((1.0, size[name]) for name in problem.names)
        tuning = bt.tune(
            bt.LinUCB(prior=(0, 1), noise=1),
            problem,
            horizon=20,
            budget=50,
            search=bt.Search(validate=10),
            run=bt.Run(workers=1),
        )
        assert tuning.deploy().select_arm() in size


def test_features_that_differ_between_campaigns_are_drawn():
    rng = np.random.default_rng(7)
    features = np.column_stack([np.ones(60), rng.normal(2, 0.5, 60)])
    theta = rng.normal(0.5, 0.4, (12, 2))
    means = (features * np.repeat(theta, 5, axis=0)).sum(axis=1).reshape(12, 5)
    fit = bt.fit(real_logs(means, features=features))
    assert fit.problem.features is None
    assert fit.problem.names == ()
    assert any("features differ between campaigns" in note for note in fit.notes)
    assert fit.problem.feature_prior[0] == pytest.approx((1, features[:, 1].mean()))
    sample = fit.problem.sample(5000, np.random.default_rng(0)).features
    assert abs(sample[..., 1].mean() - features[:, 1].mean()) < 4 * 0.5 / math.sqrt(25_000)


def levelled_logs(rewards, seed=0, campaigns=30, arms=8):
    """Arms with two features, whose rewards (or logits) are -2 where both are 0."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(arms, 2))
    theta = rng.multivariate_normal([-2, 0.3, -0.2], np.diag([0.09, 0.05, 0.05]), campaigns)
    campaign, arm = cells(campaigns, arms)
    score = (theta[:, :1] + theta[:, 1:] @ features.T).ravel()
    pulls = np.full(campaigns * arms, 300)
    if rewards == "binary":
        wins = rng.binomial(pulls, 1 / (1 + np.exp(-score)))
        return bt.make_logs(campaign, arm, pulls, wins, features=features[arm], feature_names=("price", "size"))
    total, squares = pulls * rng.normal(score, 1 / np.sqrt(pulls)), rng.chisquare(pulls - 1)
    return bt.make_logs(
        campaign, arm, pulls, total, squares, rewards="real", features=features[arm], feature_names=("price", "size")
    )


@pytest.mark.parametrize("rewards", ["binary", "real"])
def test_an_intercept_mends_six_failed_checks(rewards):
    logs = levelled_logs(rewards)
    without, fit = bt.fit(logs, intercept=False), bt.fit(logs)
    assert sum(check.has_failed for check in without.checks) >= 6
    assert not any(check.has_failed for check in fit.checks)
    assert fit["mean[intercept]"].low < -2 < fit["mean[intercept]"].high
    assert fit["sd[intercept]"].low < 0.3 < fit["sd[intercept]"].high
    assert fit.problem.intercept
    assert not without.problem.intercept
    assert fit.problem.features == tuple((1.0, *row) for row in logs.features[:8])
    assert any("'intercept', which is 1 for every arm, is added" in note for note in fit.notes)


def test_features_that_hold_a_constant_get_no_second_one():
    logs = levelled_logs("real")
    parts = (logs.campaign, logs.arm, logs.pulls, logs.total, logs.squares)
    for constant in (np.full((240, 1), 5.0), np.eye(8)[logs.arm]):
        features = constant if constant.shape[1] > 1 else np.column_stack([logs.features, constant])
        fit = bt.fit(bt.make_logs(*parts, rewards="real", features=features))
        assert fit.problem.features == tuple(map(tuple, features[:8]))
        assert not fit.problem.intercept
        assert any("hold a constant already" in note for note in fit.notes)
    with pytest.raises(bt.InvalidRequest, match="`intercept` must be left out for the model 'beta-binomial'"):
        bt.fit(binary_logs(), intercept=False)


def test_drawn_features_have_an_intercept_too():
    rng = np.random.default_rng(3)
    features = rng.normal(2, 0.5, (60, 1))
    means = (3 + features[:, 0] * np.repeat(rng.normal(0.5, 0.4, 12), 5)).reshape(12, 5)
    problem = bt.fit(real_logs(means, features=features)).problem
    assert problem.dims == 2
    assert problem.feature_prior[0] == pytest.approx((features.mean(),))
    sample = problem.sample(400, np.random.default_rng(0))
    assert (sample.features[..., 0] == 1).all()
    assert sample.features[..., 1].std() == pytest.approx(features.std(), rel=0.1)


def test_deployed_policies_know_the_intercept():
    problem = bt.fit(levelled_logs("binary")).problem
    tuning = bt.tune(
        bt.UCBGLM(prior=problem.prior, noise=0.5),
        problem,
        horizon=20,
        budget=50,
        search=bt.Search(validate=10),
        run=bt.Run(workers=1),
    )
    for live in (tuning.deploy(), tuning.deploy(features=levelled_logs("binary").features[:8])):
        live.add_arm("new", (0.5, 1.5))
        live.add_arm("newer", (1, 0.5, 1.5))
        state = json.loads(live.to_json())
        assert [arm["features"] for arm in state["arms"]] == [
            *map(list, problem.features),
            [1, 0.5, 1.5],
            [1, 0.5, 1.5],
        ]
        with pytest.raises(bt.InvalidRequest, match="same number of features"):
            live.add_arm("odd", (0.5,))


def logistic_logs(campaigns=12, seed=8, dims=1):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(4, dims))
    theta = rng.normal(0.7, 0.6, (campaigns, dims))
    arm = cells(campaigns, 4)[1]
    pulls = rng.integers(2, 12, campaigns * 4)
    wins = rng.binomial(pulls, 1 / (1 + np.exp(-(theta @ features.T).ravel())))
    return bt.make_logs(cells(campaigns, 4)[0], arm, pulls, wins, features=features[arm])


def test_logistic_posteriors_are_those_of_an_integral():
    logs = logistic_logs()
    table = make_reward_table(logs, logs.features)
    mean, covariance = np.array([0.3]), np.array([[0.8]])
    found = ImportanceSampler(table, np.zeros(1))(mean, covariance)
    grid = np.linspace(-8, 8, 4001)
    total = 0.0
    for campaign in range(12):
        scores = table.features[campaign, :, 0, None] * grid
        logs_at = (table.successes[campaign, :, None] * scores).sum(0)
        logs_at -= (table.pulls[campaign, :, None] * np.logaddexp(0, scores)).sum(0)
        weight = np.exp(logs_at + stats.norm.logpdf(grid, 0.3, math.sqrt(0.8)))
        mass = np.trapezoid(weight, grid)
        middle = np.trapezoid(weight * grid, grid) / mass
        spread = np.trapezoid(weight * (grid - middle) ** 2, grid) / mass
        total += math.log(mass)
        # Four standard errors of 512 plain draws; what is nearly normal is known better.
        assert found.means[campaign, 0] == pytest.approx(middle, abs=4 * math.sqrt(spread / 512))
        assert found.covariances[campaign, 0, 0] == pytest.approx(spread, rel=4 * math.sqrt(2 / 512))
    assert found.evidence == pytest.approx(total, abs=0.05)


def test_logistic_estimates_are_those_of_the_integrated_likelihood():
    logs = logistic_logs(campaigns=40)
    table = make_reward_table(logs, logs.features)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)

    def likelihood(mean, sd):
        scores = table.features[:, :, 0, None] * (mean + sd * nodes)
        found = (table.successes[:, :, None] * scores - table.pulls[:, :, None] * np.logaddexp(0, scores)).sum(axis=1)
        return np.log(np.exp(found) @ weights).sum()

    def restricted(sd):
        """The mean is integrated out, too, numerically."""
        means = np.linspace(-1, 2.5, 141)
        logs_at = np.array([likelihood(mean, sd) for mean in means])
        return math.log(np.exp(logs_at - logs_at.max()).sum()) + logs_at.max()

    best = optimize.minimize_scalar(lambda sd: -restricted(sd), bounds=(0.05, 2), method="bounded").x
    mean = optimize.minimize_scalar(lambda mean: -likelihood(mean, best), bounds=(-1, 2.5), method="bounded").x
    gauss, share = fit_logistic_mixed_model(table, "full")
    assert share > 0.5
    assert math.sqrt(gauss.covariance[0, 0]) == pytest.approx(best, rel=0.01)
    assert gauss.mean[0] == pytest.approx(mean, abs=0.01)


def test_covariances_are_of_the_kind_that_was_asked_for():
    logs = together(arms=4)
    table = make_reward_table(logs, np.eye(4)[logs.arm])
    alike = fit_logistic_mixed_model(table, "alike")[0].covariance
    assert np.ptp(np.diag(alike)) == pytest.approx(0, abs=1e-12)
    assert np.ptp(alike[np.triu_indices(4, 1)]) == pytest.approx(0, abs=1e-12)
    assert [len(make_covariance_basis(5, kind)) for kind in ("full", "diagonal", "alike")] == [15, 5, 2]


def test_a_direction_without_spread_keeps_a_little():
    rng = np.random.default_rng(9)
    features = rng.normal(size=(6, 2))
    theta = np.column_stack([rng.normal(0, 1, 15), np.full(15, 0.5)])
    logs = real_logs(theta @ features.T, steps=4, features=features[cells(15, 6)[1]])
    fitted = fit_linear_mixed_model(sum_regressions(logs, logs.features), "diagonal", ("x", "y"), 0.95)
    estimates = {e.name: e for e in summarize_gaussian(fitted.gaussian, ("x", "y"), 0.95)}
    assert fitted.gaussian.is_regularized
    assert 0 < estimates["sd[y]"].value < 0.3
    assert bt.fit(logs).problem.prior[1][1][1] > 0


# Rewards in [0, 1]


def test_the_concentration_of_beta_rewards_is_found():
    rng = np.random.default_rng(10)
    means = rng.beta(2, 3, 4000)
    rewards = rng.beta(4 * means, 4 * (1 - means), (5, 4000))
    squares = ((rewards - rewards.mean(axis=0)) ** 2).sum(axis=0)
    assert compute_reward_concentration(np.full(4000, 5.0), rewards.mean(axis=0), squares) == pytest.approx(4, abs=0.15)
    wins, losses = convert_to_counts(np.array([10.0]), np.array([0.123456]), 4.0)
    assert (wins[0], losses[0]) == pytest.approx((6.173, 43.83))


def test_unit_rewards_are_fitted_by_beta_rewards():
    logs = recovery.unit(np.random.default_rng(11))
    fit = bt.fit(logs)
    assert fit.model == "beta"
    assert isinstance(fit.problem, bt.BetaRewards)
    assert not any(check.has_failed for check in fit.checks)
    with pytest.raises(bt.InvalidRequest, match="beta-binomial"):
        bt.fit(binary_logs(), "beta")


# Campaigns drawn again


def test_campaigns_keep_what_arms_have_in_common():
    logs = together()
    fit = bt.fit(logs, "campaigns")
    means = fit.problem.sample(20_000, np.random.default_rng(0)).means
    inside = means.std(axis=1, ddof=1)
    raw = np.array([logs.mean[logs.campaign == c].std(ddof=1) for c in range(40)])
    # The raw spread within campaigns holds the noise of 200 pulls; the posterior's does not.
    noise = (logs.mean * (1 - logs.mean) / 200).mean()
    assert (inside**2).mean() == pytest.approx((raw**2).mean() - noise, rel=0.25)
    assert means.mean(axis=1).std() == pytest.approx(np.bincount(logs.campaign, logs.mean).std() / 5, rel=0.1)
    assert not any(check.has_failed for check in fit.checks)
    independent = bt.fit(logs)
    assert any("rise and fall together" in note and "campaigns" in note for note in independent.notes)


def rare_logs(seed=21, campaigns=30, arms=3, pulls=4000, rate=0.001, size=8000):
    """Campaigns that pay about 1 in 1,000, with arms that differ by a third of that (size 8,000) or not at all (None)."""
    rng = np.random.default_rng(seed)
    campaign, arm = cells(campaigns, arms)
    centre = rng.gamma(4, rate / 4, campaigns)[campaign]
    means = centre if size is None else rng.beta(size * centre, size * (1 - centre))
    counts = np.maximum(rng.poisson(pulls, len(campaign)), 2)
    return bt.make_logs(campaign, arm, counts, rng.binomial(counts, means))


def centre_oracle(logs, size, worth):
    """By SciPy's beta-binomial distribution and quadrature: the log likelihood of a size, and the centres' means."""
    overall = logs.total.sum() / logs.pulls.sum()
    total, centres = 0.0, []
    for campaign in range(len(logs.campaigns)):
        mine = logs.campaign == campaign
        wins, pulls = logs.total[mine], logs.pulls[mine]

        def height(logit, wins=wins, pulls=pulls):
            good, bad = 1 / (1 + np.exp(-logit)), 1 / (1 + np.exp(logit))
            prior = stats.beta.logpdf(good, worth * overall, worth * (1 - overall)) + np.log(good * bad)
            return prior + stats.betabinom.logpmf(wins[:, None], pulls[:, None], size * good, size * bad).sum(axis=0)

        grid = np.linspace(-200, 20, 60_001)
        heights = height(grid)
        weights = np.exp(heights - heights.max())
        total += heights.max() + math.log(np.trapezoid(weights, grid))
        centres.append(np.average(1 / (1 + np.exp(-grid)), weights=weights))
    return total, np.array(centres)


@pytest.mark.parametrize("logs", [rare_logs(campaigns=5, pulls=600), binary_logs(campaigns=4)])
def test_the_likelihood_of_a_spread_within_campaigns_is_that_of_an_integral(logs):
    mine = hierarchical_beta.make_beta_cells(logs.campaign, logs.total, (logs.pulls - logs.total).astype(float))
    places = [
        (2.0, mine.centre_concentration),
        (40.0, mine.centre_concentration / 5),
        (8000.0, mine.centre_concentration),
        (8000.0, 3000.0),
    ]
    found = [
        hierarchical_beta.compute_evidence(mine._replace(centre_concentration=worth), math.log(size))
        for size, worth in places
    ]
    expected = [centre_oracle(logs, *place) for place in places]
    for place in range(1, 4):
        rise = expected[place][0] - expected[0][0]
        assert found[place][0] - found[0][0] == pytest.approx(rise, abs=1e-3)
    for (_, mean), (_, exact) in zip(found, expected, strict=True):
        assert mean == pytest.approx(exact, rel=5e-3)


@pytest.mark.parametrize("name", ["campaigns, Thompson", "campaigns, two long"])
def test_the_prior_of_centres_is_the_likeliest_of_all(name):
    logs = recovery.DESIGNS[name][1](np.random.default_rng(1))
    mine = hierarchical_beta.make_beta_cells(logs.campaign, logs.total, logs.pulls - logs.total)
    found, size = hierarchical_beta.fit_concentration_and_centres(mine)

    def fall(numbers):
        return -hierarchical_beta.compute_evidence(
            hierarchical_beta.replace_centre_logit(mine, numbers[2])._replace(
                centre_concentration=math.exp(numbers[1])
            ),
            numbers[0],
        )[0]

    start = np.array([size, math.log(found.centre_concentration), hierarchical_beta.compute_logit(found.centre_mean)])
    best = optimize.minimize(
        fall, start + np.array([0.5, -0.5, 0.2]), method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-4}
    )
    assert fall(start) == pytest.approx(best.fun, abs=0.01)
    assert found.centre_mean == pytest.approx(1 / (1 + math.exp(-best.x[2])), rel=0.01)
    # The rate of all pulls is no mean of campaigns here.
    assert abs(mine.centre_mean / found.centre_mean - 1) > 0.1


def test_among_many_campaigns_of_one_arm_those_of_two_tell_the_spread(monkeypatch):
    monkeypatch.setattr(hierarchical_beta, "MAX_INFORMATIVE_CELLS", 200)
    rng = np.random.default_rng(5)
    campaign = np.concatenate([np.arange(300), [300, 300]])
    arm = np.concatenate([np.zeros(301, int), [1]])
    pulls = np.full(302, 50)
    for good in (5, 25):
        total = np.concatenate([rng.binomial(50, 0.2, 300), [5, good]])
        fit = bt.fit(bt.make_logs(campaign, arm, pulls, total), "campaigns", arms=2)
        assert len(fit.problem.posteriors) == 1
        assert (fit["sd within campaigns"].value > 0) == (good > 5)
        assert any("estimated from 1 of them, chosen at random among those with two arms" in note for note in fit.notes)


def test_pieces_of_campaigns_add_up(monkeypatch):
    logs = binary_logs()
    mine = hierarchical_beta.make_beta_cells(logs.campaign, logs.total, logs.pulls - logs.total)
    whole = hierarchical_beta.compute_evidence(mine, 3.0)
    monkeypatch.setattr(hierarchical_beta, "MAX_CHUNK_NODES", 300)
    parts = hierarchical_beta.compute_evidence(mine, 3.0)
    assert parts[0] == pytest.approx(whole[0])
    assert np.allclose(parts[1], whole[1])
    monkeypatch.setattr(hierarchical_beta, "MAX_INFORMATIVE_CELLS", 41)
    assert any("estimated from 10 of them" in note for note in bt.fit(logs, "campaigns").notes)


def test_rare_rewards_have_a_spread_within_campaigns_and_an_interval():
    fit = bt.fit(rare_logs(), "campaigns")["sd within campaigns"]
    truth = math.sqrt(0.001 / 8001)
    assert fit.low < truth < fit.high
    assert 0.5 * truth < fit.value < 2 * truth
    # Half of the old floor, a hundredth of the largest possible standard deviation.
    none = bt.fit(rare_logs(size=None), "campaigns")["sd within campaigns"]
    assert none.low == 0
    assert none.value <= none.high < 0.01 * math.sqrt(0.001)
    assert none.high > 0


def test_arms_of_campaigns_without_spread_differ_as_much_as_logs_allow():
    logs = bt.make_logs(*cells(6, 3), np.full(18, 1000), np.repeat([3, 5, 8, 2, 4, 6], 3))
    fit = bt.fit(logs, "campaigns")
    spread = fit["sd within campaigns"]
    assert (spread.value, spread.low) == (0, 0)
    assert any("do not differ beyond chance" in note for note in fit.notes)
    ((a, b), *_), *_ = fit.problem.posteriors
    size = 14 / 3 * 0.001 * (1 - 14 / 3 * 0.001) / spread.high**2 - 1
    assert a + b == pytest.approx(size + 1000, rel=1e-3)
    real = bt.make_logs(*cells(4, 3), np.full(12, 10), np.full(12, 5.0), np.full(12, 9.0), rewards="real")
    spread = bt.fit(real, "campaigns")["sd within campaigns"]
    assert (spread.value, spread.low) == (0, 0)
    assert 0.01 < spread.high < 1


def test_a_campaign_that_never_paid_is_not_taken_to_pay_nothing():
    logs = bt.make_logs(*cells(4, 2), np.full(8, 500), [0, 0, 3, 2, 1, 4, 2, 2])
    first = bt.fit(logs, "campaigns").problem.posteriors[0][0]
    mean = first[0] / sum(first)
    assert 14 / 4000 / 20 < mean < 14 / 4000 / 2


def test_a_spread_that_chance_explains_is_told_as_none():
    rng = np.random.default_rng(0)
    small = 0
    for _ in range(16):
        pulls = rng.integers(20, 60, 12)
        wins = rng.binomial(pulls, 0.3)
        estimates = {
            e.name: e for e in fit_beta_prior(wins.astype(float), (pulls - wins).astype(float), 0.95).estimates
        }
        spread = estimates["sd"]
        assert spread.value == 0 or spread.value > 0.15 * spread.high
        assert (spread.value == 0) == (estimates["a"].value == math.inf)
        small += spread.value == 0
    assert 0 < small < 16


def test_reaches_for_few_cells_are_those_of_scipy():
    for degrees, count in ((1, 2), (2, 3), (3, 4), (5, 5), (150, 151)):
        assert compute_spread_reach(0.95, degrees, count) ** 2 == pytest.approx(spread_cut(degrees, count), rel=1e-4)
    for count in (2, 3, 4, 30):
        assert compute_mean_reach(0.95, count) ** 2 == pytest.approx(mean_cut(count), rel=0.02)


@pytest.mark.parametrize("confidence", [0.5, 0.9999, 0.999999])
def test_reaches_of_other_confidences_are_those_of_scipy(confidence):
    for degrees, count in ((2, 3), (5, 5), (150, 151)):
        expected = spread_cut(degrees, count, confidence)
        assert compute_spread_reach(confidence, degrees, count) ** 2 == pytest.approx(expected, rel=1e-4)


def test_campaigns_tell_what_their_rewards_use():
    told = {kind: set(describe(bt.Campaigns([[(1, 2), (3, 4)]], kind))) for kind in ("binary", "unit", "real")}
    always = {"name", "posteriors", "rewards", "arms", "names"}
    # Binary ones had a noise before there was any v, and ledgers know them so.
    assert told == {"binary": always | {"noise"}, "unit": always | {"v"}, "real": always | {"noise"}}


def test_campaigns_are_counted_where_a_problem_is_told_in_words():
    rows = [[(1.5, 2), (3, 4), (5, 6), (7, 8), (9, 1)], [(1, 2), (3, 4), (5, 6)], [(1, 2), (3, 4)]]
    assert make_label(bt.Campaigns(rows)).startswith("campaigns(posteriors=3 tables, ")
    # A mean and a covariance are told as they were.
    assert shorten_value(([0, 1], [[1, 0], [0, 1]])) == "((0, 1), ((1, 0), (0, 1)))"


def test_a_fit_is_not_taken_for_its_problem():
    fit = bt.fit(bt.make_logs(["a", "a", "b", "b"], ["x", "y", "x", "y"], [90, 90, 90, 90], [9, 20, 30, 4]))
    with pytest.raises(
        bt.InvalidRequest, match=r"but got a FittedProblem, which holds one; pass its fields: fitted.problem, horizon="
    ):
        bt.tune(bt.UCB1(noise=0.5), fit, horizon=10, budget=12)
    with pytest.raises(bt.InvalidRequest, match=r"read them first: fit\(read_logs\(FILE\)\)"):
        bt.fit("logs.csv")
    assert "; a check fails where the share above is outside 0.005 to 0.995\n" in repr(fit)


def test_campaigns_with_more_arms_give_some_of_them_in_their_order():
    rows = [[(1e9 * k, 1e9 * (10 - k)) for k in (1, 2, 3, 4)], [(7e9, 3e9), (8e9, 2e9)]]
    problem = bt.Campaigns(rows)
    assert problem.arms == 2
    means = np.round(problem.sample(4000, np.random.default_rng(0)).means, 2)
    assert (means[:, 0] < means[:, 1]).all()
    pairs, counts = np.unique(means[means[:, 0] < 0.5], axis=0, return_counts=True)
    assert len(pairs) == 6
    assert stats.chisquare(counts).pvalue > 1e-4
    assert abs((means[:, 0] == 0.7).mean() - 0.5) < 4 * 0.5 / math.sqrt(4000)
    real = bt.Campaigns([[(1, 0.1), (2, 0.1)]], rewards="real", noise=0.5)
    assert bt.simulate(bt.UCB1(noise=0.5), real, [0.3], horizon=30, runs=4).shape == (1, 4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"posteriors": []}, "a row of pairs"),
        ({"posteriors": [[(1, 2), (3, -4)]]}, "a > 0 and b > 0"),
        ({"posteriors": [[(1, 2), (3, 0)]], "rewards": "real"}, "sd > 0"),
        ({"posteriors": [[(1, 2), (3, 4)]], "rewards": "whole"}, "binary"),
        ({"posteriors": [[(1, 2), (3, 4)]], "rewards": "unit", "v": 0}, "v > 0"),
        ({"posteriors": [[(1, 2), (3, 4)]], "arms": 3}, "arms <= 2"),
        ({"posteriors": [[(1, 2, 3)]]}, "pairs of finite numbers"),
    ],
)
def test_campaigns_that_cannot_be_are_refused(options, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.Campaigns(**options)


# The front


@pytest.fixture(scope="module")
def fits():
    found = [bt.fit(together(arms=3), model) for model in ("auto", "correlated", "campaigns")]
    real = real_logs(np.random.default_rng(1).normal(size=(5, 3)))
    return [*found, bt.fit(real), bt.fit(real, "campaigns"), bt.fit(linear_logs()), bt.fit(logistic_logs())]


def test_arms_that_are_seldom_there_share_the_sd_of_all():
    """Twelve campaigns, of which nine hold two arms of twenty: seldom arms once had an sd five times the true one."""
    rng = np.random.default_rng(5)
    widths = np.where(np.arange(12) < 9, 2, 20)
    campaign, arm = np.repeat(np.arange(12), widths), np.concatenate([np.arange(width) for width in widths])
    logit = -1 + rng.normal(0, 0.4, 12)[campaign] + rng.normal(0, 0.4, len(arm))
    successes = rng.binomial(200, 1 / (1 + np.exp(-logit)))
    fit = bt.fit(bt.make_logs(campaign, arm, np.full(len(arm), 200), successes), "correlated")
    sds = [estimate for estimate in fit.estimates if estimate.name.startswith("sd")]
    assert len({round(estimate.value, 6) for estimate in sds}) == 1
    assert sds[0].low < 0.4 * math.sqrt(2) < sds[0].high
    assert fit["correlation"].low < 0.5 < fit["correlation"].high


@pytest.mark.parametrize("seed", range(4))
def test_arms_without_a_success_are_correlated_with_the_others(seed):
    """The first arm pays 1 in 160,000, so that it had no success: its logit has no likeliest value."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-5, 0.5, (20, 1)) + rng.normal(0, 0.5, (20, 6)) - 7 * (np.arange(6) == 0)
    campaign, arm = cells(20, 6)
    wins = rng.binomial(300, 1 / (1 + np.exp(-logits.ravel())))
    assert not wins[arm == 0].any()
    fit = bt.fit(bt.make_logs(campaign, arm, np.full(120, 300), wins), "correlated")
    assert not any(check.has_failed for check in fit.checks)
    assert fit["mean[0]"].low < -12 < fit["mean[0]"].value < -8
    assert fit["sd[0]"].low < math.sqrt(0.5) < fit["sd[0]"].high
    assert fit["correlation"].low < 0.5 < fit["correlation"].high
    assert any("1 arm (0) always paid the same: half a success" in note for note in fit.notes)
    assert not any("feature" in note for note in fit.notes)


def test_every_fit_goes_to_json_and_back_and_gives_its_problem(fits, tmp_path):
    assert len(fits) == 7
    for found in fits:
        assert bt.results.from_json(found.to_json()) == found
        problem = bt.results.from_json(found.to_json()).problem
        assert problem == found.problem
        assert problem.arms == found.arms
        found.save(tmp_path / "fit.json")
        assert isinstance(bt.load_result(tmp_path / "fit.json"), FittedProblem)


def test_captions_say_what_is_compared_where_a_policy_chose_the_arms(fits, tmp_path):
    rng = np.random.default_rng(3)
    campaign, arm = cells(20, 4)
    means = rng.beta(2, 5, 80)
    pulls = (5 + 200 * means).astype(int)  # good arms were pulled more often
    fit = bt.fit(bt.make_logs(campaign, arm, pulls, rng.binomial(pulls, means)))
    assert is_adaptively_chosen(bt.make_logs(campaign, arm, pulls, pulls * means))
    for one, right, wrong in (
        (fit, ("means drawn given the logs", "means drawn from the fit"), "replay"),
        (fits[0], ("mean rewards in the logs", "mean rewards in replayed logs"), "drawn"),
    ):
        axes = one.plot().axes[0]
        legend = " ".join(words.get_text() for words in axes.get_legend().get_texts())
        assert [axes.get_ylabel(), axes.get_xlabel()] == [f"quantile of {words}" for words in right]
        page = one.report(tmp_path / "fit.html").read_text()
        assert all(words in page for words in right)
        for words in (repr(one), legend, page):
            assert wrong not in words
    assert make_checks_table(fit).header[1:3] == ("given the logs", "95% in the fit")


def test_every_fit_is_told_drawn_and_reported(fits, tmp_path):
    for found in fits:
        words = repr(found)
        assert found.model in words
        assert "replayed" in words
        page = found.report(tmp_path / "fit.html")
        assert found.estimates[0].name in page.read_text()
    found.plot(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 5000


def test_arms_and_horizon_come_from_the_logs_or_are_told():
    logs = bt.make_logs([0, 0, 0, 1, 1], "abcab", [10, 20, 30, 40, 50], [1, 2, 9, 4, 25])
    fit = bt.fit(logs)
    assert (fit.arms, fit.horizon, fit.campaigns, fit.decisions) == (2, 75, 2, 150)
    assert any("2 to 3 arms" in note for note in fit.notes)
    assert any("60 to 90 decisions" in note for note in fit.notes)
    told = bt.fit(logs, arms=7, horizon=500)
    assert (told.problem.arms, told.horizon) == (7, 500)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "beta-binomia"}, "did you mean 'beta-binomial'"),
        ({"model": "gaussian", "confidence": 1.5}, "confidence < 1"),
        ({"model": "campaigns", "per_arm": True}, "per_arm"),
        ({"arms": 1}, "`arms` must be a whole number >= 2"),
        ({"horizon": 0}, "`horizon` must be a whole number >= 1"),
        ({"model": "correlated", "arms": 9}, "leave it out"),
        ({"model": "campaigns", "arms": 9}, "the most that a campaign had"),
    ],
)
def test_wishes_that_cannot_be_are_refused(options, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.fit(binary_logs(), **options)
    with pytest.raises(bt.InvalidRequest, match="past logs"):
        bt.fit([1, 2])


def test_checks_pass_on_logs_of_the_model_and_fail_on_others():
    assert not any(check.has_failed for check in bt.fit(binary_logs(campaigns=30)).checks)
    failed = {check.statistic for check in bt.fit(together()).checks if check.has_failed}
    assert "arms rise and fall together" in failed
    assert not any(check.has_failed for check in bt.fit(together(), "correlated").checks)
    rng = np.random.default_rng(12)
    ranked = real_logs(np.linspace(0, 2, 6) + rng.normal(0, 0.1, (20, 6)))
    notes = bt.fit(ranked).notes
    assert any("same name" in note and "per_arm=True" in note for note in notes)
    assert not any("same name" in note for note in bt.fit(ranked, per_arm=True).notes)
    curved = linear_logs()
    bent = curved.total + curved.pulls * 1.5 * curved.features[:, 0] ** 2
    unlike = bt.make_logs(
        curved.campaign, curved.arm, curved.pulls, bent, curved.squares, rewards="real", features=curved.features
    )
    assert any("features do not explain" in note for note in bt.fit(unlike).notes)


def test_many_cells_are_checked_by_some_campaigns(monkeypatch):
    monkeypatch.setattr(posterior_predictive, "MAX_CHECKED_CELLS", 41)
    assert "checks look at 10 of 20 campaigns, chosen at random" in bt.fit(binary_logs()).notes


def test_the_lead_is_that_of_sorted_campaigns():
    rng = np.random.default_rng(13)
    widths = np.array([3, 1, 2, 5])
    campaign = np.repeat(np.arange(4), widths)
    means = rng.integers(0, 4, (50, 11)) / 4  # many ties
    pieces = np.split(means, np.cumsum(widths)[:-1], axis=1)
    leads = [np.diff(np.sort(piece, axis=1)[:, -2:], axis=1)[:, 0] for piece in pieces if piece.shape[1] > 1]
    found = ppc_statistics.make_lead_statistic(campaign, widths)(means, means)
    assert found == pytest.approx(np.mean(leads, axis=0), abs=1e-12)


def test_memory_of_checks_does_not_grow_with_the_widest_campaign():
    campaign = np.concatenate([np.zeros(2000, int), np.repeat(np.arange(1, 1501), 2)])
    arm = np.concatenate([np.arange(2000), np.tile([0, 1], 1500)])
    pulls = np.concatenate([np.full(2000, 500), np.full(3000, 20)])
    logs = bt.make_logs(campaign, arm, pulls, np.random.default_rng(0).binomial(pulls, 0.2))
    draft = MODELS["beta-binomial"](logs, FitOptions(False, 2, 0.95))
    tracemalloc.start()
    posterior_predictive.run_predictive_checks(logs, draft, "beta-binomial")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # 400 replays of 5,000 cells are 16 MB, of which some are held at once; a table of campaigns by arms had 9.6 GB.
    assert peak < 250e6


def test_of_a_campaign_with_too_many_arms_some_are_checked(monkeypatch):
    monkeypatch.setattr(posterior_predictive, "MAX_CHECKED_CELLS", 30)
    rng = np.random.default_rng(0)
    logs = bt.make_logs(np.zeros(70, int), np.arange(70), np.full(70, 50), rng.binomial(50, rng.beta(2, 5, 70)))
    assert "checks look at 30 of the 70 arms of one campaign, chosen at random" in bt.fit(logs).notes


def thompson_logs(seed, means):
    return recovery.binary(len(means), *recovery.thompson(np.random.default_rng(seed), means, 300))


def test_checks_hold_where_a_policy_chose_the_arms():
    for seed in range(4):
        rng = np.random.default_rng([20, seed])
        logs = thompson_logs(seed, rng.beta(2, 5, (25, 6)))
        assert is_adaptively_chosen(logs)
        fit = bt.fit(logs)
        assert not any(check.has_failed for check in fit.checks)
        (note,) = (note for note in fit.notes if "pulled the more often" in note)
        assert "'share of arms without a success', 'spread weighted by pulls'" in note
        assert [check.statistic for check in bt.fit(logs, "campaigns").checks] == ["lead of the best arm"]
    assert not is_adaptively_chosen(binary_logs())
    assert not is_adaptively_chosen(together())


def test_checks_still_fail_on_a_wrong_fit_where_a_policy_chose_the_arms():
    rng = np.random.default_rng(21)
    logits = rng.normal(-1, 0.8, (25, 1)) + rng.normal(0, 0.3, (25, 6))
    fit = bt.fit(thompson_logs(22, 1 / (1 + np.exp(-logits))))
    assert "arms rise and fall together" in {check.statistic for check in fit.checks if check.has_failed}


def test_means_drawn_given_the_logs_are_means_of_the_prior_whoever_chose_the_arms():
    # Averaged over logs, posteriors are the prior: exactly what the checks of a policy's logs rely on.
    above = []
    for seed in range(60):
        rng = np.random.default_rng([23, seed])
        logs = recovery.binary(10, *recovery.thompson(rng, rng.beta(2, 5, (10, 4)), 60))
        known = rng.beta(2 + logs.total, 5 + logs.pulls - logs.total, (200, len(logs.total)))
        fresh = rng.beta(2, 5, (200, len(logs.total)))
        above.append(posterior_predictive.make_predictive_check("", known.std(axis=1), fresh.std(axis=1)).p_value)
    assert abs(np.mean(above) - 0.5) < 4 * np.std(above) / math.sqrt(60)


def test_the_significance_of_a_lead_is_that_of_two_sorted_arms():
    campaign, arm = np.array([0, 0, 0, 1, 2, 2]), np.array([0, 1, 2, 0, 0, 1])
    pulls, wins = np.array([10, 20, 40, 10, 30, 30]), np.array([5, 4, 10, 2, 0, 0])
    rate = 19 / 70
    lead = (5 / 10 - 10 / 40) / math.sqrt(rate * (1 - rate) * (1 / 10 + 1 / 40))
    assert compute_lead_significances(bt.make_logs(campaign, arm, pulls, wins)) == pytest.approx([lead, 0, 0])


def test_checks_hold_where_tests_ended_when_they_were_significant():
    for seed in range(4):
        rng = np.random.default_rng([30, seed])
        means = rng.beta(10, 40, (60, 2))
        logs, ordinary = alarms.stopped(rng, means), alarms.uneven(rng, means)
        assert is_stopped_early(logs)
        assert not is_stopped_early(ordinary)
        fit = bt.fit(logs)
        assert not any(check.has_failed for check in fit.checks)
        assert any("as tests are that end when they are significant: checks look at means" in n for n in fit.notes)
        assert fit.uses_posterior_draws
        assert len(bt.fit(ordinary).checks) > len(fit.checks)


def test_checks_still_fail_on_a_wrong_fit_where_tests_ended_when_they_were_significant():
    rng = np.random.default_rng(31)
    fit = bt.fit(alarms.stopped(rng, alarms.around(rng)))
    assert "arms rise and fall together" in {check.statistic for check in fit.checks if check.has_failed}


def test_a_lead_that_lengths_may_explain_is_told_with_that_cause():
    # Two lengths; the lead is too large in both, as far as the fit can tell, and lengths do not follow it.
    pulls = np.repeat(np.tile([200, 300], 20), 3)
    wins = (pulls * np.tile([0.1, 0.1, 0.3], 40)).astype(int)
    logs = bt.make_logs(*cells(40, 3), pulls, wins)
    assert not is_stopped_early(logs)
    assert POSSIBLE_STOPPING_NOTE in bt.fit(logs).notes
    same = bt.make_logs(*cells(40, 3), np.full(120, 200), np.tile([20, 20, 60], 40))
    assert POSSIBLE_STOPPING_NOTE not in bt.fit(same).notes


# Recovery


@pytest.mark.parametrize("name", ["beta-binomial, rare", "gaussian, few", "linear", "linear, few"])
def test_intervals_hold_the_truth_about_as_often_as_they_say(name):
    repetitions = 15
    shares = recovery.covered(name, repetitions, seed=3)
    assert len(shares) >= 2
    for share in shares.values():
        assert share >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / repetitions)


def test_it_does_not_matter_who_chose_the_arms():
    at_random = recovery.beta_binomial(np.random.default_rng(14))
    by_thompson = recovery.beta_binomial_adaptive(np.random.default_rng(14))
    assert by_thompson.pulls.max() > 5 * at_random.pulls.max()
    for logs in (at_random, by_thompson):
        estimates = {e.name: e for e in MODELS["beta-binomial"](logs, FitOptions(False, 10, 0.9999)).estimates}
        assert all(
            estimates[name].low <= value <= estimates[name].high for name, value in recovery.beta_truth(2, 5).items()
        )


@pytest.mark.slow
@pytest.mark.parametrize("name", list(recovery.DESIGNS))
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    shares = recovery.covered(name, 300, seed=4)
    assert len(shares) >= 2
    for share in shares.values():
        assert abs(share - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / 300)
