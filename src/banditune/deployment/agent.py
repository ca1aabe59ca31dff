"""The memory of a deployed policy for one set of arms, and its compiled code."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray, allocate_aligned, copy_read_only, freeze_options
from banditune.core.errors import InvalidRequest, SimulationError
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.streams import AGENT_STREAM
from banditune.deployment import step_kernel
from banditune.simulation.compilation import compile_kernel, compile_signature
from banditune.simulation.kernel_selection import fill_dims_slots
from banditune.simulation.loop import compute_instance_key
from banditune.simulation.scratch_arrays import count_policy_floats, fill_choose_slots

DEPLOYED_SLOTS = ("view", "start", "choose", "update", "recall", "resume")


MAX_MEMORY_NUMBERS = 2**25
"""The largest number of floats of a memory. There are two memories, one for pending pulls: half a GiB together."""


@dataclass(frozen=True)
class DeployedArms(Problem):
    """The arms of a deployed policy as a problem, for checks that need a problem."""

    arms: int
    dims: int = 0

    name = "deployed"


def make_agent_stream(seed: int, position: tuple[int, int]) -> IntArray:
    """Make key and cursor of the agent's stream: that of run 0 of a simulation with the same seed."""
    key0, key1 = compute_instance_key(seed, 0)  # type: ignore[no-untyped-call]
    return np.array([key0, key1, *position, 0, AGENT_STREAM], np.int64)


def compile_step_kernel(policy: Policy, dims: int) -> Callable[..., Any]:
    """Compile the step kernel of a policy, for any number of arms with `dims` features."""
    slots: dict[Any, Any] = {name: getattr(policy, name) for name in DEPLOYED_SLOTS}
    slots |= fill_choose_slots(policy) | fill_dims_slots(policy, DeployedArms(1, dims))
    return compile_kernel(step_kernel.run_agent_step, slots)


class PolicyAgent:
    """A policy on some arms.

    `act` is its kernel, `features` has the shape (dims, arms), and the caller owns `draws`.
    """

    def __init__(
        self,
        policy: Policy,
        act: Callable[..., Any],
        params: FloatArray,
        features: FloatArray,
        horizon: int,
        draws: IntArray,
    ) -> None:
        dims, arms = features.shape
        policy.check(features[None], horizon)
        size = count_policy_floats(policy, arms, dims, horizon)
        if size > MAX_MEMORY_NUMBERS:
            raise InvalidRequest(
                f"the memory of a deployed policy must fit into {MAX_MEMORY_NUMBERS / 2**27:g} GiB, but "
                f"{policy.name} needs {size / 2**27:.1f} for {arms} arms with {dims} features; use fewer.",
                code="too-large",
            )
        self.policy, self.horizon = policy, horizon
        self.memory, imagined = allocate_aligned(size), allocate_aligned(size)
        self.facts = np.zeros((3, arms))
        options = freeze_options(policy.options(arms, dims, horizon))
        self._shared = (imagined, copy_read_only(features), options, copy_read_only(params), draws, self.facts, horizon)
        self._act = act
        compile_signature(
            self._act, (step_kernel.CHOOSE, self.memory, *self._shared, 0, 0, 0.0), f"the policy {policy.name!r}"
        )

    def _run_step(self, action: int, step: int = 0, arm: int = 0, reward: float = 0.0) -> float:
        try:
            return self._act(action, self.memory, *self._shared, step, arm, reward)  # type: ignore[no-any-return]
        except Exception as error:
            raise SimulationError(
                f"the policy {self.policy.name!r} failed: {type(error).__name__}: {error}."
            ) from error

    def choose(self, step: int, waiting: list[int] | None = None) -> int:
        """Choose the arm to pull. Each arm's `waiting` pulls count as pulls with its mean reward.

        For an arm without rewards, the mean of all rewards is used; without any rewards, the middle of the range.
        """
        if waiting is None:
            choice = self._run_step(step_kernel.CHOOSE, step)
        else:
            self.facts[step_kernel.PENDING_ROW] = waiting
            choice = self._run_step(
                step_kernel.CHOOSE_WITH_PENDING, step, reward=0.0 if self.policy.rewards == "real" else 0.5
            )
        if 0 <= choice < self.facts.shape[1] and choice == int(choice):
            return int(choice)
        if choice in self.policy.failure_messages:
            raise SimulationError(
                f"{self.policy.failure_messages[int(choice)]} (the policy {self.policy.name!r}, deployed)."
            )
        raise SimulationError(
            f"an arm must be a whole number from 0 to {self.facts.shape[1] - 1}, but the policy {self.policy.name!r} chose "
            f"{choice:g} at step {step}."
        )

    def learn(self, step: int, arm: int, reward: float) -> None:
        """Update the memory for the reward of a pull."""
        self._run_step(step_kernel.LEARN, step, arm, reward)

    def recall(self) -> FloatArray:
        """Return pulls and totals of every arm, as two rows."""
        self._run_step(step_kernel.RECALL)
        return self.facts[: step_kernel.PENDING_ROW].copy()

    def resume(self, facts: FloatArray) -> None:
        """Rebuild the memory from these pulls and totals."""
        self.memory[:] = 0.0
        self.facts[: step_kernel.PENDING_ROW] = facts
        self._run_step(step_kernel.RESUME)
