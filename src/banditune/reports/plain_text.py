"""Formats results as plain text: a sentence with the answer, then the numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import singledispatch
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.core.messages import Message, join_messages
from banditune.reports.backtest_statements import BACKTEST_HEADER, list_backtest_rows, state_backtest
from banditune.reports.comparison_statements import (
    describe_selection_bias,
    list_comparison_notes,
    list_entry_options,
    make_comparison_rows,
    state_best_policy,
)
from banditune.reports.renderers import load_renderer
from banditune.reports.robustness_statements import list_robustness_lines
from banditune.reports.text_formatting import (
    describe_device,
    describe_lower_bound,
    describe_ranges,
    describe_setup,
    describe_validation,
    format_count,
    format_number,
    format_params,
    format_text_table,
    list_data_scope_lines,
    list_problem_options,
    name_textbook_value,
    state_assumptions,
)
from banditune.reports.tuning_statements import (
    IMPORTANCE_HEADER,
    describe_posterior,
    get_tuning_header,
    list_importance_rows,
    list_tuning_rows,
    state_gain,
)
from banditune.results.comparison_results import Comparison
from banditune.results.estimates import Estimate
from banditune.results.log_results import Backtest
from banditune.results.result_record import ResultRecord
from banditune.results.robustness_results import RobustnessReport
from banditune.results.tuning_results import Curve, Tuning


@singledispatch
def format_text(result: Any) -> str:
    """Format a result as plain text: a sentence with the answer, then the numbers.

    Parameters
    ----------
    result : ResultRecord
        The result.

    Returns
    -------
    str
        The lines that `print(result)` shows for most results.

    Raises
    ------
    InvalidRequest
        If the object is no result.

    Examples
    --------
    >>> import banditune as bt
    >>> bt.reports.format_text(bt.results.Estimate.from_standard_error(2.0, 0.1, 100))
    '2 +- 0.1'
    """
    if load_renderer(result):
        return format_text(result)
    if not isinstance(result, ResultRecord):
        raise InvalidRequest(
            f"a result must be given, such as that of `tune`, but got {type(result).__name__}.",
            argument="result",
            code="wrong-type",
        )
    own_repr = type(result).__repr__
    return str(own_repr(result)) if own_repr is not ResultRecord.__repr__ else f"a {type(result).__name__}"


@format_text.register
def _(result: Estimate) -> str:
    return f"{format_number(result.mean)} +- {format_number(result.se)}"


def list_importance_lines(result: Tuning) -> list[str]:
    """List the lines on which of several parameters matter."""
    if not result.importance:
        return []
    table = format_text_table([IMPORTANCE_HEADER, *list_importance_rows(result)])
    return ["regret added if one parameter alone has its textbook value:", table, ""]


@format_text.register
def _(result: Tuning) -> str:
    answer = f"{format_params(result.params)} has regret {format_number(result.regret.mean)} on average"
    return join_messages(
        "\n",
        [
            describe_setup(result.setup),
            *list_problem_options(result.setup, result.textbook_policy),
            "",
            Message("{}, {}.", answer, state_gain(result)),
            "",
            format_text_table([get_tuning_header(result), *list_tuning_rows(result)]),
            *list_data_scope_lines(result.setup),
            "",
            *describe_lower_bound(result.lower_bound, result.regret.mean),
            *describe_posterior(result),
            *list_importance_lines(result),
            *((*list_robustness_lines(result.robustness), "") if result.robustness else ()),
            *(Message("warning: {}", warning) for warning in result.notices),
            f"search: {result.setup.tuner_name}{describe_ranges(result.setup)}, "
            f"{result.search_runs:,} of {result.budget:,} runs; "
            f"validation: {describe_validation(result.setup, result.validation_runs)}, paired; "
            f"{result.setup.regret_kind} regret, seed {result.setup.seed}{describe_device(result.setup)}",
            state_assumptions(result.setup),
        ],
    )


@format_text.register
def _(result: RobustnessReport) -> str:
    lines = [*list_robustness_lines(result), *list_data_scope_lines(result.setup), "", state_assumptions(result.setup)]
    return join_messages("\n", [describe_setup(result.setup), *list_problem_options(result.setup), "", *lines])


@format_text.register
def _(result: Backtest) -> str:
    return join_messages(
        "\n",
        [
            describe_setup(result.setup),
            *list_problem_options(result.setup, result.tuning.textbook_policy),
            "",
            f"{state_backtest(result)}.",
            "",
            format_text_table([BACKTEST_HEADER, *list_backtest_rows(result)]),
            "",
            *(Message("note: {}", note) for note in result.notes),
            *(Message("warning: {}", warning) for warning in result.notices),
            f"tuned on {result.fit.campaigns} campaigns ({result.fit.model}), evaluated on {result.campaigns} others; "
            f"seed {result.setup.seed}",
            state_assumptions(result.setup),
        ],
    )


def format_environment_check(report: Mapping[str, Any]) -> str:
    """Format the report of `banditune doctor`: one line per check, with advice below it."""
    signs = {True: "ok", False: "NOT OK", None: ""}
    rows = [(check["check"], signs[check["works"]], check["finding"]) for check in report["checks"]]
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = []
    for row, check in zip(rows, report["checks"], strict=True):
        lines.append(f"{row[0].ljust(widths[0])}  {row[1].ljust(widths[1])}  {row[2]}".rstrip())
        if check["advice"]:
            lines.append(f"{' ' * widths[0]}  {check['advice']}")
    lines += ["", "All checks passed." if report["works"] else "A check failed: see above."]
    return "\n".join(lines)


def format_store_listing(listing: Mapping[str, Any]) -> str:
    """Format the list of a store's setups, a few lines for each."""
    lines = [f"{listing['file']}: {format_count(len(listing['setups']), 'setup')}, {listing['bytes'] / 1e6:,.1f} MB"]
    for setup in listing["setups"]:
        checkpoints = setup["checkpoints"]
        steps = f"step {checkpoints[0]:,}" if len(checkpoints) == 1 else f"each of {len(checkpoints)} steps"
        lines += [
            "",
            f"{setup['setup']}  {setup['policy']} on {setup['problem']}, horizon {setup['horizon']:,}",
            f"   {setup['regret_kind']} regret after {steps}, {setup['random_numbers']} random numbers, seed "
            f"{setup['seed']}; simulated by {name_algorithm(setup['shortcut'])} on the {setup['device']} in "
            f"{setup['dtype']}",
            f"   {', '.join(format_count(setup[name], name.removesuffix('s')) for name in ('values', 'runs', 'blocks'))}",
        ]
    return "\n".join(lines)


