"""The GPU's engine without a GPU: kernels as PTX, the engine in CUDA's simulator, what is said where none can be used."""

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
from conftest import ROOT
from helpers.lowering import lowered, lowered_drawing, ptx
from helpers.owned import OWN, OWN_PROBLEM
from helpers.policy_problem_pairs import PAIRS, POLICIES
from helpers.policy_problem_pairs import SMALL as PROBLEMS
from helpers.scratch import SOFTMAX
from helpers.settings import group_settings

PRECISION = {"linucb": "float64", "lints": "float64", "ucb-glm": "float32", "glm-tsl": "float32"}
"""What teams play in on problems of the paper's size."""


def is_a_kernel(code):
    """Whether PTX holds one kernel, for the GPU that was asked for."""
    return len(re.findall(r"^\s*\.visible \.entry ", code, re.M)) == 1 and ".target sm_90" in code


def called(code):
    """The functions of ours that stay calls."""
    return set(re.findall(rf"\.func .*{cuda_targets.NOINLINE_PREFIX}(\w+?)_[0-9a-f]{{20}}", code))


def thread_plan(policy, problem, shortcut=True, precision="float64"):
    planned = launch_plan.plan_launch(SimulationSpec(policy, problem, 50, use_shortcut=shortcut), precision)
    assert planned.target is cuda_targets.THREAD_TARGETS[precision]
    assert planned.slots["dtype"] is getattr(np, precision)
    assert planned.threads_per_run == 1
    return planned


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (bt.UCB1(noise=0.5), bt.Bernoulli(arms=4)),
        (bt.UCB1(noise=0.5), bt.Gaussian(arms=4)),
        (bt.EpsilonGreedy(), bt.Bernoulli(arms=4)),
        (OWN, OWN_PROBLEM),
        (SOFTMAX, OWN_PROBLEM),
        (bt.policies.LinGreedy(prior=(0, 1), noise=0.5), bt.Logistic(arms=4, dims=3)),
        pytest.param(bt.policies.GLMGreedy(prior=(0, 1)), bt.Logistic(arms=4, dims=3), marks=pytest.mark.slow),
    ],
    ids=["index", "stay", "plain loop", "own", "scratch arrays", "ridge regression", "logistic regression"],
)
def test_every_kind_of_kernel_for_a_thread_is_compiled(policy, problem):
    assert is_a_kernel(lowered(thread_plan(policy, problem)))


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_thompson_samplings_long_code_stays_calls(precision):
    """Pasted in everywhere, it would not fit into the caches of instructions."""
    code = lowered(thread_plan(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=4), precision=precision))
    assert is_a_kernel(code)
    assert called(code)
    assert ("ex2.approx.ftz.f32" in code) == (precision == "float32")


def test_threads_play_in_single_precision_where_it_is_declared():
    short, long = (
        SimulationSpec(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=4), horizon) for horizon in (20_000, 20_001)
    )
    assert launch_plan.plan_launch(short).target is cuda_targets.THREAD_TARGETS["float32"]
    assert launch_plan.plan_launch(short, "float64").target is cuda_targets.THREAD_TARGETS["float64"]
    assert launch_plan.plan_launch(long).target is cuda_targets.THREAD_TARGETS["float64"]
    for other in (
        SimulationSpec(bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=4), 50, use_shortcut=False),
        SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=4), 50),
    ):
        assert (
            launch_plan.plan_launch(other).target
            is launch_plan.plan_launch(other, "float32").target
            is cuda_targets.THREAD_TARGETS["float64"]
        )


def test_widths_at_which_single_precision_was_not_compared_are_played_in_double():
    linear, logistic = bt.Linear(arms=4, dims=3), bt.Logistic(arms=4, dims=3)
    cases = [
        (bt.Thompson(prior=(9, 9)), bt.Bernoulli(arms=4)),
        (bt.UCBGLM(prior=(0, 1), noise=0.5), logistic),
        (bt.GLMTSL(prior=(0, 1)), logistic),
    ]
    for policy, problem in cases:
        spec = SimulationSpec(policy, problem, 50)
        kinds = [launch_plan.select_row_dtype(spec, np.array([width])) for width in (0.5, 1.0, 1.5)]
        assert kinds == [None, None, "float64"]
    # Of these the teams play in float64 in any case.
    assert (
        launch_plan.select_row_dtype(SimulationSpec(bt.LinUCB(prior=(0, 1), noise=0.5), linear, 50), np.array([1.5]))
        is None
    )


