"""The commands `deploy`, `export` and `deployed`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from banditune.cli.app import CommandGroup, app
from banditune.cli.deployment_options import (
    LibraryOption,
    PendingOption,
    PolicyAgainOption,
    SavedResultArgument,
    SavedTuningArgument,
    StateArgument,
    StateFileOption,
)
from banditune.cli.number_parsers import parse_integer, parse_number
from banditune.cli.options import FeaturesOption, NamesOption, SeedOption
from banditune.cli.runner import print_to_stderr, run_with_progress
from banditune.cli.specs import parse_policy


@app.command()
def deploy(
    result: SavedResultArgument,
    output: StateFileOption,
    policy: PolicyAgainOption = None,
    names: NamesOption = None,
    features: FeaturesOption = None,
    seed: SeedOption = 0,
    pending: PendingOption = None,
) -> None:
    """Make the state of a deployed policy from a saved tuning."""
    from banditune.core.atomic_files import check_writable
    from banditune.core.errors import InvalidRequest
    from banditune.core.parsing import read_matrix
    from banditune.deployment.deployment_setup import deploy_result
    from banditune.results.result_record import load_result

    check_writable(output)
    if output.exists():
        raise InvalidRequest(
            f"a new state must not overwrite an existing file, but {str(output)!r} exists; move this file first.",
            argument="output",
            code="cannot-write",
        )

    def run_request(progress: Any) -> Any:
        return deploy_result(
            load_result(result),
            parse_policy(policy) if policy else None,
            names=names.split(",") if names else None,
            features=read_matrix(features) if features else None,
            seed=seed,
            pending=pending,
        )

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        deployed = run_with_progress(run_request, quiet=False)
    deployed.save(output)
    print_warnings(caught)
    typer.echo(repr(deployed))
    typer.echo(f"note: {deployed.delay_notice}")


def print_warnings(caught: Iterable[warnings.WarningMessage]) -> None:
    """Print warnings of Python in the form of other warnings."""
    for warning in caught:
        print_to_stderr(f"warning: {warning.message}")


@app.command(short_help="Convert a tuned parameter for another library.")
def export(result: SavedTuningArgument, to: LibraryOption) -> None:
    """Convert the parameter of a tuned policy for another library, and list the differences."""
    from banditune.core.errors import InvalidRequest
    from banditune.results.result_record import load_result
    from banditune.results.tuning_results import Tuning

    tuning = load_result(result)
    if not isinstance(tuning, Tuning):
        raise InvalidRequest(
            f"only a tuning can be exported, but {str(result)!r} contains a {type(tuning).__name__}.",
            argument="result",
            code="wrong-type",
        )
    typer.echo(repr(tuning.export_params(to)))


deployed_group = CommandGroup(
    help="Work with a deployed policy, one process at a time.", no_args_is_help=True, rich_markup_mode=None
)


app.add_typer(deployed_group, name="deployed")


@deployed_group.command()
def select(state: StateArgument, policy: PolicyAgainOption = None) -> None:
    """Select an arm, and print its name."""
    deployed = load_deployed(state, policy)
    arm = deployed.select_arm()
    deployed.save(state)
    typer.echo(arm)


@deployed_group.command(context_settings={"ignore_unknown_options": True})
def update(
    state: StateArgument,
    arm: Annotated[str, typer.Argument(help="The arm's name.")],
    reward: Annotated[float, typer.Argument(parser=parse_number, help="Its reward.")],
    policy: PolicyAgainOption = None,
) -> None:
    """Update the policy for a reward."""
    deployed = load_deployed(state, policy)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        deployed.update(deployed.find_arm(arm), reward)
    deployed.save(state)
    print_warnings(caught)


@deployed_group.command(short_help="Drop pending rewards of an arm.")
def drop(
    state: StateArgument,
    arm: Annotated[str, typer.Argument(help="The arm's name.")],
    pulls: Annotated[int, typer.Option(parser=parse_integer, help="Number of pulls.")] = 1,
    policy: PolicyAgainOption = None,
) -> None:
    """Drop pending rewards of an arm. These pulls no longer count."""
    deployed = load_deployed(state, policy)
    deployed.drop_pending(deployed.find_arm(arm), pulls)
    deployed.save(state)


@deployed_group.command()
def add(
    state: StateArgument,
    name: Annotated[str, typer.Argument(help="The new arm's name.")],
    features: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Its features, if arms have features.")
    ] = None,
    policy: PolicyAgainOption = None,
) -> None:
    """Add an arm without rewards."""
    from banditune.core.parsing import parse_value

    deployed = load_deployed(state, policy)
    row = parse_value(features) if features else []
    numbered = all(isinstance(arm, int) for arm in deployed.arms) and name.isdecimal()
    deployed.add_arm(int(name) if numbered else name, row if isinstance(row, list) else [row])
    deployed.save(state)


@deployed_group.command(short_help="Never select an arm again.")
def retire(
    state: StateArgument, arm: Annotated[str, typer.Argument(help="The arm's name.")], policy: PolicyAgainOption = None
) -> None:
    """Never select an arm again. Its pending rewards are still accepted."""
    deployed = load_deployed(state, policy)
    deployed.retire_arm(deployed.find_arm(arm))
    deployed.save(state)


@deployed_group.command("show")
def show_deployed(state: StateArgument, policy: PolicyAgainOption = None) -> None:
    """Show the statistics of each arm."""
    typer.echo(repr(load_deployed(state, policy)))


def load_deployed(state: Path, policy: str | None) -> Any:
    """Load a deployed policy from its file."""
    from banditune.deployment.deployed_policy import DeployedPolicy

    return run_with_progress(
        lambda progress: DeployedPolicy.load(state, parse_policy(policy) if policy else None), quiet=False
    )
