"""Notices: what may mislead in a result, each with a stable code and advice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, ParamSpec

ADVICE = {
    "answer-misses-known-value": "Raise the budget of the search.",
    "better-fixed-arm": "Let `sample` return means over all steps of a run; give tables as many rows as the horizon.",
    "broken-plugin": "Update, reinstall or uninstall that package.",
    "few-data": "Collect more tables or campaigns, or use a parametric problem that is fitted to them.",
    "no-effect": "Leave the parameter at its textbook value, or tune another policy.",
    "not-repeatable": "Make a new object for every run, without data that it shares, and let it draw from `seed`.",
    "precision-not-reached": "Raise `max_runs` or `max_time`, or ask for a smaller precision.",
    "range-end": "Search another range with `ranges` in Python or --range on the command line.",
    "range-end-better": "Search closer to that end of the range.",
    "regret-below-zero": "Use a tuner that fits no curves, such as `uniform`.",
    "scenario-left-out": "Give problems that the policy can be simulated on with `others`.",
    "search-contradicted": "Raise the budget; trust the validation, not the search.",
    "search-doubtful": "Raise the budget, or look at the regret curve.",
    "skewed-regret": "Raise `validate`, and look at the distribution of the regret.",
    "worse-than-textbook": "Use the textbook value, or raise the budget.",
    "wrong-noise": "Give the policy the noise of the problem.",
    "wrong-prior": "Give the policy the prior of the problem.",
}
"""Every code, and what to do."""

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
    "wrong-noise": "The policy assumes another noise than the problem has.",
    "wrong-prior": "The policy assumes another prior than the problem has.",
}
"""Every code, and what was seen. The documentation has a table of both."""

Arguments = ParamSpec("Arguments")


class Notice(str):
    """What may mislead in a result: a message with a stable code and advice.

    A notice is a string, its message.

    Parameters
    ----------
    message : str
        What was seen.
    code : str
        One of the keys of `ADVICE`.

    Attributes
    ----------
    code : str
        A stable word for programs.
    """

    code: str

    def __new__(cls, message: str, code: str) -> Notice:
        notice = super().__new__(cls, message)
        notice.code = code
        if code not in ADVICE:
            raise ValueError(f"a notice must have one of the codes {', '.join(ADVICE)}, but got {code!r}.")
        return notice

    def __reduce__(self) -> tuple[type[Notice], tuple[str, str]]:
        return Notice, (str(self), self.code)

    @property
    def message(self) -> str:
        """What was seen."""
        return str(self)

    @property
    def advice(self) -> str:
        """What to do."""
        return ADVICE[self.code]

    def replace_message(self, message: str) -> Notice:
        """Return a notice of the same code with another message."""
        return Notice(message, self.code)

    def to_plain(self) -> dict[str, Any]:
        """Return the notice as JSON holds it."""
        return {"code": self.code, "message": str(self), "advice": self.advice}


def with_code(
    code: str,
) -> Callable[[Callable[Arguments, Iterator[str]]], Callable[Arguments, Iterator[Notice]]]:
    """Make notices of the messages that a function yields."""

    def decorate(function: Callable[Arguments, Iterator[str]]) -> Callable[Arguments, Iterator[Notice]]:
        @wraps(function)
        def yield_notices(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Iterator[Notice]:
            for message in function(*args, **kwargs):
                yield message if isinstance(message, Notice) else Notice(message, code)

        return yield_notices

    return decorate
