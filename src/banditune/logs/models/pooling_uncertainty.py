"""What an estimated distribution of arms' centres adds to the uncertainty about each arm.

The mean of the centres and their sd on the scale of logits are averaged over their likelihood, with a uniform prior. If
arms show no difference beyond chance, the most likely sd is 0. All centres would be known as well as their mean then.
"""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.models.hierarchical_beta import (
    BetaCells,
    compute_centre_moments,
    compute_logit,
    replace_centre_logit,
)

CENTRE_SDS = np.concatenate([np.linspace(0.03, 1.2, 14), [1.5, 2.0, 3.0]])
"""The sds of centres that are tried."""


SD_WIDTHS = np.gradient(CENTRE_SDS)
"""What each of them counts for, as they are not evenly spaced."""


LOGIT_OFFSETS = np.linspace(-3, 3, 7)
"""Means of centres that are tried, in approximate standard errors of their logit."""


MAX_UNCERTAIN_CELLS = 20_000
"""In logs with more cells the distribution of centres is taken as known."""


def compute_centre_uncertainty(cells: BetaCells, size: float) -> FloatArray:
    """Compute by how much the variance of each arm's centre grows if their distribution is not known."""
    _, mean, square = compute_centre_moments(cells, size)
    if len(cells.campaign) > MAX_UNCERTAIN_CELLS:
        return np.zeros(len(mean))
    outcomes = min(float(cells.successes.sum()), float(cells.failures.sum())) + 0.5
    logit = compute_logit(cells.centre_mean)
    heights, means, squares = [], [], []
    for sd, width in zip(CENTRE_SDS, SD_WIDTHS, strict=True):
        # The sd between campaigns makes successes less certain than their number.
        error = math.sqrt(2 / outcomes + sd**2 / cells.campaign_count)
        for offset in LOGIT_OFFSETS:
            trial = replace_centre_logit(cells, logit + error * float(offset))
            rate = trial.centre_mean
            concentration = 1 / (rate * (1 - rate) * sd**2)
            evidence, *moments = compute_centre_moments(trial._replace(centre_concentration=concentration), size)
            heights.append(float(evidence.sum()) + math.log(width * error))
            means.append(moments[0])
            squares.append(moments[1])
    weights = np.exp(np.array(heights) - max(heights))
    weights /= weights.sum()
    # Around the stated mean, which is that of the most likely distribution.
    spread = weights @ np.array(squares) - 2 * mean * (weights @ np.array(means)) + mean**2
    return np.asarray(np.maximum(spread - np.maximum(square - mean**2, 0.0), 0.0))
