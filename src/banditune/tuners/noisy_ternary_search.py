"""NoTeS, the paper's noisy ternary search, and what theory says about it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from banditune.core.checks import check_number, convert_to_number
from banditune.core.errors import InvalidRequest
from banditune.core.space import Range
from banditune.core.tuner import SearchGenerator, Trial, Tuner
from banditune.tuners.grid_search import check_budget, check_precision


def count_iterations(precision: float) -> int:
    """Iterations after which the interval is at most twice the precision long, as a share of the range (Lemma 1)."""
    return max(1, math.ceil(math.log(1 / (2 * check_precision(precision))) / math.log(3 / 2) - 1e-9))


def allocate_pairs(budget: int, iterations: int) -> list[int]:
    """How many instances each iteration plays, twice each: proportional to (9/4)^iteration, 2 sum(pairs) <= budget.

    The paper leaves the rounding open. Here every iteration gets at least one pair; what is over the budget is taken off
    the last iterations, what is left goes to the last.
    """
    weights = [(9 / 4) ** (step + 1) for step in range(iterations)]
    pairs = [max(1, int(budget * weight / sum(weights) / 2)) for weight in weights]
    for step in reversed(range(iterations)):
        pairs[step] = max(1, pairs[step] - max(0, sum(pairs) - budget // 2))
    pairs[-1] += (budget - 2 * sum(pairs)) // 2
    return pairs


def compute_steepness(slope: float, noise: float) -> float:
    """What the theorem assumes of a curve: the square of its slope in units of the noise."""
    ratio = check_number("slope", slope, above=0) / check_number("noise", noise, above=0)
    if not 1e-6 <= ratio <= 1e6:
        raise InvalidRequest(f"`1e-6 <= slope / noise <= 1e6` must hold, but got slope={slope!r} and noise={noise!r}.")
    return ratio**2


def bound_failure(sizes: Sequence[float], slope: float, noise: float) -> float:
    """Bound on the probability to miss the best value by more than the precision (Theorem 1 of the paper).

    `sizes` are runs per iteration, `slope` how fast the regret grows away from its minimum (in the unit interval, the
    paper's lambda), `noise` the sub-Gaussian parameter of a run's regret. A bound above 1 says nothing.
    """
    steep = compute_steepness(slope, noise)
    exponents = (-((2 / 3) ** (2 * step)) * steep * size / 32 for step, size in enumerate(sizes, 1))
    return 4 * sum(math.exp(exponent) for exponent in exponents)


def compute_budget(bound: float, precision: float, slope: float, noise: float) -> int:
    """The smallest budget whose `bound_failure`, with `allocate_pairs`, is at most the wanted one."""
    if not 0 < convert_to_number(bound) < 1:
        raise InvalidRequest(f"`0 < bound < 1` must hold, but got bound={bound!r}.")
    iterations = count_iterations(precision)
    compute_steepness(slope, noise)

    def reached(budget: int) -> float:
        return bound_failure([2 * pairs for pairs in allocate_pairs(budget, iterations)], slope, noise)

    high = 2 * iterations
    while reached(high) > bound:
        high *= 2
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) <= bound else (middle, high)
    return high


@dataclass(frozen=True)
class NoTeS(Tuner):
    """The paper's noisy ternary search: compares two values an iteration and drops a third of the interval.

    `precision` is the wanted accuracy as a share of the range.
    """

    precision: float = 0.1

    name = "notes"

    def __post_init__(self) -> None:
        check_precision(self.precision)

    def search(self, among: Range, budget: int) -> SearchGenerator:
        """Algorithm 1 of the paper, on the unit interval."""
        iterations = count_iterations(self.precision)
        check_budget(budget, 2 * iterations, f"{self}, which compares two values {iterations} times")
        low, high = 0.0, 1.0
        for pairs in allocate_pairs(budget, iterations):
            a = 2 / 3 * low + 1 / 3 * high
            b = 1 / 3 * low + 2 / 3 * high
            regrets = yield Trial((among.at(a), among.at(b)), pairs)
            mean_a, mean_b = regrets.mean(axis=1)
            if mean_a >= mean_b:
                low = a
            else:
                high = b
        return among.at((low + high) / 2)
