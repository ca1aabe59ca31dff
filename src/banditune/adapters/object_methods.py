"""Finds the methods of an object of another library that select an arm and accept a reward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from banditune.core.errors import InvalidRequest

SELECT_METHOD_NAMES = ("select_arm", "select", "choose", "act", "pull", "get_arm", "recommend", "predict")


UPDATE_METHOD_NAMES = ("update", "learn", "observe", "tell", "reward", "partial_fit")
"""The usual names of these methods, the most common first."""


SelectMethod = Callable[[], Any]


UpdateMethod = Callable[[int, float], Any]


def find_methods(obj: Any, arms: int, select: str | None, update: str | None) -> tuple[SelectMethod, UpdateMethod]:
    """Return two functions: one selects an arm, the other accepts an arm and its reward."""
    kind = type(obj).__module__.partition(".")[0]
    if select is None and update is None and kind == "mabwiser":
        return wrap_mabwiser(obj, arms)
    if select is None and update is None and kind == "river":
        arm_ids = list(range(arms))
        return lambda: obj.pull(arm_ids), obj.update
    return find_method(obj, "select", select, SELECT_METHOD_NAMES), find_method(
        obj, "update", update, UPDATE_METHOD_NAMES
    )


def find_method(obj: Any, argument: str, requested: str | None, usual_names: tuple[str, ...]) -> Callable[..., Any]:
    """Find a method by the requested name, or by a usual one."""
    names = usual_names if requested is None else (requested,)
    method = next((getattr(obj, name) for name in names if callable(getattr(obj, name, None))), None)
    if method is None:
        raise InvalidRequest(
            f"an object that selects arms must have a method {' or '.join(names)}, but {type(obj).__name__} has none; "
            f"give the name of its method as {argument}=NAME.",
            argument=argument,
            code="own-code",
        )
    return method  # type: ignore[no-any-return]


def wrap_mabwiser(obj: Any, arms: int) -> tuple[SelectMethod, UpdateMethod]:
    """Wrap a MABWiser object. It needs data before it can predict, so every arm is pulled once, and then it is fitted."""
    first: list[tuple[int, float]] = []

    def select() -> Any:
        return len(first) if len(first) < arms else obj.predict()

    def update(arm: int, reward: float) -> None:
        if len(first) >= arms:
            obj.partial_fit([arm], [reward])
            return
        first.append((arm, reward))
        if len(first) == arms:
            obj.fit([pulled_arm for pulled_arm, _ in first], [payoff for _, payoff in first])

    return select, update


CONTEXT_ARGUMENTS = ("arms", "horizon", "seed")
"""The arguments that a factory may have besides its parameters."""
