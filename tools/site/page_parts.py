"""Parts of pages that are made from the source: tables of registries, notices, the API and the command line."""

from __future__ import annotations

import importlib
import inspect
import posixpath
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import notebooks

import banditune as bt
from banditune.core.errors import ERROR_CODES
from banditune.core.notice import ADVICE, CAUSES
from banditune.registry import describe_registries

ROOT = Path(__file__).parents[2]
FROM_ROOT = {
    "index.md": "README.md",
    "extending/contributing.md": "CONTRIBUTING.md",
    "reference/changes.md": "CHANGELOG.md",
}
"""Pages that are files at the root of the repository."""
NOTEBOOK_PAGES = {f"notebooks/{path.stem.replace('_', '-')}.md": path for path in notebooks.list_notebooks()}
"""Pages that are notebooks."""
DESCRIPTIONS = {
    "index.md": "What banditune does, how to install it, a first result, and what it is good for.",
    "extending/contributing.md": "How to set up a clone, where things are, and how to add and test something.",
    "reference/changes.md": "What was added, changed and fixed in each version.",
}


def read_root_page(path: Path, page: str) -> str:
    """Read a page from the root of the repository, with its links as seen from the page."""
    text = translate_links(path.read_text(encoding="utf-8"), path.parent, page)
    hidden = "hide: [navigation]\n" if page == "index.md" else ""
    return f"---\ndescription: {DESCRIPTIONS[page]}\n{hidden}---\n\n{text}"


def read_notebook_page(path: Path, page: str) -> str:
    """Read a notebook as a page, with its links as seen from the page."""
    return notebooks.render_page(path, lambda text: translate_links(text, path.parent, page))


def translate_links(text: str, source: Path, page: str) -> str:
    """Translate links to files of the repository, as seen from the folder `source`, to links as seen from the page.

    Links to files that are not on the site become text.
    """
    folder = posixpath.dirname(page) or "."
    pages = {source: target for target, source in FROM_ROOT.items()}
    pages |= {path.relative_to(ROOT).as_posix(): target for target, path in NOTEBOOK_PAGES.items()}

    def replace_link(match: re.Match[str]) -> str:
        text, name = match[1], match[3] or ""
        target = posixpath.normpath(posixpath.join(source.relative_to(ROOT).as_posix(), match[2]))
        target = target.replace("src/banditune/core/pages/", "docs/explanation/")
        inside = target.removeprefix("docs/") if target.startswith("docs/") else pages.get(target)
        return f"[{text}]({posixpath.relpath(inside, folder)}{name})" if inside else text

    return re.sub(r"\[([^\]]*)\]\(([\w./-]+)(#[^)]*)?\)", replace_link, text)


