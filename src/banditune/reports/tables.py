"""Results as plain text: a sentence that answers the question, then the numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import singledispatch
from typing import Any

from banditune.contracts import BadRequest
from banditune.reports.words import (
    ASSUMED,
    about,
    baseline_name,
    below,
    cells,
    counted,
    fresh,
    from_problem,
    headline,
    number,
    place,
    range_words,
    scale_lines,
    settings,
    table,
    textbook_name,
)
from banditune.results import (
    Backtest,
    Comparison,
    Curve,
    Entry,
    Estimate,
    Record,
    Strain,
    Stress,
    Tuning,
)


@singledispatch
def text(result: Any) -> str:
    """A result as plain text."""
    if not isinstance(result, Record):
        raise BadRequest(f"a result of one of the verbs can be told, but got {type(result).__name__}.")
    own = type(result).__repr__
    return str(own(result)) if own is not Record.__repr__ else f"a {type(result).__name__}"


@text.register
def _(result: Estimate) -> str:
    return f"{number(result.mean)} +- {number(result.se)}"


@text.register
def _(result: Tuning) -> str:
    answer = f"{settings(result.params)} loses {number(result.regret.mean)} on average"
    return "\n".join(
        [
            headline(result.setup),
            *scale_lines(result.setup, result.baseline),
            "",
            f"{answer}, {verdict(result)}.",
            "",
            table([tuning_head(result), *tuning_rows(result)]),
            *about(result.setup),
            "",
            *below(result.floor, result.regret.mean),
            *surely(result),
            *((*strain_lines(result.stress), "") if result.stress else ()),
            *(f"warning: {warning}" for warning in result.warnings),
            f"search: {result.setup.tuner_name}{range_words(result.setup)}, {result.spent:,} of {result.budget:,} runs; "
            f"validation: {fresh(result.setup, result.validated)}, paired; {result.setup.regret} regret, "
            f"seed {result.setup.seed}{place(result.setup)}",
            ASSUMED,
        ]
    )


def tuning_head(result: Tuning) -> tuple[str, ...]:
    """What the columns of `tuning_rows` are."""
    return ("", *result.params, "regret", "std. error", "95% interval")


def tuning_rows(result: Tuning) -> Iterator[tuple[str, ...]]:
    """Tuned, theory and the gain."""
    yield "tuned", *map(number, result.params.values()), *cells(result.regret)
    yield baseline_name(result), *map(number, result.theory_params.values()), *cells(result.theory)
    yield "gain", *("" for _ in result.params), *cells(result.gain)


@text.register
def _(result: Stress) -> str:
    lines = [*strain_lines(result), *about(result.setup)]
    return "\n".join([headline(result.setup), *scale_lines(result.setup), "", *lines])


@text.register
def _(result: Backtest) -> str:
    return "\n".join(
        [
            headline(result.setup),
            *scale_lines(result.setup, result.tuning.baseline),
            "",
            f"{backtest_answer(result)}.",
            "",
            table([BACKTEST_HEAD, *backtest_rows(result)]),
            "",
            *(f"note: {note}" for note in result.notes),
            *(f"warning: {warning}" for warning in result.warnings),
            f"tuned on {result.fit.campaigns} campaigns ({result.fit.model}), judged on {result.campaigns} others; "
            f"seed {result.setup.seed}",
            ASSUMED,
        ]
    )


BACKTEST_HEAD = ("on campaigns left out", "mean", "std. error", "95% interval")


def backtest_answer(result: Backtest) -> str:
    """What the tuned policy does on campaigns that it was not tuned on."""
    return (
        f"{settings(result.tuning.params)}, tuned on {result.fit.campaigns} campaigns, loses {number(result.regret.mean)} "
        f"on each of {result.campaigns} others ({result.setup.horizon:,} decisions), {backtest_verdict(result)}"
    )


def backtest_verdict(result: Backtest) -> str:
    """How the tuned value compares with theory's on these campaigns, as far as they allow to say."""
    name = baseline_name(result.tuning)
    if name == "theory" and result.tuning.params == result.tuning.theory_params:
        return "which is what theory has"
    sure = "" if result.gain.low > 0 or result.gain.high < 0 else ", which so few campaigns do not prove"
    if sure and result.doubts:
        usual = theory_words(name)
        return f"as far as can be seen no more or less than {usual}: arms show no difference beyond chance there"
    change = f"{number(abs(result.gain.mean))} {'less' if result.gain.mean >= 0 else 'MORE'}"
    return f"{change} than {theory_words(name)}{sure}"


