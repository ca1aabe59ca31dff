"""The verb `compare`: tunes several policies and validates them on the same instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import compress, count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.descriptions import describe, make_label
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.tuner import Tuner
from banditune.results.comparison_results import Comparison, ComparisonEntry
from banditune.results.estimates import Estimate, RegretDistribution
from banditune.results.search_results import SearchPosterior
from banditune.simulation.memory import check_regret_memory
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator, check_storable
from banditune.study.exact_values import find_lower_bound
from banditune.study.hold_out import HoldOutSplit, has_hold_out, note_small_data_set, split_spec
from banditune.study.notices import collect_notices
from banditune.study.parameter_effect import choose_probe_values, note_no_effect
from banditune.study.parameter_values import (
    assign_ranges,
    describe_searched_range,
    explain_not_backtested,
    explain_not_tuned,
    make_textbook_row,
    resolve_only_range,
    resolve_ranges,
)
from banditune.study.progress import ProgressCallback, ProgressCounter
from banditune.study.requests import build_spec, check_count, make_study_setup, resolve_executor
from banditune.study.search import FIRST_VALIDATION_INSTANCE, check_search, resolve_tuner, run_search
from banditune.study.validation import simulate_both, validate_unexplored_end


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
    progress: ProgressCallback | None = None,
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
    tuner = resolve_tuner(tuner)
    budget, validate = check_count("budget", budget), check_count("validate", validate, 2)
    check_regret_memory(budget)
    if not isinstance(policies, Sequence) or len(policies) < 2:
        raise InvalidRequest(f"`policies` must be two policies or more, but got {policies!r}.")
    todo = [
        build_spec(
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
        for policy, asked in zip(policies, assign_ranges(policies, ranges), strict=True)
    ]
    check_storable(ledger, *todo)
    place = resolve_executor(cluster, jobs, time_limit, *todo)
    tunable = [len(resolve_ranges(job)) == 1 for job in todo]
    for job in compress(todo, tunable):
        check_search(tuner, resolve_only_range(job), budget)
    below = find_lower_bound(problem, todo[0].horizon, floor)
    judged = 2 * validate * len(todo) + (0 if has_hold_out(problem) else validate)
    told = ProgressCounter(progress, budget * sum(tunable) + judged)
    fresh = range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + validate)
    names = _number_duplicates([make_label(job.policy, hidden=[name for name, _ in job.sources]) for job in todo])
    with StoredSimulator(place, ledger) as player:
        found = [
            _tune_and_validate(number, name, job, tuner if can else None, budget, fresh, player, told)
            for number, (name, job, can) in enumerate(zip(names, todo, tunable, strict=True))
        ]
        ordered = sorted(found, key=lambda played: float(played.used[2].mean()))
        best = ordered[0]
        again = None if has_hold_out(problem) else _rerun_best(best, fresh, player, told)
    warnings = (
        *note_small_data_set(problem),
        *(_prefix_notice(played, warning) for played in found for warning in played.warnings),
    )
    entries = tuple(_make_entry(played, best.used[2]) for played in ordered)
    asked = {name: ends for found in assign_ranges(policies, ranges) for name, ends in found.items()}
    setup = replace(make_study_setup(todo[0], tuner, several=True), ranges=asked or None)
    return Comparison(entries, best.name, budget, validate, setup, below, warnings, again)


class _ValidatedPolicy(NamedTuple):
    """A policy of a comparison and its regrets on fresh instances, as tuned and as theory has it."""

    name: str
    parts: HoldOutSplit
    params: FloatArray
    belief: SearchPosterior | None
    spent: int
    tuned: FloatArray
    theory: FloatArray
    spread: RegretDistribution
    number: int
    warnings: tuple[str, ...]

    @property
    def used(self) -> tuple[SimulationSpec, FloatArray, FloatArray]:
        """What to use, its parameters and regrets: the tuned policy, unless the baseline is surely better."""
        job = self.parts.judge
        if Estimate.of(self.theory - self.tuned).high < 0:
            return job.baseline, make_textbook_row(job), self.theory
        return job, self.params, self.tuned


def _rerun_best(best: _ValidatedPolicy, fresh: range, player: StoredSimulator, told: ProgressCounter) -> Estimate:
    """What the best policy loses on other instances: on those that chose it the lowest of several means is too low."""
    others = range(fresh.stop, fresh.stop + len(fresh))
    used, params, _ = best.used
    return Estimate.of(player.play(used, params[None, :], others, first_row=2 * best.number, progress=told)[0, :, 0])


def _tune_and_validate(
    number: int,
    name: str,
    job: SimulationSpec,
    tuner: Tuner | None,
    budget: int,
    fresh: range,
    player: StoredSimulator,
    told: ProgressCounter,
) -> _ValidatedPolicy:
    """Tune a policy of a comparison, unless there is no tuner for it, and play it and theory's on fresh instances."""
    params, spent, belief, parts = make_textbook_row(job), 0, None, split_spec(job)
    among = resolve_only_range(job) if tuner else None
    if tuner and among:
        answer, trials = run_search(parts.search, tuner, among, budget, player, told)
        params, spent, belief = np.array([answer.value]), sum(trial.spent for trial in trials), answer.belief
    both = np.array([params, make_textbook_row(job)])
    played = simulate_both(parts.judge, both, fresh, player, told, 2 * number)
    tuned, theory = parts.judged(played, fresh)
    # With noise of their own, only the runs of the first policy are those that `simulate` plays again by their number.
    spread = RegretDistribution.of(
        played[0], FIRST_VALIDATION_INSTANCE if job.noise == "shared" or number == 0 else None, tuned
    )
    inert = None
    if among:
        inert = note_no_effect(
            parts.judge, among.name, choose_probe_values(among, float(params[0])), fresh, player, told
        )
    belief = None if inert else belief
    other = validate_unexplored_end(parts, belief, tuned, fresh, player, told, 2 * number)
    warnings = collect_notices(job, among, float(params[0]), belief, tuned, theory, other, inert)
    return _ValidatedPolicy(name, parts, params, belief, spent, tuned, theory, spread, number, tuple(warnings))


