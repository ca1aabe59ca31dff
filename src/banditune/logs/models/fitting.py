"""Fits a distribution of problem instances to past logs, by one of the models in `MODELS`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from banditune.core.checks import check_arms, check_integer, check_number
from banditune.core.descriptions import describe
from banditune.core.errors import InvalidRequest
from banditune.core.messages import Argument, Message, Setting
from banditune.core.request_errors import make_argument_error, suggest_name
from banditune.logs.campaign_logs import INTERCEPT, Logs, add_intercept
from banditune.logs.models.fitted_model import FitOptions, FittedModel
from banditune.logs.models.multivariate_models import (
    fit_correlated_arms_model,
    fit_linear_features_model,
    fit_logistic_features_model,
)
from banditune.logs.models.posterior_predictive import run_predictive_checks
from banditune.logs.models.univariate_models import (
    fit_beta_binomial_model,
    fit_beta_rewards_model,
    fit_campaigns_model,
    fit_gaussian_model,
)
from banditune.results.log_results import FittedProblem

MODELS: dict[str, Callable[[Logs, FitOptions], FittedModel]] = {
    "beta-binomial": fit_beta_binomial_model,
    "beta": fit_beta_rewards_model,
    "gaussian": fit_gaussian_model,
    "linear": fit_linear_features_model,
    "logistic": fit_logistic_features_model,
    "correlated": fit_correlated_arms_model,
    "campaigns": fit_campaigns_model,
}


def fit(
    logs: Logs,
    model: str = "auto",
    *,
    per_arm: bool = False,
    intercept: bool = True,
    arms: Any = None,
    horizon: Any = None,
    confidence: float = 0.95,
) -> FittedProblem:
    """Fit a problem to past logs. `fit(logs).problem` is ready for `tune`.

    Parameters
    ----------
    logs : Logs
        Past logs, from `read_logs` or `make_logs`.
    model : str
        "beta-binomial", "beta", "gaussian", "linear", "logistic", "correlated" or "campaigns". "auto" selects one from
        the features and the rewards.
    per_arm : bool
        Whether each arm's name has a separate prior; for "beta-binomial", "beta" and "gaussian" only.
    intercept : bool
        Whether a constant feature is added if arms have features without one.
    arms : int, optional
        The number of arms of the problem; by default that of the median campaign, or of all names.
    horizon : int, optional
        Decisions in a future campaign; by default the median of the past ones.
    confidence : float
        The confidence of the intervals of the estimates, from 0.5 to below 1.

    Returns
    -------
    FittedProblem
        The problem, its estimates with intervals, and checks of the fit against the logs.

    Raises
    ------
    InvalidRequest
        If an argument cannot be used, or the model cannot be fitted to these logs.

    Examples
    --------
    >>> import banditune as bt
    >>> logs = bt.make_logs(["may", "may", "june", "june"], ["red", "blue"] * 2, [10, 20, 30, 40], [1, 5, 6, 20])
    >>> fitted = bt.fit(logs)
    >>> fitted.model, fitted.problem.arms, fitted.horizon
    ('beta-binomial', 2, 50)
    """
    if not isinstance(logs, Logs):
        raise make_argument_error(
            "logs",
            "wrong-type",
            f"must be past logs (banditune.logs.Logs), but got {type(logs).__name__}; read them first: "
            "fit(read_logs(FILE)).",
        )
    confidence = check_number("confidence", confidence, least=0.5, below=1)
    name, notes = choose_model(logs, model)
    if name in FEATURE_MODELS:
        logs, more = prepare_features(logs, intercept)
        notes = (*notes, *more)
    elif not intercept:
        raise make_argument_error(
            "intercept", "conflict", f"must be left out for the model {name!r}, which uses no features."
        )
    if per_arm and name not in ("beta-binomial", "beta", "gaussian"):
        raise make_argument_error(
            "per_arm", "conflict", f"must be left out for the model {name!r}, which has other differences between arms."
        )
    arm_count, more = _resolve_arm_count(logs, arms, per_arm or name == "correlated")
    lengths = logs.decision_counts
    steps = check_integer("horizon", max(int(np.median(lengths)), 1) if horizon is None else horizon, 1)
    fitted = MODELS[name](logs, FitOptions(per_arm, arm_count, confidence))
    checked = run_predictive_checks(logs, fitted, name)
    if horizon is None and lengths.min() < lengths.max():
        more = (
            *more,
            f"campaigns are {lengths.min():,} to {lengths.max():,} decisions long; the horizon is the median",
        )
    return FittedProblem(
        model=name,
        problem_config=describe(fitted.problem),
        estimates=fitted.estimates,
        campaigns=len(logs.campaigns),
        decisions=int(logs.pulls.sum()),
        arms=fitted.problem.arms,
        horizon=steps,
        confidence=confidence,
        checks=checked.checks,
        levels=checked.levels,
        observed=checked.observed,
        replayed=checked.replayed,
        low=checked.low,
        high=checked.high,
        notes=(*logs.omissions, *notes, *more, *_note_outlier_cell(logs), *fitted.notes, *checked.notes),
        uses_posterior_draws=checked.uses_draws,
        columns=logs.columns,
    )


FEATURE_MODELS = ("linear", "logistic")
"""Models of arms with features."""


def prepare_features(logs: Logs, intercept: bool) -> tuple[Logs, tuple[str, ...]]:
    """Prepare logs for models with features: add an intercept if requested, with a note on it."""
    if not intercept or logs.features is None:
        return logs, ()
    extended = add_intercept(logs)
    if extended.intercept:
        text = "a feature {!r}, which is 1 for every arm, is added; {} leaves it out"
        return extended, (Message(text, INTERCEPT, Setting("intercept", False)),)
    return extended, ("the features, or sums of them, already include a constant, so no intercept is added",)


OUTLIER_SHARE = 0.5
"""A cell with a larger share of the sum of squares is an outlier, if there are at least `MIN_OUTLIER_CELLS` cells."""


MIN_OUTLIER_CELLS = 20


def _note_outlier_cell(logs: Logs) -> Iterator[str]:
    """Yield a note if most of the noise is from a single cell, for example because of a mistyped reward."""
    cell = int(logs.squares.argmax())
    share = logs.squares[cell] / max(float(logs.squares.sum()), 1e-300)
    if logs.rewards == "real" and len(logs.squares) >= MIN_OUTLIER_CELLS and share > OUTLIER_SHARE:
        yield (
            f"{share:.0%} of the sum of squares is from one arm of one campaign, {logs.arms[logs.arm[cell]]!r} in "
            f"{logs.campaigns[logs.campaign[cell]]!r}: check it for a mistyped reward or another unit"
        )


def choose_model(logs: Logs, model: str) -> tuple[str, tuple[str, ...]]:
    """Resolve the model's name; "auto" depends on features and rewards."""
    if model in MODELS:
        return model, ()
    if model != "auto":
        hint = suggest_name(model, MODELS, cutoff=0.5)
        text = f"must be 'auto' or one of {', '.join(MODELS)}, but got {model!r}{hint}"
        raise make_argument_error("model", "unknown-name", text)
    if logs.features is not None:
        return ("logistic" if logs.rewards == "binary" else "linear"), ()
    if logs.rewards == "unit":
        note = "rewards are in [0, 1], so they are modelled as beta rewards; {} does not use these limits"
        return "beta", (Message(note, Setting("model", "gaussian")),)
    return ("beta-binomial" if logs.rewards == "binary" else "gaussian"), ()


def _resolve_arm_count(logs: Logs, arms: Any, named: bool) -> tuple[int, tuple[str, ...]]:
    """Return the number of arms: given, or of the names, or of a typical campaign; and a note if they differ."""
    if arms is not None:
        return check_arms(arms), ()
    widths = logs.arm_counts
    count = len(logs.arms) if named else int(np.median(widths))
    if count < 2:
        if widths.max() == 1:
            raise InvalidRequest(
                "some campaign must have two arms or more, so that differences between arms can be estimated, but each of "
                "{:,} has one; if the column contains times or numbers of decisions, name another with {}.",
                *(len(widths), Argument("campaign")),
                argument="logs",
                code="insufficient-data",
            )
        raise InvalidRequest(
            "a problem must have two arms or more, but a typical campaign has one; give the number with {}.",
            Argument("arms"),
            argument="arms",
            code="insufficient-data",
        )
    if named or widths.min() == widths.max():
        return count, ()
    return count, (f"campaigns have {widths.min()} to {widths.max()} arms; the problem has the median, {count}",)
