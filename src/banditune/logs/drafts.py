"""Models of past logs, one function each: what they say about the problem, and how they play the logs again."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from banditune.contracts import BadRequest, Floats, Integers, Problem
from banditune.logs.beta_binomial import BetaPrior, beta_prior
from banditune.logs.draws import Means, beta_means, logistic_means, normal_means, scores
from banditune.logs.gaussian import Cells, Inside, NormalPriors, normal_priors
from banditune.logs.hierarchy import Gauss, correlation, estimates, rescaled
from banditune.logs.linear import linear_fit, sums_of
from banditune.logs.logistic import logistic_fit, table_of
from banditune.logs.pooling import pooled_priors
from banditune.logs.record import Logs, counted_arms
from banditune.logs.residuals import by_arm, excess_kurtosis, pooled, remark
from banditune.logs.unit import concentration_fit, counted
from banditune.logs.within import Posteriors, beta_posteriors, normal_posteriors
from banditune.problems import Bernoulli, BetaRewards, Campaigns, Gaussian, Linear, Logistic
from banditune.results import Fitted

MANY = 20
"""Of more arms than that a full covariance is not looked for."""

FEW = 5
"""Of arms in fewer campaigns than that a note says how little is known."""

LEAST_V = 0.01
"""Rewards in [0, 1] with a smaller v are 0 and 1 but for a few."""


class Wish(NamedTuple):
    """What was asked for."""

    per_arm: bool
    arms: int
    confidence: float


class Draft(NamedTuple):
    """A fitted problem; `rewards` around drawn means are "binary", "real" with noise `scale`, or "unit" with v `scale`.

    `means` draws what replayed logs have, `known` what arms have given their own data. `around` is what arms have around
    their own campaign before their data, of a model that does not say how campaigns differ. `kurtosis` is that of real
    rewards, beyond 0 of normal ones.
    """

    problem: Problem
    estimates: tuple[Fitted, ...]
    notes: tuple[str, ...]
    means: Means
    known: Means
    rewards: str
    scale: float = 1.0
    around: Means | None = None
    kurtosis: float = 0.0


def beta_binomial(logs: Logs, wish: Wish) -> Draft:
    """Mean rewards from a beta distribution, common to all arms or one per arm."""
    need_binary(logs, "beta-binomial")
    found, priors = beta_priors(logs, logs.total, logs.pulls - logs.total, wish, logs.pulls)
    problem = Bernoulli(arms_of(logs, wish), prior_of(priors, wish), names_of(logs, wish))
    given = np.stack([logs.total, logs.pulls - logs.total], axis=1)
    before = priors[logs.arm]
    return Draft(problem, found.estimates, found.notes, beta_means(before), beta_means(before + given), "binary")


def unit(logs: Logs, wish: Wish) -> Draft:
    """Beta rewards around mean rewards from a beta distribution."""
    if logs.rewards == "real":
        raise BadRequest("the model 'beta' must have rewards in [0, 1], but these are real; try model='gaussian'.")
    inside_of(logs)
    pulls = logs.pulls.astype(float)
    v, fitted = concentration_fit(logs.campaign, pulls, logs.mean, logs.squares, wish.confidence)
    if v < LEAST_V:
        raise BadRequest(
            "the model 'beta' must have rewards between 0 and 1, but these are all 0 or 1; try model='beta-binomial'."
        )
    given = counted(pulls, logs.mean, v)
    found, priors = beta_priors(logs, *given, wish, pulls * (v + 1))
    before = priors[logs.arm]
    drawn = beta_means(before), beta_means(before + np.stack(given, axis=1))
    problem = BetaRewards(arms_of(logs, wish), prior_of(priors, wish), v, names_of(logs, wish))
    return Draft(problem, (*found.estimates, fitted), found.notes, *drawn, "unit", v)


def gaussian(logs: Logs, wish: Wish) -> Draft:
    """Mean rewards from a normal distribution, common to all arms or one per arm; rewards with normal noise."""
    found, priors = gaussian_priors(logs, wish)
    shape = (by_arm(logs) if wish.per_arm else ()) or pooled(logs)
    problem = Gaussian(arms_of(logs, wish), prior_of(priors, wish), found.noise, names_of(logs, wish), shape)
    before = priors[logs.arm]
    weight = 1 / before[:, 1] ** 2 + logs.pulls / found.noise**2
    mean = (before[:, 0] / before[:, 1] ** 2 + logs.total / found.noise**2) / weight
    drawn = normal_means(before), normal_means(np.stack([mean, 1 / np.sqrt(weight)], axis=1))
    notes = (*found.notes, remark(logs, bool(shape)))
    return Draft(problem, found.estimates, notes, *drawn, "real", found.noise, kurtosis=excess_kurtosis(logs))


def linear(logs: Logs, wish: Wish) -> Draft:
    """Rewards x'theta with noise, theta of every campaign from a Gaussian."""
    features, scale = scaled_features(logs, "linear")
    inside_of(logs)
    kind, notes = kind_of(len(logs.campaigns), features.shape[1], "diagonal")
    names = feature_names(logs)
    found = linear_fit(sums_of(logs, features), kind, names, wish.confidence)
    gauss = rescaled(found.gauss, scale)
    arms, more = arms_with_features(logs, wish)
    shape = pooled(logs)
    problem = Linear(prior=as_prior(gauss), noise=found.noise, residuals=shape, **arms)
    told = (*estimates(gauss, names, wish.confidence), found.estimates[-1])
    said = (*notes, *kept(gauss), *more, remark(logs, bool(shape)))
    drawn = scores(logs, gauss)
    return Draft(problem, told, said, *drawn, "real", found.noise, kurtosis=excess_kurtosis(logs))


