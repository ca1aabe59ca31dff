"""Many problems drawn at random, on which the two-part tuner's library and constants were chosen.

python benchmarks/random_problems.py simulate    # them and the problems of `benchmark_problems.py`: minutes on a GPU
python benchmarks/random_problems.py shapes      # fits the cost of failures to each pool
python benchmarks/random_problems.py compare     # two-part beside NoTeS on all of them, and where it is worse
python benchmarks/random_problems.py coverage    # how often each 95% statement holds

`simulate` makes 5,000 runs at every width that the two-part tuner or NoTeS may simulate. It keeps the regrets in half
precision under `pools/many`. `shapes` fits height * exp(-(g / reach)^decay) at the width g, in units of the regret of good
runs at the largest width. It prints the shapes by kind of policy, as in `tuners/failure_library.py`.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TypeVar

import numpy as np
from benchmark_problems import CHOSEN_ON, PAPER_ROWS, PaperRow
from paper_differences import list_visited_points
from paper_pools import FOLDER
from tuner_curves import RunCurve, make_run_curve

import banditune as bt
from banditune.paper import lockstep_tunings
from banditune.paper.lockstep_tunings import make_cell_rng
from banditune.paper.paper_rows import get_tuned_range
from banditune.paper.run_pools import list_row_widths, make_run_source
from banditune.simulation.dispatch import simulate_rows
from banditune.tuners.curve_fit import compute_patience, estimate_scale, make_point_maps, split_runs
from banditune.tuners.curve_library import VARIANCE_POWER, select_library
from banditune.tuners.failure_library import FailureShape
from tuners import (
    BUDGETS,
    Cell,
    Coverage,
    check_statements,
    draw_cells,
    format_rate,
    make_cell,
    print_rates,
    tune_two_part,
)

Line = TypeVar("Line")

MANY = FOLDER / "many"
RUNS, FITTED, SEED = 5000, 3000, 4711
"""Runs at a width that are played and of which a shape is fitted, and the seed of them all."""

BOUNDS = ((0.003, 200), (0.008, 2.4), (0.5, 4))
"""Of height, reach and decay: outside, a problem hardly ever fails, or its failures have no such shape."""

KINDS = {
    "ucb1": 28,
    "ts": 26,
    "ucb1 gaussian": 10,
    "ts gaussian": 8,
    "epsilon": 10,
    "ucb1 beta": 4,
    "ts beta": 4,
    "linucb": 5,
    "lints": 5,
}
"""How often each kind of problem is drawn, in %."""

LINEAR: tuple[bt.kernel.Policy, bt.kernel.Policy] = (
    bt.LinUCB(prior=(0, 1), noise=0.5),
    bt.LinTS(prior=(0, 1), noise=0.5),
)
POLICIES: dict[str, bt.kernel.Policy] = {
    "ucb1": bt.UCB1(noise=0.5),
    "ts": bt.Thompson(prior=(1, 1)),
    "epsilon": bt.EpsilonGreedy(),
    "linucb": LINEAR[0],
    "lints": LINEAR[1],
}
"""The policies of the linear problems with many rounds, in turn."""


def draw_problems(count: int = 70, seed: int = 7) -> Iterator[PaperRow]:
    """Problems of 2 to 60 arms and 80 to 16,000 rounds."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        kind = str(rng.choice(list(KINDS), p=np.array(list(KINDS.values())) / 100))
        arms = int(np.exp(rng.uniform(np.log(2), np.log(61))))
        horizon = int(max(10 ** rng.uniform(1.9, 4.2), 4 * arms))
        skewed = rng.random() < 0.6
        a, b = np.exp(rng.uniform(np.log(0.5), np.log(8), 2)).round(2).tolist() if skewed else (1.0, 1.0)
        spread, noise = float(rng.choice([0.1, 0.2, 0.3, 0.5])), float(rng.choice([0.25, 0.5, 0.5, 0.7]))
        dims = int(rng.integers(2, 9))
        policy: bt.kernel.Policy = POLICIES[kind.split()[0]]
        problem: bt.kernel.Problem = bt.Bernoulli(arms=arms, prior=(a, b))
        if kind.startswith("lin"):
            problem, horizon = bt.Linear(arms=arms + 5, dims=dims), min(horizon, 3000)
        elif kind.endswith("beta"):
            problem, horizon = bt.BetaRewards(arms=arms), min(horizon, 4000)
        elif kind.endswith("gaussian"):
            problem = bt.Gaussian(arms, (0.5, spread), noise)
            policy = bt.GaussianThompson((0.5, spread), noise) if kind.startswith("ts") else policy
        yield PaperRow(f"{number:02} {kind}", policy, problem, horizon)


