"""The GPU scheduler without a GPU: kernels as PTX, CUDA's simulator, and what is reported where no GPU is found."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from numba import types
from numba.cuda.cudadrv import driver, nvvm

import banditune as bt
from banditune.core.scalar import noinline, noinline_on_gpu
from banditune.simulation import bind, compilation, devices, kernel_selection
from banditune.simulation.gpu import cuda_targets, gpu_memory, gpu_scheduler, launch_plan
from banditune.simulation.spec import SimulationSpec
from banditune.study.requests import build_spec
from helpers.gpu_code import compile_plan, compile_predraw, compile_to_ptx
from helpers.paths import ROOT
from helpers.policy_problem_pairs import PAIRS, POLICIES
from helpers.policy_problem_pairs import SMALL_PROBLEMS as PROBLEMS
from helpers.scratch import SOFTMAX
from helpers.settings import group_settings
from helpers.user_code import USER_POLICY, USER_PROBLEM

PRECISION = {"linucb": "float64", "lints": "float64", "ucb-glm": "float32", "glm-tsl": "float32"}
"""The precision of warp versions on problems of the paper's size."""


def is_kernel(code):
    """Whether PTX contains one kernel for the requested GPU."""
    return len(re.findall(r"^\s*\.visible \.entry ", code, re.M)) == 1 and ".target sm_90" in code


def list_calls(code):
    """Functions of the package that are called instead of inlined."""
    return set(re.findall(rf"\.func .*{cuda_targets.NOINLINE_PREFIX}(\w+?)_[0-9a-f]{{20}}", code))


def plan_threads(policy, problem, shortcut=True, precision="float64"):
    plan = launch_plan.plan_launch(SimulationSpec(policy, problem, 50, use_shortcut=shortcut), precision)
    assert plan.target is cuda_targets.THREAD_TARGETS[precision]
    assert plan.slots["dtype"] is getattr(np, precision)
    assert plan.threads_per_run == 1
    return plan


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (bt.UCB1(noise=0.5), bt.Bernoulli(arms=4)),
        (bt.UCB1(noise=0.5), bt.Gaussian(arms=4)),
        (bt.EpsilonGreedy(), bt.Bernoulli(arms=4)),
        (USER_POLICY, USER_PROBLEM),
        (SOFTMAX, USER_PROBLEM),
        (bt.policies.LinGreedy(prior=(0, 1), noise=0.5), bt.Logistic(arms=4, dims=3)),
        pytest.param(bt.policies.GLMGreedy(prior=(0, 1)), bt.Logistic(arms=4, dims=3), marks=pytest.mark.slow),
    ],
    ids=["index", "stay", "plain loop", "own", "scratch arrays", "ridge regression", "logistic regression"],
)
def test_every_kind_of_thread_kernel_is_compiled(policy, problem):
    assert is_kernel(compile_plan(plan_threads(policy, problem)))


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_long_functions_of_thompson_sampling_are_not_inlined(precision):
    """Inlined everywhere, they would not fit into the instruction caches."""
    code = compile_plan(plan_threads(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=4), precision=precision))
    assert is_kernel(code)
    assert list_calls(code)
    assert ("ex2.approx.ftz.f32" in code) == (precision == "float32")


def test_threads_compute_in_single_precision_where_it_is_declared():
    short, long = (
        SimulationSpec(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=4), horizon) for horizon in (20_000, 20_001)
    )
    assert launch_plan.plan_launch(short).target is cuda_targets.THREAD_TARGETS["float32"]
    assert launch_plan.plan_launch(short, "float64").target is cuda_targets.THREAD_TARGETS["float64"]
    assert launch_plan.plan_launch(long).target is cuda_targets.THREAD_TARGETS["float64"]
    for spec in (
        SimulationSpec(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=4), 50, use_shortcut=False),
        SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=4), 50),
    ):
        assert (
            launch_plan.plan_launch(spec).target
            is launch_plan.plan_launch(spec, "float32").target
            is cuda_targets.THREAD_TARGETS["float64"]
        )


