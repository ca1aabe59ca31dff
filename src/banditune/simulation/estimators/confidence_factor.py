"""LinUCB's factor before widths, by the bound of Abbasi-Yadkori, Pal and Szepesvari (2011)."""

from __future__ import annotations

import math

from banditune.core.scalar import scalar
from banditune.simulation.estimators.whitened_features import read_policy_option


@scalar
def measure_feature_norm(setting):
    """The largest norm of an arm's features."""
    largest = 0.0
    for arm in range(setting.arms):
        square = 0.0
        for j in range(setting.dims):
            square += setting.features[j, arm] * setting.features[j, arm]
        largest = max(largest, square)
    return math.sqrt(largest)


@scalar
def compute_confidence_factor(setting):
    """Theory's factor c before gamma: given, or outer (sqrt(d) + noise sqrt(d log((1 + n L^2) n))) with the largest norm L.

    This is the bound of Abbasi-Yadkori, Pal and Szepesvari (2011) with ||theta|| <= sqrt(d) and a chance of 1 / n to fail.
    """
    given = read_policy_option(setting, 0)
    if given > 0.0:
        return given
    dims = setting.dims
    longest = measure_feature_norm(setting)
    grown = math.log(1.0 + setting.horizon * longest * longest) + math.log(setting.horizon)
    return read_policy_option(setting, 1) * (math.sqrt(dims) + read_policy_option(setting, 2) * math.sqrt(dims * grown))
