"""Past logs of campaigns, drawn from known priors."""

from __future__ import annotations

import numpy as np

import banditune as bt


def list_cells(campaigns, arms):
    """The campaign and the arm of every cell."""
    return np.repeat(np.arange(campaigns), arms), np.tile(np.arange(arms), campaigns)


def make_binary_logs(seed=1, campaigns=20, arms=4, steps=40, prior=(2, 5)):
    """Logs of 0/1 rewards with means from a Beta prior."""
    rng = np.random.default_rng(seed)
    campaign, arm = list_cells(campaigns, arms)
    pulls = rng.integers(2, steps, campaigns * arms)
    return bt.make_logs(campaign, arm, pulls, rng.binomial(pulls, rng.beta(*prior, len(pulls))))


def make_real_logs(means, noise=0.5, steps=20, seed=2, **options):
    """Logs of Gaussian rewards with these means."""
    rng = np.random.default_rng(seed)
    campaigns, arms = means.shape
    campaign, arm = list_cells(campaigns, arms)
    pulls = rng.integers(2, steps, means.size)
    total = pulls * rng.normal(means.ravel(), noise / np.sqrt(pulls))
    return bt.make_logs(campaign, arm, pulls, total, noise**2 * rng.chisquare(pulls - 1), rewards="real", **options)


def make_correlated_logs(seed=3, campaigns=40, arms=5):
    """Logs in which the arms of a campaign rise and fall together."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(-1, 0.8, (campaigns, 1)) + rng.normal(0, 0.3, (campaigns, arms))
    campaign, arm = list_cells(campaigns, arms)
    pulls = np.full(logits.size, 200)
    return bt.make_logs(campaign, arm, pulls, rng.binomial(pulls, 1 / (1 + np.exp(-logits.ravel()))))


def make_linear_logs(campaigns=12, seed=6):
    """Logs of arms with two features and Gaussian rewards."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(6, 2)) * [1.0, 3.0]
    theta = rng.multivariate_normal([1.0, -0.5], [[0.5, 0.1], [0.1, 0.2]], campaigns)
    arm = list_cells(campaigns, 6)[1]
    return make_real_logs(theta @ features.T, steps=8, features=features[arm], feature_names=("price", "size"))


def make_logs_with_intercept(rewards, seed=0, campaigns=30, arms=8):
    """Logs of arms with two features. Rewards, or logits, are -2 where both features are 0."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(arms, 2))
    theta = rng.multivariate_normal([-2, 0.3, -0.2], np.diag([0.09, 0.05, 0.05]), campaigns)
    campaign, arm = list_cells(campaigns, arms)
    score = (theta[:, :1] + theta[:, 1:] @ features.T).ravel()
    pulls = np.full(campaigns * arms, 300)
    if rewards == "binary":
        wins = rng.binomial(pulls, 1 / (1 + np.exp(-score)))
        return bt.make_logs(campaign, arm, pulls, wins, features=features[arm], feature_names=("price", "size"))
    total, squares = pulls * rng.normal(score, 1 / np.sqrt(pulls)), rng.chisquare(pulls - 1)
    return bt.make_logs(
        campaign, arm, pulls, total, squares, rewards="real", features=features[arm], feature_names=("price", "size")
    )


def make_logistic_logs(campaigns=12, seed=8, dims=1):
    """Logs of arms with features and 0/1 rewards."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(4, dims))
    theta = rng.normal(0.7, 0.6, (campaigns, dims))
    arm = list_cells(campaigns, 4)[1]
    pulls = rng.integers(2, 12, campaigns * 4)
    wins = rng.binomial(pulls, 1 / (1 + np.exp(-(theta @ features.T).ravel())))
    return bt.make_logs(list_cells(campaigns, 4)[0], arm, pulls, wins, features=features[arm])


def make_rare_logs(seed=21, campaigns=30, arms=3, pulls=4000, rate=0.001, size=8000):
    """Campaigns that pay about 1 in 1,000. Arms differ by a third of that (size 8,000) or not at all (None)."""
    rng = np.random.default_rng(seed)
    campaign, arm = list_cells(campaigns, arms)
    mean = rng.gamma(4, rate / 4, campaigns)[campaign]
    means = mean if size is None else rng.beta(size * mean, size * (1 - mean))
    counts = np.maximum(rng.poisson(pulls, len(campaign)), 2)
    return bt.make_logs(campaign, arm, counts, rng.binomial(counts, means))
