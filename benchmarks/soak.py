"""Random studies for as long as you like, each of which must keep what the product promises.

    python benchmarks/soak.py [MINUTES] [SEED]          (or: make soak MINUTES=60)

- a search spends its budget at most, and every number is finite;
- the same seed gives the same answer, on one thread, two threads or two processes;
- a study that is killed or interrupted, again and again, ends as one that was not;
- 95% intervals hold the truth at about their rate; simulations agree with exact regrets;
- a deployed policy that is saved and loaded goes on as if nothing had happened;
- memory does not grow once everything was seen.

The first broken promise ends it with the seed that repeats it.
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
ONE = {"ucb1": bt.UCB1, "ts": bt.Thompson}


class Broken(Exception):
    """A promise was not kept."""


def expect(kept: bool, *told: Any) -> None:
    if not kept:
        raise Broken(" ".join(map(str, told)))


class Soak:
    """What was seen so far."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.seen: Counter[str] = Counter()
        self.held: dict[str, list[int]] = {}

    def count(self, statement: str, held: bool) -> None:
        """Remember whether a 95% statement held."""
        tally = self.held.setdefault(statement, [0, 0])
        tally[0] += held
        tally[1] += 1
        rate, tries = tally[0] / tally[1], tally[1]
        expect(
            tries < 50 or rate >= 0.92 - 4 * math.sqrt(0.92 * 0.08 / tries),
            f"{statement!r} held in {rate:.1%} of {tries} studies",
        )


def any_study(dice: random.Random) -> tuple[Any, Any, int]:
    """A policy, a problem that it can play, and a horizon."""
    shelf = collect_policies()
    while True:
        policy, problem = shelf[dice.choice(list(shelf))], PROBLEMS[dice.choice(list(PROBLEMS))](dice)
        horizon = dice.choice((20, 60, 150, 300))
        try:
            made = policy()
            build_spec(made, problem, horizon=horizon)
        except bt.InvalidRequest:
            continue
        return made, problem, horizon


def same_answer(soak: Soak, dice: random.Random) -> str:
    policy, problem, horizon = any_study(dice)
    tuner, budget = dice.choice(TUNERS)(), dice.choice((176, 250, 400))
    usual = {"horizon": horizon, "seed": dice.randint(0, 99)}
    simulation = bt.Simulation(regret=dice.choice(("expected", "realised")))
    one_worker, two_workers = bt.Run(workers=1), bt.Run(workers=2)
    if len(policy.parameters) != 1:
        runs = dice.randint(2, 400)
        one = bt.simulate(policy, problem, **usual, runs=runs, simulation=simulation, run=one_worker)
        expect(
            (one == bt.simulate(policy, problem, **usual, runs=runs, simulation=simulation, run=two_workers)).all(),
            "two threads differ",
        )
        expect(bool(np.isfinite(one).all()), "a regret is not finite")
        return f"simulate {policy.name} on {problem.name}"
    search = bt.Search(tuner=tuner, validate=dice.choice((None, 20, 100)))
    simulation = replace(simulation, common_random_numbers=dice.choice((True, False)))
    usual |= {"budget": budget, "search": search, "simulation": simulation}
    one = bt.tune(policy, problem, **usual, run=one_worker)
    expect(one.search_runs <= budget, f"{tuner} spent {one.search_runs} of {budget}")
    expect(math.isfinite(one.regret.mean) and one.regret.low <= one.regret.high, one.regret)
    other = bt.Run(workers=2, executor="processes" if dice.random() < 0.1 else "threads")
    two = bt.tune(policy, problem, **usual, run=other)
    expect(one.to_json() == two.to_json(), f"{policy.name} on {problem.name}: {other} gives another answer")
    expect(bt.results.from_json(one.to_json()).to_json() == one.to_json(), "JSON does not come back as it went")
    repr(one)
    return f"tune {policy.name} on {problem.name} with {tuner.name}"


CHILD = """
import json, sys
import banditune as bt
told = json.loads(sys.argv[1])
problem = bt.Bernoulli(arms=told["arms"])
policy = bt.UCB1(noise=0.5) if told["policy"] == "ucb1" else bt.Thompson(prior=(1, 1))
done = bt.tune(policy, problem, horizon=told["horizon"], budget=told["budget"], validate=told["validate"],
               seed=told["seed"], ledger=told["ledger"], jobs=2)
done.save(told["out"])
"""


