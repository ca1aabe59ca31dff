"""Errors about arguments that several modules raise. Each function makes one kind of message."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Real
from typing import Any

from banditune.core.errors import ErrorCode, InvalidRequest
from banditune.core.messages import Argument, Condition, Message, Setting


def make_argument_error(name: str, code: ErrorCode, text: str, *values: object) -> InvalidRequest:
    """Make an error about an argument. The text follows its name: "must have two arms, but has one."."""
    return InvalidRequest("{} {}", Argument(name), Message(text, *values), argument=name, code=code)


def make_type_error(name: str, expected: str, value: Any, advice: str = "") -> InvalidRequest:
    """Make the error for a value of the wrong type: `policy` must be a policy such as UCB1(), but got 3."""
    return make_argument_error(name, "wrong-type", f"must be {expected}, but got {value!r:.80}{advice}.")


def make_unused_error(name: str, value: Any, why: str, *, of: str = "") -> InvalidRequest:
    """Make the error for an argument that must be left out: `workers` must be left out, because ..., but got 3."""
    text = "{}{} must be left out, {}, but got {!r}."
    return InvalidRequest(text, Argument(name), of, why, value, argument=name, code="conflict")


def make_name_error(
    what: str, allowed: Iterable[str], given: Any, *, argument: str, more: str = "", close: str | None = None
) -> InvalidRequest:
    """Make the error for an unknown name: the policy must be one of ucb1, ts, but got 'ucb'; did you mean 'ucb1'?

    `more` continues the list of names, as in ", or FILE.py:NAME". `close` is the intended name, if it is known.
    """
    names = list(allowed)
    hint = suggest_name(given, [close] if close else names, cutoff=0 if close else 0.6)
    text = f"{what} must be one of {', '.join(names)}{more}, but got {given!r:.60}{hint}"
    return InvalidRequest(text, argument=argument, code="unknown-name")


def suggest_name(given: Any, names: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the end of a sentence on an unknown name: a full stop, or the most similar name."""
    from difflib import get_close_matches

    close = get_close_matches(str(given), names, n=1, cutoff=cutoff)
    return f"; did you mean {close[0]!r}?" if close else "."


def make_limit_error(
    name: str,
    value: Any,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    note: str = "",
    advice: str = "",
) -> InvalidRequest:
    """Make the error for a number outside its limits: `0 < share < 1` must hold, but got share=7."""
    lower = (above, "<") if least is None else (least, "<=")
    upper = (below, "<") if most is None else (most, "<=")
    before = after = ""
    if upper[0] is not None:
        before = "" if lower[0] is None else f"{format_limit(lower[0])} {lower[1]} "
        after = f" {upper[1]} {format_limit(upper[0])}"
    elif lower[0] is not None:
        after = f" {lower[1].replace('<', '>')} {format_limit(lower[0])}"
    return InvalidRequest(
        "{} must hold{}, but got {}{}.",
        *(Condition(before, name, after), note, Setting(name, value), advice),
        argument=name,
        code="out-of-range" if isinstance(value, Real) else "wrong-type",
    )


def format_limit(limit: float) -> str:
    """Format a limit: whole numbers in full, others with six digits at most."""
    return str(limit) if isinstance(limit, int) else f"{limit:g}".replace("e+", "e")
