"""The loop: plain Python equals compiled, the same numbers however the work is cut, faults named."""

from __future__ import annotations

import dataclasses
import dis
import math
import re
from types import SimpleNamespace

import numba
import numpy as np
import pytest

import banditune as bt
from banditune.core.dataflow import loads_variable
from banditune.core.problem import depends_on_step
from banditune.policies.custom_policy import CustomPolicy
from banditune.problems.problem_registry import PROBLEMS
from banditune.registry import collect_policies
from banditune.simulation import chunks, instances, kernel_selection, loop, memory
from banditune.simulation.bind import bind_function
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.kernel_selection import select_kernel, select_shortcut
from banditune.simulation.scratch_arrays import fill_choose_slots
from banditune.simulation.spec import SimulationSpec
from banditune.study import environment_check
from banditune.study.requests import build_spec
from helpers.settings import group_settings

SMALL = {
    "bernoulli": lambda: bt.Bernoulli(arms=4, prior=(2, 5)),
    "beta": lambda: bt.BetaRewards(arms=4, v=3),
    "campaigns": lambda: bt.Campaigns([[(2, 5), (3, 3), (1, 9)], [(20, 5), (3, 30), (1, 1)]]),
    "gaussian": lambda: bt.Gaussian(arms=4, prior=(1, 2), noise=0.7),
    "linear": lambda: bt.Linear(arms=5, dims=3, noise=0.4),
    "logistic": lambda: bt.Logistic(arms=5, dims=3),
    "mixture": lambda: bt.Mixture([(0.1, 0.5, 0.4), (1.0, 0.0, 0.9)], weights=(1, 2)),
    "reward-table": lambda: bt.RewardTable(np.random.default_rng(0).random((5, 300, 4))),
    "warm-up": bt.problems.two_point_mixture,
}


def test_every_problem_on_the_shelf_is_tried():
    assert set(SMALL) == set(PROBLEMS)


POLICIES = collect_policies()


def let_in(policy: str, problem: str) -> bool:
    """Whether the door lets a policy play a problem."""
    try:
        build_spec(POLICIES[policy](), SMALL[problem](), horizon=200)
    except bt.InvalidRequest:
        return False
    return True


PAIRS = [(policy, problem) for policy in POLICIES for problem in SMALL if let_in(policy, problem)]


def test_the_door_lets_in_what_it_should():
    refused = {policy: [problem for problem in SMALL if (policy, problem) not in PAIRS] for policy in POLICIES}
    featureless = ["bernoulli", "beta", "campaigns", "gaussian", "mixture", "reward-table", "warm-up"]
    expected = {policy: [] for policy in POLICIES} | {
        "ts": ["gaussian", "linear"],
        "gittins": ["beta", "gaussian", "linear", "reward-table"],
        # Of a mixture both are the same policy, made for it.
        **{
            optimal: ["bernoulli", "beta", "campaigns", "gaussian", "linear", "logistic", "reward-table"]
            for optimal in ("optimal", "optimal-mixture")
        },
    }
    for policy, made in POLICIES.items():
        if made.needs_features:
            expected[policy] = sorted([*featureless, *(["linear"] if made.rewards == "unit" else [])])
    assert refused == expected


def params_for(spec: SimulationSpec) -> np.ndarray:
    """Theory's value and two others."""
    found = [p.resolve(spec.problem.arms, spec.horizon) for p in spec.policy.parameters]
    if not found:
        return np.array([[0.0]])
    return np.array([[found[0].textbook], [found[0].scale_from_unit(0.15)], [found[0].scale_from_unit(0.0)]])


