"""Work with a progress bar; print and write what came out."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from banditune.cli.command_echo import record_command
from banditune.cli.messages import translate_message, translate_result

EXIT_INTERRUPTED = 130


EXIT_TERMINATED = 143


class Terminated(BaseException):
    """SIGTERM came, as from a cluster whose time for this job is over."""


def install_sigterm_handler() -> None:
    """From now on SIGTERM ends a command as Ctrl-C does: with a sentence."""

    def heard(*_: object) -> None:
        raise Terminated

    signal.signal(signal.SIGTERM, heard)


def run_and_print(
    work: Callable[[Any], Any],
    *,
    json: bool,
    output: Path | None,
    plot: Path | None = None,
    quiet: bool = False,
    ledger: Path | None = None,
    told: Callable[[int, int], str] | None = None,
    before: Sequence[str] = (),
    remarks: Sequence[str] = (),
    context: typer.Context | None = None,
) -> Any:
    """Do the work with a progress bar, then print and write what came out.

    `before` it come words of the work, then its `remarks`, which are said in any case, as warnings are; what the result
    notes itself is said once. By its `context` a result knows how it was asked for.
    """
    from banditune.core.atomic_files import check_writable

    for path in (output, plot):
        if path is not None:
            check_writable(path)
    if plot is not None:
        from banditune.reports.figures import check_figure_format

        check_figure_format(plot)
    result = run_with_progress(work, quiet=quiet, ledger=ledger, told=told or format_runs_done)
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
            typer.echo(translate_message(line))
        typer.echo(("\n" if before or remarks else "") + translate_result(format_text(result)))
    if quiet or json:
        # Whoever asks for silence, or hands the result to a program, still has to learn what may mislead.
        for line in notes:
            print_to_stderr(f"note: {line}")
        for line in (*remarks, *getattr(result, "warnings", ())):
            print_to_stderr(f"warning: {line}")
    if plot is not None:
        result.plot(plot)
    return result


def format_runs_done(done: int, total: int) -> str:
    """Progress, told in runs."""
    return f"{done:,} of {total:,} runs"


def run_with_progress(
    work: Callable[[Any], Any],
    *,
    quiet: bool,
    told: Callable[[int, int], str] = format_runs_done,
    ledger: Path | None = None,
) -> Any:
    """Work in a second thread, so that this one can show progress and hear Ctrl-C even while code is compiled."""
    import threading

    outcome: dict[str, Any] = {}
    bar = ProgressBar(shown=not quiet and sys.stderr.isatty(), words=told, quiet=quiet)

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
        if ledger is None:
            raise
        bar.close()
        kept = f"what was played is in {ledger}, and the same command goes on from there"
        word, code = (
            ("ended by SIGTERM", EXIT_TERMINATED) if isinstance(sign, Terminated) else ("interrupted", EXIT_INTERRUPTED)
        )
        exit_now(print_to_stderr(f"{word}; {kept}.", code))
    finally:
        bar.close()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


class ProgressBar:
    """A progress bar that appears only if the work takes more than a second."""

    def __init__(
        self, *, shown: bool, words: Callable[[int, int], str] = format_runs_done, quiet: bool = False
    ) -> None:
        self.shown, self.words, self.quiet = shown, words, quiet
        self.done = 0
        self.total = 0
        self.waited = 0
        self.live: Any = None

    def __call__(self, done: int, total: int) -> None:
        """Receives the progress, from the working threads."""
        self.done, self.total = done, total

    def announce(self, line: str) -> None:
        """Print a line on work that starts now, above the bar."""
        if self.quiet:
            return
        if self.live is not None:
            self.live.console.print(line, highlight=False, soft_wrap=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def refresh(self) -> None:
        """Called ten times a second."""
        self.waited += 1
        if not self.shown or self.waited < 8:
            return
        if self.live is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[runs]}"),
                TimeRemainingColumn(),
            )
            self.live = Progress(*columns, console=Console(stderr=True), transient=True)
            self.live.start()
            self.live.add_task("getting ready (code and tables are made once)", total=None, runs="")
        if self.done or self.total:
            told = self.words(self.done, self.total)
            doing = "playing" if self.total else "reading"
            self.live.update(0, description=doing, completed=self.done, total=self.total or None, runs=told)

    def close(self) -> None:
        """Take the bar away."""
        if self.live is not None:
            self.live.stop()


def print_to_stderr(error: object, code: int = 0) -> int:
    """One line on stderr, in the words of the command line; of NAME:option=value as it was typed."""
    from banditune.registry import InvalidOption

    line = " ".join(str(error).split())
    print(f"banditune: {line if isinstance(error, InvalidOption) else translate_message(line)}", file=sys.stderr)
    return code


def exit_now(code: int) -> None:
    """Leave at once, whatever threads are still doing."""
    sys.stderr.flush()
    os._exit(code)