def hears_interrupts() -> None:
    """What a shell starts in the background does not hear Ctrl-C, and neither do its children, unless told."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def killed(soak: Soak, dice: random.Random) -> str:
    """Kill a study at random moments; it must end as one that nobody disturbed."""
    told = {
        "policy": dice.choice(list(ONE)),
        "arms": dice.choice((3, 10)),
        "horizon": dice.choice((2000, 5000)),
        "budget": 400,
        "validate": 300,
        "seed": dice.randint(0, 99),
    }
    ledger, out = soak.folder / "study.ledger", soak.folder / "out.json"
    for path in soak.folder.iterdir():
        path.unlink()
    request = json.dumps(told | {"ledger": str(ledger), "out": str(out)})
    kills = 0
    while not out.exists():
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, request], stderr=subprocess.DEVNULL, preexec_fn=hears_interrupts
        )
        try:
            # Later kills wait longer, so that it comes to an end.
            child.wait(dice.uniform(0.3, 1.5 + kills / 2))
        except subprocess.TimeoutExpired:
            child.send_signal(dice.choice((signal.SIGKILL, signal.SIGINT, signal.SIGTERM)))
            kills += 1
            child.wait(60)
        expect(kills < 60, "a study did not end after 60 kills")
    usual = {key: told[key] for key in ("horizon", "budget", "seed")}
    calm = bt.tune(
        ONE[told["policy"]](), bt.Bernoulli(arms=told["arms"]), **usual, search=bt.Search(validate=told["validate"])
    )
    expect(bt.load_result(out).to_json() == calm.to_json(), f"{told} ended differently after {kills} kills")
    soak.seen["kills"] += kills
    return f"{kills} kills of {told['policy']}"


def intervals(soak: Soak, dice: random.Random) -> str:
    """Whether what a tuning says of itself is true, by many more runs."""
    policy, problem = dice.choice(list(ONE.values()))(), PROBLEMS[dice.choice(("bernoulli", "mixture", "beta"))](dice)
    horizon, seed = dice.choice((100, 300)), dice.randint(0, 10**9)
    tuning = bt.tune(
        policy, problem, horizon=horizon, budget=dice.choice((200, 1000)), seed=seed, search=bt.Search(validate=500)
    )
    belief = tuning.posterior
    values = np.unique([*np.linspace(0, 1, 26), tuning.params["gamma"]])
    truth = bt.simulate(policy, problem, values, horizon=horizon, runs=6000, seed=seed + 1)
    mean, se = truth.mean(axis=1), truth.std(axis=1, ddof=1) / math.sqrt(truth.shape[1])
    place = int(np.searchsorted(values, tuning.params["gamma"]))
    slack = 2 * se[place]
    soak.count("interval of the regret", tuning.regret.low - slack <= mean[place] <= tuning.regret.high + slack)
    if belief is not None:
        apart = truth[place] - truth[int(mean.argmin())]
        unsure = 2 * apart.std(ddof=1) / math.sqrt(len(apart))
        soak.count("nothing beats it by more", apart.mean() <= belief.regret_gap + unsure)
        soak.count("its own interval", belief.low - slack <= mean[place] <= belief.high + slack)
    return f"intervals of {policy.name} on {problem.name}"


def exactly(soak: Soak, dice: random.Random) -> str:
    """Whether a simulation agrees with the regret that is computed."""
    problem = bt.Bernoulli(arms=2, prior=dice.choice(((1, 1), (2, 5))))
    policy, horizon, value = dice.choice(list(ONE.values()))(), dice.choice((5, 12, 20)), dice.choice((0.2, 0.5, 1.0))
    exact = float(bt.exact.compute_exact_regret(policy, problem, [value], horizon=horizon).regret[0])
    sample = bt.simulate(policy, problem, [value], horizon=horizon, runs=20_000, seed=dice.randint(0, 10**9))[0]
    apart = abs(sample.mean() - exact) / (sample.std(ddof=1) / math.sqrt(len(sample)))
    expect(apart < 5, f"{policy.name} {value} at {horizon}: {sample.mean()} but exactly {exact} ({apart:.1f} se)")
    return f"exact {policy.name}"


def deployed(soak: Soak, dice: random.Random) -> str:
    """A policy that is saved and loaded now and then chooses as one that is not."""
    policy = dice.choice((bt.UCB1, bt.Thompson, bt.EpsilonGreedy, bt.GaussianThompson))()
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


KINDS = {same_answer: 12, killed: 1, intervals: 6, exactly: 2, deployed: 2}


def memory() -> float:
    """Resident memory of this process, in MB."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6


def main(minutes: float = 60, seed: int = 0) -> int:
    began = time.monotonic()
    left = [60 * minutes]
    marks: list[tuple[float, float]] = []
    number = 0
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(Path(folder))
        while left[0] > 0:
            dice = random.Random(seed * 1_000_003 + number)
            kind = dice.choices(list(KINDS), list(KINDS.values()))[0]
            try:
                told = kind(soak, dice)
            except Exception as error:
                print(
                    f"BROKEN after {number} studies: seed {seed}, study {number}, {kind.__name__}: {error!r}",
                    flush=True,
                )
                return 1
            soak.seen[kind.__name__] += 1
            number += 1
            spent = time.monotonic() - began
            left[0] = 60 * minutes - spent
            if number % 25 == 0:
                marks.append((spent, memory()))
                rates = ", ".join(f"{name} {held}/{tries}" for name, (held, tries) in soak.held.items())
                print(
                    f"{spent / 60:5.1f} min, {number:,} studies, {marks[-1][1]:.0f} MB; {rates}; last: {told}",
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
