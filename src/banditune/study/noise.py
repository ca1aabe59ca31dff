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
        f"compared. {way_out(policy, true)}"
    )


def way_out(policy: Policy, noise: float) -> str:
    """What to type instead; a policy that carries its own name is a user's."""
    if any(field.name == "name" for field in fields(policy)):  # type: ignore[arg-type]
        return f"Make it anew, as {type(policy).__name__}(..., noise={noise:.4g}) or the function that makes it."
    return (
        f"Tell it: {policy.name}:noise={noise:.4g} on the command line, {type(policy).__name__}(noise={noise:.4g}) in "
        "Python."
    )
