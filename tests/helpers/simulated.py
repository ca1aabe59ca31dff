"""The GPU's engine in CUDA's simulator, against the CPU's kernels: run by `test_gpu.py` in a process of its own, because
the simulator must be asked for (NUMBA_ENABLE_CUDASIM=1) before Numba is imported. To be fast, the CPU's kernels are plain
Python as well (NUMBA_DISABLE_JIT=1); in the slow tests they are compiled.

The simulator runs kernels as plain Python, so what is compiled for a GPU is not tried here; addresses, pieces, memory and
complaints are.
"""

from __future__ import annotations

import math
import sys
import threading
from dataclasses import replace

import numpy as np
import pytest
from numba.cuda.simulator.kernel import BlockThread

import banditune as bt
from banditune.core.arrays import copy_read_only
from banditune.simulation import devices, dispatch, instances, kernel_selection
from banditune.simulation.gpu import cuda_targets, gpu_memory, gpu_scheduler, launch_plan
from banditune.simulation.gpu.warp_primitives import SINGLE_THREAD_SLOTS
from banditune.simulation.spec import SimulationSpec
from helpers.owned import OWN, OWN_PROBLEM
from helpers.scratch import SOFTMAX
from helpers.settings import group_settings
from helpers.teams import Threads, together

VALUES = [[0.3], [1.0]]


@pytest.fixture(autouse=True)
def memory(monkeypatch):
    """As much as a GPU has: the simulator says so little that no rewards would be drawn ahead."""
    monkeypatch.setattr(gpu_memory, "measure_free_gpu_memory", lambda: 64 << 30)


@pytest.fixture
def in_turn(monkeypatch):
    """Threads of a block one after the other: they do not wait for each other, and so they are much faster."""

    def start_and_end(thread):
        threading.Thread.start(thread)
        thread.join()

    monkeypatch.setattr(BlockThread, "start", start_and_end)


@bt.kernel.scalar
def reward_by_step(instance, arm, pull, step, stream):
    return bt.kernel.uniform(stream) if (step < 5) == (arm == 0) else instance.means[arm]


BY_STEP = bt.define_problem("by step", lambda size, rng: rng.random((size, 3)), reward_by_step, arms=3, rewards="unit")
CASES = [
    (bt.UCB1(noise=0.5), bt.Bernoulli(arms=3)),
    (bt.UCB1(noise=0.5), bt.BetaRewards(arms=3, v=3)),
    (bt.UCB1(noise=0.5), bt.Gaussian(arms=3)),
    (bt.Thompson(prior=(1, 1)), bt.Bernoulli(arms=3)),
    (bt.EpsilonGreedy(), bt.Bernoulli(arms=3)),
    (bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=3)),
    (OWN, bt.Gaussian(arms=3)),
    (OWN, OWN_PROBLEM),
    (OWN, BY_STEP),
    (SOFTMAX, bt.Bernoulli(arms=3)),
]


def names(case):
    return getattr(case, "name", None)


def both(spec, values=VALUES, runs=range(4), **options):
    """Regrets on the GPU and on the CPU."""
    values = copy_read_only(values)
    return gpu_scheduler.simulate_rows_on_gpu(spec, values, runs, **options), dispatch.simulate_rows(
        spec, values, runs, **options
    )


def same(spec, values=VALUES, runs=range(4), **options):
    """Whether both are the same, to the last bit."""
    found, wanted = both(spec, values, runs, **options)
    assert found.shape == wanted.shape == (len(values), len(runs), len(spec.checkpoints or (0,)))
    assert wanted.any()
    return bool((found == wanted).all())


def test_the_simulator_plays_the_gpu():
    assert devices.is_cuda_simulated()
    assert devices.explain_missing_gpu() is None
    assert devices.resolve_device("gpu") == "gpu"
    assert devices.resolve_device("auto") == "cpu"


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize(("policy", "problem"), CASES, ids=names)
def test_regrets_are_the_cpus_to_the_last_bit(policy, problem):
    spec = SimulationSpec(policy, problem, 25, seed=3, regret="realised", checkpoints=(1, 9, 25))
    assert same(spec)
    # Means that move with the step have no expected regret.
    regret = "realised" if problem.name == "by step" else "expected"
    assert same(SimulationSpec(policy, problem, 20, seed=4, regret=regret, common_random_numbers=False), runs=range(2))


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize("policy", [bt.UCB1(noise=0.5), bt.Thompson(prior=(1, 1))], ids=names)
def test_the_plain_loop_is_the_cpus_too(policy):
    assert same(SimulationSpec(policy, bt.Bernoulli(arms=3), 25, seed=5, regret="realised", use_shortcut=False))


