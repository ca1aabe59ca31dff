"""The growth of the simulation time of structured policies, drawn as docs/images/growth.svg.

python benchmarks/time_growth.py
python benchmarks/time_growth.py --quick    # tiny sizes, to see that it works

Arms K, features d, horizon n and runs vary one at a time around K = 100, d = 10, n = 10,000. Each policy has a good width,
one thread and a warm kernel. Exponents are least squares on logarithms over the upper half of the sizes, printed in
Markdown. Seconds per run are the cost of one more run. Where runs vary, seconds are of the whole call, with the drawing
of a block of 256 instances. Kernels of a new d compile first, 5 to 20 seconds each.
"""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import banditune as bt
from banditune.reports.figures import BLUE, GREY, ORANGE

WIDTHS = {"linucb": 0.25, "lints": 0.24, "ucb-glm": 0.35, "glm-tsl": 0.19}
STYLES = {
    "linucb": (BLUE, "o", "-"),
    "lints": (ORANGE, "s", "-"),
    "ucb-glm": (GREY, "^", "--"),
    "glm-tsl": ("black", "D", "--"),
}
LABELS = {"arms": "arms K", "dims": "features d", "horizon": "horizon n", "runs": "runs"}

BLOCK = 256
"""Instances that one call draws at once, however few it plays."""


class Plan(NamedTuple):
    """Sizes in the middle, those to vary, and how long to measure a point: seconds, and repeats at most."""

    middle: dict[str, int]
    sizes: dict[str, tuple[int, ...]]
    seconds: float
    repeats: int


FULL = Plan(
    {"arms": 100, "dims": 10, "horizon": 10_000},
    {
        "arms": (10, 20, 50, 100, 200, 500, 1000),
        "dims": (2, 4, 8, 16, 32, 64),
        "horizon": (1000, 3000, 10_000, 30_000, 100_000),
        "runs": (4, 8, 16, 32, 64, 128, 256),
    },
    seconds=0.3,
    repeats=3,
)
QUICK = Plan(
    {"arms": 20, "dims": 4, "horizon": 300},
    {"arms": (5, 10, 20, 40), "dims": (2, 4), "horizon": (100, 200, 400, 800), "runs": (4, 8, 16, 32)},
    seconds=0.02,
    repeats=1,
)


def list_policies() -> dict[str, tuple[bt.kernel.Policy, type[bt.kernel.Problem]]]:
    """Policies and their problems by name."""
    pairs = ((bt.LinUCB, bt.Linear), (bt.LinTS, bt.Linear), (bt.UCBGLM, bt.Logistic), (bt.GLMTSL, bt.Logistic))
    return {policy.name: (policy(), problem) for policy, problem in pairs}


def measure_seconds(name: str, sizes: dict[str, int], runs: int) -> float:
    """Seconds of one call."""
    policy, problem = list_policies()[name]
    instance = problem(arms=sizes["arms"], dims=sizes["dims"])
    start = time.perf_counter()
    bt.simulate(policy, instance, [WIDTHS[name]], horizon=sizes["horizon"], runs=runs, run=bt.Run(workers=1))
    return time.perf_counter() - start


def measure_least_seconds(name: str, sizes: dict[str, int], runs: int, plan: Plan) -> float:
    """The best of several calls, of fewer when they are long."""
    times = [measure_seconds(name, sizes, runs)]
    while len(times) < plan.repeats and sum(times) < 2 * plan.seconds:
        times.append(measure_seconds(name, sizes, runs))
    return min(times)


def measure_seconds_per_run(name: str, sizes: dict[str, int], plan: Plan) -> float:
    """What one run more costs: the drawing of a block of instances is left out."""
    one = measure_least_seconds(name, sizes, 1, plan)
    four = measure_seconds(name, sizes, 4)
    each = max((four - one) / 3, four / 1000)
    more = min(BLOCK - 1, max(3, math.ceil(plan.seconds / each)))
    return max(measure_least_seconds(name, sizes, 1 + more, plan) - one, 1e-9) / more


def measure(name: str, varied: str, plan: Plan) -> list[float]:
    """Seconds at every size: of a run, or of all where runs vary."""
    times = []
    for size in plan.sizes[varied]:
        if varied == "runs":
            times.append(measure_least_seconds(name, plan.middle, size, plan))
        else:
            sizes = plan.middle | {varied: size}
            measure_seconds(name, sizes | {"horizon": 10}, 1)
            times.append(measure_seconds_per_run(name, sizes, plan))
    return times


def print_measurement(name: str, varied: str, plan: Plan) -> list[float]:
    """Measure, and print what was found and how long it took."""
    start = time.perf_counter()
    times = measure(name, varied, plan)
    pairs = ", ".join(f"{size:,}: {value:.2g} s" for size, value in zip(plan.sizes[varied], times, strict=True))
    print(f"{name}, {LABELS[varied]}: {pairs} (measured in {time.perf_counter() - start:.0f} s)", flush=True)
    return times


def fit_exponent(sizes: tuple[int, ...], times: list[float]) -> float:
    """The slope of least squares on logarithms, over the upper half of the sizes."""
    half = min(len(sizes) // 2, len(sizes) - 2)
    return float(np.polyfit(np.log(sizes[half:]), np.log(times[half:]), 1)[0])


def draw(measured: dict[str, dict[str, list[float]]], plan: Plan, path: Path) -> None:
    """Four panels, a line per policy."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.6, 7.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, varied in zip(figure.subplots(2, 2).flat, plan.sizes, strict=True):
        draw_panel(axes, varied, plan.sizes[varied], measured)
    fixed = ", ".join(f"{LABELS[name]} = {size:,}" for name, size in plan.middle.items())
    figure.suptitle(f"One thread, varied alone around {fixed}", x=0.01, ha="left", fontsize=10)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=160)


def draw_panel(axes: Any, varied: str, sizes: tuple[int, ...], measured: dict[str, dict[str, list[float]]]) -> None:
    """Seconds against one size on logarithmic axes, exponents in the legend."""
    for name, by_size in measured.items():
        colour, marker, line = STYLES[name]
        label = f"{name}: {fit_exponent(sizes, by_size[varied]):.2f}"
        axes.plot(sizes, by_size[varied], color=colour, marker=marker, markersize=4, linestyle=line, label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.set_xticks([], minor=True)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color="#e5e5e5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xlabel(LABELS[varied])
    axes.set_ylabel("seconds" if varied == "runs" else "seconds per run")
    axes.legend(frameon=False, title="exponent, upper half", fontsize=9, title_fontsize=9)


def format_table(measured: dict[str, dict[str, list[float]]], plan: Plan) -> str:
    """The exponents in Markdown."""
    lines = ["| policy | " + " | ".join(f"{LABELS[v]}, {s[0]:,} to {s[-1]:,}" for v, s in plan.sizes.items()) + " |"]
    lines.append("|---" * (1 + len(plan.sizes)) + "|")
    for name, times in measured.items():
        lines.append(
            f"| {name} | " + " | ".join(f"{fit_exponent(s, times[v]):.2f}" for v, s in plan.sizes.items()) + " |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to see that it works")
    parser.add_argument("--only", choices=list(WIDTHS), nargs="+", default=list(WIDTHS), help="these policies alone")
    parser.add_argument("--output", type=Path, default=Path("docs/images/growth.svg"), metavar="FILE")
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL
    measured = {name: {varied: print_measurement(name, varied, plan) for varied in plan.sizes} for name in options.only}
    draw(measured, plan, options.output)
    print()
    print(format_table(measured, plan))
    print(f"\nThe figure is {options.output}.")


if __name__ == "__main__":
    main()
