"""LinUCB: the highest upper confidence bound by ridge regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from banditune.core.checks import check_number
from banditune.core.errors import InvalidRequest
from banditune.core.option_types import Noise, Option, WeightPolicyPrior, default_option
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
    """Reset the memory. The textbook factor depends on the instance's features."""
    start_ridge(state, setting)
    state.extra[0] = compute_confidence_factor(setting)


@scalar
def choose_linucb(state, setting, step, params, stream):
    """Choose the highest x'theta + gamma c sqrt(x' G^-1 x)."""
    factor = params[0] * state.extra[0]
    for arm in range(setting.arms):
        state.arm_values[arm] = state.score[arm] + factor * state.width[arm]
    return argmax_score(state.arm_values)


LINUCB_FUNCTIONS = (view_ridge, start_linucb, choose_linucb, update_ridge)


ACTIVE_SET = Shortcut(
    "active-set",
    advance_active_set,
    LINUCB_FUNCTIONS,
    count_active_set_numbers,
    is_valid=is_valid_width,
    is_bitwise_exact=False,
)


LINUCB_WARP = WarpVersion(
    view=warp_linucb.view_linucb_warp,
    start=warp_linear.start_linear_warp,
    choose=warp_linucb.choose_linucb_warp,
    update=warp_linear.update_linear_warp,
    count_registers=warp_linucb.count_linucb_registers,
    count_shared=warp_linucb.count_linucb_shared,
    replaces=LINUCB_FUNCTIONS,
    is_valid=is_valid_width,
)


@dataclass(frozen=True)
class LinUCB(RidgePolicy):
    """Highest x'theta + gamma c sqrt(x' G^-1 x), G = noise^2 covariance^-1 + sum of x x'.

    Theta is estimated by ridge regression. The bound is that of Abbasi-Yadkori, Pal and Szepesvari (2011).

    Parameters
    ----------
    prior : (mean, covariance) or "problem"
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default it
        is taken from the problem.
    noise : float or "problem"
        Standard deviation of a reward around its arm's mean, above 0. By default it is taken from the problem.
    confidence : {"paper", "theorem"} or float
        The factor c. "theorem" is g = sqrt(d) + noise sqrt(d log((1 + n L^2) n)), with d features and horizon n. L is
        the largest norm of an arm's features. "paper" is noise g, as printed in the paper. A number above 0 is c
        itself.

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.LinUCB(), bt.Linear(arms=5, dims=2), [0.1, 1.0], horizon=100, runs=100)
    >>> regrets.shape
    (2, 100)
    """

    prior: Option[WeightPolicyPrior] = FROM_PROBLEM
    noise: Option[Noise] = FROM_PROBLEM
    confidence: Option[Literal["paper", "theorem"] | float] = default_option("paper")

    name = "linucb"
    parameters = (make_width_parameter(),)
    shortcuts: ClassVar[tuple[Shortcut, ...]] = (ACTIVE_SET,)
    warp_version: ClassVar[WarpVersion | None] = LINUCB_WARP
    start = staticmethod(start_linucb)
    choose = staticmethod(choose_linucb)

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.confidence, str) and self.confidence not in ("paper", "theorem"):
            raise InvalidRequest(
                f'`confidence` must be "paper", "theorem" or a number > 0, but got {self.confidence!r}.',
                argument="confidence",
                code="unknown-name",
            )
        if not isinstance(self.confidence, str):
            object.__setattr__(self, "confidence", check_number("confidence", self.confidence, above=0))

    def list_policy_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        if isinstance(self.confidence, str):
            return (0.0, self.noise if self.confidence == "paper" else 1.0, self.noise)
        return (self.confidence, 0.0, 0.0)
