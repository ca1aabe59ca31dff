"""Every use of banditune by the requests: the only module here to change when the package's names change."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

import banditune as bt

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from helpers.settings import group_settings

Answer = tuple[dict[str, Any], list[Any]]
"""A headline, under labels of our own, and results in JSON whose numbers are kept without their names."""

# ---------------------------------------------------------------- policies and problems

FEATURES = np.random.default_rng(11).normal(size=(8, 3))
TABLES = np.random.default_rng(12).random((9, 60, 3))
SOME_MEANS, TWO_ARMS = [(0.6, 0.4, 0.2), (0.3, 0.5, 0.7), (0.5, 0.5, 0.9)], [(0.8, 0.2), (0.35, 0.65)]
BINARY_PAST = [[(3 + i, 9 - i % 4), (5, 5 + i), (2 + i % 3, 7)] for i in range(9)]
REAL_PAST = [[(0.1 * i, 0.2), (0.5, 0.1 + 0.01 * i), (0.3 - 0.02 * i, 0.3)] for i in range(9)]
NOISE_SHAPE = (-1.6, -0.7, -0.2, 0.1, 0.3, 0.8, 1.3)


def policy(name: str) -> Any:
    """A policy by its name on the shelf."""
    return {
        "ucb1": lambda: bt.UCB1(),
        "ucb1 noise": lambda: bt.UCB1(noise=0.5),
        "ucb1-step": lambda: bt.policies.UCB1Step(noise=0.5),
        "ts": lambda: bt.Thompson(),
        "ts prior": lambda: bt.Thompson(prior=(2, 3)),
        "gaussian-ts": lambda: bt.GaussianThompson(),
        "epsilon-greedy": lambda: bt.EpsilonGreedy(),
        "explore-then-commit": lambda: bt.ExploreThenCommit(),
        "greedy": lambda: bt.Greedy(),
        "linucb": lambda: bt.LinUCB(),
        "linucb theorem": lambda: bt.LinUCB(prior=(0, 1), noise=0.5, confidence="theorem"),
        "lints": lambda: bt.LinTS(),
        "lints factor": lambda: bt.LinTS(prior=(0, 1), noise=0.5, factor=2.0),
        "ucb-glm": lambda: bt.UCBGLM(),
        "glm-tsl": lambda: bt.GLMTSL(),
        "lin-epsilon-greedy": lambda: bt.policies.LinEpsilonGreedy(),
        "lin-greedy": lambda: bt.policies.LinGreedy(),
        "glm-epsilon-greedy": lambda: bt.policies.GLMEpsilonGreedy(),
        "glm-greedy": lambda: bt.policies.GLMGreedy(),
        "gittins": lambda: bt.exact.Gittins(),
        "gittins discount": lambda: bt.exact.Gittins(discount=0.9),
        "optimal": lambda: bt.exact.Optimal(),
        "optimal-mixture": lambda: bt.exact.OptimalMixture(),
        "own": lambda: bt.define_policy("own", explore, parameters=[bt.Parameter("rate", 0, 1, textbook=0.1)]),
        "own log": lambda: bt.define_policy(
            "own", explore, parameters=bt.Parameter("rate", 0.001, 1, 0.5, scale="log")
        ),
        "own two": lambda: bt.define_policy(
            "own-two", decay, parameters=[bt.Parameter("rate", 0, 1, 0.5), bt.Parameter("decay", 0, 1, 0.1)]
        ),
        "own linear": lambda: bt.kernel.define_ridge_policy(
            "perturbed", perturb, parameters=[bt.Parameter("width", 0, 1, textbook=0.5)], noise=0.5
        ),
        "in turn": lambda: bt.define_policy("in-turn", take_turns),
        "mabwiser": lambda: bt.wrap_policy(make_mabwiser, bt.Parameter("alpha", 0, 1, textbook=1)),
        "river": lambda: bt.wrap_policy(make_river, bt.Parameter("delta", 0, 1, textbook=1), name="river"),
        "own object": lambda: bt.wrap_policy(
            OwnObject, bt.Parameter("rate", 0, 1, textbook=0.3), name="object", select="ask", update="tell"
        ),
    }[name]()


def problem(name: str) -> Any:
    """A problem by a name of ours."""
    return {
        "bernoulli": lambda: bt.Bernoulli(arms=4),
        "two arms": lambda: bt.Bernoulli(arms=2),
        "two arms prior": lambda: bt.Bernoulli(arms=2, prior=[(2, 1), (3, 4)]),
        "priors": lambda: bt.Bernoulli(arms=4, prior=[(1, 1), (2, 3), (0.5, 0.5), (8, 2)]),
        "beta": lambda: bt.BetaRewards(arms=4, prior=(2, 3), v=3),
        "gaussian": lambda: bt.Gaussian(arms=4, prior=(0.5, 0.7), noise=1.5),
        "gaussian residuals": lambda: bt.Gaussian(arms=4, noise=0.5, residuals=NOISE_SHAPE),
        "linear": lambda: bt.Linear(arms=8, dims=3),
        "linear features": lambda: bt.Linear(features=FEATURES, prior=(0.2, 0.5), noise=0.4, intercept=True),
        "linear drawn": lambda: bt.Linear(arms=8, feature_prior=(np.zeros(3), np.diag([1.0, 0.5, 0.1])), noise=0.7),
        "logistic": lambda: bt.Logistic(arms=8, dims=3),
        "logistic features": lambda: bt.Logistic(features=FEATURES, prior=(np.zeros(3), np.diag([1.0, 0.5, 0.1]))),
        "mixture": lambda: bt.Mixture(SOME_MEANS, weights=[0.5, 0.3, 0.2]),
        "two mixed": lambda: bt.Mixture(TWO_ARMS),
        "warm-up": lambda: bt.problems.two_point_mixture(),
        "tables": lambda: bt.RewardTable(TABLES),
        "all tables": lambda: bt.RewardTable(TABLES, population=True),
        "one table": lambda: bt.RewardTable(TABLES[0]),
        "binary campaigns": lambda: bt.Campaigns(BINARY_PAST),
        "unit campaigns": lambda: bt.Campaigns(BINARY_PAST, rewards="unit", v=5, population=True),
        "real campaigns": lambda: bt.Campaigns(REAL_PAST, rewards="real", noise=0.8, arms=2),
        "own": lambda: bt.define_problem("waits", draw_means, pay_exponential, arms=4, options=[1.5]),
        "own by step": lambda: bt.define_problem("seasons", draw_units, pay_by_step, arms=4, rewards="unit"),
        "own features": lambda: bt.define_problem("squares", draw_squares, pay_coin, arms=8, dims=3, rewards="binary"),
        "streams": lambda: bt.define_problem("streams", draw_laws, pay_laws, arms=len(LAWS)),
    }[name]()


@bt.kernel.scalar
def explore(state, setting, step, params, stream):
    if bt.kernel.uniform(stream) < params[0]:
        return bt.kernel.draw_arm(state, stream)
    return bt.kernel.argmax_mean(state)


@bt.kernel.scalar
def decay(state, setting, step, params, stream):
    if bt.kernel.uniform(stream) < params[0] / (1 + params[1] * step):
        return bt.kernel.draw_arm(state, stream)
    return bt.kernel.argmax_mean(state)


@bt.kernel.scalar
def perturb(state, setting, step, params, stream):
    best, highest = 0, -1e308
    bt.kernel.sample_scores(state, setting, params[0], stream)
    for arm in range(setting.arms):
        value = state.arm_values[arm] + 0.1 * state.width[arm] * bt.kernel.normal(stream)
        if value > highest:
            best, highest = arm, value
    return best


@bt.kernel.scalar
def take_turns(state, setting, step, params, stream):
    return int(step) % setting.arms


def draw_means(size, rng):
    return rng.gamma(2, 1, (size, 4))


def draw_units(size, rng):
    return rng.random((size, 4))


def draw_squares(size, rng):
    return 1 / (1 + np.exp(-(FEATURES @ rng.normal(size=(3, size))).T)) ** 2, FEATURES


@bt.kernel.scalar
def pay_exponential(instance, arm, pull, step, stream):
    return instance.means[arm] * bt.kernel.exponential(stream) * instance.options[0] / 1.5


@bt.kernel.scalar
def pay_by_step(instance, arm, pull, step, stream):
    return bt.kernel.uniform(stream) if (step < 30) == (arm == 0) else instance.means[arm]


@bt.kernel.scalar
def pay_coin(instance, arm, pull, step, stream):
    return 1.0 if bt.kernel.uniform(stream) < instance.means[arm] else 0.0


LAWS = (0.0, 0.5, 0.0, 1.0, 2.5, 0.3, 0.4, 0.2, 0.3, 3.0, 6.0, 60.0)
"""Means of the laws that `pay_laws` draws from; the first arm pays 0, so that regret is less the draws themselves."""


def draw_laws(size, rng):
    return np.tile(LAWS, (size, 1))


@bt.kernel.scalar
def pay_laws(instance, arm, pull, step, stream):
    if arm == 1:
        return bt.kernel.uniform(stream)
    if arm == 2:
        return bt.kernel.normal(stream)
    if arm == 3:
        return bt.kernel.exponential(stream)
    if arm == 4:
        return bt.kernel.gamma_variate(stream, 2.5)
    if arm == 5:
        return bt.kernel.gamma_variate(stream, 0.3)
    if arm == 6:
        return bt.kernel.beta(stream, 2.0, 3.0)
    if arm == 7:
        return bt.kernel.beta(stream, 0.2, 0.8)
    if arm == 8:
        return float(bt.kernel.bernoulli(stream, 0.3))
    if arm == 9:
        return float(bt.kernel.binomial(stream, 10, 0.3))
    if arm == 10:
        return float(bt.kernel.binomial(stream, 20, 0.3))
    if arm == 11:
        return float(bt.kernel.binomial(stream, 200, 0.3))
    return 0.0


def make_mabwiser(alpha, arms, seed):
    from mabwiser.mab import MAB, LearningPolicy

    return MAB(list(range(arms)), LearningPolicy.UCB1(alpha=alpha), seed=seed)


def make_river(delta, seed):
    from river import bandit

    return bandit.UCB(delta=delta, burn_in=1, seed=seed)


class OwnObject:
    """A policy of somebody else: epsilon-greedy with methods of its own names."""

    def __init__(self, rate, arms, horizon, seed):
        self.rate, self.rng = rate, np.random.default_rng(seed)
        self.pulls, self.total = np.zeros(arms), np.zeros(arms)

    def ask(self):
        if self.rng.random() < self.rate:
            return int(self.rng.integers(len(self.pulls)))
        return int(np.argmax(self.total / np.maximum(self.pulls, 1)))

    def tell(self, arm, reward):
        self.pulls[arm] += 1
        self.total[arm] += reward


def tuner(name: str, **options: Any) -> Any:
    """A tuner by its name on the shelf."""
    kinds = {
        "two-part": bt.TwoPart,
        "notes": bt.NoTeS,
        "uniform": bt.tuners.Uniform,
        "halving": bt.tuners.SequentialHalving,
        "optuna": bt.tuners.Optuna,
    }
    return kinds[name](**options)


# ---------------------------------------------------------------- verbs


def simulate(
    one: Any, on: Any, values: Any = None, *, horizon: int, runs: int, device: str = "cpu", **more: Any
) -> np.ndarray:
    """Regrets; `more` are flat settings, as `group_settings` takes them."""
    return bt.simulate(one, on, values, **group_settings(horizon=horizon, runs=runs, device=device, **more))


def tune(one: Any, on: Any, by: Any = None, *, horizon: int, **more: Any) -> Any:
    """A tuning; `more` are flat settings, as `group_settings` takes them."""
    return bt.tune(one, on, **group_settings(tuner=by, horizon=horizon, **more))


def draw_curve(one: Any, on: Any, values: Any = None, *, horizon: int, runs: int, **more: Any) -> Any:
    return bt.curve(one, on, values, **group_settings(horizon=horizon, runs=runs, **more))


def compare(several: list[Any], on: Any, *, horizon: int, **more: Any) -> Any:
    return bt.compare(several, on, **group_settings(horizon=horizon, **more))


def stress(one: Any, on: Any, value: float, *, horizon: int, **more: Any) -> Any:
    return bt.robustness(one, on, value, **group_settings(horizon=horizon, **more))


def draw_instances(on: Any, size: int) -> Any:
    rng = np.random.default_rng(3)
    return on.sample_keyed(rng.integers(0, 2**32, (size, 2))) if on.is_keyed else on.sample(size, rng)


def compute_optimum(on: Any, horizon: int) -> Any:
    return bt.exact.compute_optimum(on, horizon=horizon)


def compute_regret(one: Any, on: Any, values: Any, horizon: int) -> Any:
    return bt.exact.compute_exact_regret(one, on, values, horizon=horizon)


def compute_bound(on: Any, horizon: int, **more: Any) -> Any:
    return bt.exact.compute_lower_bound(on, horizon=horizon, **more)


def compute_index(successes: int, failures: int, **more: Any) -> float:
    return bt.exact.compute_gittins_index(successes, failures, **more)


def make_optimal(on: Any) -> Any:
    return bt.exact.make_optimal_policy(on)


def plan_search() -> dict[str, Any]:
    """The paper's theory of its tuner."""
    return {
        "iterations": [bt.tuners.count_iterations(precision) for precision in (0.3, 0.1, 0.01)],
        "failure": bt.tuners.bound_failure([500, 1000, 2000], 2.0, 1.0),
        "budget": bt.tuners.compute_budget(0.1, 0.1, 2.0, 1.0),
    }


