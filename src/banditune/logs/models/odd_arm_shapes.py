"""Arms of another shape: one arm of each campaign is better, or worse, than the others, which are equal.

In a campaign of K arms with the centre m and the spread s, any arm may be the odd one. It lies d (K - 1) / K above the
centre and the others lie d / K below it, with d = sqrt(K s v) and v the variance of a reward. So the variance of the arms'
means is the same s as that of beta or normal arms. For a worse arm d is negative. Centres have the same prior as there.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from banditune.core.arrays import FloatArray, IntArray
from banditune.logs.models.signed_spread import ArmSpreadModel, BetaArmSpread, NormalArmSpread

ODD_CENTRE_NODES = 36
"""Nodes of the integral over a centre."""


NODE_HALF_RANGE = 7.0
"""Nodes are within this many standard deviations."""


MAX_CHUNK_CELLS = 10_000
"""Cells that are computed together."""


MAX_DISTANCE_SHARE = 0.98
"""The odd arm goes at most this share of the way from the centre to 0 or 1, and so do the others."""


POINT_CONCENTRATION, POINT_SD = 1e12, 1e-9
"""a + b of a beta law and the standard deviation of a normal one that are points, except for rounding."""


class OddArmModel(Protocol):
    """One arm of each campaign is odd: how likely this is, and draws of arms' means given the data.

    The `slopes` are those of beta or normal arms.
    """

    slopes: FloatArray
    groups: CellGroups

    def compute_campaign_likelihoods(self, spread: float) -> FloatArray:
        """Compute what each campaign adds to the log likelihood of a spread above 0."""

    def draw_cell_parameters(self, rng: np.random.Generator, spreads: FloatArray) -> FloatArray:
        """Draw a mean of each cell given its campaign's data and spread, as the two parameters of a point."""

    def draw_cell_means(self, rng: np.random.Generator, spreads: FloatArray) -> FloatArray:
        """Draw mean rewards (draws, cells) of logs with the same pulls and centres, given spreads (draws, campaigns)."""


class CellGroups:
    """Cells of campaigns: sums over campaigns, and one cell of each that is drawn."""

    def __init__(self, campaign: IntArray) -> None:
        self.campaign = campaign
        self.starts = np.flatnonzero(np.diff(campaign, prepend=-1))
        self.widths = np.bincount(campaign)

    def sum(self, values: FloatArray) -> FloatArray:
        """Sum over the cells of each campaign."""
        return np.asarray(np.add.reduceat(values, self.starts))

    def average_exponentials(self, logs: FloatArray) -> FloatArray:
        """Compute the logarithm of the mean of exp(logs) over the cells of each campaign."""
        top = np.maximum.reduceat(logs, self.starts)
        return np.asarray(top + np.log(self.sum(np.exp(logs - top[self.campaign])) / self.widths))

    def draw_cells(self, rng: np.random.Generator, logs: FloatArray) -> NDArray[np.bool_]:
        """Draw one cell of each campaign with probabilities in proportion to exp(logs), (cells) or (draws, cells)."""
        heights = logs + rng.gumbel(size=logs.shape)
        return np.asarray(heights == np.maximum.reduceat(heights, self.starts, axis=-1)[..., self.campaign])


