"""Plays jobs in pieces: instances in, regrets out, the same numbers for any cluster, any threads and any pieces."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from banditune.checks import open_options
from banditune.contracts import PROBLEM, BadRequest, Fault, Floats, Instances, Outage, Play, Policy, Problem, Team
from banditune.engine import loop
from banditune.engine.bind import kernel
from banditune.engine.memory import check_room
from banditune.engine.ordering import PLACES
from banditune.engine.pieces import Cluster, Lost, Piece, Played, Work

BLOCK = 256
"""Instances are drawn in whole blocks of this size; block b is a function of the seed and b alone."""

STREAM_VERSION = 1
"""Part of every key of a ledger: raised when the same seed draws other instances, rewards or agents' numbers."""

TASK = 1 << 22
"""Rounds in one piece, fewer where arms have features: short enough for a progress bar, long enough to hide its cost."""

LARGEST_PIECE = 1 << 17
"""Regrets in one piece, at most: a megabyte."""

AHEAD = 4
"""Pieces in flight for each worker."""

TRIES = 3
"""A piece that lost its worker so many times is not tried again."""


@dataclass(frozen=True)
class Job:
    """Everything that decides the regrets of a run, except its number.

    `textbook` is the policy with the textbook's options, where it is another one; `sources` are pairs of an option that was
    taken from the problem and words on how. Neither changes a regret.
    """

    policy: Policy
    problem: Problem
    horizon: int
    seed: int = 0
    regret: str = "expected"
    noise: str = "shared"
    at: tuple[int, ...] = ()
    shortcut: bool = True
    device: str = "cpu"
    textbook: Policy | None = None
    sources: tuple[tuple[str, str], ...] = ()
    ranges: tuple[tuple[str, float, float], ...] = ()
    """Ranges to search that were asked for: names of parameters with both ends. No regret depends on them."""

    def __post_init__(self) -> None:
        check_numbers(self.policy)

    @property
    def baseline(self) -> Job:
        """The same with the textbook's policy."""
        return self if self.textbook is None else replace(self, policy=self.textbook, textbook=None, sources=())


def check_numbers(policy: Policy) -> None:
    """Refuse a policy whose options wait for a problem, where there is none to take them from."""
    missing = open_options(policy)
    if missing:
        example = ", ".join(f"{name}=..." for name in missing)
        raise BadRequest(
            f"`{missing[0]}` of {policy.name} must be given in numbers, because there is no problem here to take it from, "
            f"but it is {PROBLEM!r}; make the policy as {type(policy).__name__}({example}), or tune it on a problem first."
        )


def shortcut_for(policy: Policy, problem: Problem) -> Play | None:
    """The policy's best shortcut that is exact for this problem."""
    own = (policy.view, policy.start, policy.choose, policy.update)
    for play in policy.plays:
        if problem.per_pull and all(function in own for function in play.stands_for) and play.applies(policy, problem):
            return play
    return None


def shortcut_rows(job: Job, params: Floats) -> list[bool]:
    """For each row of parameters whether the job's `shortcut` is as asked for, or must be left out for that row.

    It is left out where its proof does not hold for the row. The row alone decides, so that its regrets are the same
    whatever else is played.
    """
    fast: Play | Team | None = shortcut_for(job.policy, job.problem) if job.shortcut else None
    if job.device == "gpu":
        from banditune.engine import gpu

        fast = gpu.team_for(job) or fast
    if fast is None:
        return [job.shortcut] * len(params)
    options = job.policy.options(job.problem.arms, job.problem.dims, job.horizon)
    return [bool(fast.holds(options, row)) for row in params]


def with_shortcut(job: Job, shortcut: bool) -> Job:
    """The job with or without its shortcut; the same object where nothing changes."""
    return job if job.shortcut == shortcut else replace(job, shortcut=shortcut)


