"""Reports: one file that needs nothing else, the same with and without its script, whatever names it holds."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shlex
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser

import numpy as np
import pytest

import banditune as bt
from banditune.core.descriptions import describe
from banditune.policies import policy_registry
from banditune.problems import problem_registry
from banditune.registry import make_from_spec
from banditune.reports import plot_marks, repeat_commands, result_plots, search_plots, svg_plots
from banditune.reports.html_page import render_page
from banditune.reports.markdown_report import escape_markdown, render_markdown
from banditune.reports.report_builder import build_report_content
from banditune.reports.report_sections import format_lower_bound_sentences, list_lower_bound_figures
from banditune.results.comparison_results import Comparison, ComparisonEntry
from banditune.results.estimates import Estimate, RegretDistribution
from banditune.results.exact_results import ExactOptimum, ExactRegret, LowerBound, LowerBoundEstimates
from banditune.results.search_results import SearchPosterior, TrialResult, UnimodalityTest
from banditune.results.store_results import StoredMean, StoreSummary
from banditune.results.study_setup import StudySetup
from banditune.results.tuning_results import Curve, Tuning
from banditune.tuners import tuner_registry
from helpers.browser import CHROMIUM, Browser

EVIL = "<script>alert(1)</script>"
FIRST = 2**40


def setup_for(policy="ucb1", problem="bernoulli", tuner="two-part"):
    versions = {"banditune": "0.1.0", "python": "3.11.7"}
    options = {"name": problem, "arms": 10, "prior": [[1.0, 1.0]], "names": []}
    return StudySetup(
        policy={"name": policy, "noise": 0.5},
        problem=options,
        horizon=10_000,
        seed=0,
        regret_kind="expected",
        common_random_numbers=True,
        shortcut=True,
        versions=versions,
        tuner={"name": tuner},
    )


def a_curve(policy="ucb1"):
    values = np.linspace(0, 1, 33)
    mean = 40 + 400 * (values - 0.22) ** 2
    shape = UnimodalityTest(rejected=False, statistic=-0.35, critical_value=4.24, false_alarm_rate=0.01, second_dip=())
    best = Estimate.from_sample(np.random.default_rng(2).gamma(2, 20, 500))
    return Curve(
        parameter="gamma",
        values=values,
        mean=mean,
        se=0.05 * mean,
        runs=1000,
        best_value=0.22,
        best_regret=best,
        textbook=1.0,
        log_scale=False,
        unimodality=shape,
        setup=setup_for(policy),
        refined=True,
    )


def a_tuning(policy="ucb1", **changes):
    """A tuning as the two-part tuner leaves it, with a curve and a long tail; nothing is simulated."""
    rng = np.random.default_rng(0)
    tuned = np.append(rng.gamma(3, 9, 1390), rng.uniform(300, 2000, 10))
    theory = rng.normal(355, 60, 1400)
    trials = tuple(
        TrialResult.from_regrets(values, [rng.gamma(3, 12, 1 + 7 * place) for place, _ in enumerate(values)])
        for values in (np.linspace(0.02, 1, 5), *(np.linspace(0.1, 0.4, 6) / k + 0.2 - 0.2 / k for k in range(1, 12)))
    )
    belief = SearchPosterior(
        mean=45.0,
        low=38.6,
        high=54.1,
        best_low=0.1975,
        best_high=0.2407,
        regret_gap=1.4,
        near_optimal=(0.216, 0.2222, 0.05),
        second_dip=(),
        misfit=False,
        confidence=0.95,
    )
    made = Tuning(
        params={"gamma": 0.2222},
        regret=Estimate.from_sample(tuned),
        textbook_regret=Estimate.from_sample(theory),
        gain=Estimate.from_sample(theory - tuned),
        textbook_params={"gamma": 1.0},
        search_runs=1000,
        budget=1000,
        validation_runs=1400,
        trials=trials,
        posterior=belief,
        precision=None,
        precision_reached=None,
        notices=(bt.results.Notice("14 of 1,400 runs carry 52% of the mean regret.", "skewed-regret"),),
        curve=a_curve(policy),
        setup=setup_for(policy),
        distribution=RegretDistribution.from_sample(tuned, FIRST),
        textbook_distribution=RegretDistribution.from_sample(theory, FIRST),
    )
    return replace(made, **changes)


def notes_tuning():
    """A tuning from before spreads were kept: two values a trial, no curve, no belief."""
    pairs = ((1 / 3, 2 / 3), (2 / 9, 4 / 9), (4 / 27, 8 / 27))
    trials = tuple(TrialResult.from_regrets(pair, np.random.default_rng(1).gamma(2, 20, (2, 25))) for pair in pairs)
    changes = {"distribution": None, "textbook_distribution": None, "curve": None, "posterior": None, "notices": ()}
    return a_tuning(trials=trials, setup=setup_for(tuner="notes"), **changes)


def a_comparison(first="ts", second="ucb1"):
    rng = np.random.default_rng(3)
    best, other = rng.gamma(2, 6, 1000), rng.gamma(2, 9, 1000)
    entries = tuple(
        ComparisonEntry(
            policy=name,
            policy_config={"name": name},
            params=params,
            is_tuned=bool(params),
            regret=Estimate.from_sample(sample),
            difference_to_best=Estimate.from_sample(sample - best),
            textbook_regret=Estimate.from_sample(2 * sample),
            search_runs=500,
            distribution=RegretDistribution.from_sample(sample, FIRST),
        )
        for name, params, sample in ((first, {"gamma": 0.67}, best), (second, {}, other))
    )
    return Comparison(
        entries=entries, best_policy=first, budget=500, validation_runs=1000, setup=replace(setup_for(), policy=None)
    )


def test_policies_are_shown_on_the_same_instances_and_the_best_is_told_on_others_too():
    found = a_comparison()
    again = Estimate.from_sample(np.random.default_rng(4).gamma(2, 7, 1000))
    content = build_report_content(replace(found, best_rerun=again))
    (part,) = [part for part in content.sections if part.title == "Policies"]
    regret = found.entries[0].regret
    assert part.table.rows[0][2:4] == (f"{regret.mean:.4g}", f"{regret.low:.4g} to {regret.high:.4g}")
    assert any(
        f"On as many other instances {found.best_policy} has regret {again.mean:.4g}" in words
        for words in part.paragraphs
    )
    assert any(f"{again.mean:.4g}" in figure for figure in content.key_figures)
    dots = result_plots.make_comparison_plot(replace(found, best_rerun=again)).marks[1:]
    assert [mark.x for mark in dots] == [(entry.regret.mean,) for entry in found.entries]


def test_a_comparison_calls_each_dot_what_it_is_on_the_page_and_in_the_figure():
    found = replace(
        a_comparison(), lower_bound=LowerBound(regret=7.5, is_exact=False, confidence=0.95, method="penalty")
    )
    floor, theory, tuned, untuned = result_plots.make_comparison_plot(found).marks
    assert (floor.label, floor.x) == ("lower bound: 7.5 (95% sure)", (7.5,))
    assert (theory.label, theory.y, theory.hollow) == ("textbook", (0.0,), True)
    assert (tuned.label, tuned.y) == ("tuned, 95% interval", (0.0,))
    assert (untuned.label, untuned.y) == ("not tuned, 95% interval", (1.0,))
    axes = bt.plot(found).axes[0]
    assert [words.get_text() for words in axes.get_legend().get_texts()] == [
        mark.label for mark in (floor, theory, tuned, untuned)
    ]
    assert [words.get_text() for words in axes.get_yticklabels()] == ["ts", "ucb1"]
    assert axes.yaxis_inverted()
    assert axes.lines[0].get_xdata() == [7.5, 7.5]
    assert [
        mark.label for mark in result_plots.make_comparison_plot(replace(found, entries=found.entries[1:])).marks
    ] == [
        floor.label,
        untuned.label,
    ]


def an_account(policy="ucb1"):
    """What a ledger may hold of a setup: a search of many values, few runs of one, two values on fresh instances."""
    rng = np.random.default_rng(4)
    sizes = [(value / 10, False, 350) for value in range(10)] + [(0.95, False, 3), (0.2, True, 400), (0.9, True, 400)]
    tallies = []
    for value, fresh, runs in sizes:
        sample = rng.gamma(2, 10 + 30 * value, runs)
        tallies.append(
            StoredMean(
                params=(value,),
                noise_stream=0,
                fresh=fresh,
                step=1000,
                regret=Estimate.from_sample(sample),
                distribution=RegretDistribution.from_sample(sample, FIRST),
            )
        )
    return StoreSummary(
        setup_id=1,
        policy=policy,
        problem="bernoulli(arms=10)",
        horizon=1000,
        seed=0,
        regret_kind="expected",
        common_random_numbers=True,
        shortcut="plain",
        device="cpu",
        dtype="float64",
        versions="banditune 0.1.0",
        parameters=("gamma",),
        stored_means=tuple(tallies),
    )


def computed_setup(policy=None):
    options = {"name": policy} if policy else None
    return replace(setup_for(), policy=options, problem=describe(bt.Bernoulli(arms=2)), tuner=None, horizon=60)


def an_optimum():
    return ExactOptimum(reward=37.5, oracle_reward=40.0, regret=2.5, setup=computed_setup())


def exact_regrets(policy="ucb1", values=(1.0, 0.0, 0.1, 0.2, 0.3, 0.6), **changes):
    values = np.array(values)
    floor = LowerBound(regret=2.5, is_exact=True, confidence=1.0, method="dynamic programming")
    made = ExactRegret(
        parameter="gamma",
        values=values,
        regret=2.6 + 5 * (values - 0.2) ** 2,
        textbook=1.0,
        setup=computed_setup(policy),
        lower_bound=floor,
    )
    return replace(made, **changes)


def a_bound(**changes):
    floor = LowerBound(regret=4.5, is_exact=False, confidence=0.95, method="together")
    kinds = ("belief", "together", "one arm")
    means, errors = np.array([2.4, 4.53, 3.9]), np.array([0.15, 0.02, 0.0])
    return replace(
        LowerBoundEstimates(
            kinds=kinds,
            mean=means,
            se=errors,
            runs=(1000, 200, 0),
            lower_bound=floor,
            setup=computed_setup(),
            confidence=0.95,
        ),
        **changes,
    )


def flat_tuning(level):
    """Every run loses the same: no interval, no tail."""
    same = np.full(50, float(level))
    trials = (TrialResult.from_regrets((0.5, 1.0), np.full((2, 3), float(level))),)
    changes = {
        "regret": Estimate.from_sample(same),
        "textbook_regret": Estimate.from_sample(same),
        "gain": Estimate.from_sample(0 * same),
    }
    spreads = {
        "distribution": RegretDistribution.from_sample(same, FIRST),
        "textbook_distribution": RegretDistribution.from_sample(same, FIRST),
    }
    return a_tuning(trials=trials, curve=None, posterior=None, **changes, **spreads)


EVERY = {
    "tuning": a_tuning,
    "tuning without curve, belief and spread": notes_tuning,
    "curve": a_curve,
    "comparison": a_comparison,
    "account of a ledger": an_account,
    "exact regrets": exact_regrets,
    "exact regret of one value": lambda: exact_regrets(values=(0.5,), lower_bound=None),
    "exact regret without a parameter": lambda: exact_regrets("gittins", (0.0,), parameter="value", textbook=0.0),
    "bound": a_bound,
    "nothing lost": lambda: flat_tuning(0),
    "rewards above the best arm's": lambda: flat_tuning(-3),
    "curve of one value": lambda: replace(a_curve(), values=np.ones(1), mean=np.ones(1), se=np.zeros(1)),
}


class Balance(HTMLParser):
    """Whether all that is opened is closed, in order."""

    VOID = ("meta", "input", "br")

    def __init__(self):
        super().__init__()
        self.open = []
        self.scripts = 0

    def handle_starttag(self, tag, attrs):
        self.scripts += tag == "script"
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", EVERY)
def test_every_result_becomes_a_file_that_is_whole_and_asks_for_nothing(name, tmp_path):
    assert bt.report(EVERY[name](), tmp_path / "report.html") == tmp_path / "report.html"
    text = (tmp_path / "report.html").read_text()
    tags = Balance()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    assert tags.scripts == 2
    assert not re.search(r"https?:|\bsrc=|\bhref=|@import|url\((?!#frame)|\bstyle=", text)
    assert len(text) < 300_000
    drawn = "".join(re.findall(r'<svg class="plot".*?</svg>', text))
    assert drawn
    assert not re.search(r"\bnan\b|\binf\b", drawn.lower().replace("info", ""))


def test_the_front_door_and_the_record_write_the_same_report(tmp_path):
    result = a_comparison()
    result.report(tmp_path / "a.html")
    bt.report(result, tmp_path / "b.html")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_what_is_no_result_of_a_verb_is_refused(tmp_path):
    with pytest.raises(bt.InvalidRequest, match="a result must be a tuning, curve, comparison"):
        bt.report(Estimate.from_sample(np.ones(3)), tmp_path / "report.html")


def test_the_browser_is_told_to_load_nothing_and_to_run_only_the_pages_own_script():
    text = render_page(build_report_content(a_tuning()))
    rules = re.search(r'Content-Security-Policy" content="([^"]*)"', text)[1]
    assert rules.startswith("default-src 'none';")
    assert "unsafe" not in rules
    for tag in ("style", "script"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.DOTALL)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in rules


@pytest.mark.parametrize("name", [EVIL, '"><img src=x onerror=alert(1)>', "</title><b>", "a & b"])
def test_names_stay_text(name):
    for result in (
        a_tuning(name, notices=(name,)),
        a_curve(name),
        a_comparison(name, f"{name} (2)"),
        an_account(name),
        exact_regrets(name),
        exact_regrets(name, (0.0,), parameter="value", textbook=0.0),
    ):
        text = render_page(build_report_content(result))
        assert name not in text or "<" not in name
        assert name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;") in text
        data = re.search(r'id="plots">(.*?)</script>', text, re.DOTALL)[1]
        assert "<" not in data
        json.loads(data)


def test_what_stands_in_backticks_is_code():
    assert "<li>look at <code>a &lt; b</code></li>" in render_page(
        build_report_content(a_tuning(notices=("look at `a < b`",)))
    )


def test_a_long_search_stays_a_small_file():
    trials = tuple(
        TrialResult.from_regrets(np.arange(1, 9) / 100 + place % 50 / 100, np.ones((8, 3)) * place)
        for place in range(3000)
    )
    assert len(render_page(build_report_content(a_tuning(trials=trials)))) < 300_000


def test_batches_of_trials_keep_every_run():
    trials = [TrialResult.from_regrets((0.1 * (place % 3), 0.5), np.ones((2, place + 1))) for place in range(800)]
    batches = search_plots.batch_trials(trials)
    assert len(batches) == search_plots.BATCH_COUNT
    assert (batches[0].label, batches[-1].label) == ("trials 1 to 16", "trials 785 to 800")
    assert sum(batch.runs.sum() for batch in batches) == sum(trial.total_runs for trial in trials)
    single = search_plots.batch_trials(trials[:3])
    assert [batch.label for batch in single] == ["trial 1", "trial 2", "trial 3"]
    assert single[1].runs.tolist() == [2, 2]


def test_neighbouring_values_are_put_together_where_there_are_too_many():
    values, runs = search_plots.merge_neighbours(np.array([1.0, 2.0, 10.0, 11.0]), np.array([1.0, 3.0, 1.0, 1.0]), 2)
    assert values.tolist() == [1.75, 10.5]
    assert runs.tolist() == [4, 2]


def test_the_middle_of_a_trial_holds_nine_tenths_of_its_runs():
    (batch,) = search_plots.batch_trials(
        [TrialResult.from_regrets((0.1, 0.2, 0.3, 0.9), [np.ones(n) for n in (1, 50, 48, 1)])]
    )
    assert search_plots.find_middle_values(batch) == (0.2, 0.3)
    (pair,) = search_plots.batch_trials([TrialResult.from_regrets((0.1, 0.2), np.ones((2, 25)))])
    assert search_plots.find_middle_values(pair) == (0.1, 0.2)


@pytest.mark.parametrize(
    ("axis", "expected"),
    [
        (plot_marks.PlotAxis("", 0, 1), [0, 0.2, 0.4, 0.6, 0.8, 1]),
        (plot_marks.PlotAxis("", -7, 12), [-5, 0, 5, 10]),
        (plot_marks.PlotAxis("", 0.5, 4.5, whole=True), [1, 2, 3, 4]),
        (plot_marks.PlotAxis("", 0, 40, least=0.9, log=True), [1, 2, 5, 10, 20]),
        (plot_marks.PlotAxis("", 0, 1e6, least=1, log=True), [1, 10, 100, 1e3, 1e4, 1e5, 1e6]),
        (plot_marks.PlotAxis("", 210, 240, least=1, log=True), [210, 215, 220, 225, 230, 235, 240]),
    ],
)
def test_ticks_are_round_numbers(axis, expected):
    assert svg_plots.choose_ticks(axis, svg_plots.AxisScale(axis, 0, 100), 7) == pytest.approx(expected)


def test_a_tuning_without_any_regret_can_be_drawn():
    none = Estimate.from_standard_error(0.0, 0.0, 100)
    low, high = bt.plot(a_tuning(regret=none, textbook_regret=none, gain=none)).axes[0].get_ylim()
    assert (low, high) == (0.0, 1.0)


def test_a_logarithmic_axis_hides_what_has_no_logarithm():
    place = svg_plots.AxisScale(plot_marks.PlotAxis("", -5, 100, least=1, log=True), 0, 100)
    assert [place(1), place(10), place(100)] == pytest.approx([0, 50, 100])
    assert place(0) < 0
    assert place(-4) < 0


def test_the_tail_goes_from_all_runs_to_the_worst_one():
    spread = RegretDistribution.from_sample(np.arange(1000.0), FIRST)
    losses, shares, tips = result_plots.compute_tail_points("tuned", spread)
    assert list(losses) == sorted(losses)
    assert list(shares) == sorted(shares, reverse=True)
    assert (losses[-1], shares[-1]) == (999, 0.001)
    assert tips[-1] == f"tuned: run {FIRST + 999} has regret 999, the worst of 1,000"
    assert "tuned: 50% of runs have regret 499 or more" in tips


def test_a_spread_keeps_quantiles_and_the_worst_runs():
    sample = np.arange(1.0, 101.0)[::-1].copy()
    spread = RegretDistribution.from_sample(sample, FIRST)
    assert [spread.get_quantile(level) for level in (0, 0.01, 0.25, 0.5, 0.95, 0.99, 1)] == [1, 1, 25, 50, 95, 99, 100]
    assert (spread.mean, spread.runs) == (50.5, 100)
    assert spread.worst_runs == tuple(range(FIRST, FIRST + 10))
    assert spread.worst_regrets.tolist() == list(range(100, 90, -1))
    assert bt.results.from_json(spread.to_json()) == spread


def test_the_worst_runs_of_a_tuning_can_be_played_again():
    policy, problem = bt.UCB1(noise=0.5), bt.Bernoulli(arms=3)
    for validate in (60, None):
        tuning = bt.tune(policy, problem, horizon=100, budget=40, seed=5, search=bt.Search(validate=validate))
        values = [tuning.params["gamma"], 1.0]
        for spread, row in ((tuning.distribution, 0), (tuning.textbook_distribution, 1)):
            regrets = bt.simulate(
                policy, problem, values, horizon=100, seed=5, first_instance=spread.worst_runs[0], runs=1
            )
            assert (
                np.float32(regrets[row, 0]) == spread.worst_regrets[0]
            )  # regrets of a tuning are kept in single precision
        assert tuning.distribution.mean == tuning.regret.mean
        code = repeat_commands.format_simulate_call(tuning.setup, values, tuning.distribution.worst_runs[0])
        found = eval(code, {"bt": bt, "policy": policy, "problem": problem})
        assert np.float32(found[0, 0]) == tuning.distribution.worst_regrets[0]


def test_results_from_before_there_were_spreads_can_be_read():
    result = a_tuning()
    old = json.loads(result.to_json())
    for name in ("distribution", "textbook_distribution", "requested_validation_runs"):
        del old[name]
    del old["curve"]["refined"]
    read = bt.results.from_json(json.dumps(old))
    assert read.distribution is None
    assert read.regret == result.regret
    assert "Regret of single runs" not in render_page(build_report_content(read))


SHELVES = [
    *(("policy", policy_registry.POLICIES, make()) for make in policy_registry.POLICIES.values()),
    *(
        ("problem", problem_registry.PROBLEMS, make())
        for name, make in problem_registry.PROBLEMS.items()
        if name not in ("mixture", "campaigns", "reward-table")
    ),
    *(("tuner", tuner_registry.TUNERS, make()) for make in tuner_registry.TUNERS.values()),
    ("problem", problem_registry.PROBLEMS, bt.Mixture([(0.5, 0.4, 0.25), (0.1, 0.2, 0.3)], weights=(0.75, 0.25))),
    ("problem", problem_registry.PROBLEMS, bt.Bernoulli(arms=2, prior=[(1, 2), (3, 4.5)])),
    ("problem", problem_registry.PROBLEMS, bt.Bernoulli(arms=2, names=("red", "blue"))),
    ("policy", policy_registry.POLICIES, bt.Thompson(prior=(2, 5))),
]


@pytest.mark.parametrize(("what", "shelf", "made"), SHELVES, ids=lambda value: getattr(value, "name", None))
def test_a_command_line_makes_the_same_again(what, shelf, made):
    spec = repeat_commands.format_spec(describe(made))
    assert describe(make_from_spec(what, spec, shelf, object)) == describe(made)


def test_what_a_command_line_cannot_tell_has_none():
    features = np.random.default_rng(0).normal(size=(12, 30))
    assert repeat_commands.format_spec(describe(bt.Linear(features=features))) is None
    result = a_tuning(setup=replace(setup_for(), problem=describe(bt.Linear(features=features))))
    assert repeat_commands.make_command(result) is None
    assert "There is no command line for this result" in render_page(build_report_content(result))
    assert repeat_commands.format_spec(describe(bt.Bernoulli(arms=2, names=("a b", "c")))) is None
    assert repeat_commands.format_spec(describe(bt.Mixture([(0.5, 0.4)]))) is None


@bt.kernel.scalar
def pull_last(state, setting, step, params, stream):
    return setting.arms - 1


def test_what_is_your_own_is_told_by_its_file_and_not_by_a_name_of_the_shelf():
    mine = bt.define_policy("ucb1", pull_last, parameters=bt.Parameter("gamma", 0, 1, textbook=1))
    own = bt.define_problem("bernoulli", lambda size, rng: rng.random((size, 2)), pull_last, arms=2)
    result = a_tuning(setup=replace(setup_for(), policy=describe(mine), problem=describe(own)))
    assert repeat_commands.make_command(result).startswith(
        "banditune tune --policy test_report.py:NAME --problem test_report.py:NAME --horizon 10000 "
    )
    page = render_page(build_report_content(result))
    assert "test_report.py:pull_last" in page
    assert "NAME is the name of your policy or problem" in page
    assert "NAME is the name" not in render_page(build_report_content(a_tuning()))
    both = a_comparison()
    some = replace(both, entries=(replace(both.entries[0], policy_config=describe(mine)), *both.entries[1:]))
    assert "--policy test_report.py:NAME --policy ucb1" in repeat_commands.make_command(some)
    assert "test_report.py:pull_last" in render_page(build_report_content(some))


def test_a_function_with_some_of_its_arguments_is_told_by_its_own_file():
    def sample(size, rng, arms):
        return rng.random((size, arms))

    own = bt.define_problem("mine", partial(sample, arms=2), bt.Gaussian.reward, arms=2)
    assert describe(own)["own code"] == "test_report.py:sample"


def test_what_was_typed_at_a_prompt_has_no_file_to_be_told():
    typed = {"bt": bt}
    exec(compile("def choose(state, setting, step, params, stream): return 0", "<prompt>", "exec"), typed)
    mine = bt.define_policy("mine", typed["choose"])
    assert describe(mine) == {"name": "mine", "own code": "choose"}
    assert repeat_commands.format_spec(describe(mine)) is None


def test_the_command_line_of_a_result_says_what_was_asked_for():
    assert repeat_commands.make_command(a_tuning(precision=0.02, budget=100_000, requested_validation_runs=50)) == (
        "banditune tune --policy ucb1:noise=0.5 --problem 'bernoulli:arms=10,prior=1,1;' --horizon 10000 "
        "--tuner two-part --precision 0.02 --max-runs 100000 --validate 50 --curve"
    )
    assert "--values" not in repeat_commands.make_command(a_curve())
    given = replace(a_curve(), refined=False, values=np.array([0.1, 0.5]), setup=replace(setup_for(), seed=3))
    assert repeat_commands.make_command(given).endswith("--values 0.1,0.5 --runs 1000 --seed 3")
    assert "--policy ts --policy ucb1" in repeat_commands.make_command(a_comparison())
    own = replace(a_comparison(), setup=replace(a_comparison().setup, common_random_numbers=False))
    assert repeat_commands.make_command(own) is None


def test_the_command_line_gives_the_very_result_again(banditune, tmp_path):
    result = bt.tune(
        bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=100, budget=40, seed=2, search=bt.Search(validate=50)
    )
    process = banditune(*repeat_commands.make_command(result).replace("'", "").split()[1:], "--json")
    assert process.returncode == 0, process.stderr
    assert bt.results.from_json(process.stdout) == result


@pytest.mark.parametrize(
    ("changes", "message", "band"),
    [
        ({}, "95% sure: no other value is better by more than 1.4", "the best lies here (95% sure)"),
        (
            {"unexplored": (0.0, 0.02)},
            "95% sure: no gamma from 0.02 on is better by more than 1.4",
            "the best gamma from 0.02 on lies here",
        ),
        ({"misfit": True}, "the search cannot state its confidence: see the warning about its curves", ""),
    ],
)
def test_a_search_says_of_itself_what_it_can(changes, message, band):
    found = a_tuning()
    found = replace(found, posterior=replace(found.posterior, **changes))
    assert message in repr(found)
    assert message in render_page(build_report_content(found))
    for picture in (
        render_page(build_report_content(found)),
        " ".join(bt.plot(found).axes[0].get_legend_handles_labels()[1]),
    ):
        assert ("lies here (" in picture) == bool(band)
        assert band in picture
    if "misfit" in changes:
        assert "95% sure" not in repr(found)


@pytest.mark.parametrize(
    ("low", "high", "log", "shown"),
    [
        (0.1, 0.8, False, True),
        (0.1, 0.9, False, False),
        (0.02, 1.0, False, False),
        (0.1, 0.9, True, True),
        (0.03, 0.9, True, False),
    ],
)
def test_a_band_over_nearly_all_that_was_searched_is_not_drawn_but_told(low, high, log, shown):
    curve = replace(a_curve(), log_scale=log)
    found = a_tuning(posterior=replace(a_tuning().posterior, best_low=low, best_high=high), curve=curve)
    assert found.trials[0].values.tolist() == np.linspace(0.02, 1, 5).tolist()
    text = f"the best gamma is between {low:.4g} and {high:.4g}"
    assert text in repr(found)
    assert text in render_page(build_report_content(found))
    assert ("lies here (" in render_page(build_report_content(found))) == shown
    assert ("lies here (" in " ".join(bt.plot(found).axes[0].get_legend_handles_labels()[1])) == shown
    assert any(mark.shape == "span" for mark in result_plots.make_tuning_plot(found).marks) == shown


def test_the_floor_is_told_and_drawn_where_it_is_known():
    floor = LowerBound(regret=30.5, is_exact=True, confidence=1.0, method="dynamic programming")
    bound = LowerBound(regret=20.25, is_exact=False, confidence=0.95, method="penalty")
    assert list(list_lower_bound_figures(None)) == []
    assert list(format_lower_bound_sentences(floor)) == [
        "Optimum over all policies: 30.5 (exact, by dynamic programming)."
    ]
    assert "lower bound" in render_page(build_report_content(a_tuning(lower_bound=bound)))
    (mark,) = plot_marks.make_lower_bound_marks(bound, "level")
    assert (mark.y, mark.label) == ((20.25,), "lower bound: 20.25 (95% sure)")
    assert plot_marks.make_lower_bound_marks(None, "rule") == ()
    assert 'class="level c3"' in render_page(build_report_content(a_tuning(lower_bound=floor)))
    assert 'class="rule c3"' in render_page(build_report_content(replace(a_comparison(), lower_bound=floor)))
    assert repeat_commands.make_command(a_tuning(lower_bound=floor)).endswith("--curve --lower-bound")
    compared = repeat_commands.make_command(replace(a_comparison(), lower_bound=floor))
    assert compared.endswith("--validate 1000 --lower-bound")


def test_exact_regrets_are_told_beside_theory_and_the_best_policy():
    content = build_report_content(exact_regrets())
    assert content.answer == (
        "gamma = 0.2 has regret 2.6 on average, the lowest of 6 values, 0.1 (4.0%) more than the optimum; "
        "the textbook default gamma = 1 has 5.8."
    )
    assert content.key_figures[0] == ("gamma", "0.2", "textbook: 1")
    (part, _) = content.sections
    assert part.table.rows[0] == ("1", "5.8", "3.3", "textbook")
    line = next(mark for mark in part.plot.marks if mark.shape == "line")
    assert line.x == (0.0, 0.1, 0.2, 0.3, 0.6, 1.0)
    few = build_report_content(exact_regrets(values=(0.2, 0.3)))
    assert "textbook" not in few.answer
    assert not any(mark.shape == "line" for mark in few.sections[0].plot.marks)


def test_a_policy_without_parameters_is_called_by_its_name():
    made = exact_regrets("gittins", (0.0, 1.0), parameter="value", textbook=0.0, regret=np.array([2.5, 2.5]) - 1e-14)
    assert build_report_content(made).answer == "gittins has regret 2.5 on average, which is the optimum."
    assert not any(mark.shape == "rule" for mark in build_report_content(made).sections[0].plot.marks)
    assert "textbook" not in render_page(build_report_content(made)).split("<footer>")[0]


def test_an_optimum_has_a_table_and_no_figure(banditune, tmp_path):
    an_optimum().save(tmp_path / "optimum.json")
    process = banditune("report", "optimum.json", "-o", "r.html")
    assert process.returncode == 0, process.stderr
    text = (tmp_path / "r.html").read_text()
    assert "The best policy has regret 2.5 on average: it earns 37.5 of the 40 of the best arm." in text
    assert ">0.04166667<" in text
    assert 'class="plot"' not in text
    tags = Balance()
    tags.feed(text)
    assert tags.open == []
    process = banditune("report", "optimum.json", "-o", "other.html", "--figures", "figures")
    assert process.returncode == 2
    assert "but got ExactOptimum" in process.stderr
    assert not (tmp_path / "other.html").exists()


@pytest.mark.parametrize("make", [exact_regrets, a_bound, an_account])
def test_plots_of_the_page_are_drawn_as_figures_too(make, tmp_path):
    result = make()
    drawn = bt.plot(result).axes[0]
    legend = {words.get_text() for words in drawn.get_legend().get_texts()}
    assert {mark.label for mark in build_report_content(result).sections[0].plot.marks if mark.label} == legend
    bt.plot(result, tmp_path / "figure.svg")
    assert "<svg" in (tmp_path / "figure.svg").read_text()


def test_a_bound_says_which_one_and_how_sure():
    content = build_report_content(a_bound())
    assert content.answer == "No policy can have a regret below 4.5 on average (95% sure)."
    assert "'together'. The kind was selected on other instances" in content.sections[0].paragraphs[1]
    assert [row[2:] for row in content.sections[0].table.rows][1:] == [("4.53", "0.02", "200"), ("3.9", "computed", "")]
    sure = build_report_content(
        a_bound(lower_bound=LowerBound(regret=3.9, is_exact=False, confidence=1.0, method="one arm"))
    )
    assert "which is computed" in sure.sections[0].paragraphs[1]
    assert sure.sections[1].code.endswith("--runs 1000 --confidence 0.95")
    assert repeat_commands.make_command(a_bound(confidence=None)).endswith("--confidence 0.95")
    assert (
        repeat_commands.make_command(
            a_bound(
                confidence=None, lower_bound=LowerBound(regret=3.9, is_exact=False, confidence=1.0, method="one arm")
            )
        )
        is None
    )


@pytest.mark.parametrize(
    "make",
    [
        lambda: bt.exact.compute_optimum(bt.Mixture([(0.5, 0.25), (0.25, 0.5)], weights=(0.25, 0.75)), horizon=10),
        lambda: bt.exact.compute_exact_regret(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [0.3, 1.0], horizon=10),
        lambda: bt.exact.compute_lower_bound(bt.Gaussian(arms=3), horizon=30, runs=50, seed=1, confidence=0.9),
    ],
)
def test_the_command_line_computes_the_very_result_again(banditune, make):
    result = make()
    process = banditune(*shlex.split(repeat_commands.make_command(result))[1:], "--json")
    assert process.returncode == 0, process.stderr
    assert bt.results.from_json(process.stdout) == result


def test_markdown_has_the_tables_and_names_stay_text():
    text = render_markdown(build_report_content(a_comparison(EVIL, "a|b")))
    assert "| policy | tuned to | regret |" in text
    assert r"\<script\>alert(1)\</script\>" in text
    assert r"a\|b" in text
    assert EVIL not in "\n".join(line for line in text.splitlines() if not line.startswith("    banditune"))
    assert escape_markdown("two\nlines  *here*") == r"two lines \*here\*"
    assert "## Warnings" in render_markdown(build_report_content(a_tuning()))


def test_the_command_writes_all_that_is_asked_for(banditune, tmp_path):
    a_tuning().save(tmp_path / "result.json")
    process = banditune("report", "result.json", "-o", "r.html", "--figures", "figures", "--markdown", "r.md")
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines()[0] == "wrote r.html"
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["result.pdf", "result.png", "result.svg"]
    assert (tmp_path / "r.html").read_text() == render_page(build_report_content(a_tuning()))
    assert (tmp_path / "r.md").read_text().startswith("# gamma = 0.2222 has regret")


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["result.json"], "must have a file to write"),
        (["nothing.json", "-o", "r.html"], "cannot be read"),
        (["result.json", "-o", "nowhere/r.html"], "there is no folder"),
        (["result.json", "--figures", "result.json"], "cannot be created"),
    ],
)
def test_requests_that_cannot_be_served_are_complained_about(banditune, tmp_path, arguments, complaint):
    a_curve().save(tmp_path / "result.json")
    process = banditune("report", *arguments)
    assert process.returncode == 2
    assert complaint in process.stderr
    assert len(process.stderr.splitlines()) == 1


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    """A Chromium for all tests of this file; without one they are skipped, unless that is forbidden."""
    if CHROMIUM is None:
        if os.environ.get("BANDITUNE_NEEDS_CHROMIUM") == "1":
            pytest.fail("BANDITUNE_NEEDS_CHROMIUM is set, but there is no Chromium: apt-get install chromium.")
        pytest.skip("there is no Chromium here: apt-get install chromium.")
    found = Browser(tmp_path_factory.mktemp("chromium"))
    yield found
    found.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Open a result's report in a window of some width; nothing may be fetched, nothing complained about."""

    def opener(result, width):
        bt.report(result, tmp_path / "report.html")
        browser.open(tmp_path / "report.html", width)
        return browser

    yield opener
    assert browser.requests() == []
    assert browser.complaints() == []


