"""The base of all results: frozen records that are written to JSON and read back without loss."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from types import NoneType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.atomic_files import make_read_error, write_atomically
from banditune.core.descriptions import convert_to_plain
from banditune.core.errors import InvalidRequest, MissingDependency
from banditune.core.notice import Notice

RECORD_TYPES: dict[str, type] = {}
"""The record types that can be read back, by name."""

RECORD_MODULES = (
    "comparison_results",
    "conformance_results",
    "estimates",
    "exact_results",
    "log_results",
    "over_time_results",
    "paper_results",
    "robustness_results",
    "search_results",
    "store_results",
    "study_setup",
    "tuning_results",
)
"""The modules that define record types; they are imported before a record is read."""


INFINITY_WORDS = ("-infinity", "infinity")
"""The strings that stand for infinite numbers in JSON."""


NON_FINITE_VALUES = {None: math.nan, INFINITY_WORDS[0]: -math.inf, INFINITY_WORDS[1]: math.inf}
"""How JSON holds numbers that are not finite. NaN, such as the standard error of a single run, is null."""


DEPLOYED_STATE_FORMAT = "banditune deployed state"
"""The `format` of a deployed policy's state, which is often passed as a result by mistake."""


RecordType = TypeVar("RecordType", bound=type)


def register_record(kind: RecordType) -> RecordType:
    """Register a record type, so that it can be read back from JSON."""
    RECORD_TYPES[kind.__name__] = kind
    return kind


SCHEMA_VERSION = 1
"""The version of the JSON of results. It is increased when a field changes its name or meaning."""


class ResultRecord:
    """A result: a frozen record that can be saved, plotted and reported.

    Two results are equal if their JSON is.
    """

    def to_json(self, indent: int | None = None) -> str:
        """Return the result as one JSON object with a schema version.

        Parameters
        ----------
        indent : int, optional
            Spaces per level; everything is on one line by default.

        Returns
        -------
        str
            The JSON. Numbers keep every bit.
        """
        return json.dumps({"schema_version": SCHEMA_VERSION} | encode_value(self), indent=indent, allow_nan=False)

    def save(self, path: str | Path) -> None:
        """Write the JSON to a file, completely or not at all. `bt.load_result` reads it.

        Parameters
        ----------
        path : str or Path
            The file. An existing one is replaced.

        Raises
        ------
        InvalidRequest
            If the file cannot be written.
        """
        write_atomically(path, (self.to_json(indent=1) + "\n").encode())

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Draw the result with matplotlib; see `bt.plot`.

        Parameters
        ----------
        path : str or Path, optional
            A file that ends in .svg, .png or .pdf.
        **options : object
            `ax`, `labels`, `xscale` and `size` of `bt.plot`.

        Returns
        -------
        matplotlib.figure.Figure, matplotlib.axes.Axes, str or Path
            The path if there is one, the axes if there are some, else the figure.

        Raises
        ------
        InvalidRequest
            If the result has no figure, an option does not fit, or the file cannot be written.
        """
        import banditune  # through the public API: records do not depend on plots and reports

        return banditune.plot(self, path, **options)

    def report(self, path: str | Path) -> Any:
        """Write the result as a report, one HTML file; see `bt.report`.

        Parameters
        ----------
        path : str or Path
            A file that ends in .html or .htm.

        Returns
        -------
        str or Path
            The path.

        Raises
        ------
        InvalidRequest
            If the result cannot be reported, or the file cannot be written.
        """
        import banditune

        return banditune.report(self, path)

    def to_latex(self, caption: str = "", label: str = "") -> str:
        """Return the result as a LaTeX table; see `reports.format_latex`.

        Parameters
        ----------
        caption : str
            The caption, in LaTeX. With a caption or a label, the table is in a `table` environment.
        label : str
            The label for `\\ref`.

        Returns
        -------
        str
            A `tabular` that needs no package. An estimate by itself is a formula, as in `$43.4 \\pm 2.8$`.

        Raises
        ------
        InvalidRequest
            If the result has no table, or caption or label do not fit.
        """
        import banditune

        return str(banditune.reports.format_latex(self, caption=caption, label=label))

    def __repr__(self) -> str:
        import banditune

        return str(banditune.reports.format_text(self))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and encode_value(self) == encode_value(other)

    def __hash__(self) -> int:
        return hash(self.to_json())

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows."""
        import banditune

        return str(banditune.reports.render_notebook(self))


