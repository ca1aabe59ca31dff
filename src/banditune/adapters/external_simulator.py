"""Simulates an object of another library on the same instances and rewards as every other policy."""

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
"""The number of rewards of an arm that are drawn at once."""


GENERATOR_LOCK = threading.Lock()


class ExternalSimulator:
    """Simulates an `ExternalPolicy` on a problem, run by run."""

    def __init__(self, spec: SimulationSpec) -> None:
        self.spec = spec
        self.options = copy_read_only(spec.problem.options())
        self.per_pull = spec.problem.has_step_free_rewards
        self.checkpoints = spec.checkpoints or (spec.horizon,)
        self.argument_names = set(inspect.signature(spec.policy.factory).parameters)  # type: ignore[attr-defined]
        self.draw = compile_reward_sampler(spec)
        self.last_object: Any = None

    def simulate_chunk(self, chunk: Chunk, stop: IntArray) -> ChunkResult:
        """Simulate a chunk, run by run, until `stop` is set."""
        start = time.perf_counter()
        regrets = np.full((len(chunk.params), len(chunk.runs), len(self.checkpoints)), np.nan)
        for block, part in split_by_block(chunk.runs):
            means = draw_instances(self.spec.problem, self.spec.seed, block).means
            for run in part:
                for row, params in enumerate(chunk.params):
                    if stop[0]:
                        return ChunkResult(regrets, np.zeros(5), time.perf_counter() - start)
                    noise = 1 + chunk.first_row + row if not self.spec.common_random_numbers else 0
                    regrets[row, run - chunk.runs.start] = self.simulate_run(
                        run, means[run - block * BLOCK_SIZE], params, noise
                    )
        return ChunkResult(regrets, np.zeros(5), time.perf_counter() - start)

    def simulate_run(self, run: int, means: FloatArray, params: FloatArray, noise: int) -> list[float]:
        """Simulate one run, and return its regrets at the checkpoints. `noise` is the number of the noise stream."""
        spec = self.spec
        key = loop.compute_instance_key(spec.seed, run)  # type: ignore[no-untyped-call]
        rewards = RewardSource(self, means, key, REWARD_STREAM + 256 * noise)
        unseen = RewardSource(self, means, key, UNSEEN_STREAM + 256 * noise)
        best = int(loop.find_best_arm(means))  # type: ignore[no-untyped-call]
        pulls, totals = np.zeros(len(means), np.int64), np.zeros(len(means))
        missed, regrets = 0.0, []
        with seed_generators(key, noise) as seed:
            select, update = self.make_object(params, seed)
            for step in range(self.checkpoints[-1]):
                arm = self.select_arm(select, run, step, params)
                payoff = self.check_reward(rewards.draw(arm, int(pulls[arm]), step), arm, run, step, params)
                if spec.regret == "realised" and arm != best:
                    missed += self.check_reward(
                        unseen.draw(best, step - int(pulls[best]), step), best, run, step, params
                    )
                pulls[arm] += 1
                totals[arm] += payoff
                try:
                    update(arm, payoff)
                except Exception as error:
                    raise SimulationError(self.describe_failure("update", error, run, step, params)) from error
                if step + 1 in self.checkpoints:
                    instance = Instance(means, self.options)
                    realised = spec.regret == "realised"
                    regrets.append(loop.compute_regret(instance, best, pulls, totals, missed, realised))  # type: ignore[no-untyped-call]
        return regrets

    def make_object(self, params: FloatArray, seed: int) -> Any:
        """Make a new object, and return its two methods."""
        spec, policy = self.spec, self.spec.policy
        context = dict(zip(CONTEXT_ARGUMENTS, (spec.problem.arms, spec.horizon, seed), strict=True))
        # Without parameters, the row still has one number, which is not used.
        row = params[: len(policy.parameters)]
        named = {parameter.name: float(value) for parameter, value in zip(policy.parameters, row, strict=True)}
        named = {p.name: round(named[p.name]) if p.integer else named[p.name] for p in policy.parameters}
        arguments = {name: value for name, value in (context | named).items() if name in self.argument_names}
        try:
            instance = policy.factory(**arguments)  # type: ignore[attr-defined]
        except Exception as error:
            raise SimulationError(
                f"{describe_spec(spec)} cannot be created with {arguments}: {type(error).__name__}: {error}."
            ) from error
        if instance is self.last_object:
            raise SimulationError(
                f"`make` of the policy {policy.name!r} must return a new object for every run, but it returned the same "
                "one again, with the data of another run; create the object within `make`."
            )
        self.last_object = instance
        return find_methods(instance, spec.problem.arms, policy.select_method, policy.update_method)  # type: ignore[attr-defined]

    def select_arm(self, select: Any, run: int, step: int, params: FloatArray) -> int:
        """Return the arm that an object selects, or raise `SimulationError` if it is not a valid arm."""
        try:
            selected = select()
        except Exception as error:
            raise SimulationError(self.describe_failure("select", error, run, step, params)) from error
        try:
            arm = int(selected)
            is_valid = arm == selected and 0 <= arm < self.spec.problem.arms
        except (TypeError, ValueError, OverflowError):
            is_valid = False
        if not is_valid:
            raise SimulationError(
                f"an arm must be a whole number from 0 to {self.spec.problem.arms - 1}, but the policy "
                f"{self.spec.policy.name!r} chose {selected!r:.60} {self.describe_position(run, step, params)}."
            )
        return arm

    def check_reward(self, payoff: float, arm: int, run: int, step: int, params: FloatArray) -> float:
        """Return the reward, or raise `SimulationError` if it is not finite."""
        if not math.isfinite(payoff):
            raise SimulationError(
                f"a reward must be a finite number, but the problem {self.spec.problem.name!r} paid another for arm {arm} "
                f"{self.describe_position(run, step, params)}."
            )
        return payoff

    def describe_failure(self, action: str, error: Exception, run: int, step: int, params: FloatArray) -> str:
        """Describe an exception of an object as a sentence."""
        cause = f"{type(error).__name__}: {error}"
        return f"{describe_spec(self.spec)} failed to {action} ({cause}) {self.describe_position(run, step, params)}."

    def describe_position(self, run: int, step: int, params: FloatArray) -> str:
        """Describe the run and the step, so that they can be repeated."""
        return (
            f"at step {step} of run {run} with parameters {params.tolist()} (seed={self.spec.seed}, "
            f"horizon={self.spec.horizon})"
        )


