"""A policy in production: `select_arm()`, then `update(arm, reward)`.

- With `pending="ignore"` a pull counts when its reward arrives, so requests at the same time may get the same arm. With
  `pending="mean"` a pending pull counts as if it had paid the present mean of its arm. Each policy has the setting that
  measured better (`Policy.pending_rewards`).
- A policy without a prior cannot rate an arm without rewards. While an arm waits for its first rewards, they count as
  the average of all rewards, under either rule. While no arm has a reward, arms take turns.
- The step passed to `choose` is the number of pulls with a reward plus the number of pending pulls.
- The step passed to `update` is that of the latest decision. If rewards come at once, this is the decision that the reward
  belongs to. A late reward has a later step than its decision, because rewards name arms, not decisions.
- A policy that pulls every arm once also pulls added arms first, and arms whose first pulls were dropped.
- After the horizon it continues in the same way. A policy whose table ends there pulls the highest posterior mean.
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.atomic_files import make_read_error, write_atomically
from banditune.core.checks import check_integer, convert_to_integer
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.request_errors import make_argument_error
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
    """A policy in production, made by `result.deploy()`, `bt.deploy` or `DeployedPolicy.load`.

    Call `select_arm()` for the next arm, then `update(arm, reward)` when its reward arrives. All methods may be called
    by many threads. The policy's random numbers are those of run 0 of a simulation with the same seed.

    Parameters
    ----------
    policy : Policy
        The policy, with all its options in numbers. It must define `recall` and `resume`.
    state : DeploymentState
        Its parameters, horizon, arms and rewards so far. `bt.deploy` makes the first state.

    Raises
    ------
    InvalidRequest
        If the policy cannot be deployed, or does not fit the state.

    Examples
    --------
    >>> import banditune as bt
    >>> policy = bt.deploy(bt.UCB1(noise=0.5), {"gamma": 0.3}, horizon=1000, names=["red", "blue"])
    >>> policy.select_arm()
    'red'
    >>> policy.update("red", 1.0)
    >>> policy.select_arm()
    'blue'
    >>> policy.step
    2
    """

    def __init__(self, policy: Policy, state: DeploymentState) -> None:
        check_deployable(policy, state)
        self._policy = policy
        self._has_horizon_rule = type(policy).choose_after_horizon is not Policy.choose_after_horizon
        self._state = state
        self._params = np.array(check_deployed_params(policy, state.params))
        self._act = compile_step_kernel(policy, len(state.arms[0].features))
        self._draws = make_agent_stream(state.seed, state.stream_position)
        self._lock = threading.RLock()
        self._saving = threading.Lock()
        self._warned = False
        self._rebuild_agent(state.arms)

    def _rebuild_agent(self, arms: tuple[ArmState, ...]) -> None:
        """Make a new agent for these arms. If that fails, nothing changes."""
        check_arm_states(arms)
        retired = {arm.name: arm for arm in arms if arm.retired}
        present = [arm for arm in arms if not arm.retired]
        features = make_feature_matrix(present)
        agent = PolicyAgent(
            self._learn_from_retired(retired), self._act, self._params, features, self._state.horizon, self._draws
        )
        agent.resume(np.array([[arm.pulls for arm in present], [arm.total for arm in present]], float))
        self._agent = agent
        self._retired = retired
        self._names = [arm.name for arm in present]
        self._positions = {arm.name: position for position, arm in enumerate(present)}
        self._features = [arm.features for arm in present]
        self._pulls = [arm.pulls for arm in present]
        self._unseen = self._pulls.count(0)
        self._pending = [arm.pending_pulls for arm in present]
        self._steps = sum(arm.pulls + arm.pending_pulls for arm in arms)

    def _learn_from_retired(self, retired: dict[ArmName, ArmState]) -> Policy:
        """Return the policy with what it learns from retired arms about the others."""
        arms_with_rewards = [arm for arm in retired.values() if arm.pulls]
        if not arms_with_rewards:
            return self._policy
        pulls, totals = (
            np.array([arm.pulls for arm in arms_with_rewards], float),
            np.array([arm.total for arm in arms_with_rewards]),
        )
        return self._policy.learn_from_retired_arms(make_feature_matrix(arms_with_rewards).T, pulls, totals)

    @property
    def arms(self) -> tuple[ArmName, ...]:
        """The names of the arms that can be selected."""
        with self._lock:
            return tuple(self._names)

    @property
    def step(self) -> int:
        """The number of pulls so far, with and without a reward."""
        return self._steps

    @property
    def horizon(self) -> int:
        """The horizon that the parameters were tuned for."""
        return self._state.horizon

    @property
    def is_beyond_horizon(self) -> bool:
        """Whether as many pulls were made as the horizon, or more.

        The policy goes on after the horizon, but may explore more or less than is best.
        """
        return self._steps >= self._state.horizon

    @property
    def delay_notice(self) -> str:
        """A sentence on how pulls count while their rewards are pending, and what the simulation assumed."""
        rule = self._state.pending
        counts = (
            "counts as if it had paid its arm's mean" if rule == "mean" else "does not count until its reward arrives"
        )
        return (
            "the simulation knew every reward before the next decision. If rewards arrive later in production, a pending "
            f"pull {counts} (pending={rule}), and the regret is higher than simulated: see "
            "`banditune explain assumptions`"
        )

    def select_arm(self) -> ArmName:
        """Select the arm to pull now.

        Its reward may be given to `update` at any time, or never. Until then the pull is pending.

        Returns
        -------
        str or int
            The name of the arm.

        Raises
        ------
        SimulationError
            If the policy fails.
        """
        with self._lock:
            position = self._choose_position()
            self._pending[position] += 1
            self._steps += 1
            return self._names[position]

    def select_arms(self, count: int) -> list[ArmName]:
        """Select arms for several pulls at once.

        Parameters
        ----------
        count : int
            How many arms to select, 0 or more. An arm may be selected several times.

        Returns
        -------
        list of str or int
            The names of the arms, in order.

        Raises
        ------
        InvalidRequest
            If `count` is not a whole number of 0 or more.
        SimulationError
            If the policy fails.
        """
        with self._lock:
            return [self.select_arm() for _ in range(check_integer("count", count, 0))]

    def _choose_position(self) -> int:
        if self._unseen and self._policy.pulls_every_arm:
            for position, count in enumerate(self._pulls):
                if count == 0 and self._pending[position] == 0:
                    return position
        if self._unseen == len(self._pulls) and not self._policy.prior_kind and any(self._pending):
            return self._pending.index(min(self._pending))
        if self._has_horizon_rule and self._steps >= self._state.horizon:
            last = self._agent.policy.choose_after_horizon(*self._agent.recall())
            if last is not None:
                return last
        return self._agent.choose(self._steps, self._count_pending())

    def _count_pending(self) -> list[int] | None:
        """Return how many pending pulls of each arm count; None if there are none."""
        if self._state.pending == "mean":
            return self._pending if any(self._pending) else None
        if not self._unseen or self._policy.prior_kind:
            return None
        first = [0 if pulls else waits for pulls, waits in zip(self._pulls, self._pending, strict=True)]
        return first if any(first) else None

    def update(self, arm: ArmName, reward: float) -> None:
        """Learn the reward of a pull.

        Rewards may come in any order. A reward of an arm without pending pulls counts as one more step. Rewards of
        retired arms are accepted. If the parameters are for rewards in [0, 1], the first reward outside raises a Python
        warning.

        Parameters
        ----------
        arm : str or int
            The name of the arm.
        reward : float
            The reward, of a kind that the policy can learn from: 0 or 1, a number in [0, 1], or any number up to 1e100.

        Raises
        ------
        InvalidRequest
            If the arm is unknown, or the policy cannot learn from this reward. Then nothing changes.
        """
        with self._lock:
            payoff = self._check_reward(arm, reward)
            self._warn_unusual_rewards([(arm, payoff)])
            self._learn(arm, payoff)

    def update_many(self, rewards: Iterable[tuple[ArmName, float]]) -> None:
        """Learn many rewards, in order. All are checked before the first is learnt.

        Parameters
        ----------
        rewards : iterable of (str or int, float)
            Pairs of an arm's name and its reward.

        Raises
        ------
        InvalidRequest
            If an arm is unknown, or the policy cannot learn from a reward. Then nothing changes.
        """
        with self._lock:
            payoff = [(arm, self._check_reward(arm, reward)) for arm, reward in rewards]
            self._warn_unusual_rewards(payoff)
            for arm, reward in payoff:
                self._learn(arm, reward)

    def _check_reward(self, arm: Any, reward: Any) -> float:
        """Return a reward as a number, or raise `InvalidRequest` if the arm or the reward is not valid."""
        self._check_arm(arm, self._positions, self._retired)
        try:
            payoff = float(reward) if not isinstance(reward, str) else math.nan
        except (TypeError, ValueError, OverflowError):
            payoff = math.nan
        kind = self._policy.rewards
        is_allowed = abs(payoff) <= MAX_ABS_REWARD if kind == "real" else 0 <= payoff <= 1
        if not is_allowed or (kind == "binary" and payoff not in (0, 1)):
            expected = {"real": f"a number up to {MAX_ABS_REWARD:g}", "unit": "a number in [0, 1]", "binary": "0 or 1"}[
                kind
            ]
            raise InvalidRequest(
                f"a reward must be {expected} for {self._policy.name}, but got {reward!r:.60}.",
                argument="reward",
                code="out-of-range",
            )
        return payoff

    def _warn_unusual_rewards(self, rewards: list[tuple[ArmName, float]]) -> None:
        """Warn once about rewards outside [0, 1]. The policy continues, because a service should not stop for that."""
        if self._warned or self._state.rewards == "real":
            return
        for arm, payoff in rewards:
            if not 0 <= payoff <= 1:
                warnings.warn(
                    f"{arm!r} paid {payoff:g}, but {self._policy.name} was tuned for rewards in [0, 1] and explores too "
                    "little or too much for others: scale rewards to [0, 1], or tune on a problem that pays such rewards. "
                    "The reward is learnt nevertheless. This warning is given once per policy that is created or loaded.",
                    stacklevel=3,
                )
                # Set only now: if warnings are errors, nothing was learnt, and the next such reward must raise too.
                self._warned = True
                return

    def _check_arm(self, arm: Any, *groups: Mapping[ArmName, Any]) -> None:
        if (
            isinstance(arm, bool)
            or not isinstance(arm, str | int | np.integer)
            or not any(arm in group for group in groups)
        ):
            names = ", ".join(map(repr, self._names[:10])) + ", ..." * (len(self._names) > 10)
            raise InvalidRequest(
                f"the arm must be one of {names}, but got {arm!r:.60}.", argument="arm", code="unknown-name"
            )

    def _learn(self, arm: ArmName, payoff: float) -> None:
        position = self._positions.get(arm)
        if position is None:
            self._learn_late(self._retired[arm], payoff)
            return
        # A reward of an arm without pending pulls is a step that comes now.
        is_new_step = self._pending[position] == 0
        self._agent.learn(self._steps if is_new_step else self._steps - 1, position, payoff)
        self._unseen -= self._pulls[position] == 0
        self._pulls[position] += 1
        if is_new_step:
            self._steps += 1
        else:
            self._pending[position] -= 1

    def _learn_late(self, arm: ArmState, payoff: float) -> None:
        """Learn a reward of a retired arm. A policy with features also learns from it about other arms."""
        updated = replace(
            arm, pulls=arm.pulls + 1, total=arm.total + payoff, pending_pulls=max(0, arm.pending_pulls - 1)
        )
        if self._policy.needs_features:
            self._rebuild_agent((*self._collect_present_arms(), *(self._retired | {arm.name: updated}).values()))
            return
        self._retired[arm.name] = updated
        self._steps += 1 if arm.pending_pulls == 0 else 0

    def drop_pending(self, arm: ArmName, pulls: int = 1) -> None:
        """Stop waiting for rewards of an arm. These pulls count as if they had not been made.

        Parameters
        ----------
        arm : str or int
            The name of the arm.
        pulls : int
            How many of its pending pulls are dropped.

        Raises
        ------
        InvalidRequest
            If the arm is unknown, or has fewer pending pulls.
        """
        with self._lock:
            self._check_arm(arm, self._positions, self._retired)
            position = self._positions.get(arm)
            waits = self._retired[arm].pending_pulls if position is None else self._pending[position]
            dropped = convert_to_integer(pulls)
            if dropped is None or not 0 <= dropped <= waits:
                if not waits:
                    text = f"an arm must have pending pulls that can be dropped, but {arm!r} has none."
                    raise InvalidRequest(text, argument="pulls", code="out-of-range")
                text = f"must be a whole number from 0 to {waits}, the pending pulls of {arm!r}, not {pulls!r}."
                raise make_argument_error("pulls", "out-of-range", text)
            if position is None:
                self._retired[arm] = replace(self._retired[arm], pending_pulls=waits - dropped)
            else:
                self._pending[position] -= dropped
            self._steps -= dropped

    def add_arm(self, name: ArmName, features: Iterable[float] = ()) -> None:
        """Add an arm without rewards.

        Parameters
        ----------
        name : str or int
            A name that no arm has or had: a text of 1 to 200 characters, or a whole number.
        features : iterable of float
            The features of the arm, where arms have features. If the first feature of all arms is 1, an intercept, it
            may be left out.

        Raises
        ------
        InvalidRequest
            If the name is taken, the features do not fit, or there are too many arms.
        """
        with self._lock:
            if str(name) in map(str, (*self._positions, *self._retired)):
                raise InvalidRequest(
                    f"the name of a new arm must be new, but {name!r} is or was an arm.",
                    argument="name",
                    code="conflict",
                )
            present = self._collect_present_arms()
            if len(present) + len(self._retired) >= MAX_DEPLOYED_ARMS:
                raise InvalidRequest(
                    f"there must be at most {MAX_DEPLOYED_ARMS} arms, and this limit is reached.",
                    argument="name",
                    code="too-large",
                )
            arms_with_rewards = [arm.features for arm in (*present, *self._retired.values())]
            new = ArmState(
                check_arm_name(name), features=add_known_intercept(read_feature_row(features), arms_with_rewards)
            )
            self._rebuild_agent((*present, new, *self._retired.values()))

    def retire_arm(self, name: ArmName) -> None:
        """Retire an arm: it is never selected again.

        Its pending rewards may still come. A policy that uses features also learns from them about other arms.

        Parameters
        ----------
        name : str or int
            The name of the arm.

        Raises
        ------
        InvalidRequest
            If the arm is unknown or retired already, or if it is the last one.
        """
        with self._lock:
            self._check_arm(name, self._positions, self._retired)
            if name in self._retired:
                raise InvalidRequest(
                    f"an arm must be active to be retired, but {name!r} is retired already.",
                    argument="name",
                    code="conflict",
                )
            present = tuple(replace(arm, retired=arm.name == name) for arm in self._collect_present_arms())
            self._rebuild_agent((*present, *self._retired.values()))

    def find_arm(self, text: str) -> ArmName:
        """Find the arm whose name is written like this text.

        Parameters
        ----------
        text : str
            A name as text, such as "3" for the arm 3.

        Returns
        -------
        str or int
            The name of the arm; the text itself if there is no such arm.
        """
        with self._lock:
            return next((name for name in (*self._positions, *self._retired) if str(name) == text), text)

    def _collect_present_arms(self) -> tuple[ArmState, ...]:
        pulls, totals = self._agent.recall()
        rows = zip(self._names, pulls.tolist(), totals.tolist(), self._pending, self._features, strict=True)
        return tuple(
            ArmState(name, int(pulls), total, waiting, False, row) for name, pulls, total, waiting, row in rows
        )

    @property
    def state(self) -> DeploymentState:
        """Everything that is saved of this policy, as a frozen record.

        The policy's memory is not saved. It is computed from the record, now and after loading, so both continue
        identically to the last bit.
        """
        with self._lock:
            self._agent.resume(self._agent.recall())
            return self._collect_state()

    def _collect_state(self) -> DeploymentState:
        position = int(self._draws[2]), int(self._draws[3])
        return replace(
            self._state, stream_position=position, arms=(*self._collect_present_arms(), *self._retired.values())
        )

    def to_json(self) -> str:
        """Return the state as one JSON object.

        Returns
        -------
        str
            The JSON. Numbers keep every bit.
        """
        return self.state.to_json()

    def save(self, path: str | Path) -> None:
        """Write the state to a file, completely or not at all.

        Parameters
        ----------
        path : str or Path
            The file. An existing one is replaced.

        Raises
        ------
        InvalidRequest
            If the file cannot be written.
        """
        with self._saving:
            write_atomically(path, (self.to_json() + "\n").encode())

    @classmethod
    def from_json(cls, text: str, policy: Policy | None = None) -> DeployedPolicy:
        """Restore a deployed policy from the JSON of its state.

        Loading runs no code that the JSON names.

        Parameters
        ----------
        text : str
            What `to_json` returned.
        policy : Policy, optional
            The policy itself. It is needed if it is your own, or one that computes a table, such as `exact.Gittins`.

        Returns
        -------
        DeployedPolicy
            The policy with all its rewards.

        Raises
        ------
        InvalidRequest
            If the text is no valid state, or `policy` is missing or another one.
        """
        state = parse_state(text)
        restored = restore_state_policy(state, policy, collect_policies().without_plugins(), TABLES)
        try:
            with np.errstate(all="ignore"):
                return cls(restored, state)
        except (np.linalg.LinAlgError, OverflowError) as error:
            raise InvalidRequest(
                f"the numbers of a state must be valid for the policy, but: {error}.", code="bad-data"
            ) from error

    @classmethod
    def load(cls, path: str | Path, policy: Policy | None = None) -> DeployedPolicy:
        """Restore a deployed policy from a file that `save` wrote.

        Loading runs no code that the file names.

        Parameters
        ----------
        path : str or Path
            The file.
        policy : Policy, optional
            The policy itself. It is needed if it is your own, or one that computes a table, such as `exact.Gittins`.

        Returns
        -------
        DeployedPolicy
            The policy with all its rewards.

        Raises
        ------
        InvalidRequest
            If the file cannot be read or is no valid state, or `policy` is missing or another one.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> import banditune as bt
        >>> path = Path(tempfile.mkdtemp()) / "state.json"
        >>> policy = bt.deploy(bt.UCB1(noise=0.5), 0.3, horizon=1000, arms=2)
        >>> policy.update(policy.select_arm(), 1.0)
        >>> policy.save(path)
        >>> bt.DeployedPolicy.load(path).state == policy.state
        True
        """
        try:
            with open(path, "rb") as file:
                content = file.read(MAX_STATE_BYTES + 1)
            text = content.decode()
        except (OSError, ValueError) as error:
            raise make_read_error("the state", path, error) from error
        return cls.from_json(text, policy)

    def __repr__(self) -> str:
        with self._lock:
            state = self._collect_state()
        params = ", ".join(f"{name} = {value:.4g}" for name, value in state.params.items())
        over = ", continued beyond it" if self.is_beyond_horizon else ""
        head = f"{state.policy['name']} ({params or 'nothing to tune'}), step {self.step} of {state.horizon}{over}"
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
