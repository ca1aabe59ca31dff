"""A policy with memory of its own, and an exact shortcut: copy this file, change it, and run it.

    python policy_with_shortcut.py

The policy pulls every arm a few times, then the best one for good. So the shortcut needs no rewards after that.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import banditune as bt


class State(NamedTuple):
    """The parts of the memory: arrays over arms, and one number."""

    pulls: Any
    total: Any
    committed: Any


@bt.kernel.scalar
def view(memory, setting):
    """Name the parts of the memory, which holds `ExploreFirst.memory` floats."""
    arms = setting.arms
    return State(memory[:arms], memory[arms : 2 * arms], memory[2 * arms :])


@bt.kernel.scalar
def start(state, setting):
    """Give every number of the memory a value."""
    for arm in range(setting.arms):
        state.pulls[arm] = 0.0
        state.total[arm] = 0.0
    state.committed[0] = -1.0


@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    """Choose arms in turn, then commit to the one with the highest mean reward."""
    if step < int(params[0] + 0.5) * setting.arms:
        return step % setting.arms
    if state.committed[0] < 0.0:
        state.committed[0] = bt.kernel.argmax_mean(state)
    return int(state.committed[0])


@bt.kernel.scalar
def update(state, setting, step, params, arm, reward, stream):
    """Learn a reward."""
    state.pulls[arm] += 1.0
    state.total[arm] += reward


draw_reward = bt.kernel.Slot("reward")


@bt.kernel.scalar
def advance(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Fill `pulls` from step `first` to step `last`. Rewards are read by their addresses, the steps in turn only."""
    arms = setting.arms
    count = int(params[0] + 0.5)
    for step in range(first, min(count * arms, last)):
        arm = step % arms
        pull = int(pulls[arm])
        bt.kernel.seek(rewards, arm, pull)
        floats[arm] += draw_reward(instance, arm, pull, 0, rewards)
        pulls[arm] = pull + 1
    if last > count * arms:
        best = 0
        for arm in range(1, arms):
            if floats[arm] / count > floats[best] / count:
                best = arm
        pulls[best] += last - max(first, count * arms)
    return True


SKIP_COMMITTED = bt.kernel.Shortcut(
    name="skip-committed",
    advance=advance,
    replaces=(view, start, choose, update),
    memory=lambda arms, dims, horizon: (arms, 0),  # floats and integers of the shortcut
    is_valid=lambda options, row: row[0] >= 0.5,  # without a pull there is no best arm
    is_bitwise_exact=True,
)


def limit_pulls(arms: int, horizon: int) -> float:
    """All steps, shared by the arms."""
    return max(2, horizon // arms)


@dataclass(frozen=True)
class ExploreFirst(bt.kernel.Policy):
    """Every arm `pulls` times, then for good the arm with the highest mean reward."""

    name = "explore-first"
    parameters = (bt.Parameter("pulls", 1, limit_pulls, textbook=2, integer=True, scale="log", lower_limit=1),)
    pulls_every_arm = True
    shortcuts = (SKIP_COMMITTED,)

    view = staticmethod(view)
    start = staticmethod(start)
    choose = staticmethod(choose)
    update = staticmethod(update)

    def memory(self, arms, dims, horizon):
        return 2 * arms + 1


def main() -> None:
    problem = bt.Bernoulli(arms=5)
    print(bt.testing.check_policy(ExploreFirst(), problem))
    print(bt.tune(ExploreFirst(), problem, horizon=10_000, budget=1000))


if __name__ == "__main__":
    main()
