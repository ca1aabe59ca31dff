"""Every code block of README and docs is run, or carries a reason why not."""

from __future__ import annotations

import pytest
from code_blocks import (
    ROOT,
    count_blocks,
    find_page_faults,
    list_pages,
    match_output,
    read_blocks,
    run_page,
    split_commands,
)

PAGES = list_pages()
BLOCKS = {page: read_blocks(page) for page in PAGES}
RUN = [page for page in PAGES if any(block.is_run and block.mark != "slow" for block in BLOCKS[page])]
SLOW = [page for page in PAGES if any(block.is_run and block.mark == "slow" for block in BLOCKS[page])]


def name_page(page):
    return page.relative_to(ROOT).as_posix()


def test_blocks_are_found():
    assert ROOT / "README.md" in RUN
    counts, _ = count_blocks(PAGES)
    assert counts["run"] >= 20


@pytest.mark.parametrize("page", PAGES, ids=name_page)
def test_every_block_of_a_page_follows_a_rule(page):
    assert find_page_faults(page) == []


@pytest.mark.parametrize("page", RUN, ids=name_page)
def test_the_blocks_of_a_page_run_as_shown(page, tmp_path):
    report = run_page(page, tmp_path, slow=False)
    assert report.run > 0
    assert report.differences == []


@pytest.mark.slow
@pytest.mark.parametrize("page", SLOW, ids=name_page)
def test_the_slow_blocks_of_a_page_run_as_shown(page, tmp_path):
    report = run_page(page, tmp_path, slow=True)
    assert report.run > 0
    assert report.differences == []


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ("```\nbanditune list\n```", "must have a language"),
        ("```perl\nprint 1\n```", "must be in one of"),
        ("```console\nbanditune list\n```", "must begin with a command"),
        ("<!-- slow: an hour -->\n```text\nwords\n```", "needs no reason"),
        ("<!-- output -->\n```json\n{}\n```", "must be a text block"),
        ("<!-- not run: no GPU -->\n\n```sh\nexit 1\n```", "in the line before a block"),
    ],
)
def test_a_block_that_follows_no_rule_is_found(block, fault, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{block}\n")
    (message,) = find_page_faults(page)
    assert fault in message


@pytest.mark.parametrize(
    ("block", "differs"),
    [
        ("```python\nassert 1 + 1 == 2\n```", 0),
        ("```python\nprint(3)\n```\n\n<!-- output -->\n```text\n3\n```", 0),
        ("```python\nprint(3)\n```\n\n<!-- output -->\n```text\n4\n```", 1),
        ("```sh\ntrue\n```", 0),
        ("```sh\nfalse\ntrue\n```", 1),
        ("```console\n$ echo one; echo two\none\ntwo\n$ banditune --version\nbanditune ...\n```", 0),
        ("```console\n$ echo one\ntwo\n$ echo three\nfour\n```", 2),
        ("```console\n$ banditune deployed show none\n...\n```", 1),
        ("```console\n$ banditune deployed show none\nbanditune: ...\n```", 0),
        ('```text title="mine.txt"\nwords\n```\n\n```console\n$ cat mine.txt\nwords\n```', 0),
        ("<!-- not run: it fails -->\n```sh\nfalse\n```", 0),
        ("<!-- slow: it fails late -->\n```sh\nfalse\n```", 0),
    ],
)
def test_differences_from_a_page_are_found(block, differs, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(f"# Title\n\n{block}\n")
    (tmp_path / "run").mkdir()
    report = run_page(page, tmp_path / "run", slow=False)
    assert len(report.differences) == differs


@pytest.mark.parametrize(
    ("expected", "found", "same"),
    [
        ("a\nb\n", "a\nb\n", True),
        ("a\n", "a\nb\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("...\nc", "a\nb\nc\n", True),
        ("a\n...\nc", "a\nc\n", True),
        ("gain 3.1 ...", "gain 3.1 in 5 runs\n", True),
        ("gain ... runs", "gain 3\nin 5 runs", False),
        ("a.c", "abc", False),
        ("", "a\n", False),
    ],
)
def test_output_is_compared_with_wildcards(expected, found, same):
    assert match_output(expected, found) == same


def test_a_command_may_have_several_lines():
    commands = list(split_commands("$ echo a \\\n    b\na b\n\n$ echo c\nc\n"))
    assert commands == [("echo a \\\n    b", "a b\n\n"), ("echo c", "c\n")]
