"""Estimates of a backtest with intervals, interpolated between the spreads at which held-out campaigns were played.

Everything rests on the spread of arms within campaigns, whose estimate may be 0 or less. Without spread, all regrets and
differences are 0.

- The estimate is the value at the estimated spread. Differences between policies grow with the spread from 0 on, and
  continue below 0 with the other sign: errors of the spread cancel, and where arms are equal, differences are 0 on average.
- The interval comes from draws of the spread. Two errors are added to each: that of a mean over few campaigns, and what
  their data leave open about these campaigns. The first may be correlated with the draw."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.models.signed_spread import SpreadEstimate
from banditune.results.estimates import Estimate

SPREAD_KNOTS = 4
"""Each campaign is played at so many spreads."""


SPREAD_DRAWS = 20_000
"""Draws of the spread behind an interval."""


KNOT_TAIL = 0.005
"""The spreads that are played leave out as much on either side."""


class PairRuns(NamedTuple):
    """Runs of the tuned policy and the baseline: regrets and rewards of a decision (2, runs), and means (runs, arms)."""

    regrets: FloatArray
    rewards: FloatArray
    means: FloatArray


class BacktestEstimates(NamedTuple):
    """What a policy is worth: regrets of a campaign, rewards of a decision, and the difference to what the logs paid."""

    regret: Estimate
    theory: Estimate
    gain: Estimate
    reward: Estimate
    theory_reward: Estimate
    difference: Estimate


class BacktestInterpolator:
    """Values of campaigns at several spreads, and what they are at the spread that was estimated.

    `slopes` are those of the campaigns' log likelihoods in the spread, for as many campaigns, or groups of them, as
    there are values.
    """

    def __init__(self, spread: SpreadEstimate, slopes: FloatArray) -> None:
        self.spread, self.slopes = spread, slopes - slopes.mean()
        rng = np.random.default_rng(20_214)
        self.draws = spread.draws(rng, SPREAD_DRAWS)
        # Normal numbers in the order of the draws.
        self.scores = np.sort(rng.standard_normal(SPREAD_DRAWS))[np.argsort(np.argsort(self.draws))]
        self.around = rng.standard_t(max(len(slopes) - 1, 1), SPREAD_DRAWS)
        self.normal = rng.standard_normal(SPREAD_DRAWS)
        self.knots = _place_spread_knots(spread, self.draws)

    def verdict(
        self, values: FloatArray, unknown: FloatArray, ahead: FloatArray, paid: FloatArray
    ) -> BacktestEstimates:
        """Means over campaigns of values (campaigns, kinds, knots), whose kinds are those of `_stack_run_values`.

        The data leave the mean of these campaigns open with the variances `unknown` (kinds, knots). What the logs paid, a
        number for each campaign, was by `ahead` more than what rewards are compared with.
        """
        kinds = list(zip(values.swapaxes(0, 1), unknown, strict=True))
        regret, theory, gain, reward, theory_reward = kinds
        return BacktestEstimates(
            regret=self.regret(*regret),
            theory=self.regret(*theory),
            gain=self.difference(*gain, np.zeros(len(values))),
            reward=self.difference(*reward, paid - ahead),
            theory_reward=self.difference(*theory_reward, paid - ahead),
            difference=self.difference(*reward, -ahead),
        )

    def regret(self, values: FloatArray, unknown: FloatArray) -> Estimate:
        """The mean over campaigns of regrets (campaigns, knots), which grow with the root of the spread and end at 0."""
        knots = np.sqrt(np.append(0.0, self.knots))

        def at(spread: FloatArray, curve: FloatArray) -> FloatArray:
            return np.interp(np.sqrt(np.maximum(spread, 0.0)), knots, curve)

        found = self._mean(np.insert(values, 0, 0.0, axis=1), np.insert(unknown, 0, 0.0), at)
        return Estimate(found.mean, found.se, max(found.low, 0.0), found.high, found.runs)

    def difference(self, values: FloatArray, unknown: FloatArray, base: FloatArray) -> Estimate:
        """The mean over campaigns of a base plus differences (campaigns, knots), which grow with the spread."""
        knots = np.concatenate([-self.knots[::-1], [0.0], self.knots])
        values = base[:, None] + np.concatenate([-values[:, ::-1], np.zeros((len(values), 1)), values], axis=1)
        unknown = np.concatenate([unknown[::-1], [0.0], unknown])
        return self._mean(values, unknown, lambda spread, curve: np.interp(spread, knots, curve))

    def _mean(
        self, values: FloatArray, unknown: FloatArray, at: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> Estimate:
        """The mean over campaigns of values, a curve for each, `at` the spread and at what it may be."""
        count = len(values)
        here = np.array([self.spread.value])
        middle, error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(count)
        each = np.array([at(here, curve)[0] for curve in values])
        together = max(_correlate_centred(each - each.mean(), self.slopes), 0.0)
        centres = at(self.draws, middle)
        away = together * self.scores + math.sqrt(1 - together**2) * self.around
        left = np.sqrt(unknown)
        draws = centres + at(self.draws, error) * away + at(self.draws, left) * self.normal
        low, high = np.quantile(draws, (0.025, 0.975))
        own, other = float(at(here, error)[0]), float(centres.std())
        se = math.sqrt(own**2 + other**2 + 2 * together * own * other + float(at(here, left)[0]) ** 2)
        mean = float(at(here, middle)[0])
        return Estimate(mean, se, min(float(low), mean), max(float(high), mean), count)


def _correlate_centred(one: FloatArray, other: FloatArray) -> float:
    """The correlation of numbers with the mean 0; 0 where some do not vary."""
    scale = math.sqrt(float(one @ one) * float(other @ other))
    return min(float(one @ other) / scale, 1.0) if scale > 0 else 0.0


def _place_spread_knots(spread: SpreadEstimate, draws: FloatArray) -> FloatArray:
    """The spreads at which campaigns are played, evenly in their root: all that the spread may be, and the estimate."""
    top = math.sqrt(float(np.quantile(np.abs(draws), 1 - KNOT_TAIL)))
    bottom = max(math.sqrt(max(float(np.quantile(draws, KNOT_TAIL)), 0.0)), top / SPREAD_KNOTS)
    middle = math.sqrt(max(spread.value, 0.0))
    if bottom < middle < top:
        return np.array([bottom, middle, (middle + top) / 2, top]) ** 2
    return np.linspace(bottom, top, SPREAD_KNOTS) ** 2
