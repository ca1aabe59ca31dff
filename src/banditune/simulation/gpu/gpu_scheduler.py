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
    precision: str | None = None,
) -> FloatArray:
    """Simulate every row of `params` on instances `runs`, as `dispatch.simulate_rows` does.

    Neighbouring rows with the same code and precision share a launch; with a `precision`, all rows have it.
    """
    if not any(spec is one for one in tuple(_checked_specs)):  # other threads may simulate, too
        check_policy_and_problem(spec)
        check_first_run_on_cpu(spec, params, runs, first_row)
        _checked_specs.append(spec)
    found = []
    for shortcut, alike in kernel_selection.group_alike_rows(replace(spec, device="gpu"), params):
        kinds = {
            row: precision or select_row_dtype(kernel_selection.set_shortcut(spec, shortcut), params[row])
            for row in alike
        }
        for kind, rows in groupby(alike, kinds.__getitem__):
            first, *others = rows
            part = params[first : first + 1 + len(others)]
            found.append(
                _simulate_alike_rows(
                    kernel_selection.set_shortcut(spec, shortcut), part, runs, first_row + first, progress, kind
                )
            )
    return found[0] if len(found) == 1 else np.concatenate(found)


def check_first_run_on_cpu(spec: SimulationSpec, params: FloatArray, runs: range, first_row: int) -> None:
    """Simulate one run of a custom policy on the CPU, where a comparison with NaN and a stray index are errors."""
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
    precision: str | None,
) -> FloatArray:
    """Simulate rows in chunks, several at a time."""
    out = memory.allocate_regrets(len(params), len(runs), len(spec.checkpoints or (0,)))
    with translate_gpu_errors(spec):
        work = GpuSimulator(spec, params, first_row, precision)
        most = work.supply.most
        free = deque(
            work.supply.allocate_buffers(len(runs))
            for _ in range(min(gpu_memory.CHUNKS_IN_FLIGHT, -(-len(runs) // most)))
        )
    under_way: deque[tuple[range, ChunkBuffers]] = deque()
    left = runs
    while left or under_way:
        if left and free:
            part, left = left[:most], left[most:]
            under_way.append((part, free.popleft()))
            with translate_gpu_errors(spec):
                work.launch(*under_way[-1])
        else:
            part, track = under_way.popleft()
            with translate_gpu_errors(spec):
                out[:, part.start - runs.start : part.stop - runs.start] = work.collect(part, track)
            free.append(track)
            if progress:
                progress(len(params) * len(part))
    return out


class GpuSimulator:
    """A compiled kernel, and the data that all of its chunks need on the GPU."""

    def __init__(self, spec: SimulationSpec, params: FloatArray, first_row: int, precision: str | None) -> None:
        self.spec, self.params, self.first_row = spec, params, first_row
        self.planned = plan_launch(spec, precision)
        self.kernel = compile_launch_plan(spec, self.planned)
        at = np.array(spec.checkpoints or (spec.horizon,), np.int64)
        self.supply = GpuMemoryPlan(spec, self.planned, len(params), len(at))
        self.draw = make_instance_drawer(spec)
        arms, dims = spec.problem.arms, spec.problem.dims
        given = (spec.problem.options(), params, spec.policy.options(arms, dims, spec.horizon))
        # An array of no length has no address on a GPU.
        self.options, self.values, self.policy_options = (
            cuda.to_device(freeze_options(numbers if len(numbers) else (0.0,))) for numbers in given
        )
        self.steps = cuda.to_device(at)

    def launch(self, part: range, track: ChunkBuffers) -> None:
        """Launch a chunk."""
        spec = self.spec
        drawn = self.draw(part)
        means = track.means[: len(part)]
        means.copy_to_device(drawn.means, stream=track.stream)
        if spec.problem.dims:
            track.features[: len(part)].copy_to_device(drawn.features, stream=track.stream)
        self.supply.predraw_rewards(track, part, self.options)
        run_count = len(self.params) * len(part)
        first_noise = 1 + self.first_row if not spec.common_random_numbers else 0
        threads = run_count * self.planned.threads_per_run
        configure_launch(self.kernel, threads, self.planned.threads_per_block, track.stream)(
            means, track.features, spec.seed, part.start, self.options, self.values, self.policy_options, spec.horizon,
            first_noise, self.steps, spec.regret == "realised", track.predrawn, track.regrets,
        )  # fmt: skip

    def collect(self, part: range, track: ChunkBuffers) -> FloatArray:
        """Wait for a chunk; raise an error if a run of it failed."""
        found: FloatArray = np.swapaxes(track.regrets[: len(part)].copy_to_host(stream=track.stream), 0, 1)
        track.stream.synchronize()
        check_gpu_regrets(self.spec, self.params, part, found, self.first_row)
        return found


def make_instance_drawer(spec: SimulationSpec) -> Callable[[range], Instances]:
    """Make a function that draws the instances of runs, and caches the last blocks."""

    @lru_cache(maxsize=2)
    def block_of(block: int) -> Instances:
        found = instances.draw_instances(spec.problem, spec.seed, block)
        assert found.features is not None
        spec.policy.check(found.features, spec.horizon)
        return found

    def draw(runs: range) -> Instances:
        parts = [
            instances.slice_instances(block_of(block), instances.locate_in_block(block, some))
            for block, some in instances.split_by_block(runs)
        ]
        features = [np.broadcast_to(features, (len(means), *features.shape[1:])) for means, features in parts]
        return Instances(np.concatenate([means for means, _ in parts]), np.concatenate(features))

    return draw


def check_gpu_regrets(spec: SimulationSpec, params: FloatArray, runs: range, found: FloatArray, first_row: int) -> None:
    """Raise an error for the first failed run. It is simulated again on the CPU, which reports step and reason."""
    lost = np.argwhere(np.isnan(found[:, :, 0]).T)
    if len(lost):
        at, row = map(int, lost[0])
        at += runs.start
        scheduler.simulate_rows_on_cpu(
            replace(spec, device="cpu"), params[row : row + 1], range(at, at + 1), first_row=first_row + row
        )
        raise SimulationError(
            f"{describe_spec(spec)} failed in run {at} with parameters {params[row].tolist()} (seed={spec.seed}, "
            f'horizon={spec.horizon}) on the GPU, though not on the CPU; use device="cpu".'
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
            f"the GPU stopped while it simulated {describe_spec(spec)}: {message}; if the policy or the problem is custom, "
            'simulate it with device="cpu", which checks every index.'
        ) from error