def test_untested_widths_are_simulated_in_double_precision():
    linear, logistic = bt.Linear(arms=4, dims=3), bt.Logistic(arms=4, dims=3)
    cases = [
        (bt.Thompson(prior=(9, 9)), bt.Bernoulli(arms=4)),
        (bt.UCBGLM(prior=(0, 1), noise=0.5), logistic),
        (bt.GLMTSL(prior=(0, 1)), logistic),
    ]
    for policy, problem in cases:
        spec = SimulationSpec(policy, problem, 50)
        dtypes = [launch_plan.select_row_dtype(spec, np.array([width])) for width in (0.5, 1.0, 1.5)]
        assert dtypes == [None, None, "float64"]
    # Warp versions of these compute in float64 in any case.
    assert (
        launch_plan.select_row_dtype(SimulationSpec(bt.LinUCB(prior=(0, 1), noise=0.5), linear, 50), np.array([1.5]))
        is None
    )


@pytest.mark.parametrize("mark", [noinline, noinline_on_gpu, bt.kernel.scalar])
def test_marked_functions_are_not_inlined(mark):
    @mark
    def compute_score(total, pulls):
        return total / (pulls + 1.0)

    @bt.kernel.scalar
    def choose(state, setting, step, params, stream):
        return 1 if compute_score(state.total[1], state.pulls[1]) > compute_score(state.total[0], state.pulls[0]) else 0

    code = compile_plan(plan_threads(bt.define_policy("marked", choose), bt.Bernoulli(arms=2)))
    assert list_calls(code) == (set() if mark is bt.kernel.scalar else {"compute_score"})


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (bt.LinUCB(prior=(0, 1), noise=0.5), bt.Logistic(arms=4, dims=3)),
        pytest.param(bt.LinTS(prior=(0, 1), noise=0.5), bt.Logistic(arms=4, dims=3), marks=pytest.mark.slow),
        pytest.param(bt.UCBGLM(prior=(0, 1), noise=0.5), bt.Logistic(arms=4, dims=3), marks=pytest.mark.slow),
        pytest.param(bt.GLMTSL(prior=(0, 1)), bt.Logistic(arms=4, dims=3), marks=pytest.mark.slow),
    ],
    ids=["linucb", "lints", "ucb-glm", "glm-tsl"],
)
def test_every_warp_kernel_is_compiled(policy, problem):
    plan = launch_plan.plan_launch(SimulationSpec(policy, problem, 50))
    assert plan.target is cuda_targets.WARP_TARGETS[PRECISION[policy.name]]
    assert plan.threads_per_run == 32
    code = compile_plan(plan)
    assert is_kernel(code)
    assert "shfl.sync" in code


@pytest.mark.parametrize(
    "policy",
    [
        bt.LinUCB(prior=(0, 1), noise=0.5),
        bt.LinTS(prior=(0, 1), noise=0.5),
        bt.UCBGLM(prior=(0, 1), noise=0.5),
        bt.GLMTSL(prior=(0, 1)),
    ],
    ids=lambda policy: policy.name,
)
def test_a_warp_version_has_the_target_of_its_precision(policy):
    """Targets have different names, by which kernels are stored."""
    spec = SimulationSpec(policy, bt.Logistic(arms=4, dims=3), 50)
    for precision in ("float64", "float32"):
        plan = launch_plan.plan_launch(spec, precision)
        assert plan.target is cuda_targets.WARP_TARGETS[precision]
        assert plan.slots["dtype"] is getattr(np, precision)
    assert launch_plan.plan_launch(spec).target is cuda_targets.WARP_TARGETS[PRECISION[policy.name]]
    targets = [*cuda_targets.THREAD_TARGETS.values(), cuda_targets.PREDRAW_TARGET, *cuda_targets.WARP_TARGETS.values()]
    assert (
        len({target.name for target in targets}) == len({(target.name, target.cache_suffix) for target in targets}) == 5
    )


