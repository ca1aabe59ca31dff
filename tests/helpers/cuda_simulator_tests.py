"""The GPU scheduler in CUDA's simulator, compared with the kernels of the CPU.

`test_gpu.py` runs these tests in a new process, because NUMBA_ENABLE_CUDASIM=1 must be set before Numba is imported. To
be fast, the kernels of the CPU are plain Python as well (NUMBA_DISABLE_JIT=1). In the slow tests they are compiled.

The simulator runs kernels as plain Python. So these tests cover addresses, chunks, memory and errors, but no compiled code.
"""

from __future__ import annotations

import math
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from numba.cuda.simulator.kernel import BlockThread

import banditune as bt
from banditune.core.arrays import copy_read_only
from banditune.simulation import devices, dispatch, instances, kernel_selection
from banditune.simulation.gpu import cuda_targets, gpu_memory, gpu_scheduler, launch_plan
from banditune.simulation.gpu.warp_primitives import SINGLE_THREAD_SLOTS
from banditune.simulation.spec import SimulationSpec
from helpers.scratch import SOFTMAX
from helpers.settings import group_settings
from helpers.user_code import USER_POLICY, USER_PROBLEM
from helpers.warps import PythonWarp, simulate_threads

VALUES = [[0.3], [1.0]]


@pytest.fixture(autouse=True)
def large_memory(monkeypatch):
    """As much memory as a GPU has: the simulator reports too little for rewards drawn ahead."""
    monkeypatch.setattr(gpu_memory, "measure_free_gpu_memory", lambda: 64 << 30)


@pytest.fixture
def run_threads_in_turn(monkeypatch):
    """Threads of a block run one after the other. They do not wait, so they are much faster."""

    def start_and_end(thread):
        threading.Thread.start(thread)
        thread.join()

    monkeypatch.setattr(BlockThread, "start", start_and_end)


@bt.kernel.scalar
def pay_by_step(instance, arm, pull, step, stream):
    return bt.kernel.uniform(stream) if (step < 5) == (arm == 0) else instance.means[arm]


CHANGING_PROBLEM = bt.define_problem(
    "by step", lambda size, rng: rng.random((size, 3)), pay_by_step, arms=3, rewards="unit"
)
CASES = [
    (bt.UCB1(noise=0.5), bt.Bernoulli(arms=3)),
    (bt.UCB1(noise=0.5), bt.BetaRewards(arms=3, v=3)),
    (bt.UCB1(noise=0.5), bt.Gaussian(arms=3)),
    (bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3)),
    (bt.EpsilonGreedy(), bt.Bernoulli(arms=3)),
    (bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=3)),
    (USER_POLICY, bt.Gaussian(arms=3)),
    (USER_POLICY, USER_PROBLEM),
    (USER_POLICY, CHANGING_PROBLEM),
    (SOFTMAX, bt.Bernoulli(arms=3)),
]


def get_name(case):
    return getattr(case, "name", None)


def simulate_on_both(spec, values=VALUES, runs=range(4), **options):
    """Regrets on the GPU and on the CPU."""
    values = copy_read_only(values)
    return gpu_scheduler.simulate_rows_on_gpu(spec, values, runs, **options), dispatch.simulate_rows(
        spec, values, runs, **options
    )


def agrees_bitwise(spec, values=VALUES, runs=range(4), **options):
    """Whether both have the same regrets, bitwise."""
    regrets, expected = simulate_on_both(spec, values, runs, **options)
    assert regrets.shape == expected.shape == (len(values), len(runs), len(spec.checkpoints or (0,)))
    assert expected.any()
    return bool((regrets == expected).all())


def test_the_simulator_counts_as_a_gpu():
    assert devices.is_cuda_simulated()
    assert devices.explain_missing_gpu() is None
    assert devices.resolve_device("gpu") == "gpu"
    assert devices.resolve_device("auto") == "cpu"


@pytest.mark.usefixtures("run_threads_in_turn")
@pytest.mark.parametrize(("policy", "problem"), CASES, ids=get_name)
def test_regrets_agree_with_the_cpu_bitwise(policy, problem):
    spec = SimulationSpec(policy, problem, 25, seed=3, regret="realised", checkpoints=(1, 9, 25))
    assert agrees_bitwise(spec)
    # Means that change with the step have no expected regret.
    regret = "realised" if problem.name == "by step" else "expected"
    assert agrees_bitwise(
        SimulationSpec(policy, problem, 20, seed=4, regret=regret, common_random_numbers=False), runs=range(2)
    )


