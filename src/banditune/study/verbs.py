"""simulate, curve, tune, compare: ask the tuner, call the engine, keep the record."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from banditune.contracts import BadRequest, Floats, Policy, Problem, Range, Trial, Tuner, described, label
from banditune.engine.run import Job, play
from banditune.results import Comparison, Curve, Entry, Estimate, TrialResult, Tuning, frozen
from banditune.study.door import LARGEST, job_of, only_range, ranges, rows, setup_of, theory_row, whole
from banditune.study.unimodal import check_unimodal
from banditune.tuners import NoTeS

Progress = Callable[[int, int], None]
"""Told (runs done, runs in all) as work goes on."""

FRESH = LARGEST
"""Validation plays instances from this number on; no search gets that far."""

GRID = 17
DENSER = (8, 8)
"""A curve starts from so many values and adds so many in each refinement."""

CANDIDATES = (GRID - 1) * 2 ** len(DENSER) + 1
"""Values that a refined curve could have held."""


def simulate(
    policy: Policy,
    problem: Problem,
    values: Any = None,
    *,
    horizon: int,
    runs: int = 1000,
    seed: int = 0,
    regret: str = "expected",
    noise: str = "shared",
    at: Sequence[int] | None = None,
    first: int = 0,
    jobs: int | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Floats:
    """Regrets of parameter values on problem instances: an array (values, runs), or (values, runs, len(at)).

    Run r plays instance r for every value, so columns are paired; `first` is the first run. With no values, theory's are
    played. `at` asks for the regret after certain steps. `noise="own"` gives each value reward noise of its own;
    `shortcut=False` plays step by step; `device` is "cpu", "gpu", or "auto" for a GPU if there is one.
    """
    job = job_of(
        policy, problem, horizon=horizon, seed=seed, regret=regret, noise=noise, at=at, shortcut=shortcut, device=device
    )
    params = rows(job, values)
    first, runs = whole("first", first, 0, 2 * LARGEST), whole("runs", runs)
    told = _Told(progress, len(params) * runs)
    out = play(job, params, range(first, first + runs), jobs=_jobs(jobs), progress=told)
    return out[:, :, 0] if at is None else out


def curve(
    policy: Policy,
    problem: Problem,
    values: Any = None,
    *,
    horizon: int,
    runs: int = 1000,
    seed: int = 0,
    regret: str = "expected",
    noise: str = "shared",
    jobs: int | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Curve:
    """Bayes regret over parameter values with standard errors, and a test whether it has a single dip.

    With no values, it starts from an even grid and adds values where the curve bends most. `best` is the value with the
    lowest mean; `best_regret` comes from fresh instances, because the lowest of many means is too low.
    """
    job = job_of(
        policy, problem, horizon=horizon, seed=seed, regret=regret, noise=noise, shortcut=shortcut, device=device
    )
    runs = whole("runs", runs, 2)
    return _curve(job, values, range(runs), _jobs(jobs), progress)


def _curve(job: Job, values: Any, runs: range, jobs: int | None, progress: Progress | None) -> Curve:
    found = ranges(job)
    if len(found) > 1:
        raise BadRequest(f"a curve is over one parameter, but {job.policy.name} has {len(found)}; use simulate().")
    if not found and values is None:
        values = [0.0]
    among = found[0] if found else Range("value", 0.0, 1.0, 0.0, False, "linear")
    if values is None:
        table, regrets = _refined(job, among, runs, jobs, progress)
    else:
        given = np.unique(rows(job, values))
        told = _Told(progress, len(given) * len(runs))
        table, regrets = given, play(job, given[:, None], runs, jobs=jobs, progress=told)[:, :, 0]
    mean = regrets.mean(axis=1)
    best = int(mean.argmin())
    # The lowest of many means is too low: what is said of it comes from instances that it was not chosen on.
    again = play(job, table[best : best + 1, None], range(FRESH + runs.stop, FRESH + runs.stop + len(runs)), jobs=jobs)
    return Curve(
        among.name,
        frozen(table),
        frozen(mean),
        frozen(regrets.std(axis=1, ddof=1) / math.sqrt(len(runs))),
        len(runs),
        float(table[best]),
        Estimate.of(again[0, :, 0]),
        among.theory,
        among.scale == "log",
        check_unimodal(table, regrets, candidates=CANDIDATES if values is None else 0),
        setup_of(job),
    )


def _refined(job: Job, among: Range, runs: range, jobs: int | None, progress: Progress | None) -> tuple[Floats, Floats]:
    """An even grid, then more values where the curve bends most, at the centre of the intervals there."""
    told = _Told(progress, (GRID + sum(DENSER)) * len(runs))
    units = np.linspace(0, 1, GRID)
    regrets: dict[float, Floats] = {}
    for more in (*DENSER, 0):
        values = dict.fromkeys(among.at(unit) for unit in units)
        new = np.array([value for value in values if value not in regrets])
        if len(new):
            rows_of = play(job, new[:, None], runs, first_row=len(regrets), jobs=jobs, progress=told)[:, :, 0]
            regrets |= dict(zip(new.tolist(), rows_of, strict=True))
        if more:
            height = np.array([regrets[among.at(unit)].mean() for unit in units])
            units = denser(units, height, more)
    values_in_order = sorted(regrets)
    return np.array(values_in_order), np.array([regrets[value] for value in values_in_order])


def denser(units: Floats, height: Floats, more: int) -> Floats:
    """Add the centres of the `more` intervals beside which the curve bends most.

    The bend is measured on the logarithm of the height above the minimum plus a tenth of it, so that the dip counts and
    the cliff at the far end does not take all the points.
    """
    low = height.min()
    relief = np.log(height - low + 0.1 * (abs(low) + 1e-12 + 0.01 * (height.max() - low)))
    slope = np.diff(relief) / np.diff(units)
    bend = np.concatenate([[0.0], np.abs(np.diff(slope)), [0.0]])
    score = (bend[:-1] + bend[1:]) * np.diff(units)
    chosen = np.argsort(-score, kind="stable")[:more]
    centres = (units[:-1] + units[1:])[chosen] / 2
    return np.unique(np.concatenate([units, centres]))


def tune(
    policy: Policy,
    problem: Problem,
    tuner: Tuner | None = None,
    *,
    horizon: int,
    budget: int = 1000,
    validate: int = 1000,
    seed: int = 0,
    regret: str = "expected",
    noise: str = "shared",
    jobs: int | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    curve: bool = False,
    progress: Progress | None = None,
) -> Tuning:
    """Find the parameter value with the lowest Bayes regret within a budget of simulated runs.

    Afterwards the answer and theory's value are played on `validate` fresh instances, the same for both: what is
    reported was not seen by the search. With `curve`, the regret curve is drawn on fresh instances too.
    """
    job = job_of(
        policy, problem, horizon=horizon, seed=seed, regret=regret, noise=noise, shortcut=shortcut, device=device
    )
    tuner = _tuner(tuner)
    among = only_range(job)
    budget, validate = whole("budget", budget), whole("validate", validate, 2)
    drawn = (GRID + sum(DENSER)) * validate if curve else 0
    told = _Told(progress, budget + 2 * validate + drawn)
    value, trials = _search(job, tuner, among, budget, _jobs(jobs), told)
    fresh = range(FRESH, FRESH + validate)
    told.done = budget
    tuned, theory = play(job, np.array([[value], [among.theory]]), fresh, jobs=_jobs(jobs), progress=told)[:, :, 0]
    picture = None
    if curve:
        picture = _curve(job, None, fresh, _jobs(jobs), told.part(drawn))
    return Tuning(
        {among.name: value},
        Estimate.of(tuned),
        Estimate.of(theory),
        Estimate.of(theory - tuned),
        {among.name: among.theory},
        sum(trial.spent for trial in trials),
        budget,
        validate,
        trials,
        picture,
        setup_of(job, tuner),
    )


def _search(
    job: Job, tuner: Tuner, among: Range, budget: int, jobs: int | None, told: _Told
) -> tuple[float, tuple[TrialResult, ...]]:
    """Run the tuner's generator: every trial plays instances that no trial before it played."""
    search = tuner.search(among, budget)
    trials: list[TrialResult] = []
    first = 0
    try:
        trial: Trial = next(search)
        while True:
            params = np.array(trial.values)[:, None]
            regrets = play(job, params, range(first, first + trial.size), jobs=jobs, progress=told)[:, :, 0]
            first += trial.size
            se = regrets.std(axis=1, ddof=1) / math.sqrt(trial.size) if trial.size > 1 else np.full(len(params), np.nan)
            trials.append(TrialResult(frozen(trial.values), frozen(regrets.mean(axis=1)), frozen(se), trial.size))
            trial = search.send(regrets)
    except StopIteration as answer:
        return float(answer.value), tuple(trials)


