"""Models of logs in which a vector per campaign determines the mean rewards: linear, logistic, and correlated arms."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Setting
from banditune.logs.campaign_logs import Logs, format_arm_list
from banditune.logs.models.cell_summaries import check_binary_rewards, pool_cell_variances
from banditune.logs.models.fitted_model import FitOptions, FittedModel, check_arms_option
from banditune.logs.models.linear_mixed_model import fit_linear_mixed_model, sum_regressions
from banditune.logs.models.logistic_mixed_model import fit_logistic_mixed_model, make_reward_table
from banditune.logs.models.mean_samplers import make_logistic_samplers, make_score_samplers
from banditune.logs.models.random_effects import (
    FittedGaussian,
    estimate_mean_correlation,
    rescale_gaussian,
    summarize_gaussian,
)
from banditune.logs.models.reward_shape import compute_excess_kurtosis, describe_reward_shape, pool_residuals
from banditune.problems.generalized_linear import Linear, Logistic

MAX_FULL_COVARIANCE_ARMS = 20
"""The largest number of arms for which a full covariance is estimated."""


def fit_linear_features_model(logs: Logs, options: FitOptions) -> FittedModel:
    """Fit rewards x'theta with noise, theta of every campaign from a Gaussian."""
    features, scale = _scale_features(logs, "linear")
    pool_cell_variances(logs)
    kind, notes = _choose_covariance_kind(len(logs.campaigns), features.shape[1], "diagonal")
    names = _list_feature_names(logs)
    fitted = fit_linear_mixed_model(sum_regressions(logs, features), kind, names, options.confidence)
    gauss = rescale_gaussian(fitted.gaussian, scale)
    arms, more = _make_featured_arms(logs, options)
    shape = pool_residuals(logs)
    problem = Linear(prior=_format_gaussian_prior(gauss), noise=fitted.noise, residuals=shape, **arms)
    estimates = (*summarize_gaussian(gauss, names, options.confidence), fitted.estimates[-1])
    fit_notes = (*notes, *_note_regularized_covariance(gauss), *more, describe_reward_shape(logs, bool(shape)))
    samplers = make_score_samplers(logs, gauss)
    return FittedModel(
        problem, estimates, fit_notes, *samplers, "real", fitted.noise, excess_kurtosis=compute_excess_kurtosis(logs)
    )


def fit_logistic_features_model(logs: Logs, options: FitOptions) -> FittedModel:
    """Fit 0/1 rewards with the logistic function of x'theta, theta of every campaign from a Gaussian."""
    check_binary_rewards(logs, "logistic")
    features, scale = _scale_features(logs, "logistic")
    kind, notes = _choose_covariance_kind(len(logs.campaigns), features.shape[1], "diagonal")
    gauss, share = fit_logistic_mixed_model(make_reward_table(logs, features), kind)
    gauss = rescale_gaussian(gauss, scale)
    arms, more = _make_featured_arms(logs, options)
    problem = Logistic(prior=_format_gaussian_prior(gauss), **arms)
    estimates = summarize_gaussian(gauss, _list_feature_names(logs), options.confidence)
    return FittedModel(
        problem,
        estimates,
        (*notes, *_note_regularized_covariance(gauss), *_note_few_effective_draws(share), *more),
        *make_logistic_samplers(logs, gauss),
        "binary",
    )


