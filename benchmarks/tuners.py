"""The quality of tuners, and the coverage of their statements.

python benchmarks/tuners.py paper      # needs the pools of `paper_pools.py`
python benchmarks/tuners.py places --tunings 4     # a quick look, which needs no pools

Tunings draw runs, with replacement, from pools of stored regrets. The truth is the smoothed means of the pools. Tables are
Markdown.

paper       the paper's ten rows, at budgets of 50, 200 and 1,000 runs
chosen      the same table on problems and curves on which choices were made
held-out    the same table on problems and curves that were looked at once
places      one curve with its lowest point at many places: the luck of a tuner's grid
precisions  the two-part tuner beside the others with a finer precision than their default
outside     Optuna's and SciPy's optimisers beside the two-part tuner
coverage    how often each 95% statement of the two-part tuner holds
overhead    seconds of a tuning without simulation
within      tunings with a precision of 2%, where the truth has a million runs at each width (`paper_pools.py --truth`)
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, is_dataclass
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from benchmark_problems import CHOSEN_ON, HELD_OUT, PAPER_ROWS, PaperRow
from paper_pools import FOLDER, KNOWN, load_truth
from tuner_curves import (
    RunCurve,
    compute_excess,
    list_chosen_curves,
    list_held_out_curves,
    load_run_curve,
    make_bowl,
    make_vee,
)

import banditune as bt
from banditune.core.tuner import SearchAnswer, Tuner
from banditune.paper.lockstep_tunings import (
    SEARCHES_PER_BATCH,
    convert_library_widths,
    make_cell_rng,
    run_single_tuner,
    run_two_part_searches,
    split_into_chunks,
)
from banditune.paper.paper_rows import get_tuned_range
from banditune.paper.run_pools import map_to_unit_interval
from banditune.results.search_results import SearchPosterior
from banditune.simulation.blas_threads import limit_blas_threads
from banditune.tuners.answer_statements import select_search, state_answer
from banditune.tuners.curve_draws import compute_mean_curve
from banditune.tuners.curve_library import select_library
from banditune.tuners.grid_search import SequentialHalving, Uniform, compute_least_halving_budget
from banditune.tuners.noisy_ternary_search import NoTeS
from banditune.tuners.optuna_adapter import Optuna
from banditune.tuners.two_part import TwoPart

BUDGETS = (50, 200, 1000)
FAILURE = 10.0
"""A tuning fails whose answer loses this much more than the best one, in %."""

PRECISION = 0.02
"""The precision that `within` asks for."""

EVALUATIONS = 10
"""Of SciPy's minimiser, which stops at about so many anyway."""


@dataclass(frozen=True)
class Cell:
    """A tuner on a row with a budget: excess over the best answer in %, its standard errors, shares in %."""

    row: str
    tuner: str
    budget: int
    tunings: int
    excess: float
    se: float
    failures: float
    own_error: float
    seconds: float

    def __str__(self) -> str:
        return f"{self.excess:.2f} ± {self.se:.2f} ({self.failures:.0f})"


def tune_two_part(run_curve: RunCurve, budget: int, tunings: int, rng: np.random.Generator) -> np.ndarray:
    """Answers of the two-part tuner, as places in the unit interval."""
    library = select_library(run_curve.range)
    with limit_blas_threads():
        rows = [
            compute_mean_curve(library, run_two_part_searches(run_curve, budget, size, rng)[0]).argmin(axis=1)
            for size in split_into_chunks(tunings, SEARCHES_PER_BATCH)
        ]
    return map_to_unit_interval(run_curve.range, convert_library_widths(run_curve, library.fine[np.concatenate(rows)]))


def minimise_with_scipy(run_curve: RunCurve, budget: int, rng: np.random.Generator) -> float:
    """SciPy's bounded scalar minimiser on averages, as a place in the unit interval."""
    from scipy.optimize import minimize_scalar

    size = budget // EVALUATIONS

    def mean(unit: float) -> float:
        row = run_curve.find_rows(run_curve.range.scale_from_unit(unit))
        return float(run_curve.draw_each(np.full(size, row), rng).mean())

    results = minimize_scalar(mean, bounds=(0, 1), method="bounded", options={"maxiter": EVALUATIONS, "xatol": 1e-3})
    return float(map_to_unit_interval(run_curve.range, run_curve.range.scale_from_unit(results.x)))


