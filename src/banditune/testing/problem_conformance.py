"""The checks of a user's own problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from banditune.core.arrays import FloatArray, copy_read_only
from banditune.core.checks import check_arms, check_names
from banditune.core.policy import Policy
from banditune.core.problem import REWARD_ARGUMENTS, Problem
from banditune.core.streams import REWARD_STREAM
from banditune.results.conformance_results import ConformanceReport
from banditune.simulation.bind import bind_function
from banditune.simulation.instances import compute_block_keys, draw_instances, make_block_rng
from banditune.simulation.loop import compute_instance_key
from banditune.simulation.mean_test import DETECTABLE_ERRORS, check_stated_means, compile_reward_sampler, draw_rewards
from banditune.simulation.problem_checks import check_drawn_rewards, check_sampled_instances
from banditune.simulation.spec import SimulationSpec
from banditune.study.options_from_problem import SOURCE_DRAWN, compute_reward_noise
from banditune.study.requests import (
    REWARD_KINDS,
    check_count,
    check_problem_and_horizon,
    check_regret_defined,
    check_scalar_functions,
)
from banditune.testing.conformance_steps import (
    Finding,
    NotApplicable,
    Violation,
    check_description,
    forbid_global_randomness,
    run_steps,
)

SAMPLE_SIZES = (1, 3)
"""The sizes with which `sample` is called, besides that of a block."""


PYTHON_RUNS, PYTHON_PULLS = 8, 16
"""The numbers of instances and of pulls whose rewards are drawn in plain Python."""


NOISE_RUNS, NOISE_PULLS = 256, 64
"""The numbers of instances and of pulls of an arm from which the noise is estimated."""


DOUBTFUL_NOISE_ERRORS = 6.0
"""The deviation from the stated noise, in standard errors, that is an error. It is large enough for heavy tails."""


class NoPolicy(Policy):
    """A placeholder for the policy in a spec of which only the problem is used."""

    name = "none"


def check_problem(problem: Problem, *, horizon: int = 1000, seed: int = 0) -> ConformanceReport:
    """Check that a problem fulfils its contract: instances depend on the seed, rewards on the stream, and means are right.

    It is meant for tests of your own problem, and takes about two seconds. `simulate` and `tune` make some of these checks
    before the first run. The first violation raises an error with the check, the evidence and advice.

    Parameters
    ----------
    problem : Problem
        The problem, such as one from `define_problem`.
    horizon : int
        Steps in a run. A problem with a shorter maximum horizon is checked at this maximum.
    seed : int
        The seed of the instances.

    Returns
    -------
    ConformanceReport
        The checks that were passed, with the number of rewards and the deviation that each would have detected.

    Raises
    ------
    ConformanceError
        If the problem violates its contract.
    InvalidRequest
        If an argument of this function cannot be used.

    Examples
    --------
    >>> from functools import partial
    >>> import banditune as bt
    >>> def sample(size, rng, arms):
    ...     return rng.beta(2, 8, (size, arms))
    >>> @bt.kernel.scalar
    ... def reward(instance, arm, pull, step, stream):
    ...     return bt.kernel.bernoulli(stream, instance.means[arm])
    >>> problem = bt.define_problem("mine", partial(sample, arms=3), reward, arms=3, rewards="binary")
    >>> print(bt.testing.check_problem(problem, horizon=100)["means"].finding[:45])
    rewards agree with the means that `sample` re
    """
    limit = problem.max_horizon if isinstance(problem, Problem) else None
    problem, horizon = check_problem_and_horizon(problem, horizon if limit is None else min(horizon, limit))
    regret = "realised" if problem.required_regret or problem.has_step_dependent_means else "expected"
    spec = SimulationSpec(NoPolicy(), problem, horizon, check_count("seed", seed, 0), regret)
    steps: dict[str, Callable[[], Finding]] = {
        "description": lambda: check_description(problem, "Mine()"),
        "contract": lambda: check_contract(spec),
        "instances": lambda: check_instances(spec),
        "rewards": lambda: check_rewards(spec),
        "plain-python": lambda: check_plain_python(spec),
        "means": lambda: check_means(spec),
        "noise": lambda: check_noise(spec),
    }
    return run_steps("problem", str(problem.name), steps)


def check_contract(spec: SimulationSpec) -> Finding:
    """Check the attributes that a problem must define."""
    problem = spec.problem
    if problem.rewards not in REWARD_KINDS:
        raise Violation(
            f"`rewards` must be one of {', '.join(map(repr, REWARD_KINDS))}, but it is {problem.rewards!r}."
        )
    check_arms(problem.arms)
    check_names(tuple(problem.names), problem.arms)
    check_scalar_functions(problem, {"reward": REWARD_ARGUMENTS})
    check_regret_defined(problem, spec.regret)
    first, second = (np.array(problem.options(), float) for _ in range(2))
    if not np.array_equal(first, second):
        raise Violation("`options()` must return the same numbers at each call.")
    features = f", {problem.dims} features" if problem.dims else ""
    return Finding(f"{problem.arms} arms{features}, {problem.rewards} rewards, {spec.regret} regret")


def check_instances(spec: SimulationSpec) -> Finding:
    """Check that instances depend only on the seed, in any order and number."""
    problem, seed = spec.problem, spec.seed
    with forbid_global_randomness("`sample(size, rng)`"):
        check_sampled_instances(problem, seed)
        in_order = [draw_instances(problem, seed, block).means for block in (0, 1, 2)]
        backwards = [draw_instances(problem, seed, block).means for block in (2, 1, 0)][::-1]
    if not np.array_equal(in_order, backwards):
        raise Violation(
            "instances must not depend on those that were drawn before, but in another order they are different; keep "
            "nothing between calls of `sample`."
        )
    for size in SAMPLE_SIZES:
        shape = np.shape(sample_instances(problem, seed, size))
        if shape != (size, problem.arms):
            raise Violation(
                f"`sample(size, rng)` must return means of shape (size, {problem.arms}), but for size={size} it returned "
                f"{shape}; use `size` wherever you draw."
            )
    return Finding(f"{3 * len(in_order[0])} instances depend only on the seed, in any order", 3 * len(in_order[0]), 0.0)


def sample_instances(problem: Problem, seed: int, size: int) -> Any:
    """Sample mean rewards of a few instances."""
    if problem.is_keyed:
        return problem.sample_keyed(compute_block_keys(seed, 0)[:size]).means
    return problem.sample(size, make_block_rng(seed, 0)).means


def check_rewards(spec: SimulationSpec) -> Finding:
    """Check that rewards depend only on their stream and are of the stated kind."""
    means = draw_instances(spec.problem, spec.seed, 0).means
    with forbid_global_randomness("`reward`"):
        check_drawn_rewards(spec, means)
    return Finding(f"rewards depend only on instance, arm, pull and stream, and are {spec.problem.rewards}")


def check_plain_python(spec: SimulationSpec) -> Finding:
    """Compare rewards of compiled code with those of plain Python, bit by bit."""
    pulls = min(PYTHON_PULLS, spec.horizon)
    python = draw_reward_table(
        spec, bind_function(draw_rewards, {"reward": spec.problem.reward})[0], PYTHON_RUNS, pulls
    )
    compiled = draw_reward_table(spec, compile_reward_sampler(spec), PYTHON_RUNS, pulls)
    if not np.isfinite(compiled).all():
        raise Violation("rewards must be finite numbers, but some are not.")
    if not np.array_equal(python, compiled):
        run, arm, pull = (int(index) for index in np.argwhere(python != compiled)[0])
        raise Violation(
            f"compiled code must draw the rewards of plain Python, but for pull {pull} of arm {arm} of run {run} it draws "
            f"{compiled[run, arm, pull]!r} instead of {python[run, arm, pull]!r}; look for whole numbers beyond 2^63 and "
            "for variables that change their type."
        )
    return Finding(f"compiled code and plain Python agree in every bit ({python.size:,} rewards)", python.size, 0.0)


def draw_reward_table(spec: SimulationSpec, draw: Callable[..., Any], runs: int, pulls: int) -> FloatArray:
    """Draw the first rewards of every arm, an array (runs, arms, pulls). If rewards depend on steps, a pull is one step."""
    problem = spec.problem
    means, options = draw_instances(problem, spec.seed, 0).means, copy_read_only(problem.options())
    table, steps = np.empty((runs, problem.arms, pulls)), np.arange(pulls)
    for run in range(runs):
        key = compute_instance_key(spec.seed, run)  # type: ignore[no-untyped-call]
        for arm in range(problem.arms):
            cursor = np.array([0, 0, 0, REWARD_STREAM], np.int64)
            draw(means[run], options, *key, cursor, arm, 0, steps, table[run, arm])
    return table


def check_means(spec: SimulationSpec) -> Finding:
    """Compare rewards with the means that `sample` returns."""
    if spec.problem.has_step_dependent_means:
        raise NotApplicable("means change with the step, and regret is compared with one fixed arm")
    first, second = check_sampled_instances(spec.problem, spec.seed)
    check = check_stated_means(spec, first, second)
    if check is None:
        raise Violation("it must be possible to draw rewards, and they must be finite; `simulate` reports the error.")
    arm = "" if math.isnan(check.detectable_per_arm) else f", and one of {check.detectable_per_arm:.2g} in a single arm"
    return Finding(
        f"rewards agree with the means that `sample` returns: over {check.reward_count:,} rewards they are "
        f"{check.drawn_mean:.4g} on average, and their means {check.stated_mean:.4g}; a deviation of "
        f"{check.detectable:.2g} in all of them would have been detected{arm} (four standard errors)",
        check.reward_count,
        check.detectable,
    )


def check_noise(spec: SimulationSpec) -> Finding:
    """Compare the standard deviation of rewards with the noise that policies take from the problem."""
    problem = spec.problem
    if problem.has_step_dependent_means:
        raise NotApplicable("means change with the step")
    noise = compute_reward_noise(problem)
    if noise.source == SOURCE_DRAWN:
        raise NotApplicable("the problem states no noise; policies measure it")
    stated = noise.value
    rewards = draw_reward_table(spec, compile_reward_sampler(spec), NOISE_RUNS, min(NOISE_PULLS, spec.horizon))
    squares = (rewards - draw_instances(problem, spec.seed, 0).means[:, :, None]) ** 2
    # Instances differ, so rewards of one instance are not independent observations of the noise.
    instance_squares = squares.mean(axis=(1, 2))
    variance, error = (
        float(instance_squares.mean()),
        float(instance_squares.std(ddof=1)) / math.sqrt(len(instance_squares)),
    )
    detectable = DETECTABLE_ERRORS * error / (2 * math.sqrt(variance)) if variance > 0 else 0.0
    if abs(variance - stated**2) > DOUBTFUL_NOISE_ERRORS * error + 1e-9 * variance:
        raise Violation(
            f"`noise` must be the standard deviation of rewards around their means, but it is {stated:.4g}, and that of "
            f"{rewards.size:,} rewards is {math.sqrt(variance):.4g} (a deviation of {detectable:.2g} is detected); correct "
            "`noise`, or leave it None, so that policies measure it."
        )
    return Finding(
        f"the standard deviation of {rewards.size:,} rewards around their means is {math.sqrt(variance):.4g}, and the "
        f"noise that policies take is {stated:.4g}; a deviation of {detectable:.2g} would have been detected",
        rewards.size,
        detectable,
    )
