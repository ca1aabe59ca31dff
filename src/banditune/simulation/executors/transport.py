"""Sends specs and chunks to workers, and results and errors back.

A spec is sent once, as bytes. The bytes are pickles, and reading a pickle can run code. So pickles are exchanged only
between processes that trust each other, and none is read from a file.
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
from weakref import WeakValueDictionary

from banditune.core.errors import ErrorCode, InvalidRequest, MissingDependency, SimulationError, WorkerLost
from banditune.core.messages import Setting
from banditune.simulation.executor import Chunk, ChunkResult

KEPT_SIMULATORS = 4
"""The number of compiled specs that a worker keeps."""


ERROR_LENGTH = 200
"""The largest number of characters of a cluster library's error in a message."""


class PackedSpec(NamedTuple):
    """A spec as bytes, with their digest. `code_digest` covers all scalar code that the sender bound for it."""

    digest: str
    payload: bytes
    code_digest: str
    description: str


class RemoteError(NamedTuple):
    """An error of a worker: its message, whether the request caused it, and the fields for programs."""

    message: str
    is_request_error: bool
    argument: str | None = None
    code: ErrorCode | None = None


class WorkerIdentity(NamedTuple):
    """The name of a worker, and the versions of packages that may change the last bits of results."""

    name: str
    versions: dict[str, str]


def make_worker_entry() -> Callable[..., Any]:
    """Make a function for workers of Dask and Ray: `enter(expected_versions, packed_spec, chunk)`.

    It is a nested function, so that it is pickled as code and not by its name. A worker with another version of banditune,
    or without it, can then run the function and report this.
    """

    def enter(expected_versions: Any, packed_spec: Any, chunk: Any) -> Any:
        import os
        import platform
        from importlib import import_module

        def read_version(package: str) -> str:
            try:
                return str(import_module(package).__version__)
            except ImportError:
                return "none"

        versions = {package: read_version(package) for package in ("banditune", "numpy", "numba")}
        versions["python"] = ".".join(platform.python_version_tuple()[:2])
        name = f"{platform.node()}, process {os.getpid()}"
        if expected_versions is None or versions != expected_versions:
            return name, versions
        # Imported by name after the check of versions, because another version may not have this module.
        this_module = import_module("banditune.simulation.executors.transport")
        return this_module.simulate_packed_chunk(this_module.PackedSpec(*packed_spec), chunk)

    return enter


def identify_worker() -> WorkerIdentity:
    """Identify this process."""
    return WorkerIdentity(*make_worker_entry()(None, None, None))


def check_worker_versions(identity: Any) -> None:
    """Reject a worker with other versions, because its results could differ in their last bits."""
    name, theirs = identity
    own_versions = identify_worker().versions
    different = [package for package in own_versions if own_versions[package] != theirs.get(package)]
    if different:
        differences = " and ".join(
            f"{package} {theirs.get(package, 'none')} (here {own_versions[package]})" for package in different
        )
        raise InvalidRequest(
            f"every worker must have the same versions as this process, so that results are the same, but {name} has "
            f"{differences}; install the same versions there.",
            argument="executor",
            code="unavailable",
        )


def pack_spec(spec: Any) -> PackedSpec:
    """Pack a spec for workers. Custom code is included, because workers do not have the files of users.

    Parameters
    ----------
    spec : SimulationSpec
        The spec, as `open_session` of an executor receives it.

    Returns
    -------
    PackedSpec
        A record of bytes and strings that can be pickled.

    Raises
    ------
    InvalidRequest
        If the policy or the problem cannot be pickled.
    """
    import cloudpickle

    from banditune.simulation.spec import describe_spec

    # This comes first, because it attaches checked code to custom functions. Workers lack the source files for it.
    code = digest_spec_code(spec)
    try:
        # The list of modules that are pickled as code belongs to the process. The lock protects it from other studies.
        with _packing_lock, _pickle_user_modules_by_value(cloudpickle):
            payload: bytes = cloudpickle.dumps(spec, protocol=5)
    except Exception as error:
        raise InvalidRequest(
            "{} must be sent to other processes, but it cannot be pickled: {}: {}; use {}, or build it from "
            "functions and numbers.",
            *(describe_spec(spec), type(error).__name__, error, Setting("executor", "threads")),
            argument="executor",
            code="own-code",
        ) from error
    packed = PackedSpec(hashlib.sha256(payload).hexdigest(), payload, code, describe_spec(spec))
    _specs_of_this_process[packed.digest] = spec
    return packed


def digest_spec_code(spec: Any) -> str:
    """Digest all scalar code that simulates a spec, including the loop."""
    from banditune.simulation import loop
    from banditune.simulation.bind import bind_function
    from banditune.simulation.kernel_selection import fill_slots

    return bind_function(loop.simulate_block, fill_slots(spec)[0])[1]


@contextmanager
def _pickle_user_modules_by_value(cloudpickle: Any) -> Iterator[None]:
    """Pickle functions and classes in modules of users by value."""
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
    """Return whether a module is a file of a user: not of the standard library, an installed package or this package."""
    file = getattr(module, "__file__", None)
    if not isinstance(module, ModuleType) or not isinstance(file, str) or not file.endswith(".py"):
        return False
    top = module.__name__.partition(".")[0]
    if top in ("banditune", "__main__") or sys.modules.get(module.__name__) is not module:
        return False
    # Installed packages may be anywhere on the path, not only in the folders of this Python.
    return not file.startswith(_list_library_folders()) and top not in _list_installed_modules()


