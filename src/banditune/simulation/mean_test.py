"""Tests whether rewards have the means that a custom problem states. Regret compares with the highest of these.

A million rewards are drawn by compiled code, fewer if they take long. If their means are doubtful, eight million other
rewards are tested. The test is by betting (an e-value). Let e be a reward minus its stated mean. If e has mean 0 and is not
below -b, then exp(l e/b + (log(1 - l) + l) (e/b)^2) <= 1 + l e/b for 0 <= l < 1 (Fan, Grama and Liu 2015). So the product
over all draws has a mean of at most 1, and exceeds a million with a probability of at most one in a million (Markov). This
holds for any distribution of the rewards.

Rewards in [0, 1] have b = 1. For other rewards no test is valid for every distribution (Bahadur and Savage 1956), because
rare values that are not drawn may determine the mean. Here b is ten times the largest drawn deviation. So a correct mean is
rejected only if it depends on a millionth of the rewards, or fewer, with values far beyond all others.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from statistics import NormalDist
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
"""The largest number of rewards of the first sample, and its largest time in seconds."""


DOUBTFUL_ERRORS = 3.0
"""The deviation in standard errors at which a problem is doubtful. It is then tested for another second."""


FEW_CONTRASTS = 20
"""The number of contrasts above which this deviation is increased, so that false doubts do not become more probable."""


DECIDING_DRAWS, DECIDING_SECONDS = 1 << 23, 2.0
"""The number of rewards of the second sample, which decides."""


DETECTABLE_ERRORS = 4.0
"""The smallest detected deviation, in standard errors."""


PULLS_PER_CALL = 64
"""The number of pulls of an arm that are drawn at once."""


MAX_CALLS = 1 << 17
"""The largest number of calls for a sample."""


FALSE_ALARM_PROBABILITY = 1e-6
"""The probability of rejecting correct means."""


REACH_FACTOR = 10.0
"""The assumed largest deviation of all rewards, as a multiple of the largest drawn one."""


BET_SIZES = 0.5 ** np.arange(1, 16)
"""The bets l. For any deviation of the mean, one of them is suitable."""


MEAN_TOLERANCE = 1e-6
"""The tolerated deviation of means, as a share of the largest mean of their instance: rounding to single precision."""


MAX_SINGLE_ARMS = 100
"""The largest number of arms that are tested separately."""


REWARD_KINDS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "unit": ("in [0, 1]", lambda payoffs: (payoffs >= 0) & (payoffs <= 1)),
    "binary": ("0 or 1", lambda payoffs: (payoffs == 0) | (payoffs == 1)),
}
"""Checks of rewards, numbers or arrays, by the kind that a problem states. `real` rewards may be any number."""


def draw_rewards(means, options, key0, key1, cursor, arm, first, steps, out):  # type: ignore[no-untyped-def]
    """Draw the rewards of pulls first, first + 1 ... of an arm, one for each step."""
    instance = Instance(means, options)
    stream = Stream(key0, key1, cursor)
    for position in range(len(out)):
        seek(stream, arm, first + position)  # type: ignore[no-untyped-call]
        out[position] = reward(instance, arm, first + position, int(steps[position]), stream)


def compile_reward_sampler(spec: SimulationSpec) -> Callable[..., None]:
    """Compile `draw_rewards` with the reward of a problem."""
    compiled = compile_kernel(draw_rewards, {"reward": spec.problem.reward})
    means, options = copy_read_only(np.zeros(spec.problem.arms)), copy_read_only(spec.problem.options())
    compile_signature(
        compiled,
        (means, options, 1, 1, np.zeros(4, np.int64), 0, 0, np.zeros(1, np.int64), np.empty(1)),
        describe_spec(spec),
    )
    return compiled


class RewardSample(NamedTuple):
    """Rows of `pulls_per_row` rewards of one arm of one instance: sums of rewards and sums of deviations."""

    pulls_per_row: int
    runs: IntArray
    arms: IntArray
    steps: IntArray
    totals: FloatArray
    deviations: FloatArray
    squares: FloatArray
    largest: FloatArray


class RewardContrast(NamedTuple):
    """A contrast of rewards: their sum with weights of 1, 0 or -1 for each row."""

    groups: tuple[tuple[int, str], ...]
    """Descriptions of the rewards with weight 1, and of those with weight -1."""
    compute_weights: Callable[[RewardSample, FloatArray], FloatArray]


class DeviationSums(NamedTuple):
    """Deviations of rewards from their stated means: their number, sum, sum of squares, and largest."""

    reward_count: int
    total: float
    squares: float
    largest: float

    @classmethod
    def from_deviations(cls, deviations: FloatArray) -> DeviationSums:
        """Sum single deviations."""
        return cls(
            len(deviations),
            float(deviations.sum()),
            float((deviations**2).sum()),
            float(np.abs(deviations).max(initial=0.0)),
        )

    @property
    def standard_errors(self) -> float:
        """The deviation of the mean in standard errors; 0 if it is not defined."""
        is_usable = self.squares > 0 and math.isfinite(self.squares)
        return abs(self.total) / math.sqrt(self.squares) if is_usable else 0.0

    @property
    def detectable(self) -> float:
        """The smallest deviation of the mean that is detected."""
        return DETECTABLE_ERRORS * math.sqrt(self.squares) / self.reward_count if self.reward_count else math.inf


class MeanTestResult(NamedTuple):
    """The result for a problem: number of rewards, their mean, the stated mean, and the detectable deviations."""

    reward_count: int
    drawn_mean: float
    stated_mean: float
    detectable: float
    """The smallest deviation of the mean of all rewards that is detected."""
    detectable_per_arm: float
    """The same for any single arm; NaN if there are too many arms for separate tests."""


def check_stated_means(spec: SimulationSpec, first: FloatArray, second: FloatArray) -> MeanTestResult | None:
    """Reject rewards whose means are not those of their instances.

    `first` and `second` are the means of the first two blocks. Returns None if rewards cannot be drawn. The simulation
    then raises the error.
    """
    _check_mean_range(spec, first)
    # The simulation reports errors of rewards with run and step.
    try:
        sample = _draw_sample(spec, 0, first, SCREENING_DRAWS, SCREENING_SECONDS)
    except SimulationError:
        raise
    except Exception:
        return None
    if not np.isfinite(sample.totals).all():
        return None
    contrasts = list(_list_contrasts(spec))
    sums = [_sum_deviations(sample, first, contrast) for contrast in contrasts]
    suspect, most = max(zip(contrasts, sums, strict=True), key=lambda pair: pair[1].standard_errors)
    if most.standard_errors > resolve_doubtful_errors(len(contrasts)):
        decides = _draw_sample(spec, 1, second, DECIDING_DRAWS, DECIDING_SECONDS)
        off = _sum_deviations(decides, second, suspect)
        if np.isfinite(decides.totals).all() and is_mean_refuted(spec.problem.rewards, off):
            _raise_refuted_mean(spec, decides, second, suspect)
    single = [
        found
        for contrast, found in zip(contrasts, sums, strict=True)
        if contrast.compute_weights is not _weigh_all and len(contrast.groups) == 1
    ]
    return MeanTestResult(
        len(sample.totals) * sample.pulls_per_row,
        float(sample.totals.sum() / sample.totals.size / sample.pulls_per_row),
        float(first[sample.runs, sample.arms].mean()),
        sums[0].detectable,
        max((found.detectable for found in single), default=math.nan),
    )


def resolve_doubtful_errors(contrast_count: int) -> float:
    """Return the deviation in standard errors at which a problem is doubtful, for this number of contrasts."""
    share = 1 - NormalDist().cdf(DOUBTFUL_ERRORS)
    return max(DOUBTFUL_ERRORS, NormalDist().inv_cdf(1 - share * FEW_CONTRASTS / max(contrast_count, FEW_CONTRASTS)))


def is_mean_refuted(kind: str, off: DeviationSums) -> bool:
    """Return whether the deviations from the stated means are significant."""
    reach = 1.0 if kind in ("unit", "binary") else REACH_FACTOR * off.largest
    return off.total != 0 and compute_log_wealth(off, reach) >= -math.log(FALSE_ALARM_PROBABILITY)


def compute_log_wealth(off: DeviationSums, reach: float) -> float:
    """Compute the log of the wealth of two-sided bets. Its mean is 1 if deviations have mean 0 and are within `reach`."""
    total, squares = off.total / reach, off.squares / reach**2
    cost = (-np.log1p(-BET_SIZES) - BET_SIZES) * squares
    bets = np.concatenate([BET_SIZES * total - cost, -BET_SIZES * total - cost])
    return float(np.logaddexp.reduce(bets)) - math.log(len(bets))


def _check_mean_range(spec: SimulationSpec, means: FloatArray) -> None:
    """Check that rewards in [0, 1] have means in [0, 1]."""
    wrong = np.argwhere((means < -MEAN_TOLERANCE) | (means > 1 + MEAN_TOLERANCE))
    if spec.problem.rewards in ("unit", "binary") and len(wrong):
        run, arm = map(int, wrong[0])
        raise SimulationError(
            f"means of {spec.problem.name!r} must be in [0, 1], as rewards are (rewards={spec.problem.rewards!r}), but arm "
            f"{arm} of run {run} has {means[run, arm]:g}; correct `sample`, or the kind of rewards."
        )


def _weigh_all(sample: RewardSample, means: FloatArray) -> FloatArray:
    return np.ones(len(sample.runs))


def _weigh_by_rank(sample: RewardSample, means: FloatArray) -> FloatArray:
    above: FloatArray = np.sign(means - means.mean(axis=1, keepdims=True))[sample.runs, sample.arms]
    return above


def _weigh_arm(arm: int, sample: RewardSample, means: FloatArray) -> FloatArray:
    weights: FloatArray = (sample.arms == arm) * 1.0
    return weights


def _list_contrasts(spec: SimulationSpec) -> Iterator[RewardContrast]:
    """List the contrasts to test.

    They are: all rewards; arms above the average of their instance against those below; early rewards against late ones, if
    rewards may depend on steps; each arm, if there are few.
    """
    yield RewardContrast(((1, "they are"),), _weigh_all)
    yield RewardContrast(
        ((1, "those of arms above their instance's average are"), (-1, "those below it")), _weigh_by_rank
    )
    if not spec.problem.has_step_free_rewards:
        half = spec.horizon // 2
        groups = ((1, f"those before step {half} are"), (-1, "those from it on"))
        yield RewardContrast(groups, lambda sample, means: np.where(sample.steps < half, 1.0, -1.0))
    for arm in range(spec.problem.arms if spec.problem.arms <= MAX_SINGLE_ARMS else 0):
        yield RewardContrast(((1, f"those of arm {arm} are"),), partial(_weigh_arm, arm))


def _sum_deviations(sample: RewardSample, means: FloatArray, contrast: RewardContrast) -> DeviationSums:
    """Sum the deviations with their weights. A total within rounding errors counts as 0."""
    weights = contrast.compute_weights(sample, means)
    counts = weights != 0
    total = float((weights * sample.deviations).sum())
    largest = np.abs(means).max(axis=1)[sample.runs[counts]]
    if abs(total) <= MEAN_TOLERANCE * sample.pulls_per_row * largest.sum():
        total = 0.0
    return DeviationSums(
        int(counts.sum()) * sample.pulls_per_row,
        total,
        float(sample.squares[counts].sum()),
        float(sample.largest[counts].max(initial=0.0)),
    )


def _draw_sample(spec: SimulationSpec, block: int, means: FloatArray, max_rewards: int, seconds: float) -> RewardSample:
    """Draw up to `max_rewards` rewards of a block within `seconds`: instances in turn, arms at random.

    Instances, arms and pulls are the same for every seed. Every reward has its own random numbers, because rows have
    separate noise streams, and pulls differ within a row.
    """
    draw, problem = compile_reward_sampler(spec), spec.problem
    start = time.process_time()  # on a busy machine, only the time of this process
    steady = problem.has_step_free_rewards and not problem.has_pull_dependent_means
    at_once = PULLS_PER_CALL if steady else min(PULLS_PER_CALL, spec.horizon) if problem.has_step_free_rewards else 1
    size = at_once if hasattr(draw, "compile") else 1
    rows = max(1, min(max_rewards // size, MAX_CALLS))
    rng = np.random.default_rng(0)
    runs, arms = np.arange(rows) % BLOCK_SIZE, rng.integers(problem.arms, size=rows)
    firsts = np.minimum(rng.integers(spec.horizon, size=rows) // size * size, max(0, spec.horizon - size))
    steps = firsts if problem.has_step_free_rewards else rng.integers(firsts, spec.horizon)
    keys = [compute_instance_key(spec.seed, block * BLOCK_SIZE + run) for run in range(BLOCK_SIZE)]  # type: ignore[no-untyped-call]
    options, cursor = copy_read_only(problem.options()), np.zeros(4, np.int64)
    sums = np.empty((4, rows))
    drawn_runs, more = 0, 1
    # Each batch is as long as all previous ones together. So the last one ends in time if the first one does.
    while drawn_runs < rows and (not drawn_runs or 2 * (time.process_time() - start) < seconds):
        batch = slice(drawn_runs, min(rows, drawn_runs + more))
        payoffs = np.empty((batch.stop - drawn_runs, size))
        for position, out in enumerate(payoffs, drawn_runs):
            cursor[3] = REWARD_STREAM + 256 * (position // BLOCK_SIZE)
            run = runs[position]
            draw(
                means[run],
                options,
                *keys[run],
                cursor,
                int(arms[position]),
                int(firsts[position]),
                np.full(size, steps[position]),
                out,
            )
        _check_reward_kind(spec, payoffs, runs[batch] + block * BLOCK_SIZE, arms[batch])
        off = payoffs - means[runs[batch], arms[batch], None]
        sums[:, batch] = payoffs.sum(axis=1), off.sum(axis=1), (off**2).sum(axis=1), np.abs(off).max(axis=1)
        drawn_runs, more = batch.stop, drawn_runs + more
    return RewardSample(size, runs[:drawn_runs], arms[:drawn_runs], steps[:drawn_runs], *sums[:, :drawn_runs])


def _check_reward_kind(spec: SimulationSpec, payoffs: FloatArray, runs: IntArray, arms: IntArray) -> None:
    """Reject rewards that are not of the stated kind."""
    if spec.problem.rewards not in REWARD_KINDS:
        return
    description, holds = REWARD_KINDS[spec.problem.rewards]
    wrong = np.argwhere(np.isfinite(payoffs) & ~holds(payoffs))
    if len(wrong):
        row, pull = wrong[0]
        raise SimulationError(
            describe_wrong_reward(spec, description, int(runs[row]), int(arms[row]), float(payoffs[row, pull]))
        )


def describe_wrong_reward(spec: SimulationSpec, description: str, run: int, arm: int, payoff: float) -> str:
    """Describe a reward that is not of the stated kind."""
    return (
        f"rewards of {spec.problem.name!r} must be {description}, as it states (rewards={spec.problem.rewards!r}), but "
        f"arm {arm} of run {run} pays {payoff:g}; correct its reward function, or the kind of rewards."
    )


def _raise_refuted_mean(
    spec: SimulationSpec, sample: RewardSample, means: FloatArray, contrast: RewardContrast
) -> NoReturn:
    """Raise an error with the mean rewards, the stated means and the detectable deviation."""
    weights, stated = contrast.compute_weights(sample, means), means[sample.runs, sample.arms]
    groups = [(weights == sign, description) for sign, description in contrast.groups if (weights == sign).any()]
    means_of = [
        (description, sample.totals[group].mean() / sample.pulls_per_row, stated[group].mean())
        for group, description in groups
    ]
    comparison = " and ".join(
        f"{description} {_format_two_means(mean_reward, mean)}" for description, mean_reward, mean in means_of
    )
    sums = _sum_deviations(sample, means, contrast)
    raise SimulationError(
        f"rewards of {spec.problem.name!r} must have the means that its `sample` returns, because regret compares with the "
        f"arm that has the highest of them, but over {sums.reward_count:,} pulls {comparison} (a deviation of "
        f"{sums.detectable:.2g}, four standard errors, is visible); let its reward function draw with the mean "
        "instance.means[arm], or let `sample` return the means of the rewards."
    )


def _format_two_means(mean_reward: float, stated: float) -> str:
    """Format two means, with more digits if a few do not distinguish them."""
    digits = 4 if f"{mean_reward:.4g}" != f"{stated:.4g}" else 10
    return f"{mean_reward:.{digits}g} on average, not {stated:.{digits}g}"
