"""What a ledger holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from banditune.results.estimates import Estimate, RegretDistribution
from banditune.results.result_record import ResultRecord, make_data_frame, register_record


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class StoredMean(ResultRecord):
    """What a ledger knows about a row of parameters after `step` steps, on `fresh` instances or on those of searches.

    `noise` is the number of its noise, 0 where noise is shared. The `spread` names no single runs.
    """

    params: tuple[float, ...]
    noise: int
    fresh: bool
    step: int
    regret: Estimate
    spread: RegretDistribution

    def __repr__(self) -> str:
        return f"{self.params}: {self.regret!r}"


@register_record
@dataclass(frozen=True, repr=False, eq=False)
class StoreSummary(ResultRecord):
    """What a ledger holds of one setup, which is known by its `number` there, as `tallies`.

    Policy, problem and `versions` (of who played first) are words; `play` names the shortcut, or is "plain".
    """

    number: int
    policy: str
    problem: str
    horizon: int
    seed: int
    regret: str
    noise: str
    play: str
    device: str
    precision: str
    versions: str
    parameters: tuple[str, ...]
    tallies: tuple[StoredMean, ...]

    @property
    def steps(self) -> tuple[int, ...]:
        """The steps after which regret was counted."""
        return tuple(sorted({tally.step for tally in self.tallies}))

    def ended(self, *, fresh: bool) -> tuple[StoredMean, ...]:
        """The tallies after the last step, of fresh instances or of those of searches."""
        last = self.steps[-1]
        return tuple(tally for tally in self.tallies if tally.step == last and tally.fresh == fresh)

    def to_pandas(self) -> Any:
        """A row per tally."""
        columns = {name: [tally.params[place] for tally in self.tallies] for place, name in enumerate(self.parameters)}
        columns |= {name: [getattr(tally, name) for tally in self.tallies] for name in ("noise", "fresh", "step")}
        columns |= {name: [getattr(tally.regret, name) for tally in self.tallies] for name in ("runs", "mean", "se")}
        return make_data_frame(columns)
