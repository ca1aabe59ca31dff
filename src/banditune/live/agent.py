"""A policy's memory for one set of arms, and the compiled code that works on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.contracts import BadRequest, Fault, Floats, Integers, Policy, Problem
from banditune.engine.bind import compile_for, kernel
from banditune.engine.loop import instance_key
from banditune.engine.run import dims_of, numbers_of, read_only, strip
from banditune.live import steps
from banditune.streams import AGENT

SLOTS = ("view", "start", "choose", "update", "recall", "resume")

MOST_MEMORY = 2**25
"""Numbers in a memory, of which there are two, known and imagined: half a GiB in all."""


@dataclass(frozen=True)
class Arms(Problem):
    """The arms of a deployed policy, for checks that ask about a problem."""

    arms: int
    dims: int = 0

    name = "deployed"


def stream_of(seed: int, drawn: tuple[int, int]) -> Integers:
    """Key and cursor of the agent's own draws: those of run 0 of a simulation with the same seed."""
    key0, key1 = instance_key(seed, 0)  # type: ignore[no-untyped-call]
    return np.array([key0, key1, *drawn, 0, AGENT], np.int64)


def kernel_of(policy: Policy, dims: int) -> Callable[..., Any]:
    """The compiled code of a policy, for any number of arms with so many features."""
    slots: dict[Any, Any] = {name: getattr(policy, name) for name in SLOTS}
    return kernel(steps.act, slots | dims_of(policy, Arms(1, dims)))


class Agent:
    """A policy on some arms. `act` is its kernel, `features` is (dims, arms), `draws` is shared with whoever made it."""

    def __init__(
        self,
        policy: Policy,
        act: Callable[..., Any],
        params: Floats,
        features: Floats,
        horizon: int,
        draws: Integers,
    ) -> None:
        dims, arms = features.shape
        policy.check(features[None], horizon)
        size = policy.memory(arms, dims)
        if size > MOST_MEMORY:
            raise BadRequest(
                f"the memory of a deployed policy must fit into {MOST_MEMORY / 2**27:g} GiB, but "
                f"{policy.name} needs {size / 2**27:.1f} for {arms} arms with {dims} features; use fewer."
            )
        self.policy, self.horizon = policy, horizon
        self.memory, imagined = strip(size), strip(size)
        self.facts = np.zeros((3, arms))
        options = numbers_of(policy.options(arms, dims, horizon))
        self._shared = (imagined, read_only(features), options, read_only(params), draws, self.facts, horizon)
        self._act = act
        compile_for(self._act, (steps.CHOOSE, self.memory, *self._shared, 0, 0.0), f"the policy {policy.name!r}")

    def _done(self, what: int, place: int, reward: float) -> float:
        try:
            return self._act(what, self.memory, *self._shared, place, reward)  # type: ignore[no-any-return]
        except Exception as error:
            raise Fault(f"the policy {self.policy.name!r} failed: {type(error).__name__}: {error}.") from error

    def choose(self, step: int, waiting: list[int] | None = None) -> int:
        """The arm to pull, by what is known, or as if so many more pulls of each arm had paid what it pays on average.

        An arm without rewards is thought to pay what all arms did on average; if there are none, the middle of the range.
        """
        if waiting is None:
            chosen = self._done(steps.CHOOSE, step, 0.0)
        else:
            self.facts[steps.WAITING] = waiting
            chosen = self._done(steps.CHOOSE_IMAGINED, step, 0.0 if self.policy.rewards == "real" else 0.5)
        if 0 <= chosen < self.facts.shape[1] and chosen == int(chosen):
            return int(chosen)
        if chosen in self.policy.faults:
            raise Fault(f"{self.policy.faults[int(chosen)]} (the policy {self.policy.name!r}, deployed).")
        raise Fault(
            f"an arm must be a whole number from 0 to {self.facts.shape[1] - 1}, but the policy {self.policy.name!r} chose "
            f"{chosen:g} at step {step}."
        )

    def learn(self, arm: int, reward: float) -> None:
        """Learn what a pull paid."""
        self._done(steps.LEARN, arm, reward)

    def recall(self) -> Floats:
        """Pulls and totals of every arm, two rows."""
        self._done(steps.RECALL, 0, 0.0)
        return self.facts[: steps.WAITING].copy()

    def resume(self, facts: Floats) -> None:
        """Know these pulls and totals, and nothing else."""
        self.memory[:] = 0.0
        self.facts[: steps.WAITING] = facts
        self._done(steps.RESUME, 0, 0.0)
