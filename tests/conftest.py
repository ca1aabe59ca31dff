"""Fixtures of all tests."""

from __future__ import annotations

import os
import subprocess
import sys
from types import ModuleType

import pytest
from hypothesis import settings

# Several processes test at once. Threads of matrix products that wait for a core would take most of the time. The libraries
# read this when NumPy is imported, here and in child processes.
for name in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"):
    os.environ.setdefault(name, "1")

settings.register_profile("fixed", derandomize=True)
settings.load_profile("fixed")


@pytest.fixture
def run_python(tmp_path):
    """Run Python code in a new process: `run_python(code, *arguments, **environment)`."""

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
def run_banditune(tmp_path):
    """Run the command line in a new process: `run_banditune(*arguments, **environment)`."""

    def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "banditune", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, env=os.environ | environment, timeout=300, cwd=tmp_path
        )

    return run


@pytest.fixture
def problem_of_missing_package(monkeypatch):
    """A problem from a package that other processes cannot import."""
    import banditune as bt

    module = ModuleType("elsewhere")
    exec("def sample(size, rng):\n    return rng.random((size, 2))", module.__dict__)
    monkeypatch.setitem(sys.modules, "elsewhere", module)
    return bt.define_problem("elsewhere", module.sample, bt.Bernoulli(arms=2).reward, arms=2)


@pytest.fixture
def store(tmp_path):
    """The path of a store that does not exist yet."""
    return tmp_path / "study.db"


@pytest.fixture
def write_file(tmp_path):
    """Write a file: `write_file(content, name)` returns its path."""

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
