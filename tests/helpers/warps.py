"""Warps without a GPU: one thread compiled for the CPU, or several threads of plain Python."""

from __future__ import annotations

import math
import threading
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import copy_read_only
from banditune.core.policy import Setting
from banditune.core.problem import Instance
from banditune.core.scalar import Slot, noinline, scalar
from banditune.core.streams import AGENT_STREAM, REWARD_STREAM, UNSEEN_STREAM, Stream
from banditune.simulation import bind, compilation, loop
from banditune.simulation.gpu.warp_loop import simulate_run_by_warp
from banditune.simulation.gpu.warp_primitives import SINGLE_THREAD_SLOTS
from banditune.simulation.instances import draw_instances, slice_instances
from banditune.simulation.kernel_selection import fill_dims_slots, make_constant_function
from banditune.simulation.loop import compute_instance_key

registers_capacity = Slot("registers_capacity")


@noinline
def play_one_thread(
    instance, setting, params, agent, rewards, unseen, floats, integers, pulls, totals, at, realised, out, trouble
):
    """A warp of one thread, in place of the plain loop."""
    return simulate_run_by_warp(
        instance,
        setting,
        params,
        agent,
        rewards,
        unseen,
        floats[:registers_capacity],
        floats[registers_capacity:],
        pulls,
        totals,
        at,
        realised,
        out,
    )


play_one_thread.__module__ = "banditune.tests"


def simulate_one_thread(spec, version, params, runs):
    """Regrets (rows, runs, checkpoints) of a warp of one thread, for runs of the first block."""
    policy, problem = spec.policy, spec.problem
    arms, dims = problem.arms, problem.dims
    registers = version.count_registers(arms, dims)
    slots = {
        "reward": problem.reward,
        **fill_dims_slots(policy, problem),
        **SINGLE_THREAD_SLOTS,
        "count_arms_per_lane": make_constant_function(arms),
        "registers_capacity": registers,
    }
    slots |= {name: getattr(version, name) for name in ("view", "start", "choose", "update")} | {
        "simulate_run": play_one_thread
    }
    compiled = compilation.compile_kernel(loop.simulate_block, slots)
    means, features = slice_instances(draw_instances(problem, spec.seed, 0), slice(runs.start, runs.stop))
    params = copy_read_only(params)
    at = np.array(spec.checkpoints or (spec.horizon,), np.int64)
    out = np.empty((len(params), len(means), len(at)))
    trouble = np.zeros(5)
    compiled(
        means,
        features,
        spec.seed,
        runs.start,
        copy_read_only(problem.options()),
        params,
        copy_read_only(policy.options(arms, dims, spec.horizon)),
        spec.horizon,
        0 if spec.common_random_numbers else 1,
        at,
        spec.regret == "realised",
        np.zeros(registers + version.count_shared(arms, dims)),
        np.zeros(1, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.zeros((3, 4), np.int64),
        out,
        trouble,
        np.zeros(1, np.int64),
    )
    return out


class PythonWarp:
    """Threads of Python in place of those of a GPU: each receives the values of all."""

    def __init__(self, threads=32):
        self.size = threads
        self.local = threading.local()
        self.values = [None] * threads
        self.barrier = threading.Barrier(threads, timeout=60)

    def lane(self):
        """The number of the calling thread."""
        return self.local.lane

    def all(self, value):
        """The values of all threads."""
        self.values[self.lane()] = value
        self.barrier.wait()
        values = list(self.values)
        self.barrier.wait()
        return values

    def slots(self, arms):
        """The functions for the slots of a warp."""
        warp: Any = ModuleType("math")  # a module that the binder takes as it is
        warp.lane = self.lane
        warp.wait = self.barrier.wait
        warp.all = self.all
        warp.sum = math.fsum
        warp.highest = lambda values: max(values, key=lambda pair: (pair[0], -pair[1]))

        @scalar
        def lane():
            return warp.lane()

        @scalar
        def sync():
            warp.wait()

        @scalar
        def total(value):
            return warp.sum(warp.all(value))

        @scalar
        def best(value, arm):
            return warp.highest(warp.all((value, arm)))

        @scalar
        def any_of(value):
            return any(warp.all(value))

        @scalar
        def from_lane(value, lane):
            return warp.all(value)[lane]

        @scalar
        def exchange(value, mask):
            return warp.all(value)[warp.lane() ^ mask]

        return {
            **SINGLE_THREAD_SLOTS,
            "get_lane": lane,
            "count_lanes": make_constant_function(self.size),
            "count_arms_per_lane": make_constant_function(-(-arms // self.size)),
            "sync_lanes": sync,
            "sum_over_lanes": total,
            "argmax_over_lanes": best,
            "vote_any": any_of,
            "shuffle_from_lane": from_lane,
            "shuffle_xor": exchange,
        }

    def run(self, task):
        """`task(lane)` of every thread, in order. If one fails, the others do not wait for it."""
        results, errors = [None] * self.size, []

        def run_thread(lane):
            self.local.lane = lane
            try:
                results[lane] = task(lane)
            except BaseException as error:
                errors.append(error)
                self.barrier.abort()

        threads = [threading.Thread(target=run_thread, args=(lane,)) for lane in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise next((error for error in errors if not isinstance(error, threading.BrokenBarrierError)), errors[0])
        return results


class WarpRun(NamedTuple):
    """A run by a warp: its regrets and its state at the end."""

    regrets: Any
    held: Any
    """A row for each thread."""
    state: Any
    """As the first thread sees it."""
    pulls: Any
    totals: Any
    setting: Setting


def simulate_threads(spec, version, params, run, threads=32):
    """One run of the first block by a warp of Python threads. Memory starts as NaN."""
    policy, problem = spec.policy, spec.problem
    arms, dims = problem.arms, problem.dims
    warp = PythonWarp(threads)
    slots = {"reward": problem.reward, **fill_dims_slots(policy, problem), **warp.slots(arms)}
    slots |= {name: getattr(version, name) for name in ("view", "start", "choose", "update")}
    run_threads, view = bind.bind_function(simulate_run_by_warp, slots)[0], bind.bind_function(version.view, slots)[0]
    means, features = slice_instances(draw_instances(problem, spec.seed, 0), slice(run, run + 1))
    setting = Setting(arms, dims, spec.horizon, features[0], copy_read_only(policy.options(arms, dims, spec.horizon)))
    instance = Instance(means[0], copy_read_only(problem.options()))
    registers = np.full((threads, version.count_registers(-(-arms // threads), dims)), np.nan)
    shared = np.full(version.count_shared(arms, dims), np.nan)
    pulls, totals = np.full(arms, -1, np.int64), np.full(arms, np.nan)
    at = np.array(spec.checkpoints or (spec.horizon,), np.int64)
    out = np.full(len(at), np.nan)
    noise = 0 if spec.common_random_numbers else 256

    def play_one(lane):
        streams = [
            Stream(*compute_instance_key(spec.seed, run), np.array([0, 0, 0, kind + noise], np.int64))
            for kind in (AGENT_STREAM, REWARD_STREAM, UNSEEN_STREAM)
        ]
        return run_threads(
            instance,
            setting,
            copy_read_only(params),
            *streams,
            registers[lane],
            shared,
            pulls,
            totals,
            at,
            spec.regret == "realised",
            out,
        )

    assert all(warp.run(play_one))
    return WarpRun(out, registers, view(registers[0], shared, setting), pulls, totals, setting)
