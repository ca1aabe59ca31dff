"""The two-part tuner: keeps every run, fits curves to all of them, and looks next where the optimum may be."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from statistics import NormalDist
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from banditune.contracts import SPEND, Enough, Floats, Found, Goal, Integers, Range, Search, Trial, Tuner
from banditune.results import Belief
from banditune.tuners.curves import (
    FINE,
    Fit,
    Library,
    doubted,
    drawn_curves,
    expected_height,
    fit,
    library_of,
    mean_curve,
)
from banditune.tuners.dips import highest_between
from banditune.tuners.grid import check_budget
from banditune.tuners.windows import (
    WIDE,
    Outline,
    Window,
    best_span,
    decades,
    nodes_of,
    outline,
    whole_window,
    window_on,
)

BATCHES = 12
"""A budget is spent in so many batches after the start."""

START = 0.1
"""Share of the budget that is spread over a few widths at the start; two runs each or more."""

GROWTH = 8
"""Without a budget, a batch is an eighth of the runs so far."""

MOST = 200
"""Curves drawn for a batch; where it has more runs, several share one."""

BESIDE, NEARLY = 0.5, 0.15
"""This share of a batch's runs is made beside the best width of a drawn curve, among those that are nearly as good: within
this share of its lowest regret. Runs at the best width tell how low it is; those on either side, where it is.
"""

DRAWS = 1000
"""Curves from which quantiles are taken."""

FEWEST = 30
"""Runs that a point must have to speak against a single dip, or against the fit."""

PEAK_ALARM, MISFIT_ALARM = 0.05, 0.01
"""How often, at most, either is said where it is not so."""

SAFETY = 0.4
"""Where a search stops as soon as its gap is small enough, the gap is told divided by this: it was looked at many times,
and no smooth curve shows all there is, as UCB1's steps.
"""

STEP = 0.25
"""At the lower end of a linear range, where a policy may stop exploring, the regret may step: of arms that are equal so far
UCB1 tries one after the other, with width 0 it stays with the first. No run is made there, and smooth curves cannot tell:
where they may end within this share of their lowest point, the end is named as untried.
"""

EVERYWHERE, TOLD = 0.75, 1000
"""Failures that cost more than this share at the largest width of what they cost at the smallest are at every width. Where
the largest width is the answer, they may be; fewer runs than this do not tell.
"""

SHARES = (0.02, 0.05, 0.1, 0.2)
"""A flat region is within the smallest of these of the lowest regret that can be said."""

FLAT_DOUBT = 0.5
"""A flat region is told only where there seems to be one; so it may be wrong on this share of the curves on which other
statements may.
"""


FEW, MANY, MOSTLY, HALF, FACTOR, MOVES, LOOKS = 8, 0.85, 0.8, 0.5, 9, 8, 40
SCAN_START, SCANNED, SCANNED_PRECISE, SURE = 0.2, 0.45, 600, 1.5
PARTS = 0.6

Booleans = NDArray[np.bool_]


class Searches:
    """Searches in lock-step: `ask` says where all of them run next, `tell` what was lost there."""

    def __init__(
        self, library: Library, searches: int, budget: int, rng: np.random.Generator, precise: bool = False
    ) -> None:
        # Few runs tell most at the ends. A precision takes many; then steps count, as UCB1's, which runs anywhere show.
        # And a search that stops by itself does not know how many it will make: it starts with the fewest.
        self.library, self.budget, self.rng, self.at_ends = library, budget, rng, not precise
        start = 0 if precise else int(START * budget / len(library.start))
        first = np.repeat(library.start, max(2, start))
        self.next: Integers = np.tile(first, (searches, 1))
        self.size = max(1, -(-(budget - first.size) // BATCHES))
        self.at: Integers = np.empty((searches, 0), int)
        self.regrets: Floats = np.empty((searches, 0))
        self.fitted: Fit | None = None

    @property
    def left(self) -> int:
        """Runs that each search may still make."""
        return self.budget - int(self.regrets.shape[1])

    def ask(self, size: int | None = None) -> Integers:
        """Places in `library.points`, a row per search: first those of the start, then near the best of drawn curves."""
        if self.regrets.shape[1]:
            runs = min(size or self.size, self.left)
            curves = self.curves(min(runs, MOST))
            self.next = around(curves, self.at_ends, self.rng)[:, np.arange(runs) % MOST]
        return self.next

    def curves(self, count: int) -> Floats:
        """Curves drawn from what is believed, where runs are made."""
        return drawn_curves(self.library, self.fit(), count, self.rng, fine=False)

    def tell(self, regrets: Floats) -> None:
        """What was lost at the places that were asked for."""
        self.at = np.hstack([self.at, self.next])
        self.regrets = np.hstack([self.regrets, regrets])
        self.fitted = None

    def fit(self) -> Fit:
        """All curves, weighed by all runs."""
        self.fitted = self.fitted or fit(self.library, self.at, self.regrets)
        return self.fitted


def around(curves: Floats, at_ends: bool, rng: np.random.Generator) -> Integers:
    """The place of each curve's lowest point, or one of the stretch around it that is nearly as low: an end, or any."""
    best, lowest = curves.argmin(axis=-1), curves.min(axis=-1, keepdims=True)
    places = np.arange(curves.shape[-1])
    high = curves > lowest + NEARLY * np.abs(lowest)
    left = np.where(high & (places < best[..., None]), places + 1, 0).max(axis=-1)
    right = np.where(high & (places > best[..., None]), places - 1, places[-1]).min(axis=-1)
    along = rng.random(best.shape)
    anywhere: Integers = left + (along * (right - left + 1)).astype(int)
    beside = np.where(along < 0.5, left, right) if at_ends else anywhere
    return np.where(rng.random(best.shape) < BESIDE, beside, best)


