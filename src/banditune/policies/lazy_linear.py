"""Linear Thompson sampling by staying with a leader until a rival may win: an exact shortcut.

Sampling pulls the highest score under a draw y ~ N(0, scale^2 G^-1): score + x'y. Take any arm as `leader`. A rival
beats it under the draw if (x - x_leader)'y exceeds gap = score of the leader - score of the rival, that is, if a
standard normal t exceeds tau = gap / (scale ||x - x_leader||_G^-1). Let H be the set of draws under which this rival
wins against the leader.

*Thinning.* Let every rival propose with a probability `bound` >= P(H), together not more than 1, and then with a t
beyond tau of the right law and the rest of the draw given that t. Such a draw has the density n(y) times that of N(0,
scale^2 G^-1), where n(y) counts the rivals that beat the leader under y. Keep it with probability 1 / n(y): then it
is a draw restricted to those under which somebody beats the leader, and it comes up with exactly their probability.
If nothing was kept, the leader is pulled. So as long as nobody proposes, one uniform number decides a round.

*Stays.* Sherman and Morrison's formula gives every score and variance after k pulls of the leader, as for LinUCB in
`live`: with u = x' G^-1 x_leader, scores move by u e and variances by -u^2 k / (1 + k q). For the next pulls let e
stay in an interval; on it gap is at least the smaller of its values at the ends, and variances only shrink. That
bounds tau from below until k or e leaves, and the proposals are thinned from that bound to the true tau.

*Proposals.* For a normal t beyond tau >= 0, Robert (1995): with alpha = (tau + sqrt(tau^2 + 4)) / 2, its density is
below mass alpha exp(-alpha (t - tau)), mass = exp(1 - alpha^2 / 2) / (alpha sqrt(2 pi)), and t = tau + exponential /
alpha is kept with probability exp(-(t - alpha)^2 / 2). With y = tau^2, (1 + y/512)^-256 is above exp(-y / 2) and .66
(1 + .08 y) / (1 + .8 y) above the rest of the mass: their product, the `bound`, takes two ratios and eight squares,
no root and no exponential.

Where the bounds add up to too much, the draw is made in full, as in the plain loop.
"""

from __future__ import annotations

import math

from banditune.contracts import Slot, rare, scalar
from banditune.policies.ridge import (
    best_score,
    draw_theta,
    learn,
    own_option,
    point_at,
    ridge_memory,
    sample_scores,
    score_draw,
    start_ridge,
    view_ridge,
)
from banditune.streams import aim, exponential, uniform

reward = Slot("reward")

FULL = 0.9
"""Sum of bounds from which on the draw is made in full."""


def lazy_memory(arms: int, dims: int) -> tuple[int, int]:
    """Floats and integers: ridge regression, and a bound for every arm."""
    return ridge_memory(arms, dims) + arms, 0


@scalar
def lowest_gap(gap, apart, low, high):
    """The least that the gap can become while e is between low and high."""
    return gap + min(apart * low, apart * high)


@scalar
def distance(variance, along, apart, q, shrink):
    """(x - x_leader)' G^-1 (x - x_leader) after k pulls of the leader; `shrink` is k / (1 + k q)."""
    return max(variance + q - 2.0 * along - apart * apart * shrink, 1e-300)


@scalar
def bound_rivals(state, setting, bound, leader, pulls, low, high, q, scale):
    """Every rival's chance to propose, and their sum."""
    arms = setting.arms
    score = state.score[leader]
    shrink = pulls / (1.0 + pulls * q)
    many = 512.0 * scale * scale
    for rival in range(arms):
        apart = q - state.shift[rival]
        gap = lowest_gap(score - state.score[rival], apart, low, high)
        spread = many * distance(state.variance[rival], state.shift[rival], apart, q, shrink)
        square = gap * gap
        ratio = spread / (spread + square)
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= ratio
        ratio *= 0.66 * (spread + 40.96 * square) / (spread + 409.6 * square)
        bound[rival] = ratio if gap > 0.0 else 1.0
    bound[leader] = 0.0
    # Four sums at a time: the processor adds them side by side.
    sum0, sum1, sum2, sum3 = 0.0, 0.0, 0.0, 0.0
    whole = arms - arms % 4
    for rival in range(0, whole, 4):
        sum0 += bound[rival]
        sum1 += bound[rival + 1]
        sum2 += bound[rival + 2]
        sum3 += bound[rival + 3]
    for rival in range(whole, arms):
        sum0 += bound[rival]
    return sum0 + sum1 + (sum2 + sum3)


@scalar
def proposer(bound, chance):
    """The rival whose share of the bounds holds a number."""
    last = len(bound) - 1
    rival = 0
    below = 0.0
    four = bound[0] + bound[1] + (bound[2] + bound[3]) if last >= 3 else math.inf
    while below + four <= chance and rival + 7 <= last:
        below += four
        rival += 4
        four = bound[rival] + bound[rival + 1] + (bound[rival + 2] + bound[rival + 3])
    below += bound[rival]
    while below <= chance and rival < last:
        rival += 1
        below += bound[rival]
    return rival


@scalar
def quiet_rounds(chance, most, stream):
    """Rounds before the next proposal: geometric, cut at `most`. Who was cut may draw again: the law has no memory."""
    return int(min(math.log(uniform(stream)) / math.log1p(-max(chance, 1e-300)), most))


