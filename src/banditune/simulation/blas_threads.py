"""Limits matrix products to one thread, so that their last bits do not depend on the machine."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from threadpoolctl import ThreadpoolController

_users = 0


_active_limit: Any = None


_users_lock = threading.Lock()


@contextmanager
def limit_blas_threads() -> Iterator[None]:
    """Limit matrix products to one thread while any thread is in this context.

    The last bits of a product depend on its number of threads, but results must not. Chunks already use all cores.
    """
    global _users, _active_limit
    with _users_lock:
        _users += 1
        if _users == 1:
            _active_limit = _find_libraries().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _users_lock:
            _users -= 1
            if not _users:
                _active_limit.restore_original_limits()


@lru_cache(maxsize=1)
def _find_libraries() -> ThreadpoolController:
    """Find the libraries that multiply matrices for NumPy."""
    return ThreadpoolController()
