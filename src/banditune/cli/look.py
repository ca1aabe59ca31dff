"""Look at results, ledgers, shelves and the machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import typer

from banditune.cli.app import Commands, app
from banditune.cli.attend import attended
from banditune.cli.options import Book, Figures, Html, Json, Markdown, Result, Summary, Table, Topic, Wanted
from banditune.cli.words import policy_named, problem_named


@app.command(short_help="A saved result or a ledger as a page, figures or Markdown.")
def report(result: Result, output: Html = None, figures: Figures = None, markdown: Markdown = None) -> None:
    """A saved result, or all that a ledger holds, as a report: one HTML file, figures, or Markdown."""
    from banditune.contracts import BadRequest
    from banditune.reports import written

    if output is None and figures is None and markdown is None:
        raise BadRequest("a report must be told where to go, but got no -o FILE.html, no --figures and no --markdown.")
    for path in written(result, output, figures, markdown, books_in):
        typer.echo(f"wrote {path}")


def books_in(path: Path) -> list[Any]:
    """Accounts from a ledger or its summary; parameters have the names that they have on the shelf."""
    from banditune.shelf import every_policy
    from banditune.study.accounts import accounts_in

    shelf = every_policy()

    def names(policy: str) -> tuple[str, ...] | None:
        made = shelf.get(policy)
        return None if made is None else tuple(parameter.name for parameter in getattr(made, "parameters", ()))

    return list(accounts_in(path, names))


@app.command(short_help="What the numbers assume.")
def explain(topic: Topic = "assumptions") -> None:
    """What the numbers assume: what each assumption is, what happens where it fails, and what to do."""
    from banditune.pages import explain as page

    typer.echo(page(topic).rstrip())


@app.command()
def doctor(device: Wanted = "auto", json: Json = False) -> None:
    """What this machine has, what works, what to install."""
    from banditune.reports.tables import diagnosis
    from banditune.study.doctor import examined
    from banditune.study.door import job_of

    jobs = [
        job_of(policy_named("ucb1"), problem_named("bernoulli", arms=3), horizon=1000),
        job_of(policy_named("linucb"), problem_named("linear", arms=5, dims=3), horizon=100),
    ]
    found = attended(lambda told: examined(jobs, device), quiet=False)
    if json:
        import json as codec

        typer.echo(codec.dumps(found))
    else:
        typer.echo(diagnosis(found))
    raise typer.Exit(0 if found["works"] else 1)


@app.command("list", short_help="Every policy, problem and tuner, with its parameters.")
def show(json: Json = False) -> None:
    """Every policy, problem and tuner, with parameters and one line of explanation."""
    from banditune.shelf import shelves

    if json:
        import json as codec

        typer.echo(codec.dumps(shelves()))
        return
    for heading, entries in shelves().items():
        typer.echo(f"{heading}")
        width = max(len(name) for name in entries)
        for name, entry in entries.items():
            typer.echo(f"  {name.ljust(width)}  {entry['about']}")
            for parameter in entry["parameters"]:
                whole = ", a whole number" if parameter["integer"] else ""
                span = f"[{parameter['low']}, {parameter['high']}]{whole}"
                typer.echo(f"  {' ' * width}    tunes {parameter['name']} in {span}, theory {parameter['theory']}")
            if entry["options"]:
                told = ", ".join(f"{option}={value}" for option, value in entry["options"].items())
                typer.echo(f"  {' ' * width}    options {told}")
        typer.echo("")


books = Commands(help="Look into a ledger.", no_args_is_help=True, rich_markup_mode=None)


app.add_typer(books, name="ledger")


@books.command("show")
def ledger_show(file: Book, json: Json = False) -> None:
    """What was played, and how much of it."""
    from banditune.reports.tables import ledger_words
    from banditune.study.accounts import overview

    tell(overview(file), ledger_words, json=json)


@books.command("verify")
def ledger_verify(file: Book, json: Json = False) -> None:
    """Check every number against its checksum."""
    from banditune.reports.tables import verified_words
    from banditune.study.accounts import verified

    tell(verified(file), verified_words, json=json)


@books.command("export")
def ledger_export(file: Book, output: Table, summary: Summary = False) -> None:
    """Write all regrets, or a summary of them, as a table."""
    from banditune.study.accounts import exported

    attended(lambda told: exported(file, output, whole=not summary), quiet=True)


def tell(found: Any, words: Callable[[Any], str], *, json: bool) -> None:
    """Print what was found, as JSON or in words."""
    import json as codec

    typer.echo(codec.dumps(found) if json else words(found))
