"""Exact regrets, compared with walks over all histories and policies written for histories."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pytest

import banditune as bt
from banditune.core.arrays import FloatArray
from banditune.exact import beta_quadrature
from banditune.exact.arm_probabilities import compute_thompson_probabilities
from banditune.exact.bayes_regret import compute_bayes_regret
from banditune.exact.packed_counts import ONE_PULL
from banditune.exact.state_layers import StateLayer
from banditune.policies.base_policies import TotalsPolicy
from banditune.simulation import memory
from helpers import oracles
from helpers.oracles import count_history

HORIZON = 7


class Case(NamedTuple):
    """A problem, and the regret on it of a policy for histories."""

    problem: bt.kernel.Problem
    regret: object


def make_beta_case(priors):
    problem = bt.Bernoulli(arms=len(priors), prior=priors[0] if len(set(priors)) == 1 else priors)
    return Case(problem, lambda choose, horizon: oracles.compute_beta_regret(choose, priors, horizon))


def make_mixture_case(mixture):
    weights, means = zip(*mixture, strict=True)
    problem = bt.Mixture(means, weights=weights)
    return Case(problem, lambda choose, horizon: oracles.compute_mixture_regret(choose, mixture, horizon))


BETA_TWO = make_beta_case(((1.0, 1.0), (1.0, 1.0)))
BETA_OWN = make_beta_case(((2.0, 3.0), (0.7, 1.2)))
BETA_THREE = make_beta_case(((2.0, 1.0), (1.0, 1.0), (1.5, 4.0)))
MIXTURE_TWO = make_mixture_case([(0.25, (0.7, 0.4)), (0.75, (0.3, 0.9))])
MIXTURE_THREE = make_mixture_case([(0.3, (0.5, 0.3, 0.6)), (0.7, (0.2, 0.8, 0.8))])
CERTAIN_REWARDS = make_mixture_case([(0.2, (1.0, 0.4)), (0.3, (0.0, 1.0)), (0.5, (0.3, 0.0)), (0.0, (0.5, 0.5))])
TWO_ARMS = [BETA_TWO, BETA_OWN, MIXTURE_TWO, CERTAIN_REWARDS]
CASES = [*TWO_ARMS, BETA_THREE, MIXTURE_THREE]


def assert_regret(policy, params, case, choose, horizon=HORIZON):
    regret = compute_bayes_regret(policy, case.problem, [params], horizon)
    assert regret.shape == (1,)
    assert regret[0] == pytest.approx(case.regret(choose, horizon), abs=1e-10)


def choose_surely(arm, arms):
    """Probabilities that choose one arm for certain."""
    return np.eye(arms)[arm]


def choose_greedily(history, arms):
    """The first arm without a pull, else the arm with the highest mean."""
    pulls, totals = count_history(history, arms)
    return choose_surely(np.argmax(totals / pulls) if pulls.all() else np.argmin(pulls > 0), arms)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("gamma", "noise"), [(0.0, 0.5), (0.3, 0.5), (1.0, 0.25)])
def test_the_regret_of_ucb1_is_exact(case, gamma, noise):
    arms, scale = case.problem.arms, 2 * noise * math.sqrt(2 * math.log(HORIZON))

    def choose(history):
        if len(history) < arms:
            return choose_surely(len(history), arms)
        pulls, totals = count_history(history, arms)
        return choose_surely(np.argmax(totals / pulls + gamma * (scale / np.sqrt(pulls))), arms)

    assert_regret(bt.UCB1(noise=noise), [gamma], case, choose)


@pytest.mark.parametrize("case", CASES)
def test_the_regret_of_greedy_is_exact(case):
    assert_regret(bt.Greedy(), [0.0], case, lambda history: choose_greedily(history, case.problem.arms))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epsilon", [0.0, 0.2, 1.0])
def test_the_regret_of_epsilon_greedy_is_exact(case, epsilon):
    arms = case.problem.arms

    def choose(history):
        return epsilon / arms + (1 - epsilon) * choose_greedily(history, arms)

    assert_regret(bt.EpsilonGreedy(), [epsilon], case, choose, horizon=7 if arms == 2 else 5)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("pulls", [1, 2, 5])
def test_the_regret_of_explore_then_commit_is_exact(case, pulls):
    arms = case.problem.arms

    def choose(history):
        if len(history) < pulls * arms:
            return choose_surely(len(history) % arms, arms)
        return choose_greedily(history[: pulls * arms], arms)

    assert_regret(bt.ExploreThenCommit(), [pulls], case, choose)


@pytest.mark.parametrize(
    ("case", "gamma", "prior", "horizon"),
    [
        (BETA_TWO, 1.0, (1, 1), 7),
        (BETA_TWO, 0.5, (1, 1), 6),
        (BETA_OWN, 0.8, (2, 1), 6),
        (MIXTURE_TWO, 1.0, (1, 1), 7),
        (MIXTURE_TWO, 0.25, (1, 1.5), 6),
        (CERTAIN_REWARDS, 0.8, (2, 1), 6),
        (BETA_THREE, 1.0, (1, 1), 4),
        (MIXTURE_THREE, 0.6, (1, 2), 4),
    ],
)
def test_the_regret_of_thompson_sampling_is_exact(case, gamma, prior, horizon):
    arms = case.problem.arms

    def choose(history):
        pulls, totals = count_history(history, arms)
        shapes = [
            ((s + prior[0]) / gamma**2, (n - s + prior[1]) / gamma**2) for n, s in zip(pulls, totals, strict=True)
        ]
        return [
            oracles.compute_win_probability(shape, *shapes[:arm], *shapes[arm + 1 :])
            for arm, shape in enumerate(shapes)
        ]

    assert_regret(bt.Thompson(prior=prior), [gamma], case, choose, horizon)


@pytest.mark.parametrize("case", CASES)
def test_thompson_sampling_at_gamma_0_is_greedy(case):
    def choose(history):
        pulls, totals = count_history(history, case.problem.arms)
        return choose_surely(np.argmax((totals + 2) / (pulls + 3)), case.problem.arms)

    assert_regret(bt.Thompson(prior=(2, 1)), [0.0], case, choose)


@bt.kernel.scalar
def choose_patiently(state, setting, step, params, stream):
    """Stay with the first arm while it has at most `patience` more failures than successes, else choose the second."""
    return 0 if state.total[0] + params[0] >= state.pulls[0] - state.total[0] else 1


@pytest.mark.parametrize("case", TWO_ARMS)
def test_the_regret_of_a_users_policy_is_exact(case):
    policy = bt.define_policy("stay", choose_patiently, parameters=bt.Parameter("patience", 0, 10, textbook=1))

    def choose(history):
        pulls, totals = count_history(history, 2)
        return choose_surely(0 if totals[0] + 1.5 >= pulls[0] - totals[0] else 1, 2)

    assert_regret(policy, [1.5], case, choose, horizon=8)


@bt.kernel.scalar
def view_memory(memory, setting):
    return memory


@bt.kernel.scalar
def start_recent_means(memory, setting):
    for arm in range(setting.arms):
        memory[arm] = 0.6


@bt.kernel.scalar
def choose_recent_mean(memory, setting, step, params, stream):
    return bt.kernel.argmax_score(memory)


@bt.kernel.scalar
def update_recent_mean(memory, setting, step, params, arm, reward, stream):
    memory[arm] += 0.3 * (reward - memory[arm])


@dataclass(frozen=True)
class RecentMeans(bt.kernel.Policy):
    """The highest recent mean. Its memory depends on the order of the rewards."""

    name = "recent"
    view = staticmethod(view_memory)
    start = staticmethod(start_recent_means)
    choose = staticmethod(choose_recent_mean)
    update = staticmethod(update_recent_mean)

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return arms


@pytest.mark.parametrize("case", CASES)
def test_a_policy_may_remember_the_order_of_rewards(case):
    def choose(history):
        value = np.full(case.problem.arms, 0.6)
        for arm, reward in history:
            value[arm] += 0.3 * (reward - value[arm])
        return choose_surely(np.argmax(value), case.problem.arms)

    assert_regret(RecentMeans(), [0.0], case, choose, horizon=8)


@bt.kernel.scalar
def choose_by_table(state, setting, step, params, stream):
    return setting.options[step]


@dataclass(frozen=True)
class TablePolicy(TotalsPolicy):
    """Choose the arms of a table."""

    name = "listed"
    table: tuple[int, ...] = field(default=(0, 1, 1, 0, 1))
    choose = staticmethod(choose_by_table)

    def options(self, arms: int, dims: int, horizon: int):
        return np.array(self.table, np.uint8)


def test_the_options_of_a_policy_may_be_a_table():
    problem = bt.Bernoulli(arms=2, prior=((1, 1), (3, 1)))
    best = oracles.compute_expected_max(((1.0, 1.0), (3.0, 1.0)))
    assert compute_bayes_regret(TablePolicy(), problem, [[0.0]], 5)[0] == pytest.approx(
        5 * best - 2 * 0.5 - 3 * 0.75, abs=1e-12
    )


def test_rows_together_have_the_regrets_of_single_rows():
    rows = np.array([[0.0], [0.2], [1.0]])
    together = compute_bayes_regret(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), rows, 20)
    single_rows = [compute_bayes_regret(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), row[None], 20)[0] for row in rows]
    assert together.tolist() == single_rows
    assert len(set(single_rows)) == 3


def test_the_regret_of_one_step_is_exact():
    assert compute_bayes_regret(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=2), [[1.0]], 1)[0] == pytest.approx(
        2 / 3 - 1 / 2, abs=1e-12
    )


def test_the_regret_of_uniform_choice_over_100_steps_is_exact():
    """The sum of 100 layers of up to 176,851 states. The answer is known."""
    regret = compute_bayes_regret(bt.EpsilonGreedy(), bt.Bernoulli(arms=2), [[1.0]], 100)[0]
    assert regret == pytest.approx(100 / 6, abs=1e-10)


def test_the_order_of_arms_does_not_change_thompson_sampling():
    """Arms are split into a left and a right half. It must not matter which arm is where."""
    priors = [(1.0, 2.0), (3.0, 1.0), (2.0, 2.0)]
    orders = [(0, 1, 2), (1, 2, 0), (2, 1, 0)]
    regrets = [
        compute_bayes_regret(
            bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3, prior=[priors[k] for k in order]), [[0.7]], 8
        )[0]
        for order in orders
    ]
    assert regrets == pytest.approx([regrets[0]] * 3, abs=1e-11)


@pytest.mark.parametrize("arms", [2, 3, 4, 5])
def test_thompson_probabilities_of_many_arms_agree_with_quadrature(arms):
    rng = np.random.default_rng(arms)
    pulls = rng.multinomial(12, np.full(arms, 1 / arms), size=6)
    successes = rng.binomial(pulls, 0.6)
    probabilities = compute_thompson_probabilities(np.array([0.9]), np.array([1.0, 2.0]), ONE_PULL * pulls + successes)
    assert len(probabilities) == 6
    for row, n, s in zip(probabilities, pulls.tolist(), successes.tolist(), strict=True):
        shapes = [((x + 1) / 0.81, (y - x + 2) / 0.81) for x, y in zip(s, n, strict=True)]
        expected = [
            oracles.compute_win_probability(shape, *shapes[:k], *shapes[k + 1 :]) for k, shape in enumerate(shapes)
        ]
        assert row == pytest.approx(expected, abs=1e-11)


def test_compiled_and_plain_python_agree(run_python):
    code = """
