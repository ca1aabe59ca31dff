"""Sentences and table rows about a comparison of policies."""

from __future__ import annotations

from collections.abc import Iterator

from banditune.reports.text_formatting import (
    describe_problem_options,
    format_count,
    format_estimate_cells,
    format_number,
    format_params,
    name_textbook_policy,
)
from banditune.reports.tuning_statements import describe_baseline_params
from banditune.results.comparison_results import Comparison, ComparisonEntry


def list_entry_options(result: Comparison) -> Iterator[str]:
    """List the options that each policy took from the problem."""
    lines = [
        f"{entry.policy}: {describe_problem_options(entry.policy_config, entry.from_problem, entry.textbook_policy)}"
        for entry in result.entries
        if entry.from_problem
    ]
    yield from [*lines, ""] if lines else []


def make_comparison_rows(result: Comparison, *, error: str) -> list[tuple[str, ...]]:
    """Make a header and a row for each policy, best first.

    `error` selects the column after the regret: "std. error" or "95% interval".
    """
    title, column = "behind the best (95%, all pairs)", ("", "std. error", "95% interval").index(error)
    rows: list[tuple[str, ...]] = [("policy", "tuned to", "regret", error, title, "textbook", "gap of the search")]
    for entry in result.entries:
        lagging = "" if entry.policy == result.best_policy else format_difference_to_best(result, entry)
        cells = format_estimate_cells(entry.regret)
        textbook, gap = format_number(entry.textbook_regret.mean), format_regret_gap(entry)
        rows.append((entry.policy, describe_tuned_value(entry), cells[0], cells[column], lagging, textbook, gap))
    return rows


def describe_tuned_value(entry: ComparisonEntry) -> str:
    """Format the parameters as gamma = 0.22, with a mark if they are not tuned or worse than the textbook."""
    if entry.not_tuned_reason and entry.params and entry.params != entry.textbook_params:
        return f"{format_params(entry.params)} (fixed)"
    if entry.is_worse_than_textbook:
        return f"{format_params(entry.params) or 'it'} (WORSE than {describe_entry_baseline(entry)}: use that)"
    return format_params(entry.params) + ("" if entry.is_tuned or not entry.params else " (textbook)") or "-"


def describe_entry_baseline(entry: ComparisonEntry) -> str:
    """Describe the baseline of an entry with its parameters."""
    return describe_baseline_params(
        name_textbook_policy(entry.policy_config, entry.textbook_policy), entry.textbook_params
    )


def format_regret_gap(entry: ComparisonEntry) -> str:
    """Format the regret gap that the search states, as 0.9 (2%), or why there is none."""
    posterior = entry.posterior
    if not entry.is_tuned:
        return "not tuned"
    if posterior is None:
        return "not stated"
    # A lower regret of the baseline refutes the statement about the parameter only if both are the same policy.
    refuted = (
        entry.gain is not None
        and entry.gain.high < -posterior.regret_gap
        and entry.textbook_policy in (None, entry.policy_config)
    )
    if posterior.misfit or refuted:
        return "unknown, see the warning"
    share = f" ({posterior.regret_gap / posterior.mean:.1%})" if posterior.mean > 0 else ""
    return f"{format_number(posterior.regret_gap)}{share}" + (
        f" from {format_number(posterior.unexplored[1])} on" if posterior.unexplored else ""
    )


def list_comparison_notes(result: Comparison) -> Iterator[str]:
    """Explain the columns, and list the policies that were not tuned or cannot be backtested."""
    levels = sorted({entry.posterior.confidence for entry in result.entries if entry.posterior})
    if levels:
        yield f"gap: by the search, no other value of the parameter is better by more ({levels[0]:.0%} sure)"
    untuned = [f"{entry.policy} ({entry.not_tuned_reason})" for entry in result.entries if entry.not_tuned_reason]
    if untuned:
        yield f"not tuned, and not available to `backtest`: {', '.join(untuned)}"
    untuned = [
        f"{entry.policy} ({entry.not_backtested_reason})"
        for entry in result.entries
        if entry.not_backtested_reason and not entry.not_tuned_reason
    ]
    if untuned:
        yield f"`backtest` cannot evaluate: {', '.join(untuned)}"


def state_best_policy(result: Comparison) -> str:
    """State which policy is best, and which others may be as good.

    The confidence is 95% for all pairs of policies together (Bonferroni).
    """
    tied = [entry.policy for entry in result.entries[1:] if result.compute_difference_interval(entry)[0] <= 0]
    rerun = (
        f", and {format_number(result.best_rerun.mean)} on as many other instances, which did not select it"
        if result.best_rerun
        else ""
    )
    best = result.entries[0]
    text = (
        f"{result.best_policy} has the lowest regret, {format_number(best.recommended_regret.mean)} on average{rerun}"
    )
    if best.is_worse_than_textbook:
        text += f", with {describe_entry_baseline(best)}, which is better than the tuned one"
    if tied:
        text += f"; {' and '.join(tied)} may be as good (95% sure for all pairs together)"
    return f"{text}.{state_best_backtestable(result)}"


def state_best_backtestable(result: Comparison) -> str:
    """State the best policy that `backtest` can evaluate; empty if it can evaluate the best one."""
    best = result.entries[0]
    if not best.not_backtested_reason:
        return ""
    text = f" `backtest` cannot evaluate {best.policy}: {best.not_backtested_reason}"
    candidate = next((entry for entry in result.entries if not entry.not_backtested_reason), None)
    if candidate is None:
        return f"{text}; nor can it evaluate any of the others."
    difference = format_difference_to_best(result, candidate)
    return f"{text}. The best that it can evaluate is {candidate.policy}, whose regret is {difference} higher."


def describe_selection_bias(result: Comparison) -> Iterator[str]:
    """State that the lowest of several means on the same data is too low."""
    data = result.setup.held_out_data
    if data:
        held_out = format_count(data.held_out_count, data.unit)
        yield f"{result.best_policy} was selected on the {held_out} that were held out: its regret is a little too low"


def format_difference_to_best(result: Comparison, entry: ComparisonEntry) -> str:
    """Format the difference to the best policy, with an interval that holds for all pairs together."""
    low, high = result.compute_difference_interval(entry)
    return f"{format_number(entry.difference_to_best.mean)} ({format_number(low)} to {format_number(high)})"
