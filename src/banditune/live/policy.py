"""A policy in production: `select_arm()`, then `update(arm, reward)`.

What counts, and when:

- With `pending="ignore"` a pull counts when its reward arrives, in whatever order rewards come, so many requests at once
  may get the same arm. With `pending="mean"` a pull that waits counts as if it had paid its arm's present mean, so that
  widths shrink and requests spread. Each policy has the setting that is better for it by measurement (`Policy.pending`).
- A policy without a prior cannot judge an arm without rewards, so while an arm waits for its first ones, they count
  as if they had paid the average of all rewards, under either rule. While no arm has a reward, arms take turns.
- The step that the policy is told is the number of pulls with a reward and of pulls that wait for one.
- Such a policy that pulls every arm once also pulls those first that were added, or whose first pulls were dropped.
- After the horizon it goes on in the same way; a policy whose table ends there pulls the highest posterior mean.
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

from banditune.checks import check_whole, whole_in
from banditune.contracts import BadRequest, Floats, Policy
from banditune.engine.run import check_numbers
from banditune.exact import SHELF as TABLES
from banditune.live.agent import Agent, kernel_of, stream_of
from banditune.live.state import (
    LARGEST,
    LONGEST_TEXT,
    MOST_ARMS,
    Arm,
    Name,
    State,
    check_arms_of,
    check_name,
    check_params,
    check_rewards,
    policy_in,
    state_from,
)
from banditune.results import write_whole
from banditune.shelf import every_policy


class Live:
    """A policy at work: made by `tuning.policy()`, `deploy` or `Live.load`. All its methods may be called by many threads.

    Its random numbers are those of run 0 of a simulation with the same seed.
    """

    def __init__(self, policy: Policy, state: State) -> None:
        check_deployable(policy, state)
        self._policy = policy
        self._ends = type(policy).beyond is not Policy.beyond
        self._state = state
        self._params = np.array(check_params(policy, state.params))
        self._act = kernel_of(policy, len(state.arms[0].features))
        self._draws = stream_of(state.seed, state.drawn)
        self._lock = threading.RLock()
        self._saving = threading.Lock()
        self._warned = False
        self._settle(state.arms)

    def _settle(self, arms: tuple[Arm, ...]) -> None:
        """Work with these arms; nothing is changed where that cannot be."""
        check_arms_of(arms)
        gone = {arm.name: arm for arm in arms if arm.retired}
        here = [arm for arm in arms if not arm.retired]
        features = features_of(here)
        agent = Agent(self._taught(gone), self._act, self._params, features, self._state.horizon, self._draws)
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

    def _taught(self, gone: dict[Name, Arm]) -> Policy:
        """The policy with what retired arms taught it about others."""
        known = [arm for arm in gone.values() if arm.pulls]
        if not known:
            return self._policy
        pulls, totals = np.array([arm.pulls for arm in known], float), np.array([arm.total for arm in known])
        return self._policy.after(features_of(known).T, pulls, totals)

    @property
    def arms(self) -> tuple[Name, ...]:
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

    def select_arm(self) -> Name:
        """The arm to pull now; its reward may be told at any time, or never."""
        with self._lock:
            place = self._next()
            self._waiting[place] += 1
            self._rounds += 1
            return self._names[place]

    def select_arms(self, count: int) -> list[Name]:
        """Arms for so many pulls at once."""
        with self._lock:
            return [self.select_arm() for _ in range(check_whole("count", count, 0))]

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

    def update(self, arm: Name, reward: float) -> None:
        """Learn what a pull of an arm paid: one that was selected, or one from elsewhere, which counts as a step more.

        Rewards of retired arms are taken too.
        """
        with self._lock:
            paid = self._checked(arm, reward)
            self._warn([(arm, paid)])
            self._learn(arm, paid)

    def update_many(self, rewards: Iterable[tuple[Name, float]]) -> None:
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
        good = abs(paid) <= LARGEST if kind == "real" else 0 <= paid <= 1
        if not good or (kind == "binary" and paid not in (0, 1)):
            wanted = {"real": f"a number up to {LARGEST:g}", "unit": "a number in [0, 1]", "binary": "0 or 1"}[kind]
            raise BadRequest(f"a reward must be {wanted} for {self._policy.name}, but got {reward!r:.60}.")
        return paid

    def _warn(self, rewards: list[tuple[Name, float]]) -> None:
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

    def _check_arm(self, arm: Any, *among: Mapping[Name, Any]) -> None:
        if (
            isinstance(arm, bool)
            or not isinstance(arm, str | int | np.integer)
            or not any(arm in some for some in among)
        ):
            names = ", ".join(map(repr, self._names[:10])) + ", ..." * (len(self._names) > 10)
            raise BadRequest(f"the arm must be one of {names}, but got {arm!r:.60}.")

    def _learn(self, arm: Name, paid: float) -> None:
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

    def _learn_late(self, arm: Arm, paid: float) -> None:
        """A reward of a retired arm: it still teaches a policy that knows arms by their features."""
        late = replace(arm, pulls=arm.pulls + 1, total=arm.total + paid, waiting=max(0, arm.waiting - 1))
        if self._policy.needs_features:
            self._settle((*self._present(), *(self._gone | {arm.name: late}).values()))
            return
        self._gone[arm.name] = late
        self._rounds += 1 if arm.waiting == 0 else 0

    def drop(self, arm: Name, pulls: int = 1) -> None:
        """No longer wait for rewards of an arm: these pulls count as if they had not been made."""
        with self._lock:
            self._check_arm(arm, self._places, self._gone)
            place = self._places.get(arm)
            waits = self._gone[arm].waiting if place is None else self._waiting[place]
            dropped = whole_in(pulls)
            if dropped is None or not 0 <= dropped <= waits:
                raise BadRequest(
                    f"`pulls` must be a whole number from 0 to {waits}, what {arm!r} waits for, not {pulls!r}."
                    if waits
                    else f"an arm must wait for a reward that is dropped, but {arm!r} waits for none."
                )
            if place is None:
                self._gone[arm] = replace(self._gone[arm], waiting=waits - dropped)
            else:
                self._waiting[place] -= dropped
            self._rounds -= dropped

    def add_arm(self, name: Name, features: Iterable[float] = ()) -> None:
        """Add an arm without rewards; where arms have features, with its own.

        Where the first feature of all arms is 1, an intercept, it need not be given.
        """
        with self._lock:
            if str(name) in map(str, (*self._places, *self._gone)):
                raise BadRequest(f"the name of a new arm must be new, but {name!r} is or was an arm.")
            present = self._present()
            if len(present) + len(self._gone) >= MOST_ARMS:
                raise BadRequest(f"there must be at most {MOST_ARMS} arms, and as many there are.")
            known = [arm.features for arm in (*present, *self._gone.values())]
            new = Arm(check_name(name), features=with_known_intercept(row_of(features), known))
            self._settle((*present, new, *self._gone.values()))

    def retire_arm(self, name: Name) -> None:
        """Never select an arm again; rewards that it waits for may still come."""
        with self._lock:
            self._check_arm(name, self._places, self._gone)
            if name in self._gone:
                raise BadRequest(f"an arm must be at work to be retired, but {name!r} is retired already.")
            present = tuple(replace(arm, retired=arm.name == name) for arm in self._present())
            self._settle((*present, *self._gone.values()))

    def arm_called(self, text: str) -> Name:
        """The arm whose name, written out, is this text."""
        with self._lock:
            return next((name for name in (*self._places, *self._gone) if str(name) == text), text)

    def _present(self) -> tuple[Arm, ...]:
        pulls, totals = self._agent.recall()
        rows = zip(self._names, pulls.tolist(), totals.tolist(), self._waiting, self._features, strict=True)
        return tuple(Arm(name, int(pulls), total, waiting, False, row) for name, pulls, total, waiting, row in rows)

    @property
    def state(self) -> State:
        """All that it is, as a frozen record.

        The memory is computed afresh from what the record holds, here as after loading it, so both go on alike to the last
        bit.
        """
        with self._lock:
            self._agent.resume(self._agent.recall())
            return self._told()

    def _told(self) -> State:
        drawn = int(self._draws[2]), int(self._draws[3])
        return replace(self._state, drawn=drawn, arms=(*self._present(), *self._gone.values()))

    def to_json(self) -> str:
        """The state as one JSON object."""
        return self.state.to_json()

    def save(self, path: str | Path) -> None:
        """Write the state to a file, whole or not at all."""
        with self._saving:
            write_whole(path, (self.to_json() + "\n").encode())

    @classmethod
    def from_json(cls, text: str, policy: Policy | None = None) -> Live:
        """Go on from a state; `policy` is needed if it is your own or plays a table."""
        state = state_from(text)
        made = policy_in(state, policy, every_policy(), TABLES)
        try:
            with np.errstate(all="ignore"):
                return cls(made, state)
        except (np.linalg.LinAlgError, OverflowError) as error:
            raise BadRequest(f"the numbers of a state must be ones that can be worked with, but: {error}.") from error

    @classmethod
    def load(cls, path: str | Path, policy: Policy | None = None) -> Live:
        """Go on from a file that `save` wrote; `policy` is needed if it is your own or plays a table."""
        try:
            with open(path, "rb") as file:
                content = file.read(LONGEST_TEXT + 1)
            text = content.decode()
        except (OSError, ValueError) as error:
            raise BadRequest(
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
            f"  {str(arm.name).ljust(width)}  pulls {arm.pulls}, mean {mean_words(arm)}, waiting {arm.waiting}"
            + ", retired" * arm.retired
            for arm in state.arms
        ]
        return "\n".join([head, *lines])


def mean_words(arm: Arm) -> str:
    """An arm's mean reward, if it has one."""
    return f"{arm.total / arm.pulls:.4g}" if arm.pulls else "-"


