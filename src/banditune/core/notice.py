"""Notices: what may mislead in a result, each with a stable code and advice."""

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
    "not-repeatable": "Make a new object for every run, without data that it shares, and let it draw from `seed`.",
    "precision-not-reached": Message(
        "Raise {} or {}, or accept a larger {}.", Argument("max_runs"), Argument("max_time"), Argument("precision")
    ),
    "range-end": Message("Search another range with {}.", Argument("ranges")),
    "range-end-better": "Search closer to that end of the range.",
    "regret-below-zero": "Use a tuner that fits no curves, such as uniform.",
    "scenario-left-out": Message("Give problems that the policy can be simulated on with {}.", Argument("others")),
    "search-contradicted": "Raise the budget; trust the validation, not the search.",
    "search-doubtful": "Raise the budget, or look at the regret curve.",
    "skewed-regret": Message("Validate on more instances: raise {}.", Argument("validate")),
    "worse-than-textbook": "Use the textbook value, or raise the budget.",
    "wrong-arm-shape": "Take regrets and gains as rough guides, and see how arms differ in the logs.",
    "wrong-noise": "Give the policy the noise of the problem.",
    "wrong-prior": "Give the policy the prior of the problem.",
}
"""Every code, and what to do unless a notice has advice of its own."""

CAUSES = {
    "answer-misses-known-value": "A value that was tried in the robustness check has surely less regret than the answer.",
    "better-fixed-arm": "Rewards change with the step, and the fixed arm that regret compares with is not the best one.",
    "broken-plugin": "An installed package has a plug-in that cannot be used.",
    "few-data": "A data set has so few tables or campaigns that its halves may differ.",
    "no-effect": "No value of the parameter changed a decision.",
    "not-repeatable": "A wrapped policy made other decisions when a run was simulated again.",
    "precision-not-reached": "The search ended before it was sure of the wanted precision.",
    "range-end": "The answer is at an end of the searched range.",
    "range-end-better": "The end of the range may be better than the answer.",
    "regret-below-zero": "The mean realised regret is surely negative.",
    "scenario-left-out": "A scenario could not be simulated with this policy.",
    "search-contradicted": "Fresh instances contradict what the search knew of the regret.",
    "search-doubtful": "The regret curve may have a second dip, or the model of the search fits badly.",
    "skewed-regret": "A few runs carry most of the mean regret.",
    "worse-than-textbook": "The answer is surely worse than the textbook value.",
    "wrong-arm-shape": "Arms of past campaigns differ in another way than a backtest can evaluate.",
    "wrong-noise": "The policy assumes another noise than the problem has.",
    "wrong-prior": "The policy assumes another prior than the problem has.",
}
"""Every code, and what was seen. The documentation has a table of both."""

Arguments = ParamSpec("Arguments")

Finding = str | tuple[str, str]
"""What a function finds: a message, or a message with advice of its own."""


class Notice(Message):
    """What may mislead in a result: a stable code, a message and advice.

    A notice is a string, the message with the advice.

    Parameters
    ----------
    message : str
        What was seen.
    code : str
        One of the keys of `ADVICE`.
    advice : str, optional
        What to do here; by default the advice of the code.

    Attributes
    ----------
    message : str
        What was seen.
    code : str
        A stable word for programs.
    advice : str
        What to do.
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
        """Return the notice as JSON holds it."""
        return {"code": self.code, "message": str(self.message), "advice": str(self.advice)}


def with_code(
    code: str,
) -> Callable[[Callable[Arguments, Iterator[Finding]]], Callable[Arguments, Iterator[Notice]]]:
    """Make notices of the messages that a function yields, each alone or with advice of its own."""

    def decorate(function: Callable[Arguments, Iterator[Finding]]) -> Callable[Arguments, Iterator[Notice]]:
        @wraps(function)
        def yield_notices(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Iterator[Notice]:
            for found in function(*args, **kwargs):
                message, advice = found if isinstance(found, tuple) else (found, None)
                yield Notice(message, code, advice)

        return yield_notices

    return decorate
