"""The function `regret_over_time`: simulates policies, and estimates their regret after several steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.descriptions import describe
from banditune.core.notice import Notice
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error, make_unused_error
from banditune.results.comparison_results import Comparison
from banditune.results.over_time_results import RegretOverTime, RegretSeries, StepEstimates, choose_steps
from banditune.results.result_record import ResultRecord
from banditune.results.tuning_results import Tuning
from banditune.simulation.memory import check_regret_memory
from banditune.storage.stored_simulator import StoredSimulator, check_storable
from banditune.study.assumption_notices import note_wrong_assumptions
from banditune.study.hold_out import HoldOutSplit, split_spec
from banditune.study.over_time_plans import OverTimePlan, plan_policies, plan_result
from banditune.study.parameter_values import name_params
from banditune.study.policy_names import name_notices
from banditune.study.problem_notices import note_problem
from banditune.study.progress import ProgressCounter
from banditune.study.repeatability import note_unrepeatable_runs
from banditune.study.requests import check_count, resolve_executor
from banditune.study.restoration import restore_problem
from banditune.study.settings import RUN, SIMULATION, Run, Simulation

DEFAULT_RUNS = 1000
"""Runs of each series, where no result determines them."""


def regret_over_time(
    policies: Policy | Sequence[Policy] | Tuning | Comparison,
    problem: Problem | None = None,
    params: Any = None,
    *,
    horizon: int | None = None,
    checkpoints: Sequence[int] | None = None,
    runs: int | None = None,
    seed: int | None = None,
    labels: Sequence[str] | None = None,
    simulation: Simulation | None = None,
    run: Run = RUN,
) -> RegretOverTime:
    """Compute the Bayes regret over the steps of a run, for several policies or parameters on the same instances.

    From a tuning or a comparison, the tuned and the textbook values are simulated on the instances of its validation. The
    last regrets are then those of the result.

    Parameters
    ----------
    policies : Policy, sequence of Policy, Tuning or Comparison
        What is simulated. A result also determines problem, horizon, seed and what is simulated.
    problem : Problem, optional
        The distribution of problem instances. A result needs it only if it is your own or made of a file.
    params : object, optional
        Parameter values as for `simulate`: one number, or several. For a sequence of policies, a sequence with such values
        for each of them. The textbook values by default, also where one of them is None.
    horizon : int, optional
        Steps in a run. It must be given unless a result determines it.
    checkpoints : sequence of int, optional
        Steps after which the regret is estimated, in increasing order. By default about 70, at even distances and on a
        logarithmic scale.
    runs : int, optional
        Runs of each series: 1,000 by default, or as many as the validation of a result had.
    seed : int, optional
        The same seed gives the same answer; 0 by default.
    labels : sequence of str, optional
        Names of the series, for figures and tables.
    simulation : Simulation, optional
        What is simulated.
    run : Run
        Where and how it runs.

    Returns
    -------
    RegretOverTime
        Mean regrets with standard errors and 95% intervals, and paired differences to the first series; for a comparison,
        to the best policy. Instances are those of a validation: no search with the same seed has seen them.

    Raises
    ------
    InvalidRequest
        If an argument cannot be used, or a result does not hold its policies.
    SimulationError
        If a policy or the problem fails.

    Examples
    --------
    >>> import banditune as bt
    >>> policy, problem = bt.UCB1(noise=0.5), bt.Bernoulli(arms=3)
    >>> found = bt.regret_over_time(policy, problem, [0.2, 1.0], horizon=100, runs=500, checkpoints=[10, 100])
    >>> [series.label for series in found.series]
    ['gamma = 0.2', 'gamma = 1']
    >>> found.get_regret("gamma = 0.2").mean < found.get_regret("gamma = 1").mean
    True
    """
    if isinstance(policies, Tuning | Comparison):
        for name, value in (("params", params), ("horizon", horizon), ("seed", seed), ("simulation", simulation)):
            if value is not None:
                raise make_unused_error(name, value, "because the result determines it")
        steps = choose_steps(policies.setup.horizon) if checkpoints is None else checkpoints
        plan = plan_result(policies, restore_problem(policies.setup.problem, problem), runs, steps, run)
    else:
        if isinstance(policies, ResultRecord):
            text = "must be a policy, a sequence of policies, a tuning or a comparison, but got a {}."
            raise make_argument_error("policies", "wrong-type", text, type(policies).__name__)
        if horizon is None:
            raise make_argument_error("horizon", "missing", "must be given unless a result determines it.")
        settings = {
            "horizon": horizon,
            "seed": 0 if seed is None else seed,
            "checkpoints": choose_steps(check_count("horizon", horizon)) if checkpoints is None else checkpoints,
            "simulation": simulation or SIMULATION,
            "run": run,
        }
        plan = plan_policies(policies, problem, params, DEFAULT_RUNS if runs is None else runs, settings)
    names = check_labels(labels, plan)
    specs = [row.spec for row in plan.rows]
    check_storable(run.store, *specs)
    check_regret_memory(len(plan.rows) * len(plan.runs) * len(specs[0].checkpoints))
    executor = resolve_executor(run, *specs)
    notices = tuple(list_notices(plan))
    counter = ProgressCounter(run.progress, len(plan.rows) * len(plan.runs))
    split = split_spec(specs[0])
    with StoredSimulator(executor, run.store) as simulator:
        samples = simulate_planned_rows(plan, split, simulator, counter)
    return RegretOverTime(
        series=tuple(make_series(plan, split, samples, names)),
        steps=specs[0].checkpoints,
        reference=names[plan.reference],
        runs=len(plan.runs),
        first_instance=plan.runs.start,
        unit=split.unit,
        unit_count=samples[0].shape[1],
        setup=plan.setup,
        notices=notices,
    )


def check_labels(labels: Any, plan: OverTimePlan) -> tuple[str, ...]:
    """Check the names that were given to the series; by default their own labels."""
    if labels is None:
        return tuple(row.label for row in plan.rows)
    names = tuple(labels) if isinstance(labels, Sequence) and not isinstance(labels, str) else ()
    if (
        len(names) != len(plan.rows)
        or len(set(names)) < len(names)
        or not all(isinstance(name, str) and name for name in names)
    ):
        own_labels = ", ".join(repr(row.label) for row in plan.rows)
        text = f"must be {len(plan.rows)} distinct names, one for each of {own_labels}, but got {labels!r:.80}."
        raise make_argument_error("labels", "wrong-shape", text)
    return names


def list_notices(plan: OverTimePlan) -> Iterator[Notice]:
    """Yield what may mislead: the assumptions of each policy that is not the textbook's, and the problem."""
    several = len({row.policy for row in plan.rows}) > 1
    yield from note_problem(plan.rows[0].spec)
    for policy, rows in groupby(plan.rows, key=lambda row: row.policy):
        spec = next(rows).spec
        notices = (
            *note_unrepeatable_runs(spec),
            *note_wrong_assumptions(spec.policy, spec.problem, spec.horizon),
        )
        yield from name_notices(policy, spec.policy.name, notices) if several else notices


