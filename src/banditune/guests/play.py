"""Plays an object of another library on the same instances, with the same rewards, as every policy of ours."""

from __future__ import annotations

import contextlib
import inspect
import math
import random
import threading
import time
from typing import Any

import numpy as np

from banditune.contracts import Fault, Floats, Instance, Integers
from banditune.engine import loop
from banditune.engine.means import drawer
from banditune.engine.pieces import Piece, Played
from banditune.engine.run import BLOCK, Job, by_block, instances, read_only, who
from banditune.guests.objects import methods_of
from banditune.guests.policy import KNOWN
from banditune.streams import REWARDS, UNSEEN

AHEAD = 32
"""Rewards of an arm that are drawn at once."""

ONE_AT_A_TIME = threading.Lock()


class Rewards:
    """The rewards of one run, by their addresses; drawn ahead where that is allowed."""

    def __init__(self, player: GuestPlayer, means: Floats, key: tuple[int, int], kind: int) -> None:
        self.player, self.means, self.key = player, means, key
        self.cursor = np.array([0, 0, 0, kind], np.int64)
        self.drawn: dict[int, tuple[int, list[float]]] = {}

    def of(self, arm: int, pull: int, step: int) -> float:
        """The reward of a pull."""
        first, known = self.drawn.get(arm, (0, []))
        if not first <= pull < first + len(known):
            out = np.empty(AHEAD if self.player.per_pull else 1)
            self.player.draw(self.means, self.player.options, *self.key, self.cursor, arm, pull, step, out)
            first, known = pull, out.tolist()
            if self.player.per_pull:
                self.drawn[arm] = first, known
        return known[pull - first]


class GuestPlayer:
    """Plays a foreign policy on a problem, run by run."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.options = read_only(job.problem.options())
        self.per_pull = job.problem.per_pull
        self.at = job.at or (job.horizon,)
        self.wanted = set(inspect.signature(job.policy.make).parameters)  # type: ignore[attr-defined]
        self.draw = drawer(job)

    def play(self, piece: Piece, stop: Integers) -> Played:
        """Play a piece, run by run, until `stop` is set."""
        began = time.perf_counter()
        regrets = np.full((len(piece.params), len(piece.runs), len(self.at)), np.nan)
        for block, within in by_block(piece.runs):
            means = instances(self.job.problem, self.job.seed, block).means
            for run in within:
                for row, params in enumerate(piece.params):
                    if stop[0]:
                        return Played(regrets, np.zeros(5), time.perf_counter() - began)
                    noise = 1 + piece.first_row + row if self.job.noise == "own" else 0
                    regrets[row, run - piece.runs.start] = self.one(run, means[run - block * BLOCK], params, noise)
        return Played(regrets, np.zeros(5), time.perf_counter() - began)

    def one(self, run: int, means: Floats, params: Floats, noise: int) -> list[float]:
        """The regrets of one run at its checkpoints."""
        job = self.job
        key = loop.instance_key(job.seed, run)  # type: ignore[no-untyped-call]
        rewards = Rewards(self, means, key, REWARDS + 256 * noise)
        unseen = Rewards(self, means, key, UNSEEN + 256 * noise)
        best = int(loop.best_arm(means))  # type: ignore[no-untyped-call]
        pulls, totals = np.zeros(len(means), np.int64), np.zeros(len(means))
        missed, found = 0.0, []
        with seeded(key, noise) as seed:
            select, update = self.made(params, seed)
            for step in range(self.at[-1]):
                arm = self.arm(select, run, step, params)
                paid = self.finite(rewards.of(arm, int(pulls[arm]), step), arm, run, step, params)
                if job.regret == "realised" and arm != best:
                    missed += self.finite(unseen.of(best, step - int(pulls[best]), step), best, run, step, params)
                pulls[arm] += 1
                totals[arm] += paid
                try:
                    update(arm, paid)
                except Exception as error:
                    raise Fault(self.failed("update", error, run, step, params)) from error
                if step + 1 in self.at:
                    instance = Instance(means, self.options)
                    realised = job.regret == "realised"
                    found.append(loop.regret(instance, best, pulls, totals, missed, realised))  # type: ignore[no-untyped-call]
        return found

    def made(self, params: Floats, seed: int) -> Any:
        """A new object's two methods."""
        job, policy = self.job, self.job.policy
        known = dict(zip(KNOWN, (job.problem.arms, job.horizon, seed), strict=True))
        # Where there is no parameter, the row still holds a number, which nobody reads.
        row = params[: len(policy.parameters)]
        named = {parameter.name: float(value) for parameter, value in zip(policy.parameters, row, strict=True)}
        named = {p.name: round(named[p.name]) if p.integer else named[p.name] for p in policy.parameters}
        asked = {name: value for name, value in (known | named).items() if name in self.wanted}
        try:
            made = policy.make(**asked)  # type: ignore[attr-defined]
        except Exception as error:
            raise Fault(f"{who(job)} cannot be made with {asked}: {type(error).__name__}: {error}.") from error
        return methods_of(made, job.problem.arms, policy.select_by, policy.update_by)  # type: ignore[attr-defined]

    def arm(self, select: Any, run: int, step: int, params: Floats) -> int:
        """The arm that an object selects, checked."""
        try:
            chosen = select()
        except Exception as error:
            raise Fault(self.failed("select", error, run, step, params)) from error
        try:
            arm = int(chosen)
            good = arm == chosen and 0 <= arm < self.job.problem.arms
        except (TypeError, ValueError, OverflowError):
            good = False
        if not good:
            raise Fault(
                f"an arm must be a whole number from 0 to {self.job.problem.arms - 1}, but the policy "
                f"{self.job.policy.name!r} chose {chosen!r:.60} {self.where(run, step, params)}."
            )
        return arm

    def finite(self, paid: float, arm: int, run: int, step: int, params: Floats) -> float:
        """A reward, checked."""
        if not math.isfinite(paid):
            raise Fault(
                f"a reward must be a finite number, but the problem {self.job.problem.name!r} paid another for arm {arm} "
                f"{self.where(run, step, params)}."
            )
        return paid

    def failed(self, what: str, error: Exception, run: int, step: int, params: Floats) -> str:
        """An exception out of an object, as a sentence."""
        told = f"{type(error).__name__}: {error}"
        return f"{who(self.job)} failed to {what} ({told}) {self.where(run, step, params)}."

    def where(self, run: int, step: int, params: Floats) -> str:
        """How to see it again."""
        return (
            f"at step {step} of run {run} with parameters {params.tolist()} (seed={self.job.seed}, "
            f"horizon={self.job.horizon})"
        )


@contextlib.contextmanager
def seeded(key: tuple[int, int], noise: int) -> Any:
    """A seed for a run; while it is played, the generators that whole processes share start from it too."""
    seed = (key[0] ^ (noise * 0x9E3779B9)) & 0x7FFFFFFF
    # One run at a time: what threads share they would draw from in any order, and Python gains nothing from them.
    with ONE_AT_A_TIME:
        before, numpy_before = random.getstate(), np.random.get_state()
        random.seed(seed)
        np.random.seed(seed)
        try:
            yield seed
        finally:
            random.setstate(before)
            np.random.set_state(numpy_before)
