"""The loops: a policy meets an instance, and the regret is counted.

Both loops end in the same formula on the same counts, so a shortcut that pulls the same arms returns the same number,
to the last bit.
"""

from __future__ import annotations

import math

from numpy import int32

from banditune.contracts import Instance, Setting, Slot, rare, scalar
from banditune.streams import AGENT, LANES, LOW32, REWARDS, UNSEEN, Stream, aim, ones, philox

view = Slot("view")
start = Slot("start")
choose = Slot("choose")
update = Slot("update")
reward = Slot("reward")
words = Slot("words")
dims = Slot("dims")
known = Slot("known")
advance = Slot("advance")
reward_sum = Slot("reward_sum")
play = Slot("play")
lane = Slot("lane")
members = Slot("members")
sync = Slot("sync")
total = Slot("total")
from_lane = Slot("from_lane")

BAD_ARM = 1.0
BAD_REWARD = 2.0
BAD_REWARD_SOMEWHERE = 3.0
NOT_ORDERED = 4.0


@scalar
def best_arm(means):
    """The arm with the highest mean; ties go to the lowest number."""
    best = 0
    for arm in range(1, len(means)):
        if means[arm] > means[best]:
            best = arm
    return best


@scalar
def regret(instance, best, pulls, totals, unseen_total, realised):
    """Regret so far, Eq. (1) of the paper or its expectation given the arms pulled.

    Realised: what the best arm would have paid on the steps where it was not pulled, less what was paid on them.
    """
    expected = 0.0
    paid = 0.0
    for arm in range(len(pulls)):
        if arm != best:
            expected += pulls[arm] * (instance.means[best] - instance.means[arm])
            paid += totals[arm]
    return unseen_total - paid if realised else expected


@scalar
def with_dims(setting):
    """The setting with its number of features as a constant of the kernel, so that short loops over it are unrolled."""
    return Setting(setting.arms, dims(), setting.horizon, setting.features, setting.options)


@scalar
def with_runtime_dims(setting):
    """The setting as it is: one kernel for problems with any number of features, for policies that do not look at them."""
    return setting


@rare
def play_steps(instance, setting, params, agent, rewards, unseen, floats, integers, pulls, totals, at, realised, out,
               trouble):  # fmt: skip
    """Play step by step: the plain loop that every policy can have, and that every shortcut must agree with.

    Returns False, with the step and the culprit in `trouble`, where the policy or the problem broke its promise.
    """
    setting = known(setting)
    state = view(floats, setting)
    start(state, setting)
    best = best_arm(instance.means)
    unseen_total = 0.0
    unseen_count = at[0] - at[0]  # a zero that is no literal: Numba would compile `reward` once more for that
    checkpoint = 0
    for step in range(at[len(at) - 1]):
        chosen = choose(state, setting, step, params, agent)
        if not (chosen >= 0 and chosen < setting.arms and chosen == math.floor(chosen)):
            trouble[0], trouble[1], trouble[2] = BAD_ARM, step, chosen
            return False
        arm = int(chosen)
        pull = int(pulls[arm])
        aim(rewards, arm, pull)
        paid = reward(instance, arm, pull, step, rewards)
        if not math.isfinite(paid):
            trouble[0], trouble[1], trouble[2] = BAD_REWARD, step, arm
            return False
        pulls[arm] += 1
        totals[arm] += paid
        if realised and arm != best:
            aim(unseen, best, unseen_count)
            missed = reward(instance, best, unseen_count, step, unseen)
            if not math.isfinite(missed):
                trouble[0], trouble[1], trouble[2] = BAD_REWARD, step, best
                return False
            unseen_total += missed
            unseen_count += 1
        update(state, setting, arm, paid, agent)
        if step + 1 == at[checkpoint]:
            out[checkpoint] = regret(instance, best, pulls, totals, unseen_total, realised)
            checkpoint += 1
    return True


@rare
def play_leaps(instance, setting, params, agent, rewards, unseen, floats, integers, pulls, totals, at, realised, out,
               trouble):  # fmt: skip
    """Play a shortcut from checkpoint to checkpoint; rewards are summed afterwards, from their addresses."""
    setting = known(setting)
    best = best_arm(instance.means)
    unseen_total = 0.0
    # Zeros that are no literals: with a literal, Numba would compile what they are passed to once more.
    step = at[0] - at[0]
    unseen_count = step
    counted = integers[: setting.arms]
    for arm in range(setting.arms):
        counted[arm] = 0
    for checkpoint in range(len(at)):
        to = at[checkpoint]
        if not advance(instance, setting, params, agent, rewards, floats, integers[setting.arms :], pulls, step, to):
            trouble[0] = BAD_REWARD_SOMEWHERE
            return False
        step = to
        if realised:
            elsewhere = step - pulls[best]
            unseen_total = reward_sum(instance, best, unseen_count, elsewhere, unseen, unseen_total)
            unseen_count = elsewhere
            for arm in range(setting.arms):
                if arm != best:
                    totals[arm] = reward_sum(instance, arm, counted[arm], pulls[arm], rewards, totals[arm])
                    counted[arm] = pulls[arm]
        out[checkpoint] = regret(instance, best, pulls, totals, unseen_total, realised)
        if not math.isfinite(out[checkpoint]):
            trouble[0] = BAD_REWARD_SOMEWHERE
            return False
    return True


