"""Parses numbers on the command line."""

from __future__ import annotations

from contextlib import suppress

import typer


def parse_integer(text: str) -> int:
    """Parse a whole number: 1000 or 1e3."""
    for read in (int, float):
        with suppress(ValueError, OverflowError):
            value = read(text)
            if int(value) == value:
                return int(value)
    raise typer.BadParameter(f"must be a whole number such as 1000 or 1e3, but got {text!r}.")


def parse_number(text: str) -> float:
    """Parse a number."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"must be a number, but got {text!r}.") from None


def parse_share(text: str | float) -> float:
    """Parse a share, 2% or 0.02. A default is a number already."""
    share = str(text)
    try:
        return float(share.removesuffix("%")) / 100 if share.endswith("%") else float(share)
    except ValueError:
        raise typer.BadParameter(f"must be a share such as 2% or 0.02, but got {text!r}.") from None
