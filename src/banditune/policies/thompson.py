"""Thompson sampling for rewards in [0, 1] with Beta posteriors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_pair, is_from_problem
from banditune.core.distributions import beta
from banditune.core.errors import InvalidRequest
from banditune.core.policy import FROM_PROBLEM, Shortcut
from banditune.core.scalar import scalar
from banditune.core.streams import uniform
from banditune.policies.base_policies import TotalsPolicy, is_wide, make_width_parameter
from banditune.simulation.gpu.thompson_thinning_f32 import FLOAT32_VERSIONS
from banditune.simulation.shortcuts.thompson_posteriors import draw_outcome_word
from banditune.simulation.shortcuts.thompson_thinning import advance_thompson_thinning


@scalar
def choose_thompson(state, setting, step, params, stream):
    """The highest draw from Beta((S + a) / gamma^2, (F + b) / gamma^2); at gamma = 0 the highest posterior mean."""
    gamma = params[0]
    best = 0
    highest = -1.0
    for arm in range(setting.arms):
        a = state.total[arm] + setting.options[0]
        b = state.pulls[arm] - state.total[arm] + setting.options[1]
        if gamma < 1e-9:
            value = a / (a + b)
        else:
            value = beta(stream, a / (gamma * gamma), b / (gamma * gamma))
        if value > highest:
            best = arm
            highest = value
    return best


@scalar
def update_thompson(state, setting, arm, reward, stream):
    """A reward between 0 and 1 counts as a success with that probability (the paper's pseudo-reward).

    So an arm's total is the number of its successes.
    """
    state.pulls[arm] += 1.0
    if reward >= 1.0 or (reward > 0.0 and uniform(stream) < reward):
        state.total[arm] += 1.0


LONGEST_FLOAT32_HORIZON = 20_000
"""The horizon up to which a GPU plays in float32, twice the one at which it was compared with float64. Rewards that are
read one by one must be the same whether they are drawn ahead or not; with them it plays in float64."""


LARGEST_FLOAT32_SHAPE = 1e3
"""The largest shape of a prior up to which a GPU plays in float32: what a pull adds must show in seven digits."""


LEAST_FLOAT32_WIDTH = 1e-3
"""Smaller widths but 0 are played in float64: below 1e-5 draws of single precision would often be equal. So are those
above 1, at which the two were not compared."""


GREEDY_WIDTH = 1e-9
"""Below this gamma the highest posterior mean is taken, without a draw."""


def is_log_concave(options: Sequence[float], row: FloatArray) -> bool:
    """Whether posteriors have shapes >= 1, as the proof in `lazy` asks: data only make them larger.

    At gamma = 0 nothing is drawn, and any prior will do.
    """
    return bool(row[0] < GREEDY_WIDTH or min(options) >= row[0] * row[0])


THINNING = Shortcut(
    "lazy",
    advance_thompson_thinning,
    (choose_thompson, update_thompson),
    lambda arms, dims: (5 * arms, 4 * arms + 5),
    holds=is_log_concave,
    exact_bits=False,
    slots=lambda problem: {"outcomes": problem.outcomes or draw_outcome_word},
    reads=lambda problem: problem.outcomes is None,
    single=FLOAT32_VERSIONS,
    precision=lambda policy, problem, horizon: (
        "float32"
        if horizon <= LONGEST_FLOAT32_HORIZON and max(policy.prior) <= LARGEST_FLOAT32_SHAPE and problem.outcomes
        else "float64"
    ),
    needs_double=lambda row: 0 < row[0] < LEAST_FLOAT32_WIDTH or is_wide(row),
)


@dataclass(frozen=True)
class Thompson(TotalsPolicy):
    """Highest draw from the Beta posteriors, whose standard deviation is scaled by about gamma.

    Rewards in (0, 1) update it through Bernoulli pseudo-rewards. `prior` is Beta(a, b), the
    posterior before the first pull: that of the problem's means by default.
    """

    prior: Any = FROM_PROBLEM

    name = "ts"
    pending = "ignore"
    parameters = (make_width_parameter(),)
    rewards: ClassVar[str] = "unit"
    prior_kind: ClassVar[str] = "beta"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (1, 1)}
    least_shape: ClassVar[float] = 0.1
    plays: ClassVar[tuple[Shortcut, ...]] = (THINNING,)

    choose = staticmethod(choose_thompson)
    update = staticmethod(update_thompson)

    def __post_init__(self) -> None:
        if is_from_problem(self.prior):
            return
        prior = check_pair("prior", self.prior)
        if min(prior) < self.least_shape:
            raise InvalidRequest(
                f"`a >= 0.1` and `b >= 0.1` must hold for the prior of ts (draws would be 0 or 1), but got {self.prior!r}."
            )
        object.__setattr__(self, "prior", prior)

    def limits(self, name: str) -> tuple[float, float]:
        """With a wider gamma, draws from Beta(prior / gamma^2) would be 0 or 1 to the last bit, and ties decide."""
        if is_from_problem(self.prior):
            return -math.inf, math.inf
        return -math.inf, math.sqrt(min(self.prior) / self.least_shape)

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return self.prior  # type: ignore[no-any-return]
