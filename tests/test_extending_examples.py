"""The skeletons for own policies, problems, tuners and executors run, and pass the checks that they show."""

from __future__ import annotations

import sys
import tomllib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

import banditune as bt
from banditune.core.policy import Policy
from banditune.policies.policy_registry import POLICIES
from banditune.registry import import_file, make_from_spec
from helpers.paths import ROOT

FOLDER = ROOT / "examples" / "extending"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("policy", ("'decaying-epsilon' passes 10 checks", "scale = ")),
        ("policy_with_shortcut", ("'skip-committed': every bit is that of the plain loop", "pulls = ")),
        ("problem", ("'orders' passes 6 checks", "on orders(arms=5, price=30)")),
        ("tuner", ("'coarse-to-fine' passes 5 checks", "search: coarse-to-fine, 900 of 900 runs")),
    ],
)
def test_a_skeleton_passes_its_check_and_is_tuned(name, words, capsys):
    import_file(FOLDER / f"{name}.py").main()
    shown = capsys.readouterr().out
    assert [word for word in words if word not in shown] == []


def test_the_executor_passes_its_check():
    pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
    with import_file(FOLDER / "executor.py").PoolExecutor(pool, workers=1) as executor:
        found = bt.testing.check_executor(executor)
    assert [check.name for check in found.checks] == ["workers", "same-bits", "each-chunk-once", "stopping", "errors"]


def test_the_plugin_adds_its_policy_by_the_entry_points_of_its_project_file(tmp_path, monkeypatch):
    plugin = FOLDER / "plugin"
    project = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]
    info = tmp_path / "banditune_example-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    lines = []
    for group, entries in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {target}" for name, target in entries.items())]
    (info / "entry_points.txt").write_text("\n".join(lines))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(plugin / "src")
    try:
        policy = make_from_spec("policy", "first-good:tolerance=0.05", POLICIES, Policy)
        assert policy.tolerance == 0.05
        import_file(plugin / "tests" / "test_banditune_example.py").test_the_policy_keeps_its_contract()
    finally:
        sys.modules.pop("banditune_example", None)
