"""The mode of logistic regression's posterior, found anew after every pull by Newton's method."""

from __future__ import annotations

import math

from banditune.core.scalar import noinline, scalar
from banditune.simulation.estimators.logistic_state import (
    ERROR,
    LONGEST,
    LOST,
    PLAYED,
    PULLS,
    add_played_arm,
    compute_gradient,
    compute_tolerance,
    count_logistic_pull,
    factorise_hessian,
    invert_hessian,
)
from banditune.simulation.estimators.matrices import multiply_symmetric, solve_lower, solve_upper
from banditune.simulation.estimators.vector_layout import argmax_score, compute_dot, dims, pad_dims, subtract_outer

ROUGH_TOLERANCE = 1e-5
"""The mode is found to within this many at first, where only the best arm is asked for: see `is_certain`."""


INVERSE_PATIENCE = 2
"""Looks with an old Hessian; at the next it is renewed."""


QUICK_LOOKS = 8
"""Looks before `climb_to_mode` takes over."""


MAX_NEWTON_STEPS = 100
"""Newton steps after which the search for the mode gives up; three to ten are usual."""


NO_MODE = -1001
"""What `choose` returns where the mode was not found."""


@scalar
def compute_step_by_inverse(state):
    """Put H^-1 gradient into `step`, by `inverse`; returns the square of its length in posterior deviations."""
    multiply_symmetric(state.inverse, state.gradient, state.step)
    return compute_dot(state.gradient, state.step)


@scalar
def compute_step_by_factor(state):
    """Put H^-1 gradient into `step`, by `factor`; returns the square of its length in posterior deviations."""
    for j in range(dims()):
        state.step[j] = state.gradient[j]
    solve_lower(state.factor, state.step)
    square = compute_dot(state.step, state.step)
    solve_upper(state.factor, state.step)
    return square


@scalar
def move_estimate(state, share):
    """Take a step, or a share of it."""
    for j in range(dims()):
        state.estimate[j] += share * state.step[j]


@scalar
def find_mode(state, last, wanted):
    """Move `estimate` to within `wanted` of the mode, after a step of the length `last`; sets LOST where that fails."""
    last += state.counts[ERROR]
    for looks in range(QUICK_LOOKS):
        compute_gradient(state)
        if looks == INVERSE_PATIENCE:
            invert_hessian(state)
        error = math.sqrt(max(compute_step_by_inverse(state), 0.0))
        if not error <= max(0.5 * last, 0.1 * wanted):
            break
        move_estimate(state, 1.0)
        # The next error will be smaller than this one by the rate seen last, or twice that.
        state.counts[ERROR] = error * min(2.0 * error / max(last, 1e-300), 1.0)
        if error <= 0.1 * wanted or (error < 1e-3 and state.counts[ERROR] <= wanted):
            return
        last = error
    state.counts[LOST] = 0.0 if climb_to_mode(state) else 1.0
    state.counts[ERROR] = compute_tolerance(state)
    invert_hessian(state)


@scalar
def find_mode_and_factor(state, last, wanted):
    """Move `estimate` to the mode by Newton's method, until `factor` belongs to a point within `wanted` of it.

    The step before was of the length `last`. One Newton step from there, `estimate` itself is far closer.
    """
    last += state.counts[ERROR] + wanted
    for _ in range(QUICK_LOOKS):
        compute_gradient(state)
        factorise_hessian(state)
        error = math.sqrt(compute_step_by_factor(state))
        if not error <= 0.5 * last:
            break
        move_estimate(state, 1.0)
        state.counts[ERROR] = error
        if error <= wanted:
            return
        last = error
    state.counts[LOST] = 0.0 if climb_to_mode(state) else 1.0
    state.counts[ERROR] = compute_tolerance(state)


@noinline
def climb_to_mode(state):
    """Newton's method with the exact Hessian from 0; steps are halved until the objective rises by a quarter of what the
    slope promises. The objective is strictly concave with curvature 1 or more, so this converges from anywhere, but from 0
    it does so soon: far out, where chances are 0 or 1, steps are short.
    """
    for j in range(dims()):
        state.estimate[j] = 0.0
    for _ in range(MAX_NEWTON_STEPS):
        compute_gradient(state)
        factorise_hessian(state)
        square = compute_step_by_factor(state)
        if not square < math.inf:
            return False
        share = 1.0
        # Close to the mode the full step is right, and the objective is too flat to say so.
        if square > 1e-6:
            before = compute_log_posterior(state, 0.0)
            while share > 1e-12 and not compute_log_posterior(state, share) >= before + 0.25 * share * square:
                share *= 0.5
        move_estimate(state, share)
        if square <= compute_tolerance(state) * compute_tolerance(state):
            return True
    return False


