"""Explains errors inside a kernel, and how to repeat the run."""

from __future__ import annotations

from banditune.core.arrays import FloatArray
from banditune.simulation import loop
from banditune.simulation.nan_checks import NAN_ERROR_FUNCTIONS
from banditune.simulation.spec import SimulationSpec


def describe_exception(spec: SimulationSpec, error: Exception) -> str:
    """Describe an exception of custom code."""
    if isinstance(error, IndexError):
        return (
            f"the policy {spec.policy.name!r} or the problem {spec.problem.name!r} reached outside its memory; set "
            "NUMBA_DISABLE_JIT=1 to see where."
        )
    if isinstance(error, TypeError) and "None" in str(error):
        return f"`choose` of the policy {spec.policy.name!r} must return an arm on every path, but it returned nothing."
    return (
        f"the policy {spec.policy.name!r} or the problem {spec.problem.name!r} failed: {type(error).__name__}: {error}."
    )


def describe_failure(spec: SimulationSpec, params: FloatArray, runs: range, failure: FloatArray) -> str:
    """Describe an error inside a kernel, and how to repeat the run."""
    code, step, culprit, row, run = failure
    if code == loop.UNLOCATED_INVALID_REWARD:
        return (
            f"a reward must be a finite number, but the problem {spec.problem.name!r} pays another in run "
            f"{runs.start + int(run)} (seed={spec.seed})."
        )
    where = (
        f"at step {step:.0f} of run {runs.start + int(run)} with parameters {params[int(row)].tolist()} "
        f"(seed={spec.seed}, horizon={spec.horizon}; simulate(..., first_instance={runs.start + int(run)}, runs=1) "
        "repeats it)"
    )
    if code == loop.INVALID_ARM and culprit in spec.policy.failure_messages:
        return f"{spec.policy.failure_messages[int(culprit)]} (the policy {spec.policy.name!r} {where})."
    if code == loop.INVALID_ARM:
        return (
            f"an arm must be a whole number from 0 to {spec.problem.arms - 1}, but the policy {spec.policy.name!r} chose "
            f"{culprit:g} {where}."
        )
    if code == loop.NAN_COMPARED:
        function = tuple(NAN_ERROR_FUNCTIONS.values())[int(culprit)]
        return (
            f"`{function}` of the policy {spec.policy.name!r} must not compare NaN by <, <=, >, >=, max or min, or take "
            f"its int(), because NaN is neither less nor greater than any number, but it did {where}; look for 0 / 0, "
            "inf - inf and the logarithm or root of a negative number, or test for `math.isnan` first."
        )
    mistake = f"the problem {spec.problem.name!r} paid another for arm {culprit:.0f}"
    return f"a reward must be a finite number, but {mistake} {where}."
