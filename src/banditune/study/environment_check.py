"""Checks of this machine for `banditune doctor`: installed packages, the devices that work, and advice."""

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

from banditune.core.checks import check_choice
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


def find_package_version(name: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def examine_environment(specs: Sequence[SimulationSpec], device: str = "auto") -> dict[str, Any]:
    """Check this machine, and return a record for each check; `works` states whether all passed.

    The first spec is simulated on the CPU, all of them on a GPU. A missing GPU is an error only if `device` is "gpu", or if
    there is one that cannot be used.
    """
    check_choice("device", device, DEVICES)
    checks = [report_versions(), check_cores_and_memory(), check_cache_folder(), check_simulation(specs[:1], "cpu")]
    if device != "cpu":
        checks += check_gpu(specs, required=device == "gpu")
    return {"works": all(check["works"] is not False for check in checks), "checks": checks}


def check_gpu(specs: Sequence[SimulationSpec], *, required: bool) -> list[dict[str, Any]]:
    """Check the GPU, numba-cuda, and a simulation on the GPU."""
    numba_cuda = find_package_version("numba-cuda")
    gpus = query_nvidia_smi()
    problem = explain_missing_gpu()
    if problem is None:
        return [
            make_check("GPU", describe_gpu()),
            make_check("numba-cuda", str(numba_cuda)),
            check_simulation(specs, "gpu"),
        ]
    return [
        make_check("GPU", gpus or "none"),
        make_check("numba-cuda", numba_cuda or "not installed"),
        make_check(
            "simulates on the GPU", "no", False if required or gpus else None, advise_on_gpu(problem, numba_cuda, gpus)
        ),
    ]


def advise_on_gpu(problem: str, numba_cuda: str | None, gpus: str | None) -> str:
    """Advise on a GPU that cannot be used."""
    if numba_cuda is None and gpus is None:
        return f"no NVIDIA GPU was found (nvidia-smi shows none); if there is one, install: {GPU_INSTALL_COMMAND}"
    if numba_cuda is not None and gpus is not None:
        return "nvidia-smi shows it, but CUDA cannot start: the driver must be 580 or newer, CUDA_VISIBLE_DEVICES not empty"
    return problem


def make_check(title: str, finding: str, works: bool | None = None, advice: str = "") -> dict[str, Any]:
    """Make the record of one check; `works` is None if the check cannot fail."""
    return {"check": title, "finding": finding, "works": works, "advice": advice}


def report_versions() -> dict[str, Any]:
    """Report the versions of banditune and of the packages that it needs."""
    from banditune.core.version import __version__

    details = ", ".join(f"{name} {find_package_version(name)}" for name in ("numpy", "numba", "llvmlite"))
    return make_check("versions", f"banditune {__version__}, python {platform.python_version()}, {details}")


def check_cores_and_memory() -> dict[str, Any]:
    """Report the cores that this process may use, and the free memory."""
    free = measure_free_memory()
    details = f"{format_bytes(free)} of memory free" if math.isfinite(free) else "free memory unknown"
    return make_check("cores", f"{count_cores()}, {details}")


def check_cache_folder() -> dict[str, Any]:
    """Check the folder of compiled kernels."""
    folder = Path(config.CACHE_DIR) if config.CACHE_DIR else find_cache_folder()
    if folder is None:
        wanted_folder = os.environ.get("BANDITUNE_CACHE", "~/.cache/banditune")
        advice = "set BANDITUNE_CACHE to a folder that can be written; until then every process compiles again"
        return make_check("cache folder", f"{wanted_folder} cannot be written", False, advice)
    sizes = [path.stat().st_size for path in folder.rglob("*.nb[ci]")]
    return make_check("cache folder", f"{folder} ({len(sizes)} files, {sum(sizes) / 2**20:.1f} MiB)", True)


def check_simulation(specs: Sequence[SimulationSpec], device: str) -> dict[str, Any]:
    """Check that policies compile and run, and that shortcuts, the plain loop and the device have equal regrets."""
    name = {"cpu": "simulates on the CPU", "gpu": "simulates on the GPU"}[device]
    start = perf_counter()
    for spec in specs:
        try:
            expected = simulate_rows(spec, [[0.5], [1.0]], range(4))
            regrets = simulate_rows(
                replace(spec, device=device, use_shortcut=device == "gpu"), [[0.5], [1.0]], range(4)
            )
        except Exception as error:
            return make_check(name, f"not {spec.policy.name}", False, f"{type(error).__name__}: {error}")
        if not np.allclose(regrets, expected, rtol=1e-9):
            return make_check(
                name, f"wrong regrets of {spec.policy.name}", False, "please report this, with the lines above"
            )
    return make_check(name, f"yes ({perf_counter() - start:.1f} s, most of it to compile or load)", True)


def query_nvidia_smi() -> str | None:
    """Read GPUs and driver from `nvidia-smi`, without numba-cuda; None if it shows none."""
    fields = "--query-gpu=name,driver_version,memory.free"
    try:
        process = subprocess.run(
            ["nvidia-smi", fields, "--format=csv,noheader"], capture_output=True, text=True, timeout=20
        )
    except (OSError, subprocess.SubprocessError):
        return None
    gpus = [line.split(", ") for line in process.stdout.splitlines() if line.count(", ") == 2]
    return "; ".join(f"{name}, driver {driver}, {free} free" for name, driver, free in gpus) or None


def describe_gpu() -> str:
    """Describe the GPU that simulations would use."""
    from numba import cuda

    if is_cuda_simulated():
        return "CUDA's simulator (NUMBA_ENABLE_CUDASIM is set)"
    gpu = cuda.get_current_device()
    name = gpu.name.decode() if isinstance(gpu.name, bytes) else gpu.name
    memory = cuda.current_context().get_memory_info()
    capability = ".".join(map(str, gpu.compute_capability))
    driver = (query_nvidia_smi() or "").partition("driver ")[2].partition(",")[0] or "unknown"
    memory_text = f"{memory.free / 2**30:.0f} of {memory.total / 2**30:.0f} GiB free"
    return f"{name}, compute capability {capability}, driver {driver}, {memory_text}"
