"""Kernels for a GPU as PTX, on a machine without one."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import patch

from numba import cuda

from banditune.engine import bind, gpu


def lowered(planned, capability=(9, 0)):
    """The PTX of a plan's kernel for a GPU of this compute capability."""
    target = bind.Target("ptx " + planned.target.name, gpu._helper, lambda copy, cache: copy)
    source = bind.kernel(planned.source, planned.slots, target)
    found = SimpleNamespace(compute_capability=capability)
    with (
        patch("numba.cuda.dispatcher.get_current_device", lambda: found),
        gpu.told_to_nvvm(planned.target is gpu.ALONE),
    ):
        ptx, _ = cuda.compile_ptx(source, gpu.SIGNATURE, cc=capability, device=False)
    return ptx
