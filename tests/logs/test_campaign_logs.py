"""Logs as sums by campaign and arm."""

from __future__ import annotations

import numpy as np
import pytest

from banditune.core.errors import InvalidRequest
from banditune.logs.campaign_logs import make_logs
from banditune.logs.io.log_reader import read_logs
from helpers.log_files import DECISIONS, TOTALS, sum_by_name


def test_decisions_are_summed_by_campaign_and_arm(write_file):
    logs = read_logs(write_file(DECISIONS))
    assert sum_by_name(logs) == {
        ("spring", "red"): (2, 1.0),
        ("spring", "blue"): (1, 0.0),
        ("autumn", "red"): (1, 1.0),
        ("autumn", "blue"): (1, 1.0),
    }
    assert logs.rewards == "binary"
    assert logs.decision_counts.tolist() == [3, 2]
    assert logs.same_arms
    assert logs.messages[0] == "columns: campaign = 'campaign', arm = 'arm', reward = 'reward'"


@pytest.mark.parametrize("pulls", [1e300, 2.0**53, 0.5, 0, np.nan, np.inf])
def test_pulls_that_cannot_be_counted_are_refused(pulls):
    with pytest.raises(InvalidRequest, match="a whole number of pulls, 1 or more, below 2\\^53"):
        make_logs(["a", "a"], ["x", "y"], [pulls, 5], [0, 1])


def test_a_single_campaign_is_printed_in_the_singular(write_file):
    assert repr(read_logs(write_file("campaign,arm,reward\na,b,1\na,b,0\n"))).startswith(
        "2 decisions in 1 campaign with 1 arm,"
    )


def test_messages_name_the_limits_of_logs(write_file):
    messages = read_logs(write_file("campaign,arm,reward\na,r,1\na,s,1\na,s,0\n")).messages
    assert any("a single campaign" in message for message in messages)
    assert any("1 of 2 arms were pulled only once (r)" in message for message in messages)
    messages = read_logs(write_file("campaign,arm,reward\na,r,1\na,r,0\nb,r,1\nb,s,0\n")).messages
    assert any("1 campaign has a single arm and thus no choice (a)" in message for message in messages)


def test_a_campaign_column_that_numbers_decisions_is_refused(monkeypatch):
    monkeypatch.setattr("banditune.logs.io.log_accumulator.MAX_CELLS", 100)
    table = {"campaign": list(range(200)), "arm": [0] * 200, "reward": [1] * 200}
    with pytest.raises(InvalidRequest, match="contains numbers of decisions"):
        read_logs(table)


def test_campaigns_can_be_selected(write_file):
    logs = read_logs(write_file(TOTALS)).select_campaigns([1])
    assert logs.campaigns == ("B",)
    assert sum_by_name(logs) == {("B", "gum"): (107, 21.0), ("B", "control"): (105, 21.0)}
    with pytest.raises(InvalidRequest):
        logs.select_campaigns([])


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ((["a"], ["x"], [0], [0]), {}, "1 or more"),
        ((["a"], ["x"], [1.5], [0]), {}, "whole number"),
        ((["a"], ["x"], [2], [3]), {}, "0 <= total <= pulls"),
        ((["a"], ["x"], [2], [np.nan]), {}, "finite total"),
        ((["a", "a"], ["x", "x"], [1, 1], [1, 1]), {}, "add up their rows"),
        ((["a"], ["x", "y"], [1], [1]), {}, "same length"),
        ((["a"], ["x"], [1], [1]), {"rewards": "foo"}, "one of 'binary', 'unit', 'real', but got 'foo'"),
        ((["a"], ["x"], 1, [1, 2]), {}, "same length"),
        ((["a"], ["x"], [2], [1.0], [np.nan]), {"rewards": "real"}, "`squares` must be finite numbers >= 0"),
        ((["a"], ["x"], [2], [1.0], [-1.0]), {"rewards": "real"}, "`squares` must be finite numbers >= 0"),
        ((["a"], ["x"], [2], [1.0], ["much"]), {"rewards": "real"}, "same length"),
        ((["a", "a"], ["x", "y"], [1, 1], [1, 1]), {"features": [[1, 2]]}, r"each of the 2 rows .* shape is \(1, 2\)"),
        ((["a", "a"], ["x", "y"], [1, 1], [1, 1]), {"features": [1, 2]}, r"each of the 2 rows .* shape is \(2,\)"),
        ((["a"], ["x"], [1], [1]), {"features": [[1, np.inf]]}, "`features` must be finite"),
        ((["a"], ["x"], [1], [1]), {"features": [["red"]]}, "`features` must be finite"),
        ((["a"], ["x"], [1], [1]), {"features": [[1, 2]], "feature_names": ["a"]}, "2 names, one per feature"),
    ],
)
def test_wrong_sums_are_refused(columns, options, message):
    with pytest.raises(InvalidRequest, match=message):
        make_logs(*columns, **options)
