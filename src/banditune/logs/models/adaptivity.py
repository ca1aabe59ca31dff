"""Tests of whether pulls depended on rewards: by a policy that chose the arms, or by stopping rules of campaigns."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.ppc_statistics import ARM_SPREAD, BEST_ARM_LEAD, WEIGHTED_SPREAD
from banditune.results.log_results import PredictiveCheck

ADAPTIVE_CHOICE_THRESHOLD = 2.576
"""The critical value of the test of pulls, in standard errors (two-sided, level 1%)."""


EARLY_STOPPING_THRESHOLD = 2.326
"""The critical value of the test of lengths of campaigns, in standard errors (one-sided, level 1%)."""


ADAPTIVE_CHOICE_NOTE = "arms with higher (or lower) rewards were pulled more often"


EARLY_STOPPING_NOTE = (
    "campaigns with a more significant lead of their best arm are shorter, as if they ended when it was significant"
)


POSSIBLE_STOPPING_NOTE = (
    "campaigns differ in length. If they ended when one arm was clearly ahead, observed differences between arms are too "
    "large, and these checks may fail for a right fit. The fit is valid if no campaign was left out for its length"
)


def find_adaptivity(logs: Logs) -> list[str]:
    """Describe how pulls depended on rewards; empty if no test is significant."""
    return [
        reason
        for reason, p_value in (
            (ADAPTIVE_CHOICE_NOTE, is_adaptively_chosen(logs)),
            (EARLY_STOPPING_NOTE, is_stopped_early(logs)),
        )
        if p_value
    ]


def is_adaptively_chosen(logs: Logs) -> bool:
    """Return whether arms with higher, or lower, rewards were pulled significantly more often within their campaigns."""
    count = len(logs.campaigns)

    def center_by_campaign(values: FloatArray) -> FloatArray:
        return np.asarray(values - (np.bincount(logs.campaign, values, count) / logs.arm_counts)[logs.campaign])

    often, rewards = center_by_campaign(np.log(logs.pulls)), center_by_campaign(logs.mean)
    product, first, second = (np.bincount(logs.campaign, v, count) for v in (often * rewards, often**2, rewards**2))
    # The variance if pulls are permuted at random between the arms of a campaign.
    variance = float((first * second / np.maximum(logs.arm_counts - 1, 1)).sum())
    return variance > 1e-24 and abs(float(product.sum())) > ADAPTIVE_CHOICE_THRESHOLD * math.sqrt(variance)


def is_stopped_early(logs: Logs) -> bool:
    """Return whether the length of campaigns falls significantly with the significance of their best arm's lead.

    If lengths do not depend on rewards, it grows: leads are more significant in longer campaigns.
    """
    has_several = logs.arm_counts > 1
    significance, lengths = compute_lead_significances(logs)[has_several], np.log(logs.decision_counts[has_several])
    if len(lengths) < 3:
        return False
    lead, long = significance - significance.mean(), lengths - lengths.mean()
    # The variance if lengths are permuted at random between campaigns.
    variance = float((lead**2).sum() * (long**2).sum()) / (len(lengths) - 1)
    return variance > 1e-24 and float(lead @ long) < -EARLY_STOPPING_THRESHOLD * math.sqrt(variance)


def compute_lead_significances(logs: Logs) -> FloatArray:
    """Compute the lead of each campaign's best arm over the second, in standard errors; 0 if there is only one arm."""
    count, pulls = len(logs.campaigns), logs.pulls
    centre = (np.bincount(logs.campaign, logs.total, count) / logs.decision_counts)[logs.campaign]
    around = logs.squares + pulls * (logs.mean - centre) ** 2
    variance = np.bincount(logs.campaign, around, count) / logs.decision_counts
    order = np.lexsort((-logs.mean, logs.campaign))
    first = np.searchsorted(logs.campaign, np.arange(count))
    best, second = order[first], order[np.minimum(first + 1, len(order) - 1)]
    error = np.sqrt(variance * (1 / pulls[best] + 1 / pulls[second]))
    lead = np.where(logs.arm_counts > 1, logs.mean[best] - logs.mean[second], 0.0)
    return np.asarray(lead / np.maximum(error, 1e-300))


def is_early_stopping_possible(logs: Logs, checks: Sequence[PredictiveCheck]) -> bool:
    """Return whether failed checks may be due to a stopping rule: observed differences are high and lengths differ.

    `is_stopped_early` does not detect every stopping rule.
    """
    high = any(
        check.has_failed and check.p_value < 0.5
        for check in checks
        if check.statistic in (ARM_SPREAD, BEST_ARM_LEAD, WEIGHTED_SPREAD)
    )
    return high and int(logs.decision_counts.min()) < int(logs.decision_counts.max())


def describe_drawn_checks(reasons: Sequence[str], left_out: set[str]) -> str:
    """Describe the checks that are made if pulls depended on rewards."""
    reason = ", ".join(f"'{name}'" for name in sorted(left_out))
    more = f"; not checked, because its result would have no meaning: {reason}" if left_out else ""
    return f"{'; '.join(reasons)}: checks compare means drawn from their posterior instead of observed means{more}"
