"""Notices about results that may mislead."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import NormalDist

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.descriptions import make_label
from banditune.core.messages import Argument, Message, Wording
from banditune.core.notice import Finding, Notice, with_code
from banditune.core.space import Range, Space
from banditune.core.tuner import Goal
from banditune.results.estimates import Estimate
from banditune.results.search_results import SearchPosterior
from banditune.simulation.spec import SimulationSpec
from banditune.study.assumption_notices import note_wrong_assumptions, suggest_noise_check
from banditune.study.hold_out import has_hold_out
from banditune.study.parameter_values import can_return_textbook, make_textbook_row, name_params
from banditune.study.validation import ValueAdvantage

CURVE = Wording("`curve`", "`banditune curve`")
"""The call or command that computes the regret over all values."""


MIN_NOTICE_RUNS = 250
"""The fewest runs for a notice on dominant runs, or on a contradiction to the search."""


CONTRADICTION_STANDARD_ERRORS = 3.5
"""Search and fresh instances contradict if their estimates of a regret are this many joint standard errors apart."""


def collect_notices(
    spec: SimulationSpec,
    space: Space | None,
    row: Sequence[float],
    posterior: SearchPosterior | None,
    sample: FloatArray,
    textbook: FloatArray,
    end_advantage: ValueAdvantage | None = None,
    no_effect: Sequence[Notice] = (),
) -> Iterator[Notice]:
    """Yield all notices on a policy. `space` is None if it was not tuned.

    `no_effect` are the notices on parameters without effect. If no parameter has one, there are no notices on values.
    """
    yield from no_effect
    yield from note_wrong_assumptions(spec.policy, spec.problem, spec.horizon)
    if space is None or len(no_effect) == len(row):
        yield from note_dominant_runs(sample)
    else:
        yield from collect_tuning_notices(spec, space, row, posterior, sample, textbook, end_advantage)


def collect_tuning_notices(
    spec: SimulationSpec,
    space: Space,
    row: Sequence[float],
    posterior: SearchPosterior | None,
    sample: FloatArray,
    textbook: FloatArray,
    end_advantage: ValueAdvantage | None = None,
) -> Iterator[Notice]:
    """Yield notices on tuned values, from its regrets and the textbook's on the same fresh instances."""
    negative = list(note_negative_regret(spec, posterior, sample, textbook))
    yield from negative
    yield from note_worse_than_textbook(spec, space, row, posterior, sample - textbook, bool(negative))
    for search_range, value in zip(space.ranges, row, strict=True):
        yield from note_value_at_end(search_range, value)
    yield from note_better_end(space, end_advantage)
    yield from note_search_doubts(space, posterior)
    # The search's statements are about its own part of a data set; the other part may differ.
    if not has_hold_out(spec.problem):
        yield from note_contradiction(space, row, posterior, Estimate.from_sample(sample))
    yield from note_dominant_runs(sample)


@with_code("regret-below-zero")
def note_negative_regret(
    spec: SimulationSpec, posterior: SearchPosterior | None, *samples: FloatArray
) -> Iterator[Finding]:
    """Yield a notice if a regret is significantly below 0."""
    lowest = min((Estimate.from_sample(sample) for sample in samples), key=lambda estimate: estimate.mean)
    if spec.regret != "realised" or not lowest.high < 0:
        return
    statement = f"a regret below 0, here {lowest.mean:.4g}, means that more was earned than by one fixed arm"
    # Only a search that fits curves has a posterior.
    if posterior is None:
        yield f"{statement}.", "Nothing needs to be done: this search does not assume positive regrets."
    else:
        yield (
            f"{statement}; this search treats regrets below 0 as chance, however many runs it makes.",
            "Use another tuner, such as uniform.",
        )


