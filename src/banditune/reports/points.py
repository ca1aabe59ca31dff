"""The points of a report's plots, as records: what is drawn where. Nothing is drawn here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.contracts import Floats
from banditune.reports.words import baseline_name, number, settings, sureness
from banditune.results import (
    Comparison,
    Curve,
    Entry,
    Estimate,
    Floor,
    Spread,
    TrialResult,
    Tuning,
)

BLACK, TUNED, CURVE, GREY = 0, 1, 2, 7
"""Places in the palette of the page (`page.css`)."""

SERIES = (1, 2, 3, 4, 5, 6, 0)
"""Colours of several lines, in this order; more lines than that could not be told apart."""

VAGUE = 0.75
"""Where the best may be anywhere in so much of the range that was searched, or more, a picture need not show it."""

DOTS, BATCHES = 1000, 50
"""A search of more dots than that is drawn in so many batches of trials."""


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`; `least` is where a logarithmic one begins, None if there can be none.

    Ticks are at `whole` numbers only, or told as `percent`. An axis with `names` has a row for each, from the top.
    """

    label: str
    low: float
    high: float
    least: float | None = None
    log: bool = False
    whole: bool = False
    percent: bool = False
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Mark:
    """Something drawn at points (x, y): a `line`, a `band` from `low` to `high`, or `dots` with a radius and a tip each.

    Dots with `low` and `high` have intervals `along` an axis. A `span` lies between two x, a `rule` stands at an x, a
    `level` lies at a y. The label is for the legend; without one the mark is not in it.
    """

    shape: str
    colour: int
    label: str = ""
    x: tuple[float, ...] = ()
    y: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    radius: tuple[float, ...] = ()
    tips: tuple[str, ...] = ()
    along: str = "y"
    hollow: bool = False


@dataclass(frozen=True)
class Plot:
    """Marks on two axes; `about` tells in words what there is to see; zooming goes to `focus` unless a dot is chosen."""

    about: str
    x: Axis
    y: Axis
    marks: tuple[Mark, ...]
    focus: tuple[float, float]


def axis(label: str, values: Sequence[float], *, log: bool = False, room: float = 0.04, **more: Any) -> Axis:
    """An axis on which all values are seen, with some room at the ends."""
    low, high = min(values), max(values)
    extra = room * (high - low) or 0.5 * abs(high) or 0.5
    positive = [value for value in values if value > 0]
    least = 0.85 * min(positive) if positive else None
    bottom = 0.0 if low >= 0 and low - extra < 0 else low - extra
    # On a logarithmic axis the same room is a multiple.
    top = high / 0.85 if log and least else high + extra
    return Axis(label, bottom, top, least, log and least is not None, **more)


def visits(result: Tuning) -> tuple[Any, Any, Any]:
    """Values that the search played, their means, and areas that grow with the runs."""
    values = np.concatenate([trial.values for trial in result.trials])
    sums = np.concatenate([trial.mean * trial.runs for trial in result.trials])
    sizes = np.concatenate([trial.runs for trial in result.trials])
    values, which = np.unique(values, return_inverse=True)
    sizes = np.bincount(which, sizes)
    means = np.bincount(which, sums) / sizes
    often = sizes >= min(10, sizes.max())  # means of few runs would look like better values
    return values[often], means[often], 15 + 150 * sizes[often] / sizes.max()


