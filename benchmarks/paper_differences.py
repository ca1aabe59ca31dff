"""Measurements of other readings of the paper, to explain differences from its numbers.

python benchmarks/paper_differences.py step        # simulates UCB1
python benchmarks/paper_differences.py apart       # needs the pools of `paper_pools.py`
python benchmarks/paper_differences.py wider       # needs pools
python benchmarks/paper_differences.py tails       # needs pools
python benchmarks/paper_differences.py page STUDY  # needs pools and the JSON of a study

`step` tunes UCB1 with the log of the step. The paper prints the log of the horizon. `apart` tunes the stored pools with
NoTeS, Uniform and Halving, whose values are simulated on separate instances. The paper prints the same instances. Both
print the sum of squared differences from the paper's cells of a row, in joint standard errors. They also print failures
for the best width that brings all nine cells nearest to the paper's.
`wider` does so with a textbook width that is 5, 10 and 15% larger: the same gammas are other widths.
`tails` prints how rare large runs are in the stored pools, and how large one must be to make Halving fail at the end.
`page` writes the page of a stored study again, with the current readings, tolerances and explanations.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
from benchmark_problems import PAPER_ROWS, PaperRow
from paper_pools import get_pool_path

import banditune as bt
from banditune.paper.lockstep_tunings import (
    ALTERNATIVE_READINGS,
    BASELINE_POINTS,
    LOCKSTEP_TUNERS,
    PAPER_EPSILON,
    LockstepSearch,
    TuningOutcomes,
    make_cell_rng,
    make_halving_search_own_instances,
    make_ternary_search,
    make_uniform_search_own_instances,
    tune_in_lockstep,
)
from banditune.paper.paper_cells import FAILURE_BUDGETS, REGRET_BUDGETS, RowRegrets, make_paper_cell
from banditune.paper.paper_rows import get_tuned_range
from banditune.paper.published_numbers import PAPER_RUNS, ROUNDING_STEP, PaperCellKey, load_published_numbers
from banditune.paper.reproduction import make_tuner_cells, write_reproduction_notes
from banditune.paper.run_pools import UNIT_POINTS, RunSource, list_row_widths, make_run_source
from banditune.reports.paper_report import write_paper_folder
from banditune.results.paper_results import PaperCell, Reproduction
from banditune.tuners.grid_search import list_halving_runs
from banditune.tuners.noisy_ternary_search import allocate_pairs, count_iterations

TUNINGS = 10_000


def make_ternary_search_own_instances(budget: int) -> LockstepSearch:
    """NoTeS, the two values of an iteration on instances of their own."""
    return make_ternary_search(allocate_pairs(budget, count_iterations(PAPER_EPSILON)), shared=False)


OWN_INSTANCES: dict[str, Callable[[int], LockstepSearch]] = {
    "notes": make_ternary_search_own_instances,
    "uniform": make_uniform_search_own_instances,
    "halving": make_halving_search_own_instances,
}
SHARED_INSTANCES = {name: LOCKSTEP_TUNERS[name] for name in OWN_INSTANCES}


def list_visited_points(others: Iterable[float] = ()) -> np.ndarray:
    """The places where NoTeS, Uniform and Halving can look, 41 of those of a pool, and others."""
    points, spans = {*np.linspace(0, 1, BASELINE_POINTS), *others}, [(0.0, 1.0)]
    for _ in range(count_iterations(PAPER_EPSILON)):
        cuts = [(low, (2 * low + high) / 3, (low + 2 * high) / 3, high) for low, high in spans]
        points |= {point for _, a, b, _ in cuts for point in (a, b)}
        spans = [span for low, a, b, high in cuts for span in ((a, high), (low, b))]
    points |= {(low + high) / 2 for low, high in spans}
    return np.unique(np.abs(np.subtract.outer(sorted(points), UNIT_POINTS)).argmin(axis=1))


def simulate_row(row: PaperRow, policy: bt.kernel.Policy, runs: int) -> tuple[RunSource, np.ndarray]:
    """A source of runs of a policy on a row's problem, as the paper played it, at all places that are visited."""
    values = list_row_widths(row)[list_visited_points()]
    regrets = bt.simulate(
        policy,
        row.problem,
        values,
        horizon=row.horizon,
        runs=runs,
        seed=162,
        simulation=bt.Simulation(regret="realised", common_random_numbers=False),
    )
    return make_run_source(row.name, get_tuned_range(row), values, regrets), regrets


