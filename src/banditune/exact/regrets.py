"""The exact Bayes regret of a policy on a few arms that pay 0 or 1.

What is known about the means is known from the counts: pulls and successes of every arm. So the probability that the
next pull of an arm pays is its posterior mean, and the probabilities of all states, counts and the policy's memory, are
carried forward step by step. Nothing is sampled, and nothing is integrated over instances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from banditune.contracts import BadRequest, Fault, Floats, Integers, Policy, Problem, Setting, Slot
from banditune.engine.bind import compile_for, kernel
from banditune.engine.run import Job, broken, dims_of, numbers_of, read_only, who
from banditune.exact import beliefs, room
from banditune.exact.layers import Full, Layer
from banditune.policies.arms import start_totals, update_totals, view_totals
from banditune.policies.simple import choose_epsilon_greedy
from banditune.policies.thompson import choose_sample, update_success
from banditune.problems.bernoulli import Bernoulli, Mixture
from banditune.streams import AGENT, LOW32, Stream

view = Slot("view")
start = Slot("start")
choose = Slot("choose")
update = Slot("update")
known = Slot("known")

PULL = 1 << 32
"""A state has a word for each arm, PULL pulls + successes, and then the policy's memory."""

PART = 1 << 23
"""Numbers in a temporary array: layers are worked on in parts of about this size."""


def bayes_regret(
    policy: Policy, problem: Problem, rows: Any, horizon: int, progress: Callable[[int, int], None] | None = None
) -> Floats:
    """The expected regret of a policy over `horizon` steps, averaged over the problem's prior: one for each row of `rows`.

    The problem must be `Bernoulli` or `Mixture`, and the policy must either draw no random numbers or be one whose chances
    are known: Thompson sampling and epsilon-greedy. `progress(done, total)` is called after every step of every row.
    """
    prior = prior_of(problem)
    params = read_only(rows)
    width = max(1, len(policy.parameters))
    if params.ndim != 2 or params.shape[1] != width or not np.isfinite(params).all():
        raise BadRequest(f"`rows` must be rows of {width} finite numbers for {policy.name}, but got {rows!r}.")
    if policy.needs_features:
        raise BadRequest(f"{policy.name} knows arms by their features, but those of {problem.name!r} have none.")
    job = Job(policy, problem, horizon)
    regrets = []
    for number, row in enumerate(params):
        told = None if progress is None else partial(_told, progress, number * horizon, len(params) * horizon)
        regrets.append(horizon * prior.best - expected_reward(player_for(job, row), prior, told))
    return np.array(regrets)


def _told(progress: Callable[[int, int], None], before: int, total: int, steps: int) -> None:
    """Tell the steps of a row, after those of the rows before it."""
    progress(before + steps, total)


class Prior(NamedTuple):
    """What is known of the means before the first pull, and what follows from counts."""

    best: float
    """The expected highest mean."""
    means: Callable[[Integers], Floats]
    """The posterior means of all arms, for rows of counts."""
    size: int
    """Numbers that `means` needs for a row."""


def prior_of(problem: Problem) -> Prior:
    """The prior of a problem whose posterior is known from counts."""
    # Exactly these: a subclass may draw its means in another way.
    if type(problem) is Bernoulli:
        shapes = np.broadcast_to(np.array(problem.prior), (problem.arms, 2))
        best = beliefs.expected_max([(float(a), float(b)) for a, b in shapes])
        return Prior(best, lambda counts: beta_means(shapes, counts), 4 * problem.arms)
    if type(problem) is Mixture:
        likely = np.array(problem.weights) > 0
        weights, means = np.array(problem.weights)[likely], np.array(problem.means)[likely]
        best = float(weights @ means.max(axis=1))
        return Prior(best, lambda counts: mixture_means(weights, means, counts), 4 * max(means.shape))
    raise BadRequest(
        f"exact regrets need a problem whose posterior is known from counts, bernoulli or mixture, but got "
        f"{problem.name!r}; simulate() it instead."
    )


def beta_means(shapes: Floats, counts: Integers) -> Floats:
    """Posterior means of arms with Beta priors."""
    found: Floats = (successes_of(counts) + shapes[:, 0]) / (pulls_of(counts) + shapes.sum(axis=1))
    return found


def mixture_means(weights: Floats, means: Floats, counts: Integers) -> Floats:
    """Posterior means where the vector of means is one of a few.

    A mean of 0 or 1 has an infinite logarithm, so what it rules out is counted apart.
    """
    successes = successes_of(counts).astype(np.float64)
    failures = pulls_of(counts) - successes
    never, always = means == 0, means == 1
    log_likelihood = np.log(weights) + successes @ np.log(means + never).T + failures @ np.log1p(always - means).T
    log_likelihood[successes @ never.T + failures @ always.T > 0] = -np.inf
    posterior = np.exp(log_likelihood - log_likelihood.max(axis=1, keepdims=True))
    found: Floats = posterior @ means / posterior.sum(axis=1, keepdims=True)
    return found


