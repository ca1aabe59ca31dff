"""Figures that a notebook shows. It shows those of matplotlib only after `import matplotlib.pyplot`."""

from __future__ import annotations

import io
import warnings

from matplotlib.figure import Figure

NOTEBOOK_DPI = 200
"""Pixels per inch of the picture. A notebook shows it at half its size, so that it is sharp on any screen."""


class NotebookFigure(Figure):
    """A figure of matplotlib that shows itself in a notebook."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        """Return the picture, and the size at which it is shown."""
        content = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about glyphs that the font lacks
            self.savefig(content, format="png", dpi=NOTEBOOK_DPI)
        width, height = (round(side * NOTEBOOK_DPI / 2) for side in self.get_size_inches())
        return content.getvalue(), {"width": width, "height": height}
