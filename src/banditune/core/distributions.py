"""Normal, exponential, gamma and beta random numbers as scalar functions."""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.scalar import noinline, noinline_on_gpu, scalar
from banditune.core.streams import convert_to_unit, draw_block, draw_buffered_block, uniform, uniform_pair


def _build_ziggurat(layers: int = 256) -> tuple[FloatArray, FloatArray]:
    """Compute the edges of layers of equal area that cover the normal density, and the share of each that is under it.

    The outermost edge and the area of a layer are those of Marsaglia and Tsang (2000) for 256 layers.
    """
    area = 0.00492867323399
    edges = np.zeros(layers + 1)
    edges[0] = area / math.exp(-0.5 * ZIGGURAT_TAIL * ZIGGURAT_TAIL)
    edges[1] = ZIGGURAT_TAIL
    for layer in range(1, layers - 1):
        x = edges[layer]
        edges[layer + 1] = math.sqrt(-2.0 * math.log(area / x + math.exp(-0.5 * x * x)))
    return edges, edges[1:] / edges[:-1]


ZIGGURAT_TAIL = 3.6541528853610088


ZIGGURAT_EDGES, ZIGGURAT_INNER_SHARES = _build_ziggurat()


@scalar
def ziggurat_normal(stream, high, low):
    """Draw a standard normal from 64 random bits, with probability 1% from more (Marsaglia and Tsang 2000)."""
    layer = low & 255
    position = 2.0 * convert_to_unit(high, low) - 1.0
    if abs(position) < ZIGGURAT_INNER_SHARES[layer]:
        return position * ZIGGURAT_EDGES[layer]
    return decide_ziggurat(stream, layer, position)


@noinline
def decide_ziggurat(stream, layer, position):
    """Accept or reject a point outside the inner part of its layer, and draw again until one is accepted."""
    while abs(position) >= ZIGGURAT_INNER_SHARES[layer]:
        if layer == 0:
            return math.copysign(ZIGGURAT_TAIL + draw_tail_excess(stream), position)
        x = position * ZIGGURAT_EDGES[layer]
        inner_height = math.exp(0.5 * (x * x - ZIGGURAT_EDGES[layer + 1] * ZIGGURAT_EDGES[layer + 1]))
        outer = math.exp(0.5 * (x * x - ZIGGURAT_EDGES[layer] * ZIGGURAT_EDGES[layer]))
        if outer + uniform(stream) * (inner_height - outer) < 1.0:
            return x
        w0, w1, _, _ = draw_block(stream)
        layer = w1 & 255
        position = 2.0 * convert_to_unit(w0, w1) - 1.0
    return position * ZIGGURAT_EDGES[layer]


@noinline
def draw_tail_excess(stream):
    """Draw the excess of a normal over ZIGGURAT_TAIL, given that it is larger."""
    while True:
        first, second = uniform_pair(stream)
        excess = -math.log(first) / ZIGGURAT_TAIL
        if -2.0 * math.log(second) > excess * excess:
            return excess


@scalar
def normal_pair(stream):
    """Draw two independent standard normals."""
    w0, w1, w2, w3 = draw_block(stream)
    return ziggurat_normal(stream, w0, w1), ziggurat_normal(stream, w2, w3)


@scalar
def normal(stream):
    """Draw a standard normal.

    Parameters
    ----------
    stream : Stream
        Source of random numbers: the last argument of `choose`, `update` or `reward`.
    """
    w0, w1, _, _ = draw_block(stream)
    return ziggurat_normal(stream, w0, w1)


@scalar
def exponential(stream):
    """Draw an exponential with mean 1.

    Parameters
    ----------
    stream : Stream
        Source of random numbers: the last argument of `choose`, `update` or `reward`.
    """
    return -math.log(uniform(stream))


@scalar
def propose_gamma(shape, deviate, chance):
    """Return Marsaglia and Tsang's proposal for a gamma with shape >= 1 from a normal and a uniform; -1 if rejected."""
    centre = shape - 1.0 / 3.0
    cube = 1.0 + deviate / math.sqrt(9.0 * centre)
    if cube <= 0.0:
        return -1.0
    cube = cube * cube * cube
    square = deviate * deviate
    if chance < 1.0 - 0.0331 * square * square:
        return centre * cube
    if math.log(chance) < 0.5 * square + centre * (1.0 - cube + math.log(cube)):
        return centre * cube
    return -1.0


@noinline
def gamma_above_one(stream, shape):
    """Draw a gamma variate with shape >= 1."""
    value = propose_gamma(shape, normal(stream), uniform(stream))
    while value < 0.0:
        value = propose_gamma(shape, normal(stream), uniform(stream))
    return value


@noinline
def log_gamma_variate(stream, shape):
    """Draw the logarithm of a gamma variate. For small shapes it may be minus infinity, but never NaN."""
    if shape >= 1.0:
        return math.log(gamma_above_one(stream, shape))
    # If X is gamma(shape + 1) and U uniform, X U^(1/shape) is gamma(shape).
    return math.log(gamma_above_one(stream, shape + 1.0)) + math.log(uniform(stream)) / shape


