"""From past trials to the policy for the next trial, how much it should explore, and a report for those who decide.

    python examples/smoking_trials.py [--quick] [-o FOLDER]

The logs are 26 trials of nicotine gum against a control (examples/data/SOURCES.md). In all of them, patients were
assigned to an arm in advance. What if the next one assigned more and more of them to the better arm?
"""

from __future__ import annotations

import argparse
from pathlib import Path

import banditune as bt

DATA = Path(__file__).parent / "data" / "smoking-cessation-trials.csv"


def main() -> None:
    parser = argparse.ArgumentParser(description="Which policy for the next trial, and how much should it explore?")
    parser.add_argument("--quick", action="store_true", help="few runs: to see that it works")
    parser.add_argument("-o", "--output", type=Path, default=Path("."), help="folder for the report")
    arguments = parser.parse_args()
    arguments.output.mkdir(parents=True, exist_ok=True)
    budget, validate = (100, 100) if arguments.quick else (2000, 4000)

    logs = bt.read_logs(DATA)
    # Arms with independent priors do not look like these logs: a trial with many quitters has many in both arms.
    independent, expected = bt.fit(logs), bt.fit(logs, "correlated")
    for description, fit in (("independent arms", independent), ("arms that rise and fall together", expected)):
        failed = [check.statistic for check in fit.checks if check.has_failed]
        print(f"{description}: {'unlike the logs in: ' + '; '.join(failed) if failed else 'like the logs'}")
    bt.save_problem(expected.problem, arguments.output / "next-trial.toml", expected.horizon)

    problem, patients, search = expected.problem, expected.horizon, bt.Search(validate=validate)
    policies = [bt.UCB1(), bt.Thompson(), bt.EpsilonGreedy(), bt.UCBGLM(), bt.GLMTSL()]
    compared = bt.compare(policies, problem, horizon=patients, budget=budget, search=search)
    print(compared)

    # Of the policies that are as good as the best one, UCB1 is the simplest to explain to a trial's board.
    policy, include = bt.UCB1(), ("curve", "robustness")
    result = bt.tune(policy, problem, horizon=patients, budget=budget, include=include, search=search)
    settings = bt.FitSettings(model="correlated")
    tested = bt.backtest(policy, logs, horizon=patients, budget=budget, fit_settings=settings)
    print(tested)

    gamma = result.params["gamma"]
    quits, before = tested.reward, tested.logged_reward
    more = 1000 * (quits.mean - before.mean)
    bt.report(
        [tested, result, compared, expected],
        arguments.output / "next-trial.html",
        title=f"The next trial of nicotine gum, {patients} patients",
        answer=f"Assign patients by UCB1 with its interval scaled by {gamma:.2f}: about {more:.0f} more of 1,000 patients "
        "quit than in past trials, because more of them get the better treatment.",
        words=(
            f"Evaluated on {tested.campaigns} past trials that the choice did not see: {quits.mean:.1%} of patients quit, "
            f"against {before.mean:.1%} in these trials as they were run (+- {quits.se:.1%} and {before.se:.1%}, because "
            "trials differ).",
            f"The textbook UCB1 (noise 0.5, gamma 1) explores too long: in a trial of {patients} patients it costs "
            f"{tested.gain.mean:.1f} quitters (95%: {tested.gain.low:.1f} to {tested.gain.high:.1f}).",
            f"Other policies: {', '.join(entry.policy for entry in compared.entries[:3])} have the lowest regrets in "
            "simulation; the differences are below. The robustness table says what happens if the next trial is unlike "
            "the past ones.",
        ),
        figures=(
            ("gamma", f"{gamma:.2f}", "textbook: 1"),
            ("quitters of 1,000", f"{1000 * quits.mean:.0f}", f"as run: {1000 * before.mean:.0f}"),
        ),
    )
    live = result.deploy()
    print(f"\nthe first patient gets: {live.select_arm()}")
    print(f"wrote {arguments.output / 'next-trial.html'} and {arguments.output / 'next-trial.toml'}")


if __name__ == "__main__":
    main()
