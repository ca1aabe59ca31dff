"""The optimal policy: its value by enumeration, its choices by another recursion, its regret by simulation."""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise, product

import numpy as np
import pytest

import banditune as bt
from banditune.core.descriptions import make_label
from banditune.exact import optimal_mixture, optimal_two_arms, table_cache
from banditune.exact.optimal_mixture import OptimalMixture, compute_optimal_machine
from banditune.exact.optimal_two_arms import Optimal, compute_optimal_thresholds, count_states, locate_rows
from banditune.exact.optimal_value import compute_optimum, make_optimal_policy
from banditune.simulation import memory, simulator
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.estimators.arm_totals import ArmTotals
from banditune.simulation.spec import SimulationSpec
from helpers.statistics import mean_agrees

WARM_UP = ((0.6, 0.4), (0.4, 0.6))
PRIORS = [((1, 1), (1, 1)), ((0.3, 2.5), (4, 4)), ((0.05, 0.1), (1, 1)), ((30, 20), (0.7, 0.5)), ((1, 9), (5, 0.2))]
MIXTURES = [
    (WARM_UP, None, 7),
    (((0.7, 0.45), (0.35, 0.5), (0.1, 0.95)), (0.2, 0.5, 0.3), 7),
    (((0.2, 0.5, 0.4), (0.6, 0.1, 0.4)), (0.9, 0.1), 5),
    (((1.0, 0.5), (0.0, 0.5), (0.5, 0.6)), (0.2, 0.3, 0.5), 7),  # one pull of arm 1 may rule instances out
    (((1.0, 0.0), (0.0, 1.0)), None, 6),
    (
        ((0.3, 0.6), (0.3, 0.6), (0.9, 0.9), (0.8, 0.1)),
        (0.2, 0.3, 0.0, 0.5),
        6,
    ),  # twice the same, and one that never is
    (((0.3, 0.7),), None, 5),
]


@pytest.fixture
def cache_folder(tmp_path, monkeypatch):
    """An empty folder for tables."""
    monkeypatch.setattr(table_cache, "find_cache_folder", lambda: tmp_path)
    return tmp_path / "tables"


def compute_best_reward(chance_of, arms, horizon, discount=1.0):
    """The best expected reward, by a walk over every history of (arm, reward)."""

    def value(history):
        if len(history) == horizon:
            return 0.0
        values = []
        for arm in range(arms):
            chance = chance_of(history, arm)
            after = [value([*history, (arm, reward)]) if p else 0.0 for reward, p in ((0, 1 - chance), (1, chance))]
            values.append(chance + discount * ((1 - chance) * after[0] + chance * after[1]))
        return max(values)

    return value([])


def make_beta_probability(shapes):
    def chance_of(history, arm):
        rewards = [reward for pulled, reward in history if pulled == arm]
        a, b = shapes[arm]
        return (a + sum(rewards)) / (a + b + len(rewards))

    return chance_of


def make_mixture_probability(means, weights):
    def chance_of(history, arm):
        joint = [
            weight * math.prod(row[pulled] if reward else 1 - row[pulled] for pulled, reward in history)
            for row, weight in zip(means, weights, strict=True)
        ]
        return sum(p * row[arm] for p, row in zip(joint, means, strict=True)) / sum(joint)

    return chance_of


@pytest.mark.parametrize("shapes", PRIORS)
def test_two_arms_have_no_better_policy(shapes):
    for horizon, discount in ((1, 1.0), (2, 1.0), (7, 1.0), (6, 0.7)):
        exact = compute_best_reward(make_beta_probability(shapes), 2, horizon, discount)
        assert optimal_two_arms.compute_optimal_reward_two_arms(shapes, horizon, discount) == pytest.approx(
            exact, abs=1e-13
        )


