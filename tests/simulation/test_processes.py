"""Child processes, what travels to them, and what happens when something breaks."""

from __future__ import annotations

import ast
import math
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.connection import Pipe

import numpy as np
import pytest

import banditune as bt
from banditune.core import arrays
from banditune.simulation import chunks, memory, scheduler
from banditune.simulation.executor import ChunkResult, Executor, ExecutorSession, LostChunk
from banditune.simulation.executors import processes, threads, transport
from banditune.simulation.simulator import Simulator
from banditune.storage import store_tables
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.requests import build_spec
from conftest import ROOT
from helpers.owned import OWN, OWN_PROBLEM
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)
SHORT = {"horizon": 50, "runs": 700}


@pytest.fixture(scope="module")
def two():
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


# What travels


def test_children_play_the_same_bits_as_one_thread(two):
    closed_over = 0.5

    @bt.kernel.scalar
    def choose_here(state, setting, step, params, stream):
        return (
            bt.kernel.draw_arm(state, stream)
            if bt.kernel.uniform(stream) < closed_over * params[0]
            else bt.kernel.argmax_mean(state)
        )

    here = bt.define_policy("here", choose_here, parameters=[bt.Parameter("share", 0, 1, textbook=0.2)])
    for policy, problem in ((bt.UCB1(noise=0.5), PROBLEM), (here, PROBLEM), (OWN, OWN_PROBLEM)):
        usual = SHORT | {"noise": "own", "regret": "realised", "at": [20, 50]}
        regrets = bt.simulate(policy, problem, [0.2, 0.7], **group_settings(jobs=1, **usual))
        assert (
            regrets.tobytes()
            == bt.simulate(policy, problem, [0.2, 0.7], **group_settings(cluster=two, **usual)).tobytes()
        )


def test_a_tuning_is_the_same_with_a_ledger_on_any_place(two, tmp_path):
    options = {"horizon": 100, "budget": 300, "validate": 300, "floor": False}
    tuning = bt.tune(bt.UCB1(noise=0.5), PROBLEM, **group_settings(jobs=1, **options)).to_json()
    assert (
        bt.tune(
            bt.UCB1(noise=0.5), PROBLEM, **group_settings(cluster=two, ledger=tmp_path / "book", **options)
        ).to_json()
        == tuning
    )
    assert (
        bt.tune(bt.UCB1(noise=0.5), PROBLEM, **group_settings(jobs=2, ledger=tmp_path / "book", **options)).to_json()
        == tuning
    )


def test_a_script_needs_no_guard_and_its_own_functions_travel(run_python):
    code = """
import banditune as bt

@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    return bt.kernel.draw_arm(state, stream) if bt.kernel.uniform(stream) < params[0] else bt.kernel.argmax_mean(state)

print("once")
mine = bt.define_policy("mine", choose, parameters=[bt.Parameter("epsilon", 0, 1, textbook=0.1)])
first, second = (bt.simulate(mine, bt.Bernoulli(arms=3), horizon=50, runs=300, run=bt.Run(executor=name, workers=2))
                 for name in ("threads", "processes"))
print((first == second).all())
"""
    process = run_python(code)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == ["once", "True"]


def test_a_policy_from_a_file_travels_and_binds_to_the_same_code(tmp_path):
    from banditune.registry import load_from_file

    (tmp_path / "helper.py").write_text(
        "import banditune as bt\n\n\n@bt.kernel.scalar\ndef lowest(state):\n    return 0\n"
    )
    (tmp_path / "own_file.py").write_text(
        "import banditune as bt\nfrom helper import lowest\n\n\n@bt.kernel.scalar\n"
        "def choose(state, setting, step, params, stream):\n    return lowest(state)\n\n\n"
        "policy = bt.define_policy('filed', choose)\n"
    )
    spec = build_spec(
        load_from_file("policy", f"{tmp_path}/own_file.py:policy", bt.kernel.Policy, {}), PROBLEM, horizon=10
    )
    recipe = transport.pack_spec(spec)
    code = (
        "import pickle, sys\nfrom banditune.simulation.executors.transport import digest_spec_code\n"
        "print(digest_spec_code(pickle.loads(bytes.fromhex(sys.stdin.read()))))"
    )
    # In another folder, where the user's files are not.
    process = subprocess.run(
        [sys.executable, "-c", code], input=recipe.payload.hex(), capture_output=True, text=True, cwd="/"
    )
    assert process.stdout.strip() == recipe.code_digest, process.stderr