def theory_words(name: str) -> str:
    """The baseline in a sentence."""
    return name if name == "theory" else f"the {name.replace(', ', ' with ', 1)}"


def backtest_rows(result: Backtest) -> Iterator[tuple[str, ...]]:
    """Regrets of a campaign, rewards of a decision."""
    yield "regret, tuned", *cells(result.regret)
    name = baseline_name(result.tuning)
    yield f"regret, {name}", *cells(result.theory)
    yield "gain", *cells(result.gain)
    yield "reward a decision, tuned", *cells(result.reward)
    yield f"reward a decision, {name}", *cells(result.theory_reward)
    yield "reward a decision, as logged", *cells(result.logged)
    if result.difference is not None:  # results that were saved before had none
        yield "tuned minus logged", *cells(result.difference)


STRAIN_HEAD = ("what if", "regret", "best known", "its regret", "loss", "std. error", "share", "theory", "verdict")


def strain_rows(stress: Stress) -> Iterator[tuple[str, ...]]:
    """What a tuned value loses where something else comes, a row for each."""
    for strain in stress.strains:
        yield (
            strain.words,
            number(strain.regret.mean),
            number(strain.best),
            number(strain.best_regret.mean),
            number(strain.loss.mean),
            number(strain.loss.se),
            strain_share(strain),
            number(strain.theory.mean),
            f"{strain.verdict}: {strain.reason}" if strain.reason else strain.verdict,
        )


def strain_share(strain: Strain) -> str:
    """The loss as a share. Below 0 it is chance, or the value tuned for that case is not the best there."""
    if strain.loss.mean >= 0:
        return f"{strain.share:+.0%}"
    return "within error" if strain.loss.high >= 0 else "none"


def strain_lines(stress: Stress) -> Iterator[str]:
    """The same as a table below a sentence."""
    yield f"{strain_verdict(stress)}:"
    yield ""
    yield table([STRAIN_HEAD, *strain_rows(stress)], left=(0, len(STRAIN_HEAD) - 1))
    for warning in stress.warnings:
        yield f"warning: {warning}"


def strain_verdict(stress: Stress) -> str:
    """Whether a tuned value holds where something else comes."""
    count = len(stress.others)
    fine = sum(strain.verdict == "fine" for strain in stress.others)
    undecided = [strain for strain in stress.others if strain.verdict == "not decided"]
    broken = [strain for strain in stress.others if strain.verdict in ("fragile", "worse than theory")]
    told = [
        f"{settings(stress.params)} is shown to hold in {fine} of {counted(count, 'case')} in which something "
        "else comes than was expected"
    ]
    if broken:
        worst = max(broken, key=lambda strain: strain.share)
        told.append(strain_count("fragile", broken, worst, f"loses {strain_times(worst.share)}"))
    if undecided:
        worst = max(undecided, key=lambda strain: strain.most)
        if math.isfinite(worst.most):
            told.append(strain_count("not decided", undecided, worst, f"may lose {strain_times(worst.most)}"))
        else:
            told.append(f"not decided in {len(undecided)}, see there")
    return "; ".join(told)


def strain_count(word: str, strains: Sequence[Strain], worst: Strain, loses: str) -> str:
    """How many cases are such, and what the worst of them loses."""
    most = "most " if len(strains) > 1 else ""
    return f"{word} in {len(strains)}, {most}with {worst.words}, where it {loses} the best"


def strain_times(share: float) -> str:
    """So many times, or so many percent more than."""
    return f"{1 + share:.1f} times as much as" if share >= 1 else f"{share:.0%} more than"