def plain_python(spec: SimulationSpec, params: np.ndarray, runs: int) -> np.ndarray:
    """The kernel as plain Python, never compiled."""
    policy, problem = spec.policy, spec.problem
    slots = {name: getattr(policy, name) for name in ("view", "start", "choose", "update")}
    slots |= {"reward": problem.reward, "play": loop.play_steps} | kernel_selection.fill_dims_slots(policy, problem)
    slots |= fill_choose_slots(policy)
    kernel, _ = bind_function(loop.play_block, slots)
    arms = problem.arms
    at = np.array(spec.checkpoints or (spec.horizon,), np.int64)
    out = np.empty((len(params), runs, len(at)))
    kernel(
        *instances.slice_instances(instances.draw_instances(problem, spec.seed, 0), slice(runs)),
        spec.seed,
        0,
        np.array(problem.options()),
        params,
        np.array(policy.options(arms, problem.dims, spec.horizon)),
        spec.horizon,
        int(not spec.common_random_numbers),
        at,
        spec.regret == "realised",
        np.zeros(policy.memory(arms, problem.dims, spec.horizon)),
        np.zeros(0, np.int64),
        np.zeros(arms, np.int64),
        np.zeros(arms),
        np.zeros((3, 4), np.int64),
        out,
        np.zeros(5),
        np.zeros(1, np.int64),
    )
    return out


ALIKE = ("ucb-glm", "glm-greedy", "glm-epsilon-greedy", "lin-greedy", "lin-epsilon-greedy", "lints")
"""Policies on the estimates of another one, which is tried."""


def in_turn():
    """One problem for every policy, such that every problem comes up, without a mark; the rest marked as slow."""
    tried = dict.fromkeys(SMALL, 0)
    choices = {policy: [problem for known, problem in PAIRS if known == policy] for policy in POLICIES}
    # Those that can play few problems choose first.
    for policy, problems in sorted(choices.items(), key=lambda choice: len(choice[1])):
        rarest = None if policy in ALIKE else min(problems, key=lambda problem: tried[problem])
        for problem in problems:
            usual = problem == rarest
            tried[problem] += usual
            yield pytest.param(policy, problem, marks=[] if usual else pytest.mark.slow)


def test_every_problem_is_played_in_plain_python():
    assert {pair.values[1] for pair in in_turn() if not pair.marks} == set(SMALL)


@pytest.mark.parametrize(("policy", "problem"), list(in_turn()))
def test_plain_python_equals_compiled_to_the_last_bit(policy, problem):
    options = {"seed": 3, "regret": "realised", "checkpoints": (17, 200), "shortcuts": False}
    spec = build_spec(POLICIES[policy](), SMALL[problem](), **group_settings(horizon=200, **options))
    params = params_for(spec)
    assert (plain_python(spec, params, 3) == simulate_rows(spec, params, range(3))).all()
    expected = dataclasses.replace(spec, regret="expected", common_random_numbers=False)
    assert (plain_python(expected, params, 2) == simulate_rows(expected, params, range(2))).all()


def test_disabling_the_compiler_runs_the_same_file_with_the_same_numbers(run_python):
    code = """
import banditune as bt
realised = bt.Simulation(regret="realised")
for policy in (bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))):
    print(bt.simulate(policy, bt.Bernoulli(arms=3), [0.3, 1], horizon=60, runs=3, simulation=realised).tolist())
"""
    plain, compiled = run_python(code, NUMBA_DISABLE_JIT="1"), run_python(code)
    assert plain.returncode == 0, plain.stderr
    assert plain.stderr == ""
    assert plain.stdout == compiled.stdout


@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1)), bt.EpsilonGreedy()])
def test_threads_and_chunks_do_not_change_a_bit(policy, monkeypatch):
    spec = SimulationSpec(policy, bt.Bernoulli(arms=5), 300, seed=9, regret="realised", common_random_numbers=False)
    params = np.array([[0.1], [1.0]])
    whole = simulate_rows(spec, params, range(700), workers=1)
    assert (whole == simulate_rows(spec, params, range(700), workers=5)).all()
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 7000)
    assert (whole == simulate_rows(spec, params, range(700), workers=2)).all()
    pieces = [
        simulate_rows(spec, params, range(first, last)) for first, last in ((0, 1), (1, 255), (255, 513), (513, 700))
    ]
    assert (whole == np.concatenate(pieces, axis=1)).all()


def test_shared_noise_does_not_depend_on_the_other_values():
    one = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.5], horizon=100, runs=50)
    two = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.1, 0.5], horizon=100, runs=50)
    assert (one[0] == two[1]).all()


