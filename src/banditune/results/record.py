"""What all results are: frozen records that go to JSON and back without loss."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from banditune.contracts import BadRequest, Floats
from banditune.descriptions import plain
from banditune.results.files import write_whole

KINDS: dict[str, type] = {}
"""Records that can be read back, by name."""

INFINITE = ("-infinity", "infinity")
"""How open ends of intervals are written."""

LIVE_STATE = "banditune live state"
"""The `format` of a deployed policy's state, which is no result but is easily taken for one."""

Kind = TypeVar("Kind", bound=type)


def kept(kind: Kind) -> Kind:
    """A record that can be read back."""
    KINDS[kind.__name__] = kind
    return kind


class Record:
    """JSON out and in; equality is that of the JSON."""

    def to_json(self, indent: int | None = None) -> str:
        """The record as one JSON object; numbers keep every bit."""
        return json.dumps(encoded(self), indent=indent, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file, whole or not at all."""
        write_whole(path, (self.to_json(indent=1) + "\n").encode())

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the result with matplotlib; returns the figure, or writes it to a file."""
        import banditune  # through the front door: records know nothing of drawing

        return banditune.plot(self, path)

    def report(self, path: str | Path) -> Any:
        """Write the result as a report, one HTML file; returns the path."""
        import banditune

        return banditune.report(self, path)

    def __repr__(self) -> str:
        import banditune

        return str(banditune.text(self))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and encoded(self) == encoded(other)

    def __hash__(self) -> int:
        return hash(self.to_json())


def encoded(value: Any) -> Any:
    """Records as objects with their kind, arrays and tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {f.name: encoded(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: encoded(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encoded(item) for item in value]
    if isinstance(value, np.ndarray):
        return encoded(value.tolist())
    # JSON has no NaN and no infinity: the standard error of a single run is null, an open end a word.
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else INFINITE[value > 0]
    return plain(value)


def decoded(value: Any) -> Any:
    """The inverse of `encoded`."""
    if isinstance(value, list):
        return tuple(decoded(item) for item in value)
    if not isinstance(value, dict):
        return value
    if "kind" not in value:
        return {key: decoded(item) for key, item in value.items()}
    kind = KINDS.get(str(value["kind"]))
    if kind is None:
        raise BadRequest(f"a result must be one of {sorted(KINDS)}, but got {value['kind']!r}.")
    wanted = [f.name for f in fields(kind)]
    # A mapping holds a user's names, of which one may be "kind": there are no records in it.
    mappings = {f.name for f in fields(kind) if str(f.type).startswith("Mapping")}
    # What a result did not have yet when it was saved.
    usual = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    told = {key: item for key, item in value.items() if key != "kind"}
    given = usual | {key: plain_data(item) if key in mappings else decoded(item) for key, item in told.items()}
    if sorted(wanted) != sorted(given):
        raise BadRequest(f"a {kind.__name__} must hold the fields {wanted}, but got {sorted(given)}.")
    for f in fields(kind):
        _check_type(kind, f.name, str(f.type), given[f.name])
        if f.type == "Floats":
            given[f.name] = frozen([math.nan if number is None else number for number in given[f.name]])
        elif f.type == "float" and given[f.name] is None:
            given[f.name] = math.nan
        elif f.type == "float" and given[f.name] in INFINITE:
            given[f.name] = math.inf if INFINITE.index(given[f.name]) else -math.inf
    return kind(**given)


def plain_data(value: Any) -> Any:
    """Numbers, words, and mappings and tuples of them, out of what `encoded` made of these."""
    if isinstance(value, list):
        return tuple(map(plain_data, value))
    return {key: plain_data(item) for key, item in value.items()} if isinstance(value, dict) else value


def _check_type(kind: type, name: str, wanted: str, value: Any) -> None:
    """A field of the type that the record declares."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    good = {
        "int": isinstance(value, int) and not isinstance(value, bool),
        "float": number or value is None or value in INFINITE,
        "str": isinstance(value, str),
        "bool": isinstance(value, bool),
        "Floats": isinstance(value, tuple) and all(isinstance(item, int | float | None) for item in value),
    }
    if wanted.endswith(" | None"):
        if value is None:
            return
        wanted = wanted.removesuffix(" | None")
    good |= dict.fromkeys(("tuple[float, ...]", "tuple[int, ...]", "tuple[str, ...]"), isinstance(value, tuple))
    if wanted.startswith("Mapping"):
        good[wanted] = isinstance(value, dict)
    record = KINDS.get(wanted)
    if not good.get(wanted, record is None or isinstance(value, record)):
        raise BadRequest(f"the field {name!r} of a {kind.__name__} must be of type {wanted}, but got {value!r:.60}.")


def frozen(numbers: Any) -> Floats:
    """A read-only array of floats."""
    array = np.array(numbers, np.float64)
    array.setflags(write=False)
    return array


def from_json(text: str) -> Any:
    """Read a result that `to_json` wrote."""
    try:
        told = json.loads(text)
        if isinstance(told, dict) and told.get("format") == LIVE_STATE:
            raise BadRequest(
                "a result must be given, but this is the state of a deployed policy; `banditune live show` and "
                "Live.load(path) read it."
            )
        if not isinstance(told, dict) or "kind" not in told:
            raise BadRequest("a result must be a JSON object with a `kind`, as `to_json` writes it, but this has none.")
        return decoded(told)
    except (json.JSONDecodeError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, BadRequest):
            raise
        raise BadRequest(f"a result must be JSON as `to_json` writes it, but: {error}.") from error


def load(path: str | Path) -> Any:
    """Read a result from a file that `save` wrote."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadRequest(f"the result file {str(path)!r} cannot be read: {why}.") from error
    try:
        return from_json(text)
    except BadRequest as error:
        raise BadRequest(f"in the result file {str(path)!r}: {error}") from error


def frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise BadRequest('to_pandas() needs pandas; install it with: pip install "banditune[pandas]"') from error
    return pandas.DataFrame(dict(columns))
