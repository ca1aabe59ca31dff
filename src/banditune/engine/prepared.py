"""A job made ready to play in this process: the compiled kernel, its options, and the last blocks of instances."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from banditune.contracts import Fault, Floats, Instances, Integers, Problem
from banditune.engine.bind import compile_for
from banditune.engine.claims import check_claims
from banditune.engine.loop import NOT_ORDERED
from banditune.engine.memory import SHARE, check_room, free_memory
from banditune.engine.ordering import PLACES
from banditune.engine.pieces import Piece, Played
from banditune.engine.run import (
    BLOCK,
    Job,
    broken,
    by_block,
    cut,
    instances,
    kernel_for,
    numbers_of,
    place_in,
    read_only,
    strip,
    who,
)

RUNNING = np.zeros(1, np.int64)
"""A sign that never says stop. (Not read-only: kernels are compiled for signs that can be set.)"""

PULLS = 13
"""Where the pulls of every arm stand among the arguments of a kernel."""


class Prepared:
    """A job ready to play; many threads may use it at once."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.kernel, self.floats, self.integers = kernel_for(job)
        self.at = np.array(job.at or (job.horizon,), np.int64)
        self.problem_options = read_only(job.problem.options())
        self.policy_options = numbers_of(job.policy.options(job.problem.arms, job.problem.dims, job.horizon))
        self.drawn = lru_cache(maxsize=4)(self._drawn)
        self._compile()

    def _compile(self) -> None:
        """Compile now, so that a complaint names the policy and no thread compiles twice."""
        arms, dims, width = self.job.problem.arms, self.job.problem.dims, max(1, len(self.job.policy.parameters))
        sample = Piece(read_only(np.zeros((1, width))), 0, range(1))
        means, features = read_only(np.zeros((1, arms))), read_only(np.zeros((1, dims, arms)))
        numbers = np.empty((1, 1, 1)), np.empty(5), np.zeros(1, np.int64)
        compile_for(self.kernel, self._arguments(sample, means, features, *numbers), who(self.job))

    def _drawn(self, block: int) -> Instances:
        found = instances(self.job.problem, self.job.seed, block)
        assert found.features is not None
        self.job.policy.check(found.features, self.job.horizon)
        return found

    def play(self, piece: Piece, stop: Integers) -> Played:
        """Play a piece, block by block, until `stop` is set."""
        began = time.perf_counter()
        regrets = np.empty((len(piece.params), len(piece.runs), len(self.at)))
        trouble = np.zeros(5)
        for block, within in by_block(piece.runs):
            means, features = cut(self.drawn(block), place_in(block, within))
            results = np.empty((len(piece.params), len(within), len(self.at)))
            one = piece._replace(runs=within)
            arguments = self._arguments(one, means, features, results, trouble, stop)
            try:
                self.kernel(*arguments)
            except Exception as error:
                place = PLACES.get(str(error)) if isinstance(error, FloatingPointError) else None
                if place is None:
                    raise Fault(broken(self.job, error)) from error
                # `update` comes after its step's pull was counted.
                pulls = arguments[PULLS]
                trouble[:3] = NOT_ORDERED, pulls.sum() - (place == "update"), list(PLACES.values()).index(place)
            before = within.start - piece.runs.start
            regrets[:, before : before + len(within)] = results
            if trouble[0]:
                trouble[4] += before
                break
        return Played(regrets, trouble, time.perf_counter() - began)

    def _arguments(
        self, piece: Piece, means: Floats, features: Floats, to: Floats, trouble: Floats, stop: NDArray[Any]
    ) -> tuple[Any, ...]:
        job, arms = self.job, self.job.problem.arms
        scratch = (strip(self.floats), np.zeros(self.integers, np.int64), np.zeros(arms, np.int64), np.zeros(arms),
                   np.zeros((3, 4), np.int64))  # fmt: skip
        first_noise = 1 + piece.first_row if job.noise == "own" else 0
        return (means, features, job.seed, piece.runs.start, self.problem_options, piece.params, self.policy_options,
                job.horizon, first_noise, self.at, job.regret == "realised", *scratch, to, trouble, stop)  # fmt: skip


def ready(job: Job) -> Any:
    """Who plays a job in this process, whose problem keeps what it promises."""
    check_instances(job.problem)
    check_claims(job)
    return _player(job)


def compiled(job: Job) -> None:
    """Have a job compiled, for others to find on disk; nothing of it is drawn."""
    check_instances(job.problem)
    _player(job)


def _player(job: Job) -> Any:
    return job.policy.player(job) if job.policy.plays_itself else Prepared(job)


def check_instances(problem: Problem) -> None:
    """Refuse instances of which a block does not fit into memory: as they are drawn, as they are played, and in between."""
    large = 3 * 8.0 * BLOCK * problem.arms * (1 + problem.dims)
    if large <= SHARE * free_memory():
        return
    given = getattr(problem, "features", None) is not None
    size = 3 * 8.0 * BLOCK * problem.arms if given or _alike(problem) else large
    check_room(f"{BLOCK} instances of the problem {problem.name!r}", size, "use fewer arms or features")


def _alike(problem: Problem) -> bool:
    """Whether all instances share their features; not looked at where two instances would take long."""
    if problem.arms * problem.dims > 1e6:
        return False
    features = problem.sample(2, np.random.default_rng(0)).features
    return features is None or np.ndim(features) == 2 or len(features) == 1


_held = 0
_limit: Any = None
_lock = threading.Lock()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold products of matrices to one thread while anybody is inside.

    Their last bits depend on the number of threads that share them: the answer must not. And there are threads enough.
    """
    global _held, _limit
    with _lock:
        _held += 1
        if _held == 1:
            _limit = _libraries().limit(limits=1, user_api="blas")
    try:
        yield
    finally:
        with _lock:
            _held -= 1
            if not _held:
                _limit.restore_original_limits()


@lru_cache(maxsize=1)
def _libraries() -> ThreadpoolController:
    """The libraries that multiply matrices for NumPy."""
    return ThreadpoolController()