def fit_correlated_arms_model(logs: Logs, options: FitOptions) -> FittedModel:
    """Fit a joint Gaussian of the logits of arms' mean rewards, so that arms of a campaign are correlated."""
    check_binary_rewards(logs, "correlated")
    arms = len(logs.arms)
    rare_arms = [
        str(name)
        for name, presence in zip(logs.arms, np.bincount(logs.arm, minlength=arms), strict=True)
        if presence < 3
    ]
    if rare_arms:
        listed = ", ".join(rare_arms[:5]) + (f" and {len(rare_arms) - 5} more" if len(rare_arms) > 5 else "")
        raise InvalidRequest(
            "each arm must be in 3 campaigns or more for the model 'correlated', but {} are in fewer of the {} "
            "campaigns; try {}, or leave these arms out. A backtest fits a part of the campaigns, "
            "{} of them.",
            *(listed, len(logs.campaigns), Setting("model", "campaigns"), Argument("share")),
            argument="model",
            code="insufficient-data",
        )
    check_arms_option(options, arms, "the number of arms in the logs")
    # Only campaigns with both arms have information on the correlation of two arms.
    presence = np.zeros((len(logs.campaigns), arms))
    presence[logs.campaign, logs.arm] = 1
    kind, notes = _choose_covariance_kind(
        int(max((presence.T @ presence).min(), 3)), arms, "alike", uneven=bool((presence == 0).any())
    )
    mixed = np.bincount(logs.arm, (logs.total > 0) & (logs.total < logs.pulls), arms)
    if kind == "full" and mixed.min() < 3:
        kind = "alike"
        reason = "some arms have successes and failures in fewer than 3 campaigns, too few for a separate spread"
        notes = (*notes, f"{reason}: {COMMON_CORRELATION_NOTE}")
    rare_outcomes = _compute_rare_outcomes(logs)
    is_sparse = rare_outcomes < SPARSE_OUTCOMES
    logs, more = _add_half_outcomes(logs)
    notes = (*notes, *more)
    unit = np.eye(arms)
    indicator_logs = replace(logs, features=unit[logs.arm], feature_names=(), intercept=False)
    table = make_reward_table(indicator_logs, unit[logs.arm])
    gauss, share = fit_logistic_mixed_model(table, kind)
    if is_sparse and kind == "full" and gauss.is_regularized:
        kind = "alike"
        notes = (*notes, f"successes or failures are too rare for a full covariance: {COMMON_CORRELATION_NOTE}")
        gauss, share = fit_logistic_mixed_model(table, kind)
    summary = summarize_gaussian(gauss, logs.arms, options.confidence)
    if rare_outcomes < 1 or (is_sparse and gauss.is_regularized):
        # The data do not bound the sds from below. The regularization keeps them above 0.
        summary = tuple(replace(one, low=0.0) if one.name.startswith("sd[") else one for one in summary)
    problem = Logistic(prior=_format_gaussian_prior(gauss), features=unit, names=logs.arms)
    estimates = (
        *summary,
        estimate_mean_correlation(gauss, options.confidence),
    )
    notes = (
        *notes,
        *_note_regularized_covariance(gauss),
        *_note_few_effective_draws(share),
        "means and sds are of the logit of an arm's mean reward",
    )
    return FittedModel(problem, estimates, notes, *make_logistic_samplers(indicator_logs, gauss), "binary")


COMMON_CORRELATION_NOTE = "all arms have one common sd and one common correlation"


SPARSE_OUTCOMES = 10.0
"""The fewest successes and failures of a cell, on average, with which a full covariance of logits is estimated."""


def _compute_rare_outcomes(logs: Logs) -> float:
    """Compute the mean number of the rarer outcome in a cell."""
    return float(min(logs.total.mean(), (logs.pulls - logs.total).mean()))


def _add_half_outcomes(logs: Logs) -> tuple[Logs, tuple[str, ...]]:
    """Add half outcomes for arms without successes or without failures, with a note on them.

    The most likely logit of an arm without a success is minus infinity. Such arms get half a success and half a failure
    (Haldane 1956, Anscombe 1956), distributed over their campaigns by pulls.
    """
    arms = len(logs.arms)
    total, pulls = np.bincount(logs.arm, logs.total, arms), np.bincount(logs.arm, logs.pulls, arms)
    is_constant = (total == 0) | (total == pulls)
    if not is_constant.any():
        return logs, ()
    share = np.where(is_constant[logs.arm], logs.pulls / pulls[logs.arm], 0.0)
    names = [logs.arms[arm] for arm in np.flatnonzero(is_constant)]
    note = f"{format_arm_list(names)} always paid the same: half a success and half a failure are added to each"
    return replace(logs, total=logs.total + share / 2, pulls=logs.pulls + share), (note,)