def test_two_arms_with_any_prior_have_no_better_policy():
    rng = np.random.default_rng(4)
    for _ in range(4):
        shapes = np.exp(rng.normal(0, 1.5, (2, 2))).tolist()
        exact = compute_best_reward(make_beta_probability(shapes), 2, 6)
        assert optimal_two_arms.compute_optimal_reward_two_arms(shapes, 6) == pytest.approx(exact, abs=1e-13)


@pytest.mark.parametrize(("means", "weights", "horizon"), MIXTURES)
def test_a_mixture_has_no_better_policy(means, weights, horizon):
    exact = compute_best_reward(
        make_mixture_probability(means, weights or [1 / len(means)] * len(means)), len(means[0]), horizon
    )
    assert optimal_mixture.compute_optimal_reward_mixture(means, weights, horizon) == pytest.approx(exact, abs=1e-13)


def test_no_mixture_has_a_better_policy():
    rng = np.random.default_rng(5)
    for instances, arms, horizon in ((2, 2, 7), (4, 2, 6), (3, 3, 5)):
        means, weights = rng.random((instances, arms)).tolist(), rng.dirichlet(np.ones(instances)).tolist()
        exact = compute_best_reward(make_mixture_probability(means, weights), arms, horizon)
        assert optimal_mixture.compute_optimal_reward_mixture(means, weights, horizon) == pytest.approx(
            exact, abs=1e-13
        )


def test_the_optima_of_uniform_arms_and_of_the_warm_up_are_known():
    assert optimal_two_arms.compute_optimal_reward_two_arms((1, 1), 200) == pytest.approx(131.094, abs=5e-4)
    assert compute_optimum(bt.Bernoulli(arms=2), 200).regret == pytest.approx(2.239, abs=5e-4)
    assert compute_optimum(bt.problems.two_point_mixture(), 200).regret == pytest.approx(2.4805, abs=5e-5)


def test_the_optimum_of_the_warm_up_is_that_of_a_random_walk():
    """The walk goes right with probability .6 whatever is pulled. At 0 the wrong arm is pulled half of the time."""
    horizon = 600
    probabilities = np.zeros(2 * horizon + 1)
    probabilities[horizon] = 1.0
    regret = 0.0
    for _ in range(horizon):
        regret += 0.2 * (probabilities[:horizon].sum() + probabilities[horizon] / 2)
        probabilities = 0.6 * np.roll(probabilities, 1) + 0.4 * np.roll(probabilities, -1)
    assert compute_optimum(bt.problems.two_point_mixture(), horizon).regret == pytest.approx(regret, abs=1e-10)


def test_the_discounted_reward_of_certain_arms_is_known():
    certain = ((1e9, 1e-9), (1e-9, 1e9))
    assert optimal_two_arms.compute_optimal_reward_two_arms(certain, 50, 0.9) == pytest.approx((1 - 0.9**50) / 0.1)
    assert optimal_two_arms.compute_optimal_reward_two_arms(certain, 50) == pytest.approx(50)


def test_the_kernel_computes_every_state_as_plain_python_does():
    for horizon in (1, 2, 7, 8, 9, 17):
        layer, thresholds = (
            np.full(count_states(horizon), np.nan),
            np.full(count_states(horizon), 65535, np.uint16),
        )
        shape = np.arange(horizon) + 1.0
        optimal_two_arms.fill_layers_backward(layer, thresholds, horizon, shape, 2.0, shape, 2.0, 1.0)
        assert optimal_two_arms.compute_optimal_reward_two_arms((1, 1), horizon) == layer[0]
        np.testing.assert_array_equal(thresholds, compute_optimal_thresholds((1, 1), horizon))
        assert thresholds.max() <= horizon


def iterate_thresholds(horizon):
    """(pulls1, successes1, pulls2, index) of every threshold."""
    for pulls1 in range(horizon):
        for successes1, pulls2 in product(range(pulls1 + 1), range(horizon - pulls1)):
            yield pulls1, successes1, pulls2, locate_rows(pulls1, horizon) + successes1 * (horizon - pulls1) + pulls2


