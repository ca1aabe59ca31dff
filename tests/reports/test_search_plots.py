"""Plots of a search: many trials are put into few batches."""

from __future__ import annotations

import numpy as np

from banditune.reports import search_plots
from banditune.results.search_results import TrialResult


def test_batches_of_trials_keep_every_run():
    trials = [
        TrialResult.from_regrets([(0.1 * (number % 3),), (0.5,)], np.ones((2, number + 1))) for number in range(800)
    ]
    batches = search_plots.batch_trials(trials)
    assert len(batches) == search_plots.BATCH_COUNT
    assert (batches[0].label, batches[-1].label) == ("trials 1 to 16", "trials 785 to 800")
    assert sum(batch.runs.sum() for batch in batches) == sum(trial.total_runs for trial in trials)
    single_batches = search_plots.batch_trials(trials[:3])
    assert [batch.label for batch in single_batches] == ["trial 1", "trial 2", "trial 3"]
    assert single_batches[1].runs.tolist() == [2, 2]


def test_neighbouring_values_are_merged_where_there_are_too_many():
    values, runs = search_plots.merge_neighbours(np.array([1.0, 2.0, 10.0, 11.0]), np.array([1.0, 3.0, 1.0, 1.0]), 2)
    assert values.tolist() == [1.75, 10.5]
    assert runs.tolist() == [4, 2]


def test_the_middle_of_a_trial_contains_nine_tenths_of_its_runs():
    (batch,) = search_plots.batch_trials(
        [TrialResult.from_regrets([(0.1,), (0.2,), (0.3,), (0.9,)], [np.ones(n) for n in (1, 50, 48, 1)])]
    )
    assert search_plots.find_middle_values(batch) == (0.2, 0.3)
    (pair,) = search_plots.batch_trials([TrialResult.from_regrets([(0.1,), (0.2,)], np.ones((2, 25)))])
    assert search_plots.find_middle_values(pair) == (0.1, 0.2)
