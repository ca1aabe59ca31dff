"""Detects a parameter without effect: different values have the same regrets on the same instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import SimulationError, WorkerLost
from banditune.core.notice import Notice
from banditune.core.space import Range
from banditune.results.estimates import Estimate
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.hold_out import HoldOutSplit
from banditune.study.parameter_values import complete_row, list_slice_specs, resolve_space
from banditune.study.progress import ProgressCounter

PROBE_POSITIONS = (0.1, 0.5, 0.9)
"""Positions in the range at which a parameter is tried."""


GRID_POSITIONS = tuple(step / 16 for step in range(17))
"""Further positions, for parameters that matter in a part of the range only."""


FIRST_PROBE_RUNS, GRID_RUNS, MIN_PROBE_RUNS = 4, 64, 1000
"""Numbers of instances: those that show most effects, those on which the whole range is tried, and the fewest in total.

The whole range is tried only if the first ones show no effect.
"""


class ProbeValues(NamedTuple):
    """Values that are compared to detect an effect: a few on many instances, and all values on some."""

    sparse: list[float]
    all: list[float]


def choose_probe_values(search_range: Range, answer: float) -> ProbeValues:
    """Choose values across the range to try, and the answer of a search."""
    sparse, grid = (
        {search_range.scale_from_unit(unit) for unit in positions} for positions in (PROBE_POSITIONS, GRID_POSITIONS)
    )
    return ProbeValues(sorted({answer, *sparse}), sorted({answer, *sparse, *grid}))


def choose_curve_probe_values(search_range: Range, values: FloatArray) -> ProbeValues:
    """Choose values to try from those of a curve."""
    sparse = choose_probe_values(search_range, float(values[0]))
    curve_values = {float(values[position]) for position in (0, len(values) // 2, -1)}
    return ProbeValues(sorted(curve_values), sorted(set(values.tolist()))) if len(curve_values) > 2 else sparse


def list_parameters_without_effect(
    spec: SimulationSpec,
    row: Sequence[float],
    fresh: range,
    simulator: StoredSimulator,
    counter: ProgressCounter,
) -> tuple[Notice, ...]:
    """List a notice for each searched parameter without effect; the others have their values in the row."""
    slices = zip(list_slice_specs(spec, row), resolve_space(spec).ranges, row, strict=True)
    notices = (
        note_no_effect(
            slice_spec, search_range.name, choose_probe_values(search_range, value), fresh, simulator, counter
        )
        for slice_spec, search_range, value in slices
    )
    return tuple(notice for notice in notices if notice)


def measure_importance(
    split: HoldOutSplit,
    row: Sequence[float],
    tuned: FloatArray,
    fresh: range,
    simulator: StoredSimulator,
    counter: ProgressCounter,
) -> dict[str, Estimate]:
    """Estimate the regret that each of several parameters adds if it alone has its textbook value.

    `tuned` are the answer's independent numbers on the same instances. With one parameter, the gain says it.
    """
    spec = split.validation_spec
    space = resolve_space(spec)
    if len(space.ranges) == 1:
        return {}
    rows = [
        complete_row(spec, [*row[:number], search_range.textbook, *row[number + 1 :]])
        for number, search_range in enumerate(space.ranges)
    ]
    counter.expect_more(len(rows) * len(fresh))
    raw = simulator.simulate(spec, np.array(rows), fresh, first_row=2, progress=counter)[:, :, 0]
    regrets = split.reduce_validation(raw, fresh)
    return {name: split.estimate(other - tuned) for name, other in zip(space.names, regrets, strict=True)}


def note_no_effect(
    spec: SimulationSpec,
    name: str,
    values: ProbeValues,
    runs: range,
    simulator: StoredSimulator,
    counter: ProgressCounter | None = None,
) -> Notice | None:
    """Return a notice if all values have the same regrets on these instances, bit by bit; else None.

    All values have the same rewards and random numbers, so that one different choice of an arm changes a regret. An effect
    in fewer than about three of the simulated runs may be missed, as the notice states.
    """
    if len(values.sparse) < 3:
        return None
    # Fewer instances would miss effects.
    runs = range(runs.start, runs.start + max(len(runs), MIN_PROBE_RUNS))
    # With independent noise, values would differ by the noise alone.
    shared = replace(spec, common_random_numbers=True)
    regret = 0.0
    for tried, size in ((values.sparse, FIRST_PROBE_RUNS), (values.all, GRID_RUNS), (values.sparse, len(runs))):
        part = runs[:size]
        if counter:
            counter.expect_more(len(tried) * len(part))
        try:
            regrets = simulator.simulate(shared, np.array(tried)[:, None], part, progress=counter)
        except WorkerLost:
            raise
        except SimulationError:  # the policy rejects one of these values, so they have an effect
            return None
        if (regrets != regrets[0]).any():
            return None
        regret = float(np.abs(regrets).max())
    if regret == 0:
        return Notice(
            f"all {len(values.sparse)} values of `{name}` that were tried have regret 0 on the same {len(runs):,} "
            "instances, so the parameter need not be tuned.",
            "no-effect",
            "Keep its textbook value, or tune on a harder problem.",
        )
    return Notice(
        f"`{name}` does not change the decisions of the policy: all {len(values.sparse)} values tried had the same regret "
        f"on the same {len(runs):,} instances, and {len(values.all)} values across the range on {GRID_RUNS} of them. An "
        f"effect in fewer than 3 of {len(runs):,} runs may be missed.",
        "no-effect",
    )
