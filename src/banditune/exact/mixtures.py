"""The best that any policy can do where the mean rewards are one of a few known vectors, and the policy that does it.

A *node* is a belief, the posterior over the instances, at a step. Histories that lead to the same belief share a node.
Layers of nodes are made forward, one for each step; values and choices backward.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from banditune.checks import check_whole, is_open
from banditune.contracts import PROBLEM, BadRequest, Floats, Integers, Policy, scalar
from banditune.exact import room
from banditune.exact.two_arms import TIE
from banditune.problems import Mixture

SAME = 1e-10
"""Beliefs whose log-weights differ by less than about this, as rounding may do, share a node."""

FORGOTTEN = -55.0
"""An instance whose log-weight, relative to the largest, is below this is ruled out.

An instance of probability p adds at most p to the reward of each later step, so that this costs less than
horizon^2 instances e^-55: for horizon 10,000 and ten instances 1e-15.
"""

RULED_OUT = 2.0**60
"""What stands for an instance that is ruled out, in whole multiples of `SAME`; no log-weight is as large."""

KEPT = 16
WORK, WORK_PER_INSTANCE = 128, 80
"""Bytes for a node and an arm: of a layer, and of all that is needed while it is made."""

VERSION = 1
"""Part of a table's name on disk: raised when tables are made in another way."""


Progress = Callable[[int, int], None]
"""Called with the steps that are done and all steps."""


class Layer(NamedTuple):
    """The nodes of one step: chances of success (node, arm), and the nodes after failure and success (node, arm, 2)."""

    chances: Floats
    after: NDArray[np.int32]


def optimal_reward(
    means: Any, weights: Any, horizon: int, free: float | None = None, progress: Progress | None = None
) -> float:
    """The largest expected total reward on Bernoulli arms whose means are row i of `means` with probability weights[i].

    Up to rounding: for horizon 10,000 about 1e-9. `free` is the memory that there is for it, if not all that is free.
    """
    value = 0.0
    for values, _ in backward(layers(Mixture(means, weights), check_whole("horizon", horizon, 1), free, progress)):
        value = float(values[0])
    return value


def optimal_machine(means: Any, weights: Any, horizon: int) -> NDArray[np.int32]:
    """The optimal policy as (arm, node after failure, node after success) for every node that it can reach, in one row.

    Node 0 is the prior; after the last step nothing follows, and a node leads to itself.
    """
    problem, horizon = Mixture(means, weights), check_whole("horizon", horizon, 1)

    def make() -> NDArray[Any]:
        # Each layer is given up for its moves, which are smaller: no more is kept than before.
        return reachable([move for _, move in backward(layers(problem, horizon))])

    return room.kept("optimal-mixture", [VERSION, problem.means, problem.weights, horizon], make, np.int32, None)


def layers(problem: Mixture, horizon: int, free: float | None = None, progress: Progress | None = None) -> list[Layer]:
    """Every belief that can be reached in each step, whatever is pulled; steps are told to `progress(done, total)`."""
    means, logs = instances_of(problem)
    made: list[Layer] = []
    kept: list[float] = []
    free = room.free_memory() if free is None else free
    for step in range(horizon):
        nodes, arms = logs.shape[1], means.shape[1]
        kept.append(sum(kept[-1:]) + KEPT * nodes * arms)
        work = (WORK + WORK_PER_INSTANCE * len(means)) * nodes * arms
        if kept[-1] + work > room.SHARE * free:
            raise room.TooLarge(too_large(kept, horizon, free))
        layer, logs = next_layer(means, logs, last=step == horizon - 1)
        made.append(layer)
        if progress is not None:
            progress(step + 1, horizon)
    return made


def instances_of(problem: Mixture) -> tuple[Floats, Floats]:
    """Means (instance, arm) and log-weights (instance, 1) of instances that are possible and differ."""
    weights = np.array(problem.weights)
    means, same = np.unique(np.array(problem.means)[weights > 0], axis=0, return_inverse=True)
    logs = np.log(np.bincount(same.reshape(-1), weights[weights > 0]))
    return means, (logs - logs.max())[:, None]


def next_layer(means: Floats, logs: Floats, *, last: bool) -> tuple[Layer, Floats]:
    """The layer of the nodes with these log-weights (instance, node), and the log-weights of the nodes after it.

    An outcome that no instance explains teaches nothing: the belief stays as it is.
    """
    weights = np.exp(logs)
    weights /= weights.sum(axis=0)
    chances = np.clip(weights.T @ means, 0.0, 1.0)
    if last:
        return Layer(chances, np.zeros((*chances.shape, 2), np.int32)), logs[:, :0]
    with np.errstate(divide="ignore"):
        told = np.stack([np.log1p(-means), np.log(means)], axis=-1)
    followers = logs[:, :, None, None] + told[:, None]
    largest = followers.max(axis=0)
    unexplained = np.isneginf(largest)
    followers[:, unexplained] = logs[:, np.nonzero(unexplained)[0]]
    largest[unexplained] = 0.0
    followers -= largest
    followers[followers < FORGOTTEN] = -np.inf
    shape, followers = largest.shape, followers.reshape(len(logs), -1)
    met, which = merged(followers)
    return Layer(chances, which.reshape(shape)), followers[:, met]


