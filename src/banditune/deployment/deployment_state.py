"""The state of a deployed policy: a frozen record that goes to JSON and back and is checked when it is read.

Loading runs no code that is named in the file. The memory of a policy is never stored, only the pulls and the total reward
of each arm, from which it is computed: no number in a file becomes an address in compiled code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from banditune.core.checks import check_names, convert_to_integer, convert_to_number
from banditune.core.descriptions import convert_to_plain
from banditune.core.errors import InvalidRequest

STATE_FORMAT = "banditune live state"


STATE_VERSION = 2
"""States of version 1, which do not say for which rewards they were tuned, are read too. So are states of version 2 that
do not say which range was searched."""


MAX_STATE_BYTES = 2**26
"""Bytes of a state that is read."""


MAX_DEPLOYED_ARMS = 100_000


MAX_DIMS = 1000


MAX_PULLS = 2**53


MAX_ABS_REWARD = 1e100
"""Rewards lie between minus this and this, so that totals stay finite."""


PENDING_MODES = ("ignore", "mean")
"""How pulls count whose reward is not there yet."""


TUNED_REWARD_KINDS = ("real", "unit", "binary")
"""For which rewards a policy was tuned."""


ArmName = str | int


@dataclass(frozen=True)
class ArmState:
    """What is known about an arm: pulls with a reward and their total, pulls that wait for one, and its features."""

    name: ArmName
    pulls: int = 0
    total: float = 0.0
    waiting: int = 0
    retired: bool = False
    features: tuple[float, ...] = ()


@dataclass(frozen=True)
class DeploymentState:
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
    arms: tuple[ArmState, ...]
    rewards: str = "real"
    searched: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def to_json(self) -> str:
        """One JSON object; numbers keep every bit."""
        told = {"format": STATE_FORMAT, "version": STATE_VERSION}
        told |= {f.name: convert_to_plain(getattr(self, f.name)) for f in fields(self) if f.name != "arms"}
        arms = [{f.name: convert_to_plain(getattr(arm, f.name)) for f in fields(arm)} for arm in self.arms]
        return json.dumps(told | {"arms": arms}, allow_nan=False)


def parse_state(text: str) -> DeploymentState:
    """Read and check a state; everything that is wrong is said in a sentence."""
    if len(text) > MAX_STATE_BYTES:
        raise InvalidRequest(
            f"a state must be shorter than {MAX_STATE_BYTES} characters, but this one has {len(text)}."
        )
    try:
        found = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"a state must be JSON as `Live.save` writes it, but: {error!s:.200}.") from error
    if isinstance(found, dict) and isinstance(found.get("kind"), str):
        raise InvalidRequest(
            f"a state of a deployed policy must be given, but this is a {found['kind']:.40}; make a state out of a tuning "
            "with `banditune deploy`, or tuning.policy()."
        )
    if not isinstance(found, dict) or found.get("format") != STATE_FORMAT:
        raise InvalidRequest(
            f"a state must be a JSON object whose `format` is {STATE_FORMAT!r}, but this is {found!r:.80}."
        )
    if found.get("version") not in (1, STATE_VERSION) or isinstance(found["version"], bool):
        raise InvalidRequest(
            f"the version of a state must be 1 or {STATE_VERSION}, but it is {found.get('version')!r:.40}; a newer banditune may "
            "have written it."
        )
    if found["version"] == 1:
        found = {"rewards": "real"} | found
    found = {"searched": {}} | found
    told = _require_fields("a state", found, ("format", "version", *(f.name for f in fields(DeploymentState))))
    pending = told["pending"]
    if pending not in PENDING_MODES:
        raise InvalidRequest(f"`pending` of a state must be one of {PENDING_MODES}, but is {pending!r:.40}.")
    if told["rewards"] not in TUNED_REWARD_KINDS:
        raise InvalidRequest(
            f"`rewards` of a state must be one of {TUNED_REWARD_KINDS}, but is {told['rewards']!r:.40}."
        )
    arms = _require_list("arms", told["arms"], MAX_DEPLOYED_ARMS)
    state = DeploymentState(
        _parse_policy(told["policy"]),
        {str(key): _parse_number("params", value) for key, value in _require_object("params", told["params"]).items()},
        _parse_whole("horizon", told["horizon"], 1, 2**31),
        _parse_whole("seed", told["seed"], 0, 2**40 - 1),
        pending,
        _parse_stream_position(told["drawn"]),
        tuple(_parse_arm(arm) for arm in arms),
        told["rewards"],
        parse_range_limits(_require_object("searched", told["searched"])),
    )
    check_arm_states(state.arms)
    return state


def parse_range_limits(searched: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Both ends of searched ranges, as numbers."""
    found = {}
    for name, ends in searched.items():
        pair = _require_list("searched", list(ends) if isinstance(ends, tuple) else ends, 2)
        if len(pair) != 2:
            raise InvalidRequest(f"`searched` of a state must hold two numbers a parameter, but got {pair!r:.60}.")
        found[str(name)] = _parse_number("searched", pair[0]), _parse_number("searched", pair[1])
    return found


