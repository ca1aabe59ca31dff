"""Reads past logs from a file, a data frame or a mapping of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from banditune.core.checks import suggest_utf8_conversion
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Message, Setting
from banditune.logs.campaign_logs import Logs
from banditune.logs.io.column_roles import ColumnRoles, assign_columns
from banditune.logs.io.frame_tables import FrameTable, ParquetTable
from banditune.logs.io.log_accumulator import LogAccumulator
from banditune.logs.io.row_checks import RowChecker
from banditune.logs.io.row_records import CheckedRows, RowNumbering
from banditune.logs.io.text_tables import TextTable


@dataclass(frozen=True, kw_only=True)
class ReadSettings:
    """Settings for reading the rows of logs.

    Parameters
    ----------
    rewards : {"binary", "unit", "real"}, optional
        The kind of rewards. Rows with other rewards are bad. By default the kind is determined from the rows.
    blank : float, optional
        The value of an empty reward, such as 0.
    skip_bad : bool
        Whether rows that cannot be read are left out. Otherwise they are an error.
    progress : callable, optional
        Called with the number of rows read so far.
    """

    rewards: Literal["binary", "unit", "real"] | None = None
    blank: float | None = None
    skip_bad: bool = False
    progress: Callable[[int], None] | None = None


READ_SETTINGS = ReadSettings()
"""Default settings for reading rows."""


def read_logs(
    source: Any,
    *,
    campaign: str | None = None,
    arm: str | None = None,
    reward: str | None = None,
    pulls: str | None = None,
    successes: str | None = None,
    propensity: str | None = None,
    features: str | Sequence[str] | None = None,
    settings: ReadSettings = READ_SETTINGS,
) -> Logs:
    """Read past logs from a file or a data frame.

    A row is either one decision with its reward, or one arm of a campaign with its pulls and successes. Columns that
    are not given are found by usual names; `messages` of the logs lists them.

    Parameters
    ----------
    source : str, Path, data frame or mapping
        A .csv or .parquet file, a data frame of pandas or polars, or a mapping of column names to columns.
    campaign : str, optional
        The column with the campaign.
    arm : str, optional
        The column with the arm.
    reward : str, optional
        The column with the reward of each decision.
    pulls : str, optional
        The column with the pulls of each arm. It goes with `successes`, instead of `reward`.
    successes : str, optional
        The column with the successes of each arm.
    propensity : str, optional
        The column with the probability of the arm. It must lie in (0, 1] and is not used otherwise.
    features : str or sequence of str, optional
        The columns with features of the arms; "" for none. By default columns such as x1 or feature_2 are used.
    settings : ReadSettings
        The kind of rewards, the treatment of empty and bad rows, and a callback for progress.

    Returns
    -------
    Logs
        The logs, for `fit` and `backtest`.

    Raises
    ------
    InvalidRequest
        If the source cannot be read, a column is missing, or rows are bad. The message has their line or row numbers.
    MissingDependency
        If a .parquet file is read and pyarrow is not installed.

    Examples
    --------
    >>> import banditune as bt
    >>> table = {"campaign": ["may"] * 4, "arm": ["red", "blue"] * 2, "click": [0, 1, 1, 1]}
    >>> logs = bt.read_logs(table)
    >>> logs
    4 decisions in 1 campaign with 2 arms, binary rewards
    >>> logs.messages[0]
    "columns: campaign = 'campaign', arm = 'arm', reward = 'click'"
    """
    table = open_table(source)
    requested = {"campaign": campaign, "arm": arm, "reward": reward, "pulls": pulls, "successes": successes}
    columns = assign_columns(table.names, {**requested, "propensity": propensity, "features": features})
    checker = RowChecker(columns, table.numbering, settings.rewards, settings.blank)
    accumulator = LogAccumulator(columns, table.numbering)
    for rows in table.read_blocks(columns, checker):
        accumulator.add(rows)
        if settings.progress:
            settings.progress(checker.rows)
    if checker.bad_count and (not settings.skip_bad or checker.bad_count == checker.rows):
        way_out = Message("correct them, or leave them out with {}", Setting("skip_bad", True))
        if checker.bad_count == checker.rows:
            way_out = Message("correct them, or name other columns")
        if 2 * checker.garbled > checker.bad_count:
            way_out = Message(suggest_utf8_conversion())
        elif checker.garbled:
            way_out = Message("{}; or {}", way_out, suggest_utf8_conversion())
        if 2 * checker.unpaid > checker.bad_count:
            way_out = Message("if an empty reward means 0, set {}; otherwise {}", Setting("blank", 0), way_out)
        raise InvalidRequest("{}; {}.", checker.describe_bad_rows(), way_out, argument="source", code="bad-data")
    if not checker.rows:
        raise InvalidRequest("logs must contain a row, but the table has none.", argument="source", code="missing")
    logs = replace(accumulator.make_logs(), omissions=tuple(_note_skipped_rows(checker)))
    return logs.replace_messages(
        [
            f"columns: {logs.columns}",
            *logs.omissions,
            *_note_stray_rewards(logs, accumulator.other_count),
            *_note_misleading_logs(logs),
        ]
    )


STRAY_REWARD_SHARE = 0.01
"""If a smaller share of the rewards is neither 0 nor 1, these rewards may be errors."""


def _note_stray_rewards(logs: Logs, other_count: int) -> Iterator[str]:
    decisions = int(logs.pulls.sum())
    if 0 < other_count < STRAY_REWARD_SHARE * decisions:
        yield Message(
            "{:,} of {:,} rewards are neither 0 nor 1, so all are read as {}; if these are errors, set {} and leave "
            "them out with {}.",
            *(other_count, decisions, logs.rewards, Setting("rewards", "binary"), Setting("skip_bad", True)),
        )


def _note_skipped_rows(checker: RowChecker) -> Iterator[str]:
    if checker.bad_count:
        yield f"left out: {checker.describe_bad_rows()}"


def _note_misleading_logs(logs: Logs) -> Iterator[str]:
    """Yield notes on properties of logs that limit a fit, with advice."""
    if len(logs.campaigns) == 1:
        yield (
            "there is a single campaign: differences between arms can be estimated, those between campaigns cannot. Add "
            "more campaigns if possible. Otherwise, use only a prior that is common to all arms."
        )
    pulls = np.bincount(logs.arm, logs.pulls, len(logs.arms))
    once = np.flatnonzero(pulls == 1)
    if len(once):
        listed = ", ".join(logs.arms[number] for number in once[:5]) + (" ..." if len(once) > 5 else "")
        yield Message(
            "{} of {} arms were pulled only once ({}): this is enough for a common prior, but not for a prior per arm. If "
            "the arm's column contains numbers of decisions, name another with {}.",
            *(len(once), len(logs.arms), listed, Argument("arm")),
        )
    alone = np.flatnonzero(logs.arm_counts == 1)
    if len(alone):
        listed = ", ".join(logs.campaigns[number] for number in alone[:5]) + (" ..." if len(alone) > 5 else "")
        count = "all" if len(alone) == len(logs.campaigns) else f"{len(alone):,}"
        treated = ", and differences between campaigns are treated as differences between arms"
        warning = treated if count == "all" else ""
        subject = "1 campaign has" if count == "1" else f"{count} campaigns have"
        yield f"{subject} a single arm and thus no choice ({listed}); such campaigns are used too{warning}."


class LogTable(Protocol):
    """A table with named columns that is read in blocks."""

    names: list[str]
    numbering: RowNumbering

    def read_blocks(self, columns: ColumnRoles, checker: RowChecker) -> Iterator[CheckedRows]:
        """Yield checked rows, block by block."""


def open_table(source: Any) -> LogTable:
    """Open a path or a data frame as a table."""
    if not isinstance(source, str | Path):
        return FrameTable(source)
    path = Path(source)
    if not path.is_file():
        raise InvalidRequest(
            f"logs must be a file that exists, .csv or .parquet, or a data frame, but got {str(source)!r}.",
            argument="source",
            code="cannot-read",
        )
    return ParquetTable(path) if path.suffix.lower() in (".parquet", ".pq") else TextTable(path)
