"""Arms that pay a number in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from banditune.core.binomial_draws import bernoulli_bit, bernoulli_word
from banditune.core.checks import check_arms, check_names, check_number, check_prior_pairs, split_prior_columns
from banditune.core.distributions import beta
from banditune.core.problem import Instances, Problem
from banditune.core.scalar import scalar, with_pseudo_rewards
from banditune.core.streams import PSEUDO_STREAM


@scalar
def draw_beta_outcomes(instance, arm, number, stream):
    """The pseudo-rewards of pulls 32 number .. 32 number + 31 of an arm, a bit each."""
    stream.cursor[3] += PSEUDO_STREAM
    word = bernoulli_word(stream, number, instance.means[arm])
    stream.cursor[3] -= PSEUDO_STREAM
    return word


@with_pseudo_rewards(draw_beta_outcomes)
@scalar
def draw_beta_reward(instance, arm, pull, step, stream):
    """A draw from Beta(a, b), a = v m and b = v (1 - m); a mean of 0 or 1 always pays itself.

    The pseudo-reward comes first, 1 with probability m, then the reward, from Beta(a + 1, b) or Beta(a, b + 1): their
    densities are y / m and (1 - y) / (1 - m) times that of Beta(a, b), so together they are Beta(a, b), and given the
    reward y the pseudo-reward is 1 with probability y. So who only needs pseudo-rewards draws no rewards.
    """
    mean = instance.means[arm]
    v = instance.options[0]
    if mean <= 0.0 or mean >= 1.0:
        return mean
    stream.cursor[3] += PSEUDO_STREAM
    success = bernoulli_bit(stream, pull, mean)
    stream.cursor[3] -= PSEUDO_STREAM
    return beta(stream, v * mean + success, v * (1.0 - mean) + (1.0 - success))


@dataclass(frozen=True)
class BetaRewards(Problem):
    """Arms pay Beta(v m, v (1 - m)); the means m are drawn from Beta(a, b), one prior for all arms or one per arm."""

    arms: int = 10
    prior: Any = (1, 1)
    v: float = 4.0
    names: Any = ()

    name = "beta"
    prior_kind = "beta"
    rewards = "unit"
    reward = staticmethod(draw_beta_reward)

    def __post_init__(self) -> None:
        object.__setattr__(self, "arms", check_arms(self.arms))
        prior = check_prior_pairs(self.prior, self.arms, first="a", second="b", first_positive=True)
        object.__setattr__(self, "prior", prior)
        object.__setattr__(self, "v", check_number("v", self.v, above=0))
        object.__setattr__(self, "names", check_names(self.names, self.arms))

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        a, b = split_prior_columns(self.prior)
        return Instances(rng.beta(a, b, (size, self.arms)))

    def options(self) -> Sequence[float]:
        return (self.v,)
