"""Plays jobs on an NVIDIA GPU: the same instances, streams and scalar source as on the CPU.

A policy that has a `team` is played by a warp per job, any other by a thread per job; `grid` holds both kernels. Memory is
planned before the first launch, and runs are played in pieces that fit; several pieces are under way at a time, so that
one fills the GPU while another one ends.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
from numba import config, cuda, from_dtype, types

from banditune.contracts import BadRequest, Fault, Floats, Instances, Play, Problem, Team, is_ours
from banditune.engine import bind, grid, loop, run
from banditune.engine.claims import check_claims
from banditune.engine.devices import simulated
from banditune.engine.run import Job, constant, dims_of, numbers_of, shortcut_for, slots_for

PIECE = 1 << 20
"""Threads in a piece of the work: a few times what fills a GPU, few enough for a progress bar."""

TRACKS = 16
"""Pieces under way at a time: so many that the last runs of one, which may be long, keep nothing waiting."""

THREADS = 64
"""Threads in a block: few, so that one that ends late keeps little waiting."""

REGISTERS = 80
"""Registers of a thread that plays alone. More of them and fewer threads at a time was slower, even where fewer spill."""

DRAWERS = 256
"""Threads in a block that draws rewards ahead."""

MOST = 1 << 15
"""Runs in a piece: a grid of blocks is not higher than twice that."""

STATIC = 48 << 10
"""Bytes of memory that the teams of a block can share."""

LOCAL = 128 << 10
"""Bytes of memory that a thread may have of its own; a GPU sets them aside for all threads that it can hold."""

RULES = 1
"""Raised when kernels for a GPU are compiled in another way: what `told_to_nvvm` does, which functions stay calls."""

CALLED = "banditune_called_"
"""What the qualified name of a function starts with that stays a call."""

LOOPS = (loop.play_steps, loop.play_leaps)
"""Pasted into the kernel although they are `rare`: what their memory is must be seen where it is used."""

_lock = threading.Lock()

_checked: deque[Job] = deque(maxlen=4)
"""The last jobs whose problems were seen to keep what they promise."""


def _given(ndim: int, dtype: Any = types.float64) -> Any:
    return types.Array(dtype, ndim, "C", readonly=True)


_WRITTEN = types.Array(types.float64, 3, "C")


def signature(options: str = "float64") -> Any:
    """Types of the arguments of a kernel that plays: what a policy is told is read-only, its options of any type."""
    table = _given(1, from_dtype(np.dtype(options)))
    return (_given(2), _given(3), types.int64, types.int64, _given(1), _given(2), table, types.int64, types.int64,
            _given(1, types.int64), types.boolean, _given(3), _WRITTEN)  # fmt: skip


DRAWING_SIGNATURE = (_given(2), types.int64, types.int64, _given(1), _WRITTEN)
"""Types of the arguments of the kernel that draws rewards ahead."""

WARP: dict[str, Any] = {
    "lane": grid.warp_lane, "members": grid.warp_members, "sync": grid.warp_sync, "total": grid.warp_total,
    "best": grid.warp_best, "any_of": grid.warp_any, "from_lane": grid.warp_from_lane,
    "exchange": grid.warp_exchange,
}  # fmt: skip
"""What the slots of a team are filled with."""

PRECISION: dict[str, dict[str, Any]] = {
    "float64": {"real": grid.double, "inverse": grid.double_inverse, "inverse_root": grid.double_inverse_root},
    "float32": {"real": grid.single, "inverse": grid.single_inverse, "inverse_root": grid.single_inverse_root},
}
"""And the slots for its numbers."""

SINGLE: dict[Any, Any] = {**PRECISION["float32"], "log": grid.single_log, "exp": grid.single_exp}
"""The slots of a shortcut in single precision."""


def _helper(copy: Any, original: Any, outside: bool) -> Any:
    called = any(hasattr(original, mark) for mark in ("__rare__", "__bulky__")) and original not in LOOPS
    if called:
        copy.__qualname__ = CALLED + copy.__qualname__
    flags = {} if simulated() else {"lto": False, "forceinline": not called}
    return cuda.jit(copy, device=True, **flags)


def _target(name: str, signature: Any, *, exact: bool, small: bool, registers: int | None) -> bind.Target:
    def whole(copy: Any, cache: bool) -> Any:
        if simulated():
            return cuda.jit(copy)
        with told_to_nvvm(exact, small):
            return cuda.jit(signature, cache=cache, lto=False, max_registers=registers)(copy)

    mark = f"_{'exact' if exact else 'fused'}{'' if exact == small else '_small'}_{registers or 'any'}_rules{RULES}"
    return bind.Target(name, _helper, whole, mark)


@contextmanager
def told_to_nvvm(exact: bool, small: bool) -> Iterator[None]:
    """Compile with what numba-cuda has no option for.

    `exact` code rounds every product and sum as on the CPU. In `small` code functions marked `rare` or `bulky` stay calls,
    and loops stay as they are: unrolled, with everything pasted in everywhere, code swells beyond the caches of
    instructions, and threads that part then wait for code. Threads of a team do not part. Small code that is not exact is
    in single precision, and takes subnormal numbers for 0.
    """
    from numba.cuda.cudadrv import nvvm

    compile_ir = nvvm.compile_ir

    def told(code: Any, **options: Any) -> Any:
        modules = [code] if isinstance(code, str) else code
        if not any("banditune" in module for module in modules):
            return compile_ir(code, **options)  # somebody else's kernel, in another thread
        options |= {"fma": not exact, "ftz": small and not exact}
        return compile_ir([marked(module) if small else module for module in modules], **options)

    def marked(module: str) -> str:
        module = re.sub(rf"^(define [^\n]*{CALLED}[^\n]*\))", r"\1 noinline", module, flags=re.M)
        return re.sub(r"^(define [^\n]*\)(?: noinline| alwaysinline)?)", r"\1 optsize", module, flags=re.M)

    nvvm.compile_ir = told
    try:
        yield
    finally:
        nvvm.compile_ir = compile_ir


ALONE = {
    "float64": _target("gpu alone", signature(), exact=True, small=True, registers=REGISTERS),
    "float32": _target("gpu alone in float32", signature(), exact=False, small=True, registers=REGISTERS),
}
TOGETHER = {
    "float64": _target("gpu together", signature(), exact=False, small=False, registers=None),
    "float32": _target("gpu together in float32", signature(), exact=False, small=False, registers=128),
}
TABLES = {
    options: _target(f"gpu alone, {options} table", signature(options), exact=True, small=True, registers=REGISTERS)
    for options in ("float32", "uint8", "uint16", "int32", "int64")
}
"""Targets for policies whose options are a table of another type than float64; they play in float64."""
DRAWING = _target("gpu drawing", DRAWING_SIGNATURE, exact=True, small=True, registers=None)


class Plan(NamedTuple):
    """How a job is played: the kernel's source, slots and target, threads for a job and in a block, and whether rewards are
    read one by one, so that they may be drawn ahead.
    """

    source: Callable[..., Any]
    slots: dict[Any, Any]
    target: bind.Target
    members: int
    block: int
    reads: bool


def plan(job: Job, precision: str | None = None) -> Plan:
    """A team for each job where the policy has one and it fits, else a thread."""
    team = team_for(job)
    if team is not None:
        precision = precision or precision_for(job, team)
        for teams in (4, 2, 1):
            found = team_plan(job, team, precision, teams)
            if found:
                return found
    slots, floats, integers = slots_for(job)
    shortcut = shortcut_for(job.policy, job.problem) if job.shortcut else None
    precision = single_or_double(job, shortcut, precision)
    if shortcut and precision == "float32":
        slots = {**slots, **SINGLE, **shortcut.single}
    arms = job.problem.arms
    size = 8 * room(floats) + 4 * room(integers) + 12 * room(arms)
    if size > LOCAL:
        raise BadRequest(
            f"a run must fit into {LOCAL >> 10} KiB on a GPU, but {run.who(job)} needs {size >> 10:,} KiB; use fewer arms "
            'or features, or device="cpu".'
        )
    reads = job.problem.per_pull and (shortcut is None or shortcut.reads(job.problem))
    slots |= {"floats_room": room(floats), "integers_room": room(integers), "arms_room": room(arms)}
    slots |= {"precision": getattr(np, precision), **rewards_of(job.problem, reads)}
    return Plan(grid.play_threads, slots, target_for(job, precision), 1, THREADS, reads)


def target_for(job: Job, precision: str) -> bind.Target:
    """What a kernel with a thread for a job is compiled for: it must know the type of the policy's options."""
    options = numbers_of(job.policy.options(job.problem.arms, job.problem.dims, job.horizon)).dtype.name
    if options == "float64":
        return ALONE[precision]
    if options not in TABLES:
        raise BadRequest(
            f"a policy's table must be of one of the types {', '.join(TABLES)} on a GPU, but that of {job.policy.name!r} "
            f'is {options}; change it, or use device="cpu".'
        )
    return TABLES[options]


