"""Sentences and table rows about a backtest."""

from __future__ import annotations

from collections.abc import Iterator

from banditune.reports.text_formatting import format_estimate_cells, format_number, format_params, name_baseline
from banditune.reports.tuning_statements import describe_baseline
from banditune.results.log_results import Backtest

BACKTEST_HEADER = ("on campaigns left out", "mean", "std. error", "95% interval")


def state_backtest(result: Backtest) -> str:
    """What the tuned policy does on campaigns that it was not tuned on."""
    return (
        f"{format_params(result.tuning.params)}, tuned on {result.fit.campaigns} campaigns, loses {format_number(result.regret.mean)} "
        f"on each of {result.campaigns} others ({result.setup.horizon:,} decisions), {state_backtest_gain(result)}"
    )


def state_backtest_gain(result: Backtest) -> str:
    """How the tuned value compares with theory's on these campaigns, as far as they allow to say."""
    name = name_baseline(result.tuning)
    if name == "theory" and result.tuning.params == result.tuning.theory_params:
        return "which is what theory has"
    sure = "" if result.gain.low > 0 or result.gain.high < 0 else ", which so few campaigns do not prove"
    if sure and result.doubts:
        usual = describe_baseline(name)
        return f"as far as can be seen no more or less than {usual}: arms show no difference beyond chance there"
    change = f"{format_number(abs(result.gain.mean))} {'less' if result.gain.mean >= 0 else 'MORE'}"
    return f"{change} than {describe_baseline(name)}{sure}"


def list_backtest_rows(result: Backtest) -> Iterator[tuple[str, ...]]:
    """Regrets of a campaign, rewards of a decision."""
    yield "regret, tuned", *format_estimate_cells(result.regret)
    name = name_baseline(result.tuning)
    yield f"regret, {name}", *format_estimate_cells(result.theory)
    yield "gain", *format_estimate_cells(result.gain)
    yield "reward a decision, tuned", *format_estimate_cells(result.reward)
    yield f"reward a decision, {name}", *format_estimate_cells(result.theory_reward)
    yield "reward a decision, as logged", *format_estimate_cells(result.logged)
    if result.difference is not None:  # results that were saved before had none
        yield "tuned minus logged", *format_estimate_cells(result.difference)
