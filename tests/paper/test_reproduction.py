"""The paper's experiments played again: the published numbers, tunings in lock-step, errors, marks and exit codes."""

from __future__ import annotations

import dataclasses
import json
import math

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
TWO = "warm-up ucb1,bernoulli ucb1"


@pytest.fixture(scope="module")
def tiny():
    return bt.paper.reproduce(only=TWO, runs=40, tunings=50)


def steep(units):
    """A price of exploring and a steep price of failing: the lowest point is near 0.22."""
    return 350 * units**1.1 + 400 * np.exp(-units / 0.08)


def regrets(runs, seed=0):
    """A pool around that curve with heavy tails; widths share instances."""
    rng = np.random.default_rng(seed)
    instances = rng.gamma(2, 0.5, runs)
    return steep(UNIT_POINTS)[:, None] * instances * rng.gamma(1, 1, (len(UNIT_POINTS), runs))


def source(runs, seed=0):
    return make_run_source("steep", UNIT, UNIT_POINTS, regrets(runs, seed))


def test_all_published_numbers_are_there():
    found = load_published_numbers()
    assert len(found) == 201
    tables = {"best": 10, "theory": 10, "regret": 90, "failures": 90, "gittins": 1}
    assert {table: sum(place.table == table for place in found) for table in tables} == tables
    assert {place.row for place in found} == {*(row.name for row in paper_rows.PAPER_ROWS), paper_rows.GITTINS_ROW}
    assert found[PaperCellKey("theory", "linear linucb")] == 341.8
    assert found[PaperCellKey("regret", "bernoulli ts", "uniform", 50)] == 113.2
    assert found[PaperCellKey("failures", "logistic glm-tsl", "halving", 200)] == 4.0
    assert found[PaperCellKey("gittins", "warm-up gittins")] == 3.9


def test_every_written_tolerance_touches_a_number_and_says_why():
    lines = list(published_numbers.read_data_rows("tolerances.csv"))
    assert lines
    for line in lines:
        assert any(
            line["reason"] in find_tolerance(place, value).reasons for place, value in load_published_numbers().items()
        )
        assert line["unit"] in ("%", "points")
        assert line["reason"].endswith(".")


def test_what_is_known_of_a_cell_is_about_published_numbers_and_changes_no_mark():
    lines = list(published_numbers.read_data_rows("known.csv"))
    for line in lines:
        assert any(line["known"] in find_explanation(place) for place in load_published_numbers())
        assert line["known"].endswith(".")
        assert line["known"].split(":")[0] in ("Explained", "Explained in part", "Not explained")
    place = next(place for place in load_published_numbers() if find_explanation(place))
    far = make_paper_cell(place, (1e6, 0.1), spread=1.0)
    assert far.mark == "!!"
    assert far.explanation == find_explanation(place)
    assert find_explanation(PaperCellKey("theory", "bernoulli ts")) == ""


