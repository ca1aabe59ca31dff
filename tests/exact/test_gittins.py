"""Gittins indices, compared with published values, exact small cases and optimal policies."""

from __future__ import annotations

from fractions import Fraction
from functools import cache

import numpy as np
import pytest

import banditune as bt
from banditune.exact import table_cache
from banditune.exact.gittins import Gittins, compute_gittins_index, count_table_entries, load_gittins_table
from banditune.simulation import memory
from helpers.statistics import mean_agrees

# Gittins, Glazebrook and Weber, Multi-armed Bandit Allocation Indices (2011); the prior is Beta(1, 1).
PUBLISHED = [
    (0.9, 0, 0, 0.7029),
    (0.9, 1, 0, 0.8001),
    (0.9, 0, 1, 0.5001),
    (0.9, 1, 1, 0.6346),
    (0.9, 2, 2, 0.6010),
    (0.9, 9, 1, 0.8695),
    (0.99, 0, 0, 0.8699),
]


@pytest.mark.parametrize(("discount", "successes", "failures", "published"), PUBLISHED)
def test_discounted_indices_agree_with_published_ones(discount, successes, failures, published):
    assert compute_gittins_index(successes, failures, discount=discount) == pytest.approx(published, abs=5.1e-5)


def compute_best_ratio(a, b, left):
    """The highest (expected rewards) / (expected pulls) of all stopping rules, by enumeration."""

    @cache
    def iterate_rules(a, b, left):
        """The (rewards, pulls) of every rule that pulls at least once. There are up to 4^(2^left) of them."""
        mean = Fraction(a, a + b)
        after = [
            [(Fraction(0), Fraction(0)), *iterate_rules(*child, left - 1)] if left > 1 else [(Fraction(0), Fraction(0))]
            for child in ((a + 1, b), (a, b + 1))
        ]
        return {
            (mean + mean * won[0] + (1 - mean) * lost[0], 1 + mean * won[1] + (1 - mean) * lost[1])
            for won in after[0]
            for lost in after[1]
        }

    return max(rewards / pulls for rewards, pulls in iterate_rules(a, b, left))


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 4), (3, 1), (2, 2)])
@pytest.mark.parametrize("left", [1, 2, 3, 4])
def test_the_index_is_the_best_ratio_of_all_stopping_rules(a, b, left):
    assert compute_gittins_index(0, 0, rounds_left=left, prior=(a, b)) == pytest.approx(
        float(compute_best_ratio(a, b, left)), abs=1e-9
    )


def test_successes_in_the_prior_count_as_observed_ones():
    assert compute_gittins_index(3, 2, rounds_left=40) == pytest.approx(
        compute_gittins_index(0, 0, rounds_left=40, prior=(4, 3)), abs=1e-12
    )


def test_the_index_grows_with_successes_and_rounds_left_and_falls_with_failures():
    index = compute_gittins_index(3, 3, rounds_left=20)
    assert compute_gittins_index(4, 3, rounds_left=20) > index > compute_gittins_index(3, 4, rounds_left=20)
    assert compute_gittins_index(3, 3, rounds_left=21) > index > 0.5
    assert compute_gittins_index(3, 3, rounds_left=1) == pytest.approx(0.5, abs=1e-9)


