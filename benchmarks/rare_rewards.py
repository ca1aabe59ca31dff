"""Tuning UCB1 where rewards are rare: is the answer good, and is what is stated of it true?

python benchmarks/rare_rewards.py pools --seed 1 --out FILE     play random problems at many widths (a GPU: two minutes)
python benchmarks/rare_rewards.py product --seed 2 --problems 40 --truths 2000 --workers 16
                                the product itself on other problems, truths from other runs

Problems have click rates of 0.1 to 2%, 5 to 60 arms and horizons of 3,000 to 200,000. The first one, on which most answers
were once wrong, is 46 arms at 0.43% and 30,000 rounds.
"""

from __future__ import annotations

import argparse
import multiprocessing
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import NamedTuple

import numpy as np
from stored import Stored, play, save

import banditune as bt

WIDTHS = np.geomspace(1e-4, 1, 97)
"""24 a decade."""


class Case(NamedTuple):
    """A problem and its horizon."""

    name: str
    problem: bt.Bernoulli
    horizon: int


POLICIES = {"ucb1": bt.UCB1(noise=0.5), "ts": bt.Thompson(prior=(1, 1))}
FIRST = Case("first", bt.Bernoulli(arms=46, prior=(3.35722, 771.387)), 30_000)


def cases(seed: int, count: int) -> list[Case]:
    """Problems drawn at random."""
    rng = np.random.default_rng([seed, 21])

    def drawn(low: float, high: float) -> float:
        return float(np.exp(rng.uniform(np.log(low), np.log(high))))

    found = []
    for number in range(count):
        arms, horizon, rate, shape = (
            round(drawn(5, 60)),
            round(drawn(3000, 200_000)),
            drawn(0.001, 0.02),
            drawn(0.5, 10),
        )
        prior = (round(shape, 4), round(shape * (1 - rate) / rate, 3))
        found.append(Case(f"{number}", bt.Bernoulli(arms=arms, prior=prior), horizon))
    return found


def pools(asked: argparse.Namespace) -> None:
    """Play all problems at all widths."""
    found: dict[str, Stored] = {}
    drawn = cases(asked.seed, asked.problems)
    policy = POLICIES[asked.policy]
    for case in [FIRST, *drawn]:
        name = f"{policy.name} {case.name}"
        found[name] = play(policy, case.problem, WIDTHS, case.horizon, asked.runs, asked.truths, asked.device)
        best = found[name].truth.argmin()
        print(f"{name}: {case.problem}, {case.horizon}: {WIDTHS[best]:.4g} {found[name].truth[best]:.4g}", flush=True)
    save(asked.out, found)


class Tuned(NamedTuple):
    """A tuning by the product: its answer, the stated gap, whether it stands for what was wanted, and its runs."""

    value: float
    gap: float
    stands: bool
    runs: int


def one(case: Case, seed: int, within: float | None) -> Tuned:
    """Tune once."""
    goal = {"budget": 1000} if within is None else {"precision": within}
    found = bt.tune(
        bt.UCB1(noise=0.5),
        case.problem,
        horizon=case.horizon,
        seed=seed,
        include=("no_lower_bound",),
        search=bt.Search(validate=2),
        run=bt.Run(workers=1),
        **goal,
    )
    belief = found.posterior
    stands = not belief.misfit if within is None else belief.meets_precision(within)
    return Tuned(found.params["gamma"], belief.regret_gap, stands, found.search_runs)


def truth_at(case: Case, values: list[float], runs: int) -> tuple[np.ndarray, float]:
    """True regrets of these answers, and the lowest of a grid that is fine around them; the same runs for all widths."""
    middle = float(np.median(values))
    fine = np.geomspace(max(middle / 5, 1e-5), min(1, 4 * middle), 22)
    widths = np.unique([*values, *fine, *np.geomspace(1e-4, 1, 9)])
    means = bt.simulate(
        bt.UCB1(noise=0.5), case.problem, widths, horizon=case.horizon, runs=runs, seed=1_000_003, run=bt.Run(workers=1)
    ).mean(axis=1)
    return means[np.searchsorted(widths, values)], float(means.min())


def judged(work: tuple[Case, range, int]) -> tuple[str, str, list[tuple[bool, bool, float, int]]]:
    """Tune a problem with these seeds; of each tuning whether it stands, holds, its excess in % and its runs."""
    case, seeds, runs = work
    tunings = [(within, one(case, seed, within)) for seed in seeds for within in (0.05, None)]
    lost, best = truth_at(case, [tuning.value for _, tuning in tunings], runs)
    lines = []
    for (within, tuning), at in zip(tunings, lost, strict=True):
        allowed = max(tuning.gap, (within or 0) * at)
        lines.append((tuning.stands, bool(at - best <= allowed * (1 + 1e-9)), (at / best - 1) * 100, tuning.runs))
    ((successes, failures),) = case.problem.prior
    rate = successes / (successes + failures)
    told = f"{case.name}: {case.problem.arms} arms, rate {rate:.2%}, {case.horizon:,} rounds"
    return case.name, told, lines


def product(asked: argparse.Namespace) -> None:
    """The product on problems drawn at random, ten seeds each, and on the first one with many."""
    first = [(FIRST, range(part, part + 10), asked.truths) for part in range(0, asked.first, 10)]
    others = [(case, range(10), asked.truths) for case in cases(asked.seed, asked.problems)]
    # Long ones first: none is left when the others are over.
    work = first + sorted(others, key=lambda one: -one[0].horizon * one[0].problem.arms)
    with ProcessPoolExecutor(asked.workers, multiprocessing.get_context("spawn")) as workers:
        done = [worker.result() for worker in as_completed([workers.submit(judged, piece) for piece in work])]
    for title, some in (
        ("first", [one for one in done if one[0] == "first"]),
        ("others", [one for one in done if one[0] != "first"]),
    ):
        if some:
            sum_up(title, some)


def sum_up(title: str, done: list[tuple[str, str, list[tuple[bool, bool, float, int]]]]) -> None:
    """Rates over tunings, and the worst problem."""
    for name, start in (("within 5%", 0), ("1,000 runs", 1)):
        wrong = dict.fromkeys(range(len(done)), 0)
        lines = []
        for number, (_, told, tunings) in enumerate(done):
            for stands, holds, excess, runs in tunings[start::2]:
                lines.append((stands, holds, excess, runs))
                wrong[number] += stands and not holds
            if wrong[number] > 2:
                print(f"  {name}: {wrong[number]} wrong on {told}")
        stood = [holds for stands, holds, _, _ in lines if stands]
        excess, runs = np.array([line[2] for line in lines]), np.array([line[3] for line in lines])
        rate, count = float(np.mean(stood)), len(stood)
        print(
            f"{title}, {name}: {len(lines)} tunings, {count} state a gap, of which {rate:.1%} ± "
            f"{(rate * (1 - rate) / count) ** 0.5:.1%} hold; most wrong on one problem: {max(wrong.values())}; excess mean "
            f"{excess.mean():.2f} ± {excess.std() / len(excess) ** 0.5:.2f}%, "
            f"95% of tunings {np.quantile(excess, 0.95):.1f}%; median runs {np.median(runs):,.0f}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["pools", "product"])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--policy", choices=list(POLICIES), default="ucb1")
    parser.add_argument("--problems", type=int, default=24)
    parser.add_argument("--first", type=int, default=100, help="seeds of the first problem")
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--truths", type=int, default=40_000)
    parser.add_argument("--device", default="gpu")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("rare.npz"))
    asked = parser.parse_args()
    {"pools": pools, "product": product}[asked.what](asked)


if __name__ == "__main__":
    main()
