"""What may mislead in a tuning, as sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.descriptions import make_label
from banditune.core.space import Range
from banditune.core.tuner import Goal
from banditune.results.estimates import Estimate
from banditune.results.search_results import SearchPosterior
from banditune.simulation.spec import SimulationSpec
from banditune.study.assumption_notices import note_wrong_assumptions, suggest_noise_check
from banditune.study.hold_out import has_hold_out
from banditune.study.validation import ValueAdvantage

MIN_NOTICE_RUNS = 250
"""Runs of which a few may be said to carry the mean, and that may contradict a search."""


CONTRADICTION_STANDARD_ERRORS = 3.5
"""What search and fresh instances say of the same regret contradicts if it is so many joint standard errors apart."""


def collect_notices(
    job: SimulationSpec,
    among: Range | None,
    value: float,
    belief: SearchPosterior | None,
    sample: FloatArray,
    theory: FloatArray,
    other: ValueAdvantage | None = None,
    inert: str | None = None,
) -> Iterator[str]:
    """All that may mislead about a policy, tuned or not (`among` is None), wherever it is told.

    `inert` says that its parameter has no effect; then nothing is said about the value that was found.
    """
    if inert:
        yield inert
    yield from note_wrong_assumptions(job.policy, job.problem)
    if among is None or inert:
        yield from note_dominant_runs(sample)
    else:
        yield from collect_tuning_notices(job, among, value, belief, sample, theory, other)


def collect_tuning_notices(
    job: SimulationSpec,
    among: Range,
    value: float,
    belief: SearchPosterior | None,
    sample: FloatArray,
    theory: FloatArray,
    other: ValueAdvantage | None = None,
) -> Iterator[str]:
    """What may mislead, as sentences: of a value, its regrets and theory's on the same fresh instances."""
    negative = list(note_negative_regret(job, belief, sample, theory))
    yield from negative
    yield from note_worse_than_textbook(job, among, value, belief, sample - theory, bool(negative))
    yield from note_value_at_end(among, value)
    yield from note_better_end(among, other)
    yield from note_search_doubts(among, belief)
    # Of a data set, the search speaks of its own part; the other part may differ and contradicts nothing.
    if not has_hold_out(job.problem):
        yield from note_contradiction(among, value, belief, Estimate.of(sample))
    yield from note_dominant_runs(sample)


def note_negative_regret(job: SimulationSpec, belief: SearchPosterior | None, *samples: FloatArray) -> Iterator[str]:
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


def note_worse_than_textbook(
    job: SimulationSpec,
    among: Range,
    value: float,
    belief: SearchPosterior | None,
    difference: FloatArray,
    negative: bool = False,
) -> Iterator[str]:
    """Whether theory's value is surely better, and what that says about the search; where regrets are `negative`, that
    has been said.
    """
    worse = Estimate.of(difference)
    if not worse.low > 0:
        return
    if job.textbook is not None:
        yield (
            f"on fresh instances the textbook's {make_label(job.textbook)} at {among.name} = {among.theory:.4g} has "
            f"{worse.mean:.4g} less regret than {among.name} = {value:.4g}: look at the whole curve (`curve`) of both."
        )
        return
    lost = f"on fresh instances {among.name} = {value:.4g} loses {worse.mean:.4g} more than theory's {among.theory:.4g}"
    if has_hold_out(job.problem):
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
            f"{suggest_noise_check(job.policy)}, and try another tuner, such as notes."
        )
    else:
        # Where the policy's noise is wrong, that is said, and more runs would not help.
        wrong = any(note_wrong_assumptions(job.policy, job.problem))
        yield f"{lost}{'' if wrong else ': more runs are needed; raise the budget'}."


def note_better_end(among: Range, other: ValueAdvantage | None) -> Iterator[str]:
    """Whether the end of the range, of which the search says nothing, is surely better than the answer."""
    if other is None or not other[1].low > 0:
        return
    end, ahead = other
    yield (
        f"{among.name} = {end:.4g}, the end of its range, loses {ahead.mean:.4g} (95%: {ahead.low:.4g} to "
        f"{ahead.high:.4g}) less than the answer on the same instances. The search makes no run there. If the "
        "policy does not explore there, the order of arms decides ties: be sure of it before you take that end."
    )


