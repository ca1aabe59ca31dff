"""Kernels for a GPU as PTX, on a machine without one."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import patch

from numba import cuda

from banditune.simulation import compilation
from banditune.simulation.gpu import cuda_kernels, cuda_targets

CAPABILITY = (9, 0)


def lowered(planned, capability=CAPABILITY):
    """The PTX of a plan's kernel for a GPU of this compute capability."""
    source = compilation.compile_kernel(planned.kernel, planned.slots, as_it_is(planned.target.name))
    options = {target: options for options, target in cuda_targets.TABLE_TARGETS.items()} | {
        cuda_targets.THREAD_TARGETS["float64"]: "float64"
    }
    exact, small = planned.target in options, planned.threads_per_run == 1
    signature = cuda_targets.make_signature(options.get(planned.target, "float64"))
    return ptx(source, signature, exact=exact, small=small, capability=capability)


def lowered_drawing(problem):
    """The PTX of the kernel that draws a problem's rewards ahead."""
    source = compilation.compile_kernel(
        cuda_kernels.predraw_rewards, {"draw_reward": problem.reward}, as_it_is(cuda_targets.PREDRAW_TARGET.name)
    )
    return ptx(source, cuda_targets.PREDRAW_SIGNATURE, exact=True, small=True)


def as_it_is(name):
    """A target with the helpers of a GPU's, but whose kernel is left to `ptx`."""
    return compilation.CompileTarget("ptx " + name, cuda_targets._compile_gpu_helper, lambda copy, cache: copy)


def ptx(source, signature, *, exact, small=False, capability=CAPABILITY):
    """PTX as the engine has it compiled: only the GPU is pretended."""
    found = SimpleNamespace(compute_capability=capability)
    with patch("numba.cuda.dispatcher.get_current_device", lambda: found), cuda_targets.set_nvvm_options(exact, small):
        code, _ = cuda.compile_ptx(source, signature, cc=capability, device=False)
    return code
