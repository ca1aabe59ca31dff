"""`fit`: its arguments, its results, and how often its intervals hold the true value."""

from __future__ import annotations

import math

import fit_recovery
import numpy as np
import pytest

import banditune as bt
from banditune.logs.models.adaptivity import (
    is_adaptively_chosen,
)
from banditune.reports.fit_report import make_checks_table
from banditune.results.log_results import FittedProblem
from helpers.sample_logs import (
    list_cells,
    make_binary_logs,
    make_correlated_logs,
    make_linear_logs,
    make_logistic_logs,
    make_real_logs,
)


def test_logs_that_determine_no_prior_are_refused():
    with pytest.raises(bt.InvalidRequest, match="two arms or more"):
        bt.fit(bt.make_logs([0], [0], [10], [3]), arms=2)
    with pytest.raises(bt.InvalidRequest, match="pulled twice"):
        bt.fit(bt.make_logs(*list_cells(4, 3), np.ones(12, int), np.tile([1, 0, 0], 4)))
    with pytest.raises(bt.InvalidRequest, match="name another with `campaign`"):
        bt.fit(bt.make_logs([0, 1], [0, 0], [10, 10], [3, 5]))


def test_a_fit_is_not_accepted_as_a_problem():
    fit = bt.fit(bt.make_logs(["a", "a", "b", "b"], ["x", "y", "x", "y"], [90, 90, 90, 90], [9, 20, 30, 4]))
    with pytest.raises(
        bt.InvalidRequest,
        match=r"but got a FittedProblem, which contains one; pass its fields: fitted.problem, horizon=",
    ):
        bt.tune(bt.UCB1(noise=0.5), fit, horizon=10, budget=12)
    with pytest.raises(bt.InvalidRequest, match=r"read them first: fit\(read_logs\(FILE\)\)"):
        bt.fit("logs.csv")
    assert "; a check fails where the share above is outside 0.005 to 0.995\n" in repr(fit)


@pytest.fixture(scope="module")
def fits():
    binary = [bt.fit(make_correlated_logs(arms=3), model) for model in ("auto", "correlated", "campaigns")]
    real = make_real_logs(np.random.default_rng(1).normal(size=(5, 3)))
    return [*binary, bt.fit(real), bt.fit(real, "campaigns"), bt.fit(make_linear_logs()), bt.fit(make_logistic_logs())]


def test_every_fit_is_the_same_after_json(fits, tmp_path):
    assert len(fits) == 7
    for fit in fits:
        assert bt.results.from_json(fit.to_json()) == fit
        problem = bt.results.from_json(fit.to_json()).problem
        assert problem == fit.problem
        assert problem.arms == fit.arms
        fit.save(tmp_path / "fit.json")
        assert isinstance(bt.load_result(tmp_path / "fit.json"), FittedProblem)


def test_captions_name_the_compared_quantities(fits, tmp_path):
    rng = np.random.default_rng(3)
    campaign, arm = list_cells(20, 4)
    means = rng.beta(2, 5, 80)
    pulls = (5 + 200 * means).astype(int)  # arms with higher means were pulled more often
    fit = bt.fit(bt.make_logs(campaign, arm, pulls, rng.binomial(pulls, means)))
    assert is_adaptively_chosen(bt.make_logs(campaign, arm, pulls, pulls * means))
    for fitted, labels, other_label in (
        (fit, ("means drawn given the logs", "means drawn from the fit"), "replay"),
        (fits[0], ("mean rewards in the logs", "mean rewards in replayed logs"), "drawn"),
    ):
        axes = fitted.plot().axes[0]
        legend = " ".join(text.get_text() for text in axes.get_legend().get_texts())
        assert [axes.get_ylabel(), axes.get_xlabel()] == [f"quantile of {text}" for text in labels]
        report = fitted.report(tmp_path / "fit.html").read_text()
        assert all(text in report for text in labels)
        for text in (repr(fitted), legend, report):
            assert other_label not in text
    assert make_checks_table(fit).header[1:3] == ("given the logs", "95% in the fit")


def test_every_fit_is_printed_plotted_and_reported(fits, tmp_path):
    for fit in fits:
        text = repr(fit)
        assert fit.model in text
        assert "replayed" in text
        page = fit.report(tmp_path / "fit.html")
        assert fit.estimates[0].name in page.read_text()
    fit.plot(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 5000


def test_arms_and_horizon_come_from_the_logs_or_are_given():
    logs = bt.make_logs([0, 0, 0, 1, 1], "abcab", [10, 20, 30, 40, 50], [1, 2, 9, 4, 25])
    fit = bt.fit(logs)
    assert (fit.arms, fit.horizon, fit.campaigns, fit.decisions) == (2, 75, 2, 150)
    assert any("2 to 3 arms" in note for note in fit.notes)
    assert any("60 to 90 decisions" in note for note in fit.notes)
    given = bt.fit(logs, arms=7, horizon=500)
    assert (given.problem.arms, given.horizon) == (7, 500)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "beta-binomia"}, "did you mean 'beta-binomial'"),
        ({"model": "gaussian", "confidence": 1.5}, "confidence < 1"),
        ({"model": "campaigns", "per_arm": True}, "per_arm"),
        ({"arms": 1}, "`arms` must be a whole number >= 2"),
        ({"horizon": 0}, "`horizon` must be a whole number >= 1"),
        ({"model": "correlated", "arms": 9}, "leave it out"),
        ({"model": "campaigns", "arms": 9}, "the most that a campaign had"),
    ],
)
def test_wrong_settings_of_a_fit_are_refused(options, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.fit(make_binary_logs(), **options)
    with pytest.raises(bt.InvalidRequest, match="past logs"):
        bt.fit([1, 2])


@pytest.mark.parametrize("name", ["beta-binomial, rare", "gaussian, few", "linear", "linear, few"])
def test_intervals_cover_the_truth_in_15_repetitions(name):
    repetitions = 15
    shares = fit_recovery.covered(name, repetitions, seed=3)
    assert len(shares) >= 2
    for share in shares.values():
        assert share >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(fit_recovery.DESIGNS))
def test_intervals_cover_the_truth_at_their_rate(name):
    shares = fit_recovery.covered(name, 300, seed=4)
    assert len(shares) >= 2
    for share in shares.values():
        assert abs(share - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / 300)
