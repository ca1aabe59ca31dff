"""Lower bounds, compared with optimal policies, enumeration and simulated regrets."""

from __future__ import annotations

import math
from functools import cache
from itertools import product

import numpy as np
import pytest
from scipy import integrate, special, stats

import banditune as bt
from banditune.exact.beta_quadrature import NODE_MEANS, compute_expected_max
from banditune.exact.coupled_bound import compute_least_slacks
from banditune.exact.lower_bounds import BoundCalculator
from banditune.exact.one_arm_bound import _RivalArms, find_best_price
from banditune.exact.one_arm_bound_gaussian import _integrate_max_cdf, compute_stopping_levels
from banditune.exact.sampled_bounds import (
    compute_path_bounds,
    draw_paths,
    fill_mean_sums,
    maximise_counts,
    maximise_split,
    sample_bounds,
)
from banditune.simulation import memory

RNG = np.random.default_rng(2019)


def estimate_bounds(problem, horizon, runs=1000, seed=0):
    return BoundCalculator(problem, horizon, seed).estimate_all(runs)


def select_bound(problem, horizon, runs=1000, seed=0, level=0.95):
    return BoundCalculator(problem, horizon, seed).select_best(runs, level)


def compute_optimal_regret(priors, horizon):
    """The Bayes regret of the best policy for Bernoulli arms, by recursion over states."""

    @cache
    def value(state, left):
        if left == 0:
            return 0.0
        best = 0.0
        for arm, (a, b) in enumerate(state):
            mean = a / (a + b)
            won = value((*state[:arm], (a + 1, b), *state[arm + 1 :]), left - 1)
            lost = value((*state[:arm], (a, b + 1), *state[arm + 1 :]), left - 1)
            best = max(best, mean * (1 + won) + (1 - mean) * lost)
        return best

    return horizon * compute_expected_max(priors) - value(tuple(priors), horizon)


def draw_priors(arms):
    return tuple((float(a), float(b)) for a, b in np.exp(RNG.uniform(-0.7, 1.5, (arms, 2))))


CASES = [(draw_priors(2), int(RNG.integers(5, 18))) for _ in range(19)] + [(((1.0, 1.0), (1.0, 1.0)), 30)]
CASES += [(draw_priors(3), horizon) for horizon in (4, 6, 8)]


@pytest.mark.parametrize(("priors", "horizon"), CASES)
def test_no_bound_exceeds_the_optimal_regret(priors, horizon):
    optimum = compute_optimal_regret(priors, horizon)
    problem = bt.Bernoulli(arms=len(priors), prior=priors)
    estimates = estimate_bounds(problem, horizon, runs=1500, seed=1)
    assert set(estimates) == {"future", "posterior mean", "coupled", "one arm"} | (
        {"value"} if len(priors) == 2 else set()
    )
    for name, estimate in estimates.items():
        assert estimate.mean <= optimum + 4 * estimate.se + 1e-9, name
    assert estimates["one arm"].se == 0
    assert 0.2 * optimum < estimates["one arm"].mean <= estimates["coupled"].mean + 3 * estimates["coupled"].se + 1e-3
    assert max(estimate.mean for estimate in estimates.values()) > 0.5 * optimum


def test_the_optimal_regret_of_two_uniform_arms_is_known():
    # One pull loses E max - 1/2; the second pull knows the first's reward.
    assert compute_optimal_regret(((1.0, 1.0), (1.0, 1.0)), 1) == pytest.approx(1 / 6)
    assert compute_optimal_regret(((1.0, 1.0), (1.0, 1.0)), 2) == pytest.approx(4 / 3 - 1 / 2 - 7 / 12)


def test_penalties_tighten_the_bound():
    for problem, horizon in ((bt.Bernoulli(arms=2), 100), (bt.Gaussian(arms=2), 60)):
        future, belief, value = sample_bounds(problem, horizon, ("future", "posterior mean", "value"), range(1500), 3)
        for looser, tighter in ((future, belief), (belief, value)):
            gain = tighter - looser
            assert gain.mean() > -3 * gain.std() / math.sqrt(len(gain))
        assert value.std() < belief.std()


