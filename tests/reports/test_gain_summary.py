"""The summary on top of a report: gains in the reader's unit, with intervals, and what the parameter means."""

from __future__ import annotations

from dataclasses import replace

import pytest

import banditune as bt
from banditune.reports.gain_summary import GainUnit, build_summary, list_gains, state_gain_in_unit
from banditune.results.estimates import Estimate


@pytest.fixture(scope="module")
def tuning():
    search = bt.Search(validate=200)
    return bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=400, budget=60, search=search)


@pytest.fixture(scope="module")
def backtest():
    logs = bt.make_logs([n // 2 for n in range(40)], ["red", "blue"] * 20, [50] * 40, [5 + n % 7 for n in range(40)])
    settings = bt.FitSettings(model="correlated")
    return bt.backtest(bt.UCB1(noise=0.5), logs, fit_settings=settings, budget=40, search=bt.Search(validate=20))


def with_gain(tuning, low, mean, high):
    return replace(tuning, gain=Estimate(mean=mean, se=1.0, low=low, high=high, runs=100))


@pytest.mark.parametrize(
    ("low", "mean", "high", "sentence"),
    [
        (2, 4, 6, "tuning gains 10 clicks per 1,000 decisions over the textbook setting (95% interval 5 to 15)."),
        (-6, -4, -2, "tuning loses 10 clicks per 1,000 decisions to the textbook setting (95% interval -15 to -5)."),
        (-2, 4, 6, "The estimate is 10 clicks per 1,000 decisions (95% interval -5 to 15)."),
    ],
)
def test_a_gain_is_stated_in_the_unit_as_far_as_its_interval_allows(tuning, low, mean, high, sentence):
    (gain,) = list_gains(with_gain(tuning, low, mean, high))
    assert state_gain_in_unit(gain, GainUnit("clicks", 1000)).endswith(sentence)


def test_the_summary_explains_the_parameter(tuning):
    summary = build_summary([tuning], GainUnit("clicks", 100), "Spring")
    assert summary.title == "Spring"
    (parameter,) = [section for section in summary.sections if section.title == "What was tuned"]
    assert "gamma is the amount of exploration" in parameter.paragraphs[0]
    table = next(section.table for section in summary.sections if section.table)
    assert float(table.rows[0][2]) == pytest.approx(100 * tuning.gain.mean / 400, rel=1e-3)
    assert table.rows[0][4] == f"{float(f'{tuning.gain.mean:.4g}'):.4g} in 400"


def test_two_kinds_of_gain_on_one_page_are_explained(tuning, backtest):
    summary = build_summary([tuning, backtest], GainUnit("clicks", 1000), "")
    gain = next(section for section in summary.sections if section.title == "Gain")
    assert any("There are two comparisons." in words for words in gain.paragraphs)
    assert any("do not add up" in words for words in gain.paragraphs)
    assert {row[1] for row in gain.table.rows} == {"the textbook setting", "what was logged"}
    logged = next(row for row in gain.table.rows if row[1] == "what was logged")
    assert float(logged[2]) == pytest.approx(1000 * backtest.reward_difference.mean, rel=1e-3, abs=1e-9)


def test_the_command_line_takes_several_results_a_unit_and_a_title(tuning, tmp_path, run_banditune):
    for name in ("a", "b"):
        tuning.save(tmp_path / f"{name}.json")
    made = run_banditune(
        "report", "a.json", "b.json", "-o", "r.html", "--unit", "clicks", "--per", "500", "--title", "Spring"
    )
    assert made.returncode == 0, made.stderr
    page = (tmp_path / "r.html").read_text()
    assert page.count("<article>") == 3
    assert "<title>Spring</title>" in page
    assert "clicks per 500 decisions" in page


def test_results_without_a_gain_and_wrong_units_are_refused(tuning, tmp_path):
    curve = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.1, 0.5], horizon=400, runs=20)
    with pytest.raises(bt.InvalidRequest, match="states a gain"):
        bt.report(curve, tmp_path / "r.html", unit="clicks")
    with pytest.raises(bt.InvalidRequest, match="per"):
        bt.report(tuning, tmp_path / "r.html", unit="clicks", per=0)


def test_a_headline_has_no_covariance_matrix():
    problem = bt.Linear(arms=3, dims=2, prior=((0.1, 0.2), ((2.0, 0.5), (0.5, 1.0))))
    from banditune.core.descriptions import describe
    from banditune.reports.text_formatting import describe_config

    assert "prior=((0.1, 0.2), 2 x 2)" in describe_config(describe(problem))
