"""Posterior predictive checks: the logs beside logs that the fit would have made with the same pulls."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from banditune.contracts import Floats, Integers
from banditune.logs.drafts import Draft
from banditune.logs.record import Logs
from banditune.results import Check, frozen

REPLAYS = 999
CELLS = 5000
"""Of more cells than that, so many of whole campaigns are checked."""

CHUNK = 2_000_000
"""So many numbers are drawn at once."""

LEVELS = np.array([0.005, 0.01, 0.02, *np.arange(1, 20) / 20, 0.98, 0.99, 0.995])

SPREAD, LEAD, TOGETHER = "spread of arms' means", "lead of the best arm", "arms rise and fall together"
NAMES, ZEROS, DISPERSION = "arms keep their rank", "share of arms without a success", "spread weighted by pulls"
NOISE, MISFIT = "noise differs between arms", "what features do not explain"

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


Statistic = Callable[[Floats, Floats], Floats]
"""A number for each row of cell means and of squares."""


def predicted(logs: Logs, draft: Draft, model: str, seed: int = 0) -> Predicted:
    """Replay the logs and compare."""
    rng = np.random.default_rng([seed, 20_207])
    cells, notes = chosen(logs, rng)
    statistics = dict(statistics_of(logs, cells, draft))
    means, squares = logs.mean[None, cells], logs.squares[None, cells]
    observed = {name: float(statistic(means, squares)[0]) for name, statistic in statistics.items()}
    replayed: dict[str, list[Floats]] = {name: [] for name in statistics}
    quantiles = []
    step = max(CHUNK // len(cells), 1)
    for first in range(0, REPLAYS, step):
        means, squares = replay(rng, min(step, REPLAYS - first), logs, draft, cells)
        for name, statistic in statistics.items():
            replayed[name].append(statistic(means, squares))
        quantiles.append(np.quantile(means, LEVELS, axis=1).T)
    checks = tuple(check(name, observed[name], np.concatenate(replayed[name])) for name in statistics)
    low, middle, high = np.quantile(np.concatenate(quantiles), (0.025, 0.5, 0.975), axis=0)
    seen = np.quantile(logs.mean[cells], LEVELS)
    notes += [
        MEANINGS[found.statistic][found.above > 0.5] + advice(found.statistic, model, logs)
        for found in checks
        if found.fails
    ]
    return Predicted(checks, frozen(LEVELS), frozen(seen), frozen(middle), frozen(low), frozen(high), tuple(notes))


def check(name: str, observed: float, replayed: Floats) -> Check:
    """The place of what was observed among the replays; ties count half, so that a constant statistic never fails."""
    low, high = np.quantile(replayed, (0.025, 0.975))
    slack = 1e-9 * (abs(observed) + float(np.abs(replayed).max()))
    beyond = float((replayed > observed + slack).sum())
    ties = float((np.abs(replayed - observed) <= slack).sum())
    above = (beyond + 0.5 * ties + 0.5) / (len(replayed) + 1)
    return Check(name, observed, float(low), float(high), above)


def chosen(logs: Logs, rng: np.random.Generator) -> tuple[Integers, list[str]]:
    """The cells to check: all, or those of some campaigns."""
    if len(logs.pulls) <= CELLS:
        return np.arange(len(logs.pulls)), []
    order = rng.permutation(len(logs.campaigns))
    some = order[: max(int(np.searchsorted(np.cumsum(logs.widths[order]), CELLS)), 1)]
    note = f"checks look at {len(some):,} of {len(logs.campaigns):,} campaigns, chosen at random"
    return np.flatnonzero(np.isin(logs.campaign, some)), [note]


def replay(rng: np.random.Generator, size: int, logs: Logs, draft: Draft, cells: Integers) -> tuple[Floats, Floats]:
    """Cell means and squares of logs that the fit makes."""
    means, pulls = draft.means(rng, size, cells), logs.pulls[cells]
    if draft.rewards == "binary":
        found = rng.binomial(pulls, means) / pulls
        return found, pulls * found * (1 - found)
    if draft.rewards == "real":
        found = rng.normal(means, draft.scale / np.sqrt(pulls))
        return found, draft.scale**2 * rng.chisquare(np.maximum(pulls - 1, 1e-9), found.shape)
    # A mean of beta rewards is nearly beta with the same mean and variance; of one reward, exactly.
    size_of = np.maximum(pulls * (draft.scale + 1) - 1, 1e-9)
    safe = np.clip(means, 1e-12, 1 - 1e-12)
    return rng.beta(size_of * safe, size_of * (1 - safe)), np.zeros_like(means)


def statistics_of(logs: Logs, cells: Integers, draft: Draft) -> Iterator[tuple[str, Statistic]]:
    """The statistics that matter to a bandit, as far as these logs have them."""
    pulls = logs.pulls[cells].astype(float)
    campaign = np.unique(logs.campaign[cells], return_inverse=True)[1]
    arm = logs.arm[cells]
    yield SPREAD, lambda means, squares: means.std(axis=1)
    widths = np.bincount(campaign)
    if widths.max() > 1:
        yield LEAD, lead(campaign, widths)
        if len(widths) > 2:
            yield TOGETHER, together(campaign, arm, logs.same_arms)
    often = np.bincount(arm, minlength=len(logs.arms))
    if (often > 1).sum() > 1:
        yield NAMES, ranks(arm, often)
    if draft.rewards == "binary":
        yield ZEROS, lambda means, squares: (means == 0).mean(axis=1)
    share = pulls / pulls.sum()
    yield DISPERSION, lambda means, squares: np.sqrt(np.maximum(means**2 @ share - (means @ share) ** 2, 0.0))
    twice = pulls > 1
    if draft.rewards == "real" and twice.sum() > 1:
        degrees = pulls[twice] - 1
        yield NOISE, lambda means, squares: np.sqrt(squares[:, twice] / degrees).std(axis=1)
    if logs.features is not None and (widths > logs.features.shape[1]).any():
        yield MISFIT, misfit(logs.features[cells], campaign, pulls)


def lead(campaign: Integers, widths: Integers) -> Statistic:
    """The best arm's mean less the second best, averaged over campaigns with two arms or more."""
    first = np.concatenate([[0], np.cumsum(widths)[:-1]])
    place = np.arange(len(campaign)) - first[campaign]

    def statistic(means: Floats, squares: Floats) -> Floats:
        table = np.full((len(means), len(widths), int(widths.max())), -np.inf)
        table[:, campaign, place] = means
        best = np.partition(table[:, widths > 1], (-2, -1), axis=2)[:, :, -2:]
        return np.asarray((best[:, :, 1] - best[:, :, 0]).mean(axis=1))

    return statistic


