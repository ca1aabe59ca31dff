"""The two-part tuner: keeps every run, fits curves to all of them, and looks next where the optimum may be."""

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
"""Without a budget, a batch is an eighth of the runs so far."""


GAP_SAFETY = 0.4
"""Where a search stops as soon as its gap is small enough, the gap is told divided by this: it was looked at many times,
and no smooth curve shows all there is, as UCB1's steps.
"""


@dataclass(frozen=True)
class TwoPart(Tuner):
    """Fits the price of exploring and the price of failing to all runs; answers with the lowest point of their sum."""

    name = "two-part"
    aims = True

    def search(
        self, among: Range, budget: int, goal: Goal = SPEND_BUDGET, rng: np.random.Generator | None = None
    ) -> SearchGenerator:
        """Spend the budget; where a precision is wanted, stop as soon as it is reached. Without `rng`, that of seed 0."""
        rng = np.random.default_rng(0) if rng is None else rng
        wanted = goal.within is not None
        search = WindowedSearch(among, budget, rng, wanted)
        check_budget(budget, search.least, f"{self}, which starts with {search.least} runs", "raise it")

        def answer() -> SearchAnswer:
            return search.found(goal.confidence, GAP_SAFETY if wanted else 1.0)

        try:
            while search.left > 0:
                runs = len(search.values)
                asked = search.ask(max(20, runs // GROWTH_DIVISOR) if wanted else None)
                each, counts = np.unique(asked, return_counts=True)
                values = tuple(among.within(float(value)) for value in each)
                at = np.repeat(values, counts)
                regrets = yield Trial(values, tuple(counts.tolist()))
                search.tell(at, np.concatenate(regrets))
                runs = len(search.values)
                if (
                    goal.within is not None
                    and runs >= MAX_CURVES
                    and is_precision_reached(answer(), among, runs, goal.within)
                ):
                    break
        except StopSearch as last:
            search.tell(at, np.concatenate(last.args[0]))
        return answer()
