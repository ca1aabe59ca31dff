"""Past logs: what is read is what stands there, and what cannot be read is named."""

from __future__ import annotations

import csv
import gzip
import io
import math
import string
import sys
from collections import defaultdict
from itertools import product

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import banditune as bt
from banditune.core.errors import InvalidRequest
from banditune.logs.campaign_logs import Logs, make_logs
from banditune.logs.io import frame_tables, row_checks, text_block_readers, text_tables
from banditune.logs.io.log_reader import read_logs
from banditune.problems.problem_file import load_problem

pyarrow = pytest.importorskip("pyarrow")
pandas = pytest.importorskip("pandas")

DECISIONS = """campaign,arm,reward
spring,red,1
spring,blue,0
spring,red,0
autumn,blue,1
autumn,red,1
"""
TOTALS = """trial,treatment,n,successes
A,gum,92,37
A,control,90,24
B,gum,107,21
B,control,105,21
"""


def _odd(data):
    raise row_checks.SuspectBlock


READERS = {
    "arrow": text_block_readers.make_arrow_reader,
    "plain": text_block_readers.make_plain_reader,
    "row by row": lambda *_: _odd,
}
"""Three ways of reading text."""


@pytest.fixture
def written(tmp_path):
    """Write a file: `written(content, name)` gives its path."""

    def write(content, name="logs.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def cells(logs: Logs):
    """Pulls and totals by the names of campaign and arm."""
    return {
        (logs.campaigns[c], logs.arms[a]): (int(n), float(t))
        for c, a, n, t in zip(logs.campaign, logs.arm, logs.pulls, logs.total, strict=True)
    }


def test_decisions_are_added_up_by_campaign_and_arm(written):
    logs = read_logs(written(DECISIONS))
    assert cells(logs) == {
        ("spring", "red"): (2, 1.0),
        ("spring", "blue"): (1, 0.0),
        ("autumn", "red"): (1, 1.0),
        ("autumn", "blue"): (1, 1.0),
    }
    assert logs.rewards == "binary"
    assert logs.decision_counts.tolist() == [3, 2]
    assert logs.same_arms
    assert logs.messages[0] == "columns: campaign = 'campaign', arm = 'arm', reward = 'reward'"


def test_words_for_nothing_are_no_names(written):
    table = "campaign,arm,reward\nx,a,1\nx,NULL,0\nx,NaN,1\nx,b,0\nnull,b,0\nx, <NA>,1\nx,None,1\nx,NA,0\n"
    path = written(table)
    with pytest.raises(
        InvalidRequest, match=r"4 of 8 rows cannot be read \(line 3: the arm is missing; .* campaign is missing"
    ):
        read_logs(path)
    assert read_logs(path, settings=bt.ReadSettings(skip_bad=True)).arms == ("a", "b", "None", "NA")
    frame = pandas.read_csv(path, keep_default_na=False)
    assert read_logs(frame, settings=bt.ReadSettings(skip_bad=True)).arms == ("a", "b", "None", "NA")


def test_an_empty_reward_may_stand_for_a_number(written):
    path = written("campaign,arm,reward\nx,a,\nx,b,1\nx,a, \nx,b,NULL\nx,a,1\n")
    with pytest.raises(
        InvalidRequest, match=r"3 of 5 rows .*; if an empty reward stands for 0, say blank=0; else mend them"
    ):
        read_logs(path)
    for source in (path, pandas.read_csv(path)):
        assert cells(read_logs(source, settings=bt.ReadSettings(blank=0))) == {
            ("x", "a"): (3, 1.0),
            ("x", "b"): (2, 1.0),
        }
    assert cells(read_logs(path, settings=bt.ReadSettings(blank=0.5)))["x", "a"] == (3, 2.0)
    totals = written("campaign,arm,pulls,successes\nx,a,3,1\nx,b,2,1\n", "totals.csv")
    with pytest.raises(InvalidRequest, match="`blank` stands for empty rewards, but here are pulls and successes"):
        read_logs(totals, settings=bt.ReadSettings(blank=0))
    with pytest.raises(InvalidRequest, match="`blank` must be a finite number"):
        read_logs(path, settings=bt.ReadSettings(blank="no"))
    with pytest.raises(InvalidRequest, match="the reward must be 0 or 1, but is -1"):
        read_logs(path, settings=bt.ReadSettings(blank=-1, rewards="binary"))


@pytest.mark.parametrize("pulls", [1e300, 2.0**53, 0.5, 0, np.nan, np.inf])
def test_pulls_that_cannot_be_counted_are_refused(pulls):
    with pytest.raises(InvalidRequest, match="a whole number of pulls, 1 or more, below 2\\^53"):
        make_logs(["a", "a"], ["x", "y"], [pulls, 5], [0, 1])


def test_pulls_and_successes_are_guessed_and_read(written):
    logs = read_logs(written(TOTALS))
    assert cells(logs)["B", "gum"] == (107, 21.0)
    assert "pulls = 'n', successes = 'successes'" in logs.messages[0]
    assert logs.squares[0] == pytest.approx(92 * (37 / 92) * (55 / 92))


def test_all_kinds_of_tables_give_the_same_logs(written, tmp_path):
    wanted = cells(read_logs(written(DECISIONS)))
    frame = pandas.read_csv(io.StringIO(DECISIONS))
    frame.to_parquet(tmp_path / "logs.parquet")
    sources = [
        written(DECISIONS.replace(",", "\t"), "logs.tsv"),
        written(DECISIONS.replace(",", ";"), "semicolons.csv"),
        written(DECISIONS.replace("\n", "\r\n"), "windows.csv"),
        written(b"\xef\xbb\xbf" + DECISIONS.encode(), "mark.csv"),
        written(gzip.compress(DECISIONS.encode()), "logs.csv.gz"),
        written(DECISIONS.rstrip("\n"), "unended.csv"),
        written(DECISIONS.replace("\n", "\n\n"), "blank.csv"),
        written(DECISIONS.replace("red", '"red"').replace("1\n", "True\n").replace("0\n", "false\n"), "quoted.csv"),
        tmp_path / "logs.parquet",
        frame,
        {name: frame[name].tolist() for name in frame},
        frame.astype({"reward": bool, "arm": "category"}),
    ]
    for source in sources:
        assert cells(read_logs(source)) == wanted, source


def test_a_polars_frame_is_read():
    polars = pytest.importorskip("polars")
    frame = polars.read_csv(io.StringIO(DECISIONS))
    assert cells(read_logs(frame))["spring", "red"] == (2, 1.0)


def test_squares_of_rewards_far_from_zero_do_not_cancel(written, monkeypatch):
    monkeypatch.setattr(frame_tables, "BATCH_ROWS", 7)
    rng = np.random.default_rng(0)
    reward = 1e8 + rng.normal(size=100)
    logs = read_logs({"campaign": ["a"] * 100, "arm": ["x", "y"] * 50, "reward": reward})
    assert logs.rewards == "real"
    for arm in range(2):
        own = reward[arm::2]
        assert logs.squares[arm] == pytest.approx(((own - own.mean()) ** 2).sum(), rel=1e-6)


def test_blocks_do_not_change_what_is_read(written, monkeypatch):
    rng = np.random.default_rng(1)
    lines = [f"{rng.integers(5)},{rng.integers(4)},{rng.normal():.3f}" for _ in range(500)]
    path = written("campaign,arm,reward\n" + "\n".join(lines))
    whole = read_logs(path)
    monkeypatch.setattr(text_tables, "BLOCK_BYTES", 64)
    parts = read_logs(path)
    assert list(cells(parts)) == list(cells(whole))
    np.testing.assert_allclose(parts.total, whole.total, atol=1e-12)
    np.testing.assert_allclose(parts.squares, whole.squares, rtol=1e-9)


def test_a_last_line_without_an_end_is_read_whichever_way(written, monkeypatch):
    path = written(DECISIONS + "winter,red,1")
    assert cells(read_logs(path))["winter", "red"] == (1, 1.0)
    odd = written(DECISIONS + "x,,1\nwinter,red,1", "odd.csv")
    assert cells(read_logs(odd, settings=bt.ReadSettings(skip_bad=True)))["winter", "red"] == (1, 1.0)
    for reader, block in product(READERS.values(), (16, 1 << 20)):
        monkeypatch.setattr(text_block_readers, "make_arrow_reader", reader)
        monkeypatch.setattr(text_tables, "BLOCK_BYTES", block)
        assert cells(read_logs(path))["winter", "red"] == (1, 1.0)


def test_totals_of_real_rewards_are_not_taken_for_decisions(written):
    rows = "campaign,arm,impressions,revenue\na,x,10,3.5\na,y,12,4.5\nb,x,9,2.5\nb,y,8,1.5\n"
    with pytest.raises(InvalidRequest, match="'impressions' says that rows are totals of several pulls"):
        read_logs(written(rows))
    assert read_logs(written(rows), reward="revenue").pulls.sum() == 4


def test_a_comma_for_a_point_is_said(written):
    with pytest.raises(InvalidRequest) as caught:
        read_logs(written(DECISIONS + 'spring,red,"0,5"\nspring,red,nan\n'))
    assert "but is '0,5', with a comma for a point; line 8: the reward must be a finite number, but is 'nan');" in str(
        caught.value
    )


@pytest.mark.parametrize("reader", READERS)
def test_fields_in_quotes_and_words_for_numbers_are_read_whichever_way(written, monkeypatch, reader):
    monkeypatch.setattr(text_block_readers, "make_arrow_reader", READERS[reader])
    path = written('campaign,note,arm,reward\r\n" a","x\ny,""z""",b,yes\r\na,,"b ",0.25\r\n')
    assert cells(read_logs(path)) == {("a", "b"): (2, 1.25)}


def test_python_s_own_reader_takes_what_is_plain_where_arrow_cannot_be_imported(written, monkeypatch):
    monkeypatch.delattr(pyarrow, "csv", raising=False)
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    monkeypatch.setattr(text_tables.TextTable, "_read_cells", None)  # row by row
    assert cells(read_logs(written(DECISIONS)))["spring", "red"] == (2, 1.0)


def test_bad_rows_are_counted_and_the_first_five_shown_with_their_lines(written):
    bad = ["spring,,1", "spring,red", "spring,red,maybe", ",red,1", "spring,red,nan", "spring,red,inf"]
    path = written(DECISIONS + "\n".join(bad) + "\n" + "autumn,red,0\n")
    with pytest.raises(InvalidRequest) as caught:
        read_logs(path)
    message = str(caught.value)
    assert message.startswith("6 of 12 rows cannot be read (line 7: the arm is missing; line 8: it must hold 3 fields")
    assert "line 9: the reward must be a finite number, but is 'maybe'" in message
    assert "line 11" in message
    assert "line 12" not in message
    assert "and 1 more" in message
    assert "skip_bad=True" in message
    logs = read_logs(path, settings=bt.ReadSettings(skip_bad=True))
    assert cells(logs)["autumn", "red"] == (2, 1.0)
    assert any(said.startswith("left out: 6 of 12 rows") for said in logs.messages)


@pytest.mark.parametrize("reader", READERS)
def test_text_that_is_not_utf8_is_named_by_its_line_with_a_way_out(tmp_path, monkeypatch, reader):
    monkeypatch.setattr(text_block_readers, "make_arrow_reader", READERS[reader])
    path = tmp_path / "latin.csv"
    path.write_bytes("campaign,arm,reward\nspring,tea,1\nspring,café,0\n".encode("latin1"))
    with pytest.raises(InvalidRequest, match=r"line 3: the arm is not UTF-8 text, 'caf.'.*iconv -f latin1 -t utf-8"):
        read_logs(path)
    logs = read_logs(path, settings=bt.ReadSettings(skip_bad=True))
    assert logs.arms == ("tea",)
    path.write_bytes("campaign,arm,reward\nspring,tea,x\nspring,café,0\n".encode("latin1"))
    with pytest.raises(InvalidRequest, match=r"name other columns; or write the file in UTF-8"):
        read_logs(path)
    path.write_bytes("campaign,arm,reward\nspring,tea,1\nspring,café,0\n".encode("latin1"))
    assert any("line 3: the arm is not UTF-8" in said for said in logs.messages)
    path.write_bytes("campaign,arm,reward\nspring,tea,1\nspring,café,0\n".encode("utf-8-sig"))
    assert set(read_logs(path).arms) == {"tea", "café"}


@pytest.mark.parametrize(("encoding", "message"), [("latin1", "latin1"), ("utf-16", "utf-16")])
def test_names_of_columns_that_are_not_utf8_too(tmp_path, encoding, message):
    path = tmp_path / "latin.csv"
    path.write_bytes("campaign,arm,reward,größe\nspring,tea,1,2\n".encode(encoding))
    with pytest.raises(InvalidRequest, match=f"must be UTF-8 text, but line 1 is not; .*iconv -f {message}"):
        read_logs(path)


def test_bytes_that_are_no_text_in_columns_that_nobody_reads_do_not_matter(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes("campaign,arm,reward,comment\nspring,tea,1,é\nspring,milk,,é\n".encode("latin1"))
    assert read_logs(path, settings=bt.ReadSettings(skip_bad=True)).arms == ("tea",)


def test_other_files_that_are_not_utf8_are_named_too(tmp_path):
    from banditune.core.parsing import read_matrix
    from banditune.problems.reward_table import read_reward_table

    path = tmp_path / "latin.csv"
    path.write_bytes("thé,café\n1,2\n3,4\n".encode("latin1"))
    toml = tmp_path / "latin.toml"
    toml.write_bytes('banditune = 1\n[problem]\nname = "bernoulli"\nnames = ["é", "e"]\n'.encode("latin1"))
    for read, file, line in ((read_reward_table, path, 1), (read_matrix, path, 1), (load_problem, toml, 4)):
        with pytest.raises(InvalidRequest, match=f"UTF-8 text, but line {line} is not; .*iconv"):
            read(file)


def test_a_quoted_field_may_hold_lines_and_later_line_numbers_are_still_right(written):
    path = written('campaign,arm,reward\n"two\nlines",red,1\nspring,blue,x\n')
    with pytest.raises(InvalidRequest, match="line 4: the reward"):
        read_logs(path)
    assert ("two\nlines", "red") in cells(read_logs(path, settings=bt.ReadSettings(skip_bad=True)))


@pytest.mark.parametrize(
    ("content", "options", "sentence"),
    [
        ("", {}, "must name the columns"),
        ("campaign,arm,reward\n", {}, "must hold a row"),
        ("a,b,c\n1,2,3\n", {}, "a column must hold the campaign, .* name it with campaign='COLUMN'"),
        (f"{'w' * 200},{','.join(f'c{n}' for n in range(30))}", {}, r"none of w{40}\.\.\., c0, .*c18 and 11 more has"),
        ("campaign,arm,reward\n1,2,3\n", {"arm": "amr"}, "did you mean 'arm'"),
        ("campaign,campaign,reward\n1,2,3\n", {}, "two are called 'campaign'"),
        ("campaign,arm,n,successes\na,b,3,4\n", {}, "0 <= successes <= pulls, but are 4 and 3"),
        ("campaign,arm,n,successes\na,b,3.5,1\n", {}, "whole numbers"),
        ("campaign,arm,n,successes\na,b,0,0\n", {}, "must hold a decision"),
        ("campaign,arm,n,wins\na,b,1,1\n", {"rewards": "real"}, "sums of 0 and 1"),
        ("campaign,arm,n\na,b,1\n", {"pulls": "n"}, "no column holds successes; name it with successes='COLUMN'"),
        ("campaign,arm,n,rate\na,b,9,4%\n", {}, "beside 'n', which looks like pulls, .* says successes; .*='COLUMN'"),
        (
            "campaign,arm,Views (n),Clicks\na,b,9,4\n",
            {},
            "'Clicks', which looks like successes, .* says pulls; name it",
        ),
        ("arm,reward\na,1\n", {}, "if all rows are of one campaign, add a column with its name"),
        ("campaign;arm;reward\na;b;9,5\n", {}, r"'9,5', with a comma for a point\); mend them, or name other columns"),
        ('campaign,arm,n,wins\na,b,"1,200",1\n', {}, "with a comma for a point or between thousands"),
        (DECISIONS + "spring,red,0.5\n", {"rewards": "binary"}, "line 7: the reward must be 0 or 1, but is 0.5"),
        (DECISIONS + "spring,red,2\n", {"rewards": "unit"}, r"must be a number in \[0, 1\], but is 2"),
        (DECISIONS, {"rewards": "odd"}, "one of binary, unit, real"),
        ("campaign,arm,reward,propensity\na,b,1,0\n", {}, r"propensity must be in \(0, 1\], but is 0"),
        ("campaign,arm,reward,x1\na,b,1,0\na,b,1,2\n", {}, "'x1' of arm 'b' changes from 0 to 2 in line 3"),
        (b"PK\x03\x04" + bytes(range(256)) * 20, {}, "column"),
    ],
)
def test_what_cannot_be_read_gives_a_sentence(written, content, options, sentence):
    rows = {name: options[name] for name in options if name in ("rewards", "blank", "skip_bad")}
    columns = {name: options[name] for name in options if name not in rows}
    with pytest.raises(InvalidRequest, match=sentence):
        read_logs(written(content), settings=bt.ReadSettings(**rows), **columns)


@pytest.mark.parametrize(
    ("named", "twice", "parts"),
    [
        ({"campaign": "b", "arm": "b"}, "b", "`campaign` and by `arm`"),
        ({"pulls": "n", "successes": "n"}, "n", "`pulls` and by `successes`"),
        ({"arm": "b", "successes": "b"}, "b", "`arm` and by `successes`"),
        ({"reward": "w", "propensity": "w"}, "w", "`reward` and by `propensity`"),
        ({"reward": "w", "features": "n,w"}, "w", "`reward` and by `features`"),
        ({"features": ["n", "n"]}, "n", "`features` and by `features`"),
    ],
)
def test_a_column_plays_one_part(written, named, twice, parts):
    content = "a,b,n,w\nx,y,1,1\nx,z,1,0\n"
    options = {"campaign": "a", "arm": "b", **named}
    for source in (written(content), pandas.read_csv(io.StringIO(content))):
        with pytest.raises(
            InvalidRequest, match=f"must be named once, but '{twice}' was named by {parts}; name another"
        ):
            read_logs(source, **options)


def test_columns_of_shops_are_known(written):
    logs = read_logs(written("Campaign Name,Creative,Impressions,Clicks\nspring,red,10,2\nspring,blue,8,1\n"))
    assert (
        logs.messages[0]
        == "columns: campaign = 'Campaign Name', arm = 'Creative', pulls = 'Impressions', successes = 'Clicks'"
    )


def test_yes_and_no_are_rewards(written):
    logs = read_logs(written("campaign,arm,converted\na,b,yes\na,b,No\na,c,YES\n"))
    assert logs.rewards == "binary"
    assert cells(logs) == cells(read_logs(written("campaign,arm,converted\na,b,1\na,b,0\na,c,1\n")))


def test_one_campaign_is_told_as_one(written):
    assert repr(read_logs(written("campaign,arm,reward\na,b,1\na,b,0\n"))).startswith(
        "2 decisions in 1 campaign with 1 arm,"
    )


def test_sources_that_are_no_tables_are_refused(tmp_path, written):
    for source in (tmp_path, tmp_path / "none.csv", 5, None, [1, 2], written(b"PAR1nonsense", "x.parquet")):
        with pytest.raises(InvalidRequest):
            read_logs(source)
    with pytest.raises(InvalidRequest, match="same length"):
        read_logs({"campaign": [1, 2], "arm": [1], "reward": [1]})


def test_a_truncated_gzip_file_gives_a_sentence(written):
    data = gzip.compress(DECISIONS.encode() * 1000)
    with pytest.raises(InvalidRequest, match="cannot be read"):
        read_logs(written(data[: len(data) // 2], "logs.csv.gz"))


def test_a_line_without_an_end_does_not_fill_the_memory(written, monkeypatch):
    monkeypatch.setattr(text_tables, "BLOCK_BYTES", 512)
    monkeypatch.setattr(text_tables, "MAX_LINE_BYTES", 1024)
    with pytest.raises(InvalidRequest, match="longer than"):
        read_logs(written("campaign,arm,reward\n" + "x" * 5000))


def test_features_stand_beside_their_cells(written):
    logs = read_logs(written("campaign,arm,reward,x1,x2\na,r,1,0.5,1\na,s,0,2,3\nb,r,1,7,1\na,r,0,0.5,1\n"))
    assert logs.feature_names == ("x1", "x2")
    assert logs.features.tolist() == [[0.5, 1], [2, 3], [7, 1]]
    assert read_logs(written("campaign,arm,reward,x1\na,r,1,0\na,r,1,1\n"), features="").features is None


def test_what_may_mislead_is_said(written):
    logs = read_logs(written("campaign,arm,reward\na,r,1\na,s,1\na,s,0\n")).messages
    assert any("a single campaign" in said for said in logs)
    assert any("1 of 2 arms were pulled only once (r)" in said for said in logs)
    logs = read_logs(written("campaign,arm,reward\na,r,1\na,r,0\nb,r,1\nb,s,0\n")).messages
    assert any("1 campaigns have a single arm (a)" in said for said in logs)


def test_a_campaign_column_that_numbers_decisions_is_noticed(monkeypatch):
    monkeypatch.setattr("banditune.logs.io.log_accumulator.MAX_CELLS", 100)
    table = {"campaign": list(range(200)), "arm": [0] * 200, "reward": [1] * 200}
    with pytest.raises(InvalidRequest, match="number decisions"):
        read_logs(table)


def test_some_campaigns_can_be_taken_alone(written):
    logs = read_logs(written(TOTALS)).select_campaigns([1])
    assert logs.campaigns == ("B",)
    assert cells(logs) == {("B", "gum"): (107, 21.0), ("B", "control"): (105, 21.0)}
    with pytest.raises(InvalidRequest):
        logs.select_campaigns([])


FIELDS = st.one_of(
    st.sampled_from(
        [
            "a",
            "b",
            " a",
            "",
            "0",
            "1",
            "0.5",
            "-3",
            "1e3",
            "nan",
            "NULL",
            "inf",
            "true",
            "False",
            "yes",
            "No",
            "NA",
            "1_0",
            "é",
        ]
    ),
    st.text(string.printable, max_size=4),
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.lists(FIELDS, min_size=3, max_size=3), min_size=1, max_size=12), st.integers(20, 200))
def test_the_fast_ways_and_the_slow_way_read_the_same(tmp_path, monkeypatch, rows, block):
    with (tmp_path / "logs.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["campaign", "arm", "reward"], *rows])
    monkeypatch.setattr(text_tables, "BLOCK_BYTES", block)
    found = []
    for reader in READERS.values():
        monkeypatch.setattr(text_block_readers, "make_arrow_reader", reader)
        try:
            found.append(cells(read_logs(tmp_path / "logs.csv", settings=bt.ReadSettings(skip_bad=True))))
        except InvalidRequest as error:
            found.append(str(error))
    assert found[0] == found[1] == found[2]
    expected = by_hand(rows)
    if expected:
        assert {key: (n, pytest.approx(t)) for key, (n, t) in expected.items()} == found[0]


def by_hand(rows):
    """The same sums, as plainly as can be."""
    sums = defaultdict(lambda: (0, 0.0))
    for campaign, arm, reward in rows:
        word = reward.strip().lower()
        try:
            value = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}.get(word)
            value = (math.nan if "_" in word else float(word)) if value is None else value
        except ValueError:
            continue
        names = campaign.strip(), arm.strip()
        if not set(names) & {"", "nan", "NaN", "null", "NULL", "<NA>"} and abs(value) < 1e100:
            pulls, total = sums[names]
            sums[names] = pulls + 1, total + value
    return dict(sums)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=300), st.sampled_from(["logs.csv", "logs.parquet", "logs.csv.gz"]), st.booleans())
def test_any_bytes_give_logs_or_a_sentence(tmp_path, data, name, headed):
    (tmp_path / name).write_bytes((b"campaign,arm,reward\n" if headed else b"") + data)
    try:
        assert isinstance(read_logs(tmp_path / name, settings=bt.ReadSettings(skip_bad=True)), Logs)
    except InvalidRequest as error:
        assert str(error).endswith(".")


def test_a_few_rewards_that_are_neither_0_nor_1_are_mentioned():
    reward = [0, 1] * 200 + [2]
    logs = read_logs({"campaign": [0] * 401, "arm": [0, 1] * 200 + [0], "reward": reward}).messages
    assert any(said.startswith("1 of 401 rewards are neither 0 nor 1, so all are taken as real") for said in logs)


def test_missing_cells_of_pandas_are_missing():
    frame = pandas.DataFrame({"campaign": ["a", pandas.NA], "arm": ["x", "y"], "reward": [1, 0]})
    with pytest.raises(InvalidRequest, match=r"row 1, counted from 0: the campaign is missing\)"):
        read_logs(frame)


@pytest.mark.parametrize("batch", [2, 1 << 18])
def test_rows_of_a_table_are_counted_from_0_and_those_of_text_as_lines(tmp_path, written, monkeypatch, batch):
    monkeypatch.setattr(frame_tables, "BATCH_ROWS", batch)
    content = "campaign,arm,reward\na,x,1\na,y,0\na,x,0\na,,1\na,y,\n"
    frame = pandas.read_csv(io.StringIO(content))
    frame.to_parquet(tmp_path / "logs.parquet")
    places = {
        "row 3, counted from 0: the arm is missing; row 4: the": (
            frame,
            frame.set_index([list("vwxyz")]),
            tmp_path / "logs.parquet",
        ),
        "line 5: the arm is missing; line 6: the": (written(content),),
    }
    for told, sources in places.items():
        for source in sources:
            with pytest.raises(InvalidRequest, match=told):
                read_logs(source)
    features = {"campaign": "aaa", "arm": "bcb", "reward": [1, 0, 1], "x1": [0, 0, 2]}
    with pytest.raises(InvalidRequest, match=r"changes from 0 to 2 in row 2, counted from 0\. Features"):
        read_logs({name: list(column) for name, column in features.items()})


@pytest.mark.parametrize(
    ("columns", "options", "sentence"),
    [
        ((["a"], ["x"], [0], [0]), {}, "1 or more"),
        ((["a"], ["x"], [1.5], [0]), {}, "whole number"),
        ((["a"], ["x"], [2], [3]), {}, "0 <= total <= pulls"),
        ((["a"], ["x"], [2], [np.nan]), {}, "finite total"),
        ((["a", "a"], ["x", "x"], [1, 1], [1, 1]), {}, "add them up"),
        ((["a"], ["x", "y"], [1], [1]), {}, "same length"),
        ((["a"], ["x"], [1], [1]), {"rewards": "foo"}, "binary, unit or real"),
        ((["a"], ["x"], 1, [1, 2]), {}, "same length"),
        ((["a"], ["x"], [2], [1.0], [np.nan]), {"rewards": "real"}, "`squares` must be finite numbers >= 0"),
        ((["a"], ["x"], [2], [1.0], [-1.0]), {"rewards": "real"}, "`squares` must be finite numbers >= 0"),
        ((["a"], ["x"], [2], [1.0], ["much"]), {"rewards": "real"}, "same length"),
        ((["a", "a"], ["x", "y"], [1, 1], [1, 1]), {"features": [[1, 2]]}, r"each of the 2 rows .* shape is \(1, 2\)"),
        ((["a", "a"], ["x", "y"], [1, 1], [1, 1]), {"features": [1, 2]}, r"each of the 2 rows .* shape is \(2,\)"),
        ((["a"], ["x"], [1], [1]), {"features": [[1, np.inf]]}, "`features` must be finite"),
        ((["a"], ["x"], [1], [1]), {"features": [["red"]]}, "`features` must be finite"),
        ((["a"], ["x"], [1], [1]), {"features": [[1, 2]], "feature_names": ["a"]}, "2 names, one per feature"),
    ],
)
def test_sums_that_cannot_be_are_refused(columns, options, sentence):
    with pytest.raises(InvalidRequest, match=sentence):
        make_logs(*columns, **options)
