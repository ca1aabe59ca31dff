"""The examples of the package: their list, and what is written of them."""

from __future__ import annotations

import pytest

import banditune as bt
from banditune.core import example_files
from banditune.core.example_files import list_examples, write_examples
from helpers.paths import ROOT


def test_every_example_has_a_description():
    found = list_examples()
    assert {"smoking_trials.py", "extending/policy.py", "extending/plugin", "notebooks/own_policy.ipynb"} <= set(found)
    assert all(about and not about.startswith("#") for about in found.values())
    assert not [name for name in found if name.startswith(("data", "extending/plugin/"))]


def test_all_examples_are_written_as_they_are(tmp_path):
    written = write_examples(tmp_path)
    assert {path.relative_to(tmp_path).as_posix() for path in written} >= {
        "data/SOURCES.md",
        "extending/plugin/pyproject.toml",
        "smoking_trials.py",
    }
    for path in written:
        assert path.read_bytes() == (ROOT / "examples" / path.relative_to(tmp_path)).read_bytes()
    assert len(written) > 10


def test_a_script_is_written_with_the_data_that_it_reads(tmp_path):
    names = [path.relative_to(tmp_path).as_posix() for path in write_examples(tmp_path, ["smoking_trials.py"])]
    assert names == [
        *("data/SOURCES.md", "data/smoking-cessation-trials.csv", "data/zozo-beta-priors.csv", "smoking_trials.py")
    ]
    names = [path.relative_to(tmp_path).as_posix() for path in write_examples(tmp_path, ["extending/policy.py"])]
    assert names == ["extending/policy.py"]


@pytest.mark.parametrize(("name", "count"), [("notebooks/paper.ipynb", 1), ("notebooks", 3)])
def test_a_notebook_comes_with_the_data_that_it_reads(name, count, tmp_path):
    names = [path.relative_to(tmp_path).as_posix() for path in write_examples(tmp_path, [name])]
    assert "data/smoking-cessation-trials.csv" in names
    assert len([one for one in names if one.endswith(".ipynb")]) == count


def test_a_file_that_was_changed_is_not_replaced(tmp_path):
    (path,) = write_examples(tmp_path, ["extending/policy.py"])
    assert write_examples(tmp_path, ["extending/policy.py"]) == [path]
    path.write_text("mine")
    with pytest.raises(
        bt.InvalidRequest, match=r"must not replace a file that was changed, but '.*policy.py' is there"
    ):
        write_examples(tmp_path)
    assert path.read_text() == "mine"
    assert [each.name for each in tmp_path.iterdir()] == ["extending"]


def test_an_unknown_example_is_refused_with_those_that_there_are(tmp_path):
    with pytest.raises(bt.InvalidRequest, match=r"the example must be one of fashion_shop\.py, .*but got 'policy\.py'"):
        write_examples(tmp_path, ["policy.py"])


def test_a_package_without_examples_says_so(monkeypatch):
    monkeypatch.setattr(example_files, "DATA", "nowhere")
    with pytest.raises(bt.InvalidRequest, match="install banditune again"):
        list_examples()


def test_the_command_lists_and_writes(run_banditune, tmp_path):
    listed = run_banditune("examples")
    assert listed.returncode == 0, listed.stderr
    assert "extending/tuner.py " in listed.stdout
    assert run_banditune("examples", "extending").stderr.startswith("banditune: --output must be a folder")
