"""Where pieces of a job are played: threads (the default), processes, a Dask cluster, a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from banditune.checks import number_in
from banditune.contracts import BadRequest
from banditune.engine.cluster.dask import Dask as Dask
from banditune.engine.cluster.local import Processes as Processes
from banditune.engine.cluster.local import Threads as Threads
from banditune.engine.cluster.ray import Ray as Ray
from banditune.engine.pieces import Cluster as Cluster

NAMES = "'threads', 'processes', 'dask://HOST:PORT', 'ray://HOST:PORT' or 'ray'"


Place = Callable[[], AbstractContextManager[Cluster]]
"""Opens a cluster, which is closed in the end unless it was there before."""


def place_for(wanted: Any = "threads", jobs: int | None = None, time_limit: Any = None, device: str = "cpu") -> Place:
    """Where to play, by a name, a Dask client, Ray itself, or a cluster that is there already; opened later."""
    limit = _limit(time_limit)
    if device == "gpu" and (wanted != "threads" or limit is not None):
        what = f"cluster={wanted!r}" if limit is None else f"time_limit={limit:g}"
        raise BadRequest(f"a GPU plays in this process, but got device='gpu' and {what}; leave out one of them.")
    if limit is not None and wanted not in ("threads", "processes"):
        raise BadRequest(
            f"a time limit needs child processes of this one, but got cluster={wanted!r}; leave out one of them."
        )
    if wanted == "processes" or limit is not None:
        return lambda: Processes(jobs, time_limit=limit)
    if wanted == "threads":
        return lambda: Threads(jobs)
    if jobs is not None:
        raise BadRequest(
            f"`jobs` counts threads or processes of this machine, but got cluster={wanted!r}; leave it out."
        )
    if isinstance(wanted, Cluster):
        return lambda: nullcontext(wanted)
    if isinstance(wanted, str) and wanted.startswith("dask://"):
        return lambda: Dask(wanted)
    if isinstance(wanted, str) and (wanted == "ray" or wanted.startswith("ray://")):
        return lambda: Ray(wanted)
    if getattr(wanted, "__name__", "") == "ray" and hasattr(wanted, "is_initialized"):
        return Ray
    if type(wanted).__module__.partition(".")[0] == "distributed" and hasattr(wanted, "submit"):
        return lambda: Dask(wanted)
    raise BadRequest(f"`cluster` must be {NAMES}, or in Python a Dask client or the module ray, but got {wanted!r}.")


def _limit(seconds: Any) -> float | None:
    if seconds is None:
        return None
    found = number_in(seconds)
    if not 0 < found < 1e9:
        raise BadRequest(f"`time_limit > 0` must hold, in seconds, but got time_limit={seconds!r}.")
    return found
