"""The two prices of a width: curves for runs that go well and for runs that go wrong, and their fit to simulated regrets.

A run either goes well (a regret that grows with the width: the price of exploring) or goes wrong (a large regret, ever
rarer as the width grows: the price of not exploring). Where good runs scatter a lot, their tail still counts as good. Two
libraries of curves say what both prices may look like; `fit` weighs all curves by how well they explain the runs so far.
What no curve of the first library explains, a smooth deviation does, which is learnt where there are many runs; so is how
smooth it is.

All functions work on many searches at a time: the first axis of an array is the search, a single one has length 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from banditune.contracts import Floats, Integers, Range
from banditune.tuners.seen import Failure, density

FINE = 162
"""Answers are read off so many points. NoTeS stops at such points too: 162 = 2 * 3^4."""

POWERS = (0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0, 2.3)
"""How the price of exploring grows with the width."""

FLOORS = (0.0, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.7)
"""Its share that is paid at every width."""

DIP_FLOORS, DIP_HEIGHTS, DIP_WIDTHS = (0.0, 0.025, 0.1, 0.4), (0.3, 1.0, 3.0), (0.05, 0.1, 0.2, 0.4)
"""For problems on which all runs lose more where too little is explored: an exponential on top."""

DECAYS, REACHES, HEIGHTS = (0.8, 1.0, 1.3, 1.7, 2.3), np.geomspace(0.01, 2.4, 36), np.geomspace(0.004, 100, 40)
"""Failures cost height * exp(-(g / reach)^decay) on average at the width g, in units of what good runs lose at the largest
width. Where the reach is above 1, failures are common at every width.
"""

LOG_DECAYS, LOG_REACHES, LOG_HEIGHTS = {0.4: 0.6, 1.0: 1.0, 1.4: 1.0, 2.0: 1.0}, 29, np.geomspace(0.02, 100, 26)
"""On a log scale, whose reaches begin below its lowest width; decays with how much each weighs before the first run. Where
instances differ in how much they need, as explore-then-commit's do, failures end one by one, over decades: the first decay.
"""

FAR, FAR_PRIOR = 0.6, 0.1
"""Where nothing else is known, failures that reach further than this weigh so much before the first run, others 1."""

UNSEEN = 0.25
"""On a linear scale, so much of what failures weigh before the first run is spread like that, the rest where some were."""

FAINT = 1e-12
"""The least share of their height that failures cost, so that its powers are numbers."""

POWER = 1.2
"""The variance of what failures cost is taken proportional to this power of its mean."""

PSEUDO = 16.0
"""Squared units of one failure that is taken for granted: the variance is sane before the first one is seen."""

TRUST = 0.75
"""A search, and its answer, take the dispersion of failures to be so much of its estimate; what is said of the answer takes
all of it. So the runs are heard sooner against what was believed before the first, and what is said still holds.
"""

SPREADS, SMALL = 1.35, 0.06
"""Which runs above `patience` times the level are good all the same: they are no further above it than `SPREADS` times
`patience` standard deviations of good runs, and small: below this share of what failures cost.
"""

LUCK = 2.0
"""A run is good whose regret is no further above the level than so many standard deviations of luck alone."""

CURVE_ERROR = 0.03
"""How far the mean of good runs may be from every curve, as a share."""

POINTS, BEND = 48, 0.1
"""Runs are made at so many points, evenly spread in log(width + bend): optima at small widths are narrower."""

DEVIATION = 0.2
"""The smooth deviation from the curves of good runs: its share of them."""

LENGTHS, LOG_LENGTHS = {0.15: 0.03, 0.3: 0.2, 0.6: 0.77}, {0.3: 0.2, 0.6: 0.8}
"""The lengths that it may have in log(width + bend), on a log scale in log(width), and how likely each is before runs."""

FAINTEST = 1e-6
"""Waves of the deviation with so small a share of the largest one's variance are left out."""

STARTS = (4, 11, 27, 66, 108, 162)
"""The first runs are made near these points of `FINE`."""

LEAST = 1e-3
"""Good runs lose no less than this share of the largest."""

UNKNOWN = 1e6
"""The variance of a mean of no runs."""

PASSES = 4
"""The split into good and bad runs and the curves depend on each other; so often each is renewed."""


