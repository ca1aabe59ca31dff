"""What the verbs return: frozen records that go to JSON and back without loss."""

from banditune.results.books import Account, Tally
from banditune.results.computed import Bound, ExactRegret, Floor, Optimum
from banditune.results.estimates import (
    LEVEL,
    QUANTILES,
    TAIL,
    WORST,
    Belief,
    Estimate,
    Spread,
    TrialResult,
    Unimodality,
    reach_of_all,
    standard_error,
    student_quantile,
)
from banditune.results.files import DATABASE, SHORTEST, beginning, check_writable, replacing, write_whole
from banditune.results.logs import Backtest, Check, Fit, Fitted
from banditune.results.paper import PaperCell, PaperCurve, Reproduction
from banditune.results.record import INFINITE, KINDS, Record, decoded, encoded, frame, from_json, frozen, load
from banditune.results.setup import Sample, Setup
from banditune.results.tunings import Comparison, Curve, Entry, Export, Strain, Stress, Tuning

__all__ = [
    "DATABASE",
    "INFINITE",
    "KINDS",
    "LEVEL",
    "QUANTILES",
    "SHORTEST",
    "TAIL",
    "WORST",
    "Account",
    "Backtest",
    "Belief",
    "Bound",
    "Check",
    "Comparison",
    "Curve",
    "Entry",
    "Estimate",
    "ExactRegret",
    "Export",
    "Fit",
    "Fitted",
    "Floor",
    "Optimum",
    "PaperCell",
    "PaperCurve",
    "Record",
    "Reproduction",
    "Sample",
    "Setup",
    "Spread",
    "Strain",
    "Stress",
    "Tally",
    "TrialResult",
    "Tuning",
    "Unimodality",
    "beginning",
    "check_writable",
    "decoded",
    "encoded",
    "frame",
    "from_json",
    "frozen",
    "load",
    "reach_of_all",
    "replacing",
    "standard_error",
    "student_quantile",
    "write_whole",
]
