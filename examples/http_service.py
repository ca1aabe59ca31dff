"""A deployed policy as an HTTP service, with nothing but the standard library.

    banditune tune --policy ts --problem bernoulli --arms 3 --names red,green,blue --horizon 10000 -o tuning.json
    banditune deploy tuning.json -o state.json
    python examples/http_service.py state.json --port 8000

    curl -X POST localhost:8000/select                                        {"arm": "green"}
    curl -X POST localhost:8000/update -d '{"arm": "green", "reward": 1}'     {}
    curl localhost:8000/state                                                 the whole state

The state is saved every second if it has changed, and when the service is asked to stop. A service that is killed loses
what came in the last second. Afterwards it still accepts rewards of arms that it selected before.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import banditune as bt

MAX_BODY_BYTES = 2**16


class Service(ThreadingHTTPServer):
    """Holds the policy, and saves it when it has changed."""

    daemon_threads = True

    def __init__(self, address: tuple[str, int], path: str) -> None:
        self.live = bt.DeployedPolicy.load(path)
        super().__init__(address, Handler)
        self.path = path
        self.changed = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is not an error of the service."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def save(self) -> None:
        """Write the state, if it has changed since it was written last."""
        if self.changed.is_set():
            self.changed.clear()
            self.live.save(self.path)

    def keep_saving(self, seconds: float, stopped: threading.Event) -> None:
        """Save every so many seconds until stopped; if the disk is full, print that and try again."""
        while not stopped.wait(seconds):
            try:
                self.save()
            except bt.InvalidRequest as error:
                self.changed.set()
                print(error, flush=True)


class BadHttpRequest(Exception):
    """A request that this service does not understand: an HTTP status and a message."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Handler(BaseHTTPRequestHandler):
    """POST /select, POST /update, GET /state."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 60
    server: Service

    def do_GET(self) -> None:
        if self.path == "/state":
            self.send_json(200, json.loads(self.server.live.to_json()))
        else:
            self.send_json(404, {"error": "there is GET /state, POST /select and POST /update"})

    def do_POST(self) -> None:
        try:
            request = self.read_json()
            if self.path == "/select":
                arm = self.server.live.select_arm()
                self.server.changed.set()
                self.send_json(200, {"arm": arm})
            elif self.path == "/update":
                self.server.live.update(request.get("arm"), request.get("reward"))
                self.server.changed.set()
                self.send_json(200, {})
            else:
                self.send_json(404, {"error": "there is GET /state, POST /select and POST /update"})
        except BadHttpRequest as error:
            self.send_json(error.status, {"error": str(error)})
        except bt.InvalidRequest as error:
            self.send_json(400, {"error": str(error), "argument": error.argument, "code": error.code})
        except bt.SimulationError as error:
            self.send_json(500, {"error": str(error)})

    def read_json(self) -> dict[str, Any]:
        """Read the JSON object of a request; an empty body is an empty object."""
        try:
            found = json.loads(self.read_body() or b"{}")
        except (ValueError, RecursionError) as error:
            raise bt.InvalidRequest(f"a request must be a JSON object, but: {error!s:.80}.") from error
        if not isinstance(found, dict):
            raise bt.InvalidRequest(f"a request must be a JSON object, but got {found!r:.40}.")
        return found

    def read_body(self) -> bytes:
        """Read a body with a length or in chunks; after a bad request the connection is closed."""
        close, self.close_connection = self.close_connection, True
        coding, length = self.headers.get("Transfer-Encoding"), self.headers.get("Content-Length")
        if coding is not None and (coding.strip().lower() != "chunked" or length is not None):
            raise BadHttpRequest(
                501, f"a body may be chunked and nothing else, but got {coding!r:.40}; send Content-Length."
            )
        if coding is None:
            found = self.read_bytes(self.parse_length(length or "0", 10))
        else:
            found = b"".join(self.read_chunks())
        self.close_connection = close
        return found

    def read_chunks(self) -> Iterator[bytes]:
        """Read the chunks of a body, which together may be as long as a body."""
        left = MAX_BODY_BYTES
        while size := self.parse_length(self.read_line().partition(b";")[0].decode("latin1").strip(), 16, left):
            left -= size
            yield self.read_bytes(size)
            if self.read_line():
                raise BadHttpRequest(400, "a chunk must end where it says, but it goes on.")
        while self.read_line():
            pass  # trailers are not used

    def parse_length(self, text: str, base: int, most: int = MAX_BODY_BYTES) -> int:
        """Parse a length that is at most `most`."""
        if not text or not set(text.lower()) <= set("0123456789abcdef"[:base]):
            raise BadHttpRequest(400, f"a length must be a whole number, but got {text!r:.40}.")
        if len(text) > 20 or int(text, base) > most:
            raise BadHttpRequest(413, f"a request must have at most {MAX_BODY_BYTES} bytes, but it has more.")
        return int(text, base)

    def read_line(self) -> bytes:
        """Read a line between chunks."""
        found = self.rfile.readline(1000)
        if not found.endswith(b"\n"):
            raise BadHttpRequest(400, "a chunked body must be lines and chunks, but it ends or a line is too long.")
        return found.rstrip(b"\r\n")

    def read_bytes(self, size: int) -> bytes:
        """Read a number of bytes."""
        found = self.rfile.read(size)
        if len(found) < size:
            raise BadHttpRequest(
                400, f"a body must have the {size} bytes that it says, but it ends after {len(found)}."
            )
        return found

    def send_json(self, status: int, value: Any) -> None:
        """Send a JSON object."""
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Print nothing for a request."""


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description="A deployed policy as an HTTP service.")
    parser.add_argument("state", help="a file that `banditune deploy` wrote")
    parser.add_argument("--port", type=int, default=8000, help="0 for any that is free")
    parser.add_argument("--every", type=float, default=1.0, help="seconds between saves")
    arguments = parser.parse_args()
    try:
        service = Service(("127.0.0.1", arguments.port), arguments.state)
    except bt.InvalidRequest as error:
        exists = os.path.exists(arguments.state)
        sys.exit(str(error) if exists else f"{error} Make one with: banditune deploy TUNING.json -o {arguments.state}")
    except (OSError, OverflowError) as error:
        sys.exit(f"port {arguments.port} cannot be listened on: {error}; choose another with --port, or 0 for any.")
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stopped.set())
    signal.signal(signal.SIGINT, lambda *_: stopped.set())
    threading.Thread(target=service.serve_forever, daemon=True).start()
    print(f"listening on port {service.server_address[1]}", flush=True)
    service.keep_saving(arguments.every, stopped)
    service.shutdown()
    service.save()


if __name__ == "__main__":
    main()
