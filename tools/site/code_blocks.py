"""Code blocks of pages: reads them, runs them and compares their output. The rules are in docs/CONTRIBUTING.md.

python tools/site/code_blocks.py                    # count the blocks, and list those that are not run
python tools/site/code_blocks.py --run PAGE ...     # run all blocks of these pages, slow ones too
python tools/site/code_blocks.py --refresh PAGE ... # run them, and write the output that came out into the pages
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RUN_LANGUAGES = ("python", "console", "sh")
OTHER_LANGUAGES = ("text", "toml", "json", "csv", "bibtex", "latex", "markdown", "yaml")
FENCE = re.compile(r"^( *)```(\w*)(?: title=\"([^\"]+)\")?$")
MARK = re.compile(r"^ *<!-- (?:(not run|slow): (.+)|(output)) -->$")
PIECES = re.compile(r"[|&;<>()]+$")
"""Tokens of shlex that need a shell."""
TIME_LIMIT = 600


@dataclass(frozen=True)
class Block:
    """A code block of a page, with what its mark says: "not run", "slow", "output" or nothing."""

    page: Path
    line: int
    language: str
    code: str
    mark: str = ""
    reason: str = ""
    file: str = ""

    @property
    def place(self) -> str:
        """The page and the line, as editors know them."""
        page = self.page.relative_to(ROOT) if self.page.is_relative_to(ROOT) else self.page
        return f"{page}:{self.line}"

    @property
    def is_run(self) -> bool:
        """Whether it is run, if slow blocks are."""
        return self.language in RUN_LANGUAGES and self.mark != "not run" and not self.file

    @property
    def fault(self) -> str:
        """Which rule the block breaks, empty if none."""
        if not self.language:
            return "a block must have a language, such as ```console or ```text"
        if self.language not in RUN_LANGUAGES + OTHER_LANGUAGES:
            return f"a block must be in one of {', '.join(RUN_LANGUAGES + OTHER_LANGUAGES)}, not {self.language}"
        if self.mark in ("not run", "slow") and self.language not in RUN_LANGUAGES:
            return f"a {self.language} block is not run, so it needs no reason"
        if self.mark == "output" and self.language != "text":
            return "output must be a text block"
        if self.language == "console" and not self.code.startswith("$ "):
            return "a console block must begin with a command: `$ ...`"
        return ""


@dataclass
class Report:
    """What came out of a page: blocks that were run, seconds of CPU time in this process, and each difference."""

    run: int = 0
    seconds: float = 0.0
    differences: list[str] = field(default_factory=list)
    outputs: dict[int, str] = field(default_factory=dict)
    """New text of a block, by the line of the block."""


def list_pages() -> list[Path]:
    """List the pages whose blocks are run: those at the root, of the site, and in the package."""
    folders = (ROOT, "*.md"), (ROOT / "docs", "**/*.md"), (ROOT / "src", "**/*.md")
    return [path for folder, pattern in folders for path in sorted(folder.glob(pattern))]


def read_blocks(page: Path) -> list[Block]:
    """Read the code blocks of a page."""
    blocks, lines = [], page.read_text(encoding="utf-8").splitlines()
    start, before = None, ""
    for number, line in enumerate(lines, 1):
        fence = FENCE.match(line)
        if start is None and fence:
            start, indent, language, file = number, *fence.groups()
            mark = MARK.match(before)
        elif start is not None and line == f"{indent}```":
            code = "".join(f"{one.removeprefix(indent)}\n" for one in lines[start : number - 1])
            kind, reason = ((mark[1] or mark[3]), (mark[2] or "")) if mark else ("", "")
            blocks.append(Block(page, start, language, code, kind, reason, file or ""))
            start = None
        before = line
    if start is not None:
        raise ValueError(f"{page}:{start}: this block is not closed")
    return blocks


def find_page_faults(page: Path) -> list[str]:
    """List the rules that a page's blocks break."""
    blocks = read_blocks(page)
    faults = [f"{block.place}: {block.fault}" for block in blocks if block.fault]
    inside = {number for block in blocks for number in range(block.line, block.line + block.code.count("\n") + 1)}
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    marks = sum(bool(MARK.match(line)) for number, line in lines if number not in inside)
    if marks > sum(bool(block.mark) for block in blocks):
        faults.append(f"{page}: a mark must be in the line before a block")
    return faults


