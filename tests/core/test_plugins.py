"""Plug-ins: names that installed packages add, and what happens where a package is broken."""

from __future__ import annotations

import json
import os
import sys
from importlib import metadata

import pytest

import banditune as bt
from banditune.core.lazy_registry import Registry
from banditune.core.plugins import find_plugins
from banditune.core.policy import Policy
from banditune.core.tuner import Tuner
from banditune.policies.policy_registry import POLICIES
from banditune.registry import describe_registries, list_plugin_notices, make_from_spec
from banditune.tuners.tuner_registry import TUNERS

MODULE = '''
"""A package of somebody else."""

from dataclasses import dataclass

import banditune as bt


@dataclass(frozen=True)
class Narrow(bt.UCB1):
    """UCB1 with a narrow interval."""

    name = "narrow"


@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    """Choose the last arm."""
    return setting.arms - 1


last = bt.define_policy("last", choose)


@dataclass(frozen=True)
class Coin(bt.Bernoulli):
    """Two coins."""

    arms: int = 2

    name = "coin"


@dataclass(frozen=True)
class Middle(bt.tuners.Tuner):
    """The middle of the range."""

    name = "middle"

    def search(self, search_range, budget):
        yield bt.tuners.Trial((search_range.scale_from_unit(0.5),), budget)
        return search_range.scale_from_unit(0.5)


def fail(size):
    """A policy whose construction fails."""
    raise ZeroDivisionError("no size")
'''

ENTRIES = """
[banditune.policies]
narrow = other_package:Narrow
last = other_package:last
odd = other_package:Coin
failing = other_package:fail

[banditune.problems]
coin = other_package:Coin

[banditune.tuners]
middle = other_package:Middle
"""

BROKEN = """
[banditune.policies]
gone = no_such_module:Policy
missing = other_package:NoSuchName
ends = ends_at_once:Policy
ucb1 = other_package:Narrow
Upper = other_package:Narrow
narrow = other_package:Narrow
"""


def install(folder, name, entries, version="1.0", **modules):
    """Write a package as pip would: its modules, and a folder with metadata and entry points."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (info / "entry_points.txt").write_text(entries)
    for module, code in modules.items():
        (folder / f"{module}.py").write_text(code)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A good package and a broken one."""
    install(tmp_path, "other-package", ENTRIES, other_package=MODULE)
    install(tmp_path, "z-broken", BROKEN, ends_at_once="raise SystemExit(3)")
    (tmp_path / "empty-1.0.dist-info").mkdir()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "other_package", raising=False)
    yield tmp_path
    sys.modules.pop("other_package", None)


def test_names_of_a_package_are_found_and_make_records(installed):
    assert make_from_spec("policy", "narrow:noise=0.5", POLICIES, Policy).noise == 0.5
    assert make_from_spec("policy", "LAST", POLICIES, Policy).name == "last"
    tuner = make_from_spec("tuner", "middle", TUNERS, Tuner)
    result = bt.tune(
        bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=20, budget=20, search=bt.Search(tuner=tuner, validate=20)
    )
    assert result.params == {"gamma": 0.5}


def test_the_list_names_the_package_and_a_broken_one_breaks_nothing_else(installed):
    listed = describe_registries()
    assert listed["policies"]["narrow"] | {"options": None, "parameters": None} == {
        "about": "UCB1 with a narrow interval.",
        "parameters": None,
        "options": None,
        "package": "other-package 1.0",
    }
    assert listed["policies"]["last"]["about"] == "Choose the last arm."
    assert listed["problems"]["coin"]["options"]["arms"] == "2"
    assert listed["policies"]["ucb1"]["package"] is None
    assert not {"gone", "missing", "ends", "Upper"} & set(listed["policies"])
    notices = list_plugin_notices()
    assert {notice.code for notice in notices} == {"broken-plugin"}
    assert [
        words
        for words in (
            "'gone' of z-broken 1.0 is left out: it cannot be imported (ModuleNotFoundError: No module named",
            "'missing' of z-broken 1.0 is left out: it cannot be imported (AttributeError",
            "'ends' of z-broken 1.0 is left out: it cannot be imported (SystemExit: 3)",
            "'ucb1' of z-broken 1.0 is left out: banditune has the same name",
            "'Upper' of z-broken 1.0 is left out: its name must be small letters",
            "'narrow' of z-broken 1.0 is left out: other-package 1.0 has the same name",
        )
        if not any(words in notice for notice in notices)
    ] == []
    assert len(notices) == 6


