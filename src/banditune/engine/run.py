"""Plays jobs on threads of the CPU: instances in, regrets out, the same numbers for any threads and any chunking."""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditune.contracts import BadRequest, Fault, Floats, Instances, Play, Policy, Problem
from banditune.engine import loop
from banditune.engine.bind import compile_for, kernel

BLOCK = 256
"""Instances are drawn in whole blocks of this size; block b is a function of the seed and b alone."""

STREAM_VERSION = 1
"""Part of every key of a ledger: raised when the same seed draws other instances, rewards or agents' numbers."""

TASK = 1 << 22
"""Rounds in one task of a thread, fewer where arms have features: short enough for a progress bar, long enough to hide
its cost."""


@dataclass(frozen=True)
class Job:
    """Everything that decides the regrets of a run, except its number."""

    policy: Policy
    problem: Problem
    horizon: int
    seed: int = 0
    regret: str = "expected"
    noise: str = "shared"
    at: tuple[int, ...] = ()
    shortcut: bool = True
    device: str = "cpu"


def shortcut_for(policy: Policy, problem: Problem) -> Play | None:
    """The policy's best shortcut that is exact for this problem."""
    own = (policy.view, policy.start, policy.choose, policy.update)
    for play in policy.plays:
        if problem.per_pull and all(function in own for function in play.stands_for) and play.applies(policy, problem):
            return play
    return None


def slots_for(job: Job) -> tuple[dict[Any, Any], int, int]:
    """What the slots of a loop are filled with for a job, and the floats and integers that it needs for a run."""
    policy, problem = job.policy, job.problem
    shortcut = shortcut_for(policy, problem) if job.shortcut else None
    slots: dict[Any, Any] = {"reward": problem.reward, **dims_of(policy, problem)}
    if shortcut is None:
        floats, integers = policy.memory(problem.arms, problem.dims), 0
        slots |= {name: getattr(policy, name) for name in ("view", "start", "choose", "update")}
        slots |= {"play": loop.play_steps}
    else:
        floats, integers = shortcut.memory(problem.arms, problem.dims)
        integers += problem.arms
        reward_sum = loop.sum_of_words if problem.words else loop.sum_of_rewards
        slots |= {
            "play": loop.play_leaps,
            "advance": shortcut.advance,
            "reward_sum": reward_sum,
            "words": problem.words,
        }
        slots |= shortcut.slots(problem)
    return slots, floats, integers


def kernel_for(job: Job) -> tuple[Callable[..., Any], int, int]:
    """The compiled kernel for a job, and the floats and integers that it needs for a run."""
    slots, floats, integers = slots_for(job)
    return kernel(loop.play_block, slots), floats, integers


def dims_of(policy: Policy, problem: Problem) -> dict[str, Callable[..., Any]]:
    """Slots for the number of features: a constant of the kernel where the policy looks at features."""
    if policy.needs_features:
        return {"known": loop.with_dims, "dims": constant(int(problem.dims))}
    return {"known": loop.with_runtime_dims}


def constant(value: int) -> Callable[[], int]:
    """A function of nothing: what a slot for a number is filled with."""
    return lambda: value


def instances(problem: Problem, seed: int, block: int) -> Instances:
    """Block `block` of the problem's instances."""
    sequence = np.random.SeedSequence(seed, spawn_key=(block & 0xFFFFFFFF, block >> 32))
    try:
        drawn = (
            problem.sample_at(keys_of(seed, block))
            if problem.by_key
            else problem.sample(BLOCK, np.random.Generator(np.random.Philox(sequence)))
        )
        means = read_only(drawn.means)
        features = by_dimension(drawn.features, problem)
    except BadRequest:
        raise
    except Exception as error:
        raise Fault(
            f"`sample(size, rng)` of the problem {problem.name!r} failed: {type(error).__name__}: {error}."
        ) from error
    if means.shape != (BLOCK, problem.arms) or not np.isfinite(means).all():
        raise Fault(
            f"`sample(size, rng)` of the problem {problem.name!r} must return finite means of shape (size, "
            f"{problem.arms}), but for size={BLOCK} it returned shape {means.shape}."
        )
    wanted = (features.shape[0], problem.dims, problem.arms)
    if features.shape != wanted or features.shape[0] not in (1, BLOCK) or not np.isfinite(features).all():
        raise Fault(
            f"`sample(size, rng)` of the problem {problem.name!r} must return finite features of shape (size, "
            f"{problem.arms}, {problem.dims}) or (1, {problem.arms}, {problem.dims}), but it returned features of shape "
            f"{np.shape(np.array(drawn.features))}."
        )
    return Instances(means, features)


def keys_of(seed: int, block: int) -> NDArray[np.int64]:
    """The keys of a block's instances, a row each."""
    runs = range(block * BLOCK, (block + 1) * BLOCK)
    return np.array([loop.instance_key(seed, run) for run in runs], np.int64)  # type: ignore[no-untyped-call]