@pytest.mark.usefixtures("run_threads_in_turn")
@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))], ids=get_name)
def test_the_plain_loop_agrees_with_the_cpu_bitwise(policy):
    assert agrees_bitwise(
        SimulationSpec(policy, bt.Bernoulli(arms=3), 25, seed=5, regret="realised", use_shortcut=False)
    )


class WiderThompson(bt.Thompson):
    """Thompson sampling with a wider range: the plain loop simulates rows beyond 1."""

    parameters = (bt.Parameter("gamma", 0, 3, textbook=1),)


@pytest.mark.usefixtures("run_threads_in_turn")
@pytest.mark.parametrize("common", [True, False])
def test_rows_beyond_the_limits_of_a_shortcut_agree_with_the_cpu(common):
    spec = SimulationSpec(WiderThompson(prior=(1, 1)), bt.Bernoulli(arms=3), 25, seed=5, common_random_numbers=common)
    rows = [[0.5], [2.0], [1.0]]
    assert kernel_selection.select_shortcut_rows(spec, copy_read_only(rows)) == [True, False, True]
    assert agrees_bitwise(spec, rows, range(2))


@pytest.mark.usefixtures("run_threads_in_turn")
@pytest.mark.parametrize("features", ["alike", "of each instance"])
@pytest.mark.parametrize("common", [True, False])
def test_features_of_the_problem_and_of_instances_are_read(features, common):
    table = np.random.default_rng(0).normal(size=(4, 2))
    problem = bt.Linear(features=table) if features == "alike" else bt.Linear(arms=4, dims=2)
    assert len(instances.draw_instances(problem, 6, 0).features) == (1 if features == "alike" else instances.BLOCK_SIZE)
    spec = SimulationSpec(
        bt.policies.LinGreedy(prior=(0, 1), noise=0.5),
        problem,
        15,
        seed=6,
        regret="realised",
        common_random_numbers=common,
        checkpoints=(2, 15),
    )
    assert agrees_bitwise(spec, [[0.0]], range(254, 259))


def record_chunks(monkeypatch):
    """Record what happens to chunks: ("launch" or "collect", runs, buffers)."""
    records = []

    def make_recorder(name):
        method = getattr(gpu_scheduler.GpuSimulator, name)

        def record(simulator, runs, buffers):
            records.append((name, runs, buffers))
            return method(simulator, runs, buffers)

        return record

    for name in ("launch", "collect"):
        monkeypatch.setattr(gpu_scheduler.GpuSimulator, name, make_recorder(name))
    return records


def list_runs(records, name):
    """The runs of the chunks that were launched or collected, in order."""
    return [runs for record_name, runs, _ in records if record_name == name]


@pytest.mark.usefixtures("run_threads_in_turn")
@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        CASES[0],
        CASES[2],
        pytest.param(bt.policies.LinGreedy(prior=(0, 1), noise=0.5), bt.Linear(arms=3, dims=2), marks=pytest.mark.slow),
    ],
    ids=get_name,
)
def test_chunks_change_no_regret(monkeypatch, policy, problem):
    """Chunks of a few runs that begin in one block of instances and end in the next. The last one is shorter."""
    monkeypatch.setattr(gpu_memory, "THREADS_PER_CHUNK", 6)
    monkeypatch.setattr(gpu_memory, "CHUNKS_IN_FLIGHT", 2)
    records = record_chunks(monkeypatch)
    runs = range(instances.BLOCK_SIZE - 7, instances.BLOCK_SIZE + 7)
    spec = SimulationSpec(policy, problem, 10, seed=7, regret="realised", checkpoints=(4, 10))
    progress = []
    values = copy_read_only(VALUES)
    regrets = gpu_scheduler.simulate_rows_on_gpu(spec, values, runs, progress=progress.append)
    assert (regrets == dispatch.simulate_rows(spec, values, runs)).all()
    chunk_runs = [runs[first : first + 3] for first in range(0, 14, 3)]
    assert list_runs(records, "launch") == list_runs(records, "collect") == chunk_runs
    assert progress == [6] * 4 + [4]
    separate = SimulationSpec(policy, problem, 10, seed=7, common_random_numbers=False)
    assert agrees_bitwise(separate, VALUES, runs, first_row=3)


