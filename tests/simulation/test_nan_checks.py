"""A comparison with NaN is an error with its run and step."""

from __future__ import annotations

import linecache
import math

import numpy as np
import pytest

import banditune as bt
from banditune.policies.custom_policy import CustomPolicy
from banditune.simulation import bind, loop
from banditune.simulation.estimators.arm_totals import update_totals
from banditune.simulation.kernel_selection import fill_slots
from banditune.simulation.nan_checks import CHECKED_CODE_ATTRIBUTE, add_nan_checks
from banditune.simulation.spec import SimulationSpec
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)

NAN_SCRIPT = '''
import math

import banditune as bt


@bt.kernel.scalar
def index(state, step, arm):
    """inf - inf from step 50 on."""
    wide = math.inf if step >= 50 and arm == 1 else 0.0
    return state.total[arm] / state.pulls[arm] + (wide - wide)


@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    if step < setting.arms:
        return step
    best = 0
    highest = -1e308
    for arm in range(setting.arms):
        value = index(state, step, arm)
        if value > highest:
            best = arm
            highest = value
    return best


policy = bt.define_policy("mine", choose, parameters=bt.Parameter("x", 0, 1, textbook=0.5))
job = policy, bt.Bernoulli(arms=3), [0.25, 0.75]
'''

PLAIN_SCRIPT = (
    NAN_SCRIPT
    + '''
try:
    bt.simulate(*job, horizon=100, runs=3, seed=4)
except bt.SimulationError as error:
    print(error)


@bt.kernel.scalar
def choose_by_array(state, setting, step, params, stream):
    """Whole arrays are compared, as only plain Python can."""
    return int((state.pulls < step % 3).sum()) % 3


assert (bt.simulate(bt.define_policy("arrays", choose_by_array), job[1], horizon=10, runs=2) >= 0).all()
'''
)

MESSAGE = (
    r"`choose` of the policy 'mine' must not compare NaN .* at step 50 of run 0 with parameters \[0\.25\] "
    r"\(seed=4, horizon=100; simulate\(\.\.\., first_instance=0, runs=1\) repeats it\); .* test for `math.isnan` first"
)


def make_policy(choose, **functions):
    kind = type("Own", (CustomPolicy,), {name: staticmethod(function) for name, function in functions.items()})
    return kind("mine", choose, (bt.Parameter("x", 0, 1, textbook=0.5),))


def simulate(policy, problem=PROBLEM, **options):
    return bt.simulate(policy, problem, [0.25], **group_settings(**{"horizon": 100, "runs": 3, "seed": 4, **options}))


@bt.kernel.scalar
def choose_with_nan(state, setting, step, params, stream):
    best = 0
    for arm in range(setting.arms):
        if state.pulls[arm] == 0.0:
            return arm
        if (state.total[arm] + math.log(50.5 - step)) / state.pulls[arm] > state.total[best] / state.pulls[best]:
            best = arm
    return best


def test_an_index_that_is_nan_is_an_error_with_its_step(tmp_path):
    (tmp_path / "mine.py").write_text(NAN_SCRIPT)
    scope: dict = {"__name__": "mine"}
    exec(compile(NAN_SCRIPT, str(tmp_path / "mine.py"), "exec"), scope)
    with pytest.raises(bt.SimulationError, match=MESSAGE):
        bt.simulate(*scope["job"], horizon=100, runs=3, seed=4)
    assert np.isfinite(bt.simulate(*scope["job"], horizon=50, runs=3, seed=4)).all()


def test_plain_python_has_the_same_error(run_python):
    process = run_python(PLAIN_SCRIPT, NUMBA_DISABLE_JIT="1")
    assert process.returncode == 0, process.stderr
    with pytest.raises(bt.SimulationError, match=MESSAGE):
        raise bt.SimulationError(process.stdout)


def test_the_first_run_and_step_are_named_for_any_number_of_threads():
    """The logarithm of a negative number, in runs 300 and more as well."""
    for workers, first in ((1, 0), (2, 0), (1, 300)):
        with pytest.raises(bt.SimulationError, match=rf"at step 51 of run {first} with parameters \[0\.25\]") as error:
            bt.simulate(
                make_policy(choose_with_nan),
                PROBLEM,
                [0.25, 0.5],
                horizon=60,
                runs=600,
                first_instance=first,
                run=bt.Run(workers=workers),
            )
        assert "'mine'" in str(error.value)


@bt.kernel.scalar
def update_with_nan(state, setting, step, params, arm, reward, stream):
    update_totals(state, setting, step, params, arm, reward, stream)
    if math.sqrt(20.5 - state.pulls.sum()) < 0.0:
        state.total[arm] = 0.0


@bt.kernel.scalar
def update_to_nan(state, setting, step, params, arm, reward, stream):
    """The first arm's total is 0 / 0 after its tenth pull."""
    update_totals(state, setting, step, params, arm, reward, stream)
    if state.pulls[arm] == 10.0:
        state.total[arm] = (state.pulls[arm] - 10.0) / (state.pulls[arm] - 10.0)


@bt.kernel.scalar
def choose_best_mean(state, setting, step, params, stream):
    return bt.kernel.argmax_mean(state)


