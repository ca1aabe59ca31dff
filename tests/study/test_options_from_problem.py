"""Noise and prior that a policy takes from the problem, and the textbook's policy for comparison."""

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


USER_PROBLEM = bt.define_problem("own", sample_means, reward_with_noise, arms=3)
CONSTANT = bt.define_problem("constant", sample_means, reward_without_noise, arms=3)


def resolve(policy, problem):
    return resolve_policy_options(policy, problem)


def compute_expected_variance(problem, size=200_000):
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
def test_the_noise_is_the_standard_deviation_of_rewards_around_their_mean(problem, share):
    variance, error = compute_expected_variance(problem, 20_000)
    is_sampled = "matched" in resolve(bt.UCB1(), problem).sources[0][1]
    # The scale itself is from 1,024 instances where there is no formula.
    error *= np.sqrt(1 + 20_000 / 1024) if is_sampled else 1
    noise = resolve(bt.UCB1(), problem).policy.noise
    assert noise**2 == pytest.approx(share * variance, abs=4 * share * error + 1e-12)


def test_known_noise_is_used_unchanged():
    tables = np.random.default_rng(0).normal(size=(1, 50, 3))
    for problem, noise in (
        (bt.Gaussian(arms=3, noise=7), 7),
        (bt.Linear(arms=3, dims=2, noise=0.3), 0.3),
        (bt.Campaigns([[(0, 1), (1, 1)]], "real", noise=2), 2),
        (bt.RewardTable(tables), np.sqrt(tables.var(axis=1).mean())),
    ):
        assert resolve(bt.UCB1(), problem).policy.noise == pytest.approx(noise, rel=1e-12)


def test_the_noise_of_a_users_problem_is_measured():
    resolved = resolve(bt.UCB1(), USER_PROBLEM)
    # 4,096 normal rewards determine their standard deviation to 1.1%.
    assert resolved.policy.noise == pytest.approx(0.7, rel=4 * 0.0111)
    assert resolved.sources[0][1].startswith("from the problem, the spread of 4,096 rewards")
    assert resolve(bt.UCB1(), USER_PROBLEM) == resolved


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
    assert resolve(bt.UCB1(), Loud(arms=3, noise=9.0)).policy.noise == pytest.approx(0.7, rel=4 * 0.0111)
    assert resolve(bt.UCB1(), Sure(arms=3)).policy.noise == 0.5  # the textbook's: these rewards do not vary
    assert resolve(bt.UCB1(), Stated()).policy.noise == 0.8


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
def test_thompson_sampling_takes_the_beta_prior_or_a_matched_one(problem, prior):
    policy = resolve(bt.Thompson(), problem).policy
    np.testing.assert_allclose(policy.prior, prior, rtol=1e-5)
    assert min(policy.prior) >= 0.1


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
    resolved = resolve(bt.Thompson(), problem)
    assert "matched" in resolved.sources[0][1]
    a, b = resolved.policy.prior
    mean, sd = resolve(bt.GaussianThompson(), problem).policy.prior
    assert a / (a + b) == pytest.approx(mean, rel=1e-5)
    assert a * b / (a + b) ** 2 / (a + b + 1) == pytest.approx(sd**2, rel=1e-4)
    if not problem.is_keyed:
        means = problem.sample(100_000, np.random.default_rng(3)).means
        assert mean == pytest.approx(means.mean(), abs=4 * means.mean(axis=1).std() / np.sqrt(1024))


def test_policies_with_a_prior_per_arm_take_each_prior():
    problem = bt.Bernoulli(arms=2, prior=[(1, 2), (3, 4)])
    assert resolve(bt.exact.Gittins(), problem).policy == bt.exact.Gittins(prior=((1, 2), (3, 4)))
    assert resolve(bt.exact.Optimal(), problem).policy == bt.exact.Optimal(prior=((1, 2), (3, 4)))
    mixture = bt.Mixture([[0.7, 0.2], [0.1, 0.5]])
    for policy in (bt.exact.Optimal(), bt.exact.OptimalMixture()):
        assert resolve(policy, mixture).policy == bt.exact.OptimalMixture(mixture.means, mixture.weights)
        assert resolve(policy, problem).policy == bt.exact.Optimal(prior=problem.prior)
    with pytest.raises(bt.InvalidRequest, match="must be bernoulli with 2 arms, or mixture"):
        resolve(bt.exact.Optimal(), RARE)