Spread = Callable[[Any], Floats]
"""Takes numbers of runs to points, or of points to runs."""


class Library(NamedTuple):
    """Curves at the points where runs are made (`points`, a part of `fine`) and at those where answers are read.

    A curve of failures is one of `heights` times a row of `bad`; `bad_prior` has all pairs, heights of the first row first.
    `roots` make deviations of standard normals, (lengths, fine points, normals); `length_prior` is how likely each is.
    """

    fine: Floats
    places: Integers
    points: Floats
    start: Integers
    good: Floats
    good_squared: Floats
    good_fine: Floats
    prior: Floats
    heights: Floats
    bad: Floats
    bad_prior: Floats
    bad_seen: Floats
    bad_unseen: Floats
    bad_fine: Floats
    roots: Floats
    length_prior: Floats


class Split(NamedTuple):
    """Good runs and bad ones: curves through the good ones, their level at every point and how far they scatter.

    By point, `good_runs`, sums of what is `ordinary` and of the `excess` in units of `unit`; `squares` of all excess.
    """

    weight: Floats
    height: Floats
    spread: Floats
    level: Floats
    dispersion: Floats
    unit: Floats
    good_runs: Floats
    ordinary: Floats
    excess: Floats
    squares: Floats


class Fit(NamedTuple):
    """What is believed after some runs: weights of all curves, heights and their standard deviations, the unit of failures.

    `lengths` are weights of the lengths that the deviation may have, `centre` and `turn` what it is then: see
    `deviation_of`.
    """

    weight: Floats
    height: Floats
    spread: Floats
    bad_weight: Floats
    unit: Floats
    lengths: Floats
    centre: Floats
    turn: Floats
    runs: Floats
    mean: Floats
    variance: Floats


def library_of(among: Range) -> Library:
    """The library for a range. Widths are relative to the range; a log scale has them down to its lowest value."""
    return _library(among.low / among.high if among.scale == "log" else 0.0)


def linear_library() -> Library:
    """The library of linear scales."""
    return _library(0.0)


@lru_cache(maxsize=16)
def _library(lowest: float) -> Library:
    # The last bits of a product of matrices depend on the number of threads that share it; they must not.
    with threadpool_limits(limits=1, user_api="blas"):
        return _log(lowest) if lowest else _linear()


def _linear() -> Library:
    fine = np.arange(1, FINE + 1) / FINE
    even = np.geomspace(fine[0] + BEND, 1 + BEND, POINTS) - BEND
    places = np.unique(np.round(FINE * even).astype(int)) - 1
    start = np.array([np.abs(places + 1 - near).argmin() for near in STARTS])
    ways = list(product(REACHES, DECAYS))
    prior = seen_prior(failures_of(HEIGHTS, ways))
    return _made(fine, places, start, HEIGHTS, ways, prior, roots_at(np.log(fine + BEND), LENGTHS))


def _log(lowest: float) -> Library:
    fine = np.geomspace(lowest, 1, FINE)
    places = np.unique(np.round(np.linspace(0, FINE - 1, 32)).astype(int))
    start = np.round(np.linspace(0, len(places) - 1, 5)).astype(int)
    reaches = np.geomspace(min(REACHES[0], 0.4 * lowest), REACHES[-1], LOG_REACHES)
    ways = list(product(reaches, LOG_DECAYS))
    failures = failures_of(LOG_HEIGHTS, ways)
    prior = even_prior(failures) + np.log([LOG_DECAYS[decay] for _, _, decay in failures])
    return _made(fine, places, start, LOG_HEIGHTS, ways, prior, roots_at(np.log(fine), LOG_LENGTHS))


def _made(
    fine: Floats, places: Integers, start: Integers, heights: Floats, ways: Sequence[tuple[float, float]],
    bad_prior: Floats, waves: tuple[Floats, Floats],
) -> Library:  # fmt: skip
    good, prior = good_curves(fine)
    bad = bad_curves(fine, ways)
    few = bad[:, places]
    return Library(
        fine, places, fine[places], start, good[:, places], good[:, places] ** 2, good, prior, heights,
        few, bad_prior, few ** (1 - POWER) / (1 - POWER), few ** (2 - POWER) / (2 - POWER), bad, *waves,
    )  # fmt: skip


