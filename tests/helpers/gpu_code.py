"""Kernels for a GPU as PTX, on a machine without a GPU."""

from __future__ import annotations

from types import SimpleNamespace
from unittest.mock import patch

from numba import cuda

from banditune.simulation import compilation
from banditune.simulation.gpu import cuda_kernels, cuda_targets

CAPABILITY = (9, 0)


def compile_plan(plan, capability=CAPABILITY):
    """The PTX of a plan's kernel for a GPU of this compute capability."""
    source = compilation.compile_kernel(plan.kernel, plan.slots, make_source_target(plan.target.name))
    options = {target: options for options, target in cuda_targets.TABLE_TARGETS.items()} | {
        cuda_targets.THREAD_TARGETS["float64"]: "float64"
    }
    exact, small = plan.target in options, plan.threads_per_run == 1
    signature = cuda_targets.make_signature(options.get(plan.target, "float64"))
    return compile_to_ptx(source, signature, exact=exact, small=small, capability=capability)


def compile_predraw(problem):
    """The PTX of the kernel that draws the rewards of a problem ahead."""
    source = compilation.compile_kernel(
        cuda_kernels.predraw_rewards,
        {"draw_reward": problem.reward},
        make_source_target(cuda_targets.PREDRAW_TARGET.name),
    )
    return compile_to_ptx(source, cuda_targets.PREDRAW_SIGNATURE, exact=True, small=True)


def make_source_target(name):
    """A target with the helpers of a GPU, which leaves the kernel uncompiled."""
    return compilation.CompileTarget("ptx " + name, cuda_targets._compile_gpu_helper, lambda copy, cache: copy)


def compile_to_ptx(source, signature, *, exact, small=False, capability=CAPABILITY):
    """PTX as the package compiles it. Only the GPU is simulated."""
    device = SimpleNamespace(compute_capability=capability)
    with patch("numba.cuda.dispatcher.get_current_device", lambda: device), cuda_targets.set_nvvm_options(exact, small):
        code, _ = cuda.compile_ptx(source, signature, cc=capability, device=False)
    return code
