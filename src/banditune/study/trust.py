"""What a tuned value loses where the problem is another one than was expected."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from banditune.contracts import BadRequest, Found, Policy, Problem, Range, Tuner, is_ours
from banditune.descriptions import described
from banditune.engine.run import Job
from banditune.problems.variants import variants
from banditune.results import Estimate, Strain, Stress
from banditune.study.door import job_of, only_range, playable, rows, setup_of, whole
from banditune.study.held_out import Parts, parts_of, too_few
from banditune.study.noise import noise_warnings
from banditune.study.player import Player
from banditune.study.search import FRESH, Progress, Told, check_search, place_of, search, tuner_of
from banditune.study.timing import Announce, in_words, seconds_per_run
from banditune.study.validation import Beside, beside
from banditune.study.warn import contradicted, nearest_end

CHOOSE, CANDIDATES = 250, 7
"""So many instances choose the best known value, out of at most so many values."""

SURELY = 3.0
"""Another value takes the place of the re-tuned one if it is so many standard errors better: of six, by chance in 1%."""

MATERIAL = 0.01
"""A re-tuned value that loses a smaller share more than the value that it would replace is as good."""

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
    ranges: Mapping[str, Sequence[float]] | None = None,
    jobs: int | None = None,
    cluster: Any = "threads",
    time_limit: float | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    progress: Progress | None = None,
    announce: Announce | None = None,
) -> Stress:
    """What a parameter value loses where another problem comes: means shifted, spread, more arms, other horizons.

    On each of these problems the policy is tuned again, with the same budget; then the value, the best one that is known
    there and theory's play the same fresh instances. The best known value is the one that was tuned there, unless theory's
    or one beside is surely better. `ranges` are searched instead of the policy's usual one. `others` are problems of your
    own, each with a word for it. `announce` is called with a line on how long this will take, before it starts.
    """
    tuner, budget, validate = tuner_of(tuner), whole("budget", budget), whole("validate", validate, 2)
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
    only_range(job)
    values = rows(job, value)
    if len(values) != 1:
        raise BadRequest(f"`value` must be one number, but got {value!r}; stress each value in a call of its own.")
    asked, left_out = expected_and_others(job, others)
    for _, other in asked:
        check_search(tuner, only_range(other), budget)
    told = Told(progress, 0)
    with Player(place_of(cluster, jobs, time_limit, job)) as player:
        warnings = (*noise_warnings(job.policy, job.problem), *too_few(job.problem), *left_out)
        return strained(job, float(values[0, 0]), asked, tuner, budget, validate, player, told, warnings, announce)


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
    announce: Announce | None = None,
) -> Stress:
    """Tune each of the jobs that may come instead, and play the value, the one tuned there and theory's."""
    runs = runs_of_scenario(budget, validate)
    told.last(len(asked) * runs)
    if announce:
        seconds = sum(expected_seconds(job, value, budget, validate, player) for _, job in asked)
        announce(f"robustness: about {in_words(seconds)} ({len(asked)} scenarios x {runs:,} runs)")
    strains = tuple(strain(*one, value, tuner, budget, validate, player, told) for one in asked)
    sentences = (*warnings, *missed_best(only_range(job).name, value, strains[0]))
    return Stress({only_range(job).name: value}, strains, budget, validate, setup_of(job, tuner), sentences)


def missed_best(name: str, value: float, expected: Strain) -> Iterator[str]:
    """A sentence where another value is surely better although the problem is the expected one."""
    if expected.least > 0:
        yield (
            f"the search for {name} = {value:.4g} missed a better value, {expected.best:.4g}, which loses "
            f"{expected.loss.mean:.4g} (95%: {expected.loss.low:.4g} to {expected.loss.high:.4g}) less where all is as "
            "expected: raise the budget."
        )


def runs_of_scenario(budget: int, validate: int) -> int:
    """About how many runs a scenario takes: the search, the choice of the best known value, and validation."""
    return budget + CANDIDATES * min(validate, CHOOSE) + 4 * validate


def expected_seconds(job: Job, value: float, budget: int, validate: int, player: Player) -> float:
    """How long a scenario will take: most runs are at values near the one that is judged, some at theory's."""
    among = only_range(job)
    own, theory = (seconds_per_run(job, [one], player) for one in (playable(job, among, value), among.theory))
    return (runs_of_scenario(budget, validate) - validate) * own + validate * theory


