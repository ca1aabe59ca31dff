"""Every shortcut and every warp version, compared with the plain loop, at usual widths and beyond.

They are read from the package, so a new shortcut is tested without a change here.
"""

from __future__ import annotations

import math
import pkgutil
from dataclasses import fields, replace
from importlib import import_module

import numpy as np
import pytest

import banditune as bt
from banditune.core.policy import Shortcut, WarpVersion
from banditune.policies.index_policy import IndexFunctions
from banditune.registry import collect_policies
from banditune.simulation import dispatch
from banditune.simulation.kernel_selection import replaces_all_functions, select_shortcut, select_shortcut_rows
from banditune.simulation.spec import SimulationSpec
from banditune.study.requests import check_compatible
from banditune.testing.shortcut_comparison import compare_means, compare_shortcut, keep_only_shortcut
from helpers.settings import group_settings
from helpers.warps import simulate_one_thread

PROBLEMS = [
    bt.Bernoulli(arms=5),
    bt.Gaussian(arms=4),
    bt.Linear(arms=12, dims=3),
    bt.Logistic(arms=8, dims=3),
]
WIDTHS = [0.3, 1.0, 2.5]
"""The last one is beyond the usual range of every policy."""


PLAIN_PYTHON = {"kl-ucb", "ucb-v", "bayes-ucb", "finite-horizon-index", "gaussian-finite-horizon-index"}
"""Policies whose shortcuts are compared as plain Python in test_index_leader.py, which is faster than compiling them."""


def list_attached(kind):
    """Every shortcut or warp version of the package's policies, with a policy that has it."""
    for name, policy in collect_policies().items():
        for fast in policy.shortcuts if kind is Shortcut else filter(None, [policy.warp_version]):
            marks = pytest.mark.slow if name in PLAIN_PYTHON else ()
            yield pytest.param(policy, fast, marks=marks, id=f"{name}-{getattr(fast, 'name', 'warp')}")


def list_declared(kind):
    """Every shortcut or warp version in a module of the package."""
    declared = {}
    for package in ("policies", "simulation.shortcuts", "simulation.gpu"):
        folder = import_module(f"banditune.{package}")
        for module in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
            values = list(vars(import_module(module.name)).values())
            # What is made of an index holds its shortcuts.
            values += [fast for value in values if isinstance(value, IndexFunctions) for fast in value.shortcuts]
            declared |= {id(value): value for value in values if isinstance(value, kind)}
    return declared.values()


SHORTCUTS, WARP_VERSIONS = list(list_attached(Shortcut)), list(list_attached(WarpVersion))


@pytest.mark.parametrize(("kind", "tested"), [(Shortcut, SHORTCUTS), (WarpVersion, WARP_VERSIONS)])
def test_every_shortcut_and_warp_version_is_tested(kind, tested):
    seen = {id(param.values[1]) for param in tested}
    assert seen == {id(found) for found in list_declared(kind)}
    assert len(seen) >= 4


OPTIONS = {"noise": 0.5, "prior": {"beta": (1, 1), "normal": (0, 1), "theta": (0, 1)}}
"""Noise and, by their kinds, priors of policies."""


def make_policy(policy):
    """A policy of that class, with noise and prior given where it has some."""
    names = {field.name for field in fields(policy)}
    options = {"noise": OPTIONS["noise"], "prior": OPTIONS["prior"].get(policy.prior_kind)}
    return policy(**{name: value for name, value in options.items() if name in names})


def find_suitable_problem(policy, is_suitable):
    """The first problem that a policy can be simulated on and that is suitable."""
    for problem in PROBLEMS:
        try:
            check_compatible(policy, problem, 300)
        except bt.InvalidRequest:
            continue
        if is_suitable(problem):
            return problem
    raise AssertionError(f"no problem for {policy}")


def assert_same_law(fast, plain):
    """Means of paired regrets (rows, runs, steps) agree to 4 standard errors."""
    means = compare_means(fast, plain)
    assert (np.abs(means.difference) <= 4 * means.error + 1e-9).all(), (means.difference, means.error)


