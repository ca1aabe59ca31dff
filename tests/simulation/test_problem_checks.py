"""What a user's own problem promises: instances by their seed, rewards by their stream, means as it tells them."""

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
from helpers.owned import OWN_PROBLEM

HORIZON = 1000


def problem(sample, reward, arms=3, **more):
    return bt.define_problem("mine", sample, reward, arms=arms, **more)


def checked(problem, **more):
    check_policy_and_problem(SimulationSpec(bt.UCB1(noise=0.5), problem, HORIZON, **more))


def assert_means_accepted(problem, horizon=HORIZON, **more):
    """The check draws rewards of a problem, and finds the means that are stated."""
    test = check_custom_problem(SimulationSpec(bt.UCB1(noise=0.5), problem, horizon, **more))
    assert test is not None, "the means were not tested"
    assert test.reward_count > 10_000
    assert np.isfinite(test.drawn_mean)


def uniform_means(size, rng):
    return rng.random((size, 3))


def normal_means(size, rng):
    return rng.normal(size=(size, 3))


@bt.kernel.scalar
def noisy(instance, arm, pull, step, stream):
    return instance.means[arm] + bt.kernel.normal(stream)


LOOSE = np.random.default_rng(0)


def test_a_sample_with_a_generator_of_its_own_is_refused_without_a_ledger_too():
    own = problem(lambda size, rng: LOOSE.random((size, 3)), noisy)
    with pytest.raises(bt.InvalidRequest, match=r"'mine' must draw from `rng` alone, .* use rng.random"):
        bt.simulate(bt.Greedy(), own, horizon=10, runs=5)


def test_features_that_do_not_come_from_rng_are_refused():
    own = problem(lambda size, rng: (rng.random((size, 3)), LOOSE.random((size, 3, 2))), noisy, dims=2)
    with pytest.raises(bt.InvalidRequest, match="must draw from `rng` alone"):
        checked(own)


def test_a_sample_with_a_seed_of_its_own_is_refused():
    own = problem(lambda size, rng: np.random.default_rng(0).random((size, 3)), noisy)
    with pytest.raises(bt.InvalidRequest, match=r"drew the same 256 instances.*table\[rng.integers"):
        checked(own)


