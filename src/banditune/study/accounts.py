"""What a ledger holds, for people and other programs: an overview, a summary, tables as CSV and Parquet, records."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from banditune.contracts import BadRequest, Floats, Integers
from banditune.descriptions import short
from banditune.results import (
    DATABASE,
    Account,
    Estimate,
    Spread,
    Tally,
    beginning,
    check_writable,
    frozen,
    standard_error,
    write_whole,
)
from banditune.study.door import LARGEST
from banditune.study.ledger import Ledger, Series, Setup, Singles

QUANTILES = (5, 25, 50, 75, 95, 99)
"""Percent."""

LEVELS = np.array(QUANTILES) / 100

TOLD = (
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

SUMMARY = (
    *TOLD,
    "params",
    "noise",
    "instances",
    "step",
    "runs",
    "mean",
    "se",
    *(f"q{percent:02d}" for percent in QUANTILES),
    "max",
)
REGRETS = ("setup", "params", "noise", "run", "step", "regret")

LINES = 1 << 16
"""Lines of a table that are written at a time."""

FORMATS = (".csv", ".parquet")

SINCE = ("versions",)
"""Columns that summaries of the first versions did not have."""

TOO_LARGE = 1e300
"""No regret and no parameter that can be drawn."""

Names = Callable[[str], tuple[str, ...] | None]
"""The names of a policy's parameters, by its name; None where it is not known."""


def overview(path: str | Path) -> dict[str, Any]:
    """What was played, how many values and runs of each; blocks are counted, not read."""
    with Ledger(path, read_only=True) as ledger:
        setups = {number: _told(number, setup) for number, setup in ledger.setups().items()}
        counted = ledger.counted()
    for number, told in setups.items():
        told |= dict(zip(("values", "runs", "blocks"), counted.get(number, (0, 0, 0)), strict=True))
    return {"file": str(path), "bytes": Path(path).stat().st_size, "setups": list(setups.values())}


def verified(path: str | Path) -> dict[str, Any]:
    """Check every number of a ledger; returns how much there is."""
    with Ledger(path, read_only=True) as ledger:
        return {"file": str(path), **ledger.verify()}


def summary(path: str | Path) -> list[dict[str, Any]]:
    """A line for each setup, row of parameters and step, of search and fresh instances apart."""
    with Ledger(path, read_only=True) as ledger:
        return [line for part in _each(ledger) for line in _lines(*part)]


def exported(path: str | Path, to: str | Path, *, whole: bool = True) -> None:
    """Write all regrets, or unless `whole` their summary, to a .csv or .parquet file."""
    check_format(to)
    csv_wanted = Path(to).suffix.lower() == ".csv"
    if not whole:
        lines = summary(path)
        write_whole(
            to,
            _summary_csv(lines) if csv_wanted else _parquet({name: [line[name] for line in lines] for name in SUMMARY}),
        )
        return
    with Ledger(path, read_only=True) as ledger:
        write_whole(to, _regrets_csv(ledger) if csv_wanted else _parquet(_columns(ledger)))


def check_format(to: str | Path) -> None:
    """Complain before the work, not after it, of a file that cannot be written."""
    check_writable(to)
    suffix = Path(to).suffix.lower()
    if suffix not in FORMATS:
        raise BadRequest(f"a table can be written as {' or '.join(FORMATS)}, but got {str(to)!r}.")
    if suffix == ".parquet" and not (find_spec("pandas") and find_spec("pyarrow")):
        raise BadRequest(
            'Parquet needs pandas and pyarrow; install them with: pip install "banditune[parquet]", or write a .csv.'
        )


def _each(ledger: Ledger) -> Iterator[tuple[dict[str, Any], Series, Integers, Singles]]:
    """Every series with what was played, its runs and its regrets, one after the other."""
    by_setup = groupby(ledger.series().items(), key=lambda item: item[1][0])
    for setup, items in by_setup:
        told: dict[str, Any] = {}
        for number, (_, series) in items:
            told = told or _told(setup, series.setup)
            yield told, series, *ledger.regrets(number, series)


def _told(number: int, setup: Setup) -> dict[str, Any]:
    """What was played, in columns."""
    told = json.loads(setup.told)
    return {
        "setup": number,
        "policy": _words(told["policy"]),
        "problem": _words(told["problem"]),
        "horizon": told["horizon"],
        "seed": told["seed"],
        "regret_kind": told["regret"],
        "noise_kind": told["noise"],
        "at": told["at"],
        "play": told["play"],
        "device": told["device"],
        "precision": told["precision"],
        "versions": _versions(setup.versions),
    }


