"""Fits a distribution of problem instances to past logs, by one of the models in `MODELS`."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from banditune.core.checks import check_arms, check_integer, check_number
from banditune.core.descriptions import describe
from banditune.core.errors import InvalidRequest
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
    """Fit a problem to past logs; `fit(...).problem` is ready to be tuned on.

    `per_arm` gives each arm's name a prior of its own where there are no features. Where there are some, `intercept` adds
    one that is 1 for every arm, unless they hold a constant. `arms` and `horizon` are those of a typical campaign (median)
    unless given.
    """
    if not isinstance(logs, Logs):
        raise InvalidRequest(
            f"`logs` must be past logs (banditune.logs.Logs), but got {type(logs).__name__}; read them first: "
            "fit(read_logs(FILE))."
        )
    confidence = check_number("confidence", confidence, above=0)
    if not 0.5 <= confidence < 1:
        raise InvalidRequest(f"`0.5 <= confidence < 1` must hold, but got confidence={confidence:g}.")
    name, notes = choose_model(logs, model)
    if name in FEATURE_MODELS:
        logs, more = prepare_features(logs, intercept)
        notes = (*notes, *more)
    elif not intercept:
        raise InvalidRequest(f"`intercept` must be left out for the model {name!r}, which uses no features.")
    if per_arm and name not in ("beta-binomial", "beta", "gaussian"):
        raise InvalidRequest(
            f"`per_arm` must be left out for the model {name!r}, which tells arms apart in its own way."
        )
    wanted, more = _resolve_arm_count(logs, arms, per_arm or name == "correlated")
    lengths = logs.lengths
    steps = check_integer("horizon", max(int(np.median(lengths)), 1) if horizon is None else horizon, 1)
    draft = MODELS[name](logs, FitOptions(per_arm, wanted, confidence))
    found = run_predictive_checks(logs, draft, name)
    if horizon is None and lengths.min() < lengths.max():
        more = (
            *more,
            f"campaigns are {lengths.min():,} to {lengths.max():,} decisions long; the horizon is the median",
        )
    return FittedProblem(
        name,
        describe(draft.problem),
        draft.estimates,
        len(logs.campaigns),
        int(logs.pulls.sum()),
        draft.problem.arms,
        steps,
        confidence,
        found.checks,
        found.levels,
        found.observed,
        found.replayed,
        found.low,
        found.high,
        (*logs.left_out, *notes, *more, *_note_outlier_cell(logs), *draft.notes, *found.notes),
        found.drawn,
        logs.columns,
    )


FEATURE_MODELS = ("linear", "logistic")
"""Models of arms with features."""


def prepare_features(logs: Logs, intercept: bool) -> tuple[Logs, tuple[str, ...]]:
    """The logs as models of features take them, with an intercept where it is wanted, and a sentence about it."""
    if not intercept or logs.features is None:
        return logs, ()
    found = add_intercept(logs)
    if found.intercept:
        words = f"a feature {INTERCEPT!r}, which is 1 for every arm, is added; intercept=False leaves it out"
        return found, (words,)
    return found, ("the features hold a constant already, alone or as a sum of some: no intercept is added",)


OUTLIER_SHARE = 0.5
"""A cell with a larger share of all scatter is named; among `MIN_OUTLIER_CELLS` or more, none should have that much."""


MIN_OUTLIER_CELLS = 20


def _note_outlier_cell(logs: Logs) -> Iterator[str]:
    """A sentence where one arm of one campaign makes most of the noise, as a mistyped reward does."""
    place = int(logs.squares.argmax())
    share = logs.squares[place] / max(float(logs.squares.sum()), 1e-300)
    if logs.rewards == "real" and len(logs.squares) >= MIN_OUTLIER_CELLS and share > OUTLIER_SHARE:
        yield (
            f"{share:.0%} of the rewards' scatter comes from one arm of one campaign, {logs.arms[logs.arm[place]]!r} in "
            f"{logs.campaigns[logs.campaign[place]]!r}: look for a mistyped reward or another unit there"
        )


def choose_model(logs: Logs, model: str) -> tuple[str, tuple[str, ...]]:
    """The model's name; "auto" goes by features and rewards."""
    if model in MODELS:
        return model, ()
    if model != "auto":
        near = difflib.get_close_matches(str(model), MODELS, n=1, cutoff=0.5)
        hint = f"; did you mean {near[0]!r}?" if near else "."
        raise InvalidRequest(f"`model` must be 'auto' or one of {', '.join(MODELS)}, but got {model!r}{hint}")
    if logs.features is not None:
        return ("logistic" if logs.rewards == "binary" else "linear"), ()
    if logs.rewards == "unit":
        return "beta", ("rewards are in [0, 1]: beta rewards; model='gaussian' would take them as any numbers",)
    return ("beta-binomial" if logs.rewards == "binary" else "gaussian"), ()


def _resolve_arm_count(logs: Logs, arms: Any, named: bool) -> tuple[int, tuple[str, ...]]:
    """The number of arms that is told, or of the names, or of a typical campaign; and a sentence where they differ."""
    if arms is not None:
        return check_arms(arms), ()
    widths = logs.widths
    usual = len(logs.arms) if named else int(np.median(widths))
    if usual < 2:
        if widths.max() == 1:
            raise InvalidRequest(
                f"campaigns must have two arms or more, so that they tell how arms differ, but each of {len(widths):,} has "
                "one; if the column is a time or numbers decisions, name another with `campaign`."
            )
        raise InvalidRequest(
            "a problem must have two arms or more, but a typical campaign has one; say how many with `arms`."
        )
    if named or widths.min() == widths.max():
        return usual, ()
    return usual, (f"campaigns have {widths.min()} to {widths.max()} arms; the problem has the median, {usual}",)
