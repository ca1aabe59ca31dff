"""An estimate of the spread of arms within campaigns that is unbiased even if arms do not differ.

In a campaign the mean of cell i, an arm with n_i pulls, has the variance s + 1 / n_i around the campaign's centre. The
unit is the variance of one reward. The spread s is 0 if arms are equal. An estimate that cannot be negative is too large
in this case, and so is all that grows with it. This estimate may be negative. If the likelihood falls from s = 0 on, it
is one step of Fisher scoring from 0, the slope divided by the information. Its mean is 0 if arms do not differ.

Its error is that of the quadratic form y' P P y in the slope, where P subtracts the centre and weighs by 1 / (s + 1 / n_i).
The form has the mean tr P and the variance 2 tr PP. So the posterior of s is (s + base) * degrees / chi-square(degrees) -
base, with base = tr P / tr PP - s and degrees = (tr P)^2 / tr PP. For equally many pulls of normal rewards
both are exact.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, Protocol, Self

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
"""The number of rounds in which each parameter is maximised with the others fixed."""


SLOPE_STEP_SHARE = 0.01
"""The step of the finite differences at spread 0, as a share of the spread that is due to chance."""


LOW_ESTIMATE_QUANTILE = 0.16
"""The quantile of estimates without spread below which a lower estimate does not narrow the interval.

See Cowan and others, 2011.
"""


MIN_SPREAD_SHARE = 1e-3
"""A spread counts as 0 if it is below this share of the spread that is due to chance."""


MAX_UNIT_SPREAD = 0.9
"""The largest spread of rewards in [0, 1], at which all rewards of an arm are equal."""


SMALLEST_SPREAD = 1e-12
"""The smallest spread that is tried. With many pulls, the spread that is due to chance may be smaller."""


class SpreadEstimate(NamedTuple):
    """An estimate of the spread, which may be negative, with the parameters of its posterior (see the module)."""

    value: float
    chance_spread: float
    degrees: float
    upper_limit: float

    def draw(self, rng: np.random.Generator, size: int) -> FloatArray:
        """Draw the spread from its posterior.

        A very low estimate is no evidence for a negative spread. It is replaced by the quantile `LOW_ESTIMATE_QUANTILE` of
        estimates without spread.
        """
        smallest = self.chance_spread * compute_chi_square_quantile(LOW_ESTIMATE_QUANTILE, self.degrees) / self.degrees
        ratio = self.degrees / rng.chisquare(self.degrees, size)
        return np.minimum(max(self.value + self.chance_spread, smallest) * ratio - self.chance_spread, self.upper_limit)


class CellPrecision(NamedTuple):
    """Cells in the order of their campaigns: the precision of each mean, and its excess kurtosis.

    `degrees` are the degrees of freedom of the estimated variance of a reward.
    """

    campaign: IntArray
    precision: FloatArray
    excess_kurtosis: FloatArray
    degrees: float = math.inf

    def compute_traces(self, spread: float) -> tuple[float, float]:
        """Compute the traces of P and PP."""
        first, second, third = self._sum_weights(spread)
        return float((first - second / first).sum()), float((second - 2 * third / first + (second / first) ** 2).sum())

    def estimate_spread(self, value: float, slopes: FloatArray, upper_limit: float) -> SpreadEstimate:
        """Estimate the spread with its error, given the slope of each campaign's log likelihood there.

        The variance is the larger of two: that of the model, and that of the slopes over campaigns.
        """
        spread = max(value, 0.0)
        trace, square = self.compute_traces(spread)
        first, second, _ = self._sum_weights(spread)
        weight = 1 / (spread + 1 / self.precision)
        diagonal = weight**2 * (1 - 2 * weight / first[self.campaign] + (second / first**2)[self.campaign])
        base = trace / square - spread
        # The variance of the quadratic form, with the parts of the kurtosis and of the estimated variance of a reward.
        variance = (2 * square + float((self.excess_kurtosis * (diagonal / self.precision) ** 2).sum())) / square**2
        variance += 2 * base**2 / self.degrees
        variance = max(variance, 4 * len(slopes) * float(slopes.var(ddof=1)) / square**2)
        return SpreadEstimate(max(value, -base), base, 2 * (spread + base) ** 2 / variance, upper_limit)

    def _sum_weights(self, spread: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        weight = 1 / (spread + 1 / self.precision)
        return tuple(np.bincount(self.campaign, weight**power) for power in (1, 2, 3))  # type: ignore[return-value]


class ArmSpreadModel(Protocol):
    """The spread of arms within campaigns, and the slope of each campaign's log likelihood in it.

    `reward_variance` is the variance of a reward, the unit of the spread, in a typical campaign.
    """

    spread: SpreadEstimate
    slopes: FloatArray
    reward_variance: float

    def select_campaigns(self, campaigns: IntArray) -> Self:
        """Select campaigns, in ascending order, with the spread of all."""

    def compute_campaign_likelihoods(self, spread: float) -> FloatArray:
        """Compute the contribution of each campaign to the log likelihood of a spread above 0."""

    def compute_cell_parameters(self, spread: float) -> FloatArray:
        """Compute the two parameters of each cell's distribution at a spread above 0."""

    def compute_cell_means(self, spread: float) -> FloatArray:
        """Compute the mean of each cell's distribution at a spread, which may be 0."""

    def draw_cell_means(self, rng: np.random.Generator, spreads: FloatArray) -> FloatArray:
        """Draw mean rewards (draws, cells) of logs with the same pulls and centres, given spreads (draws, campaigns)."""

    def make_problem_options(self) -> dict[str, Any]:
        """Make the other options of a problem with such arms."""


