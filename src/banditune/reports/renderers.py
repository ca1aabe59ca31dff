"""Maps records to the modules that render them. A renderer is imported when it is first needed."""

from __future__ import annotations

import sys
from importlib import import_module

RENDERERS = {
    "ConformanceReport": "conformance_report",
    "ExactOptimum": "exact_report",
    "ExactRegret": "exact_report",
    "LowerBoundEstimates": "exact_report",
    "FittedProblem": "fit_report",
    "RegretOverTime": "over_time_report",
    "Reproduction": "paper_report",
    "StoreSummary": "store_report",
}
"""Records whose text, report and figure are defined in a module of their own."""


def load_renderer(result: object) -> bool:
    """Import the module that renders a record. Return True if it was not imported before."""
    name = RENDERERS.get(type(result).__name__)
    module = f"banditune.reports.{name}"
    if name is None or module in sys.modules:
        return False
    import_module(module)
    return True
