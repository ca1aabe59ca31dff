"""What a ledger holds of a setup: as text, as a story with its plots, as a figure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from banditune.reports import figures, points
from banditune.reports.points import CURVE, GREY, TUNED, Axis, Mark, Plot, axis, percent, told
from banditune.reports.story import Part, Story, Table, story
from banditune.reports.tables import text
from banditune.reports.words import counted, number, settings, table
from banditune.results import Account, Estimate, Spread, Tally, reach_of_all

ENOUGH = 300
"""Runs that a value must have to be told and drawn with an interval, and to be ranked, unless all have fewer.

What happens to one run in 100 is missed by 300 runs with a probability of 5%, by 30 runs with 74%: a mean of few runs may
lack the rare disasters that carry it, and its interval, which lacks them too, is then narrow and wrong.
"""

FEW = 10
"""Means of fewer runs than that are not drawn, unless all are."""

BEST, LISTED, DRAWN = 10, 200, 500
"""So many values are shown as the best ones, in the whole table, and in a plot; of more, those with most runs."""

JOINED = 5
"""From so many values on they are joined by a line: between few values nobody knows the regret."""

FAR = 4
"""A line and grey dots are seen up to so many times the leader's regret; a few dots with intervals are always seen."""

KINDS = (("search", False, CURVE), ("fresh", True, TUNED))
"""Kinds of instances, whether they are fresh, and their colours."""

CHOSEN = (
    "Values that a search preferred, and the lowest of many means, were chosen by looking at these numbers: they look "
    "better than they are (the winner's curse), the more so the fewer runs they have. Fresh instances (runs from 2^40 on), "
    "on which no search looked, are told apart; the lowest of several means is too low there as well. What a search "
    "answered is in its result: the ledger does not hold it."
)


@text.register
def _(result: Account) -> str:
    lines = [headline(result), "", answer(result)]
    for name, fresh, _ in KINDS:
        ranked = best(result.ended(fresh=fresh))
        if ranked:
            shown = best_table(result, ranked)
            lines += ["", f"lowest means, {name} instances", table([shown.head, *shown.rows], left=())]
    return "\n".join(
        [*lines, "", f"{amount(result)}; {result.regret} regret, seed {result.seed}, on the {result.device}"]
    )


@story.register
def _(result: Account) -> Story:
    parts = [
        *(over(result, place) for place in range(len(result.parameters))),
        *lowest(result),
        *single_runs(result),
        *growth(result),
        *every_value(result),
        provenance(result),
    ]
    return Story(headline(result), answer(result), tuple(to_remember(result)), tuple(parts))


@figures.draw.register
def _(result: Account, axes: Any) -> None:
    plot = regret_plot(result, 0) if result.parameters else points.spread_plot(spreads(result))
    figures.draw_plot(plot, axes, headline(result))


def headline(result: Account) -> str:
    """Policy, problem and horizon."""
    return f"{result.policy} on {result.problem}, horizon {result.horizon:,}"


def amount(result: Account) -> str:
    """33 values, 680 runs: 650 on search instances, 30 on fresh ones."""
    runs = [sum(tally.regret.runs for tally in result.ended(fresh=fresh)) for _, fresh, _ in KINDS]
    values = len({tally.params for tally in result.tallies})
    return (
        f"{counted(values, 'value')}, {counted(sum(runs), 'run')}: {runs[0]:,} on search instances, {runs[1]:,} on fresh "
        "ones"
    )


def enough(tallies: Sequence[Tally], wanted: int) -> list[Tally]:
    """Those with so many runs; where few have, those with half of the most."""
    most = max((tally.regret.runs for tally in tallies), default=0)
    return [tally for tally in tallies if tally.regret.runs >= min(wanted, most / 2)]


def best(tallies: Sequence[Tally]) -> list[Tally]:
    """Values with enough runs, the lowest mean first."""
    return sorted(enough(tallies, ENOUGH), key=lambda tally: tally.regret.mean)


def leader(result: Account) -> Tally:
    """The lowest mean on fresh instances, where there are any."""
    return (best(result.ended(fresh=True)) or best(result.ended(fresh=False)))[0]


def named(result: Account, tally: Tally) -> str:
    """gamma = 0.22; a policy without parameters is called by its name."""
    return settings(dict(zip(result.parameters, tally.params, strict=True))) or result.policy


def rivals(result: Account) -> int:
    """How many values the leader is the lowest of, itself among them."""
    return len(best(result.ended(fresh=leader(result).fresh)))


