"""Teams without a GPU: a team of one on the CPU, where it is scalar code, and the machine code of a team of 32."""

from __future__ import annotations

import numpy as np

from banditune.contracts import Slot, rare
from banditune.engine import bind, loop
from banditune.engine.loop import play_together
from banditune.engine.run import constant, cut, dims_of, instances, read_only
from banditune.policies.team import ALONE

held_room = Slot("held_room")


@rare
def play_alone(instance, setting, params, agent, rewards, unseen, floats, integers, pulls, totals, at, realised, out,
               trouble):  # fmt: skip
    """A team of one in the place of the plain loop."""
    return play_together(instance, setting, params, agent, rewards, unseen, floats[: held_room], floats[held_room :],
                         pulls, totals, at, realised, out)  # fmt: skip


play_alone.__module__ = "banditune.tests"


def alone(job, team, params, runs):
    """Regrets (rows, runs, checkpoints) of a team of one, for runs of the first block of instances."""
    policy, problem = job.policy, job.problem
    arms, dims = problem.arms, problem.dims
    held = team.held(arms, dims)
    slots = {"reward": problem.reward, **dims_of(policy, problem), **ALONE, "share": constant(arms), "held_room": held}
    slots |= {name: getattr(team, name) for name in ("view", "start", "choose", "update")} | {"play": play_alone}
    compiled = bind.kernel(loop.play_block, slots)
    means, features = cut(instances(problem, job.seed, 0), slice(runs.start, runs.stop))
    params = read_only(params)
    at = np.array(job.at or (job.horizon,), np.int64)
    out = np.empty((len(params), len(means), len(at)))
    trouble = np.zeros(5)
    compiled(means, features, job.seed, runs.start, read_only(problem.options()), params,
             read_only(policy.options(arms, dims, job.horizon)), job.horizon, 1 if job.noise == "own" else 0, at,
             job.regret == "realised", np.zeros(held + team.common(arms, dims)), np.zeros(1, np.int64),
             np.zeros(arms, np.int64), np.zeros(arms), np.zeros((3, 4), np.int64), out, trouble,
             np.zeros(1, np.int64))  # fmt: skip
    return out
