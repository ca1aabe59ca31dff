"""The speed of the GPU, its agreement with the CPU, and the effect of float32.

python benchmarks/gpu.py speed         # needs an NVIDIA GPU
python benchmarks/gpu.py agreement     # on a GPU, unless `--device cpu`
python benchmarks/gpu.py precision     # needs an NVIDIA GPU
python benchmarks/gpu.py agreement --device cpu --runs 100 --only "bernoulli ucb1"    # a quick look without a GPU

`speed` simulates 171 widths x 10,000 instances x 10,000 rounds and compares with CUDA C++ prototypes of the same
simulations, which were measured on one H200. `agreement` simulates the textbook and the best width of all ten rows with
10,000 runs each. `--save FILE` keeps the regrets of a device, `--against FILE` compares with those of another.
`precision` compares float32 with float64 on the same streams, 100,000 runs, for policies that have both.
"""

from __future__ import annotations

import argparse
import time

import numpy as np
from benchmark_problems import PAPER_ROWS

from banditune.simulation import dispatch

PROTOTYPES = {
    "bernoulli ucb1": 0.28,
    "beta ucb1": 1.2,
    "bernoulli ts": 3.1,
    "linear linucb": 10.6,
    "linear lints": 41.6,
    "logistic ucb-glm": 173.0,
    "logistic glm-tsl": 182.0,
}
"""Seconds that the prototypes took."""


def is_excluded(name: str, only: str | None) -> bool:
    """Whether a row is not asked for."""
    return bool(only) and not any(part in name for part in only.split(","))


def measure_speed(arguments: argparse.Namespace) -> None:
    """Seconds for every prototype's work, with kernels that are ready."""
    values = np.linspace(0, 1, 171)[:, None]
    print(f"{'row':18} {'seconds':>9} {'prototype':>10} {'ratio':>6}")
    for row in PAPER_ROWS:
        if row.name not in PROTOTYPES or (is_excluded(row.name, arguments.only)):
            continue
        spec = row.make_spec(device="gpu", common_random_numbers=arguments.noise == "shared")
        dispatch.simulate_rows(spec, values, range(1))
        start = time.perf_counter()
        dispatch.simulate_rows(spec, values, range(arguments.runs))
        taken = (time.perf_counter() - start) * 10_000 / arguments.runs
        other = PROTOTYPES[row.name]
        print(f"{row.name:18} {taken:9.2f} {other:10.2f} {taken / other:6.2f}", flush=True)


def measure_agreement(arguments: argparse.Namespace) -> None:
    """Regrets of a device, or the differences between two in joint standard errors."""
    regrets = {}
    for row in PAPER_ROWS:
        if is_excluded(row.name, arguments.only):
            continue
        spec = row.make_spec(device=arguments.device, regret="realised", seed=1)
        start = time.perf_counter()
        regrets[row.name] = dispatch.simulate_rows(spec, [[row.best_width], [1.0]], range(arguments.runs))[:, :, 0]
        print(f"{row.name:18} {time.perf_counter() - start:7.2f} s", flush=True)
    if arguments.save:
        np.savez_compressed(arguments.save, **regrets)
    if not arguments.against:
        return
    other = np.load(arguments.against)
    print(f"{'row':18} {'width':>6} {arguments.device:>16} {'other':>16} {'joint se':>9} {'same runs':>10}")
    for row in PAPER_ROWS:
        for place, width in enumerate((row.best_width, 1.0)):
            if row.name not in regrets:
                continue
            a, b = regrets[row.name][place], other[row.name][place]
            joint = np.hypot(a.std(ddof=1), b.std(ddof=1)) / len(a) ** 0.5
            told = [f"{x.mean():9.3f} +- {x.std(ddof=1) / len(x) ** 0.5:.2f}" for x in (a, b)]
            same = np.mean(np.abs(a - b) <= 1e-9 * np.maximum(1, np.abs(b)))
            print(
                f"{row.name:18} {width:6.2f} {told[0]:>16} {told[1]:>16} {(a.mean() - b.mean()) / joint:9.2f} {same:10.4f}"
            )


def measure_precision(arguments: argparse.Namespace) -> None:
    """The paired difference between float32 and float64, its standard error, and both as a share of the regret."""
    from banditune.simulation.gpu import gpu_scheduler, launch_plan

    print(
        f"{'row':18} {'width':>6} {'float64':>9} {'float32 - float64':>20} {'in se':>6} {'se/regret':>10} {'same':>7}  time"
    )
    for row in PAPER_ROWS:
        spec = row.make_spec(seed=2)
        if launch_plan.plan_launch(spec, "float32").target is launch_plan.plan_launch(
            spec, "float64"
        ).target or is_excluded(row.name, arguments.only):
            continue
        values = np.array([[row.best_width], [1.0]])
        taken, regrets = [], []
        for kind in ("float64", "float32"):
            gpu_scheduler.simulate_rows_on_gpu(spec, values, range(1), dtype=kind)
            start = time.perf_counter()
            regrets.append(gpu_scheduler.simulate_rows_on_gpu(spec, values, range(arguments.runs), dtype=kind)[:, :, 0])
            taken.append(time.perf_counter() - start)
        for place, width in enumerate((row.best_width, 1.0)):
            a, b = regrets[1][place], regrets[0][place]
            change = (a - b).mean()
            se = (a - b).std(ddof=1) / len(a) ** 0.5
            print(
                f"{row.name:18} {width:6.2f} {b.mean():9.3f} {change:11.5f} +- {se:.5f} {change / se if se else 0:6.2f} "
                f"{se / b.mean():10.4%} {np.mean(np.isclose(a, b, rtol=1e-9)):7.4f} {taken[0]:5.1f}, {taken[1]:4.1f} s",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("speed", "agreement", "precision"))
    parser.add_argument("--runs", type=int)
    parser.add_argument("--device", default="gpu", choices=("gpu", "cpu"))
    parser.add_argument("--noise", default="shared", choices=("shared", "own"))
    parser.add_argument("--only", help="rows whose name contains one of these, separated by commas")
    parser.add_argument("--save", help="keep the regrets in this file (.npz)")
    parser.add_argument("--against", help="compare with the regrets in this file (.npz)")
    arguments = parser.parse_args()
    arguments.runs = arguments.runs or {"speed": 10_000, "agreement": 10_000, "precision": 100_000}[arguments.what]
    {"speed": measure_speed, "agreement": measure_agreement, "precision": measure_precision}[arguments.what](arguments)


if __name__ == "__main__":
    main()