@pytest.mark.parametrize("mark", [noinline, noinline_on_gpu, bt.kernel.scalar])
def test_marked_functions_stay_calls(mark):
    @mark
    def score_of(total, pulls):
        return total / (pulls + 1.0)

    @bt.kernel.scalar
    def choose(state, setting, step, params, stream):
        return 1 if score_of(state.total[1], state.pulls[1]) > score_of(state.total[0], state.pulls[0]) else 0

    code = lowered(thread_plan(bt.define_policy("marked", choose), bt.Bernoulli(arms=2)))
    assert called(code) == (set() if mark is bt.kernel.scalar else {"score_of"})


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
def test_every_kernel_for_a_team_is_compiled(policy, problem):
    planned = launch_plan.plan_launch(SimulationSpec(policy, problem, 50))
    assert planned.target is cuda_targets.WARP_TARGETS[PRECISION[policy.name]]
    assert planned.threads_per_run == 32
    code = lowered(planned)
    assert is_a_kernel(code)
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
def test_a_team_has_the_target_of_its_precision(policy):
    """Targets have names of their own, by which kernels are kept."""
    spec = SimulationSpec(policy, bt.Logistic(arms=4, dims=3), 50)
    for precision in ("float64", "float32"):
        planned = launch_plan.plan_launch(spec, precision)
        assert planned.target is cuda_targets.WARP_TARGETS[precision]
        assert planned.slots["dtype"] is getattr(np, precision)
    assert launch_plan.plan_launch(spec).target is cuda_targets.WARP_TARGETS[PRECISION[policy.name]]
    targets = [*cuda_targets.THREAD_TARGETS.values(), cuda_targets.PREDRAW_TARGET, *cuda_targets.WARP_TARGETS.values()]
    assert (
        len({target.name for target in targets}) == len({(target.name, target.cache_suffix) for target in targets}) == 5
    )


def test_the_kernel_that_draws_ahead_is_compiled():
    assert is_a_kernel(lowered_drawing(bt.Gaussian(arms=4)))


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "problem"), PAIRS)
def test_every_policy_on_every_problem_is_compiled(policy, problem):
    """With and without shortcuts, and in both precisions; a kernel that several use once."""
    plans = {}
    for shortcut in (True, False):
        spec = build_spec(
            POLICIES[policy](), PROBLEMS[problem](), horizon=50, simulation=bt.Simulation(shortcuts=shortcut)
        )
        for precision in ("float64", "float32"):
            planned = launch_plan.plan_launch(spec, precision)
            plans[bind.bind_function(planned.kernel, planned.slots)[1]] = planned
    assert plans
    for planned in plans.values():
        assert is_a_kernel(lowered(planned))


@pytest.mark.slow
@pytest.mark.parametrize("problem", PROBLEMS)
def test_every_problems_rewards_can_be_drawn_ahead(problem):
    assert is_a_kernel(lowered_drawing(PROBLEMS[problem]()))


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
def test_teams_with_several_arms_a_thread_are_compiled(policy, arms, dims):
    planned = launch_plan.plan_launch(SimulationSpec(policy, bt.Logistic(arms=arms, dims=dims), 50))
    assert planned.target is cuda_targets.WARP_TARGETS[PRECISION[policy.name]]
    assert is_a_kernel(lowered(planned))


@pytest.mark.parametrize("exact", [True, False])
def test_exact_code_rounds_products_as_a_cpu_does(exact):
    def multiply_and_add(a, b, c, out):
        out[0] = a * b + c

    signature = (types.float64, types.float64, types.float64, types.float64[::1])
    code = ptx(bind.bind_function(multiply_and_add)[0], signature, exact=exact)
    assert ("fma.rn.f64" in code) != exact
    assert ("mul.rn.f64" in code) == exact
    # Somebody else's kernel is compiled as ever, even meanwhile.
    assert "fma.rn.f64" in ptx(multiply_and_add, signature, exact=exact)