Answers = Callable[[RunCurve, int, int, np.random.Generator], np.ndarray]


def tune_one_by_one(tuner: Callable[[int], Tuner]) -> Answers:
    """Answers of a tuner that is made anew for every tuning, with its number."""

    def answers(run_curve: RunCurve, budget: int, tunings: int, rng: np.random.Generator) -> np.ndarray:
        return np.array([run_single_tuner(tuner(number), run_curve, budget, rng) for number in range(tunings)])

    return answers


def tune_halving(run_curve: RunCurve, budget: int, tunings: int, rng: np.random.Generator) -> np.ndarray:
    """Sequential Halving with the finest precision down to 0.1 that its budget allows."""
    tuner = SequentialHalving(find_finest_step(budget))
    return tune_one_by_one(lambda number: tuner)(run_curve, budget, tunings, rng)


def find_finest_step(budget: int) -> float:
    """1/10, or the smallest 1/k with which Sequential Halving gives every value a run in every iteration."""
    return 1 / max(parts for parts in range(2, 11) if compute_least_halving_budget(parts + 1) <= budget)


TUNERS: dict[str, Answers] = {
    "two-part": tune_two_part,
    "notes": tune_one_by_one(lambda number: NoTeS()),
    "uniform": tune_one_by_one(lambda number: Uniform()),
    "halving": tune_halving,
}

PRECISIONS: dict[str, Answers] = {
    "two-part": tune_two_part,
    "notes 0.05": tune_one_by_one(lambda number: NoTeS(0.05)),
    "notes 0.02": tune_one_by_one(lambda number: NoTeS(0.02)),
    "uniform 0.05": tune_one_by_one(lambda number: Uniform(0.05)),
    "halving 0.05": tune_one_by_one(lambda number: SequentialHalving(0.05)),
}


