"""Reports on exact results: optima, exact regrets and lower bounds, as text, as report content and as figures."""

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
    name_textbook_value,
)
from banditune.results.estimates import UPPER_TAIL_LEVEL
from banditune.results.exact_results import ExactOptimum, ExactRegret, LowerBoundEstimates
from banditune.results.student_t import compute_student_quantile

MIN_JOINED_VALUES = 5
"""The fewest values whose dots are joined by a line. Between fewer values, the curve is unknown."""


ORACLE_INFORMATION = {
    "future": "all rewards; a pull is worth the arm's mean given all of them",
    "posterior mean": "all rewards; a pull is worth the arm's posterior mean at that pull",
    "value": "as 'posterior mean', minus a penalty: the change of the expected best mean by the reward",
    "one arm": "the best mean of the other arms; each arm is a separate problem with a price per pull",
    "coupled": "all rewards, with the penalties of 'one arm'; pulls of all arms add up to the horizon",
}
"""The information of the oracle of each bound. No policy has a lower regret than the oracle."""


@format_text.register
def _(result: ExactOptimum) -> str:
    return "\n".join([describe_setup(result.setup), "", f"{state_optimum(result)} (exact)."])


@format_text.register
def _(result: ExactRegret) -> str:
    rows: list[Sequence[str]] = [(result.parameter, "regret")]
    textbook = f"  <- {name_textbook_value(result.parameter, result.setup)}"
    for value, regret in zip(result.values, result.regret, strict=True):
        rows.append((format_number(value), format_exact(regret) + (textbook if value == result.textbook else "")))
    head = [describe_setup(result.setup), *list_problem_options(result.setup), ""]
    return "\n".join(
        [*head, format_text_table(rows, left=(1,)), "", *describe_lower_bound(result.lower_bound)]
    ).rstrip()


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
    rows = [
        ("the best policy", result.reward),
        ("the best arm at every step", result.oracle_reward),
        ("regret", result.regret),
    ]
    table = ReportTable(
        ("expected", "total", "per step"),
        tuple((name, format_exact(all_), format_exact(all_ / steps)) for name, all_ in rows),
    )
    paragraphs = (
        "Computed by dynamic programming, backwards over all posterior states. No policy has a lower regret. "
        "`bt.exact.make_optimal_policy(problem)` returns the policy that has this regret. The number is exact, so it has "
        "no standard error.",
    )
    key_figures = (
        ("lower bound", format_number(result.regret), "exact"),
        ("reward of the best policy", format_exact(result.reward), f"in {format_count(steps, 'step')}"),
        ("reward of the best arm", format_exact(result.oracle_reward), "at every step"),
    )
    sections = (
        ReportSection("What was computed", paragraphs, table=table),
        make_repeat_section(result, result.setup, []),
    )
    return ReportContent(describe_setup(result.setup), f"{state_optimum(result)}.", key_figures, sections)


@build_report_content.register
def _(result: ExactRegret) -> ReportContent:
    paragraphs = (
        "Computed from the probabilities of all histories, step by step. The numbers are exact, so they have no "
        "standard error.",
        *describe_option_sources(result.setup),
        *format_lower_bound_sentences(result.lower_bound),
    )
    sections = (
        ReportSection("Regret", paragraphs, make_exact_regret_plot(result), make_exact_regret_table(result)),
        make_repeat_section(result, result.setup, []),
    )
    return ReportContent(
        describe_setup(result.setup), state_exact_regret(result), tuple(list_exact_figures(result)), sections
    )


@build_report_content.register
def _(result: LowerBoundEstimates) -> ReportContent:
    rows = tuple((kind, ORACLE_INFORMATION.get(kind, ""), *numbers) for kind, *numbers in list_bound_rows(result))
    paragraphs = (
        "Each bound is the regret of an oracle that has more information than any policy. No policy has a lower regret "
        "than this oracle. A bound is either a mean over sampled instances, with its 95% interval, or computed exactly.",
        describe_bound_choice(result),
    )
    table = ReportTable(("bound", "what the oracle knows", "regret", "std. error", "instances"), rows, text_columns=2)
    settings = [("seed", str(result.setup.seed)), ("instances", f"{max(result.runs):,}")]
    if result.confidence is not None:
        settings.append(("confidence", f"{100 * result.confidence:g}%"))
    sections = (
        ReportSection("Bounds", paragraphs, make_bound_plot(result), table),
        make_repeat_section(result, result.setup, settings),
    )
    bound = result.lower_bound
    shorter = f", of horizon {bound.horizon_limit:,}" if bound.horizon_limit else ""
    key_figures = (
        ("lower bound", format_number(bound.regret), f"{describe_confidence(bound)}{shorter}"),
        ("highest bound", result.lower_bound.method, f"of {format_count(len(result.kinds), 'kind')}"),
    )
    return ReportContent(describe_setup(result.setup), state_lower_bound(result), key_figures, sections)


