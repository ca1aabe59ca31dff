"""Simulation tasks, and the chunks into which they are cut. Chunks grow if the transfer of a chunk takes long."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from banditune.core.arrays import FloatArray
from banditune.simulation.executor import Chunk, ChunkResult, Executor
from banditune.simulation.instances import BLOCK_SIZE
from banditune.simulation.spec import SimulationSpec

ROUNDS_PER_CHUNK = 1 << 22
"""The number of steps in one chunk, fewer if arms have features. Progress is visible, and the overhead is small."""


MAX_REGRETS_PER_CHUNK = 1 << 17
"""The largest number of regrets in one chunk: a megabyte."""


class SimulationTask(NamedTuple):
    """Rows of parameters to simulate on instances `runs`, and the array for their regrets."""

    params: FloatArray
    first_row: int
    runs: range
    out: FloatArray


class PendingChunk(NamedTuple):
    """A chunk of a task in flight, and the number of times that it lost its worker."""

    ticket: int
    task: SimulationTask
    chunk: Chunk
    losses: int = 0


class ChunkSizer:
    """Chooses sizes of chunks from the times of finished ones. Results do not depend on sizes."""

    def __init__(self, spec: SimulationSpec, executor: Executor, tasks: int) -> None:
        self.spec, self.executor = spec, executor
        self.share = max(1, executor.workers // tasks)
        self.rounds = ROUNDS_PER_CHUNK / (1 + 2 * spec.problem.dims)
        self.rounds_done = self.seconds = 0.0

    def cut_chunks(self, tasks: Sequence[SimulationTask]) -> Iterator[PendingChunk]:
        """Cut tasks into chunks, so that every worker has some. A small chunk is within one block of instances."""
        ticket = 0
        for task in tasks:
            first = task.runs.start
            while first < task.runs.stop:
                chunk = Chunk(task.params, task.first_row, range(first, self.find_chunk_end(task, first)))
                yield PendingChunk(ticket, task, chunk)
                ticket, first = ticket + 1, chunk.runs.stop

    def find_chunk_end(self, task: SimulationTask, first: int) -> int:
        """Find the end of the chunk that begins with run `first`."""
        most = (
            max(BLOCK_SIZE, MAX_REGRETS_PER_CHUNK // len(task.params) // task.out.shape[2])
            if self.executor.chunk_seconds
            else BLOCK_SIZE
        )
        fair = -(-len(task.runs) // self.share)
        size = max(1, min(most, int(self.rounds / max(1, len(task.params) * self.spec.horizon)), fair))
        end = first + size
        border = end // BLOCK_SIZE * BLOCK_SIZE if size >= BLOCK_SIZE else first // BLOCK_SIZE * BLOCK_SIZE + BLOCK_SIZE
        return min(end, border, task.runs.stop)

    def update_size(self, result: ChunkResult) -> None:
        """Make chunks longer if the transfer of one takes long."""
        self.rounds_done += result.regrets.shape[0] * result.regrets.shape[1] * self.spec.horizon
        self.seconds += result.seconds
        if self.executor.chunk_seconds and self.seconds:
            self.rounds = max(self.rounds, self.executor.chunk_seconds * self.rounds_done / self.seconds)
