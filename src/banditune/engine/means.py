"""Whether rewards have the means that a user's problem tells: expected regret is by them.

A first look draws two thousand rewards in plain Python, which takes no compiler. Where it raises a doubt, a million others
decide. The verdict is by bets against the claim (an e-value): if rewards less their told means, e, have mean 0 and are not
below -b, then exp(l e/b + (log(1 - l) + l) (e/b)^2) <= 1 + l e/b for 0 <= l < 1 (Fan, Grama and Liu 2015). So the product
over all draws is 1 on average, or less, and a million with a probability of one in a million, or less (Markov). Neither the
law of the rewards nor their variance matters.

Rewards in [0, 1] have b = 1. For others nothing can be promised that holds for every law (Bahadur and Savage 1956): what is
never drawn may carry any mean. There b is ten times the furthest that was drawn. So a right mean is refused only where a
millionth of the rewards, or fewer, carries it and is far beyond all others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from banditune.contracts import Fault, Floats, Instance, Integers, Slot
from banditune.engine.bind import compile_for, kernel
from banditune.engine.loop import instance_key
from banditune.engine.run import BLOCK, Job, read_only, who
from banditune.streams import REWARDS, Stream, aim

reward = Slot("reward")

LOOK = 2048
"""Rewards of the first look."""

DOUBT = 4.0
"""Standard errors off the told means that raise a doubt. A doubt costs a second, for the compiler; it refuses nothing."""

DECIDING = 1 << 20
"""Rewards that decide, and at most so many where Python has no compiler."""
UNCOMPILED = 1 << 14

AT_ONCE = 256
"""Pulls of an arm that are drawn at once; where horizons are shorter, calls are more, up to a second of them."""

ALARM = 1e-6
"""The probability to refuse means that are right."""

BEYOND = 10.0
"""Rewards that were not drawn may lie so many times as far from their means as all that were."""

BETS = 0.5 ** np.arange(1, 16)
"""The bets l, one of which is good enough for any mean that is off."""

ROUNDING = 1e-6
"""Means may be off by so little, as a share of their instance's largest: in single precision they are."""

SINGLE = 16
"""Of so many arms, each is looked at on its own."""


def draw_rewards(means, options, key0, key1, cursor, arm, first, step, out):  # type: ignore[no-untyped-def]
    """Rewards of pulls first, first + 1 ... of an arm; all at this step, for problems to which steps do not matter."""
    instance = Instance(means, options)
    stream = Stream(key0, key1, cursor)
    for place in range(len(out)):
        aim(stream, arm, first + place)  # type: ignore[no-untyped-call]
        out[place] = reward(instance, arm, first + place, step, stream)


def drawer(job: Job) -> Callable[..., None]:
    """`draw_rewards`, compiled with a problem's reward."""
    compiled = kernel(draw_rewards, {"reward": job.problem.reward})
    means, options = read_only(np.zeros(job.problem.arms)), read_only(job.problem.options())
    compile_for(compiled, (means, options, 1, 1, np.zeros(4, np.int64), 0, 0, 0, np.empty(1)), who(job))
    return compiled


class Drawn(NamedTuple):
    """Rewards, and the instances and arms that they are of."""

    paid: Floats
    runs: Integers
    arms: Integers


class Look(NamedTuple):
    """A way to look at rewards: their sum with these weights, 1, 0 or -1 for each instance and arm."""

    groups: tuple[tuple[int, str], ...]
    """What to say of the rewards with weight 1, and of those with weight -1."""
    weights: Floats


def check_means(job: Job, first: Floats, second: Floats) -> None:
    """Refuse rewards with other means than instances tell; what cannot be drawn is said where it is played."""
    _check_range(job, first)
    try:
        with np.errstate(all="ignore"):
            seen = _looked_at(job, first)
            doubted = max(_looks(first), key=lambda look: _errors(seen, first, look))
            if not _errors(seen, first, doubted) > DOUBT:
                return
            decides = _deciding(job, second)
    except Exception:
        return
    look = next(look for look in _looks(second) if look.groups == doubted.groups)
    if np.isfinite(decides.paid).all() and is_off(job.problem.rewards, _off(decides, second, look)):
        _refuse(job, decides, second, look)


def is_off(kind: str, off: Floats) -> bool:
    """Whether what rewards are off from their told means cannot be chance."""
    if not off.any():
        return False
    return won(off, 1.0 if kind in ("unit", "binary") else BEYOND * float(np.abs(off).max())) >= -math.log(ALARM)


def won(off: Floats, reach: float) -> float:
    """The logarithm of what bets on both sides win together: numbers with mean 0 that are within reach win 1 on average."""
    total, squares = float(off.sum()) / reach, float((off**2).sum()) / reach**2
    cost = (-np.log1p(-BETS) - BETS) * squares
    bets = np.concatenate([BETS * total - cost, -BETS * total - cost])
    return float(np.logaddexp.reduce(bets)) - math.log(len(bets))


