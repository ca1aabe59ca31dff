"""What a deployed policy is made of: a frozen record that goes to JSON and back, and is checked on its way in.

Loading runs no code that is named in the file: a policy is found by its name on the shelf and made with checked options, or
it is passed by the caller. Memories of policies are never stored, only each arm's pulls and total reward, from which they
are computed, so that no number in a file becomes an address in compiled code.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from banditune.checks import check_names, number_in, open_options, whole_in
from banditune.contracts import BadRequest, Policy
from banditune.descriptions import OWN, described, plain

FORMAT = "banditune live state"
VERSION = 2
"""States of version 1, which do not say for which rewards they were tuned, are read too. So are states of version 2 that
do not say which range was searched."""

LONGEST_TEXT = 2**26
"""Bytes of a state that is read."""

MOST_ARMS = 100_000
MOST_DIMS = 1000
MOST_PULLS = 2**53
LARGEST = 1e100
"""Rewards lie between minus this and this, so that totals stay finite."""

PENDING = ("ignore", "mean")
"""How pulls count whose reward is not there yet."""

REWARDS = ("real", "unit", "binary")
"""For which rewards a policy was tuned."""

Name = str | int


@dataclass(frozen=True)
class Arm:
    """What is known about an arm: pulls with a reward and their total, pulls that wait for one, and its features."""

    name: Name
    pulls: int = 0
    total: float = 0.0
    waiting: int = 0
    retired: bool = False
    features: tuple[float, ...] = ()


@dataclass(frozen=True)
class State:
    """All that a deployed policy is, but for the code of the policy. `drawn` says how far its random numbers are.

    `rewards` are those that the parameters were tuned for: "binary", "unit" for [0, 1], or "real" for any. `searched` holds
    both ends of the ranges in which they were tuned, where that is known.
    """

    policy: Mapping[str, Any]
    params: Mapping[str, float]
    horizon: int
    seed: int
    pending: str
    drawn: tuple[int, int]
    arms: tuple[Arm, ...]
    rewards: str = "real"
    searched: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def to_json(self) -> str:
        """One JSON object; numbers keep every bit."""
        told = {"format": FORMAT, "version": VERSION}
        told |= {f.name: plain(getattr(self, f.name)) for f in fields(self) if f.name != "arms"}
        arms = [{f.name: plain(getattr(arm, f.name)) for f in fields(arm)} for arm in self.arms]
        return json.dumps(told | {"arms": arms}, allow_nan=False)


def state_from(text: str) -> State:
    """Read and check a state; everything that is wrong is said in a sentence."""
    if len(text) > LONGEST_TEXT:
        raise BadRequest(f"a state must be shorter than {LONGEST_TEXT} characters, but this one has {len(text)}.")
    try:
        found = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise BadRequest(f"a state must be JSON as `Live.save` writes it, but: {error!s:.200}.") from error
    if isinstance(found, dict) and isinstance(found.get("kind"), str):
        raise BadRequest(
            f"a state of a deployed policy must be given, but this is a {found['kind']:.40}; make a state out of a tuning "
            "with `banditune deploy`, or tuning.policy()."
        )
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise BadRequest(f"a state must be a JSON object whose `format` is {FORMAT!r}, but this is {found!r:.80}.")
    if found.get("version") not in (1, VERSION) or isinstance(found["version"], bool):
        raise BadRequest(
            f"the version of a state must be 1 or {VERSION}, but it is {found.get('version')!r:.40}; a newer banditune may "
            "have written it."
        )
    if found["version"] == 1:
        found = {"rewards": "real"} | found
    found = {"searched": {}} | found
    told = _exactly("a state", found, ("format", "version", *(f.name for f in fields(State))))
    pending = told["pending"]
    if pending not in PENDING:
        raise BadRequest(f"`pending` of a state must be one of {PENDING}, but is {pending!r:.40}.")
    if told["rewards"] not in REWARDS:
        raise BadRequest(f"`rewards` of a state must be one of {REWARDS}, but is {told['rewards']!r:.40}.")
    arms = _list("arms", told["arms"], MOST_ARMS)
    state = State(
        _policy(told["policy"]),
        {str(key): number("params", value) for key, value in _object("params", told["params"]).items()},
        whole("horizon", told["horizon"], 1, 2**31),
        whole("seed", told["seed"], 0, 2**40 - 1),
        pending,
        _drawn(told["drawn"]),
        tuple(_arm(arm) for arm in arms),
        told["rewards"],
        ends_of(_object("searched", told["searched"])),
    )
    check_arms_of(state.arms)
    return state


def ends_of(searched: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Both ends of searched ranges, as numbers."""
    found = {}
    for name, ends in searched.items():
        pair = _list("searched", list(ends) if isinstance(ends, tuple) else ends, 2)
        if len(pair) != 2:
            raise BadRequest(f"`searched` of a state must hold two numbers a parameter, but got {pair!r:.60}.")
        found[str(name)] = number("searched", pair[0]), number("searched", pair[1])
    return found