def test_gaussian_thompson_sampling_takes_mean_spread_and_noise():
    assert resolve(bt.GaussianThompson(), bt.Gaussian(3, (24.5, 2), 8)).policy == bt.GaussianThompson((24.5, 2), 8)
    pooled = resolve(bt.GaussianThompson(), bt.Gaussian(2, [(1, 2), (3, 4)], 8)).policy
    assert pooled.prior == pytest.approx((2, np.sqrt((4 + 16) / 2 + 1)))
    rare = resolve(bt.GaussianThompson(), RARE).policy
    assert rare.prior[0] == pytest.approx(3.35722 / 774.74422)


def test_linear_policies_take_the_prior_of_theta():
    prior = ((1.0, -1.0), ((2.0, 0.5), (0.5, 1.0)))
    linear, logistic = bt.Linear(arms=4, dims=2, prior=prior, noise=0.3), bt.Logistic(arms=4, dims=2, prior=prior)
    for make in (bt.LinUCB, bt.LinTS, bt.policies.LinGreedy, bt.policies.LinEpsilonGreedy):
        assert resolve(make(), linear).policy == make(prior=prior, noise=0.3)
    for make in (bt.GLMTSL, bt.policies.GLMGreedy, bt.policies.GLMEpsilonGreedy, bt.UCBGLM):
        assert resolve(make(), logistic).policy.prior == prior
    # Features and theta are uniform on [-1, 1] unless given.
    assert resolve(bt.LinUCB(), bt.Linear(arms=4, dims=2)).policy.prior == (0, pytest.approx(1 / 3))
    # A linear model of logistic rewards: theta is smaller by about the slope of the logistic function.
    mean, variance = resolve(bt.LinUCB(), bt.Logistic(arms=50, dims=10, prior=(0, 1e-4))).policy.prior
    assert mean == 0
    assert variance == pytest.approx(0.25 / (10 / 3), rel=0.01)


def test_only_missing_options_are_taken_from_the_problem():
    partial = bt.GaussianThompson(noise=3)
    assert resolve(partial, RARE).policy.noise == 3
    assert [name for name, _ in resolve(partial, RARE).sources] == ["prior"]
    complete = bt.GaussianThompson(prior=(0, 1), noise=3)
    assert resolve(complete, RARE) == (complete, None, ())


def test_the_baseline_is_the_policy_of_the_textbook():
    assert resolve(bt.UCB1(), RARE).textbook_policy == bt.UCB1(noise=0.5)
    assert resolve(bt.Thompson(), RARE).textbook_policy == bt.Thompson(prior=(1, 1))
    assert resolve(bt.GaussianThompson(), RARE).textbook_policy == bt.GaussianThompson(prior=(0, 1), noise=1)
    # Given options are kept.
    assert resolve(bt.GaussianThompson(noise=3), RARE).textbook_policy == bt.GaussianThompson(prior=(0, 1), noise=3)
    # A textbook has no numbers for rewards of any size, so those of the problem are used.
    for policy in (bt.UCB1(), bt.GaussianThompson()):
        assert resolve(policy, bt.Gaussian(arms=3, noise=7)).textbook_policy is None
    assert resolve(bt.UCB1(noise=0.5), RARE).textbook_policy is None


def test_every_policy_has_numbers_by_default():
    problems = [bt.Bernoulli(arms=2), bt.Linear(arms=3, dims=2), bt.Logistic(arms=3, dims=2), bt.Gaussian(arms=2)]
    names = set()
    for name, make in collect_policies().items():
        for problem in problems:
            try:
                spec = build_spec(make(), problem, horizon=9)
            except bt.InvalidRequest:
                continue
            names.add(name)
            assert "problem" not in str(describe(spec.policy)) + str(describe(spec.textbook_spec.policy))
    assert names == set(collect_policies())


def test_every_verb_simulates_the_same_policy():
    with_numbers = bt.UCB1(noise=resolve(bt.UCB1(), RARE).policy.noise)
    options = {"horizon": 200, "runs": 30}
    np.testing.assert_array_equal(
        bt.simulate(bt.UCB1(), RARE, [0.3], **group_settings(**options)),
        bt.simulate(with_numbers, RARE, [0.3], **group_settings(**options)),
    )
    assert bt.curve(bt.UCB1(), RARE, [0.1, 0.9], **group_settings(**options)).mean.tolist() == (
        bt.curve(with_numbers, RARE, [0.1, 0.9], **group_settings(**options)).mean.tolist()
    )
    small = bt.Bernoulli(arms=2, prior=(2, 9))
    noise = resolve(bt.UCB1(), small).policy.noise
    assert bt.exact.compute_exact_regret(bt.UCB1(), small, [0.5], horizon=9).regret == (
        bt.exact.compute_exact_regret(bt.UCB1(noise=noise), small, [0.5], horizon=9).regret
    )
    tuning = bt.tune(bt.UCB1(), RARE, **group_settings(**SHORT))
    tuning_with_numbers = bt.tune(with_numbers, RARE, **group_settings(**SHORT))
    assert (tuning.params, tuning.regret) == (tuning_with_numbers.params, tuning_with_numbers.regret)
    assert tuning.setup.policy == tuning_with_numbers.setup.policy == {"name": "ucb1", "noise": with_numbers.noise}
    assert tuning.setup.from_problem == {"noise": "from the problem"}
    assert tuning_with_numbers.setup.from_problem == {}