def read_logs(path: Path, **more: Any) -> Any:
    rows = {name: more.pop(name) for name in ("rewards", "blank", "skip_bad") if name in more}
    return bt.read_logs(path, settings=bt.ReadSettings(**rows), **more)


def fit(logs: Any, model: str, **more: Any) -> Any:
    return bt.fit(logs, model, **more)


def backtest(one: Any, logs: Any, model: str, **more: Any) -> Any:
    return bt.backtest(one, logs, **group_settings(model=model, **more))


def write_problem(on: Any, path: Path, horizon: int) -> None:
    bt.save_problem(on, path, horizon)


def read_problem(path: Path) -> tuple[Any, int | None]:
    found = bt.load_problem(path)
    return found.problem, found.horizon


def export(tuning: Any, library: str) -> Any:
    return tuning.export_params(library)


def reproduce(rows: str, **more: Any) -> Any:
    return bt.paper.reproduce(only=rows, **more)


def reload(result: Any, path: Path) -> Any:
    """The same result, saved and read back."""
    result.save(path)
    return bt.load_result(path)


def deploy(one: Any, value: Any, *, horizon: int, **more: Any) -> Any:
    return bt.deploy(one, value, horizon=horizon, **more)


def deploy_tuned(tuning: Any, **more: Any) -> Any:
    return tuning.deploy(**more)