@pytest.mark.parametrize(("kind", "shortcut"), SHORTCUTS)
def test_every_shortcut_agrees_with_the_plain_loop_at_every_width(kind, shortcut):
    policy = keep_only_shortcut(make_policy(kind), shortcut)
    problem = find_suitable_problem(policy, lambda problem: select_shortcut(policy, problem))
    assert select_shortcut(policy, problem) is shortcut
    spec = SimulationSpec(policy, problem, 300, seed=4, checkpoints=(20, 300))
    rows = np.tile(np.array(WIDTHS)[:, None], len(policy.parameters))
    finding, runs, detectable = compare_shortcut(spec, shortcut, rows)
    assert repr(shortcut.name) in finding
    assert runs >= (300 if shortcut.is_bitwise_exact else 2000)
    assert detectable < 2


@pytest.mark.parametrize("function", ["view", "start", "choose", "update"])
@pytest.mark.parametrize(("kind", "shortcut"), SHORTCUTS + WARP_VERSIONS)
def test_a_policy_with_a_function_of_its_own_has_no_shortcut(kind, shortcut, function):
    """Also `start`, with which users give arms pulls before the first step."""
    own = type(kind.__name__, (kind,), {function: staticmethod(lambda *arguments: None)})
    for policy, expected in ((kind, True), (own, False)):
        assert replaces_all_functions(shortcut, make_policy(policy)) == expected


class KnownArms(bt.UCB1):
    """Knows before the first step that the first arm is the best."""

    @staticmethod
    @bt.kernel.scalar
    def start(state, setting):
        for arm in range(setting.arms):
            state.pulls[arm] = 100.0
            state.total[arm] = 100.0 if arm == 0 else 0.0
            state.mean[arm] = state.total[arm] / 100.0
            state.width[arm] = 0.1


def test_a_start_of_a_users_own_is_simulated():
    policy, problem = KnownArms(noise=0.5), bt.Mixture([(0.9, 0.1)])
    fast, plain = (
        bt.simulate(policy, problem, [0.0], horizon=300, runs=60, simulation=bt.Simulation(shortcuts=use))
        for use in (True, False)
    )
    assert (fast == plain).all()
    assert (bt.simulate(bt.UCB1(noise=0.5), problem, [0.0], horizon=300, runs=60) != plain).any()


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "version"), WARP_VERSIONS)
def test_every_warp_version_agrees_with_the_plain_loop_at_every_width(kind, version):
    policy = make_policy(kind)
    problem = find_suitable_problem(policy, lambda problem: problem.dims)
    spec = SimulationSpec(policy, problem, 300, seed=4, checkpoints=(20, 300), use_shortcut=False)
    values = [[width] for width in WIDTHS]
    assert all(version.is_valid(policy.options(problem.arms, problem.dims, 300), np.array(row)) for row in values)
    assert_same_law(
        simulate_one_thread(spec, version, values, range(256)),
        dispatch.simulate_rows(spec, np.array(values), range(256), workers=1),
    )


class WiderThompson(bt.Thompson):
    """Thompson sampling with a wider range, as a user would write it."""

    parameters = (bt.Parameter("gamma", 0, 3, textbook=1),)


@pytest.mark.parametrize("prior", [(1, 1), (0.5, 0.5), (0.3, 20), (3.36, 771)])
def test_thompson_sampling_has_the_law_of_the_plain_loop_with_any_prior(prior):
    """Posteriors must have shapes of 1 or more: prior / gamma^2 decides."""
    policy, problem = bt.Thompson(prior=prior), bt.Bernoulli(arms=4, prior=(1, 9))
    limit = math.sqrt(min(prior))
    widths = [0.2, 0.999 * limit, min(1.001 * limit, 1.7), 1.7]
    arguments = {"horizon": 300, "runs": 3000, "checkpoints": [20, 300]}
    fast, plain = (
        bt.simulate(policy, problem, widths, **group_settings(shortcuts=shortcut, **arguments))
        for shortcut in (True, False)
    )
    assert_same_law(fast, plain)
    for row, width in enumerate(widths):
        assert ((fast[row] == plain[row]).all()) == (width > limit)


