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


USUAL = {"horizon": 100, "jobs": 1}


def simulated(book, values=0.3, runs=50, **others):
    return bt.simulate(bt.UCB1(noise=0.5), PROBLEM, values, **group_settings(runs=runs, ledger=book, **USUAL | others))


@bt.kernel.scalar
def constant_reward(instance, arm, pull, step, stream):
    return instance.means[arm]


def told(policy=None, problem=PROBLEM, **others):
    spec = build_spec(policy or bt.UCB1(noise=0.5), problem, **group_settings(**{"horizon": 100} | others))
    return store_keys.serialize_key(store_keys.build_key(spec))


def parts_that_differ(one, other):
    one, other = json.loads(one), json.loads(other)
    return {key for key in one if one[key] != other[key]}


STORED_SERIES = StoredSeries(
    StoredSetup.from_key_text(json.dumps({"at": [1], "policy": {"name": "x"}, "problem": {"name": "y"}})),
    np.array([0.1]).tobytes(),
    0,
)
