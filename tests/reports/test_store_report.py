"""Reports of ledgers and of their summaries: the same page from both, and a sentence for every other file."""

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
from helpers.example_results import EVIL, FIRST, Balance

VERSIONS = {"banditune": "0.1.0", "python": "3.11.7"}


def setup_for(policy="ucb1", **changes):
    options = {
        "policy": {"name": policy, "noise": 0.5},
        "problem": {"name": "bernoulli", "arms": 10},
        "horizon": 1000,
        "seed": 3,
        "regret": "expected",
        "noise": "shared",
        "at": [1000],
        "play": "plain",
        "device": "cpu",
        "precision": "float64",
    }
    return StoredSetup.from_key_text(json.dumps(options | changes), json.dumps(VERSIONS))


def kept(path, setup, rows, runs, first=0, noise=0):
    """Write regrets of rows of parameters; nothing is played. Returns them by row."""
    rng = np.random.default_rng(len(rows) + runs)
    found = {row: rng.gamma(2, 10 + 30 * sum(row), (runs, setup.steps)).astype(np.float32) for row in rows}
    with RegretStore(path) as ledger:
        ledger.write_blocks(
            RegretBlock(StoredSeries(setup, np.array(row, float).tobytes(), noise), first, regrets)
            for row, regrets in found.items()
        )
    return {row: regrets.astype(float) for row, regrets in found.items()}


@pytest.fixture
def book(tmp_path):
    return tmp_path / "study.ledger"


@pytest.fixture
def full(book):
    """A search, fresh runs, no parameter, several with steps and own noise and a script for a name, single runs."""
    kept(book, setup_for(), [(value,) for value in np.linspace(0.1, 1, 12)], 350)
    kept(book, setup_for(), [(0.05,)], 3)
    kept(book, setup_for(), [(0.1,), (1.0,)], 400, first=FIRST)
    kept(book, setup_for("greedy"), [(0.0,)], 30)
    kept(book, setup_for(EVIL, at=[10, 1000], noise="own"), [(0.1, 0.2), (0.3, 0.0)], 120, noise=1)
    kept(book, setup_for("mine"), [(0.1,), (0.2,)], 1)
    return book


def summarised(book):
    store_tables.export_store(book, book.with_name("few.csv"), whole=False)
    return book.with_name("few.csv")


def test_an_account_has_the_numbers_of_the_regrets(book):
    search = kept(book, setup_for(), [(0.1,), (0.5,)], 150)
    fresh = kept(book, setup_for(), [(0.5,)], 300, first=FIRST)
    (account,) = load_summaries(book)
    assert (account.policy, account.horizon, account.seed) == ("ucb1(noise=0.5)", 1000, 3)
    assert account.versions == "banditune 0.1.0, python 3.11.7"
    assert account.parameters == ("gamma",)
    for tally in account.stored_means:
        sample = (fresh if tally.fresh else search)[tally.params][:, 0]
        assert tally.regret == bt.results.Estimate.from_sample(sample)
        assert tally.distribution.get_quantile(0.95) == np.percentile(sample, 95)
        assert tally.distribution.values[-1] == sample.max()
    assert len(account.stored_means) == 3
    assert bt.results.from_json(account.to_json()) == account
    assert list(account.to_pandas()["gamma"]) == [tally.params[0] for tally in account.stored_means]


@pytest.mark.parametrize("size", [1, 2, 3, 20, 101, 1000])
def test_quantiles_are_those_of_numpy(size):
    sample = np.random.default_rng(size).gamma(2, 10, size)
    assert (
        store_tables._compute_quantiles(np.sort(sample)) == np.percentile(sample, store_tables.QUANTILE_PERCENTS)
    ).all()


def test_a_summary_tells_the_same_as_its_ledger(full):
    assert load_summaries(summarised(full)) == load_summaries(full)
    assert [account.parameters for account in load_summaries(full)] == [
        ("gamma",),
        (),
        ("parameter 1", "parameter 2"),
        ("parameter",),
    ]


def test_summaries_of_the_first_versions_and_of_a_spreadsheet_can_be_read(full):
    table = summarised(full)
    lines = [re.sub(r',versions|,"banditune[^"]*"', "", line) for line in table.read_text().splitlines()]
    table.write_text("\ufeff" + "\r\n".join(lines) + "\r\n", newline="")
    assert load_summaries(table) == [replace(account, versions="") for account in load_summaries(full)]
    assert "unknown" in render_markdown(build_report_content(load_summaries(table)[0]))


