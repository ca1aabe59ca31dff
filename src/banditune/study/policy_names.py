"""Names policies where several are simulated together: in results, and at the start of their notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import count

from banditune.core.messages import Message
from banditune.core.notice import Notice


def number_duplicates(names: Sequence[str]) -> list[str]:
    """Make names unique: ucb1, ucb1 (2)."""
    used_names = set(names)
    candidates: list[str] = []
    for name in names:
        ways = (f"{name} ({number})" for number in count(2))
        candidates.append(next(way for way in ways if way not in used_names) if name in candidates else name)
        used_names.add(candidates[-1])
    return candidates


def name_notices(name: str, policy_name: str, notices: Iterable[Notice]) -> Iterator[Notice]:
    """Let notices on a policy begin with its name among several policies."""
    begins = f"{policy_name} "
    for notice in notices:
        named = Message("{}: {}", name, notice.message)
        if notice.startswith(begins):
            named = notice.message.replace_start(begins, f"{name} ")
        yield notice.replace_message(named)