def note_value_at_end(among: Range, value: float) -> Iterator[str]:
    """Whether the answer is at an end of its range, and how to look beyond."""
    name = find_nearest_end(among, value)
    if name is None:
        return
    beyond = ", or lie beyond it" if is_defined_beyond(among, name) else ""
    yield (
        f"{among.name} = {value:.4g} is at the {name} end of its range [{among.low:.4g}, {among.high:.4g}]: the "
        f"optimum may be that end{beyond}.{suggest_range(among, name)}"
    )


def is_defined_beyond(among: Range, name: str) -> bool:
    """Whether there are values beyond an end of a range; at a lower end of 0 nothing explores less than not at all."""
    return among.high < among.most if name == "upper" else among.low > among.least and among.low != 0


def suggest_range(among: Range, name: str) -> str:
    """Another range to search: beyond an end, or closer to a lower end that nothing is beyond."""
    low, high, span = among.low, among.high, among.high - among.low
    log = among.scale == "log"
    further = is_defined_beyond(among, name)
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


def find_nearest_end(among: Range, value: float) -> str | None:
    """The end of its range at which a value is, "lower" or "upper"; None if it is inside."""
    for end, name, unit in ((among.low, "lower", 0.01), (among.high, "upper", 0.99)):
        if abs(value - end) <= abs(among.at(unit) - end):
            return name
    return None


def note_search_doubts(among: Range, belief: SearchPosterior | None) -> Iterator[str]:
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


def note_contradiction(among: Range, value: float, belief: SearchPosterior | None, fresh: Estimate) -> Iterator[str]:
    """Whether the answer loses on fresh instances what the search takes for all but impossible."""
    # Few runs may have met no failure, and then are too sure of their mean.
    if belief is None or belief.misfit or fresh.runs < MIN_NOTICE_RUNS:
        return
    se = (belief.high - belief.low) / (2 * NormalDist().inv_cdf((1 + belief.level) / 2))
    if abs(fresh.mean - belief.mean) > CONTRADICTION_STANDARD_ERRORS * math.hypot(se, fresh.se):
        yield (
            f"{among.name} = {value:.4g} loses {fresh.mean:.4g} ({fresh.low:.4g} to {fresh.high:.4g}) on fresh instances, "
            f"while the search expects {belief.low:.4g} to {belief.high:.4g}: what it says of itself is wrong here. Look "
            "at the whole curve (`curve`), and try another tuner, such as uniform."
        )


def note_dominant_runs(sample: FloatArray) -> Iterator[str]:
    """Whether a few runs are most of the mean."""
    carried = np.sort(np.abs(sample))[::-1]
    few = max(3, len(sample) // 100)
    share = carried[:few].sum() / max(carried.sum(), 1e-300)
    if len(sample) >= MIN_NOTICE_RUNS and share > 0.5:
        yield (
            f"{few} of {len(sample):,} runs carry {share:.0%} of the mean regret: it is less certain than its standard "
            "error says; validate on more instances."
        )


def note_missed_precision(
    goal: Goal, belief: SearchPosterior | None, theory: ValueAdvantage | None, other: ValueAdvantage | None
) -> Iterator[str]:
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
        yield f"{missed} theory's {theory[0]:.4g} is {format_advantage(theory[1])}."
    if other is None or not other[1].high > limit:
        return
    # Of an end without runs the search says nothing: that it may be better is enough.
    end, ahead = other
    if ahead.low > limit:
        yield f"{missed} {end:.4g}, the end of the range, is {format_advantage(ahead)}."
    else:
        yield f"{missed} {end:.4g}, the end of the range, may be {format_advantage(ahead)}; validate on more instances to know."


def format_advantage(ahead: Estimate) -> str:
    """By how much a value is better, where that is more than was wanted."""
    return f"better by more, {ahead.mean:.4g} (95%: {ahead.low:.4g} to {ahead.high:.4g})"