def load_pool(row: PaperRow) -> tuple[RunSource, np.ndarray]:
    """A row's pool from its file."""
    pool = np.load(get_pool_path(row))
    return make_run_source(row.name, get_tuned_range(row), pool["values"], pool["regrets"]), pool["regrets"]


def print_comparison(
    row: PaperRow, name: str, tuners: dict[str, Callable[[int], LockstepSearch]], source: RunSource, regrets: np.ndarray
) -> None:
    """Regret after tuning beside the paper's, and how far all nine are from it."""
    means, variance = regrets.mean(axis=1, dtype=float), regrets.var(axis=1, dtype=float)
    best = int(means.argmin())
    print(
        f"\n{row.name}, {name}: lowest {means[best]:.2f} at {source.unit_points[best]:.3f}, "
        f"{means[-1]:.2f} at {source.unit_points[-1]:.3g}"
    )
    differences = list(compare_cells(row, tuners, source, regrets, means, variance))
    print(f"  sum of squares over {len(differences)} cells: {sum(one**2 for one in differences):.1f}", flush=True)
    print_failures(row, tuners, source)


def compare_cells(
    row: PaperRow,
    tuners: dict[str, Callable[[int], LockstepSearch]],
    source: RunSource,
    regrets: np.ndarray,
    means: np.ndarray,
    variance: np.ndarray,
) -> Iterator[float]:
    """The differences of a row's cells in joint standard errors, each printed."""
    for tuner, make in tuners.items():
        line = f"  {tuner:8}"
        for budget in REGRET_BUDGETS:
            outcomes: TuningOutcomes = tune_in_lockstep(
                make(budget), source, TUNINGS, make_cell_rng(0, row.name, tuner, budget)
            )
            ours, se = outcomes.compute_mean(means), outcomes.compute_error(means, regrets)
            spread = math.sqrt(outcomes.compute_sd(means) ** 2 + outcomes.compute_mean(variance))
            paper = load_published_numbers()[PaperCellKey("regret", row.name, tuner, budget)]
            joint = math.hypot(se, spread / math.sqrt(PAPER_RUNS), ROUNDING_STEP / math.sqrt(12))
            line += f"  {budget}: {ours:.2f} ± {se:.2g} / {paper:.1f} / {(ours - paper) / joint:+.1f}"
            yield (ours - paper) / joint
        print(line)


def print_failures(row: PaperRow, tuners: dict[str, Callable[[int], LockstepSearch]], source: RunSource) -> None:
    """Failures in %, with the best width that makes all of a row nearest to the paper's: none can come nearer."""
    cells = [(tuner, budget) for tuner in tuners for budget in FAILURE_BUDGETS]
    paper = np.array([load_published_numbers()[PaperCellKey("failures", row.name, *both)] for both in cells])
    far = 100.0 * (np.abs(np.subtract.outer(UNIT_POINTS, source.unit_points)) > PAPER_EPSILON + 1e-9)
    outcomes = [
        tune_in_lockstep(tuners[tuner](budget), source, TUNINGS, make_cell_rng(0, row.name, tuner, budget))
        for tuner, budget in cells
    ]
    shares = np.array([far @ one.answer_counts / TUNINGS for one in outcomes])
    # Where failures are rare, a few are a small difference: square roots spread all shares alike.
    nearest = int(((np.sqrt(shares) - np.sqrt(paper)[:, None]) ** 2).sum(axis=0).argmin())
    print(f"  failures if {UNIT_POINTS[nearest]:.3f} is best, ours / paper's:")
    for key, tuner in enumerate(tuners):
        line = f"  {tuner:8}"
        for budget, at in zip(FAILURE_BUDGETS, range(3 * key, 3 * key + 3), strict=True):
            line += f"  {budget}: {shares[at, nearest]:.2f} / {paper[at]:.1f}"
        print(line, flush=True)


