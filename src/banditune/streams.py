"""Random numbers with an address, as scalar functions.

The generator is Philox 4x32-10 (Salmon, Moraes, Dror and Shaw, SC 2011): a bijection of a 128-bit counter under a 64-bit
key. The key belongs to a problem instance; the counter is the address. Nothing is drawn "next": a reward is a function
of (key, noise, arm, pull), so it is the same whoever asks, in whatever order, on whatever machine.

All integers stay between 0 and 2^63: products are masked at once, so plain Python neither overflows nor differs from
compiled code.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from banditune.contracts import Floats, Integers, addressed_by, bulky, rare, scalar

LOW32 = 0xFFFFFFFF
LANES = 32
"""Pulls in a word of 0/1 rewards."""

NOWHERE = LOW32
"""The number of no word: integers that a shortcut keeps are from 0 to this on a GPU."""

REWARDS = 0
UNSEEN = 1
AGENT = 2
PSEUDO = 3
TABLES = 4
"""Kinds of draws, the lowest byte of an address: pulled rewards, the best arm's rewards on steps where it was not
pulled, the agent's own draws, pseudo-rewards, tables of rewards and their rows."""


class Stream(NamedTuple):
    """A place to draw from. The cursor is the Philox counter: (block, pull or block / 2^32, arm, kind and noise)."""

    key0: int
    key1: int
    cursor: Integers


@scalar
def philox(c0, c1, c2, c3, key0, key1):
    """Ten rounds of Philox 4x32: four 32-bit words out of a counter and a key.

    The rounds are written out because a loop around calls of this function is then turned into vector code.
    """
    c0, c1, c2, c3 = mixed(c0, c1, c2, c3, key0, key1)
    c0, c1, c2, c3 = mixed(c0, c1, c2, c3, (key0 + 0x9E3779B9) & LOW32, (key1 + 0xBB67AE85) & LOW32)
    c0, c1, c2, c3 = mixed(c0, c1, c2, c3, (key0 + 2 * 0x9E3779B9) & LOW32, (key1 + 2 * 0xBB67AE85) & LOW32)
    c0, c1, c2, c3 = mixed(c0, c1, c2, c3, (key0 + 3 * 0x9E3779B9) & LOW32, (key1 + 3 * 0xBB67AE85) & LOW32)
    c0, c1, c2, c3 = mixed(c0, c1, c2, c3, (key0 + 4 * 0x9E3779B9) & LOW32, (key1 + 4 * 0xBB67AE85) & LOW32)
    c0, c1, c2, c3 = mixed(c0, c1, c2, c3, (key0 + 5 * 0x9E3779B9) & LOW32, (key1 + 5 * 0xBB67AE85) & LOW32)
    c0, c1, c2, c3 = mixed(c0, c1, c2, c3, (key0 + 6 * 0x9E3779B9) & LOW32, (key1 + 6 * 0xBB67AE85) & LOW32)
    c0, c1, c2, c3 = mixed(c0, c1, c2, c3, (key0 + 7 * 0x9E3779B9) & LOW32, (key1 + 7 * 0xBB67AE85) & LOW32)
    c0, c1, c2, c3 = mixed(c0, c1, c2, c3, (key0 + 8 * 0x9E3779B9) & LOW32, (key1 + 8 * 0xBB67AE85) & LOW32)
    c0, c1, c2, c3 = mixed(c0, c1, c2, c3, (key0 + 9 * 0x9E3779B9) & LOW32, (key1 + 9 * 0xBB67AE85) & LOW32)
    return c0, c1, c2, c3


@scalar
def mixed(c0, c1, c2, c3, key0, key1):
    """One round of Philox 4x32."""
    product0 = 0xD2511F53 * c0
    product1 = 0xCD9E8D57 * c2
    return (
        ((product1 >> 32) & LOW32) ^ c1 ^ key0,
        product1 & LOW32,
        ((product0 >> 32) & LOW32) ^ c3 ^ key1,
        product0 & LOW32,
    )


@addressed_by("pull")
@scalar
def aim(stream, arm, pull):
    """Point a stream at the draws of one pull of one arm."""
    stream.cursor[0] = 0
    stream.cursor[1] = pull
    stream.cursor[2] = arm


@scalar
def block(stream):
    """The next four 32-bit words at this address."""
    cursor = stream.cursor
    first = int(cursor[0])
    cursor[0] = (first + 1) & LOW32
    if first == LOW32:
        cursor[1] += 1
    return philox(first, int(cursor[1]), int(cursor[2]), int(cursor[3]), stream.key0, stream.key1)


