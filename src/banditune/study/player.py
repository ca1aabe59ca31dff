"""Plays for the verbs, with and without a ledger: what a ledger holds is not played again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from banditune.contracts import BadRequest, Fault, Floats
from banditune.engine.cluster import Place
from banditune.engine.pieces import Cluster
from banditune.engine.prepared import one_blas_thread
from banditune.engine.run import (
    BLOCK,
    Job,
    Part,
    by_block,
    check_regrets,
    play,
    play_all,
    play_each,
    read_only,
    results_array,
    shortcut_rows,
    with_shortcut,
)
from banditune.study.door import setup_of
from banditune.study.identity import canonical, identity, kind_of
from banditune.study.ledger import Block, Ledger, Series, Setup, Singles

Progress = Callable[[int], None]

PATIENCE = 1.0
"""Seconds after which regrets are stored although their block is not complete."""

PAUSE = 0.05
"""Seconds between two writes, so that a study of many short parts does not spend its time on them."""


class Asked(NamedTuple):
    """A row of parameters on some runs: where it stands in the ledger, where its regrets go, and which are missing.

    `shortcut` says whether a shortcut plays it.
    """

    row: int
    shortcut: bool
    runs: range
    series: Series
    out: Floats
    missing: tuple[range, ...]


class Player:
    """Plays jobs as the engine does, from a ledger where it has one. Regrets are rounded to float32, as they are stored.

    With `exact` they are not, unless there is a ledger.
    """

    cluster: Cluster
    ledger: Ledger | None = None

    def __init__(self, place: Place, ledger: str | Path | None = None, *, exact: bool = False) -> None:
        self.place = place
        self.book = ledger
        self.exact = exact
        self.setups: dict[tuple[int, bool, str | None], tuple[Job, Setup]] = {}
        self.open = ExitStack()

    def __enter__(self) -> Player:
        with ExitStack() as stack:
            if self.book is not None:
                self.ledger = stack.enter_context(Ledger(self.book))
            self.cluster = stack.enter_context(self.place())
            stack.enter_context(one_blas_thread())
            self.open = stack.pop_all()
        return self

    def __exit__(self, *error: Any) -> None:
        self.open.__exit__(*error)

    def play(
        self, job: Job, params: Any, runs: range, *, first_row: int = 0, progress: Progress | None = None
    ) -> Floats:
        """Regrets of every row of `params` on instances `runs`, as from `engine.run.play`."""
        if self.ledger is None:
            found = play(job, params, runs, first_row=first_row, cluster=self.cluster, progress=progress)
            return found if self.exact else rounded(job, found)
        params = read_only(params)
        out = results_array(len(params), len(runs), len(job.at or (0,)))
        asked = [self._asked(job, params, row, first_row, runs, out[row], progress) for row in range(len(params))]
        parts = list(together(asked, params, first_row, shared=job.noise == "shared"))
        writer = Writer(self.ledger, job, parts)
        if job.device == "gpu":
            for part in writer.parts:
                part.out[:] = play(job, part.params, part.runs, first_row=part.first_row, progress=progress)
                writer.done(part, part.runs)
        elif parts:
            play_all(job, writer.parts, self.cluster, progress, writer.done)
        return out

    def play_each(
        self, job: Job, params: Any, sizes: Sequence[int], first: int, *, progress: Progress | None = None
    ) -> list[Floats]:
        """Regrets of every row on `sizes[row]` instances of its own, as from `engine.run.play_each`."""
        if self.ledger is None:
            each = play_each(job, params, sizes, first, cluster=self.cluster, progress=progress)
            return [rounded(job, row) for row in each]
        params = read_only(params)
        check_regrets(int(sum(sizes)) * len(job.at or (0,)))
        ranges = [range(a, b) for a, b in pairwise(accumulate(map(int, sizes), initial=first))]
        outs = [results_array(len(runs), len(job.at or (0,))) for runs in ranges]
        asked = [self._asked(job, params, row, 0, runs, outs[row], progress) for row, runs in enumerate(ranges)]
        parts = list(together(asked, params, 0, shared=False))
        writer = Writer(self.ledger, job, parts)
        if job.device == "gpu" and parts:
            # As the engine does: all rows on all instances, which takes a GPU no longer.
            whole = play_each(job, params, sizes, first)
            for part in writer.parts:
                own = ranges[part.first_row]
                part.out[:] = whole[part.first_row][part.runs.start - own.start : part.runs.stop - own.start]
                if progress:
                    progress(len(part.runs))
                writer.done(part, part.runs)
        elif parts:
            play_all(job, writer.parts, self.cluster, progress, writer.done)
        return outs

    def _asked(
        self, job: Job, params: Floats, row: int, first_row: int, runs: range, out: Floats, progress: Progress | None
    ) -> Asked:
        """Take what the ledger has of a row."""
        assert self.ledger is not None
        noise = 1 + first_row + row if job.noise == "own" else 0
        (shortcut,) = shortcut_rows(job, params[row : row + 1])
        setup = self._setup(job, shortcut, params[row])
        series = Series(setup, params[row].astype("<f8").tobytes(), noise)
        missing = tuple(self.ledger.fill(series, runs, out))
        known = len(runs) - sum(map(len, missing))
        if known and progress:
            progress(known)
        return Asked(row, shortcut, runs, series, out, missing)

    def _setup(self, job: Job, shortcut: bool, row: Floats) -> Setup:
        """The key of a row's job; found once for each way to play, because that takes milliseconds."""
        played = with_shortcut(job, shortcut)
        kind = kind_of(played, row)
        key = (id(job), shortcut, kind)
        if key not in self.setups:
            versions = json.dumps(dict(setup_of(job).versions))
            # The job is kept, so that no other one gets its address.
            self.setups[key] = job, Setup.of(canonical(identity(played, kind)), versions)
        return self.setups[key][1]


