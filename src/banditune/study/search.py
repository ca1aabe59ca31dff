"""Runs a tuner's search: asks it for trials, simulates them and sends it the regrets."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from inspect import signature
from typing import Any

import numpy as np

from banditune.core.checks import convert_to_number
from banditune.core.errors import InvalidRequest, SimulationError, StopSearch
from banditune.core.space import Range
from banditune.core.tuner import SPEND_BUDGET, Goal, SearchAnswer, SearchGenerator, Trial, Tuner
from banditune.results.search_results import TrialResult
from banditune.simulation.instances import SEARCH_INSTANCE_LIMIT
from banditune.simulation.memory import check_regret_memory
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.progress import ProgressCounter
from banditune.study.requests import check_count
from banditune.tuners.two_part import TwoPart

MAX_CONFIDENCE = 0.99
"""More than this cannot be read off the curves from which statements come."""


FIRST_VALIDATION_INSTANCE = SEARCH_INSTANCE_LIMIT
"""Validation plays instances from this number on; no search gets that far."""


SEARCH_SPAWN_KEY = (1, 0, 0)
"""The spawn key of a search's random numbers. Those of instances have two numbers."""


def run_search(
    job: SimulationSpec,
    tuner: Tuner,
    among: Range,
    budget: int,
    player: StoredSimulator,
    told: ProgressCounter,
    goal: Goal = SPEND_BUDGET,
    most: float = math.inf,
) -> tuple[SearchAnswer, tuple[TrialResult, ...]]:
    """Run the tuner's generator: every trial plays instances that no trial before it played."""
    asking = start_search(tuner, among, budget, goal, job.seed)
    trials: list[TrialResult] = []
    first = 0
    began = 0.0
    try:
        trial: Trial = next(asking)
        while True:
            trial = check_trial(tuner, trial, among, budget - sum(done.spent for done in trials))
            params = np.array(trial.values)[:, None]
            if isinstance(trial.size, int | np.integer):
                runs = range(first, first + trial.size)
                regrets: Any = player.play(job, params, runs, progress=told)[:, :, 0]
                first += int(trial.size)
            else:
                each = player.play_each(job, params, trial.size, first, progress=told)
                regrets = [row[:, 0] for row in each]
                first += sum(trial.size)
            trials.append(TrialResult.of(trial.values, regrets))
            began = began or time.monotonic()  # compiling does not count
            if goal.within is not None:
                told.expect(min(first, budget - first))  # nobody knows: as much again
            late = time.monotonic() - began > most
            trial = asking.throw(StopSearch(regrets)) if late else asking.send(regrets)
    except StopIteration as answer:
        found = answer.value if isinstance(answer.value, SearchAnswer) else SearchAnswer(answer.value, None)
        (value,) = check_trial_values(tuner, [found.value], among, "answered with")
        if not trials:
            raise SimulationError(f"a search must make a trial before it answers, but {tuner} made none.") from None
        return found._replace(value=value), tuple(trials)


def start_search(tuner: Tuner, among: Range, budget: int, goal: Goal = SPEND_BUDGET, seed: int = 0) -> SearchGenerator:
    """A search that has asked for nothing yet. It gets what its `run_search` takes: a goal, and random numbers of the seed."""
    taken: dict[str, Any] = {}
    if "rng" in signature(tuner.search).parameters:
        # Instances come from the same seed: the spawn key makes these numbers others than theirs.
        taken["rng"] = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=SEARCH_SPAWN_KEY))
    goals = (goal,) if tuner.aims else ()
    return tuner.search(among, budget, *goals, **taken)


def check_search(tuner: Tuner, among: Range, budget: int, goal: Goal = SPEND_BUDGET) -> None:
    """Let a tuner complain about its budget before there is work."""
    next(start_search(tuner, among, budget, goal), None)


def resolve_max_time(max_time: Any) -> float:
    """How long a search may take."""
    if max_time is None:
        return math.inf
    found = convert_to_number(max_time)
    if not found > 0:
        raise InvalidRequest(f"`max_time > 0` must hold, in seconds, but got max_time={max_time!r}.")
    return found


def check_trial(tuner: Tuner, trial: Trial, among: Range, left: int) -> Trial:
    """A tuner's question, if it can be answered with the runs that are left."""
    same = isinstance(trial.size, int | np.integer)
    sizes: Any = [trial.size] * len(trial.values) if same else trial.size
    if len(sizes) != len(trial.values) or min(sizes, default=0) < 1:
        raise SimulationError(
            f"a trial must have values and a size >= 1 for all or for each, but {tuner} asked for {trial}."
        )
    values = check_trial_values(tuner, trial.values, among, "asked for")
    if sum(sizes) > left:
        raise SimulationError(
            f"a search must keep to its budget, but {tuner} asked for {sum(sizes):,} runs where {left:,} are left."
        )
    return trial._replace(values=values)


def check_trial_values(tuner: Tuner, values: Sequence[Any], among: Range, did: str) -> tuple[float, ...]:
    """A tuner's values, if they are in the range that it was given; an end that only rounding misses is taken."""
    found = tuple(among.clip_rounding(convert_to_number(value), among.low, among.high) for value in values)
    for value, number in zip(values, found, strict=True):
        if not among.low <= number <= among.high:
            raise SimulationError(
                f"a search must keep to its range, `{among.low:g} <= {among.name} <= {among.high:g}`, but {tuner} {did} "
                f"{value!r}."
            )
    return found


def resolve_goal(tuner: Tuner, budget: Any, within: Any, confidence: Any, max_budget: Any, max_time: Any) -> Goal:
    """How sure the search must be, and of what."""
    for name, limit in (("max_time", max_time), ("within", within)):
        if limit is not None and not tuner.aims:
            raise InvalidRequest(
                f"`{name}` needs a tuner that knows how sure it is, such as TwoPart(), but got {tuner}."
            )
    if within is not None and budget is not None:
        raise InvalidRequest(
            "either `budget` or `within` can be wanted, but got both; use `max_budget` to bound the search."
        )
    if within is None and max_budget is not None:
        raise InvalidRequest("`max_budget` bounds a search that is told `within`, but got none; use `budget`.")
    if within is not None and not 0 < convert_to_number(within) <= 1:
        raise InvalidRequest(f"`0 < within <= 1` must hold (2% is 0.02), but got within={within!r}.")
    if not 0.5 <= convert_to_number(confidence) <= MAX_CONFIDENCE:
        raise InvalidRequest(
            f"`0.5 <= confidence <= {MAX_CONFIDENCE:g}` must hold (95% is 0.95), but got confidence={confidence!r}."
        )
    return Goal(None if within is None else float(within), float(confidence))


def resolve_budget(goal: Goal, budget: Any, max_budget: Any) -> int:
    """Runs that a search may spend."""
    if goal.within is not None:
        return check_count("max_budget", 100_000 if max_budget is None else max_budget)
    runs = check_count("budget", 1000 if budget is None else budget)
    check_regret_memory(runs)
    return runs


def resolve_tuner(tuner: Any) -> Tuner:
    """The tuner that was given, or the usual one."""
    if tuner is None:
        return TwoPart()
    if not isinstance(tuner, Tuner):
        raise InvalidRequest(f"`tuner` must be a tuner such as TwoPart(), but got {tuner!r}.")
    return tuner
