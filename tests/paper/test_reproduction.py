"""The paper's experiments repeated: published numbers, tunings in lock-step, errors, marks and exit codes."""

from __future__ import annotations

import dataclasses
import json
import math
import re

import numpy as np
import pytest

import banditune as bt
from banditune.core.space import Range
from banditune.paper import lockstep_tunings, paper_rows, published_numbers, reproduction
from banditune.paper.paper_cells import TENTH_INDICES, RowRegrets, make_paper_cell
from banditune.paper.published_numbers import PaperCellKey, find_explanation, find_tolerance, load_published_numbers
from banditune.paper.run_pools import UNIT_POINTS, make_run_source
from banditune.reports.paper_report import draw_paper_curves, render_paper_markdown, write_paper_folder
from banditune.storage import stored_simulator
from banditune.tuners.grid_search import SequentialHalving, Uniform
from banditune.tuners.noisy_ternary_search import NoTeS
from banditune.tuners.two_part import TwoPart

UNIT = Range("gamma", 0.0, 1.0, 1.0, False, "linear")
TWO_ROWS = "warm-up ucb1,bernoulli ucb1"


@pytest.fixture(scope="module")
def small_reproduction():
    return bt.paper.reproduce(only=TWO_ROWS, runs=40, tunings=50)


def compute_mean_regret(units):
    """Exploring has a cost, and failing a steep one. The lowest point is near 0.22."""
    return 350 * units**1.1 + 400 * np.exp(-units / 0.08)


def draw_pool(runs, seed=0):
    """A pool around that curve with heavy tails. Widths share instances."""
    rng = np.random.default_rng(seed)
    instances = rng.gamma(2, 0.5, runs)
    return compute_mean_regret(UNIT_POINTS)[:, None] * instances * rng.gamma(1, 1, (len(UNIT_POINTS), runs))


def make_source(runs, seed=0):
    return make_run_source("steep", UNIT, UNIT_POINTS, draw_pool(runs, seed))


def test_all_published_numbers_are_read():
    numbers = load_published_numbers()
    assert len(numbers) == 201
    tables = {"best": 10, "textbook": 10, "regret": 90, "failures": 90, "gittins": 1}
    assert {table: sum(key.table == table for key in numbers) for table in tables} == tables
    assert {key.row for key in numbers} == {*(row.name for row in paper_rows.PAPER_ROWS), paper_rows.GITTINS_ROW}
    assert numbers[PaperCellKey("textbook", "linear linucb")] == 341.8
    assert numbers[PaperCellKey("regret", "bernoulli ts", "uniform", 50)] == 113.2
    assert numbers[PaperCellKey("failures", "logistic glm-tsl", "halving", 200)] == 4.0
    assert numbers[PaperCellKey("gittins", "warm-up gittins")] == 3.9


def test_every_tolerance_concerns_a_number_and_has_a_reason():
    lines = list(published_numbers.read_data_rows("tolerances.csv"))
    assert lines
    for line in lines:
        assert any(
            line["reason"] in find_tolerance(key, value).reasons for key, value in load_published_numbers().items()
        )
        assert line["unit"] in ("%", "points")
        assert line["reason"].endswith(".")


def test_explanations_concern_published_numbers_and_change_no_mark():
    lines = list(published_numbers.read_data_rows("explanations.csv"))
    for line in lines:
        assert any(line["explanation"] in find_explanation(key) for key in load_published_numbers())
        assert line["explanation"].endswith(".")
        assert line["explanation"].split(":")[0] in ("Explained", "Explained in part", "Not explained")
    key = next(key for key in load_published_numbers() if find_explanation(key))
    cell = make_paper_cell(key, (1e6, 0.1), spread=1.0)
    assert cell.mark == "!!"
    assert cell.explanation == find_explanation(key)
    assert find_explanation(PaperCellKey("textbook", "bernoulli ts")) == ""