def test_own_noise_is_independent_given_the_instance():
    problem = bt.Mixture([(0.5, 0.5 - 1e-9)])
    shared = bt.simulate(
        bt.UCB1(noise=0.5), problem, [1.0, 1.0], horizon=100, runs=2000, simulation=bt.Simulation(regret="realised")
    )
    own = bt.simulate(
        bt.UCB1(noise=0.5),
        problem,
        [1.0, 1.0],
        horizon=100,
        runs=2000,
        simulation=bt.Simulation(regret="realised", common_random_numbers=False),
    )
    assert (shared[0] == shared[1]).all()
    assert abs(np.corrcoef(own)[0, 1]) < 4 / math.sqrt(2000)
    assert (own[0] != shared[0]).any()


def test_seeds_differ_and_repeat():
    first, again, other = (
        bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=50, runs=20, seed=seed) for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


@pytest.mark.parametrize("shortcut", [True, False])
@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1)), bt.EpsilonGreedy()])
def test_realised_and_expected_regret_have_the_same_mean(policy, shortcut):
    problem = bt.Bernoulli(arms=3)
    arguments = {"horizon": 200, "runs": 20_000, "shortcut": shortcut, "seed": 4}
    expected = bt.simulate(policy, problem, [0.4], **group_settings(regret="expected", **arguments))
    realised = bt.simulate(policy, problem, [0.4], **group_settings(regret="realised", **arguments))
    difference = (expected - realised)[0]
    assert abs(difference.mean()) < 4 * difference.std() / math.sqrt(len(difference))
    assert realised.std() > expected.std()


@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.EpsilonGreedy(), bt.ExploreThenCommit()])
def test_regret_at_a_step_is_that_of_a_run_watched_there(policy):
    at = [3, 10, 64, 65, 400]
    for regret in ("expected", "realised"):
        watched = bt.simulate(
            policy, bt.Bernoulli(arms=3), horizon=400, runs=40, checkpoints=at, simulation=bt.Simulation(regret=regret)
        )
        assert watched.shape == (1, 40, 5)
        for place, step in enumerate(at):
            regrets = bt.simulate(
                policy,
                bt.Bernoulli(arms=3),
                horizon=400,
                runs=40,
                checkpoints=[step],
                simulation=bt.Simulation(regret=regret),
            )
            assert (watched[:, :, place] == regrets[:, :, 0]).all()
        assert (
            watched[:, :, -1]
            == bt.simulate(policy, bt.Bernoulli(arms=3), horizon=400, runs=40, simulation=bt.Simulation(regret=regret))
        ).all()


def test_regret_of_two_arms_can_be_counted_by_hand():
    """Greedy on means 1 and 0 pulls each arm once and then arm 0: one step lost."""
    regret = bt.simulate(bt.Greedy(), bt.Mixture([(1.0, 0.0)]), horizon=10, runs=5, checkpoints=[1, 2, 10])
    assert (regret == [0.0, 1.0, 1.0]).all()


def test_shortcuts_are_chosen_where_they_apply_and_only_there():
    assert select_shortcut(bt.UCB1(noise=0.5), bt.Bernoulli()).name == "level"
    assert select_shortcut(bt.UCB1(noise=0.5), bt.BetaRewards()).name == "stay"
    assert select_shortcut(bt.Thompson(prior=(1, 1)), bt.BetaRewards()).name == "lazy"
    # The proof holds where posteriors have shapes of at least 1: prior / gamma^2.
    half = bt.Thompson(prior=(0.5, 1))
    lazy = select_shortcut(half, bt.Bernoulli())
    assert [lazy.is_valid(half.options(10, 0, 99), np.array([gamma])) for gamma in (0.7, 0.71)] == [True, False]
    assert select_shortcut(bt.EpsilonGreedy(), bt.Bernoulli()) is None


@bt.kernel.scalar
def eleventh_arm(state, setting, step, params, stream):
    return setting.arms if step == 7 else 0


@bt.kernel.scalar
def not_an_arm(state, setting, step, params, stream):
    return math.log(state.pulls[0] + 1.0) * math.inf if step == 3 else 0.0


@bt.kernel.scalar
def half_an_arm(state, setting, step, params, stream):
    return 0.5


@bt.kernel.scalar
def below_zero(state, setting, step, params, stream):
    return -1