def test_every_account_becomes_a_page_that_is_whole(full):
    text = render_page(*map(build_report_content, load_summaries(full)))
    tags = Balance()
    tags.feed(text)
    tags.close()
    assert tags.open == []
    assert tags.scripts == 2
    assert text.count("<article>") == 4
    assert EVIL not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert not re.search(r"\bnan\b|\binf\b", text.lower())
    assert "winner&#x27;s curse" in text
    for words in ("banditune 0.1.0, python 3.11.7", "the plain loop", "cpu, in float64", "Regret over steps"):
        assert words in text


def test_fresh_instances_come_first_and_few_runs_are_never_best(full):
    account = load_summaries(full)[0]
    content = build_report_content(account)
    assert content.answer.startswith("gamma = 0.1 has the lowest of 2 means on fresh instances, ")
    assert [part.title for part in content.sections if part.title] == [
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
    drawn = [mark.shape for mark in content.sections[0].plot.marks]
    assert drawn == ["band", "line", "dots", "dots"]
    assert "Not drawn: 1 mean of few runs" in content.sections[0].paragraphs[-1]
    assert content.key_figures[-1] == ("all runs", "5,003", "13 values")


def test_means_of_few_runs_are_faint_dots_without_an_interval(book):
    kept(book, setup_for(), [(value / 10,) for value in range(1, 7)], 350)
    kept(book, setup_for(), [(0.25,), (0.45,)], 29)
    kept(book, setup_for(), [(0.35,)], 9)
    (account,) = load_summaries(book)
    faint, band, line, dots = store_plots.make_store_plot(account, 0).marks
    assert (faint.colour, faint.x, faint.low) == (plot_marks.GREY_COLOUR, (0.25, 0.45), ())
    assert band.x == line.x == dots.x == (0.1, 0.2, 0.3, 0.4, 0.5, 0.6)
    assert "to" not in faint.tips[0]
    assert faint.tips[0].endswith(" in 29 runs")
    assert max(faint.radius) < min(dots.radius)
    text = render_markdown(build_report_content(account))
    assert "Grey means have fewer than 300 runs" in text
    assert re.search(r"\| 0\.25 \| 29 \| [\d.]+ \| [\d.]+ \|  \|", text)
    assert re.search(r"\| 0\.2 \| 350 \| [\d.]+ \| [\d.]+ \| [\d.]+ to [\d.]+ \|", text)
    drawn = bt.plot(account).axes[0].collections
    assert [float(one.get_alpha() or 1) for one in drawn] == [0.55, 0.2, 1.0]
    assert len(drawn[0].get_offsets()) == 2


def test_without_enough_runs_nothing_has_a_line_or_an_interval(book):
    kept(book, setup_for(at=[10, 1000]), [(value / 10,) for value in range(1, 7)], 20)
    (account,) = load_summaries(book)
    (faint,) = store_plots.make_store_plot(account, 0).marks
    assert len(faint.x) == 6
    assert " to " not in build_report_content(account).answer
    (growth,) = store_report.make_growth_section(account)
    assert [mark.shape for mark in growth.plot.marks] == ["line", "dots"]


def disastrous(book, rows, *, runs, first=0):
    """Write runs that lose so much on average, by value."""
    rng = np.random.default_rng(0)
    blocks = []
    for value, mean in rows.items():
        sample = rng.gamma(2, mean / 2, (runs, 1)).astype(np.float32)
        blocks.append(RegretBlock(StoredSeries(setup_for(), np.array([value]).tobytes(), 0), first, sample))
    with RegretStore(book) as ledger:
        ledger.write_blocks(blocks)


def test_a_line_that_loses_enormously_leaves_the_plot_and_single_dots_stay(book):
    disastrous(book, {0.0: 1000, 0.2: 300, 0.4: 40, 0.6: 20, 0.8: 25, 1.0: 30}, runs=500)
    disastrous(book, {0.1: 2000}, runs=20)
    (account,) = load_summaries(book)
    y = store_plots.make_store_plot(account, 0).y
    assert (y.low, 40 < y.high < 100) == (0, True)
    assert bt.plot(account).axes[0].get_ylim() == (y.low, y.high)
    disastrous(book, {0.6: 20, 1.0: 250}, runs=500, first=FIRST)
    (account,) = load_summaries(book)
    highest = max(tally.regret.high for tally in account.select_final(fresh=True))
    assert store_plots.make_store_plot(account, 0).y.high == pytest.approx(1.25 * highest)


def test_where_the_best_never_loses_all_others_are_seen(book):
    with RegretStore(book) as ledger:
        ledger.write_blocks(
            RegretBlock(
                StoredSeries(setup_for(), np.array([loss / 10]).tobytes(), 0), 0, np.full((400, 1), loss, np.float32)
            )
            for loss in range(7)
        )
    (account,) = load_summaries(book)
    assert store_plots.make_store_plot(account, 0).y.high == 7.5


def test_what_was_chosen_by_looking_is_said(book):
    kept(book, setup_for(), [(0.1,), (0.9,)], 150)
    (account,) = load_summaries(book)
    mean = min(tally.regret.mean for tally in account.stored_means)
    words = f"has the lowest of 2 means on search instances, {mean:.4g}, which as the lowest is likely too low."
    assert build_report_content(account).answer == f"gamma = 0.1 {words}"
    assert ("lowest mean", f"{mean:.4g}", "likely too low") in build_report_content(account).key_figures
    assert "likely higher than shown" in render_markdown(build_report_content(account))


def test_the_lowest_of_equal_values_is_not_told_as_if_it_were_alone(book):
    disastrous(book, dict.fromkeys(np.linspace(0, 1, 40), 30), runs=500, first=FIRST)
    (account,) = load_summaries(book)
    lead = store_ranking.find_leader(account).regret
    low, high = store_ranking.compute_simultaneous_interval(store_ranking.find_leader(account), 40)
    assert lead.high < 30 < high
    content = build_report_content(account)
    assert content.answer.endswith(
        f" has the lowest of 40 means on fresh instances, {lead.mean:.4g}, which as the lowest is likely too low: "
        f"its regret is "
        f"{low:.4g} to {high:.4g} (95% sure for all values together)."
    )
    for words in (content.answer, *map(" ".join, content.key_figures), content.sections[0].plot.about):
        assert f"{lead.high:.4g}" not in words


def test_the_only_value_has_its_own_interval(book):
    disastrous(book, {0.5: 30}, runs=500, first=FIRST)
    (account,) = load_summaries(book)
    (tally,) = account.stored_means
    assert store_ranking.compute_simultaneous_interval(tally, 1) == pytest.approx((tally.regret.low, tally.regret.high))
    words = f"{tally.regret.low:.4g} to {tally.regret.high:.4g}"
    assert (
        build_report_content(account).answer
        == f"gamma = 0.5 has regret {tally.regret.mean:.4g} ({words}) on 500 fresh instances."
    )
    assert ("regret", f"{tally.regret.mean:.4g}", f"95%: {words}") in build_report_content(account).key_figures


def test_an_account_is_told_as_text(full):
    text = bt.reports.format_text(load_summaries(full)[0])
    assert text.startswith("ucb1(noise=0.5) on bernoulli(arms=10), horizon 1,000\n\ngamma = 0.1 has the lowest")
    assert "lowest means, search instances" in text
    assert text.endswith("4,203 on search instances, 800 on fresh ones; expected regret, seed 3, on the cpu")
    assert all(bt.reports.format_text(account) for account in load_summaries(full))


def test_a_policy_without_parameters_has_one_mean(full):
    content = build_report_content(load_summaries(full)[1])
    assert re.fullmatch(r"greedy\(noise=0\.5\) has regret .* on 30 search instances\.", content.answer)
    assert [part.title for part in content.sections][:2] == [
        "Lowest means on search instances",
        "Regret of single runs",
    ]
    assert "No value has 300 runs" in content.sections[0].paragraphs[-1]


def test_single_runs_have_no_interval(full):
    content = build_report_content(load_summaries(full)[3])
    assert re.match(r"parameter = 0\.\d has the lowest of 2 means on search instances, [\d.]+, which", content.answer)
    assert "nan" not in render_markdown(content)


def test_a_tail_without_single_runs_ends_where_it_is_known(full):
    plot = result_plots.make_distribution_plot(store_ranking.list_leader_distributions(load_summaries(full)[0]))
    assert plot.y.least == pytest.approx(0.008)
    assert max(plot.marks[0].x) < plot.x.high


def test_many_values_stay_a_small_page(book):
    kept(book, setup_for(), [(place / 3000,) for place in range(3000)], 10)
    (account,) = load_summaries(book)
    assert len(render_page(build_report_content(account))) < 300_000
    assert "The first 200 of 3,000." in render_markdown(build_report_content(account))


def test_the_command_writes_page_tables_and_figures(full, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    summarised(full)
    for file in ("study.ledger", "few.csv"):
        app(["report", file, "-o", f"{file}.html", "--markdown", f"{file}.md"], standalone_mode=False)
    assert capsys.readouterr().out.splitlines()[0] == "wrote study.ledger.html"
    assert (tmp_path / "study.ledger.html").read_text() == (tmp_path / "few.csv.html").read_text()
    assert (tmp_path / "study.ledger.md").read_text() == (tmp_path / "few.csv.md").read_text()
    for account in load_summaries(full):
        account.plot(tmp_path / "figure.svg")
        assert EVIL not in (tmp_path / "figure.svg").read_text()
    kept(tmp_path / "one.ledger", setup_for(), [(0.1,)], 20)
    app(["report", "one.ledger", "--figures", "figures"], standalone_mode=False)
    assert sorted(path.name for path in (tmp_path / "figures").iterdir()) == ["one.pdf", "one.png", "one.svg"]
    before = full.read_bytes()
    with pytest.raises(bt.InvalidRequest, match="must name another file than those that"):
        app(["report", "study.ledger", "-o", "study.ledger"], standalone_mode=False)
    assert full.read_bytes() == before


def regrets_table(book):
    store_tables.export_store(book, book.with_name("all.csv"))
    return book.with_name("all.csv").read_bytes()


def edited(old, new):
    return lambda book: summarised(book).read_bytes().replace(old, new)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (lambda book: b"", "a result \\(JSON\\), a store, or a summary .* is empty"),
        (lambda book: b"\x89PNG\r\n", "a result \\(JSON\\), a store, or a summary .* begins otherwise"),
        (lambda book: b'{"schema_version": 1, "kind": "Other"}', "a result must be one of"),
        (lambda book: b"SQLite format 3\0" + b"\1" * 600, "must be a ledger, but it is no SQLite file|damaged"),
        (regrets_table, "must be a summary, but it has no column 'policy'; make it with `banditune store export"),
        (lambda book: summarised(book).read_bytes().splitlines()[0] + b"\n", "must hold regrets, but there are none"),
        (lambda book: summarised(book).read_bytes()[:-60], "it may have been cut off"),
        (edited(b"search", b"seen"), "instances must be 'search' or 'fresh', but got 'seen'"),
        (edited(b",350,", b",-1,"), "numbers of runs and steps must be 1 or more, but got '-1'"),
        (edited(b",350,", b",many,"), "must be as it was written, but: invalid literal"),
        (edited(b",350,", b",350,9e305,"), "numbers must be finite, but got '9e305'|cut off"),
        (edited(b"0.1,0,search", b"0.1;2,0,search"), "different numbers of parameters"),
        (edited(b"ucb1", b"\xff\xfe"), "cannot be read"),
    ],
)
def test_any_other_file_is_a_sentence(full, tmp_path, content, sentence):
    (tmp_path / "other").write_bytes(content(full))
    kind = bt.errors.StoreError if "SQLite" in sentence else bt.InvalidRequest
    with pytest.raises(kind, match=sentence):
        app(["report", str(tmp_path / "other"), "-o", str(tmp_path / "report.html")], standalone_mode=False)
    assert not (tmp_path / "report.html").exists()


