"""The optimal policy if the mean rewards are one of a few known vectors, and its value.

A *node* is a posterior over the instances at a step. Histories with the same posterior have the same node. Layers of nodes
are computed forward, one for each step. Values and choices are computed backward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.checks import check_integer, is_from_problem
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Message, Setting
from banditune.core.policy import FROM_PROBLEM, Policy
from banditune.core.scalar import scalar
from banditune.exact import table_cache
from banditune.exact.optimal_two_arms import TIE_TOLERANCE
from banditune.problems.bernoulli_arms import Mixture
from banditune.simulation import memory

POSTERIOR_TOLERANCE = 1e-10
"""Posteriors have the same node if their log-weights differ by less than about this, which may be rounding."""


RULED_OUT_LOG_WEIGHT = -55.0
"""An instance is excluded if its log-weight, relative to the largest, is below this.

An instance of probability p adds at most p to the reward of each later step. So the error is below
horizon^2 instances e^-55: 1e-15 for horizon 10,000 and ten instances.
"""


RULED_OUT_KEY = 2.0**60
"""The key of an excluded instance, in multiples of `POSTERIOR_TOLERANCE`. All log-weights are smaller."""


KEPT_BYTES = 16
"""The bytes of a finished layer for each node and arm."""


WORK_BYTES, WORK_BYTES_PER_INSTANCE = 128, 80
"""The bytes for each node and arm while a layer is computed: a constant, and the number per instance."""


MIXTURE_TABLE_VERSION = 1
"""A version in the name of a table on disk. It is increased when tables are computed in another way."""


StepProgress = Callable[[int, int], None]
"""Called with the number of finished steps and of all steps."""


class PosteriorLayer(NamedTuple):
    """Nodes of one step: probabilities of success (node, arm), and next nodes after failure and success (node, arm, 2)."""

    success_probabilities: FloatArray
    next_nodes: NDArray[np.int32]


def compute_optimal_reward_mixture(
    means: Any, weights: Any, horizon: int, free: float | None = None, progress: StepProgress | None = None
) -> float:
    """Compute the largest expected total reward on Bernoulli arms with a mixture of means.

    The means are row i of `means` with probability weights[i].

    It is exact up to rounding: about 1e-9 for horizon 10,000. `free` limits the memory for it; by default it is all free
    memory.
    """
    value = 0.0
    for values, _ in iterate_backward(
        build_posterior_layers(Mixture(means, weights), check_integer("horizon", horizon, 1), free, progress)
    ):
        value = float(values[0])
    return value


def compute_optimal_machine(means: Any, weights: Any, horizon: int) -> NDArray[np.int32]:
    """Compute the optimal policy as (arm, node after failure, node after success) for every reachable node, in one row.

    Node 0 is the prior. Nodes of the last step lead to themselves.
    """
    problem, horizon = Mixture(means, weights), check_integer("horizon", horizon, 1)

    def make() -> NDArray[Any]:
        # Each layer is replaced by its moves, which need less memory.
        return select_reachable_moves([move for _, move in iterate_backward(build_posterior_layers(problem, horizon))])

    return table_cache.load_or_make_table(
        "optimal-mixture", [MIXTURE_TABLE_VERSION, problem.means, problem.weights, horizon], make, np.int32, None
    )


def build_posterior_layers(
    problem: Mixture, horizon: int, free: float | None = None, progress: StepProgress | None = None
) -> list[PosteriorLayer]:
    """Build the posteriors that can be reached in each step; `progress(done, total)` is called after each step."""
    means, logs = list_distinct_instances(problem)
    layers: list[PosteriorLayer] = []
    layer_bytes: list[float] = []
    free = memory.measure_free_memory() if free is None else free
    for step in range(horizon):
        nodes, arms = logs.shape[1], means.shape[1]
        layer_bytes.append(sum(layer_bytes[-1:]) + KEPT_BYTES * nodes * arms)
        work = (WORK_BYTES + WORK_BYTES_PER_INSTANCE * len(means)) * nodes * arms
        if layer_bytes[-1] + work > memory.USABLE_MEMORY_SHARE * free:
            raise table_cache.TableTooLarge(describe_mixture_overflow(layer_bytes, horizon, free))
        layer, logs = build_next_layer(means, logs, last=step == horizon - 1)
        layers.append(layer)
        if progress is not None:
            progress(step + 1, horizon)
    return layers


def list_distinct_instances(problem: Mixture) -> tuple[FloatArray, FloatArray]:
    """List means (instance, arm) and log-weights (instance, 1) of the possible, distinct instances."""
    weights = np.array(problem.weights)
    means, inverse = np.unique(np.array(problem.means)[weights > 0], axis=0, return_inverse=True)
    logs = np.log(np.bincount(inverse.reshape(-1), weights[weights > 0]))
    return means, (logs - logs.max())[:, None]


def build_next_layer(means: FloatArray, logs: FloatArray, *, last: bool) -> tuple[PosteriorLayer, FloatArray]:
    """Build the layer of nodes with these log-weights (instance, node). Return it and the log-weights of the next nodes.

    An outcome that is impossible under all instances does not change the posterior.
    """
    weights = np.exp(logs)
    weights /= weights.sum(axis=0)
    chances = np.clip(weights.T @ means, 0.0, 1.0)
    if last:
        return PosteriorLayer(chances, np.zeros((*chances.shape, 2), np.int32)), logs[:, :0]
    with np.errstate(divide="ignore"):
        log_likelihoods = np.stack([np.log1p(-means), np.log(means)], axis=-1)
    followers = logs[:, :, None, None] + log_likelihoods[:, None]
    largest = followers.max(axis=0)
    unexplained = np.isneginf(largest)
    followers[:, unexplained] = logs[:, np.nonzero(unexplained)[0]]
    largest[unexplained] = 0.0
    followers -= largest
    followers[followers < RULED_OUT_LOG_WEIGHT] = -np.inf
    shape, followers = largest.shape, followers.reshape(len(logs), -1)
    met, which = merge_equal_columns(followers)
    return PosteriorLayer(chances, which.reshape(shape)), followers[:, met]


def merge_equal_columns(logs: FloatArray) -> tuple[IntArray, NDArray[np.int32]]:
    """Find one position of each distinct column, and for every column the number of the equal one.

    Columns are sorted by a random linear combination of their numbers. Different columns have the same value with
    probability 2^-63. In this case another combination is drawn.
    """
    keys = np.round(logs / POSTERIOR_TOLERANCE)
    keys[np.isneginf(keys)] = RULED_OUT_KEY
    keys = keys.astype(np.int64)
    rng = np.random.default_rng(0)
    while True:
        mixed = rng.integers(-(2**63), 2**63 - 1, len(keys)) @ keys
        order = np.argsort(mixed)
        mixed = mixed[order]
        differs = np.concatenate([[True], mixed[1:] != mixed[:-1]])
        which = np.empty(len(order), np.int32)
        which[order] = np.cumsum(differs) - 1
        met = order[differs]
        if all(np.array_equal(row[met][which], row) for row in keys):
            return met, which


def describe_mixture_overflow(layer_bytes: list[float], horizon: int, free: float) -> str:
    """Describe a horizon whose layers do not fit. Horizon n needs layer_bytes[n - 1], and the last of these is too large.

    The bytes of longer horizons are extrapolated from the growth in the second half of `layer_bytes`.
    """
    count = len(layer_bytes)
    half = max(1, count // 2)
    growth = math.log(layer_bytes[-1] / layer_bytes[half - 1]) / math.log(count / half) if count > 1 else 1.0
    needed = layer_bytes[-1] * (horizon / count) ** growth
    return Message(
        "the posteriors of all steps must fit into memory, but at {} they need about {} of {} that are free (they grew "
        "like horizon^{:.1f} up to horizon {}); the largest horizon that fits is {}.",
        *(
            Setting("horizon", horizon),
            memory.format_bytes(needed),
            memory.format_bytes(free),
            growth,
            count,
            count - 1,
        ),
    )


def iterate_backward(layers: list[PosteriorLayer]) -> Iterator[tuple[FloatArray, NDArray[np.int32]]]:
    """Yield values of nodes and moves (arm, node after failure, node after success), from the last step to the first.

    Ties go to the lowest arm. The list of layers is emptied.
    """
    later = np.zeros(1)
    rounds_left = 0
    while layers:
        rounds_left += 1
        chances, after = layers.pop()
        values, choices = np.full(len(chances), -np.inf), np.zeros(len(chances), np.int32)
        for arm in range(chances.shape[1]):
            chance = chances[:, arm]
            failed, succeeded = later[after[:, arm, 0]], later[after[:, arm, 1]]
            value = chance * (1 + succeeded) + (1 - chance) * failed
            choices[value > values + TIE_TOLERANCE * rounds_left] = arm
            values = np.maximum(values, value)
        yield values, np.column_stack([choices, after[np.arange(len(after)), choices]])
        later = values


def select_reachable_moves(moves: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """Select the moves of reachable nodes, with new numbers; `moves` starts with the last step."""
    table = []
    nodes = np.zeros(1, np.int64)
    first = 0
    while moves:
        selected = moves.pop()[nodes].astype(np.int64)
        count = len(nodes)
        if moves:
            nodes, which = np.unique(selected[:, 1:], return_inverse=True)
            selected[:, 1:] = first + count + which.reshape(-1, 2)
        else:
            selected[:, 1:] = first + np.arange(count)[:, None]
        table.append(selected.astype(np.int32))
        first += count
    return np.concatenate(table).reshape(-1)


class MixtureNode(NamedTuple):
    """The number of the current node."""

    number: FloatArray


@scalar
def view_node(memory, setting):
    """View the memory, one float, as the number of the node."""
    return MixtureNode(memory[:1])


@scalar
def start_node(state, setting):
    """Set the node to the prior."""
    state.number[0] = 0.0


@scalar
def choose_move(state, setting, step, params, stream):
    """Choose the arm of the node."""
    return setting.options[3 * int(state.number[0])]


@scalar
def update_node(state, setting, step, params, arm, reward, stream):
    """Set the node to the next one, after a failure or a success."""
    success = 1 if reward >= 0.5 else 0
    state.number[0] = setting.options[3 * int(state.number[0]) + 1 + success]


@dataclass(frozen=True)
class OptimalMixture(Policy):
    """The optimal policy for 0/1 rewards, with means from a known mixture, and a known horizon. It has no parameter.

    It uses a table of all posteriors that it can reach.

    Parameters
    ----------
    means : sequence of sequence of float or "problem"
        The vectors of mean rewards, a row each, as in `Mixture`. By default they are taken from the problem.
    weights : sequence of float or "problem", optional
        Weights of the rows. By default they are taken from the problem. If only `means` are given, rows have equal
        weights.

    Raises
    ------
    InvalidRequest
        If weights are given without means, or if either cannot be used.

    Examples
    --------
    >>> import banditune as bt
    >>> bt.simulate(bt.exact.OptimalMixture(), bt.Mixture([(0.6, 0.4), (0.4, 0.6)]), horizon=50, runs=100).shape
    (1, 100)
    """

    means: Any = FROM_PROBLEM
    weights: Any = FROM_PROBLEM

    name = "optimal-mixture"
    rewards: ClassVar[str] = "binary"
    view = staticmethod(view_node)
    start = staticmethod(start_node)
    choose = staticmethod(choose_move)
    update = staticmethod(update_node)

    def __post_init__(self) -> None:
        if is_from_problem(self.means):
            if not is_from_problem(self.weights):
                raise InvalidRequest(
                    "`weights` must be left out if `means` are taken from the problem, but got weights.",
                    argument="weights",
                    code="conflict",
                )
            return
        weights = None if is_from_problem(self.weights) else self.weights
        checked = Mixture(self.means, weights)
        object.__setattr__(self, "means", checked.means)
        object.__setattr__(self, "weights", None if weights is None else checked.weights)

    def memory(self, arms: int, dims: int, horizon: int) -> int:
        return 1

    def options(self, arms: int, dims: int, horizon: int) -> NDArray[np.int32]:
        if arms != len(self.means[0]):
            raise InvalidRequest(
                f"`means` of {self.name} must have as many columns as the problem has arms, {arms}, but they have "
                f"{len(self.means[0])}; give it the means and weights of the problem.",
                argument="means",
                code="conflict",
            )
        return compute_optimal_machine(self.means, self.weights, horizon)
