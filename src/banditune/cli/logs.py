"""From past logs to what to expect."""

from __future__ import annotations

from typing import Any

import typer

from banditune.cli.app import app
from banditune.cli.attend import deliver
from banditune.cli.options import (
    GUESSED,
    Arms,
    Budget,
    CampaignSteps,
    Certainty,
    Columns,
    Intercept,
    Jobs,
    Json,
    LeftOut,
    LogFile,
    Model,
    Output,
    PerArm,
    Plot,
    Policy,
    PriorFile,
    Quiet,
    Ranges,
    SavedFit,
    Seed,
    Tuner,
    reading,
)
from banditune.cli.speech import spoken
from banditune.cli.words import policy_named, ranges_told, tuner_named


@app.command(short_help="Fit what to expect to past logs, as a problem to tune on.")
@reading
def fit(
    context: typer.Context,
    logs: LogFile,
    model: Model = "auto",
    per_arm: PerArm = False,
    intercept: Intercept = True,
    columns: Columns = GUESSED,
    arms: Arms = None,
    horizon: CampaignSteps = None,
    confidence: Certainty = 0.95,
    json: Json = False,
    output: PriorFile = None,
    save: SavedFit = None,
    plot: Plot = None,
    quiet: Quiet = False,
) -> None:
    """Fit what to expect to past logs, as a problem for the other commands."""
    from banditune import logs as room
    from banditune.contracts import BadRequest
    from banditune.results import check_writable

    if output is not None and output.suffix != ".toml":
        raise BadRequest(
            f"a problem's file must end in .toml, by which other commands know it, but got {str(output)!r}; a fit with its "
            "checks is written by --save FILE.json."
        )
    for path in filter(None, (output, save, plot)):
        check_writable(path)

    def work(progress: Any) -> Any:
        found = room.read_logs(logs, **vars(columns), progress=lambda rows: progress(rows, 0))
        said.append(found.told[0])
        remarks.extend(found.remarks)
        return room.fit(
            found, model, per_arm=per_arm, intercept=intercept, arms=arms, horizon=horizon, confidence=confidence
        )

    said: list[str] = []
    remarks: list[str] = []
    result = deliver(
        work, json=json, output=save, plot=plot, quiet=quiet, told=rows_read, before=said, remarks=remarks,
        context=context,
    )  # fmt: skip
    if output is not None:
        title = f"{result.model} fitted to {logs.name}: {result.decisions:,} decisions, {result.campaigns} campaigns"
        room.write_prior(result.problem, output, result.horizon, (title, *map(spoken, result.notes)))


@app.command()
@reading
def backtest(
    context: typer.Context,
    logs: LogFile,
    policy: Policy,
    model: Model = "auto",
    per_arm: PerArm = False,
    intercept: Intercept = True,
    share: LeftOut = 0.5,
    columns: Columns = GUESSED,
    horizon: CampaignSteps = None,
    tuner: Tuner = "two-part",
    budget: Budget = 1000,
    ranges: Ranges = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
    output: Output = None,
    quiet: Quiet = False,
) -> None:
    """Tune a policy on some past campaigns and judge it on the others."""
    from banditune import logs as room

    played = policy_named(policy)

    def work(progress: Any) -> Any:
        found = room.read_logs(logs, **vars(columns))
        said.append(found.told[0])
        remarks.extend(found.remarks)
        return room.backtest(
            played, found, model, per_arm=per_arm, intercept=intercept, share=share,
            horizon=horizon, tuner=tuner_named(tuner), budget=budget, ranges=ranges_told(ranges), seed=seed, jobs=jobs,
            progress=progress,
        )  # fmt: skip

    said: list[str] = []
    remarks: list[str] = []
    deliver(work, json=json, output=output, quiet=quiet, before=said, remarks=remarks, context=context)


def rows_read(done: int, total: int) -> str:
    """How many rows were read."""
    return f"{done:,} rows"
