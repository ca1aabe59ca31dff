"""Sentences and table rows about a robustness report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from banditune.reports.text_formatting import format_count, format_number, format_params, format_text_table
from banditune.results.robustness_results import RobustnessReport, Scenario

SCENARIO_HEADER = ("what if", "regret", "best known", "its regret", "loss", "std. error", "share", "theory", "verdict")


def list_scenario_rows(stress: RobustnessReport) -> Iterator[tuple[str, ...]]:
    """What a tuned value loses where something else comes, a row for each."""
    for strain in stress.strains:
        yield (
            strain.words,
            format_number(strain.regret.mean),
            format_number(strain.best),
            format_number(strain.best_regret.mean),
            format_number(strain.loss.mean),
            format_number(strain.loss.se),
            format_excess_share(strain),
            format_number(strain.theory.mean),
            f"{strain.verdict}: {strain.reason}" if strain.reason else strain.verdict,
        )


def format_excess_share(strain: Scenario) -> str:
    """The loss as a share. Below 0 it is chance, or the value tuned for that case is not the best there."""
    if strain.loss.mean >= 0:
        return f"{strain.share:+.0%}"
    return "within error" if strain.loss.high >= 0 else "none"


def list_robustness_lines(stress: RobustnessReport) -> Iterator[str]:
    """The same as a table below a sentence."""
    yield f"{state_robustness(stress)}:"
    yield ""
    yield format_text_table([SCENARIO_HEADER, *list_scenario_rows(stress)], left=(0, len(SCENARIO_HEADER) - 1))
    for warning in stress.warnings:
        yield f"warning: {warning}"


def state_robustness(stress: RobustnessReport) -> str:
    """Whether a tuned value holds where something else comes."""
    count = len(stress.others)
    fine = sum(strain.verdict == "fine" for strain in stress.others)
    undecided = [strain for strain in stress.others if strain.verdict == "not decided"]
    broken = [strain for strain in stress.others if strain.verdict in ("fragile", "worse than theory")]
    told = [
        f"{format_params(stress.params)} is shown to hold in {fine} of {format_count(count, 'case')} in which something "
        "else comes than was expected"
    ]
    if broken:
        worst = max(broken, key=lambda strain: strain.share)
        told.append(describe_scenario_count("fragile", broken, worst, f"loses {format_excess_factor(worst.share)}"))
    if undecided:
        worst = max(undecided, key=lambda strain: strain.most)
        if math.isfinite(worst.most):
            told.append(
                describe_scenario_count("not decided", undecided, worst, f"may lose {format_excess_factor(worst.most)}")
            )
        else:
            told.append(f"not decided in {len(undecided)}, see there")
    return "; ".join(told)


def describe_scenario_count(word: str, strains: Sequence[Scenario], worst: Scenario, loses: str) -> str:
    """How many cases are such, and what the worst of them loses."""
    most = "most " if len(strains) > 1 else ""
    return f"{word} in {len(strains)}, {most}with {worst.words}, where it {loses} the best"


def format_excess_factor(share: float) -> str:
    """So many times, or so many percent more than."""
    return f"{1 + share:.1f} times as much as" if share >= 1 else f"{share:.0%} more than"
