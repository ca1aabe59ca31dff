"""A tuned value for the same policy in another library, and what is not the same there."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from banditune.core.descriptions import OWN_CODE_KEY, shorten_value
from banditune.core.errors import InvalidRequest
from banditune.results.tuning_results import ExportedPolicy, Tuning

ExportRule = Callable[[Mapping[str, Any], float, int], tuple[str, str, float, bool, str]]
"""From a policy's options, its tuned value and the horizon to (code, parameter, value, whether it is the same, words)."""


EVERY_ARM_NOTE = "It must be told one reward of every arm before it is asked for the first time."


RANDOM_TIES_NOTE = "Ties go to a random arm there, to the first one here."


def export_params(tuning: Tuning, library: str) -> ExportedPolicy:
    """The equal parameter of a tuned policy in MABWiser or River."""
    if library not in EXPORT_RULES:
        raise InvalidRequest(f"the other library must be one of {', '.join(EXPORT_RULES)}, but got {library!r}.")
    made = tuning.setup.policy or {}
    entry = EXPORT_RULES[library].get(str(made.get("name")))
    if entry is None:
        raise InvalidRequest(
            f"{library} must have the same policy to be told its parameter, but it has none like {made.get('name')!r}; "
            f"it has {', '.join(EXPORT_RULES[library])}. Its own policies can be tuned with bt.wrap_policy(...)."
        )
    if OWN_CODE_KEY in made:
        raise InvalidRequest(
            f"a policy from the shelf must be exported, but {made.get('name')!r} is your own ({made[OWN_CODE_KEY]}), and nobody "
            "knows its like elsewhere."
        )
    value = next(iter(tuning.params.values()), 0.0)
    code, parameter, equal, same, words = entry(made, value, tuning.setup.horizon)
    return ExportedPolicy(library, code, parameter, equal, same, words)


def explain_step_logarithm(horizon: int) -> str:
    """What it means that the other library has log(step) where the tuned policy has log(horizon)."""
    early = max(2, horizon // 100)
    share = math.sqrt(math.log(early) / math.log(horizon)) if horizon > 2 else 1.0
    return (
        f"Its width has the logarithm of the step, the tuned one that of the horizon, {horizon:,}: the two are the same at "
        f"the last step, and before that the other library's is narrower, {share:.0%} of it at step {early:,}. It explores "
        "less at first. For the value that is best there, tune 'ucb1-step', which has the same index."
    )


def scale_width(made: Mapping[str, Any], value: float) -> float:
    """The factor of sqrt(2 log / pulls)."""
    return 2 * float(made.get("noise", 0.5)) * value


def export_mabwiser_ucb1(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    alpha = scale_width(made, value)
    code = f"MAB(arms, LearningPolicy.UCB1(alpha={alpha!r}))"
    return code, "alpha", alpha, False, f"{explain_step_logarithm(horizon)} {EVERY_ARM_NOTE}"


def export_mabwiser_ucb1_step(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    alpha = scale_width(made, value)
    return f"MAB(arms, LearningPolicy.UCB1(alpha={alpha!r}))", "alpha", alpha, True, f"The same index. {EVERY_ARM_NOTE}"


def export_river_ucb1(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    delta = scale_width(made, value)
    return (
        f"bandit.UCB(delta={delta!r}, burn_in=1)",
        "delta",
        delta,
        False,
        f"{explain_step_logarithm(horizon)} {RANDOM_TIES_NOTE}",
    )


def export_river_ucb1_step(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    delta = scale_width(made, value)
    return f"bandit.UCB(delta={delta!r}, burn_in=1)", "delta", delta, True, f"The same index. {RANDOM_TIES_NOTE}"


def export_mabwiser_epsilon_greedy(
    made: Mapping[str, Any], value: float, horizon: int
) -> tuple[str, str, float, bool, str]:
    code = f"MAB(arms, LearningPolicy.EpsilonGreedy(epsilon={value!r}))"
    return code, "epsilon", value, True, f"The same rule. {EVERY_ARM_NOTE}"


def export_river_epsilon_greedy(
    made: Mapping[str, Any], value: float, horizon: int
) -> tuple[str, str, float, bool, str]:
    code = f"bandit.EpsilonGreedy(epsilon={value!r}, decay=0.0, burn_in=1)"
    return code, "epsilon", value, True, "The same rule, once every arm was pulled, with which it begins."


def make_thompson_rule(code: str) -> ExportRule:
    """Thompson sampling as it is elsewhere: with nothing to tune."""

    def told(made: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
        prior = [list(map(float, pair)) for pair in np.atleast_2d(np.array(made.get("prior", (1, 1)), float))]
        same = value == 1.0 and prior == [[1.0, 1.0]]
        if prior != [[1.0, 1.0]]:
            return (
                code,
                "",
                math.nan,
                False,
                f"It starts from Beta(1, 1), not from {shorten_value(prior)}, and has no width.",
            )
        words = (
            "The same rule."
            if same
            else (f"It has no width: it samples as gamma = 1 does, not as {value:.4g}, and loses what tuning gained.")
        )
        return code, "", math.nan, same, words

    return told


EXPORT_RULES: dict[str, dict[str, ExportRule]] = {
    "mabwiser": {
        "ucb1": export_mabwiser_ucb1,
        "ucb1-step": export_mabwiser_ucb1_step,
        "epsilon-greedy": export_mabwiser_epsilon_greedy,
        "ts": make_thompson_rule("MAB(arms, LearningPolicy.ThompsonSampling())"),
    },
    "river": {
        "ucb1": export_river_ucb1,
        "ucb1-step": export_river_ucb1_step,
        "epsilon-greedy": export_river_epsilon_greedy,
        "ts": make_thompson_rule("bandit.ThompsonSampling(reward_obj=proba.Beta())"),
    },
}
