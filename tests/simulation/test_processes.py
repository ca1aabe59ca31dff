"""Child processes: the same numbers, and what happens when one of them fails."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Pipe

import numpy as np
import pytest

import banditune as bt
from banditune.simulation import chunks
from banditune.simulation.executors import processes, transport
from helpers.paths import ROOT
from helpers.settings import group_settings
from helpers.user_code import USER_POLICY, USER_PROBLEM

PROBLEM = bt.Bernoulli(arms=3)


SHORT = {"horizon": 50, "runs": 700}


@pytest.fixture(scope="module")
def two_processes():
    with bt.executors.ProcessExecutor(2) as cluster:
        yield cluster


@bt.kernel.scalar
def choose_nan(state, setting, step, params, stream):
    return math.nan if step == 7 else 0


@bt.kernel.scalar
def choose_endless(state, setting, step, params, stream):
    while step > 3:
        step = step + 1
    return 0


def test_processes_have_the_regrets_of_one_thread(two_processes):
    closed_over = 0.5

    @bt.kernel.scalar
    def choose_locally(state, setting, step, params, stream):
        return (
            bt.kernel.draw_arm(state, stream)
            if bt.kernel.uniform(stream) < closed_over * params[0]
            else bt.kernel.argmax_mean(state)
        )

    local_policy = bt.define_policy("here", choose_locally, parameters=[bt.Parameter("share", 0, 1, textbook=0.2)])
    for policy, problem in ((bt.UCB1(noise=0.5), PROBLEM), (local_policy, PROBLEM), (USER_POLICY, USER_PROBLEM)):
        options = SHORT | {"common_random_numbers": False, "regret": "realised", "checkpoints": [20, 50]}
        regrets = bt.simulate(policy, problem, [0.2, 0.7], **group_settings(workers=1, **options))
        assert (
            regrets.tobytes()
            == bt.simulate(policy, problem, [0.2, 0.7], **group_settings(executor=two_processes, **options)).tobytes()
        )


def test_a_tuning_is_the_same_with_any_executor_and_store(two_processes, tmp_path):
    options = {"horizon": 100, "budget": 300, "validate": 300, "include": ("no_lower_bound",)}
    tuning = bt.tune(bt.UCB1(noise=0.5), PROBLEM, **group_settings(workers=1, **options)).to_json()
    assert (
        bt.tune(
            bt.UCB1(noise=0.5), PROBLEM, **group_settings(executor=two_processes, store=tmp_path / "book", **options)
        ).to_json()
        == tuning
    )
    assert (
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, **group_settings(workers=2, store=tmp_path / "book", **options)).to_json()
        == tuning
    )


def test_a_missing_package_of_a_process_is_named(two_processes, problem_of_missing_package):
    with pytest.raises(
        bt.InvalidRequest,
        match=r"process \d+ does not have module 'elsewhere'; install the same packages there, or keep",
    ):
        bt.simulate(
            bt.UCB1(noise=0.5), problem_of_missing_package, horizon=10, runs=3, run=bt.Run(executor=two_processes)
        )


def test_a_killed_child_is_replaced(monkeypatch):
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 200_000)
    work = {"horizon": 2000, "runs": 3000, "shortcuts": False}
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(workers=1, **work))
    with bt.executors.ProcessExecutor(2) as cluster:
        killed = []

        def progress(done, total):
            if not killed and done > total / 5:
                killed.extend(child.process.pid for child in cluster.children)
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

        assert (
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(executor=cluster, progress=progress, **work))
            == regrets
        ).all()
        assert len(killed) == 2
        assert not {child.process.pid for child in cluster.children} & set(killed)


def test_a_child_that_cannot_start_is_an_error(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(
        bt.SimulationError,
        match=r"must start, but the system did not allow it \(No such file or directory\); use fewer",
    ):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(executor="processes", workers=1, **SHORT))


def test_the_pipe_of_a_child_that_cannot_start_is_closed(monkeypatch):
    pipes = []
    monkeypatch.setattr(processes, "Pipe", lambda: pipes.extend(Pipe()) or pipes)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(bt.SimulationError, match="must start"):
        processes.start_child()
    assert [end.closed for end in pipes] == [True, True]


def test_pipes_of_children_are_closed():
    with bt.executors.ProcessExecutor(1) as cluster:
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(executor=cluster, **SHORT))
        (idle,) = cluster.children
    assert idle.pipe.closed
    busy = processes.start_child()
    with busy.using:
        busy.end()
        assert not busy.pipe.closed  # a thread still reads from it
    busy.end()
    assert busy.pipe.closed


def test_a_child_with_other_versions_is_ended(monkeypatch):
    started = []
    start = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *arguments, **options: started.append(start(*arguments, **options)) or started[-1]
    )
    ours = transport.identify_worker()
    other = transport.WorkerIdentity(ours.name, ours.versions | {"numpy": "0.0"})
    monkeypatch.setattr(transport, "identify_worker", lambda: other)
    with pytest.raises(bt.InvalidRequest, match=r"has numpy [\d.]+ \(here 0.0\)"):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(executor="processes", workers=1, **SHORT))
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def test_runs_that_end_their_process_are_an_error(two_processes):
    def sample(size, rng):
        os._exit(3)

    deadly = bt.define_problem("deadly", sample, PROBLEM.reward, arms=2)
    with pytest.raises(
        bt.SimulationError, match=r"'deadly' .* lost their worker 3 times \(at last: it ended with code 3\)"
    ):
        bt.simulate(bt.UCB1(noise=0.5), deadly, horizon=10, runs=1, run=bt.Run(executor=two_processes))
    assert np.isfinite(
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(executor=two_processes, **SHORT))
    ).all()


def test_errors_in_a_process_name_run_and_step(two_processes):
    with pytest.raises(bt.SimulationError, match=r"the policy 'nan' chose nan at step 7 of run \d+ "):
        bt.simulate(
            bt.define_policy("nan", choose_nan), PROBLEM, horizon=10, runs=300, run=bt.Run(executor=two_processes)
        )

    @bt.kernel.scalar
    def reward_nan(instance, arm, pull, step, stream):
        return math.nan if bt.kernel.uniform(stream) < 0.2 else 1.0

    problem = bt.define_problem("unpaid", lambda size, rng: rng.random((size, 2)), reward_nan, arms=2)
    with pytest.raises(bt.SimulationError, match=r"'unpaid' paid another for arm 0 at step \d+ of run \d+ "):
        bt.simulate(bt.UCB1(noise=0.5), problem, horizon=20, runs=300, run=bt.Run(executor=two_processes))


def test_an_endless_policy_is_ended_at_the_time_limit():
    start = time.monotonic()
    endless = bt.define_policy("endless", choose_endless)
    with pytest.raises(
        bt.SimulationError,
        match=r"at most 0.5 s with this time limit, but runs \d+ to \d+ of the policy 'endless' on",
    ):
        bt.simulate(endless, PROBLEM, horizon=10, runs=10, run=bt.Run(time_limit=0.5, workers=1))
    assert time.monotonic() - start < 60


def test_an_endless_sample_is_ended(monkeypatch):
    driver = os.getpid()

    def sample(size, rng):
        while os.getpid() != driver:
            pass
        return rng.random((size, 2))

    monkeypatch.setattr(processes, "PREPARATION_TIME_LIMIT", 3.0)
    problem = bt.define_problem("stuck", sample, PROBLEM.reward, arms=2)
    with pytest.raises(
        bt.SimulationError, match=r"must be compiled within 3 s .* on the problem 'stuck' took longer; raise"
    ):
        bt.simulate(bt.UCB1(noise=0.5), problem, horizon=10, runs=10, run=bt.Run(time_limit=0.5, workers=1))


def test_children_end_with_their_driver(tmp_path):
    code = f"""