def logistic(logs: Logs, wish: Wish) -> Draft:
    """Rewards 0 or 1 through the logistic function of x'theta, theta of every campaign from a Gaussian."""
    need_binary(logs, "logistic")
    features, scale = scaled_features(logs, "logistic")
    kind, notes = kind_of(len(logs.campaigns), features.shape[1], "diagonal")
    gauss, share = logistic_fit(table_of(logs, features), kind)
    gauss = rescaled(gauss, scale)
    arms, more = arms_with_features(logs, wish)
    problem = Logistic(prior=as_prior(gauss), **arms)
    told = estimates(gauss, feature_names(logs), wish.confidence)
    return Draft(problem, told, (*notes, *kept(gauss), *few(share), *more), *logistic_means(logs, gauss), "binary")


def correlated(logs: Logs, wish: Wish) -> Draft:
    """Logits of the arms' mean rewards are jointly Gaussian: arms of one campaign rise and fall together."""
    need_binary(logs, "correlated")
    arms = len(logs.arms)
    rare = [str(name) for name, held in zip(logs.arms, np.bincount(logs.arm, minlength=arms), strict=True) if held < 3]
    if rare:
        some = ", ".join(rare[:5]) + (f" and {len(rare) - 5} more" if len(rare) > 5 else "")
        raise BadRequest(
            f"each arm must be in 3 campaigns or more for the model 'correlated', but {some} are in fewer of these "
            f"{len(logs.campaigns)} campaigns; try model='campaigns', or leave these arms out. A backtest fits "
            "a part of the campaigns, `share` of them."
        )
    check_told(wish, arms, "the arms that come back")
    # Two arms tell their correlation in the campaigns that hold both.
    held = np.zeros((len(logs.campaigns), arms))
    held[logs.campaign, logs.arm] = 1
    kind, notes = kind_of(int(max((held.T @ held).min(), 3)), arms, "alike", uneven=bool((held == 0).any()))
    mixed = np.bincount(logs.arm, (logs.total > 0) & (logs.total < logs.pulls), arms)
    if kind == "full" and mixed.min() < 3:
        kind = "alike"
        what = "some arms have successes and failures in fewer than 3 campaigns, too few for a spread of their own"
        notes = (*notes, f"{what}: {ALIKE}")
    logs, more = with_both_outcomes(logs)
    notes = (*notes, *more)
    unit = np.eye(arms)
    seen = replace(logs, features=unit[logs.arm], feature_names=(), intercept=False)
    gauss, share = logistic_fit(table_of(seen, unit[logs.arm]), kind)
    problem = Logistic(prior=as_prior(gauss), features=unit, names=logs.arms)
    told = (*estimates(gauss, logs.arms, wish.confidence), correlation(gauss, wish.confidence))
    notes = (*notes, *kept(gauss), *few(share), "means and sds are of the logit of an arm's mean reward")
    return Draft(problem, told, notes, *logistic_means(seen, gauss), "binary")


ALIKE = "all arms get one sd and one correlation"


