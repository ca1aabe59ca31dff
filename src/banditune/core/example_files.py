"""Lists the examples that are shipped with the package, and writes copies of them."""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from pathlib import Path

from banditune.core.atomic_files import write_atomically
from banditune.core.errors import InvalidRequest
from banditune.core.request_errors import make_name_error

DATA = "data"
"""The folder with the data that examples read."""


NOTEBOOKS = "notebooks"
"""The folder with the notebooks."""


SUFFIXES = {".csv", ".ipynb", ".md", ".py", ".toml"}
"""Suffixes of files that belong to examples."""


def find_examples() -> Path:
    """Find the folder of examples, in the installed package or in its repository."""
    package = Path(__file__).parent.parent
    for folder in (package / "examples", package.parent.parent / "examples"):
        if (folder / DATA).is_dir():
            return folder
    raise InvalidRequest(
        f"the examples must be part of the package, but there are none in {package}; install banditune again.",
        code="unavailable",
    )


def list_examples() -> dict[str, str]:
    """List the examples, scripts, notebooks and packages, each with a description."""
    root = find_examples()
    scripts = {path.relative_to(root).as_posix(): describe_script(path) for path in list_files(root, ".py")}
    scripts |= {path.relative_to(root).as_posix(): describe_notebook(path) for path in list_files(root, ".ipynb")}
    packages = [path.parent for path in list_files(root, ".toml")]
    for package in packages:
        name = package.relative_to(root).as_posix()
        scripts = {script: about for script, about in scripts.items() if not script.startswith(f"{name}/")}
        scripts[name] = describe_package(package)
    return dict(sorted(scripts.items(), key=lambda item: (item[0].count("/"), item[0])))


def list_files(folder: Path, suffix: str = "") -> list[Path]:
    """List the files of examples in a folder and below."""
    files = (path for path in folder.rglob("*") if path.suffix in SUFFIXES and path.suffix.endswith(suffix))
    return sorted(path for path in files if path.is_file())


def describe_script(path: Path) -> str:
    """Return the first line of a script's docstring."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]


def describe_notebook(path: Path) -> str:
    """Return the description of a notebook, which its metadata hold."""
    return str(json.loads(path.read_text(encoding="utf-8"))["metadata"]["description"])


def describe_package(folder: Path) -> str:
    """Return the first sentence of the comment at the top of a package's project file."""
    lines = (folder / "pyproject.toml").read_text(encoding="utf-8").splitlines()
    return next((line.lstrip("# ").rstrip(":") for line in lines if line.startswith("# ")), "")


def write_examples(folder: Path, names: Sequence[str] = ()) -> list[Path]:
    """Write examples and their data into a folder, all of them or those named. Return the paths of the written files.

    A name is one of the list or a folder of it. A changed file is not replaced.
    """
    root = find_examples()
    known = list_examples()
    folders = sorted({name.rpartition("/")[0] for name in known} - {""})
    for name in names:
        if name not in known and name not in folders:
            raise make_name_error("the example", [*known, *folders], name, argument="names")
    sources = [path for path in list_files(root) if _is_wanted(path.relative_to(root).as_posix(), names)]
    targets = {source: folder / source.relative_to(root) for source in sources}
    for source, target in targets.items():
        if target.exists() and target.read_bytes() != source.read_bytes():
            raise InvalidRequest(
                f"an example must not replace a file that was changed, but {str(target)!r} is there; choose another "
                "folder.",
                argument="output",
                code="cannot-write",
            )
    for source, target in targets.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(target, source.read_bytes())
    return list(targets.values())


def _is_wanted(path: str, names: Sequence[str]) -> bool:
    """Return whether a file belongs to one of the names. Data belong to scripts in the top folder and to notebooks."""
    needs_data = any(("/" not in name and name.endswith(".py")) or name.startswith(NOTEBOOKS) for name in names)
    if not names or (needs_data and path.startswith(f"{DATA}/")):
        return True
    return any(path == name or path.startswith(f"{name}/") for name in names)
