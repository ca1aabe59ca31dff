"""Whether a GPU may play a logistic policy in float32."""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.policies.base_policies import LogisticPolicy

LONGEST_FLOAT32_HORIZON, LARGEST_FLOAT32_FEATURE, LEAST_FLOAT32_DISTANCE = 20_000, 10.0, 0.03
"""Horizon and largest norm of an arm's features up to which teams play in float32, and the least distance between arms as a
share of that norm: what it changes was measured at half the first and a third of the second (docs/performance.md). Arms
whose scores agree to a millionth are taken for equal in float32, so closer ones could not be told apart by a draw."""


def choose_warp_precision(policy: LogisticPolicy, features: FloatArray, horizon: int) -> str:
    """float32 where that was shown to be harmless."""
    longest = policy.longest(features)
    near = min(measure_closest_arms(instance) for instance in features[:8])
    return (
        "float32"
        if horizon <= LONGEST_FLOAT32_HORIZON
        and longest <= LARGEST_FLOAT32_FEATURE
        and near >= LEAST_FLOAT32_DISTANCE * longest
        else "float64"
    )


def measure_closest_arms(features: FloatArray) -> float:
    """The least distance between the features (dims, arms) of two arms."""
    products = features.T @ features
    squares = np.diag(products)
    distances = squares[:, None] + squares[None, :] - 2 * products
    np.fill_diagonal(distances, math.inf)
    return math.sqrt(max(distances.min(), 0.0))
