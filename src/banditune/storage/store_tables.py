"""Writes what a store holds as tables: an overview, a summary, and all regrets as CSV or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.atomic_files import check_writable, write_atomically
from banditune.core.descriptions import shorten_value
from banditune.core.errors import InvalidRequest
from banditune.results.estimates import compute_standard_error
from banditune.simulation.instances import SEARCH_INSTANCE_LIMIT
from banditune.storage.regret_store import RegretStore
from banditune.storage.store_layout import Float32Array, StoredSeries, StoredSetup

QUANTILE_PERCENTS = (5, 25, 50, 75, 95, 99)
"""Percent."""


QUANTILE_LEVELS = np.array(QUANTILE_PERCENTS) / 100


SETUP_COLUMNS = (
    "setup",
    "policy",
    "problem",
    "horizon",
    "seed",
    "regret_kind",
    "noise_kind",
    "play",
    "device",
    "precision",
    "versions",
)
"""Columns that say what was played."""


SUMMARY_COLUMNS = (
    *SETUP_COLUMNS,
    "params",
    "noise",
    "instances",
    "step",
    "runs",
    "mean",
    "se",
    *(f"q{percent:02d}" for percent in QUANTILE_PERCENTS),
    "max",
)


REGRET_COLUMNS = ("setup", "params", "noise", "run", "step", "regret")


LINES_PER_WRITE = 1 << 16
"""Lines of a table that are written at a time."""


TABLE_FORMATS = (".csv", ".parquet")


def read_overview(path: str | Path) -> dict[str, Any]:
    """What was played, how many values and runs of each; blocks are counted, not read."""
    with RegretStore(path, read_only=True) as ledger:
        setups = {number: _describe_setup(number, setup) for number, setup in ledger.setups().items()}
        counted = ledger.counted()
    for number, told in setups.items():
        told |= dict(zip(("values", "runs", "blocks"), counted.get(number, (0, 0, 0)), strict=True))
    return {"file": str(path), "bytes": Path(path).stat().st_size, "setups": list(setups.values())}


def verify_store(path: str | Path) -> dict[str, Any]:
    """Check every number of a ledger; returns how much there is."""
    with RegretStore(path, read_only=True) as ledger:
        return {"file": str(path), **ledger.verify()}


def summarize_regrets(path: str | Path) -> list[dict[str, Any]]:
    """A line for each setup, row of parameters and step, of search and fresh instances apart."""
    with RegretStore(path, read_only=True) as ledger:
        return [line for part in _iterate_series(ledger) for line in _summarize_series(*part)]


def export_store(path: str | Path, to: str | Path, *, whole: bool = True) -> None:
    """Write all regrets, or unless `whole` their summary, to a .csv or .parquet file."""
    check_table_format(to)
    csv_wanted = Path(to).suffix.lower() == ".csv"
    if not whole:
        lines = summarize_regrets(path)
        write_atomically(
            to,
            _write_summary_csv(lines)
            if csv_wanted
            else _write_parquet({name: [line[name] for line in lines] for name in SUMMARY_COLUMNS}),
        )
        return
    with RegretStore(path, read_only=True) as ledger:
        write_atomically(to, _write_regrets_csv(ledger) if csv_wanted else _write_parquet(_collect_columns(ledger)))


def check_table_format(to: str | Path) -> None:
    """Complain before the work, not after it, of a file that cannot be written."""
    check_writable(to)
    suffix = Path(to).suffix.lower()
    if suffix not in TABLE_FORMATS:
        raise InvalidRequest(f"a table can be written as {' or '.join(TABLE_FORMATS)}, but got {str(to)!r}.")
    if suffix == ".parquet" and not (find_spec("pandas") and find_spec("pyarrow")):
        raise InvalidRequest(
            'Parquet needs pandas and pyarrow; install them with: pip install "banditune[parquet]", or write a .csv.'
        )


def _iterate_series(ledger: RegretStore) -> Iterator[tuple[dict[str, Any], StoredSeries, IntArray, Float32Array]]:
    """Every series with what was played, its runs and its regrets, one after the other."""
    by_setup = groupby(ledger.series().items(), key=lambda item: item[1][0])
    for setup, items in by_setup:
        told: dict[str, Any] = {}
        for number, (_, series) in items:
            told = told or _describe_setup(setup, series.setup)
            yield told, series, *ledger.regrets(number, series)


def _describe_setup(number: int, setup: StoredSetup) -> dict[str, Any]:
    """What was played, in columns."""
    told = json.loads(setup.told)
    return {
        "setup": number,
        "policy": _format_record(told["policy"]),
        "problem": _format_record(told["problem"]),
        "horizon": told["horizon"],
        "seed": told["seed"],
        "regret_kind": told["regret"],
        "noise_kind": told["noise"],
        "at": told["at"],
        "play": told["play"],
        "device": told["device"],
        "precision": told["precision"],
        "versions": _format_versions(setup.versions),
    }


def _format_versions(text: str) -> str:
    """Who wrote first, in words. No checksum covers that: it is told where it can be read."""
    try:
        return ", ".join(f"{name} {version}" for name, version in json.loads(text).items())
    except (ValueError, TypeError, AttributeError):
        return ""


def _format_record(record: dict[str, Any]) -> str:
    """A record's name and options."""
    options = {key: value for key, value in record.items() if key not in ("name", "names") and value not in ([], None)}
    told = ", ".join(f"{key}={shorten_value(value)}" for key, value in options.items())
    return f"{record['name']}({told})" if told else str(record["name"])


