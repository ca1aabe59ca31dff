"""Reports of stores and of their summaries: the same page from both, and an error for every other file."""

from __future__ import annotations

import json
import re
from dataclasses import replace

import numpy as np
import pytest

import banditune as bt
from banditune.cli import app
from banditune.cli.inspect_commands import load_summaries
from banditune.reports import plot_marks, result_plots, store_plots, store_ranking, store_report
from banditune.reports.html_page import render_page
from banditune.reports.markdown_report import render_markdown
from banditune.reports.report_builder import build_report_content
from banditune.storage import store_tables
from banditune.storage.regret_store import RegretStore
from banditune.storage.store_layout import RegretBlock, StoredSeries, StoredSetup
from helpers.example_results import FIRST_INSTANCE, SCRIPT_NAME, TagChecker

VERSIONS = {"banditune": "0.1.0", "python": "3.11.7"}


def make_setup(policy="ucb1", **changes):
    options = {
        "policy": {"name": policy, "noise": 0.5},
        "problem": {"name": "bernoulli", "arms": 10},
        "horizon": 1000,
        "seed": 3,
        "regret": "expected",
        "random_numbers": "common",
        "checkpoints": [1000],
        "shortcut": "none",
        "device": "cpu",
        "dtype": "float64",
    }
    return StoredSetup.from_key_text(json.dumps(options | changes), json.dumps(VERSIONS))


def store_regrets(path, setup, rows, runs, first=0, noise=0):
    """Write regrets of rows of parameters without a simulation. Return them by row."""
    rng = np.random.default_rng(len(rows) + runs)
    regrets_by_row = {row: rng.gamma(2, 10 + 30 * sum(row), (runs, setup.steps)).astype(np.float32) for row in rows}
    with RegretStore(path) as open_store:
        open_store.write_blocks(
            RegretBlock(StoredSeries(setup, np.array(row, float).tobytes(), noise), first, regrets)
            for row, regrets in regrets_by_row.items()
        )
    return {row: regrets.astype(float) for row, regrets in regrets_by_row.items()}


@pytest.fixture
def store(tmp_path):
    return tmp_path / "study.db"


@pytest.fixture
def full_store(store):
    """A store with a search, fresh runs, several parameters, separate random numbers, a script as a name, single runs."""
    store_regrets(store, make_setup(), [(value,) for value in np.linspace(0.1, 1, 12)], 350)
    store_regrets(store, make_setup(), [(0.05,)], 3)
    store_regrets(store, make_setup(), [(0.1,), (1.0,)], 400, first=FIRST_INSTANCE)
    store_regrets(store, make_setup("greedy"), [(0.0,)], 30)
    store_regrets(
        store,
        make_setup(SCRIPT_NAME, checkpoints=[10, 1000], random_numbers="independent"),
        [(0.1, 0.2), (0.3, 0.0)],
        120,
        noise=1,
    )
    store_regrets(store, make_setup("mine"), [(0.1,), (0.2,)], 1)
    return store


def export_summary(store):
    store_tables.export_store(store, store.with_name("few.csv"), all_regrets=False)
    return store.with_name("few.csv")


def test_a_summary_contains_the_statistics_of_the_regrets(store):
    search = store_regrets(store, make_setup(), [(0.1,), (0.5,)], 150)
    fresh = store_regrets(store, make_setup(), [(0.5,)], 300, first=FIRST_INSTANCE)
    (summary,) = load_summaries(store)
    assert (summary.policy, summary.horizon, summary.seed) == ("ucb1(noise=0.5)", 1000, 3)
    assert summary.versions == "banditune 0.1.0, python 3.11.7"
    assert summary.parameters == ("gamma",)
    for mean_of_value in summary.stored_means:
        sample = (fresh if mean_of_value.fresh else search)[mean_of_value.params][:, 0]
        assert mean_of_value.regret == bt.results.Estimate.from_sample(sample)
        assert mean_of_value.distribution.get_quantile(0.95) == np.percentile(sample, 95)
        assert mean_of_value.distribution.values[-1] == sample.max()
    assert len(summary.stored_means) == 3
    assert bt.results.from_json(summary.to_json()) == summary
    assert list(summary.to_pandas()["gamma"]) == [mean_of_value.params[0] for mean_of_value in summary.stored_means]


