"""Real clusters: a Dask scheduler and its workers as processes of their own, and a Ray cluster. Run with `make cluster`."""

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
from conftest import ROOT
from helpers.owned import OWN, OWN_PROBLEM
from helpers.settings import group_settings

pytestmark = [
    pytest.mark.cluster,
    # Both libraries leave sockets and loops to the garbage collector.
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning:ray", "ignore::DeprecationWarning"),
]

PROBLEM = bt.Bernoulli(arms=10)
WORKERS = 4
LONG = {"horizon": 2000, "runs": 6000, "shortcut": False}
"""A study of some seconds, in a hundred pieces or more."""

ENDLESS = LONG | {"runs": 1_000_000}


@bt.kernel.scalar
def choose_fatal(state, setting, step, params, stream):
    return 99 if bt.kernel.uniform(stream) < 1e-4 else 1


FATAL = bt.define_policy("fatal", choose_fatal)


def environment(**more):
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT / "tests")])} | more


def until(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it took too long"
        time.sleep(0.05)


class DaskProcesses:
    """A scheduler and workers, each a process."""

    kind = "dask"

    def __init__(self, folder: Path, **more) -> None:
        self.log = (folder / "log").open("w")
        self.file = folder / "scheduler.json"
        self.scheduler = self.start(
            "scheduler", "--port", "0", "--no-dashboard", "--no-jupyter", "--scheduler-file", self.file, **more
        )
        self.workers = []
        until(self.file.exists)
        until(lambda: self.file.read_text().strip().endswith("}"))
        self.address = json.loads(self.file.read_text())["address"].replace("tcp://", "dask://")

    def start(self, *arguments, **more):
        command = [sys.executable, "-m", "dask", *map(str, arguments)]
        return subprocess.Popen(command, stdout=self.log, stderr=self.log, env=environment(**more))

    def work(self, count=1, **more):
        begun = [
            self.start(
                "worker", "--scheduler-file", self.file, "--nthreads", "1", "--no-nanny", "--no-dashboard", **more
            )
            for _ in range(count)
        ]
        self.workers += begun
        return begun

    def kill(self, count):
        for _ in range(count):
            worker = self.workers.pop()
            worker.send_signal(signal.SIGKILL)
            worker.wait()

    def full(self, count=WORKERS):
        """Have all workers there again."""
        self.workers = [worker for worker in self.workers if worker.poll() is None]
        self.work(count - len(self.workers))
        with bt.executors.DaskExecutor(self.address) as cluster:
            until(lambda: len(cluster.client.nthreads()) == count)
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
    """A Ray cluster of one node, which others can join as clients; apart from all others on this machine."""

    kind = "ray"

    def __init__(self, folder: Path) -> None:
        self.log = (folder / "log").open("a")
        # A port that is free now may be taken when Ray binds it, some seconds later.
        while not self.started(free_port()):
            text = (folder / "log").read_text()
            assert re.search("Failed to bind to address|[Aa]ddress already in use", text), text
            self.log.truncate(0)
            shutil.rmtree(self.home, ignore_errors=True)

    def started(self, port: int) -> bool:
        """Start the head; whether it stays."""
        # A short name: sockets lie in it, and their paths have a limit.
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
        alive = environment(GRPC_ENABLE_FORK_SUPPORT="0")
        self.head = subprocess.Popen([*map(str, start)], stdout=self.log, stderr=self.log, env=alive)
        found = Path(self.home, "ray_current_cluster")
        until(
            lambda: self.head.poll() is not None or (found.exists() and found.read_text() and self.listens(port)), 120
        )
        if self.head.poll() is not None:
            return False
        # Its client server takes long to let a driver in; one test goes through it.
        self.address, self.client, self.port = "ray", f"ray://127.0.0.1:{port}", port
        self.place = found.read_text().strip()
        return True

    def listens(self, port: int) -> bool:
        """Whether a process of this head has the port, and no other program."""
        import psutil

        try:
            children = psutil.Process(self.head.pid).children(recursive=True)
            doors = [door for child in children for door in child.net_connections()]
        except psutil.NoSuchProcess:
            return False
        return any(
            door.laddr and door.laddr.port == port and door.status == psutil.CONN_LISTEN
            for door in doors
            if door.family in (socket.AF_INET, socket.AF_INET6)
        )

    def full(self):
        return self

    def kill(self, count):
        """Kill processes that play a piece now."""
        import psutil

        def busy():
            return [
                each
                for each in psutil.process_iter(["cmdline"])
                if (each.info["cmdline"] or [""])[0].startswith("ray::simulate")
            ]

        until(lambda: len(busy()) >= count)
        for process in busy()[:count]:
            process.send_signal(signal.SIGKILL)

    def close(self):
        """End this node and no other: `ray stop` ends all that it finds."""
        self.head.terminate()
        self.head.wait(60)
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)


