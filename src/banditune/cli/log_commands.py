"""The commands `fit` and `backtest`."""

from __future__ import annotations

from typing import Any

import typer

from banditune.cli.app import app
from banditune.cli.log_options import (
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
)
from banditune.cli.option_groups import RunOptions, SearchOptions, expand_groups
from banditune.cli.options import (
    ArmsOption,
    BudgetOption,
    JsonOption,
    OutputOption,
    PlotOption,
    PolicyOption,
    QuietOption,
    SeedOption,
    StrictOption,
)
from banditune.cli.runner import exit_if_strict, run_and_print
from banditune.cli.specs import parse_policy
from banditune.cli.vocabulary import write_for_command_line


@app.command(short_help="Fit a problem to past logs, for tuning.")
@expand_groups
def fit(
    context: typer.Context,
    logs: LogFileArgument,
    columns: LogReadingOptions,
    model: ModelOption = "auto",
    per_arm: PerArmOption = False,
    intercept: InterceptOption = True,
    arms: ArmsOption = None,
    horizon: CampaignHorizonOption = None,
    confidence: IntervalConfidenceOption = 0.95,
    json: JsonOption = False,
    output: ProblemFileOption = None,
    save: SavedFitOption = None,
    plot: PlotOption = None,
    quiet: QuietOption = False,
) -> None:
    """Fit a problem to past logs, for the other commands."""
    from banditune.core.atomic_files import check_writable
    from banditune.core.errors import InvalidRequest
    from banditune.logs.models import fitting
    from banditune.problems import problem_file

    if output is not None and output.suffix != ".toml":
        raise InvalidRequest(
            f"a problem's file must end in .toml, by which other commands recognise it, but got {str(output)!r}; a fit "
            "with its checks is written by --save FILE.json.",
            argument="output",
            code="file-format",
        )
    for path in filter(None, (output, save, plot)):
        check_writable(path)

    def run_request(progress: Any) -> Any:
        loaded = columns.read(logs, lambda rows: progress(rows, 0))
        before.append(loaded.messages[0])
        remarks.extend(loaded.notes)
        return fitting.fit(
            loaded, model, per_arm=per_arm, intercept=intercept, arms=arms, horizon=horizon, confidence=confidence
        )

    before: list[str] = []
    remarks: list[str] = []
    result = run_and_print(
        run_request,
        json=json,
        output=save,
        plot=plot,
        quiet=quiet,
        format_progress=format_rows_read,
        before=before,
        remarks=remarks,
        context=context,
    )
    if output is not None:
        title = f"{result.model} fitted to {logs.name}: {result.decisions:,} decisions, {result.campaigns} campaigns"
        problem_file.save_problem(
            result.problem, output, result.horizon, (title, *map(write_for_command_line, result.notes))
        )


@app.command(short_help="Tune on some past campaigns and test on the others.")
@expand_groups
def backtest(
    context: typer.Context,
    logs: LogFileArgument,
    policy: PolicyOption,
    columns: LogReadingOptions,
    search: SearchOptions,
    run: RunOptions,
    model: ModelOption = "auto",
    per_arm: PerArmOption = False,
    intercept: InterceptOption = True,
    share: TuningShareOption = 0.5,
    horizon: CampaignHorizonOption = None,
    budget: BudgetOption = 1000,
    seed: SeedOption = 0,
    json: JsonOption = False,
    output: OutputOption = None,
    quiet: QuietOption = False,
    strict: StrictOption = False,
) -> None:
    """Tune a policy on some past campaigns and test it on the others."""
    from banditune.study import backtesting

    parsed_policy = parse_policy(policy)

    def run_request(progress: Any) -> Any:
        loaded = columns.read(logs)
        before.append(loaded.messages[0])
        remarks.extend(loaded.notes)
        return backtesting.backtest(
            parsed_policy,
            loaded,
            fit_settings=backtesting.FitSettings(model=model, per_arm=per_arm, intercept=intercept),
            share=share,
            horizon=horizon,
            budget=budget,
            seed=seed,
            search=search.parse(),
            run=run.parse(progress),
        )

    before: list[str] = []
    remarks: list[str] = []
    result = run_and_print(
        run_request, json=json, output=output, quiet=quiet, before=before, remarks=remarks, context=context
    )
    exit_if_strict(result, strict)


def format_rows_read(done: int, total: int) -> str:
    """Format the progress in rows."""
    return f"{done:,} rows"
