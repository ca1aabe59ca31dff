"""The built wheel works in an empty virtual environment."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile

from conftest import ROOT


def test_the_wheel_works_in_an_empty_environment(tmp_path):
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"banditune/py.typed", "banditune/reports/page.css", "banditune/core/pages/assumptions.md"} <= set(names)
    assert "banditune/reports/page.js" in names
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
    done = subprocess.run([*command, "--budget", "20"], capture_output=True, text=True, cwd=tmp_path, env=environment)
    assert done.returncode == 0, done.stderr
    assert "gamma" in done.stdout
