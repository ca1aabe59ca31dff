"""Compares a shortcut with the plain loop: bit by bit if it is declared exact in every bit, else by mean regrets."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.policy import Policy, Shortcut
from banditune.simulation.dispatch import simulate_rows
from banditune.simulation.kernel_selection import select_shortcut_rows
from banditune.simulation.spec import SimulationSpec
from banditune.testing.conformance_steps import Violation, describe_bits

MAX_ERRORS = 4.0
"""The largest difference of two mean regrets, in standard errors."""


ROUNDING = 1e-9
"""The relative rounding error of a mean regret."""


BITWISE_RUNS, LAW_RUNS, LAW_RUNS_WITH_FEATURES = 300, 4000, 2000
"""The numbers of runs for a shortcut that is exact in every bit, and for one with the same distribution of regrets.

Steps with features take longer, so there are fewer runs.
"""


class MeanComparison(NamedTuple):
    """Paired differences of regrets: their means, in rows and checkpoints, and the standard errors."""

    difference: FloatArray
    error: FloatArray
    scale: FloatArray

    @property
    def is_same(self) -> bool:
        """Whether no mean difference exceeds its error and rounding."""
        return bool((np.abs(self.difference) <= MAX_ERRORS * self.error + ROUNDING * (1 + self.scale)).all())

    @property
    def detectable(self) -> float:
        """The smallest deviation of a mean regret that would have been detected, in the row where it is largest."""
        return float(MAX_ERRORS * self.error.max(initial=0.0))

    @property
    def detectable_share(self) -> float:
        """The same as a share of the mean regret, in the row and at the checkpoint where it is largest."""
        shares = MAX_ERRORS * self.error[self.scale > 0] / self.scale[self.scale > 0]
        return float(shares.max(initial=0.0))


def compare_means(fast: FloatArray, plain: FloatArray) -> MeanComparison:
    """Compare paired regrets of shape (rows, runs, checkpoints)."""
    differences = fast - plain
    error = differences.std(axis=1, ddof=1) / math.sqrt(differences.shape[1])
    return MeanComparison(differences.mean(axis=1), error, np.abs(plain.mean(axis=1)))


def keep_only_shortcut(policy: Policy, shortcut: Shortcut) -> Policy:
    """Return the policy with this shortcut and no other."""
    kind: Any = type(policy)
    only = type(kind.__name__, (kind,), {"shortcuts": (shortcut,), "__module__": kind.__module__})
    options = fields(policy)  # type: ignore[arg-type]
    return only(**{option.name: getattr(policy, option.name) for option in options if option.init})  # type: ignore[no-any-return]


def simulate_both_ways(spec: SimulationSpec, params: FloatArray, runs: range) -> tuple[FloatArray, FloatArray]:
    """Simulate with the shortcut and by the plain loop."""
    fast, plain = (simulate_rows(replace(spec, use_shortcut=use), params, runs, workers=1) for use in (True, False))
    return fast, plain


def compare_shortcut(spec: SimulationSpec, shortcut: Shortcut, params: FloatArray) -> tuple[str, int, float]:
    """Compare a shortcut with the plain loop. Return the finding, the runs and the detectable deviation.

    The policy of `spec` must have only this shortcut. Rows for which the proof does not hold must be those of the plain
    loop. If a mean differs, it is compared again on four times as many other runs, to avoid false alarms.
    """
    law_runs = LAW_RUNS_WITH_FEATURES if spec.problem.dims else LAW_RUNS
    size = BITWISE_RUNS if shortcut.is_bitwise_exact else law_runs
    fast, plain = simulate_both_ways(spec, params, range(size))
    valid = np.array(select_shortcut_rows(spec, params))
    rows = f"{valid.sum()} of {len(valid)} rows of parameters"
    if not valid.any():
        raise Violation(
            f"the shortcut {shortcut.name!r} must be valid somewhere, but `is_valid` is false for {params.tolist()}; "
            "correct it, or leave the shortcut out."
        )
    if not (fast[~valid] == plain[~valid]).all():
        raise Violation(f"rows for which `is_valid` is false must be simulated by the plain loop: {shortcut.name!r}.")
    fast, plain, wide = fast[valid], plain[valid], params[valid]
    if shortcut.is_bitwise_exact:
        if not (fast == plain).all():
            raise Violation(
                f"the shortcut {shortcut.name!r} must pull the same arms as the plain loop (is_bitwise_exact=True), but "
                f"{describe_bits(fast, plain)}{_name_worst_row(compare_means(fast, plain), wide)}; correct `advance`, "
                "narrow `is_valid`, or set is_bitwise_exact=False if only the distribution is the same."
            )
        return f"{shortcut.name!r}: every bit is that of the plain loop, {rows}, {size} runs", size, 0.0
    means = compare_means(fast, plain)
    if not means.is_same:
        fast, plain = simulate_both_ways(spec, wide, range(size, 5 * size))
        means = compare_means(fast, plain)
        size *= 5
    if not means.is_same:
        raise Violation(
            f"the shortcut {shortcut.name!r} must have the mean regrets of the plain loop, but they differ"
            f"{_name_worst_row(means, wide)}; correct `advance`, or narrow `is_valid`."
        )
    return (
        f"{shortcut.name!r}: mean regrets are those of the plain loop, {rows}, {size} runs; a deviation of "
        f"{means.detectable:.2g} ({means.detectable_share:.1%} at most) would have been detected",
        size,
        means.detectable,
    )


def _name_worst_row(means: MeanComparison, params: FloatArray) -> str:
    """Describe the row of parameters with the largest deviation in standard errors."""
    with np.errstate(all="ignore"):
        errors = np.abs(means.difference) / np.maximum(means.error, 1e-300)
    row, point = np.unravel_index(int(np.argmax(errors)), errors.shape)
    off, error = means.difference[row, point], means.error[row, point]
    return f": by {off:.3g} +- {error:.2g} at parameters {params[row].tolist()}"
