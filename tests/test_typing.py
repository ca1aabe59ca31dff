"""A user's type checker sees real types through `import banditune as bt`."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("typed_user.py")
WRONG_LINES = {
    'bt.UCB1(noise="loud")': "noise",
    "bt.tune(bt.UCB1(), bt.Bernoulli(arms=3))": "horizon",
    'bt.Simulation(regret="real")': "regret",
    'bt.Run(device="tpu")': "device",
    'bt.tune(bt.UCB1(), bt.Bernoulli(arms=3), horizon=5, include=("curves",))': "include",
    "bt.tune(bt.UCB1(), bt.Bernoulli(arms=3), horizon=5).regrets": "regrets",
    "bt.nothing": "nothing",
}


def list_lines_with_errors(checker: str, script: Path) -> set[int]:
    if checker == "mypy":
        command = ["-m", "mypy", "--strict", "--no-error-summary", "--config-file=", str(script)]
        process = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=script.parent)
        messages = [
            line for line in process.stdout.splitlines() if line.startswith(str(script.name)) and ": error:" in line
        ]
        return {int(line.split(":")[1]) for line in messages}
    config = script.parent / "pyrightconfig.json"
    config.write_text(json.dumps({"typeCheckingMode": "strict", "include": [script.name]}))
    command = ["-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "--project", str(config)]
    process = subprocess.run([sys.executable, *command], capture_output=True, text=True, cwd=script.parent)
    return {message["range"]["start"]["line"] + 1 for message in json.loads(process.stdout)["generalDiagnostics"]}


@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_a_users_script_is_checked_strictly(tmp_path, checker):
    assert importlib.util.find_spec(checker)
    script = tmp_path / "user.py"
    script_text = SCRIPT.read_text()
    script.write_text(script_text + "".join(f"{line}\n" for line in WRONG_LINES))
    first = script_text.count("\n") + 1
    lines = list_lines_with_errors(checker, script)
    assert not [line for line in lines if line < first]
    assert lines >= set(range(first, first + len(WRONG_LINES)))
