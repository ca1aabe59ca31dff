"""A GPU plays what the CPU plays. All of this needs one: `make gpu`.

Threads of a GPU run the CPU's scalar source on the same random numbers, and every product and sum is rounded as on the
CPU. Only `log`, `exp` and their kin may end in another last bit, which rarely changes an arm. Teams compute in another
order, and those that sample draw other normals, so there the law is compared.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.core.arrays import copy_read_only
from banditune.exact import table_policies
from banditune.simulation import devices
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.gpu import gpu_memory, gpu_scheduler, launch_plan
from banditune.simulation.spec import SimulationSpec
from banditune.study.requests import build_spec
from conftest import close
from helpers.policy_problem_pairs import PAIRS, POLICIES, params_for
from helpers.policy_problem_pairs import SMALL as PROBLEMS
from helpers.settings import group_settings

pytestmark = pytest.mark.gpu


@pytest.fixture(scope="module", autouse=True)
def a_gpu():
    trouble = devices.explain_missing_gpu()
    if trouble:
        pytest.skip(f"no GPU can be used: {trouble}")


RUNS = range(100, 400)
"""They begin within a block of instances and end within the next."""

SHARE = 0.02
"""Runs that may differ because of a last bit."""

EXACT = {
    "epsilon-greedy",
    "explore-then-commit",
    "greedy",
    "lin-greedy",
    "lin-epsilon-greedy",
    *table_policies.TABLE_POLICIES,
}
"""Policies that need no function but the square root, which is rounded in the same way everywhere."""

SAMPLING_TEAMS = {"lints", "glm-tsl"}
"""Policies whose teams draw normals at addresses of their own."""

MANY = {"linear": bt.Linear(arms=40, dims=3), "logistic": bt.Logistic(arms=40, dims=3)}
"""Problems where a thread of a team has several arms, and the last one some that do not exist."""

STRUCTURED = [(policy, problem) for policy, problem in PAIRS if POLICIES[policy].needs_features and problem in MANY]
TEAMS = [(policy, problem) for policy, problem in STRUCTURED if POLICIES[policy].warp_version is not None]


def on_gpu(spec, values, runs, **options):
    return gpu_scheduler.simulate_rows_on_gpu(spec, copy_read_only(values), runs, **options)


def differing(found, wanted):
    """The share of runs that are not the same but for rounding."""
    return (np.abs(found - wanted) > 1e-9 * (1 + np.abs(wanted))).any(axis=2).mean()


def means_agree(found, wanted):
    """Whether the means of every value and checkpoint are within 4 standard errors of the runs' differences."""
    apart = found - wanted
    reach = 4 * apart.std(axis=1, ddof=1) / math.sqrt(apart.shape[1])
    return bool((np.abs(apart.mean(axis=1)) <= reach + 1e-9 * (1 + np.abs(wanted.mean(axis=1)))).all())


def jobs_of(policy, problem, horizon=300):
    """Both kinds of regret and of noise, so with and without rewards drawn ahead; one kernel plays them all."""
    spec = build_spec(
        policy,
        problem,
        horizon=horizon,
        seed=3,
        checkpoints=(1, 17, 100, horizon),
        simulation=bt.Simulation(regret="realised"),
    )
    return spec, replace(spec, regret="expected", common_random_numbers=False)


@pytest.mark.parametrize(("policy", "problem"), [pair for pair in PAIRS if pair not in TEAMS])
def test_threads_lose_what_the_cpu_does(policy, problem):
    exact = policy in EXACT and PROBLEMS[problem]().rewards == "binary"
    specs = jobs_of(POLICIES[policy](), PROBLEMS[problem]())
    assert len(specs) == 2
    for spec in specs:
        values = params_for(spec)
        regrets, wanted = on_gpu(spec, values, RUNS, dtype="float64"), simulate_rows(spec, values, RUNS)
        assert (regrets == wanted).all() if exact else differing(regrets, wanted) <= SHARE
        assert means_agree(regrets, wanted)


@pytest.mark.parametrize(("policy", "problem"), [pair for pair in STRUCTURED if pair not in TEAMS])
def test_threads_with_many_arms_lose_what_the_cpu_does(policy, problem):
    job, _ = jobs_of(POLICIES[policy](), MANY[problem])
    values = params_for(job)
    regrets, wanted = on_gpu(job, values, RUNS), simulate_rows(job, values, RUNS)
    assert differing(regrets, wanted) <= SHARE
    assert means_agree(regrets, wanted)


@pytest.mark.parametrize(
    ("policy", "problem"), [("ucb1", "bernoulli"), ("ucb1", "gaussian"), ("ts", "bernoulli"), *TEAMS]
)
def test_the_plain_loop_loses_what_the_cpus_does(policy, problem):
    spec = replace(jobs_of(POLICIES[policy](), PROBLEMS[problem]())[0], use_shortcut=False)
    values = params_for(spec)
    regrets, wanted = on_gpu(spec, values, RUNS), simulate_rows(spec, values, RUNS)
    assert differing(regrets, wanted) <= SHARE
    assert means_agree(regrets, wanted)