def _versions(text: str) -> str:
    """Who wrote first, in words. No checksum covers that: it is told where it can be read."""
    try:
        return ", ".join(f"{name} {version}" for name, version in json.loads(text).items())
    except (ValueError, TypeError, AttributeError):
        return ""


def _words(record: dict[str, Any]) -> str:
    """A record's name and options."""
    options = {key: value for key, value in record.items() if key not in ("name", "names") and value not in ([], None)}
    told = ", ".join(f"{key}={short(value)}" for key, value in options.items())
    return f"{record['name']}({told})" if told else str(record["name"])


def _params(series: Series) -> str:
    """0.25, or 0.5;0.01 where there are several parameters."""
    return ";".join(repr(value) for value in np.frombuffer(series.params, "<f8").tolist())


def _lines(told: dict[str, Any], series: Series, runs: Integers, regrets: Singles) -> Iterator[dict[str, Any]]:
    """A summary's lines of a series."""
    for instances, chosen in (("search", runs < LARGEST), ("fresh", runs >= LARGEST)):
        for place, step in enumerate(told["at"]):
            sample = regrets[chosen, place].astype(np.float64)
            if len(sample):
                yield {
                    **{name: told[name] for name in TOLD},
                    "params": _params(series),
                    "noise": series.noise,
                    "instances": instances,
                    "step": step,
                    **_numbers(sample),
                }


def _numbers(sample: Floats) -> dict[str, Any]:
    """Runs, mean, standard error, quantiles and the largest."""
    runs = len(sample)
    ordered = np.sort(sample)
    quantiles = _percentiles(ordered).tolist()
    return {
        "runs": runs,
        "mean": float(sample.mean()),
        "se": standard_error(sample),
        **{f"q{percent:02d}": value for percent, value in zip(QUANTILES, quantiles, strict=True)},
        "max": float(ordered[-1]),
    }


def _percentiles(ordered: Floats) -> Floats:
    """What `np.percentile` gives for `QUANTILES`, which takes ten times as long on the short samples of a search."""
    places = (len(ordered) - 1) * LEVELS
    below = places.astype(np.int64)
    share = places - below
    low, high = ordered[below], ordered[np.minimum(below + 1, len(ordered) - 1)]
    return np.where(share < 0.5, low + (high - low) * share, high - (high - low) * (1 - share))


def _summary_csv(lines: list[dict[str, Any]]) -> bytes:
    text = io.StringIO()
    writer = csv.DictWriter(text, SUMMARY, lineterminator="\n")
    writer.writeheader()
    writer.writerows(lines)
    return text.getvalue().encode()


def _regrets_csv(ledger: Ledger) -> Iterator[bytes]:
    """A line for each run and step; nine digits bring back every bit of a float32."""
    yield (",".join(REGRETS) + "\n").encode()
    for told, series, runs, regrets in _each(ledger):
        start = f"{told['setup']},{_params(series)},{series.noise}"
        line = "".join(f"{start},%d,{step},%.9g\n" for step in told["at"])
        size = max(1, LINES // len(told["at"]))
        for first in range(0, len(runs), size):
            part = slice(first, first + size)
            numbers = np.empty((len(runs[part]), len(told["at"]), 2), object)
            numbers[:, :, 0] = runs[part, None]
            numbers[:, :, 1] = regrets[part]
            yield (line * len(numbers) % tuple(numbers.reshape(-1))).encode()


def _columns(ledger: Ledger) -> dict[str, Any]:
    """All regrets as columns; words are kept once each."""
    import pandas

    parts = [(told, series, runs, regrets) for told, series, runs, regrets in _each(ledger)]
    sizes = [regrets.size for *_, regrets in parts]
    values = list(dict.fromkeys(_params(series) for _, series, *_ in parts))
    places = [values.index(_params(series)) for _, series, *_ in parts]
    columns = (
        np.repeat(np.array([told["setup"] for told, *_ in parts], np.int64), sizes),
        pandas.Categorical.from_codes(np.repeat(np.array(places, np.int32), sizes), values),
        np.repeat(np.array([series.noise for _, series, *_ in parts], np.int64), sizes),
        _joined([np.repeat(runs, len(told["at"])) for told, _, runs, _ in parts], np.int64),
        _joined([np.tile(told["at"], len(runs)) for told, _, runs, _ in parts], np.int64),
        _joined([regrets.reshape(-1) for *_, regrets in parts], np.float32),
    )
    return dict(zip(REGRETS, columns, strict=True))


def _joined(parts: list[Any], dtype: Any) -> Any:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def _parquet(columns: dict[str, Any]) -> bytes:
    import pandas

    found: bytes = pandas.DataFrame(columns).to_parquet(index=False, engine="pyarrow")
    return found


# Records, for reports


def accounts_in(path: str | Path, names: Names) -> list[Account]:
    """An account of each setup in a ledger or in a summary as `exported` writes it."""
    head = beginning(path)
    if head.startswith(DATABASE):
        read = summary
    elif head.removeprefix(b"\xef\xbb\xbf").startswith(b"setup,"):
        read = _read_csv
    else:
        raise BadRequest(
            f"the file {str(path)!r} must be a result (JSON), a ledger, or a summary of one (.csv), but it "
            + ("begins otherwise." if head else "is empty.")
        )
    try:
        lines = read(path)
        by_setup = groupby(lines, key=lambda line: [line[name] for name in TOLD])
        found = [_account(list(some), names) for _, some in by_setup]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, BadRequest):
            raise
        raise BadRequest(f"the file {str(path)!r} must be as it was written, but: {error}.") from error
    if not found:
        raise BadRequest(f"the file {str(path)!r} must hold regrets, but there are none yet.")
    return found


