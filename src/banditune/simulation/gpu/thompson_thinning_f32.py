"""Functions of Thompson sampling's thinning shortcut in single precision, which halve the time of a run on a GPU.

The distribution of the pulls does not depend on the choice of leader and thresholds, so these may have rounding errors. All
other numbers have about six digits. A threshold is subtracted from a posterior mean in double precision. For small v,
log(1 + v) - v is computed by a series, because the difference of its two terms would lose digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import float32, float64, int32, uint32

from banditune.core import distributions
from banditune.core.distributions import ZIGGURAT_EDGES, ZIGGURAT_INNER_SHARES, buffered_beta
from banditune.core.scalar import Slot, noinline, noinline_on_gpu, scalar
from banditune.core.streams import buffered_uniform_pair, draw_block, draw_buffered_block, philox
from banditune.simulation.shortcuts import beta_tails, thompson_thinning

_compute_reciprocal = Slot("compute_reciprocal")


_compute_reciprocal_root = Slot("compute_reciprocal_root")


_compute_log = Slot("compute_log")


_compute_exp = Slot("compute_exp")


ZERO, HALF, ONE, TWO, THREE, NINE = (float32(number) for number in (0.0, 0.5, 1.0, 2.0, 3.0, 9.0))


THIRD = float32(1 / 3)


FULL_RATE_F32 = float32(thompson_thinning.FULL_RATE)


REJECTED = float32(-1.0)


FAR_DISTANCE = float32(1e38)


LEAST_RATE = float32(1e-30)


ZIGGURAT_TAIL_F32, INVERSE_TAIL_F32 = float32(distributions.ZIGGURAT_TAIL), float32(1 / distributions.ZIGGURAT_TAIL)


STEP_UNIT = float32(1 / 4096)


SMALLEST_THRESHOLD_F32 = float32(1e-6)
"""The smallest threshold that is used."""


ZIGGURAT_EDGES_F32 = ZIGGURAT_EDGES.astype(np.float32)


ZIGGURAT_INSIDES_F32 = ZIGGURAT_INNER_SHARES.astype(np.float32)


A1, A2, A3, A4, A5 = (float32(2 / (2 * k + 1)) for k in range(1, 6))


S1, S2, S3, S4 = (float32(number) for number in (1 / 12, 1 / 360, 1 / 1260, 1 / 1680))


STIRLING_FROM = float32(5.0)
"""The smallest argument for which four terms of Stirling's series have an error of at most 1e-9."""


INVERSE_TWO_PI = float32(1 / (2 * math.pi))


THRESHOLD_SHARE, THRESHOLD_REACH = float32(1.6), float32(4.0)


QUICK_ACCEPT, SIGNED_CELL, UNIT_CELL = float32(3072.0), float32(2.0**-31), float32(2.0**-32)


LARGEST_CHANCE = float32(0.3)


SERIES_LIMIT = float32(0.09)


@scalar
def convert_unit_f32(word):
    """Convert 32 random bits to a number between 0 and 1, never 0."""
    return (float32(uint32(word)) + HALF) * UNIT_CELL


@scalar
def draw_late_block(stream):
    """Compute the buffered block, of which only the number was stored."""
    cursor = stream.cursor
    first = int(stream.next_block[0])
    stream.next_block[0] = cursor[0]
    cursor[0] += 1
    return philox(first, int(cursor[1]), int(cursor[2]), int(cursor[3]), stream.key0, stream.key1)


@noinline_on_gpu
def draw_pair_f32(stream):
    """Draw two independent uniforms."""
    w0, _, w2, _ = draw_late_block(stream)
    return convert_unit_f32(w0), convert_unit_f32(w2)


@noinline_on_gpu
def draw_other_block(stream):
    """Draw the next block, for draws that are rarely needed."""
    return draw_block(stream)


@scalar
def compute_log1p_remainder_by_series(v, s):
    """Compute log(1 + v) - v by a series in s = v / (2 + v), for |s| <= 0.3.

    The series is log(1 + v) = 2 (s + s^3 / 3 + s^5 / 5 + ...), with 2 s = v - v s.
    """
    t = s * s
    return s * (t * (A1 + t * (A2 + t * (A3 + t * (A4 + t * A5)))) - v)


@scalar
def compute_log1p_remainder(v):
    """Compute log(1 + v) - v."""
    s = v * _compute_reciprocal(TWO + v)
    return compute_log1p_remainder_by_series(v, s) if s * s < SERIES_LIMIT else _compute_log(ONE + v) - v


@scalar
def compute_poisson_rate_f32(chance):
    """Compute `compute_poisson_rate` in single precision, for probabilities up to 0.4."""
    v = -float32(chance)
    return -(compute_log1p_remainder_by_series(v, v * _compute_reciprocal(TWO + v)) + v)


@scalar
def compute_excess_f32(a, b, x):
    """Compute x (a + b) - a, a difference of large numbers, in double precision."""
    return float32(float64(x) * (float64(a) + float64(b)) - float64(a))


