"""The verbs: ask tuners, call the engine, keep the record."""

from banditune.study.verbs import compare, curve, simulate, tune

__all__ = ["compare", "curve", "simulate", "tune"]
