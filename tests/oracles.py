"""Exact expected regret of bandit policies on a few Bernoulli arms, for checking a simulator.

Regret is the sum over steps of max(means) - means[chosen arm]. A state holds the (successes, failures) of each arm;
the probability of every state is carried forward step by step, so nothing is sampled. Ties go to the lowest arm.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import numpy as np
from scipy.special import betainc, expit, log_expit

State = tuple[tuple[int, int], ...]
History = list[tuple[int, int]]

# Trapezoid rule in u, where theta = expit(sinh(u)): exponentially accurate for shapes from about 0.04 to 50,000.
NODES = np.linspace(-7.25, 7.25, 3713)
LOGITS = np.sinh(NODES)


def ucb1(means: Sequence[float], horizon: int, gamma: float, noise: float = 0.5) -> float:
    """Regret of each arm once, then the highest mean plus gamma times the confidence width at this horizon."""
    scale = 2 * noise * math.sqrt(2 * math.log(horizon))

    def index(successes: int, failures: int) -> float:
        pulls = successes + failures
        return successes / pulls + gamma * (scale / math.sqrt(pulls)) if pulls else math.inf

    return _forward(lambda state: _only(_best(index, state), len(state)), means, horizon)[0]


def greedy(means: Sequence[float], horizon: int) -> float:
    """Regret of an unpulled arm first, then the highest mean so far."""
    return epsilon_greedy(means, horizon, 0.0)


def epsilon_greedy(means: Sequence[float], horizon: int, epsilon: float) -> float:
    """Regret of a uniformly random arm with probability epsilon, else the greedy arm."""

    def choose(state: State) -> list[float]:
        arms = len(state)
        return [epsilon / arms + (1 - epsilon) * p for p in _only(_best(_mean, state), arms)]

    return _forward(choose, means, horizon)[0]


def explore_then_commit(means: Sequence[float], horizon: int, pulls: int) -> float:
    """Regret of `pulls` rounds over the arms in turn, then forever the arm that had the highest mean in them."""
    arms = len(means)
    explored = min(horizon, pulls * arms)
    regret, states = _forward(lambda state: _only(sum(map(sum, state)) % arms, arms), means, explored)
    committed = sum(p * (max(means) - means[_best(_mean, state)]) for state, p in states.items())
    return regret + (horizon - explored) * committed


def thompson(means: Sequence[float], horizon: int, gamma: float, prior: tuple[float, float] = (1, 1)) -> float:
    """Regret, for two arms, of sampling Beta posteriors with shapes over gamma^2 (gamma 0: of posterior means)."""
    if len(means) != 2:
        raise ValueError("thompson needs exactly two arms")
    a, b = prior

    def posterior_mean(successes: int, failures: int) -> float:
        return (successes + a) / (successes + failures + a + b)

    def choose(state: State) -> list[float]:
        if gamma == 0:
            return _only(_best(posterior_mean, state), 2)
        first, second = (((s + a) / gamma**2, (f + b) / gamma**2) for s, f in state)
        win = win_probability(first, second)
        return [win, 1 - win]

    return _forward(choose, means, horizon)[0]


def win_probability(first: tuple[float, float], second: tuple[float, float]) -> float:
    """P(X > Y) for independent X ~ Beta(*first) and Y ~ Beta(*second)."""
    return float(_weights(*first) @ _cdf(*second))


def bayes(regret_of: Callable[[Sequence[float]], float], mixture: Iterable[tuple[float, Sequence[float]]]) -> float:
    """Regret averaged over a mixture of (weight, means), whose weights sum to one."""
    return math.fsum(weight * regret_of(means) for weight, means in mixture)


def brute_force(
    choose_probabilities: Callable[[History], Sequence[float]], means: Sequence[float], horizon: int
) -> float:
    """Regret of any policy by walking every history of (arm, reward), none merged; for horizons up to about 7."""

    def walk(history: History) -> float:
        if len(history) == horizon:
            return 0.0
        regret = 0.0
        for arm, probability in enumerate(choose_probabilities(history)):
            if probability > 0:
                win, loss = walk([*history, (arm, 1)]), walk([*history, (arm, 0)])
                regret += probability * (max(means) - means[arm] + means[arm] * win + (1 - means[arm]) * loss)
        return regret

    return walk([])


def _forward(
    choose: Callable[[State], Sequence[float]], means: Sequence[float], steps: int
) -> tuple[float, dict[State, float]]:
    """Expected regret over the steps, and the probability of each state after them."""
    states: dict[State, float] = {((0, 0),) * len(means): 1.0}
    regret = 0.0
    for _ in range(steps):
        following: dict[State, float] = defaultdict(float)
        for state, reached in states.items():
            for arm, probability in enumerate(choose(state)):
                chosen = reached * probability
                if chosen > 0:
                    regret += chosen * (max(means) - means[arm])
                    successes, failures = state[arm]
                    before, after = state[:arm], state[arm + 1 :]
                    following[(*before, (successes + 1, failures), *after)] += chosen * means[arm]
                    following[(*before, (successes, failures + 1), *after)] += chosen * (1 - means[arm])
        states = following
    return regret, states


def _best(index: Callable[[int, int], float], state: State) -> int:
    """The lowest arm with the highest index."""
    indices = [index(*counts) for counts in state]
    return indices.index(max(indices))


def _only(arm: int, arms: int) -> list[float]:
    """The choice of one arm for certain."""
    return [float(other == arm) for other in range(arms)]


def _mean(successes: int, failures: int) -> float:
    """The mean reward, infinite for an unpulled arm so that it comes first."""
    pulls = successes + failures
    return successes / pulls if pulls else math.inf


@lru_cache(maxsize=2000)
def _weights(a: float, b: float) -> np.ndarray:
    """Beta(a, b) density at the nodes times the trapezoid weights, scaled to sum to one."""
    log_density = a * log_expit(LOGITS) + b * log_expit(-LOGITS)
    weights = np.cosh(NODES) * np.exp(log_density - log_density.max())
    weights /= weights.sum()
    if max(weights[0], weights[-1]) > 1e-12 or abs(weights[::2].sum() - 0.5) > 1e-5:
        raise ValueError(f"shapes {a}, {b} are too small or too large for the nodes")
    return weights


@lru_cache(maxsize=2000)
def _cdf(a: float, b: float) -> np.ndarray:
    """Beta(a, b) distribution function at the nodes, from the nearer end so that no digits are lost."""
    tail = np.where(LOGITS < 0, betainc(a, b, expit(LOGITS)), betainc(b, a, expit(-LOGITS)))
    return np.where(LOGITS < 0, tail, 1 - tail)
