"""Policies on features, in plain NumPy: every step solves everything again from the whole history.

The reference draws the package's random numbers, and shares nothing else with its policies. Arms are rows here.
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

draw_block = lru_cache(draw_instances)


class SimulatedInstance(NamedTuple):
    """One instance of a problem, and the source of its random numbers."""

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


def make_instance(problem: Problem, seed: int, run: int) -> SimulatedInstance:
    instances = draw_block(problem, seed, run // BLOCK_SIZE)
    index = run % BLOCK_SIZE
    features = instances.features[index if len(instances.features) > 1 else 0].T
    return SimulatedInstance(
        problem.reward, Instance(instances.means[index], np.array(problem.options())), features, seed, run
    )


class History(NamedTuple):
    """What an agent knows: the features of all arms, and the features and rewards of past pulls."""

    arms: np.ndarray
    x: np.ndarray
    paid: np.ndarray
    horizon: int

    @property
    def dims(self) -> int:
        return self.arms.shape[1]


Scores = Callable[[History, float, Stream], np.ndarray]
"""The score of every arm at this gamma; the agent pulls the highest."""


def expand_prior(prior: Any, dims: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean vector and covariance matrix of a prior."""
    mean, covariance = map(np.array, prior)
    return np.zeros(dims) + mean, covariance * np.eye(dims) if covariance.ndim == 0 else covariance


def compute_widths(arms: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """sqrt(x' matrix^-1 x) for every arm x."""
    return np.sqrt(np.sum(arms * np.linalg.solve(matrix, arms.T).T, axis=1))


def compute_logistic(score: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-score))


def find_mode(x: np.ndarray, paid: np.ndarray, mean: np.ndarray, precision: np.ndarray) -> np.ndarray:
    """The maximum a posteriori of logistic regression, by Newton's method with halved steps, to 1e-12."""

    def loss(theta: np.ndarray) -> float:
        difference = theta - mean
        return np.sum(np.logaddexp(0, x @ theta) - paid * (x @ theta)) + difference @ precision @ difference / 2

    theta = mean
    for _ in range(100):
        p = compute_logistic(x @ theta)
        gradient = x.T @ (p - paid) + precision @ (theta - mean)
        step = np.linalg.solve(x.T @ (x * (p * (1 - p))[:, None]) + precision, gradient)
        while loss(theta - step) > loss(theta) * (1 + 1e-14):
            step = step / 2
        theta = theta - step
        if np.abs(step).max() < 1e-12:
            return theta
    raise AssertionError("Newton's method did not converge")