@pytest.mark.parametrize("common", [True, False])
def test_tuned_policy_and_baseline_are_validated_on_the_same_instances(common):
    tuning = bt.tune(bt.UCB1(), RARE, **group_settings(common_random_numbers=common, **SHORT))
    assert tuning.textbook_policy == {"name": "ucb1", "noise": 0.5}
    assert tuning.textbook_params == {"gamma": 1}
    first = 2**40
    options = {"horizon": 60, "runs": 40, "first_instance": first}
    # The baseline has the random numbers of the second row.
    rows = bt.simulate(bt.UCB1(noise=0.5), RARE, [0.5, 1.0], **group_settings(common_random_numbers=common, **options))
    assert tuning.textbook_regret.mean == pytest.approx(rows[1].mean(), rel=1e-6)
    values = list(tuning.params.values())
    tuned = bt.simulate(bt.UCB1(), RARE, values, **group_settings(common_random_numbers=common, **options))[0]
    assert tuning.gain.mean == pytest.approx((rows[1] - tuned).mean(), rel=1e-5)
    assert tuning.gain.se == pytest.approx((rows[1] - tuned).std(ddof=1) / np.sqrt(40), rel=1e-4)


def test_a_comparison_states_the_options_that_policies_took_from_the_problem():
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


def test_text_json_and_report_state_the_used_options(tmp_path):
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
    report = bt.robustness(bt.UCB1(), RARE, 0.3, horizon=60, budget=30, search=bt.Search(validate=20))
    exact = bt.exact.compute_exact_regret(bt.UCB1(), bt.Bernoulli(arms=2, prior=RARE.prior[0]), [0.5], horizon=9)
    for result in (curve, report, exact):
        assert "noise 0.06564, from the problem" in repr(result)


def test_the_command_of_a_report_repeats_its_result(capsys):
    small = {"horizon": 60, "budget": 60, "seed": 3}
    for result in (
        bt.tune(bt.UCB1(), RARE, **group_settings(validate=40, **small)),
        bt.compare([bt.Thompson(), bt.UCB1(noise=0.5)], RARE, **group_settings(validate=40, **small)),
        bt.curve(bt.UCB1(), RARE, [0.1, 0.9], horizon=60, runs=20),
        bt.exact.compute_exact_regret(bt.exact.Optimal(), bt.Mixture([[0.6, 0.4], [0.3, 0.5]]), [0.0], horizon=5),
    ):
        command = repeat_commands.make_command(result)
        assert "=problem" in command
        app([*shlex.split(command)[1:], "--json"], standalone_mode=False)
        loaded = bt.results.from_json(capsys.readouterr().out)
        assert replace(loaded, setup=replace(loaded.setup, command=result.setup.command)) == result


def test_old_results_without_a_baseline_can_be_read():
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), **group_settings(**SHORT))
    old = json.loads(tuning.to_json())
    del old["textbook_policy"]
    del old["setup"]["from_problem"]
    loaded = bt.results.from_json(json.dumps(old))
    assert loaded.textbook_policy is None
    assert repr(loaded) == repr(tuning)


def test_robustness_keeps_the_options_of_the_expected_problem():
    tuning = bt.tune(bt.UCB1(), bt.Bernoulli(arms=4, prior=(2, 40)), **group_settings(include=("robustness",), **SHORT))
    scenario = next(
        scenario for scenario in tuning.robustness.scenarios if scenario.description.startswith("means higher")
    )
    problem = bt.Bernoulli(arms=4, prior=scenario.problem["prior"])
    options = {"horizon": 60, "runs": 40, "first_instance": 2**40}
    policy = bt.UCB1(noise=tuning.setup.policy["noise"])
    regrets = bt.simulate(policy, problem, list(tuning.params.values()), **group_settings(**options))
    assert scenario.regret.mean == pytest.approx(regrets.mean(), rel=1e-6)
    textbook = bt.simulate(bt.UCB1(noise=0.5), problem, [1.0], **group_settings(**options))
    assert scenario.textbook_regret.mean == pytest.approx(textbook.mean(), rel=1e-6)


