"""Real clusters: a Dask scheduler with workers, and a Ray cluster. Run with `make cluster`."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path

import pytest

import banditune as bt
from banditune.simulation import chunks
from banditune.simulation.executors.executor_factory import make_executor_factory
from helpers.paths import ROOT
from helpers.settings import group_settings
from helpers.user_code import USER_POLICY, USER_PROBLEM

pytestmark = [
    pytest.mark.cluster,
    # Both libraries leave sockets and loops to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray", "ignore::DeprecationWarning"),
]

PROBLEM = bt.Bernoulli(arms=10)
WORKERS = 4
LONG = {"horizon": 2000, "runs": 6000, "shortcuts": False}
"""A simulation of some seconds, in a hundred chunks or more."""

ENDLESS = LONG | {"runs": 1_000_000}


@bt.kernel.scalar
def choose_99_rarely(state, setting, step, params, stream):
    return 99 if bt.kernel.uniform(stream) < 1e-4 else 1


FAILING = bt.define_policy("fatal", choose_99_rarely)


def make_environment(**options):
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])} | options


def wait_until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it took too long"
        time.sleep(0.05)


class DaskProcesses:
    """A scheduler and workers, each in a process."""

    kind = "dask"

    def __init__(self, folder: Path, **options) -> None:
        self.log = (folder / "log").open("w")
        self.file = folder / "scheduler.json"
        self.scheduler = self.start(
            "scheduler", "--port", "0", "--no-dashboard", "--no-jupyter", "--scheduler-file", self.file, **options
        )
        self.workers = []
        wait_until(self.file.exists)
        wait_until(lambda: self.file.read_text().strip().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"].replace("tcp://", "dask://")

    def start(self, *arguments, **options):
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        return subprocess.Popen(command, stdout=self.log, stderr=self.log, env=make_environment(**options))

    def start_workers(self, count=1, **options):
        started = [
            self.start(
                "worker", "--scheduler-file", self.file, "--nthreads", "1", "--no-nanny", "--no-dashboard", **options
            )
            for _ in range(count)
        ]
        self.workers += started
        return started

    def kill(self, count):
        for _ in range(count):
            worker = self.workers.pop()
            worker.send_signal(signal.SIGKILL)
            worker.wait()

    def restore(self, count=WORKERS):
        """Start workers until all are there."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        self.start_workers(count - len(self.workers))
        with bt.executors.DaskExecutor(self.address) as cluster:
            wait_until(lambda: len(cluster.client.nthreads()) == count)
        return self

    def close(self):
        for process in (*self.workers, self.scheduler):
            process.kill()
            process.wait()
        self.log.close()


@pytest.fixture(scope="module")
def dask_processes(tmp_path_factory):
    processes = DaskProcesses(tmp_path_factory.mktemp("dask"))
    yield processes
    processes.close()


