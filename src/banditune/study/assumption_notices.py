"""Checks whether the noise and the prior that a policy assumes fit the problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import factor_gaussian_prior, is_from_problem
from banditune.core.descriptions import find_own_code
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Message, Wording
from banditune.core.notice import Finding, Notice, with_code
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.study.options_from_problem import (
    compute_mean_moments,
    compute_reward_noise,
    draw_features_and_scores,
    draw_means,
    resolve_beta_prior,
)

MAX_NOISE_RATIO = {"real": 1.5, "unit": 3.0, "binary": 3.0}
"""The largest ratio between the assumed noise and the problem's, or its inverse, without a notice, by kind of rewards.

Errors of estimated noise are smaller. Textbooks use 1/2, the largest noise of rewards in [0, 1], on purpose. At a ratio of
about 3 or more, such a policy explores far too much, and tuned parameters are at the low end of their range.
"""


MAX_PRIOR_DEVIATION = 2
"""A prior is wrong if the mean of the arms differs from its mean by this many of its standard deviations.

At this distance, the regret of Gaussian Thompson sampling with prior (0, 1) was 2 to 14 times that with the right prior.
(Four arms with means from N(2, 1) or N(3, 1), noise 1, horizon 400, parameter values 0.3, 0.6 and 1, 2,000 runs.)
"""


CENTRAL_SHARE, MIN_PRIOR_PROBABILITY = 0.9, 0.05
"""Limits for a Beta prior.

A prior is wrong if it gives a probability below `MIN_PRIOR_PROBABILITY` to the central interval of the problem's means. The
share of the means in this interval is `CENTRAL_SHARE`.
"""


PRIOR_DRAWS = 20_000


MAX_FEATURE_INSTANCES = 16
"""Instances whose features are checked if each instance has its own features."""


def note_wrong_assumptions(policy: Policy, problem: Problem, horizon: int | None = None) -> Iterator[Notice]:
    """Yield notices if the noise or the prior of a policy is far from the problem's."""
    yield from note_wrong_noise(policy, problem, horizon)
    yield from note_wrong_prior(policy, problem)
    yield from note_wrong_beta_prior(policy, problem)
    yield from note_wrong_theta_prior(policy, problem)


@with_code("wrong-prior")
def note_wrong_prior(policy: Policy, problem: Problem) -> Iterator[Finding]:
    """Yield a notice if means of real rewards are far from the policy's prior."""
    if problem.rewards != "real" or problem.dims or policy.prior_moments is None:
        return
    expected, sd_prior = policy.prior_moments
    mean, sd, _ = compute_mean_moments(problem)
    if abs(mean - expected) < MAX_PRIOR_DEVIATION * sd_prior or not sd:
        return
    direction = "low" if mean > expected else "high"
    noise = problem.noise or getattr(policy, "noise", None)
    options = {"noise": f"{noise:.4g}"} if noise else {}
    yield (
        f"{policy.name} assumes that mean rewards have mean {expected:.4g} and standard deviation {sd_prior:.4g} (prior), "
        f"but those of {problem.name} have mean {mean:.4g}: its estimates for arms without pulls are too {direction}.",
        suggest_options(policy, **options, prior=f"({mean:.4g}, {sd:.4g})"),
    )


@with_code("wrong-prior")
def note_wrong_beta_prior(policy: Policy, problem: Problem) -> Iterator[Finding]:
    """Yield a notice if a Beta prior gives the problem's means a small probability."""
    prior: Any = getattr(policy, "prior", None)
    if policy.prior_kind != "beta" or problem.rewards == "real" or np.shape(prior) != (2,):
        return
    means = draw_means(problem)
    low, high = np.quantile(means, [(1 - CENTRAL_SHARE) / 2, (1 + CENTRAL_SHARE) / 2])
    a, b = prior
    expected = np.random.default_rng(0).beta(a, b, PRIOR_DRAWS)
    share = float(np.mean((expected >= low) & (expected <= high)))
    if low == high or share >= MIN_PRIOR_PROBABILITY:
        return
    right_a, right_b = np.reshape(resolve_beta_prior(policy, problem).value, (-1, 2))[0]
    yield (
        f"{policy.name} has a prior with mean {a / (a + b):.4g} and probability {share:.2g} between {low:.4g} and "
        f"{high:.4g}, but {CENTRAL_SHARE:.0%} of the mean rewards of {problem.name} are there: every arm needs many pulls "
        f"until its estimate is near its mean.",
        suggest_options(policy, prior=f"({right_a:.4g}, {right_b:.4g})"),
    )


