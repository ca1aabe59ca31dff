"""Ridge and logistic regression against NumPy and scikit-learn: estimates, covariances, draws, and rounding."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import banditune as bt
from banditune.core.policy import Setting
from banditune.core.problem import Instance
from banditune.core.scalar import Slot
from banditune.core.streams import Stream
from banditune.policies.glm_tsl import draw_glm_normals, find_best_sample, find_settled_sample, update_glm_tsl
from banditune.policies.ucb_glm import start_ucb_glm, update_ucb_glm, view_ucb_glm
from banditune.problems.residual_noise import draw_gaussian_reward
from banditune.simulation.compilation import compile_kernel
from banditune.simulation.estimators.logistic_mode import refine_mode
from banditune.simulation.estimators.logistic_state import LOST, start_logistic, view_logistic
from banditune.simulation.estimators.ridge_regression import (
    prepare_update,
    sample_scores,
    start_ridge,
    update_ridge,
    view_ridge,
)
from banditune.simulation.instances import draw_instances
from banditune.simulation.kernel_selection import make_constant_function
from banditune.simulation.shortcuts.linucb_active_set import advance_active_set
from banditune.simulation.shortcuts.linucb_epochs import ACTIVE_COUNT, count_active_set_numbers, view_active_set
from conftest import close

dims = Slot("dims")


@bt.kernel.scalar
def setting_for(features, options):
    """What the policies may know."""
    return Setting(features.shape[1], dims(), 1, features, options)


@bt.kernel.scalar
def learned_ridge(floats, setting, pulled, paid):
    """Ridge regression after a history."""
    state = view_ridge(floats, setting)
    start_ridge(state, setting)
    for step in range(len(pulled)):
        update_ridge(state, setting, step, 0, pulled[step], paid[step], 0)
    return state


@bt.kernel.scalar
def learned_for_sampling(floats, setting, pulled, paid):
    """GLM-TSL's memory after a history."""
    state = view_logistic(floats, setting)
    start_logistic(state, setting)
    for step in range(len(pulled)):
        update_glm_tsl(state, setting, step, 0, pulled[step], paid[step], 0)
    return state


def play_ridge(floats, features, options, pulled, paid, score, products):
    """Every arm's score after a history, and x' G^-1 y for all pairs of arms."""
    setting = setting_for(features, options)
    state = learned_ridge(floats, setting, pulled, paid)
    for arm in range(setting.arms):
        score[arm] = state.score[arm]
        products[arm, arm] = state.width[arm] * state.width[arm]
        prepare_update(state, arm)
        for other in range(setting.arms):
            if other != arm:
                products[arm, other] = state.arm_values[other]


def play_logistic(floats, features, options, pulled, paid, theta, lost):
    """The mode after a history, and the widths of UCB-GLM."""
    setting = setting_for(features, options)
    state = view_ucb_glm(floats, setting)
    start_ucb_glm(state, setting)
    for step in range(len(pulled)):
        update_ucb_glm(state, setting, step, 0, pulled[step], paid[step], 0)
    refine_mode(state.logistic)
    for j in range(setting.dims):
        theta[j] = state.logistic.estimate[j]
    lost[0] = state.logistic.counts[LOST]
    for arm in range(setting.arms):
        lost[1 + arm] = state.width[arm]


def play_root(floats, features, options, pulled, paid, columns):
    """What GLM-TSL adds to scores for normals that are unit vectors, at the exact mode."""
    setting = setting_for(features, options)
    state = learned_for_sampling(floats, setting, pulled, paid)
    find_settled_sample(state, setting, 0.0)
    for j in range(setting.dims):
        for i in range(setting.dims):
            state.normals[i] = 1.0 if i == j else 0.0
        find_best_sample(state, setting, 1.0)
        for arm in range(setting.arms):
            columns[arm, j] = state.score[arm]
        find_best_sample(state, setting, 0.0)
        for arm in range(setting.arms):
            columns[arm, j] -= state.score[arm]


