"""A policy in production: `select_arm()`, then `update(arm, reward)`.

- With `pending="ignore"` a pull counts when its reward arrives, so requests at the same time may get the same arm. With
  `pending="mean"` a pending pull counts as if it had paid the present mean of its arm. Each policy has the setting that
  measured better (`Policy.pending`).
- A policy without a prior cannot judge an arm without rewards. While an arm waits for its first rewards, they count as the
  average of all rewards, under either rule. While no arm has a reward, arms take turns.
- The step passed to the policy is the number of pulls with a reward plus the number of pending pulls.
- A policy that pulls every arm once also pulls added arms first, and arms whose first pulls were dropped.
- After the horizon it continues in the same way. A policy whose table ends there pulls the highest posterior mean."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.atomic_files import write_atomically
from banditune.core.checks import check_integer, convert_to_integer
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.deployment.agent import PolicyAgent, compile_step_kernel, make_agent_stream
from banditune.deployment.deployment_state import (
    MAX_ABS_REWARD,
    MAX_DEPLOYED_ARMS,
    MAX_STATE_BYTES,
    ArmName,
    ArmState,
    DeploymentState,
    check_arm_name,
    check_arm_states,
    parse_state,
)
from banditune.deployment.feature_rows import add_known_intercept, make_feature_matrix, read_feature_row
from banditune.deployment.policy_restoration import check_deployable, check_deployed_params, restore_state_policy
from banditune.exact.table_policies import TABLE_POLICIES as TABLES
from banditune.registry import collect_policies


class DeployedPolicy:
    """A policy at work: made by `tuning.policy()`, `deploy` or `DeployedPolicy.load`. All its methods may be called by many threads.

    Its random numbers are those of run 0 of a simulation with the same seed.
    """

    def __init__(self, policy: Policy, state: DeploymentState) -> None:
        check_deployable(policy, state)
        self._policy = policy
        self._ends = type(policy).beyond is not Policy.beyond
        self._state = state
        self._params = np.array(check_deployed_params(policy, state.params))
        self._act = compile_step_kernel(policy, len(state.arms[0].features))
        self._draws = make_agent_stream(state.seed, state.drawn)
        self._lock = threading.RLock()
        self._saving = threading.Lock()
        self._warned = False
        self._settle(state.arms)

    def _settle(self, arms: tuple[ArmState, ...]) -> None:
        """Work with these arms; nothing is changed where that cannot be."""
        check_arm_states(arms)
        gone = {arm.name: arm for arm in arms if arm.retired}
        here = [arm for arm in arms if not arm.retired]
        features = make_feature_matrix(here)
        agent = PolicyAgent(self._taught(gone), self._act, self._params, features, self._state.horizon, self._draws)
        agent.resume(np.array([[arm.pulls for arm in here], [arm.total for arm in here]], float))
        self._agent = agent
        self._gone = gone
        self._names = [arm.name for arm in here]
        self._places = {arm.name: place for place, arm in enumerate(here)}
        self._features = [arm.features for arm in here]
        self._pulls = [arm.pulls for arm in here]
        self._unseen = self._pulls.count(0)
        self._waiting = [arm.waiting for arm in here]
        self._rounds = sum(arm.pulls + arm.waiting for arm in arms)

    def _taught(self, gone: dict[ArmName, ArmState]) -> Policy:
        """The policy with what retired arms taught it about others."""
        known = [arm for arm in gone.values() if arm.pulls]
        if not known:
            return self._policy
        pulls, totals = np.array([arm.pulls for arm in known], float), np.array([arm.total for arm in known])
        return self._policy.after(make_feature_matrix(known).T, pulls, totals)

    @property
    def arms(self) -> tuple[ArmName, ...]:
        """The names of the arms that can be selected."""
        with self._lock:
            return tuple(self._names)

    @property
    def step(self) -> int:
        """Pulls so far: those with a reward, and those that wait for one."""
        return self._rounds

    @property
    def horizon(self) -> int:
        """The horizon that the parameters were tuned for."""
        return self._state.horizon

    @property
    def beyond_horizon(self) -> bool:
        """Whether more steps were made than it was tuned for: it goes on, but may explore more or less than is best."""
        return self._rounds >= self._state.horizon

    @property
    def note(self) -> str:
        """Which assumption of the simulation changes in production, and what then counts."""
        rule = self._state.pending
        counts = (
            "counts as if it had paid its arm's mean" if rule == "mean" else "does not count until its reward comes"
        )
        return (
            "the simulation knew every reward before the next decision. Where rewards come later in production, a pull "
            f"that waits {counts} (pending={rule}), and the regret is higher than was simulated: see "
            "`banditune explain assumptions`"
        )

    def select_arm(self) -> ArmName:
        """The arm to pull now; its reward may be told at any time, or never."""
        with self._lock:
            place = self._next()
            self._waiting[place] += 1
            self._rounds += 1
            return self._names[place]

    def select_arms(self, count: int) -> list[ArmName]:
        """Arms for so many pulls at once."""
        with self._lock:
            return [self.select_arm() for _ in range(check_integer("count", count, 0))]

    def _next(self) -> int:
        if self._unseen and self._policy.pulls_every_arm:
            for place, count in enumerate(self._pulls):
                if count == 0 and self._waiting[place] == 0:
                    return place
        if self._unseen == len(self._pulls) and not self._policy.prior_kind and any(self._waiting):
            return self._waiting.index(min(self._waiting))
        if self._ends and self._rounds >= self._state.horizon:
            last = self._agent.policy.beyond(*self._agent.recall())
            if last is not None:
                return last
        return self._agent.choose(self._rounds, self._counted())

    def _counted(self) -> list[int] | None:
        """How many pulls of each arm count although their reward is not there; None if there are none."""
        if self._state.pending == "mean":
            return self._waiting if any(self._waiting) else None
        if not self._unseen or self._policy.prior_kind:
            return None
        first = [0 if pulls else waits for pulls, waits in zip(self._pulls, self._waiting, strict=True)]
        return first if any(first) else None

    def update(self, arm: ArmName, reward: float) -> None:
        """Learn what a pull of an arm paid: one that was selected, or one from elsewhere, which counts as a step more.

        Rewards of retired arms are taken too.
        """
        with self._lock:
            paid = self._checked(arm, reward)
            self._warn([(arm, paid)])
            self._learn(arm, paid)

    def update_many(self, rewards: Iterable[tuple[ArmName, float]]) -> None:
        """Learn many rewards, in order; all are checked before the first is learnt."""
        with self._lock:
            paid = [(arm, self._checked(arm, reward)) for arm, reward in rewards]
            self._warn(paid)
            for arm, reward in paid:
                self._learn(arm, reward)

    def _checked(self, arm: Any, reward: Any) -> float:
        """A reward of an arm that is known, of the kind that the policy learns from."""
        self._check_arm(arm, self._places, self._gone)
        try:
            paid = float(reward) if not isinstance(reward, str) else math.nan
        except (TypeError, ValueError, OverflowError):
            paid = math.nan
        kind = self._policy.rewards
        good = abs(paid) <= MAX_ABS_REWARD if kind == "real" else 0 <= paid <= 1
        if not good or (kind == "binary" and paid not in (0, 1)):
            wanted = {"real": f"a number up to {MAX_ABS_REWARD:g}", "unit": "a number in [0, 1]", "binary": "0 or 1"}[
                kind
            ]
            raise InvalidRequest(f"a reward must be {wanted} for {self._policy.name}, but got {reward!r:.60}.")
        return paid

    def _warn(self, rewards: list[tuple[ArmName, float]]) -> None:
        """Say once that rewards are not those it was tuned for; it goes on, because a service should not stop for that."""
        if self._warned or self._state.rewards == "real":
            return
        for arm, paid in rewards:
            if not 0 <= paid <= 1:
                warnings.warn(
                    f"{arm!r} paid {paid:g}, but {self._policy.name} was tuned for rewards in [0, 1] and explores too "
                    "little or too much for others: scale rewards to [0, 1], or tune on a problem that pays such rewards. "
                    "It is learnt all the same; this is said once each time a policy is made or loaded.",
                    stacklevel=3,
                )
                # Only now: where warnings are errors, nothing was learnt, and the next such reward is refused too.
                self._warned = True
                return

    def _check_arm(self, arm: Any, *among: Mapping[ArmName, Any]) -> None:
        if (
            isinstance(arm, bool)
            or not isinstance(arm, str | int | np.integer)
            or not any(arm in some for some in among)
        ):
            names = ", ".join(map(repr, self._names[:10])) + ", ..." * (len(self._names) > 10)
            raise InvalidRequest(f"the arm must be one of {names}, but got {arm!r:.60}.")

    def _learn(self, arm: ArmName, paid: float) -> None:
        place = self._places.get(arm)
        if place is None:
            self._learn_late(self._gone[arm], paid)
            return
        self._agent.learn(place, paid)
        self._unseen -= self._pulls[place] == 0
        self._pulls[place] += 1
        if self._waiting[place]:
            self._waiting[place] -= 1
        else:
            self._rounds += 1

    def _learn_late(self, arm: ArmState, paid: float) -> None:
        """A reward of a retired arm: it still teaches a policy that knows arms by their features."""
        late = replace(arm, pulls=arm.pulls + 1, total=arm.total + paid, waiting=max(0, arm.waiting - 1))
        if self._policy.needs_features:
            self._settle((*self._present(), *(self._gone | {arm.name: late}).values()))
            return
        self._gone[arm.name] = late
        self._rounds += 1 if arm.waiting == 0 else 0

    def drop(self, arm: ArmName, pulls: int = 1) -> None:
        """No longer wait for rewards of an arm: these pulls count as if they had not been made."""
        with self._lock:
            self._check_arm(arm, self._places, self._gone)
            place = self._places.get(arm)
            waits = self._gone[arm].waiting if place is None else self._waiting[place]
            dropped = convert_to_integer(pulls)
            if dropped is None or not 0 <= dropped <= waits:
                raise InvalidRequest(
                    f"`pulls` must be a whole number from 0 to {waits}, what {arm!r} waits for, not {pulls!r}."
                    if waits
                    else f"an arm must wait for a reward that is dropped, but {arm!r} waits for none."
                )
            if place is None:
                self._gone[arm] = replace(self._gone[arm], waiting=waits - dropped)
            else:
                self._waiting[place] -= dropped
            self._rounds -= dropped

    def add_arm(self, name: ArmName, features: Iterable[float] = ()) -> None:
        """Add an arm without rewards; where arms have features, with its own.

        Where the first feature of all arms is 1, an intercept, it need not be given.
        """
        with self._lock:
            if str(name) in map(str, (*self._places, *self._gone)):
                raise InvalidRequest(f"the name of a new arm must be new, but {name!r} is or was an arm.")
            present = self._present()
            if len(present) + len(self._gone) >= MAX_DEPLOYED_ARMS:
                raise InvalidRequest(f"there must be at most {MAX_DEPLOYED_ARMS} arms, and as many there are.")
            known = [arm.features for arm in (*present, *self._gone.values())]
            new = ArmState(check_arm_name(name), features=add_known_intercept(read_feature_row(features), known))
            self._settle((*present, new, *self._gone.values()))

    def retire_arm(self, name: ArmName) -> None:
        """Never select an arm again; rewards that it waits for may still come."""
        with self._lock:
            self._check_arm(name, self._places, self._gone)
            if name in self._gone:
                raise InvalidRequest(f"an arm must be at work to be retired, but {name!r} is retired already.")
            present = tuple(replace(arm, retired=arm.name == name) for arm in self._present())
            self._settle((*present, *self._gone.values()))

    def arm_called(self, text: str) -> ArmName:
        """The arm whose name, written out, is this text."""
        with self._lock:
            return next((name for name in (*self._places, *self._gone) if str(name) == text), text)

    def _present(self) -> tuple[ArmState, ...]:
        pulls, totals = self._agent.recall()
        rows = zip(self._names, pulls.tolist(), totals.tolist(), self._waiting, self._features, strict=True)
        return tuple(
            ArmState(name, int(pulls), total, waiting, False, row) for name, pulls, total, waiting, row in rows
        )

    @property
    def state(self) -> DeploymentState:
        """All that it is, as a frozen record.

        The memory is computed afresh from what the record holds, here as after loading it, so both go on alike to the last
        bit.
        """
        with self._lock:
            self._agent.resume(self._agent.recall())
            return self._told()

    def _told(self) -> DeploymentState:
        drawn = int(self._draws[2]), int(self._draws[3])
        return replace(self._state, drawn=drawn, arms=(*self._present(), *self._gone.values()))

    def to_json(self) -> str:
        """The state as one JSON object."""
        return self.state.to_json()

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole or not at all."""
        with self._saving:
            write_atomically(path, (self.to_json() + "\n").encode())

    @classmethod
    def from_json(cls, text: str, policy: Policy | None = None) -> DeployedPolicy:
        """Go on from a state; `policy` is needed if it is your own or plays a table."""
        state = parse_state(text)
        made = restore_state_policy(state, policy, collect_policies(), TABLES)
        try:
            with np.errstate(all="ignore"):
                return cls(made, state)
        except (np.linalg.LinAlgError, OverflowError) as error:
            raise InvalidRequest(
                f"the numbers of a state must be ones that can be worked with, but: {error}."
            ) from error

    @classmethod
    def load(cls, path: str | Path, policy: Policy | None = None) -> DeployedPolicy:
        """Go on from a file that `save` wrote; `policy` is needed if it is your own or plays a table."""
        try:
            with open(path, "rb") as file:
                content = file.read(MAX_STATE_BYTES + 1)
            text = content.decode()
        except (OSError, ValueError) as error:
            raise InvalidRequest(
                f"the state {str(path)!r} cannot be read: {getattr(error, 'strerror', None) or error}."
            ) from error
        return cls.from_json(text, policy)

    def __repr__(self) -> str:
        with self._lock:
            state = self._told()
        params = ", ".join(f"{name} = {value:.4g}" for name, value in state.params.items())
        over = ", beyond which it goes on" if self.beyond_horizon else ""
        head = f"{state.policy['name']} ({params or 'nothing to tune'}), step {self.step} of {state.horizon}{over}"
        width = max(len(str(arm.name)) for arm in state.arms)
        lines = [
            f"  {str(arm.name).ljust(width)}  pulls {arm.pulls}, mean {_format_mean(arm)}, waiting {arm.waiting}"
            + ", retired" * arm.retired
            for arm in state.arms
        ]
        return "\n".join([head, *lines])


def _format_mean(arm: ArmState) -> str:
    """An arm's mean reward, if it has one."""
    return f"{arm.total / arm.pulls:.4g}" if arm.pulls else "-"
