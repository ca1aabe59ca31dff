"""`read_logs`: files, data frames and tables with the same rows give the same logs."""

from __future__ import annotations

import csv
import gzip
import io
import math
import string
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import banditune as bt
from banditune.core.errors import InvalidRequest
from banditune.logs.campaign_logs import Logs
from banditune.logs.io import frame_tables, text_block_readers, text_tables
from banditune.logs.io.log_reader import read_logs
from helpers.log_files import DECISIONS, READERS, sum_by_name

pandas = pytest.importorskip("pandas")


def test_all_kinds_of_tables_give_the_same_logs(write_file, tmp_path):
    expected = sum_by_name(read_logs(write_file(DECISIONS)))
    frame = pandas.read_csv(io.StringIO(DECISIONS))
    frame.to_parquet(tmp_path / "logs.parquet")
    sources = [
        write_file(DECISIONS.replace(",", "\t"), "logs.tsv"),
        write_file(DECISIONS.replace(",", ";"), "semicolons.csv"),
        write_file(DECISIONS.replace("\n", "\r\n"), "windows.csv"),
        write_file(b"\xef\xbb\xbf" + DECISIONS.encode(), "mark.csv"),
        write_file(gzip.compress(DECISIONS.encode()), "logs.csv.gz"),
        write_file(DECISIONS.rstrip("\n"), "unended.csv"),
        write_file(DECISIONS.replace("\n", "\n\n"), "blank.csv"),
        write_file(DECISIONS.replace("red", '"red"').replace("1\n", "True\n").replace("0\n", "false\n"), "quoted.csv"),
        tmp_path / "logs.parquet",
        frame,
        {name: frame[name].tolist() for name in frame},
        frame.astype({"reward": bool, "arm": "category"}),
    ]
    for source in sources:
        assert sum_by_name(read_logs(source)) == expected, source


def test_a_polars_frame_is_read():
    polars = pytest.importorskip("polars")
    frame = polars.read_csv(io.StringIO(DECISIONS))
    assert sum_by_name(read_logs(frame))["spring", "red"] == (2, 1.0)


def test_squares_of_rewards_far_from_zero_do_not_cancel(write_file, monkeypatch):
    monkeypatch.setattr(frame_tables, "BATCH_ROWS", 7)
    rng = np.random.default_rng(0)
    reward = 1e8 + rng.normal(size=100)
    logs = read_logs({"campaign": ["a"] * 100, "arm": ["x", "y"] * 50, "reward": reward})
    assert logs.rewards == "real"
    for arm in range(2):
        own = reward[arm::2]
        assert logs.squares[arm] == pytest.approx(((own - own.mean()) ** 2).sum(), rel=1e-6)


def test_block_sizes_do_not_change_the_logs(write_file, monkeypatch):
    rng = np.random.default_rng(1)
    lines = [f"{rng.integers(5)},{rng.integers(4)},{rng.normal():.3f}" for _ in range(500)]
    path = write_file("campaign,arm,reward\n" + "\n".join(lines))
    in_one_block = read_logs(path)
    monkeypatch.setattr(text_tables, "BLOCK_BYTES", 64)
    in_many_blocks = read_logs(path)
    assert list(sum_by_name(in_many_blocks)) == list(sum_by_name(in_one_block))
    np.testing.assert_allclose(in_many_blocks.total, in_one_block.total, atol=1e-12)
    np.testing.assert_allclose(in_many_blocks.squares, in_one_block.squares, rtol=1e-9)


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        ("", {}, "must name the columns"),
        ("campaign,arm,reward\n", {}, "must contain a row"),
        ("a,b,c\n1,2,3\n", {}, "a column must contain the campaign, .* name the column with campaign='COLUMN'"),
        (f"{'w' * 200},{','.join(f'c{n}' for n in range(30))}", {}, r"none of w{40}\.\.\., c0, .*c18 and 11 more has"),
        ("campaign,arm,reward\n1,2,3\n", {"arm": "amr"}, "did you mean 'arm'"),
        ("campaign,campaign,reward\n1,2,3\n", {}, "two are called 'campaign'"),
        ("campaign,arm,n,successes\na,b,3,4\n", {}, "0 <= successes <= pulls, but are 4 and 3"),
        ("campaign,arm,n,successes\na,b,3.5,1\n", {}, "whole numbers"),
        ("campaign,arm,n,successes\na,b,0,0\n", {}, "must contain a decision"),
        ("campaign,arm,n,wins\na,b,1,1\n", {"rewards": "real"}, "sums of 0 and 1"),
        ("campaign,arm,n\na,b,1\n", {"pulls": "n"}, "no column has the successes; name it with successes='COLUMN'"),
        (
            "campaign,arm,n,rate\na,b,9,4%\n",
            {},
            "The column 'n' has a usual name for pulls, .* one for successes; .*='COLUMN'",
        ),
        (
            "campaign,arm,Views (n),Clicks\na,b,9,4\n",
            {},
            "'Clicks' has a usual name for successes, .* one for pulls; name it",
        ),
        ("arm,reward\na,1\n", {}, "if all rows are of one campaign, add a column with its name"),
        (
            "campaign;arm;reward\na;b;9,5\n",
            {},
            r"'9,5', with a comma for a point\); correct them, or name other columns",
        ),
        ('campaign,arm,n,wins\na,b,"1,200",1\n', {}, "with a comma for a point or between thousands"),
        (DECISIONS + "spring,red,0.5\n", {"rewards": "binary"}, "line 7: the reward must be 0 or 1, but is 0.5"),
        (DECISIONS + "spring,red,2\n", {"rewards": "unit"}, r"must be a number in \[0, 1\], but is 2"),
        (DECISIONS, {"rewards": "odd"}, "one of 'binary', 'unit', 'real'"),
        ("campaign,arm,reward,propensity\na,b,1,0\n", {}, r"propensity must be in \(0, 1\], but is 0"),
        ("campaign,arm,reward,x1\na,b,1,0\na,b,1,2\n", {}, "'x1' of arm 'b' changes from 0 to 2 in line 3"),
        (b"PK\x03\x04" + bytes(range(256)) * 20, {}, "column"),
    ],
)
def test_wrong_tables_are_refused_with_a_message(write_file, content, options, message):
    rows = {name: options[name] for name in options if name in ("rewards", "blank", "skip_bad")}
    columns = {name: options[name] for name in options if name not in rows}
    with pytest.raises(InvalidRequest, match=message):
        read_logs(write_file(content), settings=bt.ReadSettings(**rows), **columns)


