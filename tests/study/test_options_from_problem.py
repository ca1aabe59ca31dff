"""Noise and prior that a policy takes from the problem, and the textbook's policy beside it."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace

import numpy as np
import pytest

import banditune as bt
from banditune.cli import app
from banditune.core.descriptions import describe
from banditune.core.problem import Instances
from banditune.core.space import Parameter
from banditune.registry import collect_policies
from banditune.reports import repeat_commands
from banditune.simulation.kernel_selection import select_shortcut
from banditune.simulation.spec import SimulationSpec
from banditune.study.options_from_problem import resolve_policy_options
from banditune.study.requests import build_spec
from helpers.settings import group_settings

RARE = bt.Bernoulli(arms=46, prior=(3.35722, 771.387))
SHORT = {"horizon": 60, "budget": 60, "validate": 40}


def sample_means(size, rng):
    return rng.uniform(2, 4, (size, 3))


@bt.kernel.scalar
def reward_with_noise(instance, arm, pull, step, stream):
    return instance.means[arm] + 0.7 * bt.kernel.normal(stream)


@bt.kernel.scalar
def reward_without_noise(instance, arm, pull, step, stream):
    return instance.means[arm]


OWN = bt.define_problem("own", sample_means, reward_with_noise, arms=3)
CONSTANT = bt.define_problem("constant", sample_means, reward_without_noise, arms=3)


def fitted(policy, problem):
    return resolve_policy_options(policy, problem)


def expected_variance(problem, size=200_000):
    """The mean of m (1 - m) by NumPy alone, and its standard error."""
    means = problem.sample(size, np.random.default_rng(1)).means
    variances = (means * (1 - means)).mean(axis=1)
    return variances.mean(), variances.std() / np.sqrt(size)


@pytest.mark.parametrize(
    ("problem", "share"),
    [
        (RARE, 1),
        (bt.Bernoulli(arms=3, prior=[(1, 1), (2, 9), (50, 50)]), 1),
        (bt.BetaRewards(arms=3, prior=(2, 5), v=8), 1 / 9),
        (bt.problems.two_point_mixture(), 1),
        (bt.Mixture([[0.1, 0.9], [0.5, 0.2]], weights=[1, 3]), 1),
        (bt.Logistic(arms=5, dims=3), 1),
        (bt.Campaigns([[(1, 9), (2, 8)], [(30, 70), (5, 5)]]), 1),
        (bt.Campaigns([[(1, 9), (2, 8)], [(30, 70), (5, 5)]], rewards="unit", v=3), 1 / 4),
    ],
)
def test_the_noise_is_the_standard_deviation_of_a_reward_around_its_mean(problem, share):
    variance, error = expected_variance(problem, 20_000)
    sampled = "matched" in fitted(bt.UCB1(), problem).sources[0][1]
    # The scale itself is from 1,024 instances where there is no formula.
    error *= np.sqrt(1 + 20_000 / 1024) if sampled else 1
    noise = fitted(bt.UCB1(), problem).policy.noise
    assert noise**2 == pytest.approx(share * variance, abs=4 * share * error + 1e-12)


def test_known_noise_is_taken_as_it_is():
    tables = np.random.default_rng(0).normal(size=(1, 50, 3))
    for problem, noise in (
        (bt.Gaussian(arms=3, noise=7), 7),
        (bt.Linear(arms=3, dims=2, noise=0.3), 0.3),
        (bt.Campaigns([[(0, 1), (1, 1)]], "real", noise=2), 2),
        (bt.RewardTable(tables), np.sqrt(tables.var(axis=1).mean())),
    ):
        assert fitted(bt.UCB1(), problem).policy.noise == pytest.approx(noise, rel=1e-12)


def test_the_noise_of_a_problem_of_ones_own_is_measured():
    found = fitted(bt.UCB1(), OWN)
    # 4,096 normal rewards know their standard deviation to 1.1%.
    assert found.policy.noise == pytest.approx(0.7, rel=4 * 0.0111)
    assert found.sources[0][1].startswith("from the problem, the spread of 4,096 rewards")
    assert fitted(bt.UCB1(), OWN) == found


class Loud(bt.Gaussian):
    """Rewards of its own, and the noise of its base."""

    reward = staticmethod(reward_with_noise)


class Sure(bt.BetaRewards):
    reward = staticmethod(reward_without_noise)


class Stated(bt.kernel.Problem):
    name, arms, noise = "stated", 3, 0.8
    reward = staticmethod(reward_with_noise)

    def sample(self, size, rng):
        return Instances(sample_means(size, rng))


def test_the_noise_of_other_rewards_in_a_subclass_is_measured_unless_its_class_states_it():
    assert fitted(bt.UCB1(), Loud(arms=3, noise=9.0)).policy.noise == pytest.approx(0.7, rel=4 * 0.0111)
    assert fitted(bt.UCB1(), Sure(arms=3)).policy.noise == 0.5  # the textbook's: these rewards do not vary
    assert fitted(bt.UCB1(), Stated()).policy.noise == 0.8


@bt.kernel.scalar
def reward_with_growing_noise(instance, arm, pull, step, stream):
    return instance.means[arm] + 0.005 * step * bt.kernel.normal(stream)


def test_the_noise_of_rewards_that_change_with_the_step_is_measured_over_all_steps():
    growing = bt.define_problem("growing", sample_means, reward_with_growing_noise, arms=3)
    spec = build_spec(bt.UCB1(), growing, horizon=1000, simulation=bt.Simulation(regret="realised"))
    steps = np.arange(1000)
    # The fourth moments of a product of a step and a normal number give the error of a variance.
    variance, fourth = np.mean((0.005 * steps) ** 2), 3 * np.mean((0.005 * steps) ** 4)
    assert spec.policy.noise**2 == pytest.approx(variance, abs=4 * np.sqrt((fourth - variance**2) / 4096))


@pytest.mark.parametrize(
    ("problem", "prior"),
    [
        (RARE, (3.35722, 771.387)),
        (bt.BetaRewards(arms=3, prior=(2, 5)), (2, 5)),
        (bt.Mixture([[0.6, 0.4], [0.4, 0.6]]), (12, 12)),
        (bt.Bernoulli(arms=3, prior=(0.0005, 0.147)), (0.1, 29.4)),
        (bt.Mixture([[0.0, 1.0], [1.0, 0.0]]), (0.1, 0.1)),
        (bt.Mixture([[0.25, 0.25]]), (250_000, 750_000)),
        (bt.Mixture([[0.0, 0.0]]), (1, 1)),
    ],
)
def test_thompson_sampling_takes_the_beta_prior_or_one_that_is_matched_and_allowed(problem, prior):
    found = fitted(bt.Thompson(), problem).policy
    np.testing.assert_allclose(found.prior, prior, rtol=1e-5)
    assert min(found.prior) >= 0.1


@pytest.mark.parametrize(
    "problem",
    [
        bt.Bernoulli(arms=3, prior=[(1, 1), (2, 9), (50, 50)]),
        bt.Logistic(arms=5, dims=3),
        bt.Campaigns([[(1, 9), (2, 8)], [(30, 70), (5, 5)]]),
        bt.RewardTable(np.random.default_rng(0).random((20, 9, 3)), shuffled=True),
    ],
)
def test_a_matched_prior_has_mean_and_variance_of_the_means(problem):
    found = fitted(bt.Thompson(), problem)
    assert "matched" in found.sources[0][1]
    a, b = found.policy.prior
    mean, sd = fitted(bt.GaussianThompson(), problem).policy.prior
    assert a / (a + b) == pytest.approx(mean, rel=1e-5)
    assert a * b / (a + b) ** 2 / (a + b + 1) == pytest.approx(sd**2, rel=1e-4)
    if not problem.is_keyed:
        means = problem.sample(100_000, np.random.default_rng(3)).means
        assert mean == pytest.approx(means.mean(), abs=4 * means.mean(axis=1).std() / np.sqrt(1024))


def test_policies_that_know_arms_one_by_one_take_each_ones_prior():
    problem = bt.Bernoulli(arms=2, prior=[(1, 2), (3, 4)])
    assert fitted(bt.exact.Gittins(), problem).policy == bt.exact.Gittins(prior=((1, 2), (3, 4)))
    assert fitted(bt.exact.Optimal(), problem).policy == bt.exact.Optimal(prior=((1, 2), (3, 4)))
    mixture = bt.Mixture([[0.7, 0.2], [0.1, 0.5]])
    for policy in (bt.exact.Optimal(), bt.exact.OptimalMixture()):
        assert fitted(policy, mixture).policy == bt.exact.OptimalMixture(mixture.means, mixture.weights)
        assert fitted(policy, problem).policy == bt.exact.Optimal(prior=problem.prior)
    with pytest.raises(bt.InvalidRequest, match="must be bernoulli with 2 arms, or mixture"):
        fitted(bt.exact.Optimal(), RARE)


def test_gaussian_thompson_sampling_takes_mean_spread_and_noise():
    assert fitted(bt.GaussianThompson(), bt.Gaussian(3, (24.5, 2), 8)).policy == bt.GaussianThompson((24.5, 2), 8)
    pooled = fitted(bt.GaussianThompson(), bt.Gaussian(2, [(1, 2), (3, 4)], 8)).policy
    assert pooled.prior == pytest.approx((2, np.sqrt((4 + 16) / 2 + 1)))
    rare = fitted(bt.GaussianThompson(), RARE).policy
    assert rare.prior[0] == pytest.approx(3.35722 / 774.74422)


def test_linear_policies_take_the_prior_of_theta_where_it_means_the_same():
    prior = ((1.0, -1.0), ((2.0, 0.5), (0.5, 1.0)))
    linear, logistic = bt.Linear(arms=4, dims=2, prior=prior, noise=0.3), bt.Logistic(arms=4, dims=2, prior=prior)
    for make in (bt.LinUCB, bt.LinTS, bt.policies.LinGreedy, bt.policies.LinEpsilonGreedy):
        assert fitted(make(), linear).policy == make(prior=prior, noise=0.3)
    for make in (bt.GLMTSL, bt.policies.GLMGreedy, bt.policies.GLMEpsilonGreedy, bt.UCBGLM):
        assert fitted(make(), logistic).policy.prior == prior
    # Features and theta are uniform on [-1, 1] unless given.
    assert fitted(bt.LinUCB(), bt.Linear(arms=4, dims=2)).policy.prior == (0, pytest.approx(1 / 3))
    # A linear model of what a logistic one pays: theta is smaller by about the slope of the logistic function.
    mean, variance = fitted(bt.LinUCB(), bt.Logistic(arms=50, dims=10, prior=(0, 1e-4))).policy.prior
    assert mean == 0
    assert variance == pytest.approx(0.25 / (10 / 3), rel=0.01)


def test_only_what_waits_for_the_problem_is_taken_from_it():
    half = bt.GaussianThompson(noise=3)
    assert fitted(half, RARE).policy.noise == 3
    assert [name for name, _ in fitted(half, RARE).sources] == ["prior"]
    whole = bt.GaussianThompson(prior=(0, 1), noise=3)
    assert fitted(whole, RARE) == (whole, None, ())


def test_the_baseline_is_the_textbooks_policy():
    assert fitted(bt.UCB1(), RARE).textbook_policy == bt.UCB1(noise=0.5)
    assert fitted(bt.Thompson(), RARE).textbook_policy == bt.Thompson(prior=(1, 1))
    assert fitted(bt.GaussianThompson(), RARE).textbook_policy == bt.GaussianThompson(prior=(0, 1), noise=1)
    # What was given stays.
    assert fitted(bt.GaussianThompson(noise=3), RARE).textbook_policy == bt.GaussianThompson(prior=(0, 1), noise=3)
    # A textbook has no numbers for rewards of any size: there they are taken as known.
    for policy in (bt.UCB1(), bt.GaussianThompson()):
        assert fitted(policy, bt.Gaussian(arms=3, noise=7)).textbook_policy is None
    assert fitted(bt.UCB1(noise=0.5), RARE).textbook_policy is None


def test_every_policy_of_the_shelf_has_numbers_by_default_where_it_can_play():
    problems = [bt.Bernoulli(arms=2), bt.Linear(arms=3, dims=2), bt.Logistic(arms=3, dims=2), bt.Gaussian(arms=2)]
    seen = set()
    for name, make in collect_policies().items():
        for problem in problems:
            try:
                spec = build_spec(make(), problem, horizon=9)
            except bt.InvalidRequest:
                continue
            seen.add(name)
            assert "problem" not in str(describe(spec.policy)) + str(describe(spec.textbook_spec.policy))
    assert seen == set(collect_policies())


def test_every_verb_plays_the_same_policy():
    numbers = bt.UCB1(noise=fitted(bt.UCB1(), RARE).policy.noise)
    options = {"horizon": 200, "runs": 30}
    np.testing.assert_array_equal(
        bt.simulate(bt.UCB1(), RARE, [0.3], **group_settings(**options)),
        bt.simulate(numbers, RARE, [0.3], **group_settings(**options)),
    )
    assert bt.curve(bt.UCB1(), RARE, [0.1, 0.9], **group_settings(**options)).mean.tolist() == (
        bt.curve(numbers, RARE, [0.1, 0.9], **group_settings(**options)).mean.tolist()
    )
    small = bt.Bernoulli(arms=2, prior=(2, 9))
    noise = fitted(bt.UCB1(), small).policy.noise
    assert bt.exact.compute_exact_regret(bt.UCB1(), small, [0.5], horizon=9).regret == (
        bt.exact.compute_exact_regret(bt.UCB1(noise=noise), small, [0.5], horizon=9).regret
    )
    tuning = bt.tune(bt.UCB1(), RARE, **group_settings(**SHORT))
    named = bt.tune(numbers, RARE, **group_settings(**SHORT))
    assert (tuning.params, tuning.regret) == (named.params, named.regret)
    assert tuning.setup.policy == named.setup.policy == {"name": "ucb1", "noise": numbers.noise}
    assert tuning.setup.from_problem == {"noise": "from the problem"}
    assert named.setup.from_problem == {}


@pytest.mark.parametrize("common", [True, False])
def test_tuned_policy_and_baseline_play_the_same_instances(common):
    tuning = bt.tune(bt.UCB1(), RARE, **group_settings(common_random_numbers=common, **SHORT))
    assert tuning.textbook_policy == {"name": "ucb1", "noise": 0.5}
    assert tuning.textbook_params == {"gamma": 1}
    first = 2**40
    options = {"horizon": 60, "runs": 40, "first_instance": first}
    # The baseline plays with the noise of the second row.
    rows = bt.simulate(bt.UCB1(noise=0.5), RARE, [0.5, 1.0], **group_settings(common_random_numbers=common, **options))
    assert tuning.textbook_regret.mean == pytest.approx(rows[1].mean(), rel=1e-6)
    values = list(tuning.params.values())
    own = bt.simulate(bt.UCB1(), RARE, values, **group_settings(common_random_numbers=common, **options))[0]
    assert tuning.gain.mean == pytest.approx((rows[1] - own).mean(), rel=1e-5)
    assert tuning.gain.se == pytest.approx((rows[1] - own).std(ddof=1) / np.sqrt(40), rel=1e-4)


def test_a_comparison_says_what_each_policy_took():
    comparison = bt.compare(
        [bt.UCB1(), bt.Thompson(), bt.UCB1(noise=0.5), bt.Greedy()], RARE, **group_settings(**SHORT)
    )
    entries = {entry.policy: entry for entry in comparison.entries}
    assert set(entries) == {"ucb1", "ts", "ucb1(noise=0.5)", "greedy"}
    assert entries["ts"].policy_config == {"name": "ts", "prior": [3.35722, 771.387]}
    assert entries["ts"].textbook_policy == {"name": "ts", "prior": [1, 1]}
    assert entries["ts"].from_problem == {"prior": "from the problem"}
    assert entries["ucb1(noise=0.5)"].from_problem == {}
    assert entries["ucb1"].textbook_regret.mean == entries["ucb1(noise=0.5)"].textbook_regret.mean
    text = repr(comparison)
    assert "ucb1: noise 0.06564, from the problem (textbook: 0.5)" in text
    assert "ts: prior (3.357, 771.4), from the problem (textbook: (1, 1))" in text
    assert bt.results.from_json(comparison.to_json()) == comparison


def test_text_json_and_report_say_what_was_used(tmp_path):
    tuning = bt.tune(bt.UCB1(), RARE, **group_settings(**SHORT))
    text = repr(tuning)
    assert "noise 0.06564, from the problem (textbook: 0.5)" in text
    assert "textbook, noise=0.5" in text
    data = json.loads(tuning.to_json())
    assert data["setup"]["from_problem"] == {"noise": "from the problem"}
    assert data["textbook_policy"] == {"name": "ucb1", "noise": 0.5}
    page = tuning.report(tmp_path / "tuned.html").read_text()
    assert "noise 0.06564, from the problem" in page
    assert "textbook, noise=0.5" in page
    assert "--policy ucb1:noise=problem" in page
    curve = bt.curve(bt.UCB1(), RARE, [0.1, 0.9], horizon=60, runs=20)
    stressed = bt.robustness(bt.UCB1(), RARE, 0.3, horizon=60, budget=30, search=bt.Search(validate=20))
    exact = bt.exact.compute_exact_regret(bt.UCB1(), bt.Bernoulli(arms=2, prior=RARE.prior[0]), [0.5], horizon=9)
    for result in (curve, stressed, exact):
        assert "noise 0.06564, from the problem" in repr(result)


def test_the_command_of_a_report_gives_the_same_result_again(capsys):
    small = {"horizon": 60, "budget": 60, "seed": 3}
    for found in (
        bt.tune(bt.UCB1(), RARE, **group_settings(validate=40, **small)),
        bt.compare([bt.Thompson(), bt.UCB1(noise=0.5)], RARE, **group_settings(validate=40, **small)),
        bt.curve(bt.UCB1(), RARE, [0.1, 0.9], horizon=60, runs=20),
        bt.exact.compute_exact_regret(bt.exact.Optimal(), bt.Mixture([[0.6, 0.4], [0.3, 0.5]]), [0.0], horizon=5),
    ):
        command = repeat_commands.make_command(found)
        assert "=problem" in command
        app([*shlex.split(command)[1:], "--json"], standalone_mode=False)
        loaded = bt.results.from_json(capsys.readouterr().out)
        assert replace(loaded, setup=replace(loaded.setup, command=found.setup.command)) == found


def test_results_from_before_there_were_baselines_are_read():
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), **group_settings(**SHORT))
    old = json.loads(tuning.to_json())
    del old["textbook_policy"]
    del old["setup"]["from_problem"]
    loaded = bt.results.from_json(json.dumps(old))
    assert loaded.textbook_policy is None
    assert repr(loaded) == repr(tuning)


def test_a_stress_test_keeps_the_numbers_of_the_expected_problem():
    tuning = bt.tune(bt.UCB1(), bt.Bernoulli(arms=4, prior=(2, 40)), **group_settings(stress=True, **SHORT))
    scenario = next(
        scenario for scenario in tuning.robustness.scenarios if scenario.description.startswith("means higher")
    )
    other = bt.Bernoulli(arms=4, prior=scenario.problem["prior"])
    options = {"horizon": 60, "runs": 40, "first": 2**40}
    numbers = bt.UCB1(noise=tuning.setup.policy["noise"])
    own = bt.simulate(numbers, other, list(tuning.params.values()), **group_settings(**options))
    assert scenario.regret.mean == pytest.approx(own.mean(), rel=1e-6)
    textbook = bt.simulate(bt.UCB1(noise=0.5), other, [1.0], **group_settings(**options))
    assert scenario.textbook_regret.mean == pytest.approx(textbook.mean(), rel=1e-6)


def test_without_a_problem_numbers_must_be_given():
    with pytest.raises(bt.InvalidRequest, match=r"`noise` of ucb1 must be given in numbers.*UCB1\(noise=\.\.\.\)"):
        bt.deploy(bt.UCB1(), 0.3, horizon=100, arms=3)
    with pytest.raises(bt.InvalidRequest, match="no problem here to take it from"):
        SimulationSpec(bt.GaussianThompson(), RARE, 9)
    assert bt.deploy(bt.UCB1(noise=0.5), 0.3, horizon=100, arms=3).select_arm() == 0


def test_a_tuning_is_deployed_with_its_numbers():
    tuning = bt.tune(bt.Thompson(), RARE, **group_settings(**SHORT))
    for live in (tuning.deploy(), tuning.deploy(bt.Thompson())):
        assert live.state.policy == {"name": "ts", "prior": [3.35722, 771.387]}
    with pytest.raises(bt.InvalidRequest, match="the policy must be the one that was tuned"):
        tuning.deploy(bt.Thompson(prior=(1, 1)))


def test_rewards_without_spread_have_the_textbooks_noise_or_none():
    coin = bt.Mixture([[0.0, 1.0], [1.0, 0.0]])
    found = fitted(bt.UCB1(), coin)
    assert found.policy == bt.UCB1(noise=0.5)
    assert found.sources == (("noise", "the textbook's, because the problem's rewards do not vary"),)
    with pytest.raises(bt.InvalidRequest, match="the rewards of 'constant' do not vary"):
        fitted(bt.UCB1(), CONSTANT)


@dataclass(frozen=True)
class Halved(bt.UCB1):
    """A user's policy, which inherits where its noise is from."""

    parameters = (Parameter("gamma", 0, 2, textbook=1),)


