"""Policies with scalar code, for tests of requests."""

from __future__ import annotations

import banditune as bt


@bt.kernel.scalar
def choose_by_threshold(state, setting, step, params, stream):
    return 0 if params[0] > 0.5 else 1


@bt.kernel.scalar
def choose_by_comparison(state, setting, step, params, stream):
    return 0 if params[0] > params[1] else 1


TWO_PARAMETERS = bt.define_policy(
    "two", choose_by_comparison, parameters=[bt.Parameter("a", 0, 1, textbook=1), bt.Parameter("b", 0, 1, textbook=0)]
)


REVERSED_RANGE = bt.define_policy("upside-down", choose_by_comparison, parameters=[bt.Parameter("a", 1, 0, textbook=1)])


TEXTBOOK_OFF_RANGE = bt.define_policy("off", choose_by_comparison, parameters=[bt.Parameter("a", 0, 1, textbook=2)])
