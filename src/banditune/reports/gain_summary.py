"""The summary on top of a report: the gain of tuning in the reader's unit, and the meaning of the tuned parameter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.request_errors import make_type_error
from banditune.registry import collect_policies
from banditune.reports.report_content import (
    ReportContent,
    ReportSection,
    ReportTable,
    format_sentences,
    make_notes_section,
)
from banditune.reports.text_formatting import format_count, format_number, format_params, state_assumptions
from banditune.results.comparison_results import Comparison
from banditune.results.estimates import Estimate
from banditune.results.log_results import Backtest
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Tuning


@dataclass(frozen=True)
class GainUnit:
    """The reader's unit, such as "clicks", and the number of decisions to which gains refer."""

    name: str
    per: int

    def format_scaled(self, gain: Estimate, decisions: int) -> str:
        """Format a gain in `decisions` decisions as one in `per`."""
        return format_number(gain.mean * self.per / decisions)

    def format_scaled_interval(self, gain: Estimate, decisions: int) -> str:
        """Format its interval."""
        low, high = (format_number(end * self.per / decisions) for end in (gain.low, gain.high))
        return f"{low} to {high}"

    def __str__(self) -> str:
        return f"{self.name} per {self.per:,} decisions"


@dataclass(frozen=True)
class Gain:
    """A gain of a result over `compared_with`. It refers to `decisions` decisions; an instance has `horizon`.

    `subject` is what gains: tuning, or the tuned policy, of which tuning is a part.
    """

    label: str
    subject: str
    compared_with: str
    estimate: Estimate
    decisions: int
    horizon: int
    share: float | None


HEADER = ("", "compared with", "gain", "95% interval", "in all")


def check_gain_unit(unit: Any, per: Any) -> GainUnit:
    """Check the unit of a summary: a word, and a number of decisions."""
    if not isinstance(unit, str):
        raise make_type_error("unit", "a word such as 'clicks'", unit)
    if not isinstance(per, int) or isinstance(per, bool) or per < 1:
        raise make_type_error("per", "a whole number of decisions such as 1000", per)
    return GainUnit(unit or "reward", per)


def add_summary(
    contents: Sequence[ReportContent], results: Sequence[Any], unit: Any, per: Any, title: str
) -> list[ReportContent]:
    """Put a summary on top if a unit is given; else give the first content the title, if there is one."""
    if unit or per is not None:
        return [build_summary(results, check_gain_unit(unit, 1000 if per is None else per), title), *contents]
    return [replace(contents[0], title=title), *contents[1:]] if title else list(contents)


def build_summary(results: Sequence[Any], unit: GainUnit, title: str) -> ReportContent:
    """Build the summary of one or several results."""
    gains = [gain for result in results for gain in list_gains(result)]
    if not gains:
        kinds = ", ".join(type(result).__name__ for result in results)
        raise InvalidRequest(
            "a summary with {} must have a result that states a gain (a tuning, a backtest, or a comparison whose best "
            "policy is tuned), but got {}.",
            *(Argument("unit"), kinds),
            argument="unit",
            code="unsupported",
        )
    has_several = len(results) > 1
    rows = tuple(make_gain_row(gain, unit) for gain in gains)
    warned = sum(len(getattr(result, "notices", ())) for result in results)
    sections = (
        *make_notes_section("Warnings", [f"See {format_count(warned, 'warning')} below."] if warned else []),
        ReportSection(
            "Gain", tuple(explain_gains(results, gains, unit)), table=ReportTable(HEADER, rows, text_columns=2)
        ),
        ReportSection("What was tuned", tuple(explain_parameters(results))),
    )
    figures = tuple(figure for gain in gains[: 1 if has_several else 2] for figure in list_gain_figures(gain, unit))
    return ReportContent(title or "Summary", state_gain_in_unit(gains[0], unit), figures, sections)


def list_gains(result: Any) -> Iterator[Gain]:
    """List the gains that a result states."""
    if isinstance(result, Tuning):
        yield make_textbook_gain(name_result(result.setup), result.gain, result.textbook_regret, result.setup.horizon)
    elif isinstance(result, Backtest):
        label, horizon = f"{name_result(result.setup)}, on past campaigns", result.setup.horizon
        if result.reward_difference is not None:
            yield Gain(label, "the tuned policy", "what was logged", result.reward_difference, 1, horizon, None)
        yield make_textbook_gain(label, result.gain, result.textbook_regret, horizon)
    elif isinstance(result, Comparison):
        best = result.entries[0]
        if best.gain is not None and best.textbook_regret is not None:
            yield make_textbook_gain(best.policy, best.gain, best.textbook_regret, result.setup.horizon)


