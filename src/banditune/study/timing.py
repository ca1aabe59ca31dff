"""How long work will take: a few runs are timed before it starts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from banditune.engine.run import Job, play
from banditune.study.player import Player
from banditune.study.search import FRESH

Announce = Callable[[str], None]
"""Receives a line on how long the work that starts now will take."""

LONG_ENOUGH = 0.1
"""Seconds after which a rate is known well enough."""

MOST = 256
"""Runs that are timed at most: as many instances as are drawn together."""


def seconds_per_run(job: Job, values: Sequence[float], player: Player) -> float:
    """Seconds that a run takes where `player` plays, on average over parameter values.

    Regrets are not kept: a store would give them back in no time. The first runs compile, and are not timed.
    """
    params = np.array(values, float)[:, None]
    play(job, params, range(FRESH, FRESH + 1), cluster=player.cluster)
    runs = player.cluster.workers
    while True:
        began = time.monotonic()
        play(job, params, range(FRESH, FRESH + runs), cluster=player.cluster)
        took = time.monotonic() - began
        if took > LONG_ENOUGH or runs >= MOST:
            return took / (runs * len(params))
        runs = min(4 * runs, MOST)


def in_words(seconds: float) -> str:
    """A duration with two digits: 0.4 s, 40 s, 9 min, 2.5 h."""
    for unit, size in (("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{float(f'{seconds / size:.2g}'):g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} s" if seconds >= 1 else "a second"
