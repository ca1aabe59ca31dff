"""Summaries, exports and the commands that read a store."""

from __future__ import annotations

import csv
import importlib.util
import json

import numpy as np
import pytest

import banditune as bt
from banditune.cli import app
from banditune.storage import store_tables
from banditune.study.search import FIRST_VALIDATION_INSTANCE
from helpers.paths import ROOT
from helpers.stores import simulate_with_store


def test_the_summary_has_a_row_for_each_value_of_each_setup(store):
    regrets = simulate_with_store(store, [0.3, 1], 600)
    fresh = simulate_with_store(store, [0.3], 50, first_instance=FIRST_VALIDATION_INSTANCE)
    simulate_with_store(store, [0.3], 1, checkpoints=[10, 100], common_random_numbers=False)
    rows = store_tables.summarize_regrets(store)
    assert [(row["setup"], row["params"], row["instances"], row["step"], row["runs"]) for row in rows] == [
        (1, "0.3", "search", 100, 600),
        (1, "0.3", "fresh", 100, 50),
        (1, "1.0", "search", 100, 600),
        (2, "0.3", "search", 10, 1),
        (2, "0.3", "search", 100, 1),
    ]
    assert [row["noise_stream"] for row in rows] == [0, 0, 0, 1, 1]
    assert rows[0]["mean"] == regrets[0].mean()
    assert rows[0]["se"] == bt.results.Estimate.from_sample(regrets[0]).se
    assert rows[0]["q95"] == np.percentile(regrets[0], 95)
    assert rows[0]["max"] == regrets[0].max()
    assert rows[1]["mean"] == fresh.mean()
    assert np.isnan(rows[3]["se"])


def test_csv_keeps_every_bit(store, tmp_path):
    regrets = simulate_with_store(store, [0.3, 1], 300, checkpoints=[10, 100])
    store_tables.export_store(store, tmp_path / "all.csv")
    with open(tmp_path / "all.csv") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(store_tables.REGRET_COLUMNS)
    read = np.array([np.float32(row["regret"]) for row in rows]).reshape(2, 300, 2)
    assert (read == regrets).all()
    assert [row["run"] for row in rows[:4]] == ["0", "0", "1", "1"]
    assert [row["step"] for row in rows[:4]] == ["10", "100", "10", "100"]


def test_parquet_is_written_or_the_missing_packages_are_named(store, tmp_path):
    regrets = simulate_with_store(store, [0.3, 1], 30)
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(bt.errors.MissingDependency, match="Parquet needs pandas and pyarrow; install them with"):
            store_tables.export_store(store, tmp_path / "all.parquet")
        return
    import pandas

    store_tables.export_store(store, tmp_path / "all.parquet")
    store_tables.export_store(store, tmp_path / "few.parquet", all_regrets=False)
    assert (pandas.read_parquet(tmp_path / "all.parquet")["regret"] == regrets.reshape(-1)).all()
    assert (pandas.read_parquet(tmp_path / "few.parquet")["mean"] == regrets.mean(axis=1)).all()


def test_the_documented_query_reads_the_regrets(store, tmp_path, run_python):
    regrets = simulate_with_store(store, [0.3, 1], 600)
    text = (ROOT / "docs" / "how-to" / "store.md").read_text()
    code = text.split("```python\n")[1].split("```")[0].replace('"study.db"', repr(str(store)))
    process = run_python(code + "\nprint([np.array(regrets[1, value], float).tolist() for value in (0.3, 1.0)])")
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == regrets.tolist()


def test_the_store_commands_show_verify_and_export(run_banditune, tmp_path, monkeypatch, capsys):
    study = ["curve", "--policy", "ucb1", "--problem", "bernoulli", "--arms", "3", "--horizon", "50", "--runs", "20"]
    first = run_banditune(*study, "--store", "my study.db", "--json")
    assert first.returncode == 0, first.stderr
    assert run_banditune(*study, "--json").stdout == first.stdout
    assert (
        "680 regrets; all of them are as they were written." in run_banditune("store", "verify", "my study.db").stdout
    )
    missing = run_banditune("store", "show", "none")
    assert missing.returncode == 2
    assert missing.stderr == "banditune: the store 'none' must be a file, but there is none.\n"

    def run_store_command(*arguments):
        app(["store", *arguments], standalone_mode=False)
        return capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    shown = run_store_command("show", "my study.db")
    assert "ucb1(noise=0.408248) on bernoulli(arms=3, prior=(1, 1)), horizon 50" in shown
    assert "33 values, 680 runs" in shown
    assert json.loads(run_store_command("show", "my study.db", "--json"))["setups"][0]["runs"] == 680
    assert json.loads(run_store_command("verify", "my study.db", "--json"))["regrets"] == 680
    assert run_store_command("export", "my study.db", "-o", "few.csv", "--summary") == ""
    assert len((tmp_path / "few.csv").read_text().splitlines()) == 1 + 34
    with pytest.raises(bt.errors.StoreError, match="not an SQLite file"):
        run_store_command("verify", "few.csv")
    with pytest.raises(bt.InvalidRequest, match="--output must be another file than those that"):
        run_store_command("export", "few.csv", "-o", "few.csv")
    with pytest.raises(bt.InvalidRequest, match="--output must be another file than those that"):
        app([*study, "--store", "a", "-o", "a"], standalone_mode=False)
    with pytest.raises(bt.InvalidRequest, match=r"written as .csv or .parquet, but got 'all.txt'"):
        run_store_command("export", "my study.db", "-o", "all.txt")