def make_textbook_gain(label: str, gain: Estimate, textbook_regret: Estimate, decisions: int) -> Gain:
    """Make the gain over the textbook setting, with the share of the textbook's regret that it saves."""
    share = gain.mean / textbook_regret.mean if textbook_regret.mean > 0 else None
    return Gain(label, "tuning", "the textbook setting", gain, decisions, decisions, share)


def name_result(setup: StudySetup) -> str:
    """Name a result by its policy."""
    return str((setup.policy or {}).get("name", "policy"))


def state_gain_in_unit(gain: Gain, unit: GainUnit) -> str:
    """State a gain as a sentence. It may be a loss, or its sign may be uncertain."""
    amount = f"{unit.format_scaled(gain.estimate, gain.decisions)} {unit}"
    interval = f"(95% interval {unit.format_scaled_interval(gain.estimate, gain.decisions)})"
    if gain.estimate.low > 0:
        return f"{gain.label}: {gain.subject} gains {amount} over {gain.compared_with} {interval}."
    if gain.estimate.high < 0:
        return f"{gain.label}: {gain.subject} loses {amount.lstrip('-')} to {gain.compared_with} {interval}."
    doubt = f"{gain.label}: it is not known whether {gain.subject} gains over {gain.compared_with}"
    return f"{doubt}. The estimate is {amount} {interval}."


def make_gain_row(gain: Gain, unit: GainUnit) -> tuple[str, ...]:
    """Make the row of a gain."""
    total = format_number(gain.estimate.mean * gain.horizon / gain.decisions)
    return (
        gain.label,
        gain.compared_with,
        unit.format_scaled(gain.estimate, gain.decisions),
        unit.format_scaled_interval(gain.estimate, gain.decisions),
        f"{total} in {gain.horizon:,}",
    )


def list_gain_figures(gain: Gain, unit: GainUnit) -> Iterator[tuple[str, str, str]]:
    """List the key figures of a gain: in the unit, and as a share."""
    amount = unit.format_scaled(gain.estimate, gain.decisions)
    interval = unit.format_scaled_interval(gain.estimate, gain.decisions)
    yield f"gain over {gain.compared_with}", amount, f"{unit}; 95%: {interval}"
    if gain.share is not None and gain.estimate.low > 0:
        yield "regret saved", f"{gain.share:.0%}", f"of what {gain.compared_with} loses to the best arm"


def explain_gains(results: Sequence[Any], gains: Sequence[Gain], unit: GainUnit) -> Iterator[str]:
    """Explain the gains of a page, and in what they differ."""
    yield (
        f"Gains are {unit}, with 95% intervals: means over simulated instances, or over past campaigns that the tuning did "
        "not see. The column on the right is the gain in all decisions of one instance, or of one campaign."
    )
    kinds = {gain.compared_with for gain in gains}
    if len(kinds) > 1:
        yield (
            "There are two comparisons. The textbook setting is the same policy with its usual parameter. What was logged "
            "are the rewards of the past campaigns. The gain over them is that of the policy, of which tuning is a part."
        )
    yield from format_sentences(dict.fromkeys(state_assumptions(result.setup) for result in results))
    if len(results) > 1:
        yield "The results may be about different problems, so that their gains do not add up."


def explain_parameters(results: Sequence[Any]) -> Iterator[str]:
    """Explain the tuned parameters in a sentence each."""
    for result in results:
        tuning = result.tuning if isinstance(result, Backtest) else result
        if isinstance(tuning, Tuning):
            name = name_result(tuning.setup)
            for parameter in tuning.searched_parameters:
                yield explain_parameter(name, tuning.params, tuning.textbook_params, parameter)
        elif isinstance(tuning, Comparison):
            best = tuning.entries[0]
            if best.gain is not None and best.textbook_params:
                for parameter in best.searched_ranges or best.params:
                    yield explain_parameter(best.policy, best.params, best.textbook_params, parameter)


def explain_parameter(policy: str, params: Mapping[str, float], textbook: Mapping[str, float], name: str) -> str:
    """Explain what a parameter does, with its tuned and its textbook value."""
    meaning = find_meaning(policy, name)
    values = f"{format_params({name: params[name]})}; the textbook uses {format_number(textbook[name])}"
    return f"{policy} has the tuned value {values}." + (f" {name} is {meaning}." if meaning else "")


def find_meaning(policy: str, name: str) -> str:
    """Find what a registered policy's parameter means; empty if that is not known."""
    registered = collect_policies().get(policy.partition("(")[0])
    parameters = getattr(registered, "parameters", ()) if registered else ()
    return next((parameter.meaning for parameter in parameters if parameter.name == name), "")
