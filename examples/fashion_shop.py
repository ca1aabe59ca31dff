"""From the production priors of a fashion shop to a tuned Thompson sampling, and the clicks that it saves.

    python examples/fashion_shop.py [--quick] [-o FOLDER] [--impressions 100000] [--device gpu]

The shop showed 34 to 80 items in three campaigns, in which about 4 of 1,000 impressions are clicked
(examples/data/SOURCES.md). Its Thompson sampling started from counts. They show how much items differ, and so what to
expect of a campaign with new items.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import banditune as bt

DATA = Path(__file__).parent / "data" / "zozo-beta-priors.csv"


def read_shop_logs() -> bt.logs.Logs:
    """The shop's counts as logs: alpha clicks in alpha + beta impressions of an item."""
    with DATA.open() as file:
        rows = list(csv.DictReader(file))
    return bt.read_logs(
        {
            "campaign": [row["campaign"] for row in rows],
            "arm": [f"{row['campaign']} {row['item']}" for row in rows],
            "pulls": [float(row["alpha"]) + float(row["beta"]) for row in rows],
            "successes": [float(row["alpha"]) for row in rows],
        }
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="How much should a shop's Thompson sampling explore?")
    parser.add_argument("--quick", action="store_true", help="few runs: to see that it works")
    parser.add_argument("-o", "--output", type=Path, default=Path("."), help="folder for the report")
    parser.add_argument("--impressions", type=int, default=100_000, help="impressions in the next campaign")
    parser.add_argument("--device", default="cpu", help="cpu, gpu or auto")
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    arguments.output.mkdir(parents=True, exist_ok=True)
    impressions = 2_000 if arguments.quick else arguments.impressions
    budget, validate = (20, 20) if arguments.quick else (300, 300)

    expected = bt.fit(read_shop_logs(), horizon=impressions)
    print(expected)
    problem = expected.problem
    # This Thompson sampling knows what the shop knows: click rates are near 0.4%, not anywhere between 0 and 1.
    informed = bt.Thompson(prior=problem.prior[0])
    run = bt.Run(device=arguments.device)
    result = bt.tune(
        informed,
        problem,
        horizon=impressions,
        budget=budget,
        include=() if arguments.quick else ("curve",),
        search=bt.Search(validate=validate),
        run=run,
    )
    print(result)
    gamma = result.params["gamma"]
    # Both on the same instances, none of which the search has seen: their difference is paired.
    textbook, tuned = (
        bt.simulate(policy, problem, [value], horizon=impressions, runs=validate, first_instance=2**40, run=run)[0]
        for policy, value in ((bt.Thompson(prior=(1, 1)), 1.0), (informed, gamma))
    )
    untuned = bt.results.Estimate.from_sample(textbook)
    saved = bt.results.Estimate.from_sample(textbook - tuned)
    share = saved.mean / (impressions * expected["mean"].value)
    print(f"regret of the textbook policy: {untuned.mean:.0f} clicks; saved: {saved!r}")
    bt.report(
        [result, expected],
        arguments.output / "fashion-shop.html",
        title=f"The next campaign: {problem.arms} items, {impressions:,} impressions",
        answer=f"Start Thompson sampling from what is known of other items and scale its spread by {gamma:.2f}: that saves "
        f"{saved.mean:.0f} clicks (95%: {saved.low:.0f} to {saved.high:.0f}) in {impressions:,} impressions.",
        words=(
            f"The textbook policy has a regret of {untuned.mean:.0f} +- {untuned.se:.0f} clicks against always showing the "
            f"best item. It must find out for each of {problem.arms} items that its click rate is near "
            f"{expected['mean'].value:.2%}. Started from the shop's own counts, the regret is "
            f"{result.textbook_regret.mean:.0f}. With the spread scaled by {gamma:.2f} it is {result.regret.mean:.0f} +- "
            f"{result.regret.se:.0f}.",
            f"{saved.mean:.0f} clicks are {share:.0%} of what {impressions:,} impressions of average items would bring.",
            "The numbers are means over simulated campaigns with items like the shop's past ones. The end of this page "
            "compares simulated campaigns with the shop's.",
        ),
        figures=(
            ("clicks saved", f"{saved.mean:.0f}", f"regret of the textbook policy: {untuned.mean:.0f}"),
            ("spread", f"{gamma:.2f}", "textbook: 1"),
        ),
    )
    print(f"wrote {arguments.output / 'fashion-shop.html'}")


if __name__ == "__main__":
    main()
