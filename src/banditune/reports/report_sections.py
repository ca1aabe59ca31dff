"""Sections of the reports on tunings, curves, comparisons and robustness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from banditune.reports import repeat_commands, result_plots, search_plots
from banditune.reports.report_content import ReportSection, ReportTable, format_sentences, make_notes_section
from banditune.reports.robustness_statements import SCENARIO_HEADER, list_scenario_rows, state_robustness
from banditune.reports.text_formatting import (
    ASSUMPTIONS,
    describe_confidence,
    describe_lower_bound,
    describe_validation,
    format_interval,
    format_mean_and_interval,
    format_number,
    format_percent,
    list_data_scope_lines,
    list_problem_options,
    name_baseline,
)
from banditune.reports.tuning_statements import (
    describe_baseline,
    describe_posterior,
    get_tuning_header,
    list_tuning_rows,
)
from banditune.results.comparison_results import Comparison
from banditune.results.estimates import RegretDistribution
from banditune.results.exact_results import LowerBound
from banditune.results.robustness_results import RobustnessReport
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Curve, Tuning

TABLE_QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Quantiles that the table shows."""


def make_tuning_sections(result: Tuning) -> tuple[ReportSection, ...]:
    """All that a tuning tells but how to repeat it."""
    return (
        *make_notes_section("Warnings", result.warnings),
        ReportSection(
            "Regret and gain",
            (
                f"From {describe_validation(result.setup, result.validated)}, which the search did not see, the same for both values: "
                "the gain is a paired difference.",
                *describe_option_sources(result.setup, result.baseline),
                *format_sentences(list_data_scope_lines(result.setup)),
                *format_sentences([ASSUMPTIONS]),
                *format_lower_bound_sentences(result.floor, result.regret.mean),
            ),
            result_plots.make_tuning_plot(result),
            ReportTable(get_tuning_header(result), tuple(list_tuning_rows(result))),
        ),
        *(make_curve_table_section(result.curve) if result.curve else ()),
        *(make_robustness_sections(result.stress) if result.stress else ()),
        *make_distribution_sections([("tuned", result.spread), (name_baseline(result), result.theory_spread)]),
        *make_worst_runs_section(result),
        ReportSection(
            "Where the search looked",
            (
                f"{result.setup.tuner_name} spent {result.spent:,} of {result.budget:,} runs in "
                f"{len(result.trials):,} trial{'s' * (len(result.trials) != 1)}.",
                *describe_search_knowledge(result),
            ),
            search_plots.make_search_plot(result),
        ),
    )


def describe_option_sources(setup: StudySetup, baseline: Mapping[str, Any] | None = None) -> Iterator[str]:
    """What the policy took from the problem, as a sentence."""
    for line in list_problem_options(setup, baseline):
        yield f"The policy has {line}."


def make_robustness_sections(stress: RobustnessReport) -> Iterator[ReportSection]:
    """What is lost where something else comes than was expected."""
    words = state_robustness(stress)
    yield ReportSection(
        "If something else comes",
        (
            f"{words[0].upper()}{words[1:]}.",
            f"On each of these problems the policy was tuned again, with {stress.budget:,} runs. Then the value, the best "
            f"one that is known there and theory's were played on the same {describe_validation(stress.setup, stress.validated)}; the "
            "loss is a paired difference. Fine means that the value surely loses at most a tenth more than any other, "
            "fragile that it surely loses more. Where the search for that problem cannot be trusted, or errors are too "
            "large, it is not decided.",
            *format_sentences(list_data_scope_lines(stress.setup)),
            *stress.warnings,
        ),
        table=ReportTable(SCENARIO_HEADER, tuple(list_scenario_rows(stress))),
    )


def describe_search_knowledge(result: Tuning) -> Iterator[str]:
    """What the search knows about its answer, as a sentence."""
    lines = [line.strip() for line in describe_posterior(result) if line]
    if lines:
        yield "; ".join(lines) + "."


def make_parameter_figure(result: Tuning) -> tuple[str, str, str]:
    """The tuned value beside theory's."""
    ((name, value),) = result.params.items()
    return name, format_number(value), f"{name_baseline(result)}: {format_number(result.theory_params[name])}"


