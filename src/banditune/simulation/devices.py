"""Finds devices: cores of the CPU, and whether a GPU can be used."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import Any

from banditune.core.checks import check_choice
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Setting

DEVICES = ("cpu", "gpu", "auto")


GPU_INSTALL_COMMAND = "pip install 'banditune[gpu]'"


def resolve_device(device: Any) -> str:
    """Resolve a device to "cpu" or "gpu". "auto" becomes "gpu" if a GPU can be used."""
    check_choice("device", device, DEVICES)
    if device == "cpu":
        return "cpu"
    reason = explain_missing_gpu()
    if reason and device == "gpu":
        raise InvalidRequest(
            "{} needs an NVIDIA GPU, its driver and numba-cuda, but {}.",
            *(Setting("device", "gpu"), reason),
            argument="device",
            code="unavailable",
        )
    return "cpu" if reason or (device == "auto" and is_cuda_simulated()) else "gpu"


def explain_missing_gpu() -> str | None:
    """Explain why no GPU can be used, as the end of a sentence; None if one can."""
    if find_spec("numba_cuda") is None:
        return f"numba-cuda is not installed; {GPU_INSTALL_COMMAND} installs it"
    try:
        if is_cuda_simulated():
            return None
        from numba.cuda.cudadrv import driver, nvvm

        if not driver.driver.is_available or not driver.driver.get_device_count():
            return "no GPU can be reached; `nvidia-smi` must show one on this machine"
        if not nvvm.is_available():
            return f"the compiler for GPUs (NVVM) is missing; {GPU_INSTALL_COMMAND} installs it"
    except Exception as error:
        return f"numba-cuda does not work here ({type(error).__name__}: {error}); {GPU_INSTALL_COMMAND} may repair it"
    return None


def is_cuda_simulated() -> bool:
    """Return whether CUDA's simulator replaces a GPU."""
    from numba import config

    return bool(config.ENABLE_CUDASIM)


def count_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
