"""Whether a policy's own noise and prior fit the problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import factor_gaussian_prior, is_from_problem
from banditune.core.descriptions import find_own_code
from banditune.core.errors import InvalidRequest
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
"""A policy's noise is close to the problem's within this factor, by the kind of rewards; estimates of it differ by less.

Textbooks take 1/2, the most that rewards in [0, 1] can have: no mistake, but from a factor of about 3 on such a policy
explores far more than it must, and tuned widths are at the low end of their range.
"""


MAX_PRIOR_DEVIATION = 2
"""Arms pay what a prior does not expect if their mean is so many of its standard deviations away.

Gaussian Thompson sampling with prior (0, 1) then loses 2 to 14 times as much as with the right one (four arms with means
from N(2, 1) or N(3, 1), noise 1, horizon 400, widths 0.3, 0.6 and 1, 2,000 runs).
"""


CENTRAL_SHARE, MIN_PRIOR_PROBABILITY = 0.9, 0.05
"""A Beta prior is far from a problem if it gives less than `MIN_PRIOR_PROBABILITY` to where the middle `CENTRAL_SHARE` of the means lie."""


PRIOR_DRAWS = 20_000


MAX_FEATURE_INSTANCES = 16
"""Instances whose features are looked at where each has its own."""


def note_wrong_assumptions(policy: Policy, problem: Problem) -> Iterator[str]:
    """Sentences where a policy's own noise, or its prior, is far from the problem's."""
    yield from note_wrong_noise(policy, problem)
    yield from note_wrong_prior(policy, problem)
    yield from note_wrong_beta_prior(policy, problem)
    yield from note_wrong_theta_prior(policy, problem)


def note_wrong_prior(policy: Policy, problem: Problem) -> Iterator[str]:
    """A sentence where means of real rewards are far from what the policy expects of arms that it has not tried."""
    if problem.rewards != "real" or problem.dims or policy.expected_means is None:
        return
    expected, give = policy.expected_means
    mean, sd, _ = compute_mean_moments(problem)
    if abs(mean - expected) < MAX_PRIOR_DEVIATION * give or not sd:
        return
    look = "bad" if mean > expected else "good"
    noise = problem.noise or getattr(policy, "noise", None)
    options = {"noise": f"{noise:.4g}"} if noise else {}
    yield (
        f"{policy.name} expects arms to pay {expected:.4g} on average, give or take {give:.4g} (prior), but those of "
        f"{problem.name} pay {mean:.4g}: arms that it has not tried look too {look}. "
        f"{suggest_options(policy, **options, prior=f'({mean:.4g}, {sd:.4g})')}"
    )


def note_wrong_beta_prior(policy: Policy, problem: Problem) -> Iterator[str]:
    """A sentence where a Beta prior hardly expects the means that the problem has."""
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
        f"{policy.name} expects arms to pay {a / (a + b):.4g} on average (prior), and with a probability of {share:.2g} "
        f"between {low:.4g} and {high:.4g}, where {CENTRAL_SHARE:.0%} of the arms of {problem.name} are: it must first learn what "
        f"all arms have in common. {suggest_options(policy, prior=f'({right_a:.4g}, {right_b:.4g})')}"
    )


def note_wrong_theta_prior(policy: Policy, problem: Problem) -> Iterator[str]:
    """A sentence where scores of arms are beyond what a prior of theta expects."""
    prior: Any = getattr(policy, "prior", None)
    if policy.prior_kind != "theta" or not problem.dims or is_from_problem(prior):
        return
    times = compute_score_ratio(prior, *draw_features_and_scores(policy, problem, 0))
    if times < MAX_PRIOR_DEVIATION:
        return
    way = (
        suggest_options(policy, prior="...")
        if is_made_by_user(policy)
        else "Leave its prior out, and it takes the one that suits the problem."
    )
    yield (
        f"{policy.name} expects smaller differences between arms than {problem.name} has: scores x'theta are {times:.3g} "
        f"times as large as its prior of theta lets expect. {way}"
    )


def compute_score_ratio(prior: Any, features: FloatArray, scores: FloatArray) -> float:
    """Scores as multiples of their standard deviations by a prior of theta (root mean square)."""
    if len(features) > 1:  # else all instances share them
        features, scores = features[:MAX_FEATURE_INSTANCES], scores[:MAX_FEATURE_INSTANCES]
    mean, root = factor_gaussian_prior("prior", prior, features.shape[1])
    spread = np.square(np.einsum("nda,de->nea", features, root)).sum(axis=1)
    off = scores - np.einsum("nda,d->na", features, mean)
    return float(np.sqrt(np.mean(off**2 / np.maximum(spread, 1e-300))))


def note_wrong_noise(policy: Policy, problem: Problem) -> Iterator[str]:
    """A sentence where the policy's own noise is far from that of the problem's rewards."""
    assumed = getattr(policy, "noise", None)
    if not isinstance(assumed, int | float):
        return
    true = find_reward_noise(problem)
    if not true or 1 / MAX_NOISE_RATIO[problem.rewards] <= assumed / true <= MAX_NOISE_RATIO[problem.rewards]:
        return
    far = "much" if assumed < true else "little"
    yield (
        f"{policy.name} takes rewards to have a standard deviation of {assumed:.4g} around their means (noise), but those "
        f"of {problem.name} have {true:.4g}: it trusts them too {far}, and so does theory's value, with which it is "
        f"compared. {suggest_options(policy, noise=f'{true:.4g}')}"
    )


def find_reward_noise(problem: Problem) -> float | None:
    """The noise of a problem's rewards; None where it would have to be measured and cannot."""
    try:
        return float(compute_reward_noise(problem).value)
    except InvalidRequest:
        return None


def suggest_noise_check(policy: Policy) -> str:
    """Where to look if a policy that has a noise of its own does worse than it should."""
    if not isinstance(getattr(policy, "noise", None), int | float):
        return ""
    told = "noise=..." if is_made_by_user(policy) else format_policy_spec(policy, noise="...")
    return f", see whether the policy knows how noisy rewards are ({told})"


def suggest_options(policy: Policy, **options: str) -> str:
    """What to type instead; options as Python takes them."""
    if is_made_by_user(policy):
        return (
            f"Make it anew, as {type(policy).__name__}(..., {format_keywords(options)}) or the function that makes it."
        )
    return f"Tell it: {format_policy_spec(policy, **options)}."


def is_made_by_user(policy: Policy) -> bool:
    """A policy that carries its own name, or has a user's code, is a user's: nobody else knows how it is made."""
    return find_own_code(policy) is not None or any(field.name == "name" for field in fields(policy))  # type: ignore[arg-type]


def format_policy_spec(policy: Policy, **options: str) -> str:
    """How a policy of the shelf is made with other options, which are as Python takes them."""
    words = ",".join(f"{name}={value.strip('()').replace(' ', '')}" for name, value in options.items())
    return f"{policy.name}:{words} on the command line, {type(policy).__name__}({format_keywords(options)}) in Python"


def format_keywords(options: Mapping[str, str]) -> str:
    """Options in a call."""
    return ", ".join(f"{name}={value}" for name, value in options.items())
