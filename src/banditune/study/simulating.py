"""The functions `simulate` and `curve`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.results.tuning_results import Curve
from banditune.simulation.instances import SEARCH_INSTANCE_LIMIT
from banditune.storage.stored_simulator import StoredSimulator, check_storable
from banditune.study.assumption_notices import note_wrong_assumptions
from banditune.study.hold_out import split_spec
from banditune.study.parameter_effect import choose_curve_probe_values, note_no_effect
from banditune.study.parameter_values import make_parameter_rows, resolve_ranges
from banditune.study.problem_notices import note_problem
from banditune.study.progress import ProgressCounter
from banditune.study.regret_curves import resolve_axis, simulate_curve
from banditune.study.repeatability import note_unrepeatable_runs
from banditune.study.requests import build_spec, check_count, resolve_executor
from banditune.study.settings import RUN, SEARCH, SIMULATION, Run, Search, Simulation, check_unused


def simulate(
    policy: Policy,
    problem: Problem,
    params: Any = None,
    *,
    horizon: int,
    runs: int = 1000,
    seed: int = 0,
    checkpoints: Sequence[int] | None = None,
    first_instance: int = 0,
    simulation: Simulation = SIMULATION,
    run: Run = RUN,
) -> FloatArray:
    """Simulate a policy with given parameter values, and return the regret of every run.

    Run r uses instance r for every value, so that columns are paired.

    Parameters
    ----------
    policy : Policy
        The policy, such as `UCB1()`.
    problem : Problem
        The distribution of problem instances, such as `Bernoulli(arms=10)`.
    params : number, sequence of numbers, sequence of rows, or mapping, optional
        Parameter values; rows of numbers if the policy has several parameters. The textbook values by default. They may
        lie outside the range that a tuner searches.
    horizon : int
        Steps in a run.
    runs : int
        Runs for each value.
    seed : int
        The same seed gives the same answer.
    checkpoints : sequence of int, optional
        Steps after which the regret is returned, in increasing order.
    first_instance : int
        The number of the first instance.
    simulation : Simulation
        Settings that change numbers.
    run : Run
        Settings of the execution, which do not change numbers.

    Returns
    -------
    ndarray
        Regrets, of shape (values, runs), or (values, runs, checkpoints).

    Raises
    ------
    InvalidRequest
        If an argument cannot be used.
    SimulationError
        If the policy or the problem fails.

    Examples
    --------
    >>> import banditune as bt
    >>> regrets = bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.2, 1.0], horizon=100, runs=500)
    >>> regrets.shape
    (2, 500)
    """
    spec = build_spec(
        policy, problem, horizon=horizon, seed=seed, checkpoints=checkpoints, simulation=simulation, run=run
    )
    executor = resolve_executor(run, spec)
    rows = make_parameter_rows(spec, params)
    first = check_count("first_instance", first_instance, 0, 2 * SEARCH_INSTANCE_LIMIT)
    runs = check_count("runs", runs)
    check_storable(run.store, spec)
    progress = ProgressCounter(run.progress, len(rows) * runs)
    with StoredSimulator(executor, run.store, exact=True) as simulator:
        regrets = simulator.simulate(spec, rows, range(first, first + runs), progress=progress)
    return regrets[:, :, 0] if checkpoints is None else regrets


def curve(
    policy: Policy,
    problem: Problem,
    values: Any = None,
    *,
    horizon: int,
    runs: int = 1000,
    seed: int = 0,
    search: Search = SEARCH,
    simulation: Simulation = SIMULATION,
    run: Run = RUN,
) -> Curve:
    """Compute the Bayes regret over parameter values, with standard errors and a test for a second dip.

    Parameters
    ----------
    policy : Policy
        A policy with one parameter that is not fixed.
    problem : Problem
        The distribution of problem instances.
    values : sequence of float, optional
        The parameter's values. By default the curve starts from an even grid and adds values where it bends most.
    horizon : int
        Steps in a run.
    runs : int
        Runs for each value.
    seed : int
        The same seed gives the same answer.
    search : Search
        Its `ranges` and `fixed` determine the grid. Other fields must not be given.
    simulation : Simulation
        Settings that change numbers.
    run : Run
        Settings of the execution, which do not change numbers.

    Returns
    -------
    Curve
        Values with mean regrets. `best_value` has the lowest mean; `best_regret` comes from fresh instances, because the
        lowest of many means is too low.

    Raises
    ------
    InvalidRequest
        If an argument cannot be used.

    Examples
    --------
    >>> import banditune as bt
    >>> found = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), [0.1, 0.3, 1.0], horizon=100, runs=500)
    >>> found.best_value
    0.3
    """
    spec = build_spec(policy, problem, horizon=horizon, seed=seed, search=search, simulation=simulation, run=run)
    check_unused("curve", search, "tuner", "confidence", "max_runs", "max_time", "validate")
    runs = check_count("runs", runs, 2)
    if values is not None and search.ranges is not None:
        raise InvalidRequest(
            "either {} or {} can be given for a curve, but got both; leave out the range.",
            *(Argument("values"), Argument("ranges")),
            argument="values",
            code="conflict",
        )
    search_range, grid = resolve_axis(spec, values)
    check_storable(run.store, spec)
    unrepeatable = tuple(note_unrepeatable_runs(spec))
    with StoredSimulator(resolve_executor(run, spec), run.store) as simulator:
        split = split_spec(spec)
        result_curve = simulate_curve(spec, split, search_range, grid, range(runs), simulator, run.progress)
        no_effect = None
        if resolve_ranges(spec):
            probe_values = choose_curve_probe_values(search_range, result_curve.values)
            no_effect = note_no_effect(split.search_spec, search_range.name, probe_values, range(runs), simulator)
    notices = (
        *unrepeatable,
        *filter(None, [no_effect]),
        *note_wrong_assumptions(spec.policy, spec.problem, spec.horizon),
        *note_problem(spec),
    )
    return replace(result_curve, notices=notices)
