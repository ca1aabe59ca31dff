"""Exports a tuned value to the same policy in another library, with notes on differences."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from banditune.core.descriptions import OWN_CODE_KEY, shorten_value
from banditune.core.errors import InvalidRequest
from banditune.core.request_errors import make_name_error
from banditune.results.tuning_results import ExportedPolicy, Tuning

ExportRule = Callable[[Mapping[str, Any], float, int], tuple[str, str, float, bool, str]]
"""A function from a policy's options, its tuned value and the horizon to (code, parameter, value, is_same_rule, notes)."""


EVERY_ARM_NOTE = "It must be given one reward of every arm before its first decision."


RANDOM_TIES_NOTE = "Ties go to a random arm there, and to the first one here."


def export_params(tuning: Tuning, library: str) -> ExportedPolicy:
    """Export the tuned parameter of a policy to MABWiser or River.

    Parameters
    ----------
    tuning : Tuning
        The result of `tune`, for a policy that the other library has too.
    library : {"mabwiser", "river"}
        The other library.

    Returns
    -------
    ExportedPolicy
        The code that makes the policy there, its parameter, and notes on differences.

    Raises
    ------
    InvalidRequest
        If the library is another one or lacks the policy, or the policy is your own.

    Examples
    --------
    >>> import banditune as bt
    >>> search = bt.Search(validate=50)
    >>> result = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=100, budget=100, search=search)
    >>> exported = bt.adapters.export_params(result, "mabwiser")
    >>> exported.parameter, exported.value == result.params["gamma"]
    ('alpha', True)
    """
    if library not in EXPORT_RULES:
        raise make_name_error("the other library", EXPORT_RULES, library, argument="library")
    config = tuning.setup.policy or {}
    entry = EXPORT_RULES[library].get(str(config.get("name")))
    if entry is None:
        raise InvalidRequest(
            f"only policies that {library} has, too, can be exported, but it has none like {config.get('name')!r}; "
            f"it has {', '.join(EXPORT_RULES[library])}. Its own policies can be tuned with bt.wrap_policy(...).",
            argument="library",
            code="unsupported",
        )
    if OWN_CODE_KEY in config:
        raise InvalidRequest(
            f"only policies of this package can be exported, but {config.get('name')!r} is your own "
            f"({config[OWN_CODE_KEY]}); its equivalent in another library is not known.",
            argument="library",
            code="unsupported",
        )
    value = next(iter(tuning.params.values()), 0.0)
    code, parameter, equal, is_same_rule, notes = entry(config, value, tuning.setup.horizon)
    return ExportedPolicy(
        library=library, code=code, parameter=parameter, value=equal, is_same_rule=is_same_rule, notes=notes
    )


def explain_step_logarithm(horizon: int) -> str:
    """Explain how an index with log(step) differs from the tuned one with log(horizon)."""
    step = max(2, horizon // 100)
    share = math.sqrt(math.log(step) / math.log(horizon)) if horizon > 2 else 1.0
    return (
        f"Its width has the logarithm of the step, the tuned one that of the horizon, {horizon:,}. They are equal at the "
        f"last step. Before, the width in the other library is smaller, {share:.0%} of the tuned one at step {step:,}, so "
        "it explores less in the first steps. For the best value there, tune 'ucb1-step', which has the same index."
    )


def scale_width(config: Mapping[str, Any], value: float) -> float:
    """Return the factor of sqrt(2 log / pulls)."""
    return 2 * float(config.get("noise", 0.5)) * value


def export_mabwiser_ucb1(config: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    alpha = scale_width(config, value)
    code = f"MAB(arms, LearningPolicy.UCB1(alpha={alpha!r}))"
    return code, "alpha", alpha, False, f"{explain_step_logarithm(horizon)} {EVERY_ARM_NOTE}"


def export_mabwiser_ucb1_step(
    config: Mapping[str, Any], value: float, horizon: int
) -> tuple[str, str, float, bool, str]:
    alpha = scale_width(config, value)
    return f"MAB(arms, LearningPolicy.UCB1(alpha={alpha!r}))", "alpha", alpha, True, f"The same index. {EVERY_ARM_NOTE}"


def export_river_ucb1(config: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    delta = scale_width(config, value)
    return (
        f"bandit.UCB(delta={delta!r}, burn_in=1)",
        "delta",
        delta,
        False,
        f"{explain_step_logarithm(horizon)} {RANDOM_TIES_NOTE}",
    )


def export_river_ucb1_step(config: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
    delta = scale_width(config, value)
    return f"bandit.UCB(delta={delta!r}, burn_in=1)", "delta", delta, True, f"The same index. {RANDOM_TIES_NOTE}"


def export_mabwiser_epsilon_greedy(
    config: Mapping[str, Any], value: float, horizon: int
) -> tuple[str, str, float, bool, str]:
    code = f"MAB(arms, LearningPolicy.EpsilonGreedy(epsilon={value!r}))"
    return code, "epsilon", value, True, f"The same rule. {EVERY_ARM_NOTE}"


def export_river_epsilon_greedy(
    config: Mapping[str, Any], value: float, horizon: int
) -> tuple[str, str, float, bool, str]:
    code = f"bandit.EpsilonGreedy(epsilon={value!r}, decay=0.0, burn_in=1)"
    return code, "epsilon", value, True, "The same rule, after it has pulled every arm once."


def make_thompson_rule(code: str) -> ExportRule:
    """Make the rule for Thompson sampling in a library in which it has no parameter."""

    def export(config: Mapping[str, Any], value: float, horizon: int) -> tuple[str, str, float, bool, str]:
        prior = [list(map(float, pair)) for pair in np.atleast_2d(np.array(config.get("prior", (1, 1)), float))]
        is_same_rule = value == 1.0 and prior == [[1.0, 1.0]]
        if prior != [[1.0, 1.0]]:
            return (
                code,
                "",
                math.nan,
                False,
                f"It starts from Beta(1, 1), not from {shorten_value(prior)}, and has no width.",
            )
        notes = (
            "The same rule."
            if is_same_rule
            else (f"It has no width: it samples as with gamma = 1, not {value:.4g}, so the gain of tuning is lost.")
        )
        return code, "", math.nan, is_same_rule, notes

    return export


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
