"""Bernoulli and binomial random numbers as scalar functions, one at a time or 32 packed into a word."""

from __future__ import annotations

import math

from banditune.core.scalar import addressed_by, noinline, noinline_on_gpu, scalar
from banditune.core.streams import MASK32, WORD_BITS, philox, uniform, uniform_pair


@scalar
def bernoulli(stream, p):
    """Draw 1 with probability p, else 0.

    Parameters
    ----------
    stream : Stream
        Source of random numbers: the last argument of `choose`, `update` or `reward`.
    p : float
        The probability.
    """
    return 1.0 if uniform(stream) < p else 0.0


@noinline_on_gpu
def bernoulli_word(stream, number, p):
    """Draw word `number` of an arm's 0/1 rewards: bit i is the reward of pull 32 number + i.

    Each bit is 1 with probability p, exact to 2^-62. In all 32 lanes a uniform is compared with p, one binary digit after
    the other. The first different digit decides a lane, so about seven random words are enough for all 32. The stream must
    have the address of the arm.
    """
    if p >= 1.0:
        return MASK32
    number = int(number)
    arm = int(stream.cursor[2])
    kind = int(stream.cursor[3])
    digits = int(p * 4611686018427387904.0)
    successes = 0
    undecided = MASK32
    draw = 0
    while undecided != 0 and digits != 0:
        w0, w1, w2, w3 = philox(draw, number, arm, kind, stream.key0, stream.key1)
        successes, undecided = compare_digit(successes, undecided, digits >> 61, w0)
        successes, undecided = compare_digit(successes, undecided, digits >> 60, w1)
        successes, undecided = compare_digit(successes, undecided, digits >> 59, w2)
        successes, undecided = compare_digit(successes, undecided, digits >> 58, w3)
        digits = (digits << 4) & 0x3FFFFFFFFFFFFFFF
        draw += 1
    return successes


@scalar
def compare_digit(successes, undecided, digit, word):
    """Compare the lowest bit of `digit`, the next one of p, with the next bit of every lane's uniform."""
    last_bit = -(digit & 1) & MASK32
    return successes | (undecided & last_bit & ~word), undecided & ~(word ^ last_bit)


@addressed_by("pull")
@scalar
def bernoulli_bit(stream, pull, p):
    """Draw one bit of `bernoulli_word`, 1 or 0, without the other 31."""
    if p >= 1.0:
        return 1.0
    number = int(pull) // WORD_BITS
    lane = int(pull) % WORD_BITS
    arm = int(stream.cursor[2])
    kind = int(stream.cursor[3])
    digits = int(p * 4611686018427387904.0)
    draw = 0
    while digits != 0:
        w0, w1, w2, w3 = philox(draw, number, arm, kind, stream.key0, stream.key1)
        uniform_digits = (w0 >> lane & 1) << 3 | (w1 >> lane & 1) << 2 | (w2 >> lane & 1) << 1 | (w3 >> lane & 1)
        if uniform_digits != digits >> 58:
            return 1.0 if uniform_digits < digits >> 58 else 0.0
        digits = (digits << 4) & 0x3FFFFFFFFFFFFFFF
        draw += 1
    return 0.0


@scalar
def count_ones(word):
    """Count the ones among the lowest 32 bits."""
    word = word - ((word >> 1) & 0x55555555)
    word = (word & 0x33333333) + ((word >> 2) & 0x33333333)
    word = (word + (word >> 4)) & 0x0F0F0F0F
    return ((word * 0x01010101) & MASK32) >> 24


@noinline
def compute_stirling_error(z):
    """Compute the error of Stirling's formula, for z > 0.

    log Gamma(z) = (z - 1/2) log z - z + log(2 pi)/2 + error(z).
    """
    if z >= 10.0:
        return sum_stirling_series(z)
    # Increase z by Gamma(z + 1) = z Gamma(z).
    product = 1.0
    top = z
    while top < 10.0:
        product *= top
        top += 1.0
    return (
        sum_stirling_series(top) + (top - 0.5) * math.log(top) - (z - 0.5) * math.log(z) - (top - z) - math.log(product)
    )


@scalar
def sum_stirling_series(z):
    """Sum the asymptotic series of `compute_stirling_error`, accurate to 1e-16 for z >= 10."""
    w = 1.0 / (z * z)
    return (1 / 12 - w * (1 / 360 - w * (1 / 1260 - w * (1 / 1680 - w * (1 / 1188 - w * (691 / 360360)))))) / z


@scalar
def binomial(stream, trials, p):
    """Draw the number of successes in independent trials.

    The method is inversion if fewer than 10 successes are expected, else Hörmann's BTRS (1993).

    Parameters
    ----------
    stream : Stream
        Source of random numbers: the last argument of `choose`, `update` or `reward`.
    trials : int
        Number of trials.
    p : float
        Probability of a success.
    """
    if p > 0.5:
        return trials - binomial_lower_half(stream, trials, 1.0 - p)
    return binomial_lower_half(stream, trials, p)


@scalar
def binomial_lower_half(stream, trials, p):
    """Draw a binomial with p <= 1/2."""
    if trials <= 0 or p <= 0.0:
        return 0
    if trials * p < 10.0:
        return binomial_inversion(stream, trials, p)
    return binomial_rejection(stream, trials, p)


@noinline
def binomial_inversion(stream, trials, p):
    """Draw by inversion: sum the distribution from 0 on. The mean must be below 10."""
    odds = p / (1.0 - p)
    while True:
        remaining = uniform(stream)
        mass = math.exp(trials * math.log1p(-p))
        count = 0
        while remaining > mass and count < trials:
            remaining -= mass
            count += 1
            mass *= odds * (trials - count + 1) / count
            if mass < 1e-300:
                # Because of rounding, the number is beyond the last representable mass (probability 1e-15). Draw again.
                count = trials + 1
        if count <= trials:
            return count


@noinline
def binomial_rejection(stream, trials, p):
    """Draw by transformed rejection. The mean must be 10 or more."""
    spread = math.sqrt(trials * p * (1.0 - p))
    b = 1.15 + 2.53 * spread
    a = -0.0873 + 0.0248 * b + 0.01 * p
    centre = trials * p + 0.5
    squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * spread
    odds = p / (1.0 - p)
    mode = math.floor((trials + 1) * p)
    while True:
        u, v = uniform_pair(stream)
        u -= 0.5
        edge = 0.5 - abs(u)
        # The count is a float until its range is checked, because it may be too large for any integer type.
        count = math.floor((2.0 * a / edge + b) * u + centre) * 1.0
        if edge >= 0.07 and v <= squeeze:
            return int(count)
        if count < 0 or count > trials:
            continue
        bound = (
            (mode + 0.5) * math.log((mode + 1.0) / (odds * (trials - mode + 1.0)))
            + (trials + 1.0) * math.log((trials - mode + 1.0) / (trials - count + 1.0))
            + (count + 0.5) * math.log(odds * (trials - count + 1.0) / (count + 1.0))
            + compute_stirling_error(mode + 1.0)
            + compute_stirling_error(trials - mode + 1.0)
            - compute_stirling_error(count + 1.0)
            - compute_stirling_error(trials - count + 1.0)
        )
        if math.log(v * alpha / (a / (edge * edge) + b)) <= bound:
            return int(count)
