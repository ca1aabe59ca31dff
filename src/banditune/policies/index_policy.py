"""Policies that pull the arm with the highest index. An index depends on its arm's rewards and on the step."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_choice, check_flag, check_reward_kind, check_scalar_function
from banditune.core.descriptions import make_undescribed_field
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.option_types import RewardKind
from banditune.core.policy import Policy, Setting, Shortcut
from banditune.core.scalar import scalar
from banditune.core.space import Parameter
from banditune.policies.custom_policy import check_parameters, make_rewards_field
from banditune.simulation.estimators.arm_moments import (
    ArmRecord,
    read_moments,
    read_totals,
    start_moments,
    update_moments,
    view_moments,
)
from banditune.simulation.estimators.arm_totals import (
    recall_totals,
    resume_totals,
    start_totals,
    update_totals,
    view_totals,
)
from banditune.simulation.shortcuts.index_leader import SLACK, make_leader_shortcuts

InStep = Literal["constant", "rising", "falling"]
"""The kinds of change of an index with the step while its arm is not pulled."""


INDEX_ARGUMENTS = "arm, setting, step, params"
"""The arguments of an index."""


EXCEEDS_ARGUMENTS = "arm, setting, step, params, bound"
"""The arguments of the test whether an index exceeds a bound."""


CHECKED_STATES = 200
"""The number of random states of an arm in which the declared change with the step is checked."""


def make_index_choose(index: Callable[..., Any], read_arm: Callable[..., Any]) -> Callable[..., Any]:
    """Make the `choose` of an index, which computes the index of every arm. Ties go to the lowest number."""

    @scalar
    def choose_highest_index(state, setting, step, params, stream):
        best = 0
        highest = index(read_arm(state, 0), setting, step, params)
        for arm in range(1, setting.arms):
            value = index(read_arm(state, arm), setting, step, params)
            if value > highest:
                best = arm
                highest = value
        return best

    return choose_highest_index


class IndexFunctions(NamedTuple):
    """The functions of a policy that is given by an index, and its shortcuts."""

    view: Callable[..., Any]
    start: Callable[..., Any]
    choose: Callable[..., Any]
    update: Callable[..., Any]
    shortcuts: tuple[Shortcut, ...]


@lru_cache(maxsize=256)
def make_index_functions(
    index: Callable[..., Any], in_step: str, exceeds: Callable[..., Any] | None = None, squares: bool = False
) -> IndexFunctions:
    """Make the functions of an index. They are cached, so that the same index has the same kernels."""
    if squares:
        read_arm, functions = read_moments, (view_moments, start_moments, update_moments)
    else:
        read_arm, functions = read_totals, (view_totals, start_totals, update_totals)
    view, start, update = functions
    choose = make_index_choose(index, read_arm)
    shortcuts = make_leader_shortcuts((view, start, choose, update), index, in_step, exceeds, read_arm)
    return IndexFunctions(view, start, choose, update, shortcuts)


@dataclass(frozen=True)
class CustomIndexPolicy(Policy):
    """A user's policy given by an index; see `define_index_policy`."""

    name: str
    index: Callable[..., Any] = make_undescribed_field()
    in_step: str = "rising"
    parameters: tuple[Parameter, ...] = make_undescribed_field(())
    exceeds: Callable[..., Any] | None = make_undescribed_field(None)
    squares: bool = False
    rewards: str = make_rewards_field()  # type: ignore[misc]

    @property
    def functions(self) -> IndexFunctions:
        """The functions and the shortcuts that are made of the index."""
        return make_index_functions(self.index, self.in_step, self.exceeds, self.squares)

    view = property(lambda self: self.functions.view)
    start = property(lambda self: self.functions.start)
    choose = property(lambda self: self.functions.choose)
    update = property(lambda self: self.functions.update)
    shortcuts = property(lambda self: self.functions.shortcuts)

    # Squares cannot be restored from pulls and totals.
    recall = property(lambda self: None if self.squares else recall_totals)
    resume = property(lambda self: None if self.squares else resume_totals)

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return (3 if self.squares else 2) * arms

    def check(self, features: FloatArray, horizon: int) -> None:
        check_index(self, features.shape[2], horizon)