@figures.draw_result.register
def _(result: ExactRegret, axes: Any) -> None:
    figures.draw_plot_spec(make_exact_regret_plot(result), axes, describe_setup(result.setup))


@figures.draw_result.register
def _(result: LowerBoundEstimates, axes: Any) -> None:
    figures.draw_plot_spec(make_bound_plot(result), axes, describe_setup(result.setup))


def format_exact(value: float) -> str:
    """Format an exact number with seven digits."""
    return f"{value:.7g}"


def state_optimum(result: ExactOptimum) -> str:
    """State the regret and the reward of the best policy."""
    return (
        f"The best policy has regret {format_number(result.regret)} on average: its reward is "
        f"{format_exact(result.reward)}, that of the best arm {format_exact(result.oracle_reward)}"
    )


def find_lowest_regret(result: ExactRegret) -> int:
    """Return the index of the lowest regret, the first one if several are equal."""
    return int(result.regret.argmin())


def is_tunable(result: ExactRegret) -> bool:
    """Return whether the policy has a parameter. Without one, all values have the same regret."""
    return result.parameter != "value" or len(set(result.regret.tolist())) > 1


def name_exact_value(result: ExactRegret, index: int) -> str:
    """Format a value as gamma = 0.2, or as the name of a policy without parameters."""
    if is_tunable(result):
        return f"{result.parameter} = {format_number(float(result.values[index]))}"
    assert result.setup.policy is not None
    return str(result.setup.policy["name"])


def compute_excess_regret(result: ExactRegret, index: int) -> float:
    """Compute the difference between a regret and the optimum. Rounding errors count as 0."""
    assert result.lower_bound is not None
    excess = float(result.regret[index]) - result.lower_bound.regret
    return excess if excess > 1e-9 * result.lower_bound.regret else 0.0


def state_exact_regret(result: ExactRegret) -> str:
    """State the lowest regret, its distance to the optimum, and the regret of the textbook value."""
    best, different = find_lowest_regret(result), len(set(result.values.tolist()))
    answer = f"{name_exact_value(result, best)} has regret {format_exact(float(result.regret[best]))} on average"
    if is_tunable(result) and different > 1:
        answer += f", the lowest of {different:,} values"
    if result.lower_bound:
        answer += f", {describe_excess_regret(result, best)}"
    textbook = find_textbook_regret(result)
    if is_tunable(result) and textbook is not None and result.values[best] != result.textbook:
        default = f"{result.parameter} = {format_number(result.textbook)}"
        usual = f"textbook default {default}"
        if result.setup.from_problem:
            usual = f"{name_textbook_value(result.parameter, result.setup)}, {default},"
        answer += f"; the {usual} has {format_exact(textbook)}"
    return f"{answer}."


def describe_excess_regret(result: ExactRegret, index: int) -> str:
    """Describe the difference between a regret and the optimum, as 0.18 (13%) more than the optimum."""
    assert result.lower_bound is not None
    more = compute_excess_regret(result, index)
    if not more:
        return "which is the optimum"
    share = f" ({more / result.lower_bound.regret:.1%})" if result.lower_bound.regret > 0 else ""
    return f"{format_number(more)}{share} more than the optimum"


def find_textbook_regret(result: ExactRegret) -> float | None:
    """Return the regret of the textbook value, if it was requested."""
    matches = result.regret[result.values == result.textbook]
    return float(matches[0]) if len(matches) else None


def list_exact_figures(result: ExactRegret) -> Iterator[tuple[str, str, str]]:
    """List the key figures of exact regrets."""
    best = find_lowest_regret(result)
    if is_tunable(result):
        yield result.parameter, format_number(float(result.values[best])), f"textbook: {format_number(result.textbook)}"
    yield "regret", format_exact(float(result.regret[best])), "exact"
    yield from list_lower_bound_figures(result.lower_bound)


def make_exact_regret_table(result: ExactRegret) -> ReportTable:
    """Make a row for each value, with the difference between its regret and the optimum if that is known."""
    rows = []
    for index, (value, regret) in enumerate(zip(result.values.tolist(), result.regret.tolist(), strict=True)):
        more = (format_number(compute_excess_regret(result, index)),) if result.lower_bound else ()
        mark = (
            name_textbook_value(result.parameter, result.setup)
            if is_tunable(result) and value == result.textbook
            else ""
        )
        rows.append((format_number(value), format_exact(regret), *more, mark))
    more = ("above the optimum",) if result.lower_bound else ()
    return ReportTable((result.parameter, "regret", *more, ""), tuple(rows), text_columns=0)