def format_table(header: list[str], rows: list[list[str]]) -> str:
    """Format a Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(escape_bars, line)) + " |" for line in lines)


def escape_bars(cell: str) -> str:
    """Escape bars, which separate cells, except in code, where they do not."""
    parts = cell.split("`")
    return "`".join(part.replace("|", "\\|") if number % 2 == 0 else part for number, part in enumerate(parts))


def list_errors() -> str:
    """Make the table of the codes of errors."""
    return format_table(["code", "meaning"], [[f"`{code}`", meaning] for code, meaning in ERROR_CODES.items()])


def list_notices() -> str:
    """Make the table of notices."""
    return format_table(
        ["code", "what was seen", "advice"], [[f"`{code}`", CAUSES[code], advice] for code, advice in ADVICE.items()]
    )


def list_registry(kind: str) -> str:
    """Make the table of a registry: `policies`, `problems` or `tuners`."""
    rows = []
    for name, entry in describe_registries()[kind].items():
        options = ", ".join(f"`{option}={value}`" for option, value in entry["options"].items())
        row = [f"`{name}`", entry["about"], options or "-"]
        if kind == "policies":
            tuned = "; ".join(
                f"`{one['name']}` in [{one['low']}, {one['high']}], textbook {one['textbook']}"
                for one in entry["parameters"]
            )
            row.insert(2, tuned or "-")
        rows.append(row)
    header = ["name", "what it is", "options and their defaults"]
    if kind == "policies":
        header.insert(2, "tunes")
    return format_table(header, rows)


def list_api(package: str) -> str:
    """Document every public name of a package. Names that a namespace documents are listed with a link."""
    module = importlib.import_module(package)
    shared, own = [], []
    for name in dir(module):
        home = find_home(package, name)
        if inspect.ismodule(getattr(module, name)):
            continue
        (own if home == package else shared).append((name, home))
    text = []
    if shared:
        rows = [
            [f'<a id="{package}.{name}"></a>[`{name}`][{home}.{name}]', summarize(getattr(module, name))]
            for name, home in shared
        ]
        text.append(format_table(["name", "what it is"], rows))
    # What all policies, problems and tuners inherit is documented once, with the contracts.
    options = (
        "\n    options:\n      members: false\n      inherited_members: false" if package in CONTRACT_PACKAGES else ""
    )
    text += [f"::: {package}.{name}{options}" for name, _ in own]
    return "\n\n".join(text)


CONTRACT_PACKAGES = {f"banditune.{name}" for name in ("policies", "problems", "tuners")}
NAMESPACES = [name for name in dir(bt) if inspect.ismodule(getattr(bt, name))]


def find_home(package: str, name: str) -> str:
    """Find the package that documents a name.

    A namespace comes before the top level. Of two namespaces, the one that is first in `order` documents it.
    """
    thing = getattr(importlib.import_module(package), name)
    order = ["policies", "problems", "tuners", "results", "logs", "deployment", "adapters", "errors", "exact"]
    for namespace in sorted(NAMESPACES, key=lambda one: order.index(one) if one in order else len(order)):
        if getattr(getattr(bt, namespace), name, None) is thing:
            return f"banditune.{namespace}"
    return package


def summarize(thing: Any) -> str:
    """Return the first line of a docstring."""
    return (inspect.getdoc(thing) or "").partition("\n\n")[0].replace("\n", " ")


def read_packaged_page(topic: str) -> str:
    """Read a page that the package prints, such as `banditune explain assumptions`."""
    return bt.explain(topic)


def show_example(path: str) -> str:
    """Show a file of `examples/` as a code block."""
    code = (ROOT / "examples" / path).read_text(encoding="utf-8")
    language = {".py": "python", ".toml": "toml"}[Path(path).suffix]
    return f'```{language} title="examples/{path}"\n{code}```'


def list_commands() -> str:
    """Document every command with its options, from the declarations of the command line."""
    import typer

    from banditune.cli import app

    root = typer.main.get_command(app)
    return "\n\n".join(document_commands(root, "banditune"))


def document_commands(command: Any, path: str) -> list[str]:
    """Document a command, or all commands of a group."""
    if getattr(command, "commands", None):
        return [text for name, one in command.commands.items() for text in document_commands(one, f"{path} {name}")]
    arguments = [one for one in command.params if not one.opts[0].startswith("-")]
    options = [one for one in command.params if one.opts[0].startswith("-") and not one.hidden]
    usage = " ".join([path, *((one.metavar or one.name).upper() for one in arguments), "[OPTIONS]"])
    text = [f"## {path.removeprefix('banditune ')} {{ #{path.replace(' ', '-')} }}", f"`{usage}`", clean(command.help)]
    rows = [[f"`{(one.metavar or one.name).upper()}`", describe_option(one)] for one in arguments]
    rows += [[f"`{name_option(one)}`", describe_option(one)] for one in options]
    return [*text, format_table(["option", "meaning"], rows)]


def name_option(option: Any) -> str:
    """Return all forms of an option: `-o, --output FILE`."""
    forms = ", ".join([*sorted(option.opts, key=len), *option.secondary_opts])
    return f"{forms} {option.metavar}" if option.metavar else forms


def describe_option(option: Any) -> str:
    """Describe an option with its default."""
    about = clean(option.help)
    if option.required:
        return f"{about} Required."
    default = option.show_default if isinstance(option.show_default, str) else option.default
    plain = isinstance(default, int | float | str) and not isinstance(default, bool) and default != ""
    return f"{about} Default: {default}." if plain else about


def clean(text: str | None) -> str:
    """Join the lines of a help text."""
    return " ".join((text or "").split())


PARTS: dict[str, Callable[..., str]] = {
    "api": list_api,
    "commands": list_commands,
    "example": show_example,
    "errors": list_errors,
    "notices": list_notices,
    "packaged": read_packaged_page,
    "registry": list_registry,
}
"""What `<!-- insert: NAME ARGUMENT -->` may name."""
