"""The verbs `simulate` and `curve`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from banditune.core.arrays import FloatArray
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.results.tuning_results import Curve
from banditune.simulation.instances import SEARCH_INSTANCE_LIMIT
from banditune.storage.stored_simulator import StoredSimulator, check_storable
from banditune.study.assumption_notices import note_wrong_assumptions
from banditune.study.hold_out import note_small_data_set, split_spec
from banditune.study.parameter_effect import choose_probe_values, note_no_effect
from banditune.study.parameter_values import make_parameter_rows, resolve_ranges
from banditune.study.progress import ProgressCallback, ProgressCounter
from banditune.study.regret_curves import resolve_axis, simulate_curve
from banditune.study.requests import build_spec, check_count, resolve_executor


def simulate(
    policy: Policy,
    problem: Problem,
    values: Any = None,
    *,
    horizon: int,
    runs: int = 1000,
    seed: int = 0,
    regret: str = "expected",
    noise: str = "shared",
    at: Sequence[int] | None = None,
    first: int = 0,
    jobs: int | None = None,
    cluster: Any = "threads",
    time_limit: float | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    ledger: str | Path | None = None,
    progress: ProgressCallback | None = None,
) -> FloatArray:
    """Regrets of parameter values on problem instances: an array (values, runs), or (values, runs, len(at)).

    Run r plays instance r for every value, so columns are paired; `first` is the first run. Values may lie outside of the
    range that a tuner would search. With no values, theory's are played. `at` asks for the regret after certain steps.
    `noise="own"` gives each value reward noise of its own; `shortcut=False` plays step by step; `device` is "cpu", "gpu",
    or "auto" for a GPU if there is one. A `ledger` is a file in which regrets are kept, rounded to float32: what it holds
    is not played again.

    `cluster` is where to play: "threads" of this process, "processes", "dask://host:8786", "ray://host:10001", or a Dask
    client; `jobs` is how many threads or processes. With `time_limit`, no piece of the work may take more seconds: child
    processes play, and are ended.
    """
    job = build_spec(
        policy, problem, horizon=horizon, seed=seed, regret=regret, noise=noise, at=at, shortcut=shortcut, device=device
    )
    place = resolve_executor(cluster, jobs, time_limit, job)
    params = make_parameter_rows(job, values)
    first, runs = check_count("first", first, 0, 2 * SEARCH_INSTANCE_LIMIT), check_count("runs", runs)
    check_storable(ledger, job)
    told = ProgressCounter(progress, len(params) * runs)
    with StoredSimulator(place, ledger, exact=True) as player:
        out = player.play(job, params, range(first, first + runs), progress=told)
    return out[:, :, 0] if at is None else out


def curve(
    policy: Policy,
    problem: Problem,
    values: Any = None,
    *,
    horizon: int,
    runs: int = 1000,
    seed: int = 0,
    regret: str = "expected",
    noise: str = "shared",
    ranges: Mapping[str, Sequence[float]] | None = None,
    jobs: int | None = None,
    cluster: Any = "threads",
    time_limit: float | None = None,
    shortcut: bool = True,
    device: str = "cpu",
    ledger: str | Path | None = None,
    progress: ProgressCallback | None = None,
) -> Curve:
    """Bayes regret over parameter values with standard errors, and a test whether it has a single dip.

    With no values, it starts from an even grid and adds values where the curve bends most. `best` is the value with the
    lowest mean; `best_regret` comes from fresh instances, because the lowest of many means is too low. `ranges`, such as
    {"gamma": (0, 3)}, is where the grid goes instead of the policy's usual range. A `ledger` keeps the regrets, as in
    `simulate`; it does not change the result.
    """
    job = build_spec(
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
    runs = check_count("runs", runs, 2)
    if values is not None and ranges is not None:
        raise InvalidRequest(
            "either `values` or `ranges` can be given for a curve, but got both; values need no range."
        )
    among, given = resolve_axis(job, values)
    check_storable(ledger, job)
    place = resolve_executor(cluster, jobs, time_limit, job)
    with StoredSimulator(place, ledger) as player:
        parts = split_spec(job)
        found = simulate_curve(job, parts, among, given, range(runs), player, progress)
        inert = None
        if resolve_ranges(job):
            some = choose_probe_values(among, *found.values[[0, len(found.values) // 2, -1]].tolist())
            inert = note_no_effect(parts.search, among.name, some, range(runs), player)
    warnings = (
        *filter(None, [inert]),
        *note_wrong_assumptions(job.policy, job.problem),
        *note_small_data_set(job.problem),
    )
    return replace(found, warnings=warnings)
