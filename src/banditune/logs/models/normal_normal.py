"""Real rewards: mean rewards of arms have a normal distribution, and rewards have normal noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.campaign_logs import format_arm_list
from banditune.logs.models.likelihood_search import (
    NO_SPREAD_THRESHOLD,
    compute_normal_quantile,
    compute_spread_reach,
    find_interval_limits,
    find_peak,
)
from banditune.results.log_results import FittedParameter
from banditune.results.student_t import compute_student_quantile


class NormalCells(NamedTuple):
    """Mean rewards of cells that share a prior, and their pulls."""

    mean: FloatArray
    pulls: FloatArray

    def compute_restricted_likelihood(self, sd: float, noise: float) -> float:
        """Compute the restricted log likelihood of the cell means, whose common mean is unknown."""
        _, weight, error = self.compute_common_mean(sd, noise)
        scale = sd**2 + noise**2 / self.pulls
        return -0.5 * float(np.log(scale).sum() + math.log(weight) + error)

    def compute_common_mean(self, sd: float, noise: float) -> tuple[float, float, float]:
        """Compute the weighted mean of the cell means, the sum of weights, and the weighted squares around the mean."""
        weights = 1 / (sd**2 + noise**2 / self.pulls)
        weight = float(weights.sum())
        mean = float(weights @ self.mean) / weight
        return mean, weight, float(weights @ (self.mean - mean) ** 2)


class WithinCellVariance(NamedTuple):
    """The information of cells on the noise: squares around their means, and degrees of freedom."""

    squares: float
    degrees: float

    def compute_likelihood(self, noise: float) -> float:
        """Compute the log likelihood of the squares."""
        return -self.degrees * math.log(noise) - self.squares / (2 * noise**2)

    @property
    def noise(self) -> float:
        """The noise of the highest likelihood."""
        return math.sqrt(self.squares / self.degrees)


class FittedNormalPriors(NamedTuple):
    """Fitted normal distributions (mean, sd), one for each group of cells, and the noise that all share."""

    priors: tuple[tuple[float, float], ...]
    noise: float
    estimates: tuple[FittedParameter, ...]
    notes: tuple[str, ...]


def fit_normal_priors(
    groups: Sequence[NormalCells], within: WithinCellVariance, confidence: float, names: Sequence[str]
) -> FittedNormalPriors:
    """Fit by restricted maximum likelihood, with likelihood intervals for standard deviations and Student's t for means.

    Intervals for the spread are wider if there are few cells; their reach is exact for cells without noise. With equal
    numbers of pulls the t interval is exact. Every group must have two cells or more, and there must be degrees of freedom
    for the noise.
    """
    reach = compute_normal_quantile(0.5 + confidence / 2)
    size = math.log(within.noise)

    def compute_noise_likelihood(log: float) -> float:
        noise = math.exp(log)
        return within.compute_likelihood(noise) + sum(
            cells.compute_restricted_likelihood(_maximize_sd(cells, noise), noise) for cells in groups
        )

    best = find_peak(compute_noise_likelihood, size, 0.1, size - 20, size + 20)
    top, noise = compute_noise_likelihood(best), math.exp(best)
    low, high = find_interval_limits(compute_noise_likelihood, best, top, (0.05, 0.05), (best - 20, best + 20), reach)
    estimates, priors = [], []
    without_spread: list[str] = []
    for cells, name in zip(groups, names, strict=True):
        named = f"[{name}]" if name else ""
        degrees = len(cells.mean) - 1
        sd = _maximize_sd(cells, noise)
        if (
            2 * (cells.compute_restricted_likelihood(sd, noise) - cells.compute_restricted_likelihood(0.0, noise))
            <= NO_SPREAD_THRESHOLD
        ):
            sd = 0.0
        mean, weight, _ = cells.compute_common_mean(sd, noise)
        half_width = compute_student_quantile(0.5 + confidence / 2, degrees) / math.sqrt(weight)
        bounds = _compute_sd_interval(cells, within, sd, noise, compute_spread_reach(confidence, degrees, degrees))
        estimates.append(
            FittedParameter(name=f"mean{named}", value=mean, low=mean - half_width, high=mean + half_width)
        )
        estimates.append(FittedParameter(name=f"sd{named}", value=sd, low=bounds[0], high=bounds[1]))
        if sd == 0:
            without_spread.append(name)
        priors.append((mean, sd or bounds[1]))
    estimates.append(FittedParameter(name="noise", value=noise, low=math.exp(low or best), high=math.exp(high or best)))
    who = format_arm_list(without_spread) if any(without_spread) else "arms"
    note = (
        f"{who}: no spread of mean rewards beyond chance, so their sd may be 0; the problem has the largest spread that "
        f"the logs support ({100 * confidence:g}% limit)"
    )
    return FittedNormalPriors(tuple(priors), noise, tuple(estimates), (note,) if without_spread else ())


def _maximize_sd(cells: NormalCells, noise: float) -> float:
    """Maximise the restricted likelihood over the sd of means at this noise; 0 if chance explains all spread."""
    typical = noise / math.sqrt(float(np.median(cells.pulls)))
    start = math.sqrt(max(float(np.var(cells.mean, ddof=1)) - typical**2, 0.01 * typical**2))
    low, high = math.log(1e-4 * typical), math.log(10 * (start + typical))
    log = find_peak(
        lambda log: cells.compute_restricted_likelihood(math.exp(log), noise), math.log(start), 0.3, low, high
    )
    return (
        0.0
        if cells.compute_restricted_likelihood(0.0, noise)
        >= cells.compute_restricted_likelihood(math.exp(log), noise) - 1e-9
        else math.exp(log)
    )


def _compute_sd_interval(
    cells: NormalCells, within: WithinCellVariance, sd: float, noise: float, reach: float
) -> tuple[float, float]:
    """Compute a likelihood interval for the sd of means, with the most likely noise at every sd."""
    warm_start = [math.log(noise)]

    def compute_profile(sd: float) -> float:
        def compute_likelihood(log: float) -> float:
            return within.compute_likelihood(math.exp(log)) + cells.compute_restricted_likelihood(sd, math.exp(log))

        warm_start[0] = find_peak(compute_likelihood, warm_start[0], 0.02, warm_start[0] - 20, warm_start[0] + 20, 1e-5)
        return compute_likelihood(warm_start[0])

    step = 0.2 * (sd + noise / math.sqrt(float(np.median(cells.pulls))) / math.sqrt(len(cells.mean)))
    low, high = find_interval_limits(compute_profile, sd, compute_profile(sd), (step, step), (0.0, 1e6 * step), reach)
    return low or 0.0, math.inf if high is None else high
