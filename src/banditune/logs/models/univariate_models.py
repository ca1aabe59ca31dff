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
"""A note is made on arms in fewer campaigns than this."""


def fit_beta_binomial_model(logs: Logs, wish: FitOptions) -> FittedModel:
    """Mean rewards from a beta distribution, common to all arms or one per arm."""
    check_binary_rewards(logs, "beta-binomial")
    found, priors = _fit_beta_priors(logs, logs.total, logs.pulls - logs.total, wish, logs.pulls)
    problem = Bernoulli(
        resolve_problem_arms(logs, wish), _format_prior_option(priors, wish), select_arm_names(logs, wish)
    )
    given = np.stack([logs.total, logs.pulls - logs.total], axis=1)
    before = priors[logs.arm]
    return FittedModel(
        problem, found.estimates, found.notes, make_beta_sampler(before), make_beta_sampler(before + given), "binary"
    )


def fit_beta_rewards_model(logs: Logs, wish: FitOptions) -> FittedModel:
    """Beta rewards around mean rewards from a beta distribution."""
    if logs.rewards == "real":
        raise InvalidRequest(
            "the model 'beta' must have rewards in [0, 1], but these are real; try {}.",
            Setting("model", "gaussian"),
            argument="model",
            code="unsupported",
        )
    pool_cell_variances(logs)
    pulls = logs.pulls.astype(float)
    v, fitted = fit_reward_concentration(logs.campaign, pulls, logs.mean, logs.squares, wish.confidence)
    if v < MIN_REWARD_CONCENTRATION:
        raise InvalidRequest(
            "the model 'beta' must have rewards between 0 and 1, but these are all 0 or 1; try {}.",
            Setting("model", "beta-binomial"),
            argument="model",
            code="unsupported",
        )
    given = convert_to_counts(pulls, logs.mean, v)
    found, priors = _fit_beta_priors(logs, *given, wish, pulls * (v + 1))
    before = priors[logs.arm]
    drawn = make_beta_sampler(before), make_beta_sampler(before + np.stack(given, axis=1))
    problem = BetaRewards(
        resolve_problem_arms(logs, wish), _format_prior_option(priors, wish), v, select_arm_names(logs, wish)
    )
    return FittedModel(problem, (*found.estimates, fitted), found.notes, *drawn, "unit", v)


def fit_gaussian_model(logs: Logs, wish: FitOptions) -> FittedModel:
    """Mean rewards from a normal distribution, common to all arms or one per arm; rewards with normal noise."""
    found, priors = _fit_gaussian_priors(logs, wish)
    shape = (split_residuals_by_arm(logs) if wish.per_arm else ()) or pool_residuals(logs)
    problem = Gaussian(
        resolve_problem_arms(logs, wish),
        _format_prior_option(priors, wish),
        found.noise,
        select_arm_names(logs, wish),
        shape,
    )
    before = priors[logs.arm]
    weight = 1 / before[:, 1] ** 2 + logs.pulls / found.noise**2
    mean = (before[:, 0] / before[:, 1] ** 2 + logs.total / found.noise**2) / weight
    drawn = make_normal_sampler(before), make_normal_sampler(np.stack([mean, 1 / np.sqrt(weight)], axis=1))
    notes = (*found.notes, describe_reward_shape(logs, bool(shape)))
    return FittedModel(
        problem, found.estimates, notes, *drawn, "real", found.noise, excess_kurtosis=compute_excess_kurtosis(logs)
    )


def fit_campaigns_model(logs: Logs, wish: FitOptions) -> FittedModel:
    """Resample past campaigns, with each arm's mean from its posterior, so that noise is not taken for differences."""
    if logs.arm_counts.max() < 2:
        raise InvalidRequest(
            "the model 'campaigns' must have a campaign with two arms or more, but all have one.",
            argument="logs",
            code="insufficient-data",
        )
    whole = np.flatnonzero(logs.arm_counts >= wish.arms)
    if not len(whole):
        raise make_argument_error(
            "arms",
            "out-of-range",
            f"must be at most {logs.arm_counts.max()}, the most that a campaign had, but got {wish.arms}.",
        )
    estimates, notes, found, scale = _compute_cell_posteriors(logs, wish)
    if len(whole) < len(logs.campaigns):
        notes = (*notes, f"{len(logs.campaigns) - len(whole)} campaigns with fewer than {wish.arms} arms are left out")
    bounds = np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))
    rows = tuple(tuple(map(tuple, found.posterior[bounds[c] : bounds[c + 1]].tolist())) for c in whole)
    shape = pool_residuals(logs)
    how: dict[str, dict[str, Any]] = {
        "real": {"noise": scale, "residuals": shape},
        "unit": {"v": scale},
        "binary": {},
    }
    notes = (*notes, *([describe_reward_shape(logs, bool(shape))] if logs.rewards == "real" else []))
    problem = Campaigns(rows, logs.rewards, wish.arms, names=select_arm_names(logs, wish), **how[logs.rewards])
    drawn = make_normal_sampler if logs.rewards == "real" else make_beta_sampler
    after = drawn(found.posterior)
    all_estimates = (*estimates, found.spread)
    said, kurtosis = (*notes, *found.notes), compute_excess_kurtosis(logs)
    return FittedModel(problem, all_estimates, said, after, after, logs.rewards, scale, drawn(found.prior), kurtosis)


