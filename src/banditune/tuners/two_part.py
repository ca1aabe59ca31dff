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
    Fit,
    Library,
    doubted,
    drawn_curves,
    expected_height,
    fit,
    mean_curve,
)
from banditune.tuners.dips import highest_between
from banditune.tuners.grid import check_budget
from banditune.tuners.windows import Axis, Outline, Window, best_span, outline, whole_window, window_on

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

CARRIED = 100
"""Where the largest width is the answer, so many runs must carry the mean regret, counted as (sum)^2 / (sum of squares).
Where few instances have arms that differ, all others say nothing of what exploring costs there.
"""

SHARES = (0.02, 0.05, 0.1, 0.2)
"""A flat region is within the smallest of these of the lowest regret that can be said."""

FLAT_DOUBT = 0.5
"""A flat region is told only where there seems to be one; so it may be wrong on this share of the curves on which other
statements may.
"""


FEW, MANY, MOSTLY, HALF = 8 / 162, 0.85, 0.8, 0.5
"""A window is moved where `MOSTLY` of drawn curves have their lowest point among the first steps, up to the width `FEW`, or
where more than `HALF` have it at the other end, from `MANY` on, or outside.
"""

FACTOR, MOVES = 9.0, 8
"""On a linear scale a window is a ninth of the one before, so that steps of one are steps of the other; so many moves."""

EARLY = 60
"""So many runs are made before the first window is left: fewer may have met no failure by luck."""

LOOKS = 40
"""Drawn curves that say whether a window is moved, at least."""

SCAN_START, SCANNED, SCANNED_FOR_PRECISION = 0.2, 0.45, 600
"""Shares of the budget that are spread over a wide range at the start and that are spent before a window is laid, at most;
where a precision is wanted, so many runs.
"""

SURE = 1.5
"""A window is laid as soon as the lowest point is within so many decades with 90%."""

PART = 0.6
"""The gap of a search that laid its library over a part of the range is divided by this: no smooth curve shows all there
is, and near steps statements were wrong in two fifths of tunings.
"""

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


def carried_by_few(found: Fit) -> bool:
    """Whether too few runs carry the mean regret to tell failures that are everywhere from the price of exploring."""
    second = found.mean[0] ** 2 + found.variance[0]
    lost, squares = (float((found.runs[0] * numbers).sum()) for numbers in (np.abs(found.mean[0]), second))
    return lost**2 < CARRIED * squares


def everywhere(library: Library, found: Fit) -> bool:
    """Whether failures hardly depend on the width: in every curve they do, so that its end would surely be the best."""
    price = (expected_height(library, found.bad_weight) @ library.bad_fine)[0]
    return bool(price[-1] > EVERYWHERE * price[0])


def belief_of(library: Library, found: Fit, among: Range, level: float = 0.95, room: float = 1.0) -> Found:
    """The answer of one search and what is known about it, in the parameter's own units; `room` divides the gap."""
    values = np.array([value_at(among, float(width)) for width in library.fine])
    window = whole_window(among)._replace(library=library)
    return stated(window, found, among, view(library, found), values, level, room)


