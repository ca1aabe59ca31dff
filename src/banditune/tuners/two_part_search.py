"""Where the two-part tuner runs next: near the lowest points of drawn curves, in a window that follows them."""

from __future__ import annotations

import math

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.space import Range
from banditune.core.tuner import SearchAnswer
from banditune.tuners.answer_statements import (
    STATEMENT_DRAWS,
    AnswerCurves,
    Booleans,
    draw_answer_curves,
    make_statement_rng,
    state_answer,
    state_window_answer,
)
from banditune.tuners.curve_draws import draw_curves
from banditune.tuners.curve_fit import CurveFit, fit_curves
from banditune.tuners.curve_library import CurveLibrary
from banditune.tuners.search_windows import (
    LogAxis,
    RegretOutline,
    SearchWindow,
    choose_span,
    fit_outline,
    make_whole_window,
    make_window,
)

BATCH_COUNT = 12
"""A budget is spent in so many batches after the start."""


START_SHARE = 0.1
"""Share of the budget that is spread over a few widths at the start; two runs each or more."""


MAX_CURVES = 200
"""Curves drawn for a batch; where it has more runs, several share one."""


BESIDE_SHARE, NEARLY_LOWEST_SHARE = 0.5, 0.15
"""This share of a batch's runs is made beside the best width of a drawn curve, among those that are nearly as good: within
this share of its lowest regret. Runs at the best width tell how low it is; those on either side, where it is.
"""


LOW_WIDTH, HIGH_WIDTH, LOW_DRAWS_SHARE, HIGH_DRAWS_SHARE = 8 / 162, 0.85, 0.8, 0.5
"""A window is moved where `LOW_DRAWS_SHARE` of drawn curves have their lowest point among the first steps, up to the width `LOW_WIDTH`, or
where more than `HIGH_DRAWS_SHARE` have it at the other end, from `HIGH_WIDTH` on, or outside.
"""


WINDOW_FACTOR, MAX_MOVES = 9.0, 8
"""On a linear scale a window is a ninth of the one before, so that steps of one are steps of the other; so many moves."""


RUNS_BEFORE_MOVE = 60
"""So many runs are made before the first window is left: fewer may have met no failure by luck."""


FEWEST_MOVE_DRAWS = 40
"""Drawn curves that say whether a window is moved, at least."""


SCAN_START_SHARE, MAX_SCAN_SHARE, MAX_SCAN_RUNS = 0.2, 0.45, 600
"""Shares of the budget that are spread over a wide range at the start and that are spent before a window is laid, at most;
where a precision is wanted, so many runs.
"""


SCAN_DECADES = 1.5
"""A window is laid as soon as the lowest point is within so many decades with 90%."""


WINDOW_GAP_SHARE = 0.6
"""The gap of a search that laid its library over a part of the range is divided by this: no smooth curve shows all there
is, and near steps statements were wrong in two fifths of tunings.
"""


