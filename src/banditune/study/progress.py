"""Counts finished runs for progress bars."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[int, int], None]
"""Told (runs done, runs in all) as work goes on."""


class ProgressCounter:
    """Adds up finished runs for a progress bar: those that are expected now, and those that come `later`."""

    def __init__(self, progress: ProgressCallback | None, total: int, later: int = 0) -> None:
        self.progress = progress
        self.done = 0
        self.later = later
        self.expect(total)

    def expect(self, runs: int) -> None:
        """So many runs are next."""
        self.total = self.done + runs

    def more(self, runs: int) -> None:
        """So many runs are next besides those that are expected."""
        self.total += runs

    def last(self, runs: int) -> None:
        """So many runs are next, and nothing is known to come after them."""
        self.later = 0
        self.expect(runs)

    def __call__(self, runs: int) -> None:
        self.done += runs
        if self.progress:
            self.progress(min(self.done, self.total), self.total + self.later)

    def part(self, runs: int) -> ProgressCallback:
        """Progress of a piece of the work that is `runs` runs long."""
        before = self.done

        def told(done: int, total: int) -> None:
            self.done = before + round(runs * done / total)
            self(0)

        return told
