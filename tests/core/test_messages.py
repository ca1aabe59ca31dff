"""Messages keep their references to arguments, and each vocabulary writes them in its own words."""

from __future__ import annotations

import copy
import pickle

import pytest

import banditune as bt
from banditune.cli.vocabulary import write_for_command_line
from banditune.core.messages import Argument, Condition, Message, Setting, Wording, join_messages


@pytest.mark.parametrize(
    ("reference", "python", "command_line"),
    [
        (Argument("max_time"), "`max_time`", "--max-time"),
        (Argument("ranges"), "`ranges`", "--range"),
        (Argument("population"), "`population`", "`population`"),
        (Condition("", "budget", " >= 8"), "`budget >= 8`", "`--budget >= 8`"),
        (Condition("0 < ", "share", " < 1"), "`0 < share < 1`", "`0 < --share < 1`"),
        (Setting("max_time", -1.0), "max_time=-1.0", "--max-time -1.0"),
        (Setting("model", "correlated"), "model='correlated'", "--model correlated"),
        (Setting("model", "two words"), "model='two words'", "--model 'two words'"),
        (Setting("features", ""), "features=''", "--features ''"),
        (Setting("per_arm", True), "per_arm=True", "--per-arm"),
        (Setting("intercept", False), "intercept=False", "--no-intercept"),
        (Setting("skip_bad", False), "skip_bad=False", "skip_bad=False"),
        (Setting("prior", (1, 2)), "prior=(1, 2)", "prior=(1, 2)"),
        (Wording("result.deploy(mine)", "--policy FILE.py:NAME"), "result.deploy(mine)", "--policy FILE.py:NAME"),
    ],
)
def test_a_reference_has_words_for_python_and_for_the_command_line(reference, python, command_line):
    message = Message("try {} or `seed` of {!r:.3}", reference, "state")
    assert message == f"try {python} or `seed` of 'st"
    assert write_for_command_line(message) == f"try {command_line} or `seed` of 'st"


def test_references_survive_in_other_messages_in_errors_and_in_copies():
    message = Message("give {}", Argument("arms"))
    error = bt.InvalidRequest("first {}, then {}", message, Setting("seed", 1), argument="arms", code="missing")
    outer = join_messages("\n", [Message(error), "{braces} stay", message])
    assert outer == "first give `arms`, then seed=1\n{braces} stay\ngive `arms`"
    for one in (outer, copy.deepcopy(outer), pickle.loads(pickle.dumps(outer))):
        assert write_for_command_line(one) == "first give --arms, then --seed 1\n{braces} stay\ngive --arms"
    assert write_for_command_line(error.quote()) == "first give `arms`, then seed=1"
    assert write_for_command_line(message.replace_start("give", "take")) == "take --arms"


def test_a_reference_that_would_be_lost_is_an_error():
    with pytest.raises(TypeError, match="must be a value of a slot"):
        f"give {Argument('arms')}"
    with pytest.raises(TypeError, match="a slot for each value"):
        Message("give", Argument("arms"))
