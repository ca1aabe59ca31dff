"""Checks of what records are made with, shared by problems and policies."""

from __future__ import annotations

import dis
import inspect
import math
from dataclasses import fields, is_dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.descriptions import convert_to_plain
from banditune.core.errors import InvalidRequest
from banditune.core.policy import FROM_PROBLEM


def convert_to_array(value: Any) -> FloatArray:
    """Numbers as an array; an empty one if they are not numbers in rows of equal length."""
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        return np.empty(0)


def decode_utf8(data: bytes, path: Any) -> str:
    """Text out of a file's bytes; what is no UTF-8 is named by its line."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(
            f"{str(path)!r} must be UTF-8 text, but line {line} is not; {suggest_utf8_conversion(data)}."
        ) from error


def suggest_utf8_conversion(data: bytes = b"") -> str:
    """How a file in another encoding becomes one in UTF-8: UTF-16 says what it is, all else is most often Latin-1."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"
    return f"write the file in UTF-8, for example by: iconv -f {encoding} -t utf-8 FILE > NEW"


def convert_to_integer(value: Any) -> int | None:
    """The whole number that a value is, 10 or 1e4; None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | np.integer) or (isinstance(value, float | np.floating) and value.is_integer()):
        return int(value)
    return None


def convert_to_number(value: Any) -> float:
    """The number that a value is; NaN if it is none, infinity if no float is so large."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """A whole number that is not too small, and not too large; 1e4 will do."""
    found = convert_to_integer(value)
    if found is None or found < least:
        raise InvalidRequest(f"`{name}` must be a whole number >= {least}, but got {name}={value!r}.")
    if most is not None and found > most:
        raise InvalidRequest(f"`{name} <= {most}` must hold, but got {name}={value!r}.")
    return found


def is_from_problem(value: Any) -> bool:
    """Whether an option of a policy is yet to be taken from the problem."""
    return isinstance(value, str) and value == FROM_PROBLEM


def list_options_from_problem(policy: Any) -> list[str]:
    """The options of a policy that are yet to be taken from the problem."""
    found = fields(policy) if is_dataclass(policy) else ()
    return [option.name for option in found if option.init and is_from_problem(getattr(policy, option.name))]


def check_arms(arms: Any) -> int:
    """A number of arms: a whole number, 2 or more."""
    return check_integer("arms", arms, 2, 100_000)


def check_dims(dims: Any, least: int = 1) -> int:
    """A number of features: a whole number that is not too large for a matrix of that size."""
    found = convert_to_integer(dims)
    if found is None or not least <= found <= 1000:
        raise InvalidRequest(f"`{least} <= dims <= 1000` must hold, as a whole number, but got dims={dims!r}.")
    return found


def check_names(names: Any, arms: int) -> tuple[str, ...]:
    """Arm names: none, or a distinct one for each arm."""
    words = tuple(str(name) for name in names) if isinstance(names, list | tuple) else (str(names),)
    if words and (len(words) != arms or len(set(words)) != arms or not all(words)):
        raise InvalidRequest(f"`names` must hold {arms} different names, one per arm, but got {list(words)}.")
    return words


def check_prior_pairs(
    prior: Any, arms: int, *, first: str, second: str, first_positive: bool
) -> tuple[tuple[float, float], ...]:
    """A prior as one pair for all arms (a tuple of length 1) or one pair per arm."""
    table = convert_to_array(prior)
    if table.shape == (2,):
        table = table[None, :]
    if table.ndim != 2 or table.shape[1] != 2 or table.shape[0] not in (1, arms):
        raise InvalidRequest(
            f"`prior` must be a pair ({first}, {second}) or {arms} such pairs, one per arm, but got {prior!r}."
        )
    smallest = table.min(axis=0)
    if not np.isfinite(table).all() or smallest[1] <= 0 or (first_positive and smallest[0] <= 0):
        what = f"`{first} > 0` and `{second} > 0`" if first_positive else f"a finite {first} and `{second} > 0`"
        raise InvalidRequest(f"{what} must hold for the prior, but got {prior!r}.")
    return tuple((float(a), float(b)) for a, b in table)


def check_number(name: str, value: Any, *, above: float = -math.inf) -> float:
    """A finite number above a bound."""
    found = convert_to_number(value)
    if not math.isfinite(found):
        raise InvalidRequest(f"`{name}` must be a finite number, but got {value!r:.60}.")
    if not found > above:
        raise InvalidRequest(f"`{name} > {above:g}` must hold, but got {name}={value!r}.")
    return found


def check_flag(name: str, value: Any) -> bool:
    """True or False, also as the command line writes them."""
    found = {"true": True, "false": False}.get(str(value).lower()) if isinstance(value, str) else value
    if not isinstance(found, bool | np.bool_):
        raise InvalidRequest(f"`{name}` must be True or False, but got {name}={value!r:.60}.")
    return bool(found)


def check_pair(name: str, value: Any) -> tuple[float, float]:
    """Two finite numbers."""
    pair = convert_to_array(value)
    if pair.shape != (2,) or not np.isfinite(pair).all():
        raise InvalidRequest(f"`{name}` must be 2 finite numbers, but got {value!r}.")
    return float(pair[0]), float(pair[1])


def split_prior_columns(prior: tuple[tuple[float, float], ...]) -> tuple[FloatArray, FloatArray]:
    """The prior's two numbers as rows that broadcast over arms."""
    table = np.array(prior)
    return table[:, 0], table[:, 1]


