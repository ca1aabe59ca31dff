"""Matrices from text files."""

from __future__ import annotations

import pytest

import banditune as bt
from banditune.core.parsing import read_matrix

MATRICES = {
    "numbers.csv": b"1,2\n3,4\n",
    "names.csv": b"a,b\n1,2\n3,4\n",
    "excel.csv": b"\xef\xbb\xbf1;2\n3;4\n",
    "quoted.csv": b'"a","b"\n"1","2"\n\n"3","4"\n',
    "tabs.tsv": b"1\t2\n3\t4\n",
}


NO_MATRICES = {
    "letter.csv": (b"1,2O\n3,4\n", "column 2 in line 1 .* must be a number, but is '2O'"),
    "brackets.csv": (b"a,b\n1,2\n3,(1)\n", r"column 2 in line 3 .* must be a number, but is '\(1\)'"),
    "empty_cell.csv": (b"a,b\n1,2\n3,\n", "column 2 in line 3 .* must be a number, but is ''"),
    "ragged.csv": (b"1,2\n3\n", "must have 2 numbers, but line 2 has 1"),
    "nothing.csv": (b"", "has none"),
    "only_names.csv": (b"a,b\n", "has none"),
    "index.csv": (b",a\n0,1\n1,2\n", "looks like an index"),
    "picture.csv": (b"\xff\xfe\x00", "must be UTF-8 text"),
    "not_one.npy": (b"1,2\n3,4\n", "is not one"),
}


@pytest.mark.parametrize("name", MATRICES)
def test_matrices_are_read_from_text_files(name, tmp_path):
    (tmp_path / name).write_bytes(MATRICES[name])
    assert read_matrix(tmp_path / name).tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("name", NO_MATRICES)
def test_a_file_without_a_matrix_is_refused(name, tmp_path):
    content, message = NO_MATRICES[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(bt.InvalidRequest, match=message):
        read_matrix(tmp_path / name)