def _prefix_notice(played: _ValidatedPolicy, warning: str) -> str:
    """A warning that begins with the policy that it is about."""
    begins = f"{played.parts.judge.policy.name} "
    if warning.startswith(begins):
        return f"{played.name} {warning.removeprefix(begins)}"
    return f"{played.name}: {warning}"


def _make_entry(played: _ValidatedPolicy, lead: FloatArray) -> ComparisonEntry:
    """What a comparison keeps of a policy, beside the regrets of the best one."""
    job, estimate = played.parts.judge, played.parts.estimate
    params, theory = (
        dict(zip((found.name for found in resolve_ranges(job)), row.tolist(), strict=False))
        for row in (played.params, make_textbook_row(job))
    )
    why = explain_not_tuned(job)
    return ComparisonEntry(
        policy=played.name,
        made=describe(job.policy),
        params=params,
        tuned=not why,
        regret=estimate(played.tuned),
        behind=estimate(played.used[2] - lead),
        theory=estimate(played.theory),
        spent=played.spent,
        spread=played.spread,
        baseline=describe(job.baseline.policy),
        from_problem=dict(job.sources),
        theory_params=theory,
        gain=estimate(played.theory - played.tuned),
        belief=played.belief,
        not_tuned=why,
        not_backtested=explain_not_backtested(job),
        searched=None if why else describe_searched_range(job),
    )


def _number_duplicates(names: list[str]) -> list[str]:
    """Names of which none stands twice: ucb1, ucb1 (2)."""
    taken = set(names)
    found: list[str] = []
    for name in names:
        ways = (f"{name} ({number})" for number in count(2))
        found.append(next(way for way in ways if way not in taken) if name in found else name)
        taken.add(found[-1])
    return found
