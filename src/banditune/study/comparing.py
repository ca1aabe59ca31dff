"""The function `compare`: tunes several policies and validates them on the same instances."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple, get_args

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.descriptions import describe, make_label
from banditune.core.notice import Notice
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error
from banditune.core.tuner import Tuner
from banditune.results.comparison_results import Comparison, ComparisonEntry
from banditune.results.estimates import Estimate, RegretDistribution
from banditune.results.search_results import SearchPosterior
from banditune.simulation.memory import check_regret_memory
from banditune.simulation.spec import SimulationSpec
from banditune.storage.stored_simulator import StoredSimulator, check_storable
from banditune.study.exact_values import find_lower_bound
from banditune.study.hold_out import HoldOutSplit, has_hold_out, split_spec
from banditune.study.notices import collect_notices
from banditune.study.parameter_effect import list_parameters_without_effect
from banditune.study.parameter_values import (
    assign_fixed,
    assign_ranges,
    complete_row,
    describe_searched_ranges,
    explain_not_backtested,
    explain_not_tuned,
    make_textbook_row,
    name_params,
    resolve_space,
)
from banditune.study.policy_names import name_notices, number_duplicates
from banditune.study.problem_notices import note_problem
from banditune.study.progress import ProgressCallback, ProgressCounter
from banditune.study.repeatability import note_unrepeatable_runs
from banditune.study.requests import build_spec, check_count, make_study_setup, resolve_executor
from banditune.study.search import FIRST_VALIDATION_INSTANCE, check_search, resolve_tuner, run_search
from banditune.study.settings import (
    RUN,
    SEARCH,
    SIMULATION,
    Run,
    Search,
    Simulation,
    check_include,
    check_settings,
    check_unused,
    resolve_lower_bound_choice,
)
from banditune.study.validation import simulate_both, validate_unexplored_end

IncludeBound = Literal["lower_bound", "no_lower_bound"]
"""The choices for what a comparison computes besides its entries."""


def compare(
    policies: Sequence[Policy],
    problem: Problem,
    *,
    horizon: int,
    budget: int = 1000,
    seed: int = 0,
    include: Collection[IncludeBound] = (),
    search: Search = SEARCH,
    simulation: Simulation = SIMULATION,
    run: Run = RUN,
) -> Comparison:
    """Tune several policies with the same budget, and compare them on the same fresh instances.

    Parameters
    ----------
    policies : sequence of Policy
        Two policies or more. A policy without a parameter to search is not tuned; its entry says why.
        If a tuned value is significantly worse than the textbook value, the textbook value takes its place.
    problem : Problem
        The distribution of problem instances that is expected.
    horizon : int
        Steps in a run.
    budget : int
        Simulated runs of each search.
    seed : int
        The same seed gives the same answer.
    include : collection of {"lower_bound", "no_lower_bound"}
        By default, the lower bound on the regret of every policy is computed if this takes only seconds. "lower_bound"
        computes it in any case, "no_lower_bound" never.
    search : Search
        Settings of the search. Its ranges and fixed values apply to every policy with a parameter of that name.
    simulation : Simulation
        Settings that change numbers.
    run : Run
        Settings of the execution, which do not change numbers.

    Returns
    -------
    Comparison
        An entry for each policy, the best first. `difference_to_best` is a paired difference to the policy with the lowest
        mean. The lowest of several means is a little too low, so the best policy is simulated again (`best_rerun`).

    Raises
    ------
    InvalidRequest
        If an argument cannot be used.
    SimulationError
        If a policy or the problem fails.

    Examples
    --------
    >>> import banditune as bt
    >>> search = bt.Search(validate=200)
    >>> found = bt.compare([bt.UCB1(), bt.Greedy()], bt.Bernoulli(arms=3), horizon=100, budget=200, search=search)
    >>> len(found.entries)
    2
    """
    check_settings(search=search, simulation=simulation, run=run)
    check_unused("compare", search, "confidence", "max_runs", "max_time")
    included = check_include(include, get_args(IncludeBound))
    budget, validate = check_count("budget", budget), search.validate or 1000
    check_regret_memory(budget)
    if not isinstance(policies, Sequence) or len(policies) < 2:
        raise make_argument_error("policies", "wrong-type", f"must be two policies or more, but got {policies!r}.")
    ranges, fixed = assign_ranges(policies, search.ranges), assign_fixed(policies, search.fixed)
    specs = [
        build_spec(
            policy,
            problem,
            horizon=horizon,
            seed=seed,
            search=replace(search, ranges=policy_ranges or None, fixed=policy_fixed or None),
            simulation=simulation,
            run=run,
        )
        for policy, policy_ranges, policy_fixed in zip(policies, ranges, fixed, strict=True)
    ]
    check_storable(run.store, *specs)
    executor = resolve_executor(run, *specs)
    tuners = [_resolve_tuner_of(search.tuner, spec) for spec in specs]
    for spec, policy_tuner in zip(specs, tuners, strict=True):
        if policy_tuner:
            check_search(policy_tuner, resolve_space(spec), budget)
    lower_bound = find_lower_bound(problem, specs[0].horizon, resolve_lower_bound_choice(included))
    fresh = range(FIRST_VALIDATION_INSTANCE, FIRST_VALIDATION_INSTANCE + validate)
    with StoredSimulator(executor, run.store) as simulator:
        candidates, rerun = _simulate_policies(specs, tuners, budget, fresh, simulator, run.progress)
    setup = replace(
        make_study_setup(specs[0], _find_common_tuner(tuners), several=True),
        ranges={name: ends for policy_ranges in ranges for name, ends in policy_ranges.items()} or None,
        fixed={name: value for policy_fixed in fixed for name, value in policy_fixed.items()} or None,
    )
    return Comparison(
        entries=tuple(_make_entry(candidate, candidates[0].recommended[2]) for candidate in candidates),
        best_policy=candidates[0].name,
        budget=budget,
        validation_runs=validate,
        setup=setup,
        lower_bound=lower_bound,
        notices=(*note_problem(specs[0]), *_list_policy_notices(candidates)),
        best_rerun=rerun,
    )


def _resolve_tuner_of(tuner: Tuner | None, spec: SimulationSpec) -> Tuner | None:
    """Return the tuner of a policy: the given one, or the default for its parameters; None if nothing is searched."""
    parameters = 0 if explain_not_tuned(spec) else len(resolve_space(spec).ranges)
    return resolve_tuner(tuner, parameters) if parameters else None


def _find_common_tuner(tuners: Sequence[Tuner | None]) -> Tuner | None:
    """Return the tuner of all policies that are tuned; None if they have different ones by default."""
    used = {tuner.name: tuner for tuner in tuners if tuner}
    return next(iter(used.values())) if len(used) == 1 else None


class _ValidatedPolicy(NamedTuple):
    """A policy of a comparison and its regrets on fresh instances, with the tuned and with the textbook value."""

    name: str
    split: HoldOutSplit
    params: FloatArray
    posterior: SearchPosterior | None
    search_runs: int
    tuned_regrets: FloatArray
    textbook_regrets: FloatArray
    distribution: RegretDistribution
    policy_number: int
    notices: tuple[Notice, ...]

    @property
    def recommended(self) -> tuple[SimulationSpec, FloatArray, FloatArray]:
        """The recommended spec, parameters and regrets: tuned, or the textbook's if it is significantly better."""
        spec = self.split.validation_spec
        if not explain_not_tuned(spec) and Estimate.from_sample(self.textbook_regrets - self.tuned_regrets).high < 0:
            return spec.textbook_spec, make_textbook_row(spec), self.textbook_regrets
        return spec, self.params, self.tuned_regrets


