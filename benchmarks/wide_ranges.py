"""Tuning where the range is far wider than it need be: is the answer good, and is what is stated of it true?

python benchmarks/wide_ranges.py pools --out FILE        play six policies at values over twelve decades
python benchmarks/wide_ranges.py replay --pools FILE     tunings that draw stored runs, ranges of two to twelve decades
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from stored import Stored, play, save

import banditune as bt

VALUES = np.geomspace(1e-6, 1e6, 289)
"""24 a decade."""


def parameter(name: str) -> bt.Parameter:
    """As wide as any range here."""
    return bt.Parameter(name, 1e-6, 1e6, theory=1, scale="log")


def moss(state, setting, step, params, stream):
    """Audibert and Bubeck's index, its width times a parameter."""
    best, highest = 0, -1.0
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        ratio = setting.horizon / (setting.arms * state.pulls[arm])
        width = math.sqrt(max(0.0, math.log(ratio)) / state.pulls[arm])
        index = state.total[arm] / state.pulls[arm] + params[0] * width
        if index > highest:
            best, highest = arm, index
    return best


def rarer(state, setting, step, params, stream):
    """A random arm with a probability that falls like 1 / step."""
    if bt.uniform(stream) * (step + 1) < params[0] * setting.arms:
        return bt.random_arm(state, stream)
    return bt.best_mean(state)


def softmax(state, setting, step, params, stream):
    """An arm with probability proportional to exp(mean / temperature), by Gumbel's trick."""
    best, highest = 0, -1e308
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        value = state.total[arm] / state.pulls[arm] - params[0] * math.log(-math.log(1.0 - bt.uniform(stream) + 1e-300))
        if value > highest:
            best, highest = arm, value
    return best


def sharp(state, setting, step, params, stream):
    """The same with the temperature's inverse: it explores the less the larger its parameter is."""
    best, highest = 0, -1e308
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        value = params[0] * state.total[arm] / state.pulls[arm]
        value -= math.log(-math.log(1.0 - bt.uniform(stream) + 1e-300))
        if value > highest:
            best, highest = arm, value
    return best


@dataclass(frozen=True)
class WideUCB1(bt.UCB1):
    parameters = (parameter("gamma"),)


@dataclass(frozen=True)
class WideThompson(bt.Thompson):
    parameters = (parameter("gamma"),)


@dataclass(frozen=True)
class WideGaussianThompson(bt.GaussianThompson):
    parameters = (parameter("gamma"),)


@dataclass(frozen=True)
class WideEpsilonGreedy(bt.EpsilonGreedy):
    parameters = (parameter("epsilon"),)


POLICIES: dict[str, Any] = {
    "moss": bt.arm_policy("moss", moss, parameters=parameter("width")),
    "ucb1": WideUCB1(noise=0.5),
    "gaussian-ts": WideGaussianThompson((0.5, 0.3), 0.5),
    "epsilon-greedy": WideEpsilonGreedy(),
    "rarer-epsilon": bt.arm_policy("rarer-epsilon", rarer, parameters=parameter("c")),
    "softmax": bt.arm_policy("softmax", softmax, parameters=parameter("temperature")),
    "sharp-softmax": bt.arm_policy("sharp-softmax", sharp, parameters=parameter("sharpness")),
    "ts": WideThompson(prior=(1, 1)),
}
PROBLEMS = {"10 arms": (bt.Bernoulli(arms=10), 1000), "20 arms": (bt.Bernoulli(arms=20, prior=(1, 4)), 3000)}


def pools(asked: argparse.Namespace) -> None:
    """Play all policies at all values."""
    problem, horizon = PROBLEMS[asked.problem]
    found: dict[str, Stored] = {}
    for name, policy in POLICIES.items():
        found[name] = play(policy, problem, VALUES, horizon, asked.runs, asked.truths, asked.device)
        best = found[name].truth.argmin()
        print(f"{name}: {VALUES[best]:.4g} {found[name].truth[best]:.4g}", flush=True)
    save(asked.out, found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pools"])
    parser.add_argument("--problem", choices=list(PROBLEMS), default="10 arms")
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--truths", type=int, default=20_000)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--out", type=Path, default=Path("wide.npz"))
    asked = parser.parse_args()
    {"pools": pools}[asked.what](asked)


if __name__ == "__main__":
    main()
