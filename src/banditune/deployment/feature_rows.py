"""Checks the features of arms, and makes their matrix for scalar code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import convert_to_array
from banditune.core.errors import InvalidRequest
from banditune.core.request_errors import make_argument_error
from banditune.deployment.deployment_state import MAX_ABS_REWARD, ArmState


def read_feature_rows(features: Any) -> list[tuple[float, ...]]:
    """Return a row of features per arm; an empty list if there are no features."""
    if features is None:
        return []
    table = convert_to_array(features)
    if table.ndim != 2 or 0 in table.shape:
        raise make_argument_error(
            "features",
            "wrong-shape",
            f"must have a row of numbers for every arm, but got an array of shape {table.shape}.",
        )
    return [read_feature_row(row) for row in table]


def make_feature_matrix(arms: list[ArmState]) -> FloatArray:
    """Make the feature matrix of scalar code: (dims, arms)."""
    return np.array([arm.features for arm in arms], float).reshape(len(arms), -1).T


def read_feature_row(features: Any) -> tuple[float, ...]:
    """Return the features of one arm, or raise `InvalidRequest` if they are not finite numbers."""
    try:
        row = np.asarray(list(features), float)
    except (TypeError, ValueError):
        row = np.array([math.nan])
    if row.ndim != 1 or not np.isfinite(row).all() or np.abs(row).max(initial=0) > MAX_ABS_REWARD:
        raise InvalidRequest(
            f"the features of an arm must be a row of finite numbers, but got {features!r:.80}.",
            argument="features",
            code="wrong-type",
        )
    return tuple(row.tolist())


def add_known_intercept(row: tuple[float, ...], known: list[tuple[float, ...]]) -> tuple[float, ...]:
    """Return a row of features. If all known rows start with 1 and only this is missing, it is added."""
    misses_one = bool(row) and all(len(known_row) == len(row) + 1 and known_row[0] == 1 for known_row in known)
    return (1.0, *row) if misses_one else row