def together(campaign: Integers, arm: Integers, same_arms: bool) -> Statistic:
    """The correlation of two arms' means in a campaign; where arms come back, around each arm's own mean."""
    widths = np.bincount(campaign)
    pairs = float((widths * (widths - 1)).sum())
    starts = np.concatenate([[0], np.cumsum(widths)[:-1]])
    order = np.argsort(arm, kind="stable")
    often = np.bincount(arm)
    often = often[often > 0]
    ends = np.concatenate([[0], np.cumsum(often)[:-1]])
    number = np.unique(arm, return_inverse=True)[1]

    def statistic(means: Floats, squares: Floats) -> Floats:
        if same_arms:
            centre = (np.add.reduceat(means[:, order], ends, axis=1) / often)[:, number]
        else:
            centre = means.mean(axis=1, keepdims=True)
        away = means - centre
        total = (away**2).sum(axis=1)
        products = (np.add.reduceat(away, starts, axis=1) ** 2).sum(axis=1) - total
        return np.asarray((products / pairs) / np.maximum(total / means.shape[1], 1e-300))

    return statistic


def ranks(arm: Integers, often: Integers) -> Statistic:
    """The spread of arms' averages over campaigns, of arms that come back."""
    order = np.argsort(arm, kind="stable")
    present = often[often > 0]
    starts = np.concatenate([[0], np.cumsum(present)[:-1]])

    def statistic(means: Floats, squares: Floats) -> Floats:
        averages = np.add.reduceat(means[:, order], starts, axis=1) / present
        return np.asarray(averages[:, present > 1].std(axis=1))

    return statistic


def misfit(features: Floats, campaign: Integers, pulls: Floats) -> Statistic:
    """Weighted squares of cell means around the best linear function of features in each campaign."""
    starts = np.searchsorted(campaign, np.arange(campaign.max() + 2))
    spaces = []
    for begin, end in pairwise(starts):
        weighted = features[begin:end] * np.sqrt(pulls[begin:end])[:, None]
        left, sizes, _ = np.linalg.svd(weighted, full_matrices=False)
        spaces.append(left[:, sizes > 1e-9 * sizes[0]])

    def statistic(means: Floats, squares: Floats) -> Floats:
        weighted = means * np.sqrt(pulls)
        found = (weighted**2).sum(axis=1)
        for begin, end, space in zip(starts[:-1], starts[1:], spaces, strict=True):
            found -= ((weighted[:, begin:end] @ space) ** 2).sum(axis=1)
        return np.asarray(np.maximum(found, 0.0) / len(pulls))

    return statistic
