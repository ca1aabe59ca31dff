"""What was computed rather than simulated, optima, exact regrets and bounds: as text, as stories with plots, as figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from banditune.reports import figures
from banditune.reports.plain_text import format_text
from banditune.reports.plot_marks import (
    CURVE_COLOUR,
    GREY_COLOUR,
    TUNED_COLOUR,
    PlotAxis,
    PlotMark,
    PlotSpec,
    make_axis,
    make_lower_bound_marks,
)
from banditune.reports.repeat_section import make_repeat_section
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import ReportContent, ReportSection, ReportTable
from banditune.reports.report_sections import (
    describe_option_sources,
    format_lower_bound_sentences,
    list_lower_bound_figures,
)
from banditune.reports.text_formatting import (
    describe_confidence,
    describe_lower_bound,
    describe_setup,
    format_count,
    format_number,
    format_text_table,
    list_problem_options,
)
from banditune.results.estimates import UPPER_TAIL_LEVEL
from banditune.results.exact_results import ExactOptimum, ExactRegret, LowerBoundEstimates
from banditune.results.student_t import compute_student_quantile

MIN_JOINED_VALUES = 5
"""From so many values on they are joined by a line: between few values nobody knows the regret."""


PLAYER_INFORMATION = {
    "future": "all rewards; a pull pays the mean of the arm given all of them",
    "belief": "all rewards; a pull pays the arm's posterior mean at that pull",
    "value": "as belief, less a charge for how rewards change the expected best mean",
    "one arm": "the best mean of the other arms; each arm plays alone, for a price",
    "together": "all rewards, with the charges of one arm; all pulls make up the horizon",
}
"""What the player of each bound is told who loses no more than any policy."""


@format_text.register
def _(result: ExactOptimum) -> str:
    return "\n".join([describe_setup(result.setup), "", f"{state_optimum(result)} (exact)."])


@format_text.register
def _(result: ExactRegret) -> str:
    rows: list[Sequence[str]] = [(result.parameter, "regret")]
    for value, regret in zip(result.values, result.regret, strict=True):
        rows.append((format_number(value), format_exact(regret) + ("  <- theory" if value == result.theory else "")))
    head = [describe_setup(result.setup), *list_problem_options(result.setup), ""]
    return "\n".join([*head, format_text_table(rows, left=(1,)), "", *describe_lower_bound(result.floor)]).rstrip()


@format_text.register
def _(result: LowerBoundEstimates) -> str:
    rows = [("bound", "regret", "std. error", "instances"), *list_bound_rows(result)]
    seed = f"seed {result.setup.seed}"
    return "\n".join(
        [describe_setup(result.setup), "", state_lower_bound(result), "", format_text_table(rows), "", seed]
    )


@build_report_content.register
def _(result: ExactOptimum) -> ReportContent:
    steps = result.setup.horizon
    rows = [("the best policy", result.reward), ("one who knows the best arm", result.known), ("regret", result.regret)]
    shown = ReportTable(
        ("expected", "in all", "a step"),
        tuple((name, format_exact(all_), format_exact(all_ / steps)) for name, all_ in rows),
    )
    words = (
        "By dynamic programming, backwards over everything that can be known at each step: no policy can do better, and "
        "`bt.exact.make_optimal_policy(problem)` is the one that does this. Nothing was simulated, so there is no standard error.",
    )
    remembered = (
        ("no policy goes below", format_number(result.regret), "exact"),
        ("the best policy earns", format_exact(result.reward), f"in {format_count(steps, 'step')}"),
        ("one who knows the best arm", format_exact(result.known), "earns so much"),
    )
    parts = (ReportSection("What was computed", words, table=shown), make_repeat_section(result, result.setup, []))
    return ReportContent(describe_setup(result.setup), f"{state_optimum(result)}.", remembered, parts)


@build_report_content.register
def _(result: ExactRegret) -> ReportContent:
    words = (
        "Probabilities of everything that can happen, followed step by step: nothing was simulated, so there is no "
        "standard error.",
        *describe_option_sources(result.setup),
        *format_lower_bound_sentences(result.floor),
    )
    parts = (
        ReportSection("Regret", words, make_exact_regret_plot(result), make_exact_regret_table(result)),
        make_repeat_section(result, result.setup, []),
    )
    return ReportContent(
        describe_setup(result.setup), state_exact_regret(result), tuple(list_exact_figures(result)), parts
    )


@build_report_content.register
def _(result: LowerBoundEstimates) -> ReportContent:
    rows = tuple((kind, PLAYER_INFORMATION.get(kind, ""), *numbers) for kind, *numbers in list_bound_rows(result))
    words = (
        "A player who is told more than a policy may know loses no more than any policy. Each bound is what such a player "
        "loses: a mean over sampled instances, with its 95% interval, or computed.",
        describe_bound_choice(result),
    )
    shown = ReportTable(("bound", "what the player is told", "regret", "std. error", "instances"), rows, left=2)
    own = [("seed", str(result.setup.seed)), ("instances", f"{max(result.runs):,}")]
    if result.confidence is not None:
        own.append(("confidence", f"{100 * result.confidence:g}%"))
    parts = (
        ReportSection("Bounds", words, make_bound_plot(result), shown),
        make_repeat_section(result, result.setup, own),
    )
    remembered = (
        ("no policy goes below", format_number(result.floor.regret), describe_confidence(result.floor)),
        ("best bound", result.floor.how, f"of {format_count(len(result.kinds), 'kind')}"),
    )
    return ReportContent(describe_setup(result.setup), state_lower_bound(result), remembered, parts)


@figures.draw_result.register
def _(result: ExactRegret, axes: Any) -> None:
    figures.draw_plot_spec(make_exact_regret_plot(result), axes, describe_setup(result.setup))


@figures.draw_result.register
def _(result: LowerBoundEstimates, axes: Any) -> None:
    figures.draw_plot_spec(make_bound_plot(result), axes, describe_setup(result.setup))


def format_exact(value: float) -> str:
    """A number that was computed, with seven digits."""
    return f"{value:.7g}"


def state_optimum(result: ExactOptimum) -> str:
    """What the best policy loses and earns."""
    return (
        f"The best policy loses {format_number(result.regret)} on average: it earns {format_exact(result.reward)} of the "
        f"{format_exact(result.known)} of one who knows the best arm"
    )


def find_lowest_regret(result: ExactRegret) -> int:
    """The place of the value that loses least, the first of equal ones."""
    return int(result.regret.argmin())


def is_tunable(result: ExactRegret) -> bool:
    """Whether the policy has a parameter; one without takes any value and loses the same."""
    return result.parameter != "value" or len(set(result.regret.tolist())) > 1


def name_exact_value(result: ExactRegret, place: int) -> str:
    """gamma = 0.2; a policy without parameters is called by its name."""
    if is_tunable(result):
        return f"{result.parameter} = {format_number(float(result.values[place]))}"
    assert result.setup.policy is not None
    return str(result.setup.policy["name"])


def compute_excess_regret(result: ExactRegret, place: int) -> float:
    """What is lost beyond the best policy; rounding must not make a policy better than that."""
    assert result.floor is not None
    more = float(result.regret[place]) - result.floor.regret
    return more if more > 1e-9 * result.floor.regret else 0.0


def state_exact_regret(result: ExactRegret) -> str:
    """What loses least, how far that is from the best that any policy can do, and what theory's value loses."""
    best, different = find_lowest_regret(result), len(set(result.values.tolist()))
    answer = f"{name_exact_value(result, best)} loses {format_exact(float(result.regret[best]))} on average"
    if is_tunable(result) and different > 1:
        answer += f", the least of {different:,} values"
    if result.floor:
        answer += f", {describe_excess_regret(result, best)}"
    theory = find_textbook_regret(result)
    if is_tunable(result) and theory is not None and result.values[best] != result.theory:
        answer += f"; theory's {result.parameter} = {format_number(result.theory)} loses {format_exact(theory)}"
    return f"{answer}."


