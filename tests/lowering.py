"""Kernels for a GPU as PTX, on a machine without one."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import patch

from numba import cuda

from banditune.engine import bind, gpu, grid

CAPABILITY = (9, 0)


def lowered(planned, capability=CAPABILITY):
    """The PTX of a plan's kernel for a GPU of this compute capability."""
    source = bind.kernel(planned.source, planned.slots, as_it_is(planned.target.name))
    options = {target: options for options, target in gpu.TABLES.items()} | {gpu.ALONE["float64"]: "float64"}
    exact, small = planned.target in options, planned.members == 1
    signature = gpu.signature(options.get(planned.target, "float64"))
    return ptx(source, signature, exact=exact, small=small, capability=capability)


def lowered_drawing(problem):
    """The PTX of the kernel that draws a problem's rewards ahead."""
    source = bind.kernel(grid.draw_ahead, {"drawn": problem.reward}, as_it_is(gpu.DRAWING.name))
    return ptx(source, gpu.DRAWING_SIGNATURE, exact=True, small=True)


def as_it_is(name):
    """A target with the helpers of a GPU's, but whose kernel is left to `ptx`."""
    return bind.Target("ptx " + name, gpu._helper, lambda copy, cache: copy)


def ptx(source, signature, *, exact, small=False, capability=CAPABILITY):
    """PTX as the engine has it compiled: only the GPU is pretended."""
    found = SimpleNamespace(compute_capability=capability)
    with patch("numba.cuda.dispatcher.get_current_device", lambda: found), gpu.told_to_nvvm(exact, small):
        code, _ = cuda.compile_ptx(source, signature, cc=capability, device=False)
    return code
