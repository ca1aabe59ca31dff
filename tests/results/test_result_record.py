"""Results as records: JSON, files, data frames, figures."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import threading

import pytest

import banditune as bt
from banditune.results.result_record import freeze_floats
from banditune.results.search_results import TrialResult

PROBLEM = bt.Bernoulli(arms=3)


def test_results_are_the_same_after_json(tuning, comparison, tmp_path):
    for result in (tuning, comparison, tuning.curve, tuning.regret, tuning.trials[0]):
        assert bt.results.from_json(result.to_json()) == result
        assert json.loads(result.to_json())["kind"] == type(result).__name__
        result.save(tmp_path / "result.json")
        assert bt.load_result(tmp_path / "result.json") == result


def test_results_print_the_same_after_json(tuning, comparison):
    for result in (tuning, comparison, tuning.curve):
        assert repr(bt.results.from_json(result.to_json())) == repr(result)


def test_the_standard_error_of_a_single_run_is_null_in_json():
    result = bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=20, budget=13, search=bt.Search(validate=2))
    assert math.isnan(result.trials[1].se[0])
    assert "NaN" not in result.to_json()
    assert bt.results.from_json(result.to_json()) == result


def test_files_keep_their_mode_and_links_are_followed(tuning, tmp_path):
    target, link = tmp_path / "target.json", tmp_path / "link.json"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    tuning.save(link)
    assert link.is_symlink()
    assert bt.load_result(target) == tuning
    assert target.stat().st_mode & 0o777 == 0o600
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = threading.Thread(target=pipe.read_bytes)
    reader.start()
    tuning.regret.save(pipe)
    reader.join(10)
    assert pipe.is_fifo()


def test_results_are_frozen(tuning):
    with pytest.raises(AttributeError):
        tuning.search_runs = 3
    with pytest.raises(ValueError, match="read-only"):
        tuning.curve.mean[0] = 0


def test_results_become_data_frames(tuning, comparison):
    assert list(tuning.to_pandas().columns) == ["trial", "gamma", "mean", "se", "runs"]
    assert len(tuning.curve.to_pandas()) == len(tuning.curve.values)
    assert list(comparison.to_pandas()["policy"]) == [entry.policy for entry in comparison.entries]
    assert comparison.to_pandas()["regret"][0] == comparison.entries[0].regret.mean


def test_results_are_printed_and_plotted(tuning, comparison, tmp_path):
    assert "tuned" in repr(tuning)
    assert "has the lowest regret" in repr(comparison)
    assert "<- best" in repr(tuning.curve)
    for result in (tuning, comparison, tuning.curve):
        for ending in ("svg", "png", "pdf"):
            result.plot(tmp_path / f"figure.{ending}")
            assert (tmp_path / f"figure.{ending}").stat().st_size > 1000
        assert result.plot().axes
    with pytest.raises(bt.InvalidRequest, match=r"\.svg, \.png or \.pdf"):
        tuning.plot(tmp_path / "figure.docx")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "must be JSON"),
        ('{"schema_version": 1, "kind": "Nothing"}', "must be one of"),
        ('{"schema_version": 1, "kind": "Estimate", "mean": 1}', "must have the fields"),
        ("[" * 100_000, "must be JSON"),
        ("5", "object with a `kind`"),
        ("[1]", "object with a `kind`"),
        (
            '{"schema_version": 1, "kind": "Estimate", "mean": "x", "se": 1, "low": 0, "high": 1, "runs": 2}',
            "must be of type float",
        ),
        ('{"kind": "Estimate", "mean": 1}', "must have `schema_version` 1, but this one has None"),
        ('{"schema_version": 2, "kind": "Estimate"}', "must have `schema_version` 1, but this one has 2"),
    ],
)
def test_wrong_results_are_refused(text, message, tmp_path):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.results.from_json(text)
    with pytest.raises(bt.InvalidRequest, match="cannot be read"):
        bt.load_result(tmp_path / "missing.json")


def iterate_items(message):
    """Every container in a JSON value, with each of its keys; of a list, whose items are alike, the first and the last."""
    keys = list(message) if isinstance(message, dict) else sorted({0, len(message) - 1}) if message else []
    for key in keys:
        yield message, key
        if isinstance(message[key], dict | list):
            yield from iterate_items(message[key])


def test_results_with_a_changed_part_are_read_or_refused():
    tuning = bt.tune(
        bt.UCB1(noise=0.5),
        PROBLEM,
        horizon=50,
        budget=8,
        include=("robustness",),
        search=bt.Search(tuner=bt.NoTeS(), validate=5),
    )
    data = json.loads(tuning.to_json())
    refused = 0
    for container, key in iterate_items(data):
        original = container[key]
        for replacement in (5, "x", None, True, [{}], {"kind": "Estimate"}):
            container[key] = replacement
            try:
                repr(bt.results.from_json(json.dumps(data)))
            except bt.InvalidRequest:
                refused += 1
        container[key] = original
    assert refused > 1000
    assert bt.results.from_json(json.dumps(data)) == tuning


def test_infinite_and_missing_numbers_are_read():
    trial = TrialResult(
        rows=freeze_floats([[1.0], [2.0]]),
        mean=freeze_floats([math.inf, -math.inf]),
        se=freeze_floats([math.nan, 1.0]),
        runs=(1, 3),
    )
    assert bt.results.from_json(trial.to_json()) == trial


@dataclasses.dataclass(frozen=True)
class KindUCB1(bt.UCB1):
    kind: str = "Estimate"


@dataclasses.dataclass(frozen=True)
class KindBernoulli(bt.Bernoulli):
    kind: tuple[int, ...] = (1, 2)


@dataclasses.dataclass(frozen=True)
class KindUniform(bt.tuners.Uniform):
    kind: float = 3.0


def test_an_option_may_be_called_kind():
    """JSON identifies records by their `kind`. Options of users are no records."""
    tuning = bt.tune(
        KindUCB1(), KindBernoulli(arms=3), horizon=20, budget=44, search=bt.Search(tuner=KindUniform(), validate=5)
    )
    loaded = bt.results.from_json(tuning.to_json())
    assert loaded == tuning
    assert [part["kind"] for part in (loaded.setup.policy, loaded.setup.problem, loaded.setup.tuner)] == [
        "Estimate",
        (1, 2),
        3,
    ]
    data = json.loads(tuning.to_json())
    data["setup"]["problem"] = 5
    with pytest.raises(bt.InvalidRequest, match="'problem' of a StudySetup must be of type Mapping"):
        bt.results.from_json(json.dumps(data))
