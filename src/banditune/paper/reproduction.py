"""Every experiment of the paper again: pools of runs, tunings in lock-step, our number beside each published one."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.policy import Policy
from banditune.exact.gittins import Gittins
from banditune.paper.lockstep_tunings import (
    ALTERNATIVE_READINGS,
    LOCKSTEP_TUNERS,
    TuningOutcomes,
    make_cell_rng,
    tune_in_lockstep,
)
from banditune.paper.paper_cells import (
    FAILURE_BUDGETS,
    REGRET_BUDGETS,
    RowRegrets,
    compute_mean_and_error,
    make_paper_cell,
)
from banditune.paper.paper_rows import GITTINS_ROW, PAPER_ROWS, PaperRow, get_tuned_range, select_row_names
from banditune.paper.published_numbers import PaperCellKey
from banditune.paper.run_pools import FOLD_COUNT, UNIT_POINTS, list_row_widths, make_run_source
from banditune.results.paper_results import PaperCell, PaperCurve, Reproduction
from banditune.simulation.devices import count_cores
from banditune.simulation.executors.executor_factory import make_executor_factory
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.requests import build_spec, check_count, make_study_setup

TWO_PART_DIVISOR = 5
"""The two-part tuner, for which nothing is published, is run so many times less often: it thinks for milliseconds."""


SMALL_POOL_RUNS = 2000
"""With fewer runs a width, the larger tunings draw most of a pool more than once."""


SEARCH_SECONDS = {"notes": 15e-6, "uniform": 8e-6, "halving": 9e-6, "two-part": 5e-3}
"""About the seconds that a tuning takes in lock-step."""


READER_NOTES = (
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


SecondsProgress = Callable[[int, int], None]
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
    progress: SecondsProgress | None = None,
) -> Reproduction:
    """Play the paper's experiments and put our numbers beside the published ones.

    `only` chooses rows by parts of their names, parted by commas. Each row is played `runs` times at each of the widths
    that a tuner can visit; all tunings draw from these runs. 10,000 runs and tunings are the paper's scale. A `ledger`
    keeps every run: a study that was interrupted goes on from there. Runs are played on the `cluster`, as in `tune`;
    tunings always here.
    """
    runs, tunings = check_count("runs", runs, 2 * FOLD_COUNT), check_count("tunings", tunings, 10 * TWO_PART_DIVISOR)
    jobs = None if jobs is None else check_count("jobs", jobs)
    names = select_row_names(only)
    rows = [row for row in PAPER_ROWS if row.name in names]
    todo = {row.name: make_row_spec(row.policy, row, seed, device) for row in rows}
    todo |= (
        {GITTINS_ROW: make_row_spec(Gittins(prior=(1, 1)), PAPER_ROWS[0], seed, device)} if GITTINS_ROW in names else {}
    )
    counts = {name: tunings // TWO_PART_DIVISOR if name == "two-part" else tunings for name in LOCKSTEP_TUNERS}
    place = make_executor_factory(cluster, jobs, device=next(iter(todo.values())).device)
    ahead = DurationEstimator(estimate_costs(rows, todo, runs, counts, jobs), progress)
    cells: list[PaperCell] = []
    curves: list[PaperCurve] = []
    with StoredSimulator(place, ledger) as player:
        for row in rows:
            told = ahead.part(f"play {row.name}", len(UNIT_POINTS) * runs)
            regrets = player.play(todo[row.name], list_row_widths(row)[:, None], range(runs), progress=told)[:, :, 0]
            pool = RowRegrets(row.name, get_tuned_range(row), regrets)
            cells += [pool.lowest(), pool.theory(), *compute_tuned_cells(row, pool, counts, seed, jobs, ahead)]
            curves.append(pool.curve())
        if GITTINS_ROW in names:
            regrets = player.play(todo[GITTINS_ROW], np.zeros((1, 1)), range(runs))[0, :, 0]
            spread = float(regrets.std(ddof=1))
            cells.append(
                make_paper_cell(PaperCellKey("gittins", GITTINS_ROW), compute_mean_and_error(regrets), spread=spread)
            )
    setup = make_study_setup(next(iter(todo.values())))
    return Reproduction(
        tuple(cells), tuple(curves), runs, counts, setup.seed, setup.device, tuple(write_reproduction_notes(runs, counts)),
        setup.versions,
    )  # fmt: skip


def make_row_spec(policy: Policy, row: PaperRow, seed: Any, device: Any) -> SimulationSpec:
    """A row's job as the paper played it, through the door of the verbs: realised regret, own noise for every width."""
    return build_spec(
        policy, row.problem, horizon=row.horizon, seed=seed, regret="realised", noise="own", device=device
    )


