"""Shared by all tests."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest


def close(sample: np.ndarray, expected: float, se_expected: float = 0.0) -> bool:
    """Whether a sample's mean is within 4 (joint) standard errors of what it should be."""
    se = np.std(sample, ddof=1) / np.sqrt(len(sample))
    return bool(abs(np.mean(sample) - expected) <= 4 * np.hypot(se, se_expected))


@pytest.fixture
def run_python(tmp_path):
    """Run Python code in a new process: `run_python(code, cache=folder, **environment)`."""

    def run(code: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        script = tmp_path / "script.py"
        script.write_text(code)
        known = {key: value for key, value in os.environ.items() if not key.startswith(("NUMBA", "BANDITUNE"))}
        return subprocess.run(
            [sys.executable, str(script), *arguments],
            capture_output=True,
            text=True,
            env=known | environment,
            timeout=300,
        )

    return run


@pytest.fixture
def banditune(tmp_path):
    """Run the command line in a new process."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "banditune", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, env=os.environ | environment, timeout=300, cwd=tmp_path
        )

    return run


@pytest.fixture
def elsewhere(monkeypatch):
    """A problem from a package that no other process has."""
    import banditune as bt

    module = ModuleType("elsewhere")
    exec("def sample(size, rng):\n    return rng.random((size, 2))", module.__dict__)
    monkeypatch.setitem(sys.modules, "elsewhere", module)
    return bt.define_problem("elsewhere", module.sample, bt.Bernoulli(arms=2).reward, arms=2)


@pytest.fixture
def book(tmp_path):
    """The path of a store that is not there yet."""
    return tmp_path / "study.ledger"


@pytest.fixture
def written(tmp_path):
    """Write a file: `written(content, name)` gives its path."""

    def write(content, name="logs.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture(scope="session")
def tuning():
    """A short search with its curve."""
    import banditune as bt

    problem, search = bt.Bernoulli(arms=3), bt.Search(validate=200)
    return bt.tune(bt.UCB1(noise=0.5), problem, horizon=300, budget=100, include=("curve",), search=search)


@pytest.fixture(scope="session")
def comparison():
    """A comparison of four policies, one of which has no parameter."""
    import banditune as bt

    policies = [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1)), bt.Greedy(), bt.UCB1(noise=1)]
    return bt.compare(policies, bt.Bernoulli(arms=3), horizon=300, budget=60, search=bt.Search(validate=300))


ROOT = Path(__file__).parent.parent
