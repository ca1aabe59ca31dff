"""Computes the exact Bayes regret of a policy on a few arms with rewards 0 or 1.

The probabilities of all states are computed step by step.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray, copy_read_only
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Message, Setting
from banditune.core.policy import Policy
from banditune.core.problem import Problem
from banditune.core.request_errors import make_argument_error
from banditune.exact import beta_quadrature, table_cache
from banditune.exact.packed_counts import extract_pulls, extract_successes, iterate_slices
from banditune.exact.policy_transitions import TransitionModel, make_transition_model
from banditune.exact.state_layers import LayerOverflow, StateLayer
from banditune.problems.bernoulli_arms import Bernoulli, Mixture
from banditune.simulation import memory
from banditune.simulation.spec import SimulationSpec

TEMPORARY_NUMBERS = 1 << 23
"""The approximate size of temporary arrays. Layers are processed in slices of this size."""


def compute_bayes_regret(
    policy: Policy, problem: Problem, rows: Any, horizon: int, progress: Callable[[int, int], None] | None = None
) -> FloatArray:
    """Compute the Bayes regret of a policy over `horizon` steps, one for each row of `rows`.

    The problem must be `Bernoulli` or `Mixture`. The policy must not draw random numbers, except for Thompson sampling and
    epsilon-greedy, whose probabilities are known. `progress(done, total)` is called after every step of every row.
    """
    prior = make_counts_posterior(problem)
    params = copy_read_only(rows)
    width = max(1, len(policy.parameters))
    if params.ndim != 2 or params.shape[1] != width or not np.isfinite(params).all():
        raise make_argument_error(
            "rows", "wrong-shape", f"must be rows of {width} finite numbers for {policy.name}, but got {rows!r}."
        )
    if policy.needs_features:
        raise InvalidRequest(
            f"{policy.name} needs features of arms, but those of {problem.name!r} have none.",
            argument="policy",
            code="unsupported",
        )
    spec = SimulationSpec(policy, problem, horizon)
    regrets = []
    for number, row in enumerate(params):
        report_step = (
            None
            if progress is None
            else partial(_report_row_progress, progress, number * horizon, len(params) * horizon)
        )
        regrets.append(
            horizon * prior.expected_best
            - compute_expected_reward(make_transition_model(spec, row), prior, report_step)
        )
    return np.array(regrets)


def _report_row_progress(progress: Callable[[int, int], None], before: int, total: int, steps: int) -> None:
    """Report the steps of a row, after those of the rows before it."""
    progress(before + steps, total)


class CountsPosterior(NamedTuple):
    """The prior of the means, and the posterior means as functions of counts."""

    expected_best: float
    """The expected highest mean."""
    compute_means: Callable[[IntArray], FloatArray]
    """The posterior means of all arms, for rows of counts."""
    row_size: int
    """The number of floats that `compute_means` needs for a row."""


def make_counts_posterior(problem: Problem) -> CountsPosterior:
    """Make the prior of a problem whose posterior depends only on counts."""
    # Subclasses are excluded, because they may draw their means in another way.
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
        f"exact regrets need a problem whose posterior depends only on counts, bernoulli or mixture, but got "
        f"{problem.name!r}; simulate() it instead.",
        argument="problem",
        code="unsupported",
    )


def compute_beta_means(shapes: FloatArray, counts: IntArray) -> FloatArray:
    """Compute posterior means of arms with Beta priors."""
    means: FloatArray = (extract_successes(counts) + shapes[:, 0]) / (extract_pulls(counts) + shapes.sum(axis=1))
    return means


def compute_mixture_means(weights: FloatArray, means: FloatArray, counts: IntArray) -> FloatArray:
    """Compute posterior means if the vector of means is one of a few.

    A mean of 0 or 1 has an infinite logarithm, so outcomes that are impossible with such a mean are counted separately.
    """
    successes = extract_successes(counts).astype(np.float64)
    failures = extract_pulls(counts) - successes
    never, always = means == 0, means == 1
    log_likelihood = np.log(weights) + successes @ np.log(means + never).T + failures @ np.log1p(always - means).T
    log_likelihood[successes @ never.T + failures @ always.T > 0] = -np.inf
    posterior = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    posterior_means: FloatArray = posterior @ means / posterior.sum(axis=1, keepdims=True)
    return posterior_means


def compute_expected_reward(
    model: TransitionModel, prior: CountsPosterior, progress: Callable[[int], None] | None = None
) -> float:
    """Compute the expected sum of rewards over all states. `progress(steps)` is called after each step."""
    spec, arms = model.spec, model.spec.problem.arms
    size = max(1, TEMPORARY_NUMBERS // (prior.row_size + 4 * model.state_width))
    earned = 0.0
    counted = [1]
    try:
        layer = StateLayer(model.state_width, 1)
        layer.add(np.zeros((1, model.state_width), np.int64), np.ones(1))
        for step in range(spec.horizon):
            last = step + 1 == spec.horizon
            following = StateLayer(
                model.state_width, 1 if last else int(layer.count * 1.1) + 2 * min(size, layer.count) + 16
            )
            turns = model.make_transitions(step, layer.rows)
            for at in iterate_slices(layer.count, size):
                means = prior.compute_means(layer.rows[at, :arms])
                for turn in turns(at):
                    rewards = means[np.arange(len(means)), turn.arm]
                    chance = layer.probabilities[at] * turn.probability
                    earned += float(chance @ rewards)
                    # The states after the last step are not needed.
                    if not last:
                        following.add(turn.after_failure, chance * (1 - rewards))
                        following.add(turn.after_success, chance * rewards)
            layer = following
            counted.append(layer.count)
            if progress is not None:
                progress(step + 1)
    except LayerOverflow as full:
        raise table_cache.TableTooLarge(describe_state_overflow(spec, counted, full.args[0])) from None
    return earned


def describe_state_overflow(spec: SimulationSpec, counted: list[int], needed: float) -> str:
    """Describe a step whose states do not fit into memory, and extrapolate the memory for the horizon."""
    fits = len(counted)
    middle = (fits - 1) // 2
    power = math.log(counted[-1] / counted[middle]) / math.log(fits / (middle + 1)) if middle > 0 else 1.0
    needs, free = (
        memory.format_bytes(needed * (spec.horizon / (fits + 1)) ** power),
        memory.format_bytes(memory.measure_free_memory()),
    )
    return Message(
        "the states of {} on {} arms must fit into memory, but at {} they would need about {} of {} that are free, by "
        "their growth so far; the largest horizon that fits is about {}.",
        *(spec.policy.name, spec.problem.arms, Setting("horizon", spec.horizon), needs, free, fits),
    )
