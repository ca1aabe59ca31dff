"""simulate, curve, tune, compare: ask the tuner, call the engine, keep the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from banditune.contracts import BadRequest, Floats, Policy, Problem, Range, Tuner
from banditune.descriptions import described, label
from banditune.engine.run import Job, check_regrets
from banditune.results import Belief, Comparison, Curve, Entry, Estimate, Spread, Tuning
from banditune.study.curves import DRAWN, axis_of, drawn_curve
from banditune.study.door import (
    LARGEST,
    job_of,
    only_range,
    ranges_by_policy,
    resolved_ranges,
    rows,
    setup_of,
    theory_row,
    whole,
    why_not_backtested,
    why_not_tuned,
)
from banditune.study.held_out import Parts, holds_out, parts_of, too_few
from banditune.study.inert import inert_warning, places
from banditune.study.known import floor_of
from banditune.study.noise import noise_warnings
from banditune.study.player import Player, check_keeping
from banditune.study.search import (
    FRESH,
    Progress,
    Told,
    check_search,
    goal_of,
    granted,
    place_of,
    search,
    seconds,
    tuner_of,
)
from banditune.study.timing import Announce, in_words, seconds_per_run
from banditune.study.trust import enough, expected_and_others, runs_of_scenario, strained
from banditune.study.validation import LEAST, beside, play_both, validated
from banditune.study.warn import every_warning, short_of

CURVE = 1000
"""Instances on which the curve of a tuning is drawn, at most."""

STRESSED = 1000
"""Runs with which each of the problems that may come instead is tuned."""


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
    cluster: Any = "threads",
    time_limit: float | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    ledger: str | Path | None = None,
    progress: Progress | None = None,
) -> Floats:
    """Regrets of parameter values on problem instances: an array (values, runs), or (values, runs, len(at)).

    Run r plays instance r for every value, so columns are paired; `first` is the first run. Values may lie outside of the
    range that a tuner would search. With no values, theory's are played. `at` asks for the regret after certain steps.
    `noise="own"` gives each value reward noise of its own; `shortcut=False` plays step by step; `device` is "cpu", "gpu",
    or "auto" for a GPU if there is one. A `ledger` is a file in which regrets are kept, rounded to float32: what it holds
    is not played again.

    `cluster` is where to play: "threads" of this process, "processes", "dask://host:8786", "ray://host:10001", or a Dask
    client; `jobs` is how many threads or processes. With `time_limit`, no piece of the work may take more seconds: child
    processes play, and are ended.
    """
    job = job_of(
        policy, problem, horizon=horizon, seed=seed, regret=regret, noise=noise, at=at, shortcut=shortcut, device=device
    )
    place = place_of(cluster, jobs, time_limit, job)
    params = rows(job, values)
    first, runs = whole("first", first, 0, 2 * LARGEST), whole("runs", runs)
    check_keeping(ledger, job)
    told = Told(progress, len(params) * runs)
    with Player(place, ledger, exact=True) as player:
        out = player.play(job, params, range(first, first + runs), progress=told)
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
    ranges: Mapping[str, Sequence[float]] | None = None,
    jobs: int | None = None,
    cluster: Any = "threads",
    time_limit: float | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    ledger: str | Path | None = None,
    progress: Progress | None = None,
) -> Curve:
    """Bayes regret over parameter values with standard errors, and a test whether it has a single dip.

    With no values, it starts from an even grid and adds values where the curve bends most. `best` is the value with the
    lowest mean; `best_regret` comes from fresh instances, because the lowest of many means is too low. `ranges`, such as
    {"gamma": (0, 3)}, is where the grid goes instead of the policy's usual range. A `ledger` keeps the regrets, as in
    `simulate`; it does not change the result.
    """
    job = job_of(
        policy,
        problem,
        horizon=horizon,
        seed=seed,
        regret=regret,
        noise=noise,
        shortcut=shortcut,
        device=device,
        ranges=ranges,
    )
    runs = whole("runs", runs, 2)
    if values is not None and ranges is not None:
        raise BadRequest("either `values` or `ranges` can be given for a curve, but got both; values need no range.")
    among, given = axis_of(job, values)
    check_keeping(ledger, job)
    place = place_of(cluster, jobs, time_limit, job)
    with Player(place, ledger) as player:
        parts = parts_of(job)
        found = drawn_curve(job, parts, among, given, range(runs), player, progress)
        inert = None
        if resolved_ranges(job):
            some = places(among, *found.values[[0, len(found.values) // 2, -1]].tolist())
            inert = inert_warning(parts.search, among.name, some, range(runs), player)
    warnings = (*filter(None, [inert]), *noise_warnings(job.policy, job.problem), *too_few(job.problem))
    return replace(found, warnings=warnings)


def tune(
    policy: Policy,
    problem: Problem,
    tuner: Tuner | None = None,
    *,
    horizon: int,
    budget: int | None = None,
    within: float | None = None,
    confidence: float = 0.95,
    max_budget: int | None = None,
    max_time: float | None = None,
    validate: int | None = None,
    seed: int = 0,
    regret: str = "expected",
    noise: str = "shared",
    ranges: Mapping[str, Sequence[float]] | None = None,
    jobs: int | None = None,
    cluster: Any = "threads",
    time_limit: float | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    curve: bool = False,
    floor: bool | None = None,
    stress: bool = False,
    ledger: str | Path | None = None,
    progress: Progress | None = None,
    announce: Announce | None = None,
) -> Tuning:
    """Find the parameter value with the lowest Bayes regret.

    The search has a `budget` of simulated runs (1,000 if nothing is said). Or it is told a precision: `within=0.02` goes on
    until, with that confidence, no other value is better by more than 2% of the regret, or until `max_budget` runs or
    `max_time` seconds are spent. Afterwards the answer and theory's value are played on fresh instances, the same for
    both, and the lower end of the range where it may be better: what is reported was not seen by the search. There are
    `validate` of them, or as many as it takes to know the gain to a few percent. `ranges`, such as {"gamma": (0, 3)}, is
    what is searched instead of the policy's usual range. With `curve`, the regret curve is drawn on
    fresh instances too. The `floor` under all policies is computed where that takes seconds; True asks for it in any case.
    With `stress`, the answer is also played where other problems come than this one, each of which is tuned again (see
    `bt.stress`). A `ledger` is a file that keeps every regret as it comes: a tuning that was interrupted goes on from
    there, to the same result. `announce` is called with a line on how long the curve and the stress test will take, before
    each starts.

    A policy whose noise or prior is "problem", the default, has the problem's; the textbook's policy plays theory's value
    then, with the textbook's noise and prior (`Tuning.baseline`).
    """
    job = job_of(
        policy,
        problem,
        horizon=horizon,
        seed=seed,
        regret=regret,
        noise=noise,
        shortcut=shortcut,
        device=device,
        ranges=ranges,
    )
    place = place_of(cluster, jobs, time_limit, job)
    tuner = tuner_of(tuner)
    among = only_range(job)
    validate = None if validate is None else whole("validate", validate, 2)
    goal = goal_of(tuner, budget, within, confidence, max_budget, max_time)
    budget, most = granted(goal, budget, max_budget), seconds(max_time)
    # What may be refused comes before the work, and before a ledger is made.
    check_keeping(ledger, job)
    check_search(tuner, among, budget, goal)
    asked, left_out = expected_and_others(job) if stress else ([], ())
    each = enough(tuner, asked, STRESSED, budget)
    below = floor_of(problem, job.horizon, floor)
    drawn = DRAWN * min(validate or LEAST, CURVE) if curve else 0
    stressed = len(asked) * runs_of_scenario(each, validate or LEAST)
    told = Told(progress, budget, later=2 * (validate or LEAST) + drawn + stressed)
    parts = parts_of(job)
    with Player(place, ledger) as player:
        answer, trials = search(parts.search, tuner, among, budget, player, told, goal, most)
        told.later = drawn + stressed
        first, played = validated(parts, np.array([[answer.value], [among.theory]]), validate, player, told)
        fresh = range(first, first + played.shape[1])
        tuned, theory = parts.judged(played, fresh)
        inert = inert_warning(parts.judge, among.name, places(among, answer.value), fresh, player, told)
        # Of a parameter without an effect there is no best value to be sure of.
        belief = None if inert else answer.belief
        other = beside(parts, belief, tuned, fresh, player, told)
        told.later = stressed
        picture = _picture(job, parts, among, answer.value, len(fresh), player, told, announce) if curve else None
        strain = None
        if stress:
            strain = strained(
                job, answer.value, asked, tuner, each, validate or LEAST, player, told, left_out, announce
            )
    # The textbook's policy, where it is another one, is no value of the parameter that the search could have found.
    ahead = (among.theory, parts.estimate(tuned - theory)) if job.textbook is None else None
    missed = tuple(short_of(goal, belief, ahead, other))
    return Tuning(
        {among.name: answer.value},
        parts.estimate(tuned),
        parts.estimate(theory),
        parts.estimate(theory - tuned),
        {among.name: among.theory},
        sum(trial.spent for trial in trials),
        budget,
        len(fresh),
        trials,
        belief,
        goal.within,
        None if goal.within is None or belief is None else not missed,
        (
            *too_few(job.problem),
            *every_warning(job, among, answer.value, belief, tuned, theory, other, inert),
            *missed,
        ),
        picture,
        setup_of(job, tuner),
        below,
        spread=Spread.of(played[0], first, tuned),
        theory_spread=Spread.of(played[1], first, theory),
        validate=validate,
        stress=strain,
        baseline=described(job.baseline.policy),
        searched=searched(job),
    )


def _picture(
    job: Job,
    parts: Parts,
    among: Range,
    value: float,
    validated: int,
    player: Player,
    told: Told,
    announce: Announce | None,
) -> Curve:
    """The curve of a tuning, on fresh instances; half of its values are near the tuned one.

    Of a data set it is played by the part that judges.
    """
    runs = min(validated, CURVE)
    told.expect(DRAWN * runs)
    if announce:
        near, all_over = (
            seconds_per_run(job, values, player) for values in ([value], [among.at(unit / 8) for unit in range(9)])
        )
        seconds = DRAWN * runs * (near + all_over) / 2
        announce(f"curve: about {in_words(seconds)} ({DRAWN} values x {runs:,} runs)")
    fresh = range(FRESH, FRESH + runs)
    return drawn_curve(job, parts.exchanged, among, None, fresh, player, told.part(DRAWN * runs))


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
    ranges: Mapping[str, Sequence[float]] | None = None,
    jobs: int | None = None,
    cluster: Any = "threads",
    time_limit: float | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    floor: bool | None = None,
    ledger: str | Path | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """Tune each policy with the same budget, then play all on the same fresh instances; differences are paired.

    A policy that has not exactly one parameter is played as theory has it, and `not_tuned` says why. A tuned value that is
    surely worse than theory's is marked, and theory's takes its place. `behind` is a policy's paired difference to the one
    with the lowest mean, with an interval of its own; whether others may be as good is said for all together. The lowest
    mean of several is a little too low, so that the best policy plays once more, on as many other instances (`again`);
    where tables or campaigns are held out there are no others. `ranges`, such as {"gamma": (0, 3)}, is what is searched for
    every policy that has a parameter of this name, instead of its usual range. Noise, prior and what is played "as theory
    has it" are as in `tune`. A `ledger` keeps the regrets.
    """
    tuner = tuner_of(tuner)
    budget, validate = whole("budget", budget), whole("validate", validate, 2)
    check_regrets(budget)
    if not isinstance(policies, Sequence) or len(policies) < 2:
        raise BadRequest(f"`policies` must be two policies or more, but got {policies!r}.")
    todo = [
        job_of(
            policy,
            problem,
            horizon=horizon,
            seed=seed,
            regret=regret,
            noise=noise,
            shortcut=shortcut,
            device=device,
            ranges=asked,
        )
        for policy, asked in zip(policies, ranges_by_policy(policies, ranges), strict=True)
    ]
    check_keeping(ledger, *todo)
    place = place_of(cluster, jobs, time_limit, *todo)
    tunable = [len(resolved_ranges(job)) == 1 for job in todo]
    for job in compress(todo, tunable):
        check_search(tuner, only_range(job), budget)
    below = floor_of(problem, todo[0].horizon, floor)
    judged = 2 * validate * len(todo) + (0 if holds_out(problem) else validate)
    told = Told(progress, budget * sum(tunable) + judged)
    fresh = range(FRESH, FRESH + validate)
    names = _distinct([label(job.policy, hidden=[name for name, _ in job.sources]) for job in todo])
    with Player(place, ledger) as player:
        found = [
            _played(number, name, job, tuner if can else None, budget, fresh, player, told)
            for number, (name, job, can) in enumerate(zip(names, todo, tunable, strict=True))
        ]
        ordered = sorted(found, key=lambda played: float(played.used[2].mean()))
        best = ordered[0]
        again = None if holds_out(problem) else _again(best, fresh, player, told)
    warnings = (
        *too_few(problem),
        *(_named(played, warning) for played in found for warning in played.warnings),
    )
    entries = tuple(_entry(played, best.used[2]) for played in ordered)
    asked = {name: ends for found in ranges_by_policy(policies, ranges) for name, ends in found.items()}
    setup = replace(setup_of(todo[0], tuner, several=True), ranges=asked or None)
    return Comparison(entries, best.name, budget, validate, setup, below, warnings, again)


def _again(best: _Played, fresh: range, player: Player, told: Told) -> Estimate:
    """What the best policy loses on other instances: on those that chose it the lowest of several means is too low."""
    others = range(fresh.stop, fresh.stop + len(fresh))
    used, params, _ = best.used
    return Estimate.of(player.play(used, params[None, :], others, first_row=2 * best.number, progress=told)[0, :, 0])


class _Played(NamedTuple):
    """A policy of a comparison and its regrets on fresh instances, as tuned and as theory has it."""

    name: str
    parts: Parts
    params: Floats
    belief: Belief | None
    spent: int
    tuned: Floats
    theory: Floats
    spread: Spread
    number: int
    warnings: tuple[str, ...]

    @property
    def used(self) -> tuple[Job, Floats, Floats]:
        """What to use, its parameters and regrets: the tuned policy, unless the baseline is surely better."""
        job = self.parts.judge
        if Estimate.of(self.theory - self.tuned).high < 0:
            return job.baseline, theory_row(job), self.theory
        return job, self.params, self.tuned


def _played(
    number: int, name: str, job: Job, tuner: Tuner | None, budget: int, fresh: range, player: Player, told: Told
) -> _Played:
    """Tune a policy of a comparison, unless there is no tuner for it, and play it and theory's on fresh instances."""
    params, spent, belief, parts = theory_row(job), 0, None, parts_of(job)
    among = only_range(job) if tuner else None
    if tuner and among:
        answer, trials = search(parts.search, tuner, among, budget, player, told)
        params, spent, belief = np.array([answer.value]), sum(trial.spent for trial in trials), answer.belief
    both = np.array([params, theory_row(job)])
    played = play_both(parts.judge, both, fresh, player, told, 2 * number)
    tuned, theory = parts.judged(played, fresh)
    # With noise of their own, only the runs of the first policy are those that `simulate` plays again by their number.
    spread = Spread.of(played[0], FRESH if job.noise == "shared" or number == 0 else None, tuned)
    inert = None
    if among:
        inert = inert_warning(parts.judge, among.name, places(among, float(params[0])), fresh, player, told)
    belief = None if inert else belief
    other = beside(parts, belief, tuned, fresh, player, told, 2 * number)
    warnings = every_warning(job, among, float(params[0]), belief, tuned, theory, other, inert)
    return _Played(name, parts, params, belief, spent, tuned, theory, spread, number, tuple(warnings))


