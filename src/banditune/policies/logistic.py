"""Ready-made memory for logistic rewards: the mode of the posterior of logistic regression, found anew after every pull.

With the prior N(mean, covariance) on theta, features are turned so that it is N(0, I), as in `ridge`. Arms have fixed
features, so the data are pulls and successes of the arms played so far, and one look at all of them costs O(played arms
x dims).

The mode maximises sum of (total score - pulls log(1 + e^score)) - |theta|^2 / 2, which is strictly concave. From the last
mode a few steps of Newton's method with an old Hessian, kept up to date by rank-one terms, are mostly enough; where they do
not at least halve the error each time, `climb` takes over: Newton's method with the exact Hessian and steps that are cut
until the objective rises enough, which converges from anywhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, NamedTuple

from banditune.checks import gaussian, mean_and_root
from banditune.contracts import Floats, Policy, rare, scalar
from banditune.policies.ridge import OWN, cholesky, invert_triangle, shrink_factor, turn_features

TOLERANCE = 1e-8
"""The mode is found to within this many posterior standard deviations (and rounding: 1e-14 more for every pull)."""

QUICK = 8
"""Steps with an old Hessian before the exact one is built."""

STEPS = 100
"""Newton steps after which the search for the mode gives up; three to ten are usual."""

NO_MODE = -1001
"""What `choose` returns where the mode was not found."""


class Logistic(NamedTuple):
    """What logistic regression knows: first an entry per arm, then an entry per arm played, in the order of first pulls.

    `score` is x'theta at the mode. `seen_by_arm` holds the played arms' features one arm after the other, `seen_by_dim` one
    dimension after the other; `factor` is the inverse of the lower triangular Cholesky factor of a Hessian.
    """

    pulls: Floats
    total: Floats
    score: Floats
    shift: Floats
    prior_score: Floats
    place: Floats
    seen_pulls: Floats
    seen_total: Floats
    seen_prior: Floats
    seen_score: Floats
    chance: Floats
    features: Floats
    seen_by_arm: Floats
    seen_by_dim: Floats
    factor: Floats
    estimate: Floats
    gradient: Floats
    turned: Floats
    gain: Floats
    counts: Floats
    own: Floats


PER_ARM = 11
PER_DIM = 4
COUNTS = 3
"""Arms played, pulls in all, and whether the mode was lost."""


@scalar
def logistic_memory(arms, dims):
    """Floats in a `Logistic`."""
    return PER_ARM * arms + 3 * arms * dims + dims * dims + PER_DIM * dims + COUNTS + OWN


@scalar
def view_logistic(memory, setting):
    """The parts of the strip, in the order of the record."""
    arms = setting.arms
    dims = setting.dims
    a = PER_ARM * arms
    b = a + 3 * arms * dims
    c = b + dims * dims
    e = c + PER_DIM * dims
    return Logistic(
        memory[:arms],
        memory[arms : 2 * arms],
        memory[2 * arms : 3 * arms],
        memory[3 * arms : 4 * arms],
        memory[4 * arms : 5 * arms],
        memory[5 * arms : 6 * arms],
        memory[6 * arms : 7 * arms],
        memory[7 * arms : 8 * arms],
        memory[8 * arms : 9 * arms],
        memory[9 * arms : 10 * arms],
        memory[10 * arms : 11 * arms],
        memory[a : a + arms * dims],
        memory[a + arms * dims : a + 2 * arms * dims],
        memory[a + 2 * arms * dims : b],
        memory[b:c],
        memory[c : c + dims],
        memory[c + dims : c + 2 * dims],
        memory[c + 2 * dims : c + 3 * dims],
        memory[c + 3 * dims : e],
        memory[e : e + COUNTS],
        memory[e + COUNTS : e + COUNTS + OWN],
    )


@scalar
def start_logistic(state, setting):
    """Forget everything but the prior."""
    turn_features(state.features, state.prior_score, setting)
    for arm in range(setting.arms):
        state.pulls[arm] = 0.0
        state.total[arm] = 0.0
        state.place[arm] = -1.0
        state.score[arm] = state.prior_score[arm]
    for j in range(setting.dims):
        state.estimate[j] = 0.0
        for i in range(setting.dims):
            state.factor[j * setting.dims + i] = 1.0 if i == j else 0.0
    state.counts[0] = 0.0
    state.counts[1] = 0.0
    state.counts[2] = 0.0


@scalar
def sigmoid(score):
    """1 / (1 + exp(-score)) to about 1e-15, in plain arithmetic so that a loop over it becomes vector code.

    exp(t) - 1 from a Taylor series at t / 512, then nine times (1 + q)^2 - 1 = q (2 + q). Scores beyond 40 are as good
    as 40.
    """
    t = min(max(-score, -40.0), 40.0) * (1.0 / 512.0)
    q = t * (
        1.0 + t * (1 / 2 + t * (1 / 6 + t * (1 / 24 + t * (1 / 120 + t * (1 / 720 + t * (1 / 5040 + t / 40320))))))
    )
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    q = q * (2.0 + q)
    return 1.0 / (2.0 + q)


@scalar
def count_pull(state, setting, arm, reward):
    """Count a pull; an arm pulled for the first time joins the played ones. Returns its place among them."""
    arms = setting.arms
    dims = setting.dims
    if state.place[arm] < 0.0:
        new = int(state.counts[0])
        state.place[arm] = new
        state.counts[0] = new + 1.0
        state.seen_pulls[new] = 0.0
        state.seen_total[new] = 0.0
        state.seen_prior[new] = state.prior_score[arm]
        for j in range(dims):
            feature = state.features[j * arms + arm]
            state.seen_by_arm[new * dims + j] = feature
            state.seen_by_dim[j * arms + new] = feature
    place = int(state.place[arm])
    state.pulls[arm] += 1.0
    state.total[arm] += reward
    state.seen_pulls[place] += 1.0
    state.seen_total[place] += reward
    state.counts[1] += 1.0
    return place


@scalar
def look(state, setting):
    """Scores, chances and the gradient of the objective at `estimate`, over the played arms."""
    arms = setting.arms
    dims = setting.dims
    played = int(state.counts[0])
    for place in range(played):
        state.seen_score[place] = state.seen_prior[place]
    for j in range(dims):
        along = state.estimate[j]
        for place in range(played):
            state.seen_score[place] += along * state.seen_by_dim[j * arms + place]
        state.gradient[j] = -along
    for place in range(played):
        state.chance[place] = sigmoid(state.seen_score[place])
    for place in range(played):
        left = state.seen_total[place] - state.seen_pulls[place] * state.chance[place]
        for j in range(dims):
            state.gradient[j] += left * state.seen_by_arm[place * dims + j]


@scalar
def newton_step(state, setting):
    """Put H^-1 gradient into `gain`, by the factor at hand; returns the square of its length in posterior deviations."""
    dims = setting.dims
    for j in range(dims):
        state.gain[j] = 0.0
    square = 0.0
    for i in range(dims):
        along = 0.0
        for j in range(dims):
            along += state.factor[i * dims + j] * state.gradient[j]
        square += along * along
        for j in range(dims):
            state.gain[j] += along * state.factor[i * dims + j]
    return square


@scalar
def build_factor(state, setting):
    """The factor of the Hessian I + sum of pulls chance (1 - chance) x x' at the chances last looked at."""
    dims = setting.dims
    for place in range(dims * dims):
        state.factor[place] = 0.0
    for j in range(dims):
        state.factor[j * dims + j] = 1.0
    for place in range(int(state.counts[0])):
        weight = state.seen_pulls[place] * state.chance[place] * (1.0 - state.chance[place])
        for i in range(dims):
            weighted = weight * state.seen_by_arm[place * dims + i]
            for j in range(dims):
                state.factor[i * dims + j] += weighted * state.seen_by_arm[place * dims + j]
    cholesky(state.factor, dims)
    invert_triangle(state.factor, dims)
    for i in range(dims):
        for j in range(i + 1, dims):
            state.factor[i * dims + j] = 0.0


