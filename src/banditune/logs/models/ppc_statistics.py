"""The statistics of logs and of replayed logs that matter for regret."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.logs.campaign_logs import Logs

ARM_SPREAD, BEST_ARM_LEAD, ARM_CORRELATION = (
    "spread of arms' means",
    "lead of the best arm",
    "correlation of arms",
)


RANK_STABILITY, ZERO_SHARE, WEIGHTED_SPREAD = (
    "spread of arms' averages",
    "share of arms without a success",
    "spread weighted by pulls",
)


NOISE_DIFFERENCE, FEATURE_MISFIT = "difference of noise between arms", "misfit of features"


CellStatistic = Callable[[FloatArray, FloatArray], FloatArray]
"""A number for each row of cell means and of squares."""


def make_statistics(logs: Logs, cells: IntArray, rewards: str) -> Iterator[tuple[str, CellStatistic]]:
    """Yield the statistics that matter for regret and that are defined for these logs."""
    pulls = logs.pulls[cells].astype(float)
    campaign = np.unique(logs.campaign[cells], return_inverse=True)[1]
    arm = logs.arm[cells]
    yield ARM_SPREAD, lambda means, squares: means.std(axis=1)
    widths = np.bincount(campaign)
    if widths.max() > 1:
        yield BEST_ARM_LEAD, make_lead_statistic(campaign, widths)
        if len(widths) > 2:
            yield ARM_CORRELATION, _make_correlation_statistic(campaign, arm, logs.same_arms)
    often = np.bincount(arm, minlength=len(logs.arms))
    if (often > 1).sum() > 1:
        yield RANK_STABILITY, _make_rank_statistic(arm)
    if rewards == "binary":
        yield ZERO_SHARE, lambda means, squares: (means == 0).mean(axis=1)
    share = pulls / pulls.sum()
    yield WEIGHTED_SPREAD, lambda means, squares: np.sqrt(np.maximum(means**2 @ share - (means @ share) ** 2, 0.0))
    is_repeated = pulls > 1
    if rewards == "real" and is_repeated.sum() > 1:
        degrees = pulls[is_repeated] - 1
        yield NOISE_DIFFERENCE, lambda means, squares: np.sqrt(squares[:, is_repeated] / degrees).std(axis=1)
    if logs.features is not None and (widths > logs.features.shape[1]).any():
        yield FEATURE_MISFIT, _make_misfit_statistic(logs.features[cells], campaign, pulls)


def _make_group_sum(group: IntArray) -> tuple[Callable[[FloatArray], FloatArray], IntArray, IntArray]:
    """Make a function that sums rows of cells by group, with the group sizes and the number of each cell's group."""
    number, sizes = np.unique(group, return_inverse=True, return_counts=True)[1:]
    order = np.argsort(number, kind="stable")
    starts = np.cumsum(sizes) - sizes
    return lambda values: np.add.reduceat(values[:, order], starts, axis=1), sizes, number


def make_lead_statistic(campaign: IntArray, widths: IntArray) -> CellStatistic:
    """Make the best arm's mean minus the second best, averaged over campaigns with two arms or more.

    Cells are stored in one row, because a table of campaigns by arms could be very wide.
    """
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    has_several = widths > 1

    def compute_statistic(means: FloatArray, squares: FloatArray) -> FloatArray:
        best = np.maximum.reduceat(means, starts, axis=1)
        is_best = means == best[:, campaign]
        second_best = np.maximum.reduceat(np.where(is_best, -np.inf, means), starts, axis=1)
        alone = np.add.reduceat(is_best, starts, axis=1, dtype=np.int64) == 1
        return np.asarray(np.where(alone, best - second_best, 0.0)[:, has_several].mean(axis=1))

    return compute_statistic


def _make_correlation_statistic(campaign: IntArray, arm: IntArray, same_arms: bool) -> CellStatistic:
    """Make the correlation of two arms' means in a campaign, around each arm's own mean if arms repeat."""
    by_campaign, widths, _ = _make_group_sum(campaign)
    by_arm, often, number = _make_group_sum(arm)
    pairs = float((widths * (widths - 1)).sum())

    def compute_statistic(means: FloatArray, squares: FloatArray) -> FloatArray:
        if same_arms:
            centre = (by_arm(means) / often)[:, number]
        else:
            centre = means.mean(axis=1, keepdims=True)
        away = means - centre
        total = (away**2).sum(axis=1)
        products = (by_campaign(away) ** 2).sum(axis=1) - total
        return np.asarray((products / pairs) / np.maximum(total / means.shape[1], 1e-300))

    return compute_statistic


def _make_rank_statistic(arm: IntArray) -> CellStatistic:
    """Make the spread of arms' averages over campaigns, for arms in several of them."""
    by_arm, often, _ = _make_group_sum(arm)

    def compute_statistic(means: FloatArray, squares: FloatArray) -> FloatArray:
        return np.asarray((by_arm(means) / often)[:, often > 1].std(axis=1))

    return compute_statistic


def _make_misfit_statistic(features: FloatArray, campaign: IntArray, pulls: FloatArray) -> CellStatistic:
    """Make the weighted squares of cell means around the best linear function of features in each campaign."""
    starts = np.searchsorted(campaign, np.arange(campaign.max() + 2))
    spaces = []
    for begin, end in pairwise(starts):
        weighted = features[begin:end] * np.sqrt(pulls[begin:end])[:, None]
        rotation, sizes, _ = np.linalg.svd(weighted, full_matrices=False)
        spaces.append(rotation[:, sizes > 1e-9 * sizes[0]])

    def compute_statistic(means: FloatArray, squares: FloatArray) -> FloatArray:
        weighted = means * np.sqrt(pulls)
        squares_ = (weighted**2).sum(axis=1)
        for begin, end, space in zip(starts[:-1], starts[1:], spaces, strict=True):
            squares_ -= ((weighted[:, begin:end] @ space) ** 2).sum(axis=1)
        return np.asarray(np.maximum(squares_, 0.0) / len(pulls))

    return compute_statistic
