"""Tables, figures and reports: reads results, never simulates. `banditune.report(result, path)` writes a report."""

from banditune.reports import books, computed, fits, paper  # noqa: F401, their records can be told and drawn
from banditune.reports.figures import plot
from banditune.reports.files import records_from, written
from banditune.reports.page import report
from banditune.reports.tables import text

__all__ = ["plot", "records_from", "report", "text", "written"]