def fit_arm_spread(logs: Logs) -> ArmSpreadModel:
    """Fit the spread of arms within these campaigns, without features."""
    return NormalArmSpread(logs) if logs.rewards == "real" else BetaArmSpread(logs)


class BetaArmSpread:
    """Arms are beta around their campaign's centre, and the centres are integrated out (see `hierarchical_beta`)."""

    def __init__(self, logs: Logs) -> None:
        self.v, _, self.counts = count_successes(logs, 0.95)
        self.rewards = logs.rewards
        self.cells = make_beta_cells(logs.campaign, *self.counts)
        informative = sample_informative_campaigns(self.cells)
        sampled = (
            self.cells if len(informative) == self.cells.campaign_count else self.cells.select_campaigns(informative)
        )
        trials = sampled.successes + sampled.failures
        reward_rates = np.bincount(sampled.campaign, sampled.successes) / np.bincount(sampled.campaign, trials)
        variance = np.maximum(reward_rates * (1 - reward_rates), 1e-300)[sampled.campaign]
        excess = np.maximum((1 / variance - 6) / trials, 0.0) * (variance > 1e-300)
        noise = CellPrecision(sampled.campaign, trials, excess)
        value, best = self._fit_spread(sampled, noise)
        self.cells = self.cells._replace(centre_mean=best.centre_mean, centre_concentration=best.centre_concentration)
        self.reward_variance = float((reward_rates * (1 - reward_rates)).mean())
        trace, square = noise.compute_traces(max(value, 0.0))
        slopes = _compute_spread_slopes(best, max(value, 0.0), SLOPE_STEP_SHARE * trace / square)
        self.spread = noise.estimate_spread(value, slopes, MAX_UNIT_SPREAD)
        self.slopes = np.zeros(self.cells.campaign_count)
        self.slopes[informative] = slopes

    def select_campaigns(self, campaigns: IntArray) -> Self:
        selected = copy.copy(self)
        selected.cells, selected.slopes = self.cells.select_campaigns(campaigns), self.slopes[campaigns]
        selected.counts = (selected.cells.successes, selected.cells.failures)
        return selected

    def compute_campaign_likelihoods(self, spread: float) -> FloatArray:
        return compute_campaign_evidence(self.cells, _convert_spread_to_log_concentration(spread))[0]

    def compute_cell_parameters(self, spread: float) -> FloatArray:
        size = _convert_spread_to_log_concentration(spread)
        centre = compute_campaign_evidence(self.cells, size)[1][self.cells.campaign]
        return math.exp(size) * np.stack([centre, 1 - centre], axis=1) + np.stack(self.counts, axis=1)

    def compute_cell_means(self, spread: float) -> FloatArray:
        pairs = self.compute_cell_parameters(max(spread, SMALLEST_SPREAD))
        return np.asarray(pairs[:, 0] / pairs.sum(axis=1))

    def draw_cell_means(self, rng: np.random.Generator, spreads: FloatArray) -> FloatArray:
        size = (1 / np.clip(spreads, SMALLEST_SPREAD, MAX_UNIT_SPREAD) - 1)[:, self.cells.campaign]
        middle = self.compute_centres()[self.cells.campaign]
        return self.draw_rewards(rng, rng.beta(size * middle, size * (1 - middle)))

    def compute_centres(self) -> FloatArray:
        """Compute the mean of each campaign's centre at the estimated spread."""
        spread = max(self.spread.value, SMALLEST_SPREAD)
        return compute_campaign_evidence(self.cells, _convert_spread_to_log_concentration(spread))[1]

    def draw_rewards(self, rng: np.random.Generator, means: FloatArray) -> FloatArray:
        """Draw mean rewards of cells with these true means (draws, cells)."""
        trials = self.counts[0] + self.counts[1]
        if self.rewards == "binary":
            return np.asarray(rng.binomial(np.rint(trials).astype(np.int64), means) / trials)
        # A mean of beta rewards is distributed nearly like that of as many 0/1 rewards.
        return np.asarray(rng.beta(np.maximum(trials - 1, 1e-9) * means, np.maximum(trials - 1, 1e-9) * (1 - means)))

    def make_problem_options(self) -> dict[str, Any]:
        return {"v": self.v} if self.rewards == "unit" else {}

    def _fit_spread(self, cells: BetaCells, noise: CellPrecision) -> tuple[float, BetaCells]:
        """Fit the spread, and the prior of the centres."""
        trace, square = noise.compute_traces(0.0)
        chance = max(trace / square, SMALLEST_SPREAD)
        without_spread = _refit_centres(cells, MIN_SPREAD_SHARE * chance)
        best, fitted = MIN_SPREAD_SHARE * chance, without_spread
        for _ in range(MAX_SPREAD_ROUNDS):
            before = best
            best = _maximize_spread(partial(_compute_spread_likelihood, fitted), best, chance)
            fitted = _refit_centres(fitted, best)
            if abs(math.log(best / before)) < 0.01:
                break
        if best > 2 * MIN_SPREAD_SHARE * chance and _compute_spread_likelihood(
            fitted, best
        ) > _compute_spread_likelihood(without_spread, MIN_SPREAD_SHARE * chance):
            return best, fitted
        return 2 * float(
            _compute_spread_slopes(without_spread, 0.0, SLOPE_STEP_SHARE * chance).sum()
        ) / square, without_spread


