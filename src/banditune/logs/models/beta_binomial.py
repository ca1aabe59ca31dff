"""Binary rewards: mean rewards of arms from a beta distribution, so that successes are beta-binomial."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.models.likelihood_search import (
    NO_SPREAD_THRESHOLD,
    compute_mean_reach,
    compute_spread_reach,
    find_interval_limits,
    find_peak,
)
from banditune.results.log_results import FittedParameter

MIN_LOG_CONCENTRATION, MAX_LOG_CONCENTRATION = math.log(1e-3), math.log(1e9)
"""The range of log(a + b). Below it, all rewards of an arm are equal; above it, all arms are."""


MAX_LOGIT = 16.0
"""The range of a mean's logit: means are at least 1e-7 from 0 and 1."""


STIRLING_MINIMUM = 20.0
"""The smallest argument for which Stirling's series is exact up to rounding."""


STIRLING_SHIFT = 12
"""The shift of an argument after which the series is exact to twelve digits."""


class FittedBetaPrior(NamedTuple):
    """A fitted beta distribution: its parameters with intervals, and notes."""

    a: float
    b: float
    estimates: tuple[FittedParameter, ...]
    notes: tuple[str, ...]


class BetaBinomialCounts:
    """Successes and failures of cells as the three tables of the likelihood: each distinct value with its frequency."""

    def __init__(self, successes: FloatArray, failures: FloatArray) -> None:
        self.tables = [np.unique(v, return_counts=True) for v in (successes, failures, successes + failures)]

    def compute_shape_likelihood(self, a: float, b: float) -> float:
        """Compute the log likelihood of Beta(a, b), without terms that do not depend on it."""
        parts = [
            counts @ compute_log_pochhammer(x, values)
            for x, (values, counts) in zip((a, b, a + b), self.tables, strict=True)
        ]
        return float(parts[0] + parts[1] - parts[2])

    def compute_logit_likelihood(self, logit: float, size: float) -> float:
        """Compute the same at a mean's logit and log(a + b)."""
        return self.compute_shape_likelihood(*compute_beta_shapes(logit, size))


def compute_beta_shapes(logit: float, size: float) -> tuple[float, float]:
    """Compute a and b from the mean's logit and log(a + b)."""
    total = math.exp(size)
    return total / (1 + math.exp(-logit)), total / (1 + math.exp(logit))


def compute_log_pochhammer(x: float, steps: FloatArray) -> FloatArray:
    """Compute log Gamma(x + steps) - log Gamma(x), accurately for large x, too."""
    if x >= STIRLING_MINIMUM:
        ratio = np.log1p(steps / x)
        return (
            (x - 0.5) * ratio
            + steps * (math.log(x) + ratio)
            - steps
            + _compute_stirling_tail(x + steps)
            - _compute_stirling_tail(x)
        )
    position = x + steps
    small = position < STIRLING_MINIMUM
    values = np.empty(len(steps))
    values[small] = [math.lgamma(value) for value in position[small].tolist()]
    big = position[~small]
    values[~small] = (big - 0.5) * np.log(big) - big + 0.5 * math.log(2 * math.pi) + _compute_stirling_tail(big)
    return values - math.lgamma(x)


def compute_log_pochhammer_stirling(x: FloatArray, steps: FloatArray) -> FloatArray:
    """Compute the same for arrays of x, element by element, to twelve digits."""
    small = bool((x < STIRLING_MINIMUM).any())
    base = x + STIRLING_SHIFT if small else x
    ratio = np.log1p(steps / base)
    values = (
        (base - 0.5) * ratio
        + steps * (np.log(base) + ratio - 1)
        + _compute_stirling_tail(base + steps)
        - _compute_stirling_tail(base)
    )
    if not small:
        return np.asarray(values)
    # The rising factorial from x is that from x + SHIFT, times the first SHIFT factors, divided by the last ones.
    product = np.ones(np.broadcast_shapes(x.shape, steps.shape))
    for step in range(STIRLING_SHIFT):
        product *= (x + step) / (x + steps + step)
    return np.asarray(values + np.log(product))


