"""Reads past logs from a file, a data frame or a mapping of columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from banditune.core.checks import suggest_utf8_conversion
from banditune.core.errors import InvalidRequest
from banditune.logs.campaign_logs import Logs
from banditune.logs.io.column_roles import ColumnRoles, assign_columns
from banditune.logs.io.frame_tables import FrameTable, ParquetTable
from banditune.logs.io.log_accumulator import LogAccumulator
from banditune.logs.io.row_checks import RowChecker
from banditune.logs.io.row_records import CheckedRows, RowNumbering
from banditune.logs.io.text_tables import TextTable


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
    rewards: str | None = None,
    blank: float | None = None,
    skip_bad: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Logs:
    """Past logs from a .csv or .parquet file or a data frame, with a row per decision or per arm of a campaign.

    The first arguments name columns; what is not told is guessed from usual names, and `told` of the logs says what was
    taken. `rewards` is what rewards are claimed to be: "binary", "unit" or "real"; rows that are not so are bad. `blank`
    is what an empty reward stands for, such as 0 where only successes were written. Bad rows are refused with line numbers,
    those of data frames and Parquet files with row numbers, or left out with `skip_bad`. `progress` is told how many rows
    were read.
    """
    table = open_table(source)
    told = {"campaign": campaign, "arm": arm, "reward": reward, "pulls": pulls, "successes": successes}
    columns = assign_columns(table.names, {**told, "propensity": propensity, "features": features})
    checker = RowChecker(columns, table.numbering, rewards, blank)
    tally = LogAccumulator(columns, table.numbering)
    for rows in table.blocks(columns, checker):
        tally.add(rows)
        if progress:
            progress(checker.rows)
    if checker.bad and (not skip_bad or checker.bad == checker.rows):
        way_out = "mend them, or leave them out with skip_bad=True"
        if checker.bad == checker.rows:
            way_out = "mend them, or name other columns"
        if 2 * checker.garbled > checker.bad:
            way_out = suggest_utf8_conversion()
        elif checker.garbled:
            way_out = f"{way_out}; or {suggest_utf8_conversion()}"
        if 2 * checker.unpaid > checker.bad:
            way_out = f"if an empty reward stands for 0, say blank=0; else {way_out}"
        raise InvalidRequest(f"{checker.told()}; {way_out}.")
    if not checker.rows:
        raise InvalidRequest("logs must hold a row, but the table has none.")
    logs = replace(tally.logs(), left_out=tuple(_note_skipped_rows(checker)))
    return logs.saying(
        [
            f"columns: {logs.columns}",
            *logs.left_out,
            *_note_stray_rewards(logs, tally.others),
            *_note_misleading_logs(logs),
        ]
    )


STRAY_REWARD_SHARE = 0.01
"""A share of rewards that are neither 0 nor 1 below which they look like mistakes."""


def _note_stray_rewards(logs: Logs, others: int) -> Iterator[str]:
    decisions = int(logs.pulls.sum())
    if 0 < others < STRAY_REWARD_SHARE * decisions:
        yield (
            f"{others:,} of {decisions:,} rewards are neither 0 nor 1, so all are taken as {logs.rewards}; if these are "
            "mistakes, claim rewards='binary' and leave them out with skip_bad=True."
        )


def _note_skipped_rows(checker: RowChecker) -> Iterator[str]:
    if checker.bad:
        yield f"left out: {checker.told()}"


def _note_misleading_logs(logs: Logs) -> Iterator[str]:
    """What may mislead in logs, and what to do about it."""
    if len(logs.campaigns) == 1:
        yield (
            "there is a single campaign: what differs between campaigns cannot be seen, only between its arms. Take more "
            "campaigns if there are some, or trust only a prior that is common to all arms."
        )
    pulls = np.bincount(logs.arm, logs.pulls, len(logs.arms))
    once = np.flatnonzero(pulls == 1)
    if len(once):
        few = ", ".join(logs.arms[number] for number in once[:5]) + (" ..." if len(once) > 5 else "")
        yield (
            f"{len(once)} of {len(logs.arms)} arms were pulled only once ({few}): a common prior makes use of that, a "
            "prior per arm cannot. If the arm's column numbers decisions, name another with `arm`."
        )
    alone = np.flatnonzero(logs.widths == 1)
    if len(alone):
        few = ", ".join(logs.campaigns[number] for number in alone[:5]) + (" ..." if len(alone) > 5 else "")
        count = "all" if len(alone) == len(logs.campaigns) else f"{len(alone):,}"
        taken = "; what differs between campaigns is taken for what differs between arms" if count == "all" else ""
        yield f"{count} campaigns have a single arm ({few}), in which nothing was to be chosen; they count too{taken}."


class LogTable(Protocol):
    """Something with named columns that can be read in blocks."""

    names: list[str]
    numbering: RowNumbering

    def blocks(self, columns: ColumnRoles, checker: RowChecker) -> Iterator[CheckedRows]:
        """Checked rows, block by block."""


def open_table(source: Any) -> LogTable:
    """A table out of a path or a data frame."""
    if not isinstance(source, str | Path):
        return FrameTable(source)
    path = Path(source)
    if not path.is_file():
        raise InvalidRequest(
            f"logs must be a file that exists, .csv or .parquet, or a data frame, but got {str(source)!r}."
        )
    return ParquetTable(path) if path.suffix.lower() in (".parquet", ".pq") else TextTable(path)