def simulate_planned_rows(
    plan: OverTimePlan, split: HoldOutSplit, simulator: StoredSimulator, counter: ProgressCounter
) -> list[FloatArray]:
    """Simulate all rows on the same instances; returns independent numbers (steps, units) for each."""
    samples: list[FloatArray] = []
    for _, group in groupby(plan.rows, key=lambda row: id(row.spec)):
        rows = list(group)
        regrets = simulator.simulate(
            replace(rows[0].spec, problem=split.validation_spec.problem),
            np.array([row.params for row in rows]),
            plan.runs,
            first_row=len(samples),
            progress=counter,
        )
        samples += [split.reduce_validation(by_run.T, plan.runs) for by_run in regrets]
    return samples


def make_series(
    plan: OverTimePlan, split: HoldOutSplit, samples: Sequence[FloatArray], labels: Sequence[str]
) -> Iterator[RegretSeries]:
    """Estimate the regret of each row after each step, and its paired difference to the reference."""

    def estimate(sample: FloatArray) -> StepEstimates:
        return StepEstimates.from_estimates([split.estimate(numbers) for numbers in sample])

    for row, label, sample in zip(plan.rows, labels, samples, strict=True):
        yield RegretSeries(
            label=label,
            policy=row.policy,
            policy_config=describe(row.spec.policy),
            params=name_params(row.spec, row.params),
            is_textbook=row.is_textbook,
            regret=estimate(sample),
            difference_to_reference=estimate(sample - samples[plan.reference]),
        )