def test_the_kernel_that_predraws_rewards_is_compiled():
    assert is_kernel(compile_predraw(bt.Gaussian(arms=4)))


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "problem"), PAIRS)
def test_every_policy_on_every_problem_is_compiled(policy, problem):
    """With and without shortcuts, in both precisions. Equal kernels are compiled once."""
    plans = {}
    for shortcut in (True, False):
        spec = build_spec(
            POLICIES[policy](), PROBLEMS[problem](), horizon=50, simulation=bt.Simulation(shortcuts=shortcut)
        )
        for precision in ("float64", "float32"):
            plan = launch_plan.plan_launch(spec, precision)
            plans[bind.bind_function(plan.kernel, plan.slots)[1]] = plan
    assert plans
    for plan in plans.values():
        assert is_kernel(compile_plan(plan))


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_rewards_of_every_problem_can_be_predrawn(problem):
    assert is_kernel(compile_predraw(PROBLEMS[problem]()))


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy",
    [
        bt.LinUCB(prior=(0, 1), noise=0.5),
        bt.LinTS(prior=(0, 1), noise=0.5),
        bt.UCBGLM(prior=(0, 1), noise=0.5),
        bt.GLMTSL(prior=(0, 1)),
    ],
    ids=lambda policy: policy.name,
)
@pytest.mark.parametrize(("arms", "dims"), [(40, 3), (65, 10)])
def test_warps_with_several_arms_a_thread_are_compiled(policy, arms, dims):
    plan = launch_plan.plan_launch(SimulationSpec(policy, bt.Logistic(arms=arms, dims=dims), 50))
    assert plan.target is cuda_targets.WARP_TARGETS[PRECISION[policy.name]]
    assert is_kernel(compile_plan(plan))


@pytest.mark.parametrize("exact", [True, False])
def test_exact_code_rounds_products_as_a_cpu_does(exact):
    def multiply_and_add(a, b, c, out):
        out[0] = a * b + c

    signature = (types.float64, types.float64, types.float64, types.float64[::1])
    code = compile_to_ptx(bind.bind_function(multiply_and_add)[0], signature, exact=exact)
    assert ("fma.rn.f64" in code) != exact
    assert ("mul.rn.f64" in code) == exact
    # Other kernels are compiled as usual.
    assert "fma.rn.f64" in compile_to_ptx(multiply_and_add, signature, exact=exact)


def test_compiler_options_are_reset():
    before = nvvm.compile_ir
    with cuda_targets.set_nvvm_options(True, True):
        assert nvvm.compile_ir is not before
    assert nvvm.compile_ir is before
    with pytest.raises(ZeroDivisionError), cuda_targets.set_nvvm_options(True, True):
        raise ZeroDivisionError
    assert nvvm.compile_ir is before


class SecondArmLinUCB(bt.LinUCB):
    choose = staticmethod(lambda state, setting, step, params, stream: 1)


@bt.kernel.scalar
def pay_by_step(instance, arm, pull, step, stream):
    return 1.0 if step < 5 else 0.0


@bt.kernel.scalar
def pay_five(instance, arm, pull, step, stream):
    return 5.0


def test_a_reward_outside_its_stated_kind_is_an_error_on_a_gpu():
    problem = bt.define_problem("five", lambda size, rng: rng.random((size, 2)), pay_five, arms=2, rewards="unit")
    with pytest.raises(bt.SimulationError, match=r"rewards of 'five' must be in \[0, 1\]"):
        gpu_scheduler.simulate_rows_on_gpu(SimulationSpec(bt.UCB1(noise=0.5), problem, 5), np.ones((1, 1)), range(2))


def test_warp_versions_are_selected_where_they_apply():
    linear = bt.Linear(arms=40, dims=3)
    by_step = bt.define_problem("by step", lambda size, rng: rng.random((size, 4)), pay_by_step, arms=4)
    assert (
        kernel_selection.select_warp_version(SimulationSpec(bt.LinUCB(prior=(0, 1), noise=0.5), linear, 50))
        is bt.LinUCB.warp_version
    )
    assert (
        kernel_selection.select_warp_version(
            SimulationSpec(bt.LinUCB(prior=(0, 1), noise=0.5), linear, 50, use_shortcut=False)
        )
        is None
    )
    assert (
        kernel_selection.select_warp_version(SimulationSpec(SecondArmLinUCB(prior=(0, 1), noise=0.5), linear, 50))
        is None
    )
    assert kernel_selection.select_warp_version(SimulationSpec(bt.LinUCB(prior=(0, 1), noise=0.5), by_step, 50)) is None
    assert kernel_selection.select_warp_version(SimulationSpec(bt.UCB1(noise=0.5), linear, 50)) is None


def test_fewer_warps_share_a_block_where_they_need_more_memory(monkeypatch):
    spec = SimulationSpec(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=40, dims=3), 50)
    blocks = []
    for size in (48 << 10, 6 << 10, 3 << 10, 1 << 10):
        monkeypatch.setattr(launch_plan, "SHARED_MEMORY_LIMIT", size)
        plan = launch_plan.plan_launch(spec)
        blocks.append((plan.threads_per_run, plan.threads_per_block))
    assert blocks == [(32, 128), (32, 64), (32, 32), (1, launch_plan.THREADS_PER_BLOCK)]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100, 1000, 12345, 1 << 20])
