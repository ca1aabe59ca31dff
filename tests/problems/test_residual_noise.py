"""Residuals: sampled from the logs, kept in the fitted problem, drawn in its rewards."""

from __future__ import annotations

import math

import numpy as np
import pytest

import banditune as bt
from banditune.core.problem import Instance
from banditune.core.streams import REWARD_STREAM, Stream, seek
from banditune.logs.io import frame_tables, log_accumulator
from banditune.logs.models.reward_shape import condense_residuals
from banditune.logs.residual_sample import RewardReservoir, compute_group_medians, hash_numbers
from banditune.problems.problem_variants import list_variants
from banditune.problems.residual_noise import draw_residual_reward
from banditune.simulation.instances import draw_instances
from banditune.simulation.mean_test import check_stated_means
from banditune.study.requests import build_spec

SKEWED = tuple(np.quantile(np.random.default_rng(0).exponential(size=9999), (np.arange(500) + 0.5) / 500).tolist())
PROBLEMS = [
    bt.Gaussian(arms=3, noise=2.0, residuals=SKEWED),
    bt.Gaussian(arms=2, prior=[(0, 1), (5, 1)], noise=2.0, residuals=[SKEWED, tuple(-3 * x for x in SKEWED)]),
    bt.Linear(arms=4, dims=2, noise=0.3, residuals=SKEWED),
    bt.Campaigns([[(0, 1), (1, 1)], [(2, 1), (3, 1), (4, 1)]], rewards="real", noise=2.0, residuals=SKEWED),
]


def draw_rewards(problem, arm, pulls, mean=10.0):
    """Rewards of an arm, in plain Python."""
    instance = Instance(np.full(problem.arms, mean), np.array(problem.options()))
    stream = Stream(1, 2, np.array([0, 0, 0, REWARD_STREAM]))
    rewards = []
    for pull in range(pulls):
        seek(stream, arm, pull)
        rewards.append(problem.reward(instance, arm, pull, pull, stream))
    return np.array(rewards)


def make_skewed_rows(decisions=20_000, campaigns=10, arms=4, seed=1, scale=3.0):
    """A row per decision, with exponential rewards around the means."""
    rng = np.random.default_rng(seed)
    campaign, arm = rng.integers(campaigns, size=decisions), rng.integers(arms, size=decisions)
    means = rng.normal(0, 0.5, (campaigns, arms))
    reward = means[campaign, arm] + scale * (rng.exponential(size=decisions) - 1)
    return {"campaign": campaign, "arm": arm, "reward": reward}


def test_the_sample_of_rewards_does_not_depend_on_blocks():
    rng = np.random.default_rng(2)
    cells, rewards = rng.integers(7, size=10_000), rng.normal(size=10_000)
    at_once, in_parts = RewardReservoir(500), RewardReservoir(500)
    at_once.add(cells, rewards)
    for rows in np.array_split(np.arange(10_000), [1, 7, 400, 401, 9000]):
        in_parts.add(cells[rows], rewards[rows])
    lowest = np.argsort(hash_numbers(np.arange(10_000, dtype=np.uint64)))[:500]
    for reservoir in (at_once, in_parts):
        assert np.array_equal(reservoir.rewards, rewards[lowest])
        assert np.array_equal(reservoir.cells, cells[lowest])
    # Hashes in 100 classes: chi-square with 99 degrees of freedom.
    counts = np.bincount(
        (hash_numbers(np.arange(100_000, dtype=np.uint64)) >> np.uint64(32)).astype(np.int64) * 100 >> 32
    )
    assert abs(((counts - 1000) ** 2 / 1000).sum() - 99) < 4 * math.sqrt(2 * 99)


