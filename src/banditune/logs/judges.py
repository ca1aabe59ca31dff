"""Campaigns that were left out, as they judge a policy: what their data say about arms, and what all of them say together.

Arms of a campaign have a prior that is fitted to all these campaigns. So what is reported is no mean of independent
numbers: every campaign also moves the prior, and by it what the others say. To first order a campaign counts with

    its own value + slope of the mean in the prior's numbers * campaigns * its own push on these numbers,

and the spread of that over campaigns tells how sure the mean is (the infinitesimal jackknife, with the pushes of an
M-estimate). Slopes need no new runs: the slope of a posterior mean is a covariance with the slope of the log density. Only
the noise of real rewards, which also moves what is played, needs some.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from banditune.contracts import Floats, Integers
from banditune.logs.beta_binomial import EDGE
from banditune.logs.centres import Cells, at_logit, cells_of, evidences, logit_of, telling
from banditune.logs.drafts import Wish, counts_of, gaussian_priors
from banditune.logs.gaussian import Cells as NormalCells
from banditune.logs.record import Logs
from banditune.logs.residuals import pooled
from banditune.logs.search import error_matrix, peak
from banditune.problems import Campaigns

SPAN = math.log(0.1), math.log(1e6)
"""The range of the logarithm of a + b, of arms and of centres."""

ROUNDS = 4
"""So often each number of the prior is looked for while the others stay."""

LOUDER = 0.1
"""How rewards' noise moves what is played is seen by playing with so much more of it."""


class Model(NamedTuple):
    """A prior with some numbers: each campaign's log likelihood and the pairs of all cells, as functions of them.

    The penalty is the logarithm of each spread: without it the likeliest spread may be none, where arms would not differ
    and no campaign could move it. It counts as much as what covariances of `hierarchy` get where they lose a direction.
    """

    likelihoods: Callable[[Floats], Floats]
    penalty: Callable[[Floats], float]
    pairs: Callable[[Floats], Floats]
    start: Floats
    steps: Floats
    ranges: tuple[tuple[float, float], ...]
    options: Callable[[Floats], dict[str, Any]]

    def height(self, numbers: Floats) -> float:
        """The log likelihood of all campaigns with the penalty."""
        return float(self.likelihoods(numbers).sum()) + self.penalty(numbers)


class Judge(NamedTuple):
    """A problem for each campaign, and what stands behind it.

    `pairs` are the two numbers of each cell's distribution, `slopes` (numbers, cells, 2) how they change with the numbers
    of the prior, `pushes` (campaigns, numbers) how far each campaign has moved these.
    """

    problems: list[Campaigns]
    bounds: Integers
    pairs: Floats
    slopes: Floats
    pushes: Floats

    def leanings(self, campaign: int, values: Floats, means: Floats) -> Floats:
        """How means of values (kinds, runs), of runs with these means of arms, change with the numbers of the prior."""
        mine = slice(*self.bounds[campaign : campaign + 2])
        pairs, slopes = self.pairs[mine], self.slopes[:, mine]
        if self.problems[campaign].rewards == "real":
            away = (means - pairs[:, 0]) / pairs[:, 1]
            density = away / pairs[:, 1], away**2 / pairs[:, 1]
        else:
            inside = np.clip(means, 1e-300, 1 - 1e-16)
            density = np.log(inside), np.log1p(-inside)
        score = density[0] @ slopes[:, :, 0].T + density[1] @ slopes[:, :, 1].T
        around = values - values.mean(axis=1, keepdims=True)
        return np.asarray(around @ score / max(len(score) - 1, 1))

    def louder(self, campaign: int) -> Campaigns | None:
        """The campaign with more noise around its means, by LOUDER in its logarithm, where noise is the last number."""
        problem = self.problems[campaign]
        return replace(problem, noise=problem.noise * math.exp(LOUDER)) if problem.rewards == "real" else None

    def errors(self, values: Floats, leanings: Floats) -> Floats:
        """Standard errors of the means of values (campaigns, kinds) that lean on the prior (campaigns, kinds, numbers)."""
        count = len(values)
        whole = values + count * self.pushes @ leanings.mean(axis=0).T
        return np.asarray(whole.std(axis=0, ddof=1) / math.sqrt(count))


def judge_of(logs: Logs) -> Judge:
    """What campaigns whose arms have no features say about them."""
    model = normal_model(logs) if logs.rewards == "real" else beta_model(logs)
    best = climbed(model)
    pairs = model.pairs(best)
    sides = [(model.pairs(best + step) - model.pairs(best - step)) / (2 * step.sum()) for step in np.diag(model.steps)]
    bounds = np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))
    rows = [tuple(map(tuple, pairs[first:last].tolist())) for first, last in pairwise(bounds)]
    problems = [Campaigns((row,), logs.rewards, **model.options(best)) for row in rows]
    return Judge(problems, bounds, pairs, np.stack(sides), pushes(model, best))


