"""`check_policy` names the check that a broken policy fails, and passes a policy of a user that is right."""

from __future__ import annotations

import math
import random
import re
import threading
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

import banditune as bt
from banditune.simulation.executor import ChunkResult
from banditune.testing.policy_conformance import PolicySubject, go_beyond
from helpers.faulty_policy import Faulty, choose_faultily

PROBLEM = bt.Bernoulli(arms=3)


def fail(policy, check, *words, problem=PROBLEM, **settings):
    """Check a policy that fails one check, with all of these words in the message."""
    with pytest.raises(bt.errors.ConformanceError) as error:
        bt.testing.check_policy(policy, problem, **settings)
    assert error.value.check == check, str(error.value)
    assert (error.value.argument, error.value.code) == ("policy", "own-code")
    assert [word for word in words if word not in str(error.value)] == []
    return str(error.value)


def test_a_right_policy_passes_with_a_report_of_the_comparisons():
    found = bt.testing.check_policy(Faulty(), PROBLEM)
    names = [check.name for check in found.checks]
    assert names == [
        *("description", "contract", "memory", "no-reward-yet", "decisions", "plain-python"),
        *("threads-and-chunks", "travel", "deployment", "result"),
    ]
    assert (found.subject_kind, found.subject, found.left_out) == ("policy", "faulty", ())
    assert found["decisions"].finding == "51,200 decisions are arms, and the same for the same seed"
    assert found["plain-python"].detectable == 0
    assert bt.results.from_json(found.to_json()) == found
    assert str(found).startswith("the policy 'faulty' passes 10 checks\n  description         frozen")


def test_an_object_of_another_library_is_checked_as_far_as_it_can_be():
    class Alternating:
        def __init__(self, arms):
            self.arms, self.step = arms, 0

        def select(self):
            self.step += 1
            return self.step % self.arms

        def update(self, arm, reward):
            pass

    found = bt.testing.check_policy(bt.wrap_policy(Alternating, ()), PROBLEM, horizon=20)
    assert [check.name for check in found.checks] == [
        "description",
        "contract",
        "decisions",
        "threads-and-chunks",
        "result",
    ]
    assert [reason.partition(":")[0] for reason in found.left_out] == [
        *("memory", "no-reward-yet", "plain-python", "travel", "deployment")
    ]


def test_objects_that_are_no_policies_are_refused():
    with pytest.raises(
        bt.InvalidRequest, match=r"must be a policy such as UCB1\(\), but got .*; make one, such as Faulty\(\)"
    ):
        bt.testing.check_policy(Faulty)


def test_a_description_that_is_no_json_fails():
    @dataclass(frozen=True)
    class Odd(Faulty):
        word: Any = None

    fail(Odd(word={1, 2}), "description", "numbers, strings and lists")
    fail(Odd(word=math.nan), "description", "numbers, strings and lists")
    fail(Odd(word=["a"]), "description", "must have a hash")


def test_a_record_that_can_be_changed_or_is_no_record_fails():
    @dataclass
    class Open(bt.kernel.Policy):
        name = "open"

    fail(Open(), "description", "@dataclass(frozen=True)")

    class Bare(bt.kernel.Policy):
        name = "bare"

    fail(Bare(), "description", "frozen dataclass")


def test_a_record_that_cannot_be_made_again_from_its_description_fails():
    @dataclass(frozen=True)
    class Doubling(Faulty):
        width: float = 1.0

        def __post_init__(self):
            object.__setattr__(self, "width", 2 * self.width)

    message = fail(Doubling(), "description", "converting twice")
    assert "'width': 4.0" in message


def test_a_function_with_other_arguments_fails():
    class Short(Faulty):
        update = staticmethod(bt.kernel.scalar(lambda state, setting, arm, reward, stream: None))

    fail(Short(), "contract", "`update` must take (state, setting, step, params, arm, reward, stream)")


def test_sizes_and_options_that_change_fail():
    calls = []

    class Growing(Faulty):
        def memory(self, arms, dims, horizon):
            calls.append(arms)
            return 2 * arms + len(calls)

    fail(Growing(), "contract", "the same whole number at each call")

    class Random(Faulty):
        def options(self, arms, dims, horizon):
            return (0.0, np.random.default_rng().random())

    fail(Random(), "contract", "must return the same numbers at each call")

    class Shared(Faulty):
        def options(self, arms, dims, horizon):
            return (0.0, 0.0 * random.random())

    fail(Shared(), "contract", "random.random()", "draw from the generator or stream that is passed")


def test_a_range_without_its_textbook_value_fails():
    class Outside(Faulty):
        parameters = (bt.Parameter("epsilon", 0, 1, textbook=lambda arms, horizon: horizon / 50_000),)

    fail(Outside(), "contract", "the textbook value of the parameter 'epsilon' must lie in [0, 1], but got 2")


def test_a_start_that_does_not_set_a_number_fails():
    @bt.kernel.scalar
    def start(state, setting):
        state.pulls[:] = 0.0

    class Forgetful(Faulty):
        pass

    Forgetful.start = staticmethod(start)

    fail(Forgetful(), "memory", "does not set `total[0]`")


def test_a_policy_that_needs_a_reward_before_it_chooses_fails():
    fail(Faulty(4), "no-reward-yet", "it returned -1 at step 3", "feedback may be late")
    fail(Faulty(5), "no-reward-yet", "NaN")


