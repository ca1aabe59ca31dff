"""Writes the content of a store as tables: an overview, a summary, and all regrets as CSV or Parquet."""

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
from banditune.core.errors import InvalidRequest, MissingDependency
from banditune.results.estimates import compute_standard_error
from banditune.simulation.instances import SEARCH_INSTANCE_LIMIT
from banditune.storage.regret_store import RegretStore
from banditune.storage.store_layout import Float32Array, StoredSeries, StoredSetup

QUANTILE_PERCENTS = (5, 25, 50, 75, 95, 99)
"""The levels of the quantiles of a summary, in percent."""


QUANTILE_LEVELS = np.array(QUANTILE_PERCENTS) / 100


SETUP_COLUMNS = (
    "setup",
    "policy",
    "problem",
    "horizon",
    "seed",
    "regret_kind",
    "random_numbers",
    "shortcut",
    "device",
    "dtype",
    "versions",
)
"""Columns that identify a setup."""


SUMMARY_COLUMNS = (
    *SETUP_COLUMNS,
    "params",
    "noise_stream",
    "instances",
    "step",
    "runs",
    "mean",
    "se",
    *(f"q{percent:02d}" for percent in QUANTILE_PERCENTS),
    "max",
)


REGRET_COLUMNS = ("setup", "params", "noise_stream", "run", "step", "regret")


LINES_PER_WRITE = 1 << 16
"""The number of lines of a table that are written at once."""


TABLE_FORMATS = (".csv", ".parquet")


def read_overview(path: str | Path) -> dict[str, Any]:
    """Read the setups of a store, with their numbers of values and runs. Blocks are counted, not read."""
    with RegretStore(path, read_only=True) as store:
        setups = {number: _describe_setup(number, setup) for number, setup in store.read_setups().items()}
        counted = store.count_contents()
    for number, fields in setups.items():
        fields |= dict(zip(("values", "runs", "blocks"), counted.get(number, (0, 0, 0)), strict=True))
    return {"file": str(path), "bytes": Path(path).stat().st_size, "setups": list(setups.values())}


def verify_store(path: str | Path) -> dict[str, Any]:
    """Check every number of a store. Return counts of its contents."""
    with RegretStore(path, read_only=True) as store:
        return {"file": str(path), **store.verify()}


def summarize_regrets(path: str | Path) -> list[dict[str, Any]]:
    """Summarise each setup, row of parameters and step, with search and fresh instances in separate lines."""
    with RegretStore(path, read_only=True) as store:
        return [line for series in _iterate_series(store) for line in _summarize_series(*series)]


def export_store(path: str | Path, to: str | Path, *, all_regrets: bool = True) -> None:
    """Write all regrets, or their summary, to a .csv or .parquet file."""
    check_table_format(to)
    as_csv = Path(to).suffix.lower() == ".csv"
    if not all_regrets:
        lines = summarize_regrets(path)
        write_atomically(
            to,
            _write_summary_csv(lines)
            if as_csv
            else _write_parquet({name: [line[name] for line in lines] for name in SUMMARY_COLUMNS}),
        )
        return
    with RegretStore(path, read_only=True) as store:
        write_atomically(to, _write_regrets_csv(store) if as_csv else _write_parquet(_collect_columns(store)))


def check_table_format(to: str | Path) -> None:
    """Raise an error, before the work, if a file cannot be written."""
    check_writable(to)
    suffix = Path(to).suffix.lower()
    if suffix not in TABLE_FORMATS:
        raise InvalidRequest(
            f"a table can be written as {' or '.join(TABLE_FORMATS)}, but got {str(to)!r}.",
            argument="to",
            code="file-format",
        )
    if suffix == ".parquet" and not (find_spec("pandas") and find_spec("pyarrow")):
        raise MissingDependency(
            'Parquet needs pandas and pyarrow; install them with: pip install "banditune[parquet]", or write a .csv.'
        )


def _iterate_series(store: RegretStore) -> Iterator[tuple[dict[str, Any], StoredSeries, IntArray, Float32Array]]:
    """Yield every series with its setup, runs and regrets."""
    by_setup = groupby(store.read_series().items(), key=lambda item: item[1][0])
    for setup, items in by_setup:
        fields: dict[str, Any] = {}
        for number, (_, series) in items:
            fields = fields or _describe_setup(setup, series.setup)
            yield fields, series, *store.read_regrets(number, series)


def _describe_setup(number: int, setup: StoredSetup) -> dict[str, Any]:
    """Describe a setup in columns."""
    fields = json.loads(setup.key_text)
    return {
        "setup": number,
        "policy": _format_record(fields["policy"]),
        "problem": _format_record(fields["problem"]),
        "horizon": fields["horizon"],
        "seed": fields["seed"],
        "regret_kind": fields["regret"],
        "random_numbers": fields["random_numbers"],
        "checkpoints": fields["checkpoints"],
        "shortcut": fields["shortcut"],
        "device": fields["device"],
        "dtype": fields["dtype"],
        "versions": _format_versions(setup.versions),
    }


