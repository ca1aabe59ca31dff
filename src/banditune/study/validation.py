"""Judges a tuned value, theory's, and one that the search could not judge, on fresh instances that no search saw."""

from __future__ import annotations

import math

import numpy as np

from banditune.contracts import Fault, Floats, Outage
from banditune.engine.run import Job
from banditune.results import Belief, Estimate
from banditune.study.held_out import Parts
from banditune.study.player import Player
from banditune.study.search import FRESH, Told

PILOT, LEAST, MOST = 250, 1000, 4000
"""So many instances tell how many validation needs, at least and at most; they are not part of it."""

Beside = tuple[float, Estimate]
"""A value beside the answer, and how much less it loses."""

KNOWN = {"gain": 0.03, "regret": 0.05}
"""Standard errors that validation aims at, as shares of what they belong to."""


def validated(parts: Parts, params: Floats, size: int | None, player: Player, told: Told) -> tuple[int, Floats]:
    """Regrets of a value and of the baseline's on the same fresh instances, (2, instances), and the first one's number.

    With no size, a first few tell how many are needed for standard errors that are small shares of gain and regret. They
    are not part of what is returned: few failures among them would make it both small and low.
    """
    first = FRESH
    if size is None:
        told.expect(2 * (PILOT + LEAST))
        few = play_both(parts.judge, params, range(first, first + PILOT), player, told)
        wanted = max(needed(few[1] - few[0], KNOWN["gain"]), needed(few[0], KNOWN["regret"]))
        size, first = min(max(wanted, LEAST), MOST), first + PILOT
    told.expect(2 * size)
    return first, play_both(parts.judge, params, range(first, first + size), player, told)


def play_both(job: Job, params: Floats, runs: range, player: Player, told: Told, row: int = 0) -> Floats:
    """Regrets of a policy and of its baseline, each with its row of parameters, on the same instances: (2, runs).

    They play with the noise of that `row` and the next one.
    """
    if job.textbook is None:
        return player.play(job, params, runs, first_row=row, progress=told)[:, :, 0]
    tuned = player.play(job, params[:1], runs, first_row=row, progress=told)
    textbook = player.play(job.baseline, params[1:], runs, first_row=row + 1, progress=told)
    return np.concatenate([tuned, textbook])[:, :, 0]


def needed(sample: Floats, share: float) -> int:
    """Runs after which the standard error of a mean is about this share of it; `MOST` if it would take more."""
    mean, spread = abs(float(sample.mean())), float(sample.std(ddof=1))
    if spread == 0:
        return 0
    return MOST if spread >= math.sqrt(MOST) * share * mean else math.ceil((spread / (share * mean)) ** 2)


def beside(
    parts: Parts, belief: Belief | None, tuned: Floats, fresh: range, player: Player, told: Told, row: int = 0
) -> Beside | None:
    """The value that the search could not judge and how much less than the answer it loses, on the same fresh instances.

    `tuned` are the answer's independent numbers.

    It plays with the noise of that `row`. None where there is no such value, or where the policy refuses it. It is not made
    the answer: at the end of its range a policy may never explore, and where arms come in a known order, good ones first,
    it gains by ties alone.
    """
    if belief is None or not belief.untried:
        return None
    end = belief.untried[0]
    told.more(len(fresh))
    try:
        other = player.play(parts.judge, np.array([[end]]), fresh, first_row=row, progress=told)[:, :, 0]
    except Outage:
        raise
    except Fault:
        told.more(-len(fresh))
        return None
    return end, parts.estimate(tuned - parts.judged(other, fresh)[0])
