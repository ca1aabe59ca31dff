"""Random studies for as long as you like. Each checks a promise of the package.

python benchmarks/soak.py [MINUTES] [SEED]          # 60 minutes unless given; or: make soak MINUTES=60

- A search spends at most its budget, and every number is finite.
- The same seed gives the same answer on one thread, two threads and two processes.
- A study that is killed or interrupted several times ends as one that was not.
- 95% intervals hold the truth at about their rate. Simulations agree with exact regrets.
- A deployed policy that is saved and loaded continues as one that was not.
- Memory does not grow once everything has run.

The first broken promise ends it and prints the seed that repeats it.
"""

from __future__ import annotations

import gc
import json
import math
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import banditune as bt
from banditune.registry import collect_policies
from banditune.study.requests import build_spec

PROBLEMS = {
    "bernoulli": lambda dice: bt.Bernoulli(arms=dice.choice((2, 3, 8)), prior=dice.choice(((1, 1), (2, 8), (5, 2)))),
    "beta": lambda dice: bt.BetaRewards(arms=dice.choice((2, 5)), v=dice.choice((2, 8))),
    "gaussian": lambda dice: bt.Gaussian(arms=dice.choice((2, 5)), noise=dice.choice((0.5, 1.0))),
    "mixture": lambda dice: bt.Mixture([(0.6, 0.4), (0.4, 0.6)], weights=(dice.randint(1, 3), 1)),
    "linear": lambda dice: bt.Linear(arms=dice.choice((4, 8)), dims=2),
    "logistic": lambda dice: bt.Logistic(arms=4, dims=2),
    "campaigns": lambda dice: bt.Campaigns([[(2, 8), (3, 9)], [(4, 4), (1, 2)]]),
    "table": lambda dice: bt.RewardTable(np.random.default_rng(dice.randint(0, 3)).random((4, 300, 3))),
}
TUNERS = (bt.TwoPart, bt.NoTeS, bt.tuners.Uniform, bt.tuners.SequentialHalving)
TUNED_POLICIES = {"ucb1": bt.UCB1, "ts": bt.Thompson}
DEPLOYED_POLICIES = (
    bt.UCB1(noise=0.5),
    bt.Thompson(prior=(1, 1)),
    bt.EpsilonGreedy(),
    bt.GaussianThompson(prior=(0.5, 0.3), noise=0.5),
)
"""With noise and prior in numbers: a deployed policy has no problem to take them from."""


class BrokenPromise(Exception):
    """A promise is broken."""


def expect(kept: bool, *details: Any) -> None:
    """Raise if a promise is broken."""
    if not kept:
        raise BrokenPromise(" ".join(map(str, details)))


