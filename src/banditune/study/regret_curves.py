"""Draws the regret over a parameter: at values that were asked for, or at more of them where the curve bends."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.core.space import Range
from banditune.results.estimates import compute_standard_error
from banditune.results.result_record import freeze_floats
from banditune.results.tuning_results import Curve
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.hold_out import HoldOutSplit
from banditune.study.parameter_values import make_parameter_rows, resolve_ranges
from banditune.study.progress import ProgressCallback, ProgressCounter
from banditune.study.requests import make_study_setup
from banditune.study.search import FIRST_VALIDATION_INSTANCE
from banditune.study.unimodality_test import check_unimodal

GRID_SIZE = 17


REFINEMENT_SIZES = (8, 8)
"""A curve starts from so many values and adds so many in each refinement."""


MAX_CURVE_VALUES = GRID_SIZE + sum(REFINEMENT_SIZES) + 1
"""Values of a refined curve, at most."""


MAX_CANDIDATE_VALUES = (GRID_SIZE - 1) * 2 ** len(REFINEMENT_SIZES) + 1
"""Values that a refined curve could have held."""


def resolve_axis(job: SimulationSpec, values: Any) -> tuple[Range, FloatArray | None]:
    """The parameter that a curve is over, and the values that were asked for, in order; None: they are yet to be found."""
    found = resolve_ranges(job)
    if len(found) > 1:
        raise InvalidRequest(f"a curve is over one parameter, but {job.policy.name} has {len(found)}; use simulate().")
    if not found and values is None:
        values = [0.0]
    among = found[0] if found else Range("value", 0.0, 1.0, 0.0, False, "linear")
    return among, None if values is None else np.unique(make_parameter_rows(job, values))


def simulate_curve(
    job: SimulationSpec,
    parts: HoldOutSplit,
    among: Range,
    values: FloatArray | None,
    runs: range,
    player: StoredSimulator,
    progress: ProgressCallback | None,
) -> Curve:
    """The curve of a job on these instances, played by the part that is searched; the other one judges the best value."""
    told = ProgressCounter(progress, (MAX_CURVE_VALUES if values is None else 1 + len(values)) * len(runs))
    if values is None:
        table, regrets = _simulate_refined_grid(parts, among, runs, player, told)
    else:
        table, played = values, player.play(parts.search, values[:, None], runs, progress=told)[:, :, 0]
        regrets = parts.searched(played, runs)
    mean = regrets.mean(axis=1)
    best = int(mean.argmin())
    # The lowest of many means is too low: what is said of it comes from instances that it was not chosen on.
    fresh = range(FIRST_VALIDATION_INSTANCE + runs.stop, FIRST_VALIDATION_INSTANCE + runs.stop + len(runs))
    told.expect(len(runs))
    again = player.play(parts.judge, table[best : best + 1, None], fresh, progress=told)[:, :, 0]
    return Curve(
        among.name,
        freeze_floats(table),
        freeze_floats(mean),
        freeze_floats([compute_standard_error(row) for row in regrets]),
        len(runs),
        float(table[best]),
        parts.estimate(parts.judged(again, fresh)[0]),
        among.theory,
        among.scale == "log",
        check_unimodal(table, regrets, candidates=MAX_CANDIDATE_VALUES if values is None else 0),
        make_study_setup(job),
        values is None,
        units=None if parts.unit == "run" else regrets.shape[1],
    )


def _simulate_refined_grid(
    parts: HoldOutSplit, among: Range, runs: range, player: StoredSimulator, told: ProgressCounter
) -> tuple[FloatArray, FloatArray]:
    """An even grid, then more values where the curve bends most, at the centre of the intervals there."""
    units = np.linspace(0, 1, GRID_SIZE)
    regrets: dict[float, FloatArray] = {}
    for more in (*REFINEMENT_SIZES, 0):
        values = dict.fromkeys(among.at(unit) for unit in units)
        new = np.array([value for value in values if value not in regrets])
        if len(new):
            played = player.play(parts.search, new[:, None], runs, first_row=len(regrets), progress=told)[:, :, 0]
            regrets |= dict(zip(new.tolist(), parts.searched(played, runs), strict=True))
        if more:
            height = np.array([regrets[among.at(unit)].mean() for unit in units])
            units = refine_grid(units, height, more)
    values_in_order = sorted(regrets)
    return np.array(values_in_order), np.array([regrets[value] for value in values_in_order])


def refine_grid(units: FloatArray, height: FloatArray, more: int) -> FloatArray:
    """Add the centres of the `more` intervals beside which the curve bends most.

    The bend is measured on the logarithm of the height above the minimum plus a tenth of it, so that the dip counts and
    the cliff at the far end does not take all the points.
    """
    low = height.min()
    relief = np.log(height - low + 0.1 * (abs(low) + 1e-12 + 0.01 * (height.max() - low)))
    slope = np.diff(relief) / np.diff(units)
    bend = np.concatenate([[0.0], np.abs(np.diff(slope)), [0.0]])
    score = (bend[:-1] + bend[1:]) * np.diff(units)
    chosen = np.argsort(-score, kind="stable")[:more]
    centres = (units[:-1] + units[1:])[chosen] / 2
    return np.unique(np.concatenate([units, centres]))
