"""Counts finished runs for progress bars."""

from __future__ import annotations

from collections.abc import Callable

ProgressCallback = Callable[[int, int], None]
"""Called with (runs done, runs in all) during the work."""


class ProgressCounter:
    """Counts finished runs for a progress bar. `total` runs are expected now, `later` runs after them."""

    def __init__(self, progress: ProgressCallback | None, total: int, later: int = 0) -> None:
        self.progress = progress
        self.done = 0
        self.later = later
        self.expect(total)

    def expect(self, runs: int) -> None:
        """Expect this many runs next."""
        self.total = self.done + runs

    def expect_more(self, runs: int) -> None:
        """Expect more runs, besides those that are expected already."""
        self.total += runs

    def expect_last(self, runs: int) -> None:
        """Expect this many runs next, and none after them."""
        self.later = 0
        self.expect(runs)

    def __call__(self, runs: int) -> None:
        self.done += runs
        if self.progress:
            self.progress(min(self.done, self.total), self.total + self.later)

    def track_part(self, runs: int) -> ProgressCallback:
        """Return a callback for a task of this many runs."""
        before = self.done

        def report(done: int, total: int) -> None:
            self.done = before + round(runs * done / total)
            self(0)

        return report
