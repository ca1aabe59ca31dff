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


def test_a_script_needs_no_guard_and_its_own_functions_travel(run_python):
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


def test_a_policy_from_a_file_travels_and_binds_to_the_same_code(tmp_path):
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
    # In another folder, where the user's files are not.
    process = subprocess.run(
        [sys.executable, "-c", code], input=recipe.payload.hex(), capture_output=True, text=True, cwd="/"
    )
    assert process.stdout.strip() == recipe.code_digest, process.stderr


def test_a_job_is_small_and_made_ready_once(monkeypatch):
    spec = build_spec(bt.exact.Gittins(prior=(1, 1)), PROBLEM, horizon=30)
    recipe = transport.pack_spec(spec)
    assert len(recipe.payload) < 2000  # the table is not in it
    made = []
    monkeypatch.setattr("banditune.simulation.simulator.Simulator", lambda spec: made.append(spec) or Simulator(spec))
    for first in (0, 5, 10):
        transport.simulate_packed_chunk(recipe, ([[0.0]], 0, range(first, first + 5)))
    assert len(made) == 1


def test_a_spec_that_is_unpacked_in_its_own_process_leaves_classes_as_they_are():
    """cloudpickle would put copies of the functions into the class, which no shortcut would then replace."""
    policy = Faulty()
    spec = build_spec(policy, PROBLEM, horizon=10)
    before = vars(Faulty)["choose"]
    packed = transport.pack_spec(spec)
    assert len(packed.payload) > 5000, "the class is sent as code"
    assert transport.load_simulator(packed).spec is spec
    assert vars(Faulty)["choose"] is before


def test_what_cannot_travel_is_a_sentence():
    lock = threading.Lock()

    def sample(size, rng):
        return lock

    stuck = bt.define_problem("stuck", sample, PROBLEM.reward, arms=2)
    with pytest.raises(bt.InvalidRequest, match=r"'stuck' must be sent to other processes, but it cannot be pickled"):
        transport.pack_spec(build_spec(bt.UCB1(noise=0.5), stuck, horizon=10))


@pytest.mark.parametrize("part", ["banditune", "numpy", "numba", "python"])
def test_a_worker_with_other_versions_is_refused_with_a_sentence(part):
    name, versions = transport.identify_worker()
    transport.check_worker_versions((name, versions))
    with pytest.raises(
        bt.InvalidRequest, match=rf"process \d+ has {part} 0.0 \(here [\d.]+\); install the same versions"
    ):
        transport.check_worker_versions((name, versions | {part: "0.0"}))


def test_a_worker_with_other_code_is_refused_with_a_sentence():
    recipe = transport.pack_spec(build_spec(bt.UCB1(noise=0.5), PROBLEM, horizon=10))
    answered = transport.simulate_packed_chunk(
        recipe._replace(digest="another", code_digest="other"), ([[1.0]], 0, range(5))
    )
    with pytest.raises(bt.InvalidRequest, match="every worker must have the same code as this process"):
        transport.unpack_reply(answered)


def test_installed_packages_stay_at_home_wherever_they_stand(run_python, tmp_path):
    place = tmp_path / "elsewhere"
    known = place / "parcel-1.0.dist-info"
    known.mkdir(parents=True)
    (place / "parcel.py").write_text("")
    (place / "mine.py").write_text("")
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: parcel\nVersion: 1.0\n")
    (known / "top_level.txt").write_text("parcel\n")
    code = """
import sys
sys.path.insert(0, sys.argv[1])
import mine, parcel
from banditune.simulation.executors.transport import _is_user_module
print(_is_user_module(mine), _is_user_module(parcel))
"""
    process = run_python(code, str(place))
    assert process.stdout.split() == ["True", "False"], process.stderr