def slots_for(job: Job) -> tuple[dict[Any, Any], int, int]:
    """What the slots of a loop are filled with for a job, and the floats and integers that it needs for a run."""
    policy, problem = job.policy, job.problem
    shortcut = shortcut_for(policy, problem) if job.shortcut else None
    slots: dict[Any, Any] = {"reward": problem.reward, **dims_of(policy, problem)}
    if shortcut is None:
        floats, integers = policy.memory(problem.arms, problem.dims), 0
        slots |= {name: getattr(policy, name) for name in ("view", "start", "choose", "update")}
        slots |= {"play": loop.play_steps}
    else:
        floats, integers = shortcut.memory(problem.arms, problem.dims)
        integers += problem.arms
        reward_sum = loop.sum_of_words if problem.words else loop.sum_of_rewards
        slots |= {
            "play": loop.play_leaps,
            "advance": shortcut.advance,
            "reward_sum": reward_sum,
            "words": problem.words,
        }
        slots |= shortcut.slots(problem)
    return slots, floats, integers


def kernel_for(job: Job) -> tuple[Callable[..., Any], int, int]:
    """The compiled kernel for a job, and the floats and integers that it needs for a run."""
    slots, floats, integers = slots_for(job)
    return kernel(loop.play_block, slots), floats, integers


def dims_of(policy: Policy, problem: Problem) -> dict[str, Callable[..., Any]]:
    """Slots for the number of features: a constant of the kernel where the policy looks at features."""
    if policy.needs_features:
        return {"known": loop.with_dims, "dims": constant(int(problem.dims))}
    return {"known": loop.with_runtime_dims}


def constant(value: int) -> Callable[[], int]:
    """A function of nothing: what a slot for a number is filled with."""
    return lambda: value


def instances(problem: Problem, seed: int, block: int) -> Instances:
    """Block `block` of the problem's instances."""
    try:
        drawn = (
            problem.sample_at(keys_of(seed, block))
            if problem.by_key
            else problem.sample(BLOCK, numbers_for(seed, block))
        )
        means = read_only(drawn.means)
        features = by_dimension(drawn.features, problem)
    except BadRequest:
        raise
    except Exception as error:
        raise Fault(
            f"`sample(size, rng)` of the problem {problem.name!r} failed: {type(error).__name__}: {error}."
        ) from error
    if means.shape != (BLOCK, problem.arms) or not np.isfinite(means).all():
        came = f"shape {means.shape}" if means.shape != (BLOCK, problem.arms) else "some that are not finite"
        raise Fault(
            f"`sample(size, rng)` of the problem {problem.name!r} must return finite means of shape (size, "
            f"{problem.arms}), but for size={BLOCK} it returned {came}."
        )
    wanted = (features.shape[0], problem.dims, problem.arms)
    if features.shape != wanted or features.shape[0] not in (1, BLOCK) or not np.isfinite(features).all():
        raise Fault(
            f"`sample(size, rng)` of the problem {problem.name!r} must return finite features of shape (size, "
            f"{problem.arms}, {problem.dims}) or (1, {problem.arms}, {problem.dims}), but it returned features of shape "
            f"{np.shape(np.array(drawn.features))}."
        )
    return Instances(means, features)


def numbers_for(seed: int, block: int) -> np.random.Generator:
    """The random numbers from which a block of instances is drawn."""
    sequence = np.random.SeedSequence(seed, spawn_key=(block & 0xFFFFFFFF, block >> 32))
    return np.random.Generator(np.random.Philox(sequence))


def keys_of(seed: int, block: int) -> NDArray[np.int64]:
    """The keys of a block's instances, a row each."""
    runs = range(block * BLOCK, (block + 1) * BLOCK)
    return np.array([loop.instance_key(seed, run) for run in runs], np.int64)  # type: ignore[no-untyped-call]


def by_dimension(features: Any, problem: Problem) -> Floats:
    """Features as scalar code reads them: (instances, dims, arms), so that a loop over arms reads neighbours."""
    if features is None:
        return read_only(np.zeros((1, 0, problem.arms)))
    table = np.array(features, np.float64)
    return read_only(np.swapaxes(table[None] if table.ndim == 2 else table, -1, -2))


def read_only(numbers: Any) -> Floats:
    """A copy that compiled code cannot write to: a policy that tries is refused."""
    array = np.array(numbers, np.float64, order="C")
    array.setflags(write=False)
    return array


def numbers_of(options: Any) -> NDArray[Any]:
    """Options as scalar code reads them; an array is a table, which keeps its type and is not copied."""
    if not isinstance(options, np.ndarray):
        return read_only(options)
    table = np.asarray(options).view()
    table.setflags(write=False)
    return table


