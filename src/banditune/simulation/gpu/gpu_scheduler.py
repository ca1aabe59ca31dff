"""Simulates parameter rows on an NVIDIA GPU, chunk by chunk, with the same instances, streams and scalar source as the CPU."""

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
from banditune.core.errors import InvalidRequest, SimulationError
from banditune.core.problem import Instances
from banditune.core.scalar import is_package_code
from banditune.simulation import bind, instances, kernel_selection, memory, scheduler, spec
from banditune.simulation.gpu import gpu_memory
from banditune.simulation.gpu.gpu_memory import ChunkBuffers, GpuMemoryPlan, configure_launch
from banditune.simulation.gpu.launch_plan import compile_launch_plan, plan_launch, select_row_dtype
from banditune.simulation.problem_checks import check_policy_and_problem
from banditune.simulation.spec import SimulationSpec

_checked_specs: deque[SimulationSpec] = deque(maxlen=4)
"""The last jobs whose problems were seen to keep what they promise."""


def simulate_rows_on_gpu(
    job: SimulationSpec,
    params: FloatArray,
    runs: range,
    *,
    first_row: int = 0,
    progress: Callable[[int], None] | None = None,
    precision: str | None = None,
) -> FloatArray:
    """Regrets of every row of `params` on instances `runs`, an array (rows, runs, checkpoints), as from `dispatch.simulate_rows`.

    Neighbouring rows that are played alike and in one precision are played together; with a `precision`, all rows have it.
    """
    if not any(job is one for one in tuple(_checked_specs)):  # other threads may play, too
        check_policy_and_problem(job)
        check_first_run_on_cpu(job, params, runs, first_row)
        _checked_specs.append(job)
    found = []
    for shortcut, alike in kernel_selection.group_alike_rows(replace(job, device="gpu"), params):
        kinds = {
            row: precision or select_row_dtype(kernel_selection.set_shortcut(job, shortcut), params[row])
            for row in alike
        }
        for kind, rows in groupby(alike, kinds.__getitem__):
            first, *others = rows
            part = params[first : first + 1 + len(others)]
            found.append(
                _simulate_alike_rows(
                    kernel_selection.set_shortcut(job, shortcut), part, runs, first_row + first, progress, kind
                )
            )
    return found[0] if len(found) == 1 else np.concatenate(found)


def check_first_run_on_cpu(job: SimulationSpec, params: FloatArray, runs: range, first_row: int) -> None:
    """Play one run of a user's policy on the CPU, where a comparison with NaN and a stray index are errors."""
    if any(not is_package_code(getattr(job.policy, name)) for name in bind.POLICY_SLOTS):
        scheduler.simulate_rows_on_cpu(replace(job, device="cpu"), params[:1], runs[:1], first_row=first_row, jobs=1)


