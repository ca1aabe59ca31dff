"""Models of logs in which every arm has one mean reward: beta-binomial, beta rewards, Gaussian, and past campaigns."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Message, Setting
from banditune.core.request_errors import make_argument_error
from banditune.logs.campaign_logs import Logs, format_arm_list
from banditune.logs.models.beta_binomial import FittedBetaPrior, fit_beta_prior
from banditune.logs.models.beta_rewards import convert_to_counts, fit_reward_concentration
from banditune.logs.models.cell_summaries import (
    MIN_REWARD_CONCENTRATION,
    check_binary_rewards,
    count_successes,
    pool_cell_variances,
)
from banditune.logs.models.fitted_model import FitOptions, FittedModel, resolve_problem_arms, select_arm_names
from banditune.logs.models.mean_samplers import make_beta_sampler, make_normal_sampler
from banditune.logs.models.normal_normal import FittedNormalPriors, NormalCells, fit_normal_priors
from banditune.logs.models.partial_pooling import fit_pooled_priors
from banditune.logs.models.reward_shape import (
    compute_excess_kurtosis,
    describe_reward_shape,
    pool_residuals,
    split_residuals_by_arm,
)
from banditune.logs.models.within_campaign import CellPosteriors, compute_beta_posteriors, compute_normal_posteriors
from banditune.problems.bernoulli_arms import Bernoulli
from banditune.problems.beta_arms import BetaRewards
from banditune.problems.campaigns import Campaigns
from banditune.problems.gaussian_arms import Gaussian
from banditune.results.log_results import FittedParameter

FEW_CAMPAIGNS_PER_ARM = 5
"""The number of campaigns of an arm below which a note is made."""


def fit_beta_binomial_model(logs: Logs, options: FitOptions) -> FittedModel:
    """Fit mean rewards from a beta distribution, common to all arms or one per arm."""
    check_binary_rewards(logs, "beta-binomial")
    fitted, priors = _fit_beta_priors(logs, logs.total, logs.pulls - logs.total, options, logs.pulls)
    problem = Bernoulli(
        resolve_problem_arms(logs, options), _format_prior_option(priors, options), select_arm_names(logs, options)
    )
    counts = np.stack([logs.total, logs.pulls - logs.total], axis=1)
    before = priors[logs.arm]
    return FittedModel(
        problem, fitted.estimates, fitted.notes, make_beta_sampler(before), make_beta_sampler(before + counts), "binary"
    )


def fit_beta_rewards_model(logs: Logs, options: FitOptions) -> FittedModel:
    """Fit beta rewards around mean rewards from a beta distribution."""
    if logs.rewards == "real":
        raise InvalidRequest(
            "rewards must be in [0, 1] for the model 'beta', but these are real; try {}.",
            Setting("model", "gaussian"),
            argument="model",
            code="unsupported",
        )
    pool_cell_variances(logs)
    pulls = logs.pulls.astype(float)
    v, fitted = fit_reward_concentration(logs.campaign, pulls, logs.mean, logs.squares, options.confidence)
    if v < MIN_REWARD_CONCENTRATION:
        raise InvalidRequest(
            "some rewards must be between 0 and 1 for the model 'beta', but all are 0 or 1; try {}.",
            Setting("model", "beta-binomial"),
            argument="model",
            code="unsupported",
        )
    counts = convert_to_counts(pulls, logs.mean, v)
    prior_fit, priors = _fit_beta_priors(logs, *counts, options, pulls * (v + 1))
    before = priors[logs.arm]
    samplers = make_beta_sampler(before), make_beta_sampler(before + np.stack(counts, axis=1))
    problem = BetaRewards(
        resolve_problem_arms(logs, options), _format_prior_option(priors, options), v, select_arm_names(logs, options)
    )
    return FittedModel(problem, (*prior_fit.estimates, fitted), prior_fit.notes, *samplers, "unit", v)


def fit_gaussian_model(logs: Logs, options: FitOptions) -> FittedModel:
    """Fit mean rewards from a normal distribution, common to all arms or one per arm, and normal noise."""
    fitted, priors = _fit_gaussian_priors(logs, options)
    shape = (split_residuals_by_arm(logs) if options.per_arm else ()) or pool_residuals(logs)
    problem = Gaussian(
        resolve_problem_arms(logs, options),
        _format_prior_option(priors, options),
        fitted.noise,
        select_arm_names(logs, options),
        shape,
    )
    before = priors[logs.arm]
    weight = 1 / before[:, 1] ** 2 + logs.pulls / fitted.noise**2
    mean = (before[:, 0] / before[:, 1] ** 2 + logs.total / fitted.noise**2) / weight
    samplers = make_normal_sampler(before), make_normal_sampler(np.stack([mean, 1 / np.sqrt(weight)], axis=1))
    notes = (*fitted.notes, describe_reward_shape(logs, bool(shape)))
    return FittedModel(
        problem, fitted.estimates, notes, *samplers, "real", fitted.noise, excess_kurtosis=compute_excess_kurtosis(logs)
    )


def fit_campaigns_model(logs: Logs, options: FitOptions) -> FittedModel:
    """Resample past campaigns.

    Each arm's mean is drawn from its posterior, so that noise is not mistaken for a difference between arms.
    """
    if logs.arm_counts.max() < 2:
        raise InvalidRequest(
            "the model 'campaigns' must have a campaign with two arms or more, but all have one.",
            argument="logs",
            code="insufficient-data",
        )
    full_campaigns = np.flatnonzero(logs.arm_counts >= options.arms)
    if not len(full_campaigns):
        raise make_argument_error(
            "arms",
            "out-of-range",
            f"must be at most {logs.arm_counts.max()}, the most that a campaign had, but got {options.arms}.",
        )
    estimates, notes, posteriors, scale = _compute_cell_posteriors(logs, options)
    if len(full_campaigns) < len(logs.campaigns):
        left_out = len(logs.campaigns) - len(full_campaigns)
        notes = (*notes, f"{left_out} campaigns with fewer than {options.arms} arms are left out")
    bounds = np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))
    rows = tuple(tuple(map(tuple, posteriors.posterior[bounds[c] : bounds[c + 1]].tolist())) for c in full_campaigns)
    shape = pool_residuals(logs)
    how: dict[str, dict[str, Any]] = {
        "real": {"noise": scale, "residuals": shape},
        "unit": {"v": scale},
        "binary": {},
    }
    notes = (*notes, *([describe_reward_shape(logs, bool(shape))] if logs.rewards == "real" else []))
    problem = Campaigns(rows, logs.rewards, options.arms, names=select_arm_names(logs, options), **how[logs.rewards])
    make_sampler = make_normal_sampler if logs.rewards == "real" else make_beta_sampler
    after = make_sampler(posteriors.posterior)
    all_estimates = (*estimates, posteriors.spread)
    fit_notes, kurtosis = (*notes, *posteriors.notes), compute_excess_kurtosis(logs)
    return FittedModel(
        problem, all_estimates, fit_notes, after, after, logs.rewards, scale, make_sampler(posteriors.prior), kurtosis
    )


def _compute_cell_posteriors(
    logs: Logs, options: FitOptions
) -> tuple[tuple[FittedParameter, ...], tuple[str, ...], CellPosteriors, float]:
    """Compute posteriors of cells, estimates and notes of the common prior, and the noise, or v of unit rewards."""
    pulls = logs.pulls.astype(float)
    if logs.rewards == "real":
        normal, _ = _fit_gaussian_priors(logs, options)
        return (
            normal.estimates,
            normal.notes,
            compute_normal_posteriors(logs, normal.noise, options.confidence),
            normal.noise,
        )
    v, estimates, counts = count_successes(logs, options.confidence)
    common_prior, _ = _fit_beta_priors(logs, *counts, options, pulls if logs.rewards == "binary" else pulls * (v + 1))
    posteriors = compute_beta_posteriors(logs.campaign, *counts, options.confidence)
    return (*common_prior.estimates, *estimates), common_prior.notes, posteriors, v


def _fit_beta_priors(
    logs: Logs, successes: FloatArray, failures: FloatArray, options: FitOptions, trials: FloatArray | IntArray
) -> tuple[FittedBetaPrior, FloatArray]:
    """Fit the common beta distribution, or those of the arms; returns it and a row (a, b) for each arm's name."""
    if len(successes) < 2 or float(trials.max()) < 2:
        raise InvalidRequest(
            "logs must have two arms or more, one of them pulled twice in a campaign, but these do not, so differences "
            "beyond chance cannot be estimated; use more logs.",
            argument="logs",
            code="insufficient-data",
        )
    common_prior = fit_beta_prior(successes, failures, options.confidence)
    table = np.tile([common_prior.a, common_prior.b], (len(logs.arms), 1))
    if not options.per_arm:
        return common_prior, table
    repeated_arms = np.bincount(logs.arm) > 1
    if not repeated_arms.any():
        return common_prior._replace(
            notes=(*common_prior.notes, *_note_arms_without_prior(list(logs.arms), "the beta distribution"))
        ), table
    pooled = fit_pooled_priors(logs.arm, logs.arms, successes, failures, options.confidence)
    return FittedBetaPrior(common_prior.a, common_prior.b, pooled.estimates, pooled.notes), pooled.table