def test_a_compiler_is_told_only_while_it_is_ours():
    before = nvvm.compile_ir
    with cuda_targets.set_nvvm_options(True, True):
        assert nvvm.compile_ir is not before
    assert nvvm.compile_ir is before
    with pytest.raises(ZeroDivisionError), cuda_targets.set_nvvm_options(True, True):
        raise ZeroDivisionError
    assert nvvm.compile_ir is before


class SecondScore(bt.LinUCB):
    choose = staticmethod(lambda state, setting, step, params, stream: 1)


@bt.kernel.scalar
def reward_by_step(instance, arm, pull, step, stream):
    return 1.0 if step < 5 else 0.0


@bt.kernel.scalar
def pays_five(instance, arm, pull, step, stream):
    return 5.0


def test_a_problem_must_keep_its_word_on_a_gpu_too():
    problem = bt.define_problem("five", lambda size, rng: rng.random((size, 2)), pays_five, arms=2, rewards="unit")
    with pytest.raises(bt.SimulationError, match=r"rewards of 'five' must be in \[0, 1\]"):
        gpu_scheduler.simulate_rows_on_gpu(SimulationSpec(bt.UCB1(noise=0.5), problem, 5), np.ones((1, 1)), range(2))


def test_teams_are_chosen_where_they_play_the_policy_and_only_there():
    linear = bt.Linear(arms=40, dims=3)
    by_step = bt.define_problem("by step", lambda size, rng: rng.random((size, 4)), reward_by_step, arms=4)
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
        kernel_selection.select_warp_version(SimulationSpec(SecondScore(prior=(0, 1), noise=0.5), linear, 50)) is None
    )
    assert kernel_selection.select_warp_version(SimulationSpec(bt.LinUCB(prior=(0, 1), noise=0.5), by_step, 50)) is None
    assert kernel_selection.select_warp_version(SimulationSpec(bt.UCB1(noise=0.5), linear, 50)) is None


def test_fewer_teams_share_a_block_where_they_need_more_memory(monkeypatch):
    spec = SimulationSpec(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=40, dims=3), 50)
    blocks = []
    for size in (48 << 10, 6 << 10, 3 << 10, 1 << 10):
        monkeypatch.setattr(launch_plan, "SHARED_MEMORY_LIMIT", size)
        planned = launch_plan.plan_launch(spec)
        blocks.append((planned.threads_per_run, planned.threads_per_block))
    assert blocks == [(32, 128), (32, 64), (32, 32), (1, launch_plan.THREADS_PER_BLOCK)]


@pytest.mark.parametrize("size", [1, 7, 8, 9, 100, 1000, 12345, 1 << 20])
def test_rooms_are_large_enough_and_not_much_larger(size):
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
    text = r"must fit into 1/32 of the GPU's free memory, but it needs 3,814\.7 of 32\.0 MiB; ask for fewer values"
    with pytest.raises(bt.InvalidRequest, match=text):
        gpu_memory.GpuMemoryPlan(spec, launch_plan.plan_launch(spec), rows=10_000_000, checkpoints=50)


def test_pieces_fit_into_memory(monkeypatch):
    """Inputs, rewards drawn ahead and results of all pieces under way, in half of what is free."""
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
def test_a_piece_has_enough_threads_and_not_many_more(monkeypatch, policy, problem):
    monkeypatch.setattr(gpu_memory, "measure_free_gpu_memory", lambda: 1 << 40)
    monkeypatch.setattr(compilation, "compile_kernel", lambda *_: None)
    spec = SimulationSpec(policy, problem, 50)
    planned = launch_plan.plan_launch(spec)
    threads = 70 * planned.threads_per_run * gpu_memory.GpuMemoryPlan(spec, planned, rows=70, checkpoints=1).max_runs
    assert gpu_memory.THREADS_PER_CHUNK <= threads < gpu_memory.THREADS_PER_CHUNK + 70 * planned.threads_per_run
    assert gpu_memory.GpuMemoryPlan(spec, planned, rows=10_000_000, checkpoints=1).max_runs == 1
    assert gpu_memory.GpuMemoryPlan(spec, planned, rows=1, checkpoints=1).max_runs == gpu_memory.MAX_RUNS_PER_CHUNK


