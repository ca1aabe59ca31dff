"""Notebooks of `examples/notebooks/`: executes them, stores and compares their outputs, and makes pages of them.

python tools/site/notebooks.py [--check] [NOTEBOOK ...]

Without `--check`, the outputs are stored in the files. The site shows stored outputs: it is built without executing.
"""

from __future__ import annotations

import argparse
import base64
import io
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "examples" / "notebooks"
TIME_LIMIT = 300
"""Seconds that a cell may take."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
"""What a notebook states of itself beside its description. The version of Python would change with every machine."""

IMAGE = "image/png"


def list_notebooks() -> list[Path]:
    """List the notebooks."""
    return sorted(FOLDER.glob("*.ipynb"))


def read_notebook(path: Path) -> dict[str, Any]:
    """Read a notebook as plain data."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def write_notebook(notebook: dict[str, Any], path: Path) -> None:
    """Write a notebook, in the form that Jupyter writes."""
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n", encoding="utf-8")


def join_lines(text: str | list[str]) -> str:
    """Join text that may be stored as a list of lines."""
    return text if isinstance(text, str) else "".join(text)


def read_markdown(path: Path) -> str:
    """Return the Markdown cells of a notebook as one text."""
    cells = read_notebook(path)["cells"]
    return "\n\n".join(join_lines(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")


def execute(path: Path, folder: Path) -> dict[str, Any]:
    """Execute a notebook in an empty folder, beside a copy of the data; returns it with its new outputs."""
    import nbformat
    from nbclient import NotebookClient

    shutil.copytree(ROOT / "examples" / "data", folder / "data")
    (folder / "notebooks").mkdir()
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=TIME_LIMIT,
        kernel_name="python3",
        coalesce_streams=True,
        store_widget_state=False,
        record_timing=False,
        extra_arguments=["--log-level=ERROR"],
        resources={"metadata": {"path": str(folder / "notebooks")}},
    )
    # Start-up files of the user must not change what a notebook shows.
    client.execute(env=os.environ | {"IPYTHONDIR": str(folder / "ipython")})
    return tidy(json.loads(nbformat.writes(notebook)))


def tidy(notebook: dict[str, Any]) -> dict[str, Any]:
    """Remove from an executed notebook what changes with the machine, and make its figures small."""
    notebook["metadata"] = {"description": notebook["metadata"].get("description", "")} | METADATA
    for cell in notebook["cells"]:
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if IMAGE in data:
                data[IMAGE] = reduce_colours(join_lines(data[IMAGE]))
    return notebook


def reduce_colours(image: str) -> str:
    """Store a PNG image with a palette of 256 colours, which makes a figure three times smaller."""
    from PIL import Image

    content = io.BytesIO()
    picture = Image.open(io.BytesIO(base64.b64decode(image))).convert("RGB")
    picture.quantize(256, dither=Image.Dither.NONE).save(content, "PNG", optimize=True)
    return base64.b64encode(content.getvalue()).decode()


def hide_sizes(text: str) -> str:
    """Replace sizes in bytes: that of pickled code depends on the name of a temporary file."""
    return re.sub(r"\b[\d,]+ bytes", "... bytes", text)


def describe_output(output: dict[str, Any]) -> str:
    """Describe an output by its kind and its text. Of a figure only the kind counts."""
    kind = output["output_type"]
    if kind == "stream":
        return f"{output['name']}\n{hide_sizes(join_lines(output['text']))}"
    if kind == "error":
        return f"{output['ename']}: {output['evalue']}"
    texts = (hide_sizes(join_lines(text)) for mime, text in sorted(output["data"].items()) if mime.startswith("text/"))
    return "\n".join([f"{kind} {', '.join(sorted(output['data']))}", *texts])


def list_differences(stored: dict[str, Any], executed: dict[str, Any]) -> Iterator[str]:
    """List the cells whose outputs differ."""
    for before, now in zip(stored["cells"], executed["cells"], strict=True):
        expected, found = (
            "\n".join(map(describe_output, cell.get("outputs", ()))) + f"\n[{cell.get('execution_count')}]"
            for cell in (before, now)
        )
        if expected != found:
            yield f"cell {before['id']!r}\n--- the notebook has:\n{expected}\n--- it was:\n{found}"


def render_page(path: Path, translate: Callable[[str], str]) -> str:
    """Render a notebook as a page of the site, in Markdown. `translate` translates the links of its text."""
    notebook = read_notebook(path)
    cells = [text for cell in notebook["cells"] for text in render_cell(cell, translate)]
    name = path.relative_to(ROOT / "examples").as_posix()
    note = (
        f"This page is a notebook. [Download it]({path.name}), open `examples/{name}` of a clone, or write it into a "
        f"folder: `banditune examples {name} -o FOLDER`."
    )
    text = "\n\n".join([cells[0], note, *cells[1:]])
    return f"---\ndescription: {notebook['metadata']['description']}\n---\n\n{text}\n"


def render_cell(cell: dict[str, Any], translate: Callable[[str], str]) -> Iterator[str]:
    """Render a cell: its text, or its code and its outputs."""
    source = join_lines(cell["source"])
    if cell["cell_type"] == "markdown":
        yield translate(source)
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        yield render_output(output, cell["metadata"].get("alt", ""))


def render_output(output: dict[str, Any], alt: str) -> str:
    """Render an output: a figure, HTML, or plain text."""
    data = output.get("data", {})
    if IMAGE in data:
        width = output.get("metadata", {}).get(IMAGE, {}).get("width")
        size = f' width="{width}"' if width else ""
        inside = f'<img alt="{escape(alt)}"{size} src="data:{IMAGE};base64,{join_lines(data[IMAGE]).strip()}">'
    elif "text/html" in data:
        inside = join_lines(data["text/html"])
    else:
        inside = f"<pre>{escape(join_lines(output.get('text') or data['text/plain']).rstrip())}</pre>"
    return f'<div class="output">\n{inside}\n</div>'


def main() -> None:
    """Execute notebooks, and store or compare their outputs."""
    parser = argparse.ArgumentParser(description="Execute notebooks.")
    parser.add_argument("--check", action="store_true", help="compare outputs with those that are stored")
    parser.add_argument("notebooks", nargs="*", type=Path, help="all if left out")
    arguments = parser.parse_args()
    differs = False
    for path in [path.resolve() for path in arguments.notebooks] or list_notebooks():
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(path, Path(folder))
        print(f"{path.name}: {time.monotonic() - begin:.1f} s", flush=True)
        if arguments.check:
            differences = list(list_differences(read_notebook(path), notebook))
            print(*differences, sep="\n\n", end="\n" * bool(differences), flush=True)
            differs |= bool(differences)
        else:
            write_notebook(notebook, path)
    sys.exit(differs)


if __name__ == "__main__":
    main()
