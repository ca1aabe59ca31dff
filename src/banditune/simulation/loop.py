"""The loops that simulate a policy on an instance and compute its regret, step by step or by a shortcut."""

from __future__ import annotations

import math

from banditune.core.binomial_draws import count_ones
from banditune.core.policy import Setting
from banditune.core.problem import Instance
from banditune.core.scalar import Slot, noinline, scalar
from banditune.core.streams import AGENT_STREAM, MASK32, REWARD_STREAM, UNSEEN_STREAM, WORD_BITS, Stream, philox, seek

view = Slot("view")


start = Slot("start")


split_floats = Slot("split_floats")


select_arm = Slot("select_arm")


update = Slot("update")


reward = Slot("reward")


reward_word = Slot("reward_word")


dims = Slot("dims")


resolve_setting = Slot("resolve_setting")


advance = Slot("advance")


sum_reward_range = Slot("sum_reward_range")


simulate_run = Slot("simulate_run")


INVALID_ARM = 1.0


INVALID_REWARD = 2.0


UNLOCATED_INVALID_REWARD = 3.0


NAN_COMPARED = 4.0


@scalar
def find_best_arm(means):
    """Find the arm with the highest mean; ties go to the lowest number."""
    best = 0
    for arm in range(1, len(means)):
        if means[arm] > means[best]:
            best = arm
    return best


@scalar
def compute_regret(instance, best, pulls, totals, unseen_total, realised):
    """Compute the regret so far: Eq. (1) of the paper, or its expectation given the arms pulled.

    Realised regret is the sum of the best arm's rewards at the steps at which other arms were pulled, minus the rewards
    that were received there.
    """
    expected = 0.0
    payoffs = 0.0
    for arm in range(len(pulls)):
        if arm != best:
            expected += pulls[arm] * (instance.means[best] - instance.means[arm])
            payoffs += totals[arm]
    return unseen_total - payoffs if realised else expected


@scalar
def fix_dims(setting):
    """Replace the number of features by a constant of the kernel, so that short loops are unrolled."""
    return Setting(setting.arms, dims(), setting.horizon, setting.features, setting.options)


@scalar
def keep_runtime_dims(setting):
    """Return the setting unchanged, so that policies that read no features have one kernel for any number of them."""
    return setting


@noinline
def simulate_steps(instance, setting, params, agent, rewards, unseen, floats, integers, pulls, totals, at, realised, out,
                   trouble):  # fmt: skip
    """Simulate step by step. This is the plain loop, which supports every policy and is the reference for shortcuts.

    Returns False, with the step and the cause in `trouble`, if the policy or the problem violated its contract.
    """
    setting = resolve_setting(setting)
    memory, scratch = split_floats(floats, setting)
    state = view(memory, setting)
    start(state, setting)
    best = find_best_arm(instance.means)
    unseen_total = 0.0
    unseen_count = at[0] - at[0]  # a zero that is not a literal: Numba would compile `reward` again for one
    checkpoint = 0
    for step in range(at[len(at) - 1]):
        choice = select_arm(state, scratch, setting, step, params, agent)
        if not (choice >= 0 and choice < setting.arms and choice == math.floor(choice)):
            trouble[0], trouble[1], trouble[2] = INVALID_ARM, step, choice
            return False
        arm = int(choice)
        pull = int(pulls[arm])
        seek(rewards, arm, pull)
        payoff = reward(instance, arm, pull, step, rewards)
        if not math.isfinite(payoff):
            trouble[0], trouble[1], trouble[2] = INVALID_REWARD, step, arm
            return False
        pulls[arm] += 1
        totals[arm] += payoff
        if realised and arm != best:
            seek(unseen, best, unseen_count)
            unseen_payoff = reward(instance, best, unseen_count, step, unseen)
            if not math.isfinite(unseen_payoff):
                trouble[0], trouble[1], trouble[2] = INVALID_REWARD, step, best
                return False
            unseen_total += unseen_payoff
            unseen_count += 1
        update(state, setting, step, params, arm, payoff, agent)
        if step + 1 == at[checkpoint]:
            out[checkpoint] = compute_regret(instance, best, pulls, totals, unseen_total, realised)
            checkpoint += 1
    return True


