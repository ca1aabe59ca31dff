"""Logs as text, and three ways of reading them."""

from __future__ import annotations

from banditune.logs.campaign_logs import Logs
from banditune.logs.io import row_checks, text_block_readers

DECISIONS = """campaign,arm,reward
spring,red,1
spring,blue,0
spring,red,0
autumn,blue,1
autumn,red,1
"""


TOTALS = """trial,treatment,n,successes
A,gum,92,37
A,control,90,24
B,gum,107,21
B,control,105,21
"""


def refuse_block(data):
    raise row_checks.SuspectBlock


READERS = {
    "arrow": text_block_readers.make_arrow_reader,
    "plain": text_block_readers.make_plain_reader,
    "row by row": lambda *_: refuse_block,
}
"""Three ways of reading text."""


def sum_by_name(logs: Logs):
    """Pulls and totals by the names of campaign and arm."""
    return {
        (logs.campaigns[c], logs.arms[a]): (int(n), float(t))
        for c, a, n, t in zip(logs.campaign, logs.arm, logs.pulls, logs.total, strict=True)
    }