def test_a_job_is_small_and_made_ready_once(monkeypatch):
    spec = build_spec(bt.exact.Gittins(prior=(1, 1)), PROBLEM, horizon=30)
    recipe = transport.pack_spec(spec)
    assert len(recipe.payload) < 2000  # the table is not in it
    made = []
    monkeypatch.setattr("banditune.simulation.simulator.Simulator", lambda spec: made.append(spec) or Simulator(spec))
    for first in (0, 5, 10):
        transport.simulate_packed_chunk(recipe, ([[0.0]], 0, range(first, first + 5)))
    assert len(made) == 1


def test_what_cannot_travel_is_a_sentence():
    lock = threading.Lock()

    def sample(size, rng):
        return lock

    stuck = bt.define_problem("stuck", sample, PROBLEM.reward, arms=2)
    with pytest.raises(bt.InvalidRequest, match=r"'stuck' must be sent to other processes, but it cannot be pickled"):
        transport.pack_spec(build_spec(bt.UCB1(noise=0.5), stuck, horizon=10))


@pytest.mark.parametrize("part", ["banditune", "numpy", "numba", "python"])
def test_a_worker_with_other_versions_is_refused_with_a_sentence(part):
    name, versions = transport.identify_worker()
    transport.check_worker_versions((name, versions))
    with pytest.raises(
        bt.InvalidRequest, match=rf"process \d+ has {part} 0.0 \(here [\d.]+\); install the same versions"
    ):
        transport.check_worker_versions((name, versions | {part: "0.0"}))


def test_a_worker_with_other_code_is_refused_with_a_sentence():
    recipe = transport.pack_spec(build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=10))
    answered = transport.simulate_packed_chunk(
        recipe._replace(digest="another", code_digest="other"), ([[1.0]], 0, range(5))
    )
    with pytest.raises(bt.InvalidRequest, match="every worker must have the same code as this process"):
        transport.unpack_reply(answered)


def test_a_worker_without_a_package_of_the_users_is_a_sentence(two, elsewhere):
    with pytest.raises(
        bt.InvalidRequest,
        match=r"process \d+ does not have module 'elsewhere'; install the same packages there, or keep",
    ):
        bt.simulate(bt.UCB1(noise=0.5), elsewhere, horizon=10, runs=3, run=bt.Run(executor=two))


# The contract, on a cluster that loses things


class Unreliable(Executor):
    """Gives back results in a bad order, and loses every third piece `losses` times."""

    def __init__(self, losses):
        self.losses = losses
        self.most = 0

    @property
    def workers(self):
        return 3

    def open_session(self, spec):
        return UnreliableWork(self, Simulator(spec))

    def close(self):
        pass


class UnreliableWork(ExecutorSession):
    def __init__(self, cluster, ready):
        self.cluster, self.ready = cluster, ready
        self.flying, self.lost = {}, {}

    def submit(self, ticket, piece):
        assert ticket not in self.flying
        self.flying[ticket] = piece
        self.cluster.most = max(self.cluster.most, len(self.flying))

    def wait_for_result(self):
        ticket = max(self.flying, key=lambda ticket: hash((ticket, 5)))
        piece = self.flying.pop(ticket)
        if ticket % 3 == 0 and self.lost.get(ticket, 0) < self.cluster.losses:
            self.lost[ticket] = self.lost.get(ticket, 0) + 1
            return ticket, LostChunk("it was unplugged")
        return ticket, self.ready.simulate_chunk(piece, np.zeros(1, np.int64))

    def stop(self):
        self.flying = {}


def test_lost_pieces_are_played_again_in_any_order_with_few_in_flight(monkeypatch, tmp_path):
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 5000)
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.7], **group_settings(jobs=1, **SHORT))
    cluster = Unreliable(2)
    assert (
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.7], **group_settings(cluster=cluster, **SHORT)) == regrets
    ).all()
    assert cluster.most == scheduler.CHUNKS_PER_WORKER * 3
    book = tmp_path / "book"
    kept = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 0.7], **group_settings(cluster=cluster, ledger=book, **SHORT))
    assert (kept == regrets.astype(np.float32)).all()
    # Every regret was written once, although blocks were complete in another order.
    assert store_tables.verify_store(book)["regrets"] == regrets.size


def test_a_piece_that_was_lost_three_times_is_named(monkeypatch):
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 5000)
    with pytest.raises(
        bt.SimulationError, match=r"runs \d+ to \d+ of the policy 'ucb1' .* 3 times \(at last: it was unplugged\)"
    ):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.2, **group_settings(cluster=Unreliable(3), **SHORT))


