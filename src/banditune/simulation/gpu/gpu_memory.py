"""Plans the GPU's memory: the number of runs in a chunk, their buffers, and whether rewards are predrawn."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import config, cuda

from banditune.core.errors import InvalidRequest
from banditune.simulation import compilation
from banditune.simulation.devices import is_cuda_simulated
from banditune.simulation.gpu import cuda_kernels
from banditune.simulation.gpu.cuda_targets import GPU_COMPILE_LOCK, PREDRAW_TARGET
from banditune.simulation.gpu.launch_plan import LaunchPlan
from banditune.simulation.spec import SimulationSpec, describe_spec

THREADS_PER_CHUNK = 1 << 20
"""The number of threads in a chunk: a few times as many as a GPU runs at once, so that progress is visible."""


CHUNKS_IN_FLIGHT = 16
"""The number of chunks in flight. The GPU is busy while the last runs of a chunk, which may be long, end."""


PREDRAW_THREADS_PER_BLOCK = 256
"""The number of threads in a block that predraws rewards."""


MAX_RUNS_PER_CHUNK = 1 << 15
"""The largest number of runs in a chunk. The height of a grid of blocks is limited to twice this number."""


class ChunkBuffers(NamedTuple):
    """A stream of the GPU and memory for a chunk, which are reused.

    They are reused because allocating or freeing memory would wait for all chunks in flight.
    """

    stream: Any
    means: Any
    features: Any
    predrawn: Any
    regrets: Any


def configure_launch(kernel: Any, threads: int, block: int, stream: Any, runs: int = 1) -> Any:
    """Configure a kernel with a grid of this many threads for each run, without the warning that a grid is small."""
    with GPU_COMPILE_LOCK:
        before = config.CUDA_LOW_OCCUPANCY_WARNINGS
        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        try:
            return kernel[(-(-threads // block), runs), block, stream]
        finally:
            config.CUDA_LOW_OCCUPANCY_WARNINGS = before


class GpuMemoryPlan:
    """Plans the GPU's memory: the largest number of runs in a chunk, and whether rewards are predrawn.

    With common random numbers all rows read the same rewards of an instance. Predrawn rewards are drawn once, without
    divergence. This is faster unless there are far fewer rows than arms. For warp versions rewards are always predrawn.
    If they were compiled into these kernels, they could differ in the last bit, but regrets must not depend on the other
    rows of a request.
    """

    def __init__(self, spec: SimulationSpec, plan: LaunchPlan, rows: int, checkpoints: int) -> None:
        arms, dims = spec.problem.arms, spec.problem.dims
        self.spec, self.rows, self.checkpoints = spec, rows, checkpoints
        free = measure_free_gpu_memory() // 2 // CHUNKS_IN_FLIGHT
        size = 8 * (arms * (1 + dims) + rows * checkpoints)
        table = 8 * arms * spec.horizon
        full_chunk_runs = -(-THREADS_PER_CHUNK // (rows * plan.threads_per_run))
        with_table = free // (size + table)
        is_faster = 4 * rows >= arms and 4 * with_table >= full_chunk_runs
        plays_by_warps = plan.threads_per_run > 1
        can_draw_ahead = plan.reads_rewards and spec.common_random_numbers and with_table >= 1
        self.draws_ahead = can_draw_ahead and (plays_by_warps or is_faster)
        self.max_runs = min(free // (size + table * self.draws_ahead), full_chunk_runs, MAX_RUNS_PER_CHUNK)
        self.kernel: Any = None
        if self.max_runs < 1:
            raise InvalidRequest(
                f"a run of every value must fit into 1/{2 * CHUNKS_IN_FLIGHT} of the GPU's free memory, but it needs "
                f"{size / 2**20:,.1f} of {free / 2**20:,.1f} MiB; use fewer values, checkpoints or arms.",
                argument="values",
                code="too-large",
            )
        if self.draws_ahead:
            with compilation.translate_compile_errors(describe_spec(spec)), GPU_COMPILE_LOCK:
                self.kernel = compilation.compile_kernel(
                    cuda_kernels.predraw_rewards, {"draw_reward": spec.problem.reward}, PREDRAW_TARGET
                )

    def allocate_buffers(self, runs: int) -> ChunkBuffers:
        """Allocate the buffers of a chunk."""
        size = min(self.max_runs, runs)
        arms, dims, horizon = self.spec.problem.arms, self.spec.problem.dims, self.spec.horizon
        return ChunkBuffers(
            cuda.stream(),
            cuda.device_array((size, arms)),
            cuda.device_array((size, dims, arms) if dims else (1, 0, arms)),
            cuda.device_array((size, arms, horizon) if self.draws_ahead else (1, 1, 1)),
            cuda.device_array((size, self.rows, self.checkpoints)),
        )

    def predraw_rewards(self, buffers: ChunkBuffers, runs: range, options: Any) -> None:
        """Draw the rewards of some runs, if rewards are predrawn."""
        if self.draws_ahead:
            pulls = self.spec.problem.arms * self.spec.horizon
            kernel = configure_launch(self.kernel, pulls, PREDRAW_THREADS_PER_BLOCK, buffers.stream, len(runs))
            kernel(buffers.means, self.spec.seed, runs.start, options, buffers.predrawn)


def measure_free_gpu_memory() -> int:
    """Measure the free bytes of the GPU."""
    return 1 << 30 if is_cuda_simulated() else int(cuda.current_context().get_memory_info().free)
