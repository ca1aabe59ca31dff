"""The errors that this package raises."""

from __future__ import annotations


class InvalidRequest(ValueError):
    """A request that cannot be served; the message says what must hold, what came and what to do."""


class SimulationError(RuntimeError):
    """A policy or problem broke its promise while it was played; the message says where, to repeat it."""


class WorkerLost(SimulationError):
    """What was to play, a worker, a child process or a cluster, broke or took too long; its policy may be innocent."""


class StopSearch(Exception):
    """Thrown into a search that must answer now: its argument is what the search would have been told."""
