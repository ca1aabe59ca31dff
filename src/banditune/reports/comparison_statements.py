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
    """What each policy took from the problem."""
    lines = [
        f"{entry.policy}: {describe_problem_options(entry.made, entry.from_problem, entry.baseline)}"
        for entry in result.entries
        if entry.from_problem
    ]
    yield from [*lines, ""] if lines else []


def make_comparison_rows(result: Comparison, *, error: str) -> list[tuple[str, ...]]:
    """A head and a row for each policy, best first; the `error` of a regret is a "std. error" or a "95% interval"."""
    behind, place = "behind the best (95%, all pairs)", ("", "std. error", "95% interval").index(error)
    rows: list[tuple[str, ...]] = [
        ("policy", "tuned to", "regret", error, behind, "as theory has it", "gap of the search")
    ]
    for entry in result.entries:
        lagging = "" if entry.policy == result.best else format_difference_to_best(result, entry)
        found = format_estimate_cells(entry.regret)
        theory, gap = format_number(entry.theory.mean), format_regret_gap(entry)
        rows.append((entry.policy, describe_tuned_value(entry), found[0], found[place], lagging, theory, gap))
    return rows


def describe_tuned_value(entry: ComparisonEntry) -> str:
    """gamma = 0.22, with a mark where that is no tuned value, or one that is worse than theory's."""
    if entry.worse_than_theory:
        return f"{format_params(entry.params) or 'it'} (WORSE than {describe_entry_baseline(entry)}: use that)"
    return format_params(entry.params) + ("" if entry.tuned or not entry.params else " (theory)") or "-"


def describe_entry_baseline(entry: ComparisonEntry) -> str:
    """The baseline of an entry, with its parameters."""
    return describe_baseline_params(name_textbook_policy(entry.made, entry.baseline), entry.theory_params)


def format_regret_gap(entry: ComparisonEntry) -> str:
    """How sure the search is of its answer, by its own statement: 0.9 (2%); or why that is not known."""
    belief = entry.belief
    if not entry.tuned:
        return "not tuned"
    if belief is None:
        return "not stated"
    # Another policy's regret refutes nothing that was said about values of this one's parameter.
    refuted = entry.gain is not None and entry.gain.high < -belief.gap and entry.baseline in (None, entry.made)
    if belief.misfit or refuted:
        return "unknown, see the warning"
    share = f" ({belief.gap / belief.mean:.1%})" if belief.mean > 0 else ""
    return f"{format_number(belief.gap)}{share}" + (
        f" from {format_number(belief.untried[1])} on" if belief.untried else ""
    )


def list_comparison_notes(result: Comparison) -> Iterator[str]:
    """What the columns mean, and which policies were not tuned or cannot be judged by a backtest."""
    levels = sorted({entry.belief.level for entry in result.entries if entry.belief})
    if levels:
        yield f"gap: no other value of the parameter is better by more, as the search states ({levels[0]:.0%} sure)"
    left = [f"{entry.policy} ({entry.not_tuned})" for entry in result.entries if entry.not_tuned]
    if left:
        yield f"not tuned, but played as theory has it, and out of reach of `backtest`: {', '.join(left)}"
    left = [
        f"{entry.policy} ({entry.not_backtested})"
        for entry in result.entries
        if entry.not_backtested and not entry.not_tuned
    ]
    if left:
        yield f"`backtest` cannot judge: {', '.join(left)}"


def state_best_policy(result: Comparison) -> str:
    """Which policy is best, and which others may be as good: with 95% for all pairs of policies together (Bonferroni)."""
    tied = [entry.policy for entry in result.entries[1:] if result.behind(entry)[0] <= 0]
    again = (
        f", and {format_number(result.again.mean)} on as many other instances, which did not choose it"
        if result.again
        else ""
    )
    best = result.entries[0]
    words = f"{result.best} loses least, {format_number(best.lowest.mean)} on average{again}"
    if best.worse_than_theory:
        words += f", as {describe_entry_baseline(best)}, which is better than the tuned one"
    if tied:
        words += f"; {' and '.join(tied)} may be as good (95% sure for all pairs together)"
    return f"{words}.{state_best_backtestable(result)}"


def state_best_backtestable(result: Comparison) -> str:
    """Which policy to take where `backtest` cannot judge the best one; empty where it can."""
    best = result.entries[0]
    if not best.not_backtested:
        return ""
    words = f" `backtest` cannot judge {best.policy}: {best.not_backtested}"
    judged = next((entry for entry in result.entries if not entry.not_backtested), None)
    if judged is None:
        return f"{words}; nor can it judge any of the others."
    return f"{words}. The best that it can judge is {judged.policy}, which loses {format_difference_to_best(result, judged)} more."


def describe_selection_bias(result: Comparison) -> Iterator[str]:
    """What the lowest of several means on the same data is."""
    data = result.setup.held_out
    if data:
        chosen = f"{result.best} was chosen on the {format_count(data.held_out, data.unit)} that were held out"
        yield f"{chosen}: its regret is a little too low"


def format_difference_to_best(result: Comparison, entry: ComparisonEntry) -> str:
    """How far a policy is behind the best, with an interval as sure as the sentence above the table: for all pairs."""
    low, high = result.behind(entry)
    return f"{format_number(entry.behind.mean)} ({format_number(low)} to {format_number(high)})"
