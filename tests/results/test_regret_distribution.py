"""The distribution of regrets that a result keeps."""

from __future__ import annotations

import numpy as np

import banditune as bt
from banditune.results.estimates import RegretDistribution
from helpers.example_results import FIRST_INSTANCE


def test_a_distribution_keeps_quantiles_and_the_worst_runs():
    sample = np.arange(1.0, 101.0)[::-1].copy()
    distribution = RegretDistribution.from_sample(sample, FIRST_INSTANCE)
    assert [distribution.get_quantile(level) for level in (0, 0.01, 0.25, 0.5, 0.95, 0.99, 1)] == [
        1,
        1,
        25,
        50,
        95,
        99,
        100,
    ]
    assert (distribution.mean, distribution.runs) == (50.5, 100)
    assert distribution.worst_runs == tuple(range(FIRST_INSTANCE, FIRST_INSTANCE + 10))
    assert distribution.worst_regrets.tolist() == list(range(100, 90, -1))
    assert bt.results.from_json(distribution.to_json()) == distribution
