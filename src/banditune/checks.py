"""Checks of what records are made with, shared by problems and policies."""

from __future__ import annotations

import dis
import inspect
import math
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from banditune.contracts import PROBLEM, BadRequest, Floats
from banditune.descriptions import plain


def array_of(value: Any) -> Floats:
    """Numbers as an array; an empty one if they are not numbers in rows of equal length."""
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        return np.empty(0)


def utf8(data: bytes, path: Any) -> str:
    """Text out of a file's bytes; what is no UTF-8 is named by its line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadRequest(f"{str(path)!r} must be UTF-8 text, but line {line} is not; {in_utf8(data)}.") from error


def in_utf8(data: bytes = b"") -> str:
    """How a file in another encoding becomes one in UTF-8: UTF-16 says what it is, all else is most often Latin-1."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"
    return f"write the file in UTF-8, for example by: iconv -f {encoding} -t utf-8 FILE > NEW"


def whole_in(value: Any) -> int | None:
    """The whole number that a value is, 10 or 1e4; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | np.integer) or (isinstance(value, float | np.floating) and value.is_integer()):
        return int(value)
    return None


def number_in(value: Any) -> float:
    """The number that a value is; NaN if it is none, infinity if no float is so large."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_whole(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number that is not too small, and not too large; 1e4 will do."""
    found = whole_in(value)
    if found is None or found < least:
        raise BadRequest(f"`{name}` must be a whole number >= {least}, but got {name}={value!r}.")
    if most is not None and found > most:
        raise BadRequest(f"`{name} <= {most}` must hold, but got {name}={value!r}.")
    return found


def is_open(value: Any) -> bool:
    """Whether an option of a policy is yet to be taken from the problem."""
    return isinstance(value, str) and value == PROBLEM


def open_options(policy: Any) -> list[str]:
    """The options of a policy that are yet to be taken from the problem."""
    found = fields(policy) if is_dataclass(policy) else ()
    return [option.name for option in found if option.init and is_open(getattr(policy, option.name))]


def check_arms(arms: Any) -> int:
    """A number of arms: a whole number, 2 or more."""
    return check_whole("arms", arms, 2, 100_000)


def check_dims(dims: Any, least: int = 1) -> int:
    """A number of features: a whole number that is not too large for a matrix of that size."""
    found = whole_in(dims)
    if found is None or not least <= found <= 1000:
        raise BadRequest(f"`{least} <= dims <= 1000` must hold, as a whole number, but got dims={dims!r}.")
    return found


def check_names(names: Any, arms: int) -> tuple[str, ...]:
    """Arm names: none, or a distinct one for each arm."""
    words = tuple(str(name) for name in names) if isinstance(names, list | tuple) else (str(names),)
    if words and (len(words) != arms or len(set(words)) != arms or not all(words)):
        raise BadRequest(f"`names` must hold {arms} different names, one per arm, but got {list(words)}.")
    return words


def pairs(prior: Any, arms: int, *, first: str, second: str, first_positive: bool) -> tuple[tuple[float, float], ...]:
    """A prior as one pair for all arms (a tuple of length 1) or one pair per arm."""
    table = array_of(prior)
    if table.shape == (2,):
        table = table[None, :]
    if table.ndim != 2 or table.shape[1] != 2 or table.shape[0] not in (1, arms):
        raise BadRequest(
            f"`prior` must be a pair ({first}, {second}) or {arms} such pairs, one per arm, but got {prior!r}."
        )
    smallest = table.min(axis=0)
    if not np.isfinite(table).all() or smallest[1] <= 0 or (first_positive and smallest[0] <= 0):
        what = f"`{first} > 0` and `{second} > 0`" if first_positive else f"a finite {first} and `{second} > 0`"
        raise BadRequest(f"{what} must hold for the prior, but got {prior!r}.")
    return tuple((float(a), float(b)) for a, b in table)


def check_number(name: str, value: Any, *, above: float = -math.inf) -> float:
    """A finite number above a bound."""
    found = number_in(value)
    if not math.isfinite(found):
        raise BadRequest(f"`{name}` must be a finite number, but got {value!r:.60}.")
    if not found > above:
        raise BadRequest(f"`{name} > {above:g}` must hold, but got {name}={value!r}.")
    return found


