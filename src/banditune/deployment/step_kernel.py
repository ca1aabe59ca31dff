"""One step of a policy at a time, as one compiled function: the same scalar code that the simulator plays."""

from __future__ import annotations

from banditune.core.policy import Setting
from banditune.core.scalar import Slot, scalar
from banditune.core.streams import Stream
from banditune.simulation.loop import clear_memory

view = Slot("view")


start = Slot("start")


choose = Slot("choose")


update = Slot("update")


recall = Slot("recall")


resume = Slot("resume")


resolve_setting = Slot("known")


CHOOSE, CHOOSE_WITH_PENDING, LEARN, RECALL, RESUME = 0, 1, 2, 3, 4
"""What is to be done."""


PULLS_ROW, TOTALS_ROW, PENDING_ROW = 0, 1, 2
"""Rows of `facts`, a number per arm each."""


def run_agent_step(what, memory, imagined, features, options, params, draws, facts, horizon, place, reward):
    """Choose an arm at step `place`, or learn a reward of arm `place`, or write pulls and totals into `facts`, or make the
    memory anew out of them.

    To choose by what is imagined, make `imagined` the memory if the pulls that wait had paid; `reward` is then what one is
    thought to pay while nothing is known. One function for all, in which each of the policy's stands once: it is compiled
    in a fraction of the time. `draws` holds the key and the cursor of the agent's stream.
    """
    setting = resolve_setting(Setting(features.shape[1], features.shape[0], horizon, features, options))
    state = view(memory, setting)
    stream = Stream(int(draws[0]), int(draws[1]), draws[2:])
    if what in (RECALL, CHOOSE_WITH_PENDING):
        recall(state, setting, facts[PULLS_ROW], facts[TOTALS_ROW])
    if what == CHOOSE_WITH_PENDING:
        add_pending(facts, reward)
        clear_memory(imagined)
        state = view(imagined, setting)
    if what in (RESUME, CHOOSE_WITH_PENDING):
        start(state, setting)
        resume(state, setting, params, facts[PULLS_ROW], facts[TOTALS_ROW])
    if what == LEARN:
        update(state, setting, place, reward, stream)
    if what in (CHOOSE, CHOOSE_WITH_PENDING):
        return float(choose(state, setting, place, params, stream))
    return 0.0


@scalar
def add_pending(facts, middle):
    """Count waiting pulls as if they had paid their arm's mean, or that of all arms where it has none."""
    pulls = 0.0
    total = 0.0
    for arm in range(facts.shape[1]):
        pulls += facts[PULLS_ROW, arm]
        total += facts[TOTALS_ROW, arm]
    usual = total / pulls if pulls > 0.0 else middle
    for arm in range(facts.shape[1]):
        if facts[PENDING_ROW, arm] > 0.0:
            before = facts[PULLS_ROW, arm]
            mean = facts[TOTALS_ROW, arm] / before if before > 0.0 else usual
            facts[PULLS_ROW, arm] = before + facts[PENDING_ROW, arm]
            facts[TOTALS_ROW, arm] += facts[PENDING_ROW, arm] * mean
