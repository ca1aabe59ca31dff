"""Whether rewards have the means that a user's problem tells: regret compares with the arm that has the highest one.

A million rewards are drawn by compiled code, fewer where they take long. Where they raise a doubt, eight million others
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
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, NoReturn

import numpy as np

from banditune.core.arrays import FloatArray, IntArray, copy_read_only
from banditune.core.errors import SimulationError
from banditune.core.problem import Instance
from banditune.core.scalar import Slot
from banditune.core.streams import REWARD_STREAM, Stream, seek
from banditune.simulation.compilation import compile_kernel, compile_signature
from banditune.simulation.instances import BLOCK_SIZE
from banditune.simulation.loop import compute_instance_key
from banditune.simulation.spec import SimulationSpec, describe_spec

reward = Slot("reward")


SCREENING_DRAWS, SCREENING_SECONDS = 1 << 20, 0.2
"""Rewards of the first look, at most, and the seconds that it may take."""


DOUBTFUL_ERRORS = 3.0
"""Standard errors off the told means that raise a doubt. A doubt costs a second; it refuses nothing."""


DECIDING_DRAWS, DECIDING_SECONDS = 1 << 23, 2.0
"""Rewards that decide: so many that what was a doubt is beyond doubt, one way or the other."""


DETECTABLE_ERRORS = 4.0
"""A deviation of so many standard errors is one that a look sees."""


PULLS_PER_CALL = 64
"""Pulls of an arm that are drawn at once."""


MAX_CALLS = 1 << 17
"""Such draws in a look, at most."""


FALSE_ALARM_PROBABILITY = 1e-6
"""The probability to refuse means that are right."""


REACH_FACTOR = 10.0
"""Rewards that were not drawn may lie so many times as far from their means as all that were."""


BET_SIZES = 0.5 ** np.arange(1, 16)
"""The bets l, one of which is good enough for any mean that is off."""


MEAN_TOLERANCE = 1e-6
"""Means may be off by so little, as a share of their instance's largest: in single precision they are."""


MAX_SINGLE_ARMS = 16
"""Of so many arms, each is looked at on its own."""


REWARD_KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "unit": ("in [0, 1]", lambda paid: (paid >= 0) & (paid <= 1)),
    "binary": ("0 or 1", lambda paid: (paid == 0) | (paid == 1)),
}
"""What rewards, a number or an array, must be where a problem says so; `real` ones may be anything."""


def draw_rewards(means, options, key0, key1, cursor, arm, first, step, out):  # type: ignore[no-untyped-def]
    """Rewards of pulls first, first + 1 ... of an arm; all at this step, for problems to which steps do not matter."""
    instance = Instance(means, options)
    stream = Stream(key0, key1, cursor)
    for place in range(len(out)):
        seek(stream, arm, first + place)  # type: ignore[no-untyped-call]
        out[place] = reward(instance, arm, first + place, step, stream)


def compile_reward_sampler(job: SimulationSpec) -> Callable[..., None]:
    """`draw_rewards`, compiled with a problem's reward."""
    compiled = compile_kernel(draw_rewards, {"reward": job.problem.reward})
    means, options = copy_read_only(np.zeros(job.problem.arms)), copy_read_only(job.problem.options())
    compile_signature(compiled, (means, options, 1, 1, np.zeros(4, np.int64), 0, 0, 0, np.empty(1)), describe_spec(job))
    return compiled


class RewardSample(NamedTuple):
    """Rewards in rows of `size` pulls of one arm of one instance: their sums, and those of what they are off."""

    size: int
    runs: IntArray
    arms: IntArray
    steps: IntArray
    paid: FloatArray
    off: FloatArray
    squares: FloatArray
    furthest: FloatArray


class RewardContrast(NamedTuple):
    """A way to look at rewards: their sum with these weights, 1, 0 or -1 for each row."""

    groups: tuple[tuple[int, str], ...]
    """What to say of the rewards with weight 1, and of those with weight -1."""
    weights: Callable[[RewardSample, FloatArray], FloatArray]


class DeviationSums(NamedTuple):
    """What rewards are off from their told means: how many there are, their sum, that of squares, and the furthest."""

    rewards: int
    total: float
    squares: float
    furthest: float

    @classmethod
    def of(cls, off: FloatArray) -> DeviationSums:
        """The sums of single rewards."""
        return cls(len(off), float(off.sum()), float((off**2).sum()), float(np.abs(off).max(initial=0.0)))

    @property
    def errors(self) -> float:
        """How many standard errors rewards are off; 0 where there is nothing to say."""
        fine = self.squares > 0 and math.isfinite(self.squares)
        return abs(self.total) / math.sqrt(self.squares) if fine else 0.0

    @property
    def visible(self) -> float:
        """The deviation of the mean that is seen."""
        return DETECTABLE_ERRORS * math.sqrt(self.squares) / self.rewards if self.rewards else math.inf


