"""Scalar functions: the marks that say how they are compiled, and the slots that binding fills."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

ScalarFunction = TypeVar("ScalarFunction", bound=Callable[..., Any])


def scalar(function: ScalarFunction) -> ScalarFunction:
    """Mark a function as scalar code, compiled with the loop that uses it; calling it directly runs plain Python."""
    function.__scalar__ = True  # type: ignore[attr-defined]
    return function


def noinline(function: ScalarFunction) -> ScalarFunction:
    """Mark scalar code off the hot path: it is compiled as a call, while other scalar code is pasted into its callers."""
    function.__rare__ = True  # type: ignore[attr-defined]
    return scalar(function)


def noinline_on_gpu(function: ScalarFunction) -> ScalarFunction:
    """Mark scalar code that is long and used in several places: pasted in on a CPU, but a call on a GPU.

    Code beyond the caches of instructions makes threads wait that have parted.
    """
    function.__bulky__ = True  # type: ignore[attr-defined]
    return scalar(function)


def optimize_separately(function: ScalarFunction) -> ScalarFunction:
    """Mark scalar code that is optimised on its own before it is pasted into its callers.

    Loops of a short, constant length become vector code then; in a large function they are unrolled first.
    """
    function.__vector__ = True  # type: ignore[attr-defined]
    return scalar(function)


def bit_packed(words: Callable[..., Any]) -> Callable[[ScalarFunction], ScalarFunction]:
    """Mark a scalar `reward` that pays 0 or 1 with the function that draws 32 of the same rewards at once.

    The mark belongs to the function: a problem with another `reward` has no words.
    """

    def mark(function: ScalarFunction) -> ScalarFunction:
        function.__words__ = words  # type: ignore[attr-defined]
        return function

    return mark


def with_pseudo_rewards(outcomes: Callable[..., Any]) -> Callable[[ScalarFunction], ScalarFunction]:
    """Mark a scalar `reward` in [0, 1] with the function that draws 32 pseudo-rewards at once.

    A pseudo-reward is 0 or 1, and 1 with the reward of the same pull as its probability, given that reward.
    """

    def mark(function: ScalarFunction) -> ScalarFunction:
        function.__outcomes__ = outcomes  # type: ignore[attr-defined]
        return function

    return mark


def addressed_by(*names: str) -> Callable[[ScalarFunction], ScalarFunction]:
    """Mark scalar code in which these arguments only say which random numbers are drawn: the law is the same for all."""

    def mark(function: ScalarFunction) -> ScalarFunction:
        function.__addresses__ = names  # type: ignore[attr-defined]
        return function

    return mark


class Slot:
    """A name in scalar code that the engine fills when it binds a loop to a policy and a problem."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_: Any) -> Any:
        raise TypeError(f"the slot {self.name!r} is empty: only bound code can call it")


def is_package_code(function: Any) -> bool:
    """Whether a function belongs to this package; others are a user's."""
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "banditune"
