"""Simulates parameter rows on an NVIDIA GPU, with the same instances, streams and scalar source as the CPU."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import groupby

import numpy as np
from numba import cuda

from banditune.core.arrays import FloatArray, freeze_options
from banditune.core.errors import BanditTuneError, SimulationError
from banditune.core.messages import Setting
from banditune.core.problem import Instances
from banditune.core.scalar import is_package_code
from banditune.simulation import bind, instances, kernel_selection, memory, scheduler
from banditune.simulation.gpu import gpu_memory
from banditune.simulation.gpu.gpu_memory import ChunkBuffers, GpuMemoryPlan, configure_launch
from banditune.simulation.gpu.launch_plan import compile_launch_plan, plan_launch, select_row_dtype
from banditune.simulation.problem_checks import check_policy_and_problem
from banditune.simulation.spec import SimulationSpec, describe_spec

_checked_specs: deque[SimulationSpec] = deque(maxlen=4)
"""The last specs whose policies and problems passed the checks."""


def simulate_rows_on_gpu(
    spec: SimulationSpec,
    params: FloatArray,
    runs: range,
    *,
    first_row: int = 0,
    progress: Callable[[int], None] | None = None,
    dtype: str | None = None,
) -> FloatArray:
    """Simulate every row of `params` on instances `runs`, as `dispatch.simulate_rows` does.

    Neighbouring rows with the same code and float type share a launch. If a `dtype` is given, all rows have it.
    """
    if not any(spec is checked for checked in tuple(_checked_specs)):  # other threads may simulate, too
        check_policy_and_problem(spec)
        check_first_run_on_cpu(spec, params, runs, first_row)
        _checked_specs.append(spec)
    regrets = []
    for shortcut, alike_rows in kernel_selection.group_alike_rows(replace(spec, device="gpu"), params):
        dtypes = {
            row: dtype or select_row_dtype(kernel_selection.set_shortcut(spec, shortcut), params[row])
            for row in alike_rows
        }
        for row_dtype, rows in groupby(alike_rows, dtypes.__getitem__):
            first, *others = rows
            part = params[first : first + 1 + len(others)]
            regrets.append(
                _simulate_alike_rows(
                    kernel_selection.set_shortcut(spec, shortcut), part, runs, first_row + first, progress, row_dtype
                )
            )
    return regrets[0] if len(regrets) == 1 else np.concatenate(regrets)


def check_first_run_on_cpu(spec: SimulationSpec, params: FloatArray, runs: range, first_row: int) -> None:
    """Simulate one run of a custom policy on the CPU, where comparisons with NaN and wrong indices are errors."""
    if any(not is_package_code(getattr(spec.policy, name)) for name in bind.POLICY_SLOTS):
        scheduler.simulate_rows_on_cpu(
            replace(spec, device="cpu"), params[:1], runs[:1], first_row=first_row, workers=1
        )


def _simulate_alike_rows(
    spec: SimulationSpec,
    params: FloatArray,
    runs: range,
    first_row: int,
    progress: Callable[[int], None] | None,
    dtype: str | None,
) -> FloatArray:
    """Simulate rows in chunks, several at a time."""
    out = memory.allocate_regrets(len(params), len(runs), len(spec.checkpoints or (0,)))
    with translate_gpu_errors(spec):
        simulator = GpuSimulator(spec, params, first_row, dtype)
        max_runs = simulator.memory_plan.max_runs
        free = deque(
            simulator.memory_plan.allocate_buffers(len(runs))
            for _ in range(min(gpu_memory.CHUNKS_IN_FLIGHT, -(-len(runs) // max_runs)))
        )
    in_flight: deque[tuple[range, ChunkBuffers]] = deque()
    remaining = runs
    while remaining or in_flight:
        if remaining and free:
            chunk, remaining = remaining[:max_runs], remaining[max_runs:]
            in_flight.append((chunk, free.popleft()))
            with translate_gpu_errors(spec):
                simulator.launch(*in_flight[-1])
        else:
            chunk, buffers = in_flight.popleft()
            with translate_gpu_errors(spec):
                out[:, chunk.start - runs.start : chunk.stop - runs.start] = simulator.collect(chunk, buffers)
            free.append(buffers)
            if progress:
                progress(len(params) * len(chunk))
    return out


class GpuSimulator:
    """A compiled kernel, and the data that all of its chunks need on the GPU."""

    def __init__(self, spec: SimulationSpec, params: FloatArray, first_row: int, dtype: str | None) -> None:
        self.spec, self.params, self.first_row = spec, params, first_row
        self.plan = plan_launch(spec, dtype)
        self.kernel = compile_launch_plan(spec, self.plan)
        checkpoints = np.array(spec.checkpoints or (spec.horizon,), np.int64)
        self.memory_plan = GpuMemoryPlan(spec, self.plan, len(params), len(checkpoints))
        self.draw = make_instance_drawer(spec)
        arms, dims = spec.problem.arms, spec.problem.dims
        inputs = (spec.problem.options(), params, spec.policy.options(arms, dims, spec.horizon))
        # An array of length 0 has no address on a GPU.
        self.options, self.values, self.policy_options = (
            cuda.to_device(freeze_options(numbers if len(numbers) else (0.0,))) for numbers in inputs
        )
        self.steps = cuda.to_device(checkpoints)

    def launch(self, chunk: range, buffers: ChunkBuffers) -> None:
        """Launch a chunk."""
        spec = self.spec
        drawn_instances = self.draw(chunk)
        means = buffers.means[: len(chunk)]
        means.copy_to_device(drawn_instances.means, stream=buffers.stream)
        if spec.problem.dims:
            buffers.features[: len(chunk)].copy_to_device(drawn_instances.features, stream=buffers.stream)
        self.memory_plan.predraw_rewards(buffers, chunk, self.options)
        run_count = len(self.params) * len(chunk)
        first_noise = 1 + self.first_row if not spec.common_random_numbers else 0
        threads = run_count * self.plan.threads_per_run
        configure_launch(self.kernel, threads, self.plan.threads_per_block, buffers.stream)(
            means, buffers.features, spec.seed, chunk.start, self.options, self.values, self.policy_options, spec.horizon,
            first_noise, self.steps, spec.regret == "realised", buffers.predrawn, buffers.regrets,
        )  # fmt: skip

    def collect(self, chunk: range, buffers: ChunkBuffers) -> FloatArray:
        """Wait for a chunk. Raise an error if one of its runs failed."""
        regrets: FloatArray = np.swapaxes(buffers.regrets[: len(chunk)].copy_to_host(stream=buffers.stream), 0, 1)
        buffers.stream.synchronize()
        check_gpu_regrets(self.spec, self.params, chunk, regrets, self.first_row)
        return regrets


def make_instance_drawer(spec: SimulationSpec) -> Callable[[range], Instances]:
    """Make a function that draws the instances of runs, and caches the last blocks."""

    @lru_cache(maxsize=2)
    def draw_block(block: int) -> Instances:
        block_instances = instances.draw_instances(spec.problem, spec.seed, block)
        assert block_instances.features is not None
        spec.policy.check(block_instances.features, spec.horizon)
        return block_instances

    def draw(runs: range) -> Instances:
        parts = [
            instances.slice_instances(draw_block(block), instances.locate_in_block(block, part_runs))
            for block, part_runs in instances.split_by_block(runs)
        ]
        features = [np.broadcast_to(features, (len(means), *features.shape[1:])) for means, features in parts]
        return Instances(np.concatenate([means for means, _ in parts]), np.concatenate(features))

    return draw


def check_gpu_regrets(
    spec: SimulationSpec, params: FloatArray, runs: range, regrets: FloatArray, first_row: int
) -> None:
    """Raise an error for the first failed run. It is simulated again on the CPU, which reports step and reason."""
    failures = np.argwhere(np.isnan(regrets[:, :, 0]).T)
    if len(failures):
        run, row = map(int, failures[0])
        run += runs.start
        scheduler.simulate_rows_on_cpu(
            replace(spec, device="cpu"), params[row : row + 1], range(run, run + 1), first_row=first_row + row
        )
        raise SimulationError(
            "{} failed in run {} with parameters {} (seed={}, horizon={}) on the GPU, but not on the CPU; use {}.",
            *(describe_spec(spec), run, params[row].tolist(), spec.seed, spec.horizon, Setting("device", "cpu")),
        )


@contextmanager
def translate_gpu_errors(spec: SimulationSpec) -> Iterator[None]:
    """Translate errors of the GPU."""
    try:
        yield
    except BanditTuneError:
        raise
    except Exception as error:
        lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
        message = lines[0] if lines else type(error).__name__
        raise SimulationError(
            "the GPU stopped while it simulated {}: {}; if the policy or the problem is custom, simulate it with "
            "{}, which checks every index.",
            *(describe_spec(spec), message, Setting("device", "cpu")),
        ) from error
