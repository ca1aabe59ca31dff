"""Types of options that policies and problems share, for type checkers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar

import numpy as np
import numpy.typing as npt

OptionValue = TypeVar("OptionValue")

FromProblem = Literal["problem"]
"""The option is taken from the problem that the policy is tuned on."""

Noise = float | FromProblem
"""The standard deviation of rewards around their mean that a policy assumes."""

ArmPrior = Sequence[float] | Sequence[Sequence[float]] | npt.NDArray[np.float64]
"""Two numbers for all arms, or a pair for each arm."""

ArmPolicyPrior = ArmPrior | FromProblem
"""The prior of a policy about the mean rewards of arms."""

WeightPrior = tuple[Any, Any]
"""Mean and variance of the weights of features: numbers, or a vector and a matrix."""

WeightPolicyPrior = WeightPrior | FromProblem
"""The prior of a policy about the weights of features."""

FeatureTable = Sequence[Sequence[float]] | npt.NDArray[np.float64]
"""Rows of numbers."""

WeightTable = Sequence[float] | npt.NDArray[np.float64]
"""A row of numbers."""

Names = Sequence[str | int]
"""Names of the arms."""


RewardKind = Literal["real", "unit", "binary"]
"""The kinds of rewards: any number, numbers in [0, 1], or 0 and 1."""


class Option(Generic[OptionValue]):
    """A field that accepts one type and is read as `Any`. It is checked and converted when the record is built.

    Type checkers see the accepted type in the constructor. Annotations are not evaluated, so the class is not used at
    run time.
    """

    def __get__(self, instance: object, owner: type | None = None) -> Any: ...

    def __set__(self, instance: object, value: OptionValue) -> None: ...


def default_option(value: Any) -> Any:
    """Return the default of an option, as any type."""
    return value