def test_schedules_are_those_of_the_paper():
    """Instances that each tuning draws. All values of an iteration use the same instances."""
    counts = {
        (name, budget): make(budget)(make_source(20), 2, np.random.default_rng(0))[1].shape[1]
        for name, make in lockstep_tunings.LOCKSTEP_TUNERS.items()
        for budget in (50, 200, 1000)
    }
    assert counts == {
        ("notes", 50): 25,
        ("notes", 200): 100,
        ("notes", 1000): 500,
        ("uniform", 50): 5,
        ("uniform", 200): 20,
        ("uniform", 1000): 100,
        ("halving", 50): 1 + 1 + 4 + 13,
        ("halving", 200): 1 + 4 + 17 + 53,
        ("halving", 1000): 6 + 22 + 88 + 266,
        ("two-part", 50): 50,
        ("two-part", 200): 200,
        ("two-part", 1000): 1000,
    }


class SameInstances:
    """Draws for one tuning the instances that a lock-step drew for it."""

    def __init__(self, instances):
        self.drawn, self.position = instances, 0

    def integers(self, instances, size):
        self.position += size
        return self.drawn[self.position - size : self.position]


@pytest.mark.parametrize(
    ("lockstep", "tuner", "budget"),
    [
        (lockstep_tunings.make_notes_search(50), NoTeS(), 50),
        (lockstep_tunings.make_notes_search(1000), NoTeS(), 1000),
        (lockstep_tunings.make_uniform_search(200), Uniform(), 220),
        (lockstep_tunings.make_uniform_search_within_budget(200), Uniform(), 200),
        (lockstep_tunings.make_halving_search(200), SequentialHalving(), 200),
        (lockstep_tunings.make_halving_search(1000), SequentialHalving(), 1000),
    ],
)
def test_tunings_in_lock_step_have_the_answers_of_single_tuners(lockstep, tuner, budget):
    pool = make_source(300)
    answers, instances = lockstep(pool, 40, np.random.default_rng(1))
    single_answers = [lockstep_tunings.run_single_tuner(tuner, pool, budget, SameInstances(row)) for row in instances]
    assert pool.find_nearest(single_answers).tolist() == answers.tolist()
    assert len(set(answers.tolist())) > 1


def test_two_part_in_lock_step_has_the_law_of_single_searches():
    pool, rng = make_source(500), np.random.default_rng(2)
    lockstep = compute_mean_regret(UNIT_POINTS[lockstep_tunings.make_two_part_search(50)(pool, 250, rng)[0]])
    single = compute_mean_regret(
        np.array([lockstep_tunings.run_single_tuner(TwoPart(), pool, 50, rng) for _ in range(80)])
    )
    assert abs(lockstep.mean() - single.mean()) < 4 * math.hypot(lockstep.std() / 250**0.5, single.std() / 80**0.5)


@pytest.mark.parametrize(
    ("shared", "separate"),
    [
        (
            lockstep_tunings.make_baseline_grid_search([(4, 1)]),
            lockstep_tunings.make_baseline_grid_search([(4, 1)], shared=False),
        ),
        (
            lockstep_tunings.make_ternary_search([2, 3, 4, 5]),
            lockstep_tunings.make_ternary_search([2, 3, 4, 5], shared=False),
        ),
    ],
)
def test_on_shared_instances_only_the_values_matter(shared, separate):
    """If an instance scales the regrets of all values, ranks never change on it. On different instances they do."""
    scales = np.random.default_rng(0).gamma(0.1, 10, 2000)
    pool = make_run_source("luck", UNIT, UNIT_POINTS, compute_mean_regret(UNIT_POINTS)[:, None] * scales)
    answers = [search(pool, 300, np.random.default_rng(1))[0] for search in (shared, separate)]
    assert len(set(answers[0].tolist())) == 1
    assert len(set(answers[1].tolist())) > 3