def _simulate_policies(
    specs: Sequence[SimulationSpec],
    tuners: Sequence[Tuner | None],
    budget: int,
    fresh: range,
    simulator: StoredSimulator,
    progress: ProgressCallback | None,
) -> tuple[list[_ValidatedPolicy], Estimate | None]:
    """Tune and validate the policies, and simulate the best one again; returns them, the best first, and its regret.

    If part of a data set is held out, nothing is simulated again because there are no other instances.
    """
    held_out = has_hold_out(specs[0].problem)
    validation_runs = 2 * len(fresh) * len(specs) + (0 if held_out else len(fresh))
    counter = ProgressCounter(progress, budget * sum(map(bool, tuners)) + validation_runs)
    names = number_duplicates(
        [make_label(spec.policy, hidden=[name for name, _ in spec.option_sources]) for spec in specs]
    )
    candidates = [
        _tune_and_validate(number, name, spec, tuner, budget, fresh, simulator, counter)
        for number, (name, spec, tuner) in enumerate(zip(names, specs, tuners, strict=True))
    ]
    ordered = sorted(candidates, key=lambda candidate: float(candidate.recommended[2].mean()))
    return ordered, None if held_out else _rerun_best(ordered[0], fresh, simulator, counter)


def _rerun_best(best: _ValidatedPolicy, fresh: range, simulator: StoredSimulator, counter: ProgressCounter) -> Estimate:
    """Estimate the regret of the best policy on other instances than those on which it was selected."""
    other_runs = range(fresh.stop, fresh.stop + len(fresh))
    used, params, _ = best.recommended
    return Estimate.from_sample(
        simulator.simulate(used, params[None, :], other_runs, first_row=2 * best.policy_number, progress=counter)[
            0, :, 0
        ]
    )