def _simulate_alike_rows(
    job: SimulationSpec,
    params: FloatArray,
    runs: range,
    first_row: int,
    progress: Callable[[int], None] | None,
    precision: str | None,
) -> FloatArray:
    """Play rows in pieces, several at a time."""
    out = memory.allocate_regrets(len(params), len(runs), len(job.at or (0,)))
    with translate_gpu_errors(job):
        work = GpuSimulator(job, params, first_row, precision)
        most = work.supply.most
        free = deque(
            work.supply.track(len(runs)) for _ in range(min(gpu_memory.CHUNKS_IN_FLIGHT, -(-len(runs) // most)))
        )
    under_way: deque[tuple[range, ChunkBuffers]] = deque()
    left = runs
    while left or under_way:
        if left and free:
            part, left = left[:most], left[most:]
            under_way.append((part, free.popleft()))
            with translate_gpu_errors(job):
                work.launch(*under_way[-1])
        else:
            part, track = under_way.popleft()
            with translate_gpu_errors(job):
                out[:, part.start - runs.start : part.stop - runs.start] = work.collect(part, track)
            free.append(track)
            if progress:
                progress(len(params) * len(part))
    return out


class GpuSimulator:
    """A kernel that is ready, and what all of its pieces need on the GPU."""

    def __init__(self, job: SimulationSpec, params: FloatArray, first_row: int, precision: str | None) -> None:
        self.job, self.params, self.first_row = job, params, first_row
        self.planned = plan_launch(job, precision)
        self.kernel = compile_launch_plan(job, self.planned)
        at = np.array(job.at or (job.horizon,), np.int64)
        self.supply = GpuMemoryPlan(job, self.planned, len(params), len(at))
        self.drawn = make_instance_drawer(job)
        arms, dims = job.problem.arms, job.problem.dims
        given = (job.problem.options(), params, job.policy.options(arms, dims, job.horizon))
        # An array of no length has no address on a GPU.
        self.options, self.values, self.policy_options = (
            cuda.to_device(freeze_options(numbers if len(numbers) else (0.0,))) for numbers in given
        )
        self.steps = cuda.to_device(at)

    def launch(self, part: range, track: ChunkBuffers) -> None:
        """Send a piece on its way."""
        job = self.job
        drawn = self.drawn(part)
        means = track.means[: len(part)]
        means.copy_to_device(drawn.means, stream=track.stream)
        if job.problem.dims:
            track.features[: len(part)].copy_to_device(drawn.features, stream=track.stream)
        self.supply.draw_ahead(track, part, self.options)
        jobs = len(self.params) * len(part)
        first_noise = 1 + self.first_row if job.noise == "own" else 0
        configure_launch(self.kernel, jobs * self.planned.members, self.planned.block, track.stream)(
            means, track.features, job.seed, part.start, self.options, self.values, self.policy_options, job.horizon,
            first_noise, self.steps, job.regret == "realised", track.paid, track.out,
        )  # fmt: skip

    def collect(self, part: range, track: ChunkBuffers) -> FloatArray:
        """Wait for a piece; complain if a run of it could not go on."""
        found: FloatArray = np.swapaxes(track.out[: len(part)].copy_to_host(stream=track.stream), 0, 1)
        track.stream.synchronize()
        check_gpu_regrets(self.job, self.params, part, found, self.first_row)
        return found


def make_instance_drawer(job: SimulationSpec) -> Callable[[range], Instances]:
    """Draws the instances of runs, and remembers the last block."""

    @lru_cache(maxsize=2)
    def block_of(block: int) -> Instances:
        found = instances.draw_instances(job.problem, job.seed, block)
        assert found.features is not None
        job.policy.check(found.features, job.horizon)
        return found

    def drawn(runs: range) -> Instances:
        parts = [
            instances.slice_instances(block_of(block), instances.locate_in_block(block, some))
            for block, some in instances.split_by_block(runs)
        ]
        features = [np.broadcast_to(features, (len(means), *features.shape[1:])) for means, features in parts]
        return Instances(np.concatenate([means for means, _ in parts]), np.concatenate(features))

    return drawn


def check_gpu_regrets(job: SimulationSpec, params: FloatArray, runs: range, found: FloatArray, first_row: int) -> None:
    """Complain of the first run that could not go on: it is played again on the CPU, which knows where and why."""
    lost = np.argwhere(np.isnan(found[:, :, 0]).T)
    if len(lost):
        at, row = map(int, lost[0])
        at += runs.start
        scheduler.simulate_rows_on_cpu(
            replace(job, device="cpu"), params[row : row + 1], range(at, at + 1), first_row=first_row + row
        )
        raise SimulationError(
            f"{spec.describe_spec(job)} could not go on in run {at} with parameters {params[row].tolist()} (seed={job.seed}, "
            f'horizon={job.horizon}) on the GPU, though it can on the CPU; use device="cpu".'
        )


@contextmanager
def translate_gpu_errors(job: SimulationSpec) -> Iterator[None]:
    """What stops the GPU, as a sentence."""
    try:
        yield
    except (SimulationError, InvalidRequest):
        raise
    except Exception as error:
        lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
        told = lines[0] if lines else type(error).__name__
        raise SimulationError(
            f"the GPU stopped while it played {spec.describe_spec(job)}: {told}; if the policy or the problem is your own, play it "
            'with device="cpu", which checks every index.'
        ) from error
