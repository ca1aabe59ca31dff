"""The parts of all checks of users' own objects: steps, their findings, and the error of a failed step."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from banditune.core.descriptions import describe
from banditune.core.errors import BanditTuneError, ConformanceError
from banditune.results.conformance_results import ConformanceCheck, ConformanceReport


class Violation(Exception):
    """Raised if a contract is violated. The message contains the rule, the observation and advice."""


class NotApplicable(Exception):
    """Raised if a check does not apply. The message is the reason."""


class Finding(NamedTuple):
    """The outcome of a step, with the number of runs and the smallest deviation that it would have detected."""

    text: str
    runs: int = 0
    detectable: float | None = None


def run_steps(kind: str, subject: str, steps: Mapping[str, Callable[[], Finding]]) -> ConformanceReport:
    """Run the steps in their order and report their findings. The first failed step ends the check."""
    checks, left_out = [], []
    for name, step in steps.items():
        try:
            with np.errstate(all="ignore"):
                finding = step()
        except NotApplicable as reason:
            left_out.append(f"{name}: {reason}")
            continue
        except (Violation, BanditTuneError) as error:
            raise make_conformance_error(kind, subject, name, str(error)) from error
        except Exception as error:
            raise make_conformance_error(kind, subject, name, f"{type(error).__name__}: {error}.") from error
        checks.append(
            ConformanceCheck(name=name, finding=finding.text, runs=finding.runs, detectable=finding.detectable)
        )
    return ConformanceReport(subject_kind=kind, subject=subject, checks=tuple(checks), left_out=tuple(left_out))


def make_conformance_error(kind: str, subject: str, step: str, evidence: str) -> ConformanceError:
    """Make the error of a failed step."""
    return ConformanceError(f"the {kind} {subject!r} fails the check {step!r}: {evidence}", check=step, argument=kind)


def check_description(record: Any, example: str) -> Finding:
    """Check that a record is frozen, can be hashed, and has a description in JSON from which it can be made again."""
    if isinstance(record, type):
        raise Violation(f"an object must be given, but {record.__name__} is a class; make one, such as {example}.")
    description = describe(record)
    try:
        decoded = json.loads(json.dumps(description, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise Violation(
            f"options must be numbers, strings and lists of them, so that results can contain them as JSON, but {error}; "
            "convert them in __post_init__, or leave a field out of the description: "
            "field(metadata={'described': False})."
        ) from error
    if decoded != description:
        raise Violation(
            f"the description must be the same after JSON, but {description!r:.200} became {decoded!r:.200}; use numbers, "
            "strings and lists of them as options."
        )
    if not type(record).__dataclass_params__.frozen:
        raise Violation(
            "records must be frozen, so that nothing changes them during a study; use @dataclass(frozen=True)."
        )
    try:
        hash(record)
    except TypeError as error:
        raise Violation(
            f"a record must have a hash, but {error}; use numbers, strings and tuples as options."
        ) from error
    if not description["name"]:
        raise Violation("a record must have a `name` for results, but it has none.")
    return Finding(f"frozen, has a hash, and is the same after JSON{_rebuild(record, decoded)}")


def _rebuild(record: Any, description: dict[str, Any]) -> str:
    """Make a record again from its options, unless some of them are functions."""
    options = [option for option in fields(record) if option.init]
    if any(option.metadata.get("described") is False for option in options):
        return ""
    arguments = {option.name: description[option.name] for option in options if option.name in description}
    try:
        rebuilt = type(record)(**arguments)
    except Exception as error:
        raise Violation(
            f"a record must be made from the options of its description, but {arguments!r:.200} gave "
            f"{type(error).__name__}: {error}; accept lists where an option is a tuple."
        ) from error
    if json.loads(json.dumps(describe(rebuilt))) != description:
        raise Violation(
            f"a record that is made from its description must have the same description, but {arguments!r:.200} became "
            f"{describe(rebuilt)!r:.200}; keep options unchanged, or convert them so that converting twice "
            "changes nothing."
        )
    return "; made again from it, it has the same description"


@contextmanager
def forbid_global_randomness(subject: str) -> Iterator[None]:
    """Raise an error if code draws from the global generators of Python or NumPy."""
    before = random.getstate(), _read_numpy_state()
    yield
    if before != (random.getstate(), _read_numpy_state()):
        raise Violation(
            f"{subject} must not draw from the global generators of a process, such as np.random.random() and "
            "random.random(), because results would depend on earlier calls; draw from the generator or stream that "
            "is passed."
        )


def _read_numpy_state() -> Any:
    state: Any = np.random.get_state(legacy=True)
    return state[0], state[1].tobytes(), *state[2:]


def describe_bits(first: Any, second: Any) -> str:
    """Describe the difference of two arrays: the number of different elements, and the first of them."""
    different = np.argwhere(first != second)
    index = tuple(int(number) for number in different[0])
    values = f"{float(first[index])!r} and {float(second[index])!r}"
    return f"{len(different)} of {first.size} regrets differ, first {values} at {index}"