def centre(browser, selector):
    """Where an element is on the screen, after scrolling there."""
    code = f"""(() => {{
        const found = document.querySelector({json.dumps(selector)});
        found.scrollIntoView({{block: "center"}});
        const box = found.getBoundingClientRect();
        return [box.left + box.width / 2, box.top + box.height / 2, box.width, box.height];
    }})()"""
    return browser.run(code)


TUNED = '[data-plot="0"] .marks > .dots:last-child circle'
CURVE = '[data-plot="0"] .line path'
TIP = "document.querySelector('.tip:not([hidden])')?.textContent"


def test_the_curve_is_there_and_a_dot_tells_its_value(opened):
    browser = opened(a_tuning(), 1280)
    _, _, width, height = centre(browser, '[data-plot="0"] .band path')
    assert width > 500
    assert height > 50
    x, y, *_ = centre(browser, TUNED)
    assert browser.run(TIP) is None
    browser.mouse("mouseMoved", x, y)
    assert browser.run(TIP).startswith("tuned: 0.2222, regret ")
    browser.mouse("mouseMoved", 2, 2)
    assert browser.run(TIP) is None


def test_dragging_zooms_and_reset_goes_back(opened):
    browser = opened(a_tuning(), 1280)
    path = f"document.querySelector('{CURVE}').getAttribute('d')"
    before = browser.run(path)
    x, y, *_ = centre(browser, TUNED)
    browser.mouse("mousePressed", x - 60, y - 60)
    browser.mouse("mouseMoved", x, y)
    assert browser.run("document.querySelector('.drag').getAttribute('visibility')") == "visible"
    browser.mouse("mouseReleased", x + 60, y + 15)
    assert browser.run("document.querySelector('.drag').getAttribute('visibility')") == "hidden"
    zoomed = browser.run(path)
    assert zoomed != before
    for button in ("in", "out", "reset"):
        browser.run(f"document.querySelector('[data-zoom={button}]').click()")
        assert (browser.run(path) == before) == (button == "reset")


