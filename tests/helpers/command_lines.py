"""Arguments of the command line, and a file with a user's policy and problem."""

from __future__ import annotations

SMALL = ["--policy", "ucb1", "--problem", "bernoulli", "--arms", "3", "--horizon", "100"]


TUNE = ["tune", *SMALL, "--budget", "40", "--validate", "50"]


OWN = """
import banditune as bt
from banditune.core.parsing import read_matrix

@bt.kernel.scalar
def choose(state, setting, step, params, stream):
    return bt.kernel.argmax_mean(state) if bt.kernel.uniform(stream) > params[0] else bt.kernel.draw_arm(state, stream)

mine = bt.define_policy("mine", choose, parameters=[bt.Parameter("epsilon", 0, 1, textbook=0.1)])

@bt.kernel.scalar
def reward(instance, arm, pull, step, stream):
    return bt.kernel.bernoulli(stream, instance.means[arm])

coins = bt.define_problem("coins", lambda size, rng: rng.random((size, 3)), reward, arms=3, rewards="unit")

@bt.kernel.scalar
def beyond(state, setting, step, params, stream):
    return 11

broken = bt.define_policy("broken", beyond, parameters=[bt.Parameter("x", 0, 1, textbook=0)])
"""
