"""Builds the key of a simulation: everything that must agree before a stored regret is used again."""

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
"""A policy's own functions; they count even where a shortcut stands for them."""


MAX_OPTION_LENGTH = 10_000
"""Letters of an option that are stored as they are."""


def find_row_precision(job: SimulationSpec, row: FloatArray) -> str | None:
    """ "float64" where a GPU plays a row of parameters in another precision than the rest of its job; else None.

    The job is that of the row.
    """
    if job.device != "gpu":
        return None
    from banditune.simulation.gpu.launch_plan import select_row_dtype

    return select_row_dtype(job, row)


def build_key(job: SimulationSpec, kind: str | None = None) -> dict[str, Any]:
    """Everything that decides the regrets of a job, but parameters, runs and the number of a row's own noise."""
    return {
        "stream": STREAM_VERSION,
        "policy": _shorten_options(describe(job.policy)),
        "problem": _shorten_options(describe(job.problem)),
        "horizon": job.horizon,
        "seed": job.seed,
        "regret": job.regret,
        "noise": job.noise,
        "at": list(job.at or (job.horizon,)),
        "device": job.device,
        **_describe_code(job, kind),
        "options": {
            "policy": digest_numbers(job.policy.options(job.problem.arms, job.problem.dims, job.horizon)),
            "problem": digest_numbers(job.problem.options()),
        },
        "sample": digest_sampling_code(job.problem),
        "instances": _digest_first_instances(job),
    }


def _shorten_options(told: dict[str, Any]) -> dict[str, Any]:
    """Options, of long ones (features of many arms) the size and a digest; a user's code is known by its digest."""
    found = {}
    for name, value in told.items():
        if name == OWN_CODE_KEY:
            continue
        text = json.dumps(value, default=repr)
        found[name] = (
            value if len(text) <= MAX_OPTION_LENGTH else f"{shorten_value(value)} {digest_bytes(text.encode())}"
        )
    return found


def serialize_key(told: dict[str, Any]) -> str:
    """An identity as text: equal ones are equal letter by letter."""
    try:
        return json.dumps(told, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise InvalidRequest(
            f"options of a policy and a problem must be numbers, words and lists of them for a ledger, but: {error}."
        ) from error


def _describe_code(job: SimulationSpec, kind: str | None) -> dict[str, Any]:
    """How a job is played, in what precision, and digests of the scalar code that does it."""
    shortcut = select_shortcut(job.policy, job.problem) if job.shortcut else None
    play = shortcut.name if shortcut else "plain"
    slots, precision = fill_slots(job)[0], "float64"
    if job.device == "gpu":
        from banditune.simulation.gpu.launch_plan import plan_launch

        planned = plan_launch(job, kind)
        slots, precision = planned.slots, np.dtype(planned.slots["precision"]).name
        play = "team" if planned.members > 1 else play
    # The engine's own loop is not told: STREAM_VERSION stands for it.
    own = {name: getattr(job.policy, name) for name in SCALAR_FUNCTIONS}
    told = {name: filling for name, filling in slots.items() if isinstance(name, str) and name != "play"}
    code = {
        name: bind_function(filling, slots)[1]
        for name, filling in {**own, **told}.items()
        if isinstance(getattr(filling, "py_func", filling), types.FunctionType)
    }
    return {"play": play, "precision": precision, "code": code}


def _digest_first_instances(job: SimulationSpec) -> str:
    """A digest of the first block of instances: sees what no digest of code can, such as files that `sample` reads."""
    first, again = (_digest_block(job) for _ in range(2))
    if first != again:
        raise InvalidRequest(
            f"`sample(size, rng)` of the problem {job.problem.name!r} must draw from `rng` alone, but it drew other "
            "instances from the same numbers; a ledger could not be used again."
        )
    return first


def _digest_block(job: SimulationSpec) -> str:
    drawn = draw_instances(job.problem, job.seed, 0)
    assert drawn.features is not None
    return digest_bytes(drawn.means.tobytes() + drawn.features.tobytes())
