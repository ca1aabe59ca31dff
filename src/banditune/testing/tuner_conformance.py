"""The checks of a user's own tuner, on known curves and in a small study."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import check_type
from banditune.core.errors import InvalidRequest, StopSearch
from banditune.core.space import Range, Space
from banditune.core.tuner import SPEND_BUDGET, Goal, SearchAnswer, Trial, Tuner
from banditune.policies.ucb1 import UCB1
from banditune.problems.bernoulli_arms import Bernoulli
from banditune.results.conformance_results import ConformanceReport
from banditune.results.result_record import from_json
from banditune.study.requests import check_count
from banditune.study.search import check_trial, check_trial_rows, start_search
from banditune.study.settings import Include, Run, Search
from banditune.study.tuning import tune
from banditune.testing.conformance_steps import (
    Finding,
    NotApplicable,
    Violation,
    check_description,
    forbid_global_randomness,
    run_steps,
)

RANGES = (
    Range("gamma", 0.0, 1.0, 1.0, False, "linear"),
    Range("pulls", 3.0, 5000.0, 10.0, True, "log"),
    Range("offset", -2.0, -1.5, -1.75, False, "linear"),
)
"""The searched ranges: the usual one, whole numbers on a log scale, and one below 0."""


SMALL_BUDGETS = (1, 2, 3, 7, 20, 60)
"""The budgets besides the given one. A tuner may reject the smallest ones."""


NO_BOUND: tuple[Include, ...] = ("no_lower_bound",)


LOWEST_UNIT = 0.3
"""The position of the curve's minimum, as a share of the range."""


STUDY_HORIZON, STUDY_BUDGET = 100, 500
"""The horizon and the budget of the small study. If a tuner rejects this budget, that of the check is used."""