def name_algorithm(shortcut: str) -> str:
    """Name how regrets in a store were simulated."""
    return {"none": "the plain loop", "warp version": "warps"}.get(shortcut, f"the shortcut {shortcut!r}")


def format_store_check(report: Mapping[str, Any]) -> str:
    """Format how much of a store was checked."""
    counts = (format_count(report[name], name.removesuffix("s")) for name in ("setups", "blocks", "regrets"))
    return f"{report['file']}: {', '.join(counts)}; all of them are as they were written."


@format_text.register
def _(result: Curve) -> str:
    worst, textbook = max(abs(m) for m in result.mean) or 1.0, name_textbook_value(result.parameter, result.setup)
    rows: list[Sequence[str]] = [(result.parameter, "regret", "std. error", "")]
    for value, mean, se in zip(result.values, result.mean, result.se, strict=True):
        mark = "  <- best" if value == result.best_value else f"  <- {textbook}" if value == result.textbook else ""
        rows.append(
            (
                format_number(value),
                format_number(mean),
                format_number(se),
                "#" * max(1, round(40 * abs(mean) / worst)) + mark,
            )
        )
    return join_messages(
        "\n",
        [
            describe_setup(result.setup),
            *list_problem_options(result.setup),
            "",
            f"lowest mean at {result.parameter} = {format_number(result.best_value)}, regret "
            f"{format_text(result.best_regret)} on fresh instances ({result.runs:,} runs per value)",
            f"shape: {result.unimodality!r}",
            *list_data_scope_lines(result.setup),
            "",
            format_text_table(rows, left=(3,)),
            "",
            *(Message("warning: {}", warning) for warning in result.notices),
            state_assumptions(result.setup),
        ],
    )


@format_text.register
def _(result: Comparison) -> str:
    return join_messages(
        "\n",
        [
            describe_setup(result.setup),
            "",
            state_best_policy(result),
            "",
            format_text_table(make_comparison_rows(result, error="std. error"), left=(0, 1, 6)),
            *list_data_scope_lines(result.setup),
            *describe_selection_bias(result),
            "",
            *(Message("note: {}", note) for note in list_comparison_notes(result)),
            *list_entry_options(result),
            *describe_lower_bound(result.lower_bound, result.lowest_regret.mean),
            *(Message("warning: {}", warning) for warning in result.notices),
            f"search: {result.setup.tuner_name}{describe_ranges(result.setup)}, {result.budget:,} runs per policy; "
            f"validation: {describe_validation(result.setup, result.validation_runs)}, the same for all; "
            f"seed {result.setup.seed}{describe_device(result.setup)}",
            state_assumptions(result.setup),
        ],
    )
