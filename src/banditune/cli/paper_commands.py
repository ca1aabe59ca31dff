"""The paper again."""

from __future__ import annotations

from typing import Any

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


@app.command(short_help="Every experiment of the paper again, beside its numbers.")
def paper(
    runs: PaperRunsOption = 500,
    tunings: TuningsOption = 10_000,
    only: RowsOption = None,
    seed: SeedOption = 0,
    jobs: WorkersOption = None,
    cluster: ExecutorOption = "threads",
    device: DeviceOption = "cpu",
    ledger: StoreOption = None,
    json: JsonOption = False,
    output: OutputFolderOption = None,
    quiet: QuietOption = False,
) -> None:
    """Every experiment of the paper again, our number beside each published one; 1 if one is far off."""
    from banditune.paper.reproduction import reproduce
    from banditune.reports.paper_report import check_output_folder, write_paper_folder

    if output is not None:
        check_output_folder(output)

    def work(progress: Any) -> Any:
        return reproduce(
            only=only, runs=runs, tunings=tunings, seed=seed, jobs=jobs, cluster=cluster, device=device, ledger=ledger,
            progress=progress,
        )  # fmt: skip

    def told(done: int, total: int) -> str:
        return f"{format_minutes(done)} of about {format_minutes(total)}"

    result = run_with_progress(work, quiet=quiet, told=told, ledger=ledger)
    if output is not None:
        write_paper_folder(result, output)
    if json:
        typer.echo(result.to_json())
    elif not quiet:
        typer.echo(repr(result))
    raise typer.Exit(0 if result.agrees else 1)


def format_minutes(seconds: int) -> str:
    """A time in words."""
    return f"{seconds} s" if seconds < 100 else f"{seconds / 60:.0f} min"
