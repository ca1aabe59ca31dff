"""Runs work with a progress bar, and prints and writes the result."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from banditune.cli.command_echo import record_command
from banditune.cli.vocabulary import write_for_command_line
from banditune.core.messages import Message

EXIT_STRICT = 3
"""The exit status with --strict if a precision was not reached or there is a notice."""


EXIT_INTERRUPTED = 130


EXIT_TERMINATED = 143


class Terminated(BaseException):
    """Raised if SIGTERM was received, for example from a cluster at the end of a job's time limit."""


def install_sigterm_handler() -> None:
    """End a command with a message after SIGTERM, as after Ctrl-C."""

    def handle_sigterm(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, handle_sigterm)


def run_and_print(
    work: Callable[[Any], Any],
    *,
    json: bool,
    output: Path | None,
    plot: Path | None = None,
    quiet: bool = False,
    store: Path | None = None,
    format_progress: Callable[[int, int], str] | None = None,
    before: Sequence[str] = (),
    remarks: Sequence[str] = (),
    context: typer.Context | None = None,
) -> Any:
    """Do the work with a progress bar, then print and write the result.

    The lines `before` and the `remarks` are printed before the result. Like warnings, remarks are always printed, except
    for those that are notes of the result. The `context` has the command line, which some results record.
    """
    from banditune.core.atomic_files import check_writable

    for path in (output, plot):
        if path is not None:
            check_writable(path)
    if plot is not None:
        from banditune.reports.figures import check_figure_format

        check_figure_format(plot)
    result = run_with_progress(work, quiet=quiet, store=store, format_progress=format_progress or format_runs_done)
    if context is not None:
        result = record_command(result, context)
    if output is not None:
        result.save(output)
    notes = getattr(result, "notes", ())
    remarks = [line for line in remarks if line not in notes]
    if json:
        typer.echo(result.to_json())
    elif not quiet:
        from banditune.reports.plain_text import format_text

        for line in (*before, *remarks):
            typer.echo(write_for_command_line(line))
        typer.echo(("\n" if before or remarks else "") + write_for_command_line(format_text(result)))
    if quiet or json:
        # Notices are always printed, also with --quiet or --json.
        for line in notes:
            print_to_stderr(Message("note: {}", line))
        for line in (*remarks, *getattr(result, "notices", ())):
            print_to_stderr(Message("warning: {}", line))
    if plot is not None:
        result.plot(plot)
    return result


def exit_if_strict(result: Any, strict: bool) -> None:
    """Exit with status 3 if --strict was given and the result has notices or did not reach its precision."""
    if strict and (result.notices or getattr(result, "precision_reached", None) is False):
        raise typer.Exit(EXIT_STRICT)


def format_runs_done(done: int, total: int) -> str:
    """Format the progress in runs."""
    return f"{done:,} of {total:,} runs"


def run_with_progress(
    work: Callable[[Any], Any],
    *,
    quiet: bool,
    format_progress: Callable[[int, int], str] = format_runs_done,
    store: Path | None = None,
) -> Any:
    """Do the work in a second thread. This thread shows progress and receives Ctrl-C even while code is compiled."""
    import threading

    outcome: dict[str, Any] = {}
    bar = ProgressBar(visible=not quiet and sys.stderr.isatty(), format_progress=format_progress, quiet=quiet)

    def run() -> None:
        try:
            outcome["result"] = work(bar)
        except BaseException as error:
            outcome["error"] = error

    worker = threading.Thread(target=run, daemon=True)
    worker.start()
    try:
        while worker.is_alive():
            worker.join(0.1)
            bar.refresh()
    except (KeyboardInterrupt, Terminated) as sign:
        if store is None:
            raise
        bar.close()
        advice = f"finished runs are in {store}, and the same command continues with them"
        word, code = (
            ("ended by SIGTERM", EXIT_TERMINATED) if isinstance(sign, Terminated) else ("interrupted", EXIT_INTERRUPTED)
        )
        exit_now(print_to_stderr(f"{word}; {advice}.", code))
    finally:
        bar.close()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


class ProgressBar:
    """A progress bar that appears only if the work takes more than a second."""

    def __init__(
        self, *, visible: bool, format_progress: Callable[[int, int], str] = format_runs_done, quiet: bool = False
    ) -> None:
        self.visible, self.format_progress, self.quiet = visible, format_progress, quiet
        self.done = 0
        self.total = 0
        self.waited = 0
        self.progress_bar: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Receive the progress from the working threads."""
        self.done, self.total = done, total

    def announce(self, line: str) -> None:
        """Print a line on work that is about to start, above the bar."""
        if self.quiet:
            return
        if self.progress_bar is not None:
            self.progress_bar.console.print(line, highlight=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def refresh(self) -> None:
        """Draw the bar; called ten times a second."""
        self.waited += 1
        if not self.visible or self.waited < 8:
            return
        if self.progress_bar is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[runs]}"),
                TimeRemainingColumn(),
            )
            self.progress_bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self.progress_bar.start()
            self.progress_bar.add_task("preparing (code and tables are made once)", total=None, runs="")
        if self.done or self.total:
            text = self.format_progress(self.done, self.total)
            doing = "simulating" if self.total else "reading"
            self.progress_bar.update(0, description=doing, completed=self.done, total=self.total or None, runs=text)

    def close(self) -> None:
        """Remove the bar."""
        if self.progress_bar is not None:
            self.progress_bar.stop()


def print_to_stderr(error: object, code: int = 0) -> int:
    """Print a line on stderr, with options instead of arguments."""
    line = " ".join(write_for_command_line(error).split())
    print(f"banditune: {line}", file=sys.stderr)
    return code


def exit_now(code: int) -> None:
    """Exit at once, without waiting for threads."""
    sys.stderr.flush()
    os._exit(code)
