"""Pools of regrets, from which thousands of tunings can be drawn: `make pools`, or `python benchmarks/pools.py`.

Every row is played at each width that a tuner may visit: the 163 multiples of 1/162 of its range, where NoTeS looks, and
its tenths, where the grids of Uniform and Sequential Halving are. Each width has noise of its own, the regret is realised,
as in the paper. A pool is a file `<row>.npz` with `units` (places in the unit interval), `values` and `regrets` in single
precision, (widths, runs). Rows that are there already are left alone.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
from rows import CHOSEN_ON, HELD_OUT, PAPER, Row

from banditune.engine import devices, run

FOLDER = Path(__file__).parent / "pools"

UNITS = np.unique(np.round([*(np.arange(163) / 162), *(np.arange(11) / 10)], 12))
"""Where a tuner may look."""


def file_of(row: Row, folder: Path = FOLDER) -> Path:
    """Where a row's pool is kept."""
    return folder / f"{row.name.replace(' ', '-')}.npz"


def pool(row: Row, runs: int, device: str) -> dict[str, np.ndarray]:
    """Regrets of a row at all widths."""
    job = row.job(device=device, noise="own", regret="realised", seed=162)
    (parameter,) = row.policy.parameters
    among = parameter.within(row.problem.arms, row.horizon)
    values = np.array([among.at(unit) for unit in UNITS])
    regrets = run.play(job, values[:, None], range(runs))[:, :, 0]
    return {"units": UNITS, "values": values, "regrets": regrets.astype(np.float32)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--device", default="auto", choices=devices.DEVICES)
    parser.add_argument("--only", help="rows whose name contains one of these, parted by commas")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    asked = parser.parse_args()
    device = devices.resolved(asked.device)
    asked.folder.mkdir(parents=True, exist_ok=True)
    for row in (*PAPER, *CHOSEN_ON, *HELD_OUT):
        if asked.only and not any(part in row.name for part in asked.only.split(",")):
            continue
        path = file_of(row, asked.folder)
        if path.exists():
            continue
        before = time.perf_counter()
        found = pool(row, asked.runs, device)
        part = path.with_suffix(".part.npz")
        np.savez_compressed(part, **found)
        part.replace(path)
        print(
            f"{row.name:24} {len(UNITS)} widths x {asked.runs:,} runs on the {device}: "
            f"{time.perf_counter() - before:.1f} s, "
            f"{path.stat().st_size / 2**20:.1f} MiB",
            flush=True,
        )


if __name__ == "__main__":
    main()