class MeanTestResult(NamedTuple):
    """What a look at a problem's rewards saw: how many, their mean, the told one, and the deviations that it could see."""

    rewards: int
    paid: float
    told: float
    visible: float
    """The smallest deviation of the mean of all rewards that is seen."""
    visible_arm: float
    """The same for any single arm; NaN where arms are too many to be looked at one by one."""


def check_stated_means(job: SimulationSpec, first: FloatArray, second: FloatArray) -> MeanTestResult | None:
    """Refuse rewards with other means than instances tell; what cannot be drawn is said where it is played.

    `first` and `second` are the means of the first two blocks. Returns what could be seen, None if nothing was drawn.
    """
    _check_mean_range(job, first)
    # What goes wrong here is said with run and step where it is played.
    try:
        drawn = _draw_sample(job, 0, first, SCREENING_DRAWS, SCREENING_SECONDS)
    except SimulationError:
        raise
    except Exception:
        return None
    if not np.isfinite(drawn.paid).all():
        return None
    looks = list(_list_contrasts(job))
    doubted = max(looks, key=lambda look: _sum_deviations(drawn, first, look).errors)
    if _sum_deviations(drawn, first, doubted).errors > DOUBTFUL_ERRORS:
        decides = _draw_sample(job, 1, second, DECIDING_DRAWS, DECIDING_SECONDS)
        off = _sum_deviations(decides, second, doubted)
        if np.isfinite(decides.paid).all() and is_mean_refuted(job.problem.rewards, off):
            _raise_refuted_mean(job, decides, second, doubted)
    single = [
        _sum_deviations(drawn, first, look)
        for look in looks
        if look.weights is not _weigh_all and len(look.groups) == 1
    ]
    return MeanTestResult(
        len(drawn.paid) * drawn.size,
        float(drawn.paid.sum() / drawn.paid.size / drawn.size),
        float(first[drawn.runs, drawn.arms].mean()),
        _sum_deviations(drawn, first, looks[0]).visible,
        max((sums.visible for sums in single), default=math.nan),
    )


def is_mean_refuted(kind: str, off: DeviationSums) -> bool:
    """Whether what rewards are off from their told means cannot be chance."""
    reach = 1.0 if kind in ("unit", "binary") else REACH_FACTOR * off.furthest
    return off.total != 0 and compute_log_wealth(off, reach) >= -math.log(FALSE_ALARM_PROBABILITY)


def compute_log_wealth(off: DeviationSums, reach: float) -> float:
    """The logarithm of what bets on both sides win together: numbers with mean 0 that are within reach win 1 on average."""
    total, squares = off.total / reach, off.squares / reach**2
    cost = (-np.log1p(-BET_SIZES) - BET_SIZES) * squares
    bets = np.concatenate([BET_SIZES * total - cost, -BET_SIZES * total - cost])
    return float(np.logaddexp.reduce(bets)) - math.log(len(bets))


def _check_mean_range(job: SimulationSpec, means: FloatArray) -> None:
    """Rewards in [0, 1] have means in [0, 1]."""
    outside = np.argwhere((means < -MEAN_TOLERANCE) | (means > 1 + MEAN_TOLERANCE))
    if job.problem.rewards in ("unit", "binary") and len(outside):
        run, arm = map(int, outside[0])
        raise SimulationError(
            f"means of {job.problem.name!r} must be in [0, 1], as rewards are (rewards={job.problem.rewards!r}), but arm "
            f"{arm} of run {run} has {means[run, arm]:g}; mend `sample`, or say what it pays."
        )


def _weigh_all(drawn: RewardSample, means: FloatArray) -> FloatArray:
    return np.ones(len(drawn.runs))


def _weigh_by_rank(drawn: RewardSample, means: FloatArray) -> FloatArray:
    above: FloatArray = np.sign(means - means.mean(axis=1, keepdims=True))[drawn.runs, drawn.arms]
    return above


def _list_contrasts(job: SimulationSpec) -> Iterator[RewardContrast]:
    """All rewards; those of arms above their instance's average against those below; early ones against late ones, where
    steps may matter; each arm, where they are few.
    """
    yield RewardContrast(((1, "they are"),), _weigh_all)
    yield RewardContrast(
        ((1, "those of arms above their instance's average are"), (-1, "those below it")), _weigh_by_rank
    )
    if not job.problem.per_pull:
        half = job.horizon // 2
        groups = ((1, f"those before step {half} are"), (-1, "those from it on"))
        yield RewardContrast(groups, lambda drawn, means: np.where(drawn.steps < half, 1.0, -1.0))
    for arm in range(job.problem.arms if job.problem.arms <= MAX_SINGLE_ARMS else 0):
        yield RewardContrast(((1, f"those of arm {arm} are"),), lambda drawn, means, arm=arm: (drawn.arms == arm) * 1.0)  # type: ignore[misc]