def data(arms, dimensions, rounds, seed, *, near=0.0):
    """Features whose first rows are unit vectors and a skewed history; `near` makes the other rows nearly collinear."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (arms, dimensions))
    if near:
        rows = rows[0] + near * rows
    features = np.concatenate([np.eye(dimensions), rows])
    shares = rng.dirichlet(np.full(arms, 0.3))
    pulled = dimensions + rng.choice(arms, rounds, p=shares)
    return features, pulled, rng


def learned(function, policy, features, pulled, paid, *out):
    """Run compiled code on a history."""
    arms, dimensions = features.shape
    options = np.array(policy.options(arms, dimensions, 1000))
    floats = np.zeros(policy.memory(arms, dimensions, 1000))
    compile_kernel(function, {"dims": make_constant_function(dimensions)})(
        floats, np.ascontiguousarray(features.T), options, pulled, paid, *out
    )
    return floats


def ridge_of(policy, features, pulled, paid):
    score, products = np.zeros(len(features)), np.zeros((len(features), len(features)))
    learned(play_ridge, policy, features, pulled, paid, score, products)
    return score, products


@pytest.mark.parametrize("rounds", [0, 1, 40, 2500])
def test_ridge_regression_is_numpys_and_scikit_learns(rounds):
    features, pulled, rng = data(12, 3, rounds, 0)
    paid = features[pulled] @ [0.5, -0.2, 0.9] + 0.3 * rng.normal(size=rounds)
    score, products = ridge_of(bt.LinUCB(prior=(0, 1), noise=0.3), features, pulled, paid)
    x = features[pulled]
    gram = 0.09 * np.eye(3) + x.T @ x
    assert np.allclose(products, features @ np.linalg.solve(gram, features.T), rtol=1e-8, atol=1e-12)
    assert np.allclose(score, features @ np.linalg.solve(gram, x.T @ paid), rtol=1e-8, atol=1e-12)
    if rounds:
        found = Ridge(alpha=0.09, fit_intercept=False, solver="cholesky").fit(x, paid)
        assert np.allclose(score, found.predict(features), rtol=1e-8, atol=1e-10)


def test_ridge_regression_with_a_full_prior_is_the_textbooks_posterior():
    features, pulled, rng = data(12, 3, 700, 1)
    root = rng.normal(size=(3, 3))
    mean, covariance = rng.normal(size=3), root @ root.T + 0.1 * np.eye(3)
    paid = features[pulled] @ mean + rng.normal(size=700)
    score, products = ridge_of(bt.LinUCB(prior=(mean, covariance), noise=0.7), features, pulled, paid)
    x, precision = features[pulled], np.linalg.inv(covariance)
    posterior = np.linalg.inv(precision + x.T @ x / 0.49)
    estimate = posterior @ (precision @ mean + x.T @ paid / 0.49)
    assert np.allclose(0.49 * products, features @ posterior @ features.T, rtol=1e-8, atol=1e-12)
    assert np.allclose(score, features @ estimate, rtol=1e-8, atol=1e-10)


def mode_by_newton(x, paid):
    """The mode of the posterior with prior N(0, I), by Newton's method with halved steps; and its Hessian."""
    theta = np.zeros(x.shape[1])

    def objective(at):
        return paid @ (x @ at) - np.logaddexp(0, x @ at).sum() - at @ at / 2

    for _ in range(200):
        p = 1 / (1 + np.exp(-np.clip(x @ theta, -700, 700)))
        hessian = np.eye(x.shape[1]) + x.T @ (x * (p * (1 - p))[:, None])
        step = np.linalg.solve(hessian, x.T @ (paid - p) - theta)
        share = 1.0
        while objective(theta + share * step) < objective(theta) - 1e-9 and share > 1e-9:
            share /= 2
        theta = theta + share * step
    return theta, hessian


