"""The distribution of regrets that a result keeps."""

from __future__ import annotations

import numpy as np

import banditune as bt
from banditune.results.estimates import RegretDistribution
from helpers.example_results import FIRST


def test_a_spread_keeps_quantiles_and_the_worst_runs():
    sample = np.arange(1.0, 101.0)[::-1].copy()
    spread = RegretDistribution.from_sample(sample, FIRST)
    assert [spread.get_quantile(level) for level in (0, 0.01, 0.25, 0.5, 0.95, 0.99, 1)] == [1, 1, 25, 50, 95, 99, 100]
    assert (spread.mean, spread.runs) == (50.5, 100)
    assert spread.worst_runs == tuple(range(FIRST, FIRST + 10))
    assert spread.worst_regrets.tolist() == list(range(100, 90, -1))
    assert bt.results.from_json(spread.to_json()) == spread
