"""Arguments of the verbs from flat settings, for tests that vary one setting at a time."""

from __future__ import annotations

from typing import Any

import banditune as bt

SEARCH = ("tuner", "ranges", "fixed", "confidence", "max_runs", "max_time", "validate")
SIMULATION = ("regret", "common_random_numbers", "shortcuts")
RUN = ("workers", "device", "executor", "time_limit", "store", "progress", "announce")
FIT = ("model", "per_arm", "intercept")
OLD = {
    "max_budget": "max_runs",
    "jobs": "workers",
    "cluster": "executor",
    "ledger": "store",
    "shortcut": "shortcuts",
    "within": "precision",
    "at": "checkpoints",
    "first": "first_instance",
}


def group_settings(**flat: Any) -> dict[str, Any]:
    """The records that a verb takes, from settings by name; other arguments stay as they are."""
    flat = {OLD.get(name, name): value for name, value in flat.items()}
    if "noise" in flat:
        flat["common_random_numbers"] = flat.pop("noise") == "shared"
    include = list(flat.pop("include", ()))
    if flat.pop("curve", False):
        include.append("curve")
    if flat.pop("stress", False):
        include.append("robustness")
    wanted = flat.pop("floor", None)
    if wanted is not None:
        include.append("lower_bound" if wanted else "no_lower_bound")
    out: dict[str, Any] = {"include": tuple(include)} if include else {}
    kinds = (
        ("search", bt.Search, SEARCH),
        ("simulation", bt.Simulation, SIMULATION),
        ("run", bt.Run, RUN),
        ("fit_settings", bt.FitSettings, FIT),
    )
    for name, kind, words in kinds:
        given = {word: flat.pop(word) for word in words if word in flat}
        if given:
            out[name] = kind(**given)
    return out | flat
