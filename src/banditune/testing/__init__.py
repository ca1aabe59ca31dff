"""Conformance checks of your own policies, problems, tuners and executors."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
