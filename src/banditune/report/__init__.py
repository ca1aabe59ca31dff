"""Tables, figures and reports: reads results, never simulates. `banditune.report(result, path)` writes a report."""

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from banditune.report import books, computed, fits, paper  # noqa: F401, their records can be told and drawn
from banditune.report.figures import plot
from banditune.report.files import records_from, written
from banditune.report.page import report
from banditune.report.tables import text

__all__ = ["plot", "records_from", "report", "text", "written"]


class _Room(ModuleType):
    """This room has the name of its verb: once it is imported, `banditune.report` is the room, which does the same."""

    def __call__(self, result: Any, path: str | Path, **cover: Any) -> str | Path:
        return report(result, path, **cover)


sys.modules[__name__].__class__ = _Room
