"""Notebooks run to their end, and their text outputs are as stored; pages of the site show what is stored."""

from __future__ import annotations

import copy
import re

import nbformat
import pytest
from notebooks import (
    IMAGE,
    METADATA,
    execute,
    list_differences,
    list_notebooks,
    read_markdown,
    read_notebook,
    render_page,
    write_notebook,
)

from banditune.paper.published_numbers import PaperCellKey, load_published_numbers

NOTEBOOKS = list_notebooks()
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="  # one pixel


def name_notebook(path):
    return path.stem


def list_outputs(notebook):
    return [output for cell in notebook["cells"] for output in cell.get("outputs", ())]


def make_notebook(*cells):
    """A notebook of Markdown cells (text) and code cells (source, outputs)."""
    made = []
    for number, cell in enumerate(cells):
        base = {"id": f"cell-{number}", "metadata": {"alt": "A picture."}}
        if isinstance(cell, str):
            made.append(base | {"cell_type": "markdown", "source": [cell]})
        else:
            source, outputs = cell
            made.append(
                base | {"cell_type": "code", "source": source, "outputs": list(outputs), "execution_count": number}
            )
    metadata = {"description": "What it is about."} | METADATA
    return {"cells": made, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def make_result(**data):
    """An output with text, HTML or a picture."""
    mimes = {"text": "text/plain", "html": "text/html", "png": IMAGE}
    return {
        "output_type": "execute_result",
        "data": {mimes[name]: value for name, value in data.items()},
        "metadata": {IMAGE: {"width": 7}} if "png" in data else {},
        "execution_count": 1,
    }


STREAM = {"output_type": "stream", "name": "stdout", "text": ["1.5\n", "2.5\n"]}


def test_notebooks_are_found():
    assert {path.stem for path in NOTEBOOKS} == {"logs_to_production", "own_policy", "paper"}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_notebook)
def test_a_notebook_runs_and_shows_what_is_stored(path, tmp_path):
    executed = execute(path, tmp_path)
    assert len(list_outputs(executed)) > 3
    assert list(list_differences(read_notebook(path), executed)) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_notebook)
def test_a_stored_notebook_is_valid_and_has_no_errors_and_no_traces_of_a_machine(path):
    notebook = read_notebook(path)
    nbformat.validate(nbformat.from_dict(notebook))
    assert notebook["metadata"] == {"description": notebook["metadata"]["description"]} | METADATA
    assert notebook["metadata"]["description"].endswith(".")
    names = [cell["id"] for cell in notebook["cells"]]
    assert len(set(names)) == len(names)
    assert not [name for name in names if re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f-]+)?", name)]
    counts = [cell["execution_count"] for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert counts == list(range(1, len(counts) + 1))
    outputs = list_outputs(notebook)
    assert len(outputs) > 3
    assert {output["output_type"] for output in outputs} <= {"display_data", "execute_result", "stream"}
    assert "stderr" not in {output.get("name") for output in outputs}
    assert path.stat().st_size < 400_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_notebook)
def test_every_figure_has_a_text_for_those_who_cannot_see_it(path):
    cells = [cell for cell in read_notebook(path)["cells"] if cell["cell_type"] == "code"]
    with_figures = [cell for cell in cells if any(IMAGE in output.get("data", {}) for output in cell["outputs"])]
    assert with_figures
    assert [cell["id"] for cell in with_figures if not cell["metadata"].get("alt", "").endswith(".")] == []


def test_the_numbers_of_the_paper_in_the_notebook_are_the_published_ones():
    (path,) = (path for path in NOTEBOOKS if path.stem == "paper")
    (cell,) = (cell for cell in read_notebook(path)["cells"] if cell["id"] == "widths")
    rows = re.findall(r"\((\w+), (\w+)\): \(([\d.]+), ([\d.]+)\)", "".join(cell["source"]))
    names = {"ucb1": "ucb1", "thompson": "ts", "warm_up": "warm-up", "ten_arms": "bernoulli"}
    assert len(rows) == 4
    published = load_published_numbers()
    for policy, problem, best, textbook in rows:
        row = f"{names[problem]} {names[policy]}"
        assert published[PaperCellKey("best", row)] == float(best)
        assert published[PaperCellKey("textbook", row)] == float(textbook)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=name_notebook)
