"""Thompson sampling without sampling: an exact shortcut that skips the rounds in which nothing happens.

Put a threshold h between the leader (the arm with the highest posterior mean) and all rivals. While no rival draws above
h and the leader does not draw below it, the leader is pulled, whatever the draws are. So it is enough to know *when* one
of these rare events happens, and to draw in full only then.

Why it is exact. With shapes >= 1 a Beta density f is log-concave. For a rival, with h above its mode, f stays below its
exponential tangent f(h) exp(g (x - h)), g = (log f)'(h) < 0, so P(draw > h) <= p = f(h) / -g. Let the rival *propose*
with probability p; a proposal is x = h + Exp / -g, accepted with probability f(x) / (f(h) exp(g (x - h))). An accepted
proposal then has exactly the law of the posterior above h, with exactly its mass; otherwise the draw is below h. The
leader proposes below h in the same way.

Proposals of all arms together are a Poisson process with rate -log(1 - p) each, one unit of time a round: a round without
points is one without proposals, and the gap to the next point is one exponential draw. Rivals' posteriors stand still
meanwhile. The leader's moves with each reward, but its rewards have addresses and can be read ahead: over the next
rounds, up to a word, its p is at most that of the present posterior plus all the failures to come (`bound_holds`), and a
proposal is first thinned by the ratio of the two.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from banditune.contracts import Floats, Integers, Play, Slot, scalar
from banditune.streams import LANES, PSEUDO, aim, beta, exponential, ones, philox, stirling, uniform, uniform_pair, unit

reward = Slot("reward")
outcomes = Slot("outcomes")

FULL = -1.0
"""The rate of an arm that draws in full every round, because the tangent says too little about it."""


STALE = 1e308


class Posterior(NamedTuple):
    """Beta shapes of every arm with the constant of its log-density; proposal rates; marks; words of outcomes."""

    a: Floats
    b: Floats
    constant: Floats
    rate: Floats
    mark: Floats
    drawn: Floats
    limit: Floats
    successes: Floats
    word: Integers
    number: Integers


@scalar
def view_posterior(floats, integers, arms):
    """Strips of one number per arm."""
    return Posterior(
        floats[:arms],
        floats[arms : 2 * arms],
        floats[2 * arms : 3 * arms],
        floats[3 * arms : 4 * arms],
        floats[4 * arms : 5 * arms],
        floats[5 * arms : 6 * arms],
        floats[6 * arms : 7 * arms],
        floats[7 * arms : 8 * arms],
        integers[:arms],
        integers[arms : 2 * arms],
    )


@scalar
def words_from_rewards(instance, arm, number, stream):
    """32 pseudo-rewards, a bit each, of rewards in [0, 1]; each has the address of its pull."""
    word = 0
    for lane in range(LANES):
        pull = LANES * number + lane
        aim(stream, arm, pull)
        paid = reward(instance, arm, pull, 0, stream)
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
        state.word[arm] = outcomes(instance, arm, pull // LANES, rewards)
    return int(state.word[arm]) >> (pull % LANES)


@scalar
def constant_of(a, b):
    """The part of the log-density of Beta(a, b) that does not depend on x, by Stirling's formula with its error."""
    n = a + b
    main = (a - 0.5) * math.log(n / a) + (b - 0.5) * math.log(n / b) + 0.5 * math.log(n / (2.0 * math.pi))
    return main + stirling(n) - stirling(a) - stirling(b)


@scalar
def density(a, b, constant, x):
    """The density of Beta(a, b) at x."""
    return math.exp(min((a - 1.0) * math.log(x) + (b - 1.0) * math.log(1.0 - x) + constant, 700.0))


@scalar
def tangent(a, b, x):
    """The slope of the log-density at x."""
    return (a - 1.0) / x - (b - 1.0) / (1.0 - x)


@scalar
def learn(state, setting, pulls, arm, gamma):
    """Renew an arm's posterior from its pulls and successes."""
    a = (state.successes[arm] + setting.options[0]) / (gamma * gamma)
    b = (pulls[arm] - state.successes[arm] + setting.options[1]) / (gamma * gamma)
    state.a[arm] = a
    state.b[arm] = b
    state.constant[arm] = STALE


@scalar
def draw_above(state, arm, x, agent):
    """The arm's posterior draw if it is above x, else -1."""
    a = state.a[arm]
    b = state.b[arm]
    slope = tangent(a, b, x)
    if slope < 0.0:
        if state.constant[arm] == STALE:
            state.constant[arm] = constant_of(a, b)
        height = density(a, b, state.constant[arm], x)
        if height < -slope:
            if uniform(agent) * -slope >= height:
                return -1.0
            return tail_draw(a, b, slope, x, agent)
    value = beta(agent, a, b)
    return value if value > x else -1.0