def test_every_threshold_has_a_different_index():
    assert sorted(index for *_, index in iterate_thresholds(9)) == list(range(count_states(9)))


@pytest.mark.parametrize("shapes", PRIORS)
def test_thresholds_agree_with_the_best_arm_of_every_state(shapes):
    """The best arm of every state, from the recursion for values: arm 2 from some number of its successes on."""
    horizon = 16
    (a1, b1), (a2, b2) = shapes

    @cache
    def values(pulls1, successes1, pulls2, successes2):
        if pulls1 + pulls2 == horizon:
            return 0.0, 0.0
        chance1, chance2 = (a1 + successes1) / (a1 + b1 + pulls1), (a2 + successes2) / (a2 + b2 + pulls2)
        won1, lost1 = (max(values(pulls1 + 1, successes1 + s, pulls2, successes2)) for s in (1, 0))
        won2, lost2 = (max(values(pulls1, successes1, pulls2 + 1, successes2 + s)) for s in (1, 0))
        return chance1 * (1 + won1) + (1 - chance1) * lost1, chance2 * (1 + won2) + (1 - chance2) * lost2

    table = compute_optimal_thresholds(shapes, horizon)
    histories = list(iterate_thresholds(horizon))
    assert len(histories) == len(table)
    for pulls1, successes1, pulls2, index in histories:
        pairs = [values(pulls1, successes1, pulls2, s) for s in range(pulls2 + 1)]
        advantages = [value2 - value1 for value1, value2 in pairs]
        assert all(after >= before - 1e-13 for before, after in pairwise(advantages))
        second_is_better = [advantage > 1e-13 for advantage in advantages]
        assert second_is_better == [s >= table[index] for s in range(pulls2 + 1)]
        assert table[index] <= pulls2 + 1


@pytest.mark.parametrize("shapes", PRIORS)
def test_thresholds_rise_with_the_successes_of_the_other_arm(shapes):
    horizon = 60
    table = compute_optimal_thresholds(shapes, horizon)
    assert np.ptp(table) > 0
    for pulls1 in range(horizon):
        start, width = locate_rows(pulls1, horizon), horizon - pulls1
        rows = table[start : start + (pulls1 + 1) * width].reshape(pulls1 + 1, width)
        assert (np.diff(rows.astype(int), axis=0) >= 0).all()


def test_advantages_follow_from_later_ones():
    """The identity in the docstring of `Optimal`, and the value from it."""
    horizon, (a1, b1), (a2, b2) = 40, (0.5, 1.5), (3.0, 4.0)

    def compute_probabilities(pulls1, pulls2):
        return (
            (a1 + np.arange(pulls1 + 1)[:, None]) / (a1 + b1 + pulls1),
            (a2 + np.arange(pulls2 + 1)) / (a2 + b2 + pulls2),
        )

    later, gains = {}, []
    for step in range(horizon - 1, -1, -1):
        now = {}
        for pulls1 in range(step + 1):
            p1, p2 = compute_probabilities(pulls1, step - pulls1)
            now[pulls1] = p2 - p1
            if later:
                gain, loss = np.maximum(later[pulls1], 0), np.minimum(later[pulls1 + 1], 0)
                now[pulls1] = p2 * gain[:, 1:] + (1 - p2) * gain[:, :-1] + p1 * loss[1:] + (1 - p1) * loss[:-1]
        gains.append(np.maximum(now[step][:, 0], 0))
        later = now
    value, reached = 0.0, np.ones(1)
    for pulls1, gain in enumerate(reversed(gains)):
        p1 = compute_probabilities(pulls1, 0)[0][:, 0]
        value += reached @ (p1 + gain)
        reached = np.append(reached * (1 - p1), 0) + np.append(0, reached * p1)
    assert optimal_two_arms.compute_optimal_reward_two_arms(((a1, b1), (a2, b2)), horizon) == pytest.approx(
        value, abs=1e-12
    )