@scalar
def play_together(instance, setting, params, agent, rewards, unseen, held, common, pulls, totals, at, realised, out):
    """The plain loop for a team; False where the policy or the problem broke its promise.

    Once an arm is pulled a second time in a row, threads draw the rewards of the next pulls, one each, for the steps at
    which they come if the arm goes on being pulled.
    """
    setting = known(setting)
    for arm in range(lane(), setting.arms, members()):
        pulls[arm] = 0
        totals[arm] = 0.0
    state = view(held, common, setting)
    start(state, setting)
    sync()
    best = best_arm(instance.means)
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
            aim(rewards, arm, pull + ahead)
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
        update(state, setting, arm, paid, agent)
        if step + 1 == at[checkpoint]:
            if realised:
                elsewhere = step + 1 - pulls[best]
                unseen_total += total(unseen_rewards(instance, best, unseen_count, elsewhere, unseen))
                unseen_count = elsewhere
            lost = regret(instance, best, pulls, totals, unseen_total, realised)
            if not math.isfinite(lost):
                return False
            if lane() == 0:
                out[checkpoint] = lost
            checkpoint += 1
    return True


@scalar
def unseen_rewards(instance, best, first, last, unseen):
    """This thread's share of the best arm's rewards on steps where it was not pulled."""
    missed = 0.0
    for pull in range(first + lane(), last, members()):
        aim(unseen, best, pull)
        missed += reward(instance, best, pull, 0, unseen)
    return missed


@scalar
def sum_of_rewards(instance, arm, first, last, stream, total):
    """Add the rewards of pulls first .. last - 1 of an arm, one by one and in order."""
    for pull in range(first, last):
        aim(stream, arm, pull)
        total += reward(instance, arm, pull, 0, stream)
    return total


@scalar
def sum_of_words(instance, arm, first, last, stream, total):
    """The same for 0/1 rewards, 32 at a time."""
    aim(stream, arm, 0)
    pull = int(first)
    while pull < last:
        lane = pull % LANES
        taken = min(LANES - lane, int(last) - pull)
        word = words(instance, arm, pull // LANES, stream)
        total += ones((word >> lane) & ((1 << taken) - 1))
        pull += taken
    return total


@scalar
def aim_all(cursors, noise):
    """Point the streams of agent, rewards and unseen rewards at their beginnings."""
    for cursor in range(3):
        for word in range(3):
            cursors[cursor, word] = 0
    cursors[0, 3] = AGENT + noise
    cursors[1, 3] = REWARDS + noise
    cursors[2, 3] = UNSEEN + noise


@scalar
def instance_key(seed, run):
    """The Philox key of an instance: the generator itself, applied to (seed, run)."""
    key0, key1, _, _ = philox(run & LOW32, run >> 32, 0, 0, seed & LOW32, seed >> 32)
    return key0, key1


@scalar
def clear(memory):
    """Set all numbers to 0, so that no run sees what another one left."""
    for place in range(len(memory)):
        memory[place] = 0


@scalar
def begun(memory, setting):
    """A policy's state before the first step."""
    setting = known(setting)
    state = view(memory, setting)
    start(state, setting)
    return state


@scalar
def not_begun(memory, setting):
    """The same before `start`."""
    return view(memory, known(setting))


def play_block(means, features, seed, first_run, options, params, policy_options, horizon, first_noise, at, realised,
               floats, integers, pulls, totals, cursors, out, trouble, stop):  # fmt: skip
    """The kernel: every parameter row on every instance of a block. `out` is (params, instances, checkpoints).

    Row i has the noise `first_noise` + i; with a `first_noise` of 0 all rows share theirs.
    """
    arms = means.shape[1]
    for run in range(means.shape[0]):
        setting = Setting(
            arms, features.shape[1], horizon, features[run if features.shape[0] > 1 else 0], policy_options
        )
        instance = Instance(means[run], options)
        key0, key1 = instance_key(seed, first_run + run)
        agent = Stream(key0, key1, cursors[0])
        rewards = Stream(key0, key1, cursors[1])
        unseen = Stream(key0, key1, cursors[2])
        for row in range(params.shape[0]):
            if stop[0] != 0:
                return
            noise = (first_noise + row) * 256 if first_noise > 0 else 0
            aim_all(cursors, noise)
            clear(floats)
            clear(integers)
            for arm in range(arms):
                pulls[arm] = 0
                totals[arm] = 0.0
            trouble[3] = row
            trouble[4] = run
            fine = play(instance, setting, params[row], agent, rewards, unseen, floats, integers, pulls, totals, at,
                        realised, out[row, run], trouble)  # fmt: skip
            if not fine:
                return