@pytest.mark.usefixtures("run_threads_in_turn")
@pytest.mark.parametrize("common", [True, False])
def test_each_value_has_its_own_instances(common):
    progress = []
    spec = SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 30, common_random_numbers=common, device="gpu")
    regrets = dispatch.simulate_rows_separately(spec, VALUES, [3, 2], 7, progress=progress.append)
    expected = dispatch.simulate_rows_separately(replace(spec, device="cpu"), VALUES, [3, 2], 7)
    assert progress == [5]
    assert [part.tolist() for part in regrets] == [part.tolist() for part in expected]


@pytest.mark.usefixtures("run_threads_in_turn")
def test_large_chunks_draw_each_block_of_instances_once(monkeypatch):
    monkeypatch.setattr(gpu_memory, "THREADS_PER_CHUNK", 330)
    records, blocks = record_chunks(monkeypatch), []
    draw_instances = instances.draw_instances
    monkeypatch.setattr(
        instances,
        "draw_instances",
        lambda problem, seed, block: blocks.append(block) or draw_instances(problem, seed, block),
    )
    runs = range(200, 700)
    spec = SimulationSpec(bt.Greedy(), bt.Bernoulli(arms=2), 2, seed=8, common_random_numbers=False)
    regrets = gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only([[0.0]]), runs)
    assert blocks == [0, 1, 2]
    assert list_runs(records, "launch") == [range(200, 530), range(530, 700)]
    assert (regrets == dispatch.simulate_rows(spec, [[0.0]], runs)).all()
    assert regrets.any()


@pytest.mark.usefixtures("run_threads_in_turn")
def test_buffers_of_chunks_are_reused(monkeypatch):
    monkeypatch.setattr(gpu_memory, "THREADS_PER_CHUNK", 2)
    monkeypatch.setattr(gpu_memory, "CHUNKS_IN_FLIGHT", 3)
    records, buffers = record_chunks(monkeypatch), []
    allocate = gpu_memory.GpuMemoryPlan.allocate_buffers

    def allocate_and_record(supply, runs):
        buffers.append(allocate(supply, runs))
        return buffers[-1]

    monkeypatch.setattr(gpu_memory.GpuMemoryPlan, "allocate_buffers", allocate_and_record)
    assert agrees_bitwise(SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 5, seed=12), VALUES, range(8))
    in_flight, largest = [], 0
    for what, _, used in records:
        assert any(used is each_buffer for each_buffer in buffers)
        if what == "launch":
            assert all(used is not other_buffer for other_buffer in in_flight)
            in_flight.append(used)
        else:
            assert used is in_flight.pop(0)
        largest = max(largest, len(in_flight))
    assert largest == len(buffers) == 3
    assert list_runs(records, "collect") == [range(first, first + 1) for first in range(8)]
    assert all(each_buffer.regrets.shape == (1, 2, 1) for each_buffer in buffers)
    buffers.clear()
    assert agrees_bitwise(SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 5, seed=12), VALUES, range(2))
    assert len(buffers) == 2


def record_predraws(monkeypatch):
    """Whether rewards were drawn ahead for each chunk: there is memory for them, and it is filled."""
    records = []
    predraw = gpu_memory.GpuMemoryPlan.predraw_rewards

    def predraw_and_record(plan, buffers, runs, options):
        arms, horizon = plan.spec.problem.arms, plan.spec.horizon
        assert buffers.predrawn.shape == ((len(runs), arms, horizon) if plan.draws_ahead else (1, 1, 1))
        buffers.predrawn.copy_to_device(np.full(buffers.predrawn.shape, np.nan))
        predraw(plan, buffers, runs, options)
        assert np.isfinite(buffers.predrawn.copy_to_host()).all() == plan.draws_ahead
        records.append(plan.draws_ahead)

    monkeypatch.setattr(gpu_memory.GpuMemoryPlan, "predraw_rewards", predraw_and_record)
    return records


@pytest.mark.usefixtures("run_threads_in_turn")
@pytest.mark.parametrize(
    ("policy", "problem", "common", "ahead"),
    [
        (bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=3), True, True),
        (bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=3), False, False),
        (bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=12), True, False),
        (bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), True, False),
        (USER_POLICY, CHANGING_PROBLEM, True, False),
    ],
)
def test_rewards_are_drawn_ahead_where_many_rows_share_them(monkeypatch, policy, problem, common, ahead):
    """Not for separate random numbers, few rows, shortcuts that read bits, or rewards by step."""
    records = record_predraws(monkeypatch)
    assert agrees_bitwise(
        SimulationSpec(policy, problem, 15, seed=9, regret="realised", common_random_numbers=common),
        runs=range(2),
    )
    assert records == [ahead]


