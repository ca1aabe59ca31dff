"""The state of a deployed policy: a frozen record that is written to JSON and checked when it is read.

No code that is named in the file is run. The memory of a policy is not stored, but computed from the pulls and the total
reward of each arm. So no number in a file becomes an address in compiled code.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np

from banditune.core.checks import check_names, convert_to_integer, convert_to_number
from banditune.core.descriptions import convert_to_plain
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Wording

STATE_FORMAT = "banditune deployed state"


STATE_VERSION = 3
"""Older versions are read too. Version 1 has no `rewards`; some states of version 2 have no `searched_ranges`."""


OLD_FIELD_NAMES = {"stream_position": "drawn", "searched_ranges": "searched", "pending_pulls": "waiting"}
"""The names of fields in states of versions 1 and 2."""


MAX_STATE_BYTES = 2**26
"""The largest number of bytes of a state."""


MAX_DEPLOYED_ARMS = 100_000


MAX_DIMS = 1000


MAX_PULLS = 2**53


MAX_ABS_REWARD = 1e100
"""The largest absolute reward. It is limited so that totals are finite."""


PENDING_MODES = ("ignore", "mean")
"""The treatments of pulls without reward."""


TUNED_REWARD_KINDS = ("real", "unit", "binary")
"""The kinds of rewards that a policy was tuned for."""


ArmName = str | int


@dataclass(frozen=True)
class ArmState:
    """The counts, the rewards and the features of one arm of a deployed policy.

    Attributes
    ----------
    name : str or int
        The name of the arm.
    pulls : int
        The number of pulls with a reward.
    total : float
        The sum of these rewards.
    pending_pulls : int
        The number of pulls without a reward.
    retired : bool
        Whether the arm can no longer be selected.
    features : tuple of float
        The features of the arm; empty if arms have none.
    """

    name: ArmName
    pulls: int = 0
    total: float = 0.0
    pending_pulls: int = 0
    retired: bool = False
    features: tuple[float, ...] = ()


@dataclass(frozen=True)
class DeploymentState:
    """The state of a deployed policy: everything except the code of the policy.

    Attributes
    ----------
    policy : mapping
        The name and the options of the policy.
    params : mapping of str to float
        The value of each parameter.
    horizon : int
        The horizon that the parameters were tuned for.
    seed : int
        The seed of the policy's random numbers.
    pending : {"ignore", "mean"}
        The treatment of pulls without reward.
    stream_position : tuple of (int, int)
        The position in the stream of random numbers.
    arms : tuple of ArmState
        The arms, retired ones included.
    rewards : {"real", "unit", "binary"}
        The kind of rewards that the parameters were tuned for: any, in [0, 1], or 0 and 1.
    searched_ranges : mapping of str to (float, float)
        Both ends of the range in which each parameter was tuned; empty where that is not known.
    """

    policy: Mapping[str, Any]
    params: Mapping[str, float]
    horizon: int
    seed: int
    pending: str
    stream_position: tuple[int, int]
    arms: tuple[ArmState, ...]
    rewards: str = "real"
    searched_ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def to_json(self) -> str:
        """Return the state as one JSON object. Numbers keep every bit."""
        data = {"format": STATE_FORMAT, "version": STATE_VERSION}
        data |= {f.name: convert_to_plain(getattr(self, f.name)) for f in fields(self) if f.name != "arms"}
        arms = [{f.name: convert_to_plain(getattr(arm, f.name)) for f in fields(arm)} for arm in self.arms]
        return json.dumps(data | {"arms": arms}, allow_nan=False)


def parse_state(text: str) -> DeploymentState:
    """Read and check a state. Raise `InvalidRequest` if anything in it is not valid."""
    if len(text) > MAX_STATE_BYTES:
        raise InvalidRequest(
            f"a state must be shorter than {MAX_STATE_BYTES} characters, but this one has {len(text)}.",
            code="too-large",
        )
    try:
        data = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f"a state must be JSON as `DeployedPolicy.save` writes it, but: {error!s:.200}.", code="file-format"
        ) from error
    if isinstance(data, dict) and isinstance(data.get("kind"), str):
        raise InvalidRequest(
            "a state of a deployed policy must be given, but this is a {:.40}; make a state from a tuning with {}.",
            *(data["kind"], Wording("tuning.deploy()", "`banditune deploy`")),
            code="file-format",
        )
    if not isinstance(data, dict) or data.get("format") != STATE_FORMAT:
        raise InvalidRequest(
            f"a state must be a JSON object whose `format` is {STATE_FORMAT!r}, but this is {data!r:.80}.",
            code="file-format",
        )
    if data.get("version") not in (1, 2, STATE_VERSION) or isinstance(data["version"], bool):
        raise InvalidRequest(
            f"the version of a state must be 1, 2 or {STATE_VERSION}, but it is {data.get('version')!r:.40}; a "
            "newer banditune may have written it.",
            code="schema-version",
        )
    if data["version"] == 1:
        data = {"rewards": "real"} | data
    old_names: Mapping[str, str] = {}
    if data["version"] < STATE_VERSION:
        data, old_names = {"searched": {}} | data, OLD_FIELD_NAMES
    field_names = ("format", "version", *(f.name for f in fields(DeploymentState)))
    data = _require_fields("a state", data, field_names, old_names)
    pending = data["pending"]
    if pending not in PENDING_MODES:
        raise _make_field_error("pending", f"one of {PENDING_MODES}", pending)
    if data["rewards"] not in TUNED_REWARD_KINDS:
        raise _make_field_error("rewards", f"one of {TUNED_REWARD_KINDS}", data["rewards"])
    arms = _require_list("arms", data["arms"], MAX_DEPLOYED_ARMS)
    state = DeploymentState(
        _parse_policy(data["policy"]),
        {str(key): _parse_number("params", value) for key, value in _require_object("params", data["params"]).items()},
        _parse_whole("horizon", data["horizon"], 1, 2**31),
        _parse_whole("seed", data["seed"], 0, 2**40 - 1),
        pending,
        _parse_stream_position(data["stream_position"]),
        tuple(_parse_arm(arm, old_names) for arm in arms),
        data["rewards"],
        parse_range_limits(_require_object("searched_ranges", data["searched_ranges"])),
    )
    check_arm_states(state.arms)
    return state


def parse_range_limits(searched: Mapping[str, Any]) -> dict[str, tuple[float, float]]:
    """Return both ends of searched ranges as numbers."""
    limits = {}
    for name, ends in searched.items():
        pair = _require_list("searched_ranges", list(ends) if isinstance(ends, tuple) else ends, 2)
        if len(pair) != 2:
            raise _make_field_error("searched_ranges", "two numbers per parameter", pair)
        limits[str(name)] = _parse_number("searched_ranges", pair[0]), _parse_number("searched_ranges", pair[1])
    return limits


def check_arm_states(arms: tuple[ArmState, ...]) -> None:
    """Check limits, unique names, equal numbers of features, and that an arm is not retired."""
    if len(arms) > MAX_DEPLOYED_ARMS or any(len(arm.features) > MAX_DIMS for arm in arms):
        raise InvalidRequest(
            f"a deployed policy must have at most {MAX_DEPLOYED_ARMS} arms with {MAX_DIMS} features, but has more.",
            code="too-large",
        )
    if not any(not arm.retired for arm in arms):
        raise InvalidRequest(
            "a deployed policy must have an arm that is not retired, but it has none.", code="conflict"
        )
    check_names([str(arm.name) for arm in arms], len(arms))
    if sum(arm.pulls + arm.pending_pulls for arm in arms) > MAX_PULLS:
        raise InvalidRequest(f"arms must have at most {MAX_PULLS} pulls in all, but they have more.", code="too-large")
    widths = sorted({len(arm.features) for arm in arms})
    if len(widths) > 1:
        raise InvalidRequest(
            f"all arms must have the same number of features, but some have {widths[0]} and some {widths[-1]}.",
            argument="features",
            code="wrong-shape",
        )


def _make_field_error(name: str, requirement: str, value: Any) -> InvalidRequest:
    """Make the error for a field of a state with a wrong value."""
    return InvalidRequest(f"`{name}` of a state must be {requirement}, but got {value!r:.60}.", code="bad-data")


def _parse_number(name: str, value: Any, limit: float = 1e300) -> float:
    """Return a finite number, or raise `InvalidRequest`."""
    number = convert_to_number(value)
    if not -limit <= number <= limit:
        raise _make_field_error(name, f"finite numbers up to {limit:g}", value)
    return number


def _parse_whole(name: str, value: Any, low: int, high: int) -> int:
    """Return a whole number within bounds, or raise `InvalidRequest`."""
    number = convert_to_integer(value)
    if number is None or not low <= number <= high:
        raise _make_field_error(name, f"a whole number from {low} to {high}", value)
    return number


def check_arm_name(name: Any) -> ArmName:
    """Return the name of an arm, a short text or a whole number, or raise `InvalidRequest`."""
    if isinstance(name, np.integer):
        name = int(name)
    text = isinstance(name, str) and 1 <= len(name) <= 200
    if not text and (isinstance(name, bool) or not isinstance(name, int) or abs(name) > 2**53):
        raise InvalidRequest(
            f"the name of an arm must be a text of 1 to 200 characters or a whole number, but got {name!r:.60}.",
            argument="name",
            code="wrong-type",
        )
    return name  # type: ignore[no-any-return]


def _parse_arm(data: Any, old_names: Mapping[str, str]) -> ArmState:
    field_names = tuple(f.name for f in fields(ArmState))
    data = _require_fields("an arm", _require_object("arms", data), field_names, old_names)
    if not isinstance(data["retired"], bool):
        raise _make_field_error("retired", "true or false", data["retired"])
    return ArmState(
        check_arm_name(data["name"]),
        _parse_whole("pulls", data["pulls"], 0, MAX_PULLS),
        _parse_number("total", data["total"]),
        _parse_whole("pending_pulls", data["pending_pulls"], 0, MAX_PULLS),
        data["retired"],
        tuple(
            _parse_number("features", value, MAX_ABS_REWARD)
            for value in _require_list("features", data["features"], MAX_DIMS)
        ),
    )


def _parse_policy(data: Any) -> Mapping[str, Any]:
    policy = _require_object("policy", data)
    if not isinstance(policy.get("name"), str):
        raise InvalidRequest(f"the policy of a state must have a name, but it is {policy!r:.80}.", code="bad-data")
    return policy


def _parse_stream_position(data: Any) -> tuple[int, int]:
    pair = _require_list("stream_position", data, 2)
    if len(pair) != 2:
        raise _make_field_error("stream_position", "two numbers", data)
    first, second = (_parse_whole("stream_position", value, 0, 2**32 - 1) for value in pair)
    return first, second


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not a finite number")


def _require_object(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _make_field_error(name, "objects", value)
    return value


def _require_list(name: str, value: Any, limit: int) -> list[Any]:
    if not isinstance(value, list) or len(value) > limit:
        raise _make_field_error(name, f"a list of at most {limit}", value)
    return value


def _require_fields(
    title: str, data: dict[str, Any], field_names: tuple[str, ...], old_names: Mapping[str, str]
) -> dict[str, Any]:
    """Return the fields by their present names. `old_names` maps these to the names in `data`."""
    names = {old_names.get(name, name): name for name in field_names}
    if sorted(data) != sorted(names):
        raise InvalidRequest(
            f"{title} must have the fields {sorted(names)}, but got {sorted(data)!r:.200}.", code="file-format"
        )
    return {names[key]: value for key, value in data.items()}
