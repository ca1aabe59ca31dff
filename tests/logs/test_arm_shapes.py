"""Shapes of arms' means: how likely each is, and what a backtest states where logs do not tell them apart."""

from __future__ import annotations

import math
from functools import partial

import backtests
import numpy as np
import pytest
from scipy import integrate, stats

import banditune as bt
from banditune.logs.models.arm_shapes import (
    BETA_SHAPE,
    BETTER_SHAPE,
    ONLY_CENTRE,
    SHAPE_PRIOR,
    WORSE_SHAPE,
    fit_arm_shapes,
)
from banditune.logs.models.odd_arm_shapes import make_odd_arm_model
from banditune.logs.models.signed_spread import fit_arm_spread
from banditune.logs.models.spread_factors import NO_VARIATION, SPREAD_FACTORS
from banditune.reports.report_builder import build_report_content

PULLS = np.array([20, 35, 50])
WINS = np.array([[4, 11, 9], [2, 4, 12], [9, 11, 16]])


def make_few_binary_logs():
    """Three campaigns of three arms."""
    return backtests.binary(3, np.tile(PULLS, (3, 1)), WINS)


def make_few_real_logs():
    """The same with real rewards."""
    total = np.array([[3.0, 1.0, 9.0], [1.0, 2.0, -4.0], [8.0, 9.0, 30.0]]).ravel()
    pulls = np.tile(PULLS, 3)
    return bt.make_logs(*np.divmod(np.arange(9), 3), pulls, total, pulls - 1.0, rewards="real")


def compute_odd_beta_curve(arms, campaign, spread, sign, centre):
    """Density of a centre with the data of a campaign, for each arm that may be the odd one; written in plain Python."""
    prior = stats.beta(
        arms.cells.centre_mean * arms.cells.centre_concentration,
        (1 - arms.cells.centre_mean) * arms.cells.centre_concentration,
    )
    distance = sign * np.sqrt(3 * spread * centre * (1 - centre))
    found = []
    for odd in range(3):
        value = prior.pdf(centre) / 3
        for arm in range(3):
            rate = centre + distance * ((arm == odd) - 1 / 3)
            value *= rate ** WINS[campaign, arm] * (1 - rate) ** (PULLS[arm] - WINS[campaign, arm])
        found.append(value)
    return np.array(found)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_likelihood_of_an_odd_beta_arm_is_an_integral_over_its_centre(sign):
    arms = fit_arm_spread(make_few_binary_logs())
    found = make_odd_arm_model(arms, sign).compute_campaign_likelihoods(0.01)
    for campaign in range(3):
        curve = partial(compute_odd_beta_curve, arms, campaign, 0.01, sign)
        exact = integrate.quad(lambda centre, curve=curve: 1e25 * curve(centre).sum(), 0.03, 0.8, limit=200)[0]
        assert found[campaign] == pytest.approx(math.log(exact) - 25 * math.log(10), abs=1e-3)


@pytest.mark.parametrize("sign", [1, -1])
def test_the_likelihood_of_an_odd_normal_arm_is_an_integral_over_its_centre(sign):
    arms = fit_arm_spread(make_few_real_logs())
    found = make_odd_arm_model(arms, sign).compute_campaign_likelihoods(0.05)
    means = arms.mean.reshape(3, 3)

    def compute_curve(campaign, centre):
        rates = centre + sign * math.sqrt(3 * 0.05) * (np.eye(3) - 1 / 3)
        return stats.norm.pdf(means[campaign], rates, 1 / np.sqrt(PULLS)).prod(axis=1).mean()

    for campaign in range(3):
        exact = integrate.quad(partial(compute_curve, campaign), -1, 2, limit=200)[0]
        # The restricted likelihood has no factor of 2 pi: a density of three means, less that of one centre.
        assert found[campaign] == pytest.approx(math.log(exact) + math.log(2 * math.pi), abs=1e-5)


@pytest.mark.parametrize("make", [make_few_binary_logs, make_few_real_logs])
def test_without_spread_all_shapes_are_the_same(make):
    arms = fit_arm_spread(make())
    likelihoods = arms.compute_campaign_likelihoods(1e-9)
    for sign in (1, -1):
        odd = make_odd_arm_model(arms, sign).compute_campaign_likelihoods(1e-9)
        assert odd == pytest.approx(likelihoods, abs=2e-3)


