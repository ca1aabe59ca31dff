"""Searches for the best parameter value, and the contract for your own search."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
