"""Checks for policies and problems of your own."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
