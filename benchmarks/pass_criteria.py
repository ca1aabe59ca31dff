"""Compares measured figures with the limits that they must reach, and writes all numbers to a file."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

NOMINAL, ERRORS = 0.95, 3
"""Intervals and statements are stated with 95%. They may hold less often by three binomial standard errors."""


def count_needed(cases: int) -> int:
    """The fewest of so many 95% intervals that must hold: 95% less three binomial standard errors."""
    return math.ceil(NOMINAL * cases - ERRORS * math.sqrt(NOMINAL * (1 - NOMINAL) * cases))


def compute_rate_error(held: int, cases: int) -> float:
    """The binomial standard error of a rate."""
    rate = held / max(cases, 1)
    return math.sqrt(rate * (1 - rate) / max(cases, 1))


class Verdicts:
    """Collects whether figures reach their bars."""

    def __init__(self) -> None:
        self.lines: list[dict[str, Any]] = []

    def require(self, bar: str, passes: bool, figure: str) -> None:
        """Record whether a figure reaches its bar."""
        self.lines.append({"bar": bar, "passes": bool(passes), "figure": figure})

    def finish(self, path: Path | None, **numbers: Any) -> None:
        """Print a line for every bar, write all numbers to a file, and end with status 1 if a bar was not reached."""
        for line in self.lines:
            print(f"{'pass' if line['passes'] else 'FAIL'}: {line['bar']}: {line['figure']}", flush=True)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"bars": self.lines, **numbers}, indent=1) + "\n")
        if not all(line["passes"] for line in self.lines):
            raise SystemExit(1)
