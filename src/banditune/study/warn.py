"""What may mislead in a tuning, as sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from banditune.contracts import Floats, Goal, Range
from banditune.descriptions import label
from banditune.engine.run import Job
from banditune.results import Belief, Estimate
from banditune.study.held_out import holds_out
from banditune.study.noise import noise_hint, noise_warnings
from banditune.study.validation import Beside

FEWEST = 250
"""Runs of which a few may be said to carry the mean, and that may contradict a search."""

APART = 3.5
"""What search and fresh instances say of the same regret contradicts if it is so many joint standard errors apart."""


def every_warning(
    job: Job,
    among: Range | None,
    value: float,
    belief: Belief | None,
    sample: Floats,
    theory: Floats,
    other: Beside | None = None,
    inert: str | None = None,
) -> Iterator[str]:
    """All that may mislead about a policy, tuned or not (`among` is None), wherever it is told.

    `inert` says that its parameter has no effect; then nothing is said about the value that was found.
    """
    if inert:
        yield inert
    yield from noise_warnings(job.policy, job.problem)
    if among is None or inert:
        yield from carried_by_few(sample)
    else:
        yield from warnings_of(job, among, value, belief, sample, theory, other)


def warnings_of(
    job: Job,
    among: Range,
    value: float,
    belief: Belief | None,
    sample: Floats,
    theory: Floats,
    other: Beside | None = None,
) -> Iterator[str]:
    """What may mislead, as sentences: of a value, its regrets and theory's on the same fresh instances."""
    negative = list(below_zero(job, belief, sample, theory))
    yield from negative
    yield from worse_than_theory(job, among, value, belief, sample - theory, bool(negative))
    yield from at_an_end(among, value)
    yield from end_is_better(among, other)
    yield from doubts(among, belief)
    # Of a data set, the search speaks of its own part; the other part may differ and contradicts nothing.
    if not holds_out(job.problem):
        yield from contradicted(among, value, belief, Estimate.of(sample))
    yield from carried_by_few(sample)


def below_zero(job: Job, belief: Belief | None, *samples: Floats) -> Iterator[str]:
    """Whether a regret is surely below 0, what that means, and which searches can work there."""
    lowest = min((Estimate.of(sample) for sample in samples), key=lambda estimate: estimate.mean)
    if job.regret != "realised" or not lowest.high < 0:
        return
    words = f"a regret below 0, here {lowest.mean:.4g}, means that more was earned than by one fixed arm"
    # Only a search that fits curves tells its belief.
    if belief is None:
        yield f"{words}."
    else:
        yield (
            f"{words}; this search takes regrets below 0 for luck, and more runs do not change that: use another tuner, "
            "such as uniform."
        )


def worse_than_theory(
    job: Job, among: Range, value: float, belief: Belief | None, difference: Floats, negative: bool = False
) -> Iterator[str]:
    """Whether theory's value is surely better, and what that says about the search; where regrets are `negative`, that
    has been said.
    """
    worse = Estimate.of(difference)
    if not worse.low > 0:
        return
    if job.textbook is not None:
        yield (
            f"on fresh instances the textbook's {label(job.textbook)} at {among.name} = {among.theory:.4g} has "
            f"{worse.mean:.4g} less regret than {among.name} = {value:.4g}: look at the whole curve (`curve`) of both."
        )
        return
    lost = f"on fresh instances {among.name} = {value:.4g} loses {worse.mean:.4g} more than theory's {among.theory:.4g}"
    if holds_out(job.problem):
        yield (
            f"{lost}: the data that were searched are too few to tell these values apart; take theory's value, or give "
            "more data."
        )
        return
    # That nothing beats the answer by more than the gap is what the search says; less than that does not refute it.
    if belief and negative:
        yield f"{lost}."
    elif belief and not belief.misfit and worse.low > belief.gap:
        yield (
            f"{lost}: what the search says of itself is wrong here. Look at the whole curve (`curve`)"
            f"{noise_hint(job.policy)}, and try another tuner, such as notes."
        )
    else:
        # Where the policy's noise is wrong, that is said, and more runs would not help.
        wrong = any(noise_warnings(job.policy, job.problem))
        yield f"{lost}{'' if wrong else ': more runs are needed; raise the budget'}."


def end_is_better(among: Range, other: Beside | None) -> Iterator[str]:
    """Whether the end of the range, of which the search says nothing, is surely better than the answer."""
    if other is None or not other[1].low > 0:
        return
    end, ahead = other
    yield (
        f"{among.name} = {end:.4g}, the end of its range, loses {ahead.mean:.4g} (95%: {ahead.low:.4g} to "
        f"{ahead.high:.4g}) less than the answer on the same instances. The search makes no run there. If the "
        "policy does not explore there, the order of arms decides ties: be sure of it before you take that end."
    )


