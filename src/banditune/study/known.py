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
    resolved_ranges,
    rows,
    setup_of,
    setup_without_policy,
    theory_row,
    whole,
)
from banditune.study.search import Progress

SECONDS = 6.0
"""A bound that takes longer is only computed if it is asked for."""

QUICK, ASKED = 1e8, 1e10
"""States that a sampled bound may visit, about 0.3 s, or 30 s where a bound is asked for."""


def optimum(problem: Problem, *, horizon: int, progress: Progress | None = None) -> Optimum:
    """The best that any policy can do: for two Bernoulli arms with Beta priors, and for a mixture of a few instances.

    Of a mixture, `progress(done, total)` is told the steps; later ones take longer.
    """
    problem, horizon = problem_and_horizon(problem, horizon)
    found = optima.optimum(problem, horizon, progress=progress)
    return Optimum(found.reward, found.known, found.regret, setup_without_policy(problem, horizon))


def exact_regret(
    policy: Policy, problem: Problem, values: Any = None, *, horizon: int, progress: Progress | None = None
) -> ExactRegret:
    """The Bayes regret of a policy by going through everything that can happen: a few arms that pay 0 or 1.

    For policies that decide by what they saw alone, Thompson sampling and epsilon-greedy; with no values, theory's.
    `progress(done, total)` is told the steps of all values; later ones take longer.
    """
    job = job_of(policy, problem, horizon=horizon)
    found = resolved_ranges(job)
    if len(found) > 1:
        raise BadRequest(f"`policy` must have one parameter at most here, but {policy.name} has {len(found)}.")
    params = rows(job, values)
    regrets = bayes_regret(job.policy, job.problem, params, job.horizon, progress)
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
    known = bounds.Bounds(problem, horizon, seed)
    best, found = known.best(runs, confidence), known.all(runs)
    return Bound(
        tuple(found),
        frozen([estimate.mean for estimate in found.values()]),
        frozen([estimate.se for estimate in found.values()]),
        tuple(estimate.runs for estimate in found.values()),
        Floor(best.value, False, best.level, best.name, bounded_at(known, horizon)),
        setup_without_policy(problem, horizon, seed),
        float(confidence),
    )


def floor_of(problem: Problem, horizon: int, wanted: bool | None) -> Floor | None:
    """What no policy can go below: the optimum, or a bound. If nothing was said, only where that takes seconds."""
    if wanted is False:
        return None
    if wanted:
        return asked_floor(problem, horizon)
    try:
        return quick_floor(problem, horizon)
    except BadRequest:
        # Nobody asked for it: a prior that the integrals cannot take must not end a tuning.
        return None


def quick_floor(problem: Problem, horizon: int) -> Floor | None:
    """The floor, where that takes seconds."""
    best = optima.quick_optimum(problem, horizon)
    if best:
        return exact_floor(best)
    if bounds.applies(problem) and bounds.seconds(problem, horizon) <= SECONDS:
        return bound_floor(problem, horizon, QUICK)
    return None


def asked_floor(problem: Problem, horizon: int) -> Floor:
    """The floor, however long it takes."""
    best = optima.quick_optimum(problem, horizon)
    if best:
        return exact_floor(best)
    if bounds.applies(problem):
        return bound_floor(problem, horizon, ASKED)
    if type(problem) in optima.KINDS:
        return exact_floor(optima.optimum(problem, horizon))
    raise BadRequest(
        f"a floor is known for bernoulli and gaussian arms and for mixtures, but the problem is {problem.name!r}; "
        "leave out `floor`."
    )


def bound_floor(problem: Problem, horizon: int, work: float) -> Floor:
    """The best bound that so much work gives: "one arm", which is 3 to 18% below the best, or a sampled one."""
    known = bounds.Bounds(problem, horizon)
    found = known.affordable(work)
    return Floor(found.value, False, found.level, found.name, bounded_at(known, horizon))


def bounded_at(known: bounds.Bounds, horizon: int) -> int | None:
    """The horizon of a bound, if it is shorter than that of the problem."""
    return known.horizon if known.horizon < horizon else None


def exact_floor(best: optima.Optimum) -> Floor:
    """The optimum as a floor."""
    return Floor(best.regret, True, 1.0, "dynamic programming")
