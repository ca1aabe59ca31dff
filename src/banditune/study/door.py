"""The door: words become frozen records, and every complaint about a request is made here, before any work."""

from __future__ import annotations

import math
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from types import MethodType
from typing import Any

import numpy as np

from banditune.checks import check_whole, number_in
from banditune.contracts import BadRequest, Floats, Policy, Problem, Range, Tuner, condition
from banditune.descriptions import described
from banditune.engine.devices import device_for
from banditune.engine.run import Job
from banditune.results import Setup
from banditune.study.held_out import sample_of
from banditune.study.scale import fit_to_problem

LARGEST = 2**40
"""Runs stay below this; so the validation instances of a study, which start here, are never its search's."""

LONGEST = 2**31
"""The longest horizon: an arm's pulls fill one 32-bit word of an address."""


FIXED_ARM = "one fixed arm, the one with the highest mean that `sample` returns"
"""What realised regret compares with where the best arm changes with the step."""

REWARDS = ("real", "unit", "binary")
"""Kinds of rewards; each kind is one of those before it, too."""


def whole(name: str, value: Any, least: int = 1, most: int = LARGEST - 1) -> int:
    """A whole number, not too small and not absurdly large; 1e4 will do."""
    return check_whole(name, value, least, most)


def one_of(name: str, value: Any, allowed: Sequence[str]) -> str:
    """One of a few words."""
    if value not in allowed:
        raise BadRequest(f"`{name}` must be one of {', '.join(map(repr, allowed))}, but got {value!r}.")
    return str(value)


def job_of(
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
) -> Job:
    """A checked job."""
    if not isinstance(policy, Policy):
        hint = "; make one, e.g. UCB1()" if isinstance(policy, type) and issubclass(policy, Policy) else ""
        raise BadRequest(f"`policy` must be a policy such as UCB1(), but got {policy!r}{hint}.")
    problem, horizon = problem_and_horizon(problem, horizon)
    check_suited(policy, problem, horizon)
    fitted = fit_to_problem(policy, problem)
    policy = fitted.policy
    regret = one_of("regret", regret, ("expected", "realised"))
    job = Job(
        policy,
        problem,
        horizon,
        whole("seed", seed, 0),
        problem.only_regret or regret,
        one_of("noise", noise, ("shared", "own")),
        checkpoints(at, horizon),
        bool(shortcut),
        textbook=fitted.textbook,
        sources=fitted.sources,
        ranges=asked_ranges(ranges),
    )
    if policy.plays_itself and device == "gpu":
        raise BadRequest(f"{policy.name!r} plays in Python, which no GPU can; leave out device='gpu'.")
    check_names(job)
    resolved_ranges(job)
    policy.options(problem.arms, problem.dims, horizon)
    check_functions(policy, "view", "start", "choose", "update")
    check_functions(problem, "reward")
    check_regret(problem, job.regret)
    return job if policy.plays_itself else replace(job, device=device_for(job, device))


def check_regret(problem: Problem, regret: str) -> None:
    """Refuse a regret that is not defined where rewards change with the step or with the pulls of their arm."""
    if problem.means_by_pull:
        raise BadRequest(
            f"the mean reward of an arm must not depend on how often it was pulled, but `reward` of the problem "
            f"{problem.name!r} reads `pull`, or `stream.cursor`, which holds it. No regret can be computed there: expected "
            "regret takes means to be constant, and realised regret takes the rewards that the best arm did not pay to be "
            "those of its first pulls. Let the reward change with `step` instead, or keep its mean constant and draw "
            "random numbers with bt.uniform(stream), bt.normal(stream) and the like."
        )
    if regret == "expected" and problem.means_by_step:
        raise BadRequest(
            f"expected regret takes the mean reward of an arm to be the same at all steps, but `reward` of the problem "
            f"{problem.name!r} reads `step`; ask for regret='realised', which compares with {FIXED_ARM}."
        )


def check_suited(policy: Policy, problem: Problem, horizon: int) -> None:
    """Refuse a policy that cannot play on such a problem."""
    for record in (policy, problem):
        if record.rewards not in REWARDS:
            raise BadRequest(
                f"`rewards` of {record.name!r} must be one of {', '.join(map(repr, REWARDS))}, but got {record.rewards!r}."
            )
    if policy.pulls_every_arm and horizon < problem.arms:
        raise BadRequest(
            f"`horizon >= arms` must hold for {policy.name}, which pulls every arm once, but got horizon={horizon} and "
            f"arms={problem.arms}; raise the horizon or choose another policy."
        )
    if REWARDS.index(policy.rewards) > REWARDS.index(problem.rewards):
        pays = {"real": "any real number", "unit": "any number in [0, 1]"}[problem.rewards]
        needs = {"unit": "rewards in [0, 1]", "binary": "rewards of 0 or 1"}[policy.rewards]
        plain = "gaussian-ts or ucb1" if problem.rewards == "real" else "ts or ucb1"
        raise BadRequest(
            f"{policy.name} needs {needs}, but the problem {problem.name!r} pays {pays}; use "
            f"{'linucb or lints' if problem.dims else plain} there."
        )
    if policy.needs_features and not problem.dims:
        raise BadRequest(
            f"{policy.name} knows arms by their features, but those of the problem {problem.name!r} have none; use "
            f"{'linear or logistic' if policy.rewards == 'real' else 'logistic'}, or another policy."
        )


