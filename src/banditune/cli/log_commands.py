"""From past logs to what to expect."""

from __future__ import annotations

from typing import Any

import typer

from banditune.cli.app import app
from banditune.cli.log_options import (
    INFERRED_COLUMNS,
    CampaignHorizonOption,
    InterceptOption,
    IntervalConfidenceOption,
    LogFileArgument,
    LogReadingOptions,
    ModelOption,
    PerArmOption,
    ProblemFileOption,
    SavedFitOption,
    TuningShareOption,
    expand_log_options,
)
from banditune.cli.messages import translate_message
from banditune.cli.options import (
    ArmsOption,
    BudgetOption,
    JsonOption,
    OutputOption,
    PlotOption,
    PolicyOption,
    QuietOption,
    RangesOption,
    SeedOption,
    TunerOption,
    WorkersOption,
)
from banditune.cli.runner import run_and_print
from banditune.cli.specs import parse_policy, parse_ranges, parse_tuner


@app.command(short_help="Fit what to expect to past logs, as a problem to tune on.")
@expand_log_options
def fit(
    context: typer.Context,
    logs: LogFileArgument,
    model: ModelOption = "auto",
    per_arm: PerArmOption = False,
    intercept: InterceptOption = True,
    columns: LogReadingOptions = INFERRED_COLUMNS,
    arms: ArmsOption = None,
    horizon: CampaignHorizonOption = None,
    confidence: IntervalConfidenceOption = 0.95,
    json: JsonOption = False,
    output: ProblemFileOption = None,
    save: SavedFitOption = None,
    plot: PlotOption = None,
    quiet: QuietOption = False,
) -> None:
    """Fit what to expect to past logs, as a problem for the other commands."""
    from banditune.core.atomic_files import check_writable
    from banditune.core.errors import InvalidRequest
    from banditune.logs.io import log_reader
    from banditune.logs.models import fitting
    from banditune.problems import problem_file

    if output is not None and output.suffix != ".toml":
        raise InvalidRequest(
            f"a problem's file must end in .toml, by which other commands know it, but got {str(output)!r}; a fit with its "
            "checks is written by --save FILE.json."
        )
    for path in filter(None, (output, save, plot)):
        check_writable(path)

    def work(progress: Any) -> Any:
        found = log_reader.read_logs(logs, **vars(columns), progress=lambda rows: progress(rows, 0))
        said.append(found.told[0])
        remarks.extend(found.remarks)
        return fitting.fit(
            found, model, per_arm=per_arm, intercept=intercept, arms=arms, horizon=horizon, confidence=confidence
        )

    said: list[str] = []
    remarks: list[str] = []
    result = run_and_print(
        work, json=json, output=save, plot=plot, quiet=quiet, told=format_rows_read, before=said, remarks=remarks,
        context=context,
    )  # fmt: skip
    if output is not None:
        title = f"{result.model} fitted to {logs.name}: {result.decisions:,} decisions, {result.campaigns} campaigns"
        problem_file.save_problem(
            result.problem, output, result.horizon, (title, *map(translate_message, result.notes))
        )


@app.command()
@expand_log_options
def backtest(
    context: typer.Context,
    logs: LogFileArgument,
    policy: PolicyOption,
    model: ModelOption = "auto",
    per_arm: PerArmOption = False,
    intercept: InterceptOption = True,
    share: TuningShareOption = 0.5,
    columns: LogReadingOptions = INFERRED_COLUMNS,
    horizon: CampaignHorizonOption = None,
    tuner: TunerOption = "two-part",
    budget: BudgetOption = 1000,
    ranges: RangesOption = None,
    seed: SeedOption = 0,
    jobs: WorkersOption = None,
    json: JsonOption = False,
    output: OutputOption = None,
    quiet: QuietOption = False,
) -> None:
    """Tune a policy on some past campaigns and judge it on the others."""
    from banditune.logs.io import log_reader
    from banditune.study import backtesting

    played = parse_policy(policy)

    def work(progress: Any) -> Any:
        found = log_reader.read_logs(logs, **vars(columns))
        said.append(found.told[0])
        remarks.extend(found.remarks)
        return backtesting.backtest(
            played, found, model, per_arm=per_arm, intercept=intercept, share=share,
            horizon=horizon, tuner=parse_tuner(tuner), budget=budget, ranges=parse_ranges(ranges), seed=seed, jobs=jobs,
            progress=progress,
        )  # fmt: skip

    said: list[str] = []
    remarks: list[str] = []
    run_and_print(work, json=json, output=output, quiet=quiet, before=said, remarks=remarks, context=context)


def format_rows_read(done: int, total: int) -> str:
    """How many rows were read."""
    return f"{done:,} rows"