HISTORIES = {
    "mixed": lambda n, rng: (rng.random(n) < 0.6).astype(float),
    "all ones": lambda n, rng: np.ones(n),
    "all zeros": lambda n, rng: np.zeros(n),
    "fractions": lambda n, rng: rng.random(n),
}


@pytest.mark.parametrize("paid_by", HISTORIES)
@pytest.mark.parametrize("rounds", [1, 30, 2500])
def test_the_logistic_mode_is_scikit_learns_and_newtons(rounds, paid_by):
    features, pulled, rng = data(12, 3, rounds, 2)
    paid = HISTORIES[paid_by](rounds, rng)
    assert_mode(features, pulled, paid)
    if paid_by == "mixed" and rounds > 1:
        found = LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000)
        found.fit(features[pulled], paid)
        theta, _ = logistic_of(features, pulled, paid)
        assert np.allclose(theta, found.coef_[0], rtol=1e-6, atol=1e-8)


def logistic_of(features, pulled, paid):
    theta, lost = np.zeros(features.shape[1]), np.zeros(1 + len(features))
    learned(play_logistic, bt.UCBGLM(prior=(0, 1), noise=0.5), features, pulled, paid, theta, lost)
    assert lost[0] == 0
    return theta, lost[1:]


def assert_mode(features, pulled, paid):
    """The mode within 1e-6 and the widths of UCB-GLM within 1e-8 of NumPy's."""
    theta, width = logistic_of(features, pulled, paid)
    x = features[pulled]
    known, hessian = mode_by_newton(x, paid)
    off = theta - known
    assert math.sqrt(off @ hessian @ off) < 1e-7 + 1e-12 * len(paid)
    assert np.allclose(theta, known, rtol=1e-6, atol=1e-7)
    gram = np.eye(x.shape[1]) + x.T @ x
    assert np.allclose(width**2, np.einsum("ij,ij->i", features, np.linalg.solve(gram, features.T).T), rtol=1e-8)


@pytest.mark.parametrize("paid_by", HISTORIES)
@pytest.mark.parametrize("rounds", [1, 30, pytest.param(2500, marks=pytest.mark.slow)])
def test_glm_tsl_draws_with_the_inverse_hessian_of_numpy(rounds, paid_by):
    """Scores of unit vectors move by the columns of a root of H^-1."""
    features, pulled, rng = data(12, 3, rounds, 9)
    paid = HISTORIES[paid_by](rounds, rng)
    columns = np.zeros((len(features), 3))
    learned(play_root, bt.GLMTSL(prior=(0, 1)), features, pulled, paid, columns)
    _, hessian = mode_by_newton(features[pulled], paid)
    assert np.allclose(columns[:3] @ columns[:3].T, np.linalg.inv(hessian), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [pytest.param(1e-3, marks=pytest.mark.slow), 1.0, 30.0])
def test_the_mode_is_found_from_hard_histories(scale):
    """Separable data, one arm pulled 10,000 times, and a turn of fortune after thousands of pulls."""
    features, pulled, rng = data(12, 3, 400, 3)
    features = np.concatenate([features[:3], scale * features[3:]])
    separable = (features[pulled] @ [1.0, -2.0, 0.5] > 0).astype(float)
    assert_mode(features, pulled, separable)
    one = np.full(10_000, 5)
    assert_mode(features, one, np.ones(10_000))
    assert_mode(features, one, (rng.random(10_000) < 0.01).astype(float))
    turn = np.repeat([5, 7], 3000)
    assert_mode(features, turn, np.repeat([1.0, 0.0], 3000))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "run"), [(2, 104), (3, 175)])
