"""The bound of `one_arm_bound` for Gaussian arms, with a constant price, so that one table is enough for all M.

U depends on the posterior mean m and on M only through x = m - M. d = price - E[(M - theta)^+] is concave in x, and so is
U, a minimum over stopping times whose paths shift with x. For each pull, backwards, U is replaced by its chords on a grid.
The mean of the chords over the next reward is exact (`fill_hat_weights`). Chords of a concave function are below it, so
the result is a lower bound on any grid. The spacing of the grid depends on the steps of the posterior mean; it is coarser
for earlier pulls.

U has a closed form more than `z` posterior standard deviations above M, where all pulls have a gain, and the same distance
below M - price, where none has. Its error is at most `BOUND_TOLERANCE` prior standard deviations, which are subtracted.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.scalar import optimize_separately, scalar
from banditune.exact.one_arm_bound import BOUND_TOLERANCE, climb_price
from banditune.exact.sampled_bounds import compute_normal_excess
from banditune.problems.gaussian_arms import Gaussian
from banditune.simulation.compilation import compile_kernel

GRID_POINTS_PER_SD = 120.0
"""The number of grid points in a standard deviation of the posterior mean's next step.

If steps are small there are fewer: half a point in the last step of a long horizon. With twice as many, bounds are 0.1%
to 0.3% higher.
"""


NORMAL_RANGE = 8.3
"""The distance from its mean, in standard deviations, that a normal variable exceeds with probability 1e-16."""


CDF_POINTS = 2000
"""The number of points per arm at which the distribution of the largest mean is computed."""


def compute_one_arm_bound_gaussian(problem: Gaussian, horizon: int) -> float:
    """Compute the bound for Gaussian arms, with the best price of a search."""
    priors = problem.prior * (problem.arms // len(problem.prior))
    kinds = Counter(priors)
    bottom, top = (f(mean + side * 9 * sd for mean, sd in priors) for f, side in ((min, -1), (max, 1)))
    largest = top - float(_integrate_max_cdf(np.array([bottom, top]), priors)[-1])
    constant = len(priors) * largest - sum(mean for mean, _ in priors)

    def compute_bound(price: float, grid_points: float) -> float:
        total: float = horizon * (constant - (len(priors) - 1) * price)
        for (mean, sd), count in kinds.items():
            other_priors = list(priors)
            other_priors.remove((mean, sd))
            levels, spacing, low = compute_stopping_levels(horizon, sd, problem.noise, price, grid_points)
            total += count * (
                _integrate_chords(levels, spacing, low, horizon, price, mean, tuple(other_priors))
                - BOUND_TOLERANCE * sd
            )
        return total

    first = max(sd for _, sd in priors) / horizon**0.6
    price, _ = climb_price(lambda price: compute_bound(price, GRID_POINTS_PER_SD / 4), first, limit=math.inf)
    return compute_bound(price, GRID_POINTS_PER_SD)


def compute_stopping_levels(
    horizon: int, sd: float, noise: float, price: float, grid_points: float
) -> tuple[FloatArray, float, int]:
    """Compute U before the first pull on a grid of x: levels, spacing, and number of the first point (0 is x = 0)."""
    variance = 1.0 / (sd**-2.0 + np.arange(horizon + 1) / noise**2)
    steps = np.sqrt(-np.diff(variance))
    z = math.sqrt(2.0 * math.log(4.0 * horizon / BOUND_TOLERANCE))
    spacing = float(steps[-1]) * min(horizon / 250.0, 2.0) * GRID_POINTS_PER_SD / grid_points
    # The spacing of a pull's grid is at most twice that of the fine points in a step.
    coarse = np.maximum(spacing, steps / grid_points / 2.0)
    half = int(np.max((price + z * np.sqrt(variance[:-1])) / coarse + NORMAL_RANGE * steps / coarse)) + 8
    current, next_table, weights = np.zeros(2 * half + 1), np.zeros(2 * half + 1), np.zeros(2 * half + 1)
    out = np.zeros(3)
    compile_kernel(fill_stopping_levels)(variance, price, z, grid_points, spacing, current, next_table, weights, out)
    spacing, low, high = float(out[0]), int(out[1]), int(out[2])
    # Both tables are swapped at every pull.
    last = current if horizon % 2 == 0 else next_table
    return last[half + low : half + high + 1], spacing, low


def _integrate_chords(
    levels: Any,
    spacing: float,
    low: int,
    horizon: int,
    price: float,
    mean: float,
    other_priors: tuple[tuple[float, float], ...],
) -> float:
    """Average the chords of U over the largest mean of the others."""
    x: Any = spacing * (low + np.arange(len(levels)))
    distances = [spread * 9 * sd + other_mean - mean for other_mean, sd in other_priors for spread in (-1, 1)]
    # Outside the table U is 0 above and linear below, so one chord is enough at each end.
    below, above = min(-max(distances), x[0]) - spacing, max(-min(distances), x[-1]) + spacing
    x = np.concatenate([[below], x, [above]])
    levels = np.concatenate([[horizon * (price + below)], levels, [0.0]])
    integral = _integrate_max_cdf(mean - x[::-1], other_priors)
    hats = np.diff(np.diff(integral) / np.diff(x[::-1] * -1.0), prepend=0.0, append=1.0)
    return float(hats @ levels[::-1])


def _integrate_max_cdf(points: FloatArray, priors: tuple[tuple[float, float], ...]) -> FloatArray:
    """Integrate, up to each point, the distribution function of the maximum of normal variables."""
    kinds = Counter(priors)
    grids = [mean + sd * np.linspace(-9.0, 9.0, CDF_POINTS) for mean, sd in kinds]
    grid = np.unique(np.concatenate([*grids, points]))
    below = np.ones_like(grid)
    slope = np.zeros_like(grid)
    for (mean, sd), count in kinds.items():
        z = (grid - mean) / sd
        part = np.array([0.5 * math.erfc(-value * math.sqrt(0.5)) for value in z])
        density = np.exp(-0.5 * z * z) / (sd * math.sqrt(2.0 * math.pi))
        slope = slope * part**count + below * count * part ** (count - 1) * density
        below = below * part**count
    # This is the trapezoid rule with its first correction, from the slopes at both ends.
    width = np.diff(grid)
    pieces = width * (below[1:] + below[:-1]) / 2 - width**2 * np.diff(slope) / 12
    integrals: FloatArray = np.interp(points, grid, np.concatenate([[0.0], np.cumsum(pieces)]))
    return integrals


def fill_stopping_levels(variance, price, z, grid_points, spacing, current, next_table, weights, out):
    """Compute U backwards from the last pull. `out` receives spacing, first and last point of the first pull's table."""
    horizon = len(variance) - 1
    half = len(current) // 2
    low = 0
    high = 0
    for pulls in range(horizon - 1, -1, -1):
        sd = math.sqrt(variance[pulls])
        step = math.sqrt(variance[pulls] - variance[pulls + 1])
        remaining = float(horizon - pulls)
        while step > grid_points * spacing:
            for i in range(1, half // 2 + 1):
                current[half + i] = current[half + 2 * i]
                current[half - i] = current[half - 2 * i]
            spacing *= 2.0
            low = -(-low // 2)
            high = high // 2
        later_low = low
        later_high = high
        low = -math.ceil((price + z * sd) / spacing)
        high = math.ceil(z * sd / spacing)
        wide = math.ceil(NORMAL_RANGE * step / spacing) + 1
        for i in range(low - wide, later_low):
            current[half + i] = (remaining - 1.0) * (price + i * spacing)
        for i in range(later_high + 1, high + wide + 1):
            current[half + i] = 0.0
        fill_hat_weights(step / spacing, wide, weights)
        count = high - low + 1
        first = half + low
        target = next_table[first : first + count]
        clear_array(target)
        for k in range(-wide, wide + 1):
            add_multiple(target, current[first + k : first + k + count], weights[wide + k])
        for i in range(count):
            gain = price - sd * compute_normal_excess(-(low + i) * spacing / sd)
            target[i] = min(target[i], remaining * gain)
        current, next_table = next_table, current
    out[0] = spacing
    out[1] = low
    out[2] = high


@scalar
def fill_hat_weights(step, wide, weights):
    """Compute the means of the hat functions on whole numbers -wide..wide under a normal with this standard deviation."""
    total = 0.0
    for k in range(-wide, wide + 1):
        rise = (
            compute_normal_excess((1.0 - k) / step)
            + compute_normal_excess((-1.0 - k) / step)
            - 2.0 * compute_normal_excess(-k / step)
        )
        weights[wide + k] = max(step * rise, 0.0)
        total += weights[wide + k]
    for k in range(2 * wide + 1):
        weights[k] /= total


@optimize_separately
def clear_array(target):
    """Set all numbers to 0."""
    for i in range(len(target)):
        target[i] = 0.0


@optimize_separately
def add_multiple(target, source, weight):
    """Add a multiple of another array."""
    for i in range(len(target)):
        target[i] += weight * source[i]
