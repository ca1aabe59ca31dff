"""The functions that compute exact values: the optimum, exact regrets and lower bounds."""

from __future__ import annotations

from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error
from banditune.exact import lower_bounds, optimal_value
from banditune.exact.bayes_regret import compute_bayes_regret
from banditune.results.exact_results import ExactOptimum, ExactRegret, LowerBound, LowerBoundEstimates
from banditune.results.result_record import freeze_floats
from banditune.study.parameter_values import make_parameter_rows, make_textbook_row, resolve_ranges
from banditune.study.progress import ProgressCallback
from banditune.study.requests import (
    build_spec,
    check_count,
    check_problem_and_horizon,
    make_problem_setup,
    make_study_setup,
)

MAX_UNREQUESTED_SECONDS = 6.0
"""The longest time of a bound that is computed without a request."""


QUICK_STATES, REQUESTED_STATES = 1e8, 1e10
"""States that a sampled bound may visit: about 0.3 s, or 30 s on request."""


def compute_optimum(problem: Problem, *, horizon: int, progress: ProgressCallback | None = None) -> ExactOptimum:
    """Compute the reward and the Bayes regret of the best possible policy.

    Parameters
    ----------
    problem : Bernoulli or Mixture
        Two Bernoulli arms with Beta priors, or a mixture of a few vectors of means.
    horizon : int
        Steps in a run.
    progress : callable, optional
        Called with (steps done, steps in all) for a mixture. Later steps take longer.

    Returns
    -------
    ExactOptimum
        The expected total reward and the Bayes regret of the best policy, and the reward of the best arm at every step.

    Raises
    ------
    InvalidRequest
        If the optimum cannot be computed for this problem, or if its tables do not fit into memory.

    Examples
    --------
    >>> import banditune as bt
    >>> round(bt.exact.compute_optimum(bt.Bernoulli(arms=2), horizon=20).regret, 4)
    0.9021
    """
    problem, horizon = check_problem_and_horizon(problem, horizon)
    optimum = optimal_value.compute_optimum(problem, horizon, progress=progress)
    return ExactOptimum(
        reward=optimum.reward,
        oracle_reward=optimum.oracle_reward,
        regret=optimum.regret,
        setup=make_problem_setup(problem, horizon),
    )


def compute_exact_regret(
    policy: Policy, problem: Problem, values: Any = None, *, horizon: int, progress: ProgressCallback | None = None
) -> ExactRegret:
    """Compute the Bayes regret of a policy exactly, over all sequences of rewards.

    Parameters
    ----------
    policy : Policy
        A policy with one parameter at most. It draws no random numbers, or is Thompson sampling or epsilon-greedy.
    problem : Bernoulli or Mixture
        A few arms that pay 0 or 1.
    values : number or sequence of numbers, optional
        Parameter values; the textbook value by default.
    horizon : int
        Steps in a run.
    progress : callable, optional
        Called with (steps done, steps in all), over all values. Later steps take longer.

    Returns
    -------
    ExactRegret
        The regret of each value, and the optimum if it takes at most a few seconds.

    Raises
    ------
    InvalidRequest
        If the regret cannot be computed for this policy or problem, or if its states do not fit into memory.
    SimulationError
        If the policy fails.

    Examples
    --------
    >>> import banditune as bt
    >>> found = bt.exact.compute_exact_regret(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [0.2, 1.0], horizon=20)
    >>> found.regret.round(4).tolist()
    [1.0146, 1.8152]
    """
    spec = build_spec(policy, problem, horizon=horizon)
    ranges = resolve_ranges(spec)
    if len(ranges) > 1:
        raise make_argument_error(
            "policy", "unsupported", f"must have one parameter at most here, but {policy.name} has {len(ranges)}."
        )
    params = make_parameter_rows(spec, values)
    regrets = compute_bayes_regret(spec.policy, spec.problem, params, spec.horizon, progress)
    name = ranges[0].name if ranges else "value"
    best = optimal_value.compute_quick_optimum(problem, spec.horizon)
    lower_bound = convert_to_lower_bound(best) if best else None
    return ExactRegret(
        parameter=name,
        values=freeze_floats(params[:, 0]),
        regret=freeze_floats(regrets),
        textbook=float(make_textbook_row(spec)[0]),
        setup=make_study_setup(spec),
        lower_bound=lower_bound,
    )