def _read_csv(path: str | Path) -> list[dict[str, Any]]:
    """The lines of a summary, all of them words."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            lacking = [name for name in SUMMARY if name not in (reader.fieldnames or ()) and name not in SINCE]
            if lacking:
                raise BadRequest(
                    f"the table {str(path)!r} must be a summary, but it has no column {lacking[0]!r}; make it with "
                    "`banditune ledger export FILE -o few.csv --summary`."
                )
            lines = [dict.fromkeys(SINCE, "") | line for line in reader]
            for number, line in enumerate(lines, 2):
                if None in line or None in line.values():
                    raise BadRequest(
                        f"the summary {str(path)!r} must have as many cells in a line as in its head, but line {number} "
                        "has not; it may have been cut off."
                    )
            return lines
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise BadRequest(f"the summary {str(path)!r} cannot be read: {error}.") from error


def _account(lines: list[dict[str, Any]], names: Names) -> Account:
    """The account of a setup from its lines of a summary."""
    told = lines[0]
    policy = str(told["policy"])
    tallies = tuple(map(_tally, lines))
    known = names(policy.partition("(")[0])
    if known == () and len({tally.params for tally in tallies}) == 1:
        # A policy without parameters is played with a number that means nothing.
        tallies = tuple(replace(tally, params=()) for tally in tallies)
    sizes = {len(tally.params) for tally in tallies}
    if len(sizes) > 1:
        raise ValueError(f"the rows of setup {told['setup']} have different numbers of parameters")
    (size,) = sizes
    unknown = ("parameter",) if size == 1 else tuple(f"parameter {place + 1}" for place in range(size))
    return Account(
        number=int(told["setup"]),
        policy=policy,
        problem=str(told["problem"]),
        horizon=_whole(told["horizon"]),
        seed=int(told["seed"]),
        regret=str(told["regret_kind"]),
        noise=str(told["noise_kind"]),
        play=str(told["play"]),
        device=str(told["device"]),
        precision=str(told["precision"]),
        versions=str(told["versions"]),
        parameters=known if known is not None and len(known) == size else unknown,
        tallies=tallies,
    )


def _tally(line: dict[str, Any]) -> Tally:
    """A line of a summary as a record."""
    if line["instances"] not in ("search", "fresh"):
        raise ValueError(f"instances must be 'search' or 'fresh', but got {line['instances']!r}")
    runs, mean = _whole(line["runs"]), _finite(line["mean"])
    se = _finite(line["se"]) if runs > 1 else math.nan
    if se < 0:
        raise ValueError(f"a standard error must be 0 or more, but got {line['se']!r}")
    values = [_finite(line[f"q{percent:02d}"]) for percent in QUANTILES] + [_finite(line["max"])]
    levels = [percent / 100 for percent in QUANTILES] + [1.0]
    return Tally(
        tuple(_finite(value) for value in line["params"].split(";") if value),
        int(line["noise"]),
        line["instances"] == "fresh",
        _whole(line["step"]),
        Estimate.told(mean, se, runs),
        Spread(frozen(levels), frozen(values), mean, runs, (), frozen([])),
    )


def _whole(value: Any) -> int:
    number = int(value)
    if not 1 <= number < 2**63:
        raise ValueError(f"numbers of runs and steps must be 1 or more, but got {value!r:.60}")
    return number


def _finite(value: Any) -> float:
    number = float(value)
    if not abs(number) < TOO_LARGE:
        raise ValueError(f"numbers must be finite, but got {value!r:.60}")
    return number