class RewardSource:
    """The rewards of one run, by arm and pull. They are predrawn if they do not depend on the step."""

    def __init__(self, simulator: ExternalSimulator, means: FloatArray, key: tuple[int, int], kind: int) -> None:
        self.simulator, self.means, self.key = simulator, means, key
        self.cursor = np.array([0, 0, 0, kind], np.int64)
        self.drawn_rewards: dict[int, tuple[int, list[float]]] = {}

    def draw(self, arm: int, pull: int, step: int) -> float:
        """Draw the reward of a pull."""
        first, rewards = self.drawn_rewards.get(arm, (0, []))
        if not first <= pull < first + len(rewards):
            out = np.empty(REWARDS_AHEAD if self.simulator.per_pull else 1)
            steps = np.full(len(out), step)
            self.simulator.draw(self.means, self.simulator.options, *self.key, self.cursor, arm, pull, steps, out)
            first, rewards = pull, out.tolist()
            if self.simulator.per_pull:
                self.drawn_rewards[arm] = first, rewards
        return rewards[pull - first]


@contextlib.contextmanager
def seed_generators(key: tuple[int, int], noise: int) -> Any:
    """Yield the seed of a run. In this context, the global generators of Python and NumPy start from it, too."""
    seed = (key[0] ^ (noise * 0x9E3779B9)) & 0x7FFFFFFF
    # There is one run at a time, because threads would draw from the global generators in any order.
    with GENERATOR_LOCK:
        before, numpy_before = random.getstate(), np.random.get_state()
        random.seed(seed)
        np.random.seed(seed)
        try:
            yield seed
        finally:
            random.setstate(before)
            np.random.set_state(numpy_before)
