"""Arguments of the verbs: wrong ones are refused with one message."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import banditune as bt
from helpers.example_policies import REVERSED_RANGE, TEXTBOOK_OFF_RANGE, TWO_PARAMETERS
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)


@dataclasses.dataclass(frozen=True)
class ProblemInEuros(bt.Bernoulli):
    """A problem with an unknown kind of rewards."""

    rewards = "euros"


VALID = {"policy": bt.UCB1(noise=0.5), "problem": PROBLEM, "horizon": 100, "runs": 5}


WRONG = [
    ({"horizon": 0}, "whole number >= 1"),
    ({"horizon": 2}, "`horizon >= arms` must hold for ucb1"),
    ({"horizon": 10.5}, "whole number"),
    ({"horizon": 2**32}, "`horizon <= 2147483648`"),
    ({"horizon": math.nan}, "whole number"),
    ({"runs": 0}, "`runs`"),
    ({"runs": -3}, "`runs`"),
    ({"runs": True}, "`runs`"),
    ({"seed": -1}, "`seed`"),
    ({"workers": 0}, "`workers`"),
    ({"regret": "both"}, "'expected', 'realised'"),
    ({"common_random_numbers": 1}, "`common_random_numbers` must be True or False"),
    ({"checkpoints": []}, "increasing steps"),
    ({"checkpoints": [5, 3]}, "increasing steps"),
    ({"checkpoints": [101]}, "up to the horizon of 100"),
    ({"checkpoints": ["x"]}, "`checkpoints`"),
    ({"values": [-0.1]}, "`0 <= gamma <= 1e+06` must hold for ucb1, but got gamma=-0.1"),
    ({"values": [math.nan]}, "gamma=nan"),
    ({"values": [math.inf]}, "gamma=inf"),
    ({"values": [[0.1, 0.2]]}, "1 a row"),
    ({"values": []}, "must be numbers"),
    ({"values": "x"}, "must be numbers"),
    ({"values": {"delta": 1}}, "are gamma, but got delta"),
    ({"policy": bt.UCB1}, "make one"),
    ({"policy": "ucb1"}, "must be a policy"),
    ({"problem": "bernoulli"}, "must be a problem"),
    ({"problem": bt.Bernoulli}, "make one, e.g. Bernoulli(...)"),
    (
        {"problem": bt.problems.ProblemFile(PROBLEM, 100)},
        "a ProblemFile, which contains one; pass its fields: fitted.problem, horizon=fitted.horizon.",
    ),
    (
        {"problem": bt.make_logs("aa", "xy", [9, 9], [1, 2])},
        "past logs; fit a problem to them: fitted = fit(logs), then fitted.",
    ),
    ({"policy": bt.Thompson(prior=(1, 1)), "problem": bt.Gaussian()}, "needs rewards in [0, 1]"),
    ({"policy": bt.ExploreThenCommit(), "horizon": 5}, "raise the horizon"),
    (
        {"problem": ProblemInEuros(arms=3)},
        "`rewards` of 'bernoulli' must be one of 'real', 'unit', 'binary', but got 'euros'",
    ),
]


@pytest.mark.parametrize(("change", "message"), WRONG)
def test_wrong_arguments_are_refused(change, message):
    request = VALID | change
    with pytest.raises(bt.InvalidRequest) as error:
        bt.simulate(
            request.pop("policy"), request.pop("problem"), request.pop("values", None), **group_settings(**request)
        )
    assert message in str(error.value)
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: bt.Bernoulli(arms=1), "`arms` must be a whole number >= 2"),
        (lambda: bt.Bernoulli(arms=2.5), "whole number"),
        (lambda: bt.Bernoulli(arms=3, prior=(0, 1)), "`a > 0`"),
        (lambda: bt.Bernoulli(arms=3, prior=(1, 2, 3)), "a pair (a, b)"),
        (lambda: bt.Bernoulli(arms=3, prior=[(1, 2)] * 2), "3 such pairs"),
        (lambda: bt.Bernoulli(arms=3, prior=(1, math.inf)), "must hold for the prior"),
        (lambda: bt.Bernoulli(arms=3, names=["a", "b"]), "3 different names"),
        (lambda: bt.Mixture([(0.5, 1.2)]), "probabilities in [0, 1]"),
        (lambda: bt.Mixture([(0.5, math.nan)]), "probabilities in [0, 1]"),
        (lambda: bt.Mixture([(0.5,)]), "two arms or more"),
        (lambda: bt.Mixture([(0.5, 0.1), (0.2,)]), "equal length"),
        (lambda: bt.Mixture([(0.5, 0.1)], weights=[0]), "not all 0"),
        (lambda: bt.Mixture([(0.5, 0.1)], weights=[1, 1]), "1 numbers"),
        (lambda: bt.BetaRewards(v=0), "`v > 0`"),
        (lambda: bt.Gaussian(noise=-1), "`noise > 0`"),
        (lambda: bt.Gaussian(prior=(0, 0)), "`sd > 0`"),
        (lambda: bt.UCB1(noise=0), "`0 < noise"),
        (lambda: bt.UCB1(noise=math.nan), "finite number"),
        (lambda: bt.Thompson(prior=(0, 1)), "`a >= 0.1`"),
        (lambda: bt.Parameter("x", 0, 1, textbook=0.5, scale="Log"), "one of 'linear', 'log'"),
        (lambda: bt.Parameter("x", 0, 1, textbook=0.5, scale="log").resolve(2, 10), "`low > 0`"),
        (lambda: bt.Parameter("x", 0.2, 0.8, textbook=0.5, integer=True).resolve(2, 10), "must contain a whole number"),
        (lambda: bt.Parameter("x", 0, lambda arms: 1, textbook=0.5).resolve(2, 10), "`high` of the parameter 'x'"),
        (lambda: bt.Parameter("x", 0, 1, textbook=lambda *_: 1 / 0).resolve(2, 10), "ZeroDivisionError"),
        (lambda: bt.Bernoulli(arms=2, names="ab"), "2 different names"),
        (lambda: bt.Bernoulli(arms=2, names=5), "2 different names"),
        (lambda: bt.Bernoulli(arms=2, names=["", "b"]), "2 different names"),
        (lambda: bt.GaussianThompson(noise=1e-200), "must be > 0"),
        (lambda: bt.UCB1(noise=1e308), "`0 < noise < 1e100`"),
        (lambda: bt.define_policy("x", 3), "must be a function"),
        (lambda: bt.reports.format_text(3), "a result must be given"),
        (lambda: bt.Thompson(prior=3), "2 finite numbers"),
        (lambda: bt.GaussianThompson(noise=0), "must be > 0"),
        (lambda: bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=50, search=bt.Search(tuner=bt.NoTeS)), "must be a tuner"),
        (lambda: bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=50, budget=5), "`budget >= 12`"),
        (lambda: bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=50, search=bt.Search(validate=1)), "`validate`"),
        (
            lambda: bt.tune(bt.Greedy(), PROBLEM, horizon=50),
            "must have a parameter to be tuned, but greedy has none; compare() or",
        ),
        (lambda: bt.curve(TWO_PARAMETERS, PROBLEM, horizon=50), "two has 2 (a, b)"),
        (lambda: bt.curve(TWO_PARAMETERS, PROBLEM, horizon=50), "over one parameter"),
        (lambda: bt.compare([bt.UCB1(noise=0.5)], PROBLEM, horizon=50), "two policies or more"),
        (lambda: bt.compare([bt.UCB1(noise=0.5), bt.Greedy()], PROBLEM, horizon=50, budget=3), "`budget >= 12`"),
        (lambda: bt.simulate(REVERSED_RANGE, PROBLEM, horizon=50), "`low < high`"),
        (lambda: bt.simulate(TEXTBOOK_OFF_RANGE, PROBLEM, horizon=50), "the textbook value"),
    ],
)
def test_wrong_records_are_refused(make, message):
    with pytest.raises(bt.InvalidRequest) as error:
        make()
    assert message in str(error.value)


random_numbers = st.one_of(st.floats(), st.integers(-5, 10**18), st.text(max_size=3), st.none(), st.booleans())


random_values = st.one_of(
    random_numbers,
    st.lists(random_numbers, max_size=3),
    st.dictionaries(st.text(max_size=2), random_numbers, max_size=2),
)


def assert_accepted_or_refused_in_one_line(action):
    """An action returns a value, or is refused with one line."""
    try:
        assert action() is not None
    except bt.InvalidRequest as error:
        assert str(error)
        assert "\n" not in str(error)


@settings(max_examples=150, deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(["horizon", "runs", "seed", "regret", "common_random_numbers", "checkpoints", "workers"]),
        random_values,
        min_size=1,
    ),
    random_values,
)
def test_random_arguments_are_accepted_or_refused(change, values):
    request = {"horizon": 20, "runs": 3} | change
    # Large requests would be accepted, and take long.
    assume(
        not any(isinstance(request.get(name), int) and request[name] > 50 for name in ("horizon", "runs", "workers"))
    )
    assert_accepted_or_refused_in_one_line(
        lambda: bt.simulate(bt.UCB1(noise=0.5), PROBLEM, values, **group_settings(**request))
    )


@settings(max_examples=100, deadline=None)
@given(random_values, random_values, random_values)
def test_random_options_of_records_are_accepted_or_refused(first, second, third):
    assume(not (isinstance(first, int) and first > 10_000))
    for make in (
        lambda: bt.Bernoulli(arms=first, prior=second, names=third if isinstance(third, list) else ()),
        lambda: bt.Mixture(first, weights=second),
        lambda: bt.BetaRewards(v=first, prior=second),
        lambda: bt.Gaussian(noise=first, prior=second),
        lambda: bt.UCB1(noise=first),
        lambda: bt.Thompson(prior=first),
        lambda: bt.GaussianThompson(prior=first, noise=second),
        lambda: bt.NoTeS(precision=first),
    ):
        assert_accepted_or_refused_in_one_line(make)


def test_the_kind_of_regret_is_checked_for_every_problem():
    table = bt.RewardTable(np.random.default_rng(0).random((50, 2)), shuffled=False)
    with pytest.raises(bt.InvalidRequest, match="`regret` must be"):
        bt.simulate(bt.UCB1(noise=0.5), table, horizon=20, runs=3, simulation=bt.Simulation(regret="bogus"))


CALLS_WITH_WHOLE_NUMBERS = [
    lambda number: bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=number, runs=number).shape[1],
    lambda number: (
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=number, budget=number, search=bt.Search(validate=number)).budget
    ),
    lambda number: bt.Bernoulli(arms=number).arms,
    lambda number: bt.Linear(arms=5, dims=number).dims,
    lambda number: bt.Linear(arms=number, features=np.eye(20)).arms,
    lambda number: bt.define_problem("n", PROBLEM.sample, PROBLEM.reward, arms=number).arms,
    lambda number: bt.fit(bt.make_logs([0, 0, 1, 1], [0, 1, 0, 1], [9] * 4, [3, 4, 5, 2]), horizon=number).horizon,
    lambda number: bt.exact.compute_optimum(bt.Bernoulli(arms=2), horizon=number).setup.horizon,
    lambda number: bt.deploy(bt.UCB1(noise=0.5), 0.5, horizon=number, arms=2).state.horizon,
    lambda number: len(bt.deploy(bt.Thompson(prior=(1, 1)), 0.5, horizon=50, arms=2).select_arms(number)),
    lambda number: bt.executors.ThreadExecutor(number).workers,
]


@pytest.mark.parametrize("index", range(len(CALLS_WITH_WHOLE_NUMBERS)))
def test_whole_numbers_may_be_floats_everywhere(index):
    for number in (2e1, np.float32(20), np.int16(20)):
        value = CALLS_WITH_WHOLE_NUMBERS[index](number)
        assert (value, type(value)) == (20, int)
    for number in (20.5, True, math.inf, "20"):
        with pytest.raises(bt.InvalidRequest):
            CALLS_WITH_WHOLE_NUMBERS[index](number)