def roots_at(x: Floats, lengths: Mapping[float, float]) -> tuple[Floats, Floats]:
    """Roots of the covariance of deviations at these places, one for each length, and how likely the lengths are.

    So smooth a deviation is a sum of few waves; those with less than `FAINTEST` of the largest one's variance, whatever the
    length, are left out.
    """
    apart = np.subtract.outer(x, x) / np.array(list(lengths))[:, None, None]
    variance, waves = np.linalg.eigh(np.exp(-0.5 * apart**2))
    count = int((variance > FAINTEST * variance[:, -1:]).sum(axis=1).max())
    roots = DEVIATION * waves[:, :, -count:] * np.sqrt(np.maximum(variance[:, None, -count:], 0))
    return np.asarray(roots, np.float64), np.array(list(lengths.values()))


def good_curves(g: Floats) -> tuple[Floats, Floats]:
    """Curves of runs that go well, a row each, and the logarithms of their prior weights: half for those with a dip."""
    plain = [floor + (1 - floor) * g**power for power, floor in product(POWERS, FLOORS)]
    dips = [
        floor + (1 - floor) * g**power + height * np.exp(-g / width)
        for power, floor, height, width in product(POWERS, DIP_FLOORS, DIP_HEIGHTS, DIP_WIDTHS)
    ]
    prior = np.repeat([0.5 / len(plain), 0.5 / len(dips)], [len(plain), len(dips)])
    return np.array(plain + dips), np.log(prior)


def bad_curves(g: Floats, ways: Sequence[tuple[float, float]]) -> Floats:
    """How failures end, a row for each (reach, decay): what they cost on average in units of their height."""
    reach, decay = np.array(ways).T[:, :, None]
    return np.asarray(np.maximum(np.exp(-((g / reach) ** decay)), FAINT), np.float64)


def failures_of(heights: Floats, ways: Sequence[tuple[float, float]]) -> list[Failure]:
    """All heights of the first way, then of the next."""
    return [(float(height), *way) for way, height in product(ways, heights)]


def even_prior(failures: Sequence[Failure]) -> Floats:
    """The logarithms of prior weights that know nothing but that failures seldom reach over all widths."""
    return np.log([FAR_PRIOR if reach > FAR else 1.0 for _, reach, _ in failures])


def seen_prior(failures: Sequence[Failure]) -> Floats:
    """The logarithms of prior weights: most of them where failures of other problems were."""
    even, seen = np.exp(even_prior(failures)), density(failures)
    return np.asarray(np.log(UNSEEN * even / even.mean() + (1 - UNSEEN) * seen / seen.mean()), np.float64)


def fit(library: Library, at: Integers, regrets: Floats) -> Fit:
    """Weigh all curves by the runs so far: run t of a search was made at point `at[t]` and lost `regrets[t]`."""
    by_point, at_runs = between(at, len(library.points))
    runs = by_point(np.ones(at.shape))
    some = np.maximum(runs, 1)
    scale = scale_of(library, at, regrets)
    lost = regrets / scale
    parts = split(library, by_point, at_runs, lost, patience_of(regrets.shape[1]))
    bad_weight, bad_level, bad_dispersion = weigh_bad(library, runs, parts.excess, parts.squares)
    # Where failures are rare a point may have seen none; elsewhere the model may be wrong: the larger of two variances.
    expected = parts.dispersion * parts.level + bad_dispersion * parts.unit**2 * bad_level**POWER
    # How far ordinary parts are from the curves, as a share, and its variance.
    seen = parts.good_runs > 0
    residual = np.where(seen, parts.ordinary / some / parts.level - 1, 0)
    noise = np.where(seen, parts.dispersion * parts.good_runs / some**2 / parts.level, UNKNOWN)
    return Fit(
        parts.weight, parts.height * scale, parts.spread * scale, bad_weight, parts.unit * scale,
        *deviation_of(library, residual, noise),
        runs,
        by_point(regrets) / some,
        scale**2 * np.maximum(expected, own_variance(by_point, runs, lost)),
    )  # fmt: skip