def _compute_cell_posteriors(
    logs: Logs, wish: FitOptions
) -> tuple[tuple[FittedParameter, ...], tuple[str, ...], CellPosteriors, float]:
    """Estimates and notes of the prior of all arms, posteriors of cells, and the noise, or v of rewards in [0, 1]."""
    pulls = logs.pulls.astype(float)
    if logs.rewards == "real":
        normal, _ = _fit_gaussian_priors(logs, wish)
        return (
            normal.estimates,
            normal.notes,
            compute_normal_posteriors(logs, normal.noise, wish.confidence),
            normal.noise,
        )
    v, estimates, given = count_successes(logs, wish.confidence)
    common, _ = _fit_beta_priors(logs, *given, wish, pulls if logs.rewards == "binary" else pulls * (v + 1))
    found = compute_beta_posteriors(logs.campaign, *given, wish.confidence)
    return (*common.estimates, *estimates), common.notes, found, v


def _fit_beta_priors(
    logs: Logs, successes: FloatArray, failures: FloatArray, wish: FitOptions, trials: FloatArray | IntArray
) -> tuple[FittedBetaPrior, FloatArray]:
    """The common beta distribution, or those of the arms; and a row (a, b) for each arm's name."""
    if len(successes) < 2 or float(trials.max()) < 2:
        raise InvalidRequest(
            "logs must hold two arms or more, one of them pulled twice in a campaign, but these do not: a prior is known "
            "by how arms differ beyond chance; take more logs.",
            argument="logs",
            code="insufficient-data",
        )
    common = fit_beta_prior(successes, failures, wish.confidence)
    table = np.tile([common.a, common.b], (len(logs.arms), 1))
    if not wish.per_arm:
        return common, table
    back = np.bincount(logs.arm) > 1
    if not back.any():
        return common._replace(
            notes=(*common.notes, *_note_arms_without_prior(list(logs.arms), "the beta distribution"))
        ), table
    found = fit_pooled_priors(logs.arm, logs.arms, successes, failures, wish.confidence)
    return FittedBetaPrior(common.a, common.b, found.estimates, found.notes), found.table


def _fit_gaussian_priors(logs: Logs, wish: FitOptions) -> tuple[FittedNormalPriors, FloatArray]:
    """The common normal distribution, or those of the arms; and a row (mean, sd) for each arm's name."""
    inside = pool_cell_variances(logs)
    if len(logs.pulls) < 3:
        raise InvalidRequest(
            f"logs must hold three arms or more for a normal prior, but they hold {len(logs.pulls)}.",
            argument="logs",
            code="insufficient-data",
        )
    pulls = logs.pulls.astype(float)
    common = fit_normal_priors([NormalCells(logs.mean, pulls)], inside, wish.confidence, [""])
    table = np.tile(common.priors[0], (len(logs.arms), 1))
    if not wish.per_arm:
        return common, table
    known = [place for place in range(len(logs.arms)) if (logs.arm == place).sum() >= 3]
    without = [name for place, name in enumerate(logs.arms) if place not in known]
    if not known:
        return common._replace(
            notes=(*common.notes, *_note_arms_without_prior(without, "the normal distribution"))
        ), table
    groups = [NormalCells(logs.mean[logs.arm == place], pulls[logs.arm == place]) for place in known]
    found = fit_normal_priors(groups, inside, wish.confidence, [logs.arms[place] for place in known])
    table[known] = found.priors
    more = _note_arms_without_prior(without, "the normal distribution") + _note_sparse_arms(logs)
    return found._replace(notes=(*found.notes, *more)), table


def _note_arms_without_prior(names: list[str], what: str) -> list[str]:
    """Return a note on arms that cannot have their own prior."""
    return [
        f"{format_arm_list(names)}: in too few campaigns for a prior of their own, so it is {what} of all arms"
    ] * bool(names)


def _note_sparse_arms(logs: Logs) -> list[str]:
    """Return a note on arms with too little data for a prior per arm."""
    often = np.bincount(logs.arm)
    few = int(((often > 1) & (often < FEW_CAMPAIGNS_PER_ARM)).sum())
    if not few:
        return []
    return [
        Message(
            "{:,} arms are in fewer than {} campaigns: their intervals are wide, because two campaigns hold little "
            "information on an arm's own prior; without {} one prior is estimated from all arms",
            *(few, FEW_CAMPAIGNS_PER_ARM, Argument("per_arm")),
        )
    ]


def _format_prior_option(table: FloatArray, wish: FitOptions) -> Any:
    """Format a prior as a pair, or as a pair per arm."""
    return table.tolist() if wish.per_arm else table[0].tolist()