def test_ties_go_to_the_first_arm():
    table = compute_optimal_thresholds((1, 1), 7)
    assert table[0] == 1  # nothing is known of either arm: arm 2 is not pulled
    last = locate_rows(2, 7) + 1 * (7 - 2) + 4
    assert table[last] == 3  # one success in two pulls is as good as two in four, however it is rounded
    assert compute_optimal_machine(((0.5, 0.5), (0.2, 0.2)), None, 30)[::3].max() == 0


@pytest.mark.parametrize(
    ("problem", "horizon"),
    [
        (bt.Bernoulli(arms=2), 100),
        (bt.Bernoulli(arms=2, prior=[(1, 3), (0.5, 0.5)]), 60),
        (bt.problems.two_point_mixture(), 100),
        (bt.Mixture(((0.9, 0.6, 0.5), (0.1, 0.2, 0.7), (1.0, 0.0, 0.3)), (0.5, 0.2, 0.3)), 25),
    ],
)
def test_the_simulated_regret_of_the_optimal_policy_is_the_optimum(problem, horizon):
    policy = make_optimal_policy(problem)
    regrets = bt.simulate(policy, problem, horizon=horizon, runs=100_000, seed=3)[0]
    assert mean_agrees(regrets, compute_optimum(problem, horizon).regret)


def test_the_realised_regret_of_the_optimal_policy_is_the_optimum():
    regrets = bt.simulate(
        Optimal(prior=(1, 1)),
        bt.Bernoulli(arms=2),
        horizon=50,
        runs=100_000,
        simulation=bt.Simulation(regret="realised"),
    )[0]
    assert mean_agrees(regrets, compute_optimum(bt.Bernoulli(arms=2), 50).regret)


def test_the_expected_largest_mean_is_exact():
    assert compute_optimum(bt.Bernoulli(arms=2), 9).oracle_reward == pytest.approx(6, abs=1e-12)
    assert compute_optimum(bt.Mixture(((0.9, 0.1), (0.2, 0.5)), (1, 3)), 10).oracle_reward == pytest.approx(
        10 * (0.9 + 3 * 0.5) / 4
    )


@bt.kernel.scalar
def pay_any_number(instance, arm, pull, step, stream):
    """From the fifth pull on, a reward from -1.5 to 2.5, which is outside of what the problem states."""
    mean = instance.means[arm]
    if pull < 4:
        return 1.0 if bt.kernel.uniform(stream) < mean else 0.0
    return mean + 3 * bt.kernel.uniform(stream) - 1.5


def draw_two_means(size, rng):
    return rng.random((size, 2))


@pytest.mark.slow
def test_other_rewards_than_0_and_1_do_not_leave_the_tables(monkeypatch):
    monkeypatch.setattr(simulator, "check_policy_and_problem", lambda job: None)
    uneven = bt.define_problem("uneven", draw_two_means, pay_any_number, arms=2, rewards="binary")
    for policy in (
        Optimal(prior=(1, 1)),
        OptimalMixture(bt.problems.two_point_mixture().means),
        bt.exact.Gittins(prior=(1, 1)),
    ):  # compiled with bounds checks, because the reward is not the package's
        assert np.isfinite(simulate_rows(SimulationSpec(policy, uneven, 30), [[0.0]], range(500))).all()
    setting = bt.kernel.Setting(2, 0, 4, np.zeros((0, 2)), compute_optimal_thresholds((1, 1), 4))
    for total in (-9.0, -0.6, 0.5, 1.49, 7.0, 1e9):
        for pulls in ((0, 0), (3, 0), (0, 3), (1, 2)):
            state = ArmTotals(np.array(pulls, float), np.full(2, total))
            assert optimal_two_arms.choose_optimal_arm(state, setting, sum(pulls), np.zeros(1), None) in (0, 1)


