"""What this machine has, what works and what to do: `banditune doctor`."""

from __future__ import annotations

import math
import os
import platform
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from numba import config

from banditune.simulation.compilation import find_cache_folder
from banditune.simulation.devices import (
    DEVICES,
    GPU_INSTALL_COMMAND,
    count_cores,
    explain_missing_gpu,
    is_cuda_simulated,
)
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.memory import format_bytes, measure_free_memory
from banditune.simulation.spec import SimulationSpec
from banditune.study.requests import check_choice


def find_package_version(name: str) -> str | None:
    """The version of an installed package."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def examine_environment(jobs: Sequence[SimulationSpec], device: str = "auto") -> dict[str, Any]:
    """What was found on this machine, whether it works and what to do, a record per thing; `works` says if all is well.

    The first job is played on the CPU, all of them on a GPU. A GPU is only missed where one is there that cannot be used,
    or where `device` is "gpu".
    """
    check_choice("device", device, DEVICES)
    checks = [report_versions(), check_cores_and_memory(), check_cache_folder(), check_simulation(jobs[:1], "cpu")]
    if device != "cpu":
        checks += check_gpu(jobs, wanted=device == "gpu")
    return {"works": all(check["works"] is not False for check in checks), "checks": checks}


def check_gpu(jobs: Sequence[SimulationSpec], *, wanted: bool) -> list[dict[str, Any]]:
    """The GPU, numba-cuda, and whether they play."""
    extra = find_package_version("numba-cuda")
    there = query_nvidia_smi()
    trouble = explain_missing_gpu()
    if trouble is None:
        return [make_check("GPU", describe_gpu()), make_check("numba-cuda", str(extra)), check_simulation(jobs, "gpu")]
    return [
        make_check("GPU", there or "none"),
        make_check("numba-cuda", extra or "not installed"),
        make_check("plays on the GPU", "no", False if wanted or there else None, advise_on_gpu(trouble, extra, there)),
    ]


def advise_on_gpu(trouble: str, extra: str | None, there: str | None) -> str:
    """What to do about a GPU that cannot be used."""
    if extra is None and there is None:
        return f"no NVIDIA GPU was found (nvidia-smi shows none); where there is one, {GPU_INSTALL_COMMAND} brings what it needs"
    if extra is not None and there is not None:
        return "nvidia-smi shows it, but CUDA cannot start: the driver must be 580 or newer, CUDA_VISIBLE_DEVICES not empty"
    return trouble


def make_check(what: str, found: str, works: bool | None = None, advice: str = "") -> dict[str, Any]:
    """One line of a diagnosis; `works` is None where there is nothing to work."""
    return {"what": what, "found": found, "works": works, "advice": advice}


def report_versions() -> dict[str, Any]:
    """banditune and what it stands on."""
    from banditune.core.version import __version__

    told = ", ".join(f"{name} {find_package_version(name)}" for name in ("numpy", "numba", "llvmlite"))
    return make_check("versions", f"banditune {__version__}, python {platform.python_version()}, {told}")


def check_cores_and_memory() -> dict[str, Any]:
    """Cores that this process may use, and memory that is free."""
    free = measure_free_memory()
    told = f"{format_bytes(free)} of memory free" if math.isfinite(free) else "free memory unknown"
    return make_check("cores", f"{count_cores()}, {told}")


def check_cache_folder() -> dict[str, Any]:
    """The folder of compiled kernels."""
    folder = Path(config.CACHE_DIR) if config.CACHE_DIR else find_cache_folder()
    if folder is None:
        asked = os.environ.get("BANDITUNE_CACHE", "~/.cache/banditune")
        todo = "set BANDITUNE_CACHE to a folder that can be; until then every process compiles anew"
        return make_check("cache folder", f"{asked} cannot be written", False, todo)
    sizes = [path.stat().st_size for path in folder.rglob("*.nb[ci]")]
    return make_check("cache folder", f"{folder} ({len(sizes)} files, {sum(sizes) / 2**20:.1f} MiB)", True)


def check_simulation(jobs: Sequence[SimulationSpec], device: str) -> dict[str, Any]:
    """Whether policies can be compiled and played, and lose on this device, or step by step, what their shortcuts do."""
    name = {"cpu": "plays on the CPU", "gpu": "plays on the GPU"}[device]
    began = perf_counter()
    for job in jobs:
        try:
            usual = simulate_rows(job, [[0.5], [1.0]], range(4))
            found = simulate_rows(replace(job, device=device, shortcut=device == "gpu"), [[0.5], [1.0]], range(4))
        except Exception as error:
            return make_check(name, f"not {job.policy.name}", False, f"{type(error).__name__}: {error}")
        if not np.allclose(found, usual, rtol=1e-9):
            return make_check(
                name, f"wrong regrets of {job.policy.name}", False, "please report this, with the lines above"
            )
    return make_check(name, f"yes ({perf_counter() - began:.1f} s, most of it to compile or load)", True)


def query_nvidia_smi() -> str | None:
    """GPUs and driver as `nvidia-smi` tells them, without numba-cuda; None where it tells of none."""
    fields = "--query-gpu=name,driver_version,memory.free"
    try:
        done = subprocess.run(
            ["nvidia-smi", fields, "--format=csv,noheader"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError):
        return None
    gpus = [line.split(", ") for line in done.stdout.splitlines() if line.count(", ") == 2]
    return "; ".join(f"{name}, driver {driver}, {free} free" for name, driver, free in gpus) or None


def describe_gpu() -> str:
    """The GPU that would play."""
    from numba import cuda

    if is_cuda_simulated():
        return "CUDA's simulator (NUMBA_ENABLE_CUDASIM is set)"
    gpu = cuda.get_current_device()
    name = gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name
    memory = cuda.current_context().get_memory_info()
    capability = ".".join(map(str, gpu.compute_capability))
    driver = (query_nvidia_smi() or "").partition("driver ")[2].partition(",")[0] or "unknown"
    room = f"{memory.free / 2**30:.0f} of {memory.total / 2**30:.0f} GiB free"
    return f"{name}, compute capability {capability}, driver {driver}, {room}"