@lru_cache(maxsize=1)
def _list_installed_modules() -> frozenset[str]:
    """List the names of all modules of installed packages."""
    from importlib.metadata import packages_distributions

    return frozenset(packages_distributions())


@lru_cache(maxsize=1)
def _list_library_folders() -> tuple[str, ...]:
    """List the folders of the standard library and of installed packages."""
    folders = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return tuple(folder for folder in folders if folder)


_simulators: OrderedDict[str, Any] = OrderedDict()


_specs_of_this_process: WeakValueDictionary[str, Any] = WeakValueDictionary()
"""Specs that were packed in this process. Unpacking one here would replace functions in the classes of users."""


_simulators_lock = threading.Lock()


_packing_lock = threading.Lock()


def pack_chunk(chunk: Chunk) -> Any:
    """Pack a chunk as built-in types."""
    return chunk.params.tolist(), chunk.first_row, chunk.runs


def simulate_packed_chunk(packed_spec: PackedSpec, chunk: Any) -> ChunkResult | RemoteError:
    """Simulate a packed chunk of a packed spec in this process. Workers call this.

    Parameters
    ----------
    packed_spec : PackedSpec
        The result of `pack_spec`.
    chunk : Chunk or tuple
        The chunk that was submitted.

    Returns
    -------
    ChunkResult or RemoteError
        The regrets, or the error of the policy or the problem, for `unpack_reply`.
    """
    from banditune.core.arrays import copy_read_only
    from banditune.simulation.blas_threads import limit_blas_threads
    from banditune.simulation.simulator import NO_STOP_SIGNAL

    params, first_row, runs = chunk
    try:
        with limit_blas_threads():
            result: ChunkResult = load_simulator(packed_spec).simulate_chunk(
                Chunk(copy_read_only(params), first_row, runs), NO_STOP_SIGNAL
            )
            return result
    except Exception as error:
        return pack_error(error)


def load_simulator(packed_spec: PackedSpec) -> Any:
    """Unpack and compile a spec; the last few are kept."""
    import pickle

    from banditune.simulation.simulator import make_checked_simulator

    with _simulators_lock:
        if packed_spec.digest not in _simulators:
            try:
                spec = _specs_of_this_process.get(packed_spec.digest) or pickle.loads(packed_spec.payload)
            except Exception as error:
                raise InvalidRequest(
                    _explain_missing_package(packed_spec, error), argument="executor", code="unavailable"
                ) from error
            if digest_spec_code(spec) != packed_spec.code_digest:
                raise InvalidRequest(
                    f"every worker must have the same code as this process, but {identify_worker().name} has other code "
                    f"for {packed_spec.description}; install the same banditune there.",
                    argument="executor",
                    code="unavailable",
                )
            _simulators[packed_spec.digest] = make_checked_simulator(spec)
        _simulators.move_to_end(packed_spec.digest)
        while len(_simulators) > KEPT_SIMULATORS:
            _simulators.popitem(last=False)
        return _simulators[packed_spec.digest]


def _explain_missing_package(packed_spec: PackedSpec, error: Exception) -> str:
    """Explain why a spec cannot be unpacked here."""
    missing = f"module {error.name!r}" if isinstance(error, ModuleNotFoundError) else f"all of it ({error})"
    return (
        f"every worker must have the packages that {packed_spec.description} uses, but {identify_worker().name} does not "
        f"have {missing}; install the same packages there, or keep the code in your own files, which are sent, too."
    )


def pack_error(error: Exception) -> RemoteError:
    """Pack an error for the process that sent the chunk."""
    if isinstance(error, InvalidRequest | MissingDependency | SimulationError):
        return RemoteError(error.message, not isinstance(error, SimulationError), error.argument, error.code)
    return RemoteError(f"a worker ({identify_worker().name}) failed: {type(error).__name__}: {error}.", False)


def unpack_reply(outcome: Any) -> Any:
    """Return the result that a worker sent, or raise its error.

    Parameters
    ----------
    outcome : ChunkResult or RemoteError
        The result of `simulate_packed_chunk`.

    Returns
    -------
    ChunkResult
        The regrets of the chunk.

    Raises
    ------
    InvalidRequest
        If the worker has other versions or other code.
    SimulationError
        If the policy or the problem failed.
    """
    if isinstance(outcome, RemoteError):
        kind = InvalidRequest if outcome.is_request_error else SimulationError
        raise kind(outcome.message, argument=outcome.argument, code=outcome.code)
    return outcome


def summarize_error(error: Exception) -> str:
    """Shorten an error to a line. Some of Ray's are tracebacks, whose last line has the cause."""
    text = str(error).strip()
    if '  File "' in text:
        text = text.splitlines()[-1]
    return " ".join(text.split())[:ERROR_LENGTH]


def make_cluster_lost_error(kind: str, why: object) -> WorkerLost:
    """Make the error for a cluster that no longer answers."""
    return WorkerLost(
        f"the {kind} cluster must run until the work is done, but {why}; start it and the study again; with a store, the "
        "study continues where it stopped.",
        argument="executor",
    )


@contextmanager
def translate_cluster_errors(kind: str) -> Iterator[None]:
    """Translate all errors of a cluster library that occur when the cluster does not answer."""
    try:
        yield
    except Exception as error:
        raise make_cluster_lost_error(kind, f"{type(error).__name__}: {summarize_error(error)}") from error


def require_package(extra: str, module: str) -> None:
    """Raise `InvalidRequest` if the library of a cluster is not installed."""
    if importlib.util.find_spec(module) is None:
        raise MissingDependency(
            f"a {extra} cluster needs `pip install 'banditune[{extra}]'`, but {module} is not installed."
        )