def test_a_summary_with_wrong_letters_is_a_page_or_a_sentence(full, tmp_path):
    content = summarised(full).read_bytes()
    rng = np.random.default_rng(0)
    pages = 0
    for _ in range(150):
        wrong = bytearray(content)
        for place in rng.integers(len(wrong), size=3):
            wrong[place] = rng.choice(list(b'0123456789e.-;,"\n<\0\xff'))
        (tmp_path / "wrong.csv").write_bytes(wrong)
        try:
            text = render_page(*map(build_report_content, load_summaries(tmp_path / "wrong.csv")))
        except bt.InvalidRequest:
            continue
        pages += 1
        assert EVIL not in text
        assert json.loads(re.search(r'id="plots">(.*?)</script>', text, re.DOTALL)[1])
    assert 5 < pages < 145


def test_a_description_that_lacks_something_is_a_sentence(book):
    kept(book, StoredSetup.from_key_text('{"at":[1]}'), [(0.1,)], 3)
    with pytest.raises(bt.InvalidRequest, match="must be as it was written, but"):
        load_summaries(book)


def test_a_ledger_without_regrets_is_a_sentence(book):
    RegretStore(book).close()
    with pytest.raises(bt.InvalidRequest, match="must hold regrets, but there are none"):
        load_summaries(book)
    with pytest.raises(bt.InvalidRequest, match="cannot be read"):
        load_summaries(book.with_name("nothing"))
