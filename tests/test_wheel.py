"""The wheel, built from the source archive, works in an empty virtual environment and carries what its user needs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

from banditune.core.example_files import list_files
from helpers.paths import ROOT


def test_the_wheel_works_in_an_empty_environment(tmp_path):
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    archive = zipfile.ZipFile(wheel)
    names = archive.namelist()
    assert {"banditune/py.typed", "banditune/reports/page.css", "banditune/core/pages/assumptions.md"} <= set(names)
    assert "banditune/reports/page.js" in names
    kept = {path.relative_to(ROOT).as_posix() for path in list_files(ROOT / "examples")}
    assert len(kept) > 10
    assert {f"banditune/{name}" for name in kept} == {name for name in names if name.startswith("banditune/examples/")}
    (metadata,) = (name for name in names if name.endswith(".dist-info/METADATA"))
    links = re.findall(r"\]\(([^)]+)\)", archive.read(metadata).decode())
    assert len(links) > 5
    assert [link for link in links if not link.startswith("https://")] == []
    assert not any(name.startswith("tests") for name in names)
    venv.create(tmp_path / "env", with_pip=True)
    python = tmp_path / "env" / "bin" / "python"
    install = [
        python,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--disable-pip-version-check",
        "--no-index",
        wheel,
    ]
    subprocess.run(install, check=True, capture_output=True)
    # The dependencies are those of this environment; the package itself comes from the wheel.
    (site,) = (tmp_path / "env" / "lib").glob("python*/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    code = "import banditune; print(banditune.__file__)"
    process = subprocess.run(
        [python, "-c", code], check=True, capture_output=True, text=True, cwd=tmp_path, env=environment
    ).stdout
    assert process.startswith(str(site))
    command = [
        tmp_path / "env" / "bin" / "banditune",
        "tune",
        "--policy",
        "ucb1",
        "--problem",
        "warm-up",
        "--horizon",
        "50",
    ]
    process = subprocess.run(
        [*command, "--budget", "20"], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert process.returncode == 0, process.stderr
    assert "gamma" in process.stdout
    command = [tmp_path / "env" / "bin" / "banditune", "examples", "extending/tuner.py", "-o", "mine"]
    process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert process.stdout == f"wrote {Path('mine/extending/tuner.py')}\n", process.stderr
    written = (tmp_path / "mine" / "extending" / "tuner.py").read_bytes()
    assert written == (ROOT / "examples" / "extending" / "tuner.py").read_bytes()
