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


def select_device(spec: SimulationSpec, device: Any) -> str:
    """Select "cpu" or "gpu" for a spec. "auto" becomes "gpu" if a GPU can be used and a run fits into its memory."""
    resolved = resolve_device(device)
    if resolved == "cpu" or device == "gpu":
        return resolved
    from banditune.simulation.gpu.launch_plan import plan_launch

    try:
        plan_launch(spec)
    except InvalidRequest:
        return "cpu"
    return "gpu"


def simulate_rows(
    spec: SimulationSpec,
    params: Any,
    runs: range,
    *,
    first_row: int = 0,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int], None] | None = None,
) -> FloatArray:
    """Simulate every row of `params` on instances `runs`. Return regrets as an array (rows, runs, checkpoints).

    With independent noise, the noise streams of the rows are numbered from `first_row` on. `progress` is called with the
    number of runs that were just finished. Without an `executor`, `workers` threads are used.
    """
    params = copy_read_only(params)
    if spec.device == "gpu":
        from banditune.simulation.gpu import gpu_scheduler

        return gpu_scheduler.simulate_rows_on_gpu(spec, params, runs, first_row=first_row, progress=progress)
    return simulate_rows_on_cpu(
        spec, params, runs, first_row=first_row, workers=workers, executor=executor, progress=progress
    )


def simulate_rows_separately(
    spec: SimulationSpec,
    params: Any,
    sizes: Sequence[int],
    first: int,
    *,
    workers: int | None = None,
    executor: Executor | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[FloatArray]:
    """Simulate every row on separate instances: `sizes[row]` of them, one row after the other from `first` on.

    A GPU simulates all rows on all of these instances, because this takes no longer. Each row keeps its own part.
    """
    starts = np.cumsum([first, *sizes])
    ranges = [range(int(a), int(b)) for a, b in pairwise(starts)]
    if spec.device == "gpu":
        all_regrets = simulate_rows(spec, params, range(first, int(starts[-1])))
        if progress:
            progress(sum(sizes))
        return [all_regrets[row, runs.start - first : runs.stop - first] for row, runs in enumerate(ranges)]
    params = copy_read_only(params)
    check_regret_memory(sum(sizes) * len(spec.checkpoints or (0,)))
    tasks = [
        SimulationTask(params[row : row + 1], row, runs, allocate_regrets(1, len(runs), len(spec.checkpoints or (0,))))
        for row, runs in enumerate(ranges)
    ]
    with open_executor(executor, workers) as opened:
        run_tasks(spec, tasks, opened, progress)
    return [task.out[0] for task in tasks]
