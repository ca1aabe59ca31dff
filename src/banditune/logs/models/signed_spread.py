"""How much arms differ within their campaigns, for judging: an estimate that is right where they do not differ at all.

In a campaign the mean of cell i, an arm with n_i pulls, has the variance s + 1 / n_i around the campaign's centre.
The unit is the variance of one reward, so that s, the spread, is 0 where arms are equal. An estimate that cannot be
negative is too large there, and so is all that grows with it. This one may be negative: where the likelihood falls
from s = 0 on, it is one step of Fisher scoring from there, slope over information, which has the mean 0 where arms do
not differ.

Its error is that of the quadratic form y' P P y behind the slope, where P takes the centre out and weighs by 1 / (s +
1 / n_i). That has the mean tr P and the variance 2 tr PP, so (s + base) * degrees / chi-square(degrees) - base is
what s may be, with base = tr P / tr PP - s and degrees = (tr P)^2 / tr PP. For equally many pulls of normal rewards
both are exact.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.beta_binomial import MAX_LOGIT
from banditune.logs.models.cell_summaries import count_successes, pool_cell_variances
from banditune.logs.models.hierarchical_beta import (
    BetaCells,
    compute_campaign_evidence,
    compute_evidence,
    compute_logit,
    make_beta_cells,
    replace_centre_logit,
    sample_informative_campaigns,
)
from banditune.logs.models.likelihood_search import compute_chi_square_quantile, find_peak
from banditune.logs.models.reward_shape import compute_excess_kurtosis, pool_residuals

MAX_SPREAD_ROUNDS = 4
"""So often each number is looked for while the others stay."""


SLOPE_STEP_SHARE = 0.01
"""Slopes at no spread are taken with steps of this share of what chance alone makes."""


LOW_ESTIMATE_QUANTILE = 0.16
"""Lower estimates than this quantile of those without spread do not make intervals narrower (Cowan and others, 2011)."""


MIN_SPREAD_SHARE = 1e-3
"""A spread below this share of what chance alone makes is none."""


MAX_UNIT_SPREAD = 0.9
"""The largest spread of rewards in [0, 1]: there arms pay always or never."""


SMALLEST_SPREAD = 1e-12
"""The smallest spread that is tried, where pulls are so many that chance makes less."""


class SpreadEstimate(NamedTuple):
    """An estimate of the spread, which may be negative, with what its distribution needs (see above)."""

    value: float
    chance_spread: float
    degrees: float
    upper_limit: float

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draw the spread from its posterior.

        A very low estimate is no evidence for a negative spread: it counts as the quantile `LOW_ESTIMATE_QUANTILE` without
        spread.
        """
        least = self.chance_spread * compute_chi_square_quantile(LOW_ESTIMATE_QUANTILE, self.degrees) / self.degrees
        ratio = self.degrees / rng.chisquare(self.degrees, size)
        return np.minimum(max(self.value + self.chance_spread, least) * ratio - self.chance_spread, self.upper_limit)


