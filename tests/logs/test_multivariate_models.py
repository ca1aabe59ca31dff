"""Features and intercepts of fitted linear and logistic problems."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import banditune as bt
from helpers.sample_logs import list_cells, make_binary_logs, make_logs_with_intercept, make_real_logs


def test_arms_with_features_keep_their_names():
    """Arms are numbered in the order of the logs. A deployed policy refers to them by name."""
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


def test_features_that_differ_between_campaigns_are_drawn_from_a_prior():
    rng = np.random.default_rng(7)
    features = np.column_stack([np.ones(60), rng.normal(2, 0.5, 60)])
    theta = rng.normal(0.5, 0.4, (12, 2))
    means = (features * np.repeat(theta, 5, axis=0)).sum(axis=1).reshape(12, 5)
    fit = bt.fit(make_real_logs(means, features=features))
    assert fit.problem.features is None
    assert fit.problem.names == ()
    assert any("features differ between campaigns" in note for note in fit.notes)
    assert fit.problem.feature_prior[0] == pytest.approx((1, features[:, 1].mean()))
    sample = fit.problem.sample(5000, np.random.default_rng(0)).features
    assert abs(sample[..., 1].mean() - features[:, 1].mean()) < 4 * 0.5 / math.sqrt(25_000)


@pytest.mark.parametrize("rewards", ["binary", "real"])
def test_an_intercept_corrects_six_failed_checks(rewards):
    logs = make_logs_with_intercept(rewards)
    without, fit = bt.fit(logs, intercept=False), bt.fit(logs)
    assert sum(check.has_failed for check in without.checks) >= 6
    assert not any(check.has_failed for check in fit.checks)
    assert fit["mean[intercept]"].low < -2 < fit["mean[intercept]"].high
    assert fit["sd[intercept]"].low < 0.3 < fit["sd[intercept]"].high
    assert fit.problem.intercept
    assert not without.problem.intercept
    assert fit.problem.features == tuple((1.0, *row) for row in logs.features[:8])
    assert any("'intercept', which is 1 for every arm, is added" in note for note in fit.notes)


def test_features_that_contain_a_constant_need_no_intercept():
    logs = make_logs_with_intercept("real")
    parts = (logs.campaign, logs.arm, logs.pulls, logs.total, logs.squares)
    for constant in (np.full((240, 1), 5.0), np.eye(8)[logs.arm]):
        features = constant if constant.shape[1] > 1 else np.column_stack([logs.features, constant])
        fit = bt.fit(bt.make_logs(*parts, rewards="real", features=features))
        assert fit.problem.features == tuple(map(tuple, features[:8]))
        assert not fit.problem.intercept
        assert any("already include a constant" in note for note in fit.notes)
    with pytest.raises(bt.InvalidRequest, match="`intercept` must be left out for the model 'beta-binomial'"):
        bt.fit(make_binary_logs(), intercept=False)


def test_drawn_features_have_an_intercept():
    rng = np.random.default_rng(3)
    features = rng.normal(2, 0.5, (60, 1))
    means = (3 + features[:, 0] * np.repeat(rng.normal(0.5, 0.4, 12), 5)).reshape(12, 5)
    problem = bt.fit(make_real_logs(means, features=features)).problem
    assert problem.dims == 2
    assert problem.feature_prior[0] == pytest.approx((features.mean(),))
    sample = problem.sample(400, np.random.default_rng(0))
    assert (sample.features[..., 0] == 1).all()
    assert sample.features[..., 1].std() == pytest.approx(features.std(), rel=0.1)


def test_deployed_policies_add_the_intercept():
    problem = bt.fit(make_logs_with_intercept("binary")).problem
    tuning = bt.tune(
        bt.UCBGLM(prior=problem.prior, noise=0.5),
        problem,
        horizon=20,
        budget=50,
        search=bt.Search(validate=10),
        run=bt.Run(workers=1),
    )
    for deployed in (tuning.deploy(), tuning.deploy(features=make_logs_with_intercept("binary").features[:8])):
        deployed.add_arm("new", (0.5, 1.5))
        deployed.add_arm("newer", (1, 0.5, 1.5))
        state = json.loads(deployed.to_json())
        assert [arm["features"] for arm in state["arms"]] == [
            *map(list, problem.features),
            [1, 0.5, 1.5],
            [1, 0.5, 1.5],
        ]
        with pytest.raises(bt.InvalidRequest, match="same number of features"):
            deployed.add_arm("odd", (0.5,))


def test_rare_arms_share_the_sd_of_all_arms():
    """Twelve campaigns, nine of which have two arms of twenty. Rare arms once had an sd five times the true one."""
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
    """The first arm pays 1 in 160,000 and had no success. Its logit has no likeliest value."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-5, 0.5, (20, 1)) + rng.normal(0, 0.5, (20, 6)) - 7 * (np.arange(6) == 0)
    campaign, arm = list_cells(20, 6)
    wins = rng.binomial(300, 1 / (1 + np.exp(-logits.ravel())))
    assert not wins[arm == 0].any()
    fit = bt.fit(bt.make_logs(campaign, arm, np.full(120, 300), wins), "correlated")
    assert not any(check.has_failed for check in fit.checks)
    assert fit["mean[0]"].low < -12 < fit["mean[0]"].value < -8
    assert fit["sd[0]"].low < math.sqrt(0.5) < fit["sd[0]"].high
    assert fit["correlation"].low < 0.5 < fit["correlation"].high
    assert any("1 arm (0) always paid the same: half a success" in note for note in fit.notes)
    assert not any("feature" in note for note in fit.notes)


def test_sparse_correlated_arms_have_intervals_that_cover_the_truth():
    """One success in two cells: with a full covariance 54% of the intervals of sds covered the truth."""
    covered, shared = [], 0
    for seed in range(12):
        rng = np.random.default_rng([8, seed])
        logits = rng.normal(-5, 0.5, (20, 1)) + rng.normal(0, 0.5, (20, 5))
        pulls = rng.poisson(60, (20, 5)) + 1
        wins = rng.binomial(pulls, 1 / (1 + np.exp(-logits)))
        campaign, arm = np.divmod(np.arange(100), 5)
        fit = bt.fit(bt.make_logs(campaign, arm, pulls.ravel(), wins.ravel()), "correlated")
        sds = [estimate for estimate in fit.estimates if estimate.name.startswith("sd[")]
        covered += [estimate.low < math.sqrt(0.5) < estimate.high for estimate in sds]
        shared += any("too rare for a full covariance" in note for note in fit.notes)
    assert shared >= 8
    # The sds of a log are one number, so that there are only twelve.
    assert np.mean(covered) > 0.95 - 4 * math.sqrt(0.95 * 0.05 / 12)
