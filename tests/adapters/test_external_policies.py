"""Policies of other libraries: simulated with the same rewards, tuned, and exported."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import banditune as bt
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.instances import draw_instances
from banditune.simulation.spec import SimulationSpec
from helpers.settings import group_settings
from helpers.statistics import mean_agrees

ALPHA = bt.Parameter("alpha", 0, 1, textbook=1)
DELTA = bt.Parameter("delta", 0, 1, textbook=1)
PROBLEM = bt.Bernoulli(arms=4)
CODE = "not-repeatable"


class EpsilonGreedyAgent:
    """An object with methods, as a user would write it."""

    def __init__(self, arms, epsilon, seed):
        self.pulls, self.totals = np.zeros(arms), np.zeros(arms)
        self.epsilon, self.rng = epsilon, random.Random(seed)

    def select(self):
        if self.rng.random() < self.epsilon:
            return self.rng.randrange(len(self.pulls))
        return int(np.argmax(np.where(self.pulls == 0, np.inf, self.totals / np.maximum(self.pulls, 1))))

    def observe(self, arm, reward):
        self.pulls[arm] += 1
        self.totals[arm] += reward


def my_agent(arms, epsilon, seed):
    return EpsilonGreedyAgent(arms, epsilon, seed)


EPSILON = bt.wrap_policy(my_agent, bt.Parameter("epsilon", 0, 1, textbook=0.1))


ONLY: list[EpsilonGreedyAgent] = []


def return_the_only_one(arms, epsilon, seed):
    ONLY.extend([] if ONLY else [EpsilonGreedyAgent(arms, epsilon, seed)])
    return ONLY[0]


PULLS = np.zeros(4)


def share_pulls(arms, epsilon, seed):
    """A new object every time, which counts in an array that all of them have."""
    made = EpsilonGreedyAgent(arms, epsilon, seed)
    made.pulls = PULLS
    return made


def draw_without_the_seed(arms, epsilon, seed):
    return EpsilonGreedyAgent(arms, epsilon, None)


def test_an_object_that_is_returned_again_is_refused():
    same = bt.wrap_policy(return_the_only_one, bt.Parameter("epsilon", 0, 1, textbook=0.1))
    with pytest.raises(
        bt.SimulationError, match="must return a new object for every run, but it returned the same one"
    ):
        bt.simulate(same, PROBLEM, horizon=5, runs=2, run=bt.Run(workers=1))


@pytest.mark.parametrize(("make", "codes"), [(my_agent, []), (share_pulls, [CODE]), (draw_without_the_seed, [CODE])])
def test_runs_that_are_others_when_simulated_again_cause_a_notice(make, codes):
    policy = bt.wrap_policy(make, bt.Parameter("epsilon", 0, 1, textbook=0.5))
    curve = bt.curve(policy, PROBLEM, [0.0, 0.5], horizon=40, runs=2, run=bt.Run(workers=1))
    assert [notice.code for notice in curve.notices] == codes
    assert all("If objects share data" in notice for notice in curve.notices)


def mabwiser_ucb1(alpha, arms, seed):
    from mabwiser.mab import MAB, LearningPolicy

    return MAB(list(range(arms)), LearningPolicy.UCB1(alpha=alpha), seed=seed)


def river_ucb(delta, seed):
    from river import bandit

    return bandit.UCB(delta=delta, burn_in=1, seed=seed)


@pytest.mark.parametrize("regret", ["expected", "realised"])
def test_mabwiser_and_river_have_the_regrets_of_ucb1_with_the_same_index(regret):
    pytest.importorskip("mabwiser")
    pytest.importorskip("river")
    options = {"horizon": 60, "runs": 10, "regret": regret, "checkpoints": [20, 60], "workers": 1}
    regrets = bt.simulate(bt.policies.UCB1Step(noise=0.5), PROBLEM, [0.3, 1.0], **group_settings(**options))
    # In River ties go to another arm. Runs without ties are the same.
    for external, equal_share in ((bt.wrap_policy(mabwiser_ucb1, ALPHA), 1.0), (bt.wrap_policy(river_ucb, DELTA), 0.8)):
        external_regrets = bt.simulate(external, PROBLEM, [0.3, 1.0], **group_settings(**options))
        assert (external_regrets == regrets).mean() >= equal_share


def test_ucb1_with_the_log_of_the_step_agrees_with_its_formula():
    means = draw_instances(PROBLEM, 0, 0).means
    regrets = bt.simulate(bt.policies.UCB1Step(noise=0.25), bt.Mixture(means[:1]), [0.8], horizon=50, runs=1)
    from banditune.core.problem import Instance
    from banditune.core.streams import REWARD_STREAM, Stream, seek
    from banditune.simulation.loop import compute_instance_key

    key, cursor = compute_instance_key(0, 0), np.array([0, 0, 0, REWARD_STREAM])
    pulls, totals = np.zeros(4, int), np.zeros(4)
    for step in range(50):
        width = 0.8 * 0.5 * np.sqrt(2 * math.log(max(step, 1)) / np.maximum(pulls, 1))
        arm = step if step < 4 else int((totals / pulls + width).argmax())
        stream = Stream(*key, cursor)
        seek(stream, arm, int(pulls[arm]))
        totals[arm] += PROBLEM.reward(Instance(means[0], ()), arm, int(pulls[arm]), step, stream)
        pulls[arm] += 1
    assert regrets[0, 0] == pytest.approx((means[0].max() - means[0]) @ pulls)


def test_an_object_has_the_law_of_the_same_policy_of_the_package():
    regrets = bt.simulate(EPSILON, PROBLEM, [0.2], horizon=100, runs=400, run=bt.Run(workers=1))[0]
    expected = bt.simulate(bt.EpsilonGreedy(), PROBLEM, [0.2], horizon=100, runs=4000)[0]
    assert mean_agrees(regrets, float(expected.mean()), expected.std() / math.sqrt(len(expected)))


def test_objects_have_the_same_regrets_in_processes_and_on_tables():
    one_worker = bt.simulate(
        EPSILON,
        PROBLEM,
        [0.2, 0.5],
        horizon=30,
        runs=12,
        simulation=bt.Simulation(common_random_numbers=False),
        run=bt.Run(workers=1),
    )
    two_workers = bt.simulate(
        EPSILON,
        PROBLEM,
        [0.2, 0.5],
        horizon=30,
        runs=12,
        simulation=bt.Simulation(common_random_numbers=False),
        run=bt.Run(workers=2),
    )
    assert (one_worker == two_workers).all()
    table = bt.RewardTable(np.random.default_rng(0).random((3, 40, 4)))
    greedy = bt.simulate(EPSILON, table, [0.0], horizon=40, runs=10, run=bt.Run(workers=1))
    assert greedy == pytest.approx(bt.simulate(bt.Greedy(), table, horizon=40, runs=10))


def test_an_object_is_tuned_and_compared():
    tuning = bt.tune(EPSILON, PROBLEM, horizon=40, budget=60, search=bt.Search(validate=20), run=bt.Run(workers=1))
    assert 0 <= tuning.params["epsilon"] <= 1
    assert tuning.setup.policy["name"] == "my_agent"
    assert (
        len(
            bt.compare(
                [EPSILON, bt.UCB1(noise=0.5)],
                PROBLEM,
                horizon=20,
                budget=20,
                search=bt.Search(validate=10),
                run=bt.Run(workers=1),
            ).entries
        )
        == 2
    )


class GlobalRandomAgent:
    """Draws from the global generators of Python and NumPy."""

    def choose(self):
        return random.randrange(2) ^ int(np.random.randint(2))

    def learn(self, arm, reward):
        pass


def test_global_generators_are_seeded_for_every_run_and_restored():
    external = bt.wrap_policy(lambda width: GlobalRandomAgent(), bt.Parameter("width", 0, 1, textbook=1), name="global")
    random.seed(5)
    first = bt.simulate(external, bt.Bernoulli(arms=2), [1], horizon=20, runs=5, run=bt.Run(workers=1))
    next_draw = random.random()
    random.seed(5)
    assert (
        bt.simulate(external, bt.Bernoulli(arms=2), [1], horizon=20, runs=5, first_instance=0, run=bt.Run(workers=1))
        == first
    ).all()
    assert random.random() == next_draw


def test_threads_change_no_regret_of_an_object():
    external = bt.wrap_policy(lambda width: GlobalRandomAgent(), bt.Parameter("width", 0, 1, textbook=1), name="global")
    one_thread, four_threads = (
        bt.simulate(external, bt.Bernoulli(arms=2), [1], **group_settings(horizon=30, runs=40, **settings))
        for settings in ({"workers": 1}, {"executor": bt.executors.ThreadExecutor(4)})
    )
    assert (one_thread == four_threads).all()


def make_broken_policy(part):
    """An object that fails in one method."""

    class Broken:
        def select(self):
            if part == "select":
                raise KeyError("lost")
            return {"arm": 7, "word": "red", "nan": math.nan}.get(part, 0)

        def update(self, arm, reward):
            if part == "update":
                raise ValueError("no")

    def make(width):
        if part == "make":
            raise RuntimeError("never")
        return Broken()

    return bt.wrap_policy(make, bt.Parameter("width", 0, 1, textbook=1), name="broken")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("make", "cannot be created with {'width': 1.0}: RuntimeError: never"),
        ("select", r"failed to select \(KeyError: 'lost'\) at step 0 of run 0"),
        ("update", r"failed to update \(ValueError: no\) at step 0"),
        ("arm", "from 0 to 3, but the policy 'broken' chose 7 at step 0 of run 0"),
        ("word", "chose 'red'"),
        ("nan", "chose nan"),
    ],
)
def test_errors_of_an_object_name_the_run_and_the_step(part, message):
    with pytest.raises(bt.SimulationError, match=message):
        bt.simulate(make_broken_policy(part), PROBLEM, [1.0], horizon=5, runs=2, run=bt.Run(workers=1))


@bt.kernel.scalar
def pay_three_times(instance, arm, pull, step, stream):
    return 1.0 if pull < 3 else math.inf


@bt.kernel.scalar
def pay_before_step_five(instance, arm, pull, step, stream):
    return math.nan if step >= 5 and arm == 0 else instance.means[arm]


class SecondArm:
    """Pulls arm 1 only, and has no parameter."""

    def select(self):
        return 1

    def update(self, arm, reward):
        assert math.isfinite(reward)


@pytest.mark.parametrize("regret", ["expected", "realised"])
def test_a_reward_that_is_not_finite_is_an_error_with_run_and_step(regret):
    """Rewards of the pulled arm, and of the best arm, which only realised regret reads."""
    for reward, arm, step in ((pay_three_times, 1, 3), (pay_before_step_five, 0, 5)):
        problem = bt.define_problem("odd", lambda size, rng: np.tile([0.9, 0.1], (size, 1)), reward, arms=2)
        spec = SimulationSpec(bt.wrap_policy(SecondArm, ()), problem, 10, regret=regret)
        if arm == 0 and regret == "expected":
            assert np.isfinite(simulate_rows(spec, [[0.0]], range(7, 8), workers=1)).all()
            continue
        with pytest.raises(bt.SimulationError, match=f"'odd' paid another for arm {arm} at step {step} of run 7"):
            simulate_rows(spec, [[0.0]], range(7, 8), workers=1)


@bt.kernel.scalar
def pay_five(instance, arm, pull, step, stream):
    return 5.0


def test_a_reward_outside_its_stated_range_is_an_error():
    problem = bt.define_problem("five", lambda size, rng: rng.random((size, 2)), pay_five, arms=2, rewards="unit")
    with pytest.raises(
        bt.SimulationError, match=r"rewards of 'five' must be in \[0, 1\], .* but arm 0 of run 0 pays 5"
    ):
        bt.simulate(bt.wrap_policy(SecondArm, ()), problem, horizon=5, runs=2)


def test_an_object_without_parameters_is_simulated_and_compared():
    """Arm 1 of means 0.9 and 0.1 has a regret of 0.8 a step."""
    problem, external = bt.Mixture([(0.9, 0.1)]), bt.wrap_policy(SecondArm, ())
    assert bt.simulate(external, problem, horizon=10, runs=3, run=bt.Run(workers=1)) == pytest.approx(8)
    comparison = bt.compare(
        [external, bt.UCB1(noise=0.5)],
        problem,
        horizon=10,
        budget=40,
        search=bt.Search(validate=20),
        run=bt.Run(workers=1),
    )
    assert [entry.policy for entry in comparison.entries] == ["ucb1(noise=0.5)", external.name]


def test_wrong_objects_are_refused(tmp_path):
    width = bt.Parameter("width", 0, 1, textbook=1)
    for make, parameters in ((5, width), (lambda width, other: 1, width), (lambda: 1, width), (lambda width: 1, "x")):
        with pytest.raises(bt.InvalidRequest):
            bt.wrap_policy(make, parameters)
    with pytest.raises(bt.InvalidRequest, match="rewards"):
        bt.wrap_policy(lambda width: 1, width, rewards="odd")
    with pytest.raises(bt.InvalidRequest, match="select_arm or select or choose"):
        bt.simulate(bt.wrap_policy(lambda width: 1, width), PROBLEM, horizon=3, runs=1, run=bt.Run(workers=1))
    with pytest.raises(bt.InvalidRequest, match="a method ask, but"):
        bt.simulate(
            bt.wrap_policy(my_agent, EPSILON.parameters, select="ask"),
            PROBLEM,
            horizon=3,
            runs=1,
            run=bt.Run(workers=1),
        )
    with pytest.raises(bt.InvalidRequest, match="store must identify the code"):
        bt.simulate(EPSILON, PROBLEM, horizon=3, runs=1, run=bt.Run(workers=1, store=tmp_path / "a.ledger"))
    with pytest.raises(bt.InvalidRequest, match="a GPU cannot run Python code"):
        bt.simulate(EPSILON, PROBLEM, horizon=3, runs=1, run=bt.Run(device="gpu"))


def tune_policy(policy):
    return bt.tune(policy, PROBLEM, horizon=100, budget=60, search=bt.Search(validate=20))


def run_exported_code(export):
    """The object that the code of an export creates."""
    from mabwiser.mab import MAB, LearningPolicy
    from river import bandit, proba

    names = {"MAB": MAB, "LearningPolicy": LearningPolicy, "bandit": bandit, "proba": proba, "arms": list(range(4))}
    return eval(export.code, names)


@pytest.mark.parametrize("library", ["mabwiser", "river"])
def test_exported_code_creates_an_equal_policy(library):
    pytest.importorskip(library)
    tuning = tune_policy(bt.policies.UCB1Step(noise=0.2))
    export = tuning.export_params(library)
    assert export.is_same_rule
    assert export.value == pytest.approx(0.4 * tuning.params["gamma"])
    external = bt.wrap_policy(
        lambda width: run_exported_code(export), bt.Parameter("width", 0, 1, textbook=1), name="exported"
    )
    regrets = bt.simulate(external, PROBLEM, [1.0], horizon=60, runs=8, run=bt.Run(workers=1))
    expected = bt.simulate(bt.policies.UCB1Step(noise=0.2), PROBLEM, [tuning.params["gamma"]], horizon=60, runs=8)
    assert (regrets == expected).mean() >= (1.0 if library == "mabwiser" else 0.5)
    other_export = tune_policy(bt.UCB1(noise=0.5)).export_params(library)
    assert not other_export.is_same_rule
    assert "logarithm of the step" in other_export.notes
    assert "the width in the other library is smaller, 39% of the tuned one at step 2" in other_export.notes
    assert tune_policy(bt.EpsilonGreedy()).export_params(library).is_same_rule
    assert "no width" in tune_policy(bt.Thompson(prior=(1, 1))).export_params(library).notes
    for policy in (bt.UCB1(noise=0.5), bt.EpsilonGreedy(), bt.Thompson(prior=(1, 1))):
        assert run_exported_code(tune_policy(policy).export_params(library)) is not None
    assert bt.results.from_json(export.to_json()).code == export.code
    with pytest.raises(bt.InvalidRequest, match="has none like 'gaussian-ts'"):
        tune_policy(bt.GaussianThompson(prior=(0, 1), noise=1)).export_params(library)
    with pytest.raises(bt.InvalidRequest, match="must be one of mabwiser, river"):
        tuning.export_params("vowpal")


def test_a_saved_tuning_is_exported_on_the_command_line(run_banditune, tmp_path):
    tune_policy(bt.policies.UCB1Step(noise=0.5)).save(tmp_path / "tuned.json")
    process = run_banditune("export", "tuned.json", "--to", "river")
    assert process.stdout.startswith("river: bandit.UCB(delta="), process.stderr
    assert run_banditune("export", "tuned.json", "--to", "vowpal").returncode == 2


@pytest.mark.parametrize("workers", [0, -1, "x", True])
def test_wrong_numbers_of_workers_are_refused(workers):
    for executor in (bt.executors.ThreadExecutor, bt.executors.ProcessExecutor):
        with pytest.raises(bt.InvalidRequest, match="`workers` must be a whole number >= 1"):
            executor(workers)