def test_entry_points_that_cannot_be_read_are_named(tmp_path, monkeypatch):
    install(tmp_path, "unreadable", "[banditune.tuners]\nno equals sign\n")
    monkeypatch.syspath_prepend(tmp_path)
    (notice,) = find_plugins("banditune.tuners").notices
    assert notice.startswith("the plug-in of unreadable 1.0 is left out: its entry points cannot be read")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("gone", "the plug-in 'gone' of z-broken 1.0 cannot be imported: ModuleNotFoundError"),
        ("odd", "'odd' must be a policy, but it is Coin"),
        (
            "failing:size=3",
            "the plug-in 'failing' of other-package 1.0 failed with {'size': 3}: ZeroDivisionError: no size",
        ),
        ("narow", "did you mean 'narrow'"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_with_its_package(installed, spec, words):
    with pytest.raises(bt.InvalidRequest, match=words.replace("(", r"\(").replace("{", r"\{")):
        make_from_spec("policy", spec, POLICIES, Policy)


def test_built_in_names_read_no_entry_points(monkeypatch):
    def refuse():
        raise AssertionError("entry points were read")

    monkeypatch.setattr(metadata, "distributions", refuse)
    monkeypatch.setattr(sys, "path", [*sys.path, "/nowhere"])
    assert make_from_spec("policy", "ucb1:noise=0.5", POLICIES, Policy).noise == 0.5
    assert "ucb1" in POLICIES
    assert bt.problems.build_problem({"name": "bernoulli", "arms": 3}).arms == 3
    with pytest.raises(AssertionError, match="entry points were read"):
        list(POLICIES)


def test_a_file_cannot_name_a_plugin(installed, tmp_path):
    path = tmp_path / "problem.toml"
    path.write_text('banditune = 1\n[problem]\nname = "coin"\n')
    with pytest.raises(bt.InvalidRequest, match="must have one of the names"):
        bt.load_problem(path)
    assert "narrow" in POLICIES
    assert "narrow" not in POLICIES.without_plugins()


def test_a_result_finds_the_policy_of_a_package_again(installed):
    policy = make_from_spec("policy", "narrow:noise=0.5", POLICIES, Policy)
    result = bt.tune(policy, bt.Bernoulli(arms=3), horizon=20, budget=20, search=bt.Search(validate=20))
    deployed = bt.results.from_json(result.to_json()).deploy()
    deployed.update(deployed.select_arm(), 1.0)
    assert deployed.to_json().count("narrow") == 1


def test_the_command_line_takes_the_names_of_a_package(installed, run_banditune):
    path = os.pathsep.join([str(installed), *filter(None, [os.environ.get("PYTHONPATH")])])
    listed = run_banditune("list", "--json", PYTHONPATH=path)
    assert listed.returncode == 0, listed.stderr
    assert json.loads(listed.stdout)["tuners"]["middle"]["package"] == "other-package 1.0"
    assert "banditune: warning: the plug-in 'gone' of z-broken 1.0 is left out" in listed.stderr
    words = [
        "--policy",
        "narrow:noise=0.5",
        "--problem",
        "coin",
        "--tuner",
        "middle",
        "--horizon",
        "20",
        "--budget",
        "20",
    ]
    tuned = run_banditune("tune", *words, "--validate", "20", PYTHONPATH=path)
    assert tuned.returncode == 0, tuned.stderr
    assert "gamma = 0.5 has regret" in tuned.stdout


def test_a_registry_without_a_group_has_built_in_names_only(installed):
    registry = Registry({"ucb1": "banditune.policies.ucb1:UCB1"})
    assert list(registry) == ["ucb1"]
    assert len(registry) == 1
    assert "narrow" not in registry
    with pytest.raises(KeyError):
        registry["narrow"]
