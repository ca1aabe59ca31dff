"""The record of past campaigns, with a cell for each arm of each campaign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.checks import check_reward_kind, convert_to_array
from banditune.core.errors import InvalidRequest
from banditune.core.request_errors import make_argument_error
from banditune.logs.residual_sample import ResidualSample


@dataclass(frozen=True, eq=False)
class Logs:
    """Past campaigns, as the pulls and rewards of each arm in each campaign.

    A cell is an arm in a campaign. Cells are sorted by campaign, then by arm. `read_logs` and `make_logs` make logs.

    Parameters
    ----------
    campaigns : tuple of str
        The names of the campaigns.
    arms : tuple of str
        The names of the arms.
    campaign : array of int
        For each cell, the position of its campaign in `campaigns`.
    arm : array of int
        For each cell, the position of its arm in `arms`.
    pulls : array of int
        For each cell, the number of pulls.
    total : array of float
        For each cell, the sum of its rewards.
    squares : array of float
        For each cell, the sum of squared deviations of its rewards from their mean; NaN if unknown.
    rewards : {"binary", "unit", "real"}
        The kind of rewards: 0 and 1, numbers in [0, 1], or any numbers.
    features : array of float, optional
        One row of features per cell, if arms have features.
    feature_names : tuple of str
        The names of the features.
    messages : tuple of str
        Sentences: the columns that were read, then warnings about the logs.
    columns : str
        The columns of the table and their roles.
    intercept : bool
        Whether the first feature is the constant 1 that a fit added.
    residuals : ResidualSample, optional
        A sample of deviations of rewards from the mean of their cell; None if only sums were logged.
    omissions : tuple of str
        Sentences on rows that were left out. Fits and backtests pass them on.
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
    messages: tuple[str, ...] = ()
    columns: str = ""
    intercept: bool = False
    residuals: ResidualSample | None = None
    omissions: tuple[str, ...] = ()

    @property
    def mean(self) -> FloatArray:
        """The mean reward of every cell."""
        return self.total / self.pulls

    @property
    def decision_counts(self) -> IntArray:
        """The number of decisions in each campaign."""
        return np.bincount(self.campaign, self.pulls, len(self.campaigns)).astype(np.int64)

    @property
    def arm_counts(self) -> IntArray:
        """The number of arms in each campaign."""
        return np.bincount(self.campaign, minlength=len(self.campaigns)).astype(np.int64)

    @property
    def same_arms(self) -> bool:
        """Whether every campaign had every arm."""
        return len(self.pulls) == len(self.campaigns) * len(self.arms)

    def select_campaigns(self, campaigns: Sequence[int] | IntArray) -> Logs:
        """Select some of the campaigns.

        Parameters
        ----------
        campaigns : sequence of int
            Their positions in `campaigns`.

        Returns
        -------
        Logs
            The logs of these campaigns, in order of their positions.

        Raises
        ------
        InvalidRequest
            If there is none.
        """
        numbers = np.unique(np.asarray(campaigns, np.int64))
        if not len(numbers):
            raise InvalidRequest("logs must contain a campaign, but none was selected.", code="missing")
        mask = np.isin(self.campaign, numbers)
        arms, arm = np.unique(self.arm[mask], return_inverse=True)
        return Logs(
            tuple(self.campaigns[number] for number in numbers),
            tuple(self.arms[number] for number in arms),
            np.searchsorted(numbers, self.campaign[mask]),
            arm.astype(np.int64),
            self.pulls[mask],
            self.total[mask],
            self.squares[mask],
            self.rewards,
            None if self.features is None else self.features[mask],
            self.feature_names,
            columns=self.columns,
            intercept=self.intercept,
            residuals=self._select_residuals(mask),
            omissions=self.omissions,
        )

    def _select_residuals(self, mask: Any) -> ResidualSample | None:
        """Select the residuals of some cells, and renumber the cells."""
        if self.residuals is None:
            return None
        is_kept = mask[self.residuals.cell]
        return ResidualSample((np.cumsum(mask) - 1)[self.residuals.cell[is_kept]], self.residuals.value[is_kept])

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings about the logs: all messages after the first."""
        return self.messages[1:]

    def replace_messages(self, messages: Sequence[str]) -> Logs:
        """Return the same logs with other messages.

        Parameters
        ----------
        messages : sequence of str
            The sentences.
        """
        return replace(self, messages=tuple(messages))

    def __repr__(self) -> str:
        campaigns, arms = len(self.campaigns), len(self.arms)
        return (
            f"{int(self.pulls.sum()):,} decisions in {campaigns:,} campaign{'s' * (campaigns != 1)} with "
            f"{arms:,} arm{'s' * (arms != 1)}, {self.rewards} rewards"
        )


INTERCEPT = "intercept"


def add_intercept(logs: Logs) -> Logs:
    """Add a first feature that is 1 for every arm, unless a linear combination of features is constant."""
    if logs.features is None or _spans_constant(logs.features):
        return logs
    names = logs.feature_names or tuple(str(number) for number in range(logs.features.shape[1]))
    features = np.column_stack([np.ones(len(logs.features)), logs.features])
    return replace(logs, features=features, feature_names=(INTERCEPT, *names), intercept=True)


def _spans_constant(features: FloatArray) -> bool:
    """Return whether a constant other than 0 is a linear combination of the features."""
    scaled = features / np.maximum(np.sqrt((features**2).mean(axis=0)), 1e-300)
    ones = np.ones(len(features))
    residual = ones - scaled @ np.linalg.lstsq(scaled, ones, rcond=1e-10)[0]
    return float((residual**2).mean()) < 1e-12


def format_arm_list(names: Sequence[str]) -> str:
    """Format the number of arms and the first names: 12 arms (a, b, c, d, e ...)."""
    listed = ", ".join(names[:5]) + (" ..." if len(names) > 5 else "")
    return f"{len(names)} arm{'s' * (len(names) != 1)} ({listed})"


def sample_campaigns(widths: IntArray, most: int, rng: np.random.Generator) -> IntArray:
    """Sample campaigns that have fewer than `most` cells together, one at least. `widths` are their cells."""
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
    """Make logs from columns, with one row per arm of a campaign.

    Parameters
    ----------
    campaign : sequence
        The name of the campaign of each row.
    arm : sequence
        The name of the arm of each row. An arm has at most one row in a campaign.
    pulls : array of int
        The number of pulls of each row, 1 or more.
    total : array of float
        The sum of the rewards of each row.
    squares : array of float, optional
        The sum of squared deviations of the rewards of each row from their mean. `fit` needs it unless rewards are 0
        and 1.
    rewards : {"binary", "unit", "real"}
        The kind of rewards: 0 and 1, numbers in [0, 1], or any numbers.
    features : array of float, optional
        One row of features per row.
    feature_names : sequence of str
        The names of the features.

    Returns
    -------
    Logs
        The logs, for `fit` and `backtest`.

    Raises
    ------
    InvalidRequest
        If columns do not fit together, or their numbers are impossible.

    Examples
    --------
    >>> import banditune as bt
    >>> bt.make_logs(["may", "may", "june", "june"], ["red", "blue"] * 2, [10, 20, 30, 40], [1, 5, 6, 20])
    100 decisions in 2 campaigns with 2 arms, binary rewards
    """
    check_reward_kind(rewards)
    pulls, total = np.atleast_1d(convert_to_array(pulls)), np.atleast_1d(convert_to_array(total))
    square_sums = None if squares is None else np.atleast_1d(convert_to_array(squares))
    columns = [campaign, arm, pulls, total, *(() if square_sums is None else (square_sums,))]
    if len({len(column) for column in columns}) > 1 or not len(pulls):
        raise InvalidRequest(
            f"columns must be of the same length, but got lengths {[len(column) for column in columns]}.",
            code="wrong-shape",
        )
    _check_sums(pulls, total, rewards)
    pulls = pulls.astype(np.int64)
    campaigns, first = _number_names(campaign)
    arms, second = _number_names(arm)
    if len(set(zip(first.tolist(), second.tolist(), strict=True))) < len(first):
        raise InvalidRequest(
            "every arm of a campaign must have one row, but some have several; add up their rows.",
            argument="arm",
            code="bad-data",
        )
    order = np.lexsort((second, first))
    if square_sums is None:
        square_sums = total - total**2 / pulls if rewards == "binary" else np.full(len(pulls), np.nan)
    elif not (np.isfinite(square_sums) & (square_sums >= -1e-9 * total**2)).all():
        raise make_argument_error(
            "squares", "bad-data", "must be finite numbers >= 0, sums of squared deviations from the mean of a row."
        )
    return Logs(
        campaigns,
        arms,
        first[order],
        second[order],
        pulls[order],
        total[order],
        np.maximum(square_sums, 0.0)[order],
        rewards,
        None if features is None else _check_features(features, len(pulls), feature_names)[order],
        tuple(feature_names),
    )


def _check_sums(pulls: FloatArray, total: FloatArray, rewards: str) -> None:
    """Check that pulls are counts, and that the sums of rewards are possible."""
    counted = ((pulls >= 1) & (pulls < 2**53)).all() and (pulls % 1 == 0).all()
    if not (counted and np.isfinite(total).all()):
        raise InvalidRequest(
            "every row must have a whole number of pulls, 1 or more, below 2^53, and a finite total; leave out other rows.",
            argument="pulls",
            code="bad-data",
        )
    if rewards != "real" and ((total < 0) | (total > pulls)).any():
        raise InvalidRequest(
            f"`0 <= total <= pulls` must hold for {rewards} rewards, but it does not in every row.",
            argument="total",
            code="out-of-range",
        )


def _check_features(features: Any, rows: int, names: Sequence[str]) -> FloatArray:
    """Check that features are finite, with a row for each row of the logs, and with as many names as columns or none."""
    table = convert_to_array(features)
    if table.ndim != 2 or len(table) != rows or not table.shape[1] or not np.isfinite(table).all():
        raise make_argument_error(
            "features",
            "wrong-shape",
            f"must be finite numbers, a row for each of the {rows} rows of the logs, but their shape is "
            f"{np.shape(table)}.",
        )
    if names and len(names) != table.shape[1]:
        raise make_argument_error(
            "feature_names", "wrong-shape", f"must be {table.shape[1]} names, one per feature, but got {list(names)}."
        )
    return table


def _number_names(names: Sequence[Any]) -> tuple[tuple[str, ...], IntArray]:
    """Number names in order of their first appearance."""
    numbers: dict[str, int] = {}
    number = np.array([numbers.setdefault(str(name), len(numbers)) for name in names], np.int64)
    return tuple(numbers), number