def test_notebooks_are_stored_in_one_form(path, tmp_path):
    write_notebook(read_notebook(path), tmp_path / path.name)
    assert (tmp_path / path.name).read_text() == path.read_text()


@pytest.mark.parametrize(
    ("now", "count"),
    [
        ([STREAM], 0),
        ([STREAM | {"text": "1.5\n2.5\n"}], 0),
        ([STREAM | {"text": "1.5\n2.6\n"}], 1),
        ([STREAM | {"text": "1.5\n2.5\n17 bytes"}], 1),
        ([STREAM | {"name": "stderr"}], 1),
        ([], 1),
        ([STREAM, make_result(text="3")], 1),
        ([{"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}], 1),
    ],
)
def test_an_output_that_differs_is_found(now, count):
    stored, executed = make_notebook("# A", ("f()", [STREAM])), make_notebook("# A", ("f()", now))
    differences = list(list_differences(stored, executed))
    assert len(differences) == count
    assert all("cell 'cell-1'" in difference for difference in differences)


def test_sizes_of_pickled_code_may_differ():
    stored, executed = (make_notebook("# A", ("f()", [make_result(text=text)])) for text in ("1,682 bytes", "90 bytes"))
    assert list(list_differences(stored, executed)) == []


def test_figures_may_differ_but_not_their_kind_and_not_html():
    stored = make_notebook("# A", ("f()", [make_result(text="<Figure>", png=PIXEL)]))
    executed = copy.deepcopy(stored)
    executed["cells"][1]["outputs"][0]["data"][IMAGE] = "other"
    assert list(list_differences(stored, executed)) == []
    assert len(list(list_differences(stored, make_notebook("# A", ("f()", [make_result(text="<Figure>")]))))) == 1
    shown, changed = (make_notebook("# A", ("f()", [make_result(html=text)])) for text in ("<b>1</b>", "<b>2</b>"))
    assert len(list(list_differences(shown, changed))) == 1


def test_a_cell_that_fails_ends_the_execution(tmp_path):
    from nbclient.exceptions import CellExecutionError

    path = tmp_path / "wrong.ipynb"
    write_notebook(make_notebook("# A", ("1 / 0", ())), path)
    with pytest.raises(CellExecutionError, match="ZeroDivisionError"):
        execute(path, tmp_path)


def test_a_page_has_code_outputs_and_translated_links(monkeypatch, tmp_path):
    outputs = [STREAM, make_result(text="x", html="<table></table>"), make_result(text="<Figure>", png=PIXEL)]
    monkeypatch.setattr("notebooks.ROOT", tmp_path)
    path = tmp_path / "examples" / "a.ipynb"
    path.parent.mkdir()
    write_notebook(make_notebook("# Title\n\n[link](old)", ("f('[link](old)')", outputs)), path)
    page = render_page(path, lambda text: text.replace("old", "new"))
    head, title, text, note, *shown = page.split("\n\n")
    assert head == "---\ndescription: What it is about.\n---"
    assert (title, text) == ("# Title", "[link](new)")
    assert "[Download it](a.ipynb)" in note
    assert shown == [
        "```python\nf('[link](old)')\n```",
        '<div class="output">\n<pre>1.5\n2.5</pre>\n</div>',
        '<div class="output">\n<table></table>\n</div>',
        f'<div class="output">\n<img alt="A picture." width="7" src="data:{IMAGE};base64,{PIXEL}">\n</div>\n',
    ]


def test_the_text_of_a_notebook_is_that_of_its_markdown_cells(tmp_path):
    write_notebook(make_notebook("# A", ("f()", [STREAM]), "Two words."), tmp_path / "a.ipynb")
    assert read_markdown(tmp_path / "a.ipynb") == "# A\n\nTwo words."
