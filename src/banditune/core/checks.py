"""Checks of the arguments of problems and policies."""

from __future__ import annotations

import dis
import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from itertools import pairwise
from keyword import iskeyword
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.descriptions import convert_to_plain
from banditune.core.errors import ErrorCode, InvalidRequest
from banditune.core.messages import Argument, Setting
from banditune.core.policy import FROM_PROBLEM, Policy, ScratchShape
from banditune.core.request_errors import make_argument_error, make_limit_error, make_type_error


def convert_to_array(value: Any) -> FloatArray:
    """Convert numbers to an array; return an empty one if they are not numbers in rows of equal length."""
    try:
        return np.array(value, dtype=float)
    except (TypeError, ValueError):
        return np.empty(0)


def decode_utf8(data: bytes, path: Any) -> str:
    """Decode the bytes of a file. If they are not UTF-8, the error contains the line number."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InvalidRequest(
            f"{str(path)!r} must be UTF-8 text, but line {line} is not; {suggest_utf8_conversion(data)}.",
            code="file-format",
        ) from error


def suggest_utf8_conversion(data: bytes = b"") -> str:
    """Suggest a conversion to UTF-8. UTF-16 is recognised by its first bytes; Latin-1 is assumed for other files."""
    encoding = "utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin1"
    return f"write the file in UTF-8, for example by: iconv -f {encoding} -t utf-8 FILE > NEW"


def convert_to_integer(value: Any) -> int | None:
    """Convert a whole number, such as 10 or 1e4; return None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | np.integer) or (isinstance(value, float | np.floating) and value.is_integer()):
        return int(value)
    return None


def convert_to_number(value: Any) -> float:
    """Convert to a float; return NaN if the value is not a number, infinity if it is too large."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.inf


def check_integer(name: str, value: Any, least: int, most: int | None = None) -> int:
    """Check a whole number against its limits. Floats such as 1e4 are accepted."""
    number = convert_to_integer(value)
    if number is None or number < least:
        code: ErrorCode = "wrong-type" if number is None else "out-of-range"
        text = "must be a whole number >= {}, but got {}."
        raise make_argument_error(name, code, text, least, Setting(name, value))
    if most is not None and number > most:
        raise make_limit_error(name, value, most=most)
    return number


def check_number(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    note: str = "",
) -> float:
    """Check a finite number against its limits. The `note` explains them, as in " (50% is 0.5)" or " for ucb1"."""
    number = convert_to_number(value)
    if not math.isfinite(number):
        raise make_argument_error(name, "wrong-type", f"must be a finite number{note}, but got {value!r:.60}.")
    if (
        (above is not None and not number > above)
        or (least is not None and number < least)
        or (below is not None and not number < below)
        or (most is not None and number > most)
    ):
        raise make_limit_error(name, value, above=above, least=least, below=below, most=most, note=note)
    return number


def is_from_problem(value: Any) -> bool:
    """Return whether an option of a policy is still to be taken from the problem."""
    return isinstance(value, str) and value == FROM_PROBLEM


def list_options_from_problem(policy: Any) -> list[str]:
    """List the options of a policy that are still to be taken from the problem."""
    options = fields(policy) if is_dataclass(policy) else ()
    return [option.name for option in options if option.init and is_from_problem(getattr(policy, option.name))]


REWARD_KINDS = ("binary", "unit", "real")
"""The kinds of rewards: 0 or 1, in [0, 1], or any number."""


def check_reward_kind(rewards: Any) -> str:
    """Check a kind of rewards."""
    return check_choice("rewards", rewards, REWARD_KINDS)


def check_arms(arms: Any) -> int:
    """Check a number of arms: a whole number, 2 or more."""
    return check_integer("arms", arms, 2, 100_000)


def check_dims(dims: Any, least: int = 1) -> int:
    """Check a number of features. A matrix of that size must fit into memory."""
    number = convert_to_integer(dims)
    if number is None or not least <= number <= 1000:
        raise make_limit_error("dims", dims, least=least, most=1000, note=", as a whole number")
    return number


def check_names(names: Any, arms: int) -> tuple[str, ...]:
    """Check arm names: none, or a distinct one for each arm."""
    words = tuple(str(name) for name in names) if isinstance(names, list | tuple) else (str(names),)
    if words and (len(words) != arms or len(set(words)) != arms or not all(words)):
        text = f"must be {arms} different names, one per arm, but got {list(words)}."
        raise make_argument_error("names", "wrong-shape", text)
    return words


def check_prior_pairs(
    prior: Any, arms: int, *, first: str, second: str, first_positive: bool
) -> tuple[tuple[float, float], ...]:
    """Check a prior; return one pair for all arms (a tuple of length 1) or one pair per arm."""
    table = convert_to_array(prior)
    if table.shape == (2,):
        table = table[None, :]
    if table.ndim != 2 or table.shape[1] != 2 or table.shape[0] not in (1, arms):
        text = f"must be a pair ({first}, {second}) or {arms} such pairs, one per arm, but got {prior!r}."
        raise make_argument_error("prior", "wrong-shape", text)
    smallest = table.min(axis=0)
    if not np.isfinite(table).all() or smallest[1] <= 0 or (first_positive and smallest[0] <= 0):
        what = f"`{first} > 0` and `{second} > 0`" if first_positive else f"a finite {first} and `{second} > 0`"
        raise InvalidRequest(
            f"{what} must hold for the prior, but got {prior!r}.", argument="prior", code="out-of-range"
        )
    return tuple((float(a), float(b)) for a, b in table)


def check_flag(name: str, value: Any) -> bool:
    """Check True or False, also in the spelling of the command line."""
    flag = {"true": True, "false": False}.get(str(value).lower()) if isinstance(value, str) else value
    if not isinstance(flag, bool | np.bool_):
        given = Setting(name, value, f"{value!r:.60}")
        raise make_argument_error(name, "wrong-type", "must be True or False, but got {}.", given)
    return bool(flag)


def check_pair(name: str, value: Any) -> tuple[float, float]:
    """Check two finite numbers."""
    pair = convert_to_array(value)
    if pair.shape != (2,) or not np.isfinite(pair).all():
        raise make_type_error(name, "2 finite numbers", value)
    return float(pair[0]), float(pair[1])


def split_prior_columns(prior: tuple[tuple[float, float], ...]) -> tuple[FloatArray, FloatArray]:
    """Return the prior's two numbers as rows that broadcast over arms."""
    table = np.array(prior)
    return table[:, 0], table[:, 1]


