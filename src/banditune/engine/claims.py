"""Whether a user's problem keeps what it promises: instances by their seed, rewards as it says, with the means it says.

Our own problems have tests. A user's is looked at before its first run, because such a slip makes every number wrong.
"""

from __future__ import annotations

import hashlib
import math
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from banditune.contracts import BadRequest, Fault, Floats, Instance, Problem
from banditune.descriptions import own_code
from banditune.engine.bind import bound
from banditune.engine.loop import instance_key
from banditune.engine.means import CLAIMS, Seen, check_means, kind_refused
from banditune.engine.run import Job, instances
from banditune.streams import REWARDS, Stream, aim

FEW = 4
"""So many instances, arms and pulls are looked at."""

SECONDS = 0.1
"""Rewards that take long are looked at for so long."""

KNOWN = 64
"""So many problems are remembered that keep their promises."""

_kept: OrderedDict[tuple[Any, ...], Seen | None] = OrderedDict()
"""What was seen of the problems that keep their promises, by all that decides it: each is looked at once in a process."""


def check_claims(job: Job) -> Seen | None:
    """Refuse a user's own problem that breaks its promises; returns what was seen of its means, None if nothing was."""
    if own_code(job.problem) is None:
        return None
    key = _key(job)
    if key is None or key not in _kept:
        first, second = check_sample(job.problem, job.seed)
        check_claim(job, first)
        # Realised regret is by the rewards themselves.
        seen = check_means(job, first, second) if job.regret == "expected" else None
        if key is None:
            return seen
        _kept[key] = seen
        while len(_kept) > KNOWN:
            _kept.popitem(last=False)
    return _kept[key]


def _key(job: Job) -> tuple[Any, ...] | None:
    """All that decides what is seen of a problem: its rewards' code with all it reaches, and its first instances."""
    problem = job.problem
    try:
        code = bound(problem.reward)[1]
    except BadRequest:
        return None  # what is wrong with the code is said where it is played
    steady = problem.per_pull and not problem.means_by_pull
    about = (problem.name, problem.rewards, job.seed, job.regret, None if steady else job.horizon)
    return (*about, code, np.array(problem.options()).tobytes(), _block(problem, job.seed, 0).digest)


def check_sample(problem: Problem, seed: int) -> tuple[Floats, Floats]:
    """The means of the first two blocks of instances, which must depend on the seed, and on nothing else."""
    first, again, second = (_block(problem, seed, block) for block in (0, 0, 1))
    if first != again:
        raise BadRequest(
            f"`sample(size, rng)` of the problem {problem.name!r} must draw from `rng` alone, but called twice with the "
            "same one it drew other instances; use rng.random(...), rng.normal(...) and the like, and keep nothing between "
            "calls."
        )
    if first == second and len(np.unique(first.means, axis=0)) == len(first.means):
        raise BadRequest(
            f"`sample(size, rng)` of the problem {problem.name!r} must draw from `rng`, but from two different ones it "
            f"drew the same {len(first.means)} instances, so that no run would see others; use rng.random(...) and the "
            "like, or table[rng.integers(len(table), size=size)] to draw from a table."
        )
    return first.means, second.means


@dataclass(frozen=True)
class _Block:
    """A block of instances, alike if all bits are. Of features, which may be large, a digest is kept."""

    digest: str
    means: Floats = field(compare=False)


def _block(problem: Problem, seed: int, number: int) -> _Block:
    drawn = instances(problem, seed, number)
    assert drawn.features is not None
    return _Block(hashlib.sha256(drawn.means.tobytes() + drawn.features.tobytes()).hexdigest(), drawn.means)


def check_claim(job: Job, means: Floats) -> None:
    """Draw a few rewards, each twice: they come from their stream alone, and policies take for granted what they are."""
    problem = job.problem
    words, holds = CLAIMS.get(problem.rewards, ("", None))
    reward: Any = getattr(problem.reward, "py_func", problem.reward)
    options, began = np.array(problem.options()), time.perf_counter()
    for run, arm, pull in product(*(range(min(FEW, most)) for most in (len(means), problem.arms, job.horizon))):
        try:
            # Plain Python warns where numbers overflow; compiled code, which plays, does not.
            with np.errstate(all="ignore"):
                paid, again = (_paid(reward, Instance(means[run], options), job.seed, run, arm, pull) for _ in range(2))
        except Exception:
            return  # what is wrong is said with run and step where it is played
        if not math.isfinite(paid):
            continue
        if paid != again:
            raise BadRequest(
                f"`reward` of the problem {problem.name!r} must draw from `stream` alone, but asked twice for one pull it "
                f"paid {paid:g} and {again:g}; use bt.uniform(stream), bt.normal(stream) and the like."
            )
        if holds is not None and not holds(paid):
            raise Fault(kind_refused(job, words, run, arm, paid))
        if time.perf_counter() - began > SECONDS:
            return


def _paid(reward: Any, instance: Instance, seed: int, run: int, arm: int, pull: int) -> float:
    """One reward, at the first step at which an arm can have had so many pulls."""
    stream = Stream(*instance_key(seed, run), np.array([0, 0, 0, REWARDS]))  # type: ignore[call-arg, no-untyped-call]
    aim(stream, arm, pull)  # type: ignore[no-untyped-call]
    return float(reward(instance, arm, pull, pull, stream))
