"""Campaigns that were left out, as they judge a policy.

A judge has problems to play and says what a policy is worth by them. There are two: `OwnData` has each campaign's
arms as its own data show them; `Groups`, where arms have features, has the problem that is fitted to all campaigns,
with its arms drawn together or apart to have the wanted spread.

What is said is about the campaigns from which those that were left out are a sample. Their data say little about
single arms, so posterior means of arms differ even where arms do not, and a policy that looks for the best arm seems
to gain by it. So everything rests on the spread of arms within campaigns (see `spread`), whose estimate may be 0 or
less. Each campaign is played at several spreads; without spread, all regrets and differences are 0. Between these,
values are interpolated:

- The estimate is the value at the estimated spread. Differences between policies grow with the spread from 0 on, and
  are taken to go on below 0 with the other sign: so errors of the spread cancel, and where arms are equal,
  differences are 0 on average.
- The interval comes from draws of what the spread may be, to each of which two errors are added: that of a mean over
  so few campaigns, and what their data leave open about these campaigns. A campaign that has more of a value than
  others often moves the estimated spread as well, so the first may go together with the draw. Where arms' means have
  the assumed shape, the spread says all that the data leave open, and the interval is too wide rather than too narrow.

What a decision pays is what it paid in the logs plus the difference to them. That is paired by campaign: the logs'
arms are weighed by how often they were pulled, so that nothing but differences between arms remains.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from banditune.contracts import BadRequest, Floats, Instances, Problem
from banditune.logs.drafts import MODELS, Wish, inside_of
from banditune.logs.fit import FEATURED, fit
from banditune.logs.record import Logs
from banditune.logs.residuals import pooled
from banditune.logs.spread import Spread, arms_of
from banditune.problems import Campaigns, Linear, Logistic
from banditune.results import Estimate

RUNS, LEAST = 8000, 32
"""Runs on all campaigns together, and on each at least."""

KNOTS = 4
"""Each campaign is played at so many spreads."""

ROUND = 2 * KNOTS
"""So many runs have all spreads, each instance twice."""

DRAWS = 20_000
"""Draws of the spread behind an interval."""

SURE = 0.005
"""The spreads that are played leave out as much on either side."""

INSTANCES = 4096
"""So many instances tell the spread of a problem."""

HALVES = 8
"""So many random halves of the campaigns show how sure the law of real rewards is."""

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
    """A campaign at several spreads, a row of posteriors for each, in turn; every instance comes twice."""

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        pairs = np.array(self.posteriors)[np.arange(-(-size // 2)) % len(self.posteriors)]
        draw = rng.normal if self.rewards == "real" else rng.beta
        return Instances(np.repeat(draw(pairs[..., 0], pairs[..., 1]), 2, axis=0)[:size])


class Ladder:
    """Values of campaigns at several spreads, and what they are at the spread that was estimated.

    `slopes` are those of the campaigns' log likelihoods in the spread, for as many campaigns, or groups of them, as
    there are values.
    """

    def __init__(self, spread: Spread, slopes: Floats) -> None:
        self.spread, self.slopes = spread, slopes - slopes.mean()
        rng = np.random.default_rng(20_214)
        self.draws = spread.draws(rng, DRAWS)
        # Normal numbers in the order of the draws.
        self.scores = np.sort(rng.standard_normal(DRAWS))[np.argsort(np.argsort(self.draws))]
        self.around = rng.standard_t(max(len(slopes) - 1, 1), DRAWS)
        self.normal = rng.standard_normal(DRAWS)
        self.knots = knots_of(spread, self.draws)

    def verdict(self, values: Floats, unknown: Floats, ahead: Floats, paid: Floats) -> Verdict:
        """Means over campaigns of values (campaigns, kinds, knots), whose kinds are those of `kinds_of`.

        The data leave the mean of these campaigns open with the variances `unknown` (kinds, knots). What the logs paid, a
        number for each campaign, was by `ahead` more than what rewards are compared with.
        """
        kinds = list(zip(values.swapaxes(0, 1), unknown, strict=True))
        regret, theory, gain, reward, theory_reward = kinds
        return Verdict(
            regret=self.regret(*regret),
            theory=self.regret(*theory),
            gain=self.difference(*gain, np.zeros(len(values))),
            reward=self.difference(*reward, paid - ahead),
            theory_reward=self.difference(*theory_reward, paid - ahead),
            difference=self.difference(*reward, -ahead),
        )

    def regret(self, values: Floats, unknown: Floats) -> Estimate:
        """The mean over campaigns of regrets (campaigns, knots), which grow with the root of the spread and end at 0."""
        knots = np.sqrt(np.append(0.0, self.knots))

        def at(spread: Floats, curve: Floats) -> Floats:
            return np.interp(np.sqrt(np.maximum(spread, 0.0)), knots, curve)

        found = self._mean(np.insert(values, 0, 0.0, axis=1), np.insert(unknown, 0, 0.0), at)
        return Estimate(found.mean, found.se, max(found.low, 0.0), found.high, found.runs)

    def difference(self, values: Floats, unknown: Floats, base: Floats) -> Estimate:
        """The mean over campaigns of a base plus differences (campaigns, knots), which grow with the spread."""
        knots = np.concatenate([-self.knots[::-1], [0.0], self.knots])
        values = base[:, None] + np.concatenate([-values[:, ::-1], np.zeros((len(values), 1)), values], axis=1)
        unknown = np.concatenate([unknown[::-1], [0.0], unknown])
        return self._mean(values, unknown, lambda spread, curve: np.interp(spread, knots, curve))

    def _mean(self, values: Floats, unknown: Floats, at: Callable[[Floats, Floats], Floats]) -> Estimate:
        """The mean over campaigns of values, a curve for each, `at` the spread and at what it may be."""
        count = len(values)
        here = np.array([self.spread.value])
        middle, error = values.mean(axis=0), values.std(axis=0, ddof=1) / math.sqrt(count)
        each = np.array([at(here, curve)[0] for curve in values])
        together = max(correlation(each - each.mean(), self.slopes), 0.0)
        centres = at(self.draws, middle)
        away = together * self.scores + math.sqrt(1 - together**2) * self.around
        left = np.sqrt(unknown)
        draws = centres + at(self.draws, error) * away + at(self.draws, left) * self.normal
        low, high = np.quantile(draws, (0.025, 0.975))
        own, other = float(at(here, error)[0]), float(centres.std())
        se = math.sqrt(own**2 + other**2 + 2 * together * own * other + float(at(here, left)[0]) ** 2)
        mean = float(at(here, middle)[0])
        return Estimate(mean, se, min(float(low), mean), max(float(high), mean), count)


def correlation(one: Floats, other: Floats) -> float:
    """The correlation of numbers with the mean 0; 0 where some do not vary."""
    scale = math.sqrt(float(one @ one) * float(other @ other))
    return min(float(one @ other) / scale, 1.0) if scale > 0 else 0.0


def knots_of(spread: Spread, draws: Floats) -> Floats:
    """The spreads at which campaigns are played, evenly in their root: all that the spread may be, and the estimate."""
    top = math.sqrt(float(np.quantile(np.abs(draws), 1 - SURE)))
    bottom = max(math.sqrt(max(float(np.quantile(draws, SURE)), 0.0)), top / KNOTS)
    middle = math.sqrt(max(spread.value, 0.0))
    if bottom < middle < top:
        return np.array([bottom, middle, (middle + top) / 2, top]) ** 2
    return np.linspace(bottom, top, KNOTS) ** 2


def kinds_of(runs: Runs, other: Floats) -> Floats:
    """Both regrets, the gain, and how much more than others, a reward for each run, both policies earn (kinds, runs)."""
    return np.concatenate([runs.regrets, [runs.regrets[1] - runs.regrets[0]], runs.rewards - other])


def variance_of(values: Floats) -> Floats:
    """The variance between instances of values (kinds, instances, knots, 2), each seen twice, but for the runs' noise."""
    apart = values - values.mean(axis=(1, 3), keepdims=True)
    return np.asarray((apart[..., 0] * apart[..., 1]).sum(axis=1) / max(values.shape[1] - 1, 1))


