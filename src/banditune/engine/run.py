"""Plays jobs on threads: blocks of instances in, regrets out, the same numbers for any threads and any chunking."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from banditune.contracts import Fault, Floats, Instances, Play, Policy, Problem
from banditune.engine import loop
from banditune.engine.bind import compile_for, kernel

BLOCK = 256
"""Instances are drawn in whole blocks of this size; block b is a function of the seed and b alone."""

TASK = 1 << 22
"""Rounds in one task of a thread: short enough for a progress bar, long enough to hide its cost."""


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


def shortcut_for(policy: Policy, problem: Problem) -> Play | None:
    """The policy's best shortcut that is exact for this problem."""
    return next((play for play in policy.plays if play.applies(policy, problem)), None)


@lru_cache(maxsize=64)
def _kernel(slots: tuple[tuple[str, Callable[..., Any] | None], ...]) -> Callable[..., Any]:
    return kernel(loop.play_block, dict(slots))


def kernel_for(job: Job) -> tuple[Callable[..., Any], int, int]:
    """The compiled kernel for a job, and the floats and integers that it needs for a run."""
    policy, problem = job.policy, job.problem
    shortcut = shortcut_for(policy, problem) if job.shortcut else None
    slots: dict[str, Callable[..., Any] | None] = {"reward": problem.reward}
    if shortcut is None:
        floats, integers = policy.memory(problem.arms), 0
        slots |= {name: getattr(policy, name) for name in ("view", "start", "choose", "update")}
        slots |= {"play": loop.play_steps}
    else:
        floats, integers = shortcut.memory(problem.arms)
        integers += problem.arms
        reward_sum = loop.sum_of_words if problem.words else loop.sum_of_rewards
        slots |= {
            "play": loop.play_leaps,
            "advance": shortcut.advance,
            "reward_sum": reward_sum,
            "words": problem.words,
        }
        slots |= shortcut.slots(problem)
    return _kernel(tuple(slots.items())), floats, integers


@lru_cache(maxsize=8)
def instances(problem: Problem, seed: int, block: int) -> Instances:
    """Block `block` of the problem's instances."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, block])))
    drawn = problem.sample(BLOCK, rng)
    means = np.ascontiguousarray(drawn.means, dtype=np.float64)
    if means.shape != (BLOCK, problem.arms) or not np.isfinite(means).all():
        raise Fault(
            f"`sample(size, rng)` of the problem {problem.name!r} must return finite means of shape (size, "
            f"{problem.arms}), but for size={BLOCK} it returned shape {means.shape}."
        )
    return Instances(means)


def tasks(job: Job, rows: int, runs: range, workers: int) -> Iterator[tuple[int, range]]:
    """Cut the runs into (block, runs within the block) of about `TASK` rounds, and so that every worker has some."""
    size = max(1, min(BLOCK, TASK // max(1, rows * job.horizon), -(-len(runs) // workers)))
    for block in range(runs.start // BLOCK, -(-runs.stop // BLOCK)):
        within = range(max(runs.start, block * BLOCK), min(runs.stop, (block + 1) * BLOCK))
        for first in range(within.start, within.stop, size):
            yield block, range(first, min(first + size, within.stop))


def play(
    job: Job, params: Floats, runs: range, *, jobs: int | None = None, progress: Callable[[int], None] | None = None
) -> Floats:
    """Regrets of every row of `params` on instances `runs`: an array (rows, runs, checkpoints).

    `progress` is told the number of runs that were just finished.
    """
    compiled, floats, integers = kernel_for(job)
    arms = job.problem.arms
    params = np.ascontiguousarray(params, dtype=np.float64)
    at = np.array(job.at or (job.horizon,), np.int64)
    out = np.empty((len(params), len(runs), len(at)))
    stop = np.zeros(1, np.int64)
    problem_options = np.array(job.problem.options(), np.float64)
    policy_options = np.array(job.policy.options(arms, job.horizon), np.float64)

    def arguments(means: Floats, first: int, to: Floats, trouble: Floats) -> tuple[Any, ...]:
        scratch = (np.zeros(floats), np.zeros(integers, np.int64), np.zeros(arms, np.int64), np.zeros(arms),
                   np.zeros((3, 4), np.int64))  # fmt: skip
        return (means, job.seed, first, problem_options, params, policy_options, job.horizon, job.noise == "own", at,
                job.regret == "realised", *scratch, to, trouble, stop)  # fmt: skip

    def task(block: int, within: range) -> Floats:
        means = instances(job.problem, job.seed, block).means[
            within.start - block * BLOCK : within.stop - block * BLOCK
        ]
        trouble = np.zeros(5)
        results = np.empty((len(params), len(within), len(at)))
        compiled(*arguments(means, within.start, results, trouble))
        out[:, within.start - runs.start : within.stop - runs.start] = results
        if progress and not stop[0]:
            progress(len(within) * len(params))
        return trouble

    sample = (np.empty((1, arms)), 0, np.empty((1, 1, 1)), np.empty(5))
    compile_for(compiled, arguments(*sample), f"the policy {job.policy.name!r} on the problem {job.problem.name!r}")
    workers = jobs or cores()
    pool = ThreadPoolExecutor(workers)
    try:
        todo = list(tasks(job, len(params), runs, workers))
        for (_, within), trouble in zip(todo, pool.map(lambda t: task(*t), todo), strict=True):
            if trouble[0]:
                raise Fault(complaint(job, params, within, trouble))
    except IndexError as error:
        raise Fault(
            f"the policy {job.policy.name!r} reached outside its memory ({error}); run it with NUMBA_DISABLE_JIT=1 to "
            "see where."
        ) from error
    finally:
        # On an error or Ctrl-C the threads leave their kernels at the next run.
        stop[0] = 1
        pool.shutdown(wait=False, cancel_futures=True)
    return out


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def complaint(job: Job, params: Floats, within: range, trouble: Floats) -> str:
    """What went wrong inside a kernel, and how to see it again."""
    code, step, culprit, row, run = trouble
    where = (
        f"at step {step:.0f} of run {within.start + int(run)} with parameters {params[int(row)].tolist()} "
        f"(seed={job.seed}, horizon={job.horizon})"
    )
    if code == loop.BAD_ARM:
        return (
            f"an arm must be a whole number from 0 to {job.problem.arms - 1}, but the policy {job.policy.name!r} chose "
            f"{culprit:g} {where}."
        )
    paid = f"the problem {job.problem.name!r} paid another for arm {culprit:.0f}"
    return f"a reward must be a finite number, but {paid} {where}."