@pytest.mark.parametrize(
    ("choose", "culprit", "step"),
    [(eleventh_arm, "10", 7), (not_an_arm, "inf", 3), (half_an_arm, "0.5", 0), (below_zero, "-1", 0)],
)
def test_a_bad_arm_is_named_with_the_run_and_step(choose, culprit, step):
    policy = bt.define_policy("broken", choose)
    with pytest.raises(bt.SimulationError) as error:
        bt.simulate(policy, bt.Bernoulli(arms=10), horizon=20, runs=300, seed=5)
    message = str(error.value)
    assert "from 0 to 9" in message
    assert f"'broken' chose {culprit} at step {step} of run 0" in message
    assert "seed=5" in message


@bt.kernel.scalar
def pays_its_mean(instance, arm, pull, step, stream):
    return instance.means[arm]


@bt.kernel.scalar
def strange_reward(instance, arm, pull, step, stream):
    return instance.options[0] if pull == 2 else 1.0


@pytest.mark.parametrize("shortcut", [True, False])
@pytest.mark.parametrize("paid", [math.nan, math.inf])
@pytest.mark.parametrize(
    "policy", [bt.UCB1(noise=0.5), pytest.param(bt.Thompson(prior=(1, 1)), marks=pytest.mark.slow), bt.Greedy()]
)
def test_a_reward_that_is_not_a_number_is_named(policy, paid, shortcut):
    problem = bt.define_problem(
        "strange", lambda size, rng: rng.random((size, 3)), strange_reward, arms=3, rewards="unit", options=[paid]
    )
    with pytest.raises(bt.SimulationError, match=r"'strange' paid another for arm . at step . of run 0"):
        simulate_rows(SimulationSpec(policy, problem, 20, use_shortcut=shortcut), [[1.0]], range(5))


@bt.kernel.scalar
def sometimes_strange(instance, arm, pull, step, stream):
    return math.nan if pull >= 2 and bt.kernel.uniform(stream) < 0.2 else 1.0


@pytest.mark.parametrize("common", [True, False])
def test_a_reward_that_is_not_a_number_is_named_with_its_step_whatever_the_noise(common):
    """The plain loop, which plays the run again to find the step, must draw the noise of the same row."""
    problem = bt.define_problem(
        "at times", lambda size, rng: rng.random((size, 3)), sometimes_strange, arms=3, rewards="unit"
    )
    told = []
    for shortcut in (True, False):
        spec = SimulationSpec(
            bt.UCB1(noise=0.5), problem, 15, seed=10, common_random_numbers=common, use_shortcut=shortcut
        )
        with pytest.raises(
            bt.SimulationError, match=r"'at times' paid another for arm . at step \d+ of run 0"
        ) as error:
            simulate_rows(spec, [[0.4]], range(1), first_row=5)
        told.append(str(error.value))
    assert told[0] == told[1]


@bt.kernel.scalar
def reward_of_a_bad_best_arm(instance, arm, pull, step, stream):
    return math.inf if arm == 0 and pull == 5 else 1.0 - 0.1 * arm


@bt.kernel.scalar
def never_the_best(state, setting, step, params, stream):
    return 1


@pytest.mark.parametrize("policy", [bt.define_policy("second", never_the_best), bt.UCB1(noise=100)])
def test_a_reward_that_was_not_seen_is_checked_too(policy):
    """Realised regret draws what the best arm would have paid."""
    problem = bt.define_problem(
        "hidden", lambda size, rng: np.tile([0.9, 0.1], (size, 1)), reward_of_a_bad_best_arm, arms=2
    )
    for shortcut in (True, False):
        with pytest.raises(bt.SimulationError, match="'hidden' paid another for arm 0 at step"):
            simulate_rows(
                SimulationSpec(policy, problem, 12, regret="realised", use_shortcut=shortcut), [[1.0]], range(3)
            )


@dataclasses.dataclass(frozen=True)
class Hollow(bt.kernel.Policy):
    name = "hollow"