def work(live: Any, chances: dict[Any, float], steps: int, late: int = 0, seed: int = 0) -> list[Any]:
    """The arms that a deployed policy selects; rewards of 0 or 1 come so many steps late."""
    rng, chosen, waiting = np.random.default_rng(seed), [], []
    for _ in range(steps):
        arm = live.select_arm()
        chosen.append(arm)
        waiting.append((arm, float(rng.random() < chances[arm])))
        if len(waiting) > late:
            live.update(*waiting.pop(0))
    return chosen


def restart(live: Any, path: Path) -> Any:
    """The same policy at work, saved and loaded."""
    live.save(path)
    return bt.DeployedPolicy.load(path)


def change_arms(live: Any, new: Any, old: Any, features: Any = ()) -> None:
    live.add_arm(new, features)
    live.retire_arm(old)


def drop_pull(live: Any, arm: Any) -> None:
    live.drop_pending(arm)


# ---------------------------------------------------------------- headlines


def of_estimate(found: Any) -> dict[str, Any]:
    return {"mean": found.mean, "error": found.se, "from": found.low, "to": found.high, "runs": found.runs}


def of_tuning(found: Any) -> Answer:
    (value,) = found.params.values()
    (theory,) = found.textbook_params.values()
    headline = {
        "value": value,
        "theory's value": theory,
        "lost": of_estimate(found.regret),
        "lost by theory": of_estimate(found.textbook_regret),
        "gained": of_estimate(found.gain),
        "runs spent": found.search_runs,
        "validated on": found.validation_runs,
        "reached": str(found.precision_reached),
        "lower bound": found.lower_bound.regret if found.lower_bound else None,
        "sentences": len(found.notices),
    }
    if found.posterior:
        headline["beaten by at most"] = found.posterior.regret_gap
        headline["best between"] = list(next(iter(found.posterior.best_intervals.values())))
    if found.robustness:
        headline["verdicts"] = [strain.verdict for strain in found.robustness.scenarios]
        headline["shares"] = [strain.excess_share for strain in found.robustness.scenarios]
    if found.curve:
        headline["best of the curve"] = found.curve.best_value
    return headline, [found]


