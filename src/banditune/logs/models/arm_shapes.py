"""The shapes that arms' means may have around the centre of their campaign, and how likely each is.

Arms may be beta (normal for real rewards), or one of them is better or worse than the others, which are equal. Regrets and
gains depend on that, and few or short campaigns do not tell. So an evaluation is made for every shape that the logs do not
contradict. All shapes have the same variance, and without spread they are the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.logs.campaign_logs import sample_campaigns
from banditune.logs.models.hierarchical_beta import MAX_INFORMATIVE_CELLS
from banditune.logs.models.likelihood_search import find_peak
from banditune.logs.models.odd_arm_shapes import OddArmModel, make_odd_arm_model
from banditune.logs.models.signed_spread import ArmSpreadModel, SpreadEstimate
from banditune.logs.models.spread_factors import SPREAD_FACTORS, choose_campaign_factors, fit_factor_law

BETA_SHAPE, BETTER_SHAPE, WORSE_SHAPE = "around a centre", "one arm better", "one arm worse"
"""Names of the shapes."""


SHAPE_PRIOR = {BETA_SHAPE: 0.8, BETTER_SHAPE: 0.1, WORSE_SHAPE: 0.1}
"""The prior probability of each shape. It has an influence on means, not on intervals, which span all shapes."""


ONLY_CENTRE = {BETA_SHAPE: 1.0, BETTER_SHAPE: 0.0, WORSE_SHAPE: 0.0}
"""The weights in means if the logs cannot tell shapes apart."""


MIN_LIKELIHOOD_RATIO = 1 / 20
"""Logs contradict a shape whose likelihood is below this share of the highest.

With a likelihood that is not maximised over the spread, a right shape is contradicted in less than 1 in 20 logs.
"""


SPREAD_RANGE = 16.0
"""The spread of a shape is searched up to this factor below and above that of beta arms."""


class ArmShape(NamedTuple):
    """A shape with its spread, the law of its campaigns' spread factors, and its posterior probability."""

    name: str
    arms: ArmSpreadModel | OddArmModel
    spread: SpreadEstimate
    law: FloatArray
    log_likelihood: float
    weight: float

    def list_cell_parameters(self, campaign: IntArray, knots: FloatArray, rows: int) -> list[FloatArray]:
        """List tables of cell parameters (cells, 2): all knots in turn, at factors that are likely for each campaign.

        There are so many rows of odd arms, whose means are drawn. Others have as many as there are factors.
        """
        places = [choose_campaign_factors(self.arms, knot, self.law) for knot in knots.tolist()]
        if self.name == BETA_SHAPE:
            return _list_distributions(self.arms, campaign, knots, places)  # type: ignore[arg-type]
        rng = np.random.default_rng(20_222)
        every = np.arange(len(self.arms.slopes))
        tables = []
        for row in range(rows):
            for knot, columns in zip(knots.tolist(), places, strict=True):
                # Few rows are at all levels as well, because campaigns begin at different ones.
                factors = SPREAD_FACTORS[columns[every, (row + every) % columns.shape[1]]]
                tables.append(self.arms.draw_cell_parameters(rng, knot * factors))  # type: ignore[union-attr]
        return tables


def _list_distributions(
    arms: ArmSpreadModel, campaign: IntArray, knots: FloatArray, places: Sequence[IntArray]
) -> list[FloatArray]:
    """List the parameters of beta or normal cells: all knots in turn, at each of the factors."""
    tables, chosen = [], []
    for knot, columns in zip(knots.tolist(), places, strict=True):
        used, back = np.unique(columns, return_inverse=True)
        tables.append(np.stack([arms.compute_cell_parameters(knot * float(SPREAD_FACTORS[place])) for place in used]))
        chosen.append(back.reshape(columns.shape)[campaign])
    cells = np.arange(len(campaign))
    return [
        table[rows[:, row], cells]
        for row in range(chosen[0].shape[1])
        for table, rows in zip(tables, chosen, strict=True)
    ]


def fit_arm_shapes(arms: ArmSpreadModel, *, is_informative: bool = True) -> list[ArmShape]:
    """Fit all shapes, and return those that the logs do not contradict; all of them if means are not informative.

    If there are many campaigns, spreads and likelihoods come from a fixed random sample.
    """
    widths = make_odd_arm_model(arms, 1).groups.widths
    if widths.sum() > MAX_INFORMATIVE_CELLS:
        places = np.sort(sample_campaigns(widths, MAX_INFORMATIVE_CELLS, np.random.default_rng(20_223)))
        sample = arms.select_campaigns(places)
    else:
        sample = arms
    shapes = [_fit_shape(BETA_SHAPE, sample, arms.spread)._replace(arms=arms)]
    for name, sign in ((BETTER_SHAPE, 1), (WORSE_SHAPE, -1)):
        if name == WORSE_SHAPE and widths.max() == 2:
            continue  # of two arms, one is better where the other is worse
        odd = make_odd_arm_model(sample, sign)
        spread = arms.spread._replace(value=_fit_odd_spread(odd, arms.spread))
        shapes.append(_fit_shape(name, odd, spread)._replace(arms=make_odd_arm_model(arms, sign)))
    top = max(shape.log_likelihood for shape in shapes)
    if is_informative:
        shapes = [shape for shape in shapes if shape.log_likelihood - top >= math.log(MIN_LIKELIHOOD_RATIO)]
        weights = [SHAPE_PRIOR[shape.name] * math.exp(shape.log_likelihood - top) for shape in shapes]
    else:
        weights = [ONLY_CENTRE[shape.name] for shape in shapes]
    return [shape._replace(weight=weight / sum(weights)) for shape, weight in zip(shapes, weights, strict=True)]


def _fit_shape(name: str, arms: ArmSpreadModel | OddArmModel, spread: SpreadEstimate) -> ArmShape:
    fitted = fit_factor_law(arms, spread.value)
    return ArmShape(name, arms, spread, fitted.law, fitted.log_likelihood, 1.0)


def _fit_odd_spread(odd: OddArmModel, spread: SpreadEstimate) -> float:
    """Fit the spread of odd arms by likelihood. At and below 0 it is that of beta arms, as all have the same slope at 0."""
    if spread.value <= 0:
        return spread.value
    middle = math.log(spread.value)
    low, high = (middle + sign * math.log(SPREAD_RANGE) for sign in (-1, 1))
    high = min(high, math.log(spread.upper_limit))
    return math.exp(
        find_peak(lambda log: fit_factor_law(odd, math.exp(log)).log_likelihood, middle, 0.3, low, high, 0.03)
    )