def test_every_node_of_the_machine_leads_to_the_next_step():
    horizon = 12
    table = compute_optimal_machine(((0.9, 0.6), (0.1, 0.2), (1.0, 0.0)), None, horizon).reshape(-1, 3)
    step = np.full(len(table), -1)
    step[0] = 0
    for node, (arm, *after) in enumerate(table):
        assert arm in (0, 1)
        assert step[node] >= 0  # it can be reached
        if step[node] < horizon - 1:
            assert min(after) > node
            step[after] = step[node] + 1
        else:
            assert after == [node, node]
    assert step.max() == horizon - 1


def test_an_impossible_outcome_changes_no_belief():
    table = compute_optimal_machine(((1.0, 0.4), (1.0, 0.3)), None, 4).reshape(-1, 3)
    assert len(table) == 4
    assert (table[:, 0] == 0).all()
    assert (table[:3, 1] == table[:3, 2]).all()


def test_states_of_equal_evidence_share_a_node():
    layers = optimal_mixture.build_posterior_layers(bt.problems.two_point_mixture(), 500)
    assert [len(layer.success_probabilities) for layer in layers[:4]] == [1, 2, 3, 4]
    assert max(len(layer.success_probabilities) for layer in layers) < 150  # the rest is ruled out


def test_a_horizon_that_does_not_fit_is_refused_with_one_that_does(monkeypatch, cache_folder):
    monkeypatch.setattr(memory, "measure_free_memory", lambda: 1e6)
    with pytest.raises(bt.InvalidRequest, match=r"at horizon=1000 it needs 1\.2 GiB") as error:
        optimal_two_arms.compute_optimal_reward_two_arms((1, 1), 1000)
    largest = int(str(error.value).split()[-1].rstrip("."))
    assert optimal_two_arms.compute_optimal_reward_two_arms((1, 1), largest) > 0
    with pytest.raises(bt.InvalidRequest, match="the largest horizon that fits"):
        optimal_two_arms.compute_optimal_reward_two_arms((1, 1), largest + 1)
    with pytest.raises(bt.InvalidRequest, match=r"needs 1\.6 GiB"):
        bt.simulate(Optimal(prior=(1, 1)), bt.Bernoulli(arms=2), horizon=1000)


def test_a_mixture_that_does_not_fit_is_refused_with_an_estimate(monkeypatch, cache_folder):
    means = ((0.7, 0.45), (0.35, 0.5))
    layers = optimal_mixture.build_posterior_layers(bt.Mixture(means), 60)
    needed = sum(layer.success_probabilities.nbytes + layer.next_nodes.nbytes for layer in layers)
    monkeypatch.setattr(memory, "measure_free_memory", lambda: 3e6)
    with pytest.raises(bt.InvalidRequest, match="at horizon=60 they need about") as error:
        optimal_mixture.compute_optimal_reward_mixture(means, None, 60)
    message = str(error.value)
    assert needed / 2**20 == pytest.approx(float(message.split("about ")[1].split()[0]), rel=0.25)
    largest = int(message.split()[-1].rstrip("."))
    assert 20 < largest < 60
    assert optimal_mixture.compute_optimal_reward_mixture(means, None, largest) > 0
    with pytest.raises(bt.InvalidRequest, match="the largest horizon that fits"):
        OptimalMixture(means).options(2, 0, 60)
    monkeypatch.setattr(memory, "measure_free_memory", lambda: 100.0)
    with pytest.raises(bt.InvalidRequest, match="the largest horizon that fits is 0"):
        optimal_mixture.compute_optimal_reward_mixture(means, None, 60)


