"""How good tuners are, and how often what they say is true: `python benchmarks/tuners.py paper`.

Tunings draw runs, with replacement, from pools of stored regrets (`python benchmarks/pools.py` makes them); the truth is
the pools' means, smoothed. Tables are Markdown.

paper       the paper's ten rows, at budgets of 50, 200 and 1,000 runs
chosen      the same table on problems and curves on which choices were made; held-out: on those that are looked at once
places      the same curve with its lowest point at many places: what of a figure is luck with a tuner's grid
precisions  the two-part tuner next to the others with finer precisions than their own
outside     Optuna's and SciPy's optimisers next to the two-part tuner
coverage    how often each 95% statement of the two-part tuner holds
overhead    seconds that a tuning takes besides simulation
within      the product told to stop within 2%, where the truth is known from a million runs a width (`pools.py --truth`)
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
from pools import FOLDER, KNOWN, truth_of
from rows import CHOSEN_ON, HELD_OUT, PAPER_ROWS, PaperRow
from served import Served, bowl, chosen_synthetic, excess, held_out_synthetic, pool_of, vee

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

SHARE = 0.02
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


def two_part_answers(served: Served, budget: int, tunings: int, rng: np.random.Generator) -> np.ndarray:
    """Answers of the two-part tuner, as places in the unit interval."""
    library = select_library(served.range)
    with limit_blas_threads():
        places = [
            compute_mean_curve(library, run_two_part_searches(served, budget, size, rng)[0]).argmin(axis=1)
            for size in split_into_chunks(tunings, SEARCHES_PER_BATCH)
        ]
    return map_to_unit_interval(served.range, convert_library_widths(served, library.fine[np.concatenate(places)]))


def scipy_answer(served: Served, budget: int, rng: np.random.Generator) -> float:
    """SciPy's bounded scalar minimiser on averages, as a place in the unit interval."""
    from scipy.optimize import minimize_scalar

    size = budget // EVALUATIONS

    def mean(unit: float) -> float:
        row = served.find_rows(served.range.scale_from_unit(unit))
        return float(served.draw_each(np.full(size, row), rng).mean())

    found = minimize_scalar(mean, bounds=(0, 1), method="bounded", options={"maxiter": EVALUATIONS, "xatol": 1e-3})
    return float(map_to_unit_interval(served.range, served.range.scale_from_unit(found.x)))


Answers = Callable[[Served, int, int, np.random.Generator], np.ndarray]


def one_by_one(tuner: Callable[[int], Tuner]) -> Answers:
    """Answers of a tuner that is made anew for every tuning, with its number."""

    def answers(served: Served, budget: int, tunings: int, rng: np.random.Generator) -> np.ndarray:
        return np.array([run_single_tuner(tuner(number), served, budget, rng) for number in range(tunings)])

    return answers


def halving(served: Served, budget: int, tunings: int, rng: np.random.Generator) -> np.ndarray:
    """Sequential Halving with the finest precision down to 0.1 that its budget allows."""
    tuner = SequentialHalving(finest(budget))
    return one_by_one(lambda number: tuner)(served, budget, tunings, rng)


def finest(budget: int) -> float:
    """1/10, or the smallest 1/k with which Sequential Halving gives every value a run in every iteration."""
    return 1 / max(parts for parts in range(2, 11) if compute_least_halving_budget(parts + 1) <= budget)


TUNERS: dict[str, Answers] = {
    "two-part": two_part_answers,
    "notes": one_by_one(lambda number: NoTeS()),
    "uniform": one_by_one(lambda number: Uniform()),
    "halving": halving,
}

PRECISIONS: dict[str, Answers] = {
    "two-part": two_part_answers,
    "notes 0.05": one_by_one(lambda number: NoTeS(0.05)),
    "notes 0.02": one_by_one(lambda number: NoTeS(0.02)),
    "uniform 0.05": one_by_one(lambda number: Uniform(0.05)),
    "halving 0.05": one_by_one(lambda number: SequentialHalving(0.05)),
}


