"""The GPU's engine in CUDA's simulator, against the CPU's kernels: run by `test_gpu.py` in a process of its own, because
the simulator must be asked for (NUMBA_ENABLE_CUDASIM=1) before Numba is imported.

The simulator runs kernels as plain Python, so what is compiled for a GPU is not tried here; addresses, pieces, memory and
complaints are.
"""

from __future__ import annotations

import math
import sys
import threading

import numpy as np
import pytest
from numba.cuda.simulator.kernel import BlockThread

import banditune as bt
from banditune.engine import devices, gpu, run
from banditune.engine.run import Job, read_only
from banditune.policies.team import ALONE
from teams import Threads, together

VALUES = [[0.3], [1.0]]


@pytest.fixture
def in_turn(monkeypatch):
    """Threads of a block one after the other: they do not wait for each other, and so they are much faster."""

    def start_and_end(thread):
        threading.Thread.start(thread)
        thread.join()

    monkeypatch.setattr(BlockThread, "start", start_and_end)


@bt.scalar
def choose_own(state, setting, step, params, stream):
    if bt.uniform(stream) < params[0]:
        return bt.random_arm(state, stream)
    return bt.best_mean(state)


@bt.scalar
def reward_own(instance, arm, pull, step, stream):
    return instance.means[arm] * bt.exponential(stream) * instance.options[0]


@bt.scalar
def reward_by_step(instance, arm, pull, step, stream):
    return bt.uniform(stream) if (step < 5) == (arm == 0) else instance.means[arm]


OWN = bt.arm_policy("own", choose_own, parameters=[bt.Parameter("epsilon", 0, 1, theory=0.1)])
OWN_PROBLEM = bt.arm_problem(
    "exponential", lambda size, rng: rng.gamma(2, 1, (size, 3)), reward_own, arms=3, options=[2.0]
)
BY_STEP = bt.arm_problem("by step", lambda size, rng: rng.random((size, 3)), reward_by_step, arms=3, rewards="unit")
CASES = [
    (bt.UCB1(), bt.Bernoulli(arms=3)),
    (bt.UCB1(), bt.BetaRewards(arms=3, v=3)),
    (bt.UCB1(), bt.Gaussian(arms=3)),
    (bt.Thompson(), bt.Bernoulli(arms=3)),
    (bt.EpsilonGreedy(), bt.Bernoulli(arms=3)),
    (bt.GaussianThompson(), bt.Gaussian(arms=3)),
    (OWN, bt.Gaussian(arms=3)),
    (OWN, OWN_PROBLEM),
    (OWN, BY_STEP),
]


def names(case):
    return getattr(case, "name", None)


def both(job, values=VALUES, runs=range(4), **options):
    """Regrets on the GPU and on the CPU."""
    values = read_only(values)
    return gpu.play(job, values, runs, **options), run.play(job, values, runs, **options)


def same(job, values=VALUES, runs=range(4), **options):
    """Whether both are the same, to the last bit."""
    found, wanted = both(job, values, runs, **options)
    assert found.shape == wanted.shape == (len(values), len(runs), len(job.at or (0,)))
    assert wanted.any()
    return bool((found == wanted).all())


def test_the_simulator_plays_the_gpu():
    assert devices.simulated()
    assert devices.gpu_trouble() is None
    assert devices.resolved("gpu") == devices.resolved("auto") == "gpu"


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize(("policy", "problem"), CASES, ids=names)
def test_regrets_are_the_cpus_to_the_last_bit(policy, problem):
    job = Job(policy, problem, 25, seed=3, regret="realised", at=(1, 9, 25))
    assert same(job)
    assert same(Job(policy, problem, 20, seed=4, noise="own"), runs=range(2))


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize("policy", [bt.UCB1(), bt.Thompson()], ids=names)
def test_the_plain_loop_is_the_cpus_too(policy):
    assert same(Job(policy, bt.Bernoulli(arms=3), 25, seed=5, regret="realised", shortcut=False))


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize("features", ["alike", "of each instance"])
@pytest.mark.parametrize("noise", ["shared", "own"])
def test_features(features, noise):
    table = np.random.default_rng(0).normal(size=(4, 2))
    problem = bt.Linear(features=table) if features == "alike" else bt.Linear(arms=4, dims=2)
    assert len(run.instances(problem, 6, 0).features) == (1 if features == "alike" else run.BLOCK)
    job = Job(bt.LinGreedy(), problem, 15, seed=6, regret="realised", noise=noise, at=(2, 15))
    assert same(job, [[0.0]], range(254, 259))


