"""The choice of the float type of a logistic policy on a GPU."""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.policies.base_policies import LogisticPolicy

LONGEST_FLOAT32_HORIZON, LARGEST_FLOAT32_FEATURE, LEAST_FLOAT32_DISTANCE = 20_000, 10.0, 0.03
"""Limits for float32 in warps: horizon, norm of features, and distance between arms as a share of that norm.

No effect was measured at half the horizon and a third of the norm (docs/research/performance.md). In float32, arms whose
scores differ by less than a millionth count as equal, so a draw could not separate closer arms.
"""


def choose_warp_precision(policy: LogisticPolicy, features: FloatArray, horizon: int) -> str:
    """Return "float32" within the limits of the measurements, else "float64"."""
    longest = policy.measure_longest_feature(features)
    closest = min(measure_closest_arms(instance) for instance in features[:8])
    return (
        "float32"
        if horizon <= LONGEST_FLOAT32_HORIZON
        and longest <= LARGEST_FLOAT32_FEATURE
        and closest >= LEAST_FLOAT32_DISTANCE * longest
        else "float64"
    )


def measure_closest_arms(features: FloatArray) -> float:
    """Return the smallest distance between the features (dims, arms) of two arms."""
    products = features.T @ features
    squares = np.diag(products)
    distances = squares[:, None] + squares[None, :] - 2 * products
    np.fill_diagonal(distances, math.inf)
    return math.sqrt(max(distances.min(), 0.0))