class Wider(bt.Thompson):
    """As a user would write it: rows beyond 1 are the plain loop's."""

    parameters = (bt.Parameter("gamma", 0, 3, textbook=1),)


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize("noise", ["shared", "own"])
def test_rows_beyond_the_shortcuts_limits_are_the_cpus(noise):
    spec = SimulationSpec(
        Wider(prior=(1, 1)), bt.Bernoulli(arms=3), 25, seed=5, common_random_numbers=noise == "shared"
    )
    rows = [[0.5], [2.0], [1.0]]
    assert kernel_selection.select_shortcut_rows(spec, copy_read_only(rows)) == [True, False, True]
    assert same(spec, rows, range(2))


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize("features", ["alike", "of each instance"])
@pytest.mark.parametrize("noise", ["shared", "own"])
def test_features(features, noise):
    table = np.random.default_rng(0).normal(size=(4, 2))
    problem = bt.Linear(features=table) if features == "alike" else bt.Linear(arms=4, dims=2)
    assert len(instances.draw_instances(problem, 6, 0).features) == (1 if features == "alike" else instances.BLOCK_SIZE)
    spec = SimulationSpec(
        bt.policies.LinGreedy(prior=(0, 1), noise=0.5),
        problem,
        15,
        seed=6,
        regret="realised",
        common_random_numbers=noise == "shared",
        checkpoints=(2, 15),
    )
    assert same(spec, [[0.0]], range(254, 259))


def pieces_of(monkeypatch):
    """What happens to pieces from now on: ("launch" or "collect", runs, track)."""
    found = []

    def told(what):
        usual = getattr(gpu_scheduler.GpuSimulator, what)

        def tell(work, part, track):
            found.append((what, part, track))
            return usual(work, part, track)

        return tell

    for what in ("launch", "collect"):
        monkeypatch.setattr(gpu_scheduler.GpuSimulator, what, told(what))
    return found


def parts(found, what):
    """The runs of the pieces that were launched or collected, in order."""
    return [part for kind, part, _ in found if kind == what]


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        CASES[0],
        CASES[2],
        pytest.param(bt.policies.LinGreedy(prior=(0, 1), noise=0.5), bt.Linear(arms=3, dims=2), marks=pytest.mark.slow),
    ],
    ids=names,
)
def test_pieces_do_not_change_a_bit(monkeypatch, policy, problem):
    """Pieces of a few runs, that begin within a block of instances and end in the next, the last of them shorter."""
    monkeypatch.setattr(gpu_memory, "THREADS_PER_CHUNK", 6)
    monkeypatch.setattr(gpu_memory, "CHUNKS_IN_FLIGHT", 2)
    found = pieces_of(monkeypatch)
    runs = range(instances.BLOCK_SIZE - 7, instances.BLOCK_SIZE + 7)
    spec = SimulationSpec(policy, problem, 10, seed=7, regret="realised", checkpoints=(4, 10))
    done = []
    values = copy_read_only(VALUES)
    regrets = gpu_scheduler.simulate_rows_on_gpu(spec, values, runs, progress=done.append)
    assert (regrets == dispatch.simulate_rows(spec, values, runs)).all()
    pieces = [runs[first : first + 3] for first in range(0, 14, 3)]
    assert parts(found, "launch") == parts(found, "collect") == pieces
    assert done == [6] * 4 + [4]
    own = SimulationSpec(policy, problem, 10, seed=7, common_random_numbers=False)
    assert same(own, VALUES, runs, first_row=3)


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize("noise", ["shared", "own"])
def test_each_value_has_instances_of_its_own(noise):
    done = []
    spec = SimulationSpec(
        bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 30, common_random_numbers=noise == "shared", device="gpu"
    )
    regrets = dispatch.simulate_rows_separately(spec, VALUES, [3, 2], 7, progress=done.append)
    wanted = dispatch.simulate_rows_separately(replace(spec, device="cpu"), VALUES, [3, 2], 7)
    assert done == [5]
    assert [part.tolist() for part in regrets] == [part.tolist() for part in wanted]