def by_block(runs: range) -> Iterator[tuple[int, range]]:
    """Runs by the blocks of instances that they are in."""
    for block in range(runs.start // BLOCK, -(-runs.stop // BLOCK)):
        yield block, range(max(runs.start, block * BLOCK), min(runs.stop, (block + 1) * BLOCK))


def place_in(block: int, runs: range) -> slice:
    """Where runs of a block stand in it."""
    return slice(runs.start - block * BLOCK, runs.stop - block * BLOCK)


def means_of(problem: Problem, seed: int, runs: range) -> Floats:
    """The mean rewards of the instances of these runs, (runs, arms)."""
    return np.concatenate(
        [instances(problem, seed, block).means[place_in(block, some)] for block, some in by_block(runs)]
    )


class Part(NamedTuple):
    """Rows of parameters to be played on instances `runs`, and where their regrets go."""

    params: Floats
    first_row: int
    runs: range
    out: Floats


def play(
    job: Job,
    params: Any,
    runs: range,
    *,
    first_row: int = 0,
    jobs: int | None = None,
    cluster: Cluster | None = None,
    progress: Callable[[int], None] | None = None,
) -> Floats:
    """Regrets of every row of `params` on instances `runs`: an array (rows, runs, checkpoints).

    With own noise, the rows' noise is numbered from `first_row` on. `progress` is told how many runs were just finished.
    Without a `cluster`, `jobs` threads play.
    """
    params = read_only(params)
    if job.device == "gpu":
        from banditune.engine import gpu

        return gpu.play(job, params, runs, first_row=first_row, progress=progress)
    out = results_array(len(params), len(runs), len(job.at or (0,)))
    parts = [
        Part(params[rows.start : rows.stop], first_row + rows.start, runs, out[rows.start : rows.stop])
        for _, rows in rows_alike(job, params)
    ]
    with somewhere(cluster, jobs) as place:
        play_all(job, parts, place, progress)
    return out


def play_each(
    job: Job,
    params: Any,
    sizes: Sequence[int],
    first: int,
    *,
    jobs: int | None = None,
    cluster: Cluster | None = None,
    progress: Callable[[int], None] | None = None,
) -> list[Floats]:
    """Regrets of every row on instances of its own, `sizes[row]` of them, one row's after the other's from `first` on.

    A GPU plays all rows on all of these instances, because it plays many jobs in the time of one, and keeps its own.
    """
    starts = np.cumsum([first, *sizes])
    ranges = [range(int(a), int(b)) for a, b in pairwise(starts)]
    if job.device == "gpu":
        whole = play(job, params, range(first, int(starts[-1])))
        if progress:
            progress(sum(sizes))
        return [whole[row, part.start - first : part.stop - first] for row, part in enumerate(ranges)]
    params = read_only(params)
    check_regrets(sum(sizes) * len(job.at or (0,)))
    parts = [
        Part(params[row : row + 1], row, part, results_array(1, len(part), len(job.at or (0,))))
        for row, part in enumerate(ranges)
    ]
    with somewhere(cluster, jobs) as place:
        play_all(job, parts, place, progress)
    return [part.out[0] for part in parts]


def rows_alike(job: Job, params: Floats) -> Iterator[tuple[bool, range]]:
    """Neighbouring rows that are all played by the shortcut, or all step by step."""
    fast = shortcut_rows(job, params)
    for shortcut, rows in groupby(range(len(params)), fast.__getitem__):
        first, *others = rows
        yield shortcut, range(first, first + 1 + len(others))


def play_all(
    job: Job,
    parts: Sequence[Part],
    cluster: Cluster,
    progress: Callable[[int], None] | None = None,
    done: Callable[[Part, range], None] | None = None,
) -> None:
    """Play parts with rows that are played alike: first those by the shortcut, then those step by step."""
    fast = shortcut_rows(job, np.array([part.params[0] for part in parts]))
    for shortcut in (True, False):
        some = [part for one, part in zip(fast, parts, strict=True) if one == shortcut]
        if some:
            play_parts(with_shortcut(job, shortcut), some, cluster, progress, done)


@contextmanager
def somewhere(cluster: Cluster | None, jobs: int | None) -> Iterator[Cluster]:
    """A cluster that is there already, or threads for this once."""
    if cluster is not None:
        yield cluster
        return
    from banditune.engine.cluster import Threads

    with Threads(jobs) as threads:
        yield threads


def play_parts(
    job: Job,
    parts: Sequence[Part],
    cluster: Cluster,
    progress: Callable[[int], None] | None = None,
    done: Callable[[Part, range], None] | None = None,
) -> None:
    """Play parts of one job's work on a cluster: some pieces are in flight, and what was lost is played again.

    `done` is told of regrets that are there, in the calling thread: a part and some of its runs, in any order.
    """
    pace = Pace(job, cluster, len(parts))
    left = pace.pieces(parts)
    flying: dict[int, Flight] = {}
    troubles: dict[int, tuple[Flight, Floats]] = {}
    # After an error or Ctrl-C nobody wants the rest: work ends with its `with`.
    with cluster.work(job) as work:
        while True:
            while not troubles and len(flying) < AHEAD * cluster.workers and (flight := next(left, None)):
                flying[flight.ticket] = flight
                work.submit(flight.ticket, flight.piece)
            # Of several troubles the first in order is told, whichever was met first.
            if not flying or (troubles and min(flying) > min(troubles)):
                break
            ticket, outcome = work.result()
            if isinstance(outcome, Lost):
                flying[ticket] = again(job, flying[ticket], outcome, work)
                continue
            flight = flying.pop(ticket)
            if outcome.trouble[0]:
                troubles[ticket] = flight, outcome.trouble
                continue
            part, runs = flight.part, flight.piece.runs
            part.out[:, runs.start - part.runs.start : runs.stop - part.runs.start] = outcome.regrets
            pace.learn(outcome)
            if progress:
                progress(len(runs) * len(part.params))
            if done:
                done(part, runs)
        if troubles:
            complain(job, *troubles[min(troubles)])


class Flight(NamedTuple):
    """A piece of a part in flight, and how often it lost its worker."""

    ticket: int
    part: Part
    piece: Piece
    lost: int = 0


def again(job: Job, flight: Flight, lost: Lost, work: Work) -> Flight:
    """Hand out a lost piece again, unless it may be the reason."""
    flight = flight._replace(lost=flight.lost + lost.times)
    runs = flight.piece.runs
    if flight.lost >= TRIES:
        raise Outage(
            f"a worker must live until its piece is done, but runs {runs.start} to {runs.stop - 1} of {who(job)} with "
            f"parameters {flight.piece.params.tolist()[:3]} lost their worker {flight.lost} times (at last: {lost.why}); "
            "see whether it has memory enough, and whether these runs end it."
        )
    work.submit(flight.ticket, flight.piece)
    return flight


class Pace:
    """How large pieces should be, learnt from those that came back: the answer does not depend on it."""

    def __init__(self, job: Job, cluster: Cluster, parts: int) -> None:
        self.job, self.cluster = job, cluster
        self.share = max(1, cluster.workers // parts)
        self.rounds = TASK / (1 + 2 * job.problem.dims)
        self.played = self.took = 0.0

    def pieces(self, parts: Sequence[Part]) -> Iterator[Flight]:
        """Cut the parts into pieces, so that every worker has some; small ones stay within a block of instances."""
        ticket = 0
        for part in parts:
            first = part.runs.start
            while first < part.runs.stop:
                piece = Piece(part.params, part.first_row, range(first, self.stop(part, first)))
                yield Flight(ticket, part, piece)
                ticket, first = ticket + 1, piece.runs.stop

    def stop(self, part: Part, first: int) -> int:
        """Where a piece that begins with run `first` ends."""
        most = max(BLOCK, LARGEST_PIECE // len(part.params) // part.out.shape[2]) if self.cluster.seconds else BLOCK
        fair = -(-len(part.runs) // self.share)
        size = max(1, min(most, int(self.rounds / max(1, len(part.params) * self.job.horizon)), fair))
        end = first + size
        border = end // BLOCK * BLOCK if size >= BLOCK else first // BLOCK * BLOCK + BLOCK
        return min(end, border, part.runs.stop)

    def learn(self, played: Played) -> None:
        """Make pieces longer where handing one over takes time."""
        self.played += played.regrets.shape[0] * played.regrets.shape[1] * self.job.horizon
        self.took += played.seconds
        if self.cluster.seconds and self.took:
            self.rounds = max(self.rounds, self.cluster.seconds * self.played / self.took)


def who(job: Job) -> str:
    """A job's name in a complaint."""
    return f"the policy {job.policy.name!r} on the problem {job.problem.name!r}"


def strip(size: int) -> Floats:
    """Zeros that start where a cache line does: vectors that straddle two are read half as fast."""
    line = 64
    try:
        room = np.zeros(size + line // 8)
    except MemoryError as error:
        raise BadRequest(
            f"a run must fit into memory, but the policy needs {size / 2**27:.1f} GiB for one; use fewer arms or features."
        ) from error
    first = -room.ctypes.data % line // 8
    return room[first : first + size]


def cut(block: Instances, part: slice) -> tuple[Floats, Floats]:
    """Means and features of some instances of a block."""
    assert block.features is not None
    return block.means[part], block.features[part] if len(block.features) > 1 else block.features


def complain(job: Job, flight: Flight, trouble: Floats) -> NoReturn:
    """Say why a kernel had to stop."""
    part, within = flight.part, flight.piece.runs
    if trouble[0] == loop.BAD_REWARD_SOMEWHERE:
        # The plain loop knows the step; if it does not get there, say what is known.
        row, run = int(trouble[3]), within.start + int(trouble[4])
        plain = replace(job, shortcut=False)
        play(plain, part.params[row : row + 1], range(run, run + 1), first_row=part.first_row + row, jobs=1)
    raise Fault(complaint(job, part.params, within, trouble))


COPIES = 3
"""A regret is held so many times at the peak: as it was played, rounded, and where it is wanted."""


def check_regrets(count: int) -> None:
    """Refuse more regrets than fit into memory."""
    check_room(f"{count:,} regrets", 8.0 * COPIES * count, "ask for fewer runs or values")


def results_array(*shape: int) -> Floats:
    """Room for the results, or a sentence."""
    check_regrets(math.prod(shape))
    return np.empty(shape)


def broken(job: Job, error: Exception) -> str:
    """An exception out of a user's code, as a sentence."""
    if isinstance(error, IndexError):
        return (
            f"the policy {job.policy.name!r} or the problem {job.problem.name!r} reached outside its memory; set "
            "NUMBA_DISABLE_JIT=1 to see where."
        )
    if isinstance(error, TypeError) and "None" in str(error):
        return f"`choose` of the policy {job.policy.name!r} must return an arm on every path, but it returned nothing."
    return (
        f"the policy {job.policy.name!r} or the problem {job.problem.name!r} failed: {type(error).__name__}: {error}."
    )


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def complaint(job: Job, params: Floats, within: range, trouble: Floats) -> str:
    """What went wrong inside a kernel, and how to see it again."""
    code, step, culprit, row, run = trouble
    if code == loop.BAD_REWARD_SOMEWHERE:
        return (
            f"a reward must be a finite number, but the problem {job.problem.name!r} pays another in run "
            f"{within.start + int(run)} (seed={job.seed})."
        )
    where = (
        f"at step {step:.0f} of run {within.start + int(run)} with parameters {params[int(row)].tolist()} "
        f"(seed={job.seed}, horizon={job.horizon}; simulate(..., first={within.start + int(run)}, runs=1) repeats it)"
    )
    if code == loop.BAD_ARM and culprit in job.policy.faults:
        return f"{job.policy.faults[int(culprit)]} (the policy {job.policy.name!r} {where})."
    if code == loop.BAD_ARM:
        return (
            f"an arm must be a whole number from 0 to {job.problem.arms - 1}, but the policy {job.policy.name!r} chose "
            f"{culprit:g} {where}."
        )
    if code == loop.NOT_ORDERED:
        return (
            f"`{tuple(PLACES.values())[int(culprit)]}` of the policy {job.policy.name!r} must not compare NaN by <, <=, >, "
            f">=, max or min, because NaN is neither less nor greater than any number, but it did {where}; look for 0 / 0, "
            "inf - inf and the logarithm or root of a negative number, or test for `math.isnan` first."
        )
    paid = f"the problem {job.problem.name!r} paid another for arm {culprit:.0f}"
    return f"a reward must be a finite number, but {paid} {where}."
