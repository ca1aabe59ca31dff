"""Numbers on the command line."""

from __future__ import annotations

from banditune.cli.number_parsers import parse_integer, parse_share


def test_numbers_may_have_exponents_and_percent_signs():
    assert [parse_integer(text) for text in ("1000", "1e3", "1000.0", "-1")] == [1000, 1000, 1000, -1]
    assert parse_integer("9007199254740993") == 9007199254740993  # which no float holds
    assert [parse_share(text) for text in ("5%", "0.05", "5 %", 0.05)] == [0.05] * 4
