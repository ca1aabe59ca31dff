"""Production priors of a fashion shop -> tuned Thompson sampling -> what it saves in clicks.

    python examples/fashion_shop.py [--quick] [-o FOLDER] [--impressions 100000] [--device gpu]

The shop showed 34 to 80 items in three campaigns, of which about 4 in 1,000 impressions are clicked
(examples/data/SOURCES.md). The counts from which its Thompson sampling started tell how much items differ: enough to
expect what a campaign with new items will be like.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import banditune as bt

DATA = Path(__file__).parent / "data" / "zozo-beta-priors.csv"


def past() -> bt.logs.Logs:
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


def main() -> None:
    options = argparse.ArgumentParser(description="How much should a shop's Thompson sampling explore?")
    options.add_argument("--quick", action="store_true", help="few runs: to see that it works")
    options.add_argument("-o", "--output", type=Path, default=Path("."), help="folder for the report")
    options.add_argument("--impressions", type=int, default=100_000, help="impressions in the next campaign")
    options.add_argument("--device", default="cpu", help="cpu, gpu or auto")
    told = options.parse_args()
    told.output.mkdir(parents=True, exist_ok=True)
    impressions = 2_000 if told.quick else told.impressions
    budget, validate = (20, 20) if told.quick else (300, 300)

    expected = bt.fit(past(), horizon=impressions)
    print(expected)
    problem = expected.problem
    # Thompson sampling that knows what the shop knows: click rates are near .4%, not anywhere between 0 and 1.
    informed = bt.Thompson(prior=problem.prior[0])
    usual = {"horizon": impressions, "budget": budget, "validate": validate, "device": told.device}
    tuning = bt.tune(informed, problem, **usual, curve=not told.quick)
    print(tuning)
    gamma = tuning.params["gamma"]
    # Both on the same instances, none of which the search has seen: their difference is paired.
    fresh = {"horizon": impressions, "runs": validate, "first": 2**40, "device": told.device}
    textbook = bt.simulate(bt.Thompson(prior=(1, 1)), problem, [1.0], **fresh)[0]
    tuned = bt.simulate(informed, problem, [gamma], **fresh)[0]
    lost, saved = bt.results.Estimate.of(textbook), bt.results.Estimate.of(textbook - tuned)
    share = saved.mean / (impressions * expected["mean"].value)
    print(f"clicks lost out of the box: {lost.mean:.0f}; saved: {saved!r}")
    bt.report(
        [tuning, expected],
        told.output / "fashion-shop.html",
        title=f"The next campaign: {problem.arms} items, {impressions:,} impressions",
        answer=f"Start Thompson sampling from what is known of other items and scale its spread by {gamma:.2f}: that saves "
        f"{saved.mean:.0f} clicks (95%: {saved.low:.0f} to {saved.high:.0f}) in {impressions:,} impressions.",
        words=(
            f"Out of the box it loses {lost.mean:.0f} +- {lost.se:.0f} clicks against always showing the best item: "
            f"it must find out for each of {problem.arms} items that its click rate is near "
            f"{expected['mean'].value:.2%}. Started from the shop's own counts it loses {tuning.theory.mean:.0f}, and with "
            f"its spread scaled by {gamma:.2f} {tuning.regret.mean:.0f} +- {tuning.regret.se:.0f}.",
            f"{saved.mean:.0f} clicks are {share:.0%} of what {impressions:,} impressions of average items would bring.",
            "The numbers are means over simulated campaigns with items like the shop's past ones; how well these look like "
            "the shop's stands at the end.",
        ),
        figures=(
            ("clicks saved", f"{saved.mean:.0f}", f"of {lost.mean:.0f} lost out of the box"),
            ("spread", f"{gamma:.2f}", "textbook: 1"),
        ),
    )
    print(f"wrote {told.output / 'fashion-shop.html'}")


if __name__ == "__main__":
    main()
