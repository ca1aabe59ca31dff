"""How to ask an object of another library for an arm, and how to give it a reward."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from banditune.core.errors import InvalidRequest

SELECT_METHOD_NAMES = ("select_arm", "select", "choose", "act", "pull", "get_arm", "recommend", "predict")


UPDATE_METHOD_NAMES = ("update", "learn", "observe", "tell", "reward", "partial_fit")
"""Names that these methods often have, the likeliest first."""


SelectMethod = Callable[[], Any]


UpdateMethod = Callable[[int, float], Any]


def find_methods(made: Any, arms: int, select: str | None, update: str | None) -> tuple[SelectMethod, UpdateMethod]:
    """Two functions: one gives an arm, one takes an arm and its reward."""
    kind = type(made).__module__.partition(".")[0]
    if select is None and update is None and kind == "mabwiser":
        return wrap_mabwiser(made, arms)
    if select is None and update is None and kind == "river":
        numbers = list(range(arms))
        return lambda: made.pull(numbers), made.update
    return find_method(made, "select", select, SELECT_METHOD_NAMES), find_method(
        made, "update", update, UPDATE_METHOD_NAMES
    )


def find_method(made: Any, what: str, told: str | None, usual: tuple[str, ...]) -> Callable[..., Any]:
    """A method by the name that was told, or by a usual one."""
    names = usual if told is None else (told,)
    found = next((getattr(made, name) for name in names if callable(getattr(made, name, None))), None)
    if found is None:
        raise InvalidRequest(
            f"an object that plays must have a method {' or '.join(names)}, but {type(made).__name__} has none of these; "
            f"name its own with {what}=NAME."
        )
    return found  # type: ignore[no-any-return]


def wrap_mabwiser(made: Any, arms: int) -> tuple[SelectMethod, UpdateMethod]:
    """MABWiser wants data before it predicts: every arm once, then a fit, then one decision after the other."""
    first: list[tuple[int, float]] = []

    def select() -> Any:
        return len(first) if len(first) < arms else made.predict()

    def update(arm: int, reward: float) -> None:
        if len(first) >= arms:
            made.partial_fit([arm], [reward])
            return
        first.append((arm, reward))
        if len(first) == arms:
            made.fit([each for each, _ in first], [paid for _, paid in first])

    return select, update


CONTEXT_ARGUMENTS = ("arms", "horizon", "seed")
"""What a maker may ask for besides its parameters."""