class NormalArmSpread:
    """Arms are normal around the mean of their campaign. Means of campaigns have no prior."""

    def __init__(self, logs: Logs) -> None:
        within = pool_cell_variances(logs)
        self.noise, self.residuals, self.reward_variance = within.noise, pool_residuals(logs), within.noise**2
        self.campaign, self.mean = logs.campaign, logs.mean / self.noise
        self.pulls, self.count = logs.pulls.astype(float), len(logs.campaigns)
        # With heavy tails of rewards, means and variances vary more.
        kurtosis = max(compute_excess_kurtosis(logs), 0.0)
        noise = CellPrecision(logs.campaign, self.pulls, kurtosis / self.pulls, within.degrees / (1 + kurtosis / 2))
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

    def select_campaigns(self, campaigns: IntArray) -> Self:
        selected, mask = copy.copy(self), np.isin(self.campaign, campaigns)
        selected.campaign = np.unique(self.campaign[mask], return_inverse=True)[1]
        selected.mean, selected.pulls = self.mean[mask], self.pulls[mask]
        selected.slopes, selected.count = self.slopes[campaigns], len(campaigns)
        return selected

    def compute_likelihood(self, spread: float) -> float:
        """Compute the restricted log likelihood."""
        return float(self.compute_campaign_likelihoods(spread).sum())

    def compute_campaign_likelihoods(self, spread: float) -> FloatArray:
        weight, centre = self._compute_centres(spread)
        weights_sum = np.bincount(self.campaign, weight, self.count)
        cells = weight * (self.mean - centre) ** 2 - np.log(weight)
        return np.asarray(-0.5 * (np.log(weights_sum) + np.bincount(self.campaign, cells, self.count)))

    def compute_cell_parameters(self, spread: float) -> FloatArray:
        _, centre = self._compute_centres(spread)
        weight = 1 / spread + self.pulls
        mean = (centre / spread + self.mean * self.pulls) / weight
        return self.noise * np.stack([mean, 1 / np.sqrt(weight)], axis=1)

    def compute_cell_means(self, spread: float) -> FloatArray:
        return np.asarray(self.compute_cell_parameters(max(spread, SMALLEST_SPREAD))[:, 0])

    def draw_cell_means(self, rng: np.random.Generator, spreads: FloatArray) -> FloatArray:
        _, centre = self._compute_centres(max(self.spread.value, 0.0))
        variance = spreads[:, self.campaign] + 1 / self.pulls
        return np.asarray(self.noise * rng.normal(centre, np.sqrt(variance)))

    def make_problem_options(self) -> dict[str, Any]:
        return {"noise": self.noise, "residuals": self.residuals}

    def _compute_centres(self, spread: float) -> tuple[FloatArray, FloatArray]:
        """Compute the weight of each cell, and the centre of its campaign."""
        weight = 1 / (spread + 1 / self.pulls)
        weights_sum = np.bincount(self.campaign, weight, self.count)
        return weight, (np.bincount(self.campaign, weight * self.mean, self.count) / weights_sum)[self.campaign]


