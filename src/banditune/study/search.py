"""Runs a tuner's search: requests trials from it, simulates them and sends it the regrets."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from inspect import signature
from typing import Any, cast

import numpy as np

from banditune.core.checks import check_number, check_type, convert_to_number
from banditune.core.errors import InvalidRequest, SimulationError, StopSearch
from banditune.core.messages import Argument, Wording
from banditune.core.request_errors import make_argument_error, make_limit_error
from banditune.core.space import Range, Space
from banditune.core.tuner import SPEND_BUDGET, Goal, SearchAnswer, SearchGenerator, Trial, Tuner
from banditune.results.search_results import TrialResult
from banditune.simulation.instances import SEARCH_INSTANCE_LIMIT
from banditune.simulation.memory import check_regret_memory
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.progress import ProgressCounter
from banditune.study.requests import check_count
from banditune.study.settings import Search
from banditune.tuners.cma_es import CMAES
from banditune.tuners.two_part import TwoPart

MAX_CONFIDENCE = 0.99
"""The highest confidence of a search. Its statements come from simulated curves, which are too few for more."""


FIRST_VALIDATION_INSTANCE = SEARCH_INSTANCE_LIMIT
"""The number of the first instance for validation. Searches use smaller numbers."""


SEARCH_SPAWN_KEY = (1, 0, 0)
"""The spawn key of a search's random numbers. Those of instances have two numbers."""


def run_search(
    spec: SimulationSpec,
    tuner: Tuner,
    space: Space,
    budget: int,
    simulator: StoredSimulator,
    counter: ProgressCounter,
    goal: Goal = SPEND_BUDGET,
    max_seconds: float = math.inf,
) -> tuple[SearchAnswer, tuple[TrialResult, ...]]:
    """Run the tuner's generator. Every trial has instances that no trial before it had.

    The value of the answer is a row of the space.
    """
    generator = start_search(tuner, space, budget, goal, spec.seed)
    trials: list[TrialResult] = []
    first = 0
    start = 0.0
    try:
        trial: Trial = next(generator)
        while True:
            trial = check_trial(tuner, trial, space, budget - sum(finished.total_runs for finished in trials))
            params = np.array(trial.values)
            if isinstance(trial.size, int | np.integer):
                runs = range(first, first + trial.size)
                regrets: Any = simulator.simulate(spec, params, runs, progress=counter)[:, :, 0]
                first += int(trial.size)
            else:
                rows = simulator.simulate_each(spec, params, trial.size, first, progress=counter)
                regrets = [row[:, 0] for row in rows]
                first += sum(trial.size)
            trials.append(TrialResult.from_regrets(trial.values, regrets))
            start = start or time.monotonic()  # without the time to compile
            if goal.precision is not None:
                counter.expect(min(first, budget - first))  # an estimate: as many runs again
            is_late = time.monotonic() - start > max_seconds
            trial = generator.throw(StopSearch(regrets)) if is_late else generator.send(regrets)
    except StopIteration as answer:
        search_answer = answer.value if isinstance(answer.value, SearchAnswer) else SearchAnswer(answer.value, None)
        (row,) = check_trial_rows(tuner, [search_answer.value], space, "answered with")
        if not trials:
            raise SimulationError(f"a search must make a trial before it answers, but {tuner} made none.") from None
        return search_answer._replace(value=row), tuple(trials)


def start_search(tuner: Tuner, space: Space, budget: int, goal: Goal = SPEND_BUDGET, seed: int = 0) -> SearchGenerator:
    """Start a search, without a trial. The tuner gets a goal and random numbers if its `search` takes them."""
    check_parameter_count(tuner, space)
    options: dict[str, Any] = {}
    if "rng" in signature(tuner.search).parameters:
        # Instances are drawn from the same seed. The spawn key makes these numbers independent of them.
        options["rng"] = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=SEARCH_SPAWN_KEY))
    goals = (goal,) if tuner.accepts_goal else ()
    searched = space.ranges[0] if tuner.max_parameters == 1 else space
    return tuner.search(searched, budget, *goals, **options)


def check_search(tuner: Tuner, space: Space, budget: int, goal: Goal = SPEND_BUDGET) -> None:
    """Check that a tuner accepts its budget, before any work."""
    next(start_search(tuner, space, budget, goal), None)


def check_parameter_count(tuner: Tuner, space: Space) -> None:
    """Check that a tuner can search so many parameters together."""
    if len(space.ranges) > tuner.max_parameters:
        most = f"{tuner.max_parameters} parameter{'s' * (tuner.max_parameters > 1)}"
        way_out = Wording(
            'fix others, as in Search(fixed={"name": 0.5}), or use another tuner',
            "fix others, as in --fix name=0.5, or use another tuner",
        )
        raise make_argument_error(
            "tuner",
            "unsupported",
            "must be able to search {} parameters together ({}), but {} searches {}; {}.",
            *(len(space.ranges), ", ".join(space.names), tuner, most, way_out),
        )