@pytest.mark.parametrize(("prior", "discount"), [((1.0, 1.0), None), ((0.5, 8.0), None), ((2.0, 1.0), 0.9)])
def test_the_table_holds_the_indices(prior, discount, monkeypatch, tmp_path):
    monkeypatch.setattr(table_cache, "find_cache_folder", lambda: tmp_path)
    horizon, rng = 60, np.random.default_rng(0)
    table = load_gittins_table(prior, horizon, discount)
    assert not np.isnan(table).any()
    for _ in range(60):
        end = int(rng.integers(1, horizon + 1))
        pulls = int(rng.integers(0, end))
        successes = int(rng.integers(0, pulls + 1))
        until = {"rounds_left": end - pulls} if discount is None else {"discount": discount}
        exact = compute_gittins_index(successes, pulls - successes, prior=prior, **until)
        first = 1 + (count_table_entries(end - 1) if discount is None else 0)
        assert table[first + pulls * (pulls + 1) // 2 + successes] == pytest.approx(exact, abs=5e-5)


def test_pulling_the_highest_index_is_optimal_with_a_discount():
    """Two arms, at a horizon where hardly any reward is left: the index policy earns what dynamic programming earns."""
    discount, rounds = 0.7, 34

    @cache
    def compute_index(a, b):
        return compute_gittins_index(0, 0, discount=discount, prior=(a, b))

    def compute_reward(choose):
        @cache
        def value(first, second, left):
            if left == 0:
                return 0.0
            options = []
            for arm, (a, b) in enumerate((first, second)):
                mean = a / (a + b)
                won, lost = ((first, child) if arm else (child, second) for child in ((a + 1, b), (a, b + 1)))
                options.append(mean + discount * (mean * value(*won, left - 1) + (1 - mean) * value(*lost, left - 1)))
            return choose(first, second, options)

        return value

    for first, second in (((1, 1), (1, 1)), ((1, 2), (4, 9)), ((2, 1), (9, 5))):
        best = compute_reward(lambda first, second, options: max(options))(first, second, rounds)
        by_index = compute_reward(
            lambda first, second, options: options[compute_index(*second) > compute_index(*first)]
        )(first, second, rounds)
        assert by_index == pytest.approx(best, abs=2 * discount**rounds / (1 - discount))
        assert by_index <= best


def test_the_regret_of_gittins_on_the_warm_up_agrees_with_the_paper():
    """Uniform priors, horizon 200, on the warm-up: 3.75 (the paper has 3.9)."""
    regrets = bt.simulate(Gittins(prior=(1, 1)), bt.problems.two_point_mixture(), horizon=200, runs=100_000, seed=1)[0]
    assert mean_agrees(regrets, 3.75, 0.03)


def test_arms_may_have_different_priors():
    common, separate = Gittins(prior=(2, 3)), Gittins(prior=[(2, 3), (2, 3)])
    problem = bt.Bernoulli(arms=2, prior=[(5, 1), (1, 5)])
    regrets = [bt.simulate(policy, problem, horizon=50, runs=500)[0] for policy in (common, separate)]
    assert (regrets[0] == regrets[1]).all()
    # The true priors state which arm is likely better: they lower the regret.
    informed = bt.simulate(Gittins(prior=problem.prior), problem, horizon=50, runs=500)[0]
    assert informed.mean() < regrets[0].mean() / 2


def test_the_table_is_stored_and_computed_again_if_damaged(monkeypatch, tmp_path):
    monkeypatch.setattr(table_cache, "find_cache_folder", lambda: tmp_path)
    table = load_gittins_table((1.0, 1.0), 12, None)
    (path,) = (tmp_path / "tables").iterdir()
    before = path.stat().st_mtime_ns
    table_cache.recent_tables.clear()
    stored = load_gittins_table((1.0, 1.0), 12, None)
    assert (stored == table).all()
    assert path.stat().st_mtime_ns == before
    path.write_bytes(path.read_bytes()[:100])
    table_cache.recent_tables.clear()
    assert (load_gittins_table((1.0, 1.0), 12, None) == table).all()
    assert path.stat().st_mtime_ns != before
    assert not stored.flags.writeable


def test_a_table_that_does_not_fit_is_refused_with_the_horizon_that_does(monkeypatch):
    monkeypatch.setattr(memory, "measure_free_memory", lambda: 10 * 2**20 / memory.USABLE_MEMORY_SHARE)
    with pytest.raises(
        bt.InvalidRequest, match=r"at horizon=3000 it needs 16.8 GiB .* largest horizon that fits is 249"
    ):
        bt.simulate(Gittins(prior=(1, 1)), bt.Bernoulli(arms=2), horizon=3000, runs=1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Gittins(prior=(0, 1)), "a > 0"),
        (lambda: Gittins(discount=1.0), "discount <= 0.999"),
        (lambda: Gittins(discount=-1), "discount > 0"),
        (lambda: compute_gittins_index(0, 0), "either `rounds_left` or `discount`"),
        (lambda: compute_gittins_index(0, 0, rounds_left=0), "`rounds_left` must be a whole number >= 1"),
        (lambda: compute_gittins_index(0, 0, rounds_left=10**6), "rounds_left <= 20000.*use a discount"),
        (lambda: compute_gittins_index(-1, 0, rounds_left=5), "successes"),
        (
            lambda: bt.simulate(Gittins(prior=(1, 1)), bt.Gaussian(arms=2), horizon=5),
            "rewards of 0 or 1.*any real number",
        ),
        (
            lambda: bt.simulate(Gittins(prior=(1, 1)), bt.BetaRewards(arms=2), horizon=5),
            r"any number in \[0, 1\]; use ts or ucb1",
        ),
        (lambda: bt.simulate(Gittins(prior=[(1, 1)] * 3), bt.Bernoulli(arms=2), horizon=5), "or 2 such pairs"),
    ],
)
def test_wrong_requests_for_indices_are_refused(make, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        make()
