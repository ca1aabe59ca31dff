"""What a report tells about a result, part by part: sentences, tables and plots, not yet drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

from banditune.contracts import BadRequest
from banditune.descriptions import OWN
from banditune.reports import points, repeat
from banditune.reports.points import Plot, percent, told
from banditune.reports.tables import (
    BACKTEST_HEAD,
    STRAIN_HEAD,
    backtest_answer,
    backtest_rows,
    comparison_notes,
    comparison_table,
    entry_scales,
    flattered,
    lead,
    strain_rows,
    strain_share,
    strain_verdict,
    surely,
    theory_words,
    tuning_head,
    tuning_rows,
    verdict,
)
from banditune.reports.words import (
    ASSUMED,
    about,
    baseline_name,
    below,
    fresh,
    headline,
    made_words,
    number,
    scale_lines,
    settings,
    sureness,
)
from banditune.results import (
    Backtest,
    Comparison,
    Curve,
    Estimate,
    Floor,
    Record,
    Setup,
    Spread,
    Stress,
    Tuning,
)

AS_TYPED = "The same again, as it was typed, as long as the files that it names hold what they held then:"
FROM_PYTHON = "No command line can tell all of this; it is repeated from Python, with these settings:"
"""How a result is repeated whose command is known, and one that has none."""

SHOWN = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
"""Quantiles that the table shows."""


@dataclass(frozen=True)
class Table:
    """Rows of words below a head; the first `left` columns are words, the others numbers."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 1


@dataclass(frozen=True)
class Part:
    """A piece of a report. What is `folded` is opened by a click; `code` is to be copied."""

    title: str
    words: tuple[str, ...] = ()
    plot: Plot | None = None
    table: Table | None = None
    code: str = ""
    folded: str = ""


@dataclass(frozen=True)
class Story:
    """The answer in a sentence, figures to remember (name, number, words), then the parts."""

    title: str
    answer: str
    figures: tuple[tuple[str, str, str], ...]
    parts: tuple[Part, ...]


@singledispatch
def story(result: Any) -> Story:
    """What there is to tell about a result."""
    raise BadRequest(
        "a tuning, a curve or a comparison can be reported, and so can a backtest, a fit, a ledger and what was computed, "
        f"but got {type(result).__name__}."
    )


@story.register
def _(result: Tuning) -> Story:
    answer = f"{settings(result.params)} loses {number(result.regret.mean)} on average, {verdict(result)}."
    parts = (*tuning_parts(result), provenance(result, result.setup))
    return Story(headline(result.setup), answer, tuple(tuning_figures(result)), parts)


def tuning_parts(result: Tuning) -> tuple[Part, ...]:
    """All that a tuning tells but how to repeat it."""
    return (
        *said("Warnings", result.warnings),
        Part(
            "Regret and gain",
            (
                f"From {fresh(result.setup, result.validated)}, which the search did not see, the same for both values: "
                "the gain is a paired difference.",
                *scale_words(result.setup, result.baseline),
                *sentences(about(result.setup)),
                *sentences([ASSUMED]),
                *floor_words(result.floor, result.regret.mean),
            ),
            points.tuning_plot(result),
            Table(tuning_head(result), tuple(tuning_rows(result))),
        ),
        *(curve_numbers(result.curve) if result.curve else ()),
        *(stress_parts(result.stress) if result.stress else ()),
        *spread_parts([("tuned", result.spread), (baseline_name(result), result.theory_spread)]),
        *again(result),
        Part(
            "Where the search looked",
            (
                f"{result.setup.tuner_name} spent {result.spent:,} of {result.budget:,} runs in "
                f"{len(result.trials):,} trial{'s' * (len(result.trials) != 1)}.",
                *known(result),
            ),
            points.search_plot(result),
        ),
    )


def scale_words(setup: Setup, baseline: Mapping[str, Any] | None = None) -> Iterator[str]:
    """What the policy took from the problem, as a sentence."""
    for line in scale_lines(setup, baseline):
        yield f"The policy has {line}."


