"""Memory: what is free, and requests that need more."""

from __future__ import annotations

import time

import numpy as np
import pytest

import banditune as bt
from banditune.simulation import memory
from banditune.study import environment_check


def test_regrets_that_do_not_fit_into_memory_are_refused():
    with pytest.raises(bt.InvalidRequest, match="regrets must fit into memory"):
        bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=20, runs=2**40 - 1)


def test_unknown_memory_is_no_limit(monkeypatch):
    options = {"SC_PAGE_SIZE": 4096, "SC_AVPHYS_PAGES": 10, "SC_PHYS_PAGES": 100}

    def read_option(name):
        if name not in options:
            raise ValueError("unrecognized configuration name")
        return options[name]

    monkeypatch.setattr(memory, "_read_lines", lambda path: [])
    monkeypatch.setattr(memory.os, "sysconf", read_option)
    assert memory.measure_free_memory() == 40960
    del options["SC_AVPHYS_PAGES"]
    assert memory.measure_free_memory() == 409600
    del options["SC_PHYS_PAGES"]
    assert memory.measure_free_memory() == float("inf")
    assert environment_check.check_cores_and_memory()["finding"].endswith("free memory unknown")


def test_a_million_runs_need_little_memory(run_python):
    code = """
import banditune as bt
problem = bt.problems.two_point_mixture()
assert len(bt.simulate(bt.UCB1(noise=0.5), problem, [0.3], horizon=200, runs=1_000_000)[0]) == 1_000_000
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")))
"""
    process = run_python(code)
    assert process.returncode == 0, process.stderr
    assert int(process.stdout) < 500 * 1024


PROBLEM = bt.Bernoulli(arms=3)


@pytest.mark.parametrize(
    "call_verb",
    [
        lambda: bt.simulate(bt.UCB1(noise=0.5), PROBLEM, [0.1] * 1000, horizon=10, runs=10**9),
        lambda: bt.curve(bt.UCB1(noise=0.5), PROBLEM, horizon=10, runs=10**11),
        lambda: bt.tune(bt.UCB1(noise=0.5), PROBLEM, horizon=10, budget=10**12),
        lambda: bt.tune(
            bt.UCB1(noise=0.5), PROBLEM, horizon=10, budget=10**12, search=bt.Search(tuner=bt.tuners.Uniform())
        ),
        lambda: bt.simulate(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=100_000, dims=1000), horizon=10, runs=2),
    ],
)
def test_a_request_too_large_for_memory_is_refused_before_it_starts(call_verb):
    start = time.process_time()
    with pytest.raises(
        bt.InvalidRequest, match=r"must fit into memory, but need [\d,.]+ GiB of [\d,.]+ GiB that are free"
    ):
        call_verb()
    assert time.process_time() - start < 20


@pytest.mark.slow
def test_common_features_are_counted_once(monkeypatch):
    features = 1.0 + np.eye(50, 40)
    problem = bt.Linear(arms=50, dims=40, features=features)
    monkeypatch.setattr("banditune.simulation.instances.measure_free_memory", lambda: 2e6)
    monkeypatch.setattr(memory, "measure_free_memory", lambda: 2e6)
    assert np.isfinite(bt.simulate(bt.LinUCB(prior=(0, 1), noise=0.5), problem, horizon=60, runs=2)).all()
    with pytest.raises(bt.InvalidRequest, match="256 instances of the problem 'linear' must fit"):
        bt.simulate(bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=50, dims=40), horizon=60, runs=2)