class ReadyStream(NamedTuple):
    """A stream whose next block is computed ahead of time, while the processor is busy with the present one."""

    key0: int
    key1: int
    cursor: Integers
    ready: Integers


@scalar
def make_ready(stream, memory):
    """A ready stream from a stream and four integers of memory."""
    made = ReadyStream(stream.key0, stream.key1, stream.cursor, memory)
    ready_block(made)
    return made


@bulky
def ready_block(stream):
    """The block computed last time; computes the next one."""
    ready = stream.ready
    w0, w1, w2, w3 = int(ready[0]), int(ready[1]), int(ready[2]), int(ready[3])
    ready[0], ready[1], ready[2], ready[3] = block(stream)
    return w0, w1, w2, w3


@scalar
def unit(high, low):
    """A number in the open interval (0, 1) from 52 of 64 random bits; the midpoints of 2^52 cells."""
    return ((high << 20 | low >> 12) + 0.5) * (1.0 / 4503599627370496.0)


@scalar
def uniform(stream):
    """A number in the open interval (0, 1)."""
    w0, w1, _, _ = block(stream)
    return unit(w0, w1)


@scalar
def uniform_pair(stream):
    """Two independent uniforms for the price of one."""
    w0, w1, w2, w3 = block(stream)
    return unit(w0, w1), unit(w2, w3)


@scalar
def ready_pair(stream):
    """Two independent uniforms out of a block that is ready."""
    w0, w1, w2, w3 = ready_block(stream)
    return unit(w0, w1), unit(w2, w3)


def _ziggurat(layers: int = 256) -> tuple[Floats, Floats]:
    """Edges of the layers of equal area that cover the normal density, and how much of each lies under it for sure.

    The outermost edge and the layers' area are those of Marsaglia and Tsang (2000) for 256 layers.
    """
    area = 0.00492867323399
    edges = np.zeros(layers + 1)
    edges[0] = area / math.exp(-0.5 * TAIL * TAIL)
    edges[1] = TAIL
    for layer in range(1, layers - 1):
        x = edges[layer]
        edges[layer + 1] = math.sqrt(-2.0 * math.log(area / x + math.exp(-0.5 * x * x)))
    return edges, edges[1:] / edges[:-1]


TAIL = 3.6541528853610088
EDGE, INSIDE = _ziggurat()


@scalar
def ziggurat(stream, high, low):
    """A standard normal from 64 random bits and, one time in a hundred, more (Marsaglia and Tsang 2000)."""
    layer = low & 255
    place = 2.0 * unit(high, low) - 1.0
    if abs(place) < INSIDE[layer]:
        return place * EDGE[layer]
    return outside(stream, layer, place)


@rare
def outside(stream, layer, place):
    """Decide a point outside the sure part of its layer; draw again until one is under the density."""
    while abs(place) >= INSIDE[layer]:
        if layer == 0:
            return math.copysign(TAIL + beyond_tail(stream), place)
        x = place * EDGE[layer]
        inner = math.exp(0.5 * (x * x - EDGE[layer + 1] * EDGE[layer + 1]))
        outer = math.exp(0.5 * (x * x - EDGE[layer] * EDGE[layer]))
        if outer + uniform(stream) * (inner - outer) < 1.0:
            return x
        w0, w1, _, _ = block(stream)
        layer = w1 & 255
        place = 2.0 * unit(w0, w1) - 1.0
    return place * EDGE[layer]


@rare
def beyond_tail(stream):
    """How far beyond TAIL a normal lies that is beyond it."""
    while True:
        first, second = uniform_pair(stream)
        beyond = -math.log(first) / TAIL
        if -2.0 * math.log(second) > beyond * beyond:
            return beyond


@scalar
def normal_pair(stream):
    """Two independent standard normals."""
    w0, w1, w2, w3 = block(stream)
    return ziggurat(stream, w0, w1), ziggurat(stream, w2, w3)


@scalar
def normal(stream):
    """A standard normal."""
    w0, w1, _, _ = block(stream)
    return ziggurat(stream, w0, w1)


@scalar
def exponential(stream):
    """An exponential with mean 1."""
    return -math.log(uniform(stream))


@scalar
def accepted_gamma(shape, deviate, chance):
    """Marsaglia and Tsang's proposal for a gamma with shape >= 1 from a normal and a uniform; -1 if it is rejected."""
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


@rare
def large_gamma(stream, shape):
    """A gamma variate with shape >= 1."""
    value = accepted_gamma(shape, normal(stream), uniform(stream))
    while value < 0.0:
        value = accepted_gamma(shape, normal(stream), uniform(stream))
    return value