def _convert_spread_to_log_concentration(spread: float) -> float:
    """Compute log(a + b) at a spread 1 / (a + b + 1)."""
    return math.log(1 / min(spread, MAX_UNIT_SPREAD) - 1)


def _compute_spread_likelihood(cells: BetaCells, spread: float) -> float:
    """Compute the log likelihood of a spread and the centres' prior."""
    return compute_evidence(cells, _convert_spread_to_log_concentration(spread))[0]


def _compute_spread_slopes(cells: BetaCells, spread: float, step: float) -> FloatArray:
    """Compute the slope of each campaign's log likelihood in the spread, from three points above it: 0 is a limit."""
    first_values, second_values, third_values = (
        compute_campaign_evidence(cells, _convert_spread_to_log_concentration(spread + times * step))[0]
        for times in (1, 2, 3)
    )
    return np.asarray((-5 * first_values + 8 * second_values - 3 * third_values) / (2 * step))


def _maximize_spread(compute_likelihood: Callable[[float], float], start: float, chance: float) -> float:
    """Maximise the likelihood. Return the smallest spread if the likelihood falls from there on."""
    low, high = math.log(MIN_SPREAD_SHARE * chance), math.log(max(1e6 * chance, 1e3))
    # A search from the smallest spread could miss a peak at a larger one.
    starts = (chance, 30 * chance) if start <= 2 * MIN_SPREAD_SHARE * chance else (start,)
    peaks = [
        find_peak(lambda log: compute_likelihood(math.exp(log)), math.log(begin), 1.0, low, high, 1e-3)
        for begin in starts
    ]
    return math.exp(max(peaks, key=lambda log: compute_likelihood(math.exp(log))))


def _refit_centres(cells: BetaCells, spread: float) -> BetaCells:
    """Fit the mean of centres and their concentration."""

    def compute_by_concentration(log: float) -> float:
        return _compute_spread_likelihood(cells._replace(centre_concentration=math.exp(log)), spread)

    def compute_by_mean(logit: float) -> float:
        return _compute_spread_likelihood(replace_centre_logit(cells, logit), spread)

    smallest = 0.05 / min(cells.centre_mean, 1 - cells.centre_mean)
    for _ in range(2):
        concentration = math.exp(
            find_peak(
                compute_by_concentration,
                math.log(cells.centre_concentration),
                0.3,
                math.log(smallest),
                math.log(1e7),
                0.01,
            )
        )
        cells = cells._replace(centre_concentration=concentration)
        cells = replace_centre_logit(
            cells, find_peak(compute_by_mean, compute_logit(cells.centre_mean), 0.1, -MAX_LOGIT, MAX_LOGIT, 1e-3)
        )
    return cells