def draw_linear_problems(count: int = 10, seed: int = 8) -> Iterator[PaperRow]:
    """Linear problems of 10 to 200 arms, 3 to 12 features and more rounds than those of `drawn`: 3,000 to 20,000."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        arms, horizon = (int(np.exp(rng.uniform(*np.log(bounds)))) for bounds in ((10, 200), (3000, 20_000)))
        problem = bt.Linear(arms=arms, dims=int(rng.integers(3, 13)))
        policy = LINEAR[number % 2]
        yield PaperRow(f"long {number} {policy.name}", policy, problem, horizon)


def list_rows() -> list[PaperRow]:
    """All problems whose width is searched on a linear scale."""
    return [
        row
        for row in (*draw_problems(), *draw_linear_problems(), *PAPER_ROWS, *CHOSEN_ON)
        if get_tuned_range(row).scale == "linear"
    ]


def classify_policy(policy: bt.kernel.Policy) -> str:
    """Kinds of policies whose failures are alike."""
    if isinstance(policy, (bt.LinUCB, bt.LinTS, bt.UCBGLM, bt.GLMTSL)):
        return "linear and logistic"
    if isinstance(policy, bt.EpsilonGreedy):
        return "epsilon-greedy"
    return "thompson" if isinstance(policy, (bt.Thompson, bt.GaussianThompson)) else "ucb1"


def get_pool_path(row: PaperRow) -> Path:
    """Where the pool of a row is."""
    return MANY / f"{re.sub('[^a-z0-9]+', '-', row.name)}.npz"


def simulate_pool(row: PaperRow, device: str) -> None:
    """Play a row and keep what it loses."""
    values = list_row_widths(row)[list_visited_points(select_library(get_tuned_range(row)).points)]
    spec = row.make_spec(device=device, common_random_numbers=False, regret="realised", seed=SEED)
    regrets = simulate_rows(spec, values[:, None], range(RUNS))[:, :, 0]
    # The longest horizon's worst runs are beyond half precision.
    kept = np.minimum(regrets, np.finfo(np.float16).max).astype(np.float16)
    part = get_pool_path(row).with_suffix(".part.npz")
    np.savez_compressed(part, values=values, regrets=kept)
    part.replace(get_pool_path(row))


def simulate_all(arguments: argparse.Namespace) -> None:
    """Play all rows that have not been."""
    MANY.mkdir(parents=True, exist_ok=True)
    for row in list_rows():
        if not get_pool_path(row).exists():
            start = time.perf_counter()
            simulate_pool(row, arguments.device)
            print(f"{row.name:30} {time.perf_counter() - start:.1f} s", flush=True)


def load_regrets(row: PaperRow) -> tuple[np.ndarray, np.ndarray]:
    """Widths of a row and what it lost there."""
    if not get_pool_path(row).exists():
        raise SystemExit(
            f"{get_pool_path(row)} is missing; make it with: python benchmarks/random_problems.py simulate"
        )
    results = np.load(get_pool_path(row))
    return results["values"], results["regrets"].astype(np.float32)


def load_run_curve(row: PaperRow) -> RunCurve:
    """A row's pool as a curve that serves runs.

    Width 0 does not count: UCB1 has a step there, and neither two-part nor NoTeS ever answers it.
    """
    values, regrets = load_regrets(row)
    return make_run_curve(row.name, get_tuned_range(row), values[1:], regrets[1:])


def fit_shape(row: PaperRow) -> FailureShape | None:
    """Height, reach and decay of a row's failures, parted from good runs as with 1,000 of them; None if there are few."""
    from scipy.optimize import minimize

    library = select_library(get_tuned_range(row))
    values, regrets = load_regrets(row)
    source = make_run_source(row.name, get_tuned_range(row), values, regrets)
    lost = regrets[source.find_nearest(library.points), :FITTED].astype(float).reshape(1, -1)
    at = np.repeat(np.arange(len(library.points)), FITTED)[None]
    both = make_point_maps(at, len(library.points))
    parts = split_runs(library, *both, lost / estimate_scale(library, at, lost), compute_patience(1000))
    mean = parts.excess[0] / FITTED

    def unlikely(x: np.ndarray) -> float:
        level = np.exp(x[0] - np.exp(np.minimum(np.exp(x[2]) * (np.log(library.points) - x[1]), 300))) + 1e-9
        likely = mean * level ** (1 - VARIANCE_POWER) / (1 - VARIANCE_POWER) - level ** (2 - VARIANCE_POWER) / (
            2 - VARIANCE_POWER
        )
        return -1000 * float(likely.sum())  # a scale on which the minimiser's tolerance is small

    starts = [
        (np.log(max(mean[0], 1e-3)), np.log(reach), np.log(decay)) for reach in (0.05, 0.2, 0.6) for decay in (1, 2)
    ]
    fits = [minimize(unlikely, start, method="Nelder-Mead", options={"maxiter": 2000}) for start in starts]
    height, reach, decay = np.exp(min(fits, key=lambda one: one.fun).x)
    is_bounded = all(low < one < high for one, (low, high) in zip((height, reach, decay), BOUNDS, strict=True))
    return (float(f"{height:.3g}"), float(f"{reach:.3g}"), float(f"{decay:.3g}")) if is_bounded else None


