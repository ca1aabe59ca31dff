"""Resolves the options that a policy takes from its problem: the noise of rewards and the prior of means."""

from __future__ import annotations

import math
from dataclasses import fields, replace
from functools import singledispatch
from typing import Any, NamedTuple

import numpy as np

from banditune.core.arrays import FloatArray
from banditune.core.checks import list_options_from_problem, split_prior_columns
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Wording
from banditune.core.policy import PRIOR_KINDS, Policy
from banditune.core.problem import Problem
from banditune.core.scalar import is_package_code
from banditune.exact.table_policies import resolve_optimal_policy
from banditune.problems.bernoulli_arms import Bernoulli, Mixture
from banditune.problems.beta_arms import BetaRewards
from banditune.problems.campaigns import Campaigns
from banditune.problems.gaussian_arms import Gaussian
from banditune.problems.generalized_linear import FeatureProblem
from banditune.simulation.instances import BLOCK_SIZE, check_instance_memory, draw_instance_means, draw_instances
from banditune.simulation.reward_noise import measure_reward_noise

SAMPLED_BLOCKS = 4
"""The number of blocks of instances that are drawn if the distribution of means has no formula."""


NOISE_DRAWS = 4096
"""The number of rewards that are drawn if a problem does not state their noise. Its error is then a few percent."""


MAX_SHAPE_SUM = 1e6
"""The largest sum of a Beta prior's shapes. With larger ones, no simulated horizon shows a difference between means."""


MIN_LOGIT_DISTANCE = 1e-3
"""Smallest distance of means from 0 and 1 when their logit is computed."""


SOURCE_EXACT = "from the problem"


SOURCE_POOLED = "from the problem, matched to the mean and variance of all arms"


# Samples do not depend on the seed: the scale is a property of the problem.
SOURCE_MATCHED = f"from the problem, matched to the means of {SAMPLED_BLOCKS * BLOCK_SIZE:,} instances"


SOURCE_DRAWN = f"from the problem, the spread of {NOISE_DRAWS:,} rewards around their means"


SOURCE_TEXTBOOK = "the textbook's, because the problem's {} do not vary"


class ResolvedOption(NamedTuple):
    """A number or a prior, and its source in words."""

    value: Any
    source: str


class ResolvedPolicy(NamedTuple):
    """A policy with numbers for options, the textbook policy if it differs, and the source of each number."""

    policy: Policy
    textbook_policy: Policy | None
    sources: tuple[tuple[str, str], ...]


class MeanMoments(NamedTuple):
    """Mean and standard deviation of arms' means, over arms and instances."""

    mean: float
    sd: float
    source: str


def resolve_policy_options(policy: Policy, problem: Problem, horizon: int | None = None) -> ResolvedPolicy:
    """Replace "problem" by the problem's numbers, and make the textbook policy.

    Textbook numbers are for rewards in [0, 1]. For other rewards, textbooks assume a known noise and prior, so the textbook
    policy has the problem's numbers, too. The horizon matters for rewards that change with the step.
    """
    requested, policy = policy, resolve_optimal_policy(policy, problem)
    if policy is not requested:
        return ResolvedPolicy(policy, None, tuple((option.name, SOURCE_EXACT) for option in fields(policy)))  # type: ignore[arg-type]
    resolved = {name: resolve_option(policy, name, problem, horizon) for name in list_options_from_problem(policy)}
    if not resolved:
        return ResolvedPolicy(policy, None, ())
    fitted = replace(policy, **{name: option.value for name, option in resolved.items()})  # type: ignore[type-var]
    textbook_options = (
        {} if problem.rewards == "real" else {k: v for k, v in policy.textbook_options.items() if k in resolved}
    )
    textbook = replace(fitted, **textbook_options)  # type: ignore[type-var]
    sources = tuple((name, option.source) for name, option in resolved.items())
    return ResolvedPolicy(fitted, None if textbook == fitted else textbook, sources)


def resolve_option(policy: Policy, name: str, problem: Problem, horizon: int | None = None) -> ResolvedOption:
    """Resolve an option of the policy with the problem's number."""
    if name == "noise":
        return resolve_noise(policy, problem, horizon)
    if name != "prior" or policy.prior_kind not in PRIOR_RESOLVERS:
        raise InvalidRequest(
            f"only `noise` and `prior` can be taken from the problem, and a prior only if it is {PRIOR_KINDS['beta']}, "
            f"{PRIOR_KINDS['normal']} or {PRIOR_KINDS['theta']}, but {policy.name} has {name}='problem'; give it "
            "in numbers.",
            argument=name,
            code="unsupported",
        )
    return PRIOR_RESOLVERS[policy.prior_kind](policy, problem)


