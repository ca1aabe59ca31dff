"""Sentences and table rows about a backtest."""

from __future__ import annotations

from collections.abc import Iterator

from banditune.reports.text_formatting import (
    TEXTBOOK_BASELINE,
    format_estimate_cells,
    format_number,
    format_params,
    name_baseline,
)
from banditune.reports.tuning_statements import describe_baseline
from banditune.results.estimates import Estimate
from banditune.results.log_results import Backtest

BACKTEST_HEADER = ("on campaigns left out", "mean", "std. error", "95% interval")


def state_backtest(result: Backtest) -> str:
    """State the regret of the tuned policy on campaigns that it was not tuned on."""
    return (
        f"{format_params(result.tuning.params)}, tuned on {result.fit.campaigns} campaigns, "
        f"has regret {format_number(result.regret.mean)} "
        f"on each of {result.campaigns} others ({result.setup.horizon:,} decisions), {state_backtest_gain(result)}"
    )


def state_backtest_gain(result: Backtest) -> str:
    """Compare the tuned value with the baseline on these campaigns. The sentence depends on the interval."""
    name = name_baseline(result.tuning)
    if name == TEXTBOOK_BASELINE and result.tuning.params == result.tuning.textbook_params:
        return "which is the textbook default"
    sure = "" if result.gain.low > 0 or result.gain.high < 0 else ", but there are too few campaigns to prove it"
    if sure and result.has_equal_arms:
        baseline_name = describe_baseline(name)
        return f"no measurable difference to {baseline_name}: the arms show no difference beyond chance there"
    change = f"{format_number(abs(result.gain.mean))} {'less' if result.gain.mean >= 0 else 'MORE'}"
    return f"{change} than {describe_baseline(name)}{sure}"


def list_backtest_estimates(result: Backtest) -> Iterator[tuple[str, Estimate]]:
    """List the estimates of the table with their names: regrets per campaign, rewards per decision."""
    name = name_baseline(result.tuning)
    yield "regret, tuned", result.regret
    yield f"regret, {name}", result.textbook_regret
    yield "gain", result.gain
    yield "reward per decision, tuned", result.reward
    yield f"reward per decision, {name}", result.textbook_reward
    yield "reward per decision, as logged", result.logged_reward
    if result.reward_difference is not None:  # older saved results have none
        yield "tuned minus logged", result.reward_difference


def list_backtest_rows(result: Backtest) -> Iterator[tuple[str, ...]]:
    """List the rows of the table."""
    for name, estimate in list_backtest_estimates(result):
        yield name, *format_estimate_cells(estimate)