class OwnData:
    """Campaigns whose arms' means are drawn from what their own data say, at several spreads."""

    def __init__(self, logs: Logs) -> None:
        arms = arms_of(logs)
        self.logs = logs
        self.ladder = Ladder(arms.spread, arms.slopes)
        self.bounds = np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))
        # A campaign at all spreads: pairs of cells (knots, cells, 2).
        pairs = np.stack([arms.pairs(float(knot)) for knot in self.ladder.knots])
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
        count = len(self._problems)
        runs = ROUND * math.ceil(max(LEAST, RUNS / count) / ROUND)
        values, unknown = [], []
        for number, problem in enumerate(self._problems):
            # Every campaign has instances and noise of its own: what they shared, no spread among them would show.
            one = play(problem, range(number * runs, (number + 1) * runs))
            pulls = self.logs.pulls[slice(*self.bounds[number : number + 2])]
            kinds = kinds_of(one, one.means @ (pulls / pulls.sum())).reshape(5, -1, KNOTS, 2)
            values.append(kinds.mean(axis=(1, 3)))
            unknown.append(variance_of(kinds))
        left = np.maximum(np.mean(unknown, axis=0), 0.0) / count + self._variance_of_law(play)
        return self.ladder.verdict(np.array(values), left, np.zeros(count), paid_in(self.logs))

    def _variance_of_law(self, play: Play) -> Floats:
        """Variances (kinds, knots) of values for real rewards, whose noise and shape are known from these campaigns only.

        All campaigns are played with the law that a half of them has, and with that of the other half, which are off from
        each other by twice the error. What the luck of runs adds to the square of that is taken off.
        """
        count = len(self._problems)
        if self.logs.rewards != "real" or count < FEWEST:
            return np.zeros((5, KNOTS))
        rng = np.random.default_rng(20_216)
        runs = ROUND * math.ceil(RUNS / (2 * HALVES * ROUND * count))
        squares = np.zeros((5, KNOTS))
        for place in range(HALVES):
            laws = [law_of(self.logs.of(half)) for half in np.array_split(rng.permutation(count), 2)]
            away = []
            for number, problem in enumerate(self._problems):
                first = (place * count + number) * runs
                span = range(first, first + runs)
                one, other = (play(replace(problem, **law), span) for law in laws)
                apart = kinds_of(one, np.zeros(runs)) - kinds_of(other, np.zeros(runs))
                away.append((apart / 2).reshape(5, -1, KNOTS, 2).mean(axis=3))
            every = np.concatenate(away, axis=1)
            squares += every.mean(axis=1) ** 2 - every.var(axis=1, ddof=1) / every.shape[1]
        return np.asarray(np.maximum(squares / HALVES, 0.0))