@scalar
def compute_log_posterior(state, share):
    """The logarithm of the posterior at estimate + share step, up to a constant."""
    value = 0.0
    for j in range(dims()):
        at = state.estimate[j] + share * state.step[j]
        value -= 0.5 * at * at
    for place in range(int(state.counts[PLAYED])):
        score = state.seen_prior[place]
        for j in range(dims()):
            score += (state.estimate[j] + share * state.step[j]) * state.seen_rows[place * pad_dims() + j]
        value += state.seen_total[place] * score - state.seen_pulls[place] * compute_log1pexp(score)
    return value


@scalar
def compute_log1pexp(score):
    """log(1 + e^score) without overflow."""
    return max(score, 0.0) + math.log1p(math.exp(-abs(score)))


@scalar
def update_logistic(state, setting, arm, reward, stream):
    """Learn a reward: the Hessian grows by the pull's own term, and the mode moves; it is found roughly."""
    place = count_logistic_pull(state, arm, reward)
    features = state.seen_rows[place * pad_dims() : (place + 1) * pad_dims()]
    multiply_symmetric(state.inverse, features, state.pulled)
    shrink, first = take_first_step(state, features, place, reward)
    subtract_outer(state.inverse, state.pulled, state.pulled, shrink)
    find_mode(state, first, ROUGH_TOLERANCE)


@scalar
def take_first_step(state, features, place, reward):
    """Take the Newton step for one more pull, with the old H^-1 x in `pulled`.

    With the slope w = p (1 - p), the new H^-1 is the old one less shrink H^-1 x x' H^-1, shrink = w / (1 + w x' H^-1 x).
    Returns shrink and the length of the step in posterior deviations.
    """
    chance = state.chance[place]
    slope = chance * (1.0 - chance)
    square = compute_dot(features, state.pulled)
    shrink = slope / (1.0 + slope * square)
    along = (reward - chance) / (1.0 + slope * square)
    for j in range(dims()):
        state.estimate[j] += along * state.pulled[j]
    return shrink, abs(reward - chance) * math.sqrt(max(square, 0.0))


@scalar
def is_certain(state, index, best, error):
    """Whether the best of some indices stays the best where theta is wrong by so many posterior deviations.

    The Hessian is I or more, so that changes no score by more than the error times |x|. Errors are estimates: four times
    as much is allowed for. What `choose_first_tied` calls a tie is never certain, however small the error is said to be.
    """
    highest = index[best]
    index[best] = -math.inf
    rival = index[argmax_score(index)]
    index[best] = highest
    return highest - rival > max(8.0 * error, 2.0 * compute_tolerance(state)) * state.counts[LONGEST]


@scalar
def choose_first_tied(state, best):
    """The arm to pull at the exact mode: the first whose index cannot be told from the best by what is known of the mode.

    So rounding does not decide between arms that tie, such as all arms while the mode is 0.
    """
    if state.counts[LOST] != 0.0:
        return NO_MODE
    enough = state.score[best] - 2.0 * compute_tolerance(state) * state.counts[LONGEST]
    arm = 0
    while state.score[arm] < enough:
        arm += 1
    return arm


@noinline
def refine_mode(state):
    """Move `estimate` from roughly to exactly the mode."""
    if state.counts[ERROR] > compute_tolerance(state):
        find_mode(state, 3.0 * state.counts[ERROR], compute_tolerance(state))


@noinline
def resume_logistic(state, setting, params, pulls, totals):
    """Know every arm's pulls and total reward, and find the mode by Newton's method."""
    for arm in range(setting.arms):
        if pulls[arm] > 0.0:
            add_played_arm(state, arm)
            place = int(state.place[arm])
            state.pulls[arm] = pulls[arm]
            state.seen_pulls[place] = pulls[arm]
            state.seen_total[place] = totals[arm]
            state.counts[PULLS] += pulls[arm]
    if state.counts[PLAYED] > 0.0:
        state.counts[LOST] = 0.0 if climb_to_mode(state) else 1.0
        state.counts[ERROR] = compute_tolerance(state)
        invert_hessian(state)
