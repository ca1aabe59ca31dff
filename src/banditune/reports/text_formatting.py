"""Numbers, estimates and settings as text, in the form that all reports use."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from banditune.core.descriptions import OWN_CODE_KEY, shorten_value
from banditune.results.estimates import Estimate
from banditune.results.exact_results import LowerBound
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Tuning

MAX_DECIMALS = 8
"""Smaller standard errors have an exponent."""


TEXTBOOK_BASELINE = "textbook"
"""The name of the baseline if it is the tuned policy itself with the textbook value."""


def format_mean_and_interval(estimate: Estimate) -> str:
    """Format an estimate as 40.4 (35.6 to 45.3)."""
    return f"{format_number(estimate.mean)} ({format_number(estimate.low)} to {format_number(estimate.high)})"


def format_percent(share: float) -> str:
    """Format a share as 0.5% or 95%."""
    return f"{100 * share:.4g}%"


def format_interval(estimate: Estimate) -> str:
    """Format the interval as 95%: 35.6 to 45.3."""
    return f"95%: {format_number(estimate.low)} to {format_number(estimate.high)}"


def format_number(value: float) -> str:
    """Format a number with four digits, without an exponent below 1e7."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def count_decimals(error: float) -> int | None:
    """Count the decimals that show two digits of a standard error; None without one, or if there are too many."""
    if not error > 0 or not math.isfinite(error):
        return None
    decimals = max(0, 1 - int(f"{error:.1e}".partition("e")[2]))
    return decimals if decimals <= MAX_DECIMALS else None


def format_mean_and_error(mean: float, error: float, sign: str = " +- ") -> str:
    """Format a mean with its standard error as 75.02 +- 0.64: two digits of the error, and as many decimals of the mean.

    Without a standard error, or with one of 0, it is the mean alone.
    """
    decimals = count_decimals(error)
    if decimals is not None:
        return f"{mean:.{decimals}f}{sign}{error:.{decimals}f}"
    return f"{mean:.6g}{sign}{error:.1e}" if error > 0 else format_number(mean)


def format_estimate_cells(estimate: Estimate) -> tuple[str, str, str]:
    """Format mean, standard error and interval as three cells."""
    return (
        format_number(estimate.mean),
        format_number(estimate.se),
        f"{format_number(estimate.low)} to {format_number(estimate.high)}",
    )


def format_params(params: Mapping[str, float]) -> str:
    """Format parameters as gamma = 0.22."""
    return ", ".join(f"{name} = {format_number(value)}" for name, value in params.items())


def format_count(number: int, noun: str) -> str:
    """Format a count as 1 run or 2 runs."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def format_text_table(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Format rows as columns of equal width. Columns not in `left` are aligned to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def describe_config(config: Mapping[str, Any]) -> str:
    """Describe a policy, problem or tuner by its name and options."""
    hidden = ("name", "names", OWN_CODE_KEY)
    options = {key: value for key, value in config.items() if key not in hidden and value not in ([], (), None)}
    text = ", ".join(f"{key}={shorten_value(value)}" for key, value in options.items())
    return f"{config['name']}({text})" if text else str(config["name"])


def format_option(value: Any) -> str:
    """Format an option's value with four digits, as 0.0656 or (3.357, 771.4)."""
    pair = isinstance(value, list | tuple) and all(isinstance(item, float | int) for item in value) and len(value) <= 8
    if pair:
        return f"({', '.join(format_number(item) for item in value)})"
    return format_number(value) if isinstance(value, float | int) else shorten_value(value)


def describe_problem_options(
    policy: Mapping[str, Any], sources: Mapping[str, str], baseline: Mapping[str, Any] | None
) -> str:
    """Describe the options from the problem, with those of the baseline: noise 0.0656, from the problem."""
    clauses = []
    for name, source in sources.items():
        default = policy[name] if baseline is None else baseline.get(name)
        textbook = "" if default == policy[name] else f" (textbook: {format_option(default)})"
        clauses.append(f"{name} {format_option(policy[name])}, {source}{textbook}")
    return "; ".join(clauses)


