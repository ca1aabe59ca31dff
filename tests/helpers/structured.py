"""Bandits on features, slowly and obviously: every step solves everything afresh from the whole history.

The reference draws the package's random numbers and shares nothing else with its policies. Arms are rows here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from banditune.core.distributions import normal_pair
from banditune.core.problem import Instance, Problem
from banditune.core.streams import AGENT_STREAM, REWARD_STREAM, Stream, seek
from banditune.simulation.instances import BLOCK_SIZE, draw_instances
from banditune.simulation.loop import compute_instance_key

block_of = lru_cache(draw_instances)


class World(NamedTuple):
    """One instance of a problem, and where its random numbers come from."""

    reward: Callable[..., float]
    instance: Instance
    features: np.ndarray
    seed: int
    run: int

    def stream(self, kind: int) -> Stream:
        return Stream(*compute_instance_key(self.seed, self.run), np.array([0, 0, 0, kind]))

    def pay(self, arm: int, pull: int, step: int = 0) -> float:
        """The reward of pull number `pull` of an arm."""
        stream = self.stream(REWARD_STREAM)
        seek(stream, arm, pull)
        return self.reward(self.instance, arm, pull, step, stream)


def world(problem: Problem, seed: int, run: int) -> World:
    drawn = block_of(problem, seed, run // BLOCK_SIZE)
    place = run % BLOCK_SIZE
    features = drawn.features[place if len(drawn.features) > 1 else 0].T
    return World(problem.reward, Instance(drawn.means[place], np.array(problem.options())), features, seed, run)


class Known(NamedTuple):
    """What an agent knows: the features of all arms, those of the arms pulled so far and what these paid."""

    arms: np.ndarray
    x: np.ndarray
    paid: np.ndarray
    horizon: int

    @property
    def dims(self) -> int:
        return self.arms.shape[1]


Scores = Callable[[Known, float, Stream], np.ndarray]
"""The score of every arm at this gamma; the agent pulls the highest."""


def moments(prior: Any, dims: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean vector and covariance matrix of a prior."""
    mean, covariance = map(np.array, prior)
    return np.zeros(dims) + mean, covariance * np.eye(dims) if covariance.ndim == 0 else covariance


def widths(arms: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """sqrt(x' matrix^-1 x) for every arm x."""
    return np.sqrt(np.sum(arms * np.linalg.solve(matrix, arms.T).T, axis=1))


def logistic(score: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-score))