def test_failures_cover_all_readings_of_the_tuner():
    noise = 0.01 * np.random.default_rng(0).standard_normal((len(UNIT_POINTS), 400))
    pool = RowRegrets("steep", UNIT, compute_mean_regret(UNIT_POINTS)[:, None] + noise)
    counts = [np.bincount([at], minlength=len(UNIT_POINTS)) * 100.0 for at in (pool.best, len(UNIT_POINTS) - 1)]
    outcomes, other_outcomes = (
        lockstep_tunings.TuningOutcomes(end, np.zeros((len(UNIT_POINTS), 400))) for end in counts
    )
    key = PaperCellKey("failures", "somewhere ucb1", "uniform", 200)
    assert (pool.compare_failures(key, outcomes).low, pool.compare_failures(key, outcomes).high) == (0.0, 0.0)
    comparison = pool.compare_failures(key, outcomes, [other_outcomes])
    assert (comparison.ours, comparison.low, comparison.high) == (0.0, 0.0, 100.0)
    regret_comparison = pool.compare_tuned_regret(key, outcomes, [outcomes, other_outcomes])
    assert math.isnan(regret_comparison.other_reading)
    assert regret_comparison.high == pool.means[-1]


def test_a_page_explains_why_cells_differ(small_reproduction):
    first, second = small_reproduction.published_cells[:2]
    cells = (
        dataclasses.replace(first, excess_z_score=5.0, explanation="Explained: by the moon."),
        dataclasses.replace(second, excess_z_score=-3.5, explanation=""),
        *(
            dataclasses.replace(cell, excess_z_score=0.0)
            for cell in small_reproduction.cells
            if cell not in (first, second)
        ),
    )
    page = render_paper_markdown(dataclasses.replace(small_reproduction, cells=cells))
    assert page.count("by the moon") == 1
    assert "Not known: with 10,000 runs" in page
    assert "by the moon" in repr(dataclasses.replace(small_reproduction, cells=cells))
    equal = tuple(dataclasses.replace(cell, excess_z_score=0.0) for cell in small_reproduction.cells)
    assert "Cells that differ" not in render_paper_markdown(dataclasses.replace(small_reproduction, cells=equal))


def test_halving_without_runs_keeps_random_values():
    pool = make_source(50)
    answers, _ = lockstep_tunings.make_baseline_grid_search([(0, 1)])(pool, 1100, np.random.default_rng(0))
    counts = np.bincount(answers, minlength=len(UNIT_POINTS))[TENTH_INDICES]
    assert abs(counts - 100).max() < 50


@pytest.mark.parametrize(("tuner", "budget"), [("notes", 200), ("uniform", 200), ("halving", 500)])
def test_stated_errors_agree_with_the_spread_over_pools(tuner, budget):
    """Means of regret and failures over twenty pools spread as each pool states."""
    statistics = []
    failure = 100.0 * (np.abs(UNIT_POINTS - 0.22) > 0.1)
    for seed in range(20):
        pool = RowRegrets("steep", UNIT, draw_pool(400, seed))
        outcomes = lockstep_tunings.tune_in_lockstep(
            lockstep_tunings.LOCKSTEP_TUNERS[tuner](budget),
            make_source(400, seed),
            1000,
            lockstep_tunings.make_cell_rng(seed),
        )
        statistics.append(
            (
                outcomes.compute_mean(pool.means),
                outcomes.compute_error(pool.means, pool.regrets),
                outcomes.compute_mean(failure),
                outcomes.compute_error(failure),
            )
        )
    regret, regret_se, failures, failures_se = np.array(statistics).T
    assert 0.6 < regret.std(ddof=1) / np.sqrt((regret_se**2).mean()) < 1.5
    assert 0.5 < failures.std(ddof=1) / np.sqrt((failures_se**2).mean()) < 1.5


def test_the_best_width_is_evaluated_on_other_runs():
    """On a flat curve, the lowest of many means is too low. This one is not."""
    comparisons = []
    for seed in range(30):
        noise = np.random.default_rng(seed).standard_normal((len(UNIT_POINTS), 200))
        comparisons.append(RowRegrets("flat", UNIT, 10 + noise).compare_best())
    for name in ("ours", "other_reading"):
        sample = np.array([getattr(comparison, name) for comparison in comparisons])
        assert abs(sample.mean() - 10) < 4 * sample.std(ddof=1) / 30**0.5, name


