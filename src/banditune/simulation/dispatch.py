"""Simulates parameter rows on the CPU or on a GPU. This is the entry to the package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, copy_read_only
from banditune.core.errors import InvalidRequest
from banditune.simulation.chunks import SimulationTask
from banditune.simulation.devices import resolve_device
from banditune.simulation.executor import Executor
from banditune.simulation.memory import allocate_regrets, check_regret_memory
from banditune.simulation.scheduler import open_executor, run_tasks, simulate_rows_on_cpu
from banditune.simulation.spec import SimulationSpec


def select_device(job: SimulationSpec, device: Any) -> str:
    """ "cpu" or "gpu" for a job: `auto` takes a GPU if one can be used and a run of the job fits onto it."""
    found = resolve_device(device)
    if found == "cpu" or device == "gpu":
        return found
    from banditune.simulation.gpu.launch_plan import plan_launch

    try:
        plan_launch(job)
    except InvalidRequest:
        return "cpu"
    return "gpu"


def simulate_rows(
    job: SimulationSpec,
    params: Any,
    runs: range,
    *,
    first_row: int = 0,
    jobs: int | None = None,
    cluster: Executor | None = None,
    progress: Callable[[int], None] | None = None,
) -> FloatArray:
    """Regrets of every row of `params` on instances `runs`: an array (rows, runs, checkpoints).

    With own noise, the rows' noise is numbered from `first_row` on. `progress` is told how many runs were just finished.
    Without a `cluster`, `jobs` threads play.
    """
    params = copy_read_only(params)
    if job.device == "gpu":
        from banditune.simulation.gpu import gpu_scheduler

        return gpu_scheduler.simulate_rows_on_gpu(job, params, runs, first_row=first_row, progress=progress)
    return simulate_rows_on_cpu(job, params, runs, first_row=first_row, jobs=jobs, cluster=cluster, progress=progress)


def simulate_rows_separately(
    job: SimulationSpec,
    params: Any,
    sizes: Sequence[int],
    first: int,
    *,
    jobs: int | None = None,
    cluster: Executor | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[FloatArray]:
    """Regrets of every row on instances of its own, `sizes[row]` of them, one row's after the other's from `first` on.

    A GPU plays all rows on all of these instances, because it plays many jobs in the time of one, and keeps its own.
    """
    starts = np.cumsum([first, *sizes])
    ranges = [range(int(a), int(b)) for a, b in pairwise(starts)]
    if job.device == "gpu":
        whole = simulate_rows(job, params, range(first, int(starts[-1])))
        if progress:
            progress(sum(sizes))
        return [whole[row, part.start - first : part.stop - first] for row, part in enumerate(ranges)]
    params = copy_read_only(params)
    check_regret_memory(sum(sizes) * len(job.at or (0,)))
    parts = [
        SimulationTask(params[row : row + 1], row, part, allocate_regrets(1, len(part), len(job.at or (0,))))
        for row, part in enumerate(ranges)
    ]
    with open_executor(cluster, jobs) as place:
        run_tasks(job, parts, place, progress)
    return [part.out[0] for part in parts]