def test_thompson_sampling_with_a_wider_range_has_its_exact_regret():
    problem = bt.Bernoulli(arms=2)
    exact = bt.exact.compute_exact_regret(bt.Thompson(prior=(1, 1)), problem, [2.0, 3.0], horizon=12).regret
    regrets = bt.simulate(WiderThompson(prior=(1, 1)), problem, [2.0, 3.0], horizon=12, runs=20_000)
    for regret, sample in zip(exact, regrets, strict=True):
        assert abs(sample.mean() - regret) < 4 * sample.std() / math.sqrt(len(sample))


@pytest.mark.parametrize("common", [True, False])
def test_a_row_does_not_depend_on_other_rows(common, tmp_path):
    """Rows by the shortcut and rows by the plain loop: together, one by one, in chunks, and out of a store."""
    spec = SimulationSpec(WiderThompson(prior=(1, 1)), bt.Bernoulli(arms=4), 60, seed=6, common_random_numbers=common)
    values = np.array([[0.5], [2.0], [1.0], [3.0], [2.5]])
    assert select_shortcut_rows(spec, values) == [True, False, True, False, False]
    expected = dispatch.simulate_rows(spec, values, range(40), workers=2)
    for row in range(len(values)):
        regrets = dispatch.simulate_rows(spec, values[row : row + 1], range(40), first_row=row, workers=1)
        assert (regrets[0] == expected[row]).all()
    chunks = [dispatch.simulate_rows(spec, values, range(first, first + 8), workers=1) for first in range(0, 40, 8)]
    assert (np.concatenate(chunks, axis=1) == expected).all()
    sizes = [10, 5, 7, 8, 10]
    row_regrets = dispatch.simulate_rows_separately(spec, values, sizes, 0, workers=1)
    for row, first in enumerate(np.cumsum([0, *sizes[:-1]])):
        assert (row_regrets[row] == expected[row, first : first + sizes[row]]).all()
    arguments = {"horizon": 60, "seed": 6, "common_random_numbers": common, "store": tmp_path / "study.db"}
    bt.simulate(spec.policy, spec.problem, values[:2, 0], **group_settings(runs=20, **arguments))
    for _ in range(2):
        stored_regrets = bt.simulate(spec.policy, spec.problem, values[:, 0], **group_settings(runs=40, **arguments))
        assert (stored_regrets == expected[:, :, 0].astype(np.float32)).all()


class NegativeUCB1(bt.UCB1):
    """Prefers arms with many pulls."""

    parameters = (bt.Parameter("gamma", -1, 1, textbook=1),)


class NegativeLinUCB(bt.LinUCB):
    parameters = (bt.Parameter("gamma", -1, 1, textbook=1),)


class NegativeLinTS(bt.LinTS):
    parameters = (bt.Parameter("gamma", -1, 1, textbook=1),)


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (NegativeUCB1(noise=0.5), bt.Bernoulli(arms=5)),
        (WiderThompson(prior=(1, 1)), bt.Bernoulli(arms=5)),
        (NegativeLinUCB(prior=(0, 1), noise=0.5), bt.Linear(arms=12, dims=3)),
        (NegativeLinTS(prior=(0, 1), noise=0.5), bt.Linear(arms=12, dims=3)),
    ],
)
def test_negative_widths_are_simulated_by_the_plain_loop(policy, problem):
    spec = SimulationSpec(policy, problem, 300, seed=4)
    fast, plain = (
        dispatch.simulate_rows(replace(spec, use_shortcut=s), [[-0.5], [-1e-3]], range(60), workers=1)
        for s in (True, False)
    )
    assert (fast == plain).all()


@pytest.mark.parametrize("noise", [1e-12, 1e-3, 0.5, 1e9])
def test_ucb1_is_the_plain_loop_at_every_scale(noise):
    widths = [1e-300, 1e-17, 1e-6, 0.1, 3.0, 1e3, 1e6]
    for problem in (bt.Bernoulli(arms=5), bt.Mixture([(0.5, 0.495), (0.5, 0.505), (1.0, 0.0)])):
        fast, plain = (
            bt.simulate(
                bt.UCB1(noise=noise),
                problem,
                widths,
                horizon=700,
                runs=40,
                simulation=bt.Simulation(shortcuts=shortcut),
            )
            for shortcut in (True, False)
        )
        assert (fast == plain).all()