def check_arms_of(arms: tuple[Arm, ...]) -> None:
    """Arms that can be told apart, with as many features each, at least one of them not retired; no more than are read."""
    if len(arms) > MOST_ARMS or any(len(arm.features) > MOST_DIMS for arm in arms):
        raise BadRequest(
            f"a deployed policy must have at most {MOST_ARMS} arms with {MOST_DIMS} features, but has more."
        )
    if not any(not arm.retired for arm in arms):
        raise BadRequest("a deployed policy must have an arm that is not retired, but it has none.")
    check_names([str(arm.name) for arm in arms], len(arms))
    if sum(arm.pulls + arm.waiting for arm in arms) > MOST_PULLS:
        raise BadRequest(f"arms must have at most {MOST_PULLS} pulls in all, but they have more.")
    widths = sorted({len(arm.features) for arm in arms})
    if len(widths) > 1:
        raise BadRequest(f"all arms must have as many features, but some have {widths[0]} and some {widths[-1]}.")


def check_rewards(policy: Policy, arms: tuple[Arm, ...]) -> None:
    """Totals that so many rewards of the policy's kind can have."""
    for arm in arms:
        within = 0 <= arm.total <= arm.pulls if policy.rewards != "real" else abs(arm.total) <= LARGEST * arm.pulls
        if not within or (policy.rewards == "binary" and arm.total != math.floor(arm.total)):
            raise BadRequest(
                f"the total of an arm must be one that {arm.pulls} rewards of {policy.name} can have "
                f"({policy.rewards}), but that of {arm.name!r} is {arm.total!r}."
            )


def check_params(policy: Policy, params: Mapping[str, float]) -> list[float]:
    """The row of parameters, by their names; they may lie outside of the range that is usually searched."""
    wanted = [parameter.name for parameter in policy.parameters]
    if sorted(params) != sorted(wanted):
        raise BadRequest(f"the parameters of {policy.name} are {wanted}, but the state has {sorted(params)!r:.80}.")
    for parameter in policy.parameters:
        least, most = policy.limits(parameter.name)
        low, high = max(parameter.least, least, -LARGEST), min(parameter.most, most, LARGEST)
        if not low <= params[parameter.name] <= high:
            raise BadRequest(
                f"`{low:g} <= {parameter.name} <= {high:g}` must hold for {policy.name}, but the state has "
                f"{params[parameter.name]!r}."
            )
    return [params[name] for name in wanted] or [0.0]


def policy_in(state: State, policy: Policy | None, shelf: Mapping[str, Any], tables: Any) -> Policy:
    """The policy of a state.

    Policies that play a table must be passed, because a state must not decide how long a table takes to make.
    """
    name = state.policy["name"]
    if policy is None and name in tables:
        raise BadRequest(f"the policy {name!r:.60} plays a table and must be passed again: Live.load(path, policy).")
    return policy_told(state.policy, policy, shelf, of="of the state", call="Live.load(path, policy)")