@pytest.mark.parametrize(
    ("which", "plain"),
    [("not slow", "1"), pytest.param("slow or not slow", "0", marks=pytest.mark.slow)],
    ids=["plain Python", "compiled"],
)
def test_the_engine_in_cudas_simulator(which, plain):
    """See `simulated.py`. The CPU's kernels, which it is compared with, are plain Python or compiled."""
    options = [
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        which,
        str(ROOT / "tests" / "helpers" / "simulated.py"),
    ]
    environment = os.environ | {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": plain}
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
def no_gpu(tmp_path):
    """The environment of a machine without a GPU, whatever this one has."""
    return hidden(tmp_path, "exit 9")


def hidden(folder, smi):
    """GPUs out of sight, and an `nvidia-smi` of our own."""
    (folder / "bin").mkdir()
    program = folder / "bin" / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{smi}\n")
    program.chmod(0o755)
    return {"CUDA_VISIBLE_DEVICES": "-1", "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}


def drive(monkeypatch, available, count):
    """As if CUDA's driver were there or not, and knew of so many GPUs."""
    monkeypatch.setattr(driver, "driver", SimpleNamespace(is_available=available, get_device_count=count))


@pytest.fixture
def out_of_reach(monkeypatch):
    """As if no GPU could be reached."""
    drive(monkeypatch, False, lambda: 0)


@pytest.mark.parametrize("available", [False, True], ids=["no driver", "no GPU"])
def test_devices_without_a_gpu(monkeypatch, available):
    drive(monkeypatch, available, lambda: 0)
    assert devices.resolve_device("cpu") == "cpu"
    assert devices.resolve_device("auto") == "cpu"
    with pytest.raises(
        bt.InvalidRequest,
        match=r'device="gpu" needs an NVIDIA GPU.* but no GPU can be reached; `nvidia-smi` must show one',
    ):
        devices.resolve_device("gpu")


def test_devices_with_a_gpu(monkeypatch):
    monkeypatch.setattr(devices, "explain_missing_gpu", lambda: None)
    assert [devices.resolve_device(device) for device in ("cpu", "gpu", "auto")] == ["cpu", "gpu", "gpu"]


@pytest.mark.parametrize("device", ["cuda", "GPU", "", None, 0])
def test_other_devices_are_refused(device):
    with pytest.raises(bt.InvalidRequest, match="`device` must be one of 'cpu', 'gpu', 'auto', but got"):
        devices.resolve_device(device)


def test_what_is_missing_is_named_with_how_to_get_it(monkeypatch):
    monkeypatch.setattr(devices, "find_spec", lambda name: None)
    with pytest.raises(
        bt.InvalidRequest, match=r"numba-cuda is not installed; pip install 'banditune\[gpu\]' brings it\.$"
    ):
        devices.resolve_device("gpu")
    assert devices.resolve_device("auto") == "cpu"
    monkeypatch.undo()
    drive(monkeypatch, True, lambda: 1)
    monkeypatch.setattr(nvvm, "is_available", lambda: True)
    assert devices.explain_missing_gpu() is None
    monkeypatch.setattr(nvvm, "is_available", lambda: False)
    assert (
        devices.explain_missing_gpu()
        == f"the compiler for GPUs (NVVM) is missing; {devices.GPU_INSTALL_COMMAND} brings it"
    )
    drive(monkeypatch, True, lambda: 1 / 0)
    assert "numba-cuda does not work here (ZeroDivisionError" in devices.explain_missing_gpu()


@pytest.mark.usefixtures("out_of_reach")
def test_every_verb_refuses_a_gpu_that_is_not_there():
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


def test_the_command_line_refuses_a_gpu_that_is_not_there(banditune, no_gpu):
    small = ["--problem", "bernoulli", "--arms", "3", "--horizon", "20", "--device", "gpu"]
    for command in (["tune"], ["curve"], ["compare", "--policy", "ts"]):
        process = banditune(*command, "--policy", "ucb1", *small, **no_gpu)
        assert process.returncode == 2
        assert process.stdout == ""
        assert process.stderr.count("\n") == 1
        assert process.stderr.startswith("banditune: --device gpu needs an NVIDIA GPU")


@pytest.mark.usefixtures("out_of_reach")
def test_results_record_the_device(tmp_path):
    curve = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.3, 1], horizon=20, runs=3, run=bt.Run(device="auto"))
    assert curve.setup.device == "cpu"
    curve.save(tmp_path / "curve.json")
    assert bt.load_result(tmp_path / "curve.json") == curve


