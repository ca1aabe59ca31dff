"""What a policy, problem or tuner was made with, in words and ready for JSON: by this results know what was played."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import field, fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.errors import InvalidRequest
from banditune.core.scalar import is_package_code

OWN_CODE_KEY = "own code"
"""Names, in a description, the user's code of a record, which may bear a name of the shelf; no option is called so."""


def describe(record: Any) -> dict[str, Any]:
    """The name of a policy, problem or tuner and the options it was made with, ready for JSON."""
    if not is_dataclass(record):
        raise InvalidRequest(
            f"{type(record).__name__} must be a frozen dataclass, so that results can say what was played."
        )
    options = {f.name: convert_to_plain(getattr(record, f.name)) for f in fields(record) if _is_described(f, record)}
    own = find_own_code(record)
    return {"name": str(getattr(record, "name", "")), **options, **({OWN_CODE_KEY: own} if own else {})}


def find_own_code(record: Any) -> str | None:
    """Where a user's code stands, as FILE.py:NAME of a class or a function, or NAME alone; None if all code is ours."""
    functions = (getattr(record, f.name) for f in fields(record) if f.metadata.get("told") is False)
    for code in (type(record), *filter(callable, functions)):
        code = getattr(code, "py_func", code)
        if not is_package_code(code):
            code = code.func if isinstance(code, partial) else code
            name = str(getattr(code, "__name__", type(code).__name__))
            file = find_file_name(code)
            return f"{file}:{name}" if file else name
    return None


def find_file_name(code: Any) -> str | None:
    """The name of the file that a class or a function stands in; None for a notebook, a prompt and what has none."""
    module = sys.modules.get(getattr(code, "__module__", None) or "")
    function = getattr(code, "__code__", None)
    path = Path(function.co_filename if function else getattr(module, "__file__", None) or "")
    return path.name if path.is_file() else None


def make_undescribed_field(default: Any = None) -> Any:
    """A field that does not describe the record (functions, derived values)."""
    return field(default=default, metadata={"told": False}, repr=False)


def _is_described(option: Any, record: Any) -> bool:
    """Whether an option belongs to the description: its `told` says so, or a function of the record."""
    told = option.metadata.get("told", True)
    return bool(told(record) if callable(told) else told)


def make_label(record: Any, hidden: Sequence[str] = ()) -> str:
    """The name, with the options that are not the usual ones, but for those that are `hidden`: ucb1(noise=1)."""
    told = describe(record)
    usual = {f.name: convert_to_plain(f.default) for f in fields(record)}
    hidden = ("name", OWN_CODE_KEY, *hidden)
    options = ", ".join(
        f"{key}={shorten_value(value)}" for key, value in told.items() if key not in hidden and value != usual[key]
    )
    return f"{record.name}({options})" if options else str(record.name)


def shorten_value(value: Any) -> str:
    """A value in a few words: (0, 1); a list of one list as that list; of large matrices and long lists the size."""
    if not isinstance(value, list | tuple):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if len(value) == 1 and isinstance(value[0], list | tuple):
        return shorten_value(value[0])
    if len(value) > 2 and any(
        isinstance(row, list | tuple) and row and isinstance(row[0], list | tuple) for row in value
    ):
        return f"{len(value)} tables"
    rows = {len(row) if isinstance(row, list | tuple) else 0 for row in value}
    if len(rows) == 1 and 0 not in rows and len(value) * max(rows) > 8:
        return f"{len(value)} x {max(rows)}"
    if rows == {0} and len(value) > 8:
        return f"{len(value)} numbers"
    return f"({', '.join(shorten_value(item) for item in value)})"


def convert_to_plain(value: Any) -> Any:
    """Tuples, arrays and NumPy numbers as lists and numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [convert_to_plain(item) for item in value]
    return value