def check_flag(name: str, value: Any) -> bool:
    """True or False, also as the command line writes them."""
    found = {"true": True, "false": False}.get(str(value).lower()) if isinstance(value, str) else value
    if not isinstance(found, bool | np.bool_):
        raise BadRequest(f"`{name}` must be True or False, but got {name}={value!r:.60}.")
    return bool(found)


def check_pair(name: str, value: Any) -> tuple[float, float]:
    """Two finite numbers."""
    pair = array_of(value)
    if pair.shape != (2,) or not np.isfinite(pair).all():
        raise BadRequest(f"`{name}` must be 2 finite numbers, but got {value!r}.")
    return float(pair[0]), float(pair[1])


def columns(prior: tuple[tuple[float, float], ...]) -> tuple[Floats, Floats]:
    """The prior's two numbers as rows that broadcast over arms."""
    table = np.array(prior)
    return table[:, 0], table[:, 1]


def gaussian(name: str, prior: Any) -> tuple[Any, Any]:
    """A Gaussian (mean, covariance): each a number, alike in all dimensions and independent, or a vector and a matrix."""
    wanted = (
        f"`{name}` must be a pair (mean, covariance), the mean a number or a vector, the covariance a number > 0 or a "
        "symmetric, positive definite matrix"
    )
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise BadRequest(f"{wanted}, but got {plain(prior)!r}.")
    mean, covariance = array_of(prior[0]), array_of(prior[1])
    if mean.ndim > 1 or mean.size == 0 or not np.isfinite(mean).all():
        raise BadRequest(f"{wanted}, but the mean is {plain(prior[0])!r}.")
    if covariance.ndim not in (0, 2) or covariance.size == 0 or not np.isfinite(covariance).all():
        raise BadRequest(f"{wanted}, but the covariance is {plain(prior[1])!r}.")
    if covariance.ndim == 2:
        rows, columns_ = covariance.shape
        if rows != columns_ or (mean.ndim == 1 and len(mean) != rows):
            raise BadRequest(f"{wanted} of the same size, but got sizes {mean.shape} and {covariance.shape}.")
        if not np.abs(covariance - covariance.T).max() <= 1e-10 * np.abs(covariance).max():
            raise BadRequest(f"{wanted}, but the covariance is not symmetric.")
        smallest = float(np.linalg.eigvalsh(covariance)[0])
        if smallest <= 1e-14 * float(np.trace(covariance)):
            raise BadRequest(f"{wanted}, but the covariance is not positive definite: an eigenvalue is {smallest:.3g}.")
    elif covariance <= 0:
        raise BadRequest(f"{wanted}, but the covariance is {plain(prior[1])!r}.")
    return as_tuples(mean), as_tuples(covariance)


def mean_and_root(name: str, prior: tuple[Any, Any], dims: int, *, of: str = "") -> tuple[Floats, Floats]:
    """A checked Gaussian as its mean and the lower triangular root of its covariance, in so many dimensions."""
    mean, covariance = np.array(prior[0]), np.array(prior[1])
    for part in (mean, covariance):
        if part.ndim > 0 and len(part) != dims:
            raise BadRequest(
                f"`{name}`{of} must have {dims} dimensions, as many as the features, but it has {len(part)}."
            )
    root = np.linalg.cholesky(covariance) if covariance.ndim else np.sqrt(covariance) * np.eye(dims)
    return np.broadcast_to(mean, dims).copy(), root


def as_tuples(numbers: Any) -> Any:
    """An array as nested tuples, which can be compared and hashed."""
    values = np.asarray(numbers).tolist()
    return tuple(map(as_tuples, values)) if isinstance(values, list) else values


def check_scalar(name: str, function: Any, takes: str, gives: str) -> None:
    """Whether a user's scalar function takes what it will be given and returns something on every way through it."""
    code = getattr(function, "__code__", None)
    if code is None:
        return  # what is no plain function is refused where it is bound
    try:
        inspect.signature(function).bind(*takes.split(", "))
    except TypeError as error:
        asked = inspect.signature(function)
        raise BadRequest(f"`{name}` must take ({takes}), but {function.__qualname__!r} takes {asked}.") from error
    steps = [(step.opname, step.argval) for step in dis.get_instructions(code)]
    # How Python ends a function without a word differs by its version.
    if ("RETURN_CONST", None) in steps or (("LOAD_CONST", None), ("RETURN_VALUE", None)) in pairwise(steps):
        raise BadRequest(
            f"`{name}` must return {gives} on every way through it, but {function.__qualname__!r} may end without; see "
            "whether a `return` is missing."
        )
