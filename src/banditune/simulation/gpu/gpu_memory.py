"""Plans the GPU's memory: how many runs a chunk has, their buffers, and whether rewards are drawn ahead."""

from __future__ import annotations

from typing import Any, NamedTuple

from numba import config, cuda

from banditune.core.errors import InvalidRequest
from banditune.simulation import compilation, spec
from banditune.simulation.devices import is_cuda_simulated
from banditune.simulation.gpu import cuda_kernels
from banditune.simulation.gpu.cuda_targets import GPU_COMPILE_LOCK, PREDRAW_TARGET
from banditune.simulation.gpu.launch_plan import LaunchPlan
from banditune.simulation.spec import SimulationSpec

THREADS_PER_CHUNK = 1 << 20
"""Threads in a piece of the work: a few times what fills a GPU, few enough for a progress bar."""


CHUNKS_IN_FLIGHT = 16
"""Pieces under way at a time: so many that the last runs of one, which may be long, keep nothing waiting."""


PREDRAW_THREADS_PER_BLOCK = 256
"""Threads in a block that draws rewards ahead."""


MAX_RUNS_PER_CHUNK = 1 << 15
"""Runs in a piece: a grid of blocks is not higher than twice that."""


class ChunkBuffers(NamedTuple):
    """Where a piece of the work runs: a stream of the GPU and memory for a piece, used again and again.

    Allocating or freeing memory would wait for all that is under way.
    """

    stream: Any
    means: Any
    features: Any
    paid: Any
    out: Any


def configure_launch(kernel: Any, threads: int, block: int, stream: Any, runs: int = 1) -> Any:
    """A kernel with a grid of so many threads, `runs` times over; numba-cuda's warning of small grids is not for users."""
    with GPU_COMPILE_LOCK:
        before = config.CUDA_LOW_OCCUPANCY_WARNINGS
        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        try:
            return kernel[(-(-threads // block), runs), block, stream]
        finally:
            config.CUDA_LOW_OCCUPANCY_WARNINGS = before


class GpuMemoryPlan:
    """Plans the GPU's memory: how many runs a piece has at most, and whether rewards are drawn ahead.

    With shared noise all rows read the same rewards of an instance. Drawn ahead, each is drawn once, by threads that stay
    together; it pays unless there are far fewer rows than arms. For teams they are always drawn ahead: compiled into a
    team's kernel, rewards could differ in the last bit, and regrets must not depend on what else is played.
    """

    def __init__(self, job: SimulationSpec, planned: LaunchPlan, rows: int, checkpoints: int) -> None:
        arms, dims = job.problem.arms, job.problem.dims
        self.job, self.rows, self.checkpoints = job, rows, checkpoints
        free = measure_free_gpu_memory() // 2 // CHUNKS_IN_FLIGHT
        size = 8 * (arms * (1 + dims) + rows * checkpoints)
        table = 8 * arms * job.horizon
        enough = -(-THREADS_PER_CHUNK // (rows * planned.members))
        with_table = free // (size + table)
        pays = 4 * rows >= arms and 4 * with_table >= enough
        together = planned.members > 1
        self.ahead = planned.reads and job.noise == "shared" and with_table >= 1 and (together or pays)
        self.most = min(free // (size + table * self.ahead), enough, MAX_RUNS_PER_CHUNK)
        self.kernel: Any = None
        if self.most < 1:
            raise InvalidRequest(
                f"a run of every value must fit into 1/{2 * CHUNKS_IN_FLIGHT} of the GPU's free memory, but it needs "
                f"{size / 2**20:,.1f} of {free / 2**20:,.1f} MiB; ask for fewer values or checkpoints, or use fewer arms."
            )
        if self.ahead:
            with compilation.translate_compile_errors(spec.describe_spec(job)), GPU_COMPILE_LOCK:
                self.kernel = compilation.compile_kernel(
                    cuda_kernels.predraw_rewards, {"drawn": job.problem.reward}, PREDRAW_TARGET
                )

    def track(self, runs: int) -> ChunkBuffers:
        """Room for a piece."""
        size = min(self.most, runs)
        arms, dims, horizon = self.job.problem.arms, self.job.problem.dims, self.job.horizon
        return ChunkBuffers(
            cuda.stream(),
            cuda.device_array((size, arms)),
            cuda.device_array((size, dims, arms) if dims else (1, 0, arms)),
            cuda.device_array((size, arms, horizon) if self.ahead else (1, 1, 1)),
            cuda.device_array((size, self.rows, self.checkpoints)),
        )

    def draw_ahead(self, track: ChunkBuffers, part: range, options: Any) -> None:
        """Draw the rewards of some runs, if they are drawn ahead."""
        if self.ahead:
            pulls = self.job.problem.arms * self.job.horizon
            kernel = configure_launch(self.kernel, pulls, PREDRAW_THREADS_PER_BLOCK, track.stream, len(part))
            kernel(track.means, self.job.seed, part.start, options, track.paid)


def measure_free_gpu_memory() -> int:
    """Bytes that are free on the GPU."""
    return 1 << 30 if is_cuda_simulated() else int(cuda.current_context().get_memory_info().free)
