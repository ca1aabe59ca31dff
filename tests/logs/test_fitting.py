"""`fit`: its arguments, its results, and how often its intervals hold the true value."""

from __future__ import annotations

import math

import numpy as np
import pytest
import recovery

import banditune as bt
from banditune.logs.models.adaptivity import (
    is_adaptively_chosen,
)
from banditune.reports.fit_report import make_checks_table
from banditune.results.log_results import FittedProblem
from helpers.sample_logs import binary_logs, cells, linear_logs, logistic_logs, real_logs, together


def test_logs_that_cannot_tell_a_prior_are_refused_in_words():
    with pytest.raises(bt.InvalidRequest, match="two arms or more"):
        bt.fit(bt.make_logs([0], [0], [10], [3]), arms=2)
    with pytest.raises(bt.InvalidRequest, match="pulled twice"):
        bt.fit(bt.make_logs(*cells(4, 3), np.ones(12, int), np.tile([1, 0, 0], 4)))
    with pytest.raises(bt.InvalidRequest, match="name another with `campaign`"):
        bt.fit(bt.make_logs([0, 1], [0, 0], [10, 10], [3, 5]))


def test_a_fit_is_not_taken_for_its_problem():
    fit = bt.fit(bt.make_logs(["a", "a", "b", "b"], ["x", "y", "x", "y"], [90, 90, 90, 90], [9, 20, 30, 4]))
    with pytest.raises(
        bt.InvalidRequest, match=r"but got a FittedProblem, which holds one; pass its fields: fitted.problem, horizon="
    ):
        bt.tune(bt.UCB1(noise=0.5), fit, horizon=10, budget=12)
    with pytest.raises(bt.InvalidRequest, match=r"read them first: fit\(read_logs\(FILE\)\)"):
        bt.fit("logs.csv")
    assert "; a check fails where the share above is outside 0.005 to 0.995\n" in repr(fit)


@pytest.fixture(scope="module")
def fits():
    found = [bt.fit(together(arms=3), model) for model in ("auto", "correlated", "campaigns")]
    real = real_logs(np.random.default_rng(1).normal(size=(5, 3)))
    return [*found, bt.fit(real), bt.fit(real, "campaigns"), bt.fit(linear_logs()), bt.fit(logistic_logs())]


def test_every_fit_goes_to_json_and_back_and_gives_its_problem(fits, tmp_path):
    assert len(fits) == 7
    for found in fits:
        assert bt.results.from_json(found.to_json()) == found
        problem = bt.results.from_json(found.to_json()).problem
        assert problem == found.problem
        assert problem.arms == found.arms
        found.save(tmp_path / "fit.json")
        assert isinstance(bt.load_result(tmp_path / "fit.json"), FittedProblem)


def test_captions_say_what_is_compared_where_a_policy_chose_the_arms(fits, tmp_path):
    rng = np.random.default_rng(3)
    campaign, arm = cells(20, 4)
    means = rng.beta(2, 5, 80)
    pulls = (5 + 200 * means).astype(int)  # good arms were pulled more often
    fit = bt.fit(bt.make_logs(campaign, arm, pulls, rng.binomial(pulls, means)))
    assert is_adaptively_chosen(bt.make_logs(campaign, arm, pulls, pulls * means))
    for one, right, wrong in (
        (fit, ("means drawn given the logs", "means drawn from the fit"), "replay"),
        (fits[0], ("mean rewards in the logs", "mean rewards in replayed logs"), "drawn"),
    ):
        axes = one.plot().axes[0]
        legend = " ".join(words.get_text() for words in axes.get_legend().get_texts())
        assert [axes.get_ylabel(), axes.get_xlabel()] == [f"quantile of {words}" for words in right]
        page = one.report(tmp_path / "fit.html").read_text()
        assert all(words in page for words in right)
        for words in (repr(one), legend, page):
            assert wrong not in words
    assert make_checks_table(fit).header[1:3] == ("given the logs", "95% in the fit")


def test_every_fit_is_told_drawn_and_reported(fits, tmp_path):
    for found in fits:
        words = repr(found)
        assert found.model in words
        assert "replayed" in words
        page = found.report(tmp_path / "fit.html")
        assert found.estimates[0].name in page.read_text()
    found.plot(tmp_path / "fit.png")
    assert (tmp_path / "fit.png").stat().st_size > 5000


def test_arms_and_horizon_come_from_the_logs_or_are_told():
    logs = bt.make_logs([0, 0, 0, 1, 1], "abcab", [10, 20, 30, 40, 50], [1, 2, 9, 4, 25])
    fit = bt.fit(logs)
    assert (fit.arms, fit.horizon, fit.campaigns, fit.decisions) == (2, 75, 2, 150)
    assert any("2 to 3 arms" in note for note in fit.notes)
    assert any("60 to 90 decisions" in note for note in fit.notes)
    told = bt.fit(logs, arms=7, horizon=500)
    assert (told.problem.arms, told.horizon) == (7, 500)


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
def test_wishes_that_cannot_be_are_refused(options, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.fit(binary_logs(), **options)
    with pytest.raises(bt.InvalidRequest, match="past logs"):
        bt.fit([1, 2])


@pytest.mark.parametrize("name", ["beta-binomial, rare", "gaussian, few", "linear", "linear, few"])
def test_intervals_hold_the_truth_about_as_often_as_they_say(name):
    repetitions = 15
    shares = recovery.covered(name, repetitions, seed=3)
    assert len(shares) >= 2
    for share in shares.values():
        assert share >= 0.95 - 4 * math.sqrt(0.95 * 0.05 / repetitions)


@pytest.mark.slow
@pytest.mark.parametrize("name", list(recovery.DESIGNS))
def test_intervals_hold_the_truth_as_often_as_they_say(name):
    shares = recovery.covered(name, 300, seed=4)
    assert len(shares) >= 2
    for share in shares.values():
        assert abs(share - 0.95) <= 4 * math.sqrt(0.95 * 0.05 / 300)
