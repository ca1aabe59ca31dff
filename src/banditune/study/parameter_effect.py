"""Detects a parameter without effect: distant values have the same regrets on the same instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from banditune.core.errors import SimulationError, WorkerLost
from banditune.core.notice import Notice
from banditune.core.space import Range
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.progress import ProgressCounter

PROBE_POSITIONS = (0.1, 0.5, 0.9)
"""Positions in the range at which a parameter is tried."""


FIRST_PROBE_RUNS, MIN_PROBE_RUNS = (4, 64), 1000
"""Instances that show most effects, in two steps. If these show none, all are simulated, and at least this many."""


def choose_probe_values(search_range: Range, *values: float) -> list[float]:
    """Choose values to try: the given ones if there are three or more, else also values across the range."""
    return sorted({*values, *(() if len(set(values)) > 2 else map(search_range.scale_from_unit, PROBE_POSITIONS))})


def note_no_effect(
    spec: SimulationSpec,
    name: str,
    values: Sequence[float],
    runs: range,
    simulator: StoredSimulator,
    counter: ProgressCounter | None = None,
) -> Notice | None:
    """Return a notice if all values have the same regrets on these instances, bit by bit; else None.

    All values share rewards and random numbers, so that a single different choice of an arm shows. A parameter that matters
    in fewer than about three of the simulated runs may be missed; the notice says so.
    """
    if len(values) < 3:
        return None
    # Fewer instances would miss effects.
    runs = range(runs.start, runs.start + max(len(runs), MIN_PROBE_RUNS))
    # With independent noise, values would differ by the noise alone.
    shared = replace(spec, common_random_numbers=True)
    regret = 0.0
    for size in (*FIRST_PROBE_RUNS, len(runs)):
        some = runs[:size]
        if counter:
            counter.expect_more(len(values) * len(some))
        try:
            found = simulator.simulate(shared, np.array(values)[:, None], some, progress=counter)
        except WorkerLost:
            raise
        except SimulationError:  # the policy refuses one of these values, so it reads them
            return None
        if (found != found[0]).any():
            return None
        regret = float(np.abs(found).max())
    if regret == 0:
        return Notice(
            f"all {len(values)} values of `{name}` that were tried have regret 0 on the same {len(runs):,} "
            "instances: there is nothing to tune here.",
            "no-effect",
        )
    return Notice(
        f"`{name}` does not change what the policy does: all {len(values)} values tried had the same regret on the "
        f"same {len(runs):,} instances. An effect in fewer than 3 of {len(runs):,} runs might not show. Check "
        "whether the policy reads it.",
        "no-effect",
    )
