"""What practitioners compare with: greedy, epsilon-greedy, explore-then-commit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from banditune.contracts import Floats, Parameter, Policy, scalar
from banditune.policies.arms import (
    TotalsPolicy,
    best_mean,
    chance_parameter,
    random_arm,
    recall_totals,
    resume_totals,
    start_totals,
    update_totals,
)
from banditune.streams import uniform


@scalar
def choose_greedy(state, setting, step, params, stream):
    """Each arm once, then the highest mean."""
    return best_mean(state)


@dataclass(frozen=True)
class Greedy(TotalsPolicy):
    """Each arm once, then always the highest mean reward; nothing to tune."""

    name = "greedy"
    pending = "ignore"
    pulls_every_arm: ClassVar[bool] = True
    choose = staticmethod(choose_greedy)


@scalar
def choose_epsilon_greedy(state, setting, step, params, stream):
    """A random arm with probability epsilon, else the highest mean."""
    if uniform(stream) < params[0]:
        return random_arm(state, stream)
    return best_mean(state)


def epsilon_in_theory(arms: int, horizon: int) -> float:
    """(arms log(horizon) / horizon)^(1/3), the fixed rate that gives a regret of order horizon^(2/3)."""
    return min(1.0, math.pow(arms * math.log(horizon) / horizon, 1 / 3))


@dataclass(frozen=True)
class EpsilonGreedy(TotalsPolicy):
    """A random arm with probability epsilon, else the highest mean reward; arms never pulled come first."""

    name = "epsilon-greedy"
    pending = "ignore"
    parameters = (chance_parameter(epsilon_in_theory),)
    choose = staticmethod(choose_epsilon_greedy)


class Exploration(NamedTuple):
    """Pulls and totals, and the arm committed to (-1 before)."""

    pulls: Floats
    total: Floats
    committed: Floats


@scalar
def view_exploration(memory, setting):
    """Two strips of one float per arm, and one float."""
    arms = setting.arms
    return Exploration(memory[:arms], memory[arms : 2 * arms], memory[2 * arms : 2 * arms + 1])


@scalar
def start_exploration(state, setting):
    """Forget everything."""
    start_totals(state, setting)
    state.committed[0] = -1.0


@scalar
def choose_committed(state, setting, step, params, stream):
    """The arms in turn, `pulls` times each (rounded), then for good the highest mean of that time."""
    if step < int(params[0] + 0.5) * setting.arms:
        return step % setting.arms
    if state.committed[0] < 0.0:
        state.committed[0] = best_mean(state)
    return int(state.committed[0])


@scalar
def resume_exploration(state, setting, params, pulls, totals):
    """Know every arm's pulls and total reward; an arm with more than `pulls` pulls was committed to, if all have so many.

    Before that, an arm may have more because its rewards came early, or from elsewhere.
    """
    resume_totals(state, setting, params, pulls, totals)
    most = int(params[0] + 0.5) * 1.0
    least = pulls[0]
    for arm in range(setting.arms):
        least = min(least, pulls[arm])
    if least >= most:
        for arm in range(setting.arms):
            if pulls[arm] > most:
                state.committed[0] = arm
                most = pulls[arm]


def most_pulls(arms: int, horizon: int) -> float:
    """horizon / arms."""
    return horizon // arms


def pulls_in_theory(arms: int, horizon: int) -> float:
    """(horizon / arms)^(2/3) log(horizon)^(1/3) pulls an arm, for a regret of order horizon^(2/3)."""
    pulls = (horizon / arms) ** (2 / 3) * math.log(horizon) ** (1 / 3)
    return float(min(max(1, round(pulls)), horizon // arms))


@dataclass(frozen=True)
class ExploreThenCommit(Policy):
    """Every arm `pulls` times, then for good the arm with the highest mean reward."""

    name = "explore-then-commit"
    pending = "ignore"
    parameters = (Parameter("pulls", 1, most_pulls, theory=pulls_in_theory, integer=True, scale="log", least=1),)
    pulls_every_arm: ClassVar[bool] = True

    view = staticmethod(view_exploration)
    start = staticmethod(start_exploration)
    choose = staticmethod(choose_committed)
    update = staticmethod(update_totals)
    recall = staticmethod(recall_totals)
    resume = staticmethod(resume_exploration)

    def memory(self, arms: int, dims: int) -> int:
        return 2 * arms + 1
