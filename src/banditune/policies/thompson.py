"""Thompson sampling for rewards in [0, 1] with Beta posteriors."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.checks import check_pair, is_open
from banditune.contracts import PROBLEM, BadRequest, Floats, Play, scalar
from banditune.policies.arms import TotalsPolicy, is_wide, width_parameter
from banditune.policies.lazy import advance_lazy, words_from_rewards
from banditune.policies.lazy_single import SINGLE
from banditune.streams import beta, uniform


@scalar
def choose_sample(state, setting, step, params, stream):
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
def update_success(state, setting, arm, reward, stream):
    """A reward between 0 and 1 counts as a success with that probability (the paper's pseudo-reward).

    So an arm's total is the number of its successes.
    """
    state.pulls[arm] += 1.0
    if reward >= 1.0 or (reward > 0.0 and uniform(stream) < reward):
        state.total[arm] += 1.0


LONG = 20_000
"""The horizon up to which a GPU plays in float32, twice the one at which it was compared with float64. Rewards that are
read one by one must be the same whether they are drawn ahead or not; with them it plays in float64."""

STRONG = 1e3
"""The largest shape of a prior up to which a GPU plays in float32: what a pull adds must show in seven digits."""

NARROW = 1e-3
"""Smaller widths but 0 are played in float64: below 1e-5 draws of single precision would often be equal. So are those
above 1, at which the two were not compared."""

GREEDY = 1e-9
"""Below this gamma the highest posterior mean is taken, without a draw."""


def shapes_suffice(options: Sequence[float], row: Floats) -> bool:
    """Whether posteriors have shapes >= 1, as the proof in `lazy` asks: data only make them larger.

    At gamma = 0 nothing is drawn, and any prior will do.
    """
    return bool(row[0] < GREEDY or min(options) >= row[0] * row[0])


LAZY = Play(
    "lazy",
    advance_lazy,
    (choose_sample, update_success),
    lambda arms, dims: (5 * arms, 4 * arms + 5),
    holds=shapes_suffice,
    exact_bits=False,
    slots=lambda problem: {"outcomes": problem.outcomes or words_from_rewards},
    reads=lambda problem: problem.outcomes is None,
    single=SINGLE,
    precision=lambda policy, problem, horizon: (
        "float32" if horizon <= LONG and max(policy.prior) <= STRONG and problem.outcomes else "float64"
    ),
    needs_double=lambda row: 0 < row[0] < NARROW or is_wide(row),
)


@dataclass(frozen=True)
class Thompson(TotalsPolicy):
    """Highest draw from the Beta posteriors, whose standard deviation is scaled by about gamma.

    Rewards in (0, 1) update it through Bernoulli pseudo-rewards. `prior` is Beta(a, b), the
    posterior before the first pull: that of the problem's means by default.
    """

    prior: Any = PROBLEM

    name = "ts"
    pending = "ignore"
    parameters = (width_parameter(),)
    rewards: ClassVar[str] = "unit"
    prior_kind: ClassVar[str] = "beta"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (1, 1)}
    least_shape: ClassVar[float] = 0.1
    plays: ClassVar[tuple[Play, ...]] = (LAZY,)

    choose = staticmethod(choose_sample)
    update = staticmethod(update_success)

    def __post_init__(self) -> None:
        if is_open(self.prior):
            return
        prior = check_pair("prior", self.prior)
        if min(prior) < self.least_shape:
            raise BadRequest(
                f"`a >= 0.1` and `b >= 0.1` must hold for the prior of ts (draws would be 0 or 1), but got {self.prior!r}."
            )
        object.__setattr__(self, "prior", prior)

    def limits(self, name: str) -> tuple[float, float]:
        """With a wider gamma, draws from Beta(prior / gamma^2) would be 0 or 1 to the last bit, and ties decide."""
        if is_open(self.prior):
            return -math.inf, math.inf
        return -math.inf, math.sqrt(min(self.prior) / self.least_shape)

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return self.prior  # type: ignore[no-any-return]
