"""Plays an object of another library on the same instances, with the same rewards, as every policy of ours."""

from __future__ import annotations

import contextlib
import inspect
import math
import random
import threading
import time
from typing import Any

import numpy as np

from banditune.adapters.object_methods import CONTEXT_ARGUMENTS, find_methods
from banditune.core.arrays import FloatArray, IntArray, copy_read_only
from banditune.core.errors import SimulationError
from banditune.core.problem import Instance
from banditune.core.streams import REWARD_STREAM, UNSEEN_STREAM
from banditune.simulation import loop
from banditune.simulation.executor import Chunk, ChunkResult
from banditune.simulation.instances import BLOCK_SIZE, draw_instances, split_by_block
from banditune.simulation.mean_test import compile_reward_sampler
from banditune.simulation.spec import SimulationSpec, describe_spec

REWARDS_AHEAD = 32
"""Rewards of an arm that are drawn at once."""


GENERATOR_LOCK = threading.Lock()


class ExternalSimulator:
    """Plays a foreign policy on a problem, run by run."""

    def __init__(self, job: SimulationSpec) -> None:
        self.job = job
        self.options = copy_read_only(job.problem.options())
        self.per_pull = job.problem.per_pull
        self.at = job.at or (job.horizon,)
        self.wanted = set(inspect.signature(job.policy.make).parameters)  # type: ignore[attr-defined]
        self.draw = compile_reward_sampler(job)

    def play(self, piece: Chunk, stop: IntArray) -> ChunkResult:
        """Play a piece, run by run, until `stop` is set."""
        began = time.perf_counter()
        regrets = np.full((len(piece.params), len(piece.runs), len(self.at)), np.nan)
        for block, within in split_by_block(piece.runs):
            means = draw_instances(self.job.problem, self.job.seed, block).means
            for run in within:
                for row, params in enumerate(piece.params):
                    if stop[0]:
                        return ChunkResult(regrets, np.zeros(5), time.perf_counter() - began)
                    noise = 1 + piece.first_row + row if self.job.noise == "own" else 0
                    regrets[row, run - piece.runs.start] = self.one(run, means[run - block * BLOCK_SIZE], params, noise)
        return ChunkResult(regrets, np.zeros(5), time.perf_counter() - began)

    def one(self, run: int, means: FloatArray, params: FloatArray, noise: int) -> list[float]:
        """The regrets of one run at its checkpoints."""
        job = self.job
        key = loop.compute_instance_key(job.seed, run)  # type: ignore[no-untyped-call]
        rewards = RewardSource(self, means, key, REWARD_STREAM + 256 * noise)
        unseen = RewardSource(self, means, key, UNSEEN_STREAM + 256 * noise)
        best = int(loop.find_best_arm(means))  # type: ignore[no-untyped-call]
        pulls, totals = np.zeros(len(means), np.int64), np.zeros(len(means))
        missed, found = 0.0, []
        with seed_generators(key, noise) as seed:
            select, update = self.made(params, seed)
            for step in range(self.at[-1]):
                arm = self.arm(select, run, step, params)
                paid = self.finite(rewards.of(arm, int(pulls[arm]), step), arm, run, step, params)
                if job.regret == "realised" and arm != best:
                    missed += self.finite(unseen.of(best, step - int(pulls[best]), step), best, run, step, params)
                pulls[arm] += 1
                totals[arm] += paid
                try:
                    update(arm, paid)
                except Exception as error:
                    raise SimulationError(self.failed("update", error, run, step, params)) from error
                if step + 1 in self.at:
                    instance = Instance(means, self.options)
                    realised = job.regret == "realised"
                    found.append(loop.compute_regret(instance, best, pulls, totals, missed, realised))  # type: ignore[no-untyped-call]
        return found

    def made(self, params: FloatArray, seed: int) -> Any:
        """A new object's two methods."""
        job, policy = self.job, self.job.policy
        known = dict(zip(CONTEXT_ARGUMENTS, (job.problem.arms, job.horizon, seed), strict=True))
        # Where there is no parameter, the row still holds a number, which nobody reads.
        row = params[: len(policy.parameters)]
        named = {parameter.name: float(value) for parameter, value in zip(policy.parameters, row, strict=True)}
        named = {p.name: round(named[p.name]) if p.integer else named[p.name] for p in policy.parameters}
        asked = {name: value for name, value in (known | named).items() if name in self.wanted}
        try:
            made = policy.make(**asked)  # type: ignore[attr-defined]
        except Exception as error:
            raise SimulationError(
                f"{describe_spec(job)} cannot be made with {asked}: {type(error).__name__}: {error}."
            ) from error
        return find_methods(made, job.problem.arms, policy.select_by, policy.update_by)  # type: ignore[attr-defined]

    def arm(self, select: Any, run: int, step: int, params: FloatArray) -> int:
        """The arm that an object selects, checked."""
        try:
            chosen = select()
        except Exception as error:
            raise SimulationError(self.failed("select", error, run, step, params)) from error
        try:
            arm = int(chosen)
            good = arm == chosen and 0 <= arm < self.job.problem.arms
        except (TypeError, ValueError, OverflowError):
            good = False
        if not good:
            raise SimulationError(
                f"an arm must be a whole number from 0 to {self.job.problem.arms - 1}, but the policy "
                f"{self.job.policy.name!r} chose {chosen!r:.60} {self.where(run, step, params)}."
            )
        return arm

    def finite(self, paid: float, arm: int, run: int, step: int, params: FloatArray) -> float:
        """A reward, checked."""
        if not math.isfinite(paid):
            raise SimulationError(
                f"a reward must be a finite number, but the problem {self.job.problem.name!r} paid another for arm {arm} "
                f"{self.where(run, step, params)}."
            )
        return paid

    def failed(self, what: str, error: Exception, run: int, step: int, params: FloatArray) -> str:
        """An exception out of an object, as a sentence."""
        told = f"{type(error).__name__}: {error}"
        return f"{describe_spec(self.job)} failed to {what} ({told}) {self.where(run, step, params)}."

    def where(self, run: int, step: int, params: FloatArray) -> str:
        """How to see it again."""
        return (
            f"at step {step} of run {run} with parameters {params.tolist()} (seed={self.job.seed}, "
            f"horizon={self.job.horizon})"
        )


