"""Evaluates a policy on the campaigns that a backtest left out.

`OwnDataEvaluator` plays each campaign with arms as its own data show them. `JackknifeEvaluator`, where arms have features,
plays the problem fitted to all campaigns, with the means of its arms scaled to have the wanted spread.

The reward of a decision is the reward in the logs plus the difference to the logs. The difference is paired by campaign:
the arms of the logs are weighted by their pulls, so that only differences between arms remain."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.core.problem import Problem
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.cell_summaries import pool_cell_variances
from banditune.logs.models.fitted_model import FitOptions
from banditune.logs.models.fitting import FEATURE_MODELS, MODELS, fit
from banditune.logs.models.reward_shape import pool_residuals
from banditune.logs.models.signed_spread import fit_arm_spread
from banditune.study.backtest_estimates import SPREAD_KNOTS, BacktestEstimates, BacktestInterpolator, PairRuns
from banditune.study.backtest_problems import SpreadCampaign, scale_arm_means

EVALUATION_RUNS, MIN_CAMPAIGN_RUNS = 8000, 32
"""Runs on all campaigns together, and on each at least."""


RUNS_PER_ROUND = 2 * SPREAD_KNOTS
"""So many runs have all spreads, each instance twice."""


RANDOM_HALVES = 8
"""So many random halves of the campaigns show how sure the law of real rewards is."""


JACKKNIFE_GROUPS, MIN_EVALUATED_CAMPAIGNS = 10, 4
"""Where arms have features: groups of campaigns that are left out in turn, and the fewest campaigns that tell anything."""


PairPlayer = Callable[[Problem, range], PairRuns]
"""Plays the tuned policy and the baseline on runs of a problem."""


class BacktestEvaluator(Protocol):
    """Problems that policies are played on, and what they are worth by them."""

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems that are played."""

    def judge(self, play: PairPlayer) -> BacktestEstimates:
        """Play, and say what was seen."""


def _stack_run_values(runs: PairRuns, other: FloatArray) -> FloatArray:
    """Both regrets, the gain, and how much more than others, a reward for each run, both policies earn (kinds, runs)."""
    return np.concatenate([runs.regrets, [runs.regrets[1] - runs.regrets[0]], runs.rewards - other])


def _estimate_instance_variance(values: FloatArray) -> FloatArray:
    """The variance between instances of values (kinds, instances, knots, 2), each seen twice, but for the runs' noise."""
    apart = values - values.mean(axis=(1, 3), keepdims=True)
    return np.asarray((apart[..., 0] * apart[..., 1]).sum(axis=1) / max(values.shape[1] - 1, 1))


class OwnDataEvaluator:
    """Campaigns whose arms' means are drawn from what their own data say, at several spreads."""

    def __init__(self, logs: Logs) -> None:
        arms = fit_arm_spread(logs)
        self.logs = logs
        self.ladder = BacktestInterpolator(arms.spread, arms.slopes)
        self.bounds = np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))
        # A campaign at all spreads: pairs of cells (knots, cells, 2).
        pairs = np.stack([arms.pairs(float(knot)) for knot in self.ladder.knots])
        self._problems = [
            SpreadCampaign(pairs[:, first:last].tolist(), logs.rewards, **arms.options())
            for first, last in pairwise(self.bounds)
        ]

    @property
    def problems(self) -> Sequence[Problem]:
        """A problem for each campaign."""
        return self._problems

    def judge(self, play: PairPlayer) -> BacktestEstimates:
        """Play every campaign at all spreads."""
        count = len(self._problems)
        runs = RUNS_PER_ROUND * math.ceil(max(MIN_CAMPAIGN_RUNS, EVALUATION_RUNS / count) / RUNS_PER_ROUND)
        values, unknown = [], []
        for number, problem in enumerate(self._problems):
            # Every campaign has instances and noise of its own: what they shared, no spread among them would show.
            one = play(problem, range(number * runs, (number + 1) * runs))
            pulls = self.logs.pulls[slice(*self.bounds[number : number + 2])]
            kinds = _stack_run_values(one, one.means @ (pulls / pulls.sum())).reshape(5, -1, SPREAD_KNOTS, 2)
            values.append(kinds.mean(axis=(1, 3)))
            unknown.append(_estimate_instance_variance(kinds))
        left = np.maximum(np.mean(unknown, axis=0), 0.0) / count + self._variance_of_law(play)
        return self.ladder.verdict(np.array(values), left, np.zeros(count), _compute_campaign_rewards(self.logs))

    def _variance_of_law(self, play: PairPlayer) -> FloatArray:
        """Variances (kinds, knots) of values for real rewards, whose noise and shape are known from these campaigns only.

        All campaigns are played with the law that a half of them has, and with that of the other half, which are off from
        each other by twice the error. What the luck of runs adds to the square of that is taken off.
        """
        count = len(self._problems)
        if self.logs.rewards != "real" or count < MIN_EVALUATED_CAMPAIGNS:
            return np.zeros((5, SPREAD_KNOTS))
        rng = np.random.default_rng(20_216)
        runs = RUNS_PER_ROUND * math.ceil(EVALUATION_RUNS / (2 * RANDOM_HALVES * RUNS_PER_ROUND * count))
        squares = np.zeros((5, SPREAD_KNOTS))
        for place in range(RANDOM_HALVES):
            laws = [_estimate_reward_law(self.logs.of(half)) for half in np.array_split(rng.permutation(count), 2)]
            away = []
            for number, problem in enumerate(self._problems):
                first = (place * count + number) * runs
                span = range(first, first + runs)
                one, other = (play(replace(problem, **law), span) for law in laws)
                apart = _stack_run_values(one, np.zeros(runs)) - _stack_run_values(other, np.zeros(runs))
                away.append((apart / 2).reshape(5, -1, SPREAD_KNOTS, 2).mean(axis=3))
            every = np.concatenate(away, axis=1)
            squares += every.mean(axis=1) ** 2 - every.var(axis=1, ddof=1) / every.shape[1]
        return np.asarray(np.maximum(squares / RANDOM_HALVES, 0.0))