def most_likely(x: np.ndarray, paid: np.ndarray, mean: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """The maximum a posteriori of logistic regression, by Newton's method with halved steps, to 1e-12."""

    def loss(theta: np.ndarray) -> float:
        away = theta - mean
        return np.sum(np.logaddexp(0, x @ theta) - paid * (x @ theta)) + away @ precision @ away / 2

    theta = mean
    for _ in range(100):
        p = logistic(x @ theta)
        gradient = x.T @ (p - paid) + precision @ (theta - mean)
        step = np.linalg.solve(x.T @ (x * (p * (1 - p))[:, None]) + precision, gradient)
        while loss(theta - step) > loss(theta) * (1 + 1e-14):
            step = step / 2
        theta = theta - step
        if np.abs(step).max() < 1e-12:
            return theta
    raise AssertionError("Newton's method did not converge")


def normals(stream: Stream, size: int) -> np.ndarray:
    """The next standard normals, two at a time; if the size is odd, the last one drawn is dropped."""
    return np.array([normal_pair(stream) for _ in range(-(-size // 2))]).ravel()[:size]


def lin_ucb(prior: Any = (0, 1), noise: float = 0.5) -> Scores:
    def scores(known: Known, gamma: float, agent: Stream) -> np.ndarray:
        d, n = known.dims, known.horizon
        mean, covariance = moments(prior, d)
        precision = noise**2 * np.linalg.inv(covariance)
        G = precision + known.x.T @ known.x
        theta = np.linalg.solve(G, precision @ mean + known.x.T @ known.paid)
        L = np.linalg.norm(known.arms, axis=1).max()
        c = noise * (math.sqrt(d) + noise * math.sqrt(d * math.log((1 + n * L**2) * n)))
        return known.arms @ theta + gamma * c * widths(known.arms, G)

    return scores


def ucb_glm(prior: Any = (0, 1), noise: float = 0.5, kappa: float = 0.25) -> Scores:
    def scores(known: Known, gamma: float, agent: Stream) -> np.ndarray:
        d, n = known.dims, known.horizon
        mean, covariance = moments(prior, d)
        precision = np.linalg.inv(covariance)
        theta = most_likely(known.x, known.paid, mean, precision)
        c = noise / kappa * math.sqrt(d / 2 * math.log(1 + 2 * n / d) + math.log(n))
        return known.arms @ theta + gamma * c * widths(known.arms, precision + known.x.T @ known.x)

    return scores


# The samplers turn features so that the prior is N(0, I): theta = mean + R u, x'theta = x'mean + (R'x)'u.


def sampled(centre: np.ndarray, matrix: np.ndarray, scale: float, agent: Stream) -> np.ndarray:
    """A draw from N(centre, scale^2 matrix^-1); at scale 0 nothing is drawn."""
    if scale == 0:
        return centre
    F = np.linalg.inv(np.linalg.cholesky(matrix))
    return centre + scale * F.T @ normals(agent, len(centre))


def lin_ts(prior: Any = (0, 1), noise: float = 0.5) -> Scores:
    def scores(known: Known, gamma: float, agent: Stream) -> np.ndarray:
        d = known.dims
        mean, covariance = moments(prior, d)
        R = np.linalg.cholesky(covariance)
        x = known.x @ R
        G = noise**2 * np.eye(d) + x.T @ x
        estimate = np.linalg.solve(G, x.T @ (known.paid - known.x @ mean))
        u = sampled(estimate, G, gamma * math.sqrt(d) * noise, agent)
        return known.arms @ (mean + R @ u)

    return scores


def glm_tsl(prior: Any = (0, 1)) -> Scores:
    def scores(known: Known, gamma: float, agent: Stream) -> np.ndarray:
        d = known.dims
        mean, covariance = moments(prior, d)
        R = np.linalg.cholesky(covariance)
        theta = most_likely(known.x, known.paid, mean, np.linalg.inv(covariance))
        p = logistic(known.x @ theta)
        x = known.x @ R
        H = np.eye(d) + x.T @ (x * (p * (1 - p))[:, None])
        u = sampled(np.linalg.solve(R, theta - mean), H, gamma * math.sqrt(d), agent)
        return known.arms @ (mean + R @ u)

    return scores


def arms_pulled(regret: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The arm pulled at every step, from the expected regret after every step: no two arms have the same gap."""
    gaps = means.max() - means
    assert np.diff(np.sort(gaps)).min() > 1e-7
    lost = np.diff(regret, prepend=0)
    distance = np.abs(lost[:, None] - gaps)
    assert distance.min(axis=1).max() < 1e-9
    return distance.argmin(axis=1)


def disagreement(scores: Scores, place: World, gamma: float, horizon: int, regret: np.ndarray) -> str | None:
    """Where a run whose regret after every step is given pulled an arm that the reference would not have pulled.

    The reference goes where the run went. Once rewards were seen, an arm other than the reference's best (the lowest
    number of equals) is granted where the scores of the two differ by less than a part in 1e9, or both are 0 to 1e-12:
    that is rounding. As many ones as zeros from the only arm pulled, for example, make all scores of a logistic model 0.
    """
    agent = place.stream(AGENT_STREAM)
    history: list[int] = []
    paid: list[float] = []
    for step, arm in enumerate(arms_pulled(regret, place.instance.means)):
        known = Known(place.features, place.features[history], np.array(paid), horizon)
        found = scores(known, gamma, agent)
        best = int(found.argmax())
        behind = found[best] - found[arm]
        rounding = 1e-9 * max(abs(found[best]), abs(found[arm])) + 1e-12 if history else 0.0
        if behind > rounding or (arm != best and not history):
            return f"step {step}: arm {arm} scores {found[arm]!r}, arm {best} scores {found[best]!r}"
        paid.append(place.pay(arm, history.count(arm), step))
        history.append(int(arm))
    return None