def stated(window: Window, found: Fit, among: Range, seen: View, values: Floats, level: float, room: float) -> Found:
    """The same where curves are known at these values: those of the window, or others too."""
    library, fitted = window.library, mean_curve(window.library, found)[0]
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
    at_end = seen.answer == len(values) - 1
    off = misfit(library, found, fitted) or everywhere(library, found) or (at_end and carried_by_few(found))
    return Found(
        float(values[seen.answer]),
        Belief(
            float(seen.mean[seen.answer]), float(low), float(high),
            float(values[int(np.quantile(minima, tail, method="lower"))]),
            float(values[int(np.quantile(minima, 1 - tail, method="higher"))]),
            gap_of(seen, level) / room,
            (*ends, flat[2]) if flat and ends[0] < ends[1] else (),
            tuple(sorted(among.within(float(v)) for v in window.values(library.points[list(peak_of(found))]))),
            off, level,
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

    On a log scale of many decades runs are spread over all of it until an outline says where the optimum is. Later a run is
    made outside of the window where a curve drawn from the outline is lower there.
    """

    def __init__(self, among: Range, budget: int, rng: np.random.Generator, precise: bool) -> None:
        self.axis, self.budget, self.rng, self.precise = Axis(among), budget, rng, precise
        self.values: Floats = np.empty(0)
        self.regrets: Floats = np.empty(0)
        self.moves = 0
        self.scanning = self.axis.is_wide
        self.whole = whole_window(among)
        self.lay(self.whole)

    @property
    def left(self) -> int:
        """Runs that may still be made."""
        return self.budget - len(self.values)

    @property
    def least(self) -> int:
        """The runs that it starts with, at least."""
        return 2 * (math.ceil(self.axis.decades) + 1 if self.scanning else len(self.whole.library.start))

    def lay(self, window: Window) -> None:
        """Lay the library over another window; runs in it are remembered."""
        self.window = window
        self.searches = Searches(window.library, 1, self.budget, self.rng, self.precise)
        # Of a part of a range steps are to be seen, as where a precision is wanted.
        self.searches.at_ends = not self.precise and window is self.whole
        if len(self.values):
            self.see(self.values, self.regrets)

    def see(self, values: Floats, regrets: Floats) -> None:
        """Tell the library of runs; those outside of the window are not for it."""
        places = self.window.places(values)
        inside = places >= 0
        self.searches.next = places[None, inside]
        self.searches.tell(regrets[None, inside])

    def tell(self, values: Floats, regrets: Floats) -> None:
        """What was lost at these values."""
        self.values = np.concatenate([self.values, values])
        self.regrets = np.concatenate([self.regrets, regrets])
        self.see(values, regrets)

    def outline(self) -> Outline:
        """What all runs say, roughly."""
        logs = self.axis.logs(self.values)
        return outline(self.axis.nodes(float(logs.min())), logs, self.regrets)

    def ask(self, size: int | None = None) -> Floats:
        """Values to run next: those of the start, all over a wide range, or near the lowest points of drawn curves."""
        runs = min(size or self.searches.size, self.left)
        if not len(self.values):
            return self.spread() if self.scanning else self.at_points(self.searches.ask()[0])
        return self.scan(runs) if self.scanning else self.inside(runs)

    def at_points(self, points: Integers) -> Floats:
        """The values of points of the library."""
        return self.window.values(self.searches.library.points[points])

    def spread(self) -> Floats:
        """The first values on a wide range, evenly spaced."""
        x = self.axis.nodes(0.0)
        most = len(x) if self.precise else SCAN_START * self.budget
        some = next((x[::step] for step in (1, 2) if 2 * len(x[::step]) <= most), x[::4])
        return self.axis.values(np.repeat(some, max(2, int(most / len(some)))))[: self.budget]

    def scan(self, runs: int) -> Floats:
        """Values on a wide range where the optimum may be; once that is known, a window is laid."""
        seen = self.outline()
        minima = seen.draws(MOST, self.rng).argmin(axis=1)
        low, high = np.quantile(seen.x[minima], [0.05, 0.95])
        most = SCANNED_FOR_PRECISION if self.precise else SCANNED * self.budget
        if high - low > SURE and len(self.values) < most:
            return self.axis.values(seen.x[minima[np.arange(runs) % MOST]])
        self.settle(seen, minima)
        return self.lacking(runs)

    def settle(self, seen: Outline, minima: Integers) -> None:
        """Lay the first window over most of these minima."""
        self.scanning = False
        self.lay(window_on(self.axis.among, *best_span(seen, minima)))

    def lacking(self, runs: int) -> Floats:
        """Two runs at every place of the start that has none yet."""
        made = np.bincount(self.searches.at[0], minlength=len(self.searches.library.points))
        start = self.searches.library.start
        empty = start[(start >= self.window.from_point) & (made[start] < 2)]
        return self.at_points(np.repeat(empty, 2))[: self.left] if len(empty) else self.inside(runs)

    def inside(self, runs: int) -> Floats:
        """Near the lowest points of drawn curves, of the library and of the outline; the window follows them."""
        count = min(max(runs, LOOKS), MOST) if self.may_move else min(runs, MOST)
        curves = self.searches.curves(count)
        curves[:, :, : self.window.from_point] = np.inf
        lowest = self.at_points(curves[0].argmin(axis=1))
        elsewhere = np.zeros(count, bool)
        if self.window is not self.whole:
            seen = self.outline()
            drawn = np.where(self.outside(seen), seen.draws(count, self.rng), np.inf)
            elsewhere = drawn.min(axis=1) < curves[0].min(axis=1)
            lowest = np.where(elsewhere, self.axis.values(seen.x[drawn.argmin(axis=1)]), lowest)
        moved = self.moved(lowest) if self.may_move else None
        if moved:
            self.moves += 1
            self.lay(moved)
            return self.lacking(runs)
        places = around(curves, self.searches.at_ends, self.rng)[0]
        return np.where(elsewhere, lowest, self.at_points(places))[np.arange(runs) % count]

    @property
    def may_move(self) -> bool:
        """Whether another window may be laid. A log scale of few decades is one window."""
        if self.window is self.whole:
            return not self.axis.is_log and len(self.values) >= EARLY
        return self.moves < MOVES

    def outside(self, seen: Outline) -> Booleans:
        """Nodes of an outline that the library does not see."""
        widths = self.window.widths(self.axis.values(seen.x))
        return np.asarray((widths < 0.8 * self.window.library.fine[self.window.first]) | (widths > 1.1), np.bool_)

    def moved(self, lowest: Floats) -> Window | None:
        """Another window, where most of these lowest points are at an end of this one or outside of it."""
        widths, span = self.window.widths(lowest), self.window.span
        few, many = (widths <= FEW).mean() >= MOSTLY, (widths >= MANY).mean() > HALF
        if self.axis.is_log:
            seen = self.outline()
            minima = np.abs(np.subtract.outer(self.axis.logs(lowest), seen.x)).argmin(axis=1)
            other = window_on(self.axis.among, *best_span(seen, minima))
            same = (other.span, other.inverse) == (span, self.window.inverse)
            return other if (few or many) and not same else None
        if few:
            return window_on(self.axis.among, span / FACTOR)
        if many and self.window is not self.whole:
            return window_on(self.axis.among, span * FACTOR) if span * FACTOR < 0.99 * self.whole.span else self.whole
        return None

    def found(self, level: float, room: float) -> Found:
        """The answer and what is known about it, of the window and of what lies outside."""
        if self.scanning:
            seen = self.outline()
            self.settle(seen, seen.draws(MOST, self.rng).argmin(axis=1))
        window, fitted, among = self.window, self.searches.fit(), self.axis.among
        if window is self.whole:
            return belief_of(window.library, fitted, among, level, room)
        inner = view(window.library, fitted)
        outer = self.outline()
        out = self.outside(outer)
        drawn = outer.draws(DRAWS, numbers_for(fitted))[:, out]
        values = [window.values(window.library.fine[window.first :]), self.axis.values(outer.x[out])]
        order = np.argsort(np.concatenate(values), kind="stable")
        mean = np.concatenate([inner.mean[window.first :], drawn.mean(axis=0)])[order]
        curves = np.hstack([inner.curves[:, window.first :], drawn])[:, order]
        possible = np.array([among.within(float(value)) for value in np.concatenate(values)[order]])
        room = room if self.precise else room * PART
        return stated(window, fitted, among, View(int(mean.argmin()), mean, curves), possible, level, room)


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