@pytest.mark.parametrize("problem", ["few", "many"])
@pytest.mark.parametrize(("policy", "kind"), [pair for pair in TEAMS if pair[0] not in SAMPLING_TEAMS])
def test_teams_that_do_not_sample_lose_what_the_plain_loop_does(policy, kind, problem):
    specs = jobs_of(POLICIES[policy](), PROBLEMS[kind]() if problem == "few" else MANY[kind])
    assert len(specs) == 2
    for spec in specs:
        values = params_for(spec)
        regrets = on_gpu(spec, values, RUNS, dtype="float64")
        wanted = simulate_rows(replace(spec, use_shortcut=False), values, RUNS)
        assert differing(regrets, wanted) <= SHARE
        assert means_agree(regrets, wanted)


@pytest.mark.parametrize("problem", ["few", "many"])
@pytest.mark.parametrize(("policy", "kind"), [pair for pair in TEAMS if pair[0] in SAMPLING_TEAMS])
def test_teams_that_sample_have_the_law_of_the_plain_loop(policy, kind, problem):
    """The same instances, other normals; on instances of their own the errors are independent, and so larger."""
    played = PROBLEMS[kind]() if problem == "few" else MANY[kind]
    spec = build_spec(POLICIES[policy](), played, horizon=200, seed=4, checkpoints=(10, 200))
    values = params_for(spec)
    regrets = on_gpu(spec, values, range(2000))
    wanted = simulate_rows(replace(spec, use_shortcut=False), values, range(2000))
    assert means_agree(regrets, wanted)
    others = on_gpu(spec, values, range(2000, 4000))
    for row in range(len(values)):
        for place in range(2):
            reference = wanted[row, :, place]
            se = reference.std(ddof=1) / math.sqrt(len(reference))
            assert close(others[row, :, place], reference.mean(), se)


@pytest.mark.parametrize(("policy", "problem"), [*TEAMS, ("ts", "bernoulli"), ("ts", "beta")])
def test_single_precision_is_as_good(policy, problem):
    """Rounding in single precision may change arms, but not what is lost on average."""
    played = MANY[problem] if problem in MANY else PROBLEMS[problem]()
    spec = build_spec(POLICIES[policy](), played, horizon=500, seed=5, checkpoints=(20, 100, 500))
    values = params_for(spec)
    single, double = (on_gpu(spec, values, range(1000), dtype=kind) for kind in ("float32", "float64"))
    assert np.isfinite(single).all()
    assert means_agree(single, double)


@pytest.mark.parametrize(
    ("policy", "problem"),
    [(bt.UCB1(noise=0.5), bt.Gaussian(arms=4)), (bt.LinUCB(prior=(0, 1), noise=0.5), MANY["linear"])],
    ids=["thread", "team"],
)
def test_pieces_do_not_change_a_bit(monkeypatch, policy, problem):
    spec = SimulationSpec(policy, problem, 100, seed=6, regret="realised")
    values = [[0.1], [1.0], [0.4]]
    whole = on_gpu(spec, values, range(200, 600))
    monkeypatch.setattr(gpu_memory, "THREADS_PER_CHUNK", 57 * launch_plan.plan_launch(spec).threads_per_run)
    done = []
    assert (on_gpu(spec, values, range(200, 600), progress=done.append) == whole).all()
    assert done == [57] * 21 + [3]
    assert len(done) > gpu_memory.CHUNKS_IN_FLIGHT
    assert (on_gpu(spec, values[1:2], range(300, 310)) == whole[1:2, 100:110]).all()


@bt.kernel.scalar
def bad_arm(state, setting, step, params, stream):
    return 7 if step == 30 and bt.kernel.uniform(stream) < 0.01 else 0


def test_a_fault_is_the_cpus_sentence():
    told = []
    for device in ("cpu", "gpu"):
        with pytest.raises(bt.SimulationError) as error:
            bt.simulate(
                bt.define_policy("bad", bad_arm), bt.Bernoulli(arms=3), horizon=50, runs=500, run=bt.Run(device=device)
            )
        told.append(str(error.value))
    assert told[0] == told[1]


def test_the_verbs_give_the_cpus_answer():
    problem, options = bt.Bernoulli(arms=4), {"horizon": 200, "seed": 7}
    tuned = [
        bt.tune(bt.EpsilonGreedy(), problem, **group_settings(budget=200, device=device, **options))
        for device in ("cpu", "auto")
    ]
    assert [result.setup.device for result in tuned] == ["cpu", "gpu"]
    assert tuned[0].params == tuned[1].params
    assert tuned[0].regret == tuned[1].regret


def test_the_doctor_is_content(banditune):
    process = banditune("doctor", "--device", "gpu")
    assert process.returncode == 0, process.stdout
    assert "NOT OK" not in process.stdout


@pytest.mark.parametrize(("policy", "problem"), [*TEAMS, ("ucb1", "bernoulli"), ("ts", "bernoulli")])
def test_rows_beyond_the_usual_range_have_the_law_of_the_plain_loop(policy, problem):
    """In float64. The shortcut of Thompson sampling with prior (1, 1) ends at 1; the others play 2.5, too."""
    spec = build_spec(POLICIES[policy](), PROBLEMS[problem](), horizon=200, seed=4, checkpoints=(10, 200))
    values = [[0.5], [2.5]]
    regrets = on_gpu(spec, values, range(2000))
    assert means_agree(regrets, simulate_rows(replace(spec, use_shortcut=False), values, range(2000)))