def _format_versions(text: str) -> str:
    """Format the versions of the first writer. They have no checksum; the text is empty if they are damaged."""
    try:
        return ", ".join(f"{name} {version}" for name, version in json.loads(text).items())
    except (ValueError, TypeError, AttributeError):
        return ""


def _format_record(record: dict[str, Any]) -> str:
    """Format the name and options of a record."""
    options = {key: value for key, value in record.items() if key not in ("name", "names") and value not in ([], None)}
    fields = ", ".join(f"{key}={shorten_value(value)}" for key, value in options.items())
    return f"{record['name']}({fields})" if fields else str(record["name"])


def _format_params(series: StoredSeries) -> str:
    """Format parameters as 0.25, or 0.5;0.01 if there are several."""
    return ";".join(repr(value) for value in np.frombuffer(series.params, "<f8").tolist())


def _summarize_series(
    fields: dict[str, Any], series: StoredSeries, runs: IntArray, regrets: Float32Array
) -> Iterator[dict[str, Any]]:
    """Yield the lines of a summary for a series."""
    for instances, mask in (("search", runs < SEARCH_INSTANCE_LIMIT), ("fresh", runs >= SEARCH_INSTANCE_LIMIT)):
        for position, step in enumerate(fields["checkpoints"]):
            sample = regrets[mask, position].astype(np.float64)
            if len(sample):
                yield {
                    **{name: fields[name] for name in SETUP_COLUMNS},
                    "params": _format_params(series),
                    "noise_stream": series.noise_stream,
                    "instances": instances,
                    "step": step,
                    **_summarize_sample(sample),
                }


def _summarize_sample(sample: FloatArray) -> dict[str, Any]:
    """Compute runs, mean, standard error, quantiles and maximum."""
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
    """Compute the quantiles of `QUANTILE_PERCENTS` like `np.percentile`, ten times as fast for short samples."""
    positions = (len(ordered) - 1) * QUANTILE_LEVELS
    below = positions.astype(np.int64)
    share = positions - below
    low, high = ordered[below], ordered[np.minimum(below + 1, len(ordered) - 1)]
    return np.where(share < 0.5, low + (high - low) * share, high - (high - low) * (1 - share))


def _write_summary_csv(lines: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, SUMMARY_COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def _write_regrets_csv(store: RegretStore) -> Iterator[bytes]:
    """Write a line for each run and step. Nine digits restore every bit of a float32."""
    yield (",".join(REGRET_COLUMNS) + "\n").encode()
    for fields, series, runs, regrets in _iterate_series(store):
        start = f"{fields['setup']},{_format_params(series)},{series.noise_stream}"
        line = "".join(f"{start},%d,{step},%.9g\n" for step in fields["checkpoints"])
        size = max(1, LINES_PER_WRITE // len(fields["checkpoints"]))
        for first in range(0, len(runs), size):
            part = slice(first, first + size)
            numbers = np.empty((len(runs[part]), len(fields["checkpoints"]), 2), object)
            numbers[:, :, 0] = runs[part, None]
            numbers[:, :, 1] = regrets[part]
            yield (line * len(numbers) % tuple(numbers.reshape(-1))).encode()


def _collect_columns(store: RegretStore) -> dict[str, Any]:
    """Collect all regrets as columns. Each distinct text is kept once."""
    import pandas

    parts = [(fields, series, runs, regrets) for fields, series, runs, regrets in _iterate_series(store)]
    sizes = [regrets.size for *_, regrets in parts]
    values = list(dict.fromkeys(_format_params(series) for _, series, *_ in parts))
    positions = [values.index(_format_params(series)) for _, series, *_ in parts]
    columns = (
        np.repeat(np.array([fields["setup"] for fields, *_ in parts], np.int64), sizes),
        pandas.Categorical.from_codes(np.repeat(np.array(positions, np.int32), sizes), values),
        np.repeat(np.array([series.noise_stream for _, series, *_ in parts], np.int64), sizes),
        _concatenate([np.repeat(runs, len(fields["checkpoints"])) for fields, _, runs, _ in parts], np.int64),
        _concatenate([np.tile(fields["checkpoints"], len(runs)) for fields, _, runs, _ in parts], np.int64),
        _concatenate([regrets.reshape(-1) for *_, regrets in parts], np.float32),
    )
    return dict(zip(REGRET_COLUMNS, columns, strict=True))


def _concatenate(parts: list[Any], dtype: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def _write_parquet(columns: dict[str, Any]) -> bytes:
    import pandas

    content: bytes = pandas.DataFrame(columns).to_parquet(index=False, engine="pyarrow")
    return content
