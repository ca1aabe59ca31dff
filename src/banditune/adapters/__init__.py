"""Adapters: policies of other libraries in this package, and tuned values for other libraries."""

from banditune.core.lazy_names import attach_stub

__getattr__, __dir__ = attach_stub(__name__, __file__)