def test_drawn_means_of_odd_arms_have_their_posterior():
    arms = fit_arm_spread(make_few_binary_logs())
    odd, rng = make_odd_arm_model(arms, 1), np.random.default_rng(1)
    pairs = np.array([odd.draw_cell_parameters(rng, np.full(3, 0.01)) for _ in range(2000)])
    means = (pairs[..., 0] / pairs.sum(axis=2)).reshape(2000, 3, 3)
    is_odd = np.isclose(means, means.max(axis=2, keepdims=True))
    assert is_odd.sum() == 2000 * 3
    nodes = np.linspace(0.03, 0.6, 1500)
    for campaign in range(3):
        curve = compute_odd_beta_curve(arms, campaign, 0.01, 1, nodes).T
        shares = curve.sum(axis=0) / curve.sum()
        error = np.sqrt(shares * (1 - shares) / 2000)
        assert np.abs(is_odd[:, campaign].mean(axis=0) - shares) == pytest.approx(0, abs=4 * error.max())
        centres = means[:, campaign].mean(axis=1)
        expected = (curve.sum(axis=1) @ nodes) / curve.sum()
        assert abs(centres.mean() - expected) < 4 * centres.std() / math.sqrt(2000)


def test_drawn_means_of_odd_normal_arms_have_their_posterior():
    arms = fit_arm_spread(make_few_real_logs())
    odd, rng = make_odd_arm_model(arms, -1), np.random.default_rng(1)
    draws = np.array([odd.draw_cell_parameters(rng, np.full(3, 0.05))[:, 0] for _ in range(2000)])
    means = draws.reshape(2000, 3, 3) / arms.noise
    distance = math.sqrt(3 * 0.05)
    assert means.max(axis=2) - means.min(axis=2) == pytest.approx(np.full((2000, 3), distance))
    # Given the odd arm, the level of the others is normal around what the data say.
    observed = arms.mean.reshape(3, 3)
    for campaign in range(3):
        weights, levels = [], []
        for place in range(3):
            level_data = observed[campaign] + distance * (np.arange(3) == place)
            level = PULLS @ level_data / PULLS.sum()
            weights.append(-0.5 * PULLS @ (level_data - level) ** 2)
            levels.append(level)
        shares = np.exp(weights) / np.exp(weights).sum()
        level = means[:, campaign].max(axis=1)
        assert abs(level.mean() - shares @ levels) < 4 * level.std() / math.sqrt(2000)


@pytest.mark.parametrize(("rate", "name"), [(0.22, BETTER_SHAPE), (0.08, WORSE_SHAPE)])
def test_many_pulls_tell_that_one_arm_is_odd(rate, name):
    logs = backtests.odd_arm(np.random.default_rng(0), 500, rate).logs
    shapes = fit_arm_shapes(fit_arm_spread(logs))
    assert [shape.name for shape in shapes] == [name]
    assert shapes[0].weight == 1
    # Four arms pay 0.15: the variance of the means, in the unit of the variance of a reward.
    centre = (4 * 0.15 + rate) / 5
    true = (rate - 0.15) ** 2 / 5 / (centre * (1 - centre))
    assert shapes[0].spread.value == pytest.approx(true, rel=0.25)


def test_beta_arms_with_many_pulls_are_not_taken_for_odd_ones():
    logs = backtests.together(np.random.default_rng(0), 200).logs
    arms = fit_arm_spread(logs)
    shapes = fit_arm_shapes(arms)
    assert [shape.name for shape in shapes] == [BETA_SHAPE]
    assert shapes[0].spread == arms.spread


def test_equal_arms_leave_all_shapes_open():
    logs = backtests.together(np.random.default_rng(4), 100, size=math.inf).logs
    arms = fit_arm_spread(logs)
    assert arms.spread.value < 0
    shapes = fit_arm_shapes(arms)
    assert {shape.name: shape.weight for shape in shapes} == SHAPE_PRIOR
    assert all(shape.spread == arms.spread for shape in shapes)
    assert all(shape.law[NO_VARIATION] == 1 for shape in shapes)


