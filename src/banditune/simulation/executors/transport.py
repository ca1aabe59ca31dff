"""What travels to workers and back: a job as bytes, once; pieces and regrets; errors as sentences.

Bytes only travel between processes that trust each other: they are pickles, which run code. None are read from files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
import sysconfig
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from types import ModuleType
from typing import Any, NamedTuple

from banditune.core.errors import InvalidRequest, SimulationError, WorkerLost
from banditune.simulation.executor import Chunk, ChunkResult

KEPT_SIMULATORS = 4
"""Jobs that a worker keeps ready."""


ERROR_LENGTH = 200
"""Letters that are told of an error of a cluster's library."""


class PackedSpec(NamedTuple):
    """A job as bytes, by their digest; `code` is the digest of all scalar code that the sender bound for it."""

    digest: str
    job: bytes
    code: str
    who: str


class RemoteError(NamedTuple):
    """An error that travels: the sentence, and whether it is a complaint about the request."""

    told: str
    request: bool


class WorkerIdentity(NamedTuple):
    """Who a worker is, and the versions that decide bits."""

    name: str
    versions: dict[str, str]


def make_worker_entry() -> Callable[..., Any]:
    """A function for workers of others: `enter(wanted, recipe, piece)`.

    It stands inside another one, so that it travels as code and not by its name: a worker that has another banditune, or
    none, can run it too, and say so.
    """

    def enter(wanted: Any, recipe: Any, piece: Any) -> Any:
        import os
        import platform
        from importlib import import_module

        def found(package: str) -> str:
            try:
                return str(import_module(package).__version__)
            except ImportError:
                return "none"

        versions = {package: found(package) for package in ("banditune", "numpy", "numba")}
        versions["python"] = ".".join(platform.python_version_tuple()[:2])
        name = f"{platform.node()}, process {os.getpid()}"
        if wanted is None or versions != wanted:
            return name, versions
        # dropped import

        return simulate_packed_chunk(PackedSpec(*recipe), piece)

    return enter


def identify_worker() -> WorkerIdentity:
    """This process's card."""
    return WorkerIdentity(*make_worker_entry()(None, None, None))


def check_worker_versions(found: Any) -> None:
    """Refuse a worker that could play other bits."""
    name, theirs = found
    ours = identify_worker().versions
    other = [part for part in ours if ours[part] != theirs.get(part)]
    if other:
        told = " and ".join(f"{part} {theirs.get(part, 'none')} (here {ours[part]})" for part in other)
        raise InvalidRequest(
            f"every worker must have the same versions as this process, so that results are the same, but {name} has "
            f"{told}; install the same versions there."
        )


def pack_spec(job: Any) -> PackedSpec:
    """A job as it travels; users' own code goes along, because workers do not have their files."""
    import cloudpickle

    from banditune.simulation.spec import describe_spec

    code = digest_spec_code(
        job
    )  # first: it leaves with users' functions what is made of their source, which stays here
    try:
        # What is packed as code is the whole process's business: two studies at once must not undo each other's.
        with _packing_lock, _pickle_user_modules_by_value(cloudpickle):
            payload: bytes = cloudpickle.dumps(job, protocol=5)
    except Exception as error:
        raise InvalidRequest(
            f"{describe_spec(job)} must be able to travel to other processes, but it cannot be packed: {type(error).__name__}: "
            f"{error}; use cluster='threads', or make it of functions and numbers."
        ) from error
    return PackedSpec(hashlib.sha256(payload).hexdigest(), payload, code, describe_spec(job))


def digest_spec_code(job: Any) -> str:
    """The digest of all scalar code that plays a job, the engine's own included."""
    from banditune.simulation import loop
    from banditune.simulation.bind import bind_function
    from banditune.simulation.kernel_selection import fill_slots

    return bind_function(loop.play_block, fill_slots(job)[0])[1]


@contextmanager
def _pickle_user_modules_by_value(cloudpickle: Any) -> Iterator[None]:
    """While inside, what belongs to users' own modules is packed as code."""
    registered = []
    for module in list(sys.modules.values()):
        if _is_user_module(module) and module.__name__ not in cloudpickle.list_registry_pickle_by_value():
            cloudpickle.register_pickle_by_value(module)
            registered.append(module)
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)


def _is_user_module(module: Any) -> bool:
    """Whether a module is a file of the user's: not of the standard library, an installed package or this one."""
    file = getattr(module, "__file__", None)
    if not isinstance(module, ModuleType) or not isinstance(file, str) or not file.endswith(".py"):
        return False
    top = module.__name__.partition(".")[0]
    if top in ("banditune", "__main__") or sys.modules.get(module.__name__) is not module:
        return False
    # Installed packages may stand anywhere on the path, not only where this Python puts them.
    return not file.startswith(_list_library_folders()) and top not in _list_installed_modules()