def free_port():
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


def answers(port):
    with socket.socket() as door:
        return door.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture(scope="module")
def ray_node(tmp_path_factory):
    node = RayNode(tmp_path_factory.mktemp("ray"))
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("RAY_ADDRESS", node.place)  # where `ray` is, for this process and its children
        yield node
    node.close()


@pytest.fixture(params=["dask", "ray"])
def cluster(request):
    return request.getfixturevalue({"dask": "dask_processes", "ray": "ray_node"}[request.param]).full()


@pytest.fixture(scope="module")
def reference():
    """What one thread finds."""
    return bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 1.0], **group_settings(jobs=1, **LONG))


def test_the_same_bits_as_one_thread_for_every_kind_of_policy(cluster):
    closed_over = 0.5

    @bt.kernel.scalar
    def choose_here(state, setting, step, params, stream):
        return (
            bt.kernel.draw_arm(state, stream)
            if bt.kernel.uniform(stream) < closed_over * params[0]
            else bt.kernel.argmax_mean(state)
        )

    here = bt.define_policy("here", choose_here, parameters=[bt.Parameter("share", 0, 1, textbook=0.2)])
    pairs = [
        (bt.UCB1(noise=0.5), PROBLEM),
        (here, PROBLEM),
        (OWN, OWN_PROBLEM),
        (bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=5, dims=3)),
        (bt.exact.Gittins(prior=(1, 1)), bt.Bernoulli(arms=2)),
    ]
    options = {"horizon": 50, "runs": 700, "noise": "own", "regret": "realised", "at": [20, 50]}
    with make_executor_factory(cluster.address)() as place:
        for policy, problem in pairs:
            values = [0.2, 0.7] if policy.parameters else None
            regrets = bt.simulate(policy, problem, values, **group_settings(jobs=1, **options))
            together = bt.simulate(policy, problem, values, **group_settings(cluster=place, **options))
            assert regrets.tobytes() == together.tobytes(), policy.name


def test_two_of_four_workers_are_killed_and_the_result_is_the_same(cluster, reference):
    killed = []

    def progress(done, total):
        if not killed and done > total / 4:
            killed.append(done)
            cluster.kill(2)

    regrets = bt.simulate(
        bt.UCB1(noise=0.5), PROBLEM, [0.2, 1.0], **group_settings(cluster=cluster.address, progress=progress, **LONG)
    )
    assert killed
    assert killed[0] < 2 * LONG["runs"]
    assert regrets.tobytes() == reference.tobytes()


def study(*more):
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
        *map(str, more),
    ]


@pytest.fixture(scope="module")
def tuned():
    process = subprocess.run(study("--workers", "1"), capture_output=True, text=True, env=environment(), timeout=300)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_a_driver_that_was_killed_goes_on_from_its_ledger(cluster, tuned, tmp_path):
    book = tmp_path / "study.ledger"
    command = study("--executor", cluster.address, "--store", book)
    driver = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    until(lambda: blocks_in(book) >= 4)
    driver.kill()
    driver.communicate()
    kept = blocks_in(book)
    process = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=300)
    assert process.returncode == 0, process.stderr
    assert process.stdout == tuned
    assert kept >= 4
    assert blocks_in(book) > kept


def blocks_in(book):
    import sqlite3

    if not book.exists():
        return 0
    connection = sqlite3.connect(f"file:{book}?mode=ro", uri=True, timeout=30)
    try:
        return connection.execute("SELECT count(*) FROM blocks").fetchone()[0]
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


def test_a_bad_arm_is_named_with_run_and_step(cluster):
    with pytest.raises(bt.SimulationError, match="chose 99"):
        bt.simulate(FATAL, PROBLEM, horizon=200, runs=2000, run=bt.Run(workers=1))
    with pytest.raises(bt.SimulationError, match=r"'fatal' chose 99 at step \d+ of run \d+") as far:
        bt.simulate(FATAL, PROBLEM, horizon=200, runs=2000, run=bt.Run(executor=cluster.address))
    again = int(str(far.value).split("first_instance=")[1].split(",")[0])
    with pytest.raises(bt.SimulationError) as repeated:
        bt.simulate(FATAL, PROBLEM, horizon=200, runs=1, first_instance=again)
    assert str(repeated.value) == str(far.value)


