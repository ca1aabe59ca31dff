"""The commands `exact`, which compute values without simulation."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from banditune.cli.app import CommandGroup, app
from banditune.cli.number_parsers import parse_integer, parse_share
from banditune.cli.options import (
    ArmsOption,
    DiscountOption,
    HorizonOption,
    JsonOption,
    MeansOption,
    NamesOption,
    OutputOption,
    PolicyOption,
    PriorOption,
    ProblemOption,
    RoundsLeftOption,
    SeedOption,
)
from banditune.cli.runner import run_and_print, run_with_progress
from banditune.cli.specs import parse_policy, parse_problem_and_horizon

exact_group = CommandGroup(no_args_is_help=True, rich_markup_mode=None, help="Compute values without simulation.")


app.add_typer(exact_group, name="exact")


def format_steps_done(done: int, total: int) -> str:
    """Format the progress in steps."""
    return f"{done:,} of {total:,} steps"


@exact_group.command(short_help="Compute the regret of the best possible policy.")
def optimum(
    context: typer.Context,
    problem: ProblemOption,
    horizon: HorizonOption = None,
    arms: ArmsOption = None,
    prior: PriorOption = None,
    means: MeansOption = None,
    names: NamesOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """Compute the regret of the best possible policy, for two Bernoulli arms or a mixture of a few instances."""
    from banditune.study import exact_values

    parsed_problem, steps = parse_problem_and_horizon(
        problem, horizon, arms=arms, prior=prior, means=means, names=names
    )
    run_and_print(
        lambda progress: exact_values.compute_optimum(parsed_problem, horizon=steps, progress=progress),
        json=json,
        output=output,
        format_progress=format_steps_done,
        context=context,
    )


@exact_group.command(short_help="Compute the exact Bayes regret of a policy on a few arms.")
def regret(
    context: typer.Context,
    policy: PolicyOption,
    problem: ProblemOption,
    horizon: HorizonOption = None,
    values: Annotated[
        str | None, typer.Option(metavar="A,B,...", help="Parameter values; by default the textbook value.")
    ] = None,
    arms: ArmsOption = None,
    prior: PriorOption = None,
    means: MeansOption = None,
    names: NamesOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """Compute the exact Bayes regret of a policy on a few arms that pay 0 or 1."""
    from banditune.core.parsing import parse_value
    from banditune.study import exact_values

    parsed_problem, steps = parse_problem_and_horizon(
        problem, horizon, arms=arms, prior=prior, means=means, names=names
    )
    parsed_policy = parse_policy(policy)
    parsed_values = None if values is None else parse_value(values)
    run_and_print(
        lambda progress: exact_values.compute_exact_regret(
            parsed_policy, parsed_problem, parsed_values, horizon=steps, progress=progress
        ),
        json=json,
        output=output,
        format_progress=format_steps_done,
        context=context,
    )


@exact_group.command(short_help="Compute a lower bound on the regret of every policy.")
def bound(
    context: typer.Context,
    problem: ProblemOption,
    horizon: HorizonOption = None,
    arms: ArmsOption = None,
    prior: PriorOption = None,
    names: NamesOption = None,
    runs: Annotated[int, typer.Option(parser=parse_integer, help="Instances for sampled bounds.")] = 1000,
    seed: SeedOption = 0,
    confidence: Annotated[float, typer.Option(parser=parse_share, help="Probability that the bound holds.")] = 0.95,
    json: JsonOption = False,
    output: OutputOption = None,
) -> None:
    """Compute a lower bound on the regret of every policy, for any number of Bernoulli or Gaussian arms and any horizon."""
    from banditune.study import exact_values

    parsed_problem, steps = parse_problem_and_horizon(problem, horizon, arms=arms, prior=prior, names=names)

    def run_request(progress: Any) -> Any:
        return exact_values.compute_lower_bound(
            parsed_problem, horizon=steps, runs=runs, seed=seed, confidence=confidence
        )

    run_and_print(run_request, json=json, output=output, context=context)


@exact_group.command(short_help="Compute the Gittins index of a Bernoulli arm.")
def gittins(
    successes: Annotated[int, typer.Option(parser=parse_integer, help="Pulls of the arm that paid 1.")] = 0,
    failures: Annotated[int, typer.Option(parser=parse_integer, help="Pulls of the arm that paid 0.")] = 0,
    rounds_left: RoundsLeftOption = None,
    discount: DiscountOption = None,
    prior: Annotated[str, typer.Option(metavar="A,B", help="Beta prior of the mean reward.")] = "1,1",
) -> None:
    """Compute the Gittins index of a Bernoulli arm: the highest price of a pull at which it breaks even."""
    from banditune.core.parsing import parse_value
    from banditune.exact.gittins import compute_gittins_index

    def run_request(progress: Any) -> float:
        return compute_gittins_index(
            successes, failures, rounds_left=rounds_left, discount=discount, prior=parse_value(prior)
        )

    typer.echo(f"{run_with_progress(run_request, quiet=False):.8f}")
