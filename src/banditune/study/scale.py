"""What a policy takes from its problem: the noise of rewards, and the prior of means, in numbers."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from banditune.checks import columns, open_options
from banditune.contracts import PRIORS, BadRequest, Floats, Policy, Problem
from banditune.engine.prepared import check_instances
from banditune.engine.run import BLOCK, instances, means_of
from banditune.engine.spread import measured_noise
from banditune.exact import made_optimal
from banditune.problems import Bernoulli, BetaRewards, Campaigns, Gaussian, Mixture
from banditune.problems.linear import Structured

BLOCKS = 4
"""Blocks of instances whose means are looked at where a problem's law of means has no formula."""

DRAWS = 4096
"""Rewards that are drawn where nobody says how noisy they are: their standard deviation is then known to a few percent."""

HEAVIEST = 1e6
"""The largest sum of a Beta prior's shapes: beyond it all means are the same number for any horizon that can be played."""

EXTREME = 1e-3
"""Means are at least so far from 0 and 1 where their logit is taken."""

EXACT = "from the problem"
POOLED = "from the problem, matched to the mean and variance of all arms"
# Samples are the same for every seed: the scale is the problem's alone.
MATCHED = f"from the problem, matched to the means of {BLOCKS * BLOCK:,} instances"
DRAWN = f"from the problem, the spread of {DRAWS:,} rewards around their means"
WITHOUT_SPREAD = "the textbook's, because the problem's {} do not vary"


class Found(NamedTuple):
    """A number or a prior, and words on where it is from."""

    value: Any
    source: str


class Fitted(NamedTuple):
    """A policy in numbers, the textbook's if that is another one, and where each number is from."""

    policy: Policy
    textbook: Policy | None
    sources: tuple[tuple[str, str], ...]


class Moments(NamedTuple):
    """Mean and standard deviation of arms' means, over arms and instances."""

    mean: float
    sd: float
    source: str


def fit_to_problem(policy: Policy, problem: Problem) -> Fitted:
    """The policy with the problem's numbers in the place of "problem", and the textbook's policy.

    A textbook's numbers are for rewards in [0, 1]. For other rewards no number is right, and textbooks take noise and prior
    as known: then theirs are the problem's, too.
    """
    asked, policy = policy, made_optimal(policy, problem)
    if policy is not asked:
        return Fitted(policy, None, tuple((option.name, EXACT) for option in fields(policy)))  # type: ignore[arg-type]
    found = {name: option_of(policy, name, problem) for name in open_options(policy)}
    if not found:
        return Fitted(policy, None, ())
    fitted = replace(policy, **{name: one.value for name, one in found.items()})  # type: ignore[type-var]
    usual = {} if problem.rewards == "real" else {k: v for k, v in policy.textbook_options.items() if k in found}
    textbook = replace(fitted, **usual)  # type: ignore[type-var]
    sources = tuple((name, one.source) for name, one in found.items())
    return Fitted(fitted, None if textbook == fitted else textbook, sources)


def option_of(policy: Policy, name: str, problem: Problem) -> Found:
    """The problem's number for an option of the policy."""
    if name == "noise":
        return noise_of(policy, problem)
    if name != "prior" or policy.prior_kind not in PRIOR_OF:
        raise BadRequest(
            f"only `noise` and `prior` can be taken from the problem, and a prior only if it is {PRIORS['beta']}, "
            f"{PRIORS['normal']} or {PRIORS['theta']}, but {policy.name} has {name}='problem'; give it in numbers."
        )
    return PRIOR_OF[policy.prior_kind](policy, problem)


def noise_of(policy: Policy, problem: Problem) -> Found:
    """The standard deviation of a reward around its arm's mean."""
    found = reward_noise(problem)
    return found if found.value > 0 else without_spread(policy, "noise", problem, "rewards")


def without_spread(policy: Policy, name: str, problem: Problem, what: str) -> Found:
    """The textbook's number, where the problem has no spread to take one from; for real rewards there is none."""
    if problem.rewards == "real" or name not in policy.textbook_options:
        raise BadRequest(
            f"`{name}` of {policy.name} must be given in numbers, because the {what} of {problem.name!r} do not vary and "
            f"have no scale; make the policy as {type(policy).__name__}({name}=...)."
        )
    return Found(policy.textbook_options[name], WITHOUT_SPREAD.format(what))


@singledispatch
def reward_noise(problem: Problem) -> Found:
    """The standard deviation of a reward around its arm's mean: the root of the mean variance over arms and instances."""
    if problem.noise is not None:
        return Found(float(problem.noise), EXACT)
    if problem.rewards == "binary":
        return binary_noise(problem)
    return Found(rounded(measured_noise(problem, DRAWS), DRAWN), DRAWN)


@reward_noise.register
def _(problem: BetaRewards) -> Found:
    found = binary_noise(problem)
    return found._replace(value=rounded(found.value / math.sqrt(problem.v + 1), found.source))


@reward_noise.register
def _(problem: Campaigns) -> Found:
    if problem.rewards == "real":
        return Found(problem.noise, EXACT)
    found = binary_noise(problem)
    share = math.sqrt(problem.v + 1) if problem.rewards == "unit" else 1.0
    return found._replace(value=rounded(found.value / share, found.source))