def answer(result: Account) -> str:
    """Which value lost least, on which instances, and what is to be thought of that where there were others."""
    first, count = leader(result), rivals(result)
    kind = "fresh" if first.fresh else "search"
    if count == 1:
        instances = counted(first.regret.runs, f"{kind} instance")
        return f"{named(result, first)} loses {interval(first.regret)} on {instances}."
    lowest = f"{named(result, first)} has the lowest of {count:,} means on {kind} instances"
    sure = surely(first, count)
    loses = f": it loses {number(sure[0])} to {number(sure[1])} (95% sure for all values together)" if sure else ""
    return f"{lowest}, {number(first.regret.mean)}, which as the lowest is likely too low{loses}."


def surely(first: Tally, count: int) -> tuple[float, float] | None:
    """The interval of a leader's regret that holds together with those of all `count` values that it was chosen from.

    None where runs are few, or where a search chose by these very runs how many there are.
    """
    if not has_interval(first.regret) or (count > 1 and not first.fresh):
        return None
    half = reach_of_all(count, first.regret.runs) * first.regret.se
    return first.regret.mean - half, first.regret.mean + half


def has_interval(estimate: Estimate) -> bool:
    """Whether there are runs enough for an interval to be trusted."""
    return estimate.runs >= ENOUGH


def interval(estimate: Estimate) -> str:
    """40.4 (35.6 to 45.3); few runs have no interval."""
    return told(estimate) if has_interval(estimate) else number(estimate.mean)


def to_remember(result: Account) -> Iterator[tuple[str, str, str]]:
    """Figures at the top."""
    first = leader(result)
    kind = "fresh" if first.fresh else "search"
    if len(result.parameters) == 1:
        yield result.parameters[0], number(first.params[0]), f"lowest mean on {kind} instances"
    yield regret_figure(result, first)
    yield (
        "1 run in 100 loses",
        number(first.spread.at(0.99)),
        f"or more; half lose {number(first.spread.at(0.5))} or more",
    )
    runs = sum(tally.regret.runs for fresh in (False, True) for tally in result.ended(fresh=fresh))
    yield "runs in all", f"{runs:,}", f"{len({tally.params for tally in result.tallies}):,} values"


def regret_figure(result: Account, first: Tally) -> tuple[str, str, str]:
    """What the leader loses, as far as that is known."""
    mean, count = number(first.regret.mean), rivals(result)
    sure = surely(first, count)
    reach = f"95%: {number(sure[0])} to {number(sure[1])}" if sure else ""
    if count == 1:
        return "regret", mean, reach or f"of {counted(first.regret.runs, 'run')}"
    return "lowest mean", mean, f"likely too low; {reach} for all values together" if reach else "likely too low"


def over(result: Account, place: int) -> Part:
    """Regret over one of the parameters; what is to be known about all of these plots is said once."""
    words = () if place else tuple(plot_words(result))
    return Part(f"Regret over {result.parameters[place]}", words, regret_plot(result, place))


def plot_words(result: Account) -> Iterator[str]:
    """How to read the plots."""
    yield (
        f"{amount(result)}. Bands and bars are 95% intervals of the means, of each value by itself; the larger a dot, the "
        "more runs."
    )
    yield CHOSEN
    if any(not has_interval(tally.regret) for tally in drawn(result)):
        yield (
            f"Grey means have fewer than {ENOUGH} runs and no interval: what is rare and terrible may not have happened to "
            "them yet."
        )
    if len(result.parameters) > 1:
        yield "The other parameters vary from dot to dot."
    hidden = sum(len(result.ended(fresh=fresh)) for _, fresh, _ in KINDS) - len(drawn(result))
    if hidden:
        yield f"Not drawn: {counted(hidden, 'mean')} of few runs, or beyond the {DRAWN} with most runs."


def drawn(result: Account) -> list[Tally]:
    """All means that are drawn."""
    return [tally for _, fresh, _ in KINDS for tally in shown(result, fresh)]


def shown(result: Account, fresh: bool) -> list[Tally]:
    """What is drawn: values in order that have not too few runs, and not too many of them."""
    some = enough(result.ended(fresh=fresh), FEW)
    most = sorted(some, key=lambda tally: -tally.regret.runs)[:DRAWN]
    return sorted(most, key=lambda tally: tally.params)