def test_a_piece_that_ends_its_workers_is_named(cluster):
    def sample(size, rng):
        os._exit(3)

    deadly = bt.define_problem("deadly", sample, PROBLEM.reward, arms=2)
    with pytest.raises(
        bt.SimulationError,
        match=r"runs \d+ to \d+ of the policy 'ucb1' on the problem 'deadly' .* lost their worker [34] times",
    ):
        bt.simulate(bt.UCB1(noise=0.5), deadly, horizon=10, runs=3, run=bt.Run(executor=cluster.address))


def test_a_worker_without_a_package_of_the_users_is_a_sentence(cluster, elsewhere):
    with pytest.raises(
        bt.InvalidRequest,
        match=r"process \d+ does not have module 'elsewhere'; install the same packages there, or keep",
    ):
        bt.simulate(bt.UCB1(noise=0.5), elsewhere, horizon=10, runs=3, run=bt.Run(executor=cluster.address))


def test_a_worker_that_fails_outside_a_policy_is_a_sentence(cluster, monkeypatch):
    def enter(wanted, recipe, piece):
        raise ZeroDivisionError("by chance")

    monkeypatch.setattr(f"banditune.simulation.executors.{cluster.kind}.make_worker_entry", lambda: enter)
    with pytest.raises(
        bt.SimulationError, match=r"a (Dask|Ray) worker failed: ZeroDivisionError: by chance\."
    ) as error:
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=10, runs=3, run=bt.Run(executor=cluster.address))
    assert "Traceback" not in str(error.value)


def test_a_result_that_dies_with_its_worker_and_cannot_be_made_again_at_once_is_played_again(tmp_path, monkeypatch):
    """The second worker that plays dies too, after which a scheduler that allows no failures gives up.

    One run is one piece, and so one worker plays at a time, however many there are.
    """
    import distributed

    driver, book = os.getpid(), tmp_path / "players"
    book.touch()

    def sample(size, rng):
        players = book.read_text().split()
        if os.getpid() not in (driver, *map(int, players)):
            book.write_text(" ".join([*players, str(os.getpid())]))
            if len(players) == 1:
                os._exit(3)
        return rng.random((size, 2))

    mortal = bt.define_problem("mortal", sample, PROBLEM.reward, arms=2)
    gather = distributed.Client.gather

    def late(client, futures, **more):
        players = book.read_text().split()
        if len(players) == 1:
            first = next(worker for worker in processes.workers if worker.pid == int(players[0]))
            first.kill()
            first.wait()
        return gather(client, futures, **more)

    processes = DaskProcesses(tmp_path, DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="0")
    processes.full(3)
    monkeypatch.setattr(distributed.Client, "gather", late)
    try:
        regrets = bt.simulate(bt.UCB1(noise=0.5), mortal, horizon=20, runs=1, run=bt.Run(executor=processes.address))
    finally:
        processes.close()
    assert len(book.read_text().split()) == 3
    assert (
        regrets.tobytes()
        == bt.simulate(bt.UCB1(noise=0.5), mortal, horizon=20, runs=1, run=bt.Run(workers=1)).tobytes()
    )


@pytest.mark.parametrize(("place", "kind"), [("dask", "Dask"), ("ray", "Ray")])
def test_a_piece_that_cannot_be_packed_is_no_matter_of_the_cluster(place, kind):
    room = import_module(f"banditune.simulation.executors.{place}")
    work = object.__new__(getattr(room, f"{kind}Session"))
    work.sent = 0
    with pytest.raises(AttributeError, match="params"):
        work.submit(0, None)


def test_a_scheduler_that_goes_away_is_a_sentence(tmp_path):
    from distributed import Client

    processes = DaskProcesses(tmp_path)
    processes.work(1)
    try:
        client = Client(processes.address.replace("dask://", "tcp://"), timeout=2, set_as_default=False)
        usual = ENDLESS | {"progress": ender(processes.scheduler)}
        with (
            client,
            pytest.raises(bt.SimulationError, match=r"the Dask cluster must run until .* with a store it continues"),
        ):
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.2, 1.0], **group_settings(cluster=client, **usual))
    finally:
        processes.close()