@rare
def beats_leader(state, bound, rival, leader, pulls, error, low, high, q, scale, stream):
    """Thin a rival's proposal to the truth: its t if it exceeds the true tau, else -1."""
    apart = q - state.shift[rival]
    gap = state.score[leader] - state.score[rival]
    square = distance(state.variance[rival], state.shift[rival], apart, q, pulls / (1.0 + pulls * q))
    spread = scale * math.sqrt(square)
    tau = lowest_gap(gap, apart, low, high) / spread
    alpha = 0.5 * (tau + math.sqrt(tau * tau + 4.0))
    t = tau + exponential(stream) / alpha
    kept = math.exp(1.0 - 0.5 * (alpha * alpha + (t - alpha) * (t - alpha))) / (alpha * math.sqrt(2.0 * math.pi))
    if uniform(stream) * bound[rival] < kept and t > (gap + apart * error) / spread:
        return t
    return -1.0


@scalar
def draw_given(state, setting, rival, leader, t, scale, stream):
    """Put a draw of theta into `gain`, given that (x - x_leader)'(theta - estimate) is t of its standard deviations."""
    arms = setting.arms
    dims = setting.dims
    draw_theta(state, setting, scale, stream)
    square = 0.0
    moved = 0.0
    for j in range(dims):
        along = 0.0
        for i in range(dims):
            apart = state.features[i * arms + rival] - state.features[i * arms + leader]
            along += state.factor[j * dims + i] * apart
        state.turned[j] = along
        square += along * along
        apart = state.features[j * arms + rival] - state.features[j * arms + leader]
        moved += apart * (state.gain[j] - state.estimate[j])
    lacking = (t * scale * math.sqrt(square) - moved) / square
    for j in range(dims):
        for i in range(dims):
            state.gain[i] += lacking * state.turned[j] * state.factor[j * dims + i]


@scalar
def winner(state, setting, leader, stream):
    """The best arm under the theta in `gain` with probability 1 / (arms that beat the leader), else the leader."""
    score_draw(state, setting)
    beating = 0
    for arm in range(setting.arms):
        beating += 1 if state.shift[arm] > state.shift[leader] else 0
    if uniform(stream) * beating < 1.0:
        return best_score(state.shift)
    return leader


@scalar
def advance_lazy_linear(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
    """Linear Thompson sampling from proposal to proposal; the module's docstring says why this is its law."""
    state = view_ridge(floats, setting)
    bound = floats[len(floats) - setting.arms :]
    scale = params[0] * own_option(setting, 0)
    positive = max(scale, 1e-100)
    noise = math.sqrt(setting.options[0])
    if first == 0:
        start_ridge(state, setting)
    step = first
    wait = 0
    pause = 0
    while step < last:
        if wait > 0:
            wait -= 1
            if not play_in_full(instance, setting, state, scale, agent, rewards, pulls):
                return False
            step += 1
            continue
        leader = best_score(state.score)
        q = max(point_at(state, setting, leader), 1e-300)
        score = state.score[leader]
        before = pulls[leader]
        left = last - step
        stayed = 0
        total = 0.0
        error = 0.0
        t = -1.0
        rival = -1
        chance = 0.0
        while stayed < left and t < 0.0:
            ahead = 1.0 + 0.125 * (stayed + 1.0 / q)
            until = int(min(stayed + ahead, left))
            grown = 1.0 + stayed * q
            wide = (2.5 * noise * math.sqrt(ahead) + abs(error) * ahead * q) / grown
            low = error - wide
            high = error + wide
            chance = bound_rivals(state, setting, bound, leader, 1.0 * stayed, low, high, q, positive)
            if chance > FULL:
                break
            inside = True
            # The round of a proposal that came to nothing is the leader's.
            refused = 0
            while inside and stayed < until and t < 0.0:
                quiet = min(stayed + refused + quiet_rounds(chance, until - stayed, agent), until)
                while inside and stayed < quiet:
                    aim(rewards, leader, before + stayed)
                    total += reward(instance, leader, before + stayed, 0, rewards) - score
                    stayed += 1
                    grown = 1.0 + stayed * q
                    inside = total > low * grown and total < high * grown
                error = total / (1.0 + stayed * q)
                if inside and stayed < until:
                    rival = proposer(bound, chance * uniform(agent))
                    t = beats_leader(state, bound, rival, leader, stayed, error, low, high, q, positive, agent)
                    refused = 1
        if not math.isfinite(total):
            return False
        if stayed > 0:
            pulls[leader] = before + stayed
            step += stayed
            learn(state, setting, leader, 1.0 * stayed, total + stayed * score)
        if t >= 0.0:
            draw_given(state, setting, rival, leader, t, positive, agent)
            if not pull_once(instance, setting, state, winner(state, setting, leader, agent), rewards, pulls):
                return False
            step += 1
        # Where bounds are in vain, the next rounds are drawn in full: twice as many each time.
        pause = min(2 * pause + 1, 15) if stayed == 0 and chance > FULL else 0
        wait = 1 if chance > FULL and pause == 0 else pause
    return True


@scalar
def play_in_full(instance, setting, state, scale, agent, rewards, pulls):
    """One round of the plain loop; False where the reward is not finite."""
    sample_scores(state, setting, scale, agent)
    return pull_once(instance, setting, state, best_score(state.shift), rewards, pulls)


@rare
def pull_once(instance, setting, state, arm, rewards, pulls):
    """Pull an arm and learn what it pays; False where that is not finite."""
    aim(rewards, arm, pulls[arm])
    paid = reward(instance, arm, pulls[arm], 0, rewards)
    point_at(state, setting, arm)
    learn(state, setting, arm, 1.0, paid)
    pulls[arm] += 1
    return math.isfinite(paid)