def features_of(arms: list[Arm]) -> Floats:
    """Features as scalar code reads them: (dims, arms)."""
    return np.array([arm.features for arm in arms], float).reshape(len(arms), -1).T


def row_of(features: Any) -> tuple[float, ...]:
    """The features of one arm."""
    try:
        row = np.asarray(list(features), float)
    except (TypeError, ValueError):
        row = np.array([math.nan])
    if row.ndim != 1 or not np.isfinite(row).all() or np.abs(row).max(initial=0) > LARGEST:
        raise BadRequest(f"the features of an arm must be a row of finite numbers, but got {features!r:.80}.")
    return tuple(row.tolist())


def with_known_intercept(row: tuple[float, ...], known: list[tuple[float, ...]]) -> tuple[float, ...]:
    """A row of features, with the 1 that all known ones begin with where just that is missing."""
    misses_one = bool(row) and all(len(other) == len(row) + 1 and other[0] == 1 for other in known)
    return (1.0, *row) if misses_one else row


def check_deployable(policy: Policy, state: State) -> None:
    """A policy that can be saved and rebuilt, with arms that it can know."""
    if not isinstance(policy, Policy):
        raise BadRequest(f"`policy` must be a policy such as UCB1(), but got {policy!r:.80}.")
    check_numbers(policy)
    if policy.recall is None or policy.resume is None:
        raise BadRequest(
            f"a policy must define `recall` and `resume` to be deployed, so that rewards can come late and arms can "
            f"change, but {policy.name} does not; use another, or define them (docs/live.md)."
        )
    if policy.needs_features and not state.arms[0].features:
        raise BadRequest(f"{policy.name} knows arms by their features, but they have none; pass `features`.")
    if not policy.needs_features and state.arms[0].features:
        raise BadRequest(f"{policy.name} does not know features, but the arms have some; leave them out.")
    check_rewards(policy, state.arms)
