"""Whether a policy knows how noisy rewards are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields

from banditune.contracts import Policy, Problem

CLOSE = 1.5
"""A policy's noise is close to the problem's within this factor; estimates of it differ by less."""


def noise_warnings(policy: Policy, problem: Problem) -> Iterator[str]:
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