def pulls_of(counts: Integers) -> Integers:
    """Pulls from words of counts."""
    return counts >> 32


def successes_of(counts: Integers) -> Integers:
    """Successes from words of counts."""
    return counts & LOW32


class Turn(NamedTuple):
    """One step of some states: the arm that is pulled, with which chance, and the states after a failure and a success."""

    arm: Integers
    chance: Any
    lost: Integers
    won: Integers


def expected_reward(player: Player, prior: Prior, told: Callable[[int], None] | None = None) -> float:
    """The expected sum of rewards, by going through all states of every step, each of which is `told`."""
    job, arms = player.job, player.job.problem.arms
    size = max(1, PART // (prior.size + 4 * player.width))
    earned = 0.0
    counted = [1]
    try:
        layer = Layer(player.width, 1)
        layer.add(np.zeros((1, player.width), np.int64), np.ones(1))
        for step in range(job.horizon):
            last = step + 1 == job.horizon
            following = Layer(player.width, 1 if last else int(layer.count * 1.1) + 2 * min(size, layer.count) + 16)
            turns = player.turns(step, layer.words)
            for at in parts(layer.count, size):
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
    except Full as full:
        raise room.TooLarge(too_large(job, counted, full.args[0])) from None
    return earned


def too_large(job: Job, counted: list[int], needed: float) -> str:
    """Say that the states of a step do not fit, and what the horizon would need if they went on growing like this."""
    fits = len(counted)
    middle = (fits - 1) // 2
    power = math.log(counted[-1] / counted[middle]) / math.log(fits / (middle + 1)) if middle > 0 else 1.0
    wanted, free = room.gib(needed * (job.horizon / (fits + 1)) ** power), room.gib(room.free_memory())
    return (
        f"the states of {job.policy.name} on {job.problem.arms} arms must fit into memory, but at horizon={job.horizon} "
        f"they would need about {wanted} of {free} that are free, by their growth so far; the largest horizon that fits is "
        f"about {fits}."
    )


Turns = Callable[[slice], Iterator[Turn]]
"""What can happen in some of a layer's states."""


class Player(NamedTuple):
    """How a policy goes one step ahead: `turns(step, words)`, for the states of a layer."""

    job: Job
    width: int
    """Words of a state."""
    turns: Callable[[int, Integers], Turns]


def player_for(job: Job, params: Floats) -> Player:
    """The player of a policy: from its chances where it draws and they are known, else by its own functions."""
    policy, arms = job.policy, job.problem.arms
    if policy.plays_itself:
        raise BadRequest(
            f"exact regrets need a policy of scalar functions, but {policy.name!r} is an object that plays itself; "
            "simulate() it instead."
        )
    options = numbers_of(policy.options(arms, job.problem.dims, job.horizon))
    drawing = DRAWING.get((policy.view, policy.start, policy.choose, policy.update))
    if drawing is None or not drawing.draws(params):
        width = arms + policy.memory(arms, job.problem.dims)
        return Player(job, width, Script(job, params, options).turns)
    what = f"the table of all counts of {arms} arms, for {policy.name},"
    room.check_fits(what, lambda horizon: all_counts_bytes(arms, horizon), job.horizon)
    return Player(job, arms, Draw(lambda counts: drawing.chances(params, options, counts)).turns)


def parts(count: int, size: int) -> Iterator[slice]:
    """Cut so many into parts."""
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))


# Policies that draw, with known chances.


class Drawing(NamedTuple):
    """A policy whose chances are known from counts: `chances(params, options, counts)` has a row per state."""

    draws: Callable[[Floats], bool]
    """Whether it draws at all with these parameters."""
    chances: Callable[[Floats, Floats, Integers], Floats]


@dataclass(frozen=True)
class Draw:
    """Goes ahead by the known chances of every arm."""

    chances: Callable[[Integers], Floats]

    def turns(self, step: int, words: Integers) -> Turns:
        """Every arm in turn."""
        chances = self.chances(words)

        def turns(at: slice) -> Iterator[Turn]:
            for arm in range(words.shape[1]):
                chosen = np.full(len(words[at]), arm)
                yield Turn(chosen, chances[at, arm], *pulled(words[at], chosen))

        return turns


def all_counts_bytes(arms: int, horizon: int) -> float:
    """Memory for all counts that there are before the last step: two layers, chances, and room to sort."""
    kinds = 2 * arms - 1
    logarithm = math.lgamma(horizon + kinds) - math.lgamma(kinds + 1) - math.lgamma(horizon)
    # Far beyond any memory one number is as good as another.
    states = math.exp(min(logarithm, 50.0))
    return states * (2.5 * (8 * arms + 24) + 24 * arms + 64)


