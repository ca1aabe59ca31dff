"""Pictures of the site, drawn by banditune itself: `make pictures`.

    python tools/site/pictures.py [NAME ...]

The same code draws the same file. All pictures take some minutes of one core.
"""

from __future__ import annotations

import argparse
import math
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.ticker import NullLocator

import banditune as bt
from banditune.reports.figures import BLUE, GREY, ORANGE, make_figure, save_figure, style_axes

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
LOGS = ROOT / "examples" / "data" / "smoking-cessation-trials.csv"
GREEN = "#009e73"
TEN_ARMS = bt.Bernoulli(arms=10)
TEXTBOOK_UCB1 = bt.UCB1(noise=0.5)


def make_axes(columns: int = 1, width: float = 7.2, height: float = 3.6) -> tuple[Any, Any]:
    """Make a figure with axes beside each other, in the style of the product."""
    figure = make_figure(width, height)
    axes = figure.subplots(1, columns)
    for one in np.ravel(axes):
        style_axes(one)
    return figure, axes


def draw_ucb1(path: Path) -> None:
    """Draw the example of the README: the search, and the curve."""
    bt.tune(TEXTBOOK_UCB1, TEN_ARMS, horizon=10_000, budget=1000, include=("curve",)).plot(path)


def draw_first_result(path: Path) -> None:
    """Draw the search of the first result."""
    bt.tune(bt.UCB1(), TEN_ARMS, horizon=1000).plot(path)


def draw_fit_trials(path: Path) -> None:
    """Draw the fit to the shipped trials."""
    bt.fit(bt.read_logs(LOGS), "correlated").plot(path)


def draw_compare(path: Path) -> None:
    """Draw a comparison of policies."""
    policies = [bt.UCB1(), bt.Thompson(), bt.EpsilonGreedy(), bt.ExploreThenCommit()]
    bt.compare(policies, TEN_ARMS, horizon=1000, budget=500).plot(path)


def draw_features(path: Path) -> None:
    """Draw the curve of a policy that knows the arms' features."""
    bt.curve(bt.LinTS(), bt.Linear(arms=20, dims=5), horizon=1000, runs=1000).plot(path)


def draw_robustness(path: Path) -> None:
    """Draw the regret of the answer of how-to/next-campaign.md, and of the best value, in each scenario."""
    problem = bt.Bernoulli(arms=10, prior=(2, 38))
    report = bt.tune(bt.UCB1(), problem, horizon=5000, include=("robustness",)).robustness
    figure, axes = make_axes(height=3.8)
    rows = np.arange(len(report.scenarios))
    for name, colour, shift in (("regret", ORANGE, -0.12), ("best_regret", BLUE, 0.12)):
        estimates = [getattr(scenario, name) for scenario in report.scenarios]
        means = np.array([one.mean for one in estimates])
        error = [means - [one.low for one in estimates], [one.high for one in estimates] - means]
        label = "the tuned value" if name == "regret" else "the best value that is known there"
        axes.errorbar(means, rows + shift, xerr=error, fmt="o", color=colour, capsize=3, markersize=4, label=label)
    axes.set_yticks(rows, [scenario.description for scenario in report.scenarios])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0)
    axes.set_xlabel("regret if this comes instead")
    axes.legend(frameon=False, loc="upper right")
    save_figure(figure, path)


def draw_two_prices(path: Path) -> None:
    """Draw which part of the regret comes from the worst runs."""
    values = np.linspace(0.04, 1, 33)
    regrets = np.sort(bt.simulate(TEXTBOOK_UCB1, TEN_ARMS, values, horizon=10_000, runs=20_000), axis=1)
    ordinary = int(0.95 * regrets.shape[1])
    usual = regrets[:, :ordinary].sum(axis=1) / regrets.shape[1]
    worst = regrets[:, ordinary:].sum(axis=1) / regrets.shape[1]
    figure, axes = make_axes()
    axes.stackplot(
        values,
        usual,
        worst,
        colors=(BLUE, ORANGE),
        alpha=0.7,
        labels=("from 19 of 20 runs: the price of exploring", "from the worst run of 20: the price of a wrong arm"),
    )
    axes.set_xlabel("gamma")
    axes.set_ylabel("Bayes regret")
    axes.set_ylim(0, 200)
    axes.set_xlim(values[0], 0.7)
    axes.legend(frameon=False)
    save_figure(figure, path)


