"""What all results are: frozen records that go to JSON and back without loss."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.atomic_files import write_atomically
from banditune.core.descriptions import convert_to_plain
from banditune.core.errors import InvalidRequest

RECORD_TYPES: dict[str, type] = {}
"""Records that can be read back, by name."""


INFINITY_WORDS = ("-infinity", "infinity")
"""How open ends of intervals are written."""


NON_FINITE_VALUES = {None: math.nan, INFINITY_WORDS[0]: -math.inf, INFINITY_WORDS[1]: math.inf}
"""JSON's words for what it has no number for; the standard error of a single run is null."""


DEPLOYED_STATE_FORMAT = "banditune live state"
"""The `format` of a deployed policy's state, which is no result but is easily taken for one."""


RecordType = TypeVar("RecordType", bound=type)


def register_record(kind: RecordType) -> RecordType:
    """A record that can be read back."""
    RECORD_TYPES[kind.__name__] = kind
    return kind


class ResultRecord:
    """JSON out and in; equality is that of the JSON."""

    def to_json(self, indent: int | None = None) -> str:
        """The record as one JSON object; numbers keep every bit."""
        return json.dumps(encode_value(self), indent=indent, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file, whole or not at all."""
        write_atomically(path, (self.to_json(indent=1) + "\n").encode())

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

        return str(banditune.reports.format_text(self))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and encode_value(self) == encode_value(other)

    def __hash__(self) -> int:
        return hash(self.to_json())


def encode_value(value: Any) -> Any:
    """Records as objects with their kind, arrays and tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {f.name: encode_value(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Mapping):
        return {key: encode_value(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [encode_value(item) for item in value]
    if isinstance(value, np.ndarray):
        return encode_value(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else INFINITY_WORDS[value > 0]
    return convert_to_plain(value)


def decode_record(value: Any) -> Any:
    """The inverse of `encode_value` for a record: an object with its kind."""
    kind = RECORD_TYPES.get(str(value["kind"]))
    if kind is None:
        raise InvalidRequest(f"a result must be one of {sorted(RECORD_TYPES)}, but got {value['kind']!r}.")
    # What a result did not have yet when it was saved.
    usual = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    usual |= {f.name: f.default_factory() for f in fields(kind) if f.default_factory is not MISSING}
    told = {key: item for key, item in value.items() if key != "kind"}
    wanted = [f.name for f in fields(kind)]
    if sorted(wanted) != sorted(usual | told):
        raise InvalidRequest(f"a {kind.__name__} must hold the fields {wanted}, but got {sorted(usual | told)}.")
    types = _get_field_types(kind)
    for f in fields(kind):
        if f.name in told:
            try:
                told[f.name] = convert_to_type(types[f.name], told[f.name])
            except TypeError as error:
                raise InvalidRequest(
                    f"the field {f.name!r} of a {kind.__name__} must be of type {f.type}, but got {told[f.name]!r:.60}."
                ) from error
    return kind(**(usual | told))


@lru_cache(maxsize=64)
def _get_field_types(kind: type) -> dict[str, Any]:
    """The types of a record's fields."""
    return get_type_hints(kind)


def convert_to_type(wanted: Any, value: Any) -> Any:
    """What `encode_value` made into JSON, as the type that it had; a `TypeError` where it cannot have been that."""
    inner = get_args(wanted)
    if NoneType in inner:
        (other,) = (one for one in inner if one is not NoneType)
        return None if value is None else convert_to_type(other, value)
    if wanted == FloatArray:
        return freeze_floats([convert_to_type(float, item) for item in _check_type(list, value)])
    if wanted is float:
        return NON_FINITE_VALUES[value] if value in NON_FINITE_VALUES else _check_type(int | float, value)
    if get_origin(wanted) is tuple:
        return tuple(convert_to_type(inner[0], item) for item in _check_type(list, value))
    if get_origin(wanted) is Mapping:
        return {key: convert_to_type(inner[1], item) for key, item in _check_type(dict, value).items()}
    if wanted is Any:
        return freeze_plain_data(value)
    if wanted in RECORD_TYPES.values():
        if _check_type(dict, value).get("kind") != wanted.__name__:
            raise TypeError
        return decode_record(value)
    return _check_type(wanted, value)


def _check_type(wanted: Any, value: Any) -> Any:
    """A value of that type; to JSON, unlike Python, true is no number."""
    if not isinstance(value, wanted) or (isinstance(value, bool) and wanted is not bool):
        raise TypeError
    return value


def freeze_plain_data(value: Any) -> Any:
    """Numbers, words, and mappings and tuples of them, out of what `encode_value` made of these."""
    if isinstance(value, list):
        return tuple(map(freeze_plain_data, value))
    return {key: freeze_plain_data(item) for key, item in value.items()} if isinstance(value, dict) else value


def freeze_floats(numbers: Any) -> FloatArray:
    """A read-only array of floats."""
    array = np.array(numbers, np.float64)
    array.setflags(write=False)
    return array


def from_json(text: str) -> Any:
    """Read a result that `to_json` wrote."""
    try:
        told = json.loads(text)
        if isinstance(told, dict) and told.get("format") == DEPLOYED_STATE_FORMAT:
            raise InvalidRequest(
                "a result must be given, but this is the state of a deployed policy; `banditune live show` and "
                "Live.load(path) read it."
            )
        if not isinstance(told, dict) or "kind" not in told:
            raise InvalidRequest(
                "a result must be a JSON object with a `kind`, as `to_json` writes it, but this has none."
            )
        return decode_record(told)
    except (json.JSONDecodeError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(f"a result must be JSON as `to_json` writes it, but: {error}.") from error


def load_result(path: str | Path) -> Any:
    """Read a result from a file that `save` wrote."""
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidRequest(f"the result file {str(path)!r} cannot be read: {why}.") from error
    try:
        return from_json(text)
    except InvalidRequest as error:
        raise InvalidRequest(f"in the result file {str(path)!r}: {error}") from error


def make_data_frame(columns: Mapping[str, Any]) -> Any:
    """A pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise InvalidRequest('to_pandas() needs pandas; install it with: pip install "banditune[pandas]"') from error
    return pandas.DataFrame(dict(columns))