def law_of(logs: Logs) -> dict[str, Any]:
    """The noise of real rewards and the shape that they have; nothing where these logs do not tell it."""
    if not logs.squares.sum() > 0:
        return {}
    return {"noise": inside_of(logs).noise, "residuals": pooled(logs)}


def paid_in(logs: Logs) -> Floats:
    """The mean reward of a decision in each campaign."""
    return np.bincount(logs.campaign, logs.total, len(logs.campaigns)) / logs.lengths


class Stretched:
    """Arms of a problem with features whose means are moved away from those of their instance, or towards it."""

    scales: tuple[float, ...]

    def sample(self, size: int, rng: np.random.Generator) -> Instances:
        """Instances with each of the scales in turn."""
        drawn = super().sample(size, rng)  # type: ignore[misc]
        middle = drawn.means.mean(axis=1, keepdims=True)
        scale = np.array(self.scales)[np.arange(size) % len(self.scales)]
        means = middle + scale[:, None] * (drawn.means - middle)
        bounded = self.rewards != "real"  # type: ignore[attr-defined]
        return Instances(np.clip(means, 0.0, 1.0) if bounded else means, drawn.features)


@dataclass(frozen=True)
class StretchedLinear(Stretched, Linear):
    """A linear problem at several spreads."""

    scales: Any = ()