def resolve_noise(policy: Policy, problem: Problem, horizon: int | None = None) -> ResolvedOption:
    """Resolve the standard deviation of a reward around its arm's mean."""
    noise = compute_reward_noise(problem, horizon)
    return noise if noise.value > 0 else use_textbook_option(policy, "noise", problem, "rewards")


def use_textbook_option(policy: Policy, name: str, problem: Problem, reason: str) -> ResolvedOption:
    """Resolve an option with the textbook's number if the problem has no variance. Real rewards have no such number."""
    if problem.rewards == "real" or name not in policy.textbook_options:
        raise InvalidRequest(
            "`{}` of {} must be given in numbers, because the {} of {!r} do not vary and have no scale; make the policy "
            "as {}.",
            *(name, policy.name, reason, problem.name),
            Wording(f"{type(policy).__name__}({name}=...)", f"{policy.name}:{name}=..."),
            argument=name,
            code="unsupported",
        )
    return ResolvedOption(policy.textbook_options[name], SOURCE_TEXTBOOK.format(reason))


def compute_reward_noise(problem: Problem, horizon: int | None = None) -> ResolvedOption:
    """Compute the noise of rewards: the root of their mean variance over arms and instances.

    The numbers and formulas of this package hold for its own rewards. The rewards of a user's subclass are measured, unless
    the subclass defines `noise`.
    """
    if states_own_noise(problem):
        return ResolvedOption(float(problem.noise), SOURCE_EXACT)
    stated = find_stated_noise(problem) if is_package_code(problem.reward) else None
    if stated is not None:
        return stated
    if problem.rewards == "binary":
        return compute_binary_noise(problem)
    return ResolvedOption(
        round_sampled(measure_reward_noise(problem, NOISE_DRAWS, horizon), SOURCE_DRAWN), SOURCE_DRAWN
    )


def states_own_noise(problem: Problem) -> bool:
    """Return whether a class of a user states the noise."""
    owner = next(kind for kind in type(problem).__mro__ if "noise" in vars(kind))
    return problem.noise is not None and not is_package_code(owner)


@singledispatch
def find_stated_noise(problem: Problem) -> ResolvedOption | None:
    """Find the noise of this package's rewards: a number, or by a formula."""
    return None if problem.noise is None else ResolvedOption(float(problem.noise), SOURCE_EXACT)


@find_stated_noise.register
def _(problem: BetaRewards) -> ResolvedOption | None:
    noise = compute_binary_noise(problem)
    return noise._replace(value=round_sampled(noise.value / math.sqrt(problem.v + 1), noise.source))


@find_stated_noise.register
def _(problem: Campaigns) -> ResolvedOption | None:
    if problem.rewards == "real":
        return ResolvedOption(problem.noise, SOURCE_EXACT)
    noise = compute_binary_noise(problem)
    share = math.sqrt(problem.v + 1) if problem.rewards == "unit" else 1.0
    return noise._replace(value=round_sampled(noise.value / share, noise.source))


def compute_binary_noise(problem: Problem) -> ResolvedOption:
    """Compute the noise of rewards that are 0 or 1: the root of the mean of m (1 - m) over means m."""
    mean, sd, source = compute_mean_moments(problem)
    return ResolvedOption(round_sampled(math.sqrt(max(mean * (1 - mean) - sd**2, 0.0)), source), source)


def compute_mean_moments(problem: Problem) -> MeanMoments:
    """Compute mean and standard deviation of arms' means, by a formula or from instances."""
    law = find_law_of_means(problem)
    if law is None:
        sampled = draw_means(problem)
        sd = float(sampled.std()) if np.ptp(sampled) > 0 else 0.0
        return MeanMoments(
            round_sampled(float(sampled.mean()), SOURCE_MATCHED), round_sampled(sd, SOURCE_MATCHED), SOURCE_MATCHED
        )
    means, variances, weights = law
    centre = float(weights @ means)
    spread = float(weights @ (variances + (means - centre) ** 2))
    return MeanMoments(centre, math.sqrt(spread), SOURCE_EXACT if len(means) == 1 else SOURCE_POOLED)


def draw_means(problem: Problem) -> FloatArray:
    """Draw means (instances, arms) if they fit into memory."""
    check_instance_memory(problem)
    return draw_instance_means(problem, 0, range(SAMPLED_BLOCKS * BLOCK_SIZE))