class CellPrecision(NamedTuple):
    """Cells in order of their campaign: how precisely each is known, and the excess kurtosis of its mean.

    `degrees` is how many degrees of freedom the variance of a reward was taken from.
    """

    campaign: IntArray
    precision: FloatArray
    excess_kurtosis: FloatArray
    degrees: float = math.inf

    def compute_traces(self, spread: float) -> tuple[float, float]:
        """The traces of P and PP."""
        first, second, third = self._sum_weights(spread)
        return float((first - second / first).sum()), float((second - 2 * third / first + (second / first) ** 2).sum())

    def estimate_spread(self, value: float, slopes: FloatArray, most: float) -> SpreadEstimate:
        """The estimate with its error, given the slope of each campaign's log likelihood there.

        The variance is the larger of two: what the model says, and what the slopes' spread over campaigns says.
        """
        spread = max(value, 0.0)
        trace, square = self.compute_traces(spread)
        first, second, _ = self._sum_weights(spread)
        weight = 1 / (spread + 1 / self.precision)
        own = weight**2 * (1 - 2 * weight / first[self.campaign] + (second / first**2)[self.campaign])
        base = trace / square - spread
        # The variance of the quadratic form, with that of rewards' kurtosis and of the estimated variance of a reward.
        variance = (2 * square + float((self.excess_kurtosis * (own / self.precision) ** 2).sum())) / square**2
        variance += 2 * base**2 / self.degrees
        variance = max(variance, 4 * len(slopes) * float(slopes.var(ddof=1)) / square**2)
        return SpreadEstimate(max(value, -base), base, 2 * (spread + base) ** 2 / variance, most)

    def _sum_weights(self, spread: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        weight = 1 / (spread + 1 / self.precision)
        return tuple(np.bincount(self.campaign, weight**power) for power in (1, 2, 3))  # type: ignore[return-value]


class ArmSpreadModel(Protocol):
    """What campaigns say about their arms: the spread, and the slope of each campaign's log likelihood in it.

    `unit` is the variance of a reward, the unit of the spread, in a typical campaign.
    """

    spread: SpreadEstimate
    slopes: FloatArray
    reward_variance: float

    def compute_cell_parameters(self, spread: float) -> FloatArray:
        """The two numbers of each cell's distribution at a spread above 0."""

    def compute_cell_means(self, spread: float) -> FloatArray:
        """The mean of each cell's distribution at a spread, which may be 0."""

    def make_problem_options(self) -> dict[str, Any]:
        """What a problem with such arms has to know besides."""


def fit_arm_spread(logs: Logs) -> ArmSpreadModel:
    """What these campaigns say about their arms, whatever features they have."""
    return NormalArmSpread(logs) if logs.rewards == "real" else BetaArmSpread(logs)


class BetaArmSpread:
    """Arms are beta around their campaign's centre, and the centres are integrated out (see `hierarchical_beta`)."""

    def __init__(self, logs: Logs) -> None:
        self.v, _, self.given = count_successes(logs, 0.95)
        self.rewards = logs.rewards
        self.cells = make_beta_cells(logs.campaign, *self.given)
        tell = sample_informative_campaigns(self.cells)
        sampled = self.cells if len(tell) == self.cells.campaign_count else self.cells.select_campaigns(tell)
        trials = sampled.successes + sampled.failures
        pays = np.bincount(sampled.campaign, sampled.successes) / np.bincount(sampled.campaign, trials)
        variance = np.maximum(pays * (1 - pays), 1e-300)[sampled.campaign]
        excess = np.maximum((1 / variance - 6) / trials, 0.0) * (variance > 1e-300)
        noise = CellPrecision(sampled.campaign, trials, excess)
        value, best = self._fit_spread(sampled, noise)
        self.cells = self.cells._replace(centre_mean=best.centre_mean, centre_concentration=best.centre_concentration)
        self.reward_variance = float((pays * (1 - pays)).mean())
        trace, square = noise.compute_traces(max(value, 0.0))
        slopes = _compute_spread_slopes(best, max(value, 0.0), SLOPE_STEP_SHARE * trace / square)
        self.spread = noise.estimate_spread(value, slopes, MAX_UNIT_SPREAD)
        self.slopes = np.zeros(self.cells.campaign_count)
        self.slopes[tell] = slopes

    def compute_cell_parameters(self, spread: float) -> FloatArray:
        size = _convert_spread_to_log_concentration(spread)
        centre = compute_campaign_evidence(self.cells, size)[1][self.cells.campaign]
        return math.exp(size) * np.stack([centre, 1 - centre], axis=1) + np.stack(self.given, axis=1)

    def compute_cell_means(self, spread: float) -> FloatArray:
        pairs = self.compute_cell_parameters(max(spread, SMALLEST_SPREAD))
        return np.asarray(pairs[:, 0] / pairs.sum(axis=1))

    def make_problem_options(self) -> dict[str, Any]:
        return {"v": self.v} if self.rewards == "unit" else {}

    def _fit_spread(self, cells: BetaCells, noise: CellPrecision) -> tuple[float, BetaCells]:
        """The spread, and cells with the likeliest prior of their centres."""
        trace, square = noise.compute_traces(0.0)
        chance = max(trace / square, SMALLEST_SPREAD)
        none = _refit_centres(cells, MIN_SPREAD_SHARE * chance)
        best, some = MIN_SPREAD_SHARE * chance, none
        for _ in range(MAX_SPREAD_ROUNDS):
            before = best
            best = _maximize_spread(partial(_compute_spread_likelihood, some), best, chance)
            some = _refit_centres(some, best)
            if abs(math.log(best / before)) < 0.01:
                break
        if best > 2 * MIN_SPREAD_SHARE * chance and _compute_spread_likelihood(some, best) > _compute_spread_likelihood(
            none, MIN_SPREAD_SHARE * chance
        ):
            return best, some
        return 2 * float(_compute_spread_slopes(none, 0.0, SLOPE_STEP_SHARE * chance).sum()) / square, none


class NormalArmSpread:
    """Arms are normal around their campaign's own mean, which may be any."""

    def __init__(self, logs: Logs) -> None:
        inside = pool_cell_variances(logs)
        self.noise, self.residuals, self.reward_variance = inside.noise, pool_residuals(logs), inside.noise**2
        self.campaign, self.mean = logs.campaign, logs.mean / self.noise
        self.pulls, self.count = logs.pulls.astype(float), len(logs.campaigns)
        # Of rewards with heavy tails, means and variances vary more.
        kurtosis = max(compute_excess_kurtosis(logs), 0.0)
        noise = CellPrecision(logs.campaign, self.pulls, kurtosis / self.pulls, inside.degrees / (1 + kurtosis / 2))
        trace, square = noise.compute_traces(0.0)
        chance = max(trace / square, SMALLEST_SPREAD)
        best = _maximize_spread(self.compute_likelihood, chance, chance)
        if best <= 2 * MIN_SPREAD_SHARE * chance or self.compute_likelihood(best) <= self.compute_likelihood(0.0):
            # Fisher's step from no spread: the slope is (y' P P y - tr P) / 2, the information tr PP / 2.
            weight, centre = self._compute_centres(0.0)
            best = float((weight**2 * (self.mean - centre) ** 2).sum() - trace) / square
        weight, centre = self._compute_centres(max(best, 0.0))
        first, second = (np.bincount(self.campaign, weight**power, self.count) for power in (1, 2))
        squares = np.bincount(self.campaign, weight**2 * (self.mean - centre) ** 2, self.count)
        self.slopes = (squares - first + second / first) / 2
        self.spread = noise.estimate_spread(best, self.slopes, math.inf)

    def compute_likelihood(self, spread: float) -> float:
        """The restricted log likelihood."""
        weight, centre = self._compute_centres(spread)
        whole = np.bincount(self.campaign, weight, self.count)
        apart = float((weight * (self.mean - centre) ** 2).sum())
        return -0.5 * float(np.log(whole).sum() - np.log(weight).sum() + apart)

    def compute_cell_parameters(self, spread: float) -> FloatArray:
        _, centre = self._compute_centres(spread)
        weight = 1 / spread + self.pulls
        mean = (centre / spread + self.mean * self.pulls) / weight
        return self.noise * np.stack([mean, 1 / np.sqrt(weight)], axis=1)

    def compute_cell_means(self, spread: float) -> FloatArray:
        return np.asarray(self.compute_cell_parameters(max(spread, SMALLEST_SPREAD))[:, 0])

    def make_problem_options(self) -> dict[str, Any]:
        return {"noise": self.noise, "residuals": self.residuals}

    def _compute_centres(self, spread: float) -> tuple[FloatArray, FloatArray]:
        """The weight of each cell, and the centre of its campaign."""
        weight = 1 / (spread + 1 / self.pulls)
        whole = np.bincount(self.campaign, weight, self.count)
        return weight, (np.bincount(self.campaign, weight * self.mean, self.count) / whole)[self.campaign]


def _convert_spread_to_log_concentration(spread: float) -> float:
    """The logarithm of a + b at a spread 1 / (a + b + 1)."""
    return math.log(1 / min(spread, MAX_UNIT_SPREAD) - 1)


def _compute_spread_likelihood(cells: BetaCells, spread: float) -> float:
    """The log likelihood of a spread and the centres' prior."""
    return compute_evidence(cells, _convert_spread_to_log_concentration(spread))[0]


def _compute_spread_slopes(cells: BetaCells, spread: float, step: float) -> FloatArray:
    """The slope of each campaign's log likelihood in the spread, from three places above it: at 0 there is none below."""
    one, two, three = (
        compute_campaign_evidence(cells, _convert_spread_to_log_concentration(spread + times * step))[0]
        for times in (1, 2, 3)
    )
    return np.asarray((-5 * one + 8 * two - 3 * three) / (2 * step))


def _maximize_spread(value: Callable[[float], float], start: float, chance: float) -> float:
    """Where the likelihood is highest; the least spread where it falls from there on."""
    low, high = math.log(MIN_SPREAD_SHARE * chance), math.log(max(1e6 * chance, 1e3))
    # From no spread the search would not see a peak farther up.
    starts = (chance, 30 * chance) if start <= 2 * MIN_SPREAD_SHARE * chance else (start,)
    found = [find_peak(lambda log: value(math.exp(log)), math.log(begin), 1.0, low, high, 1e-3) for begin in starts]
    return math.exp(max(found, key=lambda log: value(math.exp(log))))


def _refit_centres(cells: BetaCells, spread: float) -> BetaCells:
    """Cells with the likeliest mean of centres, and how much these differ."""

    def by_worth(log: float) -> float:
        return _compute_spread_likelihood(cells._replace(centre_concentration=math.exp(log)), spread)

    def by_mean(logit: float) -> float:
        return _compute_spread_likelihood(replace_centre_logit(cells, logit), spread)

    least = 0.05 / min(cells.centre_mean, 1 - cells.centre_mean)
    for _ in range(2):
        worth = math.exp(
            find_peak(by_worth, math.log(cells.centre_concentration), 0.3, math.log(least), math.log(1e7), 0.01)
        )
        cells = cells._replace(centre_concentration=worth)
        cells = replace_centre_logit(
            cells, find_peak(by_mean, compute_logit(cells.centre_mean), 0.1, -MAX_LOGIT, MAX_LOGIT, 1e-3)
        )
    return cells
