"""UCB1 (Auer, Cesa-Bianchi and Fischer 2002) with the log of the horizon."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_number, is_from_problem
from banditune.core.option_types import Noise, Option
from banditune.core.policy import FROM_PROBLEM, Policy, Shortcut
from banditune.core.scalar import scalar
from banditune.policies.base_policies import make_width_parameter
from banditune.simulation.estimators.arm_totals import recall_totals, start_totals
from banditune.simulation.estimators.ucb_index import compute_ucb_width
from banditune.simulation.shortcuts.ucb1_first_passage import advance_ucb1_passages, advance_ucb1_streaks

LARGEST_SCALE = 1e100
"""The largest gamma times scale of the first-passage shortcut. Its square must be finite."""


class UCB1State(NamedTuple):
    """Pulls, total reward, mean and unscaled width of every arm."""

    pulls: FloatArray
    total: FloatArray
    mean: FloatArray
    width: FloatArray


@scalar
def view_ucb1(memory, setting):
    """Split the memory into four arrays with one float per arm."""
    arms = setting.arms
    return UCB1State(memory[:arms], memory[arms : 2 * arms], memory[2 * arms : 3 * arms], memory[3 * arms : 4 * arms])


@scalar
def choose_ucb1(state, setting, step, params, stream):
    """Choose each arm once, then the highest upper confidence bound."""
    if step < setting.arms:
        return step
    best = 0
    highest = -1e308
    for arm in range(setting.arms):
        value = state.mean[arm] + params[0] * state.width[arm]
        if value > highest:
            best = arm
            highest = value
    return best


@scalar
def update_ucb1(state, setting, step, params, arm, reward, stream):
    """Update for one reward. Only mean and width of its arm change, because the log is of the horizon."""
    state.pulls[arm] += 1.0
    state.total[arm] += reward
    state.mean[arm] = state.total[arm] / state.pulls[arm]
    state.width[arm] = compute_ucb_width(setting.options[0], state.pulls[arm])


@scalar
def resume_ucb1(state, setting, params, pulls, totals):
    """Restore every arm's pulls and total reward, by the operations of `update_ucb1`."""
    for arm in range(setting.arms):
        state.pulls[arm] = pulls[arm]
        state.total[arm] = totals[arm]
        state.mean[arm] = totals[arm] / pulls[arm] if pulls[arm] > 0.0 else 0.0
        state.width[arm] = compute_ucb_width(setting.options[0], pulls[arm]) if pulls[arm] > 0.0 else 0.0


UCB1_FUNCTIONS = (view_ucb1, start_totals, choose_ucb1, update_ucb1)


STREAKS = Shortcut(
    "streaks",
    advance_ucb1_streaks,
    UCB1_FUNCTIONS,
    lambda arms, dims, horizon: (2 * arms, 0),
    is_valid=lambda options, row: True,
    is_bitwise_exact=True,
)


FIRST_PASSAGE = Shortcut(
    "first-passage",
    advance_ucb1_passages,
    UCB1_FUNCTIONS,
    lambda arms, dims, horizon: (4 * arms, 2 * arms),
    is_valid=lambda options, row: 0 <= row[0] * options[0] <= LARGEST_SCALE,
    is_bitwise_exact=True,
    is_applicable=lambda policy, problem: problem.bit_packed_reward is not None,
    reads_rewards=lambda problem: False,
)


@dataclass(frozen=True)
class UCB1(Policy):
    """Highest mean plus gamma times the textbook's confidence width.

    The width is 2 noise sqrt(2 log(horizon) / pulls) (Auer, Cesa-Bianchi and Fischer 2002, with the log of the
    horizon). The noise of rewards in [0, 1] is at most 0.5. With noise 0.5 and gamma = 1 the width is the textbook's
    sqrt(2 log(horizon) / pulls). Each arm is pulled once first.

    Parameters
    ----------
    noise : float or "problem"
        Standard deviation of a reward around its arm's mean, above 0. By default it is taken from the problem.

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.2, 1.0], horizon=100, runs=500)
    >>> tuned, textbook = regrets.mean(axis=1)
    >>> bool(tuned < textbook)
    True
    """

    noise: Option[Noise] = FROM_PROBLEM

    name = "ucb1"
    parameters = (make_width_parameter(),)
    shortcuts: ClassVar[tuple[Shortcut, ...]] = (FIRST_PASSAGE, STREAKS)
    pulls_every_arm: ClassVar[bool] = True
    textbook_options: ClassVar[Mapping[str, Any]] = {"noise": 0.5}

    view = staticmethod(view_ucb1)
    start = staticmethod(start_totals)
    choose = staticmethod(choose_ucb1)
    update = staticmethod(update_ucb1)
    recall = staticmethod(recall_totals)
    resume = staticmethod(resume_ucb1)

    def __post_init__(self) -> None:
        if is_from_problem(self.noise):
            return
        noise = check_number("noise", self.noise, above=0, below=1e100, note=" for ucb1")
        object.__setattr__(self, "noise", noise)

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return 4 * arms

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        return (2 * self.noise * math.sqrt(2 * math.log(horizon)),)
