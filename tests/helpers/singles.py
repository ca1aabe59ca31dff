"""Shortcuts in single precision, emulated on the CPU: the functions that a GPU has, on memory of float32."""

from __future__ import annotations

import math
from unittest.mock import patch

import numpy as np
from numpy import float32

from banditune.core import arrays
from banditune.core.scalar import scalar
from banditune.simulation import dispatch, kernel_selection
from banditune.simulation.kernel_selection import select_shortcut
from banditune.simulation.spec import SimulationSpec

usual = kernel_selection.fill_slots


@scalar
def inverse(value):
    return float32(1.0) / value


@scalar
def inverse_root(value):
    return float32(1.0) / math.sqrt(value)


@scalar
def log(value):
    return math.log(value)


@scalar
def exp(value):
    return math.exp(value)


SINGLE = {
    "compute_reciprocal": inverse,
    "compute_reciprocal_root": inverse_root,
    "compute_log": log,
    "compute_exp": exp,
}


def single_slots(spec):
    """The slots of a job whose shortcut plays in single precision."""
    slots, floats, integers = usual(spec)
    return slots | SINGLE | select_shortcut(spec.policy, spec.problem).float32_functions, floats, integers


def play_single(spec: SimulationSpec, params, runs, **options):
    """Regrets as from `run.play`, in single precision."""
    with (
        patch.object(kernel_selection, "fill_slots", single_slots),
        patch.object(arrays, "allocate_aligned", lambda size: np.zeros(size, float32)),
    ):
        return dispatch.simulate_rows(spec, params, runs, **options)
