"""The uncertainty about each arm that is due to the estimated distribution of arms' centres.

The mean of the centres and their sd on the scale of logits are averaged over their likelihood, with a uniform prior. If
arms show no difference beyond chance, the most likely sd is 0. With this sd alone, the uncertainty would be too small.
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
"""The grid of the sd of centres."""


SD_WIDTHS = np.gradient(CENTRE_SDS)
"""The weight of each sd in the integral, because the grid is not evenly spaced."""


LOGIT_OFFSETS = np.linspace(-3, 3, 7)
"""The grid of the mean of centres, in approximate standard errors of its logit."""


MAX_UNCERTAIN_CELLS = 20_000
"""The largest number of cells. With more, the distribution of centres is assumed to be known."""


def compute_centre_uncertainty(cells: BetaCells, size: float) -> FloatArray:
    """Compute the additional variance of each arm's centre because their distribution is estimated."""
    _, mean, square = compute_centre_moments(cells, size)
    if len(cells.campaign) > MAX_UNCERTAIN_CELLS:
        return np.zeros(len(mean))
    outcomes = min(float(cells.successes.sum()), float(cells.failures.sum())) + 0.5
    logit = compute_logit(cells.centre_mean)
    heights, means, squares = [], [], []
    for sd, width in zip(CENTRE_SDS, SD_WIDTHS, strict=True):
        # Because of the sd between campaigns, successes have less information than independent ones.
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
    # The variance is taken around the stated mean, which is that of the most likely distribution.
    spread = weights @ np.array(squares) - 2 * mean * (weights @ np.array(means)) + mean**2
    return np.asarray(np.maximum(spread - np.maximum(square - mean**2, 0.0), 0.0))