@pytest.mark.parametrize("axis", ["x", "y"])
def test_axes_can_be_logarithmic(opened, axis):
    browser = opened(a_tuning(), 1280)
    path = f"document.querySelector('{CURVE}').getAttribute('d')"
    before = browser.run(path)
    box = f"document.querySelector('[data-log={axis}]')"
    browser.run(f"{box}.click()")
    after = browser.run(path)
    assert after != before
    assert "NaN" not in browser.run("document.body.innerHTML")
    browser.run(f"{box}.click()")
    assert browser.run(path) == before


def test_keys_go_from_dot_to_dot(opened):
    browser = opened(a_curve(), 1280)
    browser.run("document.querySelector('.plot').focus()")
    told = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "Escape"):
        browser.ask("Input.dispatchKeyEvent", type="keyDown", key=key)
        told.append(browser.run(TIP))
    assert told[0].startswith("gamma = 0, regret")
    assert told[1].startswith("gamma = 0.03125, regret")
    assert told[2:] == [told[0], None]


@pytest.mark.parametrize("name", ["tuning", "curve", "comparison", "account of a ledger", "exact regrets", "bound"])
def test_the_script_draws_what_was_drawn_without_it(opened, name, tmp_path):
    result = EVERY[name]()
    browser = opened(result, svg_plots.PLOT_WIDTH + 40)
    still = re.findall(r'<svg class="plot".*?</svg>', (tmp_path / "report.html").read_text())
    live = browser.run("[...document.querySelectorAll('.plot')].map((plot) => plot.outerHTML)")
    assert len(still) == len(live) > 0
    for one, other in zip(still, live, strict=True):
        assert re.search('viewBox="[^"]*"', one)[0] == re.search('viewBox="[^"]*"', other)[0]
        assert re.findall(r"<text[^>]*>([^<]*)<", one) == re.findall(r"<text[^>]*>([^<]*)<", other)
        paths = [re.findall(' d="([^"]*)"', drawn) for drawn in (one, other)]
        numbers = [[float(n) for path in drawn for n in re.findall(r"-?\d+\.?\d*", path)] for drawn in paths]
        assert np.allclose(*numbers, atol=0.15)