def pieces_of(monkeypatch):
    """Pieces that are launched from now on."""
    found = []
    launched = gpu.Piece

    def piece(runs, *rest):
        found.append(runs)
        return launched(runs, *rest)

    monkeypatch.setattr(gpu, "Piece", piece)
    return found


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize(
    ("policy", "problem"), [CASES[0], CASES[2], (bt.LinGreedy(), bt.Linear(arms=3, dims=2))], ids=names
)
def test_pieces_do_not_change_a_bit(monkeypatch, policy, problem):
    """Pieces of a few runs, that begin within a block of instances and end in the next."""
    monkeypatch.setattr(gpu, "PIECE", 6)
    monkeypatch.setattr(gpu, "PIECE", 1e-9)
    found = pieces_of(monkeypatch)
    runs = range(run.BLOCK - 7, run.BLOCK + 5)
    job = Job(policy, problem, 10, seed=7, regret="realised", at=(4, 10))
    done = []
    values = read_only(VALUES)
    regrets = gpu.play(job, values, runs, progress=done.append)
    assert (regrets == run.play(job, values, runs)).all()
    assert found == [runs[first : first + 3] for first in range(0, 12, 3)]
    assert done == [6] * 4
    own = Job(policy, problem, 10, seed=7, noise="own")
    assert same(own, VALUES, runs, first_row=3)


@pytest.mark.usefixtures("in_turn")
def test_large_pieces_end_where_a_block_of_instances_does(monkeypatch):
    monkeypatch.setattr(gpu, "PIECE", 300)
    found = pieces_of(monkeypatch)
    runs = range(200, 700)
    assert same(Job(bt.Greedy(), bt.Bernoulli(arms=2), 2, seed=8, noise="own"), [[0.0]], runs)
    assert found[0] == range(200, 256)
    assert [piece.start for piece in found[1:]] == [piece.stop for piece in found[:-1]]
    assert all(piece.stop % run.BLOCK == 0 for piece in found if len(piece) > run.BLOCK)
    assert found[-1].stop == 700


def drawn_ahead(monkeypatch):
    """Whether rewards were drawn ahead, an entry for each piece."""
    found = []
    rewards = gpu.Supply.rewards

    def told(supply, *arguments):
        found.append(supply.ahead)
        return rewards(supply, *arguments)

    monkeypatch.setattr(gpu.Supply, "rewards", told)
    return found


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize(
    ("policy", "problem", "noise", "ahead"),
    [
        (bt.GaussianThompson(), bt.Gaussian(arms=3), "shared", True),
        (bt.GaussianThompson(), bt.Gaussian(arms=3), "own", False),
        (bt.GaussianThompson(), bt.Gaussian(arms=12), "shared", False),
        (bt.UCB1(), bt.Bernoulli(arms=3), "shared", False),
        (OWN, BY_STEP, "shared", False),
    ],
)
def test_rewards_are_drawn_ahead_where_many_rows_read_the_same(monkeypatch, policy, problem, noise, ahead):
    """Not for noise of their own, few rows for the arms, shortcuts that read words, or rewards that depend on the step."""
    found = drawn_ahead(monkeypatch)
    assert same(Job(policy, problem, 15, seed=9, regret="realised", noise=noise), runs=range(2))
    assert found == [ahead]


@pytest.mark.usefixtures("in_turn")
def test_rewards_are_not_drawn_ahead_where_memory_is_short(monkeypatch):
    monkeypatch.setattr(gpu, "PIECE", 8)
    job = Job(bt.GaussianThompson(), bt.Gaussian(arms=3), 15, seed=9)
    for free, ahead in ((10_000, True), (2_000, False)):
        monkeypatch.setattr(gpu, "free_memory", lambda free=free: free)
        found = drawn_ahead(monkeypatch)
        assert same(job, runs=range(3))
        assert set(found) == {ahead}


@pytest.mark.usefixtures("in_turn")
def test_the_verbs_play_on_the_gpu_and_say_so():
    problem = bt.Bernoulli(arms=3)
    arguments = {"horizon": 20, "seed": 2}
    usual = bt.simulate(bt.UCB1(), problem, [0.3, 1], runs=3, **arguments)
    assert (bt.simulate(bt.UCB1(), problem, [0.3, 1], runs=3, device="gpu", **arguments) == usual).all()
    curve = bt.curve(bt.UCB1(), problem, [0.3, 1], runs=3, device="auto", **arguments)
    assert curve.setup.device == "gpu"
    assert bt.from_json(curve.to_json()) == curve
    assert (curve.mean == bt.curve(bt.UCB1(), problem, [0.3, 1], runs=3, **arguments).mean).all()


