"""What is never unpickled."""

from __future__ import annotations

import ast

from conftest import ROOT


def test_only_what_travels_is_pickled():
    """Files, ledgers and states are never unpickled: no other module imports pickle, and arrays are read without it."""
    paths = list((ROOT / "src").rglob("*.py"))
    assert len(paths) > 200
    for path in paths:
        text = path.read_text()
        names = {
            alias.name.partition(".")[0]
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for alias in (node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")])
        }
        pickles = names & {"pickle", "cloudpickle", "marshal", "shelve", "dill", "joblib"}
        assert not pickles or path.parent.name == "executors", path
        assert text.count("np.load(") == text.count("allow_pickle=False") - text.count("np.save("), path