def stress_parts(stress: Stress) -> Iterator[Part]:
    """What is lost where something else comes than was expected."""
    words = strain_verdict(stress)
    yield Part(
        "If something else comes",
        (
            f"{words[0].upper()}{words[1:]}.",
            f"On each of these problems the policy was tuned again, with {stress.budget:,} runs. Then the value, the best "
            f"one that is known there and theory's were played on the same {fresh(stress.setup, stress.validated)}; the "
            "loss is a paired difference. Fine means that the value surely loses at most a tenth more than any other, "
            "fragile that it surely loses more. Where the search for that problem cannot be trusted, or errors are too "
            "large, it is not decided.",
            *sentences(about(stress.setup)),
            *stress.warnings,
        ),
        table=Table(STRAIN_HEAD, tuple(strain_rows(stress))),
    )


@story.register
def _(result: Backtest) -> Story:
    words = (
        f"The problem was fitted to {result.fit.campaigns} campaigns and the policy tuned on it; {result.campaigns} "
        "others were then played as their own data have them. Intervals tell what so few campaigns leave open. All that "
        "comes after this table is about the problem that was fitted: its regret and gain are others.",
        *(f"{doubt[0].upper()}{doubt[1:]}." for doubt in result.doubts),
    )
    judged = Part("Campaigns that were left out", words, table=Table(BACKTEST_HEAD, tuple(backtest_rows(result))))
    difference = result.difference
    paired = () if difference is None else (("tuned minus logged", number(difference.mean), reach(difference)),)
    figures = (
        ("gain on other campaigns", number(result.gain.mean), reach(result.gain)),
        ("reward a decision", number(result.reward.mean), f"as logged: {number(result.logged.mean)}"),
        *paired,
        parameter_figure(result.tuning),
    )
    parts = (judged, *said("Notes", result.fit.notes), *tuning_parts(result.tuning), provenance(result, result.setup))
    return Story(headline(result.setup), f"{backtest_answer(result)}.", figures, parts)


@story.register
def _(result: Stress) -> Story:
    words = strain_verdict(result)
    worst = result.worst
    figures = (("largest loss", strain_share(worst), worst.words),)
    parts = (*stress_parts(result), provenance(result, result.setup))
    return Story(headline(result.setup), f"{words[0].upper()}{words[1:]}.", figures, parts)


def known(result: Tuning) -> Iterator[str]:
    """What the search knows about its answer, as a sentence."""
    lines = [line.strip() for line in surely(result) if line]
    if lines:
        yield "; ".join(lines) + "."


def parameter_figure(result: Tuning) -> tuple[str, str, str]:
    """The tuned value beside theory's."""
    ((name, value),) = result.params.items()
    return name, number(value), f"{baseline_name(result)}: {number(result.theory_params[name])}"


def tuning_figures(result: Tuning) -> Iterator[tuple[str, str, str]]:
    """What to remember of a tuning."""
    yield parameter_figure(result)
    yield "regret", number(result.regret.mean), reach(result.regret)
    theory = result.theory.mean
    share = f"{result.gain.mean / theory:.0%} of {number(theory)}, " if theory > 0 else ""
    yield f"gain over {theory_words(baseline_name(result))}", number(result.gain.mean), share + reach(result.gain)
    if result.spread:
        half = number(result.spread.at(0.5))
        yield "1 run in 100 loses", number(result.spread.at(0.99)), f"or more; half lose {half} or more"
    yield from floor_figures(result.floor, result.regret.mean)


def floor_figures(floor: Floor | None, regret: float = 0.0) -> Iterator[tuple[str, str, str]]:
    """What no policy can go below, where it is known and not weak beside the regret of a policy."""
    if floor is not None and not floor.weakness(regret):
        yield "no policy goes below", number(floor.regret), "exact" if floor.exact else sureness(floor)


