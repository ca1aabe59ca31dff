"""The exact Bayes regret of a policy on a few arms with rewards 0 or 1. The probabilities of all states are carried forward step by step."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray, copy_read_only
from banditune.core.errors import InvalidRequest
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.exact import beta_quadrature, table_cache
from banditune.exact.packed_counts import extract_pulls, extract_successes, iterate_slices
from banditune.exact.policy_transitions import TransitionModel, make_transition_model
from banditune.exact.state_layers import LayerOverflow, StateLayer
from banditune.problems.bernoulli_arms import Bernoulli, Mixture
from banditune.simulation import memory
from banditune.simulation.spec import SimulationSpec

TEMPORARY_NUMBERS = 1 << 23
"""Numbers in a temporary array: layers are worked on in parts of about this size."""


def compute_bayes_regret(
    policy: Policy, problem: Problem, rows: Any, horizon: int, progress: Callable[[int, int], None] | None = None
) -> FloatArray:
    """The expected regret of a policy over `horizon` steps, averaged over the problem's prior: one for each row of `rows`.

    The problem must be `Bernoulli` or `Mixture`, and the policy must either draw no random numbers or be one whose chances
    are known: Thompson sampling and epsilon-greedy. `progress(done, total)` is called after every step of every row.
    """
    prior = make_counts_posterior(problem)
    params = copy_read_only(rows)
    width = max(1, len(policy.parameters))
    if params.ndim != 2 or params.shape[1] != width or not np.isfinite(params).all():
        raise InvalidRequest(f"`rows` must be rows of {width} finite numbers for {policy.name}, but got {rows!r}.")
    if policy.needs_features:
        raise InvalidRequest(f"{policy.name} knows arms by their features, but those of {problem.name!r} have none.")
    job = SimulationSpec(policy, problem, horizon)
    regrets = []
    for number, row in enumerate(params):
        told = (
            None
            if progress is None
            else partial(_report_row_progress, progress, number * horizon, len(params) * horizon)
        )
        regrets.append(horizon * prior.best - compute_expected_reward(make_transition_model(job, row), prior, told))
    return np.array(regrets)


def _report_row_progress(progress: Callable[[int, int], None], before: int, total: int, steps: int) -> None:
    """Tell the steps of a row, after those of the rows before it."""
    progress(before + steps, total)


class CountsPosterior(NamedTuple):
    """What is known of the means before the first pull, and what follows from counts."""

    best: float
    """The expected highest mean."""
    means: Callable[[IntArray], FloatArray]
    """The posterior means of all arms, for rows of counts."""
    size: int
    """Numbers that `means` needs for a row."""


def make_counts_posterior(problem: Problem) -> CountsPosterior:
    """The prior of a problem whose posterior is known from counts."""
    # Exactly these: a subclass may draw its means in another way.
    if type(problem) is Bernoulli:
        shapes = np.broadcast_to(np.array(problem.prior), (problem.arms, 2))
        best = beta_quadrature.compute_expected_max([(float(a), float(b)) for a, b in shapes])
        return CountsPosterior(best, lambda counts: compute_beta_means(shapes, counts), 4 * problem.arms)
    if type(problem) is Mixture:
        likely = np.array(problem.weights) > 0
        weights, means = np.array(problem.weights)[likely], np.array(problem.means)[likely]
        best = float(weights @ means.max(axis=1))
        return CountsPosterior(best, lambda counts: compute_mixture_means(weights, means, counts), 4 * max(means.shape))
    raise InvalidRequest(
        f"exact regrets need a problem whose posterior is known from counts, bernoulli or mixture, but got "
        f"{problem.name!r}; simulate() it instead."
    )


def compute_beta_means(shapes: FloatArray, counts: IntArray) -> FloatArray:
    """Posterior means of arms with Beta priors."""
    found: FloatArray = (extract_successes(counts) + shapes[:, 0]) / (extract_pulls(counts) + shapes.sum(axis=1))
    return found


def compute_mixture_means(weights: FloatArray, means: FloatArray, counts: IntArray) -> FloatArray:
    """Posterior means where the vector of means is one of a few.

    A mean of 0 or 1 has an infinite logarithm, so what it rules out is counted apart.
    """
    successes = extract_successes(counts).astype(np.float64)
    failures = extract_pulls(counts) - successes
    never, always = means == 0, means == 1
    log_likelihood = np.log(weights) + successes @ np.log(means + never).T + failures @ np.log1p(always - means).T
    log_likelihood[successes @ never.T + failures @ always.T > 0] = -np.inf
    posterior = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    found: FloatArray = posterior @ means / posterior.sum(axis=1, keepdims=True)
    return found


def compute_expected_reward(
    player: TransitionModel, prior: CountsPosterior, told: Callable[[int], None] | None = None
) -> float:
    """The expected sum of rewards, by going through all states of every step, each of which is `told`."""
    job, arms = player.job, player.job.problem.arms
    size = max(1, TEMPORARY_NUMBERS // (prior.size + 4 * player.width))
    earned = 0.0
    counted = [1]
    try:
        layer = StateLayer(player.width, 1)
        layer.add(np.zeros((1, player.width), np.int64), np.ones(1))
        for step in range(job.horizon):
            last = step + 1 == job.horizon
            following = StateLayer(
                player.width, 1 if last else int(layer.count * 1.1) + 2 * min(size, layer.count) + 16
            )
            turns = player.turns(step, layer.words)
            for at in iterate_slices(layer.count, size):
                means = prior.means(layer.words[at, :arms])
                for turn in turns(at):
                    pays = means[np.arange(len(means)), turn.arm]
                    chance = layer.chances[at] * turn.chance
                    earned += float(chance @ pays)
                    # After the last step nobody asks for the states.
                    if not last:
                        following.add(turn.lost, chance * (1 - pays))
                        following.add(turn.won, chance * pays)
            layer = following
            counted.append(layer.count)
            if told is not None:
                told(step + 1)
    except LayerOverflow as full:
        raise table_cache.TableTooLarge(describe_state_overflow(job, counted, full.args[0])) from None
    return earned


def describe_state_overflow(job: SimulationSpec, counted: list[int], needed: float) -> str:
    """Say that the states of a step do not fit, and what the horizon would need if they went on growing like this."""
    fits = len(counted)
    middle = (fits - 1) // 2
    power = math.log(counted[-1] / counted[middle]) / math.log(fits / (middle + 1)) if middle > 0 else 1.0
    wanted, free = (
        memory.format_bytes(needed * (job.horizon / (fits + 1)) ** power),
        memory.format_bytes(memory.measure_free_memory()),
    )
    return (
        f"the states of {job.policy.name} on {job.problem.arms} arms must fit into memory, but at horizon={job.horizon} "
        f"they would need about {wanted} of {free} that are free, by their growth so far; the largest horizon that fits is "
        f"about {fits}."
    )