def with_both_outcomes(logs: Logs) -> tuple[Logs, tuple[str, ...]]:
    """Logs in which every arm has successes and failures, and a sentence about the arms that did not.

    The likeliest logit of an arm without a success is minus infinity. Such arms are given half a success and half a
    failure (Haldane 1956, Anscombe 1956), spread over their campaigns by pulls.
    """
    arms = len(logs.arms)
    total, pulls = np.bincount(logs.arm, logs.total, arms), np.bincount(logs.arm, logs.pulls, arms)
    alone = (total == 0) | (total == pulls)
    if not alone.any():
        return logs, ()
    share = np.where(alone[logs.arm], logs.pulls / pulls[logs.arm], 0.0)
    names = [logs.arms[place] for place in np.flatnonzero(alone)]
    words = f"{counted_arms(names)} always paid the same: half a success and half a failure are added to each"
    return replace(logs, total=logs.total + share / 2, pulls=logs.pulls + share), (words,)


def campaigns(logs: Logs, wish: Wish) -> Draft:
    """Past campaigns drawn again, each arm's mean from its posterior, so that chance does not pass for differences."""
    if logs.widths.max() < 2:
        raise BadRequest("the model 'campaigns' must have a campaign with two arms or more, but all have one.")
    whole = np.flatnonzero(logs.widths >= wish.arms)
    if not len(whole):
        raise BadRequest(
            f"`arms` must be at most {logs.widths.max()}, the most that a campaign had, but got {wish.arms}."
        )
    estimates, notes, found, scale = posteriors_of(logs, wish)
    if len(whole) < len(logs.campaigns):
        notes = (*notes, f"{len(logs.campaigns) - len(whole)} campaigns with fewer than {wish.arms} arms are left out")
    bounds = np.searchsorted(logs.campaign, np.arange(len(logs.campaigns) + 1))
    rows = tuple(tuple(map(tuple, found.after[bounds[c] : bounds[c + 1]].tolist())) for c in whole)
    shape = pooled(logs)
    how: dict[str, dict[str, Any]] = {
        "real": {"noise": scale, "residuals": shape},
        "unit": {"v": scale},
        "binary": {},
    }
    notes = (*notes, *([remark(logs, bool(shape))] if logs.rewards == "real" else []))
    problem = Campaigns(rows, logs.rewards, wish.arms, names=names_of(logs, wish), **how[logs.rewards])
    drawn = normal_means if logs.rewards == "real" else beta_means
    after = drawn(found.after)
    told = (*estimates, found.spread)
    said, kurtosis = (*notes, *found.notes), excess_kurtosis(logs)
    return Draft(problem, told, said, after, after, logs.rewards, scale, drawn(found.before), kurtosis)


def posteriors_of(logs: Logs, wish: Wish) -> tuple[tuple[Fitted, ...], tuple[str, ...], Posteriors, float]:
    """Estimates and notes of the prior of all arms, posteriors of cells, and the noise, or v of rewards in [0, 1]."""
    pulls = logs.pulls.astype(float)
    if logs.rewards == "real":
        normal, _ = gaussian_priors(logs, wish)
        return normal.estimates, normal.notes, normal_posteriors(logs, normal.noise, wish.confidence), normal.noise
    v, estimates, given = counts_of(logs, wish.confidence)
    common, _ = beta_priors(logs, *given, wish, pulls if logs.rewards == "binary" else pulls * (v + 1))
    found = beta_posteriors(logs.campaign, *given, wish.confidence)
    return (*common.estimates, *estimates), common.notes, found, v


def counts_of(logs: Logs, confidence: float) -> tuple[float, tuple[Fitted, ...], tuple[Floats, Floats]]:
    """The v of rewards in [0, 1] and its estimate, and successes and failures of cells, or what counts as much."""
    pulls = logs.pulls.astype(float)
    if logs.rewards == "binary":
        need_binary(logs, "campaigns")
        return 1.0, (), (logs.total, pulls - logs.total)
    inside_of(logs)
    v, fitted = concentration_fit(logs.campaign, pulls, logs.mean, logs.squares, confidence)
    v = max(v, LEAST_V)
    return v, (fitted,), counted(pulls, logs.mean, v)


MODELS: dict[str, Callable[[Logs, Wish], Draft]] = {
    "beta-binomial": beta_binomial,
    "beta": unit,
    "gaussian": gaussian,
    "linear": linear,
    "logistic": logistic,
    "correlated": correlated,
    "campaigns": campaigns,
}