def make_exact_regret_plot(result: ExactRegret) -> PlotSpec:
    """Make the plot of exact regret over the parameter."""
    best = find_lowest_regret(result)
    value, height = float(result.values[best]), float(result.regret[best])
    low = f"lowest: {name_exact_value(result, best)}"
    marks = (
        *make_textbook_rule(result),
        *make_lower_bound_marks(result.lower_bound, "horizontal"),
        *make_value_marks(result),
        PlotMark(
            "dots",
            TUNED_COLOUR,
            low,
            (value,),
            (height,),
            radius=(4.5,),
            tips=(f"{low}, regret {format_exact(height)}",),
        ),
    )
    x = make_axis(result.parameter, [*result.values.tolist(), result.textbook])
    y = make_axis(
        "Bayes regret", [0.0, *result.regret.tolist(), *([result.lower_bound.regret] if result.lower_bound else [])]
    )
    return PlotSpec(state_exact_regret(result), x, y, marks, (value, height))


def make_textbook_rule(result: ExactRegret) -> Iterator[PlotMark]:
    """Mark the textbook value, if the policy has a parameter."""
    if is_tunable(result):
        yield PlotMark(
            "vertical",
            GREY_COLOUR,
            f"{name_textbook_value(result.parameter, result.setup)}: {result.parameter} = {format_number(result.textbook)}",
            x=(result.textbook,),
        )


def make_value_marks(result: ExactRegret) -> Iterator[PlotMark]:
    """Mark the values in order, joined by a line if there are many."""
    pairs = sorted(set(zip(result.values.tolist(), result.regret.tolist(), strict=True)))
    x, y = zip(*pairs, strict=True)
    tips = tuple(
        f"{result.parameter} = {format_number(value)}, regret {format_exact(regret)}" for value, regret in pairs
    )
    joined, label = len(x) >= MIN_JOINED_VALUES, "Bayes regret, exact"
    if joined:
        yield PlotMark("line", CURVE_COLOUR, label, x=x, y=y)
    yield PlotMark("dots", CURVE_COLOUR, "" if joined else label, x, y, radius=(3.0,) * len(x), tips=tips)


def state_lower_bound(result: LowerBoundEstimates) -> str:
    """State the lower bound on the regret of every policy."""
    bound = result.lower_bound
    sentence = (
        f"No policy can have a regret below {format_number(bound.regret)} on average ({describe_confidence(bound)})."
    )
    if bound.horizon_limit is None:
        return sentence
    return f"{sentence} The bound is that of horizon {bound.horizon_limit:,}: these bounds do not grow beyond it."


def describe_bound_choice(result: LowerBoundEstimates) -> str:
    """Describe which bound is the answer, and on which instances it was selected."""
    bound = result.lower_bound
    if bound.confidence == 1:
        return f"The answer is the computed bound {bound.method!r}. No sampled bound is significantly higher."
    return (
        f"The answer is the lower confidence limit ({describe_confidence(bound)}) of {bound.method!r}. This kind of bound "
        "was selected on separate instances, then estimated on others. Its mean there differs a little from the table."
    )


def list_bound_rows(result: LowerBoundEstimates) -> Iterator[tuple[str, ...]]:
    """List a row for each kind of bound."""
    for kind, mean, se, runs in zip(result.kinds, result.mean, result.se, result.runs, strict=True):
        yield (
            (kind, format_number(mean), format_number(se), f"{runs:,}")
            if runs
            else (kind, format_number(mean), "computed", "")
        )


def make_bound_plot(result: LowerBoundEstimates) -> PlotSpec:
    """Make the plot with a row for each kind of bound and its interval."""
    mean, rows = tuple(result.mean.tolist()), tuple(map(float, range(len(result.kinds))))
    half = [
        compute_student_quantile(UPPER_TAIL_LEVEL, runs - 1) * se if runs else 0.0
        for se, runs in zip(result.se.tolist(), result.runs, strict=True)
    ]
    low, high = (tuple(m + side * h for m, h in zip(mean, half, strict=True)) for side in (-1, 1))
    tips = tuple(
        f"{kind}: {format_number(m)}"
        + (f" ({format_number(lower)} to {format_number(upper)})" if runs else " (computed)")
        for kind, m, lower, upper, runs in zip(result.kinds, mean, low, high, result.runs, strict=True)
    )
    marks = (
        *make_lower_bound_marks(result.lower_bound, "vertical"),
        PlotMark(
            "dots",
            TUNED_COLOUR,
            "bounds, 95% interval",
            mean,
            rows,
            low,
            high,
            (4.5,) * len(rows),
            tips,
            interval_axis="x",
        ),
    )
    about = "Lower bounds on the Bayes regret of every policy: " + "; ".join(tips) + "."
    across = make_axis("Bayes regret", [0.0, *low, *high, result.lower_bound.regret])
    down = PlotAxis("", -0.5, len(rows) - 0.5, names=result.kinds)
    return PlotSpec(about, across, down, marks, (result.lower_bound.regret, 0.0))