class RewardSource:
    """The rewards of one run, by their addresses; drawn ahead where that is allowed."""

    def __init__(self, player: ExternalSimulator, means: FloatArray, key: tuple[int, int], kind: int) -> None:
        self.player, self.means, self.key = player, means, key
        self.cursor = np.array([0, 0, 0, kind], np.int64)
        self.drawn: dict[int, tuple[int, list[float]]] = {}

    def of(self, arm: int, pull: int, step: int) -> float:
        """The reward of a pull."""
        first, known = self.drawn.get(arm, (0, []))
        if not first <= pull < first + len(known):
            out = np.empty(REWARDS_AHEAD if self.player.per_pull else 1)
            self.player.draw(self.means, self.player.options, *self.key, self.cursor, arm, pull, step, out)
            first, known = pull, out.tolist()
            if self.player.per_pull:
                self.drawn[arm] = first, known
        return known[pull - first]


@contextlib.contextmanager
def seed_generators(key: tuple[int, int], noise: int) -> Any:
    """A seed for a run; while it is played, the generators that whole processes share start from it too."""
    seed = (key[0] ^ (noise * 0x9E3779B9)) & 0x7FFFFFFF
    # One run at a time: what threads share they would draw from in any order, and Python gains nothing from them.
    with GENERATOR_LOCK:
        before, numpy_before = random.getstate(), np.random.get_state()
        random.seed(seed)
        np.random.seed(seed)
        try:
            yield seed
        finally:
            random.setstate(before)
            np.random.set_state(numpy_before)