@pytest.mark.usefixtures("in_turn")
def test_large_pieces_take_instances_from_several_blocks_and_draw_each_block_once(monkeypatch):
    monkeypatch.setattr(gpu_memory, "THREADS_PER_CHUNK", 330)
    found, blocks = pieces_of(monkeypatch), []
    usual = instances.draw_instances
    monkeypatch.setattr(
        instances, "draw_instances", lambda problem, seed, block: blocks.append(block) or usual(problem, seed, block)
    )
    runs = range(200, 700)
    spec = SimulationSpec(bt.Greedy(), bt.Bernoulli(arms=2), 2, seed=8, common_random_numbers=False)
    regrets = gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only([[0.0]]), runs)
    assert blocks == [0, 1, 2]
    assert parts(found, "launch") == [range(200, 530), range(530, 700)]
    assert (regrets == dispatch.simulate_rows(spec, [[0.0]], runs)).all()
    assert regrets.any()


@pytest.mark.usefixtures("in_turn")
def test_so_many_pieces_are_under_way_and_memory_is_used_again(monkeypatch):
    monkeypatch.setattr(gpu_memory, "THREADS_PER_CHUNK", 2)
    monkeypatch.setattr(gpu_memory, "CHUNKS_IN_FLIGHT", 3)
    found, tracks = pieces_of(monkeypatch), []
    usual = gpu_memory.GpuMemoryPlan.allocate_buffers

    def track(supply, runs):
        tracks.append(usual(supply, runs))
        return tracks[-1]

    monkeypatch.setattr(gpu_memory.GpuMemoryPlan, "allocate_buffers", track)
    assert same(SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 5, seed=12), VALUES, range(8))
    under_way, most = [], 0
    for what, _, taken in found:
        assert any(taken is one for one in tracks)
        if what == "launch":
            assert all(taken is not other for other in under_way)
            under_way.append(taken)
        else:
            assert taken is under_way.pop(0)
        most = max(most, len(under_way))
    assert most == len(tracks) == 3
    assert parts(found, "collect") == [range(first, first + 1) for first in range(8)]
    assert all(track.regrets.shape == (1, 2, 1) for track in tracks)
    tracks.clear()
    assert same(SimulationSpec(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 5, seed=12), VALUES, range(2))
    assert len(tracks) == 2


def drawn_ahead(monkeypatch):
    """Whether rewards were drawn ahead, an entry for each piece: there is room for them, and it is filled."""
    found = []
    draw_ahead = gpu_memory.GpuMemoryPlan.predraw_rewards

    def told(supply, track, part, options):
        arms, horizon = supply.spec.problem.arms, supply.spec.horizon
        assert track.predrawn.shape == ((len(part), arms, horizon) if supply.draws_ahead else (1, 1, 1))
        track.predrawn.copy_to_device(np.full(track.predrawn.shape, np.nan))
        draw_ahead(supply, track, part, options)
        assert np.isfinite(track.predrawn.copy_to_host()).all() == supply.draws_ahead
        found.append(supply.draws_ahead)

    monkeypatch.setattr(gpu_memory.GpuMemoryPlan, "predraw_rewards", told)
    return found


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize(
    ("policy", "problem", "noise", "ahead"),
    [
        (bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=3), "shared", True),
        (bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=3), "own", False),
        (bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=12), "shared", False),
        (bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), "shared", False),
        (OWN, BY_STEP, "shared", False),
    ],
)
def test_rewards_are_drawn_ahead_where_many_rows_read_the_same(monkeypatch, policy, problem, noise, ahead):
    """Not for noise of their own, few rows for the arms, shortcuts that read words, or rewards that depend on the step."""
    found = drawn_ahead(monkeypatch)
    assert same(
        SimulationSpec(policy, problem, 15, seed=9, regret="realised", common_random_numbers=noise == "shared"),
        runs=range(2),
    )
    assert found == [ahead]


