"""Functions of `lazy` in single precision, for GPUs: there the code of a run is about half as long.

Which leader and which thresholds are used does not matter to the law; what does is kept to about six digits. Where the
posterior's mean and a threshold are subtracted, it is done in double precision. log(1 + v) - v is never a difference of
its two terms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import float32, float64, int32, uint32

from banditune import streams
from banditune.contracts import Slot, bulky, rare, scalar
from banditune.policies import lazy
from banditune.streams import EDGE, INSIDE, block, philox, quick_beta, ready_block, ready_pair

inverse = Slot("inverse")
inverse_root = Slot("inverse_root")
log = Slot("log")
exp = Slot("exp")

ZERO, HALF, ONE, TWO, THREE, NINE = (float32(number) for number in (0.0, 0.5, 1.0, 2.0, 3.0, 9.0))
THIRD = float32(1 / 3)
FULL = float32(lazy.FULL)
REJECTED = float32(-1.0)
FAR = float32(1e38)
NOTHING = float32(1e-30)
TAIL, OF_TAIL = float32(streams.TAIL), float32(1 / streams.TAIL)
STEP = float32(1 / 4096)
SMALL = float32(1e-6)
"""Thresholds closer to 0 are not used."""

EDGES = EDGE.astype(np.float32)
INSIDES = INSIDE.astype(np.float32)

A1, A2, A3, A4, A5 = (float32(2 / (2 * k + 1)) for k in range(1, 6))
S1, S2, S3, S4 = (float32(number) for number in (1 / 12, 1 / 360, 1 / 1260, 1 / 1680))
CLIMBED = float32(5.0)
"""From here on four terms of Stirling's series are good to 1e-9."""

INVERSE_TWO_PI = float32(1 / (2 * math.pi))
AHEAD, FARTHEST = float32(1.6), float32(4.0)
QUICK, CELL, CELL32 = float32(3072.0), float32(2.0**-31), float32(2.0**-32)
RARE = float32(0.3)
NEAR = float32(0.09)


@scalar
def single_unit(word):
    """A number between 0 and 1 from 32 random bits; never 0."""
    return (float32(uint32(word)) + HALF) * CELL32


@scalar
def late_block(stream):
    """The block that `streams.ready_block` would return, computed now: only its number was kept."""
    cursor = stream.cursor
    first = int(stream.ready[0])
    stream.ready[0] = cursor[0]
    cursor[0] += 1
    return philox(first, int(cursor[1]), int(cursor[2]), int(cursor[3]), stream.key0, stream.key1)


@bulky
def single_pair(stream):
    """Two independent uniforms."""
    w0, _, w2, _ = late_block(stream)
    return single_unit(w0), single_unit(w2)


@bulky
def other_block(stream):
    """The next block, for draws that are seldom needed."""
    return block(stream)


@scalar
def series(v, s):
    """log(1 + v) - v with s = v / (2 + v), |s| <= 0.3: log(1 + v) = 2 (s + s^3 / 3 + s^5 / 5 + ...) and 2 s = v - v s."""
    t = s * s
    return s * (t * (A1 + t * (A2 + t * (A3 + t * (A4 + t * A5)))) - v)


@scalar
def log1p_less(v):
    """log(1 + v) - v."""
    s = v * inverse(TWO + v)
    return series(v, s) if s * s < NEAR else log(ONE + v) - v


@scalar
def single_rate_of(chance):
    """See `lazy.rate_of`; for chances up to 0.4."""
    v = -float32(chance)
    return -(series(v, v * inverse(TWO + v)) + v)


@scalar
def beyond(a, b, x):
    """x (a + b) - a, a difference of large numbers."""
    return float32(float64(x) * (float64(a) + float64(b)) - float64(a))


@scalar
def stirling_part(r):
    """The error of Stirling's formula at 1 / r."""
    w = r * r
    return r * (S1 - w * (S2 - w * (S3 - w * S4)))


@scalar
def single_density(a, b, x):
    """See `lazy.density`."""
    return height(float32(a), float32(b), float32(x), beyond(a, b, x))


@bulky
def height(p, q, x, u):
    """The density of Beta(p, q) at x, with u = x (p + q) - p; shapes climb to 5."""
    ratio = inverse(x * (ONE - x))
    while p < CLIMBED:
        ratio *= p * inverse((p + q) * x)
        p += ONE
        u += x - ONE
    while q < CLIMBED:
        ratio *= q * inverse((p + q) * (ONE - x))
        q += ONE
        u += x
    of_p, of_q, of_n = inverse(p), inverse(q), inverse(p + q)
    main = p * log1p_less(u * of_p) + q * log1p_less(-u * of_q)
    error = stirling_part(of_n) - stirling_part(of_p) - stirling_part(of_q)
    square = p * of_n * q * INVERSE_TWO_PI
    return ratio * (square * inverse_root(square)) * exp(main + error)


@scalar
def slope_from(u, x):
    """The slope of the log-density at x, with u = x (a + b) - a."""
    return (TWO * x - ONE - u) * inverse(x * (ONE - x))


@scalar
def single_tangent(a, b, x):
    """See `lazy.tangent`."""
    return slope_from(beyond(a, b, x), float32(x))


@scalar
def single_tail_draw(a, b, slope, x, agent):
    """See `lazy.tail_draw`."""
    return beyond_draw(float32(a), float32(b), float32(slope), float32(x), agent)


@bulky
def beyond_draw(a, b, slope, x, agent):
    """A draw beyond x, or -1 if it is rejected."""
    first, second = single_pair(agent)
    step = log(first) * inverse(slope)
    value = x + step
    if value <= ZERO or value >= ONE:
        return REJECTED
    rise = (a - ONE) * log1p_less(step * inverse(x)) + (b - ONE) * log1p_less(-step * inverse(ONE - x))
    return value if log(second) < rise else REJECTED