def patience_of(runs: int) -> float:
    """How many times the level of good runs a run may lose and still be good."""
    return max(3.0, 1 + 0.5 * math.log(runs))


def split(library: Library, by_point: Spread, at_runs: Spread, lost: Floats, patience: float) -> Split:
    """Part good runs from bad ones. Which are good depends on the curves through them: both are renewed a few times."""
    level = np.sqrt(library.points) * np.ones((len(lost), 1))  # generous
    dispersion = np.zeros((len(lost), 1))
    luck, share = luck_of(lost), share_of(lost)
    for _ in range(PASSES):
        is_good = lost <= at_runs(good_up_to(lost, at_runs, level, dispersion, luck, share, patience))
        count = by_point(is_good)
        mean = by_point(lost * is_good) / np.maximum(count, 1)
        # Their variance is taken proportional to their mean; a tenth of a run is taken for granted.
        squares = (((lost - at_runs(level)) * is_good) ** 2).sum(axis=1, keepdims=True)
        dispersion = (squares + 0.1) / ((count * level).sum(axis=1, keepdims=True) + 1)
        weight, height, spread = weigh_good(library, count, mean, level, dispersion)
        level = np.maximum((weight * height) @ library.good, LEAST)
    unit = (weight * height) @ library.good[:, -1:]
    at_level = at_runs(level)
    is_good = lost <= at_runs(good_up_to(lost, at_runs, level, dispersion, luck, share, patience))
    # A run is its ordinary part, for a failure the level, and its excess: split once, they add up to what was lost.
    ordinary = by_point(np.where(is_good, lost, at_level))
    excess = np.where(is_good, 0, (lost - at_level) / unit)
    squares = (excess**2).sum(axis=1, keepdims=True)
    return Split(
        weight, height, spread, level, dispersion, unit, by_point(is_good), ordinary, by_point(excess), squares
    )


def luck_of(lost: Floats) -> Floats:
    """How much luck alone makes of a run: realised regrets below 0 are nothing but luck, expected ones have none."""
    below = np.minimum(lost, 0)
    count = (below < 0).sum(axis=1, keepdims=True)
    return np.asarray(np.sqrt((below**2).sum(axis=1, keepdims=True) / np.maximum(count, 1)), np.float64)


def share_of(lost: Floats) -> Floats:
    """The share of runs that lose anything at all; where arms may be equal, many do not."""
    return np.asarray(np.maximum((lost != 0).mean(axis=1, keepdims=True), 1 / lost.shape[1]), np.float64)


def good_up_to(
    lost: Floats, at_runs: Spread, level: Floats, dispersion: Floats, luck: Floats, share: Floats, patience: float
) -> Floats:
    """What a run may lose at every point and still be good: a few times the level of good runs.

    Where good runs scatter more than that, as on two arms that are nearly alike, the tail of good runs is no failure: it
    does not vanish as failures do, and a curve through both is right nowhere. So a run may also be a few standard
    deviations above the level while that is little against the size of failure in which most is lost.
    """
    # Runs that lose nothing say nothing of what a good run may lose: the others' level counts.
    usual = np.maximum(patience * level / share, level + LUCK * luck)
    far = (lost - at_runs(level)) * (lost > at_runs(usual))
    cost = (far**2).sum(axis=1, keepdims=True) / np.maximum(far.sum(axis=1, keepdims=True), FAINT)
    scattered = level + SPREADS * patience * np.sqrt(dispersion * level)
    return np.asarray(np.maximum(usual, np.minimum(SMALL * cost, scattered)), np.float64)


def own_variance(by_point: Spread, runs: Floats, lost: Floats) -> Floats:
    """The variance of the runs at every point; 0 where there are fewer than two."""
    mean = by_point(lost) / np.maximum(runs, 1)
    return np.asarray(np.maximum(by_point(lost**2) - runs * mean**2, 0) / np.maximum(runs - 1, 1), np.float64)


def between(at: Integers, points: int) -> tuple[Spread, Spread]:
    """Two functions: one adds up numbers of runs by point, the other gives every run the number of its point."""
    searches = len(at)
    flat = at + points * np.arange(searches)[:, None]
    each = flat.ravel()

    def by_point(numbers: Any) -> Floats:
        sums = np.bincount(each, numbers.ravel(), searches * points)
        return np.asarray(sums, np.float64).reshape(searches, points)

    def at_runs(numbers: Any) -> Floats:
        return np.asarray(numbers.ravel().take(flat), np.float64)

    return by_point, at_runs


