"""What was computed rather than simulated, optima, exact regrets and bounds: as text, as stories with plots, as figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from banditune.reports import figures
from banditune.reports.points import CURVE, GREY, TUNED, Axis, Mark, Plot, axis, floor_marks
from banditune.reports.story import Part, Story, Table, floor_figures, floor_words, repeated, scale_words, story
from banditune.reports.tables import text
from banditune.reports.words import below, counted, headline, number, scale_lines, sureness, table
from banditune.results import TAIL, Bound, ExactRegret, Optimum, student_quantile

JOINED = 5
"""From so many values on they are joined by a line: between few values nobody knows the regret."""

TOLD = {
    "future": "all rewards; a pull pays the mean of the arm given all of them",
    "belief": "all rewards; a pull pays the arm's posterior mean at that pull",
    "value": "as belief, less a charge for how rewards change the expected best mean",
    "one arm": "the best mean of the other arms; each arm plays alone, for a price",
    "together": "all rewards, with the charges of one arm; all pulls make up the horizon",
}
"""What the player of each bound is told who loses no more than any policy."""


@text.register
def _(result: Optimum) -> str:
    return "\n".join([headline(result.setup), "", f"{optimum_answer(result)} (exact)."])


@text.register
def _(result: ExactRegret) -> str:
    rows: list[Sequence[str]] = [(result.parameter, "regret")]
    for value, regret in zip(result.values, result.regret, strict=True):
        rows.append((number(value), digits(regret) + ("  <- theory" if value == result.theory else "")))
    head = [headline(result.setup), *scale_lines(result.setup), ""]
    return "\n".join([*head, table(rows, left=(1,)), "", *below(result.floor)]).rstrip()


@text.register
def _(result: Bound) -> str:
    rows = [("bound", "regret", "std. error", "instances"), *bound_rows(result)]
    seed = f"seed {result.setup.seed}"
    return "\n".join([headline(result.setup), "", bound_answer(result), "", table(rows), "", seed])


@story.register
def _(result: Optimum) -> Story:
    steps = result.setup.horizon
    rows = [("the best policy", result.reward), ("one who knows the best arm", result.known), ("regret", result.regret)]
    shown = Table(
        ("expected", "in all", "a step"), tuple((name, digits(all_), digits(all_ / steps)) for name, all_ in rows)
    )
    words = (
        "By dynamic programming, backwards over everything that can be known at each step: no policy can do better, and "
        "`bt.optimal_policy(problem)` is the one that does this. Nothing was simulated, so there is no standard error.",
    )
    remembered = (
        ("no policy goes below", number(result.regret), "exact"),
        ("the best policy earns", digits(result.reward), f"in {counted(steps, 'step')}"),
        ("one who knows the best arm", digits(result.known), "earns so much"),
    )
    parts = (Part("What was computed", words, table=shown), repeated(result, result.setup, []))
    return Story(headline(result.setup), f"{optimum_answer(result)}.", remembered, parts)


@story.register
def _(result: ExactRegret) -> Story:
    words = (
        "Probabilities of everything that can happen, followed step by step: nothing was simulated, so there is no "
        "standard error.",
        *scale_words(result.setup),
        *floor_words(result.floor),
    )
    parts = (Part("Regret", words, regret_plot(result), regret_table(result)), repeated(result, result.setup, []))
    return Story(headline(result.setup), regret_answer(result), tuple(regret_figures(result)), parts)


@story.register
def _(result: Bound) -> Story:
    rows = tuple((kind, TOLD.get(kind, ""), *numbers) for kind, *numbers in bound_rows(result))
    words = (
        "A player who is told more than a policy may know loses no more than any policy. Each bound is what such a player "
        "loses: a mean over sampled instances, with its 95% interval, or computed.",
        bound_choice(result),
    )
    shown = Table(("bound", "what the player is told", "regret", "std. error", "instances"), rows, left=2)
    own = [("seed", str(result.setup.seed)), ("instances", f"{max(result.runs):,}")]
    if result.confidence is not None:
        own.append(("confidence", f"{100 * result.confidence:g}%"))
    parts = (Part("Bounds", words, bound_plot(result), shown), repeated(result, result.setup, own))
    remembered = (
        ("no policy goes below", number(result.floor.regret), sureness(result.floor)),
        ("best bound", result.floor.how, f"of {counted(len(result.kinds), 'kind')}"),
    )
    return Story(headline(result.setup), bound_answer(result), remembered, parts)


@figures.draw.register
def _(result: ExactRegret, axes: Any) -> None:
    figures.draw_plot(regret_plot(result), axes, headline(result.setup))


@figures.draw.register
def _(result: Bound, axes: Any) -> None:
    figures.draw_plot(bound_plot(result), axes, headline(result.setup))


def digits(value: float) -> str:
    """A number that was computed, with seven digits."""
    return f"{value:.7g}"


def optimum_answer(result: Optimum) -> str:
    """What the best policy loses and earns."""
    return (
        f"The best policy loses {number(result.regret)} on average: it earns {digits(result.reward)} of the "
        f"{digits(result.known)} of one who knows the best arm"
    )


def lowest(result: ExactRegret) -> int:
    """The place of the value that loses least, the first of equal ones."""
    return int(result.regret.argmin())


def tunable(result: ExactRegret) -> bool:
    """Whether the policy has a parameter; one without takes any value and loses the same."""
    return result.parameter != "value" or len(set(result.regret.tolist())) > 1


def named(result: ExactRegret, place: int) -> str:
    """gamma = 0.2; a policy without parameters is called by its name."""
    if tunable(result):
        return f"{result.parameter} = {number(float(result.values[place]))}"
    assert result.setup.policy is not None
    return str(result.setup.policy["name"])


def beyond(result: ExactRegret, place: int) -> float:
    """What is lost beyond the best policy; rounding must not make a policy better than that."""
    assert result.floor is not None
    more = float(result.regret[place]) - result.floor.regret
    return more if more > 1e-9 * result.floor.regret else 0.0


def regret_answer(result: ExactRegret) -> str:
    """What loses least, how far that is from the best that any policy can do, and what theory's value loses."""
    best, different = lowest(result), len(set(result.values.tolist()))
    answer = f"{named(result, best)} loses {digits(float(result.regret[best]))} on average"
    if tunable(result) and different > 1:
        answer += f", the least of {different:,} values"
    if result.floor:
        answer += f", {beyond_words(result, best)}"
    theory = theory_regret(result)
    if tunable(result) and theory is not None and result.values[best] != result.theory:
        answer += f"; theory's {result.parameter} = {number(result.theory)} loses {digits(theory)}"
    return f"{answer}."


