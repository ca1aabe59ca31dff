"""What is done when a package is built: README.md becomes its description, and the examples are put into the wheel."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"\]\((?![a-z]+:|#)([^)]+)\)")
"""A Markdown link to a file of the repository."""


def make_links_absolute(text: str, source: str) -> str:
    """Let links to files of the repository lead to its pages on the web, and pictures to the files themselves."""
    text = re.sub(r"!" + RELATIVE_LINK.pattern.replace(r"\]", r"\[([^\]]*)\]"), rf"![\1]({source}/raw/main/\2)", text)
    return RELATIVE_LINK.sub(rf"]({source}/blob/main/\1)", text)


class ReadmeHook(MetadataHookInterface):
    """Sets the description, with links that work where there is no repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata["urls"]["Source"].rstrip("/")
        metadata["readme"] = {"content-type": "text/markdown", "text": make_links_absolute(text, source)}


class ExamplesHook(BuildHookInterface):
    """Puts the examples into the wheel. An editable installation finds them in the repository."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        if version != "editable":
            build_data["force_include"][str(Path(self.root) / "examples")] = "banditune/examples"