def one_search(found: Fit, search: int) -> Fit:
    """What one search of many believes."""
    return Fit(*(array[search : search + 1] for array in found))


class View(NamedTuple):
    """What one search believes: the place of the answer, and curves to say how sure it is, at widths or values in order."""

    answer: int
    mean: Floats
    curves: Floats


def view(library: Library, found: Fit, search: int = 0) -> View:
    """The lowest point of the expected curve of one search, and curves drawn from what is believed."""
    one = one_search(found, search)
    mean = mean_curve(library, one)[0]
    unsure = one._replace(bad_weight=doubted(library, one.bad_weight))
    curves = drawn_curves(library, unsure, DRAWS, numbers_for(one))[0]
    return View(int(mean.argmin()), mean, curves)


def numbers_for(one: Fit) -> np.random.Generator:
    """Random numbers for statements. The same runs, the same words; other runs, other numbers: the seed is their hash."""
    return np.random.default_rng([crc32(one.runs.tobytes()), crc32(one.mean.tobytes())])


def gap_of(seen: View, level: float) -> float:
    """By how much another width may be better, at most, with probability `level`."""
    return float(np.quantile(seen.curves[:, seen.answer] - seen.curves.min(axis=1), level))


def flat_region(seen: View, level: float) -> tuple[int, int, float] | None:
    """The widest stretch around the answer where every width is within a share of the lowest regret, and the share.

    "Every" is meant together: all of it is within that share on more than `level` of the curves, see `FLAT_DOUBT`. None if
    that can be said of the answer alone, or not even of that.
    """
    level = 1 - FLAT_DOUBT * (1 - level)
    lowest = seen.curves.min(axis=1, keepdims=True)
    for share in SHARES:
        within = seen.curves <= lowest + share * np.abs(lowest)
        if within[:, seen.answer].mean() >= level:
            low, high = grown(within, seen.answer, level)
            if low < high:
                return low, high, share
    return None


def grown(within: Booleans, start: int, level: float) -> tuple[int, int]:
    """Let a stretch grow to both sides in turn while all of it is within on at least `level` of the curves."""
    low = high = start
    good = within[:, start]
    sides = deque((-1, 1))
    while sides:
        side = sides.popleft()
        at = low - 1 if side < 0 else high + 1
        if 0 <= at < within.shape[1] and (good & within[:, at]).mean() >= level:
            good = good & within[:, at]
            low, high = min(low, at), max(high, at)
            sides.append(side)
    return low, high


def peak_of(found: Fit) -> tuple[int, ...]:
    """Three points of which the one in the middle is surely above both others; none where one dip may be all there is.

    As in `study.unimodal`, Bonferroni's inequality over all pairs bounds false alarms, as far as points were not chosen by
    their luck. Points with few runs are left out.
    """
    points = np.flatnonzero(found.runs[0] >= FEWEST)
    count = len(points)
    if count < 3:
        return ()
    mean, square = found.mean[0, points], found.variance[0, points] / found.runs[0, points]
    height, triple = highest_between(np.subtract.outer(mean, mean) / np.sqrt(np.add.outer(square, square)))
    if height <= NormalDist().inv_cdf(1 - PEAK_ALARM / (count * (count - 1))):
        return ()
    return tuple(int(points[place]) for place in triple)


