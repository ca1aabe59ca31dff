"""Sentences and table rows about a tuning: its gain, and what its search knows about the answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from banditune.reports.text_formatting import (
    format_count,
    format_estimate_cells,
    format_number,
    format_params,
    name_baseline,
)
from banditune.results.tuning_results import Tuning


def get_tuning_header(result: Tuning) -> tuple[str, ...]:
    """What the columns of `list_tuning_rows` are."""
    return ("", *result.params, "regret", "std. error", "95% interval")


def list_tuning_rows(result: Tuning) -> Iterator[tuple[str, ...]]:
    """Tuned, theory and the gain."""
    yield "tuned", *map(format_number, result.params.values()), *format_estimate_cells(result.regret)
    yield (
        name_baseline(result),
        *map(format_number, result.theory_params.values()),
        *format_estimate_cells(result.theory),
    )
    yield "gain", *("" for _ in result.params), *format_estimate_cells(result.gain)


def describe_baseline(name: str) -> str:
    """The baseline in a sentence."""
    return name if name == "theory" else f"the {name.replace(', ', ' with ', 1)}"


def describe_posterior(result: Tuning) -> Iterator[str]:
    """What the search knows about its answer, and whether that is as much as was wanted."""
    belief = result.belief
    if belief is None:
        return
    (name,) = result.params
    if belief.misfit:
        yield f"How sure the search is, it cannot say: see the warning about its curves{describe_wanted_precision(result)}"
        yield ""
        return
    indent = " " * len(f"{100 * belief.level:g}% sure: ")
    data = result.setup.held_out
    alone = f", about the {format_count(data.searched, data.unit)} that were searched, not new ones" if data else ""
    sure = f"{100 * belief.level:g}% sure{alone}: "
    share = f"{belief.gap / max(abs(belief.mean), 1e-300):.1%} of {format_number(belief.mean)}"
    nothing = f"no {belief.among(name)}" if belief.untried else "nothing"
    yield f"{sure}{nothing} beats it by more than {format_number(belief.gap)} ({share}{describe_wanted_precision(result)})"
    best = f"{format_number(belief.best_low)} and {format_number(belief.best_high)}"
    yield f"{indent}the best {belief.among(name)} is between {best}"
    if belief.flat:
        low, high, within = belief.flat
        of = f" of any {belief.among(name)}" if belief.untried else ""
        least = f"any {name} from {format_number(low)} to {format_number(high)}, at least,"
        yield f"{indent}{least} is within {within:.0%} of the lowest regret{of}"
    yield (
        f"{indent}by the search's own runs, {format_params(result.params)} loses {format_number(belief.low)} to "
        f"{format_number(belief.high)}"
    )
    yield ""


def describe_wanted_precision(result: Tuning) -> str:
    """The wanted precision, and what ended the search before it was reached."""
    if result.within is None:
        return ""
    limit = "`max_budget`" if result.spent >= result.budget else "`max_time`"
    # A search that did reach it was refuted on fresh instances; where no curve fits, no limit is to blame.
    told = result.belief is not None and (result.belief.misfit or result.belief.keeps(result.within))
    why = "see the warning" if told else f"{limit} ended the search"
    return f"; wanted {100 * result.within:.3g}%: " + ("reached" if result.reached else f"NOT reached, {why}")


def describe_baseline_params(name: str, params: Mapping[str, float]) -> str:
    """The baseline with its parameters: theory's gamma = 1, the textbook with noise=0.5 and gamma = 1."""
    if name == "theory":
        return f"theory's {format_params(params)}"
    return f"{describe_baseline(name)} and {format_params(params)}" if params else describe_baseline(name)


def state_gain(result: Tuning) -> str:
    """How the tuned value compares with theory's, as far as the interval allows to say."""
    gain, name = result.gain, name_baseline(result)
    usual = describe_baseline_params(name, result.theory_params)
    if name == "theory" and result.params == result.theory_params:
        return "which is what theory has"
    if gain.low > 0:
        share = f" ({gain.mean / result.theory.mean:.0%})" if result.theory.mean > 0 else ""
        return f"{format_number(gain.mean)}{share} less than {usual}"
    if gain.high < 0:
        return f"but {usual} loses {format_number(-gain.mean)} less: see the warnings"
    if gain.mean == gain.se == 0:
        return f"exactly as much as {usual}"
    data = result.setup.held_out
    way = f"give more {data.unit}s" if data else "raise `validate` or the budget"
    return f"which may be no better than {usual}: {way}"
