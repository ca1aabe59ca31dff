"""Posterior predictive checks: the logs beside logs that the fit would have made with the same pulls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from banditune.contracts import Floats, Integers
from banditune.logs.dependence import STOPPED_PERHAPS, drawn_note, lengths_may_matter, pulls_by_rewards
from banditune.logs.drafts import Draft
from banditune.logs.measures import (
    DISPERSION,
    LEAD,
    MISFIT,
    NAMES,
    NOISE,
    SPREAD,
    TOGETHER,
    ZEROS,
    Statistic,
    statistics_of,
)
from banditune.logs.record import Logs, whole_campaigns
from banditune.results import Check, frozen

REPLAYS = 999
CHECKED = 5000
"""Of more cells than that, so many of whole campaigns are checked."""

CHUNK = 2_000_000
"""So many numbers are drawn at once."""

LEVELS = np.array([0.005, 0.01, 0.02, *np.arange(1, 20) / 20, 0.98, 0.99, 0.995])

BY_REWARDS = {NOISE}
"""Checks of rewards, not of means, that hold where pulls depended on rewards."""

MEANINGS = {
    SPREAD: ("arms differ more than in the fit", "arms differ less than in the fit"),
    LEAD: (
        "the best arm leads by more than in the fit, so that policies tuned on it would explore too much",
        "the best arm leads by less than in the fit, so that policies tuned on it would explore too little",
    ),
    TOGETHER: (
        "the arms of a campaign rise and fall together, more than in the fit",
        "where one arm of a campaign is good the others are bad, more than in the fit",
    ),
    NAMES: (
        "arms with the same name pay alike in all campaigns, more than in the fit",
        "arms with the same name pay less alike than in the fit",
    ),
    ZEROS: (
        "more arms never paid than in the fit: some may be broken, or means have another shape",
        "fewer arms never paid than in the fit: means have another shape",
    ),
    DISPERSION: (
        "arms with many pulls differ more than in the fit",
        "arms with many pulls differ less than in the fit",
    ),
    NOISE: (
        "rewards of some arms vary more than those of others, but the fit has one noise for all",
        "rewards of all arms vary more alike than in the fit: they may be rounded or capped",
    ),
    MISFIT: (
        "features do not explain all differences between arms: add features, or use a model without them",
        "features explain more than in the fit: rewards of an arm may depend on each other",
    ),
}
"""What it means that a statistic is above what the fit replays, and below."""


def advice(statistic: str, model: str, logs: Logs) -> str:
    """What to try, of what has not been tried and suits the logs."""
    binary, back = logs.rewards == "binary", logs.same_arms and len(logs.campaigns) > 2
    tries = {
        "model='correlated'": binary and back and statistic in (LEAD, TOGETHER, NAMES) and model != "correlated",
        "model='campaigns'": statistic not in (NOISE, MISFIT) and model != "campaigns",
        "per_arm=True": back and statistic == NAMES and model in ("beta-binomial", "beta", "gaussian"),
    }
    found = [words for words, fits in tries.items() if fits]
    return f": try {' or '.join(found)}" if found else ""


class Predicted(NamedTuple):
    """Checks, quantiles of cell means, and sentences."""

    checks: tuple[Check, ...]
    levels: Floats
    observed: Floats
    replayed: Floats
    low: Floats
    high: Floats
    notes: tuple[str, ...]
    drawn: bool


Draw = Callable[[int], tuple[Floats, Floats]]
"""So many rows of cell means and of squares."""

Rows = Iterable[tuple[Floats, Floats]]
"""Rows of cell means and of squares, some at a time."""


def predicted(logs: Logs, draft: Draft, model: str, seed: int = 0) -> Predicted:
    """Replay the logs and compare; where pulls depended on rewards, compare means that are drawn, not those of rewards."""
    rng = np.random.default_rng([seed, 20_207])
    cells, notes = chosen(logs, rng)
    statistics = dict(statistics_of(logs, cells, draft.rewards))

    seen = [(logs.mean[None, cells], logs.squares[None, cells])]

    def replayed(size: int) -> tuple[Floats, Floats]:
        return replay(rng, size, logs, draft, cells)

    reasons = pulls_by_rewards(logs)
    if reasons:
        whole, drawn = means_compared(rng, draft, cells)
        checks, bands = compared(only(statistics, whole), *(repeated(draw, len(cells)) for draw in drawn))
        by_rewards = only(statistics, BY_REWARDS)
        if by_rewards:
            checks += compared(by_rewards, seen, repeated(replayed, len(cells)))[0]
        notes.append(drawn_note(reasons, set(statistics) - whole - BY_REWARDS))
    else:
        checks, bands = compared(statistics, seen, repeated(replayed, len(cells)))
    notes += [
        MEANINGS[found.statistic][found.above > 0.5] + advice(found.statistic, model, logs)
        for found in checks
        if found.fails
    ]
    if not reasons and lengths_may_matter(logs, checks):
        notes.append(STOPPED_PERHAPS)
    observed, middle, low, high = map(frozen, bands)
    return Predicted(checks, frozen(LEVELS), observed, middle, low, high, tuple(notes), bool(reasons))


def only(statistics: dict[str, Statistic], names: set[str]) -> dict[str, Statistic]:
    """Some of the statistics."""
    return {name: statistic for name, statistic in statistics.items() if name in names}


def repeated(draw: Draw, cells: int) -> Rows:
    """As many rows as there are replays, some at a time."""
    step = max(CHUNK // cells, 1)
    return (draw(min(step, REPLAYS - first)) for first in range(0, REPLAYS, step))


def compared(statistics: dict[str, Statistic], seen: Rows, made: Rows) -> tuple[tuple[Check, ...], tuple[Floats, ...]]:
    """Checks, and quantiles of cell means: those seen, on average, and the middle, 2.5% and 97.5% of those made."""
    (observed, quantiles), (others, bands) = measured(statistics, seen), measured(statistics, made)
    checks = tuple(check(name, observed[name], others[name]) for name in statistics)
    low, middle, high = np.quantile(bands, (0.025, 0.5, 0.975), axis=0)
    return checks, (quantiles.mean(axis=0), middle, low, high)


def measured(statistics: dict[str, Statistic], rows: Rows) -> tuple[dict[str, Floats], Floats]:
    """Statistics and quantiles of rows of cells."""
    values: dict[str, list[Floats]] = {name: [] for name in statistics}
    quantiles = []
    for means, squares in rows:
        for name, statistic in statistics.items():
            values[name].append(statistic(means, squares))
        quantiles.append(np.quantile(means, LEVELS, axis=1).T)
    return {name: np.concatenate(found) for name, found in values.items()}, np.concatenate(quantiles)


def check(name: str, observed: Floats, replayed: Floats) -> Check:
    """The place of what was observed among the replays, on average where it is not sure what was.

    Ties count half, so that a constant statistic never fails.
    """
    low, high = np.quantile(replayed, (0.025, 0.975))
    slack = 1e-9 * float(np.abs(observed).max() + np.abs(replayed).max())
    order = np.sort(replayed)
    beyond = len(order) - np.searchsorted(order, observed + slack, "right")
    least = len(order) - np.searchsorted(order, observed - slack, "left")
    above = float((0.5 * (beyond + least) + 0.5).mean() / (len(order) + 1))
    return Check(name, float(np.median(observed)), float(low), float(high), above)


def means_compared(rng: np.random.Generator, draft: Draft, cells: Integers) -> tuple[set[str], tuple[Draw, Draw]]:
    """Statistics to compare, draws of means given the logs, and draws of means from the fit.

    How arms were chosen, and when campaigns ended, does not matter to what logs say about means, as long as it depended on
    the logs. So if the fit is right, means drawn given the logs are means of the fit, all together, whatever the policy;
    means of rewards are not.
    """

    def known(size: int) -> tuple[Floats, Floats]:
        means = draft.known(rng, size, cells)
        return means, means

    def fresh(size: int) -> tuple[Floats, Floats]:
        means = (draft.around or draft.means)(rng, size, cells)
        return means, means

    # Campaigns that are only drawn again have no distribution; the lead is a matter inside them.
    whole = {LEAD} if draft.around else {SPREAD, LEAD, TOGETHER, NAMES}
    return whole, (known, fresh)


def chosen(logs: Logs, rng: np.random.Generator) -> tuple[Integers, list[str]]:
    """The cells to check: all, or those of some campaigns; of a campaign that has too many by itself, some arms."""
    if len(logs.pulls) <= CHECKED:
        return np.arange(len(logs.pulls)), []
    some = whole_campaigns(logs.widths, CHECKED, rng)
    note = f"checks look at {len(some):,} of {len(logs.campaigns):,} campaigns, chosen at random"
    cells = np.flatnonzero(np.isin(logs.campaign, some))
    if len(cells) <= CHECKED:
        return cells, [note]
    note = f"checks look at {CHECKED:,} of the {len(cells):,} arms of one campaign, chosen at random"
    return np.sort(rng.choice(cells, CHECKED, replace=False)), [note]


def replay(rng: np.random.Generator, size: int, logs: Logs, draft: Draft, cells: Integers) -> tuple[Floats, Floats]:
    """Cell means and squares of logs that the fit makes."""
    means, pulls = draft.means(rng, size, cells), logs.pulls[cells]
    if draft.rewards == "binary":
        found = rng.binomial(pulls, means) / pulls
        return found, pulls * found * (1 - found)
    if draft.rewards == "real":
        found = rng.normal(means, draft.scale / np.sqrt(pulls))
        # The variance of a sum of squares holds the kurtosis; a scaled chi-square with as much stands for its law.
        degrees = np.maximum(pulls - 1, 1e-9)
        free = degrees / (1 + 0.5 * draft.kurtosis * degrees / pulls)
        return found, draft.scale**2 * degrees * rng.chisquare(free, found.shape) / free
    # A mean of beta rewards is nearly beta with the same mean and variance; of one reward, exactly.
    size_of = np.maximum(pulls * (draft.scale + 1) - 1, 1e-9)
    safe = np.clip(means, 1e-12, 1 - 1e-12)
    return rng.beta(size_of * safe, size_of * (1 - safe)), np.zeros_like(means)