def surely(result: Tuning) -> Iterator[str]:
    """What the search knows about its answer, and whether that is as much as was wanted."""
    belief = result.belief
    if belief is None:
        return
    (name,) = result.params
    if belief.misfit:
        yield f"How sure the search is, it cannot say: see the warning about its curves{wanted(result)}"
        yield ""
        return
    indent = " " * len(f"{100 * belief.level:g}% sure: ")
    data = result.setup.held_out
    alone = f", about the {counted(data.searched, data.unit)} that were searched, not new ones" if data else ""
    sure = f"{100 * belief.level:g}% sure{alone}: "
    share = f"{belief.gap / max(abs(belief.mean), 1e-300):.1%} of {number(belief.mean)}"
    nothing = f"no {belief.among(name)}" if belief.untried else "nothing"
    yield f"{sure}{nothing} beats it by more than {number(belief.gap)} ({share}{wanted(result)})"
    best = f"{number(belief.best_low)} and {number(belief.best_high)}"
    yield f"{indent}the best {belief.among(name)} is between {best}"
    if belief.flat:
        low, high, within = belief.flat
        of = f" of any {belief.among(name)}" if belief.untried else ""
        least = f"any {name} from {number(low)} to {number(high)}, at least,"
        yield f"{indent}{least} is within {within:.0%} of the lowest regret{of}"
    yield (
        f"{indent}by the search's own runs, {settings(result.params)} loses {number(belief.low)} to "
        f"{number(belief.high)}"
    )
    yield ""


def wanted(result: Tuning) -> str:
    """The wanted precision, and what ended the search before it was reached."""
    if result.within is None:
        return ""
    limit = "`max_budget`" if result.spent >= result.budget else "`max_time`"
    # A search that did reach it was refuted on fresh instances; where no curve fits, no limit is to blame.
    told = result.belief is not None and (result.belief.misfit or result.belief.keeps(result.within))
    why = "see the warning" if told else f"{limit} ended the search"
    return f"; wanted {100 * result.within:.3g}%: " + ("reached" if result.reached else f"NOT reached, {why}")


def diagnosis(found: Mapping[str, Any]) -> str:
    """What the doctor found, a line for each thing and advice below it."""
    signs = {True: "ok", False: "NOT OK", None: ""}
    rows = [(check["what"], signs[check["works"]], check["found"]) for check in found["checks"]]
    widths = [max(len(row[place]) for row in rows) for place in range(2)]
    lines = []
    for row, check in zip(rows, found["checks"], strict=True):
        lines.append(f"{row[0].ljust(widths[0])}  {row[1].ljust(widths[1])}  {row[2]}".rstrip())
        if check["advice"]:
            lines.append(f"{' ' * widths[0]}  {check['advice']}")
    lines += ["", "All is well." if found["works"] else "Something is not well: see above."]
    return "\n".join(lines)


def ledger_words(found: Mapping[str, Any]) -> str:
    """What a ledger holds, a few lines for each setup."""
    lines = [f"{found['file']}: {counted(len(found['setups']), 'setup')}, {found['bytes'] / 1e6:,.1f} MB"]
    for setup in found["setups"]:
        steps = f"step {setup['at'][0]:,}" if len(setup["at"]) == 1 else f"each of {len(setup['at'])} steps"
        lines += [
            "",
            f"{setup['setup']}  {setup['policy']} on {setup['problem']}, horizon {setup['horizon']:,}",
            f"   {setup['regret_kind']} regret after {steps}, {setup['noise_kind']} noise, seed "
            f"{setup['seed']}; played by {setup['play']} on the {setup['device']} in {setup['precision']}",
            f"   {', '.join(counted(setup[name], name.removesuffix('s')) for name in ('values', 'runs', 'blocks'))}",
        ]
    return "\n".join(lines)


def verified_words(found: Mapping[str, Any]) -> str:
    """How much of a ledger was checked."""
    told = (counted(found[name], name.removesuffix("s")) for name in ("setups", "blocks", "regrets"))
    return f"{found['file']}: {', '.join(told)}; every one is as it was written."


