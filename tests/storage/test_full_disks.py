"""Stores on a disk that is full."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

import banditune as bt
from banditune.storage import store_tables


def test_a_full_disk_is_an_error_of_the_store(store, run_python):
    code = f"""
import resource
import banditune as bt

resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
try:
    bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 0.3, horizon=100, runs=100_000,
                run=bt.Run(workers=1, store={str(store)!r}))
except bt.errors.StoreError as error:
    print(error)
"""
    process = run_python(code)
    assert process.returncode == 0, process.stderr
    assert "cannot be written or read here" in process.stdout
    store_tables.verify_store(store)


ON_A_SMALL_DISK = """
import json, os, subprocess, sys
import banditune as bt
from banditune.storage import store_tables

def study(store=None):
    return bt.tune(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), horizon=50, budget=200_000, include="no_lower_bound",
                   search=bt.Search(tuner=bt.tuners.Uniform(), validate=20_000),
                   run=bt.Run(workers=1, store=store)).to_json()

store = os.path.join(sys.argv[1], "study.db")
try:
    study(store)
except bt.errors.StoreError as error:
    message = str(error)
disk = os.statvfs(sys.argv[1])
stored = store_tables.verify_store(store)["regrets"]  # also while the disk is full
subprocess.run(["mount", "-o", "remount,size=8m", sys.argv[1]], check=True)
same = study(store) == study()
every_regret = store_tables.verify_store(store)["regrets"]
print(json.dumps({"message": message, "free": disk.f_bavail * disk.f_frsize, "stored": stored, "same": same,
                  "all": every_regret}))
"""


def test_a_study_continues_once_a_full_disk_has_space(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f'unshare --mount sh -c \'mount -t tmpfs -o size=400k none {disk} && exec "$0" "$@"\''
    if subprocess.run(f"{mount} true", shell=True, capture_output=True).returncode:
        pytest.skip("a small disk can be mounted by root only")
    script = tmp_path / "script.py"
    script.write_text(ON_A_SMALL_DISK)
    process = subprocess.run(
        f"{mount} {sys.executable} {script} {disk}", shell=True, capture_output=True, text=True, timeout=300
    )
    assert process.returncode == 0, process.stderr
    data = json.loads(process.stdout)
    assert "cannot be written or read here: database or disk is full" in data["message"]
    assert data["free"] < 65536
    assert 0 < data["stored"] < data["all"]
    assert data["same"]


PROBLEM = bt.Bernoulli(arms=3)


def test_a_store_can_be_used_after_a_full_disk(tmp_path, run_python):
    store = tmp_path / "study.db"
    code = f"""
import resource, sys
import banditune as bt

if sys.argv[1:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), resource.RLIM_INFINITY))
try:
    bt.simulate(bt.UCB1(noise=0.5), bt.Bernoulli(arms=3), 0.3, horizon=100, runs=60_000,
                run=bt.Run(workers=1, store={str(store)!r}))
except bt.errors.StoreError as error:
    print(error)
"""
    process = run_python(code, "200000")
    assert process.returncode == 0, process.stderr
    assert "cannot be written or read here" in process.stdout
    stored = store_tables.verify_store(store)["regrets"]
    assert 0 <= stored < 60_000
    process = run_python(code)
    assert (process.returncode, process.stdout) == (0, "")
    assert store_tables.verify_store(store)["regrets"] == 60_000
    expected = bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.3, horizon=100, runs=60_000)
    assert (
        bt.simulate(bt.UCB1(noise=0.5), PROBLEM, 0.3, horizon=100, runs=60_000, run=bt.Run(store=store))
        == expected.astype(np.float32)
    ).all()
