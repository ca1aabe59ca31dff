"""Policies for arms with features, compared with a plain reference, and the problems that they take."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import kstest

import banditune as bt
from banditune.core.streams import AGENT_STREAM
from banditune.simulation.instances import BLOCK_SIZE, draw_instances
from helpers import feature_policy_reference
from helpers.settings import group_settings
from helpers.statistics import mean_agrees

GAMMAS = (0.0, 0.25, 1.0)
STEPS = 200
HORIZON = 300
FIRST, RUNS = 253, 6
"""Runs from two blocks of instances."""

OPTIONS = {"prior": (0, 1), "noise": 0.5}
POLICIES = {
    "lin_ucb": lambda **options: bt.LinUCB(**OPTIONS | options),
    "lin_ts": lambda **options: bt.LinTS(**OPTIONS | options),
    "ucb_glm": lambda **options: bt.UCBGLM(**OPTIONS | options),
    "glm_tsl": lambda **options: bt.GLMTSL(**{"prior": (0, 1)} | options),
}
PROBLEMS = {"lin_ucb": bt.Linear, "lin_ts": bt.Linear, "ucb_glm": bt.Logistic, "glm_tsl": bt.Logistic}


def make_covariance(size: int, seed: int) -> np.ndarray:
    """A covariance matrix that is not diagonal."""
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T / size + 0.2 * np.eye(size)


FULL = ([0.4, -0.3, 0.2], make_covariance(3, 0))
TABLE = np.random.default_rng(1).normal(size=(8, 3))


def assert_follows_the_reference(name, problem, **options):
    """With and without shortcuts, on several instances and at every gamma. A thinned sampler has only the same law."""
    reference = getattr(feature_policy_reference, f"make_{name}_scores")(**options)
    previous = None
    for shortcut in (False, name != "lin_ts"):
        regrets = bt.simulate(
            POLICIES[name](**options),
            problem,
            GAMMAS,
            horizon=HORIZON,
            runs=RUNS,
            first_instance=FIRST,
            seed=11,
            checkpoints=range(1, STEPS + 1),
            simulation=bt.Simulation(shortcuts=shortcut),
        )
        if previous is not None and (regrets == previous).all():
            continue
        previous = regrets
        for gamma, rows in zip(GAMMAS, regrets, strict=True):
            for run, regret in enumerate(rows, FIRST):
                disagreement = feature_policy_reference.find_disagreement(
                    reference, feature_policy_reference.make_instance(problem, 11, run), gamma, HORIZON, regret
                )
                assert disagreement is None, f"gamma {gamma}, run {run}, shortcut {shortcut}, {disagreement}"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "glm" in name else []) for name in POLICIES]
)
def test_policies_pull_many_arms_as_the_reference_does(name):
    assert_follows_the_reference(name, PROBLEMS[name](arms=20, dims=3))


@pytest.mark.parametrize(
    ("name", "dims"),
    [("lin_ucb", 3), pytest.param("lin_ts", 4, marks=pytest.mark.slow), ("ucb_glm", 3), ("glm_tsl", 3)],
)
def test_policies_pull_fewer_arms_than_features_as_the_reference_does(name, dims):
    assert_follows_the_reference(name, PROBLEMS[name](arms=2, dims=dims))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("lin_ucb", {"noise": 0.3}),
        ("lin_ts", {"noise": 0.3}),
        ("ucb_glm", {"noise": 0.2, "kappa": 0.15}),
        ("glm_tsl", {}),
    ],
)
def test_a_full_prior_gives_the_arms_of_the_reference(name, options):
    problem = PROBLEMS[name](features=TABLE, prior=(FULL[0], make_covariance(3, 2)))
    assert_follows_the_reference(name, problem, prior=FULL, **options)


@pytest.mark.parametrize("name", POLICIES)
def test_a_copy_of_an_arm_is_never_pulled(name):
    """Ties go to the lowest number. A pulled copy would pay other rewards."""
    single, doubled = (PROBLEMS[name](features=table) for table in (TABLE, np.concatenate([TABLE, TABLE])))
    policy = POLICIES[name]()
    arguments = {"horizon": HORIZON, "runs": 20, "regret": "realised", "shortcuts": name != "lin_ts"}
    assert (
        bt.simulate(policy, single, GAMMAS, **group_settings(**arguments))
        == bt.simulate(policy, doubled, GAMMAS, **group_settings(**arguments))
    ).all()


@pytest.mark.parametrize("name", ["lin_ts", "glm_tsl"])
def test_the_reference_samples_its_posterior(name):
    """Scores of unit vectors are theta itself: N(estimate, gamma^2 d posterior covariance)."""
    rng = np.random.default_rng(3)
    gamma, noise, x = 0.7, 0.4, rng.normal(size=(12, 3))
    rewards = (rng.random(12) < 0.5).astype(float)
    history = feature_policy_reference.History(np.eye(3), x, rewards, HORIZON)
    precision = np.linalg.inv(FULL[1])
    if name == "lin_ts":
        scores = feature_policy_reference.make_lin_ts_scores(FULL, noise)
        posterior = np.linalg.inv(precision + x.T @ x / noise**2)
        estimate = posterior @ (precision @ FULL[0] + x.T @ rewards / noise**2)
    else:
        scores = feature_policy_reference.make_glm_tsl_scores(FULL)
        estimate = scores(history, 0.0, None)
        p = feature_policy_reference.compute_logistic(x @ estimate)
        assert np.abs(x.T @ (rewards - p) - precision @ (estimate - FULL[0])).max() < 1e-10
        posterior = np.linalg.inv(precision + x.T @ (x * (p * (1 - p))[:, None]))
    assert np.allclose(scores(history, 0.0, None), estimate, rtol=0, atol=1e-12)
    agent = feature_policy_reference.make_instance(bt.Linear(arms=2, dims=1), 0, 0).stream(AGENT_STREAM)
    draws = np.array([scores(history, gamma, agent) for _ in range(4000)])
    assert_has_moments(draws, estimate, gamma**2 * 3 * posterior)


def assert_has_moments(draws, mean, covariance):
    """Independent vectors, one a row: every mean and every covariance within 4 standard errors."""
    for column in range(draws.shape[1]):
        assert mean_agrees(draws[:, column], mean[column])
        for other_column in range(column + 1):
            assert mean_agrees(
                (draws[:, column] - mean[column]) * (draws[:, other_column] - mean[other_column]),
                covariance[column, other_column],
            )


def draw_problem(problem, blocks=12):
    """Means (instances, arms), and features as (instances or 1, arms, dims)."""
    instances = [draw_instances(problem, 5, block) for block in range(blocks)]
    features = np.concatenate([block.features for block in instances]).swapaxes(1, 2)
    return np.concatenate([block.means for block in instances]), features if len(features) > blocks else features[:1]


def compute_scores(problem, means):
    return np.log(means / (1 - means)) if isinstance(problem, bt.Logistic) else means


def solve_thetas(problem):
    """Theta of every instance, by least squares. The remainder of the scores is rounding."""
    means, features = draw_problem(problem)
    scores = compute_scores(problem, means)
    features = np.broadcast_to(features, (len(means), problem.arms, problem.dims))
    theta = np.linalg.pinv(features) @ scores[:, :, None]
    assert np.abs((features @ theta)[:, :, 0] - scores).max() < 1e-9
    return theta[:, :, 0]


BOTH_PROBLEMS = pytest.mark.parametrize("kind", [bt.Linear, bt.Logistic])


@BOTH_PROBLEMS
def test_scores_of_uniform_features_have_a_ninth_of_the_dimensions_as_variance(kind):
    problem = kind(arms=3, dims=4)
    scores = compute_scores(problem, draw_problem(problem)[0])
    for arm in range(3):
        assert mean_agrees(scores[:, arm], 0)
        assert mean_agrees(scores[:, arm] ** 2, 4 / 9)


@BOTH_PROBLEMS
def test_features_and_theta_are_uniform_by_default(kind):
    problem = kind(arms=6, dims=3)
    _, features = draw_problem(problem)
    assert features.shape == (12 * BLOCK_SIZE, 6, 3)
    for sample in (features.ravel(), *features.reshape(len(features), -1).T, *solve_thetas(problem).T):
        assert kstest(sample, "uniform", (-1, 2)).pvalue > 1e-4
    assert kind(arms=6, dims=3, prior="uniform", feature_prior="uniform") == problem


@BOTH_PROBLEMS
def test_theta_and_all_features_are_independent(kind):
    problem = kind(arms=5, dims=2)
    _, features = draw_problem(problem)
    variables = np.concatenate([features.reshape(len(features), -1), solve_thetas(problem)], axis=1)
    correlations = np.corrcoef(variables.T)[np.triu_indices(12, 1)]
    assert np.abs(correlations).max() < 4 / math.sqrt(len(variables))


@BOTH_PROBLEMS
@pytest.mark.parametrize(
    ("prior", "mean", "covariance"),
    [
        ((0.5, 2), [0.5, 0.5, 0.5], 2 * np.eye(3)),
        (([1, 0, -1], 0.3), [1, 0, -1], 0.3 * np.eye(3)),
        ((-0.5, make_covariance(3, 4).tolist()), [-0.5, -0.5, -0.5], make_covariance(3, 4)),
        ((np.array([1, 0, -2]), make_covariance(3, 4)), [1, 0, -2], make_covariance(3, 4)),
    ],
    ids=["numbers", "vector", "matrix", "both"],
)
def test_a_gaussian_prior_is_the_law_of_theta(kind, prior, mean, covariance):
    assert_has_moments(solve_thetas(kind(arms=7, dims=3, prior=prior)), mean, covariance)


@BOTH_PROBLEMS
def test_a_gaussian_feature_prior_is_the_law_of_every_arms_features(kind):
    _, features = draw_problem(kind(arms=2, dims=3, feature_prior=([1, 0, -2], make_covariance(3, 6))))
    for arm in range(2):
        assert_has_moments(features[:, arm], [1, 0, -2], make_covariance(3, 6))
    assert abs(np.corrcoef(features[:, 0, 0], features[:, 1, 0])[0, 1]) < 4 / math.sqrt(len(features))


@BOTH_PROBLEMS
def test_given_features_are_those_of_every_instance(kind):
    for features in (TABLE, TABLE.tolist(), tuple(map(tuple, TABLE))):
        problem = kind(features=features)
        assert (problem.arms, problem.dims) == TABLE.shape
        assert (draw_instances(problem, 0, 0).features == TABLE.T[None]).all()
        assert problem == kind(features=TABLE, arms=8, dims=3)
    assert kstest(solve_thetas(problem).ravel(), "uniform", (-1, 2)).pvalue > 1e-4


def test_logistic_means_are_the_logistic_function_of_the_scores():
    linear, _ = draw_problem(bt.Linear(arms=4, dims=3, prior=(0, 4)), blocks=1)
    means, _ = draw_problem(bt.Logistic(arms=4, dims=3, prior=(0, 4)), blocks=1)
    assert np.allclose(means, feature_policy_reference.compute_logistic(linear), rtol=1e-14, atol=0)


def test_logistic_means_are_probabilities_for_any_scores():
    means, _ = draw_problem(bt.Logistic(features=[[1e6], [-1e6], [1e-6]]), blocks=1)
    assert ((means >= 0) & (means <= 1)).all()
    assert np.abs(means[:, :2].sum(axis=1) - 1).max() < 1e-12


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_linear_rewards_are_the_mean_plus_normal_noise(noise):
    problem = bt.Linear(arms=3, dims=2, noise=noise)
    for run in (0, 300):
        instance = feature_policy_reference.make_instance(problem, 8, run)
        for arm in range(3):
            noise_of_rewards = (
                np.array([instance.pay(arm, pull) for pull in range(2000)]) - instance.instance.means[arm]
            )
            assert mean_agrees(noise_of_rewards, 0)
            assert mean_agrees(noise_of_rewards**2, noise**2)
            assert kstest(noise_of_rewards / noise, "norm").pvalue > 1e-4


def test_logistic_rewards_are_0_or_1_with_the_mean_as_probability():
    for run in (0, 300):
        instance = feature_policy_reference.make_instance(bt.Logistic(arms=3, dims=2), 8, run)
        for arm in range(3):
            rewards = np.array([instance.pay(arm, pull) for pull in range(2000)])
            assert set(rewards) <= {0.0, 1.0}
            assert mean_agrees(rewards, instance.instance.means[arm])


def read_refusal(make, *arguments, **options) -> str:
    """The message with which a request is refused: one line that states what must hold."""
    with pytest.raises(bt.InvalidRequest) as error:
        make(*arguments, **options)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert ", but " in message
    return message


NAN, INFINITY = math.nan, math.inf


@BOTH_PROBLEMS
@pytest.mark.parametrize("as_given", [list, np.array], ids=["list", "array"])
@pytest.mark.parametrize(
    ("features", "expected"),
    [
        ([[1.0, 2.0], [3.0, NAN], [0.0, 1.0]], "feature 1 of arm 1 is nan"),
        ([[1.0, 2.0], [3.0, 1.0], [-INFINITY, 1.0]], "feature 0 of arm 2 is -inf"),
        ([1.0, 2.0, 3.0], "a row per arm, two arms or more, but got shape (3,)"),
        ([[1.0, 2.0, 3.0]], "a row per arm, two arms or more, but got shape (1, 3)"),
        ([[[1.0, 2.0], [3.0, 4.0]]], "but got shape (1, 2, 2)"),
        ([[1.0, 2.0], [0.0, 0.0], [0.0, 1.0]], "those of arm 1 are all 0"),
        ([[1e60, 2.0], [3.0, 1.0]], "below 1e50, but the largest is 1e+60"),
    ],
)
def test_wrong_features_are_refused(kind, as_given, features, expected):
    message = read_refusal(kind, features=as_given(features))
    assert expected in message
    assert "must" in message


@BOTH_PROBLEMS
@pytest.mark.parametrize(
    "features", [[[1.0, 2.0], [3.0]], [], [[], []], 3.0, "rows", [["a", "b"], ["c", "d"]], {0: [1.0], 1: [2.0]}]
)
def test_features_that_are_no_matrix_are_refused(kind, features):
    assert "`features` must be a matrix with a row per arm" in read_refusal(kind, features=features)


@BOTH_PROBLEMS
def test_contradictory_numbers_of_arms_and_features_are_refused(kind):
    message = read_refusal(kind, features=TABLE, arms=7)
    assert "`arms` must be 8, as in the features of shape (8, 3), but got arms=7" in message
    message = read_refusal(kind, features=TABLE, dims=8)
    assert "`dims` must be 3, as in the features of shape (8, 3), but got dims=8" in message


@BOTH_PROBLEMS
@pytest.mark.parametrize("dims", [0, -1, 2.5, 1001, True, "3"])
def test_wrong_numbers_of_features_are_refused(kind, dims):
    assert f"`1 <= dims <= 1000` must hold, as a whole number, but got dims={dims!r}" in read_refusal(kind, dims=dims)


WRONG_PRIORS = {
    "indefinite": ((0, [[1.0, 2.0], [2.0, 1.0]]), "not positive definite: an eigenvalue is -1"),
    "singular": ((0, [[1.0, 1.0], [1.0, 1.0]]), "not positive definite: an eigenvalue is "),
    "lopsided": ((0, [[1.0, 0.5], [0.4, 1.0]]), "the covariance is not symmetric"),
    "oblong": ((0, [[1.0, 0.5, 0.0], [0.5, 1.0, 0.0]]), "got sizes () and (2, 3)"),
    "unequal": (([0.0, 0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]]), "got sizes (3,) and (2, 2)"),
    "diagonal": ((0, [1.0, 2.0]), "the covariance is "),
    "negative": ((0, -1.0), "the covariance is -1.0"),
    "nothing": ((0, 0), "the covariance is 0"),
    "nan covariance": ((0, [[1.0, NAN], [NAN, 1.0]]), "the covariance is "),
    "nan mean": ((NAN, 1.0), "the mean is nan"),
    "matrix mean": (([[0.0, 0.0], [0.0, 0.0]], 1.0), "the mean is "),
    "word": ("normal", "got 'normal'"),
    "triple": ((0, 1, 2), "got [0, 1, 2]"),
    "word inside": ((0, "wide"), "the covariance is 'wide'"),
}
RECORDS = {
    "linear": lambda prior: bt.Linear(arms=3, dims=2, prior=prior),
    "logistic": lambda prior: bt.Logistic(arms=3, dims=2, prior=prior),
    "features of linear": lambda prior: bt.Linear(arms=3, dims=2, feature_prior=prior),
    "features of logistic": lambda prior: bt.Logistic(arms=3, dims=2, feature_prior=prior),
    **{name: lambda prior, name=name: POLICIES[name](prior=prior) for name in POLICIES},
}


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize("wrong", WRONG_PRIORS)
def test_a_wrong_prior_is_refused(record, wrong):
    prior, expected = WRONG_PRIORS[wrong]
    message = read_refusal(RECORDS[record], prior)
    assert "prior` must be a pair (mean, covariance)" in message
    assert expected in message


@pytest.mark.parametrize("record", RECORDS)
@pytest.mark.parametrize(
    "prior",
    [
        (0, np.array([[1.0, NAN], [NAN, 1.0]])),
        (np.zeros((2, 2)), 1.0),
        (np.full(40, NAN), 1.0),
        np.array([[0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]),
        np.array([0.0, 1.0, 2.0]),
    ],
    ids=["covariance", "matrix mean", "long mean", "table", "triple"],
)
def test_a_wrong_prior_of_arrays_is_refused(record, prior):
    assert "prior` must be a pair (mean, covariance)" in read_refusal(RECORDS[record], prior)


WRONG_SIZES = [([0.0, 0.0], 1.0), (0, [[1.0, 0.5], [0.5, 1.0]]), ([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])]


@BOTH_PROBLEMS
@pytest.mark.parametrize("prior", WRONG_SIZES)
def test_a_prior_of_the_wrong_dimension_is_refused(kind, prior):
    text = "must have 3 dimensions, as many as the features, but it has 2"
    assert f"`prior` {text}" in read_refusal(kind, arms=4, dims=3, prior=prior)
    assert f"`prior` {text}" in read_refusal(kind, features=TABLE[:, :3], prior=prior)
    assert f"`feature_prior` {text}" in read_refusal(kind, arms=4, dims=3, feature_prior=prior)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("prior", WRONG_SIZES)
def test_a_policy_with_a_prior_of_another_dimension_than_the_problem_is_refused(name, prior):
    message = read_refusal(bt.simulate, POLICIES[name](prior=prior), PROBLEMS[name](arms=4, dims=3), horizon=10, runs=1)
    assert "`prior`" in message
    assert "must have 3 dimensions, as many as the features, but it has 2" in message


@pytest.mark.parametrize("name", POLICIES)
def test_policies_with_features_refuse_problems_without_them(name):
    policy = POLICIES[name]()
    message = read_refusal(bt.simulate, policy, bt.Bernoulli(arms=3), horizon=10, runs=1)
    assert f"{policy.name} needs features of arms, but those of the problem 'bernoulli' have none" in message


@pytest.mark.parametrize("name", ["lin_ucb", "lin_ts", "ucb_glm"])
@pytest.mark.parametrize("noise", [0, -1.0, NAN, "loud"])
def test_wrong_noise_is_refused(name, noise):
    for make in (POLICIES[name], bt.Linear):
        message = read_refusal(make, noise=noise)
        assert "`noise" in message
        assert repr(noise) in message


@pytest.mark.parametrize("kappa", [0, -1.0, NAN, "flat"])
def test_wrong_kappas_are_refused(kappa):
    message = read_refusal(POLICIES["ucb_glm"], kappa=kappa)
    assert "`kappa" in message
    assert repr(kappa) in message


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        ("lin_ucb", 1e6),
        pytest.param("lin_ts", 1e6, marks=pytest.mark.slow),
        pytest.param("ucb_glm", 1e4, marks=pytest.mark.slow),
        ("glm_tsl", 1e4),
    ],
)
def test_features_too_large_for_float64_are_refused(name, scale):
    problem = PROBLEMS[name](features=scale * TABLE)
    assert "rescale the features or the prior" in read_refusal(bt.simulate, POLICIES[name](), problem, horizon=10_000)


@pytest.mark.parametrize("name", [pytest.param("ucb_glm", marks=pytest.mark.slow), "glm_tsl"])
def test_the_mode_is_found_under_a_vague_prior(name):
    """Probabilities are 0 or 1 almost everywhere, and one unlikely reward moves the mode far."""
    policy = POLICIES[name](prior=(0, 1e4))
    regrets = bt.simulate(policy, bt.Logistic(features=TABLE, prior=(0, 1)), [0.05], horizon=300, runs=200)
    assert np.isfinite(regrets).all()