def _scale_features(logs: Logs, model: str) -> tuple[FloatArray, FloatArray]:
    """Scale the features of cells to a typical size of 1; returns them and their sizes."""
    if logs.features is None:
        raise InvalidRequest(
            f"the model {model!r} must have features of arms, but the logs have none; name their columns.",
            argument="model",
            code="missing",
        )
    scale = np.sqrt((logs.features**2).mean(axis=0))
    empty = np.flatnonzero(scale == 0)
    if len(empty):
        raise InvalidRequest(
            f"features must not be 0 for all arms, but {_list_feature_names(logs)[empty[0]]!r} is; leave it out.",
            argument="logs",
            code="insufficient-data",
        )
    features = logs.features / scale
    if np.linalg.matrix_rank(features, tol=1e-6 * math.sqrt(len(features))) < features.shape[1]:
        raise InvalidRequest(
            "features must be linearly independent, but one is a linear combination of others; leave one out. An indicator "
            "for every arm and a constant are such a case; {} leaves out the constant that a fit adds.",
            Setting("intercept", False),
            argument="logs",
            code="insufficient-data",
        )
    return features, scale


def _list_feature_names(logs: Logs) -> tuple[str, ...]:
    """List the names of features, or their numbers."""
    dims = 0 if logs.features is None else logs.features.shape[1]
    return logs.feature_names or tuple(str(arm) for arm in range(dims))


def _choose_covariance_kind(count: int, dims: int, simple: str, uneven: bool = False) -> tuple[str, tuple[str, ...]]:
    """Choose the kind of covariance that this number of campaigns is enough for.

    More campaigns are needed if they have different arms.
    """
    if count < 3:
        raise InvalidRequest(
            f"there must be 3 campaigns or more to estimate their differences, but there are {count}; use logs of more, or "
            "divide long ones into several.",
            argument="logs",
            code="insufficient-data",
        )
    if count >= (3 * dims if uneven else dims + 2) and (simple == "diagonal" or dims <= MAX_FULL_COVARIANCE_ARMS):
        return "full", ()
    note = {
        "diagonal": "coordinates of theta are assumed to be independent",
        "alike": COMMON_CORRELATION_NOTE,
    }
    those = " with the same arms" if uneven else ""
    return simple, (f"{count} campaigns{those} are too few for a full covariance of {dims} numbers: {note[simple]}",)


def _make_featured_arms(logs: Logs, options: FitOptions) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Make the arms of a problem, and notes about them.

    If all campaigns have the same arms, these are the arms. Otherwise arms have features from a Gaussian.
    """
    assert logs.features is not None
    first = logs.features[: len(logs.arms)]
    constant: dict[str, Any] = {"intercept": True} if logs.intercept else {}
    if logs.same_arms and np.array_equal(np.tile(first, (len(logs.campaigns), 1)), logs.features):
        check_arms_option(options, len(logs.arms), "the number of arms with known features")
        return {"features": first, "names": logs.arms, **constant}, ()
    arm_features = logs.features[:, 1:] if logs.intercept else logs.features
    mean, spread = arm_features.mean(axis=0), np.atleast_2d(np.cov(arm_features.T))
    # A constant feature has no variance, but a covariance must be positive definite.
    spread = spread + np.diag(1e-6 * (arm_features**2).mean(axis=0))
    reason = "features" if logs.same_arms else "arms"
    note = (
        f"{reason} differ between campaigns: the problem draws features from a Gaussian with their mean and covariance"
    )
    return {"arms": options.arms, "feature_prior": (mean.tolist(), spread.tolist()), **constant}, (note,)


def _format_gaussian_prior(gauss: FittedGaussian) -> Any:
    """Format mean and covariance as options of a problem."""
    return gauss.mean.tolist(), ((gauss.covariance + gauss.covariance.T) / 2).tolist()


def _note_regularized_covariance(gauss: FittedGaussian) -> tuple[str, ...]:
    """Return a note on a covariance that was regularised."""
    note = (
        "in some direction theta does not differ between campaigns beyond chance; the covariance has a small variance"
    )
    return (f"{note} there, about as much as the logs allow",) if gauss.is_regularized else ()


def _note_few_effective_draws(share: float) -> tuple[str, ...]:
    """Return a note on importance sampling with few effective draws."""
    if share >= 0.1:
        return ()
    return (
        f"posteriors are far from normal: the effective share of draws is only {share:.0%}, so estimates are less certain "
        "than stated",
    )