def test_residuals_are_rewards_minus_the_medians_of_their_cells():
    rows = make_skewed_rows(3000)
    logs = bt.read_logs(rows)
    assert len(logs.residuals.value) == 3000
    assert abs(logs.residuals.value.mean()) < 1e-12
    medians = {}
    for cell in (0, 17, 39):
        campaign, arm = logs.campaigns[logs.campaign[cell]], logs.arms[logs.arm[cell]]
        rewards = rows["reward"][(rows["campaign"].astype(str) == campaign) & (rows["arm"].astype(str) == arm)]
        residuals = np.sort(logs.residuals.value[logs.residuals.cell == cell])
        medians[cell] = np.median(residuals)
        assert residuals - medians[cell] == pytest.approx(np.sort(rewards) - np.median(rewards))
    assert len({round(float(median), 9) for median in medians.values()}) == 1
    # Where the sample contains a small part of a cell, the mean of the cell is the best centre.
    reservoir = RewardReservoir(100)
    reservoir.add(np.zeros(3000, np.int64), rows["reward"])
    mean = np.array([rows["reward"].mean()])
    value = reservoir.compute_residuals(np.array([0]), np.array([3000]), mean).value
    assert value == pytest.approx((reservoir.rewards - mean) * math.sqrt(3000 / 2999))


def test_short_cells_keep_the_skewness_of_rewards():
    rows = make_skewed_rows(20_000, campaigns=250)
    shape = np.array(bt.fit(bt.read_logs(rows)).problem.residuals)
    assert (shape**3).mean() == pytest.approx(2, rel=0.2)


def test_group_medians_agree_with_numpy():
    rng = np.random.default_rng(6)
    group, values = rng.integers(5, size=101), rng.normal(size=101)
    expected = [np.median(values[group == number]) for number in group]
    assert compute_group_medians(group, values) == pytest.approx(expected)


def test_residuals_do_not_depend_on_blocks_and_follow_selected_campaigns(monkeypatch):
    monkeypatch.setattr(log_accumulator, "RewardReservoir", lambda: RewardReservoir(5000))
    rows = make_skewed_rows()
    logs = bt.read_logs(rows)
    assert len(logs.residuals.value) == 5000
    monkeypatch.setattr(frame_tables, "BATCH_ROWS", 777)
    in_blocks = bt.read_logs(rows)
    assert np.array_equal(in_blocks.residuals.cell, logs.residuals.cell)
    assert in_blocks.residuals.value == pytest.approx(logs.residuals.value, rel=1e-9, abs=1e-12)
    assert bt.fit(in_blocks).problem.residuals == bt.fit(logs).problem.residuals
    selected = logs.select_campaigns([2, 5])
    names = [(logs.campaigns[logs.campaign[cell]], logs.arms[logs.arm[cell]]) for cell in logs.residuals.cell]
    expected = [
        (name, value) for name, value in zip(names, logs.residuals.value, strict=True) if name[0] in selected.campaigns
    ]
    selected_names = [
        (selected.campaigns[selected.campaign[cell]], selected.arms[selected.arm[cell]])
        for cell in selected.residuals.cell
    ]
    assert list(zip(selected_names, selected.residuals.value, strict=True)) == expected
    assert len(expected) > 500


def test_condensed_residuals_keep_the_spread_of_heavy_tails():
    rng = np.random.default_rng(3)
    values = rng.standard_t(3, 60_000)
    few = condense_residuals(values, 2048)
    assert len(few) == 2048
    assert few.mean() == pytest.approx(values.mean(), abs=1e-3)
    assert few.std() == pytest.approx(values.std(), rel=0.02)
    assert np.array_equal(condense_residuals(values[:300], 600), np.repeat(np.sort(values[:300]), 2))