@with_code("worse-than-textbook")
def note_worse_than_textbook(
    spec: SimulationSpec,
    space: Space,
    row: Sequence[float],
    posterior: SearchPosterior | None,
    difference: FloatArray,
    negative: bool = False,
) -> Iterator[Finding]:
    """Yield a notice if the textbook's values are significantly better.

    `negative`: there is a notice on regrets below 0.
    """
    excess = Estimate.from_sample(difference)
    if not excess.low > 0:
        return
    if not can_return_textbook(spec):
        textbook = name_params(spec, make_textbook_row(spec)).items()
        yield (
            f"on fresh instances the textbook's {make_label(spec.textbook_spec.policy)} at "
            f"{', '.join(f'{name} = {number:.4g}' for name, number in textbook)} has {excess.mean:.4g} less regret "
            f"than {format_row(space, row)}.",
            Message("Look at the whole curve ({}) of both.", CURVE),
        )
        return
    statement = (
        f"on fresh instances {format_row(space, row)} has {excess.mean:.4g} more regret than the textbook's "
        f"{', '.join(f'{value:.4g}' for value in space.textbook)}"
    )
    if has_hold_out(spec.problem):
        yield (
            f"{statement}: the data that were searched are too few to distinguish these values.",
            "Take the textbook value, or give more data.",
        )
        return
    # The search states that no value is better by more than the gap. A smaller difference does not contradict it.
    if posterior and negative:
        yield f"{statement}.", "Take the textbook value, or use another tuner."
    elif posterior and not posterior.misfit and excess.low > posterior.regret_gap:
        check = suggest_noise_check(spec.policy)
        yield (
            f"{statement}: the statements of the search are wrong here.",
            Message("Look at the whole curve ({}){}, and try another tuner, such as notes.", CURVE, check),
        )
    else:
        # If the noise or the prior is wrong, another notice states it, and more runs would not help.
        wrong_noise = any(note_wrong_assumptions(spec.policy, spec.problem, spec.horizon))
        if wrong_noise:
            yield f"{statement}.", "Correct the noise or the prior of the policy first."
        else:
            yield f"{statement}: more runs are needed.", Message("Raise {}.", Argument("budget"))


@with_code("range-end-better")
def note_better_end(space: Space, end_advantage: ValueAdvantage | None) -> Iterator[Finding]:
    """Yield a notice if the end of the range that the search cannot evaluate is significantly better."""
    if end_advantage is None or not end_advantage[1].low > 0:
        return
    end, advantage = end_advantage
    yield (
        f"{space.names[0]} = {end:.4g}, the end of its range, has {advantage.mean:.4g} (95%: {advantage.low:.4g} to "
        f"{advantage.high:.4g}) less regret than the answer on the same instances. The search makes no run there.",
        "If the policy does not explore there, it breaks ties by the order of arms. Check this before you use that end.",
    )


@with_code("range-end")
def note_value_at_end(search_range: Range, value: float) -> Iterator[Finding]:
    """Yield a notice if the answer is at an end of its range."""
    name = find_nearest_end(search_range, value)
    if name is None:
        return
    beyond = ", or lie beyond it" if can_extend_range(search_range, name) else ""
    yield (
        f"{search_range.name} = {value:.4g} is at the {name} end of its range "
        f"[{search_range.low:.4g}, {search_range.high:.4g}]: the "
        f"optimum may be that end{beyond}.",
        suggest_range(search_range, name),
    )


def can_extend_range(search_range: Range, name: str) -> bool:
    """Return whether the range can be extended at its lower or upper end. At 0 it cannot: the policy does not explore."""
    return (
        search_range.high < search_range.upper_limit
        if name == "upper"
        else search_range.low > search_range.lower_limit and search_range.low != 0
    )


def suggest_range(search_range: Range, name: str) -> Message:
    """Suggest another range: a wider one, or a narrower one if the lower end is a limit."""
    low, high, span = search_range.low, search_range.high, search_range.high - search_range.low
    log = search_range.scale == "log"
    further = can_extend_range(search_range, name)
    if name == "upper" and not further:
        return Message(f"No wider range can be searched: {search_range.name} is not defined beyond that end.")
    if name == "upper":
        high = min(high * 10 if log else low + 10 * span, search_range.upper_limit)
    elif further:
        low = max(low / 10 if log else high - 10 * span, search_range.lower_limit)
    else:
        high = low + 0.1 * span
    wider = Wording(
        f'ranges={{"{search_range.name}": ({low:.4g}, {high:.4g})}}',
        f"--range {search_range.name}={low:.4g}:{high:.4g}",
    )
    return Message("Search a {} range: {}.", "wider" if further else "narrower", wider)


def find_nearest_end(search_range: Range, value: float) -> str | None:
    """Return the end of its range at which a value is, "lower" or "upper"; None if it is inside."""
    for end, name, unit in ((search_range.low, "lower", 0.01), (search_range.high, "upper", 0.99)):
        if abs(value - end) <= abs(search_range.scale_from_unit(unit) - end):
            return name
    return None


