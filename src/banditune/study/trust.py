"""What a tuned value loses where the problem is another one than was expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from banditune.contracts import BadRequest, Policy, Problem, Tuner, is_ours
from banditune.descriptions import described
from banditune.engine.run import Job
from banditune.problems.variants import variants
from banditune.results import Estimate, Strain, Stress
from banditune.study.door import job_of, only_range, rows, setup_of, whole
from banditune.study.noise import noise_warnings
from banditune.study.player import Player
from banditune.study.search import FRESH, Progress, Told, check_search, place_of, search, tuner_of

OTHER_HORIZONS = ((1 / 3, "a third of the horizon"), (3, "three times the horizon"))


def stress(
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
    jobs: int | None = None,
    cluster: Any = "threads",
    time_limit: float | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    progress: Progress | None = None,
) -> Stress:
    """What a parameter value loses where another problem comes: means shifted, spread, more arms, other horizons.

    On each of these problems the policy is tuned again, with the same budget; then the value, the one tuned there and
    theory's play the same fresh instances. `others` are problems of your own, each with a word for it.
    """
    tuner, budget, validate = tuner_of(tuner), whole("budget", budget), whole("validate", validate, 2)
    job = job_of(
        policy, problem, horizon=horizon, seed=seed, regret=regret, noise=noise, shortcut=shortcut, device=device
    )
    only_range(job)
    values = rows(job, value)
    if len(values) != 1:
        raise BadRequest(f"`value` must be one number, but got {value!r}; stress each value in a call of its own.")
    asked, left_out = expected_and_others(job, others)
    for _, other in asked:
        check_search(tuner, only_range(other), budget)
    told = Told(progress, 0)
    with Player(place_of(cluster, jobs, time_limit, job)) as player:
        warnings = (*noise_warnings(job.policy, job.problem), *left_out)
        return strained(job, float(values[0, 0]), asked, tuner, budget, validate, player, told, warnings)


def strained(
    job: Job,
    value: float,
    asked: Sequence[tuple[str, Job]],
    tuner: Tuner,
    budget: int,
    validate: int,
    player: Player,
    told: Told,
    warnings: tuple[str, ...],
) -> Stress:
    """Tune each of the jobs that may come instead, and play the value, the one tuned there and theory's."""
    told.last(len(asked) * (budget + 3 * validate))
    strains = []
    for words, other in asked:
        among = only_range(other)
        found, _ = search(other, tuner, among, budget, player, told)
        three = np.array([[among.within(value)], [found.value], [among.theory]])
        own, best, theory = player.play(other, three, range(FRESH, FRESH + validate), progress=told)[:, :, 0]
        strains.append(
            Strain(
                words, described(other.problem), other.horizon, Estimate.of(own), found.value,
                *map(Estimate.of, (best, own - best, theory, own - theory)),
            )
        )  # fmt: skip
    return Stress({only_range(job).name: value}, tuple(strains), budget, validate, setup_of(job, tuner), warnings)


def again(job: Job, problem: Problem, horizon: int) -> Job:
    """The same request with another problem and horizon, checked at the door."""
    return job_of(
        job.policy, problem, horizon=horizon, seed=job.seed, regret=job.regret, noise=job.noise, shortcut=job.shortcut,
        device=job.device,
    )  # fmt: skip


def expected_and_others(
    job: Job, others: Sequence[tuple[str, Problem]] | None = None
) -> tuple[list[tuple[str, Job]], tuple[str, ...]]:
    """The expected job, those with problems beside it, and those with other horizons, each in words.

    Beside it go only those that the policy can play; sentences say which cannot be played, and why. A user's own must.
    """
    beside: Any = known_beside(job.problem) if others is None else others
    pairs = isinstance(beside, list | tuple) and all(isinstance(pair, tuple) and len(pair) == 2 for pair in beside)
    if not pairs or not all(isinstance(problem, Problem) for _, problem in beside):
        raise BadRequest(f"`others` must be a list of pairs (words, problem), but got {others!r}.")
    horizons = [(words, max(1, round(job.horizon * factor))) for factor, words in OTHER_HORIZONS]
    changed = [
        *((str(words), problem, job.horizon) for words, problem in beside),
        *((f"{words} ({steps:,})", job.problem, steps) for words, steps in horizons if steps != job.horizon),
    ]
    asked, left_out = [("as expected", job)], []
    for words, problem, horizon in changed:
        try:
            other = again(job, problem, horizon)
            only_range(other)
        except BadRequest as refused:
            if others is not None and problem is not job.problem:
                raise
            left_out.append(f"'{words}' is left out: {refused}")
        else:
            asked.append((words, other))
    if len(asked) == 1:
        raise BadRequest(
            f"a stress test must have other problems than the expected one, but nothing beside {job.problem.name} can be "
            "played; give `others`, a list of pairs (words, problem)."
        )
    return asked, tuple(left_out)


def known_beside(problem: Problem) -> list[tuple[str, Problem]]:
    """Problems beside one whose means are drawn as we know it: a user's own `sample` may not look at what is changed."""
    return list(variants(problem)) if is_ours(type(problem).sample) else []


def enough(tuner: Tuner, asked: Sequence[tuple[str, Job]], budget: int, granted: int) -> int:
    """Runs to tune each job with: the budget, or what the tuner was granted before, where it needs more."""
    try:
        for _, other in asked:
            check_search(tuner, only_range(other), budget)
    except BadRequest:
        return granted
    return budget