class DurationEstimator:
    """How long the work takes: known costs of its parts, corrected by how long what is done took.

    A part's clock starts when it first tells of progress, so that compiling does not count.
    """

    def __init__(self, costs: dict[str, float], progress: SecondsProgress | None) -> None:
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


def compute_tuned_cells(
    row: PaperRow, pool: RowRegrets, counts: dict[str, int], seed: int, jobs: int | None, ahead: DurationEstimator
) -> Iterator[PaperCell]:
    """All cells of a row that are about tunings; they run side by side, each with random numbers of its own."""
    source = make_run_source(row.name, pool.among, list_row_widths(row), pool.regrets)
    told = ahead.part(f"tune {row.name}", sum(estimate_search_seconds(counts).values()))

    def task(tuner: str, budget: int) -> list[PaperCell]:
        found, *otherwise = (
            tune_in_lockstep(make(budget), source, counts[tuner], make_cell_rng(seed, row.name, tuner, budget))
            for make in (LOCKSTEP_TUNERS[tuner], *ALTERNATIVE_READINGS.get(tuner, ()))
        )
        told(estimate_search_seconds(counts)[tuner, budget])
        return list(make_tuner_cells(pool, tuner, budget, found, otherwise))

    budgets = sorted({*REGRET_BUDGETS, *FAILURE_BUDGETS})
    with ThreadPoolExecutor(jobs or count_cores()) as threads:
        found = threads.map(
            lambda both: task(*both), [(tuner, budget) for tuner in LOCKSTEP_TUNERS for budget in budgets]
        )
        yield from sorted((cell for part in found for cell in part), key=lambda cell: cell.table != "regret")


def make_tuner_cells(
    pool: RowRegrets, tuner: str, budget: int, found: TuningOutcomes, otherwise: Sequence[TuningOutcomes]
) -> Iterator[PaperCell]:
    """What the paper's tables tell of a tuner with a budget."""
    if budget in REGRET_BUDGETS:
        yield pool.after(PaperCellKey("regret", pool.row, tuner, budget), found, otherwise)
    if budget in FAILURE_BUDGETS:
        yield pool.failures(PaperCellKey("failures", pool.row, tuner, budget), found, otherwise)


def write_reproduction_notes(runs: int, counts: dict[str, int]) -> Iterator[str]:
    """What a reader of the tables must know."""
    yield (
        f"Each row was played {runs:,} times at each of {len(UNIT_POINTS)} widths, all that a tuner can visit, with realised "
        "regret, the same instances for all widths and noise of its own for each. Tunings "
        f"({counts['notes']:,} a cell, {counts['two-part']:,} of two-part) draw runs from this pool with replacement. "
        "Standard errors hold the spread of tunings and the pool's own error, by the infinitesimal jackknife."
    )
    yield from READER_NOTES
    if runs < SMALL_POOL_RUNS:
        yield (
            f"With {runs:,} runs a width this is a taste: tunings with 1,000 runs draw most of the pool again and again; "
            "where a few runs in a thousand carry the mean (UCB1 on beta rewards), standard errors are too small."
        )


def estimate_search_seconds(counts: dict[str, int]) -> dict[tuple[str, int], float]:
    """About the seconds that the tunings of a cell take."""
    budgets = sorted({*REGRET_BUDGETS, *FAILURE_BUDGETS})
    return {(tuner, budget): counts[tuner] * SEARCH_SECONDS[tuner] for tuner in LOCKSTEP_TUNERS for budget in budgets}


def estimate_costs(
    rows: list[PaperRow], todo: dict[str, SimulationSpec], runs: int, counts: dict[str, int], jobs: int | None
) -> dict[str, float]:
    """About the seconds that each part of the work takes: rows differ a thousandfold."""
    workers = min(jobs or count_cores(), count_cores())
    found = {}
    for row in rows:
        each = row.gpu if todo[row.name].device == "gpu" else row.cpu / workers
        found[f"play {row.name}"] = each * 1e-6 * len(UNIT_POINTS) * runs
        found[f"tune {row.name}"] = sum(estimate_search_seconds(counts).values()) / workers
    return found