def of_curve(found: Any) -> Answer:
    return {
        "values": found.values,
        "lost": found.mean,
        "errors": found.se,
        "best": found.best_value,
        "lost by the best": of_estimate(found.best_regret),
        "two dips": str(found.unimodality.rejected),
        "reach": found.half_width,
    }, [found]


def of_comparison(found: Any) -> Answer:
    return {
        "order": [entry.policy.partition("(")[0] for entry in found.entries],
        "best": found.best_policy.partition("(")[0],
        "lost": [entry.regret.mean for entry in found.entries],
        "values": [list(entry.params.values()) for entry in found.entries],
        "behind": [found.compute_difference_interval(entry) for entry in found.entries],
        "again": of_estimate(found.lowest_regret),
    }, [found]


def of_stress(found: Any) -> Answer:
    return {
        "verdicts": [strain.verdict for strain in found.scenarios],
        "shares": [[strain.excess_share_low, strain.excess_share] for strain in found.scenarios],
        "best": [strain.best_value for strain in found.scenarios],
        "worst": found.scenarios.index(found.worst_scenario),
    }, [found]


def of_instances(found: Any) -> dict[str, Any]:
    return {"means": found.means, "features": None if found.features is None else np.asarray(found.features)}


def of_optimum(found: Any) -> Answer:
    return {"earned": found.reward, "known": found.oracle_reward, "lost": found.regret}, [found]


