"""`check_problem` names the check that a broken problem fails, and says what deviation it would have seen."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import pytest

import banditune as bt


@bt.kernel.scalar
def pay(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[arm])


@bt.kernel.scalar
def pay_noisily(instance, arm, pull, step, stream):
    return instance.means[arm] + 2.0 * bt.kernel.normal(stream)


@bt.kernel.scalar
def pay_more(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, 1.05 * instance.means[arm])


@bt.kernel.scalar
def pay_by_overflow(instance, arm, pull, step, stream):
    """Whole numbers of compiled code end at 2^63."""
    return instance.means[arm] + float(((arm + 7) * 6364136223846793005 * 6364136223846793005 >> 40) % 3)


@dataclass(frozen=True)
class Mine(bt.kernel.Problem):
    """A right problem, of which tests replace a part."""

    arms: int = 3

    name = "mine"
    rewards = "binary"
    reward = staticmethod(pay)

    def sample(self, size, rng):
        return bt.kernel.Instances(rng.uniform(0.3, 0.7, (size, self.arms)))


def change(**members):
    """The problem with other members."""
    return dataclass(frozen=True)(type("Changed", (Mine,), {"__module__": __name__, **members}))()


def fail(problem, check, *words, **settings):
    """Check a problem that fails one check, with all of these words in the message."""
    with pytest.raises(bt.errors.ConformanceError) as error:
        bt.testing.check_problem(problem, **settings)
    assert error.value.check == check, str(error.value)
    assert error.value.argument == "problem"
    assert [word for word in words if word not in str(error.value)] == []


def test_a_right_problem_passes_with_a_report_of_detectable_deviations():
    found = bt.testing.check_problem(Mine())
    names = ["description", "contract", "instances", "rewards", "plain-python", "means", "noise"]
    assert [check.name for check in found.checks] == names
    assert found["means"].runs == 2**20
    assert found["means"].detectable == pytest.approx(4 * 0.5 / 2**10, rel=0.03)
    assert "a deviation of 0.0019 in all of them would have been detected" in found["means"].finding
    assert bt.results.from_json(found.to_json()) == found


def test_a_problem_of_functions_passes_and_unknown_noise_is_left_out():
    problem = bt.define_problem("waits", lambda size, rng: rng.gamma(2, 1, (size, 2)), pay_noisily, arms=2)
    found = bt.testing.check_problem(problem, horizon=100)
    assert found.left_out == ("noise: the problem states no noise; policies measure it",)


def test_objects_that_are_no_problems_are_refused():
    with pytest.raises(bt.InvalidRequest, match="must be a problem"):
        bt.testing.check_problem(Mine)
    with pytest.raises(bt.InvalidRequest, match="horizon"):
        bt.testing.check_problem(Mine(), horizon=0)


def test_a_description_that_cannot_be_hashed_fails():
    fail(change(__hash__=None), "description", "must have a hash")


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"rewards": "odd"}, "`rewards` must be one of 'real', 'unit', 'binary', but it is 'odd'"),
        ({"names": ("a", "b")}, "must be 3 different names"),
        ({"reward": staticmethod(lambda instance, arm: 0.0)}, "`reward` must take (instance, arm, pull, step, stream)"),
        ({"options": lambda self: (np.random.default_rng().random(),)}, "the same numbers at each call"),
    ],
)
def test_the_attributes_of_a_problem_are_checked(members, words):
    fail(change(**members), "contract", words)


def test_instances_that_are_not_those_of_the_seed_fail():
    loose = np.random.default_rng(0)
    fail(
        change(sample=lambda self, size, rng: bt.kernel.Instances(loose.random((size, 3)))),
        "instances",
        "must draw only from `rng`",
    )

    def sample_globally(self, size, rng):
        random.random()
        return bt.kernel.Instances(rng.random((size, 3)))

    fail(change(sample=sample_globally), "instances", "the global generators of a process")


def test_instances_that_remember_the_ones_before_fail():
    seen = []

    def sample(self, size, rng):
        means = rng.random((size, 3))
        first = not seen or seen[0] is None
        seen.append(float(means[0, 0]))
        # The block that came just before decides, unless it was the same one.
        shift = 0.0 if first or len(seen) < 2 or seen[-2] <= means[0, 0] else 0.1
        return bt.kernel.Instances(means * 0.8 + shift)

    fail(change(sample=sample), "instances", "in another order they are different")


def test_a_sample_of_a_fixed_size_fails():
    fail(
        change(sample=lambda self, size, rng: bt.kernel.Instances(rng.random((256, 3)))),
        "instances",
        "for size=1 it returned (256, 3)",
    )


def test_rewards_with_randomness_of_their_own_fail():
    @bt.kernel.scalar
    def reward(instance, arm, pull, step, stream):
        return float(random.random() < 0.5)

    fail(change(reward=staticmethod(reward)), "rewards", "must draw only from `stream`")


def test_rewards_of_another_kind_fail():
    fail(change(reward=staticmethod(pay_noisily)), "rewards", "must be 0 or 1")


def test_rewards_that_compile_to_other_numbers_fail():
    fail(
        change(reward=staticmethod(pay_by_overflow), rewards="real"),
        "plain-python",
        "must draw the rewards of plain Python",
    )


def test_means_that_are_off_by_five_percent_fail():
    fail(change(reward=staticmethod(pay_more)), "means", "must have the means that its `sample` returns")


def test_a_stated_noise_that_is_wrong_fails():
    problem = change(reward=staticmethod(pay_noisily), rewards="real", noise=1.9)
    fail(problem, "noise", "it is 1.9, and that of 49,152 rewards is", "a deviation of 0.0")
    found = bt.testing.check_problem(change(reward=staticmethod(pay_noisily), rewards="real", noise=2.0))
    assert 0.01 < found["noise"].detectable < 0.05


def test_changing_rewards_are_checked_without_their_means():
    @bt.kernel.scalar
    def reward(instance, arm, pull, step, stream):
        return bt.kernel.bernoulli(stream, instance.means[arm] * (0.5 if step < 50 else 1.0))

    found = bt.testing.check_problem(change(reward=staticmethod(reward)), horizon=100)
    assert found["contract"].finding == "3 arms, binary rewards, realised regret"
    assert [reason.partition(":")[0] for reason in found.left_out] == ["means", "noise"]
