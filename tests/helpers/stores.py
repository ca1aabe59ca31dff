"""Simulations with a store."""

from __future__ import annotations

import json

import numpy as np

import banditune as bt
from banditune.storage import store_keys
from banditune.storage.store_layout import (
    StoredSeries,
    StoredSetup,
)
from banditune.study.requests import build_spec
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)


SHORT_RUN = {"horizon": 100, "workers": 1}


def simulate_with_store(store, values=0.3, runs=50, **settings):
    """Simulate UCB1 with a store."""
    return bt.simulate(
        bt.UCB1(noise=0.5), PROBLEM, values, **group_settings(runs=runs, store=store, **SHORT_RUN | settings)
    )


@bt.kernel.scalar
def pay_mean(instance, arm, pull, step, stream):
    return instance.means[arm]


def serialize_key_of(policy=None, problem=PROBLEM, **settings):
    """The key of a request, as text."""
    spec = build_spec(policy or bt.UCB1(noise=0.5), problem, **group_settings(**{"horizon": 100} | settings))
    return store_keys.serialize_key(store_keys.build_key(spec))


def list_differences(first, second):
    """The parts of two keys that differ."""
    first, second = json.loads(first), json.loads(second)
    return {key for key in first if first[key] != second[key]}


EXAMPLE_SERIES = StoredSeries(
    StoredSetup.from_key_text(json.dumps({"checkpoints": [1], "policy": {"name": "x"}, "problem": {"name": "y"}})),
    np.array([0.1]).tobytes(),
    0,
)