class Soak:
    """Counts of all checks so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: Counter[str] = Counter()
        self.held: dict[str, list[int]] = {}

    def count(self, statement: str, held: bool) -> None:
        """Count whether a 95% statement held, and raise if too few do."""
        tally = self.held.setdefault(statement, [0, 0])
        tally[0] += held
        tally[1] += 1
        rate, tries = tally[0] / tally[1], tally[1]
        expect(
            tries < 50 or rate >= 0.92 - 4 * math.sqrt(0.92 * 0.08 / tries),
            f"{statement!r} held in {rate:.1%} of {tries} studies",
        )


def draw_study(dice: random.Random) -> tuple[Any, Any, int]:
    """A policy, a problem that it can play, and a horizon."""
    policies = collect_policies()
    while True:
        policy, problem = policies[dice.choice(list(policies))], PROBLEMS[dice.choice(list(PROBLEMS))](dice)
        horizon = dice.choice((20, 60, 150, 300))
        try:
            made = policy()
            build_spec(made, problem, horizon=horizon)
        except bt.InvalidRequest:
            continue
        return made, problem, horizon


def check_same_answer(soak: Soak, dice: random.Random) -> str:
    policy, problem, horizon = draw_study(dice)
    tuner, budget = dice.choice(TUNERS)(), dice.choice((176, 250, 400))
    settings = {"horizon": horizon, "seed": dice.randint(0, 99)}
    simulation = bt.Simulation(regret=dice.choice(("expected", "realised")))
    one_worker, two_workers = bt.Run(workers=1), bt.Run(workers=2)
    if len(policy.parameters) != 1:
        runs = dice.randint(2, 400)
        one = bt.simulate(policy, problem, **settings, runs=runs, simulation=simulation, run=one_worker)
        expect(
            (one == bt.simulate(policy, problem, **settings, runs=runs, simulation=simulation, run=two_workers)).all(),
            "two threads differ",
        )
        expect(bool(np.isfinite(one).all()), "a regret is not finite")
        return f"simulate {policy.name} on {problem.name}"
    search = bt.Search(tuner=tuner, validate=dice.choice((None, 20, 100)))
    simulation = replace(simulation, common_random_numbers=dice.choice((True, False)))
    settings |= {"budget": budget, "search": search, "simulation": simulation}
    one = bt.tune(policy, problem, **settings, run=one_worker)
    expect(one.search_runs <= budget, f"{tuner} spent {one.search_runs} of {budget}")
    expect(math.isfinite(one.regret.mean) and one.regret.low <= one.regret.high, one.regret)
    other = bt.Run(workers=2, executor="processes" if dice.random() < 0.1 else "threads")
    two = bt.tune(policy, problem, **settings, run=other)
    expect(one.to_json() == two.to_json(), f"{policy.name} on {problem.name}: {other} gives another answer")
    expect(bt.results.from_json(one.to_json()).to_json() == one.to_json(), "JSON does not come back as it went")
    repr(one)
    return f"tune {policy.name} on {problem.name} with {tuner.name}"


CHILD = """
import json, sys
import banditune as bt
request = json.loads(sys.argv[1])
policy = bt.UCB1() if request["policy"] == "ucb1" else bt.Thompson()
tuning = bt.tune(policy, bt.Bernoulli(arms=request["arms"]), horizon=request["horizon"], budget=request["budget"],
                 seed=request["seed"], search=bt.Search(validate=request["validate"]),
                 run=bt.Run(workers=2, store=request["store"]))
tuning.save(request["out"])
"""


def restore_interrupts() -> None:
    """Let a child hear Ctrl-C: processes that a shell starts in the background ignore it, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def check_kills(soak: Soak, dice: random.Random) -> str:
    """Kill a study at random moments. It must end as one that was not disturbed."""
    study = {
        "policy": dice.choice(list(TUNED_POLICIES)),
        "arms": dice.choice((3, 10)),
        "horizon": dice.choice((2000, 5000)),
        "budget": 400,
        "validate": 300,
        "seed": dice.randint(0, 99),
    }
    store, out = soak.folder / "study.store", soak.folder / "out.json"
    for path in soak.folder.iterdir():
        path.unlink()
    request = json.dumps(study | {"store": str(store), "out": str(out)})
    kills = 0
    while not out.exists():
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, request], stderr=subprocess.DEVNULL, preexec_fn=restore_interrupts
        )
        try:
            # Later kills wait longer, so that it comes to an end.
            child.wait(dice.uniform(0.3, 1.5 + kills / 2))
        except subprocess.TimeoutExpired:
            child.send_signal(dice.choice((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)))
            kills += 1
            child.wait(60)
        expect(kills < 60, "a study did not end after 60 kills")
    settings = {key: study[key] for key in ("horizon", "budget", "seed")}
    undisturbed = bt.tune(
        TUNED_POLICIES[study["policy"]](),
        bt.Bernoulli(arms=study["arms"]),
        **settings,
        search=bt.Search(validate=study["validate"]),
    )
    expect(bt.load_result(out).to_json() == undisturbed.to_json(), f"{study} ended differently after {kills} kills")
    soak.seen["kills"] += kills
    return f"{kills} kills of {study['policy']}"


def check_intervals(soak: Soak, dice: random.Random) -> str:
    """Compare the statements of a tuning with many more runs."""
    policy, problem = (
        dice.choice(list(TUNED_POLICIES.values()))(),
        PROBLEMS[dice.choice(("bernoulli", "mixture", "beta"))](dice),
    )
    horizon, seed = dice.choice((100, 300)), dice.randint(0, 10**9)
    tuning = bt.tune(
        policy, problem, horizon=horizon, budget=dice.choice((200, 1000)), seed=seed, search=bt.Search(validate=500)
    )
    posterior = tuning.posterior
    values = np.unique([*np.linspace(0, 1, 26), tuning.params["gamma"]])
    truth = bt.simulate(policy, problem, values, horizon=horizon, runs=6000, seed=seed + 1)
    mean, se = truth.mean(axis=1), truth.std(axis=1, ddof=1) / math.sqrt(truth.shape[1])
    place = int(np.searchsorted(values, tuning.params["gamma"]))
    slack = 2 * se[place]
    soak.count("interval of the regret", tuning.regret.low - slack <= mean[place] <= tuning.regret.high + slack)
    if posterior is not None:
        difference = truth[place] - truth[int(mean.argmin())]
        unsure = 2 * difference.std(ddof=1) / math.sqrt(len(difference))
        soak.count("regret gap", difference.mean() <= posterior.regret_gap + unsure)
        soak.count("interval of the search", posterior.low - slack <= mean[place] <= posterior.high + slack)
    return f"intervals of {policy.name} on {problem.name}"


