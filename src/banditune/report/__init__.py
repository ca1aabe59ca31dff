"""Tables and figures: reads results, never simulates."""

from banditune.report.figures import plot
from banditune.report.tables import text

__all__ = ["plot", "text"]