class RayNode:
    """A Ray cluster of one node, separate from others on this machine. Clients can join it."""

    kind = "ray"

    def __init__(self, folder: Path) -> None:
        self.log = (folder / "log").open("a")
        # A port that is free now may be taken when Ray binds it, some seconds later.
        while not self.start_head(find_free_port()):
            text = (folder / "log").read_text()
            assert re.search("Failed to bind to address|[Aa]ddress already in use", text), text
            self.log.truncate(0)
            shutil.rmtree(self.home, ignore_errors=True)

    def start_head(self, port: int) -> bool:
        """Start the head. Return whether it stays."""
        # A short name: it contains sockets, whose paths have a limit.
        self.home = tempfile.mkdtemp(prefix="ray")
        start = [
            Path(sys.executable).parent / "ray",
            "start",
            "--head",
            "--block",
            "--port",
            "0",
            "--num-cpus",
            WORKERS,
            "--include-dashboard",
            "false",
            "--ray-client-server-port",
            port,
            "--disable-usage-stats",
            "--temp-dir",
            self.home,
        ]
        # Ray's client server forks while gRPC's threads run. With gRPC's fork handlers the new server often dies.
        variables = make_environment(GRPC_ENABLE_FORK_SUPPORT="0")
        self.head = subprocess.Popen([*map(str, start)], stdout=self.log, stderr=self.log, env=variables)
        address_file = Path(self.home, "ray_current_cluster")
        wait_until(
            lambda: (
                self.head.poll() is not None
                or (address_file.exists() and address_file.read_text() and self.listens(port))
            ),
            120,
        )
        if self.head.poll() is not None:
            return False
        # Its client server takes long to accept a driver. One test uses it.
        self.address, self.client, self.port = "ray", f"ray://127.0.0.1:{port}", port
        self.cluster_address = address_file.read_text().strip()
        return True

    def listens(self, port: int) -> bool:
        """Whether a process of this head listens on the port."""
        import psutil

        try:
            children = psutil.Process(self.head.pid).children(recursive=True)
            connections = [connection for child in children for connection in child.net_connections()]
        except psutil.NoSuchProcess:
            return False
        return any(
            connection.laddr and connection.laddr.port == port and connection.status == psutil.CONN_LISTEN
            for connection in connections
            if connection.family in (socket.AF_INET, socket.AF_INET6)
        )

    def restore(self):
        return self

    def kill(self, count):
        """Kill processes that simulate a chunk now."""
        import psutil

        def busy():
            return [
                process
                for process in psutil.process_iter(["cmdline"])
                if (process.info["cmdline"] or [""])[0].startswith("ray::simulate")
            ]

        wait_until(lambda: len(busy()) >= count)
        for process in busy()[:count]:
            process.send_signal(signal.SIGKILL)

    def close(self):
        """End this node only. `ray stop` would end all nodes."""
        self.head.terminate()
        self.head.wait(60)
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)


def find_free_port():
    with socket.socket() as connection:
        connection.bind(("127.0.0.1", 0))
        return connection.getsockname()[1]


def is_listening(port):
    with socket.socket() as connection:
        return connection.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def ray_node(tmp_path_factory):
    node = RayNode(tmp_path_factory.mktemp("ray"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(
            "RAY_ADDRESS", node.cluster_address
        )  # where "ray" finds the cluster, in this process and its children
        yield node
    node.close()


@pytest.fixture(params=["dask", "ray"])
def cluster(request):
    return request.getfixturevalue({"dask": "dask_processes", "ray": "ray_node"}[request.param]).restore()


@pytest.fixture(scope="module")
def reference():
    """Regrets by one thread."""
    return bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 1.0], **group_settings(workers=1, **LONG))


def test_a_cluster_has_the_regrets_of_one_thread(cluster):
    closed_over = 0.5

    @bt.kernel.scalar
    def choose_locally(state, setting, step, params, stream):
        return (
            bt.kernel.draw_arm(state, stream)
            if bt.kernel.uniform(stream) < closed_over * params[0]
            else bt.kernel.argmax_mean(state)
        )

    local_policy = bt.define_policy("here", choose_locally, parameters=[bt.Parameter("share", 0, 1, textbook=0.2)])
    pairs = [
        (bt.UCB1(noise=0.5), PROBLEM),
        (local_policy, PROBLEM),
        (USER_POLICY, USER_PROBLEM),
        (bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=5, dims=3)),
        (bt.exact.Gittins(prior=(1, 1)), bt.Bernoulli(arms=2)),
    ]
    options = {
        "horizon": 50,
        "runs": 700,
        "common_random_numbers": False,
        "regret": "realised",
        "checkpoints": [20, 50],
    }
    with make_executor_factory(cluster.address)() as executor:
        for policy, problem in pairs:
            values = [0.2, 0.7] if policy.parameters else None
            regrets = bt.simulate(policy, problem, values, **group_settings(workers=1, **options))
            cluster_regrets = bt.simulate(policy, problem, values, **group_settings(executor=executor, **options))
            assert regrets.tobytes() == cluster_regrets.tobytes(), policy.name