@pytest.mark.usefixtures("in_turn")
def test_rewards_are_not_drawn_ahead_where_memory_is_short(monkeypatch):
    """A run needs 40 bytes, and 360 with its rewards: they are drawn ahead where a quarter of a piece then still fits."""
    monkeypatch.setattr(gpu_memory, "THREADS_PER_CHUNK", 16)
    spec = SimulationSpec(bt.GaussianThompson(prior=(0, 1), noise=1), bt.Gaussian(arms=3), 15, seed=9)
    found = drawn_ahead(monkeypatch)
    launched = pieces_of(monkeypatch)
    for room, ahead, sizes in (
        (8 * 400, True, [6]),
        (2 * 400, True, [2, 2, 2]),
        (2 * 400 - 1, False, [6]),
        (4 * 40, False, [4, 2]),
    ):
        monkeypatch.setattr(
            gpu_memory, "measure_free_gpu_memory", lambda room=room: 2 * gpu_memory.CHUNKS_IN_FLIGHT * room
        )
        assert same(spec, runs=range(6))
        assert set(found) == {ahead}
        assert [len(part) for part in parts(launched, "launch")] == sizes
        found.clear()
        launched.clear()


@pytest.mark.usefixtures("in_turn")
def test_the_verbs_play_on_the_gpu_and_say_so():
    problem = bt.Bernoulli(arms=3)
    arguments = {"horizon": 20, "seed": 2}
    regrets = bt.simulate(bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=3, **arguments))
    assert (
        bt.simulate(bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=3, device="gpu", **arguments))
        == regrets
    ).all()
    curve = bt.curve(bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=3, device="gpu", **arguments))
    assert curve.setup.device == "gpu"
    assert "numba-cuda" in curve.setup.versions
    assert bt.results.from_json(curve.to_json()) == curve
    assert (
        curve.mean == bt.curve(bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=3, **arguments)).mean
    ).all()


@bt.kernel.scalar
def bad_arm(state, setting, step, params, stream):
    return 0.5 if step == 7 and bt.kernel.uniform(stream) < params[0] else 0


@bt.kernel.scalar
def strange_reward(instance, arm, pull, step, stream):
    return math.nan if pull == 2 and bt.kernel.uniform(stream) < 0.5 else 1.0


STRANGE = bt.define_problem("strange", lambda size, rng: rng.random((size, 3)), strange_reward, arms=3, rewards="unit")


def complaint(play, spec, values, **options):
    with pytest.raises(bt.SimulationError) as error:
        play(spec, copy_read_only(values), range(3, 9), **options)
    return str(error.value)


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (bt.define_policy("broken", bad_arm), bt.Bernoulli(arms=3)),
        (bt.Greedy(), STRANGE),
        (bt.UCB1(noise=0.5), STRANGE),
    ],
    ids=names,
)
@pytest.mark.parametrize("noise", ["shared", "own"])
def test_a_fault_is_the_cpus_sentence(policy, problem, noise):
    spec = SimulationSpec(policy, problem, 15, seed=10, common_random_numbers=noise == "shared")
    values = [[0.1], [0.4]]
    found = complaint(gpu_scheduler.simulate_rows_on_gpu, spec, values, first_row=2)
    assert found == complaint(dispatch.simulate_rows, spec, values, first_row=2, workers=1)
    assert "of run" in found


@pytest.mark.usefixtures("in_turn")
def test_a_fault_that_only_the_gpu_has_is_told(monkeypatch):
    """As if the GPU had lost a run that the CPU can play."""
    monkeypatch.setattr(np, "isnan", lambda numbers: np.ones(numbers.shape, bool))
    spec = SimulationSpec(bt.Greedy(), bt.Bernoulli(arms=3), 10, seed=10)
    with pytest.raises(bt.SimulationError, match=r"failed in run 5 .*seed=10.* on the GPU, though not on the CPU"):
        gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only([[0.0]]), range(5, 7))


@bt.kernel.scalar
def reaches_out(state, setting, step, params, stream):
    """For a second row only: the first one's first run is played on the CPU before."""
    return params[7] if params[0] > 0 else 0


@pytest.mark.usefixtures("in_turn")
def test_what_stops_the_gpu_is_a_sentence():
    spec = SimulationSpec(bt.define_policy("wild", reaches_out), bt.Bernoulli(arms=3), 10)
    with pytest.raises(
        bt.SimulationError,
        match=r"the GPU stopped while it simulated the policy 'wild' .* device=\"cpu\", which checks every index",
    ):
        gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only([[0.0], [1.0]]), range(2))


