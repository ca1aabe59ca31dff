"""The verbs: ask tuners, call the engine, keep the record."""

from banditune.study.known import exact_regret, lower_bound, optimum
from banditune.study.problem_check import check_problem
from banditune.study.trust import stress
from banditune.study.verbs import compare, curve, simulate, tune

__all__ = ["check_problem", "compare", "curve", "exact_regret", "lower_bound", "optimum", "simulate", "stress", "tune"]