def _compute_stirling_tail(x: FloatArray | float) -> FloatArray | float:
    """Compute the terms of Stirling's series after (x - 1/2) log x - x + log(2 pi) / 2."""
    square = 1 / (x * x)
    return (1 / 12 - square * (1 / 360 - square * (1 / 1260 - square / 1680))) / x


def maximize_beta_binomial(counts: BetaBinomialCounts, start: float) -> tuple[float, float, float]:
    """Maximise the likelihood: the mean's logit, log(a + b), and the log likelihood there."""
    warm_start = [start]

    def logit_at(size: float) -> float:
        warm_start[0] = find_peak(
            lambda logit: counts.compute_logit_likelihood(logit, size), warm_start[0], 0.1, -MAX_LOGIT, MAX_LOGIT
        )
        return warm_start[0]

    size = find_peak(
        lambda size: counts.compute_logit_likelihood(logit_at(size), size),
        math.log(10.0),
        1.0,
        MIN_LOG_CONCENTRATION,
        MAX_LOG_CONCENTRATION,
    )
    logit = logit_at(size)
    return logit, size, counts.compute_logit_likelihood(logit, size)


def fit_beta_prior(successes: FloatArray, failures: FloatArray, confidence: float, of: str = "") -> FittedBetaPrior:
    """Fit a beta distribution by maximum likelihood, with likelihood intervals; `of` is the name of its arm.

    The reach of the intervals is exact for as many normal cells without noise. For few cells it is much larger than that
    of a large sample. Callers check that there are a success, a failure, and a cell with two pulls.
    """
    counts = BetaBinomialCounts(successes, failures)
    total = float(successes.sum())
    start = math.log(total / float(failures.sum()))
    logit, size, top = maximize_beta_binomial(counts, start)
    cells = len(successes)
    wide, reach = compute_mean_reach(confidence, cells), compute_spread_reach(confidence, cells - 1, cells)
    profiles = _make_profiles(counts, logit, size)

    def find_interval(name: str) -> tuple[float | None, float | None]:
        profile, best, bounds = profiles[name]
        return find_interval_limits(profile, best, top, (0.2, 0.2), bounds, wide if name == "mean" else reach)

    limits = {name: find_interval(name) for name in ("a", "b", "mean", "sd")}
    a, b = compute_beta_shapes(logit, size)
    mean = 1 / (1 + math.exp(-logit))
    spread = math.sqrt(mean * (1 - mean) / (1 + math.exp(size)))
    notes: tuple[str, ...] = ()
    no_spread = 2 * (top - counts.compute_logit_likelihood(start, MAX_LOG_CONCENTRATION)) <= NO_SPREAD_THRESHOLD
    no_middle = size <= MIN_LOG_CONCENTRATION + 1e-3
    if no_spread:
        narrow, _ = find_interval("size")
        a, b = compute_beta_shapes(logit, math.log(1e4) if narrow is None else narrow)
        notes = (
            f"{of or 'arms'}: no spread of mean rewards beyond chance, so a + b has no upper limit; the problem has the "
            f"largest spread that the logs support ({100 * confidence:g}% limit)",
        )
    elif no_middle:
        notes = (
            f"{of or 'arms'}: every arm always or never paid; a + b has the smallest possible value, see 'mixture'",
        )
    value_a, value_b = (math.inf, math.inf) if no_spread else (a, b)
    parameters = (
        ("a", value_a, _exponentiate_limits(limits["a"])),
        ("b", value_b, _exponentiate_limits(limits["b"])),
        ("mean", mean, _transform_logit_limits(limits["mean"])),
        ("sd", 0.0 if no_spread else spread, _exponentiate_limits(limits["sd"], 0.0, 0.5)),
    )
    named = f"[{of}]" if of else ""
    estimates = tuple(
        FittedParameter(name=name + named, value=value, low=low, high=high) for name, value, (low, high) in parameters
    )
    return FittedBetaPrior(a, b, estimates, notes)


