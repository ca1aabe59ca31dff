"""Numbers as people type them."""

from __future__ import annotations

from contextlib import suppress

import typer


def parse_integer(text: str) -> int:
    """A whole number: 1000, or 1e3 as Python's verbs take it, too."""
    for read in (int, float):
        with suppress(ValueError, OverflowError):
            found = read(text)
            if int(found) == found:
                return int(found)
    raise typer.BadParameter(f"must be a whole number such as 1000 or 1e3, but got {text!r}.")


def parse_number(text: str) -> float:
    """A number."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number, but got {text!r}.") from None


def parse_share(text: str | float) -> float:
    """2% or 0.02, as a number; so is a default, which is one already."""
    typed = str(text)
    try:
        return float(typed.removesuffix("%")) / 100 if typed.endswith("%") else float(typed)
    except ValueError:
        raise typer.BadParameter(f"must be a share such as 2% or 0.02, but got {text!r}.") from None
