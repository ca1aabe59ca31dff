"""tune, curve, compare."""

from __future__ import annotations

from typing import Any

import typer

from banditune.cli.app import app
from banditune.cli.attend import deliver
from banditune.cli.options import (
    Arms,
    Budget,
    Confidence,
    Device,
    Dims,
    Drawn,
    Features,
    Floor,
    Jobs,
    Json,
    Judge,
    Ledger,
    MaxBudget,
    MaxTime,
    Means,
    Names,
    Noise,
    Output,
    Plot,
    Policies,
    Policy,
    Prior,
    Problem,
    Quiet,
    Ranges,
    Regret,
    Runs,
    Seed,
    Shortcut,
    Spend,
    Steps,
    Stressed,
    TimeLimit,
    Tuner,
    Validate,
    Values,
    Where,
    Within,
)
from banditune.cli.words import expected, policy_named, ranges_told, tuner_named


@app.command()
def tune(
    context: typer.Context,
    policy: Policy,
    problem: Problem,
    horizon: Steps = None,
    arms: Arms = None,
    dims: Dims = None,
    features: Features = None,
    prior: Prior = None,
    means: Means = None,
    names: Names = None,
    tuner: Tuner = "two-part",
    budget: Spend = None,
    within: Within = None,
    confidence: Confidence = 0.95,
    max_budget: MaxBudget = None,
    max_time: MaxTime = None,
    validate: Judge = None,
    seed: Seed = 0,
    regret: Regret = "expected",
    noise: Noise = "shared",
    ranges: Ranges = None,
    jobs: Jobs = None,
    cluster: Where = "threads",
    time_limit: TimeLimit = None,
    shortcut: Shortcut = True,
    device: Device = "cpu",
    curve: Drawn = False,
    floor: Floor = None,
    stress: Stressed = False,
    ledger: Ledger = None,
    json: Json = False,
    output: Output = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Find the parameter value with the lowest Bayes regret."""
    from banditune import study

    def work(progress: Any) -> Any:
        made, steps = expected(
            problem, horizon, arms=arms, dims=dims, features=features, prior=prior, means=means, names=names
        )
        return study.tune(
            policy_named(policy), made, tuner_named(tuner), horizon=steps,
            budget=budget, within=within, confidence=confidence, max_budget=max_budget, max_time=max_time,
            validate=validate, seed=seed, ranges=ranges_told(ranges),
            regret=regret, noise=noise, jobs=jobs, cluster=cluster, time_limit=time_limit, shortcut=shortcut, device=device,
            curve=curve or plot is not None, floor=floor, stress=stress, ledger=ledger, progress=progress,
            announce=progress.announce,
        )  # fmt: skip

    deliver(work, json=json, output=output, plot=plot, quiet=quiet, ledger=ledger, context=context)


@app.command()
def curve(
    context: typer.Context,
    policy: Policy,
    problem: Problem,
    horizon: Steps = None,
    arms: Arms = None,
    dims: Dims = None,
    features: Features = None,
    prior: Prior = None,
    means: Means = None,
    names: Names = None,
    values: Values = None,
    runs: Runs = 1000,
    seed: Seed = 0,
    regret: Regret = "expected",
    noise: Noise = "shared",
    ranges: Ranges = None,
    jobs: Jobs = None,
    cluster: Where = "threads",
    time_limit: TimeLimit = None,
    shortcut: Shortcut = True,
    device: Device = "cpu",
    ledger: Ledger = None,
    json: Json = False,
    output: Output = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Bayes regret over parameter values."""
    from banditune import study
    from banditune.shelf import parsed

    def work(progress: Any) -> Any:
        made, steps = expected(
            problem, horizon, arms=arms, dims=dims, features=features, prior=prior, means=means, names=names
        )
        return study.curve(
            policy_named(policy), made, None if values is None else parsed(values), horizon=steps, runs=runs,
            ranges=ranges_told(ranges),
            seed=seed, regret=regret, noise=noise, jobs=jobs, cluster=cluster, time_limit=time_limit, shortcut=shortcut,
            device=device, ledger=ledger, progress=progress,
        )  # fmt: skip

    deliver(work, json=json, output=output, plot=plot, quiet=quiet, ledger=ledger, context=context)


@app.command(short_help="Tune several policies and judge them on the same instances.")
def compare(
    context: typer.Context,
    policies: Policies,
    problem: Problem,
    horizon: Steps = None,
    arms: Arms = None,
    dims: Dims = None,
    features: Features = None,
    prior: Prior = None,
    means: Means = None,
    names: Names = None,
    tuner: Tuner = "two-part",
    budget: Budget = 1000,
    validate: Validate = 1000,
    seed: Seed = 0,
    regret: Regret = "expected",
    noise: Noise = "shared",
    ranges: Ranges = None,
    jobs: Jobs = None,
    cluster: Where = "threads",
    time_limit: TimeLimit = None,
    shortcut: Shortcut = True,
    device: Device = "cpu",
    floor: Floor = None,
    ledger: Ledger = None,
    json: Json = False,
    output: Output = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Tune several policies and judge them on the same fresh instances."""
    from banditune import study

    made, steps = expected(
        problem, horizon, arms=arms, dims=dims, features=features, prior=prior, means=means, names=names
    )

    def work(progress: Any) -> Any:
        return study.compare(
            [policy_named(policy) for policy in policies],
            made,
            tuner_named(tuner),
            ranges=ranges_told(ranges),
            horizon=steps, budget=budget, validate=validate, seed=seed, regret=regret, noise=noise, jobs=jobs,
            cluster=cluster, time_limit=time_limit, shortcut=shortcut, device=device, floor=floor, ledger=ledger,
            progress=progress,
        )  # fmt: skip

    deliver(work, json=json, output=output, plot=plot, quiet=quiet, ledger=ledger, context=context)
