"""Past campaigns, drawn again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from banditune.core.arrays import IntArray
from banditune.core.checks import check_arms, check_names, check_number, convert_to_array
from banditune.core.errors import InvalidRequest
from banditune.core.problem import Instances
from banditune.problems.bernoulli_arms import draw_bernoulli_reward
from banditune.problems.beta_arms import draw_beta_reward
from banditune.problems.data_set import DataSet, check_population
from banditune.problems.residual_noise import check_residuals, make_residuals_field, make_reward_options, select_reward

REWARD_KINDS = ("binary", "unit", "real")


@dataclass(frozen=True)
class Campaigns(DataSet):
    """An instance is a past campaign: its arms' mean rewards are drawn from what its data say about them.

    `posteriors` has for each campaign a pair for each arm: (a, b) of a beta distribution where `rewards` are "binary" or
    "unit", in [0, 1] as `BetaRewards` pays them with this `v`; (mean, sd) of a normal one where they are "real", with this
    `noise`, Gaussian or in the shape of `make_residuals_field`. Of a campaign with more than `arms` arms so many are chosen at random,
    in their order; `arms` is the smallest number there is unless given.

    Campaigns are a sample of what may come: searches play a third of them, the others judge, and errors are taken over
    campaigns. With `population` they are all there is, and errors are taken over runs.
    """

    posteriors: Any = field(repr=False)
    rewards: str = "binary"
    arms: Any = None
    # Binary campaigns tell their noise, which nobody uses: regrets that ledgers hold of them stand under it.
    noise: float = field(default=1.0, metadata={"told": lambda problem: problem.rewards != "unit"})
    names: Any = ()
    v: float = field(default=4.0, metadata={"told": lambda problem: problem.rewards == "unit"})
    residuals: Any = make_residuals_field()
    population: Any = field(default=False, metadata={"told": lambda problem: problem.population})

    name = "campaigns"
    unit = "campaign"

    def __post_init__(self) -> None:
        if self.rewards not in REWARD_KINDS:
            raise InvalidRequest(
                f'`rewards` must be "binary" (0 or 1), "unit" (in [0, 1]) or "real", but got {self.rewards!r}.'
            )
        if not isinstance(self.posteriors, list | tuple | np.ndarray) or not len(self.posteriors):
            raise InvalidRequest("`posteriors` must hold a row of pairs for every campaign, but it holds none.")
        rows = tuple(self._row(place, row) for place, row in enumerate(self.posteriors))
        least = min(map(len, rows))
        arms = check_arms(least if self.arms is None else self.arms)
        if arms > least:
            raise InvalidRequest(
                f"`arms <= {least}` must hold, the arms of the smallest campaign, but got arms={arms}; drop small ones."
            )
        object.__setattr__(self, "posteriors", rows)
        object.__setattr__(self, "arms", arms)
        object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        object.__setattr__(self, "v", check_number("v", self.v, above=0))
        object.__setattr__(self, "names", check_names(self.names, arms))
        object.__setattr__(self, "residuals", check_residuals(self.residuals, None))
        if self.residuals and self.rewards != "real":
            raise InvalidRequest(
                f'`residuals` must be left out unless `rewards` are "real", but these are {self.rewards!r}.'
            )

        object.__setattr__(self, "population", check_population(self.population))

    @property
    def count(self) -> int:
        return len(self.posteriors)

    def part(self, places: Sequence[int]) -> Campaigns:
        return replace(self, posteriors=tuple(self.posteriors[place] for place in places))

    def units(self, keys: IntArray, rng: np.random.Generator) -> IntArray:
        return np.asarray(rng.integers(self.count, size=len(keys)))  # what `sample` draws first

    @property
    def reward(self) -> Callable[..., Any]:  # type: ignore[override]
        """The scalar function that draws a reward."""
        if self.rewards == "real":
            return select_reward(self.residuals)
        return draw_bernoulli_reward if self.rewards == "binary" else draw_beta_reward

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        widths = np.array([len(row) for row in self.posteriors])
        starts = np.cumsum(widths) - widths
        chosen = rng.integers(len(widths), size=size)
        places = np.arange(self.arms)[None]
        if not (widths == self.arms).all():
            # Places without an arm come last in a random order; then the arms' own order.
            most = int(widths.max())
            order = rng.random((size, most)) + (np.arange(most) >= widths[chosen, None])
            places = np.sort(np.argsort(order, axis=1)[:, : self.arms], axis=1)
        pairs = np.array([pair for row in self.posteriors for pair in row])[starts[chosen, None] + places]
        draw = rng.normal if self.rewards == "real" else rng.beta
        return Instances(draw(pairs[..., 0], pairs[..., 1]))

    def options(self) -> Sequence[float]:
        if self.rewards == "real":
            return make_reward_options(self.noise, self.residuals)
        return () if self.rewards == "binary" else (self.v,)

    def _row(self, place: int, row: Any) -> tuple[tuple[float, float], ...]:
        table = convert_to_array(row)
        if table.ndim != 2 or table.shape[1] != 2 or not np.isfinite(table).all():
            raise InvalidRequest(
                f"`posteriors` must hold pairs of finite numbers, but campaign {place} has {row!r:.60}."
            )
        positive = table[:, 1:] if self.rewards == "real" else table
        if (positive <= 0).any():
            what = "sd > 0" if self.rewards == "real" else "a > 0 and b > 0"
            raise InvalidRequest(f"`{what}` must hold for every arm, but campaign {place} has {positive.min():g}.")
        return tuple((float(first), float(second)) for first, second in table)
