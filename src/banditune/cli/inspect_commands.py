"""Commands that show results, stores, registries and the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from banditune.cli.app import CommandGroup, app
from banditune.cli.options import (
    ExampleNames,
    ExamplesFolderOption,
    FigureOption,
    FiguresOption,
    HtmlOption,
    JsonOption,
    LabelsOption,
    LatexOption,
    MarkdownOption,
    PerOption,
    RequiredDeviceOption,
    ResultsArgument,
    ScaleOption,
    SizeOption,
    StoreArgument,
    SummaryOption,
    TableOption,
    TitleOption,
    TopicArgument,
    UnitOption,
)
from banditune.cli.runner import print_to_stderr, run_with_progress
from banditune.cli.specs import parse_policy, parse_problem, parse_size
from banditune.core.messages import Message


@app.command(short_help="Write saved results as a page, figures, LaTeX or Markdown.")
def report(
    results: ResultsArgument,
    output: HtmlOption = None,
    figures: FiguresOption = None,
    markdown: MarkdownOption = None,
    latex: LatexOption = None,
    title: TitleOption = "",
    unit: UnitOption = "",
    per: PerOption = None,
) -> None:
    """Write a report on saved results or on a store: one HTML file, figures, LaTeX or Markdown.

    With --unit, the report begins with a summary: the gain of tuning in that unit, and the meaning of the tuned parameter.
    """
    from banditune.core.errors import InvalidRequest
    from banditune.reports.report_files import ReportFiles, ReportOptions, write_report_files

    if output is None and figures is None and markdown is None and latex is None:
        raise InvalidRequest(
            "a report must have a file to write, but got no -o FILE.html, --figures, --latex or --markdown.",
            argument="output",
            code="missing",
        )
    options = ReportOptions(title, unit, per)
    files = ReportFiles(output, figures, markdown, latex)
    for path in write_report_files(results, files, load_summaries, options):
        typer.echo(f"wrote {path}")


@app.command("plot", short_help="Draw saved results in one figure.")
def draw_results(
    results: ResultsArgument,
    output: FigureOption,
    labels: LabelsOption = None,
    xscale: ScaleOption = None,
    size: SizeOption = None,
) -> None:
    """Draw a saved result, or several of one kind in one figure: curves, tunings, comparisons or regrets over time."""
    from banditune.core.atomic_files import check_writable
    from banditune.reports.figures import plot
    from banditune.reports.report_files import read_records

    check_writable(output)
    records = [record for path in results for record in read_records(path, load_summaries)]
    plot(
        records if len(records) > 1 else records[0],
        output,
        labels=labels or None,
        xscale=xscale,  # type: ignore[arg-type]
        size=parse_size(size),
    )
    typer.echo(f"wrote {output}")


def load_summaries(path: Path) -> list[Any]:
    """Load the summaries of a store, or of its export. Registered policies give the names of parameters."""
    from banditune.registry import collect_policies
    from banditune.storage.summary_records import load_store_summaries

    registry = collect_policies()

    def list_parameter_names(policy: str) -> tuple[str, ...] | None:
        policy_class = registry.get(policy)
        return (
            None
            if policy_class is None
            else tuple(parameter.name for parameter in getattr(policy_class, "parameters", ()))
        )

    return list(load_store_summaries(path, list_parameter_names))


@app.command(short_help="Explain the assumptions behind the numbers.")
def explain(topic: TopicArgument = "assumptions") -> None:
    """Explain the assumptions behind the numbers, the effect if one is wrong, and what to do."""
    from banditune.core.pages import explain as page

    typer.echo(page(topic).rstrip())


@app.command(short_help="Check the installation and this machine.")
def doctor(device: RequiredDeviceOption = "auto", json: JsonOption = False) -> None:
    """Check the installation and this machine, with advice on missing parts."""
    from banditune.reports.plain_text import format_environment_check
    from banditune.study.environment_check import examine_environment
    from banditune.study.requests import build_spec

    specs = [
        build_spec(parse_policy("ucb1"), parse_problem("bernoulli", arms=3), horizon=1000),
        build_spec(parse_policy("linucb"), parse_problem("linear", arms=5, dims=3), horizon=100),
    ]
    report = run_with_progress(lambda progress: examine_environment(specs, device), quiet=False)
    if json:
        import json as codec

        typer.echo(codec.dumps(report))
    else:
        typer.echo(format_environment_check(report))
    raise typer.Exit(0 if report["works"] else 1)


@app.command("list", short_help="List policies, problems and tuners, with their parameters.")
def list_registry(json: JsonOption = False) -> None:
    """List policies, problems and tuners, with parameters and one line of explanation."""
    from banditune.registry import describe_registries, list_plugin_notices

    for notice in list_plugin_notices():
        print_to_stderr(Message("warning: {}", notice))
    if json:
        import json as codec

        typer.echo(codec.dumps(describe_registries()))
        return
    for heading, entries in describe_registries().items():
        typer.echo(f"{heading}")
        width = max(len(name) for name in entries)
        for name, entry in entries.items():
            origin = f" (from {entry['package']})" if entry["package"] else ""
            typer.echo(f"  {name.ljust(width)}  {entry['about']}{origin}")
            for parameter in entry["parameters"]:
                suffix = ", a whole number" if parameter["integer"] else ""
                span = f"[{parameter['low']}, {parameter['high']}]{suffix}"
                typer.echo(f"  {' ' * width}    tunes {parameter['name']} in {span}, textbook {parameter['textbook']}")
            if entry["options"]:
                options = ", ".join(f"{option}={value}" for option, value in entry["options"].items())
                typer.echo(f"  {' ' * width}    options {options}")
        typer.echo("")


@app.command(short_help="List the examples, or write them into a folder.")
def examples(names: ExampleNames = None, output: ExamplesFolderOption = None) -> None:
    """List the examples with a line on each, or write them into a folder, all of them or those named."""
    from banditune.core.example_files import list_examples, write_examples
    from banditune.core.request_errors import make_argument_error

    if output is not None:
        for path in write_examples(output, names or ()):
            typer.echo(f"wrote {path}")
        return
    if names:
        raise make_argument_error("output", "missing", "must be a folder for the examples, but got none.")
    descriptions = list_examples()
    width = max(map(len, descriptions))
    for name, about in descriptions.items():
        typer.echo(f"{name.ljust(width)}  {about}")
    typer.echo("\nwrite them by: banditune examples -o FOLDER")


store_group = CommandGroup(help="Inspect a store of regrets.", no_args_is_help=True, rich_markup_mode=None)


app.add_typer(store_group, name="store")


@store_group.command("show")
def show_store(file: StoreArgument, json: JsonOption = False) -> None:
    """Show the stored simulations and their numbers of runs."""
    from banditune.reports.plain_text import format_store_listing
    from banditune.storage.store_tables import read_overview

    print_answer(read_overview(file), format_store_listing, json=json)


@store_group.command("verify")
def check_store(file: StoreArgument, json: JsonOption = False) -> None:
    """Check every number against its checksum."""
    from banditune.reports.plain_text import format_store_check
    from banditune.storage.store_tables import verify_store

    print_answer(verify_store(file), format_store_check, json=json)


@store_group.command("export")
def write_store_table(file: StoreArgument, output: TableOption, summary: SummaryOption = False) -> None:
    """Write all regrets, or a summary of them, as a table."""
    from banditune.storage.store_tables import export_store

    run_with_progress(lambda progress: export_store(file, output, all_regrets=not summary), quiet=True)


def print_answer(answer: Any, formatter: Callable[[Any], str], *, json: bool) -> None:
    """Print a result as JSON or as text."""
    import json as codec

    typer.echo(codec.dumps(answer) if json else formatter(answer))
