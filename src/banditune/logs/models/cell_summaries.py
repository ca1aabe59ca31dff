"""Summaries of the cells of logs (an arm in a campaign each): the pooled variance of a reward, and success counts."""

from __future__ import annotations

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Setting
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.beta_rewards import convert_to_counts, fit_reward_concentration
from banditune.logs.models.normal_normal import WithinCellVariance
from banditune.results.log_results import FittedParameter

MIN_REWARD_CONCENTRATION = 0.01
"""The smallest v of beta rewards. With a smaller one, nearly all rewards are 0 or 1."""


def count_successes(
    logs: Logs, confidence: float
) -> tuple[float, tuple[FittedParameter, ...], tuple[FloatArray, FloatArray]]:
    """Count successes and failures of cells, or their equivalents for rewards in [0, 1]; also estimate v."""
    pulls = logs.pulls.astype(float)
    if logs.rewards == "binary":
        check_binary_rewards(logs, "campaigns")
        return 1.0, (), (logs.total, pulls - logs.total)
    pool_cell_variances(logs)
    v, fitted = fit_reward_concentration(logs.campaign, pulls, logs.mean, logs.squares, confidence)
    v = max(v, MIN_REWARD_CONCENTRATION)
    return v, (fitted,), convert_to_counts(pulls, logs.mean, v)


def check_binary_rewards(logs: Logs, model: str) -> None:
    """Check that rewards are 0 and 1, with some of each."""
    if logs.rewards != "binary":
        raise InvalidRequest(
            "the model {!r} must have rewards 0 and 1, but these are {}; try {}.",
            *(model, logs.rewards, Setting("model", "auto")),
            argument="model",
            code="unsupported",
        )
    total, pulls = float(logs.total.sum()), int(logs.pulls.sum())
    if total in (0, pulls):
        raise InvalidRequest(
            f"some rewards must be 0 and some 1, but all {pulls:,} are {total / pulls:g}, so differences between arms "
            "cannot be estimated; use longer logs, or give the prior yourself: Bernoulli(arms, prior=(a, b)).",
            argument="logs",
            code="insufficient-data",
        )


def pool_cell_variances(logs: Logs) -> WithinCellVariance:
    """Pool the variances within cells, or raise `InvalidRequest` if there are none."""
    if not np.isfinite(logs.squares).all():
        raise InvalidRequest(
            "logs of real rewards must have `squares`, from which the noise is estimated, but they are missing; give them.",
            argument="squares",
            code="missing",
        )
    degrees = float(logs.pulls.sum() - len(logs.pulls))
    if degrees < 1 or logs.squares.sum() <= 0:
        raise InvalidRequest(
            "some arm must be pulled twice in a campaign and pay different rewards, but none did, so the noise cannot be "
            "estimated; use more logs.",
            argument="logs",
            code="insufficient-data",
        )
    return WithinCellVariance(float(logs.squares.sum()), degrees)
