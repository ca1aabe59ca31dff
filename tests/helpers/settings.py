"""Arguments of the verbs from flat settings, for tests that vary one setting at a time."""

from __future__ import annotations

from typing import Any

import banditune as bt

GROUPS = {
    "search": (bt.Search, ("tuner", "ranges", "fixed", "confidence", "max_runs", "max_time", "validate")),
    "simulation": (bt.Simulation, ("regret", "common_random_numbers", "shortcuts")),
    "run": (bt.Run, ("workers", "device", "executor", "time_limit", "store", "progress", "announce")),
    "fit_settings": (bt.FitSettings, ("model", "per_arm", "intercept")),
}


def group_settings(**flat: Any) -> dict[str, Any]:
    """Put settings into the records that a verb takes. Other arguments stay as they are."""
    arguments: dict[str, Any] = {}
    for group, (record, names) in GROUPS.items():
        given = {name: flat.pop(name) for name in names if name in flat}
        if given:
            arguments[group] = record(**given)
    return arguments | flat