@scalar
def compute_stirling_error_f32(r):
    """Compute the error of Stirling's formula at 1 / r."""
    w = r * r
    return r * (S1 - w * (S2 - w * (S3 - w * S4)))


@scalar
def compute_beta_density_f32(a, b, x):
    """Compute `compute_beta_density` in single precision."""
    return compute_density_from_excess(float32(a), float32(b), float32(x), compute_excess_f32(a, b, x))


@noinline_on_gpu
def compute_density_from_excess(p, q, x, u):
    """Compute the density of Beta(p, q) at x, with u = x (p + q) - p. Shapes are raised to 5."""
    ratio = _compute_reciprocal(x * (ONE - x))
    while p < STIRLING_FROM:
        ratio *= p * _compute_reciprocal((p + q) * x)
        p += ONE
        u += x - ONE
    while q < STIRLING_FROM:
        ratio *= q * _compute_reciprocal((p + q) * (ONE - x))
        q += ONE
        u += x
    of_p, of_q, of_n = _compute_reciprocal(p), _compute_reciprocal(q), _compute_reciprocal(p + q)
    main = p * compute_log1p_remainder(u * of_p) + q * compute_log1p_remainder(-u * of_q)
    error = compute_stirling_error_f32(of_n) - compute_stirling_error_f32(of_p) - compute_stirling_error_f32(of_q)
    square = p * of_n * q * INVERSE_TWO_PI
    return ratio * (square * _compute_reciprocal_root(square)) * _compute_exp(main + error)


@scalar
def compute_slope_from_excess(u, x):
    """Compute the slope of the log-density at x, with u = x (a + b) - a."""
    return (TWO * x - ONE - u) * _compute_reciprocal(x * (ONE - x))


@scalar
def compute_slope_f32(a, b, x):
    """Compute `compute_log_density_slope` in single precision."""
    return compute_slope_from_excess(compute_excess_f32(a, b, x), float32(x))


@scalar
def draw_beta_tail_f32(a, b, slope, x, agent):
    """Draw as `draw_beta_tail` does."""
    return draw_beyond_f32(float32(a), float32(b), float32(slope), float32(x), agent)


@noinline_on_gpu
def draw_beyond_f32(a, b, slope, x, agent):
    """Draw a value beyond x; return -1 if it is rejected."""
    first, second = draw_pair_f32(agent)
    step = _compute_log(first) * _compute_reciprocal(slope)
    value = x + step
    if value <= ZERO or value >= ONE:
        return REJECTED
    rise = (a - ONE) * compute_log1p_remainder(step * _compute_reciprocal(x)) + (b - ONE) * compute_log1p_remainder(
        -step * _compute_reciprocal(ONE - x)
    )
    return value if _compute_log(second) < rise else REJECTED


@scalar
def compute_beta_sd_f32(a, b):
    """Compute the standard deviation of Beta(a, b)."""
    n = a + b
    square = a * _compute_reciprocal(n + ONE) * b
    return square * _compute_reciprocal_root(square) * _compute_reciprocal(n)


@scalar
def set_thresholds_f32(state, leader):
    """Choose thresholds as `set_thresholds` does."""
    a = state.a[leader]
    b = state.b[leader]
    mean = a * _compute_reciprocal(a + b)
    sd = compute_beta_sd_f32(a, b)
    closest = FAR_DISTANCE
    for arm in range(len(state.a)):
        if arm != leader:
            a = state.a[arm]
            b = state.b[arm]
            distance = (
                THRESHOLD_SHARE
                * (mean - a * _compute_reciprocal(a + b))
                * _compute_reciprocal(sd + compute_beta_sd_f32(a, b))
            )
            state.threshold[arm] = distance
            closest = min(closest, distance)
    for arm in range(len(state.a)):
        state.threshold[arm] = mean - min(max(closest, state.threshold[arm]), closest + THRESHOLD_REACH) * sd
    state.threshold[leader] = mean - closest * sd


@scalar
def compute_rival_rate_f32(state, arm):
    """Compute `compute_rival_rate` in single precision."""
    a = state.a[arm]
    b = state.b[arm]
    x = state.threshold[arm]
    u = compute_excess_f32(a, b, x)
    if x <= SMALLEST_THRESHOLD_F32 or u < ZERO or u * u * (a + b + ONE) < HALF * a * b:
        return FULL_RATE_F32
    slope = compute_slope_from_excess(u, x)
    if slope >= ZERO:
        return FULL_RATE_F32
    chance = compute_density_from_excess(a, b, x, u) * _compute_reciprocal(-slope)
    return compute_poisson_rate_f32(chance) if chance < LARGEST_CHANCE else FULL_RATE_F32


@scalar
def compute_leader_chance_f32(a, b, h):
    """Compute `compute_leader_chance` in single precision."""
    return compute_beta_density_f32(a, b, h) * _compute_reciprocal(compute_slope_f32(a, b, h))


