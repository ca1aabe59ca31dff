"""Base classes of policies with arm totals, ridge regression or logistic regression, and common parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_gaussian_prior, check_number, factor_gaussian_prior, is_from_problem
from banditune.core.errors import InvalidRequest
from banditune.core.option_types import Option, WeightPolicyPrior
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
"""The largest factor of a policy's width or deviation. With a larger one, mean rewards are below rounding errors."""


def make_width_parameter() -> Parameter:
    """Make gamma, the factor of a policy's width. Its usual range is 0 (no exploration) to 1 (the textbook value)."""
    return Parameter(
        "gamma",
        0,
        1,
        textbook=1,
        lower_limit=0,
        upper_limit=LARGEST_WIDTH,
        meaning="the amount of exploration: 0 is none, 1 is that of the textbook",
    )


def is_valid_width(options: Any, row: FloatArray) -> bool:
    """Return whether the proof of the shortcuts for linear and logistic policies holds for a row: gamma >= 0."""
    return bool(0 <= row[0] <= LARGEST_WIDTH)


def is_wide(row: FloatArray) -> bool:
    """Return whether a width is larger than those for which single and double precision were compared."""
    return bool(row[0] > 1)


def make_probability_parameter(textbook: Callable[[int, int], float]) -> Parameter:
    """Make epsilon, a probability."""
    meaning = "the share of decisions that are made at random"
    return Parameter("epsilon", 0, 1, textbook=textbook, lower_limit=0, upper_limit=1, meaning=meaning)


class TotalsPolicy(Policy):
    """Base of policies on arm totals. A subclass adds `choose`."""

    view = staticmethod(view_totals)
    start = staticmethod(start_totals)
    update = staticmethod(update_totals)
    recall = staticmethod(recall_totals)
    resume = staticmethod(resume_totals)

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return 2 * arms


