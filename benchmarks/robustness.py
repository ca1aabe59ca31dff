"""Verdicts of robustness reports, compared with the truth from fine grids on other instances.

python benchmarks/robustness.py FOLDER [seeds] [runs] [processes]
python benchmarks/robustness.py FOLDER 1 50 2    # a quick look

Each problem is tuned with several seeds, and each tuned value gets a robustness report. The truth of a scenario is the
regret of 60 values (0, then even in the logarithm) and of the tuned ones, on instances of another seed. A verdict of
"fine" is wrong if the true excess is above a tenth, and one of "fragile" if it is below. FOLDER/robustness.csv gets a row
for each verdict. Counts, wrong verdicts and reasons are printed.
"""

from __future__ import annotations

import csv
import sys
from collections import Counter
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import banditune as bt
from banditune.results.robustness_results import TOLERATED_EXCESS
from banditune.study.parameter_values import resolve_only_range
from banditune.study.requests import build_spec
from banditune.study.scenarios import list_scenario_specs

CASES = {
    "ucb1, clicks": (bt.UCB1(noise=0.5), bt.Bernoulli(arms=46, prior=(3.35722, 771.387)), 30_000),
    "ucb1, rare clicks": (bt.UCB1(noise=0.5), bt.Bernoulli(arms=20, prior=(2, 998)), 20_000),
    "ucb1, uniform": (bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), 5_000),
    "ucb1, two arms": (bt.UCB1(noise=0.5), bt.Bernoulli(arms=2, prior=(2, 8)), 1_000),
    "ucb1, gaussian": (bt.UCB1(noise=1.0), bt.Gaussian(arms=5), 1_000),
    "ts, uniform": (bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=10), 2_000),
    "ts, clicks": (bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=10, prior=(2, 98)), 2_000),
    "epsilon-greedy, uniform": (bt.EpsilonGreedy(), bt.Bernoulli(arms=10), 1_000),
}
TRUTH = 991_991
"""The seed of the instances that tell the truth."""


def list_verdicts(task):
    """The stress test of one tuning, as rows."""
    name, seed = task
    policy, problem, horizon = CASES[name]
    tuning = bt.tune(
        policy,
        problem,
        horizon=horizon,
        seed=seed,
        include=(
            "robustness",
            "no_lower_bound",
        ),
        run=bt.Run(workers=1),
    )
    ((_, value),) = tuning.params.items()
    return [
        {
            "case": name,
            "seed": seed,
            "place": number,
            "words": scenario.description,
            "value": value,
            "verdict": scenario.verdict,
            "reason": scenario.reason,
            "share": scenario.excess_share,
            "least": scenario.excess_share_low,
            "most": scenario.excess_share_high,
        }
        for number, scenario in enumerate(tuning.robustness.scenarios)
    ]


def simulate_truth(task):
    """The true loss of tuned values in one scenario, as shares."""
    name, number, values, runs = task
    policy, problem, horizon = CASES[name]
    spec = list_scenario_specs(build_spec(policy, problem, horizon=horizon))[0][number][1]
    search_range = resolve_only_range(spec)
    top = search_range.high
    grid = [search_range.low, *np.geomspace(max(search_range.low, 1e-3 * top), top, 59).tolist()]
    grid = sorted({search_range.clip(value) for value in (*grid, *values)})
    regrets = bt.simulate(
        policy, spec.problem, grid, horizon=spec.horizon, runs=runs, seed=TRUTH, run=bt.Run(workers=1)
    ).mean(axis=1)
    return [float(regrets[grid.index(search_range.clip(value))] / regrets.min() - 1) for value in values]


def main(out, seeds=10, runs=3000, processes=16):
    """Play all, write the rows, print a summary."""
    tasks = [(name, seed) for name in CASES for seed in range(seeds)]
    with get_context("spawn").Pool(processes) as pool:
        rows = [row for result in pool.imap_unordered(list_verdicts, tasks, chunksize=1) for row in result]
        scenarios = sorted({(row["case"], row["place"]) for row in rows}, key=lambda one: -CASES[one[0]][2])
        truth_tasks = [
            (name, number, sorted({row["value"] for row in rows if row["case"] == name}), runs)
            for name, number in scenarios
        ]
        losses = {}
        for (name, number, values, _), result in zip(
            truth_tasks, pool.imap(simulate_truth, truth_tasks, chunksize=1), strict=True
        ):
            losses |= {(name, number, value): loss for value, loss in zip(values, result, strict=True)}
    for row in rows:
        row["truth"] = losses[row["case"], row["place"], row["value"]]
    path = Path(out) / "robustness.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    print_report(rows)


def print_report(rows):
    """Counts by case, wrong verdicts, and why others were not decided."""
    for name in (*CASES, None):
        selected = [row for row in rows if name in (None, row["case"])]
        counts = Counter("fragile" if row["verdict"] == "worse than textbook" else row["verdict"] for row in selected)
        fine = [row["truth"] for row in selected if row["verdict"] == "fine"]
        fragile = [row["truth"] for row in selected if row["verdict"] in ("fragile", "worse than textbook")]
        inside = [row["least"] <= row["truth"] <= row["most"] for row in selected]
        above, below = sum(loss > TOLERATED_EXCESS for loss in fine), sum(loss <= TOLERATED_EXCESS for loss in fragile)
        print(
            f"{name or 'all'}: {dict(counts)}; fine but above a tenth {above} of {len(fine)} (largest "
            f"{max(fine, default=0):.1%}), fragile but below {below} of "
            f"{len(fragile)}; truth inside the interval {np.mean(inside):.1%} of {len(inside)}"
        )
    for row in rows:
        wrong = (row["verdict"] == "fine") == (row["truth"] > TOLERATED_EXCESS)
        if wrong and row["verdict"] != "not decided":
            print("wrong:", {key: row[key] for key in ("case", "seed", "words", "value", "verdict", "share", "truth")})
    reasons = Counter(
        " ".join(word for word in row["reason"].split() if not any(map(str.isdigit, word))) for row in rows
    )
    print({reason: count for reason, count in reasons.most_common() if reason})


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
