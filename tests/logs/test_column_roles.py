"""Which column holds what."""

from __future__ import annotations

import io

import pytest

from banditune.core.errors import InvalidRequest
from banditune.logs.io.log_reader import read_logs
from helpers.log_files import TOTALS, sum_by_name

pandas = pytest.importorskip("pandas")


def test_pulls_and_successes_are_guessed_and_read(write_file):
    logs = read_logs(write_file(TOTALS))
    assert sum_by_name(logs)["B", "gum"] == (107, 21.0)
    assert "pulls = 'n', successes = 'successes'" in logs.messages[0]
    assert logs.squares[0] == pytest.approx(92 * (37 / 92) * (55 / 92))


def test_totals_of_real_rewards_are_refused(write_file):
    rows = "campaign,arm,impressions,revenue\na,x,10,3.5\na,y,12,4.5\nb,x,9,2.5\nb,y,8,1.5\n"
    with pytest.raises(InvalidRequest, match="by the column 'impressions' rows are totals of several pulls"):
        read_logs(write_file(rows))
    assert read_logs(write_file(rows), reward="revenue").pulls.sum() == 4


@pytest.mark.parametrize(
    ("given", "column", "arguments"),
    [
        ({"campaign": "b", "arm": "b"}, "b", "`campaign` and as `arm`"),
        ({"pulls": "n", "successes": "n"}, "n", "`pulls` and as `successes`"),
        ({"arm": "b", "successes": "b"}, "b", "`arm` and as `successes`"),
        ({"reward": "w", "propensity": "w"}, "w", "`reward` and as `propensity`"),
        ({"reward": "w", "features": "n,w"}, "w", "`reward` and as `features`"),
        ({"features": ["n", "n"]}, "n", "`features` and as `features`"),
    ],
)
def test_a_column_has_one_role(write_file, given, column, arguments):
    content = "a,b,n,w\nx,y,1,1\nx,z,1,0\n"
    options = {"campaign": "a", "arm": "b", **given}
    for source in (write_file(content), pandas.read_csv(io.StringIO(content))):
        with pytest.raises(
            InvalidRequest, match=f"must have one role, but '{column}' was given as {arguments}; give another"
        ):
            read_logs(source, **options)


def test_column_names_of_advertising_are_known(write_file):
    logs = read_logs(write_file("Campaign Name,Creative,Impressions,Clicks\nspring,red,10,2\nspring,blue,8,1\n"))
    assert (
        logs.messages[0]
        == "columns: campaign = 'Campaign Name', arm = 'Creative', pulls = 'Impressions', successes = 'Clicks'"
    )


def test_features_are_read_for_every_cell(write_file):
    logs = read_logs(write_file("campaign,arm,reward,x1,x2\na,r,1,0.5,1\na,s,0,2,3\nb,r,1,7,1\na,r,0,0.5,1\n"))
    assert logs.feature_names == ("x1", "x2")
    assert logs.features.tolist() == [[0.5, 1], [2, 3], [7, 1]]
    assert read_logs(write_file("campaign,arm,reward,x1\na,r,1,0\na,r,1,1\n"), features="").features is None