def _format_params(series: StoredSeries) -> str:
    """0.25, or 0.5;0.01 where there are several parameters."""
    return ";".join(repr(value) for value in np.frombuffer(series.params, "<f8").tolist())


def _summarize_series(
    told: dict[str, Any], series: StoredSeries, runs: IntArray, regrets: Float32Array
) -> Iterator[dict[str, Any]]:
    """A summary's lines of a series."""
    for instances, chosen in (("search", runs < SEARCH_INSTANCE_LIMIT), ("fresh", runs >= SEARCH_INSTANCE_LIMIT)):
        for place, step in enumerate(told["at"]):
            sample = regrets[chosen, place].astype(np.float64)
            if len(sample):
                yield {
                    **{name: told[name] for name in SETUP_COLUMNS},
                    "params": _format_params(series),
                    "noise": series.noise,
                    "instances": instances,
                    "step": step,
                    **_summarize_sample(sample),
                }


def _summarize_sample(sample: FloatArray) -> dict[str, Any]:
    """Runs, mean, standard error, quantiles and the largest."""
    runs = len(sample)
    ordered = np.sort(sample)
    quantiles = _compute_quantiles(ordered).tolist()
    return {
        "runs": runs,
        "mean": float(sample.mean()),
        "se": compute_standard_error(sample),
        **{f"q{percent:02d}": value for percent, value in zip(QUANTILE_PERCENTS, quantiles, strict=True)},
        "max": float(ordered[-1]),
    }


def _compute_quantiles(ordered: FloatArray) -> FloatArray:
    """What `np.percentile` gives for `QUANTILE_PERCENTS`, which takes ten times as long on the short samples of a search."""
    places = (len(ordered) - 1) * QUANTILE_LEVELS
    below = places.astype(np.int64)
    share = places - below
    low, high = ordered[below], ordered[np.minimum(below + 1, len(ordered) - 1)]
    return np.where(share < 0.5, low + (high - low) * share, high - (high - low) * (1 - share))


def _write_summary_csv(lines: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, SUMMARY_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def _write_regrets_csv(ledger: RegretStore) -> Iterator[bytes]:
    """A line for each run and step; nine digits bring back every bit of a float32."""
    yield (",".join(REGRET_COLUMNS) + "\n").encode()
    for told, series, runs, regrets in _iterate_series(ledger):
        start = f"{told['setup']},{_format_params(series)},{series.noise}"
        line = "".join(f"{start},%d,{step},%.9g\n" for step in told["at"])
        size = max(1, LINES_PER_WRITE // len(told["at"]))
        for first in range(0, len(runs), size):
            part = slice(first, first + size)
            numbers = np.empty((len(runs[part]), len(told["at"]), 2), object)
            numbers[:, :, 0] = runs[part, None]
            numbers[:, :, 1] = regrets[part]
            yield (line * len(numbers) % tuple(numbers.reshape(-1))).encode()


def _collect_columns(ledger: RegretStore) -> dict[str, Any]:
    """All regrets as columns; words are kept once each."""
    import pandas

    parts = [(told, series, runs, regrets) for told, series, runs, regrets in _iterate_series(ledger)]
    sizes = [regrets.size for *_, regrets in parts]
    values = list(dict.fromkeys(_format_params(series) for _, series, *_ in parts))
    places = [values.index(_format_params(series)) for _, series, *_ in parts]
    columns = (
        np.repeat(np.array([told["setup"] for told, *_ in parts], np.int64), sizes),
        pandas.Categorical.from_codes(np.repeat(np.array(places, np.int32), sizes), values),
        np.repeat(np.array([series.noise for _, series, *_ in parts], np.int64), sizes),
        _concatenate([np.repeat(runs, len(told["at"])) for told, _, runs, _ in parts], np.int64),
        _concatenate([np.tile(told["at"], len(runs)) for told, _, runs, _ in parts], np.int64),
        _concatenate([regrets.reshape(-1) for *_, regrets in parts], np.float32),
    )
    return dict(zip(REGRET_COLUMNS, columns, strict=True))


def _concatenate(parts: list[Any], dtype: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def _write_parquet(columns: dict[str, Any]) -> bytes:
    import pandas

    found: bytes = pandas.DataFrame(columns).to_parquet(index=False, engine="pyarrow")
    return found
