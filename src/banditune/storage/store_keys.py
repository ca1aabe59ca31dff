"""Builds the key of a simulation. A stored regret is used again only if all parts of its key are equal."""

from __future__ import annotations

import json
import types
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.descriptions import OWN_CODE_KEY, describe, shorten_value
from banditune.core.errors import InvalidRequest
from banditune.simulation.bind import bind_function
from banditune.simulation.instances import draw_instances
from banditune.simulation.kernel_selection import fill_slots, select_shortcut
from banditune.simulation.spec import STREAM_VERSION, SimulationSpec
from banditune.storage.provenance import digest_bytes, digest_numbers, digest_sampling_code

SCALAR_FUNCTIONS = ("view", "start", "choose", "update")
"""The functions of a policy. They are in the key even if a shortcut replaces them."""


MAX_OPTION_LENGTH = 10_000
"""The largest number of characters of an option that is stored unchanged."""


def find_row_dtype(spec: SimulationSpec, row: FloatArray) -> str | None:
    """Return "float64" if a GPU simulates this row in another float type than the rest of its spec; else None.

    `spec` is the spec of the row, with or without its shortcut.
    """
    if spec.device != "gpu":
        return None
    from banditune.simulation.gpu.launch_plan import select_row_dtype

    return select_row_dtype(spec, row)


def build_key(spec: SimulationSpec, row_dtype: str | None = None) -> dict[str, Any]:
    """Build the key: all that determines regrets, except for parameters, runs and the noise stream of a row."""
    return {
        "stream": STREAM_VERSION,
        "policy": _shorten_options(describe(spec.policy)),
        "problem": _shorten_options(describe(spec.problem)),
        "horizon": spec.horizon,
        "seed": spec.seed,
        "regret": spec.regret,
        "random_numbers": "common" if spec.common_random_numbers else "independent",
        "checkpoints": list(spec.checkpoints or (spec.horizon,)),
        "device": spec.device,
        **_describe_code(spec, row_dtype),
        "options": {
            "policy": digest_numbers(spec.policy.options(spec.problem.arms, spec.problem.dims, spec.horizon)),
            "problem": digest_numbers(spec.problem.options()),
        },
        "sampling_code": digest_sampling_code(spec.problem),
        "instances": _digest_first_instances(spec),
    }


def _shorten_options(record: dict[str, Any]) -> dict[str, Any]:
    """Replace long options, such as features of many arms, by their size and a digest. Custom code has its own digest."""
    shortened = {}
    for name, value in record.items():
        if name == OWN_CODE_KEY:
            continue
        text = json.dumps(value, default=repr)
        shortened[name] = (
            value if len(text) <= MAX_OPTION_LENGTH else f"{shorten_value(value)} {digest_bytes(text.encode())}"
        )
    return shortened


def serialize_key(record: dict[str, Any]) -> str:
    """Serialise a key, so that equal keys are equal as text."""
    try:
        return json.dumps(record, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidRequest(
            f"options of a policy and a problem must be numbers, strings and lists of them for a store, but: {error}.",
            argument="store",
            code="unsupported",
        ) from error


def _describe_code(spec: SimulationSpec, row_dtype: str | None) -> dict[str, Any]:
    """Describe the simulation of a spec: shortcut, float type and digests of the scalar code."""
    shortcut = select_shortcut(spec.policy, spec.problem) if spec.use_shortcut else None
    name = shortcut.name if shortcut else "none"
    slots, dtype = fill_slots(spec)[0], "float64"
    if spec.device == "gpu":
        from banditune.simulation.gpu.launch_plan import plan_launch

        plan = plan_launch(spec, row_dtype)
        slots, dtype = plan.slots, np.dtype(plan.slots["dtype"]).name
        name = "warp version" if plan.threads_per_run > 1 else name
    # The loop itself is not part of the key. If a change of it changes numbers, STREAM_VERSION is increased.
    functions = {name: getattr(spec.policy, name) for name in SCALAR_FUNCTIONS}
    others = {slot: filling for slot, filling in slots.items() if isinstance(slot, str) and slot != "simulate_run"}
    code = {
        slot: bind_function(filling, slots)[1]
        for slot, filling in {**functions, **others}.items()
        if isinstance(getattr(filling, "py_func", filling), types.FunctionType)
    }
    return {"shortcut": name, "dtype": dtype, "code": code}


def _digest_first_instances(spec: SimulationSpec) -> str:
    """Digest the first block of instances. Unlike digests of code, it depends on files that `sample` reads."""
    first, second = (_digest_block(spec) for _ in range(2))
    if first != second:
        raise InvalidRequest(
            f"`sample(size, rng)` of the problem {spec.problem.name!r} must draw only from `rng`, but it drew different "
            "instances from equal generators; stored regrets could not be used again.",
            argument="problem",
            code="own-code",
        )
    return first


def _digest_block(spec: SimulationSpec) -> str:
    block = draw_instances(spec.problem, spec.seed, 0)
    assert block.features is not None
    return digest_bytes(block.means.tobytes() + block.features.tobytes())