def merged(logs: Floats) -> tuple[Integers, NDArray[np.int32]]:
    """Where each different column is met, and which of these every column is.

    Columns are sorted by one random mixture of their numbers; two that differ have the same once in 2^63 times, and then
    another mixture is taken.
    """
    keys = np.round(logs / SAME)
    keys[np.isneginf(keys)] = RULED_OUT
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


def too_large(kept: list[float], horizon: int, free: float) -> str:
    """A sentence for a horizon that does not fit, where kept[n - 1] bytes are kept for horizon n, the last one too many.

    Its bytes are estimated as if they went on growing as they did over the second half of these.
    """
    known = len(kept)
    half = max(1, known // 2)
    growth = math.log(kept[-1] / kept[half - 1]) / math.log(known / half) if known > 1 else 1.0
    return (
        f"the beliefs of all steps must fit into memory, but at horizon={horizon} they need about "
        f"{room.gib(kept[-1] * (horizon / known) ** growth)} of {room.gib(free)} that are free (they grew like "
        f"horizon^{growth:.1f} up to horizon {known}); the largest horizon that fits is {known - 1}."
    )


def backward(made: list[Layer]) -> Iterator[tuple[Floats, NDArray[np.int32]]]:
    """Values of the nodes and the moves (arm, node after failure, node after success), from the last step to the first.

    Ties go to the lowest arm. The layers are used up.
    """
    later = np.zeros(1)
    left = 0
    while made:
        left += 1
        chances, after = made.pop()
        values, choices = np.full(len(chances), -np.inf), np.zeros(len(chances), np.int32)
        for arm in range(chances.shape[1]):
            chance = chances[:, arm]
            failed, succeeded = later[after[:, arm, 0]], later[after[:, arm, 1]]
            value = chance * (1 + succeeded) + (1 - chance) * failed
            choices[value > values + TIE * left] = arm
            values = np.maximum(values, value)
        yield values, np.column_stack([choices, after[np.arange(len(after)), choices]])
        later = values


def reachable(moves: list[NDArray[np.int32]]) -> NDArray[np.int32]:
    """The moves of nodes that can be reached, numbered one after the other; `moves` starts with the last step."""
    table = []
    nodes = np.zeros(1, np.int64)
    first = 0
    while moves:
        found = moves.pop()[nodes].astype(np.int64)
        count = len(nodes)
        if moves:
            nodes, which = np.unique(found[:, 1:], return_inverse=True)
            found[:, 1:] = first + count + which.reshape(-1, 2)
        else:
            found[:, 1:] = first + np.arange(count)[:, None]
        table.append(found.astype(np.int32))
        first += count
    return np.concatenate(table).reshape(-1)


class Node(NamedTuple):
    """The number of the current node."""

    number: Floats


@scalar
def view_node(memory, setting):
    """One float."""
    return Node(memory[:1])


@scalar
def start_node(state, setting):
    """The prior."""
    state.number[0] = 0.0


@scalar
def choose_move(state, setting, step, params, stream):
    """The node's arm."""
    return setting.options[3 * int(state.number[0])]


@scalar
def update_node(state, setting, arm, reward, stream):
    """On to the node after failure or success."""
    success = 1 if reward >= 0.5 else 0
    state.number[0] = setting.options[3 * int(state.number[0]) + 1 + success]


@dataclass(frozen=True)
class OptimalMixture(Policy):
    """The best choice for arms that pay 0 or 1 with means of a known mixture and a known horizon; nothing to tune.

    It walks a table of all beliefs that it can have.
    """

    means: Any = PROBLEM
    weights: Any = PROBLEM

    name = "optimal-mixture"
    rewards: ClassVar[str] = "binary"
    view = staticmethod(view_node)
    start = staticmethod(start_node)
    choose = staticmethod(choose_move)
    update = staticmethod(update_node)

    def __post_init__(self) -> None:
        if is_open(self.means):
            if not is_open(self.weights):
                raise BadRequest("`weights` must be left out where `means` are the problem's, but got both.")
            return
        weights = None if is_open(self.weights) else self.weights
        checked = Mixture(self.means, weights)
        object.__setattr__(self, "means", checked.means)
        object.__setattr__(self, "weights", None if weights is None else checked.weights)

    def memory(self, arms: int, dims: int) -> int:
        return 1

    def options(self, arms: int, dims: int, horizon: int) -> NDArray[np.int32]:
        if arms != len(self.means[0]):
            raise BadRequest(
                f"`means` of {self.name} must have as many columns as the problem has arms, {arms}, but they have "
                f"{len(self.means[0])}; give it the means and weights of the problem."
            )
        return optimal_machine(self.means, self.weights, horizon)
