"""Every policy and every problem of the package keeps its contract."""

from __future__ import annotations

import pytest

import banditune as bt
from banditune.testing.policy_conformance import PolicySubject
from helpers.policy_problem_pairs import PAIRS, POLICIES, SMALL_PROBLEMS

SAME_ESTIMATES = ("ucb-glm", "glm-greedy", "glm-epsilon-greedy", "lin-greedy", "lin-epsilon-greedy", "lints")
SAME_ESTIMATES += ("kl-ucb", "ucb-v", "bayes-ucb", "finite-horizon-index", "gaussian-finite-horizon-index")
"""Policies with the estimates, or with an index as that of another policy, which is tested."""


def list_pairs():
    """One problem for every policy, such that every problem occurs. Other pairs are marked as slow."""
    times_used = dict.fromkeys(SMALL_PROBLEMS, 0)
    choices = {policy: [problem for known, problem in PAIRS if known == policy] for policy in POLICIES}
    # Policies that take few problems choose first.
    for policy, problems in sorted(choices.items(), key=lambda choice: len(choice[1])):
        rarest = None if policy in SAME_ESTIMATES else min(problems, key=lambda problem: times_used[problem])
        for problem in problems:
            is_chosen = problem == rarest
            times_used[problem] += is_chosen
            yield pytest.param(policy, problem, marks=[] if is_chosen else pytest.mark.slow)


def test_every_problem_is_simulated_in_plain_python():
    assert {pair.values[1] for pair in list_pairs() if not pair.marks} == set(SMALL_PROBLEMS)


@pytest.mark.parametrize(("policy", "problem"), list(list_pairs()))
def test_every_policy_keeps_its_contract(policy, problem):
    """Among others, compiled code and shortcuts agree with plain Python."""
    report = bt.testing.check_policy(POLICIES[policy](), SMALL_PROBLEMS[problem](), horizon=200, seed=3)
    assert [name for name in ("memory", "no-reward-yet", "deployment") if name not in str(report)] == []
    assert report["plain-python"].runs == (5 if SMALL_PROBLEMS[problem]().required_regret is None else 3)
    assert report["threads-and-chunks"].detectable == 0


@pytest.mark.parametrize("problem", SMALL_PROBLEMS)
def test_every_problem_keeps_its_contract(problem):
    report = bt.testing.check_problem(SMALL_PROBLEMS[problem](), seed=3)
    assert report["plain-python"].runs > 100
    assert ("means" in [check.name for check in report.checks]) == (problem != "reward-table")


@pytest.mark.parametrize("name", POLICIES)
def test_checks_without_a_compiler_pass_for_every_policy(name):
    """Every policy is checked here, also those whose compiled code is checked in slow tests only."""
    subject = PolicySubject(POLICIES[name](), None, 100, None, 0)
    steps = subject.list_steps()
    names = ("description", "contract", "memory", "no-reward-yet", "travel")
    findings = [steps[step]().text for step in names]
    assert len(set(findings)) == len(names)
