"""Probabilities with which Thompson sampling and epsilon-greedy pull each arm, computed from the counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.exact import beta_quadrature
from banditune.exact.packed_counts import extract_pulls, extract_successes, iterate_slices
from banditune.policies.epsilon_greedy import choose_epsilon_greedy
from banditune.policies.thompson import choose_thompson, update_thompson
from banditune.simulation.estimators.arm_totals import start_totals, update_totals, view_totals


class ArmProbabilities(NamedTuple):
    """A policy whose arm probabilities are functions of counts.

    `compute_probabilities(params, options, counts)` returns a row per state.
    """

    draws_randomly: Callable[[FloatArray], bool]
    """Whether the policy draws random numbers with these parameters."""
    compute_probabilities: Callable[[FloatArray, FloatArray, IntArray], FloatArray]


def compute_epsilon_greedy_probabilities(params: FloatArray, options: FloatArray, counts: IntArray) -> FloatArray:
    """Compute the probabilities of epsilon-greedy: any arm with probability epsilon, else the highest mean.

    Arms without pulls precede others.
    """
    pulls = extract_pulls(counts)
    means = np.where(pulls > 0, extract_successes(counts) / np.maximum(pulls, 1), np.inf)
    arms = counts.shape[1]
    epsilon = min(max(params[0], 0.0), 1.0)
    probabilities: FloatArray = epsilon / arms + (1 - epsilon) * np.eye(arms)[means.argmax(axis=1)]
    return probabilities


def compute_thompson_probabilities(params: FloatArray, options: FloatArray, counts: IntArray) -> FloatArray:
    """Compute the probability that each arm has the highest draw.

    It is an integral of the density of the arm and the distribution functions of the others. The arms are divided into two
    halves. Each integrand is a product of one factor per half, so the integrals of all states are matrix products. There
    is one matrix product for each number of pulls of the left half.
    """
    arms = counts.shape[1]
    probabilities = np.empty((len(counts), arms))
    cut = arms // 2
    lefts, left_of = find_distinct_rows(counts[:, :cut])
    rights, right_of = find_distinct_rows(counts[:, cut:])
    order = np.argsort(left_of, kind="stable")
    first_of = np.searchsorted(left_of[order], np.arange(len(lefts) + 1))
    step = int(extract_pulls(counts[0]).sum())
    right_pulls = extract_pulls(rights).sum(axis=1)
    for at in iterate_key_slices(extract_pulls(lefts).sum(axis=1)):
        states = order[first_of[at.start] : first_of[at.stop]]
        across = np.flatnonzero(right_pulls == step - int(extract_pulls(lefts[at.start]).sum()))
        grid = compute_probability_grid(params[0], options, lefts[at], rights[across])
        probabilities[states] = grid[:, left_of[states] - at.start, np.searchsorted(across, right_of[states])].T
    # Rounding errors: an integral may be -1e-17, and a sum 1 + 1e-15.
    probabilities = np.maximum(probabilities, 0.0)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities


ROWS_PER_PRODUCT = 512
"""The number of rows of nodes that are multiplied at once."""


def find_distinct_rows(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Find the distinct rows, sorted by pulls, and the position of each row in them."""
    rows, row_numbers = np.unique(counts, axis=0, return_inverse=True)
    order = np.argsort(extract_pulls(rows).sum(axis=1), kind="stable")
    return rows[order], np.argsort(order)[row_numbers.reshape(-1)]


def iterate_key_slices(keys: IntArray) -> Iterator[slice]:
    """Cut rows, sorted by a key, into slices with one key each and at most `ROWS_PER_PRODUCT` rows."""
    edges = np.flatnonzero(np.diff(keys, prepend=-1, append=-1))
    for first, stop in pairwise(edges.tolist()):
        for at in iterate_slices(stop - first, ROWS_PER_PRODUCT):
            yield slice(first + at.start, first + at.stop)


def compute_probability_grid(gamma: float, options: FloatArray, lefts: IntArray, rights: IntArray) -> FloatArray:
    """Compute the probability that an arm has the highest draw: (arms, rows of the left half, rows of the right half)."""
    cut = lefts.shape[1]
    grid = np.empty((cut + rights.shape[1], len(lefts), len(rights)))
    below_left, best_left = compute_integrands(gamma, options, lefts)
    for at in iterate_slices(len(rights), ROWS_PER_PRODUCT):
        below_right, best_right = compute_integrands(gamma, options, rights[at])
        for arm, best in enumerate(best_left):
            grid[arm, :, at] = best @ below_right.T
        for arm, best in enumerate(best_right, cut):
            grid[arm, :, at] = below_left @ best.T
    return grid


def compute_integrands(gamma: float, options: FloatArray, counts: IntArray) -> tuple[FloatArray, list[FloatArray]]:
    """Compute at every node, for rows of counts: P(all arms are below), and per arm P(it is at the node, others below)."""
    densities, distributions = [], []
    for column in counts.T:
        shapes = [
            ((s + options[0]) / (gamma * gamma), (n - s + options[1]) / (gamma * gamma))
            for n, s in zip(extract_pulls(column).tolist(), extract_successes(column).tolist(), strict=True)
        ]
        densities.append(np.stack([beta_quadrature.compute_beta_weights(*shape) for shape in shapes]))
        distributions.append(np.stack([beta_quadrature.compute_beta_cdf(*shape) for shape in shapes]))
    best = []
    for arm, density in enumerate(densities):
        for rival, distribution in enumerate(distributions):
            if rival != arm:
                density = density * distribution
        best.append(density)
    return np.prod(distributions, axis=0), best


KNOWN_ARM_PROBABILITIES: Mapping[tuple[Callable[..., Any], ...], ArmProbabilities] = MappingProxyType(
    {
        (view_totals, start_totals, choose_thompson, update_thompson): ArmProbabilities(
            lambda params: params[0] >= 1e-9,
            compute_thompson_probabilities,  # as in `choose_thompson`
        ),
        (view_totals, start_totals, choose_epsilon_greedy, update_totals): ArmProbabilities(
            lambda params: True, compute_epsilon_greedy_probabilities
        ),
    }
)
"""The arm probabilities of policies, by the functions of the policy. Other policies must not draw random numbers."""
