"""Text files: encodings, quotes, line ends, damaged archives."""

from __future__ import annotations

import gzip
import sys
from itertools import product

import pytest

import banditune as bt
from banditune.core.errors import InvalidRequest
from banditune.logs.io import text_block_readers, text_tables
from banditune.logs.io.log_reader import read_logs
from banditune.problems.problem_file import load_problem
from helpers.log_files import DECISIONS, READERS, sum_by_name

pyarrow = pytest.importorskip("pyarrow")


def test_a_last_line_without_a_line_end_is_read_by_every_reader(write_file, monkeypatch):
    path = write_file(DECISIONS + "winter,red,1")
    assert sum_by_name(read_logs(path))["winter", "red"] == (1, 1.0)
    with_missing_arm = write_file(DECISIONS + "x,,1\nwinter,red,1", "odd.csv")
    assert sum_by_name(read_logs(with_missing_arm, settings=bt.ReadSettings(skip_bad=True)))["winter", "red"] == (
        1,
        1.0,
    )
    for reader, block in product(READERS.values(), (16, 1 << 20)):
        monkeypatch.setattr(text_block_readers, "make_arrow_reader", reader)
        monkeypatch.setattr(text_tables, "BLOCK_BYTES", block)
        assert sum_by_name(read_logs(path))["winter", "red"] == (1, 1.0)


@pytest.mark.parametrize("reader", READERS)
def test_quoted_fields_and_yes_are_read_by_every_reader(write_file, monkeypatch, reader):
    monkeypatch.setattr(text_block_readers, "make_arrow_reader", READERS[reader])
    path = write_file('campaign,note,arm,reward\r\n" a","x\ny,""z""",b,yes\r\na,,"b ",0.25\r\n')
    assert sum_by_name(read_logs(path)) == {("a", "b"): (2, 1.25)}


def test_plain_text_is_read_without_arrow(write_file, monkeypatch):
    monkeypatch.delattr(pyarrow, "csv", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    monkeypatch.setattr(text_tables.TextTable, "_read_cells", None)  # row by row
    assert sum_by_name(read_logs(write_file(DECISIONS)))["spring", "red"] == (2, 1.0)


@pytest.mark.parametrize("reader", READERS)
def test_text_that_is_not_utf8_is_named_by_its_line(tmp_path, monkeypatch, reader):
    monkeypatch.setattr(text_block_readers, "make_arrow_reader", READERS[reader])
    path = tmp_path / "latin.csv"
    path.write_bytes("campaign,arm,reward\nspring,tea,1\nspring,café,0\n".encode("latin1"))
    with pytest.raises(InvalidRequest, match=r"line 3: the arm is not UTF-8 text, 'caf.'.*iconv -f latin1 -t utf-8"):
        read_logs(path)
    logs = read_logs(path, settings=bt.ReadSettings(skip_bad=True))
    assert logs.arms == ("tea",)
    path.write_bytes("campaign,arm,reward\nspring,tea,x\nspring,café,0\n".encode("latin1"))
    with pytest.raises(InvalidRequest, match=r"name other columns; or write the file in UTF-8"):
        read_logs(path)
    path.write_bytes("campaign,arm,reward\nspring,tea,1\nspring,café,0\n".encode("latin1"))
    assert any("line 3: the arm is not UTF-8" in message for message in logs.messages)
    path.write_bytes("campaign,arm,reward\nspring,tea,1\nspring,café,0\n".encode("utf-8-sig"))
    assert set(read_logs(path).arms) == {"tea", "café"}


@pytest.mark.parametrize(("encoding", "message"), [("latin1", "latin1"), ("utf-16", "utf-16")])
def test_column_names_that_are_not_utf8_are_named(tmp_path, encoding, message):
    path = tmp_path / "latin.csv"
    path.write_bytes("campaign,arm,reward,größe\nspring,tea,1,2\n".encode(encoding))
    with pytest.raises(InvalidRequest, match=f"must be UTF-8 text, but line 1 is not; .*iconv -f {message}"):
        read_logs(path)


def test_unused_columns_need_not_be_utf8(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("campaign,arm,reward,comment\nspring,tea,1,é\nspring,milk,,é\n".encode("latin1"))
    assert read_logs(path, settings=bt.ReadSettings(skip_bad=True)).arms == ("tea",)


def test_matrices_and_problem_files_must_be_utf8(tmp_path):
    from banditune.core.parsing import read_matrix
    from banditune.problems.reward_table import read_reward_table

    path = tmp_path / "latin.csv"
    path.write_bytes("thé,café\n1,2\n3,4\n".encode("latin1"))
    toml = tmp_path / "latin.toml"
    toml.write_bytes('banditune = 1\n[problem]\nname = "bernoulli"\nnames = ["é", "e"]\n'.encode("latin1"))
    for read, file, line in ((read_reward_table, path, 1), (read_matrix, path, 1), (load_problem, toml, 4)):
        with pytest.raises(InvalidRequest, match=f"UTF-8 text, but line {line} is not; .*iconv"):
            read(file)


def test_line_numbers_count_lines_inside_quotes(write_file):
    path = write_file('campaign,arm,reward\n"two\nlines",red,1\nspring,blue,x\n')
    with pytest.raises(InvalidRequest, match="line 4: the reward"):
        read_logs(path)
    assert ("two\nlines", "red") in sum_by_name(read_logs(path, settings=bt.ReadSettings(skip_bad=True)))


def test_a_truncated_gzip_file_is_refused(write_file):
    data = gzip.compress(DECISIONS.encode() * 1000)
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_logs(write_file(data[: len(data) // 2], "logs.csv.gz"))


def test_a_too_long_line_is_refused(write_file, monkeypatch):
    monkeypatch.setattr(text_tables, "BLOCK_BYTES", 512)
    monkeypatch.setattr(text_tables, "MAX_LINE_BYTES", 1024)
    with pytest.raises(InvalidRequest, match="longer than"):
        read_logs(write_file("campaign,arm,reward\n" + "x" * 5000))
