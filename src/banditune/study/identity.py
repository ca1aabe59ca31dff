"""What made a regret: everything that a stored number must agree on before it is used again."""

from __future__ import annotations

import hashlib
import json
import sysconfig
import types
from typing import Any

import numpy as np

from banditune.contracts import BadRequest, Floats, Problem, is_ours
from banditune.descriptions import OWN, described, short
from banditune.engine.bind import bound, code_digest, names_in
from banditune.engine.run import STREAM_VERSION, Job, instances, numbers_of, shortcut_for, slots_for

SCALAR = ("view", "start", "choose", "update")
"""A policy's own functions; they count even where a shortcut stands for them."""


LONG = 10_000
"""Letters of an option that are stored as they are."""


def kind_of(job: Job, row: Floats) -> str | None:
    """ "float64" where a GPU plays a row of parameters in another precision than the rest of its job; else None.

    The job is that of the row.
    """
    if job.device != "gpu":
        return None
    from banditune.engine.gpu import precision_of_row

    return precision_of_row(job, row)


def identity(job: Job, kind: str | None = None) -> dict[str, Any]:
    """Everything that decides the regrets of a job, but parameters, runs and the number of a row's own noise."""
    return {
        "stream": STREAM_VERSION,
        "policy": _brief(described(job.policy)),
        "problem": _brief(described(job.problem)),
        "horizon": job.horizon,
        "seed": job.seed,
        "regret": job.regret,
        "noise": job.noise,
        "at": list(job.at or (job.horizon,)),
        "device": job.device,
        **_played(job, kind),
        "options": {
            "policy": _numbers(job.policy.options(job.problem.arms, job.problem.dims, job.horizon)),
            "problem": _numbers(job.problem.options()),
        },
        "sample": sample_digest(job.problem),
        "instances": _first_instances(job),
    }


def _brief(told: dict[str, Any]) -> dict[str, Any]:
    """Options, of long ones (features of many arms) the size and a digest; a user's code is known by its digest."""
    found = {}
    for name, value in told.items():
        if name == OWN:
            continue
        text = json.dumps(value, default=repr)
        found[name] = value if len(text) <= LONG else f"{short(value)} {_short(text.encode())}"
    return found


def canonical(told: dict[str, Any]) -> str:
    """An identity as text: equal ones are equal letter by letter."""
    try:
        return json.dumps(told, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError) as error:
        raise BadRequest(
            f"options of a policy and a problem must be numbers, words and lists of them for a ledger, but: {error}."
        ) from error


def _played(job: Job, kind: str | None) -> dict[str, Any]:
    """How a job is played, in what precision, and digests of the scalar code that does it."""
    shortcut = shortcut_for(job.policy, job.problem) if job.shortcut else None
    play = shortcut.name if shortcut else "plain"
    slots, precision = slots_for(job)[0], "float64"
    if job.device == "gpu":
        from banditune.engine.gpu import plan

        planned = plan(job, kind)
        slots, precision = planned.slots, np.dtype(planned.slots["precision"]).name
        play = "team" if planned.members > 1 else play
    # The engine's own loop is not told: STREAM_VERSION stands for it.
    own = {name: getattr(job.policy, name) for name in SCALAR}
    told = {name: filling for name, filling in slots.items() if isinstance(name, str) and name != "play"}
    code = {
        name: bound(filling, slots)[1]
        for name, filling in {**own, **told}.items()
        if isinstance(getattr(filling, "py_func", filling), types.FunctionType)
    }
    return {"play": play, "precision": precision, "code": code}


def _numbers(options: Any) -> str:
    """A digest of options as scalar code reads them."""
    table = numbers_of(options)
    return _short(f"{table.dtype.str}{table.shape}".encode() + np.ascontiguousarray(table).tobytes())


def _first_instances(job: Job) -> str:
    """A digest of the first block of instances: sees what no digest of code can, such as files that `sample` reads."""
    first, again = (_block_digest(job) for _ in range(2))
    if first != again:
        raise BadRequest(
            f"`sample(size, rng)` of the problem {job.problem.name!r} must draw from `rng` alone, but it drew other "
            "instances from the same numbers; a ledger could not be used again."
        )
    return first


def _block_digest(job: Job) -> str:
    drawn = instances(job.problem, job.seed, 0)
    assert drawn.features is not None
    return _short(drawn.means.tobytes() + drawn.features.tobytes())


def sample_digest(problem: Problem) -> str:
    """A digest of the Python code that draws instances and of what it reaches: own methods, helpers, numbers.

    That is `sample`, and `sample_at` where instances are functions of their keys; but not this package's own, for which
    the first instances stand: with it, ledgers from before it counted would be lost. Code of the standard library and of
    installed packages is known by its name only.
    """
    reached = _Reached(problem)
    reached.reach("sample", type(problem).sample)
    if problem.by_key and not is_ours(type(problem).sample_at):
        reached.reach("sample_at", type(problem).sample_at)
    return _short("\n".join(sorted(reached.told)).encode())


class _Reached:
    """Follows the Python code that a problem's methods reach, each function once; `told` has a line for each thing."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.seen: set[int] = set()
        self.told: list[str] = []

    def reach(self, name: str, value: Any) -> None:
        """Tell what a name stands for, and follow functions."""
        value = _unwrapped(value)
        if isinstance(value, types.FunctionType):
            if not _installed(value):
                self.follow(name, value)
        elif isinstance(value, np.ndarray) and value.dtype != object:
            self.told.append(f"{name} {_numbers(value)}")
        elif value is None or isinstance(value, bool | int | float | str | tuple | np.generic):
            self.told.append(f"{name} {_plain(value)}")

    def follow(self, name: str, function: types.FunctionType) -> None:
        """Tell a function's code, and all that it uses."""
        if id(function) in self.seen:
            return
        self.seen.add(id(function))
        self.told.append(f"{name} {code_digest(function.__code__)}")
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self.reach(f"{name} default", value)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        scope = {**function.__globals__, **{known: cell.cell_contents for known, cell in cells}}
        for known, attributes in names_in(function.__code__):
            if isinstance(scope.get(known), types.ModuleType):
                for attribute in attributes:
                    self.reach(f"{known}.{attribute}", getattr(scope[known], attribute, None))
            elif known in scope:
                self.reach(known, scope[known])
        # Methods and fields of the problem, and what they override: any attribute of that name may be meant.
        holders = [getattr(self.problem, "__dict__", {}), *(vars(kind) for kind in type(self.problem).__mro__[:-1])]
        for attribute in attributes_in(function.__code__):
            for holder in holders:
                if attribute in holder:
                    self.reach(attribute, holder[attribute])


def attributes_in(code: types.CodeType) -> set[str]:
    """Every name that code, and code within it, may take from an object."""
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(attributes_in, inner))


def _unwrapped(value: Any) -> Any:
    """The function behind a method, a property or compiled code."""
    for name in ("py_func", "__func__", "fget", "func"):
        if isinstance(getattr(value, name, None), types.FunctionType):
            return getattr(value, name)
    return value


def _plain(value: Any) -> str:
    """Numbers, words and tuples of them; of anything else only the type, because its text may hold an address."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_plain, value))})"
    known = value is None or isinstance(value, bool | int | float | str | np.generic)
    return f"{type(value).__name__} {value!r}" if known else type(value).__qualname__


def _installed(function: types.FunctionType) -> bool:
    """Whether a function belongs to the standard library or to an installed package other than this one."""
    if is_ours(function):
        return False
    homes = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return any(home and function.__code__.co_filename.startswith(home) for home in homes)


def _short(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:20]
