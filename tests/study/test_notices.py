"""Notices of tunings: each one appears where it should, and only there."""

from __future__ import annotations

import re

import numpy as np

import banditune as bt
from banditune.core.space import Range
from banditune.results.search_results import SearchPosterior
from banditune.simulation.spec import SimulationSpec
from banditune.study.notices import collect_tuning_notices

PROBLEM = bt.Bernoulli(arms=3)


def test_what_may_mislead_is_said():
    among = Range("gamma", 0.0, 1.0, 1.0, False, "linear", lower_limit=0.0)
    even = np.full(300, 5.0)
    spec = SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 1000)
    assert list(collect_tuning_notices(spec, among, 0.4, None, even, even)) == []
    upper = next(collect_tuning_notices(spec, among, 1.0, None, even, even))
    assert "upper end of its range [0, 1]" in upper
    assert "--range gamma=0:10 on" in upper
    assert "--range gamma=0:0.1 on" in next(collect_tuning_notices(spec, among, 0.0, None, even, even))
    assert "lower end" in next(collect_tuning_notices(spec, among, 1 / 162, None, even, even))
    belief = SearchPosterior(
        mean=5.0,
        low=4.0,
        high=6.0,
        best_low=0.3,
        best_high=0.5,
        regret_gap=0.1,
        near_optimal=(),
        second_dip=(0.1, 0.5, 0.9),
        misfit=True,
        confidence=0.95,
    )
    off, dips = collect_tuning_notices(spec, among, 0.4, belief, even, even)
    assert "do not fit the curves" in off
    assert "may have more than one dip: gamma = 0.5" in dips
    few = np.concatenate([even, [4000.0, 2000.0]])
    assert "3 of 302 runs make 80% of the mean regret" in next(collect_tuning_notices(spec, among, 0.4, None, few, few))
    lone = bt.tune(
        bt.EpsilonGreedy(), bt.Mixture([(0.9, 0.1)]), horizon=2000, budget=1000, search=bt.Search(validate=300)
    )
    assert any("lower end" in warning for warning in lone.notices)
    assert "warning: epsilon" in repr(lone)


def test_the_search_is_called_wrong_only_where_theory_gains_more_than_the_gap_it_stated():
    among, sample = Range("gamma", 0.0, 1.0, 1.0, False, "linear"), np.full(300, 5.0)
    theory = sample - np.linspace(0.9, 1.1, 300)
    for gap, policy, said in (
        (
            0.1,
            bt.GaussianThompson(prior=(0, 1), noise=1),
            "wrong here.*gaussian-ts:noise=... on the command line, GaussianThompson\\(noise=...\\)",
        ),
        (
            0.1,
            bt.Thompson(prior=(1, 1)),
            "wrong here. Look at the whole curve [^,]*, and try another tuner, such as notes.$",
        ),
        (1.5, bt.UCB1(noise=0.5), "has 1 more regret than the textbook's 1: more runs are needed; raise the budget.$"),
    ):
        belief = SearchPosterior(
            mean=5.0,
            low=4.0,
            high=6.0,
            best_low=0.3,
            best_high=0.5,
            regret_gap=gap,
            near_optimal=(),
            second_dip=(),
            misfit=False,
            confidence=0.95,
        )
        (spec,) = collect_tuning_notices(SimulationSpec(policy, PROBLEM, 1000), among, 0.4, belief, sample, theory)
        assert re.search(said, spec), spec


def test_fresh_instances_far_from_what_the_search_expects_are_told():
    among, spec = Range("gamma", 0.0, 1.0, 1.0, False, "linear"), SimulationSpec(bt.UCB1(noise=0.5), PROBLEM, 1000)
    belief = SearchPosterior(
        mean=5.0,
        low=4.0,
        high=6.0,
        best_low=0.3,
        best_high=0.5,
        regret_gap=1.0,
        near_optimal=(),
        second_dip=(),
        misfit=False,
        confidence=0.95,
    )  # a standard error of 0.51
    for mean, told in ((6.7, 0), (6.9, 1), (3.3, 0), (3.1, 1)):
        sample = mean + np.linspace(-0.1, 0.1, 300)
        found = list(collect_tuning_notices(spec, among, 0.4, belief, sample, sample))
        assert len(found) == told, mean
        assert sum("while the search expects 4 to 6" in warning for warning in found) == told
    few = 9 + np.linspace(-0.1, 0.1, 249)  # which may have met no failure
    assert list(collect_tuning_notices(spec, among, 0.4, belief, few, few)) == []
