"""Ready-made memory for policies that know their arms by pulls and total reward, and the moves they share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from banditune.checks import check_scalar
from banditune.contracts import BadRequest, Floats, Parameter, Policy, scalar
from banditune.descriptions import untold
from banditune.streams import uniform


class ArmTotals(NamedTuple):
    """Pulls and total reward of every arm."""

    pulls: Floats
    total: Floats


@scalar
def view_totals(memory, setting):
    """The first two strips of the memory as pulls and totals."""
    return ArmTotals(memory[: setting.arms], memory[setting.arms : 2 * setting.arms])


@scalar
def start_totals(state, setting):
    """Forget everything."""
    for arm in range(setting.arms):
        state.pulls[arm] = 0.0
        state.total[arm] = 0.0


@scalar
def update_totals(state, setting, arm, reward, stream):
    """Count one pull and its reward."""
    state.pulls[arm] += 1.0
    state.total[arm] += reward


@scalar
def recall_totals(state, setting, pulls, totals):
    """Write down every arm's pulls and total reward."""
    for arm in range(setting.arms):
        pulls[arm] = state.pulls[arm]
        totals[arm] = state.total[arm]


@scalar
def resume_totals(state, setting, params, pulls, totals):
    """Know every arm's pulls and total reward."""
    for arm in range(setting.arms):
        state.pulls[arm] = pulls[arm]
        state.total[arm] = totals[arm]


@scalar
def best_mean(state):
    """The arm with the highest mean reward; an arm never pulled comes first, ties go to the lowest number."""
    best = 0
    highest = -1e308
    for arm in range(len(state.pulls)):
        if state.pulls[arm] == 0.0:
            return arm
        mean = state.total[arm] / state.pulls[arm]
        if mean > highest:
            best = arm
            highest = mean
    return best


@scalar
def successes(state, arm):
    """How often an arm that pays 0 or 1 paid 1: from 0 to its pulls, even where a problem breaks its promise."""
    return min(max(int(state.total[arm] + 0.5), 0), int(state.pulls[arm]))


@scalar
def random_arm(state, stream):
    """Any arm, all alike."""
    return int(uniform(stream) * len(state.pulls))


WIDEST = 1e6
"""The largest factor of a policy's width or deviation. With a wider one, rounding hides the mean rewards."""


def width_parameter() -> Parameter:
    """gamma, the factor of a policy's width: usually from 0, no exploration, to 1, the textbook's."""
    return Parameter("gamma", 0, 1, theory=1, least=0, most=WIDEST)


def width_holds(options: Any, row: Floats) -> bool:
    """Whether the proofs of the shortcuts for linear and logistic policies hold for a row: they need gamma >= 0."""
    return bool(0 <= row[0] <= WIDEST)


def is_wide(row: Floats) -> bool:
    """Whether a width is beyond those at which single precision was compared with double precision."""
    return bool(row[0] > 1)


def chance_parameter(theory: Callable[[int, int], float]) -> Parameter:
    """epsilon, a probability."""
    return Parameter("epsilon", 0, 1, theory=theory, least=0, most=1)


class TotalsPolicy(Policy):
    """A policy on arm totals: only `choose` is its own."""

    view = staticmethod(view_totals)
    start = staticmethod(start_totals)
    update = staticmethod(update_totals)
    recall = staticmethod(recall_totals)
    resume = staticmethod(resume_totals)

    def memory(self, arms: int, dims: int) -> int:
        return 2 * arms


@dataclass(frozen=True)
class OwnPolicy(TotalsPolicy):
    """A user's policy on arm totals; see `arm_policy`."""

    name: str
    choose: Callable[..., Any] = untold()
    parameters: tuple[Parameter, ...] = untold(())


def arm_policy(name: str, choose: Callable[..., Any], *, parameters: Any = ()) -> OwnPolicy:
    """A policy of your own: `choose(state, setting, step, params, stream) -> arm` on `state.pulls` and `state.total`.

    Steps and arms are counted from 0.
    """
    return OwnPolicy(str(name), choose, parameter_records(choose, parameters))


def parameter_records(choose: Any, parameters: Any) -> tuple[Parameter, ...]:
    """The parameters of a user's policy, one or several."""
    found = (parameters,) if isinstance(parameters, Parameter) else tuple(parameters)
    if not callable(choose) or not all(isinstance(parameter, Parameter) for parameter in found):
        raise BadRequest(
            f"`choose` must be a function and `parameters` Parameter records, but got {choose!r}, {found!r}."
        )
    check_scalar("choose", choose, "state, setting, step, params, stream", "an arm")
    return found
