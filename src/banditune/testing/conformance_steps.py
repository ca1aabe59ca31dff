"""What all checks of a user's own objects share: steps, their findings, and the error where one fails."""

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
    """A contract is broken. The message says what must hold, what was seen, and the way out."""


class NotApplicable(Exception):
    """A check does not apply. The message says why."""


class Finding(NamedTuple):
    """What a step compared and found, with the number of runs and the smallest deviation that it would have seen."""

    text: str
    runs: int = 0
    detectable: float | None = None


def run_steps(kind: str, subject: str, steps: Mapping[str, Callable[[], Finding]]) -> ConformanceReport:
    """Run the steps in their order and report what they found. The first one that fails ends the check."""
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
    """Make the error of a step that failed."""
    return ConformanceError(f"the {kind} {subject!r} fails the check {step!r}: {evidence}", check=step, argument=kind)


def check_description(record: Any, example: str) -> Finding:
    """Check that a record is frozen, can be hashed, and is described by JSON from which it can be made again."""
    if isinstance(record, type):
        raise Violation(f"an object must be given, but {record.__name__} is a class; make one, such as {example}.")
    description = describe(record)
    try:
        decoded = json.loads(json.dumps(description, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise Violation(
            f"options must be numbers, words and lists of them, so that results can hold them as JSON, but {error}; "
            "convert them in __post_init__, or leave a field out of the description: "
            "field(metadata={'described': False})."
        ) from error
    if decoded != description:
        raise Violation(
            f"the description must be the same after JSON, but {description!r:.200} became {decoded!r:.200}; use numbers, "
            "words and lists of them as options."
        )
    if not type(record).__dataclass_params__.frozen:
        raise Violation(
            "records must be frozen, so that nothing changes them during a study; use @dataclass(frozen=True)."
        )
    try:
        hash(record)
    except TypeError as error:
        raise Violation(
            f"a record must have a hash, but {error}; keep options as numbers, words and tuples."
        ) from error
    if not description["name"]:
        raise Violation("a record must have a `name`, which results show, but it has none.")
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
            f"{describe(rebuilt)!r:.200}; keep options as they are given, or convert them so that converting twice "
            "changes nothing."
        )
    return "; made again from it, it has the same description"


@contextmanager
def forbid_global_randomness(subject: str) -> Iterator[None]:
    """Raise where code draws from the global generators of Python or NumPy."""
    before = random.getstate(), _read_numpy_state()
    yield
    if before != (random.getstate(), _read_numpy_state()):
        raise Violation(
            f"{subject} must not draw from the generators that a whole process shares, such as np.random.random() and "
            "random.random(), because results would depend on what ran before; draw from the generator or stream that "
            "is passed."
        )


def _read_numpy_state() -> Any:
    state: Any = np.random.get_state(legacy=True)
    return state[0], state[1].tobytes(), *state[2:]


def describe_bits(first: Any, second: Any) -> str:
    """Describe how two arrays differ: how many numbers do, and the first of them."""
    different = np.argwhere(first != second)
    index = tuple(int(number) for number in different[0])
    values = f"{float(first[index])!r} and {float(second[index])!r}"
    return f"{len(different)} of {first.size} regrets differ, first {values} at {index}"
