"""Selects the next runs of the two-part tuner: near the minima of drawn curves, in a window that contains them."""

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
"""The number of batches after the start in which a budget is used."""


START_SHARE = 0.1
"""The share of the budget for the start, which has a few widths with at least two runs each."""


MAX_CURVES = 200
"""The largest number of curves for a batch. In a larger batch, several runs have the same curve."""


BESIDE_SHARE, NEARLY_LOWEST_SHARE = 0.5, 0.15
"""The share of runs beside the minimum of a drawn curve, and the relative excess of widths that are nearly as low.

Runs at the minimum estimate its height; runs on either side estimate its position.
"""


LOW_WIDTH, HIGH_WIDTH, LOW_DRAWS_SHARE, HIGH_DRAWS_SHARE = 8 / 162, 0.85, 0.8, 0.5
"""A window is moved if the minima of `LOW_DRAWS_SHARE` of drawn curves are at `LOW_WIDTH` or below.

It is also moved if more than `HIGH_DRAWS_SHARE` of them are at `HIGH_WIDTH` or above, or outside.
"""


WINDOW_FACTOR, MAX_MOVES = 9.0, 8
"""The divisor of the window's length at a move on a linear scale, so that grid points are kept; and the most moves."""


RUNS_BEFORE_MOVE = 60
"""The fewest runs before the first window is moved. Fewer runs may have no failure by chance."""


FEWEST_MOVE_DRAWS = 40
"""The fewest drawn curves that decide whether a window is moved."""


SCAN_START_SHARE, MAX_SCAN_SHARE, MAX_SCAN_RUNS = 0.2, 0.45, 600
"""The shares of the budget for the scan of a wide range, at the start and in total; its most runs with a precision."""


SCAN_DECADES = 1.5
"""The scan ends when the minimum is within this number of decades with probability 90%."""


WINDOW_GAP_SHARE = 0.6
"""The divisor of the regret gap of a search in a window.

Smooth curves miss details. Near steps, statements without the divisor were wrong in two fifths of tunings.
"""