@with_code("wrong-prior")
def note_wrong_theta_prior(policy: Policy, problem: Problem) -> Iterator[Finding]:
    """Yield a notice if scores x'theta are much larger than under the policy's prior of theta."""
    prior: Any = getattr(policy, "prior", None)
    if policy.prior_kind != "theta" or not problem.dims or is_from_problem(prior):
        return
    times = compute_score_ratio(prior, *draw_features_and_scores(policy, problem, 0))
    if times < MAX_PRIOR_DEVIATION:
        return
    way = (
        suggest_options(policy, prior="...")
        if is_made_by_user(policy)
        else "Leave out its prior; then the policy takes the problem's."
    )
    yield (
        f"{policy.name} assumes smaller differences between arms than those of {problem.name}: scores x'theta are "
        f"{times:.3g} times as large as under its prior of theta.",
        way,
    )


def compute_score_ratio(prior: Any, features: FloatArray, scores: FloatArray) -> float:
    """Compute the root mean square of scores, in units of their standard deviations under a prior of theta."""
    if len(features) > 1:  # a single row is shared by all instances
        features, scores = features[:MAX_FEATURE_INSTANCES], scores[:MAX_FEATURE_INSTANCES]
    mean, root = factor_gaussian_prior("prior", prior, features.shape[1])
    spread = np.square(np.einsum("nda,de->nea", features, root)).sum(axis=1)
    off = scores - np.einsum("nda,d->na", features, mean)
    return float(np.sqrt(np.mean(off**2 / np.maximum(spread, 1e-300))))


@with_code("wrong-noise")
def note_wrong_noise(policy: Policy, problem: Problem, horizon: int | None = None) -> Iterator[Finding]:
    """Yield a notice if the policy's noise is far from that of the problem's rewards."""
    assumed = getattr(policy, "noise", None)
    if not isinstance(assumed, int | float):
        return
    true = find_reward_noise(problem, horizon)
    if not true or 1 / MAX_NOISE_RATIO[problem.rewards] <= assumed / true <= MAX_NOISE_RATIO[problem.rewards]:
        return
    direction = "much" if assumed < true else "little"
    yield (
        f"{policy.name} assumes that rewards have a standard deviation of {assumed:.4g} around their means (noise), but "
        f"those of {problem.name} have {true:.4g}: it gives rewards too {direction} weight, as does the textbook policy "
        f"with which it is compared.",
        suggest_options(policy, noise=f"{true:.4g}"),
    )


def find_reward_noise(problem: Problem, horizon: int | None = None) -> float | None:
    """Return the noise of a problem's rewards; None if it cannot be measured."""
    try:
        return float(compute_reward_noise(problem, horizon).value)
    except InvalidRequest:
        return None


def suggest_noise_check(policy: Policy) -> Message:
    """Suggest to check the noise that a policy assumes; empty if it assumes none."""
    if not isinstance(getattr(policy, "noise", None), int | float):
        return Message("")
    option = "noise=..." if is_made_by_user(policy) else spell_policy(policy, noise="...")
    return Message(", check the noise that the policy assumes ({})", option)


def suggest_options(policy: Policy, **options: str) -> Message:
    """Suggest to make the policy with other options, which are given as Python code."""
    if is_made_by_user(policy):
        call = f"{type(policy).__name__}(..., {format_keywords(options)})"
        return Message(f"Make the policy with {call}, or change the function that makes it.")
    return Message("Use {}.", spell_policy(policy, **options))


def is_made_by_user(policy: Policy) -> bool:
    """Return whether a policy has a name field or a user's code, so that the code that makes it is unknown."""
    return find_own_code(policy) is not None or any(field.name == "name" for field in fields(policy))  # type: ignore[arg-type]


def spell_policy(policy: Policy, **options: str) -> Wording:
    """Write a registered policy with other options, for Python and for the command line."""
    words = ",".join(f"{name}={value.strip('()').replace(' ', '')}" for name, value in options.items())
    return Wording(f"{type(policy).__name__}({format_keywords(options)})", f"{policy.name}:{words}")


def format_keywords(options: Mapping[str, str]) -> str:
    """Write options as the keywords of a call."""
    return ", ".join(f"{name}={value}" for name, value in options.items())
