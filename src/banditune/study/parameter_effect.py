"""Detects a parameter that changes nothing: values far apart with the same regrets on the same instances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from banditune.core.errors import SimulationError, WorkerLost
from banditune.core.space import Range
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.progress import ProgressCounter

PROBE_POSITIONS = (0.1, 0.5, 0.9)
"""Where in its range a parameter is tried."""


FIRST_PROBE_RUNS, MIN_PROBE_RUNS = (4, 64), 1000
"""So many instances show most effects; all are played only where these show none, and so many at least."""


def choose_probe_values(among: Range, *values: float) -> list[float]:
    """Values to try: three or more that are given, or values across the range beside them."""
    return sorted({*values, *(() if len(set(values)) > 2 else map(among.at, PROBE_POSITIONS))})


def note_no_effect(
    job: SimulationSpec,
    name: str,
    values: Sequence[float],
    runs: range,
    player: StoredSimulator,
    told: ProgressCounter | None = None,
) -> str | None:
    """A sentence if all values have the same regrets on these instances and those after them, bit by bit; else None.

    All values share rewards and random numbers, so that one other choice of an arm shows. A parameter that matters in fewer
    than about three runs of those that are played may still be taken for one without an effect: the sentence says so.
    """
    if len(values) < 3:
        return None
    # A few instances would miss effects, and only here are more of them needed.
    runs = range(runs.start, runs.start + max(len(runs), MIN_PROBE_RUNS))
    # With noise of their own, values differ by that alone.
    shared = replace(job, noise="shared")
    regret = 0.0
    for size in (*FIRST_PROBE_RUNS, len(runs)):
        some = runs[:size]
        if told:
            told.more(len(values) * len(some))
        try:
            found = player.play(shared, np.array(values)[:, None], some, progress=told)
        except WorkerLost:
            raise
        except SimulationError:  # the policy refuses one of these values: so it reads them
            return None
        if (found != found[0]).any():
            return None
        regret = float(np.abs(found).max())
    if regret == 0:
        return (
            f"all {len(values)} values of `{name}` that were tried have regret 0 on the same {len(runs):,} "
            "instances: there is nothing to tune here."
        )
    return (
        f"`{name}` does not change what the policy does: all {len(values)} values tried had the same regret on the "
        f"same {len(runs):,} instances. What matters in fewer than 3 of {len(runs):,} runs might not show. See "
        "whether the policy reads it."
    )
