"""Sentences and table rows about a robustness report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from banditune.core.messages import Message
from banditune.reports.text_formatting import format_count, format_number, format_params, format_text_table
from banditune.results.robustness_results import RobustnessReport, Scenario

NUMBERS_HEADER = ("regret", "best known", "its regret", "excess", "std. error", "share", "textbook")


SCENARIO_HEADER = ("what if", "verdict", *NUMBERS_HEADER)
"""The header of a page's table. The verdict is the second column, which is visible on a phone."""


def list_scenario_rows(report: RobustnessReport) -> Iterator[tuple[str, ...]]:
    """List a row of the page's table for each scenario. The verdict includes its reason."""
    for scenario in report.scenarios:
        reason = f": {scenario.reason}" if scenario.reason else ""
        yield scenario.description, f"{scenario.verdict}{reason}", *list_scenario_numbers(scenario)


def list_text_rows(report: RobustnessReport) -> Iterator[tuple[str, ...]]:
    """List the header and the rows of the table in plain text. The reason is the last column because it is long."""
    yield *SCENARIO_HEADER, ""
    for scenario in report.scenarios:
        yield scenario.description, scenario.verdict, *list_scenario_numbers(scenario), scenario.reason


def list_scenario_numbers(scenario: Scenario) -> Iterator[str]:
    """List the regret of the tuned value, of the best value and of the textbook value."""
    yield format_number(scenario.regret.mean)
    yield format_number(scenario.best_value)
    yield format_number(scenario.best_regret.mean)
    yield format_number(scenario.excess_regret.mean)
    yield format_number(scenario.excess_regret.se)
    yield format_excess_share(scenario)
    yield format_number(scenario.textbook_regret.mean)


def format_excess_share(scenario: Scenario) -> str:
    """Format the excess regret as a share.

    A share below 0 is chance, or the tuned value is better than the best known value of the scenario.
    """
    if scenario.excess_regret.mean >= 0:
        return f"{scenario.excess_share:+.0%}"
    return "within error" if scenario.excess_regret.high >= 0 else "none"


def list_robustness_lines(report: RobustnessReport) -> Iterator[str]:
    """List the lines of plain text: a sentence, then the table."""
    yield f"{state_robustness(report)}:"
    yield ""
    yield format_text_table(list(list_text_rows(report)), left=(0, 1, len(SCENARIO_HEADER)))
    for warning in report.notices:
        yield Message("warning: {}", warning)


def state_robustness(report: RobustnessReport) -> str:
    """State in how many other scenarios a tuned value is fine, fragile or not decided."""
    count = len(report.other_scenarios)
    fine_count = sum(scenario.verdict == "fine" for scenario in report.other_scenarios)
    undecided = [scenario for scenario in report.other_scenarios if scenario.verdict == "not decided"]
    broken = [scenario for scenario in report.other_scenarios if scenario.verdict in ("fragile", "worse than textbook")]
    clauses = [f"{format_params(report.params)} is fine in {fine_count} of {format_count(count, 'other scenario')}"]
    if broken:
        worst = max(broken, key=lambda scenario: scenario.excess_share)
        clauses.append(
            describe_scenario_count("fragile", broken, worst, f"is {format_excess_factor(worst.excess_share)}")
        )
    if undecided:
        worst = max(undecided, key=lambda scenario: scenario.excess_share_high)
        if math.isfinite(worst.excess_share_high):
            clauses.append(
                describe_scenario_count(
                    "not decided", undecided, worst, f"may be {format_excess_factor(worst.excess_share_high)}"
                )
            )
        else:
            clauses.append(f"not decided in {len(undecided)}, see the verdicts")
    return "; ".join(clauses)


def describe_scenario_count(word: str, scenarios: Sequence[Scenario], worst: Scenario, excess: str) -> str:
    """State how many scenarios have this verdict, and the excess regret of the worst of them."""
    most_text = "most " if len(scenarios) > 1 else ""
    return f"{word} in {len(scenarios)}, {most_text}with {worst.description}, where its regret {excess}"


def format_excess_factor(share: float) -> str:
    """Format an excess share as a factor from 1 on, else as a percentage."""
    return f"{1 + share:.1f} times that of the best" if share >= 1 else f"{share:.0%} above that of the best"
