"""Lower bounds on the Bayes regret of any policy, for Bernoulli and Gaussian arms.

"one arm" is computed (see `one_arm_bound`). The others are means of samples: "future", "posterior mean" and, for two arms,
"value" (see `sampled_bounds`); for Bernoulli arms "coupled" (see `coupled_bound`), which is usually the largest.
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
"""The longest horizon for "value", which takes T^2 / 2 steps for a run."""


BOUND_HORIZON_LIMIT = 20_000
"""The longest horizon. For a longer one, its bounds are used, because regret does not fall with more rounds."""


COUPLED_WORK = 4e9
"""The approximate number of states for "coupled". It limits the number of long runs, which is at least 100."""


MIN_BOUND_RUNS, MAX_BOUND_RUNS = 100, 1000
"""The smallest and the largest number of runs of a sampled bound. The error of fewer runs would be too large."""


class SelectedBound(NamedTuple):
    """With probability `confidence` no policy has a Bayes regret below `value`. "one arm" has confidence 1."""

    value: float
    name: str
    confidence: float
    estimate: Estimate


def has_lower_bound(problem: Any) -> bool:
    """Return whether there are bounds for a problem. Subclasses have none: they may draw means in another way."""
    return type(problem) in (Bernoulli, Gaussian) and not getattr(problem, "residuals", ())


def estimate_bound_seconds(problem: Any, horizon: int) -> float:
    """Estimate the time of the computed bound: two seconds for a horizon of 10,000 and arms with one prior."""
    if isinstance(problem, Gaussian) and not all(0.02 <= sd / problem.noise <= 50 for _, sd in problem.prior):
        return math.inf
    seconds_per_prior = 0.07 + 2.0 * (min(horizon, BOUND_HORIZON_LIMIT) / 10_000) ** 1.5
    return len(set(problem.prior)) * float(seconds_per_prior)


def _compute_limit(estimate: Estimate, confidence: float, runs: int) -> float:
    """Compute the one-sided limit for this number of runs."""
    return estimate.mean - compute_student_quantile(confidence, runs - 1) * estimate.se * math.sqrt(
        estimate.runs / runs
    )


class BoundCalculator:
    """The bounds of a problem. The computed one is an attribute, and the sampled ones are computed by name."""

    def __init__(self, problem: Any, horizon: int, seed: int = 0) -> None:
        self.problem, self.horizon, self.seed = (
            problem,
            _check_problem(problem, horizon),
            check_integer("seed", seed, 0),
        )
        is_short = problem.arms == 2 and self.horizon <= VALUE_HORIZON_LIMIT
        self.names = ("future", "posterior mean", *(("value",) if is_short else ()))
        if isinstance(problem, Bernoulli):
            self.one_arm_bound = OneArmBound(problem, self.horizon)
            self.price, self.power = self.one_arm_bound.choose_price()
            value = self.one_arm_bound.compute_bound(self.price, self.power)
            self.names += ("coupled",) if 100 * self.count_states() <= 10 * COUPLED_WORK else ()
        else:
            value = compute_one_arm_bound_gaussian(problem, self.horizon)
        # Regret is never negative.
        value = max(0.0, value)
        self.certain = SelectedBound(value, "one arm", 1.0, Estimate(mean=value, se=0.0, low=value, high=value, runs=0))

    def estimate_all(self, runs: int) -> dict[str, Estimate]:
        """Estimate every bound. Return the estimates by name; "one arm" has no error and no runs."""
        runs = check_integer("runs", runs, 2)
        estimates = {name: Estimate.from_sample(self.sample_bound(name, range(runs))) for name in self.names}
        return estimates | {self.certain.name: self.certain.estimate}

    def select_best(self, runs: int, confidence: float) -> SelectedBound:
        """Select the best bound, as a one-sided confidence limit.

        The most promising sampled bound is chosen by separate pilot runs. Only this one is estimated, and the larger of
        its limit and of "one arm" is returned. "one arm" is never too large, so the error probability is at most
        1 - confidence, provided that the central limit theorem holds.
        """
        runs = check_integer("runs", runs, 2)
        check_number("confidence", confidence, least=0.5, below=1, note=" (95% is 0.95)")
        first = count_pilot_runs(self.horizon)
        pilots = {name: Estimate.from_sample(self.sample_bound(name, range(first))) for name in self.names}
        name = max(pilots, key=lambda name: _compute_limit(pilots[name], confidence, runs))
        estimate = Estimate.from_sample(self.sample_bound(name, range(first, first + runs)))
        limit = _compute_limit(estimate, confidence, estimate.runs)
        return SelectedBound(limit, name, confidence, estimate) if limit > self.certain.value else self.certain

    def select_affordable(self, work: float, confidence: float = 0.95) -> SelectedBound:
        """Select the larger of "one arm" and, if it needs few states, the limit of the usually best sampled bound.

        The choice of the sampled bound and its runs does not depend on its values. "coupled" has the price of "one arm".
        """
        name, states = (
            ("coupled", self.count_states()) if isinstance(self.problem, Bernoulli) else ("value", self.horizon**2 / 2)
        )
        runs = min(MAX_BOUND_RUNS, int(work / states))
        if name not in self.names or runs < MIN_BOUND_RUNS:
            return self.certain
        if name == "coupled":
            assert isinstance(self.problem, Bernoulli)
            coupled = CoupledBound(self.problem, self.seed, self.one_arm_bound, self.price, self.power, climb=False)
            estimate = Estimate.from_sample(coupled.sample(range(runs)))
        else:
            estimate = Estimate.from_sample(self.sample_bound(name, range(runs)))
        limit = _compute_limit(estimate, confidence, runs)
        return SelectedBound(limit, name, confidence, estimate) if limit > self.certain.value else self.certain

    @cached_property
    def coupled_bound(self) -> CoupledBound:
        """The bound "coupled". Its price is searched at the first access."""
        assert isinstance(self.problem, Bernoulli)
        return CoupledBound(self.problem, self.seed, self.one_arm_bound, self.price, self.power)

    def count_states(self) -> float:
        """Estimate the number of states of a run of "coupled"."""
        return float(self.problem.arms * min(self.horizon**2 / 2, 6 * self.horizon**1.5))

    def sample_bound(self, name: str, runs: range) -> FloatArray:
        """Sample the bound of each run."""
        if name == "coupled":
            return self.coupled_bound.sample(runs[: max(100, int(COUPLED_WORK / self.count_states()))])
        bounds: FloatArray = sample_bounds(self.problem, self.horizon, (name,), runs, self.seed)[0]
        return bounds


def _check_problem(problem: Any, horizon: Any) -> int:
    """Raise an error, before the work, for a problem without a bound. Return the horizon of the bounds."""
    if not has_lower_bound(problem):
        raise InvalidRequest(
            f"the problem must be bernoulli or gaussian for a lower bound, but got {getattr(problem, 'name', problem)!r}"
            f"{' with residuals' * bool(getattr(problem, 'residuals', ()))}; for a mixture there is its optimum.",
            argument="problem",
            code="unsupported",
        )
    if isinstance(problem, Gaussian) and not all(1e-3 <= sd / problem.noise <= 1e3 for _, sd in problem.prior):
        raise InvalidRequest(
            "the prior's standard deviation must be between 0.001 and 1,000 times the noise for a lower bound, but got "
            f"prior={problem.prior!r} and noise={problem.noise!r}.",
            argument="prior",
            code="out-of-range",
        )
    bounded_horizon = min(check_integer("horizon", horizon, 1), BOUND_HORIZON_LIMIT)
    check_table_fits(
        "a block of sampled rewards", lambda steps: compute_path_bytes(problem.arms, steps), bounded_horizon
    )
    return bounded_horizon