def beyond_words(result: ExactRegret, place: int) -> str:
    """0.18 (13%) more than the best that any policy can do."""
    assert result.floor is not None
    more = beyond(result, place)
    if not more:
        return "which is the best that any policy can do"
    share = f" ({more / result.floor.regret:.1%})" if result.floor.regret > 0 else ""
    return f"{number(more)}{share} more than the best that any policy can do"


def theory_regret(result: ExactRegret) -> float | None:
    """What theory's value loses, if it is among the values."""
    found = result.regret[result.values == result.theory]
    return float(found[0]) if len(found) else None


def regret_figures(result: ExactRegret) -> Iterator[tuple[str, str, str]]:
    """What to remember of exact regrets."""
    best = lowest(result)
    if tunable(result):
        yield result.parameter, number(float(result.values[best])), f"theory: {number(result.theory)}"
    yield "regret", digits(float(result.regret[best])), "exact"
    yield from floor_figures(result.floor)


def regret_table(result: ExactRegret) -> Table:
    """A row for each value; where the best that any policy can do is known, what is lost beyond it."""
    rows = []
    for place, (value, regret) in enumerate(zip(result.values.tolist(), result.regret.tolist(), strict=True)):
        more = (number(beyond(result, place)),) if result.floor else ()
        theory = "theory" if tunable(result) and value == result.theory else ""
        rows.append((number(value), digits(regret), *more, theory))
    more = ("beyond the best policy",) if result.floor else ()
    return Table((result.parameter, "regret", *more, ""), tuple(rows), left=0)


