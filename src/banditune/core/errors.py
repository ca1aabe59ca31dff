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
    "wrong-type": "A value has the wrong type for the argument, such as a word instead of a number.",
    "out-of-range": "A number is outside its limits.",
    "wrong-shape": "Numbers of rows, columns or elements are not consistent.",
    "unknown-name": "A name is unknown: that of a policy, a model, a column or a choice.",
    "missing": "A required value was not given.",
    "conflict": "Settings exclude each other, or a setting cannot be used here.",
    "unsupported": "The policy, the problem or the device does not support the request.",
    "too-large": "The request exceeds a limit of memory, arms or bytes.",
    "insufficient-data": "The data are too few, or vary too little, for the request.",
    "bad-data": "A row, a cell or a number in the data is not valid.",
    "own-code": "A function or a class of a user violates a rule.",
    "cannot-read": "A file cannot be read.",
    "cannot-write": "A file or a folder cannot be written.",
    "file-format": "A file has the wrong format, or is damaged.",
    "schema-version": "A file was written in another version of its format.",
    "unavailable": "A device, a cluster or a process cannot be reached, or has other versions.",
    "invalid-request": "A request cannot be served for another reason. Errors that your own code raises have this code.",
    "simulation-failed": "A policy or a problem failed in a simulation.",
    "worker-lost": "A worker, a child process or an executor failed or took too long.",
    "missing-dependency": "A required package is not installed.",
    "store": "A store of regrets cannot be opened, read or written.",
}
"""Every code of an error, and its meaning. The documentation has this table."""


class BanditTuneError(Exception):
    """Base of all errors of this package.

    Parameters
    ----------
    text : object
        The message: what must hold, what was given and what to do. If values follow, it has a slot for each, such as {}.
    *values : object
        The values of the slots. They may be references to arguments; see `Message`.
    argument : str, optional
        The argument that the message is about, if there is one.
    code : str, optional
        A stable word for the kind of error, for programs: a key of `ERROR_CODES`. The default depends on the class.
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
    """A request that cannot be served, because of an argument, a file or a record."""

    def quote(self, before: str = "") -> InvalidRequest:
        """Return the same error with a text before its message, and with references as plain text.

        It is used for options that were not given as arguments: in name:option=value, or in a field of a file.
        """
        return InvalidRequest(f"{before}{self}", argument=self.argument, code=self.code)


class SimulationError(BanditTuneError, RuntimeError):
    """A policy or a problem failed in a simulation. The message states the run, so that it can be repeated."""

    default_code: ClassVar[ErrorCode] = "simulation-failed"


class WorkerLost(SimulationError):
    """A worker, a child process or an executor failed or took too long. The policy is not necessarily the cause."""

    default_code: ClassVar[ErrorCode] = "worker-lost"


class MissingDependency(BanditTuneError, ImportError):
    """A package that is required for this request is not installed. The message contains the command that installs it."""

    default_code: ClassVar[ErrorCode] = "missing-dependency"


class StoreError(BanditTuneError, OSError):
    """A store of regrets cannot be opened, read or written."""

    default_code: ClassVar[ErrorCode] = "store"


class ConformanceError(BanditTuneError, AssertionError):
    """A policy, a problem, a tuner or an executor violates its contract.

    The message contains the check, the evidence and advice.

    Parameters
    ----------
    text : object
        The message.
    *values : object
        The values of its slots.
    check : str
        The name of the check that failed.
    argument : str, optional
        The checked object: "policy", "problem", "tuner" or "executor".
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
    """Thrown into the generator of a search that must answer now. Its argument contains the regrets of the last trial."""