def check_exact_regret(soak: Soak, dice: random.Random) -> str:
    """Compare a simulation with the exact regret."""
    problem = bt.Bernoulli(arms=2, prior=dice.choice(((1, 1), (2, 5))))
    policy, horizon, value = (
        dice.choice(list(TUNED_POLICIES.values()))(),
        dice.choice((5, 12, 20)),
        dice.choice((0.2, 0.5, 1.0)),
    )
    exact = float(bt.exact.compute_exact_regret(policy, problem, [value], horizon=horizon).regret[0])
    sample = bt.simulate(policy, problem, [value], horizon=horizon, runs=20_000, seed=dice.randint(0, 10**9))[0]
    difference = abs(sample.mean() - exact) / (sample.std(ddof=1) / math.sqrt(len(sample)))
    expect(
        difference < 5, f"{policy.name} {value} at {horizon}: {sample.mean()} but exactly {exact} ({difference:.1f} se)"
    )
    return f"exact {policy.name}"


def check_deployed(soak: Soak, dice: random.Random) -> str:
    """Save and load a policy at random moments. It must choose as one that was not."""
    policy = dice.choice(DEPLOYED_POLICIES)
    arms, horizon = dice.choice((2, 6)), 200
    gamma = {parameter.name: parameter.resolve(arms, horizon).scale_from_unit(0.3) for parameter in policy.parameters}
    one, two = (bt.deploy(policy, gamma, arms=arms, horizon=horizon, seed=7) for _ in range(2))
    path = soak.folder / "live.json"
    for _ in range(150):
        arm = one.select_arm()
        expect(arm == two.select_arm(), f"{policy.name}: a loaded policy chooses another arm")
        reward = float(dice.random() < 0.3 + 0.1 * int(arm))
        one.update(arm, reward)
        two.update(arm, reward)
        if dice.random() < 0.05:
            two.save(path)
            two = bt.DeployedPolicy.load(path)
    return f"deployed {policy.name}"


KINDS = {check_same_answer: 12, check_kills: 1, check_intervals: 6, check_exact_regret: 2, check_deployed: 2}


def measure_memory() -> float:
    """Resident memory of this process, in MB."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main(minutes: float = 60, seed: int = 0) -> int:
    start = time.monotonic()
    left = [60 * minutes]
    marks: list[tuple[float, float]] = []
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder))
        while left[0] > 0:
            dice = random.Random(seed * 1_000_003 + number)
            kind = dice.choices(list(KINDS), list(KINDS.values()))[0]
            try:
                last = kind(soak, dice)
            except Exception as error:
                print(
                    f"BROKEN after {number} studies: seed {seed}, study {number}, {kind.__name__}: {error!r}",
                    flush=True,
                )
                return 1
            soak.seen[kind.__name__] += 1
            number += 1
            spent = time.monotonic() - start
            left[0] = 60 * minutes - spent
            if number % 25 == 0:
                marks.append((spent, measure_memory()))
                rates = ", ".join(f"{name} {held}/{tries}" for name, (held, tries) in soak.held.items())
                print(
                    f"{spent / 60:5.1f} min, {number:,} studies, {marks[-1][1]:.0f} MB; {rates}; last: {last}",
                    flush=True,
                )
    late = [size for at, size in marks if at > 30 * minutes]
    if len(late) > 4:
        half = len(late) // 2
        before, after = max(late[:half]), min(late[half:])
        expect(after <= 1.15 * before, f"memory grew from {before:.0f} to {after:.0f} MB in the second half")
    print(f"kept every promise: {number:,} studies in {minutes:g} minutes; {dict(soak.seen)}; statements {soak.held}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*(float(word) for word in sys.argv[1:2]), *(int(word) for word in sys.argv[2:3])))
