"""The errors that this package raises, all below `BanditTuneError`."""

from __future__ import annotations

from typing import Any


class BanditTuneError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    *args : object
        The message: what must hold, what was given and what to do.
    argument : str, optional
        The argument that the message is about, if there is one.
    code : str, optional
        A stable word for the kind of error, for programs.
    """

    def __init__(self, *args: Any, argument: str | None = None, code: str | None = None) -> None:
        super().__init__(*args)
        self.argument = argument
        self.code = code


class InvalidRequest(BanditTuneError, ValueError):
    """A request that cannot be served: an argument, a file or a record that does not fit."""


class SimulationError(BanditTuneError, RuntimeError):
    """A policy or a problem failed in a simulation; the message says where, so that it can be repeated."""


class WorkerLost(SimulationError):
    """A worker, a child process or an executor failed or took too long. The policy may not be the reason."""


class MissingDependency(BanditTuneError, ImportError):
    """A package that is needed for this request is not installed; the message says how to install it."""


class StoreError(BanditTuneError, OSError):
    """A store of regrets cannot be opened, read or written."""


class StopSearch(Exception):
    """Thrown into a search that must answer now. Its argument holds the regrets of the last trial."""
