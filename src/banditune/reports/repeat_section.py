"""The section of a report that tells how to repeat a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from banditune.core.descriptions import OWN_CODE_KEY
from banditune.reports import repeat_commands
from banditune.reports.report_content import ReportSection, ReportTable
from banditune.reports.text_formatting import describe_config
from banditune.results.comparison_results import Comparison
from banditune.results.result_record import ResultRecord
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Curve, Tuning

REPEAT_AS_TYPED = "The same again, as it was typed, as long as the files that it names hold what they held then:"


REPEAT_FROM_PYTHON = "No command line can tell all of this; it is repeated from Python, with these settings:"
"""How a result is repeated whose command is known, and one that has none."""


def make_provenance_section(result: ResultRecord, setup: StudySetup) -> ReportSection:
    """Everything that is needed to play the result again."""
    rows = [
        *([("tuner", describe_config(setup.tuner))] if setup.tuner else []),
        *(
            (f"range of {name}", f"{low:.4g} to {high:.4g}")
            for name, (low, high) in list_searched_ranges(result).items()
        ),
        ("regret", setup.regret),
        ("reward noise", setup.noise),
        ("shortcuts", "yes" if setup.shortcut else "no"),
        ("device", setup.device),
        ("seed", str(setup.seed)),
    ]
    return make_repeat_section(result, setup, rows)


def list_searched_ranges(result: ResultRecord) -> Mapping[str, tuple[float, ...]]:
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


def make_repeat_section(result: ResultRecord, setup: StudySetup, rows: Sequence[tuple[str, str]]) -> ReportSection:
    """How to get a result again: what it is about, the `rows` that are its own, versions, and the command line."""
    about = [
        *([("policy", describe_config(setup.policy))] if setup.policy else []),
        ("problem", describe_config(setup.problem)),
        ("horizon", f"{setup.horizon:,}"),
    ]
    own = list_custom_code_rows(result, setup)
    line = repeat_commands.make_command(result)
    if setup.command is not None:
        words = REPEAT_AS_TYPED
    elif line is None:
        words = REPEAT_FROM_PYTHON
    elif own:
        words = (
            "The same again; NAME is what a policy or problem of yours is called in its file, which must hold what it held "
            "then:"
        )
    else:
        words = "The same again:"
    table = ReportTable(("", ""), (*about, *own, *rows, *setup.versions.items()), left=2)
    return ReportSection("How to repeat this", (words,), None, table, line or "")


def list_custom_code_rows(result: ResultRecord, setup: StudySetup) -> list[tuple[str, str]]:
    """Where the code stands that is not on the shelf: a row for each policy, the problem and the tuner that have some."""
    several = [entry.made for entry in result.entries] if isinstance(result, Comparison) else []
    made = (*several, setup.policy, setup.problem, setup.tuner)
    return [(f"code of {one['name']}", str(one[OWN_CODE_KEY])) for one in made if one and OWN_CODE_KEY in one]