def test_a_few_instances_may_be_listed_and_one_may_be_all():
    assert_means_accepted(problem(lambda size, rng: np.tile([[0.1, 0.5, 0.9], [0.9, 0.5, 0.1]], (size // 2, 1)), noisy))
    assert_means_accepted(problem(lambda size, rng: np.tile([0.1, 0.5, 0.9], (size, 1)), noisy))


def test_a_reward_with_randomness_of_its_own_is_refused():
    @bt.kernel.scalar
    def reward(instance, arm, pull, step, stream):
        return instance.means[arm] + np.random.normal()

    with pytest.raises(
        bt.InvalidRequest, match=r"`reward` .* must draw from `stream` alone, .* use bt.kernel.uniform\(stream\)"
    ):
        checked(problem(uniform_means, reward))


@bt.kernel.scalar
def doubled(instance, arm, pull, step, stream):
    return 2 * instance.means[arm] * bt.kernel.exponential(stream)


@bt.kernel.scalar
def of_the_first(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[0])


@bt.kernel.scalar
def more_for_the_last(instance, arm, pull, step, stream):
    return instance.means[arm] + bt.kernel.normal(stream) + (0.5 if arm == 2 else 0.0)


@bt.kernel.scalar
def three_times_for_the_last(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[arm] * (3.0 if arm == 45 else 1.0))


def rare_means(size, rng):
    return rng.beta(3.36, 771, (size, 46))


@bt.kernel.scalar
def wearing_out(instance, arm, pull, step, stream):
    return instance.means[arm] / (1 + 0.01 * pull)


def test_more_contrasts_need_more_standard_errors_for_a_doubt():
    assert resolve_doubtful_errors(3) == resolve_doubtful_errors(20) == 3.0
    # Bonferroni: 102 contrasts raise a doubt by chance as often as 20 do at three standard errors.
    assert norm.sf(resolve_doubtful_errors(102)) * 102 == pytest.approx(20 * norm.sf(3.0), rel=1e-9)


@pytest.mark.parametrize(
    ("own", "message"),
    [
        (
            problem(uniform_means, doubled),
            r"over [\d,]+ pulls they are 0\.\d+ on average, not 0\.\d+ \(a deviation of 0\.\d+, four standard errors, is "
            r"visible\); let its reward",
        ),
        (
            problem(uniform_means, of_the_first, rewards="binary"),
            r"those of arms above their instance's average are 0\.\d+ on average, not 0\.\d+ and those below it 0\.\d+",
        ),
        (problem(normal_means, more_for_the_last), r"over [\d,]+ pulls those of arm 2 are 0\.\d+ on average"),
        (
            bt.define_problem("mine", rare_means, three_times_for_the_last, arms=46, rewards="binary"),
            r"over [\d,]+ pulls those of arm 45 are 0\.01\d+ on average, not 0\.004\d+",
        ),
        (problem(uniform_means, wearing_out), "they are 0"),
    ],
    ids=["scale", "arm", "one arm", "one of 46 arms", "pull"],
)
def test_rewards_with_other_means_are_refused(own, message):
    with pytest.raises(bt.SimulationError, match=f"(?s)must have the means that its `sample` returns, .*{message}"):
        checked(own)


@bt.kernel.scalar
def turned_round(instance, arm, pull, step, stream):
    return 1.0 - instance.means[arm] + 0.1 * bt.kernel.normal(stream)


def test_realised_regret_needs_right_means_too():
    """It compares with the arm with the highest mean that is stated: here, with the worst."""
    own = problem(uniform_means, turned_round)
    for regret in ("expected", "realised"):
        with pytest.raises(bt.SimulationError, match="must have the means that its `sample` returns") as refused:
            checked(own, regret=regret)
        assert "realised" not in str(refused.value)
    assert_means_accepted(problem(uniform_means, noisy), regret="realised")


@bt.kernel.scalar
def five_percent_more(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, 1.05 * instance.means[arm])


@bt.kernel.scalar
def as_stated(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[arm])


@pytest.mark.parametrize("rate", [0.012, 0.5])
def test_means_that_are_five_percent_off_are_refused(rate):
    """Four standard errors of a million rewards are 3.5% of a mean of 0.012; several seeds, so that luck shows."""

    def sample(size, rng):
        return rate * rng.uniform(0.8, 1.2, (size, 3))

    for seed in range(4):
        with pytest.raises(bt.SimulationError, match="must have the means that its `sample` returns"):
            checked(problem(sample, five_percent_more, rewards="binary"), seed=seed)
        assert_means_accepted(problem(sample, as_stated, rewards="binary"), seed=seed)


def test_what_a_check_could_see_is_said_when_asked():
    found = bt.testing.check_problem(problem(uniform_means, as_stated, rewards="binary"), horizon=100)
    words = found["means"].finding
    assert "over 1,048,576 rewards they are 0.5" in words
    assert "a deviation of 0.0016 in all of them would have been detected, and one of 0.0028 in a single arm" in words
    with pytest.raises(bt.errors.ConformanceError, match="must have the means"):
        bt.testing.check_problem(problem(uniform_means, five_percent_more, rewards="binary"), horizon=100)


def test_a_problem_is_looked_at_once_in_a_process(monkeypatch):
    looked = []
    monkeypatch.setattr(problem_checks, "_passed", OrderedDict())
    monkeypatch.setattr(problem_checks, "check_stated_means", lambda *given: looked.append(given))
    own = problem(uniform_means, as_stated, rewards="binary")
    again = problem(uniform_means, as_stated, rewards="binary")
    for spec in (
        SimulationSpec(bt.UCB1(noise=0.5), own, 10),
        SimulationSpec(bt.Greedy(), own, 500),
        SimulationSpec(bt.Greedy(), again, 500),
    ):
        check_policy_and_problem(spec)
    assert len(looked) == 1
    check_policy_and_problem(
        SimulationSpec(bt.Greedy(), problem(uniform_means, five_percent_more, rewards="binary"), 10)
    )
    check_policy_and_problem(SimulationSpec(bt.Greedy(), own, 10, seed=1))
    assert len(looked) == 3


def test_a_reward_that_is_not_what_the_problem_says_is_seen_where_it_is_rare():
    @bt.kernel.scalar
    def rarely_two(instance, arm, pull, step, stream):
        return 2.0 if bt.kernel.uniform(stream) < 1e-4 else bt.kernel.bernoulli(stream, instance.means[arm])

    with pytest.raises(
        bt.SimulationError, match=r"must be 0 or 1, as it states \(rewards='binary'\), but arm \d of run \d+ pays 2"
    ):
        checked(problem(uniform_means, rarely_two, rewards="binary"))


def test_tune_refuses_wrong_means():
    with pytest.raises(bt.SimulationError, match="or let `sample` return the means of the rewards"):
        bt.tune(bt.UCB1(noise=0.5), problem(uniform_means, doubled), horizon=HORIZON, budget=50)


@pytest.mark.parametrize("rewards", ["unit", "binary"])
def test_means_outside_what_rewards_can_be_are_refused(rewards):
    own = problem(normal_means, bt.Bernoulli.reward, rewards=rewards)
    with pytest.raises(
        bt.SimulationError, match=r"means of 'mine' must be in \[0, 1\], .* but arm \d of run \d+ has -?\d"
    ):
        checked(own)


def test_rewards_are_asked_for_only_where_a_run_can_come():
    @bt.kernel.scalar
    def resting(instance, arm, pull, step, stream):
        return instance.means[arm] * (1 - pull / (step + 1))

    @bt.kernel.scalar
    def once(instance, arm, pull, step, stream):
        return instance.means[arm] if pull < 1 else -1.0

    spec = SimulationSpec(
        bt.UCB1(noise=0.5), problem(uniform_means, resting, rewards="unit"), HORIZON, regret="realised"
    )
    assert (
        check_custom_problem(spec) is None
    )  # means that change with the step are not tested; no reward is outside [0, 1]
    assert_means_accepted(problem(uniform_means, once, rewards="unit"), horizon=1)


def test_a_look_at_rewards_does_not_warn_of_what_compiled_code_does_silently(recwarn):
    @bt.kernel.scalar
    def overflowing(instance, arm, pull, step, stream):
        return instance.means[arm] + 1 / (1 + np.exp(instance.means[arm] + 1000.0))

    assert_means_accepted(problem(uniform_means, overflowing))
    assert [str(warning.message) for warning in recwarn] == []


def test_a_reward_that_looks_at_the_step_is_drawn_at_steps_of_all_the_horizon():
    @bt.kernel.scalar
    def drifting(instance, arm, pull, step, stream):
        return instance.means[arm] / (1 + 0.01 * step)

    with pytest.raises(
        bt.SimulationError, match=r"must have the means that its `sample` returns, .* 0\.0\d+ on average, not 0\.[45]"
    ):
        checked(problem(uniform_means, drifting))
    spec = SimulationSpec(bt.UCB1(noise=0.5), problem(uniform_means, drifting), HORIZON, regret="realised")
    assert check_custom_problem(spec) is None


def test_means_that_are_right_only_on_average_over_steps_are_refused():
    @bt.kernel.scalar
    def swapped(instance, arm, pull, step, stream):
        return bt.kernel.bernoulli(stream, instance.means[arm] + (0.2 if step < 500 else -0.2))

    own = problem(lambda size, rng: 0.3 + 0.4 * rng.random((size, 3)), swapped, rewards="binary")
    with pytest.raises(
        bt.SimulationError,
        match=r"those before step 500 are 0\.[67]\d+ on average, not 0\.[45]\d+ and those from it on",
    ):
        checked(own)


@bt.kernel.scalar
def rounded(instance, arm, pull, step, stream):
    return (instance.means[arm] + 0.3 - 0.2 - 0.1) * (1 + 1e-14)


@bt.kernel.scalar
def in_single_precision(instance, arm, pull, step, stream):
    return np.float32(instance.means[arm])


@pytest.mark.parametrize("reward", [rounded, in_single_precision])
def test_rounding_is_no_other_mean(reward):
    assert_means_accepted(problem(uniform_means, reward))
    assert_means_accepted(problem(lambda size, rng: np.tile([0.0, 0.1, 0.7], (size, 1)), reward))


def test_means_that_are_nearly_alike_are_told_apart():
    @bt.kernel.scalar
    def slightly_more(instance, arm, pull, step, stream):
        return instance.means[arm] + 0.00001

    with pytest.raises(bt.SimulationError, match=r"they are 0\.50001 on average, not 0\.5 "):
        checked(problem(lambda size, rng: np.full((size, 3), 0.5), slightly_more))


OURS = [
    bt.Bernoulli(arms=4),
    bt.Mixture([(0.6, 0.4), (0.001, 0.0)]),
    bt.BetaRewards(arms=3, v=0.1),
    bt.Gaussian(arms=3, prior=(5, 0.1), noise=10),
    bt.Linear(arms=6, dims=3),
    bt.Logistic(arms=20, dims=3),
    bt.Campaigns([[(1, 9), (2, 8)], [(30, 1000), (1, 1000)]]),
    bt.RewardTable(np.arange(12.0).reshape(4, 3)),
    OWN_PROBLEM,
]


@pytest.mark.parametrize("ours", OURS, ids=lambda ours: str(ours.name))
@pytest.mark.parametrize("horizon", [1, HORIZON])
def test_the_shelfs_problems_have_the_means_that_they_tell(ours, horizon):
    for seed in range(3):
        spec = SimulationSpec(bt.UCB1(noise=0.5), ours, horizon, seed=seed)
        test = check_stated_means(spec, *(draw_instances(ours, seed, block).means for block in (0, 1)))
        assert test.reward_count > 10_000


@bt.kernel.scalar
def one_in_a_thousand(instance, arm, pull, step, stream):
    return 1000 * instance.means[arm] if bt.kernel.uniform(stream) < 0.001 else 0.0


@bt.kernel.scalar
def pareto(instance, arm, pull, step, stream):
    return instance.means[arm] / 11 * bt.kernel.uniform(stream) ** (-1 / 1.1)


@pytest.mark.parametrize("reward", [one_in_a_thousand, pareto])
@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 8))])
def test_right_means_that_few_rewards_carry_are_not_refused(reward, seed):
    assert_means_accepted(problem(uniform_means, reward), seed=seed)


