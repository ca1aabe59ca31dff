"""An exact shortcut for Thompson sampling: it skips the rounds in which no arm makes a proposal.

In most rounds the leader's draw is above a threshold and all other draws are below theirs. An arm makes a proposal in each
round in which its draw may be on the other side. The probability of a proposal bounds the true one, and proposals are
thinned to it.
"""

from __future__ import annotations

from banditune.core.binomial_draws import count_ones
from banditune.core.distributions import buffered_beta
from banditune.core.scalar import scalar
from banditune.core.streams import NO_WORD, WORD_BITS, buffered_uniform_pair, make_buffered_stream
from banditune.simulation.shortcuts.beta_tails import (
    SMALLEST_THRESHOLD,
    compute_beta_density,
    compute_beta_sd,
    compute_leader_chance,
    compute_log_density_slope,
    compute_poisson_rate,
    draw_beta_above,
    draw_beta_tail,
    invert_exponential,
    is_bound_valid,
)
from banditune.simulation.shortcuts.thompson_posteriors import (
    advance_greedy_streak,
    find_highest_mean,
    pull_and_update,
    read_outcomes,
    update_posterior,
    view_posteriors,
)

FULL_RATE = -1.0
"""The rate of an arm whose draw is made in every round, because its tangent gives no useful bound."""


@scalar
def set_thresholds(state, leader):
    """Choose h between the leader and its closest rival, in proportion to their deviations, and all thresholds.

    A rival with a much lower mean has a threshold below h. Its draw is then not needed if the leader's draw is below h.
    """
    a = state.a[leader]
    b = state.b[leader]
    mean = a / (a + b)
    sd = compute_beta_sd(a, b)
    closest = 1e308
    for arm in range(len(state.a)):
        if arm != leader:
            centre = state.a[arm] / (state.a[arm] + state.b[arm])
            # The share is below 1.0, the middle: the leader's draws below h take more time than a rival's above it.
            state.threshold[arm] = 1.6 * (mean - centre) / (sd + compute_beta_sd(state.a[arm], state.b[arm]))
            closest = min(closest, state.threshold[arm])
    for arm in range(len(state.a)):
        state.threshold[arm] = mean - min(max(closest, state.threshold[arm]), closest + 4.0) * sd
    state.threshold[leader] = mean - closest * sd


@scalar
def compute_rival_rate(state, arm):
    """Return the rate of a rival's proposals above its threshold, or FULL_RATE if the tangent gives no useful bound."""
    a = state.a[arm]
    b = state.b[arm]
    x = state.threshold[arm]
    n = a + b
    if x <= SMALLEST_THRESHOLD or (x * n - a) * (x * n - a) * (n + 1.0) < 0.5 * a * b or x * n < a:
        # If the threshold is less than .7 standard deviations above the mean, the bound is of no use.
        return FULL_RATE
    slope = compute_log_density_slope(a, b, x)
    if slope >= 0.0:
        return FULL_RATE
    chance = compute_beta_density(a, b, x) / -slope
    return compute_poisson_rate(chance) if chance < 0.3 else FULL_RATE


