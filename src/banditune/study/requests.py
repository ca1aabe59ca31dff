"""Checks the arguments of a request and builds the simulation spec, before any work starts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MethodType
from typing import Any

import numpy as np

from banditune.core.checks import check_arguments, check_integer, check_is_policy, check_scratch
from banditune.core.descriptions import describe, find_source
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Condition, Setting
from banditune.core.policy import FUNCTION_ARGUMENTS, SIZE_ARGUMENTS, Policy, list_choose_arguments
from banditune.core.problem import REWARD_ARGUMENTS, Problem
from banditune.core.request_errors import make_argument_error, make_limit_error
from banditune.core.tuner import Tuner
from banditune.results.study_setup import StudySetup
from banditune.simulation.dispatch import select_device
from banditune.simulation.executors.executor_factory import ExecutorFactory, make_executor_factory
from banditune.simulation.instances import SEARCH_INSTANCE_LIMIT
from banditune.simulation.spec import SimulationSpec
from banditune.storage.provenance import collect_versions
from banditune.study.hold_out import describe_data_scope
from banditune.study.options_from_problem import resolve_policy_options
from banditune.study.parameter_values import (
    check_parameter_names,
    normalize_fixed,
    normalize_ranges,
    resolve_fixed,
)
from banditune.study.settings import RUN, SEARCH, SIMULATION, Run, Search, Simulation, check_settings

MAX_HORIZON = 2**31
"""The longest horizon. The number of an arm's pull is one 32-bit word of a random number's address."""


FIXED_ARM_COMPARATOR = "one fixed arm, the one with the highest mean that `sample` returns"
"""The comparator of realised regret if the best arm changes with the step."""


REWARD_KINDS = ("real", "unit", "binary")
"""Kinds of rewards; each kind is a special case of those before it."""


def check_count(name: str, value: Any, least: int = 1, most: int = SEARCH_INSTANCE_LIMIT - 1) -> int:
    """Check that a value is a whole number between limits; 1e4 is accepted."""
    return check_integer(name, value, least, most)


def build_spec(
    policy: Any,
    problem: Any,
    *,
    horizon: Any,
    seed: Any = 0,
    checkpoints: Any = None,
    search: Search = SEARCH,
    simulation: Simulation = SIMULATION,
    run: Run = RUN,
) -> SimulationSpec:
    """Check a request and build its spec."""
    check_settings(search=search, simulation=simulation, run=run)
    check_is_policy(policy)
    problem, horizon = check_problem_and_horizon(problem, horizon)
    check_compatible(policy, problem, horizon)
    fitted = resolve_policy_options(policy, problem, horizon)
    policy = fitted.policy
    spec = SimulationSpec(
        policy,
        problem,
        horizon,
        check_count("seed", seed, 0),
        problem.required_regret or simulation.regret,
        simulation.common_random_numbers,
        resolve_checkpoints(checkpoints, horizon),
        simulation.shortcuts,
        textbook_policy=fitted.textbook_policy,
        option_sources=fitted.sources,
        ranges=normalize_ranges(search.ranges),
        fixed=normalize_fixed(search.fixed),
    )
    if policy.is_external and run.device == "gpu":
        raise InvalidRequest(
            "{!r} runs in Python, and a GPU cannot run Python code; leave out {}.",
            *(policy.name, Setting("device", "gpu")),
            argument="device",
            code="unsupported",
        )
    check_parameter_names(spec)
    spec = replace(spec, fixed=resolve_fixed(spec))
    policy.options(problem.arms, problem.dims, horizon)
    check_policy_functions(policy)
    check_scalar_functions(problem, {"reward": REWARD_ARGUMENTS})
    check_regret_defined(problem, spec.regret)
    return spec if policy.is_external else replace(spec, device=select_device(spec, run.device))


def check_regret_defined(problem: Problem, regret: str) -> None:
    """Check that the regret is defined: it may not be if rewards change with the step or with the pulls of their arm."""
    if problem.has_pull_dependent_means:
        raise InvalidRequest(
            f"the mean reward of an arm must not depend on how often it was pulled, but `reward` of the problem "
            f"{problem.name!r} reads `pull`, or `stream.cursor`, which contains it. Regret is not defined there: expected "
            "regret needs constant means, and realised regret compares with the rewards of the best arm's first pulls. "
            "Let the reward change with `step` instead, or keep its mean constant and draw "
            "random numbers with functions such as bt.kernel.uniform(stream) and bt.kernel.normal(stream).",
            argument="problem",
            code="own-code",
        )
    if regret == "expected" and problem.has_step_dependent_means:
        raise InvalidRequest(
            "for expected regret the mean reward of an arm must be the same at all steps, but `reward` of the problem {!r} "
            "reads `step`; use {}, which compares with {}.",
            *(problem.name, Setting("regret", "realised"), FIXED_ARM_COMPARATOR),
            argument="regret",
            code="unsupported",
        )


def check_compatible(policy: Policy, problem: Problem, horizon: int) -> None:
    """Check that a policy can be simulated on a problem."""
    for record in (policy, problem):
        if record.rewards not in REWARD_KINDS:
            raise InvalidRequest(
                f"`rewards` of {record.name!r} must be one of {', '.join(map(repr, REWARD_KINDS))}, but got "
                f"{record.rewards!r}.",
                code="own-code",
            )
    if policy.pulls_every_arm and horizon < problem.arms:
        raise InvalidRequest(
            "{} must hold for {}, which pulls every arm once, but got {} and arms={}; raise the horizon or choose another "
            "policy.",
            *(Condition("", "horizon", " >= arms"), policy.name, Setting("horizon", horizon), problem.arms),
            argument="horizon",
            code="out-of-range",
        )
    if REWARD_KINDS.index(policy.rewards) > REWARD_KINDS.index(problem.rewards):
        reward_text = {"real": "any real number", "unit": "any number in [0, 1]"}[problem.rewards]
        needed_text = {"unit": "rewards in [0, 1]", "binary": "rewards of 0 or 1"}[policy.rewards]
        alternatives = "gaussian-ts or ucb1" if problem.rewards == "real" else "ts or ucb1"
        raise InvalidRequest(
            f"{policy.name} needs {needed_text}, but the problem {problem.name!r} pays {reward_text}; use "
            f"{'linucb or lints' if problem.dims else alternatives} there.",
            argument="policy",
            code="unsupported",
        )
    if policy.needs_features and not problem.dims:
        raise InvalidRequest(
            f"{policy.name} needs features of arms, but those of the problem {problem.name!r} have none; use "
            f"{'linear or logistic' if policy.rewards == 'real' else 'logistic'}, or another policy.",
            argument="policy",
            code="unsupported",
        )


def check_policy_functions(policy: Policy) -> None:
    """Check that the functions of a policy exist and take the arguments with which they are called."""
    check_scratch(policy.scratch)
    required = {name: FUNCTION_ARGUMENTS[name] for name in ("view", "start", "choose", "update")}
    required["choose"] = list_choose_arguments(policy.scratch)
    check_scalar_functions(policy, required)
    check_arguments("memory", policy.memory, SIZE_ARGUMENTS)
    for shortcut in policy.shortcuts:
        check_arguments("memory", shortcut.memory, SIZE_ARGUMENTS)


def check_scalar_functions(record: Policy | Problem, functions: Mapping[str, str]) -> None:
    """Check that a record can be described, and that its scalar functions exist, are not methods and can be called."""
    describe(record)
    missing = [name for name in functions if not callable(getattr(record, name, None))]
    if missing:
        raise InvalidRequest(f"{record.name!r} must define {', '.join(missing)} as scalar functions.", code="own-code")
    bound = [name for name in functions if isinstance(getattr(record, name), MethodType)]
    if bound:
        raise InvalidRequest(
            f"`{bound[0]}` of {record.name!r} must be a function without self, but it is a method; write @staticmethod "
            f"above it, or {bound[0]} = staticmethod(...) for a function from elsewhere.",
            code="own-code",
        )
    for name, takes in functions.items():
        check_arguments(name, getattr(record, name), takes)


def check_problem_and_horizon(problem: Any, horizon: Any) -> tuple[Problem, int]:
    """Check a problem and a horizon."""
    if not isinstance(problem, Problem):
        raise make_argument_error(
            "problem",
            "wrong-type",
            f"must be a problem such as Bernoulli(arms=10), but got {describe_wrong_problem(problem)}.",
        )
    horizon = check_count("horizon", horizon, most=MAX_HORIZON)
    if problem.max_horizon is not None and horizon > problem.max_horizon:
        note = f" for the problem {problem.name!r}, which has rewards for that many steps"
        advice = "; lower it, or let steps draw rows with shuffled=True"
        raise make_limit_error("horizon", horizon, most=problem.max_horizon, note=note, advice=advice)
    return problem, horizon


def describe_wrong_problem(value: Any) -> str:
    """Describe a value that is not a problem. If a problem can be made from it, state how."""
    kind = type(value).__name__
    if isinstance(value, type) and issubclass(value, Problem):
        return f"{value!r}; make one, e.g. {value.__name__}(...)"
    if isinstance(getattr(value, "problem", None), Problem):
        return f"a {kind}, which contains one; pass its fields: fitted.problem, horizon=fitted.horizon"
    if kind == "Logs":
        return "past logs; fit a problem to them: fitted = fit(logs), then fitted.problem, horizon=fitted.horizon"
    return f"{value!r}"


def resolve_checkpoints(checkpoints: Any, horizon: int) -> tuple[int, ...]:
    """Check the steps after which the regret is kept; by default the horizon."""
    if checkpoints is None:
        return (horizon,)
    steps = tuple(
        check_count("checkpoints", step) for step in np.atleast_1d(np.asarray(checkpoints, dtype=object)).tolist()
    )
    if not steps or list(steps) != sorted(set(steps)) or steps[-1] > horizon:
        raise make_argument_error(
            "checkpoints",
            "out-of-range",
            "must be increasing steps up to the horizon of {}, but got {}.",
            horizon,
            Setting("checkpoints", list(steps)),
        )
    return steps


def make_study_setup(spec: SimulationSpec, tuner: Tuner | None = None, *, several: bool = False) -> StudySetup:
    """Make the record of a request. With `several` policies it has none, because each entry of the result has one."""
    return StudySetup(
        policy=None if several else describe(spec.policy),
        problem=describe(spec.problem),
        horizon=spec.horizon,
        seed=spec.seed,
        regret_kind=spec.regret,
        common_random_numbers=spec.common_random_numbers,
        shortcut=spec.use_shortcut,
        versions=collect_versions(spec.device),
        tuner=describe(tuner) if tuner else None,
        device=spec.device,
        from_problem={} if several else dict(spec.option_sources),
        ranges={name: (low, high) for name, low, high in spec.ranges} or None,
        fixed=dict(spec.fixed) or None,
        policy_source=None if several else find_source(spec.policy),
        data_scope=describe_data_scope(spec.problem),
        compared_with="one fixed arm" if spec.problem.has_step_dependent_means else None,
    )


def make_problem_setup(problem: Problem, horizon: int, seed: int = 0) -> StudySetup:
    """Make the record of a request that holds for all policies."""
    return StudySetup(
        policy=None,
        problem=describe(problem),
        horizon=horizon,
        seed=seed,
        regret_kind="expected",
        common_random_numbers=True,
        shortcut=True,
        versions=collect_versions(),
    )


def resolve_executor(run: Run, *specs: SimulationSpec) -> ExecutorFactory:
    """Resolve the executor. External policies are Python code, which threads cannot run in parallel."""
    executor = run.executor
    external = any(spec.policy.is_external for spec in specs)
    if external and isinstance(executor, str) and executor == "threads" and run.workers != 1:
        executor = "processes"
    workers = None if run.workers is None else check_count("workers", run.workers)
    return make_executor_factory(executor, workers, run.time_limit, specs[0].device)