def at_an_end(among: Range, value: float) -> Iterator[str]:
    """Whether the answer is at an end of its range, and how to look beyond."""
    name = nearest_end(among, value)
    if name is None:
        return
    beyond = ", or lie beyond it" if goes_on(among, name) else ""
    yield (
        f"{among.name} = {value:.4g} is at the {name} end of its range [{among.low:.4g}, {among.high:.4g}]: the "
        f"optimum may be that end{beyond}.{another_range(among, name)}"
    )


def goes_on(among: Range, name: str) -> bool:
    """Whether there are values beyond an end of a range; at a lower end of 0 nothing explores less than not at all."""
    return among.high < among.most if name == "upper" else among.low > among.least and among.low != 0


def another_range(among: Range, name: str) -> str:
    """Another range to search: beyond an end, or closer to a lower end that nothing is beyond."""
    low, high, span = among.low, among.high, among.high - among.low
    log = among.scale == "log"
    further = goes_on(among, name)
    if name == "upper" and not further:
        return f" {among.name} is not defined beyond it."
    if name == "upper":
        high = min(high * 10 if log else low + 10 * span, among.most)
    elif further:
        low = max(low / 10 if log else high - 10 * span, among.least)
    else:
        high = low + 0.1 * span
    return (
        f" To look {'beyond it' if further else 'closer'}, search another range: --range "
        f"{among.name}={low:.4g}:{high:.4g} on the command line, "
        f'ranges={{"{among.name}": ({low:.4g}, {high:.4g})}} in Python.'
    )


def nearest_end(among: Range, value: float) -> str | None:
    """The end of its range at which a value is, "lower" or "upper"; None if it is inside."""
    for end, name, unit in ((among.low, "lower", 0.01), (among.high, "upper", 0.99)):
        if abs(value - end) <= abs(among.at(unit) - end):
            return name
    return None


def doubts(among: Range, belief: Belief | None) -> Iterator[str]:
    """Where the search itself saw that its curves are not the regret's."""
    if belief and belief.misfit:
        yield (
            "the runs do not fit the curves of the search: what it says of itself may be wrong; look at the whole curve "
            "(`curve`), and trust the validation."
        )
    if belief and belief.peak:
        left, top, right = belief.peak
        yield (
            f"the regret may have more than one dip: {among.name} = {top:.4g} loses more than both {left:.4g} and "
            f"{right:.4g}; look at the whole curve (`curve`)."
        )


def contradicted(among: Range, value: float, belief: Belief | None, fresh: Estimate) -> Iterator[str]:
    """Whether the answer loses on fresh instances what the search takes for all but impossible."""
    # Few runs may have met no failure, and then are too sure of their mean.
    if belief is None or belief.misfit or fresh.runs < FEWEST:
        return
    se = (belief.high - belief.low) / (2 * NormalDist().inv_cdf((1 + belief.level) / 2))
    if abs(fresh.mean - belief.mean) > APART * math.hypot(se, fresh.se):
        yield (
            f"{among.name} = {value:.4g} loses {fresh.mean:.4g} ({fresh.low:.4g} to {fresh.high:.4g}) on fresh instances, "
            f"while the search expects {belief.low:.4g} to {belief.high:.4g}: what it says of itself is wrong here. Look "
            "at the whole curve (`curve`), and try another tuner, such as uniform."
        )


def carried_by_few(sample: Floats) -> Iterator[str]:
    """Whether a few runs are most of the mean."""
    carried = np.sort(np.abs(sample))[::-1]
    few = max(3, len(sample) // 100)
    share = carried[:few].sum() / max(carried.sum(), 1e-300)
    if len(sample) >= FEWEST and share > 0.5:
        yield (
            f"{few} of {len(sample):,} runs carry {share:.0%} of the mean regret: it is less certain than its standard "
            "error says; validate on more instances."
        )


def short_of(goal: Goal, belief: Belief | None, theory: Beside | None, other: Beside | None) -> Iterator[str]:
    """Whether a wanted precision was not reached, by the search itself or by what fresh instances say of other values."""
    if goal.within is None or belief is None:
        return
    missed = f"the wanted precision, {100 * goal.within:.4g}%, was not reached:"
    limit = goal.within * abs(belief.mean)
    if belief.misfit:
        yield f"{missed} the runs do not fit the curves of the search, and more of them may not help."
    elif belief.gap > limit:
        yield f"{missed} the search ended before it, by `max_budget` or `max_time`; raise them."
    if theory is not None and theory[1].low > limit:
        yield f"{missed} theory's {theory[0]:.4g} is {better_by(theory[1])}."
    if other is None or not other[1].high > limit:
        return
    # Of an end without runs the search says nothing: that it may be better is enough.
    end, ahead = other
    if ahead.low > limit:
        yield f"{missed} {end:.4g}, the end of the range, is {better_by(ahead)}."
    else:
        yield f"{missed} {end:.4g}, the end of the range, may be {better_by(ahead)}; validate on more instances to know."


def better_by(ahead: Estimate) -> str:
    """By how much a value is better, where that is more than was wanted."""
    return f"better by more, {ahead.mean:.4g} (95%: {ahead.low:.4g} to {ahead.high:.4g})"
