"""No policy loses less than this: lower bounds on the Bayes regret, for Bernoulli and Gaussian arms.

"one arm" is a number (see `one_arm`); the others are means of samples: "future", "belief" and, for two arms, "value" (see
`sample_bounds`), and "together", for Bernoulli arms, which is "one arm" and more (see `coupled`). "together" is mostly the best.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any, NamedTuple

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_integer, check_number
from banditune.core.errors import InvalidRequest
from banditune.exact.coupled_bound import CoupledBound, count_pilot_runs
from banditune.exact.one_arm_bound import OneArmBound
from banditune.exact.one_arm_bound_gaussian import compute_one_arm_bound_gaussian
from banditune.exact.sampled_bounds import compute_path_bytes, sample_bounds
from banditune.exact.table_cache import check_table_fits
from banditune.problems.bernoulli_arms import Bernoulli
from banditune.problems.gaussian_arms import Gaussian
from banditune.results.estimates import Estimate
from banditune.results.student_t import compute_student_quantile

VALUE_HORIZON_LIMIT = 2000
"""Beyond this horizon, "value", which takes T^2 / 2 steps for a run, is left out."""


BOUND_HORIZON_LIMIT = 20_000
"""A longer horizon has the bounds of this one: no policy loses less in more rounds, because no round pays back a loss."""


COUPLED_WORK = 4e9
"""About this many states are visited for "together": where a run is long there are fewer, but 100 or more."""


MIN_BOUND_RUNS, MAX_BOUND_RUNS = 100, 1000
"""So many runs of a sampled bound are worth its error, and no more are needed."""


class SelectedBound(NamedTuple):
    """With probability `level` no policy's Bayes regret is below `value`; "one arm" is sure, and its level 1."""

    value: float
    name: str
    level: float
    estimate: Estimate


def has_lower_bound(problem: Any) -> bool:
    """Whether there are bounds for a problem: a subclass may draw its means in another way."""
    return type(problem) in (Bernoulli, Gaussian) and not getattr(problem, "residuals", ())


def estimate_bound_seconds(problem: Any, horizon: int) -> float:
    """About how long the sure bound takes: two seconds for a horizon of 10,000 and arms that are alike."""
    if isinstance(problem, Gaussian) and not all(0.02 <= sd / problem.noise <= 50 for _, sd in problem.prior):
        return math.inf
    each = 0.07 + 2.0 * (min(horizon, BOUND_HORIZON_LIMIT) / 10_000) ** 1.5
    return len(set(problem.prior)) * float(each)


def _compute_limit(estimate: Estimate, level: float, runs: int) -> float:
    """The one-sided limit that so many runs have."""
    return estimate.mean - compute_student_quantile(level, runs - 1) * estimate.se * math.sqrt(estimate.runs / runs)


