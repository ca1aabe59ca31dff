"""The root command."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer
from typer.core import TyperCommand

from banditune.cli.command_echo import check_files_distinct
from banditune.core.version import __version__

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])


class CheckedCommand(TyperCommand):
    """A command that checks its files, and accepts only one policy.

    If an option is given twice, the last one wins. `compare` accepts several policies, so for other commands more than one
    policy is an error.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        times = sum(parameter.name == "policy" and not parameter.multiple for parameter in order)
        if times > 1:
            ctx.fail(f"--policy must be given once, but was given {times} times; `compare` takes several.")
        return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        check_files_distinct(ctx)
        return super().invoke(ctx)


class CommandGroup(typer.Typer):
    """A group of checked commands."""

    def command(self, *args: Any, **kwargs: Any) -> Callable[[CommandFunction], CommandFunction]:
        return super().command(*args, **({"cls": CheckedCommand} | kwargs))


app = CommandGroup(
    name="banditune",
    help="Find how much a bandit algorithm should explore.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _print_version(requested: bool) -> None:
    if requested:
        typer.echo(f"banditune {__version__}")
        raise typer.Exit


@app.callback()
def _accept_root_options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