def check_functions(record: Policy | Problem, *wanted: str) -> None:
    """Refuse a record that cannot be told, or whose scalar functions are missing or are methods."""
    described(record)
    missing = [name for name in wanted if not callable(getattr(record, name, None))]
    if missing:
        raise BadRequest(f"{record.name!r} must define {', '.join(missing)} as scalar functions.")
    bound = [name for name in wanted if isinstance(getattr(record, name), MethodType)]
    if bound:
        raise BadRequest(
            f"`{bound[0]}` of {record.name!r} must be a function without self, but it is a method; write @staticmethod "
            f"above it, or {bound[0]} = staticmethod(...) for a function from elsewhere."
        )


def problem_and_horizon(problem: Any, horizon: Any) -> tuple[Problem, int]:
    """A problem and a horizon, checked."""
    if not isinstance(problem, Problem):
        raise BadRequest(f"`problem` must be a problem such as Bernoulli(arms=10), but got {instead(problem)}.")
    horizon = whole("horizon", horizon, most=LONGEST)
    if problem.longest is not None and horizon > problem.longest:
        raise BadRequest(
            f"`horizon <= {problem.longest}` must hold for the problem {problem.name!r}, which has rewards for "
            f"so many steps, but got horizon={horizon}; lower it, or let steps draw rows with shuffled=True."
        )
    return problem, horizon


def instead(given: Any) -> str:
    """What was given for a problem; where a problem is within reach, how to get at it."""
    kind = type(given).__name__
    if isinstance(given, type) and issubclass(given, Problem):
        return f"{given!r}; make one, e.g. {given.__name__}(...)"
    if isinstance(getattr(given, "problem", None), Problem):
        return f"a {kind}, which holds one; pass its parts: found.problem, horizon=found.horizon"
    if kind == "Logs":
        return "past logs; fit a problem to them: found = fit(logs), then found.problem, horizon=found.horizon"
    return f"{given!r}"


def checkpoints(at: Any, horizon: int) -> tuple[int, ...]:
    """Steps at which the regret is wanted, in order."""
    if at is None:
        return (horizon,)
    steps = tuple(whole("at", step) for step in np.atleast_1d(np.asarray(at, dtype=object)).tolist())
    if not steps or list(steps) != sorted(set(steps)) or steps[-1] > horizon:
        raise BadRequest(f"`at` must be increasing steps up to the horizon of {horizon}, but got at={list(steps)}.")
    return steps


def asked_ranges(ranges: Any) -> tuple[tuple[str, float, float], ...]:
    """Ranges that were asked for, {"gamma": (0, 3)}, as names with both ends."""
    if ranges is None:
        return ()
    found: list[tuple[str, float, float]] = []
    for name, ends in ranges.items() if isinstance(ranges, Mapping) else [("", None)]:
        pair = list(ends) if isinstance(ends, Sequence | np.ndarray) and not isinstance(ends, str) else []
        numbers = [number_in(end) for end in pair]
        if not isinstance(name, str) or len(numbers) != 2 or not all(map(math.isfinite, numbers)):
            raise BadRequest(
                '`ranges` must be names of parameters with two numbers each, such as {"gamma": (0, 3)}, but got '
                f"{ranges!r}."
            )
        found.append((name, numbers[0], numbers[1]))
    return tuple(found)


def ranges_by_policy(policies: Sequence[Any], ranges: Any) -> list[dict[str, tuple[float, float]]]:
    """For each of several policies the ranges of its parameters; a range must be of a parameter that is tuned."""
    asked = {name: (low, high) for name, low, high in asked_ranges(ranges)}
    names = [[p.name for p in getattr(policy, "parameters", ())] for policy in policies]
    tuned = {name for found in names if len(found) == 1 for name in found}
    for name in asked:
        if name not in tuned:
            raise stranger(name, tuned)
    return [{name: asked[name] for name in found if name in asked} for found in names]


def check_names(job: Job) -> None:
    """Refuse parameters of the same name, and ranges of parameters that the policy does not have."""
    names = [parameter.name for parameter in job.policy.parameters]
    if len(set(names)) < len(names):
        raise BadRequest(f"the parameters of {job.policy.name} must have names of their own, but they are {names}.")
    for name, _, _ in job.ranges:
        if name not in names:
            raise stranger(name, names)


def stranger(name: str, names: Collection[str]) -> BadRequest:
    """What is wrong with a range of a parameter that there is not."""
    return BadRequest(
        f"a range must be of one of the parameters {', '.join(sorted(names)) or '(there are none)'}, but got one of "
        f"{name!r}."
    )


