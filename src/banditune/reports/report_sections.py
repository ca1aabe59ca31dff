"""Sections of the reports on tunings, curves, comparisons and robustness."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from banditune.reports import repeat_commands, result_plots, search_plots
from banditune.reports.report_content import ReportSection, ReportTable, format_sentences, make_notes_section
from banditune.reports.robustness_statements import SCENARIO_HEADER, list_scenario_rows, state_robustness
from banditune.reports.text_formatting import (
    TEXTBOOK_BASELINE,
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
    state_assumptions,
)
from banditune.reports.tuning_statements import (
    IMPORTANCE_HEADER,
    describe_baseline,
    describe_posterior,
    get_tuning_header,
    list_importance_rows,
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
    """Make all sections on a tuning except how to repeat it."""
    first, *others = result.searched_parameters
    return (
        *make_notes_section("Warnings", result.notices),
        ReportSection(
            "Regret and gain",
            (
                f"Estimated on {describe_validation(result.setup, result.validation_runs)}, which the search did not see, "
                "the same for both values. The gain is a paired difference.",
                *describe_option_sources(result.setup, result.textbook_policy),
                *format_sentences(list_data_scope_lines(result.setup)),
                *format_sentences([state_assumptions(result.setup)]),
                *format_lower_bound_sentences(result.lower_bound, result.regret.mean),
            ),
            result_plots.make_tuning_plot(result, first),
            ReportTable(get_tuning_header(result), tuple(list_tuning_rows(result))),
        ),
        *make_parameter_sections(result),
        *(section for curve in result.curves for section in make_curve_table_section(curve)),
        *(make_robustness_sections(result.robustness) if result.robustness else ()),
        *make_distribution_sections(
            [("tuned", result.distribution), (name_baseline(result), result.textbook_distribution)]
        ),
        *make_worst_runs_section(result),
        ReportSection(
            "Values that the search simulated",
            (
                f"{result.setup.tuner_name} spent {result.search_runs:,} of {result.budget:,} runs in "
                f"{len(result.trials):,} trial{'s' * (len(result.trials) != 1)}.",
                *describe_search_knowledge(result),
            ),
            search_plots.make_search_plot(result, first),
        ),
        *(
            ReportSection(f"Where the search looked: {name}", (), search_plots.make_search_plot(result, name))
            for name in others
        ),
    )


def make_parameter_sections(result: Tuning) -> Iterator[ReportSection]:
    """Make the sections on several parameters: which of them matter, and the regret over each one."""
    if not result.importance:
        return
    yield ReportSection(
        "Which parameters matter",
        ("The regret that is added if this parameter alone has its textbook value, on the same fresh instances.",),
        None,
        ReportTable(IMPORTANCE_HEADER, tuple(list_importance_rows(result))),
    )
    for name in result.searched_parameters[1:]:
        yield ReportSection(f"Regret over {name}", (), result_plots.make_tuning_plot(result, name))


def describe_option_sources(setup: StudySetup, baseline: Mapping[str, Any] | None = None) -> Iterator[str]:
    """State as a sentence which options the policy took from the problem."""
    for line in list_problem_options(setup, baseline):
        yield f"The policy has {line}."


def make_robustness_sections(robustness: RobustnessReport) -> Iterator[ReportSection]:
    """Make the section on regret in scenarios other than the expected one."""
    paragraphs = state_robustness(robustness)
    yield ReportSection(
        "Other scenarios",
        (
            f"{paragraphs[0].upper()}{paragraphs[1:]}.",
            f"The policy was tuned again for each scenario, with {robustness.budget:,} runs. Then the tuned value, the "
            "best known value of the scenario and the textbook value were simulated on the same "
            f"{describe_validation(robustness.setup, robustness.validation_runs)}. The excess is a paired difference. "
            "Fine means a regret of at most 10% above that of any other value, with 95% confidence. Fragile means more "
            "than 10%. If the search of the scenario cannot be trusted, or errors are too large, the verdict is not "
            "decided.",
            *format_sentences(list_data_scope_lines(robustness.setup)),
            *robustness.notices,
        ),
        table=ReportTable(SCENARIO_HEADER, tuple(list_scenario_rows(robustness)), text_columns=2),
    )


def describe_search_knowledge(result: Tuning) -> Iterator[str]:
    """State the posterior of the search about its answer, as a sentence."""
    lines = [line.strip() for line in describe_posterior(result) if line]
    if lines:
        yield "; ".join(lines) + "."


def make_parameter_figure(result: Tuning) -> tuple[str, str, str]:
    """Make the key figure of the tuned values, with the baseline beside them."""
    names = result.searched_parameters
    tuned, textbook = (
        ", ".join(format_number(params[name]) for name in names) for params in (result.params, result.textbook_params)
    )
    return ", ".join(names), tuned, f"{name_baseline(result)}: {textbook}"


def list_tuning_figures(result: Tuning) -> Iterator[tuple[str, str, str]]:
    """List the key figures of a tuning."""
    yield make_parameter_figure(result)
    yield "regret", format_number(result.regret.mean), format_interval(result.regret)
    textbook = result.textbook_regret.mean
    share = f"{result.gain.mean / textbook:.0%} of {format_number(textbook)}, " if textbook > 0 else ""
    yield (
        f"gain over {describe_baseline(name_baseline(result))}",
        format_number(result.gain.mean),
        share + format_interval(result.gain),
    )
    if result.distribution:
        half = format_number(result.distribution.get_quantile(0.5))
        yield (
            "regret of 1 run in 100",
            format_number(result.distribution.get_quantile(0.99)),
            f"or more; half have {half} or more",
        )
    yield from list_lower_bound_figures(result.lower_bound, result.regret.mean)


def list_lower_bound_figures(bound: LowerBound | None, regret: float = 0.0) -> Iterator[tuple[str, str, str]]:
    """List the lower bound as a key figure, if it is known and not weak beside the regret of a policy."""
    if bound is not None and not bound.explain_weakness(regret):
        yield (
            "lower bound",
            format_number(bound.regret),
            "exact" if bound.is_exact else describe_confidence(bound),
        )


def format_lower_bound_sentences(bound: LowerBound | None, regret: float = 0.0) -> Iterator[str]:
    """State the lower bound as a sentence."""
    yield from format_sentences(filter(None, describe_lower_bound(bound, regret)))


def make_curve_table_section(curve: Curve) -> Iterator[ReportSection]:
    """Make the section with the curve as a table."""
    numbers = (curve.values.tolist(), curve.mean.tolist(), curve.se.tolist(), curve.half_width.tolist())
    rows = tuple(
        (
            format_number(value),
            format_number(mean),
            format_number(se),
            f"{format_number(mean - reach)} to {format_number(mean + reach)}",
        )
        for value, mean, se, reach in zip(*numbers, strict=True)
    )
    paragraphs = (f"{curve.runs:,} runs per value, the same instances for all. Shape: {curve.unimodality!r}.",)
    table = ReportTable((curve.parameter, "regret", "std. error", "95% interval"), rows, text_columns=0)
    yield ReportSection("", paragraphs, table=table, fold_title="The curve in numbers")


def make_distribution_sections(
    distributions: Sequence[tuple[str, RegretDistribution | None]],
) -> Iterator[ReportSection]:
    """Make the section on the regret of single runs, if the result holds it."""
    spreads = [(name, spread) for name, spread in distributions if spread]
    if not spreads:
        return
    rows = [
        (format_percent(probability), *(format_number(spread.get_quantile(probability)) for _, spread in spreads))
        for probability in TABLE_QUANTILES
    ]
    rows += [("all", *(format_number(float(spread.values[-1])) for _, spread in spreads))]
    rows += [("mean", *(format_number(spread.mean) for _, spread in spreads))]
    quantiles = ReportTable(("runs", *(name for name, _ in spreads)), tuple(rows))
    paragraphs = (
        "A mean hides the tail. The plot shows the share of runs with at least a given regret: to the right and up is "
        "worse. The last dots are single runs. The table shows the regret that each share of the runs does not exceed.",
    )
    yield ReportSection("Regret of single runs", paragraphs, result_plots.make_distribution_plot(spreads), quantiles)


def make_worst_runs_section(result: Tuning) -> Iterator[ReportSection]:
    """Make the section on the worst runs, and on how to simulate one of them again."""
    spread = result.distribution
    if spread is None:
        return
    # The code below names the tuned policy. The textbook policy may have other options.
    same_baseline = name_baseline(result) == TEXTBOOK_BASELINE
    values = [*result.params.values(), *(result.textbook_params.values() if same_baseline else ())]
    rows = tuple(
        (str(run), format_number(loss))
        for run, loss in zip(spread.worst_runs, spread.worst_regrets.tolist(), strict=True)
    )
    named = "tuned and the textbook" if same_baseline else "tuned"
    paragraphs = (
        "Runs are identified by their number. With the policy and the problem that are named below, this simulates the "
        f"worst one again, with the {named} value:",
    )
    code = repeat_commands.format_simulate_call(result.setup, values, spread.worst_runs[0])
    yield ReportSection(
        "",
        paragraphs,
        table=ReportTable(("run", "regret, tuned"), rows, text_columns=1),
        code=code,
        fold_title="The worst runs",
    )


def describe_best_rerun(result: Comparison) -> Iterator[str]:
    """State the regret of the best policy on other instances than those on which it was selected."""
    if result.best_rerun:
        yield (
            f"On as many other instances {result.best_policy} has regret {format_mean_and_interval(result.best_rerun)}. "
            "The table and the plot show the instances on which it was selected. There its regret is a little too low."
        )
