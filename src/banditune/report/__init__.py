"""Tables and figures: reads results, never simulates."""

from banditune.report.figures import plot
from banditune.report.paper import draw_curves, markdown
from banditune.report.tables import text

__all__ = ["draw_curves", "markdown", "plot", "text"]
