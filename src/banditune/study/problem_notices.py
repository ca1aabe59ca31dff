"""Notices about a problem that do not depend on the policy."""

from __future__ import annotations

from collections.abc import Iterator

from banditune.core.notice import Notice, with_code
from banditune.problems.reward_table import RewardTable
from banditune.results.estimates import Estimate
from banditune.simulation.fixed_arms import estimate_fixed_arm_advantage
from banditune.simulation.spec import SimulationSpec
from banditune.study.hold_out import note_small_data_set

SURE_STANDARD_ERRORS = 4.0
"""Another arm is better if its advantage is at least this many standard errors."""


def note_problem(spec: SimulationSpec) -> Iterator[Notice]:
    """Yield notices on the problem of a request."""
    yield from note_small_data_set(spec.problem)
    yield from note_better_fixed_arm(spec)


@with_code("better-fixed-arm")
def note_better_fixed_arm(spec: SimulationSpec) -> Iterator[str]:
    """Yield a notice if another fixed arm has more reward over the steps of a run than the comparator of regret."""
    if not spec.problem.has_step_dependent_means:
        return
    compared = "over all rows" if isinstance(spec.problem, RewardTable) else "that `sample` returns"
    gain = Estimate.from_sample(spec.horizon * estimate_fixed_arm_advantage(spec))
    if gain.mean > SURE_STANDARD_ERRORS * gain.se:
        yield (
            f"over the {spec.horizon:,} steps of a run another fixed arm pays {gain.mean:.4g} (95%: {gain.low:.4g} to "
            f"{gain.high:.4g}) more than the one with the highest mean {compared}. The regret here compares with "
            "that one, so that against the best fixed arm it is higher by this, at least."
        )
