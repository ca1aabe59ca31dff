"""Problems as TOML files, which can be read, edited and passed to every command."""

from __future__ import annotations

import inspect
import json
import math
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from banditune.core.atomic_files import make_read_error, write_atomically
from banditune.core.checks import check_integer, decode_utf8
from banditune.core.descriptions import OWN_CODE_KEY, describe
from banditune.core.errors import InvalidRequest
from banditune.core.problem import Problem
from banditune.problems.problem_registry import PROBLEMS, build_problem, list_buildable_problems

PROBLEM_FILE_VERSION = 1


MAX_PROBLEM_FILE_BYTES = 1 << 25
"""The largest size of a problem file in bytes."""


class ProblemFile(NamedTuple):
    """A problem from a file: a distribution of problem instances and, if the file has it, a horizon.

    Parameters
    ----------
    problem : Problem
        The distribution of problem instances.
    horizon : int, optional
        Steps in a run, if the file gives them.
    """

    problem: Problem
    horizon: int | None = None


def save_problem(problem: Problem, path: str | Path, horizon: int | None = None, remarks: tuple[str, ...] = ()) -> None:
    """Write a problem as a TOML file that people can read and edit.

    Parameters
    ----------
    problem : Problem
        A problem of this package. A problem of your own is kept in its Python file.
    path : str or Path
        The file. An existing one is replaced.
    horizon : int, optional
        Steps in a run.
    remarks : tuple of str
        Comments at the top of the file.

    Raises
    ------
    InvalidRequest
        If the problem is your own, or the file cannot be written.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import banditune as bt
    >>> path = Path(tempfile.mkdtemp()) / "problem.toml"
    >>> bt.save_problem(bt.Bernoulli(arms=3), path, horizon=1000)
    >>> bt.load_problem(path).horizon
    1000
    """
    write_atomically(path, format_problem_file(problem, horizon, remarks).encode())


def format_problem_file(problem: Problem, horizon: int | None = None, remarks: tuple[str, ...] = ()) -> str:
    """Format a problem as TOML."""
    description = describe(problem)
    name = description.pop("name")
    if OWN_CODE_KEY in description or name not in PROBLEMS.names or not isinstance(PROBLEMS[name], type):
        raise InvalidRequest(
            f"only problems of this package can be written as TOML, but got {name!r}; keep its Python file.",
            argument="problem",
            code="unsupported",
        )
    lines = ["# A problem for: banditune tune --problem FILE"]
    lines += [f"# {line}" for remark in remarks for line in _make_printable(remark).splitlines()]
    lines += [f"banditune = {PROBLEM_FILE_VERSION}"]
    lines += [f"horizon = {horizon}"] if horizon is not None else []
    lines += ["", "[problem]", f"name = {_quote_toml(name)}"]
    defaults = {p.name: p.default for p in inspect.signature(PROBLEMS[name]).parameters.values()}
    lines += [
        f"{key} = {_format_toml(value)}"
        for key, value in description.items()
        if value is not None and value != defaults.get(key)
    ]
    return "\n".join(lines) + "\n"


def _make_printable(text: str) -> str:
    """Replace characters that are not allowed in a comment by spaces."""
    return "".join(mark if mark.isprintable() else " " for mark in text)


