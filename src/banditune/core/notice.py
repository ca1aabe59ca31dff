"""Notices: warnings about a result, each with a stable code and advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec

from banditune.core.messages import Argument, Message

ADVICE: dict[str, str] = {
    "answer-misses-known-value": Message("Raise {}.", Argument("budget")),
    "better-fixed-arm": "Let `sample` return means over all steps of a run; give tables as many rows as the horizon.",
    "broken-plugin": "Update, reinstall or uninstall that package.",
    "few-data": "Collect more tables or campaigns, or use a parametric problem that is fitted to them.",
    "no-effect": "Check whether the policy reads the parameter; leave it at its textbook value, or tune another policy.",
    "not-repeatable": "Make a new object for every run, without shared data, and let it draw from `seed`.",
    "precision-not-reached": Message(
        "Raise {} or {}, or accept a larger {}.", Argument("max_runs"), Argument("max_time"), Argument("precision")
    ),
    "range-end": Message("Search another range with {}.", Argument("ranges")),
    "range-end-better": "Search closer to that end of the range.",
    "regret-below-zero": "Use a tuner that fits no curves, such as uniform.",
    "scenario-left-out": Message("Give problems that the policy can be simulated on with {}.", Argument("others")),
    "search-contradicted": "Raise the budget; rely on the validation, not on the search.",
    "search-doubtful": "Raise the budget, or look at the regret curve.",
    "skewed-regret": Message("Validate on more instances: raise {}.", Argument("validate")),
    "worse-than-textbook": "Use the textbook value, or raise the budget.",
    "wrong-arm-shape": "Take regrets and gains as rough guides, and see how arms differ in the logs.",
    "wrong-noise": "Give the policy the noise of the problem.",
    "wrong-prior": "Give the policy the prior of the problem.",
}
"""Every code, and the advice of notices without their own."""

CAUSES = {
    "answer-misses-known-value": "A value of the robustness check has significantly less regret than the answer.",
    "better-fixed-arm": "Rewards change with the step, and the fixed arm that regret compares with is not the best one.",
    "broken-plugin": "An installed package has a plug-in that cannot be used.",
    "few-data": "A data set has so few tables or campaigns that its halves may differ.",
    "no-effect": "No value of the parameter changed a decision.",
    "not-repeatable": "A wrapped policy made other decisions when a run was simulated again.",
    "precision-not-reached": "The search ended before the requested precision was reached.",
    "range-end": "The answer is at an end of the searched range.",
    "range-end-better": "The end of the range may be better than the answer.",
    "regret-below-zero": "The mean realised regret is significantly negative.",
    "scenario-left-out": "A scenario could not be simulated with this policy.",
    "search-contradicted": "Fresh instances contradict the statements of the search about the regret.",
    "search-doubtful": "The regret curve may have a second dip, or the model of the search fits badly.",
    "skewed-regret": "Most of the mean regret is from a few runs.",
    "worse-than-textbook": "The answer is significantly worse than the textbook value.",
    "wrong-arm-shape": "Arms of past campaigns differ in another way than a backtest can evaluate.",
    "wrong-noise": "The policy assumes another noise than the problem has.",
    "wrong-prior": "The policy assumes another prior than the problem has.",
}
"""Every code, and its meaning. The documentation has a table of both."""

Arguments = ParamSpec("Arguments")

Finding = str | tuple[str, str]
"""The content of a notice: a message, or a message with its own advice."""


class Notice(Message):
    """A warning about a result: a stable code, a message and advice.

    A notice is a string, the message with the advice.

    Parameters
    ----------
    message : str
        The observation.
    code : str
        One of the keys of `ADVICE`.
    advice : str, optional
        The advice for this case; by default that of the code.

    Attributes
    ----------
    message : str
        The observation.
    code : str
        A stable word for programs.
    advice : str
        The advice.
    """

    message: Message
    code: str
    advice: Message

    def __new__(cls, message: str, code: str, advice: str | None = None) -> Notice:
        if code not in ADVICE:
            raise ValueError(f"a notice must have one of the codes {', '.join(ADVICE)}, but got {code!r}.")
        seen, way = Message(message), Message(ADVICE[code] if advice is None else advice)
        notice = cls.from_parts([seen, " ", way])
        notice.message, notice.code, notice.advice = seen, code, way
        return notice

    def __reduce__(self) -> tuple[Any, ...]:
        return Notice, (self.message, self.code, self.advice)

    def replace_message(self, message: str) -> Notice:
        """Return a notice of the same code and advice with another message."""
        return Notice(message, self.code, self.advice)

    def to_plain(self) -> dict[str, Any]:
        """Convert the notice to a JSON object."""
        return {"code": self.code, "message": str(self.message), "advice": str(self.advice)}


def with_code(
    code: str,
) -> Callable[[Callable[Arguments, Iterator[Finding]]], Callable[Arguments, Iterator[Notice]]]:
    """Convert the messages that a function yields, each with or without its own advice, to notices."""

    def decorate(function: Callable[Arguments, Iterator[Finding]]) -> Callable[Arguments, Iterator[Notice]]:
        @wraps(function)
        def yield_notices(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Iterator[Notice]:
            for found in function(*args, **kwargs):
                message, advice = found if isinstance(found, tuple) else (found, None)
                yield Notice(message, code, advice)

        return yield_notices

    return decorate
