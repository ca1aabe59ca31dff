"""A tuned value for the same policy in another library, and what is not the same there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from banditune.contracts import BadRequest
from banditune.descriptions import OWN, short
from banditune.results import Export, Tuning

Entry = Callable[[Mapping[str, Any], float, int], tuple[str, str, float, bool, str]]
"""From a policy's options, its tuned value and the horizon to (code, parameter, value, whether it is the same, words)."""

EVERY_ARM = "It must be told one reward of every arm before it is asked for the first time."
ANY_TIES = "Ties go to a random arm there, to the first one here."


def exported(tuning: Tuning, library: str) -> Export:
    """The equal parameter of a tuned policy in MABWiser or River."""
    if library not in LIBRARIES:
        raise BadRequest(f"the other library must be one of {', '.join(LIBRARIES)}, but got {library!r}.")
    made = tuning.setup.policy or {}
    entry = LIBRARIES[library].get(str(made.get("name")))
    if entry is None:
        raise BadRequest(
            f"{library} must have the same policy to be told its parameter, but it has none like {made.get('name')!r}; "
            f"it has {', '.join(LIBRARIES[library])}. Its own policies can be tuned with bt.foreign(...)."
        )
    if OWN in made:
        raise BadRequest(
            f"a policy from the shelf must be exported, but {made.get('name')!r} is your own ({made[OWN]}), and nobody "
            "knows its like elsewhere."
        )
    value = next(iter(tuning.params.values()), 0.0)
    code, parameter, equal, same, words = entry(made, value, tuning.setup.horizon)
    return Export(library, code, parameter, equal, same, words)


def log_of_the_step(horizon: int) -> str:
    """What it means that the other library has log(step) where the tuned policy has log(horizon)."""
    early = max(2, horizon // 100)
    share = math.sqrt(math.log(early) / math.log(horizon)) if horizon > 2 else 1.0
    return (
        f"Its width has the logarithm of the step, the tuned one that of the horizon, {horizon:,}: the two are the same at "
        f"the last step, and before that the other library's is narrower, {share:.0%} of it at step {early:,}. It explores "
        "less at first. For the value that is best there, tune 'ucb1-step', which has the same index."
    )


def scaled(made: Mapping[str, Any], value: float) -> float:
    """The factor of sqrt(2 log / pulls)."""
    return 2 * float(made.get("noise", 0.5)) * value


def mabwiser_ucb1(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    alpha = scaled(made, value)
    code = f"MAB(arms, LearningPolicy.UCB1(alpha={alpha!r}))"
    return code, "alpha", alpha, False, f"{log_of_the_step(horizon)} {EVERY_ARM}"


def mabwiser_step(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    alpha = scaled(made, value)
    return f"MAB(arms, LearningPolicy.UCB1(alpha={alpha!r}))", "alpha", alpha, True, f"The same index. {EVERY_ARM}"


def river_ucb1(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    delta = scaled(made, value)
    return f"bandit.UCB(delta={delta!r}, burn_in=1)", "delta", delta, False, f"{log_of_the_step(horizon)} {ANY_TIES}"


def river_step(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    delta = scaled(made, value)
    return f"bandit.UCB(delta={delta!r}, burn_in=1)", "delta", delta, True, f"The same index. {ANY_TIES}"


def mabwiser_epsilon(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    code = f"MAB(arms, LearningPolicy.EpsilonGreedy(epsilon={value!r}))"
    return code, "epsilon", value, True, f"The same rule. {EVERY_ARM}"


def river_epsilon(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    code = f"bandit.EpsilonGreedy(epsilon={value!r}, decay=0.0, burn_in=1)"
    return code, "epsilon", value, True, "The same rule, once every arm was pulled, with which it begins."


def no_width(code: str) -> Entry:
    """Thompson sampling as it is elsewhere: with nothing to tune."""

    def told(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
        prior = [list(map(float, pair)) for pair in np.atleast_2d(np.array(made.get("prior", (1, 1)), float))]
        same = value == 1.0 and prior == [[1.0, 1.0]]
        if prior != [[1.0, 1.0]]:
            return code, "", math.nan, False, f"It starts from Beta(1, 1), not from {short(prior)}, and has no width."
        words = (
            "The same rule."
            if same
            else (f"It has no width: it samples as gamma = 1 does, not as {value:.4g}, and loses what tuning gained.")
        )
        return code, "", math.nan, same, words

    return told


LIBRARIES: dict[str, dict[str, Entry]] = {
    "mabwiser": {
        "ucb1": mabwiser_ucb1,
        "ucb1-step": mabwiser_step,
        "epsilon-greedy": mabwiser_epsilon,
        "ts": no_width("MAB(arms, LearningPolicy.ThompsonSampling())"),
    },
    "river": {
        "ucb1": river_ucb1,
        "ucb1-step": river_step,
        "epsilon-greedy": river_epsilon,
        "ts": no_width("bandit.ThompsonSampling(reward_obj=proba.Beta())"),
    },
}