@with_code("search-doubtful")
def note_search_doubts(space: Space, posterior: SearchPosterior | None) -> Iterator[Finding]:
    """Yield notices if the search itself found that its curves do not fit."""
    if posterior and posterior.misfit:
        yield (
            "the runs do not fit the curves of the search: its statements may be wrong.",
            Message("Look at the whole curve ({}), and rely on the validation.", CURVE),
        )
    if posterior and posterior.second_dip:
        low_value, middle_value, high_value = posterior.second_dip
        yield (
            f"the regret may have more than one dip: {space.names[0]} = {middle_value:.4g} has more regret than both "
            f"{low_value:.4g} and {high_value:.4g}.",
            Message("Look at the whole curve ({}).", CURVE),
        )


@with_code("search-contradicted")
def note_contradiction(
    space: Space, row: Sequence[float], posterior: SearchPosterior | None, fresh: Estimate
) -> Iterator[Finding]:
    """Yield a notice if the regret on fresh instances contradicts the posterior of the search."""
    # A few runs may contain no failure, which makes their standard error too small.
    if posterior is None or posterior.misfit or fresh.runs < MIN_NOTICE_RUNS:
        return
    se = (posterior.high - posterior.low) / (2 * NormalDist().inv_cdf((1 + posterior.confidence) / 2))
    if abs(fresh.mean - posterior.mean) > CONTRADICTION_STANDARD_ERRORS * math.hypot(se, fresh.se):
        yield (
            f"{format_row(space, row)} has regret {fresh.mean:.4g} ({fresh.low:.4g} to {fresh.high:.4g}) on fresh "
            f"instances, while the search expects {posterior.low:.4g} to {posterior.high:.4g}: its statements are wrong "
            "here.",
            Message("Look at the whole curve ({}), and try another tuner, such as uniform.", CURVE),
        )


@with_code("skewed-regret")
def note_dominant_runs(sample: FloatArray) -> Iterator[Finding]:
    """Yield a notice if most of the mean is from a few runs."""
    carried = np.sort(np.abs(sample))[::-1]
    count = max(3, len(sample) // 100)
    share = carried[:count].sum() / max(carried.sum(), 1e-300)
    if len(sample) >= MIN_NOTICE_RUNS and share > 0.5:
        yield (
            f"{count} of {len(sample):,} runs contribute {share:.0%} of the mean regret: it is less certain than its "
            "standard error suggests."
        )


@with_code("precision-not-reached")
def note_missed_precision(
    goal: Goal,
    posterior: SearchPosterior | None,
    textbook: tuple[Sequence[float], Estimate] | None,
    end_advantage: ValueAdvantage | None,
) -> Iterator[Finding]:
    """Yield a notice if a precision was not reached, by the search or by the validation of other values."""
    if goal.precision is None or posterior is None:
        return
    missed = f"the precision of {100 * goal.precision:.4g}% was not reached:"
    limit = goal.precision * abs(posterior.mean)
    if posterior.misfit:
        yield (
            f"{missed} the runs do not fit the curves of the search, and more of them may not help.",
            Message("Look at the whole curve ({}).", CURVE),
        )
    elif posterior.regret_gap > limit:
        ended = Message("{} the search was ended by {} or {}.", missed, Argument("max_runs"), Argument("max_time"))
        yield ended, "Raise them."
    if textbook is not None and textbook[1].low > limit:
        better = format_advantage(textbook[1])
        values = ", ".join(f"{value:.4g}" for value in textbook[0])
        yield f"{missed} the textbook's {values} is {better}.", "Take it, or try another tuner, such as notes."
    if end_advantage is None or not end_advantage[1].high > limit:
        return
    # The search makes no statement about an end without runs. So the notice is due as soon as the end may be better.
    end, advantage = end_advantage
    if advantage.low > limit:
        yield (
            f"{missed} {end:.4g}, the end of the range, is {format_advantage(advantage)}.",
            "The search makes no run there. Check that end before you use it.",
        )
    else:
        more = Message("Validate on more instances to know: raise {}.", Argument("validate"))
        yield (
            f"{missed} {end:.4g}, the end of the range, may be {format_advantage(advantage)}.",
            more if advantage.unit == "run" else f"More {advantage.unit}s are needed to know.",
        )


def format_row(space: Space, row: Sequence[float]) -> str:
    """Write values with their names, as in "c = 0.5, d = 1.2"."""
    return ", ".join(f"{name} = {value:.4g}" for name, value in zip(space.names, row, strict=True))


def format_advantage(advantage: Estimate) -> str:
    """Format the advantage of a value that exceeds the precision."""
    return f"better by more, {advantage.mean:.4g} (95%: {advantage.low:.4g} to {advantage.high:.4g})"
