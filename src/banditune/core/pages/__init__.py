"""Pages that are shipped with the package and printed by `banditune explain`."""

from __future__ import annotations

from importlib.resources import files

from banditune.core.request_errors import make_name_error

TOPICS = {"assumptions": "what the numbers assume, what happens where it fails, and what to do"}
"""The pages, and what each is about."""


def explain(topic: str = "assumptions") -> str:
    """A page as Markdown text.

    Parameters
    ----------
    topic : str
        One of the keys of `TOPICS`.

    Returns
    -------
    str
        The page; the documentation holds the same text.

    Raises
    ------
    InvalidRequest
        If there is no page on the topic.
    """
    if topic not in TOPICS:
        raise make_name_error("the topic", TOPICS, topic, argument="topic")
    return files(__package__).joinpath(f"{topic}.md").read_text(encoding="utf-8")