def check_arm_states(arms: tuple[ArmState, ...]) -> None:
    """Arms that can be told apart, with as many features each, at least one of them not retired; no more than are read."""
    if len(arms) > MAX_DEPLOYED_ARMS or any(len(arm.features) > MAX_DIMS for arm in arms):
        raise InvalidRequest(
            f"a deployed policy must have at most {MAX_DEPLOYED_ARMS} arms with {MAX_DIMS} features, but has more."
        )
    if not any(not arm.retired for arm in arms):
        raise InvalidRequest("a deployed policy must have an arm that is not retired, but it has none.")
    check_names([str(arm.name) for arm in arms], len(arms))
    if sum(arm.pulls + arm.waiting for arm in arms) > MAX_PULLS:
        raise InvalidRequest(f"arms must have at most {MAX_PULLS} pulls in all, but they have more.")
    widths = sorted({len(arm.features) for arm in arms})
    if len(widths) > 1:
        raise InvalidRequest(f"all arms must have as many features, but some have {widths[0]} and some {widths[-1]}.")


def _parse_number(name: str, value: Any, most: float = 1e300) -> float:
    """A finite number."""
    found = convert_to_number(value)
    if not -most <= found <= most:
        raise InvalidRequest(f"`{name}` of a state must be finite numbers up to {most:g}, but got {value!r:.60}.")
    return found


def _parse_whole(name: str, value: Any, low: int, high: int) -> int:
    """A whole number within bounds."""
    found = convert_to_integer(value)
    if found is None or not low <= found <= high:
        raise InvalidRequest(f"`{name}` of a state must be a whole number from {low} to {high}, but got {value!r:.60}.")
    return found


def check_arm_name(name: Any) -> ArmName:
    """A name of an arm: a short text, or a whole number."""
    if isinstance(name, np.integer):
        name = int(name)
    text = isinstance(name, str) and 1 <= len(name) <= 200
    if not text and (isinstance(name, bool) or not isinstance(name, int) or abs(name) > 2**53):
        raise InvalidRequest(
            f"the name of an arm must be a text of 1 to 200 characters or a whole number, but got {name!r:.60}."
        )
    return name  # type: ignore[no-any-return]


def _parse_arm(found: Any) -> ArmState:
    told = _require_fields("an arm", _require_object("arms", found), tuple(f.name for f in fields(ArmState)))
    if not isinstance(told["retired"], bool):
        raise InvalidRequest(f"`retired` of an arm must be true or false, but is {told['retired']!r:.40}.")
    return ArmState(
        check_arm_name(told["name"]),
        _parse_whole("pulls", told["pulls"], 0, MAX_PULLS),
        _parse_number("total", told["total"]),
        _parse_whole("waiting", told["waiting"], 0, MAX_PULLS),
        told["retired"],
        tuple(
            _parse_number("features", value, MAX_ABS_REWARD)
            for value in _require_list("features", told["features"], MAX_DIMS)
        ),
    )


def _parse_policy(found: Any) -> Mapping[str, Any]:
    told = _require_object("policy", found)
    if not isinstance(told.get("name"), str):
        raise InvalidRequest(f"the policy of a state must have a name, but it is {told!r:.80}.")
    return told


def _parse_stream_position(found: Any) -> tuple[int, int]:
    pair = _require_list("drawn", found, 2)
    if len(pair) != 2:
        raise InvalidRequest(f"`drawn` of a state must be two numbers, but got {found!r:.60}.")
    return _parse_whole("drawn", pair[0], 0, 2**32 - 1), _parse_whole("drawn", pair[1], 0, 2**32 - 1)


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a finite number")


def _require_object(name: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise InvalidRequest(f"`{name}` of a state must hold objects, but got {found!r:.60}.")
    return found


def _require_list(name: str, found: Any, most: int) -> list[Any]:
    if not isinstance(found, list) or len(found) > most:
        raise InvalidRequest(f"`{name}` of a state must be a list of at most {most}, but got {found!r:.60}.")
    return found


def _require_fields(what: str, found: dict[str, Any], wanted: tuple[str, ...]) -> dict[str, Any]:
    if sorted(found) != sorted(wanted):
        raise InvalidRequest(f"{what} must hold the fields {sorted(wanted)}, but got {sorted(found)!r:.200}.")
    return found
