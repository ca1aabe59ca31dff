"""Variants of a problem, for checks of robustness to wrong assumptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import singledispatch
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import convert_to_tuples, split_prior_columns
from banditune.core.problem import Problem
from banditune.core.scalar import is_package_code
from banditune.problems.bernoulli_arms import Bernoulli, Mixture
from banditune.problems.beta_arms import BetaRewards
from banditune.problems.campaigns import Campaigns
from banditune.problems.gaussian_arms import Gaussian
from banditune.problems.generalized_linear import Linear, Logistic

HALF, TWICE = 0.5, 2.0


MAX_SPREAD_SHARE = 0.95
"""The upper limit of the spread of means in [0, 1], as a share of the largest possible spread with the same mean."""


@singledispatch
def list_variants(problem: Problem) -> Iterator[tuple[str, Problem]]:
    """Yield variants with their names: means shifted by a standard deviation, half or twice the spread, other arms."""
    yield from ()


@list_variants.register(Bernoulli)
@list_variants.register(BetaRewards)
def _(problem: Bernoulli | BetaRewards) -> Iterator[tuple[str, Problem]]:
    def vary(shift: float = 0.0, spread: float = 1.0) -> Problem:
        a, b = split_prior_columns(problem.prior)
        mean = a / (a + b)
        sd = np.sqrt(mean * (1 - mean) / (a + b + 1))
        shifted = np.clip(mean + shift * sd, mean / 10, 1 - (1 - mean) / 10)
        target_sd = np.minimum(sd * spread, MAX_SPREAD_SHARE * np.sqrt(shifted * (1 - shifted)))
        weight = shifted * (1 - shifted) / target_sd**2 - 1
        return replace(problem, prior=convert_to_tuples(np.stack([shifted * weight, (1 - shifted) * weight], axis=1)))

    yield from _vary_location_and_spread(vary)
    yield from _vary_arms(problem, problem.prior)


@list_variants.register
def _(problem: Gaussian) -> Iterator[tuple[str, Problem]]:
    def vary(shift: float = 0.0, spread: float = 1.0) -> Problem:
        mean, sd = split_prior_columns(problem.prior)
        return replace(problem, prior=convert_to_tuples(np.stack([mean + shift * sd, sd * spread], axis=1)))

    yield from _vary_location_and_spread(vary)
    yield from _vary_arms(problem, problem.prior)
    yield from _vary_noise(problem)


@list_variants.register(Linear)
@list_variants.register(Logistic)
def _(problem: Linear | Logistic) -> Iterator[tuple[str, Problem]]:
    # Uniform on [-1, 1] has the variance 1/3.
    mean, covariance = (0.0, 1 / 3) if problem.prior is None else map(np.array, problem.prior)
    sd = np.sqrt(covariance if np.ndim(covariance) == 0 else np.diag(covariance))

    def vary(shift: float = 0.0, spread: float = 1.0) -> Problem:
        return replace(problem, prior=(convert_to_tuples(mean + shift * sd), convert_to_tuples(covariance * spread**2)))

    yield from _vary_location_and_spread(vary, what="weights of theta")
    if problem.features is None:
        yield from _vary_arms(problem, ((0.0, 1.0),))
    if isinstance(problem, Linear):
        yield from _vary_noise(problem)


@list_variants.register
def _(problem: Mixture) -> Iterator[tuple[str, Problem]]:
    def vary(shift: float = 0.0, spread: float = 1.0) -> Problem:
        means = move_means(np.array(problem.means), np.array(problem.weights), shift, spread)
        return replace(problem, means=convert_to_tuples(np.clip(means, 0, 1)))

    yield from _vary_location_and_spread(vary)


@list_variants.register
def _(problem: Campaigns) -> Iterator[tuple[str, Problem]]:
    """Move each campaign's arms around the common centre.

    For means in [0, 1] the a + b of the posteriors does not change. For real means, standard deviations change with the
    spread.
    """
    widths = np.cumsum([len(row) for row in problem.posteriors])[:-1]
    first, second = np.array([pair for row in problem.posteriors for pair in row]).T
    real = problem.rewards == "real"
    mean = first if real else first / (first + second)

    def vary(shift: float = 0.0, spread: float = 1.0) -> Problem:
        shifted = move_means(mean[None], np.ones(1), shift, spread)[0]
        if real:
            pairs = np.stack([shifted, second * spread], axis=1)
        else:
            shifted = np.clip(shifted, mean / 10, 1 - (1 - mean) / 10)
            pairs = np.stack([shifted, 1 - shifted], axis=1) * (first + second)[:, None]
        return replace(problem, posteriors=tuple(map(convert_to_tuples, np.split(pairs, widths))))

    yield from _vary_location_and_spread(vary)
    if problem.arms >= 4:
        yield f"half as many arms ({problem.arms // 2})", replace(problem, arms=problem.arms // 2, names=())
    if real:
        yield from _vary_noise(problem)


def move_means(means: FloatArray, weights: FloatArray, shift: float, spread: float) -> FloatArray:
    """Shift means by `shift` of their standard deviations, and multiply distances from their centre by `spread`."""
    centre = weights @ means.mean(axis=1)
    sd = np.sqrt(weights @ ((means - centre) ** 2).mean(axis=1))
    shifted: FloatArray = centre + shift * sd + spread * (means - centre)
    return shifted


def _vary_location_and_spread(vary: Callable[..., Problem], what: str = "means") -> Iterator[tuple[str, Problem]]:
    yield f"{what} lower by a standard deviation", vary(shift=-1.0)
    yield f"{what} higher by a standard deviation", vary(shift=1.0)
    yield f"{what} half as far apart", vary(spread=HALF)
    yield f"{what} twice as far apart", vary(spread=TWICE)


def _vary_arms(problem: Any, prior: tuple[tuple[float, ...], ...]) -> Iterator[tuple[str, Problem]]:
    """Yield half and twice as many arms. If each arm has its own prior, use half of the arms, or each of them twice."""
    has_common_prior = len(prior) == 1
    for label, arms in (("half as many arms", problem.arms // 2), ("twice as many arms", 2 * problem.arms)):
        if arms >= 2:
            options = {} if has_common_prior else {"prior": tuple(prior[arm % problem.arms] for arm in range(arms))}
            rows = getattr(problem, "residuals", ())
            if rows and isinstance(rows[0], tuple):
                options["residuals"] = tuple(rows[arm % problem.arms] for arm in range(arms))
            yield f"{label} ({arms})", replace(problem, arms=arms, names=(), **options)


def _vary_noise(problem: Any) -> Iterator[tuple[str, Problem]]:
    """Yield half and twice the noise. A user's own `reward` may not read it."""
    if not is_package_code(problem.reward):
        return
    yield "half the noise", replace(problem, noise=problem.noise * HALF)
    yield "twice the noise", replace(problem, noise=problem.noise * TWICE)
