"""LinUCB: the highest upper confidence bound by ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.core.checks import check_number
from banditune.core.errors import InvalidRequest
from banditune.core.policy import FROM_PROBLEM, Shortcut, WarpVersion
from banditune.core.scalar import scalar
from banditune.policies.base_policies import RidgePolicy, is_valid_width, make_width_parameter
from banditune.simulation.estimators.confidence_factor import compute_confidence_factor
from banditune.simulation.estimators.ridge_regression import start_ridge, update_ridge, view_ridge
from banditune.simulation.estimators.vector_layout import argmax_score
from banditune.simulation.gpu import warp_linear, warp_linucb
from banditune.simulation.shortcuts.linucb_active_set import advance_active_set
from banditune.simulation.shortcuts.linucb_epochs import count_active_set_numbers


@scalar
def start_linucb(state, setting):
    """Forget everything; theory's factor depends on the instance's features."""
    start_ridge(state, setting)
    state.own[0] = compute_confidence_factor(setting)


@scalar
def choose_linucb(state, setting, step, params, stream):
    """The highest x'theta + gamma c sqrt(x' G^-1 x)."""
    factor = params[0] * state.own[0]
    for arm in range(setting.arms):
        state.shift[arm] = state.score[arm] + factor * state.width[arm]
    return argmax_score(state.shift)


LINUCB_FUNCTIONS = (view_ridge, start_linucb, choose_linucb, update_ridge)


ACTIVE_SET = Shortcut(
    "live", advance_active_set, LINUCB_FUNCTIONS, count_active_set_numbers, holds=is_valid_width, exact_bits=False
)


LINUCB_WARP = WarpVersion(
    warp_linucb.view_linucb_warp, warp_linear.start_linear_warp, warp_linucb.choose_linucb_warp, warp_linear.update_linear_warp,
    warp_linucb.count_linucb_registers, warp_linucb.count_linucb_shared, LINUCB_FUNCTIONS, is_valid_width,
)  # fmt: skip


@dataclass(frozen=True)
class LinUCB(RidgePolicy):
    """Highest x'theta + gamma c sqrt(x' G^-1 x), G = noise^2 covariance^-1 + sum of x x'.

    `prior` is the Gaussian (mean, covariance) of theta, `noise` the standard deviation of rewards. `theory` says what c is:
    "theorem" for g = sqrt(d) + noise sqrt(d log((1 + n L^2) n)), n the horizon and L the largest norm of an arm's features;
    "paper" for noise g, as the paper prints it; or a number.
    """

    prior: Any = FROM_PROBLEM
    noise: Any = FROM_PROBLEM
    theory: Any = "paper"

    name = "linucb"
    parameters = (make_width_parameter(),)
    plays: ClassVar[tuple[Shortcut, ...]] = (ACTIVE_SET,)
    team: ClassVar[WarpVersion | None] = LINUCB_WARP
    start = staticmethod(start_linucb)
    choose = staticmethod(choose_linucb)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.theory, str) and self.theory not in ("paper", "theorem"):
            raise InvalidRequest(f'`theory` must be "paper", "theorem" or a number > 0, but got {self.theory!r}.')
        if not isinstance(self.theory, str):
            object.__setattr__(self, "theory", check_number("theory", self.theory, above=0))

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        if isinstance(self.theory, str):
            return (0.0, self.noise if self.theory == "paper" else 1.0, self.noise)
        return (self.theory, 0.0, 0.0)