def beta_model(logs: Logs) -> Model:
    """Arms are beta around their campaign's centre (see `centres`).

    The numbers are the logarithms of a + b of arms and of centres, and the logit of the centres' mean.
    """
    scale, _, given = counts_of(logs, 0.95)
    cells = cells_of(logs.campaign, *given)
    tell = telling(cells)
    told = cells if len(tell) == cells.campaigns else cells.some(tell)

    def at(cells: Cells, numbers: Floats) -> tuple[Floats, Floats]:
        size, worth, logit = numbers.tolist()
        return evidences(at_logit(cells, logit)._replace(worth=math.exp(worth)), size)

    def likelihoods(numbers: Floats) -> Floats:
        found = np.zeros(cells.campaigns)
        found[tell] = at(told, numbers)[0]
        return found

    def penalty(numbers: Floats) -> float:
        return -0.5 * float(np.logaddexp(0.0, numbers[:2]).sum())

    def pairs(numbers: Floats) -> Floats:
        centre = at(cells, numbers)[1][cells.campaign]
        return math.exp(numbers[0]) * np.stack([centre, 1 - centre], axis=1) + np.stack(given, axis=1)

    start = np.array([math.log(30.0), math.log(30.0), logit_of(cells.overall)])
    ranges = SPAN, SPAN, (-EDGE, EDGE)
    options = {"v": scale} if logs.rewards == "unit" else {}
    return Model(likelihoods, penalty, pairs, start, np.array([0.1, 0.1, 0.05]), ranges, lambda numbers: options)


def normal_model(logs: Logs) -> Model:
    """Arms are normal around their campaign's own mean; the numbers are the logarithms of their sd and of the noise."""
    noise = gaussian_priors(logs, Wish(False, 2, 0.95))[0].noise
    pulls, count = logs.pulls.astype(float), len(logs.campaigns)
    squares, degrees = (np.bincount(logs.campaign, part, count) for part in (logs.squares, pulls - 1))
    groups = [
        NormalCells(logs.mean[first:last], pulls[first:last])
        for first, last in pairwise(np.searchsorted(logs.campaign, np.arange(count + 1)))
    ]

    def likelihoods(numbers: Floats) -> Floats:
        sd, noise = np.exp(numbers).tolist()
        between = np.array([cells.restricted(sd, noise) for cells in groups])
        return np.asarray(between - degrees * math.log(noise) - squares / (2 * noise**2))

    def pairs(numbers: Floats) -> Floats:
        sd, noise = np.exp(numbers).tolist()
        weights = 1 / (sd**2 + noise**2 / pulls)
        centre = np.bincount(logs.campaign, weights * logs.mean, count) / np.bincount(logs.campaign, weights, count)
        weight = 1 / sd**2 + pulls / noise**2
        mean = (centre[logs.campaign] / sd**2 + logs.total / noise**2) / weight
        return np.stack([mean, 1 / np.sqrt(weight)], axis=1)

    # The best-known arm's error is the smallest spread that could ever be seen.
    least, most = 1e-3 * noise / math.sqrt(float(pulls.max())), 10 * (float(np.std(logs.mean)) + noise)
    start = np.log([noise / math.sqrt(float(np.median(pulls))), noise])
    ranges = (math.log(least), math.log(most)), (start[1] - 5, start[1] + 5)

    def penalty(numbers: Floats) -> float:
        return float(numbers[0])

    shape = pooled(logs)

    def options(numbers: Floats) -> dict[str, Any]:
        return {"noise": math.exp(numbers[1]), "residuals": shape}

    return Model(likelihoods, penalty, pairs, start, np.array([0.05, 0.05]), ranges, options)


def climbed(model: Model) -> Floats:
    """The likeliest numbers, one after the other, until none moves."""
    best = model.start.copy()

    def along(place: int) -> Callable[[float], float]:
        return lambda value: model.height(np.where(np.arange(len(best)) == place, value, best))

    for _ in range(ROUNDS):
        before = best.copy()
        for place, (low, high) in enumerate(model.ranges):
            step = model.steps[place]
            best[place] = peak(along(place), float(best[place]), 3 * step, low, high, 0.1 * step)
        if (np.abs(best - before) <= 0.1 * model.steps).all():
            break
    return best


def pushes(model: Model, best: Floats) -> Floats:
    """How far each campaign has moved each number: its slope of the likelihood, over the curvature of all."""
    sides = np.diag(model.steps)
    slope = [(model.likelihoods(best + side) - model.likelihoods(best - side)) / (2 * side.sum()) for side in sides]
    return np.asarray(np.stack(slope, axis=1) @ error_matrix(model.height, best, model.steps))