def test_sizes_are_rounded_up_slightly(size):
    assert size <= launch_plan.round_up_size(size) <= max(8, 1.26 * size + 8)
    assert launch_plan.round_up_size(launch_plan.round_up_size(size)) == launch_plan.round_up_size(size)


def test_a_run_that_does_not_fit_is_refused():
    with pytest.raises(
        bt.InvalidRequest, match=r"must fit into 128 KiB on a GPU, but the policy 'ucb1' .* use fewer arms"
    ):
        launch_plan.plan_launch(SimulationSpec(bt.UCB1(noise=0.5), bt.Gaussian(arms=50_000), 50_000))


def test_values_that_do_not_fit_into_memory_are_refused(monkeypatch):
    spec = SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 50)
    monkeypatch.setattr(gpu_memory, "measure_free_gpu_memory", lambda: 1 << 30)
    assert gpu_memory.GpuMemoryPlan(spec, launch_plan.plan_launch(spec), rows=1000, checkpoints=50).max_runs >= 1
    text = r"must fit into 1/32 of the GPU's free memory, but it needs 3,814\.7 of 32\.0 MiB; use fewer values"
    with pytest.raises(bt.InvalidRequest, match=text):
        gpu_memory.GpuMemoryPlan(spec, launch_plan.plan_launch(spec), rows=10_000_000, checkpoints=50)


def test_chunks_fit_into_memory(monkeypatch):
    """Inputs, predrawn rewards and results of all chunks in flight, in half of the free memory."""
    spec = SimulationSpec(bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=10), 1000)
    monkeypatch.setattr(compilation, "compile_kernel", lambda *_: None)
    for free, ahead in ((1 << 20, False), (1 << 27, False), (1 << 36, True)):
        monkeypatch.setattr(gpu_memory, "measure_free_gpu_memory", lambda free=free: free)
        memory_plan = gpu_memory.GpuMemoryPlan(spec, launch_plan.plan_launch(spec), rows=20, checkpoints=3)
        assert memory_plan.draws_ahead == ahead
        size = 8 * (10 + 20 * 3 + 10 * 1000 * ahead)
        assert 1 <= memory_plan.max_runs <= gpu_memory.MAX_RUNS_PER_CHUNK
        assert (
            gpu_memory.CHUNKS_IN_FLIGHT * memory_plan.max_runs * size
            <= free / 2
            < gpu_memory.CHUNKS_IN_FLIGHT * (memory_plan.max_runs + 1) * size
        )


@pytest.mark.parametrize(
    ("policy", "problem"),
    [(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3)), (bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=40, dims=3))],
)
def test_a_chunk_has_slightly_more_threads_than_needed(monkeypatch, policy, problem):
    monkeypatch.setattr(gpu_memory, "measure_free_gpu_memory", lambda: 1 << 40)
    monkeypatch.setattr(compilation, "compile_kernel", lambda *_: None)
    spec = SimulationSpec(policy, problem, 50)
    plan = launch_plan.plan_launch(spec)
    threads = 70 * plan.threads_per_run * gpu_memory.GpuMemoryPlan(spec, plan, rows=70, checkpoints=1).max_runs
    assert gpu_memory.THREADS_PER_CHUNK <= threads < gpu_memory.THREADS_PER_CHUNK + 70 * plan.threads_per_run
    assert gpu_memory.GpuMemoryPlan(spec, plan, rows=10_000_000, checkpoints=1).max_runs == 1
    assert gpu_memory.GpuMemoryPlan(spec, plan, rows=1, checkpoints=1).max_runs == gpu_memory.MAX_RUNS_PER_CHUNK


@pytest.mark.parametrize(
    ("marks", "disable_jit"),
    [("not slow", "1"), pytest.param("slow or not slow", "0", marks=pytest.mark.slow)],
    ids=["plain Python", "compiled"],
)
def test_the_tests_in_cudas_simulator_pass(marks, disable_jit):
    """See `cuda_simulator_tests.py`. The kernels of the CPU are plain Python or compiled."""
    options = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        marks,
        str(ROOT / "tests" / "helpers" / "cuda_simulator_tests.py"),
    ]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": disable_jit}
    process = subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        capture_output=True,
        text=True,
        env=environment,
        timeout=600,
        cwd=ROOT,
    )
    assert process.returncode == 0, process.stdout[-5000:] + process.stderr[-1000:]
    assert "passed" in process.stdout
    assert "skipped" not in process.stdout