@pytest.mark.parametrize("size", [1, 2, 3, 20, 101, 1000])
def test_quantiles_agree_with_numpy(size):
    sample = np.random.default_rng(size).gamma(2, 10, size)
    assert (
        store_tables._compute_quantiles(np.sort(sample)) == np.percentile(sample, store_tables.QUANTILE_PERCENTS)
    ).all()


def test_an_exported_summary_agrees_with_its_store(full_store):
    assert load_summaries(export_summary(full_store)) == load_summaries(full_store)
    assert [summary.parameters for summary in load_summaries(full_store)] == [
        ("gamma",),
        (),
        ("parameter 1", "parameter 2"),
        ("parameter",),
    ]


def test_summaries_of_old_versions_and_spreadsheets_can_be_read(full_store):
    table = export_summary(full_store)
    lines = [re.sub(r',versions|,"banditune[^"]*"', "", line) for line in table.read_text().splitlines()]
    table.write_text("\ufeff" + "\r\n".join(lines) + "\r\n", newline="")
    assert load_summaries(table) == [replace(summary, versions="") for summary in load_summaries(full_store)]
    assert "unknown" in render_markdown(build_report_content(load_summaries(table)[0]))


def test_every_summary_becomes_a_valid_page(full_store):
    text = render_page(*map(build_report_content, load_summaries(full_store)))
    tags = TagChecker()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    assert tags.scripts == 2
    assert text.count("<article>") == 4
    assert SCRIPT_NAME not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not re.search(r"\bnan\b|\binf\b", text.lower())
    assert "winner&#x27;s curse" in text
    for text_of_page in ("banditune 0.1.0, python 3.11.7", "the plain loop", "cpu, in float64", "Regret over steps"):
        assert text_of_page in text


def test_fresh_instances_are_shown_first_and_few_runs_are_never_best(full_store):
    summary = load_summaries(full_store)[0]
    content = build_report_content(summary)
    assert content.answer.startswith("gamma = 0.1 has the lowest of 2 means on fresh instances, ")
    assert [section.title for section in content.sections if section.title] == [
        "Regret over gamma",
        "Lowest means on fresh instances",
        "Lowest means on search instances",
        "Regret of single runs",
        "How this was simulated",
    ]
    search = content.sections[2]
    assert len(search.table.rows) == store_report.MAX_BEST_ROWS
    assert "0.05" not in [row[0] for row in search.table.rows]
    assert search.paragraphs[0].startswith("12 values with 350 runs or more; others have too few runs")
    shapes = [mark.shape for mark in content.sections[0].plot.marks]
    assert shapes == ["band", "line", "dots", "dots"]
    assert "Not drawn: 1 mean of few runs" in content.sections[0].paragraphs[-1]
    assert content.key_figures[-1] == ("all runs", "5,003", "13 values")


def test_means_of_few_runs_have_faint_dots_and_no_interval(store):
    store_regrets(store, make_setup(), [(value / 10,) for value in range(1, 7)], 350)
    store_regrets(store, make_setup(), [(0.25,), (0.45,)], 29)
    store_regrets(store, make_setup(), [(0.35,)], 9)
    (summary,) = load_summaries(store)
    faint, band, line, dots = store_plots.make_store_plot(summary, 0).marks
    assert (faint.colour, faint.x, faint.low) == (plot_marks.GREY_COLOUR, (0.25, 0.45), ())
    assert band.x == line.x == dots.x == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    assert "to" not in faint.tips[0]
    assert faint.tips[0].endswith(" in 29 runs")
    assert max(faint.radius) < min(dots.radius)
    text = render_markdown(build_report_content(summary))
    assert "Grey means have fewer than 300 runs" in text
    assert re.search(r"\| 0\.25 \| 29 \| [\d.]+ \| [\d.]+ \|  \|", text)
    assert re.search(r"\| 0\.2 \| 350 \| [\d.]+ \| [\d.]+ \| [\d.]+ to [\d.]+ \|", text)
    collections = bt.plot(summary).axes[0].collections
    assert [float(collection.get_alpha() or 1) for collection in collections] == [0.55, 0.2, 1.0]
    assert len(collections[0].get_offsets()) == 2


