"""Explains what went wrong inside a kernel, and how to repeat it."""

from __future__ import annotations

from banditune.core.arrays import FloatArray
from banditune.simulation import loop
from banditune.simulation.nan_checks import NAN_ERROR_FUNCTIONS
from banditune.simulation.spec import SimulationSpec


def describe_exception(job: SimulationSpec, error: Exception) -> str:
    """An exception out of a user's code, as a sentence."""
    if isinstance(error, IndexError):
        return (
            f"the policy {job.policy.name!r} or the problem {job.problem.name!r} reached outside its memory; set "
            "NUMBA_DISABLE_JIT=1 to see where."
        )
    if isinstance(error, TypeError) and "None" in str(error):
        return f"`choose` of the policy {job.policy.name!r} must return an arm on every path, but it returned nothing."
    return (
        f"the policy {job.policy.name!r} or the problem {job.problem.name!r} failed: {type(error).__name__}: {error}."
    )


def describe_failure(job: SimulationSpec, params: FloatArray, within: range, trouble: FloatArray) -> str:
    """What went wrong inside a kernel, and how to see it again."""
    code, step, culprit, row, run = trouble
    if code == loop.UNLOCATED_INVALID_REWARD:
        return (
            f"a reward must be a finite number, but the problem {job.problem.name!r} pays another in run "
            f"{within.start + int(run)} (seed={job.seed})."
        )
    where = (
        f"at step {step:.0f} of run {within.start + int(run)} with parameters {params[int(row)].tolist()} "
        f"(seed={job.seed}, horizon={job.horizon}; simulate(..., first={within.start + int(run)}, runs=1) repeats it)"
    )
    if code == loop.INVALID_ARM and culprit in job.policy.faults:
        return f"{job.policy.faults[int(culprit)]} (the policy {job.policy.name!r} {where})."
    if code == loop.INVALID_ARM:
        return (
            f"an arm must be a whole number from 0 to {job.problem.arms - 1}, but the policy {job.policy.name!r} chose "
            f"{culprit:g} {where}."
        )
    if code == loop.NAN_COMPARED:
        return (
            f"`{tuple(NAN_ERROR_FUNCTIONS.values())[int(culprit)]}` of the policy {job.policy.name!r} must not compare NaN by <, <=, >, "
            f">=, max or min, because NaN is neither less nor greater than any number, but it did {where}; look for 0 / 0, "
            "inf - inf and the logarithm or root of a negative number, or test for `math.isnan` first."
        )
    paid = f"the problem {job.problem.name!r} paid another for arm {culprit:.0f}"
    return f"a reward must be a finite number, but {paid} {where}."