def _fit_gaussian_priors(logs: Logs, options: FitOptions) -> tuple[FittedNormalPriors, FloatArray]:
    """Fit the common normal distribution, or those of the arms; returns it and a row (mean, sd) for each arm's name."""
    inside = pool_cell_variances(logs)
    if len(logs.pulls) < 3:
        raise InvalidRequest(
            f"logs must have three arms or more for a normal prior, but they have {len(logs.pulls)}.",
            argument="logs",
            code="insufficient-data",
        )
    pulls = logs.pulls.astype(float)
    common_prior = fit_normal_priors([NormalCells(logs.mean, pulls)], inside, options.confidence, [""])
    table = np.tile(common_prior.priors[0], (len(logs.arms), 1))
    if not options.per_arm:
        return common_prior, table
    frequent_arms = [arm for arm in range(len(logs.arms)) if (logs.arm == arm).sum() >= 3]
    without = [name for arm, name in enumerate(logs.arms) if arm not in frequent_arms]
    if not frequent_arms:
        return common_prior._replace(
            notes=(*common_prior.notes, *_note_arms_without_prior(without, "the normal distribution"))
        ), table
    groups = [NormalCells(logs.mean[logs.arm == arm], pulls[logs.arm == arm]) for arm in frequent_arms]
    arm_fits = fit_normal_priors(groups, inside, options.confidence, [logs.arms[arm] for arm in frequent_arms])
    table[frequent_arms] = arm_fits.priors
    more = _note_arms_without_prior(without, "the normal distribution") + _note_sparse_arms(logs)
    return arm_fits._replace(notes=(*arm_fits.notes, *more)), table


def _note_arms_without_prior(names: list[str], replacement: str) -> list[str]:
    """Return a note on arms that cannot have their own prior."""
    return [
        f"{format_arm_list(names)}: in too few campaigns for a separate prior; it is {replacement} of all arms"
    ] * bool(names)


def _note_sparse_arms(logs: Logs) -> list[str]:
    """Return a note on arms with too little data for a prior per arm."""
    often = np.bincount(logs.arm)
    sparse_count = int(((often > 1) & (often < FEW_CAMPAIGNS_PER_ARM)).sum())
    if not sparse_count:
        return []
    return [
        Message(
            "{:,} arms are in fewer than {} campaigns: their intervals are wide, because two campaigns have little "
            "information on an arm's own prior; without {} one prior is estimated from all arms",
            *(sparse_count, FEW_CAMPAIGNS_PER_ARM, Argument("per_arm")),
        )
    ]


def _format_prior_option(table: FloatArray, options: FitOptions) -> Any:
    """Format a prior as a pair, or as a pair per arm."""
    return table.tolist() if options.per_arm else table[0].tolist()
