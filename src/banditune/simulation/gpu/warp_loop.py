"""The plain loop for a warp. Its lanes simulate one run together."""

from __future__ import annotations

import math

from numpy import int32

from banditune.core.scalar import Slot, scalar
from banditune.core.streams import seek
from banditune.simulation.loop import compute_regret, find_best_arm, resolve_setting, reward, start, update, view
from banditune.simulation.scratch_arrays import choose

get_lane = Slot("get_lane")


count_lanes = Slot("count_lanes")


sync_lanes = Slot("sync_lanes")


sum_over_lanes = Slot("sum_over_lanes")


shuffle_from_lane = Slot("shuffle_from_lane")


@scalar
def simulate_run_by_warp(
    instance, setting, params, agent, rewards, unseen, registers, shared, pulls, totals, at, realised, out
):
    """Simulate one run. Return False if the policy or the problem violated its contract.

    When an arm is pulled a second time in a row, the lanes draw the rewards of its next pulls, one each, as if the arm were
    pulled at the next steps.
    """
    setting = resolve_setting(setting)
    for arm in range(get_lane(), setting.arms, count_lanes()):
        pulls[arm] = 0
        totals[arm] = 0.0
    state = view(registers, shared, setting)
    start(state, setting)
    sync_lanes()
    best = find_best_arm(instance.means)
    unseen_total = 0.0
    unseen_count = at[0] - at[0]
    checkpoint = 0
    last = -1
    payoffs = 0.0
    position = 0
    payoff_count = 0
    for step in range(at[len(at) - 1]):
        arm = choose(state, setting, step, params, agent)
        if not (arm >= 0 and arm < setting.arms):
            return False
        pull = int(pulls[arm])
        if arm != last or position == payoff_count:
            offset = get_lane() if arm == last else 0
            payoff_count = count_lanes() if arm == last else 1
            seek(rewards, arm, pull + offset)
            payoffs = reward(instance, arm, pull + offset, step + offset, rewards)
            last = arm
            position = 0
        payoff = shuffle_from_lane(payoffs, int32(position))
        position += 1
        if not math.isfinite(payoff):
            return False
        sync_lanes()
        if get_lane() == 0:
            pulls[arm] = pull + 1
            totals[arm] += payoff
        sync_lanes()
        update(state, setting, step, params, arm, payoff, agent)
        if step + 1 == at[checkpoint]:
            if realised:
                unseen_pulls = step + 1 - pulls[best]
                unseen_total += sum_over_lanes(sum_unseen_rewards(instance, best, unseen_count, unseen_pulls, unseen))
                unseen_count = unseen_pulls
            regret = compute_regret(instance, best, pulls, totals, unseen_total, realised)
            if not math.isfinite(regret):
                return False
            if get_lane() == 0:
                out[checkpoint] = regret
            checkpoint += 1
    return True


@scalar
def sum_unseen_rewards(instance, best, first, last, unseen):
    """Sum this lane's share of the best arm's rewards at steps where another arm was pulled."""
    payoff_sum = 0.0
    for pull in range(first + get_lane(), last, count_lanes()):
        seek(unseen, best, pull)
        payoff_sum += reward(instance, best, pull, 0, unseen)
    return payoff_sum
