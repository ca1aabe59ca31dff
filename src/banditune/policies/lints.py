"""Linear Thompson sampling: the highest score under a draw from the posterior of ridge regression."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from banditune.core.checks import check_number
from banditune.core.option_types import Noise, Option, WeightPolicyPrior, default_option
from banditune.core.policy import FROM_PROBLEM, Shortcut, WarpVersion
from banditune.core.scalar import scalar
from banditune.policies.base_policies import RidgePolicy, is_valid_width, make_width_parameter
from banditune.simulation.estimators.ridge_regression import sample_scores, start_ridge, update_ridge, view_ridge
from banditune.simulation.estimators.vector_layout import argmax_score
from banditune.simulation.estimators.whitened_features import read_policy_option
from banditune.simulation.gpu import warp_linear, warp_lints
from banditune.simulation.shortcuts.lints_proposals import count_lints_numbers
from banditune.simulation.shortcuts.lints_thinning import advance_lints_thinning


@scalar
def choose_lints(state, setting, step, params, stream):
    """Choose the highest score under a draw of theta; at gamma = 0 under the estimate."""
    if params[0] > 0.0:
        sample_scores(state, setting, params[0] * read_policy_option(setting, 0), stream)
        return argmax_score(state.arm_values)
    return argmax_score(state.score)


LINTS_FUNCTIONS = (view_ridge, start_ridge, choose_lints, update_ridge)


LINTS_THINNING = Shortcut(
    "thinning",
    advance_lints_thinning,
    LINTS_FUNCTIONS,
    count_lints_numbers,
    is_valid=is_valid_width,
    is_bitwise_exact=False,
)


LINTS_WARP = WarpVersion(
    view=warp_lints.view_lints_warp,
    start=warp_linear.start_linear_warp,
    choose=warp_lints.choose_lints_warp,
    update=warp_linear.update_linear_warp,
    count_registers=warp_lints.count_lints_registers,
    count_shared=warp_lints.count_lints_shared,
    replaces=LINTS_FUNCTIONS,
    is_valid=is_valid_width,
)


@dataclass(frozen=True)
class LinTS(RidgePolicy):
    """Highest x'theta for a draw theta ~ N(estimate, gamma^2 factor noise^2 G^-1), G as for LinUCB.

    noise^2 G^-1 is the posterior covariance. At gamma = 0 the highest estimate is pulled.

    Parameters
    ----------
    prior : (mean, covariance) or "problem"
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default it
        is taken from the problem.
    noise : float or "problem"
        Standard deviation of a reward around its arm's mean, above 0. By default it is taken from the problem.
    factor : float, optional
        Factor of the covariance, above 0. By default it is the number of features, the textbook value. With 1, gamma =
        1 is posterior sampling.

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.LinTS(), bt.Linear(arms=5, dims=2), [0.3, 1.0], horizon=100, runs=100)
    >>> regrets.shape
    (2, 100)
    """

    prior: Option[WeightPolicyPrior] = FROM_PROBLEM
    noise: Option[Noise] = FROM_PROBLEM
    factor: Option[float | None] = default_option(None)

    name = "lints"
    pending_rewards = "ignore"
    parameters = (make_width_parameter(),)
    shortcuts: ClassVar[tuple[Shortcut, ...]] = (LINTS_THINNING,)
    warp_version: ClassVar[WarpVersion | None] = LINTS_WARP
    choose = staticmethod(choose_lints)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor is not None:
            object.__setattr__(self, "factor", check_number("factor", self.factor, above=0))

    def list_policy_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (math.sqrt(dims if self.factor is None else self.factor) * self.noise,)