def check_gaussian_prior(name: str, prior: Any) -> tuple[Any, Any]:
    """Check a Gaussian (mean, covariance): numbers for independent, equal dimensions, or a vector and a matrix."""
    if not isinstance(prior, tuple | list) or len(prior) != 2:
        raise _make_gaussian_error(name, "wrong-type", f", but got {convert_to_plain(prior)!r}.")
    mean, covariance = convert_to_array(prior[0]), convert_to_array(prior[1])
    if mean.ndim > 1 or mean.size == 0 or not np.isfinite(mean).all():
        raise _make_gaussian_error(name, "wrong-type", f", but the mean is {convert_to_plain(prior[0])!r}.")
    text = f", but the covariance is {convert_to_plain(prior[1])!r}."
    if covariance.ndim not in (0, 2) or covariance.size == 0 or not np.isfinite(covariance).all():
        raise _make_gaussian_error(name, "wrong-type", text)
    if covariance.ndim == 0 and covariance <= 0:
        raise _make_gaussian_error(name, "out-of-range", text)
    if covariance.ndim == 2:
        _check_covariance(name, mean, covariance)
    return convert_to_tuples(mean), convert_to_tuples(covariance)


def _check_covariance(name: str, mean: FloatArray, covariance: FloatArray) -> None:
    rows, columns = covariance.shape
    if rows != columns or (mean.ndim == 1 and len(mean) != rows):
        text = f" of the same size, but got sizes {mean.shape} and {covariance.shape}."
        raise _make_gaussian_error(name, "wrong-shape", text)
    if not np.abs(covariance - covariance.T).max() <= 1e-10 * np.abs(covariance).max():
        raise _make_gaussian_error(name, "out-of-range", ", but the covariance is not symmetric.")
    smallest = float(np.linalg.eigvalsh(covariance)[0])
    if smallest <= 1e-14 * float(np.trace(covariance)):
        text = f", but the covariance is not positive definite: an eigenvalue is {smallest:.3g}."
        raise _make_gaussian_error(name, "out-of-range", text)