def test_without_enough_runs_there_is_no_line_and_no_interval(store):
    store_regrets(store, make_setup(checkpoints=[10, 1000]), [(value / 10,) for value in range(1, 7)], 20)
    (summary,) = load_summaries(store)
    (faint,) = store_plots.make_store_plot(summary, 0).marks
    assert len(faint.x) == 6
    assert " to " not in build_report_content(summary).answer
    (growth,) = store_report.make_growth_section(summary)
    assert [mark.shape for mark in growth.plot.marks] == ["line", "dots"]


def store_high_regrets(store, rows, *, runs, first=0):
    """Write runs with these mean regrets, by value."""
    rng = np.random.default_rng(0)
    blocks = []
    for value, mean in rows.items():
        sample = rng.gamma(2, mean / 2, (runs, 1)).astype(np.float32)
        blocks.append(RegretBlock(StoredSeries(make_setup(), np.array([value]).tobytes(), 0), first, sample))
    with RegretStore(store) as open_store:
        open_store.write_blocks(blocks)


def test_very_high_regrets_are_cut_off_by_the_plot(store):
    store_high_regrets(store, {0.0: 1000, 0.2: 300, 0.4: 40, 0.6: 20, 0.8: 25, 1.0: 30}, runs=500)
    store_high_regrets(store, {0.1: 2000}, runs=20)
    (summary,) = load_summaries(store)
    y = store_plots.make_store_plot(summary, 0).y
    assert (y.low, 40 < y.high < 100) == (0, True)
    assert bt.plot(summary).axes[0].get_ylim() == (y.low, y.high)
    store_high_regrets(store, {0.6: 20, 1.0: 250}, runs=500, first=FIRST_INSTANCE)
    (summary,) = load_summaries(store)
    highest = max(mean_of_value.regret.high for mean_of_value in summary.select_final(fresh=True))
    assert store_plots.make_store_plot(summary, 0).y.high == pytest.approx(1.25 * highest)


def test_a_best_value_without_regret_keeps_all_others_visible(store):
    with RegretStore(store) as open_store:
        open_store.write_blocks(
            RegretBlock(
                StoredSeries(make_setup(), np.array([loss / 10]).tobytes(), 0), 0, np.full((400, 1), loss, np.float32)
            )
            for loss in range(7)
        )
    (summary,) = load_summaries(store)
    assert store_plots.make_store_plot(summary, 0).y.high == 7.5


def test_the_lowest_mean_is_called_likely_too_low(store):
    store_regrets(store, make_setup(), [(0.1,), (0.9,)], 150)
    (summary,) = load_summaries(store)
    mean = min(mean_of_value.regret.mean for mean_of_value in summary.stored_means)
    answer = f"has the lowest of 2 means on search instances, {mean:.4g}, which as the lowest is likely too low."
    assert build_report_content(summary).answer == f"gamma = 0.1 {answer}"
    assert ("lowest mean", f"{mean:.4g}", "likely too low") in build_report_content(summary).key_figures
    assert "likely higher than shown" in render_markdown(build_report_content(summary))


