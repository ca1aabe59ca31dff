"""Checks, in plain Python, that a deployed policy can be rebuilt from pulls and totals."""

from __future__ import annotations

from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, IntArray
from banditune.core.problem import Instance
from banditune.core.streams import REWARD_STREAM, Stream, seek
from banditune.deployment.agent import DEPLOYED_SLOTS, PolicyAgent, make_agent_stream
from banditune.deployment.step_kernel import run_agent_step
from banditune.simulation.bind import bind_function
from banditune.simulation.instances import draw_instances
from banditune.simulation.kernel_selection import fill_dims_slots
from banditune.simulation.loop import compute_instance_key
from banditune.simulation.scratch_arrays import fill_choose_slots
from banditune.simulation.spec import SimulationSpec
from banditune.testing.conformance_steps import Finding, Violation

DEPLOYED_STEPS = 60
"""The number of decisions of the deployed policy."""


ROUNDING = 1e-9
"""The relative rounding error of a total."""


def check_recall_and_resume(spec: SimulationSpec, row: FloatArray) -> Finding:
    """Check that `recall` returns pulls and totals, and that it returns the same ones after `resume`."""
    steps = min(DEPLOYED_STEPS, spec.horizon)
    draws = make_agent_stream(spec.seed, (0, 0))
    agent = make_agent(spec, row, draws)
    facts = run_agent(agent, spec, steps)
    recalled = agent.recall()
    if spec.policy.rewards == "unit" and spec.problem.rewards == "unit":
        facts[1] = recalled[1]  # such a policy may keep pseudo-rewards of 0 and 1 instead
    if not _is_close(recalled, facts):
        raise Violation(
            f"`recall` must write the pulls and the total reward of every arm, but after {steps} steps it wrote "
            f"{recalled.tolist()!r:.300} instead of {facts.tolist()!r:.300}."
        )
    rebuilt = make_agent(spec, row, draws.copy())
    rebuilt.resume(facts)
    recalled_again = rebuilt.recall()
    if not _is_close(recalled_again, facts):
        raise Violation(
            f"`resume` must rebuild the memory, so that `recall` returns the same numbers, but it returned "
            f"{recalled_again.tolist()!r:.300} instead of {facts.tolist()!r:.300}."
        )
    choice, expected = rebuilt.choose(steps), agent.choose(steps)
    if choice != expected:
        raise Violation(
            f"a rebuilt policy must continue as before, but after {steps} steps it chooses arm {choice} instead of "
            f"{expected}; let `resume` set every number of the memory from pulls, totals and parameters."
        )
    return Finding(f"rebuilt from pulls and totals after {steps} steps, it recalls them and continues", steps)


def make_agent(spec: SimulationSpec, row: FloatArray, draws: IntArray) -> PolicyAgent:
    """Make a deployed policy that runs as plain Python."""
    policy, problem = spec.policy, spec.problem
    slots: dict[Any, Any] = {name: getattr(policy, name) for name in DEPLOYED_SLOTS}
    slots |= fill_choose_slots(policy) | fill_dims_slots(policy, problem)
    act = bind_function(run_agent_step, slots)[0]
    features = draw_instances(problem, spec.seed, 0).features
    assert features is not None
    agent = PolicyAgent(policy, act, row, features[0], spec.horizon, draws)
    agent.resume(np.zeros((2, problem.arms)))
    return agent


def run_agent(agent: PolicyAgent, spec: SimulationSpec, steps: int) -> FloatArray:
    """Run a deployed policy on the first instance. Return pulls and totals of the arms, as two rows."""
    problem = spec.problem
    reward: Any = getattr(problem.reward, "py_func", problem.reward)
    instance = Instance(draw_instances(problem, spec.seed, 0).means[0], np.array(problem.options(), float))
    key0, key1 = compute_instance_key(spec.seed, 0)  # type: ignore[no-untyped-call]
    stream = Stream(key0, key1, np.array([0, 0, 0, REWARD_STREAM]))
    facts = np.zeros((2, problem.arms))
    for step in range(steps):
        arm = agent.choose(step)
        pull = int(facts[0, arm])
        seek(stream, arm, pull)  # type: ignore[no-untyped-call]
        payoff = float(reward(instance, arm, pull, step, stream))
        agent.learn(step, arm, payoff)
        facts[:, arm] += 1, payoff
    return facts


def _is_close(first: FloatArray, second: FloatArray) -> bool:
    """Return whether pulls are equal and totals differ only by rounding."""
    close = np.allclose(first[1], second[1], rtol=ROUNDING, atol=ROUNDING * (1 + np.abs(second[1]).max()))
    return np.array_equal(first[0], second[0]) and bool(close)