def test_an_arm_that_does_not_exist_fails_with_the_run_and_the_step():
    message = fail(Faulty(1), "decisions", "an arm must be a whole number from 0 to 2")
    assert re.search(r"chose 3 at step \d+ of run 0", message)


def test_an_object_that_draws_from_a_generator_of_its_own_fails():
    generator = np.random.default_rng(0)

    class Loose:
        def select(self):
            return int(generator.integers(3))

        def update(self, arm, reward):
            pass

    fail(bt.wrap_policy(Loose, ()), "decisions", "the same seed must give the same regrets", horizon=20)


def test_code_that_compiles_to_other_numbers_fails():
    fail(Faulty(2), "plain-python", "must give the regrets of plain Python", "whole numbers beyond 2^63")


class PositionSimulator:
    """Regrets by the position in a chunk, as if an object remembered its earlier runs."""

    def simulate_chunk(self, chunk, stop):
        regrets = np.zeros((len(chunk.params), len(chunk.runs), 1)) + np.arange(len(chunk.runs))[None, :, None]
        return ChunkResult(regrets, np.zeros(5), 1e-3)


@dataclass(frozen=True)
class Remembering(bt.kernel.Policy):
    name = "remembering"
    is_external = True
    view = start = choose = update = staticmethod(lambda *arguments: 0)

    def memory(self, arms, dims, horizon):
        return 0

    def make_simulator(self, spec):
        return PositionSimulator()


def test_regrets_that_depend_on_how_the_work_is_cut_fail():
    fail(Remembering(), "threads-and-chunks", "with runs in pieces")


def test_a_policy_that_cannot_be_sent_to_another_process_fails():
    @dataclass(frozen=True)
    class Locked(Faulty):
        lock: Any = field(default=None, metadata={"described": False})

    fail(Locked(lock=threading.Lock()), "travel", "cannot be pickled")


@bt.kernel.scalar
def recall_backwards(state, setting, pulls, totals):
    for arm in range(setting.arms):
        pulls[arm] = state.pulls[setting.arms - 1 - arm]
        totals[arm] = state.total[arm]


@bt.kernel.scalar
def resume_nothing(state, setting, params, pulls, totals):
    pass


def test_a_policy_that_cannot_be_rebuilt_from_its_pulls_fails():
    class Backwards(Faulty):
        recall = staticmethod(recall_backwards)

    class Empty(Faulty):
        resume = staticmethod(resume_nothing)

    fail(Backwards(), "deployment", "`recall` must write the pulls")
    fail(Empty(), "deployment", "`resume` must rebuild the memory")


def test_a_policy_that_fails_only_at_searched_values_fails():
    fail(Faulty(3), "result", "'faulty' chose -1")


def make_shortcut(**changes):
    """A shortcut that pulls arm 0 at every step."""

    @bt.kernel.scalar
    def advance(instance, setting, params, agent, rewards, floats, integers, pulls, first, last):
        pulls[0] += last - first
        return True

    fields = {
        "name": "first-arm",
        "advance": advance,
        "replaces": (Faulty.view, Faulty.start, Faulty.choose, Faulty.update),
        "memory": lambda arms, dims, horizon: (0, 0),
        "is_valid": lambda options, row: True,
        "is_bitwise_exact": True,
    }
    return bt.kernel.Shortcut(**fields | changes)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ("must pull the same arms", "regrets differ", "at parameters [")),
        ({"is_bitwise_exact": False}, ("must have the mean regrets of the plain loop", "narrow `is_valid`")),
        ({"is_valid": lambda options, row: False}, ("must be valid somewhere",)),
    ],
)
def test_a_shortcut_that_is_not_the_plain_loop_fails(changes, words):
    class Fast(Faulty):
        shortcuts = (make_shortcut(**changes),)

    # The decisions of a wrong shortcut are arms, too, and the plain loop is right.
    fail(Fast(), "shortcut", *words)


def test_a_shortcut_that_is_never_used_fails_unless_it_is_inherited():
    class Incomplete(Faulty):
        shortcuts = (make_shortcut(replaces=(choose_faultily,)),)

    class Heir(Incomplete):
        pass

    fail(Incomplete(), "shortcut", "'first-arm' does not replace the policy's view, start, update", "`replaces`")
    assert bt.testing.check_policy(Heir(), PROBLEM).left_out[0].startswith("shortcut: 'first-arm' does not replace")


def test_a_shortcut_that_does_not_apply_is_left_out_with_the_reason():
    class Elsewhere(Faulty):
        shortcuts = (make_shortcut(is_applicable=lambda policy, problem: False),)

    subject = PolicySubject(Elsewhere(), PROBLEM, 50, None, 0)
    subject.check_contract()
    with pytest.raises(Exception, match="'first-arm' does not apply to 'bernoulli'; give a problem"):
        subject.check_shortcut(Elsewhere.shortcuts[0])


def test_a_value_beyond_the_range_is_tried_where_the_policy_is_defined():
    usual = bt.Parameter("x", 1, 3, textbook=2).resolve(5, 100)
    assert go_beyond(usual) == 6
    assert go_beyond(replace(usual, upper_limit=4.0)) == 4
    assert go_beyond(replace(usual, scale="log", low=1.0, high=4.0)) == 8
