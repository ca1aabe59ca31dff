"""What the checks of a fit compare: means of rewards, or means that are drawn given the logs."""

from __future__ import annotations

from banditune.results.logs import Fit

MEANS_DRAWN = "checks look at means that are likely given the logs, not at means of rewards"
"""Stands in a note of every fit to logs in which a policy chose the arms, also in those that were saved long ago."""


def means_drawn(fit: Fit) -> bool:
    """Whether means drawn given the logs are compared with means drawn from the fit, as a policy chose the arms."""
    return any(MEANS_DRAWN in note for note in fit.notes)
