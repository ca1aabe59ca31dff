"""Pages that are shipped with the package and printed by `banditune explain`."""

from __future__ import annotations

from importlib.resources import files

from banditune.core.request_errors import make_name_error

TOPICS = {"assumptions": "the assumptions behind the numbers, the effect if one is wrong, and what to do"}
"""The pages and their descriptions."""


def explain(topic: str = "assumptions") -> str:
    """Return a page as Markdown text.

    Parameters
    ----------
    topic : str
        One of the keys of `TOPICS`.

    Returns
    -------
    str
        The page. The documentation has the same text.

    Raises
    ------
    InvalidRequest
        If there is no page on the topic.
    """
    if topic not in TOPICS:
        raise make_name_error("the topic", TOPICS, topic, argument="topic")
    return files(__package__).joinpath(f"{topic}.md").read_text(encoding="utf-8")
