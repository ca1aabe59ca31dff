"""Draws the regret over a parameter: at values that were asked for, or at more of them where the curve bends."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditune.contracts import BadRequest, Floats, Range
from banditune.engine.run import Job
from banditune.results import Curve, frozen, standard_error
from banditune.study.door import resolved_ranges, rows, setup_of
from banditune.study.held_out import Parts
from banditune.study.player import Player
from banditune.study.search import FRESH, Progress, Told
from banditune.study.unimodal import check_unimodal

GRID = 17
DENSER = (8, 8)
"""A curve starts from so many values and adds so many in each refinement."""

DRAWN = GRID + sum(DENSER) + 1
"""Values of a refined curve, at most."""

CANDIDATES = (GRID - 1) * 2 ** len(DENSER) + 1
"""Values that a refined curve could have held."""


def axis_of(job: Job, values: Any) -> tuple[Range, Floats | None]:
    """The parameter that a curve is over, and the values that were asked for, in order; None: they are yet to be found."""
    found = resolved_ranges(job)
    if len(found) > 1:
        raise BadRequest(f"a curve is over one parameter, but {job.policy.name} has {len(found)}; use simulate().")
    if not found and values is None:
        values = [0.0]
    among = found[0] if found else Range("value", 0.0, 1.0, 0.0, False, "linear")
    return among, None if values is None else np.unique(rows(job, values))


def drawn_curve(
    job: Job,
    parts: Parts,
    among: Range,
    values: Floats | None,
    runs: range,
    player: Player,
    progress: Progress | None,
) -> Curve:
    """The curve of a job on these instances, played by the part that is searched; the other one judges the best value."""
    told = Told(progress, (DRAWN if values is None else 1 + len(values)) * len(runs))
    if values is None:
        table, regrets = _refined(parts, among, runs, player, told)
    else:
        table, played = values, player.play(parts.search, values[:, None], runs, progress=told)[:, :, 0]
        regrets = parts.searched(played, runs)
    mean = regrets.mean(axis=1)
    best = int(mean.argmin())
    # The lowest of many means is too low: what is said of it comes from instances that it was not chosen on.
    fresh = range(FRESH + runs.stop, FRESH + runs.stop + len(runs))
    told.expect(len(runs))
    again = player.play(parts.judge, table[best : best + 1, None], fresh, progress=told)[:, :, 0]
    return Curve(
        among.name,
        frozen(table),
        frozen(mean),
        frozen([standard_error(row) for row in regrets]),
        len(runs),
        float(table[best]),
        parts.estimate(parts.judged(again, fresh)[0]),
        among.theory,
        among.scale == "log",
        check_unimodal(table, regrets, candidates=CANDIDATES if values is None else 0),
        setup_of(job),
        values is None,
        units=None if parts.unit == "run" else regrets.shape[1],
    )


def _refined(parts: Parts, among: Range, runs: range, player: Player, told: Told) -> tuple[Floats, Floats]:
    """An even grid, then more values where the curve bends most, at the centre of the intervals there."""
    units = np.linspace(0, 1, GRID)
    regrets: dict[float, Floats] = {}
    for more in (*DENSER, 0):
        values = dict.fromkeys(among.at(unit) for unit in units)
        new = np.array([value for value in values if value not in regrets])
        if len(new):
            played = player.play(parts.search, new[:, None], runs, first_row=len(regrets), progress=told)[:, :, 0]
            regrets |= dict(zip(new.tolist(), parts.searched(played, runs), strict=True))
        if more:
            height = np.array([regrets[among.at(unit)].mean() for unit in units])
            units = denser(units, height, more)
    values_in_order = sorted(regrets)
    return np.array(values_in_order), np.array([regrets[value] for value in values_in_order])


def denser(units: Floats, height: Floats, more: int) -> Floats:
    """Add the centres of the `more` intervals beside which the curve bends most.

    The bend is measured on the logarithm of the height above the minimum plus a tenth of it, so that the dip counts and
    the cliff at the far end does not take all the points.
    """
    low = height.min()
    relief = np.log(height - low + 0.1 * (abs(low) + 1e-12 + 0.01 * (height.max() - low)))
    slope = np.diff(relief) / np.diff(units)
    bend = np.concatenate([[0.0], np.abs(np.diff(slope)), [0.0]])
    score = (bend[:-1] + bend[1:]) * np.diff(units)
    chosen = np.argsort(-score, kind="stable")[:more]
    centres = (units[:-1] + units[1:])[chosen] / 2
    return np.unique(np.concatenate([units, centres]))
