"""Evaluates a policy on the campaigns that a backtest left out.

`OwnDataEvaluator` simulates each campaign with arm means from the posterior given its own data. If arms have features,
`JackknifeEvaluator` simulates the problem fitted to all campaigns, with arm means scaled to the given spread.

The reward of a decision is the reward in the logs plus the difference to the logs. The difference is paired by campaign:
the arms of the logs are weighted by their pulls, so that only differences between arms remain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.problem import Problem
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.arm_shape_test import compute_arm_shape_p, has_heavy_tails
from banditune.logs.models.arm_shapes import ArmShape, fit_arm_shapes
from banditune.logs.models.cell_summaries import pool_cell_variances
from banditune.logs.models.fitted_model import FitOptions
from banditune.logs.models.fitting import FEATURE_MODELS, MODELS, fit
from banditune.logs.models.reward_shape import pool_residuals
from banditune.logs.models.signed_spread import ArmSpreadModel, fit_arm_spread
from banditune.study.backtest_estimates import (
    SPREAD_KNOTS,
    BacktestEstimates,
    BacktestInterpolator,
    PairRuns,
    combine_shapes,
)
from banditune.study.backtest_problems import SpreadCampaign, scale_arm_means

EVALUATION_RUNS, MIN_CAMPAIGN_RUNS = 8000, 32
"""The number of runs on all campaigns together, and the fewest on each."""


RANDOM_HALVES = 8
"""Number of random splits in halves that estimate the uncertainty about the law of real rewards."""


JACKKNIFE_GROUPS, MIN_EVALUATED_CAMPAIGNS = 10, 4
"""If arms have features: the groups of campaigns that are left out in turn, and the fewest campaigns that are enough."""


PairSimulator = Callable[[Problem, range], PairRuns]
"""Simulates the tuned policy and the baseline on runs of a problem."""


class BacktestEvaluator(Protocol):
    """Evaluates policies on problems that are made of campaigns."""

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems that are simulated."""

    def evaluate(self, simulate_pair: PairSimulator) -> BacktestEstimates:
        """Simulate all problems, and estimate regrets and rewards."""

    def compute_arm_shape_p(self) -> float:
        """The p-value of the assumed distribution of arms' means; NaN if it is not tested."""


def _stack_run_values(runs: PairRuns, second: FloatArray) -> FloatArray:
    """Stack both regrets, the gain, and both rewards minus another reward of each run: (kinds, runs)."""
    return np.concatenate([runs.regrets, [runs.regrets[1] - runs.regrets[0]], runs.rewards - second])


def _estimate_instance_variance(values: FloatArray) -> FloatArray:
    """Estimate the variance between instances of values (kinds, instances, knots, 2), without the noise of the two runs."""
    difference = values - values.mean(axis=(1, 3), keepdims=True)
    return np.asarray((difference[..., 0] * difference[..., 1]).sum(axis=1) / max(values.shape[1] - 1, 1))


class ShapeCampaigns:
    """A problem for each campaign, with arm means from the posterior of its own data for arms of one shape."""

    def __init__(self, logs: Logs, arms: ArmSpreadModel, shape: ArmShape) -> None:
        count = len(logs.campaigns)
        self.ladder = BacktestInterpolator(shape.spread, arms.slopes)
        fewest = max(MIN_CAMPAIGN_RUNS, math.ceil(EVALUATION_RUNS / count))
        tables = shape.list_cell_parameters(logs.campaign, self.ladder.knots, math.ceil(fewest / (2 * SPREAD_KNOTS)))
        # Every instance comes twice.
        self.round = 2 * len(tables)
        self.runs = self.round * math.ceil(fewest / self.round)
        bounds = np.searchsorted(logs.campaign, np.arange(count + 1))
        self.pulls = np.split(logs.pulls, bounds[1:-1])
        # A campaign at all spreads: pairs of cells (rows, cells, 2).
        pairs = np.stack(tables)
        self.problems = [
            SpreadCampaign(pairs[:, first:last].tolist(), logs.rewards, **arms.make_problem_options())
            for first, last in pairwise(bounds)
        ]

    def simulate(self, simulate_pair: PairSimulator) -> tuple[FloatArray, FloatArray]:
        """Simulate every campaign at all spreads: means (campaigns, kinds, knots), and variances given their data."""
        values, unknown = [], []
        for number, (problem, pulls) in enumerate(zip(self.problems, self.pulls, strict=True)):
            # Campaigns have independent instances and noise. A common error would not appear in the standard error.
            pair_runs = simulate_pair(problem, range(number * self.runs, (number + 1) * self.runs))
            kinds = _stack_run_values(pair_runs, pair_runs.means @ (pulls / pulls.sum())).reshape(
                5, -1, SPREAD_KNOTS, 2
            )
            values.append(kinds.mean(axis=(1, 3)))
            unknown.append(_estimate_instance_variance(kinds))
        return np.array(values), np.maximum(np.mean(unknown, axis=0), 0.0) / len(values)


