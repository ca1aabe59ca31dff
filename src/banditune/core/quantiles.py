"""Scalar functions for indices: the divergence of Bernoulli distributions, its upper bound, and Beta quantiles."""

from __future__ import annotations

import math

from banditune.core.scalar import noinline, scalar

SMALLEST = 1e-300
"""The smallest absolute value in a continued fraction, which must not be 0."""


MAX_STEPS = 200
"""The largest number of steps of an iteration; 5 to 60 are usual."""


@scalar
def bernoulli_divergence(p, q):
    """Compute the Kullback-Leibler divergence between Bernoulli distributions with means p and q.

    Parameters
    ----------
    p : float
        The first mean, in [0, 1].
    q : float
        The second mean, in (0, 1).
    """
    divergence = 0.0
    if p > 0.0:
        divergence += p * math.log(p / q)
    if p < 1.0:
        divergence += (1.0 - p) * math.log((1.0 - p) / (1.0 - q))
    return divergence


@noinline
def divergence_upper_bound(mean, level):
    """Compute the largest q in [mean, 1] whose divergence from the mean is at most a level (Garivier and Cappé 2011).

    Newton's method starts above the solution, where the function is convex, so that it stays above. It ends when steps no
    longer decrease the value.

    Parameters
    ----------
    mean : float
        The mean, in [0, 1].
    level : float
        The level, 0 or more.
    """
    if mean >= 1.0 or level <= 0.0:
        return min(mean, 1.0)
    if mean <= 0.0:
        return 1.0 - math.exp(-level)
    entropy = mean * math.log(mean) + (1.0 - mean) * math.log(1.0 - mean)
    # The variable is log(1 - q), in which the divergence is convex and falls. It starts at the larger of two lower ends:
    # from the second term of the divergence alone, and from Pinsker's inequality.
    log_gap = (entropy - level) / (1.0 - mean)
    pinsker_gap = (1.0 - mean) - math.sqrt(0.5 * level)
    if pinsker_gap > 0.0:
        log_gap = max(log_gap, math.log(pinsker_gap))
    for _ in range(MAX_STEPS):
        gap = math.exp(log_gap)
        q = 1.0 - gap
        if q <= mean or gap == 0.0:
            break
        excess = entropy - mean * math.log1p(-gap) - (1.0 - mean) * log_gap - level
        step = excess * q / (q - mean)
        if not step > 4e-16 * max(abs(log_gap), 1e-3):
            break
        log_gap += step
    return max(mean, 1.0 - math.exp(log_gap))


@scalar
def beta_fraction(x, a, b):
    """Compute the continued fraction of the incomplete beta function by Lentz's method (Numerical Recipes, 6.4)."""
    c = 1.0
    d = 1.0 / max(1.0 - (a + b) * x / (a + 1.0), SMALLEST)
    value = d
    for m in range(1, MAX_STEPS):
        even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m))
        d = 1.0 / max(1.0 + even * d, SMALLEST)
        c = max(1.0 + even / c, SMALLEST)
        value *= d * c
        odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        d = 1.0 / max(1.0 + odd * d, SMALLEST)
        c = max(1.0 + odd / c, SMALLEST)
        value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return value


@noinline
def beta_tail(x, a, b):
    """Compute the probability that a Beta(a, b) number exceeds x.

    Parameters
    ----------
    x : float
        The number, in [0, 1].
    a : float
        The first shape, above 0.
    b : float
        The second shape, above 0.
    """
    if x <= 0.0:
        return 1.0
    if x >= 1.0:
        return 0.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    if x < (a + 1.0) / (a + b + 2.0):
        return 1.0 - math.exp(log_front) * beta_fraction(x, a, b) / a
    return math.exp(log_front) * beta_fraction(1.0 - x, b, a) / b


@scalar
def guess_beta_quantile(tail, a, b):
    """Guess the x that a Beta(a, b) number exceeds with a probability, in (0, 1).

    The quantile of a normal number (Abramowitz and Stegun, 26.2.23), corrected for skewness (Cornish and Fisher).
    """
    root = math.sqrt(-2.0 * math.log(tail))
    above = 2.515517 + root * (0.802853 + root * 0.010328)
    normal = root - above / (1.0 + root * (1.432788 + root * (0.189269 + root * 0.001308)))
    mean = a / (a + b)
    sd = math.sqrt(mean * (1.0 - mean) / (a + b + 1.0))
    skewness = 2.0 * (1.0 - 2.0 * mean) / ((a + b + 2.0) * sd)
    guess = mean + sd * (normal + skewness * (normal * normal - 1.0) / 6.0)
    return min(max(guess, 0.5 * mean), 0.5 * (mean + 1.0))


@noinline
def beta_upper_quantile(tail, a, b):
    """Compute the x that a Beta(a, b) number exceeds with a given probability.

    Halley's method on the logarithm of the tail, kept inside a bracket that shrinks. The median of a symmetric law is
    exactly 1/2, so that medians of several such laws are equal on every device.

    Parameters
    ----------
    tail : float
        The probability, below 1. At 0 or below, the quantile is 1.
    a : float
        The first shape, above 0.
    b : float
        The second shape, above 0.
    """
    if tail <= 0.0:
        return 1.0
    if tail == 0.5 and a == b:
        return 0.5
    low = 0.0
    high = 1.0
    x = guess_beta_quantile(tail, a, b)
    log_tail = math.log(tail)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    for _ in range(MAX_STEPS):
        above = beta_tail(x, a, b)
        if above > tail:
            low = x
        else:
            high = x
        density = math.exp(log_front + (a - 1.0) * math.log(x) + (b - 1.0) * math.log1p(-x))
        better = 2.0
        if above > 0.0 and density > 1e-200:
            gap = math.log(above) - log_tail
            slope = density / above
            curved = slope + 0.5 * gap * ((a - 1.0) / x - (b - 1.0) / (1.0 - x) + slope)
            better = x + gap / max(curved, 0.5 * slope)
        # A step of Halley cubes the error, which is far below rounding after a step as short as this.
        if abs(better - x) <= 1e-8 * min(x, 1.0 - x) or high - low <= 4e-16 * high:
            return min(max(better, low), high)
        x = better if better > low and better < high else 0.5 * (low + high)
    return x
