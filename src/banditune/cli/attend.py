"""Work with a progress bar; print and write what came out."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import typer

from banditune.cli.speech import spoken, spoken_result
from banditune.cli.typed import as_typed

INTERRUPTED = 130
ENDED = 143


class Ended(BaseException):
    """SIGTERM came, as from a cluster whose time for this job is over."""


def listen() -> None:
    """From now on SIGTERM ends a command as Ctrl-C does: with a sentence."""

    def heard(*_: object) -> None:
        raise Ended

    signal.signal(signal.SIGTERM, heard)


def deliver(
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
    from banditune.results import check_writable

    for path in (output, plot):
        if path is not None:
            check_writable(path)
    if plot is not None:
        from banditune.reports.figures import check_format

        check_format(plot)
    result = attended(work, quiet=quiet, ledger=ledger, told=told or in_runs)
    if context is not None:
        result = as_typed(result, context)
    if output is not None:
        result.save(output)
    notes = getattr(result, "notes", ())
    remarks = [line for line in remarks if line not in notes]
    if json:
        typer.echo(result.to_json())
    elif not quiet:
        from banditune.reports.tables import text

        for line in (*before, *remarks):
            typer.echo(spoken(line))
        typer.echo(("\n" if before or remarks else "") + spoken_result(text(result)))
    if quiet or json:
        # Whoever asks for silence, or hands the result to a program, still has to learn what may mislead.
        for line in notes:
            complain(f"note: {line}")
        for line in (*remarks, *getattr(result, "warnings", ())):
            complain(f"warning: {line}")
    if plot is not None:
        result.plot(plot)
    return result


def in_runs(done: int, total: int) -> str:
    """Progress, told in runs."""
    return f"{done:,} of {total:,} runs"


def attended(
    work: Callable[[Any], Any],
    *,
    quiet: bool,
    told: Callable[[int, int], str] = in_runs,
    ledger: Path | None = None,
) -> Any:
    """Work in a second thread, so that this one can show progress and hear Ctrl-C even while code is compiled."""
    import threading

    outcome: dict[str, Any] = {}
    bar = Bar(shown=not quiet and sys.stderr.isatty(), words=told, quiet=quiet)

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
    except (KeyboardInterrupt, Ended) as sign:
        if ledger is None:
            raise
        bar.close()
        kept = f"what was played is in {ledger}, and the same command goes on from there"
        word, code = ("ended by SIGTERM", ENDED) if isinstance(sign, Ended) else ("interrupted", INTERRUPTED)
        leave(complain(f"{word}; {kept}.", code))
    finally:
        bar.close()
    if "error" in outcome:
        raise outcome["error"]
    return outcome["result"]


class Bar:
    """A progress bar that appears only if the work takes more than a second."""

    def __init__(self, *, shown: bool, words: Callable[[int, int], str] = in_runs, quiet: bool = False) -> None:
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


def complain(error: object, code: int = 0) -> int:
    """One line on stderr, in the words of the command line; of NAME:option=value as it was typed."""
    from banditune.shelf import BadOption

    line = " ".join(str(error).split())
    print(f"banditune: {line if isinstance(error, BadOption) else spoken(line)}", file=sys.stderr)
    return code


def leave(code: int) -> None:
    """Leave at once, whatever threads are still doing."""
    sys.stderr.flush()
    os._exit(code)