class Torn(UnreliableWork):
    """Cannot even be given up."""

    def stop(self):
        raise OSError("the connection is gone")


class TornPlace(Unreliable):
    def open_session(self, spec):
        return Torn(self, Simulator(spec))

    def close(self):
        raise OSError("nobody answers")


def test_what_went_wrong_first_is_told_whatever_giving_up_meets():
    with pytest.raises(bt.SimulationError, match="the policy 'nan' chose nan"), TornPlace(0) as cluster:
        bt.simulate(bt.define_policy("nan", choose_nan), PROBLEM, **group_settings(cluster=cluster, **SHORT))
    with (
        pytest.raises(bt.SimulationError, match="the policy 'nan' chose nan"),
        StoredSimulator(lambda: TornPlace(0)) as player,
    ):
        player.simulate(build_spec(bt.define_policy("nan", choose_nan), PROBLEM, horizon=50), [[]], range(9))
    with pytest.raises(OSError, match="the connection is gone"):  # an error of its own is not swallowed
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(cluster=TornPlace(0), **SHORT))


def test_pieces_become_longer_where_they_travel():
    spec = build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=1000)
    params = arrays.copy_read_only([[1.0]])
    part = chunks.SimulationTask(params, 0, range(100_000), np.empty((1, 100_000, 1)))
    cluster = Unreliable(0)
    pace = chunks.ChunkSizer(spec, cluster, 1)
    assert pace.find_chunk_end(part, 10) == 4096  # TASK is 4194 runs: up to the end of a block
    pace.update_size(ChunkResult(np.empty((1, 4000, 1)), np.zeros(5), 0.1))
    assert pace.find_chunk_end(part, 4096) == 4096 + 19_968  # half a second is 20,000 runs
    assert pace.find_chunk_end(part, 99_990) == 100_000
    with bt.executors.ThreadExecutor(2) as threads:
        assert chunks.ChunkSizer(spec, threads, 1).find_chunk_end(part, 10) == 256


# What breaks


def test_a_killed_child_is_replaced(monkeypatch):
    monkeypatch.setattr(chunks, "ROUNDS_PER_CHUNK", 200_000)
    work = {"horizon": 2000, "runs": 3000, "shortcut": False}
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(jobs=1, **work))
    with bt.executors.ProcessExecutor(2) as cluster:
        killed = []

        def progress(done, total):
            if not killed and done > total / 5:
                killed.extend(child.process.pid for child in cluster.children)
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)

        assert (
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(cluster=cluster, progress=progress, **work))
            == regrets
        ).all()
        assert len(killed) == 2
        assert not {child.process.pid for child in cluster.children} & set(killed)


def test_a_child_that_cannot_start_is_a_sentence(monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(
        bt.SimulationError, match=r"must start, but the system refused it \(No such file or directory\); use fewer"
    ):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(cluster="processes", jobs=1, **SHORT))


def test_the_pipe_of_a_child_that_cannot_start_is_closed(monkeypatch):
    made = []
    monkeypatch.setattr(processes, "Pipe", lambda: made.extend(Pipe()) or made)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(bt.SimulationError, match="must start"):
        processes.start_child()
    assert [end.closed for end in made] == [True, True]


def test_pipes_of_idle_and_of_busy_children_are_closed_when_these_end():
    with bt.executors.ProcessExecutor(1) as cluster:
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(cluster=cluster, **SHORT))
        (idle,) = cluster.children
    assert idle.pipe.closed
    busy = processes.start_child()
    with busy.using:
        busy.end()
        assert not busy.pipe.closed  # not under the hands of the thread that reads
    busy.end()
    assert busy.pipe.closed


def test_a_child_with_other_versions_is_refused_and_ended(monkeypatch):
    begun = []
    start = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *told, **more: begun.append(start(*told, **more)) or begun[-1])
    ours = transport.identify_worker()
    other = transport.WorkerIdentity(ours.name, ours.versions | {"numpy": "0.0"})
    monkeypatch.setattr(transport, "identify_worker", lambda: other)
    with pytest.raises(bt.InvalidRequest, match=r"has numpy [\d.]+ \(here 0.0\)"):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(cluster="processes", jobs=1, **SHORT))
    assert [process.returncode for process in begun] == [-signal.SIGKILL]


