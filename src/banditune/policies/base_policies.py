"""Base classes of policies by what they keep (arm totals, ridge or logistic regression), and parameters they share."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_gaussian_prior, check_number, factor_gaussian_prior, is_from_problem
from banditune.core.errors import InvalidRequest
from banditune.core.policy import FROM_PROBLEM, Policy
from banditune.core.space import Parameter
from banditune.simulation.estimators.arm_totals import (
    recall_totals,
    resume_totals,
    start_totals,
    update_totals,
    view_totals,
)
from banditune.simulation.estimators.logistic_mode import MAX_NEWTON_STEPS, NO_MODE, resume_logistic, update_logistic
from banditune.simulation.estimators.logistic_state import (
    count_logistic_floats,
    recall_logistic,
    start_logistic,
    view_logistic,
)
from banditune.simulation.estimators.ridge_regression import (
    count_ridge_floats,
    resume_ridge,
    start_ridge,
    update_ridge,
    view_ridge,
)

LARGEST_WIDTH = 1e6
"""The largest factor of a policy's width or deviation. With a wider one, rounding hides the mean rewards."""


def make_width_parameter() -> Parameter:
    """gamma, the factor of a policy's width: usually from 0, no exploration, to 1, the textbook's."""
    return Parameter("gamma", 0, 1, theory=1, least=0, most=LARGEST_WIDTH)


def is_valid_width(options: Any, row: FloatArray) -> bool:
    """Whether the proofs of the shortcuts for linear and logistic policies hold for a row: they need gamma >= 0."""
    return bool(0 <= row[0] <= LARGEST_WIDTH)


def is_wide(row: FloatArray) -> bool:
    """Whether a width is beyond those at which single precision was compared with double precision."""
    return bool(row[0] > 1)


def make_probability_parameter(theory: Callable[[int, int], float]) -> Parameter:
    """epsilon, a probability."""
    return Parameter("epsilon", 0, 1, theory=theory, least=0, most=1)


class TotalsPolicy(Policy):
    """A policy on arm totals: only `choose` is its own."""

    view = staticmethod(view_totals)
    start = staticmethod(start_totals)
    update = staticmethod(update_totals)
    recall = staticmethod(recall_totals)
    resume = staticmethod(resume_totals)

    def memory(self, arms: int, dims: int) -> int:
        return 2 * arms


