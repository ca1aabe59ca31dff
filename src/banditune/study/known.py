"""optimum, exact_regret, lower_bound: what is computed rather than simulated, and the floor under a tuning."""

from __future__ import annotations

from typing import Any

from banditune.contracts import BadRequest, Policy, Problem
from banditune.exact import bounds
from banditune.exact import optimum as optima
from banditune.exact.regrets import bayes_regret
from banditune.results import Bound, ExactRegret, Floor, Optimum, frozen
from banditune.study.door import (
    job_of,
    problem_and_horizon,
    ranges,
    rows,
    setup_of,
    setup_without_policy,
    theory_row,
    whole,
)

SECONDS = 6.0
"""A bound that takes longer is only computed if it is asked for."""


def optimum(problem: Problem, *, horizon: int) -> Optimum:
    """The best that any policy can do: for two Bernoulli arms with Beta priors, and for a mixture of a few instances."""
    problem, horizon = problem_and_horizon(problem, horizon)
    found = optima.optimum(problem, horizon)
    return Optimum(found.reward, found.known, found.regret, setup_without_policy(problem, horizon))


def exact_regret(policy: Policy, problem: Problem, values: Any = None, *, horizon: int) -> ExactRegret:
    """The Bayes regret of a policy by going through everything that can happen: a few arms that pay 0 or 1.

    For policies that decide by what they saw alone, Thompson sampling and epsilon-greedy; with no values, theory's.
    """
    job = job_of(policy, problem, horizon=horizon)
    found = ranges(job)
    if len(found) > 1:
        raise BadRequest(f"`policy` must have one parameter at most here, but {policy.name} has {len(found)}.")
    params = rows(job, values)
    regrets = bayes_regret(policy, problem, params, job.horizon)
    name = found[0].name if found else "value"
    best = optima.quick_optimum(problem, job.horizon)
    floor = exact_floor(best) if best else None
    return ExactRegret(name, frozen(params[:, 0]), frozen(regrets), float(theory_row(job)[0]), setup_of(job), floor)


def lower_bound(problem: Problem, *, horizon: int, runs: int = 1000, seed: int = 0, confidence: float = 0.95) -> Bound:
    """What no policy can lose less than, on Bernoulli or Gaussian arms, any number of them and any horizon.

    There are several kinds of bounds, on `runs` instances or fewer where one is long; `floor` is the best of them, chosen
    on other instances, at its lower confidence limit.
    """
    problem, horizon = problem_and_horizon(problem, horizon)
    runs, seed = whole("runs", runs, 2), whole("seed", seed, 0)
    best = bounds.lower_bound(problem, horizon, runs, seed, confidence)
    found = bounds.bounds(problem, horizon, runs, seed)
    return Bound(
        tuple(found),
        frozen([estimate.mean for estimate in found.values()]),
        frozen([estimate.se for estimate in found.values()]),
        tuple(estimate.runs for estimate in found.values()),
        Floor(best.value, False, best.level, best.name),
        setup_without_policy(problem, horizon, seed),
    )


def floor_of(problem: Problem, horizon: int, wanted: bool | None) -> Floor | None:
    """What no policy can go below: the optimum, or a bound. If nothing was said, only where that takes seconds."""
    if wanted is False:
        return None
    try:
        best = optima.quick_optimum(problem, horizon)
        if best:
            return exact_floor(best)
        if bounds.applies(problem) and (wanted or bounds.seconds(problem, horizon) <= SECONDS):
            found = bounds.sure_bound(problem, horizon)
            return Floor(found.value, False, found.level, found.name)
        if wanted and type(problem) in optima.KINDS:
            return exact_floor(optima.optimum(problem, horizon))
    except BadRequest:
        # Nobody asked for it: a prior that the integrals cannot take must not end a tuning.
        if wanted:
            raise
        return None
    if wanted:
        raise BadRequest(
            f"a floor is known for bernoulli and gaussian arms and for mixtures, but the problem is {problem.name!r}; "
            "leave out `floor`."
        )
    return None


def exact_floor(best: optima.Optimum) -> Floor:
    """The optimum as a floor."""
    return Floor(best.regret, True, 1.0, "dynamic programming")
