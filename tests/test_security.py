"""Only messages between processes are pickled."""

from __future__ import annotations

import ast

from helpers.paths import ROOT


def test_only_executors_use_pickle():
    """Files and states are never unpickled, and arrays are read without pickle."""
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
        used = names & {"pickle", "cloudpickle", "marshal", "shelve", "dill", "joblib"}
        assert not used or path.parent.name == "executors", path
        assert text.count("np.load(") == text.count("allow_pickle=False") - text.count("np.save("), path