def list_problem_options(setup: StudySetup, baseline: Mapping[str, Any] | None = None) -> Iterator[str]:
    """List the options that a result's policy took from the problem."""
    if setup.policy is not None and setup.from_problem:
        yield describe_problem_options(setup.policy, setup.from_problem, baseline)


def name_baseline(result: Tuning) -> str:
    """Name the baseline of a tuning, as "textbook" with the options in which it differs."""
    return name_textbook_policy(result.setup.policy, result.textbook_policy)


def name_textbook_policy(policy: Mapping[str, Any] | None, baseline: Mapping[str, Any] | None) -> str:
    """Name the baseline of a policy, as "textbook" or as "textbook, noise=0.5"."""
    if policy is None or baseline is None or policy == baseline:
        return TEXTBOOK_BASELINE
    differences = ", ".join(
        f"{name}={format_option(value)}" for name, value in baseline.items() if value != policy.get(name)
    )
    return f"textbook, {differences}"


def name_textbook_value(parameter: str, setup: StudySetup) -> str:
    """Name the textbook value of a parameter. With options from the problem, the policy is not the textbook policy."""
    options = " and ".join(setup.from_problem)
    return f"{TEXTBOOK_BASELINE} {parameter}, with the problem's {options}" if options else TEXTBOOK_BASELINE


def describe_setup(setup: StudySetup) -> str:
    """Describe policy, problem and horizon, and what regret compares with if not the best arm at each step."""
    who = f"{describe_config(setup.policy)} on " if setup.policy else ""
    against = f", regret against {setup.compared_with}" if setup.compared_with else ""
    return f"{who}{describe_config(setup.problem)}, horizon {setup.horizon:,}{against}"


def describe_ranges(setup: StudySetup) -> str:
    """Describe the requested ranges, as ", gamma from 0 to 3"; empty if there are none."""
    return "".join(f", {name} from {low:.4g} to {high:.4g}" for name, (low, high) in (setup.ranges or {}).items())


def describe_validation(setup: StudySetup, runs: int) -> str:
    """Describe validation as 1,000 fresh instances, or 1,000 runs on the 20 tables that were held out."""
    data = setup.held_out_data
    if data is None:
        return f"{runs:,} fresh instances"
    return f"{runs:,} runs on the {format_count(data.held_out_count, data.unit)} that were held out"


def list_data_scope_lines(setup: StudySetup) -> Iterator[str]:
    """List the line on what the numbers are about, if the problem is made of a data set."""
    if setup.data_scope:
        yield f"the numbers are about {setup.data_scope.description}"


def state_assumptions(setup: StudySetup) -> str:
    """State the assumptions behind every number, in one line."""
    changes = ", with the same changes" if setup.compared_with else ""
    arms = "" if setup.compared_with else " arms do not change,"
    return (
        f"assumed: every reward is known before the next decision,{arms} and future problems are like those simulated"
        f"{changes}; see `banditune explain assumptions`"
    )


def describe_device(setup: StudySetup) -> str:
    """Describe the device, if it is not the CPU."""
    return "" if setup.device == "cpu" else f", on the {setup.device.upper()}"


def describe_lower_bound(bound: LowerBound | None, regret: float = 0.0) -> Iterator[str]:
    """Describe the lower bound, if it is known, beside the regret of a policy. An empty line follows."""
    if bound is None:
        return
    if bound.is_exact:
        yield f"optimum over all policies: {format_number(bound.regret)} (exact, by {bound.method})"
    else:
        weakness = bound.explain_weakness(regret)
        weak = f", a weak bound: {weakness}" if weakness else ""
        source = f"{describe_confidence(bound)}, by the bound {bound.method!r}"
        yield (
            f"no policy can have a regret below {format_number(bound.regret)} here ({source}){weak}; "
            "how much of the difference can be gained is not known"
        )
    yield ""


def describe_confidence(bound: LowerBound) -> str:
    """Describe the confidence of a bound."""
    return "computed" if bound.confidence == 1 else f"{100 * bound.confidence:g}% sure"
