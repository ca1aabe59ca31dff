"""Thompson sampling without sampling: an exact shortcut that skips the rounds in which nothing happens.

Put a threshold h between the leader (the arm with the highest posterior mean) and all rivals. While no rival draws above
h and the leader does not draw below it, the leader is pulled, whatever the draws are. So it is enough to know *when* one
of these rare events happens, and to draw in full only then.

Why it is exact. With shapes >= 1, so with a prior of gamma^2 or more, a Beta density f is log-concave. For a rival, with
h above its mode, f stays below its exponential tangent f(h) exp(g (x - h)), g = (log f)'(h) < 0, so P(draw > h) <= p =
f(h) / -g. Let the rival *propose* with probability p; a proposal is x = h + Exp / -g, accepted with probability f(x) /
(f(h) exp(g (x - h))). An accepted proposal then has exactly the law of the posterior above h, with exactly its mass;
otherwise the draw is below h. The leader proposes below h in the same way.

Proposals of all arms together are a Poisson process with rate -log(1 - p) each, one unit of time a round: a round
without points is one without proposals. On a clock that runs at the sum of the rates, the wait for the next point is a
standard exponential, and stays one when the rates change. Rivals' posteriors stand still meanwhile. The leader's moves
with each reward, but its rewards have addresses and can be read ahead: over the next rounds, up to a word, its p is at
most that of the present posterior plus all the failures to come (`bound_holds`), and a proposal is first thinned by the
ratio of the two.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.contracts import Floats, Integers, Slot, bulky, scalar
from banditune.streams import (
    LANES,
    NOWHERE,
    PSEUDO,
    aim,
    make_ready,
    ones,
    philox,
    quick_beta,
    ready_pair,
    stirling_series,
    unit,
)

reward = Slot("reward")
outcomes = Slot("outcomes")

FULL = -1.0
"""The rate of an arm that draws in full every round, because the tangent says too little about it."""

TINY = 1e-12
"""Thresholds closer to 0 are not used: a power of them could underflow."""


class Posterior(NamedTuple):
    """Beta shapes, proposal rates, limits and successes of every arm; words of outcomes; lists of arms that draw."""

    a: Floats
    b: Floats
    rate: Floats
    limit: Floats
    successes: Floats
    word: Integers
    number: Integers
    crowd: Integers
    marked: Integers
    broken: Integers


@scalar
def view_posterior(floats, integers, arms):
    """Strips of one number per arm."""
    return Posterior(
        floats[:arms],
        floats[arms : 2 * arms],
        floats[2 * arms : 3 * arms],
        floats[3 * arms : 4 * arms],
        floats[4 * arms : 5 * arms],
        integers[:arms],
        integers[arms : 2 * arms],
        integers[2 * arms : 3 * arms],
        integers[3 * arms : 4 * arms],
        integers[4 * arms : 4 * arms + 1],
    )


@scalar
def words_from_rewards(instance, arm, number, stream):
    """32 pseudo-rewards, a bit each, of rewards in [0, 1]; each has the address of its pull.

    A reward that is not finite makes it -1, even one that would not have been reached.
    """
    word = 0
    for lane in range(LANES):
        pull = LANES * number + lane
        aim(stream, arm, pull)
        paid = reward(instance, arm, pull, 0, stream)
        if not math.isfinite(paid):
            return -1
        w0, w1, _, _ = philox(0, pull, arm, int(stream.cursor[3]) + PSEUDO, stream.key0, stream.key1)
        if unit(w0, w1) < paid:
            word |= 1 << lane
    return word


@scalar
def outcomes_of(state, instance, arm, pull, rewards):
    """The outcomes of an arm's pulls from `pull` to the end of its word, the next one in the lowest bit."""
    if state.number[arm] != pull // LANES:
        aim(rewards, arm, 0)
        state.number[arm] = pull // LANES
        word = outcomes(instance, arm, pull // LANES, rewards)
        if word < 0:
            state.broken[0] = 1
        state.word[arm] = max(word, 0)
    return int(state.word[arm]) >> (pull % LANES)


@bulky
def density(a, b, x):
    """The density of Beta(a, b) at x, by Stirling's formula with its error.

    Shapes climb to 10, where the error's series is good to 1e-16, by f(x; a, b) = f(x; a + 1, b) a / ((a + b) x) and
    its mirror image.
    """
    above = 1.0
    below = x * (1.0 - x)
    while a < 10.0:
        above *= a
        below *= (a + b) * x
        a += 1.0
    while b < 10.0:
        above *= b
        below *= (a + b) * (1.0 - x)
        b += 1.0
    n = a + b
    # a log(x n / a) + b log((1 - x) n / b), without the cancellation of its two large terms.
    beyond = x * n - a
    main = a * (math.log1p(beyond / a) - beyond / a) + b * (math.log1p(-beyond / b) + beyond / b)
    error = stirling_series(n) - stirling_series(a) - stirling_series(b)
    return above / below * math.sqrt(a * b / (2.0 * math.pi * n)) * math.exp(min(main + error, 700.0))


@scalar
def tangent(a, b, x):
    """The slope of the log-density at x."""
    return (a - 1.0) / x - (b - 1.0) / (1.0 - x)


@scalar
def learn(state, setting, pulls, arm, sharpness):
    """Renew an arm's posterior from its pulls and successes."""
    state.a[arm] = (state.successes[arm] + setting.options[0]) * sharpness
    state.b[arm] = (pulls[arm] - state.successes[arm] + setting.options[1]) * sharpness


@scalar
def draw_above(a, b, x, agent):
    """A posterior draw if it is above x, else -1."""
    slope = tangent(a, b, x)
    if slope < 0.0:
        height = density(a, b, x)
        if height < -slope:
            if ready_pair(agent)[0] * -slope >= height:
                return -1.0
            return tail_draw(a, b, slope, x, agent)
    value = quick_beta(agent, a, b)
    return value if value > x else -1.0


@bulky
def tail_draw(a, b, slope, x, agent):
    """Accept or reject a proposal beyond x, on the side where the tangent falls; -1 if it is rejected.

    With g(v) = log(1 + v) - v, the log-density less its tangent is (a - 1) g(v) + (b - 1) g(w). For |v| < 1 the series
    g(v) = -v^2 / 2 + v^3 / 3 - ... lies below its first two terms, by at most v^4 / (4 (1 - |v|)): mostly that decides.
    """
    first, second = ready_pair(agent)
    value = x + math.log(first) / slope
    if value <= 0.0 or value >= 1.0:
        return -1.0
    v = (value - x) / x
    w = (x - value) / (1.0 - x)
    log_second = math.log(second)
    if abs(v) < 0.5 and abs(w) < 0.5:
        most = (a - 1.0) * (v / 3.0 - 0.5) * v * v + (b - 1.0) * (w / 3.0 - 0.5) * w * w
        if log_second >= most:
            return -1.0
        if log_second < most - 0.5 * ((a - 1.0) * (v * v) * (v * v) + (b - 1.0) * (w * w) * (w * w)):
            return value
    rise = (a - 1.0) * (math.log(value / x) - v) + (b - 1.0) * (math.log((1.0 - value) / (1.0 - x)) - w)
    return value if log_second < rise else -1.0


@scalar
def pull_arm(state, instance, setting, pulls, arm, rewards, sharpness):
    """Pull an arm once and learn."""
    pull = int(pulls[arm])
    state.successes[arm] += outcomes_of(state, instance, arm, pull, rewards) & 1
    pulls[arm] = pull + 1
    learn(state, setting, pulls, arm, sharpness)


@scalar
def mean_of(state, arm):
    """The posterior mean of an arm."""
    return state.a[arm] / (state.a[arm] + state.b[arm])


@scalar
def highest_mean(state):
    """The arm with the highest posterior mean; ties go to the lowest number."""
    leader = 0
    for arm in range(1, len(state.a)):
        if mean_of(state, arm) > mean_of(state, leader):
            leader = arm
    return leader


@scalar
def closest_mean(state, leader):
    """The rival with the highest posterior mean, and that mean; the leader itself and -1 where it has no rivals."""
    closest = leader
    highest = -1.0
    for arm in range(len(state.a)):
        if arm != leader and mean_of(state, arm) > highest:
            closest = arm
            highest = mean_of(state, arm)
    return closest, highest


@scalar
def stay(state, instance, setting, pulls, leader, rewards, left):
    """Pull the arm with the highest mean for as long as it has it, not beyond its word; returns how often.

    Its mean is lowest after all failures of the word and no success. Where it is the highest even then, the word is counted
    in one go.
    """
    rival, highest = closest_mean(state, leader)
    pull = int(pulls[leader])
    room = int(min(LANES - pull % LANES, left))
    word = outcomes_of(state, instance, leader, pull, rewards) & ((1 << room) - 1)
    lowest = state.a[leader] / (state.a[leader] + state.b[leader] + (room - ones(word)))
    taken = 0
    if lowest > highest * (1.0 + 1e-9):
        taken = room
        state.successes[leader] += ones(word)
    ahead = True
    while taken < room and ahead:
        state.successes[leader] += (word >> taken) & 1
        taken += 1
        pulls[leader] = pull + taken
        learn(state, setting, pulls, leader, 1.0)
        mean = mean_of(state, leader)
        ahead = mean > highest or (mean == highest and leader < rival)
    pulls[leader] = pull + taken
    learn(state, setting, pulls, leader, 1.0)
    return taken


@scalar
def spread(a, b):
    """The standard deviation of Beta(a, b)."""
    n = a + b
    return math.sqrt(a * b / (n + 1.0)) / n


@scalar
def set_thresholds(state, leader):
    """Choose h, between the leader and its closest rival in proportion to their standard deviations, and all limits.

    A rival that is far away gets a lower limit than h: then it need not be asked when the leader draws below h.
    """
    a = state.a[leader]
    b = state.b[leader]
    mean = a / (a + b)
    sd = spread(a, b)
    closest = 1e308
    for arm in range(len(state.a)):
        if arm != leader:
            centre = state.a[arm] / (state.a[arm] + state.b[arm])
            # Further down than midway (1.0): the leader's draws below h cost more than a rival's above it.
            state.limit[arm] = 1.6 * (mean - centre) / (sd + spread(state.a[arm], state.b[arm]))
            closest = min(closest, state.limit[arm])
    for arm in range(len(state.a)):
        state.limit[arm] = mean - min(max(closest, state.limit[arm]), closest + 4.0) * sd
    state.limit[leader] = mean - closest * sd


@scalar
def rate_of(chance):
    """The rate of a Poisson process that has a point in a unit of time with this chance."""
    return -math.log1p(-chance)


@scalar
def rival_rate(state, arm):
    """The rate at which a rival proposes above its limit; FULL where the tangent says too little."""
    a = state.a[arm]
    b = state.b[arm]
    x = state.limit[arm]
    n = a + b
    if x <= TINY or (x * n - a) * (x * n - a) * (n + 1.0) < 0.5 * a * b or x * n < a:
        # Within .7 standard deviations of the mean, or below it: not worth a closer look.
        return FULL
    slope = tangent(a, b, x)
    if slope >= 0.0:
        return FULL
    chance = density(a, b, x) / -slope
    return rate_of(chance) if chance < 0.3 else FULL


@scalar
def leader_chance(a, b, h):
    """The probability with which the leader proposes below h."""
    return density(a, b, h) / tangent(a, b, h)


@scalar
def bound_holds(a, b, h):
    """Whether `leader_chance` at h is highest, among posteriors with shapes >= a and <= b, at Beta(a, b) itself.

    The derivative of log f(h) is log h - E log(draw) in a, and log(1 - h) - E log(1 - draw) in b. By Jensen the latter is
    positive where h is below the mean a / n. E log(draw) = psi(a) - psi(n) > log(a / n) - 1/a, so the former is negative
    where h <= (a - 1) / n < (a / n) exp(-1 / a). The slope of the tangent grows in a and falls in b. If the condition
    holds at (a, b), it holds at every posterior between. The margin keeps rounding from turning the slope's sign.
    """
    return h > TINY and h * (a + b) * (1.0 + 1e-9) <= a - 1.0


@scalar
def advance_lazy(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Play Thompson sampling from step `first` to step `last`."""
    greedy = params[0] < 1e-9
    sharpness = 1.0 if greedy else 1.0 / (params[0] * params[0])
    state = view_posterior(floats, integers, setting.arms)
    agent = make_ready(agent, integers[4 * setting.arms + 1 : 4 * setting.arms + 5])
    if first == 0:
        state.broken[0] = 0
        for arm in range(setting.arms):
            state.successes[arm] = 0.0
            state.number[arm] = NOWHERE
            learn(state, setting, pulls, arm, sharpness)
    step = first
    while step < last and state.broken[0] == 0:
        leader = highest_mean(state)
        if greedy:
            step += stay(state, instance, setting, pulls, leader, rewards, last - step)
        else:
            step += phase(state, instance, setting, pulls, leader, agent, rewards, sharpness, last - step)
    return state.broken[0] == 0


@scalar
def phase(state, instance, setting, pulls, leader, agent, rewards, sharpness, left):
    """Play rounds with one leader and one set of thresholds for as long as they serve; returns how many were played."""
    set_thresholds(state, leader)
    h = state.limit[leader]
    for arm in range(setting.arms):
        if arm != leader:
            state.rate[arm] = rival_rate(state, arm)
    full = gather(state, leader)
    step = 0
    surprises = 0
    served = min(left, pulls[leader] / 3 + 16)
    until = -1
    chance = 1.0
    rates = 0.0
    wait = exponential_at(ready_pair(agent)[0])
    while step < served and surprises < 48:
        pull = int(pulls[leader])
        if pull >= until:
            until = pull + min(LANES - pull % LANES, 1 + pull // 8)
            chance = 1.0 if full > 0 else window_chance(state, instance, leader, pull, until, h, rewards, sharpness)
            state.rate[leader] = rate_of(chance) if chance < 0.4 else FULL
            rates = sum_of_rates(state)
        if full == 0 and state.rate[leader] != FULL:
            room = min(until - pull, left - step)
            quiet = quiet_rounds(wait, rates, room)
            word = outcomes_of(state, instance, leader, pull, rewards) & ((1 << quiet) - 1)
            state.successes[leader] += ones(word)
            pulls[leader] = pull + quiet
            learn(state, setting, pulls, leader, sharpness)
            step += quiet
            wait -= quiet * rates
            if quiet == room:
                continue
        marks = 0
        while wait < rates:
            first, second = ready_pair(agent)
            marks = mark_one(state, first * rates, marks)
            wait += exponential_at(second)
        wait -= rates
        winner = resolve(state, leader, h, chance, full, marks, agent)
        pull_arm(state, instance, setting, pulls, winner, rewards, sharpness)
        step += 1
        if winner != leader:
            surprises += 1
            before = state.rate[winner]
            state.rate[winner] = rival_rate(state, winner)
            if before != FULL or state.rate[winner] != FULL:
                rates = sum_of_rates(state)
                if before == FULL or state.rate[winner] == FULL:
                    full = gather(state, leader)
                    until = -1
    return step


@scalar
def exponential_at(chance):
    """The exponential that is exceeded with this chance."""
    return -math.log(chance)


@scalar
def quiet_rounds(wait, rates, room):
    """Whole rounds before the next proposal, at most `room`."""
    return int(min(wait / rates, room * 1.0))


@scalar
def gather(state, leader):
    """List the rivals that draw in full; returns how many they are."""
    full = 0
    for arm in range(len(state.rate)):
        if arm != leader and state.rate[arm] == FULL:
            state.crowd[full] = arm
            full += 1
    return full


@scalar
def sum_of_rates(state):
    """The rate of the proposals of all arms together; not quite 0, to divide by."""
    total = 1e-300
    for arm in range(len(state.rate)):
        total += max(state.rate[arm], 0.0)
    return total


@scalar
def window_chance(state, instance, leader, pull, until, h, rewards, sharpness):
    """A bound on the leader's chance to propose below h over its next pulls; 1 where there is none."""
    word = outcomes_of(state, instance, leader, pull, rewards) & ((1 << (until - pull)) - 1)
    a = state.a[leader]
    b = state.b[leader] + (until - pull - ones(word)) * sharpness
    return leader_chance(a, b, h) if bound_holds(a, b, h) else 1.0


@scalar
def mark_one(state, point, marks):
    """List the arm on whose share of the rates a point falls: it proposes in this round; returns the list's length."""
    found = 0
    for arm in range(len(state.rate)):
        if state.rate[arm] != FULL:
            found = arm
            if point < state.rate[arm]:
                break
            point -= state.rate[arm]
    for place in range(marks):
        if state.marked[place] == found:
            return marks
    state.marked[marks] = found
    return marks + 1


@scalar
def resolve(state, leader, h, chance, full, marks, agent):
    """The arm to pull in a round with draws.

    A rival without an accepted draw is known to be below its limit, and the leader without one to be above h.
    """
    own = leader_draw(state, leader, h, chance, marks, agent)
    best = leader
    highest = own
    for place in range(full):
        arm = int(state.crowd[place])
        value = quick_beta(agent, state.a[arm], state.b[arm])
        if value > highest:
            best = arm
            highest = value
    for place in range(marks):
        arm = int(state.marked[place])
        if arm != leader:
            slope = tangent(state.a[arm], state.b[arm], state.limit[arm])
            value = tail_draw(state.a[arm], state.b[arm], slope, state.limit[arm], agent)
            if value > highest:
                best = arm
                highest = value
    if own < 0.0:
        if highest <= h:
            return leader
        while own <= h:
            own = quick_beta(agent, state.a[leader], state.b[leader])
        return leader if own > highest else best
    if highest >= h:
        return best
    # No limit is above h. An accepted draw is above its arm's limit, so an arm whose limit is higher has none.
    for arm in range(len(state.limit)):
        if arm != leader and state.rate[arm] != FULL and state.limit[arm] > highest:
            value = draw_above(state.a[arm], state.b[arm], highest, agent)
            while value > state.limit[arm]:
                value = draw_above(state.a[arm], state.b[arm], highest, agent)
            if value > highest:
                best = arm
                highest = value
    return best


@scalar
def leader_draw(state, leader, h, chance, marks, agent):
    """The leader's draw, if it draws in full or below h; else -1."""
    a = state.a[leader]
    b = state.b[leader]
    if state.rate[leader] == FULL:
        return quick_beta(agent, a, b)
    for place in range(marks):
        if state.marked[place] == leader and ready_pair(agent)[0] * chance < leader_chance(a, b, h):
            return tail_draw(a, b, tangent(a, b, h), h, agent)
    return -1.0
