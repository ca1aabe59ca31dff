"""Checks of a user's problem: instances depend on the seed, rewards on their stream, and means are as stated."""

from __future__ import annotations

from collections import OrderedDict

import numpy as np
import pytest
from scipy.stats import norm

import banditune as bt
from banditune.simulation import problem_checks
from banditune.simulation.instances import draw_instances
from banditune.simulation.mean_test import (
    BET_SIZES,
    DeviationSums,
    check_stated_means,
    compute_log_wealth,
    is_mean_refuted,
    resolve_doubtful_errors,
)
from banditune.simulation.problem_checks import check_custom_problem, check_policy_and_problem
from banditune.simulation.spec import SimulationSpec
from helpers.user_code import USER_PROBLEM

HORIZON = 1000


def define_problem(sample, reward, arms=3, **options):
    return bt.define_problem("mine", sample, reward, arms=arms, **options)


def check_problem(define_problem, **options):
    check_policy_and_problem(SimulationSpec(bt.UCB1(noise=0.5), define_problem, HORIZON, **options))


def assert_means_accepted(define_problem, horizon=HORIZON, **options):
    """The check draws rewards and accepts the stated means."""
    test = check_custom_problem(SimulationSpec(bt.UCB1(noise=0.5), define_problem, horizon, **options))
    assert test is not None, "the means were not tested"
    assert test.reward_count > 10_000
    assert np.isfinite(test.drawn_mean)


def uniform_means(size, rng):
    return rng.random((size, 3))


def normal_means(size, rng):
    return rng.normal(size=(size, 3))


@bt.kernel.scalar
def pay_with_noise(instance, arm, pull, step, stream):
    return instance.means[arm] + bt.kernel.normal(stream)


GLOBAL_RNG = np.random.default_rng(0)


def test_a_sample_with_its_own_generator_is_refused():
    defined = define_problem(lambda size, rng: GLOBAL_RNG.random((size, 3)), pay_with_noise)
    with pytest.raises(bt.InvalidRequest, match=r"'mine' must draw only from `rng`, .* use methods such as rng.random"):
        bt.simulate(bt.Greedy(), defined, horizon=10, runs=5)


def test_features_that_are_not_drawn_from_rng_are_refused():
    defined = define_problem(
        lambda size, rng: (rng.random((size, 3)), GLOBAL_RNG.random((size, 3, 2))), pay_with_noise, dims=2
    )
    with pytest.raises(bt.InvalidRequest, match="must draw only from `rng`"):
        check_problem(defined)


def test_a_sample_with_its_own_seed_is_refused():
    defined = define_problem(lambda size, rng: np.random.default_rng(0).random((size, 3)), pay_with_noise)
    with pytest.raises(bt.InvalidRequest, match=r"drew the same 256 instances.*table\[rng.integers"):
        check_problem(defined)


