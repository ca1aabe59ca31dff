"""Gittins indices of Bernoulli arms with Beta priors, and the policy that pulls the arm with the highest one.

The index of an arm is the highest price of a pull at which the arm breaks even if pulling may be stopped at any time. With
a finite horizon the arm can be pulled in the remaining rounds, so the index depends on successes, failures and rounds left.
With a discount the number of rounds is infinite.

At a price, the value of continuing after p pulls with s successes is

    C(p, s) = q - price + discount (q V(p + 1, s + 1) + (1 - q) V(p + 1, s)),   V = max(C, 0),   q = (s + a) / (p + a + b),

backward from the end. Pulls so far and rounds left always add up to the same number, the *end*. So all states of one end
form a triangle of (p, s).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_integer, check_number, check_prior_pairs, convert_to_array, is_from_problem
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Setting
from banditune.core.option_types import ArmPolicyPrior, Option
from banditune.core.policy import FROM_PROBLEM
from banditune.core.request_errors import make_limit_error
from banditune.core.scalar import scalar
from banditune.exact.beta_quadrature import argmax_posterior_mean
from banditune.exact.table_cache import check_table_fits, load_or_make_table
from banditune.policies.base_policies import TotalsPolicy
from banditune.simulation.compilation import compile_kernel
from banditune.simulation.devices import count_cores
from banditune.simulation.estimators.arm_totals import read_successes

PRICE_LANES = 32
"""The number of prices that are processed at once."""


PRICE_COUNT = 66 * (PRICE_LANES - 1) + 1
"""The number of prices of a table. With it, the largest error of 1,000 indices was 1.1e-5 at a horizon of 200, 3.7e-5 at
500 and 1.2e-4 at 1,000."""


GITTINS_TABLE_VERSION = 1
"""A version in the name of a table on disk. It is increased when tables are computed in another way."""


TRUNCATION_ERROR = 1e-9
"""The error of a discounted index because its infinite horizon is truncated."""


MAX_DISCOUNT = 0.999


MAX_ROUNDS_LEFT = 20_000
"""The largest number of rounds of a single index. With more rounds, it takes longer than half a minute."""


def fill_index_triangle(end, top, a, b, discount, prices, values, times, out):
    """Compute the indices of all states with fewer than `top` pulls whose pulls and rounds left add up to `end`.

    For every price of an increasing grid, the value of continuing and the (discounted) number of pulls until stopping are
    computed. The value of a stopping rule is linear in the price. It falls by the number of pulls, so the rule breaks
    even at price + value / pulls. The index is the highest price at which a rule breaks even. It is computed from the
    best rules at the two neighbouring prices. It is exact if at most one decision changes between them. Otherwise it is
    too low, by the order of their squared distance.

    With a discount, an arm that is worth its price at the end is pulled in all further rounds.
    """
    lane_count = values.shape[1]
    for_ever = 1.0 / (1.0 - discount) if discount < 1.0 else 0.0
    for first in range(0, len(prices) - 1, lane_count - 1):
        for s in range(end + 1):
            for lane in range(lane_count):
                spare = (s + a) / (end + a + b) - prices[first + lane]
                values[s, lane] = for_ever * max(spare, 0.0)
                times[s, lane] = for_ever if spare > 0.0 else 0.0
        lowest = 0
        for p in range(end - 1, -1, -1):
            # Below both of these, a pull costs more than its reward, now and later, so the values remain 0.
            lowest = min(lowest - 1, int(prices[first] * (p + a + b) - a))
            lowest = max(lowest, 0)
            reached = p + 1
            for s in range(lowest, p + 1):
                q = (s + a) / (p + a + b)
                up = discount * q
                down = discount * (1.0 - q)
                for lane in range(lane_count):
                    values[s, lane] = q - prices[first + lane] + up * values[s + 1, lane] + down * values[s, lane]
                    times[s, lane] = 1.0 + up * times[s + 1, lane] + down * times[s, lane]
                if p < top and values[s, 0] > 0.0 and values[s, lane_count - 1] <= 0.0:
                    lane = 1
                    while values[s, lane] > 0.0:
                        lane += 1
                    below = prices[first + lane - 1] + values[s, lane - 1] / times[s, lane - 1]
                    above = prices[first + lane] + values[s, lane] / times[s, lane]
                    out[p * (p + 1) // 2 + s] = max(below, above)
                if values[s, 0] > 0.0 and s < reached:
                    reached = s
                for lane in range(lane_count):
                    times[s, lane] = times[s, lane] if values[s, lane] > 0.0 else 0.0
                    values[s, lane] = max(values[s, lane], 0.0)
            lowest = reached


def compute_index_triangle(
    end: int, top: int, prior: tuple[float, float], discount: float, prices: FloatArray
) -> FloatArray:
    """Compute the indices of a triangle. That of (p pulls, s successes) is at position p (p + 1) / 2 + s."""
    out = np.full(count_triangle_entries(top), np.nan)
    values, times = np.empty((end + 1, PRICE_LANES)), np.empty((end + 1, PRICE_LANES))
    compile_kernel(fill_index_triangle)(
        end, top, float(prior[0]), float(prior[1]), float(discount), prices, values, times, out
    )
    return out


def make_price_grid(low: float, high: float) -> FloatArray:
    """Make prices from one mean reward to another, denser near 0 and 1, where posteriors are narrower."""
    ends = np.arcsin(np.sqrt([low, high]))
    prices: FloatArray = np.sin(np.linspace(ends[0], ends[1], PRICE_COUNT)) ** 2
    return prices


def compute_gittins_index(
    successes: int,
    failures: int,
    *,
    rounds_left: int | None = None,
    discount: float | None = None,
    prior: tuple[float, float] = (1, 1),
) -> float:
    """Compute the Gittins index of a Bernoulli arm, to about ten digits.

    The index is the highest price of a pull at which the arm breaks even if pulling may be stopped at any time. Either
    `rounds_left` or `discount` must be given.

    Parameters
    ----------
    successes : int
        Rewards of 1 so far.
    failures : int
        Rewards of 0 so far.
    rounds_left : int, optional
        The number of rounds left, 20,000 at most.
    discount : float, optional
        The factor by which the value of a reward falls every round, for an infinite horizon; above 0, 0.999 at most.
    prior : (float, float)
        Beta(a, b) of the arm's mean.

    Returns
    -------
    float
        The index.

    Raises
    ------
    InvalidRequest
        If an argument cannot be used, or if both or neither of `rounds_left` and `discount` are given.

    Examples
    --------
    >>> import banditune as bt
    >>> round(bt.exact.compute_gittins_index(0, 0, discount=0.9), 4)
    0.7029
    """
    ((a, b),) = check_prior_pairs(prior, 1, first="a", second="b", first_positive=True)
    a, b = a + check_integer("successes", successes, 0), b + check_integer("failures", failures, 0)
    end, rate = resolve_end(rounds_left, discount)
    low, high = a / (a + b), 1.0
    for _ in range(6):
        # If the grid started at the index itself, the value would not change its sign.
        prices = np.linspace(low - 1e-3 * (high - low), high, PRICE_LANES)
        (index,) = compute_index_triangle(end, 1, (a, b), rate, prices)
        step = prices[1] - prices[0]
        low, high = max(low, index - step), min(high, index + 2 * step)
    if not math.isfinite(index):
        raise InvalidRequest(
            "the shapes of a prior must not differ so much, but got {}.",
            Setting("prior", prior),
            argument="prior",
            code="out-of-range",
        )
    return float(index)


def resolve_end(rounds_left: Any, discount: Any) -> tuple[int, float]:
    """Resolve the number of pulls to the end, and the discount (1 for none)."""
    if (rounds_left is None) == (discount is None):
        raise InvalidRequest(
            "either {} or {} must be given, but got {}.",
            *(Argument("rounds_left"), Argument("discount"), "neither" if rounds_left is None else "both"),
            argument="rounds_left",
            code="missing",
        )
    if discount is not None:
        rate = check_discount(discount)
        return compute_far_end(rate), rate
    rounds_left = check_integer("rounds_left", rounds_left, 1)
    if rounds_left > MAX_ROUNDS_LEFT:
        raise make_limit_error(
            "rounds_left", rounds_left, most=MAX_ROUNDS_LEFT, advice="; for more rounds use a discount"
        )
    return rounds_left, 1.0


def check_discount(discount: Any) -> float:
    """Check a discount factor."""
    rate = check_number("discount", discount, above=0)
    if rate > MAX_DISCOUNT:
        raise make_limit_error("discount", discount, most=MAX_DISCOUNT, advice="; use a horizon")
    return rate


def compute_far_end(discount: float) -> int:
    """Compute the pulls after which rewards are negligible: their value is at most discount^pulls / (1 - discount)."""
    return max(2, math.ceil(math.log(TRUNCATION_ERROR * (1 - discount)) / math.log(discount)))


def count_table_entries(horizon: int) -> int:
    """Count the numbers in the table of a horizon: a triangle for every end."""
    return horizon * (horizon + 1) * (horizon + 2) // 6


def count_triangle_entries(horizon: int) -> int:
    """Count the numbers in one triangle."""
    return horizon * (horizon + 1) // 2


def compute_finite_table(prior: tuple[float, float], horizon: int) -> NDArray[np.float32]:
    """Compute indices for every end up to the horizon. Those of an end start at (end - 1) end (end + 1) / 6."""
    table = np.empty(count_table_entries(horizon), np.float32)

    def fill(end: int) -> None:
        prices = make_price_grid(0.999 * prior[0] / (sum(prior) + end), 1.0)
        table[count_table_entries(end - 1) : count_table_entries(end)] = compute_index_triangle(
            end, end, prior, 1.0, prices
        )

    fill(1)
    with ThreadPoolExecutor(count_cores()) as pool:
        list(pool.map(fill, range(horizon, 0, -1)))
    return table


def compute_discounted_table(prior: tuple[float, float], horizon: int, discount: float) -> NDArray[np.float32]:
    """Compute indices for every number of pulls below the horizon: one triangle with a distant end."""
    end = horizon + compute_far_end(discount)
    prices = make_price_grid(0.999 * prior[0] / (sum(prior) + end), 1.0)
    return compute_index_triangle(end, horizon, prior, discount, prices).astype(np.float32)


def load_gittins_table(prior: tuple[float, float], horizon: int, discount: float | None) -> NDArray[np.float32]:
    """Load the table of a prior after a leading 1 (see `Gittins.options`), or compute it."""
    numbers = count_table_entries if discount is None else count_triangle_entries
    check_table_fits("the table of Gittins indices", lambda rounds: 4.0 * numbers(rounds), horizon)

    def make() -> NDArray[np.float32]:
        table = (
            compute_finite_table(prior, horizon)
            if discount is None
            else compute_discounted_table(prior, horizon, discount)
        )
        return np.concatenate([np.ones(1, np.float32), table])

    return load_or_make_table(
        "gittins", (GITTINS_TABLE_VERSION, prior, horizon, discount), make, np.float32, 1 + numbers(horizon)
    )


@scalar
def locate_gittins_table(setting, arm, size):
    """Locate the table of an arm. Tables follow their number and, if there are several, the number of each arm's table."""
    if setting.options[0] == 1.0:
        return 1
    return 1 + setting.arms + int(setting.options[1 + arm]) * size


