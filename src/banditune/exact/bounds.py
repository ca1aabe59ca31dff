"""No policy loses less than this: lower bounds on the Bayes regret, for Bernoulli and Gaussian arms.

"one arm" is a number (see `one_arm`); the others are means of samples: "future", "belief" and, for two arms, "value" (see
`sampled`), and "together", for Bernoulli arms, which is "one arm" and more (see `coupled`). "together" is mostly the best.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

from banditune.checks import check_number, check_whole
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

FAR = 20_000
"""A longer horizon has the bounds of this one: no policy loses less in more rounds, because no round pays back a loss."""

WORK = 4e9
"""About this many states are visited for "together": where a run is long there are fewer, but 100 or more."""


ENOUGH, MOST = 100, 1000
"""So many runs of a sampled bound are worth its error, and no more are needed."""


class LowerBound(NamedTuple):
    """With probability `level` no policy's Bayes regret is below `value`; "one arm" is sure, and its level 1."""

    value: float
    name: str
    level: float
    estimate: Estimate


def applies(problem: Any) -> bool:
    """Whether there are bounds for a problem: a subclass may draw its means in another way."""
    return type(problem) in (Bernoulli, Gaussian) and not getattr(problem, "residuals", ())


def seconds(problem: Any, horizon: int) -> float:
    """About how long the sure bound takes: two seconds for a horizon of 10,000 and arms that are alike."""
    if isinstance(problem, Gaussian) and not all(0.02 <= sd / problem.noise <= 50 for _, sd in problem.prior):
        return math.inf
    each = 0.07 + 2.0 * (min(horizon, FAR) / 10_000) ** 1.5
    return len(set(problem.prior)) * float(each)


def _limit(estimate: Estimate, level: float, runs: int) -> float:
    """The one-sided limit that so many runs have."""
    return estimate.mean - student_quantile(level, runs - 1) * estimate.se * math.sqrt(estimate.runs / runs)


class Bounds:
    """The bounds of a problem: the sure one at once, the sampled ones by name."""

    def __init__(self, problem: Any, horizon: int, seed: int = 0) -> None:
        self.problem, self.horizon, self.seed = problem, _checked(problem, horizon), check_whole("seed", seed, 0)
        short = problem.arms == 2 and self.horizon <= LONGEST
        self.names = ("future", "belief", *(("value",) if short else ()))
        if isinstance(problem, Bernoulli):
            self.alone = OneArm(problem, self.horizon)
            self.price, self.power = self.alone.choose()
            value = self.alone.bound(self.price, self.power)
            self.names += ("together",) if 100 * self.states() <= 10 * WORK else ()
        else:
            value = one_arm_bound_normal(problem, self.horizon)
        # Regret is never negative.
        value = max(0.0, value)
        self.sure = LowerBound(value, "one arm", 1.0, Estimate(value, 0.0, value, value, 0))

    def all(self, runs: int) -> dict[str, Estimate]:
        """Every bound by name; "one arm" has no error and no runs."""
        runs = check_whole("runs", runs, 2)
        found = {name: Estimate.of(self.sample(name, range(runs))) for name in self.names}
        return found | {self.sure.name: self.sure.estimate}

    def best(self, runs: int, level: float) -> LowerBound:
        """The best bound, as a one-sided confidence limit.

        Runs of their own say which of the sampled bounds is likely to be the best; only that one is estimated, and then
        the larger of its limit and of "one arm" is taken. "one arm" is never too large, so that this is wrong with
        probability 1 - level at most, as far as the central limit theorem holds.
        """
        runs = check_whole("runs", runs, 2)
        if not 0.5 <= check_number("confidence", level) < 1:
            raise BadRequest(f"`0.5 <= confidence < 1` must hold (95% is 0.95), but got confidence={level!r}.")
        first = pilot(self.horizon)
        pilots = {name: Estimate.of(self.sample(name, range(first))) for name in self.names}
        name = max(pilots, key=lambda name: _limit(pilots[name], level, runs))
        estimate = Estimate.of(self.sample(name, range(first, first + runs)))
        limit = _limit(estimate, level, estimate.runs)
        return LowerBound(limit, name, level, estimate) if limit > self.sure.value else self.sure

    def affordable(self, work: float, level: float = 0.95) -> LowerBound:
        """The larger of "one arm" and the limit of the sampled bound that is mostly the best, if that visits few states.

        Which bound is sampled and on how many runs does not depend on what they say. "together" has the price of "one arm".
        """
        name, states = (
            ("together", self.states()) if isinstance(self.problem, Bernoulli) else ("value", self.horizon**2 / 2)
        )
        runs = min(MOST, int(work / states))
        if name not in self.names or runs < ENOUGH:
            return self.sure
        if name == "together":
            assert isinstance(self.problem, Bernoulli)
            coupled = Together(self.problem, self.seed, self.alone, self.price, self.power, climb=False)
            estimate = Estimate.of(coupled.sample(range(runs)))
        else:
            estimate = Estimate.of(self.sample(name, range(runs)))
        limit = _limit(estimate, level, runs)
        return LowerBound(limit, name, level, estimate) if limit > self.sure.value else self.sure

    @cached_property
    def together(self) -> Together:
        """The bound "together", whose price is searched for when it is first asked for."""
        assert isinstance(self.problem, Bernoulli)
        return Together(self.problem, self.seed, self.alone, self.price, self.power)

    def states(self) -> float:
        """About how many states a run of "together" visits."""
        return float(self.problem.arms * min(self.horizon**2 / 2, 6 * self.horizon**1.5))

    def sample(self, name: str, runs: range) -> Floats:
        """The bound of each run."""
        if name == "together":
            return self.together.sample(runs[: max(100, int(WORK / self.states()))])
        found: Floats = sampled(self.problem, self.horizon, (name,), runs, self.seed)[0]
        return found


def _checked(problem: Any, horizon: Any) -> int:
    """Refuse what cannot be bounded, before the work; returns the horizon that is bounded."""
    if not applies(problem):
        raise BadRequest(
            f"the problem must be bernoulli or gaussian for a lower bound, but got {getattr(problem, 'name', problem)!r}"
            f"{' with residuals' * bool(getattr(problem, 'residuals', ()))}; for a mixture there is its optimum."
        )
    if isinstance(problem, Gaussian) and not all(1e-3 <= sd / problem.noise <= 1e3 for _, sd in problem.prior):
        raise BadRequest(
            "the prior's standard deviation must be between 0.001 and 1,000 times the noise for a lower bound, but got "
            f"prior={problem.prior!r} and noise={problem.noise!r}."
        )
    reached = min(check_whole("horizon", horizon, 1), FAR)
    check_fits("a block of sampled rewards", lambda steps: bytes_of_paths(problem.arms, steps), reached)
    return reached