def define_index_policy(
    name: str,
    index: Callable[..., Any],
    *,
    parameters: Any = (),
    in_step: InStep,
    exceeds: Callable[..., Any] | None = None,
    squares: bool = False,
    rewards: RewardKind = "real",
) -> CustomIndexPolicy:
    """Define a policy of your own by the index of one arm.

    The arm with the highest index is pulled; ties go to the lowest number. An exact shortcut computes few indices, in most
    steps only that of one arm. Regrets are those of the plain loop, bit by bit.

    Parameters
    ----------
    name : str
        The name of the policy in results.
    index : callable
        Scalar function `index(arm, setting, step, params) -> float`. `arm.pulls` and `arm.total` are the arm's pulls and
        total reward, and steps are counted from 0. It is also called for an arm with 0 pulls; return `math.inf` there to
        pull every arm once first.
    parameters : Parameter or sequence of Parameter
        The parameters that can be tuned. None by default.
    in_step : {"constant", "rising", "falling"}
        The change of the index with the step while its arm is not pulled: "constant" if it does not read `step`, "rising"
        if it never falls, as with the logarithm of the step, "falling" if it never rises, as with the remaining steps.
        The declaration is checked.
    exceeds : callable, optional
        Scalar function `exceeds(arm, setting, step, params, bound) -> bool`, a fast test for an index that takes long to
        compute. If it is true, the index must be above the bound. If it is false, the index is computed.
    squares : bool
        Whether `arm.squares`, the sum of squared rewards, is kept. Such a policy cannot be deployed.
    rewards : {"real", "unit", "binary"}
        The rewards that the policy supports: any, in [0, 1], or 0 and 1. Problems with other rewards are refused.

    Returns
    -------
    Policy
        The policy, for functions such as `tune` and `simulate`.

    Raises
    ------
    InvalidRequest
        If a function takes other arguments, or another argument cannot be used.

    Examples
    --------
    >>> import math
    >>> import banditune as bt
    >>> @bt.kernel.scalar
    ... def moss(arm, setting, step, params):
    ...     if arm.pulls == 0:
    ...         return math.inf
    ...     bonus = max(math.log(setting.horizon / (setting.arms * arm.pulls)), 0.0)
    ...     return arm.total / arm.pulls + params[0] * math.sqrt(bonus / arm.pulls)
    >>> width = bt.Parameter("gamma", 0, 2, textbook=1)
    >>> policy = bt.define_index_policy("my-moss", moss, parameters=width, in_step="constant")
    >>> bt.simulate(policy, bt.Bernoulli(arms=3), [0.2, 1.0], horizon=100, runs=50).shape
    (2, 50)
    """
    check_choice("in_step", in_step, get_args(InStep))
    check_scalar_function("index", index, INDEX_ARGUMENTS, "an index")
    if exceeds is not None:
        check_scalar_function("exceeds", exceeds, EXCEEDS_ARGUMENTS, "true or false")
    return CustomIndexPolicy(
        name=str(name),
        index=index,
        in_step=in_step,
        parameters=check_parameters(parameters),
        exceeds=exceeds,
        squares=check_flag("squares", squares),
        rewards=check_reward_kind(rewards),
    )


@lru_cache(maxsize=64)
def check_index(policy: CustomIndexPolicy, arms: int, horizon: int) -> None:
    """Check in random states that an index changes with the step as declared, and that `exceeds` agrees with it."""
    rng = np.random.default_rng([arms, horizon])
    rows = _list_checked_rows(policy, arms, horizon)
    setting = Setting(arms, 0, horizon, np.empty((0, arms)), np.empty(0))
    for _ in range(CHECKED_STATES if horizon > 1 else 0):
        first, second = sorted(rng.choice(horizon, 2, replace=False).tolist())
        pulls = int(np.exp(rng.uniform(0, np.log(first + 1)))) if first else 0
        total = float(rng.integers(0, pulls + 1))
        arm = ArmRecord(float(pulls), total, total if policy.squares else math.nan)
        row = rows[rng.integers(len(rows))]
        before, after = (float(policy.index(arm, setting, step, row)) for step in (first, second))
        _check_change(policy, f"{arm} and params={row.tolist()}", (first, before), (second, after))
        if policy.exceeds is not None and math.isfinite(before):
            for bound in (before, before + SLACK * abs(before)):
                if policy.exceeds(arm, setting, first, row, bound):
                    raise InvalidRequest(
                        "{} of the policy {!r} must be true only if the index is above the bound, but with "
                        "{}, step={} and params={} it is true for bound={!r}, where the index is {!r}.",
                        *(Argument("exceeds"), policy.name, arm, first, row.tolist(), bound, before),
                        argument="exceeds",
                        code="own-code",
                    )


def _list_checked_rows(policy: CustomIndexPolicy, arms: int, horizon: int) -> list[FloatArray]:
    """List the rows of parameters with which an index is checked: the ends of the ranges and the textbook's values."""
    ranges = [parameter.resolve(arms, horizon) for parameter in policy.parameters]
    return [
        np.array([getattr(search_range, end) for search_range in ranges] or [0.0])
        for end in ("low", "textbook", "high")
    ]


def _check_change(policy: CustomIndexPolicy, where: str, earlier: tuple[int, float], later: tuple[int, float]) -> None:
    """Check that an index changes from one step to a later one as declared, up to rounding."""
    (first, before), (second, after) = earlier, later
    rounding = 0.0 if policy.in_step == "constant" else SLACK * max(abs(before), abs(after))
    falls, rises = after < before - rounding, after > before + rounding
    if (falls and policy.in_step != "falling") or (rises and policy.in_step != "rising"):
        raise InvalidRequest(
            "the index of the policy {!r} is declared as in_step={!r}, but it {} from {!r} at step {} to {!r} at step {}, "
            "with {}; declare how it changes while its arm is not pulled, or use `define_policy`.",
            *(policy.name, policy.in_step, "falls" if falls else "rises", before, first, after, second, where),
            argument="in_step",
            code="own-code",
        )