class LockstepSearches:
    """Searches in lock-step. `ask` returns the points of the next runs, and `tell` receives their regrets."""

    def __init__(
        self, library: CurveLibrary, searches: int, budget: int, rng: np.random.Generator, precise: bool = False
    ) -> None:
        # A few runs are most informative at the ends. A precision needs many runs, so that steps such as UCB1's matter,
        # for which runs anywhere are needed. The length of a search with a precision is unknown, so it starts with the
        # fewest runs.
        self.library, self.budget, self.rng, self.at_ends = library, budget, rng, not precise
        start = 0 if precise else int(START_SHARE * budget / len(library.start_points))
        first = np.repeat(library.start_points, max(2, start))
        self.next: IntArray = np.tile(first, (searches, 1))
        self.size = max(1, -(-(budget - first.size) // BATCH_COUNT))
        self.at: IntArray = np.empty((searches, 0), int)
        self.regrets: FloatArray = np.empty((searches, 0))
        self.fitted: CurveFit | None = None

    @property
    def runs_left(self) -> int:
        """The number of runs that each search may still make."""
        return self.budget - int(self.regrets.shape[1])

    def ask(self, size: int | None = None) -> IntArray:
        """Return positions in `library.points`, a row per search: first the start, then near the minima of drawn curves."""
        if self.regrets.shape[1]:
            runs = min(size or self.size, self.runs_left)
            curves = self.draw_curves(min(runs, MAX_CURVES))
            self.next = pick_near_lowest(curves, self.at_ends, self.rng)[:, np.arange(runs) % MAX_CURVES]
        return self.next

    def draw_curves(self, count: int) -> FloatArray:
        """Draw curves from the posterior, at the points of runs."""
        return draw_curves(self.library, self.fit_curves(), count, self.rng, fine=False)

    def tell(self, regrets: FloatArray) -> None:
        """Add the regrets at the points that `ask` returned."""
        self.at = np.hstack([self.at, self.next])
        self.regrets = np.hstack([self.regrets, regrets])
        self.fitted = None

    def fit_curves(self) -> CurveFit:
        """Compute the weights of all curves from all runs."""
        self.fitted = self.fitted or fit_curves(self.library, self.at, self.regrets)
        return self.fitted


def pick_near_lowest(curves: FloatArray, at_ends: bool, rng: np.random.Generator) -> IntArray:
    """Pick each curve's minimum, or another point of the region around it that is nearly as low: an end, or any point."""
    best, lowest = curves.argmin(axis=-1), curves.min(axis=-1, keepdims=True)
    positions = np.arange(curves.shape[-1])
    high = curves > lowest + NEARLY_LOWEST_SHARE * np.abs(lowest)
    left = np.where(high & (positions < best[..., None]), positions + 1, 0).max(axis=-1)
    right = np.where(high & (positions > best[..., None]), positions - 1, positions[-1]).min(axis=-1)
    fraction = rng.random(best.shape)
    anywhere: IntArray = left + (fraction * (right - left + 1)).astype(int)
    neighbour = np.where(fraction < 0.5, left, right) if at_ends else anywhere
    return np.where(rng.random(best.shape) < BESIDE_SHARE, neighbour, best)


class WindowedSearch:
    """One search whose library covers a window around the optimum. The first window is the whole range.

    On a log scale of many decades, runs are distributed over all of it until an outline locates the optimum. Later, runs
    are made outside the window if a curve drawn from the outline is lower there.
    """

    def __init__(self, search_range: Range, budget: int, rng: np.random.Generator, precise: bool) -> None:
        self.axis, self.budget, self.rng, self.precise = LogAxis(search_range), budget, rng, precise
        self.values: FloatArray = np.empty(0)
        self.regrets: FloatArray = np.empty(0)
        self.moves = 0
        self.scanning = self.axis.is_wide
        self.whole_window = make_whole_window(search_range)
        self.lay_window(self.whole_window)

    @property
    def runs_left(self) -> int:
        """The number of runs that may still be made."""
        return self.budget - len(self.values)

    @property
    def start_runs(self) -> int:
        """The smallest number of runs of the start."""
        return 2 * (math.ceil(self.axis.decades) + 1 if self.scanning else len(self.whole_window.library.start_points))

    def lay_window(self, window: SearchWindow) -> None:
        """Make the library cover another window, and pass it all runs inside."""
        self.window = window
        self.searches = LockstepSearches(window.library, 1, self.budget, self.rng, self.precise)
        # In a window, as with a precision, steps of the regret must be detected.
        self.searches.at_ends = not self.precise and window is self.whole_window
        if len(self.values):
            self.pass_to_library(self.values, self.regrets)

    def pass_to_library(self, values: FloatArray, regrets: FloatArray) -> None:
        """Pass the runs inside the window to the library."""
        points = self.window.locate_points(values)
        inside = points >= 0
        self.searches.next = points[None, inside]
        self.searches.tell(regrets[None, inside])

    def tell(self, values: FloatArray, regrets: FloatArray) -> None:
        """Add the regrets at these values."""
        self.values = np.concatenate([self.values, values])
        self.regrets = np.concatenate([self.regrets, regrets])
        self.pass_to_library(values, regrets)

    def fit_outline(self) -> RegretOutline:
        """Fit the outline to all runs."""
        logs = self.axis.compute_logs(self.values)
        return fit_outline(self.axis.make_nodes(float(logs.min())), logs, self.regrets)

    def ask(self, size: int | None = None) -> FloatArray:
        """Return the values of the next runs: the start, a scan of a wide range, or near the minima of drawn curves."""
        runs = min(size or self.searches.size, self.runs_left)
        if not len(self.values):
            return self.list_scan_start() if self.scanning else self.compute_values(self.searches.ask()[0])
        return self.scan_range(runs) if self.scanning else self.search_window(runs)

    def compute_values(self, points: IntArray) -> FloatArray:
        """Compute the values of points of the library."""
        return self.window.compute_values(self.searches.library.points[points])

    def list_scan_start(self) -> FloatArray:
        """List the first values on a wide range, evenly spaced."""
        x = self.axis.make_nodes(0.0)
        limit = len(x) if self.precise else SCAN_START_SHARE * self.budget
        nodes = next((x[::step] for step in (1, 2) if 2 * len(x[::step]) <= limit), x[::4])
        return self.axis.compute_values(np.repeat(nodes, max(2, int(limit / len(nodes)))))[: self.budget]

    def scan_range(self, runs: int) -> FloatArray:
        """Choose values on a wide range at likely optima. When the optimum is located, set the first window."""
        outline = self.fit_outline()
        minima = outline.draw_regrets(MAX_CURVES, self.rng).argmin(axis=1)
        low, high = np.quantile(outline.x[minima], [0.05, 0.95])
        limit = MAX_SCAN_RUNS if self.precise else MAX_SCAN_SHARE * self.budget
        if high - low > SCAN_DECADES and len(self.values) < limit:
            return self.axis.compute_values(outline.x[minima[np.arange(runs) % MAX_CURVES]])
        self.lay_first_window(outline, minima)
        return self.fill_start_points(runs)

    def lay_first_window(self, outline: RegretOutline, minima: IntArray) -> None:
        """Set the first window, which contains most of these minima."""
        self.scanning = False
        self.lay_window(make_window(self.axis.search_range, *choose_span(outline, minima)))

    def fill_start_points(self, runs: int) -> FloatArray:
        """Choose runs at every point of the start that has fewer than two."""
        run_counts = np.bincount(self.searches.at[0], minlength=len(self.searches.library.points))
        start = self.searches.library.start_points
        empty = start[(start >= self.window.first_point) & (run_counts[start] < 2)]
        return self.compute_values(np.repeat(empty, 2))[: self.runs_left] if len(empty) else self.search_window(runs)

    def search_window(self, runs: int) -> FloatArray:
        """Choose values near the minima of curves drawn from library and outline, and move the window to them."""
        count = min(max(runs, FEWEST_MOVE_DRAWS), MAX_CURVES) if self.can_move else min(runs, MAX_CURVES)
        curves = self.searches.draw_curves(count)
        curves[:, :, : self.window.first_point] = np.inf
        lowest = self.compute_values(curves[0].argmin(axis=1))
        elsewhere = np.zeros(count, bool)
        if self.window is not self.whole_window:
            outline = self.fit_outline()
            outline_draws = np.where(self.find_outside_nodes(outline), outline.draw_regrets(count, self.rng), np.inf)
            elsewhere = outline_draws.min(axis=1) < curves[0].min(axis=1)
            lowest = np.where(elsewhere, self.axis.compute_values(outline.x[outline_draws.argmin(axis=1)]), lowest)
        next_window = self.choose_next_window(lowest) if self.can_move else None
        if next_window:
            self.moves += 1
            self.lay_window(next_window)
            return self.fill_start_points(runs)
        positions = pick_near_lowest(curves, self.searches.at_ends, self.rng)[0]
        return np.where(elsewhere, lowest, self.compute_values(positions))[np.arange(runs) % count]

    @property
    def can_move(self) -> bool:
        """Whether the window can be moved. A log scale of few decades is one window."""
        if self.window is self.whole_window:
            return not self.axis.is_log and len(self.values) >= RUNS_BEFORE_MOVE
        return self.moves < MAX_MOVES

    def find_outside_nodes(self, outline: RegretOutline) -> Booleans:
        """Find the nodes of an outline that are outside the window."""
        widths = self.window.compute_widths(self.axis.compute_values(outline.x))
        return np.asarray((widths < 0.8 * self.window.library.fine[self.window.first_fine]) | (widths > 1.1), np.bool_)

    def choose_next_window(self, lowest: FloatArray) -> SearchWindow | None:
        """Choose another window if most of these minima are at an end of the present one or outside it."""
        widths, span = self.window.compute_widths(lowest), self.window.span
        is_low, is_high = (
            (widths <= LOW_WIDTH).mean() >= LOW_DRAWS_SHARE,
            (widths >= HIGH_WIDTH).mean() > HIGH_DRAWS_SHARE,
        )
        if self.axis.is_log:
            outline = self.fit_outline()
            minima = np.abs(np.subtract.outer(self.axis.compute_logs(lowest), outline.x)).argmin(axis=1)
            candidate = make_window(self.axis.search_range, *choose_span(outline, minima))
            is_same = (candidate.span, candidate.is_inverse) == (span, self.window.is_inverse)
            return candidate if (is_low or is_high) and not is_same else None
        if is_low:
            return make_window(self.axis.search_range, span / WINDOW_FACTOR)
        if is_high and self.window is not self.whole_window:
            return (
                make_window(self.axis.search_range, span * WINDOW_FACTOR)
                if span * WINDOW_FACTOR < 0.99 * self.whole_window.span
                else self.whole_window
            )
        return None

    def conclude(self, confidence: float, gap_divisor: float) -> SearchAnswer:
        """State the answer and its uncertainty, inside and outside the window."""
        if self.scanning:
            outline = self.fit_outline()
            self.lay_first_window(outline, outline.draw_regrets(MAX_CURVES, self.rng).argmin(axis=1))
        window, fitted, search_range = self.window, self.searches.fit_curves(), self.axis.search_range
        if window is self.whole_window:
            return state_answer(window.library, fitted, search_range, confidence, gap_divisor)
        library_curves = draw_answer_curves(window.library, fitted)
        outline = self.fit_outline()
        outside = self.find_outside_nodes(outline)
        outline_draws = outline.draw_regrets(STATEMENT_DRAWS, make_statement_rng(fitted))[:, outside]
        values = [
            window.compute_values(window.library.fine[window.first_fine :]),
            self.axis.compute_values(outline.x[outside]),
        ]
        order = np.argsort(np.concatenate(values), kind="stable")
        mean = np.concatenate([library_curves.mean[window.first_fine :], outline_draws.mean(axis=0)])[order]
        curves = np.hstack([library_curves.curves[:, window.first_fine :], outline_draws])[:, order]
        possible = np.array([search_range.clip(float(value)) for value in np.concatenate(values)[order]])
        gap_divisor = gap_divisor if self.precise else gap_divisor * WINDOW_GAP_SHARE
        return state_window_answer(
            window,
            fitted,
            search_range,
            AnswerCurves(int(mean.argmin()), mean, curves),
            possible,
            confidence,
            gap_divisor,
        )