@scalar
def tail_draw(a, b, slope, x, agent):
    """Accept or reject a proposal beyond x, on the side where the tangent falls; -1 if it is rejected."""
    first, second = uniform_pair(agent)
    value = x + math.log(first) / slope
    if value <= 0.0 or value >= 1.0:
        return -1.0
    # log f falls below its tangent by at most half its curvature times the distance squared, and exp(-z) > 1 - z.
    near = 1.0 - max(x, value)
    far = min(x, value)
    curvature = (a - 1.0) / (far * far) + (b - 1.0) / (near * near)
    if second < 1.0 - 0.5 * curvature * (value - x) * (value - x):
        return value
    # log f(value) - log f(x) without the constant.
    rise = (a - 1.0) * math.log(value / x) + (b - 1.0) * math.log((1.0 - value) / (1.0 - x))
    if math.log(second) < rise - slope * (value - x):
        return value
    return -1.0


@scalar
def pull_arm(state, instance, setting, pulls, arm, rewards, gamma):
    """Pull an arm once and learn."""
    pull = int(pulls[arm])
    state.successes[arm] += outcomes_of(state, instance, arm, pull, rewards) & 1
    pulls[arm] = pull + 1
    learn(state, setting, pulls, arm, gamma)


@scalar
def highest_mean(state):
    """The arm with the highest posterior mean; ties go to the lowest number."""
    leader = 0
    for arm in range(1, len(state.a)):
        if state.a[arm] * (state.a[leader] + state.b[leader]) > state.a[leader] * (state.a[arm] + state.b[arm]):
            leader = arm
    return leader


@scalar
def spread(a, b):
    """The standard deviation of Beta(a, b)."""
    n = a + b
    return math.sqrt(a * b / (n + 1.0)) / n


@scalar
def set_thresholds(state, leader):
    """Choose h, as many standard deviations below the leader as above its closest rival, and everybody's limit.

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
            # A third further down than midway: the leader's draws below h cost more than a rival's above it.
            state.limit[arm] = 1.35 * (mean - centre) / (sd + spread(state.a[arm], state.b[arm]))
            closest = min(closest, state.limit[arm])
    for arm in range(len(state.a)):
        state.limit[arm] = mean - min(max(closest, state.limit[arm]), closest + 4.0) * sd
    state.limit[leader] = mean - closest * sd


@scalar
def rival_rate(state, arm):
    """The rate at which a rival proposes above its limit; FULL where the tangent says too little."""
    a = state.a[arm]
    b = state.b[arm]
    x = state.limit[arm]
    n = a + b
    if x <= 0.0 or (x * n - a) * (x * n - a) * (n + 1.0) < 0.5 * a * b or x * n < a:
        # Within .7 standard deviations of the mean, or below it: not worth a closer look.
        return FULL
    slope = tangent(a, b, x)
    if slope >= 0.0:
        return FULL
    if state.constant[arm] == STALE:
        state.constant[arm] = constant_of(a, b)
    chance = density(a, b, state.constant[arm], x) / -slope
    return -math.log1p(-chance) if chance < 0.4 else FULL


@scalar
def leader_chance(a, b, h):
    """The probability with which the leader proposes below h."""
    return density(a, b, constant_of(a, b), h) / tangent(a, b, h)


@scalar
def bound_holds(a, b, h):
    """Whether `leader_chance` at h is highest, among posteriors with shapes >= a and <= b, at Beta(a, b) itself.

    The derivative of log f(h) is log h - E log(draw) in a, and log(1 - h) - E log(1 - draw) in b. By Jensen the latter is
    positive where h is below the mean a / n. E log(draw) = psi(a) - psi(n) > log(a / n) - 1/a, so the former is negative
    where h <= (a - 1) / n < (a / n) exp(-1 / a). The slope of the tangent grows in a and falls in b. If the condition
    holds at (a, b), it holds at every posterior between.
    """
    return h > 0.0 and h * (a + b) <= a - 1.0


@scalar
def advance_lazy(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Play Thompson sampling from step `first` to step `last`."""
    gamma = params[0]
    state = view_posterior(floats, integers, setting.arms)
    if first == 0:
        for arm in range(setting.arms):
            state.successes[arm] = 0.0
            state.number[arm] = -1
            state.mark[arm] = 0.0
            learn(state, setting, pulls, arm, max(gamma, 1e-9))
    step = first
    while step < last:
        leader = highest_mean(state)
        if gamma < 1e-9:
            pull_arm(state, instance, setting, pulls, leader, rewards, 1e-9)
            step += 1
        else:
            step += phase(state, instance, setting, pulls, leader, agent, rewards, gamma, last - step)


