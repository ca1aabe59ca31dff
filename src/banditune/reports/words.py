"""Numbers, estimates and settings in words, as all reports write them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from banditune.descriptions import OWN, short
from banditune.results import Estimate, Floor, Setup, Tuning


def number(value: float) -> str:
    """Four digits, no exponent in the usual range."""
    return f"{value:.0f}" if 1e4 <= abs(value) < 1e7 else f"{value:.4g}"


def cells(estimate: Estimate) -> tuple[str, str, str]:
    """Mean, standard error and interval."""
    return number(estimate.mean), number(estimate.se), f"{number(estimate.low)} to {number(estimate.high)}"


def settings(params: Mapping[str, float]) -> str:
    """gamma = 0.22."""
    return ", ".join(f"{name} = {number(value)}" for name, value in params.items())


def counted(number: int, thing: str) -> str:
    """1 run, 2 runs."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"


def table(rows: Sequence[Sequence[str]], left: Sequence[int] = (0,)) -> str:
    """Columns of equal width, numbers to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    )


def made_words(made: Mapping[str, Any]) -> str:
    """The name and the options of a policy, problem or tuner, in words."""
    hidden = ("name", "names", OWN)
    options = {key: value for key, value in made.items() if key not in hidden and value not in ([], (), None)}
    told = ", ".join(f"{key}={short(value)}" for key, value in options.items())
    return f"{made['name']}({told})" if told else str(made["name"])


def brief(value: Any) -> str:
    """An option's value in four digits: 0.0656, (3.357, 771.4)."""
    pair = isinstance(value, list | tuple) and all(isinstance(item, float | int) for item in value) and len(value) <= 8
    if pair:
        return f"({', '.join(number(item) for item in value)})"
    return number(value) if isinstance(value, float | int) else short(value)


def from_problem(policy: Mapping[str, Any], sources: Mapping[str, str], baseline: Mapping[str, Any] | None) -> str:
    """What a policy took from the problem, and what the textbook's has instead: noise 0.0656, from the problem."""
    told = []
    for name, source in sources.items():
        usual = policy[name] if baseline is None else baseline.get(name)
        textbook = "" if usual == policy[name] else f" (textbook: {brief(usual)})"
        told.append(f"{name} {brief(policy[name])}, {source}{textbook}")
    return "; ".join(told)


def scale_lines(setup: Setup, baseline: Mapping[str, Any] | None = None) -> Iterator[str]:
    """What a result's policy took from the problem."""
    if setup.policy is not None and setup.from_problem:
        yield from_problem(setup.policy, setup.from_problem, baseline)


def baseline_name(result: Tuning) -> str:
    """What the baseline is called: theory, or the textbook's policy with the options in which it differs."""
    return textbook_name(result.setup.policy, result.baseline)


def textbook_name(policy: Mapping[str, Any] | None, baseline: Mapping[str, Any] | None) -> str:
    """The same, of a policy and its baseline."""
    if policy is None or baseline is None or policy == baseline:
        return "theory"
    other = ", ".join(f"{name}={brief(value)}" for name, value in baseline.items() if value != policy.get(name))
    return f"textbook, {other}"


def headline(setup: Setup) -> str:
    """Policy, problem and horizon, and what regret compares with where that is not the best arm at each step."""
    who = f"{made_words(setup.policy)} on " if setup.policy else ""
    against = f", regret against {setup.compared_with}" if setup.compared_with else ""
    return f"{who}{made_words(setup.problem)}, horizon {setup.horizon:,}{against}"


def range_words(setup: Setup) -> str:
    """Where the search looked, if a range was asked for: ", gamma from 0 to 3"."""
    return "".join(f", {name} from {low:.4g} to {high:.4g}" for name, (low, high) in (setup.ranges or {}).items())


def fresh(setup: Setup, runs: int) -> str:
    """1,000 fresh instances, or 1,000 runs on the 20 tables that were held out."""
    found = setup.held_out
    if found is None:
        return f"{runs:,} fresh instances"
    return f"{runs:,} runs on the {counted(found.held_out, found.unit)} that were held out"


def about(setup: Setup) -> Iterator[str]:
    """What the numbers are about, where the problem is made of a data set."""
    if setup.sample:
        yield f"the numbers are about {setup.sample.about}"


ASSUMED = (
    "assumed: every reward is known before the next decision, arms stay as they are, and what comes is like what was "
    "simulated; see `banditune explain assumptions`"
)
"""What every number assumes, in a line."""


def place(setup: Setup) -> str:
    """Where it was played, if not on the CPU."""
    return "" if setup.device == "cpu" else f", on the {setup.device.upper()}"


def below(floor: Floor | None, regret: float = 0.0) -> Iterator[str]:
    """What no policy can go below, where it is known, beside the regret of a policy."""
    if floor is None:
        return
    if floor.exact:
        yield f"the best that any policy can do here: {number(floor.regret)} (exact, by {floor.how})"
    else:
        weakness = floor.weakness(regret)
        weak = f", a weak bound: {weakness}" if weakness else ""
        source = f"{sureness(floor)}, by the bound {floor.how!r}"
        yield (
            f"no policy can lose less than {number(floor.regret)} here ({source}){weak}; "
            "how much of what lies above it can be gained is not known"
        )
    yield ""


def sureness(floor: Floor) -> str:
    """How sure a bound is."""
    return "computed" if floor.level == 1 else f"{100 * floor.level:g}% sure"