@scalar
def advance_thompson_thinning(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Advance Thompson sampling from step `first` to step `last`."""
    greedy = params[0] < 1e-9
    sharpness = 1.0 if greedy else 1.0 / (params[0] * params[0])
    state = view_posteriors(floats, integers, setting.arms)
    agent = make_buffered_stream(agent, integers[4 * setting.arms + 1 : 4 * setting.arms + 5])
    if first == 0:
        state.invalid[0] = 0
        for arm in range(setting.arms):
            state.successes[arm] = 0.0
            state.word_index[arm] = NO_WORD
            update_posterior(state, setting, pulls, arm, sharpness)
    step = first
    while step < last and state.invalid[0] == 0:
        leader = find_highest_mean(state)
        if greedy:
            step += advance_greedy_streak(state, instance, setting, pulls, leader, rewards, last - step)
        else:
            step += advance_phase(state, instance, setting, pulls, leader, agent, rewards, sharpness, last - step)
    return state.invalid[0] == 0


@scalar
def advance_phase(state, instance, setting, pulls, leader, agent, rewards, sharpness, remaining):
    """Advance with one leader and one set of thresholds while they are useful. Return the number of rounds."""
    set_thresholds(state, leader)
    h = state.threshold[leader]
    for arm in range(setting.arms):
        if arm != leader:
            state.rate[arm] = compute_rival_rate(state, arm)
    full = list_full_draws(state, leader)
    step = 0
    rival_wins = 0
    round_limit = min(remaining, pulls[leader] / 3 + 16)
    until = -1
    chance = 1.0
    rates = 0.0
    wait = invert_exponential(buffered_uniform_pair(agent)[0])
    while step < round_limit and rival_wins < 48:
        pull = int(pulls[leader])
        if pull >= until:
            until = pull + min(WORD_BITS - pull % WORD_BITS, 1 + pull // 8)
            chance = (
                1.0 if full > 0 else bound_window_chance(state, instance, leader, pull, until, h, rewards, sharpness)
            )
            state.rate[leader] = compute_poisson_rate(chance) if chance < 0.4 else FULL_RATE
            rates = sum_rates(state)
        if full == 0 and state.rate[leader] != FULL_RATE:
            limit = min(until - pull, remaining - step)
            skipped = count_skipped_rounds(wait, rates, limit)
            word = read_outcomes(state, instance, leader, pull, rewards) & ((1 << skipped) - 1)
            state.successes[leader] += count_ones(word)
            pulls[leader] = pull + skipped
            update_posterior(state, setting, pulls, leader, sharpness)
            step += skipped
            wait -= skipped * rates
            if skipped == limit:
                continue
        proposer_count = 0
        while wait < rates:
            first, second = buffered_uniform_pair(agent)
            proposer_count = add_proposer(state, first * rates, proposer_count)
            wait += invert_exponential(second)
        wait -= rates
        winner = resolve_round(state, leader, h, chance, full, proposer_count, agent)
        pull_and_update(state, instance, setting, pulls, winner, rewards, sharpness)
        step += 1
        if winner != leader:
            rival_wins += 1
            before = state.rate[winner]
            state.rate[winner] = compute_rival_rate(state, winner)
            if before != FULL_RATE or state.rate[winner] != FULL_RATE:
                rates = sum_rates(state)
                if before == FULL_RATE or state.rate[winner] == FULL_RATE:
                    full = list_full_draws(state, leader)
                    until = -1
    return step


@scalar
def count_skipped_rounds(wait, rates, limit):
    """Count the whole rounds before the next proposal, at most `limit`."""
    return int(min(wait / rates, limit * 1.0))


@scalar
def list_full_draws(state, leader):
    """List the rivals whose draws are made in every round. Return their number."""
    full = 0
    for arm in range(len(state.rate)):
        if arm != leader and state.rate[arm] == FULL_RATE:
            state.full_draws[full] = arm
            full += 1
    return full


@scalar
def sum_rates(state):
    """Sum the rates of all arms' proposals. The result is positive, so that it can be a divisor."""
    total = 1e-300
    for arm in range(len(state.rate)):
        total += max(state.rate[arm], 0.0)
    return total


@scalar
def bound_window_chance(state, instance, leader, pull, until, h, rewards, sharpness):
    """Bound the probability that the leader makes a proposal below h in its next pulls; 1 if there is no bound."""
    word = read_outcomes(state, instance, leader, pull, rewards) & ((1 << (until - pull)) - 1)
    a = state.a[leader]
    b = state.b[leader] + (until - pull - count_ones(word)) * sharpness
    return compute_leader_chance(a, b, h) if is_bound_valid(a, b, h) else 1.0


@scalar
def add_proposer(state, point, proposer_count):
    """Add the arm of a point to the list of arms with a proposal in this round. Return the length of the list.

    Each arm has an interval of the cumulated rates; the point is in that of the arm.
    """
    proposer = 0
    for arm in range(len(state.rate)):
        if state.rate[arm] != FULL_RATE:
            proposer = arm
            if point < state.rate[arm]:
                break
            point -= state.rate[arm]
    for position in range(proposer_count):
        if state.proposers[position] == proposer:
            return proposer_count
    state.proposers[proposer_count] = proposer
    return proposer_count + 1


@scalar
def resolve_round(state, leader, h, chance, full, proposer_count, agent):
    """Return the arm to pull in a round with draws.

    A rival without an accepted draw is below its threshold, and a leader without one is above h.
    """
    leader_draw = draw_leader(state, leader, h, chance, proposer_count, agent)
    best = leader
    highest = leader_draw
    for position in range(full):
        arm = int(state.full_draws[position])
        value = buffered_beta(agent, state.a[arm], state.b[arm])
        if value > highest:
            best = arm
            highest = value
    for position in range(proposer_count):
        arm = int(state.proposers[position])
        if arm != leader:
            slope = compute_log_density_slope(state.a[arm], state.b[arm], state.threshold[arm])
            value = draw_beta_tail(state.a[arm], state.b[arm], slope, state.threshold[arm], agent)
            if value > highest:
                best = arm
                highest = value
    if leader_draw < 0.0:
        if highest <= h:
            return leader
        while leader_draw <= h:
            leader_draw = buffered_beta(agent, state.a[leader], state.b[leader])
        return leader if leader_draw > highest else best
    if highest >= h:
        return best
    # No threshold is above h. An accepted draw is above its arm's threshold, so an arm with a higher one has none.
    for arm in range(len(state.threshold)):
        if arm != leader and state.rate[arm] != FULL_RATE and state.threshold[arm] > highest:
            value = draw_beta_above(state.a[arm], state.b[arm], highest, agent)
            while value > state.threshold[arm]:
                value = draw_beta_above(state.a[arm], state.b[arm], highest, agent)
            if value > highest:
                best = arm
                highest = value
    return best


@scalar
def draw_leader(state, leader, h, chance, proposer_count, agent):
    """Return the leader's draw if it is made in every round or is below h; else -1."""
    a = state.a[leader]
    b = state.b[leader]
    if state.rate[leader] == FULL_RATE:
        return buffered_beta(agent, a, b)
    for position in range(proposer_count):
        if state.proposers[position] == leader and buffered_uniform_pair(agent)[0] * chance < compute_leader_chance(
            a, b, h
        ):
            return draw_beta_tail(a, b, compute_log_density_slope(a, b, h), h, agent)
    return -1.0
