"""A child process that plays pieces: `python -m banditune.engine.cluster.worker FD`, started by `Processes`.

It reads messages from the pipe, answers each, and ends when the pipe does, even in the middle of a piece.
"""

from __future__ import annotations

import os
import pickle
import sys
import threading
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any

from banditune.engine.cluster.travel import Recipe, answer, card, failed, prepared


def main() -> None:
    """Serve until the pipe ends."""
    pipe = Connection(int(sys.argv[1]))
    messages: SimpleQueue[Any] = SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, messages), daemon=True).start()
    pipe.send_bytes(pickle.dumps(card()))
    recipe: Recipe | None = None
    while True:
        kind, content = messages.get()
        reply: Any = None
        if kind == "job":
            recipe = content
            try:
                prepared(content)
            except Exception as error:
                reply = failed(error)
        else:
            assert recipe is not None
            reply = answer(recipe, content)
        pipe.send_bytes(pickle.dumps(reply, protocol=5))


def _listen(pipe: Connection, messages: SimpleQueue[Any]) -> None:
    """Take messages; a driver that is gone wants nothing any more."""
    try:
        while True:
            messages.put(pickle.loads(pipe.recv_bytes()))
    except (EOFError, OSError):
        os._exit(0)


if __name__ == "__main__":
    main()
