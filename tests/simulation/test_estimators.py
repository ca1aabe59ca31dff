"""Ridge and logistic regression, compared with NumPy and scikit-learn: estimates, covariances, draws, rounding."""

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
from banditune.simulation.estimators.logistic_state import MODE_LOST, start_logistic, view_logistic
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
from helpers.statistics import mean_agrees

dims = Slot("dims")


@bt.kernel.scalar
def make_setting(features, options):
    """The setting of a policy, from features and options."""
    return Setting(features.shape[1], dims(), 1, features, options)


@bt.kernel.scalar
def learn_ridge(floats, setting, arms_pulled, paid):
    """Ridge regression on a history."""
    state = view_ridge(floats, setting)
    start_ridge(state, setting)
    for step in range(len(arms_pulled)):
        update_ridge(state, setting, step, 0, arms_pulled[step], paid[step], 0)
    return state


@bt.kernel.scalar
def learn_for_sampling(floats, setting, arms_pulled, paid):
    """The memory of GLM-TSL after a history."""
    state = view_logistic(floats, setting)
    start_logistic(state, setting)
    for step in range(len(arms_pulled)):
        update_glm_tsl(state, setting, step, 0, arms_pulled[step], paid[step], 0)
    return state


def compute_ridge(floats, features, options, arms_pulled, paid, score, products):
    """The score of every arm, and x' G^-1 y for all pairs of arms."""
    setting = make_setting(features, options)
    state = learn_ridge(floats, setting, arms_pulled, paid)
    for arm in range(setting.arms):
        score[arm] = state.score[arm]
        products[arm, arm] = state.width[arm] * state.width[arm]
        prepare_update(state, arm)
        for other in range(setting.arms):
            if other != arm:
                products[arm, other] = state.arm_values[other]


def compute_logistic(floats, features, options, arms_pulled, paid, theta, lost):
    """The mode, and the widths of UCB-GLM."""
    setting = make_setting(features, options)
    state = view_ucb_glm(floats, setting)
    start_ucb_glm(state, setting)
    for step in range(len(arms_pulled)):
        update_ucb_glm(state, setting, step, 0, arms_pulled[step], paid[step], 0)
    refine_mode(state.logistic)
    for j in range(setting.dims):
        theta[j] = state.logistic.estimate[j]
    lost[0] = state.logistic.counts[MODE_LOST]
    for arm in range(setting.arms):
        lost[1 + arm] = state.width[arm]


def compute_root(floats, features, options, arms_pulled, paid, columns):
    """The change of scores for normals that are unit vectors, at the exact mode."""
    setting = make_setting(features, options)
    state = learn_for_sampling(floats, setting, arms_pulled, paid)
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


def make_history(arms, dimensions, rounds, seed, *, near=0.0):
    """Features whose first rows are unit vectors, and a skewed history. `near` makes the other rows nearly collinear."""
    rng = np.random.default_rng(seed)
    rows = rng.uniform(-1, 1, (arms, dimensions))
    if near:
        rows = rows[0] + near * rows
    features = np.concatenate([np.eye(dimensions), rows])
    shares = rng.dirichlet(np.full(arms, 0.3))
    arms_pulled = dimensions + rng.choice(arms, rounds, p=shares)
    return features, arms_pulled, rng


def run_on_history(function, policy, features, arms_pulled, paid, *out):
    """Run compiled code on a history."""
    arms, dimensions = features.shape
    options = np.array(policy.options(arms, dimensions, 1000))
    floats = np.zeros(policy.memory(arms, dimensions, 1000))
    compile_kernel(function, {"dims": make_constant_function(dimensions)})(
        floats, np.ascontiguousarray(features.T), options, arms_pulled, paid, *out
    )
    return floats


def fit_ridge(policy, features, arms_pulled, paid):
    score, products = np.zeros(len(features)), np.zeros((len(features), len(features)))
    run_on_history(compute_ridge, policy, features, arms_pulled, paid, score, products)
    return score, products