def describe_excess_regret(result: ExactRegret, place: int) -> str:
    """0.18 (13%) more than the best that any policy can do."""
    assert result.floor is not None
    more = compute_excess_regret(result, place)
    if not more:
        return "which is the best that any policy can do"
    share = f" ({more / result.floor.regret:.1%})" if result.floor.regret > 0 else ""
    return f"{format_number(more)}{share} more than the best that any policy can do"


def find_textbook_regret(result: ExactRegret) -> float | None:
    """What theory's value loses, if it is among the values."""
    found = result.regret[result.values == result.theory]
    return float(found[0]) if len(found) else None


def list_exact_figures(result: ExactRegret) -> Iterator[tuple[str, str, str]]:
    """What to remember of exact regrets."""
    best = find_lowest_regret(result)
    if is_tunable(result):
        yield result.parameter, format_number(float(result.values[best])), f"theory: {format_number(result.theory)}"
    yield "regret", format_exact(float(result.regret[best])), "exact"
    yield from list_lower_bound_figures(result.floor)


def make_exact_regret_table(result: ExactRegret) -> ReportTable:
    """A row for each value; where the best that any policy can do is known, what is lost beyond it."""
    rows = []
    for place, (value, regret) in enumerate(zip(result.values.tolist(), result.regret.tolist(), strict=True)):
        more = (format_number(compute_excess_regret(result, place)),) if result.floor else ()
        theory = "theory" if is_tunable(result) and value == result.theory else ""
        rows.append((format_number(value), format_exact(regret), *more, theory))
    more = ("beyond the best policy",) if result.floor else ()
    return ReportTable((result.parameter, "regret", *more, ""), tuple(rows), left=0)