def need_binary(logs: Logs, model: str) -> None:
    """Rewards 0 and 1, of which there are some of each."""
    if logs.rewards != "binary":
        raise BadRequest(
            f"the model {model!r} must have rewards 0 and 1, but these are {logs.rewards}; try model='auto'."
        )
    total, pulls = float(logs.total.sum()), int(logs.pulls.sum())
    if total in (0, pulls):
        raise BadRequest(
            f"some rewards must be 0 and some 1, but all {pulls:,} are {total / pulls:g}: such logs do not tell how arms "
            "differ; take longer logs, or say the prior yourself: Bernoulli(arms, prior=(a, b))."
        )


def beta_priors(
    logs: Logs, successes: Floats, failures: Floats, wish: Wish, trials: Floats | Integers
) -> tuple[BetaPrior, Floats]:
    """The common beta distribution, or those of the arms; and a row (a, b) for each arm's name."""
    if len(successes) < 2 or float(trials.max()) < 2:
        raise BadRequest(
            "logs must hold two arms or more, one of them pulled twice in a campaign, but these do not: a prior is known "
            "by how arms differ beyond chance; take more logs."
        )
    common = beta_prior(successes, failures, wish.confidence)
    table = np.tile([common.a, common.b], (len(logs.arms), 1))
    if not wish.per_arm:
        return common, table
    back = np.bincount(logs.arm) > 1
    if not back.any():
        return common._replace(notes=(*common.notes, *lonely(list(logs.arms), "the beta distribution"))), table
    found = pooled_priors(logs.arm, logs.arms, successes, failures, wish.confidence)
    return BetaPrior(common.a, common.b, found.estimates, found.notes), found.table


def gaussian_priors(logs: Logs, wish: Wish) -> tuple[NormalPriors, Floats]:
    """The common normal distribution, or those of the arms; and a row (mean, sd) for each arm's name."""
    inside = inside_of(logs)
    if len(logs.pulls) < 3:
        raise BadRequest(f"logs must hold three arms or more for a normal prior, but they hold {len(logs.pulls)}.")
    pulls = logs.pulls.astype(float)
    common = normal_priors([Cells(logs.mean, pulls)], inside, wish.confidence, [""])
    table = np.tile(common.priors[0], (len(logs.arms), 1))
    if not wish.per_arm:
        return common, table
    known = [place for place in range(len(logs.arms)) if (logs.arm == place).sum() >= 3]
    without = [name for place, name in enumerate(logs.arms) if place not in known]
    if not known:
        return common._replace(notes=(*common.notes, *lonely(without, "the normal distribution"))), table
    groups = [Cells(logs.mean[logs.arm == place], pulls[logs.arm == place]) for place in known]
    found = normal_priors(groups, inside, wish.confidence, [logs.arms[place] for place in known])
    table[known] = found.priors
    more = lonely(without, "the normal distribution") + sparse(logs)
    return found._replace(notes=(*found.notes, *more)), table


def inside_of(logs: Logs) -> Inside:
    """What cells say about noise; there must be some."""
    if not np.isfinite(logs.squares).all():
        raise BadRequest("logs of real rewards must tell how rewards vary, but `squares` are missing; give them.")
    degrees = float(logs.pulls.sum() - len(logs.pulls))
    if degrees < 1 or logs.squares.sum() <= 0:
        raise BadRequest(
            "some arm must be pulled twice in a campaign and pay different rewards, but none did: such logs do not tell "
            "the noise; take more logs."
        )
    return Inside(float(logs.squares.sum()), degrees)


def lonely(names: list[str], what: str) -> list[str]:
    """A sentence about arms that cannot have a prior of their own."""
    return [
        f"{counted_arms(names)}: in too few campaigns for a prior of their own, so it is {what} of all arms"
    ] * bool(names)


def sparse(logs: Logs) -> list[str]:
    """A sentence about arms whose own prior hardly anything is known of."""
    often = np.bincount(logs.arm)
    few = int(((often > 1) & (often < FEW)).sum())
    if not few:
        return []
    return [
        f"{few:,} arms are in fewer than {FEW} campaigns: intervals are as wide as they must be, and two campaigns tell "
        "next to nothing about an arm's own prior; without `per_arm` all arms tell one prior together"
    ]


def arms_of(logs: Logs, wish: Wish) -> int:
    """How many arms the problem has: with a prior per arm, all that have a name."""
    if not wish.per_arm:
        return wish.arms
    check_told(wish, len(logs.arms), "one for each name")
    return len(logs.arms)


