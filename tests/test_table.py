"""Tables of known rewards: played as they stand, or row by row at random."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditune as bt
from banditune.engine.run import instances
from conftest import close

rng = np.random.default_rng(0)
TABLES = rng.random((7, 60, 3)).round(3)


def ucb1_by_hand(table, gamma):
    """UCB1 on a table, as plainly as can be: the realised regret against the best column."""
    steps, arms = table.shape
    pulls, totals, regret = np.zeros(arms), np.zeros(arms), 0.0
    best = int(table.mean(axis=0).argmax())
    for step in range(steps):
        width = np.sqrt(2 * math.log(steps) / np.maximum(pulls, 1))
        arm = step if step < arms else int((totals / np.maximum(pulls, 1) + gamma * width).argmax())
        pulls[arm] += 1
        totals[arm] += table[step, arm]
        regret += table[step, best] - table[step, arm]
    return regret


def test_tables_in_their_order_are_played_as_by_hand():
    problem = bt.RewardTable(TABLES)
    regrets = bt.simulate(bt.UCB1(noise=0.5), problem, [0.1, 0.5], horizon=60, runs=300)
    means = instances(problem, 0, 0).means
    own = {tuple(np.round(table.mean(axis=0), 12)): table for table in TABLES}
    for run in range(40):
        table = own[tuple(np.round(means[run], 12))]
        for row, gamma in enumerate((0.1, 0.5)):
            assert regrets[row, run] == pytest.approx(ucb1_by_hand(table, gamma), abs=1e-9)


def test_all_tables_are_equally_likely():
    means = np.concatenate([instances(bt.RewardTable(TABLES), 0, block).means for block in range(20)])
    counts = np.array([(np.abs(means - table.mean(axis=0)).max(axis=1) < 1e-12).sum() for table in TABLES])
    share = len(means) / len(TABLES)
    assert counts.sum() == len(means)
    assert np.abs(counts - share).max() < 4 * math.sqrt(share * (1 - 1 / len(TABLES)))


def test_a_single_table_draws_rows_with_replacement():
    # The first arm always pays a tenth more than the second in the same row: shared rows show in the regret's spread.
    base = rng.random(50) * 0.9
    problem = bt.RewardTable(np.stack([base + 0.1, base], axis=1))
    assert problem.shuffled
    realised = bt.simulate(bt.UCB1(noise=0.5), problem, [1.0], horizon=500, runs=400, regret="realised")[0]
    expected = bt.simulate(bt.UCB1(noise=0.5), problem, [1.0], horizon=500, runs=400)[0]
    np.testing.assert_allclose(realised, expected, atol=1e-9)
    noise = bt.RewardTable(np.stack([base + 0.1, rng.permutation(base)], axis=1))
    realised, expected = (
        bt.simulate(bt.UCB1(noise=0.5), noise, [1.0], horizon=500, runs=4000, regret=regret)[0]
        for regret in ("realised", "expected")
    )
    assert close(realised - expected, 0.0)
    assert np.std(realised - expected) > 1


def test_drawn_rows_are_like_independent_draws():
    # Binary rewards with one success rate a column: the table stands for Bernoulli arms with these means.
    table = np.zeros((100, 2))
    table[:60, 0] = 1
    table[rng.permutation(100)[:40], 1] = 1
    shuffled = bt.simulate(bt.UCB1(noise=0.5), bt.RewardTable(table), [0.3], horizon=200, runs=4000)[0]
    bernoulli = bt.simulate(bt.UCB1(noise=0.5), bt.Mixture([[0.6, 0.4]]), [0.3], horizon=200, runs=4000)[0]
    se = bernoulli.std(ddof=1) / math.sqrt(len(bernoulli))
    assert close(shuffled, float(bernoulli.mean()), se)


def test_own_noise_draws_other_rows():
    problem = bt.RewardTable(TABLES[0])
    regrets = bt.simulate(bt.UCB1(noise=0.5), problem, [0.3, 0.3], horizon=100, runs=50, noise="own")
    assert (regrets[0] != regrets[1]).any()


def test_rewards_say_which_policies_can_play():
    assert bt.RewardTable(TABLES).rewards == "unit"
    assert bt.RewardTable(TABLES * 3).rewards == "real"
    assert bt.RewardTable(TABLES > 0.5).rewards == "binary"
    bt.simulate(bt.Thompson(prior=(1, 1)), bt.RewardTable(TABLES > 0.5), horizon=20, runs=2)
    with pytest.raises(bt.BadRequest, match=r"needs rewards in \[0, 1\]"):
        bt.simulate(bt.Thompson(prior=(1, 1)), bt.RewardTable(TABLES * 3), horizon=20, runs=2)


def test_a_table_can_be_tuned_and_says_so(tmp_path):
    tuning = bt.tune(bt.UCB1(noise=0.5), bt.RewardTable(TABLES), horizon=60, budget=200, validate=50)
    assert tuning.setup.regret == "realised"
    assert tuning.setup.problem["digest"] == bt.RewardTable(TABLES).digest
    with pytest.raises(bt.BadRequest, match="`horizon <= 60` must hold"):
        bt.tune(bt.UCB1(noise=0.5), bt.RewardTable(TABLES), horizon=61)


@pytest.mark.parametrize("tables", [1, [1, 2], [[1], [2]], [[1, math.nan]], "x", [[[1, 2]], [[1]]], []])
def test_what_is_no_table_is_refused(tables):
    with pytest.raises(bt.BadRequest):
        bt.RewardTable(tables)


def test_tables_come_from_files(banditune, tmp_path):
    lines = ["day,left,right"] + [f"{day},{day % 2},{(day + row) % 2}" for day in range(3) for row in range(40)]
    (tmp_path / "rewards.csv").write_text("\n".join(lines))
    np.save(tmp_path / "rewards.npy", TABLES)
    done = banditune("tune", "--policy", "ucb1", "--problem", "reward-table:file=rewards.csv,column=day",
                     "--horizon", "40", "--budget", "50", "--validate", "20", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = banditune("curve", "--policy", "ucb1", "--problem", "reward-table:file=rewards.npy,shuffled=true",
                     "--horizon", "100", "--runs", "20", "--values", "0,1")  # fmt: skip
    assert done.returncode == 0, done.stderr
    done = banditune("curve", "--policy", "ucb1", "--problem", "reward-table:file=none.csv", "--horizon", "100")
    assert done.returncode == 2
    assert "cannot be read" in done.stderr


def test_rows_are_drawn_or_not_and_nothing_else(tmp_path):
    from banditune.problems import reward_table

    np.save(tmp_path / "one.npy", TABLES[0])
    (tmp_path / "one.csv").write_text("a,b\n1,0\n0,1\n")
    for name in ("one.npy", "one.csv"):
        told = {None: True, "true": True, "False": False, True: True, False: False}
        assert {word: reward_table(tmp_path / name, word).shuffled for word in told} == told
        for word in ("maybe", "", 2, "none"):
            with pytest.raises(bt.BadRequest, match=f"^`shuffled` must be True, .* but got {word!r}; leave it out"):
                reward_table(tmp_path / name, word)
    for odd in ("true", "no", 1, 0.0, [True]):
        with pytest.raises(bt.BadRequest, match=r"^`shuffled` must be True"):
            bt.RewardTable(TABLES, odd)
    assert bt.RewardTable(TABLES, np.True_).shuffled is True
    assert not bt.RewardTable(TABLES).shuffled


def test_a_table_without_names_is_refused(tmp_path):
    from banditune.problems import problem_from, reward_table

    (tmp_path / "bare.csv").write_text("0.5,0.25\n1,0\n")
    with pytest.raises(bt.BadRequest, match="must name the arms"):
        reward_table(tmp_path / "bare.csv")
    with pytest.raises(bt.BadRequest, match="must be one of bernoulli"):
        problem_from({"name": "reward-table", "file": str(tmp_path / "bare.csv")})