def _format_toml(value: Any) -> str:
    """Format a value as TOML. Each row of a matrix is on a separate line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return repr(value)
    if isinstance(value, str):
        return _quote_toml(value)
    if isinstance(value, list | tuple):
        nested = any(isinstance(item, list | tuple) for item in value)
        items = [_format_toml(item).replace("\n", "\n    ") for item in value]
        return "[\n" + "".join(f"    {item},\n" for item in items) + "]" if nested else f"[{', '.join(items)}]"
    raise InvalidRequest(
        f"a problem's options must be numbers, words and lists of them to be saved, but got {value!r}.",
        code="unsupported",
    )


def _quote_toml(text: str) -> str:
    """Format a string as TOML."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise InvalidRequest(
            f"names must be valid text, but got {text!r}.", argument="names", code="bad-data"
        ) from error
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def load_problem(path: str | Path) -> ProblemFile:
    """Read a problem from a TOML file, written by `save_problem` or by hand.

    The file cannot contain code or refer to another file.

    Parameters
    ----------
    path : str or Path
        The file.

    Returns
    -------
    ProblemFile
        The problem, and the horizon if the file gives one.

    Raises
    ------
    InvalidRequest
        If the file cannot be read, is too large, or does not describe a problem.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import banditune as bt
    >>> path = Path(tempfile.mkdtemp()) / "problem.toml"
    >>> lines = ["banditune = 1", "[problem]", 'name = "bernoulli"', "arms = 5", "prior = [[2, 8]]"]
    >>> _ = path.write_text("\\n".join(lines))
    >>> bt.load_problem(path).problem.arms
    5
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(MAX_PROBLEM_FILE_BYTES + 1)
        if len(data) > MAX_PROBLEM_FILE_BYTES:
            raise InvalidRequest(
                f"a problem file must be below {MAX_PROBLEM_FILE_BYTES >> 20} MiB, but {str(path)!r} is larger.",
                code="too-large",
            )
        return _parse_problem_file(tomllib.loads(decode_utf8(data, path)))
    except OSError as error:
        raise make_read_error("the problem file", path, error) from error
    except (tomllib.TOMLDecodeError, RecursionError, ValueError, OverflowError, MemoryError) as error:
        if isinstance(error, InvalidRequest):
            raise error.quote(f"in the problem file {str(path)!r}: ") from error
        raise InvalidRequest(
            f"the problem file {str(path)!r} must be TOML, but: {error}.", code="file-format"
        ) from error


def _parse_problem_file(content: Mapping[str, Any]) -> ProblemFile:
    """Make a problem from the content of a TOML file."""
    unknown = set(content) - {"banditune", "horizon", "problem"}
    if unknown:
        raise InvalidRequest(
            f"the file may contain banditune, horizon and [problem], but it contains {', '.join(sorted(unknown))}.",
            code="file-format",
        )
    if content.get("banditune") != PROBLEM_FILE_VERSION or isinstance(content.get("banditune"), bool):
        raise InvalidRequest(
            f"the file must begin with `banditune = {PROBLEM_FILE_VERSION}`, the version of its format, "
            f"but has {content.get('banditune')!r}.",
            code="schema-version",
        )
    table = content.get("problem")
    name = table.get("name") if isinstance(table, dict) else None
    known = list_buildable_problems()
    if not isinstance(table, dict) or not isinstance(name, str) or name not in known:
        raise InvalidRequest(
            f"[problem] must have one of the names {', '.join(known)}, but has {name!r}.", code="unknown-name"
        )
    horizon = content.get("horizon")
    options = {key: value for key, value in table.items() if key != "name"}
    parameters = inspect.signature(PROBLEMS[name]).parameters
    invalid = [key for key in options if key not in parameters] or [
        key for key, value in options.items() if not _is_plain(value)
    ]
    missing = [key for key, p in parameters.items() if p.default is inspect.Parameter.empty and key not in options]
    if invalid or missing:
        what = f"{invalid[0]!r} cannot be read" if invalid else f"{missing[0]!r} is missing"
        raise InvalidRequest(
            f"the options of the problem {name!r} are {', '.join(parameters)}, but {what}.", code="unknown-name"
        )
    return ProblemFile(
        build_problem({"name": name, **options}), None if horizon is None else check_integer("horizon", horizon, 1)
    )


def _is_plain(value: Any) -> bool:
    """Return whether a value consists only of numbers, strings and lists."""
    return all(isinstance(item, str | int | float) for item in _iterate_leaves(value))


def _iterate_leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for item in value:
            yield from _iterate_leaves(item)
    else:
        yield value