import banditune as bt
from banditune.exact.bayes_regret import compute_bayes_regret
print(*compute_bayes_regret(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [[0.3]], 9).tolist())
"""
    process = run_python(code, NUMBA_DISABLE_JIT="1")
    assert process.returncode == 0, process.stderr
    assert float(process.stdout) == compute_bayes_regret(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [[0.3]], 9)[0]


@bt.kernel.scalar
def choose_at_random_once(state, setting, step, params, stream):
    """Draws at the last step only, and only where the first arm always paid."""
    if step == 5 and state.total[0] == state.pulls[0]:
        return bt.kernel.draw_arm(state, stream)
    return step % setting.arms


@bt.kernel.scalar
def choose_first(state, setting, step, params, stream):
    return 0


@bt.kernel.scalar
def update_at_random(state, setting, step, params, arm, reward, stream):
    state.pulls[arm] += bt.kernel.uniform(stream)


@dataclass(frozen=True)
class RandomUpdates(TotalsPolicy):
    name = "draws"
    choose = staticmethod(choose_first)
    update = staticmethod(update_at_random)


@pytest.mark.parametrize(
    ("policy", "step"),
    [(bt.define_policy("late", choose_at_random_once), 5), (RandomUpdates(), 0)],
)
def test_a_policy_that_draws_is_refused(policy, step):
    with pytest.raises(
        bt.InvalidRequest, match=rf"without random numbers, .* {policy.name!r} drew random numbers at step {step};"
    ):
        compute_bayes_regret(policy, bt.Bernoulli(arms=2), [[0.5]], 6)


@bt.kernel.scalar
def choose_missing_arm(state, setting, step, params, stream):
    return setting.arms if step == 3 and state.total[1] == 1.0 else step % 2


@bt.kernel.scalar
def choose_beyond_memory(state, setting, step, params, stream):
    return int(state.total[step * 1000])


def test_a_missing_arm_is_an_error_with_its_state():
    with pytest.raises(bt.SimulationError, match=r"chose 2 at step 3 .* after \[2, 1\] pulls and \[\d, 1\] successes"):
        compute_bayes_regret(bt.define_policy("bad", choose_missing_arm), bt.Bernoulli(arms=2), [[0.0]], 6)


def test_an_exception_is_an_error():
    with pytest.raises(bt.SimulationError, match="reached outside its memory"):
        compute_bayes_regret(bt.define_policy("beyond", choose_beyond_memory), bt.Bernoulli(arms=2), [[0.0]], 6)


def test_wrong_requests_for_exact_regrets_are_refused():
    with pytest.raises(bt.InvalidRequest, match="bernoulli or mixture, but got 'gaussian'"):
        compute_bayes_regret(bt.UCB1(noise=0.5), bt.Gaussian(arms=2), [[1.0]], 5)
    external = bt.wrap_policy(lambda: None, (), name="guest")
    with pytest.raises(bt.InvalidRequest, match="'guest' is an external object; simulate"):
        bt.exact.compute_exact_regret(external, bt.Bernoulli(arms=2), horizon=5)
    with pytest.raises(bt.InvalidRequest, match="rows of 1 finite numbers"):
        compute_bayes_regret(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [1.0], 5)
    with pytest.raises(bt.InvalidRequest, match="features"):
        compute_bayes_regret(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Bernoulli(arms=2), [[1.0]], 5)
    with pytest.raises(bt.InvalidRequest, match=r"between about 0\.04 and 50,000"):
        compute_bayes_regret(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=2), [[0.001]], 5)


@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1)), bt.EpsilonGreedy()])
def test_a_horizon_that_does_not_fit_is_refused_with_the_largest_that_does(policy, monkeypatch):
    monkeypatch.setattr(memory, "measure_free_memory", lambda: 2.0**20)
    with pytest.raises(bt.InvalidRequest, match="at horizon=90") as error:
        compute_bayes_regret(policy, bt.Bernoulli(arms=2), [[0.5]], 90)
    message = str(error.value)
    assert "1.0 MiB" in message
    largest = int(message.rstrip(".").split()[-1])
    assert 10 < largest < 90
    assert compute_bayes_regret(policy, bt.Bernoulli(arms=2), [[0.5]], largest - 1)[0] > 0


def test_a_layer_merges_equal_rows_only():
    rng = np.random.default_rng(1)
    words = rng.integers(-2, 2, (5000, 5)) << rng.integers(0, 60, 5)
    probabilities = rng.random(5000)
    layer = StateLayer(5, 7)
    for start in range(0, 5000, 500):
        layer.add(words[start : start + 500], probabilities[start : start + 500])
    distinct, index = np.unique(words, axis=0, return_inverse=True)
    order = np.lexsort(layer.rows.T[::-1])
    assert (layer.rows[order] == distinct).all()
    assert layer.probabilities[order] == pytest.approx(np.bincount(index.reshape(-1), probabilities))


def test_a_layer_omits_impossible_states():
    layer = StateLayer(1, 4)
    layer.add(np.array([[1], [2], [1]]), np.array([0.5, 0.0, 0.25]))
    assert layer.rows.tolist() == [[1]]
    assert layer.probabilities.tolist() == [0.75]


def test_zeros_of_either_sign_are_two_states():
    numbers: FloatArray = np.array([[0.0], [-0.0], [np.nan], [np.nan]])
    layer = StateLayer(1, 4)
    layer.add(numbers.view(np.int64), np.full(4, 0.25))
    assert layer.probabilities.tolist() == [0.25, 0.25, 0.5]


@pytest.mark.parametrize(
    ("first", "second"),
    [((1, 1), (1, 1)), ((2.5, 1.5), (1.2, 3.4)), ((40, 60), (44, 56)), ((900, 1100), (950, 1050)), ((300, 4), (90, 1))],
)
def test_win_probabilities_agree_with_quadrature(first, second):
    assert beta_quadrature.compute_win_probability(first, second) == pytest.approx(
        oracles.compute_win_probability(first, second), abs=1e-10
    )


def test_win_probabilities_agree_with_exact_sums():
    shapes = [(1, 1), (1, 8), (3, 2), (20, 1), (7, 15), (100, 130)]
    for first in shapes:
        for second in shapes:
            assert beta_quadrature.compute_win_probability(first, second) == pytest.approx(
                oracles.compute_exact_win_probability(first, second), abs=1e-12
            )


@pytest.mark.parametrize("shape", [0.06, 0.25, 1.0, 50.0, 20000.0])
def test_win_probabilities_of_extreme_shapes_sum_to_1(shape):
    first, second = (shape, 2 * shape), (1.5 * shape, shape)
    assert beta_quadrature.compute_win_probability(first, first) == pytest.approx(0.5, abs=1e-10)
    wins = beta_quadrature.compute_win_probability(first, second) + beta_quadrature.compute_win_probability(
        second, first
    )
    assert wins == pytest.approx(1, abs=1e-10)


def test_the_oracle_gives_the_known_regret_of_a_constant_choice():
    regret = oracles.compute_mixture_regret(lambda history: [0.25, 0.75], [(1.0, (0.9, 0.5))], 5)
    assert regret == pytest.approx(5 * 0.75 * 0.4)
