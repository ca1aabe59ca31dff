"""One step of a deployed policy as one compiled function, from the scalar code of the simulator."""

from __future__ import annotations

from banditune.core.policy import Setting
from banditune.core.scalar import Slot, scalar
from banditune.core.streams import Stream
from banditune.simulation.loop import clear_memory

view = Slot("view")


start = Slot("start")


split_floats = Slot("split_floats")


select_arm = Slot("select_arm")


update = Slot("update")


recall = Slot("recall")


resume = Slot("resume")


resolve_setting = Slot("resolve_setting")


CHOOSE, CHOOSE_WITH_PENDING, LEARN, RECALL, RESUME = 0, 1, 2, 3, 4
"""The actions of `run_agent_step`."""


PULLS_ROW, TOTALS_ROW, PENDING_ROW = 0, 1, 2
"""Rows of `facts`, with one number per arm."""


def run_agent_step(action, floats, imagined, features, options, params, draws, facts, horizon, step, arm, reward):
    """Run one action: choose an arm, update for a reward, write pulls and totals into `facts`, or rebuild the memory.

    `floats` are the memory and scratch arrays. `step` is that of a choice or a reward, `arm` that of a reward.
    CHOOSE_WITH_PENDING computes in `imagined` the memory in which pending pulls have rewards. If there is no reward yet,
    `reward` is their mean. All actions are in one function, because this compiles in a fraction of the time. `draws` are
    the key and the cursor of the agent's stream.
    """
    setting = resolve_setting(Setting(features.shape[1], features.shape[0], horizon, features, options))
    memory, scratch = split_floats(floats, setting)
    state = view(memory, setting)
    stream = Stream(int(draws[0]), int(draws[1]), draws[2:])
    if action in (RECALL, CHOOSE_WITH_PENDING):
        recall(state, setting, facts[PULLS_ROW], facts[TOTALS_ROW])
    if action == CHOOSE_WITH_PENDING:
        add_pending(facts, reward)
        clear_memory(imagined)
        memory, scratch = split_floats(imagined, setting)
        state = view(memory, setting)
    if action in (RESUME, CHOOSE_WITH_PENDING):
        start(state, setting)
        resume(state, setting, params, facts[PULLS_ROW], facts[TOTALS_ROW])
    if action == LEARN:
        update(state, setting, step, params, arm, reward, stream)
    if action in (CHOOSE, CHOOSE_WITH_PENDING):
        return float(select_arm(state, scratch, setting, step, params, stream))
    return 0.0


@scalar
def add_pending(facts, middle):
    """Count pending pulls with the mean reward of their arm, or of all arms if it has no rewards."""
    pulls = 0.0
    total = 0.0
    for arm in range(facts.shape[1]):
        pulls += facts[PULLS_ROW, arm]
        total += facts[TOTALS_ROW, arm]
    typical_mean = total / pulls if pulls > 0.0 else middle
    for arm in range(facts.shape[1]):
        if facts[PENDING_ROW, arm] > 0.0:
            before = facts[PULLS_ROW, arm]
            mean = facts[TOTALS_ROW, arm] / before if before > 0.0 else typical_mean
            facts[PULLS_ROW, arm] = before + facts[PENDING_ROW, arm]
            facts[TOTALS_ROW, arm] += facts[PENDING_ROW, arm] * mean