def misfit(library: Library, found: Fit, mean: Floats) -> bool:
    """Whether the runs at some point are surely off the expected curve: then no curve of the libraries is right."""
    points = np.flatnonzero(found.runs[0] >= FEWEST)
    if not len(points):
        return False
    off = found.mean[0, points] - mean[library.places[points]]
    se = np.sqrt(found.variance[0, points] / found.runs[0, points])
    return bool((np.abs(off) > NormalDist().inv_cdf(1 - MISFIT_ALARM / (2 * len(points))) * se).any())


def everywhere(library: Library, found: Fit) -> bool:
    """Whether failures hardly depend on the width: in every curve they do, so that its end would surely be the best."""
    price = (expected_height(library, found.bad_weight) @ library.bad_fine)[0]
    return bool(price[-1] > EVERYWHERE * price[0])


def belief_of(library: Library, found: Fit, among: Range, level: float = 0.95, room: float = 1.0) -> Found:
    """The answer of one search and what is known about it, in the parameter's own units; `room` divides the gap."""
    values = np.array([value_at(among, float(width)) for width in library.fine])
    return stated(library, found, among, view(library, found), values, level, room)


def stated(
    library: Library, found: Fit, among: Range, seen: View, values: Floats, level: float = 0.95, room: float = 1.0
) -> Found:
    """The same where curves are known at these values: those of the library, or others too."""
    tail = (1 - level) / 2
    low, high = np.quantile(seen.curves[:, seen.answer], [tail, 1 - tail])
    if (found.mean >= 0).all():  # below 0 are only regrets of tables whose order favours a policy
        low = max(low, 0.0)
    minima = seen.curves.argmin(axis=1)
    flat = flat_region(seen, level)
    ends = (float(values[flat[0]]), float(values[flat[1]])) if flat else (0.0, 0.0)
    lowest = seen.curves.min(axis=1)
    near = np.quantile(seen.curves[:, 0] - lowest - STEP * np.abs(lowest), tail) < 0
    first, end = float(values[0]), among.at(0.0)
    return Found(
        float(values[seen.answer]),
        Belief(
            float(seen.mean[seen.answer]), float(low), float(high),
            float(values[int(np.quantile(minima, tail, method="lower"))]),
            float(values[int(np.quantile(minima, 1 - tail, method="higher"))]),
            gap_of(seen, level) / room,
            (*ends, flat[2]) if flat and ends[0] < ends[1] else (),
            tuple(value_at(among, library.points[point]) for point in peak_of(found)),
            misfit(library, found, mean_curve(library, found)[0]) or everywhere(library, found), level,
            (end, first) if near and among.scale == "linear" and end < first else (),
        ),
    )  # fmt: skip


def value_at(among: Range, width: float) -> float:
    """The parameter's value at a width that is relative to the range."""
    if among.scale == "log":
        return among.within(among.high * width)
    return among.at(width)


def reached(found: Found, among: Range, runs: int, within: float) -> bool:
    """Whether a search that found this in so many runs may stop: nothing else is better by more than this share."""
    told = runs >= TOLD or found.value < value_at(among, 1.0)
    return told and bool(found.belief.keeps(within))