class FeaturePolicy(Policy):
    """A policy that knows arms by their features, and theta by a Gaussian prior (mean, covariance)."""

    needs_features: ClassVar[bool] = True
    prior_kind: ClassVar[str] = "theta"
    link: ClassVar[str] = ""
    """How x'theta makes a mean, "linear" or "logistic"."""
    prior: Any = FROM_PROBLEM

    def __post_init__(self) -> None:
        if not is_from_problem(self.prior):
            object.__setattr__(self, "prior", check_gaussian_prior("prior", self.prior))

    def penalty(self) -> float:
        """What G starts from, in the coordinates in which the prior is N(0, I)."""
        return 1.0

    def own_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        """Numbers that the policy finds by `read_policy_option`."""
        return ()

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        mean, root = factor_gaussian_prior("prior", self.prior, dims, of=f" of {self.name}")
        return (self.penalty(), *mean, *root.ravel(), *self.own_options(arms, dims, horizon))

    def after(self, features: FloatArray, pulls: FloatArray, totals: FloatArray) -> Policy:
        """The posterior, given what these arms paid, is the prior of what follows."""
        mean, root = factor_gaussian_prior("prior", self.prior, features.shape[1])
        turned = features @ root
        theta, covariance = self.posterior(turned, features @ mean, pulls, totals)
        covariance = root @ covariance @ root.T
        return replace(self, prior=(mean + root @ theta, (covariance + covariance.T) / 2))  # type: ignore[type-var]

    def posterior(
        self, turned: FloatArray, prior_scores: FloatArray, pulls: FloatArray, totals: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and covariance of theta in the coordinates in which the prior is N(0, I)."""
        raise InvalidRequest(f"the policy {type(self).__name__} must define `posterior`.")

    def longest(self, features: FloatArray) -> float:
        """The largest norm of an arm's features, in the coordinates in which the prior is N(0, I)."""
        _, root = factor_gaussian_prior("prior", self.prior, features.shape[1])
        return math.sqrt(np.square(np.einsum("nda,de->nea", features, root)).sum(axis=1).max())


class LogisticPolicy(FeaturePolicy):
    """A policy on logistic regression: only `choose` is its own, and it returns NO_MODE where the mode was lost."""

    rewards: ClassVar[str] = "unit"
    link: ClassVar[str] = "logistic"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (0, 1), "noise": 0.5}
    faults: ClassVar[dict[int, str]] = {
        NO_MODE: f"the mode of the logistic posterior must be found within {MAX_NEWTON_STEPS} Newton steps, but it was not; rescale "
        "the features"
    }
    view = staticmethod(view_logistic)
    start = staticmethod(start_logistic)
    update = staticmethod(update_logistic)
    recall = staticmethod(recall_logistic)
    resume = staticmethod(resume_logistic)

    def memory(self, arms: int, dims: int) -> int:
        return int(count_logistic_floats(arms, dims))

    def posterior(
        self, turned: FloatArray, prior_scores: FloatArray, pulls: FloatArray, totals: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Laplace's approximation: the mode, by Newton's method with halved steps, and the inverse of the Hessian there."""
        theta, eye = np.zeros(turned.shape[1]), np.eye(turned.shape[1])

        def value(at: FloatArray) -> float:
            scores = prior_scores + turned @ at
            return float(totals @ scores - pulls @ np.logaddexp(0, scores) - at @ at / 2)

        for _ in range(MAX_NEWTON_STEPS):
            chances = 1 / (1 + np.exp(-np.clip(prior_scores + turned @ theta, -40, 40)))
            hessian = eye + (turned.T * (pulls * chances * (1 - chances))) @ turned
            step = np.linalg.solve(hessian, turned.T @ (totals - pulls * chances) - theta)
            while value(theta + step) < value(theta) and np.abs(step).max() > 1e-12:
                step = step / 2
            theta = theta + step
            if np.abs(step).max() < 1e-10:
                break
        return theta, np.linalg.inv(hessian).astype(np.float64)

    def check(self, features: FloatArray, horizon: int) -> None:
        longest = self.longest(features)
        if longest > 1000:
            raise InvalidRequest(
                f"|x| sd must be below 1000 for {self.name}, with features x and the prior's standard deviation sd, or "
                f"all chances are 0 or 1, but it is {longest:.3g}; rescale the features or the prior."
            )


class RidgePolicy(FeaturePolicy):
    """A policy on ridge regression for rewards with Gaussian noise: only `choose` is its own."""

    noise: Any
    link: ClassVar[str] = "linear"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (0, 1), "noise": 0.5}
    view = staticmethod(view_ridge)
    start = staticmethod(start_ridge)
    update = staticmethod(update_ridge)
    recall = staticmethod(recall_totals)
    resume = staticmethod(resume_ridge)

    def __post_init__(self) -> None:
        super().__post_init__()
        if is_from_problem(self.noise):
            return
        object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        if not 1e-50 < self.noise < 1e50:
            raise InvalidRequest(f"`1e-50 < noise < 1e50` must hold for {self.name}, but got noise={self.noise!r}.")

    def penalty(self) -> float:
        return float(self.noise) ** 2

    def memory(self, arms: int, dims: int) -> int:
        return int(count_ridge_floats(arms, dims))

    def posterior(
        self, turned: FloatArray, prior_scores: FloatArray, pulls: FloatArray, totals: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        precision = self.penalty() * np.eye(turned.shape[1]) + (turned.T * pulls) @ turned
        inverse = np.linalg.inv(precision).astype(np.float64)
        return inverse @ turned.T @ (totals - pulls * prior_scores), self.penalty() * inverse

    def check(self, features: FloatArray, horizon: int) -> None:
        growth = horizon * (self.longest(features) / self.noise) ** 2
        if growth > 1e12:
            raise InvalidRequest(
                f"horizon (|x| sd / noise)^2 must be below 1e12 for {self.name}, with features x and the prior's standard "
                f"deviation sd, or rounding decides, but it is {growth:.2g}; rescale the features or the prior."
            )