def by_dimension(features: Any, problem: Problem) -> Floats:
    """Features as scalar code reads them: (instances, dims, arms), so that a loop over arms reads neighbours."""
    if features is None:
        return read_only(np.zeros((1, 0, problem.arms)))
    table = np.array(features, np.float64)
    return read_only(np.swapaxes(table[None] if table.ndim == 2 else table, -1, -2))


def read_only(numbers: Any) -> Floats:
    """A copy that compiled code cannot write to: a policy that tries is refused."""
    array = np.array(numbers, np.float64, order="C")
    array.setflags(write=False)
    return array


def numbers_of(options: Any) -> NDArray[Any]:
    """Options as scalar code reads them; an array is a table, which keeps its type and is not copied."""
    if not isinstance(options, np.ndarray):
        return read_only(options)
    table = np.asarray(options).view()
    table.setflags(write=False)
    return table


def tasks(job: Job, rows: int, runs: range, workers: int) -> Iterator[tuple[int, range]]:
    """Cut the runs into (block, runs within the block) of about `TASK` rounds, and so that every worker has some."""
    rounds = TASK // (1 + 2 * job.problem.dims)
    size = max(1, min(BLOCK, rounds // max(1, rows * job.horizon), -(-len(runs) // workers)))
    for block in range(runs.start // BLOCK, -(-runs.stop // BLOCK)):
        within = range(max(runs.start, block * BLOCK), min(runs.stop, (block + 1) * BLOCK))
        for first in range(within.start, within.stop, size):
            yield block, range(first, min(first + size, within.stop))


class Part(NamedTuple):
    """Rows of parameters to be played on instances `runs`, and where their regrets go."""

    params: Floats
    first_row: int
    runs: range
    out: Floats


def play(
    job: Job,
    params: Any,
    runs: range,
    *,
    first_row: int = 0,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Floats:
    """Regrets of every row of `params` on instances `runs`: an array (rows, runs, checkpoints).

    With own noise, the rows' noise is numbered from `first_row` on. `progress` is told how many runs were just finished.
    """
    params = read_only(params)
    if job.device == "gpu":
        from banditune.engine import gpu

        return gpu.play(job, params, runs, first_row=first_row, progress=progress)
    out = results_array(len(params), len(runs), len(job.at or (0,)))
    play_parts(job, [Part(params, first_row, runs, out)], jobs, progress)
    return out


def play_each(
    job: Job,
    params: Any,
    sizes: Sequence[int],
    first: int,
    *,
    jobs: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Floats]:
    """Regrets of every row on instances of its own, `sizes[row]` of them, one row's after the other's from `first` on.

    A GPU plays all rows on all of these instances, because it plays many jobs in the time of one, and keeps its own.
    """
    starts = np.cumsum([first, *sizes])
    ranges = [range(int(a), int(b)) for a, b in pairwise(starts)]
    if job.device == "gpu":
        whole = play(job, params, range(first, int(starts[-1])))
        if progress:
            progress(sum(sizes))
        return [whole[row, part.start - first : part.stop - first] for row, part in enumerate(ranges)]
    params = read_only(params)
    parts = [
        Part(params[row : row + 1], row, part, results_array(1, len(part), len(job.at or (0,))))
        for row, part in enumerate(ranges)
    ]
    play_parts(job, parts, jobs, progress)
    return [part.out[0] for part in parts]


def play_parts(
    job: Job,
    parts: Sequence[Part],
    jobs: int | None,
    progress: Callable[[int], None] | None,
    done: Callable[[Part, range], None] | None = None,
) -> None:
    """Play parts of the work on all cores.

    `done` is told of regrets that are there, in the calling thread: a part and some of its runs, in order.
    """
    compiled, floats, integers = kernel_for(job)
    arms = job.problem.arms
    at = np.array(job.at or (job.horizon,), np.int64)
    stop = np.zeros(1, np.int64)
    problem_options = read_only(job.problem.options())
    policy_options = numbers_of(job.policy.options(arms, job.problem.dims, job.horizon))

    def arguments(
        part: Part, means: Floats, features: Floats, first: int, to: Floats, trouble: Floats
    ) -> tuple[Any, ...]:
        scratch = (strip(floats), np.zeros(integers, np.int64), np.zeros(arms, np.int64), np.zeros(arms),
                   np.zeros((3, 4), np.int64))  # fmt: skip
        first_noise = 1 + part.first_row if job.noise == "own" else 0
        return (means, features, job.seed, first, problem_options, part.params, policy_options, job.horizon, first_noise,
                at, job.regret == "realised", *scratch, to, trouble, stop)  # fmt: skip

    @lru_cache(maxsize=4)
    def drawn(block: int) -> Instances:
        found = instances(job.problem, job.seed, block)
        assert found.features is not None
        job.policy.check(found.features, job.horizon)
        return found

    def task(part: Part, block: int, within: range) -> Floats:
        means, features = cut(drawn(block), slice(within.start - block * BLOCK, within.stop - block * BLOCK))
        trouble = np.zeros(5)
        results = np.empty((len(part.params), len(within), len(at)))
        try:
            compiled(*arguments(part, means, features, within.start, results, trouble))
        except Exception as error:
            raise Fault(broken(job, error)) from error
        part.out[:, within.start - part.runs.start : within.stop - part.runs.start] = results
        return trouble

    sample = (
        read_only(np.zeros((1, arms))),
        read_only(np.zeros((1, job.problem.dims, arms))),
        0,
        np.empty((1, 1, 1)),
        np.empty(5),
    )
    compile_for(compiled, arguments(parts[0], *sample), who(job))
    workers = jobs or cores()
    pool = ThreadPoolExecutor(min(workers, 256))
    waiting: deque[tuple[Part, range, Future[Floats]]] = deque()

    def next_finished() -> None:
        part, within, result = waiting.popleft()
        finish(job, part, within, result, progress)
        if done:
            done(part, within)

    try:
        for part in parts:
            for block, within in tasks(job, len(part.params), part.runs, max(1, workers // len(parts))):
                if len(waiting) >= 4 * workers:
                    next_finished()
                waiting.append((part, within, pool.submit(task, part, block, within)))
        while waiting:
            next_finished()
    finally:
        # On an error or Ctrl-C the threads leave their kernels at the next run.
        stop[0] = 1
        pool.shutdown(wait=False, cancel_futures=True)


def who(job: Job) -> str:
    """A job's name in a complaint."""
    return f"the policy {job.policy.name!r} on the problem {job.problem.name!r}"


def strip(size: int) -> Floats:
    """Zeros that start where a cache line does: vectors that straddle two are read half as fast."""
    line = 64
    try:
        room = np.zeros(size + line // 8)
    except MemoryError as error:
        raise BadRequest(
            f"a run must fit into memory, but the policy needs {size / 2**27:.1f} GiB for one; use fewer arms or features."
        ) from error
    first = -room.ctypes.data % line // 8
    return room[first : first + size]


def cut(block: Instances, part: slice) -> tuple[Floats, Floats]:
    """Means and features of some instances of a block."""
    assert block.features is not None
    return block.means[part], block.features[part] if len(block.features) > 1 else block.features


def finish(
    job: Job,
    part: Part,
    within: range,
    done: Future[Floats],
    progress: Callable[[int], None] | None,
) -> None:
    """Wait for a task, complain if it had to stop, tell how far we are."""
    trouble = done.result()
    params, first_row = part.params, part.first_row
    if trouble[0] == loop.BAD_REWARD_SOMEWHERE:
        # The plain loop knows the step; if it does not get there, say what is known.
        row, run = int(trouble[3]), within.start + int(trouble[4])
        play(replace(job, shortcut=False), params[row : row + 1], range(run, run + 1), first_row=first_row + row)
    if trouble[0]:
        raise Fault(complaint(job, params, within, trouble))
    if progress:
        progress(len(within) * len(params))


def results_array(*shape: int) -> Floats:
    """Room for the results, or a sentence."""
    try:
        return np.empty(shape)
    except MemoryError as error:
        size = math.prod(shape) * 8 / 2**30
        raise BadRequest(f"the regrets would need {size:,.0f} GiB of memory; ask for fewer runs or values.") from error


def broken(job: Job, error: Exception) -> str:
    """An exception out of a user's code, as a sentence."""
    if isinstance(error, IndexError):
        return (
            f"the policy {job.policy.name!r} or the problem {job.problem.name!r} reached outside its memory; set "
            "NUMBA_DISABLE_JIT=1 to see where."
        )
    if isinstance(error, TypeError) and "None" in str(error):
        return f"`choose` of the policy {job.policy.name!r} must return an arm on every path, but it returned nothing."
    return (
        f"the policy {job.policy.name!r} or the problem {job.problem.name!r} failed: {type(error).__name__}: {error}."
    )


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def complaint(job: Job, params: Floats, within: range, trouble: Floats) -> str:
    """What went wrong inside a kernel, and how to see it again."""
    code, step, culprit, row, run = trouble
    if code == loop.BAD_REWARD_SOMEWHERE:
        return (
            f"a reward must be a finite number, but the problem {job.problem.name!r} pays another in run "
            f"{within.start + int(run)} (seed={job.seed})."
        )
    where = (
        f"at step {step:.0f} of run {within.start + int(run)} with parameters {params[int(row)].tolist()} "
        f"(seed={job.seed}, horizon={job.horizon}; simulate(..., first={within.start + int(run)}, runs=1) repeats it)"
    )
    if code == loop.BAD_ARM and culprit in job.policy.faults:
        return f"{job.policy.faults[int(culprit)]} (the policy {job.policy.name!r} {where})."
    if code == loop.BAD_ARM:
        return (
            f"an arm must be a whole number from 0 to {job.problem.arms - 1}, but the policy {job.policy.name!r} chose "
            f"{culprit:g} {where}."
        )
    paid = f"the problem {job.problem.name!r} paid another for arm {culprit:.0f}"
    return f"a reward must be a finite number, but {paid} {where}."
