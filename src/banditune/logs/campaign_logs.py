"""What is known of past campaigns: a cell for each arm of each campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.checks import convert_to_array
from banditune.core.errors import InvalidRequest
from banditune.logs.residual_sample import ResidualSample


@dataclass(frozen=True, eq=False)
class Logs:
    """Past campaigns, as sums: what rewards arms paid is known by `pulls`, `total` and `squares` of every cell.

    A cell is an arm in a campaign; cells stand in order of campaign, then arm, numbers into `campaigns` and `arms`.
    `squares` is the sum of squared deviations from the cell's mean. `features`, where arms have some, has a row per cell.
    `rewards` says what rewards were: "binary" for 0 and 1, "unit" for [0, 1], or "real".
    """

    campaigns: tuple[str, ...]
    arms: tuple[str, ...]
    campaign: IntArray
    arm: IntArray
    pulls: IntArray
    total: FloatArray
    squares: FloatArray
    rewards: str
    features: FloatArray | None = None
    feature_names: tuple[str, ...] = ()
    told: tuple[str, ...] = ()
    """Which columns were read, then what to know about the logs, in sentences."""
    columns: str = ""
    """Which column of a table was which part."""
    intercept: bool = False
    """Whether the first feature is the constant 1 that a fit added."""
    residuals: ResidualSample | None = None
    """A sample of what rewards were off from the means of their cells; None where only sums were logged."""
    left_out: tuple[str, ...] = ()
    """Sentences on what was left out in reading: whatever is made of the logs, or of a part of them, must say so too."""

    @property
    def mean(self) -> FloatArray:
        """Mean reward of every cell."""
        return self.total / self.pulls

    @property
    def lengths(self) -> IntArray:
        """Decisions in each campaign."""
        return np.bincount(self.campaign, self.pulls, len(self.campaigns)).astype(np.int64)

    @property
    def widths(self) -> IntArray:
        """Arms in each campaign."""
        return np.bincount(self.campaign, minlength=len(self.campaigns)).astype(np.int64)

    @property
    def same_arms(self) -> bool:
        """Whether every campaign had every arm."""
        return len(self.pulls) == len(self.campaigns) * len(self.arms)

    def of(self, campaigns: Sequence[int] | IntArray) -> Logs:
        """The logs of some campaigns, in order of their numbers."""
        chosen = np.unique(np.asarray(campaigns, np.int64))
        if not len(chosen):
            raise InvalidRequest("logs must hold a campaign, but none was asked for.")
        kept = np.isin(self.campaign, chosen)
        arms, arm = np.unique(self.arm[kept], return_inverse=True)
        return Logs(
            tuple(self.campaigns[number] for number in chosen),
            tuple(self.arms[number] for number in arms),
            np.searchsorted(chosen, self.campaign[kept]),
            arm.astype(np.int64),
            self.pulls[kept],
            self.total[kept],
            self.squares[kept],
            self.rewards,
            None if self.features is None else self.features[kept],
            self.feature_names,
            columns=self.columns,
            intercept=self.intercept,
            residuals=self._residuals_of(kept),
            left_out=self.left_out,
        )

    def _residuals_of(self, kept: Any) -> ResidualSample | None:
        """The residuals of some cells, which are numbered anew."""
        if self.residuals is None:
            return None
        mine = kept[self.residuals.cell]
        return ResidualSample((np.cumsum(kept) - 1)[self.residuals.cell[mine]], self.residuals.value[mine])

    @property
    def remarks(self) -> tuple[str, ...]:
        """What to know about them: all that is told after the columns."""
        return self.told[1:]

    def saying(self, told: Sequence[str]) -> Logs:
        """The same logs with these sentences."""
        return replace(self, told=tuple(told))

    def __repr__(self) -> str:
        campaigns, arms = len(self.campaigns), len(self.arms)
        return (
            f"{int(self.pulls.sum()):,} decisions in {campaigns:,} campaign{'s' * (campaigns != 1)} with "
            f"{arms:,} arm{'s' * (arms != 1)}, {self.rewards} rewards"
        )


INTERCEPT = "intercept"


def add_intercept(logs: Logs) -> Logs:
    """The logs with a first feature that is 1 for every arm; as they are where a sum of features is constant."""
    if logs.features is None or _spans_constant(logs.features):
        return logs
    names = logs.feature_names or tuple(str(place) for place in range(logs.features.shape[1]))
    features = np.column_stack([np.ones(len(logs.features)), logs.features])
    return replace(logs, features=features, feature_names=(INTERCEPT, *names), intercept=True)


def _spans_constant(features: FloatArray) -> bool:
    """Whether a constant other than 0 is a sum of multiples of the features."""
    scaled = features / np.maximum(np.sqrt((features**2).mean(axis=0)), 1e-300)
    ones = np.ones(len(features))
    left = ones - scaled @ np.linalg.lstsq(scaled, ones, rcond=1e-10)[0]
    return float((left**2).mean()) < 1e-12


def format_arm_list(names: Sequence[str]) -> str:
    """How many arms, and which, in a few words: 12 arms (a, b, c, d, e ...)."""
    some = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
    return f"{len(names)} arm{'s' * (len(names) != 1)} ({some})"


def sample_campaigns(widths: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    """Campaigns chosen at random that have fewer than `most` cells together, given how many each has; one at least."""
    order = rng.permutation(len(widths))
    return order[: max(int(np.searchsorted(np.cumsum(widths[order]), most)), 1)]


def make_logs(
    campaign: Sequence[Any],
    arm: Sequence[Any],
    pulls: Any,
    total: Any,
    squares: Any = None,
    *,
    rewards: str = "binary",
    features: Any = None,
    feature_names: Sequence[str] = (),
) -> Logs:
    """Logs from a line for each arm of each campaign; `squares` follow from the others where rewards are 0 or 1."""
    if rewards not in ("binary", "unit", "real"):
        raise InvalidRequest(f"`rewards` must be binary, unit or real, but got {rewards!r}.")
    pulls, total = np.atleast_1d(convert_to_array(pulls)), np.atleast_1d(convert_to_array(total))
    known = None if squares is None else np.atleast_1d(convert_to_array(squares))
    columns = [campaign, arm, pulls, total, *(() if known is None else (known,))]
    if len({len(column) for column in columns}) > 1 or not len(pulls):
        raise InvalidRequest(
            f"columns must be of the same length, but got lengths {[len(column) for column in columns]}."
        )
    counted = ((pulls >= 1) & (pulls < 2**53)).all() and (pulls % 1 == 0).all()
    if not (counted and np.isfinite(total).all()):
        raise InvalidRequest(
            "every row must have a whole number of pulls, 1 or more, below 2^53, and a finite total; leave others out."
        )
    if rewards != "real" and ((total < 0) | (total > pulls)).any():
        raise InvalidRequest(f"`0 <= total <= pulls` must hold for {rewards} rewards, but it does not in every row.")
    pulls = pulls.astype(np.int64)
    campaigns, first = _number_names(campaign)
    arms, second = _number_names(arm)
    if len(set(zip(first.tolist(), second.tolist(), strict=True))) < len(first):
        raise InvalidRequest("every arm of a campaign must have one row, but some have several; add them up.")
    order = np.lexsort((second, first))
    if known is None:
        known = total - total**2 / pulls if rewards == "binary" else np.full(len(pulls), np.nan)
    elif not (np.isfinite(known) & (known >= -1e-9 * total**2)).all():
        raise InvalidRequest(
            "`squares` must be finite numbers >= 0, sums of squared deviations from the mean of a row."
        )
    return Logs(
        campaigns,
        arms,
        first[order],
        second[order],
        pulls[order],
        total[order],
        np.maximum(known, 0.0)[order],
        rewards,
        None if features is None else _check_features(features, len(pulls), feature_names)[order],
        tuple(feature_names),
    )


def _check_features(features: Any, rows: int, names: Sequence[str]) -> FloatArray:
    """A row of finite numbers for each row of the logs, with as many names as columns, or none."""
    table = convert_to_array(features)
    if table.ndim != 2 or len(table) != rows or not table.shape[1] or not np.isfinite(table).all():
        raise InvalidRequest(
            f"`features` must be finite numbers, a row for each of the {rows} rows of the logs, but their shape is "
            f"{np.shape(table)}."
        )
    if names and len(names) != table.shape[1]:
        raise InvalidRequest(f"`feature_names` must be {table.shape[1]} names, one per feature, but got {list(names)}.")
    return table


def _number_names(words: Sequence[Any]) -> tuple[tuple[str, ...], IntArray]:
    """Different words in order of their first appearance, and the number of each."""
    known: dict[str, int] = {}
    numbers = np.array([known.setdefault(str(word), len(known)) for word in words], np.int64)
    return tuple(known), numbers