def test_killing_workers_changes_no_regret(cluster, reference):
    killed = []

    def progress(done, total):
        if not killed and done > total / 4:
            killed.append(done)
            cluster.kill(2)

    regrets = bt.simulate(
        bt.UCB1(noise=0.5), PROBLEM, [0.2, 1.0], **group_settings(executor=cluster.address, progress=progress, **LONG)
    )
    assert killed
    assert killed[0] < 2 * LONG["runs"]
    assert regrets.tobytes() == reference.tobytes()


def make_tune_command(*options):
    return [
        sys.executable,
        "-m",
        "banditune",
        "tune",
        "--policy",
        "ucb1",
        "--problem",
        "bernoulli",
        "--arms",
        "10",
        "--horizon",
        "3000",
        "--budget",
        "6000",
        "--no-shortcuts",
        "--no-lower-bound",
        "--json",
        *map(str, options),
    ]


@pytest.fixture(scope="module")
def reference_tuning():
    process = subprocess.run(
        make_tune_command("--workers", "1"), capture_output=True, text=True, env=make_environment(), timeout=300
    )
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_a_killed_driver_continues_from_its_store(cluster, reference_tuning, tmp_path):
    store = tmp_path / "study.db"
    command = make_tune_command("--executor", cluster.address, "--store", store)
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=make_environment())
    wait_until(lambda: count_blocks(store) >= 4)
    driver.kill()
    driver.communicate()
    stored = count_blocks(store)
    process = subprocess.run(command, capture_output=True, text=True, env=make_environment(), timeout=300)
    assert process.returncode == 0, process.stderr
    assert process.stdout == reference_tuning
    assert stored >= 4
    assert count_blocks(store) > stored


def count_blocks(store):
    import sqlite3

    if not store.exists():
        return 0
    connection = sqlite3.connect(f"file:{store}?mode=ro", uri=True, timeout=30)
    try:
        return connection.execute("SELECT count(*) FROM blocks").fetchone()[0]
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


def test_a_wrong_arm_is_an_error_with_run_and_step(cluster):
    with pytest.raises(bt.SimulationError, match="chose 99"):
        bt.simulate(FAILING, PROBLEM, horizon=200, runs=2000, run=bt.Run(workers=1))
    with pytest.raises(bt.SimulationError, match=r"'fatal' chose 99 at step \d+ of run \d+") as error:
        bt.simulate(FAILING, PROBLEM, horizon=200, runs=2000, run=bt.Run(executor=cluster.address))
    run = int(str(error.value).split("first_instance=")[1].split(",")[0])
    with pytest.raises(bt.SimulationError) as repeated:
        bt.simulate(FAILING, PROBLEM, horizon=200, runs=1, first_instance=run)
    assert str(repeated.value) == str(error.value)


def test_a_chunk_that_ends_its_workers_is_an_error(cluster):
    def sample(size, rng):
        os._exit(3)

    deadly = bt.define_problem("deadly", sample, PROBLEM.reward, arms=2)
    with pytest.raises(
        bt.SimulationError,
        match=r"runs \d+ to \d+ of the policy 'ucb1' on the problem 'deadly' .* lost their worker [34] times",
    ):
        bt.simulate(bt.UCB1(noise=0.5), deadly, horizon=10, runs=3, run=bt.Run(executor=cluster.address))


def test_a_missing_package_of_a_worker_is_named(cluster, problem_of_missing_package):
    with pytest.raises(
        bt.InvalidRequest,
        match=r"process \d+ does not have module 'elsewhere'; install the same packages there, or keep",
    ):
        bt.simulate(
            bt.UCB1(noise=0.5), problem_of_missing_package, horizon=10, runs=3, run=bt.Run(executor=cluster.address)
        )