def check_told(wish: Wish, arms: int, why: str) -> None:
    """Arms that are told must be those of the logs."""
    if wish.arms != arms:
        raise BadRequest(f"`arms` must be {arms}, {why}, but got {wish.arms}; leave it out.")


def prior_of(table: Floats, wish: Wish) -> object:
    """A pair, or a pair per arm."""
    return table.tolist() if wish.per_arm else table[0].tolist()


def names_of(logs: Logs, wish: Wish) -> tuple[str, ...]:
    """Names of arms, where each has a prior of its own or all campaigns had the same."""
    return logs.arms if wish.per_arm or (logs.same_arms and wish.arms == len(logs.arms)) else ()


def scaled_features(logs: Logs, model: str) -> tuple[Floats, Floats]:
    """Features of the cells with typical size 1, and their true sizes."""
    if logs.features is None:
        raise BadRequest(f"the model {model!r} must have features of arms, but the logs have none; name their columns.")
    scale = np.sqrt((logs.features**2).mean(axis=0))
    empty = np.flatnonzero(scale == 0)
    if len(empty):
        raise BadRequest(
            f"features must not be 0 for all arms, but {feature_names(logs)[empty[0]]!r} is; leave it out."
        )
    features = logs.features / scale
    if np.linalg.matrix_rank(features, tol=1e-6 * math.sqrt(len(features))) < features.shape[1]:
        raise BadRequest(
            "features must not follow from each other, but some is a sum of others; leave one out (an indicator for every "
            "arm and a constant are such a case; the constant that a fit adds is left out with intercept=False)."
        )
    return features, scale


def feature_names(logs: Logs) -> tuple[str, ...]:
    """Names of features, or numbers."""
    dims = 0 if logs.features is None else logs.features.shape[1]
    return logs.feature_names or tuple(str(place) for place in range(dims))


def kind_of(count: int, dims: int, simple: str, uneven: bool = False) -> tuple[str, tuple[str, ...]]:
    """The kind of covariance that so many campaigns can tell; more are needed where they do not hold the same arms."""
    if count < 3:
        raise BadRequest(
            f"there must be 3 campaigns or more to tell how they differ, but there are {count}; take logs of more, or cut "
            "long ones into several."
        )
    if count >= (3 * dims if uneven else dims + 2) and (simple == "diagonal" or dims <= MANY):
        return "full", ()
    words = {
        "diagonal": "coordinates of theta are taken as independent",
        "alike": ALIKE,
    }
    those = " that hold the same arms" if uneven else ""
    return simple, (f"{count} campaigns{those} are too few for a full covariance of {dims} numbers: {words[simple]}",)


def arms_with_features(logs: Logs, wish: Wish) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Arms of a problem: those of the logs where they are always the same, else some with features from a Gaussian.

    And a sentence about the latter.
    """
    assert logs.features is not None
    first = logs.features[: len(logs.arms)]
    constant: dict[str, Any] = {"intercept": True} if logs.intercept else {}
    if logs.same_arms and np.array_equal(np.tile(first, (len(logs.campaigns), 1)), logs.features):
        check_told(wish, len(logs.arms), "the arms whose features are known")
        return {"features": first, "names": logs.arms, **constant}, ()
    drawn = logs.features[:, 1:] if logs.intercept else logs.features
    mean, spread = drawn.mean(axis=0), np.atleast_2d(np.cov(drawn.T))
    # A constant feature has no spread, but a covariance needs some.
    spread = spread + np.diag(1e-6 * (drawn**2).mean(axis=0))
    what = "features" if logs.same_arms else "arms"
    note = f"{what} differ between campaigns: the problem draws features from a Gaussian with their mean and covariance"
    return {"arms": wish.arms, "feature_prior": (mean.tolist(), spread.tolist()), **constant}, (note,)


def as_prior(gauss: Gauss) -> object:
    """Mean and covariance as problems take them."""
    return gauss.mean.tolist(), ((gauss.covariance + gauss.covariance.T) / 2).tolist()


def kept(gauss: Gauss) -> tuple[str, ...]:
    """A sentence about a covariance that was kept from losing a direction."""
    words = (
        "in some direction theta does not differ between campaigns beyond chance; the covariance keeps a little spread"
    )
    return (f"{words} there, about as much as the logs allow",) if gauss.kept else ()


def few(share: float) -> tuple[str, ...]:
    """A sentence about importance sampling that does not work well."""
    if share >= 0.1:
        return ()
    return (
        f"posteriors are far from normal: only {share:.0%} of the draws count, so estimates are less sure than told",
    )
