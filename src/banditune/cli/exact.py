"""What is computed rather than simulated."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from banditune.cli.app import Commands, app
from banditune.cli.attend import attended, deliver
from banditune.cli.numbers import share, whole
from banditune.cli.options import (
    Arms,
    Discount,
    Json,
    Left,
    Means,
    Names,
    Output,
    Policy,
    Prior,
    Problem,
    Seed,
    Steps,
)
from banditune.cli.words import expected, policy_named

exact = Commands(no_args_is_help=True, rich_markup_mode=None, help="What is computed rather than simulated.")


app.add_typer(exact, name="exact")


def in_steps(done: int, total: int) -> str:
    """Progress, told in steps."""
    return f"{done:,} of {total:,} steps"


@exact.command(short_help="The best that any policy can do.")
def optimum(
    context: typer.Context,
    problem: Problem,
    horizon: Steps = None,
    arms: Arms = None,
    prior: Prior = None,
    means: Means = None,
    names: Names = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """The best that any policy can do: two Bernoulli arms, or a mixture of a few instances."""
    from banditune import study

    made, steps = expected(problem, horizon, arms=arms, prior=prior, means=means, names=names)
    deliver(
        lambda told: study.optimum(made, horizon=steps, progress=told),
        json=json, output=output, told=in_steps, context=context,
    )  # fmt: skip


@exact.command(short_help="The Bayes regret of a policy on a few arms.")
def regret(
    context: typer.Context,
    policy: Policy,
    problem: Problem,
    horizon: Steps = None,
    values: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Parameter values; without them theory's.")
    ] = None,
    arms: Arms = None,
    prior: Prior = None,
    means: Means = None,
    names: Names = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """The Bayes regret of a policy on a few arms that pay 0 or 1, to the last digit."""
    from banditune import study
    from banditune.shelf import parsed

    made, steps = expected(problem, horizon, arms=arms, prior=prior, means=means, names=names)
    played = policy_named(policy)
    wanted = None if values is None else parsed(values)
    deliver(
        lambda told: study.exact_regret(played, made, wanted, horizon=steps, progress=told),
        json=json, output=output, told=in_steps, context=context,
    )  # fmt: skip


@exact.command(short_help="What no policy can lose less than.")
def bound(
    context: typer.Context,
    problem: Problem,
    horizon: Steps = None,
    arms: Arms = None,
    prior: Prior = None,
    names: Names = None,
    runs: Annotated[int, typer.Option(parser=whole, help="Instances on which sampled bounds are computed.")] = 1000,
    seed: Seed = 0,
    confidence: Annotated[float, typer.Option(parser=share, help="How sure the bound must be.")] = 0.95,
    json: Json = False,
    output: Output = None,
) -> None:
    """What no policy can lose less than: Bernoulli or Gaussian arms, any number of them, any horizon."""
    from banditune import study

    made, steps = expected(problem, horizon, arms=arms, prior=prior, names=names)

    def work(told: Any) -> Any:
        return study.lower_bound(made, horizon=steps, runs=runs, seed=seed, confidence=confidence)

    deliver(work, json=json, output=output, context=context)


@exact.command(short_help="The Gittins index of a Bernoulli arm.")
def gittins(
    successes: Annotated[int, typer.Option(parser=whole, help="Pulls of the arm that paid 1.")] = 0,
    failures: Annotated[int, typer.Option(parser=whole, help="Pulls of the arm that paid 0.")] = 0,
    left: Left = None,
    discount: Discount = None,
    prior: Annotated[str, typer.Option(metavar="A,B", help="Beta prior of the mean reward.")] = "1,1",
) -> None:
    """The Gittins index of a Bernoulli arm: the price of a pull at which it just breaks even."""
    from banditune.exact import gittins_index
    from banditune.shelf import parsed

    def work(told: Any) -> float:
        return gittins_index(successes, failures, left=left, discount=discount, prior=parsed(prior))

    typer.echo(f"{attended(work, quiet=False):.8f}")