def _estimate_reward_law(logs: Logs) -> dict[str, Any]:
    """The noise of real rewards and the shape that they have; nothing where these logs do not tell it."""
    if not logs.squares.sum() > 0:
        return {}
    return {"noise": pool_cell_variances(logs).noise, "residuals": pool_residuals(logs)}


def _compute_campaign_rewards(logs: Logs) -> FloatArray:
    """The mean reward of a decision in each campaign."""
    return np.bincount(logs.campaign, logs.total, len(logs.campaigns)) / logs.lengths


class JackknifeEvaluator:
    """The problem fitted to all campaigns, whose arms have features, and those fitted without each group of them.

    How campaigns differ is seen by the jackknife, so a group's value is what the mean of all would have to be in
    place of it. Groups are chosen at random, always the same.
    """

    def __init__(self, logs: Logs, model: str, intercept: bool) -> None:
        count = len(logs.campaigns)
        if count < MIN_EVALUATED_CAMPAIGNS:
            raise InvalidRequest(
                f"{MIN_EVALUATED_CAMPAIGNS} campaigns or more must be left out to judge by where arms have features, but there are {count}; "
                "leave more out with a smaller `share`, or take more logs."
            )
        arms = fit_arm_spread(logs)
        order = np.random.default_rng(20_213).permutation(count)
        groups = np.array_split(order, min(count, JACKKNIFE_GROUPS))
        self.ladder = BacktestInterpolator(arms.spread, np.array([arms.slopes[group].sum() for group in groups]))
        whole = fit(logs, model, intercept=intercept).problem
        wish = FitOptions(False, whole.arms, 0.95)
        self.parts = [order, *(np.setdiff1d(order, group) for group in groups)]
        fitted = [whole, *(MODELS[model](logs.of(part), wish).problem for part in self.parts[1:])]
        self.problems = [scale_arm_means(problem, arms.unit * self.ladder.knots) for problem in fitted]
        self.paid = _compute_campaign_rewards(logs)
        # How much more than all arms on average the arms of the logs pay, by the data of each campaign.
        means = arms.means(max(arms.spread.value, 0.0))
        self.ahead = (
            np.bincount(logs.campaign, logs.pulls * means) / logs.lengths
            - np.bincount(logs.campaign, means) / logs.widths
        )

    def judge(self, play: PairPlayer) -> BacktestEstimates:
        """Play all problems with the same random numbers: only what a group changes is seen, not the luck of runs."""
        values: list[FloatArray] = []
        for problem in self.problems:
            one = play(problem, range(EVALUATION_RUNS // 4 if values else EVALUATION_RUNS))
            values.append(_stack_run_values(one, one.means.mean(axis=1)).reshape(5, -1, SPREAD_KNOTS).mean(axis=1))
        ahead, paid = (np.array([each[part].mean() for part in self.parts]) for each in (self.ahead, self.paid))
        left = np.zeros(values[0].shape)
        return self.ladder.verdict(
            _compute_jackknife_values(np.array(values)),
            left,
            _compute_jackknife_values(ahead),
            _compute_jackknife_values(paid),
        )


def _compute_jackknife_values(values: FloatArray) -> FloatArray:
    """Of a mean and of those without each group, the jackknife's values of the groups, around the mean."""
    whole, without = values[0], values[1:]
    return np.asarray(whole - (len(without) - 1) * (without - without.mean(axis=0)))


def make_evaluator(logs: Logs, model: str, intercept: bool = True) -> BacktestEvaluator:
    """What judges a policy on campaigns whose problem was fitted by this model."""
    return JackknifeEvaluator(logs, model, intercept) if model in FEATURE_MODELS else OwnDataEvaluator(logs)