def test_rounding_does_not_decide_between_arms_while_the_mode_is_zero(seed, run):
    """After a one and a zero from the first arm the mode is exactly 0: all arms tie, and the first of them is pulled."""
    problem = bt.Logistic(arms=5, dims=3)
    regrets = bt.simulate(
        bt.UCBGLM(prior=(0, 1), noise=0.5),
        problem,
        [0.0],
        horizon=3,
        runs=1,
        first_instance=run,
        seed=seed,
        checkpoints=[1, 2, 3],
    )
    means = draw_instances(problem, seed, 0).means[run]
    lost = means.max() - means[0]
    assert lost > 0.01
    assert np.allclose(regrets, [lost, 2 * lost, 3 * lost], rtol=1e-12)


def sample_linear(floats, features, options, pulled, paid, draws, cursor):
    """Draw every arm's score after a history again and again."""
    setting = setting_for(features, options)
    state = learned_ridge(floats, setting, pulled, paid)
    stream = Stream(17, 4, cursor)
    for row in range(draws.shape[0]):
        sample_scores(state, setting, 0.8, stream)
        for arm in range(setting.arms):
            draws[row, arm] = state.arm_values[arm]


def sample_logistic(floats, features, options, pulled, paid, draws, cursor):
    """Draw every arm's score after a history again and again."""
    setting = setting_for(features, options)
    state = learned_for_sampling(floats, setting, pulled, paid)
    stream = Stream(17, 4, cursor)
    for row in range(draws.shape[0]):
        draw_glm_normals(state, 0.8, stream)
        find_best_sample(state, setting, 0.8)
        for arm in range(setting.arms):
            draws[row, arm] = state.score[arm]


def drawn(function, policy, features, pulled, paid, count=40_000):
    draws = np.zeros((count, len(features)))
    learned(function, policy, features, pulled, paid, draws, np.zeros(4, np.int64))
    return draws[:, : features.shape[1]]


def assert_gaussian(draws, mean, covariance):
    """Every mean, variance and covariance within 4 standard errors."""
    off = draws - mean
    for one in range(len(mean)):
        assert close(draws[:, one], mean[one])
        for other in range(one + 1):
            assert close(off[:, one] * off[:, other], covariance[one, other])


def test_linear_thompson_draws_have_the_mean_and_covariance_of_the_posterior():
    """Scores of unit vectors are theta itself."""
    features, pulled, rng = data(12, 3, 60, 4)
    paid = features[pulled] @ [0.5, -0.2, 0.9] + 0.5 * rng.normal(size=60)
    x = features[pulled]
    inverse = np.linalg.inv(0.25 * np.eye(3) + x.T @ x)
    draws = drawn(sample_linear, bt.LinTS(prior=(0, 1), noise=0.5), features, pulled, paid)
    assert_gaussian(draws, inverse @ x.T @ paid, 0.64 * inverse)


@pytest.mark.slow
def test_glm_tsl_draws_have_the_mode_and_the_inverse_hessian():
    features, pulled, rng = data(12, 3, 60, 5)
    paid = (rng.random(60) < 0.7).astype(float)
    mode, hessian = mode_by_newton(features[pulled], paid)
    draws = drawn(sample_logistic, bt.GLMTSL(prior=(0, 1)), features, pulled, paid)
    assert_gaussian(draws, mode, 0.64 * np.linalg.inv(hessian))


ROUNDS = 100_000


def relative(found, exact):
    """The largest error of products x' G^-1 y, in shares of the roots of x' G^-1 x and y' G^-1 y."""
    width = np.sqrt(np.diag(exact))
    return np.abs((found - exact) / np.outer(width, width)).max()


@pytest.mark.parametrize("near", [0.0, 1e-6])
@pytest.mark.parametrize("dimensions", [1, 3, pytest.param(64, marks=pytest.mark.slow)])
def test_rounding_does_not_pile_up_in_ridge_regression(dimensions, near):
    """Fresh factorisations in float64 differ by less than 1e-6 after 100,000 rounds, on nearly collinear features too."""
    features, pulled, rng = data(40, dimensions, ROUNDS, 6, near=near)
    theta = rng.uniform(-1, 1, dimensions)
    paid = features[pulled] @ theta + 0.5 * rng.normal(size=ROUNDS)
    score, products = ridge_of(bt.LinUCB(prior=(0, 1), noise=0.5), features, pulled, paid)
    counts = np.bincount(pulled, minlength=len(features))
    gram = 0.25 * np.eye(dimensions) + features.T @ (features * counts[:, None])
    estimate = np.linalg.solve(gram, features[pulled].T @ paid)
    assert relative(products, features @ np.linalg.solve(gram, features.T)) < 1e-6
    assert np.abs(score - features @ estimate).max() < 1e-6 * np.abs(features @ estimate).max()