@scalar
def phase(state, instance, setting, pulls, leader, agent, rewards, gamma, left):
    """Play rounds with one leader and one set of thresholds for as long as they serve; returns how many were played."""
    set_thresholds(state, leader)
    h = state.limit[leader]
    full = 0
    for arm in range(setting.arms):
        if arm != leader:
            state.rate[arm] = rival_rate(state, arm)
            full += 1 if state.rate[arm] == FULL else 0
    step = 0
    surprises = 0
    served = min(left, pulls[leader] / 4 + 16)
    until = -1
    chance = 1.0
    rates = 0.0
    gap = 0.0
    while step < served and surprises < 32:
        pull = int(pulls[leader])
        if pull >= until:
            until = pull + min(LANES - pull % LANES, 1 + pull // 8)
            chance = 1.0 if full > 0 else window_chance(state, instance, leader, pull, until, h, rewards, gamma)
            state.rate[leader] = -math.log1p(-chance) if chance < 0.4 else FULL
            rates = 1e-300
            for arm in range(setting.arms):
                rates += max(state.rate[arm], 0.0)
            gap = exponential(agent) / rates
        room = min(until - pull, left - step)
        if full == 0 and state.rate[leader] != FULL:
            quiet = int(min(gap, room * 1.0))
            word = outcomes_of(state, instance, leader, pull, rewards) & ((1 << quiet) - 1)
            state.successes[leader] += ones(word)
            pulls[leader] = pull + quiet
            step += quiet
            gap -= quiet
            learn(state, setting, pulls, leader, gamma)
            if quiet == room:
                continue
        while gap < 1.0:
            first, second = uniform_pair(agent)
            mark_one(state, first * rates)
            gap -= math.log(second) / rates
        gap -= 1.0
        winner = resolve(state, leader, h, chance, agent)
        pull_arm(state, instance, setting, pulls, winner, rewards, gamma)
        step += 1
        if winner != leader:
            surprises += 1
            before = state.rate[winner]
            state.rate[winner] = rival_rate(state, winner)
            if before != FULL or state.rate[winner] != FULL:
                # The rates have changed: draw the next point anew (the process has no memory).
                contested = full > 0
                full += (1 if state.rate[winner] == FULL else 0) - (1 if before == FULL else 0)
                rates = max(rates + max(state.rate[winner], 0.0) - max(before, 0.0), 1e-300)
                gap = exponential(agent) / rates
                if contested != (full > 0):
                    until = -1
    return step


@scalar
def window_chance(state, instance, leader, pull, until, h, rewards, gamma):
    """A bound on the leader's chance to propose below h over its next pulls; 1 where there is none."""
    word = outcomes_of(state, instance, leader, pull, rewards) & ((1 << (until - pull)) - 1)
    a = state.a[leader]
    b = state.b[leader] + (until - pull - ones(word)) / (gamma * gamma)
    return leader_chance(a, b, h) if bound_holds(a, b, h) else 1.0


@scalar
def mark_one(state, point):
    """Mark the arm on whose share of the rates a point falls: it proposes in this round."""
    last = 0
    for arm in range(len(state.rate)):
        if state.rate[arm] != FULL:
            last = arm
            if point < state.rate[arm]:
                break
            point -= state.rate[arm]
    state.mark[last] = 1.0


@scalar
def resolve(state, leader, h, chance, agent):
    """The arm to pull in a round with draws; clears the marks.

    Afterwards a rival without a draw is known to be below its limit, and the leader without one to be above h.
    """
    own = leader_draw(state, leader, h, chance, agent)
    best = leader
    highest = own
    for arm in range(len(state.mark)):
        state.drawn[arm] = -1.0
        if arm != leader:
            if state.rate[arm] == FULL:
                state.drawn[arm] = beta(agent, state.a[arm], state.b[arm])
            elif state.mark[arm] > 0.0:
                slope = tangent(state.a[arm], state.b[arm], state.limit[arm])
                state.drawn[arm] = tail_draw(state.a[arm], state.b[arm], slope, state.limit[arm], agent)
            if state.drawn[arm] > highest:
                best = arm
                highest = state.drawn[arm]
        state.mark[arm] = 0.0
    if own < 0.0:
        if highest <= h:
            return leader
        while own <= h:
            own = beta(agent, state.a[leader], state.b[leader])
        return leader if own > highest else best
    for arm in range(len(state.mark)):
        if arm != leader and state.drawn[arm] < 0.0 and state.limit[arm] > highest:
            value = draw_above(state, arm, highest, agent)
            while value > state.limit[arm]:
                value = draw_above(state, arm, highest, agent)
            if value > highest:
                best = arm
                highest = value
    return best


@scalar
def leader_draw(state, leader, h, chance, agent):
    """The leader's draw, if it draws in full or below h; else -1."""
    a = state.a[leader]
    b = state.b[leader]
    if state.rate[leader] == FULL:
        return beta(agent, a, b)
    if state.mark[leader] > 0.0 and uniform(agent) * chance < leader_chance(a, b, h):
        return tail_draw(a, b, tangent(a, b, h), h, agent)
    return -1.0


LAZY = Play(
    "lazy",
    advance_lazy,
    lambda arms: (8 * arms, 2 * arms),
    applies=lambda policy, problem: min(policy.prior) >= 1,
    slots=lambda problem: {"outcomes": problem.words or words_from_rewards},
)
