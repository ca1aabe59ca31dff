"""LinUCB and LinTS in warps, compared with the plain loop: one compiled thread, or several threads of Python."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import banditune as bt
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.gpu import warp_linear, warp_lints, warp_linucb
from banditune.simulation.spec import SimulationSpec
from helpers.warps import simulate_one_thread, simulate_threads

GAMMAS = [[0.0], [0.1], [0.25], [1.0]]
CORRELATED = (0.5, 0.3 * np.eye(3) + 0.7)
AT = (1, 2, 7, 41, 200, 701, 1500)
CASES = [
    (bt.Linear(arms=40, dims=3), {}),
    (bt.Linear(arms=40, dims=3, prior=CORRELATED), {"prior": CORRELATED, "noise": 1.5}),
    pytest.param(bt.Linear(arms=5, dims=3, noise=0.1), {"noise": 0.1, "confidence": "theorem"}, marks=pytest.mark.slow),
    (bt.Linear(arms=5, dims=3), {"prior": ([1, 0, -1], np.diag([4.0, 1.0, 0.01]))}),
]


def count_differences(fast, plain):
    """The number of runs that differ by more than rounding."""
    return (np.abs(fast - plain).max(axis=2) > 1e-9 * (1 + np.abs(plain[..., -1]))).sum()


@pytest.mark.parametrize(("problem", "options"), CASES)
@pytest.mark.parametrize("regret", ["expected", pytest.param("realised", marks=pytest.mark.slow)])
def test_linucb_in_a_warp_pulls_the_arms_of_the_plain_loop(problem, options, regret):
    """Rounding may decide between indices that are equal in all digits: in one run or two of hundreds."""
    spec = SimulationSpec(
        bt.LinUCB(**{"prior": (0, 1), "noise": 0.5} | options),
        problem,
        1500,
        checkpoints=AT,
        seed=3,
        regret=regret,
        use_shortcut=False,
    )
    fast = simulate_one_thread(spec, bt.LinUCB.warp_version, GAMMAS, range(60))
    assert count_differences(fast, simulate_rows(spec, GAMMAS, range(60))) <= 1


@pytest.mark.slow
def test_linucb_in_a_warp_breaks_ties_as_the_plain_loop():
    features = np.repeat(np.random.default_rng(0).normal(size=(20, 3)), 2, axis=0)
    spec = SimulationSpec(
        bt.LinUCB(prior=(0, 1), noise=0.5),
        bt.Linear(features=features),
        700,
        checkpoints=(1, 7, 200, 700),
        use_shortcut=False,
    )
    assert (
        count_differences(
            simulate_one_thread(spec, bt.LinUCB.warp_version, GAMMAS, range(60)), simulate_rows(spec, GAMMAS, range(60))
        )
        <= 1
    )


@pytest.mark.slow
@pytest.mark.parametrize("refresh", [1, 7])
def test_the_refresh_interval_does_not_change_linucb_in_a_warp(monkeypatch, refresh):
    """Rounding is far below what can be seen here."""
    for module in (warp_linear, warp_lints, warp_linucb):
        monkeypatch.setattr(module, "REFRESH_STREAKS", refresh)
    problem, options = CASES[3] if refresh == 1 else CASES[1]
    spec = SimulationSpec(
        bt.LinUCB(**{"prior": (0, 1), "noise": 0.5} | options),
        problem,
        1500,
        checkpoints=AT,
        seed=4,
        use_shortcut=False,
    )
    assert (
        count_differences(
            simulate_one_thread(spec, bt.LinUCB.warp_version, GAMMAS, range(60)), simulate_rows(spec, GAMMAS, range(60))
        )
        <= 1
    )


@pytest.mark.slow
@pytest.mark.parametrize(("problem", "options"), CASES)
def test_lints_in_a_warp_has_the_law_of_the_plain_loop(problem, options):
    options = {name: value for name, value in options.items() if name != "confidence"}
    copies, runs = 6, 250
    rows = [[gamma] for gamma in (0.1, 0.4, 1.0) for _ in range(copies)]
    spec = SimulationSpec(
        bt.LinTS(**{"prior": (0, 1), "noise": 0.5} | options),
        problem,
        300,
        checkpoints=(1, 30, 300),
        common_random_numbers=False,
        use_shortcut=False,
    )
    fast = simulate_one_thread(spec, bt.LinTS.warp_version, rows, range(runs)).reshape(3, copies, runs, 3)
    plain = simulate_rows(spec, rows, range(runs)).reshape(3, copies, runs, 3)
    assert (plain.std(axis=(1, 2)) > 0).all()
    for x, y in zip(
        np.moveaxis(fast, 3, 1).reshape(9, copies, runs), np.moveaxis(plain, 3, 1).reshape(9, copies, runs), strict=True
    ):
        # The same instances with other random numbers: differences are independent and have mean 0.
        difference = (x - y).mean(axis=0)
        assert abs(difference.mean()) <= 4 * difference.std() / math.sqrt(runs)
        assert stats.ks_2samp(x.ravel(), y.ravel(), method="asymp").pvalue > 1e-4


@pytest.mark.slow
def test_lints_in_a_warp_at_gamma_0_is_the_plain_loop():
    spec = SimulationSpec(
        bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=40, dims=3), 1500, checkpoints=AT, use_shortcut=False
    )
    assert (
        count_differences(
            simulate_one_thread(spec, bt.LinTS.warp_version, [[0.0]], range(60)),
            simulate_rows(spec, [[0.0]], range(60)),
        )
        <= 1
    )


@pytest.mark.slow
@pytest.mark.parametrize("refresh", [3, 1000])
def test_the_refresh_interval_does_not_change_the_law_of_lints_in_a_warp(monkeypatch, refresh):
    """More steps than `REFRESH_STREAKS`, or a refresh whenever new normals are drawn."""
    for module in (warp_linear, warp_lints, warp_linucb):
        monkeypatch.setattr(module, "REFRESH_STREAKS", refresh)
    spec = SimulationSpec(
        bt.LinTS(prior=(0, 1), noise=0.5),
        bt.Linear(arms=40, dims=3),
        2500,
        checkpoints=(30, 2500),
        common_random_numbers=False,
        use_shortcut=False,
    )
    rows = [[1.0]] * 4
    difference = (
        simulate_one_thread(spec, bt.LinTS.warp_version, rows, range(250)) - simulate_rows(spec, rows, range(250))
    ).mean(axis=0)
    assert (np.abs(difference.mean(axis=0)) <= 4 * difference.std(axis=0) / math.sqrt(250)).all()


def solve_ridge(policy, setting, pulls, totals):
    """Ridge regression by NumPy: theta and G^-1."""
    dims = setting.dims
    mean, root = setting.options[1 : 1 + dims], setting.options[1 + dims : 1 + dims + dims * dims].reshape(dims, dims)
    x = setting.features.T @ root
    gram = policy.noise**2 * np.eye(dims) + (x.T * pulls) @ x
    moment = x.T @ (totals - pulls * (setting.features.T @ mean))
    return mean + root @ np.linalg.solve(gram, moment), root @ np.linalg.inv(gram) @ root.T


@pytest.mark.parametrize(
    ("threads", "arms", "dims", "horizon"),
    [(1, 5, 3, 40), (2, 2, 1, 40), (4, 11, 6, 40), (8, 3, 2, 30), (32, 37, 3, 20)],
)
@pytest.mark.parametrize("refresh", [2, 1000])
def test_warps_of_any_size_agree_with_ridge_regression(monkeypatch, threads, arms, dims, horizon, refresh):
    for module in (warp_linear, warp_lints, warp_linucb):
        monkeypatch.setattr(module, "REFRESH_STREAKS", refresh)
    problem = bt.Linear(arms=arms, dims=dims)
    prior = (0.5, 0.3 * np.eye(dims) + 0.7)
    share = -(-arms // threads)
    for policy, version in (
        (bt.LinUCB(prior=prior, noise=0.5), bt.LinUCB.warp_version),
        (bt.LinTS(prior=prior, noise=0.5), bt.LinTS.warp_version),
    ):
        spec = SimulationSpec(policy, problem, horizon, checkpoints=(3, horizon), use_shortcut=False, regret="realised")
        regrets, registers, state, pulls, totals, setting = simulate_threads(spec, version, (1.0,), 1, threads)
        assert pulls.sum() == horizon
        assert np.isfinite(regrets).all()
        m, error = state.lane_scalars[0], state.lane_scalars[1]
        leader, q, score = int(state.warp_scalars[0]), state.warp_scalars[1], state.warp_scalars[2]
        r = 1 / math.sqrt(1 + m * q)
        theta, inverse = solve_ridge(policy, setting, pulls, totals)
        x = setting.features.T
        scores, directions = (registers[:, place * share : (place + 1) * share].T.ravel()[:arms] for place in range(2))
        scores = scores + error * r * r * directions
        scores[leader] = score + error * r * r * q
        assert np.allclose(scores, x @ theta, atol=1e-9)
        assert np.allclose(
            directions, directions[leader] * (x @ inverse @ x[leader]) / (x[leader] @ inverse @ x[leader])
        )
        if version is bt.LinUCB.warp_version:
            square = (
                registers[:, 2 * share : 3 * share].T.ravel()[:arms] - (state.warp_scalars[4] * directions * r) ** 2 * m
            )
            assert np.allclose(square, state.warp_scalars[4] ** 2 * np.einsum("ki,ij,kj->k", x, inverse, x))
        else:
            whitened = registers[:, 2 * share : (2 + dims) * share].reshape(threads, share, dims).swapaxes(0, 1)
            whitened = whitened.reshape(-1, dims)[:arms] - m * r * r / (1 + r) * np.outer(
                directions, state.leader_whitened[:dims]
            )
            # Scores under a draw are x'estimate + scale turned z: normal with this covariance.
            assert np.allclose(whitened @ whitened.T, x @ inverse @ x.T)


@pytest.mark.parametrize("name", ["linucb", "lints"])
def test_warps_of_any_size_pull_the_same_arms(name):
    policy, name = {
        "linucb": (bt.LinUCB(prior=(0, 1), noise=0.5), bt.LinUCB.warp_version),
        "lints": (bt.LinTS(prior=(0, 1), noise=0.5), bt.LinTS.warp_version),
    }[name]
    spec = SimulationSpec(policy, bt.Linear(arms=11, dims=3), 60, checkpoints=(3, 20, 60), use_shortcut=False)
    first, *other_regrets = (simulate_threads(spec, name, (0.3,), 2, threads).regrets for threads in (1, 2, 8))
    for regrets in other_regrets:
        assert np.allclose(first, regrets)


@pytest.mark.slow
def test_arms_with_equal_features_tie_in_a_draw():
    """The lower arm is pulled every time, so the regret is 0."""
    spec = SimulationSpec(
        bt.LinTS(prior=(0, 1), noise=0.5), bt.Linear(features=[[1, 0.5, 0.2]] * 5), 300, regret="realised"
    )
    assert (simulate_one_thread(spec, bt.LinTS.warp_version, [[0.1], [1.0]], range(50)) == 0).all()