def test_marks_of_cells_follow_joint_errors_readings_and_tolerances(monkeypatch):
    key = PaperCellKey("regret", "somewhere ucb1", "notes", 200)
    monkeypatch.setattr("banditune.paper.paper_cells.load_published_numbers", lambda: {key: 10.0})
    tolerance = published_numbers.PaperTolerance(0.0, False, ())
    monkeypatch.setattr("banditune.paper.paper_cells.find_tolerance", lambda key, value: tolerance)
    joint = math.hypot(0.3, 0.4, 0.1 / math.sqrt(12))

    def make_cell(ours, other_reading=math.nan):
        return make_paper_cell(key, (ours, 0.3), other_reading=other_reading, spread=40.0)

    assert make_cell(11.0).z_score == pytest.approx(1 / joint)
    assert [make_cell(ours).mark for ours in (11, 11.7, 12.2, 7.8)] == ["", "!", "!!", "!!"]
    tolerance = published_numbers.PaperTolerance(2.0, False, ("because",))
    assert [make_cell(ours).mark for ours in (11, 12.2, 13.7, 14.2)] == ["", "~", "!", "!!"]
    tolerance = published_numbers.PaperTolerance(0.0, True, ("because",))
    assert make_cell(13.0, 9.0).mark == "~"
    assert make_cell(13.0, 12.2).excess_z_score == pytest.approx(2.2 / joint)
    assert math.isnan(make_paper_cell(PaperCellKey("regret", "nowhere"), (1.0, 0.1), spread=1.0).z_score)


def test_a_reproduction_contains_every_cell_of_its_rows(small_reproduction):
    assert len(small_reproduction.published_cells) == 2 * 20
    assert {(cell.tuner, cell.budget) for cell in small_reproduction.cells if cell.table == "failures"} == {
        (tuner, budget) for tuner in lockstep_tunings.LOCKSTEP_TUNERS for budget in (200, 500, 1000)
    }
    assert [curve.row for curve in small_reproduction.curves] == ["warm-up ucb1", "bernoulli ucb1"]
    assert small_reproduction.tunings == {"notes": 50, "uniform": 50, "halving": 50, "two-part": 10}
    textbook = next(
        cell for cell in small_reproduction.cells if (cell.table, cell.row) == ("textbook", "bernoulli ucb1")
    )
    assert abs(textbook.z_score) < 4


def test_a_row_depends_on_the_seed_and_not_on_other_rows(small_reproduction):
    assert bt.paper.reproduce(only=TWO_ROWS, runs=40, tunings=50, run=bt.Run(workers=1)) == small_reproduction
    single_row = bt.paper.reproduce(only="warm-up ucb1", runs=40, tunings=50)
    assert single_row.cells == tuple(
        single_row for single_row in small_reproduction.cells if single_row.row == "warm-up ucb1"
    )
    assert bt.paper.reproduce(only="warm-up ucb1", runs=40, tunings=50, seed=1).cells != single_row.cells


def test_a_notebook_and_a_report_show_our_numbers_beside_the_published_ones(small_reproduction, tmp_path):
    html = small_reproduction._repr_html_()
    header, *rows = re.findall(r"<tr>(.*?)</tr>", html.split("<table>")[1], re.DOTALL)
    assert re.findall(r">([^<]+)</th>", header)[:4] == ["row", "best width", "regret there", "paper"]
    cell = next(cell for cell in small_reproduction.cells if (cell.table, cell.row) == ("best", "warm-up ucb1"))
    ours = f"{cell.ours:.2f} ± {cell.se:.2g} {cell.mark}".rstrip()
    assert re.findall(r">([^<]*)</td>", rows[0])[2:4] == [ours, "4.2"]
    assert html.count("<table>") == 3
    assert "1,000 runs" in html
    assert "<summary>How it was done</summary>" in html
    text = bt.report(small_reproduction, tmp_path / "paper.html").read_text()
    assert ours in text
    assert "Regret after tuning" in text


def test_a_reproduction_of_the_gittins_index_alone_has_one_row():
    html = bt.paper.reproduce(only="gittins", runs=40, tunings=50)._repr_html_()
    assert html.count("<table>") == 1
    assert "warm-up gittins" in html