def print_tails(row: PaperRow) -> None:
    """Large runs near the best width, and the one run that would make Halving with 1,000 runs leave the best tenth."""
    source, regrets = load_pool(row)
    tenths = source.find_nearest(np.linspace(0, 1, BASELINE_POINTS))
    means = regrets[tenths].mean(axis=1, dtype=float)
    best = int(means.argmin())
    runs = list_halving_runs(1000, BASELINE_POINTS)[-1]
    print(f"\n{row.name}: best of tenths {best / 10:.1f}")
    for tenth in (best - 1, best, best + 1):
        some = regrets[tenths[tenth]]
        print(
            f"  {tenth / 10:.1f}: mean {means[tenth]:.1f}, over 300 {np.mean(some > 300):.2%}, over 1,000 "
            f"{np.mean(some > 1000):.2%}, largest {some.max():.0f}"
        )
    needed = runs * (means[best + 1] - means[best])
    print(
        f"  to lose against {best / 10 + 0.1:.1f} on {runs} runs each, {best / 10:.1f} must meet one of about {needed:.0f}"
    )


UPDATE_NOTE = (
    "This page was written again from the stored study. Readings that the study did not play (Uniform and Halving with "
    "instances of each value's own, Uniform within its budget for failures) were measured on a second pool of 10,000 runs "
    "a width (seed 162): what they differ from ours there is added to ours here."
)
"""What a reader must know about a page that was written again."""


def update_study(study: Reproduction) -> Reproduction:
    """A stored study with today's readings."""
    cells = [one for row in PAPER_ROWS for one in update_cells(row, study)]
    rest = [one for one in study.cells if one.table == "gittins"]
    return dataclasses.replace(
        study, cells=(*cells, *rest), notes=(*write_reproduction_notes(study.runs, study.tunings), UPDATE_NOTE)
    )


def update_cells(row: PaperRow, study: Reproduction) -> Iterator[PaperCell]:
    """A row's cells, each as wide as its own readings and those of the second pool."""
    source, regrets = load_pool(row)
    pool = RowRegrets(row.name, source.range, regrets.astype(float))
    for one in study.cells:
        key = PaperCellKey(one.table, one.row, one.tuner, one.budget)
        if one.row != row.name or math.isnan(one.paper):
            yield from [one] if one.row == row.name else []
            continue
        low, high = one.low, one.high
        if one.tuner in ("uniform", "halving"):
            outcomes, *other_outcomes = (
                tune_in_lockstep(make(one.budget), source, TUNINGS, make_cell_rng(162, row.name, one.tuner, one.budget))
                for make in (LOCKSTEP_TUNERS[one.tuner], *ALTERNATIVE_READINGS[one.tuner])
            )
            measured = next(
                cell
                for cell in make_tuner_cells(pool, one.tuner, one.budget, outcomes, other_outcomes)
                if cell.table == one.table
            )
            low, high = (
                min(low, one.ours + measured.low - measured.ours),
                max(high, one.ours + measured.high - measured.ours),
            )
        spread = math.sqrt(max(0.0, one.paper_se**2 - ROUNDING_STEP**2 / 12) * PAPER_RUNS)
        yield make_paper_cell(
            key, (one.ours, one.se), other_reading=one.other_reading, span=(max(0.0, low), high), spread=spread
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["step", "apart", "wider", "tails", "page"])
    parser.add_argument("study", nargs="?", type=Path, help="the JSON of a study, for `page`")
    parser.add_argument("-o", "--folder", type=Path, default=Path("paper"), help="where the page goes")
    parser.add_argument("--runs", type=int, default=10_000, help="at each width, for `step`")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    arguments = parser.parse_args()
    if arguments.what == "page":
        write_paper_folder(update_study(bt.load_result(arguments.study)), arguments.folder)
        return
    for row in (row for row in PAPER_ROWS if arguments.only in row.name):
        if arguments.what == "tails":
            print_tails(row)
        elif arguments.what == "wider":
            source, regrets = load_pool(row)
            for factor in (1.05, 1.1, 1.15):
                other = dataclasses.replace(source, unit_points=source.unit_points / factor)
                print_comparison(row, f"theory's width times {factor}", SHARED_INSTANCES, other, regrets)
                print_failures(row, OWN_INSTANCES, other)
        elif arguments.what == "apart":
            for name, tuners in (("instances shared", SHARED_INSTANCES), ("instances apart", OWN_INSTANCES)):
                print_comparison(row, name, tuners, *load_pool(row))
        elif row.name.endswith("ucb1"):
            for policy in (bt.UCB1(noise=0.5), bt.policies.UCB1Step(noise=0.5)):
                print_comparison(row, policy.name, SHARED_INSTANCES, *simulate_row(row, policy, arguments.runs))


if __name__ == "__main__":
    main()
