"""Notices of tunings: each one appears where it should, and only there."""

from __future__ import annotations

import re

import numpy as np

import banditune as bt
from banditune.cli.vocabulary import write_for_command_line
from banditune.core.space import Range, Space
from banditune.results.search_results import SearchPosterior
from banditune.simulation.spec import SimulationSpec
from banditune.study.notices import collect_tuning_notices

PROBLEM = bt.Bernoulli(arms=3)


def test_every_notice_of_a_tuning_appears_where_it_should():
    among = Range("gamma", 0.0, 1.0, 1.0, False, "linear", lower_limit=0.0)
    equal_regrets = np.full(300, 5.0)
    spec = SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 1000)
    assert list(collect_tuning_notices(spec, Space((among,)), [0.4], None, equal_regrets, equal_regrets)) == []
    upper = next(collect_tuning_notices(spec, Space((among,)), [1.0], None, equal_regrets, equal_regrets))
    assert "upper end of its range [0, 1]" in upper
    assert write_for_command_line(upper.advice) == "Search a wider range: --range gamma=0:10."
    assert 'ranges={"gamma": (0, 0.1)}' in next(
        collect_tuning_notices(spec, Space((among,)), [0.0], None, equal_regrets, equal_regrets)
    )
    assert "lower end" in next(
        collect_tuning_notices(spec, Space((among,)), [1 / 162], None, equal_regrets, equal_regrets)
    )
    posterior = SearchPosterior(
        mean=5.0,
        low=4.0,
        high=6.0,
        best_intervals={"gamma": (0.3, 0.5)},
        regret_gap=0.1,
        near_optimal=(),
        second_dip=(0.1, 0.5, 0.9),
        misfit=True,
        confidence=0.95,
    )
    misfit, dips = collect_tuning_notices(spec, Space((among,)), [0.4], posterior, equal_regrets, equal_regrets)
    assert "do not fit the curves" in misfit
    assert "may have more than one dip: gamma = 0.5" in dips
    few_high = np.concatenate([equal_regrets, [4000.0, 2000.0]])
    assert "3 of 302 runs contribute 80% of the mean regret" in next(
        collect_tuning_notices(spec, Space((among,)), [0.4], None, few_high, few_high)
    )
    example = bt.tune(
        bt.EpsilonGreedy(), bt.Mixture([(0.9, 0.1)]), horizon=2000, budget=1000, search=bt.Search(validate=300)
    )
    assert any("lower end" in warning for warning in example.notices)
    assert "warning: epsilon" in repr(example)


def test_the_search_is_wrong_where_the_textbook_value_is_better_by_more_than_the_gap():
    among, sample = Range("gamma", 0.0, 1.0, 1.0, False, "linear"), np.full(300, 5.0)
    textbook = sample - np.linspace(0.9, 1.1, 300)
    for gap, policy, message in (
        (
            0.1,
            bt.GaussianThompson(prior=(0, 1), noise=1),
            "wrong here.*GaussianThompson\\(noise=...\\)",
        ),
        (
            0.1,
            bt.Thompson(prior=(1, 1)),
            "wrong here. Look at the whole curve [^,]*, and try another tuner, such as notes.$",
        ),
        (1.5, bt.UCB1(noise=0.5), "has 1 more regret than the textbook's 1: more runs are needed. Raise `budget`.$"),
    ):
        posterior = SearchPosterior(
            mean=5.0,
            low=4.0,
            high=6.0,
            best_intervals={"gamma": (0.3, 0.5)},
            regret_gap=gap,
            near_optimal=(),
            second_dip=(),
            misfit=False,
            confidence=0.95,
        )
        (notice,) = collect_tuning_notices(
            SimulationSpec(policy, PROBLEM, 1000), Space((among,)), [0.4], posterior, sample, textbook
        )
        assert re.search(message, notice), notice


def test_a_regret_on_fresh_instances_outside_the_stated_interval_is_a_notice():
    among, spec = Range("gamma", 0.0, 1.0, 1.0, False, "linear"), SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 1000)
    posterior = SearchPosterior(
        mean=5.0,
        low=4.0,
        high=6.0,
        best_intervals={"gamma": (0.3, 0.5)},
        regret_gap=1.0,
        near_optimal=(),
        second_dip=(),
        misfit=False,
        confidence=0.95,
    )  # a standard error of 0.51
    for mean, count in ((6.7, 0), (6.9, 1), (3.3, 0), (3.1, 1)):
        sample = mean + np.linspace(-0.1, 0.1, 300)
        notices = list(collect_tuning_notices(spec, Space((among,)), [0.4], posterior, sample, sample))
        assert len(notices) == count, mean
        assert sum("while the search expects 4 to 6" in warning for warning in notices) == count
    few_runs = 9 + np.linspace(-0.1, 0.1, 249)  # so few runs may contain no failure
    assert list(collect_tuning_notices(spec, Space((among,)), [0.4], posterior, few_runs, few_runs)) == []
