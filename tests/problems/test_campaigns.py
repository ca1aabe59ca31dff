"""Problems that draw past campaigns again."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import banditune as bt
from banditune.core.descriptions import describe, make_label, shorten_value


def test_descriptions_contain_the_options_that_rewards_use():
    options = {kind: set(describe(bt.Campaigns([[(1, 2), (3, 4)]], kind))) for kind in ("binary", "unit", "real")}
    common = {"name", "posteriors", "rewards", "arms", "names"}
    # Binary rewards had a noise before v existed, and stores identify them by it.
    assert options == {"binary": common | {"noise"}, "unit": common | {"v"}, "real": common | {"noise"}}


def test_labels_contain_the_number_of_campaigns():
    rows = [[(1.5, 2), (3, 4), (5, 6), (7, 8), (9, 1)], [(1, 2), (3, 4), (5, 6)], [(1, 2), (3, 4)]]
    assert make_label(bt.Campaigns(rows)).startswith("campaigns(posteriors=3 tables, ")
    # A covariance is shown by its size.
    assert shorten_value(([0, 1], [[1, 0], [0, 1]])) == "((0, 1), 2 x 2)"


def test_campaigns_with_more_arms_give_some_of_them_in_order():
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
def test_wrong_campaigns_are_refused(options, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.Campaigns(**options)