def test_without_a_problem_options_must_be_given():
    with pytest.raises(bt.InvalidRequest, match=r"`noise` of ucb1 must be given in numbers.*UCB1\(noise=\.\.\.\)"):
        bt.deploy(bt.UCB1(), 0.3, horizon=100, arms=3)
    with pytest.raises(bt.InvalidRequest, match="no problem here to take it from"):
        SimulationSpec(bt.GaussianThompson(), RARE, 9)
    assert bt.deploy(bt.UCB1(noise=0.5), 0.3, horizon=100, arms=3).select_arm() == 0


def test_a_tuning_is_deployed_with_its_options():
    tuning = bt.tune(bt.Thompson(), RARE, **group_settings(**SHORT))
    for deployed in (tuning.deploy(), tuning.deploy(bt.Thompson())):
        assert deployed.state.policy == {"name": "ts", "prior": [3.35722, 771.387]}
    with pytest.raises(bt.InvalidRequest, match="the policy must be the one that was tuned"):
        tuning.deploy(bt.Thompson(prior=(1, 1)))


def test_constant_rewards_have_the_noise_of_the_textbook_or_none():
    constant_rewards = bt.Mixture([[0.0, 1.0], [1.0, 0.0]])
    resolved = resolve(bt.UCB1(), constant_rewards)
    assert resolved.policy == bt.UCB1(noise=0.5)
    assert resolved.sources == (("noise", "the textbook's, because the problem's rewards do not vary"),)
    with pytest.raises(bt.InvalidRequest, match="the rewards of 'constant' do not vary"):
        resolve(bt.UCB1(), CONSTANT)


@dataclass(frozen=True)
class WiderUCB1(bt.UCB1):
    """A user's policy, which inherits the source of its noise."""

    parameters = (Parameter("gamma", 0, 2, textbook=1),)


@dataclass(frozen=True)
class OtherMeans(bt.Bernoulli):
    """A user's problem with a name of the package, whose means do not come from its prior."""

    def sample(self, size, rng):
        return Instances(rng.uniform(0.1, 0.2, (size, self.arms)))


def test_users_policies_and_problems_are_resolved_in_the_same_way():
    assert resolve(WiderUCB1(), RARE).policy == WiderUCB1(noise=resolve(bt.UCB1(), RARE).policy.noise)
    mean, variance = 0.15, 0.01 / 12
    a, b = resolve(bt.Thompson(), OtherMeans(arms=3)).policy.prior
    assert a / (a + b) == pytest.approx(mean, rel=0.01)
    assert a + b == pytest.approx(mean * (1 - mean) / variance - 1, rel=0.1)
    assert "matched" in resolve(bt.UCB1(), OtherMeans(arms=3)).sources[0][1]


def test_a_default_policy_has_its_shortcut():
    for policy in (bt.UCB1(), bt.Thompson()):
        assert select_shortcut(resolve(policy, RARE).policy, RARE) is policy.shortcuts[0]


def test_a_store_identifies_policies_by_their_options(tmp_path):
    settings = {**SHORT, "store": tmp_path / "study.db"}
    first = bt.tune(bt.UCB1(), RARE, **group_settings(**settings))
    assert bt.tune(bt.UCB1(), RARE, **group_settings(**settings)) == first
    assert bt.tune(bt.UCB1(), RARE, **group_settings(**SHORT)) == first
    with_number = bt.tune(bt.UCB1(noise=first.setup.policy["noise"]), RARE, **group_settings(**settings))
    assert with_number.regret == first.regret
    assert replace(first.setup, from_problem={}) == with_number.setup


def test_the_textbook_value_of_a_policy_with_the_problems_noise_is_not_called_the_textbook():
    problem = bt.Bernoulli(arms=2)
    own, usual = (
        bt.curve(policy, problem, [0.2, 1.0], horizon=20, runs=10) for policy in (bt.UCB1(), bt.UCB1(noise=0.5))
    )
    assert str(own).count("<- textbook gamma, with the problem's noise\n") == 1
    assert str(usual).count("<- textbook\n") == 1
    exact = bt.exact.compute_exact_regret(bt.UCB1(), problem, [0.2, 1.0], horizon=9)
    assert str(exact).count("<- textbook gamma, with the problem's noise") == 1