def test_other_sources_are_refused(tmp_path, write_file):
    for source in (tmp_path, tmp_path / "none.csv", 5, None, [1, 2], write_file(b"PAR1nonsense", "x.parquet")):
        with pytest.raises(InvalidRequest):
            read_logs(source)
    with pytest.raises(InvalidRequest, match="same length"):
        read_logs({"campaign": [1, 2], "arm": [1], "reward": [1]})


FIELDS = st.one_of(
    st.sampled_from(
        [
            "a",
            "b",
            " a",
            "",
            "0",
            "1",
            "0.5",
            "-3",
            "1e3",
            "nan",
            "NULL",
            "inf",
            "true",
            "False",
            "yes",
            "No",
            "NA",
            "1_0",
            "é",
        ]
    ),
    st.text(string.printable, max_size=4),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(FIELDS, min_size=3, max_size=3), min_size=1, max_size=12), st.integers(20, 200))
@example([["a", "x", "1"], ["a", "x", "yes"], [" a", "y ", "0.5"]], 20)
def test_all_readers_give_the_same_logs(tmp_path_factory, rows, block):
    path = tmp_path_factory.getbasetemp() / "logs.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["campaign", "arm", "reward"], *rows])
    results = []
    for reader in READERS.values():
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(text_tables, "BLOCK_BYTES", block)
            patch.setattr(text_block_readers, "make_arrow_reader", reader)
            try:
                results.append(sum_by_name(read_logs(path, settings=bt.ReadSettings(skip_bad=True))))
            except InvalidRequest as error:
                results.append(str(error))
    assert results[0] == results[1] == results[2]
    expected = {key: (n, pytest.approx(t)) for key, (n, t) in sum_plainly(rows).items()}
    assert results[0] == expected if expected else isinstance(results[0], str)


def sum_plainly(rows):
    """The same sums in plain Python."""
    sums = defaultdict(lambda: (0, 0.0))
    for campaign, arm, reward in rows:
        word = reward.strip().lower()
        try:
            value = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}.get(word)
            value = (math.nan if "_" in word else float(word)) if value is None else value
        except ValueError:
            continue
        names = campaign.strip(), arm.strip()
        if not set(names) & {"", "nan", "NaN", "null", "NULL", "<NA>"} and abs(value) < 1e100:
            pulls, total = sums[names]
            sums[names] = pulls + 1, total + value
    return dict(sums)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.sampled_from(["logs.csv", "logs.parquet", "logs.csv.gz"]), st.booleans())
def test_any_bytes_are_read_or_refused(tmp_path_factory, data, name, has_header):
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes((b"campaign,arm,reward\n" if has_header else b"") + data)
    try:
        assert isinstance(read_logs(path, settings=bt.ReadSettings(skip_bad=True)), Logs)
    except InvalidRequest as error:
        assert str(error).endswith(".")


def test_missing_values_of_pandas_are_missing():
    frame = pandas.DataFrame({"campaign": ["a", pandas.NA], "arm": ["x", "y"], "reward": [1, 0]})
    with pytest.raises(InvalidRequest, match=r"row 1, counted from 0: the campaign is missing\)"):
        read_logs(frame)


@pytest.mark.parametrize("batch", [2, 1 << 18])
def test_rows_of_frames_are_counted_from_0_and_lines_of_text_from_1(tmp_path, write_file, monkeypatch, batch):
    monkeypatch.setattr(frame_tables, "BATCH_ROWS", batch)
    content = "campaign,arm,reward\na,x,1\na,y,0\na,x,0\na,,1\na,y,\n"
    frame = pandas.read_csv(io.StringIO(content))
    frame.to_parquet(tmp_path / "logs.parquet")
    tables = {
        "row 3, counted from 0: the arm is missing; row 4: the": (
            frame,
            frame.set_index([list("vwxyz")]),
            tmp_path / "logs.parquet",
        ),
        "line 5: the arm is missing; line 6: the": (write_file(content),),
    }
    for message, sources in tables.items():
        for source in sources:
            with pytest.raises(InvalidRequest, match=message):
                read_logs(source)
    features = {"campaign": "aaa", "arm": "bcb", "reward": [1, 0, 1], "x1": [0, 0, 2]}
    with pytest.raises(InvalidRequest, match=r"changes from 0 to 2 in row 2, counted from 0\. Features"):
        read_logs({name: list(column) for name, column in features.items()})
