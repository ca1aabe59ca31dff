"""Adds up rewards by campaign and arm. Memory grows with the number of arms of campaigns, not with that of decisions."""

from __future__ import annotations

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Setting
from banditune.logs.campaign_logs import Logs
from banditune.logs.io.column_roles import ColumnRoles
from banditune.logs.io.row_records import CheckedRows, EncodedNames, RowNumbering
from banditune.logs.residual_sample import RewardReservoir

MAX_CELLS = 5_000_000
"""The largest number of arms of campaigns. If there are more, a column probably contains numbers of decisions."""


class LogAccumulator:
    """Sums of every arm of every campaign."""

    def __init__(self, columns: ColumnRoles, numbering: RowNumbering) -> None:
        self.columns = columns
        self.numbering = numbering
        self.campaigns: dict[str, int] = {}
        self.arms: dict[str, int] = {}
        self.cells: dict[int, int] = {}
        self.pulls = np.zeros(0, np.int64)
        self.mean = np.zeros(0)
        self.squares = np.zeros(0)
        self.features = np.zeros((0, len(columns.features)))
        self.low, self.high, self.other_count = np.inf, -np.inf, 0
        self.sample = RewardReservoir()

    def add(self, rows: CheckedRows) -> None:
        """Add the rewards of rows."""
        if not len(rows.total):
            return
        campaign, arm = _number_known_names(rows.campaign, self.campaigns), _number_known_names(rows.arm, self.arms)
        keys, first, index = np.unique(campaign << 32 | arm, return_index=True, return_inverse=True)
        count = len(self.cells)
        cell = np.array([self.cells.setdefault(int(key), len(self.cells)) for key in keys])
        self._enlarge(len(self.cells))
        new = cell >= count
        self.features[cell[new]] = rows.features[first[new]]
        self._compare_features(rows, cell[index])
        if rows.pulls is None:
            self.sample.add(cell[index], rows.total)
            self._add_rewards(rows.total, cell, index)
        else:
            self._add_totals(rows.pulls, rows.total, cell, index)

    def _add_rewards(self, reward: FloatArray, cell: IntArray, index: IntArray) -> None:
        """Add rewards. Squares are combined by Chan's formula, which is accurate for large means, too."""
        self.low, self.high = min(self.low, float(reward.min())), max(self.high, float(reward.max()))
        self.other_count += int(((reward != 0) & (reward != 1)).sum())
        pulls = np.bincount(index)
        mean = np.bincount(index, reward) / pulls
        squares = np.bincount(index, (reward - mean[index]) ** 2)
        before, total_pulls = self.pulls[cell], self.pulls[cell] + pulls
        difference = mean - self.mean[cell]
        self.mean[cell] += difference * (pulls / total_pulls)
        self.squares[cell] += squares + difference**2 * (before * pulls / total_pulls)
        self.pulls[cell] = total_pulls

    def _add_totals(self, pulls: IntArray, successes: FloatArray, cell: IntArray, index: IntArray) -> None:
        before = self.mean[cell] * self.pulls[cell]
        total_pulls = self.pulls[cell] + np.bincount(index, pulls).astype(np.int64)
        share = (before + np.bincount(index, successes)) / np.maximum(total_pulls, 1)
        self.mean[cell], self.pulls[cell] = share, total_pulls
        self.squares[cell] = total_pulls * share * (1 - share)
        self.low, self.high = 0.0, 1.0

    def _enlarge(self, size: int) -> None:
        if size > MAX_CELLS:
            raise InvalidRequest(
                "logs must have {:,} arms of campaigns at most, but the columns {!r} and {!r} have more. If one of them "
                "contains numbers of decisions, name others with {} and {}.",
                *(MAX_CELLS, self.columns.campaign, self.columns.arm, Argument("campaign"), Argument("arm")),
                argument="campaign",
                code="too-large",
            )
        more = size - len(self.pulls)
        if more > 0:
            extra = max(more, len(self.pulls))
            self.pulls = np.concatenate([self.pulls, np.zeros(extra, np.int64)])
            self.mean, self.squares = (np.concatenate([old, np.zeros(extra)]) for old in (self.mean, self.squares))
            self.features = np.concatenate([self.features, np.zeros((extra, self.features.shape[1]))])

    def _compare_features(self, rows: CheckedRows, cell: IntArray) -> None:
        """Check that an arm has the same features throughout a campaign."""
        changed = np.argwhere(rows.features != self.features[cell])
        if len(changed):
            row, feature = map(int, changed[0])
            arm = rows.arm.names[int(rows.arm.codes[row])]
            location = f"{self.numbering.noun} {int(rows.lines[row])}{self.numbering.origin}"
            raise InvalidRequest(
                "an arm's features must be constant within a campaign, but {!r} of arm {!r} changes from {:g} to "
                "{:g} in {}. Features that change per decision are contexts, which these problems do not have: leave "
                "them out with {}, or make every context a separate campaign.",
                *(
                    self.columns.features[feature],
                    arm,
                    self.features[cell[row], feature],
                    rows.features[row, feature],
                    location,
                    Setting("features", ""),
                ),
                argument="features",
                code="bad-data",
            )

    def make_logs(self) -> Logs:
        """Make the logs of all rows, without arms that were never pulled."""
        keys = np.array(list(self.cells), np.int64)
        order = np.argsort(keys, kind="stable")
        order = order[self.pulls[order] > 0]
        if not len(order):
            raise InvalidRequest(
                "logs must contain a decision, but there is none; check the file and its columns.",
                argument="source",
                code="missing",
            )
        campaigns, campaign = np.unique(keys[order] >> 32, return_inverse=True)
        arms, arm = np.unique(keys[order] & 0xFFFFFFFF, return_inverse=True)
        names, arm_names = list(self.campaigns), list(self.arms)
        unit = self.low >= 0 and self.high <= 1
        pulls, mean = self.pulls[order], self.mean[order]
        # Sums of 0 and 1 are integers, but the stored mean is rounded.
        total = mean * pulls if self.other_count else np.rint(mean * pulls)
        index = np.zeros(len(keys), np.int64)
        index[order] = np.arange(len(order))
        return Logs(
            tuple(names[number] for number in campaigns),
            tuple(arm_names[number] for number in arms),
            campaign.astype(np.int64),
            arm.astype(np.int64),
            pulls,
            total,
            self.squares[order],
            ("unit" if self.other_count else "binary") if unit else "real",
            self.features[order] if self.columns.features else None,
            self.columns.features,
            columns=str(self.columns),
            residuals=None if self.columns.reward is None else self.sample.compute_residuals(index, pulls, mean),
        )


def _number_known_names(names: EncodedNames, all_names: dict[str, int]) -> IntArray:
    """Number names among all names so far; new ones get the next numbers."""
    numbers = np.array([all_names.setdefault(name, len(all_names)) for name in names.names], np.int64)
    return numbers[names.codes]
