"""Makes executors from requests: threads (the default), processes, a Dask cluster, a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from banditune.core.checks import convert_to_number
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Setting
from banditune.core.request_errors import make_limit_error, make_type_error
from banditune.simulation.executor import Executor
from banditune.simulation.executors.dask import DaskExecutor
from banditune.simulation.executors.processes import ProcessExecutor
from banditune.simulation.executors.ray import RayExecutor
from banditune.simulation.executors.threads import ThreadExecutor

EXECUTOR_NAMES = "'threads', 'processes', 'dask://HOST:PORT', 'ray://HOST:PORT' or 'ray'"


ExecutorFactory = Callable[[], AbstractContextManager[Executor]]
"""Opens an executor. It is closed at the end unless it was open before."""


def make_executor_factory(
    executor: Any = "threads", workers: int | None = None, time_limit: Any = None, device: str = "cpu"
) -> ExecutorFactory:
    """Make a factory from a name, a Dask client, the module ray or an open executor. The executor is opened later."""
    limit = _check_time_limit(time_limit)
    if device == "gpu" and (executor != "threads" or limit is not None):
        other = Setting("executor", executor) if limit is None else Setting("time_limit", limit, f"{limit:g}")
        raise InvalidRequest(
            "a GPU can only be used from this process, but got {} and {}; leave out one of them.",
            *(Setting("device", "gpu"), other),
            argument=other.name,
            code="conflict",
        )
    if limit is not None and executor not in ("threads", "processes"):
        raise InvalidRequest(
            "a time limit needs child processes, but got {}; leave out one of them.",
            Setting("executor", executor),
            argument="time_limit",
            code="conflict",
        )
    if executor == "processes" or limit is not None:
        return lambda: ProcessExecutor(workers, time_limit=limit)
    if executor == "threads":
        return lambda: ThreadExecutor(workers)
    if workers is not None:
        raise InvalidRequest(
            "{} is a number of threads or processes of this machine, but got {}; leave it out.",
            *(Argument("workers"), Setting("executor", executor)),
            argument="workers",
            code="conflict",
        )
    if isinstance(executor, Executor):
        return lambda: nullcontext(executor)
    if isinstance(executor, str) and executor.startswith("dask://"):
        return lambda: DaskExecutor(executor)
    if isinstance(executor, str) and (executor == "ray" or executor.startswith("ray://")):
        return lambda: RayExecutor(executor)
    if getattr(executor, "__name__", "") == "ray" and hasattr(executor, "is_initialized"):
        return RayExecutor
    if type(executor).__module__.partition(".")[0] == "distributed" and hasattr(executor, "submit"):
        return lambda: DaskExecutor(executor)
    expected = f"{EXECUTOR_NAMES}, or in Python a Dask client or the module ray"
    raise make_type_error("executor", expected, executor)


def _check_time_limit(seconds: Any) -> float | None:
    if seconds is None:
        return None
    limit = convert_to_number(seconds)
    if not 0 < limit < 1e9:
        raise make_limit_error("time_limit", seconds, above=0, note=", in seconds")
    return limit