@pytest.mark.parametrize("rounds", [0, 1, 40, 2500])
def test_ridge_regression_agrees_with_numpy_and_scikit_learn(rounds):
    features, arms_pulled, rng = make_history(12, 3, rounds, 0)
    paid = features[arms_pulled] @ [0.5, -0.2, 0.9] + 0.3 * rng.normal(size=rounds)
    score, products = fit_ridge(bt.LinUCB(prior=(0, 1), noise=0.3), features, arms_pulled, paid)
    x = features[arms_pulled]
    gram = 0.09 * np.eye(3) + x.T @ x
    assert np.allclose(products, features @ np.linalg.solve(gram, features.T), rtol=1e-8, atol=1e-12)
    assert np.allclose(score, features @ np.linalg.solve(gram, x.T @ paid), rtol=1e-8, atol=1e-12)
    if rounds:
        expected = Ridge(alpha=0.09, fit_intercept=False, solver="cholesky").fit(x, paid)
        assert np.allclose(score, expected.predict(features), rtol=1e-8, atol=1e-10)


def test_ridge_regression_with_a_full_prior_agrees_with_its_posterior():
    features, arms_pulled, rng = make_history(12, 3, 700, 1)
    root = rng.normal(size=(3, 3))
    mean, covariance = rng.normal(size=3), root @ root.T + 0.1 * np.eye(3)
    paid = features[arms_pulled] @ mean + rng.normal(size=700)
    score, products = fit_ridge(bt.LinUCB(prior=(mean, covariance), noise=0.7), features, arms_pulled, paid)
    x, precision = features[arms_pulled], np.linalg.inv(covariance)
    posterior = np.linalg.inv(precision + x.T @ x / 0.49)
    estimate = posterior @ (precision @ mean + x.T @ paid / 0.49)
    assert np.allclose(0.49 * products, features @ posterior @ features.T, rtol=1e-8, atol=1e-12)
    assert np.allclose(score, features @ estimate, rtol=1e-8, atol=1e-10)


def find_mode(x, rewards):
    """The mode of the posterior with prior N(0, I) by Newton's method with halved steps, and its Hessian."""
    theta = np.zeros(x.shape[1])

    def objective(point):
        return rewards @ (x @ point) - np.logaddexp(0, x @ point).sum() - point @ point / 2

    for _ in range(200):
        p = 1 / (1 + np.exp(-np.clip(x @ theta, -700, 700)))
        hessian = np.eye(x.shape[1]) + x.T @ (x * (p * (1 - p))[:, None])
        step = np.linalg.solve(hessian, x.T @ (rewards - p) - theta)
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


@pytest.mark.parametrize("reward_kind", HISTORIES)
@pytest.mark.parametrize("rounds", [1, 30, 2500])
def test_the_logistic_mode_agrees_with_scikit_learn_and_newton(rounds, reward_kind):
    features, arms_pulled, rng = make_history(12, 3, rounds, 2)
    paid = HISTORIES[reward_kind](rounds, rng)
    assert_mode(features, arms_pulled, paid)
    if reward_kind == "mixed" and rounds > 1:
        expected = LogisticRegression(C=1.0, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1000)
        expected.fit(features[arms_pulled], paid)
        theta, _ = fit_logistic(features, arms_pulled, paid)
        assert np.allclose(theta, expected.coef_[0], rtol=1e-6, atol=1e-8)


def fit_logistic(features, arms_pulled, paid):
    theta, lost = np.zeros(features.shape[1]), np.zeros(1 + len(features))
    run_on_history(compute_logistic, bt.UCBGLM(prior=(0, 1), noise=0.5), features, arms_pulled, paid, theta, lost)
    assert lost[0] == 0
    return theta, lost[1:]


def assert_mode(features, arms_pulled, paid):
    """The mode agrees with NumPy to 1e-6, and the widths of UCB-GLM to 1e-8."""
    theta, width = fit_logistic(features, arms_pulled, paid)
    x = features[arms_pulled]
    expected, hessian = find_mode(x, paid)
    difference = theta - expected
    assert math.sqrt(difference @ hessian @ difference) < 1e-7 + 1e-12 * len(paid)
    assert np.allclose(theta, expected, rtol=1e-6, atol=1e-7)
    gram = np.eye(x.shape[1]) + x.T @ x
    assert np.allclose(width**2, np.einsum("ij,ij->i", features, np.linalg.solve(gram, features.T).T), rtol=1e-8)


