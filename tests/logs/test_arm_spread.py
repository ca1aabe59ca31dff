"""Campaigns that differ in their spread, and arms of another shape than was evaluated."""

from __future__ import annotations

import backtests
import fit_recovery
import numpy as np
import pytest

import banditune as bt
from banditune.logs.models.arm_shape_test import compute_arm_shape_p
from banditune.logs.models.arm_shapes import fit_arm_shapes
from banditune.logs.models.signed_spread import fit_arm_spread
from banditune.logs.models.spread_factors import (
    EQUAL_SHARES,
    FACTOR_SHAPES,
    NO_VARIATION,
    SPREAD_FACTORS,
    choose_campaign_factors,
    fit_factor_law,
    make_factor_laws,
)
from banditune.reports.report_builder import build_report_content


def binary_logs(means, pulls, rng):
    """Logs of campaigns with these means (campaigns, arms)."""
    table = np.full(means.shape, pulls)
    return fit_recovery.binary(len(means), table, rng.binomial(table, means))


def normal_logs(means, pulls, rng):
    """The same with real rewards whose noise is 1."""
    counts = np.full(means.size, pulls)
    total = counts * rng.normal(means.ravel(), 1 / np.sqrt(counts))
    return bt.make_logs(*fit_recovery.cells(*means.shape), counts, total, rng.chisquare(counts - 1), rewards="real")


def test_factor_laws_have_mean_1_and_the_variance_of_their_gamma_law():
    laws = make_factor_laws()
    assert laws.sum(axis=1) == pytest.approx(np.ones(len(laws)))
    assert laws @ SPREAD_FACTORS == pytest.approx(np.ones(len(laws)), abs=1e-6)
    variances = laws @ (SPREAD_FACTORS - 1) ** 2
    assert variances[0] == 0
    # The grid ends at a factor of 10, and wide laws reach beyond it.
    assert variances[1:4] == pytest.approx(1 / np.array(FACTOR_SHAPES[:3]), rel=0.12)
    gamma_count = 1 + len(FACTOR_SHAPES)
    assert (np.diff(variances[:gamma_count]) > 0).all()
    # Arms are equal in a share of campaigns, about as large as wanted.
    assert laws[gamma_count:, 0] == pytest.approx(EQUAL_SHARES, abs=0.05)
    assert (laws[:gamma_count, 0] == 0).all()


@pytest.mark.parametrize("make", [binary_logs, normal_logs])
def test_the_likelihoods_of_campaigns_add_up_and_tell_their_factors(make):
    rng = np.random.default_rng(3)
    wide = np.arange(24) % 2
    middle = rng.uniform(0.3, 0.6, (24, 1))
    logs = make(middle + rng.normal(size=(24, 6)) * np.where(wide, 0.12, 0.01)[:, None], 400, rng)
    arms = fit_arm_spread(logs)
    law = fit_factor_law(arms, arms.spread.value).law
    assert law.sum() == pytest.approx(1)
    assert law[NO_VARIATION] < 0.2  # wide laws have the factor 1, too
    factors = SPREAD_FACTORS[choose_campaign_factors(arms, arms.spread.value, law)].mean(axis=1)
    assert factors[wide == 1].min() > factors[wide == 0].max()
    assert factors.mean() == pytest.approx(1, abs=0.3)
    # Where all campaigns have the same spread, most of the law is at the factor 1.
    same = make(middle + rng.normal(size=(24, 6)) * 0.08, 400, rng)
    alike = fit_arm_spread(same)
    assert fit_factor_law(alike, alike.spread.value).law[NO_VARIATION] > 0.5
    equal = make(np.tile(middle, 6), 400, np.random.default_rng(1))
    none = fit_arm_spread(equal)
    assert none.spread.value < 0
    assert fit_factor_law(none, none.spread.value).law[NO_VARIATION] == 1


def test_regrets_are_right_where_campaigns_differ_in_their_spread():
    """With one spread for all campaigns the regret of these logs was 11% too high on average."""
    found, truth = backtests.measure("200 pulls, campaigns differ", 4)
    away = found[:, 0, 0] / truth[:, 0] - 1
    assert abs(away.mean()) < 0.06
    assert backtests.cover(found, truth[:, :-1])[0] == 1
    assert backtests.format_with_spread(found, truth).count("±") == 4


@pytest.mark.parametrize("make", [binary_logs, normal_logs])
def test_p_values_of_the_shape_of_arms_are_not_too_low(make):
    found, count = [], 20
    for seed in range(count):
        rng = np.random.default_rng([7, seed])
        middle = rng.uniform(0.3, 0.6, (20, 1))
        size = 40.0
        found.append(_compute_shape_p(make(rng.beta(size * middle, size * (1 - middle), (20, 5)), 200, rng)))
    assert np.isfinite(found).all()
    for level in (0.02, 0.2):
        assert np.mean(np.array(found) <= level) < level + 4 * np.sqrt(level * (1 - level) / count)


def _compute_shape_p(logs):
    arms = fit_arm_spread(logs)
    return compute_arm_shape_p(logs, arms, fit_arm_shapes(arms))


@pytest.mark.parametrize("make", [binary_logs, normal_logs])
def test_two_arms_that_are_better_than_equal_others_are_seen(make):
    means = np.full((20, 5), 0.15)
    means[:, :2] = 0.5
    assert _compute_shape_p(make(means, 500, np.random.default_rng(1))) <= 0.01


def test_the_shape_is_not_tested_where_logs_cannot_tell_it():
    rng = np.random.default_rng(2)
    equal = binary_logs(np.full((20, 5), 0.2), 100, np.random.default_rng(7))
    assert fit_arm_spread(equal).spread.value < 0
    assert np.isnan(_compute_shape_p(equal))
    pulls, wins = fit_recovery.thompson(rng, rng.beta(2, 5, (20, 5)), 400)
    assert np.isnan(_compute_shape_p(fit_recovery.binary(20, pulls, wins)))
    campaign, arm = np.divmod(np.arange(100 * 20) // 20, 5)
    reward = rng.normal(size=100)[campaign * 5 + arm] + rng.standard_t(3, 2000)
    tails = bt.read_logs({"campaign": campaign, "arm": arm, "reward": reward})
    assert np.isnan(_compute_shape_p(tails))


def test_a_backtest_states_that_arms_have_another_shape():
    means = np.full((40, 5), 0.15)
    means[:, :2] = 0.35
    backtest = bt.backtest(bt.UCB1(noise=0.5), binary_logs(means, 500, np.random.default_rng(0)), horizon=50, budget=12)
    assert backtest.arm_shape_p <= 0.01
    sentence = "the arms of the 20 campaigns that were left out differ in another way than the evaluation assumes"
    notice = backtest.notices[0]
    assert notice.code == "wrong-arm-shape"
    assert notice.message.startswith(sentence)
    assert f"warning: {sentence}" in repr(backtest)
    assert not backtest.has_equal_arms
    assert sentence[1:] in build_report_content(backtest).sections[0].paragraphs[-1]
    assert bt.results.from_json(backtest.to_json()) == backtest
