"""The arms, the counts and the memory of a deployed policy, without locks and without files.

- With `pending="ignore"` a pull counts when its reward arrives, so requests at the same time may get the same arm. With
  `pending="mean"` a pending pull counts as a pull with the present mean reward of its arm. Each policy has the default
  that was better in measurements (`Policy.pending_rewards`).
- A policy without a prior has no index for an arm without rewards. Under both rules, the first pending pulls of such an arm
  count with the mean of all rewards. While no arm has a reward, arms are pulled in turn.
- The step passed to `choose` is the number of pulls with a reward plus the number of pending pulls.
- The step passed to `update` is that of the latest decision. If every reward arrives before the next decision, this is the
  decision of the reward. A late reward has a later step than its decision, because rewards have arms, not decisions.
- A policy that pulls every arm once also pulls added arms first, and arms whose first pulls were dropped.
- After the horizon it continues in the same way. A policy whose table ends there pulls the highest posterior mean.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from banditune.core.checks import convert_to_integer
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.request_errors import make_argument_error
from banditune.deployment.agent import PolicyAgent, compile_step_kernel, make_agent_stream
from banditune.deployment.deployment_state import (
    MAX_ABS_REWARD,
    MAX_DEPLOYED_ARMS,
    ArmName,
    ArmState,
    DeploymentState,
    check_arm_name,
    check_arm_states,
)
from banditune.deployment.feature_rows import add_known_intercept, make_feature_matrix, read_feature_row
from banditune.deployment.policy_restoration import check_deployable, check_deployed_params


class PolicyRuntime:
    """A deployed policy with its arms and counts. It must be used by one thread at a time."""

    def __init__(self, policy: Policy, state: DeploymentState) -> None:
        check_deployable(policy, state)
        self.policy = policy
        self._has_horizon_rule = type(policy).choose_after_horizon is not Policy.choose_after_horizon
        self.initial_state = state
        self._params = np.array(check_deployed_params(policy, state.params))
        self._act = compile_step_kernel(policy, len(state.arms[0].features))
        self._draws = make_agent_stream(state.seed, state.stream_position)
        self._rebuild_agent(state.arms)

    def _rebuild_agent(self, arms: tuple[ArmState, ...]) -> None:
        """Make a new agent for these arms. If that fails, nothing changes."""
        check_arm_states(arms)
        retired = {arm.name: arm for arm in arms if arm.retired}
        present = [arm for arm in arms if not arm.retired]
        features = make_feature_matrix(present)
        agent = PolicyAgent(
            self._update_for_retired_arms(retired),
            self._act,
            self._params,
            features,
            self.initial_state.horizon,
            self._draws,
        )
        agent.resume(np.array([[arm.pulls for arm in present], [arm.total for arm in present]], float))
        self._agent = agent
        self.retired = retired
        self.names = [arm.name for arm in present]
        self.positions = {arm.name: position for position, arm in enumerate(present)}
        self._features = [arm.features for arm in present]
        self._pulls = [arm.pulls for arm in present]
        self._unseen = self._pulls.count(0)
        self._pending = [arm.pending_pulls for arm in present]
        self.steps = sum(arm.pulls + arm.pending_pulls for arm in arms)

    def _update_for_retired_arms(self, retired: dict[ArmName, ArmState]) -> Policy:
        """Return the policy with a prior that is updated for the rewards of retired arms."""
        arms_with_rewards = [arm for arm in retired.values() if arm.pulls]
        if not arms_with_rewards:
            return self.policy
        pulls, totals = (
            np.array([arm.pulls for arm in arms_with_rewards], float),
            np.array([arm.total for arm in arms_with_rewards]),
        )
        return self.policy.learn_from_retired_arms(make_feature_matrix(arms_with_rewards).T, pulls, totals)

    def select_arm(self) -> ArmName:
        """Select an arm, and count its pull as pending."""
        position = self._choose_position()
        self._pending[position] += 1
        self.steps += 1
        return self.names[position]

    def _choose_position(self) -> int:
        if self._unseen and self.policy.pulls_every_arm:
            for position, count in enumerate(self._pulls):
                if count == 0 and self._pending[position] == 0:
                    return position
        if self._unseen == len(self._pulls) and not self.policy.prior_kind and any(self._pending):
            return self._pending.index(min(self._pending))
        if self._has_horizon_rule and self.steps >= self.initial_state.horizon:
            last = self._agent.policy.choose_after_horizon(*self._agent.recall())
            if last is not None:
                return last
        return self._agent.choose(self.steps, self._count_pending())

    def _count_pending(self) -> list[int] | None:
        """Return the number of pending pulls of each arm that count; None if there are none."""
        if self.initial_state.pending == "mean":
            return self._pending if any(self._pending) else None
        if not self._unseen or self.policy.prior_kind:
            return None
        first = [0 if pulls else waits for pulls, waits in zip(self._pulls, self._pending, strict=True)]
        return first if any(first) else None

    def check_arm(self, arm: Any) -> None:
        """Raise `InvalidRequest` if there is no arm of that name, active or retired."""
        if (
            isinstance(arm, bool)
            or not isinstance(arm, str | int | np.integer)
            or not (arm in self.positions or arm in self.retired)
        ):
            names = ", ".join(map(repr, self.names[:10])) + ", ..." * (len(self.names) > 10)
            raise InvalidRequest(
                f"the arm must be one of {names}, but got {arm!r:.60}.", argument="arm", code="unknown-name"
            )

    def check_reward(self, arm: Any, reward: Any) -> float:
        """Return a reward as a number, or raise `InvalidRequest` if the arm or the reward is not valid."""
        self.check_arm(arm)
        try:
            payoff = float(reward) if not isinstance(reward, str) else math.nan
        except (TypeError, ValueError, OverflowError):
            payoff = math.nan
        kind = self.policy.rewards
        is_allowed = abs(payoff) <= MAX_ABS_REWARD if kind == "real" else 0 <= payoff <= 1
        if not is_allowed or (kind == "binary" and payoff not in (0, 1)):
            expected = {"real": f"a number up to {MAX_ABS_REWARD:g}", "unit": "a number in [0, 1]", "binary": "0 or 1"}[
                kind
            ]
            raise InvalidRequest(
                f"a reward must be {expected} for {self.policy.name}, but got {reward!r:.60}.",
                argument="reward",
                code="out-of-range",
            )
        return payoff

    def learn(self, arm: ArmName, payoff: float) -> None:
        """Update the policy for a checked reward."""
        position = self.positions.get(arm)
        if position is None:
            self._learn_late(self.retired[arm], payoff)
            return
        # A reward of an arm without pending pulls counts as a pull at the present step.
        is_new_step = self._pending[position] == 0
        self._agent.learn(self.steps if is_new_step else self.steps - 1, position, payoff)
        self._unseen -= self._pulls[position] == 0
        self._pulls[position] += 1
        if is_new_step:
            self.steps += 1
        else:
            self._pending[position] -= 1

    def _learn_late(self, arm: ArmState, payoff: float) -> None:
        """Count a reward of a retired arm. A policy with features is also updated for it."""
        updated = replace(
            arm, pulls=arm.pulls + 1, total=arm.total + payoff, pending_pulls=max(0, arm.pending_pulls - 1)
        )
        if self.policy.needs_features:
            self._rebuild_agent((*self._collect_present_arms(), *(self.retired | {arm.name: updated}).values()))
            return
        self.retired[arm.name] = updated
        self.steps += 1 if arm.pending_pulls == 0 else 0

    def drop_pending(self, arm: ArmName, pulls: int) -> None:
        """Check a number of pending pulls of an arm, and remove them."""
        self.check_arm(arm)
        position = self.positions.get(arm)
        waits = self.retired[arm].pending_pulls if position is None else self._pending[position]
        dropped = convert_to_integer(pulls)
        if dropped is None or not 0 <= dropped <= waits:
            if not waits:
                text = f"an arm must have pending pulls that can be dropped, but {arm!r} has none."
                raise InvalidRequest(text, argument="pulls", code="out-of-range")
            text = f"must be a whole number from 0 to {waits}, the pending pulls of {arm!r}, not {pulls!r}."
            raise make_argument_error("pulls", "out-of-range", text)
        if position is None:
            self.retired[arm] = replace(self.retired[arm], pending_pulls=waits - dropped)
        else:
            self._pending[position] -= dropped
        self.steps -= dropped

    def add_arm(self, name: ArmName, features: Iterable[float]) -> None:
        """Check the name and the features of a new arm, and add it."""
        if str(name) in map(str, (*self.positions, *self.retired)):
            raise InvalidRequest(
                f"the name of a new arm must be new, but {name!r} is or was an arm.",
                argument="name",
                code="conflict",
            )
        present = self._collect_present_arms()
        if len(present) + len(self.retired) >= MAX_DEPLOYED_ARMS:
            raise InvalidRequest(
                f"there must be at most {MAX_DEPLOYED_ARMS} arms, and this limit is reached.",
                argument="name",
                code="too-large",
            )
        known_rows = [arm.features for arm in (*present, *self.retired.values())]
        new = ArmState(check_arm_name(name), features=add_known_intercept(read_feature_row(features), known_rows))
        self._rebuild_agent((*present, new, *self.retired.values()))

    def retire_arm(self, name: ArmName) -> None:
        """Check that an arm is active, and retire it."""
        self.check_arm(name)
        if name in self.retired:
            raise InvalidRequest(
                f"an arm must be active to be retired, but {name!r} is retired already.",
                argument="name",
                code="conflict",
            )
        present = tuple(replace(arm, retired=arm.name == name) for arm in self._collect_present_arms())
        self._rebuild_agent((*present, *self.retired.values()))

    def _collect_present_arms(self) -> tuple[ArmState, ...]:
        pulls, totals = self._agent.recall()
        rows = zip(self.names, pulls.tolist(), totals.tolist(), self._pending, self._features, strict=True)
        return tuple(
            ArmState(name, int(pulls), total, waiting, False, row) for name, pulls, total, waiting, row in rows
        )

    def recompute_memory(self) -> None:
        """Compute the memory from pulls and totals, as after loading, so that both continue with the same bits."""
        self._agent.resume(self._agent.recall())

    def collect_state(self) -> DeploymentState:
        """Collect the state from the counts and the position in the stream of random numbers."""
        position = int(self._draws[2]), int(self._draws[3])
        return replace(
            self.initial_state, stream_position=position, arms=(*self._collect_present_arms(), *self.retired.values())
        )

    def describe(self) -> str:
        """Describe the policy, its progress and its arms, one line per arm."""
        state = self.collect_state()
        params = ", ".join(f"{name} = {value:.4g}" for name, value in state.params.items())
        over = ", continued beyond it" if self.steps >= state.horizon else ""
        head = f"{state.policy['name']} ({params or 'nothing to tune'}), step {self.steps} of {state.horizon}{over}"
        width = max(len(str(arm.name)) for arm in state.arms)
        lines = [
            f"  {str(arm.name).ljust(width)}  pulls {arm.pulls}, mean {_format_mean(arm)}, pending {arm.pending_pulls}"
            + ", retired" * arm.retired
            for arm in state.arms
        ]
        return "\n".join([head, *lines])


def _format_mean(arm: ArmState) -> str:
    """Format the mean reward of an arm; "-" without rewards."""
    return f"{arm.total / arm.pulls:.4g}" if arm.pulls else "-"
