"""Densities and tails of beta distributions: bounds on tail probabilities, and draws beyond a threshold."""

from __future__ import annotations

import math

from banditune.core.binomial_draws import sum_stirling_series
from banditune.core.distributions import buffered_beta
from banditune.core.scalar import noinline_on_gpu, scalar
from banditune.core.streams import buffered_uniform_pair

SMALLEST_THRESHOLD = 1e-12
"""The smallest threshold that is used. A power of a smaller one could underflow."""


@noinline_on_gpu
def compute_beta_density(a, b, x):
    """Compute the density of Beta(a, b) at x, by Stirling's formula with its error.

    Shapes are raised to 10, where the error's series is accurate to 1e-16, by f(x; a, b) = f(x; a + 1, b) a / ((a + b) x)
    and its mirror image.
    """
    above = 1.0
    below = x * (1.0 - x)
    while a < 10.0:
        above *= a
        below *= (a + b) * x
        a += 1.0
    while b < 10.0:
        above *= b
        below *= (a + b) * (1.0 - x)
        b += 1.0
    n = a + b
    # a log(x n / a) + b log((1 - x) n / b), without the cancellation of its two large terms.
    beyond = x * n - a
    main = a * (math.log1p(beyond / a) - beyond / a) + b * (math.log1p(-beyond / b) + beyond / b)
    error = sum_stirling_series(n) - sum_stirling_series(a) - sum_stirling_series(b)
    return above / below * math.sqrt(a * b / (2.0 * math.pi * n)) * math.exp(min(main + error, 700.0))


@scalar
def compute_log_density_slope(a, b, x):
    """Compute the slope of the log-density at x."""
    return (a - 1.0) / x - (b - 1.0) / (1.0 - x)


@scalar
def draw_beta_above(a, b, x, agent):
    """Return a posterior draw if it is above x, else -1."""
    slope = compute_log_density_slope(a, b, x)
    if slope < 0.0:
        height = compute_beta_density(a, b, x)
        if height < -slope:
            if buffered_uniform_pair(agent)[0] * -slope >= height:
                return -1.0
            return draw_beta_tail(a, b, slope, x, agent)
    value = buffered_beta(agent, a, b)
    return value if value > x else -1.0


@noinline_on_gpu
def draw_beta_tail(a, b, slope, x, agent):
    """Accept or reject a proposal beyond x, on the side where the tangent falls. Return -1 if it is rejected.

    With g(v) = log(1 + v) - v, the log-density minus its tangent is (a - 1) g(v) + (b - 1) g(w). For |v| < 1 the series
    g(v) = -v^2 / 2 + v^3 / 3 - ... is below its first two terms, by at most v^4 / (4 (1 - |v|)). These bounds are usually
    enough to decide.
    """
    first, second = buffered_uniform_pair(agent)
    value = x + math.log(first) / slope
    if value <= 0.0 or value >= 1.0:
        return -1.0
    v = (value - x) / x
    w = (x - value) / (1.0 - x)
    log_second = math.log(second)
    if abs(v) < 0.5 and abs(w) < 0.5:
        most = (a - 1.0) * (v / 3.0 - 0.5) * v * v + (b - 1.0) * (w / 3.0 - 0.5) * w * w
        if log_second >= most:
            return -1.0
        if log_second < most - 0.5 * ((a - 1.0) * (v * v) * (v * v) + (b - 1.0) * (w * w) * (w * w)):
            return value
    rise = (a - 1.0) * (math.log(value / x) - v) + (b - 1.0) * (math.log((1.0 - value) / (1.0 - x)) - w)
    return value if log_second < rise else -1.0


@scalar
def compute_beta_sd(a, b):
    """Compute the standard deviation of Beta(a, b)."""
    n = a + b
    return math.sqrt(a * b / (n + 1.0)) / n


@scalar
def compute_poisson_rate(chance):
    """Return the rate of a Poisson process that has a point in a unit of time with this probability."""
    return -math.log1p(-chance)


@scalar
def compute_leader_chance(a, b, h):
    """Return the probability with which the leader proposes below h."""
    return compute_beta_density(a, b, h) / compute_log_density_slope(a, b, h)


@scalar
def is_bound_valid(a, b, h):
    """Return whether `compute_leader_chance` at h is largest at Beta(a, b), among posteriors with shapes >= a and <= b.

    The derivative of log f(h) is log h - E log(draw) in a, and log(1 - h) - E log(1 - draw) in b. By Jensen's inequality
    the latter is positive where h is below the mean a / n. E log(draw) = psi(a) - psi(n) > log(a / n) - 1/a, so the former
    is negative where h <= (a - 1) / n < (a / n) exp(-1 / a). The slope of the tangent grows in a and falls in b. If the
    condition holds at (a, b), it holds at every posterior between. Because of the margin, rounding errors do not change the
    sign of the slope.
    """
    return h > SMALLEST_THRESHOLD and h * (a + b) * (1.0 + 1e-9) <= a - 1.0


@scalar
def invert_exponential(chance):
    """Return the value that an exponential exceeds with this probability."""
    return -math.log(chance)
