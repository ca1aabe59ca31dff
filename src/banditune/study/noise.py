"""Whether a policy knows how noisy rewards are, and how large."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from banditune.contracts import Policy, Problem
from banditune.descriptions import own_code
from banditune.engine.run import BLOCK, means_of

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
    if problem.rewards != "real" or problem.dims or policy.expected_means is None:
        return
    expected, give = policy.expected_means
    mean, sd = typical_means(problem)
    if abs(mean - expected) < FAR * give or not sd:
        return
    look = "bad" if mean > expected else "good"
    noise = problem.noise or getattr(policy, "noise", None)
    options = {"noise": f"{noise:.4g}"} if noise else {}
    yield (
        f"{policy.name} expects arms to pay {expected:.4g} on average, give or take {give:.4g} (prior), but those of "
        f"{problem.name} pay {mean:.4g}: arms that it has not tried look too {look}. "
        f"{way_out(policy, **options, prior=f'({mean:.4g}, {sd:.4g})')}"
    )


def typical_means(problem: Problem) -> tuple[float, float]:
    """Mean and standard deviation of what arms pay: as the problem knows them, or those of some instances."""
    if problem.usual_means is not None:
        mean, sd = problem.usual_means
        return mean, sd
    means = means_of(problem, 0, range(4 * BLOCK))
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
        f"compared. {way_out(policy, noise=f'{true:.4g}')}"
    )


def noise_hint(policy: Policy) -> str:
    """Where to look if a policy that has a noise of its own does worse than it should."""
    if not isinstance(getattr(policy, "noise", None), int | float):
        return ""
    told = "noise=..." if made_by_user(policy) else typed(policy, noise="...")
    return f", see whether the policy knows how noisy rewards are ({told})"


def another_range(policy: Policy, factor: float) -> str:
    """How to search beyond the end of a range, where the policy's noise decides how wide that is.

    What a user's own policy does with its noise nobody knows.
    """
    if not policy.noise_scales or made_by_user(policy):
        return ""
    noise = vars(policy)["noise"] * factor
    return f" To look there, take {factor:g} times its noise: {typed(policy, noise=f'{noise:.4g}')}."


def way_out(policy: Policy, **options: str) -> str:
    """What to type instead; options as Python takes them."""
    if made_by_user(policy):
        return f"Make it anew, as {type(policy).__name__}(..., {called(options)}) or the function that makes it."
    return f"Tell it: {typed(policy, **options)}."


def made_by_user(policy: Policy) -> bool:
    """A policy that carries its own name, or has a user's code, is a user's: nobody else knows how it is made."""
    return own_code(policy) is not None or any(field.name == "name" for field in fields(policy))  # type: ignore[arg-type]


def typed(policy: Policy, **options: str) -> str:
    """How a policy of the shelf is made with other options, which are as Python takes them."""
    words = ",".join(f"{name}={value.strip('()').replace(' ', '')}" for name, value in options.items())
    return f"{policy.name}:{words} on the command line, {type(policy).__name__}({called(options)}) in Python"


def called(options: Mapping[str, str]) -> str:
    """Options in a call."""
    return ", ".join(f"{name}={value}" for name, value in options.items())