def single_or_double(job: Job, shortcut: Play | None, asked: str | None) -> str:
    """The kind of numbers that a thread plays a job with; float64 where there is no choice."""
    if shortcut is None or not shortcut.single or simulated():
        return "float64"
    return asked or shortcut.precision(job.policy, job.problem, job.horizon)


def rewards_of(problem: Problem, reads: bool) -> dict[str, Any]:
    """The slots for rewards."""
    return {"reward": grid.paid_ahead, "drawn": problem.reward} if reads else {"reward": problem.reward}


def team_for(job: Job) -> Team | None:
    """The policy's team, if it plays the policy's own functions; none in the simulator, which has no warps."""
    policy, team = job.policy, job.policy.team
    own = (policy.view, policy.start, policy.choose, policy.update)
    if team is None or simulated() or not job.shortcut or not job.problem.per_pull:
        return None
    return team if all(function in own for function in team.stands_for) else None


def precision_for(job: Job, team: Team) -> str:
    """The kind of numbers that a team plays a job with: a function of the job alone, however its runs are cut."""
    features = run.instances(job.problem, job.seed, 0).features
    assert features is not None
    return team.precision(job.policy, features, job.horizon)


def team_plan(job: Job, team: Team, precision: str, teams: int) -> Plan | None:
    """So many teams in a block; None where they have not enough memory to share."""
    policy, problem = job.policy, job.problem
    arms, dims = problem.arms, problem.dims
    share = -(-arms // grid.WARP)
    dtype = np.dtype(precision)
    held, common = max(1, team.held(share, dims)), max(1, team.common(arms, dims))
    if teams * (16 * room(arms) + dtype.itemsize * common) > STATIC or held * dtype.itemsize > LOCAL // 2:
        return None
    slots: dict[str, Any] = {**rewards_of(problem, True), **dims_of(policy, problem), **WARP}
    slots |= {name: getattr(team, name) for name in ("view", "start", "choose", "update")}
    slots |= {
        "play": loop.play_together, "share": constant(share), "teams": teams, "precision": dtype.type,
        "held_room": held, "common_room": common, "arms_room": room(arms), **PRECISION[precision],
    }  # fmt: skip
    return Plan(grid.play_teams, slots, TOGETHER[precision], grid.WARP, grid.WARP * teams, True)


def room(size: int) -> int:
    """Memory in steps of about a quarter, so that kernels are shared between similar sizes."""
    step = max(4, 1 << max(0, size.bit_length() - 3))
    return max(1, -(-size // step)) * step


def kernel_for(job: Job, planned: Plan) -> Any:
    """The compiled kernel of a plan, from this process or the disk cache where it is there."""
    with bind.complaints(run.who(job)), _lock:
        return bind.kernel(planned.source, planned.slots, planned.target)


class Track(NamedTuple):
    """Where a piece of the work runs: a stream of the GPU and memory for a piece, used again and again.

    Allocating or freeing memory would wait for all that is under way.
    """

    stream: Any
    means: Any
    features: Any
    paid: Any
    out: Any


def play(
    job: Job,
    params: Floats,
    runs: range,
    *,
    first_row: int = 0,
    progress: Callable[[int], None] | None = None,
    precision: str | None = None,
) -> Floats:
    """Regrets of every row of `params` on instances `runs`, an array (rows, runs, checkpoints), as from `run.play`.

    Neighbouring rows that are played alike and in one precision are played together; with a `precision`, all rows have it.
    """
    if not any(job is one for one in tuple(_checked)):  # other threads may play, too
        check_claims(job)
        check_first_run(job, params, runs, first_row)
        _checked.append(job)
    found = []
    for shortcut, alike in run.rows_alike(replace(job, device="gpu"), params):
        kinds = {row: precision or precision_of_row(run.with_shortcut(job, shortcut), params[row]) for row in alike}
        for kind, rows in groupby(alike, kinds.__getitem__):
            first, *others = rows
            part = params[first : first + 1 + len(others)]
            found.append(play_rows(run.with_shortcut(job, shortcut), part, runs, first_row + first, progress, kind))
    return found[0] if len(found) == 1 else np.concatenate(found)


def check_first_run(job: Job, params: Floats, runs: range, first_row: int) -> None:
    """Play one run of a user's policy on the CPU, where a comparison with NaN and a stray index are errors."""
    if any(not is_ours(getattr(job.policy, name)) for name in bind.POLICY):
        run.play(replace(job, device="cpu"), params[:1], runs[:1], first_row=first_row, jobs=1)


def precision_of_row(job: Job, row: Floats) -> str | None:
    """ "float64" where a row of parameters needs it; else None, for what the job is played in."""
    fast = team_for(job) or (shortcut_for(job.policy, job.problem) if job.shortcut else None)
    return "float64" if fast is not None and fast.needs_double(row) else None


def play_rows(
    job: Job,
    params: Floats,
    runs: range,
    first_row: int,
    progress: Callable[[int], None] | None,
    precision: str | None,
) -> Floats:
    """Play rows in pieces, several at a time."""
    out = run.results_array(len(params), len(runs), len(job.at or (0,)))
    with faults_of(job):
        work = Work(job, params, first_row, precision)
        most = work.supply.most
        free = deque(work.supply.track(len(runs)) for _ in range(min(TRACKS, -(-len(runs) // most))))
    under_way: deque[tuple[range, Track]] = deque()
    left = runs
    while left or under_way:
        if left and free:
            part, left = left[:most], left[most:]
            under_way.append((part, free.popleft()))
            with faults_of(job):
                work.launch(*under_way[-1])
        else:
            part, track = under_way.popleft()
            with faults_of(job):
                out[:, part.start - runs.start : part.stop - runs.start] = work.collect(part, track)
            free.append(track)
            if progress:
                progress(len(params) * len(part))
    return out


class Work:
    """A kernel that is ready, and what all of its pieces need on the GPU."""

    def __init__(self, job: Job, params: Floats, first_row: int, precision: str | None) -> None:
        self.job, self.params, self.first_row = job, params, first_row
        self.planned = plan(job, precision)
        self.kernel = kernel_for(job, self.planned)
        at = np.array(job.at or (job.horizon,), np.int64)
        self.supply = Supply(job, self.planned, len(params), len(at))
        self.drawn = drawing(job)
        arms, dims = job.problem.arms, job.problem.dims
        given = (job.problem.options(), params, job.policy.options(arms, dims, job.horizon))
        # An array of no length has no address on a GPU.
        self.options, self.values, self.policy_options = (
            cuda.to_device(numbers_of(numbers if len(numbers) else (0.0,))) for numbers in given
        )
        self.steps = cuda.to_device(at)

    def launch(self, part: range, track: Track) -> None:
        """Send a piece on its way."""
        job = self.job
        drawn = self.drawn(part)
        means = track.means[: len(part)]
        means.copy_to_device(drawn.means, stream=track.stream)
        if job.problem.dims:
            track.features[: len(part)].copy_to_device(drawn.features, stream=track.stream)
        self.supply.draw_ahead(track, part, self.options)
        jobs = len(self.params) * len(part)
        first_noise = 1 + self.first_row if job.noise == "own" else 0
        launcher(self.kernel, jobs * self.planned.members, self.planned.block, track.stream)(
            means, track.features, job.seed, part.start, self.options, self.values, self.policy_options, job.horizon,
            first_noise, self.steps, job.regret == "realised", track.paid, track.out,
        )  # fmt: skip

    def collect(self, part: range, track: Track) -> Floats:
        """Wait for a piece; complain if a run of it could not go on."""
        found: Floats = np.swapaxes(track.out[: len(part)].copy_to_host(stream=track.stream), 0, 1)
        track.stream.synchronize()
        check(self.job, self.params, part, found, self.first_row)
        return found


def launcher(kernel: Any, threads: int, block: int, stream: Any, runs: int = 1) -> Any:
    """A kernel with a grid of so many threads, `runs` times over; numba-cuda's warning of small grids is not for users."""
    with _lock:
        before = config.CUDA_LOW_OCCUPANCY_WARNINGS
        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0
        try:
            return kernel[(-(-threads // block), runs), block, stream]
        finally:
            config.CUDA_LOW_OCCUPANCY_WARNINGS = before


class Supply:
    """Plans the GPU's memory: how many runs a piece has at most, and whether rewards are drawn ahead.

    With shared noise all rows read the same rewards of an instance. Drawn ahead, each is drawn once, by threads that stay
    together; it pays unless there are far fewer rows than arms. For teams they are always drawn ahead: compiled into a
    team's kernel, rewards could differ in the last bit, and regrets must not depend on what else is played.
    """

    def __init__(self, job: Job, planned: Plan, rows: int, checkpoints: int) -> None:
        arms, dims = job.problem.arms, job.problem.dims
        self.job, self.rows, self.checkpoints = job, rows, checkpoints
        free = free_memory() // 2 // TRACKS
        size = 8 * (arms * (1 + dims) + rows * checkpoints)
        table = 8 * arms * job.horizon
        enough = -(-PIECE // (rows * planned.members))
        with_table = free // (size + table)
        pays = 4 * rows >= arms and 4 * with_table >= enough
        together = planned.members > 1
        self.ahead = planned.reads and job.noise == "shared" and with_table >= 1 and (together or pays)
        self.most = min(free // (size + table * self.ahead), enough, MOST)
        self.kernel: Any = None
        if self.most < 1:
            raise BadRequest(
                f"a run of every value must fit into 1/{2 * TRACKS} of the GPU's free memory, but it needs "
                f"{size / 2**20:,.1f} of {free / 2**20:,.1f} MiB; ask for fewer values or checkpoints, or use fewer arms."
            )
        if self.ahead:
            with bind.complaints(run.who(job)), _lock:
                self.kernel = bind.kernel(grid.draw_ahead, {"drawn": job.problem.reward}, DRAWING)

    def track(self, runs: int) -> Track:
        """Room for a piece."""
        size = min(self.most, runs)
        arms, dims, horizon = self.job.problem.arms, self.job.problem.dims, self.job.horizon
        return Track(
            cuda.stream(),
            cuda.device_array((size, arms)),
            cuda.device_array((size, dims, arms) if dims else (1, 0, arms)),
            cuda.device_array((size, arms, horizon) if self.ahead else (1, 1, 1)),
            cuda.device_array((size, self.rows, self.checkpoints)),
        )

    def draw_ahead(self, track: Track, part: range, options: Any) -> None:
        """Draw the rewards of some runs, if they are drawn ahead."""
        if self.ahead:
            pulls = self.job.problem.arms * self.job.horizon
            kernel = launcher(self.kernel, pulls, DRAWERS, track.stream, len(part))
            kernel(track.means, self.job.seed, part.start, options, track.paid)


def drawing(job: Job) -> Callable[[range], Instances]:
    """Draws the instances of runs, and remembers the last block."""

    @lru_cache(maxsize=2)
    def block_of(block: int) -> Instances:
        found = run.instances(job.problem, job.seed, block)
        assert found.features is not None
        job.policy.check(found.features, job.horizon)
        return found

    def drawn(runs: range) -> Instances:
        parts = [run.cut(block_of(block), run.place_in(block, some)) for block, some in run.by_block(runs)]
        features = [np.broadcast_to(features, (len(means), *features.shape[1:])) for means, features in parts]
        return Instances(np.concatenate([means for means, _ in parts]), np.concatenate(features))

    return drawn


def free_memory() -> int:
    """Bytes that are free on the GPU."""
    return 1 << 30 if simulated() else int(cuda.current_context().get_memory_info().free)


def check(job: Job, params: Floats, runs: range, found: Floats, first_row: int) -> None:
    """Complain of the first run that could not go on: it is played again on the CPU, which knows where and why."""
    lost = np.argwhere(np.isnan(found[:, :, 0]).T)
    if len(lost):
        at, row = map(int, lost[0])
        at += runs.start
        run.play(replace(job, device="cpu"), params[row : row + 1], range(at, at + 1), first_row=first_row + row)
        raise Fault(
            f"{run.who(job)} could not go on in run {at} with parameters {params[row].tolist()} (seed={job.seed}, "
            f'horizon={job.horizon}) on the GPU, though it can on the CPU; use device="cpu".'
        )


@contextmanager
def faults_of(job: Job) -> Iterator[None]:
    """What stops the GPU, as a sentence."""
    try:
        yield
    except (Fault, BadRequest):
        raise
    except Exception as error:
        lines = [line.strip(" :") for line in str(error).splitlines() if line.strip(" :")]
        told = lines[0] if lines else type(error).__name__
        raise Fault(
            f"the GPU stopped while it played {run.who(job)}: {told}; if the policy or the problem is your own, play it "
            'with device="cpu", which checks every index.'
        ) from error