def test_results_of_times_before_devices_can_be_read(tmp_path):
    curve = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.3, 1], horizon=20, runs=3)
    data = json.loads(curve.to_json())
    assert data["setup"].pop("device") == "cpu"
    assert bt.results.from_json(json.dumps(data)) == curve
    (tmp_path / "old.json").write_text(json.dumps(data))
    assert bt.load_result(tmp_path / "old.json").setup.device == "cpu"
    del data["setup"]["horizon"]
    with pytest.raises(bt.InvalidRequest, match="must hold the fields"):
        bt.results.from_json(json.dumps(data))


def checks(process):
    """The doctor's findings by name."""
    data = json.loads(process.stdout)
    assert set(data) == {"works", "checks"}
    assert data["works"] == (process.returncode == 0)
    return {check["what"]: check for check in data["checks"]}


def test_the_doctor_of_a_machine_without_a_gpu(banditune, no_gpu):
    process = banditune("doctor", **no_gpu)
    assert process.returncode == 0, process.stderr
    assert "NOT OK" not in process.stdout
    assert process.stdout.endswith("All checks passed.\n")
    assert re.search(r"^plays on the CPU +ok +yes", process.stdout, re.M)


def test_the_doctor_misses_a_gpu_that_is_asked_for(banditune, no_gpu):
    process = banditune("doctor", "--device", "gpu", "--json", **no_gpu)
    assert process.returncode == 1, process.stderr
    found = checks(process)
    assert found["plays on the CPU"]["works"]
    assert found["GPU"] == {"what": "GPU", "found": "none", "works": None, "advice": ""}
    assert found["plays on the GPU"]["works"] is False
    assert "no GPU can be reached" in found["plays on the GPU"]["advice"]


def test_the_doctor_looks_at_the_cpu_alone_if_told(banditune, no_gpu):
    found = checks(banditune("doctor", "--device", "cpu", "--json", **no_gpu))
    assert set(found) == {"versions", "cores", "cache folder", "plays on the CPU"}
    process = banditune("doctor", "--device", "tpu", **no_gpu)
    assert process.returncode == 2
    assert "--device must be one of" in process.stderr


def test_the_doctor_misses_a_gpu_that_is_there_but_cannot_be_used(banditune, tmp_path):
    environment = hidden(tmp_path, "echo 'NVIDIA H200, 580.1, 141000 MiB'")
    process = banditune("doctor", "--json", **environment)
    assert process.returncode == 1
    found = checks(process)
    assert found["GPU"]["found"] == "NVIDIA H200, driver 580.1, 141000 MiB free"
    assert found["GPU"]["works"] is None
    assert found["plays on the GPU"]["works"] is False


def test_the_doctor_of_a_folder_that_cannot_be_written(banditune, no_gpu, tmp_path):
    (tmp_path / "file").write_text("")
    # Plain Python, because without a cache all is compiled.
    options = {"BANDITUNE_CACHE": str(tmp_path / "file" / "below"), "NUMBA_DISABLE_JIT": "1"}
    process = banditune("doctor", "--device", "cpu", **options, **no_gpu)
    assert process.returncode == 1
    assert re.search(r"^cache folder +NOT OK +.*/file/below cannot be written$", process.stdout, re.M)
    assert "set BANDITUNE_CACHE" in process.stdout
    assert process.stdout.endswith("A check failed: see above.\n")


@pytest.mark.slow
def test_the_doctor_in_cudas_simulator(banditune, no_gpu):
    process = banditune("doctor", "--device", "gpu", "--json", NUMBA_ENABLE_CUDASIM="1", **no_gpu)
    found = checks(process)
    assert found["plays on the GPU"]["works"]
    assert "simulator" in found["GPU"]["found"]
    assert process.returncode == 0