def find_law_of_means(problem: Problem) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return means, variances and weights of the mixture that an arm's mean follows; None if it is not known.

    A user's subclass with another `sample` may have another law.
    """
    kind = next((kind for kind in (Bernoulli, BetaRewards, Gaussian, Mixture) if isinstance(problem, kind)), None)
    if kind is None or type(problem).sample is not kind.sample:
        return None
    if isinstance(problem, Mixture):
        table = np.array(problem.means)
        weights = np.repeat(np.array(problem.weights) / table.shape[1], table.shape[1])
        return table.ravel(), np.zeros(table.size), weights
    first, second = split_prior_columns(problem.prior)  # type: ignore[attr-defined]
    equal_weights = np.full(len(first), 1 / len(first))
    if isinstance(problem, Gaussian):
        return first, second**2, equal_weights
    mean = first / (first + second)
    return mean, mean * (1 - mean) / (first + second + 1), equal_weights


def resolve_beta_prior(policy: Policy, problem: Problem) -> ResolvedOption:
    """Resolve a Beta prior: the problem's, or the one with the same mean and variance."""
    is_exact = problem.prior_kind == "beta" and find_law_of_means(problem) is not None
    prior: Any = problem.prior if is_exact else ()  # type: ignore[attr-defined]
    if len(prior) == 1 or (prior and policy.has_prior_per_arm):
        return raise_shapes(policy, ResolvedOption(prior[0] if len(prior) == 1 else prior, SOURCE_EXACT))
    mean, sd, source = compute_mean_moments(problem)
    if not 0 < mean < 1:
        return use_textbook_option(policy, "prior", problem, "means")
    weight = mean * (1 - mean) / sd**2 - 1 if sd > 0 else MAX_SHAPE_SUM
    weight = min(max(weight, 1 / MAX_SHAPE_SUM), MAX_SHAPE_SUM)
    return raise_shapes(
        policy,
        ResolvedOption(
            (round_sampled(mean * weight, SOURCE_MATCHED), round_sampled((1 - mean) * weight, SOURCE_MATCHED)), source
        ),
    )


def raise_shapes(policy: Policy, resolved: ResolvedOption) -> ResolvedOption:
    """Raise the shapes of a Beta prior to the policy's minimum, with the same mean."""
    smallest = float(np.min(resolved.value))
    if smallest >= policy.smallest_prior_shape:
        return resolved
    # After rounding, no shape may be below its limit.
    a, b = (
        max(shape * policy.smallest_prior_shape / smallest, policy.smallest_prior_shape) for shape in resolved.value
    )
    return ResolvedOption((a, b), f"{resolved.source}, with shapes of at least {policy.smallest_prior_shape:g}")


def resolve_normal_prior(policy: Policy, problem: Problem) -> ResolvedOption:
    """Resolve a normal prior: mean and standard deviation of an arm's mean."""
    mean, sd, source = compute_mean_moments(problem)
    return ResolvedOption((mean, sd), source) if sd > 0 else use_textbook_option(policy, "prior", problem, "means")


def resolve_theta_prior(policy: Policy, problem: Problem) -> ResolvedOption:
    """Resolve a prior of theta: the problem's if policy and problem have the same link, else one matched to scores."""
    if isinstance(problem, FeatureProblem) and problem.link == policy.link:  # type: ignore[attr-defined]
        # Uniform on [-1, 1] has the variance 1/3.
        return (
            ResolvedOption((0.0, 1 / 3), SOURCE_EXACT)
            if problem.prior is None
            else ResolvedOption(problem.prior, SOURCE_EXACT)
        )
    scores = squares = 0.0
    for block in range(SAMPLED_BLOCKS):
        features, block_scores = draw_features_and_scores(policy, problem, block)
        scores += float(np.mean(block_scores**2)) / SAMPLED_BLOCKS
        squares += float(np.square(features).sum()) / (len(features) * problem.arms) / SAMPLED_BLOCKS
    if not (scores > 0 and squares > 0):
        return use_textbook_option(policy, "prior", problem, "means")
    return ResolvedOption((0.0, round_sampled(scores / squares, SOURCE_MATCHED)), SOURCE_MATCHED)


def draw_features_and_scores(policy: Policy, problem: Problem, block: int) -> tuple[FloatArray, FloatArray]:
    """Draw features (instances or 1, dims, arms) of a block, and the policy's x'theta (instances, arms)."""
    check_instance_memory(problem)
    instances = draw_instances(problem, 0, block)
    scores = instances.means
    if policy.link == "logistic":  # type: ignore[attr-defined]
        inside = np.clip(scores, MIN_LOGIT_DISTANCE, 1 - MIN_LOGIT_DISTANCE)
        scores = np.log(inside / (1 - inside))
    return np.array(instances.features), scores


PRIOR_RESOLVERS = {"beta": resolve_beta_prior, "normal": resolve_normal_prior, "theta": resolve_theta_prior}
"""Functions that resolve a prior, by its kind."""


def round_sampled(value: float, source: str) -> float:
    """Round sampled values to six digits, because the last bits of a sum may differ between machines."""
    return value if source in (SOURCE_EXACT, SOURCE_POOLED) or not value else float(f"{value:.6g}")