def floor_words(floor: Floor | None, regret: float = 0.0) -> Iterator[str]:
    """The same, as a sentence."""
    yield from sentences(filter(None, below(floor, regret)))


def sentences(lines: Iterable[str]) -> Iterator[str]:
    """Lines of the text as sentences."""
    for line in lines:
        yield f"{line[0].upper()}{line[1:]}."


def reach(estimate: Estimate) -> str:
    """95%: 35.6 to 45.3."""
    return f"95%: {number(estimate.low)} to {number(estimate.high)}"


def said(title: str, sentences: Sequence[str]) -> Iterator[Part]:
    """Warnings or notes, as they are."""
    if sentences:
        yield Part(title, tuple(sentences))


def curve_numbers(curve: Curve) -> Iterator[Part]:
    """The curve as a table."""
    numbers = (curve.values.tolist(), curve.mean.tolist(), curve.se.tolist(), curve.reach.tolist())
    rows = tuple(
        (number(value), number(mean), number(se), f"{number(mean - reach)} to {number(mean + reach)}")
        for value, mean, se, reach in zip(*numbers, strict=True)
    )
    words = (f"{curve.runs:,} runs a value, the same instances for all. Shape: {curve.unimodality!r}.",)
    table = Table((curve.parameter, "regret", "std. error", "95% interval"), rows, left=0)
    yield Part("", words, table=table, folded="The curve in numbers")


def spread_parts(given: Sequence[tuple[str, Spread | None]]) -> Iterator[Part]:
    """How single runs lose, where the result knows it."""
    spreads = [(name, spread) for name, spread in given if spread]
    if not spreads:
        return
    rows = [(percent(level), *(number(spread.at(level)) for _, spread in spreads)) for level in SHOWN]
    rows += [("all", *(number(float(spread.values[-1])) for _, spread in spreads))]
    rows += [("mean", *(number(spread.mean) for _, spread in spreads))]
    quantiles = Table(("runs", *(name for name, _ in spreads)), tuple(rows))
    words = (
        "A mean hides the tail. The plot shows which share of the runs loses so much or more: to the right and up is "
        "worse; the last dots are single runs. The table shows what so many of the runs lose at most.",
    )
    yield Part("How single runs lose", words, points.spread_plot(spreads), quantiles)


def again(result: Tuning) -> Iterator[Part]:
    """The worst runs, and how to play one of them again."""
    spread = result.spread
    if spread is None:
        return
    # The textbook's policy, where it is another one, is not the policy that is named below.
    same = baseline_name(result) == "theory"
    values = [*result.params.values(), *(result.theory_params.values() if same else ())]
    rows = tuple((str(run), number(loss)) for run, loss in zip(spread.worst, spread.losses.tolist(), strict=True))
    usual = "tuned and with theory's" if same else "tuned"
    words = (
        "Runs are known by their number. With the policy and the problem that are named below, this plays the worst one "
        f"again, with the {usual} value:",
    )
    code = repeat.call(result.setup, values, spread.worst[0])
    yield Part("", words, table=Table(("run", "regret, tuned"), rows, left=1), code=code, folded="The worst runs")


@story.register
def _(result: Curve) -> Story:
    name, best = result.parameter, result.best_regret
    part = Part(
        "Regret",
        (
            f"{result.runs:,} runs a value, the same instances for all; the best value was played again on fresh ones.",
            *scale_words(result.setup),
            *sentences(about(result.setup)),
        ),
        points.curve_plot(result),
    )
    figures = (
        (f"best {name}", number(result.best), f"theory: {number(result.theory)}"),
        ("regret there", number(best.mean), reach(best)),
    )
    answer = f"The regret is lowest at {name} = {number(result.best)}, which loses {told(best)} on fresh instances."
    return Story(
        headline(result.setup),
        answer,
        figures,
        (*said("Warnings", result.warnings), part, *curve_numbers(result), provenance(result, result.setup)),
    )