@pytest.mark.usefixtures("run_threads_in_turn")
def test_rewards_are_not_drawn_ahead_where_memory_is_short(monkeypatch):
    """A run needs 40 bytes, and 360 with its rewards. They are drawn ahead if a quarter of a chunk still fits."""
    monkeypatch.setattr(gpu_memory, "THREADS_PER_CHUNK", 16)
    spec = SimulationSpec(bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=3), 15, seed=9)
    records = record_predraws(monkeypatch)
    chunk_records = record_chunks(monkeypatch)
    for size, ahead, sizes in (
        (8 * 400, True, [6]),
        (2 * 400, True, [2, 2, 2]),
        (2 * 400 - 1, False, [6]),
        (4 * 40, False, [4, 2]),
    ):
        monkeypatch.setattr(
            gpu_memory, "measure_free_gpu_memory", lambda size=size: 2 * gpu_memory.CHUNKS_IN_FLIGHT * size
        )
        assert agrees_bitwise(spec, runs=range(6))
        assert set(records) == {ahead}
        assert [len(part) for part in list_runs(chunk_records, "launch")] == sizes
        records.clear()
        chunk_records.clear()


@pytest.mark.usefixtures("run_threads_in_turn")
def test_the_verbs_simulate_on_the_gpu_and_record_it():
    problem = bt.Bernoulli(arms=3)
    arguments = {"horizon": 20, "seed": 2}
    regrets = bt.simulate(bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=3, **arguments))
    assert (
        bt.simulate(bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=3, device="gpu", **arguments))
        == regrets
    ).all()
    curve = bt.curve(bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=3, device="gpu", **arguments))
    assert curve.setup.device == "gpu"
    assert "numba-cuda" in curve.setup.versions
    assert bt.results.from_json(curve.to_json()) == curve
    assert (
        curve.mean == bt.curve(bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=3, **arguments)).mean
    ).all()


@bt.kernel.scalar
def choose_one_half_rarely(state, setting, step, params, stream):
    return 0.5 if step == 7 and bt.kernel.uniform(stream) < params[0] else 0


@bt.kernel.scalar
def pay_nan_rarely(instance, arm, pull, step, stream):
    return math.nan if pull == 2 and bt.kernel.uniform(stream) < 0.5 else 1.0


WRONG_PROBLEM = bt.define_problem(
    "strange", lambda size, rng: rng.random((size, 3)), pay_nan_rarely, arms=3, rewards="unit"
)


def read_error(simulate, spec, values, **options):
    with pytest.raises(bt.SimulationError) as error:
        simulate(spec, copy_read_only(values), range(3, 9), **options)
    return str(error.value)


@pytest.mark.usefixtures("run_threads_in_turn")
@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (bt.define_policy("broken", choose_one_half_rarely), bt.Bernoulli(arms=3)),
        (bt.Greedy(), WRONG_PROBLEM),
        (bt.UCB1(noise=0.5), WRONG_PROBLEM),
    ],
    ids=get_name,
)
@pytest.mark.parametrize("common", [True, False])
def test_errors_are_those_of_the_cpu(policy, problem, common):
    spec = SimulationSpec(policy, problem, 15, seed=10, common_random_numbers=common)
    values = [[0.1], [0.4]]
    message = read_error(gpu_scheduler.simulate_rows_on_gpu, spec, values, first_row=2)
    assert message == read_error(dispatch.simulate_rows, spec, values, first_row=2, workers=1)
    assert "of run" in message


@pytest.mark.usefixtures("run_threads_in_turn")
def test_an_error_of_the_gpu_alone_is_reported(monkeypatch):
    """As if the GPU failed at a run that the CPU can simulate."""
    monkeypatch.setattr(np, "isnan", lambda numbers: np.ones(numbers.shape, bool))
    spec = SimulationSpec(bt.Greedy(), bt.Bernoulli(arms=3), 10, seed=10)
    with pytest.raises(bt.SimulationError, match=r"failed in run 5 .*seed=10.* on the GPU, but not on the CPU"):
        gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only([[0.0]]), range(5, 7))


@bt.kernel.scalar
def read_beyond_params(state, setting, step, params, stream):
    """In the second row only. The CPU simulates the first run of the first row before."""
    return params[7] if params[0] > 0 else 0