@bt.kernel.scalar
def one_in_a_hundred_thousand(instance, arm, pull, step, stream):
    return 1e5 * instance.means[arm] if bt.kernel.uniform(stream) < 1e-5 else 0.0


def test_right_means_are_not_refused_where_horizons_are_short():
    assert_means_accepted(problem(uniform_means, one_in_a_hundred_thousand), horizon=2)


def test_arms_that_pay_a_millionth_of_others_are_not_taken_for_rounding():
    @bt.kernel.scalar
    def exponential(instance, arm, pull, step, stream):
        return instance.means[arm] * bt.kernel.exponential(stream)

    assert_means_accepted(problem(lambda size, rng: np.tile([1.0, 3e-7, 1e-6], (size, 1)), exponential))


def test_a_bet_wins_no_more_than_a_line():
    """The inequality that the verdict stands on."""
    off = np.concatenate([np.linspace(-1, 1, 2001), np.geomspace(1, 1e6, 500)])
    assert len(BET_SIZES) > 1
    for bet in BET_SIZES:
        assert (bet * off + (np.log1p(-bet) + bet) * off**2 <= np.log1p(bet * off) + 1e-12).all()


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
def test_means_that_are_right_are_not_refused(law):
    kind, draw = LAWS[law]
    rng = np.random.default_rng(1)
    assert not any(is_mean_refuted(kind, DeviationSums.from_deviations(draw(rng, 1 << 16))) for _ in range(100))


def test_bets_within_reach_win_no_more_than_one_on_average():
    """Exactly: all samples of ten pulls of a coin with mean 0.1, weighted by their probabilities."""
    wins = np.arange(11)
    chances = np.array([np.prod(np.arange(10, 10 - k, -1) / np.arange(1, k + 1)) for k in wins])
    chances *= 0.1**wins * 0.9 ** (10 - wins)
    gains = [
        np.exp(compute_log_wealth(DeviationSums.from_deviations(np.repeat([0.9, -0.1], [k, 10 - k])), 1.0))
        for k in wins
    ]
    assert chances.sum() == pytest.approx(1)
    assert 0.5 < chances @ gains <= 1