def test_after_an_error_no_further_piece_is_begun():
    signs = []

    def play(piece, sign):
        signs.append(int(sign[0]))
        raise bt.InvalidRequest(f"piece {piece}")

    with ThreadPoolExecutor(1) as pool:
        work = threads.LocalSession(pool, play)
        for ticket in range(3):
            work.submit(ticket, ticket)
    assert signs == [0, 1, 1]
    with pytest.raises(bt.InvalidRequest, match="piece 0"):
        work.wait_for_result()


def test_runs_that_end_their_process_are_named(two):
    def sample(size, rng):
        os._exit(3)

    deadly = bt.define_problem("deadly", sample, PROBLEM.reward, arms=2)
    with pytest.raises(
        bt.SimulationError, match=r"'deadly' .* lost their worker 3 times \(at last: it ended with code 3\)"
    ):
        bt.simulate(bt.UCB1(noise=0.5), deadly, horizon=10, runs=1, run=bt.Run(executor=two))
    assert np.isfinite(bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(cluster=two, **SHORT))).all()


def test_a_bad_arm_and_a_bad_reward_are_named_with_run_and_step(two):
    with pytest.raises(bt.SimulationError, match=r"the policy 'nan' chose nan at step 7 of run \d+ "):
        bt.simulate(bt.define_policy("nan", choose_nan), PROBLEM, horizon=10, runs=300, run=bt.Run(executor=two))

    @bt.kernel.scalar
    def reward_nan(instance, arm, pull, step, stream):
        return math.nan if bt.kernel.uniform(stream) < 0.2 else 1.0

    unpaid = bt.define_problem("unpaid", lambda size, rng: rng.random((size, 2)), reward_nan, arms=2)
    with pytest.raises(bt.SimulationError, match=r"'unpaid' paid another for arm 0 at step \d+ of run \d+ "):
        bt.simulate(bt.UCB1(noise=0.5), unpaid, horizon=20, runs=300, run=bt.Run(executor=two))


def test_a_policy_that_never_returns_is_ended_at_the_time_limit():
    began = time.monotonic()
    endless = bt.define_policy("endless", choose_endless)
    with pytest.raises(
        bt.SimulationError,
        match=r"at most 0.5 s with this time limit, but runs \d+ to \d+ of the policy 'endless' on",
    ):
        bt.simulate(endless, PROBLEM, horizon=10, runs=10, run=bt.Run(time_limit=0.5, workers=1))
    assert time.monotonic() - began < 60


def test_a_problem_that_never_draws_is_ended_too(monkeypatch):
    driver = os.getpid()

    def sample(size, rng):
        while os.getpid() != driver:
            pass
        return rng.random((size, 2))

    monkeypatch.setattr(processes, "PREPARATION_TIME_LIMIT", 3.0)
    stuck = bt.define_problem("stuck", sample, PROBLEM.reward, arms=2)
    with pytest.raises(
        bt.SimulationError, match=r"must be compiled within 3 s .* on the problem 'stuck' took longer; raise"
    ):
        bt.simulate(bt.UCB1(noise=0.5), stuck, horizon=10, runs=10, run=bt.Run(time_limit=0.5, workers=1))


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
    end = time.monotonic() + 20
    while alive(child):
        assert time.monotonic() < end
        time.sleep(0.05)


def alive(pid):
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_full_disk_is_a_sentence_and_the_ledger_goes_on_later(tmp_path, run_python):
    book = tmp_path / "book"
    code = f"""
import resource, sys
import banditune as bt

if sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
try:
    bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 0.3, horizon=100, runs=60_000,
                run=bt.Run(workers=1, store={str(book)!r}))
except bt.errors.StoreError as error:
    print(error)
"""
    process = run_python(code, "200000")
    assert process.returncode == 0, process.stderr
    assert "cannot be written or read here" in process.stdout
    kept = store_tables.verify_store(book)["regrets"]
    assert 0 <= kept < 60_000
    process = run_python(code)
    assert (process.returncode, process.stdout) == (0, "")
    assert store_tables.verify_store(book)["regrets"] == 60_000
    whole = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.3, horizon=100, runs=60_000)
    assert (
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.3, horizon=100, runs=60_000, run=bt.Run(store=book))
        == whole.astype(np.float32)
    ).all()


@pytest.mark.slow
def test_a_cache_that_cannot_be_written_only_costs_time(run_python):
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


