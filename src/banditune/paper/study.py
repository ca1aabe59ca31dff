"""Every experiment of the paper again: pools of runs, tunings in lock-step, our number beside each published one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from banditune.contracts import Policy
from banditune.engine.cluster import place_for
from banditune.engine.run import Job, cores
from banditune.exact import Gittins
from banditune.paper.cells import AFTER_TUNING, FAILURES, Pool, cell, mean_of
from banditune.paper.pools import FOLDS, UNITS, source_of, values_of
from banditune.paper.published import Place
from banditune.paper.rows import GITTINS, PAPER, Row, chosen, range_of
from banditune.paper.tunings import OTHERWISE, TUNERS, Tuned, rng_for, tuned
from banditune.results import PaperCell, PaperCurve, Reproduction
from banditune.study.door import job_of, setup_of, whole
from banditune.study.player import Player

FEWER = 5
"""The two-part tuner, for which nothing is published, is run so many times less often: it thinks for milliseconds."""

TASTE = 2000
"""With fewer runs a width, the larger tunings draw most of a pool more than once."""

THINKING = {"notes": 15e-6, "uniform": 8e-6, "halving": 9e-6, "two-part": 5e-3}
"""About the seconds that a tuning takes in lock-step."""

NOTES = (
    "The paper's error is our standard deviation of a run after tuning over 100 (its 10,000 runs), binomial for failures, "
    "and the rounding of its last digit. If its tunings drew from stored runs too, its true error is larger, like ours.",
    "NoTeS as printed, rounded so that it is never over the budget (in brackets: rounded up). Uniform as in the paper: a "
    "tenth of the budget for each of the 11 values 0, 0.1, ..., 1, which is a tenth over it (in brackets: within it). "
    "Halving on the same values; with 50 runs every value gets one at least, which is 55 in all (in brackets: none in the "
    "first iteration, six values are kept by lot). The paper prints these cells although its caption says they cannot be "
    "made. Uniform and Halving play their values on the same instances; where they would be played on instances of their "
    "own, the reading counts in the tolerances.",
    "Best: the width is chosen on nine tenths of the runs and judged on the last, ten times (in brackets: among tenths). "
    "Failures: answers further than 0.1 from the best width, the lowest point of a smooth curve (in brackets: from the "
    "best of tenths).",
)
"""What a reader of the tables must know; what stands in brackets is another reading of what the paper leaves open."""

Progress = Callable[[int, int], None]
"""Told (seconds so far, seconds in all), the second one estimated."""


def reproduce(
    *,
    only: str | None = None,
    runs: int = 500,
    tunings: int = 10_000,
    seed: int = 0,
    jobs: int | None = None,
    cluster: Any = "threads",
    device: str = "cpu",
    ledger: str | Path | None = None,
    progress: Progress | None = None,
) -> Reproduction:
    """Play the paper's experiments and put our numbers beside the published ones.

    `only` chooses rows by parts of their names, parted by commas. Each row is played `runs` times at each of the widths
    that a tuner can visit; all tunings draw from these runs. 10,000 runs and tunings are the paper's scale. A `ledger`
    keeps every run: a study that was interrupted goes on from there. Runs are played on the `cluster`, as in `tune`;
    tunings always here.
    """
    runs, tunings = whole("runs", runs, 2 * FOLDS), whole("tunings", tunings, 10 * FEWER)
    jobs = None if jobs is None else whole("jobs", jobs)
    names = chosen(only)
    rows = [row for row in PAPER if row.name in names]
    todo = {row.name: checked(row.policy, row, seed, device) for row in rows}
    todo |= {GITTINS: checked(Gittins(prior=(1, 1)), PAPER[0], seed, device)} if GITTINS in names else {}
    counts = {name: tunings // FEWER if name == "two-part" else tunings for name in TUNERS}
    place = place_for(cluster, jobs, device=next(iter(todo.values())).device)
    ahead = Ahead(costs(rows, todo, runs, counts, jobs), progress)
    cells: list[PaperCell] = []
    curves: list[PaperCurve] = []
    with Player(place, ledger) as player:
        for row in rows:
            told = ahead.part(f"play {row.name}", len(UNITS) * runs)
            regrets = player.play(todo[row.name], values_of(row)[:, None], range(runs), progress=told)[:, :, 0]
            pool = Pool(row.name, range_of(row), regrets)
            cells += [pool.lowest(), pool.theory(), *tuned_cells(row, pool, counts, seed, jobs, ahead)]
            curves.append(pool.curve())
        if GITTINS in names:
            regrets = player.play(todo[GITTINS], np.zeros((1, 1)), range(runs))[0, :, 0]
            spread = float(regrets.std(ddof=1))
            cells.append(cell(Place("gittins", GITTINS), mean_of(regrets), spread=spread))
    setup = setup_of(next(iter(todo.values())))
    return Reproduction(
        tuple(cells), tuple(curves), runs, counts, setup.seed, setup.device, tuple(notes_on(runs, counts)),
        setup.versions,
    )  # fmt: skip


def checked(policy: Policy, row: Row, seed: Any, device: Any) -> Job:
    """A row's job as the paper played it, through the door of the verbs: realised regret, own noise for every width."""
    return job_of(policy, row.problem, horizon=row.horizon, seed=seed, regret="realised", noise="own", device=device)