def _make_gaussian_error(name: str, code: ErrorCode, text: str) -> InvalidRequest:
    requirement = (
        "must be a pair (mean, covariance), the mean a number or a vector, the covariance a number > 0 or a "
        "symmetric, positive definite matrix"
    )
    return make_argument_error(name, code, f"{requirement}{text}")


def factor_gaussian_prior(
    name: str, prior: tuple[Any, Any], dims: int, *, of: str = ""
) -> tuple[FloatArray, FloatArray]:
    """Return the mean and the lower triangular root of the covariance of a checked Gaussian in `dims` dimensions."""
    mean, covariance = np.array(prior[0]), np.array(prior[1])
    for array in (mean, covariance):
        if array.ndim > 0 and len(array) != dims:
            text = f"`{name}`{of} must have {dims} dimensions, as many as the features, but it has {len(array)}."
            raise InvalidRequest(text, argument=name, code="wrong-shape")
    root = np.linalg.cholesky(covariance) if covariance.ndim else np.sqrt(covariance) * np.eye(dims)
    return np.broadcast_to(mean, dims).copy(), root


def convert_to_tuples(numbers: Any) -> Any:
    """Convert an array to nested tuples, which can be compared and hashed."""
    values = np.asarray(numbers).tolist()
    return tuple(map(convert_to_tuples, values)) if isinstance(values, list) else values


def check_scalar_function(name: str, function: Any, takes: str, gives: str) -> None:
    """Check that a user's scalar function takes the given arguments and returns a value on every path."""
    code = getattr(function, "__code__", None)
    if code is None:
        return  # other objects than plain functions are rejected when they are bound
    check_arguments(name, function, takes)
    steps = [(step.opname, step.argval) for step in dis.get_instructions(code)]
    # The instruction of an implicit `return None` depends on the version of Python.
    if ("RETURN_CONST", None) in steps or (("LOAD_CONST", None), ("RETURN_VALUE", None)) in pairwise(steps):
        raise InvalidRequest(
            f"`{name}` must return {gives} on every path, but {function.__qualname__!r} may end without one; check "
            "whether a `return` is missing.",
            argument=name,
            code="own-code",
        )


def check_arguments(name: str, function: Any, takes: str) -> None:
    """Check that a user's function can be called with the given arguments, in this order."""
    function = getattr(function, "py_func", function)
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return  # not a plain function
    try:
        signature.bind(*takes.split(", "))
    except TypeError as error:
        called = getattr(function, "__qualname__", repr(function))
        text = f"`{name}` must take ({takes}), but {called!r} takes {signature}."
        raise InvalidRequest(text, argument=name, code="own-code") from error


def check_scratch(scratch: Any) -> dict[str, ScratchShape]:
    """Check the scratch arrays of a policy: names, and sizes as in `ScratchShape`."""
    if not isinstance(scratch, Mapping | tuple) or not all(map(_is_scratch_array, dict(scratch).items())):
        raise InvalidRequest(
            "{} must give each array a name and a size, 'arms', 'dims', 'horizon', a whole number above 0, or a "
            "tuple of these, such as {}, but got {!r:.200}.",
            *(Argument("scratch"), {"weights": "arms"}, scratch),
            argument="scratch",
            code="own-code",
        )
    return dict(scratch)


def _is_scratch_array(item: tuple[Any, Any]) -> bool:
    """Return whether a name is valid for a field, and a shape consists of valid words and numbers."""
    name, shape = item
    factors = shape if isinstance(shape, tuple) else (shape,)
    usable = isinstance(name, str) and name.isidentifier() and not iskeyword(name) and not name.startswith("_")
    return bool(usable and factors) and all(
        factor in ("arms", "dims", "horizon") or (type(factor) is int and factor > 0) for factor in factors
    )


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """Check that a value is one of a few words."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(map(repr, allowed))
        raise make_argument_error(name, "unknown-name", f"must be one of {words}, but got {value!r:.60}.")
    return value


def check_is_policy(policy: Any) -> None:
    """Check that an argument is a policy."""
    check_type("policy", policy, Policy, "a policy such as UCB1()")


def check_type(name: str, value: Any, kind: type | tuple[type, ...], expected: str) -> Any:
    """Check that a value is of one of these types; `expected` describes them, as in "a policy such as UCB1()"."""
    if not isinstance(value, kind):
        is_class = isinstance(value, type) and issubclass(value, kind)
        raise make_type_error(name, expected, value, f"; make one, such as {value.__name__}()" if is_class else "")
    return value
