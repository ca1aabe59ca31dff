"""The checks of a user's own policy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_is_policy
from banditune.core.errors import BanditTuneError, InvalidRequest
from banditune.core.policy import Policy, Shortcut
from banditune.core.problem import Problem
from banditune.core.space import Range
from banditune.problems.bernoulli_arms import Bernoulli, Mixture
from banditune.problems.gaussian_arms import Gaussian
from banditune.problems.generalized_linear import Linear, Logistic
from banditune.results.conformance_results import ConformanceReport
from banditune.results.result_record import from_json
from banditune.simulation.bind import POLICY_SLOTS
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.executors.transport import pack_spec
from banditune.simulation.kernel_selection import replaces_all_functions, select_shortcut
from banditune.simulation.problem_checks import check_start_writes_memory
from banditune.simulation.spec import SimulationSpec
from banditune.study.parameter_values import make_parameter_rows, resolve_ranges
from banditune.study.requests import build_spec, check_compatible
from banditune.study.settings import Include, Run, Search, Simulation
from banditune.study.simulating import simulate
from banditune.study.tuning import tune
from banditune.testing.conformance_steps import (
    Finding,
    NotApplicable,
    Violation,
    check_description,
    describe_bits,
    forbid_global_randomness,
    run_steps,
)
from banditune.testing.deployment_conformance import check_recall_and_resume
from banditune.testing.plain_loop import choose_without_rewards, simulate_in_python
from banditune.testing.shortcut_comparison import compare_shortcut, keep_only_shortcut

DEFAULT_PROBLEMS: tuple[Callable[[], Problem], ...] = (
    lambda: Gaussian(arms=4),
    lambda: Bernoulli(arms=5),
    lambda: Bernoulli(arms=2),
    lambda: Mixture([(0.1, 0.5, 0.4), (1.0, 0.0, 0.9)], weights=(1, 2)),
    lambda: Linear(arms=12, dims=3),
    lambda: Logistic(arms=8, dims=3),
)
"""The problems for a check without a given problem. The first one that the policy supports is used."""


EARLY_STEPS = 200
"""The largest number of steps at which a policy must choose without a reward."""


BITWISE_RUNS = 3
"""The number of runs in plain Python, which is slow."""


NO_BOUND: tuple[Include, ...] = ("no_lower_bound",)


BORDER_RUNS = range(250, 262)
"""Runs on both sides of the border between two blocks of instances."""


def check_policy(
    policy: Policy, problem: Problem | None = None, *, horizon: int = 200, params: Any = None, seed: int = 0
) -> ConformanceReport:
    """Check that a policy fulfils its contract: arguments and results, memory, random numbers and shortcuts.

    It is meant for tests of your own policy. It takes a few seconds, most of them to compile. The first violation raises
    an error with the check, the evidence and advice.

    Parameters
    ----------
    policy : Policy
        The policy.
    problem : Problem, optional
        The problem to simulate. By default a problem of this package that the policy supports.
    horizon : int
        Steps in a run.
    params : sequence, optional
        Parameter values that are simulated, a row each. By default the textbook value, the low end, a value near it, and,
        if the policy is defined there, a value beyond the range.
    seed : int
        The seed of the instances.

    Returns
    -------
    ConformanceReport
        The checks that were passed, with the number of runs and the deviation that each would have detected.

    Raises
    ------
    ConformanceError
        If the policy violates its contract.
    InvalidRequest
        If an argument of this function cannot be used.

    Examples
    --------
    >>> import banditune as bt
    >>> report = bt.testing.check_policy(bt.EpsilonGreedy(), bt.Bernoulli(arms=3), horizon=100)
    >>> print(report["plain-python"].finding)
    compiled code and plain Python agree in every bit (5 runs of 4 rows of parameters)
    """
    check_is_policy(policy)
    subject = PolicySubject(policy, problem, horizon, params, seed)
    return run_steps("policy", str(policy.name), subject.list_steps())


class PolicySubject:
    """A policy with the problem and the rows of parameters of its check."""

    def __init__(self, policy: Policy, problem: Problem | None, horizon: int, params: Any, seed: int) -> None:
        self.policy, self.given_problem = policy, problem
        self.horizon, self.given_params, self.seed = horizon, params, seed
        self.spec: SimulationSpec
        self.rows: FloatArray

    def list_steps(self) -> dict[str, Callable[[], Finding]]:
        """List the checks in their order. Later checks assume that earlier ones were passed."""
        steps: dict[str, Callable[[], Finding]] = {
            "description": lambda: check_description(self.policy, "Mine()"),
            "contract": self.check_contract,
            "memory": self.check_memory,
            "no-reward-yet": self.check_choices_without_rewards,
            "decisions": self.check_decisions,
            "plain-python": self.check_plain_python,
            "threads-and-chunks": self.check_cuts,
        }
        for number, shortcut in enumerate(self.policy.shortcuts):
            steps["shortcut" + f"-{number + 1}" * (number > 0)] = partial(self.check_shortcut, shortcut)
        if self.policy.warp_version is not None:
            steps["warp-version"] = self.check_warp_version
        steps |= {"travel": self.check_travel, "deployment": self.check_deployment, "result": self.check_result}
        return steps

    def check_contract(self) -> Finding:
        """Find a problem for the policy, and check the functions that a policy must define."""
        problem = self.given_problem or find_problem(self.policy, self.horizon)
        spec = build_spec(self.policy, problem, horizon=self.horizon, seed=self.seed)
        policy, sizes = spec.policy, (problem.arms, problem.dims, spec.horizon)
        if not policy.is_external:
            with forbid_global_randomness("`memory` and `options`"):
                memory, options = ([call(*sizes) for _ in range(2)] for call in (policy.memory, policy.options))
            if memory[0] != memory[1] or not isinstance(memory[0], int | np.integer) or memory[0] < 0:
                raise Violation(
                    f"`memory(arms, dims, horizon)` must return the same whole number at each call, but it returned "
                    f"{memory[0]!r} and {memory[1]!r}; compute it from its arguments and the policy's options."
                )
            if not np.array_equal(np.asarray(options[0]), np.asarray(options[1])):
                raise Violation(
                    f"`options{sizes}` must return the same numbers at each call, but it returned {options[0]!r:.80} and "
                    f"{options[1]!r:.80}."
                )
        names = ", ".join(parameter.name for parameter in policy.parameters) or "none"
        for arms, steps in ((problem.arms, spec.horizon), (2, 100), (10, 10_000), (100, 100_000)):
            for parameter in policy.parameters:
                parameter.resolve(arms, steps, limits=policy.limits(parameter.name))
        self.spec = spec
        self.rows = make_rows(spec) if self.given_params is None else make_parameter_rows(spec, self.given_params)
        return Finding(f"functions and their arguments, ranges of parameters ({names}), on {problem.name!r}")

    def check_memory(self) -> Finding:
        """Check that no run depends on the memory of another one."""
        self.need_scalar_code("objects of other libraries are made anew for every run")
        check_start_writes_memory(self.spec)
        arms, dims = self.spec.problem.arms, self.spec.problem.dims
        size = self.spec.policy.memory(arms, dims, self.spec.horizon)
        return Finding(f"`start` writes all parts that `view` returns of {size} numbers")

    def check_choices_without_rewards(self) -> Finding:
        """Check that the policy can choose before the first reward."""
        self.need_scalar_code("objects of other libraries are called in turn")
        steps = min(EARLY_STEPS, self.spec.horizon)
        arms = self.spec.problem.arms
        for row in self.rows:
            choices = choose_without_rewards(self.spec, row, steps)
            wrong = np.flatnonzero(~((choices >= 0) & (choices < arms) & (choices == np.floor(choices))))
            if len(wrong):
                step = int(wrong[0])
                raise Violation(
                    f"`choose` must return an arm from 0 to {arms - 1} even before the first reward, because feedback may "
                    f"be late, but it returned {choices[step]:g} at step {step} with parameters {row.tolist()}; return an "
                    "arm for a `state` without rewards."
                )
        return Finding(f"chooses at {steps} steps without a reward, {count_rows(self.rows)}")

    def check_decisions(self) -> Finding:
        """Simulate compiled code, and check that every decision is an arm, no index is NaN, and repetitions are equal."""
        runs = range(64)
        first, second = (self.simulate(self.spec, self.rows, runs) for _ in range(2))
        if not np.array_equal(first, second):
            raise Violation(
                f"the same seed must give the same regrets, but {describe_bits(first, second)}; draw random numbers only "
                "from `stream`, and keep nothing between runs."
            )
        decisions = len(self.rows) * len(runs) * self.spec.horizon
        return Finding(f"{decisions:,} decisions are arms, and the same for the same seed", len(runs), 0.0)

    def check_plain_python(self) -> Finding:
        """Compare compiled code with plain Python, bit by bit, for both kinds of regret and of noise."""
        self.need_scalar_code("it is Python code")
        points = tuple(sorted({max(1, self.spec.horizon // 10), self.spec.horizon}))
        plain = replace(self.spec, use_shortcut=False, checkpoints=points)
        variants = [(replace(plain, regret="realised"), BITWISE_RUNS)]
        if self.spec.problem.required_regret is None and not self.spec.problem.has_step_dependent_means:
            variants.append((replace(plain, common_random_numbers=False), BITWISE_RUNS - 1))
        with forbid_global_randomness("scalar code"):
            for spec, runs in variants:
                python, compiled = (
                    simulate_in_python(spec, self.rows, range(runs)),
                    self.simulate(spec, self.rows, range(runs)),
                )
                if not np.array_equal(python, compiled):
                    raise Violation(
                        f"compiled code must give the regrets of plain Python, but {describe_bits(python, compiled)}; "
                        "look for whole numbers beyond 2^63, for variables that change their type, and for reads outside "
                        "an array."
                    )
        total = sum(runs for _, runs in variants)
        return Finding(
            f"compiled code and plain Python agree in every bit ({total} runs of {count_rows(self.rows)})",
            total,
            0.0,
        )

    def check_cuts(self) -> Finding:
        """Compare one thread with two threads, runs in pieces, and rows one by one."""
        spec = replace(self.spec, common_random_numbers=False)
        uncut = self.simulate(spec, self.rows, BORDER_RUNS)
        first, last = BORDER_RUNS.start, BORDER_RUNS.stop
        pieces = [range(first, first + 1), range(first + 1, last - 2), range(last - 2, last)]
        cuts = {
            "two threads": self.simulate(spec, self.rows, BORDER_RUNS, workers=2),
            "runs in pieces": np.concatenate([self.simulate(spec, self.rows, piece) for piece in pieces], axis=1),
            "rows one by one": np.concatenate(
                [self.simulate(spec, row[None], BORDER_RUNS, first_row=number) for number, row in enumerate(self.rows)]
            ),
        }
        for cut, regrets in cuts.items():
            if not np.array_equal(uncut, regrets):
                raise Violation(
                    f"regrets must not depend on the division of the work, but with {cut} {describe_bits(uncut, regrets)}; "
                    "keep nothing between runs, and draw random numbers only from `stream`."
                )
        return Finding("two threads, runs in pieces and rows one by one give the same bits", len(BORDER_RUNS), 0.0)

    def check_shortcut(self, shortcut: Shortcut) -> Finding:
        """Compare a shortcut with the plain loop."""
        if not replaces_all_functions(shortcut, self.policy):
            names = [name for name in POLICY_SLOTS if getattr(self.policy, name) not in shortcut.replaces]
            statement = f"{shortcut.name!r} does not replace the policy's {', '.join(names)}, and is never used"
            if "shortcuts" in vars(type(self.policy)):
                raise Violation(f"{statement}; add these functions to `replaces`, or leave the shortcut out.")
            raise NotApplicable(statement)
        for spec in self.list_shortcut_specs(shortcut):
            if select_shortcut(spec.policy, spec.problem) is shortcut:
                rows = self.rows if spec.problem is self.spec.problem else make_rows(spec)
                finding = Finding(*compare_shortcut(spec, shortcut, rows))
                return finding._replace(text=f"{finding.text}, on {spec.problem.name!r}")
        raise NotApplicable(
            f"{shortcut.name!r} does not apply to {self.spec.problem.name!r}; give a problem to which it applies."
        )

    def list_shortcut_specs(self, shortcut: Shortcut) -> Iterator[SimulationSpec]:
        """List specs with a policy that has only this shortcut: first on the problem of the check, then on others."""
        points = tuple(sorted({max(1, self.horizon // 10), self.horizon}))
        problems = [self.spec.problem]
        if self.given_problem is None:
            problems += [make() for make in DEFAULT_PROBLEMS]
        for problem in problems:
            try:
                spec = build_spec(self.policy, problem, horizon=self.horizon, seed=self.seed, checkpoints=points)
            except InvalidRequest:
                continue
            yield replace(spec, policy=keep_only_shortcut(spec.policy, shortcut), textbook_policy=None)

    def check_warp_version(self) -> Finding:
        """Leave out the comparison of a GPU version."""
        raise NotApplicable("it runs only on a GPU; simulate on both devices, and compare means")

    def check_travel(self) -> Finding:
        """Check that the policy can be sent to other processes. Workers check its code when they receive it."""
        self.need_scalar_code("objects of other libraries are made in each process")
        # It is not unpickled here, because cloudpickle would replace functions in the class of this process.
        return Finding(f"pickled for other processes in {len(pack_spec(self.spec).payload):,} bytes")

    def check_deployment(self) -> Finding:
        """Check that a deployed policy is rebuilt from pulls and totals."""
        policy = self.spec.policy
        if policy.recall is None or policy.resume is None:
            raise NotApplicable("the policy has no `recall` and `resume`, so it cannot be deployed")
        return check_recall_and_resume(self.spec, self.rows[0])

    def check_result(self) -> Finding:
        """Check that a result with this policy is written as JSON and read back."""
        ranges = resolve_ranges(self.spec)
        simulation = Simulation(regret=self.spec.regret)  # type: ignore[arg-type]
        run = Run(workers=1)
        if not ranges:
            regrets = simulate(
                self.policy, self.spec.problem, horizon=self.horizon, runs=20, simulation=simulation, run=run
            )
            return Finding("it has no parameter to tune; simulated by `simulate`", regrets.shape[1])
        search = Search(fixed={search_range.name: search_range.textbook for search_range in ranges[1:]}, validate=20)
        result = tune(
            self.policy,
            self.spec.problem,
            horizon=self.horizon,
            budget=200,
            seed=self.seed,
            include=NO_BOUND,
            search=search,
            simulation=simulation,
            run=run,
        )
        if from_json(result.to_json()) != result:
            raise Violation("a result must be the same after JSON, but it is not; use numbers and strings as options.")
        return Finding(f"tuned with {result.search_runs} runs; the result is the same after JSON", result.search_runs)

    def simulate(
        self, spec: SimulationSpec, rows: FloatArray, runs: range, *, workers: int = 1, first_row: int = 0
    ) -> FloatArray:
        """Simulate rows of parameters on threads."""
        return simulate_rows(spec, rows, runs, workers=workers, first_row=first_row)

    def need_scalar_code(self, otherwise: str) -> None:
        """Leave out a check of scalar code if the policy has none."""
        if self.spec.policy.is_external:
            raise NotApplicable(otherwise)


def find_problem(policy: Policy, horizon: int) -> Problem:
    """Find a problem that a policy supports."""
    refusal: BanditTuneError | None = None
    for make in DEFAULT_PROBLEMS:
        problem = make()
        if bool(problem.dims) != policy.needs_features:
            continue
        try:
            check_compatible(policy, problem, horizon)
            build_spec(policy, problem, horizon=horizon)
        except InvalidRequest as error:
            refusal = error
            continue
        return problem
    raise Violation(
        f"the policy must support a problem, but none of this package ({refusal}); give one as `problem`, or correct "
        "`rewards` and `needs_features` of the policy."
    )


def make_rows(spec: SimulationSpec) -> FloatArray:
    """Make rows of parameters: textbook values, and for each parameter its low end, a value near it, and one beyond."""
    ranges = resolve_ranges(spec)
    textbook = [search_range.textbook for search_range in ranges]
    rows = [textbook or [0.0]]
    for column, search_range in enumerate(ranges):
        for value in (search_range.scale_from_unit(0.15), search_range.scale_from_unit(0.0), go_beyond(search_range)):
            row = [*textbook[:column], value, *textbook[column + 1 :]]
            if row not in rows:
                rows.append(row)
    return np.array(rows)


def go_beyond(search_range: Range) -> float:
    """Return a value above the usual range, or the highest value for which the policy is defined."""
    if search_range.scale == "log":
        value = search_range.high * math.sqrt(search_range.high / search_range.low)
    else:
        value = search_range.high + 1.5 * (search_range.high - search_range.low)
    value = min(value, search_range.upper_limit)
    return search_range.round_value(value)


def count_rows(rows: FloatArray) -> str:
    """Count rows of parameters in words."""
    return f"{len(rows)} row{'s' * (len(rows) != 1)} of parameters"
