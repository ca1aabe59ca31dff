"""Describes policies, problems and tuners for JSON, so that results contain all settings."""

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
"""The key of the user's code in a description. No option has this name."""


def describe(record: Any) -> dict[str, Any]:
    """Return the name and the options of a policy, problem or tuner, ready for JSON."""
    if not is_dataclass(record):
        raise InvalidRequest(
            f"{type(record).__name__} must be a frozen dataclass, so that results can contain its options.",
            code="own-code",
        )
    options = {f.name: convert_to_plain(getattr(record, f.name)) for f in fields(record) if _is_described(f, record)}
    own_code = find_own_code(record)
    return {"name": str(getattr(record, "name", "")), **options, **({OWN_CODE_KEY: own_code} if own_code else {})}


def find_own_code(record: Any) -> str | None:
    """Locate a user's code as FILE.py:NAME of a class or a function, or NAME alone.

    Return None if all code belongs to this package.
    """
    functions = (getattr(record, f.name) for f in fields(record) if f.metadata.get("described") is False)
    for code in (type(record), *filter(callable, functions)):
        code = getattr(code, "py_func", code)
        if not is_package_code(code):
            code = code.func if isinstance(code, partial) else code
            name = str(getattr(code, "__name__", type(code).__name__))
            file = find_file_name(code)
            return f"{file}:{name}" if file else name
    return None


def find_source(record: Any) -> str | None:
    """Locate a user's record as PATH.py:NAME of a variable or a class; return None if there is none.

    The variable may be the record before options were taken from a problem. In this case, type and code are the same.
    """
    own_code = find_own_code(record)
    if own_code is None:
        return None
    code = [getattr(getattr(record, f.name), "py_func", getattr(record, f.name)) for f in fields(record)]
    module_names = {getattr(value, "__module__", None) for value in (type(record), *filter(callable, code))}
    for module in filter(None, (sys.modules.get(name or "") for name in module_names)):
        path = Path(getattr(module, "__file__", None) or "")
        if not path.is_file() or module.__name__.partition(".")[0] == "banditune":
            continue
        for is_match in (_is_same_record, _is_same_class, _has_same_code):
            name = next((name for name, value in vars(module).items() if is_match(value, record)), None)
            if name is not None:
                return f"{path.resolve()}:{name}"
    return None


def _is_same_record(value: Any, record: Any) -> bool:
    return type(value) is type(record) and describe(value) == describe(record)


def _is_same_class(value: Any, record: Any) -> bool:
    return value is type(record)


def _has_same_code(value: Any, record: Any) -> bool:
    return type(value) is type(record) and find_own_code(value) == find_own_code(record)


def find_file_name(code: Any) -> str | None:
    """Return the name of the file that defines a class or a function; None in a notebook or at a prompt."""
    module = sys.modules.get(getattr(code, "__module__", None) or "")
    function = getattr(code, "__code__", None)
    path = Path(function.co_filename if function else getattr(module, "__file__", None) or "")
    return path.name if path.is_file() else None


def make_undescribed_field(default: Any = None) -> Any:
    """Make a field that is not part of the description, such as a function or a derived value."""
    return field(default=default, metadata={"described": False}, repr=False)


def _is_described(option: Any, record: Any) -> bool:
    """Return whether an option belongs to the description. Its `described` is a flag, or a function of the record."""
    described = option.metadata.get("described", True)
    return bool(described(record) if callable(described) else described)


def make_label(record: Any, hidden: Sequence[str] = ()) -> str:
    """Return the name with the options that differ from their defaults, without `hidden` ones: ucb1(noise=1)."""
    description = describe(record)
    defaults = {f.name: convert_to_plain(f.default) for f in fields(record)}
    hidden = ("name", OWN_CODE_KEY, *hidden)
    options = ", ".join(
        f"{key}={shorten_value(value)}"
        for key, value in description.items()
        if key not in hidden and value != defaults[key]
    )
    return f"{record.name}({options})" if options else str(record.name)


def shorten_value(value: Any, *, inner: bool = False) -> str:
    """Format a value briefly: (0, 1).

    A list of one list is shown as that list. A large matrix, a long list, and a matrix within a tuple, such as a
    covariance, are shown by their size.
    """
    if not isinstance(value, list | tuple):
        return f"{value:g}" if isinstance(value, float) else str(value)
    if len(value) == 1 and isinstance(value[0], list | tuple):
        return shorten_value(value[0])
    if len(value) > 2 and any(
        isinstance(row, list | tuple) and row and isinstance(row[0], list | tuple) for row in value
    ):
        return f"{len(value)} tables"
    rows = {len(row) if isinstance(row, list | tuple) else 0 for row in value}
    if len(rows) == 1 and 0 not in rows and (inner or len(value) * max(rows) > 8):
        return f"{len(value)} x {max(rows)}"
    if rows == {0} and len(value) > 8:
        return f"{len(value)} numbers"
    return f"({', '.join(shorten_value(item, inner=True) for item in value)})"


def convert_to_plain(value: Any) -> Any:
    """Convert tuples, arrays and NumPy numbers to lists and numbers."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [convert_to_plain(item) for item in value]
    return value