MUCH = 0.1
"""A run loses much if it loses more than this share of the mean at the same width."""


def scale_of(library: Library, at: Integers, regrets: Floats) -> Floats:
    """About what good runs lose at the largest width: the median at the largest one tried, of runs that lose anything.

    Where that is not much, it is the median of runs that lose much: most instances have arms that are nearly equal there,
    and what exploring costs on the others must not be taken for failures.
    """
    largest = at.max(axis=1, keepdims=True)
    there = at == largest
    lost = np.abs(regrets)
    much = MUCH * (lost * there).sum(axis=1, keepdims=True) / there.sum(axis=1, keepdims=True)
    middle = median_where(there & (regrets != 0), regrets)
    middle = np.where(middle > much, middle, median_where(there & (lost > much), regrets))
    usual = np.where(middle > 0, middle, lost.mean(axis=1, keepdims=True))
    scale: Floats = np.where(usual > 0, usual, 1) / np.sqrt(library.points[largest])
    return scale


def median_where(there: Any, regrets: Floats) -> Floats:
    """The median of some regrets of each search; 0 where there is none."""
    count = there.sum(axis=1, keepdims=True)
    some = there.any(axis=0)
    some[0] = True  # where there is none, one is looked up below all the same
    ranked = np.sort(np.where(there[:, some], regrets[:, some], np.inf), axis=1)
    middle = np.take_along_axis(ranked, np.hstack([(count - 1) // 2, count // 2]), 1).mean(axis=1, keepdims=True)
    return np.asarray(np.where(count > 0, middle, 0.0), np.float64)


def weigh_good(
    library: Library, count: Floats, mean: Floats, level: Floats, dispersion: Floats
) -> tuple[Floats, Floats, Floats]:
    """Weights, heights and standard deviations of the heights of the curves of good runs.

    Means are Gaussian around height x curve; the height has a flat prior and is integrated out in closed form.
    """
    precision = np.where(count > 0, 1 / (dispersion * level / np.maximum(count, 1) + (CURVE_ERROR * level) ** 2), 0)
    projection = (precision * mean) @ library.good.T
    square = precision @ library.good_squared.T
    height = np.maximum(projection / square, LEAST)
    weight = softmax(height * projection - height**2 * square / 2 - 0.5 * np.log(square) + library.prior)
    return weight, height, 1 / np.sqrt(square)


def weigh_bad(library: Library, runs: Floats, excess: Floats, squares: Floats) -> tuple[Floats, Floats, Floats]:
    """Weights of the curves of failures, their mean curve and their dispersion.

    A quasi-likelihood whose variance is dispersion x mean^POWER: it uses sums of what failures cost and nothing else, so
    it estimates means, however heavy the tail is. For height x curve these sums are powers of the height times sums for
    the curve: products of matrices are as many as there are ways to end.
    """
    heights = library.heights
    seen, unseen = excess @ library.bad_seen.T, runs @ library.bad_unseen.T
    likelihood = seen[:, :, None] * heights ** (1 - POWER) - unseen[:, :, None] * heights ** (2 - POWER)
    likelihood = likelihood.reshape(len(runs), -1)
    level = np.maximum.accumulate((excess / np.maximum(runs, 1))[:, ::-1], axis=1)[:, ::-1] + 0.02
    for _ in range(PASSES):
        dispersion = (squares + PSEUDO) / ((runs * level**POWER).sum(axis=1, keepdims=True) + 1)
        weight = softmax(likelihood / (TRUST * dispersion) + library.bad_prior)
        level = expected_height(library, weight) @ library.bad
    return weight, level, dispersion


def doubted(library: Library, bad_weight: Floats) -> Floats:
    """Weights of the curves of failures by all of their dispersion: the likelihood to the power of `TRUST`."""
    return softmax(TRUST * (np.log(bad_weight) - library.bad_prior) + library.bad_prior)


def expected_height(library: Library, bad_weight: Floats) -> Floats:
    """Of each way in which failures end, its weight times its mean height."""
    return np.asarray(bad_weight.reshape(len(bad_weight), -1, len(library.heights)) @ library.heights, np.float64)


def deviation_of(library: Library, residual: Floats, noise: Floats) -> tuple[Floats, Floats, Floats]:
    """What residuals with these variances say about the deviation: for each length its weight, a centre and a turn.

    The deviation is then R turn (centre + standard normals), R the root of that length. Proof: before the runs it is R e
    with standard normals e. Residuals r are R e plus noise of variances N. Given them, e is normal with the precision
    M = 1 + R' N^-1 R = L L' and the mean M^-1 R' N^-1 r; so e = L'^-1 (z + normals) with z = L^-1 R' N^-1 r. Up to what
    all lengths share, the density of r is exp(z' z / 2) / det L. (A length that is too short follows luck; one that is too
    long misses bends that are sharper than all of the library's.)
    """
    root = library.roots[:, library.places]
    weighed = np.swapaxes(root / noise[:, None, :, None], 2, 3)
    lower = np.linalg.cholesky(np.eye(root.shape[2]) + weighed @ root)
    inverse = np.linalg.inv(lower)
    centre = (inverse @ (weighed @ residual[:, None, :, None]))[:, :, :, 0]
    size = np.log(np.diagonal(lower, axis1=2, axis2=3)).sum(axis=2)
    likely = np.log(library.length_prior) + 0.5 * (centre**2).sum(axis=2) - size
    return softmax(likely), centre, np.swapaxes(inverse, 2, 3)


def softmax(log_weights: Floats) -> Floats:
    """Weights that add up to 1."""
    # Below e^-460 a weight changes no sum, but denormal numbers make products slow.
    weights = np.exp(np.maximum(log_weights - log_weights.max(axis=1, keepdims=True), -460.0))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True), np.float64)


def mean_curve(library: Library, found: Fit) -> Floats:
    """The expected regret at every fine point."""
    centres = (found.lengths[:, :, None] * found.centre)[:, :, None]
    deviation = (centres @ deviations(library, found, fine=True)).sum(axis=1)[:, 0]
    good: Floats = (found.weight * found.height) @ library.good_fine
    bad: Floats = found.unit * (expected_height(library, found.bad_weight) @ library.bad_fine)
    return np.asarray(good * (1 + deviation) + bad, np.float64)


def drawn_curves(library: Library, found: Fit, count: int, rng: np.random.Generator, fine: bool = True) -> Floats:
    """Curves drawn from what is believed, (searches, count, points)."""
    good, bad = (library.good_fine, library.bad_fine) if fine else (library.good, library.bad)
    which = picked(found.weight, count, rng)
    height = np.take_along_axis(found.height, which, 1)
    height = height + np.take_along_axis(found.spread, which, 1) * rng.standard_normal(height.shape)
    length = picked(found.lengths, count, rng)[:, :, None]
    normals = rng.standard_normal((*which.shape, library.roots.shape[2]))
    made = deviations(library, found, fine)
    curves = np.ones((*which.shape, made.shape[-1]))
    for place in range(made.shape[1]):
        chosen = length == place
        if chosen.any():
            curves += (chosen * (found.centre[:, [place]] + normals)) @ made[:, place]
    curves *= good[which]
    curves *= height[:, :, None]
    way, size = np.divmod(picked(found.bad_weight, count, rng), len(library.heights))
    curves += (found.unit * library.heights[size])[:, :, None] * bad[way]
    return curves


def deviations(library: Library, found: Fit, fine: bool) -> Floats:
    """What makes deviations of normals, (searches, lengths, normals, points)."""
    roots = library.roots if fine else library.roots[:, library.places]
    return np.asarray(np.swapaxes(roots @ found.turn, 2, 3), np.float64)


def picked(weights: Floats, count: int, rng: np.random.Generator) -> Integers:
    """`count` indices for each search, drawn with its weights."""
    steps = np.cumsum(weights, axis=1)
    at = rng.random((len(weights), count)) * steps[:, -1:]
    found = np.stack([np.searchsorted(*pair, side="right") for pair in zip(steps, at, strict=True)])
    within: Integers = np.minimum(found, weights.shape[1] - 1)
    return within