def resolved_ranges(job: Job) -> tuple[Range, ...]:
    """The policy's parameters with their bounds for this problem and horizon: those asked for, or the usual ones."""
    asked = {name: (low, high) for name, low, high in job.ranges}
    arms, horizon = job.problem.arms, job.horizon
    return tuple(
        parameter.within(arms, horizon, asked.get(parameter.name), job.policy.limits(parameter.name))
        for parameter in job.policy.parameters
    )


def only_range(job: Job) -> Range:
    """The range of the one parameter that a one-parameter tuner can search."""
    found = resolved_ranges(job)
    if len(found) != 1:
        names = ", ".join(r.name for r in found) or "none"
        raise BadRequest(
            f"a policy must have exactly one parameter to be tuned, but {job.policy.name} has {len(found)} ({names}); "
            "compare it, or simulate() it in Python."
        )
    return found[0]


def why_not_tuned(job: Job) -> str:
    """Why a tuner cannot search a policy's parameters; empty where it can."""
    names = [found.name for found in resolved_ranges(job)]
    if len(names) == 1:
        return ""
    return (
        f"it has {len(names)} parameters ({', '.join(names)}), a search takes one" if names else "it has no parameter"
    )


def why_not_backtested(job: Job) -> str:
    """Why `backtest` cannot judge a policy on logs to which this problem is fitted; empty where it can.

    It tunes, so that the policy must have one parameter. Where arms have an effect each ("correlated": features are unit
    vectors), it plays campaigns, whose arms have no features.
    """
    features = getattr(job.problem, "features", None)
    if features is not None and job.policy.needs_features and np.array_equal(features, np.eye(len(features))):
        return "it needs features, and campaigns have none"
    return why_not_tuned(job)


def theory_row(job: Job) -> Floats:
    """Theory's parameters."""
    return np.array([r.theory for r in resolved_ranges(job)] or [0.0])


def rows(job: Job, values: Any) -> Floats:
    """Parameter values as rows: a number or a list of numbers for one parameter, rows of numbers for several.

    They may lie outside of the range that is searched, but not where the policy is not defined.
    """
    found = resolved_ranges(job)
    if values is None:
        return theory_row(job)[None, :]
    if isinstance(values, Mapping):
        if set(values) != {r.name for r in found}:
            wanted = ", ".join(r.name for r in found) or "none"
            raise BadRequest(
                f"the parameters of {job.policy.name} are {wanted}, but got {', '.join(map(str, values))}."
            )
        values = [[values.get(r.name, math.nan) for r in found] or [0.0]]
    try:
        table = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    width = max(1, len(found))
    if width == 1 and table.ndim <= 1:
        table = table.reshape(-1, 1)
    if table.ndim != 2 or table.shape[0] < 1 or table.shape[1] != width:
        wanted = " and ".join(r.name for r in found) or "any number"
        raise BadRequest(
            f"the values for {job.policy.name} must be numbers, {width} a row ({wanted}), but got {values!r}."
        )
    for place, r in enumerate(found):
        table[:, place] = [playable(job, r, value) for value in table[:, place].tolist()]
    if not np.isfinite(table).all():
        raise BadRequest(f"parameter values must be finite numbers, but got {values!r}.")
    return table


def playable(job: Job, among: Range, value: float) -> float:
    """A value that the policy is defined for; whole where the parameter is, and a limit where only rounding misses it."""
    found = among.clip_rounding(value, among.least, among.most)
    if not (among.least <= found <= among.most and math.isfinite(found)):
        raise BadRequest(
            f"`{condition(among.name, among.least, among.most)}` must hold for {job.policy.name}, but got "
            f"{among.name}={value:g}."
        )
    return among.nearest(found)


def setup_of(job: Job, tuner: Tuner | None = None, *, several: bool = False) -> Setup:
    """The record of a request; of `several` policies each result tells its own."""
    return Setup(
        None if several else described(job.policy),
        described(job.problem),
        job.horizon,
        job.seed,
        job.regret,
        job.noise,
        job.shortcut,
        versions() | ({"numba-cuda": version("numba-cuda")} if job.device == "gpu" else {}),
        described(tuner) if tuner else None,
        job.device,
        from_problem={} if several else dict(job.sources),
        ranges={name: (low, high) for name, low, high in job.ranges} or None,
        sample=sample_of(job.problem),
        compared_with="one fixed arm" if job.problem.means_by_step else None,
    )


def setup_without_policy(problem: Problem, horizon: int, seed: int = 0) -> Setup:
    """The record of a request about all policies."""
    return Setup(None, described(problem), horizon, seed, "expected", "shared", True, versions())


def versions() -> dict[str, str]:
    """What a result depends on."""
    from banditune import __version__

    return {
        "banditune": __version__,
        "numpy": version("numpy"),
        "numba": version("numba"),
        "python": platform.python_version(),
    }
