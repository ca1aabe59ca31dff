"""Which stored mean is the lowest, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence

from banditune.reports.plot_marks import CURVE_COLOUR, TUNED_COLOUR
from banditune.reports.text_formatting import format_count, format_mean_and_interval, format_number, format_params
from banditune.results.estimates import Estimate, RegretDistribution, compute_bonferroni_quantile
from banditune.results.store_results import StoredMean, StoreSummary

MIN_RANKED_RUNS = 300
"""Runs that a value must have to be told and drawn with an interval, and to be ranked, unless all have fewer.

What happens to one run in 100 is missed by 300 runs with a probability of 5%, by 30 runs with 74%: a mean of few runs may
lack the rare disasters that carry it, and its interval, which lacks them too, is then narrow and wrong.
"""


INSTANCE_KINDS = (("search", False, CURVE_COLOUR), ("fresh", True, TUNED_COLOUR))
"""Kinds of instances, whether they are fresh, and their colours."""


def describe_stored_setup(result: StoreSummary) -> str:
    """Policy, problem and horizon."""
    return f"{result.policy} on {result.problem}, horizon {result.horizon:,}"


def describe_stored_runs(result: StoreSummary) -> str:
    """33 values, 680 runs: 650 on search instances, 30 on fresh ones."""
    runs = [sum(tally.regret.runs for tally in result.ended(fresh=fresh)) for _, fresh, _ in INSTANCE_KINDS]
    values = len({tally.params for tally in result.tallies})
    return (
        f"{format_count(values, 'value')}, {format_count(sum(runs), 'run')}: {runs[0]:,} on search instances, {runs[1]:,} on fresh "
        "ones"
    )


def select_with_runs(tallies: Sequence[StoredMean], wanted: int) -> list[StoredMean]:
    """Those with so many runs; where few have, those with half of the most."""
    most = max((tally.regret.runs for tally in tallies), default=0)
    return [tally for tally in tallies if tally.regret.runs >= min(wanted, most / 2)]


def rank_stored_means(tallies: Sequence[StoredMean]) -> list[StoredMean]:
    """Values with enough runs, the lowest mean first."""
    return sorted(select_with_runs(tallies, MIN_RANKED_RUNS), key=lambda tally: tally.regret.mean)


def find_leader(result: StoreSummary) -> StoredMean:
    """The lowest mean on fresh instances, where there are any."""
    return (rank_stored_means(result.ended(fresh=True)) or rank_stored_means(result.ended(fresh=False)))[0]


def name_stored_value(result: StoreSummary, tally: StoredMean) -> str:
    """gamma = 0.22; a policy without parameters is called by its name."""
    return format_params(dict(zip(result.parameters, tally.params, strict=True))) or result.policy


def count_ranked(result: StoreSummary) -> int:
    """How many values the leader is the lowest of, itself among them."""
    return len(rank_stored_means(result.ended(fresh=find_leader(result).fresh)))


def state_leader(result: StoreSummary) -> str:
    """Which value lost least, on which instances, and what is to be thought of that where there were others."""
    first, count = find_leader(result), count_ranked(result)
    kind = "fresh" if first.fresh else "search"
    if count == 1:
        instances = format_count(first.regret.runs, f"{kind} instance")
        return f"{name_stored_value(result, first)} loses {format_stored_mean(first.regret)} on {instances}."
    lowest = f"{name_stored_value(result, first)} has the lowest of {count:,} means on {kind} instances"
    sure = compute_simultaneous_interval(first, count)
    loses = (
        f": it loses {format_number(sure[0])} to {format_number(sure[1])} (95% sure for all values together)"
        if sure
        else ""
    )
    return f"{lowest}, {format_number(first.regret.mean)}, which as the lowest is likely too low{loses}."


def compute_simultaneous_interval(first: StoredMean, count: int) -> tuple[float, float] | None:
    """The interval of a leader's regret that holds together with those of all `count` values that it was chosen from.

    None where runs are few, or where a search chose by these very runs how many there are.
    """
    if not has_enough_runs(first.regret) or (count > 1 and not first.fresh):
        return None
    half = compute_bonferroni_quantile(count, first.regret.runs) * first.regret.se
    return first.regret.mean - half, first.regret.mean + half


def has_enough_runs(estimate: Estimate) -> bool:
    """Whether there are runs enough for an interval to be trusted."""
    return estimate.runs >= MIN_RANKED_RUNS


def format_stored_mean(estimate: Estimate) -> str:
    """40.4 (35.6 to 45.3); few runs have no interval."""
    return format_mean_and_interval(estimate) if has_enough_runs(estimate) else format_number(estimate.mean)


def list_leader_distributions(result: StoreSummary) -> list[tuple[str, RegretDistribution]]:
    """How single runs lose at the lowest mean of each kind of instances."""
    found = []
    for kind, fresh, _ in reversed(INSTANCE_KINDS):
        for tally in rank_stored_means(result.ended(fresh=fresh))[:1]:
            found.append((f"{kind}: {name_stored_value(result, tally)}", tally.spread))
    return found
