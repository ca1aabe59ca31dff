"""Past trials -> what to expect -> which policy, and how wide, for the next trial -> a report for whoever decides.

    python examples/smoking_trials.py [--quick] [-o FOLDER]

The logs are 26 trials of nicotine gum against a control (examples/data/SOURCES.md). In all of them, patients were
assigned to an arm in advance. What if the next one assigned more and more of them to the arm that does better?
"""

from __future__ import annotations

import argparse
from pathlib import Path

import banditune as bt

DATA = Path(__file__).parent / "data" / "smoking-cessation-trials.csv"


def main() -> None:
    options = argparse.ArgumentParser(description="Which policy and width for the next trial?")
    options.add_argument("--quick", action="store_true", help="few runs: to see that it works")
    options.add_argument("-o", "--output", type=Path, default=Path("."), help="folder for the report")
    told = options.parse_args()
    told.output.mkdir(parents=True, exist_ok=True)
    budget, validate = (100, 100) if told.quick else (2000, 4000)

    logs = bt.read_logs(DATA)
    # Arms with independent priors do not look like these logs: a trial with many quitters has many in both arms.
    independent, expected = bt.fit(logs), bt.fit(logs, "correlated")
    for words, fit in (("independent arms", independent), ("arms that rise and fall together", expected)):
        failed = [check.statistic for check in fit.checks if check.fails]
        print(f"{words}: {'unlike the logs in: ' + '; '.join(failed) if failed else 'like the logs'}")
    bt.save_problem(expected.problem, told.output / "next-trial.toml", expected.horizon)

    problem, patients = expected.problem, expected.horizon
    policies = [bt.UCB1(), bt.Thompson(), bt.EpsilonGreedy(), bt.UCBGLM(), bt.GLMTSL()]
    compared = bt.compare(policies, problem, horizon=patients, budget=budget, validate=validate)
    print(compared)

    # Of the policies that are as good as the best one, UCB1 is the simplest to explain to a trial's board.
    tuning = bt.tune(bt.UCB1(), problem, horizon=patients, budget=budget, validate=validate, curve=True, stress=True)
    tested = bt.backtest(bt.UCB1(), logs, "correlated", horizon=patients, budget=budget)
    print(tested)

    gamma = tuning.params["gamma"]
    quits, before = tested.reward, tested.logged
    more = 1000 * (quits.mean - before.mean)
    bt.report(
        [tested, tuning, compared, expected],
        told.output / "next-trial.html",
        title=f"The next trial of nicotine gum, {patients} patients",
        answer=f"Assign patients by UCB1 with a width of {gamma:.2f}: about {more:.0f} more of 1,000 patients quit than in "
        "past trials, because more of them get the better treatment.",
        words=(
            f"Judged on {tested.campaigns} past trials that the choice did not see: {quits.mean:.1%} of patients quit, "
            f"against {before.mean:.1%} in these trials as they were run (+- {quits.se:.1%} and {before.se:.1%}, because "
            "trials differ).",
            f"UCB1 as textbooks have it (noise 0.5, width 1) explores too long: in a trial of {patients} patients it costs "
            f"{tested.gain.mean:.1f} quitters (95%: {tested.gain.low:.1f} to {tested.gain.high:.1f}).",
            f"Other policies: {', '.join(entry.policy for entry in compared.entries[:3])} lose least in simulation; the "
            "differences are below. What happens if the next trial is unlike the past ones stands in the table 'If "
            "something else comes'.",
        ),
        figures=(
            ("width", f"{gamma:.2f}", "textbook: 1"),
            ("quitters of 1,000", f"{1000 * quits.mean:.0f}", f"as run: {1000 * before.mean:.0f}"),
        ),
    )
    live = tuning.policy()
    print(f"\nthe first patient gets: {live.select_arm()}")
    print(f"wrote {told.output / 'next-trial.html'} and {told.output / 'next-trial.toml'}")


if __name__ == "__main__":
    main()