def pulled(counts: Integers, chosen: Integers) -> tuple[Integers, Integers]:
    """Counts after a failure and after a success of the chosen arms."""
    lost = counts.copy()
    lost[np.arange(len(lost)), chosen] += PULL
    won = lost.copy()
    won[np.arange(len(won)), chosen] += 1
    return lost, won


def epsilon_greedy_chances(params: Floats, options: Floats, counts: Integers) -> Floats:
    """Any arm with probability epsilon, else the highest mean; arms never pulled come first."""
    pulls = pulls_of(counts)
    means = np.where(pulls > 0, successes_of(counts) / np.maximum(pulls, 1), np.inf)
    arms = counts.shape[1]
    epsilon = min(max(params[0], 0.0), 1.0)
    found: Floats = epsilon / arms + (1 - epsilon) * np.eye(arms)[means.argmax(axis=1)]
    return found


def thompson_chances(params: Floats, options: Floats, counts: Integers) -> Floats:
    """The probability that each arm has the highest draw.

    It is an integral of the arm's density and the others' distribution functions. The arms are cut into two halves: every
    integral is then a product of something of the left half and something of the right half, and the integrals of all
    states are products of matrices, one for each number of pulls that the left half can have.
    """
    arms = counts.shape[1]
    found = np.empty((len(counts), arms))
    cut = arms // 2
    lefts, left_of = distinct(counts[:, :cut])
    rights, right_of = distinct(counts[:, cut:])
    order = np.argsort(left_of, kind="stable")
    first_of = np.searchsorted(left_of[order], np.arange(len(lefts) + 1))
    step = int(pulls_of(counts[0]).sum())
    right_pulls = pulls_of(rights).sum(axis=1)
    for at in pieces(pulls_of(lefts).sum(axis=1)):
        states = order[first_of[at.start] : first_of[at.stop]]
        across = np.flatnonzero(right_pulls == step - int(pulls_of(lefts[at.start]).sum()))
        grid = chances_grid(params[0], options, lefts[at], rights[across])
        found[states] = grid[:, left_of[states] - at.start, np.searchsorted(across, right_of[states])].T
    # Only rounding: an integral may be -1e-17, and a sum 1 + 1e-15.
    found = np.maximum(found, 0.0)
    found /= found.sum(axis=1, keepdims=True)
    return found


PIECE = 512
"""Rows of nodes that are multiplied at once."""


def distinct(counts: Integers) -> tuple[Integers, Integers]:
    """The distinct rows, those with equal pulls together, and where each row is among them."""
    found, place = np.unique(counts, axis=0, return_inverse=True)
    order = np.argsort(pulls_of(found).sum(axis=1), kind="stable")
    return found[order], np.argsort(order)[place.reshape(-1)]


def pieces(keys: Integers) -> Iterator[slice]:
    """Cut rows, sorted by a key, into pieces with one key each, none longer than PIECE."""
    edges = np.flatnonzero(np.diff(keys, prepend=-1, append=-1))
    for first, stop in pairwise(edges.tolist()):
        for at in parts(stop - first, PIECE):
            yield slice(first + at.start, first + at.stop)


def chances_grid(gamma: float, options: Floats, lefts: Integers, rights: Integers) -> Floats:
    """The probability that an arm has the highest draw: (arms, rows of the left half, rows of the right half)."""
    cut = lefts.shape[1]
    grid = np.empty((cut + rights.shape[1], len(lefts), len(rights)))
    below_left, best_left = integrands(gamma, options, lefts)
    for at in parts(len(rights), PIECE):
        below_right, best_right = integrands(gamma, options, rights[at])
        for arm, best in enumerate(best_left):
            grid[arm, :, at] = best @ below_right.T
        for arm, best in enumerate(best_right, cut):
            grid[arm, :, at] = below_left @ best.T
    return grid


def integrands(gamma: float, options: Floats, counts: Integers) -> tuple[Floats, list[Floats]]:
    """At every node, for rows of counts: P(all arms are below it), and for each arm P(it is there, the others below)."""
    densities, distributions = [], []
    for column in counts.T:
        shapes = [
            ((s + options[0]) / (gamma * gamma), (n - s + options[1]) / (gamma * gamma))
            for n, s in zip(pulls_of(column).tolist(), successes_of(column).tolist(), strict=True)
        ]
        densities.append(np.stack([beliefs.weights(*shape) for shape in shapes]))
        distributions.append(np.stack([beliefs.distribution(*shape) for shape in shapes]))
    best = []
    for arm, density in enumerate(densities):
        for other, distribution in enumerate(distributions):
            if other != arm:
                density = density * distribution
        best.append(density)
    return np.prod(distributions, axis=0), best