def test_a_share_of_campaigns_with_equal_arms_is_found():
    means = np.full((40, 5), 0.15)
    means[::2, 0] = 0.3
    logs = backtests.of_clicks(np.full((40, 5), 400), means, np.random.default_rng(0)).logs
    shapes = fit_arm_shapes(fit_arm_spread(logs))
    assert [shape.name for shape in shapes] == [BETTER_SHAPE]
    assert shapes[0].law[0] > 0.3
    assert shapes[0].law @ SPREAD_FACTORS == pytest.approx(1)


def test_heavy_tails_contradict_no_shape():
    arms = fit_arm_spread(backtests.normal(np.random.default_rng(0), 200).logs)
    assert [shape.name for shape in fit_arm_shapes(arms)] == [BETA_SHAPE]
    shapes = fit_arm_shapes(arms, is_informative=False)
    assert {shape.name: shape.weight for shape in shapes} == ONLY_CENTRE


def test_intervals_span_shapes_that_short_logs_do_not_tell_apart():
    """When arms were taken to be beta, the interval of the regret held the truth in none of 20 such logs."""
    found, truth = backtests.measure("50 pulls, one arm better", 2)
    assert backtests.cover(found, truth[:, :-1])[0] == 1


def test_regrets_are_right_where_logs_tell_that_one_arm_is_worse():
    """When arms were taken to be beta, the regret of such logs was four times too high."""
    found, truth = backtests.measure("200 pulls, one arm worse", 2)
    away = found[:, 0, 0] / truth[:, 0] - 1
    assert abs(away.mean()) < 0.1
    assert backtests.cover(found, truth[:, :-1])[0] == 1


def test_a_backtest_states_the_shapes_that_its_intervals_span():
    logs = backtests.odd_arm(np.random.default_rng(4), 50, 0.26).logs
    backtest = bt.backtest(bt.UCB1(noise=0.5), logs, horizon=50, budget=12)
    assert [estimates.shape for estimates in backtest.shapes] == [BETA_SHAPE, BETTER_SHAPE, WORSE_SHAPE]
    assert sum(estimates.weight for estimates in backtest.shapes) == pytest.approx(1)
    for kind in ("regret", "textbook_regret", "gain", "reward_difference"):
        combined, parts = getattr(backtest, kind), [getattr(estimates, kind) for estimates in backtest.shapes]
        assert combined.low == min(part.low for part in parts)
        assert combined.high == max(part.high for part in parts)
        weights = [estimates.weight for estimates in backtest.shapes]
        assert combined.mean == pytest.approx(np.average([part.mean for part in parts], weights=weights))
    sentence = "the 10 campaigns that were left out do not tell how their arms differ, so each interval spans"
    assert any(note.startswith(sentence) for note in backtest.notes)
    assert f"one arm better ({backtest.shapes[1].weight:.0%}): regret" in repr(backtest)
    assert sentence[1:] in build_report_content(backtest).sections[0].paragraphs[1]
    assert bt.results.from_json(backtest.to_json()) == backtest


def test_two_arm_campaigns_have_no_worse_arm_beside_the_better_one():
    means = np.random.default_rng(0).beta(10, 20, (20, 2))
    logs = backtests.of_clicks(np.full((20, 2), 30), means, np.random.default_rng(1)).logs
    assert WORSE_SHAPE not in [shape.name for shape in fit_arm_shapes(fit_arm_spread(logs))]


@pytest.mark.parametrize("make", [backtests.together, backtests.normal])
def test_shapes_of_many_campaigns_are_fitted_to_a_sample(make, monkeypatch):
    monkeypatch.setattr("banditune.logs.models.arm_shapes.MAX_INFORMATIVE_CELLS", 100)
    arms = fit_arm_spread(make(np.random.default_rng(0), 200, campaigns=40).logs)
    selected = arms.select_campaigns(np.array([3, 17, 20]))
    expected = arms.compute_campaign_likelihoods(0.02)[[3, 17, 20]]
    assert selected.compute_campaign_likelihoods(0.02) == pytest.approx(expected)
    assert selected.slopes == pytest.approx(arms.slopes[[3, 17, 20]])
    shapes = fit_arm_shapes(arms)
    assert [shape.name for shape in shapes] == [BETA_SHAPE]
    assert shapes[0].arms is arms
