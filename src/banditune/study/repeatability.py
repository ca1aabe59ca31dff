"""Checks whether the runs of an external policy are the same when they are simulated again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.notice import Finding, with_code
from banditune.simulation.executor import Chunk
from banditune.simulation.spec import SimulationSpec
from banditune.study.parameter_values import make_textbook_row

REPEATED_STEPS = 32
"""Steps of the runs that are simulated twice."""


@with_code("not-repeatable")
def note_unrepeatable_runs(spec: SimulationSpec) -> Iterator[Finding]:
    """Yield a notice if two runs of an external policy differ when they are simulated again.

    This must precede all other runs. Objects that share data may decide alike after many runs. Compiled policies start each
    run with cleared memory, and their random numbers have addresses.
    """
    if not spec.policy.is_external:
        return
    steps = min(REPEATED_STEPS, spec.horizon)
    short = replace(spec, regret="expected", checkpoints=tuple(range(1, steps + 1)))
    first, second = (_simulate_two_runs(short) for _ in range(2))
    if not np.array_equal(first, second):
        yield (
            f"{spec.policy.name} is not repeatable: a run was simulated twice with the same seed, and its decisions "
            "differed. There are two possible causes. If objects share data, runs learn from earlier ones, and all numbers "
            "are wrong. If the policy draws from a generator without `seed`, each call has other numbers.",
            "Make a new object with its own data for every run, and pass it the seed.",
        )


def _simulate_two_runs(spec: SimulationSpec) -> FloatArray:
    """Simulate two runs at the textbook value; returns their regrets at every step."""
    chunk = Chunk(make_textbook_row(spec)[None, :], 0, range(2))
    return spec.policy.make_simulator(spec).simulate_chunk(chunk, np.zeros(1, np.int64)).regrets  # type: ignore[no-any-return]