def check_keeping(ledger: Any, *todo: Job) -> None:
    """Refuse to keep regrets of code that a ledger cannot know."""
    for job in todo:
        if ledger is not None and job.policy.plays_itself:
            raise BadRequest(f"a ledger must know the code that made its regrets, but not that of {job.policy.name!r}.")


def together(
    asked: Sequence[Asked], params: Floats, first_row: int, *, shared: bool
) -> Iterator[tuple[Part, list[Asked]]]:
    """Parts to play: rows that are played alike and miss the same runs in one part.

    Rows that have noise of their own must be neighbours, too.
    """
    ordered = sorted(asked, key=_bounds) if shared else asked
    for _, found in groupby(ordered, key=_bounds):
        group = list(found)
        rows = [one.row for one in group]
        for runs in group[0].missing:
            out = results_array(len(rows), len(runs), group[0].out.shape[1])
            yield Part(read_only(params[rows]), first_row + rows[0], runs, out), group


def _bounds(asked: Asked) -> tuple[bool, list[tuple[int, int]]]:
    return asked.shortcut, [(runs.start, runs.stop) for runs in asked.missing]


class Writer:
    """Stores regrets as they come, in any order, and puts them where they were asked for."""

    def __init__(self, ledger: Ledger, job: Job, parts: Sequence[tuple[Part, list[Asked]]]) -> None:
        self.ledger = ledger
        self.job = job
        self.parts = [part for part, _ in parts]
        self.rows = {id(part): rows for part, rows in parts}
        self.left = sum(len(part.runs) for part in self.parts)
        self.waiting: dict[tuple[int, int], Waiting] = {}
        self.ready: list[Block] = []
        self.last = time.monotonic()

    def done(self, part: Part, within: range) -> None:
        """Regrets of a part on some runs are there: take blocks that are complete, or all if they waited long."""
        self.left -= len(within)
        for block, runs in by_block(within):
            key = id(part), block
            waiting = self.waiting.setdefault(key, Waiting(part, len(block_of(part, block))))
            waiting.runs.append(runs)
            waiting.missing -= len(runs)
            if not waiting.missing:
                self.take(self.waiting.pop(key))
        waited = time.monotonic() - self.last
        if waited > PATIENCE:
            for waiting in self.waiting.values():
                self.take(waiting)
        if self.ready and (waited > PAUSE or not self.left):
            self.ledger.keep(self.ready)
            self.ready = []
            self.last = time.monotonic()

    def take(self, waiting: Waiting) -> None:
        """Make blocks of the regrets that are there."""
        part = waiting.part
        for runs in joined(waiting.runs):
            found = singles(self.job, part.out[:, runs.start - part.runs.start : runs.stop - part.runs.start])
            for one, regrets in zip(self.rows[id(part)], found, strict=True):
                one.out[runs.start - one.runs.start : runs.stop - one.runs.start] = regrets
                self.ready.append(Block(one.series, runs.start, regrets))
        waiting.runs.clear()


@dataclass
class Waiting:
    """A part's regrets in a block that is not complete: which runs are there and were not taken, how many are missing."""

    part: Part
    missing: int
    runs: list[range] = field(default_factory=list)


def block_of(part: Part, block: int) -> range:
    """The runs of a part that are in a block."""
    return range(max(part.runs.start, block * BLOCK), min(part.runs.stop, (block + 1) * BLOCK))


def joined(runs: Sequence[range]) -> list[range]:
    """Neighbouring ranges as one."""
    found: list[range] = []
    for one in sorted(runs, key=lambda each: each.start):
        if found and found[-1].stop == one.start:
            found[-1] = range(found[-1].start, one.stop)
        else:
            found.append(one)
    return found


def rounded(job: Job, regrets: Floats) -> Floats:
    """Regrets as a ledger would give them back."""
    return singles(job, regrets).astype(np.float64)


def singles(job: Job, regrets: Floats) -> Singles:
    """Regrets in float32, whose seven digits are far more than chance leaves of them."""
    with np.errstate(over="ignore"):
        found = regrets.astype(np.float32)
    if not np.isfinite(found).all():
        raise Fault(
            f"regrets must be below 3.4e38, but the policy {job.policy.name!r} on the problem {job.problem.name!r} has "
            "larger ones; scale the rewards down."
        )
    return found