def regret_plot(result: ExactRegret) -> Plot:
    """Exact regret over the parameter."""
    best = lowest(result)
    place, height = float(result.values[best]), float(result.regret[best])
    low = f"lowest: {named(result, best)}"
    marks = (
        *theory_marks(result),
        *floor_marks(result.floor, "level"),
        *value_marks(result),
        Mark("dots", TUNED, low, (place,), (height,), radius=(4.5,), tips=(f"{low} loses {digits(height)}",)),
    )
    x = axis(result.parameter, [*result.values.tolist(), result.theory])
    y = axis("Bayes regret", [0.0, *result.regret.tolist(), *([result.floor.regret] if result.floor else [])])
    return Plot(regret_answer(result), x, y, marks, (place, height))


def theory_marks(result: ExactRegret) -> Iterator[Mark]:
    """Theory's value, where there is a parameter."""
    if tunable(result):
        yield Mark("rule", GREY, f"theory: {result.parameter} = {number(result.theory)}", x=(result.theory,))


def value_marks(result: ExactRegret) -> Iterator[Mark]:
    """The values in order, joined where they are many."""
    pairs = sorted(set(zip(result.values.tolist(), result.regret.tolist(), strict=True)))
    x, y = zip(*pairs, strict=True)
    tips = tuple(f"{result.parameter} = {number(value)} loses {digits(regret)}" for value, regret in pairs)
    joined, label = len(x) >= JOINED, "Bayes regret, exact"
    if joined:
        yield Mark("line", CURVE, label, x=x, y=y)
    yield Mark("dots", CURVE, "" if joined else label, x, y, radius=(3.0,) * len(x), tips=tips)


def bound_answer(result: Bound) -> str:
    """What no policy can lose less than."""
    words = f"No policy can lose less than {number(result.floor.regret)} on average ({sureness(result.floor)})."
    if result.floor.horizon is None:
        return words
    return f"{words} The bound is that of horizon {result.floor.horizon:,}: beyond it these bounds do not grow."


def bound_choice(result: Bound) -> str:
    """Where the answer comes from."""
    if result.floor.level == 1:
        return f"The answer is the bound {result.floor.how!r}, which is computed: no sampled one is surely higher."
    return (
        f"The answer is the lower limit ({sureness(result.floor)}) of {result.floor.how!r}, which was chosen on instances "
        "of their own and then sampled on further ones: its mean there is not quite that of the table."
    )


def bound_rows(result: Bound) -> Iterator[tuple[str, ...]]:
    """A row for each kind of bound."""
    for kind, mean, se, runs in zip(result.kinds, result.mean, result.se, result.runs, strict=True):
        yield (kind, number(mean), number(se), f"{runs:,}") if runs else (kind, number(mean), "computed", "")


def bound_plot(result: Bound) -> Plot:
    """A row for each kind of bound, with its interval."""
    mean, rows = tuple(result.mean.tolist()), tuple(map(float, range(len(result.kinds))))
    half = [
        student_quantile(TAIL, runs - 1) * se if runs else 0.0
        for se, runs in zip(result.se.tolist(), result.runs, strict=True)
    ]
    low, high = (tuple(m + side * h for m, h in zip(mean, half, strict=True)) for side in (-1, 1))
    tips = tuple(
        f"{kind}: {number(m)}" + (f" ({number(least)} to {number(most)})" if runs else " (computed)")
        for kind, m, least, most, runs in zip(result.kinds, mean, low, high, result.runs, strict=True)
    )
    marks = (
        *floor_marks(result.floor, "rule"),
        Mark("dots", TUNED, "bounds, 95% interval", mean, rows, low, high, (4.5,) * len(rows), tips, along="x"),
    )
    about = "Lower bounds on the Bayes regret of every policy: " + "; ".join(tips) + "."
    across = axis("Bayes regret", [0.0, *low, *high, result.floor.regret])
    down = Axis("", -0.5, len(rows) - 0.5, names=result.kinds)
    return Plot(about, across, down, marks, (result.floor.regret, 0.0))