class OwnDataEvaluator:
    """Simulates each campaign with arm means from the posterior of its own data, for all shapes and at several spreads."""

    def __init__(self, logs: Logs) -> None:
        self.logs, self.arms = logs, fit_arm_spread(logs)
        self.shapes = fit_arm_shapes(self.arms, is_informative=not has_heavy_tails(logs))
        self.parts = [ShapeCampaigns(logs, self.arms, shape) for shape in self.shapes]

    @property
    def problems(self) -> Sequence[Problem]:
        """A problem for each campaign."""
        return self.parts[0].problems

    def evaluate(self, simulate_pair: PairSimulator) -> BacktestEstimates:
        """Simulate every campaign with arms of all shapes."""
        law_variance = self._estimate_law_variance(simulate_pair)
        estimates = []
        for part in self.parts:
            values, unknown = part.simulate(simulate_pair)
            estimates.append(
                part.ladder.estimate_all(
                    values, unknown + law_variance, np.zeros(len(values)), _compute_campaign_rewards(self.logs)
                )
            )
        return combine_shapes(self.shapes, estimates)

    def compute_arm_shape_p(self) -> float:
        """The highest p-value of the shapes that were evaluated."""
        return compute_arm_shape_p(self.logs, self.arms, self.shapes)

    def _estimate_law_variance(self, simulate_pair: PairSimulator) -> FloatArray:
        """Estimate the variances (kinds, knots) that come from an estimated law of real rewards.

        All campaigns are simulated with the law estimated from one half of them, and with that from the other half. The
        values differ by twice the error. The share of the runs' noise in the square of this difference is subtracted.
        """
        part = self.parts[0]
        count = len(part.problems)
        if self.logs.rewards != "real" or count < MIN_EVALUATED_CAMPAIGNS:
            return np.zeros((5, SPREAD_KNOTS))
        rng = np.random.default_rng(20_216)
        runs = part.round * math.ceil(EVALUATION_RUNS / (2 * RANDOM_HALVES * part.round * count))
        squares = np.zeros((5, SPREAD_KNOTS))
        for repetition in range(RANDOM_HALVES):
            laws = [
                _estimate_reward_law(self.logs.select_campaigns(half))
                for half in np.array_split(rng.permutation(count), 2)
            ]
            differences = []
            for number, problem in enumerate(part.problems):
                first = (repetition * count + number) * runs
                span = range(first, first + runs)
                pair_runs, second_runs = (simulate_pair(replace(problem, **law), span) for law in laws)
                difference = _stack_run_values(pair_runs, np.zeros(runs)) - _stack_run_values(
                    second_runs, np.zeros(runs)
                )
                differences.append((difference / 2).reshape(5, -1, SPREAD_KNOTS, 2).mean(axis=3))
            every = np.concatenate(differences, axis=1)
            squares += every.mean(axis=1) ** 2 - every.var(axis=1, ddof=1) / every.shape[1]
        return np.asarray(np.maximum(squares / RANDOM_HALVES, 0.0))


