"""The plain loop for a warp, whose lanes play one run together."""

from __future__ import annotations

import math

from numpy import int32

from banditune.core.scalar import Slot, scalar
from banditune.core.streams import seek
from banditune.simulation.loop import compute_regret, find_best_arm, resolve_setting, reward, start, update, view
from banditune.simulation.scratch_arrays import choose

lane = Slot("lane")


members = Slot("members")


sync = Slot("sync")


total = Slot("total")


from_lane = Slot("from_lane")


@scalar
def play_warp(instance, setting, params, agent, rewards, unseen, held, common, pulls, totals, at, realised, out):
    """The plain loop for a team; False where the policy or the problem broke its promise.

    Once an arm is pulled a second time in a row, threads draw the rewards of the next pulls, one each, for the steps at
    which they come if the arm goes on being pulled.
    """
    setting = resolve_setting(setting)
    for arm in range(lane(), setting.arms, members()):
        pulls[arm] = 0
        totals[arm] = 0.0
    state = view(held, common, setting)
    start(state, setting)
    sync()
    best = find_best_arm(instance.means)
    unseen_total = 0.0
    unseen_count = at[0] - at[0]
    checkpoint = 0
    last = -1
    drawn = 0.0
    taken = 0
    ready = 0
    for step in range(at[len(at) - 1]):
        arm = choose(state, setting, step, params, agent)
        if not (arm >= 0 and arm < setting.arms):
            return False
        pull = int(pulls[arm])
        if arm != last or taken == ready:
            ahead = lane() if arm == last else 0
            ready = members() if arm == last else 1
            seek(rewards, arm, pull + ahead)
            drawn = reward(instance, arm, pull + ahead, step + ahead, rewards)
            last = arm
            taken = 0
        paid = from_lane(drawn, int32(taken))
        taken += 1
        if not math.isfinite(paid):
            return False
        sync()
        if lane() == 0:
            pulls[arm] = pull + 1
            totals[arm] += paid
        sync()
        update(state, setting, step, params, arm, paid, agent)
        if step + 1 == at[checkpoint]:
            if realised:
                elsewhere = step + 1 - pulls[best]
                unseen_total += total(sum_unseen_rewards(instance, best, unseen_count, elsewhere, unseen))
                unseen_count = elsewhere
            lost = compute_regret(instance, best, pulls, totals, unseen_total, realised)
            if not math.isfinite(lost):
                return False
            if lane() == 0:
                out[checkpoint] = lost
            checkpoint += 1
    return True


@scalar
def sum_unseen_rewards(instance, best, first, last, unseen):
    """This thread's share of the best arm's rewards on steps where it was not pulled."""
    missed = 0.0
    for pull in range(first + lane(), last, members()):
        seek(unseen, best, pull)
        missed += reward(instance, best, pull, 0, unseen)
    return missed