def test_what_a_policy_lacks_is_named():
    with pytest.raises(bt.InvalidRequest, match="'hollow' must define view, start, choose, update"):
        bt.simulate(Hollow(), bt.Bernoulli(arms=3), horizon=12, runs=3)
    with pytest.raises(bt.InvalidRequest, match="Hollow must define `memory"):
        Hollow().memory(3, 0, 100)


@bt.kernel.scalar
def changing_reward(instance, arm, pull, step, stream):
    return 1.0 if (step < 50) == (arm == 0) else 0.0


def test_rewards_that_depend_on_the_step_are_played_step_by_step():
    problem = bt.define_problem(
        "changing", lambda size, rng: rng.random((size, 2)), changing_reward, arms=2, rewards="unit"
    )
    for policy in (bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))):
        assert select_shortcut(policy, problem) is None
        assert select_shortcut(
            policy, bt.define_problem("n", lambda size, rng: 0, strange_reward, arms=2, rewards="unit")
        )


class Changing(bt.Bernoulli):
    reward = staticmethod(changing_reward)


def test_a_subclass_whose_rewards_depend_on_the_step_is_played_step_by_step():
    """Arm 0 pays until step 50, arm 1 from then on, whatever their means."""
    assert bt.Bernoulli().has_step_free_rewards
    assert not Changing(arms=2).has_step_free_rewards
    assert select_shortcut(bt.UCB1(noise=0.5), Changing(arms=2)) is None
    table = bt.RewardTable(np.repeat([[1.0, 0.0], [0.0, 1.0]], 50, axis=0), shuffled=False)
    found, known = (
        bt.simulate(
            bt.UCB1(noise=0.5), problem, [0.1, 1.0], horizon=100, runs=2, simulation=bt.Simulation(regret="realised")
        )
        for problem in (Changing(arms=2), table)
    )
    assert not table.has_step_free_rewards
    assert (found == known).all()


@pytest.mark.parametrize("opname", ["LOAD_FAST", "LOAD_FAST_LOAD_FAST", "LOAD_FAST_BORROW_LOAD_FAST_BORROW"])
@pytest.mark.parametrize("name", ["step", "pull"])
def test_the_step_is_seen_where_one_instruction_loads_two_names(monkeypatch, opname, name):
    """Python 3.13 and later join two loads; the older ones, with which this may run, do not."""
    argval = name if opname == "LOAD_FAST" else (name, "stream")
    monkeypatch.setattr(dis, "get_instructions", lambda code: [SimpleNamespace(opname=opname, argval=argval)])
    assert loads_variable.__wrapped__(changing_reward.__code__, "step") == (name == "step")


@pytest.mark.parametrize(
    ("reward", "reads"),
    [
        (lambda instance, arm, pull, step, stream: pull + step, True),
        (lambda instance, arm, pull, step, stream: math.pow(step, stream), True),
        (lambda instance, arm, pull, step, stream: pull + arm, False),
        (lambda instance, arm, pull, time, stream: math.sin(time), True),
        (lambda instance, arm, pull, time, step: step, False),
        (lambda *told: told[0], True),
        (math.sin, True),
    ],
)
def test_whether_a_reward_looks_at_its_fourth_argument_is_seen_in_its_code(reward, reads):
    assert depends_on_step(reward) == reads


class AlwaysSecond(bt.UCB1):
    choose = staticmethod(bt.kernel.scalar(lambda state, setting, step, params, stream: 1))


class AlwaysOne(bt.Bernoulli):
    reward = staticmethod(bt.kernel.scalar(lambda instance, arm, pull, step, stream: 1.0))


def test_a_subclass_with_another_function_is_not_played_by_the_shortcut_of_its_parent():
    assert select_shortcut(AlwaysSecond(), bt.Bernoulli()) is None
    assert (bt.simulate(AlwaysSecond(), bt.Mixture([(1.0, 0.0)]), horizon=10, runs=2) == 10).all()
    assert AlwaysOne().bit_packed_reward is None
    assert select_shortcut(bt.UCB1(noise=0.5), AlwaysOne()).name == "stay"


@bt.kernel.scalar
def writes_params(state, setting, step, params, stream):
    params[0] = 1.0
    return 0