def match_output(expected: str, found: str) -> bool:
    """Compare output. A line `...` stands for any lines, and `...` within a line for any text."""
    pattern = ""
    for line in expected.rstrip().splitlines():
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        else:
            pattern += re.escape(line.rstrip()).replace(r"\.\.\.", r"[^\n]*?") + r"\n"
    lines = [line.rstrip() for line in found.rstrip().splitlines()]
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in lines)) is not None


def split_commands(code: str) -> Iterator[tuple[str, str]]:
    """Split a console block into commands and their output."""
    command, output = "", ""
    for line in code.splitlines():
        if line.startswith("$ ") and not command.endswith("\\"):
            if command:
                yield command, output
            command, output = line.removeprefix("$ "), ""
        elif command.endswith("\\"):
            command += f"\n{line}"
        else:
            output += f"{line}\n"
    yield command, output


class PageRunner:
    """Runs blocks of a page in order: Python in one namespace, commands in one folder."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.namespace: dict[str, Any] = {"__name__": "__main__"}
        self.printed = ""
        self.report = Report()
        (folder / "work").mkdir()
        (folder / "work" / "examples").symlink_to(ROOT / "examples")

    def run(self, slow: bool) -> Report:
        """Run the blocks, with slow ones or without."""
        blocks = read_blocks(self.page)
        self.write_source(blocks)
        begin = time.process_time()
        with contextlib.chdir(self.folder / "work"):
            for block in blocks:
                if block.file and block.mark != "not run":
                    Path(block.file).write_text(block.code, encoding="utf-8")
                elif block.mark == "output":
                    self.compare(block, "the Python block above", block.code, self.printed)
                elif block.is_run and (slow or block.mark != "slow"):
                    self.run_block(block)
                    self.report.run += 1
        self.report.seconds = time.process_time() - begin
        return self.report

    def write_source(self, blocks: list[Block]) -> None:
        """Write the Python code into a file with the page's line numbers, for tracebacks and `inspect`."""
        lines: list[str] = []
        for block in blocks:
            if block.language == "python" and block.is_run:
                lines += [""] * (block.line - len(lines)) + block.code.splitlines()
        self.source = self.folder / f"{self.page.stem.replace('-', '_')}_page.py"
        self.source.write_text("\n".join(lines) + "\n", encoding="utf-8")

    def run_block(self, block: Block) -> None:
        """Run a block and keep what differs."""
        if block.language == "python":
            with contextlib.redirect_stdout(io.StringIO()) as printed:
                exec(compile("\n" * block.line + block.code, str(self.source), "exec"), self.namespace)
            self.printed = printed.getvalue()
        elif block.language == "sh":
            status, output = run_shell(f"set -e\n{block.code}")
            if status:
                self.report.differences.append(f"{block.place}: exit status {status}\n{output}")
        else:
            text = ""
            for command, expected in split_commands(block.code):
                status, found = run_command(command)
                self.compare(block, command, expected, found)
                if status and "banditune: " not in expected:  # wildcards must not hide a failure
                    self.report.differences.append(f"{block.place}: {command}\nexit status {status}\n{found}")
                gap = "\n" if expected.endswith("\n\n") else ""
                text += f"$ {command}\n{expected if '...' in expected else found.rstrip() + chr(10) + gap}"
            self.report.outputs[block.line] = text.rstrip() + "\n"

    def compare(self, block: Block, command: str, expected: str, found: str) -> None:
        """Keep a difference between the output that a page shows and the one that came out."""
        if not match_output(expected, found):
            message = f"{block.place}: {command}\n--- the page has:\n{expected.rstrip()}\n--- it was:\n{found.rstrip()}"
            self.report.differences.append(message)
        if block.mark == "output":
            self.report.outputs[block.line] = expected if "..." in expected else found.rstrip() + "\n"