@bt.scalar
def bad_arm(state, setting, step, params, stream):
    return 0.5 if step == 7 and bt.uniform(stream) < params[0] else 0


@bt.scalar
def strange_reward(instance, arm, pull, step, stream):
    return math.nan if pull == 2 and bt.uniform(stream) < 0.5 else 1.0


STRANGE = bt.arm_problem("strange", lambda size, rng: rng.random((size, 3)), strange_reward, arms=3, rewards="unit")


def complaint(play, job, values, **options):
    with pytest.raises(bt.Fault) as error:
        play(job, read_only(values), range(3, 9), **options)
    return str(error.value)


@pytest.mark.usefixtures("in_turn")
@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (bt.arm_policy("broken", bad_arm), bt.Bernoulli(arms=3)),
        (bt.Greedy(), STRANGE),
        (bt.UCB1(), STRANGE),
    ],
    ids=names,
)
@pytest.mark.parametrize("noise", ["shared", "own"])
def test_a_fault_is_the_cpus_sentence(policy, problem, noise):
    job = Job(policy, problem, 15, seed=10, noise=noise)
    values = [[0.1], [0.4]]
    found = complaint(gpu.play, job, values, first_row=2)
    assert found == complaint(run.play, job, values, first_row=2, jobs=1)
    assert "of run" in found


@pytest.mark.usefixtures("in_turn")
def test_a_fault_that_only_the_gpu_has_is_told(monkeypatch):
    """As if the GPU had lost a run that the CPU can play."""
    monkeypatch.setattr(np, "isnan", lambda numbers: np.ones(numbers.shape, bool))
    job = Job(bt.Greedy(), bt.Bernoulli(arms=3), 10, seed=10)
    with pytest.raises(bt.Fault, match=r"could not go on in run 5 .*seed=10.* on the GPU, though it can on the CPU"):
        gpu.play(job, read_only([[0.0]]), range(5, 7))


@bt.scalar
def reaches_out(state, setting, step, params, stream):
    return params[7]


@pytest.mark.usefixtures("in_turn")
def test_what_stops_the_gpu_is_a_sentence():
    job = Job(bt.arm_policy("wild", reaches_out), bt.Bernoulli(arms=3), 10)
    with pytest.raises(
        bt.Fault, match=r"the GPU stopped while it played the policy 'wild' .* device=\"cpu\" finds where"
    ):
        gpu.play(job, read_only([[0.0]]), range(2))


class Block(Threads):
    """A team as the threads of a block in the simulator, which has none of a warp's functions."""

    def lane(self):
        return threading.current_thread().threadIdx.x


@pytest.mark.parametrize(
    ("policy", "problem", "horizon"),
    [
        (bt.LinUCB(), bt.Linear(arms=35, dims=2), 12),
        pytest.param(bt.UCBGLM(), bt.Logistic(arms=4, dims=2), 6, marks=pytest.mark.slow),
    ],
    ids=names,
)
def test_a_team_plays_as_a_team_of_one(monkeypatch, policy, problem, horizon):
    """One team of 32 threads a block, with Python's barriers for a warp's."""
    monkeypatch.setattr(gpu, "WARP", Block().slots(problem.arms))
    monkeypatch.setitem(gpu.PRECISION, "float64", {name: ALONE[name] for name in gpu.PRECISION["float64"]})
    in_a_block = gpu.team_plan
    monkeypatch.setattr(gpu, "team_plan", lambda job, team, precision, teams: in_a_block(job, team, precision, 1))
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)
    try:
        for regret, noise in (("realised", "shared"), ("expected", "own")):
            job = Job(policy, problem, horizon, seed=11, regret=regret, noise=noise, at=(3, horizon))
            planned = gpu.plan(job, "float64")
            assert (planned.members, planned.block) == (32, 32)
            found = gpu.play(job, read_only([[0.3]]), range(2), precision="float64")
            wanted = [together(job, policy.team, [0.3], number, members=1).regrets for number in range(2)]
            np.testing.assert_allclose(found[0], wanted)
    finally:
        sys.setswitchinterval(usual)
