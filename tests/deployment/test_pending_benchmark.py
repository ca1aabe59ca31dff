"""The benchmark behind the default of `pending` has every policy that can be deployed."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

from banditune.registry import collect_policies
from banditune.simulation.bind import bind_function
from banditune.simulation.spec import SimulationSpec

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not in the source distribution")


def test_the_benchmark_of_late_rewards_can_deploy_every_policy(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    pending = importlib.import_module("pending")
    found = set()
    for cell in pending.CELLS.values():
        for name, make in cell.policies.items():
            policy = make()
            # Refuses options that a problem would have to resolve.
            assert SimulationSpec(policy, cell.problem(), cell.horizon).policy is policy
            # Refuses code without a mark.
            assert bind_function(policy.choose)[0] is not None
            found.add(name)
    # They define no `recall` and cannot be deployed.
    assert set(collect_policies()) - found == {"optimal-mixture", "ucb-v"}
    assert {"own index", "own random"} <= found
    sys.modules.pop("pending")
