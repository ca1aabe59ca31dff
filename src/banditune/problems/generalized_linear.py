"""Problems whose arms have features. Mean rewards are linear in the features, or a logistic function of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import (
    check_arms,
    check_dims,
    check_flag,
    check_gaussian_prior,
    check_names,
    check_number,
    convert_to_array,
    convert_to_tuples,
    factor_gaussian_prior,
)
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Setting
from banditune.core.option_types import Names, Option, WeightPrior, default_option
from banditune.core.problem import Instances, Problem
from banditune.core.request_errors import make_argument_error
from banditune.problems.bernoulli_arms import draw_bernoulli_reward
from banditune.problems.residual_noise import check_residuals, make_residuals_field, make_reward_options, select_reward


def check_features(features: Any) -> FloatArray:
    """Check a matrix of features, a row per arm."""
    if isinstance(features, np.ndarray) and np.iscomplexobj(features):
        raise make_argument_error(
            "features", "wrong-type", "must be real numbers, but got complex ones; take their real parts."
        )
    table = convert_to_array(features)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 1:
        received = (
            f"shape {table.shape}" if table.size else f"{type(features).__name__} that is not a matrix of numbers"
        )
        file = "; read the file first (on the command line: --features FILE)" if isinstance(features, str) else ""
        raise make_argument_error(
            "features",
            "wrong-shape",
            f"must be a matrix with a row per arm, two arms or more, but got {received}{file}.",
        )
    invalid = np.argwhere(~np.isfinite(table))
    if len(invalid):
        arm, dim = map(int, invalid[0])
        raise make_argument_error(
            "features",
            "bad-data",
            f"must be finite numbers, but feature {dim} of arm {arm} is {table[arm, dim]}; replace it.",
        )
    if np.abs(table).max() > 1e50:
        raise make_argument_error(
            "features",
            "out-of-range",
            f"must be below 1e50, but the largest is {np.abs(table).max():.3g}; rescale them.",
        )
    zero = np.flatnonzero(~table.any(axis=1))
    if len(zero):
        raise InvalidRequest(
            f"every arm must have a feature that is not 0, but those of arm {zero[0]} are all 0; leave it out or add a "
            "constant.",
            argument="features",
            code="bad-data",
        )
    return table


def prepend_ones(features: Any) -> Any:
    """Prepend a column of ones, unless there is one. If `features` is not a matrix, it is returned unchanged."""
    table = convert_to_array(features)
    if table.ndim != 2 or not table.size or (table[:, 0] == 1).all():
        return features
    return np.column_stack([np.ones(len(table)), table])


def make_intercept_field() -> Any:
    """Make the option `intercept`. A problem without one has the same description as before the option existed."""
    return field(default=False, metadata={"described": lambda problem: problem.intercept})


class FeatureProblem(Problem):
    """Base of problems with features of arms and a vector theta. Rewards depend on their product."""

    arms: Any
    dims: Any
    prior: Any
    features: Any
    feature_prior: Any
    intercept: Any
    prior_kind: ClassVar[str] = "theta"
    link: ClassVar[str]
    """The function from x'theta to a mean: "linear" or "logistic"."""

    def check_arguments(self) -> None:
        """Check the arguments, and convert them to numbers and tuples."""
        object.__setattr__(self, "intercept", check_flag("intercept", self.intercept))
        if self.features is None:
            arms = check_arms(100 if self.arms is None else self.arms)
            dims = check_dims(self.choose_dims() if self.dims is None else self.dims, least=1 + self.intercept)
        else:
            table = check_features(prepend_ones(self.features) if self.intercept else self.features)
            arms, dims = table.shape
            for name, given, expected in (("arms", self.arms, arms), ("dims", self.dims, dims)):
                if given is not None and not np.array_equal(given, expected):
                    text = "must be {}, as in the features of shape {}, but got {}; leave it out."
                    raise make_argument_error(name, "conflict", text, expected, table.shape, Setting(name, given))
            if self.feature_prior is not None:
                raise make_argument_error("features", "conflict", "or `feature_prior` must be left out, but got both.")
            object.__setattr__(self, "features", convert_to_tuples(table))
        object.__setattr__(self, "arms", int(arms))
        object.__setattr__(self, "dims", int(dims))
        for name in ("prior", "feature_prior"):
            prior = getattr(self, name)
            if prior is not None and not (isinstance(prior, str) and prior == "uniform"):
                object.__setattr__(self, name, check_gaussian_prior(name, prior))
                factor_gaussian_prior(
                    name, getattr(self, name), self.dims - (self.intercept and name == "feature_prior")
                )
            else:
                object.__setattr__(self, name, None)
        object.__setattr__(self, "names", check_names(self.names, self.arms))

    def choose_dims(self) -> int:
        """Return the number of dimensions of a prior, else ten. A feature prior does not include the intercept."""
        for prior, extra in ((self.prior, 0), (self.feature_prior, int(self.intercept))):
            for entry in prior if isinstance(prior, tuple | list) else ():
                if np.ndim(entry) > 0:
                    return len(entry) + extra
        return 10

    def draw_features_and_scores(self, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Draw features (size or 1, arms, dims) and their products with theta (size, arms)."""
        if self.features is None:
            shape = (size, self.arms, self.dims - self.intercept)
            features = draw_vectors("feature_prior", self.feature_prior, shape, rng)
            if self.intercept:
                features = np.concatenate([np.ones((size, self.arms, 1)), features], axis=2)
        else:
            features = np.array(self.features)[None]
        theta = draw_vectors("prior", self.prior, (size, self.dims), rng)
        # This is a sum in a fixed order, because the last bits of a matrix product depend on the BLAS.
        scores = np.zeros((size, self.arms))
        for position in range(self.dims):
            scores += features[:, :, position] * theta[:, position, None]
        return features, scores


def draw_vectors(name: str, prior: Any, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Draw vectors along the last axis: uniform on [-1, 1]^d, or from a Gaussian."""
    if prior is None:
        return rng.uniform(-1, 1, shape)
    mean, root = factor_gaussian_prior(name, prior, shape[-1])
    deviates = rng.standard_normal(shape)
    vectors = np.broadcast_to(mean, shape).copy()
    for position in range(shape[-1]):
        vectors += deviates[..., position, None] * root[:, position]
    return vectors


@dataclass(frozen=True)
class Linear(FeatureProblem):
    """Arms with features x that pay x'theta plus noise.

    Parameters
    ----------
    arms : int, optional
        Number of arms. By default it is that of `features`, or 100.
    dims : int, optional
        Number of features. By default it is that of `features` or of a prior, or 10.
    prior : (mean, covariance), optional
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default
        theta is uniform on [-1, 1]^d.
    features : matrix, optional
        Features that are the same in all instances, a row per arm. By default each instance has its own.
    feature_prior : (mean, covariance), optional
        Gaussian from which every arm's features are drawn, as in `prior`. By default they are uniform on [-1, 1]^d.
    noise : float
        Standard deviation of rewards around their mean, above 0.
    names : sequence of str
        Names of the arms, one per arm. None by default.
    intercept : bool
        Whether the first feature of every arm is 1. A column of ones is prepended unless there is one. `dims` and `prior`
        include it, `feature_prior` does not.
    residuals : sequence of float or sequence of sequences, optional
        A sample of the noise: numbers for all arms, or a row per arm, 100,000 at most. Each row is shifted to mean 0, and
        all together are scaled to variance 1. By default noise is Gaussian.

    Raises
    ------
    InvalidRequest
        If arguments contradict each other, such as `features` and another number of arms.

    Examples
    --------
    >>> import banditune as bt
    >>> import numpy as np
    >>> instances = bt.Linear(arms=4, dims=2).sample(3, np.random.default_rng(0))
    >>> instances.means.shape, instances.features.shape
    ((3, 4), (3, 4, 2))
    """

    arms: Any = None
    dims: Any = None
    prior: Option[WeightPrior | None] = default_option(None)
    features: Any = field(default=None, repr=False)
    feature_prior: Option[WeightPrior | Literal["uniform"] | None] = default_option(None)
    noise: float = 0.5
    names: Option[Names] = default_option(())
    intercept: Any = make_intercept_field()
    residuals: Any = make_residuals_field()

    name = "linear"
    link = "linear"

    def __post_init__(self) -> None:
        self.check_arguments()
        object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        object.__setattr__(self, "residuals", check_residuals(self.residuals, self.arms))

    @property
    def reward(self) -> Callable[..., Any]:  # type: ignore[override]
        """The scalar function that draws a reward."""
        return select_reward(self.residuals)

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        features, scores = self.draw_features_and_scores(size, rng)
        return Instances(scores, features)

    def options(self) -> Sequence[float]:
        return make_reward_options(self.noise, self.residuals)


@dataclass(frozen=True)
class Logistic(FeatureProblem):
    """Arms with features x that pay 1 with probability 1 / (1 + exp(-x'theta)), else 0.

    Parameters
    ----------
    arms : int, optional
        Number of arms. By default it is that of `features`, or 100.
    dims : int, optional
        Number of features. By default it is that of `features` or of a prior, or 10.
    prior : (mean, covariance), optional
        Gaussian prior of theta: the mean as a number or a vector, the covariance as a number or a matrix. By default
        theta is uniform on [-1, 1]^d.
    features : matrix, optional
        Features that are the same in all instances, a row per arm. By default each instance has its own.
    feature_prior : (mean, covariance), optional
        Gaussian from which every arm's features are drawn, as in `prior`. By default they are uniform on [-1, 1]^d.
    names : sequence of str
        Names of the arms, one per arm. None by default.
    intercept : bool
        Whether the first feature of every arm is 1. A column of ones is prepended unless there is one. `dims` and `prior`
        include it, `feature_prior` does not.

    Raises
    ------
    InvalidRequest
        If arguments contradict each other, such as `features` and another number of arms.

    Examples
    --------
    >>> import banditune as bt
    >>> problem = bt.Logistic(features=[(1, 0), (1, 1), (1, 2)], prior=(0, 1))
    >>> problem.arms, problem.dims
    (3, 2)
    """

    arms: Any = None
    dims: Any = None
    prior: Option[WeightPrior | None] = default_option(None)
    features: Any = field(default=None, repr=False)
    feature_prior: Option[WeightPrior | Literal["uniform"] | None] = default_option(None)
    names: Option[Names] = default_option(())
    intercept: Any = make_intercept_field()

    name = "logistic"
    link = "logistic"
    rewards = "binary"
    reward = staticmethod(draw_bernoulli_reward)

    def __post_init__(self) -> None:
        self.check_arguments()

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        features, scores = self.draw_features_and_scores(size, rng)
        # For scores beyond 700 the probability is 0 or 1 in float64.
        return Instances(1 / (1 + np.exp(-np.clip(scores, -700, 700))), features)
