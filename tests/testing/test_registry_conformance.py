"""Every policy and every problem of the package keeps its contract, as those of users must."""

from __future__ import annotations

import pytest

import banditune as bt
from helpers.policy_problem_pairs import PAIRS, POLICIES, SMALL

ALIKE = ("ucb-glm", "glm-greedy", "glm-epsilon-greedy", "lin-greedy", "lin-epsilon-greedy", "lints")
ALIKE += ("kl-ucb", "ucb-v", "bayes-ucb")
"""Policies on the estimates of another one, or with an index as another one, which is tried."""


def in_turn():
    """One problem for every policy, such that every problem comes up, without a mark; the rest marked as slow."""
    tried = dict.fromkeys(SMALL, 0)
    choices = {policy: [problem for known, problem in PAIRS if known == policy] for policy in POLICIES}
    # Those that can play few problems choose first.
    for policy, problems in sorted(choices.items(), key=lambda choice: len(choice[1])):
        rarest = None if policy in ALIKE else min(problems, key=lambda problem: tried[problem])
        for problem in problems:
            usual = problem == rarest
            tried[problem] += usual
            yield pytest.param(policy, problem, marks=[] if usual else pytest.mark.slow)


def test_every_problem_is_simulated_in_plain_python():
    assert {pair.values[1] for pair in in_turn() if not pair.marks} == set(SMALL)


@pytest.mark.parametrize(("policy", "problem"), list(in_turn()))
def test_every_policy_keeps_its_contract(policy, problem):
    """Compiled code equals plain Python to the last bit, and a shortcut is the plain loop, among others."""
    found = bt.testing.check_policy(POLICIES[policy](), SMALL[problem](), horizon=200, seed=3)
    assert [name for name in ("memory", "no-reward-yet", "deployment") if name not in str(found)] == []
    assert found["plain-python"].runs == (5 if SMALL[problem]().required_regret is None else 3)
    assert found["threads-and-chunks"].detectable == 0


@pytest.mark.parametrize("problem", SMALL)
def test_every_problem_keeps_its_contract(problem):
    found = bt.testing.check_problem(SMALL[problem](), seed=3)
    assert found["plain-python"].runs > 100
    assert ("means" in [check.name for check in found.checks]) == (problem != "reward-table")
