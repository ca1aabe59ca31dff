"""Problems whose arms pay numbers in [0, 1]."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from banditune.core.binomial_draws import bernoulli_bit, bernoulli_word
from banditune.core.checks import check_arms, check_names, check_number, check_prior_pairs, split_prior_columns
from banditune.core.distributions import beta
from banditune.core.option_types import ArmPrior, Names, Option, default_option
from banditune.core.problem import Instances, Problem
from banditune.core.scalar import scalar, with_pseudo_rewards
from banditune.core.streams import PSEUDO_STREAM


@scalar
def draw_beta_outcomes(instance, arm, number, stream):
    """Draw the pseudo-rewards of pulls 32 number .. 32 number + 31 of an arm, a bit each."""
    stream.cursor[3] += PSEUDO_STREAM
    word = bernoulli_word(stream, number, instance.means[arm])
    stream.cursor[3] -= PSEUDO_STREAM
    return word


@with_pseudo_rewards(draw_beta_outcomes)
@scalar
def draw_beta_reward(instance, arm, pull, step, stream):
    """Draw from Beta(a, b), a = v m and b = v (1 - m). An arm with mean 0 or 1 always pays its mean.

    The pseudo-reward is drawn first, 1 with probability m, then the reward, from Beta(a + 1, b) or Beta(a, b + 1).
    Their densities are y / m and (1 - y) / (1 - m) times that of Beta(a, b). So the reward has the distribution Beta(a, b).
    Given the reward y, the pseudo-reward is 1 with probability y. Code that needs only pseudo-rewards draws no rewards.
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
    """Arms that pay Beta(v m, v (1 - m)), with mean rewards m from Beta(a, b).

    Parameters
    ----------
    arms : int
        Number of arms, 2 or more.
    prior : (float, float) or sequence of (float, float)
        Beta(a, b) of the mean rewards: one pair for all arms, or one pair per arm. a and b are above 0.
    v : float
        Precision of the rewards, above 0. Their variance around a mean m is m (1 - m) / (v + 1).
    names : sequence of str
        Names of the arms, one per arm. None by default.

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.Thompson(), bt.BetaRewards(arms=3, v=8), [0.5], horizon=100, runs=100)
    >>> regrets.shape
    (1, 100)
    """

    arms: int = 10
    prior: Option[ArmPrior] = default_option((1, 1))
    v: float = 4.0
    names: Option[Names] = default_option(())

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