@pytest.mark.parametrize("problem", PROBLEMS)
def test_rewards_have_the_means_and_the_shape_of_the_residuals(problem):
    per_arm = isinstance(problem.residuals[0], tuple)
    for arm in range(problem.arms):
        shape = np.array(problem.residuals[arm] if per_arm else problem.residuals)
        assert abs(shape.mean()) < 1e-9
        rewards = draw_rewards(problem, arm, 4000)
        possible_rewards = 10 + problem.noise * shape
        assert np.isin(rewards, possible_rewards).all()
        assert len(np.unique(rewards)) > 490
        assert abs(rewards.mean() - 10) < 4 * problem.noise * shape.std() / math.sqrt(4000)
    assert float((np.array(problem.residuals) ** 2).mean()) == pytest.approx(1)
    spec = build_spec(bt.UCB1(noise=1) if not problem.dims else bt.LinUCB(prior=(0, 1), noise=1), problem, horizon=400)
    assert problem.reward is draw_residual_reward
    check_stated_means(spec, draw_instances(problem, 0, 0).means, draw_instances(problem, 0, 1).means)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_problem_files_and_variants_keep_residuals(problem, tmp_path):
    bt.save_problem(problem, tmp_path / "prior.toml", 100)
    assert bt.load_problem(tmp_path / "prior.toml").problem == problem
    variants = list(list_variants(problem))
    assert len(variants) >= 4
    for _, variant in variants:
        assert variant.residuals
        assert len(draw_rewards(variant, variant.arms - 1, 3)) == 3


def test_without_residuals_rewards_are_gaussian():
    plain = bt.Gaussian(arms=3, noise=2.0)
    assert plain.reward is not draw_residual_reward
    assert list(plain.options()) == [2.0]
    assert "residuals" not in str(
        bt.tune(bt.UCB1(noise=2.0), plain, horizon=20, budget=20, search=bt.Search(validate=10)).setup.problem
    )


@pytest.mark.parametrize(
    ("residuals", "message"),
    [
        ([[1, 2], [3, 4]], "a row for each of the 3 arms"),
        ([1, 1, 1], "not all the same"),
        ([1, math.nan], "finite numbers"),
    ],
)
def test_wrong_residuals_are_refused(residuals, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.Gaussian(arms=3, residuals=residuals)


def test_problems_with_residuals_have_no_lower_bound():
    with pytest.raises(bt.InvalidRequest, match="'gaussian' with residuals"):
        bt.exact.compute_lower_bound(PROBLEMS[0], horizon=100)
    with pytest.raises(bt.InvalidRequest, match='unless `rewards` are "real"'):
        bt.Campaigns([[(1, 1), (1, 1)]], residuals=SKEWED)


def test_fits_note_the_source_of_residuals():
    logs = bt.read_logs(make_skewed_rows())
    for model in ("gaussian", "campaigns"):
        fit = bt.fit(logs, model)
        shape = np.array(fit.problem.residuals)
        assert (shape**3).mean() == pytest.approx(2, rel=0.2)
        assert any("from 20,000 residuals of the logs, with skewness" in note for note in fit.notes)
    per_arm = bt.fit(logs, per_arm=True).problem
    assert np.shape(per_arm.residuals) == (4, 1024)
    parts = (logs.campaign, logs.arm, logs.pulls, logs.total, logs.squares)
    sums = bt.make_logs(*parts, rewards="real")
    assert bt.fit(sums).problem.residuals == ()
    assert any("the logs have only sums, so rewards are assumed to be Gaussian" in note for note in bt.fit(sums).notes)
    few = bt.read_logs(make_skewed_rows(90))
    assert bt.fit(few).problem.residuals == ()
    assert any("too few to estimate the distribution of rewards" in note for note in bt.fit(few).notes)


def test_linear_fits_keep_residuals():
    rows = make_skewed_rows(scale=1.0)
    rows |= {"x1": np.array([0.3, -1.0, 2.0, 0.7])[rows["arm"]]}
    fit = bt.fit(bt.read_logs(rows))
    assert fit.model == "linear"
    assert (np.array(fit.problem.residuals) ** 3).mean() == pytest.approx(2, rel=0.2)


def test_residuals_per_arm_keep_the_noise_of_each_arm():
    rows = make_skewed_rows()
    rows["reward"] = rows["reward"] * np.where(rows["arm"] == 1, 4.0, 1.0)
    shape = np.array(bt.fit(bt.read_logs(rows), per_arm=True).problem.residuals)
    sizes = shape.std(axis=1)
    assert sizes[1] / np.delete(sizes, 1) == pytest.approx(np.full(3, 4.0), rel=0.25)
