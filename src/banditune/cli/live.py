"""A policy at work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from banditune.cli.app import Commands, app
from banditune.cli.attend import attended, complain
from banditune.cli.numbers import decimal, whole
from banditune.cli.options import Again, Deployed, Features, Library, Names, Pending, Saved, SavedTuning, Seed, Target
from banditune.cli.words import policy_named


@app.command()
def deploy(
    result: Saved,
    output: Target,
    policy: Again = None,
    names: Names = None,
    features: Features = None,
    seed: Seed = 0,
    pending: Pending = None,
) -> None:
    """Make the state of a policy at work out of a saved tuning."""
    from banditune.contracts import BadRequest
    from banditune.live import deploy_tuning
    from banditune.results import check_writable, load
    from banditune.shelf import matrix_from

    check_writable(output)
    if output.exists():
        raise BadRequest(
            f"a new state must not take the place of one at work, but {str(output)!r} exists; move it away."
        )

    def work(told: Any) -> Any:
        return deploy_tuning(
            load(result),
            policy_named(policy) if policy else None,
            names=names.split(",") if names else None,
            features=matrix_from(features) if features else None,
            seed=seed,
            pending=pending,
        )

    made = attended(work, quiet=False)
    made.save(output)
    typer.echo(repr(made))
    typer.echo(f"note: {made.note}")


@app.command(short_help="The equal parameter of a tuned policy in another library.")
def export(result: SavedTuning, to: Library) -> None:
    """The equal parameter of a tuned policy in another library, and what is not the same there."""
    from banditune.contracts import BadRequest
    from banditune.results import Tuning, load

    tuning = load(result)
    if not isinstance(tuning, Tuning):
        raise BadRequest(f"a tuning must be exported, but {str(result)!r} holds a {type(tuning).__name__}.")
    typer.echo(repr(tuning.export(to)))


at_work = Commands(
    help="Work with a deployed policy, one process at a time.", no_args_is_help=True, rich_markup_mode=None
)


app.add_typer(at_work, name="live")


@at_work.command()
def select(state: Deployed, policy: Again = None) -> None:
    """Select an arm, and print its name."""
    found = at_work_in(state, policy)
    arm = found.select_arm()
    found.save(state)
    typer.echo(arm)


@at_work.command(context_settings={"ignore_unknown_options": True})
def update(
    state: Deployed,
    arm: Annotated[str, typer.Argument(help="The arm's name.")],
    reward: Annotated[float, typer.Argument(parser=decimal, help="What it paid.")],
    policy: Again = None,
) -> None:
    """Learn a reward."""
    import warnings

    found = at_work_in(state, policy)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        found.update(found.arm_called(arm), reward)
    found.save(state)
    for warning in said:
        complain(f"warning: {warning.message}")


@at_work.command(short_help="No longer wait for rewards of an arm.")
def drop(
    state: Deployed,
    arm: Annotated[str, typer.Argument(help="The arm's name.")],
    pulls: Annotated[int, typer.Option(parser=whole, help="So many of its pulls.")] = 1,
    policy: Again = None,
) -> None:
    """No longer wait for rewards of an arm: its pulls count as if they had not been made."""
    found = at_work_in(state, policy)
    found.drop(found.arm_called(arm), pulls)
    found.save(state)


@at_work.command()
def add(
    state: Deployed,
    name: Annotated[str, typer.Argument(help="The new arm's name.")],
    features: Annotated[str | None, typer.Option(metavar="A,B,...", help="Its features, where arms have some.")] = None,
    policy: Again = None,
) -> None:
    """Add an arm that has no rewards yet."""
    from banditune.shelf import parsed

    found = at_work_in(state, policy)
    row = parsed(features) if features else []
    numbered = all(isinstance(arm, int) for arm in found.arms) and name.isdecimal()
    found.add_arm(int(name) if numbered else name, row if isinstance(row, list) else [row])
    found.save(state)


@at_work.command(short_help="Never select an arm again.")
def retire(state: Deployed, arm: Annotated[str, typer.Argument(help="The arm's name.")], policy: Again = None) -> None:
    """Never select an arm again; rewards that it waits for are still taken."""
    found = at_work_in(state, policy)
    found.retire_arm(found.arm_called(arm))
    found.save(state)


@at_work.command("show")
def live_show(state: Deployed, policy: Again = None) -> None:
    """What is known about each arm."""
    typer.echo(repr(at_work_in(state, policy)))


def at_work_in(state: Path, policy: str | None) -> Any:
    """A deployed policy from its file."""
    from banditune.live import Live

    return attended(lambda told: Live.load(state, policy_named(policy) if policy else None), quiet=False)