class LockstepSearches:
    """Searches in lock-step: `ask` says where all of them run next, `tell` what was lost there."""

    def __init__(
        self, library: CurveLibrary, searches: int, budget: int, rng: np.random.Generator, precise: bool = False
    ) -> None:
        # Few runs tell most at the ends. A precision takes many; then steps count, as UCB1's, which runs anywhere show.
        # And a search that stops by itself does not know how many it will make: it starts with the fewest.
        self.library, self.budget, self.rng, self.at_ends = library, budget, rng, not precise
        start = 0 if precise else int(START_SHARE * budget / len(library.start))
        first = np.repeat(library.start, max(2, start))
        self.next: IntArray = np.tile(first, (searches, 1))
        self.size = max(1, -(-(budget - first.size) // BATCH_COUNT))
        self.at: IntArray = np.empty((searches, 0), int)
        self.regrets: FloatArray = np.empty((searches, 0))
        self.fitted: CurveFit | None = None

    @property
    def left(self) -> int:
        """Runs that each search may still make."""
        return self.budget - int(self.regrets.shape[1])

    def ask(self, size: int | None = None) -> IntArray:
        """Places in `library.points`, a row per search: first those of the start, then near the best of drawn curves."""
        if self.regrets.shape[1]:
            runs = min(size or self.size, self.left)
            curves = self.curves(min(runs, MAX_CURVES))
            self.next = pick_near_lowest(curves, self.at_ends, self.rng)[:, np.arange(runs) % MAX_CURVES]
        return self.next

    def curves(self, count: int) -> FloatArray:
        """Curves drawn from what is believed, where runs are made."""
        return draw_curves(self.library, self.fit(), count, self.rng, fine=False)

    def tell(self, regrets: FloatArray) -> None:
        """What was lost at the places that were asked for."""
        self.at = np.hstack([self.at, self.next])
        self.regrets = np.hstack([self.regrets, regrets])
        self.fitted = None

    def fit(self) -> CurveFit:
        """All curves, weighed by all runs."""
        self.fitted = self.fitted or fit_curves(self.library, self.at, self.regrets)
        return self.fitted


def pick_near_lowest(curves: FloatArray, at_ends: bool, rng: np.random.Generator) -> IntArray:
    """The place of each curve's lowest point, or one of the stretch around it that is nearly as low: an end, or any."""
    best, lowest = curves.argmin(axis=-1), curves.min(axis=-1, keepdims=True)
    places = np.arange(curves.shape[-1])
    high = curves > lowest + NEARLY_LOWEST_SHARE * np.abs(lowest)
    left = np.where(high & (places < best[..., None]), places + 1, 0).max(axis=-1)
    right = np.where(high & (places > best[..., None]), places - 1, places[-1]).min(axis=-1)
    along = rng.random(best.shape)
    anywhere: IntArray = left + (along * (right - left + 1)).astype(int)
    beside = np.where(along < 0.5, left, right) if at_ends else anywhere
    return np.where(rng.random(best.shape) < BESIDE_SHARE, beside, best)


class WindowedSearch:
    """One search whose library is laid over the window in which the optimum can be, all of the range at first.

    On a log scale of many decades runs are spread over all of it until an outline says where the optimum is. Later a run is
    made outside of the window where a curve drawn from the outline is lower there.
    """

    def __init__(self, among: Range, budget: int, rng: np.random.Generator, precise: bool) -> None:
        self.axis, self.budget, self.rng, self.precise = LogAxis(among), budget, rng, precise
        self.values: FloatArray = np.empty(0)
        self.regrets: FloatArray = np.empty(0)
        self.moves = 0
        self.scanning = self.axis.is_wide
        self.whole = make_whole_window(among)
        self.lay(self.whole)

    @property
    def left(self) -> int:
        """Runs that may still be made."""
        return self.budget - len(self.values)

    @property
    def least(self) -> int:
        """The runs that it starts with, at least."""
        return 2 * (math.ceil(self.axis.decades) + 1 if self.scanning else len(self.whole.library.start))

    def lay(self, window: SearchWindow) -> None:
        """Lay the library over another window; runs in it are remembered."""
        self.window = window
        self.searches = LockstepSearches(window.library, 1, self.budget, self.rng, self.precise)
        # Of a part of a range steps are to be seen, as where a precision is wanted.
        self.searches.at_ends = not self.precise and window is self.whole
        if len(self.values):
            self.see(self.values, self.regrets)

    def see(self, values: FloatArray, regrets: FloatArray) -> None:
        """Tell the library of runs; those outside of the window are not for it."""
        places = self.window.places(values)
        inside = places >= 0
        self.searches.next = places[None, inside]
        self.searches.tell(regrets[None, inside])

    def tell(self, values: FloatArray, regrets: FloatArray) -> None:
        """What was lost at these values."""
        self.values = np.concatenate([self.values, values])
        self.regrets = np.concatenate([self.regrets, regrets])
        self.see(values, regrets)

    def outline(self) -> RegretOutline:
        """What all runs say, roughly."""
        logs = self.axis.logs(self.values)
        return fit_outline(self.axis.nodes(float(logs.min())), logs, self.regrets)

    def ask(self, size: int | None = None) -> FloatArray:
        """Values to run next: those of the start, all over a wide range, or near the lowest points of drawn curves."""
        runs = min(size or self.searches.size, self.left)
        if not len(self.values):
            return self.spread() if self.scanning else self.at_points(self.searches.ask()[0])
        return self.scan(runs) if self.scanning else self.inside(runs)

    def at_points(self, points: IntArray) -> FloatArray:
        """The values of points of the library."""
        return self.window.values(self.searches.library.points[points])

    def spread(self) -> FloatArray:
        """The first values on a wide range, evenly spaced."""
        x = self.axis.nodes(0.0)
        most = len(x) if self.precise else SCAN_START_SHARE * self.budget
        some = next((x[::step] for step in (1, 2) if 2 * len(x[::step]) <= most), x[::4])
        return self.axis.values(np.repeat(some, max(2, int(most / len(some)))))[: self.budget]

    def scan(self, runs: int) -> FloatArray:
        """Values on a wide range where the optimum may be; once that is known, a window is laid."""
        seen = self.outline()
        minima = seen.draws(MAX_CURVES, self.rng).argmin(axis=1)
        low, high = np.quantile(seen.x[minima], [0.05, 0.95])
        most = MAX_SCAN_RUNS if self.precise else MAX_SCAN_SHARE * self.budget
        if high - low > SCAN_DECADES and len(self.values) < most:
            return self.axis.values(seen.x[minima[np.arange(runs) % MAX_CURVES]])
        self.settle(seen, minima)
        return self.lacking(runs)

    def settle(self, seen: RegretOutline, minima: IntArray) -> None:
        """Lay the first window over most of these minima."""
        self.scanning = False
        self.lay(make_window(self.axis.among, *choose_span(seen, minima)))

    def lacking(self, runs: int) -> FloatArray:
        """Two runs at every place of the start that has none yet."""
        made = np.bincount(self.searches.at[0], minlength=len(self.searches.library.points))
        start = self.searches.library.start
        empty = start[(start >= self.window.from_point) & (made[start] < 2)]
        return self.at_points(np.repeat(empty, 2))[: self.left] if len(empty) else self.inside(runs)

    def inside(self, runs: int) -> FloatArray:
        """Near the lowest points of drawn curves, of the library and of the outline; the window follows them."""
        count = min(max(runs, FEWEST_MOVE_DRAWS), MAX_CURVES) if self.may_move else min(runs, MAX_CURVES)
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
        places = pick_near_lowest(curves, self.searches.at_ends, self.rng)[0]
        return np.where(elsewhere, lowest, self.at_points(places))[np.arange(runs) % count]

    @property
    def may_move(self) -> bool:
        """Whether another window may be laid. A log scale of few decades is one window."""
        if self.window is self.whole:
            return not self.axis.is_log and len(self.values) >= RUNS_BEFORE_MOVE
        return self.moves < MAX_MOVES

    def outside(self, seen: RegretOutline) -> Booleans:
        """Nodes of an outline that the library does not see."""
        widths = self.window.widths(self.axis.values(seen.x))
        return np.asarray((widths < 0.8 * self.window.library.fine[self.window.first]) | (widths > 1.1), np.bool_)

    def moved(self, lowest: FloatArray) -> SearchWindow | None:
        """Another window, where most of these lowest points are at an end of this one or outside of it."""
        widths, span = self.window.widths(lowest), self.window.span
        few, many = (widths <= LOW_WIDTH).mean() >= LOW_DRAWS_SHARE, (widths >= HIGH_WIDTH).mean() > HIGH_DRAWS_SHARE
        if self.axis.is_log:
            seen = self.outline()
            minima = np.abs(np.subtract.outer(self.axis.logs(lowest), seen.x)).argmin(axis=1)
            other = make_window(self.axis.among, *choose_span(seen, minima))
            same = (other.span, other.inverse) == (span, self.window.inverse)
            return other if (few or many) and not same else None
        if few:
            return make_window(self.axis.among, span / WINDOW_FACTOR)
        if many and self.window is not self.whole:
            return (
                make_window(self.axis.among, span * WINDOW_FACTOR)
                if span * WINDOW_FACTOR < 0.99 * self.whole.span
                else self.whole
            )
        return None

    def found(self, level: float, room: float) -> SearchAnswer:
        """The answer and what is known about it, of the window and of what lies outside."""
        if self.scanning:
            seen = self.outline()
            self.settle(seen, seen.draws(MAX_CURVES, self.rng).argmin(axis=1))
        window, fitted, among = self.window, self.searches.fit(), self.axis.among
        if window is self.whole:
            return state_answer(window.library, fitted, among, level, room)
        inner = draw_answer_curves(window.library, fitted)
        outer = self.outline()
        out = self.outside(outer)
        drawn = outer.draws(STATEMENT_DRAWS, make_statement_rng(fitted))[:, out]
        values = [window.values(window.library.fine[window.first :]), self.axis.values(outer.x[out])]
        order = np.argsort(np.concatenate(values), kind="stable")
        mean = np.concatenate([inner.mean[window.first :], drawn.mean(axis=0)])[order]
        curves = np.hstack([inner.curves[:, window.first :], drawn])[:, order]
        possible = np.array([among.within(float(value)) for value in np.concatenate(values)[order]])
        room = room if self.precise else room * WINDOW_GAP_SHARE
        return state_window_answer(
            window, fitted, among, AnswerCurves(int(mean.argmin()), mean, curves), possible, level, room
        )