@pytest.mark.parametrize(
    "ask",
    [
        lambda: bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.1] * 1000, horizon=10, runs=10**9),
        lambda: bt.curve(bt.UCB1(noise=0.5), PROBLEM, horizon=10, runs=10**11),
        lambda: bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=10, budget=10**12),
        lambda: bt.tune(
            bt.UCB1(noise=0.5), PROBLEM, horizon=10, budget=10**12, search=bt.Search(tuner=bt.tuners.Uniform())
        ),
        lambda: bt.simulate(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=100_000, dims=1000), horizon=10, runs=2),
    ],
)
def test_a_request_too_large_for_memory_is_refused_before_it_starts(ask):
    began = time.process_time()
    with pytest.raises(
        bt.InvalidRequest, match=r"must fit into memory, but need [\d,.]+ GiB of [\d,.]+ GiB that are free"
    ):
        ask()
    assert time.process_time() - began < 20


@pytest.mark.slow
def test_features_that_all_instances_share_are_counted_once(monkeypatch):
    features = 1.0 + np.eye(50, 40)
    problem = bt.Linear(arms=50, dims=40, features=features)
    monkeypatch.setattr("banditune.simulation.instances.measure_free_memory", lambda: 2e6)
    monkeypatch.setattr(memory, "measure_free_memory", lambda: 2e6)
    assert np.isfinite(bt.simulate(bt.LinUCB(prior=(0, 1), noise=0.5), problem, horizon=60, runs=2)).all()
    with pytest.raises(bt.InvalidRequest, match="256 instances of the problem 'linear' must fit"):
        bt.simulate(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=50, dims=40), horizon=60, runs=2)


# The door


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"cluster": "moon"}, "`executor` must be 'threads', 'processes', .* but got 'moon'"),
        ({"cluster": 3}, "`executor` must be 'threads', 'processes', .* but got 3"),
        ({"cluster": "dask://h:1", "jobs": 2}, "`workers` counts threads or processes of this machine"),
        ({"cluster": "dask://h:1", "time_limit": 2}, "a time limit needs child processes"),
        ({"time_limit": 0}, "`time_limit > 0` must hold, in seconds, but got time_limit=0"),
        ({"time_limit": "2"}, "`time_limit > 0` must hold"),
    ],
)
def test_the_door_refuses_with_a_sentence(options, sentence):
    with pytest.raises(bt.InvalidRequest, match=sentence):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(**SHORT, **options))


def test_a_gpu_and_a_cluster_are_refused():
    from banditune.simulation.executors.executor_factory import make_executor_factory

    for options in ({"executor": "processes"}, {"time_limit": 2}):
        with pytest.raises(bt.InvalidRequest, match="a GPU is used from this process, but got device='gpu' and"):
            make_executor_factory(**options, device="gpu")


def test_a_missing_library_is_a_sentence(monkeypatch):
    monkeypatch.setattr(transport.importlib.util, "find_spec", lambda name: None)
    for name in ("dask", "ray"):
        with pytest.raises(bt.errors.MissingDependency, match=rf"needs `pip install 'banditune\[{name}\]'`"):
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(**SHORT, cluster=f"{name}://host:1"))


def test_the_command_line_plays_in_processes(banditune):
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
    process, together = (
        banditune(*command),
        banditune(*command, "--executor", "processes", "--time-limit", "60", "--workers", "2"),
    )
    assert (together.returncode, together.stderr) == (0, "")
    assert together.stdout == process.stdout
    assert banditune(*command, "--executor", "moon").returncode == 2


# Security


def test_only_what_travels_is_pickled():
    """Files, ledgers and states are never unpickled: no other module imports pickle, and arrays are read without it."""
    paths = list((ROOT / "src").rglob("*.py"))
    assert len(paths) > 200
    for path in paths:
        text = path.read_text()
        names = {
            alias.name.partition(".")[0]
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in (node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")])
        }
        pickles = names & {"pickle", "cloudpickle", "marshal", "shelve", "dill", "joblib"}
        assert not pickles or path.parent.name == "executors", path
        assert text.count("np.load(") == text.count("allow_pickle=False") - text.count("np.save("), path


def test_installed_packages_stay_at_home_wherever_they_stand(run_python, tmp_path):
    place = tmp_path / "elsewhere"
    known = place / "parcel-1.0.dist-info"
    known.mkdir(parents=True)
    (place / "parcel.py").write_text("")
    (place / "mine.py").write_text("")
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: parcel\nVersion: 1.0\n")
    (known / "top_level.txt").write_text("parcel\n")
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import mine, parcel
from banditune.simulation.executors.transport import _is_user_module
print(_is_user_module(mine), _is_user_module(parcel))
"""
    process = run_python(code, str(place))
    assert process.stdout.split() == ["True", "False"], process.stderr