@story.register
def _(result: Comparison) -> Story:
    head, *rows = comparison_table(result, error="95% interval")
    table = Table(head, tuple(rows), left=2)
    words = (
        f"Each tuned with {result.budget:,} runs, then all played on the same {fresh(result.setup, result.validated)}; "
        "differences to the best are paired, and their intervals hold for all pairs together.",
        *sentences(about(result.setup)),
        *sentences(flattered(result)),
        *lead_words(result),
        *(f"{line}." for line in entry_scales(result) if line),
        *(f"{note[0].upper()}{note[1:]}." for note in comparison_notes(result)),
        *sentences([ASSUMED]),
        *floor_words(result.floor, result.lowest.mean),
    )
    parts = (
        *said("Warnings", result.warnings),
        Part("Policies", words, points.comparison_plot(result), table),
        *spread_parts([(entry.policy, entry.spread) for entry in result.entries]),
        provenance(result, result.setup),
    )
    best = result.entries[0]
    figures = (
        ("best policy", best.policy, settings(best.recommended)),
        ("regret", number(result.lowest.mean), reach(result.lowest)),
        *floor_figures(result.floor, result.lowest.mean),
    )
    return Story(headline(result.setup), lead(result), figures, parts)


def lead_words(result: Comparison) -> Iterator[str]:
    """What the best policy loses where it was not chosen."""
    if result.again:
        yield (
            f"On as many other instances {result.best} loses {told(result.again)}: those on which it was chosen, which the "
            "table and the picture have, flatter it a little."
        )


def provenance(result: Record, setup: Setup) -> Part:
    """Everything that is needed to play the result again."""
    rows = [
        *([("tuner", made_words(setup.tuner))] if setup.tuner else []),
        *((f"range of {name}", f"{low:.4g} to {high:.4g}") for name, (low, high) in searched(result).items()),
        ("regret", setup.regret),
        ("reward noise", setup.noise),
        ("shortcuts", "yes" if setup.shortcut else "no"),
        ("device", setup.device),
        ("seed", str(setup.seed)),
    ]
    return repeated(result, setup, rows)


def searched(result: Record) -> Mapping[str, tuple[float, ...]]:
    """Ranges that were searched, by the names of parameters, and of policies where there are several."""
    if isinstance(result, Comparison):
        return {
            f"{name} of {entry.policy}": ends
            for entry in result.entries
            for name, ends in (entry.searched or {}).items()
        }
    if isinstance(result, Tuning):
        return result.searched or {}
    return result.setup.ranges or {} if isinstance(result, Curve) else {}


def repeated(result: Record, setup: Setup, rows: Sequence[tuple[str, str]]) -> Part:
    """How to get a result again: what it is about, the `rows` that are its own, versions, and the command line."""
    about = [
        *([("policy", made_words(setup.policy))] if setup.policy else []),
        ("problem", made_words(setup.problem)),
        ("horizon", f"{setup.horizon:,}"),
    ]
    own = own_rows(result, setup)
    line = repeat.command(result)
    if setup.command is not None:
        words = AS_TYPED
    elif line is None:
        words = FROM_PYTHON
    elif own:
        words = (
            "The same again; NAME is what a policy or problem of yours is called in its file, which must hold what it held "
            "then:"
        )
    else:
        words = "The same again:"
    table = Table(("", ""), (*about, *own, *rows, *setup.versions.items()), left=2)
    return Part("How to repeat this", (words,), None, table, line or "")


def own_rows(result: Record, setup: Setup) -> list[tuple[str, str]]:
    """Where the code stands that is not on the shelf: a row for each policy, the problem and the tuner that have some."""
    several = [entry.made for entry in result.entries] if isinstance(result, Comparison) else []
    made = (*several, setup.policy, setup.problem, setup.tuner)
    return [(f"code of {one['name']}", str(one[OWN])) for one in made if one and OWN in one]
