"""Computes the regret over a parameter: at given values, or on a grid that is refined where the curve bends."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.space import Range
from banditune.results.estimates import compute_standard_error
from banditune.results.result_record import freeze_floats
from banditune.results.tuning_results import Curve
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.hold_out import HoldOutSplit
from banditune.study.parameter_values import (
    get_searched_values,
    list_searched_ranges,
    make_parameter_rows,
    resolve_only_range,
)
from banditune.study.progress import ProgressCallback, ProgressCounter
from banditune.study.requests import make_study_setup
from banditune.study.search import FIRST_VALIDATION_INSTANCE
from banditune.study.unimodality_test import check_unimodal

GRID_SIZE = 17


REFINEMENT_SIZES = (8, 8)
"""The numbers of values that the refinements add to the first `GRID_SIZE`."""


MAX_CURVE_VALUES = GRID_SIZE + sum(REFINEMENT_SIZES) + 1
"""The largest number of values of a refined curve."""


MAX_CANDIDATE_VALUES = (GRID_SIZE - 1) * 2 ** len(REFINEMENT_SIZES) + 1
"""The number of values from which those of a refined curve are selected."""


def resolve_axis(spec: SimulationSpec, values: Any) -> tuple[Range, FloatArray | None]:
    """Resolve the parameter of a curve and the given values, sorted; None if no values are given."""
    tuned = bool(list_searched_ranges(spec))
    if not tuned and values is None:
        values = [0.0]
    search_range = resolve_only_range(spec, "a curve") if tuned else Range("value", 0.0, 1.0, 0.0, False, "linear")
    if values is None:
        return search_range, None
    rows = make_parameter_rows(spec, values)
    return search_range, np.unique(get_searched_values(spec, rows) if tuned else rows)


def simulate_curve(
    spec: SimulationSpec,
    split: HoldOutSplit,
    search_range: Range,
    values: FloatArray | None,
    runs: range,
    simulator: StoredSimulator,
    progress: ProgressCallback | None,
) -> Curve:
    """Simulate a curve with the search spec; the best value is validated with the other spec on fresh instances."""
    counter = ProgressCounter(progress, (MAX_CURVE_VALUES if values is None else 1 + len(values)) * len(runs))
    if values is None:
        table, regrets = _simulate_refined_grid(split, search_range, runs, simulator, counter)
    else:
        table, raw = values, simulator.simulate(split.search_spec, values[:, None], runs, progress=counter)[:, :, 0]
        regrets = split.reduce_search(raw, runs)
    mean = regrets.mean(axis=1)
    best = int(mean.argmin())
    # The lowest of many means is too low, so the regret of the best value is estimated on other instances.
    fresh = range(FIRST_VALIDATION_INSTANCE + runs.stop, FIRST_VALIDATION_INSTANCE + runs.stop + len(runs))
    counter.expect(len(runs))
    best_regrets = simulator.simulate(split.validation_spec, table[best : best + 1, None], fresh, progress=counter)[
        :, :, 0
    ]
    return Curve(
        parameter=search_range.name,
        values=freeze_floats(table),
        mean=freeze_floats(mean),
        se=freeze_floats([compute_standard_error(row) for row in regrets]),
        runs=len(runs),
        best_value=float(table[best]),
        best_regret=split.estimate(split.reduce_validation(best_regrets, fresh)[0]),
        textbook=search_range.textbook,
        log_scale=search_range.scale == "log",
        unimodality=check_unimodal(table, regrets, candidates=MAX_CANDIDATE_VALUES if values is None else 0),
        setup=make_study_setup(spec),
        refined=values is None,
        unit_count=None if split.unit == "run" else regrets.shape[1],
    )


def _simulate_refined_grid(
    split: HoldOutSplit, search_range: Range, runs: range, simulator: StoredSimulator, counter: ProgressCounter
) -> tuple[FloatArray, FloatArray]:
    """Simulate an even grid, then the centres of the intervals where the curve bends most."""
    units = np.linspace(0, 1, GRID_SIZE)
    regrets: dict[float, FloatArray] = {}
    for more in (*REFINEMENT_SIZES, 0):
        values = dict.fromkeys(search_range.scale_from_unit(unit) for unit in units)
        new = np.array([value for value in values if value not in regrets])
        if len(new):
            raw = simulator.simulate(split.search_spec, new[:, None], runs, first_row=len(regrets), progress=counter)[
                :, :, 0
            ]
            regrets |= dict(zip(new.tolist(), split.reduce_search(raw, runs), strict=True))
        if more:
            height = np.array([regrets[search_range.scale_from_unit(unit)].mean() for unit in units])
            units = refine_grid(units, height, more)
    values_in_order = sorted(regrets)
    return np.array(values_in_order), np.array([regrets[value] for value in values_in_order])


def refine_grid(units: FloatArray, height: FloatArray, more: int) -> FloatArray:
    """Add the centres of the `more` intervals beside which the curve bends most.

    The bend is measured on the logarithm of the height above the minimum plus a tenth of it. This adds points at the dip.
    Without the logarithm, most points would be at the end where the curve is steep.
    """
    low = height.min()
    relief = np.log(height - low + 0.1 * (abs(low) + 1e-12 + 0.01 * (height.max() - low)))
    slope = np.diff(relief) / np.diff(units)
    bend = np.concatenate([[0.0], np.abs(np.diff(slope)), [0.0]])
    score = (bend[:-1] + bend[1:]) * np.diff(units)
    refined = np.argsort(-score, kind="stable")[:more]
    centres = (units[:-1] + units[1:])[refined] / 2
    return np.unique(np.concatenate([units, centres]))