def strain(
    words: str, job: Job, value: float, tuner: Tuner, budget: int, validate: int, player: Player, told: Told
) -> Strain:
    """Tune the policy for a problem, and compare a value with the best one that is known there.

    The loss is not taken against the re-tuned value as it is: a search that failed would hide what is lost. Values beside
    both and theory's are played too, on instances of their own, and one that is surely better takes its place.
    """
    among, parts = only_range(job), parts_of(job)
    value = playable(job, among, value)
    found, _ = search(parts.search, tuner, among, budget, player, told)
    others = range(FRESH + validate, FRESH + validate + min(validate, CHOOSE))
    least, ahead = best_known(parts, among, value, found.value, others, player, told)
    played = list(dict.fromkeys((value, least, found.value, among.theory)))
    told.more((len(played) - 4) * validate)
    fresh = range(FRESH, FRESH + validate)
    raw = player.play(parts.judge, np.array(played)[:, None], fresh, progress=told)[:, :, 0]
    regrets = dict(zip(played, parts.judged(raw, fresh), strict=True))
    own, best, retuned, theory = (regrets[one] for one in (value, least, found.value, among.theory))
    if job.textbook is not None:
        told.more(validate)
        textbook = parts.judge.baseline
        raw = player.play(textbook, [[among.theory]], fresh, first_row=len(played), progress=told)[:, :, 0]
        theory = parts.judged(raw, fresh)[0]
    behind, mean = parts.estimate(retuned - own), parts.estimate(retuned)
    doubt = next(doubts_of(among, value, found, ahead, behind, mean), "")
    end = beside(parts, found.belief, retuned, fresh, player, told)
    return Strain(
        words=words,
        problem=described(job.problem),
        horizon=job.horizon,
        regret=parts.estimate(own),
        best=least,
        best_regret=parts.estimate(best),
        loss=parts.estimate(own - best),
        theory=parts.estimate(theory),
        behind_theory=parts.estimate(own - theory),
        gap=gap_of(found, end),
        doubt=doubt,
        retuned=found.value,
    )


def gap_of(found: Found, end: Beside | None) -> float | None:
    """By how much another value may be better than a search's answer: as it states, and at an end that it did not play."""
    if found.belief is None:
        return None
    return float(max(found.belief.gap, end[1].high if end else 0.0))


def best_known(
    parts: Parts, among: Range, value: float, retuned: float, runs: range, player: Player, told: Told
) -> tuple[float, Estimate]:
    """The best value that is known, and how far it is ahead of the re-tuned one: that one, unless another surely is.

    Others are the value itself, theory's, and half and twice the value and the re-tuned one.
    """
    near = (among.within(factor * one) for one in (value, retuned) for factor in (0.5, 2.0))
    values = list(dict.fromkeys([retuned, value, among.theory, *near]))
    told.more((len(values) - CANDIDATES) * len(runs))
    regrets = parts.searched(player.play(parts.search, np.array(values)[:, None], runs, progress=told)[:, :, 0], runs)
    ahead = [parts.estimate(regrets[0] - row) for row in regrets]
    sure = [place for place, one in enumerate(ahead) if one.mean > SURELY * one.se]
    place = max(sure, key=lambda place: ahead[place].mean, default=0)
    return values[place], ahead[place]


def doubts_of(
    among: Range, value: float, found: Found, ahead: Estimate, behind: Estimate, fresh: Estimate
) -> Iterator[str]:
    """Why the gap that a search states is not trusted, as reasons.

    The best known value is `ahead` of the search's answer; the answer is `behind` the value that it would replace, and
    `fresh` is its regret on instances that it was not chosen on.
    """
    belief, end = found.belief, nearest_end(among, found.value)
    if behind.low > 0 and behind.mean > MATERIAL * abs(fresh.mean):
        yield f"tuning again failed: its answer, {found.value:.4g}, loses {behind.mean:.4g} more than this value"
    if end and end == nearest_end(among, value):
        yield f"both values are at the {end} end of the range"
    if end:
        yield f"the value that was tuned for it, {found.value:.4g}, is at the {end} end of the range"
    if belief is None:
        return
    if belief.misfit:
        yield "the search for it says that it cannot be trusted"
    if belief.peak:
        yield "the regret there may have more than one dip"
    if ahead.mean - SURELY * ahead.se > belief.gap:
        yield "the search for it missed a better value by more than it states"
    # Of a data set, the search speaks of its own part, which the other one does not contradict.
    if fresh.unit == "run" and any(contradicted(among, found.value, belief, fresh)):
        yield "fresh instances contradict the search for it"


def again(job: Job, problem: Problem, horizon: int) -> Job:
    """The same request with another problem and horizon, checked at the door.

    Noise and prior stay those of the expected problem: that another one comes is what nobody knows beforehand.
    """
    other = job_of(
        job.policy, problem, horizon=horizon, seed=job.seed, regret=job.regret, noise=job.noise, shortcut=job.shortcut,
        device=job.device, ranges={name: (low, high) for name, low, high in job.ranges},
    )  # fmt: skip
    return replace(other, textbook=job.textbook)


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
