"""Ranks the means of a store: which one is the lowest, and how certain that is."""

from __future__ import annotations

from collections.abc import Sequence

from banditune.reports.plot_marks import CURVE_COLOUR, TUNED_COLOUR
from banditune.reports.text_formatting import format_count, format_mean_and_interval, format_number, format_params
from banditune.results.estimates import Estimate, RegretDistribution, compute_bonferroni_quantile
from banditune.results.store_results import StoredMean, StoreSummary

MIN_RANKED_RUNS = 300
"""Runs that a value must have for an interval and for a rank, unless all have fewer.

An event of probability 1% is missed by 300 runs with a probability of 5%, by 30 runs with 74%. A mean of few runs may lack
the rare high regrets that dominate it. Its interval lacks them too, and is then too narrow.
"""


INSTANCE_KINDS = (("search", False, CURVE_COLOUR), ("fresh", True, TUNED_COLOUR))
"""Kinds of instances, whether they are fresh, and their colours."""


def describe_stored_setup(result: StoreSummary) -> str:
    """Describe policy, problem and horizon."""
    return f"{result.policy} on {result.problem}, horizon {result.horizon:,}"


def describe_stored_runs(result: StoreSummary) -> str:
    """Describe the runs, as 33 values, 680 runs: 650 on search instances, 30 on fresh ones."""
    runs = [sum(stored.regret.runs for stored in result.select_final(fresh=fresh)) for _, fresh, _ in INSTANCE_KINDS]
    values = len({stored.params for stored in result.stored_means})
    return (
        f"{format_count(values, 'value')}, {format_count(sum(runs), 'run')}: {runs[0]:,} on search instances, "
        f"{runs[1]:,} on fresh ones"
    )


def select_with_runs(stored_means: Sequence[StoredMean], needed: int) -> list[StoredMean]:
    """Select means with at least this many runs, or with half of the most runs if that is less."""
    limit = max((stored.regret.runs for stored in stored_means), default=0)
    return [stored for stored in stored_means if stored.regret.runs >= min(needed, limit / 2)]


def rank_stored_means(stored_means: Sequence[StoredMean]) -> list[StoredMean]:
    """Rank the values with enough runs, the lowest mean first."""
    return sorted(select_with_runs(stored_means, MIN_RANKED_RUNS), key=lambda stored: stored.regret.mean)


def find_leader(result: StoreSummary) -> StoredMean:
    """Find the lowest mean, on fresh instances if there are any."""
    return (rank_stored_means(result.select_final(fresh=True)) or rank_stored_means(result.select_final(fresh=False)))[
        0
    ]


def name_stored_value(result: StoreSummary, stored: StoredMean) -> str:
    """Format a value as gamma = 0.22, or as the name of a policy without parameters."""
    return format_params(dict(zip(result.parameters, stored.params, strict=True))) or result.policy


def count_ranked(result: StoreSummary) -> int:
    """Count the values of which the leader is the lowest, itself included."""
    return len(rank_stored_means(result.select_final(fresh=find_leader(result).fresh)))


def state_leader(result: StoreSummary) -> str:
    """State which value has the lowest mean, on which instances, and how uncertain that is."""
    first, count = find_leader(result), count_ranked(result)
    kind = "fresh" if first.fresh else "search"
    if count == 1:
        instances = format_count(first.regret.runs, f"{kind} instance")
        return f"{name_stored_value(result, first)} has regret {format_stored_mean(first.regret)} on {instances}."
    lowest = f"{name_stored_value(result, first)} has the lowest of {count:,} means on {kind} instances"
    sure = compute_simultaneous_interval(first, count)
    interval = (
        f": its regret is {format_number(sure[0])} to {format_number(sure[1])} (95% sure for all values together)"
        if sure
        else ""
    )
    return f"{lowest}, {format_number(first.regret.mean)}, which as the lowest is likely too low{interval}."


def compute_simultaneous_interval(first: StoredMean, count: int) -> tuple[float, float] | None:
    """Compute the interval of the lowest mean that holds together with those of all `count` ranked values.

    None if there are few runs, or if a search chose the number of runs by their regrets.
    """
    if not has_enough_runs(first.regret) or (count > 1 and not first.fresh):
        return None
    half = compute_bonferroni_quantile(count, first.regret.runs) * first.regret.se
    return first.regret.mean - half, first.regret.mean + half


def has_enough_runs(estimate: Estimate) -> bool:
    """Return whether there are enough runs for an interval that can be trusted."""
    return estimate.runs >= MIN_RANKED_RUNS


def format_stored_mean(estimate: Estimate) -> str:
    """Format a mean as 40.4 (35.6 to 45.3); without an interval if there are few runs."""
    return format_mean_and_interval(estimate) if has_enough_runs(estimate) else format_number(estimate.mean)


def list_leader_distributions(result: StoreSummary) -> list[tuple[str, RegretDistribution]]:
    """List the regret distributions at the lowest mean of each kind of instances."""
    distributions = []
    for kind, fresh, _ in reversed(INSTANCE_KINDS):
        for stored in rank_stored_means(result.select_final(fresh=fresh))[:1]:
            distributions.append((f"{kind}: {name_stored_value(result, stored)}", stored.distribution))
    return distributions
