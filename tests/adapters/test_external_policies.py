"""Other people's policies: played with the same rewards as ours, and told what to do with a tuned value."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

import banditune as bt
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.instances import draw_instances
from banditune.simulation.spec import SimulationSpec
from conftest import close
from helpers.settings import group_settings

ALPHA = bt.Parameter("alpha", 0, 1, textbook=1)
DELTA = bt.Parameter("delta", 0, 1, textbook=1)
PROBLEM = bt.Bernoulli(arms=4)
CODE = "not-repeatable"


class Mine:
    """An object as anybody might write it."""

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


def mine(arms, epsilon, seed):
    return Mine(arms, epsilon, seed)


EPSILON = bt.wrap_policy(mine, bt.Parameter("epsilon", 0, 1, textbook=0.1))


ONLY: list[Mine] = []


def return_the_only_one(arms, epsilon, seed):
    ONLY.extend([] if ONLY else [Mine(arms, epsilon, seed)])
    return ONLY[0]


PULLS = np.zeros(4)


def share_pulls(arms, epsilon, seed):
    """A new object every time, which counts in an array that all of them have."""
    made = Mine(arms, epsilon, seed)
    made.pulls = PULLS
    return made


def draw_without_the_seed(arms, epsilon, seed):
    return Mine(arms, epsilon, None)


def test_an_object_that_is_returned_again_is_refused():
    same = bt.wrap_policy(return_the_only_one, bt.Parameter("epsilon", 0, 1, textbook=0.1))
    with pytest.raises(
        bt.SimulationError, match="must return a new object for every run, but it returned the same one"
    ):
        bt.simulate(same, PROBLEM, horizon=5, runs=2, run=bt.Run(workers=1))


@pytest.mark.parametrize(("make", "codes"), [(mine, []), (share_pulls, [CODE]), (draw_without_the_seed, [CODE])])
def test_runs_that_are_others_when_simulated_again_cause_a_notice(make, codes):
    policy = bt.wrap_policy(make, bt.Parameter("epsilon", 0, 1, textbook=0.5))
    curve = bt.curve(policy, PROBLEM, [0.0, 0.5], horizon=40, runs=2, run=bt.Run(workers=1))
    assert [notice.code for notice in curve.notices] == codes
    assert all("its objects share data" in notice for notice in curve.notices)


def mabwiser_ucb1(alpha, arms, seed):
    from mabwiser.mab import MAB, LearningPolicy

    return MAB(list(range(arms)), LearningPolicy.UCB1(alpha=alpha), seed=seed)


def river_ucb(delta, seed):
    from river import bandit

    return bandit.UCB(delta=delta, burn_in=1, seed=seed)


@pytest.mark.parametrize("regret", ["expected", "realised"])
def test_mabwiser_and_river_play_as_ours_with_the_same_index_to_the_last_bit(regret):
    pytest.importorskip("mabwiser")
    pytest.importorskip("river")
    options = {"horizon": 60, "runs": 10, "regret": regret, "at": [20, 60], "jobs": 1}
    regrets = bt.simulate(bt.policies.UCB1Step(noise=0.5), PROBLEM, [0.3, 1.0], **group_settings(**options))
    for guest in (bt.wrap_policy(mabwiser_ucb1, ALPHA), bt.wrap_policy(river_ucb, DELTA)):
        theirs = bt.simulate(guest, PROBLEM, [0.3, 1.0], **group_settings(**options))
        # Ties go to another arm in River; without one, all is the same.
        assert (theirs == regrets).mean() > 0.8
        if guest.name == "mabwiser_ucb1":
            assert (theirs == regrets).all()


def test_ucb1_with_the_log_of_the_step_is_played_as_by_hand():
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


def test_any_object_is_played_in_law_as_ours():
    regrets = bt.simulate(EPSILON, PROBLEM, [0.2], horizon=100, runs=400, run=bt.Run(workers=1))[0]
    ours = bt.simulate(bt.EpsilonGreedy(), PROBLEM, [0.2], horizon=100, runs=4000)[0]
    assert close(regrets, float(ours.mean()), ours.std() / math.sqrt(len(ours)))


def test_processes_give_the_same_numbers_and_tables_work():
    one = bt.simulate(
        EPSILON,
        PROBLEM,
        [0.2, 0.5],
        horizon=30,
        runs=12,
        simulation=bt.Simulation(common_random_numbers=False),
        run=bt.Run(workers=1),
    )
    two = bt.simulate(
        EPSILON,
        PROBLEM,
        [0.2, 0.5],
        horizon=30,
        runs=12,
        simulation=bt.Simulation(common_random_numbers=False),
        run=bt.Run(workers=2),
    )
    assert (one == two).all()
    table = bt.RewardTable(np.random.default_rng(0).random((3, 40, 4)))
    greedy = bt.simulate(EPSILON, table, [0.0], horizon=40, runs=10, run=bt.Run(workers=1))
    assert greedy == pytest.approx(bt.simulate(bt.Greedy(), table, horizon=40, runs=10))


def test_a_guest_is_tuned_like_any_policy():
    tuning = bt.tune(EPSILON, PROBLEM, horizon=40, budget=60, search=bt.Search(validate=20), run=bt.Run(workers=1))
    assert 0 <= tuning.params["epsilon"] <= 1
    assert tuning.setup.policy["name"] == "mine"
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


class Global:
    """Draws from generators that the whole process shares."""

    def choose(self):
        return random.randrange(2) ^ int(np.random.randint(2))

    def learn(self, arm, reward):
        pass


def test_generators_that_a_process_shares_are_seeded_for_every_run_and_given_back():
    guest = bt.wrap_policy(lambda width: Global(), bt.Parameter("width", 0, 1, textbook=1), name="global")
    random.seed(5)
    first = bt.simulate(guest, bt.Bernoulli(arms=2), [1], horizon=20, runs=5, run=bt.Run(workers=1))
    left = random.random()
    random.seed(5)
    assert (
        bt.simulate(guest, bt.Bernoulli(arms=2), [1], horizon=20, runs=5, first_instance=0, run=bt.Run(workers=1))
        == first
    ).all()
    assert random.random() == left


def test_threads_play_guests_one_at_a_time_to_the_same_end():
    guest = bt.wrap_policy(lambda width: Global(), bt.Parameter("width", 0, 1, textbook=1), name="global")
    alone, four = (
        bt.simulate(guest, bt.Bernoulli(arms=2), [1], **group_settings(horizon=30, runs=40, **where))
        for where in ({"jobs": 1}, {"cluster": bt.executors.ThreadExecutor(4)})
    )
    assert (alone == four).all()


def broken(where):
    """An object that fails in one place."""

    class Broken:
        def select(self):
            if where == "select":
                raise KeyError("lost")
            return {"arm": 7, "word": "red", "nan": math.nan}.get(where, 0)

        def update(self, arm, reward):
            if where == "update":
                raise ValueError("no")

    def make(width):
        if where == "make":
            raise RuntimeError("never")
        return Broken()

    return bt.wrap_policy(make, bt.Parameter("width", 0, 1, textbook=1), name="broken")


@pytest.mark.parametrize(
    ("where", "sentence"),
    [
        ("make", "cannot be created with {'width': 1.0}: RuntimeError: never"),
        ("select", r"failed to select \(KeyError: 'lost'\) at step 0 of run 0"),
        ("update", r"failed to update \(ValueError: no\) at step 0"),
        ("arm", "from 0 to 3, but the policy 'broken' chose 7 at step 0 of run 0"),
        ("word", "chose 'red'"),
        ("nan", "chose nan"),
    ],
)
def test_what_breaks_is_named_with_run_and_step(where, sentence):
    with pytest.raises(bt.SimulationError, match=sentence):
        bt.simulate(broken(where), PROBLEM, [1.0], horizon=5, runs=2, run=bt.Run(workers=1))


@bt.kernel.scalar
def pays_at_first(instance, arm, pull, step, stream):
    return 1.0 if pull < 3 else math.inf


@bt.kernel.scalar
def pays_before_step_five(instance, arm, pull, step, stream):
    return math.nan if step >= 5 and arm == 0 else instance.means[arm]


class Second:
    """Pulls arm 1 only, and has nothing to tune."""

    def select(self):
        return 1

    def update(self, arm, reward):
        assert math.isfinite(reward)


@pytest.mark.parametrize("regret", ["expected", "realised"])
def test_a_reward_that_is_not_a_number_is_named_with_run_and_step(regret):
    """That of the arm that was pulled, and that of the best arm, which only realised regret looks at."""
    for reward, arm, step in ((pays_at_first, 1, 3), (pays_before_step_five, 0, 5)):
        problem = bt.define_problem("odd", lambda size, rng: np.tile([0.9, 0.1], (size, 1)), reward, arms=2)
        spec = SimulationSpec(bt.wrap_policy(Second, ()), problem, 10, regret=regret)
        if arm == 0 and regret == "expected":
            assert np.isfinite(simulate_rows(spec, [[0.0]], range(7, 8), workers=1)).all()
            continue
        with pytest.raises(bt.SimulationError, match=f"'odd' paid another for arm {arm} at step {step} of run 7"):
            simulate_rows(spec, [[0.0]], range(7, 8), workers=1)


@bt.kernel.scalar
def pays_five(instance, arm, pull, step, stream):
    return 5.0


def test_a_problem_must_keep_its_word_to_guests_too():
    problem = bt.define_problem("five", lambda size, rng: rng.random((size, 2)), pays_five, arms=2, rewards="unit")
    with pytest.raises(
        bt.SimulationError, match=r"rewards of 'five' must be in \[0, 1\], .* but arm 0 of run 0 pays 5"
    ):
        bt.simulate(bt.wrap_policy(Second, ()), problem, horizon=5, runs=2)


def test_a_guest_without_parameters_is_played_and_compared():
    """Arm 1 of means 0.9 and 0.1 loses 0.8 a step."""
    problem, guest = bt.Mixture([(0.9, 0.1)]), bt.wrap_policy(Second, ())
    assert bt.simulate(guest, problem, horizon=10, runs=3, run=bt.Run(workers=1)) == pytest.approx(8)
    compared = bt.compare(
        [guest, bt.UCB1(noise=0.5)],
        problem,
        horizon=10,
        budget=40,
        search=bt.Search(validate=20),
        run=bt.Run(workers=1),
    )
    assert [entry.policy for entry in compared.entries] == ["ucb1(noise=0.5)", guest.name]


def test_what_cannot_be_a_guest_is_refused(tmp_path):
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
            bt.wrap_policy(mine, EPSILON.parameters, select="ask"), PROBLEM, horizon=3, runs=1, run=bt.Run(workers=1)
        )
    with pytest.raises(bt.InvalidRequest, match="store must identify the code"):
        bt.simulate(EPSILON, PROBLEM, horizon=3, runs=1, run=bt.Run(workers=1, store=tmp_path / "a.ledger"))
    with pytest.raises(bt.InvalidRequest, match="no GPU"):
        bt.simulate(EPSILON, PROBLEM, horizon=3, runs=1, run=bt.Run(device="gpu"))


def tuned(policy):
    return bt.tune(policy, PROBLEM, horizon=100, budget=60, search=bt.Search(validate=20))


def made(export):
    """The object that an export's code makes."""
    from mabwiser.mab import MAB, LearningPolicy
    from river import bandit, proba

    names = {"MAB": MAB, "LearningPolicy": LearningPolicy, "bandit": bandit, "proba": proba, "arms": list(range(4))}
    return eval(export.code, names)


