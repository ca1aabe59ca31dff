"""Linear Thompson sampling: the highest score under a draw from ridge regression's posterior."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from banditune.core.checks import check_number
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
    """The highest score under a draw of theta; at gamma = 0 under the estimate."""
    if params[0] > 0.0:
        sample_scores(state, setting, params[0] * read_policy_option(setting, 0), stream)
        return argmax_score(state.shift)
    return argmax_score(state.score)


LINTS_FUNCTIONS = (view_ridge, start_ridge, choose_lints, update_ridge)


LINTS_THINNING = Shortcut(
    "lazy", advance_lints_thinning, LINTS_FUNCTIONS, count_lints_numbers, holds=is_valid_width, exact_bits=False
)


LINTS_WARP = WarpVersion(
    warp_lints.view_lints_warp, warp_linear.start_linear_warp, warp_lints.choose_lints_warp, warp_linear.update_linear_warp,
    warp_lints.count_lints_registers, warp_lints.count_lints_shared, LINTS_FUNCTIONS, is_valid_width,
)  # fmt: skip


@dataclass(frozen=True)
class LinTS(RidgePolicy):
    """Highest x'theta for a draw theta ~ N(estimate, gamma^2 factor noise^2 G^-1), G as for LinUCB.

    noise^2 G^-1 is the posterior's covariance; theory's `factor` is the number of features unless told otherwise, and 1 is
    posterior sampling at gamma = 1.
    """

    prior: Any = FROM_PROBLEM
    noise: Any = FROM_PROBLEM
    factor: Any = None

    name = "lints"
    pending = "ignore"
    parameters = (make_width_parameter(),)
    plays: ClassVar[tuple[Shortcut, ...]] = (LINTS_THINNING,)
    team: ClassVar[WarpVersion | None] = LINTS_WARP
    choose = staticmethod(choose_lints)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor is not None:
            object.__setattr__(self, "factor", check_number("factor", self.factor, above=0))

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (math.sqrt(dims if self.factor is None else self.factor) * self.noise,)
