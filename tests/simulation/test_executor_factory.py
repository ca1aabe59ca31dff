"""Executors by name, and those that are refused."""

from __future__ import annotations

import pytest

import banditune as bt
from banditune.simulation.executors import transport
from helpers.settings import group_settings

PROBLEM = bt.Bernoulli(arms=3)


SHORT = {"horizon": 50, "runs": 700}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"executor": "moon"}, "`executor` must be 'threads', 'processes', .* but got 'moon'"),
        ({"executor": 3}, "`executor` must be 'threads', 'processes', .* but got 3"),
        ({"executor": "dask://h:1", "workers": 2}, "`workers` is a number of threads or processes of this machine"),
        ({"executor": "dask://h:1", "time_limit": 2}, "a time limit needs child processes"),
        ({"time_limit": 0}, "`time_limit > 0` must hold, in seconds, but got time_limit=0"),
        ({"time_limit": "2"}, "`time_limit > 0` must hold"),
    ],
)
def test_wrong_executors_are_refused(options, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(**SHORT, **options))


def test_a_gpu_with_an_executor_is_refused():
    from banditune.simulation.executors.executor_factory import make_executor_factory

    for options in ({"executor": "processes"}, {"time_limit": 2}):
        with pytest.raises(
            bt.InvalidRequest, match="a GPU can only be used from this process, but got device='gpu' and"
        ):
            make_executor_factory(**options, device="gpu")


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setattr(transport.importlib.util, "find_spec", lambda name: None)
    for name in ("dask", "ray"):
        with pytest.raises(bt.errors.MissingDependency, match=rf"needs `pip install 'banditune\[{name}\]'`"):
            bt.simulate(bt.UCB1(noise=0.5), PROBLEM, **group_settings(**SHORT, executor=f"{name}://host:1"))
