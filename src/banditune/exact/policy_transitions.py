"""Computes one step of a policy from every state: its arms, and the states after a failure and after a success."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray, copy_read_only, freeze_options
from banditune.core.errors import InvalidRequest, SimulationError
from banditune.core.policy import Setting
from banditune.core.scalar import Slot
from banditune.core.streams import AGENT_STREAM, Stream
from banditune.exact import table_cache
from banditune.exact.arm_probabilities import KNOWN_ARM_PROBABILITIES
from banditune.exact.packed_counts import add_pull, extract_pulls, extract_successes
from banditune.simulation.compilation import compile_kernel, compile_signature
from banditune.simulation.failures import describe_exception
from banditune.simulation.kernel_selection import fill_dims_slots
from banditune.simulation.scratch_arrays import count_policy_floats, fill_choose_slots
from banditune.simulation.spec import SimulationSpec, describe_spec

view = Slot("view")


start = Slot("start")


split_floats = Slot("split_floats")


select_arm = Slot("select_arm")


update = Slot("update")


resolve_setting = Slot("resolve_setting")


class StateTransition(NamedTuple):
    """One step of some states: the pulled arm, its probability, and the states after a failure and a success."""

    arm: IntArray
    probability: Any
    after_failure: IntArray
    after_success: IntArray


TransitionIterator = Callable[[slice], Iterator[StateTransition]]
"""Yields the transitions from a slice of the states of a layer."""


class TransitionModel(NamedTuple):
    """The transitions of a policy: `make_transitions(step, words)`, for the states of a layer."""

    spec: SimulationSpec
    state_width: int
    """Words of a state."""
    make_transitions: Callable[[int, IntArray], TransitionIterator]


def make_transition_model(spec: SimulationSpec, params: FloatArray) -> TransitionModel:
    """Make the transitions of a policy: from arm probabilities if it draws random numbers, else by its functions."""
    policy, arms = spec.policy, spec.problem.arms
    if policy.is_external:
        raise InvalidRequest(
            f"exact regrets need a policy of scalar functions, but {policy.name!r} is an external object; "
            "simulate() it instead.",
            argument="policy",
            code="unsupported",
        )
    options = freeze_options(policy.options(arms, spec.problem.dims, spec.horizon))
    drawing = KNOWN_ARM_PROBABILITIES.get((policy.view, policy.start, policy.choose, policy.update))
    if drawing is None or not drawing.draws_randomly(params):
        width = arms + count_policy_floats(policy, arms, spec.problem.dims, spec.horizon)
        return TransitionModel(spec, width, ScriptedTransitions(spec, params, options).make_transitions)
    description = f"the table of all counts of {arms} arms, for {policy.name},"
    table_cache.check_table_fits(description, lambda horizon: estimate_counts_bytes(arms, horizon), spec.horizon)
    return TransitionModel(
        spec,
        arms,
        RandomizedTransitions(lambda counts: drawing.compute_probabilities(params, options, counts)).make_transitions,
    )


@dataclass(frozen=True)
class RandomizedTransitions:
    """Transitions by known probabilities of every arm."""

    compute_probabilities: Callable[[IntArray], FloatArray]

    def make_transitions(self, step: int, rows: IntArray) -> TransitionIterator:
        """Make the transitions of every arm in turn."""
        chances = self.compute_probabilities(rows)

        def iterate_transitions(at: slice) -> Iterator[StateTransition]:
            for arm in range(rows.shape[1]):
                choices = np.full(len(rows[at]), arm)
                yield StateTransition(choices, chances[at, arm], *add_pull(rows[at], choices))

        return iterate_transitions


def estimate_counts_bytes(arms: int, horizon: int) -> float:
    """Estimate the bytes of all counts before the last step: two layers, probabilities, and buffers to sort."""
    kinds = 2 * arms - 1
    logarithm = math.lgamma(horizon + kinds) - math.lgamma(kinds + 1) - math.lgamma(horizon)
    # Far above any memory, the exact number does not matter.
    states = math.exp(min(logarithm, 50.0))
    return states * (2.5 * (8 * arms + 24) + 24 * arms + 64)


# Policies without random numbers.


def advance_states(after, features, options, horizon, step, params, key, cursor, choices, trouble):
    """The kernel, which makes one step from every state.

    Before the call, `after[0]` has the floats of every state. Afterwards, these are the floats after a failure, and
    `after[1]` are those after a success. If an arm is not valid, the kernel stops, with the state and the arm in `trouble`.
    """
    arms = features.shape[1]
    setting = resolve_setting(Setting(arms, features.shape[0], horizon, features, options))
    stream = Stream(key, key, cursor)
    for number in range(after.shape[1]):
        memory, scratch = split_floats(after[0, number], setting)
        state = view(memory, setting)
        if step == 0:
            start(state, setting)
        choice = select_arm(state, scratch, setting, step, params, stream)
        if not (choice >= 0 and choice < arms and choice == math.floor(choice)):
            trouble[0], trouble[1] = number, choice
            return
        arm = int(choice)
        choices[number] = arm
        for position in range(after.shape[2]):
            after[1, number, position] = after[0, number, position]
        for reward in range(2):
            memory, scratch = split_floats(after[reward, number], setting)
            update(view(memory, setting), setting, step, params, arm, 1.0 * reward, stream)


@dataclass(frozen=True)
class ScriptedTransitions:
    """Transitions by the functions of a policy, which must not draw random numbers."""

    spec: SimulationSpec
    params: FloatArray
    options: Any

    @cached_property
    def compiled_kernel(self) -> Callable[..., Any]:
        """The kernel, bound to the policy."""
        policy = self.spec.policy
        slots = {name: getattr(policy, name) for name in ("view", "start", "choose", "update")}
        slots |= fill_choose_slots(policy) | fill_dims_slots(policy, self.spec.problem)
        compiled = compile_kernel(advance_states, slots)
        size = count_policy_floats(policy, self.spec.problem.arms, self.spec.problem.dims, self.spec.horizon)
        compile_signature(compiled, self._make_arguments(np.zeros((2, 1, size)), 0), describe_spec(self.spec))
        return compiled

    def make_transitions(self, step: int, rows: IntArray) -> TransitionIterator:
        """Make the transitions of the arm that the policy chooses."""
        arms = self.spec.problem.arms

        def iterate_transitions(at: slice) -> Iterator[StateTransition]:
            counts, memory = rows[at, :arms], rows[at, arms:].view(np.float64)
            after = np.stack([memory, memory])
            choices = self._choose_arms(step, counts, after)
            after_loss, after_win = add_pull(counts, choices)
            yield StateTransition(choices, 1.0, append_memory(after_loss, after[0]), append_memory(after_win, after[1]))

        return iterate_transitions

    def _choose_arms(self, step: int, counts: IntArray, after: FloatArray) -> IntArray:
        """Choose arms; `after` is the memory as in `advance_states`."""
        arguments = self._make_arguments(after, step)
        *_, cursor, choices, trouble = arguments
        before = cursor.copy()
        compiled = self.compiled_kernel
        try:
            compiled(*arguments)
        except Exception as error:
            raise SimulationError(describe_exception(self.spec, error)) from error
        if (cursor != before).any():
            raise InvalidRequest(
                f"exact regrets need a policy without random numbers, Thompson sampling or epsilon-greedy, but "
                f"{self.spec.policy.name!r} drew random numbers at step {step}; simulate() it instead.",
                argument="policy",
                code="unsupported",
            )
        if trouble[0] >= 0:
            raise SimulationError(self._describe_failure(step, counts[int(trouble[0])], trouble[1]))
        return choices  # type: ignore[no-any-return]

    def _make_arguments(self, after: FloatArray, step: int) -> tuple[Any, ...]:
        problem = self.spec.problem
        features = copy_read_only(np.zeros((problem.dims, problem.arms)))
        answers = np.array([0, 0, 0, AGENT_STREAM]), np.zeros(after.shape[1], np.int64), np.array([-1.0, 0.0])
        return (after, features, self.options, self.spec.horizon, step, self.params, 0, *answers)

    def _describe_failure(self, step: int, counts: IntArray, culprit: float) -> str:
        """Describe an invalid arm, and the state in which it was chosen."""
        policy = self.spec.policy
        where = (
            f"at step {step} with parameters {self.params.tolist()}, after {extract_pulls(counts).tolist()} pulls and "
            f"{extract_successes(counts).tolist()} successes of the arms (horizon={self.spec.horizon})"
        )
        if culprit in policy.failure_messages:
            return f"{policy.failure_messages[int(culprit)]} (the policy {policy.name!r} {where})."
        return (
            f"an arm must be a whole number from 0 to {self.spec.problem.arms - 1}, but the policy {policy.name!r} chose "
            f"{culprit:g} {where}."
        )


def append_memory(counts: IntArray, memory: FloatArray) -> IntArray:
    """Combine counts and memory to states."""
    return np.concatenate([counts, memory.view(np.int64)], axis=1)
