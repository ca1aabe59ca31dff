"""Matrices from text files."""

from __future__ import annotations

import pytest

import banditune as bt
from banditune.core.parsing import read_matrix

GOOD = {
    "numbers.csv": b"1,2\n3,4\n",
    "names.csv": b"a,b\n1,2\n3,4\n",
    "excel.csv": b"\xef\xbb\xbf1;2\n3;4\n",
    "quoted.csv": b'"a","b"\n"1","2"\n\n"3","4"\n',
    "tabs.tsv": b"1\t2\n3\t4\n",
}


BAD = {
    "letter.csv": (b"1,2O\n3,4\n", "column 2 in line 1 .* must be a number, but is '2O'"),
    "brackets.csv": (b"a,b\n1,2\n3,(1)\n", r"column 2 in line 3 .* must be a number, but is '\(1\)'"),
    "empty_cell.csv": (b"a,b\n1,2\n3,\n", "column 2 in line 3 .* must be a number, but is ''"),
    "ragged.csv": (b"1,2\n3\n", "must hold 2 numbers, but line 2 holds 1"),
    "nothing.csv": (b"", "has none"),
    "only_names.csv": (b"a,b\n", "has none"),
    "index.csv": (b",a\n0,1\n1,2\n", "looks like an index"),
    "picture.csv": (b"\xff\xfe\x00", "must be UTF-8 text"),
    "not_one.npy": (b"1,2\n3,4\n", "is not one"),
}


@pytest.mark.parametrize("name", GOOD)
def test_features_are_read_from_text_files(name, tmp_path):
    (tmp_path / name).write_bytes(GOOD[name])
    assert read_matrix(tmp_path / name).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("name", BAD)
def test_a_file_that_holds_no_features_is_refused_in_a_sentence(name, tmp_path):
    content, told = BAD[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(bt.InvalidRequest, match=told):
        read_matrix(tmp_path / name)
