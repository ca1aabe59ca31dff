"""Posterior predictive checks: logs are compared with logs that are drawn from the fit with the same pulls."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.messages import Message, Setting, join_messages
from banditune.logs.campaign_logs import Logs, sample_campaigns
from banditune.logs.models.adaptivity import (
    POSSIBLE_STOPPING_NOTE,
    describe_drawn_checks,
    find_adaptivity,
    is_early_stopping_possible,
)
from banditune.logs.models.fitted_model import FittedModel
from banditune.logs.models.ppc_statistics import (
    ARM_CORRELATION,
    ARM_SPREAD,
    BEST_ARM_LEAD,
    FEATURE_MISFIT,
    NOISE_DIFFERENCE,
    RANK_STABILITY,
    WEIGHTED_SPREAD,
    ZERO_SHARE,
    CellStatistic,
    make_statistics,
)
from banditune.results.log_results import PredictiveCheck
from banditune.results.result_record import freeze_floats

REPLAYS = 999


MAX_CHECKED_CELLS = 5000
"""The largest number of cells that are checked. Campaigns are used as a whole if possible."""


MAX_CHUNK_DRAWS = 2_000_000
"""The largest number of values that are drawn at once."""


CELL_QUANTILE_LEVELS = np.array([0.005, 0.01, 0.02, *np.arange(1, 20) / 20, 0.98, 0.99, 0.995])


REWARD_STATISTICS = {NOISE_DIFFERENCE}
"""Checks of rewards, not of means. They are valid if pulls depended on rewards, too."""


STATISTIC_MEANINGS = {
    ARM_SPREAD: ("arms differ more than in the fit", "arms differ less than in the fit"),
    BEST_ARM_LEAD: (
        "the best arm leads by more than in the fit, so that policies tuned on it would explore too much",
        "the best arm leads by less than in the fit, so that policies tuned on it would explore too little",
    ),
    ARM_CORRELATION: (
        "the arms of a campaign are more correlated than in the fit",
        "the arms of a campaign are less correlated than in the fit",
    ),
    RANK_STABILITY: (
        "arms with the same name are more similar in all campaigns than in the fit",
        "arms with the same name are less similar than in the fit",
    ),
    ZERO_SHARE: (
        "more arms never paid than in the fit: some may be broken, or means have another shape",
        "fewer arms never paid than in the fit: means have another shape",
    ),
    WEIGHTED_SPREAD: (
        "arms with many pulls differ more than in the fit",
        "arms with many pulls differ less than in the fit",
    ),
    NOISE_DIFFERENCE: (
        "the noise of arms differs, but the fit has one noise for all",
        "the noise of arms differs less than in the fit: rewards may be rounded or capped",
    ),
    FEATURE_MISFIT: (
        "features do not explain all differences between arms: add features, or use a model without them",
        "features explain more than in the fit: rewards of an arm may be dependent",
    ),
}
"""The meaning of a statistic above and below those of the replays."""


def _suggest_remedy(statistic: str, model: str, logs: Logs) -> Message:
    """Suggest other settings of the fit that suit the logs; empty if there are none."""
    binary, has_repeated_arms = logs.rewards == "binary", logs.same_arms and len(logs.campaigns) > 2
    tries = {
        Setting("model", "correlated"): binary
        and has_repeated_arms
        and statistic in (BEST_ARM_LEAD, ARM_CORRELATION, RANK_STABILITY)
        and model != "correlated",
        Setting("model", "campaigns"): statistic not in (NOISE_DIFFERENCE, FEATURE_MISFIT) and model != "campaigns",
        Setting("per_arm", True): has_repeated_arms
        and statistic == RANK_STABILITY
        and model in ("beta-binomial", "beta", "gaussian"),
    }
    remedies = [Message("{}", setting) for setting, fits in tries.items() if fits]
    return Message(": try {}", join_messages(" or ", remedies)) if remedies else Message("")


class PredictiveChecks(NamedTuple):
    """Checks, quantiles of cell means, and sentences."""

    checks: tuple[PredictiveCheck, ...]
    levels: FloatArray
    observed: FloatArray
    replayed: FloatArray
    low: FloatArray
    high: FloatArray
    notes: tuple[str, ...]
    uses_draws: bool


CellSampler = Callable[[int], tuple[FloatArray, FloatArray]]
"""Draws this many rows of cell means and of squares."""


CellRows = Iterable[tuple[FloatArray, FloatArray]]
"""Rows of cell means and of squares, in chunks."""


def run_predictive_checks(logs: Logs, fitted: FittedModel, model: str, seed: int = 0) -> PredictiveChecks:
    """Replay the logs and compare. If pulls depended on rewards, compare drawn means instead of means of rewards."""
    rng = np.random.default_rng([seed, 20_207])
    cells, notes = _select_checked_cells(logs, rng)
    statistics = dict(make_statistics(logs, cells, fitted.rewards))

    logged_rows = [(logs.mean[None, cells], logs.squares[None, cells])]

    def draw_replayed_rows(size: int) -> tuple[FloatArray, FloatArray]:
        return _replay_cells(rng, size, logs, fitted, cells)

    reasons = find_adaptivity(logs)
    if reasons:
        compared, draws = _select_mean_statistics_and_samplers(rng, fitted, cells)
        checks, bands = _compare_statistics(
            _filter_statistics(statistics, compared), *(_draw_replays(draw, len(cells)) for draw in draws)
        )
        by_rewards = _filter_statistics(statistics, REWARD_STATISTICS)
        if by_rewards:
            checks += _compare_statistics(by_rewards, logged_rows, _draw_replays(draw_replayed_rows, len(cells)))[0]
        notes.append(describe_drawn_checks(reasons, set(statistics) - compared - REWARD_STATISTICS))
    else:
        checks, bands = _compare_statistics(statistics, logged_rows, _draw_replays(draw_replayed_rows, len(cells)))
    notes += [
        Message(
            "{}{}",
            STATISTIC_MEANINGS[check.statistic][check.p_value > 0.5],
            _suggest_remedy(check.statistic, model, logs),
        )
        for check in checks
        if check.has_failed
    ]
    if not reasons and is_early_stopping_possible(logs, checks):
        notes.append(POSSIBLE_STOPPING_NOTE)
    observed, middle, low, high = map(freeze_floats, bands)
    return PredictiveChecks(
        checks, freeze_floats(CELL_QUANTILE_LEVELS), observed, middle, low, high, tuple(notes), bool(reasons)
    )


def _filter_statistics(statistics: dict[str, CellStatistic], names: set[str]) -> dict[str, CellStatistic]:
    """Select some of the statistics."""
    return {name: statistic for name, statistic in statistics.items() if name in names}


def _draw_replays(draw: CellSampler, cells: int) -> CellRows:
    """Draw the rows of all replays in chunks."""
    step = max(MAX_CHUNK_DRAWS // cells, 1)
    return (draw(min(step, REPLAYS - first)) for first in range(0, REPLAYS, step))


def _compare_statistics(
    statistics: dict[str, CellStatistic], logged_rows: CellRows, replayed_rows: CellRows
) -> tuple[tuple[PredictiveCheck, ...], tuple[FloatArray, ...]]:
    """Compare statistics and quantiles of cell means: observed ones with the median and 95% of replayed ones."""
    (observed, quantiles), (replayed_values, bands) = (
        _measure_statistics(statistics, logged_rows),
        _measure_statistics(statistics, replayed_rows),
    )
    checks = tuple(make_predictive_check(name, observed[name], replayed_values[name]) for name in statistics)
    low, middle, high = np.quantile(bands, (0.025, 0.5, 0.975), axis=0)
    return checks, (quantiles.mean(axis=0), middle, low, high)


def _measure_statistics(
    statistics: dict[str, CellStatistic], rows: CellRows
) -> tuple[dict[str, FloatArray], FloatArray]:
    """Compute statistics and quantiles of rows of cells."""
    values: dict[str, list[FloatArray]] = {name: [] for name in statistics}
    quantiles = []
    for means, squares in rows:
        for name, statistic in statistics.items():
            values[name].append(statistic(means, squares))
        quantiles.append(np.quantile(means, CELL_QUANTILE_LEVELS, axis=1).T)
    return {name: np.concatenate(parts) for name, parts in values.items()}, np.concatenate(quantiles)


def make_predictive_check(name: str, observed: FloatArray, replayed: FloatArray) -> PredictiveCheck:
    """Rank an observed statistic among the replays, on average over its draws if it is uncertain.

    Ties count half, so that a constant statistic never fails.
    """
    low, high = np.quantile(replayed, (0.025, 0.975))
    slack = 1e-9 * float(np.abs(observed).max() + np.abs(replayed).max())
    order = np.sort(replayed)
    beyond = len(order) - np.searchsorted(order, observed + slack, "right")
    at_least = len(order) - np.searchsorted(order, observed - slack, "left")
    above = float((0.5 * (beyond + at_least) + 0.5).mean() / (len(order) + 1))
    return PredictiveCheck(
        statistic=name, observed=float(np.median(observed)), low=float(low), high=float(high), p_value=above
    )


def _select_mean_statistics_and_samplers(
    rng: np.random.Generator, fitted: FittedModel, cells: IntArray
) -> tuple[set[str], tuple[CellSampler, CellSampler]]:
    """Return the names of the compared statistics, and the samplers of means given the logs and from the fit.

    Choices of arms and stopping rules of campaigns do not bias the posterior of means if they depended only on the logs.
    So if the fit is right, means drawn given the logs have the joint distribution of the fit, for any policy. Observed
    means do not have it.
    """

    def draw_posterior_means(size: int) -> tuple[FloatArray, FloatArray]:
        means = fitted.posterior_sampler(rng, size, cells)
        return means, means

    def draw_prior_means(size: int) -> tuple[FloatArray, FloatArray]:
        means = (fitted.within_campaign_sampler or fitted.prior_sampler)(rng, size, cells)
        return means, means

    # Resampled campaigns have no fitted distribution, so only the lead within them is compared.
    compared = (
        {BEST_ARM_LEAD}
        if fitted.within_campaign_sampler
        else {ARM_SPREAD, BEST_ARM_LEAD, ARM_CORRELATION, RANK_STABILITY}
    )
    return compared, (draw_posterior_means, draw_prior_means)


def _select_checked_cells(logs: Logs, rng: np.random.Generator) -> tuple[IntArray, list[str]]:
    """Select the cells to check: all, those of some campaigns, or some arms of one large campaign."""
    if len(logs.pulls) <= MAX_CHECKED_CELLS:
        return np.arange(len(logs.pulls)), []
    campaigns = sample_campaigns(logs.arm_counts, MAX_CHECKED_CELLS, rng)
    note = f"checks use {len(campaigns):,} of {len(logs.campaigns):,} campaigns, chosen at random"
    cells = np.flatnonzero(np.isin(logs.campaign, campaigns))
    if len(cells) <= MAX_CHECKED_CELLS:
        return cells, [note]
    note = f"checks use {MAX_CHECKED_CELLS:,} of the {len(cells):,} arms of one campaign, chosen at random"
    return np.sort(rng.choice(cells, MAX_CHECKED_CELLS, replace=False)), [note]


def _replay_cells(
    rng: np.random.Generator, size: int, logs: Logs, fitted: FittedModel, cells: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Draw cell means and squares of logs from the fit."""
    means, pulls = fitted.prior_sampler(rng, size, cells), logs.pulls[cells]
    if fitted.rewards == "binary":
        cell_means = rng.binomial(pulls, means) / pulls
        return cell_means, pulls * cell_means * (1 - cell_means)
    if fitted.rewards == "real":
        cell_means = rng.normal(means, fitted.reward_scale / np.sqrt(pulls))
        # The variance of a sum of squares depends on the kurtosis. A scaled chi-square with that variance approximates it.
        degrees = np.maximum(pulls - 1, 1e-9)
        free = degrees / (1 + 0.5 * fitted.excess_kurtosis * degrees / pulls)
        return cell_means, fitted.reward_scale**2 * degrees * rng.chisquare(free, cell_means.shape) / free
    # A mean of beta rewards is nearly beta with the same mean and variance. For one reward this is exact.
    size_of = np.maximum(pulls * (fitted.reward_scale + 1) - 1, 1e-9)
    safe = np.clip(means, 1e-12, 1 - 1e-12)
    return rng.beta(size_of * safe, size_of * (1 - safe)), np.zeros_like(means)
