"""Plots of the values that a search simulated and of the interval of the best value, as records."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.reports.plot_marks import (
    CURVE_COLOUR,
    GREY_COLOUR,
    TUNED_COLOUR,
    PlotAxis,
    PlotMark,
    PlotSpec,
    make_axis,
)
from banditune.reports.text_formatting import format_number
from banditune.results.search_results import TrialResult
from banditune.results.tuning_results import Tuning

VAGUE_SHARE = 0.75
"""An interval of the best value that covers at least this share of the searched range is not drawn."""


MAX_DOTS, BATCH_COUNT = 1000, 50
"""A search of more dots than `MAX_DOTS` is drawn in `BATCH_COUNT` batches of trials."""


def summarise_visits(result: Tuning, name: str) -> tuple[Any, Any, Any]:
    """Return a parameter's values that the search simulated, their means, and areas that grow with the runs.

    With several parameters, the others differ from value to value.
    """
    values = np.concatenate(list_visited_values(result, name))
    sums = np.concatenate([trial.mean * trial.runs for trial in result.trials])
    sizes = np.concatenate([trial.runs for trial in result.trials])
    values, which = np.unique(values, return_inverse=True)
    sizes = np.bincount(which, sizes)
    means = np.bincount(which, sums) / sizes
    often = sizes >= min(10, sizes.max())  # means of few runs would look too good
    return values[often], means[often], 15 + 150 * sizes[often] / sizes.max()


def list_visited_values(result: Tuning, name: str) -> list[FloatArray]:
    """List the values of a parameter in each trial."""
    column = result.searched_parameters.index(name)
    return [trial.rows[:, column] for trial in result.trials]


def make_search_mark(result: Tuning, name: str) -> PlotMark:
    """Mark the means of the search, with areas that grow with the runs."""
    values, means, areas = summarise_visits(result, name)
    tips = tuple(
        f"{name} = {format_number(value)}, regret {format_number(mean)} in the search"
        for value, mean in zip(values.tolist(), means.tolist(), strict=True)
    )
    radius = tuple((0.55 * np.sqrt(areas)).tolist())
    return PlotMark(
        "dots", GREY_COLOUR, label_search_means(result), tuple(values), tuple(means), radius=radius, tips=tips
    )


def label_search_means(result: Tuning) -> str:
    """Label the means of the search."""
    others = "; other parameters vary" if len(result.searched_parameters) > 1 else ""
    return f"means of the search (area: runs{others})"


def make_posterior_marks(result: Tuning, name: str) -> tuple[PlotMark, ...]:
    """Mark the interval of the best value, if the search states one."""
    span = find_best_span(result, name)
    return () if span is None else (PlotMark("span", TUNED_COLOUR, span[1], x=span[0]),)


def find_best_span(result: Tuning, name: str) -> tuple[tuple[float, float], str] | None:
    """Return the interval of the best value and its label; None if the search states none or a very wide one."""
    posterior = result.posterior
    if posterior is None or posterior.misfit:
        return None
    low, high = posterior.best_intervals[name]
    if compute_searched_share(result, name, low, high) >= VAGUE_SHARE:
        return None
    label = f"the best {posterior.describe_range(name)}" if posterior.unexplored else "the best"
    return (low, high), f"{label} lies here ({100 * posterior.confidence:g}% sure)"


def compute_searched_share(result: Tuning, name: str, low: float, high: float) -> float:
    """Return the share of the searched range between two values, on the scale of the axis."""
    values = np.concatenate(list_visited_values(result, name))
    ends = np.array([low, high, values.min(), values.max()])
    if has_log_axis(result, name) and ends.min() > 0:
        ends = np.log(ends)
    return float((ends[1] - ends[0]) / (ends[3] - ends[2])) if ends[3] > ends[2] else 0.0


def has_log_axis(result: Tuning, name: str) -> bool:
    """Return whether a parameter has a logarithmic axis."""
    curve = result.find_curve(name)
    return bool(curve and curve.log_scale)


@dataclass(frozen=True)
class TrialBatch:
    """The values that trials `first_trial` to `last_trial` visited, in order, and the runs of each."""

    first_trial: int
    last_trial: int
    values: FloatArray
    runs: FloatArray

    @property
    def rows(self) -> list[tuple[float, float]]:
        """The values with their runs."""
        return list(zip(self.values.tolist(), self.runs.tolist(), strict=True))

    @property
    def label(self) -> str:
        """The label, such as trial 3, or trials 3 to 5."""
        return (
            f"trial {self.last_trial}"
            if self.first_trial == self.last_trial
            else f"trials {self.first_trial} to {self.last_trial}"
        )


def make_search_plot(result: Tuning, name: str) -> PlotSpec:
    """Make the plot of the values that each trial visited, and the band that holds most of its runs."""
    value = result.params[name]
    batches = batch_trials(result.trials, result.searched_parameters.index(name))
    visited = make_visited_mark(name, batches)
    lows, highs = zip(*map(find_middle_values, batches), strict=True)
    ends = tuple(float(batch.last_trial) for batch in batches)
    marks = (
        PlotMark("band", CURVE_COLOUR, "90% of the runs", x=ends, low=lows, high=highs),
        visited,
        PlotMark("horizontal", TUNED_COLOUR, f"the answer: {name} = {format_number(value)}", y=(value,)),
    )
    about = (
        f"Values of {name} that the search visited, trial by trial: {len(result.trials)} trials, "
        f"{result.search_runs:,} runs. At the end most runs were at {format_number(lows[-1])} to "
        f"{format_number(highs[-1])}."
    )
    across = PlotAxis("trial", 0.5, len(result.trials) + 0.5, 0.8, integer_ticks=True)
    return PlotSpec(
        about,
        across,
        make_axis(name, [*visited.y, value], log=has_log_axis(result, name), margin=0.05),
        marks,
        (ends[-1], value),
    )


def make_visited_mark(name: str, batches: Sequence[TrialBatch]) -> PlotMark:
    """Mark each value that a batch visited, with an area that grows with the runs."""
    dots = [(batch, value, runs) for batch in batches for value, runs in batch.rows]
    limit = max(runs for _, _, runs in dots)
    return PlotMark(
        "dots",
        CURVE_COLOUR,
        "visited (area: runs)",
        tuple(float(batch.last_trial) for batch, _, _ in dots),
        tuple(value for _, value, _ in dots),
        radius=tuple(1.5 + 6.5 * math.sqrt(runs / limit) for _, _, runs in dots),
        tips=tuple(
            f"{batch.label}: {name} = {format_number(value)}, {runs:,.0f} run{'s' * (runs != 1)}"
            for batch, value, runs in dots
        ),
    )


def batch_trials(trials: Sequence[TrialResult], column: int = 0) -> list[TrialBatch]:
    """Batch the values of the parameter in this column: a batch for each trial.

    Neighbouring trials and values are merged if there would be too many dots.
    """
    crowded = sum(len(trial.rows) for trial in trials) > MAX_DOTS
    step = math.ceil(len(trials) / BATCH_COUNT) if crowded else 1
    limit = MAX_DOTS // math.ceil(len(trials) / step) if crowded else MAX_DOTS
    batches = []
    for first in range(0, len(trials), step):
        batch = trials[first : first + step]
        values, which = np.unique(np.concatenate([trial.rows[:, column] for trial in batch]), return_inverse=True)
        runs = np.bincount(which, np.concatenate([trial.runs for trial in batch])).astype(float)
        batches.append(TrialBatch(first + 1, first + len(batch), *merge_neighbours(values, runs, limit)))
    return batches


def merge_neighbours(values: FloatArray, runs: FloatArray, limit: int) -> tuple[FloatArray, FloatArray]:
    """Merge neighbours into at most `limit` values: their weighted means, with the sums of their runs."""
    groups = np.array_split(np.arange(len(values)), min(limit, len(values)))
    totals = np.array([runs[group].sum() for group in groups])
    return np.array([values[group] @ runs[group] for group in groups]) / totals, totals


def find_middle_values(batch: TrialBatch) -> tuple[float, float]:
    """Return the values between which 90% of the runs of a batch lie."""
    share = np.cumsum(batch.runs) / batch.runs.sum()
    low, high = np.searchsorted(share, (0.05, 0.95 - 1e-12))
    return float(batch.values[low]), float(batch.values[high])
