"""Pools of regrets, from which thousands of tunings can be drawn.

python benchmarks/paper_pools.py             # or `make paper-pools`; on a GPU
python benchmarks/paper_pools.py --truth     # a million runs at each width, on a GPU
python benchmarks/paper_pools.py --runs 10 --only "bernoulli ucb1" --folder /tmp/pools    # a quick look

Every row is simulated at each width that a tuner may visit. These are the 163 multiples of 1/162 of its range for NoTeS,
and its tenths for the grids of Uniform and Sequential Halving. Widths have separate random numbers and regret is realised,
as in the paper. A pool is a file `<row>.npz` with `units` (points of the unit interval), `values` and `regrets` in single
precision, (widths, runs). Existing files are kept.

With `--truth`, a few rows are simulated a million times at each width, with expected regret. Their files,
`truth-<row>.npz`, keep `means` of ten parts of the runs (parts, widths) and the `variance` of a run at each width.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from benchmark_problems import CHOSEN_ON, HELD_OUT, PAPER_ROWS, PaperRow

import banditune as bt
from banditune.paper.run_pools import FOLD_COUNT, UNIT_POINTS, list_row_widths
from banditune.simulation import devices
from banditune.simulation.dispatch import simulate_rows

FOLDER = Path(__file__).parent / "pools"

KNOWN = (
    *(row for row in PAPER_ROWS if row.name in ("warm-up ucb1", "warm-up ts", "bernoulli ucb1")),
    PaperRow("bernoulli ts 1000", bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=10), 1000),
    *(row for row in CHOSEN_ON if row.name in ("short ts", "rare successes ucb1")),
)
"""Rows whose truth is made by `--truth`."""

BATCH_RUNS = 10_000
"""Runs of all widths that are kept at a time."""

TRUTH_SEED = 1_000_000
"""Far from the seeds of tunings: they must not play the same runs."""


def get_pool_path(row: PaperRow, folder: Path = FOLDER) -> Path:
    """Where a row's pool is kept."""
    return folder / f"{row.name.replace(' ', '-')}.npz"


def simulate_pool(row: PaperRow, runs: int, device: str) -> dict[str, np.ndarray]:
    """Regrets of a row at all widths."""
    spec = row.make_spec(device=device, common_random_numbers=False, regret="realised", seed=162)
    values = list_row_widths(row)
    regrets = simulate_rows(spec, values[:, None], range(runs))[:, :, 0]
    return {"units": UNIT_POINTS, "values": values, "regrets": regrets.astype(np.float32)}


def simulate_truth(row: PaperRow, runs: int, device: str) -> dict[str, np.ndarray]:
    """Mean regrets of a row at all widths; runs are played in turn and only their sums are kept."""
    spec = row.make_spec(device=device, common_random_numbers=True, regret="expected", seed=TRUTH_SEED)
    values = list_row_widths(row)
    size = runs // FOLD_COUNT
    sums, squares = np.zeros((FOLD_COUNT, len(values))), np.zeros(len(values))
    for part in range(FOLD_COUNT):
        for first in range(part * size, (part + 1) * size, BATCH_RUNS):
            last = min(first + BATCH_RUNS, (part + 1) * size)
            regrets = simulate_rows(spec, values[:, None], range(first, last))[:, :, 0]
            sums[part] += regrets.sum(axis=1)
            squares += (regrets**2).sum(axis=1)
    means, count = sums / size, size * FOLD_COUNT
    variance = squares / count - means.mean(axis=0) ** 2
    return {"units": UNIT_POINTS, "values": values, "means": means, "variance": variance, "runs": np.array(count)}


def get_truth_path(row: PaperRow, folder: Path = FOLDER) -> Path:
    """Where a row's truth is kept."""
    return folder / f"truth-{row.name.replace(' ', '-')}.npz"


def load_truth(row: PaperRow, folder: Path = FOLDER) -> dict[str, np.ndarray]:
    """A row's truth, from its file."""
    path = get_truth_path(row, folder)
    if not path.exists():
        raise SystemExit(
            f"{path} is missing; make it with: python benchmarks/paper_pools.py --truth --only '{row.name}'"
        )
    return dict(np.load(path))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, help="at each width: 10,000, for a truth 1,000,000")
    parser.add_argument("--truth", action="store_true", help="means of many runs instead of pools")
    parser.add_argument("--device", default="auto", choices=devices.DEVICES)
    parser.add_argument("--only", help="rows whose name contains one of these, parted by commas")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    device = devices.resolve_device(arguments.device)
    arguments.folder.mkdir(parents=True, exist_ok=True)
    simulate, get_path, rows, runs = (
        simulate_pool,
        get_pool_path,
        (*PAPER_ROWS, *CHOSEN_ON, *HELD_OUT),
        arguments.runs or 10_000,
    )
    if arguments.truth:
        simulate, get_path, rows, runs = simulate_truth, get_truth_path, KNOWN, arguments.runs or 1_000_000
    for row in rows:
        if arguments.only and not any(part in row.name for part in arguments.only.split(",")):
            continue
        path = get_path(row, arguments.folder)
        if path.exists():
            continue
        start = time.perf_counter()
        arrays = simulate(row, runs, device)
        part = path.with_suffix(".part.npz")
        np.savez_compressed(part, **arrays)
        part.replace(path)
        print(
            f"{row.name:24} {len(UNIT_POINTS)} widths x {runs:,} runs on the {device}: "
            f"{time.perf_counter() - start:.1f} s, "
            f"{path.stat().st_size / 2**20:.1f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
