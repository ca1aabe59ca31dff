"""Which devices there are: what `device=` may say, and what `banditune doctor` finds."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

from banditune.contracts import BadRequest
from banditune.engine.run import Job

DEVICES = ("cpu", "gpu", "auto")

INSTALL = "pip install 'banditune[gpu]'"


def resolved(device: Any) -> str:
    """ "cpu" or "gpu": `auto` takes a GPU if one can be used."""
    if device not in DEVICES:
        raise BadRequest(f"`device` must be one of {', '.join(map(repr, DEVICES))}, but got {device!r}.")
    if device == "cpu":
        return "cpu"
    trouble = gpu_trouble()
    if trouble and device == "gpu":
        raise BadRequest(f'device="gpu" needs an NVIDIA GPU, its driver and numba-cuda, but {trouble}.')
    return "cpu" if trouble or (device == "auto" and simulated()) else "gpu"


def device_for(job: Job, device: Any) -> str:
    """ "cpu" or "gpu" for a job: `auto` takes a GPU if one can be used and a run of the job fits onto it."""
    found = resolved(device)
    if found == "cpu" or device == "gpu":
        return found
    from banditune.engine.gpu import plan

    try:
        plan(job)
    except BadRequest:
        return "cpu"
    return "gpu"


def gpu_trouble() -> str | None:
    """Why no GPU can be used, as the end of a sentence; None if one can."""
    if find_spec("numba_cuda") is None:
        return f"numba-cuda is not installed; {INSTALL} brings it"
    try:
        if simulated():
            return None
        from numba.cuda.cudadrv import driver, nvvm

        if not driver.driver.is_available or not driver.driver.get_device_count():
            return "no GPU can be reached; `nvidia-smi` must show one on this machine"
        if not nvvm.is_available():
            return f"the compiler for GPUs (NVVM) is missing; {INSTALL} brings it"
    except Exception as error:
        return f"numba-cuda does not work here ({type(error).__name__}: {error}); {INSTALL} may repair it"
    return None


def simulated() -> bool:
    """Whether CUDA's simulator plays the GPU."""
    from numba import config

    return bool(config.ENABLE_CUDASIM)