ProfileLikelihood = tuple[Callable[[float], float], float, tuple[float, float]]


def _make_profiles(counts: BetaBinomialCounts, logit: float, size: float) -> dict[str, ProfileLikelihood]:
    """Make the profile likelihood, best value and range of each number of interest, all on a log or logit scale."""
    log_a, log_b = (math.log(x) for x in compute_beta_shapes(logit, size))
    mean = 1 / (1 + math.exp(-logit))
    log_sd = 0.5 * math.log(mean * (1 - mean) / (1 + math.exp(size)))
    warm_starts = {"b": log_b, "a": log_a, "mean": size, "sd": logit, "size": logit}
    # If one of a and b is at an end of its range, the other may be outside its range: the mean is near 0 or 1.
    other_shape = (MIN_LOG_CONCENTRATION - MAX_LOGIT, MAX_LOG_CONCENTRATION + MAX_LOGIT)

    def maximize_over(name: str, compute_likelihood: Callable[[float], float], low: float, high: float) -> float:
        warm_starts[name] = find_peak(compute_likelihood, warm_starts[name], 0.1, low, high, 1e-5)
        return compute_likelihood(warm_starts[name])

    def profile_a(log: float) -> float:
        return maximize_over(
            "b", lambda free: counts.compute_shape_likelihood(math.exp(log), math.exp(free)), *other_shape
        )

    def profile_b(log: float) -> float:
        return maximize_over(
            "a", lambda free: counts.compute_shape_likelihood(math.exp(free), math.exp(log)), *other_shape
        )

    def profile_mean(position: float) -> float:
        return maximize_over(
            "mean",
            lambda free: counts.compute_logit_likelihood(position, free),
            MIN_LOG_CONCENTRATION,
            MAX_LOG_CONCENTRATION,
        )

    def profile_size(position: float) -> float:
        return maximize_over(
            "size", lambda free: counts.compute_logit_likelihood(free, position), -MAX_LOGIT, MAX_LOGIT
        )

    def profile_sd(log: float) -> float:
        variance = math.exp(2 * log)
        # The sd limits the mean: mean (1 - mean) > sd^2.
        half_width = math.sqrt(max(1 - 4 * variance / (1 - 1e-9), 0.0))
        edge = math.log((1 + half_width) / (1 - half_width)) if half_width < 1 else MAX_LOGIT

        def compute_likelihood(free: float) -> float:
            mean = 1 / (1 + math.exp(-free))
            total = max(mean * (1 - mean) / variance - 1, math.exp(MIN_LOG_CONCENTRATION))
            return counts.compute_logit_likelihood(free, math.log(total))

        return maximize_over("sd", compute_likelihood, -min(edge, MAX_LOGIT), min(edge, MAX_LOGIT))

    wide = (MIN_LOG_CONCENTRATION - MAX_LOGIT, MAX_LOG_CONCENTRATION)
    return {
        "a": (profile_a, log_a, wide),
        "b": (profile_b, log_b, wide),
        "mean": (profile_mean, logit, (-MAX_LOGIT, MAX_LOGIT)),
        "sd": (profile_sd, log_sd, (0.5 * (-MAX_LOGIT - MAX_LOG_CONCENTRATION), math.log(0.5) - 1e-9)),
        "size": (profile_size, size, (MIN_LOG_CONCENTRATION, MAX_LOG_CONCENTRATION)),
    }


def _exponentiate_limits(
    limits: tuple[float | None, float | None], low: float = 0.0, high: float = math.inf
) -> tuple[float, float]:
    return tuple(  # type: ignore[return-value]
        end if position is None else math.exp(position) for position, end in zip(limits, (low, high), strict=True)
    )


def _transform_logit_limits(limits: tuple[float | None, float | None]) -> tuple[float, float]:
    return tuple(  # type: ignore[return-value]
        end if position is None else 1 / (1 + math.exp(-position))
        for position, end in zip(limits, (0.0, 1.0), strict=True)
    )
