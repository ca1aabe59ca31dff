"""The HTTP example: many clients, a kill, and the start from the saved state."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

import banditune as bt
from helpers.paths import ROOT

sys.path.insert(0, str(ROOT / "examples"))
import http_service


@pytest.fixture
def serve():
    """Start the service on a free port: `serve(state)` returns the process and its port."""
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


def send_request(connection, method, path, body=None):
    """The status and the JSON reply of a request."""
    connection.request(method, path, None if body is None else json.dumps(body))
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read())


def run_client(port, number, rounds):
    """Select and update as one client."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for turn in range(rounds):
        _, reply = send_request(connection, "POST", "/select")
        reward = int((turn * 7 + number) % 10 < {"a": 2, "b": 5, "c": 8}[reply["arm"]])
        status, _ = send_request(connection, "POST", "/update", {"arm": reply["arm"], "reward": reward})
        assert status == 200
    connection.close()


def test_a_killed_service_continues_from_its_saved_state(serve, tmp_path):
    path = tmp_path / "state.json"
    bt.deploy(bt.Thompson(prior=(1, 1)), 0.5, horizon=10_000, names=["a", "b", "c"]).save(path)
    process, port = serve(path)
    clients = [threading.Thread(target=run_client, args=(port, number, 75)) for number in range(4)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    deadline = time.monotonic() + 20
    while bt.DeployedPolicy.load(path).step < 300 or any(
        arm.pending_pulls for arm in bt.DeployedPolicy.load(path).state.arms
    ):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.wait()
    shutil.copy(path, tmp_path / "copy.json")

    process, port = serve(path)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    _, state = send_request(connection, "GET", "/state")
    assert sum(arm["pulls"] for arm in state["arms"]) == 300
    copy = bt.DeployedPolicy.load(tmp_path / "copy.json")
    for _ in range(20):
        assert send_request(connection, "POST", "/select") == (200, {"arm": copy.select_arm()})
    for body, message, argument, code in (
        ({"arm": "z", "reward": 1}, "must be one of", "arm", "unknown-name"),
        ({"arm": "a", "reward": 2}, "[0, 1]", "reward", "out-of-range"),
        ([], "object", None, "invalid-request"),
    ):
        status, reply = send_request(connection, "POST", "/update", body)
        assert status == 400
        assert message in reply["error"]
        assert (reply["argument"], reply["code"]) == (argument, code)
    assert send_request(connection, "POST", "/elsewhere")[0] == 404
    connection.close()
    process.terminate()
    assert process.wait(timeout=20) == 0
    assert bt.DeployedPolicy.load(path).step == 320


def send_bytes(port, content):
    """The status and the JSON reply to these bytes."""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall(content)
        client.shutdown(socket.SHUT_WR)
        reply = http.client.HTTPResponse(client)
        reply.begin()
        return reply.status, json.loads(reply.read())


def make_post(body, *headers, path="/update"):
    """A request as bytes."""
    return "\r\n".join((f"POST {path} HTTP/1.1", "Host: x", *headers, "", body)).encode()


CHUNKED = "Transfer-Encoding: chunked"


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """A service in this process."""
    path = tmp_path_factory.mktemp("service") / "state.json"
    bt.deploy(bt.UCB1(noise=0.5), 0.5, horizon=100, names=["a", "b"]).save(path)
    service = http_service.Service(("127.0.0.1", 0), str(path))
    threading.Thread(target=service.serve_forever, daemon=True).start()
    yield service.server_address[1]
    service.shutdown()
    service.server_close()


def test_request_bodies_may_be_chunked(port):
    text = '{"arm": "a", "reward": 1}'
    body = f"5;name=value\r\n{text[:5]}\r\n{len(text) - 5:X}\r\n{text[5:]}\r\n0\r\nAfter: all\r\n\r\n"
    assert send_bytes(port, make_post(body, CHUNKED)) == (200, {})
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    for _ in range(2):  # the connection can be used again
        connection.request(
            "POST",
            "/update",
            iter([text[:9].encode(), text[9:].encode()]),
            encode_chunked=True,
            headers={"Transfer-Encoding": "chunked"},
        )
        reply = connection.getresponse()
        assert (reply.status, json.loads(reply.read())) == (200, {})
    assert send_request(connection, "GET", "/state")[1]["arms"][0]["pulls"] == 3
    connection.close()


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (make_post("{", "Content-Length: 1"), 400, "must be a JSON object, but: "),
        (make_post("[" * 50_000, "Content-Length: 50000"), 400, "must be a JSON object"),
        (make_post("\xff", "Content-Length: 1"), 400, "must be a JSON object"),
        (make_post("", "Content-Length: -1"), 400, "must be a whole number"),
        (make_post("", "Content-Length: 99999999"), 413, "at most 65536 bytes"),
        (make_post("{}", "Content-Length: 9"), 400, "ends after 2"),
        (make_post("{}", "Transfer-Encoding: gzip"), 501, "chunked and nothing else"),
        (make_post("{}", CHUNKED, "Content-Length: 2"), 501, "chunked and nothing else"),
        (make_post("zz\r\n{}", CHUNKED), 400, "must be a whole number"),
        (make_post("2\r\n{}x\r\n0\r\n\r\n", CHUNKED), 400, "end where it says"),
        (make_post("2\r\n{}\r\n", CHUNKED), 400, "it ends"),
        (make_post("8000\r\n" + "x" * 0x8000 + "\r\n8001\r\n", CHUNKED), 413, "at most 65536 bytes"),
        (make_post("1" * 2000, CHUNKED), 400, "too long"),
        (make_post('{"reward": 1}', "Content-Length: 13"), 400, "must be one of 'a', 'b', but got None"),
        (make_post("", path="/"), 404, "there is GET /state"),
    ],
)
def test_wrong_requests_get_a_status_and_a_message(port, content, code, message):
    status, reply = send_bytes(port, content)
    assert status == code
    assert message in reply["error"]
    assert send_bytes(port, make_post("", path="/select"))[0] == 200


def test_a_missing_state_and_a_used_port_are_errors_of_one_line(port, tmp_path):
    state = tmp_path / "state.json"

    def run_and_fail(*arguments):
        command = [sys.executable, str(ROOT / "examples" / "http_service.py"), str(state), *arguments]
        process = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert process.returncode == 1
        assert process.stderr.count("\n") == 1
        return process.stderr

    assert "Make one with: banditune deploy TUNING.json -o " in run_and_fail()
    bt.deploy(bt.UCB1(noise=0.5), 0.5, horizon=100, names=["a", "b"]).save(state)
    assert f"port {port} cannot be listened on: " in run_and_fail("--port", str(port))
    assert "choose another with --port" in run_and_fail("--port", "99999")