def compute_lower_bound(
    problem: Problem, *, horizon: int, runs: int = 1000, seed: int = 0, confidence: float = 0.95
) -> LowerBoundEstimates:
    """Estimate lower bounds on the Bayes regret of every policy.

    There are several kinds of bounds. The best one is chosen on other instances than those of its estimate.

    Parameters
    ----------
    problem : Bernoulli or Gaussian
        Any number of arms.
    horizon : int
        Steps in a run. For a horizon above 20,000, the bounds are those of 20,000.
    runs : int
        Instances for each sampled bound. Bounds with long runs use fewer.
    seed : int
        The same seed gives the same answer.
    confidence : float
        Confidence of the best bound, from 0.5 to below 1.

    Returns
    -------
    LowerBoundEstimates
        Every bound with its standard error. `lower_bound` is the best of them, at its lower confidence limit.

    Raises
    ------
    InvalidRequest
        If there is no bound for this problem, or if an argument cannot be used.

    Examples
    --------
    >>> import banditune as bt
    >>> found = bt.exact.compute_lower_bound(bt.Bernoulli(arms=2), horizon=20, runs=100)
    >>> 0 < found.lower_bound.regret < bt.exact.compute_optimum(bt.Bernoulli(arms=2), horizon=20).regret
    True
    """
    problem, horizon = check_problem_and_horizon(problem, horizon)
    runs, seed = check_count("runs", runs, 2), check_count("seed", seed, 0)
    calculator = lower_bounds.BoundCalculator(problem, horizon, seed)
    best, estimates = calculator.select_best(runs, confidence), calculator.estimate_all(runs)
    return LowerBoundEstimates(
        kinds=tuple(estimates),
        mean=freeze_floats([estimate.mean for estimate in estimates.values()]),
        se=freeze_floats([estimate.se for estimate in estimates.values()]),
        runs=tuple(estimate.runs for estimate in estimates.values()),
        lower_bound=LowerBound(
            regret=best.value,
            is_exact=False,
            confidence=best.confidence,
            method=best.name,
            horizon_limit=find_shorter_horizon(calculator, horizon),
        ),
        setup=make_problem_setup(problem, horizon, seed),
        confidence=float(confidence),
    )


def find_lower_bound(problem: Problem, horizon: int, requested: bool | None) -> LowerBound | None:
    """Find the optimum or a lower bound on the regret. With `requested` None, only if it takes seconds."""
    if requested is False:
        return None
    if requested:
        return compute_requested_lower_bound(problem, horizon)
    try:
        return find_quick_lower_bound(problem, horizon)
    except InvalidRequest:
        # If the integrals do not support a prior, a tuning without a requested bound must continue.
        return None


def find_quick_lower_bound(problem: Problem, horizon: int) -> LowerBound | None:
    """Find a lower bound if it takes seconds only."""
    best = optimal_value.compute_quick_optimum(problem, horizon)
    if best:
        return convert_to_lower_bound(best)
    if (
        lower_bounds.has_lower_bound(problem)
        and lower_bounds.estimate_bound_seconds(problem, horizon) <= MAX_UNREQUESTED_SECONDS
    ):
        return compute_affordable_lower_bound(problem, horizon, QUICK_STATES)
    return None


def compute_requested_lower_bound(problem: Problem, horizon: int) -> LowerBound:
    """Compute a lower bound, however long it takes."""
    best = optimal_value.compute_quick_optimum(problem, horizon)
    if best:
        return convert_to_lower_bound(best)
    if lower_bounds.has_lower_bound(problem):
        return compute_affordable_lower_bound(problem, horizon, REQUESTED_STATES)
    if type(problem) in optimal_value.OPTIMUM_PROBLEMS:
        return convert_to_lower_bound(optimal_value.compute_optimum(problem, horizon))
    raise InvalidRequest(
        "a lower bound is known for bernoulli and gaussian arms and for mixtures, but the problem is {!r}; leave out {}.",
        *(problem.name, Argument("lower_bound")),
        argument="include",
        code="unsupported",
    )


def compute_affordable_lower_bound(problem: Problem, horizon: int, work: float) -> LowerBound:
    """Compute the best bound within a number of states: "one arm", 3 to 18% below the best bound, or a sampled one."""
    calculator = lower_bounds.BoundCalculator(problem, horizon)
    bound = calculator.select_affordable(work)
    return LowerBound(
        regret=bound.value,
        is_exact=False,
        confidence=bound.confidence,
        method=bound.name,
        horizon_limit=find_shorter_horizon(calculator, horizon),
    )


def find_shorter_horizon(calculator: lower_bounds.BoundCalculator, horizon: int) -> int | None:
    """Return the horizon of a bound if it is shorter than that of the problem, else None."""
    return calculator.horizon if calculator.horizon < horizon else None


def convert_to_lower_bound(best: optimal_value.OptimalReward) -> LowerBound:
    """Convert the optimum to a lower bound."""
    return LowerBound(regret=best.regret, is_exact=True, confidence=1.0, method="dynamic programming")
