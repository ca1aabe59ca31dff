"""Problems that resample past campaigns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from banditune.core.arrays import IntArray
from banditune.core.checks import check_arms, check_names, check_number, check_reward_kind, convert_to_array
from banditune.core.errors import InvalidRequest
from banditune.core.option_types import Names, Option, default_option
from banditune.core.problem import Instances
from banditune.core.request_errors import make_argument_error, make_limit_error
from banditune.problems.bernoulli_arms import draw_bernoulli_reward
from banditune.problems.beta_arms import draw_beta_reward
from banditune.problems.data_set import DataSet, check_population
from banditune.problems.residual_noise import check_residuals, make_residuals_field, make_reward_options, select_reward


@dataclass(frozen=True)
class Campaigns(DataSet):
    """Past campaigns: an instance is one of them, with mean rewards drawn from the posteriors of its arms.

    If a campaign has more than `arms` arms, `arms` of them are chosen at random, in their order. Campaigns are a sample
    from a population, and errors are over campaigns. Of four or more, a search uses a third, and its answer is validated on
    the others.

    Parameters
    ----------
    posteriors : sequence of sequence of (float, float)
        A row per campaign with a pair per arm. If `rewards` are "binary" or "unit", a pair is (a, b) of a Beta
        distribution. If they are "real", it is the (mean, standard deviation) of a normal one.
    rewards : {"binary", "unit", "real"}
        The kind of rewards: 0 or 1, numbers in [0, 1] as in `BetaRewards`, or real numbers.
    arms : int, optional
        Number of arms of an instance, at most that of the smallest campaign, which is the default.
    noise : float
        Standard deviation of "real" rewards around their means, above 0.
    names : sequence of str
        Names of the arms, one per arm. None by default.
    v : float
        Precision of "unit" rewards, as in `BetaRewards`.
    residuals : sequence of float, optional
        A sample of the noise of "real" rewards, 100,000 numbers at most. It is shifted to mean 0 and scaled to variance 1.
        By default noise is Gaussian.
    population : bool
        Whether these campaigns are the whole population. If so, nothing is held out, and errors are over runs.

    Examples
    --------
    >>> import banditune as bt
    >>> problem = bt.Campaigns([[(3, 40), (5, 38)], [(2, 60), (7, 52), (4, 49)]])
    >>> problem.arms, problem.unit_count
    (2, 2)
    """

    posteriors: Any = field(repr=False)
    rewards: str = "binary"
    arms: Any = None
    # The description of binary campaigns includes their unused noise, because keys of stored regrets contain it.
    noise: float = field(default=1.0, metadata={"described": lambda problem: problem.rewards != "unit"})
    names: Option[Names] = default_option(())
    v: float = field(default=4.0, metadata={"described": lambda problem: problem.rewards == "unit"})
    residuals: Any = make_residuals_field()
    population: Any = field(default=False, metadata={"described": lambda problem: problem.population})

    name = "campaigns"
    unit_name = "campaign"

    def __post_init__(self) -> None:
        check_reward_kind(self.rewards)
        if not isinstance(self.posteriors, list | tuple | np.ndarray) or not len(self.posteriors):
            raise make_argument_error(
                "posteriors", "missing", "must have a row of pairs for every campaign, but it has none."
            )
        rows = tuple(self._check_campaign(position, row) for position, row in enumerate(self.posteriors))
        smallest = min(map(len, rows))
        arms = check_arms(smallest if self.arms is None else self.arms)
        if arms > smallest:
            note = ", the arms of the smallest campaign"
            raise make_limit_error("arms", arms, most=smallest, note=note, advice="; drop small ones")
        object.__setattr__(self, "posteriors", rows)
        object.__setattr__(self, "arms", arms)
        object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        object.__setattr__(self, "v", check_number("v", self.v, above=0))
        object.__setattr__(self, "names", check_names(self.names, arms))
        object.__setattr__(self, "residuals", check_residuals(self.residuals, None))
        if self.residuals and self.rewards != "real":
            text = f'must be left out unless `rewards` are "real", but these are {self.rewards!r}.'
            raise make_argument_error("residuals", "conflict", text)

        object.__setattr__(self, "population", check_population(self.population))

    @property
    def unit_count(self) -> int:
        return len(self.posteriors)

    def select_units(self, positions: Sequence[int]) -> Campaigns:
        return replace(self, posteriors=tuple(self.posteriors[position] for position in positions))

    def draw_units(self, keys: IntArray, rng: np.random.Generator) -> IntArray:
        return np.asarray(rng.integers(self.unit_count, size=len(keys)))  # the first draw of `sample`

    @property
    def reward(self) -> Callable[..., Any]:  # type: ignore[override]
        """The scalar function that draws a reward."""
        if self.rewards == "real":
            return select_reward(self.residuals)
        return draw_bernoulli_reward if self.rewards == "binary" else draw_beta_reward

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        widths = np.array([len(row) for row in self.posteriors])
        starts = np.cumsum(widths) - widths
        campaign = rng.integers(len(widths), size=size)
        positions = np.arange(self.arms)[None]
        if not (widths == self.arms).all():
            # Positions without an arm are last in the random order. The selected arms are sorted afterwards.
            most = int(widths.max())
            order = rng.random((size, most)) + (np.arange(most) >= widths[campaign, None])
            positions = np.sort(np.argsort(order, axis=1)[:, : self.arms], axis=1)
        pairs = np.array([pair for row in self.posteriors for pair in row])[starts[campaign, None] + positions]
        draw = rng.normal if self.rewards == "real" else rng.beta
        return Instances(draw(pairs[..., 0], pairs[..., 1]))

    def options(self) -> Sequence[float]:
        if self.rewards == "real":
            return make_reward_options(self.noise, self.residuals)
        return () if self.rewards == "binary" else (self.v,)

    def _check_campaign(self, position: int, row: Any) -> tuple[tuple[float, float], ...]:
        table = convert_to_array(row)
        if table.ndim != 2 or table.shape[1] != 2 or not np.isfinite(table).all():
            raise make_argument_error(
                "posteriors", "bad-data", f"must be pairs of finite numbers, but campaign {position} has {row!r:.60}."
            )
        positive = table[:, 1:] if self.rewards == "real" else table
        if (positive <= 0).any():
            what = "sd > 0" if self.rewards == "real" else "a > 0 and b > 0"
            raise InvalidRequest(
                f"`{what}` must hold for every arm, but campaign {position} has {positive.min():g}.",
                argument="posteriors",
                code="out-of-range",
            )
        return tuple((float(first), float(second)) for first, second in table)