@scalar
def tolerance(state):
    """How exactly the mode can be known after so many pulls."""
    return TOLERANCE + 1e-14 * state.counts[1]


@scalar
def find_mode(state, setting):
    """Move `estimate` to the mode, from where it is, with the factor at hand; False where it was not found."""
    wanted = tolerance(state)
    last = math.inf
    for _ in range(QUICK):
        look(state, setting)
        error = math.sqrt(newton_step(state, setting))
        if not error <= 0.5 * last:
            break
        for j in range(setting.dims):
            state.estimate[j] += state.gain[j]
        # The next error will be smaller than this one by the rate seen last.
        if error <= 0.1 * wanted or (error < 1e-3 and error * error <= wanted * last):
            return True
        last = error
    return climb(state, setting)


@rare
def climb(state, setting):
    """Newton's method with the exact Hessian; steps are halved until the objective rises by a quarter of what the slope
    promises. The objective is strictly concave with curvature 1 or more, so this converges from anywhere.
    """
    dims = setting.dims
    for _ in range(STEPS):
        look(state, setting)
        build_factor(state, setting)
        square = newton_step(state, setting)
        if not square < math.inf:
            return False
        step = 1.0
        # Close to the mode the full step is right, and the objective is too flat to say so.
        if square > 1e-6:
            before = objective(state, setting, 0.0)
            while step > 1e-12 and not objective(state, setting, step) >= before + 0.25 * step * square:
                step *= 0.5
        for j in range(dims):
            state.estimate[j] += step * state.gain[j]
        if square <= tolerance(state) * tolerance(state):
            return True
    return False


