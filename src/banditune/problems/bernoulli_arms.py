"""Problems whose arms pay 0 or 1: a prior on the means, or a finite mixture of mean vectors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.binomial_draws import bernoulli_bit, bernoulli_word
from banditune.core.checks import check_arms, check_names, check_prior_pairs, convert_to_array, split_prior_columns
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.option_types import ArmPrior, Names, Option, WeightTable, default_option
from banditune.core.problem import Instances, Problem
from banditune.core.request_errors import make_argument_error
from banditune.core.scalar import bit_packed, scalar


@scalar
def draw_bernoulli_word(instance, arm, number, stream):
    """Draw pulls 32 number .. 32 number + 31 of an arm, a bit each."""
    return bernoulli_word(stream, number, instance.means[arm])


@bit_packed(draw_bernoulli_word)
@scalar
def draw_bernoulli_reward(instance, arm, pull, step, stream):
    """Draw one bit of the arm's word, so that the plain loop and the shortcuts have the same rewards."""
    return bernoulli_bit(stream, pull, instance.means[arm])


class BinaryProblem(Problem):
    """Base of problems whose rewards are 0 or 1."""

    rewards = "binary"
    reward = staticmethod(draw_bernoulli_reward)


@dataclass(frozen=True)
class Bernoulli(BinaryProblem):
    """Arms that pay 0 or 1, with mean rewards from Beta(a, b).

    Parameters
    ----------
    arms : int
        Number of arms, 2 or more.
    prior : (float, float) or sequence of (float, float)
        Beta(a, b) of the mean rewards: one pair for all arms, or one pair per arm. a and b are above 0.
    names : sequence of str
        Names of the arms, one per arm. None by default.

    Examples
    --------
    >>> import banditune as bt
    >>> import numpy as np
    >>> bt.Bernoulli(arms=3, prior=(1, 4)).sample(2, np.random.default_rng(0)).means.shape
    (2, 3)
    """

    arms: int = 10
    prior: Option[ArmPrior] = default_option((1, 1))
    names: Option[Names] = default_option(())

    name = "bernoulli"
    prior_kind = "beta"

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", check_arms(self.arms))
        prior = check_prior_pairs(self.prior, self.arms, first="a", second="b", first_positive=True)
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "names", check_names(self.names, self.arms))

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        a, b = split_prior_columns(self.prior)
        return Instances(rng.beta(a, b, (size, self.arms)))


@dataclass(frozen=True)
class Mixture(BinaryProblem):
    """Arms that pay 0 or 1, with a vector of mean rewards that is one of a few.

    Parameters
    ----------
    means : sequence of sequence of float
        The vectors of mean rewards, a row each: numbers in [0, 1], two arms or more.
    weights : sequence of float, optional
        Weights of the rows, 0 or more. They are scaled to probabilities. By default all rows are equally likely.
    names : sequence of str
        Names of the arms, one per arm. None by default.

    Examples
    --------
    >>> import banditune as bt
    >>> problem = bt.Mixture([(0.6, 0.4), (0.4, 0.6)], weights=[3, 1])
    >>> problem.arms, problem.weights
    (2, (0.75, 0.25))
    """

    means: Any
    weights: Option[WeightTable | None] = default_option(None)
    names: Option[Names] = default_option(())

    name = "mixture"

    def __post_init__(self) -> None:
        table = self._check_means()
        weights = self._check_weights(len(table))
        object.__setattr__(self, "means", tuple(tuple(float(m) for m in row) for row in table))
        object.__setattr__(self, "weights", tuple(float(w) for w in weights))
        object.__setattr__(self, "names", check_names(self.names, table.shape[1]))

    @property
    def arms(self) -> int:  # type: ignore[override]
        return len(self.means[0])

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        rows = rng.choice(len(self.means), size, p=np.array(self.weights))
        return Instances(np.array(self.means)[rows])

    def _check_means(self) -> Any:
        table = convert_to_array(self.means)
        if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] < 2:
            raise make_argument_error(
                "means", "wrong-shape", f"must be rows of equal length, two arms or more, but got {self.means!r}."
            )
        if not ((table >= 0) & (table <= 1)).all():
            raise InvalidRequest(
                f"mean rewards must be probabilities in [0, 1], but got {self.means!r}.",
                argument="means",
                code="out-of-range",
            )
        return table

    def _check_weights(self, rows: int) -> Any:
        if self.weights is None:
            return np.full(rows, 1 / rows)
        weights = convert_to_array(self.weights)
        if weights.shape != (rows,) or not np.isfinite(weights).all() or (weights < 0).any() or weights.sum() <= 0:
            raise make_argument_error(
                "weights",
                "wrong-shape",
                "must be {} numbers >= 0, one per row of {} and not all 0, but got {!r}.",
                rows,
                Argument("means"),
                self.weights,
            )
        return weights / weights.sum()


def two_point_mixture() -> Mixture:
    """Return the paper's warm-up: two arms with means (.6, .4) or (.4, .6), each with probability 1/2."""
    return Mixture(((0.6, 0.4), (0.4, 0.6)))
