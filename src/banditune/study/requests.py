"""Checks the arguments of a request and builds the simulation spec, before any work starts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MethodType
from typing import Any

import numpy as np

from banditune.core.checks import check_integer
from banditune.core.descriptions import describe
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.tuner import Tuner
from banditune.results.study_setup import StudySetup
from banditune.simulation.dispatch import select_device
from banditune.simulation.executors.executor_factory import ExecutorFactory, make_executor_factory
from banditune.simulation.instances import SEARCH_INSTANCE_LIMIT
from banditune.simulation.spec import SimulationSpec
from banditune.storage.provenance import collect_versions
from banditune.study.hold_out import describe_data_scope
from banditune.study.options_from_problem import resolve_policy_options
from banditune.study.parameter_values import check_parameter_names, normalize_ranges, resolve_ranges

MAX_HORIZON = 2**31
"""The longest horizon: an arm's pulls fill one 32-bit word of an address."""


FIXED_ARM_COMPARATOR = "one fixed arm, the one with the highest mean that `sample` returns"
"""What realised regret compares with where the best arm changes with the step."""


REWARD_KINDS = ("real", "unit", "binary")
"""Kinds of rewards; each kind is one of those before it, too."""


def check_count(name: str, value: Any, least: int = 1, most: int = SEARCH_INSTANCE_LIMIT - 1) -> int:
    """A whole number, not too small and not absurdly large; 1e4 will do."""
    return check_integer(name, value, least, most)


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of a few words."""
    if value not in allowed:
        raise InvalidRequest(f"`{name}` must be one of {', '.join(map(repr, allowed))}, but got {value!r}.")
    return str(value)


def build_spec(
    policy: Any,
    problem: Any,
    *,
    horizon: Any,
    seed: Any = 0,
    regret: Any = "expected",
    noise: Any = "shared",
    at: Any = None,
    shortcut: Any = True,
    device: Any = "cpu",
    ranges: Any = None,
) -> SimulationSpec:
    """A checked job."""
    if not isinstance(policy, Policy):
        hint = "; make one, e.g. UCB1()" if isinstance(policy, type) and issubclass(policy, Policy) else ""
        raise InvalidRequest(f"`policy` must be a policy such as UCB1(), but got {policy!r}{hint}.")
    problem, horizon = check_problem_and_horizon(problem, horizon)
    check_compatible(policy, problem, horizon)
    fitted = resolve_policy_options(policy, problem)
    policy = fitted.policy
    regret = check_choice("regret", regret, ("expected", "realised"))
    job = SimulationSpec(
        policy,
        problem,
        horizon,
        check_count("seed", seed, 0),
        problem.only_regret or regret,
        check_choice("noise", noise, ("shared", "own")),
        resolve_checkpoints(at, horizon),
        bool(shortcut),
        textbook=fitted.textbook,
        sources=fitted.sources,
        ranges=normalize_ranges(ranges),
    )
    if policy.plays_itself and device == "gpu":
        raise InvalidRequest(f"{policy.name!r} plays in Python, which no GPU can; leave out device='gpu'.")
    check_parameter_names(job)
    resolve_ranges(job)
    policy.options(problem.arms, problem.dims, horizon)
    check_scalar_functions(policy, "view", "start", "choose", "update")
    check_scalar_functions(problem, "reward")
    check_regret_defined(problem, job.regret)
    return job if policy.plays_itself else replace(job, device=select_device(job, device))


def check_regret_defined(problem: Problem, regret: str) -> None:
    """Refuse a regret that is not defined where rewards change with the step or with the pulls of their arm."""
    if problem.means_by_pull:
        raise InvalidRequest(
            f"the mean reward of an arm must not depend on how often it was pulled, but `reward` of the problem "
            f"{problem.name!r} reads `pull`, or `stream.cursor`, which holds it. No regret can be computed there: expected "
            "regret takes means to be constant, and realised regret takes the rewards that the best arm did not pay to be "
            "those of its first pulls. Let the reward change with `step` instead, or keep its mean constant and draw "
            "random numbers with bt.kernel.uniform(stream), bt.kernel.normal(stream) and the like."
        )
    if regret == "expected" and problem.means_by_step:
        raise InvalidRequest(
            f"expected regret takes the mean reward of an arm to be the same at all steps, but `reward` of the problem "
            f"{problem.name!r} reads `step`; ask for regret='realised', which compares with {FIXED_ARM_COMPARATOR}."
        )


def check_compatible(policy: Policy, problem: Problem, horizon: int) -> None:
    """Refuse a policy that cannot play on such a problem."""
    for record in (policy, problem):
        if record.rewards not in REWARD_KINDS:
            raise InvalidRequest(
                f"`rewards` of {record.name!r} must be one of {', '.join(map(repr, REWARD_KINDS))}, but got {record.rewards!r}."
            )
    if policy.pulls_every_arm and horizon < problem.arms:
        raise InvalidRequest(
            f"`horizon >= arms` must hold for {policy.name}, which pulls every arm once, but got horizon={horizon} and "
            f"arms={problem.arms}; raise the horizon or choose another policy."
        )
    if REWARD_KINDS.index(policy.rewards) > REWARD_KINDS.index(problem.rewards):
        pays = {"real": "any real number", "unit": "any number in [0, 1]"}[problem.rewards]
        needs = {"unit": "rewards in [0, 1]", "binary": "rewards of 0 or 1"}[policy.rewards]
        plain = "gaussian-ts or ucb1" if problem.rewards == "real" else "ts or ucb1"
        raise InvalidRequest(
            f"{policy.name} needs {needs}, but the problem {problem.name!r} pays {pays}; use "
            f"{'linucb or lints' if problem.dims else plain} there."
        )
    if policy.needs_features and not problem.dims:
        raise InvalidRequest(
            f"{policy.name} knows arms by their features, but those of the problem {problem.name!r} have none; use "
            f"{'linear or logistic' if policy.rewards == 'real' else 'logistic'}, or another policy."
        )


def check_scalar_functions(record: Policy | Problem, *wanted: str) -> None:
    """Refuse a record that cannot be told, or whose scalar functions are missing or are methods."""
    describe(record)
    missing = [name for name in wanted if not callable(getattr(record, name, None))]
    if missing:
        raise InvalidRequest(f"{record.name!r} must define {', '.join(missing)} as scalar functions.")
    bound = [name for name in wanted if isinstance(getattr(record, name), MethodType)]
    if bound:
        raise InvalidRequest(
            f"`{bound[0]}` of {record.name!r} must be a function without self, but it is a method; write @staticmethod "
            f"above it, or {bound[0]} = staticmethod(...) for a function from elsewhere."
        )


def check_problem_and_horizon(problem: Any, horizon: Any) -> tuple[Problem, int]:
    """A problem and a horizon, checked."""
    if not isinstance(problem, Problem):
        raise InvalidRequest(
            f"`problem` must be a problem such as Bernoulli(arms=10), but got {describe_wrong_problem(problem)}."
        )
    horizon = check_count("horizon", horizon, most=MAX_HORIZON)
    if problem.longest is not None and horizon > problem.longest:
        raise InvalidRequest(
            f"`horizon <= {problem.longest}` must hold for the problem {problem.name!r}, which has rewards for "
            f"so many steps, but got horizon={horizon}; lower it, or let steps draw rows with shuffled=True."
        )
    return problem, horizon


def describe_wrong_problem(given: Any) -> str:
    """What was given for a problem; where a problem is within reach, how to get at it."""
    kind = type(given).__name__
    if isinstance(given, type) and issubclass(given, Problem):
        return f"{given!r}; make one, e.g. {given.__name__}(...)"
    if isinstance(getattr(given, "problem", None), Problem):
        return f"a {kind}, which holds one; pass its parts: found.problem, horizon=found.horizon"
    if kind == "Logs":
        return "past logs; fit a problem to them: found = fit(logs), then found.problem, horizon=found.horizon"
    return f"{given!r}"


def resolve_checkpoints(at: Any, horizon: int) -> tuple[int, ...]:
    """Steps at which the regret is wanted, in order."""
    if at is None:
        return (horizon,)
    steps = tuple(check_count("at", step) for step in np.atleast_1d(np.asarray(at, dtype=object)).tolist())
    if not steps or list(steps) != sorted(set(steps)) or steps[-1] > horizon:
        raise InvalidRequest(f"`at` must be increasing steps up to the horizon of {horizon}, but got at={list(steps)}.")
    return steps


def make_study_setup(job: SimulationSpec, tuner: Tuner | None = None, *, several: bool = False) -> StudySetup:
    """The record of a request; of `several` policies each result tells its own."""
    return StudySetup(
        None if several else describe(job.policy),
        describe(job.problem),
        job.horizon,
        job.seed,
        job.regret,
        job.noise,
        job.shortcut,
        collect_versions(job.device),
        describe(tuner) if tuner else None,
        job.device,
        from_problem={} if several else dict(job.sources),
        ranges={name: (low, high) for name, low, high in job.ranges} or None,
        sample=describe_data_scope(job.problem),
        compared_with="one fixed arm" if job.problem.means_by_step else None,
    )


def make_problem_setup(problem: Problem, horizon: int, seed: int = 0) -> StudySetup:
    """The record of a request about all policies."""
    return StudySetup(None, describe(problem), horizon, seed, "expected", "shared", True, collect_versions())


def resolve_executor(cluster: Any, jobs: Any, time_limit: Any, *todo: SimulationSpec) -> ExecutorFactory:
    """Where to play; policies that play themselves are Python, which threads could not play side by side."""
    itself = any(job.policy.plays_itself for job in todo)
    if itself and isinstance(cluster, str) and cluster == "threads" and jobs != 1:
        cluster = "processes"
    return make_executor_factory(
        cluster, None if jobs is None else check_count("jobs", jobs), time_limit, todo[0].device
    )
