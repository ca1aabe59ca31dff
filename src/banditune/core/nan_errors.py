"""Scalar functions that reject NaN in the comparisons of a policy, and their messages."""

from __future__ import annotations

from typing import Any

from banditune.core.scalar import scalar

NAN_IN_CHOOSE = "`choose` compared NaN with a number, or took its int(); NaN is neither less nor greater than any"


NAN_IN_UPDATE = "`update` compared NaN with a number, or took its int(); NaN is neither less nor greater than any"


@scalar
def reject_nan_in_choose(value: Any) -> Any:
    """Return the value, or raise an error if it is NaN."""
    if value != value:
        raise FloatingPointError(NAN_IN_CHOOSE)
    return value


@scalar
def reject_nan_in_update(value: Any) -> Any:
    """Return the value, or raise an error if it is NaN."""
    if value != value:
        raise FloatingPointError(NAN_IN_UPDATE)
    return value
