"""One step of a policy at a time, as one compiled function: the same scalar code that the simulator plays."""

from __future__ import annotations

from banditune.contracts import Setting, Slot, scalar
from banditune.engine.loop import clear
from banditune.streams import Stream

view = Slot("view")
start = Slot("start")
choose = Slot("choose")
update = Slot("update")
recall = Slot("recall")
resume = Slot("resume")
known = Slot("known")

CHOOSE, CHOOSE_IMAGINED, LEARN, RECALL, RESUME = 0, 1, 2, 3, 4
"""What is to be done."""

PULLS, TOTALS, WAITING = 0, 1, 2
"""Rows of `facts`, a number per arm each."""


def act(what, memory, imagined, features, options, params, draws, facts, horizon, place, reward):
    """Choose an arm at step `place`, or learn a reward of arm `place`, or write pulls and totals into `facts`, or make the
    memory anew out of them.

    To choose by what is imagined, make `imagined` the memory if the pulls that wait had paid; `reward` is then what one is
    thought to pay while nothing is known. One function for all, in which each of the policy's stands once: it is compiled
    in a fraction of the time. `draws` holds the key and the cursor of the agent's stream.
    """
    setting = known(Setting(features.shape[1], features.shape[0], horizon, features, options))
    state = view(memory, setting)
    stream = Stream(int(draws[0]), int(draws[1]), draws[2:])
    if what in (RECALL, CHOOSE_IMAGINED):
        recall(state, setting, facts[PULLS], facts[TOTALS])
    if what == CHOOSE_IMAGINED:
        add_waiting(facts, reward)
        clear(imagined)
        state = view(imagined, setting)
    if what in (RESUME, CHOOSE_IMAGINED):
        start(state, setting)
        resume(state, setting, params, facts[PULLS], facts[TOTALS])
    if what == LEARN:
        update(state, setting, place, reward, stream)
    if what in (CHOOSE, CHOOSE_IMAGINED):
        return float(choose(state, setting, place, params, stream))
    return 0.0


@scalar
def add_waiting(facts, middle):
    """Count waiting pulls as if they had paid their arm's mean, or that of all arms where it has none."""
    pulls = 0.0
    total = 0.0
    for arm in range(facts.shape[1]):
        pulls += facts[PULLS, arm]
        total += facts[TOTALS, arm]
    usual = total / pulls if pulls > 0.0 else middle
    for arm in range(facts.shape[1]):
        if facts[WAITING, arm] > 0.0:
            before = facts[PULLS, arm]
            mean = facts[TOTALS, arm] / before if before > 0.0 else usual
            facts[PULLS, arm] = before + facts[WAITING, arm]
            facts[TOTALS, arm] += facts[WAITING, arm] * mean