class FeaturePolicy(Policy):
    """Base of policies that use features of arms and a Gaussian prior (mean, covariance) of theta."""

    needs_features: ClassVar[bool] = True
    prior_kind: ClassVar[str] = "theta"
    link: ClassVar[str] = ""
    """The function from x'theta to a mean: "linear" or "logistic"."""
    prior: Option[WeightPolicyPrior] = FROM_PROBLEM

    def __post_init__(self) -> None:
        if not is_from_problem(self.prior):
            object.__setattr__(self, "prior", check_gaussian_prior("prior", self.prior))

    def compute_penalty(self) -> float:
        """Return the initial diagonal of G, in the coordinates in which the prior is N(0, I)."""
        return 1.0

    def list_policy_options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        """Return numbers that the policy reads with `read_policy_option`."""
        return ()

    def options(self, arms: int, dims: int, horizon: int) -> Sequence[float]:
        mean, root = factor_gaussian_prior("prior", self.prior, dims, of=f" of {self.name}")
        return (self.compute_penalty(), *mean, *root.ravel(), *self.list_policy_options(arms, dims, horizon))

    def learn_from_retired_arms(self, features: FloatArray, pulls: FloatArray, totals: FloatArray) -> Policy:
        """Return the policy whose prior is the posterior, given the rewards of these arms."""
        mean, root = factor_gaussian_prior("prior", self.prior, features.shape[1])
        whitened = features @ root
        theta, covariance = self.compute_posterior(whitened, features @ mean, pulls, totals)
        covariance = root @ covariance @ root.T
        return replace(self, prior=(mean + root @ theta, (covariance + covariance.T) / 2))  # type: ignore[type-var]

    def compute_posterior(
        self, whitened: FloatArray, prior_scores: FloatArray, pulls: FloatArray, totals: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute mean and covariance of theta in the coordinates in which the prior is N(0, I)."""
        raise InvalidRequest(f"the policy {type(self).__name__} must define `compute_posterior`.", code="own-code")

    def measure_longest_feature(self, features: FloatArray) -> float:
        """Return the largest norm of features, in the coordinates in which the prior is N(0, I)."""
        _, root = factor_gaussian_prior("prior", self.prior, features.shape[1])
        return math.sqrt(np.square(np.einsum("nda,de->nea", features, root)).sum(axis=1).max())


class LogisticPolicy(FeaturePolicy):
    """Base of policies on logistic regression. A subclass adds `choose`, which returns NO_MODE if the mode is not found."""

    rewards: ClassVar[str] = "unit"
    link: ClassVar[str] = "logistic"
    textbook_options: ClassVar[Mapping[str, Any]] = {"prior": (0, 1), "noise": 0.5}
    failure_messages: ClassVar[dict[int, str]] = {
        NO_MODE: f"the mode of the logistic posterior must be found within {MAX_NEWTON_STEPS} Newton steps, "
        "but it was not; rescale the features"
    }
    view = staticmethod(view_logistic)
    start = staticmethod(start_logistic)
    update = staticmethod(update_logistic)
    recall = staticmethod(recall_logistic)
    resume = staticmethod(resume_logistic)

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return int(count_logistic_floats(arms, dims))

    def compute_posterior(
        self, whitened: FloatArray, prior_scores: FloatArray, pulls: FloatArray, totals: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Compute Laplace's approximation: the mode, by Newton's method with halved steps, and the inverse Hessian."""
        theta, eye = np.zeros(whitened.shape[1]), np.eye(whitened.shape[1])

        def value(point: FloatArray) -> float:
            scores = prior_scores + whitened @ point
            return float(totals @ scores - pulls @ np.logaddexp(0, scores) - point @ point / 2)

        for _ in range(MAX_NEWTON_STEPS):
            chances = 1 / (1 + np.exp(-np.clip(prior_scores + whitened @ theta, -40, 40)))
            hessian = eye + (whitened.T * (pulls * chances * (1 - chances))) @ whitened
            step = np.linalg.solve(hessian, whitened.T @ (totals - pulls * chances) - theta)
            while value(theta + step) < value(theta) and np.abs(step).max() > 1e-12:
                step = step / 2
            theta = theta + step
            if np.abs(step).max() < 1e-10:
                break
        return theta, np.linalg.inv(hessian).astype(np.float64)

    def check(self, features: FloatArray, horizon: int) -> None:
        longest = self.measure_longest_feature(features)
        if longest > 1000:
            raise InvalidRequest(
                f"|x| sd must be below 1000 for {self.name}, with features x and the prior's standard deviation sd, or "
                f"all probabilities are 0 or 1, but it is {longest:.3g}; rescale the features or the prior.",
                argument="prior",
                code="out-of-range",
            )


class RidgePolicy(FeaturePolicy):
    """Base of policies on ridge regression for rewards with Gaussian noise. A subclass adds `choose`."""

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
        noise = check_number("noise", self.noise, above=0)
        check_number("noise", noise, above=1e-50, below=1e50, note=f" for {self.name}")
        object.__setattr__(self, "noise", noise)

    def compute_penalty(self) -> float:
        return float(self.noise) ** 2

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return int(count_ridge_floats(arms, dims))

    def compute_posterior(
        self, whitened: FloatArray, prior_scores: FloatArray, pulls: FloatArray, totals: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        precision = self.compute_penalty() * np.eye(whitened.shape[1]) + (whitened.T * pulls) @ whitened
        inverse = np.linalg.inv(precision).astype(np.float64)
        return inverse @ whitened.T @ (totals - pulls * prior_scores), self.compute_penalty() * inverse

    def check(self, features: FloatArray, horizon: int) -> None:
        growth = horizon * (self.measure_longest_feature(features) / self.noise) ** 2
        if growth > 1e12:
            raise InvalidRequest(
                f"horizon (|x| sd / noise)^2 must be below 1e12 for {self.name}, with features x and the prior's standard "
                f"deviation sd, because of rounding errors, but it is {growth:.2g}; rescale the features or the prior.",
                argument="noise",
                code="out-of-range",
            )
