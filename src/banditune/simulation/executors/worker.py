"""A child process that simulates chunks: `python -m banditune.simulation.executors.worker FD`.

`ProcessExecutor` starts it. It reads messages from the pipe and answers each. It ends when the pipe is closed, even during
a chunk.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from banditune.simulation.executors.transport import (
    PackedSpec,
    identify_worker,
    load_simulator,
    pack_error,
    simulate_packed_chunk,
)


def serve_driver() -> None:
    """Serve until the pipe is closed."""
    pipe = Connection(int(sys.argv[1]))
    messages: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, messages), daemon=True).start()
    pipe.send_bytes(pickle.dumps(identify_worker()))
    packed_spec: PackedSpec | None = None
    while True:
        kind, content = messages.get()
        reply: Any = None
        if kind == "spec":
            packed_spec = content
            try:
                load_simulator(content)
            except Exception as error:
                reply = pack_error(error)
        else:
            assert packed_spec is not None
            reply = simulate_packed_chunk(packed_spec, content)
        pipe.send_bytes(pickle.dumps(reply, protocol=5))


def _listen(pipe: Connection, messages: SimpleQueue[Any]) -> None:
    """Read messages. Exit when the process at the other end has closed the pipe."""
    try:
        while True:
            messages.put(pickle.loads(pipe.recv_bytes()))
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    serve_driver()
