"""The function `backtest`: tunes on some past campaigns and evaluates on the others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banditune.core.checks import check_integer, check_number
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.logs.campaign_logs import Logs
from banditune.logs.models.equal_arms_test import compute_equal_arms_p
from banditune.logs.models.fitting import FEATURE_MODELS, choose_model, fit, prepare_features
from banditune.problems.campaigns import Campaigns
from banditune.results.estimates import Estimate
from banditune.results.log_results import Backtest, FittedProblem
from banditune.simulation.instances import draw_instance_means
from banditune.study.backtest_estimates import PairRuns
from banditune.study.backtest_evaluators import make_evaluator
from banditune.study.requests import build_spec
from banditune.study.search import FIRST_VALIDATION_INSTANCE
from banditune.study.settings import RUN, SEARCH, Include, Run, Search, check_settings, check_unused
from banditune.study.simulating import simulate
from banditune.study.tuning import tune

NO_LOWER_BOUND: tuple[Include, ...] = ("no_lower_bound",)
"""The `include` of the tuning in a backtest: it computes nothing besides its answer, and no lower bound."""


@dataclass(frozen=True, kw_only=True)
class FitSettings:
    """Settings of the fit in a backtest; see `fit`.

    Parameters
    ----------
    model : str
        The model's name; "auto" selects one from the data.
    per_arm : bool
        Whether each arm's name has a prior of its own.
    intercept : bool
        Whether a constant feature is added if arms have features without one.
    """

    model: str = "auto"
    per_arm: bool = False
    intercept: bool = True


FIT_SETTINGS = FitSettings()
"""The default settings of the fit."""


def backtest(
    policy: Policy,
    logs: Logs,
    *,
    fit_settings: FitSettings = FIT_SETTINGS,
    share: float = 0.5,
    horizon: int | None = None,
    budget: int = 1000,
    seed: int = 0,
    search: Search = SEARCH,
    run: Run = RUN,
) -> Backtest:
    """Tune a policy on some past campaigns, and evaluate it on the others.

    A problem is fitted to a random share of the campaigns, and the policy is tuned on it. Then the policy is simulated on
    the campaigns that were left out. Each has arm means from the posterior given its own data; if arms have features, the
    problem fitted to all of them is simulated. Results are means over these campaigns. Their intervals include the
    uncertainty about the arms of these campaigns.

    Parameters
    ----------
    policy : Policy
        A policy with one parameter that is not fixed. A noise or prior that is taken from the problem is that of the fit.
    logs : Logs
        Past logs with four campaigns or more, from `read_logs` or `make_logs`.
    fit_settings : FitSettings
        Settings of the fit.
    share : float
        The share of the campaigns to tune on.
    horizon : int, optional
        Decisions in a future campaign; by default the median of the past ones.
    budget : int
        Simulated runs of the search.
    seed : int
        The same seed gives the same answer.
    search : Search
        Settings of the search.
    run : Run
        Settings of the execution; without a `store`.

    Returns
    -------
    Backtest
        Regret and reward of the tuned and of the textbook policy on campaigns that were left out, and the logged reward.

    Raises
    ------
    InvalidRequest
        If an argument cannot be used.
    SimulationError
        If the policy fails.

    Examples
    --------
    >>> import numpy as np
    >>> import banditune as bt
    >>> rng = np.random.default_rng(1)
    >>> campaign, arm = np.repeat(np.arange(8), 200), rng.integers(0, 3, 1600)
    >>> rates = rng.beta(2, 8, (8, 3))
    >>> reward = rng.binomial(1, rates[campaign, arm])
    >>> logs = bt.read_logs({"campaign": campaign, "arm": arm, "reward": reward})
    >>> bt.backtest(bt.UCB1(), logs, budget=100).campaigns
    4
    """
    check_settings(search=search, run=run)
    check_unused("backtest", run, "store")
    share = _check_backtest(policy, logs, share)
    if choose_model(logs, fit_settings.model)[0] in FEATURE_MODELS:
        # Both parts must have the same features: whether these hold a constant is decided once.
        logs, _ = prepare_features(logs, fit_settings.intercept)
    first_part, second_part = _split_campaigns(logs, share, check_integer("seed", seed, 0))
    fitted = fit(
        first_part,
        fit_settings.model,
        per_arm=fit_settings.per_arm,
        intercept=fit_settings.intercept,
        horizon=horizon,
    )
    spec = build_spec(policy, fitted.problem, horizon=fitted.horizon, search=search)
    left_out = _select_campaigns_with_choice(second_part)
    single_arm_count = len(second_part.campaigns) - len(left_out.campaigns)
    fitted = replace(fitted, notes=tuple(_list_backtest_notes(fitted, single_arm_count)))
    evaluator = make_evaluator(left_out, fitted.model, fit_settings.intercept)
    # Check before any work: a policy may refuse a number of arms or features.
    for problem in {(problem.arms, problem.dims): problem for problem in evaluator.problems}.values():
        build_spec(spec.policy, problem, horizon=fitted.horizon)
    tuning = tune(
        policy,
        _use_all_campaigns(fitted.problem),
        horizon=fitted.horizon,
        budget=budget,
        seed=seed,
        include=NO_LOWER_BOUND,
        search=search,
        run=run,
    )
    tuned, textbook = (list(params.values()) for params in (tuning.params, tuning.textbook_params))
    pair = ((spec.policy, tuned), (spec.textbook_spec.policy, textbook))

    def simulate_campaign(problem: Problem, runs: range) -> PairRuns:
        # The number of a run determines its noise, so the evaluation must not use the runs of the search.
        fresh = range(FIRST_VALIDATION_INSTANCE + runs.start, FIRST_VALIDATION_INSTANCE + runs.stop)
        return simulate_pair(pair, problem, fitted.horizon, fresh, seed, replace(run, progress=None))

    rewards = np.bincount(left_out.campaign, left_out.total, len(left_out.campaigns)) / left_out.decision_counts
    return Backtest(
        fit=fitted,
        tuning=tuning,
        campaigns=len(left_out.campaigns),
        logged_reward=Estimate.from_sample(rewards),
        equal_arms_p=compute_equal_arms_p(left_out),
        arm_shape_p=evaluator.compute_arm_shape_p(),
        **evaluator.evaluate(simulate_campaign)._asdict(),
    )


def _check_backtest(policy: Any, logs: Any, share: Any) -> float:
    """Check that there is a policy and enough logs; returns the share of the campaigns to tune on."""
    if not isinstance(policy, Policy) or not isinstance(logs, Logs):
        raise InvalidRequest(
            "{} must be a policy and {} past logs (banditune.logs.Logs), in this order, but got {} and {}.",
            *(Argument("policy"), Argument("logs"), type(policy).__name__, type(logs).__name__),
            argument="policy",
            code="wrong-type",
        )
    checked = check_number("share", share, above=0, below=1, note=" (50% is 0.5)")
    if len(logs.campaigns) < 4:
        raise InvalidRequest(
            f"logs must hold four campaigns or more, so that some can be left out, but these are {logs!r}.",
            argument="logs",
            code="insufficient-data",
        )
    return checked


def _split_campaigns(logs: Logs, share: float, seed: int) -> tuple[Logs, Logs]:
    """Split the campaigns at random: a share to tune on, and those that are left out. Each part has two or more."""
    order = np.random.default_rng([seed, len(logs.campaigns)]).permutation(len(logs.campaigns))
    count = min(max(2, round(share * len(order))), len(order) - 2)
    return logs.select_campaigns(order[:count]), logs.select_campaigns(order[count:])


def _use_all_campaigns(problem: Problem) -> Problem:
    """Let the search use all campaigns of a fitted problem. The evaluation uses those that were left out."""
    return replace(problem, population=True) if isinstance(problem, Campaigns) else problem


def _list_backtest_notes(fitted: FittedProblem, single_arm_count: int) -> Iterator[str]:
    """Yield the notes of a fit, and a sentence on campaigns with one arm."""
    yield from fitted.notes
    if single_arm_count:
        yield (
            f"{single_arm_count} of the campaigns that were left out had one arm and no choice: they are not evaluated"
        )


def _select_campaigns_with_choice(logs: Logs) -> Logs:
    """Select the campaigns with two arms or more."""
    campaigns = np.flatnonzero(logs.arm_counts >= 2)
    if len(campaigns) < 2:
        raise InvalidRequest(
            "two campaigns with two arms or more must be left out for the evaluation, but there are fewer.",
            argument="logs",
            code="insufficient-data",
        )
    return logs.select_campaigns(campaigns)


def simulate_pair(
    pair: Sequence[tuple[Policy, list[float]]],
    problem: Problem,
    horizon: int,
    runs: range,
    seed: int,
    run: Run,
) -> PairRuns:
    """Simulate two policies, each with a row of parameters, on the same runs."""
    regrets = np.concatenate(
        [
            simulate(
                policy, problem, [row], horizon=horizon, runs=len(runs), first_instance=runs.start, seed=seed, run=run
            )
            for policy, row in pair
        ]
    )
    means = draw_instance_means(problem, seed, runs)
    return PairRuns(regrets, means.max(axis=1) - regrets / horizon, means)