def _sum_deviations(drawn: RewardSample, means: FloatArray, look: RewardContrast) -> DeviationSums:
    """What rewards are off, with their weights, where these count; nothing if rounding may do it."""
    weights = look.weights(drawn, means)
    counts = weights != 0
    total = float((weights * drawn.off).sum())
    largest = np.abs(means).max(axis=1)[drawn.runs[counts]]
    if abs(total) <= MEAN_TOLERANCE * drawn.size * largest.sum():
        total = 0.0
    return DeviationSums(
        int(counts.sum()) * drawn.size,
        total,
        float(drawn.squares[counts].sum()),
        float(drawn.furthest[counts].max(initial=0.0)),
    )


def _draw_sample(job: SimulationSpec, block: int, means: FloatArray, most: int, seconds: float) -> RewardSample:
    """So many rewards of a block, or what can be drawn in these seconds: instances in turn, arms at random.

    The places are the same for every seed. All rewards have numbers of their own: rows in their noise, pulls in a row.
    """
    draw, problem = compile_reward_sampler(job), job.problem
    began = time.process_time()  # of a busy machine, only our share
    steady = problem.per_pull and not problem.means_by_pull
    at_once = PULLS_PER_CALL if steady else min(PULLS_PER_CALL, job.horizon) if problem.per_pull else 1
    size = at_once if hasattr(draw, "compile") else 1
    rows = max(1, min(most // size, MAX_CALLS))
    rng = np.random.default_rng(0)
    runs, arms = np.arange(rows) % BLOCK_SIZE, rng.integers(problem.arms, size=rows)
    firsts = np.minimum(rng.integers(job.horizon, size=rows) // size * size, max(0, job.horizon - size))
    steps = firsts if problem.per_pull else rng.integers(firsts, job.horizon)
    keys = [compute_instance_key(job.seed, block * BLOCK_SIZE + run) for run in range(BLOCK_SIZE)]  # type: ignore[no-untyped-call]
    options, cursor = copy_read_only(problem.options()), np.zeros(4, np.int64)
    sums = np.empty((4, rows))
    done, more = 0, 1
    # Each part is as long as all before it; so the last one ends in time, if the first one does.
    while done < rows and (not done or 2 * (time.process_time() - began) < seconds):
        part = slice(done, min(rows, done + more))
        paid = np.empty((part.stop - done, size))
        for place, out in enumerate(paid, done):
            cursor[3] = REWARD_STREAM + 256 * (place // BLOCK_SIZE)
            run = runs[place]
            draw(means[run], options, *keys[run], cursor, int(arms[place]), int(firsts[place]), int(steps[place]), out)
        _check_reward_kind(job, paid, runs[part] + block * BLOCK_SIZE, arms[part])
        off = paid - means[runs[part], arms[part], None]
        sums[:, part] = paid.sum(axis=1), off.sum(axis=1), (off**2).sum(axis=1), np.abs(off).max(axis=1)
        done, more = part.stop, done + more
    return RewardSample(size, runs[:done], arms[:done], steps[:done], *sums[:, :done])


def _check_reward_kind(job: SimulationSpec, paid: FloatArray, runs: IntArray, arms: IntArray) -> None:
    """Refuse rewards that are not what the problem says of them."""
    if job.problem.rewards not in REWARD_KINDS:
        return
    words, holds = REWARD_KINDS[job.problem.rewards]
    wrong = np.argwhere(np.isfinite(paid) & ~holds(paid))
    if len(wrong):
        row, pull = wrong[0]
        raise SimulationError(describe_wrong_reward(job, words, int(runs[row]), int(arms[row]), float(paid[row, pull])))


def describe_wrong_reward(job: SimulationSpec, words: str, run: int, arm: int, paid: float) -> str:
    """A reward that is not what the problem says."""
    return (
        f"rewards of {job.problem.name!r} must be {words}, as it says (rewards={job.problem.rewards!r}), but arm {arm} of "
        f"run {run} pays {paid:g}; mend its reward function, or say what it pays."
    )


def _raise_refuted_mean(job: SimulationSpec, drawn: RewardSample, means: FloatArray, look: RewardContrast) -> NoReturn:
    """Say what is paid, what was told, and how small a deviation was visible."""
    weights, told = look.weights(drawn, means), means[drawn.runs, drawn.arms]
    groups = [(weights == sign, words) for sign, words in look.groups if (weights == sign).any()]
    means_of = [(words, drawn.paid[group].mean() / drawn.size, told[group].mean()) for group, words in groups]
    paid = " and ".join(f"{words} {_format_two_means(found, wanted)}" for words, found, wanted in means_of)
    sums = _sum_deviations(drawn, means, look)
    raise SimulationError(
        f"rewards of {job.problem.name!r} must have the means that its `sample` returns, because regret compares with the "
        f"arm that has the highest of them, but over {sums.rewards:,} pulls {paid} (a deviation of {sums.visible:.2g}, "
        "four standard errors, is visible); let its reward function draw with the mean instance.means[arm], or let "
        "`sample` return the means of the rewards."
    )


def _format_two_means(paid: float, told: float) -> str:
    """Two means, with more digits where a few do not tell them apart."""
    digits = 4 if f"{paid:.4g}" != f"{told:.4g}" else 10
    return f"{paid:.{digits}g} on average, not {told:.{digits}g}"