@pytest.fixture
def environment_without_gpu(tmp_path):
    """Environment variables that hide any GPU."""
    return hide_gpus(tmp_path, "exit 9")


def hide_gpus(folder, script):
    """Hide GPUs, and put another `nvidia-smi` on the path."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return {"CUDA_VISIBLE_DEVICES": "-1", "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def set_driver(monkeypatch, available, count):
    """Replace CUDA's driver by one that is available or not, and has a number of GPUs."""
    monkeypatch.setattr(driver, "driver", SimpleNamespace(is_available=available, get_device_count=count))


@pytest.fixture
def unreachable_gpu(monkeypatch):
    """No GPU can be reached."""
    set_driver(monkeypatch, False, lambda: 0)


@pytest.mark.parametrize("available", [False, True], ids=["no driver", "no GPU"])
def test_without_a_gpu_the_device_is_the_cpu(monkeypatch, available):
    set_driver(monkeypatch, available, lambda: 0)
    assert devices.resolve_device("cpu") == "cpu"
    assert devices.resolve_device("auto") == "cpu"
    with pytest.raises(
        bt.InvalidRequest,
        match=r"device=.gpu. needs an NVIDIA GPU.* but no GPU can be reached; `nvidia-smi` must show one",
    ):
        devices.resolve_device("gpu")


def test_with_a_gpu_auto_is_the_gpu(monkeypatch):
    monkeypatch.setattr(devices, "explain_missing_gpu", lambda: None)
    assert [devices.resolve_device(device) for device in ("cpu", "gpu", "auto")] == ["cpu", "gpu", "gpu"]


@pytest.mark.parametrize("device", ["cuda", "GPU", "", None, 0])
def test_other_devices_are_refused(device):
    with pytest.raises(bt.InvalidRequest, match="`device` must be one of 'cpu', 'gpu', 'auto', but got"):
        devices.resolve_device(device)


def test_missing_parts_are_named_with_their_installation(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(
        bt.InvalidRequest, match=r"numba-cuda is not installed; pip install 'banditune\[gpu\]' installs it\.$"
    ):
        devices.resolve_device("gpu")
    assert devices.resolve_device("auto") == "cpu"
    monkeypatch.undo()
    set_driver(monkeypatch, True, lambda: 1)
    monkeypatch.setattr(nvvm, "is_available", lambda: True)
    assert devices.explain_missing_gpu() is None
    monkeypatch.setattr(nvvm, "is_available", lambda: False)
    assert (
        devices.explain_missing_gpu()
        == f"the compiler for GPUs (NVVM) is missing; {devices.GPU_INSTALL_COMMAND} installs it"
    )
    set_driver(monkeypatch, True, lambda: 1 / 0)
    assert "numba-cuda does not work here (ZeroDivisionError" in devices.explain_missing_gpu()


@pytest.mark.usefixtures("unreachable_gpu")
def test_every_verb_refuses_a_missing_gpu():
    problem, options = bt.Bernoulli(arms=3), {"horizon": 20, "device": "gpu"}
    for verb in (
        lambda: bt.simulate(bt.UCB1(noise=0.5), problem, **group_settings(runs=2, **options)),
        lambda: bt.curve(bt.UCB1(noise=0.5), problem, **group_settings(runs=2, **options)),
        lambda: bt.tune(bt.UCB1(noise=0.5), problem, **group_settings(budget=20, **options)),
        lambda: bt.compare(
            [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))], problem, **group_settings(budget=20, **options)
        ),
    ):
        with pytest.raises(bt.InvalidRequest, match="needs an NVIDIA GPU"):
            verb()


def test_the_command_line_refuses_a_missing_gpu(run_banditune, environment_without_gpu):
    small = ["--problem", "bernoulli", "--arms", "3", "--horizon", "20", "--device", "gpu"]
    for command in (["tune"], ["curve"], ["compare", "--policy", "ts"]):
        process = run_banditune(*command, "--policy", "ucb1", *small, **environment_without_gpu)
        assert process.returncode == 2
        assert process.stdout == ""
        assert process.stderr.count("\n") == 1
        assert process.stderr.startswith("banditune: --device gpu needs an NVIDIA GPU")


