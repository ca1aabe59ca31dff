"""Regrets on a GPU agree with those on the CPU. These tests need a GPU: `make gpu`.

Threads of a GPU run the scalar source of the CPU on the same random numbers, and round products and sums as the CPU
does. Only functions such as `log` and `exp` may differ in the last bit, which rarely changes an arm. Warps compute in
another order, and samplers in warps draw other normals. So the law of their regrets is compared.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.core.arrays import copy_read_only
from banditune.exact import table_policies
from banditune.simulation import devices
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.gpu import gpu_memory, gpu_scheduler, launch_plan
from banditune.simulation.spec import SimulationSpec
from banditune.study.requests import build_spec
from helpers.policy_problem_pairs import PAIRS, POLICIES, list_values
from helpers.policy_problem_pairs import SMALL_PROBLEMS as PROBLEMS
from helpers.settings import group_settings
from helpers.statistics import mean_agrees

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def gpu():
    reason = devices.explain_missing_gpu()
    if reason:
        pytest.skip(f"no GPU can be used: {reason}")


RUNS = range(100, 400)
"""They begin in one block of instances and end in the next."""

MAX_DIFFERING_SHARE = 0.02
"""Runs that may differ because of a last bit."""

EXACT_POLICIES = {
    "epsilon-greedy",
    "explore-then-commit",
    "greedy",
    "lin-greedy",
    "lin-epsilon-greedy",
    *table_policies.TABLE_POLICIES,
}
"""Policies that need no function except the square root, which is rounded in the same way everywhere."""

SAMPLING_WARPS = {"lints", "glm-tsl"}
"""Policies whose warp versions draw normals at other addresses."""

MANY_ARMS = {"linear": bt.Linear(arms=40, dims=3), "logistic": bt.Logistic(arms=40, dims=3)}
"""Problems where a thread of a warp has several arms, and the last one has padding."""

FEATURE_PAIRS = [
    (policy, problem) for policy, problem in PAIRS if POLICIES[policy].needs_features and problem in MANY_ARMS
]
WARP_PAIRS = [(policy, problem) for policy, problem in FEATURE_PAIRS if POLICIES[policy].warp_version is not None]


def simulate_on_gpu(spec, values, runs, **options):
    return gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only(values), runs, **options)


def compute_differing_share(regrets, expected):
    """The share of runs that differ by more than rounding."""
    return (np.abs(regrets - expected) > 1e-9 * (1 + np.abs(expected))).any(axis=2).mean()


def assert_means_agree(regrets, expected):
    """Whether the means of every value and checkpoint agree to 4 standard errors of the differences."""
    difference = regrets - expected
    limit = 4 * difference.std(axis=1, ddof=1) / math.sqrt(difference.shape[1])
    return bool((np.abs(difference.mean(axis=1)) <= limit + 1e-9 * (1 + np.abs(expected.mean(axis=1)))).all())


def make_specs(policy, problem, horizon=300):
    """Realised regret with common random numbers, and expected regret with separate ones. One kernel simulates both."""
    spec = build_spec(
        policy,
        problem,
        horizon=horizon,
        seed=3,
        checkpoints=(1, 17, 100, horizon),
        simulation=bt.Simulation(regret="realised"),
    )
    return spec, replace(spec, regret="expected", common_random_numbers=False)


@pytest.mark.parametrize(("policy", "problem"), [pair for pair in PAIRS if pair not in WARP_PAIRS])
def test_regrets_of_threads_agree_with_the_cpu(policy, problem):
    exact = policy in EXACT_POLICIES and PROBLEMS[problem]().rewards == "binary"
    specs = make_specs(POLICIES[policy](), PROBLEMS[problem]())
    assert len(specs) == 2
    for spec in specs:
        values = list_values(spec)
        regrets, expected = simulate_on_gpu(spec, values, RUNS, dtype="float64"), simulate_rows(spec, values, RUNS)
        assert (
            (regrets == expected).all() if exact else compute_differing_share(regrets, expected) <= MAX_DIFFERING_SHARE
        )
        assert assert_means_agree(regrets, expected)


@pytest.mark.parametrize(("policy", "problem"), [pair for pair in FEATURE_PAIRS if pair not in WARP_PAIRS])
def test_regrets_of_threads_with_many_arms_agree_with_the_cpu(policy, problem):
    spec, _ = make_specs(POLICIES[policy](), MANY_ARMS[problem])
    values = list_values(spec)
    regrets, expected = simulate_on_gpu(spec, values, RUNS), simulate_rows(spec, values, RUNS)
    assert compute_differing_share(regrets, expected) <= MAX_DIFFERING_SHARE
    assert assert_means_agree(regrets, expected)


@pytest.mark.parametrize(
    ("policy", "problem"), [("ucb1", "bernoulli"), ("ucb1", "gaussian"), ("ts", "bernoulli"), *WARP_PAIRS]
)
def test_regrets_of_the_plain_loop_agree_with_the_cpu(policy, problem):
    spec = replace(make_specs(POLICIES[policy](), PROBLEMS[problem]())[0], use_shortcut=False)
    values = list_values(spec)
    regrets, expected = simulate_on_gpu(spec, values, RUNS), simulate_rows(spec, values, RUNS)
    assert compute_differing_share(regrets, expected) <= MAX_DIFFERING_SHARE
    assert assert_means_agree(regrets, expected)


@pytest.mark.parametrize("problem", ["few", "many"])
@pytest.mark.parametrize(("policy", "kind"), [pair for pair in WARP_PAIRS if pair[0] not in SAMPLING_WARPS])
def test_regrets_of_warps_agree_with_the_plain_loop(policy, kind, problem):
    specs = make_specs(POLICIES[policy](), PROBLEMS[kind]() if problem == "few" else MANY_ARMS[kind])
    assert len(specs) == 2
    for spec in specs:
        values = list_values(spec)
        regrets = simulate_on_gpu(spec, values, RUNS, dtype="float64")
        expected = simulate_rows(replace(spec, use_shortcut=False), values, RUNS)
        assert compute_differing_share(regrets, expected) <= MAX_DIFFERING_SHARE
        assert assert_means_agree(regrets, expected)


@pytest.mark.parametrize("problem", ["few", "many"])
@pytest.mark.parametrize(("policy", "kind"), [pair for pair in WARP_PAIRS if pair[0] in SAMPLING_WARPS])
def test_samplers_in_warps_have_the_law_of_the_plain_loop(policy, kind, problem):
    """On the same instances with other normals, and on other instances with larger errors."""
    problem_of_kind = PROBLEMS[kind]() if problem == "few" else MANY_ARMS[kind]
    spec = build_spec(POLICIES[policy](), problem_of_kind, horizon=200, seed=4, checkpoints=(10, 200))
    values = list_values(spec)
    regrets = simulate_on_gpu(spec, values, range(2000))
    expected = simulate_rows(replace(spec, use_shortcut=False), values, range(2000))
    assert assert_means_agree(regrets, expected)
    other_regrets = simulate_on_gpu(spec, values, range(2000, 4000))
    for row in range(len(values)):
        for checkpoint in range(2):
            reference = expected[row, :, checkpoint]
            se = reference.std(ddof=1) / math.sqrt(len(reference))
            assert mean_agrees(other_regrets[row, :, checkpoint], reference.mean(), se)


@pytest.mark.parametrize(("policy", "problem"), [*WARP_PAIRS, ("ts", "bernoulli"), ("ts", "beta")])
def test_single_precision_has_the_regret_of_double_precision(policy, problem):
    """Rounding in single precision may change arms, but not the mean regret."""
    problem_of_kind = MANY_ARMS[problem] if problem in MANY_ARMS else PROBLEMS[problem]()
    spec = build_spec(POLICIES[policy](), problem_of_kind, horizon=500, seed=5, checkpoints=(20, 100, 500))
    values = list_values(spec)
    single, double = (simulate_on_gpu(spec, values, range(1000), dtype=kind) for kind in ("float32", "float64"))
    assert np.isfinite(single).all()
    assert assert_means_agree(single, double)


@pytest.mark.parametrize(
    ("policy", "problem"),
    [(bt.UCB1(noise=0.5), bt.Gaussian(arms=4)), (bt.LinUCB(prior=(0, 1), noise=0.5), MANY_ARMS["linear"])],
    ids=["thread", "warp"],
)
def test_chunks_change_no_regret(monkeypatch, policy, problem):
    spec = SimulationSpec(policy, problem, 100, seed=6, regret="realised")
    values = [[0.1], [1.0], [0.4]]
    expected = simulate_on_gpu(spec, values, range(200, 600))
    monkeypatch.setattr(gpu_memory, "THREADS_PER_CHUNK", 57 * launch_plan.plan_launch(spec).threads_per_run)
    progress = []
    assert (simulate_on_gpu(spec, values, range(200, 600), progress=progress.append) == expected).all()
    assert progress == [57] * 21 + [3]
    assert len(progress) > gpu_memory.CHUNKS_IN_FLIGHT
    assert (simulate_on_gpu(spec, values[1:2], range(300, 310)) == expected[1:2, 100:110]).all()


@bt.kernel.scalar
def choose_7_rarely(state, setting, step, params, stream):
    return 7 if step == 30 and bt.kernel.uniform(stream) < 0.01 else 0


def test_errors_are_those_of_the_cpu():
    messages = []
    for device in ("cpu", "gpu"):
        with pytest.raises(bt.SimulationError) as error:
            bt.simulate(
                bt.define_policy("bad", choose_7_rarely),
                bt.Bernoulli(arms=3),
                horizon=50,
                runs=500,
                run=bt.Run(device=device),
            )
        messages.append(str(error.value))
    assert messages[0] == messages[1]


def test_tune_gives_the_result_of_the_cpu():
    problem, options = bt.Bernoulli(arms=4), {"horizon": 200, "seed": 7}
    results = [
        bt.tune(bt.EpsilonGreedy(), problem, **group_settings(budget=200, device=device, **options))
        for device in ("cpu", "auto")
    ]
    assert [result.setup.device for result in results] == ["cpu", "gpu"]
    assert results[0].params == results[1].params
    assert results[0].regret == results[1].regret


def test_the_doctor_passes_with_a_gpu(run_banditune):
    process = run_banditune("doctor", "--device", "gpu")
    assert process.returncode == 0, process.stdout
    assert "NOT OK" not in process.stdout


@pytest.mark.parametrize(("policy", "problem"), [*WARP_PAIRS, ("ucb1", "bernoulli"), ("ts", "bernoulli")])
def test_rows_beyond_the_usual_range_have_the_law_of_the_plain_loop(policy, problem):
    """In float64. The shortcut of Thompson sampling with prior (1, 1) ends at 1. The others take 2.5, too."""
    spec = build_spec(POLICIES[policy](), PROBLEMS[problem](), horizon=200, seed=4, checkpoints=(10, 200))
    values = [[0.5], [2.5]]
    regrets = simulate_on_gpu(spec, values, range(2000))
    assert assert_means_agree(regrets, simulate_rows(replace(spec, use_shortcut=False), values, range(2000)))