def resolve_max_time(max_time: Any) -> float:
    """Check how long a search may take, in seconds."""
    if max_time is None:
        return math.inf
    seconds = convert_to_number(max_time)
    if not seconds > 0:
        raise make_limit_error("max_time", max_time, above=0, note=", in seconds")
    return seconds


def check_trial(tuner: Tuner, trial: Trial, space: Space, remaining: int) -> Trial:
    """Check a tuner's trial: its values, its sizes, and the runs that are left."""
    has_one_size = isinstance(trial.size, int | np.integer)
    sizes: Any = [trial.size] * len(trial.values) if has_one_size else trial.size
    if len(sizes) != len(trial.values) or min(sizes, default=0) < 1:
        raise SimulationError(
            f"a trial must have values and a size >= 1 for all or for each, but {tuner} requested {trial}."
        )
    rows = check_trial_rows(tuner, trial.values, space, "asked for")
    if sum(sizes) > remaining:
        raise SimulationError(
            f"a search must keep to its budget, but {tuner} requested {sum(sizes):,} runs and {remaining:,} are left."
        )
    return trial._replace(values=rows)


def check_trial_rows(tuner: Tuner, rows: Sequence[Any], space: Space, did: str) -> tuple[tuple[float, ...], ...]:
    """Check that a tuner's values are in their ranges, and make rows of them. Rounding errors at an end are removed."""
    one_each = tuner.max_parameters == 1
    table = [(row,) if one_each else tuple(row) for row in rows]
    if any(len(row) != len(space.ranges) for row in table):
        raise SimulationError(
            f"a row must have a number for each of {', '.join(space.names)}, but {tuner} {did} {rows!r:.80}."
        )
    columns = [
        check_trial_values(tuner, values, search_range, did)
        for values, search_range in zip(zip(*table, strict=True), space.ranges, strict=True)
    ]
    return tuple(zip(*columns, strict=True))


def check_trial_values(tuner: Tuner, values: Sequence[Any], search_range: Range, did: str) -> tuple[float, ...]:
    """Check that values are in their range. Rounding errors at an end are removed."""
    numbers = tuple(
        search_range.clip_rounding_error(convert_to_number(value), search_range.low, search_range.high)
        for value in values
    )
    for value, number in zip(values, numbers, strict=True):
        if not search_range.low <= number <= search_range.high:
            raise SimulationError(
                f"a search must keep to its range, `{search_range.low:g} <= {search_range.name} <= "
                f"{search_range.high:g}`, but {tuner} {did} "
                f"{value!r}."
            )
    return numbers


def resolve_goal(tuner: Tuner, budget: Any, precision: Any, search: Search) -> Goal:
    """Check precision and confidence, and that the tuner supports them."""
    for name, limit in (("max_time", search.max_time), ("precision", precision)):
        if limit is None or tuner.accepts_goal:
            continue
        if tuner.max_parameters > 1:
            text = "needs a search of one parameter, but several are searched; give {} instead, or fix all but one."
            raise make_argument_error(name, "unsupported", text, Argument("budget"))
        text = f"needs a tuner that accepts a goal, such as TwoPart(), but got {tuner}."
        raise make_argument_error(name, "unsupported", text)
    if precision is not None and budget is not None:
        raise InvalidRequest(
            "either {} or {} can be given, but got both; use {} to bound the search.",
            *(Argument("budget"), Argument("precision"), Argument("max_runs")),
            argument="precision",
            code="conflict",
        )
    if precision is None and search.max_runs is not None:
        raise make_argument_error(
            "max_runs",
            "conflict",
            "bounds a search for a {}, but none was given; use {}.",
            Argument("precision"),
            Argument("budget"),
        )
    if precision is not None:
        precision = check_number("precision", precision, above=0, most=1, note=" (2% is 0.02)")
    confidence = check_number("confidence", search.confidence, least=0.5, most=MAX_CONFIDENCE, note=" (95% is 0.95)")
    return Goal(precision, confidence)


def resolve_budget(goal: Goal, budget: Any, max_runs: Any) -> int:
    """Resolve the largest number of runs of a search."""
    if goal.precision is not None:
        return check_count("max_runs", 100_000 if max_runs is None else max_runs)
    runs = check_count("budget", 1000 if budget is None else budget)
    check_regret_memory(runs)
    return runs


def resolve_tuner(tuner: Any, parameters: int = 1) -> Tuner:
    """Return the given tuner, or the default for this number of parameters."""
    if tuner is None:
        return TwoPart() if parameters <= 1 else CMAES()
    return cast(Tuner, check_type("tuner", tuner, Tuner, "a tuner such as TwoPart()"))