def play_live(floats, integers, features, options, means, noise, cursors, pulls, products, live):
    """LinUCB's shortcut over many rounds; x' G^-1 x of the live arms by what it keeps, and which arms they are."""
    setting = Setting(features.shape[1], dims(), 100_000, features, options)
    agent = Stream(1, 2, cursors[0])
    rewards = Stream(1, 2, cursors[1])
    advance_active_set(
        Instance(means, noise), setting, options[:1], agent, rewards, floats, integers, pulls, 0, 100_000
    )
    field = view_active_set(floats, integers, setting)
    for place in range(field.counts[ACTIVE_COUNT]):
        products[place] = field.active_variance[place]
        live[place] = field.active[place]


@pytest.mark.parametrize("near", [0.0, 1e-6])
@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [3, 64])
def test_rounding_does_not_pile_up_among_live_arms(dimensions, near):
    features, _, rng = data(40, dimensions, 1, 7, near=near)
    arms = len(features)
    options = np.array(bt.LinUCB(prior=(0, 1), noise=0.5).options(arms, dimensions, ROUNDS))
    floats, integers = count_active_set_numbers(arms, dimensions, 1000)
    pulls, products, live = np.zeros(arms, np.int64), np.full(arms, np.nan), np.full(arms, -1)
    compiled = compile_kernel(play_live, {"dims": make_constant_function(dimensions), "reward": draw_gaussian_reward})
    compiled(
        np.zeros(floats),
        np.zeros(integers, np.int64),
        np.ascontiguousarray(features.T),
        options,
        features @ rng.uniform(-1, 1, dimensions),
        np.array([0.5]),
        np.zeros((2, 4), np.int64),
        pulls,
        products,
        live,
    )
    assert pulls.sum() == ROUNDS
    gram = 0.25 * np.eye(dimensions) + features.T @ (features * pulls[:, None])
    found = features[live[live >= 0]]
    exact = np.einsum("ij,ji->i", found, np.linalg.solve(gram, found.T))
    assert len(found) >= 8
    assert np.abs(products[: len(found)] / exact - 1).max() < 1e-6


@pytest.mark.parametrize("near", [0.0, 1e-6])
@pytest.mark.parametrize("dimensions", [3, pytest.param(16, marks=pytest.mark.slow)])
def test_rounding_does_not_pile_up_in_logistic_regression(dimensions, near):
    features, pulled, rng = data(40, dimensions, ROUNDS, 8, near=near)
    chance = 1 / (1 + np.exp(-features @ rng.uniform(-1, 1, dimensions)))
    assert_mode(features, pulled, (rng.random(ROUNDS) < chance[pulled]).astype(float))


def test_a_mode_that_is_not_found_is_a_fault_with_the_step(run_python):
    code = """
import banditune as bt
from banditune.simulation.estimators import logistic_mode
logistic_mode.QUICK_LOOKS = logistic_mode.MAX_NEWTON_STEPS = 0
try:
    bt.simulate(bt.GLMTSL(prior=(0, 1)), bt.Logistic(arms=5, dims=2), horizon=20, runs=1)
except bt.SimulationError as error:
    print(error)
"""
    process = run_python(code, NUMBA_DISABLE_JIT="1")
    assert process.returncode == 0, process.stderr
    assert "the mode of the logistic posterior must be found within" in process.stdout
    assert "at step 1 of run 0" in process.stdout