def make_exact_regret_plot(result: ExactRegret) -> PlotSpec:
    """Exact regret over the parameter."""
    best = find_lowest_regret(result)
    place, height = float(result.values[best]), float(result.regret[best])
    low = f"lowest: {name_exact_value(result, best)}"
    marks = (
        *make_textbook_rule(result),
        *make_lower_bound_marks(result.floor, "level"),
        *make_value_marks(result),
        PlotMark(
            "dots", TUNED_COLOUR, low, (place,), (height,), radius=(4.5,), tips=(f"{low} loses {format_exact(height)}",)
        ),
    )
    x = make_axis(result.parameter, [*result.values.tolist(), result.theory])
    y = make_axis("Bayes regret", [0.0, *result.regret.tolist(), *([result.floor.regret] if result.floor else [])])
    return PlotSpec(state_exact_regret(result), x, y, marks, (place, height))


def make_textbook_rule(result: ExactRegret) -> Iterator[PlotMark]:
    """Theory's value, where there is a parameter."""
    if is_tunable(result):
        yield PlotMark(
            "rule", GREY_COLOUR, f"theory: {result.parameter} = {format_number(result.theory)}", x=(result.theory,)
        )


def make_value_marks(result: ExactRegret) -> Iterator[PlotMark]:
    """The values in order, joined where they are many."""
    pairs = sorted(set(zip(result.values.tolist(), result.regret.tolist(), strict=True)))
    x, y = zip(*pairs, strict=True)
    tips = tuple(f"{result.parameter} = {format_number(value)} loses {format_exact(regret)}" for value, regret in pairs)
    joined, label = len(x) >= MIN_JOINED_VALUES, "Bayes regret, exact"
    if joined:
        yield PlotMark("line", CURVE_COLOUR, label, x=x, y=y)
    yield PlotMark("dots", CURVE_COLOUR, "" if joined else label, x, y, radius=(3.0,) * len(x), tips=tips)


def state_lower_bound(result: LowerBoundEstimates) -> str:
    """What no policy can lose less than."""
    words = f"No policy can lose less than {format_number(result.floor.regret)} on average ({describe_confidence(result.floor)})."
    if result.floor.horizon is None:
        return words
    return f"{words} The bound is that of horizon {result.floor.horizon:,}: beyond it these bounds do not grow."


def describe_bound_choice(result: LowerBoundEstimates) -> str:
    """Where the answer comes from."""
    if result.floor.level == 1:
        return f"The answer is the bound {result.floor.how!r}, which is computed: no sampled one is surely higher."
    return (
        f"The answer is the lower limit ({describe_confidence(result.floor)}) of {result.floor.how!r}, which was chosen on instances "
        "of their own and then sampled on further ones: its mean there is not quite that of the table."
    )


def list_bound_rows(result: LowerBoundEstimates) -> Iterator[tuple[str, ...]]:
    """A row for each kind of bound."""
    for kind, mean, se, runs in zip(result.kinds, result.mean, result.se, result.runs, strict=True):
        yield (
            (kind, format_number(mean), format_number(se), f"{runs:,}")
            if runs
            else (kind, format_number(mean), "computed", "")
        )


def make_bound_plot(result: LowerBoundEstimates) -> PlotSpec:
    """A row for each kind of bound, with its interval."""
    mean, rows = tuple(result.mean.tolist()), tuple(map(float, range(len(result.kinds))))
    half = [
        compute_student_quantile(UPPER_TAIL_LEVEL, runs - 1) * se if runs else 0.0
        for se, runs in zip(result.se.tolist(), result.runs, strict=True)
    ]
    low, high = (tuple(m + side * h for m, h in zip(mean, half, strict=True)) for side in (-1, 1))
    tips = tuple(
        f"{kind}: {format_number(m)}"
        + (f" ({format_number(least)} to {format_number(most)})" if runs else " (computed)")
        for kind, m, least, most, runs in zip(result.kinds, mean, low, high, result.runs, strict=True)
    )
    marks = (
        *make_lower_bound_marks(result.floor, "rule"),
        PlotMark(
            "dots", TUNED_COLOUR, "bounds, 95% interval", mean, rows, low, high, (4.5,) * len(rows), tips, along="x"
        ),
    )
    about = "Lower bounds on the Bayes regret of every policy: " + "; ".join(tips) + "."
    across = make_axis("Bayes regret", [0.0, *low, *high, result.floor.regret])
    down = PlotAxis("", -0.5, len(rows) - 0.5, names=result.kinds)
    return PlotSpec(about, across, down, marks, (result.floor.regret, 0.0))
