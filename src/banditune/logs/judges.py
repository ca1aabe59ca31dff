"""Campaigns that were left out, as they judge a policy.

A judge has problems to play and says what a policy is worth by them. There are two: `OwnData` has each campaign's
arms as its own data show them; `Groups`, where arms have features, has the problem that is fitted to all campaigns.

What is said is about the campaigns from which those that were left out are a sample. Their data say little about
single arms, so posterior means of arms differ even where arms do not, and a policy that looks for the best arm seems
to gain by it. So everything rests on the spread of arms within campaigns (see `spread`), whose estimate may be 0 or
less. Each campaign is played at several spreads; without spread, all regrets and differences are 0. Between these,
values are interpolated:

- The estimate is the value at the estimated spread. Differences between policies grow with the spread from 0 on, and
  are taken to go on below 0 with the other sign: so errors of the spread cancel, and where arms are equal,
  differences are 0 on average.
- The interval comes from draws of what the spread may be, to each of which the error of a mean over so few campaigns
  is added. A campaign that has more of a value than others often moves the estimated spread as well, so both errors
  may go together.

What a decision pays is what it paid in the logs plus the difference to them. That is paired by campaign: the logs'
arms are weighed by how often they were pulled, so that nothing but differences between arms remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple, Protocol

import numpy as np

from banditune.contracts import BadRequest, Floats, Instances, Problem
from banditune.logs.drafts import MODELS, Wish
from banditune.logs.fit import FEATURED, fit
from banditune.logs.record import Logs
from banditune.logs.spread import Spread, arms_of
from banditune.problems import Campaigns
from banditune.results import Estimate

RUNS, LEAST = 8000, 32
"""Runs on all campaigns together, and on each at least."""

KNOTS = 4
"""Each campaign is played at so many spreads."""

DRAWS = 20_000
"""Draws of the spread behind an interval."""

SURE = 0.005
"""The spreads that are played leave out as much on either side."""

GROUPS, FEWEST = 10, 4
"""Where arms have features: groups of campaigns that are left out in turn, and the fewest campaigns that tell anything."""


class Runs(NamedTuple):
    """Runs of the tuned policy and the baseline: regrets and rewards of a decision (2, runs), and means (runs, arms)."""

    regrets: Floats
    rewards: Floats
    means: Floats


Play = Callable[[Problem, range], Runs]
"""Plays the tuned policy and the baseline on runs of a problem."""


class Verdict(NamedTuple):
    """What a policy is worth: regrets of a campaign, rewards of a decision, and the difference to what the logs paid."""

    regret: Estimate
    theory: Estimate
    gain: Estimate
    reward: Estimate
    theory_reward: Estimate
    difference: Estimate


class Judge(Protocol):
    """Problems that policies are played on, and what they are worth by them."""

    @property
    def problems(self) -> Sequence[Problem]:
        """The problems that are played."""

    def judge(self, play: Play) -> Verdict:
        """Play, and say what was seen."""


@dataclass(frozen=True)
class Spreads(Campaigns):
    """A campaign at several spreads, a row of posteriors for each, which come in turn."""

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        pairs = np.array(self.posteriors)[np.arange(size) % len(self.posteriors)]
        draw = rng.normal if self.rewards == "real" else rng.beta
        return Instances(draw(pairs[..., 0], pairs[..., 1]))


class OwnData:
    """Campaigns whose arms' means are drawn from what their own data say, at several spreads."""

    def __init__(self, logs: Logs) -> None:
        arms = arms_of(logs)
        self.logs, self.spread, self.slopes = logs, arms.spread, arms.slopes
        self.bounds = np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))
        rng = np.random.default_rng(20_214)
        self.draws = arms.spread.draws(rng, DRAWS)
        # Normal numbers in the order of the draws.
        self.scores = np.sort(rng.standard_normal(DRAWS))[np.argsort(np.argsort(self.draws))]
        self.knots = knots_of(arms.spread, self.draws)
        # A campaign at all spreads: pairs of cells (spreads, cells, 2).
        pairs = np.stack([arms.pairs(float(knot)) for knot in self.knots])
        self._problems = [
            Spreads(pairs[:, first:last].tolist(), logs.rewards, **arms.options())
            for first, last in pairwise(self.bounds)
        ]

    @property
    def problems(self) -> Sequence[Problem]:
        """A problem for each campaign."""
        return self._problems

    def judge(self, play: Play) -> Verdict:
        """Play every campaign at all spreads."""
        logs, count = self.logs, len(self._problems)
        runs = KNOTS * math.ceil(max(LEAST, RUNS / count) / KNOTS)
        paid = np.bincount(logs.campaign, logs.total, count) / logs.lengths
        seen = []
        for number, problem in enumerate(self._problems):
            # Every campaign has instances and noise of its own: what they shared, no spread among them would show.
            one = play(problem, range(number * runs, (number + 1) * runs))
            pulls = logs.pulls[slice(*self.bounds[number : number + 2])]
            ahead = one.rewards - one.means @ (pulls / pulls.sum())
            kinds = np.concatenate([one.regrets, [one.regrets[1] - one.regrets[0]], ahead])
            seen.append(kinds.reshape(len(kinds), -1, KNOTS).mean(axis=1))
        regret, theory, gain, ahead, theory_ahead = np.array(seen).swapaxes(0, 1)
        none = np.zeros(count)
        return Verdict(
            self._regret(regret),
            self._regret(theory),
            self._difference(gain, none),
            self._difference(ahead, paid),
            self._difference(theory_ahead, paid),
            self._difference(ahead, none),
        )

    def _regret(self, values: Floats) -> Estimate:
        """The mean over campaigns of regrets (campaigns, spreads), which grow with the root of the spread and end at 0."""
        knots = np.sqrt(np.append(0.0, self.knots))
        values = np.insert(values, 0, 0.0, axis=1)

        def at(spread: Floats, curve: Floats) -> Floats:
            return np.interp(np.sqrt(np.maximum(spread, 0.0)), knots, curve)

        return above_zero(self._told(values, at))

    def _difference(self, values: Floats, base: Floats) -> Estimate:
        """The mean over campaigns of a base plus differences (campaigns, spreads): these grow with the spread."""
        knots = np.concatenate([-self.knots[::-1], [0.0], self.knots])
        values = base[:, None] + np.concatenate([-values[:, ::-1], np.zeros((len(values), 1)), values], axis=1)
        return self._told(values, lambda spread, curve: np.interp(spread, knots, curve))

    def _told(self, values: Floats, at: Callable[[Floats, Floats], Floats]) -> Estimate:
        """The mean of values (campaigns, knots), `at` the spread and at what it may be."""
        count = len(values)
        middle, error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(count)
        mean, own = (float(at(np.array([self.spread.value]), curve)[0]) for curve in (middle, error))
        along = at_each(at, self.spread.value, values)
        together = max(correlation(along - along.mean(), self.slopes), 0.0)
        centres = at(self.draws, middle)
        away = together * self.scores + math.sqrt(1 - together**2) * student(count - 1)
        low, high = np.quantile(centres + at(self.draws, error) * away, (0.025, 0.975))
        theirs = float(centres.std())
        se = math.sqrt(own**2 + theirs**2 + 2 * together * own * theirs)
        return Estimate(mean, se, float(low), float(high), count)


