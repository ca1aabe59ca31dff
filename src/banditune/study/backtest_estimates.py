"""Estimates of a backtest with intervals, interpolated between the spreads at which held-out campaigns are simulated.

All values depend on the spread of arms within campaigns. Its estimate may be 0 or less. Without spread, all regrets and
differences are 0.

- The estimate is the value at the estimated spread. Differences between policies grow with the spread from 0 on. Below 0
  they continue with the opposite sign, so that they are 0 on average if arms are equal.
- The interval comes from draws of the spread. Two errors are added to each draw: that of a mean over few campaigns, and the
  uncertainty about these campaigns, given their data. The first may be correlated with the draw.
- Arms may have several shapes. The estimate is then a mean over shapes, and the interval spans theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.logs.models.arm_shapes import ArmShape
from banditune.logs.models.signed_spread import SpreadEstimate
from banditune.results.estimates import Estimate
from banditune.results.log_results import ArmShapeEstimates

SPREAD_KNOTS = 4
"""Number of spreads at which each campaign is simulated."""


SPREAD_DRAWS = 20_000
"""Draws of the spread behind an interval."""


KNOT_TAIL = 0.005
"""The probability of spreads below the lowest simulated one, and of those above the highest."""


class PairRuns(NamedTuple):
    """Runs of the tuned policy and the baseline: regrets and rewards of a decision (2, runs), and means (runs, arms)."""

    regrets: FloatArray
    rewards: FloatArray
    means: FloatArray


class BacktestEstimates(NamedTuple):
    """Regrets of a campaign, rewards of a decision, and the difference to the logged rewards."""

    regret: Estimate
    textbook_regret: Estimate
    gain: Estimate
    reward: Estimate
    textbook_reward: Estimate
    reward_difference: Estimate
    shapes: tuple[ArmShapeEstimates, ...] = ()


class BacktestInterpolator:
    """Interpolates values of campaigns from several spreads to the estimated one.

    `slopes` are the derivatives of the campaigns' log likelihoods in the spread, one for each campaign or group.
    """

    def __init__(self, spread: SpreadEstimate, slopes: FloatArray) -> None:
        self.spread, self.slopes = spread, slopes - slopes.mean()
        rng = np.random.default_rng(20_214)
        self.draws = spread.draw(rng, SPREAD_DRAWS)
        # Normal scores in the order of the draws.
        self.scores = np.sort(rng.standard_normal(SPREAD_DRAWS))[np.argsort(np.argsort(self.draws))]
        self.around = rng.standard_t(max(len(slopes) - 1, 1), SPREAD_DRAWS)
        self.normal = rng.standard_normal(SPREAD_DRAWS)
        self.knots = _place_spread_knots(spread, self.draws)

    def estimate_all(
        self, values: FloatArray, unknown: FloatArray, advantages: FloatArray, logged_rewards: FloatArray
    ) -> BacktestEstimates:
        """Estimate means over campaigns of values (campaigns, kinds, knots); the kinds are those of `_stack_run_values`.

        `unknown` (kinds, knots) are the variances of the mean of these campaigns, given their data. `paid` are the logged
        rewards, one for each campaign. They exceed the reward that others are compared with by `ahead`.
        """
        kinds = list(zip(values.swapaxes(0, 1), unknown, strict=True))
        regret, textbook, gain, reward, textbook_reward = kinds
        return BacktestEstimates(
            regret=self.estimate_regret(*regret),
            textbook_regret=self.estimate_regret(*textbook),
            gain=self.estimate_difference(*gain, np.zeros(len(values))),
            reward=self.estimate_difference(*reward, logged_rewards - advantages),
            textbook_reward=self.estimate_difference(*textbook_reward, logged_rewards - advantages),
            reward_difference=self.estimate_difference(*reward, -advantages),
        )

    def estimate_regret(self, values: FloatArray, unknown: FloatArray) -> Estimate:
        """Estimate the mean of regrets (campaigns, knots), piecewise linear in the root of the spread, and 0 at 0."""
        knots = np.sqrt(np.append(0.0, self.knots))

        def interpolate(spread: FloatArray, curve: FloatArray) -> FloatArray:
            return np.interp(np.sqrt(np.maximum(spread, 0.0)), knots, curve)

        estimate = self._estimate_mean(np.insert(values, 0, 0.0, axis=1), np.insert(unknown, 0, 0.0), interpolate)
        return Estimate(
            mean=estimate.mean, se=estimate.se, low=max(estimate.low, 0.0), high=estimate.high, runs=estimate.runs
        )

    def estimate_difference(self, values: FloatArray, unknown: FloatArray, base: FloatArray) -> Estimate:
        """Estimate the mean of a base plus differences (campaigns, knots), which are odd in the spread."""
        knots = np.concatenate([-self.knots[::-1], [0.0], self.knots])
        values = base[:, None] + np.concatenate([-values[:, ::-1], np.zeros((len(values), 1)), values], axis=1)
        unknown = np.concatenate([unknown[::-1], [0.0], unknown])
        return self._estimate_mean(values, unknown, lambda spread, curve: np.interp(spread, knots, curve))

    def _estimate_mean(
        self, values: FloatArray, unknown: FloatArray, interpolate: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> Estimate:
        """Estimate the mean of curves, one for each campaign; `at` evaluates a curve at spreads."""
        count = len(values)
        spread = np.array([self.spread.value])
        middle, error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(count)
        values_at_spread = np.array([interpolate(spread, curve)[0] for curve in values])
        together = max(_correlate_centred(values_at_spread - values_at_spread.mean(), self.slopes), 0.0)
        centres = interpolate(self.draws, middle)
        away = together * self.scores + math.sqrt(1 - together**2) * self.around
        unknown_sd = np.sqrt(unknown)
        draws = centres + interpolate(self.draws, error) * away + interpolate(self.draws, unknown_sd) * self.normal
        low, high = np.quantile(draws, (0.025, 0.975))
        own_error, centre_sd = float(interpolate(spread, error)[0]), float(centres.std())
        se = math.sqrt(
            own_error**2
            + centre_sd**2
            + 2 * together * own_error * centre_sd
            + float(interpolate(spread, unknown_sd)[0]) ** 2
        )
        mean = float(interpolate(spread, middle)[0])
        return Estimate(mean=mean, se=se, low=min(float(low), mean), high=max(float(high), mean), runs=count)


def combine_shapes(shapes: Sequence[ArmShape], estimates: Sequence[BacktestEstimates]) -> BacktestEstimates:
    """Combine the estimates of shapes: means by the probability of each shape, intervals that span those of all."""
    weights = np.array([shape.weight for shape in shapes])

    def combine(kind: str) -> Estimate:
        parts = [getattr(estimate, kind) for estimate in estimates]
        means, errors = np.array([part.mean for part in parts]), np.array([part.se for part in parts])
        mean = float(weights @ means)
        return Estimate(
            mean=mean,
            se=math.sqrt(float(weights @ (errors**2 + (means - mean) ** 2))),
            low=min(part.low for part in parts),
            high=max(part.high for part in parts),
            runs=parts[0].runs,
        )

    rows = tuple(
        ArmShapeEstimates(
            shape=shape.name,
            weight=shape.weight,
            regret=estimate.regret,
            textbook_regret=estimate.textbook_regret,
            gain=estimate.gain,
            reward_difference=estimate.reward_difference,
        )
        for shape, estimate in zip(shapes, estimates, strict=True)
    )
    return BacktestEstimates(**{kind: combine(kind) for kind in BacktestEstimates._fields[:-1]}, shapes=rows)


def _correlate_centred(first: FloatArray, second: FloatArray) -> float:
    """Compute the correlation of numbers with mean 0; 0 if one of both does not vary."""
    scale = math.sqrt(float(first @ first) * float(second @ second))
    return min(float(first @ second) / scale, 1.0) if scale > 0 else 0.0


def _place_spread_knots(spread: SpreadEstimate, draws: FloatArray) -> FloatArray:
    """Choose the spreads to simulate: evenly spaced roots over the likely spreads, with the estimate among them."""
    top = math.sqrt(float(np.quantile(np.abs(draws), 1 - KNOT_TAIL)))
    bottom = max(math.sqrt(max(float(np.quantile(draws, KNOT_TAIL)), 0.0)), top / SPREAD_KNOTS)
    middle = math.sqrt(max(spread.value, 0.0))
    if bottom < middle < top:
        return np.array([bottom, middle, (middle + top) / 2, top]) ** 2
    return np.linspace(bottom, top, SPREAD_KNOTS) ** 2
