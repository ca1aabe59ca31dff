"""The house: imports point one way, names load lazily, everything on a shelf keeps its promises."""

from __future__ import annotations

import ast
import inspect
import tomllib

import numpy as np
import pytest

import banditune as bt
from banditune import problems, tuners
from banditune.contracts import Policy, Problem, Tuner
from banditune.descriptions import described
from banditune.results import KINDS
from banditune.shelf import every_policy
from conftest import ROOT

SOURCE = ROOT / "src" / "banditune"
# What each room may import from; a room may always import from itself.
BELOW = {
    "dataflow": set(),
    "contracts": {"dataflow"},
    "descriptions": {"contracts"},
    "streams": {"contracts"},
    "checks": {"contracts", "descriptions"},
    "results": {"contracts", "descriptions"},
    "problems": {"contracts", "descriptions", "streams", "checks"},
    "policies": {"contracts", "descriptions", "streams", "checks"},
    "tuners": {"contracts", "checks", "results"},
    "engine": {"contracts", "descriptions", "streams", "checks"},
    "exact": {"contracts", "descriptions", "streams", "checks", "results", "problems", "policies", "engine"},
    "study": {"contracts", "descriptions", "checks", "results", "problems", "engine", "tuners", "exact"},
    "guests": {"contracts", "descriptions", "streams", "results", "engine"},
    "logs": {"contracts", "descriptions", "results", "checks", "problems", "engine", "study"},
    "paper": {"contracts", "results", "problems", "policies", "tuners", "engine", "exact", "study"},
    "reports": {"contracts", "descriptions", "results"},
    "live": {
        "contracts",
        "descriptions",
        "streams",
        "checks",
        "results",
        "problems",
        "engine",
        "exact",
        "shelf",
        "study",
    },
    "pages": {"contracts"},
    "shelf": {"contracts", "checks", "policies", "problems", "tuners", "exact"},
    "cli": {
        "contracts",
        "results",
        "problems",
        "tuners",
        "exact",
        "study",
        "logs",
        "paper",
        "reports",
        "live",
        "shelf",
        "pages",
    },
    "__main__": {"cli"},
}

# What must be told to make a thing on a shelf.
NEEDED = {"mixture": [(0.5, 0.4)], "campaigns": [[(1, 2), (3, 4)]]}


def imports(path):
    """The rooms of this package that a file imports from, wherever in the file; '' is the front door."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "banditune":
            rooms = node.module.split(".")[1:2] or [alias.name for alias in node.names if alias.name != "__version__"]
            yield from rooms
        elif isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[2].split(".")[0] for alias in node.names if "banditune" in alias.name)


def test_imports_point_one_way():
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        if room == "__init__":
            continue
        for other in imports(path):
            # Results are drawn and told through the front door, the one arrow that points up.
            allowed = BELOW[room] | {room} | ({""} if room == "results" else set())
            assert other in allowed, f"{path.name} in {room} imports {other or 'the front door'}"


def test_importing_the_package_imports_nothing_heavy(run_python):
    code = """
import sys
import banditune
heavy = {"numba", "scipy", "matplotlib", "numpy", "rich", "typer", "pandas"} & set(sys.modules)
assert not heavy, heavy
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr


def test_the_verbs_work_without_scipy_matplotlib_pandas_rich_and_typer(run_python):
    code = """
import sys
for name in ("scipy", "matplotlib", "pandas", "rich", "typer"):
    sys.modules[name] = None
import banditune as bt
result = bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=50, budget=20, validate=20, curve=True)
print(result)
try:
    result.to_pandas()
except bt.BadRequest as error:
    print(error)
"""
    done = run_python(code)
    assert done.returncode == 0, done.stderr
    assert "pip install" in done.stdout


def test_every_record_that_users_get_has_a_public_name():
    assert {name: getattr(bt, name) for name in KINDS} == KINDS


@pytest.mark.parametrize("name", [name for name in bt.__all__ if name != "__version__"])
def test_every_public_name_is_there_and_explained(name):
    thing = getattr(bt, name)
    assert inspect.getdoc(thing)


def test_no_public_name_is_that_of_a_room():
    # Importing a room sets it as an attribute of the package: it would take the name's place.
    assert not set(bt.__all__) & set(BELOW)


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError):
        bt.nothing  # noqa: B018
    assert "tune" in dir(bt)


@pytest.mark.parametrize(
    ("shelf", "kind"), [(every_policy(), Policy), (problems.SHELF, Problem), (tuners.SHELF, Tuner)]
)
def test_everything_on_a_shelf_is_made_described_and_explained(shelf, kind, tmp_path):
    np.save(tmp_path / "rewards.npy", np.eye(3))
    needed = NEEDED | {"reward-table": tmp_path / "rewards.npy"}
    for name, make in shelf.items():
        record = make(needed[name]) if name in needed else make()
        assert isinstance(record, kind)
        assert record.name == name or name == "warm-up"
        assert described(record)["name"] == record.name
        assert inspect.getdoc(make).splitlines()[0].endswith((".", ":"))
        assert hash(record) is not None
        with pytest.raises(AttributeError):
            record.name = "other"


@pytest.mark.parametrize("name", every_policy())
def test_every_parameter_has_bounds_around_theorys_value(name):
    for arms, horizon in ((2, 10), (10, 10_000), (100, 1000)):
        for parameter in every_policy()[name]().parameters:
            found = parameter.within(arms, horizon)
            assert found.low <= found.theory <= found.high
            assert found.at(0.0) == found.low
            assert found.at(1.0) == pytest.approx(found.high)


def clocks(code):
    """What code uses of `time`, under whatever name it was imported, and of `datetime`."""
    nodes = list(ast.walk(ast.parse(code)))
    called = {"time"}
    for node in nodes:
        if isinstance(node, ast.Import):
            called |= {alias.asname or alias.name for alias in node.names if alias.name == "time"}
            yield from (alias.name for alias in node.names if alias.name == "datetime")
        elif isinstance(node, ast.ImportFrom) and node.module in ("time", "datetime"):
            yield from (alias.name if node.module == "time" else "datetime" for alias in node.names)
    for node in nodes:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in called:
            yield node.attr


def test_no_wall_clock_is_read():
    """It can be set back while a study runs; `monotonic` and `perf_counter` cannot."""
    for path in SOURCE.rglob("*.py"):
        assert set(clocks(path.read_text())) <= {"monotonic", "perf_counter", "process_time", "sleep"}, path


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import time; time.time()", ["time"]),
        ("import time as clock; clock.time_ns()", ["time_ns"]),
        ("from time import time as now, sleep", ["time", "sleep"]),
        ("from datetime import date", ["datetime"]),
        ("import datetime as dates", ["datetime"]),
    ],
)
def test_a_wall_clock_is_seen_under_any_name(code, found):
    assert list(clocks(code)) == found


def test_the_lowest_versions_that_are_allowed_are_those_that_are_tested():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *(each for some in project["optional-dependencies"].values() for each in some)]
    bounds = dict(each.split(">=") for each in asked if not each.startswith("banditune["))
    lines = (ROOT / "tests" / "lowest.txt").read_text().splitlines()
    tested = dict(line.split("==") for line in lines if line and not line.startswith("#"))
    for name, bound in bounds.items():
        plain = name.partition("[")[0]
        assert numbers(tested.get(plain, "0")) == numbers(bound), plain


def numbers(version):
    """A version as three numbers."""
    found = [int(part) for part in version.split(".")]
    return [*found, 0, 0][:3]
