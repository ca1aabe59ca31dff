"""Scalar functions: marks that control their compilation, and slots that are filled when a loop is bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

ScalarFunction = TypeVar("ScalarFunction", bound=Callable[..., Any])


def scalar(function: ScalarFunction) -> ScalarFunction:
    """Mark a function as scalar code, which is compiled together with the loop that uses it.

    Calling it directly runs plain Python.

    Parameters
    ----------
    function : callable
        A function of numbers and records, such as `choose` of a policy or `reward` of a problem.

    Returns
    -------
    callable
        The same function.

    Examples
    --------
    >>> import banditune as bt
    >>> @bt.kernel.scalar
    ... def choose(state, setting, step, params, stream):
    ...     return bt.kernel.draw_arm(state, stream)
    """
    function.__scalar__ = True  # type: ignore[attr-defined]
    return function


def noinline(function: ScalarFunction) -> ScalarFunction:
    """Mark rarely executed scalar code. It is called, while other scalar code is inlined."""
    function.__noinline__ = True  # type: ignore[attr-defined]
    return scalar(function)


def noinline_on_gpu(function: ScalarFunction) -> ScalarFunction:
    """Mark long scalar code that is used in several places. It is inlined on a CPU and called on a GPU.

    On a GPU, code that exceeds the instruction cache delays diverged threads.
    """
    function.__noinline_on_gpu__ = True  # type: ignore[attr-defined]
    return scalar(function)


def optimize_separately(function: ScalarFunction) -> ScalarFunction:
    """Mark scalar code that is optimised separately before it is inlined.

    Loops of a short, constant length then become vector code. In a large function they would be unrolled instead.
    """
    function.__optimize_separately__ = True  # type: ignore[attr-defined]
    return scalar(function)


def bit_packed(draw_word: Callable[..., Any]) -> Callable[[ScalarFunction], ScalarFunction]:
    """Mark a scalar 0/1 `reward` with the function that draws 32 of the same rewards at once.

    The mark is an attribute of the function. A problem with another `reward` has no bit-packed rewards.
    """

    def mark(function: ScalarFunction) -> ScalarFunction:
        function.__bit_packed__ = draw_word  # type: ignore[attr-defined]
        return function

    return mark


def with_pseudo_rewards(outcomes: Callable[..., Any]) -> Callable[[ScalarFunction], ScalarFunction]:
    """Mark a scalar `reward` in [0, 1] with the function that draws 32 pseudo-rewards at once.

    A pseudo-reward is 0 or 1. Given the reward of the same pull, it is 1 with that probability.
    """

    def mark(function: ScalarFunction) -> ScalarFunction:
        function.__pseudo_rewards__ = outcomes  # type: ignore[attr-defined]
        return function

    return mark


def addressed_by(*names: str) -> Callable[[ScalarFunction], ScalarFunction]:
    """Mark arguments of scalar code that only select random numbers. The distribution does not depend on their values."""

    def mark(function: ScalarFunction) -> ScalarFunction:
        function.__addressed_by__ = names  # type: ignore[attr-defined]
        return function

    return mark


class Slot:
    """A placeholder in scalar code, filled when a loop is bound to a policy and a problem.

    A shortcut draws rewards through the slot "reward".

    Parameters
    ----------
    name : str
        The slot's name.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, *_: Any) -> Any:
        raise TypeError(f"the slot {self.name!r} is empty: only bound code can call it")


def is_package_code(function: Any) -> bool:
    """Return whether a function belongs to this package. All other functions are custom code."""
    return (getattr(function, "__module__", None) or "").partition(".")[0] == "banditune"