@noinline
def simulate_by_shortcut(instance, setting, params, agent, rewards, unseen, floats, integers, pulls, totals, at,
                         realised, out, trouble):  # fmt: skip
    """Simulate by a shortcut from checkpoint to checkpoint. Rewards are summed afterwards, from their addresses."""
    setting = resolve_setting(setting)
    best = find_best_arm(instance.means)
    unseen_total = 0.0
    # Zeros that are not literals: Numba would compile the called functions again for literals.
    step = at[0] - at[0]
    unseen_count = step
    counted = integers[: setting.arms]
    for arm in range(setting.arms):
        counted[arm] = 0
    for checkpoint in range(len(at)):
        checkpoint_step = at[checkpoint]
        if not advance(
            instance, setting, params, agent, rewards, floats, integers[setting.arms :], pulls, step, checkpoint_step
        ):
            trouble[0] = UNLOCATED_INVALID_REWARD
            return False
        step = checkpoint_step
        if realised:
            unseen_pulls = step - pulls[best]
            unseen_total = sum_reward_range(instance, best, unseen_count, unseen_pulls, unseen, unseen_total)
            unseen_count = unseen_pulls
            for arm in range(setting.arms):
                if arm != best:
                    totals[arm] = sum_reward_range(instance, arm, counted[arm], pulls[arm], rewards, totals[arm])
                    counted[arm] = pulls[arm]
        out[checkpoint] = compute_regret(instance, best, pulls, totals, unseen_total, realised)
        if not math.isfinite(out[checkpoint]):
            trouble[0] = UNLOCATED_INVALID_REWARD
            return False
    return True


@scalar
def sum_rewards(instance, arm, first, last, stream, total):
    """Add the rewards of pulls first .. last - 1 of an arm, one by one and in order."""
    for pull in range(first, last):
        seek(stream, arm, pull)
        total += reward(instance, arm, pull, 0, stream)
    return total


@scalar
def sum_bit_packed_rewards(instance, arm, first, last, stream, total):
    """Add the rewards of pulls first .. last - 1 of an arm with 0/1 rewards, 32 at a time."""
    seek(stream, arm, 0)
    pull = int(first)
    while pull < last:
        lane = pull % WORD_BITS
        count = min(WORD_BITS - lane, int(last) - pull)
        word = reward_word(instance, arm, pull // WORD_BITS, stream)
        total += count_ones((word >> lane) & ((1 << count) - 1))
        pull += count
    return total


@scalar
def reset_cursors(cursors, noise):
    """Set the streams of agent, rewards and unseen rewards to their first positions."""
    for cursor in range(3):
        for word in range(3):
            cursors[cursor, word] = 0
    cursors[0, 3] = AGENT_STREAM + noise
    cursors[1, 3] = REWARD_STREAM + noise
    cursors[2, 3] = UNSEEN_STREAM + noise


@scalar
def compute_instance_key(seed, run):
    """Compute the Philox key of an instance: Philox applied to (seed, run)."""
    key0, key1, _, _ = philox(run & MASK32, run >> 32, 0, 0, seed & MASK32, seed >> 32)
    return key0, key1


@scalar
def clear_memory(memory):
    """Set all numbers to 0, so that no run depends on the previous one."""
    for position in range(len(memory)):
        memory[position] = 0


@scalar
def start_state(memory, setting):
    """Make a policy's state before the first step."""
    setting = resolve_setting(setting)
    state = view(memory, setting)
    start(state, setting)
    return state


@scalar
def view_unstarted_state(memory, setting):
    """Make a policy's state before `start`."""
    return view(memory, resolve_setting(setting))


def simulate_block(means, features, seed, first_run, options, params, policy_options, horizon, first_noise, at, realised,
                   floats, integers, pulls, totals, cursors, out, trouble, stop):  # fmt: skip
    """The kernel: every parameter row on every instance of a block. `out` is (params, instances, checkpoints).

    Row i has the noise stream `first_noise` + i. If `first_noise` is 0, all rows have the same one.
    """
    arms = means.shape[1]
    for run in range(means.shape[0]):
        setting = Setting(
            arms, features.shape[1], horizon, features[run if features.shape[0] > 1 else 0], policy_options
        )
        instance = Instance(means[run], options)
        key0, key1 = compute_instance_key(seed, first_run + run)
        agent = Stream(key0, key1, cursors[0])
        rewards = Stream(key0, key1, cursors[1])
        unseen = Stream(key0, key1, cursors[2])
        for row in range(params.shape[0]):
            if stop[0] != 0:
                return
            noise = (first_noise + row) * 256 if first_noise > 0 else 0
            reset_cursors(cursors, noise)
            clear_memory(floats)
            clear_memory(integers)
            for arm in range(arms):
                pulls[arm] = 0
                totals[arm] = 0.0
            trouble[3] = row
            trouble[4] = run
            succeeded = simulate_run(instance, setting, params[row], agent, rewards, unseen, floats, integers, pulls,
                                     totals, at, realised, out[row, run], trouble)  # fmt: skip
            if not succeeded:
                return