def take_tenth(answers: Answers) -> Answers:
    """A tenth of the tunings, of a tuner that is slow."""
    return lambda run_curve, budget, tunings, rng: answers(run_curve, budget, max(2, tunings // 10), rng)


OPTIMIZERS: dict[str, Answers] = {
    "two-part": tune_two_part,
    "optuna tpe": tune_one_by_one(lambda number: Optuna("tpe", seed=number)),
    "optuna tpe, 20 trials": tune_one_by_one(lambda number: Optuna("tpe", trials=20, seed=number)),
    "optuna gp, 20 trials": take_tenth(tune_one_by_one(lambda number: Optuna("gp", trials=20, seed=number))),
    "scipy": lambda run_curve, budget, tunings, rng: np.array(
        [minimise_with_scipy(run_curve, budget, rng) for _ in range(tunings)]
    ),
}


def measure_cell(name: str, answers: Answers, run_curve: RunCurve, budget: int, tunings: int, seed: int) -> Cell:
    """Tune many times and look at the truth of the answers."""
    start = time.perf_counter()
    results = answers(run_curve, budget, tunings, make_cell_rng(seed, run_curve.name, name, budget))
    return make_cell(name, run_curve, budget, results, time.perf_counter() - start)


def make_cell(name: str, run_curve: RunCurve, budget: int, results: np.ndarray, seconds: float) -> Cell:
    """The truth of a tuner's answers, which took so long together."""
    lost, tunings = run_curve.compute_excess(results), len(results)
    return Cell(
        run_curve.name,
        name,
        budget,
        tunings,
        float(lost.mean()),
        float(lost.std(ddof=1) / tunings**0.5),
        float((lost > FAILURE).mean() * 100),
        run_curve.compute_own_error(results),
        seconds / tunings,
    )


def print_table(
    list_sources: Iterable[RunCurve],
    tuners: Mapping[str, Answers],
    budgets: Iterable[int],
    arguments: argparse.Namespace,
) -> list[Cell]:
    """A line per row and budget, with the lowest figure bold; a tuner that needs a larger budget has none."""
    print(f"| row | budget | {' | '.join(tuners)} | pool's error |")
    print("|---|---|" + "---|" * (len(tuners) + 1))
    results = []
    for run_curve, budget in product(list_sources, budgets):
        line = {}
        for name, answers in tuners.items():
            with suppress(bt.InvalidRequest):
                line[name] = measure_cell(name, answers, run_curve, budget, arguments.tunings, arguments.seed)
        lowest = min(cell.excess for cell in line.values())
        texts = {name: f"**{cell}**" if cell.excess == lowest else str(cell) for name, cell in line.items()}
        error = line["two-part"].own_error
        print(
            f"| {run_curve.name} | {budget} | {' | '.join(texts.get(name, '-') for name in tuners)} | {error:.2f} |",
            flush=True,
        )
        results += line.values()
    print_lower_count(results)
    return results


def compare_tuners(arguments: argparse.Namespace) -> list[Cell]:
    """All tuners of the shelf, as they are unless told otherwise."""
    results = print_table(list_sources(arguments.what, arguments.only), TUNERS, BUDGETS, arguments)
    print_catch_up_count(results)
    print(f"Halving plays {round(1 / find_finest_step(50)) + 1} values at a budget of 50, where 11 are too many.")
    return results


PLACES = np.linspace(0.1, 0.9, 41)
"""Where the lowest points of `places` are."""


def compare_places(arguments: argparse.Namespace) -> list[Cell]:
    """Bowls and Vs at many places: means over places, the best and the worst place, and how often two-part is lower.

    A tuner with a grid loses nothing where a point of its grid is the optimum, and much in between; one figure of one
    curve tells which of both it met.
    """
    print("| curve | budget | tuner | mean | best place | worst place | places where two-part is lower |")
    print("|---|---|---|---|---|---|---|")
    results = []
    for (shape, make), budget in product((("bowl", make_bowl), ("V", make_vee)), BUDGETS):
        curves = [make(round(float(place), 3)) for place in PLACES]
        lines = {
            name: [
                measure_cell(name, answers, run_curve, budget, arguments.tunings, arguments.seed)
                for run_curve in curves
            ]
            for name, answers in TUNERS.items()
        }
        for name, cells in lines.items():
            lost = np.array([cell.excess for cell in cells])
            error = math.hypot(*(cell.se for cell in cells)) / len(cells)
            lower = sum(ours.excess < cell.excess for ours, cell in zip(lines["two-part"], cells, strict=True))
            print(
                f"| {shape} | {budget} | {name} | {lost.mean():.2f} ± {error:.2f} | {lost.min():.2f} | {lost.max():.2f} | "
                f"{'' if name == 'two-part' else f'{lower} of {len(cells)}'} |",
                flush=True,
            )
            results += cells
    return results


def compare_precisions(arguments: argparse.Namespace) -> list[Cell]:
    """The tuners that have one with finer precisions; widths between those of a pool get the runs of the nearest."""
    return print_table(load_run_curves(PAPER_ROWS, arguments.only), PRECISIONS, BUDGETS[1:], arguments)


def print_lower_count(cells: list[Cell]) -> None:
    """In how many cells the two-part tuner is no worse than the best of the others."""
    lines: dict[tuple[str, int], list[Cell]] = {}
    for cell in cells:
        lines.setdefault((cell.row, cell.budget), []).append(cell)
    worse = []
    for (row, budget), line in lines.items():
        ours, *others = sorted(line, key=lambda cell: (cell.tuner != "two-part", cell.excess))
        other = others[0]
        if ours.excess > other.excess + 2 * math.hypot(ours.se, other.se):
            worse.append(f"{row} at {budget}: {ours.excess:.2f} against {other.excess:.2f} ({other.tuner})")
    print(
        f"\nTwo-part is no higher than the best of the others, within 2 standard errors, in {len(lines) - len(worse)} of "
        f"{len(lines)} cells; not: {'; '.join(worse) or 'none'}."
    )


def print_catch_up_count(cells: list[Cell], first: int = 200, last: int = 1000) -> None:
    """In how many rows the two-part tuner does with few runs what NoTeS does with many."""
    at = {(cell.row, cell.tuner, cell.budget): cell.excess for cell in cells}
    rows = list(dict.fromkeys(cell.row for cell in cells))
    lags = [row for row in rows if at[row, "two-part", first] > at[row, "notes", last]]
    print(
        f"With {first} runs it is at least as good as NoTeS with {last} in {len(rows) - len(lags)} of {len(rows)} rows; "
        f"not: {', '.join(lags) or 'none'}."
    )


def draw_cells(cells: list[Cell], path: Path) -> None:
    """Excess against budget, a panel per row and a line per tuner that was tried there."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from banditune.reports.figures import BLUE, GREY, ORANGE

    styles = {
        "two-part": (BLUE, "o", "-"),
        "notes": (ORANGE, "s", "-"),
        "uniform": (GREY, "^", "--"),
        "halving": ("black", "D", ":"),
    }
    rows = list(dict.fromkeys(cell.row for cell in cells))
    across = min(5, len(rows))
    down = -(-len(rows) // across)
    figure = Figure(figsize=(2.3 * across, 2.2 * down + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(down, across, sharex=True, sharey=True, squeeze=False)
    for axes in panels.flat[len(rows) :]:
        axes.set_visible(False)
    for axes, row in zip(panels.flat, rows, strict=False):
        for name, (colour, marker, line) in styles.items():
            points = [(cell.budget, max(cell.excess, 0.1)) for cell in cells if (cell.row, cell.tuner) == (row, name)]
            if points:
                axes.plot(
                    *zip(*points, strict=True), color=colour, marker=marker, markersize=4, linestyle=line, label=name
                )
        axes.set_title(row, fontsize=9, loc="left")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(BUDGETS, [f"{budget:,}" for budget in BUDGETS])
        axes.set_xticks([], minor=True)
        axes.set_yticks([0.1, 1, 10, 100], ["0.1%", "1%", "10%", "100%"])
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    panels[0, 0].legend(fontsize=7, frameon=False)
    figure.supxlabel("budget (runs)", fontsize=9)
    figure.supylabel("regret over the best width's", fontsize=9)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def compare_optimizers(arguments: argparse.Namespace) -> list[Cell]:
    """Optimisers from elsewhere, with seconds per tuning; Optuna's Gaussian process only where it can be imported."""
    names = [name for name in OPTIMIZERS if " gp" not in name or is_importable("torch")]
    results = print_table(
        load_run_curves(PAPER_ROWS, arguments.only), {name: OPTIMIZERS[name] for name in names}, BUDGETS[:2], arguments
    )
    for budget in BUDGETS[:2]:
        texts = []
        for name in names:
            cells = [cell for cell in results if (cell.tuner, cell.budget) == (name, budget)]
            texts.append(
                f"{name} {np.mean([c.excess for c in cells]):.1f}%, {np.mean([c.seconds for c in cells]) * 1000:.1f} ms"
            )
        print(f"\nMean excess over rows and time per tuning at {budget}: {'; '.join(texts)}.")
    return results


def is_importable(name: str) -> bool:
    """Whether a module is there."""
    from importlib.util import find_spec

    return find_spec(name) is not None


class Statements(NamedTuple):
    """Which statements of one tuning hold, and how wide they are: in % of the lowest regret, or in the unit interval.

    The last four are about the flat region, NaN where none is stated.
    """

    regret_holds: float
    regret_width: float
    best_holds: float
    best_width: float
    gap_holds: float
    gap_width: float
    flat_holds: float = math.nan
    flat_width: float = math.nan
    flat_share: float = math.nan


@dataclass(frozen=True)
class Coverage:
    """How often statements hold, in %, and their median widths; `stated` is how often a flat region is, in %.

    `moves` is how far the truth's best width moves when a tenth of the pool is left out, `own_error` the standard error
    of the truth at the usual answer, in %.
    """

    row: str
    budget: int
    tunings: int
    statements: Statements
    stated: float
    moves: float
    own_error: float


def check_statements(run_curve: RunCurve, budget: int, tunings: int, seed: int) -> Coverage:
    """Compare what the two-part tuner says with the truth."""
    rng = make_cell_rng(seed, run_curve.name, "coverage", budget)
    library = select_library(run_curve.range)
    answers: list[SearchAnswer] = []
    with limit_blas_threads():
        for size in split_into_chunks(tunings, SEARCHES_PER_BATCH):
            results, _ = run_two_part_searches(run_curve, budget, size, rng)
            answers += [
                state_answer(library, select_search(results, search), run_curve.range) for search in range(size)
            ]
    statements = np.array([check_answer(run_curve, answer.value, answer.posterior) for answer in answers])
    whole = Statements(
        *(summarize_column(name, column) for name, column in zip(Statements._fields, statements.T, strict=True))
    )
    stated = float((~np.isnan(statements[:, -1])).mean() * 100)
    usual = np.median(map_to_unit_interval(run_curve.range, [answer.value for answer in answers]))
    return Coverage(run_curve.name, budget, tunings, whole, stated, *estimate_truth_errors(run_curve, usual))


def summarize_column(name: str, column: np.ndarray) -> float:
    """How often a statement holds, in %, or its median width; tunings that do not make it do not count."""
    made = column[~np.isnan(column)]
    if not len(made):
        return math.nan
    return float(made.mean() * 100) if name.endswith("holds") else float(np.median(made))


def estimate_truth_errors(run_curve: RunCurve, usual: float) -> tuple[float, float]:
    """How far the best width moves without a tenth of the pool; the standard error of the regret at a width, in %."""
    if not len(run_curve.partial):
        return 0.0, 0.0
    lowest = run_curve.unit_points[run_curve.partial.argmin(axis=1)]
    levels = np.array([np.interp(usual, run_curve.unit_points, curve) for curve in run_curve.partial])
    return float(np.ptp(lowest)), float(np.sqrt((len(levels) - 1) * levels.var()) / levels.mean() * 100)


def check_answer(run_curve: RunCurve, value: float, posterior: SearchPosterior) -> Statements:
    """What one tuning says, next to the truth."""
    units, truth = run_curve.unit_points, run_curve.truth
    lowest = truth.min()

    def unit(of: float) -> float:
        return float(map_to_unit_interval(run_curve.range, of))

    regret = np.interp(unit(value), units, truth)
    low, high = map(unit, next(iter(posterior.best_intervals.values())))
    slack = 1e-9
    statements = Statements(
        posterior.low <= regret <= posterior.high,
        (posterior.high - posterior.low) / lowest * 100,
        low - slack <= units[truth.argmin()] <= high + slack,
        high - low,
        regret - lowest <= posterior.regret_gap + slack * lowest,
        posterior.regret_gap / lowest * 100,
    )
    if not posterior.near_optimal:
        return statements
    start, end, share = unit(posterior.near_optimal[0]), unit(posterior.near_optimal[1]), posterior.near_optimal[2]
    inside = truth[(units >= start - slack) & (units <= end + slack)]
    return statements._replace(
        flat_holds=bool((inside <= (1 + share) * lowest).all()), flat_width=end - start, flat_share=share * 100
    )


def print_coverage(arguments: argparse.Namespace) -> list[Coverage]:
    """A table of how often statements hold; those below 92% are marked !, those above 98% +."""
    print("| row | budget | regret | best width | its own spread | gap | flat region | stated | share | pool's error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    results = []
    for run_curve in load_run_curves((*PAPER_ROWS, *CHOSEN_ON), arguments.only):
        for budget in (200, 1000):
            line = check_statements(run_curve, budget, arguments.tunings, arguments.seed)
            statements = line.statements
            print(
                f"| {line.row} | {budget} | {format_rate(statements.regret_holds)}, {statements.regret_width:.1f}% wide | "
                f"{format_rate(statements.best_holds)}, {statements.best_width:.3f} wide | {line.moves:.3f} | "
                f"{format_rate(statements.gap_holds)}, {statements.gap_width:.1f}% | "
                f"{format_rate(statements.flat_holds)}, {statements.flat_width:.3f} wide | {line.stated:.0f}% | "
                f"{statements.flat_share:.0f}% | {line.own_error:.2f}% |",
                flush=True,
            )
            results.append(line)
    print_rates(results)
    return results


def print_rates(lines: Sequence[Coverage]) -> None:
    """How many rates are far from 95%, for each kind of statement."""
    print()
    for name in ("regret", "best", "gap", "flat"):
        rates = [getattr(line.statements, f"{name}_holds") for line in lines]
        low, high = sum(rate < 92 for rate in rates), sum(rate > 98 for rate in rates)
        print(f"{name}: {low} of {len(rates)} below 92%, {high} above 98%; median {np.nanmedian(rates):.1f}%.")


def format_rate(rate: float) -> str:
    """A rate in %, with a mark where 95% is far."""
    return f"{rate:.1f}{'!' if rate < 92 else '+' if rate > 98 else ''}"


def measure_overhead(arguments: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of one tuning besides simulation, and seconds of a thousand tunings in lock-step."""
    run_curve = load_run_curve(PAPER_ROWS[2])
    rng = make_cell_rng(arguments.seed, "overhead")
    start = time.perf_counter()
    select_library(run_curve.range)
    results = {"library, once (ms)": (time.perf_counter() - start) * 1000}
    for budget, most in ((50, 30), (200, 30), (1000, 30), (10_000, 30)):
        taken = [measure_tuner_seconds(TwoPart(), run_curve, budget, rng) * 1000 for _ in range(10)]
        results[f"a tuning with {budget:,} runs (ms)"] = float(np.median(taken))
        print(
            f"| {budget:,} runs | {np.median(taken):.1f} ms | {'yes' if np.median(taken) < most else 'no'} |",
            flush=True,
        )
    start = time.perf_counter()
    tune_two_part(run_curve, 200, 1000, rng)
    results["1,000 tunings with 200 runs (s)"] = time.perf_counter() - start
    for name, number in results.items():
        print(f"{name}: {number:.1f}")
    return results


def measure_tuner_seconds(tuner: Tuner, run_curve: RunCurve, budget: int, rng: np.random.Generator) -> float:
    """Seconds that a tuner itself takes."""
    taken = 0.0
    regrets = None
    start = time.perf_counter()
    search = tuner.search(run_curve.range, budget)
    while True:
        try:
            trial = search.send(regrets)
        except StopIteration:
            return taken + time.perf_counter() - start
        taken += time.perf_counter() - start
        regrets = run_curve.answer_trial(trial, rng)
        start = time.perf_counter()


def tune_to_precision(name: str, seed: int) -> tuple[bt.results.Tuning, float]:
    """A tuning to within `SHARE` on one thread, and its seconds."""
    row = next(row for row in KNOWN if row.name == name)
    start = time.perf_counter()
    results = bt.tune(
        row.policy,
        row.problem,
        horizon=row.horizon,
        precision=PRECISION,
        seed=seed,
        search=bt.Search(tuner=TwoPart(), validate=2),
        run=bt.Run(workers=1),
    )
    return results, time.perf_counter() - start


def measure_precision(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """The product, told to stop when nothing is better by more than 2%, on problems whose truth is known well."""
    results = []
    print("| problem | within 2% | excess, mean and 95% | runs, median and 95% | reached | seconds | truth's error |")
    print("|---|---|---|---|---|---|---|")
    for row in KNOWN:
        if is_excluded(row.name, arguments.only):
            continue
        truth = load_truth(row, arguments.folder)
        search_range = get_tuned_range(row)
        units = map_to_unit_interval(search_range, truth["values"])
        # A million runs a width, the same for all: no smoothing, which would level UCB1's curve, which has steps.
        curve = truth["means"].mean(axis=0)
        partial = (len(truth["means"]) * curve - truth["means"]) / (len(truth["means"]) - 1)
        with ProcessPoolExecutor(arguments.workers, multiprocessing.get_context("spawn")) as workers:
            timed = list(
                workers.map(tune_to_precision, [row.name] * arguments.tunings, range(arguments.tunings), chunksize=5)
            )
        tunings, taken = [tuning for tuning, _ in timed], float(np.mean([seconds for _, seconds in timed]))
        answers = map_to_unit_interval(search_range, [tuning.params[search_range.name] for tuning in tunings])
        lost = compute_excess(units, curve, answers)
        errors = [compute_excess(units, part, answers).mean() for part in partial]
        spent = [tuning.search_runs for tuning in tunings]
        line = {
            "row": row.name,
            "tunings": arguments.tunings,
            "runs a width": int(truth["runs"]),
            "within": float((lost <= 100 * PRECISION).mean() * 100),
            "excess": float(lost.mean()),
            "excess_95": float(np.quantile(lost, 0.95)),
            "spent": float(np.median(spent)),
            "spent_95": float(np.quantile(spent, 0.95)),
            "reached": float(np.mean([bool(tuning.precision_reached) for tuning in tunings]) * 100),
            "seconds": taken,
            "own_error": float(np.sqrt((len(errors) - 1) * np.var(errors))),
        }
        print(
            f"| {row.name} | {line['within']:.1f}% | {line['excess']:.2f}%, {line['excess_95']:.2f}% | "
            f"{line['spent']:,.0f}, {line['spent_95']:,.0f} | {line['reached']:.0f}% | {taken:.2f} | "
            f"{line['own_error']:.2f}% |",
            flush=True,
        )
        results.append(line)
    return results


def is_excluded(name: str, only: str | None) -> bool:
    """Whether a row is not asked for."""
    return bool(only) and not any(part in name for part in str(only).split(","))


def load_run_curves(rows: Iterable[PaperRow], only: str | None) -> Iterator[RunCurve]:
    """The pools of the rows that are asked for."""
    return (load_run_curve(row) for row in rows if not is_excluded(row.name, only))


def list_sources(what: str, only: str | None) -> Iterator[RunCurve]:
    """What a table compares tuners on."""
    rows, curves = {
        "paper": (PAPER_ROWS, []),
        "chosen": (CHOSEN_ON, list_chosen_curves()),
        "held-out": (HELD_OUT, list_held_out_curves()),
    }[what]
    yield from load_run_curves(rows, only)
    yield from (run_curve for run_curve in curves if not is_excluded(run_curve.name, only))


TUNINGS = {
    "paper": 2000,
    "chosen": 2000,
    "held-out": 2000,
    "places": 200,
    "precisions": 500,
    "outside": 100,
    "coverage": 1000,
    "overhead": 10,
    "within": 200,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=TUNINGS)
    parser.add_argument("--tunings", type=int, help="for each cell")
    parser.add_argument("--only", help="rows whose name contains one of these, parted by commas")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    parser.add_argument("--plot", type=Path, help="draw excess against budget into this file")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where `within` finds its truths")
    parser.add_argument("--workers", type=int, default=2, help="processes of `within`")
    arguments = parser.parse_args()
    arguments.tunings = arguments.tunings or TUNINGS[arguments.what]
    jobs: dict[str, Callable[[argparse.Namespace], Any]] = {
        "places": compare_places,
        "precisions": compare_precisions,
        "outside": compare_optimizers,
        "coverage": print_coverage,
        "overhead": measure_overhead,
        "within": measure_precision,
    }
    results = jobs.get(arguments.what, compare_tuners)(arguments)
    if arguments.plot and arguments.what not in jobs:
        draw_cells(results, arguments.plot)
    if arguments.json:
        arguments.json.write_text(
            json.dumps([asdict(cell) for cell in results] if are_records(results) else results, indent=1)
        )


def are_records(results: Any) -> bool:
    """Whether figures are records."""
    return isinstance(results, list) and bool(results) and is_dataclass(results[0])


if __name__ == "__main__":
    main()