class BoundCalculator:
    """The bounds of a problem: the sure one at once, the sampled ones by name."""

    def __init__(self, problem: Any, horizon: int, seed: int = 0) -> None:
        self.problem, self.horizon, self.seed = (
            problem,
            _check_problem(problem, horizon),
            check_integer("seed", seed, 0),
        )
        short = problem.arms == 2 and self.horizon <= VALUE_HORIZON_LIMIT
        self.names = ("future", "belief", *(("value",) if short else ()))
        if isinstance(problem, Bernoulli):
            self.alone = OneArmBound(problem, self.horizon)
            self.price, self.power = self.alone.choose()
            value = self.alone.bound(self.price, self.power)
            self.names += ("together",) if 100 * self.states() <= 10 * COUPLED_WORK else ()
        else:
            value = compute_one_arm_bound_gaussian(problem, self.horizon)
        # Regret is never negative.
        value = max(0.0, value)
        self.sure = SelectedBound(value, "one arm", 1.0, Estimate(value, 0.0, value, value, 0))

    def all(self, runs: int) -> dict[str, Estimate]:
        """Every bound by name; "one arm" has no error and no runs."""
        runs = check_integer("runs", runs, 2)
        found = {name: Estimate.of(self.sample(name, range(runs))) for name in self.names}
        return found | {self.sure.name: self.sure.estimate}

    def best(self, runs: int, level: float) -> SelectedBound:
        """The best bound, as a one-sided confidence limit.

        Runs of their own say which of the sampled bounds is likely to be the best; only that one is estimated, and then
        the larger of its limit and of "one arm" is taken. "one arm" is never too large, so that this is wrong with
        probability 1 - level at most, as far as the central limit theorem holds.
        """
        runs = check_integer("runs", runs, 2)
        if not 0.5 <= check_number("confidence", level) < 1:
            raise InvalidRequest(f"`0.5 <= confidence < 1` must hold (95% is 0.95), but got confidence={level!r}.")
        first = count_pilot_runs(self.horizon)
        pilots = {name: Estimate.of(self.sample(name, range(first))) for name in self.names}
        name = max(pilots, key=lambda name: _compute_limit(pilots[name], level, runs))
        estimate = Estimate.of(self.sample(name, range(first, first + runs)))
        limit = _compute_limit(estimate, level, estimate.runs)
        return SelectedBound(limit, name, level, estimate) if limit > self.sure.value else self.sure

    def affordable(self, work: float, level: float = 0.95) -> SelectedBound:
        """The larger of "one arm" and the limit of the sampled bound that is mostly the best, if that visits few states.

        Which bound is sampled and on how many runs does not depend on what they say. "together" has the price of "one arm".
        """
        name, states = (
            ("together", self.states()) if isinstance(self.problem, Bernoulli) else ("value", self.horizon**2 / 2)
        )
        runs = min(MAX_BOUND_RUNS, int(work / states))
        if name not in self.names or runs < MIN_BOUND_RUNS:
            return self.sure
        if name == "together":
            assert isinstance(self.problem, Bernoulli)
            coupled = CoupledBound(self.problem, self.seed, self.alone, self.price, self.power, climb=False)
            estimate = Estimate.of(coupled.sample(range(runs)))
        else:
            estimate = Estimate.of(self.sample(name, range(runs)))
        limit = _compute_limit(estimate, level, runs)
        return SelectedBound(limit, name, level, estimate) if limit > self.sure.value else self.sure

    @cached_property
    def together(self) -> CoupledBound:
        """The bound "together", whose price is searched for when it is first asked for."""
        assert isinstance(self.problem, Bernoulli)
        return CoupledBound(self.problem, self.seed, self.alone, self.price, self.power)

    def states(self) -> float:
        """About how many states a run of "together" visits."""
        return float(self.problem.arms * min(self.horizon**2 / 2, 6 * self.horizon**1.5))

    def sample(self, name: str, runs: range) -> FloatArray:
        """The bound of each run."""
        if name == "together":
            return self.together.sample(runs[: max(100, int(COUPLED_WORK / self.states()))])
        found: FloatArray = sample_bounds(self.problem, self.horizon, (name,), runs, self.seed)[0]
        return found


def _check_problem(problem: Any, horizon: Any) -> int:
    """Refuse what cannot be bounded, before the work; returns the horizon that is bounded."""
    if not has_lower_bound(problem):
        raise InvalidRequest(
            f"the problem must be bernoulli or gaussian for a lower bound, but got {getattr(problem, 'name', problem)!r}"
            f"{' with residuals' * bool(getattr(problem, 'residuals', ()))}; for a mixture there is its optimum."
        )
    if isinstance(problem, Gaussian) and not all(1e-3 <= sd / problem.noise <= 1e3 for _, sd in problem.prior):
        raise InvalidRequest(
            "the prior's standard deviation must be between 0.001 and 1,000 times the noise for a lower bound, but got "
            f"prior={problem.prior!r} and noise={problem.noise!r}."
        )
    reached = min(check_integer("horizon", horizon, 1), BOUND_HORIZON_LIMIT)
    check_table_fits("a block of sampled rewards", lambda steps: compute_path_bytes(problem.arms, steps), reached)
    return reached