def test_a_policy_with_a_script_for_a_name_stays_text(opened):
    for result in (a_tuning(EVIL, notices=(EVIL,)), a_comparison(EVIL)):
        browser = opened(result, 1280)
        assert EVIL in browser.run("document.body.innerText")
        assert browser.run("document.scripts.length") == 2
        assert not any(event["method"] == "Page.javascriptDialogOpening" for event in browser.events)


def test_no_other_script_can_run_and_nothing_can_be_fetched(browser, tmp_path):
    bt.report(a_curve(), tmp_path / "report.html")
    browser.open(tmp_path / "report.html", 1280)
    browser.run(
        "document.body.append(Object.assign(document.createElement('script'), {textContent: 'window.hit = 1'}))"
    )
    assert browser.run("window.hit") is None
    code = "fetch('data:text/plain,hello').then(() => 'fetched', () => 'refused')"
    answer = browser.ask("Runtime.evaluate", expression=code, awaitPromise=True, returnByValue=True)
    assert answer["result"]["value"] == "refused"


@pytest.mark.parametrize("width", [360, 390])
@pytest.mark.parametrize("name", ["tuning", "curve", "comparison", "account of a ledger", "exact regrets", "bound"])
def test_it_can_be_read_on_a_phone(opened, name, width):
    long = "a-policy-of-my-own-with-a-name-that-goes-on-and-on(noise=0.5)"
    browser = opened(a_comparison(EVIL, long) if name == "comparison" else EVERY[name](), width)
    assert browser.run("document.documentElement.scrollWidth") <= width
    beyond = f"""[...document.querySelectorAll('.plot text')].filter((text) => {{
        const box = text.getBoundingClientRect();
        return box.left < 0 || box.right > {width};
    }}).map((text) => text.textContent)"""
    assert browser.run(beyond) == []
    assert browser.run("parseFloat(getComputedStyle(document.querySelector('.plot text')).fontSize)") >= 12


