"""The command that all others belong to."""

from __future__ import annotations

from typing import Annotated

import typer

from banditune import __version__

app = typer.Typer(
    name="banditune",
    help="Find how much a bandit algorithm should explore.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"banditune {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