class OddBetaArm:
    """0/1 rewards, or rewards in [0, 1] as so many 0/1 rewards; centres are integrated out."""

    def __init__(self, arms: BetaArmSpread, sign: int) -> None:
        self.arms, self.slopes, self.sign = arms, arms.slopes, sign
        self.cells, self.groups = arms.cells, CellGroups(arms.cells.campaign)
        self.arm_count = self.groups.widths[self.cells.campaign].astype(float)
        self.prior = (
            self.cells.centre_mean * self.cells.centre_concentration,
            (1 - self.cells.centre_mean) * self.cells.centre_concentration,
        )
        self.sums = [self.groups.sum(counts)[self.cells.campaign] for counts in self.cells[1:3]]

    def compute_campaign_likelihoods(self, spread: float) -> FloatArray:
        evidence = self._compute_cell_evidence(np.full(len(self.slopes), spread))
        a, b = self.prior
        return self.groups.average_exponentials(evidence) + math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)

    def draw_cell_parameters(self, rng: np.random.Generator, spreads: FloatArray) -> FloatArray:
        is_odd = self.groups.draw_cells(rng, self._compute_cell_evidence(spreads))
        odd, campaign = np.flatnonzero(is_odd), self.cells.campaign
        nodes = self._compute_nodes(odd, spreads)
        below = np.cumsum(np.exp(nodes.heights - nodes.heights.max(axis=1, keepdims=True)), axis=1)
        place = (below < rng.random((len(odd), 1)) * below[:, -1:]).sum(axis=1)
        rows = np.arange(len(odd))
        means = np.where(is_odd, nodes.odd[rows, place][campaign], nodes.other[rows, place][campaign])
        return POINT_CONCENTRATION * np.stack([means, 1 - means], axis=1)

    def draw_cell_means(self, rng: np.random.Generator, spreads: FloatArray) -> FloatArray:
        campaign = self.cells.campaign
        is_odd = self.groups.draw_cells(rng, np.zeros((len(spreads), len(campaign))))
        centre = self.arms.compute_centres()
        distance = self._compute_distance(centre, self.groups.widths.astype(float), spreads)[:, campaign]
        return self.arms.draw_rewards(rng, centre[campaign] + distance * (is_odd - 1 / self.arm_count))

    def _compute_cell_evidence(self, spreads: FloatArray) -> FloatArray:
        """Compute the log likelihood of each campaign if a given cell is the odd one, for all cells."""
        every = np.arange(len(self.cells.campaign))
        parts = [
            self._compute_nodes(part, spreads).integrate()
            for part in np.array_split(every, -(-len(every) // MAX_CHUNK_CELLS))
        ]
        return np.concatenate(parts)

    def _compute_nodes(self, odd: IntArray, spreads: FloatArray) -> CentreNodes:
        """Compute the curve over the centre if these cells are the odd ones, each of its campaign."""
        spread = spreads[self.cells.campaign[odd]]
        arms, sums = self.arm_count[odd], [counts[odd] for counts in self.sums]
        own = [counts[odd] for counts in self.cells[1:3]]
        a, b = self.prior
        total = sums[0] + sums[1] + a + b
        # The centre that these counts suggest, if this cell is the odd one.
        pooled = (sums[0] + a) / total
        distance = self._compute_distance(pooled, arms, spread)
        middle = pooled + distance * ((sums[0] + sums[1]) / arms - own[0] - own[1]) / total
        middle = np.clip(middle, np.minimum(0.5 / total, pooled), np.maximum(1 - 0.5 / total, pooled))
        half = NODE_HALF_RANGE / np.sqrt(total * middle * (1 - middle))
        logits = np.log(middle / (1 - middle))[:, None] + np.linspace(-half, half, ODD_CENTRE_NODES, axis=1)
        centre = 1 / (1 + np.exp(-logits))
        away = self._compute_distance(centre, arms[:, None], spread[:, None])
        odd_rate, other_rate = centre + away * (1 - 1 / arms[:, None]), centre - away / arms[:, None]
        heights = a * np.log(centre) - b * np.log1p(np.exp(logits))
        for counts, rate in ((own, odd_rate), ([s - o for s, o in zip(sums, own, strict=True)], other_rate)):
            heights += counts[0][:, None] * np.log(rate) + counts[1][:, None] * np.log1p(-rate)
        return CentreNodes(heights, 2 * half / (ODD_CENTRE_NODES - 1), odd_rate, other_rate)

    def _compute_distance(self, centre: FloatArray, arms: FloatArray, spread: FloatArray) -> FloatArray:
        """Compute how far the odd arm is above the others; negative if it is below them."""
        room = (1 - centre, centre) if self.sign > 0 else (centre, 1 - centre)
        most = MAX_DISTANCE_SHARE * np.minimum(room[0] * arms / (arms - 1), room[1] * arms)
        return np.asarray(self.sign * np.minimum(np.sqrt(arms * spread * centre * (1 - centre)), most))


class CentreNodes(NamedTuple):
    """Log heights of a curve over a centre (rows, nodes), its step, and the rates of the odd and of the other arms."""

    heights: FloatArray
    step: FloatArray
    odd: FloatArray
    other: FloatArray

    def integrate(self) -> FloatArray:
        """Compute the logarithm of the integral of each row."""
        top = self.heights.max(axis=1)
        return np.asarray(top + np.log(np.exp(self.heights - top[:, None]).sum(axis=1) * self.step))


class OddNormalArm:
    """Real rewards; the centre of a campaign may be any."""

    def __init__(self, arms: NormalArmSpread, sign: int) -> None:
        self.arms, self.slopes, self.sign = arms, arms.slopes, sign
        self.campaign, self.pulls, self.groups = arms.campaign, arms.pulls, CellGroups(arms.campaign)
        self.total = self.groups.sum(arms.pulls)
        self.middle = (self.groups.sum(arms.pulls * arms.mean) / self.total)[arms.campaign]
        self.away = arms.mean - self.middle
        squares = self.groups.sum(self.pulls * self.away**2 - np.log(self.pulls))
        self.base = -0.5 * (np.log(self.total) + squares)

    def compute_campaign_likelihoods(self, spread: float) -> FloatArray:
        return self.base + self.groups.average_exponentials(
            self._compute_cell_evidence(np.full(len(self.slopes), spread))
        )

    def draw_cell_parameters(self, rng: np.random.Generator, spreads: FloatArray) -> FloatArray:
        is_odd = self.groups.draw_cells(rng, self._compute_cell_evidence(spreads))
        distance = self._compute_distance(spreads)
        error = rng.standard_normal(len(spreads)) / np.sqrt(self.total)
        level = (error - distance * self.groups.sum(is_odd * self.pulls) / self.total)[self.campaign]
        means = self.middle + level + is_odd * distance[self.campaign]
        return self.arms.noise * np.stack([means, np.full(len(means), POINT_SD)], axis=1)

    def draw_cell_means(self, rng: np.random.Generator, spreads: FloatArray) -> FloatArray:
        is_odd = self.groups.draw_cells(rng, np.zeros((len(spreads), len(self.campaign))))
        distance = self._compute_distance(spreads)[:, self.campaign]
        means = self.middle + distance * (is_odd - 1 / self.groups.widths[self.campaign])
        return np.asarray(self.arms.noise * rng.normal(means, 1 / np.sqrt(self.pulls)))

    def _compute_cell_evidence(self, spreads: FloatArray) -> FloatArray:
        """Compute by how much the log likelihood of a campaign rises if a given cell is the odd one, for all cells."""
        distance = self._compute_distance(spreads)[self.campaign]
        share = self.pulls / self.total[self.campaign]
        return np.asarray(self.pulls * (distance * self.away - 0.5 * distance**2 * (1 - share)))

    def _compute_distance(self, spreads: FloatArray) -> FloatArray:
        return np.asarray(self.sign * np.sqrt(self.groups.widths * spreads))


def make_odd_arm_model(arms: ArmSpreadModel, sign: int) -> OddArmModel:
    """Make the model in which one arm of each campaign is better (sign 1) or worse (-1) than equal others."""
    return OddBetaArm(arms, sign) if isinstance(arms, BetaArmSpread) else OddNormalArm(arms, sign)  # type: ignore[arg-type]