@pytest.mark.parametrize("width", [420, 1280])
def test_no_line_goes_through_the_name_of_a_policy(opened, width):
    browser = opened(
        replace(
            a_comparison("a-policy-with-quite-a-long-name"),
            lower_bound=LowerBound(regret=3.5, is_exact=True, confidence=1.0, method="exact"),
        ),
        width,
    )
    code = """(() => {
        const plot = document.querySelector('.plot');
        const paths = [...plot.querySelectorAll('.rule path, .grid')].map((path) => path.getAttribute('d'));
        const pieces = paths.flatMap((d) => [...d.matchAll(/M([\\d.]+) ([\\d.]+)V([\\d.]+)/g)]);
        const lines = pieces.map((piece) => piece.slice(1).map(Number));
        const boxes = [...plot.querySelectorAll('.name')].map((name) => name.getBBox());
        const crossed = boxes.flatMap((box) => lines.filter(([x, top, bottom]) =>
            x > box.x && x < box.x + box.width && top < box.y + box.height - 3 && bottom > box.y + 3));
        return [lines.length, boxes.length, crossed.length];
    })()"""
    lines, names, crossed = browser.run(code)
    assert lines > names == 2
    assert crossed == 0


def test_it_can_be_printed_and_read_at_night(opened, tmp_path):
    browser = opened(a_tuning(), 1280)
    browser.printed(tmp_path / "report.pdf")
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF")
    paper = "getComputedStyle(document.body).backgroundColor"
    day = browser.run(paper)
    night = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.ask("Emulation.setEmulatedMedia", features=night)
    dark = browser.run(paper)
    browser.ask("Emulation.setEmulatedMedia", features=[])
    assert day == "rgb(255, 255, 255)"
    assert dark != day


def test_figures_have_fonts_that_publishers_take_and_are_the_same_files_again(tmp_path):
    curve = bt.curve(bt.UCB1(noise=0.5), bt.Bernoulli(arms=2), [0.2, 0.5, 1], horizon=20, runs=20)
    for kind in ("pdf", "svg", "png"):
        first, second = tmp_path / f"first.{kind}", tmp_path / f"second.{kind}"
        curve.plot(first)
        curve.plot(second)
        assert first.read_bytes() == second.read_bytes()
    assert b"/Type3" not in (tmp_path / "first.pdf").read_bytes()
