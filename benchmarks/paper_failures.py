"""Measurements of failures in the paper that no reading explains: linear lints and beta ucb1.

python benchmarks/paper_failures.py stored               # also blur, few, schedules: need the pools of `paper_pools.py`
python benchmarks/paper_failures.py ridge --runs 1000    # also noise, luck: simulate LinTS
python benchmarks/paper_failures.py features
python benchmarks/paper_failures.py rare

All but `rare` are about lints. There 0.2 and 0.3 are near enough to the best width, and all other tenths fail. Each but
`features` prints failures of Uniform and Halving in %, and most print the regret of the answers, beside the paper's.

`stored` tunes the stored pool. `ridge` simulates LinTS with G = I + sum of x x', one reading of the paper's lambda = 1.
`noise` simulates our LinTS. Both have the same reward noise for all tenths. `features` draws features once for all
instances. `blur` adds the noise of rewards to each run, as if regret were the best mean times the horizon less the
rewards. `few` draws tunings from pools of 1,000 runs, `luck` from ten other pools of 10,000. `schedules` lets Uniform
keep to its budget and Halving keep the smaller half, on shared and on separate instances. `rare` counts runs of
beta ucb1 that are so bad that NoTeS fails.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
from collections.abc import Callable

import numpy as np
from benchmark_problems import PAPER_ROWS, PaperRow
from paper_differences import OWN_INSTANCES, SHARED_INSTANCES, load_pool

import banditune as bt
from banditune.paper.lockstep_tunings import (
    BASELINE_POINTS,
    PAPER_EPSILON,
    LockstepSearch,
    make_baseline_grid_search,
    make_cell_rng,
    tune_in_lockstep,
)
from banditune.paper.paper_cells import FAILURE_BUDGETS, REGRET_BUDGETS
from banditune.paper.paper_rows import get_tuned_range
from banditune.paper.published_numbers import PaperCellKey, load_published_numbers
from banditune.paper.run_pools import RunSource, make_run_source
from banditune.tuners.noisy_ternary_search import allocate_pairs, count_iterations

TUNINGS = 20_000
TENTHS = np.linspace(0, 1, BASELINE_POINTS)
NEAR = (0.2, 0.3)
"""Tenths within 0.1 of the best width of lints, which is between them."""

LINTS = next(row for row in PAPER_ROWS if row.name == "linear lints")
BETA = next(row for row in PAPER_ROWS if row.name == "beta ucb1")


def print_failures(
    name: str, tuners: dict[str, Callable[[int], LockstepSearch]], source: RunSource, regrets: np.ndarray
) -> None:
    """Failures and regrets after tuning, each beside the paper's."""
    means = regrets.mean(axis=1, dtype=float)
    fails = 100.0 * (np.abs(np.subtract.outer(source.unit_points, NEAR)).min(axis=1) > 1e-9)
    print(f"\n{name}; tenths lose {', '.join(f'{mean:.1f}' for mean in means[source.find_nearest(TENTHS)][:6])}, ...")
    for tuner, make in tuners.items():
        line = f"  {tuner:8}"
        for budget in sorted({*REGRET_BUDGETS, *FAILURE_BUDGETS}):
            outcomes = tune_in_lockstep(make(budget), source, TUNINGS, make_cell_rng(0, name, tuner, budget))
            failed, lost = (
                load_published_numbers().get(PaperCellKey(table, LINTS.name, tuner, budget))
                for table in ("failures", "regret")
            )
            line += f"  {budget}:"
            line += f" {outcomes.compute_mean(fails):.2f}% / {failed}%" if failed is not None else ""
            line += (
                f" {outcomes.compute_mean(means):.1f} ± {outcomes.compute_error(means, regrets):.1f} / {lost}"
                if lost
                else ""
            )
        print(line, flush=True)


def select_grid_searches(
    tuners: dict[str, Callable[[int], LockstepSearch]],
) -> dict[str, Callable[[int], LockstepSearch]]:
    """The two tuners on tenths."""
    return {name: tuners[name] for name in ("uniform", "halving")}


def print_both(name: str, source: RunSource, regrets: np.ndarray) -> None:
    """With shared instances, and with instances of each value's own."""
    print_failures(f"{name}, instances shared", select_grid_searches(SHARED_INSTANCES), source, regrets)
    print_failures(f"{name}, instances apart", select_grid_searches(OWN_INSTANCES), source, regrets)


def simulate_tenths(policy: bt.kernel.Policy, runs: int) -> tuple[RunSource, np.ndarray]:
    """A pool at the tenths, with the same noise for all."""
    regrets = bt.simulate(
        policy,
        LINTS.problem,
        TENTHS,
        horizon=LINTS.horizon,
        runs=runs,
        seed=162,
        simulation=bt.Simulation(regret="realised"),
    )
    return make_run_source(LINTS.name, get_tuned_range(LINTS), TENTHS, regrets), regrets


