"""Sentences and table rows about a tuning: its gain, and the posterior of its search."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from banditune.core.messages import Argument, Message
from banditune.reports.text_formatting import (
    TEXTBOOK_BASELINE,
    format_count,
    format_estimate_cells,
    format_number,
    format_params,
    name_baseline,
)
from banditune.results.tuning_results import Tuning


def get_tuning_header(result: Tuning) -> tuple[str, ...]:
    """Return the header of the rows of `list_tuning_rows`."""
    return ("", *result.params, "regret", "std. error", "95% interval")


def list_tuning_rows(result: Tuning) -> Iterator[tuple[str, ...]]:
    """List the rows of the tuned value, the baseline and the gain."""
    yield "tuned", *map(format_number, result.params.values()), *format_estimate_cells(result.regret)
    yield (
        name_baseline(result),
        *map(format_number, result.textbook_params.values()),
        *format_estimate_cells(result.textbook_regret),
    )
    yield "gain", *("" for _ in result.params), *format_estimate_cells(result.gain)


def describe_baseline(name: str) -> str:
    """Name the baseline within a sentence."""
    return "the textbook default" if name == TEXTBOOK_BASELINE else f"the {name.replace(', ', ' with ', 1)}"


def describe_posterior(result: Tuning) -> Iterator[str]:
    """Describe the posterior of the search, and whether the requested precision was reached."""
    posterior = result.posterior
    if posterior is None:
        return
    names = result.searched_parameters
    name = names[0]
    if posterior.misfit:
        precision = describe_requested_precision(result)
        yield Message("the search cannot state its confidence: see the warning about its curves{}", precision)
        yield ""
        return
    indent = " " * len(f"{100 * posterior.confidence:g}% sure: ")
    data = result.setup.held_out_data
    alone = (
        f", about the {format_count(data.searched_count, data.unit)} that were searched, not new ones" if data else ""
    )
    sure = f"{100 * posterior.confidence:g}% sure{alone}: "
    share = f"{posterior.regret_gap / max(abs(posterior.mean), 1e-300):.1%} of {format_number(posterior.mean)}"
    others = "no other value" if len(names) == 1 else "no other values"
    nothing = f"no {posterior.describe_range(name)}" if posterior.unexplored else others
    gap = Message("{} ({}{})", format_number(posterior.regret_gap), share, describe_requested_precision(result))
    yield Message("{}{} {} better by more than {}", sure, nothing, "is" if len(names) == 1 else "are", gap)
    for parameter, (low, high) in posterior.best_intervals.items():
        best = f"{format_number(low)} and {format_number(high)}"
        yield f"{indent}the best {posterior.describe_range(parameter)} is between {best}"
    if posterior.near_optimal:
        low, high, region_share = posterior.near_optimal
        of = f" of any {posterior.describe_range(name)}" if posterior.unexplored else ""
        span = f"any {name} from {format_number(low)} to {format_number(high)}, at least,"
        yield f"{indent}{span} is within {region_share:.0%} of the lowest regret{of}"
    yield (
        f"{indent}by the runs of the search, {format_params(result.params)} has regret {format_number(posterior.low)} to "
        f"{format_number(posterior.high)}"
    )
    yield ""


IMPORTANCE_HEADER = ("parameter", "tuned", "textbook", "regret added", "std. error", "95% interval")
"""The header of the rows of `list_importance_rows`."""


def list_importance_rows(result: Tuning) -> Iterator[tuple[str, ...]]:
    """List, for each of several parameters, the regret that is added if it alone has its textbook value."""
    for name, added in (result.importance or {}).items():
        values = (format_number(params[name]) for params in (result.params, result.textbook_params))
        yield name, *values, *format_estimate_cells(added)


def describe_requested_precision(result: Tuning) -> str:
    """Describe the requested precision, and what ended the search if it was not reached."""
    if result.precision is None:
        return ""
    limit = Argument("max_runs" if result.search_runs >= result.budget else "max_time")
    # If the search reached the precision, fresh instances refuted it. If no curve fits, the limit is not the reason.
    has_warning = result.posterior is not None and (
        result.posterior.misfit or result.posterior.meets_precision(result.precision)
    )
    why = "see the warning" if has_warning else Message("{} ended the search", limit)
    reached = "reached" if result.precision_reached else Message("NOT reached, {}", why)
    return Message("; requested {:.3g}%: {}", 100 * result.precision, reached)


def describe_baseline_params(name: str, params: Mapping[str, float]) -> str:
    """Name the baseline with its parameters.

    Such as the textbook default gamma = 1, or the textbook with noise=0.5 and gamma = 1.
    """
    if not params:
        return describe_baseline(name)
    joint = " " if name == TEXTBOOK_BASELINE else " and "
    return f"{describe_baseline(name)}{joint}{format_params(params)}"


def state_gain(result: Tuning) -> str:
    """Compare the tuned value with the baseline. The sentence depends on the interval of the gain."""
    gain, name = result.gain, name_baseline(result)
    baseline_name = describe_baseline_params(name, result.textbook_params)
    if name == TEXTBOOK_BASELINE and result.params == result.textbook_params:
        return "which is the textbook default"
    if gain.low > 0:
        share = f" ({gain.mean / result.textbook_regret.mean:.0%})" if result.textbook_regret.mean > 0 else ""
        return f"{format_number(gain.mean)}{share} less than {baseline_name}"
    if gain.high < 0:
        return f"but {baseline_name} has {format_number(-gain.mean)} less: see the warnings"
    if gain.mean == gain.se == 0:
        return f"exactly as much as {baseline_name}"
    data = result.setup.held_out_data
    way = f"give more {data.unit}s" if data else Message("raise {} or the budget", Argument("validate"))
    return Message("which may be no better than {}: {}", baseline_name, way)
