"""Arms with features: a linear function of them pays, with Gaussian noise or through the logistic function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

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
from banditune.core.problem import Instances, Problem
from banditune.problems.bernoulli_arms import draw_bernoulli_reward
from banditune.problems.residual_noise import check_residuals, make_residuals_field, make_reward_options, select_reward


def check_features(features: Any) -> FloatArray:
    """A checked matrix of features, a row per arm."""
    if isinstance(features, np.ndarray) and np.iscomplexobj(features):
        raise InvalidRequest("`features` must be real numbers, but got complex ones; take their real parts.")
    table = convert_to_array(features)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 1:
        came = f"shape {table.shape}" if table.size else f"{type(features).__name__} that is no matrix of numbers"
        file = "; read the file first (on the command line: --features FILE)" if isinstance(features, str) else ""
        raise InvalidRequest(f"`features` must be a matrix with a row per arm, two arms or more, but got {came}{file}.")
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        arm, place = map(int, bad[0])
        raise InvalidRequest(
            f"`features` must be finite numbers, but feature {place} of arm {arm} is {table[arm, place]}; fill it."
        )
    if np.abs(table).max() > 1e50:
        raise InvalidRequest(
            f"`features` must be below 1e50, but the largest is {np.abs(table).max():.3g}; rescale them."
        )
    zero = np.flatnonzero(~table.any(axis=1))
    if len(zero):
        raise InvalidRequest(
            f"every arm must have a feature that is not 0, but those of arm {zero[0]} are all 0; drop it or add a constant."
        )
    return table


def prepend_ones(features: Any) -> Any:
    """A matrix with a first column of ones, unless it has one; what is no matrix is left to `check_features`."""
    table = convert_to_array(features)
    if table.ndim != 2 or not table.size or (table[:, 0] == 1).all():
        return features
    return np.column_stack([np.ones(len(table)), table])


def make_intercept_field() -> Any:
    """The option `make_intercept_field`; a problem without one is described as before there was the option."""
    return field(default=False, metadata={"told": lambda problem: problem.intercept})


class FeatureProblem(Problem):
    """Features of arms and a vector theta; what an arm pays depends on their product."""

    arms: Any
    dims: Any
    prior: Any
    features: Any
    feature_prior: Any
    intercept: Any
    prior_kind: ClassVar[str] = "theta"
    link: ClassVar[str]
    """How x'theta makes a mean, "linear" or "logistic"."""

    def check(self) -> None:
        """Words and arrays become numbers and tuples, or a complaint."""
        object.__setattr__(self, "intercept", check_flag("intercept", self.intercept))
        if self.features is None:
            arms = check_arms(100 if self.arms is None else self.arms)
            dims = check_dims(self.usual_dims() if self.dims is None else self.dims, least=1 + self.intercept)
        else:
            table = check_features(prepend_ones(self.features) if self.intercept else self.features)
            arms, dims = table.shape
            for name, told, found in (("arms", self.arms, arms), ("dims", self.dims, dims)):
                if told is not None and not np.array_equal(told, found):
                    raise InvalidRequest(
                        f"`{name}` must be {found}, as in the features of shape {table.shape}, but got {name}={told!r}; "
                        "leave it out."
                    )
            if self.feature_prior is not None:
                raise InvalidRequest("`features` or `feature_prior` must be left out, but got both.")
            object.__setattr__(self, "features", convert_to_tuples(table))
        object.__setattr__(self, "arms", int(arms))
        object.__setattr__(self, "dims", int(dims))
        for name in ("prior", "feature_prior"):
            told = getattr(self, name)
            if told is not None and not (isinstance(told, str) and told == "uniform"):
                object.__setattr__(self, name, check_gaussian_prior(name, told))
                factor_gaussian_prior(
                    name, getattr(self, name), self.dims - (self.intercept and name == "feature_prior")
                )
            else:
                object.__setattr__(self, name, None)
        object.__setattr__(self, "names", check_names(self.names, self.arms))

    def usual_dims(self) -> int:
        """As many features as a prior says, else ten; that of features does not count the intercept."""
        for told, more in ((self.prior, 0), (self.feature_prior, int(self.intercept))):
            for part in told if isinstance(told, tuple | list) else ():
                if np.ndim(part) > 0:
                    return len(part) + more
        return 10

    def draw(self, size: int, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Features (size or 1, arms, dims) and their products with theta (size, arms)."""
        if self.features is None:
            shape = (size, self.arms, self.dims - self.intercept)
            features = draw_vectors("feature_prior", self.feature_prior, shape, rng)
            if self.intercept:
                features = np.concatenate([np.ones((size, self.arms, 1)), features], axis=2)
        else:
            features = np.array(self.features)[None]
        theta = draw_vectors("prior", self.prior, (size, self.dims), rng)
        # A sum in a fixed order: a product of matrices would depend on the BLAS.
        scores = np.zeros((size, self.arms))
        for place in range(self.dims):
            scores += features[:, :, place] * theta[:, place, None]
        return features, scores


def draw_vectors(name: str, prior: Any, shape: tuple[int, ...], rng: np.random.Generator) -> FloatArray:
    """Random vectors along the last axis: uniform on [-1, 1]^d, or from a Gaussian."""
    if prior is None:
        return rng.uniform(-1, 1, shape)
    mean, root = factor_gaussian_prior(name, prior, shape[-1])
    deviates = rng.standard_normal(shape)
    found = np.broadcast_to(mean, shape).copy()
    for place in range(shape[-1]):
        found += deviates[..., place, None] * root[:, place]
    return found


@dataclass(frozen=True)
class Linear(FeatureProblem):
    """Arms pay x'theta plus noise; features x and theta are uniform on [-1, 1]^d unless given otherwise.

    `prior` is a Gaussian (mean, covariance) for theta and `feature_prior` one for every arm's features, each a number, or
    a vector and a matrix; `features` is one matrix for all instances, a row per arm. `noise` is the standard deviation
    of rewards around their means; they are Gaussian unless `make_residuals_field` are given, whose shape they have then.
    With `make_intercept_field` the first feature of every arm is 1: it is put before the others unless it is there. `dims` and `prior`
    count it, `feature_prior` does not.
    """

    arms: Any = None
    dims: Any = None
    prior: Any = None
    features: Any = field(default=None, repr=False)
    feature_prior: Any = None
    noise: float = 0.5
    names: Any = ()
    intercept: Any = make_intercept_field()
    residuals: Any = make_residuals_field()

    name = "linear"
    link = "linear"

    def __post_init__(self) -> None:
        self.check()
        object.__setattr__(self, "noise", check_number("noise", self.noise, above=0))
        object.__setattr__(self, "residuals", check_residuals(self.residuals, self.arms))

    @property
    def reward(self) -> Callable[..., Any]:  # type: ignore[override]
        """The scalar function that draws a reward."""
        return select_reward(self.residuals)

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        features, scores = self.draw(size, rng)
        return Instances(scores, features)

    def options(self) -> Sequence[float]:
        return make_reward_options(self.noise, self.residuals)


@dataclass(frozen=True)
class Logistic(FeatureProblem):
    """Arms pay 1 with probability 1 / (1 + exp(-x'theta)), else 0; features x and theta as in the linear problem."""

    arms: Any = None
    dims: Any = None
    prior: Any = None
    features: Any = field(default=None, repr=False)
    feature_prior: Any = None
    names: Any = ()
    intercept: Any = make_intercept_field()

    name = "logistic"
    link = "logistic"
    rewards = "binary"
    reward = staticmethod(draw_bernoulli_reward)

    def __post_init__(self) -> None:
        self.check()

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        features, scores = self.draw(size, rng)
        # Beyond 700 the chance is 0 or 1 in float64 anyway.
        return Instances(1 / (1 + np.exp(-np.clip(scores, -700, 700))), features)