@pytest.mark.parametrize("reward_kind", HISTORIES)
@pytest.mark.parametrize("rounds", [1, 30, pytest.param(2500, marks=pytest.mark.slow)])
def test_glm_tsl_draws_with_the_inverse_hessian(rounds, reward_kind):
    """Scores of unit vectors move by the columns of a root of H^-1."""
    features, arms_pulled, rng = make_history(12, 3, rounds, 9)
    paid = HISTORIES[reward_kind](rounds, rng)
    columns = np.zeros((len(features), 3))
    run_on_history(compute_root, bt.GLMTSL(prior=(0, 1)), features, arms_pulled, paid, columns)
    _, hessian = find_mode(features[arms_pulled], paid)
    assert np.allclose(columns[:3] @ columns[:3].T, np.linalg.inv(hessian), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("scale", [pytest.param(1e-3, marks=pytest.mark.slow), 1.0, 30.0])
def test_the_mode_is_found_for_hard_histories(scale):
    """Separable data, one arm pulled 10,000 times, and rewards that change after thousands of pulls."""
    features, arms_pulled, rng = make_history(12, 3, 400, 3)
    features = np.concatenate([features[:3], scale * features[3:]])
    separable = (features[arms_pulled] @ [1.0, -2.0, 0.5] > 0).astype(float)
    assert_mode(features, arms_pulled, separable)
    single_arm = np.full(10_000, 5)
    assert_mode(features, single_arm, np.ones(10_000))
    assert_mode(features, single_arm, (rng.random(10_000) < 0.01).astype(float))
    changing = np.repeat([5, 7], 3000)
    assert_mode(features, changing, np.repeat([1.0, 0.0], 3000))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "run"), [(2, 104), (3, 175)])
def test_rounding_does_not_decide_between_arms_while_the_mode_is_zero(seed, run):
    """After a one and a zero from the first arm, the mode is exactly 0. All arms tie, and the first is pulled."""
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
    gap = means.max() - means[0]
    assert gap > 0.01
    assert np.allclose(regrets, [gap, 2 * gap, 3 * gap], rtol=1e-12)


def sample_linear(floats, features, options, arms_pulled, paid, draws, cursor):
    """Draw the score of every arm many times."""
    setting = make_setting(features, options)
    state = learn_ridge(floats, setting, arms_pulled, paid)
    stream = Stream(17, 4, cursor)
    for row in range(draws.shape[0]):
        sample_scores(state, setting, 0.8, stream)
        for arm in range(setting.arms):
            draws[row, arm] = state.arm_values[arm]


def sample_logistic(floats, features, options, arms_pulled, paid, draws, cursor):
    """Draw the score of every arm many times."""
    setting = make_setting(features, options)
    state = learn_for_sampling(floats, setting, arms_pulled, paid)
    stream = Stream(17, 4, cursor)
    for row in range(draws.shape[0]):
        draw_glm_normals(state, 0.8, stream)
        find_best_sample(state, setting, 0.8)
        for arm in range(setting.arms):
            draws[row, arm] = state.score[arm]


def draw(function, policy, features, arms_pulled, paid, count=40_000):
    draws = np.zeros((count, len(features)))
    run_on_history(function, policy, features, arms_pulled, paid, draws, np.zeros(4, np.int64))
    return draws[:, : features.shape[1]]


def assert_gaussian(draws, mean, covariance):
    """Every mean, variance and covariance within 4 standard errors."""
    deviations = draws - mean
    for column in range(len(mean)):
        assert mean_agrees(draws[:, column], mean[column])
        for other_column in range(column + 1):
            assert mean_agrees(deviations[:, column] * deviations[:, other_column], covariance[column, other_column])


def test_linear_thompson_draws_have_the_mean_and_covariance_of_the_posterior():
    """Scores of unit vectors are theta itself."""
    features, arms_pulled, rng = make_history(12, 3, 60, 4)
    paid = features[arms_pulled] @ [0.5, -0.2, 0.9] + 0.5 * rng.normal(size=60)
    x = features[arms_pulled]
    inverse = np.linalg.inv(0.25 * np.eye(3) + x.T @ x)
    draws = draw(sample_linear, bt.LinTS(prior=(0, 1), noise=0.5), features, arms_pulled, paid)
    assert_gaussian(draws, inverse @ x.T @ paid, 0.64 * inverse)


@pytest.mark.slow
def test_glm_tsl_draws_have_the_mode_and_the_inverse_hessian():
    features, arms_pulled, rng = make_history(12, 3, 60, 5)
    paid = (rng.random(60) < 0.7).astype(float)
    mode, hessian = find_mode(features[arms_pulled], paid)
    draws = draw(sample_logistic, bt.GLMTSL(prior=(0, 1)), features, arms_pulled, paid)
    assert_gaussian(draws, mode, 0.64 * np.linalg.inv(hessian))