def check_gaussian_prior(name: str, prior: Any) -> tuple[Any, Any]:
    """A Gaussian (mean, covariance): each a number, alike in all dimensions and independent, or a vector and a matrix."""
    wanted = (
        f"`{name}` must be a pair (mean, covariance), the mean a number or a vector, the covariance a number > 0 or a "
        "symmetric, positive definite matrix"
    )
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise InvalidRequest(f"{wanted}, but got {convert_to_plain(prior)!r}.")
    mean, covariance = convert_to_array(prior[0]), convert_to_array(prior[1])
    if mean.ndim > 1 or mean.size == 0 or not np.isfinite(mean).all():
        raise InvalidRequest(f"{wanted}, but the mean is {convert_to_plain(prior[0])!r}.")
    if covariance.ndim not in (0, 2) or covariance.size == 0 or not np.isfinite(covariance).all():
        raise InvalidRequest(f"{wanted}, but the covariance is {convert_to_plain(prior[1])!r}.")
    if covariance.ndim == 2:
        rows, columns_ = covariance.shape
        if rows != columns_ or (mean.ndim == 1 and len(mean) != rows):
            raise InvalidRequest(f"{wanted} of the same size, but got sizes {mean.shape} and {covariance.shape}.")
        if not np.abs(covariance - covariance.T).max() <= 1e-10 * np.abs(covariance).max():
            raise InvalidRequest(f"{wanted}, but the covariance is not symmetric.")
        smallest = float(np.linalg.eigvalsh(covariance)[0])
        if smallest <= 1e-14 * float(np.trace(covariance)):
            raise InvalidRequest(
                f"{wanted}, but the covariance is not positive definite: an eigenvalue is {smallest:.3g}."
            )
    elif covariance <= 0:
        raise InvalidRequest(f"{wanted}, but the covariance is {convert_to_plain(prior[1])!r}.")
    return convert_to_tuples(mean), convert_to_tuples(covariance)


def factor_gaussian_prior(
    name: str, prior: tuple[Any, Any], dims: int, *, of: str = ""
) -> tuple[FloatArray, FloatArray]:
    """A checked Gaussian as its mean and the lower triangular root of its covariance, in so many dimensions."""
    mean, covariance = np.array(prior[0]), np.array(prior[1])
    for part in (mean, covariance):
        if part.ndim > 0 and len(part) != dims:
            raise InvalidRequest(
                f"`{name}`{of} must have {dims} dimensions, as many as the features, but it has {len(part)}."
            )
    root = np.linalg.cholesky(covariance) if covariance.ndim else np.sqrt(covariance) * np.eye(dims)
    return np.broadcast_to(mean, dims).copy(), root


def convert_to_tuples(numbers: Any) -> Any:
    """An array as nested tuples, which can be compared and hashed."""
    values = np.asarray(numbers).tolist()
    return tuple(map(convert_to_tuples, values)) if isinstance(values, list) else values


def check_scalar_function(name: str, function: Any, takes: str, gives: str) -> None:
    """Whether a user's scalar function takes what it will be given and returns something on every way through it."""
    code = getattr(function, "__code__", None)
    if code is None:
        return  # what is no plain function is refused where it is bound
    try:
        inspect.signature(function).bind(*takes.split(", "))
    except TypeError as error:
        asked = inspect.signature(function)
        raise InvalidRequest(f"`{name}` must take ({takes}), but {function.__qualname__!r} takes {asked}.") from error
    steps = [(step.opname, step.argval) for step in dis.get_instructions(code)]
    # How Python ends a function without a word differs by its version.
    if ("RETURN_CONST", None) in steps or (("LOAD_CONST", None), ("RETURN_VALUE", None)) in pairwise(steps):
        raise InvalidRequest(
            f"`{name}` must return {gives} on every way through it, but {function.__qualname__!r} may end without; see "
            "whether a `return` is missing."
        )