def tuned_cells(
    row: Row, pool: Pool, counts: dict[str, int], seed: int, jobs: int | None, ahead: Ahead
) -> Iterator[PaperCell]:
    """All cells of a row that are about tunings; they run side by side, each with random numbers of its own."""
    source = source_of(row.name, pool.among, values_of(row), pool.regrets)
    told = ahead.part(f"tune {row.name}", sum(thinking(counts).values()))

    def task(tuner: str, budget: int) -> list[PaperCell]:
        found, *otherwise = (
            tuned(make(budget), source, counts[tuner], rng_for(seed, row.name, tuner, budget))
            for make in (TUNERS[tuner], *OTHERWISE.get(tuner, ()))
        )
        told(thinking(counts)[tuner, budget])
        return list(about(pool, tuner, budget, found, otherwise))

    budgets = sorted({*AFTER_TUNING, *FAILURES})
    with ThreadPoolExecutor(jobs or cores()) as threads:
        found = threads.map(lambda both: task(*both), [(tuner, budget) for tuner in TUNERS for budget in budgets])
        yield from sorted((cell for part in found for cell in part), key=lambda cell: cell.table != "regret")


def about(pool: Pool, tuner: str, budget: int, found: Tuned, otherwise: Sequence[Tuned]) -> Iterator[PaperCell]:
    """What the paper's tables tell of a tuner with a budget."""
    if budget in AFTER_TUNING:
        yield pool.after(Place("regret", pool.row, tuner, budget), found, otherwise)
    if budget in FAILURES:
        yield pool.failures(Place("failures", pool.row, tuner, budget), found, otherwise)


def notes_on(runs: int, counts: dict[str, int]) -> Iterator[str]:
    """What a reader of the tables must know."""
    yield (
        f"Each row was played {runs:,} times at each of {len(UNITS)} widths, all that a tuner can visit, with realised "
        "regret, the same instances for all widths and noise of its own for each. Tunings "
        f"({counts['notes']:,} a cell, {counts['two-part']:,} of two-part) draw runs from this pool with replacement. "
        "Standard errors hold the spread of tunings and the pool's own error, by the infinitesimal jackknife."
    )
    yield from NOTES
    if runs < TASTE:
        yield (
            f"With {runs:,} runs a width this is a taste: tunings with 1,000 runs draw most of the pool again and again; "
            "where a few runs in a thousand carry the mean (UCB1 on beta rewards), standard errors are too small."
        )


def thinking(counts: dict[str, int]) -> dict[tuple[str, int], float]:
    """About the seconds that the tunings of a cell take."""
    budgets = sorted({*AFTER_TUNING, *FAILURES})
    return {(tuner, budget): counts[tuner] * THINKING[tuner] for tuner in TUNERS for budget in budgets}


def costs(
    rows: list[Row], todo: dict[str, Job], runs: int, counts: dict[str, int], jobs: int | None
) -> dict[str, float]:
    """About the seconds that each part of the work takes: rows differ a thousandfold."""
    workers = min(jobs or cores(), cores())
    found = {}
    for row in rows:
        each = row.gpu if todo[row.name].device == "gpu" else row.cpu / workers
        found[f"play {row.name}"] = each * 1e-6 * len(UNITS) * runs
        found[f"tune {row.name}"] = sum(thinking(counts).values()) / workers
    return found


class Ahead:
    """How long the work takes: known costs of its parts, corrected by how long what is done took.

    A part's clock starts when it first tells of progress, so that compiling does not count.
    """

    def __init__(self, costs: dict[str, float], progress: Progress | None) -> None:
        self.costs, self.progress = costs, progress
        self.began = time.monotonic()
        self.done = dict.fromkeys(costs, 0.0)
        self.first: dict[str, tuple[float, float]] = {}
        self.last: dict[str, float] = {}

    def part(self, name: str, size: float) -> Callable[[float], None]:
        """A function that is told how much of a part was just done, of `size` in all."""

        def told(some: float) -> None:
            self.done[name] = min(1.0, self.done[name] + some / size)
            self.last[name] = time.monotonic()
            self.first.setdefault(name, (self.last[name], self.done[name]))
            if self.progress:
                spent = time.monotonic() - self.began
                self.progress(round(spent), round(spent + self.left()))

        return told

    def left(self) -> float:
        """Seconds that are left: what is begun goes on at its own pace, the rest at that of parts of its kind."""
        return sum((1 - self.done[name]) * cost * self.pace(name) for name, cost in self.costs.items())

    def pace(self, name: str) -> float:
        """Measured over known seconds, of a part if enough of it is done, else of all parts of its kind, else 1."""
        kind = [other for other in list(self.first) if other.split()[0] == name.split()[0]]
        for parts in ([name] if name in self.first else [], kind):
            known = sum(self.costs[part] * (self.done[part] - self.first[part][1]) for part in parts)
            took = sum(self.last[part] - self.first[part][0] for part in parts)
            if known > 0.05 * sum(self.costs[part] for part in parts):
                return took / known
        return 1.0
