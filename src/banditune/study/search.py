"""Runs a tuner's search: asks it for trials, plays them, tells it the regrets."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from inspect import signature
from typing import Any

import numpy as np

from banditune.checks import number_in
from banditune.contracts import SPEND, BadRequest, Enough, Fault, Found, Goal, Range, Search, Trial, Tuner
from banditune.engine.cluster import Place, place_for
from banditune.engine.run import Job, check_regrets
from banditune.results import TrialResult
from banditune.study.door import LARGEST, whole
from banditune.study.player import Player
from banditune.tuners import TwoPart

Progress = Callable[[int, int], None]
"""Told (runs done, runs in all) as work goes on."""

SUREST = 0.99
"""More than this cannot be read off the curves from which statements come."""

FRESH = LARGEST
"""Validation plays instances from this number on; no search gets that far."""


SEARCHES = (1, 0, 0)
"""The spawn key of a search's random numbers. Those of instances have two numbers."""


def search(
    job: Job,
    tuner: Tuner,
    among: Range,
    budget: int,
    player: Player,
    told: Told,
    goal: Goal = SPEND,
    most: float = math.inf,
) -> tuple[Found, tuple[TrialResult, ...]]:
    """Run the tuner's generator: every trial plays instances that no trial before it played."""
    asking = begun(tuner, among, budget, goal, job.seed)
    trials: list[TrialResult] = []
    first = 0
    began = 0.0
    try:
        trial: Trial = next(asking)
        while True:
            trial = checked_trial(tuner, trial, among, budget - sum(done.spent for done in trials))
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
            trial = asking.throw(Enough(regrets)) if late else asking.send(regrets)
    except StopIteration as answer:
        found = answer.value if isinstance(answer.value, Found) else Found(answer.value, None)
        (value,) = checked_values(tuner, [found.value], among, "answered with")
        if not trials:
            raise Fault(f"a search must make a trial before it answers, but {tuner} made none.") from None
        return found._replace(value=value), tuple(trials)


def begun(tuner: Tuner, among: Range, budget: int, goal: Goal = SPEND, seed: int = 0) -> Search:
    """A search that has asked for nothing yet. It gets what its `search` takes: a goal, and random numbers of the seed."""
    taken: dict[str, Any] = {}
    if "rng" in signature(tuner.search).parameters:
        # Instances come from the same seed: the spawn key makes these numbers others than theirs.
        taken["rng"] = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=SEARCHES))
    goals = (goal,) if tuner.aims else ()
    return tuner.search(among, budget, *goals, **taken)


def check_search(tuner: Tuner, among: Range, budget: int, goal: Goal = SPEND) -> None:
    """Let a tuner complain about its budget before there is work."""
    next(begun(tuner, among, budget, goal), None)


def seconds(max_time: Any) -> float:
    """How long a search may take."""
    if max_time is None:
        return math.inf
    found = number_in(max_time)
    if not found > 0:
        raise BadRequest(f"`max_time > 0` must hold, in seconds, but got max_time={max_time!r}.")
    return found


def checked_trial(tuner: Tuner, trial: Trial, among: Range, left: int) -> Trial:
    """A tuner's question, if it can be answered with the runs that are left."""
    same = isinstance(trial.size, int | np.integer)
    sizes: Any = [trial.size] * len(trial.values) if same else trial.size
    if len(sizes) != len(trial.values) or min(sizes, default=0) < 1:
        raise Fault(f"a trial must have values and a size >= 1 for all or for each, but {tuner} asked for {trial}.")
    values = checked_values(tuner, trial.values, among, "asked for")
    if sum(sizes) > left:
        raise Fault(
            f"a search must keep to its budget, but {tuner} asked for {sum(sizes):,} runs where {left:,} are left."
        )
    return trial._replace(values=values)


def checked_values(tuner: Tuner, values: Sequence[Any], among: Range, did: str) -> tuple[float, ...]:
    """A tuner's values, if they are in the range that it was given; an end that only rounding misses is taken."""
    found = tuple(among.clip_rounding(number_in(value), among.low, among.high) for value in values)
    for value, number in zip(values, found, strict=True):
        if not among.low <= number <= among.high:
            raise Fault(
                f"a search must keep to its range, `{among.low:g} <= {among.name} <= {among.high:g}`, but {tuner} {did} "
                f"{value!r}."
            )
    return found


def goal_of(tuner: Tuner, budget: Any, within: Any, confidence: Any, max_budget: Any, max_time: Any) -> Goal:
    """How sure the search must be, and of what."""
    for name, limit in (("max_time", max_time), ("within", within)):
        if limit is not None and not tuner.aims:
            raise BadRequest(f"`{name}` needs a tuner that knows how sure it is, such as TwoPart(), but got {tuner}.")
    if within is not None and budget is not None:
        raise BadRequest(
            "either `budget` or `within` can be wanted, but got both; use `max_budget` to bound the search."
        )
    if within is None and max_budget is not None:
        raise BadRequest("`max_budget` bounds a search that is told `within`, but got none; use `budget`.")
    if within is not None and not 0 < number_in(within) <= 1:
        raise BadRequest(f"`0 < within <= 1` must hold (2% is 0.02), but got within={within!r}.")
    if not 0.5 <= number_in(confidence) <= SUREST:
        raise BadRequest(
            f"`0.5 <= confidence <= {SUREST:g}` must hold (95% is 0.95), but got confidence={confidence!r}."
        )
    return Goal(None if within is None else float(within), float(confidence))


def granted(goal: Goal, budget: Any, max_budget: Any) -> int:
    """Runs that a search may spend."""
    if goal.within is not None:
        return whole("max_budget", 100_000 if max_budget is None else max_budget)
    runs = whole("budget", 1000 if budget is None else budget)
    check_regrets(runs)
    return runs


def tuner_of(tuner: Any) -> Tuner:
    """The tuner that was given, or the usual one."""
    if tuner is None:
        return TwoPart()
    if not isinstance(tuner, Tuner):
        raise BadRequest(f"`tuner` must be a tuner such as TwoPart(), but got {tuner!r}.")
    return tuner


def place_of(cluster: Any, jobs: Any, time_limit: Any, *todo: Job) -> Place:
    """Where to play; policies that play themselves are Python, which threads could not play side by side."""
    itself = any(job.policy.plays_itself for job in todo)
    if itself and isinstance(cluster, str) and cluster == "threads" and jobs != 1:
        cluster = "processes"
    return place_for(cluster, None if jobs is None else whole("jobs", jobs), time_limit, todo[0].device)


class Told:
    """Adds up finished runs for a progress bar: those that are expected now, and those that come `later`."""

    def __init__(self, progress: Progress | None, total: int, later: int = 0) -> None:
        self.progress = progress
        self.done = 0
        self.later = later
        self.expect(total)

    def expect(self, runs: int) -> None:
        """So many runs are next."""
        self.total = self.done + runs

    def more(self, runs: int) -> None:
        """So many runs are next besides those that are expected."""
        self.total += runs

    def last(self, runs: int) -> None:
        """So many runs are next, and nothing is known to come after them."""
        self.later = 0
        self.expect(runs)

    def __call__(self, runs: int) -> None:
        self.done += runs
        if self.progress:
            self.progress(min(self.done, self.total), self.total + self.later)

    def part(self, runs: int) -> Progress:
        """Progress of a piece of the work that is `runs` runs long."""
        before = self.done

        def told(done: int, total: int) -> None:
            self.done = before + round(runs * done / total)
            self(0)

        return told