def _named(played: _Played, warning: str) -> str:
    """A warning that begins with the policy that it is about."""
    begins = f"{played.parts.judge.policy.name} "
    if warning.startswith(begins):
        return f"{played.name} {warning.removeprefix(begins)}"
    return f"{played.name}: {warning}"


def _entry(played: _Played, lead: Floats) -> Entry:
    """What a comparison keeps of a policy, beside the regrets of the best one."""
    job, estimate = played.parts.judge, played.parts.estimate
    params, theory = (
        dict(zip((found.name for found in resolved_ranges(job)), row.tolist(), strict=False))
        for row in (played.params, theory_row(job))
    )
    why = why_not_tuned(job)
    return Entry(
        policy=played.name,
        made=described(job.policy),
        params=params,
        tuned=not why,
        regret=estimate(played.tuned),
        behind=estimate(played.used[2] - lead),
        theory=estimate(played.theory),
        spent=played.spent,
        spread=played.spread,
        baseline=described(job.baseline.policy),
        from_problem=dict(job.sources),
        theory_params=theory,
        gain=estimate(played.theory - played.tuned),
        belief=played.belief,
        not_tuned=why,
        not_backtested=why_not_backtested(job),
        searched=None if why else searched(job),
    )


def searched(job: Job) -> dict[str, tuple[float, float]]:
    """The range that was searched."""
    among = only_range(job)
    return {among.name: (among.low, among.high)}


def _distinct(names: list[str]) -> list[str]:
    """Names of which none stands twice: ucb1, ucb1 (2)."""
    taken = set(names)
    found: list[str] = []
    for name in names:
        ways = (f"{name} ({number})" for number in count(2))
        found.append(next(way for way in ways if way not in taken) if name in found else name)
        taken.add(found[-1])
    return found
