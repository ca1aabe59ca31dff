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
from conftest import ROOT
from helpers.stores import simulated


def test_the_summary_tells_each_value_of_each_setup(book):
    regrets = simulated(book, [0.3, 1], 600)
    fresh = simulated(book, [0.3], 50, first=FIRST_VALIDATION_INSTANCE)
    simulated(book, [0.3], 1, at=[10, 100], noise="own")
    lines = store_tables.summarize_regrets(book)
    assert [(line["setup"], line["params"], line["instances"], line["step"], line["runs"]) for line in lines] == [
        (1, "0.3", "search", 100, 600),
        (1, "0.3", "fresh", 100, 50),
        (1, "1.0", "search", 100, 600),
        (2, "0.3", "search", 10, 1),
        (2, "0.3", "search", 100, 1),
    ]
    assert [line["noise"] for line in lines] == [0, 0, 0, 1, 1]
    assert lines[0]["mean"] == regrets[0].mean()
    assert lines[0]["se"] == bt.results.Estimate.from_sample(regrets[0]).se
    assert lines[0]["q95"] == np.percentile(regrets[0], 95)
    assert lines[0]["max"] == regrets[0].max()
    assert lines[1]["mean"] == fresh.mean()
    assert np.isnan(lines[3]["se"])


def test_csv_brings_back_every_bit(book, tmp_path):
    regrets = simulated(book, [0.3, 1], 300, at=[10, 100])
    store_tables.export_store(book, tmp_path / "all.csv")
    with open(tmp_path / "all.csv") as file:
        lines = list(csv.DictReader(file))
    assert list(lines[0]) == list(store_tables.REGRET_COLUMNS)
    found = np.array([np.float32(line["regret"]) for line in lines]).reshape(2, 300, 2)
    assert (found == regrets).all()
    assert [line["run"] for line in lines[:4]] == ["0", "0", "1", "1"]
    assert [line["step"] for line in lines[:4]] == ["10", "100", "10", "100"]


def test_parquet_is_written_or_a_sentence_says_what_it_needs(book, tmp_path):
    regrets = simulated(book, [0.3, 1], 30)
    if importlib.util.find_spec("pyarrow") is None:
        with pytest.raises(bt.errors.MissingDependency, match="Parquet needs pandas and pyarrow; install them with"):
            store_tables.export_store(book, tmp_path / "all.parquet")
        return
    import pandas

    store_tables.export_store(book, tmp_path / "all.parquet")
    store_tables.export_store(book, tmp_path / "few.parquet", whole=False)
    assert (pandas.read_parquet(tmp_path / "all.parquet")["regret"] == regrets.reshape(-1)).all()
    assert (pandas.read_parquet(tmp_path / "few.parquet")["mean"] == regrets.mean(axis=1)).all()


def test_the_file_is_as_the_documentation_has_it(book, tmp_path, run_python):
    regrets = simulated(book, [0.3, 1], 600)
    text = (ROOT / "docs" / "how-to" / "store.md").read_text()
    code = text.split("```python\n")[1].split("```")[0].replace('"study.db"', repr(str(book)))
    process = run_python(code + "\nprint([np.array(regrets[1, value], float).tolist() for value in (0.3, 1.0)])")
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == regrets.tolist()


def test_the_command_line_keeps_shows_checks_and_exports(banditune, tmp_path, monkeypatch, capsys):
    study = ["curve", "--policy", "ucb1", "--problem", "bernoulli", "--arms", "3", "--horizon", "50", "--runs", "20"]
    first = banditune(*study, "--store", "my study.ledger", "--json")
    assert first.returncode == 0, first.stderr
    assert banditune(*study, "--json").stdout == first.stdout
    assert (
        "680 regrets; all of them are as they were written." in banditune("store", "verify", "my study.ledger").stdout
    )
    wrong = banditune("store", "show", "none")
    assert wrong.returncode == 2
    assert wrong.stderr == "banditune: the store 'none' must be a file, but there is none.\n"

    def ledger(*arguments):
        app(["store", *arguments], standalone_mode=False)
        return capsys.readouterr().out

    monkeypatch.chdir(tmp_path)
    shown = ledger("show", "my study.ledger")
    assert "ucb1(noise=0.408248) on bernoulli(arms=3, prior=(1, 1)), horizon 50" in shown
    assert "33 values, 680 runs" in shown
    assert json.loads(ledger("show", "my study.ledger", "--json"))["setups"][0]["runs"] == 680
    assert json.loads(ledger("verify", "my study.ledger", "--json"))["regrets"] == 680
    assert ledger("export", "my study.ledger", "-o", "few.csv", "--summary") == ""
    assert len((tmp_path / "few.csv").read_text().splitlines()) == 1 + 34
    with pytest.raises(bt.errors.StoreError, match="no SQLite file"):
        ledger("verify", "few.csv")
    with pytest.raises(bt.InvalidRequest, match="--output must name another file than those that"):
        ledger("export", "few.csv", "-o", "few.csv")
    with pytest.raises(bt.InvalidRequest, match="--output must name another file than those that"):
        app([*study, "--store", "a", "-o", "a"], standalone_mode=False)
    with pytest.raises(bt.InvalidRequest, match=r"written as .csv or .parquet, but got 'all.txt'"):
        ledger("export", "my study.ledger", "-o", "all.txt")