@dataclass(frozen=True)
class StretchedLogistic(Stretched, Logistic):
    """A logistic problem at several spreads."""

    scales: Any = ()


def stretched(problem: Problem, variances: Floats) -> Problem:
    """The problem with arms whose means have these variances within an instance."""
    means = problem.sample(INSTANCES, np.random.default_rng(20_218)).means
    scales = np.sqrt(variances / float(means.var(axis=1, ddof=1).mean()))
    kind = StretchedLinear if isinstance(problem, Linear) else StretchedLogistic
    options = {one.name: getattr(problem, one.name) for one in fields(problem)}  # type: ignore[arg-type]
    return kind(**options, scales=tuple(scales.tolist()))


class Groups:
    """The problem fitted to all campaigns, whose arms have features, and those fitted without each group of them.

    How campaigns differ is seen by the jackknife, so a group's value is what the mean of all would have to be in
    place of it. Groups are chosen at random, always the same.
    """

    def __init__(self, logs: Logs, model: str, intercept: bool) -> None:
        count = len(logs.campaigns)
        if count < FEWEST:
            raise BadRequest(
                f"{FEWEST} campaigns or more must be left out to judge by where arms have features, but there are {count}; "
                "leave more out with a smaller `share`, or take more logs."
            )
        arms = arms_of(logs)
        order = np.random.default_rng(20_213).permutation(count)
        groups = np.array_split(order, min(count, GROUPS))
        self.ladder = Ladder(arms.spread, np.array([arms.slopes[group].sum() for group in groups]))
        whole = fit(logs, model, intercept=intercept).problem
        wish = Wish(False, whole.arms, 0.95)
        self.parts = [order, *(np.setdiff1d(order, group) for group in groups)]
        fitted = [whole, *(MODELS[model](logs.of(part), wish).problem for part in self.parts[1:])]
        self.problems = [stretched(problem, arms.unit * self.ladder.knots) for problem in fitted]
        self.paid = paid_in(logs)
        # How much more than all arms on average the arms of the logs pay, by the data of each campaign.
        means = arms.means(max(arms.spread.value, 0.0))
        self.ahead = (
            np.bincount(logs.campaign, logs.pulls * means) / logs.lengths
            - np.bincount(logs.campaign, means) / logs.widths
        )

    def judge(self, play: Play) -> Verdict:
        """Play all problems with the same random numbers: only what a group changes is seen, not the luck of runs."""
        values: list[Floats] = []
        for problem in self.problems:
            one = play(problem, range(RUNS // 4 if values else RUNS))
            values.append(kinds_of(one, one.means.mean(axis=1)).reshape(5, -1, KNOTS).mean(axis=1))
        ahead, paid = (np.array([each[part].mean() for part in self.parts]) for each in (self.ahead, self.paid))
        left = np.zeros(values[0].shape)
        return self.ladder.verdict(in_place(np.array(values)), left, in_place(ahead), in_place(paid))


def in_place(values: Floats) -> Floats:
    """Of a mean and of those without each group, the jackknife's values of the groups, around the mean."""
    whole, without = values[0], values[1:]
    return np.asarray(whole - (len(without) - 1) * (without - without.mean(axis=0)))


def judge_of(logs: Logs, model: str, intercept: bool = True) -> Judge:
    """What judges a policy on campaigns whose problem was fitted by this model."""
    return Groups(logs, model, intercept) if model in FEATURED else OwnData(logs)