def usual_words(name: str, params: Mapping[str, float]) -> str:
    """The baseline with its parameters: theory's gamma = 1, the textbook with noise=0.5 and gamma = 1."""
    if name == "theory":
        return f"theory's {settings(params)}"
    return f"{theory_words(name)} and {settings(params)}" if params else theory_words(name)


def verdict(result: Tuning) -> str:
    """How the tuned value compares with theory's, as far as the interval allows to say."""
    gain, name = result.gain, baseline_name(result)
    usual = usual_words(name, result.theory_params)
    if name == "theory" and result.params == result.theory_params:
        return "which is what theory has"
    if gain.low > 0:
        share = f" ({gain.mean / result.theory.mean:.0%})" if result.theory.mean > 0 else ""
        return f"{number(gain.mean)}{share} less than {usual}"
    if gain.high < 0:
        return f"but {usual} loses {number(-gain.mean)} less: see the warnings"
    if gain.mean == gain.se == 0:
        return f"exactly as much as {usual}"
    data = result.setup.held_out
    way = f"give more {data.unit}s" if data else "raise `validate` or the budget"
    return f"which may be no better than {usual}: {way}"


@text.register
def _(result: Curve) -> str:
    worst = max(abs(m) for m in result.mean) or 1.0
    rows: list[Sequence[str]] = [(result.parameter, "regret", "std. error", "")]
    for value, mean, se in zip(result.values, result.mean, result.se, strict=True):
        mark = "  <- best" if value == result.best else "  <- theory" if value == result.theory else ""
        rows.append((number(value), number(mean), number(se), "#" * max(1, round(40 * abs(mean) / worst)) + mark))
    return "\n".join(
        [
            headline(result.setup),
            *scale_lines(result.setup),
            "",
            f"lowest mean at {result.parameter} = {number(result.best)}, which loses {text(result.best_regret)} on fresh "
            f"instances ({result.runs:,} runs a value)",
            f"shape: {result.unimodality!r}",
            *about(result.setup),
            "",
            table(rows, left=(3,)),
            *(["", *(f"warning: {warning}" for warning in result.warnings)] if result.warnings else []),
        ]
    )


@text.register
def _(result: Comparison) -> str:
    return "\n".join(
        [
            headline(result.setup),
            "",
            lead(result),
            "",
            table(comparison_table(result, error="std. error"), left=(0, 1, 6)),
            *about(result.setup),
            *flattered(result),
            "",
            *(f"note: {note}" for note in comparison_notes(result)),
            *entry_scales(result),
            *below(result.floor, result.lowest.mean),
            *(f"warning: {warning}" for warning in result.warnings),
            f"search: {result.setup.tuner_name}{range_words(result.setup)}, {result.budget:,} runs a policy; "
            f"validation: {fresh(result.setup, result.validated)}, the same for all; "
            f"seed {result.setup.seed}{place(result.setup)}",
            ASSUMED,
        ]
    )


def entry_scales(result: Comparison) -> Iterator[str]:
    """What each policy took from the problem."""
    lines = [
        f"{entry.policy}: {from_problem(entry.made, entry.from_problem, entry.baseline)}"
        for entry in result.entries
        if entry.from_problem
    ]
    yield from [*lines, ""] if lines else []


def comparison_table(result: Comparison, *, error: str) -> list[tuple[str, ...]]:
    """A head and a row for each policy, best first; the `error` of a regret is a "std. error" or a "95% interval"."""
    behind, place = "behind the best (95%, all pairs)", ("", "std. error", "95% interval").index(error)
    rows: list[tuple[str, ...]] = [
        ("policy", "tuned to", "regret", error, behind, "as theory has it", "gap of the search")
    ]
    for entry in result.entries:
        lagging = "" if entry.policy == result.best else lag(result, entry)
        found = cells(entry.regret)
        theory, gap = number(entry.theory.mean), gap_cell(entry)
        rows.append((entry.policy, tuned_to(entry), found[0], found[place], lagging, theory, gap))
    return rows


