"""Repeats the paper's experiments, with pools of runs and tunings in lock-step, and compares with the published numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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
from banditune.study.settings import RUN, Run, Simulation

TWO_PART_DIVISOR = 5
"""The factor by which the two-part tuner has fewer tunings: it takes milliseconds and has no published numbers."""


SMALL_POOL_RUNS = 2000
"""The number of runs per width below which larger tunings draw most of a pool more than once."""


SEARCH_SECONDS = {"notes": 15e-6, "uniform": 8e-6, "halving": 9e-6, "two-part": 5e-3}
"""Approximate seconds of a tuning in lock-step."""


READER_NOTES = (
    "The paper's error is our standard deviation of a run after tuning, divided by 100 (its 10,000 runs), binomial for "
    "failures, plus the rounding of its last digit. If its tunings drew from stored runs too, its true error is larger, "
    "like ours.",
    "NoTeS as printed, rounded so that it never exceeds the budget (in brackets: rounded up). Uniform as in the paper: a "
    "tenth of the budget for each of the 11 values 0, 0.1, ..., 1, which is a tenth over it (in brackets: within it). "
    "Halving on the same values. With 50 runs every value gets at least one, which is 55 in all (in brackets: none in the "
    "first iteration, and six random values are kept). The paper prints these cells although its caption says they "
    "cannot be made. Uniform and Halving simulate their values on the same instances. The reading with separate "
    "instances counts in the tolerances.",
    "Best: the width is selected on nine tenths of the runs and validated on the last, ten times (in brackets: only "
    "tenths of the range). Failures: answers further than 0.1 from the best width, the lowest point of a smooth curve (in "
    "brackets: from the best of tenths).",
)
"""Notes for readers of the tables. Numbers in brackets are for another reading of ambiguous parts of the paper."""


SecondsProgress = Callable[[int, int], None]
"""Called with (seconds so far, estimated seconds in all)."""


def reproduce(
    *,
    only: str | None = None,
    runs: int = 500,
    tunings: int = 10_000,
    seed: int = 0,
    run: Run = RUN,
) -> Reproduction:
    """Repeat the paper's experiments, and compare our numbers with the published ones.

    Parameters
    ----------
    only : str, optional
        Words, separated by commas. Rows whose names contain one of them are run. All by default.
    runs : int
        Runs at each of the widths that a tuner can simulate. All tunings draw from these runs. The paper has 10,000.
    tunings : int
        Tunings of each tuner with each budget.
    seed : int
        The same seed gives the same answer.
    run : Run
        Settings of the execution. Its `progress` is called with seconds so far and seconds in all. With a `store`, an
        interrupted study can be continued.

    Returns
    -------
    Reproduction
        A cell for each published number, and the curves.
    """
    runs, tunings = check_count("runs", runs, 2 * FOLD_COUNT), check_count("tunings", tunings, 10 * TWO_PART_DIVISOR)
    workers = None if run.workers is None else check_count("workers", run.workers)
    names = select_row_names(only)
    rows = [row for row in PAPER_ROWS if row.name in names]
    specs = {row.name: make_row_spec(row.policy, row, seed, run.device) for row in rows}
    specs |= (
        {GITTINS_ROW: make_row_spec(Gittins(prior=(1, 1)), PAPER_ROWS[0], seed, run.device)}
        if GITTINS_ROW in names
        else {}
    )
    counts = {name: tunings // TWO_PART_DIVISOR if name == "two-part" else tunings for name in LOCKSTEP_TUNERS}
    executor = make_executor_factory(run.executor, workers, device=next(iter(specs.values())).device)
    durations = DurationEstimator(estimate_costs(rows, specs, runs, counts, workers), run.progress)
    cells: list[PaperCell] = []
    curves: list[PaperCurve] = []
    with StoredSimulator(executor, run.store) as simulator:
        for row in rows:
            progress = durations.track_part(f"simulate {row.name}", len(UNIT_POINTS) * runs)
            regrets = simulator.simulate(
                specs[row.name], list_row_widths(row)[:, None], range(runs), progress=progress
            )[:, :, 0]
            pool = RowRegrets(row.name, get_tuned_range(row), regrets)
            cells += [
                pool.compare_best(),
                pool.compare_textbook(),
                *compute_tuned_cells(row, pool, counts, seed, workers, durations),
            ]
            curves.append(pool.make_curve())
        if GITTINS_ROW in names:
            regrets = simulator.simulate(specs[GITTINS_ROW], np.zeros((1, 1)), range(runs))[0, :, 0]
            spread = float(regrets.std(ddof=1))
            cells.append(
                make_paper_cell(PaperCellKey("gittins", GITTINS_ROW), compute_mean_and_error(regrets), spread=spread)
            )
    setup = make_study_setup(next(iter(specs.values())))
    return Reproduction(
        cells=tuple(cells),
        curves=tuple(curves),
        runs=runs,
        tunings=counts,
        seed=setup.seed,
        device=setup.device,
        notes=tuple(write_reproduction_notes(runs, counts)),
        versions=setup.versions,
    )


def make_row_spec(policy: Policy, row: PaperRow, seed: Any, device: Any) -> SimulationSpec:
    """Make the spec of a row as in the paper: realised regret, and independent noise for every width."""
    simulation = Simulation(regret="realised", common_random_numbers=False)
    return build_spec(
        policy, row.problem, horizon=row.horizon, seed=seed, simulation=simulation, run=Run(device=device)
    )


class DurationEstimator:
    """Estimates durations from the known costs of parts, corrected by the measured time of finished work.

    The time of a part is measured from its first progress, without the time to compile.
    """

    def __init__(self, costs: dict[str, float], progress: SecondsProgress | None) -> None:
        self.costs, self.progress = costs, progress
        self.start_time = time.monotonic()
        self.done_shares = dict.fromkeys(costs, 0.0)
        self.first: dict[str, tuple[float, float]] = {}
        self.last: dict[str, float] = {}

    def track_part(self, name: str, size: float) -> Callable[[float], None]:
        """Return a function that is called with each finished amount of a part, of `size` in all."""

        def report_progress(amount: float) -> None:
            self.done_shares[name] = min(1.0, self.done_shares[name] + amount / size)
            self.last[name] = time.monotonic()
            self.first.setdefault(name, (self.last[name], self.done_shares[name]))
            if self.progress:
                spent = time.monotonic() - self.start_time
                self.progress(round(spent), round(spent + self.estimate_remaining()))

        return report_progress

    def estimate_remaining(self) -> float:
        """Estimate the remaining seconds, at the pace of each part, or of its kind if it has not started."""
        return sum((1 - self.done_shares[name]) * cost * self.estimate_pace(name) for name, cost in self.costs.items())

    def estimate_pace(self, name: str) -> float:
        """Estimate the ratio of measured to expected seconds, from a part or its kind if enough of it is done, else 1."""
        kind = [started for started in list(self.first) if started.split()[0] == name.split()[0]]
        for parts in ([name] if name in self.first else [], kind):
            expected = sum(self.costs[part] * (self.done_shares[part] - self.first[part][1]) for part in parts)
            took = sum(self.last[part] - self.first[part][0] for part in parts)
            if expected > 0.05 * sum(self.costs[part] for part in parts):
                return took / expected
        return 1.0


def compute_tuned_cells(
    row: PaperRow,
    pool: RowRegrets,
    counts: dict[str, int],
    seed: int,
    workers: int | None,
    durations: DurationEstimator,
) -> Iterator[PaperCell]:
    """Compute all cells of a row on tunings, in parallel, each with its own random generator."""
    source = make_run_source(row.name, pool.search_range, list_row_widths(row), pool.regrets)
    report_progress = durations.track_part(f"tune {row.name}", sum(estimate_search_seconds(counts).values()))

    def task(tuner: str, budget: int) -> list[PaperCell]:
        outcomes, *otherwise = (
            tune_in_lockstep(make(budget), source, counts[tuner], make_cell_rng(seed, row.name, tuner, budget))
            for make in (LOCKSTEP_TUNERS[tuner], *ALTERNATIVE_READINGS.get(tuner, ()))
        )
        report_progress(estimate_search_seconds(counts)[tuner, budget])
        return list(make_tuner_cells(pool, tuner, budget, outcomes, otherwise))

    budgets = sorted({*REGRET_BUDGETS, *FAILURE_BUDGETS})
    with ThreadPoolExecutor(workers or count_cores()) as threads:
        groups = threads.map(
            lambda both: task(*both), [(tuner, budget) for tuner in LOCKSTEP_TUNERS for budget in budgets]
        )
        yield from sorted((cell for group in groups for cell in group), key=lambda cell: cell.table != "regret")


def make_tuner_cells(
    pool: RowRegrets, tuner: str, budget: int, outcomes: TuningOutcomes, otherwise: Sequence[TuningOutcomes]
) -> Iterator[PaperCell]:
    """Make the cells of the paper's tables for a tuner with a budget."""
    if budget in REGRET_BUDGETS:
        yield pool.compare_tuned_regret(PaperCellKey("regret", pool.row, tuner, budget), outcomes, otherwise)
    if budget in FAILURE_BUDGETS:
        yield pool.compare_failures(PaperCellKey("failures", pool.row, tuner, budget), outcomes, otherwise)