@scalar
def convert_normal_f32(stream, high, low):
    """Convert 64 random bits to a standard normal, as `ziggurat_normal` does. With probability 1%, it draws more bits."""
    layer = low & 255
    position = convert_signed_unit_f32(high)
    return (
        position * ZIGGURAT_EDGES_F32[layer]
        if abs(position) < ZIGGURAT_INSIDES_F32[layer]
        else draw_outside_f32(stream, layer, position)
    )


@scalar
def convert_signed_unit_f32(word):
    """Convert 32 random bits to a number between -1 and 1."""
    return (float32(int32(word - 2147483648)) + HALF) * SIGNED_CELL


@noinline
def draw_outside_f32(stream, layer, position):
    """Draw a normal outside the inner part of a layer of the ziggurat."""
    while abs(position) >= ZIGGURAT_INSIDES_F32[layer]:
        w0, w1, w2, _ = draw_other_block(stream)
        if layer == 0:
            far = -_compute_log(convert_unit_f32(w0)) * INVERSE_TAIL_F32
            if -TWO * _compute_log(convert_unit_f32(w2)) > far * far:
                return ZIGGURAT_TAIL_F32 + far if position > ZERO else -ZIGGURAT_TAIL_F32 - far
            continue
        x = position * ZIGGURAT_EDGES_F32[layer]
        inner = _compute_exp(HALF * (x * x - ZIGGURAT_EDGES_F32[layer + 1] * ZIGGURAT_EDGES_F32[layer + 1]))
        outer = _compute_exp(HALF * (x * x - ZIGGURAT_EDGES_F32[layer] * ZIGGURAT_EDGES_F32[layer]))
        if outer + convert_unit_f32(w0) * (inner - outer) < ONE:
            return x
        w0, w1, _, _ = draw_other_block(stream)
        layer = w1 & 255
        position = convert_signed_unit_f32(w0)
    return position * ZIGGURAT_EDGES_F32[layer]


@scalar
def draw_gamma_f32(stream, high, low, shape):
    """Draw a gamma variate as `gamma_from_words` does."""
    centre = shape - THIRD
    deviate = convert_normal_f32(stream, high, low)
    y = deviate * _compute_reciprocal_root(NINE * centre)
    step = low >> 8 & 4095
    if float32(int32(4095 - step)) * (ONE - abs(y)) > QUICK_ACCEPT * centre * (y * y) * (y * y):
        return centre * ((ONE + y) * (ONE + y) * (ONE + y))
    return draw_slow_gamma_f32(stream, centre, y, step)


@noinline
def draw_slow_gamma_f32(stream, centre, y, step):
    """Draw a gamma variate as `gamma_from_proposal` does: a proposal is accepted with probability e^z.

    z = deviate^2 / 2 + centre (1 - cube + log(cube)), with cube = (1 + y)^3 and y = deviate / (9 centre)^(1/2).
    """
    w0, _, _, _ = draw_other_block(stream)
    chance = (float32(int32(step)) + convert_unit_f32(w0)) * STEP_UNIT
    while True:
        z = THREE * centre * (compute_log1p_remainder(y) + y * y * (HALF - y * THIRD))
        if y > -ONE and _compute_log(chance) < z:
            return centre * ((ONE + y) * (ONE + y) * (ONE + y))
        w0, w1, _, _ = draw_other_block(stream)
        y = convert_normal_f32(stream, w0, w1) * _compute_reciprocal_root(NINE * centre)
        w0, _, _, _ = draw_other_block(stream)
        chance = convert_unit_f32(w0)


@noinline_on_gpu
def draw_quick_beta_f32(stream, a, b):
    """Draw a beta variate as `buffered_beta` does."""
    w0, w1, w2, w3 = draw_late_block(stream)
    x = draw_gamma_f32(stream, w0, w1, float32(a))
    return x * _compute_reciprocal(x + draw_gamma_f32(stream, w2, w3, float32(b)))


@scalar
def invert_exponential_f32(chance):
    """Compute `invert_exponential` in single precision."""
    return -_compute_log(chance)


@scalar
def count_skipped_rounds_f32(wait, rates, limit):
    """Compute `count_skipped_rounds` in single precision."""
    return int32(min(float32(wait) * _compute_reciprocal(float32(rates) + LEAST_RATE), float32(int32(limit))))


FLOAT32_VERSIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    draw_buffered_block: draw_late_block,
    buffered_uniform_pair: draw_pair_f32,
    buffered_beta: draw_quick_beta_f32,
    beta_tails.compute_beta_density: compute_beta_density_f32,
    beta_tails.compute_log_density_slope: compute_slope_f32,
    beta_tails.draw_beta_tail: draw_beta_tail_f32,
    thompson_thinning.set_thresholds: set_thresholds_f32,
    beta_tails.compute_poisson_rate: compute_poisson_rate_f32,
    beta_tails.invert_exponential: invert_exponential_f32,
    thompson_thinning.count_skipped_rounds: count_skipped_rounds_f32,
    thompson_thinning.compute_rival_rate: compute_rival_rate_f32,
    beta_tails.compute_leader_chance: compute_leader_chance_f32,
}
"""Functions in single precision, by the functions that they replace."""