ROUNDS = 100_000


def compute_relative_error(products, exact):
    """The largest error of products x' G^-1 y, in units of the roots of x' G^-1 x and y' G^-1 y."""
    width = np.sqrt(np.diag(exact))
    return np.abs((products - exact) / np.outer(width, width)).max()


@pytest.mark.parametrize("near", [0.0, 1e-6])
@pytest.mark.parametrize("dimensions", [1, 3, pytest.param(64, marks=pytest.mark.slow)])
def test_rounding_does_not_accumulate_in_ridge_regression(dimensions, near):
    """Factorisations in float64 differ by less than 1e-6 after 100,000 rounds, with nearly collinear features too."""
    features, arms_pulled, rng = make_history(40, dimensions, ROUNDS, 6, near=near)
    theta = rng.uniform(-1, 1, dimensions)
    paid = features[arms_pulled] @ theta + 0.5 * rng.normal(size=ROUNDS)
    score, products = fit_ridge(bt.LinUCB(prior=(0, 1), noise=0.5), features, arms_pulled, paid)
    counts = np.bincount(arms_pulled, minlength=len(features))
    gram = 0.25 * np.eye(dimensions) + features.T @ (features * counts[:, None])
    estimate = np.linalg.solve(gram, features[arms_pulled].T @ paid)
    assert compute_relative_error(products, features @ np.linalg.solve(gram, features.T)) < 1e-6
    assert np.abs(score - features @ estimate).max() < 1e-6 * np.abs(features @ estimate).max()


def run_active_set(floats, integers, features, options, means, noise, cursors, pulls, products, active):
    """LinUCB's shortcut over many rounds: the active arms and their x' G^-1 x."""
    setting = Setting(features.shape[1], dims(), 100_000, features, options)
    agent = Stream(1, 2, cursors[0])
    rewards = Stream(1, 2, cursors[1])
    advance_active_set(
        Instance(means, noise), setting, options[:1], agent, rewards, floats, integers, pulls, 0, 100_000
    )
    state = view_active_set(floats, integers, setting)
    for index in range(state.counts[ACTIVE_COUNT]):
        products[index] = state.active_variance[index]
        active[index] = state.active[index]


@pytest.mark.parametrize("near", [0.0, 1e-6])
@pytest.mark.slow
@pytest.mark.parametrize("dimensions", [3, 64])
def test_rounding_does_not_accumulate_in_the_active_set(dimensions, near):
    features, _, rng = make_history(40, dimensions, 1, 7, near=near)
    arms = len(features)
    options = np.array(bt.LinUCB(prior=(0, 1), noise=0.5).options(arms, dimensions, ROUNDS))
    floats, integers = count_active_set_numbers(arms, dimensions, 1000)
    pulls, products, active = np.zeros(arms, np.int64), np.full(arms, np.nan), np.full(arms, -1)
    compiled = compile_kernel(
        run_active_set, {"dims": make_constant_function(dimensions), "reward": draw_gaussian_reward}
    )
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
        active,
    )
    assert pulls.sum() == ROUNDS
    gram = 0.25 * np.eye(dimensions) + features.T @ (features * pulls[:, None])
    active_features = features[active[active >= 0]]
    exact = np.einsum("ij,ji->i", active_features, np.linalg.solve(gram, active_features.T))
    assert len(active_features) >= 8
    assert np.abs(products[: len(active_features)] / exact - 1).max() < 1e-6


@pytest.mark.parametrize("near", [0.0, 1e-6])
@pytest.mark.parametrize("dimensions", [3, pytest.param(16, marks=pytest.mark.slow)])
def test_rounding_does_not_accumulate_in_logistic_regression(dimensions, near):
    features, arms_pulled, rng = make_history(40, dimensions, ROUNDS, 8, near=near)
    probabilities = 1 / (1 + np.exp(-features @ rng.uniform(-1, 1, dimensions)))
    assert_mode(features, arms_pulled, (rng.random(ROUNDS) < probabilities[arms_pulled]).astype(float))


def test_a_mode_that_is_not_found_is_an_error_with_the_step(run_python):
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
