"""Simulates chunks of one specification in this process, with a compiled kernel and the last blocks of instances."""

from __future__ import annotations

import time
from collections.abc import Callable
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
"""A stop flag that is never set. It is writable, because kernels are compiled for writable flags."""


PULLS_POSITION = 13
"""The position of the pulls of every arm among the arguments of a kernel."""


class Simulator:
    """A compiled spec, ready to simulate. Many threads may use it at the same time."""

    def __init__(self, spec: SimulationSpec) -> None:
        self.spec = spec
        self.kernel, self.floats, self.integers = self._load_kernel()
        self.checkpoints = np.array(spec.checkpoints or (spec.horizon,), np.int64)
        self.problem_options = copy_read_only(spec.problem.options())
        self.policy_options = freeze_options(spec.policy.options(spec.problem.arms, spec.problem.dims, spec.horizon))
        self.draw_cached_block = lru_cache(maxsize=4)(self._draw_block)
        self._compile_kernel()

    def _load_kernel(self) -> tuple[Callable[..., Any], int, int]:
        """Load the kernel, with the numbers of floats and integers that a run needs."""
        return select_kernel(self.spec)

    def _compile_kernel(self) -> None:
        """Compile now. An error then names the policy, and no thread compiles a second time."""
        arms, dims, width = self.spec.problem.arms, self.spec.problem.dims, max(1, len(self.spec.policy.parameters))
        sample = Chunk(copy_read_only(np.zeros((1, width))), 0, range(1))
        means, features = copy_read_only(np.zeros((1, arms))), copy_read_only(np.zeros((1, dims, arms)))
        numbers = np.empty((1, 1, 1)), np.empty(5), np.zeros(1, np.int64)
        compile_signature(
            self.kernel, self._make_arguments(sample, means, features, *numbers), describe_spec(self.spec)
        )

    def _draw_block(self, block: int) -> Instances:
        instances = draw_instances(self.spec.problem, self.spec.seed, block)
        assert instances.features is not None
        self.spec.policy.check(instances.features, self.spec.horizon)
        return instances

    def simulate_chunk(self, chunk: Chunk, stop: IntArray) -> ChunkResult:
        """Simulate a chunk, block by block, until `stop` is set."""
        start = time.perf_counter()
        regrets = np.empty((len(chunk.params), len(chunk.runs), len(self.checkpoints)))
        failure = np.zeros(5)
        for block, part in split_by_block(chunk.runs):
            means, features = slice_instances(self.draw_cached_block(block), locate_in_block(block, part))
            results = np.empty((len(chunk.params), len(part), len(self.checkpoints)))
            block_chunk = chunk._replace(runs=part)
            arguments = self._make_arguments(block_chunk, means, features, results, failure, stop)
            try:
                self.kernel(*arguments)
            except Exception as error:
                function_name = NAN_ERROR_FUNCTIONS.get(str(error)) if isinstance(error, FloatingPointError) else None
                if function_name is None:
                    raise SimulationError(describe_exception(self.spec, error)) from error
                # `update` is called after the pull of its step was counted.
                pulls = arguments[PULLS_POSITION]
                failure[:3] = (
                    NAN_COMPARED,
                    pulls.sum() - (function_name == "update"),
                    list(NAN_ERROR_FUNCTIONS.values()).index(function_name),
                )
            before = part.start - chunk.runs.start
            regrets[:, before : before + len(part)] = results
            if failure[0]:
                failure[4] += before
                break
        return ChunkResult(regrets, failure, time.perf_counter() - start)

    def _make_arguments(
        self,
        chunk: Chunk,
        means: FloatArray,
        features: FloatArray,
        to: FloatArray,
        failure: FloatArray,
        stop: NDArray[Any],
    ) -> tuple[Any, ...]:
        spec, arms = self.spec, self.spec.problem.arms
        scratch = (
            allocate_aligned(self.floats),
            np.zeros(self.integers, np.int64),
            np.zeros(arms, np.int64),
            np.zeros(arms),
            np.zeros((3, 4), np.int64),
        )
        first_noise = 1 + chunk.first_row if not spec.common_random_numbers else 0
        return (
            means,
            features,
            spec.seed,
            chunk.runs.start,
            self.problem_options,
            chunk.params,
            self.policy_options,
            spec.horizon,
            first_noise,
            self.checkpoints,
            spec.regret == "realised",
            *scratch,
            to,
            failure,
            stop,
        )


def make_checked_simulator(spec: SimulationSpec) -> Any:
    """Make the simulator of a spec in this process, after the checks of custom policies and problems."""
    check_instance_memory(spec.problem)
    check_policy_and_problem(spec)
    return _make_simulator(spec)


def compile_spec(spec: SimulationSpec) -> None:
    """Compile a spec for other processes, which find the kernel on disk. No instance is drawn."""
    check_instance_memory(spec.problem)
    _make_simulator(spec)


def _make_simulator(spec: SimulationSpec) -> Any:
    return spec.policy.make_simulator(spec) if spec.policy.is_external else Simulator(spec)
