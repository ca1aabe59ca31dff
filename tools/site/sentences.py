"""Lengths of sentences of pages.

python tools/site/sentences.py [--long 25] [PAGE ...]
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import notebooks

ROOT = Path(__file__).parents[2]
MEAN_LIMIT = 16.0
LONG_LIMIT = 25.0
"""Nine of ten sentences have at most so many words."""

ENDS = re.compile(r"(?<=[.!?])[\"')*_]*\s+(?=[\"'(*_`\[]*[A-Z0-9`])")
ABBREVIATIONS = re.compile(r"\b(e\.g|i\.e|vs|Eq|approx|etc)\.")


def list_short_pages() -> list[Path]:
    """List the pages whose sentences must be short."""
    folders = ("docs/get-started", "docs/how-to")
    pages = [page for folder in folders for page in sorted((ROOT / folder).glob("*.md"))]
    return [ROOT / "README.md", *pages, *notebooks.list_notebooks()]


def read_page(page: Path) -> str:
    """Read the Markdown of a page or a notebook."""
    return notebooks.read_markdown(page) if page.suffix == ".ipynb" else page.read_text(encoding="utf-8")


def read_paragraphs(text: str) -> Iterator[str]:
    """Yield paragraphs, list items and cells of tables that hold sentences; not headings, code and comments."""
    text = re.sub(r"\A---\n.*?\n---\n", "", text, flags=re.DOTALL)
    text = re.sub(r"^ *```.*?^ *```$", "\n", text, flags=re.DOTALL | re.MULTILINE)
    text = re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"^#+ .*$|^ *\|[-| :]+\|$|^!!! .*$", "\n", text, flags=re.MULTILINE)
    text = re.sub(r"^ *(?:[-*+]|\d+\.) +", "\n\n", text, flags=re.MULTILINE)
    for paragraph in re.split(r"\n\s*\n", text):
        cells = [cell for line in paragraph.splitlines() if line.startswith("|") for cell in line.strip("|").split("|")]
        yield from (clean(cell) for cell in cells if re.search(r"[.?!](\s|$)", cell.strip()))
        rest = " ".join(line for line in paragraph.splitlines() if not line.startswith("|"))
        if clean(rest):
            yield clean(rest)


def clean(text: str) -> str:
    """Replace pictures by nothing, links by their text and code by one word."""
    text = re.sub(r"!\[[^\]]*\]\([^)]*\)", "", text)
    text = re.sub(r"`+[^`]+`+", "`code`", text)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|\[([^\]]*)\]\[[^\]]*\]", lambda match: match[1] or match[2], text)
    return " ".join(ABBREVIATIONS.sub(lambda match: match[1], text).replace("**", "").split())


def list_sentences(text: str) -> list[str]:
    """List the sentences of a page."""
    sentences = (sentence for paragraph in read_paragraphs(text) for sentence in ENDS.split(paragraph))
    return [sentence for sentence in sentences if re.search(r"[a-z]", sentence)]


def count_words(sentence: str) -> int:
    """Count words; numbers and code count, signs do not."""
    return sum(bool(re.search(r"\w", word)) for word in sentence.split())


def measure(sentences: list[str]) -> tuple[float, int]:
    """Return the mean of the words and the number that nine of ten sentences do not exceed."""
    lengths = sorted(map(count_words, sentences))
    if not lengths:
        return 0.0, 0
    return sum(lengths) / len(lengths), lengths[-(-9 * len(lengths) // 10) - 1]


def main() -> None:
    """Print the lengths of each page, and the sentences that are too long."""
    parser = argparse.ArgumentParser(description="Lengths of sentences.")
    parser.add_argument("--long", type=int, help="print sentences of more words")
    parser.add_argument("pages", nargs="*", type=Path)
    arguments = parser.parse_args()
    everything: list[str] = []
    for page in [page.resolve() for page in arguments.pages] or list_short_pages():
        sentences = list_sentences(read_page(page))
        everything += sentences
        mean, long = measure(sentences)
        faults = "  TOO LONG" if mean > MEAN_LIMIT or long > LONG_LIMIT else ""
        print(f"{page.relative_to(ROOT)}: {len(sentences)} sentences, mean {mean:.1f}, nine of ten <= {long}{faults}")
        for sentence in sentences if arguments.long else []:
            if count_words(sentence) > arguments.long:
                print(f"    {count_words(sentence)}: {sentence}")
    mean, long = measure(everything)
    print(f"all: {len(everything)} sentences, mean {mean:.1f}, nine of ten <= {long}")


if __name__ == "__main__":
    main()