@bt.kernel.scalar
def compares_nan(state, setting, step, params, stream):
    wide = math.inf if step > 3 else 0.0
    return int(state.total[0] + (wide - wide) > 0.5)


@pytest.mark.usefixtures("in_turn")
def test_a_comparison_with_nan_is_seen_in_the_first_run():
    spec = SimulationSpec(bt.define_policy("spoilt", compares_nan), bt.Bernoulli(arms=3), 10)
    with pytest.raises(
        bt.SimulationError, match=r"`choose` of the policy 'spoilt' must not compare NaN .* at step 4 of run 7"
    ):
        gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only([[0.0]]), range(7, 9))


class Block(Threads):
    """A team as the threads of a block in the simulator, which has none of a warp's functions."""

    def lane(self):
        return threading.current_thread().threadIdx.x


@pytest.mark.parametrize(
    ("policy", "problem", "horizon"),
    [
        (bt.LinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=35, dims=2), 12),
        pytest.param(bt.UCBGLM(prior=(0, 1), noise=0.5), bt.Logistic(arms=4, dims=2), 6, marks=pytest.mark.slow),
    ],
    ids=names,
)
def test_a_team_plays_as_a_team_of_one(monkeypatch, policy, problem, horizon):
    """One team of 32 threads a block, with Python's barriers for a warp's."""
    monkeypatch.setattr(kernel_selection, "select_warp_version", lambda spec: spec.policy.warp_version)
    monkeypatch.setattr(cuda_targets, "WARP_SLOTS", Block().slots(problem.arms))
    monkeypatch.setitem(
        cuda_targets.DTYPE_SLOTS,
        "float64",
        {name: SINGLE_THREAD_SLOTS[name] for name in cuda_targets.DTYPE_SLOTS["float64"]},
    )
    in_a_block = launch_plan.plan_warp_launch
    monkeypatch.setattr(
        launch_plan, "plan_warp_launch", lambda spec, team, precision, teams: in_a_block(spec, team, precision, 1)
    )
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        for regret, noise in (("realised", "shared"), ("expected", "own")):
            spec = SimulationSpec(
                policy,
                problem,
                horizon,
                seed=11,
                regret=regret,
                common_random_numbers=noise == "shared",
                checkpoints=(3, horizon),
            )
            planned = launch_plan.plan_launch(spec, "float64")
            assert (planned.threads_per_run, planned.threads_per_block) == (32, 32)
            regrets = gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only([[0.3]]), range(2), dtype="float64")
            wanted = [together(spec, policy.warp_version, [0.3], number, members=1).regrets for number in range(2)]
            np.testing.assert_allclose(regrets[0], wanted)
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.usefixtures("in_turn")
def test_a_ledger_keeps_what_a_gpu_played(tmp_path, monkeypatch):
    problem = bt.Bernoulli(arms=3)
    arguments = {"horizon": 20, "device": "gpu", "ledger": tmp_path / "study.ledger"}
    for noise in ("shared", "own"):
        bt.simulate(bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=2, noise=noise, **arguments))
        regrets = bt.simulate(bt.UCB1(noise=0.5), problem, [0.3, 1], **group_settings(runs=4, noise=noise, **arguments))
        usual = bt.simulate(
            bt.UCB1(noise=0.5),
            problem,
            [0.3, 1],
            runs=4,
            horizon=20,
            simulation=bt.Simulation(common_random_numbers=noise == "shared"),
        )
        assert (regrets == usual.astype(np.float32)).all()
    first = bt.tune(bt.UCB1(noise=0.5), problem, **group_settings(budget=12, validate=3, **arguments))
    monkeypatch.setattr(gpu_scheduler, "simulate_rows_on_gpu", None)
    assert bt.tune(bt.UCB1(noise=0.5), problem, **group_settings(budget=12, validate=3, **arguments)) == first
    with pytest.raises(TypeError):  # a value that is not in the ledger must be played
        bt.simulate(bt.UCB1(noise=0.5), problem, [0.3, 0.9], **group_settings(runs=4, **arguments))