def regret_plot(result: Account, place: int) -> Plot:
    """Means over a parameter, search and fresh instances in colours of their own, those of few runs in grey."""
    name, first = result.parameters[place], leader(result)
    tallies = drawn(result)
    most = max(tally.regret.runs for tally in tallies)
    few = [tally for tally in tallies if not has_interval(tally.regret)]
    label = f"means of fewer than {ENOUGH} runs (area: runs)"
    marks = [dots(result, place, few, most=most, colour=GREY, label=label)] if few else []
    for kind, fresh, colour in KINDS:
        sure = sure_ones(result, fresh)
        means = dots(result, place, sure, most=most, colour=colour, label=f"{kind} instances, 95%")
        marks += kind_marks(result, sure, means)
    about = f"Mean regret over {name}: {answer(result)}"
    x = axis(name, [tally.params[place] for tally in tallies], room=0.02)
    bottom, top = points.view(of_interest(result))
    y = replace(axis("Bayes regret", [tally.regret.mean for tally in tallies]), low=bottom, high=top)
    return Plot(about, x, y, tuple(marks), (first.params[place], first.regret.mean))


def sure_ones(result: Account, fresh: bool) -> list[Tally]:
    """Those that are drawn with an interval."""
    return [tally for tally in shown(result, fresh) if has_interval(tally.regret)]


def of_interest(result: Account) -> list[tuple[float, float]]:
    """Intervals that a plot must show. A line that leaves it is seen to leave; a dot beyond its top nobody misses."""
    first = ends(leader(result).regret)
    bottom = min(0.0, first[0])
    # Where the leader never loses anything, it is no measure of the others.
    most = FAR * (first[1] - bottom) or math.inf
    near = [tally for tally in drawn(result) if tally.regret.mean - bottom <= most]
    groups = [sure_ones(result, fresh) for _, fresh, _ in KINDS]
    alone = [tally for group in groups if len(group) < JOINED for tally in group]
    return [first, *(ends(tally.regret) for tally in (*near, *alone))]


def ends(estimate: Estimate) -> tuple[float, float]:
    """The interval that is drawn; that of few runs is none."""
    return (estimate.low, estimate.high) if has_interval(estimate) else (estimate.mean, estimate.mean)


def dots(result: Account, place: int, tallies: Sequence[Tally], *, most: int, colour: int, label: str) -> Mark:
    """A dot for each mean, with an area that grows with the runs, of which there are `most` at the largest."""
    return Mark(
        "dots",
        colour,
        label,
        tuple(tally.params[place] for tally in tallies),
        tuple(tally.regret.mean for tally in tallies),
        radius=tuple(2 + 3 * math.sqrt(tally.regret.runs / most) for tally in tallies),
        tips=tuple(
            f"{'fresh' if tally.fresh else 'search'}: {named(result, tally)} loses {interval(tally.regret)} in "
            f"{counted(tally.regret.runs, 'run')}"
            for tally in tallies
        ),
    )


def kind_marks(result: Account, tallies: Sequence[Tally], means: Mark) -> Iterator[Mark]:
    """Band, line and dots; dots with intervals where values are few, or more than one mean stands at a place."""
    low, high = tuple(tally.regret.low for tally in tallies), tuple(tally.regret.high for tally in tallies)
    if len(result.parameters) == 1 and len(set(means.x)) == len(means.x) >= JOINED:
        yield Mark("band", means.colour, x=means.x, low=low, high=high)
        yield Mark("line", means.colour, means.label, x=means.x, y=means.y)
        yield replace(means, label="")
    elif tallies:
        yield replace(means, low=low, high=high)


def lowest(result: Account) -> Iterator[Part]:
    """The best values, search and fresh instances apart."""
    for kind, fresh, _ in reversed(KINDS):
        ranked = best(result.ended(fresh=fresh))
        if not ranked:
            continue
        runs = [tally.regret.runs for tally in ranked]
        words = []
        if len(ranked) < len(result.ended(fresh=fresh)):
            words.append(
                f"{counted(len(ranked), 'value')} with {counted(min(runs), 'run')} or more; others are too noisy to be "
                "ranked."
            )
        if len(ranked) > 1:
            words.append(
                "Chosen by looking: the first of them is likely to lose more than it says here. Intervals are of each "
                "value by itself."
            )
        if max(runs) < ENOUGH:
            words.append(f"No value has {ENOUGH} runs: all of this is noisy.")
        yield Part(f"Lowest means on {kind} instances", tuple(words), table=best_table(result, ranked))


def best_table(result: Account, ranked: Sequence[Tally]) -> Table:
    """The first of them in numbers."""
    return values_table(result, ranked[:BEST])