@lru_cache(maxsize=1)
def _list_installed_modules() -> frozenset[str]:
    """The names of all installed packages' modules."""
    from importlib.metadata import packages_distributions

    return frozenset(packages_distributions())


@lru_cache(maxsize=1)
def _list_library_folders() -> tuple[str, ...]:
    """Folders of the standard library and of installed packages."""
    found = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return tuple(home for home in found if home)


_simulators: OrderedDict[str, Any] = OrderedDict()


_simulators_lock = threading.Lock()


_packing_lock = threading.Lock()


def pack_chunk(piece: Chunk) -> Any:
    """A piece in words that every Python knows."""
    return piece.params.tolist(), piece.first_row, piece.runs


def simulate_packed_chunk(recipe: PackedSpec, piece: Any) -> ChunkResult | RemoteError:
    """Play a packed piece of a job that travelled, here."""
    from banditune.core.arrays import copy_read_only
    from banditune.simulation.blas_threads import limit_blas_threads
    from banditune.simulation.simulator import NO_STOP_SIGNAL

    params, first_row, runs = piece
    try:
        with limit_blas_threads():
            played: ChunkResult = load_simulator(recipe).play(
                Chunk(copy_read_only(params), first_row, runs), NO_STOP_SIGNAL
            )
            return played
    except Exception as error:
        return pack_error(error)


def load_simulator(recipe: PackedSpec) -> Any:
    """A job that travelled, made ready; the last few are kept."""
    import pickle

    from banditune.simulation.simulator import make_checked_simulator

    with _simulators_lock:
        if recipe.digest not in _simulators:
            try:
                job = pickle.loads(recipe.job)
            except Exception as error:
                raise InvalidRequest(_explain_missing_package(recipe, error)) from error
            if digest_spec_code(job) != recipe.code:
                raise InvalidRequest(
                    f"every worker must have the same code as this process, but {identify_worker().name} has another for "
                    f"{recipe.who}; install the same banditune there."
                )
            _simulators[recipe.digest] = make_checked_simulator(job)
        _simulators.move_to_end(recipe.digest)
        while len(_simulators) > KEPT_SIMULATORS:
            _simulators.popitem(last=False)
        return _simulators[recipe.digest]


def _explain_missing_package(recipe: PackedSpec, error: Exception) -> str:
    """Why a job cannot be unpacked here."""
    lacks = f"module {error.name!r}" if isinstance(error, ModuleNotFoundError) else f"all of it ({error})"
    return (
        f"every worker must have the packages that {recipe.who} uses, but {identify_worker().name} does not have {lacks}; install the "
        "same packages there, or keep the code in files of your own, which travel."
    )


def pack_error(error: Exception) -> RemoteError:
    """An error as it travels."""
    if isinstance(error, InvalidRequest | SimulationError):
        return RemoteError(str(error), isinstance(error, InvalidRequest))
    return RemoteError(f"a worker ({identify_worker().name}) failed: {type(error).__name__}: {error}.", False)


def unpack_reply(outcome: Any) -> Any:
    """What a worker sent; an error is raised here."""
    if isinstance(outcome, RemoteError):
        raise (InvalidRequest if outcome.request else SimulationError)(outcome.told)
    return outcome


def summarize_error(error: Exception) -> str:
    """What an error says, in a line; some of Ray's are tracebacks, whose last line says what happened."""
    told = str(error).strip()
    if '  File "' in told:
        told = told.splitlines()[-1]
    return " ".join(told.split())[:ERROR_LENGTH]


def make_cluster_lost_error(kind: str, why: object) -> WorkerLost:
    """A cluster went away."""
    return WorkerLost(
        f"the {kind} cluster must stay until the work is done, but {why}; start it and the study again: with a ledger it "
        "goes on where it was."
    )


@contextmanager
def translate_cluster_errors(kind: str) -> Iterator[None]:
    """For questions to a cluster: whatever its library raises when nobody answers becomes a sentence."""
    try:
        yield
    except Exception as error:
        raise make_cluster_lost_error(kind, f"{type(error).__name__}: {summarize_error(error)}") from error


def require_package(extra: str, module: str) -> None:
    """Refuse a cluster whose library is not installed."""
    if importlib.util.find_spec(module) is None:
        raise InvalidRequest(
            f"a {extra} cluster needs `pip install 'banditune[{extra}]'`, but {module} is not installed."
        )