def test_schedules_are_the_papers():
    """Runs that each tuning draws: instances, not runs, because all values of an iteration are played on the same."""
    drawn = {
        (name, budget): make(budget)(source(20), 2, np.random.default_rng(0))[1].shape[1]
        for name, make in lockstep_tunings.LOCKSTEP_TUNERS.items()
        for budget in (50, 200, 1000)
    }
    assert drawn == {
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


class Same:
    """Draws instances for one tuning that a lock-step drew for it: its rows, one call after the other."""

    def __init__(self, drawn):
        self.drawn, self.at = drawn, 0

    def integers(self, instances, size):
        self.at += size
        return self.drawn[self.at - size : self.at]


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
def test_tunings_in_lock_step_answer_bit_for_bit_as_the_tuners_one_by_one(lockstep, tuner, budget):
    pool = source(300)
    places, drawn = lockstep(pool, 40, np.random.default_rng(1))
    alone = [lockstep_tunings.run_single_tuner(tuner, pool, budget, Same(row)) for row in drawn]
    assert pool.find_nearest(alone).tolist() == places.tolist()
    assert len(set(places.tolist())) > 1


def test_two_part_in_lock_step_answers_in_law_as_one_by_one():
    pool, rng = source(500), np.random.default_rng(2)
    together = steep(UNIT_POINTS[lockstep_tunings.make_two_part_search(50)(pool, 250, rng)[0]])
    alone = steep(np.array([lockstep_tunings.run_single_tuner(TwoPart(), pool, 50, rng) for _ in range(80)]))
    assert abs(together.mean() - alone.mean()) < 4 * math.hypot(together.std() / 250**0.5, alone.std() / 80**0.5)


@pytest.mark.parametrize(
    ("together", "apart"),
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
def test_on_shared_instances_only_the_values_count(together, apart):
    """Where all values of an instance lose its share, ranks never change on one instance; on several they do."""
    luck = np.random.default_rng(0).gamma(0.1, 10, 2000)
    pool = make_run_source("luck", UNIT, UNIT_POINTS, steep(UNIT_POINTS)[:, None] * luck)
    answers = [search(pool, 300, np.random.default_rng(1))[0] for search in (together, apart)]
    assert len(set(answers[0].tolist())) == 1
    assert len(set(answers[1].tolist())) > 3


def test_failures_span_all_readings_of_the_tuner():
    noise = 0.01 * np.random.default_rng(0).standard_normal((len(UNIT_POINTS), 400))
    pool = RowRegrets("steep", UNIT, steep(UNIT_POINTS)[:, None] + noise)
    ends = [np.bincount([at], minlength=len(UNIT_POINTS)) * 100.0 for at in (pool.best, len(UNIT_POINTS) - 1)]
    found, other = (lockstep_tunings.TuningOutcomes(end, np.zeros((len(UNIT_POINTS), 400))) for end in ends)
    place = PaperCellKey("failures", "somewhere ucb1", "uniform", 200)
    assert (pool.compare_failures(place, found).low, pool.compare_failures(place, found).high) == (0.0, 0.0)
    both = pool.compare_failures(place, found, [other])
    assert (both.ours, both.low, both.high) == (0.0, 0.0, 100.0)
    after = pool.compare_tuned_regret(place, found, [found, other])
    assert math.isnan(after.other_reading)
    assert after.high == pool.means[-1]


def test_a_page_tells_why_cells_differ(tiny):
    one, two = tiny.published_cells[:2]
    cells = (
        dataclasses.replace(one, excess_z_score=5.0, explanation="Explained: by the moon."),
        dataclasses.replace(two, excess_z_score=-3.5, explanation=""),
        *(dataclasses.replace(cell, excess_z_score=0.0) for cell in tiny.cells if cell not in (one, two)),
    )
    page = render_paper_markdown(dataclasses.replace(tiny, cells=cells))
    assert page.count("by the moon") == 1
    assert "Not known: with 10,000 runs" in page
    assert "by the moon" in repr(dataclasses.replace(tiny, cells=cells))
    calm = tuple(dataclasses.replace(cell, excess_z_score=0.0) for cell in tiny.cells)
    assert "Cells that differ" not in render_paper_markdown(dataclasses.replace(tiny, cells=calm))


def test_without_runs_halving_keeps_values_by_lot():
    pool = source(50)
    places, _ = lockstep_tunings.make_baseline_grid_search([(0, 1)])(pool, 1100, np.random.default_rng(0))
    counts = np.bincount(places, minlength=len(UNIT_POINTS))[TENTH_INDICES]
    assert abs(counts - 100).max() < 50


@pytest.mark.parametrize(("tuner", "budget"), [("notes", 200), ("uniform", 200), ("halving", 500)])
def test_the_stated_error_is_the_spread_over_pools(tuner, budget):
    """Twenty pools: means of regret and failures spread as much as each pool says, within what 20 can show."""
    found = []
    far = 100.0 * (np.abs(UNIT_POINTS - 0.22) > 0.1)
    for seed in range(20):
        pool = RowRegrets("steep", UNIT, regrets(400, seed))
        after = lockstep_tunings.tune_in_lockstep(
            lockstep_tunings.LOCKSTEP_TUNERS[tuner](budget),
            source(400, seed),
            1000,
            lockstep_tunings.make_cell_rng(seed),
        )
        found.append(
            (
                after.compute_mean(pool.means),
                after.compute_error(pool.means, pool.regrets),
                after.compute_mean(far),
                after.compute_error(far),
            )
        )
    regret, regret_se, failures, failures_se = np.array(found).T
    assert 0.6 < regret.std(ddof=1) / np.sqrt((regret_se**2).mean()) < 1.5
    assert 0.5 < failures.std(ddof=1) / np.sqrt((failures_se**2).mean()) < 1.5


def test_the_best_width_is_judged_on_runs_that_it_was_not_chosen_on():
    """On a flat curve the lowest of many means is too low; ours is not."""
    found = []
    for seed in range(30):
        noise = np.random.default_rng(seed).standard_normal((len(UNIT_POINTS), 200))
        found.append(RowRegrets("flat", UNIT, 10 + noise).compare_best())
    for name in ("ours", "other_reading"):
        sample = np.array([getattr(one, name) for one in found])
        assert abs(sample.mean() - 10) < 4 * sample.std(ddof=1) / 30**0.5, name


def test_cells_are_judged_by_joint_errors_readings_and_tolerances(monkeypatch):
    place = PaperCellKey("regret", "somewhere ucb1", "notes", 200)
    monkeypatch.setattr("banditune.paper.paper_cells.load_published_numbers", lambda: {place: 10.0})
    tolerance = published_numbers.PaperTolerance(0.0, False, ())
    monkeypatch.setattr("banditune.paper.paper_cells.find_tolerance", lambda place, value: tolerance)
    joint = math.hypot(0.3, 0.4, 0.1 / math.sqrt(12))

    def judged(ours, other=math.nan):
        return make_paper_cell(place, (ours, 0.3), other=other, spread=40.0)

    assert judged(11.0).z_score == pytest.approx(1 / joint)
    assert [judged(ours).mark for ours in (11, 11.7, 12.2, 7.8)] == ["", "!", "!!", "!!"]
    tolerance = published_numbers.PaperTolerance(2.0, False, ("because",))
    assert [judged(ours).mark for ours in (11, 12.2, 13.7, 14.2)] == ["", "~", "!", "!!"]
    tolerance = published_numbers.PaperTolerance(0.0, True, ("because",))
    assert judged(13.0, 9.0).mark == "~"
    assert judged(13.0, 12.2).excess_z_score == pytest.approx(2.2 / joint)
    assert math.isnan(make_paper_cell(PaperCellKey("regret", "nowhere"), (1.0, 0.1), spread=1.0).z_score)


def test_a_tiny_study_holds_every_cell_of_its_rows(tiny):
    assert len(tiny.published_cells) == 2 * 20
    assert {(one.tuner, one.budget) for one in tiny.cells if one.table == "failures"} == {
        (tuner, budget) for tuner in lockstep_tunings.LOCKSTEP_TUNERS for budget in (200, 500, 1000)
    }
    assert [curve.row for curve in tiny.curves] == ["warm-up ucb1", "bernoulli ucb1"]
    assert tiny.tunings == {"notes": 50, "uniform": 50, "halving": 50, "two-part": 10}
    theory = next(one for one in tiny.cells if (one.table, one.row) == ("theory", "bernoulli ucb1"))
    assert abs(theory.z_score) < 4


def test_the_same_seed_gives_the_same_and_rows_do_not_depend_on_others(tiny):
    assert bt.paper.reproduce(only=TWO, runs=40, tunings=50, run=bt.Run(workers=1)) == tiny
    one = bt.paper.reproduce(only="warm-up ucb1", runs=40, tunings=50)
    assert one.cells == tuple(one for one in tiny.cells if one.row == "warm-up ucb1")
    assert bt.paper.reproduce(only="warm-up ucb1", runs=40, tunings=50, seed=1).cells != one.cells


def test_what_is_written_can_be_read_again(tiny, tmp_path):
    write_paper_folder(tiny, tmp_path / "deep" / "folder")
    assert bt.load_result(tmp_path / "deep" / "folder" / "paper.json") == tiny
    page = (tmp_path / "deep" / "folder" / "paper.md").read_text()
    assert page == render_paper_markdown(tiny)
    assert page.count("**") == 2 * len(tiny.published_cells) + 2
    assert all(
        (tmp_path / "deep" / "folder" / name).read_text().count("<svg") for name in ("curves.svg", "agreement.svg")
    )
    assert len(draw_paper_curves(tiny).axes) == 2
    assert "of the paper's 201 numbers" in repr(tiny)


def test_the_gittins_line_is_a_row_of_its_own():
    (played,) = bt.paper.reproduce(only="gittins", runs=400, tunings=50).cells
    assert played.ours == pytest.approx(3.75, abs=4 * played.se)
    assert played.paper == 3.9


def test_a_study_from_a_ledger_is_the_same_and_plays_nothing(tmp_path, monkeypatch):
    options = {"only": "warm-up ucb1", "runs": 40, "tunings": 50}
    first = bt.paper.reproduce(**options, run=bt.Run(store=tmp_path / "study.ledger"))
    assert first == bt.paper.reproduce(**options)
    monkeypatch.setattr(stored_simulator, "run_tasks", lambda *_: pytest.fail("played again"))
    assert bt.paper.reproduce(**options, run=bt.Run(store=tmp_path / "study.ledger")) == first


def test_the_command_line_writes_a_folder_and_its_exit_code_is_the_verdict(tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from banditune.cli import app

    def run(folder):
        asked = ["paper", "--runs", "40", "--tunings", "50", "--only", "warm-up ts", "-o", str(folder)]
        return CliRunner().invoke(app, asked)

    # With so few runs an honest comparison may fail: numbers of our own that do not.
    once = bt.paper.reproduce(only="warm-up ts", runs=40, tunings=50)
    ours = {PaperCellKey(one.table, one.row, one.tuner, one.budget): one.ours for one in once.cells if one.paper >= 0}
    monkeypatch.setattr("banditune.paper.paper_cells.load_published_numbers", lambda: ours)
    process = run(tmp_path / "good")
    assert process.exit_code == 0, process.output
    assert "20 are within 3" in process.output
    data = json.loads((tmp_path / "good" / "paper.json").read_text())
    assert data["kind"] == "Reproduction"
    theory = PaperCellKey("theory", "warm-up ts")
    monkeypatch.setattr("banditune.paper.paper_cells.load_published_numbers", lambda: ours | {theory: 100.0})
    process = run(tmp_path / "bad")
    assert process.exit_code == 1
    assert "1 beyond 4 (!!)" in process.output


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"only": "nothing"}, "bernoulli ucb1"),
        ({"only": ""}, "only"),
        ({"runs": 10}, "runs"),
        ({"tunings": 5}, "tunings"),
        ({"seed": -1}, "seed"),
        ({"run": bt.Run(device="abacus")}, "device"),
    ],
)
def test_requests_are_checked_before_the_work(options, named):
    with pytest.raises(bt.InvalidRequest, match=named):
        bt.paper.reproduce(**{"only": "warm-up", "runs": 40, "tunings": 50} | options)


def test_the_time_ahead_is_the_sum_over_rows_at_the_measured_pace(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(reproduction.time, "monotonic", lambda: now[0])
    told = []
    ahead = reproduction.DurationEstimator(
        {"play a": 10.0, "play b": 100.0, "tune a": 7.0}, lambda *seconds: told.append(seconds)
    )
    part = ahead.track_part("play a", 4)
    for now[0] in (50.0, 55.0, 60.0, 65.0):  # 50 s of compiling, then twice as slow as known
        part(1)
    assert told[0] == (50, 50 + round(7.5 + 100 + 7))
    assert told[-1] == (65, 65 + 2 * 100 + 7)


def test_known_costs_are_there_for_every_row():
    assert len(paper_rows.PAPER_ROWS) == 10
    for row in paper_rows.PAPER_ROWS:
        assert row.cpu_microseconds > 0
        assert row.gpu_microseconds > 0
