"""Simulates chunks of one specification in this process, with a compiled kernel and the last blocks of instances."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditune.core.arrays import FloatArray, IntArray, allocate_aligned, copy_read_only, freeze_options
from banditune.core.errors import SimulationError
from banditune.core.problem import Instances
from banditune.simulation.compilation import compile_signature
from banditune.simulation.executor import Chunk, ChunkResult
from banditune.simulation.failures import describe_exception
from banditune.simulation.instances import (
    check_instance_memory,
    draw_instances,
    locate_in_block,
    slice_instances,
    split_by_block,
)
from banditune.simulation.kernel_selection import select_kernel
from banditune.simulation.loop import NAN_COMPARED
from banditune.simulation.nan_checks import NAN_ERROR_FUNCTIONS
from banditune.simulation.problem_checks import check_policy_and_problem
from banditune.simulation.spec import SimulationSpec, describe_spec

NO_STOP_SIGNAL = np.zeros(1, np.int64)
"""A sign that never says stop. (Not read-only: kernels are compiled for signs that can be set.)"""


PULLS_POSITION = 13
"""Where the pulls of every arm stand among the arguments of a kernel."""


class Simulator:
    """A job ready to play; many threads may use it at once."""

    def __init__(self, job: SimulationSpec) -> None:
        self.job = job
        self.kernel, self.floats, self.integers = select_kernel(job)
        self.at = np.array(job.at or (job.horizon,), np.int64)
        self.problem_options = copy_read_only(job.problem.options())
        self.policy_options = freeze_options(job.policy.options(job.problem.arms, job.problem.dims, job.horizon))
        self.drawn = lru_cache(maxsize=4)(self._drawn)
        self._compile()

    def _compile(self) -> None:
        """Compile now, so that a complaint names the policy and no thread compiles twice."""
        arms, dims, width = self.job.problem.arms, self.job.problem.dims, max(1, len(self.job.policy.parameters))
        sample = Chunk(copy_read_only(np.zeros((1, width))), 0, range(1))
        means, features = copy_read_only(np.zeros((1, arms))), copy_read_only(np.zeros((1, dims, arms)))
        numbers = np.empty((1, 1, 1)), np.empty(5), np.zeros(1, np.int64)
        compile_signature(self.kernel, self._arguments(sample, means, features, *numbers), describe_spec(self.job))

    def _drawn(self, block: int) -> Instances:
        found = draw_instances(self.job.problem, self.job.seed, block)
        assert found.features is not None
        self.job.policy.check(found.features, self.job.horizon)
        return found

    def play(self, piece: Chunk, stop: IntArray) -> ChunkResult:
        """Play a piece, block by block, until `stop` is set."""
        began = time.perf_counter()
        regrets = np.empty((len(piece.params), len(piece.runs), len(self.at)))
        trouble = np.zeros(5)
        for block, within in split_by_block(piece.runs):
            means, features = slice_instances(self.drawn(block), locate_in_block(block, within))
            results = np.empty((len(piece.params), len(within), len(self.at)))
            one = piece._replace(runs=within)
            arguments = self._arguments(one, means, features, results, trouble, stop)
            try:
                self.kernel(*arguments)
            except Exception as error:
                place = NAN_ERROR_FUNCTIONS.get(str(error)) if isinstance(error, FloatingPointError) else None
                if place is None:
                    raise SimulationError(describe_exception(self.job, error)) from error
                # `update` comes after its step's pull was counted.
                pulls = arguments[PULLS_POSITION]
                trouble[:3] = (
                    NAN_COMPARED,
                    pulls.sum() - (place == "update"),
                    list(NAN_ERROR_FUNCTIONS.values()).index(place),
                )
            before = within.start - piece.runs.start
            regrets[:, before : before + len(within)] = results
            if trouble[0]:
                trouble[4] += before
                break
        return ChunkResult(regrets, trouble, time.perf_counter() - began)

    def _arguments(
        self,
        piece: Chunk,
        means: FloatArray,
        features: FloatArray,
        to: FloatArray,
        trouble: FloatArray,
        stop: NDArray[Any],
    ) -> tuple[Any, ...]:
        job, arms = self.job, self.job.problem.arms
        scratch = (allocate_aligned(self.floats), np.zeros(self.integers, np.int64), np.zeros(arms, np.int64), np.zeros(arms),
                   np.zeros((3, 4), np.int64))  # fmt: skip
        first_noise = 1 + piece.first_row if job.noise == "own" else 0
        return (means, features, job.seed, piece.runs.start, self.problem_options, piece.params, self.policy_options,
                job.horizon, first_noise, self.at, job.regret == "realised", *scratch, to, trouble, stop)  # fmt: skip


def make_checked_simulator(job: SimulationSpec) -> Any:
    """Who plays a job in this process, whose problem keeps what it promises."""
    check_instance_memory(job.problem)
    check_policy_and_problem(job)
    return _make_simulator(job)


def compile_spec(job: SimulationSpec) -> None:
    """Have a job compiled, for others to find on disk; nothing of it is drawn."""
    check_instance_memory(job.problem)
    _make_simulator(job)


def _make_simulator(job: SimulationSpec) -> Any:
    return job.policy.player(job) if job.policy.plays_itself else Simulator(job)
