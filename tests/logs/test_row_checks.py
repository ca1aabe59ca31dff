"""Rows that cannot be read, and cells that stand for others."""

from __future__ import annotations

import pytest

import banditune as bt
from banditune.core.errors import InvalidRequest
from banditune.logs.io.log_reader import read_logs
from helpers.log_files import DECISIONS, sum_by_name

pandas = pytest.importorskip("pandas")


def test_words_for_missing_values_are_no_names(write_file):
    table = "campaign,arm,reward\nx,a,1\nx,NULL,0\nx,NaN,1\nx,b,0\nnull,b,0\nx, <NA>,1\nx,None,1\nx,NA,0\n"
    path = write_file(table)
    with pytest.raises(
        InvalidRequest, match=r"4 of 8 rows cannot be read \(line 3: the arm is missing; .* campaign is missing"
    ):
        read_logs(path)
    assert read_logs(path, settings=bt.ReadSettings(skip_bad=True)).arms == ("a", "b", "None", "NA")
    frame = pandas.read_csv(path, keep_default_na=False)
    assert read_logs(frame, settings=bt.ReadSettings(skip_bad=True)).arms == ("a", "b", "None", "NA")


def test_an_empty_reward_may_stand_for_a_number(write_file):
    path = write_file("campaign,arm,reward\nx,a,\nx,b,1\nx,a, \nx,b,NULL\nx,a,1\n")
    with pytest.raises(
        InvalidRequest, match=r"3 of 5 rows .*; if an empty reward means 0, set blank=0; otherwise correct them"
    ):
        read_logs(path)
    for source in (path, pandas.read_csv(path)):
        assert sum_by_name(read_logs(source, settings=bt.ReadSettings(blank=0))) == {
            ("x", "a"): (3, 1.0),
            ("x", "b"): (2, 1.0),
        }
    assert sum_by_name(read_logs(path, settings=bt.ReadSettings(blank=0.5)))["x", "a"] == (3, 2.0)
    totals = write_file("campaign,arm,pulls,successes\nx,a,3,1\nx,b,2,1\n", "totals.csv")
    with pytest.raises(
        InvalidRequest, match="`blank` is the value of empty rewards, but rows have pulls and successes"
    ):
        read_logs(totals, settings=bt.ReadSettings(blank=0))
    with pytest.raises(InvalidRequest, match="`blank` must be a finite number"):
        read_logs(path, settings=bt.ReadSettings(blank="no"))
    with pytest.raises(InvalidRequest, match="the reward must be 0 or 1, but is -1"):
        read_logs(path, settings=bt.ReadSettings(blank=-1, rewards="binary"))


def test_a_decimal_comma_is_named(write_file):
    with pytest.raises(InvalidRequest) as error:
        read_logs(write_file(DECISIONS + 'spring,red,"0,5"\nspring,red,nan\n'))
    assert "but is '0,5', with a comma for a point; line 8: the reward must be a finite number, but is 'nan');" in str(
        error.value
    )


def test_unreadable_rows_are_counted_and_the_first_five_named(write_file):
    rows = ["spring,,1", "spring,red", "spring,red,maybe", ",red,1", "spring,red,nan", "spring,red,inf"]
    path = write_file(DECISIONS + "\n".join(rows) + "\n" + "autumn,red,0\n")
    with pytest.raises(InvalidRequest) as error:
        read_logs(path)
    message = str(error.value)
    assert message.startswith("6 of 12 rows cannot be read (line 7: the arm is missing; line 8: it must have 3 fields")
    assert "line 9: the reward must be a finite number, but is 'maybe'" in message
    assert "line 11" in message
    assert "line 12" not in message
    assert "and 1 more" in message
    assert "skip_bad=True" in message
    logs = read_logs(path, settings=bt.ReadSettings(skip_bad=True))
    assert sum_by_name(logs)["autumn", "red"] == (2, 1.0)
    assert any(message_of_logs.startswith("left out: 6 of 12 rows") for message_of_logs in logs.messages)


def test_yes_and_no_are_rewards(write_file):
    logs = read_logs(write_file("campaign,arm,converted\na,b,yes\na,b,No\na,c,YES\n"))
    assert logs.rewards == "binary"
    assert sum_by_name(logs) == sum_by_name(read_logs(write_file("campaign,arm,converted\na,b,1\na,b,0\na,c,1\n")))


def test_a_few_rewards_other_than_0_and_1_are_noted():
    reward = [0, 1] * 200 + [2]
    messages = read_logs({"campaign": [0] * 401, "arm": [0, 1] * 200 + [0], "reward": reward}).messages
    assert any(
        message.startswith("1 of 401 rewards are neither 0 nor 1, so all are read as real") for message in messages
    )
