"""Numbers, estimates and settings as text, in the form that all reports use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from banditune.core.descriptions import OWN_CODE_KEY, shorten_value
from banditune.results.estimates import Estimate
from banditune.results.exact_results import LowerBound
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Tuning


def format_mean_and_interval(estimate: Estimate) -> str:
    """40.4 (35.6 to 45.3)."""
    return f"{format_number(estimate.mean)} ({format_number(estimate.low)} to {format_number(estimate.high)})"


def format_percent(share: float) -> str:
    """0.5%, 95%."""
    return f"{100 * share:.4g}%"


def format_interval(estimate: Estimate) -> str:
    """95%: 35.6 to 45.3."""
    return f"95%: {format_number(estimate.low)} to {format_number(estimate.high)}"


def format_number(value: float) -> str:
    """Four digits, no exponent in the usual range."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def format_estimate_cells(estimate: Estimate) -> tuple[str, str, str]:
    """Mean, standard error and interval."""
    return (
        format_number(estimate.mean),
        format_number(estimate.se),
        f"{format_number(estimate.low)} to {format_number(estimate.high)}",
    )


def format_params(params: Mapping[str, float]) -> str:
    """gamma = 0.22."""
    return ", ".join(f"{name} = {format_number(value)}" for name, value in params.items())


def format_count(number: int, thing: str) -> str:
    """1 run, 2 runs."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def format_text_table(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Columns of equal width, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def describe_config(made: Mapping[str, Any]) -> str:
    """The name and the options of a policy, problem or tuner, in words."""
    hidden = ("name", "names", OWN_CODE_KEY)
    options = {key: value for key, value in made.items() if key not in hidden and value not in ([], (), None)}
    told = ", ".join(f"{key}={shorten_value(value)}" for key, value in options.items())
    return f"{made['name']}({told})" if told else str(made["name"])


def format_option(value: Any) -> str:
    """An option's value in four digits: 0.0656, (3.357, 771.4)."""
    pair = isinstance(value, list | tuple) and all(isinstance(item, float | int) for item in value) and len(value) <= 8
    if pair:
        return f"({', '.join(format_number(item) for item in value)})"
    return format_number(value) if isinstance(value, float | int) else shorten_value(value)


def describe_problem_options(
    policy: Mapping[str, Any], sources: Mapping[str, str], baseline: Mapping[str, Any] | None
) -> str:
    """What a policy took from the problem, and what the textbook's has instead: noise 0.0656, from the problem."""
    told = []
    for name, source in sources.items():
        usual = policy[name] if baseline is None else baseline.get(name)
        textbook = "" if usual == policy[name] else f" (textbook: {format_option(usual)})"
        told.append(f"{name} {format_option(policy[name])}, {source}{textbook}")
    return "; ".join(told)


def list_problem_options(setup: StudySetup, baseline: Mapping[str, Any] | None = None) -> Iterator[str]:
    """What a result's policy took from the problem."""
    if setup.policy is not None and setup.from_problem:
        yield describe_problem_options(setup.policy, setup.from_problem, baseline)


def name_baseline(result: Tuning) -> str:
    """What the baseline is called: theory, or the textbook's policy with the options in which it differs."""
    return name_textbook_policy(result.setup.policy, result.baseline)


def name_textbook_policy(policy: Mapping[str, Any] | None, baseline: Mapping[str, Any] | None) -> str:
    """The same, of a policy and its baseline."""
    if policy is None or baseline is None or policy == baseline:
        return "theory"
    other = ", ".join(f"{name}={format_option(value)}" for name, value in baseline.items() if value != policy.get(name))
    return f"textbook, {other}"


def describe_setup(setup: StudySetup) -> str:
    """Policy, problem and horizon, and what regret compares with where that is not the best arm at each step."""
    who = f"{describe_config(setup.policy)} on " if setup.policy else ""
    against = f", regret against {setup.compared_with}" if setup.compared_with else ""
    return f"{who}{describe_config(setup.problem)}, horizon {setup.horizon:,}{against}"


def describe_ranges(setup: StudySetup) -> str:
    """Where the search looked, if a range was asked for: ", gamma from 0 to 3"."""
    return "".join(f", {name} from {low:.4g} to {high:.4g}" for name, (low, high) in (setup.ranges or {}).items())


def describe_validation(setup: StudySetup, runs: int) -> str:
    """1,000 fresh instances, or 1,000 runs on the 20 tables that were held out."""
    found = setup.held_out
    if found is None:
        return f"{runs:,} fresh instances"
    return f"{runs:,} runs on the {format_count(found.held_out, found.unit)} that were held out"


def list_data_scope_lines(setup: StudySetup) -> Iterator[str]:
    """What the numbers are about, where the problem is made of a data set."""
    if setup.sample:
        yield f"the numbers are about {setup.sample.about}"


ASSUMPTIONS = (
    "assumed: every reward is known before the next decision, arms stay as they are, and what comes is like what was "
    "simulated; see `banditune explain assumptions`"
)
"""What every number assumes, in a line."""


def describe_device(setup: StudySetup) -> str:
    """Where it was played, if not on the CPU."""
    return "" if setup.device == "cpu" else f", on the {setup.device.upper()}"


def describe_lower_bound(floor: LowerBound | None, regret: float = 0.0) -> Iterator[str]:
    """What no policy can go below, where it is known, beside the regret of a policy."""
    if floor is None:
        return
    if floor.exact:
        yield f"the best that any policy can do here: {format_number(floor.regret)} (exact, by {floor.how})"
    else:
        weakness = floor.weakness(regret)
        weak = f", a weak bound: {weakness}" if weakness else ""
        source = f"{describe_confidence(floor)}, by the bound {floor.how!r}"
        yield (
            f"no policy can lose less than {format_number(floor.regret)} here ({source}){weak}; "
            "how much of what lies above it can be gained is not known"
        )
    yield ""


def describe_confidence(floor: LowerBound) -> str:
    """How sure a bound is."""
    return "computed" if floor.level == 1 else f"{100 * floor.level:g}% sure"