def test_an_error_outside_of_policies_is_reported(cluster, monkeypatch):
    def fail(expected, recipe, chunk):
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr(f"banditune.simulation.executors.{cluster.kind}.make_worker_entry", lambda: fail)
    with pytest.raises(
        bt.SimulationError, match=r"a (Dask|Ray) worker failed: ZeroDivisionError: by chance\."
    ) as error:
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=10, runs=3, run=bt.Run(executor=cluster.address))
    assert "Traceback" not in str(error.value)


def test_a_result_that_is_lost_twice_is_simulated_again(tmp_path, monkeypatch):
    """The second worker ends too, and then a scheduler that allows no failures gives up.

    One run is one chunk, so one worker simulates at a time.
    """
    import distributed

    driver, path = os.getpid(), tmp_path / "players"
    path.touch()

    def sample(size, rng):
        pids = path.read_text().split()
        if os.getpid() not in (driver, *map(int, pids)):
            path.write_text(" ".join([*pids, str(os.getpid())]))
            if len(pids) == 1:
                os._exit(3)
        return rng.random((size, 2))

    problem = bt.define_problem("mortal", sample, PROBLEM.reward, arms=2)
    gather = distributed.Client.gather

    def gather_late(client, futures, **options):
        pids = path.read_text().split()
        if len(pids) == 1:
            first = next(worker for worker in processes.workers if worker.pid == int(pids[0]))
            first.kill()
            first.wait()
        return gather(client, futures, **options)

    processes = DaskProcesses(tmp_path, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    processes.restore(3)
    monkeypatch.setattr(distributed.Client, "gather", gather_late)
    try:
        regrets = bt.simulate(bt.UCB1(noise=0.5), problem, horizon=20, runs=1, run=bt.Run(executor=processes.address))
    finally:
        processes.close()
    assert len(path.read_text().split()) == 3
    assert (
        regrets.tobytes()
        == bt.simulate(bt.UCB1(noise=0.5), problem, horizon=20, runs=1, run=bt.Run(workers=1)).tobytes()
    )


@pytest.mark.parametrize(("module_name", "kind"), [("dask", "Dask"), ("ray", "Ray")])
def test_a_chunk_that_cannot_be_pickled_is_an_error_of_the_driver(module_name, kind):
    module = import_module(f"banditune.simulation.executors.{module_name}")
    session = object.__new__(getattr(module, f"{kind}Session"))
    session.sent = 0
    with pytest.raises(AttributeError, match="params"):
        session.submit(0, None)


def test_a_scheduler_that_ends_is_an_error(tmp_path):
    from distributed import Client

    processes = DaskProcesses(tmp_path)
    processes.start_workers(1)
    try:
        client = Client(processes.address.replace("dask://", "tcp://"), timeout=2, set_as_default=False)
        settings = ENDLESS | {"progress": make_progress_that_ends(processes.scheduler)}
        with (
            client,
            pytest.raises(bt.SimulationError, match=r"the Dask cluster must run until .* store, the study continues"),
        ):
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 1.0], **group_settings(executor=client, **settings))
    finally:
        processes.close()


