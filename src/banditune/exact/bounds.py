"""No policy loses less than this: lower bounds on the Bayes regret, for Bernoulli and Gaussian arms.

"future", "belief" and "value" are means of samples (see `sampled`), "one arm" is a number (see `one_arm`). "value" is for
two arms. On ten uniform Bernoulli arms "one arm" is the best by far, on two "value" is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from banditune.checks import check_number
from banditune.contracts import BadRequest
from banditune.exact.one_arm import one_arm_bound
from banditune.exact.one_arm_normal import one_arm_bound_normal
from banditune.exact.room import check_fits
from banditune.exact.sampled import SAMPLED, bytes_of_paths, sampled
from banditune.problems.bernoulli import Bernoulli
from banditune.problems.gaussian import Gaussian
from banditune.results import Estimate, student_quantile

PILOT = 64
"""Runs that choose the bound for `lower_bound`; they are no part of its estimate."""

LONGEST = 2000
"""Beyond this horizon, "value", which takes T^2 / 2 steps for a run, is left out."""


class LowerBound(NamedTuple):
    """With probability `level` no policy's Bayes regret is below `value`; "one arm" is sure, and its level 1."""

    value: float
    name: str
    level: float
    estimate: Estimate


def bounds(problem: Any, horizon: int, runs: int = 1000, seed: int = 0) -> dict[str, Estimate]:
    """Every lower bound by name; "one arm" has no error and no runs."""
    _check(problem, horizon, runs, seed)
    names = _names(problem, horizon)
    found = dict(zip(names, map(Estimate.of, sampled(problem, horizon, names, range(runs), seed)), strict=True))
    return found | {"one arm": _one_arm(problem, horizon)}


def lower_bound(problem: Any, horizon: int, runs: int = 1000, seed: int = 0, level: float = 0.95) -> LowerBound:
    """The best lower bound, as a one-sided confidence limit.

    Runs of their own say which of the sampled bounds is likely to be the best; only that one is estimated, and then the
    larger of its limit and of "one arm" is taken. "one arm" is never too large, so that this is wrong with probability
    1 - level at most.
    """
    _check(problem, horizon, runs, seed)
    if not 0.5 <= check_number("level", level) < 1:
        raise BadRequest(f"`0.5 <= level < 1` must hold, but got level={level!r}.")
    sure = _one_arm(problem, horizon)
    names = _names(problem, horizon)
    pilots = map(Estimate.of, sampled(problem, horizon, names, range(PILOT), seed))
    limits = {name: _limit(pilot, level, runs) for name, pilot in zip(names, pilots, strict=True)}
    name = max(limits, key=lambda name: limits[name])
    # An estimate that cannot be expected to beat the sure bound, even if the pilot was unlucky, is not worth its time.
    if limits[name] > 0.8 * sure.mean:
        estimate = Estimate.of(sampled(problem, horizon, (name,), range(PILOT, PILOT + runs), seed)[0])
        limit = _limit(estimate, level, runs)
        if limit > sure.mean:
            return LowerBound(limit, name, level, estimate)
    return LowerBound(sure.mean, "one arm", 1.0, sure)


def applies(problem: Any) -> bool:
    """Whether there are bounds for a problem: subclasses may draw their means in another way."""
    return type(problem) in (Bernoulli, Gaussian)


def seconds(problem: Any, horizon: int) -> float:
    """About how long it takes: two seconds for a horizon of 10,000 and arms that are alike."""
    return float(2.0 * len(set(problem.prior)) * (horizon / 10_000) ** 1.5)


def _limit(estimate: Estimate, level: float, runs: int) -> float:
    """The one-sided limit that so many runs have."""
    return estimate.mean - student_quantile(level, runs - 1) * estimate.se * math.sqrt(estimate.runs / runs)


def _one_arm(problem: Bernoulli | Gaussian, horizon: int) -> Estimate:
    """The bound "one arm"; regret is never negative, so 0 where it says less."""
    found = one_arm_bound if isinstance(problem, Bernoulli) else one_arm_bound_normal
    value = max(0.0, found(problem, horizon))  # type: ignore[arg-type]
    return Estimate(value, 0.0, value, value, 0)


def _names(problem: Bernoulli | Gaussian, horizon: int) -> tuple[str, ...]:
    """The sampled bounds that there are for this problem."""
    return SAMPLED if problem.arms == 2 and horizon <= LONGEST else SAMPLED[:2]


def _check(problem: Any, horizon: Any, runs: Any, seed: Any) -> None:
    """Refuse what cannot be bounded, before the work."""
    if not applies(problem):
        raise BadRequest(
            f"lower bounds are for the problems `Bernoulli` and `Gaussian`, but got {getattr(problem, 'name', problem)!r}."
        )
    for name, number, least in (("horizon", horizon, 1), ("runs", runs, 2), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise BadRequest(f"`{name} >= {least}` must hold, as a whole number, but got {name}={number!r}.")
    check_fits("a block of sampled rewards", lambda steps: bytes_of_paths(problem.arms, steps), horizon)