@dataclass(frozen=True)
class Shifted(bt.Bernoulli):
    """A user's problem with the name of one from the shelf, whose prior says nothing of its means."""

    def sample(self, size, rng):
        return Instances(rng.uniform(0.1, 0.2, (size, self.arms)))


def test_users_policies_and_problems_meet_in_the_same_way():
    assert fitted(Halved(), RARE).policy == Halved(noise=fitted(bt.UCB1(), RARE).policy.noise)
    mean, variance = 0.15, 0.01 / 12
    a, b = fitted(bt.Thompson(), Shifted(arms=3)).policy.prior
    assert a / (a + b) == pytest.approx(mean, rel=0.01)
    assert a + b == pytest.approx(mean * (1 - mean) / variance - 1, rel=0.1)
    assert "matched" in fitted(bt.UCB1(), Shifted(arms=3)).sources[0][1]


def test_a_default_policy_has_its_shortcut():
    for policy in (bt.UCB1(), bt.Thompson()):
        assert select_shortcut(fitted(policy, RARE).policy, RARE) is policy.shortcuts[0]


def test_a_ledger_is_found_again_by_the_numbers(tmp_path):
    usual = {**SHORT, "store": tmp_path / "kept.ledger"}
    first = bt.tune(bt.UCB1(), RARE, **group_settings(**usual))
    assert bt.tune(bt.UCB1(), RARE, **group_settings(**usual)) == first
    assert bt.tune(bt.UCB1(), RARE, **group_settings(**SHORT)) == first
    named = bt.tune(bt.UCB1(noise=first.setup.policy["noise"]), RARE, **group_settings(**usual))
    assert named.regret == first.regret
    assert replace(first.setup, from_problem={}) == named.setup
