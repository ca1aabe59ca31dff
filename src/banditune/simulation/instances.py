"""Draws the blocks of problem instances that a seed determines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditune.core.arrays import FloatArray, copy_read_only
from banditune.core.errors import InvalidRequest, MissingDependency, SimulationError
from banditune.core.problem import Instances, Problem
from banditune.simulation import loop
from banditune.simulation.memory import USABLE_MEMORY_SHARE, check_memory, measure_free_memory


def check_instance_memory(problem: Problem) -> None:
    """Check that a block of instances fits into memory three times: drawn, converted and simulated."""
    large = 3 * 8.0 * BLOCK_SIZE * problem.arms * (1 + problem.dims)
    if large <= USABLE_MEMORY_SHARE * measure_free_memory():
        return
    are_fixed = getattr(problem, "features", None) is not None
    size = 3 * 8.0 * BLOCK_SIZE * problem.arms if are_fixed or _has_shared_features(problem) else large
    check_memory(f"{BLOCK_SIZE} instances of the problem {problem.name!r}", size, "use fewer arms or features")


def _has_shared_features(problem: Problem) -> bool:
    """Return whether all instances have the same features; False, without a check, if two instances take long to draw."""
    if problem.arms * problem.dims > 1e6:
        return False
    features = problem.sample(2, np.random.default_rng(0)).features
    return features is None or np.ndim(features) == 2 or len(features) == 1


BLOCK_SIZE = 256
"""The number of instances in a block. Instances are drawn in blocks; block b depends only on the seed and b."""


def draw_instances(problem: Problem, seed: int, block: int) -> Instances:
    """Draw a block of instances."""
    try:
        sample = (
            problem.sample_keyed(compute_block_keys(seed, block))
            if problem.is_keyed
            else problem.sample(BLOCK_SIZE, make_block_rng(seed, block))
        )
        means = copy_read_only(sample.means)
        features = arrange_features(sample.features, problem)
    except (InvalidRequest, MissingDependency):
        raise
    except Exception as error:
        raise SimulationError(
            f"`sample(size, rng)` of the problem {problem.name!r} failed: {type(error).__name__}: {error}."
        ) from error
    if means.shape != (BLOCK_SIZE, problem.arms) or not np.isfinite(means).all():
        returned = f"shape {means.shape}" if means.shape != (BLOCK_SIZE, problem.arms) else "some that are not finite"
        raise SimulationError(
            f"`sample(size, rng)` of the problem {problem.name!r} must return finite means of shape (size, "
            f"{problem.arms}), but for size={BLOCK_SIZE} it returned {returned}."
        )
    expected = (features.shape[0], problem.dims, problem.arms)
    if features.shape != expected or features.shape[0] not in (1, BLOCK_SIZE) or not np.isfinite(features).all():
        raise SimulationError(
            f"`sample(size, rng)` of the problem {problem.name!r} must return finite features of shape (size, "
            f"{problem.arms}, {problem.dims}) or (1, {problem.arms}, {problem.dims}), but it returned features of shape "
            f"{np.shape(np.array(sample.features))}."
        )
    return Instances(means, features)


def make_block_rng(seed: int, block: int) -> np.random.Generator:
    """Make the generator of a block of instances."""
    sequence = np.random.SeedSequence(seed, spawn_key=(block & 0xFFFFFFFF, block >> 32))
    return np.random.Generator(np.random.Philox(sequence))


def compute_block_keys(seed: int, block: int) -> NDArray[np.int64]:
    """Compute the keys of the instances of a block, a row each."""
    runs = range(block * BLOCK_SIZE, (block + 1) * BLOCK_SIZE)
    return np.array([loop.compute_instance_key(seed, run) for run in runs], np.int64)  # type: ignore[no-untyped-call]


def arrange_features(features: Any, problem: Problem) -> FloatArray:
    """Arrange features as scalar code reads them: (instances, dims, arms), adjacent in loops over arms."""
    if features is None:
        return copy_read_only(np.zeros((1, 0, problem.arms)))
    table = np.array(features, np.float64)
    return copy_read_only(np.swapaxes(table[None] if table.ndim == 2 else table, -1, -2))


def split_by_block(runs: range) -> Iterator[tuple[int, range]]:
    """Split runs by their blocks of instances."""
    for block in range(runs.start // BLOCK_SIZE, -(-runs.stop // BLOCK_SIZE)):
        yield block, range(max(runs.start, block * BLOCK_SIZE), min(runs.stop, (block + 1) * BLOCK_SIZE))


def locate_in_block(block: int, runs: range) -> slice:
    """Locate runs in their block."""
    return slice(runs.start - block * BLOCK_SIZE, runs.stop - block * BLOCK_SIZE)


def draw_instance_means(problem: Problem, seed: int, runs: range) -> FloatArray:
    """Draw the mean rewards of the instances of these runs: (runs, arms)."""
    return np.concatenate(
        [
            draw_instances(problem, seed, block).means[locate_in_block(block, part)]
            for block, part in split_by_block(runs)
        ]
    )


def slice_instances(block: Instances, where: slice) -> tuple[FloatArray, FloatArray]:
    """Slice means and features of a block."""
    assert block.features is not None
    return block.means[where], block.features[where] if len(block.features) > 1 else block.features


SEARCH_INSTANCE_LIMIT = 2**40
"""The number of the first validation instance. Searches use smaller numbers, so the two never overlap."""