@rare
def log_gamma_variate(stream, shape):
    """The logarithm of a gamma variate: small shapes underflow only here, never to a NaN."""
    if shape >= 1.0:
        return math.log(large_gamma(stream, shape))
    # If X is gamma(shape + 1) and U uniform, X U^(1/shape) is gamma(shape).
    return math.log(large_gamma(stream, shape + 1.0)) + math.log(uniform(stream)) / shape


@scalar
def gamma_variate(stream, shape):
    """A draw from the gamma distribution with this shape and scale 1."""
    if shape >= 1.0:
        return large_gamma(stream, shape)
    return math.exp(log_gamma_variate(stream, shape))


@scalar
def large_beta(stream, a, b):
    """A beta variate with both shapes >= 1: two gammas out of two blocks."""
    deviate_a, deviate_b = normal_pair(stream)
    chance_a, chance_b = uniform_pair(stream)
    x = accepted_gamma(a, deviate_a, chance_a)
    if x < 0.0:
        x = large_gamma(stream, a)
    y = accepted_gamma(b, deviate_b, chance_b)
    if y < 0.0:
        y = large_gamma(stream, b)
    return x / (x + y)


@rare
def beta(stream, a, b):
    """A draw from Beta(a, b); shapes so small that only 0 and 1 are left give 0 and 1 in the right proportion."""
    if a >= 1.0 and b >= 1.0:
        return large_beta(stream, a, b)
    if a < 1e-8 and b < 1e-8:
        return 1.0 if uniform(stream) * (a + b) < a else 0.0
    return small_beta(stream, a, b)


@scalar
def small_beta(stream, a, b):
    """A beta variate with a shape below 1: Cheng's rejection BC (1978) with two of its squeezes.

    The odds of the proposal are more / less times e^v; written in e^-|v|, nothing overflows and little cancels.
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
def quick_gamma(stream, high, low, shape):
    """A gamma variate with shape >= 1 out of 64 random bits and, a few times in a hundred or never, more.

    Marsaglia and Tsang's proposal with a squeeze that knows the shape. With y = deviate * scale it is accepted with
    probability exp(-z), z = 3 centre (y^4 / 4 - y^5 / 5 + y^6 / 6 ...) <= (3/4) centre y^4 / (1 - |y|), and exp(-z) is
    above 1 - z. Twelve bits say on which of 4096 steps `chance` stands: mostly that is enough.
    """
    centre = shape - 1.0 / 3.0
    layer = low & 255
    place = ((high << 12 | low >> 20) + 0.5) * (1.0 / 8796093022208.0) - 1.0
    deviate = place * EDGE[layer] if abs(place) < INSIDE[layer] else outside(stream, layer, place)
    y = deviate * (1.0 / math.sqrt(9.0 * centre))
    step = low >> 8 & 4095
    if (4095 - step) * (1.0 - abs(y)) > 3072.0 * centre * (y * y) * (y * y):
        return centre * ((1.0 + y) * (1.0 + y) * (1.0 + y))
    return slow_gamma(stream, shape, deviate, step)


@rare
def slow_gamma(stream, shape, deviate, step):
    """The gamma variate that `quick_gamma` could not decide."""
    value = accepted_gamma(shape, deviate, (step + uniform(stream)) * (1.0 / 4096.0))
    return value if value >= 0.0 else large_gamma(stream, shape)


@bulky
def quick_beta(stream, a, b):
    """A beta variate with both shapes >= 1, mostly out of one block that is ready."""
    w0, w1, w2, w3 = ready_block(stream)
    x = quick_gamma(stream, w0, w1, a)
    return x / (x + quick_gamma(stream, w2, w3, b))


@scalar
def bernoulli(stream, p):
    """1 with probability p, else 0."""
    return 1.0 if uniform(stream) < p else 0.0


@bulky
def bernoulli_word(stream, number, p):
    """Word `number` of an arm's 0/1 rewards: bit i is the reward of pull 32 number + i, each 1 with probability p.

    All 32 lanes compare a uniform, digit by binary digit, with p; a lane is decided at the first digit that differs, so
    about seven random words decide 32 lanes, and p is met to 2^-62. The stream must be aimed at the arm.
    """
    if p >= 1.0:
        return LOW32
    number = int(number)
    arm = int(stream.cursor[2])
    kind = int(stream.cursor[3])
    digits = int(p * 4611686018427387904.0)
    successes = 0
    undecided = LOW32
    draw = 0
    while undecided != 0 and digits != 0:
        w0, w1, w2, w3 = philox(draw, number, arm, kind, stream.key0, stream.key1)
        successes, undecided = decide(successes, undecided, digits >> 61, w0)
        successes, undecided = decide(successes, undecided, digits >> 60, w1)
        successes, undecided = decide(successes, undecided, digits >> 59, w2)
        successes, undecided = decide(successes, undecided, digits >> 58, w3)
        digits = (digits << 4) & 0x3FFFFFFFFFFFFFFF
        draw += 1
    return successes


@scalar
def decide(successes, undecided, digit, word):
    """Compare the lowest bit of `digit`, the next one of p, with the next bit of every lane's uniform."""
    one = -(digit & 1) & LOW32
    return successes | (undecided & one & ~word), undecided & ~(word ^ one)