def write_reproduction_notes(runs: int, counts: dict[str, int]) -> Iterator[str]:
    """Write the notes for readers of the tables."""
    yield (
        f"Each row was simulated {runs:,} times at each of {len(UNIT_POINTS)} widths, all that a tuner can simulate, with "
        "realised regret, the same instances for all widths and independent noise for each. Tunings "
        f"({counts['notes']:,} a cell, {counts['two-part']:,} of two-part) draw runs from this pool with replacement. "
        "Standard errors include the spread of tunings and the error of the pool, by the infinitesimal jackknife."
    )
    yield from READER_NOTES
    if runs < SMALL_POOL_RUNS:
        yield (
            f"{runs:,} runs per width are a rough check: tunings with 1,000 runs draw most of the pool repeatedly. "
            "Where a few runs in a thousand dominate the mean (UCB1 on beta rewards), standard errors are too small."
        )


def estimate_search_seconds(counts: dict[str, int]) -> dict[tuple[str, int], float]:
    """Estimate the seconds of the tunings of each cell."""
    budgets = sorted({*REGRET_BUDGETS, *FAILURE_BUDGETS})
    return {(tuner, budget): counts[tuner] * SEARCH_SECONDS[tuner] for tuner in LOCKSTEP_TUNERS for budget in budgets}


def estimate_costs(
    rows: list[PaperRow], specs: dict[str, SimulationSpec], runs: int, counts: dict[str, int], workers: int | None
) -> dict[str, float]:
    """Estimate the seconds of each part of the work. Rows differ by a factor of 1,000."""
    cores = min(workers or count_cores(), count_cores())
    costs = {}
    for row in rows:
        microseconds = row.gpu_microseconds if specs[row.name].device == "gpu" else row.cpu_microseconds / cores
        costs[f"simulate {row.name}"] = microseconds * 1e-6 * len(UNIT_POINTS) * runs
        costs[f"tune {row.name}"] = sum(estimate_search_seconds(counts).values()) / cores
    return costs
