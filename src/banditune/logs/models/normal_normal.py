"""Real rewards: mean rewards of arms from a normal distribution, rewards around them with normal noise."""

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
        """The restricted log likelihood of the cell means, whose common mean is unknown."""
        _, weight, error = self.compute_common_mean(sd, noise)
        scale = sd**2 + noise**2 / self.pulls
        return -0.5 * float(np.log(scale).sum() + math.log(weight) + error)

    def compute_common_mean(self, sd: float, noise: float) -> tuple[float, float, float]:
        """The weighted mean of the cell means, the sum of weights, and the weighted squares around the mean."""
        weights = 1 / (sd**2 + noise**2 / self.pulls)
        weight = float(weights.sum())
        mean = float(weights @ self.mean) / weight
        return mean, weight, float(weights @ (self.mean - mean) ** 2)


class WithinCellVariance(NamedTuple):
    """What the cells say about noise by themselves: squares around their means, and degrees of freedom."""

    squares: float
    degrees: float

    def compute_likelihood(self, noise: float) -> float:
        """The log likelihood of the squares."""
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
    groups: Sequence[NormalCells], inside: WithinCellVariance, confidence: float, names: Sequence[str]
) -> FittedNormalPriors:
    """Restricted maximum likelihood; likelihood intervals for standard deviations, Student's t for means.

    Intervals for the spread reach farther where there are few cells, as is right for cells known without noise.
    With equally many pulls in every cell the t interval is exact. Every group has two cells or more; there are degrees of
    freedom for the noise: who calls has checked that.
    """
    reach = compute_normal_quantile(0.5 + confidence / 2)
    size = math.log(inside.noise)

    def with_noise(log: float) -> float:
        noise = math.exp(log)
        return inside.compute_likelihood(noise) + sum(
            cells.compute_restricted_likelihood(_maximize_sd(cells, noise), noise) for cells in groups
        )

    best = find_peak(with_noise, size, 0.1, size - 20, size + 20)
    top, noise = with_noise(best), math.exp(best)
    low, high = find_interval_limits(with_noise, best, top, (0.05, 0.05), (best - 20, best + 20), reach)
    estimates, priors = [], []
    same: list[str] = []
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
        most = compute_student_quantile(0.5 + confidence / 2, degrees) / math.sqrt(weight)
        bounds = _compute_sd_interval(cells, inside, sd, noise, compute_spread_reach(confidence, degrees, degrees))
        estimates.append(FittedParameter(name=f"mean{named}", value=mean, low=mean - most, high=mean + most))
        estimates.append(FittedParameter(name=f"sd{named}", value=sd, low=bounds[0], high=bounds[1]))
        if sd == 0:
            same.append(name)
        priors.append((mean, sd or bounds[1]))
    estimates.append(FittedParameter(name="noise", value=noise, low=math.exp(low or best), high=math.exp(high or best)))
    who = format_arm_list(same) if any(same) else "arms"
    note = (
        f"{who}: no spread of mean rewards beyond chance, so their sd may be 0; the problem has as much spread as the logs "
        f"allow ({100 * confidence:g}% limit)"
    )
    return FittedNormalPriors(tuple(priors), noise, tuple(estimates), (note,) if same else ())


def _maximize_sd(cells: NormalCells, noise: float) -> float:
    """The sd of means of the highest restricted likelihood at this noise; 0 where chance explains all spread."""
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
    cells: NormalCells, inside: WithinCellVariance, sd: float, noise: float, reach: float
) -> tuple[float, float]:
    """A likelihood interval for the sd of means; at every sd the noise is the likeliest one."""
    known = [math.log(noise)]

    def profile(sd: float) -> float:
        def likelihood(log: float) -> float:
            return inside.compute_likelihood(math.exp(log)) + cells.compute_restricted_likelihood(sd, math.exp(log))

        known[0] = find_peak(likelihood, known[0], 0.02, known[0] - 20, known[0] + 20, 1e-5)
        return likelihood(known[0])

    step = 0.2 * (sd + noise / math.sqrt(float(np.median(cells.pulls))) / math.sqrt(len(cells.mean)))
    low, high = find_interval_limits(profile, sd, profile(sd), (step, step), (0.0, 1e6 * step), reach)
    return low or 0.0, math.inf if high is None else high