@bt.kernel.scalar
def choose_largest(state, setting, step, params, stream):
    """`max` takes the first of the two where the other one is NaN."""
    highest = 0.0
    for _ in range(setting.arms):
        highest = max(highest, math.sqrt(30.5 - step))
    return int(highest) % 3


def test_nan_in_update_is_an_error_with_its_step():
    with pytest.raises(bt.SimulationError, match=r"`update` of the policy 'mine' .* at step 20 of run 0"):
        simulate(make_policy(choose_best_mean, update=update_with_nan))


@bt.kernel.scalar
def choose_int_of_nan(state, setting, step, params, stream):
    return int(math.nan if step == 30 else step) % setting.arms


def test_the_whole_number_of_nan_is_no_arm():
    """In compiled code it would be any number, mostly arm 0."""
    with pytest.raises(bt.SimulationError, match=r"`choose` .* or take its int\(\), .* at step 30 of run 0"):
        simulate(make_policy(choose_int_of_nan))


def test_helpers_of_the_package_and_max_are_checked():
    with pytest.raises(bt.SimulationError, match=r"`choose` of the policy 'mine' .* at step \d+ of run 0"):
        simulate(make_policy(choose_best_mean, update=update_to_nan), bt.Mixture([(0.9, 0.1, 0.1)]))
    with pytest.raises(bt.SimulationError, match=r"`choose` of the policy 'mine' .* at step 31 of run 0"):
        simulate(make_policy(choose_largest))


def test_an_inherited_choose_is_checked_with_a_users_update():
    class GreedyWithNan(bt.Greedy):
        update = staticmethod(update_to_nan)

    with pytest.raises(bt.SimulationError, match=r"`choose` of the policy 'greedy' .* at step \d+ of run 0"):
        simulate(GreedyWithNan(), bt.Mixture([(0.9, 0.1, 0.1)]))


@bt.kernel.scalar
def choose_with_isnan(state, setting, step, params, stream):
    """NaN is intended: it marks an arm without a pull."""
    best = 0
    highest = -math.inf
    for arm in range(setting.arms):
        value = state.total[arm] / state.pulls[arm]
        if math.isnan(value) or value != value:
            return arm
        if not value <= highest:
            best, highest = arm, value
    return best


def test_a_comparison_after_isnan_is_allowed():
    assert (
        simulate(make_policy(choose_with_isnan)) == bt.simulate(bt.Greedy(), PROBLEM, horizon=100, runs=3, seed=4)
    ).all()


def test_checks_change_no_regret(monkeypatch):
    @bt.kernel.scalar
    def choose(state, setting, step, params, stream):
        """Chains, infinities, whole numbers, pairs, and a function within."""

        def bonus(pulls):
            return math.sqrt(params[0] * math.log(step + 1.0) / pulls) if 0 < pulls <= 1e300 else math.inf

        best, highest, tries = 0, -math.inf, 0
        for arm in range(setting.arms):
            noise = bt.kernel.normal(stream) * 0.1
            value = max(0.0, state.total[arm] / max(state.pulls[arm], 1.0)) + bonus(state.pulls[arm]) + noise
            if (-math.inf < highest < value) or (value, arm) > (highest, best) or tries > 3 > arm:
                best, highest, tries = arm, value, tries + 1
        return best

    checked = simulate(make_policy(choose), runs=500)
    assert add_nan_checks(choose) is not None
    monkeypatch.setattr("banditune.simulation.nan_checks.add_nan_checks", lambda function: None)
    assert (checked == simulate(make_policy(choose), runs=500)).all()


def test_policies_of_the_package_are_compiled_without_checks(monkeypatch):
    def compute_digest():
        return bind.bind_function(
            loop.simulate_block, fill_slots(SimulationSpec(bt.Greedy(), PROBLEM, 10, use_shortcut=False))[0]
        )[1]

    before = compute_digest()
    monkeypatch.setattr(bind, "add_nan_checks", None)
    assert compute_digest() == before


def test_code_without_its_source_is_not_checked(tmp_path):
    path = tmp_path / "other.py"
    path.write_text(NAN_SCRIPT)
    scope: dict = {"__name__": "mine"}
    exec(compile(NAN_SCRIPT.replace("highest = -1e308", "highest = -2e308"), str(path), "exec"), scope)
    assert add_nan_checks(scope["choose"]) is None
    assert add_nan_checks(scope["index"]) is not None
    exec(NAN_SCRIPT, scope)
    assert add_nan_checks(scope["choose"]) is None


def test_checks_are_pickled_with_the_function(tmp_path):
    import cloudpickle

    path = tmp_path / "mine.py"
    path.write_text(NAN_SCRIPT)
    scope: dict = {"__name__": "mine"}
    exec(compile(NAN_SCRIPT, str(path), "exec"), scope)
    checked = add_nan_checks(scope["choose"])
    assert checked is not None
    pickled = cloudpickle.dumps(scope["choose"])
    path.unlink()
    linecache.clearcache()
    unpickled = cloudpickle.loads(pickled)
    assert getattr(unpickled, CHECKED_CODE_ATTRIBUTE)[0] == unpickled.__code__
    assert add_nan_checks(unpickled) == checked