def compute_dip(units: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Compute a curve with one dip, with noise."""
    return 10 + 40 * np.abs(units - LOWEST_UNIT) + 5 * rng.standard_normal(units.shape)


def compute_flat(units: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Compute the curve of a parameter without effect, with regret 0 everywhere."""
    return np.zeros(units.shape)


def compute_wild(units: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Compute regrets of which some are below 0 and a few are very large, like realised regrets."""
    return units - 3 + 1e6 * (rng.random(units.shape) < 0.01)


def compute_plain_dip(units: FloatArray, rng: np.random.Generator) -> FloatArray:
    """Compute a curve with one dip, without noise."""
    return 10 + 40 * np.abs(units - LOWEST_UNIT)


CURVES: tuple[Callable[..., FloatArray], ...] = (compute_dip, compute_flat, compute_wild)
"""A function from positions in the range to regrets."""


class SearchRecord(NamedTuple):
    """A search that has ended: its trials, its answer, and its number of runs."""

    trials: tuple[Trial, ...]
    row: tuple[float, ...]
    spent: int


def check_tuner(tuner: Tuner, *, budget: int = 1000, seed: int = 0) -> ConformanceReport:
    """Check that a tuner fulfils its contract: budget, range, random numbers and goal.

    It is meant for tests of your own tuner. It searches known curves, then tunes a policy, and takes a few seconds. The
    first violation raises an error with the check, the evidence and advice. The quality of the answers is not checked.

    Parameters
    ----------
    tuner : Tuner
        The tuner.
    budget : int
        The largest budget. The tuner must accept it.
    seed : int
        The seed of the curves' noise, and of the tuner's random numbers.

    Returns
    -------
    ConformanceReport
        The checks that were passed, with the number of searches.

    Raises
    ------
    ConformanceError
        If the tuner violates its contract.
    InvalidRequest
        If an argument of this function cannot be used.

    Examples
    --------
    >>> import banditune as bt
    >>> report = bt.testing.check_tuner(bt.tuners.Uniform(), budget=100)
    >>> [check.name for check in report.checks]
    ['description', 'contract', 'budget-and-range', 'random-numbers', 'study']
    """
    check_type("tuner", tuner, Tuner, "a tuner such as TwoPart()")
    budget, seed = check_count("budget", budget), check_count("seed", seed, 0)
    steps: dict[str, Callable[[], Finding]] = {
        "description": lambda: check_description(tuner, "Mine()"),
        "contract": lambda: check_contract(tuner, budget),
        "budget-and-range": lambda: check_budget_and_range(tuner, budget, seed),
        "random-numbers": lambda: check_random_numbers(tuner, budget, seed),
        "goal": lambda: check_goal(tuner, budget, seed),
        "study": lambda: check_study(tuner, budget, seed),
    }
    return run_steps("tuner", str(tuner.name), steps)


def check_contract(tuner: Tuner, budget: int) -> Finding:
    """Check that `search` is a generator with the right arguments."""
    arguments = list(inspect.signature(tuner.search).parameters)
    expected_count = 3 if tuner.accepts_goal else 2
    required = [name for name in arguments if name != "rng"]
    if len(required) != expected_count:
        expected = "(search_range, budget, goal)" if tuner.accepts_goal else "(search_range, budget)"
        raise Violation(
            f"`search` must take {expected}, and `rng` if it draws random numbers, but it takes ({', '.join(arguments)}); "
            "a tuner with accepts_goal = True has three arguments."
        )
    started: Any = start_search(tuner, list_spaces(tuner)[-1], budget)
    if not (hasattr(started, "send") and hasattr(started, "throw")):
        raise Violation(
            f"`search` must be a generator, which yields trials, but it returned {started!r:.80}; use `yield Trial(...)`."
        )
    return Finding(f"`search` is a generator of ({', '.join(arguments)})")


def run_search_on_curve(
    tuner: Tuner,
    space: Space,
    budget: int,
    curve: Callable[..., FloatArray],
    seed: int,
    goal: Goal = SPEND_BUDGET,
    max_trials: int | None = None,
) -> SearchRecord | None:
    """Run a search on a curve; None if the tuner rejects the budget. After `max_trials` it must answer."""
    rng = np.random.default_rng(seed)
    trials: list[Trial] = []
    spent = 0
    try:
        generator = start_search(tuner, space, budget, goal, seed)
        trial = next(generator)
        while True:
            if max_trials is not None and len(trials) >= max_trials:
                raise Violation("a search must answer when StopSearch is thrown into it, but it made another trial.")
            if not isinstance(trial, Trial):
                raise Violation(f"a search must yield Trial(values, size), but it yielded {trial!r:.80}.")
            trial = check_trial(tuner, trial, space, budget - spent)
            trials.append(trial)
            has_sizes = not isinstance(trial.size, int | np.integer)
            sizes: Any = trial.size if has_sizes else [trial.size] * len(trial.values)
            spent += sum(sizes)
            regrets: Any = [
                curve(np.full(size, np.mean(space.scale_to_unit(row))), rng)
                for row, size in zip(trial.values, sizes, strict=True)
            ]
            regrets = regrets if has_sizes else np.array(regrets)
            stop = max_trials is not None and len(trials) >= max_trials
            trial = generator.throw(StopSearch(regrets)) if stop else generator.send(regrets)
    except InvalidRequest as refusal:
        if trials:
            raise Violation(
                f"a search must reject its budget before the first trial, but after {len(trials)} trials it raised: "
                f"{refusal}"
            ) from refusal
        return None
    except StopIteration as answer:
        if not trials:
            raise Violation("a search must make a trial before it answers, but it made none.") from None
        value = answer.value.value if isinstance(answer.value, SearchAnswer) else answer.value
        (row,) = check_trial_rows(tuner, [value], space, "answered with")
        return SearchRecord(tuple(trials), row, spent)


def list_spaces(tuner: Tuner) -> list[Space]:
    """List the spaces that are searched: each range alone, and all together if the tuner searches several parameters."""
    together = RANGES[: tuner.max_parameters]
    return [*(Space((search_range,)) for search_range in RANGES), *([Space(together)] if len(together) > 1 else ())]


def check_budget_and_range(tuner: Tuner, budget: int, seed: int) -> Finding:
    """Check that no search exceeds its budget or leaves its range, for any regrets."""
    searches, refused = 0, 0
    for space in list_spaces(tuner):
        for runs in sorted({*SMALL_BUDGETS, budget}):
            for curve in CURVES:
                record = run_search_on_curve(tuner, space, runs, curve, seed)
                searches += 1
                if record is not None:
                    continue
                refused = max(refused, runs)
                if runs == budget:
                    raise Violation(
                        f"the tuner must accept the budget of the check, but it rejects {budget} runs for "
                        f"{', '.join(space.names)}; give a larger `budget`."
                    )
    refusal = f"; it rejects budgets up to {refused}, at least" if refused else ""
    return Finding(f"{searches} searches kept to their budget (1 to {budget}) and their range{refusal}", searches)


def check_random_numbers(tuner: Tuner, budget: int, seed: int) -> Finding:
    """Check that the same seed gives the same search, also while another search is under way."""
    space = list_spaces(tuner)[-1]
    with forbid_global_randomness("`search`"):
        first, second = (run_search_on_curve(tuner, space, budget, compute_dip, seed) for _ in range(2))
        between = start_search(tuner, space, budget, seed=seed + 1)
        next(between)
        during = run_search_on_curve(tuner, space, budget, compute_dip, seed)
        between.close()
    for record, when in ((second, "a second time"), (during, "during another search")):
        if record != first:
            raise Violation(
                f"the same seed must give the same search, but {when} it makes other trials; add an argument `rng` to "
                "`search`, draw only from it, and keep nothing on the tuner."
            )
    if "rng" not in inspect.signature(tuner.search).parameters:
        return Finding("the same regrets give the same trials; it draws no random numbers", 3, 0.0)
    third = run_search_on_curve(tuner, space, budget, compute_plain_dip, seed)
    fourth = run_search_on_curve(tuner, space, budget, compute_plain_dip, seed + 1)
    follows = "depends" if third != fourth else "does not depend"
    return Finding(
        f"the same seed gives the same trials; on a curve without noise the search {follows} on the seed", 5, 0.0
    )


def check_goal(tuner: Tuner, budget: int, seed: int) -> Finding:
    """Check that a tuner with a goal keeps to its budget, and answers when it must stop."""
    if not tuner.accepts_goal:
        raise NotApplicable("without accepts_goal = True it is only used with a budget")
    space = list_spaces(tuner)[-1]
    record = run_search_on_curve(tuner, space, budget, compute_dip, seed, Goal(0.5, 0.95))
    stopped = run_search_on_curve(tuner, space, budget, compute_dip, seed, Goal(0.001, 0.95), max_trials=1)
    if record is None or stopped is None:
        raise Violation(f"the tuner must accept the budget of the check with a goal, but it rejects {budget} runs.")
    return Finding(f"with a precision of 50% it uses {record.spent} of {budget} runs; it answers when it must stop", 2)


def check_study(tuner: Tuner, budget: int, seed: int) -> Finding:
    """Tune a policy, and check that the result is the same on one thread and on two, and after JSON."""
    study_budget = min(STUDY_BUDGET, budget)
    accepted = run_search_on_curve(tuner, Space(RANGES[:1]), study_budget, compute_dip, seed) is not None
    runs = study_budget if accepted else budget
    results = [
        tune(
            UCB1(noise=0.5),
            Bernoulli(arms=3),
            horizon=STUDY_HORIZON,
            budget=runs,
            seed=seed,
            include=NO_BOUND,
            search=Search(tuner=tuner, validate=50),
            run=Run(workers=workers),
        )
        for workers in (1, 2)
    ]
    if results[0] != results[1]:
        raise Violation(
            f"a study must give the same result on one thread and on two, but {results[0].params} became "
            f"{results[1].params}; keep nothing on the tuner, and draw only from `rng`."
        )
    if from_json(results[0].to_json()) != results[0]:
        raise Violation("a result must be the same after JSON, but it is not; use numbers and strings as options.")
    return Finding(f"the same result on one thread and on two, and after JSON ({results[0].search_runs} runs)", 2, 0.0)
