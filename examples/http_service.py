"""A deployed policy as an HTTP service, with nothing but the standard library.

    banditune tune --policy ts --problem bernoulli --arms 3 --names red,green,blue --horizon 10000 -o tuning.json
    banditune deploy tuning.json -o state.json
    python examples/http_service.py state.json --port 8000

    curl -X POST localhost:8000/select                                        {"arm": "green"}
    curl -X POST localhost:8000/update -d '{"arm": "green", "reward": 1}'     {}
    curl localhost:8000/state                                                 the whole state

The state is saved every second if it has changed, and when the service is asked to stop: one that is killed loses what
came in the last second. The arms that it handed out before still take their rewards afterwards.
"""

from __future__ import annotations

import argparse
import json
import signal
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import banditune as bt

LONGEST = 2**16


class Service(ThreadingHTTPServer):
    """Holds the policy, and saves it when it has changed."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], path: str) -> None:
        super().__init__(address, Handler)
        self.live = bt.Live.load(path)
        self.path = path
        self.changed = threading.Event()

    def save(self) -> None:
        """Write the state, if it has changed since it was written last."""
        if self.changed.is_set():
            self.changed.clear()
            self.live.save(self.path)

    def keep_saving(self, seconds: float, stopped: threading.Event) -> None:
        """Save now and then until stopped; a full disk is said and tried again."""
        while not stopped.wait(seconds):
            try:
                self.save()
            except bt.BadRequest as error:
                self.changed.set()
                print(error, flush=True)


class Handler(BaseHTTPRequestHandler):
    """POST /select, POST /update, GET /state."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Service

    def do_GET(self) -> None:
        if self.path == "/state":
            self.answer(200, json.loads(self.server.live.to_json()))
        else:
            self.answer(404, {"error": "there is GET /state, POST /select and POST /update"})

    def do_POST(self) -> None:
        try:
            told = self.told()
            if self.path == "/select":
                self.answer(200, {"arm": self.server.live.select_arm()})
            elif self.path == "/update":
                self.server.live.update(told.get("arm"), told.get("reward"))
                self.answer(200, {})
            else:
                self.answer(404, {"error": "there is GET /state, POST /select and POST /update"})
            self.server.changed.set()
        except bt.BadRequest as error:
            self.answer(400, {"error": str(error)})
        except bt.Fault as error:
            self.answer(500, {"error": str(error)})

    def told(self) -> dict[str, Any]:
        """The JSON object of a request; nothing is an empty one."""
        length = self.headers.get("Content-Length", "0")
        if not length.isdecimal() or int(length) > LONGEST:
            self.close_connection = True
            raise bt.BadRequest(f"a request must say its length, at most {LONGEST} bytes, but got {length!r:.40}.")
        try:
            found = json.loads(self.rfile.read(int(length)) or "{}")
        except (ValueError, RecursionError) as error:
            raise bt.BadRequest("a request must be a JSON object.") from error
        if not isinstance(found, dict):
            raise bt.BadRequest(f"a request must be a JSON object, but got {found!r:.40}.")
        return found

    def answer(self, code: int, found: Any) -> None:
        """Send a JSON object."""
        body = json.dumps(found).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Say nothing for each request."""


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="A deployed policy as an HTTP service.")
    parser.add_argument("state", help="a file that `banditune deploy` wrote")
    parser.add_argument("--port", type=int, default=8000, help="0 for any that is free")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between savings")
    told = parser.parse_args()
    service = Service(("127.0.0.1", told.port), told.state)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    signal.signal(signal.SIGINT, lambda *_: stopped.set())
    threading.Thread(target=service.serve_forever, daemon=True).start()
    print(f"listening on port {service.server_address[1]}", flush=True)
    service.keep_saving(told.every, stopped)
    service.shutdown()
    service.save()


if __name__ == "__main__":
    main()