def of_exact_regret(found: Any) -> Answer:
    return {"values": found.values, "lost": found.regret, "each": found.regret.tolist()}, [found]


def of_bound(found: Any) -> Answer:
    bounds = [[str(kind), mean, se] for kind, mean, se in zip(found.kinds, found.mean, found.se, strict=True)]
    return {"at least": found.lower_bound.regret, "bounds": [bound[1:] for bound in bounds]}, [found]


def of_fit(found: Any) -> Answer:
    return {
        "fitted": [[one.value, one.low, one.high] for one in found.estimates],
        "size": [found.campaigns, found.decisions, found.arms, found.horizon],
        "checks": [[check.observed, check.p_value] for check in found.checks],
        "instances": of_instances(draw_instances(found.problem, 20)),
        "sentences": len(found.notes),
    }, [found]


def of_backtest(found: Any) -> Answer:
    return {
        "value": list(found.tuning.params.values()),
        "campaigns": found.campaigns,
        "lost": of_estimate(found.regret),
        "gained": of_estimate(found.gain),
        "paid": [found.reward.mean, found.textbook_reward.mean, found.logged_reward.mean, found.reward_difference.mean],
        "equal arms": found.equal_arms_p,
    }, [found]


def of_live(live: Any, chosen: list[Any]) -> Answer:
    return {
        "chosen": " ".join(map(str, chosen)),
        "arms": " ".join(map(str, live.arms)),
        "steps": live.step,
        "ended": str(live.is_beyond_horizon),
    }, [live]


def of_export(found: Any) -> Answer:
    return {"code": found.code, "value": found.value, "same": str(found.is_same_rule)}, [found]


def of_reproduction(found: Any) -> Answer:
    return {
        "cells": len(found.cells),
        "ours": [cell.ours for cell in found.cells],
        "best": [curve.best_value for curve in found.curves],
        "runs": found.runs,
    }, [found]


def tree_of(result: Any) -> Any:
    """A result as plain JSON."""
    return json.loads(result.to_json()) if hasattr(result, "to_json") else result


# ---------------------------------------------------------------- command line


def call(folder: Path, *words: str) -> tuple[int, str]:
    """The exit code and the output of a command, run in a folder."""
    done = subprocess.run(
        [sys.executable, "-m", "banditune", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        env=os.environ | {"PYTHONPATH": str(Path(bt.__file__).resolve().parents[1])},
    )
    return done.returncode, done.stdout


def numbers_in_csv(path: Path) -> list[float]:
    """Every number of a table."""
    with path.open() as file:
        return [float(cell) for row in csv.reader(file) for cell in row if is_number(cell)]


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