def at_each(at: Callable[[Floats, Floats], Floats], spread: float, values: Floats) -> Floats:
    """The value of every campaign at a spread."""
    return np.array([at(np.array([spread]), row)[0] for row in values])


def correlation(one: Floats, other: Floats) -> float:
    """How much numbers with the mean 0 go together; 0 where some do not vary."""
    scale = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / scale if scale > 0 else 0.0


def student(degrees: int) -> Floats:
    """Draws of Student's t, always the same."""
    return np.random.default_rng(20_215).standard_t(degrees, DRAWS)


def knots_of(spread: Spread, draws: Floats) -> Floats:
    """The spreads at which campaigns are played, evenly in their root: all that the spread may be, and the estimate."""
    top = math.sqrt(float(np.quantile(np.abs(draws), 1 - SURE)))
    bottom = max(math.sqrt(max(float(np.quantile(draws, SURE)), 0.0)), top / KNOTS)
    middle = math.sqrt(max(spread.value, 0.0))
    if bottom < middle < top:
        return np.array([bottom, middle, (middle + top) / 2, top]) ** 2
    return np.linspace(bottom, top, KNOTS) ** 2


class Groups:
    """The problem fitted to all campaigns, whose arms have features, and those fitted without each group of them.

    Groups are chosen at random, always the same.
    """

    def __init__(self, logs: Logs, model: str, intercept: bool) -> None:
        count = len(logs.campaigns)
        if count < FEWEST:
            raise BadRequest(
                f"{FEWEST} campaigns or more must be left out to judge by where arms have features, but there are {count}; "
                "leave more out with a smaller `share`, or take more logs."
            )
        whole = fit(logs, model, intercept=intercept).problem
        order = np.random.default_rng(20_213).permutation(count)
        wish = Wish(False, whole.arms, 0.95)
        parts = [np.setdiff1d(order, group) for group in np.array_split(order, min(count, GROUPS))]
        self.problems = [whole, *(MODELS[model](logs.of(part), wish).problem for part in parts)]
        paid = np.bincount(logs.campaign, logs.total, count) / logs.lengths
        self.paid = np.array([paid.mean(), *(paid[part].mean() for part in parts)])

    def judge(self, play: Play) -> Verdict:
        """Means over instances of the problem fitted to all, with errors by the jackknife over groups of campaigns.

        All problems are played with the same random numbers: only what a group changes is seen, not the luck of runs.
        """
        means: list[list[float]] = []
        for paid, problem in zip(self.paid, self.problems, strict=True):
            regret, theory, reward, theory_reward = (
                row.mean() for part in play(problem, range(RUNS // (8 if means else 2)))[:2] for row in part
            )
            means.append([regret, theory, theory - regret, reward, theory_reward, reward - paid])
        whole, *without = np.array(means)
        others = len(without)
        errors = np.sqrt((others - 1) * np.var(without, axis=0))
        told = [Estimate.told(float(mean), float(se), others) for mean, se in zip(whole, errors, strict=True)]
        return Verdict(*(above_zero(one) for one in told[:2]), *told[2:])


def above_zero(estimate: Estimate) -> Estimate:
    """An estimate of a regret: its interval ends at 0."""
    return Estimate(estimate.mean, estimate.se, max(estimate.low, 0.0), estimate.high, estimate.runs)


def judge_of(logs: Logs, model: str, intercept: bool = True) -> Judge:
    """What judges a policy on campaigns whose problem was fitted by this model."""
    return Groups(logs, model, intercept) if model in FEATURED else OwnData(logs)