def view(intervals: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """A range of regrets that shows these intervals well, whatever all others do."""
    low = min(0.0, *(low for low, _ in intervals))
    high = max(high for _, high in intervals)
    top = high + 0.25 * (high - low)
    # Where nothing is lost at all, any range will do.
    return low, top if top > low else low + 1.0


def tuning_view(result: Tuning) -> tuple[float, float]:
    """That of the tuned and theory's value."""
    return view([(estimate.low, estimate.high) for estimate in (result.regret, result.theory)])


def tuning_plot(result: Tuning) -> Plot:
    """Regret over the parameter: the curve if there is one, the means of the search, the tuned and theory's value."""
    ((name, value),) = result.params.items()
    ((_, theory),) = result.theory_params.items()
    usual = baseline_name(result)
    visited, means, _ = visits(result)
    bottom, top = tuning_view(result)
    marks = [
        *belief_marks(result),
        *(curve_marks(result.curve) if result.curve else ()),
        search_mark(result),
        *floor_marks(result.floor, "level"),
        estimate_mark(BLACK, "theory", theory, f"{usual}: {name} = {number(theory)}", result.theory),
        estimate_mark(TUNED, "tuned", value, f"tuned: {name} = {number(value)}", result.regret),
    ]
    places = [value, theory, *visited.tolist(), *(result.curve.values.tolist() if result.curve else ())]
    heights = [
        *means.tolist(),
        *(result.curve.mean.tolist() if result.curve else ()),
        *([result.floor.regret] if result.floor else ()),
    ]
    least = 0.8 * min([height for height in heights if height > 0] + [max(result.regret.mean, 1e-300)])
    about = (
        f"Bayes regret over {name}. Tuned, {name} = {number(value)} loses {told(result.regret)}; {usual}, "
        f"{name} = {number(theory)} loses {told(result.theory)}."
    )
    y = Axis("Bayes regret", bottom, top, least if result.regret.mean > 0 else None)
    return Plot(
        about, axis(name, places, log=log_drawn(result), room=0.02), y, tuple(marks), (value, result.regret.mean)
    )


def curve_plot(result: Curve) -> Plot:
    """A regret curve, with its lowest value as fresh instances have it."""
    name, best = result.parameter, result.best_regret
    label = f"best: {name} = {number(result.best)}, on fresh instances"
    marks = (
        Mark("rule", GREY, f"theory: {name} = {number(result.theory)}", x=(result.theory,)),
        *curve_marks(result),
        estimate_mark(TUNED, "best", result.best, label, best),
    )
    heights = [*(result.mean - result.reach).tolist(), *(result.mean + result.reach).tolist(), best.low, best.high]
    about = f"Bayes regret over {name}: lowest at {name} = {number(result.best)}, which loses {told(best)}."
    x = axis(name, [*result.values.tolist(), result.theory], log=result.log_scale, room=0.02)
    # Bands that reach below 0 are no reason to show what cannot be.
    y = axis("Bayes regret", [0.0, *(max(height, min(0.0, best.low)) for height in heights)])
    return Plot(about, x, y, marks, (result.best, best.mean))


def curve_marks(curve: Curve) -> tuple[Mark, ...]:
    """The curve, its 95% band, and its values as dots."""
    band = curve.reach
    x, y = tuple(curve.values.tolist()), tuple(curve.mean.tolist())
    low, high = tuple((curve.mean - band).tolist()), tuple((curve.mean + band).tolist())
    tips = tuple(
        f"{curve.parameter} = {number(value)} loses {number(mean)} ({number(least)} to {number(most)})"
        for value, mean, least, most in zip(x, y, low, high, strict=True)
    )
    return (
        Mark("band", CURVE, x=x, low=low, high=high),
        Mark("line", CURVE, "Bayes regret, 95% band", x=x, y=y),
        Mark("dots", CURVE, x=x, y=y, radius=(2.2,) * len(x), tips=tips),
    )


def search_mark(result: Tuning) -> Mark:
    """Means of the search's own runs, with areas that grow with the runs."""
    (name,) = result.params
    values, means, areas = visits(result)
    tips = tuple(
        f"{name} = {number(value)} lost {number(mean)} in the search"
        for value, mean in zip(values.tolist(), means.tolist(), strict=True)
    )
    radius = tuple((0.55 * np.sqrt(areas)).tolist())
    return Mark("dots", GREY, "means of the search (area: runs)", tuple(values), tuple(means), radius=radius, tips=tips)


def belief_marks(result: Tuning) -> tuple[Mark, ...]:
    """Where the best value is, as far as the search knows."""
    span = best_span(result)
    return () if span is None else (Mark("span", TUNED, span[1], x=span[0]),)


def best_span(result: Tuning) -> tuple[tuple[float, float], str] | None:
    """Where the best value is and how sure that is, as far as the search can say something by that."""
    belief = result.belief
    if belief is None or belief.misfit or share_searched(result, belief.best_low, belief.best_high) >= VAGUE:
        return None
    (name,) = result.params
    what = f"the best {belief.among(name)}" if belief.untried else "the best"
    return (belief.best_low, belief.best_high), f"{what} is here ({100 * belief.level:g}% sure)"


def share_searched(result: Tuning, low: float, high: float) -> float:
    """The share of the searched range that lies between two values, on the axis on which it is drawn."""
    values = np.concatenate([trial.values for trial in result.trials])
    ends = np.array([low, high, values.min(), values.max()])
    if log_drawn(result) and ends.min() > 0:
        ends = np.log(ends)
    return float((ends[1] - ends[0]) / (ends[3] - ends[2])) if ends[3] > ends[2] else 0.0


def log_drawn(result: Tuning) -> bool:
    """Whether the parameter has a logarithmic axis."""
    return bool(result.curve and result.curve.log_scale)


def floor_marks(floor: Floor | None, shape: str) -> tuple[Mark, ...]:
    """What no policy can go below, as a line, where that is known."""
    if floor is None:
        return ()
    label = f"no policy below {number(floor.regret)} ({sureness(floor)})"
    if floor.exact:
        label = f"the best that any policy can do: {number(floor.regret)}"
    place = (float(floor.regret),)
    return (Mark(shape, 3, label, x=place if shape == "rule" else (), y=place if shape == "level" else ()),)


def estimate_mark(colour: int, what: str, place: float, label: str, estimate: Estimate) -> Mark:
    """One estimate with its interval, at a place of the parameter."""
    return Mark(
        "dots",
        colour,
        label,
        (place,),
        (estimate.mean,),
        (estimate.low,),
        (estimate.high,),
        (4.5,),
        (f"{what}: {number(place)} loses {told(estimate)}",),
    )


def told(estimate: Estimate) -> str:
    """40.4 (35.6 to 45.3)."""
    return f"{number(estimate.mean)} ({number(estimate.low)} to {number(estimate.high)})"


@dataclass(frozen=True)
class Batch:
    """Values that trials `first` to `last` visited, in order, and how many runs each got."""

    first: int
    last: int
    values: Floats
    runs: Floats

    @property
    def rows(self) -> list[tuple[float, float]]:
        """Each value with its runs."""
        return list(zip(self.values.tolist(), self.runs.tolist(), strict=True))

    @property
    def words(self) -> str:
        """trial 3, or trials 3 to 5."""
        return f"trial {self.last}" if self.first == self.last else f"trials {self.first} to {self.last}"


def search_plot(result: Tuning) -> Plot:
    """The values that every trial visited, with dots by runs, and where most runs of a trial went."""
    ((name, value),) = result.params.items()
    batches = batched(result.trials)
    visited = visited_mark(name, batches)
    lows, highs = zip(*map(middle, batches), strict=True)
    ends = tuple(float(batch.last) for batch in batches)
    marks = (
        Mark("band", CURVE, "where nine of ten runs went", x=ends, low=lows, high=highs),
        visited,
        Mark("level", TUNED, f"the answer: {name} = {number(value)}", y=(value,)),
    )
    about = (
        f"Values of {name} that the search visited, trial by trial: {len(result.trials)} trials, {result.spent:,} runs; "
        f"at the end most runs went to {number(lows[-1])} to {number(highs[-1])}."
    )
    across = Axis("trial", 0.5, len(result.trials) + 0.5, 0.8, whole=True)
    return Plot(
        about, across, axis(name, [*visited.y, value], log=log_drawn(result), room=0.05), marks, (ends[-1], value)
    )


def visited_mark(name: str, batches: Sequence[Batch]) -> Mark:
    """A dot for every value that a batch visited, with an area that grows with the runs."""
    dots = [(batch, value, runs) for batch in batches for value, runs in batch.rows]
    most = max(runs for _, _, runs in dots)
    return Mark(
        "dots",
        CURVE,
        "visited (area: runs)",
        tuple(float(batch.last) for batch, _, _ in dots),
        tuple(value for _, value, _ in dots),
        radius=tuple(1.5 + 6.5 * math.sqrt(runs / most) for _, _, runs in dots),
        tips=tuple(
            f"{batch.words}: {name} = {number(value)}, {runs:,.0f} run{'s' * (runs != 1)}"
            for batch, value, runs in dots
        ),
    )


def batched(trials: Sequence[TrialResult]) -> list[Batch]:
    """Every trial by itself, or, where that would be too many dots, neighbouring trials and values put together."""
    crowded = sum(len(trial.values) for trial in trials) > DOTS
    step = math.ceil(len(trials) / BATCHES) if crowded else 1
    most = DOTS // math.ceil(len(trials) / step) if crowded else DOTS
    found = []
    for first in range(0, len(trials), step):
        some = trials[first : first + step]
        values, which = np.unique(np.concatenate([trial.values for trial in some]), return_inverse=True)
        runs = np.bincount(which, np.concatenate([trial.runs for trial in some])).astype(float)
        found.append(Batch(first + 1, first + len(some), *gathered(values, runs, most)))
    return found


def gathered(values: Floats, runs: Floats, most: int) -> tuple[Floats, Floats]:
    """At most so many values: neighbours become their mean, and their runs add up."""
    groups = np.array_split(np.arange(len(values)), min(most, len(values)))
    totals = np.array([runs[group].sum() for group in groups])
    return np.array([values[group] @ runs[group] for group in groups]) / totals, totals


def middle(batch: Batch) -> tuple[float, float]:
    """The values between which nine tenths of the runs of a batch lie."""
    share = np.cumsum(batch.runs) / batch.runs.sum()
    low, high = np.searchsorted(share, (0.05, 0.95 - 1e-12))
    return float(batch.values[low]), float(batch.values[high])


def comparison_plot(result: Comparison) -> Plot:
    """A row for each policy: its regret with the interval, and what it would lose as theory has it."""
    rows = list(enumerate(result.entries))
    tuned, others = ([(row, entry) for row, entry in rows if entry.tuned == which] for which in (True, False))
    marks = [
        *floor_marks(result.floor, "rule"),
        *([theory_mark(tuned), policy_mark(tuned, TUNED, "tuned, 95% interval")] if tuned else ()),
        *([policy_mark(others, BLACK, "not tuned, 95% interval")] if others else ()),
    ]
    ends = [end for entry in result.entries for end in (entry.regret.low, entry.regret.high)]
    ends += [result.floor.regret] if result.floor else []
    across = axis("Bayes regret", [0.0, *ends, *(entry.theory.mean for _, entry in tuned)])
    names = tuple(entry.policy for entry in result.entries)
    about = "Policies, best first: " + "; ".join(
        f"{entry.policy} loses {told(entry.regret)}" for entry in result.entries
    )
    down = Axis("", -0.5, len(rows) - 0.5, names=names)
    return Plot(about + ".", across, down, tuple(marks), (result.entries[0].regret.mean, 0.0))


def policy_mark(rows: Sequence[tuple[int, Entry]], colour: int, label: str) -> Mark:
    """Regrets with their intervals, each in its row."""
    return Mark(
        "dots",
        colour,
        label,
        tuple(entry.regret.mean for _, entry in rows),
        tuple(float(row) for row, _ in rows),
        tuple(entry.regret.low for _, entry in rows),
        tuple(entry.regret.high for _, entry in rows),
        (4.5,) * len(rows),
        tuple(f"{entry.policy} {settings(entry.params)} loses {told(entry.regret)}" for _, entry in rows),
        along="x",
    )


def theory_mark(rows: Sequence[tuple[int, Entry]]) -> Mark:
    """What tuned policies would lose as theory has them."""
    return Mark(
        "dots",
        BLACK,
        "as theory has it",
        tuple(entry.theory.mean for _, entry in rows),
        tuple(float(row) for row, _ in rows),
        radius=(4.5,) * len(rows),
        tips=tuple(f"{entry.policy} as theory has it loses {told(entry.theory)}" for _, entry in rows),
        hollow=True,
    )


def spread_plot(spreads: Sequence[tuple[str, Spread]]) -> Plot:
    """The share of runs that lose so much or more, on logarithmic axes: the few terrible runs are seen as well."""
    marks: list[Mark] = []
    for colour, (name, spread) in zip(SERIES, spreads, strict=False):
        losses, shares, tips = tail(name, spread)
        marks.append(Mark("line", colour, f"{name}, mean {number(spread.mean)}", losses, shares))
        marks.append(Mark("dots", colour, "", losses, shares, radius=(2.4,) * len(losses), tips=tips))
    drawn = spreads[: len(SERIES)]
    about = "Share of runs that lose at least so much. " + " ".join(
        f"{name}: half lose {number(spread.at(0.5))} or more, 1% lose {number(spread.at(0.99))} or more, "
        f"the worst loses {number(float(spread.values[-1]))}."
        for name, spread in drawn
    )
    least = 0.8 * min(share for mark in marks for share in mark.y)
    ends = [loss for mark in marks for loss in mark.x]
    across = axis("regret of a run", ends, log=min(ends) > 0)
    down = Axis("share of runs that lose so much or more", 0.0, 1.12, least, log=True, percent=True)
    return Plot(about, across, down, tuple(marks), (drawn[0][1].at(0.99), 0.01))


def tail(name: str, spread: Spread) -> tuple[tuple[float, ...], tuple[float, ...], tuple[str, ...]]:
    """Regrets, the share of runs that lose so much or more, and tips: from the quantiles, then the worst runs."""
    below = [(level, value) for level, value in zip(spread.levels, spread.values, strict=True) if level < 1]
    # A quantile in the reach of the worst runs would say the same again.
    below = [(level, value) for level, value in below if (1 - level) * spread.runs > len(spread.worst)]
    found = [
        (value, 1 - level, f"{name}: {percent(1 - level)} of runs lose {number(value)} or more")
        for level, value in below
    ]
    for place in reversed(range(len(spread.worst))):
        loss = float(spread.losses[place])
        words = (
            f"{name}: run {spread.worst[place]} loses {number(loss)}, the worst but {place}"
            if place
            else (f"{name}: run {spread.worst[0]} loses {number(loss)}, the worst of {spread.runs:,}")
        )
        found.append((loss, (place + 1) / spread.runs, words))
    losses, shares, tips = zip(*found, strict=True)
    return tuple(map(float, losses)), tuple(map(float, shares)), tips


def percent(share: float) -> str:
    """0.5%, 95%."""
    return f"{100 * share:.4g}%"