DRAWING: Mapping[tuple[Callable[..., Any], ...], Drawing] = MappingProxyType(
    {
        (view_totals, start_totals, choose_sample, update_success): Drawing(
            lambda params: params[0] >= 1e-9,
            thompson_chances,  # as in `choose_sample`
        ),
        (view_totals, start_totals, choose_epsilon_greedy, update_totals): Drawing(
            lambda params: True, epsilon_greedy_chances
        ),
    }
)
"""By a policy's functions; others must draw nothing."""


# Policies that draw nothing.


def play_states(after, features, options, horizon, step, params, key, cursor, chosen, trouble):
    """The kernel: one step from every state.

    `after[0]` has the memory of every state before the step. When it returns, that is the memory after a failure, and
    `after[1]` the memory after a success. Stops with the state and the culprit in `trouble` where an arm is bad.
    """
    arms = features.shape[1]
    setting = known(Setting(arms, features.shape[0], horizon, features, options))
    stream = Stream(key, key, cursor)
    for place in range(after.shape[1]):
        state = view(after[0, place], setting)
        if step == 0:
            start(state, setting)
        picked = choose(state, setting, step, params, stream)
        if not (picked >= 0 and picked < arms and picked == math.floor(picked)):
            trouble[0], trouble[1] = place, picked
            return
        arm = int(picked)
        chosen[place] = arm
        for number in range(after.shape[2]):
            after[1, place, number] = after[0, place, number]
        for reward in range(2):
            update(view(after[reward, place], setting), setting, arm, 1.0 * reward, stream)


@dataclass(frozen=True)
class Script:
    """Goes ahead by the policy's own functions, which must draw nothing."""

    job: Job
    params: Floats
    options: Any

    @cached_property
    def compiled(self) -> Callable[..., Any]:
        """The kernel, bound to the policy."""
        policy = self.job.policy
        slots = {name: getattr(policy, name) for name in ("view", "start", "choose", "update")}
        found = kernel(play_states, slots | dims_of(policy, self.job.problem))
        size = policy.memory(self.job.problem.arms, self.job.problem.dims)
        compile_for(found, self._arguments(np.zeros((2, 1, size)), 0), who(self.job))
        return found

    def turns(self, step: int, words: Integers) -> Turns:
        """The arm that the policy chooses."""
        arms = self.job.problem.arms

        def turns(at: slice) -> Iterator[Turn]:
            counts, memory = words[at, :arms], words[at, arms:].view(np.float64)
            after = np.stack([memory, memory])
            chosen = self._play(step, counts, after)
            lost, won = pulled(counts, chosen)
            yield Turn(chosen, 1.0, with_memory(lost, after[0]), with_memory(won, after[1]))

        return turns

    def _play(self, step: int, counts: Integers, after: Floats) -> Integers:
        """The chosen arms; memory as in `play_states`."""
        arguments = self._arguments(after, step)
        *_, cursor, chosen, trouble = arguments
        before = cursor.copy()
        compiled = self.compiled
        try:
            compiled(*arguments)
        except Exception as error:
            raise Fault(broken(self.job, error)) from error
        if (cursor != before).any():
            raise BadRequest(
                f"a policy must draw no random numbers for its exact regret, unless it is Thompson sampling or "
                f"epsilon-greedy, but {self.job.policy.name!r} drew some at step {step}; simulate() it instead."
            )
        if trouble[0] >= 0:
            raise Fault(self._complaint(step, counts[int(trouble[0])], trouble[1]))
        return chosen  # type: ignore[no-any-return]

    def _arguments(self, after: Floats, step: int) -> tuple[Any, ...]:
        problem = self.job.problem
        features = read_only(np.zeros((problem.dims, problem.arms)))
        answers = np.array([0, 0, 0, AGENT]), np.zeros(after.shape[1], np.int64), np.array([-1.0, 0.0])
        return (after, features, self.options, self.job.horizon, step, self.params, 0, *answers)

    def _complaint(self, step: int, counts: Integers, culprit: float) -> str:
        """What is wrong with an arm, and where it was chosen."""
        policy = self.job.policy
        where = (
            f"at step {step} with parameters {self.params.tolist()}, after {pulls_of(counts).tolist()} pulls and "
            f"{successes_of(counts).tolist()} successes of the arms (horizon={self.job.horizon})"
        )
        if culprit in policy.faults:
            return f"{policy.faults[int(culprit)]} (the policy {policy.name!r} {where})."
        return (
            f"an arm must be a whole number from 0 to {self.job.problem.arms - 1}, but the policy {policy.name!r} chose "
            f"{culprit:g} {where}."
        )


def with_memory(counts: Integers, memory: Floats) -> Integers:
    """States from counts and memory."""
    return np.concatenate([counts, memory.view(np.int64)], axis=1)