def _estimate_reward_law(logs: Logs) -> dict[str, Any]:
    """Estimate the noise and the shape of real rewards; empty if the rewards of these logs do not vary."""
    if not logs.squares.sum() > 0:
        return {}
    return {"noise": pool_cell_variances(logs).noise, "residuals": pool_residuals(logs)}


def _compute_campaign_rewards(logs: Logs) -> FloatArray:
    """Compute the mean reward of a decision in each campaign."""
    return np.bincount(logs.campaign, logs.total, len(logs.campaigns)) / logs.decision_counts


class JackknifeEvaluator:
    """Simulates problems with features: one is fitted to all campaigns, the others to all campaigns except one group.

    The values are the jackknife's pseudo-values, one for each group. Their variance is that between campaigns. Groups are
    random, with a fixed seed.
    """

    def __init__(self, logs: Logs, model: str, intercept: bool) -> None:
        count = len(logs.campaigns)
        if count < MIN_EVALUATED_CAMPAIGNS:
            raise InvalidRequest(
                "{} campaigns or more must be left out for the evaluation if arms have features, but there are {}; leave "
                "more out with a smaller {}, or take more logs.",
                *(MIN_EVALUATED_CAMPAIGNS, count, Argument("share")),
                argument="share",
                code="insufficient-data",
            )
        arms = fit_arm_spread(logs)
        order = np.random.default_rng(20_213).permutation(count)
        groups = np.array_split(order, min(count, JACKKNIFE_GROUPS))
        self.ladder = BacktestInterpolator(arms.spread, np.array([arms.slopes[group].sum() for group in groups]))
        full_problem = fit(logs, model, intercept=intercept).problem
        options = FitOptions(False, full_problem.arms, 0.95)
        self.parts = [order, *(np.setdiff1d(order, group) for group in groups)]
        fitted = [
            full_problem,
            *(MODELS[model](logs.select_campaigns(part), options).problem for part in self.parts[1:]),
        ]
        self.problems = [scale_arm_means(problem, arms.reward_variance * self.ladder.knots) for problem in fitted]
        self.logged_rewards = _compute_campaign_rewards(logs)
        # The mean of the logged arms minus that of all arms, from the data of each campaign.
        means = arms.compute_cell_means(max(arms.spread.value, 0.0))
        self.advantages = (
            np.bincount(logs.campaign, logs.pulls * means) / logs.decision_counts
            - np.bincount(logs.campaign, means) / logs.arm_counts
        )

    def evaluate(self, simulate_pair: PairSimulator) -> BacktestEstimates:
        """Simulate all problems with common random numbers, so that differences come from the groups alone."""
        values: list[FloatArray] = []
        for problem in self.problems:
            pair_runs = simulate_pair(problem, range(EVALUATION_RUNS // 4 if values else EVALUATION_RUNS))
            values.append(
                _stack_run_values(pair_runs, pair_runs.means.mean(axis=1)).reshape(5, -1, SPREAD_KNOTS).mean(axis=1)
            )
        advantages, logged_rewards = (
            np.array([campaign_values[part].mean() for part in self.parts])
            for campaign_values in (self.advantages, self.logged_rewards)
        )
        residual_variance = np.zeros(values[0].shape)
        return self.ladder.estimate_all(
            _compute_jackknife_values(np.array(values)),
            residual_variance,
            _compute_jackknife_values(advantages),
            _compute_jackknife_values(logged_rewards),
        )

    def compute_arm_shape_p(self) -> float:
        """NaN: with features, this assumption is not made."""
        return math.nan


def _compute_jackknife_values(values: FloatArray) -> FloatArray:
    """Compute the jackknife's pseudo-values from the value of all campaigns and those without each group."""
    estimate, without = values[0], values[1:]
    return np.asarray(estimate - (len(without) - 1) * (without - without.mean(axis=0)))


def make_evaluator(logs: Logs, model: str, intercept: bool = True) -> BacktestEvaluator:
    """Make the evaluator for campaigns whose problem was fitted by this model."""
    return JackknifeEvaluator(logs, model, intercept) if model in FEATURE_MODELS else OwnDataEvaluator(logs)
