"""Measures the regret of a tuned value on other problems than the expected one (`robustness`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.tuner import Tuner
from banditune.results.robustness_results import RobustnessReport, Scenario
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator
from banditune.study.assumption_notices import note_wrong_assumptions
from banditune.study.hold_out import note_small_data_set
from banditune.study.parameter_values import make_parameter_rows, resolve_only_range
from banditune.study.progress import ProgressCallback, ProgressCounter
from banditune.study.requests import build_spec, check_count, make_study_setup, resolve_executor
from banditune.study.scenario_tuning import estimate_scenario_runs, estimate_scenario_seconds, evaluate_scenario
from banditune.study.scenarios import list_scenario_specs
from banditune.study.search import check_search, resolve_tuner
from banditune.study.time_estimates import AnnounceCallback, format_duration


def robustness(
    policy: Policy,
    problem: Problem,
    value: float,
    *,
    horizon: int,
    others: Sequence[tuple[str, Problem]] | None = None,
    tuner: Tuner | None = None,
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
    progress: ProgressCallback | None = None,
    announce: AnnounceCallback | None = None,
) -> RobustnessReport:
    """What a parameter value loses where another problem comes: means shifted, spread, more arms, other horizons.

    On each of these problems the policy is tuned again, with the same budget; then the value, the best one that is known
    there and theory's play the same fresh instances. The best known value is the one that was tuned there, unless theory's
    or one beside is surely better. `ranges` are searched instead of the policy's usual one. `others` are problems of your
    own, each with a word for it. `announce` is called with a line on how long this will take, before it starts.
    """
    tuner, budget, validate = resolve_tuner(tuner), check_count("budget", budget), check_count("validate", validate, 2)
    job = build_spec(
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
    resolve_only_range(job)
    values = make_parameter_rows(job, value)
    if len(values) != 1:
        raise InvalidRequest(f"`value` must be one number, but got {value!r}; stress each value in a call of its own.")
    asked, left_out = list_scenario_specs(job, others)
    for _, other in asked:
        check_search(tuner, resolve_only_range(other), budget)
    told = ProgressCounter(progress, 0)
    with StoredSimulator(resolve_executor(cluster, jobs, time_limit, job)) as player:
        warnings = (*note_wrong_assumptions(job.policy, job.problem), *note_small_data_set(job.problem), *left_out)
        return evaluate_robustness(
            job, float(values[0, 0]), asked, tuner, budget, validate, player, told, warnings, announce
        )


def evaluate_robustness(
    job: SimulationSpec,
    value: float,
    asked: Sequence[tuple[str, SimulationSpec]],
    tuner: Tuner,
    budget: int,
    validate: int,
    player: StoredSimulator,
    told: ProgressCounter,
    warnings: tuple[str, ...],
    announce: AnnounceCallback | None = None,
) -> RobustnessReport:
    """Tune each of the jobs that may come instead, and play the value, the one tuned there and theory's."""
    runs = estimate_scenario_runs(budget, validate)
    told.last(len(asked) * runs)
    if announce:
        seconds = sum(estimate_scenario_seconds(job, value, budget, validate, player) for _, job in asked)
        announce(f"robustness: about {format_duration(seconds)} ({len(asked)} scenarios x {runs:,} runs)")
    strains = tuple(evaluate_scenario(*one, value, tuner, budget, validate, player, told) for one in asked)
    sentences = (*warnings, *note_missed_best(resolve_only_range(job).name, value, strains[0]))
    return RobustnessReport(
        {resolve_only_range(job).name: value}, strains, budget, validate, make_study_setup(job, tuner), sentences
    )


def note_missed_best(name: str, value: float, expected: Scenario) -> Iterator[str]:
    """A sentence where another value is surely better although the problem is the expected one."""
    if expected.least > 0:
        yield (
            f"the search for {name} = {value:.4g} missed a better value, {expected.best:.4g}, which loses "
            f"{expected.loss.mean:.4g} (95%: {expected.loss.low:.4g} to {expected.loss.high:.4g}) less where all is as "
            "expected: raise the budget."
        )
