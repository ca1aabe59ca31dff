"""Reads a store, or a summary table of one, as records for reports."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import Any

from banditune.core.atomic_files import SQLITE_HEADER, make_read_error, read_beginning
from banditune.core.errors import InvalidRequest
from banditune.results.estimates import Estimate, RegretDistribution
from banditune.results.result_record import freeze_floats
from banditune.results.store_results import StoredMean, StoreSummary
from banditune.storage.store_tables import QUANTILE_PERCENTS, SETUP_COLUMNS, SUMMARY_COLUMNS, summarize_regrets

OPTIONAL_COLUMNS = ("versions",)
"""The columns that summaries of the first versions lack."""


MAX_NUMBER = 1e300
"""The limit of regrets and parameters. Larger ones cannot be plotted."""


ParameterNames = Callable[[str], tuple[str, ...] | None]
"""A function that returns the names of a policy's parameters by the name of the policy; None for an unknown policy."""


def load_store_summaries(path: str | Path, names: ParameterNames) -> list[StoreSummary]:
    """Load a summary of each setup, from a store or from a table that `export_store` wrote."""
    head = read_beginning(path)
    if head.startswith(SQLITE_HEADER):
        read = summarize_regrets
    elif head.removeprefix(b"\xef\xbb\xbf").startswith(b"setup,"):
        read = _read_summary_csv
    else:
        raise InvalidRequest(
            f"the file {str(path)!r} must be a result (JSON), a store, or a summary of one (.csv), but it "
            + ("begins otherwise." if head else "is empty."),
            argument="path",
            code="file-format",
        )
    try:
        lines = read(path)
        by_setup = groupby(lines, key=lambda line: [line[name] for name in SETUP_COLUMNS])
        summaries = [_make_store_summary(list(group), names) for _, group in by_setup]
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(
            f"the file {str(path)!r} must be unchanged, but: {error}.", argument="path", code="file-format"
        ) from error
    if not summaries:
        raise InvalidRequest(
            f"the file {str(path)!r} must contain regrets, but there are none yet.", argument="path", code="missing"
        )
    return summaries


def _read_summary_csv(path: str | Path) -> list[dict[str, Any]]:
    """Read the lines of a summary as text."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            missing = [
                name
                for name in SUMMARY_COLUMNS
                if name not in (reader.fieldnames or ()) and name not in OPTIONAL_COLUMNS
            ]
            if missing:
                raise InvalidRequest(
                    f"the table {str(path)!r} must be a summary, but it has no column {missing[0]!r}; make it with "
                    "`banditune store export FILE -o few.csv --summary`.",
                    argument="path",
                    code="file-format",
                )
            lines = [dict.fromkeys(OPTIONAL_COLUMNS, "") | line for line in reader]
            for number, line in enumerate(lines, 2):
                if None in line or None in line.values():
                    raise InvalidRequest(
                        f"the summary {str(path)!r} must have as many cells in each line as in its header, but line "
                        f"{number} does not; the file may be incomplete.",
                        argument="path",
                        code="file-format",
                    )
            return lines
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise make_read_error("the summary", path, error) from error


def _make_store_summary(lines: list[dict[str, Any]], names: ParameterNames) -> StoreSummary:
    """Make the summary of a setup from its lines."""
    first = lines[0]
    policy = str(first["policy"])
    means = tuple(map(_make_stored_mean, lines))
    parameter_names = names(policy.partition("(")[0])
    if parameter_names == () and len({mean.params for mean in means}) == 1:
        # A policy without parameters is simulated with one number, which has no effect.
        means = tuple(replace(mean, params=()) for mean in means)
    sizes = {len(mean.params) for mean in means}
    if len(sizes) > 1:
        raise ValueError(f"the rows of setup {first['setup']} have different numbers of parameters")
    (size,) = sizes
    unknown = ("parameter",) if size == 1 else tuple(f"parameter {position + 1}" for position in range(size))
    return StoreSummary(
        setup_id=int(first["setup"]),
        policy=policy,
        problem=str(first["problem"]),
        horizon=_parse_count(first["horizon"]),
        seed=int(first["seed"]),
        regret_kind=str(first["regret_kind"]),
        common_random_numbers=first["random_numbers"] == "common",
        shortcut=str(first["shortcut"]),
        device=str(first["device"]),
        dtype=str(first["dtype"]),
        versions=str(first["versions"]),
        parameters=parameter_names if parameter_names is not None and len(parameter_names) == size else unknown,
        stored_means=means,
    )


def _make_stored_mean(line: dict[str, Any]) -> StoredMean:
    """Make a record from a line of a summary."""
    if line["instances"] not in ("search", "fresh"):
        raise ValueError(f"instances must be 'search' or 'fresh', but got {line['instances']!r}")
    runs, mean = _parse_count(line["runs"]), _parse_finite(line["mean"])
    se = _parse_finite(line["se"]) if runs > 1 else math.nan
    if se < 0:
        raise ValueError(f"a standard error must be 0 or more, but got {line['se']!r}")
    values = [_parse_finite(line[f"q{percent:02d}"]) for percent in QUANTILE_PERCENTS] + [_parse_finite(line["max"])]
    levels = [percent / 100 for percent in QUANTILE_PERCENTS] + [1.0]
    return StoredMean(
        params=tuple(_parse_finite(value) for value in line["params"].split(";") if value),
        noise_stream=int(line["noise_stream"]),
        fresh=line["instances"] == "fresh",
        step=_parse_count(line["step"]),
        regret=Estimate.from_standard_error(mean, se, runs),
        distribution=RegretDistribution(
            levels=freeze_floats(levels),
            values=freeze_floats(values),
            mean=mean,
            runs=runs,
            worst_runs=(),
            worst_regrets=freeze_floats([]),
        ),
    )


def _parse_count(value: Any) -> int:
    number = int(value)
    if not 1 <= number < 2**63:
        raise ValueError(f"numbers of runs and steps must be 1 or more, but got {value!r:.60}")
    return number


def _parse_finite(value: Any) -> float:
    number = float(value)
    if not abs(number) < MAX_NUMBER:
        raise ValueError(f"numbers must be finite, but got {value!r:.60}")
    return number