@pytest.mark.slow
def test_a_ray_head_that_ends_is_an_error(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_CLIENT_RECONNECT_GRACE_PERIOD", "1")
    node = RayNode(tmp_path)
    try:
        wait_until(lambda: is_listening(node.port))
        with pytest.raises(
            bt.SimulationError, match=r"the Ray cluster must run until the work is done, but .* with a store it"
        ):
            bt.simulate(
                bt.UCB1(noise=0.5),
                PROBLEM,
                [0.2, 1.0],
                **group_settings(executor=node.client, progress=make_progress_that_ends(node.head), **ENDLESS),
            )
    finally:
        node.close()


def make_progress_that_ends(process):
    """A progress function that ends a process once."""

    def progress(done, total):
        if process.poll() is None:
            process.terminate()
            process.wait()

    return progress


def test_a_dask_client_is_closed_when_a_worker_is_refused(dask_processes, monkeypatch):
    import distributed

    address, clients = dask_processes.restore().address, []
    client = distributed.Client
    monkeypatch.setattr(
        distributed,
        "Client",
        lambda *arguments, **options: clients.append(client(*arguments, **options)) or clients[-1],
    )
    monkeypatch.setattr("platform.python_version_tuple", lambda: ("2", "7", "18"))
    with pytest.raises(bt.InvalidRequest, match=r"has python \d\.\d+ \(here 2\.7\); install the same versions"):
        bt.executors.DaskExecutor(address)
    assert [used_client.status for used_client in clients] == ["closed"]


def test_a_dask_worker_with_another_version_is_refused(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import banditune\nbanditune.__version__ = '9.9'\n")
    processes = DaskProcesses(tmp_path)
    try:
        processes.start_workers(PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT / "src")]))
        with pytest.raises(
            bt.InvalidRequest, match=rf"process \d+ has banditune 9.9 \(here {bt.__version__}\); install the same"
        ):
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=10, runs=3, run=bt.Run(executor=processes.address))
    finally:
        processes.close()


def test_a_dask_client_is_an_executor(dask_processes):
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=300, run=bt.Run(workers=1))
    from distributed import Client

    with Client(dask_processes.restore().address.replace("dask://", "tcp://"), set_as_default=False) as client:
        assert (
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=300, run=bt.Run(executor=client)) == regrets
        ).all()
        assert client.status == "running"


def test_the_module_ray_is_an_executor(ray_node):
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=300, run=bt.Run(workers=1))
    import ray

    wait_until(lambda: is_listening(ray_node.port))
    ray.init(ray_node.client, log_to_driver=False)
    try:
        assert (
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=300, run=bt.Run(executor=ray)) == regrets
        ).all()
        assert ray.is_initialized()
        with pytest.raises(bt.InvalidRequest, match="can use one Ray cluster"):
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=300, run=bt.Run(executor="ray://elsewhere:10001"))
    finally:
        ray.shutdown()


def test_a_missing_scheduler_is_named():
    with pytest.raises(
        bt.InvalidRequest, match=r"a Dask scheduler must answer at dask://127\.0\.0\.1:9, but none does"
    ):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=10, runs=3, run=bt.Run(executor="dask://127.0.0.1:9"))


@pytest.mark.slow
def test_workers_are_busy_most_of_the_time(dask_processes):
    """With chunks of about half a second. docs/research/performance.md compares two workers with two threads."""
    dask_processes.restore().kill(2)
    simulation_seconds = 0.0
    update_size = chunks.ChunkSizer.update_size

    def add_seconds(sizer, result):
        nonlocal simulation_seconds
        simulation_seconds += result.seconds
        update_size(sizer, result)

    with bt.executors.DaskExecutor(dask_processes.address) as executor, pytest.MonkeyPatch.context() as patched:
        wait_until(lambda: len(executor.client.nthreads()) == 2)
        patched.setattr(chunks.ChunkSizer, "update_size", add_seconds)
        bt.simulate(
            bt.UCB1(noise=0.5),
            PROBLEM,
            [0.2],
            horizon=2000,
            runs=256,
            simulation=bt.Simulation(shortcuts=False),
            run=bt.Run(executor=executor),
        )
        start, simulation_seconds = time.monotonic(), 0.0
        bt.simulate(
            bt.UCB1(noise=0.5),
            PROBLEM,
            [0.2],
            horizon=10_000,
            runs=6000,
            simulation=bt.Simulation(shortcuts=False),
            run=bt.Run(executor=executor),
        )
        busy_share = simulation_seconds / (time.monotonic() - start) / 2
    assert busy_share > 0.7, busy_share  # 0.9 or more on an idle machine