def draw_means_mislead(path: Path) -> None:
    """Draw what twenty searches by mean with 30 runs a value answer, beside the true curve."""
    values = np.round(np.linspace(0.05, 0.75, 15), 3)
    searches, runs = 40, 30
    own_noise = bt.Simulation(common_random_numbers=False)
    regrets = bt.simulate(
        TEXTBOOK_UCB1, TEN_ARMS, values, horizon=10_000, runs=searches * runs, seed=7, simulation=own_noise
    )
    truth = bt.simulate(TEXTBOOK_UCB1, TEN_ARMS, values, horizon=10_000, runs=40_000).mean(axis=1)
    means = regrets.reshape(len(values), searches, runs).mean(axis=2)
    answers = means.argmin(axis=0)
    figure, (left, right) = make_axes(2, height=3.4)
    left.plot(values, means[:, :20], color=GREY, alpha=0.35, linewidth=0.7)
    left.plot(values, truth, color=BLUE, linewidth=2, label="40,000 runs at each gamma")
    left.plot([], [], color=GREY, linewidth=0.7, label=f"{runs} runs at each gamma, 20 times")
    left.set_ylim(0, 250)
    left.set_xlabel("gamma")
    left.set_ylabel("mean regret")
    left.legend(frameon=False, fontsize=8)
    seen, real = means[answers, np.arange(searches)], truth[answers]
    right.scatter(seen, real, s=18, color=ORANGE, linewidth=0, alpha=0.7)
    right.plot([0, 200], [0, 200], color=GREY, linewidth=0.8, linestyle=":")
    right.axhline(truth.min(), color=BLUE, linewidth=0.8, linestyle="--", label="the lowest regret")
    right.set_xlim(0, 60)
    right.set_ylim(0, 1.1 * real.max())
    right.set_xlabel("regret of the answer, as the search saw it")
    right.set_ylabel("its true regret")
    right.legend(frameon=False, fontsize=8)
    save_figure(figure, path)


def draw_promises(path: Path) -> None:
    """Draw the intervals that forty searches state of their own answers, beside the truth."""
    searches = range(40)
    results = [bt.tune(bt.UCB1(), TEN_ARMS, horizon=1000, budget=300, seed=seed) for seed in searches]
    answers = sorted({result.params["gamma"] for result in results})
    truth = bt.simulate(bt.UCB1(), TEN_ARMS, answers, horizon=1000, runs=100_000, seed=99).mean(axis=1)
    figure, axes = make_axes()
    for seed, result in zip(searches, results, strict=True):
        stated, real = result.posterior, truth[answers.index(result.params["gamma"])]
        colour = BLUE if stated.low <= real <= stated.high else ORANGE
        axes.plot([seed, seed], [stated.low, stated.high], color=colour, linewidth=2)
        axes.plot(seed, real, "o", color="black", markersize=3)
    axes.plot([], [], color=BLUE, linewidth=2, label="stated interval of the answer's regret (95%)")
    axes.plot([], [], color=ORANGE, linewidth=2, label="an interval without the true regret")
    axes.plot([], [], "o", color="black", markersize=3, label="true regret (100,000 runs)")
    axes.set_xlabel("seed of the search, 300 runs each")
    axes.set_ylabel("Bayes regret")
    axes.set_ylim(0)
    axes.legend(frameon=False, loc="lower left")
    save_figure(figure, path)