def values_table(result: Account, tallies: Sequence[Tally]) -> Table:
    """A row for each, with the number of its noise where it has its own."""
    own = [str(tally.noise) for tally in tallies] if result.noise == "own" else []
    rows = [
        (
            *map(number, tally.params),
            *own[place : place + 1],
            f"{tally.regret.runs:,}",
            number(tally.regret.mean),
            number(tally.regret.se) if tally.regret.runs > 1 else "",
            f"{number(tally.regret.low)} to {number(tally.regret.high)}" if has_interval(tally.regret) else "",
            number(tally.spread.at(0.5)),
            number(tally.spread.at(0.99)),
        )
        for place, tally in enumerate(tallies)
    ]
    head = (*result.parameters, *["noise"] * bool(own), "runs", "regret", "std. error", "95% interval", "median", "99%")
    return Table(head, tuple(rows), left=0)


def spreads(result: Account) -> list[tuple[str, Spread]]:
    """How single runs lose at the lowest mean of each kind of instances."""
    found = []
    for kind, fresh, _ in reversed(KINDS):
        for tally in best(result.ended(fresh=fresh))[:1]:
            found.append((f"{kind}: {named(result, tally)}", tally.spread))
    return found


def single_runs(result: Account) -> Iterator[Part]:
    """Quantiles at the lowest means."""
    found = spreads(result)
    levels = found[0][1].levels.tolist()
    rows = [
        ("all" if level == 1 else percent(level), *(number(spread.at(level)) for _, spread in found))
        for level in levels
    ]
    rows += [("mean", *(number(spread.mean) for _, spread in found)), ("runs", *(f"{s.runs:,}" for _, s in found))]
    words = (
        "At the lowest mean of each kind of instances. The plot shows which share of the runs loses so much or more: to "
        "the right and up is worse. The table shows what so many of the runs lose at most.",
    )
    quantiles = Table(("runs", *(name for name, _ in found)), tuple(rows))
    yield Part("How single runs lose", words, points.spread_plot(found), quantiles)


def growth(result: Account) -> Iterator[Part]:
    """Regret over steps at the best value, where it was counted more than once."""
    if len(result.steps) == 1:
        return
    first = leader(result)
    same = [t for t in result.tallies if (t.params, t.noise, t.fresh) == (first.params, first.noise, first.fresh)]
    line = sorted(same, key=lambda tally: tally.step)
    x, y = tuple(float(tally.step) for tally in line), tuple(tally.regret.mean for tally in line)
    tips = tuple(f"after {tally.step:,} steps: {number(tally.regret.mean)}" for tally in line)
    marks = (
        *growth_band(line, rivals(result)),
        Mark("line", CURVE, named(result, first), x=x, y=y),
        Mark("dots", CURVE, x=x, y=y, radius=(3.0,) * len(x), tips=tips),
    )
    heights = [height for mark in marks for height in (*mark.y, *mark.low, *mark.high)]
    about = f"Mean regret over steps: {tips[-1]}."
    across = Axis("step", 0.0, 1.02 * x[-1], 0.85 * x[0], whole=True)
    plot = Plot(about, across, axis("Bayes regret", [0.0, *heights]), marks, (x[-1], y[-1]))
    yield Part("Regret as the run goes on", (f"{named(result, first)}, the value of the headline.",), plot)


def growth_band(line: Sequence[Tally], count: int) -> Iterator[Mark]:
    """The leader's intervals over steps, where it has any."""
    found = [(float(tally.step), surely(tally, count)) for tally in line]
    known = [(step, *sure) for step, sure in found if sure]
    if known:
        x, low, high = zip(*known, strict=True)
        label = "95% band" if count == 1 else "95% band for all values together"
        yield Mark("band", CURVE, label, x=x, low=low, high=high)


def every_value(result: Account) -> Iterator[Part]:
    """All means as tables that open by a click, up to a length that can be read."""
    for kind, fresh, _ in KINDS:
        tallies = sorted(result.ended(fresh=fresh), key=lambda tally: (tally.params, tally.noise))
        if len(tallies) < 2:
            continue
        words = (f"The first {LISTED} of {len(tallies):,}.",) if len(tallies) > LISTED else ()
        title = f"All values on {kind} instances"
        yield Part("", words, table=values_table(result, tallies[:LISTED]), folded=title)


def provenance(result: Account) -> Part:
    """What was played, and by what."""
    rows = (
        ("policy", result.policy),
        ("problem", result.problem),
        ("horizon", f"{result.horizon:,}"),
        ("counted after", ", ".join(f"{step:,}" for step in result.steps[:20]) + " steps"),
        ("regret", result.regret),
        ("reward noise", result.noise),
        ("played by", "the plain loop" if result.play == "plain" else result.play),
        ("device", f"{result.device}, in {result.precision}"),
        ("seed", str(result.seed)),
        ("first played with", result.versions or "unknown"),
        ("setup", f"number {result.number} of its ledger"),
    )
    return Part("How this was played", (), None, Table(("", ""), rows, left=2))
