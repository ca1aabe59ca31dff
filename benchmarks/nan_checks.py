"""The time that checks of comparisons with NaN add to users' policies: to compile, and for a million rounds on ten arms.

python benchmarks/nan_checks.py
"""

from __future__ import annotations

import math
import os
import tempfile
import time
import types

os.environ["BANDITUNE_CACHE"] = tempfile.mkdtemp()

import banditune as bt
from banditune.simulation import bind


@bt.kernel.scalar
def index(state, setting, step, params, stream):
    """An index by its formula."""
    best = 0
    highest = -1e308
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        value = state.total[arm] / state.pulls[arm] + params[0] * math.sqrt(math.log(step + 1.0) / state.pulls[arm])
        if value > highest:
            best = arm
            highest = value
    return best


@bt.kernel.scalar
def chance(state, setting, step, params, stream):
    """Epsilon-greedy, of ready-made parts."""
    if bt.kernel.uniform(stream) < params[0]:
        return bt.kernel.draw_arm(state, stream)
    return bt.kernel.argmax_mean(state)


@bt.kernel.scalar
def totals(state, setting, step, params, stream):
    """Nothing but comparisons."""
    best = 0
    for arm in range(setting.arms):
        if state.total[arm] > state.total[best]:
            best = arm
    return best


def measure(choose) -> tuple[float, float, float]:
    """Seconds to compile, seconds for a million rounds (the best of five), and the sum of the regrets."""
    policy = bt.define_policy("own", choose, parameters=bt.Parameter("x", 0, 1, textbook=0.5))

    def play(horizon: int, runs: int) -> tuple[float, float]:
        start = time.process_time()
        regrets = bt.simulate(policy, bt.Bernoulli(arms=10), [0.5], horizon=horizon, runs=runs, run=bt.Run(workers=1))
        return time.process_time() - start, float(regrets.sum())

    compiling = play(10, 2)[0]
    times = [play(1000, 1000) for _ in range(5)]
    return compiling, min(seconds for seconds, _ in times), times[0][1]


def copy_function(function):
    """Make another function of the same code, which is compiled again."""
    return bt.kernel.scalar(types.FunctionType(function.__code__, function.__globals__, function.__name__))


def main() -> None:
    """Print a line for each function, without and with checks."""
    add_nan_checks = bind.add_nan_checks
    bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=10), [0.5], horizon=10, runs=2, run=bt.Run(workers=1))
    for choose in (index, chance, totals):
        for name, check in (("without", lambda function: None), ("with", add_nan_checks)):
            bind.add_nan_checks = check
            compiling, playing, regret = measure(copy_function(choose))
            print(
                f"{choose.__name__:8}{name:8} compile {compiling:.2f} s, simulate {playing:.4f} s, regret {regret!r}",
                flush=True,
            )


if __name__ == "__main__":
    main()
