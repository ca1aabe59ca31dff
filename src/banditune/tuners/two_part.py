"""The two-part tuner: it fits curves to all runs so far, and makes the next runs near the likely optima."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from banditune.core.errors import StopSearch
from banditune.core.space import Range
from banditune.core.tuner import SPEND_BUDGET, Goal, SearchAnswer, SearchGenerator, Trial, Tuner
from banditune.tuners.answer_statements import is_precision_reached
from banditune.tuners.grid_search import check_budget
from banditune.tuners.two_part_search import MAX_CURVES, WindowedSearch

GROWTH_DIVISOR = 8
"""The size of a batch, as a share of the runs so far, if a precision is given instead of a budget."""


GAP_SAFETY = 0.4
"""The divisor of the stated regret gap if a precision is given.

The search checks its gap many times and stops when it is small enough. Also, smooth curves miss details such as the steps
of UCB1's regret.
"""


@dataclass(frozen=True)
class TwoPart(Tuner):
    """Fits the costs of exploring and of failures to all runs. The answer minimises their sum."""

    name = "two-part"
    accepts_goal = True

    def search(
        self, search_range: Range, budget: int, goal: Goal = SPEND_BUDGET, rng: np.random.Generator | None = None
    ) -> SearchGenerator:
        """Use the budget, or stop when a given precision is reached. Without `rng`, that of seed 0 is used."""
        rng = np.random.default_rng(0) if rng is None else rng
        has_precision = goal.precision is not None
        search = WindowedSearch(search_range, budget, rng, has_precision)
        check_budget(budget, search.start_runs, f"{self}, which starts with {search.start_runs} runs", "raise it")

        def answer() -> SearchAnswer:
            return search.conclude(goal.confidence, GAP_SAFETY if has_precision else 1.0)

        try:
            while search.runs_left > 0:
                runs = len(search.values)
                points = search.ask(max(20, runs // GROWTH_DIVISOR) if has_precision else None)
                distinct_points, counts = np.unique(points, return_counts=True)
                values = tuple(search_range.clip(float(value)) for value in distinct_points)
                at = np.repeat(values, counts)
                regrets = yield Trial(values, tuple(counts.tolist()))
                search.tell(at, np.concatenate(regrets))
                runs = len(search.values)
                if (
                    goal.precision is not None
                    and runs >= MAX_CURVES
                    and is_precision_reached(answer(), search_range, runs, goal.precision)
                ):
                    break
        except StopSearch as last:
            search.tell(at, np.concatenate(last.args[0]))
        return answer()