def test_the_interval_of_the_lowest_mean_covers_all_values_together(store):
    store_high_regrets(store, dict.fromkeys(np.linspace(0, 1, 40), 30), runs=500, first=FIRST_INSTANCE)
    (summary,) = load_summaries(store)
    lead = store_ranking.find_leader(summary).regret
    low, high = store_ranking.compute_simultaneous_interval(store_ranking.find_leader(summary), 40)
    assert lead.high < 30 < high
    content = build_report_content(summary)
    assert content.answer.endswith(
        f" has the lowest of 40 means on fresh instances, {lead.mean:.4g}, which as the lowest is likely too low: "
        f"its regret is "
        f"{low:.4g} to {high:.4g} (95% sure for all values together)."
    )
    for text in (content.answer, *map(" ".join, content.key_figures), content.sections[0].plot.about):
        assert f"{lead.high:.4g}" not in text


def test_a_single_value_has_its_own_interval(store):
    store_high_regrets(store, {0.5: 30}, runs=500, first=FIRST_INSTANCE)
    (summary,) = load_summaries(store)
    (mean_of_value,) = summary.stored_means
    assert store_ranking.compute_simultaneous_interval(mean_of_value, 1) == pytest.approx(
        (mean_of_value.regret.low, mean_of_value.regret.high)
    )
    interval = f"{mean_of_value.regret.low:.4g} to {mean_of_value.regret.high:.4g}"
    assert (
        build_report_content(summary).answer
        == f"gamma = 0.5 has regret {mean_of_value.regret.mean:.4g} ({interval}) on 500 fresh instances."
    )
    assert ("regret", f"{mean_of_value.regret.mean:.4g}", f"95%: {interval}") in build_report_content(
        summary
    ).key_figures


def test_a_summary_is_printed_as_text(full_store):
    text = bt.reports.format_text(load_summaries(full_store)[0])
    assert text.startswith("ucb1(noise=0.5) on bernoulli(arms=10), horizon 1,000\n\ngamma = 0.1 has the lowest")
    assert "lowest means, search instances" in text
    assert text.endswith("4,203 on search instances, 800 on fresh ones; expected regret, seed 3, on the cpu")
    assert all(bt.reports.format_text(summary) for summary in load_summaries(full_store))


def test_a_policy_without_parameters_has_one_mean(full_store):
    content = build_report_content(load_summaries(full_store)[1])
    assert re.fullmatch(r"greedy\(noise=0\.5\) has regret .* on 30 search instances\.", content.answer)
    assert [section.title for section in content.sections][:2] == [
        "Lowest means on search instances",
        "Regret of single runs",
    ]
    assert "No value has 300 runs" in content.sections[0].paragraphs[-1]


def test_single_runs_have_no_interval(full_store):
    content = build_report_content(load_summaries(full_store)[3])
    assert re.match(r"parameter = 0\.\d has the lowest of 2 means on search instances, [\d.]+, which", content.answer)
    assert "nan" not in render_markdown(content)


def test_the_tail_ends_at_the_last_known_quantile(full_store):
    plot = result_plots.make_distribution_plot(store_ranking.list_leader_distributions(load_summaries(full_store)[0]))
    assert plot.y.log_low == pytest.approx(0.008)
    assert max(plot.marks[0].x) < plot.x.high


def test_a_page_of_many_values_is_small(store):
    store_regrets(store, make_setup(), [(number / 3000,) for number in range(3000)], 10)
    (summary,) = load_summaries(store)
    assert len(render_page(build_report_content(summary))) < 300_000
    assert "The first 200 of 3,000." in render_markdown(build_report_content(summary))