@scalar
def choose_highest_index(state, setting, step, params, stream):
    """Choose the arm with the highest Gittins index for the remaining rounds. Ties go to the lowest arm number."""
    best = 0
    highest = -1.0
    for arm in range(setting.arms):
        pulls = int(state.pulls[arm])
        end = pulls + setting.horizon - step
        first = locate_gittins_table(setting, arm, setting.horizon * (setting.horizon + 1) * (setting.horizon + 2) // 6)
        position = (end - 1) * end * (end + 1) // 6 + pulls * (pulls + 1) // 2 + read_successes(state, arm)
        if setting.options[first + position] > highest:
            best = arm
            highest = setting.options[first + position]
    return best


@scalar
def choose_highest_discounted_index(state, setting, step, params, stream):
    """Choose the arm with the highest discounted Gittins index. Ties go to the lowest arm number."""
    best = 0
    highest = -1.0
    for arm in range(setting.arms):
        pulls = int(state.pulls[arm])
        first = locate_gittins_table(setting, arm, setting.horizon * (setting.horizon + 1) // 2)
        position = pulls * (pulls + 1) // 2 + read_successes(state, arm)
        if setting.options[first + position] > highest:
            best = arm
            highest = setting.options[first + position]
    return best


@dataclass(frozen=True)
class Gittins(TotalsPolicy):
    """The policy that pulls the arm with the highest Gittins index.

    The index is the highest price of a pull at which the arm breaks even if pulling may be stopped at any time. For a
    horizon n the table has n (n + 1) (n + 2) / 6 numbers: 5 MiB for 200, 638 MiB for 1,000. With a discount it has
    n (n + 1) / 2. It is stored on disk. Rewards must be 0 or 1. The policy has no parameter.

    Parameters
    ----------
    prior : (float, float), sequence of (float, float) or "problem"
        Beta(a, b) of the mean rewards, one pair for all arms or one per arm. By default it is taken from the problem.
    discount : float, optional
        The factor by which the value of a reward falls every round, for an infinite horizon; 0.999 at most. Without it,
        the index is for the remaining rounds of the horizon.

    Examples
    --------
    >>> import banditune as bt
    >>> bt.simulate(bt.exact.Gittins(), bt.Bernoulli(arms=3), horizon=50, runs=100).shape
    (1, 100)
    """

    prior: Option[ArmPolicyPrior] = FROM_PROBLEM
    discount: float | None = None

    name = "gittins"
    rewards = "binary"
    prior_kind = "beta"
    has_prior_per_arm = True

    def __post_init__(self) -> None:
        if not is_from_problem(self.prior):
            prior = check_prior_pairs(
                self.prior, max(1, len(convert_to_array(self.prior))), first="a", second="b", first_positive=True
            )
            object.__setattr__(self, "prior", prior[0] if len(prior) == 1 else prior)
        if self.discount is not None:
            object.__setattr__(self, "discount", check_discount(self.discount))

    @property
    def choose(self) -> Callable[..., Any]:  # type: ignore[override]
        return choose_highest_index if self.discount is None else choose_highest_discounted_index

    def options(self, arms: int, dims: int, horizon: int) -> NDArray[np.float32]:
        """Return the number of tables, the number of each arm's table if there are several, then the tables."""
        priors = check_prior_pairs(self.prior, arms, first="a", second="b", first_positive=True)
        distinct = list(dict.fromkeys(priors))
        if len(distinct) == 1:
            return load_gittins_table(distinct[0], horizon, self.discount)
        table_numbers = [len(distinct), *(distinct.index(prior) for prior in priors)]
        return np.concatenate(
            [
                np.array(table_numbers, np.float32),
                *(load_gittins_table(prior, horizon, self.discount)[1:] for prior in distinct),
            ]
        )

    def choose_after_horizon(self, pulls: FloatArray, totals: FloatArray) -> int:
        """Choose the highest posterior mean: the index with one round left."""
        return argmax_posterior_mean(self.prior, pulls, totals)
