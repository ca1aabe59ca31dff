"""The optimal policy on two Bernoulli arms with Beta priors, and its value.

The posterior after n pulls is a state (pulls of arm 1, successes of arm 1, successes of arm 2). The values of all states of
one step are a *layer*. Its positions do not depend on the step, so that a layer is computed from the next one in place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_integer, check_number, check_prior_pairs, is_from_problem
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Condition, Setting
from banditune.core.option_types import ArmPolicyPrior, Option
from banditune.core.policy import FROM_PROBLEM
from banditune.core.scalar import scalar
from banditune.exact.beta_quadrature import argmax_posterior_mean
from banditune.exact.table_cache import check_table_fits, load_or_make_table
from banditune.policies.base_policies import TotalsPolicy
from banditune.simulation.compilation import compile_kernel, compile_signature
from banditune.simulation.estimators.arm_totals import read_successes

TIE_TOLERANCE = 1e-14
"""Arms are tied if their values differ by at most this per remaining step, which may be rounding. The first is pulled."""


STEPS_PER_PASS = 8
"""The number of steps that are computed in one pass over a layer."""


TWO_ARM_TABLE_VERSION = 1
"""A version in the name of a table on disk. It is increased when tables are computed in another way."""


@scalar
def locate_rows(pulls1, horizon):
    """Locate the rows of a number of pulls of arm 1.

    There is a row of horizon - pulls1 numbers for every number of successes of arm 1, from 0 to `pulls1`.
    """
    return pulls1 * (pulls1 + 1) // 2 * horizon - (pulls1 - 1) * pulls1 * (pulls1 + 1) // 3


@scalar
def step_row_back(row, after_success1, after_failure1, chance1, shapes2, scale2, discount, tie):
    """Compute the values of states that differ in the successes of arm 2. Return the number of states with arm 1 best.

    `row` has the values after a pull of arm 2: after a success at the next position, after a failure at the same.
    """
    arm1_is_best = 0
    for successes2 in range(len(shapes2)):
        chance2 = shapes2[successes2] * scale2
        later1 = chance1 * after_success1[successes2] + (1.0 - chance1) * after_failure1[successes2]
        later2 = chance2 * row[successes2 + 1] + (1.0 - chance2) * row[successes2]
        value1 = chance1 + discount * later1
        value2 = chance2 + discount * later2
        row[successes2] = max(value1, value2)
        arm1_is_best += value2 - value1 <= tie
    return arm1_is_best


@scalar
def fill_last_row(row, chance1, shapes2, scale2, tie):
    """Compute the values of states with one step left. Return the number of states with arm 1 best."""
    arm1_is_best = 0
    for successes2 in range(len(shapes2)):
        chance2 = shapes2[successes2] * scale2
        row[successes2] = max(chance1, chance2)
        arm1_is_best += chance2 - chance1 <= tie
    return arm1_is_best


@scalar
def fill_step_rows(layer, thresholds, horizon, step, pulls1, shapes1, weight1, shapes2, weight2, discount):
    """Compute the rows of one step and one number of pulls of arm 1, from those one step later."""
    pulls2 = step - pulls1
    width = horizon - pulls1
    row_start = locate_rows(pulls1, horizon)
    after = locate_rows(pulls1 + 1, horizon)
    scale1 = 1.0 / (weight1 + pulls1)
    scale2 = 1.0 / (weight2 + pulls2)
    known2 = shapes2[: pulls2 + 1]
    tie = TIE_TOLERANCE * (horizon - step)
    for successes1 in range(pulls1 + 1):
        chance1 = shapes1[successes1] * scale1
        row = layer[row_start : row_start + width]
        if step == horizon - 1:
            count = fill_last_row(row, chance1, known2, scale2, tie)
        else:
            failed = layer[after : after + width - 1]
            after += width - 1
            succeeded = layer[after : after + width - 1]
            count = step_row_back(row, succeeded, failed, chance1, known2, scale2, discount, tie)
        if len(thresholds) > 0:
            thresholds[row_start + pulls2] = count
        row_start += width


def fill_layers_backward(layer, thresholds, horizon, shapes1, weight1, shapes2, weight2, discount):
    """The kernel, which computes the layer of the last step and of every earlier one. layer[0] is the value of the prior.

    `shapes1[s]` is the first shape of arm 1 after s successes, `weight1` the sum of its prior shapes. `thresholds`, unless
    it is empty, receives the table of `Optimal`. A pass computes `STEPS_PER_PASS` steps. Each step is one number of pulls
    behind the next one, so that a layer is loaded into the cache only once for all steps of a pass.
    """
    for last in range(horizon - 1, -1, -STEPS_PER_PASS):
        for front in range(last + STEPS_PER_PASS):
            for offset in range(min(STEPS_PER_PASS, last + 1, front + 1)):
                step = last - offset
                pulls1 = front - offset
                if pulls1 <= step:
                    fill_step_rows(
                        layer, thresholds, horizon, step, pulls1, shapes1, weight1, shapes2, weight2, discount
                    )


def count_states(horizon: int) -> int:
    """Count the numbers in a layer, and in a table of thresholds: about horizon^3 / 6."""
    return horizon * (horizon + 1) * (horizon + 2) // 6


def resolve_two_arm_shapes(prior: Any) -> tuple[tuple[float, float], ...]:
    """Resolve a prior to a pair of shapes for each of the two arms."""
    shapes = check_prior_pairs(prior, 2, first="a", second="b", first_positive=True)
    return shapes * 2 if len(shapes) == 1 else shapes


def compute_optimal_reward_two_arms(
    shapes: Any, horizon: int, discount: float = 1.0, free: float | None = None
) -> float:
    """Compute the largest expected total reward on two independent Bernoulli arms with Beta priors ((a1, b1), (a2, b2)).

    The reward of step t = 0, 1, ... has the weight discount^t. It takes horizon^4 / 24 updates of 8 horizon^3 / 6 bytes.
    `free` limits the memory for them; by default it is all free memory.
    """
    shapes, horizon = resolve_two_arm_shapes(shapes), check_integer("horizon", horizon, 1)
    check_number("discount", discount, above=0, most=1)
    check_table_fits("the value of every state", lambda n: 8 * count_states(n), horizon, free)
    layer, _ = run_backward_induction(shapes, horizon, discount, with_thresholds=False)
    return float(layer[0])


def compute_optimal_thresholds(shapes: Any, horizon: int) -> NDArray[np.uint16]:
    """Compute the fewest successes of arm 2 with which it is pulled, for every (pulls1, successes1, pulls2), in one row.

    The entry is pulls2 + 1 if arm 2 is not pulled. Its position is
    locate_rows(pulls1, horizon) + successes1 (horizon - pulls1) + pulls2.
    """
    shapes, horizon = resolve_two_arm_shapes(shapes), check_integer("horizon", horizon, 1)

    def make() -> NDArray[Any]:
        check_table_fits("the optimal choice for every state", lambda n: (8 + 2) * count_states(n), horizon)
        return run_backward_induction(shapes, horizon, 1.0, with_thresholds=True)[1]

    return load_or_make_table(
        "optimal", [TWO_ARM_TABLE_VERSION, shapes, horizon], make, np.uint16, count_states(horizon)
    )


def run_backward_induction(
    shapes: tuple[tuple[float, float], ...], horizon: int, discount: float, *, with_thresholds: bool
) -> tuple[NDArray[np.float64], NDArray[np.uint16]]:
    """Compute the layer of the first step, and the thresholds if `with_thresholds`."""
    (a1, b1), (a2, b2) = shapes
    seen = np.arange(horizon)
    layer = np.empty(count_states(horizon))
    thresholds = np.empty(count_states(horizon) if with_thresholds else 0, np.uint16)
    arguments = (layer, thresholds, horizon, a1 + seen, a1 + b1, a2 + seen, a2 + b2, float(discount))
    compiled = compile_kernel(fill_layers_backward)
    compile_signature(compiled, arguments, "the optimum of two arms")
    compiled(*arguments)
    return layer, thresholds


@scalar
def choose_optimal_arm(state, setting, step, params, stream):
    """Choose arm 2 if its successes reach the threshold, else arm 1."""
    pulls1 = int(state.pulls[0])
    pulls2 = int(state.pulls[1])
    successes1 = read_successes(state, 0)
    successes2 = read_successes(state, 1)
    row = locate_rows(pulls1, setting.horizon) + successes1 * (setting.horizon - pulls1)
    return 1 if successes2 >= setting.options[row + pulls2] else 0


@dataclass(frozen=True)
class Optimal(TotalsPolicy):
    """The optimal policy for two arms with 0/1 rewards, Beta priors and a known horizon. It has no parameter.

    In a deployed policy with `pending="mean"`, totals may not be whole numbers of successes. They are rounded.

    Parameters
    ----------
    prior : (float, float), sequence of (float, float) or "problem"
        Beta(a, b) of the mean rewards, one pair for both arms or one per arm. By default it is taken from the problem.

    Notes
    -----
    It uses a table of thresholds, because the value of arm 2 grows with its successes. Let D_m(x, y) be the
    advantage of pulling arm 2 over arm 1 with m steps left, if all later pulls are optimal. Arm 2 has the posterior x
    and arm 1 the posterior y. Both orders of pulling both arms lead to the same posteriors, so

        D_m(x, y) = E[max(D_{m-1}(x', y), 0)] + E[min(D_{m-1}(x, y'), 0)],

    where x' and y' are the posteriors after a pull, and D_1 is the difference of the means. By induction D grows with x
    in likelihood ratio, and so with successes. A larger x makes success more likely, and x' larger after either
    outcome. Success makes x' larger.

    Examples
    --------
    >>> import banditune as bt
    >>> bt.simulate(bt.exact.Optimal(), bt.Bernoulli(arms=2), horizon=50, runs=100).shape
    (1, 100)
    """

    prior: Option[ArmPolicyPrior] = FROM_PROBLEM

    name = "optimal"
    rewards: ClassVar[str] = "binary"
    prior_kind: ClassVar[str] = "beta"
    choose = staticmethod(choose_optimal_arm)

    def __post_init__(self) -> None:
        if is_from_problem(self.prior):
            return
        prior = check_prior_pairs(self.prior, 2, first="a", second="b", first_positive=True)
        object.__setattr__(self, "prior", prior[0] if len(prior) == 1 else prior)

    def options(self, arms: int, dims: int, horizon: int) -> NDArray[np.uint16]:
        if arms != 2:
            raise InvalidRequest(
                "{} must hold for {}, but got {}; use ts or ucb1, or optimal-mixture where the means are one of a few "
                "vectors.",
                *(Condition("", "arms", " = 2"), self.name, Setting("arms", arms)),
                argument="arms",
                code="unsupported",
            )
        return compute_optimal_thresholds(self.prior, horizon)

    def choose_after_horizon(self, pulls: FloatArray, totals: FloatArray) -> int:
        """Choose the highest posterior mean: the optimal choice with one round left."""
        return argmax_posterior_mean(self.prior, pulls, totals)