def policy_told(
    told: Mapping[str, Any], policy: Policy | None, shelf: Mapping[str, Any], *, of: str, call: str
) -> Policy:
    """The policy that a file describes: the one passed, if it is that one, or one made again from the shelf."""
    wanted = {key: as_lists(value) for key, value in told.items()}
    name, own = wanted.pop("name", None), wanted.pop(OWN, None)
    if policy is not None:
        policy = with_numbers(policy, told)
        given = described(policy) if isinstance(policy, Policy) else policy
        # A user's code may have moved to another file, and older files do not say that it is a user's.
        same = isinstance(given, dict) and given | {OWN: None} == {"name": name, **wanted, OWN: None}
        if not same or (own and OWN not in given):
            raise BadRequest(f"the policy must be the one {of}, {dict(told)!r:.200}, but got {given!r:.200}.")
        return policy
    if own or not isinstance(name, str) or name not in shelf:
        raise BadRequest(f"a policy of your own must be passed again, but got none for {name!r:.60}: {call}.")
    try:
        made = shelf[name](**wanted)
    except BadRequest:
        raise
    except (TypeError, ValueError, OverflowError, RecursionError, MemoryError, np.linalg.LinAlgError) as error:
        raise BadRequest(f"the options of {name!r} cannot be {wanted!r:.200}: {error!s:.200}.") from error
    return made  # type: ignore[no-any-return]


def with_numbers(policy: Any, told: Mapping[str, Any]) -> Any:
    """A policy with the numbers that a file has for what it takes from a problem."""
    numbers = {name: told[name] for name in open_options(policy) if name in told}
    return replace(policy, **numbers) if numbers else policy


def as_lists(value: Any) -> Any:
    """Tuples as lists, as JSON has them."""
    return [as_lists(item) for item in value] if isinstance(value, tuple | list) else value


def number(name: str, value: Any, most: float = 1e300) -> float:
    """A finite number."""
    found = number_in(value)
    if not -most <= found <= most:
        raise BadRequest(f"`{name}` of a state must be finite numbers up to {most:g}, but got {value!r:.60}.")
    return found


def whole(name: str, value: Any, low: int, high: int) -> int:
    """A whole number within bounds."""
    found = whole_in(value)
    if found is None or not low <= found <= high:
        raise BadRequest(f"`{name}` of a state must be a whole number from {low} to {high}, but got {value!r:.60}.")
    return found


def check_name(name: Any) -> Name:
    """A name of an arm: a short text, or a whole number."""
    if isinstance(name, np.integer):
        name = int(name)
    text = isinstance(name, str) and 1 <= len(name) <= 200
    if not text and (isinstance(name, bool) or not isinstance(name, int) or abs(name) > 2**53):
        raise BadRequest(
            f"the name of an arm must be a text of 1 to 200 characters or a whole number, but got {name!r:.60}."
        )
    return name  # type: ignore[no-any-return]


def _arm(found: Any) -> Arm:
    told = _exactly("an arm", _object("arms", found), tuple(f.name for f in fields(Arm)))
    if not isinstance(told["retired"], bool):
        raise BadRequest(f"`retired` of an arm must be true or false, but is {told['retired']!r:.40}.")
    return Arm(
        check_name(told["name"]),
        whole("pulls", told["pulls"], 0, MOST_PULLS),
        number("total", told["total"]),
        whole("waiting", told["waiting"], 0, MOST_PULLS),
        told["retired"],
        tuple(number("features", value, LARGEST) for value in _list("features", told["features"], MOST_DIMS)),
    )


def _policy(found: Any) -> Mapping[str, Any]:
    told = _object("policy", found)
    if not isinstance(told.get("name"), str):
        raise BadRequest(f"the policy of a state must have a name, but it is {told!r:.80}.")
    return told


def _drawn(found: Any) -> tuple[int, int]:
    pair = _list("drawn", found, 2)
    if len(pair) != 2:
        raise BadRequest(f"`drawn` of a state must be two numbers, but got {found!r:.60}.")
    return whole("drawn", pair[0], 0, 2**32 - 1), whole("drawn", pair[1], 0, 2**32 - 1)


def _no_constant(word: str) -> None:
    raise ValueError(f"{word} is not a finite number")


def _object(name: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise BadRequest(f"`{name}` of a state must hold objects, but got {found!r:.60}.")
    return found


def _list(name: str, found: Any, most: int) -> list[Any]:
    if not isinstance(found, list) or len(found) > most:
        raise BadRequest(f"`{name}` of a state must be a list of at most {most}, but got {found!r:.60}.")
    return found


def _exactly(what: str, found: dict[str, Any], wanted: tuple[str, ...]) -> dict[str, Any]:
    if sorted(found) != sorted(wanted):
        raise BadRequest(f"{what} must hold the fields {sorted(wanted)}, but got {sorted(found)!r:.200}.")
    return found
