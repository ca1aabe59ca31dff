"""Hooks of mkdocs: pages and tables that are made from the source, pages of notebooks, and llms.txt.

A line `<!-- insert: NAME ARGUMENT -->` in a page is replaced by what the function of that name in `page_parts.py` returns.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(Path(__file__).parent))

import page_parts  # noqa: E402
from mkdocs.exceptions import PluginError  # noqa: E402
from mkdocs.structure.files import File  # noqa: E402

INSERT = re.compile(r"^<!-- insert: (\w+)((?: [\w./-]+)?) -->$", re.MULTILINE)
NOTEBOOK_LINK = re.compile(r"\[[^\]]*\]\([./]*/examples/notebooks/\w+\.ipynb\)")
pages: list[Any] = []
"""The pages of this build, in the order of the navigation."""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are files at the root, and those that are notebooks, each with the notebook itself."""
    for page, source in page_parts.FROM_ROOT.items():
        files.append(File.generated(config, page, content=page_parts.read_root_page(ROOT / source, page)))
    for page, source in page_parts.NOTEBOOK_PAGES.items():
        files.append(File.generated(config, page, content=page_parts.read_notebook_page(source, page)))
        files.append(File.generated(config, f"notebooks/{source.name}", abs_src_path=str(source)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Insert what is made from the source."""
    if not page.meta.get("description"):
        raise PluginError(f"{page.file.src_uri} must begin with a `description:` between two lines of three dashes.")

    def make_part(match: re.Match[str]) -> str:
        name, argument = match[1], match[2].strip()
        return str(page_parts.PARTS[name](*([argument] if argument else [])))

    source = ROOT / "docs" / page.file.src_uri
    markdown = NOTEBOOK_LINK.sub(
        lambda match: page_parts.translate_links(match[0], source.parent, page.file.src_uri), markdown
    )
    return INSERT.sub(make_part, markdown)


def on_nav(nav: Any, config: Any, files: Any) -> None:
    """Remember the pages in their order."""
    pages[:] = nav.pages


def on_post_build(config: Any) -> None:
    """Write llms.txt: a line for each page, with its description."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    section = None
    for page in pages:
        heading = page.ancestors[-1].title if page.ancestors else "Start"
        if heading != section:
            lines += [*([""] if section else []), f"## {heading}", ""]
            section = heading
        lines.append(f"- [{page.title}]({page.url}): {page.meta['description']}")
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
