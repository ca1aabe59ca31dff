"""The checks of a user's own executor."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banditune.core.checks import check_type, convert_to_integer
from banditune.core.errors import SimulationError
from banditune.core.policy import Policy
from banditune.core.problem import Instances
from banditune.policies.epsilon_greedy import EpsilonGreedy
from banditune.policies.ucb1 import UCB1
from banditune.problems.bernoulli_arms import Bernoulli, BinaryProblem
from banditune.results.conformance_results import ConformanceReport
from banditune.simulation.dispatch import simulate_rows, simulate_rows_separately
from banditune.simulation.executor import Chunk, ChunkResult, Executor, LostChunk
from banditune.simulation.spec import SimulationSpec
from banditune.testing.conformance_steps import Finding, Violation, describe_bits, run_steps

RUNS = 600
"""The number of runs that are simulated on the executor, in blocks of 256."""


ROWS = np.array([[0.1], [0.5], [1.0]])


SPEC = (UCB1(noise=0.5), Bernoulli(arms=3), 100)
"""The policies, problems and horizons that are simulated."""


def check_executor(executor: Executor) -> ConformanceReport:
    """Check that an executor fulfils its contract: the same bits as threads, each chunk once, unchanged errors.

    It is meant for tests of your own executor. It takes about a second, plus the time to start workers.

    Parameters
    ----------
    executor : Executor
        An open executor. It is not closed.

    Returns
    -------
    ConformanceReport
        The checks that were passed, with the number of runs.

    Raises
    ------
    ConformanceError
        If the executor violates its contract.
    InvalidRequest
        If the object is not an executor.

    Examples
    --------
    >>> import banditune as bt
    >>> with bt.executors.ThreadExecutor(2) as executor:
    ...     report = bt.testing.check_executor(executor)
    >>> [check.name for check in report.checks]
    ['workers', 'same-bits', 'each-chunk-once', 'stopping', 'errors']
    """
    check_type("executor", executor, Executor, "an executor such as ThreadExecutor()")
    steps: dict[str, Callable[[], Finding]] = {
        "workers": lambda: check_workers(executor),
        "same-bits": lambda: check_bits(executor),
        "each-chunk-once": lambda: check_chunks(executor),
        "stopping": lambda: check_stopping(executor),
        "errors": lambda: check_errors(executor),
    }
    return run_steps("executor", type(executor).__name__, steps)


@dataclass(frozen=True)
class NoInstances(BinaryProblem):
    """A problem that fails."""

    arms: int = 3

    name = "no-instances"

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        raise ValueError("there are none")


def make_spec(policy: Policy | None = None, seed: int = 0) -> SimulationSpec:
    """Make a small spec."""
    default_policy, problem, horizon = SPEC
    return SimulationSpec(policy or default_policy, problem, horizon, seed)


def check_workers(executor: Executor) -> Finding:
    """Check the attributes of an executor that the scheduler reads."""
    workers, seconds = executor.workers, executor.chunk_seconds
    if (convert_to_integer(workers) or 0) < 1:
        raise Violation(
            f"`workers` must be a whole number >= 1, the number of chunks that run at once, but it is {workers!r}."
        )
    if not 0 <= seconds < np.inf:
        raise Violation(f"`chunk_seconds` must be a number >= 0, but it is {seconds!r}.")
    return Finding(f"{workers} workers, chunks of about {seconds:g} s")


def check_bits(executor: Executor) -> Finding:
    """Compare regrets with those of a thread, for several specs in turn."""
    specs = [
        make_spec(),
        make_spec(EpsilonGreedy()),
        replace(make_spec(seed=1), common_random_numbers=False, checkpoints=(10, 100), regret="realised"),
    ]
    for spec in specs:
        expected = simulate_rows(spec, ROWS, range(RUNS), workers=1)
        executed = simulate_rows(spec, ROWS, range(RUNS), executor=executor)
        if not np.array_equal(expected, executed):
            raise Violation(
                f"regrets must be those of a thread, but {describe_bits(expected, executed)}; return the `ChunkResult` of "
                "a chunk unchanged, with the ticket that was submitted with it."
            )
    sizes = (10, 300, 20)
    expected_each = simulate_rows_separately(specs[0], ROWS, sizes, 0, workers=1)
    executed_each = simulate_rows_separately(specs[0], ROWS, sizes, 0, executor=executor)
    if not all(map(np.array_equal, expected_each, executed_each)):
        raise Violation("regrets of rows with separate runs must be those of a thread, but they differ.")
    text = f"the bits of a thread, in {len(specs)} specs of {len(ROWS)} rows and {RUNS} runs"
    return Finding(text, len(specs) * RUNS, 0.0)


def make_chunks() -> list[Chunk]:
    """Make chunks of different sizes."""
    return [Chunk(ROWS, 0, range(first, first + size)) for first, size in ((0, 5), (5, 100), (105, 1), (300, 40))]


def check_chunks(executor: Executor) -> Finding:
    """Submit chunks in one session, and check that each is returned once, with its ticket."""
    chunks = dict(enumerate(make_chunks(), start=7))
    returned: dict[int, Any] = {}
    with executor.open_session(make_spec()) as session:
        for ticket, chunk in chunks.items():
            session.submit(ticket, chunk)
        for _ in chunks:
            ticket, result = session.wait_for_result()
            if ticket not in chunks or ticket in returned:
                raise Violation(f"each ticket must be returned once, but got {ticket!r} of {list(chunks)}.")
            returned[ticket] = result
    for ticket, result in returned.items():
        if isinstance(result, LostChunk):
            raise Violation(f"no chunk must be lost while all workers run, but one was: {result.reason}.")
        shape = (len(ROWS), len(chunks[ticket].runs), 1)
        if not isinstance(result, ChunkResult) or np.shape(result.regrets) != shape:
            raise Violation(
                f"the result of ticket {ticket} must be a ChunkResult with regrets {shape}, but got {result!r:.200}."
            )
    return Finding(f"{len(chunks)} chunks were returned once each, with their tickets", len(chunks), 0.0)


def check_stopping(executor: Executor) -> Finding:
    """End a session with chunks in flight, and check that the next one receives none of them."""
    with executor.open_session(make_spec()) as session:
        for ticket, chunk in enumerate(make_chunks(), start=100):
            session.submit(ticket, chunk)
    with executor.open_session(make_spec(seed=2)) as session:
        session.submit(1, make_chunks()[0])
        ticket, _ = session.wait_for_result()
    if ticket != 1:
        raise Violation(f"a session must return only its own chunks, but it returned ticket {ticket} of another.")
    return Finding("after a session that ends early, the next one receives none of its chunks", len(make_chunks()))


def check_errors(executor: Executor) -> Finding:
    """Simulate a policy that fails, and check that the error is that of a thread and that the executor works afterwards."""
    spec = make_spec()
    failing = replace(spec, problem=NoInstances())
    messages = []
    for how in ({"workers": 1}, {"executor": executor}):
        try:
            simulate_rows(failing, ROWS, range(5), **how)
        except SimulationError as error:
            messages.append(str(error))
        else:
            messages.append("no error")
    if messages[0] != messages[1]:
        raise Violation(
            f"errors of policies and problems must reach the caller, but {messages[0]!r} became {messages[1]!r}."
        )
    after = simulate_rows(spec, ROWS, range(5), executor=executor)
    if not np.array_equal(after, simulate_rows(spec, ROWS, range(5), workers=1)):
        raise Violation("an executor must work after an error, but after it regrets differ.")
    return Finding("an error of the problem is that of a thread, and the executor works afterwards")
