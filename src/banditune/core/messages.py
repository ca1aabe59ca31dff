"""Messages: text with references to arguments, which are written differently in Python and on the command line.

A message is a string with the names of Python: `max_time`, model='campaigns'. It keeps its parts, so that the command line
can write the same sentence with its own options: --max-time, --model campaigns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from string import Formatter
from typing import Any, Self


class Vocabulary:
    """Writes references as in Python. Another vocabulary overrides these methods."""

    def write_argument(self, name: str) -> str:
        """Write the name of an argument."""
        return f"`{name}`"

    def write_condition(self, before: str, name: str, after: str) -> str:
        """Write a condition on an argument."""
        return f"`{before}{name}{after}`"

    def write_setting(self, name: str, value: Any, text: str) -> str:
        """Write an argument with its value, which is `text` in Python."""
        return f"{name}={text}"

    def select(self, python: str, command_line: str) -> str:
        """Select one of two wordings."""
        return python


PYTHON = Vocabulary()


class Reference:
    """Base of the parts of a message that depend on the vocabulary."""

    def write(self, vocabulary: Vocabulary) -> str:
        """Write it in a vocabulary."""
        raise NotImplementedError

    def __format__(self, spec: str) -> str:
        raise TypeError(f"{self!r} must be a value of a slot of a message, not part of an f-string.")


@dataclass(frozen=True)
class Argument(Reference):
    """A reference to an argument of a function, such as `max_time`."""

    name: str

    def write(self, vocabulary: Vocabulary) -> str:
        return vocabulary.write_argument(self.name)


@dataclass(frozen=True)
class Condition(Reference):
    """A condition on an argument, such as `0 < share < 1`: the text before the argument, its name, the text after it."""

    before: str
    name: str
    after: str

    def write(self, vocabulary: Vocabulary) -> str:
        return vocabulary.write_condition(self.before, self.name, self.after)


@dataclass(frozen=True)
class Setting(Reference):
    """An argument with a value, such as model='campaigns'. `text` is the value in Python, by default its repr."""

    name: str
    value: Any
    text: str | None = None

    def write(self, vocabulary: Vocabulary) -> str:
        return vocabulary.write_setting(self.name, self.value, repr(self.value) if self.text is None else self.text)


@dataclass(frozen=True)
class Wording(Reference):
    """An action as Python code, such as result.deploy(mine), and as text for the command line."""

    python: str
    command_line: str

    def write(self, vocabulary: Vocabulary) -> str:
        return vocabulary.select(self.python, self.command_line)


class Message(str):
    """A text with the names of Python that keeps its references to arguments.

    Parameters
    ----------
    text : object
        The text. If values follow, it has a slot for each, such as {} or {!r:.60}, as for `str.format`.
    *values : object
        The values of the slots: references, messages and errors of this package, and other objects as text.

    Attributes
    ----------
    parts : tuple
        Texts and references.

    Examples
    --------
    >>> Message("{} bounds a search, but got {}.", Argument("max_runs"), Setting("budget", 100))
    '`max_runs` bounds a search, but got budget=100.'
    """

    parts: tuple[str | Reference, ...]

    def __new__(cls, text: object, *values: object) -> Message:
        return cls.from_parts(_fill_slots(str(text), values) if values else [text])

    @classmethod
    def from_parts(cls, parts: Iterable[object]) -> Self:
        """Make a message of texts, references and messages, in order."""
        found = tuple(_merge_texts(parts))
        message = super().__new__(cls, "".join(_write(part, PYTHON) for part in found))
        message.parts = found
        return message

    def __reduce__(self) -> tuple[Any, ...]:
        return Message.from_parts, (self.parts,)

    def render(self, vocabulary: Vocabulary) -> str:
        """Write the message in a vocabulary."""
        return "".join(_write(part, vocabulary) for part in self.parts)

    def replace_start(self, old: str, new: str) -> Message:
        """Return the message with another start, if it starts with this text."""
        first = self.parts[0] if self.parts else ""
        if not isinstance(first, str) or not first.startswith(old):
            return self
        return Message.from_parts([new, first.removeprefix(old), *self.parts[1:]])


def join_messages(separator: str, messages: Iterable[str]) -> Message:
    """Join messages and texts to one message."""
    parts: list[str] = []
    for message in messages:
        parts += [separator, message] if parts else [message]
    return Message.from_parts(parts)


def render_message(message: object, vocabulary: Vocabulary) -> str:
    """Write a message, an error of this package or any other object in a vocabulary."""
    return Message(message).render(vocabulary)


def _fill_slots(template: str, values: Iterable[object]) -> Iterator[object]:
    """Yield the texts of a template and the values of its slots."""
    rest = iter(values)
    for text, slot, spec, conversion in Formatter().parse(template):
        yield text
        if slot is not None:
            value = next(rest)
            yield format(_CONVERSIONS[conversion](value), spec or "") if spec or conversion else value
    if list(rest):
        raise TypeError(f"a message must have a slot for each value, but has fewer: {template!r}.")


_CONVERSIONS: dict[str | None, Any] = {None: lambda value: value, "r": repr, "s": str}


def _merge_texts(parts: Iterable[object]) -> Iterator[str | Reference]:
    """Yield texts and references. Neighbouring texts are joined."""
    text = ""
    for part in parts:
        for piece in _split(part):
            if not isinstance(piece, Reference):
                text += str(piece)
                continue
            if text:
                yield text
            yield piece
            text = ""
    if text:
        yield text


def _split(part: object) -> tuple[object, ...]:
    """Return the parts of a message or of an error's message."""
    message = part if isinstance(part, Message) else getattr(part, "message", None)
    return message.parts if isinstance(message, Message) else (part,)


def _write(part: str | Reference, vocabulary: Vocabulary) -> str:
    return part if isinstance(part, str) else part.write(vocabulary)