@scalar
def gamma_variate(stream, shape):
    """Draw from the gamma distribution with scale 1.

    Parameters
    ----------
    stream : Stream
        Source of random numbers: the last argument of `choose`, `update` or `reward`.
    shape : float
        Shape of the distribution, above 0.
    """
    if shape >= 1.0:
        return gamma_above_one(stream, shape)
    return math.exp(log_gamma_variate(stream, shape))


@scalar
def beta_above_one(stream, a, b):
    """Draw a beta variate with both shapes >= 1: two gammas from two blocks."""
    deviate_a, deviate_b = normal_pair(stream)
    chance_a, chance_b = uniform_pair(stream)
    x = propose_gamma(a, deviate_a, chance_a)
    if x < 0.0:
        x = gamma_above_one(stream, a)
    y = propose_gamma(b, deviate_b, chance_b)
    if y < 0.0:
        y = gamma_above_one(stream, b)
    return x / (x + y)


@noinline
def beta(stream, a, b):
    """Draw from Beta(a, b).

    If shapes are so small that only 0 and 1 are possible in float64, these have the right probabilities.

    Parameters
    ----------
    stream : Stream
        Source of random numbers: the last argument of `choose`, `update` or `reward`.
    a : float
        First shape, above 0.
    b : float
        Second shape, above 0.
    """
    if a >= 1.0 and b >= 1.0:
        return beta_above_one(stream, a, b)
    if a < 1e-8 and b < 1e-8:
        return 1.0 if uniform(stream) * (a + b) < a else 0.0
    return beta_below_one(stream, a, b)


@scalar
def beta_below_one(stream, a, b):
    """Draw a beta variate with a shape below 1: Cheng's rejection BC (1978) with two of its squeezes.

    The odds of the proposal are more / less times e^v. All terms are functions of e^-|v|, so that none overflows.
    """
    less = min(a, b)
    more = max(a, b)
    n = a + b
    while True:
        first, second = uniform_pair(stream)
        z = first * first * second
        if first >= 0.5 and z >= 0.25 + (0.5 + 0.25 / (1.0 + more - less)) * less:
            continue
        v = math.log(first / (1.0 - first)) / less
        fall = math.exp(-abs(v))
        high = more if v >= 0.0 else more * fall
        low = less * fall if v >= 0.0 else less
        value = (high if a >= b else low) / (high + low)
        if first >= 0.5 and z <= 0.25:
            return value
        # log(n / (less + more e^v)) + v = -log(1 + less (e^-v - 1) / n)
        if v > -700.0:
            height = -math.log1p(less * ((fall if v >= 0.0 else 1.0 / fall) - 1.0) / n)
        else:
            height = v - math.log(less / n)
        if n * height >= math.log(4.0 * z):
            return value


@scalar
def gamma_from_words(stream, high, low, shape):
    """Draw a gamma variate with shape >= 1 from 64 random bits, with a probability of a few percent from more.

    This is Marsaglia and Tsang's proposal with a squeeze that depends on the shape. With y = deviate * scale, it is
    accepted with probability exp(-z), which is above 1 - z. Here z = 3 centre (y^4 / 4 - y^5 / 5 + y^6 / 6 ...) <=
    (3/4) centre y^4 / (1 - |y|). Twelve bits give one of 4096 steps for `chance`, which is usually enough.
    """
    centre = shape - 1.0 / 3.0
    layer = low & 255
    position = ((high << 12 | low >> 20) + 0.5) * (1.0 / 8796093022208.0) - 1.0
    deviate = (
        position * ZIGGURAT_EDGES[layer]
        if abs(position) < ZIGGURAT_INNER_SHARES[layer]
        else decide_ziggurat(stream, layer, position)
    )
    y = deviate * (1.0 / math.sqrt(9.0 * centre))
    step = low >> 8 & 4095
    if (4095 - step) * (1.0 - abs(y)) > 3072.0 * centre * (y * y) * (y * y):
        return centre * ((1.0 + y) * (1.0 + y) * (1.0 + y))
    return gamma_from_proposal(stream, shape, deviate, step)


@noinline
def gamma_from_proposal(stream, shape, deviate, step):
    """Draw the gamma variate that `gamma_from_words` could not decide."""
    value = propose_gamma(shape, deviate, (step + uniform(stream)) * (1.0 / 4096.0))
    return value if value >= 0.0 else gamma_above_one(stream, shape)


@noinline_on_gpu
def buffered_beta(stream, a, b):
    """Draw a beta variate with both shapes >= 1, usually from one buffered block."""
    w0, w1, w2, w3 = draw_buffered_block(stream)
    x = gamma_from_words(stream, w0, w1, a)
    return x / (x + gamma_from_words(stream, w2, w3, b))
