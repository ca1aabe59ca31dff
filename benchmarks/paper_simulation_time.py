"""The time of the simulations for the paper's tables and figures, in one process.

python benchmarks/paper_simulation_time.py         # on a GPU
python benchmarks/paper_simulation_time.py --device cpu --runs 10 --only "bernoulli ucb1"    # a quick look without a GPU

All ten rows (five problems, two policies each) are simulated at every width that tuners can visit or curves draw, with
10,000 runs each. Widths have separate random numbers and regret is realised, as in the paper. Prints the time of each part.
"""

# ruff: noqa: E402

from __future__ import annotations

import time

BEGAN = time.perf_counter()

import argparse
import json
from collections.abc import Iterator

import numpy as np
from benchmark_problems import PAPER_ROWS

from banditune.core.space import Range
from banditune.simulation import dispatch
from banditune.tuners.noisy_ternary_search import NoTeS


def list_visited_widths(choices: tuple[int, ...] = ()) -> Iterator[float]:
    """Every width that NoTeS can visit or return, over all outcomes of its comparisons."""
    search = NoTeS().search(Range("gamma", 0.0, 1.0, 1.0, False, "linear"), 1000)
    try:
        trial = next(search)
        for better in choices:
            # The value that is better has the lower regret.
            trial = search.send(np.array([[better], [1 - better]], float))
    except StopIteration as answer:
        yield answer.value
        return
    yield from trial.values
    for better in (0, 1):
        yield from list_visited_widths((*choices, better))


def list_widths() -> np.ndarray:
    """The widths of NoTeS, of the grid of Uniform and Sequential Halving, and of a curve."""
    return np.unique(np.round([*list_visited_widths(), *np.linspace(0, 1, 11), *np.linspace(0, 1, 33)], 12))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--device", default="gpu", choices=("gpu", "cpu"))
    parser.add_argument("--only", help="rows whose name contains this")
    parser.add_argument("--json", help="write the figures to this file")
    arguments = parser.parse_args()
    values = list_widths()
    imported = time.perf_counter() - BEGAN
    print(f"{len(values)} widths x {arguments.runs:,} runs on the {arguments.device}; {imported:.1f} s to start")
    print(f"{'row':18} {'compile, load':>13} {'play':>9} {'G rounds/s':>11} {'best width':>11} {'regret':>16}")
    figures = []
    for row in PAPER_ROWS:
        if arguments.only and arguments.only not in row.name:
            continue
        spec = row.make_spec(device=arguments.device, common_random_numbers=False, regret="realised")
        start = time.perf_counter()
        dispatch.simulate_rows(spec, values[:, None], range(1))
        ready = time.perf_counter()
        regrets = dispatch.simulate_rows(spec, values[:, None], range(arguments.runs))[:, :, 0]
        done = time.perf_counter()
        mean, se = regrets.mean(axis=1), regrets.std(axis=1, ddof=1) / len(regrets[0]) ** 0.5
        best = int(mean.argmin())
        rounds = regrets.size * row.horizon / (done - ready) / 1e9
        print(
            f"{row.name:18} {ready - start:11.2f} s {done - ready:7.2f} s {rounds:11.2f} {values[best]:11.3f} "
            f"{mean[best]:9.2f} +- {se[best]:.2f}",
            flush=True,
        )
        figures.append({"row": row.name, "ready": ready - start, "play": done - ready, "rounds": rounds})
    total = time.perf_counter() - BEGAN
    print(f"start to end: {total:.1f} s, of which {sum(f['play'] for f in figures):.1f} s of play")
    if arguments.json:
        with open(arguments.json, "w") as file:
            json.dump({"seconds": total, "rows": figures}, file)


if __name__ == "__main__":
    main()
