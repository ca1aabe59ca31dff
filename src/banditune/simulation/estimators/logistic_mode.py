"""The mode of the posterior of logistic regression, updated after every pull by Newton's method."""

from __future__ import annotations

import math

from banditune.core.scalar import noinline, scalar
from banditune.simulation.estimators.logistic_state import (
    ERROR,
    LONGEST,
    MODE_LOST,
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
"""The rough tolerance of the mode, in posterior deviations. It is enough to find the best arm; see `is_certain`."""


INVERSE_PATIENCE = 2
"""The number of steps with an old Hessian. The next step recomputes it."""


QUICK_LOOKS = 8
"""The number of steps before `climb_to_mode` is used."""


MAX_NEWTON_STEPS = 100
"""The largest number of Newton steps of the search for the mode. Three to ten are usual."""


NO_MODE = -1001
"""The value that `choose` returns if the mode was not found."""


@scalar
def compute_step_by_inverse(state):
    """Compute `step` = H^-1 gradient, from `inverse`. Return its squared length in posterior deviations."""
    multiply_symmetric(state.inverse, state.gradient, state.step)
    return compute_dot(state.gradient, state.step)


@scalar
def compute_step_by_factor(state):
    """Compute `step` = H^-1 gradient, from `factor`. Return its squared length in posterior deviations."""
    for j in range(dims()):
        state.step[j] = state.gradient[j]
    solve_lower(state.factor, state.step)
    square = compute_dot(state.step, state.step)
    solve_upper(state.factor, state.step)
    return square


@scalar
def move_estimate(state, share):
    """Move the estimate by a share of `step`."""
    for j in range(dims()):
        state.estimate[j] += share * state.step[j]


@scalar
def find_mode(state, last, tolerance):
    """Move `estimate` to within `tolerance` of the mode, after a step of length `last`. Set MODE_LOST if that fails."""
    last += state.counts[ERROR]
    for step in range(QUICK_LOOKS):
        compute_gradient(state)
        if step == INVERSE_PATIENCE:
            invert_hessian(state)
        error = math.sqrt(max(compute_step_by_inverse(state), 0.0))
        if not error <= max(0.5 * last, 0.1 * tolerance):
            break
        move_estimate(state, 1.0)
        # The next error will be smaller than this one by the last observed rate, or twice that.
        state.counts[ERROR] = error * min(2.0 * error / max(last, 1e-300), 1.0)
        if error <= 0.1 * tolerance or (error < 1e-3 and state.counts[ERROR] <= tolerance):
            return
        last = error
    state.counts[MODE_LOST] = 0.0 if climb_to_mode(state) else 1.0
    state.counts[ERROR] = compute_tolerance(state)
    invert_hessian(state)


@scalar
def find_mode_and_factor(state, last, tolerance):
    """Move `estimate` to the mode by Newton's method, until `factor` is that of a point within `tolerance` of the mode.

    The previous step had the length `last`. After one more Newton step from that point, `estimate` is much closer.
    """
    last += state.counts[ERROR] + tolerance
    for _ in range(QUICK_LOOKS):
        compute_gradient(state)
        factorise_hessian(state)
        error = math.sqrt(compute_step_by_factor(state))
        if not error <= 0.5 * last:
            break
        move_estimate(state, 1.0)
        state.counts[ERROR] = error
        if error <= tolerance:
            return
        last = error
    state.counts[MODE_LOST] = 0.0 if climb_to_mode(state) else 1.0
    state.counts[ERROR] = compute_tolerance(state)


@noinline
def climb_to_mode(state):
    """Find the mode by Newton's method with the exact Hessian, from 0; return whether it converged.

    Steps are halved until the objective rises by a quarter of the increase that the slope predicts. The objective is
    strictly concave with curvature 1 or more, so this converges from any point. From 0 it converges fast. Far from the
    mode, where probabilities are near 0 or 1, steps are short.
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
        # Near the mode the full step is right, but the change of the objective is within rounding errors.
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
    """Compute the logarithm of the posterior at estimate + share step, up to a constant."""
    value = 0.0
    for j in range(dims()):
        at = state.estimate[j] + share * state.step[j]
        value -= 0.5 * at * at
    for position in range(int(state.counts[PLAYED])):
        score = state.played_prior[position]
        for j in range(dims()):
            score += (state.estimate[j] + share * state.step[j]) * state.played_rows[position * pad_dims() + j]
        value += state.played_total[position] * score - state.played_pulls[position] * compute_log1pexp(score)
    return value


@scalar
def compute_log1pexp(score):
    """Compute log(1 + e^score) without overflow."""
    return max(score, 0.0) + math.log1p(math.exp(-abs(score)))


@scalar
def update_logistic(state, setting, step, params, arm, reward, stream):
    """Update for one reward: add a term to the Hessian, and find the mode with the rough tolerance."""
    position = count_logistic_pull(state, arm, reward)
    features = state.played_rows[position * pad_dims() : (position + 1) * pad_dims()]
    multiply_symmetric(state.inverse, features, state.pulled)
    shrink, first = take_first_step(state, features, position, reward)
    subtract_outer(state.inverse, state.pulled, state.pulled, shrink)
    find_mode(state, first, ROUGH_TOLERANCE)


@scalar
def take_first_step(state, features, position, reward):
    """Take the Newton step for one more pull, with the old H^-1 x in `pulled`.

    With the slope w = p (1 - p), the new H^-1 is the old one minus shrink H^-1 x x' H^-1, shrink = w / (1 + w x' H^-1
    x). Returns shrink and the length of the step in posterior deviations.
    """
    chance = state.chance[position]
    slope = chance * (1.0 - chance)
    square = compute_dot(features, state.pulled)
    shrink = slope / (1.0 + slope * square)
    shift = (reward - chance) / (1.0 + slope * square)
    for j in range(dims()):
        state.estimate[j] += shift * state.pulled[j]
    return shrink, abs(reward - chance) * math.sqrt(max(square, 0.0))


@scalar
def is_certain(state, index, best, error):
    """Return whether the best index remains the best if theta is wrong by `error` posterior deviations.

    The Hessian is at least I, so no score changes by more than the error times |x|. Because errors are estimates, four
    times this limit is used. A tie in the sense of `choose_first_tied` is never certain.
    """
    highest = index[best]
    index[best] = -math.inf
    rival = index[argmax_score(index)]
    index[best] = highest
    return highest - rival > max(8.0 * error, 2.0 * compute_tolerance(state)) * state.counts[LONGEST]


@scalar
def choose_first_tied(state, best):
    """Return the first arm whose index equals the best at the exact mode, within the precision of the mode.

    So rounding errors do not select between tied arms. For example, all arms are tied while the mode is 0.
    """
    if state.counts[MODE_LOST] != 0.0:
        return NO_MODE
    smallest_tied = state.score[best] - 2.0 * compute_tolerance(state) * state.counts[LONGEST]
    arm = 0
    while state.score[arm] < smallest_tied:
        arm += 1
    return arm


@noinline
def refine_mode(state):
    """Move `estimate` from the rough tolerance to the exact mode."""
    if state.counts[ERROR] > compute_tolerance(state):
        find_mode(state, 3.0 * state.counts[ERROR], compute_tolerance(state))


@noinline
def resume_logistic(state, setting, params, pulls, totals):
    """Restore every arm's pulls and total reward, and find the mode by Newton's method."""
    for arm in range(setting.arms):
        if pulls[arm] > 0.0:
            add_played_arm(state, arm)
            position = int(state.played_index[arm])
            state.pulls[arm] = pulls[arm]
            state.played_pulls[position] = pulls[arm]
            state.played_total[position] = totals[arm]
            state.counts[PULLS] += pulls[arm]
    if state.counts[PLAYED] > 0.0:
        state.counts[MODE_LOST] = 0.0 if climb_to_mode(state) else 1.0
        state.counts[ERROR] = compute_tolerance(state)
        invert_hessian(state)
