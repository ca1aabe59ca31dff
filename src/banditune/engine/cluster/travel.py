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

from banditune.contracts import BadRequest, Fault, Outage
from banditune.engine.pieces import Piece, Played

HELD = 4
"""Jobs that a worker keeps ready."""

SHORT = 200
"""Letters that are told of an error of a cluster's library."""


class Recipe(NamedTuple):
    """A job as bytes, by their digest; `code` is the digest of all scalar code that the sender bound for it."""

    digest: str
    job: bytes
    code: str
    who: str


class Failed(NamedTuple):
    """An error that travels: the sentence, and whether it is a complaint about the request."""

    told: str
    request: bool


class Card(NamedTuple):
    """Who a worker is, and the versions that decide bits."""

    name: str
    versions: dict[str, str]


def entrance() -> Callable[..., Any]:
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
        from banditune.engine.cluster.travel import Recipe, answer

        return answer(Recipe(*recipe), piece)

    return enter


def card() -> Card:
    """This process's card."""
    return Card(*entrance()(None, None, None))


def check_versions(found: Any) -> None:
    """Refuse a worker that could play other bits."""
    name, theirs = found
    ours = card().versions
    other = [part for part in ours if ours[part] != theirs.get(part)]
    if other:
        told = " and ".join(f"{part} {theirs.get(part, 'none')} (here {ours[part]})" for part in other)
        raise BadRequest(
            f"every worker must have the same versions as this process, so that results are the same, but {name} has "
            f"{told}; install the same versions there."
        )


def recipe_of(job: Any) -> Recipe:
    """A job as it travels; users' own code goes along, because workers do not have their files."""
    import cloudpickle

    from banditune.engine.run import who

    code = code_of(job)  # first: it leaves with users' functions what is made of their source, which stays here
    try:
        # What is packed as code is the whole process's business: two studies at once must not undo each other's.
        with _packing, _by_value(cloudpickle):
            payload: bytes = cloudpickle.dumps(job, protocol=5)
    except Exception as error:
        raise BadRequest(
            f"{who(job)} must be able to travel to other processes, but it cannot be packed: {type(error).__name__}: "
            f"{error}; use cluster='threads', or make it of functions and numbers."
        ) from error
    return Recipe(hashlib.sha256(payload).hexdigest(), payload, code, who(job))


def code_of(job: Any) -> str:
    """The digest of all scalar code that plays a job, the engine's own included."""
    from banditune.engine import loop
    from banditune.engine.bind import bound
    from banditune.engine.run import slots_for

    return bound(loop.play_block, slots_for(job)[0])[1]


@contextmanager
def _by_value(cloudpickle: Any) -> Iterator[None]:
    """While inside, what belongs to users' own modules is packed as code."""
    registered = []
    for module in list(sys.modules.values()):
        if _own(module) and module.__name__ not in cloudpickle.list_registry_pickle_by_value():
            cloudpickle.register_pickle_by_value(module)
            registered.append(module)
    try:
        yield
    finally:
        for module in registered:
            cloudpickle.unregister_pickle_by_value(module)


def _own(module: Any) -> bool:
    """Whether a module is a file of the user's: not of the standard library, an installed package or this one."""
    file = getattr(module, "__file__", None)
    if not isinstance(module, ModuleType) or not isinstance(file, str) or not file.endswith(".py"):
        return False
    top = module.__name__.partition(".")[0]
    if top in ("banditune", "__main__") or sys.modules.get(module.__name__) is not module:
        return False
    # Installed packages may stand anywhere on the path, not only where this Python puts them.
    return not file.startswith(_homes()) and top not in _installed()


@lru_cache(maxsize=1)
def _installed() -> frozenset[str]:
    """The names of all installed packages' modules."""
    from importlib.metadata import packages_distributions

    return frozenset(packages_distributions())


@lru_cache(maxsize=1)
def _homes() -> tuple[str, ...]:
    """Folders of the standard library and of installed packages."""
    found = (sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))
    return tuple(home for home in found if home)


_ready: OrderedDict[str, Any] = OrderedDict()
_lock = threading.Lock()
_packing = threading.Lock()


def packed(piece: Piece) -> Any:
    """A piece in words that every Python knows."""
    return piece.params.tolist(), piece.first_row, piece.runs


def answer(recipe: Recipe, piece: Any) -> Played | Failed:
    """Play a packed piece of a job that travelled, here."""
    from banditune.engine.prepared import RUNNING, one_blas_thread
    from banditune.engine.run import read_only

    params, first_row, runs = piece
    try:
        with one_blas_thread():
            played: Played = prepared(recipe).play(Piece(read_only(params), first_row, runs), RUNNING)
            return played
    except Exception as error:
        return failed(error)


def prepared(recipe: Recipe) -> Any:
    """A job that travelled, made ready; the last few are kept."""
    import pickle

    from banditune.engine.prepared import ready

    with _lock:
        if recipe.digest not in _ready:
            try:
                job = pickle.loads(recipe.job)
            except Exception as error:
                raise BadRequest(_not_there(recipe, error)) from error
            if code_of(job) != recipe.code:
                raise BadRequest(
                    f"every worker must have the same code as this process, but {card().name} has another for "
                    f"{recipe.who}; install the same banditune there."
                )
            _ready[recipe.digest] = ready(job)
        _ready.move_to_end(recipe.digest)
        while len(_ready) > HELD:
            _ready.popitem(last=False)
        return _ready[recipe.digest]


def _not_there(recipe: Recipe, error: Exception) -> str:
    """Why a job cannot be unpacked here."""
    lacks = f"module {error.name!r}" if isinstance(error, ModuleNotFoundError) else f"all of it ({error})"
    return (
        f"every worker must have the packages that {recipe.who} uses, but {card().name} does not have {lacks}; install the "
        "same packages there, or keep the code in files of your own, which travel."
    )


def failed(error: Exception) -> Failed:
    """An error as it travels."""
    if isinstance(error, BadRequest | Fault):
        return Failed(str(error), isinstance(error, BadRequest))
    return Failed(f"a worker ({card().name}) failed: {type(error).__name__}: {error}.", False)


def raised(outcome: Any) -> Any:
    """What a worker sent; an error is raised here."""
    if isinstance(outcome, Failed):
        raise (BadRequest if outcome.request else Fault)(outcome.told)
    return outcome


def short(error: Exception) -> str:
    """What an error says, in a line; some of Ray's are tracebacks, whose last line says what happened."""
    told = str(error).strip()
    if '  File "' in told:
        told = told.splitlines()[-1]
    return " ".join(told.split())[:SHORT]


def gone(kind: str, why: object) -> Outage:
    """A cluster went away."""
    return Outage(
        f"the {kind} cluster must stay until the work is done, but {why}; start it and the study again: with a ledger it "
        "goes on where it was."
    )


@contextmanager
def staying(kind: str) -> Iterator[None]:
    """For questions to a cluster: whatever its library raises when nobody answers becomes a sentence."""
    try:
        yield
    except Exception as error:
        raise gone(kind, f"{type(error).__name__}: {short(error)}") from error


def missing(extra: str, module: str) -> None:
    """Refuse a cluster whose library is not installed."""
    if importlib.util.find_spec(module) is None:
        raise BadRequest(f"a {extra} cluster needs `pip install 'banditune[{extra}]'`, but {module} is not installed.")