class Windowed:
    """One search whose library is laid over the window in which the optimum can be, all of the range at first.

    On a log scale of many decades there is none at first: runs are spread over all of it until an outline says where the
    optimum is. Later a run is made outside of the window where a curve drawn from the outline is lower there.
    """

    def __init__(self, among: Range, budget: int, rng: np.random.Generator, precise: bool) -> None:
        self.among, self.budget, self.rng, self.precise = among, budget, rng, precise
        self.values: Floats = np.empty(0)
        self.regrets: Floats = np.empty(0)
        self.window: Window | None = None
        self.searches: Searches | None = None
        self.moves = 0
        self.whole = whole_window(among)
        if decades(among) <= WIDE:
            self.lay(self.whole)

    @property
    def left(self) -> int:
        """Runs that may still be made."""
        return self.budget - len(self.values)

    @property
    def least(self) -> int:
        """The runs that it starts with, at least."""
        return 2 * (len(self.searches.library.start) if self.searches else math.ceil(decades(self.among)) + 1)

    def lay(self, window: Window) -> None:
        """Lay the library over another window; runs in it are remembered."""
        self.window = window
        self.searches = Searches(window.library, 1, self.budget, self.rng, self.precise)
        self.searches.at_ends = self.searches.at_ends and window is self.whole
        if len(self.values):
            self.see(self.values, self.regrets)

    def see(self, values: Floats, regrets: Floats) -> None:
        """Tell the library of runs; those outside of the window are not for it."""
        places = self.window.places(values)
        inside = places >= 0
        self.searches.next = places[None, inside]
        self.searches.tell(regrets[None, inside])

    def axis(self, values: Floats) -> Floats:
        """Logarithms of values, or of widths where the scale is linear."""
        if self.among.scale == "log":
            return np.asarray(np.log10(values), np.float64)
        return np.asarray(np.log10((values - self.among.low) / (self.among.high - self.among.low)), np.float64)

    def back(self, x: Floats) -> Floats:
        """The inverse of `axis`."""
        if self.among.scale == "log":
            return np.asarray(10.0**x, np.float64)
        return np.asarray(self.among.low + 10.0**x * (self.among.high - self.among.low), np.float64)

    def outline(self) -> Outline:
        """What all runs say, roughly."""
        logs = self.axis(self.values)
        low = math.log10(self.among.low) if self.among.scale == "log" else float(logs.min())
        high = math.log10(self.among.high) if self.among.scale == "log" else 0.0
        return outline(nodes_of(low, high), logs, self.regrets)

    def ask(self, size: int | None = None) -> Floats:
        """Values to run next."""
        runs = min(size or self.batch, self.left)
        if not len(self.values):
            return self.start(runs)
        if self.window is None:
            seen = self.outline()
            minima = seen.draws(MOST, self.rng).argmin(axis=1)
            low, high = np.quantile(seen.x[minima], [0.05, 0.95])
            most = SCANNED * self.budget if not self.precise else SCANNED_PRECISE
            if high - low > SURE and len(self.values) < most:
                return self.back(seen.x[minima[np.arange(runs) % MOST]])
            logged, inverse = best_span(seen, minima)
            self.lay(window_on(self.among, 10.0**logged, inverse))
            return self.lacking(runs)
        return self.inside(runs)

    @property
    def batch(self) -> int:
        """Runs of a batch."""
        return max(1, -(-self.budget // (BATCHES + 1)))

    def start(self, runs: int) -> Floats:
        """The first values."""
        if self.searches:
            return self.window.values(self.searches.library.points[self.searches.ask()[0]])
        x = nodes_of(math.log10(self.among.low), math.log10(self.among.high))
        most = SCAN_START * self.budget if not self.precise else len(x)
        for step in (1, 2, 4):
            some = x[::step]
            if 2 * len(some) <= most:
                break
        each = max(2, int(most / len(some)))
        return self.back(np.repeat(some, each))[: self.left]

    def lacking(self, runs: int) -> Floats:
        """Places of the library's start that have no runs: two each."""
        start = [point for point in self.searches.library.start if point >= self.window.from_point]
        made = np.bincount(self.searches.at[0], minlength=len(self.searches.library.points))
        empty = [point for point in start if made[point] < 2]
        if not empty:
            return self.inside(runs)
        return self.window.values(self.searches.library.points[np.repeat(empty, 2)])[: self.left]

    def inside(self, runs: int) -> Floats:
        """Near the lowest points of drawn curves, of the library and of the outline; the window follows them."""
        searches, window = self.searches, self.window
        count = min(max(runs, LOOKS), MOST)
        curves = searches.curves(count)
        curves[:, :, : window.from_point] = np.inf
        lowest = window.values(searches.library.points[curves[0].argmin(axis=1)])
        elsewhere = np.zeros(count, bool)
        if window is not self.whole:
            seen = self.outline()
            drawn = np.where(self.outside(seen), seen.draws(count, self.rng), np.inf)
            elsewhere = drawn.min(axis=1) < curves[0].min(axis=1)
            lowest = np.where(elsewhere, self.back(seen.x[drawn.argmin(axis=1)]), lowest)
        moved = self.moved(lowest)
        if moved:
            self.moves += 1
            self.lay(moved)
            return self.lacking(runs)
        places = around(curves, searches.at_ends, self.rng)[0]
        values = np.where(elsewhere, lowest, window.values(searches.library.points[places]))
        return values[np.arange(runs) % count]

    def outside(self, seen: Outline) -> Booleans:
        """Nodes of an outline that the library does not see."""
        widths = self.window.widths(self.back(seen.x))
        return (widths < 0.8 * self.window.library.fine[self.window.first]) | (widths > 1.1)

    def moved(self, lowest: Floats) -> Window | None:
        """Another window, where most of these lowest points are at an end of this one or outside of it."""
        window, whole = self.window, self.whole
        if self.moves >= MOVES or (window is whole and self.among.scale == "log"):
            return None
        widths = window.widths(lowest)
        few, many = (widths <= FEW / FINE).mean() >= MOSTLY, (widths >= MANY).mean() > HALF
        if self.among.scale == "linear":
            if few:
                return window_on(self.among, window.span / FACTOR)
            if many and window is not whole:
                return window_on(self.among, window.span * FACTOR) if window.span * FACTOR < whole.span else whole
            return None
        if not (few or many):
            return None
        seen = self.outline()
        logged, inverse = best_span(seen, np.abs(np.subtract.outer(np.log10(lowest), seen.x)).argmin(axis=1))
        other = window_on(self.among, 10.0**logged, inverse)
        return other if (other.span, inverse) != (window.span, window.inverse) else None

    def tell(self, values: Floats, regrets: Floats) -> None:
        """What was lost at these values."""
        self.values = np.concatenate([self.values, values])
        self.regrets = np.concatenate([self.regrets, regrets])
        if self.window is not None:
            self.see(values, regrets)

    def found(self, level: float, room: float) -> Found:
        """The answer and what is known about it, of the window and what lies outside."""
        if self.window is None:
            seen = self.outline()
            minima = seen.draws(MOST, np.random.default_rng(0)).argmin(axis=1)
            logged, inverse = best_span(seen, minima)
            self.lay(window_on(self.among, 10.0**logged, inverse))
        window, fitted = self.window, self.searches.fit()
        if window is not self.whole and not self.precise:
            room *= PARTS
        inner = view(window.library, fitted)
        values = window.values(window.library.fine[window.first :])
        values = np.array([self.among.within(value) for value in values])
        mean, curves = inner.mean[window.first :], inner.curves[:, window.first :]
        if window is not self.whole:
            outer = self.outline()
            out = self.outside(outer)
            drawn = outer.draws(DRAWS, numbers_for(one_search(fitted, 0)))[:, out]
            values = np.concatenate([values, self.back(outer.x[out])])
            mean, curves = np.concatenate([mean, drawn.mean(axis=0)]), np.hstack([curves, drawn])
        order = np.argsort(values, kind="stable")
        mean, curves, values = mean[order], curves[:, order], values[order]
        seen = View(int(mean.argmin()), mean, curves)
        return stated(window.library, fitted, self.among, seen, values, level, room)


@dataclass(frozen=True)
class TwoPart(Tuner):
    """Fits the price of exploring and the price of failing to all runs; answers with the lowest point of their sum."""

    name = "two-part"
    aims = True

    def search(self, among: Range, budget: int, goal: Goal = SPEND, rng: np.random.Generator | None = None) -> Search:
        """Spend the budget; where a precision is wanted, stop as soon as it is reached. Without `rng`, that of seed 0."""
        rng = np.random.default_rng(0) if rng is None else rng
        wanted = goal.within is not None
        search = Windowed(among, budget, rng, wanted)
        check_budget(budget, search.least, f"{self}, which starts with {search.least} runs", "raise it")

        def answer() -> Found:
            return search.found(goal.confidence, SAFETY if wanted else 1.0)

        try:
            while search.left > 0:
                runs = len(search.values)
                asked = search.ask(max(20, runs // GROWTH) if wanted else None)
                each, counts = np.unique(asked, return_counts=True)
                values = tuple(among.within(float(value)) for value in each)
                at = np.repeat(values, counts)
                regrets = yield Trial(values, tuple(counts.tolist()))
                search.tell(at, np.concatenate(regrets))
                runs = len(search.values)
                if goal.within is not None and runs >= MOST and reached(answer(), among, runs, goal.within):
                    break
        except Enough as last:
            search.tell(at, np.concatenate(last.args[0]))
        return answer()
