"""A test of the distribution of arms' means around the centre of their campaign that an evaluation assumes.

Two statistics are tested that matter for regret: the lead of the best arm over the second, and the skewness within
campaigns. Both are compared with logs that are drawn with the assumed distribution, the fitted spread and the same pulls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.adaptivity import find_adaptivity
from banditune.logs.models.arm_shapes import ArmShape
from banditune.logs.models.posterior_predictive import MAX_CHUNK_DRAWS
from banditune.logs.models.ppc_statistics import make_lead_statistic
from banditune.logs.models.reward_shape import compute_excess_kurtosis
from banditune.logs.models.signed_spread import ArmSpreadModel
from banditune.logs.models.spread_factors import SPREAD_FACTORS

DRAWN_LOGS = 999
"""The number of logs that are drawn."""


MAX_TESTED_CELLS = 20_000
"""The largest number of cells of logs that are tested."""


MAX_MEAN_KURTOSIS = 0.1
"""The largest excess kurtosis of rewards, divided by the pulls, at which their means are nearly normal."""


def compute_arm_shape_p(logs: Logs, arms: ArmSpreadModel, shapes: Sequence[ArmShape]) -> float:
    """Compute the highest p-value of these shapes.

    NaN if no test is possible: arms do not differ, a policy chose the arms, or rewards have heavy tails.
    """
    if arms.spread.value <= 0 or len(logs.pulls) > MAX_TESTED_CELLS or find_adaptivity(logs) or has_heavy_tails(logs):
        return math.nan
    return max(_compute_shape_p(logs, arms.reward_variance, shape) for shape in shapes)


def has_heavy_tails(logs: Logs) -> bool:
    """Return whether means of rewards are far from normal."""
    return logs.rewards == "real" and compute_excess_kurtosis(logs) > MAX_MEAN_KURTOSIS * float(np.median(logs.pulls))


def _compute_shape_p(logs: Logs, reward_variance: float, shape: ArmShape) -> float:
    """Compute the p-value of a shape with its spread."""
    spread = shape.spread.value
    rng = np.random.default_rng(20_219)
    scale = _compute_cell_scale(logs, spread, reward_variance)
    seen = _compute_shape_statistics(logs, logs.mean[None] / scale)
    step = max(MAX_CHUNK_DRAWS // len(logs.pulls), 1)
    drawn = []
    for first in range(0, DRAWN_LOGS, step):
        size = min(step, DRAWN_LOGS - first)
        places = rng.choice(len(shape.law), size=(size, len(logs.campaigns)), p=shape.law)
        means = shape.arms.draw_cell_means(rng, spread * SPREAD_FACTORS[places])
        drawn.append(_compute_shape_statistics(logs, means / scale))
    above = (1 + (np.concatenate(drawn) >= seen).sum(axis=0)) / (1 + DRAWN_LOGS)
    # Bonferroni for two statistics, each two-sided.
    return float(min(4 * np.minimum(above, 1 + 1 / (1 + DRAWN_LOGS) - above).min(), 1.0))


def _compute_cell_scale(logs: Logs, spread: float, reward_variance: float) -> FloatArray:
    """Compute the expected standard deviation of the cells of each campaign, so that all campaigns have equal weight."""
    count = len(logs.campaigns)
    centre = (np.bincount(logs.campaign, logs.total, count) + 0.5) / (logs.decision_counts + 1)
    variance = np.full(count, reward_variance) if logs.rewards == "real" else centre * (1 - centre)
    chance = np.bincount(logs.campaign, 1 / logs.pulls, count) / logs.arm_counts
    return np.asarray(np.sqrt(variance * (spread + chance))[logs.campaign])


def _compute_shape_statistics(logs: Logs, means: FloatArray) -> FloatArray:
    """Compute the lead of the best arm and the skewness within campaigns for rows of cell means: (rows, 2)."""
    starts = np.concatenate([[0], np.cumsum(logs.arm_counts)[:-1]])
    centre = np.add.reduceat(means, starts, axis=1) / logs.arm_counts
    away = means - centre[:, logs.campaign]
    spread = np.maximum(np.sqrt((away**2).mean(axis=1)), 1e-9)  # campaigns count with a scale near 1
    lead = make_lead_statistic(logs.campaign, logs.arm_counts)(means, means)
    return np.stack([lead / spread, (away**3).mean(axis=1) / spread**3], axis=1)