def draw_lower_bounds(path: Path) -> None:
    """Draw tuned policies and the bound below all policies, against the horizon."""
    horizons = [100, 300, 1000, 3000, 10_000]
    bounds = [
        bt.exact.compute_lower_bound(TEN_ARMS, horizon=horizon, runs=100).lower_bound.regret for horizon in horizons
    ]
    figure, axes = make_axes()
    for policy, colour, name in ((bt.UCB1(), BLUE, "UCB1"), (bt.Thompson(), GREEN, "Thompson sampling")):
        results = [bt.tune(policy, TEN_ARMS, horizon=horizon) for horizon in horizons]
        means, errors = [r.regret.mean for r in results], [2 * r.regret.se for r in results]
        axes.errorbar(
            horizons, means, yerr=errors, color=colour, marker="o", markersize=4, capsize=3, label=f"{name}, tuned"
        )
        if policy == bt.UCB1():
            textbook = [r.textbook_regret.mean for r in results]
            axes.plot(horizons, textbook, color=GREY, marker="o", markersize=4, label="UCB1, textbook")
    axes.plot(horizons, bounds, color="black", linestyle="--", marker="o", markersize=4, label="no policy can be below")
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis, ticks in ((axes.xaxis, horizons), (axes.yaxis, [5, 10, 20, 50, 100, 200, 500])):
        axis.set_ticks(ticks, [f"{tick:,}" for tick in ticks])
        axis.set_minor_locator(NullLocator())
    axes.set_xlabel("horizon")
    axes.set_ylabel("Bayes regret")
    axes.legend(frameon=False)
    save_figure(figure, path)


def draw_rare_rates(path: Path) -> None:
    """Draw UCB1 on rare successes, with the textbook's noise and with the problem's."""
    problem = bt.Bernoulli(arms=20, prior=(3.36, 771))
    figure, axes = make_axes()
    for policy, colour, name in (
        (bt.UCB1(noise=0.5), GREY, "noise=0.5"),
        (bt.UCB1(), BLUE, "noise of the problem, 0.066"),
    ):
        curve = bt.curve(policy, problem, horizon=20_000, runs=300)
        axes.fill_between(
            curve.values, curve.mean - curve.half_width, curve.mean + curve.half_width, color=colour, alpha=0.2
        )
        axes.plot(curve.values, curve.mean, color=colour, label=f"UCB1, {name}")
    axes.set_xlabel("gamma")
    axes.set_ylabel("Bayes regret")
    axes.set_ylim(0)
    axes.legend(frameon=False)
    save_figure(figure, path)


def draw_deployed(path: Path) -> None:
    """Draw the share of decisions that a deployed policy gives to each arm."""
    rates, horizon = {"red": 0.04, "green": 0.05, "blue": 0.07}, 10_000
    result = bt.tune(bt.UCB1(), bt.Bernoulli(arms=3, prior=(2, 38), names=list(rates)), horizon=horizon)
    figure, (left, right) = make_axes(2, height=3.2)
    rng = np.random.default_rng(1)
    clicks = {name: rng.random(horizon) < rate for name, rate in rates.items()}
    tuned = (left, bt.UCB1(noise=result.setup.policy["noise"]), result.params, "tuned")
    for axes, policy, value, title in (tuned, (right, TEXTBOOK_UCB1, result.textbook_params, "textbook")):
        live = bt.deploy(policy, value, horizon=horizon, names=list(rates))
        chosen = []
        for step in range(horizon):
            arm = live.select_arm()
            live.update(arm, float(clicks[arm][step]))
            chosen.append(arm)
        shares = [np.cumsum([arm == name for arm in chosen]) / np.arange(1, horizon + 1) for name in rates]
        labels = [f"{name}: {rate:.0%} clicks" for name, rate in rates.items()]
        axes.stackplot(np.arange(1, horizon + 1), shares, colors=(ORANGE, GREEN, BLUE), alpha=0.7, labels=labels)
        axes.set_title(f"{title}, gamma = {value['gamma']:.2f}", loc="left", fontsize=10)
        axes.set_xlim(1, horizon)
        axes.set_ylim(0, 1)
        axes.set_xlabel("decisions")
    left.set_ylabel("share of decisions so far")
    right.legend(frameon=True, framealpha=0.8, loc="lower right", fontsize=8)
    save_figure(figure, path)


