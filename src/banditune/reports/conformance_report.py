"""Reports on the checks that a user's own policy, problem, tuner or executor passed."""

from __future__ import annotations

from banditune.reports.report_builder import build_report_content
from banditune.reports.report_content import ReportContent, ReportSection, ReportTable, make_notes_section
from banditune.reports.text_formatting import format_count
from banditune.results.conformance_results import ConformanceReport


@build_report_content.register
def _(result: ConformanceReport) -> ReportContent:
    rows = tuple((check.name, check.finding) for check in result.checks)
    checks = ReportSection("Checks", table=ReportTable(("check", "what was found"), rows, text_columns=2))
    notes = [f"Left out: {reason}" for reason in result.left_out]
    answer = f"The {result.subject_kind} {result.subject!r} passes {format_count(len(rows), 'check')}."
    return ReportContent(
        f"checks of a {result.subject_kind}", answer, (), (checks, *make_notes_section("Notes", notes))
    )
