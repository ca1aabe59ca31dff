"""Command-line options of the commands for deployed policies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

LibraryOption = Annotated[str, typer.Option("--to", metavar="mabwiser|river", help="The other library.")]


SavedResultArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A tuning or comparison that -o wrote.")]


SavedTuningArgument = Annotated[Path, typer.Argument(metavar="FILE", help="A tuning that -o wrote.")]


StateFileOption = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The file for the state.")]


StateArgument = Annotated[
    Path, typer.Argument(metavar="STATE", help="A state that `deploy` or `DeployedPolicy.save` wrote.")
]


PolicyAgainOption = Annotated[
    str | None, typer.Option("--policy", metavar="NAME", help="The policy, if it is your own or uses a table.")
]


PendingOption = Annotated[
    str | None,
    typer.Option(
        metavar="ignore|mean",
        show_default="the policy's own",
        help="Pulls without a reward count not at all, or with the arm's mean.",
    ),
]
