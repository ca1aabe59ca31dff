"""The confidence factor of LinUCB, by the bound of Abbasi-Yadkori, Pal and Szepesvari (2011)."""

from __future__ import annotations

import math

from banditune.core.scalar import scalar
from banditune.simulation.estimators.whitened_features import read_policy_option


@scalar
def measure_feature_norm(setting):
    """Return the largest norm of an arm's features."""
    largest = 0.0
    for arm in range(setting.arms):
        square = 0.0
        for j in range(setting.dims):
            square += setting.features[j, arm] * setting.features[j, arm]
        largest = max(largest, square)
    return math.sqrt(largest)


@scalar
def compute_confidence_factor(setting):
    """Compute the factor c before gamma: given, or outer (sqrt(d) + noise sqrt(d log((1 + n L^2) n))).

    This is the bound of Abbasi-Yadkori, Pal and Szepesvari (2011) with ||theta|| <= sqrt(d), which fails with
    probability 1 / n. L is the largest norm of features.
    """
    fixed_factor = read_policy_option(setting, 0)
    if fixed_factor > 0.0:
        return fixed_factor
    dims = setting.dims
    longest = measure_feature_norm(setting)
    log_term = math.log(1.0 + setting.horizon * longest * longest) + math.log(setting.horizon)
    return read_policy_option(setting, 1) * (
        math.sqrt(dims) + read_policy_option(setting, 2) * math.sqrt(dims * log_term)
    )
