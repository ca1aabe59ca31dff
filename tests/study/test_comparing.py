"""`compare`: paired differences, the best policy on fresh instances, and notices."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import banditune as bt
from banditune.core.descriptions import make_label
from banditune.reports.comparison_statements import format_regret_gap
from banditune.results.estimates import Estimate
from helpers.example_policies import TWO_PARAMETERS, choose_by_threshold
from helpers.example_tuners import FixedAnswerTuner
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)


def test_comparisons_are_paired_and_in_order(comparison):
    means = [entry.regret.mean for entry in comparison.entries]
    assert means == sorted(means)
    assert comparison.best_policy == comparison.entries[0].policy
    assert comparison.entries[0].difference_to_best.mean == 0
    assert {entry.policy for entry in comparison.entries} == {
        "ucb1(noise=0.5)",
        "ts(prior=(1, 1))",
        "greedy",
        "ucb1(noise=1)",
    }
    assert {"name": "ucb1", "noise": 1.0} in [entry.policy_config for entry in comparison.entries]
    greedy = next(entry for entry in comparison.entries if entry.policy == "greedy")
    assert not greedy.is_tuned
    assert greedy.search_runs == 0
    for entry in comparison.entries:
        assert entry.difference_to_best.mean == pytest.approx(entry.regret.mean - means[0])
        assert entry.difference_to_best.se <= entry.regret.se + comparison.entries[0].regret.se


def test_the_best_policy_is_simulated_again_on_other_instances():
    """Eight equal policies with separate random numbers: the lowest mean is too low."""
    policies = [bt.UCB1(noise=0.5 + 1e-9 * number) for number in range(8)]
    best_means, rerun_means = [], []
    for seed in range(15):
        comparison = bt.compare(
            policies,
            bt.problems.two_point_mixture(),
            horizon=30,
            budget=50,
            seed=seed,
            search=bt.Search(validate=100),
            simulation=bt.Simulation(common_random_numbers=False),
        )
        best, rerun = comparison.entries[0].regret.mean, comparison.best_rerun.mean
        best_means.append(best)
        rerun_means.append(comparison.lowest_regret.mean)
        assert comparison.best_rerun.runs == 100
        text = f"{best:.4g} on average, and {rerun:.4g} on as many other instances"
        assert f"{comparison.best_policy} has the lowest regret, {text}" in str(comparison)
    gap = np.array(rerun_means) - np.array(best_means)
    assert gap.mean() > 3 * gap.std(ddof=1) / np.sqrt(len(gap))


def test_a_comparison_contains_the_notices_of_its_searches():
    comparison = bt.compare(
        [bt.UCB1(noise=50), bt.UCB1(noise=0.5)],
        bt.Bernoulli(arms=5),
        horizon=200,
        budget=100,
        search=bt.Search(validate=50),
    )
    assert any(w.startswith("ucb1(noise=50)") and "lower end of its range" in w for w in comparison.notices), (
        comparison.notices
    )


def test_worst_runs_are_stated_where_they_can_be_repeated():
    policies = [bt.UCB1(noise=0.5), bt.EpsilonGreedy()]
    for noise, numbered in (("shared", [True, True]), ("own", [True, False])):
        comparison = bt.compare(
            policies,
            bt.problems.two_point_mixture(),
            horizon=30,
            budget=50,
            search=bt.Search(validate=50),
            simulation=bt.Simulation(common_random_numbers=noise == "shared"),
        )
        by_name = {entry.policy.partition("(")[0]: entry for entry in comparison.entries}
        assert [bool(by_name[policy.name].distribution.worst_runs) for policy in policies] == numbered
        (worst,) = bt.simulate(
            bt.UCB1(noise=0.5),
            bt.problems.two_point_mixture(),
            list(by_name["ucb1"].params.values()),
            horizon=30,
            runs=1,
            first_instance=by_name["ucb1"].distribution.worst_runs[0],
            simulation=bt.Simulation(common_random_numbers=noise == "shared"),
        )[0]
        assert worst == pytest.approx(by_name["ucb1"].distribution.worst_regrets[0], rel=1e-6)


def test_table_and_statement_have_the_same_confidence_in_differences(comparison):
    best, other, *_ = comparison.entries
    # Significant as a single difference (2.3 standard errors), but not among six pairs of policies (2.6).
    difference = Estimate.from_standard_error(2.3, 1.0, comparison.validation_runs)
    assert difference.low > 0
    changed = dataclasses.replace(
        comparison, entries=(best, dataclasses.replace(other, difference_to_best=difference), *comparison.entries[2:])
    )
    (statement,) = [line for line in repr(changed).splitlines() if "has the lowest regret" in line]
    assert other.policy in statement.removeprefix(best.policy)
    assert "may be as good" in statement
    assert "behind the best (95%, all pairs)" in repr(changed)
    assert "2.3 (-0." in repr(changed)


def test_differences_in_the_table_agree_with_its_regrets(comparison):
    """All regrets of the table are on the same instances. The regret of the best policy on others is above it."""
    rerun = Estimate.from_standard_error(123.4, 5.678, comparison.validation_runs)
    changed = dataclasses.replace(comparison, best_rerun=rerun)
    assert "123.4 on as many other instances, which did not select it" in repr(changed)
    best = comparison.entries[0].regret
    (row,) = [
        line
        for line in repr(changed).splitlines()
        if line.startswith(f"{comparison.best_policy} ") and "has the lowest regret" not in line
    ]
    assert f"{best.mean:.4g}" in row
    assert f"{best.se:.4g}" in row
    assert "123.4" not in row
    table = changed.to_pandas()
    assert table["regret"].to_numpy() - table["regret"][0] == pytest.approx(
        table["difference_to_best"].to_numpy(), abs=1e-9
    )


def test_few_runs_with_most_of_the_regret_are_noted_for_every_policy():
    problem = bt.Mixture([(0.5, 0.4999), (0.1, 0.9)], [0.995, 0.005])
    comparison = bt.compare(
        [bt.Greedy(), bt.EpsilonGreedy()], problem, horizon=400, budget=50, search=bt.Search(validate=1000)
    )
    assert any(warning.startswith("greedy: 10 of 1,000 runs contribute") for warning in comparison.notices)


def test_policies_of_a_comparison_have_distinct_names():
    policies = [
        bt.define_policy(name, choose_by_threshold, parameters=[bt.Parameter("a", 0, 1, textbook=1)])
        for name in ("a", "a (2)")
    ]
    comparison = bt.compare(
        [policies[0], policies[0], policies[1], policies[0]],
        PROBLEM,
        horizon=20,
        budget=12,
        search=bt.Search(validate=5),
    )
    assert [entry.policy for entry in comparison.entries] == ["a", "a (3)", "a (2)", "a (4)"]


def test_a_tuned_value_that_is_worse_than_the_textbook_is_not_used():
    problem, options = bt.Bernoulli(arms=5), {"horizon": 300, "budget": 50, "validate": 300}
    policies = [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))]
    comparison = bt.compare(policies, problem, **group_settings(tuner=FixedAnswerTuner(0.0), **options))
    (ts,) = (entry for entry in comparison.entries if entry.policy_config["name"] == "ts")
    textbook = {"gamma": 1.0}
    assert (dict(ts.params), dict(ts.recommended_params)) == ({"gamma": 0.0}, textbook)
    assert ts.is_worse_than_textbook
    assert ts.gain.mean == pytest.approx(ts.textbook_regret.mean - ts.regret.mean)
    assert ts.recommended_regret == ts.textbook_regret
    assert comparison.best_policy == ts.policy  # at the textbook value
    assert ts.difference_to_best.mean == 0
    regrets = bt.simulate(policies[1], problem, 1.0, horizon=300, runs=300, first_instance=2**40 + 300)
    assert comparison.best_rerun.mean == pytest.approx(regrets.mean(), rel=1e-6)
    assert f"{ts.policy} has the lowest regret" in str(comparison)
    assert "with the textbook default gamma = 1, which is better than the tuned one" in str(comparison)
    assert "gamma = 0 (WORSE than the textbook default gamma = 1: use that)" in str(comparison)
    assert comparison.to_pandas().set_index("policy")["is_worse_than_textbook"][ts.policy]
    assert bt.deployment.deploy_result(comparison).state.params == textbook
    assert bt.results.from_json(comparison.to_json()) == comparison


def test_a_comparison_contains_notices_and_posteriors_of_its_tunings():
    problem, options = bt.Bernoulli(arms=5), {"horizon": 200, "budget": 100, "validate": 300}
    noisy = bt.UCB1(noise=50)
    comparison = bt.compare(
        [noisy, bt.Thompson(prior=(1, 1)), bt.UCB1(noise=0.5)], problem, **group_settings(**options)
    )
    by_name = {entry.policy: entry for entry in comparison.entries}
    policies = {make_label(policy): policy for policy in (noisy, bt.Thompson(prior=(1, 1)))}
    for name, policy in policies.items():
        entry, tuning = by_name[name], bt.tune(policy, problem, **group_settings(**options))
        own_notices = [
            warning for warning in comparison.notices if warning.startswith((f"{name}: ", f"{name} assumes"))
        ]
        renamed = [
            f"{policy.name} assumes" + notice.removeprefix(f"{name} assumes") if "assumes" in notice else notice
            for notice in own_notices
        ]
        assert [notice.removeprefix(f"{name}: ") for notice in renamed] == [*tuning.notices]
        assert entry.posterior == tuning.posterior
        assert entry.gain == tuning.gain
        assert tuning.params == entry.params
    assert comparison.notices
    rows = comparison.to_pandas().set_index("policy")
    for name, entry in by_name.items():
        assert not entry.is_worse_than_textbook
        assert rows["regret_gap"][name] == entry.posterior.regret_gap
        assert format_regret_gap(entry) in str(comparison)
        assert format_regret_gap(entry).startswith(f"{entry.posterior.regret_gap:.4g} (")


def test_intervals_of_the_data_frame_are_those_of_the_table(comparison):
    rows = comparison.to_pandas()
    for row, entry in enumerate(comparison.entries[1:], start=1):
        low, high = rows["difference_to_best_low"][row], rows["difference_to_best_high"][row]
        assert f"{rows['difference_to_best'][row]:.4g} ({low:.4g} to {high:.4g})" in str(comparison)
        assert low < entry.difference_to_best.low < entry.difference_to_best.high < high
        assert (rows["low"][row], rows["high"][row]) == (entry.regret.low, entry.regret.high)
    assert (
        len(
            {*rows.columns}
            & {"gain", "gain_low", "gain_high", "regret_gap", "not_tuned_reason", "not_backtested_reason"}
        )
        == 6
    )


def test_a_comparison_states_what_was_not_tuned_and_what_cannot_be_backtested():
    problem, search = bt.Mixture([(1.0, 0.0)]), bt.Search(validate=10, fixed={"a": 1, "b": 0})
    comparison = bt.compare(
        [TWO_PARAMETERS, bt.UCB1(noise=0.5), bt.Greedy()], problem, horizon=10, budget=12, search=search
    )
    reasons = {entry.policy_config["name"]: entry.not_tuned_reason for entry in comparison.entries}
    assert reasons == {"two": "all its parameters are fixed", "ucb1": "", "greedy": "it has no parameter"}
    assert "not tuned, and not available to `backtest`" in str(comparison)
    assert comparison.best_policy == "two"
    assert comparison.entries[0].params == {"a": 1, "b": 0}
    assert comparison.entries[0].regret.mean == 0
    assert "`backtest` cannot evaluate two: all its parameters are fixed." in str(comparison)
    assert "The best that it can evaluate is ucb1" in str(comparison)
    without_tuned = bt.compare([TWO_PARAMETERS, bt.Greedy()], problem, horizon=10, budget=12, search=search)
    assert "nor can it evaluate any of the others" in str(without_tuned)
