"""Specs and code that travel to other processes."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

import banditune as bt
from banditune.simulation.executors import transport
from banditune.simulation.simulator import Simulator
from banditune.study.requests import build_spec
from helpers.faulty_policy import Faulty

PROBLEM = bt.Bernoulli(arms=3)


def test_functions_of_a_script_are_sent_to_other_processes(run_python):
    code = """
import banditune as bt

@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    return bt.kernel.draw_arm(state, stream) if bt.kernel.uniform(stream) < params[0] else bt.kernel.argmax_mean(state)

print("once")
mine = bt.define_policy("mine", choose, parameters=[bt.Parameter("epsilon", 0, 1, textbook=0.1)])
first, second = (bt.simulate(mine, bt.Bernoulli(arms=3), horizon=50, runs=300, run=bt.Run(executor=name, workers=2))
                 for name in ("threads", "processes"))
print((first == second).all())
"""
    process = run_python(code)
    assert process.returncode == 0, process.stderr
    assert process.stdout.split() == ["once", "True"]


def test_a_policy_from_a_file_has_the_same_code_in_other_processes(tmp_path):
    from banditune.registry import load_from_file

    (tmp_path / "helper.py").write_text(
        "import banditune as bt\n\n\n@bt.kernel.scalar\ndef lowest(state):\n    return 0\n"
    )
    (tmp_path / "own_file.py").write_text(
        "import banditune as bt\nfrom helper import lowest\n\n\n@bt.kernel.scalar\n"
        "def choose(state, setting, step, params, stream):\n    return lowest(state)\n\n\n"
        "policy = bt.define_policy('filed', choose)\n"
    )
    spec = build_spec(
        load_from_file("policy", f"{tmp_path}/own_file.py:policy", bt.kernel.Policy, {}), PROBLEM, horizon=10
    )
    recipe = transport.pack_spec(spec)
    code = (
        "import pickle, sys\nfrom banditune.simulation.executors.transport import digest_spec_code\n"
        "print(digest_spec_code(pickle.loads(bytes.fromhex(sys.stdin.read()))))"
    )
    # In another folder, without the user's files.
    process = subprocess.run(
        [sys.executable, "-c", code], input=recipe.payload.hex(), capture_output=True, text=True, cwd="/"
    )
    assert process.stdout.strip() == recipe.code_digest, process.stderr


def test_a_spec_is_small_and_prepared_once(monkeypatch):
    spec = build_spec(bt.exact.Gittins(prior=(1, 1)), PROBLEM, horizon=30)
    recipe = transport.pack_spec(spec)
    assert len(recipe.payload) < 2000  # the table is not in it
    prepared = []
    monkeypatch.setattr(
        "banditune.simulation.simulator.Simulator", lambda spec: prepared.append(spec) or Simulator(spec)
    )
    for first in (0, 5, 10):
        transport.simulate_packed_chunk(recipe, ([[0.0]], 0, range(first, first + 5)))
    assert len(prepared) == 1


def test_a_spec_that_is_unpacked_in_its_own_process_leaves_classes_as_they_are():
    """cloudpickle would put copies of the functions into the class, which no shortcut would then replace."""
    policy = Faulty()
    spec = build_spec(policy, PROBLEM, horizon=10)
    before = vars(Faulty)["choose"]
    packed = transport.pack_spec(spec)
    assert len(packed.payload) > 5000, "the class is sent as code"
    assert transport.load_simulator(packed).spec is spec
    assert vars(Faulty)["choose"] is before


def test_policies_that_cannot_be_pickled_are_refused():
    lock = threading.Lock()

    def sample(size, rng):
        return lock

    problem = bt.define_problem("stuck", sample, PROBLEM.reward, arms=2)
    with pytest.raises(bt.InvalidRequest, match=r"'stuck' must be sent to other processes, but it cannot be pickled"):
        transport.pack_spec(build_spec(bt.UCB1(noise=0.5), problem, horizon=10))


@pytest.mark.parametrize("part", ["banditune", "numpy", "numba", "python"])
def test_a_worker_with_other_versions_is_refused(part):
    name, versions = transport.identify_worker()
    transport.check_worker_versions((name, versions))
    with pytest.raises(
        bt.InvalidRequest, match=rf"process \d+ has {part} 0.0 \(here [\d.]+\); install the same versions"
    ):
        transport.check_worker_versions((name, versions | {part: "0.0"}))


def test_a_worker_with_other_code_is_refused():
    recipe = transport.pack_spec(build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=10))
    reply = transport.simulate_packed_chunk(
        recipe._replace(digest="another", code_digest="other"), ([[1.0]], 0, range(5))
    )
    with pytest.raises(bt.InvalidRequest, match="every worker must have the same code as this process"):
        transport.unpack_reply(reply)


def test_installed_packages_are_not_sent(run_python, tmp_path):
    folder = tmp_path / "elsewhere"
    metadata = folder / "parcel-1.0.dist-info"
    metadata.mkdir(parents=True)
    (folder / "parcel.py").write_text("")
    (folder / "mine.py").write_text("")
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: parcel\nVersion: 1.0\n")
    (metadata / "top_level.txt").write_text("parcel\n")
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import mine, parcel
from banditune.simulation.executors.transport import _is_user_module
print(_is_user_module(mine), _is_user_module(parcel))
"""
    process = run_python(code, str(folder))
    assert process.stdout.split() == ["True", "False"], process.stderr
