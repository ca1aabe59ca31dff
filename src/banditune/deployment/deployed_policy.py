"""A policy in production: `select_arm()`, then `update(arm, reward)`; see `policy_runtime` for its rules."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from banditune.core.atomic_files import make_read_error, write_atomically
from banditune.core.checks import check_integer
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.deployment.deployment_state import MAX_STATE_BYTES, ArmName, DeploymentState, parse_state
from banditune.deployment.policy_restoration import restore_state_policy
from banditune.deployment.policy_runtime import PolicyRuntime
from banditune.exact.table_policies import TABLE_POLICIES as TABLES
from banditune.registry import collect_policies


class DeployedPolicy:
    """A policy in production, made by `result.deploy()`, `bt.deploy` or `DeployedPolicy.load`.

    Call `select_arm()` for the next arm, then `update(arm, reward)` when its reward arrives. All methods may be called
    by many threads. The policy's random numbers are those of run 0 of a simulation with the same seed.

    Parameters
    ----------
    policy : Policy
        The policy. All its options must be numbers, and it must define `recall` and `resume`.
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
        self._runtime = PolicyRuntime(policy, state)
        self._lock = threading.RLock()
        self._saving = threading.Lock()
        self._warned = False

    @property
    def arms(self) -> tuple[ArmName, ...]:
        """The names of the arms that can be selected."""
        with self._lock:
            return tuple(self._runtime.names)

    @property
    def step(self) -> int:
        """The number of pulls so far, with and without a reward."""
        return self._runtime.steps

    @property
    def horizon(self) -> int:
        """The horizon that the parameters were tuned for."""
        return self._runtime.initial_state.horizon

    @property
    def is_beyond_horizon(self) -> bool:
        """Whether the number of pulls is at least the horizon.

        The policy continues after the horizon, but it may explore too much or too little.
        """
        return self.step >= self.horizon

    @property
    def delay_notice(self) -> str:
        """A sentence on the treatment of pending pulls, in production and in the simulation."""
        rule = self._runtime.initial_state.pending
        counts = "counts as a pull with its arm's mean" if rule == "mean" else "does not count until its reward arrives"
        return (
            "the simulation has every reward before the next decision. If rewards arrive later in production, a pending "
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
            return self._runtime.select_arm()

    def select_arms(self, count: int) -> list[ArmName]:
        """Select arms for several pulls at once.

        Parameters
        ----------
        count : int
            The number of selections, 0 or more. An arm may be selected several times.

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

    def update(self, arm: ArmName, reward: float) -> None:
        """Update the policy for the reward of a pull.

        Rewards may arrive in any order. A reward of an arm without pending pulls counts as one more step. Rewards of
        retired arms are accepted. If the parameters are for rewards in [0, 1], the first reward outside raises a Python
        warning.

        Parameters
        ----------
        arm : str or int
            The name of the arm.
        reward : float
            The reward, of the kind that the policy needs: 0 or 1, a number in [0, 1], or any number up to 1e100.

        Raises
        ------
        InvalidRequest
            If the arm is unknown, or the reward is not valid for the policy. In this case nothing changes.
        """
        with self._lock:
            payoff = self._runtime.check_reward(arm, reward)
            self._warn_unusual_rewards([(arm, payoff)])
            self._runtime.learn(arm, payoff)

    def update_many(self, rewards: Iterable[tuple[ArmName, float]]) -> None:
        """Update the policy for many rewards, in order. All are checked before the first update.

        Parameters
        ----------
        rewards : iterable of (str or int, float)
            Pairs of an arm's name and its reward.

        Raises
        ------
        InvalidRequest
            If an arm is unknown, or a reward is not valid for the policy. In this case nothing changes.
        """
        with self._lock:
            payoff = [(arm, self._runtime.check_reward(arm, reward)) for arm, reward in rewards]
            self._warn_unusual_rewards(payoff)
            for arm, reward in payoff:
                self._runtime.learn(arm, reward)

    def _warn_unusual_rewards(self, rewards: list[tuple[ArmName, float]]) -> None:
        """Warn once about rewards outside [0, 1]. This is no error, because a service should continue."""
        if self._warned or self._runtime.initial_state.rewards == "real":
            return
        for arm, payoff in rewards:
            if not 0 <= payoff <= 1:
                warnings.warn(
                    f"{arm!r} paid {payoff:g}, but {self._runtime.policy.name} was tuned for rewards in [0, 1] and "
                    "explores too little or too much with others: scale rewards to [0, 1], or tune on a problem with such "
                    "rewards. The policy is updated nevertheless. This warning is given once per policy that is created or "
                    "loaded.",
                    stacklevel=3,
                )
                # Set after the warning: if warnings are errors, there is no update, and the next such reward must warn too.
                self._warned = True
                return

    def drop_pending(self, arm: ArmName, pulls: int = 1) -> None:
        """Remove pending pulls of an arm from the counts, because their rewards will not arrive.

        Parameters
        ----------
        arm : str or int
            The name of the arm.
        pulls : int
            The number of pending pulls to remove.

        Raises
        ------
        InvalidRequest
            If the arm is unknown, or has fewer pending pulls.
        """
        with self._lock:
            self._runtime.drop_pending(arm, pulls)

    def add_arm(self, name: ArmName, features: Iterable[float] = ()) -> None:
        """Add an arm without rewards.

        Parameters
        ----------
        name : str or int
            A new name, also different from those of retired arms: a text of 1 to 200 characters, or a whole number.
        features : iterable of float
            The features of the arm, if arms have features. If the first feature of all arms is 1, an intercept, it may
            be left out.

        Raises
        ------
        InvalidRequest
            If the name is taken, the features do not fit, or there are too many arms.
        """
        with self._lock:
            self._runtime.add_arm(name, features)

    def retire_arm(self, name: ArmName) -> None:
        """Retire an arm, so that it is never selected again.

        Its pending rewards may still arrive. A policy that uses features is updated for them.

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
            self._runtime.retire_arm(name)

    def find_arm(self, text: str) -> ArmName:
        """Find the arm with this name as text.

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
            names = (*self._runtime.positions, *self._runtime.retired)
            return next((name for name in names if str(name) == text), text)

    @property
    def state(self) -> DeploymentState:
        """The state of this policy that `save` writes, as a frozen record.

        The state has no memory of the policy. The memory is computed from the record, now and after loading, so that both
        policies continue with the same bits.
        """
        with self._lock:
            self._runtime.recompute_memory()
            return self._runtime.collect_state()

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

        No code that is named in the JSON is run.

        Parameters
        ----------
        text : str
            The result of `to_json`.
        policy : Policy, optional
            The policy. It is needed if it is your own, or one that computes a table, such as `exact.Gittins`.

        Returns
        -------
        DeployedPolicy
            The policy with all its rewards.

        Raises
        ------
        InvalidRequest
            If the text is not a valid state, or `policy` is missing or not that of the state.
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

        No code that is named in the file is run.

        Parameters
        ----------
        path : str or Path
            The file.
        policy : Policy, optional
            The policy. It is needed if it is your own, or one that computes a table, such as `exact.Gittins`.

        Returns
        -------
        DeployedPolicy
            The policy with all its rewards.

        Raises
        ------
        InvalidRequest
            If the file cannot be read or is not a valid state, or `policy` is missing or not that of the state.

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
            return self._runtime.describe()
