"""Backtests: policies are evaluated on campaigns that the search did not use."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from importlib import import_module

import backtests
import numpy as np
import pytest

import banditune as bt
from banditune.cli import app
from banditune.cli.specs import parse_policy
from banditune.logs.models.equal_arms_test import compute_equal_arms_p
from banditune.logs.models.signed_spread import fit_arm_spread
from banditune.registry import collect_policies
from banditune.reports.report_builder import build_report_content
from banditune.study.backtest_evaluators import make_evaluator
from banditune.study.backtest_problems import scale_arm_means
from banditune.study.parameter_values import explain_not_backtested
from banditune.study.requests import build_spec
from helpers.paths import ROOT

SMOKING = ROOT / "examples" / "data" / "smoking-cessation-trials.csv"


def make_beta_logs(campaigns, arms, pulls, prior=(2, 8), seed=0):
    """Logs of campaigns with means from a Beta prior, and these means."""
    rng = np.random.default_rng(seed)
    means = rng.beta(*prior, (campaigns, arms))
    wins = rng.binomial(pulls, means)
    campaign, arm = np.divmod(np.arange(campaigns * arms), arms)
    return bt.make_logs(campaign, arm, np.full(campaigns * arms, pulls), wins.ravel()), means


def make_equal_logs(campaigns, arms, pulls, seed):
    """Logs of campaigns with equal arms."""
    rng = np.random.default_rng(seed)
    wins = rng.binomial(pulls, np.repeat(rng.beta(4, 16, campaigns), arms))
    return bt.make_logs(*np.divmod(np.arange(campaigns * arms), arms), np.full(campaigns * arms, pulls), wins)


def test_fit_writes_a_problem_file(run_banditune, tmp_path):
    process = run_banditune("fit", str(SMOKING), "-o", "prior.toml", "--save", "fit.json", "--plot", "fit.svg")
    assert process.returncode == 0, process.stderr
    assert "columns: campaign = 'campaign', arm = 'arm', pulls = 'pulls', successes = 'successes'" in process.stdout
    loaded = bt.load_problem(tmp_path / "prior.toml")
    logs = bt.read_logs(SMOKING)
    assert loaded.problem == bt.fit(logs).problem
    assert loaded.horizon == int(np.median(logs.decision_counts))
    assert bt.load_result(tmp_path / "fit.json").model == "beta-binomial"
    assert (tmp_path / "fit.svg").stat().st_size > 1000
    assert "# beta-binomial fitted to smoking-cessation-trials.csv" in (tmp_path / "prior.toml").read_text()
    (tmp_path / "bad.csv").write_text("campaign,arm,reward\na,b,1\na,c,x\n")
    process = run_banditune("fit", "bad.csv")
    assert process.returncode == 2
    assert "line 3: the reward must be a finite number" in process.stderr
    assert "Traceback" not in process.stderr


def test_skipped_rows_are_noted_once_and_in_all_files(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{campaign},{arm},10,{arm + campaign}" for campaign in range(4) for arm in range(2)]
    (tmp_path / "logs.csv").write_text("\n".join(["campaign,arm,pulls,successes", *rows, "4,0,10,11"]))
    text = "left out: 1 of 9 rows cannot be read (line 10: successes and pulls must be whole numbers"
    app(["fit", "logs.csv", "--skip-bad", "--save", "f.json", "-o", "p.toml"], standalone_mode=False)
    assert capsys.readouterr().out.count(text) == 1
    assert f"# {text}" in (tmp_path / "p.toml").read_text()
    app(["fit", "logs.csv", "--skip-bad", "-q"], standalone_mode=False)
    assert capsys.readouterr().err.count(text) == 1
    logs = bt.read_logs("logs.csv", settings=bt.ReadSettings(skip_bad=True))
    backtest = bt.backtest(bt.UCB1(noise=0.5), logs, horizon=20, budget=12)
    for result in (bt.load_result("f.json"), bt.fit(logs.select_campaigns([0, 1])), backtest):
        assert sum(note.startswith(text) for note in result.notes) == 1
        assert text in build_report_content(result).sections[1 if result is backtest else 0].paragraphs[0]


def test_the_report_of_a_fit_states_how_to_repeat_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{campaign},{arm},10,{arm + campaign}" for campaign in range(4) for arm in range(2)]
    (tmp_path / "my logs.csv").write_text("\n".join(["week,banner,shown,clicks", *rows]))
    command = ["fit", "my logs.csv", "--campaign", "week", "--features", "", "--confidence", "0.9"]
    app([*command, "--save", "f.json", "-o", "p.toml", "-q"], standalone_mode=False)
    columns = ("columns", "campaign = 'week', arm = 'banner', pulls = 'shown', successes = 'clicks'")
    content = build_report_content(bt.load_result("f.json")).sections[-1]
    assert (content.title, content.code) == ("How to repeat this", f"banditune {shlex.join(command)}")
    assert columns in content.table.rows
    app([*shlex.split(content.code)[1:], "--save", "again.json", "-q"], standalone_mode=False)
    assert bt.load_result("again.json") == bt.load_result("f.json")
    from_python = build_report_content(bt.fit(bt.read_logs("my logs.csv", campaign="week"))).sections[-1]
    assert (from_python.title, from_python.code) == ("How to repeat this", "")
    assert "Repeat it from Python" in from_python.paragraphs[0]
    assert columns in from_python.table.rows


def test_backtest_works_on_the_command_line(run_banditune, tmp_path):
    process = run_banditune(
        "backtest", str(SMOKING), "--policy", "ucb1", "--budget", "50", "--share", "50%", "-o", "b.json"
    )
    assert process.returncode == 0, process.stderr
    assert "on campaigns left out" in process.stdout
    process = run_banditune("report", "b.json", "-o", "b.html")
    assert process.returncode == 0, process.stderr
    page = (tmp_path / "b.html").read_text()
    assert "Campaigns that were left out" in page
    assert "All sections below this table are about the fitted problem" in page
    assert "campaigns are 60 to 1,217 decisions long" in page
    assert "banditune backtest" in page


def test_a_backtest_from_python_has_no_command():
    backtest = bt.backtest(bt.UCB1(noise=0.5), make_beta_logs(8, 3, 20)[0], horizon=30, budget=12)
    content = build_report_content(backtest).sections[-1]
    assert (content.title, content.code) == ("How to repeat this", "")
    assert "Repeat it from Python" in content.paragraphs[0]


def test_a_backtest_states_its_arguments_and_the_campaigns_that_it_left_out():
    logs, _ = make_beta_logs(8, 3, 20)
    with pytest.raises(bt.InvalidRequest, match="in this order, but got Logs and UCB1"):
        bt.backtest(logs, bt.UCB1(noise=0.5))
    # Four of the campaigns are repeated with one arm only.
    first_arms = np.flatnonzero(logs.arm == 0)[:4]
    campaign = np.concatenate([logs.campaign, 8 + logs.campaign[first_arms]])
    columns = (np.concatenate([column, column[first_arms]]) for column in (logs.arm, logs.pulls, logs.total))
    backtest = bt.backtest(bt.UCB1(noise=0.5), bt.make_logs(campaign, *columns), horizon=30, budget=12)
    skipped = 12 - backtest.fit.campaigns - backtest.campaigns
    assert skipped > 0
    assert f"{skipped} of the campaigns that were left out had one arm" in repr(backtest)
    assert f"evaluated on {backtest.campaigns} others" in repr(backtest)
    unchanged = replace(backtest, tuning=replace(backtest.tuning, params=backtest.tuning.textbook_params))
    assert "decisions), which is the textbook default." in repr(unchanged)


def test_a_backtest_warns_of_another_noise_than_that_of_the_logs():
    rng = np.random.default_rng(0)
    campaign, arm = (part.ravel() for part in np.meshgrid(np.arange(6), np.arange(2), indexing="ij"))
    rewards = rng.normal(100, 5, (12, 1)) + rng.normal(0, 20, (12, 20))
    squares = 20 * rewards.var(axis=1)
    logs = bt.make_logs(campaign, arm, np.full(12, 20), rewards.sum(axis=1), squares, rewards="real")
    text = "assumes that rewards have a standard deviation of"
    for policy in (bt.UCB1(), bt.UCB1(noise=20)):
        assert text not in repr(bt.backtest(policy, logs, budget=12, horizon=30))
    assert f"{text} 0.5" in repr(bt.backtest(bt.UCB1(noise=0.5), logs, budget=12, horizon=30))


def test_left_out_campaigns_are_evaluated_on_their_own_data(monkeypatch):
    monkeypatch.setattr(import_module("banditune.study.backtest_evaluators"), "EVALUATION_RUNS", 80_000)
    logs, means = make_beta_logs(12, 3, 100_000)
    backtest = bt.backtest(bt.UCB1(noise=0.5), logs, horizon=100, budget=100, seed=3)
    # With so many pulls the means are known, so the true means are simulated.
    order = np.random.default_rng([3, 12]).permutation(12)[6:]
    truth = bt.simulate(
        bt.UCB1(noise=0.5),
        bt.Mixture(means[np.sort(order)]),
        [backtest.tuning.params["gamma"], 1.0],
        horizon=100,
        runs=40_000,
    )
    for estimate, regrets in ((backtest.regret, truth[0]), (backtest.textbook_regret, truth[1])):
        se = regrets.std() / np.sqrt(len(regrets))
        assert abs(estimate.mean - regrets.mean()) < 6 * se
    assert backtest.campaigns == 6
    assert backtest.gain.mean == pytest.approx(backtest.textbook_regret.mean - backtest.regret.mean)
    best = means[order].max(axis=1).mean()
    assert backtest.reward.mean == pytest.approx(best - backtest.regret.mean / 100, abs=2e-3)
    assert backtest.logged_reward.mean == pytest.approx(means[order].mean(), abs=2e-3)


def test_the_interval_is_over_campaigns_not_runs():
    # Few campaigns that differ much. More runs do not make their mean more certain.
    logs, _ = make_beta_logs(8, 2, 5000, prior=(1, 1))
    backtest = bt.backtest(bt.UCB1(noise=0.5), logs, horizon=200, budget=60)
    assert backtest.regret.runs == 4
    assert backtest.regret.se > 0.02 * backtest.regret.mean
    assert bt.results.from_json(backtest.to_json()).gain.mean == backtest.gain.mean


def test_the_spread_of_equal_arms_is_0_on_average_and_may_be_negative():
    spreads = [fit_arm_spread(make_equal_logs(20, 4, 50, seed)).spread for seed in range(40)]
    values = np.array([spread.value for spread in spreads])
    assert (values < 0).any()
    assert (values > 0).any()
    assert abs(values.mean()) < 4 * values.std(ddof=1) / np.sqrt(40)
    # Chance makes 1 / 50, and 60 degrees of freedom are left within 20 campaigns.
    assert np.mean([spread.chance_spread for spread in spreads]) == pytest.approx(1 / 50, rel=0.05)
    assert 50 < np.mean([spread.degrees for spread in spreads]) < 61


def test_the_spread_of_normal_arms_has_a_closed_form():
    """With equally many pulls of each arm, spread and error are exact."""
    rng = np.random.default_rng(0)
    mean, squares = rng.normal(0, 0.3, 60), rng.chisquare(9, 60)
    logs = bt.make_logs(*np.divmod(np.arange(60), 3), np.full(60, 10), 10 * mean, squares, rewards="real")
    noise = squares.sum() / (60 * 9)
    spread = fit_arm_spread(logs).spread
    assert spread.value == pytest.approx(mean.reshape(20, 3).var(axis=1, ddof=1).mean() / noise - 0.1, rel=1e-3)
    assert spread.chance_spread == pytest.approx(0.1)
    assert 30 < spread.degrees < 40


def covers(spread, true, rng):
    """Whether the 95% interval of a spread contains the true value."""
    low, high = np.quantile(spread.draw(rng, 4000), (0.025, 0.975))
    return low <= true <= high


@pytest.mark.parametrize("sd", [0.0, 0.3])
def test_intervals_of_the_spread_of_normal_arms_cover(sd):
    covered = []
    for seed in range(300):
        rng = np.random.default_rng([5, seed])
        pulls = rng.integers(3, 60, 80)
        total = pulls * (
            np.repeat(rng.normal(0, 5, 20), 4) + sd * rng.normal(size=80) + rng.normal(size=80) / np.sqrt(pulls)
        )
        logs = bt.make_logs(*np.divmod(np.arange(80), 4), pulls, total, rng.chisquare(pulls - 1), rewards="real")
        covered.append(covers(fit_arm_spread(logs).spread, sd**2, rng))
    assert np.mean(covered) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 300)


@pytest.mark.slow
@pytest.mark.parametrize("size", [np.inf, 30.0])
def test_intervals_of_the_spread_of_beta_arms_cover(size):
    covered = []
    for seed in range(200):
        rng = np.random.default_rng([5, seed])
        centre = rng.beta(4, 16, (20, 1))
        means = (
            np.repeat(centre, 4, axis=1) if size == np.inf else rng.beta(size * centre, size * (1 - centre), (20, 4))
        )
        pulls = rng.integers(10, 200, (20, 4))
        covered.append(
            covers(fit_arm_spread(backtests.binary(20, pulls, rng.binomial(pulls, means))).spread, 1 / (size + 1), rng)
        )
    assert np.mean(covered) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 200)


def test_logs_of_equal_arms_show_no_gain():
    backtests_of_seeds = [
        bt.backtest(
            bt.UCB1(noise=0.5), make_equal_logs(20, 5, 20, s), horizon=50, budget=12, seed=s, run=bt.Run(workers=1)
        )
        for s in range(16)
    ]
    for kind in ("gain", "reward_difference"):
        means = np.array([getattr(backtest, kind).mean for backtest in backtests_of_seeds])
        assert abs(means.mean()) < 4 * means.std(ddof=1) / np.sqrt(16)
        # At most 8% of intervals may exclude 0: of 16, six or more of them do with a probability of 1 in 1,000.
        assert (
            sum(getattr(backtest, kind).low > 0 or getattr(backtest, kind).high < 0 for backtest in backtests_of_seeds)
            < 6
        )
    assert all(
        0 <= backtest.regret.low <= backtest.regret.mean <= backtest.regret.high for backtest in backtests_of_seeds
    )
    assert any(backtest.regret.mean == 0 for backtest in backtests_of_seeds)
    is_noted = [
        any("show no difference between arms beyond chance (p = " in note for note in backtest.notes)
        for backtest in backtests_of_seeds
    ]
    assert is_noted == [backtest.equal_arms_p > 0.05 for backtest in backtests_of_seeds]
    assert np.mean(is_noted) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / 16)
    page = build_report_content(backtests_of_seeds[is_noted.index(True)])
    assert (
        page.sections[0]
        .paragraphs[1]
        .startswith("The 10 campaigns that were left out show no difference between arms beyond chance (p = ")
    )
    assert "tuned minus logged" in [figure[0] for figure in page.key_figures]


def test_the_difference_to_the_logs_is_paired():
    logs = backtests.together(np.random.default_rng(0), 400, 40, 200.0).logs
    backtest = bt.backtest(bt.UCB1(noise=0.5), logs, horizon=200, budget=24)
    assert backtest.reward_difference.mean == pytest.approx(backtest.reward.mean - backtest.logged_reward.mean)
    assert backtest.reward_difference.se < 0.3 * np.hypot(backtest.reward.se, backtest.logged_reward.se)
    assert "tuned minus logged" in repr(backtest)
    assert backtest.to_pandas()["name"].tolist()[-1] == "reward_difference"
    assert bt.results.from_json(backtest.to_json()) == backtest
    assert backtest.equal_arms_p < 0.01
    assert not any("beyond chance" in note for note in backtest.notes)


def test_old_backtests_without_a_difference_can_be_read():
    backtest = bt.backtest(bt.UCB1(noise=0.5), make_beta_logs(8, 3, 20)[0], horizon=30, budget=12)
    old = json.loads(backtest.to_json())
    del old["reward_difference"], old["equal_arms_p"]
    read = bt.results.from_json(json.dumps(old))
    assert read.reward_difference is None
    assert "tuned minus logged" not in repr(read)


@pytest.mark.parametrize("kind", ["binary", "real", "unit"])
def test_p_values_of_equal_arms_are_uniform(kind):
    p_values = []
    for seed in range(60):
        rng = np.random.default_rng([6, seed])
        campaign, arm = np.divmod(np.arange(32), 4)
        pulls = rng.integers(20, 60, 32)
        if kind == "binary":
            logs = bt.make_logs(campaign, arm, pulls, rng.binomial(pulls, np.repeat(rng.uniform(0.1, 0.9, 8), 4)))
        elif kind == "real":
            total = pulls * rng.normal(0, 1 / np.sqrt(pulls)) + pulls * np.repeat(rng.normal(0, 5, 8), 4)
            logs = bt.make_logs(campaign, arm, pulls, total, rng.chisquare(pulls - 1), rewards="real")
        else:
            rewards = [rng.beta(2, 2, count) for count in pulls]
            squares = [sample.var() * len(sample) for sample in rewards]
            logs = bt.make_logs(campaign, arm, pulls, [sample.sum() for sample in rewards], squares, rewards="unit")
        p_values.append(compute_equal_arms_p(logs))
    assert abs(np.mean(p_values) - 0.5) < 4 / np.sqrt(12 * 60)
    assert np.mean(np.array(p_values) < 0.2) < 0.2 + 4 * np.sqrt(0.2 * 0.8 / 60)


REPETITIONS = 150
DESIGNS = ["5 pulls", "20 pulls", "20 pulls, centres", "20 pulls, real", "uneven"]


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_intervals_of_a_backtest_cover_the_truth_of_the_population(name):
    measurements, truth = backtests.measure(name, REPETITIONS, seed=1)
    assert (
        backtests.cover(measurements, truth.mean(axis=0)[:-1]) > 0.95 - 4 * np.sqrt(0.95 * 0.05 / REPETITIONS)
    ).all()


@pytest.mark.parametrize(
    "problem",
    [
        bt.Linear(prior=([1, -1], [[0.5, 0.1], [0.1, 0.2]]), features=np.eye(4, 2) + 0.1, noise=1.0),
        bt.Logistic(prior=([1, -1], [[0.5, 0.1], [0.1, 0.2]]), feature_prior=(0, 1), arms=6, dims=2),
    ],
    ids=["linear", "logistic"],
)
def test_arms_with_features_are_scaled_to_a_given_spread(problem):
    variances = np.array([1e-4, 4e-4, 9e-4, 1.6e-3])
    scaled = scale_arm_means(problem, variances)
    sample = scaled.sample(8192, np.random.default_rng(0))
    spread = sample.means.var(axis=1, ddof=1).reshape(-1, 4)
    error = np.sqrt(1 / 2048 + 1 / 4096) * spread.std(axis=0)
    assert (np.abs(spread.mean(axis=0) - variances) < 4 * error).all()
    assert np.array_equal(sample.features, problem.sample(8192, np.random.default_rng(0)).features)


@pytest.mark.slow
def test_equal_arms_with_features_show_no_gain():
    measurements = np.array(
        [backtests.measure_without_spread("no spread, features", number, 3)[0] for number in range(24)]
    )
    difference = measurements[:, backtests.KINDS.index("reward_difference")]
    assert abs(difference[:, 0].mean()) < 4 * difference[:, 0].std(ddof=1) / np.sqrt(24)
    assert 1 - backtests.cover(difference, 0.0) < 0.08 + 4 * np.sqrt(0.08 * 0.92 / 24)


@pytest.mark.slow
def test_logs_with_features_can_be_backtested():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(5, 2))
    rows = {"campaign": [], "arm": [], "reward": [], "x1": [], "x2": []}
    for campaign in range(12):
        theta = rng.normal(size=2)
        for arm in np.tile(np.arange(5), 20):
            values = (campaign, arm, features[arm] @ theta + 0.3 * rng.normal(), *features[arm])
            for name, value in zip(rows, values, strict=True):
                rows[name].append(value)
    logs = bt.read_logs(rows)
    backtest = bt.backtest(bt.LinUCB(prior=(0, 1), noise=0.5), logs, horizon=50, budget=60)
    assert backtest.fit.model == "linear"
    assert backtest.regret.mean < backtest.textbook_regret.mean
    # Errors are over the campaigns that were left out, not over thousands of runs.
    assert backtest.reward.runs == 6
    assert backtest.reward.se > 0.5 * backtest.logged_reward.se
    with pytest.raises(bt.InvalidRequest, match="4 campaigns or more must be left out"):
        bt.backtest(bt.LinUCB(prior=(0, 1), noise=0.5), logs.select_campaigns(range(6)), horizon=50, budget=60)


def test_too_few_campaigns_are_refused():
    logs, _ = make_beta_logs(3, 2, 50)
    with pytest.raises(bt.InvalidRequest, match="four campaigns or more"):
        bt.backtest(bt.UCB1(noise=0.5), logs)
    with pytest.raises(bt.InvalidRequest, match=r"^`0 < share < 1` must hold \(50% is 0.5\), but got share=50.$"):
        bt.backtest(bt.UCB1(noise=0.5), make_beta_logs(8, 2, 50)[0], share=50)


def test_a_seed_gives_the_same_backtest_on_any_number_of_threads():
    logs, _ = make_beta_logs(8, 2, 50)
    one_worker, two_workers = (
        json.loads(bt.backtest(bt.UCB1(noise=0.5), logs, budget=30, run=bt.Run(workers=j)).to_json()) for j in (1, 2)
    )
    assert one_worker == two_workers


def test_all_left_out_campaigns_with_two_arms_are_used():
    campaign = np.concatenate([np.repeat(np.arange(8), 2), np.repeat(np.arange(8, 14), 6), [14]])
    arm = np.concatenate([np.tile(np.arange(2), 8), np.tile(np.arange(6), 6), [0]])
    wins = np.random.default_rng(0).binomial(200, 0.3, len(arm))
    backtest = bt.backtest(
        bt.UCB1(noise=0.5), bt.make_logs(campaign, arm, np.full(len(arm), 200), wins), horizon=50, budget=30
    )
    assert backtest.regret.runs == backtest.campaigns == backtest.logged_reward.runs


def test_a_policy_that_cannot_take_the_rewards_is_refused_at_once():
    logs = bt.make_logs(
        np.repeat(np.arange(6), 2),
        np.tile([0, 1], 6),
        np.full(12, 20),
        np.linspace(-9, 9, 12),
        np.full(12, 9.0),
        rewards="real",
    )
    with pytest.raises(bt.InvalidRequest, match="any real number"):
        bt.backtest(bt.Thompson(prior=(1, 1)), logs)


def test_a_policy_takes_the_prior_of_the_fitted_problem():
    rng = np.random.default_rng(3)
    features = rng.normal(size=(4, 2))
    theta = rng.normal(1, 0.5, (12, 2))
    arm = np.tile(np.arange(4), 12)
    wins = rng.binomial(40, 1 / (1 + np.exp(-(theta @ features.T).ravel())))
    logs = bt.make_logs(np.repeat(np.arange(12), 4), arm, np.full(48, 40), wins, features=features[arm])
    backtest = bt.backtest(bt.UCBGLM(noise=0.5), logs, horizon=20, budget=30, run=bt.Run(workers=1))
    with_numbers = bt.backtest(
        bt.UCBGLM(prior=backtest.fit.problem.prior, noise=0.5), logs, horizon=20, budget=30, run=bt.Run(workers=1)
    )
    assert backtest.tuning.setup.policy == with_numbers.tuning.setup.policy
    assert (backtest.regret, backtest.reward) == (with_numbers.regret, with_numbers.reward)
    # Only the baseline differs: it has the textbook's prior where none was given.
    assert backtest.tuning.textbook_policy["prior"] == [0, 1]
    assert with_numbers.tuning.textbook_policy == with_numbers.tuning.setup.policy
    with_textbook_prior = bt.backtest(
        bt.UCBGLM(prior=(0, 1), noise=0.5), logs, horizon=20, budget=30, run=bt.Run(workers=1)
    )
    assert backtest.textbook_regret == with_textbook_prior.textbook_regret
    assert backtest.textbook_regret != with_numbers.textbook_regret
    assert "regret, textbook, prior=(0, 1)" in repr(backtest)
    with pytest.raises(bt.InvalidRequest, match="must be a policy and `logs` past logs"):
        bt.backtest("ucb1", logs)


def test_a_campaign_with_too_many_arms_is_refused_at_once():
    widths = [2] * 6 + [30] * 6
    campaign = np.repeat(np.arange(12), widths)
    arm = np.concatenate([np.arange(width) for width in widths])
    wins = np.random.default_rng(0).binomial(200, 0.3, len(arm))
    logs = bt.make_logs(campaign, arm, np.full(len(arm), 200), wins)
    progress = []
    for seed in range(4):
        with pytest.raises(bt.InvalidRequest, match="horizon >= arms"):
            bt.backtest(
                bt.UCB1(noise=0.5),
                logs,
                horizon=12,
                budget=30,
                seed=seed,
                run=bt.Run(progress=lambda *now: progress.append(now)),
            )
    assert progress == []


@pytest.mark.parametrize(
    "policy", [bt.UCB1(noise=0.5), pytest.param(bt.Thompson(prior=(1, 1)), marks=pytest.mark.slow)], ids=str
)
def test_rewards_in_the_unit_interval_are_evaluated_on_such_rewards(policy):
    rng = np.random.default_rng(4)
    campaign, arm = np.divmod(np.arange(24), 3)
    means = rng.beta(3, 4, 24)
    rewards = rng.beta(4 * means, 4 * (1 - means), (4000, 24))
    squares = ((rewards - rewards.mean(axis=0)) ** 2).sum(axis=0)
    logs = bt.make_logs(campaign, arm, np.full(24, 4000), rewards.sum(axis=0), squares, rewards="unit")
    problems = make_evaluator(logs, "beta").problems
    assert [problem.rewards for problem in problems] == ["unit"] * 8
    # The evaluated problems have the spread of the logged rewards. The means are known by 4,000 pulls.
    assert problems[0].v == pytest.approx(4, abs=4 * 5 * np.sqrt(2 / 96_000))
    assert problems[0].sample(1, rng).means[0] == pytest.approx(means[:3], abs=4 * 0.25 / np.sqrt(4000))
    backtest = bt.backtest(policy, logs, horizon=100, budget=60)
    order = np.random.default_rng([0, 8]).permutation(8)[4:]
    best = means.reshape(8, 3)[order].max(axis=1).mean()
    assert backtest.reward.mean == pytest.approx(best - backtest.regret.mean / 100, abs=0.01)
    assert 0 < backtest.regret.mean < 100 * best


@pytest.mark.parametrize("model", ["beta-binomial", "gaussian", "correlated", "logistic", "linear"])
def test_the_reason_against_a_backtest_agrees_with_its_refusal(model, monkeypatch):
    """Every policy that a comparison takes on the fitted problem is passed to `backtest`."""
    rng = np.random.default_rng(2)
    campaign, arm = np.divmod(np.arange(16 * 3), 3)
    wins = rng.binomial(50, 0.3 + 0.1 * rng.random(48))
    features = rng.normal(size=(48, 2)) if model in ("logistic", "linear") else None
    if model in ("gaussian", "linear"):
        means = 1 + wins / 50
        logs = bt.make_logs(
            campaign,
            arm,
            np.full(48, 20),
            20 * means,
            20 * means**2 + rng.chisquare(19, 48),
            rewards="real",
            features=features,
        )
    else:
        logs = bt.make_logs(campaign, arm, np.full(48, 50), wins, features=features)
    problem = bt.fit(logs, model).problem

    class SearchStarted(Exception):
        """The search began."""

    def raise_at_search(*_, **__):
        raise SearchStarted

    monkeypatch.setattr(import_module("banditune.study.tuning"), "run_search", raise_at_search)
    reasons = set()
    policies_with_features = ("ucb1", "ts", "greedy", "linucb", "ucb-glm")  # an evaluation with features takes a second
    for name in policies_with_features if features is not None else collect_policies():
        try:
            spec = build_spec(parse_policy(name), problem, horizon=30)
        except bt.InvalidRequest:
            continue  # a comparison does not take it either
        reason = explain_not_backtested(spec)
        reasons.add(reason)
        try:
            bt.backtest(spec.policy, logs, horizon=30, fit_settings=bt.FitSettings(model=model))
        except SearchStarted:
            assert not reason, name
        except bt.InvalidRequest:
            assert reason, name
    assert "it has no parameter" in reasons
    assert "" in reasons
    assert ("it needs features, and campaigns have none" in reasons) == (model == "correlated")
