"""Estimates the time of a task: a few runs are timed before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.search import FIRST_VALIDATION_INSTANCE

AnnounceCallback = Callable[[str], None]
"""Called with a line on the estimated time of a task that is about to start."""


MIN_TIMED_SECONDS = 0.1
"""The seconds after which the measurement of a rate ends."""


MAX_TIMED_RUNS = 256
"""The largest number of runs that are timed: a block of instances."""


def measure_seconds_per_run(spec: SimulationSpec, values: Sequence[float], simulator: StoredSimulator) -> float:
    """Measure the seconds per run on the simulator's executor, on average over parameter values.

    Regrets are not stored, because stored ones would take no time later. The first run compiles, and is not timed.
    """
    params = spec.complete_rows(np.array(values, float)[:, None])
    simulate_rows(
        spec, params, range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + 1), executor=simulator.executor
    )
    runs = simulator.executor.workers
    while True:
        start = time.monotonic()
        simulate_rows(
            spec,
            params,
            range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + runs),
            executor=simulator.executor,
        )
        took = time.monotonic() - start
        if took > MIN_TIMED_SECONDS or runs >= MAX_TIMED_RUNS:
            return took / (runs * len(params))
        runs = min(4 * runs, MAX_TIMED_RUNS)


def format_duration(seconds: float) -> str:
    """Format a duration with two digits: 40 s, 9 min, 2.5 h."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{float(f'{seconds / size:.2g}'):g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} s" if seconds >= 1 else "a second"