def test_what_a_policy_is_told_it_cannot_change():
    with pytest.raises(bt.SimulationError, match="cannot be compiled"):
        bt.simulate(bt.define_policy("writer", writes_params), bt.Bernoulli(arms=3), horizon=20, runs=5)


@dataclasses.dataclass(frozen=True)
class Cramped(bt.Greedy):
    def memory(self, arms, dims, horizon):
        return arms


@bt.kernel.scalar
def first_arm(state, setting, step, params, stream):
    return 0


class CrampedOwn(Cramped):
    choose = staticmethod(first_arm)


def test_helpers_are_checked_too_in_a_users_policy():
    with pytest.raises(bt.SimulationError, match="outside its memory"):
        bt.simulate(CrampedOwn(), bt.Bernoulli(arms=3), horizon=20, runs=5)


@bt.kernel.scalar
def falls_off(state, setting, step, params, stream):
    return 0 if step < 5 else None


def test_a_policy_that_returns_nothing_is_named():
    with pytest.raises(bt.SimulationError, match="must return an arm on every path"):
        bt.simulate(CustomPolicy("silent", falls_off), bt.Bernoulli(arms=3), horizon=20, runs=5)


def test_a_sample_that_fails_is_named():
    problem = bt.define_problem("failing", lambda size, rng: 1 / 0, pays_its_mean, arms=3)
    with pytest.raises(bt.SimulationError, match="'failing' failed: ZeroDivisionError"):
        bt.simulate(bt.Greedy(), problem, horizon=20, runs=5)


def test_a_fault_can_be_repeated_from_what_it_says():
    @bt.kernel.scalar
    def breaks_later(state, setting, step, params, stream):
        return 9 if bt.kernel.uniform(stream) < 0.001 else 0

    policy = bt.define_policy("late", breaks_later)
    with pytest.raises(bt.SimulationError) as error:
        bt.simulate(policy, bt.Bernoulli(arms=3), horizon=20, runs=500)
    run, step = (
        re.search(r"first_instance=(\d+)", str(error.value)).group(1),
        re.search(r"at step (\d+)", str(error.value)).group(1),
    )
    with pytest.raises(bt.SimulationError, match=f"at step {step} of run {run} "):
        bt.simulate(policy, bt.Bernoulli(arms=3), horizon=20, runs=1, first_instance=int(run))


def test_more_memory_than_there_is_is_refused_in_a_sentence():
    with pytest.raises(bt.InvalidRequest, match="regrets must fit into memory"):
        bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=20, runs=2**40 - 1)


def test_first_names_the_first_run():
    whole = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.3], horizon=50, runs=600)
    assert (
        whole[:, 300:310]
        == bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.3], horizon=50, runs=10, first_instance=300)
    ).all()


@bt.kernel.scalar
def reaches_out(state, setting, step, params, stream):
    state.total[setting.arms] = 1.0
    return 0


def test_a_policy_that_writes_outside_its_memory_is_stopped():
    with pytest.raises(bt.SimulationError, match="outside its memory"):
        bt.simulate(bt.define_policy("wild", reaches_out), bt.Bernoulli(arms=3), horizon=20, runs=5)


@bt.kernel.scalar
def uses_a_list(state, setting, step, params, stream):
    return [state].index(step)  # a line to be named


def test_code_that_cannot_be_compiled_is_one_sentence_with_the_policy():
    with pytest.raises(
        bt.SimulationError,
        match=r"'listy' on the problem 'bernoulli' cannot be compiled: .* in test_simulation.py, line",
    ):
        bt.simulate(bt.define_policy("listy", uses_a_list), bt.Bernoulli(arms=3), horizon=20, runs=5)


@bt.kernel.scalar
def forgets(state, setting, step, params, stream):
    state.pulls[0] += 1


@bt.kernel.scalar
def takes_four(state, setting, step, params):
    return 0


@bt.kernel.scalar
def returns_at_last(state, setting, step, params, stream):
    while True:
        if bt.kernel.uniform(stream) < 0.5:
            return 1


@bt.kernel.scalar
def from_numpy(state, setting, step, params, stream):
    return np.random.randint(2)