def print_shapes(arguments: argparse.Namespace) -> None:
    """Print all shapes by kind."""
    results: dict[str, list[str]] = {}
    for row in list_rows():
        one = fit_shape(row)
        print(f"# {row.name:30} {one}", flush=True)
        if one:
            results.setdefault(classify_policy(row.policy), []).append(str(one))
    for kind in sorted(results):
        print(f'    "{kind}": (\n        ' + ", ".join(results[kind]) + ",\n    ),")


def compare_row(row: PaperRow, count: int) -> list[Cell]:
    """Two-part and NoTeS on a row with all budgets, in turn."""
    run_curve, cells = load_run_curve(row), []
    for budget in BUDGETS:
        ours = tune_two_part(run_curve, budget, count, make_cell_rng(0, row.name, budget))
        at, _ = lockstep_tunings.make_notes_search(budget)(
            run_curve, 4 * count, make_cell_rng(0, row.name, "notes", budget)
        )
        cells += [
            make_cell("two-part", run_curve, budget, ours, 0),
            make_cell("notes", run_curve, budget, run_curve.unit_points[at], 0),
        ]
    return cells


def print_comparison(arguments: argparse.Namespace) -> None:
    """Two-part next to NoTeS, excess over the best in %, and the cells where it is worse by more than a tenth."""
    print("| problem | " + " | ".join(f"{budget}: two-part | notes" for budget in BUDGETS) + " |")
    print("|---|" + "---|---|" * len(BUDGETS))
    results: list[Cell] = []
    for cells in map_rows(compare_row, arguments):
        pairs = zip(cells[::2], cells[1::2], strict=True)
        texts = " | ".join(f"{ours.excess:.2f} ± {ours.se:.2f} | {theirs.excess:.2f}" for ours, theirs in pairs)
        print(f"| {cells[0].row} | {texts} |", flush=True)
        results += cells
    worse = [
        f"{ours.row} at {ours.budget}: {ours.excess:.2f} against {theirs.excess:.2f}"
        for ours, theirs in zip(results[::2], results[1::2], strict=True)
        if ours.excess > 1.1 * theirs.excess
    ]
    error = np.median([cell.own_error for cell in results[::2]])
    print(
        f"\nWorse than NoTeS by more than a tenth in {len(worse)} of {len(results) // 2} cells: "
        f"{'; '.join(worse) or 'none'}. The pools' own errors: {error:.2f} (median)."
    )
    if arguments.plot:
        names = {row.name for row in CHOSEN_ON}
        draw_cells([cell for cell in results if cell.row in names], arguments.plot)


def measure_coverage(row: PaperRow, count: int) -> list[Coverage]:
    """How often statements hold on a row, with 200 and 1,000 runs."""
    run_curve = load_run_curve(row)
    return [check_statements(run_curve, budget, count, 0) for budget in (200, 1000)]


def print_coverage(arguments: argparse.Namespace) -> None:
    """How often each 95% statement holds above width 0, in %; all lines, then how many are below 92% and above 98%."""
    print("| problem | budget | regret | best width | gap | flat region |")
    print("|---|---|---|---|---|---|")
    coverages: list[Coverage] = []
    for lines in map_rows(measure_coverage, arguments):
        for line in lines:
            rates = [
                line.statements.regret_holds,
                line.statements.best_holds,
                line.statements.gap_holds,
                line.statements.flat_holds,
            ]
            print(f"| {line.row} | {line.budget} | {' | '.join(format_rate(rate) for rate in rates)} |", flush=True)
        coverages += lines
    print_rates(coverages)


def map_rows(work: Callable[[PaperRow, int], Line], arguments: argparse.Namespace) -> Iterator[Line]:
    """What work tells of each row, rows in their order, several at a time."""
    rows = list_rows()
    with ProcessPoolExecutor(arguments.workers, multiprocessing.get_context("spawn")) as workers:
        yield from workers.map(work, rows, [arguments.tunings] * len(rows))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["simulate", "shapes", "compare", "coverage"])
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--tunings", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2, help="processes of `compare` and `coverage`")
    parser.add_argument(
        "--plot", type=Path, help="draw the problems of `benchmark_problems.py` that `compare` compares into this file"
    )
    arguments = parser.parse_args()
    {"simulate": simulate_all, "shapes": print_shapes, "compare": print_comparison, "coverage": print_coverage}[
        arguments.what
    ](arguments)


if __name__ == "__main__":
    main()
