"""UCB-GLM and GLM-TSL in warps, compared with the plain loop: one compiled thread, or 32 threads of Python."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import banditune as bt
from banditune.core.policy import Setting
from banditune.core.streams import Stream
from banditune.simulation import bind
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.gpu import warp_glm_tsl, warp_logistic, warp_logistic_algebra, warp_logistic_layout
from banditune.simulation.gpu.warp_primitives import SINGLE_THREAD_SLOTS
from banditune.simulation.instances import draw_instances
from banditune.simulation.kernel_selection import make_constant_function
from banditune.simulation.spec import SimulationSpec
from helpers.warps import PythonWarp, simulate_one_thread, simulate_threads

GAMMAS = np.array([[0.0], [0.1], [0.35], [1.0]])


def choose_checkpoints(horizon, count=40):
    return tuple(sorted({*np.linspace(1, horizon, count).astype(int).tolist(), 2, 3, 5, 8, 13, 21}))


def make_spec(policy, problem, horizon, **options):
    return SimulationSpec(policy, problem, horizon, checkpoints=choose_checkpoints(horizon), **options)


@pytest.mark.slow
@pytest.mark.parametrize("regret", ["realised", "expected"])
def test_ucb_glm_in_a_warp_pulls_the_arms_of_the_plain_loop(regret):
    spec = make_spec(bt.UCBGLM(prior=(0, 1), noise=0.5), bt.Logistic(40, 3), 600, seed=11, regret=regret)
    np.testing.assert_allclose(
        simulate_one_thread(spec, bt.UCBGLM.warp_version, GAMMAS, range(24)), simulate_rows(spec, GAMMAS, range(24))
    )


@pytest.mark.slow
def test_ucb_glm_in_a_warp_with_few_arms_and_another_prior():
    covariance = [[1.5, 0.4, 0.0], [0.4, 0.8, -0.2], [0.0, -0.2, 2.0]]
    policy = bt.UCBGLM(prior=([0.3, -0.5, 0.1], covariance), noise=0.5)
    spec = make_spec(policy, bt.Logistic(5, 3), 600, seed=12)
    np.testing.assert_allclose(
        simulate_one_thread(spec, bt.UCBGLM.warp_version, GAMMAS, range(24)), simulate_rows(spec, GAMMAS, range(24))
    )


@pytest.mark.slow
def test_ucb_glm_in_a_warp_over_a_long_horizon():
    spec = make_spec(bt.UCBGLM(prior=(0, 1), noise=0.5), bt.Logistic(40, 3), 3000, seed=13)
    np.testing.assert_allclose(
        simulate_one_thread(spec, bt.UCBGLM.warp_version, GAMMAS, range(6)), simulate_rows(spec, GAMMAS, range(6))
    )


@pytest.mark.slow
def test_ucb_glm_in_a_warp_with_extreme_features():
    features = np.random.default_rng(1).uniform(-30, 30, (40, 3)).round(3).tolist()
    spec = make_spec(bt.UCBGLM(prior=(0, 1), noise=0.5), bt.Logistic(features=features), 400, seed=14)
    regrets = simulate_one_thread(spec, bt.UCBGLM.warp_version, GAMMAS, range(12))
    assert np.isfinite(regrets).all()
    np.testing.assert_allclose(regrets, simulate_rows(spec, GAMMAS, range(12)))


@pytest.mark.slow
def test_ties_go_to_the_lowest_arm():
    """Arms 1 to 4 are equal and better than arm 0. The first of them is pulled."""
    features = [[-1.0, 0.0, 0.0], *[[1.0, 0.0, 0.0]] * 4]
    spec = SimulationSpec(
        bt.UCBGLM(prior=([2, 0, 0], 1), noise=0.5), bt.Logistic(features=features), 50, seed=15, regret="expected"
    )
    means = draw_instances(spec.problem, 15, 0).means[:20]
    regrets = simulate_one_thread(spec, bt.UCBGLM.warp_version, np.zeros((1, 1)), range(20))
    np.testing.assert_allclose(regrets, simulate_rows(spec, np.zeros((1, 1)), range(20)))
    assert (means[:, 1] == means[:, 4]).all()


@pytest.fixture(scope="module")
def regrets_of_glm_tsl():
    spec = SimulationSpec(
        bt.GLMTSL(prior=(0, 1)), bt.Logistic(8, 3), 300, seed=16, regret="expected", checkpoints=(20, 100, 300)
    )
    gammas = np.array([[0.0], [0.1], [0.4], [1.0]])
    return simulate_one_thread(spec, bt.GLMTSL.warp_version, gammas, range(256)), simulate_rows(
        spec, gammas, range(256)
    )


@pytest.mark.slow
def test_glm_tsl_in_a_warp_at_gamma_0_pulls_the_arms_of_the_plain_loop(regrets_of_glm_tsl):
    fast, plain = regrets_of_glm_tsl
    np.testing.assert_allclose(fast[0], plain[0])


@pytest.mark.slow
@pytest.mark.parametrize("row", [1, 2, 3])
def test_glm_tsl_in_a_warp_has_the_law_of_the_plain_loop(regrets_of_glm_tsl, row):
    fast, plain = regrets_of_glm_tsl
    for checkpoint in range(3):
        apart = fast[row, :, checkpoint] - plain[row, :, checkpoint]
        assert abs(apart.mean()) < 4 * apart.std() / np.sqrt(len(apart))
        assert stats.ks_2samp(fast[row, :, checkpoint], plain[row, :, checkpoint]).pvalue > 1e-4


@pytest.mark.slow
def test_glm_tsl_in_a_warp_with_extreme_features():
    features = np.random.default_rng(2).uniform(-30, 30, (8, 3)).round(3).tolist()
    spec = SimulationSpec(
        bt.GLMTSL(prior=(0, 1)), bt.Logistic(features=features), 300, seed=17, regret="expected", checkpoints=(10, 300)
    )
    gammas = np.array([[0.0], [0.3], [1.0]])
    fast, plain = (
        simulate_one_thread(spec, bt.GLMTSL.warp_version, gammas, range(200)),
        simulate_rows(spec, gammas, range(200)),
    )
    apart = fast - plain
    np.testing.assert_allclose(apart[0], 0, atol=1e-9)
    assert (abs(apart.mean(axis=1)) <= 4 * apart.std(axis=1) / np.sqrt(200) + 1e-9).all()


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "arms"), [(bt.UCBGLM(prior=(0, 1), noise=0.5), 40), (bt.GLMTSL(prior=(0, 1)), 8)])
def test_32_threads_pull_the_arms_of_one_thread(policy, arms):
    spec = SimulationSpec(policy, bt.Logistic(arms, 3), 40, seed=18, regret="expected", checkpoints=tuple(range(1, 41)))
    single = simulate_one_thread(spec, policy.warp_version, [[0.3]], range(1))
    np.testing.assert_allclose(simulate_threads(spec, policy.warp_version, [0.3], 0).regrets, single[0, 0])


@pytest.mark.parametrize(("arms", "dims"), [(2, 1), (65, 2)])
@pytest.mark.parametrize("policy", [bt.UCBGLM(prior=(0, 1), noise=0.5), bt.GLMTSL(prior=(0, 1))])
def test_32_threads_take_any_number_of_arms_and_dimensions(policy, arms, dims):
    spec = SimulationSpec(
        policy,
        bt.Logistic(arms, dims),
        20,
        seed=21,
        regret="realised",
        common_random_numbers=False,
        checkpoints=tuple(range(1, 21)),
    )
    many, single = (simulate_threads(spec, policy.warp_version, [0.3], 3, threads).regrets for threads in (32, 1))
    np.testing.assert_allclose(many, single)


@pytest.mark.parametrize("dims", [1, 2, 10, 17, 33, 70])
def test_sums_over_32_threads_are_exact(dims):
    """Every sum is in one thread or more. Padding is in none."""
    numbers = np.random.default_rng(3).integers(0, 100, (32, dims)).astype(float)
    warp = PythonWarp()
    slots = {**warp.slots(arms=32), "dims": make_constant_function(dims)}
    sum_arms, locate_field = (
        bind.bind_function(function, slots)[0]
        for function in (warp_logistic_algebra.sum_weighted_arms, warp_logistic_layout.locate_field)
    )

    def run_lane(lane):
        registers = np.zeros(warp_logistic_layout.count_logistic_registers(1, dims))
        registers[:dims] = numbers[lane]
        registers[locate_field(warp_logistic_layout.WEIGHT, 0)] = 1.0
        shared = np.full(dims, np.nan)
        sum_arms(warp_logistic_layout.LogisticWarpState(registers, shared), 0)
        return shared

    sums = np.array(warp.run(run_lane))
    assert ((sums == numbers.sum(axis=0)) | np.isnan(sums)).all()
    assert (~np.isnan(sums)).any(axis=0).all()


def test_mode_and_draws_in_a_warp_agree_with_numpy(monkeypatch):
    """At the exact mode, draws have the covariance of the inverse Hessian."""
    monkeypatch.setattr(warp_logistic, "ERROR_MARGIN", 1e9)
    monkeypatch.setattr(warp_glm_tsl, "ERROR_MARGIN", 1e9)
    unit = np.zeros(1, np.int64)
    monkeypatch.setattr(warp_glm_tsl, "normal_pair", _make_unit_normals(unit))
    arms, dims = 8, 3
    rng = np.random.default_rng(4)
    features = rng.uniform(-2, 2, (dims, arms))
    policy = bt.GLMTSL(prior=(0, 1), factor=1)
    setting = Setting(arms, dims, 100, features, np.array(policy.options(arms, dims, 100)))
    slots = {
        **SINGLE_THREAD_SLOTS,
        "count_arms_per_lane": make_constant_function(arms),
        "dims": make_constant_function(dims),
    }
    start, choose, update, number_at, column_at = (
        bind.bind_function(function, slots)[0]
        for function in (
            warp_logistic.start_logistic_warp,
            warp_glm_tsl.choose_glm_tsl_warp,
            warp_glm_tsl.update_glm_tsl_warp,
            warp_logistic_layout.locate_lane_scalar,
            warp_logistic_layout.locate_lane_column,
        )
    )
    version = bt.GLMTSL.warp_version
    state = warp_logistic_layout.LogisticWarpState(
        np.zeros(version.count_registers(arms, dims)), np.zeros(version.count_shared(arms, dims))
    )
    start(state, setting)
    pulls, totals = np.zeros(arms), np.zeros(arms)
    stalest = 0.0
    stream = Stream(1, 2, np.zeros(4, np.int64))
    for step in range(90):
        arm, reward = int(rng.integers(arms)), float(rng.integers(2))
        update(state, setting, step, np.zeros(1), arm, reward, stream)
        pulls[arm] += 1
        totals[arm] += reward
        if step % 10 < 5:
            continue
        mode, precision = _find_mode(features, pulls, totals)
        columns = np.zeros((arms, dims))
        for j in range(dims):
            unit[0] = j
            state.registers[number_at(warp_logistic_layout.NEXT_NORMAL)] = np.inf  # new normals are due
            choose(state, setting, step, np.ones(1), stream)
            columns[:, j] = state.registers[arms * (dims + warp_logistic_layout.SERIES_SUM) :][:arms]
        stalest = max(stalest, abs(state.shared[column_at(warp_logistic_layout.SLOPE_CHANGE, 0) :][:arms]).max())
        score = state.registers[arms * (dims + warp_logistic_layout.SCORE) :][:arms]
        np.testing.assert_allclose(score, features.T @ mode, atol=1e-7)
        np.testing.assert_allclose(columns @ columns.T, features.T @ np.linalg.inv(precision) @ features, atol=1e-6)
    assert stalest > 0.01


def _make_unit_normals(unit):
    @bt.kernel.scalar
    def normal_pair(stream):
        first = 2 * stream.cursor[2]
        return 1.0 if first == unit[0] else 0.0, 1.0 if first + 1 == unit[0] else 0.0

    return normal_pair


def _find_mode(features, pulls, totals):
    """The mode, and the Hessian at the mode."""
    theta = np.zeros(len(features))
    for _ in range(50):
        probability = 1 / (1 + np.exp(-features.T @ theta))
        precision = np.eye(len(features)) + (features * (pulls * probability * (1 - probability))) @ features.T
        theta = theta + np.linalg.solve(precision, features @ (totals - pulls * probability) - theta)
    return theta, precision