def draw_normals(stream: Stream, size: int) -> np.ndarray:
    """The next standard normals, two at a time. If the size is odd, the last one drawn is dropped."""
    return np.array([normal_pair(stream) for _ in range(-(-size // 2))]).ravel()[:size]


def make_lin_ucb_scores(prior: Any = (0, 1), noise: float = 0.5) -> Scores:
    def scores(history: History, gamma: float, agent: Stream) -> np.ndarray:
        d, n = history.dims, history.horizon
        mean, covariance = expand_prior(prior, d)
        precision = noise**2 * np.linalg.inv(covariance)
        G = precision + history.x.T @ history.x
        theta = np.linalg.solve(G, precision @ mean + history.x.T @ history.paid)
        L = np.linalg.norm(history.arms, axis=1).max()
        c = noise * (math.sqrt(d) + noise * math.sqrt(d * math.log((1 + n * L**2) * n)))
        return history.arms @ theta + gamma * c * compute_widths(history.arms, G)

    return scores


def make_ucb_glm_scores(prior: Any = (0, 1), noise: float = 0.5, kappa: float = 0.25) -> Scores:
    def scores(history: History, gamma: float, agent: Stream) -> np.ndarray:
        d, n = history.dims, history.horizon
        mean, covariance = expand_prior(prior, d)
        precision = np.linalg.inv(covariance)
        theta = find_mode(history.x, history.paid, mean, precision)
        c = noise / kappa * math.sqrt(d / 2 * math.log(1 + 2 * n / d) + math.log(n))
        return history.arms @ theta + gamma * c * compute_widths(history.arms, precision + history.x.T @ history.x)

    return scores


# The samplers turn features so that the prior is N(0, I): theta = mean + R u, x'theta = x'mean + (R'x)'u.


def draw_gaussian(centre: np.ndarray, matrix: np.ndarray, scale: float, agent: Stream) -> np.ndarray:
    """A draw from N(centre, scale^2 matrix^-1). At scale 0 nothing is drawn."""
    if scale == 0:
        return centre
    F = np.linalg.inv(np.linalg.cholesky(matrix))
    return centre + scale * F.T @ draw_normals(agent, len(centre))


def make_lin_ts_scores(prior: Any = (0, 1), noise: float = 0.5) -> Scores:
    def scores(history: History, gamma: float, agent: Stream) -> np.ndarray:
        d = history.dims
        mean, covariance = expand_prior(prior, d)
        R = np.linalg.cholesky(covariance)
        x = history.x @ R
        G = noise**2 * np.eye(d) + x.T @ x
        estimate = np.linalg.solve(G, x.T @ (history.paid - history.x @ mean))
        u = draw_gaussian(estimate, G, gamma * math.sqrt(d) * noise, agent)
        return history.arms @ (mean + R @ u)

    return scores


def make_glm_tsl_scores(prior: Any = (0, 1)) -> Scores:
    def scores(history: History, gamma: float, agent: Stream) -> np.ndarray:
        d = history.dims
        mean, covariance = expand_prior(prior, d)
        R = np.linalg.cholesky(covariance)
        theta = find_mode(history.x, history.paid, mean, np.linalg.inv(covariance))
        p = compute_logistic(history.x @ theta)
        x = history.x @ R
        H = np.eye(d) + x.T @ (x * (p * (1 - p))[:, None])
        u = draw_gaussian(np.linalg.solve(R, theta - mean), H, gamma * math.sqrt(d), agent)
        return history.arms @ (mean + R @ u)

    return scores


def recover_arms(regret: np.ndarray, means: np.ndarray) -> np.ndarray:
    """The arm pulled at every step, from the expected regret after every step: no two arms have the same gap."""
    gaps = means.max() - means
    assert np.diff(np.sort(gaps)).min() > 1e-7
    gaps_of_steps = np.diff(regret, prepend=0)
    distance = np.abs(gaps_of_steps[:, None] - gaps)
    assert distance.min(axis=1).max() < 1e-9
    return distance.argmin(axis=1)


def find_disagreement(
    scores: Scores, instance: SimulatedInstance, gamma: float, horizon: int, regret: np.ndarray
) -> str | None:
    """The first step at which a run pulled another arm than the reference, from the regret after every step.

    The reference learns from the arms of the run. After the first reward, another arm than the best of the reference
    is accepted if the two scores differ by less than a part in 1e9, or both are 0 to 1e-12: that is rounding. For
    example, as many ones as zeros from the only pulled arm make all scores of a logistic model 0.
    """
    agent = instance.stream(AGENT_STREAM)
    history: list[int] = []
    rewards: list[float] = []
    for step, arm in enumerate(recover_arms(regret, instance.instance.means)):
        state = History(instance.features, instance.features[history], np.array(rewards), horizon)
        arm_scores = scores(state, gamma, agent)
        best = int(arm_scores.argmax())
        difference = arm_scores[best] - arm_scores[arm]
        rounding = 1e-9 * max(abs(arm_scores[best]), abs(arm_scores[arm])) + 1e-12 if history else 0.0
        if difference > rounding or (arm != best and not history):
            return f"step {step}: arm {arm} scores {arm_scores[arm]!r}, arm {best} scores {arm_scores[best]!r}"
        rewards.append(instance.pay(arm, history.count(arm), step))
        history.append(int(arm))
    return None
