"""Sentences of README, get-started and how-to pages and of notebooks are short."""

from __future__ import annotations

import pytest
from sentences import LONG_LIMIT, MEAN_LIMIT, count_words, list_sentences, list_short_pages, measure, read_page

PAGES = list_short_pages()


def test_pages_are_found():
    assert len(PAGES) >= 12
    assert sum(page.suffix == ".ipynb" for page in PAGES) >= 3


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_sentences_of_a_page_are_short(page):
    mean, long = measure(list_sentences(read_page(page)))
    assert mean <= MEAN_LIMIT
    assert long <= LONG_LIMIT


def test_sentences_are_those_of_paragraphs_lists_and_tables():
    text = """---
description: Not counted.
---

# Not counted either

One, two and `three or more`. Four
in two lines: [a link](to/a/page.md).

- An item.
- Another item (with brackets). A third?

| cell | words |
|---|---|
| 3.5 | A sentence in a cell. |

```python
not.counted("A sentence.")
```
"""
    lengths = [count_words(sentence) for sentence in list_sentences(text)]
    assert lengths == [4, 6, 2, 4, 2, 5]


def test_the_measure_is_the_mean_and_the_ninth_of_ten():
    sentences = ["word " * number for number in range(1, 11)]
    assert measure(sentences) == (5.5, 9)