def test_a_policy_that_forgets_its_arm_or_takes_something_else_is_refused_when_it_is_made():
    for silent in (forgets, falls_off):
        with pytest.raises(bt.InvalidRequest, match=r"must return an arm on every path, .* may end without"):
            bt.define_policy("mine", silent)
    with pytest.raises(
        bt.InvalidRequest, match=r"`choose` must take \(state, .*, stream\), but 'takes_four' takes \(state,"
    ):
        bt.kernel.define_ridge_policy("mine", takes_four)
    with pytest.raises(bt.InvalidRequest, match=r"`reward` must take \(instance, .*, stream\), but 'takes_four' takes"):
        bt.define_problem("mine", lambda size, rng: rng.random((size, 2)), takes_four, arms=2)
    assert bt.define_policy("mine", returns_at_last).choose is returns_at_last


def test_a_policy_that_draws_from_elsewhere_is_refused():
    with pytest.raises(bt.InvalidRequest, match=r"must come from `stream`, .* but 'from_numpy' uses `np.random`"):
        bt.simulate(bt.define_policy("mine", from_numpy), bt.Bernoulli(arms=2), horizon=5, runs=2)


def test_memory_that_nobody_tells_is_no_limit(monkeypatch):
    options = {"SC_PAGE_SIZE": 4096, "SC_AVPHYS_PAGES": 10, "SC_PHYS_PAGES": 100}

    def told(name):
        if name not in options:
            raise ValueError("unrecognized configuration name")
        return options[name]

    monkeypatch.setattr(memory, "_read_lines", lambda path: [])
    monkeypatch.setattr(memory.os, "sysconf", told)
    assert memory.measure_free_memory() == 40960
    del options["SC_AVPHYS_PAGES"]
    assert memory.measure_free_memory() == 409600
    del options["SC_PHYS_PAGES"]
    assert memory.measure_free_memory() == float("inf")
    assert environment_check.check_cores_and_memory()["found"].endswith("free memory unknown")


def test_a_problem_with_wrong_means_is_named():
    never = bt.define_problem("never", lambda size, rng: rng.random((size, 2)) * np.nan, pays_its_mean, arms=2)
    with pytest.raises(bt.SimulationError, match="but for size=256 it returned some that are not finite"):
        bt.simulate(bt.UCB1(noise=0.5), never, horizon=5, runs=2)
    problem = bt.define_problem("thin", lambda size, rng: rng.random((size, 2)), pays_its_mean, arms=3)
    with pytest.raises(bt.SimulationError, match=r"'thin' must return finite means of shape \(size, 3\)"):
        bt.simulate(bt.Greedy(), problem, horizon=20, runs=5)


def test_a_million_runs_need_little_memory(run_python):
    code = """
import banditune as bt
problem = bt.problems.two_point_mixture()
assert len(bt.simulate(bt.UCB1(noise=0.5), problem, [0.3], horizon=200, runs=1_000_000)[0]) == 1_000_000
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    process = run_python(code)
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) < 500 * 1024


def test_the_kernel_is_bound_once_in_a_process():
    spec = SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 10)
    assert select_kernel(spec)[0] is select_kernel(dataclasses.replace(spec, policy=bt.UCB1(noise=2.0), horizon=20))[0]


def test_a_users_compiled_function_is_checked_too():
    def far(instance, arm, pull, step, stream):
        return instance.means[arm + 1000]

    problem = bt.define_problem("far", lambda size, rng: rng.random((size, 2)), numba.njit(far), arms=2)
    with pytest.raises(bt.SimulationError, match="reached outside its memory"):
        bt.simulate(bt.Greedy(), problem, horizon=5, runs=1)


def pays_five(instance, arm, pull, step, stream):
    return 5.0


@pytest.mark.parametrize(("rewards", "message"), [("unit", "in .0, 1."), ("binary", "0 or 1")])
def test_rewards_that_are_not_what_the_problem_says_are_named(rewards, message):
    problem = bt.define_problem("five", lambda size, rng: rng.random((size, 3)), pays_five, arms=3, rewards=rewards)
    with pytest.raises(bt.SimulationError, match=f"rewards of 'five' must be {message}, .* but arm 0 of run 0 pays 5"):
        bt.simulate(bt.UCB1(noise=0.5), problem, [0.3], horizon=5, runs=2)
