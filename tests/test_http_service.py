"""The HTTP example: many clients, a kill, and on from the saved state."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import subprocess
import sys
import threading
import time

import pytest

import banditune as bt
from conftest import ROOT


@pytest.fixture
def serve():
    """Start the service on a free port: `serve(state)` gives the process and its port."""
    started = []

    def start(state):
        command = [
            sys.executable,
            str(ROOT / "examples" / "http_service.py"),
            str(state),
            "--port",
            "0",
            "--every",
            "0.1",
        ]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        started.append(process)
        return process, int(process.stdout.readline().split()[-1])

    yield start
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()


def asked(connection, method, path, told=None):
    """The status and the JSON answer of a request."""
    connection.request(method, path, None if told is None else json.dumps(told))
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read())


def play(port, number, rounds):
    """Play rounds as one client."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for turn in range(rounds):
        _, found = asked(connection, "POST", "/select")
        reward = int((turn * 7 + number) % 10 < {"a": 2, "b": 5, "c": 8}[found["arm"]])
        status, _ = asked(connection, "POST", "/update", {"arm": found["arm"], "reward": reward})
        assert status == 200
    connection.close()


def test_a_killed_service_goes_on_from_its_saved_state(serve, tmp_path):
    path = tmp_path / "state.json"
    bt.deploy(bt.Thompson(), 0.5, horizon=10_000, names=["a", "b", "c"]).save(path)
    process, port = serve(path)
    clients = [threading.Thread(target=play, args=(port, number, 75)) for number in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    deadline = time.monotonic() + 20
    while bt.Live.load(path).step < 300 or any(arm.waiting for arm in bt.Live.load(path).state.arms):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    shutil.copy(path, tmp_path / "copy.json")

    process, port = serve(path)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    _, state = asked(connection, "GET", "/state")
    assert sum(arm["pulls"] for arm in state["arms"]) == 300
    twin = bt.Live.load(tmp_path / "copy.json")
    for _ in range(20):
        assert asked(connection, "POST", "/select") == (200, {"arm": twin.select_arm()})
    for told, said in (
        ({"arm": "z", "reward": 1}, "must be one of"),
        ({"arm": "a", "reward": 2}, "[0, 1]"),
        ([], "object"),
    ):
        status, found = asked(connection, "POST", "/update", told)
        assert status == 400
        assert said in found["error"]
    assert asked(connection, "POST", "/elsewhere")[0] == 404
    connection.close()
    process.terminate()
    assert process.wait(timeout=20) == 0
    assert bt.Live.load(path).step == 320
