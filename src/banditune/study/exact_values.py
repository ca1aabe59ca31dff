"""optimum, exact_regret, lower_bound: what is computed rather than simulated, and the floor under a tuning."""

from __future__ import annotations

from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.problem import Problem
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
"""A bound that takes longer is only computed if it is asked for."""


QUICK_STATES, REQUESTED_STATES = 1e8, 1e10
"""States that a sampled bound may visit, about 0.3 s, or 30 s where a bound is asked for."""


def compute_optimum(problem: Problem, *, horizon: int, progress: ProgressCallback | None = None) -> ExactOptimum:
    """The best that any policy can do: for two Bernoulli arms with Beta priors, and for a mixture of a few instances.

    Of a mixture, `progress(done, total)` is told the steps; later ones take longer.
    """
    problem, horizon = check_problem_and_horizon(problem, horizon)
    found = optimal_value.compute_optimum(problem, horizon, progress=progress)
    return ExactOptimum(found.reward, found.known, found.regret, make_problem_setup(problem, horizon))


def compute_exact_regret(
    policy: Policy, problem: Problem, values: Any = None, *, horizon: int, progress: ProgressCallback | None = None
) -> ExactRegret:
    """The Bayes regret of a policy by going through everything that can happen: a few arms that pay 0 or 1.

    For policies that decide by what they saw alone, Thompson sampling and epsilon-greedy; with no values, theory's.
    `progress(done, total)` is told the steps of all values; later ones take longer.
    """
    job = build_spec(policy, problem, horizon=horizon)
    found = resolve_ranges(job)
    if len(found) > 1:
        raise InvalidRequest(f"`policy` must have one parameter at most here, but {policy.name} has {len(found)}.")
    params = make_parameter_rows(job, values)
    regrets = compute_bayes_regret(job.policy, job.problem, params, job.horizon, progress)
    name = found[0].name if found else "value"
    best = optimal_value.compute_quick_optimum(problem, job.horizon)
    floor = convert_to_lower_bound(best) if best else None
    return ExactRegret(
        name,
        freeze_floats(params[:, 0]),
        freeze_floats(regrets),
        float(make_textbook_row(job)[0]),
        make_study_setup(job),
        floor,
    )


def compute_lower_bound(
    problem: Problem, *, horizon: int, runs: int = 1000, seed: int = 0, confidence: float = 0.95
) -> LowerBoundEstimates:
    """What no policy can lose less than, on Bernoulli or Gaussian arms, any number of them and any horizon.

    There are several kinds of bounds, on `runs` instances or fewer where one is long; `floor` is the best of them, chosen
    on other instances, at its lower confidence limit.
    """
    problem, horizon = check_problem_and_horizon(problem, horizon)
    runs, seed = check_count("runs", runs, 2), check_count("seed", seed, 0)
    known = lower_bounds.BoundCalculator(problem, horizon, seed)
    best, found = known.best(runs, confidence), known.all(runs)
    return LowerBoundEstimates(
        tuple(found),
        freeze_floats([estimate.mean for estimate in found.values()]),
        freeze_floats([estimate.se for estimate in found.values()]),
        tuple(estimate.runs for estimate in found.values()),
        LowerBound(best.value, False, best.level, best.name, find_shorter_horizon(known, horizon)),
        make_problem_setup(problem, horizon, seed),
        float(confidence),
    )


def find_lower_bound(problem: Problem, horizon: int, wanted: bool | None) -> LowerBound | None:
    """What no policy can go below: the optimum, or a bound. If nothing was said, only where that takes seconds."""
    if wanted is False:
        return None
    if wanted:
        return compute_requested_lower_bound(problem, horizon)
    try:
        return find_quick_lower_bound(problem, horizon)
    except InvalidRequest:
        # Nobody asked for it: a prior that the integrals cannot take must not end a tuning.
        return None


def find_quick_lower_bound(problem: Problem, horizon: int) -> LowerBound | None:
    """The floor, where that takes seconds."""
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
    """The floor, however long it takes."""
    best = optimal_value.compute_quick_optimum(problem, horizon)
    if best:
        return convert_to_lower_bound(best)
    if lower_bounds.has_lower_bound(problem):
        return compute_affordable_lower_bound(problem, horizon, REQUESTED_STATES)
    if type(problem) in optimal_value.OPTIMUM_PROBLEMS:
        return convert_to_lower_bound(optimal_value.compute_optimum(problem, horizon))
    raise InvalidRequest(
        f"a floor is known for bernoulli and gaussian arms and for mixtures, but the problem is {problem.name!r}; "
        "leave out `floor`."
    )


def compute_affordable_lower_bound(problem: Problem, horizon: int, work: float) -> LowerBound:
    """The best bound that so much work gives: "one arm", which is 3 to 18% below the best, or a sampled one."""
    known = lower_bounds.BoundCalculator(problem, horizon)
    found = known.affordable(work)
    return LowerBound(found.value, False, found.level, found.name, find_shorter_horizon(known, horizon))


def find_shorter_horizon(known: lower_bounds.BoundCalculator, horizon: int) -> int | None:
    """The horizon of a bound, if it is shorter than that of the problem."""
    return known.horizon if known.horizon < horizon else None


def convert_to_lower_bound(best: optimal_value.OptimalReward) -> LowerBound:
    """The optimum as a floor."""
    return LowerBound(best.regret, True, 1.0, "dynamic programming")
