"""Arms with features: policies pull the arms of a slow reference, instances have their laws, bad requests a sentence."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import kstest

import banditune as bt
from banditune.core.streams import AGENT_STREAM
from banditune.simulation.instances import BLOCK_SIZE, draw_instances
from conftest import close
from helpers import structured
from helpers.settings import group_settings

GAMMAS = (0.0, 0.25, 1.0)
STEPS = 200
HORIZON = 300
FIRST, RUNS = 253, 6
"""Runs from two blocks of instances."""

USUAL = {"prior": (0, 1), "noise": 0.5}
POLICIES = {
    "lin_ucb": lambda **options: bt.LinUCB(**USUAL | options),
    "lin_ts": lambda **options: bt.LinTS(**USUAL | options),
    "ucb_glm": lambda **options: bt.UCBGLM(**USUAL | options),
    "glm_tsl": lambda **options: bt.GLMTSL(**{"prior": (0, 1)} | options),
}
PROBLEMS = {"lin_ucb": bt.Linear, "lin_ts": bt.Linear, "ucb_glm": bt.Logistic, "glm_tsl": bt.Logistic}


def spread(size: int, seed: int) -> np.ndarray:
    """A covariance matrix with nothing simple about it."""
    root = np.random.default_rng(seed).normal(size=(size, size))
    return root @ root.T / size + 0.2 * np.eye(size)


FULL = ([0.4, -0.3, 0.2], spread(3, 0))
TABLE = np.random.default_rng(1).normal(size=(8, 3))


def assert_follows_the_reference(name, problem, **options):
    """With and without shortcuts, on several instances and at every gamma; a lazy sampler has only the law."""
    reference = getattr(structured, name)(**options)
    seen = None
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
        if seen is not None and (regrets == seen).all():
            continue
        seen = regrets
        for gamma, rows in zip(GAMMAS, regrets, strict=True):
            for run, regret in enumerate(rows, FIRST):
                found = structured.disagreement(reference, structured.world(problem, 11, run), gamma, HORIZON, regret)
                assert found is None, f"gamma {gamma}, run {run}, shortcut {shortcut}, {found}"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if "glm" in name else []) for name in POLICIES]
)
def test_many_arms_are_pulled_as_in_the_reference(name):
    assert_follows_the_reference(name, PROBLEMS[name](arms=20, dims=3))


@pytest.mark.parametrize(
    ("name", "dims"),
    [("lin_ucb", 3), pytest.param("lin_ts", 4, marks=pytest.mark.slow), ("ucb_glm", 3), ("glm_tsl", 3)],
)
def test_fewer_arms_than_features_are_pulled_as_in_the_reference(name, dims):
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
def test_a_full_prior_is_used_as_in_the_reference(name, options):
    problem = PROBLEMS[name](features=TABLE, prior=(FULL[0], spread(3, 2)))
    assert_follows_the_reference(name, problem, prior=FULL, **options)


@pytest.mark.parametrize("name", POLICIES)
def test_a_copy_of_an_arm_with_a_higher_number_is_never_pulled(name):
    """Ties go to the lowest number: a pulled copy would pay other rewards."""
    once, twice = (PROBLEMS[name](features=table) for table in (TABLE, np.concatenate([TABLE, TABLE])))
    policy = POLICIES[name]()
    arguments = {"horizon": HORIZON, "runs": 20, "regret": "realised", "shortcut": name != "lin_ts"}
    assert (
        bt.simulate(policy, once, GAMMAS, **group_settings(**arguments))
        == bt.simulate(policy, twice, GAMMAS, **group_settings(**arguments))
    ).all()


@pytest.mark.parametrize("name", ["lin_ts", "glm_tsl"])
def test_the_reference_samples_the_posterior_it_is_defined_by(name):
    """Scores of unit vectors are theta itself: N(estimate, gamma^2 d posterior covariance)."""
    rng = np.random.default_rng(3)
    gamma, noise, x = 0.7, 0.4, rng.normal(size=(12, 3))
    paid = (rng.random(12) < 0.5).astype(float)
    known = structured.Known(np.eye(3), x, paid, HORIZON)
    precision = np.linalg.inv(FULL[1])
    if name == "lin_ts":
        scores = structured.lin_ts(FULL, noise)
        posterior = np.linalg.inv(precision + x.T @ x / noise**2)
        estimate = posterior @ (precision @ FULL[0] + x.T @ paid / noise**2)
    else:
        scores = structured.glm_tsl(FULL)
        estimate = scores(known, 0.0, None)
        p = structured.logistic(x @ estimate)
        assert np.abs(x.T @ (paid - p) - precision @ (estimate - FULL[0])).max() < 1e-10
        posterior = np.linalg.inv(precision + x.T @ (x * (p * (1 - p))[:, None]))
    assert np.allclose(scores(known, 0.0, None), estimate, rtol=0, atol=1e-12)
    agent = structured.world(bt.Linear(arms=2, dims=1), 0, 0).stream(AGENT_STREAM)
    draws = np.array([scores(known, gamma, agent) for _ in range(4000)])
    assert_has_moments(draws, estimate, gamma**2 * 3 * posterior)


def assert_has_moments(draws, mean, covariance):
    """Independent vectors, a row each: every mean and every covariance within 4 standard errors."""
    for one in range(draws.shape[1]):
        assert close(draws[:, one], mean[one])
        for other in range(one + 1):
            assert close((draws[:, one] - mean[one]) * (draws[:, other] - mean[other]), covariance[one, other])


def drawn(problem, blocks=12):
    """Means (instances, arms), and features as (instances or 1, arms, dims)."""
    found = [draw_instances(problem, 5, block) for block in range(blocks)]
    features = np.concatenate([block.features for block in found]).swapaxes(1, 2)
    return np.concatenate([block.means for block in found]), features if len(features) > blocks else features[:1]


def scores_of(problem, means):
    return np.log(means / (1 - means)) if isinstance(problem, bt.Logistic) else means


def thetas(problem):
    """Theta of every instance, by least squares; what it leaves of the scores is rounding."""
    means, features = drawn(problem)
    scores = scores_of(problem, means)
    features = np.broadcast_to(features, (len(means), problem.arms, problem.dims))
    found = np.linalg.pinv(features) @ scores[:, :, None]
    assert np.abs((features @ found)[:, :, 0] - scores).max() < 1e-9
    return found[:, :, 0]


BOTH = pytest.mark.parametrize("kind", [bt.Linear, bt.Logistic])


@BOTH
def test_uniform_features_and_theta_make_scores_with_variance_a_ninth_of_the_dimensions(kind):
    problem = kind(arms=3, dims=4)
    scores = scores_of(problem, drawn(problem)[0])
    for arm in range(3):
        assert close(scores[:, arm], 0)
        assert close(scores[:, arm] ** 2, 4 / 9)


@BOTH
def test_features_and_theta_are_uniform_unless_told_otherwise(kind):
    problem = kind(arms=6, dims=3)
    _, features = drawn(problem)
    assert features.shape == (12 * BLOCK_SIZE, 6, 3)
    for sample in (features.ravel(), *features.reshape(len(features), -1).T, *thetas(problem).T):
        assert kstest(sample, "uniform", (-1, 2)).pvalue > 1e-4
    assert kind(arms=6, dims=3, prior="uniform", feature_prior="uniform") == problem


@BOTH
def test_theta_and_all_features_are_independent(kind):
    problem = kind(arms=5, dims=2)
    _, features = drawn(problem)
    both = np.concatenate([features.reshape(len(features), -1), thetas(problem)], axis=1)
    off = np.corrcoef(both.T)[np.triu_indices(12, 1)]
    assert np.abs(off).max() < 4 / math.sqrt(len(both))


@BOTH
@pytest.mark.parametrize(
    ("prior", "mean", "covariance"),
    [
        ((0.5, 2), [0.5, 0.5, 0.5], 2 * np.eye(3)),
        (([1, 0, -1], 0.3), [1, 0, -1], 0.3 * np.eye(3)),
        ((-0.5, spread(3, 4).tolist()), [-0.5, -0.5, -0.5], spread(3, 4)),
        ((np.array([1, 0, -2]), spread(3, 4)), [1, 0, -2], spread(3, 4)),
    ],
    ids=["numbers", "vector", "matrix", "both"],
)
def test_a_gaussian_prior_is_the_law_of_theta(kind, prior, mean, covariance):
    assert_has_moments(thetas(kind(arms=7, dims=3, prior=prior)), mean, covariance)


@BOTH
def test_a_gaussian_feature_prior_is_the_law_of_every_arms_features(kind):
    _, features = drawn(kind(arms=2, dims=3, feature_prior=([1, 0, -2], spread(3, 6))))
    for arm in range(2):
        assert_has_moments(features[:, arm], [1, 0, -2], spread(3, 6))
    assert abs(np.corrcoef(features[:, 0, 0], features[:, 1, 0])[0, 1]) < 4 / math.sqrt(len(features))


@BOTH
def test_given_features_are_used_as_they_are_on_every_instance(kind):
    for given in (TABLE, TABLE.tolist(), tuple(map(tuple, TABLE))):
        problem = kind(features=given)
        assert (problem.arms, problem.dims) == TABLE.shape
        assert (draw_instances(problem, 0, 0).features == TABLE.T[None]).all()
        assert problem == kind(features=TABLE, arms=8, dims=3)
    assert kstest(thetas(problem).ravel(), "uniform", (-1, 2)).pvalue > 1e-4


def test_logistic_means_are_the_logistic_function_of_the_scores():
    linear, _ = drawn(bt.Linear(arms=4, dims=3, prior=(0, 4)), blocks=1)
    means, _ = drawn(bt.Logistic(arms=4, dims=3, prior=(0, 4)), blocks=1)
    assert np.allclose(means, structured.logistic(linear), rtol=1e-14, atol=0)


def test_logistic_means_stay_chances_however_large_the_scores():
    means, _ = drawn(bt.Logistic(features=[[1e6], [-1e6], [1e-6]]), blocks=1)
    assert ((means >= 0) & (means <= 1)).all()
    assert np.abs(means[:, :2].sum(axis=1) - 1).max() < 1e-12


@pytest.mark.parametrize("noise", [0.5, 2.0])
def test_linear_rewards_are_the_mean_plus_normal_noise(noise):
    problem = bt.Linear(arms=3, dims=2, noise=noise)
    for run in (0, 300):
        place = structured.world(problem, 8, run)
        for arm in range(3):
            rest = np.array([place.pay(arm, pull) for pull in range(2000)]) - place.instance.means[arm]
            assert close(rest, 0)
            assert close(rest**2, noise**2)
            assert kstest(rest / noise, "norm").pvalue > 1e-4


def test_logistic_rewards_are_0_or_1_with_the_mean_as_chance():
    for run in (0, 300):
        place = structured.world(bt.Logistic(arms=3, dims=2), 8, run)
        for arm in range(3):
            paid = np.array([place.pay(arm, pull) for pull in range(2000)])
            assert set(paid) <= {0.0, 1.0}
            assert close(paid, place.instance.means[arm])


def refusal(make, *arguments, **options) -> str:
    """The sentence with which a request is refused: one line that says what must hold."""
    with pytest.raises(bt.InvalidRequest) as error:
        make(*arguments, **options)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith(".")
    assert ", but " in message
    return message


NAN, INFINITY = math.nan, math.inf


@BOTH
@pytest.mark.parametrize("as_given", [list, np.array], ids=["list", "array"])
@pytest.mark.parametrize(
    ("features", "told"),
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
def test_bad_features_are_refused_in_a_sentence(kind, as_given, features, told):
    message = refusal(kind, features=as_given(features))
    assert told in message
    assert "must" in message


@BOTH
@pytest.mark.parametrize(
    "features", [[[1.0, 2.0], [3.0]], [], [[], []], 3.0, "rows", [["a", "b"], ["c", "d"]], {0: [1.0], 1: [2.0]}]
)
def test_features_that_are_no_matrix_are_refused_in_a_sentence(kind, features):
    assert "`features` must be a matrix with a row per arm" in refusal(kind, features=features)


@BOTH
def test_numbers_of_arms_and_features_that_contradict_the_features_are_refused(kind):
    message = refusal(kind, features=TABLE, arms=7)
    assert "`arms` must be 8, as in the features of shape (8, 3), but got arms=7" in message
    message = refusal(kind, features=TABLE, dims=8)
    assert "`dims` must be 3, as in the features of shape (8, 3), but got dims=8" in message


@BOTH
@pytest.mark.parametrize("dims", [0, -1, 2.5, 1001, True, "3"])
def test_numbers_of_features_that_are_none_are_refused(kind, dims):
    assert f"`1 <= dims <= 1000` must hold, as a whole number, but got dims={dims!r}" in refusal(kind, dims=dims)


BAD_PRIORS = {
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
MAKERS = {
    "linear": lambda prior: bt.Linear(arms=3, dims=2, prior=prior),
    "logistic": lambda prior: bt.Logistic(arms=3, dims=2, prior=prior),
    "features of linear": lambda prior: bt.Linear(arms=3, dims=2, feature_prior=prior),
    "features of logistic": lambda prior: bt.Logistic(arms=3, dims=2, feature_prior=prior),
    **{name: lambda prior, name=name: POLICIES[name](prior=prior) for name in POLICIES},
}


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("bad", BAD_PRIORS)
def test_a_prior_that_is_no_gaussian_is_refused_in_a_sentence(maker, bad):
    prior, told = BAD_PRIORS[bad]
    message = refusal(MAKERS[maker], prior)
    assert "prior` must be a pair (mean, covariance)" in message
    assert told in message


@pytest.mark.parametrize("maker", MAKERS)
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
def test_a_prior_of_arrays_that_is_no_gaussian_is_refused_on_one_line(maker, prior):
    assert "prior` must be a pair (mean, covariance)" in refusal(MAKERS[maker], prior)


WRONG_SIZES = [([0.0, 0.0], 1.0), (0, [[1.0, 0.5], [0.5, 1.0]]), ([0.0, 0.0], [[1.0, 0.5], [0.5, 1.0]])]


@BOTH
@pytest.mark.parametrize("prior", WRONG_SIZES)
def test_a_prior_of_the_wrong_dimension_is_refused(kind, prior):
    text = "must have 3 dimensions, as many as the features, but it has 2"
    assert f"`prior` {text}" in refusal(kind, arms=4, dims=3, prior=prior)
    assert f"`prior` {text}" in refusal(kind, features=TABLE[:, :3], prior=prior)
    assert f"`feature_prior` {text}" in refusal(kind, arms=4, dims=3, feature_prior=prior)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("prior", WRONG_SIZES)
def test_a_policys_prior_of_the_wrong_dimension_for_the_problem_is_refused(name, prior):
    message = refusal(bt.simulate, POLICIES[name](prior=prior), PROBLEMS[name](arms=4, dims=3), horizon=10, runs=1)
    assert "`prior`" in message
    assert "must have 3 dimensions, as many as the features, but it has 2" in message


@pytest.mark.parametrize("name", POLICIES)
def test_a_problem_without_features_is_refused_to_a_policy_that_needs_them(name):
    policy = POLICIES[name]()
    message = refusal(bt.simulate, policy, bt.Bernoulli(arms=3), horizon=10, runs=1)
    assert f"{policy.name} needs features of arms, but those of the problem 'bernoulli' have none" in message


@pytest.mark.parametrize("name", ["lin_ucb", "lin_ts", "ucb_glm"])
@pytest.mark.parametrize("noise", [0, -1.0, NAN, "loud"])
def test_noise_that_is_no_positive_number_is_refused(name, noise):
    for make in (POLICIES[name], bt.Linear):
        message = refusal(make, noise=noise)
        assert "`noise" in message
        assert repr(noise) in message


@pytest.mark.parametrize("kappa", [0, -1.0, NAN, "flat"])
def test_a_kappa_that_is_no_positive_number_is_refused(kappa):
    message = refusal(POLICIES["ucb_glm"], kappa=kappa)
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
    assert "rescale the features or the prior" in refusal(bt.simulate, POLICIES[name](), problem, horizon=10_000)


@pytest.mark.parametrize("name", [pytest.param("ucb_glm", marks=pytest.mark.slow), "glm_tsl"])
def test_the_mode_is_found_under_a_vague_prior(name):
    """Chances are 0 or 1 almost everywhere; a surprise moves the mode far."""
    policy = POLICIES[name](prior=(0, 1e4))
    regrets = bt.simulate(policy, bt.Logistic(features=TABLE, prior=(0, 1)), [0.05], horizon=300, runs=200)
    assert np.isfinite(regrets).all()
