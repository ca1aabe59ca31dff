"""Records of regret over time."""

from __future__ import annotations

import json

import pytest

import banditune as bt
from helpers.example_results import make_over_time


def test_a_record_is_the_same_after_json(tmp_path):
    result = make_over_time()
    assert bt.results.from_json(result.to_json()) == result
    assert repr(bt.results.from_json(result.to_json())) == repr(result)
    result.save(tmp_path / "result.json")
    assert bt.load_result(tmp_path / "result.json") == result


def test_a_data_frame_has_a_row_for_each_series_and_step():
    result = make_over_time()
    frame = result.to_pandas()
    assert len(frame) == len(result.series) * len(result.steps)
    last = frame[(frame["label"] == "textbook") & (frame["step"] == 1000)].iloc[0]
    assert (last["regret"], last["se"]) == (result["textbook"].regret.mean[-1], result["textbook"].regret.se[-1])
    assert last["difference_low"] == result["textbook"].difference_to_reference.low[-1]


def test_estimates_are_looked_up_by_label_and_step():
    result = make_over_time()
    regret = result.get_regret("tuned", 10)
    assert (regret.mean, regret.low) == (result["tuned"].regret.mean[0], result["tuned"].regret.low[0])
    assert (regret.runs, regret.unit) == (result.unit_count, "run")
    assert result.get_difference("textbook").mean == result["textbook"].difference_to_reference.mean[-1]
    with pytest.raises(bt.InvalidRequest, match="must be one of tuned, textbook, but got 'tune'; did you mean 'tuned'"):
        result["tune"]
    with pytest.raises(bt.InvalidRequest, match="the step must be one of 10, 100, 1000"):
        result.get_regret("tuned", 11)


def test_some_series_can_be_selected():
    result = make_over_time()
    selected = result.select("textbook")
    assert [series.label for series in selected.series] == ["textbook"]
    assert selected.reference == "tuned"
    assert selected.get_difference("textbook") == result.get_difference("textbook")
    assert "After 1,000 steps textbook has regret" in repr(selected)


def test_records_that_do_not_fit_are_refused():
    data = json.loads(make_over_time().to_json())
    wrong = (
        {"steps": [10, 100]},
        {"series": []},
        {"series": [data["series"][0], data["series"][0]]},
    )
    for changes in wrong:
        with pytest.raises(bt.InvalidRequest, match="must have series with distinct labels"):
            bt.results.from_json(json.dumps(data | changes))
