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
from banditune.core.option_types import ArmPolicyPrior, Option
from banditune.core.policy import FROM_PROBLEM, Shortcut
from banditune.core.scalar import scalar
from banditune.core.streams import uniform
from banditune.policies.base_policies import TotalsPolicy, is_wide, make_width_parameter
from banditune.simulation.estimators.arm_totals import start_totals, view_totals
from banditune.simulation.gpu.thompson_thinning_f32 import FLOAT32_VERSIONS
from banditune.simulation.shortcuts.thompson_posteriors import draw_outcome_word
from banditune.simulation.shortcuts.thompson_thinning import advance_thompson_thinning


@scalar
def choose_thompson(state, setting, step, params, stream):
    """Choose the highest draw from Beta((S + a) / gamma^2, (F + b) / gamma^2); at gamma = 0 the highest mean."""
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
def update_thompson(state, setting, step, params, arm, reward, stream):
    """Count a success or a failure. A reward between 0 and 1 is the probability of a success (the paper's pseudo-reward).

    So an arm's total is its number of successes.
    """
    state.pulls[arm] += 1.0
    if reward >= 1.0 or (reward > 0.0 and uniform(stream) < reward):
        state.total[arm] += 1.0


LONGEST_FLOAT32_HORIZON = 20_000
"""The longest horizon in float32 on a GPU, twice the one at which float32 was compared with float64.

Rewards that are read one by one must not depend on whether they are predrawn. Policies that read them use float64.
"""


LARGEST_FLOAT32_SHAPE = 1e3
"""The largest shape of a prior in float32 on a GPU. The increment of a pull must be visible in seven digits."""


LEAST_FLOAT32_WIDTH = 1e-3
"""The smallest positive width in float32. Below 1e-5, draws in single precision would often be equal.

Widths above 1 were not compared, and are simulated in float64, too.
"""


GREEDY_WIDTH = 1e-9
"""The gamma below which the highest posterior mean is chosen without a draw."""


def is_log_concave(options: Sequence[float], row: FloatArray) -> bool:
    """Return whether posteriors have shapes >= 1, which the proof of the shortcut needs. Data only increase shapes.

    At gamma = 0 nothing is drawn, and every prior is valid.
    """
    return bool(row[0] < GREEDY_WIDTH or min(options) >= row[0] * row[0])


THINNING = Shortcut(
    "thinning",
    advance_thompson_thinning,
    (view_totals, start_totals, choose_thompson, update_thompson),
    lambda arms, dims, horizon: (5 * arms, 4 * arms + 5),
    is_valid=is_log_concave,
    is_bitwise_exact=False,
    fill_slots=lambda problem: {"draw_outcomes": problem.bit_packed_pseudo_reward or draw_outcome_word},
    reads_rewards=lambda problem: problem.bit_packed_pseudo_reward is None,
    float32_functions=FLOAT32_VERSIONS,
    select_dtype=lambda policy, problem, horizon: (
        "float32"
        if horizon <= LONGEST_FLOAT32_HORIZON
        and max(policy.prior) <= LARGEST_FLOAT32_SHAPE
        and problem.bit_packed_pseudo_reward
        else "float64"
    ),
    needs_float64=lambda row: 0 < row[0] < LEAST_FLOAT32_WIDTH or is_wide(row),
)


@dataclass(frozen=True)
class Thompson(TotalsPolicy):
    """Highest draw from the Beta posteriors, whose standard deviation is scaled by about gamma.

    A draw is from Beta((S + a) / gamma^2, (F + b) / gamma^2), with S successes and F failures of the arm. At gamma = 0
    the highest posterior mean is pulled. Rewards must be in [0, 1]. A reward between 0 and 1 is the probability with which
    the pull counts as a success (the paper's pseudo-reward).

    Parameters
    ----------
    prior : (float, float) or "problem"
        Beta(a, b), the posterior before the first pull; a and b are 0.1 or more. By default it is that of the problem's
        mean rewards.

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3), [0.3, 1.0], horizon=100, runs=500)
    >>> regrets.shape
    (2, 500)
    """

    prior: Option[ArmPolicyPrior] = FROM_PROBLEM

    name = "ts"
    pending_rewards = "ignore"
    parameters = (make_width_parameter(),)
    rewards: ClassVar[str] = "unit"
    prior_kind: ClassVar[str] = "beta"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (1, 1)}
    smallest_prior_shape: ClassVar[float] = 0.1
    shortcuts: ClassVar[tuple[Shortcut, ...]] = (THINNING,)

    choose = staticmethod(choose_thompson)
    update = staticmethod(update_thompson)

    def __post_init__(self) -> None:
        if is_from_problem(self.prior):
            return
        prior = check_pair("prior", self.prior)
        if min(prior) < self.smallest_prior_shape:
            raise InvalidRequest(
                f"`a >= 0.1` and `b >= 0.1` must hold for the prior of ts (draws would be 0 or 1), but got {self.prior!r}.",
                argument="prior",
                code="out-of-range",
            )
        object.__setattr__(self, "prior", prior)

    def limits(self, name: str) -> tuple[float, float]:
        """Limit gamma. With a larger one, draws from Beta(prior / gamma^2) would be 0 or 1 exactly, and often tied."""
        if is_from_problem(self.prior):
            return -math.inf, math.inf
        return -math.inf, math.sqrt(min(self.prior) / self.smallest_prior_shape)

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return self.prior  # type: ignore[no-any-return]