def test_a_sample_may_repeat_a_few_instances():
    assert_means_accepted(
        define_problem(lambda size, rng: np.tile([[0.1, 0.5, 0.9], [0.9, 0.5, 0.1]], (size // 2, 1)), pay_with_noise)
    )
    assert_means_accepted(define_problem(lambda size, rng: np.tile([0.1, 0.5, 0.9], (size, 1)), pay_with_noise))


def test_a_reward_that_draws_from_numpy_is_refused():
    @bt.kernel.scalar
    def reward(instance, arm, pull, step, stream):
        return instance.means[arm] + np.random.normal()

    with pytest.raises(
        bt.InvalidRequest,
        match=r"`reward` .* must draw only from `stream`, .* use functions such as bt.kernel.uniform\(stream\)",
    ):
        check_problem(define_problem(uniform_means, reward))


@bt.kernel.scalar
def pay_double(instance, arm, pull, step, stream):
    return 2 * instance.means[arm] * bt.kernel.exponential(stream)


@bt.kernel.scalar
def pay_first_mean(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[0])


@bt.kernel.scalar
def pay_more_for_the_last(instance, arm, pull, step, stream):
    return instance.means[arm] + bt.kernel.normal(stream) + (0.5 if arm == 2 else 0.0)


@bt.kernel.scalar
def pay_three_times_for_the_last(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[arm] * (3.0 if arm == 45 else 1.0))


def draw_rare_means(size, rng):
    return rng.beta(3.36, 771, (size, 46))


@bt.kernel.scalar
def pay_less_with_pulls(instance, arm, pull, step, stream):
    return instance.means[arm] / (1 + 0.01 * pull)


def test_more_contrasts_need_more_standard_errors():
    assert resolve_doubtful_errors(3) == resolve_doubtful_errors(20) == 3.0
    # Bonferroni: 102 contrasts raise a doubt by chance as often as 20 do at three standard errors.
    assert norm.sf(resolve_doubtful_errors(102)) * 102 == pytest.approx(20 * norm.sf(3.0), rel=1e-9)


@pytest.mark.parametrize(
    ("defined", "message"),
    [
        (
            define_problem(uniform_means, pay_double),
            r"over [\d,]+ pulls they are 0\.\d+ on average, not 0\.\d+ \(a deviation of 0\.\d+, four standard errors, is "
            r"visible\); let its reward",
        ),
        (
            define_problem(uniform_means, pay_first_mean, rewards="binary"),
            r"those of arms above their instance's average are 0\.\d+ on average, not 0\.\d+ and those below it 0\.\d+",
        ),
        (
            define_problem(normal_means, pay_more_for_the_last),
            r"over [\d,]+ pulls those of arm 2 are 0\.\d+ on average",
        ),
        (
            bt.define_problem("mine", draw_rare_means, pay_three_times_for_the_last, arms=46, rewards="binary"),
            r"over [\d,]+ pulls those of arm 45 are 0\.01\d+ on average, not 0\.004\d+",
        ),
        (define_problem(uniform_means, pay_less_with_pulls), "they are 0"),
    ],
    ids=["scale", "arm", "one arm", "one of 46 arms", "pull"],
)
def test_rewards_with_other_means_are_refused(defined, message):
    with pytest.raises(bt.SimulationError, match=f"(?s)must have the means that its `sample` returns, .*{message}"):
        check_problem(defined)


@bt.kernel.scalar
def pay_reversed(instance, arm, pull, step, stream):
    return 1.0 - instance.means[arm] + 0.1 * bt.kernel.normal(stream)


def test_wrong_means_are_refused_for_realised_regret():
    """It compares with the arm of the highest stated mean, which is the worst arm here."""
    defined = define_problem(uniform_means, pay_reversed)
    for regret in ("expected", "realised"):
        with pytest.raises(bt.SimulationError, match="must have the means that its `sample` returns") as error:
            check_problem(defined, regret=regret)
        assert "realised" not in str(error.value)
    assert_means_accepted(define_problem(uniform_means, pay_with_noise), regret="realised")


@bt.kernel.scalar
def pay_5_percent_more(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, 1.05 * instance.means[arm])


@bt.kernel.scalar
def pay_as_stated(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[arm])


@pytest.mark.parametrize("rate", [0.012, 0.5])
def test_means_that_are_off_by_5_percent_are_refused(rate):
    """Four standard errors of a million rewards are 3.5% of a mean of 0.012. Several seeds are tried."""

    def sample(size, rng):
        return rate * rng.uniform(0.8, 1.2, (size, 3))

    for seed in range(4):
        with pytest.raises(bt.SimulationError, match="must have the means that its `sample` returns"):
            check_problem(define_problem(sample, pay_5_percent_more, rewards="binary"), seed=seed)
        assert_means_accepted(define_problem(sample, pay_as_stated, rewards="binary"), seed=seed)


def test_check_problem_states_the_detectable_deviation():
    found = bt.testing.check_problem(define_problem(uniform_means, pay_as_stated, rewards="binary"), horizon=100)
    report = found["means"].finding
    assert "over 1,048,576 rewards they are 0.5" in report
    assert "a deviation of 0.0016 in all of them would have been detected, and one of 0.0028 in a single arm" in report
    with pytest.raises(bt.errors.ConformanceError, match="must have the means"):
        bt.testing.check_problem(define_problem(uniform_means, pay_5_percent_more, rewards="binary"), horizon=100)


def test_a_problem_is_checked_once_in_a_process(monkeypatch):
    calls = []
    monkeypatch.setattr(problem_checks, "_passed", OrderedDict())
    monkeypatch.setattr(problem_checks, "check_stated_means", lambda *arguments: calls.append(arguments))
    defined = define_problem(uniform_means, pay_as_stated, rewards="binary")
    equal = define_problem(uniform_means, pay_as_stated, rewards="binary")
    for spec in (
        SimulationSpec(bt.UCB1(noise=0.5), defined, 10),
        SimulationSpec(bt.Greedy(), defined, 500),
        SimulationSpec(bt.Greedy(), equal, 500),
    ):
        check_policy_and_problem(spec)
    assert len(calls) == 1
    check_policy_and_problem(
        SimulationSpec(bt.Greedy(), define_problem(uniform_means, pay_5_percent_more, rewards="binary"), 10)
    )
    check_policy_and_problem(SimulationSpec(bt.Greedy(), defined, 10, seed=1))
    assert len(calls) == 3


def test_a_rare_reward_outside_the_stated_kind_is_detected():
    @bt.kernel.scalar
    def pay_two_rarely(instance, arm, pull, step, stream):
        return 2.0 if bt.kernel.uniform(stream) < 1e-4 else bt.kernel.bernoulli(stream, instance.means[arm])

    with pytest.raises(
        bt.SimulationError, match=r"must be 0 or 1, as it states \(rewards='binary'\), but arm \d of run \d+ pays 2"
    ):
        check_problem(define_problem(uniform_means, pay_two_rarely, rewards="binary"))


def test_tune_refuses_wrong_means():
    with pytest.raises(bt.SimulationError, match="or let `sample` return the means of the rewards"):
        bt.tune(bt.UCB1(noise=0.5), define_problem(uniform_means, pay_double), horizon=HORIZON, budget=50)


@pytest.mark.parametrize("rewards", ["unit", "binary"])
def test_means_outside_the_range_of_rewards_are_refused(rewards):
    defined = define_problem(normal_means, bt.Bernoulli.reward, rewards=rewards)
    with pytest.raises(
        bt.SimulationError, match=r"means of 'mine' must be in \[0, 1\], .* but arm \d of run \d+ has -?\d"
    ):
        check_problem(defined)


def test_rewards_are_drawn_only_at_possible_pulls():
    @bt.kernel.scalar
    def pay_less_after_pulls(instance, arm, pull, step, stream):
        return instance.means[arm] * (1 - pull / (step + 1))

    @bt.kernel.scalar
    def pay_once(instance, arm, pull, step, stream):
        return instance.means[arm] if pull < 1 else -1.0

    spec = SimulationSpec(
        bt.UCB1(noise=0.5),
        define_problem(uniform_means, pay_less_after_pulls, rewards="unit"),
        HORIZON,
        regret="realised",
    )
    assert (
        check_custom_problem(spec) is None
    )  # means that change with the step are not tested; no reward is outside [0, 1]
    assert_means_accepted(define_problem(uniform_means, pay_once, rewards="unit"), horizon=1)


def test_the_check_does_not_warn_of_overflows(recwarn):
    @bt.kernel.scalar
    def pay_with_overflow(instance, arm, pull, step, stream):
        return instance.means[arm] + 1 / (1 + np.exp(instance.means[arm] + 1000.0))

    assert_means_accepted(define_problem(uniform_means, pay_with_overflow))
    assert [str(warning.message) for warning in recwarn] == []


def test_a_reward_that_depends_on_the_step_is_drawn_over_the_whole_horizon():
    @bt.kernel.scalar
    def pay_less_with_steps(instance, arm, pull, step, stream):
        return instance.means[arm] / (1 + 0.01 * step)

    with pytest.raises(
        bt.SimulationError, match=r"must have the means that its `sample` returns, .* 0\.0\d+ on average, not 0\.[45]"
    ):
        check_problem(define_problem(uniform_means, pay_less_with_steps))
    spec = SimulationSpec(
        bt.UCB1(noise=0.5), define_problem(uniform_means, pay_less_with_steps), HORIZON, regret="realised"
    )
    assert check_custom_problem(spec) is None


def test_means_that_are_right_only_on_average_over_steps_are_refused():
    @bt.kernel.scalar
    def pay_by_half(instance, arm, pull, step, stream):
        return bt.kernel.bernoulli(stream, instance.means[arm] + (0.2 if step < 500 else -0.2))

    defined = define_problem(lambda size, rng: 0.3 + 0.4 * rng.random((size, 3)), pay_by_half, rewards="binary")
    with pytest.raises(
        bt.SimulationError,
        match=r"those before step 500 are 0\.[67]\d+ on average, not 0\.[45]\d+ and those from it on",
    ):
        check_problem(defined)


@bt.kernel.scalar
def pay_rounded(instance, arm, pull, step, stream):
    return (instance.means[arm] + 0.3 - 0.2 - 0.1) * (1 + 1e-14)


@bt.kernel.scalar
def pay_float32(instance, arm, pull, step, stream):
    return np.float32(instance.means[arm])


@pytest.mark.parametrize("reward", [pay_rounded, pay_float32])
def test_rounding_is_not_a_wrong_mean(reward):
    assert_means_accepted(define_problem(uniform_means, reward))
    assert_means_accepted(define_problem(lambda size, rng: np.tile([0.0, 0.1, 0.7], (size, 1)), reward))


def test_tiny_deviations_of_constant_rewards_are_detected():
    @bt.kernel.scalar
    def pay_slightly_more(instance, arm, pull, step, stream):
        return instance.means[arm] + 0.00001

    with pytest.raises(bt.SimulationError, match=r"they are 0\.50001 on average, not 0\.5 "):
        check_problem(define_problem(lambda size, rng: np.full((size, 3), 0.5), pay_slightly_more))


PACKAGE_PROBLEMS = [
    bt.Bernoulli(arms=4),
    bt.Mixture([(0.6, 0.4), (0.001, 0.0)]),
    bt.BetaRewards(arms=3, v=0.1),
    bt.Gaussian(arms=3, prior=(5, 0.1), noise=10),
    bt.Linear(arms=6, dims=3),
    bt.Logistic(arms=20, dims=3),
    bt.Campaigns([[(1, 9), (2, 8)], [(30, 1000), (1, 1000)]]),
    bt.RewardTable(np.arange(12.0).reshape(4, 3)),
    USER_PROBLEM,
]


@pytest.mark.parametrize("package_problem", PACKAGE_PROBLEMS, ids=lambda package_problem: str(package_problem.name))
@pytest.mark.parametrize("horizon", [1, HORIZON])
def test_problems_of_the_package_have_their_stated_means(package_problem, horizon):
    for seed in range(3):
        spec = SimulationSpec(bt.UCB1(noise=0.5), package_problem, horizon, seed=seed)
        test = check_stated_means(spec, *(draw_instances(package_problem, seed, block).means for block in (0, 1)))
        assert test.reward_count > 10_000


@bt.kernel.scalar
def pay_one_in_a_thousand(instance, arm, pull, step, stream):
    return 1000 * instance.means[arm] if bt.kernel.uniform(stream) < 0.001 else 0.0


@bt.kernel.scalar
def pay_pareto(instance, arm, pull, step, stream):
    return instance.means[arm] / 11 * bt.kernel.uniform(stream) ** (-1 / 1.1)


@pytest.mark.parametrize("reward", [pay_one_in_a_thousand, pay_pareto])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_right_means_of_rare_rewards_are_accepted(reward, seed):
    assert_means_accepted(define_problem(uniform_means, reward), seed=seed)


@bt.kernel.scalar
def pay_one_in_a_hundred_thousand(instance, arm, pull, step, stream):
    return 1e5 * instance.means[arm] if bt.kernel.uniform(stream) < 1e-5 else 0.0


def test_right_means_are_accepted_at_short_horizons():
    assert_means_accepted(define_problem(uniform_means, pay_one_in_a_hundred_thousand), horizon=2)


def test_tiny_means_beside_large_ones_are_accepted():
    @bt.kernel.scalar
    def pay_exponential(instance, arm, pull, step, stream):
        return instance.means[arm] * bt.kernel.exponential(stream)

    assert_means_accepted(define_problem(lambda size, rng: np.tile([1.0, 3e-7, 1e-6], (size, 1)), pay_exponential))


def test_the_logarithm_of_a_bet_is_above_its_bound():
    """The inequality on which the test of means relies."""
    deviations = np.concatenate([np.linspace(-1, 1, 2001), np.geomspace(1, 1e6, 500)])
    assert len(BET_SIZES) > 1
    for bet in BET_SIZES:
        assert (bet * deviations + (np.log1p(-bet) + bet) * deviations**2 <= np.log1p(bet * deviations) + 1e-12).all()


LAWS = {
    "exponential": ("real", lambda rng, size: rng.standard_exponential(size) - 1),
    "lognormal": ("real", lambda rng, size: np.exp(3 * rng.standard_normal(size)) - np.exp(4.5)),
    "pareto": ("real", lambda rng, size: rng.random(size) ** (-1 / 1.2) - 6),
    "rare": ("real", lambda rng, size: 1000 * (rng.random(size) < 0.001) - 1.0),
    "coin": ("binary", lambda rng, size: (rng.random(size) < 0.5) - 0.5),
    "rare coin": ("binary", lambda rng, size: (rng.random(size) < 1e-6) - 1e-6),
    "beta": ("unit", lambda rng, size: rng.beta(0.01, 0.09, size) - 0.1),
}


@pytest.mark.parametrize("law", LAWS)
def test_right_means_are_not_refuted(law):
    kind, draw = LAWS[law]
    rng = np.random.default_rng(1)
    assert not any(is_mean_refuted(kind, DeviationSums.from_deviations(draw(rng, 1 << 16))) for _ in range(100))


def test_bets_win_at_most_one_on_average():
    """Exact: all samples of ten pulls of a coin with mean 0.1, weighted by their probabilities."""
    wins = np.arange(11)
    probabilities = np.array([np.prod(np.arange(10, 10 - k, -1) / np.arange(1, k + 1)) for k in wins])
    probabilities *= 0.1**wins * 0.9 ** (10 - wins)
    gains = [
        np.exp(compute_log_wealth(DeviationSums.from_deviations(np.repeat([0.9, -0.1], [k, 10 - k])), 1.0))
        for k in wins
    ]
    assert probabilities.sum() == pytest.approx(1)
    assert 0.5 < probabilities @ gains <= 1