def print_feature_sets(sets: int = 40, runs: int = 1000) -> None:
    """What widths lose on sets of features that are drawn once: if 0.4 is best on some, tunings on these fail for good."""
    shape, widths = (LINTS.problem.arms, LINTS.problem.dims), (0.2, 0.3, 0.4)
    means = []
    for number in range(sets):
        features = np.random.default_rng(number).uniform(-1, 1, shape)
        problem = bt.Linear(features=features, noise=LINTS.problem.noise)
        regrets = bt.simulate(
            LINTS.policy,
            problem,
            widths,
            horizon=LINTS.horizon,
            runs=runs,
            seed=162,
            simulation=bt.Simulation(regret="realised"),
        )
        means.append(regrets.mean(axis=1))
    for width, share in zip(widths, np.array(means).T / np.array(means)[:, 1], strict=True):
        print(f"{width} loses {share.min():.2f} to {share.max():.2f} of what 0.3 does on {sets} sets of features")


def add_reward_noise(source: RunSource) -> RunSource:
    """Runs with the noise of 10,000 rewards added."""
    sd = LINTS.policy.noise * math.sqrt(LINTS.horizon)

    def draw(rows: np.ndarray, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        regrets = source.draw(rows, columns, rng)
        return regrets + rng.normal(0, sd, regrets.shape)

    return dataclasses.replace(source, draw=draw)


def print_small_pools(source: RunSource, regrets: np.ndarray, pools: int = 60, runs: int = 1000) -> None:
    """Failures on small pools."""
    rng = np.random.default_rng(1)
    some = (regrets[:, rng.choice(regrets.shape[1], runs, replace=False)] for _ in range(pools))
    print_failures_by_pool(
        [make_run_source(LINTS.name, source.range, source.unit_points, pool) for pool in some], 1000, rng
    )


def print_other_pools(runs: int, pools: int = 10) -> None:
    """Failures on pools of other instances, in which bad runs at 0.3 may be more. Larger widths are taken never to win."""
    widths = TENTHS[1:6]
    sources = []
    for number in range(pools):
        regrets = np.full((BASELINE_POINTS, runs), 1e6)
        regrets[1:6] = bt.simulate(
            LINTS.policy,
            LINTS.problem,
            widths,
            horizon=LINTS.horizon,
            runs=runs,
            seed=1000 + number,
            simulation=bt.Simulation(regret="realised", common_random_numbers=False),
        )
        sources.append(make_run_source(LINTS.name, get_tuned_range(LINTS), TENTHS, regrets))
        regret_at_best = regrets[3]
        print(
            f"  0.3 loses {regret_at_best.mean():.1f}; over 1,350: {(regret_at_best > 1350).sum()}, "
            f"over 2,700: {(regret_at_best > 2700).sum()}",
            flush=True,
        )
    print_failures_by_pool(sources, TUNINGS, np.random.default_rng(1))


def print_failures_by_pool(pools: list[RunSource], tunings: int, rng: np.random.Generator) -> None:
    """Failures on each of several pools: their mean and largest share."""
    for tuner, make in select_grid_searches(SHARED_INSTANCES).items():
        for budget in FAILURE_BUDGETS:
            ends = (pool.unit_points[make(budget)(pool, tunings, rng)[0]] for pool in pools)
            shares = [100 * np.mean(np.abs(np.subtract.outer(end, NEAR)).min(axis=1) > 1e-9) for end in ends]
            failed = load_published_numbers()[PaperCellKey("failures", LINTS.name, tuner, budget)]
            print(f"  {tuner} {budget}: {np.mean(shares):.2f}%, at most {max(shares):.2f}% / {failed}%", flush=True)


def make_smaller_halving(budget: int, *, shared: bool) -> LockstepSearch:
    """Halving 11, 5, 2, 1: three of the four iterations are enough."""
    parts = [budget * 2**step / 15 for step in range(4)]
    steps = zip(parts, (BASELINE_POINTS, 5, 2), (5, 2, 1), strict=False)
    return make_baseline_grid_search(
        [(max(1, int(part / points)), kept) for part, points, kept in steps], shared=shared
    )


def print_schedules(source: RunSource, regrets: np.ndarray) -> None:
    """Other sizes than ours."""
    for shared in (True, False):
        tuners = {
            "uniform": lambda budget, shared=shared: make_baseline_grid_search(
                [(budget // BASELINE_POINTS, 1)], shared=shared
            ),
            "halving": lambda budget, shared=shared: make_smaller_halving(budget, shared=shared),
        }
        print_failures(f"fewer runs, instances {'shared' if shared else 'apart'}", tuners, source, regrets)


@dataclasses.dataclass(frozen=True)
class GapRewards(bt.BetaRewards):
    """Instances of ten uniform means whose best one is `gap` above the second, which is `SECOND` or more."""

    gap: float = 0.2

    name = "beta-apart"

    @property
    def share(self) -> float:
        """How many of all instances are so."""
        second, weight = self.seconds
        return float(90 * weight.sum() * (second[1] - second[0]))

    @property
    def seconds(self) -> tuple[np.ndarray, np.ndarray]:
        """The second best mean on a fine grid, with its density."""
        second = np.linspace(SECOND, 1 - self.gap, 20_001)
        return second, second**8 * (1 - self.gap - second)

    def sample(self, size: int, rng: np.random.Generator) -> bt.kernel.Instances:
        second, weight = self.seconds
        chosen = rng.choice(second, size, p=weight / weight.sum())
        best = rng.uniform(chosen + self.gap, 1)
        others = rng.uniform(0, chosen[:, None], (size, self.arms - 2))
        means = np.column_stack([best, chosen, others])
        return bt.kernel.Instances(rng.permuted(means, axis=1))


BAD = 500
"""Runs of beta ucb1 that lose more are not usual."""

SECOND = 0.5
"""An arm that pays less than this on average is never preferred for long to one that paid nothing once, at this width."""


def print_rare_failures(row: PaperRow, runs: int) -> None:
    """NoTeS answers 0.247, which fails, if 4/27 loses more than 8/27 in its third comparison, by one very bad run.

    Only where the best arm is far above the others can a run lose so much: such instances are played, and weighed. The
    other runs of the comparison are usual ones.
    """
    rng = np.random.default_rng(0)
    for policy in (row.policy, bt.policies.UCB1Step(noise=0.5)):
        low, high = bt.simulate(policy, row.problem, [4 / 27, 8 / 27], horizon=row.horizon, runs=1000, seed=7)
        low = low[low < BAD]
        print(f"\n{policy.name}: usual runs lose {low.mean():.1f} at 4/27 and {high.mean():.1f} at 8/27")
        for budget in FAILURE_BUDGETS[:2]:
            pairs = allocate_pairs(budget, count_iterations(PAPER_EPSILON))[2]
            needed = np.sort(
                rng.choice(high, (10_000, pairs)).sum(axis=1) - rng.choice(low, (10_000, pairs - 1)).sum(axis=1)
            )
            problem = GapRewards(arms=10, gap=float(np.quantile(needed, 0.01)) / row.horizon)
            lost = bt.simulate(
                policy,
                problem,
                4 / 27,
                horizon=row.horizon,
                runs=runs,
                seed=8,
                simulation=bt.Simulation(regret="realised"),
            )[0]
            fails = np.searchsorted(needed, lost) / len(needed)
            share = 100 * pairs * problem.share
            failed = load_published_numbers()[PaperCellKey("failures", row.name, "notes", budget)]
            print(
                f"  {budget}: one of {pairs} must lose about {needed.mean():.0f}; {runs:,} runs where the gap is over "
                f"{problem.gap:.3f} ({problem.share:.1%} of instances), worst {lost.max():.0f}: {share * fails.mean():.3f} "
                f"± {share * fails.std() / math.sqrt(runs):.3f}% of tunings / {failed}%",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "what", choices=["stored", "ridge", "noise", "features", "blur", "few", "luck", "schedules", "rare"]
    )
    parser.add_argument("--runs", type=int, default=10_000, help="at each width, where runs are played")
    arguments = parser.parse_args()
    if arguments.what == "rare":
        print_rare_failures(BETA, arguments.runs)
        return
    if arguments.what == "features":
        print_feature_sets()
        return
    if arguments.what == "luck":
        print_other_pools(arguments.runs)
        return
    if arguments.what == "ridge":
        # noise^2 / covariance is what stands beside the sum.
        print_both(
            "G = I + sum of x x'",
            *simulate_tenths(bt.LinTS(prior=(0, LINTS.policy.noise**2), noise=0.5), arguments.runs),
        )
        return
    if arguments.what == "noise":
        print_both("the same noise", *simulate_tenths(LINTS.policy, arguments.runs))
        return
    source, regrets = load_pool(LINTS)
    if arguments.what == "stored":
        print_both("stored", source, regrets)
    elif arguments.what == "blur":
        print_both("the best mean less what was paid", add_reward_noise(source), regrets)
    elif arguments.what == "few":
        print_small_pools(source, regrets)
    else:
        print_schedules(source, regrets)


if __name__ == "__main__":
    main()