@pytest.mark.parametrize(
    ("module", "function_name", "policy"),
    [
        (optimal_two_arms, "run_backward_induction", Optimal((2, 1))),
        (optimal_mixture, "build_posterior_layers", OptimalMixture(bt.problems.two_point_mixture().means)),
    ],
)
def test_tables_are_stored_and_computed_again_when_damaged(module, function_name, policy, monkeypatch, cache_folder):
    calls = []
    function = getattr(module, function_name)
    monkeypatch.setattr(module, function_name, lambda *args, **kwargs: calls.append(1) or function(*args, **kwargs))
    first = policy.options(2, 0, 20).tolist()
    assert policy.options(2, 0, 20).tolist() == first
    assert len(calls) == 1
    (path,) = cache_folder.iterdir()
    path.write_bytes(path.read_bytes()[:-50])
    table_cache.recent_tables.clear()
    assert policy.options(2, 0, 20).tolist() == first
    assert len(calls) == 2
    policy.options(2, 0, 21)
    assert len(calls) == 3


def test_labels_contain_names_and_priors():
    assert make_label(Optimal()) == "optimal"
    assert Optimal(prior=(1, 1)) == make_optimal_policy(bt.Bernoulli(arms=2))
    assert make_label(Optimal([(1, 1), (2, 1)])) == "optimal(prior=((1, 1), (2, 1)))"
    assert make_label(OptimalMixture()) == "optimal-mixture"
    assert hash(OptimalMixture([[0.6, 0.4], [0.4, 0.6]])) == hash(OptimalMixture(bt.problems.two_point_mixture().means))


def test_wrong_requests_for_optima_are_refused():
    for problem in (bt.Bernoulli(arms=3), bt.Gaussian(arms=2), bt.BetaRewards(arms=2), "bernoulli"):
        with pytest.raises(bt.InvalidRequest, match="bernoulli with 2 arms, or mixture"):
            compute_optimum(problem, 10)
        with pytest.raises(bt.InvalidRequest, match="bernoulli with 2 arms, or mixture"):
            make_optimal_policy(problem)
    with pytest.raises(bt.InvalidRequest, match="arms = 2"):
        bt.simulate(Optimal(prior=(1, 1)), bt.Bernoulli(arms=3), horizon=10)
    with pytest.raises(bt.InvalidRequest, match="as many columns"):
        bt.simulate(OptimalMixture(bt.problems.two_point_mixture().means), bt.Bernoulli(arms=3), horizon=10)
    with pytest.raises(bt.InvalidRequest, match="rewards of 0 or 1"):
        bt.simulate(Optimal(prior=(1, 1)), bt.Gaussian(arms=2), horizon=10)
    for horizon in (0, -3, 2.5, True, "ten"):
        with pytest.raises(bt.InvalidRequest, match="`horizon` must be a whole number >= 1"):
            optimal_two_arms.compute_optimal_reward_two_arms((1, 1), horizon)
        with pytest.raises(bt.InvalidRequest, match="`horizon` must be a whole number >= 1"):
            optimal_mixture.compute_optimal_reward_mixture(WARM_UP, None, horizon)
    for discount in (0, -0.1, 1.1, math.nan):
        with pytest.raises(bt.InvalidRequest, match="discount"):
            optimal_two_arms.compute_optimal_reward_two_arms((1, 1), 5, discount)
    for prior in ((0, 1), (1, 1, 1), ((1, 1), (1, 1), (1, 1)), "flat"):
        with pytest.raises(bt.InvalidRequest, match="prior"):
            Optimal(prior)
    with pytest.raises(bt.InvalidRequest, match="weights"):
        OptimalMixture(weights=(1, 2, 3))


@pytest.mark.slow
def test_no_tuned_policy_is_better():
    problem, horizon = bt.Bernoulli(arms=2), 200
    least = compute_optimum(problem, horizon).regret
    for policy in (bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1)), bt.EpsilonGreedy()):
        values = np.linspace(0.05, 1, 12)
        regrets = bt.simulate(policy, problem, values, horizon=horizon, runs=100_000)
        errors = regrets.std(axis=1) / math.sqrt(regrets.shape[1])
        assert (regrets.mean(axis=1) > least - 4 * errors).all()