@addressed_by("pull")
@scalar
def bernoulli_pull(stream, pull, p):
    """One bit of `bernoulli_word`, 1 or 0, without the other 31."""
    if p >= 1.0:
        return 1.0
    number = int(pull) // LANES
    lane = int(pull) % LANES
    arm = int(stream.cursor[2])
    kind = int(stream.cursor[3])
    digits = int(p * 4611686018427387904.0)
    draw = 0
    while digits != 0:
        w0, w1, w2, w3 = philox(draw, number, arm, kind, stream.key0, stream.key1)
        drawn = (w0 >> lane & 1) << 3 | (w1 >> lane & 1) << 2 | (w2 >> lane & 1) << 1 | (w3 >> lane & 1)
        if drawn != digits >> 58:
            return 1.0 if drawn < digits >> 58 else 0.0
        digits = (digits << 4) & 0x3FFFFFFFFFFFFFFF
        draw += 1
    return 0.0


@scalar
def ones(word):
    """The number of ones among the lowest 32 bits."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) & LOW32) >> 24


@rare
def stirling(z):
    """The error of Stirling's formula: log Gamma(z) = (z - 1/2) log z - z + log(2 pi)/2 + stirling(z), for z > 0."""
    if z >= 10.0:
        return stirling_series(z)
    # Climb by Gamma(z + 1) = z Gamma(z).
    product = 1.0
    top = z
    while top < 10.0:
        product *= top
        top += 1.0
    return stirling_series(top) + (top - 0.5) * math.log(top) - (z - 0.5) * math.log(z) - (top - z) - math.log(product)


@scalar
def stirling_series(z):
    """The first terms of the asymptotic series of `stirling`, good to 1e-16 from z = 10 on."""
    w = 1.0 / (z * z)
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188 - w * (691 / 360360)))))) / z


@scalar
def binomial(stream, trials, p):
    """The number of successes in so many trials: by inversion where few are expected, else by Hörmann's BTRS (1993)."""
    if p > 0.5:
        return trials - binomial_half(stream, trials, 1.0 - p)
    return binomial_half(stream, trials, p)


@scalar
def binomial_half(stream, trials, p):
    """A binomial with p <= 1/2."""
    if trials <= 0 or p <= 0.0:
        return 0
    if trials * p < 10.0:
        return binomial_inversion(stream, trials, p)
    return binomial_rejection(stream, trials, p)


@rare
def binomial_inversion(stream, trials, p):
    """Walk up the distribution function; the mean is below 10."""
    odds = p / (1.0 - p)
    while True:
        left = uniform(stream)
        mass = math.exp(trials * math.log1p(-p))
        count = 0
        while left > mass and count < trials:
            left -= mass
            count += 1
            mass *= odds * (trials - count + 1) / count
            if mass < 1e-300:
                # Rounding left a remainder beyond the last representable mass (probability 1e-15): draw again.
                count = trials + 1
        if count <= trials:
            return count


@rare
def binomial_rejection(stream, trials, p):
    """Transformed rejection; the mean is 10 or more."""
    spread = math.sqrt(trials * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = trials * p + 0.5
    inner = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    odds = p / (1.0 - p)
    mode = math.floor((trials + 1) * p)
    while True:
        u, v = uniform_pair(stream)
        u -= 0.5
        edge = 0.5 - abs(u)
        # A float until it is known to be in range: near the edge it can exceed any integer type.
        count = math.floor((2.0 * a / edge + b) * u + centre) * 1.0
        if edge >= 0.07 and v <= inner:
            return int(count)
        if count < 0 or count > trials:
            continue
        bound = (
            (mode + 0.5) * math.log((mode + 1.0) / (odds * (trials - mode + 1.0)))
            + (trials + 1.0) * math.log((trials - mode + 1.0) / (trials - count + 1.0))
            + (count + 0.5) * math.log(odds * (trials - count + 1.0) / (count + 1.0))
            + stirling(mode + 1.0)
            + stirling(trials - mode + 1.0)
            - stirling(count + 1.0)
            - stirling(trials - count + 1.0)
        )
        if math.log(v * alpha / (a / (edge * edge) + b)) <= bound:
            return int(count)