def test_a_written_reproduction_can_be_read(small_reproduction, tmp_path):
    write_paper_folder(small_reproduction, tmp_path / "deep" / "folder")
    assert bt.load_result(tmp_path / "deep" / "folder" / "paper.json") == small_reproduction
    page = (tmp_path / "deep" / "folder" / "paper.md").read_text()
    assert page == render_paper_markdown(small_reproduction)
    assert page.count("**") == 2 * len(small_reproduction.published_cells) + 2
    assert all(
        (tmp_path / "deep" / "folder" / name).read_text().count("<svg") for name in ("curves.svg", "agreement.svg")
    )
    assert len(draw_paper_curves(small_reproduction).axes) == 2
    assert "of the paper's 201 numbers" in repr(small_reproduction)


def test_the_gittins_line_is_a_separate_row():
    (cell,) = bt.paper.reproduce(only="gittins", runs=400, tunings=50).cells
    assert cell.ours == pytest.approx(3.75, abs=4 * cell.se)
    assert cell.paper == 3.9


def test_a_reproduction_from_a_store_simulates_nothing(tmp_path, monkeypatch):
    options = {"only": "warm-up ucb1", "runs": 40, "tunings": 50}
    first = bt.paper.reproduce(**options, run=bt.Run(store=tmp_path / "study.db"))
    assert first == bt.paper.reproduce(**options)
    monkeypatch.setattr(stored_simulator, "run_tasks", lambda *_: pytest.fail("simulated again"))
    assert bt.paper.reproduce(**options, run=bt.Run(store=tmp_path / "study.db")) == first


def test_the_command_writes_a_folder_and_fails_where_cells_differ(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from banditune.cli import app

    def run_paper(folder):
        arguments = ["paper", "--runs", "40", "--tunings", "50", "--only", "warm-up ts", "-o", str(folder)]
        return CliRunner().invoke(app, arguments)

    # With so few runs a comparison with the paper may fail. It is made with numbers that do not.
    reproduction_of_row = bt.paper.reproduce(only="warm-up ts", runs=40, tunings=50)
    numbers = {
        PaperCellKey(cell.table, cell.row, cell.tuner, cell.budget): cell.ours
        for cell in reproduction_of_row.cells
        if cell.paper >= 0
    }
    monkeypatch.setattr("banditune.paper.paper_cells.load_published_numbers", lambda: numbers)
    process = run_paper(tmp_path / "good")
    assert process.exit_code == 0, process.output
    assert "20 are within 3" in process.output
    data = json.loads((tmp_path / "good" / "paper.json").read_text())
    assert data["kind"] == "Reproduction"
    textbook = PaperCellKey("textbook", "warm-up ts")
    monkeypatch.setattr("banditune.paper.paper_cells.load_published_numbers", lambda: numbers | {textbook: 100.0})
    process = run_paper(tmp_path / "bad")
    assert process.exit_code == 1
    assert "1 beyond 4 (!!)" in process.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"only": "nothing"}, "bernoulli ucb1"),
        ({"only": ""}, "only"),
        ({"runs": 10}, "runs"),
        ({"tunings": 5}, "tunings"),
        ({"seed": -1}, "seed"),
        ({"run": bt.Run(device="abacus")}, "device"),
    ],
)
def test_wrong_requests_are_refused_at_once(options, message):
    with pytest.raises(bt.InvalidRequest, match=message):
        bt.paper.reproduce(**{"only": "warm-up", "runs": 40, "tunings": 50} | options)


def test_the_estimated_time_follows_the_measured_speed(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(reproduction.time, "monotonic", lambda: now[0])
    estimates = []
    estimator = reproduction.DurationEstimator(
        {"play a": 10.0, "play b": 100.0, "tune a": 7.0}, lambda *seconds: estimates.append(seconds)
    )
    report_progress = estimator.track_part("play a", 4)
    for now[0] in (50.0, 55.0, 60.0, 65.0):  # 50 s of compiling, then twice as slow as known
        report_progress(1)
    assert estimates[0] == (50, 50 + round(7.5 + 100 + 7))
    assert estimates[-1] == (65, 65 + 2 * 100 + 7)


def test_every_row_has_a_known_cost():
    assert len(paper_rows.PAPER_ROWS) == 10
    for row in paper_rows.PAPER_ROWS:
        assert row.cpu_microseconds > 0
        assert row.gpu_microseconds > 0
