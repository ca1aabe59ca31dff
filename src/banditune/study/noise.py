"""Whether a policy knows how noisy rewards are, and how large."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np

from banditune.contracts import Policy, Problem
from banditune.engine.run import instances

CLOSE = 1.5
"""A policy's noise is close to the problem's within this factor; estimates of it differ by less."""

FAR = 2
"""Arms pay what a prior does not expect if their mean is so many of its standard deviations away.

Gaussian Thompson sampling with prior (0, 1) then loses 2 to 14 times as much as with the right one (four arms with means
from N(2, 1) or N(3, 1), noise 1, horizon 400, widths 0.3, 0.6 and 1, 2,000 runs).
"""


def noise_warnings(policy: Policy, problem: Problem) -> Iterator[str]:
    """Sentences where a policy's own noise, or its prior, is far from real rewards."""
    yield from wrong_noise(policy, problem)
    yield from wrong_prior(policy, problem)


def wrong_prior(policy: Policy, problem: Problem) -> Iterator[str]:
    """A sentence where means of real rewards are far from what the policy expects of arms that it has not tried."""
    if problem.rewards != "real" or problem.dims or policy.name != "gaussian-ts":
        return
    expected, give = vars(policy)["prior"]
    mean, sd = typical_means(problem)
    if abs(mean - expected) < FAR * give or not sd:
        return
    look = "bad" if mean > expected else "good"
    noise = problem.noise or vars(policy)["noise"]
    told = f"noise={noise:.4g},prior={mean:.4g},{sd:.4g}"
    call = f"{type(policy).__name__}(noise={noise:.4g}, prior=({mean:.4g}, {sd:.4g}))"
    yield (
        f"{policy.name} expects arms to pay {expected:.4g} on average, give or take {give:.4g} (prior), but those of "
        f"{problem.name} pay {mean:.4g}: arms that it has not tried look too {look}. Tell it: {policy.name}:{told} on the "
        f"command line, {call} in Python."
    )


def typical_means(problem: Problem) -> tuple[float, float]:
    """Mean and standard deviation of what arms pay: the problem's one prior, or those of some instances."""
    prior: Any = getattr(problem, "prior", ())
    if problem.name == "gaussian" and len(prior) == 1:
        mean, sd = prior[0]
        return mean, sd
    means = np.concatenate([instances(problem, 0, block).means for block in range(4)])
    return float(means.mean()), float(means.std())


def wrong_noise(policy: Policy, problem: Problem) -> Iterator[str]:
    """A sentence where the policy's own noise is far from that of real rewards; within [0, 1] its bound is right."""
    assumed, true = getattr(policy, "noise", None), problem.noise
    if problem.rewards != "real" or not isinstance(assumed, int | float) or not true:
        return
    if 1 / CLOSE <= assumed / true <= CLOSE:
        return
    far = "much" if assumed < true else "little"
    yield (
        f"{policy.name} takes rewards to have a standard deviation of {assumed:.4g} around their means (noise), but those "
        f"of {problem.name} have {true:.4g}: it trusts them too {far}, and so does theory's value, with which it is "
        f"compared. {way_out(policy, f'{true:.4g}')}"
    )


def noise_hint(policy: Policy) -> str:
    """Where to look if a policy that has a noise of its own does worse than it should."""
    if not isinstance(getattr(policy, "noise", None), int | float):
        return ""
    told = "noise=..." if made_by_user(policy) else typed(policy, "...")
    return f", see whether the policy knows how noisy rewards are ({told})"


def another_range(policy: Policy, factor: float) -> str:
    """How to search beyond the end of a range, where the policy's noise decides how wide that is."""
    if not policy.noise_scales:
        return ""
    noise = vars(policy)["noise"] * factor
    return f" To look there, take {factor:g} times its noise: {typed(policy, f'{noise:.4g}')}."


def way_out(policy: Policy, noise: str) -> str:
    """What to type instead."""
    if made_by_user(policy):
        return f"Make it anew, as {type(policy).__name__}(..., noise={noise}) or the function that makes it."
    return f"Tell it: {typed(policy, noise)}."


def made_by_user(policy: Policy) -> bool:
    """A policy that carries its own name is a user's, and nobody else knows how it is made."""
    return any(field.name == "name" for field in fields(policy))  # type: ignore[arg-type]


def typed(policy: Policy, noise: str) -> str:
    """How a policy of the shelf is told the noise."""
    return f"{policy.name}:noise={noise} on the command line, {type(policy).__name__}(noise={noise}) in Python"
