"""Quantiles of Student's t distribution."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

EXPANSION_DEGREES = 1000
"""Above this many degrees of freedom, the expansion of Student's quantiles has at least eight digits."""


@lru_cache(maxsize=1024)
def compute_student_quantile(probability: float, degrees: int) -> float:
    """Compute a quantile of Student's t.

    It uses closed forms for 1 and 2 degrees of freedom, Newton's method for more, and an expansion for many.
    """
    if probability < 0.5:
        return -compute_student_quantile(1 - probability, degrees)
    if probability == 0.5:
        return 0.0
    if degrees <= 1:
        return 1 / math.tan(math.pi * (1 - probability))
    if degrees == 2:
        return (2 * probability - 1) * math.sqrt(2 / (4 * probability * (1 - probability)))
    return (
        _expand_quantile(probability, degrees) if degrees > EXPANSION_DEGREES else _solve_quantile(probability, degrees)
    )


def _expand_quantile(probability: float, degrees: int) -> float:
    """Expand the quantile from that of the normal distribution (Abramowitz, Stegun 26.7.5)."""
    z = NormalDist().inv_cdf(probability)
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / degrees + second / degrees**2 + third / degrees**3


def _solve_quantile(probability: float, degrees: int) -> float:
    """Compute the quantile, above the median, by Newton's method.

    In the tail the probability above t is nearly a power of t. On logarithms, where a power is a line, few steps suffice.
    """
    result = _expand_quantile(probability, degrees)
    for _ in range(50):
        above, density = _compute_tail_and_density(result, degrees)
        step = math.log(above / (1 - probability)) * above / (density * result)
        result *= math.exp(max(-1.0, min(1.0, step)))
        if abs(step) < 1e-10:
            break
    return result


def _compute_tail_and_density(t: float, degrees: int) -> tuple[float, float]:
    """Compute the tail probability above t > 0, half an incomplete beta function, and the density."""
    half = degrees / 2
    constant = math.lgamma(half + 0.5) - math.lgamma(half) - math.lgamma(0.5)
    share, complement = t * t / (degrees + t * t), degrees / (degrees + t * t)
    # far^half near^(1/2) / B(half, 1/2), with a logarithm that is accurate for small t
    front = math.exp(constant - half * math.log1p(t * t / degrees)) * math.sqrt(share)
    if complement < (half + 1) / (half + 2.5):
        above = 0.5 * front / half * _compute_beta_fraction(complement, half, 0.5)
    else:
        above = 0.5 - front * _compute_beta_fraction(share, 0.5, half)
    return above, front / t


def _compute_beta_fraction(x: float, a: float, b: float) -> float:
    """Compute the continued fraction of the incomplete beta function (Abramowitz, Stegun 26.5.8) by Lentz's method."""
    numerator, denominator = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    result = denominator
    for m in range(1, 1000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            denominator = 1 / (1 + term * denominator)
            numerator = 1 + term / numerator
            result *= denominator * numerator
        if abs(denominator * numerator - 1) < 1e-15:
            break
    return result