@pytest.mark.usefixtures("unreachable_gpu")
def test_results_record_the_device(tmp_path):
    curve = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.3, 1], horizon=20, runs=3, run=bt.Run(device="auto"))
    assert curve.setup.device == "cpu"
    curve.save(tmp_path / "curve.json")
    assert bt.load_result(tmp_path / "curve.json") == curve


def test_results_without_a_device_can_be_read(tmp_path):
    curve = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.3, 1], horizon=20, runs=3)
    data = json.loads(curve.to_json())
    assert data["setup"].pop("device") == "cpu"
    assert bt.results.from_json(json.dumps(data)) == curve
    (tmp_path / "old.json").write_text(json.dumps(data))
    assert bt.load_result(tmp_path / "old.json").setup.device == "cpu"
    del data["setup"]["horizon"]
    with pytest.raises(bt.InvalidRequest, match="must have the fields"):
        bt.results.from_json(json.dumps(data))


def read_checks(process):
    """The checks of the doctor by name."""
    data = json.loads(process.stdout)
    assert set(data) == {"works", "checks"}
    assert data["works"] == (process.returncode == 0)
    return {check["check"]: check for check in data["checks"]}


def test_the_doctor_passes_without_a_gpu(run_banditune, environment_without_gpu):
    process = run_banditune("doctor", **environment_without_gpu)
    assert process.returncode == 0, process.stderr
    assert "NOT OK" not in process.stdout
    assert process.stdout.endswith("All checks passed.\n")
    assert re.search(r"^simulates on the CPU +ok +yes", process.stdout, re.M)


def test_the_doctor_fails_where_a_requested_gpu_is_missing(run_banditune, environment_without_gpu):
    process = run_banditune("doctor", "--device", "gpu", "--json", **environment_without_gpu)
    assert process.returncode == 1, process.stderr
    named_checks = read_checks(process)
    assert named_checks["simulates on the CPU"]["works"]
    assert named_checks["GPU"] == {"check": "GPU", "finding": "none", "works": None, "advice": ""}
    assert named_checks["simulates on the GPU"]["works"] is False
    assert "no GPU can be reached" in named_checks["simulates on the GPU"]["advice"]


def test_the_doctor_checks_the_cpu_alone_on_request(run_banditune, environment_without_gpu):
    named_checks = read_checks(run_banditune("doctor", "--device", "cpu", "--json", **environment_without_gpu))
    assert set(named_checks) == {"versions", "cores", "cache folder", "simulates on the CPU"}
    process = run_banditune("doctor", "--device", "tpu", **environment_without_gpu)
    assert process.returncode == 2
    assert "--device must be one of" in process.stderr


def test_the_doctor_fails_where_a_gpu_cannot_be_used(run_banditune, tmp_path):
    environment = hide_gpus(tmp_path, "echo 'NVIDIA H200, 580.1, 141000 MiB'")
    process = run_banditune("doctor", "--json", **environment)
    assert process.returncode == 1
    named_checks = read_checks(process)
    assert named_checks["GPU"]["finding"] == "NVIDIA H200, driver 580.1, 141000 MiB free"
    assert named_checks["GPU"]["works"] is None
    assert named_checks["simulates on the GPU"]["works"] is False


def test_the_doctor_fails_where_the_cache_folder_cannot_be_written(run_banditune, environment_without_gpu, tmp_path):
    (tmp_path / "file").write_text("")
    # Plain Python, because without a cache everything would be compiled.
    options = {"BANDITUNE_CACHE": str(tmp_path / "file" / "below"), "NUMBA_DISABLE_JIT": "1"}
    process = run_banditune("doctor", "--device", "cpu", **options, **environment_without_gpu)
    assert process.returncode == 1
    assert re.search(r"^cache folder +NOT OK +.*/file/below cannot be written$", process.stdout, re.M)
    assert "set BANDITUNE_CACHE" in process.stdout
    assert process.stdout.endswith("A check failed: see above.\n")


@pytest.mark.slow
def test_the_doctor_passes_in_cudas_simulator(run_banditune, environment_without_gpu):
    process = run_banditune("doctor", "--device", "gpu", "--json", NUMBA_ENABLE_CUDASIM="1", **environment_without_gpu)
    named_checks = read_checks(process)
    assert named_checks["simulates on the GPU"]["works"]
    assert "simulator" in named_checks["GPU"]["finding"]
    assert process.returncode == 0