@scalar
def single_spread(a, b):
    """The standard deviation of Beta(a, b)."""
    n = a + b
    square = a * inverse(n + ONE) * b
    return square * inverse_root(square) * inverse(n)


@scalar
def single_set_thresholds(state, leader):
    """See `lazy.set_thresholds`."""
    a = state.a[leader]
    b = state.b[leader]
    mean = a * inverse(a + b)
    sd = single_spread(a, b)
    closest = FAR
    for arm in range(len(state.a)):
        if arm != leader:
            a = state.a[arm]
            b = state.b[arm]
            distance = AHEAD * (mean - a * inverse(a + b)) * inverse(sd + single_spread(a, b))
            state.limit[arm] = distance
            closest = min(closest, distance)
    for arm in range(len(state.a)):
        state.limit[arm] = mean - min(max(closest, state.limit[arm]), closest + FARTHEST) * sd
    state.limit[leader] = mean - closest * sd


@scalar
def single_rival_rate(state, arm):
    """See `lazy.rival_rate`."""
    a = state.a[arm]
    b = state.b[arm]
    x = state.limit[arm]
    u = beyond(a, b, x)
    if x <= SMALL or u < ZERO or u * u * (a + b + ONE) < HALF * a * b:
        return FULL
    slope = slope_from(u, x)
    if slope >= ZERO:
        return FULL
    chance = height(a, b, x, u) * inverse(-slope)
    return single_rate_of(chance) if chance < RARE else FULL


@scalar
def single_leader_chance(a, b, h):
    """See `lazy.leader_chance`."""
    return single_density(a, b, h) * inverse(single_tangent(a, b, h))


@scalar
def normal_from(stream, high, low):
    """A standard normal from 64 random bits and, one time in a hundred, more: see `streams.ziggurat`."""
    layer = low & 255
    place = place_at(high)
    return place * EDGES[layer] if abs(place) < INSIDES[layer] else single_outside(stream, layer, place)


@scalar
def place_at(word):
    """A number between -1 and 1 from 32 random bits."""
    return (float32(int32(word - 2147483648)) + HALF) * CELL


@rare
def single_outside(stream, layer, place):
    """See `streams.outside`."""
    while abs(place) >= INSIDES[layer]:
        w0, w1, w2, _ = other_block(stream)
        if layer == 0:
            far = -log(single_unit(w0)) * OF_TAIL
            if -TWO * log(single_unit(w2)) > far * far:
                return TAIL + far if place > ZERO else -TAIL - far
            continue
        x = place * EDGES[layer]
        inner = exp(HALF * (x * x - EDGES[layer + 1] * EDGES[layer + 1]))
        outer = exp(HALF * (x * x - EDGES[layer] * EDGES[layer]))
        if outer + single_unit(w0) * (inner - outer) < ONE:
            return x
        w0, w1, _, _ = other_block(stream)
        layer = w1 & 255
        place = place_at(w0)
    return place * EDGES[layer]


@scalar
def single_gamma(stream, high, low, shape):
    """See `streams.quick_gamma`."""
    centre = shape - THIRD
    deviate = normal_from(stream, high, low)
    y = deviate * inverse_root(NINE * centre)
    step = low >> 8 & 4095
    if float32(int32(4095 - step)) * (ONE - abs(y)) > QUICK * centre * (y * y) * (y * y):
        return centre * ((ONE + y) * (ONE + y) * (ONE + y))
    return single_slow_gamma(stream, centre, y, step)


@rare
def single_slow_gamma(stream, centre, y, step):
    """See `streams.slow_gamma` and `streams.accepted_gamma`: a proposal is accepted with chance e^z.

    z = deviate^2 / 2 + centre (1 - cube + log(cube)), with cube = (1 + y)^3 and y = deviate / (9 centre)^(1/2).
    """
    w0, _, _, _ = other_block(stream)
    chance = (float32(int32(step)) + single_unit(w0)) * STEP
    while True:
        z = THREE * centre * (log1p_less(y) + y * y * (HALF - y * THIRD))
        if y > -ONE and log(chance) < z:
            return centre * ((ONE + y) * (ONE + y) * (ONE + y))
        w0, w1, _, _ = other_block(stream)
        y = normal_from(stream, w0, w1) * inverse_root(NINE * centre)
        w0, _, _, _ = other_block(stream)
        chance = single_unit(w0)


@bulky
def single_quick_beta(stream, a, b):
    """See `streams.quick_beta`."""
    w0, w1, w2, w3 = late_block(stream)
    x = single_gamma(stream, w0, w1, float32(a))
    return x * inverse(x + single_gamma(stream, w2, w3, float32(b)))


@scalar
def single_exponential_at(chance):
    """See `lazy.exponential_at`."""
    return -log(chance)


@scalar
def single_quiet_rounds(wait, rates, room):
    """See `lazy.quiet_rounds`."""
    return int32(min(float32(wait) * inverse(float32(rates) + NOTHING), float32(int32(room))))


SINGLE: dict[Callable[..., Any], Callable[..., Any]] = {
    ready_block: late_block,
    ready_pair: single_pair,
    quick_beta: single_quick_beta,
    lazy.density: single_density,
    lazy.tangent: single_tangent,
    lazy.tail_draw: single_tail_draw,
    lazy.set_thresholds: single_set_thresholds,
    lazy.rate_of: single_rate_of,
    lazy.exponential_at: single_exponential_at,
    lazy.quiet_rounds: single_quiet_rounds,
    lazy.rival_rate: single_rival_rate,
    lazy.leader_chance: single_leader_chance,
}
"""Functions in single precision by those that they replace."""