def test_report_writes_pages_tables_and_figures(full_store, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    export_summary(full_store)
    for name in ("study.db", "few.csv"):
        app(["report", name, "-o", f"{name}.html", "--markdown", f"{name}.md"], standalone_mode=False)
    assert capsys.readouterr().out.splitlines()[0] == "wrote study.db.html"
    assert (tmp_path / "study.db.html").read_text() == (tmp_path / "few.csv.html").read_text()
    assert (tmp_path / "study.db.md").read_text() == (tmp_path / "few.csv.md").read_text()
    for summary in load_summaries(full_store):
        summary.plot(tmp_path / "figure.svg")
        assert SCRIPT_NAME not in (tmp_path / "figure.svg").read_text()
    store_regrets(tmp_path / "one.db", make_setup(), [(0.1,)], 20)
    app(["report", "one.db", "--figures", "figures"], standalone_mode=False)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["one.pdf", "one.png", "one.svg"]
    before = full_store.read_bytes()
    with pytest.raises(bt.InvalidRequest, match="must be another file than those that"):
        app(["report", "study.db", "-o", "study.db"], standalone_mode=False)
    assert full_store.read_bytes() == before


def export_regrets(store):
    store_tables.export_store(store, store.with_name("all.csv"))
    return store.with_name("all.csv").read_bytes()


def make_edit(old, new):
    return lambda store: export_summary(store).read_bytes().replace(old, new)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (lambda store: b"", "a result \\(JSON\\), a store, or a summary .* is empty"),
        (lambda store: b"\x89PNG\r\n", "a result \\(JSON\\), a store, or a summary .* begins otherwise"),
        (lambda store: b'{"schema_version": 1, "kind": "Other"}', "a result must be one of"),
        (lambda store: b"SQLite format 3\0" + b"\1" * 600, "must be a store, but it is not an SQLite file"),
        (export_regrets, "must be a summary, but it has no column 'policy'; make it with `banditune store export"),
        (
            lambda store: export_summary(store).read_bytes().splitlines()[0] + b"\n",
            "must contain regrets, but there are none",
        ),
        (lambda store: export_summary(store).read_bytes()[:-60], "the file may be incomplete"),
        (make_edit(b"search", b"seen"), "instances must be 'search' or 'fresh', but got 'seen'"),
        (make_edit(b",350,", b",-1,"), "numbers of runs and steps must be 1 or more, but got '-1'"),
        (make_edit(b",350,", b",many,"), "must be unchanged, but: invalid literal"),
        (make_edit(b",350,", b",350,9e305,"), "numbers must be finite, but got '9e305'|incomplete"),
        (make_edit(b"0.1,0,search", b"0.1;2,0,search"), "different numbers of parameters"),
        (make_edit(b"ucb1", b"\xff\xfe"), "cannot be read"),
    ],
)
def test_other_files_are_refused(full_store, tmp_path, content, message):
    (tmp_path / "other").write_bytes(content(full_store))
    error_class = bt.errors.StoreError if "SQLite" in message else bt.InvalidRequest
    with pytest.raises(error_class, match=message):
        app(["report", str(tmp_path / "other"), "-o", str(tmp_path / "report.html")], standalone_mode=False)
    assert not (tmp_path / "report.html").exists()


def test_a_damaged_summary_is_read_or_refused(full_store, tmp_path):
    content = export_summary(full_store).read_bytes()
    rng = np.random.default_rng(0)
    pages = 0
    for _ in range(150):
        damaged = bytearray(content)
        for position in rng.integers(len(damaged), size=3):
            damaged[position] = rng.choice(list(b'0123456789e.-;,"\n<\0\xff'))
        (tmp_path / "wrong.csv").write_bytes(damaged)
        try:
            text = render_page(*map(build_report_content, load_summaries(tmp_path / "wrong.csv")))
        except bt.InvalidRequest:
            continue
        pages += 1
        assert SCRIPT_NAME not in text
        assert json.loads(re.search(r'id="plots">(.*?)</script>', text, re.DOTALL)[1])
    assert 5 < pages < 145


def test_an_incomplete_description_is_refused(store):
    store_regrets(store, StoredSetup.from_key_text('{"checkpoints":[1]}'), [(0.1,)], 3)
    with pytest.raises(bt.InvalidRequest, match="must be unchanged, but"):
        load_summaries(store)


def test_an_empty_store_is_refused(store):
    RegretStore(store).close()
    with pytest.raises(bt.InvalidRequest, match="must contain regrets, but there are none"):
        load_summaries(store)
    with pytest.raises(bt.InvalidRequest, match="cannot be read"):
        load_summaries(store.with_name("nothing"))