def binary_noise(problem: Problem) -> Found:
    """The root of the mean of m (1 - m) over means m: the noise of rewards that are 0 or 1."""
    mean, sd, source = means_moments(problem)
    return Found(rounded(math.sqrt(max(mean * (1 - mean) - sd**2, 0.0)), source), source)


def means_moments(problem: Problem) -> Moments:
    """Mean and standard deviation of arms' means, by a formula or from instances."""
    law = law_of_means(problem)
    if law is None:
        drawn = some_means(problem)
        sd = float(drawn.std()) if np.ptp(drawn) > 0 else 0.0
        return Moments(rounded(float(drawn.mean()), MATCHED), rounded(sd, MATCHED), MATCHED)
    means, variances, weights = law
    centre = float(weights @ means)
    spread = float(weights @ (variances + (means - centre) ** 2))
    return Moments(centre, math.sqrt(spread), EXACT if len(means) == 1 else POOLED)


def some_means(problem: Problem) -> Floats:
    """Means of some instances, (instances, arms), where there is room for them."""
    check_instances(problem)
    return means_of(problem, 0, range(BLOCKS * BLOCK))


def law_of_means(problem: Problem) -> tuple[Floats, Floats, Floats] | None:
    """Means, variances and weights of which the law of an arm's mean is the mixture; None where nobody knows it.

    A subclass of a user may draw means in another way.
    """
    kind = next((kind for kind in (Bernoulli, BetaRewards, Gaussian, Mixture) if isinstance(problem, kind)), None)
    if kind is None or type(problem).sample is not kind.sample:
        return None
    if isinstance(problem, Mixture):
        table = np.array(problem.means)
        weights = np.repeat(np.array(problem.weights) / table.shape[1], table.shape[1])
        return table.ravel(), np.zeros(table.size), weights
    first, second = columns(problem.prior)  # type: ignore[attr-defined]
    alike = np.full(len(first), 1 / len(first))
    if isinstance(problem, Gaussian):
        return first, second**2, alike
    mean = first / (first + second)
    return mean, mean * (1 - mean) / (first + second + 1), alike


def beta_prior(policy: Policy, problem: Problem) -> Found:
    """Beta(a, b) of an arm's mean: the problem's, or the one with the same mean and variance."""
    known = problem.prior_kind == "beta" and law_of_means(problem) is not None
    prior: Any = problem.prior if known else ()  # type: ignore[attr-defined]
    if len(prior) == 1 or (prior and policy.prior_per_arm):
        return raised(policy, Found(prior[0] if len(prior) == 1 else prior, EXACT))
    mean, sd, source = means_moments(problem)
    if not 0 < mean < 1:
        return without_spread(policy, "prior", problem, "means")
    weight = mean * (1 - mean) / sd**2 - 1 if sd > 0 else HEAVIEST
    weight = min(max(weight, 1 / HEAVIEST), HEAVIEST)
    return raised(policy, Found((rounded(mean * weight, MATCHED), rounded((1 - mean) * weight, MATCHED)), source))


def raised(policy: Policy, found: Found) -> Found:
    """A Beta prior whose shapes are as large as the policy's must be, with the same mean."""
    least = float(np.min(found.value))
    if least >= policy.least_shape:
        return found
    # Rounding must not leave a shape just below its limit.
    a, b = (max(shape * policy.least_shape / least, policy.least_shape) for shape in found.value)
    return Found((a, b), f"{found.source}, with shapes of at least {policy.least_shape:g}")


def normal_prior(policy: Policy, problem: Problem) -> Found:
    """Mean and standard deviation of an arm's mean."""
    mean, sd, source = means_moments(problem)
    return Found((mean, sd), source) if sd > 0 else without_spread(policy, "prior", problem, "means")


def theta_prior(policy: Policy, problem: Problem) -> Found:
    """Mean and covariance of theta: the problem's, where x'theta means the same to both, or one matched to scores."""
    if isinstance(problem, Structured) and problem.link == policy.link:  # type: ignore[attr-defined]
        # Uniform on [-1, 1] has the variance 1/3.
        return Found((0.0, 1 / 3), EXACT) if problem.prior is None else Found(problem.prior, EXACT)
    scores = squares = 0.0
    for block in range(BLOCKS):
        features, found = features_and_scores(policy, problem, block)
        scores += float(np.mean(found**2)) / BLOCKS
        squares += float(np.square(features).sum()) / (len(features) * problem.arms) / BLOCKS
    if not (scores > 0 and squares > 0):
        return without_spread(policy, "prior", problem, "means")
    return Found((0.0, rounded(scores / squares, MATCHED)), MATCHED)


def features_and_scores(policy: Policy, problem: Problem, block: int) -> tuple[Floats, Floats]:
    """Features (instances or 1, dims, arms) of a block, and what x'theta is for the policy (instances, arms)."""
    check_instances(problem)
    drawn = instances(problem, 0, block)
    scores = drawn.means
    if policy.link == "logistic":  # type: ignore[attr-defined]
        inside = np.clip(scores, EXTREME, 1 - EXTREME)
        scores = np.log(inside / (1 - inside))
    return np.array(drawn.features), scores


PRIOR_OF = {"beta": beta_prior, "normal": normal_prior, "theta": theta_prior}
"""What finds a prior, by the policy's kind."""


def rounded(value: float, source: str) -> float:
    """Six digits of what was sampled: the last bits of a sum may differ between machines, and nothing depends on them."""
    return value if source in (EXACT, POOLED) or not value else float(f"{value:.6g}")