def compare(
    policies: Sequence[Policy],
    problem: Problem,
    tuner: Tuner | None = None,
    *,
    horizon: int,
    budget: int = 1000,
    validate: int = 1000,
    seed: int = 0,
    regret: str = "expected",
    noise: str = "shared",
    jobs: int | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Comparison:
    """Tune each policy with the same budget, then play all on the same fresh instances; differences are paired.

    A policy that has not exactly one parameter is played as theory has it. `behind` is a policy's paired difference to
    the one with the lowest mean, with an interval of its own; whether others may be as good is said for all together.
    """
    tuner = _tuner(tuner)
    budget, validate = whole("budget", budget), whole("validate", validate, 2)
    if not isinstance(policies, Sequence) or len(policies) < 2:
        raise BadRequest(f"`policies` must be two policies or more, but got {policies!r}.")
    todo = [
        job_of(
            policy, problem, horizon=horizon, seed=seed, regret=regret, noise=noise, shortcut=shortcut, device=device
        )
        for policy in policies
    ]
    tunable = [len(ranges(job)) == 1 for job in todo]
    told = _Told(progress, budget * sum(tunable) + 2 * validate * len(todo))
    for job, can in zip(todo, tunable, strict=True):
        if can:
            next(tuner.search(only_range(job), budget))  # complaints about the budget come before the work
    fresh = range(FRESH, FRESH + validate)
    names = _distinct([label(job.policy) for job in todo])
    found = []
    for place, (name, job, can) in enumerate(zip(names, todo, tunable, strict=True)):
        params, spent = theory_row(job), 0
        if can:
            value, trials = _search(job, tuner, only_range(job), budget, _jobs(jobs), told)
            params, spent = np.array([value]), sum(trial.spent for trial in trials)
        both = np.array([params, theory_row(job)])
        tuned, theory = play(job, both, fresh, first_row=2 * place, jobs=_jobs(jobs), progress=told)[:, :, 0]
        names_of = (r.name for r in ranges(job))
        found.append((name, job, dict(zip(names_of, params.tolist(), strict=False)), can, tuned, theory, spent))
    found.sort(key=lambda item: float(item[4].mean()))
    lead = found[0][4]
    entries = tuple(
        Entry(
            name,
            described(job.policy),
            params,
            can,
            Estimate.of(tuned),
            Estimate.of(tuned - lead),
            Estimate.of(theory),
            spent,
        )
        for name, job, params, can, tuned, theory, spent in found
    )
    return Comparison(entries, entries[0].policy, budget, validate, setup_of(todo[0], tuner, several=True))


def _distinct(names: list[str]) -> list[str]:
    """Names of which none stands twice: ucb1, ucb1 (2)."""
    return [
        name if names.index(name) == place else f"{name} ({names[: place + 1].count(name)})"
        for place, name in enumerate(names)
    ]


def _tuner(tuner: Any) -> Tuner:
    if tuner is None:
        return NoTeS()
    if not isinstance(tuner, Tuner):
        raise BadRequest(f"`tuner` must be a tuner such as NoTeS(), but got {tuner!r}.")
    return tuner


def _jobs(jobs: Any) -> int | None:
    return None if jobs is None else whole("jobs", jobs)


class _Told:
    """Adds up finished runs for a progress bar."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress = progress
        self.total = total
        self.done = 0

    def __call__(self, runs: int) -> None:
        self.done += runs
        if self.progress:
            self.progress(min(self.done, self.total), self.total)

    def part(self, runs: int) -> Progress:
        """Progress of a piece of the work that is `runs` runs long."""
        before = self.done

        def told(done: int, total: int) -> None:
            self.done = before + round(runs * done / total)
            self(0)

        return told
