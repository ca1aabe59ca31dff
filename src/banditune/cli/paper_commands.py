"""The command `paper`."""

from __future__ import annotations

from typing import Any, cast

import typer

from banditune.cli.app import app
from banditune.cli.options import (
    DeviceOption,
    ExecutorOption,
    JsonOption,
    OutputFolderOption,
    PaperRunsOption,
    QuietOption,
    RowsOption,
    SeedOption,
    StoreOption,
    TuningsOption,
    WorkersOption,
)
from banditune.cli.runner import run_with_progress


@app.command(short_help="Repeat the paper's experiments beside its numbers.")
def paper(
    runs: PaperRunsOption = 500,
    tunings: TuningsOption = 10_000,
    only: RowsOption = None,
    seed: SeedOption = 0,
    workers: WorkersOption = None,
    executor: ExecutorOption = "threads",
    device: DeviceOption = "cpu",
    store: StoreOption = None,
    json: JsonOption = False,
    output: OutputFolderOption = None,
    quiet: QuietOption = False,
) -> None:
    """Repeat the paper's experiments, with each published number. The exit status is 1 if one differs too much."""
    from banditune.paper.reproduction import reproduce
    from banditune.reports.paper_report import check_output_folder, write_paper_folder
    from banditune.study.settings import Run

    if output is not None:
        check_output_folder(output)

    def run_request(progress: Any) -> Any:
        run = Run(workers=workers, executor=executor, device=cast(Any, device), store=store, progress=progress)
        return reproduce(only=only, runs=runs, tunings=tunings, seed=seed, run=run)

    def format_progress(done: int, total: int) -> str:
        return f"{format_minutes(done)} of about {format_minutes(total)}"

    result = run_with_progress(run_request, quiet=quiet, format_progress=format_progress, store=store)
    if output is not None:
        write_paper_folder(result, output)
    if json:
        typer.echo(result.to_json())
    elif not quiet:
        typer.echo(repr(result))
    raise typer.Exit(0 if result.is_consistent else 1)


def format_minutes(seconds: int) -> str:
    """Format a duration."""
    return f"{seconds} s" if seconds < 100 else f"{seconds / 60:.0f} min"
