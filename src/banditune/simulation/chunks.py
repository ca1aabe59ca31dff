"""Simulation tasks, and the chunks into which they are cut. Chunks grow where handing one over takes time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from banditune.core.arrays import FloatArray
from banditune.simulation.executor import Chunk, ChunkResult, Executor
from banditune.simulation.instances import BLOCK_SIZE
from banditune.simulation.spec import SimulationSpec

ROUNDS_PER_CHUNK = 1 << 22
"""Rounds in one piece, fewer where arms have features: short enough for a progress bar, long enough to hide its cost."""


MAX_REGRETS_PER_CHUNK = 1 << 17
"""Regrets in one piece, at most: a megabyte."""


class SimulationTask(NamedTuple):
    """Rows of parameters to be played on instances `runs`, and where their regrets go."""

    params: FloatArray
    first_row: int
    runs: range
    out: FloatArray


class PendingChunk(NamedTuple):
    """A piece of a part in flight, and how often it lost its worker."""

    ticket: int
    part: SimulationTask
    piece: Chunk
    lost: int = 0


class ChunkSizer:
    """How large pieces should be, learnt from those that came back: the answer does not depend on it."""

    def __init__(self, job: SimulationSpec, cluster: Executor, parts: int) -> None:
        self.job, self.cluster = job, cluster
        self.share = max(1, cluster.workers // parts)
        self.rounds = ROUNDS_PER_CHUNK / (1 + 2 * job.problem.dims)
        self.played = self.took = 0.0

    def pieces(self, parts: Sequence[SimulationTask]) -> Iterator[PendingChunk]:
        """Cut the parts into pieces, so that every worker has some; small ones stay within a block of instances."""
        ticket = 0
        for part in parts:
            first = part.runs.start
            while first < part.runs.stop:
                piece = Chunk(part.params, part.first_row, range(first, self.stop(part, first)))
                yield PendingChunk(ticket, part, piece)
                ticket, first = ticket + 1, piece.runs.stop

    def stop(self, part: SimulationTask, first: int) -> int:
        """Where a piece that begins with run `first` ends."""
        most = (
            max(BLOCK_SIZE, MAX_REGRETS_PER_CHUNK // len(part.params) // part.out.shape[2])
            if self.cluster.seconds
            else BLOCK_SIZE
        )
        fair = -(-len(part.runs) // self.share)
        size = max(1, min(most, int(self.rounds / max(1, len(part.params) * self.job.horizon)), fair))
        end = first + size
        border = end // BLOCK_SIZE * BLOCK_SIZE if size >= BLOCK_SIZE else first // BLOCK_SIZE * BLOCK_SIZE + BLOCK_SIZE
        return min(end, border, part.runs.stop)

    def learn(self, played: ChunkResult) -> None:
        """Make pieces longer where handing one over takes time."""
        self.played += played.regrets.shape[0] * played.regrets.shape[1] * self.job.horizon
        self.took += played.seconds
        if self.cluster.seconds and self.took:
            self.rounds = max(self.rounds, self.cluster.seconds * self.played / self.took)
