"""The shape of rewards: a sample of what single rewards were off from the mean of their arm in their campaign.

In cells that are in the sample as a whole, or by a half, the median stands for the mean, and all are shifted to have the
mean 0: with 20 log-normal rewards in a cell, regret with residuals from means was 32% too high, and 6% from medians.

The sample is drawn while rows are read: of all rows, those whose numbers have the lowest hashes. So it is a simple random
sample, the same however the file is cut into blocks, and the part that belongs to some campaigns is one of their rows.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditune.contracts import Floats, Integers

if TYPE_CHECKING:
    from banditune.logs.record import Logs

KEPT = 1 << 16
"""Rewards in the sample, at most: with 4,096 of a log-normal law, regret was off by 13%."""

TABLE = 2048
"""Residuals in a problem, at most. Where there are more, neighbours are averaged, which leaves tails their share."""

LONG = 20
"""Residuals of shorter cells are more alike than rewards are, as each reward moves the mean that it is compared with."""

FEWEST = 100
"""Fewer residuals do not tell a shape."""

DIGITS = 6
"""Digits that a problem keeps of a residual."""


class Residuals(NamedTuple):
    """The cell of each reward in the sample, and what it was off from the cell's mean, scaled to the spread of rewards."""

    cell: Integers
    value: Floats


class Reservoir:
    """Some rewards of all that go by, with the cells that they are of."""

    def __init__(self, size: int = KEPT) -> None:
        self.size = size
        self.rows = 0
        self.limit = np.uint64(2**64 - 1)
        self.ranks: NDArray[np.uint64] = np.zeros(0, np.uint64)
        self.cells: Integers = np.zeros(0, np.int64)
        self.rewards: Floats = np.zeros(0)

    def add(self, cells: Integers, rewards: Floats) -> None:
        """Let rewards go by."""
        ranks = hashed(np.arange(self.rows, self.rows + len(rewards), dtype=np.uint64))
        self.rows += len(rewards)
        low = np.flatnonzero(ranks <= self.limit)
        self.ranks = np.concatenate([self.ranks, ranks[low]])
        self.cells = np.concatenate([self.cells, cells[low]])
        self.rewards = np.concatenate([self.rewards, rewards[low]])
        order = np.argsort(self.ranks)[: self.size]
        self.ranks, self.cells, self.rewards = self.ranks[order], self.cells[order], self.rewards[order]
        if len(order) == self.size:
            self.limit = self.ranks[-1]

    def residuals(self, place: Integers, pulls: Integers, mean: Floats) -> Residuals:
        """What the sample is off from the means of its cells, which get new places; cells of one pull tell nothing."""
        cell = place[self.cells]
        several = pulls[cell] > 1
        cell, rewards = cell[several], self.rewards[several]
        found = (rewards - mean[cell]) * np.sqrt(pulls[cell] / (pulls[cell] - 1))
        # Of skewed rewards and of those with heavy tails, medians are known better than means, which blur the shape.
        known = 2 * np.bincount(cell, minlength=len(pulls))[cell] >= pulls[cell]
        if known.any():
            away = rewards[known] - medians(cell[known], rewards[known])
            found[known] = away - away.mean()
        return Residuals(cell, found)


def medians(group: Integers, values: Floats) -> Floats:
    """The median of its group for each of the values."""
    order = np.lexsort((values, group))
    _, number, sizes = np.unique(group, return_inverse=True, return_counts=True)
    first = np.cumsum(sizes) - sizes
    ordered = values[order]
    return np.asarray((ordered[first + (sizes - 1) // 2] + ordered[first + sizes // 2]) / 2)[number]


def hashed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The output of SplitMix64 (Steele, Lea and Flood 2014): a permutation of all 64-bit numbers without a pattern."""
    mixed = (numbers + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def pooled(logs: Logs) -> tuple[float, ...]:
    """The shape of all rewards, as a problem takes it; empty where it is not known."""
    residuals = shape_known(logs)
    return () if residuals is None else rounded(condensed(residuals.value, min(len(residuals.value), TABLE))[None])[0]


def by_arm(logs: Logs) -> tuple[tuple[float, ...], ...]:
    """A row of residuals for each arm's name, whose sizes may differ; arms with few of them have those of all."""
    residuals = shape_known(logs)
    size = 2 * TABLE // len(logs.arms)
    if residuals is None or size < FEWEST:
        return ()
    arm = logs.arm[residuals.cell]
    rows = [residuals.value[arm == place] for place in range(len(logs.arms))]
    return rounded(np.stack([condensed(row if len(row) >= FEWEST else residuals.value, size) for row in rows]))


def shape_known(logs: Logs) -> Residuals | None:
    """The residuals to use: of long cells, where these have half of them; None where there are too few."""
    found = logs.residuals
    if found is None:
        return None
    long = logs.pulls[found.cell] >= LONG
    if 2 * np.count_nonzero(long) >= len(long):
        found = Residuals(found.cell[long], found.value[long])
    return found if len(found.value) >= FEWEST and np.ptp(found.value) > 0 else None


def condensed(values: Floats, size: int) -> Floats:
    """As many values for these: means of neighbours, or some twice."""
    order = np.sort(values)
    if len(order) <= size:
        return np.asarray(order[np.arange(size) * len(order) // size])
    starts = np.arange(size) * len(order) // size
    return np.asarray(np.add.reduceat(order, starts) / np.diff(starts, append=len(order)))


def rounded(table: Floats) -> tuple[tuple[float, ...], ...]:
    """Rows with mean 0 and together with mean square 1, in few digits: files are read by people too."""
    away = table - table.mean(axis=1, keepdims=True)
    away /= math.sqrt(float((away**2).mean()))
    return tuple(tuple(float(f"{value:.{DIGITS}g}") for value in row) for row in away.tolist())


def excess_kurtosis(logs: Logs) -> float:
    """How much heavier the rewards' tails are than those of a normal law, 0; not below -1, where squares hardly vary."""
    found = shape_known(logs)
    if found is None:
        return 0.0
    square = found.value**2
    return max(float((square**2).mean() / square.mean() ** 2) - 3.0, -1.0)


def remark(logs: Logs, used: bool) -> str:
    """A sentence on the shape that real rewards have in the fitted problem."""
    if logs.residuals is None:
        return (
            "the logs hold sums only, so rewards are assumed to be Gaussian around their means; logs with a row per "
            "decision keep their shape"
        )
    if not used:
        return (
            f"{len(logs.residuals.value)} rewards of arms that were pulled twice or more are too few to tell the shape of "
            "rewards, so they are assumed to be Gaussian around their means"
        )
    values = shape_known(logs).value  # type: ignore[union-attr]
    skewness = float((values**3).mean() / (values**2).mean() ** 1.5)
    return (
        f"rewards are drawn around their means from {len(values):,} residuals of the logs, with skewness {skewness:.2g} "
        f"and excess kurtosis {excess_kurtosis(logs):.2g} (0 and 0 if Gaussian)"
    )