def list_tuning_figures(result: Tuning) -> Iterator[tuple[str, str, str]]:
    """What to remember of a tuning."""
    yield make_parameter_figure(result)
    yield "regret", format_number(result.regret.mean), format_interval(result.regret)
    theory = result.theory.mean
    share = f"{result.gain.mean / theory:.0%} of {format_number(theory)}, " if theory > 0 else ""
    yield (
        f"gain over {describe_baseline(name_baseline(result))}",
        format_number(result.gain.mean),
        share + format_interval(result.gain),
    )
    if result.spread:
        half = format_number(result.spread.at(0.5))
        yield "1 run in 100 loses", format_number(result.spread.at(0.99)), f"or more; half lose {half} or more"
    yield from list_lower_bound_figures(result.floor, result.regret.mean)


def list_lower_bound_figures(floor: LowerBound | None, regret: float = 0.0) -> Iterator[tuple[str, str, str]]:
    """What no policy can go below, where it is known and not weak beside the regret of a policy."""
    if floor is not None and not floor.weakness(regret):
        yield (
            "no policy goes below",
            format_number(floor.regret),
            "exact" if floor.exact else describe_confidence(floor),
        )


def format_lower_bound_sentences(floor: LowerBound | None, regret: float = 0.0) -> Iterator[str]:
    """The same, as a sentence."""
    yield from format_sentences(filter(None, describe_lower_bound(floor, regret)))


def make_curve_table_section(curve: Curve) -> Iterator[ReportSection]:
    """The curve as a table."""
    numbers = (curve.values.tolist(), curve.mean.tolist(), curve.se.tolist(), curve.reach.tolist())
    rows = tuple(
        (
            format_number(value),
            format_number(mean),
            format_number(se),
            f"{format_number(mean - reach)} to {format_number(mean + reach)}",
        )
        for value, mean, se, reach in zip(*numbers, strict=True)
    )
    words = (f"{curve.runs:,} runs a value, the same instances for all. Shape: {curve.unimodality!r}.",)
    table = ReportTable((curve.parameter, "regret", "std. error", "95% interval"), rows, left=0)
    yield ReportSection("", words, table=table, folded="The curve in numbers")


def make_distribution_sections(given: Sequence[tuple[str, RegretDistribution | None]]) -> Iterator[ReportSection]:
    """How single runs lose, where the result knows it."""
    spreads = [(name, spread) for name, spread in given if spread]
    if not spreads:
        return
    rows = [
        (format_percent(level), *(format_number(spread.at(level)) for _, spread in spreads))
        for level in TABLE_QUANTILES
    ]
    rows += [("all", *(format_number(float(spread.values[-1])) for _, spread in spreads))]
    rows += [("mean", *(format_number(spread.mean) for _, spread in spreads))]
    quantiles = ReportTable(("runs", *(name for name, _ in spreads)), tuple(rows))
    words = (
        "A mean hides the tail. The plot shows which share of the runs loses so much or more: to the right and up is "
        "worse; the last dots are single runs. The table shows what so many of the runs lose at most.",
    )
    yield ReportSection("How single runs lose", words, result_plots.make_distribution_plot(spreads), quantiles)


def make_worst_runs_section(result: Tuning) -> Iterator[ReportSection]:
    """The worst runs, and how to play one of them again."""
    spread = result.spread
    if spread is None:
        return
    # The textbook's policy, where it is another one, is not the policy that is named below.
    same = name_baseline(result) == "theory"
    values = [*result.params.values(), *(result.theory_params.values() if same else ())]
    rows = tuple(
        (str(run), format_number(loss)) for run, loss in zip(spread.worst, spread.losses.tolist(), strict=True)
    )
    usual = "tuned and with theory's" if same else "tuned"
    words = (
        "Runs are known by their number. With the policy and the problem that are named below, this plays the worst one "
        f"again, with the {usual} value:",
    )
    code = repeat_commands.format_simulate_call(result.setup, values, spread.worst[0])
    yield ReportSection(
        "", words, table=ReportTable(("run", "regret, tuned"), rows, left=1), code=code, folded="The worst runs"
    )


def describe_best_rerun(result: Comparison) -> Iterator[str]:
    """What the best policy loses where it was not chosen."""
    if result.again:
        yield (
            f"On as many other instances {result.best} loses {format_mean_and_interval(result.again)}: those on which it was chosen, which the "
            "table and the picture have, flatter it a little."
        )