def encode_value(value: Any) -> Any:
    """Encode a value for JSON: records as objects with their kind, arrays and tuples as lists."""
    if is_dataclass(value) and not isinstance(value, type):
        return {"kind": type(value).__name__} | {f.name: encode_value(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Notice):
        return value.to_plain()
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
    """Decode a record from an object with its kind; the inverse of `encode_value`."""
    _import_record_types()
    kind = RECORD_TYPES.get(str(value["kind"]))
    if kind is None:
        raise InvalidRequest(
            f"a result must be one of {sorted(RECORD_TYPES)}, but got {value['kind']!r}.", code="unknown-name"
        )
    # Older saved results lack some fields.
    defaults = {f.name: f.default for f in fields(kind) if f.default is not MISSING}
    defaults |= {f.name: f.default_factory() for f in fields(kind) if f.default_factory is not MISSING}
    data = {key: item for key, item in value.items() if key != "kind"}
    names = [f.name for f in fields(kind)]
    if sorted(names) != sorted(defaults | data):
        raise InvalidRequest(
            f"a {kind.__name__} must have the fields {names}, but got {sorted(defaults | data)}.", code="file-format"
        )
    types = _get_field_types(kind)
    for f in fields(kind):
        if f.name in data:
            try:
                data[f.name] = convert_to_type(types[f.name], data[f.name])
            except TypeError as error:
                raise InvalidRequest(
                    f"the field {f.name!r} of a {kind.__name__} must be of type {f.type}, but got {data[f.name]!r:.60}.",
                    code="bad-data",
                ) from error
    return kind(**(defaults | data))


@lru_cache(maxsize=1)
def _import_record_types() -> None:
    """Import every module with records, which registers them."""
    for name in RECORD_MODULES:
        import_module(f"{__package__}.{name}")


@lru_cache(maxsize=64)
def _get_field_types(kind: type) -> dict[str, Any]:
    """Return the types of a record's fields."""
    return get_type_hints(kind)


def convert_to_type(kind: Any, value: Any) -> Any:
    """Convert a value of JSON to the type that it had before `encode_value`, or raise `TypeError`."""
    members = get_args(kind)
    if NoneType in members:
        (member,) = (candidate for candidate in members if candidate is not NoneType)
        return None if value is None else convert_to_type(member, value)
    if kind == FloatArray:
        return _decode_floats(_check_type(list, value))
    if kind is float:
        return NON_FINITE_VALUES[value] if value in NON_FINITE_VALUES else _check_type(int | float, value)
    if get_origin(kind) is tuple:
        return tuple(convert_to_type(members[0], item) for item in _check_type(list, value))
    if get_origin(kind) is Mapping:
        return {key: convert_to_type(members[1], item) for key, item in _check_type(dict, value).items()}
    if kind is Any:
        return freeze_plain_data(value)
    if kind is Notice:
        return _decode_notice(value)
    if kind in RECORD_TYPES.values():
        if _check_type(dict, value).get("kind") != kind.__name__:
            raise TypeError
        return decode_record(value)
    return _check_type(kind, value)


def _decode_floats(values: list[Any]) -> FloatArray:
    """Decode an array: numbers, or rows of as many numbers each."""
    kind = FloatArray if values and isinstance(values[0], list) else float
    rows = [convert_to_type(kind, item) for item in values]
    if kind is not float and len({len(row) for row in rows}) > 1:
        raise TypeError
    return freeze_floats(rows)


def _decode_notice(value: Any) -> Notice:
    """Decode a notice."""
    if set(_check_type(dict, value)) != {"code", "message", "advice"}:
        raise TypeError
    try:
        return Notice(*(_check_type(str, value[name]) for name in ("message", "code", "advice")))
    except ValueError as error:
        raise TypeError from error


def _check_type(kind: Any, value: Any) -> Any:
    """Return the value if it is of this type, else raise `TypeError`. In JSON, unlike Python, true is no number."""
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise TypeError
    return value


def freeze_plain_data(value: Any) -> Any:
    """Convert the lists in plain data to tuples."""
    if isinstance(value, list):
        return tuple(map(freeze_plain_data, value))
    return {key: freeze_plain_data(item) for key, item in value.items()} if isinstance(value, dict) else value


def freeze_floats(numbers: Any) -> FloatArray:
    """Return a read-only array of floats."""
    array = np.array(numbers, np.float64)
    array.setflags(write=False)
    return array


def check_schema_version(version: Any) -> None:
    """Refuse results of another schema than this package writes."""
    if version != SCHEMA_VERSION:
        raise InvalidRequest(
            f"a result must have `schema_version` {SCHEMA_VERSION}, but this one has {version!r}: another version of "
            "banditune wrote it. Make the request again, or read the result with that version.",
            code="schema-version",
        )


def from_json(text: str) -> Any:
    """Read a result from the JSON that `to_json` returned.

    Parameters
    ----------
    text : str
        The JSON.

    Returns
    -------
    ResultRecord
        The result, equal to the one that was written.

    Raises
    ------
    InvalidRequest
        If the text is no result, or one with another schema version. The latter has the code "schema-version".

    Examples
    --------
    >>> import banditune as bt
    >>> estimate = bt.results.Estimate.from_standard_error(2.0, 0.1, 100)
    >>> bt.results.from_json(estimate.to_json()) == estimate
    True
    """
    try:
        data = json.loads(text)
        if isinstance(data, dict) and data.get("format") == DEPLOYED_STATE_FORMAT:
            raise InvalidRequest(
                "a result must be given, but this is the state of a deployed policy; `banditune deployed show` and "
                "DeployedPolicy.load(path) read it.",
                code="wrong-type",
            )
        if not isinstance(data, dict) or "kind" not in data:
            raise InvalidRequest(
                "a result must be a JSON object with a `kind`, as `to_json` writes it, but this has none.",
                code="file-format",
            )
        check_schema_version(data.pop("schema_version", None))
        return decode_record(data)
    except (json.JSONDecodeError, TypeError, ValueError, RecursionError) as error:
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(
            f"a result must be JSON as `to_json` writes it, but: {error}.", code="file-format"
        ) from error


def load_result(path: str | Path) -> Any:
    """Read a result from a file that `save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    ResultRecord
        The result, equal to the one that was saved.

    Raises
    ------
    InvalidRequest
        If the file cannot be read, is no result, or has another schema version.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import banditune as bt
    >>> logs = bt.make_logs(["may", "may", "june", "june"], ["red", "blue"] * 2, [10, 20, 30, 40], [1, 5, 6, 20])
    >>> fitted, path = bt.fit(logs), Path(tempfile.mkdtemp()) / "fit.json"
    >>> fitted.save(path)
    >>> bt.load_result(path) == fitted
    True
    """
    try:
        text = Path(path).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise make_read_error("the result file", path, error) from error
    try:
        return from_json(text)
    except InvalidRequest as error:
        raise error.quote(f"in the result file {str(path)!r}: ") from error


def make_data_frame(columns: Mapping[str, Any]) -> Any:
    """Make a pandas data frame."""
    try:
        import pandas
    except ImportError as error:
        raise MissingDependency('to_pandas() needs pandas; install it with: pip install "banditune[pandas]"') from error
    return pandas.DataFrame(dict(columns))