def tenth(answers: Answers) -> Answers:
    """A tenth of the tunings, of a tuner that is slow."""
    return lambda served, budget, tunings, rng: answers(served, budget, max(2, tunings // 10), rng)


OUTSIDE: dict[str, Answers] = {
    "two-part": two_part_answers,
    "optuna tpe": one_by_one(lambda number: Optuna("tpe", seed=number)),
    "optuna tpe, 20 trials": one_by_one(lambda number: Optuna("tpe", trials=20, seed=number)),
    "optuna gp, 20 trials": tenth(one_by_one(lambda number: Optuna("gp", trials=20, seed=number))),
    "scipy": lambda served, budget, tunings, rng: np.array([scipy_answer(served, budget, rng) for _ in range(tunings)]),
}


def cell_of(name: str, answers: Answers, served: Served, budget: int, tunings: int, seed: int) -> Cell:
    """Tune many times and look at the truth of the answers."""
    before = time.perf_counter()
    found = answers(served, budget, tunings, make_cell_rng(seed, served.name, name, budget))
    return judged(name, served, budget, found, time.perf_counter() - before)


def judged(name: str, served: Served, budget: int, found: np.ndarray, seconds: float) -> Cell:
    """The truth of a tuner's answers, which took so long together."""
    lost, tunings = served.excess(found), len(found)
    return Cell(
        served.name,
        name,
        budget,
        tunings,
        float(lost.mean()),
        float(lost.std(ddof=1) / tunings**0.5),
        float((lost > FAILURE).mean() * 100),
        served.own_error(found),
        seconds / tunings,
    )


def table(
    sources: Iterable[Served], tuners: Mapping[str, Answers], budgets: Iterable[int], asked: argparse.Namespace
) -> list[Cell]:
    """A line per row and budget, with the lowest figure bold; a tuner that needs a larger budget has none."""
    print(f"| row | budget | {' | '.join(tuners)} | pool's error |")
    print("|---|---|" + "---|" * (len(tuners) + 1))
    found = []
    for served, budget in product(sources, budgets):
        line = {}
        for name, answers in tuners.items():
            with suppress(bt.InvalidRequest):
                line[name] = cell_of(name, answers, served, budget, asked.tunings, asked.seed)
        lowest = min(cell.excess for cell in line.values())
        told = {name: f"**{cell}**" if cell.excess == lowest else str(cell) for name, cell in line.items()}
        error = line["two-part"].own_error
        print(
            f"| {served.name} | {budget} | {' | '.join(told.get(name, '-') for name in tuners)} | {error:.2f} |",
            flush=True,
        )
        found += line.values()
    tell_who_is_lower(found)
    return found


def compared(asked: argparse.Namespace) -> list[Cell]:
    """All tuners of the shelf, as they are unless told otherwise."""
    found = table(sources(asked.what, asked.only), TUNERS, BUDGETS, asked)
    tell_who_keeps_up(found)
    print(f"Halving plays {round(1 / finest(50)) + 1} values at a budget of 50, where 11 are too many.")
    return found


PLACES = np.linspace(0.1, 0.9, 41)
"""Where the lowest points of `places` are."""


def places(asked: argparse.Namespace) -> list[Cell]:
    """Bowls and Vs at many places: means over places, the best and the worst place, and how often two-part is lower.

    A tuner with a grid loses nothing where a point of its grid is the optimum, and much in between; one figure of one
    curve tells which of both it met.
    """
    print("| curve | budget | tuner | mean | best place | worst place | places where two-part is lower |")
    print("|---|---|---|---|---|---|---|")
    found = []
    for (shape, make), budget in product((("bowl", bowl), ("V", vee)), BUDGETS):
        curves = [make(round(float(place), 3)) for place in PLACES]
        lines = {
            name: [cell_of(name, answers, served, budget, asked.tunings, asked.seed) for served in curves]
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
            found += cells
    return found


def precisions(asked: argparse.Namespace) -> list[Cell]:
    """The tuners that have one with finer precisions; widths between those of a pool get the runs of the nearest."""
    return table(pools(PAPER_ROWS, asked.only), PRECISIONS, BUDGETS[1:], asked)


def tell_who_is_lower(cells: list[Cell]) -> None:
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


def tell_who_keeps_up(cells: list[Cell], first: int = 200, last: int = 1000) -> None:
    """In how many rows the two-part tuner does with few runs what NoTeS does with many."""
    at = {(cell.row, cell.tuner, cell.budget): cell.excess for cell in cells}
    rows = list(dict.fromkeys(cell.row for cell in cells))
    lags = [row for row in rows if at[row, "two-part", first] > at[row, "notes", last]]
    print(
        f"With {first} runs it is at least as good as NoTeS with {last} in {len(rows) - len(lags)} of {len(rows)} rows; "
        f"not: {', '.join(lags) or 'none'}."
    )


def draw(cells: list[Cell], path: Path) -> None:
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


def outside(asked: argparse.Namespace) -> list[Cell]:
    """Optimisers from elsewhere, with seconds per tuning; Optuna's Gaussian process only where it can be imported."""
    names = [name for name in OUTSIDE if " gp" not in name or importable("torch")]
    found = table(pools(PAPER_ROWS, asked.only), {name: OUTSIDE[name] for name in names}, BUDGETS[:2], asked)
    for budget in BUDGETS[:2]:
        told = []
        for name in names:
            cells = [cell for cell in found if (cell.tuner, cell.budget) == (name, budget)]
            told.append(
                f"{name} {np.mean([c.excess for c in cells]):.1f}%, {np.mean([c.seconds for c in cells]) * 1000:.1f} ms"
            )
        print(f"\nMean excess over rows and time per tuning at {budget}: {'; '.join(told)}.")
    return found


def importable(name: str) -> bool:
    """Whether a module is there."""
    from importlib.util import find_spec

    return find_spec(name) is not None


class Said(NamedTuple):
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
    said: Said
    stated: float
    moves: float
    own_error: float


def checked(served: Served, budget: int, tunings: int, seed: int) -> Coverage:
    """Compare what the two-part tuner says with the truth."""
    rng = make_cell_rng(seed, served.name, "coverage", budget)
    library = select_library(served.range)
    answers: list[SearchAnswer] = []
    with limit_blas_threads():
        for size in split_into_chunks(tunings, SEARCHES_PER_BATCH):
            found, _ = run_two_part_searches(served, budget, size, rng)
            answers += [state_answer(library, select_search(found, search), served.range) for search in range(size)]
    said = np.array([said_of(served, answer.value, answer.posterior) for answer in answers])
    whole = Said(*(summary(name, column) for name, column in zip(Said._fields, said.T, strict=True)))
    stated = float((~np.isnan(said[:, -1])).mean() * 100)
    usual = np.median(map_to_unit_interval(served.range, [answer.value for answer in answers]))
    return Coverage(served.name, budget, tunings, whole, stated, *truth_errors(served, usual))


def summary(name: str, column: np.ndarray) -> float:
    """How often a statement holds, in %, or its median width; tunings that do not make it do not count."""
    made = column[~np.isnan(column)]
    if not len(made):
        return math.nan
    return float(made.mean() * 100) if name.endswith("holds") else float(np.median(made))


def truth_errors(served: Served, usual: float) -> tuple[float, float]:
    """How far the best width moves without a tenth of the pool; the standard error of the regret at a width, in %."""
    if not len(served.partial):
        return 0.0, 0.0
    lowest = served.unit_points[served.partial.argmin(axis=1)]
    levels = np.array([np.interp(usual, served.unit_points, curve) for curve in served.partial])
    return float(np.ptp(lowest)), float(np.sqrt((len(levels) - 1) * levels.var()) / levels.mean() * 100)


def said_of(served: Served, value: float, belief: SearchPosterior) -> Said:
    """What one tuning says, next to the truth."""
    units, truth = served.unit_points, served.truth
    lowest = truth.min()

    def unit(of: float) -> float:
        return float(map_to_unit_interval(served.range, of))

    regret = np.interp(unit(value), units, truth)
    low, high = unit(belief.best_low), unit(belief.best_high)
    slack = 1e-9
    said = Said(
        belief.low <= regret <= belief.high,
        (belief.high - belief.low) / lowest * 100,
        low - slack <= units[truth.argmin()] <= high + slack,
        high - low,
        regret - lowest <= belief.regret_gap + slack * lowest,
        belief.regret_gap / lowest * 100,
    )
    if not belief.near_optimal:
        return said
    start, end, share = unit(belief.near_optimal[0]), unit(belief.near_optimal[1]), belief.near_optimal[2]
    inside = truth[(units >= start - slack) & (units <= end + slack)]
    return said._replace(
        flat_holds=bool((inside <= (1 + share) * lowest).all()), flat_width=end - start, flat_share=share * 100
    )


def coverage(asked: argparse.Namespace) -> list[Coverage]:
    """A table of how often statements hold; those below 92% are marked !, those above 98% +."""
    print("| row | budget | regret | best width | its own spread | gap | flat region | stated | share | pool's error |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    found = []
    for served in pools((*PAPER_ROWS, *CHOSEN_ON), asked.only):
        for budget in (200, 1000):
            line = checked(served, budget, asked.tunings, asked.seed)
            said = line.said
            print(
                f"| {line.row} | {budget} | {marked(said.regret_holds)}, {said.regret_width:.1f}% wide | "
                f"{marked(said.best_holds)}, {said.best_width:.3f} wide | {line.moves:.3f} | "
                f"{marked(said.gap_holds)}, {said.gap_width:.1f}% | "
                f"{marked(said.flat_holds)}, {said.flat_width:.3f} wide | {line.stated:.0f}% | "
                f"{said.flat_share:.0f}% | {line.own_error:.2f}% |",
                flush=True,
            )
            found.append(line)
    sum_up_rates(found)
    return found


def sum_up_rates(lines: Sequence[Coverage]) -> None:
    """How many rates are far from 95%, for each kind of statement."""
    print()
    for name in ("regret", "best", "gap", "flat"):
        rates = [getattr(line.said, f"{name}_holds") for line in lines]
        low, high = sum(rate < 92 for rate in rates), sum(rate > 98 for rate in rates)
        print(f"{name}: {low} of {len(rates)} below 92%, {high} above 98%; median {np.nanmedian(rates):.1f}%.")


def marked(rate: float) -> str:
    """A rate in %, with a mark where 95% is far."""
    return f"{rate:.1f}{'!' if rate < 92 else '+' if rate > 98 else ''}"


def overhead(asked: argparse.Namespace) -> dict[str, float]:
    """Milliseconds of one tuning besides simulation, and seconds of a thousand tunings in lock-step."""
    served = pool_of(PAPER_ROWS[2])
    rng = make_cell_rng(asked.seed, "overhead")
    before = time.perf_counter()
    select_library(served.range)
    found = {"library, once (ms)": (time.perf_counter() - before) * 1000}
    for budget, most in ((50, 30), (200, 30), (1000, 30), (10_000, 30)):
        taken = [thinking(TwoPart(), served, budget, rng) * 1000 for _ in range(10)]
        found[f"a tuning with {budget:,} runs (ms)"] = float(np.median(taken))
        print(
            f"| {budget:,} runs | {np.median(taken):.1f} ms | {'yes' if np.median(taken) < most else 'no'} |",
            flush=True,
        )
    before = time.perf_counter()
    two_part_answers(served, 200, 1000, rng)
    found["1,000 tunings with 200 runs (s)"] = time.perf_counter() - before
    for name, number in found.items():
        print(f"{name}: {number:.1f}")
    return found


def thinking(tuner: Tuner, served: Served, budget: int, rng: np.random.Generator) -> float:
    """Seconds that a tuner itself takes."""
    taken = 0.0
    regrets = None
    before = time.perf_counter()
    search = tuner.search(served.range, budget)
    while True:
        try:
            trial = search.send(regrets)
        except StopIteration:
            return taken + time.perf_counter() - before
        taken += time.perf_counter() - before
        regrets = served.answer_trial(trial, rng)
        before = time.perf_counter()


def precise(name: str, seed: int) -> tuple[bt.results.Tuning, float]:
    """A tuning to within `SHARE` on one thread, and its seconds."""
    row = next(row for row in KNOWN if row.name == name)
    before = time.perf_counter()
    found = bt.tune(
        row.policy,
        row.problem,
        horizon=row.horizon,
        precision=SHARE,
        seed=seed,
        search=bt.Search(tuner=TwoPart(), validate=2),
        run=bt.Run(workers=1),
    )
    return found, time.perf_counter() - before


def within(asked: argparse.Namespace) -> list[dict[str, Any]]:
    """The product, told to stop when nothing is better by more than 2%, on problems whose truth is known well."""
    found = []
    print("| problem | within 2% | excess, mean and 95% | runs, median and 95% | reached | seconds | truth's error |")
    print("|---|---|---|---|---|---|---|")
    for row in KNOWN:
        if left_out(row.name, asked.only):
            continue
        truth = truth_of(row, asked.folder)
        among = get_tuned_range(row)
        units = map_to_unit_interval(among, truth["values"])
        # A million runs a width, the same for all: no smoothing, which would level UCB1's curve, which has steps.
        curve = truth["means"].mean(axis=0)
        partial = (len(truth["means"]) * curve - truth["means"]) / (len(truth["means"]) - 1)
        with ProcessPoolExecutor(asked.workers, multiprocessing.get_context("spawn")) as workers:
            told = list(workers.map(precise, [row.name] * asked.tunings, range(asked.tunings), chunksize=5))
        tunings, taken = [tuning for tuning, _ in told], float(np.mean([seconds for _, seconds in told]))
        answers = map_to_unit_interval(among, [tuning.params[among.name] for tuning in tunings])
        lost = excess(units, curve, answers)
        errors = [excess(units, part, answers).mean() for part in partial]
        spent = [tuning.search_runs for tuning in tunings]
        line = {
            "row": row.name,
            "tunings": asked.tunings,
            "runs a width": int(truth["runs"]),
            "within": float((lost <= 100 * SHARE).mean() * 100),
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
        found.append(line)
    return found


def left_out(name: str, only: str | None) -> bool:
    """Whether a row is not asked for."""
    return bool(only) and not any(part in name for part in str(only).split(","))


def pools(rows: Iterable[PaperRow], only: str | None) -> Iterator[Served]:
    """The pools of the rows that are asked for."""
    return (pool_of(row) for row in rows if not left_out(row.name, only))


def sources(what: str, only: str | None) -> Iterator[Served]:
    """What a table compares tuners on."""
    rows, curves = {
        "paper": (PAPER_ROWS, []),
        "chosen": (CHOSEN_ON, chosen_synthetic()),
        "held-out": (HELD_OUT, held_out_synthetic()),
    }[what]
    yield from pools(rows, only)
    yield from (served for served in curves if not left_out(served.name, only))


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
    asked = parser.parse_args()
    asked.tunings = asked.tunings or TUNINGS[asked.what]
    jobs: dict[str, Callable[[argparse.Namespace], Any]] = {
        "places": places,
        "precisions": precisions,
        "outside": outside,
        "coverage": coverage,
        "overhead": overhead,
        "within": within,
    }
    found = jobs.get(asked.what, compared)(asked)
    if asked.plot and asked.what not in jobs:
        draw(found, asked.plot)
    if asked.json:
        asked.json.write_text(json.dumps([asdict(cell) for cell in found] if is_cells(found) else found, indent=1))


def is_cells(found: Any) -> bool:
    """Whether figures are records."""
    return isinstance(found, list) and bool(found) and is_dataclass(found[0])


if __name__ == "__main__":
    main()