def tuned_to(entry: Entry) -> str:
    """gamma = 0.22, with a mark where that is no tuned value, or one that is worse than theory's."""
    if entry.worse_than_theory:
        return f"{settings(entry.params) or 'it'} (WORSE than {entry_baseline(entry)}: use that)"
    return settings(entry.params) + ("" if entry.tuned or not entry.params else " (theory)") or "-"


def entry_baseline(entry: Entry) -> str:
    """The baseline of an entry, with its parameters."""
    return usual_words(textbook_name(entry.made, entry.baseline), entry.theory_params)


def gap_cell(entry: Entry) -> str:
    """How sure the search is of its answer, by its own statement: 0.9 (2%); or why that is not known."""
    belief = entry.belief
    if not entry.tuned:
        return "not tuned"
    if belief is None:
        return "not stated"
    # Another policy's regret refutes nothing that was said about values of this one's parameter.
    refuted = entry.gain is not None and entry.gain.high < -belief.gap and entry.baseline in (None, entry.made)
    if belief.misfit or refuted:
        return "unknown, see the warning"
    share = f" ({belief.gap / belief.mean:.1%})" if belief.mean > 0 else ""
    return f"{number(belief.gap)}{share}" + (f" from {number(belief.untried[1])} on" if belief.untried else "")


def comparison_notes(result: Comparison) -> Iterator[str]:
    """What the columns mean, and which policies were not tuned or cannot be judged by a backtest."""
    levels = sorted({entry.belief.level for entry in result.entries if entry.belief})
    if levels:
        yield f"gap: no other value of the parameter is better by more, as the search states ({levels[0]:.0%} sure)"
    left = [f"{entry.policy} ({entry.not_tuned})" for entry in result.entries if entry.not_tuned]
    if left:
        yield f"not tuned, but played as theory has it, and out of reach of `backtest`: {', '.join(left)}"
    left = [
        f"{entry.policy} ({entry.not_backtested})"
        for entry in result.entries
        if entry.not_backtested and not entry.not_tuned
    ]
    if left:
        yield f"`backtest` cannot judge: {', '.join(left)}"


def lead(result: Comparison) -> str:
    """Which policy is best, and which others may be as good: with 95% for all pairs of policies together (Bonferroni)."""
    tied = [entry.policy for entry in result.entries[1:] if result.behind(entry)[0] <= 0]
    again = (
        f", and {number(result.again.mean)} on as many other instances, which did not choose it" if result.again else ""
    )
    best = result.entries[0]
    words = f"{result.best} loses least, {number(best.lowest.mean)} on average{again}"
    if best.worse_than_theory:
        words += f", as {entry_baseline(best)}, which is better than the tuned one"
    if tied:
        words += f"; {' and '.join(tied)} may be as good (95% sure for all pairs together)"
    return f"{words}.{judged_words(result)}"


def judged_words(result: Comparison) -> str:
    """Which policy to take where `backtest` cannot judge the best one; empty where it can."""
    best = result.entries[0]
    if not best.not_backtested:
        return ""
    words = f" `backtest` cannot judge {best.policy}: {best.not_backtested}"
    judged = next((entry for entry in result.entries if not entry.not_backtested), None)
    if judged is None:
        return f"{words}; nor can it judge any of the others."
    return f"{words}. The best that it can judge is {judged.policy}, which loses {lag(result, judged)} more."


def flattered(result: Comparison) -> Iterator[str]:
    """What the lowest of several means on the same data is."""
    data = result.setup.held_out
    if data:
        chosen = f"{result.best} was chosen on the {counted(data.held_out, data.unit)} that were held out"
        yield f"{chosen}: its regret is a little too low"


def lag(result: Comparison, entry: Entry) -> str:
    """How far a policy is behind the best, with an interval as sure as the sentence above the table: for all pairs."""
    low, high = result.behind(entry)
    return f"{number(entry.behind.mean)} ({number(low)} to {number(high)})"
