"""Exact computations without simulation: indices, optimal values, regrets and lower bounds."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
