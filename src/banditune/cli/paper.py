"""The paper again."""

from __future__ import annotations

from typing import Any

import typer

from banditune.cli.app import app
from banditune.cli.attend import attended
from banditune.cli.options import Device, Folder, Jobs, Json, Ledger, Only, PaperRuns, Quiet, Seed, Tunings, Where


@app.command(short_help="Every experiment of the paper again, beside its numbers.")
def paper(
    runs: PaperRuns = 500,
    tunings: Tunings = 10_000,
    only: Only = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    cluster: Where = "threads",
    device: Device = "cpu",
    ledger: Ledger = None,
    json: Json = False,
    output: Folder = None,
    quiet: Quiet = False,
) -> None:
    """Every experiment of the paper again, our number beside each published one; 1 if one is far off."""
    from banditune.paper import reproduce
    from banditune.reports.paper import check_folder, write_folder

    if output is not None:
        check_folder(output)

    def work(progress: Any) -> Any:
        return reproduce(
            only=only, runs=runs, tunings=tunings, seed=seed, jobs=jobs, cluster=cluster, device=device, ledger=ledger,
            progress=progress,
        )  # fmt: skip

    def told(done: int, total: int) -> str:
        return f"{minutes(done)} of about {minutes(total)}"

    result = attended(work, quiet=quiet, told=told, ledger=ledger)
    if output is not None:
        write_folder(result, output)
    if json:
        typer.echo(result.to_json())
    elif not quiet:
        typer.echo(repr(result))
    raise typer.Exit(0 if result.agrees else 1)


def minutes(seconds: int) -> str:
    """A time in words."""
    return f"{seconds} s" if seconds < 100 else f"{seconds / 60:.0f} min"