@pytest.mark.usefixtures("run_threads_in_turn")
def test_a_stopped_gpu_is_an_error_with_advice():
    spec = SimulationSpec(bt.define_policy("wild", read_beyond_params), bt.Bernoulli(arms=3), 10)
    with pytest.raises(
        bt.SimulationError,
        match=r"the GPU stopped while it simulated the policy 'wild' .* device='cpu', which checks every index",
    ):
        gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only([[0.0], [1.0]]), range(2))


@bt.kernel.scalar
def compare_with_nan(state, setting, step, params, stream):
    wide = math.inf if step > 3 else 0.0
    return int(state.total[0] + (wide - wide) > 0.5)


@pytest.mark.usefixtures("run_threads_in_turn")
def test_a_comparison_with_nan_is_an_error_with_run_and_step():
    spec = SimulationSpec(bt.define_policy("spoilt", compare_with_nan), bt.Bernoulli(arms=3), 10)
    with pytest.raises(
        bt.SimulationError, match=r"`choose` of the policy 'spoilt' must not compare NaN .* at step 4 of run 7"
    ):
        gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only([[0.0]]), range(7, 9))


class BlockOfThreads(PythonWarp):
    """A warp as the threads of a block in the simulator, which has no warp functions."""

    def lane(self):
        return threading.current_thread().threadIdx.x


@pytest.mark.parametrize(
    ("policy", "problem", "horizon"),
    [
        (bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=35, dims=2), 12),
        pytest.param(bt.UCBGLM(prior=(0, 1), noise=0.5), bt.Logistic(arms=4, dims=2), 6, marks=pytest.mark.slow),
    ],
    ids=get_name,
)
def test_a_warp_of_32_threads_agrees_with_one_thread(monkeypatch, policy, problem, horizon):
    """One warp of 32 threads a block, with barriers of Python."""
    monkeypatch.setattr(kernel_selection, "select_warp_version", lambda spec: spec.policy.warp_version)
    monkeypatch.setattr(cuda_targets, "WARP_SLOTS", BlockOfThreads().slots(problem.arms))
    monkeypatch.setitem(
        cuda_targets.DTYPE_SLOTS,
        "float64",
        {name: SINGLE_THREAD_SLOTS[name] for name in cuda_targets.DTYPE_SLOTS["float64"]},
    )
    plan_warp_launch = launch_plan.plan_warp_launch
    monkeypatch.setattr(
        launch_plan,
        "plan_warp_launch",
        lambda spec, version, precision, warps: plan_warp_launch(spec, version, precision, 1),
    )
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        for regret, common in (("realised", True), ("expected", False)):
            spec = SimulationSpec(
                policy,
                problem,
                horizon,
                seed=11,
                regret=regret,
                common_random_numbers=common,
                checkpoints=(3, horizon),
            )
            plan = launch_plan.plan_launch(spec, "float64")
            assert (plan.threads_per_run, plan.threads_per_block) == (32, 32)
            regrets = gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only([[0.3]]), range(2), dtype="float64")
            expected = [
                simulate_threads(spec, policy.warp_version, [0.3], number, threads=1).regrets for number in range(2)
            ]
            np.testing.assert_allclose(regrets[0], expected)
    finally:
        sys.setswitchinterval(interval)


@pytest.mark.usefixtures("run_threads_in_turn")
def test_a_store_keeps_regrets_of_a_gpu(tmp_path, monkeypatch):
    problem = bt.Bernoulli(arms=3)
    arguments = {"horizon": 20, "device": "gpu", "store": tmp_path / "study.db"}
    for common in (True, False):
        bt.simulate(
            bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=2, common_random_numbers=common, **arguments)
        )
        regrets = bt.simulate(
            bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=4, common_random_numbers=common, **arguments)
        )
        expected = bt.simulate(
            bt.UCB1(noise=0.5),
            problem,
            [0.3, 1],
            runs=4,
            horizon=20,
            simulation=bt.Simulation(common_random_numbers=common),
        )
        assert (regrets == expected.astype(np.float32)).all()
    first = bt.tune(bt.UCB1(noise=0.5), problem, **group_settings(budget=12, validate=3, **arguments))
    monkeypatch.setattr(gpu_scheduler, "simulate_rows_on_gpu", None)
    assert bt.tune(bt.UCB1(noise=0.5), problem, **group_settings(budget=12, validate=3, **arguments)) == first
    with pytest.raises(TypeError):  # a value that is not stored must be simulated
        bt.simulate(bt.UCB1(noise=0.5), problem, [0.3, 0.9], **group_settings(runs=4, **arguments))