@pytest.mark.parametrize("library", ["mabwiser", "river"])
def test_exports_make_objects_with_the_equal_parameter(library):
    pytest.importorskip(library)
    step = tuned(bt.policies.UCB1Step(noise=0.2))
    found = step.export_params(library)
    assert found.is_same_rule
    assert found.value == pytest.approx(0.4 * step.params["gamma"])
    guest = bt.wrap_policy(lambda width: made(found), bt.Parameter("width", 0, 1, textbook=1), name="exported")
    regrets = bt.simulate(guest, PROBLEM, [1.0], horizon=60, runs=8, run=bt.Run(workers=1))
    ours = bt.simulate(bt.policies.UCB1Step(noise=0.2), PROBLEM, [step.params["gamma"]], horizon=60, runs=8)
    assert (regrets == ours).mean() >= (1.0 if library == "mabwiser" else 0.5)
    horizon = tuned(bt.UCB1(noise=0.5)).export_params(library)
    assert not horizon.is_same_rule
    assert "logarithm of the step" in horizon.notes
    assert "the other library's is narrower, 39% of it at step 2" in horizon.notes
    assert tuned(bt.EpsilonGreedy()).export_params(library).is_same_rule
    assert "no width" in tuned(bt.Thompson(prior=(1, 1))).export_params(library).notes
    for policy in (bt.UCB1(noise=0.5), bt.EpsilonGreedy(), bt.Thompson(prior=(1, 1))):
        assert made(tuned(policy).export_params(library)) is not None
    assert bt.results.from_json(found.to_json()).code == found.code
    with pytest.raises(bt.InvalidRequest, match="has none like 'gaussian-ts'"):
        tuned(bt.GaussianThompson(prior=(0, 1), noise=1)).export_params(library)
    with pytest.raises(bt.InvalidRequest, match="must be one of mabwiser, river"):
        step.export_params("vowpal")


def test_a_saved_tuning_is_exported_on_the_command_line(banditune, tmp_path):
    tuned(bt.policies.UCB1Step(noise=0.5)).save(tmp_path / "tuned.json")
    process = banditune("export", "tuned.json", "--to", "river")
    assert process.stdout.startswith("river: bandit.UCB(delta="), process.stderr
    assert banditune("export", "tuned.json", "--to", "vowpal").returncode == 2


@pytest.mark.parametrize("workers", [0, -1, "x", True])
def test_numbers_of_workers_that_cannot_be_are_refused(workers):
    for cluster in (bt.executors.ThreadExecutor, bt.executors.ProcessExecutor):
        with pytest.raises(bt.InvalidRequest, match="`workers` must be a whole number >= 1"):
            cluster(workers)