def draw_own_policy(path: Path) -> None:
    """Draw the curve of a user's policy, the softmax rule of how-to/own-policy.md."""

    @bt.kernel.scalar
    def choose(state, setting, step, params, stream):  # type: ignore[no-untyped-def]
        best, highest = 0, -math.inf
        for arm in range(setting.arms):
            if state.pulls[arm] == 0:
                return arm
            score = state.total[arm] / state.pulls[arm] - params[0] * math.log(bt.kernel.exponential(stream))
            if score > highest:
                best, highest = arm, score
        return best

    temperature = bt.Parameter("temperature", 0.001, 1, textbook=0.1, scale="log")
    softmax = bt.define_policy("softmax", choose, parameters=[temperature])
    bt.curve(softmax, TEN_ARMS, horizon=500, runs=4000).plot(path)


def draw_regret_over_time(path: Path) -> None:
    """Draw the regret over time of tuned policies and of their textbook values."""
    policies = [TEXTBOOK_UCB1, bt.Thompson(), bt.EpsilonGreedy()]
    compared = bt.compare(policies, TEN_ARMS, horizon=1000, budget=1000)
    bt.regret_over_time(compared).plot(path)


def draw_two_panels(path: Path) -> None:
    """Draw two results of how-to/write-up.md into axes beside each other."""
    ucb1 = bt.curve(TEXTBOOK_UCB1, TEN_ARMS, horizon=1000, runs=2000)
    thompson = bt.curve(bt.Thompson(), TEN_ARMS, horizon=1000, runs=2000)
    over_time = bt.regret_over_time(bt.tune(TEXTBOOK_UCB1, TEN_ARMS, horizon=1000))
    figure, (left, right) = make_axes(2, width=8.4, height=3.2)
    bt.plot([ucb1, thompson], ax=left, labels=["UCB1", "Thompson sampling"])
    bt.plot(over_time, ax=right, xscale="log", labels=["UCB1, tuned", "UCB1, textbook"])
    save_figure(figure, path)


def draw_report(path: Path) -> None:
    """Take a picture of a report, if there is a Chromium."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        print("report.png: left as it is, because there is no Chromium")
        return
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        settings = bt.FitSettings(model="correlated")
        tested = bt.backtest(bt.UCB1(), bt.read_logs(LOGS), budget=500, fit_settings=settings)
        bt.report(tested, page, title="The next trial of nicotine gum", unit="patients who quit")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
        flags += ["--disable-component-update", "--disable-sync", "--hide-scrollbars", "--window-size=1000,1000"]
        flags += [f"--user-data-dir={folder}/profile", f"--screenshot={path}", page.as_uri()]
        subprocess.run([chromium, *flags], check=True, capture_output=True, timeout=120)


PICTURES: dict[str, Callable[[Path], None]] = {
    "ucb1.svg": draw_ucb1,
    "first-result.svg": draw_first_result,
    "fit-trials.svg": draw_fit_trials,
    "compare.svg": draw_compare,
    "features.svg": draw_features,
    "robustness.svg": draw_robustness,
    "two-prices.svg": draw_two_prices,
    "means-mislead.svg": draw_means_mislead,
    "promises.svg": draw_promises,
    "lower-bounds.svg": draw_lower_bounds,
    "rare-rates.svg": draw_rare_rates,
    "deployed.png": draw_deployed,
    "own-policy.svg": draw_own_policy,
    "regret-over-time.svg": draw_regret_over_time,
    "two-panels.svg": draw_two_panels,
    "report.png": draw_report,
}


def main() -> None:
    """Draw all pictures, or those that are named."""
    parser = argparse.ArgumentParser(description="Pictures of the site.")
    parser.add_argument("names", nargs="*", help="all if left out")
    for name in parser.parse_args().names or PICTURES:
        PICTURES[name](IMAGES / name)
        print(f"{name}: {(IMAGES / name).stat().st_size:,} bytes", flush=True)


if __name__ == "__main__":
    main()
