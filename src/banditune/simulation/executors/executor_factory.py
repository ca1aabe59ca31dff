"""Where pieces of a job are played: threads (the default), processes, a Dask cluster, a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from banditune.core.checks import convert_to_number
from banditune.core.errors import InvalidRequest
from banditune.simulation.executor import Executor
from banditune.simulation.executors.dask import DaskExecutor
from banditune.simulation.executors.processes import ProcessExecutor
from banditune.simulation.executors.ray import RayExecutor
from banditune.simulation.executors.threads import ThreadExecutor

EXECUTOR_NAMES = "'threads', 'processes', 'dask://HOST:PORT', 'ray://HOST:PORT' or 'ray'"


ExecutorFactory = Callable[[], AbstractContextManager[Executor]]
"""Opens a cluster, which is closed in the end unless it was there before."""


def make_executor_factory(
    wanted: Any = "threads", jobs: int | None = None, time_limit: Any = None, device: str = "cpu"
) -> ExecutorFactory:
    """Where to play, by a name, a Dask client, Ray itself, or a cluster that is there already; opened later."""
    limit = _check_time_limit(time_limit)
    if device == "gpu" and (wanted != "threads" or limit is not None):
        what = f"cluster={wanted!r}" if limit is None else f"time_limit={limit:g}"
        raise InvalidRequest(f"a GPU plays in this process, but got device='gpu' and {what}; leave out one of them.")
    if limit is not None and wanted not in ("threads", "processes"):
        raise InvalidRequest(
            f"a time limit needs child processes of this one, but got cluster={wanted!r}; leave out one of them."
        )
    if wanted == "processes" or limit is not None:
        return lambda: ProcessExecutor(jobs, time_limit=limit)
    if wanted == "threads":
        return lambda: ThreadExecutor(jobs)
    if jobs is not None:
        raise InvalidRequest(
            f"`jobs` counts threads or processes of this machine, but got cluster={wanted!r}; leave it out."
        )
    if isinstance(wanted, Executor):
        return lambda: nullcontext(wanted)
    if isinstance(wanted, str) and wanted.startswith("dask://"):
        return lambda: DaskExecutor(wanted)
    if isinstance(wanted, str) and (wanted == "ray" or wanted.startswith("ray://")):
        return lambda: RayExecutor(wanted)
    if getattr(wanted, "__name__", "") == "ray" and hasattr(wanted, "is_initialized"):
        return RayExecutor
    if type(wanted).__module__.partition(".")[0] == "distributed" and hasattr(wanted, "submit"):
        return lambda: DaskExecutor(wanted)
    raise InvalidRequest(
        f"`cluster` must be {EXECUTOR_NAMES}, or in Python a Dask client or the module ray, but got {wanted!r}."
    )


def _check_time_limit(seconds: Any) -> float | None:
    if seconds is None:
        return None
    found = convert_to_number(seconds)
    if not 0 < found < 1e9:
        raise InvalidRequest(f"`time_limit > 0` must hold, in seconds, but got time_limit={seconds!r}.")
    return found
