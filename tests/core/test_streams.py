"""Philox, compared with its published vectors, and samplers, compared with SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from banditune.core import binomial_draws, distributions, streams
from banditune.core.streams import Stream
from banditune.simulation.bind import bind_function
from banditune.simulation.compilation import compile_kernel

DRAWS = 100_000
ALPHA = 1e-4

# Known-answer vectors of Random123 1.14 (kat_vectors), philox4x32 with 10 rounds: counter, key, result.
VECTORS = [
    ("00000000 00000000 00000000 00000000", "00000000 00000000", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    ("ffffffff ffffffff ffffffff ffffffff", "ffffffff ffffffff", "408f276d 41c83b0e a20bc7c6 6d5451fd"),
    ("243f6a88 85a308d3 13198a2e 03707344", "a4093822 299f31d0", "d16cfe09 94fdcceb 5001e420 24126ea1"),
]


def parse_words(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "result"), VECTORS)
def test_philox_gives_the_published_words(counter, key, result):
    arguments = (*parse_words(counter), *parse_words(key))
    assert list(streams.philox(*arguments)) == parse_words(result)
    assert list(compile_kernel(streams.philox)(*arguments)) == parse_words(result)


def draw(sampler, *shapes: float, size: int = DRAWS, key: int = 1) -> np.ndarray:
    """Draws of a sampler from one stream, compiled."""

    def fill0(out, cursor, first):
        stream = Stream(first, 20, cursor)
        for index in range(len(out)):
            out[index] = sampler(stream)

    def fill1(out, cursor, first, a):
        stream = Stream(first, 20, cursor)
        for index in range(len(out)):
            out[index] = sampler(stream, a)

    def fill2(out, cursor, first, a, b):
        stream = Stream(first, 20, cursor)
        for index in range(len(out)):
            out[index] = sampler(stream, a, b)

    out = np.empty(size)
    compile_kernel((fill0, fill1, fill2)[len(shapes)])(out, np.zeros(4, np.int64), key, *shapes)
    return out


def compute_ks_distance(sample: np.ndarray, cdf, resolution: float = 0.0) -> float:
    """The Kolmogorov-Smirnov distance of rounded values: F is taken at the edges of their cells."""
    values, counts = np.unique(sample, return_counts=True)
    above = np.cumsum(counts) / len(sample)
    below = above - counts / len(sample)
    half = np.spacing(values) / 2 + resolution
    return max(np.max(above - cdf(values + half)), np.max(cdf(values - half) - below))


def assert_ks_agrees(sample: np.ndarray, cdf, resolution: float = 0.0) -> None:
    assert np.isfinite(sample).all()
    distance = compute_ks_distance(sample, cdf, resolution)
    assert stats.kstwo.sf(distance, len(sample)) > ALPHA, distance


def test_uniforms_are_uniform_and_strictly_between_0_and_1():
    sample = draw(streams.uniform)
    assert sample.min() > 0
    assert sample.max() < 1
    assert_ks_agrees(sample, stats.uniform.cdf)
    assert 0 < streams.convert_to_unit(0, 0) < streams.convert_to_unit(2**32 - 1, 2**32 - 1) < 1


def test_normals_are_normal_in_the_tails():
    assert_ks_agrees(draw(distributions.normal), stats.norm.cdf)
    sample = np.abs(draw(distributions.normal, size=4_000_000, key=5))
    for edge in (0.2, 1.0, 3.0, 3.6, 3.7, 4.0, 4.5):
        expected = 2 * stats.norm.sf(edge)
        se = math.sqrt(expected * (1 - expected) / len(sample))
        assert abs(np.mean(sample > edge) - expected) < 4 * se, edge


def test_pairs_of_normals_are_independent():
    def fill(out, cursor):
        stream = Stream(7, 8, cursor)
        for index in range(len(out) // 2):
            out[2 * index], out[2 * index + 1] = distributions.normal_pair(stream)

    out = np.empty(2 * DRAWS)
    compile_kernel(fill)(out, np.zeros(4, np.int64))
    first, second = out[::2], out[1::2]
    assert_ks_agrees(second, stats.norm.cdf)
    assert abs(np.corrcoef(first, second)[0, 1]) < 4 / math.sqrt(DRAWS)
    assert abs(np.corrcoef(first**2, second**2)[0, 1]) < 4 / math.sqrt(DRAWS)


def test_exponentials_have_the_exponential_law():
    assert_ks_agrees(draw(distributions.exponential), stats.expon.cdf)


@pytest.mark.parametrize("shape", [0.05, 0.3, 0.99, 1.0, 1.5, 7.0, 100.0, 1e4, 1e6, 1e9])
def test_gamma_variates_have_the_gamma_law(shape):
    sample = draw(distributions.gamma_variate, shape)
    assert sample.min() >= 0
    assert_ks_agrees(sample, stats.gamma(shape).cdf)


@pytest.mark.parametrize("shape", [1e-300, 1e-8])
def test_logarithms_of_gamma_variates_with_tiny_shapes_are_scaled_exponentials(shape):
    """log X is -Exp / shape, up to a term of order 1."""
    sample = draw(distributions.log_gamma_variate, shape)
    assert_ks_agrees(sample * shape, lambda x: np.exp(np.minimum(x, 0)), resolution=1e-4)


@pytest.mark.parametrize("shape", [1e-3, 0.01, 0.04, 2.0])
def test_logarithms_of_gamma_variates_have_the_gamma_law(shape):
    sample = draw(distributions.log_gamma_variate, shape)
    assert_ks_agrees(np.exp(sample[sample > -600]), lambda x: truncate_below(stats.gamma(shape).cdf, x, math.exp(-600)))


def truncate_below(cdf, x, low):
    return np.clip((cdf(x) - cdf(low)) / (1 - cdf(low)), 0, 1)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.05, 0.05),
        (0.05, 3),
        (0.5, 0.5),
        (1, 1),
        (1, 0.3),
        (2, 5),
        (30, 4),
        (1e3, 2e3),
        (1e6, 1),
        (1e9, 1e9),
        (0.05, 1e9),
    ],
)
def test_beta_variates_have_the_beta_law(a, b):
    sample = draw(distributions.beta, a, b)
    assert sample.min() >= 0
    assert sample.max() <= 1
    assert_ks_agrees(sample, lambda x: special.betainc(a, b, np.clip(x, 0, 1)))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        (0.01, 0.01),
        (0.01, 0.02),
        (1e-3, 4e-3),
        (1e-9, 3e-9),
        (1e-320, 1e-320),
        (1e-4, 5),
        (1e9, 0.05),
        (1, 1e-17),
        (4e-16, 5),
        (5, 4e-16),
    ],
)
def test_beta_variates_with_tiny_shapes_have_the_right_masses_at_both_ends(a, b):
    sample = draw(distributions.beta, a, b)
    assert ((sample >= 0) & (sample <= 1)).all()
    for edge in (1e-12, 0.5, 1 - 1e-12):
        expected = float(special.betainc(a, b, edge)) if a > 1e-300 else 0.5
        test_result = stats.binomtest(int(np.sum(sample <= edge)), DRAWS, expected)
        assert test_result.pvalue > 6e-5, edge  # as unlikely as 4 standard errors; counts can be small here


@pytest.mark.parametrize("p", [0.0, 1e-12, 0.004, 0.37, 0.5, 0.999, 1 - 1e-12, 1.0])
def test_bernoulli_words_have_independent_bits_of_the_right_mean(p):
    def fill(out, cursor, p):
        stream = Stream(3, 4, cursor)
        for number in range(len(out)):
            out[number] = binomial_draws.bernoulli_word(stream, number, p)

    out = np.empty(40_000, np.int64)
    compile_kernel(fill)(out, np.zeros(4, np.int64), p)
    bits = (out[:, None] >> np.arange(32)) & 1
    assert ((out >= 0) & (out < 2**32)).all()
    se = math.sqrt(p * (1 - p) / bits.size)
    assert abs(bits.mean() - p) <= 4 * se + 1e-9
    per_lane = math.sqrt(p * (1 - p) / len(bits))
    assert (np.abs(bits.mean(axis=0) - p) <= 4.5 * per_lane + 1e-9).all()
    if 0.01 < p < 0.99:
        correlation = np.corrcoef(bits.T)[~np.eye(32, dtype=bool)]
        assert np.abs(correlation).max() < 5 / math.sqrt(len(bits))
        assert abs(np.corrcoef(bits[:-1, 31], bits[1:, 0])[0, 1]) < 4 / math.sqrt(len(bits))


@pytest.mark.parametrize("p", [0.0, 1e-9, 0.2, 0.73, 1 - 2**-40, 1.0])
def test_a_bernoulli_bit_is_a_bit_of_its_word(p):
    stream = Stream(11, 12, np.array([0, 0, 5, 256], np.int64))
    for number in range(4):
        word = binomial_draws.bernoulli_word(stream, number, p)
        pulls = [binomial_draws.bernoulli_bit(stream, 32 * number + lane, p) for lane in range(32)]
        assert pulls == [word >> lane & 1 for lane in range(32)]


def test_ones_counts_bits():
    words = [0, 1, 0xFFFFFFFF, 0x80000000, 0x55555555, 123456789]
    assert [binomial_draws.count_ones(word) for word in words] == [word.bit_count() for word in words]


@pytest.mark.parametrize(
    ("trials", "p"),
    [(1, 0.3), (10, 0.5), (20, 0.95), (1000, 0.004), (1000, 0.3), (10**6, 0.5), (10**9, 1e-8), (10**12, 0.7)],
)
def test_binomials_have_the_binomial_law(trials, p):
    sample = draw(
        binomial_draws.binomial, trials, p, size=DRAWS if trials < 10**12 else DRAWS // 5
    )  # SciPy is slow there
    assert sample.min() >= 0
    assert sample.max() <= trials
    law = stats.binom(trials, p)
    values, counts = np.unique(sample, return_counts=True)
    above = np.cumsum(counts) / len(sample)
    distance = max(
        np.abs(above - law.cdf(values)).max(), np.abs(above - counts / len(sample) - law.cdf(values - 1)).max()
    )
    assert stats.kstwo.sf(distance, len(sample)) > ALPHA


@pytest.mark.parametrize(("trials", "p", "value"), [(0, 0.5, 0), (7, 0.0, 0), (7, 1.0, 7)])
def test_binomials_without_randomness_are_exact(trials, p, value):
    assert (draw(binomial_draws.binomial, trials, p, size=100) == value).all()


def test_the_stirling_error_agrees_with_the_log_gamma_function():
    for z in [1e-3, 0.5, 1.0, 2.5, 9.99, 10.0, 123.4]:
        expected = special.gammaln(z) - ((z - 0.5) * math.log(z) - z + 0.5 * math.log(2 * math.pi))
        assert binomial_draws.compute_stirling_error(z) == pytest.approx(expected, abs=2e-13)
    assert binomial_draws.compute_stirling_error(1e8) == pytest.approx(1 / 12e8)


def test_a_counter_carries_into_the_next_word():
    stream = Stream(1, 2, np.array([2**32 - 1, 0, 0, 2], np.int64))
    first = streams.uniform(stream)
    assert stream.cursor.tolist() == [0, 1, 0, 2]
    assert streams.uniform(stream) != first


def test_plain_python_and_compiled_samplers_agree_bitwise():
    def fill(out, cursor):
        stream = Stream(5, 6, cursor)
        for index in range(len(out) // 6):
            out[6 * index] = streams.uniform(stream)
            out[6 * index + 1] = distributions.normal(stream)
            out[6 * index + 2] = distributions.gamma_variate(stream, 0.3 + index)
            out[6 * index + 3] = distributions.beta(stream, 0.5 + index % 3, 2.0)
            out[6 * index + 4] = binomial_draws.binomial(stream, 40 + index, 0.4)
            out[6 * index + 5] = distributions.exponential(stream)

    plain, compiled = np.empty(600), np.empty(600)
    bind_function(fill)[0](plain, np.zeros(4, np.int64))
    compile_kernel(fill)(compiled, np.zeros(4, np.int64))
    assert (plain == compiled).all()