def _check_range(job: Job, means: Floats) -> None:
    """Rewards in [0, 1] have means in [0, 1]."""
    outside = np.argwhere((means < -ROUNDING) | (means > 1 + ROUNDING))
    if job.problem.rewards in ("unit", "binary") and len(outside):
        run, arm = map(int, outside[0])
        raise Fault(
            f"means of {job.problem.name!r} must be in [0, 1], as rewards are (rewards={job.problem.rewards!r}), but arm "
            f"{arm} of run {run} has {means[run, arm]:g}; mend `sample`, or say what it pays."
        )


def _looks(means: Floats) -> Iterator[Look]:
    """All rewards; those of arms above their instance's average against those below; each arm, where they are few."""
    above = means - means.mean(axis=1, keepdims=True)
    yield Look(((1, "they are"),), np.ones_like(means))
    yield Look(((1, "those of arms above their instance's average are"), (-1, "those below it")), np.sign(above))
    for arm in range(means.shape[1] if means.shape[1] <= SINGLE else 0):
        of_arm = np.zeros_like(means)
        of_arm[:, arm] = 1
        yield Look(((1, f"those of arm {arm} are"),), of_arm)


def _off(drawn: Drawn, means: Floats, look: Look) -> Floats:
    """What rewards are off from their told means, with their weights, where these count; nothing if rounding may do it."""
    weights, told = look.weights[drawn.runs, drawn.arms], means[drawn.runs, drawn.arms]
    counts, largest = weights != 0, np.abs(means).max(axis=1)
    off: Floats = (weights * (drawn.paid - told))[counts]
    return off if abs(off.sum()) > ROUNDING * largest[drawn.runs[counts]].sum() else np.empty(0)


def _errors(drawn: Drawn, means: Floats, look: Look) -> float:
    """How many standard errors rewards are off; 0 where there is nothing to say."""
    off = _off(drawn, means, look)
    squares = float((off**2).sum())
    return abs(float(off.sum())) / math.sqrt(squares) if squares > 0 and math.isfinite(squares) else 0.0


def _places(job: Job, size: int) -> tuple[Integers, Integers, Integers]:
    """Instances in turn, and arms and pulls at random, the same for every seed."""
    rng = np.random.default_rng(0)
    return np.arange(size) % BLOCK, rng.integers(job.problem.arms, size=size), rng.integers(job.horizon, size=size)


def _looked_at(job: Job, means: Floats) -> Drawn:
    """Rewards of the first block, drawn by plain Python; a pull that comes twice has other noise."""
    function: Any = getattr(job.problem.reward, "py_func", job.problem.reward)
    options, cursor = read_only(job.problem.options()), np.zeros(4, np.int64)
    keys = [instance_key(job.seed, run) for run in range(BLOCK)]  # type: ignore[no-untyped-call]
    runs, arms, pulls = _places(job, LOOK)
    paid = np.empty(LOOK)
    for place, (run, arm, pull) in enumerate(zip(runs.tolist(), arms.tolist(), pulls.tolist(), strict=True)):
        cursor[3] = REWARDS + 256 * (place // BLOCK)
        stream = Stream(*keys[run], cursor)  # type: ignore[call-arg]
        aim(stream, arm, pull)  # type: ignore[no-untyped-call]
        paid[place] = function(Instance(means[run], options), arm, pull, 0, stream)
    return Drawn(paid, runs, arms)


def _deciding(job: Job, means: Floats) -> Drawn:
    """Many rewards of the second block, which the first look did not see, drawn by compiled code."""
    draw = drawer(job)
    size = min(AT_ONCE, job.horizon)
    calls = (DECIDING if hasattr(draw, "compile") else UNCOMPILED) // size
    options, cursor = read_only(job.problem.options()), np.zeros(4, np.int64)
    keys = [instance_key(job.seed, BLOCK + run) for run in range(BLOCK)]  # type: ignore[no-untyped-call]
    runs, arms, pulls = _places(job, calls)
    firsts = pulls // size * size
    paid = np.empty((calls, size))
    for place, (run, arm, first) in enumerate(zip(runs.tolist(), arms.tolist(), firsts.tolist(), strict=True)):
        cursor[3] = REWARDS + 256 * (place // BLOCK)
        draw(means[run], options, *keys[run], cursor, arm, min(first, job.horizon - size), 0, paid[place])
    return Drawn(paid.ravel(), np.repeat(runs, size), np.repeat(arms, size))


def _refuse(job: Job, drawn: Drawn, means: Floats, look: Look) -> NoReturn:
    """Say what is paid, and what was told."""
    weights, told = look.weights[drawn.runs, drawn.arms], means[drawn.runs, drawn.arms]
    groups = [(weights == sign, words) for sign, words in look.groups if (weights == sign).any()]
    paid = " and ".join(f"{words} {_unlike(drawn.paid[group].mean(), told[group].mean())}" for group, words in groups)
    pulls = np.count_nonzero(weights)
    raise Fault(
        f"rewards of {job.problem.name!r} must have the means that its `sample` returns, by which expected regret is "
        f"counted, but over {pulls:,} pulls {paid}; let its reward function draw with the mean instance.means[arm], or ask "
        "for regret='realised', which is by the rewards alone."
    )


def _unlike(paid: float, told: float) -> str:
    """Two means, with more digits where a few do not tell them apart."""
    digits = 4 if f"{paid:.4g}" != f"{told:.4g}" else 10
    return f"{paid:.{digits}g} on average, not {told:.{digits}g}"
