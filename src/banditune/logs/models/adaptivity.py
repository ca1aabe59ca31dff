"""Whether pulls depended on rewards: a policy chose the arms, or campaigns ended when an arm clearly led."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.ppc_statistics import ARM_SPREAD, BEST_ARM_LEAD, WEIGHTED_SPREAD
from banditune.results.log_results import PredictiveCheck

ADAPTIVE_CHOICE_THRESHOLD = 2.576
"""Pulls follow rewards where they do so by as many standard errors: of others, 1 in 100 seem to."""


EARLY_STOPPING_THRESHOLD = 2.326
"""The same for lengths that fall as leads become clearer, which is one side only."""


ADAPTIVE_CHOICE_NOTE = "arms were pulled the more often the better (or worse) they paid"


EARLY_STOPPING_NOTE = (
    "campaigns are the shorter the clearer their best arm leads, as tests are that end when they are significant"
)


POSSIBLE_STOPPING_NOTE = (
    "campaigns differ in length: if they ended when an arm clearly led, arms seem to differ more than they do, and these "
    "checks alarm for no reason; the fit itself does not mind, as long as no campaign is left out for its length"
)


def find_adaptivity(logs: Logs) -> list[str]:
    """Sentences on how pulls depended on rewards; none where they do not seem to."""
    return [
        words
        for words, found in (
            (ADAPTIVE_CHOICE_NOTE, is_adaptively_chosen(logs)),
            (EARLY_STOPPING_NOTE, is_stopped_early(logs)),
        )
        if found
    ]


def is_adaptively_chosen(logs: Logs) -> bool:
    """Whether arms that paid more, or less, were clearly pulled more often than others of their campaign."""
    count = len(logs.campaigns)

    def inside(values: FloatArray) -> FloatArray:
        return np.asarray(values - (np.bincount(logs.campaign, values, count) / logs.arm_counts)[logs.campaign])

    often, paid = inside(np.log(logs.pulls)), inside(logs.mean)
    product, first, second = (np.bincount(logs.campaign, v, count) for v in (often * paid, often**2, paid**2))
    # What pulls that were dealt to the arms at random would have.
    variance = float((first * second / np.maximum(logs.arm_counts - 1, 1)).sum())
    return variance > 1e-24 and abs(float(product.sum())) > ADAPTIVE_CHOICE_THRESHOLD * math.sqrt(variance)


def is_stopped_early(logs: Logs) -> bool:
    """Whether campaigns are clearly the shorter the more significantly their best arm leads.

    Lengths that have nothing to do with rewards make it the other way round: the longer, the more significant.
    """
    several = logs.arm_counts > 1
    significance, lengths = compute_lead_significances(logs)[several], np.log(logs.decision_counts[several])
    if len(lengths) < 3:
        return False
    lead, long = significance - significance.mean(), lengths - lengths.mean()
    # What lengths that were dealt to the campaigns at random would have.
    variance = float((lead**2).sum() * (long**2).sum()) / (len(lengths) - 1)
    return variance > 1e-24 and float(lead @ long) < -EARLY_STOPPING_THRESHOLD * math.sqrt(variance)


def compute_lead_significances(logs: Logs) -> FloatArray:
    """The lead of each campaign's best arm over the second, in standard errors; 0 where there is no second."""
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
    """Whether arms seem to differ too much, as they do where campaigns ended when one clearly led, which may not show."""
    high = any(
        found.has_failed and found.p_value < 0.5
        for found in checks
        if found.statistic in (ARM_SPREAD, BEST_ARM_LEAD, WEIGHTED_SPREAD)
    )
    return high and int(logs.decision_counts.min()) < int(logs.decision_counts.max())


def describe_drawn_checks(reasons: Sequence[str], left_out: set[str]) -> str:
    """A sentence on checks where pulls depended on rewards."""
    words = ", ".join(f"'{name}'" for name in sorted(left_out))
    more = f"; not checked, as it would mean nothing: {words}" if left_out else ""
    return f"{'; '.join(reasons)}: checks look at means that are likely given the logs, not at means of rewards{more}"