def run_command(command: str) -> tuple[int, str]:
    """Run a command and return its exit status and its output.

    Plain `banditune` commands run in this process, which saves the time of a start.
    """
    command = command.replace("\\\n", " ")
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    needs_shell = any(PIECES.match(word) for word in words) or re.search(r"[$*`]", command)
    if words[0] != "banditune" or needs_shell:
        return run_shell(command)
    return run_banditune(words)


def run_banditune(words: list[str]) -> tuple[int, str]:
    """Run the command line in this process."""
    from banditune.cli import main

    output, before, status = io.StringIO(), sys.argv, 0
    sys.argv = words
    try:
        with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
            main()
    except SystemExit as error:
        status = int(error.code or 0)
    finally:
        sys.argv = before
    return status, output.getvalue()


def run_shell(code: str) -> tuple[int, str]:
    """Run shell code with this environment's programs; returns the exit status and the output."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    source = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    process = subprocess.run(
        ["bash", "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIME_LIMIT,
        env=os.environ | {"PATH": path, "PYTHONPATH": source},
    )
    return process.returncode, process.stdout


def run_page(page: Path, folder: Path, slow: bool = True) -> Report:
    """Run the blocks of a page in an empty folder."""
    return PageRunner(page, folder).run(slow)


def write_outputs(page: Path, outputs: dict[int, str]) -> None:
    """Write new output into a page."""
    lines = page.read_text(encoding="utf-8").splitlines()
    for block in reversed(read_blocks(page)):
        if block.line in outputs:
            count = len(block.code.splitlines())
            indent = re.match(" *", lines[block.line - 1])[0]  # type: ignore[index]
            new = [f"{indent}{line}".rstrip() for line in outputs[block.line].splitlines()]
            lines[block.line : block.line + count] = new
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def count_blocks(pages: list[Path]) -> tuple[Counter[str], list[Block]]:
    """Count blocks by what happens to them; and those that are not run."""
    counts: Counter[str] = Counter()
    left_out = []
    for block in (block for page in pages for block in read_blocks(page)):
        if block.mark == "not run":
            counts["not run"] += 1
            left_out.append(block)
        elif block.is_run:
            counts[f"run{', slow' if block.mark == 'slow' else ''}"] += 1
        elif block.mark == "output":
            counts["compared output"] += 1
        else:
            counts["written to a file" if block.file else "not code"] += 1
    return counts, left_out


def main() -> None:
    """Count, run or refresh."""
    parser = argparse.ArgumentParser(description="Code blocks of pages.")
    parser.add_argument("--run", action="store_true", help="run all blocks of the pages")
    parser.add_argument("--refresh", action="store_true", help="run them, and write the output into the pages")
    parser.add_argument("pages", nargs="*", type=Path, help="all pages if left out")
    arguments = parser.parse_args()
    pages = [path.resolve() for path in arguments.pages] or list_pages()
    counts, left_out = count_blocks(pages)
    for kind, number in sorted(counts.items()):
        print(f"{number:5d} {kind}")
    for block in left_out:
        print(f"      {block.place}: {block.reason}")
    failed = False
    for page in pages if arguments.run or arguments.refresh else []:
        with tempfile.TemporaryDirectory() as folder:
            report = run_page(page, Path(folder))
        print(f"{page.relative_to(ROOT)}: {report.run} blocks in {report.seconds:.1f} s", flush=True)
        for difference in report.differences:
            print(difference, end="\n\n", flush=True)
        failed |= bool(report.differences)
        if arguments.refresh:
            write_outputs(page, report.outputs)
    sys.exit(failed)


if __name__ == "__main__":
    main()