@pytest.mark.slow
def test_a_ray_head_that_goes_away_is_a_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("RAY_CLIENT_RECONNECT_GRACE_PERIOD", "1")
    node = RayNode(tmp_path)
    try:
        until(lambda: answers(node.port))
        with pytest.raises(
            bt.SimulationError, match=r"the Ray cluster must run until the work is done, but .* with a store it"
        ):
            bt.simulate(
                bt.UCB1(noise=0.5),
                PROBLEM,
                [0.2, 1.0],
                **group_settings(cluster=node.client, progress=ender(node.head), **ENDLESS),
            )
    finally:
        node.close()


def ender(process):
    """A progress that ends a process once."""

    def progress(done, total):
        if process.poll() is None:
            process.terminate()
            process.wait()

    return progress


def test_a_dask_client_is_closed_when_a_worker_is_refused(dask_processes, monkeypatch):
    import distributed

    address, made = dask_processes.full().address, []
    client = distributed.Client
    monkeypatch.setattr(distributed, "Client", lambda *told, **more: made.append(client(*told, **more)) or made[-1])
    monkeypatch.setattr("platform.python_version_tuple", lambda: ("2", "7", "18"))
    with pytest.raises(bt.InvalidRequest, match=r"has python \d\.\d+ \(here 2\.7\); install the same versions"):
        bt.executors.DaskExecutor(address)
    assert [each.status for each in made] == ["closed"]


def test_a_dask_worker_with_another_version_is_refused_with_a_sentence(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("import banditune\nbanditune.__version__ = '9.9'\n")
    processes = DaskProcesses(tmp_path)
    try:
        processes.work(PYTHONPATH=os.pathsep.join([str(tmp_path), str(ROOT / "src")]))
        with pytest.raises(
            bt.InvalidRequest, match=rf"process \d+ has banditune 9.9 \(here {bt.__version__}\); install the same"
        ):
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=10, runs=3, run=bt.Run(executor=processes.address))
    finally:
        processes.close()


def test_a_dask_client_is_a_cluster_too(dask_processes):
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=300, run=bt.Run(workers=1))
    from distributed import Client

    with Client(dask_processes.full().address.replace("dask://", "tcp://"), set_as_default=False) as client:
        assert (
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=300, run=bt.Run(executor=client)) == regrets
        ).all()
        assert client.status == "running"


def test_ray_itself_is_a_cluster_too(ray_node):
    regrets = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=300, run=bt.Run(workers=1))
    import ray

    until(lambda: answers(ray_node.port))
    ray.init(ray_node.client, log_to_driver=False)
    try:
        assert (
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=300, run=bt.Run(executor=ray)) == regrets
        ).all()
        assert ray.is_initialized()
        with pytest.raises(bt.InvalidRequest, match="can be in one Ray cluster"):
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=50, runs=300, run=bt.Run(executor="ray://elsewhere:10001"))
    finally:
        ray.shutdown()


def test_nobody_answers():
    with pytest.raises(
        bt.InvalidRequest, match=r"a Dask scheduler must answer at dask://127\.0\.0\.1:9, but none does"
    ):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, horizon=10, runs=3, run=bt.Run(executor="dask://127.0.0.1:9"))


@pytest.mark.slow
def test_workers_are_busy_most_of_the_time(dask_processes):
    """With pieces of about half a second; docs/research/performance.md tells how near two workers come to two threads."""
    dask_processes.full().kill(2)
    playing = 0.0
    learn = chunks.ChunkSizer.update_size

    def watched(pace, played):
        nonlocal playing
        playing += played.seconds
        learn(pace, played)

    with bt.executors.DaskExecutor(dask_processes.address) as place, pytest.MonkeyPatch.context() as patched:
        until(lambda: len(place.client.nthreads()) == 2)
        patched.setattr(chunks.ChunkSizer, "update_size", watched)
        bt.simulate(
            bt.UCB1(noise=0.5),
            PROBLEM,
            [0.2],
            horizon=2000,
            runs=256,
            simulation=bt.Simulation(shortcuts=False),
            run=bt.Run(executor=place),
        )
        began, playing = time.monotonic(), 0.0
        bt.simulate(
            bt.UCB1(noise=0.5),
            PROBLEM,
            [0.2],
            horizon=10_000,
            runs=6000,
            simulation=bt.Simulation(shortcuts=False),
            run=bt.Run(executor=place),
        )
        busy = playing / (time.monotonic() - began) / 2
    assert busy > 0.7, busy  # 0.9 and more on a machine that has nothing else to do
