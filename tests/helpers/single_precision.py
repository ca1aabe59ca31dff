"""Shortcuts in single precision, emulated on the CPU: the functions of a GPU on memory of float32."""

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

fill_double_slots = kernel_selection.fill_slots


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


SINGLE_FUNCTIONS = {
    "compute_reciprocal": inverse,
    "compute_reciprocal_root": inverse_root,
    "compute_log": log,
    "compute_exp": exp,
}


def fill_single_slots(spec):
    """The slots of a spec whose shortcut computes in single precision."""
    slots, floats, integers = fill_double_slots(spec)
    return slots | SINGLE_FUNCTIONS | select_shortcut(spec.policy, spec.problem).float32_functions, floats, integers


def simulate_in_single_precision(spec: SimulationSpec, params, runs, **options):
    """Regrets as from `simulate_rows`, in single precision."""
    with (
        patch.object(kernel_selection, "fill_slots", fill_single_slots),
        patch.object(arrays, "allocate_aligned", lambda size: np.zeros(size, float32)),
    ):
        return dispatch.simulate_rows(spec, params, runs, **options)
