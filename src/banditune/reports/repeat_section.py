"""The section of a report on how to repeat a result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from banditune.core.descriptions import OWN_CODE_KEY
from banditune.reports import repeat_commands
from banditune.reports.report_content import ReportSection, ReportTable
from banditune.reports.text_formatting import describe_config
from banditune.results.comparison_results import Comparison
from banditune.results.result_record import ResultRecord
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Curve, Tuning

REPEAT_AS_TYPED = "Repeat the result with this command, as long as the files that it names are unchanged:"


REPEAT_FROM_PYTHON = "There is no command line for this result. Repeat it from Python with these settings:"
"""Sentences for a result with a stored command line, and for one without any."""


def make_provenance_section(
    result: ResultRecord, setup: StudySetup, more: Sequence[tuple[str, str]] = ()
) -> ReportSection:
    """Make the section with everything that is needed to repeat a result; `more` are rows of its own."""
    rows = [
        *more,
        *([("tuner", describe_config(setup.tuner))] if setup.tuner else []),
        *(
            (f"range of {name}", f"{low:.4g} to {high:.4g}")
            for name, (low, high) in list_searched_ranges(result).items()
        ),
        ("regret", setup.regret_kind),
        ("common random numbers", "yes" if setup.common_random_numbers else "no"),
        ("shortcuts", "yes" if setup.shortcut else "no"),
        ("device", setup.device),
        ("seed", str(setup.seed)),
    ]
    return make_repeat_section(result, setup, rows)


def list_searched_ranges(result: ResultRecord) -> Mapping[str, tuple[float, ...]]:
    """Return the searched ranges by the name of the parameter, and of the policy if there are several."""
    if isinstance(result, Comparison):
        return {
            f"{name} of {entry.policy}": ends
            for entry in result.entries
            for name, ends in (entry.searched_ranges or {}).items()
        }
    if isinstance(result, Tuning):
        return result.searched_ranges or {}
    return result.setup.ranges or {} if isinstance(result, Curve) else {}


def make_repeat_section(result: ResultRecord, setup: StudySetup, rows: Sequence[tuple[str, str]]) -> ReportSection:
    """Make the section from policy and problem, further `rows`, versions and the command line."""
    about = [
        *([("policy", describe_config(setup.policy))] if setup.policy else []),
        ("problem", describe_config(setup.problem)),
        ("horizon", f"{setup.horizon:,}"),
    ]
    own_code = list_custom_code_rows(result, setup)
    line = repeat_commands.make_command(result)
    if setup.command is not None:
        text = REPEAT_AS_TYPED
    elif line is None:
        text = REPEAT_FROM_PYTHON
    elif own_code:
        text = (
            "Repeat the result with this command. NAME is the name of your policy or problem in its file, which must be "
            "unchanged:"
        )
    else:
        text = "Repeat the result with this command:"
    table = ReportTable(("", ""), (*about, *own_code, *rows, *setup.versions.items()), text_columns=2)
    return ReportSection("How to repeat this", (text,), None, table, line or "")


def list_custom_code_rows(result: ResultRecord, setup: StudySetup) -> list[tuple[str, str]]:
    """List the files of code that is not part of this package: one row per policy, problem and tuner."""
    parts: Sequence[Any] = getattr(result, "entries", None) or getattr(result, "series", None) or ()
    configs = (*(part.policy_config for part in parts), setup.policy, setup.problem, setup.tuner)
    rows = [
        (f"code of {config['name']}", str(config[OWN_CODE_KEY]))
        for config in configs
        if config and OWN_CODE_KEY in config
    ]
    return list(dict.fromkeys(rows))
