"""The paper's ten rows as data: a policy, a problem, and the approximate cost of simulating them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error
from banditune.core.space import Range
from banditune.policies.glm_tsl import GLMTSL
from banditune.policies.lints import LinTS
from banditune.policies.linucb import LinUCB
from banditune.policies.thompson import Thompson
from banditune.policies.ucb1 import UCB1
from banditune.policies.ucb_glm import UCBGLM
from banditune.problems.bernoulli_arms import Bernoulli, two_point_mixture
from banditune.problems.beta_arms import BetaRewards
from banditune.problems.generalized_linear import Linear, Logistic
from banditune.simulation.spec import SimulationSpec

PAPER_HORIZON = 10_000


@dataclass(frozen=True)
class PaperRow:
    """A policy on a problem. `best_width` is the approximate best width.

    `cpu_microseconds` and `gpu_microseconds` are the time of a run, on one core and on an H200. They are means over all
    widths, with independent noise and realised regret. They predict durations until measured ones are available.
    """

    name: str
    policy: Policy
    problem: Problem
    horizon: int
    best_width: float = math.nan
    cpu_microseconds: float = math.nan
    gpu_microseconds: float = math.nan

    def make_spec(self, **options: Any) -> SimulationSpec:
        """Make the spec that simulates this row."""
        return SimulationSpec(self.policy, self.problem, self.horizon, **options)


LINEAR_PROBLEM, LOGISTIC_PROBLEM = Linear(arms=100, dims=10), Logistic(arms=100, dims=10)


PAPER_ROWS = (
    PaperRow("warm-up ucb1", UCB1(noise=0.5), two_point_mixture(), 200, 0.30, 2, 0.03),
    PaperRow("warm-up ts", Thompson(prior=(1, 1)), two_point_mixture(), 200, 0.57, 11, 0.17),
    PaperRow("bernoulli ucb1", UCB1(noise=0.5), Bernoulli(arms=10), PAPER_HORIZON, 0.22, 34, 0.2),
    PaperRow("bernoulli ts", Thompson(prior=(1, 1)), Bernoulli(arms=10), PAPER_HORIZON, 0.70, 140, 3.1),
    PaperRow("beta ucb1", UCB1(noise=0.5), BetaRewards(arms=10), PAPER_HORIZON, 0.11, 2400, 6.0),
    PaperRow("beta ts", Thompson(prior=(1, 1)), BetaRewards(arms=10), PAPER_HORIZON, 0.70, 1100, 13),
    PaperRow("linear linucb", LinUCB(prior=(0, 1), noise=0.5), LINEAR_PROBLEM, PAPER_HORIZON, 0.25, 520, 4.7),
    PaperRow("linear lints", LinTS(prior=(0, 1), noise=0.5), LINEAR_PROBLEM, PAPER_HORIZON, 0.24, 1700, 17),
    PaperRow("logistic ucb-glm", UCBGLM(prior=(0, 1), noise=0.5), LOGISTIC_PROBLEM, PAPER_HORIZON, 0.35, 6200, 9.7),
    PaperRow("logistic glm-tsl", GLMTSL(prior=(0, 1)), LOGISTIC_PROBLEM, PAPER_HORIZON, 0.19, 11_000, 49),
)
"""The paper's ten rows."""


GITTINS_ROW = "warm-up gittins"
"""The name of the gray line in the paper's first figure, a single number."""


def get_tuned_range(row: PaperRow) -> Range:
    """Return the range of the parameter that is tuned in a row."""
    (parameter,) = row.policy.parameters
    search_range: Range = parameter.resolve(row.problem.arms, row.horizon)
    return search_range


def select_row_names(only: str | None) -> list[str]:
    """Select the names of rows that contain one of several words, separated by commas; all if None."""
    names = [*(row.name for row in PAPER_ROWS), GITTINS_ROW]
    if only is None:
        return names
    patterns = [word.strip() for word in only.split(",")]
    for word in patterns:
        if not any(word in name for name in names) or not word:
            raise make_argument_error(
                "only", "unknown-name", f"must be words from the names {', '.join(names)}, but got {word!r}."
            )
    return [name for name in names if any(word in name for word in patterns)]
