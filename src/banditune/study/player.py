"""Plays for the verbs, with and without a ledger: what a ledger holds is not played again."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import ThreadpoolController

from banditune.contracts import Fault, Floats
from banditune.engine.run import BLOCK, Job, Part, play, play_each, play_parts, read_only, results_array
from banditune.study.door import setup_of
from banditune.study.identity import canonical, identity, kind_of
from banditune.study.ledger import Block, Ledger, Series, Setup, Singles

Progress = Callable[[int], None]

PATIENCE = 1.0
"""Seconds after which regrets are stored although their block is not complete."""

PAUSE = 0.05
"""Seconds between two writes, so that a study of many short parts does not spend its time on them."""


class Asked(NamedTuple):
    """A row of parameters on some runs: where it stands in the ledger, where its regrets go, and which are missing."""

    row: int
    runs: range
    series: Series
    out: Floats
    missing: tuple[range, ...]


class Player:
    """Plays jobs as the engine does, from a ledger where it has one. Regrets are rounded to float32, as they are stored.

    With `exact` they are not, unless there is a ledger.
    """

    def __init__(self, jobs: int | None, ledger: str | Path | None = None, *, exact: bool = False) -> None:
        self.jobs = jobs
        self.exact = exact
        self.limit: Any = None
        self.ledger = None if ledger is None else Ledger(ledger)
        self.setups: dict[tuple[int, str | None], tuple[Job, Setup]] = {}

    def __enter__(self) -> Player:
        # The last bits of a product of matrices depend on the number of threads that share it: the answer must not. And
        # there are threads enough.
        self.limit = _libraries().limit(limits=1, user_api="blas")
        return self

    def __exit__(self, *_: object) -> None:
        self.limit.restore_original_limits()
        if self.ledger is not None:
            self.ledger.close()

    def play(
        self, job: Job, params: Any, runs: range, *, first_row: int = 0, progress: Progress | None = None
    ) -> Floats:
        """Regrets of every row of `params` on instances `runs`, as from `engine.run.play`."""
        if self.ledger is None:
            found = play(job, params, runs, first_row=first_row, jobs=self.jobs, progress=progress)
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
            play_parts(job, writer.parts, self.jobs, progress, writer.done)
        return out

    def play_each(
        self, job: Job, params: Any, sizes: Sequence[int], first: int, *, progress: Progress | None = None
    ) -> list[Floats]:
        """Regrets of every row on `sizes[row]` instances of its own, as from `engine.run.play_each`."""
        if self.ledger is None:
            each = play_each(job, params, sizes, first, jobs=self.jobs, progress=progress)
            return [rounded(job, row) for row in each]
        params = read_only(params)
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
            play_parts(job, writer.parts, self.jobs, progress, writer.done)
        return outs

    def _asked(
        self, job: Job, params: Floats, row: int, first_row: int, runs: range, out: Floats, progress: Progress | None
    ) -> Asked:
        """Take what the ledger has of a row."""
        assert self.ledger is not None
        noise = 1 + first_row + row if job.noise == "own" else 0
        series = Series(self._setup(job, kind_of(job, params[row])), params[row].astype("<f8").tobytes(), noise)
        missing = tuple(self.ledger.fill(series, runs, out))
        known = len(runs) - sum(map(len, missing))
        if known and progress:
            progress(known)
        return Asked(row, runs, series, out, missing)

    def _setup(self, job: Job, kind: str | None) -> Setup:
        """The key of a job; found once, because that takes milliseconds."""
        key = (id(job), kind)
        if key not in self.setups:
            versions = json.dumps(dict(setup_of(job).versions))
            # The job is kept, so that no other one gets its address.
            self.setups[key] = job, Setup.of(canonical(identity(job, kind)), versions)
        return self.setups[key][1]


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    """The libraries that multiply matrices for NumPy."""
    return ThreadpoolController()


def together(
    asked: Sequence[Asked], params: Floats, first_row: int, *, shared: bool
) -> Iterator[tuple[Part, list[Asked]]]:
    """Parts to play: rows that miss the same runs in one, unless they have noise of their own and are no neighbours."""
    ordered = sorted(asked, key=_bounds) if shared else asked
    for _, found in groupby(ordered, key=_bounds):
        group = list(found)
        rows = [one.row for one in group]
        for runs in group[0].missing:
            out = results_array(len(rows), len(runs), group[0].out.shape[1])
            yield Part(read_only(params[rows]), first_row + rows[0], runs, out), group


def _bounds(asked: Asked) -> list[tuple[int, int]]:
    return [(runs.start, runs.stop) for runs in asked.missing]


class Writer:
    """Stores regrets as they come, and puts them where they were asked for."""

    def __init__(self, ledger: Ledger, job: Job, parts: Sequence[tuple[Part, list[Asked]]]) -> None:
        self.ledger = ledger
        self.job = job
        self.parts = [part for part, _ in parts]
        self.rows = {id(part): rows for part, rows in parts}
        self.ends = {id(part): part.runs.start for part in self.parts}
        self.left = sum(len(part.runs) for part in self.parts)
        self.ready: list[Block] = []
        self.last = time.monotonic()

    def done(self, part: Part, within: range) -> None:
        """Regrets of a part are there up to the end of `within`: take them if they end a block or waited long."""
        self.left -= len(within)
        waited = time.monotonic() - self.last
        if waited > PATIENCE or within.stop == part.runs.stop or within.stop % BLOCK == 0:
            self.take(part, within.stop)
        if self.ready and (waited > PAUSE or not self.left):
            self.ledger.keep(self.ready)
            self.ready = []
            self.last = time.monotonic()

    def take(self, part: Part, stop: int) -> None:
        """Make blocks of a part's regrets up to run `stop`."""
        first, start = self.ends[id(part)], part.runs.start
        found = singles(self.job, part.out[:, first - start : stop - start])
        for one, regrets in zip(self.rows[id(part)], found, strict=True):
            one.out[first - one.runs.start : stop - one.runs.start] = regrets
            self.ready.append(Block(one.series, first, regrets))
        self.ends[id(part)] = stop


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