@pytest.mark.parametrize("problem", [bt.Bernoulli(arms=2, prior=((1, 2), (0.5, 0.7))), bt.Gaussian(arms=2, noise=0.7)])
def test_the_value_bound_is_the_least_sum_over_all_sequences(problem):
    horizon = 6
    truths, rewards = draw_paths(problem, horizon, 0, 0)
    computed = compute_path_bounds(problem, ("value",), truths[:3], rewards[:3])["value"]

    @cache
    def compute_means(*counts_and_sums):
        """E max and the two means after these numbers of rewards with these sums."""
        counts, sums = counts_and_sums[:2], counts_and_sums[2:]
        priors = problem.prior * (2 // len(problem.prior))
        if problem.name == "bernoulli":
            laws = [stats.beta(a + s, b + n - s) for (a, b), n, s in zip(priors, counts, sums, strict=True)]
            grid = np.linspace(0.0, 1.0, 2001)
        else:
            precisions = [sd**-2 + n * problem.noise**-2 for (_, sd), n in zip(priors, counts, strict=True)]
            weighted_means = [m * sd**-2 + s * problem.noise**-2 for (m, sd), s in zip(priors, sums, strict=True)]
            laws = [stats.norm(top / p, p**-0.5) for top, p in zip(weighted_means, precisions, strict=True)]
            grid = np.linspace(-8.0, 8.0, 2001)
        below = integrate.simpson(laws[0].cdf(grid) * laws[1].cdf(grid), x=grid)
        return grid[-1] - below, laws[0].mean(), laws[1].mean()

    for run in range(3):
        totals = []
        for pulls in product((0, 1), repeat=horizon):
            counts, total = [0, 0], 0.0
            for arm in pulls:
                sums = [float(rewards[run, a, : counts[a]].sum()) for a in (0, 1)]
                largest, *means = compute_means(*counts, *sums)
                total += largest - means[arm]
                counts[arm] += 1
            totals.append(total)
        assert computed[run] == pytest.approx(min(totals), abs=1e-3)


def test_majorants_lower_the_bound_by_little():
    """Compared with the exact maximum, by max-plus convolution."""
    horizon, arms = 120, 4
    _, rewards = draw_paths(bt.Bernoulli(arms=arms), horizon, 5, 0)
    corners, positions = np.empty((arms, horizon + 1), np.int64), np.empty(arms, np.int64)
    losses = []
    for path in rewards:
        sums = np.empty((arms, horizon + 1))
        for arm in range(arms):
            before, after = fill_mean_sums(path[arm], 1.0, 2.0, sums[arm])
            wins = path[arm].sum()
            assert (before, after) == pytest.approx(
                ((1 + wins - path[arm, -1]) / (1 + horizon), (1 + wins) / (2 + horizon))
            )
        exact = sums[0]
        for arm in range(1, arms):
            exact = np.array([maximise_split(exact[: n + 1], sums[arm][: n + 1], n) for n in range(horizon + 1)])
        relaxed = maximise_counts(sums, corners, positions, horizon)
        losses.append(relaxed - exact[horizon])
    assert min(losses) >= -1e-9
    assert np.mean(losses) < 0.2


def solve_stopping(prior, horizon, rival, price, power):
    """d and U of a Bernoulli arm after (successes, failures), by recursion and Simpson's rule."""
    a, b = prior

    @cache
    def pay(s, f):
        above, steps = np.linspace(rival, 1, 1001), np.linspace(0, rival, 1001)
        # Both by parts, so that nothing but the distribution function is integrated.
        slope = power * above ** (power - 1.0) * (1 - special.betainc(a + s, b + f, above))
        total = rival**power + integrate.simpson(slope, x=above)
        return price * total - integrate.simpson(special.betainc(a + s, b + f, steps), x=steps)

    @cache
    def least(s, f):
        left = horizon - s - f
        return 0.0 if left == 0 else min(left * pay(s, f), after_another(s, f))

    def after_another(s, f):
        mean = (a + s) / (a + b + s + f)
        return mean * least(s + 1, f) + (1 - mean) * least(s, f + 1)

    return pay, least, after_another


def test_stopping_against_one_arm_is_optimal():
    horizon, prior = 6, (1.5, 0.8)
    arm = _RivalArms(prior, 1, (prior, (1.0, 1.0)), horizon)
    nodes = np.searchsorted(NODE_MEANS, [0.05, 0.4, 0.7, 0.98])
    for price, power in ((0.1, 0), (0.2, 1), (0.15, 4)):
        levels, start = arm.compute_stopping_values(nodes, price, power)
        assert len(levels) == len(start) == len(nodes) == 4
        for node, level, first in zip(nodes, levels, start, strict=True):
            pay, least, _ = solve_stopping(prior, horizon, NODE_MEANS[node], price, power)
            assert first == pytest.approx(pay(0, 0), abs=1e-5)
            assert level == pytest.approx(least(0, 0), abs=1e-4)


@pytest.mark.parametrize("priors", [((1.5, 0.8), (1.0, 2.0)), ((1.0, 1.0),) * 3])
def test_slacks_agree_with_those_of_the_best_counts(priors):
    """All counts are tried, with tables by recursion."""
    horizon, price, power, arms = 6, 0.12, 1, len(priors)
    problem = bt.Bernoulli(arms=arms, prior=priors)
    truths, rewards = draw_paths(problem, horizon, 4, 0)
    slacks = compute_least_slacks(problem, truths, rewards, price, power)
    exact = []
    for means, path in zip(truths[:6], rewards[:6], strict=True):
        slack = np.empty((arms, horizon + 1))
        for arm in range(arms):
            rival = max(np.delete(means, arm))
            pay, least, after_another = solve_stopping(priors[arm], horizon, rival, price, power)
            spent = 0.0
            for n in range(horizon + 1):
                s = int(path[arm, :n].sum())
                slack[arm, n] = spent + (horizon - n) * pay(s, n - s) - least(s, n - s)
                spent += after_another(s, n - s) - least(s, n - s) if n < horizon else 0.0
        counts = (n for n in product(range(horizon + 1), repeat=arms) if sum(n) == horizon)
        exact.append(min(sum(slack[range(arms), n]) for n in counts))
    assert (slacks >= -1e-9).all()
    np.testing.assert_allclose(slacks[:6], exact, atol=1e-4)


def test_the_coupled_bound_is_tighter():
    estimates = estimate_bounds(bt.Bernoulli(arms=2), 100, runs=1000)
    assert estimates["coupled"].low > 1.1 * estimates["one arm"].mean


def test_bands_and_chords_lower_the_bound_by_little():
    """At a longer horizon: all states against those in the band, and the estimate against chords."""
    horizon, price, power = 400, 0.04, 1
    arm = _RivalArms((1.0, 1.0), 4, ((1.0, 1.0),) * 4, horizon)
    nodes = np.searchsorted(NODE_MEANS, [0.3, 0.8])
    levels, _ = arm.compute_stopping_values(nodes, price, power)
    for node, level in zip(nodes, levels, strict=True):
        s = np.arange(horizon + 1)
        law = stats.beta(1 + s, 1 + horizon - s)
        success_law = stats.beta(2 + s, 1 + horizon - s)
        rival, mean = NODE_MEANS[node], law.mean()
        loss = rival * law.cdf(rival) - mean * success_law.cdf(rival)
        pays = price * (mean * success_law.sf(rival) + rival * law.cdf(rival)) - loss
        stops = np.zeros(horizon + 1)
        for pulls in range(horizon - 1, -1, -1):
            mean = (1 + np.arange(pulls + 1)) / (2 + pulls)
            pays = mean * pays[1:] + (1 - mean) * pays[:-1]
            stops = np.minimum((horizon - pulls) * pays, mean * stops[1:] + (1 - mean) * stops[:-1])
        assert level == pytest.approx(stops[0], abs=1e-6)
    assert (
        arm.estimate_mean(price, power) - 0.01 < arm.bound_mean(price, power) < arm.estimate_mean(price, power) + 0.01
    )


def test_the_search_finds_the_best_price():
    price, power = find_best_price(lambda price, power: -(math.log(price / 0.03) ** 2) - (power - 2) ** 2, 0.2)
    assert power == 2
    assert price == pytest.approx(0.03, rel=0.1)


def test_stopping_against_one_gaussian_arm_agrees_with_quadrature():
    """Two pulls: the table is below the exact value, and close to it."""
    sd, noise, price = 1.3, 0.6, 0.2
    variances = [1 / (sd**-2 + n / noise**2) for n in (0, 1)]
    step = math.sqrt(variances[0] - variances[1])

    def pay(x, variance):
        spread = math.sqrt(variance)
        return price - (spread * stats.norm.pdf(x / spread) - x * stats.norm.cdf(-x / spread))

    levels, spacing, low = compute_stopping_levels(2, sd, noise, price, 100.0)
    assert len(levels) > 10 * 97
    for number in range(0, len(levels), 97):
        x = spacing * (low + number)
        z = np.linspace(-9, 9, 20001)
        after = np.minimum(pay(x + step * z, variances[1]), 0)
        exact = min(2 * pay(x, variances[0]), np.trapezoid(after * stats.norm.pdf(z), z))
        assert exact - 1e-3 < levels[number] < exact + 1e-6


def test_the_expected_largest_gaussian_mean_is_known():
    integrals = _integrate_max_cdf(np.array([-30.0, 30.0]), ((0.0, 1.0), (0.0, 1.0)))
    assert 30 - integrals[1] == pytest.approx(1 / math.sqrt(math.pi), abs=1e-9)
    assert integrals[0] == 0


@pytest.mark.parametrize(
    "problem",
    [bt.Gaussian(arms=2), bt.Gaussian(arms=4, prior=((0, 1), (0, 1), (1, 0.5), (-3, 2)), noise=0.5)],
)
def test_gaussian_bounds_are_below_the_regret_of_good_policies(problem):
    horizon = 50
    regrets = bt.simulate(
        bt.GaussianThompson(prior=(0, 1), noise=1), problem, [0.3, 0.5, 0.8], horizon=horizon, runs=20000
    )
    lowest_regret = regrets.mean(axis=1).min()
    se = regrets.std(axis=1).max() / math.sqrt(regrets.shape[1])
    for name, estimate in estimate_bounds(problem, horizon, runs=2000, seed=2).items():
        assert estimate.mean <= lowest_regret + 4 * math.hypot(se, estimate.se), name
    best = select_bound(problem, horizon, runs=2000)
    assert 0.15 * lowest_regret < best.value < lowest_regret


@pytest.mark.slow
def test_bernoulli_bounds_are_below_the_regret_of_good_policies():
    problem = bt.Bernoulli(arms=10)
    regrets = bt.simulate(bt.Thompson(prior=(1, 1)), problem, [0.4], horizon=200, runs=20000).mean()
    best = select_bound(problem, 200, runs=500)
    assert best.name == "coupled"
    assert 0.55 * regrets < best.value < regrets


def test_samples_depend_on_the_seed_and_not_on_chunks():
    problem = bt.Bernoulli(arms=3)
    names = ("future", "posterior mean")
    at_once = sample_bounds(problem, 20, names, range(50), 7)
    parts = [sample_bounds(problem, 20, names, runs, 7) for runs in (range(5), range(5, 33), range(33, 50))]
    np.testing.assert_array_equal(at_once, np.concatenate(parts, axis=1))
    assert estimate_bounds(problem, 20, runs=50, seed=7)["posterior mean"].mean == at_once[1].mean()
    assert (sample_bounds(problem, 20, names, range(50), 8) != at_once).any()
    first, second = (select_bound(problem, 20, runs=100) for _ in range(2))
    assert first == second


def test_confidence_limits_hold_at_their_rate():
    """For two arms and two pulls, "value" finds the optimum of 1/4. For three arms the limit is sampled."""
    assert select_bound(bt.Bernoulli(arms=2), 2, runs=10).value == pytest.approx(0.25)
    optimum = compute_optimal_regret(((1.0, 1.0),) * 3, 4)
    above = [select_bound(bt.Bernoulli(arms=3), 4, runs=200, seed=seed).value > optimum for seed in range(20)]
    assert sum(above) <= 3


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((bt.problems.two_point_mixture(), 10), "bernoulli or gaussian for a lower bound, but got 'mixture'"),
        ((bt.Bernoulli(), 0), "`horizon` must be a whole number >= 1"),
        ((bt.Bernoulli(), 10, 1), "`runs` must be a whole number >= 2"),
        ((bt.Bernoulli(), 10, 10, -1), "`seed` must be a whole number >= 0"),
    ],
)
def test_wrong_requests_for_bounds_are_refused(arguments, message):
    for function in (estimate_bounds, select_bound):
        with pytest.raises(bt.InvalidRequest, match=message):
            function(*arguments)


def test_a_confidence_must_be_a_probability():
    with pytest.raises(bt.InvalidRequest, match="confidence < 1"):
        select_bound(bt.Bernoulli(), 10, level=1.0)


def test_samples_that_do_not_fit_into_memory_are_refused(monkeypatch):
    monkeypatch.setattr(memory, "measure_free_memory", lambda: 1e6)
    with pytest.raises(bt.InvalidRequest, match="must fit into memory"):
        estimate_bounds(bt.Bernoulli(arms=100), 10**9)
