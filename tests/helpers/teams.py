"""Teams without a GPU: a team of one compiled for the CPU, and teams of any size as threads of plain Python."""

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
from banditune.simulation.gpu.warp_loop import play_warp
from banditune.simulation.gpu.warp_primitives import SINGLE_THREAD_SLOTS
from banditune.simulation.instances import draw_instances, slice_instances
from banditune.simulation.kernel_selection import fill_dims_slots, make_constant_function
from banditune.simulation.loop import compute_instance_key

registers_capacity = Slot("registers_capacity")


@noinline
def play_alone(
    instance, setting, params, agent, rewards, unseen, floats, integers, pulls, totals, at, realised, out, trouble
):
    """A team of one in the place of the plain loop."""
    return play_warp(
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


play_alone.__module__ = "banditune.tests"


def alone(spec, team, params, runs):
    """Regrets (rows, runs, checkpoints) of a team of one, for runs of the first block of instances."""
    policy, problem = spec.policy, spec.problem
    arms, dims = problem.arms, problem.dims
    held = team.count_registers(arms, dims)
    slots = {
        "reward": problem.reward,
        **fill_dims_slots(policy, problem),
        **SINGLE_THREAD_SLOTS,
        "count_arms_per_lane": make_constant_function(arms),
        "registers_capacity": held,
    }
    slots |= {name: getattr(team, name) for name in ("view", "start", "choose", "update")} | {"play_run": play_alone}
    compiled = compilation.compile_kernel(loop.play_block, slots)
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
        np.zeros(held + team.count_shared(arms, dims)),
        np.zeros(1, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.zeros((3, 4), np.int64),
        out,
        trouble,
        np.zeros(1, np.int64),
    )
    return out


class Threads:
    """A team of Python's threads in the place of a GPU's: what each of them says, all of them hear."""

    def __init__(self, members=32):
        self.size = members
        self.mine = threading.local()
        self.said = [None] * members
        self.barrier = threading.Barrier(members, timeout=60)

    def lane(self):
        """The number of the thread that asks."""
        return self.mine.lane

    def all(self, value):
        """What every thread says."""
        self.said[self.lane()] = value
        self.barrier.wait()
        heard = list(self.said)
        self.barrier.wait()
        return heard

    def slots(self, arms):
        """What the slots of a team are filled with."""
        team: Any = ModuleType("math")  # a module that the binder takes as it is
        team.lane = self.lane
        team.wait = self.barrier.wait
        team.all = self.all
        team.sum = math.fsum
        team.highest = lambda said: max(said, key=lambda pair: (pair[0], -pair[1]))

        @scalar
        def lane():
            return team.lane()

        @scalar
        def sync():
            team.wait()

        @scalar
        def total(value):
            return team.sum(team.all(value))

        @scalar
        def best(value, arm):
            return team.highest(team.all((value, arm)))

        @scalar
        def any_of(said):
            return any(team.all(said))

        @scalar
        def from_lane(value, lane):
            return team.all(value)[lane]

        @scalar
        def exchange(value, mask):
            return team.all(value)[team.lane() ^ mask]

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
        """`task(lane)` of every thread, in order; if one fails, the others do not wait for it."""
        done, errors = [None] * self.size, []

        def one(lane):
            self.mine.lane = lane
            try:
                done[lane] = task(lane)
            except BaseException as error:
                errors.append(error)
                self.barrier.abort()

        threads = [threading.Thread(target=one, args=(lane,)) for lane in range(self.size)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if errors:
            raise next((error for error in errors if not isinstance(error, threading.BrokenBarrierError)), errors[0])
        return done


class Played(NamedTuple):
    """A run by a team: its regrets, and what it knew at the end."""

    regrets: Any
    held: Any
    """A row for each thread."""
    state: Any
    """As the first thread sees it."""
    pulls: Any
    totals: Any
    setting: Setting


def together(spec, team, params, run, members=32):
    """One run of the first block by a team of so many threads, in plain Python. Memory starts as NaN."""
    policy, problem = spec.policy, spec.problem
    arms, dims = problem.arms, problem.dims
    threads = Threads(members)
    slots = {"reward": problem.reward, **fill_dims_slots(policy, problem), **threads.slots(arms)}
    slots |= {name: getattr(team, name) for name in ("view", "start", "choose", "update")}
    played, view = bind.bind_function(play_warp, slots)[0], bind.bind_function(team.view, slots)[0]
    means, features = slice_instances(draw_instances(problem, spec.seed, 0), slice(run, run + 1))
    setting = Setting(arms, dims, spec.horizon, features[0], copy_read_only(policy.options(arms, dims, spec.horizon)))
    instance = Instance(means[0], copy_read_only(problem.options()))
    held = np.full((members, team.count_registers(-(-arms // members), dims)), np.nan)
    common = np.full(team.count_shared(arms, dims), np.nan)
    pulls, totals = np.full(arms, -1, np.int64), np.full(arms, np.nan)
    at = np.array(spec.checkpoints or (spec.horizon,), np.int64)
    out = np.full(len(at), np.nan)
    noise = 0 if spec.common_random_numbers else 256

    def play_one(lane):
        streams = [
            Stream(*compute_instance_key(spec.seed, run), np.array([0, 0, 0, kind + noise], np.int64))
            for kind in (AGENT_STREAM, REWARD_STREAM, UNSEEN_STREAM)
        ]
        return played(
            instance,
            setting,
            copy_read_only(params),
            *streams,
            held[lane],
            common,
            pulls,
            totals,
            at,
            spec.regret == "realised",
            out,
        )

    assert all(threads.run(play_one))
    return Played(out, held, view(held[0], common, setting), pulls, totals, setting)