def _tune_and_validate(
    number: int,
    name: str,
    spec: SimulationSpec,
    tuner: Tuner | None,
    budget: int,
    fresh: range,
    simulator: StoredSimulator,
    counter: ProgressCounter,
) -> _ValidatedPolicy:
    """Tune a policy if there is a tuner, and simulate it and the textbook policy on fresh instances."""
    unrepeatable = tuple(note_unrepeatable_runs(spec))
    space, row, spent, posterior, split = resolve_space(spec) if tuner else None, (), 0, None, split_spec(spec)
    if tuner and space:
        answer, trials = run_search(split.search_spec, tuner, space, budget, simulator, counter)
        row, spent, posterior = answer.value, sum(trial.total_runs for trial in trials), answer.posterior
    params = complete_row(spec, row)
    both = np.array([params, make_textbook_row(spec)])
    candidate = simulate_both(split.validation_spec, both, fresh, simulator, counter, 2 * number)
    tuned, textbook = split.reduce_validation(candidate, fresh)
    # With independent noise, `simulate` repeats a run by its number only for the first policy.
    distribution = RegretDistribution.from_sample(
        candidate[0], FIRST_VALIDATION_INSTANCE if spec.common_random_numbers or number == 0 else None, tuned
    )
    no_effect: tuple[Notice, ...] = ()
    if space:
        no_effect = list_parameters_without_effect(split.validation_spec, row, fresh, simulator, counter)
    posterior = None if len(no_effect) == len(row) else posterior
    end_advantage = validate_unexplored_end(split, posterior, tuned, fresh, simulator, counter, 2 * number)
    warnings = collect_notices(spec, space, row, posterior, tuned, textbook, end_advantage, no_effect)
    return _ValidatedPolicy(
        name, split, params, posterior, spent, tuned, textbook, distribution, number, (*unrepeatable, *warnings)
    )


def _list_policy_notices(candidates: Sequence[_ValidatedPolicy]) -> Iterator[Notice]:
    """Yield the notices on every policy, in the order in which the policies were given; each begins with a name."""
    for candidate in sorted(candidates, key=lambda candidate: candidate.policy_number):
        yield from name_notices(candidate.name, candidate.split.validation_spec.policy.name, candidate.notices)


def _make_entry(candidate: _ValidatedPolicy, lead: FloatArray) -> ComparisonEntry:
    """Make the entry of a policy. `lead` are the regrets of the best one."""
    spec, estimate = candidate.split.validation_spec, candidate.split.estimate
    params, textbook = (name_params(spec, row) for row in (candidate.params, make_textbook_row(spec)))
    why = explain_not_tuned(spec)
    return ComparisonEntry(
        policy=candidate.name,
        policy_config=describe(spec.policy),
        params=params,
        is_tuned=not why,
        regret=estimate(candidate.tuned_regrets),
        difference_to_best=estimate(candidate.recommended[2] - lead),
        textbook_regret=estimate(candidate.textbook_regrets),
        search_runs=candidate.search_runs,
        distribution=candidate.distribution,
        textbook_policy=describe(spec.textbook_spec.policy),
        from_problem=dict(spec.option_sources),
        textbook_params=textbook,
        gain=estimate(candidate.textbook_regrets - candidate.tuned_regrets),
        posterior=candidate.posterior,
        not_tuned_reason=why,
        not_backtested_reason=explain_not_backtested(spec),
        searched_ranges=None if why else describe_searched_ranges(spec),
    )
