"""No policy loses less than this: lower bounds on the Bayes regret, for Bernoulli and Gaussian arms.

"one arm" is a number (see `one_arm`); the others are means of samples: "future", "belief" and, for two arms, "value" (see
`sampled`), and "together", for Bernoulli arms, which is "one arm" and more (see `coupled`). "together" is mostly the best.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from banditune.checks import check_number
from banditune.contracts import BadRequest, Floats
from banditune.exact.coupled import Together, pilot
from banditune.exact.one_arm import OneArm
from banditune.exact.one_arm_normal import one_arm_bound_normal
from banditune.exact.room import check_fits
from banditune.exact.sampled import bytes_of_paths, sampled
from banditune.problems.bernoulli import Bernoulli
from banditune.problems.gaussian import Gaussian
from banditune.results import Estimate, student_quantile

LONGEST = 2000
"""Beyond this horizon, "value", which takes T^2 / 2 steps for a run, is left out."""

WORK = 4e9
"""About this many states are visited for "together": where a run is long there are fewer, but 100 or more."""


class LowerBound(NamedTuple):
    """With probability `level` no policy's Bayes regret is below `value`; "one arm" is sure, and its level 1."""

    value: float
    name: str
    level: float
    estimate: Estimate


def bounds(problem: Any, horizon: int, runs: int = 1000, seed: int = 0) -> dict[str, Estimate]:
    """Every lower bound by name; "one arm" has no error and no runs."""
    _check(problem, horizon, runs, seed)
    all_bounds = _Bounds(problem, horizon, seed)
    found = {name: Estimate.of(all_bounds.sample(name, range(runs))) for name in all_bounds.names}
    return found | {"one arm": all_bounds.sure}


def lower_bound(problem: Any, horizon: int, runs: int = 1000, seed: int = 0, level: float = 0.95) -> LowerBound:
    """The best lower bound, as a one-sided confidence limit.

    Runs of their own say which of the sampled bounds is likely to be the best; only that one is estimated, and then the
    larger of its limit and of "one arm" is taken. "one arm" is never too large, so that this is wrong with probability
    1 - level at most, as far as the central limit theorem holds.
    """
    _check(problem, horizon, runs, seed)
    if not 0.5 <= check_number("level", level) < 1:
        raise BadRequest(f"`0.5 <= level < 1` must hold, but got level={level!r}.")
    all_bounds = _Bounds(problem, horizon, seed)
    first = pilot(horizon)
    pilots = {name: Estimate.of(all_bounds.sample(name, range(first))) for name in all_bounds.names}
    name = max(pilots, key=lambda name: _limit(pilots[name], level, runs))
    estimate = Estimate.of(all_bounds.sample(name, range(first, first + runs)))
    limit = _limit(estimate, level, estimate.runs)
    if limit > all_bounds.sure.mean:
        return LowerBound(limit, name, level, estimate)
    return LowerBound(all_bounds.sure.mean, "one arm", 1.0, all_bounds.sure)


def applies(problem: Any) -> bool:
    """Whether there are bounds for a problem: a subclass may draw its means in another way."""
    return type(problem) in (Bernoulli, Gaussian)


def seconds(problem: Any, horizon: int) -> float:
    """About how long it takes: two seconds for a horizon of 10,000 and arms that are alike."""
    return float(2.0 * len(set(problem.prior)) * (horizon / 10_000) ** 1.5)


def _limit(estimate: Estimate, level: float, runs: int) -> float:
    """The one-sided limit that so many runs have."""
    return estimate.mean - student_quantile(level, runs - 1) * estimate.se * math.sqrt(estimate.runs / runs)


class _Bounds:
    """The bounds of a problem: the sure one at once, the sampled ones by name."""

    def __init__(self, problem: Bernoulli | Gaussian, horizon: int, seed: int) -> None:
        self.problem, self.horizon, self.seed = problem, horizon, seed
        short = problem.arms == 2 and horizon <= LONGEST
        self.names = ("future", "belief", *(("value",) if short else ()))
        if isinstance(problem, Bernoulli):
            alone = OneArm(problem, horizon)
            price, power = alone.choose()
            value = alone.bound(price, power)
            self.names += ("together",)
            self.together = Together(problem, seed, alone, price, power)
        else:
            value = one_arm_bound_normal(problem, horizon)
        # Regret is never negative.
        value = max(0.0, value)
        self.sure = Estimate(value, 0.0, value, value, 0)

    def sample(self, name: str, runs: range) -> Floats:
        """The bound of each run."""
        if name == "together":
            states = self.problem.arms * min(self.horizon**2 / 2, 6 * self.horizon**1.5)
            return self.together.sample(runs[: max(100, int(WORK / states))])
        found: Floats = sampled(self.problem, self.horizon, (name,), runs, self.seed)[0]
        return found


def _check(problem: Any, horizon: Any, runs: Any, seed: Any) -> None:
    """Refuse what cannot be bounded, before the work."""
    if not applies(problem):
        raise BadRequest(
            f"the problem must be bernoulli or gaussian for a lower bound, but got {getattr(problem, 'name', problem)!r}."
        )
    for name, number, least in (("horizon", horizon, 1), ("runs", runs, 2), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, int) or number < least:
            raise BadRequest(f"`{name} >= {least}` must hold, as a whole number, but got {name}={number!r}.")
    check_fits("a block of sampled rewards", lambda steps: bytes_of_paths(problem.arms, steps), horizon)