@scalar
def objective(state, setting, step):
    """The logarithm of the posterior at estimate + step gain, up to a constant."""
    dims = setting.dims
    value = 0.0
    for j in range(dims):
        at = state.estimate[j] + step * state.gain[j]
        value -= 0.5 * at * at
    for place in range(int(state.counts[0])):
        score = state.seen_prior[place]
        for j in range(dims):
            score += (state.estimate[j] + step * state.gain[j]) * state.seen_by_arm[place * dims + j]
        value += state.seen_total[place] * score - state.seen_pulls[place] * log_one_plus_exp(score)
    return value


@scalar
def log_one_plus_exp(score):
    """log(1 + e^score) without overflow."""
    return max(score, 0.0) + math.log1p(math.exp(-abs(score)))


@scalar
def update_logistic(state, setting, arm, reward, stream):
    """Learn a reward: the Hessian grows by the pull's own term, the mode moves, and with it every arm's score."""
    dims = setting.dims
    place = count_pull(state, setting, arm, reward)
    chance = sigmoid(state.score[arm])
    root = math.sqrt(chance * (1.0 - chance))
    for i in range(dims):
        along = 0.0
        for j in range(dims):
            along += state.factor[i * dims + j] * state.seen_by_arm[place * dims + j]
        state.turned[i] = root * along
    shrink_factor(state.factor, state.turned, state.gain, dims)
    if not find_mode(state, setting):
        state.counts[2] = 1.0
    score_arms(state, setting)


@scalar
def score_arms(state, setting):
    """Every arm's score at the mode."""
    arms = setting.arms
    for arm in range(arms):
        state.score[arm] = state.prior_score[arm]
    for j in range(setting.dims):
        along = state.estimate[j]
        for arm in range(arms):
            state.score[arm] += along * state.features[j * arms + arm]


class LogisticRegression(Policy):
    """A policy on logistic regression: only `choose` is its own, and it returns NO_MODE where the mode was lost."""

    needs_features: ClassVar[bool] = True
    rewards: ClassVar[str] = "unit"
    faults: ClassVar[dict[int, str]] = {
        NO_MODE: f"the mode of the logistic posterior must be found within {STEPS} Newton steps, but it was not; rescale "
        "the features"
    }
    prior: Any = (0, 1)
    view = staticmethod(view_logistic)
    start = staticmethod(start_logistic)
    update = staticmethod(update_logistic)

    def __post_init__(self) -> None:
        object.__setattr__(self, "prior", gaussian("prior", self.prior))

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        """Numbers that `choose` finds by `own_option`."""
        return ()

    def memory(self, arms: int, dims: int) -> int:
        return int(logistic_memory(arms, dims))

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        mean, root = mean_and_root("prior", self.prior, dims)
        return (1.0, *mean, *root.ravel(), *self.own_options(arms, dims, horizon))