import sys
sys.path[:0] = [{str(ROOT / "tests")!r}, {str(ROOT / "tests" / "simulation")!r}]
import banditune as bt
from test_processes import PROBLEM, choose_endless
with bt.executors.ProcessExecutor(1) as cluster:
    bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=10, runs=10, run=bt.Run(executor=cluster))
    print(*(child.process.pid for child in cluster.children), flush=True)
    bt.simulate(bt.define_policy("endless", choose_endless), PROBLEM, horizon=10, runs=10, run=bt.Run(executor=cluster))
"""
    driver = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    child = int(driver.stdout.readline())
    time.sleep(0.5)
    driver.kill()
    driver.wait()
    driver.stdout.close()
    deadline = time.monotonic() + 20
    while is_alive(child):
        assert time.monotonic() < deadline
        time.sleep(0.05)


def is_alive(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


@pytest.mark.slow
def test_processes_work_without_a_cache(run_python):
    code = """
import banditune as bt
usual = {"horizon": 20, "runs": 3, "simulation": bt.Simulation(shortcuts=False)}
run = bt.Run(executor="processes", workers=1)
print(bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), run=run, **usual)[0].tolist())
"""
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=20, runs=3, simulation=bt.Simulation(shortcuts=False))[
        0
    ].tolist()
    process = run_python(code, BANDITUNE_CACHE="/proc/nowhere")
    assert process.returncode == 0, process.stderr
    assert process.stdout.strip() == str(regrets)


def test_the_command_line_simulates_in_processes(run_banditune):
    command = [
        "curve",
        "--policy",
        "ucb1",
        "--problem",
        "bernoulli",
        "--arms",
        "3",
        "--horizon",
        "50",
        "--runs",
        "100",
        "--values",
        "0.2,1",
        "--json",
    ]
    process, in_processes = (
        run_banditune(*command),
        run_banditune(*command, "--executor", "processes", "--time-limit", "60", "--workers", "2"),
    )
    assert (in_processes.returncode, in_processes.stderr) == (0, "")
    assert in_processes.stdout == process.stdout
    assert run_banditune(*command, "--executor", "moon").returncode == 2
