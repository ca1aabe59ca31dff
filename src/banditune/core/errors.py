"""The errors that this package raises, all below `BanditTuneError`."""

from __future__ import annotations

from typing import ClassVar, Literal

from banditune.core.messages import Message

ErrorCode = Literal[
    "wrong-type",
    "out-of-range",
    "wrong-shape",
    "unknown-name",
    "missing",
    "conflict",
    "unsupported",
    "too-large",
    "insufficient-data",
    "bad-data",
    "own-code",
    "cannot-read",
    "cannot-write",
    "file-format",
    "schema-version",
    "unavailable",
    "invalid-request",
    "simulation-failed",
    "worker-lost",
    "missing-dependency",
    "store",
]

ERROR_CODES: dict[ErrorCode, str] = {
    "wrong-type": "A value is of another kind than the argument takes, such as a word for a number.",
    "out-of-range": "A number is outside its limits.",
    "wrong-shape": "Rows, columns or lengths do not fit together.",
    "unknown-name": "A word is none of those that are known: a policy, a model, a column, a choice.",
    "missing": "Something that is needed was not given.",
    "conflict": "Settings exclude each other, or a setting has no use here.",
    "unsupported": "The policy, the problem or the device does not support the request.",
    "too-large": "The request needs more memory, arms or bytes than are allowed.",
    "insufficient-data": "The data are too few, or vary too little, for the request.",
    "bad-data": "A row, a cell or a number in the data is not what it must be.",
    "own-code": "A function or a class of a user does not keep a rule.",
    "cannot-read": "A file cannot be read.",
    "cannot-write": "A file or a folder cannot be written.",
    "file-format": "A file is of another kind than needed, or damaged.",
    "schema-version": "A file was written in another version of its format.",
    "unavailable": "A device, a cluster or a process is not there, or differs from this one.",
    "invalid-request": "A request cannot be served for another reason. Errors that your own code raises have this code.",
    "simulation-failed": "A policy or a problem failed in a simulation.",
    "worker-lost": "A worker, a child process or an executor failed or took too long.",
    "missing-dependency": "A package that is needed is not installed.",
    "store": "A store of regrets cannot be opened, read or written.",
}
"""Every code of an error, and what it means. The documentation has this table."""


class BanditTuneError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    text : object
        The message: what must hold, what was given and what to do. If values follow, it has a slot for each, such as {}.
    *values : object
        What fills the slots, among them references to arguments; see `Message`.
    argument : str, optional
        The argument that the message is about, if there is one.
    code : str, optional
        A stable word for the kind of error, for programs: one of the keys of `ERROR_CODES`. By default the class has one.
    """

    default_code: ClassVar[ErrorCode] = "invalid-request"

    def __init__(
        self, text: object = "", *values: object, argument: str | None = None, code: ErrorCode | None = None
    ) -> None:
        super().__init__(Message(text, *values))
        self.argument = argument
        self.code = code or self.default_code

    @property
    def message(self) -> Message:
        """The message with its references to arguments."""
        return Message(self.args[0])


class InvalidRequest(BanditTuneError, ValueError):
    """A request that cannot be served: an argument, a file or a record that does not fit."""

    def quote(self, before: str = "") -> InvalidRequest:
        """Return the same error with a message that every vocabulary writes alike, with some text before it.

        For options of policies and problems that were not given as arguments: name:option=value, or a field in a file.
        """
        return InvalidRequest(f"{before}{self}", argument=self.argument, code=self.code)


class SimulationError(BanditTuneError, RuntimeError):
    """A policy or a problem failed in a simulation; the message says where, so that it can be repeated."""

    default_code: ClassVar[ErrorCode] = "simulation-failed"


class WorkerLost(SimulationError):
    """A worker, a child process or an executor failed or took too long. The policy may not be the reason."""

    default_code: ClassVar[ErrorCode] = "worker-lost"


class MissingDependency(BanditTuneError, ImportError):
    """A package that is needed for this request is not installed; the message says how to install it."""

    default_code: ClassVar[ErrorCode] = "missing-dependency"


class StoreError(BanditTuneError, OSError):
    """A store of regrets cannot be opened, read or written."""

    default_code: ClassVar[ErrorCode] = "store"


class ConformanceError(BanditTuneError, AssertionError):
    """A policy, a problem, a tuner or an executor breaks its contract.

    The message names the check, the evidence and the way out.

    Parameters
    ----------
    text : object
        The message.
    *values : object
        What fills its slots.
    check : str
        The name of the check that failed.
    argument : str, optional
        What was checked: "policy", "problem", "tuner" or "executor".
    code : str, optional
        As for every error; "own-code" by default.

    Attributes
    ----------
    check : str
        The name of the check that failed.
    """

    default_code: ClassVar[ErrorCode] = "own-code"

    def __init__(
        self,
        text: object = "",
        *values: object,
        check: str = "",
        argument: str | None = None,
        code: ErrorCode | None = None,
    ) -> None:
        super().__init__(text, *values, argument=argument, code=code)
        self.check = check


class StopSearch(Exception):
    """Thrown into a search that must answer now. Its argument holds the regrets of the last trial."""
