"""An executor of your own, on any pool of `concurrent.futures`: copy this file, change the pool, and run it.

    python executor.py

Pools with this interface exist for MPI (mpi4py.futures), joblib (loky) and batch systems. Workers must have the same
versions of banditune, NumPy, Numba and Python.
"""

from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from multiprocessing import get_context
from typing import Any

import banditune as bt


class PoolSession(bt.executors.ExecutorSession):
    """The chunks of one simulation that are in flight."""

    def __init__(self, pool: Any, spec: Any) -> None:
        self.pool = pool
        self.packed = bt.executors.pack_spec(spec)  # policy and problem as bytes, with the user's code
        self.tickets: dict[Future[Any], int] = {}

    def submit(self, ticket: int, chunk: bt.executors.Chunk) -> None:
        """Submit a chunk. Its result must come back with this ticket."""
        future = self.pool.submit(bt.executors.simulate_packed_chunk, self.packed, chunk)
        self.tickets[future] = ticket

    def wait_for_result(self) -> Any:
        """Wait for the next chunk that ends, whichever it is."""
        ended, _ = wait(self.tickets, return_when=FIRST_COMPLETED)
        future = ended.pop()
        ticket = self.tickets.pop(future)
        try:
            reply = future.result()
        except Exception as error:  # the worker died: banditune submits the chunk again, a few times
            return ticket, bt.executors.LostChunk(f"{type(error).__name__}: {error}")
        return ticket, bt.executors.unpack_reply(reply)  # raises the error of a policy or a problem

    def stop(self) -> None:
        """Cancel what is still in flight."""
        for future in self.tickets:
            future.cancel()


class PoolExecutor(bt.executors.Executor):
    """Chunks on a pool. It is opened once, and used for many simulations."""

    def __init__(self, pool: Any, workers: int) -> None:
        self.pool, self.size = pool, workers

    @property
    def workers(self) -> int:
        """How many chunks run at the same time."""
        return self.size

    def open_session(self, spec: Any) -> PoolSession:
        """Open a session for one simulation."""
        return PoolSession(self.pool, spec)

    def close(self) -> None:
        """Release what belongs to the executor."""
        self.pool.shutdown(cancel_futures=True)


def main() -> None:
    pool = ProcessPoolExecutor(2, mp_context=get_context("spawn"))
    with PoolExecutor(pool, workers=2) as executor:
        print(bt.testing.check_executor(executor))
        run = bt.Run(executor=executor)
        print(bt.tune(bt.UCB1(), bt.Bernoulli(arms=5), horizon=1000, budget=500, run=run))


if __name__ == "__main__":
    main()
