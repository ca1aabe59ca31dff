"""NoTeS, the paper's noisy ternary search, and its theoretical guarantees."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from banditune.core.checks import check_number
from banditune.core.errors import InvalidRequest
from banditune.core.space import Range
from banditune.core.tuner import SearchGenerator, Trial, Tuner
from banditune.tuners.grid_search import check_budget, check_precision


def count_iterations(precision: float) -> int:
    """Count the iterations of NoTeS until the interval is at most twice the precision long (Lemma 1 of the paper).

    Parameters
    ----------
    precision : float
        Accuracy as a share of the range, from 0.001 to 0.5.

    Returns
    -------
    int
        The number of iterations.

    Raises
    ------
    InvalidRequest
        If the precision is out of its range.

    Examples
    --------
    >>> import banditune as bt
    >>> bt.tuners.count_iterations(0.1)
    4
    """
    return max(1, math.ceil(math.log(1 / (2 * check_precision(precision))) / math.log(3 / 2) - 1e-9))


def allocate_pairs(budget: int, iterations: int) -> list[int]:
    """Allocate pairs of runs to iterations, proportional to (9/4)^iteration, with 2 sum(pairs) <= budget.

    The paper does not specify the rounding. Here every iteration has at least one pair. If there are too many pairs, the
    last iterations have fewer. Remaining pairs are added to the last iteration.
    """
    weights = [(9 / 4) ** (step + 1) for step in range(iterations)]
    pairs = [max(1, int(budget * weight / sum(weights) / 2)) for weight in weights]
    for step in reversed(range(iterations)):
        pairs[step] = max(1, pairs[step] - max(0, sum(pairs) - budget // 2))
    pairs[-1] += (budget - 2 * sum(pairs)) // 2
    return pairs


def compute_steepness(slope: float, noise: float) -> float:
    """Compute the square of a curve's slope in units of the noise, which the theorem depends on."""
    ratio = check_number("slope", slope, above=0) / check_number("noise", noise, above=0)
    if not 1e-6 <= ratio <= 1e6:
        raise InvalidRequest(
            f"`1e-6 <= slope / noise <= 1e6` must hold, but got slope={slope!r} and noise={noise!r}.",
            argument="slope",
            code="out-of-range",
        )
    return ratio**2


def bound_failure(sizes: Sequence[float], slope: float, noise: float) -> float:
    """Bound the probability that NoTeS misses the best value by more than the precision (Theorem 1 of the paper).

    Parameters
    ----------
    sizes : sequence of float
        Runs of each iteration.
    slope : float
        The slope of the regret on both sides of its minimum, on the unit interval (lambda in the paper), above 0.
    noise : float
        Sub-Gaussian parameter of a run's regret, above 0.

    Returns
    -------
    float
        The bound. A bound above 1 has no information.

    Raises
    ------
    InvalidRequest
        If slope / noise is not between 1e-6 and 1e6.

    Examples
    --------
    >>> import banditune as bt
    >>> round(bt.tuners.bound_failure([500, 1125, 2530], slope=1, noise=1), 4)
    0.0116
    """
    steep = compute_steepness(slope, noise)
    exponents = (-((2 / 3) ** (2 * step)) * steep * size / 32 for step, size in enumerate(sizes, 1))
    return 4 * sum(math.exp(exponent) for exponent in exponents)


def compute_budget(bound: float, precision: float, slope: float, noise: float) -> int:
    """Compute the smallest budget with which NoTeS misses the best value with at most a given probability.

    The probability is that of `bound_failure`, with the paper's allocation of the budget to iterations.

    Parameters
    ----------
    bound : float
        The probability, between 0 and 1.
    precision : float
        Accuracy as a share of the range, from 0.001 to 0.5.
    slope : float
        The slope of the regret on both sides of its minimum, on the unit interval (lambda in the paper), above 0.
    noise : float
        Sub-Gaussian parameter of a run's regret, above 0.

    Returns
    -------
    int
        The budget, in runs.

    Raises
    ------
    InvalidRequest
        If an argument is out of its range.

    Examples
    --------
    >>> import banditune as bt
    >>> bt.tuners.compute_budget(0.05, precision=0.1, slope=1, noise=1)
    8197
    """
    check_number("bound", bound, above=0, below=1)
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
    """The paper's noisy ternary search. It compares two values in each iteration and removes a third of the interval.

    Parameters
    ----------
    precision : float
        Accuracy as a share of the range, from 0.001 to 0.5.

    Examples
    --------
    >>> import banditune as bt
    >>> search = bt.Search(tuner=bt.NoTeS(precision=0.1))
    >>> result = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=100, budget=200, search=search)
    >>> 0 < result.params["gamma"] < 1
    True
    """

    precision: float = 0.1

    name = "notes"

    def __post_init__(self) -> None:
        check_precision(self.precision)

    def search(self, search_range: Range, budget: int) -> SearchGenerator:
        """Search by Algorithm 1 of the paper, on the unit interval."""
        iterations = count_iterations(self.precision)
        check_budget(budget, 2 * iterations, f"{self}, which compares two values {iterations} times")
        low, high = 0.0, 1.0
        for pairs in allocate_pairs(budget, iterations):
            a = 2 / 3 * low + 1 / 3 * high
            b = 1 / 3 * low + 2 / 3 * high
            regrets = yield Trial((search_range.scale_from_unit(a), search_range.scale_from_unit(b)), pairs)
            mean_a, mean_b = regrets.mean(axis=1)
            if mean_a >= mean_b:
                low = a
            else:
                high = b
        return search_range.scale_from_unit((low + high) / 2)
