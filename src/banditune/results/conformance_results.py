"""Results of the checks of a user's own policy, problem, tuner or executor."""

from __future__ import annotations

from dataclasses import dataclass

from banditune.results.result_record import ResultRecord, register_record


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ConformanceCheck(ResultRecord):
    """One check that was passed.

    Attributes
    ----------
    name : str
        The name of the check. The error of a check that fails contains it.
    finding : str
        What was compared, and the outcome.
    runs : int
        The number of simulated runs, of draws or of searches; 0 where there are none.
    detectable : float or None
        The smallest deviation that would have been detected. 0 if every bit was compared, None if nothing was measured.
    """

    name: str
    finding: str
    runs: int = 0
    detectable: float | None = None

    def __repr__(self) -> str:
        return f"{self.name}: {self.finding}"


@register_record
@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class ConformanceReport(ResultRecord):
    """The checks that a policy, a problem, a tuner or an executor passed.

    Attributes
    ----------
    subject_kind : str
        "policy", "problem", "tuner" or "executor".
    subject : str
        Its name.
    checks : tuple of ConformanceCheck
        The checks that were passed.
    left_out : tuple of str
        The checks that do not apply, each with the reason.
    """

    subject_kind: str
    subject: str
    checks: tuple[ConformanceCheck, ...]
    left_out: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> ConformanceCheck:
        """Return the check of that name.

        Parameters
        ----------
        name : str
            The name of a check.
        """
        return {check.name: check for check in self.checks}[name]

    def __repr__(self) -> str:
        width = max((len(check.name) for check in self.checks), default=0)
        count = f"{len(self.checks)} check{'s' * (len(self.checks) != 1)}"
        lines = [f"the {self.subject_kind} {self.subject!r} passes {count}"]
        lines += [f"  {check.name.ljust(width)}  {check.finding}" for check in self.checks]
        lines += [f"  left out: {reason}" for reason in self.left_out]
        return "\n".join(lines)
